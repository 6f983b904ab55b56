"""The README's table: PPO against every baseline, on held-out episodes of both environments.

Trains one model per setting and training seed, evaluates all on the same seeds, and writes
`learned.md`, `learned.csv` and the models into `--output`; models that are there are not trained
again, so that a run that was stopped goes on. Needs the extra `sb3`::

    python examples/learned_against_paper.py
    python examples/learned_against_paper.py --training-seeds 1 --total-steps 20000
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cli import parse
from learning import EGAL, IMPROVING, Recipe, linear_caps, train
from stable_baselines3 import PPO

from gym_fairbandits import agents
from gym_fairbandits.evaluation import Comparison, compare, mean_interval

HELD_OUT = 1_000_000  # the first seed of the evaluation; far from the seeds of the training


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    training_seeds: int = 3
    num_episodes: int = 500
    total_steps: int = 0  # 0: what each recipe says
    output: Path = Path("learned")


@dataclass(frozen=True)
class Setting:
    """A distribution of instances, and who plays it.

    Attributes:
        title: Its name in the table.
        recipe: How PPO learns it.
        shared: Arguments of the environment for all.
        baselines: Policies by name.
        worst_case: Arguments of instances that nobody trained on, to show where learning fails.
    """

    title: str
    recipe: Recipe
    shared: dict[str, Any]
    baselines: dict[str, Any]
    worst_case: dict[str, Any] = field(default_factory=dict)


IMPROVING_BASELINES = {
    "AnytimeImproving": agents.AnytimeImproving(),
    "Greedy": agents.Greedy(),
    "RoundRobin": agents.RoundRobin(),
    "UniformRandom": agents.UniformRandom(),
    "OracleArm": agents.OracleArm,
}
EGAL_BASELINES = {
    "EgalUCB": agents.EgalUCB(),
    "StaticOracle": agents.StaticOracle,
    "UniformRandom": agents.UniformRandom(),
    "OracleRotation": agents.OracleRotation,
}
FIVE_ARMS = {"num_arms": 5, "horizon": 100}
TEN_ARMS = {"num_arms": 10, "num_users": 5, "horizon": 1000}
SETTINGS = [
    Setting(
        "improving, linear caps",
        IMPROVING,
        {"instance": linear_caps, **FIVE_ARMS},
        IMPROVING_BASELINES,
        {"instance": "lower_bound", **FIVE_ARMS},
    ),
    Setting(
        "improving, random_concave",
        IMPROVING,
        {"instance": "random_concave", **FIVE_ARMS},
        IMPROVING_BASELINES,
    ),
    Setting("egalitarian, bernoulli", EGAL, {"instance": "bernoulli", **TEN_ARMS}, EGAL_BASELINES),
    Setting(
        "egalitarian, gaussian, variance 0.1",
        EGAL,
        {"instance": {"name": "gaussian", "variance": 0.1}, **TEN_ARMS},
        EGAL_BASELINES,
    ),
]


def trained(
    setting: Setting, known: bool, seed: int, arguments: Arguments
) -> tuple[PPO, dict[str, Any]]:
    """Return a model and how long it took: from the folder if it is there, else trained."""
    horizon = "known" if known else "unknown"
    name = f"{setting.title.replace(', ', '-').replace(' ', '_')}-{horizon}-{seed}"
    path = arguments.output / f"{name}.zip"
    record = path.with_suffix(".json")
    if not record.exists():
        wall, cpu = time.perf_counter(), time.process_time()
        model = train(
            setting.recipe, seed, arguments.total_steps, horizon_known=known, **setting.shared
        )
        model.save(path)
        details = {
            "steps": int(model.num_timesteps),
            "wall_seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
        }
        record.write_text(json.dumps(details), encoding="utf-8")
    return PPO.load(path, device="cpu"), json.loads(record.read_text(encoding="utf-8"))


def row(title: str, name: str, regrets: np.ndarray[Any, Any], ratio: float, note: str) -> str:
    """Return a line of the table; ``regrets`` holds a mean over training seeds per episode."""
    # Adding 0.0 turns -0.0 into 0.0.
    mean, low, high = (round(x, 1) + 0.0 for x in (regrets.mean(), *mean_interval(regrets)))
    regret = f"{mean:.1f} [{low:.1f}, {high:.1f}]"
    return f"| {title} | {name} | {regret} | {ratio:.3f} | {note} |"


def play(setting: Setting, arguments: Arguments) -> tuple[list[str], list[pd.DataFrame]]:
    """Train and evaluate a setting; return the table's lines and the episodes."""
    entries: dict[str, Any] = dict(setting.baselines)
    notes: dict[str, str] = {}
    for known in (False, True):
        records = []
        for seed in range(arguments.training_seeds):
            model, record = trained(setting, known, seed, arguments)
            records.append(record)
            entries[f"{label(known)} #{seed}"] = setting.recipe.entry(model, horizon_known=known)
        minutes = sum(record["wall_seconds"] for record in records) / len(records) / 60
        notes[label(known)] = f"{records[0]['steps']:,} steps, {minutes:.1f} min"
    lines: list[str] = []
    frames: list[pd.DataFrame] = []
    for shared in filter(None, (setting.shared, setting.worst_case)):
        title = setting.title if shared is setting.shared else "the same on `lower_bound`"
        comparison = compare(
            entries,
            setting.recipe.env_id,
            num_episodes=arguments.num_episodes,
            seed=HELD_OUT,
            progress=True,
            **shared,
        )
        lines += table(title, comparison, setting, notes, arguments.training_seeds)
        frames.append(comparison.to_pandas().assign(setting=title))
    return lines, frames


def label(known: bool) -> str:
    """Return the name of PPO in the table."""
    return f"PPO, horizon {'known' if known else 'unknown'}"


def table(
    title: str,
    comparison: Comparison,
    setting: Setting,
    notes: dict[str, str],
    training_seeds: int,
) -> list[str]:
    """Return the lines of one setting, PPO first."""
    lines = []
    for name, note in notes.items():
        runs = [comparison[f"{name} #{seed}"].episodes for seed in range(training_seeds)]
        regrets = np.mean([run["policy_regret"] for run in runs], axis=0)
        ratio = float(np.mean([run["competitive_ratio"].mean() for run in runs]))
        lines.append(row(title, name, regrets, ratio, note))
    for name in setting.baselines:
        run = comparison[name].episodes
        ratio = float(run["competitive_ratio"].mean())
        lines.append(row(title, name, run["policy_regret"], ratio, ""))
    return lines


def main() -> None:
    """Fill the table."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    lines = [
        "| instances | policy | policy regret [95 %] | competitive ratio | trained for |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    frames = []
    for setting in SETTINGS:
        more, episodes = play(setting, arguments)
        lines += more
        frames += episodes
    lines.append(
        f"\n{arguments.num_episodes} held-out episodes; PPO: mean of {arguments.training_seeds} "
        f"training seeds, one core of {platform.machine()}."
    )
    text = "\n".join(lines)
    print(text)
    (arguments.output / "learned.md").write_text(text + "\n", encoding="utf-8")
    pd.concat(frames, ignore_index=True).to_csv(arguments.output / "learned.csv", index=False)


if __name__ == "__main__":
    main()
