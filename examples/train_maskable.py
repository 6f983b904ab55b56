"""Train MaskablePPO on EgalAssign-v0, one user per step; no two users get the same arm.

A mask per dimension cannot forbid a collision in a `MultiDiscrete`; asking user by user can. A
minute on one core; needs the extra `sb3`::

    python examples/train_maskable.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from cli import parse, start
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

import gym_fairbandits  # noqa: F401 - registers the environments
from gym_fairbandits import agents
from gym_fairbandits.agents.sb3 import MaskableArmEquivariantPolicy
from gym_fairbandits.evaluation import Entry, compare
from gym_fairbandits.experiments.learning import EGAL, HELD_OUT
from gym_fairbandits.wrappers import SequentialAssignment


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    num_users: int = 3
    num_arms: int = 6
    horizon: int = 100
    total_steps: int = 60_000
    seed: int = 0
    num_episodes: int = 200
    output: Path = Path("trained_maskable")


def main() -> None:
    """Train, evaluate on held-out seeds, save."""
    arguments = parse(Arguments, __doc__)
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    shared: dict[str, Any] = {
        "num_users": arguments.num_users,
        "num_arms": arguments.num_arms,
        "horizon": arguments.horizon,
    }
    envs = make_vec_env(
        lambda: SequentialAssignment(gym.make("EgalAssign-v0", **shared)),
        n_envs=16,
        seed=arguments.seed,
    )
    model = MaskablePPO(
        MaskableArmEquivariantPolicy,
        envs,
        n_steps=300,
        batch_size=800,
        n_epochs=5,
        learning_rate=1e-3,
        # Episodes are truncated; a decision is one user's, a step has as many as users.
        gamma=EGAL.gamma_unknown ** (1 / arguments.num_users),
        seed=arguments.seed,
        device="cpu",
    )
    model.learn(arguments.total_steps)
    model.save(arguments.output / "model.zip")
    comparison = compare(
        {
            "MaskablePPO": Entry(model, wrappers=(SequentialAssignment,)),
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
