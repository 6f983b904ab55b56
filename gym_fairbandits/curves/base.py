"""What a reward curve is: values by pull, sums, sums of curves, dict forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import add_family, checked_float, family_of, made_from_dict

__all__ = [
    "TOLERANCE",
    "Curve",
    "Scaled",
    "ScaledCurve",
    "ShapedCurve",
    "Sum",
    "check_parameters",
    "from_dict",
]

Floats = NDArray[np.float64]

TOLERANCE = 1e-9  # how far rounding may carry a curve outside the model
LAST_PULL = 2**53  # the largest pull count that a float64 holds exactly
_CHUNK = 65_536  # pulls per array in numeric scans: bounds their memory

_families: dict[str, type[Curve]] = {}


class Curve(ABC):
    """The expected reward of an arm as a function of how often it was pulled.

    Subclasses give ``family`` (the name in the dict form), :meth:`evaluate` and ``asymptote``;
    :meth:`evaluate_sum`, :meth:`nondecreasing` and :meth:`has_model_shape` where something better
    than a scan is known. Curves add up (``first + second``) and scale (``2 * curve``).

    Attributes:
        family: The name of the family in the dict form.
        asymptote: The potential of the arm, a_i in the paper: the limit of f(n).
    """

    family: ClassVar[str]
    asymptote: float
    __array_ufunc__ = None  # so that a NumPy number times a curve is left to the curve

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the family known to :func:`from_dict`."""
        super().__init_subclass__(**kwargs)
        if "family" in cls.__dict__:
            add_family(_families, cls.family, cls)

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
        """Return whether f never falls in the first ``pulls`` pulls; looks at each of them."""
        highest = -np.inf
        for start in range(1, pulls + 1, _CHUNK):
            values = self.evaluate(np.arange(start, min(start + _CHUNK, pulls + 1), dtype=float))
            peaks = np.maximum.accumulate(np.maximum(values, highest))
            if not (values >= peaks - TOLERANCE).all():
                return False
            highest = float(peaks[-1])
        return True

    def has_model_shape(self) -> bool:
        """Return whether formulas show f to be its asymptote times a shape of the model.

        Such a shape lies in [0, 1], never decreases, is concave from n = 1 and satisfies
        ``shape(2) <= 2 * shape(1)``; then f is in the model exactly if its asymptote is in
        [0, 1], and :func:`check_improving` needs no scan.
        """
        return False

    def __add__(self, other: object) -> Sum:
        """Return the curve that pays what both pay."""
        if not isinstance(other, Curve):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))

    def __radd__(self, other: object) -> Curve:
        """Return the curve itself for ``0 + curve``, with which ``sum(curves)`` begins."""
        if isinstance(other, Real) and other == 0:
            return self
        return NotImplemented

    def __mul__(self, factor: object) -> Scaled:
        """Return the curve that pays ``factor`` times as much."""
        if not isinstance(factor, Real):
            return NotImplemented
        return Scaled(cast(float, factor), self)

    __rmul__ = __mul__

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
        names = [field.name for field in fields(cast(Any, self))]
        return {"family": family_of(self), **{name: _plain(getattr(self, name)) for name in names}}


def from_dict(data: Mapping[str, Any]) -> Curve:
    """Return the curve of a dict form such as ``{"family": "constant", "value": 0.5}``.

    Raises:
        TypeError: If ``data`` is not a mapping, or a parameter is missing or unknown.
        ValueError: If the family is unknown or a parameter breaks its rule.
    """
    return made_from_dict(data, _families, "a curve")


class ShapedCurve(Curve):
    """``asymptote * shape(n)``, where the shape lies in [0, 1] and never decreases.

    The dataclass fields of a subclass are the asymptote and then the shape's parameters, all
    floats.
    """

    @classmethod
    @abstractmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return the shape at ``pulls``; all arguments broadcast, elementwise."""

    def parameters(self) -> tuple[float, ...]:
        """Return the asymptote and the shape's parameters."""
        return tuple(getattr(self, field.name) for field in fields(cast(Any, self)))

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        scale, *rest = np.array(self.parameters())
        values: Floats = scale * self.shape(pulls, *rest)
        return values

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls: the shape rises, so it is the asymptote's sign."""
        return self.asymptote >= -TOLERANCE


