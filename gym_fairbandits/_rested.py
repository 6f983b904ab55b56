"""The best way to share pulls among rested arms of any form.

What arm i pays depends only on how often it was pulled, so a schedule is worth
``Rew_1(n_1) + ... + Rew_k(n_k)``, whatever its order, and the question is how to choose the n_i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.curves import Curve

__all__ = ["MOST_SUMS", "MOST_VALUES", "best_allocation"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_VALUES = 2**24  # rewards looked at: arms times steps
MOST_SUMS = 2**31  # sums looked at by the dynamic program: seconds
_ROUNDING = 1e-12  # how far rounding may carry a reward past the one before

# One arm, or several that are merged: the best total of each number of pulls, from 0, and how
# these are shared.
_Group = tuple[Floats, Callable[[int], Ints]]


def best_allocation(curves: Sequence[Curve], steps: int) -> Ints:
    """Return how often each arm is pulled in the best schedule of ``steps`` steps.

    The cheapest exact method for what is there, and the latest answers are remembered:

    - Arms that never rise are merged into one: the n highest of all their rewards, which come in
      each arm's own order.
    - Of arms that never fall only one is pulled: a sum of convex functions is highest at an end.
      So they too are one arm, that of the highest totals.
    - These two, and every other arm, are joined by dynamic programming,
      ``V_j(t) = max_n V_(j-1)(t - n) + Rew_j(n)``; the last needs t = T only. With two of them
      that is O(k T), with m it takes (m - 2) T^2 / 2 sums.

    Args:
        curves: The arms, at least one.
        steps: T, at least 0.

    Returns:
        A fresh int64 array of shape ``(k,)`` with sum T. Among equally good schedules it is
        always the same one.

    Raises:
        ValueError: If that takes more than ``MOST_VALUES`` rewards or ``MOST_SUMS`` sums.
    """
    arms = tuple(curves)
    try:
        return _remembered(arms, steps).copy()
    except TypeError:  # a user's curve without a hash
        return _solved(arms, steps)


def _solved(curves: tuple[Curve, ...], steps: int) -> Ints:
    if len(curves) * steps > MOST_VALUES:
        raise ValueError(
            f"`steps` must be at most {MOST_VALUES // len(curves)} for {len(curves)} arms some of "
            f"which decrease, got {steps}"
        )
    pulls = np.arange(1, steps + 1, dtype=np.float64)
    groups = _groups(np.array([curve.evaluate(pulls) for curve in curves]))
    sums = max(len(groups) - 2, 0) * steps * (steps + 1) // 2
    if sums > MOST_SUMS:
        raise ValueError(
            f"`steps` must be smaller for {len(groups)} arms that rise and fall: the exact "
            f"optimum takes {sums} sums, at most {MOST_SUMS}, got {steps}"
        )
    return _shared(groups, steps)


# The same instance is asked about at the end of every episode.
_remembered = lru_cache(maxsize=64)(_solved)


def _groups(values: Floats) -> list[_Group]:
    """Return the arms of the dynamic program.

    Args:
        values: The rewards of pulls 1, 2, ... of each arm; shape ``(num_arms, steps)``.
    """
    num_arms, steps = values.shape
    falling = (values <= np.minimum.accumulate(values, axis=1) + _ROUNDING).all(axis=1)
    rising = ~falling & (values >= np.maximum.accumulate(values, axis=1) - _ROUNDING).all(axis=1)
    totals = np.zeros((num_arms, steps + 1))
    np.cumsum(values, axis=1, out=totals[:, 1:])

    def one_arm(arm: int) -> _Group:
        return totals[arm], lambda count: _pulls_of(arm, count, num_arms)

    groups = [one_arm(arm) for arm in np.flatnonzero(~falling & ~rising).tolist()]
    if falling.any():
        arms = np.flatnonzero(falling)
        merged = values[arms].ravel()
        order = np.argsort(-merged, kind="stable")[:steps]
        owners = arms[order // max(steps, 1)]
        highest = np.concatenate(([0.0], np.cumsum(merged[order])))
        groups.append((highest, lambda count: np.bincount(owners[:count], minlength=num_arms)))
    if rising.any():
        arms_up = np.flatnonzero(rising)
        best = totals[arms_up].argmax(axis=0)
        groups.append(
            (
                totals[arms_up[best], np.arange(steps + 1)],
                lambda count: _pulls_of(int(arms_up[best[count]]), count, num_arms),
            )
        )
    return groups


def _pulls_of(arm: int, count: int, num_arms: int) -> Ints:
    pulls = np.zeros(num_arms, dtype=np.int64)
    pulls[arm] = count
    return pulls


def _shared(groups: list[_Group], steps: int) -> Ints:
    """Return the pulls of the best way to share ``steps`` among ``groups``."""
    totals, choices = groups[0][0], []
    for sums, _ in groups[1:-1]:
        totals, choice = _max_plus(totals, sums)
        choices.append(choice)
    counts = []
    left = steps
    if len(groups) > 1:
        counts.append(int((totals[::-1] + groups[-1][0]).argmax()))
        left -= counts[-1]
    for choice in reversed(choices):
        counts.append(int(choice[left]))
        left -= counts[-1]
    counts.append(left)
    pulls = sum(share(count) for (_, share), count in zip(groups, reversed(counts), strict=True))
    return np.asarray(pulls, dtype=np.int64)


def _max_plus(first: Floats, second: Floats) -> tuple[Floats, Ints]:
    """Return ``max_n first[t - n] + second[n]`` for every t, and the lowest such n."""
    best = first + second[0]
    choice = np.zeros(len(first), dtype=np.int64)
    for count in range(1, len(first)):
        candidates = first[:-count] + second[count]
        reached = best[count:]
        better = candidates > reached
        np.copyto(choice[count:], count, where=better)
        np.copyto(reached, candidates, where=better)
    return best, choice
