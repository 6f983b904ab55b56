"""Bootstrap intervals of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

from gym_fairbandits._checks import checked_float

__all__ = ["CONFIDENCE", "mean_interval"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
_RESAMPLES = 2000


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
        n_resamples=_RESAMPLES,
        confidence_level=confidence,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)
