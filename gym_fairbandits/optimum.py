"""Offline optima: the best expected objective that a policy knowing the instance can reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.curves import Curve

__all__ = [
    "best_arms",
    "best_fixed_set_optimum",
    "best_slots",
    "egalitarian_optimum",
    "improving_optimum",
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
        NotImplementedError: If a curve decreases within ``steps`` pulls.
        ValueError: If there is no curve, or ``steps`` is negative.
    """
    if not curves:
        raise ValueError("`curves` must hold at least one curve, got none")
    steps = checked_int("steps", steps, minimum=0)
    grid = CurveGrid(1, len(curves))
    grid.set_rows(np.array([0]), curves)
    values, arms = best_arms(grid, np.array([steps], dtype=np.int64))
    return float(values[0]), int(arms[0])


def best_arms(grid: CurveGrid, steps: Ints) -> tuple[Floats, Ints]:
    """Return :func:`improving_optimum` of every row of ``grid``.

    Args:
        grid: The instances.
        steps: The number of pulls of each row; int64 array of shape ``(num_rows,)``.

    Returns:
        The optima and their arms; float64 and int64 arrays of shape ``(num_rows,)``.

    Raises:
        NotImplementedError: If a curve decreases within its number of pulls.
    """
    if not grid.nondecreasing(steps):
        raise NotImplementedError(
            "the offline optimum of arms that decrease is not implemented; "
            "all curves must be nondecreasing"
        )
    pulls = np.repeat(steps[:, None], grid.num_arms, axis=1).astype(np.float64)
    totals = grid.sums(pulls)
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
        steps: T, at least 0; an int, or int64 array of shape ``(...)``.
        capacity: C, users per arm and step.

    Returns:
        A float, or a float64 array of shape ``(...)`` if ``means`` has leading axes.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If ``num_users`` exceeds ``capacity`` times the number of arms, or a number
            is too small.
    """
    table = np.asarray(means, dtype=np.float64)
    num_users = checked_int("num_users", num_users)
    capacity = checked_int("capacity", capacity)
    if not num_users <= capacity * table.shape[-1]:
        raise ValueError(
            f"`num_users` must be at most capacity * num_arms = {capacity * table.shape[-1]}, "
            f"got {num_users}"
        )
    lengths = np.asarray(steps)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"`steps` must be integers, got {steps!r}")
    if not (lengths >= 0).all():
        raise ValueError(f"`steps` must be at least 0, got {steps!r}")
    slots = best_slots(table, num_users, capacity)
    best = np.take_along_axis(table, slots, axis=-1)
    values = lengths * (best.sum(axis=-1) / num_users)
    return float(values) if table.ndim == 1 else values


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
        TypeError: If a number is not an integer.
        ValueError: If ``num_users`` exceeds ``capacity`` times the number of arms, or a number
            is too small.
    """
    return egalitarian_optimum(totals, num_users, 1, capacity)


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
