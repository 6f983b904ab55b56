"""Policies that know the instance: the yardsticks of every comparison.

An oracle is constructed from the environment that runs (scalar or vector, wrapped or not) and
reads its instance again whenever an episode begins. It asks by name and imports no environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int

from .base import Agent, Observation
from .egalitarian import RotatingAgent

__all__ = ["OracleArm", "OracleRotation", "StaticOracle"]

Ints = NDArray[np.int64]


def _ask(env: Any, name: str, *arguments: Any) -> list[Any]:
    """Return what each environment behind ``env`` has under ``name``, called if it is a method.

    Raises:
        TypeError: If ``env`` is no environment, or none that has ``name``.
    """
    try:
        if hasattr(env, "env_method"):  # a VecEnv of Stable-Baselines3
            if arguments or callable(env.get_attr(name, [0])[0]):
                return list(env.env_method(name, *arguments))
            return list(env.get_attr(name))
        inner = env.unwrapped
        if hasattr(inner, "num_envs") and not hasattr(inner, name):  # sync or async
            return list(inner.call(name, *arguments))
        value = getattr(inner, name)
        value = value(*arguments) if callable(value) else value
    except AttributeError as error:
        raise TypeError(f"`env` must be an environment that has `{name}`, got {env!r}") from error
    if hasattr(inner, "num_envs") and isinstance(value, np.ndarray):
        return list(value)
    return [value] * getattr(inner, "num_envs", 1)


def _episode_length(env: Any) -> int:
    """Return after how many steps an episode of ``env`` ends, time limits included."""
    inner = getattr(env, "unwrapped", env)
    limits = [_ask(env, "horizon")[0], getattr(inner, "max_episode_steps", None)]
    if hasattr(inner, "envs"):  # sync, or a DummyVecEnv
        limits.append(_time_limit(inner.envs[0]))
    elif hasattr(inner, "env_fns"):  # async: ask a copy, as what a worker raises is fatal to it
        copy = inner.env_fns[0]()
        limits.append(_time_limit(copy))
        copy.close()
    elif hasattr(env, "env_method"):
        limits.append(getattr(env.get_attr("spec", [0])[0], "max_episode_steps", None))
    else:
        limits.append(_time_limit(env))
    return min(int(limit) for limit in limits if limit not in (None, -1))


def _time_limit(env: Any) -> int | None:
    """Return the lowest limit of the ``TimeLimit`` wrappers around an environment."""
    limits = []
    while hasattr(env, "env"):
        limits.append(getattr(env, "_max_episode_steps", None))
        env = env.env
    return min((limit for limit in limits if limit is not None), default=None)


class OracleArm(Agent):
    """Pulls the arm that is best for the episode's length throughout: the offline optimum.

    Its policy regret is 0 if arms do not decrease (Patil et al., Appendix B).
    """

    def __init__(self, env: Any, steps: int | None = None) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``ImprovingBandit-v0``.
            steps: The number of steps to be best for; the episode's length by default.

        Raises:
            TypeError: If ``env`` is another environment, or ``steps`` is not an integer.
            ValueError: If ``steps`` is negative.
        """
        super().__init__()
        self._env = env
        self._length = _episode_length(env) if steps is None else checked_int("steps", steps, 0)
        self._arms: Ints = np.zeros(0, dtype=np.int64)
        _ask(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        new = observation["pulls"].sum(axis=1) == 0
        if new.any() or len(self._arms) != len(new):
            arms = np.array(_ask(self._env, "optimal_arm", self._length), dtype=np.int64)
            # Rows that play on keep their arm: the instance behind them has not changed.
            self._arms = np.where(new, arms, self._arms) if len(self._arms) == len(new) else arms
        return self._arms.copy()


class OracleRotation(RotatingAgent):
    """Rotates the users over the best arms: the benchmark of Lim, Tan, Soh.

    Its regret is 0 if a rotation completes: U / C divides T (C divides U), else U divides T. If C
    does not divide U, the users rotate over U slots of which arm i of the best has C.
    """

    def __init__(self, env: Any) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``EgalAssign-v0``.

        Raises:
            TypeError: If ``env`` is another environment.
        """
        self._env = env
        self._env_capacity = int(_ask(env, "capacity")[0])
        super().__init__()
        _ask(env, "num_users")

    def _act(self, observation: Observation) -> Ints:
        num_users = observation["user_reward_sum"].shape[1]
        divides = num_users % self._env_capacity == 0
        self.capacity = self._env_capacity if divides else 1
        return super()._act(observation)

    def _arms_per_step(self, num_users: int) -> int:
        return -(-num_users // self._env_capacity)

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        slots = np.array(_ask(self._env, "optimal_slots"), dtype=np.int64)[rows]
        return slots[:, :: self.capacity]


class StaticOracle(Agent):
    """User u on the u-th best arm, always: the highest total reward without any sharing.

    Its regret grows linearly, T (mu* / U - mu_U): a good set of arms is not enough, the users
    must take turns.
    """

    def __init__(self, env: Any) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``EgalAssign-v0``.

        Raises:
            TypeError: If ``env`` is another environment.
        """
        super().__init__()
        self._env = env
        self._slots: Ints = np.array(_ask(env, "num_users"))[:, None]

    def _act(self, observation: Observation) -> Ints:
        new = observation["pulls"].sum(axis=1) == 0
        if new.any() or self._slots.shape != observation["user_reward_sum"].shape:
            slots = np.array(_ask(self._env, "optimal_slots"), dtype=np.int64)
            keep = self._slots.shape == slots.shape
            self._slots = np.where(new[:, None], slots, self._slots) if keep else slots
        return self._slots.copy()
