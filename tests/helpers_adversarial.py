"""Environments of a law and how an episode in them ends, for the tests of adversaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
from helpers_names import EGAL

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.wrappers import PolicyRegret


def make(law: Any, num_users: int, horizon: int, **kwargs: Any) -> Any:
    return PolicyRegret(
        gym.make(EGAL, instance=law, num_users=num_users, horizon=horizon, **kwargs)
    )


def final_metrics(env: Any, policy: Callable[[Any], Any], seed: int = 0) -> dict[str, Any]:
    """Play one episode; return its last info."""
    info: dict[str, Any]
    observation, info = env.reset(seed=seed)
    done = False
    while not done:
        observation, _, terminated, truncated, info = env.step(policy(observation))
        done = terminated or truncated
    return info
