"""Native vector environments as Stable-Baselines3 wants them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

__all__ = ["BanditVecEnv"]

_LEARNABLE = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class BanditVecEnv(VecEnv):
    """A native vector environment of this package as Stable-Baselines3 wants it.

    Many rows in one process, in NumPy arrays: rollouts cost a fraction of those of a
    ``DummyVecEnv``. Infos of rows that ended hold ``terminal_observation``,
    ``TimeLimit.truncated``, the flat metrics of ``wrappers.vector.PolicyRegret`` if it is around
    the environment, and ``episode`` as ``Monitor`` writes it. A ``VecMonitor`` around it writes a
    file; ``evaluate_policy`` asks for one.
    """

    def __init__(self, envs: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Adapt ``envs``, made with ``autoreset_mode="SameStep"``.

        Raises:
            TypeError: If Stable-Baselines3 knows no actions like its own: an assignment needs a
                wrapper.
            ValueError: If it resets in another mode.
        """
        if not isinstance(envs.single_action_space, _LEARNABLE):
            raise TypeError(
                "`envs` must have actions that Stable-Baselines3 knows, got "
                f"{envs.single_action_space}; put RankedAssignment, LehmerAssignment or "
                "EnumeratedAssignment of gym_fairbandits.wrappers.vector around `envs`, or "
                "wrappers.RotatedAssignment around scalar environments in a DummyVecEnv"
            )
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"`envs` must be made with autoreset_mode='SameStep', got {mode!r}")
        self.envs = envs
        self.render_mode = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Any = None
        self._start = time.perf_counter()
        self._returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self._lengths: NDArray[np.int64] = np.zeros(self.num_envs, dtype=np.int64)

    def reset(self) -> Any:
        """Reset all rows, with the seeds of :meth:`seed`."""
        observations, _ = self.envs.reset(seed=self._seeds)  # type: ignore[arg-type]
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0, 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step all rows; return observations, float32 rewards, flags and a list of infos."""
        observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        ended = np.logical_or(terminations, truncations)
        listed: list[dict[str, Any]] = [
            {"TimeLimit.truncated": False} for _ in range(self.num_envs)
        ]
        for row in np.flatnonzero(ended).tolist():
            listed[row].update(self._final(infos, row))
            listed[row]["TimeLimit.truncated"] = bool(truncations[row] and not terminations[row])
        self._returns[ended], self._lengths[ended] = 0, 0
        return observations, rewards.astype(np.float32), ended, listed

    def _final(self, infos: dict[str, Any], row: int) -> dict[str, Any]:
        """Return what the infos say of an episode that has just ended."""
        final: dict[str, Any] = {"terminal_observation": infos["final_obs"][row]}
        for name, values in infos.items():
            mask = infos.get(f"_{name}")
            is_metric = isinstance(values, np.ndarray) and values.shape == (self.num_envs,)
            if is_metric and values.dtype.kind == "f" and mask is not None and mask[row]:
                final[name] = float(values[row])
        final["episode"] = {
            "r": round(float(self._returns[row]), 6),
            "l": int(self._lengths[row]),
            "t": round(time.perf_counter() - self._start, 6),
        }
        return final

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()

    def _rows(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the native environment, once per row."""
        return [getattr(self.envs.unwrapped, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: rows have no attributes of their own.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the rows of a native vector environment have no own attributes")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the native environment that answers with an array over rows."""
        rows = self._rows(indices)
        native = self.envs.unwrapped
        if method_name == "has_wrapper_attr":
            return [hasattr(native, *method_args)] * len(rows)
        if method_name == "get_wrapper_attr":
            return self.get_attr(method_args[0], indices)
        values = getattr(native, method_name)(*method_args, **method_kwargs)
        return [values[row] for row in rows]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False for each row: so `VecMonitor` around it has nothing to warn of."""
        return [False] * len(self._rows(indices))
