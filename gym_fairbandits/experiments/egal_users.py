"""How regret falls with the number of users (Lim, Tan, Soh, experiment 2): as 1/U."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gym_fairbandits.evaluation._intervals import CONFIDENCE, RESAMPLES, bracketed
from gym_fairbandits.experiments._figures import BOUND, look, means_by, panels
from gym_fairbandits.experiments._settings import labelled
from gym_fairbandits.experiments._two_level import TwoLevelExperiment
from gym_fairbandits.experiments.runner import Row, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EgalUsers", "log_slope"]


def log_slope(
    sizes: Sequence[float], samples: Sequence[Sequence[float]]
) -> tuple[float, float, float, float]:
    """Return the straight line through mean samples over sizes, both in logarithms.

    Args:
        sizes: At least two, above 0.
        samples: A sequence of values per size, of positive mean.

    Returns:
        The slope, a 95 % bootstrap interval of it (samples of a size are redrawn among
        themselves; NaN if a size has only one), and the logarithm of the line at size 1.

    Raises:
        ValueError: If there are fewer than two sizes, or a mean is not positive.
    """
    if len(sizes) < 2:
        raise ValueError(f"`sizes` must hold at least two sizes for a slope, got {list(sizes)}")
    columns = [np.asarray(values, dtype=np.float64) for values in samples]
    means = np.array([values.mean() for values in columns])
    if not (means > 0).all():
        raise ValueError(f"`samples` must have positive means for logarithms, got {means.tolist()}")
    places = np.log(np.asarray(sizes, dtype=np.float64))
    slope, level = np.polyfit(places, np.log(means), 1)
    if min(map(len, columns)) < 2:
        return float(slope), math.nan, math.nan, float(level)
    rng = np.random.default_rng(0)
    redrawn = np.stack(
        [rng.choice(values, (RESAMPLES, len(values))).mean(axis=1) for values in columns]
    )
    with np.errstate(divide="ignore"):
        slopes = np.polyfit(places, np.log(np.maximum(redrawn, 1e-300)), 1)[0]
    low, high = np.quantile(slopes, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(slope), float(low), float(high), float(level)


@dataclass(frozen=True)
class EgalUsers(TwoLevelExperiment):
    """Bernoulli arms of mean 0.8 (as many as users) and 0.5 (the rest), U in powers of 2."""

    num_arms: int = 2**10
    users: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128, 256)
    horizon: int = 2**18

    name: ClassVar[str] = "egal-users"
    title: ClassVar[str] = "Regret falls with the number of users (L, experiment 2)"
    quick: ClassVar[Mapping[str, Any]] = {
        "num_arms": 128,
        "users": (2, 4, 8, 16, 32),
        "horizon": 2**16,
        "num_runs": 10,
    }

    def slopes(self, rows: Sequence[Row]) -> dict[str, tuple[float, float, float, float]]:
        """Return :func:`log_slope` of the regret at the end over U, by agent.

        Numbers of users without regret are left out: U = K has none.
        """
        slopes = {}
        for agent in self.agents:
            own = self.series(self.last(rows), agent=agent)
            samples = {
                users: [row["regret"] for row in own if row["num_users"] == users]
                for users in self.users
            }
            samples = {users: values for users, values in samples.items() if np.mean(values) > 0}
            if len(samples) > 1:
                slopes[agent] = log_slope(list(samples), list(samples.values()))
        return slopes

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the regrets at the end, and the slopes."""
        lines = [
            [labelled(agent), slope, bracketed((low, high), "{:.3f}".format).strip()]
            for agent, (slope, low, high, _) in self.slopes(rows).items()
        ]
        slopes = markdown(["agent", "slope of log regret over log U", "95 %"], lines)
        return f"{super().summary(rows)}\n\n{slopes}"

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw the regret at the end over the number of users, in logarithms, with the fit."""
        figure, ((axis,),) = panels(1, 1, self.title)
        figure.set_size_inches(6, 4.6)
        slopes = self.slopes(rows)
        for number, agent in enumerate(self.agents):
            own = self.series(self.last(rows), agent=agent)
            users, means, low, high = means_by(own, "num_users", "regret")
            style = {**look(number), "linestyle": "none"}
            errors = np.abs(np.array([low, high]) - np.array(means))
            label = labelled(agent)
            if agent in slopes:
                slope, low_slope, high_slope, level = slopes[agent]
                interval = bracketed((low_slope, high_slope), "{:.2f}".format)
                label += f": slope {slope:.2f}{interval}"
                fitted = np.exp(level) * np.array(users, dtype=float) ** slope
                axis.plot(users, fitted, color=style["color"], linewidth=1)
            axis.errorbar(users, means, yerr=errors, capsize=3, label=label, **style)
        bounds = [self.bound(num_users, self.horizon) for num_users in self.users]
        axis.plot(self.users, bounds, linestyle=":", label=self.bound_label, **BOUND)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(self.users, [str(number) for number in self.users])
        axis.set(
            xlabel="users U",
            ylabel=f"regret after {self.horizon:,} steps",
        )
        axis.legend(fontsize="small")
        return figure
