"""Confidence intervals of means and medians over episodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap

from gym_fairbandits._checks import checked_float

__all__ = ["CONFIDENCE", "RESAMPLES", "bracketed", "mean_interval", "median_interval"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 2000
_AT_ONCE = 2**21  # values redrawn at a time: 50 MB


def mean_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return a bootstrap confidence interval of the mean, the same at every call.

    The quantiles of the means of resamples (the percentile bootstrap). For few values it is a bit
    too short: measured on normal values, 95 % intervals cover the mean in 85 % of cases for 5
    values, 91 % for 10 and 93 % for 30.

    Args:
        values: float64 array of shape ``(n,)``.
        confidence: The level, between 0 and 1.

    Returns:
        Both ends; NaN for fewer than two values, which tell nothing of their spread, and the mean
        twice for values that are all the same or not all finite.

    Raises:
        TypeError: If ``confidence`` is not a real number.
        ValueError: If it does not lie between 0 and 1.
    """
    if not 0 < checked_float("confidence", confidence) < 1:
        raise ValueError(f"`confidence` must lie between 0 and 1, got {confidence}")
    if len(values) < 2:
        return math.nan, math.nan
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        mean = float(values.mean())
        return mean, mean
    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, _AT_ONCE // len(values)),
        confidence_level=confidence,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def median_interval(values: Floats) -> tuple[float, float]:
    """Return a 95 % confidence interval of the median, whatever the distribution.

    Two of the sorted values, so that infinite ones do no harm: the one below which the median lies
    with probability 2.5 % at most, because the number of values below the median is binomial with
    probability 1/2, and its mirror image. The extremes where there are fewer than six values, too
    few for 95 %. NaN if a value is, or for fewer than two values.

    Args:
        values: float64 array of shape ``(n,)``.
    """
    if len(values) < 2 or np.isnan(values).any():
        return math.nan, math.nan
    ranked = np.sort(values)
    below = max(int(binom.ppf((1 - CONFIDENCE) / 2, len(ranked), 0.5)) - 1, 0)
    return float(ranked[below]), float(ranked[-1 - below])


def bracketed(interval: tuple[float, float], told: Callable[[float], str]) -> str:
    """Return an interval as it stands behind a number, " [1.0, 2.0]"; "" where there is none."""
    low, high = interval
    return "" if math.isnan(low) or math.isnan(high) else f" [{told(low)}, {told(high)}]"
