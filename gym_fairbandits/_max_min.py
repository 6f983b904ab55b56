"""The best total that can be promised to the worst-off of U users in T steps.

A table of counts, how often each user is on each arm, with row sums T and column sums at most
C T, can always be played in T assignments (König's theorem on colouring the edges of a bipartite
graph). So one looks for the best table, and to cut total rewards into U parts as equal as possible
is a partition problem: hard in general, an integer program for small sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

__all__ = ["MOST_CELLS", "MOST_NODES", "best_counts", "starting_counts", "worst_total"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CELLS = 50  # users times arms of an integer program that is tried
MOST_NODES = 5000  # of its search tree, then it is given up
_SOLVER_TOLERANCE = 1e-6  # how far it may miss constraints and optimum
_LARGEST_NUMBER = 1e9  # in its constraints: beyond, floats miss them by more than that


def starting_counts(means: Floats, slots: Ints, num_arms: int, steps: int, capacity: int) -> Ints:
    """Return a good table: full rotations, and the better of two ways to play the rest.

    The rest is a rotation that is broken off, or the best arm to the user who is poorest so far
    and so on, which leaves the users at most mu_1 - mu_U apart.

    Args:
        means: Expected rewards; float64 array of shape ``(num_arms,)``.
        slots: The best assignment, best arm first; int64 array of shape ``(num_users,)``.
        num_arms: K.
        steps: T.
        capacity: C.

    Returns:
        int64 array of shape ``(num_users, num_arms)``.
    """
    num_users = len(slots)
    # Groups of C users move on together if C divides U: all have had all arms after U / C steps.
    shift = capacity if num_users % capacity == 0 else 1
    period = num_users // shift
    rotation = np.array(
        [slots[(np.arange(num_users) + shift * step) % num_users] for step in range(period)]
    )
    users = np.arange(num_users)
    turn = np.zeros((num_users, num_arms), dtype=np.int64)
    for arms in rotation:
        turn[users, arms] += 1
    turns, rest = divmod(steps, period)
    rotated, poorest = turns * turn, turns * turn
    totals = np.zeros(num_users)
    for arms in rotation[:rest]:
        rotated[users, arms] += 1
        order = np.argsort(totals, kind="stable")
        poorest[order, slots] += 1
        totals[order] += means[slots]
    return max(rotated, poorest, key=lambda counts: worst_total(counts, means))


def worst_total(counts: Ints, means: Floats) -> float:
    """Return the lowest of the users' totals."""
    return float((counts * means).sum(axis=1).min())


def best_counts(
    means: Floats, start: Ints, upper: float, steps: int, capacity: int
) -> tuple[Ints, float]:
    """Return the best table found and an upper bound for all tables.

    Args:
        means: Expected rewards; float64 array of shape ``(num_arms,)``.
        start: A table to begin with; int64 array of shape ``(num_users, num_arms)``.
        upper: A bound that is known: the benchmark of the linear relaxation.
        steps: T.
        capacity: C.

    Returns:
        The table, and the bound; the table's lowest total is the bound if it is the best.
    """
    num_users = len(start)
    lower = worst_total(start, means)
    slack = 1e-12 * max(1.0, abs(upper))
    if upper - lower <= slack:
        return start, lower
    # A user's total below `upper` is missing in the sum of all totals. An arm so much worse than
    # the worst of the best arms would by a single use leave too little for `lower`.
    used = start.sum(axis=0) > 0
    budget = num_users * (upper - lower) + slack
    arms = np.flatnonzero(used | (means >= means[used].min() - budget))
    if num_users * len(arms) > MOST_CELLS:
        return start, upper
    # In small units the solver's tolerance is harmless.
    units = _LARGEST_NUMBER / max(steps, 1000)
    solved = _solve(means[arms], num_users, upper, steps, capacity, units)
    best = start
    if solved.x is not None:
        table = np.rint(solved.x[:-1]).astype(np.int64).reshape(num_users, len(arms))
        legal = (table.sum(axis=1) == steps).all() and (table.sum(axis=0) <= capacity * steps).all()
        counts = np.zeros_like(start)
        counts[:, arms] = table
        if legal and worst_total(counts, means) > lower:
            best, lower = counts, worst_total(counts, means)
        if solved.status == 0 and legal:
            return best, lower
    missing = getattr(solved, "mip_dual_bound", None)
    if missing is not None and np.isfinite(missing):
        certain = max(0.0, missing - 10 * _SOLVER_TOLERANCE)
        upper -= certain * float(np.ptp(means[arms])) / units
    return best, max(upper, lower)


def _solve(
    means: Floats, num_users: int, upper: float, steps: int, capacity: int, units: float
) -> Any:
    """Minimise what the worst-off user lacks to ``upper``, ``units`` of them to the means' span.

    The variables are the counts, user by user, and what is lacking.
    """
    num_arms = len(means)
    size = num_users * num_arms
    per_user, per_arm = np.eye(num_users), np.eye(num_arms)
    scaled = (means - means.min()) * (units / np.ptp(means))
    target = (upper - steps * means.min()) * (units / np.ptp(means))
    # Users are alike: those who have the best arm more often come first.
    order = np.kron(per_user[:-1] - per_user[1:], per_arm[means.argmax()])
    blocks = [  # rows, their lowest and highest values
        (np.kron(per_user, np.ones(num_arms)), float(steps), float(steps)),
        (np.kron(per_user, scaled), target, np.inf),
        (np.kron(np.ones(num_users), per_arm), 0.0, float(capacity * steps)),
        (order.reshape(num_users - 1, size), 0.0, np.inf),
    ]
    lacking = np.repeat([0.0, 1.0, 0.0, 0.0], [len(rows) for rows, _, _ in blocks])
    return milp(
        np.append(np.zeros(size), 1.0),
        integrality=np.append(np.ones(size), 0),
        bounds=Bounds(0, np.append(np.full(size, float(steps)), np.inf)),
        constraints=LinearConstraint(
            np.column_stack([np.concatenate([rows for rows, _, _ in blocks]), lacking]),
            np.concatenate([np.full(len(rows), lowest) for rows, lowest, _ in blocks]),
            np.concatenate([np.full(len(rows), highest) for rows, _, highest in blocks]),
        ),
        options={"node_limit": MOST_NODES, "mip_rel_gap": 0.0},
    )
