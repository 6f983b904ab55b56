"""Train DQN on a small EgalAssign-v0: every assignment is one action.

`EnumeratedAssignment` numbers the legal assignments, here 12; a network for more than a few users
and arms needs another wrapper. A minute on one core; needs the extra `sb3`::

    python examples/train_dqn.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from cli import parse, start
from stable_baselines3 import DQN

import gym_fairbandits  # noqa: F401 - registers the environments
from gym_fairbandits import agents
from gym_fairbandits.evaluation import Entry, compare
from gym_fairbandits.experiments.learning import EGAL, HELD_OUT
from gym_fairbandits.wrappers import EnumeratedAssignment


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    num_users: int = 2
    num_arms: int = 4
    horizon: int = 100
    total_steps: int = 40_000
    seed: int = 0
    num_episodes: int = 200
    output: Path = Path("trained_dqn")


def main() -> None:
    """Train, evaluate on held-out seeds, save."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    shared: dict[str, Any] = {
        "instance": "two_level",
        "num_users": arguments.num_users,
        "num_arms": arguments.num_arms,
        "horizon": arguments.horizon,
    }
    model = DQN(
        "MultiInputPolicy",
        EnumeratedAssignment(gym.make("EgalAssign-v0", **shared)),
        learning_starts=1000,
        train_freq=4,
        exploration_fraction=0.5,
        gamma=EGAL.gamma_unknown,  # episodes are truncated
        seed=arguments.seed,
        device="cpu",
    )
    model.learn(arguments.total_steps)
    model.save(arguments.output / "model.zip")
    comparison = compare(
        {
            "DQN": Entry(model, wrappers=(EnumeratedAssignment,)),
            "EgalUCB": agents.EgalUCB(),
            "UniformRandom": agents.UniformRandom(),
        },
        "EgalAssign-v0",
        num_episodes=arguments.num_episodes,
        seed=HELD_OUT,
        progress=True,
        **shared,
    )
    print(comparison.table())
    comparison.to_csv(arguments.output / "episodes.csv")


if __name__ == "__main__":
    start(main)
