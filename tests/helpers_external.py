"""The key of external regret, and improving arms that report it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from helpers_names import IMPROVING
from helpers_regret import EARLY_LATE

from gym_fairbandits.wrappers import ExternalRegret

KEY = "external_regret"


def improving(**kwargs: Any) -> ExternalRegret[Any, Any]:
    return ExternalRegret(gym.make(IMPROVING, **{"instance": EARLY_LATE, **kwargs}))
