"""The randomness of environments: draws in blocks, and the generators of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import data_equivalence

from gym_fairbandits._checks import checked_int
from gym_fairbandits.envs._core import Floats, Ints

__all__ = [
    "RowStreams",
    "Seeded",
    "StreamOf",
    "draw_block",
    "draws_per_refill",
    "fill_draws",
    "put_back",
]


def draws_per_refill(draws_per_step: int, num_buffers: int = 1) -> int:
    """Return how many draws a buffer takes at once: whole steps, at least one.

    Where several fit, all buffers together stay within 64 MB. The size changes no draw: a
    generator gives the same numbers in blocks as one by one, and :func:`put_back` takes back
    what a change of law leaves over.
    """
    most = min(1024, 2**23 // num_buffers)
    return max(1, most // draws_per_step) * draws_per_step


def draw_block(generator: np.random.Generator, noise: str | None, count: int) -> Floats:
    """Return the next ``count`` draws of a stream; a law without chance gets zeros."""
    return fill_draws(generator, noise, np.empty(count))


def fill_draws(generator: np.random.Generator, noise: str | None, out: Floats) -> Floats:
    """Write the next draws of a stream into ``out``, contiguous, and return it."""
    if noise == "random":
        return generator.random(out=out)
    if noise == "standard_normal":
        return generator.standard_normal(out=out)
    out.fill(0.0)
    return out


def put_back(
    generator: np.random.Generator,
    start: Mapping[str, Any],
    noise: str | None,
    count: int,
    used: int,
) -> None:
    """Leave a generator where only the first ``used`` draws of its latest block would have.

    If somebody else has drawn from it since, nothing is put back: their draws must not come again.

    Args:
        generator: What the block was drawn from.
        start: The state of its bit generator before the block.
        noise: The kind of the draws.
        count: How many draws the block has.
        used: How many of them were played.
    """
    if noise is None:  # nothing was drawn
        return
    now = generator.bit_generator.state
    generator.bit_generator.state = start
    draw_block(generator, noise, count)
    if data_equivalence(generator.bit_generator.state, now, exact=True):
        generator.bit_generator.state = start
        draw_block(generator, noise, used)
    else:
        generator.bit_generator.state = now


StreamOf: TypeAlias = Callable[[int], np.random.Generator]  # of a row


class Seeded(NamedTuple):
    """What a seed gives a row: ``rewards`` are drawn from one stream, ``instances`` from another.

    Attributes:
        rewards: The generator.
        seed: Its seed, chosen at random if none was given; -1 for a generator of the user's.
        instances: A generator spawned from it.
    """

    rewards: np.random.Generator
    seed: int
    instances: np.random.Generator

    @classmethod
    def of(cls, seed: int | None) -> Seeded:
        """Return the streams of a seed."""
        rewards, chosen = seeding.np_random(seed)
        return cls(rewards, chosen, rewards.spawn(1)[0])


class RowStreams:
    """The generators of a batch, one per row, and a store of draws of each.

    Row i of seed s has the generator of the scalar environment seeded ``s + i``, and the same
    draws in the same order.
    """

    num_envs: int

    def _start_streams(self, draws_per_step: int) -> None:
        """Set the state of a batch that was never seeded."""
        count = self.num_envs
        refill = draws_per_refill(draws_per_step, count)
        self._seeded: list[Seeded | None] = [None] * count
        self._noise: list[str | None] = [None] * count
        self._refill = refill
        self._draws: Floats = np.zeros((count, refill))
        self._next_draw: Ints = np.full(count, refill, dtype=np.int64)  # all used up
        self._block_starts: list[Mapping[str, Any]] = [{}] * count  # states before the blocks

    def _streams_of(self, row: int) -> Seeded:
        """Return a row's streams; one that was never seeded is seeded at random."""
        return self._seeded[row] or self._seed_row(row, Seeded.of(None))

    def _seed_row(self, row: int, seeded: Seeded) -> Seeded:
        """Give a row the streams of a seed."""
        self._seeded[row] = seeded
        self._next_draw[row] = self._refill  # what is in store is void
        return seeded

    def _checked_seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            first = checked_int("seed", seed, minimum=0)
            seeds: list[int | None] = [first + row for row in range(self.num_envs)]
        elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            seeds = [
                None if item is None else checked_int("seed", item, minimum=0) for item in seed
            ]
        else:
            raise TypeError(f"`seed` must be None, an integer or a sequence of them, got {seed!r}")
        if len(seeds) != self.num_envs:
            raise ValueError(
                f"`seed` must have num_envs = {self.num_envs} entries, got {len(seeds)}"
            )
        return seeds

    def _take_draws(self, rows: Ints, count: int) -> Floats:
        """Return each row's next ``count`` draws; float64 array of shape ``(len(rows), count)``."""
        places = self._next_draw[rows]
        empty = places >= self._refill
        if empty.any():
            for row in rows[empty].tolist():
                generator = self._streams_of(row).rewards
                self._block_starts[row] = generator.bit_generator.state
                fill_draws(generator, self._noise[row], self._draws[row])
            places[empty] = 0
        self._next_draw[rows] = places + count
        if len(rows) == self.num_envs and (places == places[0]).all():
            return self._draws[:, places[0] : places[0] + count].copy()
        starts = rows * self._refill + places
        return self._draws.ravel().take(starts[:, None] + np.arange(count))

    def _set_noise(self, row: int, noise: str | None) -> None:
        """Say which draws a row wants; what is left of another kind goes back to its stream."""
        if self._noise[row] != noise:
            used = int(self._next_draw[row])
            if used < self._refill:
                generator = self._streams_of(row).rewards
                start = self._block_starts[row]
                put_back(generator, start, self._noise[row], self._refill, used)
            self._noise[row] = noise
            self._next_draw[row] = self._refill
