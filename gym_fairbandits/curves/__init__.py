"""Reward curves of improving arms: what the n-th pull of an arm pays, and sums of it.

A curve is a function f of the number of pulls n = 1, 2, ...: ``curve(n)`` is the expected reward
of the n-th pull and ``curve.cumulative(n)`` the total of the first n, which is what the offline
optimum and the policy regret of Patil et al. are made of. In their model ("IMAB", section 2) a
curve stays in [0, 1], never decreases, and rises ever more slowly; :func:`check_improving` says
whether it does.

Every formula is evaluated through elementwise NumPy ufuncs on float64 arrays, never through
``math`` or ``**``, whose last bits differ: so a curve pays the same to a single environment and
to one of ten thousand in a batch.

Curves add up and scale: ``first + second`` and ``2 * curve`` are curves too.

To add a family, subclass :class:`ScaledCurve` (a concave shape that rises from 0 to 1, times an
asymptote), :class:`ShapedCurve` (any shape that rises) or :class:`Curve` (anything else) as a
frozen dataclass with a ``family`` name.
"""

from __future__ import annotations

from gym_fairbandits.curves.base import (
    TOLERANCE,
    Curve,
    Scaled,
    ScaledCurve,
    ShapedCurve,
    Sum,
    from_dict,
)
from gym_fairbandits.curves.general import (
    NoveltyDecay,
    PiecewiseLinear,
    SinglePeaked,
    Tabulated,
    UnshiftedPowerLaw,
)
from gym_fairbandits.curves.improving import (
    Constant,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Polynomial,
    Power,
    PowerLaw,
)
from gym_fairbandits.curves.saturating import Gompertz, Hill, Logistic, Weibull
from gym_fairbandits.curves.validation import check_improving

__all__ = [
    "TOLERANCE",
    "Constant",
    "Curve",
    "Exponential",
    "Gompertz",
    "Hill",
    "Hyperbolic",
    "LinearCap",
    "Logarithmic",
    "Logistic",
    "NoveltyDecay",
    "PiecewiseLinear",
    "Polynomial",
    "Power",
    "PowerLaw",
    "Scaled",
    "ScaledCurve",
    "ShapedCurve",
    "SinglePeaked",
    "Sum",
    "Tabulated",
    "UnshiftedPowerLaw",
    "Weibull",
    "check_improving",
    "from_dict",
]
