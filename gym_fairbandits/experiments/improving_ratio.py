"""The price of fairness in Patil et al.: competitive ratios over the number of arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gym_fairbandits._checks import checked_int
from gym_fairbandits.agents import Agent
from gym_fairbandits.bounds import algorithm1_ratio, deterministic_ratio, round_robin_ratio_range
from gym_fairbandits.evaluation import Entry
from gym_fairbandits.experiments._figures import BOUND, look, panels, share_legend
from gym_fairbandits.experiments._settings import (
    checked_agents,
    checked_choices,
    checked_ints,
    labelled,
    named_agent,
)
from gym_fairbandits.experiments.against import late_bloomer_against
from gym_fairbandits.experiments.engine import simulate
from gym_fairbandits.experiments.runner import Experiment, Row, Task, markdown
from gym_fairbandits.instances import round_robin_trap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FAMILIES", "ImprovingRatio"]

ENV_ID = "ImprovingBandit-v0"
FAMILIES = {  # by name: what figures call it
    "late-bloomer": "late bloomer against the agent (Theorem 2)",
    "trap": "one arm that pays (Theorem 3)",
    "random": "random concave arms, the worst",
}


@dataclass(frozen=True)
class ImprovingRatio(Experiment):
    """OPT(T) over the reward of an agent, on the instances of two proofs and on random ones.

    A row is one run of an agent. On the instances of the proofs the reward is a mean over runs,
    as agents that draw random numbers fare differently each time; of random instances the worst
    counts. The late bloomer is the arm that the agent pulled least in a run without one: for
    agents that draw random numbers Theorem 2 promises nothing.

    Attributes:
        agents: Their names.
        arms: The numbers of arms k.
        steps_per_arm: T / k; the theorems on Algorithm 1 need at least 4.
        num_runs: How many runs; as many random instances.
        families: Which instances; keys of ``FAMILIES``.
    """

    agents: tuple[str, ...] = (
        "anytime-improving",
        "round-robin",
        "greedy",
        "horizon-aware-improving",
        "single-peaked-optimism",
        "random-round-robin",
    )
    arms: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)
    steps_per_arm: int = 100
    num_runs: int = 100
    families: tuple[str, ...] = tuple(FAMILIES)

    name: ClassVar[str] = "improving-ratio"
    title: ClassVar[str] = "Competitive ratio over the number of arms (P, Theorems 2 to 4)"
    quick: ClassVar[Mapping[str, Any]] = {
        "arms": (2, 4, 8, 16, 32),
        "steps_per_arm": 20,
        "num_runs": 20,
    }

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        for name, values in (
            ("agents", checked_agents(self.agents, ENV_ID)),
            ("arms", checked_ints("arms", self.arms, minimum=2)),
            ("families", checked_choices("families", self.families, tuple(FAMILIES))),
        ):
            object.__setattr__(self, name, values)
        checked_int("steps_per_arm", self.steps_per_arm, minimum=4)
        checked_int("num_runs", self.num_runs)

    def tasks(self) -> list[Task]:
        """Return a task per family, number of arms and agent."""
        return [
            Task(
                f"{family}-{num_arms}-arms-{agent}",
                {"family": family, "num_arms": num_arms, "agent": agent},
            )
            for family in self.families
            for num_arms in self.arms
            for agent in self.agents
        ]

    def perform(self, task: Task) -> list[Row]:
        """Play an agent on a family; return a row per run."""
        family, num_arms, name = (task.parameters[key] for key in ("family", "num_arms", "agent"))
        steps = num_arms * self.steps_per_arm
        agent = named_agent(name, ENV_ID, steps)
        instance: Any = "random_concave"
        if family == "late-bloomer":
            player = agent if isinstance(agent, Agent) else Entry(factory=agent)
            instance = late_bloomer_against(player, num_arms, steps)
        elif family == "trap":
            instance = round_robin_trap(num_arms, steps)
        runs = simulate(
            agent,
            instance,
            num_users=None,
            num_arms=num_arms,
            horizon=steps,
            num_runs=self.num_runs,
            seed=self.seed,
        )
        return [
            {
                "family": family,
                "num_arms": num_arms,
                "agent": name,
                "run": run,
                "steps": steps,
                "optimum": float(runs.optimum[run, 0]),
                "reward": float(runs.expected_user_returns[run, 0, 0]),
                "deterministic_at_least": deterministic_ratio(num_arms, steps),
                "algorithm_1_at_most": algorithm1_ratio(num_arms, steps, "stated"),
            }
            for run in range(self.num_runs)
        ]

    def ratios(self, rows: Sequence[Row]) -> dict[tuple[str, int, str], float]:
        """Return the ratio by family, number of arms and agent; infinite if nothing was earned."""
        totals: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
        for row in rows:
            key = row["family"], row["num_arms"], row["agent"]
            totals.setdefault(key, []).append((row["optimum"], row["reward"]))
        return {
            key: max(_ratio(*pair) for pair in pairs)
            if key[0] == "random"
            else _ratio(*(sum(values) for values in zip(*pairs, strict=True)))
            for key, pairs in totals.items()
        }

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the ratios: a line per family and agent, a column per number of arms."""
        ratios = self.ratios(rows)
        lines = [
            [family, labelled(agent), *(ratios[family, number, agent] for number in self.arms)]
            for family in self.families
            for agent in self.agents
        ]
        return markdown(["family", "agent", *(f"k = {number}" for number in self.arms)], lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw a panel per family: ratios over k, beside those of k/2, k^2/2 and 32k that hold."""
        ratios = self.ratios(rows)
        figure, (axes,) = panels(1, len(self.families), self.title, sharey=True)
        small = [(k, 4 * k) for k in self.arms]  # bounds that do not depend on T
        lower = {  # of the family with which the theorem is proved; others may be easier
            "late-bloomer": (
                "k/2 (Theorem 2, any deterministic agent at least)",
                "-",
                [k / 2 for k in self.arms],
            ),
            "trap": (
                "$k^2/2$ (Theorem 3, round robin at least)",
                ":",
                [round_robin_ratio_range(k)[0] for k in self.arms],
            ),
        }
        upper = (  # of every family
            "32k (Theorem 4 as stated, Algorithm 1 at most)",
            "--",
            [algorithm1_ratio(*sizes, "stated") for sizes in small],
        )
        for axis, family in zip(axes, self.families, strict=True):
            for number, agent in enumerate(self.agents):
                values = [ratios[family, num_arms, agent] for num_arms in self.arms]
                axis.plot(self.arms, values, label=labelled(agent), **look(number, number))
            for label, line, values in (*([lower[family]] if family in lower else []), upper):
                axis.plot(self.arms, values, linestyle=line, label=label, **BOUND)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(self.arms, [str(number) for number in self.arms])
            axis.set(xlabel="arms k")
            axis.set_title(FAMILIES[family], fontsize="medium")
        axes[0].set_ylabel("OPT / reward")
        share_legend(figure, axes, columns=3)
        return figure


def _ratio(optimum: float, reward: float) -> float:
    return optimum / reward if reward else float("inf")
