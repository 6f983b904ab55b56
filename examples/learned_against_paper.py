"""PPO against every baseline, on held-out episodes of both environments: docs/learned.md.

Trains one model per setting and training seed, evaluates all on the same seeds, and writes
`learned.md`, `learned.csv` and the models into `--output`; models that are there are not trained
again, so that a run that was stopped goes on. Needs the extra `sb3`, and on one core about 40
minutes::

    python examples/learned_against_paper.py
    python examples/learned_against_paper.py --training-seeds 1 --total-steps 20000
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cli import parse
from learning import EGAL, IMPROVING, Recipe, linear_caps, trained

from gym_fairbandits import agents
from gym_fairbandits.evaluation import Comparison, Entry, Evaluation, compare, mean_interval

INTRODUCTION = """\
Written by `python examples/learned_against_paper.py`: {num_episodes} held-out episodes, the same
for all, with 95 % bootstrap intervals of the mean over episodes. PPO: the mean over
{training_seeds} training seeds, whose own means stand in the last column. "Is told": what a policy
knows that the papers' learners do not."""
WORST_CASE = "{}: trained there, played on the lower bound of Patil et al. (Theorem 2)"
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
        worst_case: Arguments of instances that nobody trained on, to show where learning fails.
    """

    title: str
    recipe: Recipe
    shared: dict[str, Any]
    worst_case: dict[str, Any] = field(default_factory=dict)


FIVE_ARMS = {"num_arms": 5, "horizon": 100}
TEN_ARMS = {"num_arms": 10, "num_users": 5, "horizon": 1000}
SETTINGS = [
    Setting(
        "improving, linear caps",
        IMPROVING,
        {"instance": linear_caps, **FIVE_ARMS},
        {"instance": "lower_bound", **FIVE_ARMS},
    ),
    Setting(
        "improving, random_concave",
        IMPROVING,
        {"instance": "random_concave", **FIVE_ARMS},
    ),
    Setting("egalitarian, bernoulli", EGAL, {"instance": "bernoulli", **TEN_ARMS}),
    Setting(
        "egalitarian, gaussian, variance 0.1",
        EGAL,
        {"instance": {"name": "gaussian", "variance": 0.1}, **TEN_ARMS},
    ),
]


def title_of(known: bool) -> str:
    """Return the name of PPO in the tables."""
    return f"PPO, horizon {'known' if known else 'unknown'}"


def learners(setting: Setting, arguments: Arguments) -> tuple[dict[str, list[Entry]], list[str]]:
    """Return PPO's models by title, one per training seed, and lines that say what they took."""
    entries: dict[str, list[Entry]] = {}
    lines = []
    for known in (False, True):
        name = title_of(known)
        entries[name], minutes, steps = [], [], 0
        for seed in range(arguments.training_seeds):
            file = f"{setting.title}-{'known' if known else 'unknown'}-{seed}.zip"
            model, record = trained(
                setting.recipe,
                arguments.output / file.replace(", ", "-").replace(" ", "_"),
                seed,
                arguments.total_steps,
                horizon_known=known,
                **setting.shared,
            )
            entries[name].append(setting.recipe.entry(model, horizon_known=known))
            minutes.append(record["cpu_seconds"] / 60)
            steps = record["steps"]
        lines.append(f"{name}: {steps:,} decisions, {np.mean(minutes):.1f} minutes of one core.")
    return entries, lines


def baselines(env_id: str) -> dict[str, Entry]:
    """Return every agent that plays the environment; it is told what it must know."""
    return {name: Entry(factory=partial(agents.make, name)) for name in agents.ready(env_id)}


def row(name: str, knows: str, runs: Sequence[Evaluation]) -> tuple[float, str]:
    """Return the mean regret over runs (one per training seed) and a line of the table."""
    regrets = np.mean([run.episodes["policy_regret"] for run in runs], axis=0)
    earned = np.mean([run.mean("expected_return") / run.mean("optimal_return") for run in runs])
    # Adding 0.0 turns -0.0 into 0.0.
    mean, low, high = (round(x, 1) + 0.0 for x in (regrets.mean(), *mean_interval(regrets)))
    seeds = [f"{run.mean('policy_regret'):.1f}" for run in runs] if len(runs) > 1 else []
    regret = f"{mean:.1f} [{low:.1f}, {high:.1f}]"
    return mean, f"| {name} | {knows} | {regret} | {earned:.1%} | {', '.join(seeds)} |"


def table(comparison: Comparison, learned: dict[str, list[Entry]], env_id: str) -> list[str]:
    """Return the table of one setting, lowest regret first."""
    rows = []
    for name, entries in learned.items():
        runs = [comparison[f"{name} #{seed}"] for seed in range(len(entries))]
        knows = "horizon" if name == title_of(known=True) else ""
        rows.append(row(f"**{name}**", knows, runs))
    for name in agents.ready(env_id):
        knows = ", ".join(agents.knowledge(agents.agent_class(name)))
        rows.append(row(name, knows, [comparison[name]]))
    return [
        "| policy | is told | policy regret [95 %] | earned of the optimum | training seeds |",
        "| --- | --- | ---: | ---: | --- |",
        *(line for _, line in sorted(rows, key=lambda pair: pair[0])),
    ]


def play(setting: Setting, arguments: Arguments) -> tuple[list[str], list[pd.DataFrame]]:
    """Train and evaluate a setting; return its part of the report, and its episodes."""
    env_id = setting.recipe.env_id
    learned, notes = learners(setting, arguments)
    policies = baselines(env_id) | {
        f"{name} #{seed}": entry
        for name, entries in learned.items()
        for seed, entry in enumerate(entries)
    }
    lines: list[str] = []
    frames: list[pd.DataFrame] = []
    for shared in filter(None, (setting.shared, setting.worst_case)):
        title = setting.title if shared is setting.shared else WORST_CASE.format(setting.title)
        comparison = compare(
            policies,
            env_id,
            num_episodes=arguments.num_episodes,
            seed=HELD_OUT,
            progress=True,
            **shared,
        )
        lines += [f"## {title}", "", *table(comparison, learned, env_id), "", *notes, ""]
        frames.append(comparison.to_pandas().assign(setting=title))
    return lines, frames


def main() -> None:
    """Write the report."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    lines = ["# Learned against the papers", "", INTRODUCTION.format(**vars(arguments)), ""]
    frames = []
    for setting in SETTINGS:
        more, episodes = play(setting, arguments)
        lines += more
        frames += episodes
    text = "\n".join(lines)
    print(text)
    (arguments.output / "learned.md").write_text(text, encoding="utf-8")
    pd.concat(frames, ignore_index=True).to_csv(arguments.output / "learned.csv", index=False)


if __name__ == "__main__":
    main()
