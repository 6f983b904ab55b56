"""What the figures of the experiments have in common: size, lines with bands, styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_fairbandits.evaluation import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BOUND", "banded", "look", "means_by", "panels", "share_legend"]

# Told apart without colour too.
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
_MARKERS = "osD^vP*X<>"
BOUND: dict[str, Any] = {"color": "0.35", "linewidth": 1.0}  # how theorems are drawn


def panels(rows: int, columns: int, title: str, **kwargs: Any) -> tuple[Figure, Any]:
    """Return a new figure and its axes, a NumPy array of shape ``(rows, columns)``.

    Nothing of it is known to pyplot, so nothing needs closing.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 + 3.6 * columns, 0.9 + 3.0 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs)
    for axis in axes.flat:
        axis.grid(alpha=0.25, linewidth=0.5)
        axis.locator_params(axis="x", nbins=5)  # numbers of steps are long
    figure.suptitle(title)
    return figure, axes


def look(color: int, line: int = 0) -> dict[str, Any]:
    """Return the colour, line style and marker of a series by its numbers."""
    return {
        "color": f"C{color % 10}",
        "linestyle": _LINES[line % len(_LINES)],
        "marker": _MARKERS[color % len(_MARKERS)],
        "markersize": 4,
    }


def means_by(
    rows: Iterable[dict[str, Any]], x: str, y: str
) -> tuple[list[Any], list[float], list[float], list[float]]:
    """Return the values of ``x`` in order, and of ``y`` there the mean and its 95 % interval."""
    found: dict[Any, list[float]] = {}
    for row in rows:
        found.setdefault(row[x], []).append(row[y])
    places = sorted(found)
    means = [float(np.mean(found[place])) for place in places]
    intervals = [mean_interval(np.array(found[place])) for place in places]
    return places, means, [low for low, _ in intervals], [high for _, high in intervals]


def banded(
    axes: Sequence[Any], rows: Iterable[dict[str, Any]], x: str, y: str, **style: Any
) -> None:
    """Draw the mean of ``y`` over ``x`` with its 95 % band, the same on all ``axes``."""
    places, means, low, high = means_by(rows, x, y)
    for axis in axes:
        axis.plot(places, means, **style)
        axis.fill_between(places, low, high, color=style["color"], alpha=0.2, linewidth=0)


def share_legend(figure: Figure, axes: Sequence[Any], columns: int | None = None) -> None:
    """Put one legend below all panels: each label once."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=columns or min(len(entries), 5),
        fontsize="small",
        frameon=False,
    )
