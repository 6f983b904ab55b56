"""Families that are in the model of Patil et al. whatever their shape parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel

from gym_fairbandits._sums import (
    euler_maclaurin,
    integral_log1p,
    integral_power_complement,
    log1p_gap,
    sum_exponential,
)
from gym_fairbandits.curves.base import ScaledCurve, check_parameters

__all__ = [
    "Constant",
    "Exponential",
    "Hyperbolic",
    "LinearCap",
    "Logarithmic",
    "Polynomial",
    "Power",
    "PowerLaw",
]

Floats = NDArray[np.float64]

_LARGEST_LOG = 690.0  # of an offset: twice as much leaves what a float64 holds


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
        check_parameters(self, ramp={"above": 0})

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
        check_parameters(self, rate={"above": 0})

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
        check_parameters(self)

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
        check_parameters(self, half_saturation={"above": 0})

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
        check_parameters(self, exponent={"above": 0})

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
            lambda a, b: integral_power_complement(a, b, exponent, np.ones_like(exponent)),
            lambda x, order: (
                -_falling(-exponent, order) * np.exp(-(exponent + order) * np.log1p(x))
            ),
            pulls,
        )


@dataclass(frozen=True)
class Polynomial(ScaledCurve):
    """``asymptote * (1 - weight * (n + B) ** -exponent)`` with ``B = weight ** (1 / exponent)``.

    Of the experiments of Metelli et al. (2022, *Stochastic Rising Bandits*); the offset B makes
    f(0) = 0. The same as ``asymptote * (1 - (1 + n / B) ** -exponent)``.

    Attributes:
        asymptote: c, the limit of the reward.
        weight: b; above 0, and B must be a finite number.
        exponent: rho, how fast the limit is approached; above 0.
    """

    asymptote: float
    weight: float
    exponent: float
    family: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, weight={"above": 0}, exponent={"above": 0})
        log_offset = np.log(self.weight) / self.exponent
        if not log_offset <= _LARGEST_LOG:
            raise ValueError(
                f"`weight` ** (1 / `exponent`) must be at most exp({_LARGEST_LOG:g}), got "
                f"exp({log_offset:g}) with {self}"
            )

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 - (1 + n / B) ** -exponent``."""
        weight, exponent = parameters
        offset = np.exp(np.log(weight) / exponent)
        # For offsets below 1 the quotient might overflow; there the difference does not cancel.
        logs = np.where(
            offset >= 1,
            exponent * np.log1p(pulls / np.maximum(offset, 1.0)),
            exponent * np.log(pulls + offset) - np.log(weight),
        )
        return -np.expm1(-logs)

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``n`` minus a difference of Hurwitz zeta values, for every exponent above 0."""
        weight, exponent = parameters
        offset = np.exp(np.log(weight) / exponent)
        return euler_maclaurin(
            lambda x: cls.shape(x, weight, exponent),
            lambda a, b: np.where(
                offset >= 1,
                integral_power_complement(a, b, exponent, np.maximum(offset, 1.0)),
                _integral_beyond_offset(a, b, weight, exponent, offset),
            ),
            lambda x, order: (
                -_falling(-exponent, order)
                * np.exp(np.log(weight) - (exponent + order) * np.log(x + offset))
            ),
            pulls,
        )


def _integral_beyond_offset(
    a: Floats, b: Floats, weight: Floats, exponent: Floats, offset: Floats
) -> Floats:
    """Return the integral of ``1 - weight * (x + offset) ** -exponent`` for offsets below 1."""
    start = np.log(a + offset)
    length = np.log1p((b - a) / (a + offset))
    rise = 1 - exponent
    below = np.exp(np.log(weight) + rise * start) * length * exprel(rise * length)
    complement: Floats = (b - a) - below
    return complement


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
        check_parameters(self, scale={"above": 0}, ramp={"above": 0})

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
        check_parameters(self, ramp={"above": 0}, exponent={"above": 0, "at_most": 1})

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
