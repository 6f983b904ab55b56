"""Upper confidence bounds from Kullback-Leibler divergences (Garivier and Cappé 2011)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, xlog1py

from gym_fairbandits._checks import checked_choice

__all__ = ["LAWS", "bernoulli_divergence", "exploration_budget", "kl_upper_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAWS = ("bernoulli", "gaussian")
NEWTON_STEPS = 32  # more than are ever needed
PRECISION = 4 * np.finfo(np.float64).eps
TINY = 1e-200  # so that 0 / 0 is 0


def bernoulli_divergence(first: Floats, second: Floats) -> Floats:
    """Return ``kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))``, elementwise.

    Args:
        first: p, in [0, 1]; float64 array.
        second: q, in [0, 1], of the same shape. Where q is 0 or 1 and p is not, kl is infinite.
    """
    return _divergence_across(first, second - first)


def _divergence_across(means: Floats, gaps: Floats) -> Floats:
    """Return kl(p, p + gap): exact to rounding also where the gap is tiny."""
    misses = 1 - means
    up = xlog1py(means, gaps / np.maximum(means, TINY))
    down = xlog1py(misses, -gaps / np.maximum(misses, TINY))
    return np.asarray(-up - down, dtype=np.float64)


def exploration_budget(steps: Ints, c: float) -> Floats:
    """Return ``max(0, ln t + c ln ln t)``: what n kl(mean, q) may amount to after t steps.

    Args:
        steps: t; int64 array. At t = 0 and 1 the budget is 0.
        c: The constant: 3 in the theory, 0 recommended in practice.
    """
    log: Floats = np.log(np.maximum(steps, 1).astype(np.float64))
    budget: Floats = np.maximum(log + c * np.log(np.maximum(log, TINY)), 0.0)
    return budget


def kl_upper_bound(
    means: Floats, divergence_budget: Floats, law: str = "bernoulli", sigma: float = 1.0
) -> Floats:
    """Return the largest q with ``kl(mean, q) <= budget``, elementwise.

    Args:
        means: Empirical means; float64 array. Under the Bernoulli law those outside [0, 1], which
            noise can make, count as the nearer end.
        divergence_budget: At least 0, of the same shape, usually :func:`exploration_budget` over
            the pulls of an arm. Infinity, for an arm not pulled yet, gives the largest possible
            mean: 1, or infinity under the Gaussian law.
        law: ``"bernoulli"``; it also serves any reward in [0, 1], whose bound is then valid but
            loose. Or ``"gaussian"``: ``kl(m, q) = (m - q)^2 / (2 sigma^2)``.
        sigma: Standard deviation, read by the Gaussian law only.

    Raises:
        ValueError: If ``law`` is unknown.
    """
    if checked_choice("law", law, LAWS) == "gaussian":
        return means + sigma * np.sqrt(2 * divergence_budget)
    clipped: Floats = np.clip(means, 0.0, 1.0)
    return _bernoulli_upper_bound(clipped, divergence_budget)


def _bernoulli_upper_bound(means: Floats, budget: Floats) -> Floats:
    """Solve kl(p, p + gap) = budget for gap >= 0 by Newton's method from above.

    In the gap, kl - budget is convex and rises: from a start that is not below the solution every
    step comes nearer and none passes it. Two starts: Pinsker's sqrt(budget / 2), and where
    ``-p ln q >= 0`` is left out of kl, which is nearly exact for q close to 1.
    """
    misses = 1 - means
    exponent = (budget + entr(means) + entr(misses)) / np.maximum(misses, TINY)
    gaps = np.minimum(np.sqrt(budget / 2), -np.expm1(-exponent) - means)
    gaps = np.clip(gaps, 0.0, misses)
    for _ in range(NEWTON_STEPS):
        inside = (gaps > 0) & (gaps < misses)
        gap, p = np.where(inside, gaps, 0.25), np.where(inside, means, 0.5)
        spread = (p + gap) * (1 - (p + gap))
        step = (_divergence_across(p, gap) - budget) * spread / gap
        # What is as near as rounding allows stays as it is, whatever else is in the batch.
        far = inside & (step > PRECISION * (gap + spread))
        if not far.any():
            break
        gaps = np.where(far, np.maximum(gap - step, 0.0), gaps)
    return np.minimum(means + gaps, 1.0)
