"""Figure 3 of Lim, Tan, Soh: regret over time of random arms, under three laws of rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gym_fairbandits.bounds import egal_regret
from gym_fairbandits.experiments._assignment import AssignmentExperiment
from gym_fairbandits.experiments._figures import BOUND, banded, look, panels, share_legend
from gym_fairbandits.experiments._settings import checked_choices
from gym_fairbandits.experiments.runner import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LAWS", "EgalSynthetic"]

LAWS: dict[str, tuple[str, Any]] = {  # by name: what figures call it, the instance
    "gaussian-1": ("Gaussian, variance 1", {"name": "gaussian", "variance": 1.0}),
    "gaussian-0.1": ("Gaussian, variance 0.1", {"name": "gaussian", "variance": 0.1}),
    "bernoulli": ("Bernoulli", "bernoulli"),
}


@dataclass(frozen=True)
class EgalSynthetic(AssignmentExperiment):
    """Arms with means uniform on [0.01, 0.99], drawn anew for each run.

    Above, the figure of the paper; below, the same in logarithms, with the bound of Theorem 2,
    which holds for EgalUCB on every instance.

    Attributes:
        law_names: Which laws; keys of ``LAWS``.
    """

    law_names: tuple[str, ...] = tuple(LAWS)

    name: ClassVar[str] = "egal-synthetic"
    title: ClassVar[str] = "Regret over time, random arms (L, Figure 3)"
    quick: ClassVar[Mapping[str, Any]] = {"horizon": 15_000, "num_runs": 10}

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        names = checked_choices("law_names", self.law_names, tuple(LAWS))
        object.__setattr__(self, "law_names", names)

    def laws(self) -> Sequence[str]:
        """Return the names of the laws."""
        return self.law_names

    def instance(self, law: str, num_users: int) -> Any:
        """Return the random arms of a law."""
        return LAWS[law][1]

    def bound(self, num_users: int, steps: int) -> float:
        """Return the bound of Theorem 2."""
        return egal_regret(self.num_arms, num_users, steps)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw a column per law: regret over time, a line per number of users and agent."""
        figure, axes = panels(2, len(self.law_names), self.title)
        for column, law in enumerate(self.law_names):
            for color, num_users in enumerate(self.users):
                for line, agent in enumerate(self.agents):
                    own = self.series(rows, law=law, num_users=num_users, agent=agent)
                    label = self.label(num_users, agent)
                    style = {**look(color, line), "marker": None}
                    banded(axes[:, column], own, "step", "regret", label=label, **style)
                steps = self.checkpoints(num_users)
                bounds = [self.bound(num_users, step) for step in steps]
                axes[1, column].plot(steps, bounds, **{**BOUND, "color": f"C{color}"})
            axes[0, column].set(title=LAWS[law][0], xlabel="steps", ylabel="regret", ylim=(0, None))
            axes[1, column].set(xlabel="steps", ylabel="regret", xscale="log", yscale="log")
            axes[1, column].set_title("thin lines: Theorem 2, EgalUCB", fontsize="small")
        share_legend(figure, axes[0], columns=len(self.users))
        return figure
