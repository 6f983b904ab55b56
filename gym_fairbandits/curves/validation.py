"""Whether a curve is in the model of Patil et al."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits.curves.base import LAST_PULL, TOLERANCE, Curve, Scaled, Sum

__all__ = ["check_improving"]

Floats = NDArray[np.float64]

_POWERS = 2 ** np.arange(LAST_PULL.bit_length() - 1)
SCAN_LIMIT = 100_000  # pulls that `check_improving` looks at where no formula decides


def check_improving(curve: Curve, horizon: int, arm: int = 0) -> None:
    """Refuse a curve outside the model of Patil et al. (section 2).

    The rules, each with a tolerance of 1e-9 for rounding: f stays in [0, 1]; it never decreases;
    it is concave from n = 1; and f(2) <= 2 f(1), without which no f(0) >= 0 continues it.

    How far it looks: a curve whose shape is known to be of the model (any :class:`ScaledCurve`,
    others for some of their parameters) is judged whole, by its asymptote, unless it is a family
    of the user's and a look at a few pulls shows that it is not what it says; any other curve at
    pulls 1..``horizon``, at most ``SCAN_LIMIT`` (100,000) of them.

    Args:
        curve: The curve.
        horizon: The number of pulls that may be played.
        arm: The arm's index, for the message.

    Raises:
        TypeError: If ``curve`` is not a :class:`Curve`, or a number is not an integer.
        ValueError: If a rule is broken; the message names arm, pull, values and rule. If a number
            is too small.
    """
    arm = checked_int("arm", arm, minimum=0)
    if not isinstance(curve, Curve):
        raise TypeError(f"arm {arm} must be a `Curve`, got {curve!r}")
    last = min(checked_int("horizon", horizon), SCAN_LIMIT)
    if curve.has_model_shape() and (_of_this_package(curve) or not _belies(curve, last)):
        if not -TOLERANCE <= curve.asymptote <= 1 + TOLERANCE:
            pull = _first_outside(curve)
            raise ValueError(
                f"arm {arm} leaves [0, 1]: f({pull}) = {curve(pull)} with asymptote "
                f"{curve.asymptote} ({curve}); pass `validate=False` to admit general curves"
            )
        return
    problem = _first_problem(curve.evaluate(np.arange(1, last + 1, dtype=np.float64)))
    if problem:
        raise ValueError(f"arm {arm} {problem}; pass `validate=False` to admit general curves")


def _of_this_package(curve: Curve) -> bool:
    if isinstance(curve, Sum):
        return all(_of_this_package(part) for part in curve.curves)
    if isinstance(curve, Scaled):
        return _of_this_package(curve.curve)
    return type(curve).__module__.startswith("gym_fairbandits.")


def _belies(curve: Curve, last: int) -> bool:
    """Return whether pulls 1, 2, 4, 8, ... and ``last`` show a shape outside the model."""
    pulls = np.unique([*_POWERS[: last.bit_length()], last])
    values = curve.evaluate(pulls.astype(np.float64))
    size = TOLERANCE * max(1.0, float(np.abs(values).max()))
    slopes = np.diff(values, prepend=0.0) / np.diff(pulls, prepend=0)
    sign = 1.0 if curve.asymptote >= 0 else -1.0
    falls = not (sign * slopes[1:] >= -size).all()
    bends = not (sign * np.diff(slopes) <= size).all()
    return falls or bends


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


def _first_outside(curve: Curve) -> int:
    """Return the first pull at which a curve with an asymptote outside [0, 1] is seen outside."""

    def outside(pull: int) -> bool:
        return not -TOLERANCE <= curve(pull) <= 1 + TOLERANCE

    high = 1
    while not outside(high) and high < LAST_PULL:
        high *= 2
    low = high // 2  # outside(low) is False, or low is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) else (middle, high)
    return high
