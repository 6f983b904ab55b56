"""Sums of smooth curves in O(1), where textbook closed forms lose their digits.

Differences such as ``n - h * (digamma(n + h + 1) - digamma(h + 1))`` cancel once the curve is
still close to 0, and SciPy's Hurwitz zeta is undefined for exponents up to 1. So every sum here
is built from terms of one sign: the first ``HEAD`` values are added one by one, and the rest
follows from the Euler-Maclaurin formula (https://dlmf.nist.gov/2.10.i) with an integral that
does not cancel. All functions are elementwise on float64 arrays of any common shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel

__all__ = [
    "ORDERS",
    "euler_maclaurin",
    "integral_log1p",
    "integral_power_complement",
    "log1p_gap",
    "sum_exponential",
]

Floats = NDArray[np.float64]

HEAD = 16  # the smallest argument of the Euler-Maclaurin part; its error falls like HEAD ** -10
ORDERS = (1, 3, 5, 7, 9)  # orders of the derivatives that the corrections use
_WEIGHTS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)  # B_2k / (2k)!, k = 1..5

# Gauss-Legendre nodes and weights: exact to the last digits for exp(x u), u in [0, 1] and x up
# to _LONGEST.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
_LONGEST = 40.0


def euler_maclaurin(
    values: Callable[[Floats], Floats],
    integral: Callable[[Floats, Floats], Floats],
    derivative: Callable[[Floats, int], Floats],
    count: Floats,
) -> Floats:
    """Return ``values(1) + ... + values(count)``, elementwise.

    Args:
        values: The function g, smooth on [HEAD, inf).
        integral: ``integral(a, b)``, the integral of g from a to b.
        derivative: ``derivative(x, order)`` of g, for each order of ``ORDERS``.
        count: Whole numbers of at least 0, float64 array.
    """
    total = np.zeros_like(count)
    for term in range(1, HEAD + 1):
        total += np.where(count >= term, values(np.full_like(count, term)), 0.0)
    first = np.full_like(count, HEAD)
    last = np.maximum(count, HEAD)  # with last == first the tail below is exactly 0
    total += integral(first, last) + (values(last) - values(first)) / 2
    for order, weight in zip(ORDERS, _WEIGHTS, strict=True):
        total += weight * (derivative(last, order) - derivative(first, order))
    return total


def log1p_gap(y: Floats) -> Floats:
    """Return ``y - log(1 + y)`` for ``y >= 0``, to full precision also for small ``y``."""
    # With z = y / (2 + y), log(1 + y) = 2 artanh(z) and y - 2 z = y z: the leading terms of the
    # difference cancel on paper instead of in floats.
    z = y / (2 + y)
    square = z * z
    series = np.zeros_like(z)
    for power in range(17, 1, -2):
        series = series * square + 2 / power
    return np.where(y < 0.2, y * z - series * square * z, y - np.log1p(y))


def integral_log1p(a: Floats, b: Floats, scale: Floats) -> Floats:
    """Return the integral of ``log(1 + x / scale)`` from ``a`` to ``b``."""

    def antiderivative(x: Floats) -> Floats:
        y = x / scale
        low = np.minimum(y, 1.0)
        small = low * low - (1 + low) * log1p_gap(low)
        return scale * np.where(y < 1, small, (1 + y) * np.log1p(y) - y)

    return antiderivative(b) - antiderivative(a)


def integral_power_complement(a: Floats, b: Floats, exponent: Floats, scale: Floats) -> Floats:
    """Return the integral of ``1 - (1 + x / scale) ** -exponent`` from ``a`` to ``b``."""

    # With l = log(1 + x / scale) and d = exponent * l the integral from 0 to x is
    # scale * l * (exprel(l) - exprel(l - d)); where the two cancel it is known as
    # scale * l times the integral of exp(l u) (1 - exp(-d u)) over u in [0, 1].
    def antiderivative(x: Floats) -> Floats:
        length = np.log1p(x / scale)
        decay = exponent * length
        near = np.zeros_like(decay)
        short, slow = np.minimum(length, _LONGEST), np.minimum(decay, 1.0)
        for node, weight in zip((1 + _NODES) / 2, _NODE_WEIGHTS / 2, strict=True):
            near -= weight * np.exp(node * short) * np.expm1(-node * slow)
        far = exprel(length) - exprel(length - decay)
        return scale * length * np.where((decay < 1) & (length < _LONGEST), near, far)

    return antiderivative(b) - antiderivative(a)


def sum_exponential(count: Floats, rate: Floats) -> Floats:
    """Return the sum of ``1 - exp(-rate * m)`` over m = 1..count.

    The geometric sum splits into two terms that are never negative:
    ``(x + expm1(-x)) / rate + (1 - exp(-x)) * (1 / rate - 1 / expm1(rate))`` with
    ``x = rate * count``.
    """
    x = rate * count
    near = np.minimum(x, 0.1)  # where the series is used; beyond, powers could overflow
    series = np.zeros_like(x)
    for power in range(11, 1, -1):
        series = (-1) ** power / math.factorial(power) + near * series
    excess = np.where(x < 0.1, near * near * series, x + np.expm1(-x))
    slow = np.minimum(rate, 0.1)
    square = slow * slow
    lag_series = 0.5 - slow * (
        1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600))
    )
    lag = np.where(rate < 0.1, lag_series, 1 / rate + np.exp(-rate) / np.expm1(-rate))
    total: Floats = excess / rate - np.expm1(-x) * lag
    return total
