"""What wrappers of native vector environments share that report accounts of ended episodes."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

__all__ = ["EndMetrics"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

if TYPE_CHECKING:
    _Base = VectorWrapper[Any, Any, Any, Any, NDArray[Any]]
else:  # it is not generic before Gymnasium 1.4
    _Base = VectorWrapper


class EndMetrics(_Base):
    """Writes metrics of the episodes that end in a step into its ``info``.

    Each metric is an array over the sub-environments at the top level of ``info``, in every
    autoreset mode, with its mask ``_key`` of the episodes that ended in this step; steps in which
    none ended have no such keys.
    """

    def __init__(self, env: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Wrap a native vector environment of this package.

        Raises:
            TypeError: If ``env`` is another one; ``SyncVectorEnv`` and ``AsyncVectorEnv`` have
                their sub-environments wrapped instead.
        """
        if not hasattr(env.unwrapped, "optimal_return"):
            name = type(self).__name__
            advice = (
                "; wrap its sub-environments instead, for example with "
                f"`gym.make_vec(..., vectorization_mode='sync', wrappers=[{name}])` and the "
                f"scalar `gym_fairbandits.wrappers.{name}`"
                if isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
                else ""
            )
            raise TypeError(
                "`env` must be a native vector environment of gym_fairbandits, got "
                f"{env.unwrapped}{advice}"
            )
        super().__init__(env)  # not before: a wrapper given up half-way would close `env`
        self._bandits: Any = env.unwrapped

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step, and add the metrics of the episodes that ended."""
        observations, rewards, terminations, truncations, infos = self._play(actions)
        ended = np.logical_or(terminations, truncations)
        if ended.any():
            infos = dict(infos)
            for name, values in self._metrics(ended).items():
                spread = np.zeros((self.num_envs, *values.shape[1:]))
                spread[ended] = values
                infos[name], infos[f"_{name}"] = spread, ended.copy()
        return observations, rewards, terminations, truncations, infos

    def _play(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step the environment inside; a subclass that keeps an account of steps does it here."""
        return self.env.step(actions)

    def metrics(self) -> dict[str, Floats]:
        """Return all that ``info`` would hold if every episode ended now.

        A row whose episode ended in the latest step answers for that episode.
        """
        return self._metrics(np.ones(self.num_envs, dtype=np.bool_))

    @abstractmethod
    def _metrics(self, rows: Bools) -> dict[str, Floats]:
        """Return the metrics of ``rows``, in their order; arrays of shape ``(n, ...)``."""
