"""Learned beside the papers' algorithms: PPO and the baselines on episodes that no one trained on.

Needs the extra ``sb3`` beside ``experiments``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits.agents import make, ready
from gym_fairbandits.evaluation import Entry, evaluate, mean_interval
from gym_fairbandits.evaluation._intervals import bracketed
from gym_fairbandits.experiments._figures import panels, share_legend
from gym_fairbandits.experiments._settings import (
    checked_agents,
    checked_choices,
    known_to,
    labelled,
)
from gym_fairbandits.experiments.learning import HELD_OUT, PROBLEMS, TRAINED, Recipe, train
from gym_fairbandits.experiments.runner import Experiment, Row, Task, check_extra, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HORIZONS", "Learned", "Standing", "learner", "standing", "told"]

Floats = NDArray[np.float64]

HORIZONS = ("unknown", "known")  # to the learner
SIDE_BY_SIDE = 100  # episodes; fixed, as networks may round by the size of the batch

_ENV_IDS = tuple(dict.fromkeys(problem.recipe.env_id for problem in PROBLEMS.values()))
_EVERYONE = tuple(dict.fromkeys(name for env_id in _ENV_IDS for name in ready(env_id)))


# --- What came of it ----------------------------------------------------------------------------


class Standing(NamedTuple):
    """How a policy did.

    Attributes:
        policy: Its name.
        told: What it is told that the papers' learners are not.
        regret: The mean policy regret over episodes, and over training seeds if there are several.
        interval: A 95 % bootstrap interval of that mean over the episodes; NaN for one episode.
        earned: The share of the optimum.
        seeds: The mean regret of each training seed; one number for a baseline.
    """

    policy: str
    told: str
    regret: float
    interval: tuple[float, float]
    earned: float
    seeds: tuple[float, ...]


def standing(policy: str, regrets: Floats, rewards: Floats, optima: Floats) -> Standing:
    """Return how a policy did; arrays of shape ``(num_training_seeds, num_episodes)``."""
    return Standing(
        policy,
        told(policy),
        float(regrets.mean()),
        mean_interval(regrets.mean(axis=0)),
        float(rewards.mean() / optima.mean()),
        tuple(regrets.mean(axis=1).tolist()),
    )


def learner(horizon: str) -> str:
    """Return the name of PPO in tables and figures; ``horizon`` is one of ``HORIZONS``."""
    return f"PPO, horizon {horizon}"


def told(policy: str) -> str:
    """Return what a learner or a baseline is told that the papers' learners are not."""
    if policy in map(learner, HORIZONS):
        return "horizon" if policy == learner("known") else ""
    return known_to(policy)


