"""Arms whose expected rewards never change: the laws of Lim, Tan, Soh, and recorded rewards."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_float, checked_row, frozen
from gym_fairbandits.arms.base import Arms

__all__ = ["Bernoulli", "Empirical", "Gaussian"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Bernoulli(Arms):
    """Each arm pays 1 with its mean as probability, else 0."""

    family = "bernoulli"
    noise = "random"

    def __init__(self, means: ArrayLike) -> None:
        """Create the arms.

        Args:
            means: Probability of a reward of 1, per arm; shape ``(num_arms,)``.

        Raises:
            TypeError: If ``means`` does not hold real numbers.
            ValueError: If ``means`` is not a non-empty row of numbers in [0, 1].
        """
        self.means = checked_row("means", means)
        if not ((self.means >= 0) & (self.means <= 1)).all():
            raise ValueError(f"`means` must lie in [0, 1], got {_listed(self.means)}")

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return 1.0 where the draw is below the mean, else 0.0; see :meth:`Arms.rewards`."""
        return (draws < _of(self.means, arms)).astype(np.float64)

    def parameters(self) -> dict[str, Any]:
        """Return ``means``."""
        return {"means": self.means.tolist()}


class Gaussian(Arms):
    """Each arm pays its mean plus Gaussian noise of its standard deviation."""

    family = "gaussian"
    noise = "standard_normal"

    def __init__(self, means: ArrayLike, std: ArrayLike = 1.0) -> None:
        """Create the arms.

        Args:
            means: Expected rewards; shape ``(num_arms,)``.
            std: Standard deviation, one for all arms or one each; 0 is allowed (no chance).

        Raises:
            TypeError: If an argument does not hold real numbers.
            ValueError: If ``means`` is not a non-empty row of finite numbers, or ``std`` is
                negative, not finite, or of another shape.
        """
        self.means = checked_row("means", means)
        if isinstance(std, Real):
            std = [checked_float("std", std, at_least=0)] * self.num_arms
        deviations = checked_row("std", std)
        if len(deviations) != self.num_arms:
            raise ValueError(
                f"`std` must be one number or one per arm, got {len(deviations)} numbers "
                f"for {self.num_arms} arms"
            )
        if not (deviations >= 0).all():
            raise ValueError(f"`std` must be at least 0, got {std!r}")
        self.std: Floats = deviations

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return ``mean + std * draw``; see :meth:`Arms.rewards`."""
        return _of(self.means, arms) + _of(self.std, arms) * draws

    def parameters(self) -> dict[str, Any]:
        """Return ``means`` and ``std``."""
        return {"means": self.means.tolist(), "std": self.std.tolist()}


class Empirical(Arms):
    """Each arm pays one of its recorded samples, all equally likely, with replacement."""

    family = "empirical"
    noise = "random"

    def __init__(self, samples: Sequence[ArrayLike] | NDArray[Any]) -> None:
        """Create the arms.

        Args:
            samples: For each arm, the rewards that were recorded; at least one finite number each.

        Raises:
            TypeError: If ``samples`` is not a sequence of rows of real numbers.
            ValueError: If there is no arm, or an arm's samples are empty or not finite.
        """
        if not isinstance(samples, Sequence | np.ndarray) or isinstance(samples, str):
            raise TypeError(f"`samples` must be a sequence with a row per arm, got {samples!r}")
        rows = [checked_row(f"samples[{arm}]", values) for arm, values in enumerate(samples)]
        if not rows:
            raise ValueError("`samples` must hold at least one arm, got none")
        self._pool: Floats = np.concatenate(rows)
        self._counts: Ints = np.array([len(row) for row in rows], dtype=np.int64)
        self._starts: Ints = np.cumsum(self._counts) - self._counts
        self.means = frozen(np.array([row.mean() for row in rows]))

    @property
    def table(self) -> tuple[Floats, Ints, Ints]:
        """All samples in one row, where each arm's begin in it, and how many each arm has."""
        return self._pool, self._starts, self._counts

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return the sample at the draw's place in the arm's list; see :meth:`Arms.rewards`."""
        counts = self._counts.take(arms)
        # A draw just below 1 times a large count can round up to the count itself.
        places = np.minimum((draws * counts).astype(np.int64), counts - 1)
        return self._pool.take(self._starts.take(arms) + places)

    def parameters(self) -> dict[str, Any]:
        """Return ``samples``."""
        return {"samples": [row.tolist() for row in np.split(self._pool, self._starts[1:])]}


def _of(table: Floats, arms: Ints) -> Floats:
    """Return each user's entry of ``table``: one row for all environments, or a row for each."""
    if table.ndim == 1:
        return table.take(arms)
    starts = np.arange(0, table.size, table.shape[-1]).reshape(*table.shape[:-1], 1)
    return table.take(starts + arms)


def _listed(row: Floats) -> str:
    return np.array2string(row, threshold=10, separator=", ")
