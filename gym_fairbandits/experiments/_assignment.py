"""What the experiments of Lim, Tan, Soh have in common: agents play, users' regret is taken."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.evaluation._intervals import bracketed
from gym_fairbandits.experiments._figures import means_by
from gym_fairbandits.experiments._settings import (
    checked_agents,
    checked_ints,
    labelled,
    named_agent,
)
from gym_fairbandits.experiments.engine import simulate
from gym_fairbandits.experiments.runner import Experiment, Row, Task, markdown

__all__ = ["AssignmentExperiment"]

ENV_ID = "EgalAssign-v0"
BOUNDED = "egal-ucb"  # the agent that the paper's bounds are about
ROUNDING = 1e-12  # regret below this share of the optimum is none


def exact_zero(regret: NDArray[np.float64], optimum: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``regret`` with 0 where only rounding makes it something else."""
    return np.where(np.abs(regret) <= ROUNDING * np.maximum(1.0, np.abs(optimum)), 0.0, regret)


@dataclass(frozen=True)
class AssignmentExperiment(Experiment):
    """Agents on assignment arms, for several numbers of users.

    A row is what one agent lost in one run up to one step, ``regret`` and ``realized_regret``:
    T mu* / U minus the least that any user had of the expected rewards of the arms assigned, or
    of the rewards themselves. The latter is higher by the chance in rewards; the paper's regret,
    which takes expectations first, is the former for agents that rotate. ``bound`` is empty but
    for EgalUCB: the theorems are about no other agent.

    Attributes:
        seed: Of the first run.
        agents: Their names, as :func:`gym_fairbandits.agents.available` lists them.
        num_arms: K.
        users: The numbers of users U.
        horizon: T.
        num_runs: How many runs.
        num_checkpoints: At how many steps the regret is taken, the last one included.
        engine: ``"auto"``: compiled where numba is installed; ``"numpy"``. The same but for
            rounding.
    """

    agents: tuple[str, ...] = ("egal-ucb",)
    num_arms: int = 10
    users: tuple[int, ...] = (1, 2, 3, 4, 5)
    horizon: int = 150_000
    num_runs: int = 30
    num_checkpoints: int = 50
    engine: str = "auto"

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        for name, value in (
            ("agents", checked_agents(self.agents, ENV_ID)),
            ("users", checked_ints("users", self.users)),
        ):
            object.__setattr__(self, name, value)
        checked_int("num_arms", self.num_arms, minimum=max(self.users))
        checked_int("horizon", self.horizon, minimum=max(self.users))
        checked_int("num_runs", self.num_runs)
        checked_int("num_checkpoints", self.num_checkpoints)
        checked_choice("engine", self.engine, ("auto", "numpy"))

    def laws(self) -> Sequence[str]:
        """Return the names of the kinds of arms that are played; one by default."""
        return ("",)

    @abstractmethod
    def instance(self, law: str, num_users: int) -> Any:
        """Return the arms of that name, as the environment's ``instance`` takes them."""

    def bound(self, num_users: int, steps: int) -> float | None:
        """Return an upper bound on EgalUCB's regret after ``steps``, if there is one."""
        return None

    def tasks(self) -> list[Task]:
        """Return a task per law, number of users and agent, with all runs."""
        return [
            Task(
                "-".join([*([law] if law else []), f"{num_users}-users", agent]),
                {"law": law, "num_users": num_users, "agent": agent},
            )
            for law in self.laws()
            for num_users in self.users
            for agent in self.agents
        ]

    def checkpoints(self, num_users: int) -> list[int]:
        """Return the steps at which regret is taken: whole rotations, and the last step."""
        spread = np.linspace(0, self.horizon, self.num_checkpoints + 1)[1:].astype(int).tolist()
        whole = {max(num_users, step - step % num_users) for step in spread[:-1]}
        return sorted({*whole, self.horizon})

    def perform(self, task: Task) -> list[Row]:
        """Play all runs of an agent; return a row per run and checkpoint."""
        law, num_users, agent = (task.parameters[name] for name in ("law", "num_users", "agent"))
        steps = self.checkpoints(num_users)
        runs = simulate(
            named_agent(agent, ENV_ID, self.horizon),
            self.instance(law, num_users),
            num_users=num_users,
            num_arms=self.num_arms,
            horizon=self.horizon,
            num_runs=self.num_runs,
            seed=self.seed,
            checkpoints=steps,
            engine=self.engine,
        )
        regrets = exact_zero(runs.policy_regret, runs.optimum)
        return [
            {
                **({"law": law} if law else {}),
                "num_users": num_users,
                "agent": agent,
                "run": run,
                "step": step,
                "regret": float(regrets[run, place]),
                "realized_regret": float(runs.realized_regret[run, place]),
                "bound": self.bound(num_users, step) if agent == BOUNDED else None,
            }
            for run in range(self.num_runs)
            for place, step in enumerate(steps)
        ]

    def label(self, num_users: int, agent: str) -> str:
        """Return what a legend calls a series: agents only where there are several."""
        return f"U = {num_users}" + (f", {labelled(agent)}" if len(self.agents) > 1 else "")

    def last(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the last step."""
        return [row for row in rows if row["step"] == self.horizon]

    def series(self, rows: Sequence[Row], **values: Any) -> list[Row]:
        """Return the rows that have these values."""
        return [row for row in rows if all(row[name] == value for name, value in values.items())]

    def summary(self, rows: Sequence[Row]) -> str:
        """Return the regret at the end by law, users and agent."""
        lines = []
        for task in self.tasks():
            own = {name: value for name, value in task.parameters.items() if value}
            (_, (mean,), (low,), (high,)) = means_by(
                self.series(self.last(rows), **own), "step", "regret"
            )
            own["agent"] = labelled(own["agent"])
            lines.append([*own.values(), mean, bracketed((low, high), "{:.4g}".format).strip()])
        columns = [*(["law"] if any(self.laws()) else []), "users", "agent", "regret", "95 %"]
        return markdown(columns, lines)
