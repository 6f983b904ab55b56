"""Confidence intervals of means and medians over episodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap

from gym_fairbandits._checks import checked_float

__all__ = ["CONFIDENCE", "RESAMPLES", "mean_interval", "median_interval"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 2000


def mean_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return a bootstrap confidence interval of the mean, the same at every call.

    Args:
        values: float64 array of shape ``(n,)``.
        confidence: The level, between 0 and 1.

    Raises:
        TypeError: If ``confidence`` is not a real number.
        ValueError: If it does not lie between 0 and 1.
    """
    if not 0 < checked_float("confidence", confidence) < 1:
        raise ValueError(f"`confidence` must lie between 0 and 1, got {confidence}")
    if len(values) < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        mean = float(values.mean())
        return mean, mean
    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
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
    few for 95 %. NaN if a value is.

    Args:
        values: float64 array of shape ``(n,)``.
    """
    if np.isnan(values).any():
        return float("nan"), float("nan")
    ranked = np.sort(values)
    below = max(int(binom.ppf((1 - CONFIDENCE) / 2, len(ranked), 0.5)) - 1, 0)
    return float(ranked[below]), float(ranked[-1 - below])
