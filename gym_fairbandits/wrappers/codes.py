"""Codes of assignments in the actions of learners: pure functions on arrays with leading axes.

At capacity C each of the K arms is C slots, slot s being arm s // C, so that distinct slots are a
legal assignment. Each code has a map onto the legal assignments and a right inverse: decoding
what encoding gave is the same assignment. At capacity 1 the Lehmer code and the enumeration are
bijections.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction
from numpy.typing import NDArray

from gym_fairbandits._checks import as_int64
from gym_fairbandits.optimum import best_slots
from gym_fairbandits.spaces import Assignment, BatchedAssignment

__all__ = [
    "MAX_ENUMERATED",
    "block_length",
    "block_scores",
    "block_slots",
    "checked_assignment",
    "checked_assignment_space",
    "checked_digits",
    "checked_index",
    "checked_scores",
    "count_assignments",
    "distinct_slots",
    "enumeration",
    "enumeration_keys",
    "lehmer",
    "lehmer_digits",
    "lehmer_sizes",
    "ranked",
    "ranked_scores",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_ENUMERATED = 100_000  # assignments in a table

_FEW_USERS = 20  # with two arms or more, more users than these have too many assignments


# --- Checks of what comes in --------------------------------------------------------------------


def checked_assignment_space(env: Any, attribute: str) -> Assignment:
    """Return the action space of ``env`` if it is an :class:`gym_fairbandits.spaces.Assignment`.

    Args:
        env: An environment.
        attribute: ``"action_space"``, or ``"single_action_space"`` of a vector environment.

    Raises:
        TypeError: If it is not.
    """
    space = getattr(env, attribute, None)
    if not isinstance(space, Assignment):
        if isinstance(space, BatchedAssignment):
            advice = "take the wrapper of this name in `gym_fairbandits.wrappers.vector`, or wrap "
            advice += "the sub-environments"
        else:
            advice = "wrap EgalAssign-v0 before any other wrapper changes its actions"
        raise TypeError(
            f"`env` must have an `Assignment` as its `{attribute}`, got {space} of {env}; {advice}"
        )
    return space


def checked_assignment(name: str, value: Any, space: Assignment | BatchedAssignment) -> Ints:
    """Return ``value`` as a new int64 array if it is a member of ``space``.

    Raises:
        InvalidAction: If it is not.
    """
    if not space.contains(value):
        raise InvalidAction(f"`{name}` must be a legal assignment of {space}, got {value!r}")
    return np.array(value, dtype=np.int64)


def checked_scores(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return ``value`` as a new float64 array; any real numbers will do, NaN and infinity too.

    Raises:
        InvalidAction: If it has another shape, or holds anything but real numbers.
    """
    try:
        scores = np.asarray(value)
    except (TypeError, ValueError):  # ragged
        scores = np.empty(0, dtype=object)
    if scores.shape != shape or scores.dtype.kind not in "iuf":
        raise InvalidAction(
            f"`{name}` must hold real numbers and have shape {shape}, got {_described(value)}"
        )
    with np.errstate(over="ignore"):  # what float64 cannot hold becomes infinite
        return scores.astype(np.float64)


def checked_index(name: str, value: Any, size: int) -> int:
    """Return ``value`` as an ``int`` if it is an integer from 0 to ``size - 1``.

    Args:
        name: What messages call it.
        value: An integer of Python or NumPy, or an array of shape ``()`` and any integer dtype.
        size: How many values there are.

    Raises:
        InvalidAction: If it is anything else (a ``bool`` or 1.0, say), or out of range.
    """
    if isinstance(value, np.ndarray | np.generic):
        whole = value.shape == () and value.dtype.kind in "iu"
    else:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole:
        raise InvalidAction(f"`{name}` must be an integer, got {_described(value)}")
    index = int(value)
    if not 0 <= index < size:
        raise InvalidAction(f"`{name}` must be from 0 to {size - 1}, got {index}")
    return index


def checked_digits(
    name: str,
    value: Any,
    sizes: int | Ints,
    shape: tuple[int, ...],
    rows: Bools | None = None,
) -> Ints:
    """Return ``value`` as a new int64 array if each entry is an integer in its range.

    Args:
        name: What messages call it.
        value: Integers: an array of any integer dtype, or nested lists.
        sizes: How many values each entry has, counted from 0; an int, or an array that
            broadcasts to ``shape``.
        shape: The shape that it must have, of one axis at least.
        rows: Bool array of shape ``shape[:1]``, true where the row counts. The other rows may hold
            any integers, and become 0.

    Raises:
        InvalidAction: If it has another shape, holds anything but integers (1.0 is none), or an
            entry is out of range.
    """
    digits = as_int64(value, shape)
    if digits is None:
        raise InvalidAction(
            f"`{name}` must hold integers and have shape {shape}, got {_described(value)}"
        )
    if rows is not None:
        digits[~rows] = 0
    inside = (digits >= 0) & (digits < sizes)
    if not inside.all():
        place = tuple(np.argwhere(~inside)[0].tolist())
        size = int(np.broadcast_to(sizes, shape)[place])
        where = place if len(place) > 1 else place[0]
        got = np.asarray(value)[place]
        raise InvalidAction(f"`{name}` must be from 0 to {size - 1} at index {where}, got {got}")
    return digits


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"dtype {value.dtype} and shape {value.shape}"
    return repr(value)


