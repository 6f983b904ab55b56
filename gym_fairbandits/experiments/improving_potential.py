"""Theorem 5 of Patil et al.: under Algorithm 1 every arm comes near its potential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from gym_fairbandits._checks import checked_float, checked_int
from gym_fairbandits.agents import Agent
from gym_fairbandits.experiments._figures import banded, look, means_by, panels, share_legend
from gym_fairbandits.experiments._settings import checked_agents, labelled, named_agent
from gym_fairbandits.experiments.runner import Experiment, Row, Task, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ImprovingPotential"]

ENV_ID = "ImprovingBandit-v0"


@dataclass(frozen=True)
class ImprovingPotential(Experiment):
    """How far arms are from their potentials, a_i - f_i(N_i), over time on random concave arms.

    A row is one run of an agent up to one step: the largest gap of any arm, the mean gap, and
    1 in ``near`` if all gaps are at most ``epsilon``.

    Attributes:
        agents: Their names.
        num_arms: k.
        horizon: T.
        num_runs: How many runs, each on an instance of its own.
        num_checkpoints: At how many steps gaps are taken; evenly spread in logarithms.
        epsilon: When an arm counts as near its potential.
    """

    agents: tuple[str, ...] = ("anytime-improving", "round-robin", "greedy")
    num_arms: int = 5
    horizon: int = 1_000_000
    num_runs: int = 100
    num_checkpoints: int = 40
    epsilon: float = 0.05

    name: ClassVar[str] = "improving-potential"
    title: ClassVar[str] = "Distance of arms from their potentials (P, Theorem 5)"
    quick: ClassVar[Mapping[str, Any]] = {"horizon": 20_000, "num_runs": 20, "num_checkpoints": 25}

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        object.__setattr__(self, "agents", checked_agents(self.agents, ENV_ID))
        for name in ("num_arms", "horizon", "num_runs", "num_checkpoints"):
            checked_int(name, getattr(self, name))
        checked_float("epsilon", self.epsilon, above=0)

    def tasks(self) -> list[Task]:
        """Return a task per agent."""
        return [Task(agent, {"agent": agent}) for agent in self.agents]

    def checkpoints(self) -> list[int]:
        """Return the steps at which gaps are taken; the last is T."""
        spread = np.geomspace(1, self.horizon, self.num_checkpoints)
        return sorted({*spread.round().astype(int).tolist(), self.horizon})

    def perform(self, task: Task) -> list[Row]:
        """Play an agent; return a row per run and checkpoint."""
        name = task.parameters["agent"]
        envs: Any = gym.make_vec(
            ENV_ID,
            num_envs=self.num_runs,
            num_arms=self.num_arms,
            horizon=self.horizon,
        )
        made = named_agent(name, ENV_ID, self.horizon)
        agent = made if isinstance(made, Agent) else made(envs)
        agent.reset(seed=self.seed)
        observation, _ = envs.reset(seed=self.seed)
        rows: list[Row] = []
        steps = 0
        for checkpoint in self.checkpoints():
            for _ in range(checkpoint - steps):
                observation, _, _, _, _ = envs.step(agent.act(observation))
            steps = checkpoint
            gaps = envs.potential_gaps()
            rows += [
                {
                    "agent": name,
                    "run": run,
                    "step": steps,
                    "max_potential_gap": float(own.max()),
                    "mean_potential_gap": float(own.mean()),
                    "near": float(own.max() <= self.epsilon),
                }
                for run, own in enumerate(gaps)
            ]
        envs.close()
        return rows

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the gaps at the end by agent."""
        lines = []
        for agent in self.agents:
            last = [row for row in rows if row["agent"] == agent and row["step"] == self.horizon]
            largest, mean, near = (
                means_by(last, "step", name)[1][0]
                for name in ("max_potential_gap", "mean_potential_gap", "near")
            )
            lines.append([labelled(agent), largest, mean, near])
        columns = [
            "agent",
            "largest gap",
            "mean gap",
            f"share of runs with all <= {self.epsilon:g}",
        ]
        return markdown(columns, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw the largest gap, and the share of runs in which all gaps are small, over time."""
        figure, ((gaps, shares),) = panels(1, 2, self.title, sharex=True)
        for number, agent in enumerate(self.agents):
            own = [row for row in rows if row["agent"] == agent]
            style = {**look(number, number), "marker": None}
            banded([gaps], own, "step", "max_potential_gap", label=labelled(agent), **style)
            banded([shares], own, "step", "near", **style)
        gaps.set(xlabel="steps", ylabel="largest gap to potential", xscale="log", ylim=(0, None))
        shares.set(
            xlabel="steps",
            ylabel=f"share of runs, all gaps ≤ {self.epsilon:g}",
            ylim=(-0.03, 1.03),
        )
        share_legend(figure, [gaps])
        return figure