class ScaledCurve(ShapedCurve):
    """``asymptote * shape(n)``, where the shape is one of the model and its sum is known.

    A shape must lie in [0, 1], never decrease, be concave from n = 1 and satisfy
    ``shape(2) <= 2 * shape(1)``; then the curve is in the model exactly if its asymptote is in
    [0, 1], which needs no scan.
    """

    @classmethod
    @abstractmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return the sum of the shape over 1..``pulls``; all arguments broadcast."""

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        scale, *rest = np.array(self.parameters())
        sums: Floats = scale * self.shape_sum(pulls, *rest)
        return sums

    def has_model_shape(self) -> bool:
        """Return True."""
        return True


@dataclass(frozen=True)
class Sum(Curve):
    """The curve that pays what all of ``curves`` pay; also written ``first + second``.

    Attributes:
        curves: The terms, at least one; curves or their dict forms.
    """

    curves: tuple[Curve, ...]
    family: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        """Check the terms; raises ``TypeError`` or ``ValueError``."""
        if not isinstance(self.curves, Sequence) or isinstance(self.curves, str):
            raise TypeError(f"`curves` must be a sequence of curves, got {self.curves!r}")
        if not self.curves:
            raise ValueError("`curves` must hold at least one curve, got none")
        terms = tuple(_as_curve("curves", item) for item in self.curves)
        object.__setattr__(self, "curves", terms)

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the sum of the terms' potentials."""
        return sum(curve.asymptote for curve in self.curves)

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        total = self.curves[0].evaluate(pulls)
        for curve in self.curves[1:]:
            total = total + curve.evaluate(pulls)
        return total

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, as fast as the terms' sums are."""
        total = self.curves[0].evaluate_sum(pulls)
        for curve in self.curves[1:]:
            total = total + curve.evaluate_sum(pulls)
        return total

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls; if no term does, that needs no scan."""
        if all(curve.nondecreasing(pulls) for curve in self.curves):
            return True
        return super().nondecreasing(pulls)

    def has_model_shape(self) -> bool:
        """Return whether all terms have it and one sign: their mean then has it too."""
        asymptotes = np.array([curve.asymptote for curve in self.curves])
        one_sign = bool((asymptotes >= 0).all() or (asymptotes <= 0).all())
        return one_sign and all(curve.has_model_shape() for curve in self.curves)


@dataclass(frozen=True)
class Scaled(Curve):
    """The curve that pays ``factor`` times what ``curve`` pays; also written ``factor * curve``.

    Attributes:
        factor: Any finite number.
        curve: The curve that is scaled, or its dict form.
    """

    factor: float
    curve: Curve
    family: ClassVar[str] = "scaled"

    def __post_init__(self) -> None:
        """Check the factor and the curve; raises ``TypeError`` or ``ValueError``."""
        object.__setattr__(self, "factor", checked_float("factor", self.factor))
        object.__setattr__(self, "curve", _as_curve("curve", self.curve))

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: that of the curve, scaled."""
        return self.factor * self.curve.asymptote

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        return self.factor * self.curve.evaluate(pulls)

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, as fast as the curve's sum is."""
        return self.factor * self.curve.evaluate_sum(pulls)

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls; if the curve does not, no positive multiple does."""
        if self.factor >= 0 and self.curve.nondecreasing(pulls):
            return True
        return super().nondecreasing(pulls)

    def has_model_shape(self) -> bool:
        """Return whether the curve has it: the factor only changes the asymptote."""
        return self.curve.has_model_shape()


def _terms(curve: Curve) -> tuple[Curve, ...]:
    return curve.curves if isinstance(curve, Sum) else (curve,)


def _as_curve(name: str, item: Any) -> Curve:
    """Return a curve, or the curve of a dict form."""
    if isinstance(item, Mapping):
        return from_dict(item)
    if not isinstance(item, Curve):
        raise TypeError(f"`{name}` must hold curves or their dict forms, got {item!r}")
    return item


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, Curve):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


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
