"""Reward laws of assignment arms, K arms at a time.

A law turns raw draws into rewards and holds no random state: the environment hands it one draw
per user and step, uniform or standard normal as ``noise`` says. So the same law serves one
environment, a batch of them and any engine, from the same draws, and a law may depend on the step
or on how often each arm was played.

To add a law, subclass :class:`Arms`, give it a ``family`` name for the dict form, and write
:meth:`Arms.rewards` elementwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_float, checked_row, made_from_dict

__all__ = ["Arms", "Bernoulli", "Empirical", "Gaussian", "Noise", "from_dict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Noise: TypeAlias = Literal["random", "standard_normal"] | None

_families: dict[str, type[Arms]] = {}


class Arms(ABC):
    """The reward laws of K arms.

    Attributes:
        family: The name of the law in the dict form.
        noise: The draws that :meth:`rewards` wants: ``"random"`` (uniform on [0, 1)),
            ``"standard_normal"``, or ``None`` for a law without chance.
        means: Expected reward of each arm; float64 array of shape ``(num_arms,)``.
    """

    family: ClassVar[str]
    noise: ClassVar[Noise]
    means: Floats

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the family known to :func:`from_dict`."""
        super().__init_subclass__(**kwargs)
        if "family" in cls.__dict__:
            _families[cls.family] = cls

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return int(self.means.shape[-1])

    @abstractmethod
    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return what the users' arms pay, elementwise.

        Leading axes, if any, run over environments side by side.

        Args:
            arms: The arm of each user; int64 array of shape ``(..., num_users)``.
            draws: One draw per user, as ``noise`` says; float64 array of the shape of ``arms``.
                Users of one arm hold the same draw. All zero where ``noise`` is ``None``.
            step: Steps played before this one; an int, or int64 array of shape ``(...)``.
            pulls: How often each arm was played before; int64 array of shape ``(..., num_arms)``.

        Returns:
            A fresh float64 array of the shape of ``arms``.
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments, JSON-able."""

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form: ``family`` and the parameters, JSON-able."""
        return {"family": self.family, **self.parameters()}

    def __repr__(self) -> str:
        """Show the constructor's arguments."""
        listed = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({listed})"

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is the same law with the same parameters."""
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


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
        self.means = np.array([row.mean() for row in rows])

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return the sample at the draw's place in the arm's list; see :meth:`Arms.rewards`."""
        counts = self._counts.take(arms)
        # A draw just below 1 times a large count can round up to the count itself.
        places = np.minimum((draws * counts).astype(np.int64), counts - 1)
        return self._pool.take(self._starts.take(arms) + places)

    def parameters(self) -> dict[str, Any]:
        """Return ``samples``."""
        return {"samples": [row.tolist() for row in np.split(self._pool, self._starts[1:])]}


def from_dict(data: Mapping[str, Any]) -> Arms:
    """Return the arms of a dict form such as ``{"family": "bernoulli", "means": [0.2, 0.8]}``.

    Raises:
        TypeError: If ``data`` is not a mapping, or a parameter is missing or unknown.
        ValueError: If the family is unknown or a parameter breaks its rule.
    """
    return made_from_dict(data, _families, "arms")


def _of(table: Floats, arms: Ints) -> Floats:
    """Return each user's entry of ``table``: one row for all environments, or a row for each."""
    if table.ndim == 1:
        return table[arms]
    starts = np.arange(0, table.size, table.shape[-1]).reshape(*table.shape[:-1], 1)
    return table.take(starts + arms)


def _listed(row: Floats) -> str:
    return np.array2string(row, threshold=10, separator=", ")
