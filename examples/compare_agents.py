"""Compare the papers' algorithms on both environments: a table each, `regret.png`, `regrets.csv`.

Run with the extra `eval` installed::

    python examples/compare_agents.py
    python examples/compare_agents.py --num-episodes 500 --output results
    python examples/compare_agents.py --all        # every agent that the package has
    python examples/compare_agents.py --learned    # and PPO, trained first; needs the extra `sb3`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # writes files; needs no screen

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cli import parse, start
from tqdm import tqdm

from gym_fairbandits import agents
from gym_fairbandits.evaluation import Comparison, Entry, compare
from gym_fairbandits.experiments.learning import EGAL, HELD_OUT, IMPROVING, linear_caps, trained


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    num_episodes: int = 100  # on random instances; deterministic play needs one
    seed: int = 0
    improving_horizon: int = 1000
    egal_horizon: int = 5000
    all: bool = False  # every agent of the package, not only the papers' own
    learned: bool = False  # PPO too, on a setting of its own for each environment
    output: Path = Path()


@dataclass(frozen=True)
class Setting:
    """One environment, the instances to play on it, and who plays."""

    env_id: str
    horizon: int
    instances: dict[str, dict[str, Any]]  # title -> arguments of the environment
    policies: dict[str, Any]
    metrics: tuple[str, ...]


LEGENDS = {
    "ImprovingBandit-v0": (
        "Means over episodes (of the competitive ratio the median) and, in brackets, 95 % "
        "intervals. Policy regret: the\nbest arm's total minus the policy's, both expected. "
        "Competitive ratio: the former over the latter, so 1 is best. Max\npotential gap: how far "
        "the arm that is furthest from its potential still is; the optimum pulls one arm, so it\n"
        "leaves the others behind."
    ),
    "EgalAssign-v0": (
        "Means over episodes (of the competitive ratio the median) and, in brackets, 95 % "
        "intervals. Policy regret: the\nbenchmark T mu*/U minus the expected total of the "
        "episode's worst-off user (expected min user return). Min of\nexpectations regret, the "
        "paper's: the same with each user's mean over episodes; it needs an instance that stays.\n"
        "Competitive ratio: benchmark over total."
    ),
}
PICTURE = (
    "In the picture OracleArm's regret rises before it falls: it pulls the arm that is best in the "
    "end, and earlier\nanother may be ahead. OracleRotation's goes up and down: only every U "
    "steps, when a rotation is complete, has each\nuser had each arm. Lines hide each other where "
    "policies lose the same: nothing along the bottom, as StaticOracle on\ntwo_level; further up "
    "round robin and random play. On lower_bound Algorithm 1 is among these: there every\n"
    "deterministic policy loses if the late bloomer is the arm that it pulls least (Theorem 2 of "
    "Patil et al.)."
)
IMPROVING_METRICS = ("policy_regret", "competitive_ratio", "max_potential_gap")
EGAL_METRICS = (
    "policy_regret",
    "min_of_expectations_regret",
    "competitive_ratio",
    "min_user_return",
)


PAPERS = {
    "ImprovingBandit-v0": {
        "OracleArm": agents.OracleArm,
        "AnytimeImproving": agents.AnytimeImproving(),
        "RoundRobin": agents.RoundRobin(),
        "Greedy": agents.Greedy(),
        "UniformRandom": agents.UniformRandom(),
    },
    "EgalAssign-v0": {
        "OracleRotation": agents.OracleRotation,
        "EgalUCB": agents.EgalUCB(),
        "StaticOracle": agents.StaticOracle,
        "UniformRandom": agents.UniformRandom(),
    },
}


def players(env_id: str, everyone: bool) -> dict[str, Any]:
    """Return the policies of an environment by name: the papers' own, or all there are."""
    if not everyone:
        return PAPERS[env_id]
    return {name: Entry(factory=partial(agents.make, name)) for name in agents.ready(env_id)}


def settings(arguments: Arguments) -> list[Setting]:
    """Return what is compared."""
    improving: dict[str, dict[str, Any]] = {
        "early_vs_late": {"instance": "early_vs_late"},
        "lower_bound": {"instance": "lower_bound"},
        "round_robin_trap": {"instance": "round_robin_trap"},
        "random_concave": {"instance": "random_concave"},
        "random_concave, noise 0.1": {"instance": "random_concave", "noise_std": 0.1},
    }
    egal: dict[str, dict[str, Any]] = {
        "bernoulli": {"instance": "bernoulli"},
        "gaussian, variance 0.1": {"instance": {"name": "gaussian", "variance": 0.1}},
        "two_level": {"instance": "two_level"},
    }
    chosen = [
        ("ImprovingBandit-v0", arguments.improving_horizon, improving, IMPROVING_METRICS),
        ("EgalAssign-v0", arguments.egal_horizon, egal, EGAL_METRICS),
    ]
    return [
        Setting(env_id, horizon, instances, players(env_id, arguments.all), metrics)
        for env_id, horizon, instances, metrics in chosen
    ]


