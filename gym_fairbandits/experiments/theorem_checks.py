"""Every claim of both papers as an experiment: one table of what holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from gym_fairbandits._checks import checked_choice
from gym_fairbandits.experiments import theorems
from gym_fairbandits.experiments._figures import BOUND, panels, share_legend
from gym_fairbandits.experiments._settings import checked_choices
from gym_fairbandits.experiments.runner import PRESETS, Experiment, Row, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TheoremChecks"]

MARKERS = {"<=": "<", ">=": ">", "=": "o"}  # where measured should lie beside the bound


@dataclass(frozen=True)
class TheoremChecks(Experiment):
    """The checks of :mod:`gym_fairbandits.experiments.theorems`.

    A row is one of their rows: what was measured, the bound, and the verdict.

    Attributes:
        preset: ``"quick"`` or ``"paper"``: how much is played.
        checks: Which; keys of :data:`gym_fairbandits.experiments.theorems.CHECKS`.
    """

    preset: str = "paper"
    checks: tuple[str, ...] = tuple(theorems.CHECKS)

    name: ClassVar[str] = "theorems"
    title: ClassVar[str] = "The papers' claims, checked"
    quick: ClassVar[Mapping[str, Any]] = {"preset": "quick"}

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        checked_choice("preset", self.preset, PRESETS)
        checks = checked_choices("checks", self.checks, tuple(theorems.CHECKS))
        object.__setattr__(self, "checks", checks)

    def tasks(self) -> list[Task]:
        """Return a task per check."""
        return [Task(name.replace("_", "-"), {"check": name}) for name in self.checks]

    def perform(self, task: Task) -> list[Row]:
        """Run a check."""
        rows = theorems.run(self.preset, self.seed, [task.parameters["check"]])
        return [{**asdict(row), "holds": row.holds, "verdict": row.verdict} for row in rows]

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the table of claims."""
        names = [field.name for field in fields(theorems.ClaimRow)]
        return theorems.table(
            [theorems.ClaimRow(**{name: row[name] for name in names}) for row in rows]
        )

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw a line per row: measured over bound, coloured by the verdict."""
        figure, ((axis,),) = panels(1, 1, self.title)
        figure.set_size_inches(9, 1.6 + 0.2 * len(rows))
        axis.set_xscale("log")
        for place, row in enumerate(rows):
            color = _color(row["verdict"])
            ratio = _over(row["measured"], row["bound"])
            if ratio is None:
                told = f"{row['measured']:.3g}, must be {row['relation']} {row['bound']:.3g}"
                axis.text(1.2, place, told, color=color, fontsize="x-small", va="center")
            else:
                axis.plot(ratio, place, MARKERS[row["relation"]], color=color)
        for verdict in dict.fromkeys(row["verdict"] for row in rows):
            axis.plot([], [], "s", color=_color(verdict), label=verdict)
        axis.axvline(1, **BOUND)
        labels = [f"{row['paper']}, {row['claim']} ({row['form']})" for row in rows]
        axis.set_yticks(range(len(rows)), labels, fontsize="x-small")
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xlabel("measured / bound; ◂ must lie left of 1, ▸ right of it")
        share_legend(figure, [axis])
        return figure


def _color(verdict: str) -> str:
    if verdict.startswith("fails"):
        return "C3"
    return "C0" if verdict.endswith("corrected") else "C2"


def _over(measured: float, bound: float) -> float | None:
    """Return measured / bound, if an axis in logarithms has it."""
    if measured == bound:
        return 1.0
    ratio = measured / bound if bound else math.inf
    return ratio if 0 < ratio < math.inf else None
