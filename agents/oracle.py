"""Policies that know the instance: the yardsticks of every comparison.

An oracle is constructed from the environment that runs (scalar or vector, wrapped or not) and
reads its instance again whenever an episode begins. It asks by name and imports no environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int

from .base import Agent, Observation, argmax_fewest_pulls
from .egalitarian import RotatingAgent

__all__ = ["GreedyNext", "OracleArm", "OracleRotation", "StaticOracle"]

Ints = NDArray[np.int64]


def _call(env: Any, name: str, *arguments: Any) -> list[Any]:
    """Call a method of every environment behind ``env`` and return the answers.

    Only names and plain values cross to environments in other processes: not everything there
    can be pickled, and what a worker raises is fatal to it.
    """
    if _is_native(env):
        return list(getattr(env.unwrapped, name)(*arguments))
    if hasattr(env, "env_method"):  # a VecEnv of Stable-Baselines3
        return list(env.env_method(name, *arguments))
    if hasattr(env.unwrapped, "call"):  # sync or async
        return list(env.unwrapped.call(name, *arguments))
    return [env.get_wrapper_attr(name)(*arguments)]


def _is_native(env: Any) -> bool:
    inner = getattr(env, "unwrapped", None)
    return hasattr(inner, "num_envs") and not (hasattr(inner, "call") or hasattr(env, "env_method"))


def _read(env: Any, name: str) -> Any:
    """Return an attribute that all environments behind ``env`` share.

    Raises:
        TypeError: If ``env`` is no environment, or none that has it.
    """
    try:
        if _is_native(env):
            return getattr(env.unwrapped, name)
        if all(_call(env, "has_wrapper_attr", name)):
            return _call(env, "get_wrapper_attr", name)[0]
    except AttributeError:
        pass
    raise TypeError(f"`env` must be an environment that has `{name}`, got {env!r}")


def _episode_length(env: Any) -> int:
    """Return after how many steps an episode of ``env`` ends, time limits included."""
    limits = [int(_read(env, "horizon"))]
    for name in ("max_episode_steps", "_max_episode_steps"):  # native; Gymnasium's TimeLimit
        try:
            limit = _read(env, name)
        except TypeError:
            continue
        if limit not in (None, -1):
            limits.append(int(limit))
    return min(limits)


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
        _read(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        new = observation["pulls"].sum(axis=1) == 0
        if new.any() or len(self._arms) != len(new):
            arms = np.array(_call(self._env, "optimal_arm", self._length), dtype=np.int64)
            # Rows that play on keep their arm: the instance behind them has not changed.
            self._arms = np.where(new, arms, self._arms) if len(self._arms) == len(new) else arms
        return self._arms.copy()


class GreedyNext(Agent):
    """The arm whose next pull pays most in expectation: clairvoyant, but one step ahead only.

    The strongest myopic policy: it knows f_i(N_i + 1) of every arm where others know at most
    f_i(N_i), and yet a late bloomer never tempts it. Its ratio to the optimum is unbounded. Ties
    go to the fewest pulls, then the lowest index. O(k) per step, and a question to the environment.
    """

    def __init__(self, env: Any) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``ImprovingBandit-v0``.

        Raises:
            TypeError: If ``env`` is another environment.
        """
        super().__init__()
        self._env = env
        _read(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        rewards = np.array(_call(self._env, "next_expected_rewards"), dtype=np.float64)
        return argmax_fewest_pulls(rewards, observation["pulls"])


class OracleRotation(RotatingAgent):
    """Rotates the users over the best arms: the benchmark of Lim, Tan, Soh.

    Its regret is 0 if a rotation completes: U / C divides T (C divides U), else U divides T. If C
    does not divide U, the users rotate over U slots of which arm i of the best has C.

    Where means vary, these are the best *fixed* arms for the episode's length. Users then fare
    alike only on average, so that the regret against that benchmark can be positive. Arms that
    react to what is played have no best set beforehand: ``act`` raises ``NotImplementedError``.
    """

    def __init__(self, env: Any) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``EgalAssign-v0``.

        Raises:
            TypeError: If ``env`` is another environment.
        """
        self._env = env
        self._env_capacity = int(_read(env, "capacity"))
        self._length = _episode_length(env)
        super().__init__()

    def _act(self, observation: Observation) -> Ints:
        num_users = observation["user_reward_sum"].shape[1]
        divides = num_users % self._env_capacity == 0
        self.capacity = self._env_capacity if divides else 1
        return super()._act(observation)

    def _arms_per_step(self, num_users: int) -> int:
        return -(-num_users // self._env_capacity)

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        slots = np.array(_call(self._env, "optimal_slots", self._length), dtype=np.int64)[rows]
        return slots[:, :: self.capacity]


class StaticOracle(Agent):
    """User u on the u-th best arm, always: the highest total reward without any sharing.

    Its regret grows linearly, T (mu* / U - mu_U): a good set of arms is not enough, the users
    must take turns. Where means vary, as :class:`OracleRotation`.
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
        self._length = _episode_length(env)
        self._slots: Ints = np.zeros((0, int(_read(env, "num_users"))), dtype=np.int64)

    def _act(self, observation: Observation) -> Ints:
        new = observation["pulls"].sum(axis=1) == 0
        if new.any() or self._slots.shape != observation["user_reward_sum"].shape:
            slots = np.array(_call(self._env, "optimal_slots", self._length), dtype=np.int64)
            keep = self._slots.shape == slots.shape
            self._slots = np.where(new[:, None], slots, self._slots) if keep else slots
        return self._slots.copy()