def learned_settings(arguments: Arguments) -> list[Setting]:
    """Return a setting per environment that PPO was trained for; trains it if it is not there."""
    chosen = [
        (IMPROVING, "linear caps, 5 arms", linear_caps, {"num_arms": 5}, 100, IMPROVING_METRICS),
        (EGAL, "bernoulli", "bernoulli", {}, 1000, EGAL_METRICS),
    ]
    made = []
    for recipe, title, instance, sizes, horizon, metrics in chosen:
        env_kwargs: dict[str, Any] = {"instance": instance, **sizes}
        path = arguments.output / "learned" / f"{recipe.env_id}-{arguments.seed}.zip"
        model, _ = trained(recipe, path, arguments.seed, horizon=horizon, **env_kwargs)
        policies = {"PPO": recipe.entry(model), **players(recipe.env_id, arguments.all)}
        made.append(Setting(recipe.env_id, horizon, {title: env_kwargs}, policies, metrics))
    return made


def run(setting: Setting, arguments: Arguments) -> dict[str, Comparison]:
    """Play every policy on every instance; show progress."""
    checkpoints = np.unique(np.linspace(1, setting.horizon, 50).round().astype(int))
    plays = len(setting.instances) * len(setting.policies)
    results = {}
    with tqdm(total=plays * arguments.num_episodes, desc=setting.env_id, unit="episode") as bar:
        for title, env_kwargs in setting.instances.items():
            results[title] = compare(
                setting.policies,
                setting.env_id,
                num_episodes=arguments.num_episodes,
                seed=HELD_OUT + arguments.seed,
                checkpoints=checkpoints,
                progress=bar,
                horizon=setting.horizon,
                **env_kwargs,
            )
    return results


def markdown(setting: Setting, results: dict[str, Comparison]) -> str:
    """Return the tables of the instances as one."""
    together = {
        f"{title}: {name}": run
        for title, comparison in results.items()
        for name, run in comparison.evaluations.items()
    }
    head, rule, *rows = Comparison(together).table(setting.metrics).splitlines()
    rows = [row.replace(": ", " | ", 1) for row in rows]
    return "\n".join([f"| instance {head}", f"| --- {rule}", *rows])


def draw(panels: list[tuple[Setting, dict[str, Comparison]]], path: Path) -> None:
    """Draw the regret over time with 95 % bands, one row of panels per environment."""
    columns = max(len(results) for _, results in panels)
    figure, axes = plt.subplots(
        len(panels),
        columns + 1,  # the last one for the legends
        figsize=(3.2 * columns + 2, 3.2 * len(panels)),
        squeeze=False,
        layout="constrained",
    )
    for row, (setting, results) in zip(axes, panels, strict=True):
        for axis in row[len(results) :]:
            axis.set_axis_off()
        for axis, (title, comparison) in zip(row, results.items(), strict=False):
            comparison.plot(axis)
            axis.set(title=title, ylabel="")
            axis.get_legend().remove()
        row[0].set_ylabel(f"{setting.env_id}\npolicy regret, log scale above 1")
        row[len(results)].legend(*row[0].get_legend_handles_labels(), loc="center left")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the comparison."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)

    panels, frames = [], []
    chosen = settings(arguments) + (learned_settings(arguments) if arguments.learned else [])
    for setting in chosen:
        results = run(setting, arguments)
        panels.append((setting, results))
        print(
            f"\n## {setting.env_id}, {setting.horizon} steps, {arguments.num_episodes} episodes\n"
        )
        print(markdown(setting, results))
        print(f"\n{LEGENDS[setting.env_id]}")
        for title, comparison in results.items():
            frame = comparison.to_pandas()
            frame.insert(0, "env", setting.env_id)
            frame.insert(1, "instance", title)
            frames.append(frame)
    pd.concat(frames, ignore_index=True).to_csv(arguments.output / "regrets.csv", index=False)
    draw(panels, arguments.output / "regret.png")
    print(f"\nWrote {arguments.output / 'regrets.csv'} and {arguments.output / 'regret.png'}")
    print(f"\n{PICTURE}")


if __name__ == "__main__":
    start(main)
