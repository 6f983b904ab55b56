"""Policies for improving arms that try them in random order: Blum, Ravichandran and others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int

from .base import (
    TIE_TOLERANCE,
    Observation,
    argmax_fewest_pulls,
    checked_horizon,
    total_steps,
)
from .history import HistoryAgent

__all__ = ["HybridRising", "RandomRoundRobin", "rise_at_most"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def rise_at_most(observation: Observation) -> Floats:
    """Return the last increment of every arm; before the second pull, what f(0) >= 0 allows."""
    pulls = observation["pulls"]
    rise: Floats = np.where(pulls < 2, observation["last_reward"], observation["last_increment"])
    return rise


class RandomRoundRobin(HistoryAgent):
    """Arms in random order, each while it keeps up with a line: Blum and Ravichandran (2025).

    Arm after arm is pulled as long as its n-th pull pays f(n) >= m (n / tau)^alpha, at least once;
    an abandoned arm is not tried again before all are (then the one with the best last reward is
    pulled; the paper is silent). Rewards are taken as exact. alpha = 1 is the algorithm of 2025;
    PTRR_alpha (Blum et al., 2025, arXiv 2511.10619) has any alpha. O(1) per step, beyond
    reading the observation.

    What is given decides the mode:

    - ``optimum``: m is known, the reward of the best arm at pull tau: the agent is told what no
      other is. Without ``tau``, tau is T - k. (m = f*(T) goes with tau = T: told f*(T) for
      T - k, it abandons a linear best arm after one pull.) O(sqrt(k)) of the optimum; with
      f(n) >= f(T) (n/T)^beta and alpha = beta, O(k^(beta / (1 + beta))).
    - no ``optimum``, T known (``remaining`` or ``horizon``): in half of the steps each arm is
      pulled T / (2k) times, at least once. Then f*(T) lies between L = max f / 2 and
      U = max [f + rise (T - pulls)]; m is L 2^j, j uniformly random among those in [L, U] (the
      paper leaves the guess open), and tau is T. O(sqrt(k) log k).
    - neither: the same for T = 4k, then 8k, 16k, ... steps, each time afresh and without what
      earlier pulls told, with 4 U for U. It never reads a horizon. Expected reward at least
      OPT / (8192 sqrt(k) log 128 k) for T > 4k.

    Attributes:
        optimum: m, at least 0; ``None`` if unknown.
        horizon: T, where the observation has no ``remaining``.
        tau: The pull at which the best arm pays ``optimum``; T - k by default.
        alpha: Exponent of the line; 1 by default.
    """

    def __init__(
        self,
        optimum: float | None = None,
        horizon: int | None = None,
        tau: int | None = None,
        alpha: float = 1.0,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule, or ``tau`` comes without ``optimum``.
        """
        super().__init__()
        self.optimum = None if optimum is None else checked_float("optimum", optimum, at_least=0)
        self.horizon = checked_horizon(horizon)
        self.tau = None if tau is None else checked_int("tau", tau)
        if tau is not None and optimum is None:
            raise ValueError(f"`tau` must come with the `optimum` that it belongs to, got {tau}")
        self.alpha = checked_float("alpha", alpha, above=0)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._started: Ints = np.zeros(rows, dtype=np.int64)  # the step at which the run began
        self._length: Ints = np.zeros(rows, dtype=np.int64)  # its number of steps; 0: none yet
        self._before: Ints = np.zeros((rows, num_arms), dtype=np.int64)  # pulls before it
        self._explore: Ints = np.zeros(rows, dtype=np.int64)  # pulls of each arm that come first
        # The order of arms, ended by -1, and the place in it; no order yet: it begins with -1.
        self._order: Ints = np.full((rows, num_arms + 1), -1, dtype=np.int64)
        self._place: Ints = np.zeros(rows, dtype=np.int64)
        self._line: Floats = np.zeros(rows)  # m / tau^alpha

    def _clear(self, rows: Ints) -> None:
        self._length[rows], self._order[rows] = 0, -1

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        """Learn nothing: the observation says it all."""

    def _choose(self, observation: Observation) -> Ints:
        return self._in_order(observation, np.ones(len(observation["pulls"]), dtype=np.bool_))

    def _in_order(self, observation: Observation, active: Bools) -> Ints:
        """Return the arms of the ``active`` rows, and anything for the others."""
        pulls = observation["pulls"]
        steps = pulls.sum(axis=1)
        if self.optimum is not None:
            self._begin_with_optimum(observation, steps, self.optimum)
        else:
            self._begin_without_optimum(observation, steps)
        own = pulls - self._before
        exploring = own.min(axis=1) < self._explore
        for row in np.flatnonzero(active & ~exploring & (self._order[:, 0] < 0)).tolist():
            if self.optimum is None:
                self._guess(row, {name: values[row] for name, values in observation.items()})
            self._order[row, :-1] = self._generator(row).permutation(pulls.shape[1])
            self._place[row] = 0
        arms = self._advance(own, observation["last_reward"], active)
        spare = argmax_fewest_pulls(observation["last_reward"], pulls)
        return np.where(exploring, own.argmin(axis=1), np.where(arms < 0, spare, arms))

    def _begin_with_optimum(self, observation: Observation, steps: Ints, optimum: float) -> None:
        new = self._length == 0
        if not new.any():
            return
        tau: Ints | int
        if self.tau is not None:
            tau = self.tau
        else:
            length = total_steps(observation, steps, self.horizon)
            tau = np.maximum(length - observation["pulls"].shape[1], 1)[new]
        self._started[new], self._before[new], self._explore[new] = 0, 0, 0
        self._length[new] = np.iinfo(np.int64).max
        self._line[new] = optimum / np.power(tau, self.alpha, dtype=np.float64)

    def _begin_without_optimum(self, observation: Observation, steps: Ints) -> None:
        pulls = observation["pulls"]
        new = (self._length == 0) | (steps - self._started >= self._length)
        if not new.any():
            return
        num_arms = pulls.shape[1]
        if self._knows_horizon(observation):
            new = self._length == 0  # one run is all
            started, length = np.zeros_like(steps), total_steps(observation, steps, self.horizon)
        else:
            runs_over = np.frexp(steps // (4 * num_arms) + 1)[1].astype(np.int64) - 1
            length = (4 * num_arms) << runs_over  # after runs of 4k (1 + 2 + ... ) steps
            started = length - 4 * num_arms
        before = np.where((started == steps)[:, None], pulls, 0)
        self._started[new], self._length[new] = started[new], length[new]
        self._before[new] = before[new]
        self._explore[new] = np.maximum(1, length[new] // (2 * num_arms))
        self._order[new] = -1

    def _knows_horizon(self, observation: Observation) -> bool:
        return "remaining" in observation or self.horizon is not None

    def _guess(self, row: int, observation: Observation) -> None:
        """Guess the best arm's last reward between what the pulls so far say it must be."""
        explored, length = float(self._explore[row]), float(self._length[row])
        last = observation["last_reward"]
        low = max(0.0, float(last.max()) / 2)
        high = float((last + rise_at_most(observation) * (length - explored)).max())
        if not self._knows_horizon(observation):
            high *= 4
        doublings = math.floor(math.log2(high) - math.log2(low) + 1e-9) if high > low > 0 else 0
        guess = low * 2.0 ** int(self._generator(row).integers(doublings + 1))
        self._line[row] = guess / length**self.alpha

    def _advance(self, own: Ints, last_reward: Floats, active: Bools) -> Ints:
        """Leave the arms that fell behind the line; return each row's arm, -1 if none is left."""
        rows = np.arange(len(own))
        while True:
            arms: Ints = self._order[rows, self._place]
            pulls, last = own[rows, arms], last_reward[rows, arms]
            line = self._line * pulls.astype(np.float64) ** self.alpha
            # A linear arm lies on the line itself: rounding must not make it fall behind.
            behind = (pulls > 0) & (last < line - TIE_TOLERANCE * np.maximum(1.0, line))
            behind &= active & (arms >= 0)
            if not behind.any():
                return arms
            self._place += behind


class HybridRising(RandomRoundRobin):
    """Hybrid_(alpha, B): finds the best arm if that is easy, else plays PTRR_alpha.

    From the work of Blum et al. (2025, arXiv 2511.10619). Knows the horizon T, and the
    optimum's value. Each arm is pulled once; then the arm with the highest U_i = f + (T - n) rise,
    the most that its reward can become (f its last reward, n its pulls; the rise at n = 1 is f
    itself). As soon as one arm's f is at least every other U_j it is the best at the end, and is
    pulled for ever. If that has not happened after B steps, :class:`RandomRoundRobin` takes over,
    counting the pulls so far. Ties go to the fewest pulls, then the lowest index. O(k) per step.

    Guarantee (reported): the best arm on instances where it can be told within B steps, and the
    ratio of PTRR_alpha on all others, from what is left of the steps.

    Attributes:
        budget: B, at least 0; half of the horizon by default (it is meant to be tuned on data).
        optimum: As for :class:`RandomRoundRobin`.
        horizon: As there.
        tau: As there.
        alpha: As there.
    """

    def __init__(
        self,
        optimum: float,
        budget: int | None = None,
        horizon: int | None = None,
        tau: int | None = None,
        alpha: float = 1.0,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(checked_float("optimum", optimum, at_least=0), horizon, tau, alpha)
        self.budget = None if budget is None else checked_int("budget", budget, minimum=0)

    def _allocate(self, rows: int, num_arms: int) -> None:
        super()._allocate(rows, num_arms)
        self._best: Ints = np.full(rows, -1, dtype=np.int64)  # the arm that was found best

    def _clear(self, rows: Ints) -> None:
        super()._clear(rows)
        self._best[rows] = -1

    def _choose(self, observation: Observation) -> Ints:
        pulls, last = observation["pulls"], observation["last_reward"]
        steps = pulls.sum(axis=1)
        length = total_steps(observation, steps, self.horizon)
        budget = length // 2 if self.budget is None else self.budget
        to_come = (length[:, None] - pulls).astype(np.float64)
        at_most = last + to_come * np.maximum(rise_at_most(observation), 0.0)
        found = self._certain(pulls, last, at_most)
        self._best = np.where((self._best < 0) & (steps <= budget), found, self._best)
        arms = np.where(
            pulls.min(axis=1) < 1, pulls.argmin(axis=1), argmax_fewest_pulls(at_most, pulls)
        )
        arms = np.where(self._best >= 0, self._best, arms)
        given_up = (self._best < 0) & (steps >= budget)
        if given_up.any():
            arms = np.where(given_up, self._in_order(observation, given_up), arms)
        return arms

    @staticmethod
    def _certain(pulls: Ints, last: Floats, at_most: Floats) -> Ints:
        """Return the arm whose reward no other arm's can surpass, -1 if there is none."""
        first = at_most.argmax(axis=1)[:, None] == np.arange(pulls.shape[1])
        second = np.where(first, -np.inf, at_most).max(axis=1, keepdims=True)
        others = np.where(first, second, at_most.max(axis=1, keepdims=True))
        certain = (last >= others - TIE_TOLERANCE) & (pulls.min(axis=1, keepdims=True) > 0)
        return np.where(certain.any(axis=1), certain.argmax(axis=1), -1)
