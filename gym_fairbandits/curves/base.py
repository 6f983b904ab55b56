"""What a reward curve is: values by pull, sums, sums of curves, dict forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_float, made_from_dict

__all__ = ["TOLERANCE", "Curve", "ScaledCurve", "check_parameters", "from_dict"]

Floats = NDArray[np.float64]

TOLERANCE = 1e-9  # how far rounding may carry a curve outside the model
SCAN_LIMIT = 100_000  # pulls that `check_improving` looks at where no formula decides
LAST_PULL = 2**53  # the largest pull count that a float64 holds exactly
_CHUNK = 65_536  # pulls per array in numeric scans: bounds their memory

_families: dict[str, type[Curve]] = {}


class Curve(ABC):
    """The expected reward of an arm as a function of how often it was pulled.

    Subclasses give ``family`` (the name in the dict form), :meth:`evaluate` and ``asymptote``;
    :meth:`evaluate_sum` and :meth:`nondecreasing` where something better than a scan is known.

    Attributes:
        family: The name of the family in the dict form.
        asymptote: The potential of the arm, a_i in the paper: the limit of f(n).
    """

    family: ClassVar[str]
    asymptote: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the family known to :func:`from_dict`."""
        super().__init_subclass__(**kwargs)
        if "family" in cls.__dict__:
            _families[cls.family] = cls

    @abstractmethod
    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls`` (float64 whole numbers >= 1, any shape), elementwise."""

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls`` (whole numbers >= 0), elementwise.

        This fallback adds up the values in O(n); families with a closed form override it.
        """
        most = int(pulls.max(initial=0))
        sums = np.zeros_like(pulls)
        before = 0.0
        for start in range(1, most + 1, _CHUNK):
            values = self.evaluate(np.arange(start, min(start + _CHUNK, most + 1), dtype=float))
            running = before + np.cumsum(values)
            inside = (pulls >= start) & (pulls < start + _CHUNK)
            sums[inside] = running[pulls[inside].astype(np.int64) - start]
            before += float(values.sum())
        return sums

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls in the first ``pulls`` pulls; looks at ``SCAN_LIMIT``."""
        values = self.evaluate(np.arange(1, min(pulls, SCAN_LIMIT) + 1, dtype=float))
        return bool((values >= np.maximum.accumulate(values) - TOLERANCE).all())

    @overload
    def __call__(self, pulls: int) -> float: ...
    @overload
    def __call__(self, pulls: ArrayLike) -> Floats: ...
    def __call__(self, pulls: ArrayLike) -> float | Floats:
        """Return the expected reward of the n-th pull.

        Args:
            pulls: Pull numbers from 1; an integer or an array of integers.

        Returns:
            A float, or a float64 array of the same shape.

        Raises:
            TypeError: If ``pulls`` does not hold integers.
            ValueError: If a pull number is below 1.
        """
        return _like(pulls, self.evaluate(_whole_numbers(pulls, minimum=1)))

    @overload
    def cumulative(self, pulls: int) -> float: ...
    @overload
    def cumulative(self, pulls: ArrayLike) -> Floats: ...
    def cumulative(self, pulls: ArrayLike) -> float | Floats:
        """Return the expected reward of the first n pulls together, Rew(n) of Patil et al.

        Args:
            pulls: Numbers of pulls, from 0; an integer or an array of integers.

        Returns:
            A float, or a float64 array of the same shape.

        Raises:
            TypeError: If ``pulls`` does not hold integers.
            ValueError: If a number is negative.
        """
        return _like(pulls, self.evaluate_sum(_whole_numbers(pulls, minimum=0)))

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form: ``family`` and the parameters, JSON-able."""
        parameters = {}
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            parameters[field.name] = list(value) if isinstance(value, tuple) else value
        return {"family": self.family, **parameters}


def from_dict(data: Mapping[str, Any]) -> Curve:
    """Return the curve of a dict form such as ``{"family": "constant", "value": 0.5}``.

    Raises:
        TypeError: If ``data`` is not a mapping, or a parameter is missing or unknown.
        ValueError: If the family is unknown or a parameter breaks its rule.
    """
    return made_from_dict(data, _families, "a curve")


class ScaledCurve(Curve):
    """``asymptote * shape(n)``, where the shape is concave, rises to 1 and is known by formula.

    The dataclass fields of a subclass are the asymptote and then the shape's parameters, all
    floats. A shape must lie in [0, 1], never decrease, be concave from n = 1 and satisfy
    ``shape(2) <= 2 * shape(1)``; then the curve is in the model exactly if its asymptote is in
    [0, 1], which needs no scan.
    """

    @classmethod
    @abstractmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return the shape at ``pulls``; all arguments broadcast, elementwise."""

    @classmethod
    @abstractmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return the sum of the shape over 1..``pulls``; all arguments broadcast."""

    def parameters(self) -> tuple[float, ...]:
        """Return the asymptote and the shape's parameters."""
        return tuple(getattr(self, field.name) for field in fields(cast(Any, self)))

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        scale, *rest = np.array(self.parameters())
        values: Floats = scale * self.shape(pulls, *rest)
        return values

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        scale, *rest = np.array(self.parameters())
        sums: Floats = scale * self.shape_sum(pulls, *rest)
        return sums

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls: the shape rises, so it is the asymptote's sign."""
        return self.asymptote >= -TOLERANCE


def check_parameters(curve: Curve, **rules: dict[str, float]) -> None:
    """Check every field as a finite float by its rule and store it as a ``float``."""
    for field in fields(cast(Any, curve)):
        value = checked_float(field.name, getattr(curve, field.name), **rules.get(field.name, {}))
        object.__setattr__(curve, field.name, value)


def _whole_numbers(pulls: ArrayLike, minimum: int) -> Floats:
    """Return ``pulls`` as float64 after checking that they are integers >= ``minimum``."""
    numbers = np.asarray(pulls)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise TypeError(f"`pulls` must be integers, got {pulls!r}")
    if (numbers < minimum).any():
        raise ValueError(f"`pulls` must be at least {minimum}, got {numbers.min()}")
    return numbers.astype(np.float64)


def _like(pulls: ArrayLike, values: Floats) -> float | Floats:
    return values if np.ndim(pulls) else float(values)
