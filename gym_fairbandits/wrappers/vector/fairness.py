"""How evenly the episodes of a native vector environment treated their arms or users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.wrappers.fairness import arm_fairness, user_fairness
from gym_fairbandits.wrappers.vector._ending import EndMetrics

__all__ = ["FairnessMetrics"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class FairnessMetrics(EndMetrics):
    """The wrapper :class:`gym_fairbandits.wrappers.FairnessMetrics`, for native vector ones.

    The keys are those of the scalar wrapper, as arrays over the sub-environments at the top level
    of ``info``, in every autoreset mode, each with its mask ``_key`` of the episodes that ended in
    this step; steps in which none ended have no such keys.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import FairnessMetrics
        >>> settings = {"instance": "early_vs_late", "horizon": 1}
        >>> envs = FairnessMetrics(gym.make_vec("ImprovingBandit-v0", num_envs=2, **settings))
        >>> _ = envs.reset(seed=0)
        >>> _, _, _, _, infos = envs.step([0, 1])
        >>> infos["max_potential_gap"].round(3), infos["_max_potential_gap"]
        (array([1.   , 0.975]), array([ True,  True]))
    """

    def _metrics(self, rows: Bools) -> dict[str, Floats]:
        bandits = self._bandits
        if hasattr(bandits, "potential_gaps"):
            return arm_fairness(bandits.pull_counts(rows=rows), bandits.potential_gaps(rows=rows))
        return user_fairness(
            bandits.realized_user_returns(rows=rows), bandits.expected_user_returns(rows=rows)
        )
