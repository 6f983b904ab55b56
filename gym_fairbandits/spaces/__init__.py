"""Spaces of assignments: an arm for every user, no arm given to more users than it can serve.

`Assignment` is the action space of one environment and `BatchedAssignment` that of a
vector environment. Importing the package registers both with the functions of
`gymnasium.spaces.utils`, `gymnasium.vector.utils` and `gymnasium.wrappers.utils`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from numpy.typing import NDArray

from gym_fairbandits._checks import as_int64, check_room, checked_int
from gym_fairbandits.spaces._gymnasium import register
from gym_fairbandits.spaces._legality import (
    are_legal,
    check_assignment,
    check_assignments,
    is_legal,
    rotation,
)
from gym_fairbandits.spaces._sampling import Seating, draw

__all__ = [
    "Assignment",
    "BatchedAssignment",
    "check_assignment",
    "check_assignments",
    "rotation",
]

# Both spaces are defined here and not in a module of their own: saved models name this one.


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
            arms = draw(self.np_random, rows, self.num_users, self.num_arms, self.capacity)
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
            seating = Seating(table, self.capacity)
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
        check_room(num_users, num_arms, capacity)
        super().__init__((), num_users, num_arms, capacity, seed)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a legal assignment; see `check_assignment`."""
        return is_legal(x, self.num_users, self.num_arms, self.capacity)

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
        return batch is not None and are_legal(
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


register(Assignment, BatchedAssignment)
