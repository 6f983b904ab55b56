"""Spaces of assignments: an arm for every user, no arm given to more users than it can serve.

`Assignment` is the action space of one environment and `BatchedAssignment` that of a
vector environment. Importing the module registers both with the functions of
`gymnasium.spaces.utils`, `gymnasium.vector.utils` and `gymnasium.wrappers.utils`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import accumulate
from math import prod
from operator import eq
from typing import Any, NoReturn

import numpy as np
from gymnasium.error import InvalidAction
from gymnasium.spaces import Box, MultiDiscrete, Space
from gymnasium.spaces.utils import (
    flatdim,
    flatten,
    flatten_space,
    is_space_dtype_shape_equiv,
    unflatten,
)
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

from gym_fairbandits._checks import as_int64, checked_int, holds_integers

__all__ = [
    "Assignment",
    "BatchedAssignment",
    "check_assignment",
    "check_assignments",
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
    if not _is_legal(action, num_users, num_arms, capacity):
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
    if not _are_legal(counted, num_arms, capacity):
        for i in range(num_envs) if rows is None else np.flatnonzero(rows):
            if not _is_legal(batch[i], num_users, num_arms, capacity):
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


def _is_legal(action: Any, num_users: int, num_arms: int, capacity: int) -> bool:
    if isinstance(action, np.ndarray):
        if action.shape != (num_users,) or action.dtype.kind not in "iu":
            return False
        if num_users > _FEW_USERS:
            return _are_legal(action.astype(_INT64).reshape(1, num_users), num_arms, capacity)
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


def _are_legal(batch: NDArray[np.int64], num_arms: int, capacity: int) -> bool:
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
    return f"{rule}, got arm {arm} for {_listed('user', users)}"


def _listed(noun: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


class _AssignmentSpace(Space[NDArray[np.int64]]):
    """What both spaces share: an int64 array whose last axis is an assignment.

    Subclasses set the shape; every "row" along the last axis obeys the same limits.
    """

    dtype: np.dtype[np.int64]

    def __init__(
        self,
        leading_shape: tuple[int, ...],
        num_users: int,
        num_arms: int,
        capacity: int,
        seed: int | np.random.Generator | None,
    ) -> None:
        self.num_users = num_users
        self.num_arms = num_arms
        self.capacity = capacity
        super().__init__((*leading_shape, num_users), np.int64, seed)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the members; never None."""
        return self._shape or ()

    @property
    def is_np_flattenable(self) -> bool:
        """True: members flatten to one-hot vectors, one per user."""
        return True

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> NDArray[np.int64]:
        """Draw a member at random.

        One law serves all cases. The users, in uniformly random order, each take one of the
        arms that are allowed to them, are not full, and leave every later user a place:
        uniformly, or given ``probability`` with probabilities proportional to the user's
        weights of these arms. Hence

        - every legal assignment of allowed pairs can occur, and nothing else;
        - without arguments the draw is uniform over all members if ``capacity`` is 1 or at
          least ``num_users``; between, members that use more arms are somewhat rarer;
        - where limits or the mask bind, the frequency of a pair is not proportional to its
          weight. No law over assignments can promise that.

        Args:
            mask: Allowed pairs of user and arm: array of shape ``(*shape, num_arms)``, boolean
                or of integers 0 and 1.
            probability: Weights of the pairs: array of the same shape, real, finite and not
                negative. Pairs of weight 0 are never used; rows need not sum to 1.

        Returns:
            A new int64 array of shape ``shape``.

        Raises:
            TypeError: If ``mask`` or ``probability`` holds values of another type.
            ValueError: If both are given, if one has another shape or values out of range, or
                if it leaves no legal assignment; the message then names users who have too
                few arms between them.
        """
        if mask is not None and probability is not None:
            raise ValueError("`mask` and `probability` must not both be given")
        rows = prod(self.shape[:-1])
        table_shape = (rows, self.num_users, self.num_arms)
        if probability is not None:
            weights = self._checked_weights(probability).reshape(table_shape)
            arms = self._draw_tables("probability", weights > 0, weights)
        elif mask is None or (allowed := self._checked_mask(mask)).all():
            arms = _draw(self.np_random, rows, self.num_users, self.num_arms, self.capacity)
        else:
            arms = self._draw_tables("mask", allowed.reshape(table_shape), None)
        return arms.reshape(self.shape)

    def to_jsonable(self, sample_n: Iterable[NDArray[np.int64]]) -> list[Any]:
        """Return the members as nested lists of Python integers."""
        return [np.asarray(sample).tolist() for sample in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[NDArray[np.int64]]:
        """Return the members that `to_jsonable` made lists of.

        Raises:
            ValueError: If one of them is not a member.
        """
        samples = []
        for sample in sample_n:
            if not self.contains(sample):
                raise ValueError(f"`sample_n` must hold members of {self}, got {sample!r}")
            samples.append(np.array(sample, dtype=np.int64))
        return samples

    def _checked_mask(self, mask: Any) -> NDArray[np.bool_]:
        table = self._checked_table("mask", mask)
        if table.dtype != np.bool_:
            if table.dtype.kind not in "iu":
                raise TypeError(f"`mask` must be a boolean array, got dtype {table.dtype}")
            other = table[(table != 0) & (table != 1)]
            if other.size:
                raise ValueError(f"`mask` must hold only booleans, or 0 and 1, got {other[0]}")
        return table.astype(np.bool_)

    def _checked_weights(self, probability: Any) -> NDArray[np.float64]:
        table = self._checked_table("probability", probability)
        if table.dtype.kind not in "iuf":
            raise TypeError(f"`probability` must be a float array, got dtype {table.dtype}")
        other = table[~((table >= 0) & (table < np.inf))]  # catches NaN too
        if other.size:
            raise ValueError(f"`probability` must hold finite weights >= 0, got {other[0]}")
        return table.astype(np.float64)

    def _checked_table(self, name: str, value: Any) -> NDArray[Any]:
        table = np.asarray(value)
        shape = (*self.shape, self.num_arms)
        if table.shape != shape:
            raise ValueError(f"`{name}` must have shape {shape}, got {table.shape}")
        return table

    def _draw_tables(
        self, name: str, allowed: NDArray[np.bool_], weights: NDArray[np.float64] | None
    ) -> NDArray[np.int64]:
        arms = np.empty(allowed.shape[:2], dtype=np.int64)
        for row, table in enumerate(allowed):
            seating = _Seating(table, self.capacity)
            stuck = seating.seat_all()
            if stuck is not None:
                where = "" if len(self.shape) == 1 else f" in row {row}"
                raise ValueError(f"`{name}` must leave a legal assignment{where}, but {stuck}")
            row_weights = None if weights is None else weights[row].tolist()
            arms[row] = seating.shuffle(self.np_random, row_weights)
        return arms


class Assignment(_AssignmentSpace):
    """An arm for every user, no arm for more than ``capacity`` of them.

    Members are int64 arrays of shape ``(num_users,)``; entry ``u`` is the arm of user ``u``.
    The space differs from every `gymnasium.spaces.MultiDiscrete`, which cannot forbid that
    users meet on an arm. It flattens to one one-hot vector per user, int64 as the members.

    Attributes:
        num_users: Number of users.
        num_arms: Number of arms.
        capacity: Largest number of users on one arm.

    Example:
        >>> space = Assignment(num_users=3, num_arms=5, seed=0)
        >>> [0, 4, 2] in space, [0, 4, 0] in space
        (True, False)
        >>> space.sample() in space
        True
    """

    def __init__(
        self,
        num_users: int,
        num_arms: int,
        capacity: int = 1,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        """Create the space.

        Args:
            num_users: Number of users, at least 1.
            num_arms: Number of arms, at least 1.
            capacity: Largest number of users on one arm, at least 1.
            seed: Seed of `sample`, or the generator that it shall use.

        Raises:
            TypeError: If a number is not an integer.
            ValueError: If a number is below 1, or if the arms cannot serve all users, that is
                ``num_users > capacity * num_arms``.
        """
        num_users = checked_int("num_users", num_users)
        num_arms = checked_int("num_arms", num_arms)
        capacity = checked_int("capacity", capacity)
        if num_users > capacity * num_arms:
            raise ValueError(
                "`num_users` must be at most capacity * num_arms = "
                f"{capacity} * {num_arms} = {capacity * num_arms}, got {num_users}"
            )
        super().__init__((), num_users, num_arms, capacity, seed)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a legal assignment; see `check_assignment`."""
        return _is_legal(x, self.num_users, self.num_arms, self.capacity)

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is an `Assignment` with the same members."""
        return (
            isinstance(other, Assignment)
            and self.num_users == other.num_users
            and self.num_arms == other.num_arms
            and self.capacity == other.capacity
        )

    def __repr__(self) -> str:
        """Return the call that creates the space, without the seed."""
        capacity = f", capacity={self.capacity}" if self.capacity != 1 else ""
        return f"Assignment({self.num_users}, {self.num_arms}{capacity})"


class BatchedAssignment(_AssignmentSpace):
    """``n`` assignments, one per sub-environment of a vector environment.

    Members are int64 arrays of shape ``(n, num_users)`` whose rows belong to ``single``. A
    batch may itself be batched; the shape then gains an axis in front.

    Attributes:
        single: The space of each row.
        n: Number of rows.
        num_users: Number of users in each row.
        num_arms: Number of arms in each row.
        capacity: Largest number of users on one arm in each row.

    Example:
        >>> space = BatchedAssignment(Assignment(2, 3), n=2, seed=0)
        >>> [[0, 1], [0, 2]] in space, [[0, 1], [2, 2]] in space
        (True, False)
        >>> space.sample().shape
        (2, 2)
    """

    def __init__(
        self,
        single: Assignment | BatchedAssignment,
        n: int,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        """Create the space.

        Args:
            single: The space of each row. Its own random generator plays no part.
            n: Number of rows, at least 1.
            seed: Seed of `sample`, or the generator that it shall use.

        Raises:
            TypeError: If ``single`` is another kind of space, or ``n`` not an integer.
            ValueError: If ``n`` is below 1.
        """
        if not isinstance(single, Assignment | BatchedAssignment):
            raise TypeError(f"`single` must be an Assignment, got {single!r}")
        self.single = single
        self.n = checked_int("n", n)
        leading_shape = (self.n, *single.shape[:-1])
        super().__init__(leading_shape, single.num_users, single.num_arms, single.capacity, seed)

    def contains(self, x: Any) -> bool:
        """Return whether every row of ``x`` belongs to `single`; see `check_assignments`."""
        batch = as_int64(x, self.shape)
        return batch is not None and _are_legal(
            batch.reshape(-1, self.num_users), self.num_arms, self.capacity
        )

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a `BatchedAssignment` with the same members."""
        return (
            isinstance(other, BatchedAssignment)
            and self.n == other.n
            and self.single == other.single
        )

    def __repr__(self) -> str:
        """Return the call that creates the space, without the seed."""
        return f"BatchedAssignment({self.single}, {self.n})"


def _draw(
    rng: np.random.Generator, rows: int, num_users: int, num_arms: int, capacity: int
) -> NDArray[np.int64]:
    """Draw assignments of shape ``(rows, num_users)`` as `_AssignmentSpace.sample` says."""
    if capacity >= num_users:
        return rng.integers(num_arms, size=(rows, num_users))
    if capacity == 1:
        if rows == 1:
            return rng.permutation(num_arms)[None, :num_users].astype(np.int64)
        # Shuffles are exactly uniform; sorting random keys is not, as floats may tie.
        arms = np.tile(np.arange(num_arms), (rows, 1))
        return rng.permuted(arms, axis=1)[:, :num_users].astype(np.int64)
    arms = np.empty((rows, num_users), dtype=np.int64)
    loads = np.zeros((rows, num_arms), dtype=np.int64)
    every_row = np.arange(rows)
    for place in range(num_users):
        rank = np.cumsum(loads < capacity, axis=1)
        chosen = rng.integers(rank[:, -1:])
        arms[:, place] = (rank > chosen).argmax(axis=1)
        loads[every_row, arms[:, place]] += 1
    return rng.permuted(arms, axis=1)


class _Seating:
    """Seats users on arms allowed to them, moving those already seated where need be.

    Sets of users and of arms are the bits of integers. Moves go along augmenting paths, so
    that an arm is found to be open to a user exactly if all others can still be seated.
    """

    def __init__(self, allowed: NDArray[np.bool_], capacity: int) -> None:
        self.capacity = capacity
        self.arms_of = _as_bits(allowed)
        self.users_of = _as_bits(allowed.T)
        self.seat_of = [-1] * len(self.arms_of)
        self.load = [0] * len(self.users_of)
        self.room = (1 << len(self.users_of)) - 1  # arms with a place left
        self.movable = 0

    def seat_all(self) -> str | None:
        """Seat every user somewhere; if that is impossible, say why."""
        for user, arms in enumerate(self.arms_of):
            routes = self._routes(user)
            arm = next((arm for arm in _members(arms) if arm in routes), None)
            if arm is None:
                return self._obstacle(user)
            self._seat(user, arm, routes)
            self.movable |= 1 << user
        return None

    def shuffle(self, rng: np.random.Generator, weights: list[list[float]] | None) -> list[int]:
        """Reseat all users, in random order, on arms drawn at random; return the arms."""
        for user in rng.permutation(len(self.seat_of)).tolist():
            routes = self._routes(user)
            options = [arm for arm in _members(self.arms_of[user]) if arm in routes]
            if weights is None:
                pick = int(rng.integers(len(options)))
            else:
                row = weights[user]
                largest = max(row[arm] for arm in options)
                # Scaled, so that sums neither overflow nor vanish.
                sums = list(accumulate(row[arm] / largest for arm in options))
                pick = bisect_right(sums, rng.random() * sums[-1])
            self._seat(user, options[pick], routes)
            self.movable &= ~(1 << user)
        return self.seat_of

    def _routes(self, user: int) -> dict[int, tuple[int, int] | None]:
        """Return arms that can take ``user`` if others move, among them all of the user's own.

        The value is the first move that makes room there (who, to which arm), or None where
        there is room already. The seat that ``user`` leaves counts as room.
        """
        room = self.room
        if self.seat_of[user] >= 0:
            room |= 1 << self.seat_of[user]
        routes: dict[int, tuple[int, int] | None] = dict.fromkeys(_members(room))
        missing = self.arms_of[user] & ~room
        movable = self.movable & ~(1 << user)
        reached = list(routes)
        for arm in reached:  # grows as it is walked: breadth first
            if not missing:
                break
            movers = self.users_of[arm] & movable
            movable ^= movers
            for mover in _members(movers):
                seat = self.seat_of[mover]
                if seat not in routes:
                    routes[seat] = (mover, arm)
                    missing &= ~(1 << seat)
                    reached.append(seat)
        return routes

    def _seat(self, user: int, arm: int, routes: dict[int, tuple[int, int] | None]) -> None:
        left = self.seat_of[user]
        if left >= 0:
            self.load[left] -= 1
            self.room |= 1 << left
        self.seat_of[user] = arm
        while (move := routes[arm]) is not None:
            mover, arm = move
            self.seat_of[mover] = arm
        self.load[arm] += 1
        if self.load[arm] == self.capacity:
            self.room &= ~(1 << arm)

    def _obstacle(self, user: int) -> str:
        """Name users, ``user`` among them, who have too few arms between them (Hall)."""
        users = arms = 0
        added = 1 << user
        while added:
            users |= added
            for member in _members(added):
                arms |= self.arms_of[member]
            added = 0
            for other, seat in enumerate(self.seat_of):
                if seat >= 0 and arms >> seat & 1:
                    added |= 1 << other
            added &= ~users
        crowd = _listed("user", list(_members(users)))
        if not arms:
            return f"{crowd} may use no arm"
        return f"{crowd} may use only {_listed('arm', list(_members(arms)))}"


def _as_bits(table: NDArray[np.bool_]) -> list[int]:
    packed = np.packbits(table, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _lowest(space: Assignment | BatchedAssignment) -> NDArray[np.int64]:
    """Return the member nearest to zero."""
    row = np.arange(space.num_users, dtype=np.int64) // space.capacity
    member: NDArray[np.int64] = np.broadcast_to(row, space.shape).copy()
    return member


def _batch_space(space: Assignment | BatchedAssignment, n: int = 1) -> BatchedAssignment:
    return BatchedAssignment(space, n, seed=deepcopy(space.np_random))


def _batch_differing_spaces(
    spaces: Sequence[Assignment | BatchedAssignment],
) -> BatchedAssignment:
    for space in spaces:
        if space != spaces[0]:
            raise ValueError(
                "`spaces` must be equal to be batched: assignments of different sizes have no "
                f"common batch, got {spaces[0]} and {space}"
            )
    return _batch_space(spaces[0], len(spaces))


def _is_equivalent(space_1: Assignment | BatchedAssignment, space_2: Any) -> bool:
    return bool(space_1 == space_2)


def _create_empty_array(
    space: Assignment | BatchedAssignment,
    n: int = 1,
    fn: Callable[..., NDArray[np.int64]] = np.zeros,
) -> NDArray[np.int64]:
    # `fn` allocates; zeros would put all users on one arm, outside the batched space.
    array = fn((n, *space.shape), dtype=space.dtype)
    array[...] = _lowest(space)
    return array


def _flatdim(space: Assignment | BatchedAssignment) -> int:
    return prod(space.shape) * space.num_arms


def _flatten_space(space: Assignment | BatchedAssignment) -> Box:
    return Box(low=0, high=1, shape=(_flatdim(space),), dtype=np.int64)


def _flatten(space: Assignment | BatchedAssignment, x: Any) -> NDArray[np.int64]:
    if not space.contains(x):
        raise ValueError(f"`x` must be a member of {space}, got {x!r}")
    one_hot = np.asarray(x)[..., None] == np.arange(space.num_arms)
    flat: NDArray[np.int64] = one_hot.astype(np.int64).ravel()
    return flat


def _unflatten(space: Assignment | BatchedAssignment, x: Any) -> NDArray[np.int64]:
    flat = np.asarray(x)
    if flat.shape == (_flatdim(space),):
        one_hot = flat.reshape(*space.shape, space.num_arms)
        arms: NDArray[np.int64] = one_hot.argmax(axis=-1).astype(np.int64)
        # Boxes and concatenations turn the zeros and ones into floats; their values count.
        if space.contains(arms) and np.array_equal(_flatten(space, arms), flat):
            return arms
    raise ValueError(f"`x` must be what `flatten` makes of a member of {space}, got {x!r}")


def _iterate_single(space: Assignment, items: Any) -> NoReturn:
    raise TypeError(f"Unable to iterate over {space}: it is not a batch")


def _iterate_batch(space: BatchedAssignment, items: Any) -> Iterator[Any]:
    return iter(items)


iterate.register(Assignment, _iterate_single)
iterate.register(BatchedAssignment, _iterate_batch)
# These need only a shape and a dtype, so what serves MultiDiscrete serves here.
_array_functions: tuple[Any, ...] = (
    concatenate,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
# Gymnasium looks some types up without regard to inheritance: both must be registered.
for _space in (Assignment, BatchedAssignment):
    batch_space.register(_space, _batch_space)
    batch_differing_spaces.register(_space, _batch_differing_spaces)
    create_empty_array.register(_space, _create_empty_array)
    create_zero_array.register(_space, _lowest)
    is_space_dtype_shape_equiv.register(_space, _is_equivalent)
    flatdim.register(_space, _flatdim)
    flatten.register(_space, _flatten)
    flatten_space.register(_space, _flatten_space)
    unflatten.register(_space, _unflatten)
    for _function in _array_functions:
        _function.register(_space, _function.dispatch(MultiDiscrete))
