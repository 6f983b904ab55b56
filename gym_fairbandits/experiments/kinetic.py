"""Algorithm 1 of Patil et al. for many arms: each pull looks only at arms that may be the best.

The agent :class:`gym_fairbandits.agents.AnytimeImproving` looks at all k arms in every step. Here
the same arms are pulled in the same order, but an arm that lies behind is put aside until it could
catch up. With N* the most pulls of any arm, the optimistic estimate of an arm that is not pulled is
a quadratic in N* with known coefficients, while the highest estimate grows at least linearly: the
arm that was pulled last as the leader, with total R and last reward f, has at least R + x f when N*
has grown by x, as rewards never decrease. Where the quadratic meets the line, the arm is looked at
again.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.agents.base import TIE_TOLERANCE
from gym_fairbandits.curves import Curve

__all__ = ["anytime_improving"]

Ints = NDArray[np.int64]

# Relative allowance for rounding in totals: who is nearer than this is looked at in any case.
SLACK = 1e-9
NEVER = sys.maxsize
SHORTEST_LOOK, LONGEST_LOOK = 16, 1024  # rewards of one arm that are evaluated together
FIRST_LOOK = 2**21  # and of all arms at first, where that leaves room for SHORTEST_LOOK


def anytime_improving(
    curves: Sequence[Curve], horizon: int, tolerance: float = TIE_TOLERANCE
) -> Ints:
    """Return the arms that Algorithm 1 pulls, those of ``AnytimeImproving`` without noise.

    O(log k) per pull, but for arms that are looked at in vain; O(T + k) memory.

    Args:
        curves: The k arms; they must not decrease.
        horizon: T, the number of pulls.
        tolerance: As of :class:`gym_fairbandits.agents.AnytimeImproving`, below 1.

    Returns:
        int64 array of shape ``(horizon,)``.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If there is no curve, one decreases or is negative, ``horizon`` is below 1, or
            ``tolerance`` is not in [0, 1).

    Example:
        >>> from gym_fairbandits.curves import Constant, LinearCap
        >>> anytime_improving([Constant(0.3), LinearCap(1.0, 10)], 8).tolist()
        [0, 1, 0, 1, 0, 0, 0, 1]
    """
    horizon = checked_int("horizon", horizon)
    tolerance = checked_float("tolerance", tolerance, at_least=0)
    if not tolerance < 1:
        raise ValueError(f"`tolerance` must be below 1, got {tolerance}")
    arms = _Arms(curves, horizon)
    return np.array(_sequence(arms, horizon, tolerance), dtype=np.int64)


class _Arms:
    """What is known of each arm, as an observation has it.

    Attributes:
        pulls: N.
        totals: Rew(N), added up reward by reward.
        last: f(N).
        rises: f(N) - f(N - 1), 0 before the second pull.
    """

    def __init__(self, curves: Sequence[Curve], horizon: int) -> None:
        if not curves:
            raise ValueError("`curves` must hold at least one curve, got none")
        for arm, curve in enumerate(curves):
            if not isinstance(curve, Curve):
                raise TypeError(f"arm {arm} must be a `Curve`, got {curve!r}")
        count = len(curves)
        self._grid = CurveGrid(1, count)
        self._grid.set_rows(np.array([0]), curves)
        self._look = min(LONGEST_LOOK, max(SHORTEST_LOOK, FIRST_LOOK // count))
        numbers = np.arange(1, self._look + 1, dtype=np.float64)
        rewards = self._grid.values(np.arange(count), np.tile(numbers, (count, 1)))
        if not (rewards[:, 0] >= 0).all():
            raise ValueError("`curves` must not be negative")
        if not self._grid.nondecreasing(np.array([horizon])):
            raise ValueError("`curves` must not decrease")
        # Arrays of numbers, not lists of objects all over the memory; NumPy's would be slow to
        # read one by one.
        self._ahead = array("d", rewards.tobytes())
        self.pulls = array("q", bytes(8 * count))
        self.totals, self.last, self.rises = (array("d", bytes(8 * count)) for _ in range(3))

    def pull(self, arm: int) -> None:
        """Pull an arm."""
        count = self.pulls[arm]
        place = count % self._look
        if place == 0 and count:
            self._look_ahead(arm, count)
        reward = self._ahead[arm * self._look + place]
        if count:
            self.rises[arm] = reward - self.last[arm]
        self.last[arm] = reward
        self.totals[arm] += reward
        self.pulls[arm] = count + 1

    def _look_ahead(self, arm: int, count: int) -> None:
        """Evaluate the next rewards of an arm."""
        numbers = np.arange(count + 1, count + self._look + 1, dtype=np.float64)
        rewards = self._grid.values(np.array([arm]), numbers[None])
        self._ahead[arm * self._look : (arm + 1) * self._look] = array("d", rewards.tobytes())

    def estimate(self, arm: int, level: int) -> float:
        """Return p, the optimistic estimate of an arm, where N* is ``level``.

        :func:`gym_fairbandits.agents.improving.optimistic_estimate` of one arm, in the same
        operations.
        """
        behind = float(level - self.pulls[arm])
        rise = self.rises[arm] * (behind * (behind + 1) / 2)
        return self.totals[arm] + behind * self.last[arm] + rise


def _sequence(arms: _Arms, horizon: int, tolerance: float) -> list[int]:
    """Return the arms pulled in ``horizon`` pulls."""
    count = len(arms.pulls)
    sequence = [arm for _ in range(2) for arm in range(count)][:horizon]
    for arm in sequence:
        arms.pull(arm)
    if len(sequence) == horizon:
        return sequence
    level = 2  # N*, the most pulls of any arm
    leader = max(range(count), key=arms.totals.__getitem__)
    arrivals = list(range(count))  # who must be looked at
    due: dict[int, list[int]] = {}  # and who at a later level
    while True:
        candidates = _candidates(arms, arrivals, leader, level, tolerance, due, horizon)
        arrivals = [arm for _, arm in candidates]
        if len(candidates) > 1:
            leader = _play_level(arms, candidates, level, tolerance, sequence, horizon)
            level += 1
        else:  # nobody else until the next level at which someone is due
            (leader,) = arrivals
            while len(sequence) < horizon:
                sequence.append(leader)
                arms.pull(leader)
                level += 1
                if level in due:
                    break
        if len(sequence) == horizon:
            return sequence
        arrivals += due.pop(level, [])


def _candidates(
    arms: _Arms,
    arrivals: list[int],
    leader: int,
    level: int,
    tolerance: float,
    due: dict[int, list[int]],
    horizon: int,
) -> list[tuple[float, int]]:
    """Return those arrivals that may tie with the best at ``level``; put the others off.

    Each with its estimate, negated. The leader, who has the most pulls, is always one.
    """
    # The best is at least R + x f after x levels; less is needed to tie with it.
    kept, lost = 1 - tolerance - SLACK, tolerance + SLACK
    least, growth = kept * arms.totals[leader] - lost, kept * arms.last[leader]
    pulls, last, rises, estimate = arms.pulls, arms.last, arms.rises, arms.estimate
    longest = horizon - level  # there are no more levels than pulls
    candidates = []
    for arm in arrivals:
        score = estimate(arm, level)
        if score >= least:
            candidates.append((-score, arm))
            continue
        rise = rises[arm]
        slope = growth - last[arm] - rise * (level - pulls[arm])
        wait = _levels_until(least - score, slope, rise)
        if wait < longest:
            due.setdefault(level + wait, []).append(arm)
    return candidates


def _levels_until(deficit: float, slope: float, rise: float) -> int:
    """Return the least x >= 1 where ``deficit + slope x - rise x (x + 1) / 2`` may be <= 0.

    An arm must be looked at too early rather than too late. NEVER if never.
    """
    if rise > 0:
        linear = rise / 2 - slope
        root = math.sqrt(linear * linear + 2 * rise * deficit)
        # Each form where its terms do not cancel.
        wait = (root - linear) / rise if linear < 0 else 2 * deficit / (linear + root)
    elif slope < 0:
        wait = deficit / -slope
    else:
        return NEVER
    return max(1, math.ceil(wait * (1 - SLACK))) if wait < NEVER else NEVER


def _play_level(
    arms: _Arms,
    candidates: list[tuple[float, int]],
    level: int,
    tolerance: float,
    sequence: list[int],
    horizon: int,
) -> int:
    """Pull the best arms until one has ``level + 1`` pulls; return the arm pulled last.

    ``candidates`` becomes the heap of those that do not tie with the best; those that do are
    ordered by pulls and number, and once more by estimate, to know the best.
    """
    pulls = arms.pulls
    scores = {arm: -negated for negated, arm in candidates}
    waiting = candidates
    heapify(waiting)
    tied: list[tuple[int, int]] = []
    tops: list[tuple[float, int]] = []  # of those tied; may hold estimates of the past
    while True:
        top = -waiting[0][0] if waiting else -math.inf
        if tied:
            while -tops[0][0] != scores[tops[0][1]]:
                heappop(tops)
            top = max(top, -tops[0][0])
        least = top - tolerance * max(1.0, abs(top))
        while waiting and -waiting[0][0] >= least:
            entry = heappop(waiting)
            heappush(tops, entry)
            heappush(tied, (pulls[entry[1]], entry[1]))
        arm = tied[0][1]
        score = scores[arm]
        if score >= least:  # else the best has risen since, if only by rounding
            leads = pulls[arm] == level
            arms.pull(arm)
            sequence.append(arm)
            if leads or len(sequence) == horizon:
                return arm
            score = arms.estimate(arm, level)
        if score >= least:
            heapreplace(tied, (pulls[arm], arm))
            if score != scores[arm]:
                heappush(tops, (-score, arm))
        else:
            heappop(tied)
            heappush(waiting, (-score, arm))
            if not tied:
                tops.clear()
        scores[arm] = score