# --- The experiment -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned(Experiment):
    """PPO, trained for each problem with the horizon known and unknown, and the baselines.

    A row is what one policy lost in one held-out episode; episodes are the same for all. Horizon
    unknown: training episodes are truncated and nothing observed tells when.

    Attributes:
        seed: Of the first training; episodes begin at ``HELD_OUT + seed``.
        agents: Names of baselines; each plays the problems of its environment.
        problems: Keys of ``PROBLEMS``.
        ppo_horizons: Whether PPO knows the horizon; among ``HORIZONS``.
        training_seeds: How often each is trained.
        num_episodes: How many held-out episodes.
        total_steps: Decisions in training; 0 for what the recipes say.
        num_arms: 0 for what the problems say.
        horizon: T; 0 for what the problems say.
    """

    agents: tuple[str, ...] = _EVERYONE
    problems: tuple[str, ...] = tuple(PROBLEMS)
    ppo_horizons: tuple[str, ...] = HORIZONS
    training_seeds: int = 3
    num_episodes: int = 500
    total_steps: int = 0
    num_arms: int = 0
    horizon: int = 0

    name: ClassVar[str] = "learned"
    title: ClassVar[str] = "Learned beside the papers' algorithms: regret on held-out episodes"
    quick: ClassVar[Mapping[str, Any]] = {
        "agents": (
            "anytime-improving",
            "round-robin",
            "greedy",
            "horizon-aware-improving",
            "single-peaked-optimism",
            "egal-ucb",
            "egal-moss",
            "egal-kl-ucb",
            "egal-thompson",
            "static-oracle",
            "uniform-random",
        ),
        "problems": ("linear-caps", "bernoulli"),
        "training_seeds": 1,
        "num_episodes": 100,
        "total_steps": 12_800,
    }

    def __post_init__(self) -> None:
        """Check the settings, and that all is there to train.

        Raises:
            ImportError: If the extra ``sb3`` is not installed.
            TypeError: If a setting has the wrong type.
            ValueError: If a setting breaks its rule.
        """
        super().__post_init__()
        for name, values in (
            ("agents", checked_agents(self.agents, *_ENV_IDS)),
            ("problems", checked_choices("problems", self.problems, tuple(PROBLEMS))),
            ("ppo_horizons", checked_choices("ppo_horizons", self.ppo_horizons, HORIZONS)),
        ):
            object.__setattr__(self, name, values)
        checked_int("training_seeds", self.training_seeds)
        checked_int("num_episodes", self.num_episodes)
        checked_int("total_steps", self.total_steps, minimum=0)
        checked_int("horizon", self.horizon, minimum=0)
        if checked_int("num_arms", self.num_arms, minimum=0):
            users = [PROBLEMS[name].env_kwargs.get("num_users", 2) for name in self.problems]
            checked_int("num_arms", self.num_arms, minimum=max(users))
        check_extra("sb3")

    def data(self) -> dict[str, Any]:
        """Return how PPO learns: other recipes would give other results."""
        return {
            name: {
                **asdict(PROBLEMS[name].recipe),
                "wrappers": [wrapper.__name__ for wrapper in PROBLEMS[name].recipe.wrappers],
                "trained_for": self._steps(PROBLEMS[name].recipe),
                "too_few": self._steps(PROBLEMS[name].recipe) < PROBLEMS[name].recipe.total_steps,
            }
            for name in self.problems
        }

    def tasks(self) -> list[Task]:
        """Return a task per training, which take longest, then one per problem and baseline."""
        trainings = [
            Task(
                f"{problem}-ppo-{horizon}-{number}",
                {"problem": problem, "horizon": horizon, "training_seed": self.seed + number},
            )
            for problem in self.problems
            for horizon in self.ppo_horizons
            for number in range(self.training_seeds)
        ]
        baselines = [
            Task(f"{problem}-{agent}", {"problem": problem, "agent": agent})
            for problem in self.problems
            for agent in self._baselines(problem)
        ]
        return [*trainings, *baselines]

    def perform(self, task: Task) -> list[Row]:
        """Train PPO, or take a baseline, and play it; return a row per episode."""
        about = task.parameters
        problem, seed, steps = PROBLEMS[about["problem"]], about.get("training_seed"), None
        plays = problem.plays(**self._sizes())
        if seed is None:
            policy = about["agent"]
            entry = Entry(factory=partial(make, policy))
        else:
            policy = learner(about["horizon"])
            known = {"horizon_known": about["horizon"] == "known"}
            model = train(
                problem.recipe, seed, self.total_steps, progress=False, **plays[TRAINED], **known
            )
            entry, steps = problem.recipe.entry(model, **known), int(model.num_timesteps)
        rows = []
        for instances, env_kwargs in plays.items():
            played = evaluate(
                entry,
                problem.recipe.env_id,
                num_episodes=self.num_episodes,
                seed=HELD_OUT + self.seed,
                num_envs=SIDE_BY_SIDE,
                n_jobs=1,  # the experiment's own processes are enough
                **env_kwargs,
            )
            rows += [
                {
                    "problem": about["problem"],
                    "instances": instances,
                    "policy": policy,
                    "told": told(policy),
                    "training_seed": seed,
                    "trained_for": steps,
                    "episode": episode,
                    "optimum": float(played.episodes["optimal_return"][episode]),
                    "reward": float(played.episodes["expected_return"][episode]),
                    "regret": float(played.episodes["policy_regret"][episode]),
                    "realized_regret": float(played.episodes["realized_regret"][episode]),
                }
                for episode in range(self.num_episodes)
            ]
        return rows

    def standings(self, rows: Sequence[Row]) -> dict[tuple[str, str], list[Standing]]:
        """Return how all did by problem and instances, lowest regret first."""
        found: dict[tuple[str, str], dict[str, list[Row]]] = {}
        for row in rows:
            policies = found.setdefault((row["problem"], row["instances"]), {})
            policies.setdefault(row["policy"], []).append(row)
        return {
            (problem, instances): sorted(
                (self._standing(policy, own) for policy, own in found[problem, instances].items()),
                key=lambda own: own.regret,
            )
            for problem in self.problems
            for instances in PROBLEMS[problem].plays()
        }

    def summary(self, rows: Sequence[Row]) -> str:
        """Return how all did."""
        lines = []
        for (problem, instances), policies in self.standings(rows).items():
            for own in policies:
                learned = own.policy in self._learners()
                regret = f"{own.regret:.4g}{bracketed(own.interval, '{:.4g}'.format)}"
                lines.append(
                    [
                        PROBLEMS[problem].heading(instances),
                        f"**{own.policy}**" if learned else own.policy,
                        own.told,
                        regret,
                        f"{own.earned:.1%}",
                        self._training(problem, rows) if learned else "",
                    ]
                )
        header = ["problem", "policy", "is told", "regret [95 %]", "earned of the optimum"]
        return markdown([*header, "trained for"], lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw a panel per problem and instances: the regret of each policy, lowest on top."""
        boards = self.standings(rows)
        columns = min(3, len(boards))
        figure, axes = panels(-(-len(boards) // columns), columns, self.title)
        most = max(map(len, boards.values()))
        figure.set_size_inches(5.2 * columns, 1.0 + axes.shape[0] * (1.2 + 0.22 * most))
        for axis in axes.flat[len(boards) :]:
            axis.set_axis_off()
        for axis, ((problem, instances), policies) in zip(axes.flat, boards.items(), strict=False):
            self._draw(axis, policies)
            heading = PROBLEMS[problem].heading(instances).replace(": ", ":\n")
            training = self._training(problem, rows)
            axis.set_title(f"{heading}\nPPO trained for {training}", fontsize="small")
        share_legend(figure, axes.flat[: len(boards)])
        return figure

    def _draw(self, axis: Any, policies: Sequence[Standing]) -> None:
        """Draw a dot and its interval per policy, the first on top."""
        names = []
        for place, own in enumerate(policies):
            learned = own.policy in self._learners()
            style = {"color": "C3" if learned else "0.35"}
            axis.plot(own.interval, [place, place], linewidth=3, alpha=0.4, **style)
            if learned:
                axis.plot(own.seeds, [place] * len(own.seeds), "|", markersize=7, **style)
                marker, label = "D", "PPO; strokes: each training seed"
            else:
                marker, label = "o", "baselines; in brackets what one is told"
            axis.plot(own.regret, place, marker, markersize=4, label=label, **style)
            names.append(own.policy if learned else labelled(own.policy))  # PPO's name says it
        axis.set_yticks(range(len(names)), names, fontsize="small")
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.set_xscale("symlog", linthresh=1)
        numbers = [x for own in policies for x in (*own.interval, *own.seeds)]
        reached = [x for x in numbers if np.isfinite(x)]  # one episode has no interval
        axis.set_xlim(min(-0.1, 1.4 * min(reached)), max(1.0, 1.4 * max(reached)))
        axis.set_xlabel("policy regret [95 %], log scale above 1")

    def _standing(self, policy: str, rows: Sequence[Row]) -> Standing:
        shape = (-1, self.num_episodes)  # rows come by training seed, then by episode
        columns = ("regret", "reward", "optimum")
        return standing(
            policy,
            *(np.array([row[name] for row in rows]).reshape(shape) for name in columns),
        )

    def _training(self, problem: str, rows: Sequence[Row]) -> str:
        """Return how long PPO was trained, and whether that is too short."""
        enough = PROBLEMS[problem].recipe.total_steps
        steps = max(row["trained_for"] or 0 for row in rows if row["problem"] == problem)
        too_few = f" of {enough:,}: too few" if steps < enough else ""
        return f"{steps:,} decisions{too_few}"

    def _learners(self) -> list[str]:
        return [learner(horizon) for horizon in self.ppo_horizons]

    def _baselines(self, problem: str) -> list[str]:
        players = ready(PROBLEMS[problem].recipe.env_id)
        return [name for name in self.agents if name in players]

    def _steps(self, recipe: Recipe) -> int:
        return self.total_steps or recipe.total_steps

    def _sizes(self) -> dict[str, int]:
        sizes = {"num_arms": self.num_arms, "horizon": self.horizon}
        return {name: size for name, size in sizes.items() if size}
