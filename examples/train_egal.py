"""Train PPO on EgalAssign-v0 and compare it with EgalUCB.

The learner scores the arms; `RotatedAssignment` plays the best ones in rotation, so that fairness
holds by construction. Writes `model.zip`, `episodes.csv` and `regret.png` into the folder
`--output`. A few minutes on one core; needs the extra `sb3`::

    python examples/train_egal.py
    python examples/train_egal.py --instance gaussian --horizon-known

`--total-steps` is rounded up to whole rollouts of 3200. On truncation and `--horizon-known` see
`train_improving.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # writes files; needs no screen

import numpy as np
from cli import parse, start

from gym_fairbandits import agents
from gym_fairbandits.evaluation import compare
from gym_fairbandits.experiments.learning import EGAL, HELD_OUT, train


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    instance: str = "bernoulli"
    num_users: int = 5
    num_arms: int = 10
    horizon: int = 1000
    horizon_known: bool = False
    total_steps: int = EGAL.total_steps
    seed: int = 0
    num_episodes: int = 500
    output: Path = Path("trained_egal")


def main() -> None:
    """Train, evaluate on held-out seeds, save."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    shared: dict[str, Any] = {
        "instance": arguments.instance,
        "num_users": arguments.num_users,
        "num_arms": arguments.num_arms,
        "horizon": arguments.horizon,
    }
    own = {"horizon_known": arguments.horizon_known}
    model = train(EGAL, arguments.seed, arguments.total_steps, **shared, **own)
    model.save(arguments.output / "model.zip")
    comparison = compare(
        {
            "PPO": EGAL.entry(model, **own),
            "EgalUCB": agents.EgalUCB(),
            "StaticOracle": agents.StaticOracle,
            "UniformRandom": agents.UniformRandom(),
        },
        EGAL.env_id,
        num_episodes=arguments.num_episodes,
        seed=HELD_OUT,
        checkpoints=np.unique(np.linspace(1, arguments.horizon, 50).round().astype(int)),
        progress=True,
        **shared,
    )
    print(comparison.table())
    comparison.to_csv(arguments.output / "episodes.csv")
    comparison.plot().savefig(arguments.output / "regret.png", dpi=120)


if __name__ == "__main__":
    start(main)
