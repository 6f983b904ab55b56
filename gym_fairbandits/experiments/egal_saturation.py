"""Regret as the users become as many as the arms (Lim, Tan, Soh, experiment 3): then it is 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gym_fairbandits.experiments._figures import BOUND, banded, look, panels
from gym_fairbandits.experiments._settings import labelled
from gym_fairbandits.experiments._two_level import TwoLevelExperiment
from gym_fairbandits.experiments.runner import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EgalSaturation"]


@dataclass(frozen=True)
class EgalSaturation(TwoLevelExperiment):
    """Bernoulli arms of mean 0.8 (as many as users) and 0.5 (the rest), U up to K.

    The paper does not state the means; these are those of its experiment 2. With U = K every
    rotation is optimal: the regret is exactly 0 where U divides T.
    """

    num_arms: int = 20
    users: tuple[int, ...] = tuple(range(2, 21, 2))
    horizon: int = 126_000

    name: ClassVar[str] = "egal-saturation"
    title: ClassVar[str] = "Regret vanishes as users become as many as arms (L, experiment 3)"
    quick: ClassVar[Mapping[str, Any]] = {"horizon": 25_200, "num_runs": 10}

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw the regret at the end over the number of users, linear and in logarithms."""
        figure, ((linear, logarithmic),) = panels(1, 2, self.title)
        for number, agent in enumerate(self.agents):
            own = self.series(self.last(rows), agent=agent)
            style = look(number, number)
            banded(
                (linear, logarithmic), own, "num_users", "regret", label=labelled(agent), **style
            )
        bounds = [self.bound(num_users, self.horizon) for num_users in self.users]
        logarithmic.plot(self.users, bounds, linestyle=":", label=self.bound_label, **BOUND)
        logarithmic.set_yscale("symlog", linthresh=1)
        logarithmic.legend(fontsize="small")
        for axis in (linear, logarithmic):
            axis.set(xlabel="users U", ylabel=f"regret after {self.horizon:,} steps")
            axis.set_ylim(bottom=0)
            axis.set_xticks(self.users)
        return figure
