"""Environments that draw without chance, and what is on their frames."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL, IMPROVING, Kwargs

pygame = pytest.importorskip("pygame")

# f_0 = min(n/4, 1/2), f_1 = min(n/40, 1).
EARLY_LATE: Kwargs = {"instance": "early_vs_late", "horizon": 100}
# Without chance: an arm pays its mean.
FIXED: Kwargs = {
    "instance": {"family": "gaussian", "means": [0.5, -1.0, 0.25, 0.125], "std": 0.0},
    "num_users": 3,
    "horizon": 50,
}
EGAL_ACTIONS = [[0, 1, 2], [0, 2, 3]]  # user totals 1, -0.75, 0.375


def made(env_id: str, mode: str | None, **kwargs: Any) -> Any:
    """Return the bare environment, reset."""
    env = gym.make(env_id, render_mode=mode, **kwargs).unwrapped
    env.reset(seed=0)
    return env


def played(mode: str, actions: Any, env_id: str = IMPROVING, **kwargs: Any) -> Any:
    env = made(env_id, mode, **kwargs)
    for action in actions:
        env.step(action)
    return env


def facts(scene: Any) -> dict[str, str]:
    return dict(scene.heading.facts)


HARD: list[tuple[str, Kwargs, list[Any]]] = [
    (IMPROVING, EARLY_LATE, []),
    (IMPROVING, {"instance": [{"family": "constant", "value": 0.5}]}, [0]),
    (IMPROVING, {"num_arms": 100, "noise_std": 1e12}, [99] * 40),
    (IMPROVING, {"num_arms": 100, "render_reveal": True, "horizon_known": True}, [3, 1]),
    (IMPROVING, {"instance": "early_vs_late", "horizon": 1, "render_reveal": True}, [0]),
    (EGAL, FIXED, []),
    (EGAL, {**FIXED, "render_reveal": True}, EGAL_ACTIONS),
    (EGAL, {"num_users": 1, "num_arms": 1}, [[0], [0]]),
    (EGAL, {"num_users": 9, "num_arms": 3, "capacity": 5}, [[0, 0, 0, 0, 0, 1, 1, 1, 1]]),
    (EGAL, {"num_users": 100, "num_arms": 100}, [np.arange(100)]),
    (
        EGAL,
        {
            "instance": {"family": "gaussian", "means": [-1e9] * 120, "std": 1e8},
            "num_users": 120,
        },
        [np.arange(120)] * 3,
    ),
]
