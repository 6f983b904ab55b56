"""The randomness of environments: draws in blocks, and the generators of the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium.utils import seeding

from gym_fairbandits._checks import checked_int
from gym_fairbandits.envs._core import Floats, Ints

__all__ = ["RowStreams", "draw_block", "draws_per_refill", "fill_draws"]


def draws_per_refill(draws_per_step: int, num_buffers: int = 1) -> int:
    """Return how many draws a buffer takes at once: whole steps, within 16 MB for all buffers.

    The size changes no draw: a generator gives the same numbers in blocks as one by one.
    """
    most = min(1024, 2**21 // num_buffers)
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
        self._generators: list[np.random.Generator | None] = [None] * count
        self._seeds: list[int | None] = [None] * count
        self._streams: list[np.random.Generator | None] = [None] * count
        self._noise: list[str | None] = [None] * count
        self._refill = refill
        self._draws: Floats = np.zeros((count, refill))
        self._next_draw: Ints = np.full(count, refill, dtype=np.int64)  # all used up

    def _generator(self, row: int) -> np.random.Generator:
        generator = self._generators[row]
        if generator is None:
            generator = self._seed_row(row, None)
        return generator

    def _seed_row(self, row: int, seed: int | None) -> np.random.Generator:
        """Give a row the generator of ``seed``, and its instances a stream of their own."""
        generator, self._seeds[row] = seeding.np_random(seed)
        self._generators[row], self._streams[row] = generator, generator.spawn(1)[0]
        self._next_draw[row] = self._refill  # what is in store is void
        return generator

    def _stream(self, row: int) -> np.random.Generator:
        """Return the row's stream of instances; see :meth:`BanditEnv._stream`."""
        stream = self._streams[row]
        if stream is None:
            self._seed_row(row, None)
            return self._stream(row)
        return stream

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
                self._draws[row] = draw_block(self._generator(row), self._noise[row], self._refill)
            places[empty] = 0
        self._next_draw[rows] = places + count
        if len(rows) == self.num_envs and (places == places[0]).all():
            return self._draws[:, places[0] : places[0] + count].copy()
        starts = rows * self._refill + places
        return self._draws.ravel().take(starts[:, None] + np.arange(count))

    def _set_noise(self, row: int, noise: str | None) -> None:
        """Say which draws a row wants; draws of another kind that are left over are dropped."""
        if self._noise[row] != noise:
            self._noise[row] = noise
            self._next_draw[row] = self._refill
