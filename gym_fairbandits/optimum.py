"""Offline optima: the best expected objective that a policy knowing the instance can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import check_room, checked_array, checked_int, checked_row
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits._max_min import best_counts, starting_counts, worst_total
from gym_fairbandits._rested import best_allocation
from gym_fairbandits.curves import Curve

__all__ = [
    "MaxMinAssignment",
    "best_arms",
    "best_fixed_set_optimum",
    "best_slots",
    "egalitarian_optimum",
    "improving_optimum",
    "max_min_assignment",
    "rested_optima",
    "rested_optimum",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def improving_optimum(curves: Sequence[Curve], steps: int) -> tuple[float, int]:
    """Return the best total of ``steps`` pulls of rested arms that never decrease, and its arm.

    One arm throughout is optimal (Patil et al., Appendix B): let arm i have the highest last
    reward f_i(n_i) of any schedule; every pull of another arm paid at most that, and one more
    pull of i pays at least that. So OPT(T) = max_i Rew_i(T).

    Args:
        curves: The arms.
        steps: T, the number of pulls.

    Returns:
        The optimum, in units of reward, and the lowest index of an arm that reaches it.

    Raises:
        TypeError: If ``steps`` is not an integer.
        ValueError: If there is no curve, ``steps`` is negative, or a curve decreases within
            ``steps`` pulls; :func:`rested_optimum` takes such curves too.
    """
    grid, lengths = _one_row(curves, steps)
    if not grid.nondecreasing(lengths):
        raise ValueError(
            "`curves` must be nondecreasing: the optimum of arms that decrease may need several "
            "of them, see `rested_optimum`"
        )
    values, arms = best_arms(grid, lengths)
    return float(values[0]), int(arms[0])


def rested_optimum(curves: Sequence[Curve], steps: int) -> tuple[float, Ints]:
    """Return the best total of ``steps`` pulls of any rested arms, and the pulls of each.

    Exact, by the cheapest method: for arms that never decrease one arm throughout, in O(k); for
    others see :func:`gym_fairbandits._rested.best_allocation`. The order of the pulls does not
    matter.

    Args:
        curves: The arms.
        steps: T, the number of pulls.

    Returns:
        The optimum, in units of reward, and an int64 array of shape ``(k,)`` with sum T.

    Raises:
        TypeError: If ``steps`` is not an integer.
        ValueError: If there is no curve, ``steps`` is negative, or arms that decrease are too
            many or too long: beyond 2^24 rewards (k T), or, with m arms that both rise and fall
            (all that never rise count as one, and all that never fall), beyond 2^31 sums
            ((m - 2) T^2 / 2; T = 37,000 for five arms).

    Example:
        >>> from gym_fairbandits.curves import Tabulated
        >>> rested_optimum([Tabulated((1.0, 0.5, 0.0)), Tabulated((0.75, 0.25, 0.0))], 3)
        (2.25, array([2, 1]))
    """
    values, pulls = rested_optima(*_one_row(curves, steps))
    return float(values[0]), pulls[0]


def _one_row(curves: Sequence[Curve], steps: int) -> tuple[CurveGrid, Ints]:
    """Return an instance as a batch of one, checked."""
    if not curves:
        raise ValueError("`curves` must hold at least one curve, got none")
    steps = checked_int("steps", steps, minimum=0)
    grid = CurveGrid(1, len(curves))
    grid.set_rows(np.array([0]), curves)
    return grid, np.array([steps], dtype=np.int64)


def rested_optima(grid: CurveGrid, steps: Ints) -> tuple[Floats, Ints]:
    """Return :func:`rested_optimum` of every row of ``grid``.

    Args:
        grid: The instances.
        steps: The number of pulls of each row; int64 array of shape ``(num_rows,)``.

    Returns:
        The optima and the pulls; float64 array of shape ``(num_rows,)`` and int64 array of shape
        ``(num_rows, num_arms)``.

    Raises:
        ValueError: If a row is beyond the sizes of :func:`rested_optimum`.
    """
    values, arms = best_arms(grid, steps)
    pulls = np.zeros((grid.num_rows, grid.num_arms), dtype=np.int64)
    pulls[np.arange(grid.num_rows), arms] = steps
    if not grid.nondecreasing(steps):
        for row in range(grid.num_rows):
            alone, length = grid.rows(np.array([row])), steps[row : row + 1]
            if not alone.nondecreasing(length):
                pulls[row] = best_allocation(alone.row(0), int(length[0]))
                values[row] = alone.sums(pulls[row : row + 1].astype(np.float64)).sum()
    return values, pulls


def best_arms(grid: CurveGrid, steps: Ints) -> tuple[Floats, Ints]:
    """Return the best that one arm throughout can do in every row of ``grid``, and that arm.

    It is :func:`improving_optimum` where arms do not decrease.

    Args:
        grid: The instances.
        steps: The number of pulls of each row; int64 array of shape ``(num_rows,)``.

    Returns:
        The totals and their arms, ties by lowest index; float64 and int64 arrays of shape
        ``(num_rows,)``.

    Raises:
        ValueError: If what an arm pays in that many pulls is NaN or infinite.
    """
    pulls = np.repeat(steps[:, None], grid.num_arms, axis=1).astype(np.float64)
    totals = grid.sums(pulls)
    if not np.isfinite(totals).all():  # not of the package's families, unless sums overflow
        row, arm = np.argwhere(~np.isfinite(totals))[0].tolist()
        raise grid.not_finite(row, arm, f"{totals[row, arm]} in {steps[row]} pulls")
    arms = totals.argmax(axis=1)
    return np.take_along_axis(totals, arms[:, None], axis=1)[:, 0], arms


def egalitarian_optimum(
    means: ArrayLike, num_users: int, steps: int | Ints, capacity: int = 1
) -> float | Floats:
    """Return the benchmark of Lim, Tan, Soh: the worst-off user's total if the best arms rotate.

    T mu* / U, with mu* the sum of the U highest means; with capacity C it is
    ``(T/U) (C (m_1 + ... + m_G) + rho m_(G+1))``, m the means in descending order,
    G = floor(U/C) and rho = U - C G. It is the value of the linear relaxation: exact if the
    rotation completes (U divides T), else at most (1 - 1/U)(m_1 - m_U) above what any schedule
    of T steps gives its worst-off user. It is also T times the users' mean reward under the best
    assignment, the optimum of the utilitarian objective, and there it is exact for every T.

    Args:
        means: Expected rewards; shape ``(..., num_arms)``.
        num_users: U.
        steps: T, at least 0; an int, or an integer array that broadcasts against ``(...)``.
        capacity: C, users per arm and step.

    Returns:
        A float, or a float64 array of shape ``(...)`` if ``means`` has leading axes or ``steps``
        is an array.

    Raises:
        TypeError: If ``means`` holds no real numbers, or another number is not an integer.
        ValueError: If ``num_users`` exceeds ``capacity`` times the number of arms, a number is
            too small, or ``means`` holds NaN or infinity.
    """
    table = checked_array("means", means)
    num_users = checked_int("num_users", num_users)
    capacity = checked_int("capacity", capacity)
    check_room(num_users, table.shape[-1], capacity)
    lengths = np.asarray(steps)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"`steps` must be integers, got {steps!r}")
    if not (lengths >= 0).all():
        raise ValueError(f"`steps` must be at least 0, got {steps!r}")
    slots = best_slots(table, num_users, capacity)
    best = np.take_along_axis(table, slots, axis=-1)
    values = lengths * (best.sum(axis=-1) / num_users)
    return values if np.ndim(values) else float(values)


def best_fixed_set_optimum(totals: ArrayLike, num_users: int, capacity: int = 1) -> float | Floats:
    """Return what each user gets if the best *fixed* set of arms is shared out evenly.

    The benchmark for rewards that change with time: ``(1/U) max_A sum over a in A of X_a`` over
    sets A of U arms, X_a what arm a would have paid in all steps together (at capacity C the
    best arms count C times, as in :func:`egalitarian_optimum`, of which this is the value for
    one step of means X). Users who take the places of A in a uniformly random order at each step
    all get this in expectation. It is *not* the best sequence of sets: a policy that follows the
    changes can exceed it, and its regret is then negative.

    Args:
        totals: X, the column sums of the realised table; shape ``(..., num_arms)``.
        num_users: U.
        capacity: C, users per arm and step.

    Returns:
        A float, or a float64 array of shape ``(...)`` if ``totals`` has leading axes.

    Raises:
        TypeError: If ``totals`` holds no real numbers, or another number is not an integer.
        ValueError: If ``num_users`` exceeds ``capacity`` times the number of arms, a number is
            too small, or ``totals`` holds NaN or infinity.
    """
    return egalitarian_optimum(checked_array("totals", totals), num_users, 1, capacity)


def best_slots(means: Floats, num_users: int, capacity: int) -> Ints:
    """Return an assignment of the highest total mean: the best arm ``capacity`` times, and so on.

    Args:
        means: float64 array of shape ``(..., num_arms)``.
        num_users: U.
        capacity: C.

    Returns:
        Arms in descending order of mean, ties by lowest index; int64 array ``(..., num_users)``.
    """
    order = np.argsort(-means, axis=-1, kind="stable")[..., :num_users]
    return np.repeat(order, min(capacity, num_users), axis=-1)[..., :num_users]


@dataclass(frozen=True, eq=False)
class MaxMinAssignment:
    """What :func:`max_min_assignment` knows.

    Attributes:
        lower: What the worst-off user has under ``counts``.
        upper: What no schedule exceeds for the worst-off user; equal to ``lower`` if exact.
        exact: Whether ``counts`` is proved to be best.
        counts: How often each user is on each arm; int64 array of shape
            ``(num_users, num_arms)``, rows summing to T and columns to at most C T. Any such
            table can be played in T assignments. Read-only: it is kept for the next who asks.
    """

    lower: float
    upper: float
    exact: bool
    counts: Ints


def max_min_assignment(
    means: ArrayLike, num_users: int, steps: int, capacity: int = 1
) -> MaxMinAssignment:
    """Return the highest expected total that every user can have after ``steps`` steps.

    Where a rotation does not complete (U does not divide T) the benchmark of Lim, Tan, Soh,
    :func:`egalitarian_optimum`, is out of reach, by at most (1 - 1/U)(m_1 - m_U). This is the
    true optimum ``max min_u sum_a n_ua m_a`` over all schedules: exact where a rotation reaches
    the benchmark, and else for small sizes by an integer program (``scipy.optimize.milp``): up to
    50 users times arms, of those arms that can matter, if it is solved within 5000 nodes. Beyond
    that both bounds are certified.

    Args:
        means: Expected rewards; shape ``(num_arms,)``.
        num_users: U.
        steps: T, at least 0.
        capacity: C, users per arm and step.

    Raises:
        TypeError: If a number is not an integer, or ``means`` holds none.
        ValueError: If ``num_users`` exceeds ``capacity`` times the number of arms, or a number
            is too small.

    Example:
        >>> means = [1.0, 0.75, 0.5]
        >>> best = max_min_assignment(means, num_users=2, steps=3)
        >>> best.lower, best.exact, egalitarian_optimum(means, num_users=2, steps=3)
        (2.5, True, 2.625)
    """
    row = checked_row("means", means)
    steps = checked_int("steps", steps, minimum=0)
    upper = float(egalitarian_optimum(row, num_users, steps, capacity))  # checks the others
    return _max_min(tuple(row.tolist()), num_users, steps, capacity, upper)


@lru_cache(maxsize=64)  # the same instance is asked about at the end of every episode
def _max_min(
    means: tuple[float, ...], num_users: int, steps: int, capacity: int, upper: float
) -> MaxMinAssignment:
    row = np.array(means)
    slots = best_slots(row, num_users, capacity)
    counts = starting_counts(row, slots, len(row), steps, capacity)
    counts, upper = best_counts(row, counts, upper, steps, capacity)
    counts.setflags(write=False)
    lower = worst_total(counts, row)
    return MaxMinAssignment(lower, upper, upper == lower, counts)
