"""Families that rise from low to high and are in the model for some shape parameters only.

Outside the model they are slow to begin with, convex before they are concave. Their sums have no
closed form that is stable, so they cost O(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from gym_fairbandits.curves.base import ShapedCurve, check_parameters

__all__ = ["Gompertz", "Hill", "Logistic", "Weibull"]

Floats = NDArray[np.float64]

# Beyond, both exp(x) and exp(-x) leave what a float64 holds; the shapes there are 0 or 1.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Logistic(ShapedCurve):
    """``asymptote / (1 + exp(-steepness * (n - midpoint)))``.

    Convex before the midpoint and concave after it: always in the model if the midpoint is at
    most 1, and never for much later ones.

    Attributes:
        asymptote: The limit of the reward.
        steepness: How fast it rises, per pull; above 0.
        midpoint: The pull at which half of the asymptote is reached; any number.
    """

    asymptote: float
    steepness: float
    midpoint: float
    family: ClassVar[str] = "logistic"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, steepness={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 / (1 + exp(-steepness * (n - midpoint)))``."""
        steepness, midpoint = parameters
        values: Floats = expit(steepness * (pulls - midpoint))
        return values

    def has_model_shape(self) -> bool:
        """Return whether all pulls lie in the concave part."""
        # There f(2) <= 2 f(1) too: f(1) is at least half of the asymptote, or f continues
        # concavely to f(0) > 0.
        return self.midpoint <= 1


@dataclass(frozen=True)
class Gompertz(ShapedCurve):
    """``asymptote * exp(-displacement * exp(-rate * n))``.

    Concave from ``n = log(displacement) / rate`` on: always in the model if the displacement is
    at most 1.

    Attributes:
        asymptote: The limit of the reward.
        displacement: How far below the asymptote it starts, on a logarithmic scale; above 0.
        rate: How fast it is approached, per pull; above 0.
    """

    asymptote: float
    displacement: float
    rate: float
    family: ClassVar[str] = "gompertz"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, displacement={"above": 0}, rate={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``exp(-displacement * exp(-rate * n))``."""
        displacement, rate = parameters
        return np.exp(-displacement * np.exp(-rate * pulls))

    def has_model_shape(self) -> bool:
        """Return whether it is concave from n = 0, where it is positive."""
        return self.displacement <= 1


@dataclass(frozen=True)
class Weibull(ShapedCurve):
    """``asymptote * (1 - exp(-((n / scale) ** exponent)))``.

    In the model if the exponent is at most 1; with exponent 1 it is an exponential curve.

    Attributes:
        asymptote: The limit of the reward.
        scale: Pulls after which 63 % of the asymptote is reached; above 0.
        exponent: Above 0.
    """

    asymptote: float
    scale: float
    exponent: float
    family: ClassVar[str] = "weibull"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, scale={"above": 0}, exponent={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 - exp(-((n / scale) ** exponent))``."""
        scale, exponent = parameters
        logs = np.minimum(exponent * np.log(pulls / scale), _LARGEST_EXPONENT)
        return -np.expm1(-np.exp(logs))

    def has_model_shape(self) -> bool:
        """Return whether it is concave from n = 0, where it is 0."""
        return self.exponent <= 1


@dataclass(frozen=True)
class Hill(ShapedCurve):
    """``asymptote * n ** exponent / (n ** exponent + half_saturation ** exponent)``.

    In the model if the exponent is at most 1; with exponent 1 it is a hyperbolic curve.

    Attributes:
        asymptote: The limit of the reward.
        half_saturation: Pulls after which half of the asymptote is reached; above 0.
        exponent: Above 0.
    """

    asymptote: float
    half_saturation: float
    exponent: float
    family: ClassVar[str] = "hill"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, half_saturation={"above": 0}, exponent={"above": 0})

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        """Return ``1 / (1 + (half_saturation / n) ** exponent)``."""
        half, exponent = parameters
        values: Floats = expit(exponent * np.log(pulls / half))
        return values

    def has_model_shape(self) -> bool:
        """Return whether it is concave from n = 0, where it is 0."""
        return self.exponent <= 1
