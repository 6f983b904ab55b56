"""Reward curves of improving arms: what the n-th pull of an arm pays, and sums of it.

A curve is a function f of the number of pulls n = 1, 2, ...: ``curve(n)`` is the expected reward
of the n-th pull and ``curve.cumulative(n)`` the total of the first n, which is what the offline
optimum and the policy regret of Patil et al. are made of. In their model ("IMAB", section 2) a
curve stays in [0, 1], never decreases, and rises ever more slowly; :func:`check_improving` says
whether it does.

Every formula is evaluated through elementwise NumPy ufuncs on float64 arrays, never through
``math`` or ``**``, whose last bits differ: so a curve pays the same to a single environment and
to one of ten thousand in a batch.

To add a family, subclass :class:`ScaledCurve` (a shape that rises from 0 to 1, times an
asymptote) or :class:`Curve` (anything else) as a frozen dataclass with a ``family`` name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_float, checked_int, checked_row, made_from_dict
from gym_fairbandits._sums import (
    euler_maclaurin,
    integral_log1p,
    integral_power_complement,
    log1p_gap,
    sum_exponential,
)

__all__ = [
    "Constant",
    "Curve",
    "Exponential",
    "Hyperbolic",
    "LinearCap",
    "Logarithmic",
    "Power",
    "PowerLaw",
    "ScaledCurve",
    "Tabulated",
    "check_improving",
    "from_dict",
]

Floats = NDArray[np.float64]

TOLERANCE = 1e-9  # how far rounding may carry a curve outside the model
SCAN_LIMIT = 100_000  # pulls that `check_improving` looks at where no formula decides
_CHUNK = 65_536  # pulls per array in numeric scans: bounds their memory
_LAST_PULL = 2**53  # the largest pull count that a float64 holds exactly

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


@dataclass(frozen=True)
class LinearCap(ScaledCurve):
    """``asymptote * min(n / ramp, 1)``: rises in a straight line, then stays.

    The extreme rays of the improving curves, and the arms of every lower bound in Patil et al.

    Attributes:
        asymptote: The reward from pull ``ramp`` on.
        ramp: Pulls until the asymptote is reached; any number above 0.
    """

    asymptote: float
    ramp: float
    family: ClassVar[str] = "linear_cap"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, ramp={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``min(n / ramp, 1)``."""
        (ramp,) = parameters
        return np.minimum(pulls / ramp, 1.0)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``s (s + 1) / (2 ramp) + (n - s)`` with ``s = min(n, floor(ramp))``."""
        (ramp,) = parameters
        rising = np.minimum(pulls, np.floor(ramp))
        total: Floats = rising * (rising + 1) / (2 * ramp) + (pulls - rising)
        return total


@dataclass(frozen=True)
class Exponential(ScaledCurve):
    """``asymptote * (1 - exp(-rate * n))``.

    Attributes:
        asymptote: The limit of the reward.
        rate: How fast it is approached, per pull; above 0.
    """

    asymptote: float
    rate: float
    family: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, rate={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 - exp(-rate * n)``."""
        (rate,) = parameters
        return -np.expm1(-rate * pulls)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return the geometric sum, in a form that does not cancel."""
        (rate,) = parameters
        return sum_exponential(pulls, rate)


@dataclass(frozen=True)
class Constant(ScaledCurve):
    """The same reward at every pull.

    Attributes:
        value: The reward.
    """

    value: float
    family: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        """Check the parameter; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self)

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the constant itself."""
        return self.value

    def nondecreasing(self, pulls: int) -> bool:
        """Return True: a constant does not fall, whatever its sign."""
        return True

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return 1."""
        return np.ones_like(pulls)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``n``."""
        return pulls


@dataclass(frozen=True)
class Hyperbolic(ScaledCurve):
    """``asymptote * n / (n + half_saturation)``.

    Attributes:
        asymptote: The limit of the reward.
        half_saturation: Pulls after which half of the asymptote is reached; above 0.
    """

    asymptote: float
    half_saturation: float
    family: ClassVar[str] = "hyperbolic"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, half_saturation={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``n / (n + h)``."""
        (half,) = parameters
        return pulls / (pulls + half)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``n - h (digamma(n + h + 1) - digamma(h + 1))``; does not cancel."""
        (half,) = parameters
        return euler_maclaurin(
            lambda x: cls.shape(x, half),
            lambda a, b: half * (log1p_gap(b / half) - log1p_gap(a / half)),
            lambda x, order: half * _factorial(order) / _power(x + half, order + 1),
            pulls,
        )


@dataclass(frozen=True)
class PowerLaw(ScaledCurve):
    """``asymptote * (1 - (n + 1) ** -exponent)``, the shifted power law.

    The unshifted ``1 - n ** -exponent`` (Lindner et al.) pays 0 at the first pull and then jumps,
    which breaks f(2) <= 2 f(1).

    Attributes:
        asymptote: The limit of the reward.
        exponent: How fast it is approached; above 0.
    """

    asymptote: float
    exponent: float
    family: ClassVar[str] = "power_law"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, exponent={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 - (n + 1) ** -exponent``."""
        (exponent,) = parameters
        return -np.expm1(-exponent * np.log1p(pulls))

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``n`` minus a generalised harmonic number, for every exponent above 0."""
        (exponent,) = parameters
        return euler_maclaurin(
            lambda x: cls.shape(x, exponent),
            lambda a, b: integral_power_complement(a, b, exponent),
            lambda x, order: (
                -_falling(-exponent, order) * np.exp(-(exponent + order) * np.log1p(x))
            ),
            pulls,
        )


@dataclass(frozen=True)
class Logarithmic(ScaledCurve):
    """``asymptote * log(1 + min(n, ramp) / scale) / log(1 + ramp / scale)``.

    Attributes:
        asymptote: The reward from pull ``ramp`` on.
        scale: Pulls after which the logarithm bends; above 0.
        ramp: Pulls until the asymptote is reached; above 0.
    """

    asymptote: float
    scale: float
    ramp: float
    family: ClassVar[str] = "logarithmic"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, scale={"above": 0}, ramp={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``log(1 + min(n, ramp) / scale) / log(1 + ramp / scale)``."""
        scale, ramp = parameters
        return np.log1p(np.minimum(pulls, ramp) / scale) / np.log1p(ramp / scale)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return a log-gamma difference, in a form that does not cancel."""
        scale, ramp = parameters
        rising = np.minimum(pulls, np.floor(ramp))
        logs = euler_maclaurin(
            lambda x: np.log1p(x / scale),
            lambda a, b: integral_log1p(a, b, scale),
            lambda x, order: _factorial(order - 1) / _power(x + scale, order),
            rising,
        )
        return logs / np.log1p(ramp / scale) + (pulls - rising)


@dataclass(frozen=True)
class Power(ScaledCurve):
    """``asymptote * min(n / ramp, 1) ** exponent``.

    Attributes:
        asymptote: The reward from pull ``ramp`` on.
        ramp: Pulls until the asymptote is reached; above 0.
        exponent: In (0, 1]; 1 is :class:`LinearCap`.
    """

    asymptote: float
    ramp: float
    exponent: float
    family: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        _check_parameters(self, ramp={"above": 0}, exponent={"above": 0, "at_most": 1})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``min(n / ramp, 1) ** exponent``."""
        ramp, exponent = parameters
        return np.exp(exponent * np.log(np.minimum(pulls / ramp, 1.0)))

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return a generalised harmonic number of exponent ``-exponent``, scaled."""
        ramp, exponent = parameters
        rising = np.minimum(pulls, np.floor(ramp))
        log_ramp = np.log(ramp)

        def scaled_power(x: Floats, added: float) -> Floats:
            return np.exp((exponent + added) * np.log(x) - exponent * log_ramp)

        powers = euler_maclaurin(
            lambda x: scaled_power(x, 0),
            lambda a, b: (scaled_power(b, 1) - scaled_power(a, 1)) / (exponent + 1),
            lambda x, order: _falling(exponent, order) * scaled_power(x, -order),
            rising,
        )
        return powers + (pulls - rising)


@dataclass(frozen=True)
class Tabulated(Curve):
    """A table of rewards; flat after the last.

    Attributes:
        values: The rewards of pulls 1, 2, ...; at least one finite number.
    """

    values: tuple[float, ...]
    family: ClassVar[str] = "tabulated"

    def __post_init__(self) -> None:
        """Check the table; raises ``TypeError`` or ``ValueError``."""
        table = checked_row("values", self.values)
        object.__setattr__(self, "values", tuple(table.tolist()))
        # Extended precision where the platform has it: a running sum of 10^6 values must stay
        # exact to 1e-11.
        sums = np.cumsum(table, dtype=np.longdouble).astype(np.float64)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_sums", np.concatenate(([0.0], sums)))
        falls = np.flatnonzero(table < np.maximum.accumulate(table) - TOLERANCE)
        object.__setattr__(self, "_first_fall", int(falls[0]) + 1 if falls.size else _LAST_PULL)

    _table: ClassVar[Floats]  # set per instance above; not part of the dataclass's fields
    _sums: ClassVar[Floats]
    _first_fall: ClassVar[int]

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the last value of the table."""
        return self.values[-1]

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        places = np.minimum(pulls, len(self.values)).astype(np.int64) - 1
        values: Floats = self._table.take(places)
        return values

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        inside = np.minimum(pulls, len(self.values))
        beyond = (pulls - inside) * self._table[-1]
        sums: Floats = self._sums.take(inside.astype(np.int64)) + beyond
        return sums

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether the table does not fall within the first ``pulls`` entries."""
        return pulls < self._first_fall


def check_improving(curve: Curve, horizon: int, arm: int = 0) -> None:
    """Refuse a curve outside the model of Patil et al. (section 2).

    The rules, each with a tolerance of 1e-9 for rounding: f stays in [0, 1]; it never decreases;
    it is concave from n = 1; and f(2) <= 2 f(1), without which no f(0) >= 0 continues it.

    How far it looks: a :class:`ScaledCurve` is judged whole, by its parameters; any other curve
    at pulls 1..``horizon``, at most ``SCAN_LIMIT`` (100,000) of them.

    Args:
        curve: The curve.
        horizon: The number of pulls that may be played.
        arm: The arm's index, for the message.

    Raises:
        TypeError: If ``curve`` is not a :class:`Curve`.
        ValueError: If a rule is broken; the message names arm, pull, values and rule.
    """
    if not isinstance(curve, Curve):
        raise TypeError(f"arm {arm} must be a `Curve`, got {curve!r}")
    if isinstance(curve, ScaledCurve):
        if not -TOLERANCE <= curve.asymptote <= 1 + TOLERANCE:
            pull = _first_outside(curve)
            raise ValueError(
                f"arm {arm} leaves [0, 1]: f({pull}) = {curve(pull)} with asymptote "
                f"{curve.asymptote} ({curve}); pass `validate=False` to admit general curves"
            )
        return
    last = min(checked_int("horizon", horizon), SCAN_LIMIT)
    problem = _first_problem(curve.evaluate(np.arange(1, last + 1, dtype=np.float64)))
    if problem:
        raise ValueError(f"arm {arm} {problem}; pass `validate=False` to admit general curves")


def _first_problem(values: Floats) -> str | None:
    """Return which rule ``values``, the rewards of pulls 1, 2, ..., break first, or None.

    Each value is held against the highest before it, and each rise against the smallest: a curve
    that breaks a rule by a little at every pull breaks it by a lot.
    """
    wrong = ~((values >= -TOLERANCE) & (values <= 1 + TOLERANCE))
    if wrong.any():
        return f"leaves [0, 1]: {_listed(values, [wrong.argmax()])}"
    wrong = values < np.maximum.accumulate(values) - TOLERANCE
    if wrong.any():
        late = wrong.argmax()
        top = late - 1 - values[late - 1 :: -1].argmax()
        return f"decreases: {_listed(values, [top])} but {_listed(values, [late])}"
    if len(values) > 1 and not values[1] <= 2 * values[0] + TOLERANCE:
        return f"breaks f(2) <= 2 f(1): {_listed(values, [0])} but {_listed(values, [1])}"
    rises = np.diff(values)
    wrong = rises[1:] > np.minimum.accumulate(rises)[:-1] + TOLERANCE
    if wrong.any():
        late = wrong.argmax() + 1
        least = late - 1 - rises[late - 1 :: -1].argmin()
        places = sorted({least, least + 1, late, late + 1})
        return f"is convex, it rises faster than before: {_listed(values, places)}"
    return None


def _listed(values: Floats, places: Sequence[Any]) -> str:
    return ", ".join(f"f({place + 1}) = {values[place]}" for place in places)


def _first_outside(curve: ScaledCurve) -> int:
    """Return the first pull at which a curve with an asymptote outside [0, 1] is seen outside."""

    def outside(pull: int) -> bool:
        return not -TOLERANCE <= curve(pull) <= 1 + TOLERANCE

    high = 1
    while not outside(high) and high < _LAST_PULL:
        high *= 2
    low = high // 2  # outside(low) is False, or low is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) else (middle, high)
    return high


def _check_parameters(curve: Curve, **rules: dict[str, float]) -> None:
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


def _factorial(order: int) -> float:
    return float(np.prod(np.arange(1, order + 1)))


def _falling(exponent: Floats, order: int) -> Floats:
    """Return ``exponent * (exponent - 1) * ...``, ``order`` factors, as derivatives have."""
    product = np.ones_like(exponent)
    for step in range(order):
        product = product * (exponent - step)
    return product


def _power(x: Floats, order: int) -> Floats:
    power: Floats = np.exp(order * np.log(x))
    return power
