"""Train PPO on ImprovingBandit-v0 and compare it with the paper's baselines.

Writes `model.zip`, `episodes.csv` and `regret.png` into the folder `--output`. About three
minutes on one core; needs the extra `sb3`::

    python examples/train_improving.py
    python examples/train_improving.py --instance random_concave --horizon-known

PPO learns from whole rollouts, here of 6400 steps: `--total-steps` is rounded up to these.

Without `--horizon-known` episodes are *truncated*: Stable-Baselines3 then bootstraps, it adds the
value of the last observation as if the episode went on, which is what a learner that must not
know the horizon should believe. With it they *terminate*: the horizon is part of the problem and
nothing follows it, so that the network learns when exploring no longer pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # writes files; needs no screen

from cli import parse, start

from gym_fairbandits import agents
from gym_fairbandits.evaluation import compare
from gym_fairbandits.experiments.learning import HELD_OUT, IMPROVING, linear_caps, train


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    instance: str = "linear_caps"
    num_arms: int = 5
    horizon: int = 100
    horizon_known: bool = False
    total_steps: int = IMPROVING.total_steps
    seed: int = 0
    num_episodes: int = 500
    output: Path = Path("trained_improving")


def main() -> None:
    """Train, evaluate on held-out seeds, save."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    instance: Any = linear_caps if arguments.instance == "linear_caps" else arguments.instance
    shared: dict[str, Any] = {
        "instance": instance,
        "num_arms": arguments.num_arms,
        "horizon": arguments.horizon,
    }
    own = {"horizon_known": arguments.horizon_known}
    model = train(IMPROVING, arguments.seed, arguments.total_steps, **shared, **own)
    model.save(arguments.output / "model.zip")
    comparison = compare(
        {
            "PPO": IMPROVING.entry(model, **own),
            "AnytimeImproving": agents.AnytimeImproving(),
            "Greedy": agents.Greedy(),
            "RoundRobin": agents.RoundRobin(),
        },
        IMPROVING.env_id,
        num_episodes=arguments.num_episodes,
        seed=HELD_OUT,
        checkpoints=range(1, arguments.horizon + 1),
        progress=True,
        **shared,
    )
    print(comparison.table())
    comparison.to_csv(arguments.output / "episodes.csv")
    comparison.plot().savefig(arguments.output / "regret.png", dpi=120)


if __name__ == "__main__":
    start(main)
