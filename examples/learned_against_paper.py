"""PPO against every baseline, on held-out episodes of both environments: docs/learned.md.

Trains one model per setting and training seed, evaluates all on the same seeds, and writes
`learned.md`, `learned.csv` and the models into `--output`; models that are there are not trained
again, so that a run that was stopped goes on (a trial of fewer steps needs an `--output` of its
own). Needs the extra `sb3`, and on one core about 40
minutes::

    python examples/learned_against_paper.py
    python examples/learned_against_paper.py --training-seeds 1 --total-steps 20000 --output trial
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from cli import parse, start

from gym_fairbandits import agents
from gym_fairbandits.evaluation import Comparison, Entry, Evaluation, compare
from gym_fairbandits.evaluation._intervals import bracketed
from gym_fairbandits.experiments.learned import HORIZONS, learner, standing
from gym_fairbandits.experiments.learning import HELD_OUT, PROBLEMS, Problem, trained

INTRODUCTION = """\
Written by `python examples/learned_against_paper.py`: {num_episodes} held-out episodes, the same
for all, with 95 % bootstrap intervals of the mean over episodes. PPO: the mean over
{training_seeds} training seeds, whose own means stand in the last column. "Is told": what a policy
knows that the papers' learners do not."""


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    training_seeds: int = 3
    num_episodes: int = 500
    total_steps: int = 0  # 0: what each recipe says
    output: Path = Path("learned")


def learners(problem: Problem, arguments: Arguments) -> tuple[dict[str, list[Entry]], list[str]]:
    """Return PPO's models by name, one per training seed, and lines that say what they took."""
    entries: dict[str, list[Entry]] = {}
    lines = []
    for horizon in HORIZONS:
        name, known = learner(horizon), horizon == "known"
        entries[name], minutes, steps = [], [], 0
        for seed in range(arguments.training_seeds):
            file = f"{problem.title}-{horizon}-{seed}.zip"
            model, record = trained(
                problem.recipe,
                arguments.output / file.replace(", ", "-").replace(" ", "_"),
                seed,
                arguments.total_steps,
                horizon_known=known,
                **problem.env_kwargs,
            )
            entries[name].append(problem.recipe.entry(model, horizon_known=known))
            minutes.append(record["cpu_seconds"] / 60)
            steps = record["steps"]
        lines.append(f"{name}: {steps:,} decisions, {np.mean(minutes):.1f} minutes of one core.")
    return entries, lines


def baselines(env_id: str) -> dict[str, Entry]:
    """Return every agent that plays the environment; it is told what it must know."""
    return {name: Entry(factory=partial(agents.make, name)) for name in agents.ready(env_id)}


def row(label: str, name: str, runs: Sequence[Evaluation]) -> tuple[float, str]:
    """Return the mean regret over runs (one per training seed) and a line of the table."""
    metrics = ("policy_regret", "expected_return", "optimal_return")
    own = standing(name, *(np.array([run.episodes[metric] for run in runs]) for metric in metrics))
    # Adding 0.0 turns -0.0 into 0.0.
    mean, low, high = (round(x, 1) + 0.0 for x in (own.regret, *own.interval))
    interval = bracketed((low, high), "{:.1f}".format)
    seeds = ", ".join(f"{x:.1f}" for x in own.seeds) if len(own.seeds) > 1 else ""
    return mean, f"| {label} | {own.told} | {mean:.1f}{interval} | {own.earned:.1%} | {seeds} |"


def table(comparison: Comparison, learned: dict[str, list[Entry]], env_id: str) -> list[str]:
    """Return the table of one problem, lowest regret first."""
    rows = []
    for name, entries in learned.items():
        runs = [comparison[f"{name} #{seed}"] for seed in range(len(entries))]
        rows.append(row(f"**{name}**", name, runs))
    rows += [row(name, name, [comparison[name]]) for name in agents.ready(env_id)]
    return [
        "| policy | is told | policy regret [95 %] | earned of the optimum | training seeds |",
        "| --- | --- | ---: | ---: | --- |",
        *(line for _, line in sorted(rows, key=lambda pair: pair[0])),
    ]


def play(problem: Problem, arguments: Arguments) -> tuple[list[str], list[pd.DataFrame]]:
    """Train and evaluate on a problem; return its part of the report, and its episodes."""
    env_id = problem.recipe.env_id
    learned, notes = learners(problem, arguments)
    policies = baselines(env_id) | {
        f"{name} #{seed}": entry
        for name, entries in learned.items()
        for seed, entry in enumerate(entries)
    }
    lines: list[str] = []
    frames: list[pd.DataFrame] = []
    for instances, env_kwargs in problem.plays().items():
        title = problem.heading(instances)
        comparison = compare(
            policies,
            env_id,
            num_episodes=arguments.num_episodes,
            seed=HELD_OUT,
            progress=True,
            **env_kwargs,
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
    for problem in PROBLEMS.values():
        more, episodes = play(problem, arguments)
        lines += more
        frames += episodes
    text = "\n".join(lines)
    print(text)
    (arguments.output / "learned.md").write_text(text, encoding="utf-8")
    pd.concat(frames, ignore_index=True).to_csv(arguments.output / "learned.csv", index=False)


if __name__ == "__main__":
    start(main)