# --- Slots --------------------------------------------------------------------------------------


def distinct_slots(assignments: Ints, capacity: int) -> Ints:
    """Return distinct slots for the users of each assignment: the lowest still free of the arm.

    Args:
        assignments: Legal assignments; int64 array of shape ``(..., num_users)``.
        capacity: C, slots per arm.

    Returns:
        A new int64 array of the same shape.
    """
    slots = assignments * capacity
    if capacity > 1:
        for user in range(1, assignments.shape[-1]):
            earlier = assignments[..., :user] == assignments[..., user, None]
            slots[..., user] += earlier.sum(axis=-1)
    return slots


# --- Ranked slots -------------------------------------------------------------------------------


def ranked(scores: Floats, num_users: int, capacity: int) -> Ints:
    """Return the assignments that rank the slots: user u gets the u-th best.

    Equal scores rank in the order of the slots, and NaN ranks after all numbers.

    Args:
        scores: One per slot; float array of shape ``(..., capacity * num_arms)``.
        num_users: U, how many slots are given away.
        capacity: C, slots per arm.

    Returns:
        A new int64 array of shape ``(..., num_users)``.
    """
    arms: Ints = (best_slots(scores, num_users, 1) // capacity).astype(np.int64, copy=False)
    return arms


def ranked_scores(assignments: Ints, num_arms: int, capacity: int) -> NDArray[np.float32]:
    """Return scores in [-1, 1] that :func:`ranked` turns into ``assignments``.

    User u's slot has the score 1 - 2 u / U; slots that nobody gets have -1.

    Args:
        assignments: Legal assignments; int64 array of shape ``(..., num_users)``.
        num_arms: K.
        capacity: C, slots per arm.

    Returns:
        float32 array of shape ``(..., capacity * num_arms)``.
    """
    num_users = assignments.shape[-1]
    scores = np.full((*assignments.shape[:-1], capacity * num_arms), -1, dtype=np.float32)
    falling = (1 - 2 * np.arange(num_users) / num_users).astype(np.float32)
    np.put_along_axis(
        scores,
        distinct_slots(assignments, capacity),
        np.broadcast_to(falling, assignments.shape),
        axis=-1,
    )
    return scores


# --- Lehmer code --------------------------------------------------------------------------------


def lehmer_sizes(num_users: int, num_arms: int, capacity: int) -> Ints:
    """Return how many values each digit has: M, M - 1, ..., M - U + 1, with M = C K slots.

    Returns:
        int64 array of shape ``(num_users,)``.
    """
    return capacity * num_arms - np.arange(num_users, dtype=np.int64)


def lehmer(digits: Ints, capacity: int) -> Ints:
    """Return the assignments that Lehmer codes stand for.

    Digit u counts off user u's slot among those that the users before have left, in ascending
    order.

    Args:
        digits: int64 array of shape ``(..., num_users)``, each below its :func:`lehmer_sizes`.
        capacity: C, slots per arm.

    Returns:
        A new int64 array of shape ``(..., num_users)``.
    """
    slots = digits.copy()
    # Backwards: what follows counts slots without this one, and gains it in the count.
    for user in reversed(range(slots.shape[-1] - 1)):
        later = slots[..., user + 1 :]
        later += later >= slots[..., user, None]
    return slots // capacity


def lehmer_digits(assignments: Ints, capacity: int) -> Ints:
    """Return the Lehmer codes of assignments; the codes of their :func:`distinct_slots`.

    Args:
        assignments: Legal assignments; int64 array of shape ``(..., num_users)``.
        capacity: C, slots per arm.

    Returns:
        A new int64 array of shape ``(..., num_users)``.
    """
    digits = distinct_slots(assignments, capacity)
    for user in range(digits.shape[-1] - 1):
        later = digits[..., user + 1 :]
        later -= later > digits[..., user, None]
    return digits


# --- Enumeration --------------------------------------------------------------------------------


def count_assignments(num_users: int, num_arms: int, capacity: int) -> int:
    """Return the number of legal assignments, exactly.

    It is U! times the coefficient of x^U in (1 + x + x^2/2! + ... + x^C/C!)^K; at capacity 1
    that is K! / (K - U)!. Takes U^2 log K operations on integers.

    Args:
        num_users: U.
        num_arms: K.
        capacity: C, most users on one arm.
    """
    if capacity == 1:
        return math.perm(num_arms, num_users)

    def product(first: list[int], second: list[int]) -> list[int]:
        return [
            sum(math.comb(n, j) * first[j] * second[n - j] for j in range(n + 1))
            for n in range(num_users + 1)
        ]

    # Entry n counts the ways to seat n given users on the arms so far.
    ways = [1] + [0] * num_users
    power = [int(n <= capacity) for n in range(num_users + 1)]
    arms = num_arms
    while True:
        if arms & 1:
            ways = product(ways, power)
        arms >>= 1
        if not arms:
            return ways[num_users]
        power = product(power, power)


def enumeration(num_users: int, num_arms: int, capacity: int) -> Ints:
    """Return all legal assignments in lexicographic order.

    Args:
        num_users: U.
        num_arms: K.
        capacity: C, most users on one arm.

    Returns:
        int64 array of shape ``(count, num_users)``, read-only.

    Raises:
        ValueError: If there are more than ``MAX_ENUMERATED``; nothing was built then.
    """
    # The first users alone never have more assignments than all.
    few = min(num_users, _FEW_USERS)
    count = count_assignments(few, num_arms, capacity)
    if count <= MAX_ENUMERATED and few < num_users:
        few, count = num_users, count_assignments(num_users, num_arms, capacity)
    if count > MAX_ENUMERATED:
        raise ValueError(
            f"`env` must have at most {MAX_ENUMERATED:,} legal assignments to be enumerated, got "
            f"{'more than ' if few < num_users else ''}{count:,} for {num_users} users, "
            f"{num_arms} arms and capacity {capacity}; RankedAssignment, LehmerAssignment and "
            "SequentialAssignment have no such limit"
        )
    table = np.zeros((1, 0), dtype=np.int64)
    loads = np.zeros((1, num_arms), dtype=np.int64)
    for _ in range(num_users):
        rows, arms = np.nonzero(loads < capacity)  # in order of rows, then of arms
        table = np.column_stack([table[rows], arms.astype(np.int64)])
        if table.shape[1] < num_users:
            loads = loads[rows]
            loads[np.arange(len(rows)), arms] += 1
    table.flags.writeable = False
    return table


def enumeration_keys(assignments: Ints, num_arms: int) -> Ints:
    """Return numbers that order assignments lexicographically: their arms as digits to base K.

    Of assignments few enough for :func:`enumeration` they fit into int64, and those of the table
    ascend, so that ``np.searchsorted`` finds the place of an assignment.

    Args:
        assignments: int64 array of shape ``(..., num_users)``.
        num_arms: K.

    Returns:
        int64 array of shape ``(...)``.
    """
    keys: Ints = np.zeros(assignments.shape[:-1], dtype=np.int64)
    for user in range(assignments.shape[-1]):
        keys = keys * num_arms + assignments[..., user]
    return keys


# --- Sets in rotation ---------------------------------------------------------------------------


def block_length(num_users: int, capacity: int) -> int:
    """Return how many slots the users rotate over, and so for how many steps.

    It is U / C if C divides U, when C users move together, else U, when each moves alone.
    """
    return num_users // capacity if num_users % capacity == 0 else num_users


def block_slots(scores: Floats, num_users: int, capacity: int) -> Ints:
    """Return the slots of a block, for :func:`gym_fairbandits.spaces.rotation`.

    If C divides U they are the U / C best arms. Else they are U slots: C of each of the best
    arms in turn, the last of the ceil(U / C) getting what remains.

    Args:
        scores: One per arm; float array of shape ``(..., num_arms)``. Ranked as by
            :func:`ranked`.
        num_users: U.
        capacity: C, most users on one arm.

    Returns:
        int64 array of shape ``(..., block_length)``.
    """
    together = num_users // block_length(num_users, capacity)
    slots: Ints = best_slots(scores, num_users, capacity)[..., ::together]
    return slots.astype(np.int64, copy=False)


def block_scores(assignments: Ints, num_arms: int, capacity: int) -> NDArray[np.float32]:
    """Return scores of arms whose block begins with ``assignments``, if any block does.

    Blocks begin with users 0 to C - 1 on one arm, the next C on another, and so on: at capacity 1
    every assignment begins one.

    Args:
        assignments: Legal assignments; int64 array of shape ``(..., num_users)``.
        num_arms: K.
        capacity: C, most users on one arm.

    Returns:
        float32 array of shape ``(..., num_arms)``, in [-1, 1].
    """
    arms = assignments[..., ::capacity]
    # One that begins no block may repeat an arm, which has no rank then: any scores will do.
    return ranked_scores(arms, num_arms, 1)
