"""Policies for arms that rise and then may fall: optimism of Lindner, Heidari, Krause (2021)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from gym_fairbandits._checks import checked_choice, checked_float

from .base import (
    TIE_TOLERANCE,
    Observation,
    argmax_fewest_pulls,
    checked_horizon,
    total_steps,
)
from .history import HistoryAgent, RewardLog
from .improving import future_reward

__all__ = ["AnytimeSinglePeaked", "SinglePeakedOptimism", "doubled_length", "noisy_future_reward"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def noisy_future_reward(lower: Floats, upper: Floats, steps: int) -> float | None:
    """Return ``future_reward`` where past rewards are only known up to intervals.

    It is the value of the linear program of Lindner et al. (2021): the largest sum of the next M
    values of a nondecreasing, concave sequence in [0, 1] whose first N values lie in the
    intervals. Past v_N, the best continuation is min(1, v_N + d j) with d = v_N - v_(N-1), whose
    sum is the least of ``s v_N + d s (s + 1) / 2 + (M - s)`` over s = 0..M; so N + 1 variables
    are enough.

    Args:
        lower: Lower ends, float64 array of shape ``(N,)``.
        upper: Upper ends, in the same shape.
        steps: M, at least 0.

    Returns:
        The value, or ``None`` if there is no such sequence: then the arm has begun to fall.
    """
    known = len(lower)
    low, high = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    if (low > high).any():
        return None
    if known < 2:
        return float(steps)  # it may reach 1 with the next pull
    # Variables: v_1..v_N and the sum z. Rows: concavity, the last rise, and a bound on z per s.
    bend = np.arange(known - 2)
    cut = np.arange(steps + 1)
    quadratic = cut * (cut + 1) / 2
    first_cut = known - 1
    entries: list[tuple[Any, Any, Any]] = [
        (bend, bend, 1.0),  # v_n - 2 v_(n+1) + v_(n+2) <= 0
        (bend, bend + 1, -2.0),
        (bend, bend + 2, 1.0),
        ([known - 2], [known - 2], 1.0),  # v_(N-1) - v_N <= 0
        ([known - 2], [known - 1], -1.0),
        (first_cut + cut, [known] * len(cut), 1.0),  # z - s v_N - d s (s + 1) / 2 <= M - s
        (first_cut + cut, [known - 1] * len(cut), -cut - quadratic),
        (first_cut + cut, [known - 2] * len(cut), quadratic),
    ]
    data = np.concatenate([np.broadcast_to(value, len(row)) for row, _, value in entries])
    places = tuple(np.concatenate([entry[axis] for entry in entries]) for axis in (0, 1))
    limits = np.concatenate((np.zeros(known - 1), steps - cut.astype(np.float64)))
    matrix: Any = coo_array((data, places), shape=(len(limits), known + 1)).tocsr()
    bounds: Any = np.column_stack((np.append(low, 0.0), np.append(high, float(steps))))
    least = np.append(np.zeros(known), -1.0)
    solved = linprog(least, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
    return -float(solved.fun) if solved.fun is not None else None


def doubled_length(first: int, steps: Ints) -> Ints:
    """Return the least of ``first``, ``2 first``, ``4 first``, ... that is above ``steps``."""
    times = np.frexp(steps // first)[1].astype(np.int64)
    length: Ints = first << times
    return length


class _SinglePeaked(HistoryAgent):
    """Optimism for single-peaked arms, for a length of the episode that subclasses give."""

    def __init__(self, refresh: str, noise_std: float) -> None:
        super().__init__()
        self.refresh = checked_choice("refresh", refresh, ("all", "pulled"))
        self.noise_std = checked_float("noise_std", noise_std, at_least=0)

    @abstractmethod
    def _length(self, observation: Observation, steps: Ints) -> Ints:
        """Return the T of each row; int64 array of shape ``(n,)``."""

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._bounds: Floats = np.zeros((rows, num_arms))
        self._stale: Bools = np.ones((rows, num_arms), dtype=np.bool_)  # the bound must be renewed
        self._falling: Bools = np.zeros((rows, num_arms), dtype=np.bool_)
        self._for_length: Ints = np.zeros(rows, dtype=np.int64)  # the T that the bounds are for
        self._log = RewardLog(rows if self.noise_std else 0, num_arms)

    def _clear(self, rows: Ints) -> None:
        self._stale[rows], self._falling[rows], self._for_length[rows] = True, False, 0
        if self.noise_std:
            self._log.clear(rows)

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        self._stale[rows, arms] = True
        if self.noise_std:
            self._log.append(rows, arms, rewards)

    def _choose(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        steps = pulls.sum(axis=1)
        length = self._length(observation, steps)
        first = np.maximum(2, np.floor(np.log(length)).astype(np.int64))
        sweeping = pulls.min(axis=1) < first
        self._stale[sweeping | (self._for_length != length)] = True
        self._for_length = length
        if not sweeping.all():
            self._renew(observation, length - steps, np.flatnonzero(~sweeping))
        return np.where(sweeping, pulls.argmin(axis=1), argmax_fewest_pulls(self._bounds, pulls))

    def _renew(self, observation: Observation, to_come: Ints, rows: Ints) -> None:
        """Renew the bounds of ``rows``: of all arms, or of the stale ones."""
        if self.noise_std:
            for row in rows.tolist():
                self._renew_noisy(row, int(to_come[row]))
            return
        last, rise = observation["last_reward"][rows], observation["last_increment"][rows]
        future = future_reward(last, rise, to_come[rows, None].astype(np.float64))
        kept = self._bounds[rows]
        stale = self._stale[rows] if self.refresh == "pulled" else np.True_
        self._bounds[rows] = np.where(stale, future, kept)
        self._stale[rows] = False

    def _renew_noisy(self, row: int, to_come: int) -> None:
        bounds, stale = self._bounds[row], self._stale[row].copy()
        self._stale[row] = False
        for arm in np.flatnonzero(stale).tolist():
            bounds[arm] = self._noisy_bound(row, arm, to_come)
        if self.refresh == "pulled":
            return
        # Bounds of arms that were not pulled can only have sunk: there are fewer pulls to come.
        # So an old bound below the best new one need not be renewed. Falling arms cost nothing.
        for arm in np.flatnonzero(self._falling[row] & ~stale).tolist():
            bounds[arm] = self._noisy_bound(row, arm, to_come)
        old = ~(stale | self._falling[row])
        while old.any():
            best = np.where(old, -np.inf, bounds).max()
            arm = int(np.where(old, bounds, -np.inf).argmax())
            if bounds[arm] < best - 2 * TIE_TOLERANCE * max(1.0, abs(best)):
                return
            bounds[arm] = self._noisy_bound(row, arm, to_come)
            old[arm] = False

    def _noisy_bound(self, row: int, arm: int, to_come: int) -> float:
        rewards, width = self._log.of(row, arm), 2 * self.noise_std
        if not self._falling[row, arm]:
            future = noisy_future_reward(rewards - width, rewards + width, to_come)
            if future is not None:
                return future
            self._falling[row, arm] = True  # for good: more rewards do not mend it
        return float(to_come * (rewards[-1] + width))


class SinglePeakedOptimism(_SinglePeaked):
    """SPO of Lindner, Heidari, Krause (2021), for arms that rise concavely and then may fall.

    Knows the horizon T, and the noise if it is told. Each arm is pulled max(2, floor(ln T)) times
    in sweeps; then the arm with the highest b_i, the most that arm i can pay in all T - t steps
    left if it is still rising (``improving.future_reward``). Ties go to the fewest pulls, then
    the lowest index. O(k) per step.

    With noise, b_i is the optimum of a linear program over all sequences within two standard
    deviations of what was seen (:func:`noisy_future_reward`); if there is none, the arm has
    passed its peak and b_i = (T - t) (last reward + two standard deviations). So it is taken to
    be bounded: of Gaussian noise one reward in 22 lies outside, and arms pulled often soon count
    as falling. One or a few programs of N + T - t rows per step, N the arm's pulls: tens of
    milliseconds each.

    Guarantee (their abstract): sublinear policy regret for long horizons.

    Attributes:
        refresh: ``"all"`` renews every arm's b_i at every step, as the paper describes it;
            ``"pulled"`` only that of the arm just pulled, as the authors' code does.
        noise_std: Standard deviation of the rewards' noise; 0 for exact rewards.
        horizon: T, where the observation has no ``remaining``.
    """

    def __init__(
        self, refresh: str = "all", noise_std: float = 0.0, horizon: int | None = None
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(refresh, noise_std)
        self.horizon = checked_horizon(horizon)

    def _length(self, observation: Observation, steps: Ints) -> Ints:
        return total_steps(observation, steps, self.horizon)


class AnytimeSinglePeaked(_SinglePeaked):
    """SPO for a horizon that doubles: a heuristic without guarantee.

    Patil et al. name anytime policies for single-peaked arms as future work; none is published
    with a guarantee. This one plays as :class:`SinglePeakedOptimism` would if the episode had 4k
    steps, then 8k, 16k, ... whenever they are over, and keeps all that it has seen. It never reads
    the horizon. Costs are the same.

    Attributes:
        refresh: As there.
        noise_std: As there.
    """

    def __init__(self, refresh: str = "all", noise_std: float = 0.0) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(refresh, noise_std)

    def _length(self, observation: Observation, steps: Ints) -> Ints:
        length: Ints = doubled_length(4 * observation["pulls"].shape[1], steps)
        return length
