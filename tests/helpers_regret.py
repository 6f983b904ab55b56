"""Two arms, one fast and one good, and episodes of given actions for the tests of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from helpers_names import IMPROVING

from gym_fairbandits.curves import LinearCap
from gym_fairbandits.wrappers import PolicyRegret

KEYS = {
    "policy_regret",
    "optimal_return",
    "expected_return",
    "competitive_ratio",
    "realized_regret",
}
EARLY_LATE = [LinearCap(0.5, 2), LinearCap(1.0, 40)]  # min(n/4, 1/2) and min(n/40, 1)


def improving(**kwargs: Any) -> PolicyRegret[Any, Any]:
    return PolicyRegret(gym.make(IMPROVING, **{"instance": EARLY_LATE, **kwargs}))


def play(env: Any, actions: Sequence[Any]) -> list[dict[str, Any]]:
    """Reset and play; return the infos."""
    env.reset(seed=0)
    return [env.step(action)[4] for action in actions]
