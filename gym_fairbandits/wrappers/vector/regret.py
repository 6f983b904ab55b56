"""Policy regret of the episodes of a native vector environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from gym_fairbandits.wrappers.regret import regret_metrics

__all__ = ["PolicyRegret"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


if TYPE_CHECKING:
    _Base = VectorWrapper[Any, Any, Any, Any, NDArray[Any]]
else:  # it is not generic before Gymnasium 1.4
    _Base = VectorWrapper


class PolicyRegret(_Base):
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

    def __init__(self, env: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Wrap a native vector environment of this package.

        Raises:
            TypeError: If ``env`` is another one; ``SyncVectorEnv`` and ``AsyncVectorEnv`` have
                their sub-environments wrapped instead.
        """
        if not hasattr(env.unwrapped, "optimal_return"):
            advice = (
                "; wrap its sub-environments instead, for example with "
                "`gym.make_vec(..., vectorization_mode='sync', wrappers=[PolicyRegret])` and the "
                "scalar `gym_fairbandits.wrappers.PolicyRegret`"
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
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        ended = np.logical_or(terminations, truncations)
        if ended.any():
            infos = dict(infos)
            for name, values in self._metrics(ended).items():
                spread = np.zeros((self.num_envs, *values.shape[1:]))
                spread[ended] = values
                infos[name], infos[f"_{name}"] = spread, ended.copy()
        return observations, rewards, terminations, truncations, infos

    def regret(self) -> Floats:
        """Return the policy regret of each row's steps so far; shape ``(num_envs,)``.

        A row whose episode ended in the latest step answers for that episode.
        """
        return self.metrics()["policy_regret"]

    def metrics(self) -> dict[str, Floats]:
        """Return all that ``info`` would hold if every episode ended now."""
        return self._metrics(np.ones(self.num_envs, dtype=np.bool_))

    def _metrics(self, rows: Bools) -> dict[str, Floats]:
        metrics = regret_metrics(
            self._bandits.optimal_return(rows=rows),
            self._bandits.expected_return(rows=rows),
            self._bandits.realized_return(rows=rows),
        )
        if hasattr(self._bandits, "expected_user_returns"):
            metrics["expected_user_returns"] = self._bandits.expected_user_returns(rows=rows)
        return metrics
