"""Keys of the metrics of fairness, and improving arms that report them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from helpers_names import IMPROVING
from helpers_regret import EARLY_LATE

from gym_fairbandits.wrappers import FairnessMetrics

ARM_KEYS = {"max_potential_gap", "mean_potential_gap", "pull_gini", "min_pull_share"}
EARNED_KEYS = {"user_gap", "jain_index", "user_gini", "min_user_return"}
USER_KEYS = EARNED_KEYS | {f"expected_{key}" for key in EARNED_KEYS}


def keys_of(env_id: str) -> set[str]:
    return ARM_KEYS if env_id == IMPROVING else USER_KEYS


def improving(**kwargs: Any) -> FairnessMetrics[Any, Any]:
    return FairnessMetrics(gym.make(IMPROVING, **{"instance": EARLY_LATE, **kwargs}))
