"""External regret of the episodes of a native vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from gym_fairbandits.wrappers.external import ExternalAccount
from gym_fairbandits.wrappers.vector._ending import EndMetrics

__all__ = ["ExternalRegret"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class ExternalRegret(EndMetrics):
    """The wrapper :class:`gym_fairbandits.wrappers.ExternalRegret`, for native vector ones.

    ``external_regret`` is an array over the sub-environments at the top level of ``info``, in
    every autoreset mode, with its mask ``_external_regret`` of the episodes that ended in this
    step; steps in which none ended have no such keys.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import ExternalRegret
        >>> settings = {"instance": "early_vs_late", "horizon": 1}
        >>> envs = ExternalRegret(gym.make_vec("ImprovingBandit-v0", num_envs=2, **settings))
        >>> _ = envs.reset(seed=0)
        >>> _, _, _, _, infos = envs.step([0, 1])
        >>> infos["external_regret"].round(3), infos["_external_regret"]
        (array([0.   , 0.225]), array([ True,  True]))
    """

    def __init__(self, env: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Wrap a native vector environment of this package.

        Raises:
            TypeError: If ``env`` is another one; ``SyncVectorEnv`` and ``AsyncVectorEnv`` have
                their sub-environments wrapped instead.
        """
        super().__init__(env)
        self._account = ExternalAccount(self._bandits, self.num_envs)
        self._ended: Bools = np.zeros(self.num_envs, dtype=np.bool_)  # in the latest step
        self._same_step = self._bandits.autoreset_mode == AutoresetMode.SAME_STEP

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes and their accounts; see :meth:`gymnasium.vector.VectorEnv.reset`."""
        outcome = self.env.reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        rows = np.ones(self.num_envs, dtype=np.bool_) if mask is None else mask
        if self._same_step:
            rows = rows | self._ended  # these run already, and now they answer for it
        self._account.clear(rows)
        self._ended = self._ended & ~rows
        return outcome

    def _play(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        best = self._account.best_next()
        outcome = self.env.step(actions)
        self._account.clear(self._ended)
        # Under NEXT_STEP the rows that had ended were only reset.
        self._account.add(best, ~self._ended | self._same_step)
        self._ended = np.logical_or(outcome[2], outcome[3])
        return outcome

    def _metrics(self, rows: Bools) -> dict[str, Floats]:
        return {"external_regret": self._account.regret(rows)}
