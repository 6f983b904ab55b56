"""Figure 1 of Patil et al., and what a late bloomer costs agents: regret over when it blooms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gym_fairbandits._checks import checked_int
from gym_fairbandits.curves import Curve
from gym_fairbandits.experiments._figures import BOUND, banded, look, means_by, panels, share_legend
from gym_fairbandits.experiments._settings import (
    checked_agents,
    checked_ints,
    labelled,
    named_agent,
)
from gym_fairbandits.experiments.engine import simulate
from gym_fairbandits.experiments.runner import Experiment, Row, Task, markdown
from gym_fairbandits.instances import early_vs_late

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LateBloomer", "crossing"]

ENV_ID = "ImprovingBandit-v0"
MOST_COLUMNS = 8  # of the printed table


def crossing(early: Curve, late: Curve, most: int) -> int | None:
    """Return tau, the first T at which ``late`` throughout pays more than ``early`` throughout.

    ``None`` if there is none up to ``most``; once ahead, a late bloomer stays ahead.
    """
    steps = np.arange(1, most + 1)
    ahead = late.cumulative(steps) > early.cumulative(steps)
    return int(steps[ahead.argmax()]) if ahead.any() else None


@dataclass(frozen=True)
class LateBloomer(Experiment):
    """Two arms, ``min(n/4, 1/2)`` and ``min(n/ramp, 1)``, the second ever slower.

    A row is one run of an agent. tau is the number of steps from which on the late bloomer is the
    better arm; if it exceeds T, the early gifted arm is.

    Attributes:
        agents: Their names.
        ramps: How many pulls the late bloomer needs to reach its potential.
        horizon: T.
        num_runs: How many runs; they differ only for agents that draw random numbers.
    """

    agents: tuple[str, ...] = (
        "anytime-improving",
        "round-robin",
        "greedy",
        "horizon-aware-improving",
        "single-peaked-optimism",
        "random-round-robin",
    )
    ramps: tuple[int, ...] = tuple(round(10 * 2 ** (n / 2)) for n in range(25))
    horizon: int = 10_000
    num_runs: int = 30

    name: ClassVar[str] = "late-bloomer"
    title: ClassVar[str] = "An early gifted arm and a late bloomer (P, Figure 1)"
    quick: ClassVar[Mapping[str, Any]] = {
        "ramps": tuple(10 * 2**n for n in range(9)),
        "horizon": 1_000,
        "num_runs": 10,
    }

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        object.__setattr__(self, "agents", checked_agents(self.agents, ENV_ID))
        object.__setattr__(self, "ramps", checked_ints("ramps", self.ramps))
        checked_int("horizon", self.horizon)
        checked_int("num_runs", self.num_runs)

    def tasks(self) -> list[Task]:
        """Return a task per ramp and agent."""
        return [
            Task(f"ramp-{ramp}-{agent}", {"ramp": ramp, "agent": agent})
            for ramp in self.ramps
            for agent in self.agents
        ]

    def perform(self, task: Task) -> list[Row]:
        """Play an agent against a ramp; return a row per run."""
        ramp, agent = task.parameters["ramp"], task.parameters["agent"]
        early, late = early_vs_late(late_ramp=ramp)
        runs = simulate(
            named_agent(agent, ENV_ID, self.horizon),
            [early, late],
            num_users=None,
            horizon=self.horizon,
            num_runs=self.num_runs,
            seed=self.seed,
        )
        tau = crossing(early, late, 2 * ramp)  # ahead once half of the ramp pays more than 1/2
        return [
            {
                "ramp": ramp,
                "tau": tau,
                "agent": agent,
                "run": run,
                "optimum": float(runs.optimum[run, 0]),
                "regret": float(runs.policy_regret[run, 0]),
                "regret_share": float(runs.policy_regret[run, 0] / runs.optimum[run, 0]),
                "late_pull_share": float(runs.pulls[run, 1] / self.horizon),
            }
            for run in range(self.num_runs)
        ]

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the lost share of the optimum: a line per agent, a column for some ramps."""
        ramps = sorted(self.ramps)
        shown = ramps[:: -(-len(ramps) // MOST_COLUMNS)]
        lines = []
        for agent in self.agents:
            own = [row for row in rows if row["agent"] == agent and row["ramp"] in shown]
            lines.append([labelled(agent), *means_by(own, "ramp", "regret_share")[1]])
        return markdown(["agent: regret / OPT", *(f"ramp {ramp}" for ramp in shown)], lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw the arms, and the lost share of the optimum over tau."""
        figure, ((arms, losses),) = panels(1, 2, self.title)
        early, late = early_vs_late()
        tau = crossing(early, late, 1000)
        pulls = np.arange(1, 61)
        arms.plot(pulls, early(pulls), color="0.2", linestyle="--")
        arms.plot(pulls, late(pulls), color="0.2")
        arms.annotate(
            "early gifted", (60, 0.5), xytext=(0, 4), textcoords="offset points", ha="right"
        )
        arms.annotate(
            "late bloomer", (60, 1.0), xytext=(0, -14), textcoords="offset points", ha="right"
        )
        arms.axvline(tau, **BOUND, linestyle=":")
        arms.annotate(rf"$\tau$ = {tau}", (tau, 0.05), xytext=(4, 0), textcoords="offset points")
        arms.set(xlabel="pulls n", ylabel="reward f(n)", ylim=(0, 1.08))
        for number, agent in enumerate(self.agents):
            own = [row for row in rows if row["agent"] == agent and row["tau"] is not None]
            style = look(number, number)
            banded([losses], own, "tau", "regret_share", label=labelled(agent), **style)
        losses.axvline(self.horizon, **BOUND, linestyle=":")
        losses.annotate(
            "T",
            (self.horizon, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="top",
        )
        losses.set(
            xlabel=rf"$\tau$, when the late bloomer is ahead (T = {self.horizon:,})",
            ylabel="regret / OPT(T)",
            xscale="log",
            ylim=(-0.02, None),
        )
        share_legend(figure, [losses], columns=3)
        return figure
