"""What every agent has in common: observations in, actions out, one row or many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import actions_of_rows, checked_int

__all__ = ["Agent", "argmax_fewest_pulls", "checked_horizon", "total_steps"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observation: TypeAlias = Mapping[str, NDArray[Any]]

TIE_TOLERANCE = 1e-9
LARGEST = np.finfo(np.float64).max


class Agent(ABC):
    """A policy that reads observations only.

    The same agent plays one environment or a batch: in a batch every array of the observation
    gains a leading axis, and each row is treated as if it were alone. Sizes are read from the
    observation. An agent notices a new episode by itself: nothing has been pulled yet.

    Subclasses write ``_act(observation)`` for a batch, and need no more if they remember nothing.

    A random agent takes its numbers from ``self._uniforms(rows, count)``, uniform ones for all
    rows at once, or from ``self._generator(i)``, the generator of row i: so that each row draws
    as if it were alone, whatever the others do.

    One that remembers keeps it per row, begins anew when the shape of the batch changes, and
    forgets: in ``_forget(mask)``, which :meth:`reset` calls with the rows that start afresh (with
    None for all), and in ``_act`` for the rows in which nothing has been pulled yet.
    :class:`gym_fairbandits.agents.history.HistoryAgent` does this for agents that learn from
    every pull.
    """

    def __init__(self) -> None:
        """Create the agent, ready to play, unseeded."""
        self._seed: int | None = None
        self._generators: dict[int, np.random.Generator] = {}
        self._buffer: Floats = np.zeros((0, 0))  # uniform numbers in store, a row each
        self._used: Ints = np.zeros(0, dtype=np.int64)  # how many of them are used up

    def act(self, observation: Observation) -> Any:
        """Return the next action.

        Args:
            observation: An observation of the environment, or of a batch of them.

        Returns:
            For one environment, an ``int`` (the arm) or an int64 array of shape
            ``(num_users,)`` (an assignment); for a batch, an int64 array with a leading axis.

        Raises:
            TypeError: If ``observation`` is not a mapping that holds ``pulls``, or the agent's
                ``__init__`` has not called that of this class.
            ValueError: If ``_act`` does not answer with an action per row.
        """
        self._check_created()
        if not isinstance(observation, Mapping) or "pulls" not in observation:
            raise TypeError(
                "`observation` must be the environment's Dict observation with `pulls`, "
                f"got {type(observation).__name__}"
            )
        arrays = {name: np.asarray(value) for name, value in observation.items()}
        if arrays["pulls"].ndim > 1:
            return actions_of_rows(self._act(arrays), len(arrays["pulls"]))
        batch = {name: value[None] for name, value in arrays.items()}
        single = actions_of_rows(self._act(batch), 1)
        return int(single[0]) if single.ndim == 1 else single[0]

    def predict(
        self,
        observation: Observation,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], Any]:
        """Return ``(action, state)``, the form that Stable-Baselines3 evaluates.

        Args:
            observation: As for :meth:`act`.
            state: Returned as it is.
            episode_start: Not read: the observation says it.
            deterministic: Not read: randomness belongs to the algorithm.
        """
        return np.asarray(self.act(observation)), state

    def reset(
        self, seed: int | Sequence[int | None] | None = None, mask: Bools | None = None
    ) -> None:
        """Start afresh.

        Args:
            seed: ``s`` gives row i the random numbers of a single agent seeded ``s + i``; a
                sequence has an entry per row. ``None`` lets the generators run on.
            mask: Bool array of shape ``(num_envs,)``: which rows; all by default.

        Raises:
            TypeError: If ``seed`` is not an integer, a sequence of them or ``None``, or the
                agent's ``__init__`` has not called that of this class.
            ValueError: If a seed is negative.
        """
        self._check_created()
        if isinstance(seed, Sequence | np.ndarray):
            seeds = [None if own is None else checked_int("seed", own, minimum=0) for own in seed]
            if mask is not None and len(seeds) != len(mask):
                raise ValueError(
                    f"`seed` must have an entry per row of `mask`, {len(mask)}, got {len(seeds)}"
                )
        elif seed is None:
            seeds = [None] * (0 if mask is None else len(mask))
        else:
            first = checked_int("seed", seed, minimum=0)
            if mask is None:  # rows that do not exist yet count too
                self._seed, self._generators = first, {}
                self._buffer = np.zeros((0, 0))
            seeds = [first + row for row in range(0 if mask is None else len(mask))]
        for row, own in enumerate(seeds):
            if own is not None and (mask is None or mask[row]):
                self._generators[row] = np.random.default_rng(own)
                if row < len(self._used):
                    self._used[row] = self._buffer.shape[1]  # what is in store is void
        self._forget(mask)

    def _check_created(self) -> None:
        if "_used" not in vars(self):
            raise TypeError(f"`{type(self).__name__}.__init__` must call `super().__init__()`")

    def _generator(self, row: int) -> np.random.Generator:
        """Return the generator of a row."""
        if row not in self._generators:
            seed = None if self._seed is None else self._seed + row
            self._generators[row] = np.random.default_rng(seed)
        return self._generators[row]

    def _uniforms(self, rows: int, count: int) -> Floats:
        """Return each row's next ``count`` uniform numbers, from its own generator.

        Args:
            rows: The number of rows of the batch.
            count: How many numbers per row, the same at every call.

        Returns:
            float64 array of shape ``(rows, count)``.
        """
        block = max(1, 256 // count) * count
        if self._buffer.shape[1] != block:
            self._buffer, self._used = np.zeros((0, block)), np.zeros(0, dtype=np.int64)
        if len(self._buffer) < rows:
            more = rows - len(self._buffer)
            self._buffer = np.concatenate((self._buffer, np.zeros((more, block))))
            self._used = np.concatenate((self._used, np.full(more, block)))
        used = self._used[:rows]
        for row in np.flatnonzero(used + count > block).tolist():
            self._generator(row).random(out=self._buffer[row])
            used[row] = 0
        places = used[:, None] + np.arange(count)
        used += count
        return np.take_along_axis(self._buffer[:rows], places, axis=1)

    def _forget(self, mask: Bools | None) -> None:  # noqa: B027 - most agents remember nothing
        """Forget what is remembered of the rows of ``mask``, of all by default."""

    @abstractmethod
    def _act(self, observation: Observation) -> Ints:
        """Return the actions of a batch; every array of ``observation`` has a leading axis."""

    def __repr__(self) -> str:
        """Show the public parameters."""
        shown = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


def checked_horizon(horizon: int | None) -> int | None:
    """Return a horizon-aware agent's ``horizon`` after checking it; see :func:`total_steps`.

    Raises:
        TypeError: If it is neither an integer nor ``None``.
        ValueError: If it is below 1.
    """
    return None if horizon is None else checked_int("horizon", horizon)


def total_steps(observation: Observation, steps: Ints, horizon: int | None) -> Ints:
    """Return T, the length of each row's episode: what a horizon-aware agent knows.

    Args:
        observation: A batch; ``remaining``, where it is observed, decides.
        steps: Steps played; int64 array of shape ``(n,)``.
        horizon: T where ``remaining`` is not observed.

    Returns:
        int64 array of shape ``(n,)``, at least ``steps``.

    Raises:
        ValueError: If neither tells, or more than ``horizon`` steps were played.
    """
    if "remaining" in observation:
        lengths: Ints = steps + observation["remaining"][:, 0]
        return lengths
    if horizon is None:
        raise ValueError(
            "`horizon` must be given where the observation does not tell what is `remaining`, "
            "got None"
        )
    if not (steps <= horizon).all():  # the last observation of an episode is one of its own
        raise ValueError(
            f"`horizon` must be the number of steps of the episode, got {horizon} "
            f"and an observation after {steps.max()} steps"
        )
    return np.full(len(steps), horizon, dtype=np.int64)


def argmax_fewest_pulls(scores: Floats, pulls: Ints, tolerance: float = TIE_TOLERANCE) -> Ints:
    """Return the arm of the highest score; ties go to the fewest pulls, then the lowest index.

    Scores within ``tolerance * max(1, |highest|)`` of the highest are ties: on the lower-bound
    instances of Patil et al. all arms tie exactly, and rounding must not decide between them.
    Infinite scores tie with each other only.

    Args:
        scores: float64 array of shape ``(n, num_arms)``.
        pulls: int64 array of shape ``(n, num_arms)``.
        tolerance: The relative tolerance.

    Returns:
        int64 array of shape ``(n,)``.
    """
    top = scores.max(axis=-1, keepdims=True)
    size = np.minimum(np.maximum(1.0, np.abs(top)), LARGEST)
    tied = scores >= top - tolerance * size
    best: Ints = np.where(tied, pulls, np.iinfo(np.int64).max).argmin(axis=-1)
    return best
