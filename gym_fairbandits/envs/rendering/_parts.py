"""What scenes are made of: headings, axes, gaps in long lists, numbers in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ROWS", "Axis", "Gap", "Heading", "axis_around", "cut", "heading", "number", "round_up"]

ROWS = 16  # arms or users that a frame shows one by one; more would be too small to read
_ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # times a power of ten: where axes may end


@dataclass(frozen=True)
class Heading:
    """The top of a frame.

    Attributes:
        title: Which environment this is.
        facts: Labels and values, such as ``("step", "37")``.
    """

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Axis:
    """A range of values with round ends; it holds 0.

    Attributes:
        low: Its lower end.
        high: Its upper end.
    """

    low: float
    high: float

    @property
    def span(self) -> str:
        """The ends in words."""
        return f"from {self.low:g} to {self.high:g}"

    def place(self, value: float) -> float:
        """Return where ``value`` lies between the ends, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Gap:
    """Rows that are left out.

    Attributes:
        position: How many rows are shown above them.
        note: How many they are, and what they add up to.
    """

    position: int
    note: str


def heading(
    title: str,
    steps: int,
    horizon: int | None,
    facts: Sequence[tuple[str, str]],
    readouts: Mapping[str, float],
) -> Heading:
    """Return the top of a frame.

    Args:
        title: Which environment this is.
        steps: Steps played.
        horizon: Steps of the episode; ``None`` where the learner is not told.
        facts: What the environment adds.
        readouts: What wrappers add; NaN is left blank. They may still speak of the last episode
            when a vector environment has just begun a new one, so before the first step they
            are left blank too.
    """
    step = f"{steps}" if horizon is None else f"{steps} of {horizon}"
    extra = [
        (label, "-" if steps == 0 or math.isnan(value) else number(value))
        for label, value in readouts.items()
    ]
    return Heading(title, (("step", step), *facts, *extra))


def cut(ranking: list[int], bottom: int, wanted: list[int]) -> tuple[list[int], int, list[int]]:
    """Choose what is shown of a ranked list.

    Args:
        ranking: Indices, the most interesting ones at both ends.
        bottom: How many of the lower end are shown if not all fit.
        wanted: What must be shown, if need be in place of the upper end's last.

    Returns:
        The shown indices, how many of them stand above the gap, and those that are left out.
        If all fit they stand by index and nothing is left out.
    """
    if len(ranking) <= ROWS:
        return sorted(ranking), len(ranking), []
    top = ROWS - 1 - bottom  # one row tells of the rest
    end = len(ranking) - bottom
    upper, middle = ranking[:top], ranking[top:end]
    for index in wanted:
        if index in middle:
            middle[middle.index(index)] = upper[-1]
            upper[-1] = index
    return [*upper, *ranking[end:]], top, middle


def number(value: float) -> str:
    """Return a number in at most 9 characters; whole numbers below 10^7 in full."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 9_999_999.5:
        return f"{value:.2e}"
    if isinstance(value, int) or size == 0:
        return f"{value:.0f}"
    decimals = 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{value:.{decimals}f}"


def axis_around(values: Any) -> Axis:
    """Return an axis with round ends that holds 0 and all of ``values``."""
    listed = [0.0, *values]
    low, high = min(listed), max(listed)
    if low == high:
        return Axis(0.0, 1.0)
    return Axis(-round_up(-low) if low < 0 else 0.0, round_up(high) if high > 0 else 0.0)


def round_up(value: float) -> float:
    """Return the next round number; ``value`` is above 0."""
    power = 10.0 ** math.floor(math.log10(value))
    reached = (step * power for step in _ROUND if value <= step * power * (1 + 1e-9))
    return next(reached)
