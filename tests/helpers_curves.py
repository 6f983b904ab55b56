"""Curves of every family and of users for the tests of curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from helpers_names import Floats

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Gompertz,
    Hill,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Logistic,
    NoveltyDecay,
    PiecewiseLinear,
    Polynomial,
    Power,
    PowerLaw,
    ScaledCurve,
    SinglePeaked,
    Tabulated,
    UnshiftedPowerLaw,
    Weibull,
)

CHUNK = 65_536  # how many values are looked at in one array


@dataclass(frozen=True)
class HeadStart(ScaledCurve):
    """A user's own shape: ``min((n + lead) / (ramp + lead), 1)``."""

    asymptote: float
    lead: float
    ramp: float
    family: ClassVar[str] = "test_head_start"

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        lead, ramp = parameters
        values: Floats = np.minimum((pulls + lead) / (ramp + lead), 1.0)
        return values

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        lead, ramp = parameters
        rising: Floats = np.minimum(pulls, np.floor(ramp))
        return (rising * (rising + 1) / 2 + lead * rising) / (ramp + lead) + (pulls - rising)


@dataclass(frozen=True)
class Halving(Curve):
    """A user's own curve without a closed sum: ``level * (1 - 2 ** -n)``."""

    level: float
    family: ClassVar[str] = "test_halving"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return self.level

    def evaluate(self, pulls: Floats) -> Floats:
        return -self.level * np.expm1(-math.log(2) * pulls)


@dataclass(frozen=True)
class Wave(Curve):
    """A curve that rises and falls, known only by its values."""

    family: ClassVar[str] = "test_wave"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return math.nan

    def evaluate(self, pulls: Floats) -> Floats:
        return 0.5 + 0.4 * np.sin(pulls / 1000)


OWN: list[Curve] = [
    LinearCap(0.9, 40),
    LinearCap(1, 2.5),
    Exponential(0.73, 0.02),
    Exponential(1.0, 700.0),
    Constant(0.4),
    Constant(0),
    Hyperbolic(0.8, 25.0),
    Hyperbolic(1.0, 1e-3),
    PowerLaw(1.0, 0.5),
    PowerLaw(0.6, 1.0),
    Logarithmic(0.9, 5.0, 1000.0),
    Power(0.5, 1000.0, 0.4),
    Power(0.7, 30.5, 1.0),
    Tabulated((0.1, 0.2, 0.25)),
    Tabulated((0.5,)),
]
USERS: list[Curve] = [HeadStart(0.9, 3.0, 20.5), HeadStart(1.0, 0.5, 300.0), Halving(0.8)]
VALID = OWN + USERS
every_valid = pytest.mark.parametrize("curve", VALID, ids=str)

# General curves in the model, and outside it.
GENERAL_IN_MODEL: list[Curve] = [
    Polynomial(0.91, 57.0, 0.9),
    Polynomial(0.5, 0.25, 2.0),
    Weibull(0.9, 20.0, 0.7),
    Weibull(0.9, 20.0, 1.0),
    Hill(0.9, 20.0, 0.8),
    Gompertz(0.9, 1.0, 0.1),
    Logistic(0.9, 0.1, 1.0),
    Logistic(0.9, 0.3, -4.0),
    PiecewiseLinear((0.5, 0.25), (4.0, 16.5)),
    LinearCap(0.5, 40) + Hyperbolic(0.5, 3.0),
    0.5 * Exponential(1.5, 0.1),
]
GENERAL_OUTSIDE: list[Curve] = [
    Weibull(0.9, 20.0, 1.5),
    Hill(0.9, 20.0, 3.0),
    Gompertz(0.9, 5.0, 0.1),
    Logistic(0.9, 0.1, 30.0),
    UnshiftedPowerLaw(1.0, 0.5),
    SinglePeaked(0.01, 0.001, 1.0, 0.05, 600.0, -0.0015),
    NoveltyDecay(0.3, 0.2, 0.95, 0.05),
    PiecewiseLinear((1.0, -0.75), (4.0, 16.0)),
    LinearCap(1.0, 10) + LinearCap(-0.5, 300),
    Constant(1.0) + -1.0 * Exponential(0.75, 0.01),
    2.0 * (Tabulated((0.1, 0.4, 0.2)) + Hill(0.1, 5.0, 2.0)),
]
GENERAL = GENERAL_IN_MODEL + GENERAL_OUTSIDE
every_general = pytest.mark.parametrize("curve", GENERAL, ids=str)


def random_curve(family: type[Curve], rng: np.random.Generator) -> Curve:
    """Scales log-uniform on [1e-3, 1e6], exponents log-uniform on [1e-3, 10] or [1e-3, 1]."""
    scale, other = np.exp(rng.uniform(math.log(1e-3), math.log(1e6), size=2)).tolist()
    exponent = math.exp(rng.uniform(math.log(1e-3), math.log(10)))
    asymptote = rng.uniform(0.01, 1)
    made: dict[type[Curve], Callable[[], Curve]] = {
        LinearCap: lambda: LinearCap(asymptote, scale),
        Exponential: lambda: Exponential(asymptote, 1 / scale),
        Hyperbolic: lambda: Hyperbolic(asymptote, scale),
        PowerLaw: lambda: PowerLaw(asymptote, exponent),
        Logarithmic: lambda: Logarithmic(asymptote, scale, other),
        Power: lambda: Power(asymptote, scale, min(exponent, 1.0)),
    }
    return made[family]()


SCALED: list[type[Curve]] = [LinearCap, Exponential, Hyperbolic, PowerLaw, Logarithmic, Power]
