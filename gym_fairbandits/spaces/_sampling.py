"""How assignments are drawn at random: with limits of arms, and with masks and weights of pairs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.spaces._legality import listed

__all__ = ["Seating", "draw"]


def draw(
    rng: np.random.Generator, rows: int, num_users: int, num_arms: int, capacity: int
) -> NDArray[np.int64]:
    """Draw assignments of shape ``(rows, num_users)`` as `Assignment.sample` says."""
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


class Seating:
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
        crowd = listed("user", list(_members(users)))
        if not arms:
            return f"{crowd} may use no arm"
        return f"{crowd} may use only {listed('arm', list(_members(arms)))}"


def _as_bits(table: NDArray[np.bool_]) -> list[int]:
    packed = np.packbits(table, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
