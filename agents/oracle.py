"""Policies that know the instance: the yardsticks of every comparison.

An oracle is constructed from the environment that runs (scalar or vector, wrapped or not) and
reads its instance again whenever an episode begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int

from .base import Agent, Observation, argmax_fewest_pulls
from .egalitarian import RotatingAgent
from .running import call, episode_length, read

__all__ = ["GreedyNext", "OracleArm", "OracleRotation", "OracleSchedule", "StaticOracle"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Reader(Agent):
    """Asks the environment for what an episode is played by: as it begins, and after a reset."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self._env = env
        self._answers: Ints = np.zeros(0, dtype=np.int64)  # of each row
        self._known: Bools = np.zeros(0, dtype=np.bool_)  # which of them stand

    def _ask(self, observation: Observation, shape: tuple[int, ...], name: str, steps: int) -> Ints:
        """Return the answers of a method of the environment, of the given shape; not to be kept."""
        new = observation["pulls"].sum(axis=1) == 0
        if self._answers.shape != shape:
            self._answers = np.zeros(shape, dtype=np.int64)
            self._known = np.zeros(len(new), dtype=np.bool_)
        new |= ~self._known
        if new.any():
            answers = np.array(call(self._env, name, steps), dtype=np.int64)
            # Rows that play on keep theirs: the instance behind them has not changed.
            self._answers[new] = answers[new]
            self._known[:] = True
        return self._answers

    def _forget(self, mask: Bools | None) -> None:
        if mask is None or len(mask) == len(self._known):
            self._known[slice(None) if mask is None else mask] = False


class OracleArm(_Reader):
    """Pulls the arm that is best for the episode's length throughout: the offline optimum.

    Its policy regret is 0 if arms do not decrease (Patil et al., Appendix B). If arms decrease,
    the optimum may need several of them, and this is only the best policy that stays with one:
    :class:`OracleSchedule` plays the optimum.
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
        super().__init__(env)
        self._length = episode_length(env) if steps is None else checked_int("steps", steps, 0)
        read(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        rows = len(observation["pulls"])
        return self._ask(observation, (rows,), "optimal_arm", self._length).copy()


class OracleSchedule(_Reader):
    """Pulls each arm as often as the best schedule of the episode's length does.

    Its policy regret is 0 on any rested arms, whether they rise or fall; the order of pulls does
    not matter, so it goes through the arms one by one. O(k) per step; the schedule is made once
    per episode, see :func:`gym_fairbandits.optimum.rested_optimum`.
    """

    def __init__(self, env: Any, steps: int | None = None) -> None:
        """Create the oracle.

        Args:
            env: The environment that runs, an ``ImprovingBandit-v0``.
            steps: The number of steps to be best for; the episode's length by default. Beyond
                it the arm of the most pulls is pulled.

        Raises:
            TypeError: If ``env`` is another environment, or ``steps`` is not an integer.
            ValueError: If ``steps`` is negative.
        """
        super().__init__(env)
        self._length = episode_length(env) if steps is None else checked_int("steps", steps, 0)
        read(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        schedule = self._ask(observation, pulls.shape, "optimal_pulls", self._length)
        left = pulls < schedule
        arms: Ints = np.where(left.any(axis=1), left.argmax(axis=1), schedule.argmax(axis=1))
        return arms


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
        read(env, "noise_std")  # only improving arms have it

    def _act(self, observation: Observation) -> Ints:
        rewards = np.array(call(self._env, "next_expected_rewards"), dtype=np.float64)
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
        self._env_capacity = int(read(env, "capacity"))
        self._length = episode_length(env)
        super().__init__()

    def _act(self, observation: Observation) -> Ints:
        num_users = observation["user_reward_sum"].shape[1]
        divides = num_users % self._env_capacity == 0
        self.capacity = self._env_capacity if divides else 1
        return super()._act(observation)

    def _arms_per_step(self, num_users: int) -> int:
        return -(-num_users // self._env_capacity)

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        slots = np.array(call(self._env, "optimal_slots", self._length), dtype=np.int64)[rows]
        return slots[:, :: self.capacity]


class StaticOracle(_Reader):
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
        super().__init__(env)
        self._length = episode_length(env)
        read(env, "num_users")  # only assignments have it

    def _act(self, observation: Observation) -> Ints:
        shape = observation["user_reward_sum"].shape
        return self._ask(observation, shape, "optimal_slots", self._length).copy()
