"""Policy regret of the episodes of a native vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice
from gym_fairbandits.wrappers.regret import BENCHMARKS, regret_metrics
from gym_fairbandits.wrappers.vector._ending import EndMetrics

__all__ = ["PolicyRegret"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class PolicyRegret(EndMetrics):
    """The wrapper :class:`gym_fairbandits.wrappers.PolicyRegret`, for native vector environments.

    The keys are those of the scalar wrapper, as arrays over the sub-environments at the top level
    of ``info``, in every autoreset mode, each with its mask ``_key`` of the episodes that ended in
    this step; steps in which none ended have no such keys.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import PolicyRegret
        >>> settings = {"instance": "early_vs_late", "horizon": 1}
        >>> envs = PolicyRegret(gym.make_vec("ImprovingBandit-v0", num_envs=2, **settings))
        >>> _ = envs.reset(seed=0)
        >>> _, _, _, _, infos = envs.step([0, 1])
        >>> infos["policy_regret"].round(3), infos["_policy_regret"]
        (array([0.   , 0.225]), array([ True,  True]))
    """

    def __init__(self, env: VectorEnv[Any, Any, NDArray[Any]], benchmark: str = "paper") -> None:
        """Wrap a native vector environment of this package; see :class:`EndMetrics`.

        Args:
            env: The environment.
            benchmark: ``"paper"`` or ``"exact"``; see the scalar wrapper.

        Raises:
            TypeError: If ``env`` is no native vector environment of this package.
            ValueError: If ``benchmark`` is another one.
        """
        optimal = BENCHMARKS[checked_choice("benchmark", benchmark, tuple(BENCHMARKS))]
        super().__init__(env)
        self._optimal = optimal
        if env.render_mode is not None:
            self._bandits.readouts["policy regret"] = self._shown_regret

    def _shown_regret(self) -> Floats:
        """Return the regret for the frames; NaN where it is not known in mid-episode."""
        try:
            return self.regret()
        except ValueError:
            return np.full(self.num_envs, np.nan)

    def regret(self) -> Floats:
        """Return the policy regret of each row's steps so far; shape ``(num_envs,)``.

        A row whose episode ended in the latest step answers for that episode.
        """
        return self.metrics()["policy_regret"]

    def _metrics(self, rows: Bools) -> dict[str, Floats]:
        metrics = regret_metrics(
            getattr(self._bandits, self._optimal)(rows=rows),
            self._bandits.expected_return(rows=rows),
            self._bandits.realized_return(rows=rows),
        )
        if hasattr(self._bandits, "expected_user_returns"):
            metrics["expected_user_returns"] = self._bandits.expected_user_returns(rows=rows)
        return metrics
