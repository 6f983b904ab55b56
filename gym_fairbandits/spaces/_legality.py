"""Which assignments are legal, what is wrong with one that is not, and a rotation of legal ones."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction
from numpy.typing import NDArray

from gym_fairbandits._checks import as_int64, holds_integers

__all__ = [
    "are_legal",
    "check_assignment",
    "check_assignments",
    "is_legal",
    "listed",
    "rotation",
]

_INT64 = np.dtype(np.int64)  # quicker to convert to than the type
# Up to this many users Python lists beat NumPy's fixed cost per call.
_FEW_USERS = 128
# Counting needs a cell per row and arm; with this many arms per user sorting needs less.
_MANY_ARMS_PER_USER = 32


def check_assignment(
    action: Any, num_users: int, num_arms: int, capacity: int = 1
) -> NDArray[np.int64]:
    """Return ``action`` as an int64 array if it is a legal assignment.

    Args:
        action: Integer array of shape ``(num_users,)`` and any integer dtype, or a list or
            tuple of ``num_users`` integers; entry ``u`` is the arm of user ``u``.
        num_users: Number of users.
        num_arms: Number of arms.
        capacity: Largest number of users on one arm.

    Returns:
        int64 array of shape ``(num_users,)``: ``action`` itself if it is one, else a new one.

    Raises:
        InvalidAction: If ``action`` has another type, dtype or shape, names an arm that does
            not exist, or gives an arm to more than ``capacity`` users. The message names
            the arm and its users.
    """
    if type(action) is np.ndarray and action.dtype is _INT64 and action.shape == (num_users,):
        arms = action.tolist()  # what environments get at nearly every step
        if len(set(arms)) == num_users and min(arms) >= 0 and max(arms) < num_arms:
            return action
    if not is_legal(action, num_users, num_arms, capacity):
        if not holds_integers(action, (num_users,)):
            raise InvalidAction(_misfit("action", action, (num_users,)))
        raise InvalidAction(f"`action` {_fault(action, num_arms, capacity)}")
    if type(action) is np.ndarray:
        return action.astype(_INT64)
    return np.array(action, dtype=_INT64)


def check_assignments(
    actions: Any,
    num_envs: int,
    num_users: int,
    num_arms: int,
    capacity: int = 1,
    rows: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return a batch of actions as an array of its own if every row is a legal assignment.

    Args:
        actions: Integer array of shape ``(num_envs, num_users)`` and any integer dtype, or
            nested lists or tuples of integers.
        num_envs: Number of sub-environments.
        num_users: Number of users.
        num_arms: Number of arms.
        capacity: Largest number of users on one arm.
        rows: Boolean array of shape ``(num_envs,)``, true where the row counts. The other
            rows must still hold integers, but any integers.

    Returns:
        A new int64 array of shape ``(num_envs, num_users)``. Rows that do not count are
        converted but otherwise left as they are.

    Raises:
        InvalidAction: As for `check_assignment`; the message also names the sub-environment.
        TypeError: If ``rows`` is not boolean.
        ValueError: If ``rows`` has another shape.
    """
    shape = (num_envs, num_users)
    batch = as_int64(actions, shape)
    if batch is None:
        raise InvalidAction(_misfit("actions", actions, shape))
    counted = batch
    if rows is not None:
        rows = np.asarray(rows)
        if rows.dtype != np.bool_:
            raise TypeError(f"`rows` must be a boolean array, got dtype {rows.dtype}")
        if rows.shape != (num_envs,):
            raise ValueError(f"`rows` must have shape ({num_envs},), got {rows.shape}")
        counted = batch[rows]
    if not are_legal(counted, num_arms, capacity):
        for i in range(num_envs) if rows is None else np.flatnonzero(rows):
            if not is_legal(batch[i], num_users, num_arms, capacity):
                fault = _fault(actions[i], num_arms, capacity)
                raise InvalidAction(f"`actions` {fault} in sub-environment {i}")
    return batch


def rotation(slots: NDArray[np.int64], place: Any, num_users: int) -> NDArray[np.int64]:
    """Return the assignment of one step of a block in which the users rotate over a set of arms.

    With G slots, the users form G groups of U / G, in order of their numbers; in step i of the
    block, group g plays slot (g - i) mod G. In G steps every user plays every slot once.

    Args:
        slots: The arm of each slot; int64 array of shape ``(..., G)``. G must divide U.
        place: i, from 0; an int, or an int64 array of shape ``(...)``.
        num_users: U.

    Returns:
        A new int64 array of shape ``(..., num_users)``. No arm has more than C users if U / G
        times the number of its slots is at most C.

    Raises:
        ValueError: If G does not divide U.
    """
    groups = slots.shape[-1]
    if not groups or num_users % groups:
        raise ValueError(
            f"`slots` must have a last axis that divides the {num_users} users, got {groups}"
        )
    group = np.arange(num_users) // (num_users // groups)
    turned = (group - np.asarray(place)[..., None]) % groups
    return np.take_along_axis(
        slots, np.broadcast_to(turned, (*slots.shape[:-1], num_users)), axis=-1
    )


def is_legal(action: Any, num_users: int, num_arms: int, capacity: int) -> bool:
    if isinstance(action, np.ndarray):
        if action.shape != (num_users,) or action.dtype.kind not in "iu":
            return False
        if num_users > _FEW_USERS:
            return are_legal(action.astype(_INT64).reshape(1, num_users), num_arms, capacity)
        arms = action.tolist()
    elif holds_integers(action, (num_users,)):
        arms = action
    else:
        return False
    ordered = sorted(arms)
    if ordered[0] < 0 or ordered[-1] >= num_arms:
        return False
    return len(set(arms)) == num_users or (
        capacity > 1 and not any(map(eq, ordered, ordered[capacity:]))
    )


def are_legal(batch: NDArray[np.int64], num_arms: int, capacity: int) -> bool:
    num_rows, num_users = batch.shape
    if num_rows == 0:
        return True
    # Seen as unsigned, negative arms are huge: one pass checks both ends.
    if batch.view(np.uint64).max() >= num_arms:
        return False
    if capacity >= num_users:
        return True
    if num_arms > _MANY_ARMS_PER_USER * num_users:
        ordered = np.sort(batch, axis=1)
        return not (ordered[:, capacity:] == ordered[:, :-capacity]).any()
    cells = batch + np.arange(0, num_rows * num_arms, num_arms)[:, None]
    return bool(np.bincount(cells.ravel()).max() <= capacity)


def _misfit(name: str, value: Any, shape: tuple[int, ...]) -> str:
    if isinstance(value, np.ndarray):
        got = f"dtype {value.dtype} and shape {value.shape}"
    else:
        got = repr(value)
    return f"`{name}` must hold integers and have shape {shape}, got {got}"


def _fault(action: Any, num_arms: int, capacity: int) -> str:
    """Say which rule an illegal row of integers breaks, at which arm and for which users."""
    arms = [int(arm) for arm in action]
    users_of: dict[int, list[int]] = {}
    for user, arm in enumerate(arms):
        users_of.setdefault(arm, []).append(user)
    for arm, users in users_of.items():
        if not 0 <= arm < num_arms:
            rule = f"must give every user an arm from 0 to {num_arms - 1}"
            break
        if len(users) > capacity:
            rule = f"must give no arm to more than {capacity} user{'s' * (capacity > 1)}"
            break
    return f"{rule}, got arm {arm} for {listed('user', users)}"


def listed(noun: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
