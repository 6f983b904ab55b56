"""Experiments of seconds, and what they leave in their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gym_fairbandits.experiments.catalogue import EXPERIMENTS
from gym_fairbandits.experiments.runner import Experiment

TINY: dict[str, dict[str, Any]] = {
    "theorems": {"checks": ["improving-figure-1", "improving-example-a2"]},
    "egal-synthetic": {"horizon": 60, "num_runs": 2, "users": [1, 3], "num_checkpoints": 4},
    "egal-users": {"horizon": 256, "num_runs": 3, "users": [2, 4], "num_arms": 8},
    "egal-saturation": {"horizon": 60, "num_runs": 2, "users": [2, 4], "num_arms": 4},
    "egal-cluster": {"horizon": 60, "num_runs": 2, "users": [2, 3], "num_arms": 6},
    "egal-movielens": {"horizon": 60, "num_runs": 2, "users": [2, 3], "num_arms": 6},
    "improving-ratio": {"arms": [2, 3], "steps_per_arm": 6, "num_runs": 2},
    "improving-potential": {"horizon": 40, "num_runs": 3, "num_checkpoints": 5},
    "late-bloomer": {"ramps": [10, 40], "horizon": 50, "num_runs": 2},
    "learned": {
        "agents": "greedy,egal-ucb",
        "problems": "linear-caps",
        "ppo_horizons": "known",
        "num_episodes": 2,
        "total_steps": 1,
        "num_arms": 5,
        "horizon": 20,
    },
}
RESULTS = ("results.csv", "results.parquet", "figure.png", "figure.pdf")


def tiny(name: str, **settings: Any) -> Experiment:
    return EXPERIMENTS[name].from_settings("quick", **{**TINY[name], **settings})


def contents(folder: Path, names: Sequence[str] = RESULTS) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def everything(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
