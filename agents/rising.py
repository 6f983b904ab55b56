"""Policies for noisy rising arms: optimism along the trend, and elimination in windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_bool, checked_float

from .base import Observation, argmax_fewest_pulls
from .history import HistoryAgent, RewardLog

__all__ = ["RCBE", "RisingUCB"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class RisingUCB(HistoryAgent):
    """R-ed-UCB of Metelli et al. (2022), and R-less-UCB: optimism along the recent trend.

    At step t (from 1), arm i with rewards X_1..X_N and the window h = floor(epsilon N) has the
    index ``(1/h) sum of [X_l + (t - l) (X_l - X_(l-h)) / h] over l = N-h+1..N``, plus
    ``sigma (t - N + h - 1) sqrt(10 ln(1 / delta_t) / h^3)`` with delta_t = t^-alpha; infinite if
    h = 0. Ties go to the fewest pulls, then the lowest index. Four running sums make it O(1) per
    arm and step; the rewards are kept.

    Knows the noise (``sigma``), not the horizon. Guarantee: regret O~(T^(2/3)) under conditions on
    the growth of the arms. The index 1 that the authors' code gives to arms with h = 0, and the
    weights of its estimator, differ from the paper; this is the paper's.

    Attributes:
        epsilon: The window's share of the pulls, above 0 and at most 1/2; 1/4 in the paper.
        alpha: Exponent of the confidence; above 2 in the theory, 4 in the authors' code.
        sigma: Scale of the noise; 0.1 in the paper.
        restless: Whether arms rise with time rather than with their pulls (R-less-UCB). With noise
            the paper has the same index for both. If ``sigma`` is 0 it is the index for exact
            rewards, X_N + (t - t_N) (X_N - X_(N-1)) / (t_N - t_(N-1)), with t_N the step of
            pull N, infinite before the second pull; ``epsilon`` and ``alpha`` play no part.
    """

    def __init__(
        self,
        epsilon: float = 0.25,
        alpha: float = 4.0,
        sigma: float = 0.1,
        restless: bool = False,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__()
        self.epsilon = checked_float("epsilon", epsilon, above=0, at_most=0.5)
        self.alpha = checked_float("alpha", alpha, above=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)
        self.restless = checked_bool("restless", restless)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._log = RewardLog(rows, num_arms)
        self._window: Ints = np.zeros((rows, num_arms), dtype=np.int64)  # h
        # Sums over the window's l = N-h+1..N: of X_l, of X_(l-h), of l X_l, of l X_(l-h).
        self._sums: Floats = np.zeros((4, rows, num_arms))
        self._time: Ints = np.zeros(rows, dtype=np.int64)  # steps learned
        self._pulled_at: Ints = np.zeros((2, rows, num_arms), dtype=np.int64)  # t_N, t_(N-1)

    def _clear(self, rows: Ints) -> None:
        self._log.clear(rows)
        self._window[rows], self._sums[:, rows] = 0, 0.0
        self._time[rows], self._pulled_at[:, rows] = 0, 0

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        self._log.append(rows, arms, rewards)
        count = self._log.counts[rows, arms]
        before = self._window[rows, arms]
        window = np.floor(self.epsilon * count).astype(np.int64)
        grown = window > before
        # The window moves by one pull, or grows by one at its new end: what leaves it is X_(N-h),
        # or nothing; what leaves the window before it is X_(N-2h), or X_(N-2h+1) joins at its
        # start while the l of its terms all grow by one.
        newest = rewards
        middle = self._log.at(rows, arms, count - window)
        oldest = self._log.at(rows, arms, np.maximum(count - 2 * window + grown, 1))
        recent, earlier, recent_l, earlier_l = self._sums[:, rows, arms]
        recent = recent + np.where(grown, newest, newest - middle)
        recent_l = recent_l + np.where(
            grown, count * newest, count * newest - (count - window) * middle
        )
        earlier_l = earlier_l + np.where(
            grown,
            earlier + (count - window + 1) * oldest,
            count * middle - (count - window) * oldest,
        )
        earlier = earlier + np.where(grown, oldest, middle - oldest)
        self._sums[:, rows, arms] = recent, earlier, recent_l, earlier_l
        self._window[rows, arms] = window
        self._time[rows] += 1
        self._pulled_at[1, rows, arms] = self._pulled_at[0, rows, arms]
        self._pulled_at[0, rows, arms] = self._time[rows]

    def _choose(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        time = (self._time + 1)[:, None].astype(np.float64)
        exact = self.restless and self.sigma == 0
        unknown = self._log.counts < 2 if exact else self._window == 0
        index = self._exact_index(observation, time) if exact else self._index(time)
        # Where an index is infinite, the arm of the fewest pulls has one.
        return np.where(
            unknown.any(axis=1),
            np.where(unknown, pulls, np.iinfo(np.int64).max).argmin(axis=1),
            argmax_fewest_pulls(np.where(unknown, 0.0, index), pulls),
        )

    def _index(self, time: Floats) -> Floats:
        """Return the index of every arm at step ``time``, any number where it is infinite."""
        window = np.maximum(self._window, 1).astype(np.float64)
        recent, earlier, recent_l, earlier_l = self._sums
        trend = (time * (recent - earlier) - (recent_l - earlier_l)) / window
        estimate = (recent + trend) / window
        spread = np.sqrt(10 * self.alpha * np.log(time) / window**3)
        index: Floats = estimate + self.sigma * (time - self._log.counts + window - 1) * spread
        return index

    def _exact_index(self, observation: Observation, time: Floats) -> Floats:
        latest, previous = self._pulled_at
        apart = np.maximum(latest - previous, 1)
        slope = observation["last_increment"] / apart
        index: Floats = observation["last_reward"] + (time - latest) * slope
        return index


class RCBE(HistoryAgent):
    """RC-BE(alpha) of Migali et al. (2025): elimination in windows, for restless rising arms.

    Window w = 1, 2, ... has D = ceil(w^alpha) steps and begins afresh. In it the arms left are
    pulled in turn, lowest index first; after each round an arm is dropped if what it earned in the
    window is below the best by more than 2 (1 + 2 sigma sqrt(D ln(2 k D))). The end of the window
    may cut a round short. It is made for arms that rise with time whether pulled or not; arms that
    rise with their pulls it plays without a guarantee. O(k) per step.

    Knows the noise (``sigma``), not the horizon. Guarantee (reported): regret O~(T^(7/11)) against
    the best arm at every step, for concave restless arms.

    Attributes:
        alpha: How windows grow, at least 0. The default 8/3 makes T^(3/11) windows, so that errors
            of the square root of each one's length add up to T^(7/11).
        sigma: Scale of the noise, at least 0.
    """

    def __init__(self, alpha: float = 8 / 3, sigma: float = 0.1) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__()
        self.alpha = checked_float("alpha", alpha, at_least=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._window: Ints = np.ones(rows, dtype=np.int64)  # w
        self._played: Ints = np.zeros(rows, dtype=np.int64)  # steps within it
        self._earned: Floats = np.zeros((rows, num_arms))  # within it
        self._left: Bools = np.ones((rows, num_arms), dtype=np.bool_)
        self._waiting: Bools = np.ones((rows, num_arms), dtype=np.bool_)  # in this round

    def _clear(self, rows: Ints) -> None:
        self._window[rows] = 1
        self._begin(rows)

    def _begin(self, rows: Ints) -> None:
        self._played[rows], self._earned[rows] = 0, 0.0
        self._left[rows] = self._waiting[rows] = True

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        self._earned[rows, arms] += rewards
        self._waiting[rows, arms] = False
        self._played[rows] += 1
        # 8^(8/3) is 256, not a little more.
        length = np.ceil(self._window[rows].astype(np.float64) ** self.alpha * (1 - 1e-12))
        over = ~self._waiting[rows].any(axis=1)
        self._eliminate(rows[over], length[over])
        ended = rows[self._played[rows] >= length]
        self._window[ended] += 1
        self._begin(ended)

    def _eliminate(self, rows: Ints, length: Floats) -> None:
        earned, num_arms = self._earned[rows], self._earned.shape[1]
        best = np.where(self._left[rows], earned, -np.inf).max(axis=1, keepdims=True)
        width = 2 * (1 + 2 * self.sigma * np.sqrt(length * np.log(2 * num_arms * length)))
        self._left[rows] &= earned + width[:, None] >= best
        self._waiting[rows] = self._left[rows]

    def _choose(self, observation: Observation) -> Ints:
        arms: Ints = self._waiting.argmax(axis=1)
        return arms
