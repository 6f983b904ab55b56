"""The obvious way to run both papers, as yardsticks: naive on purpose, and never to be tuned.

A loop that makes one environment with ``gymnasium.make`` and steps it with an agent written as the
paper prints it. Nothing here is batched, buffered or compiled, and everything is checked in every
step, as one would write it at first. What `benchmarks/engine.py` reports is how many times quicker
the engines are than this; it says nothing about other packages.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAIVE_ID = "NaiveEgalitarian-v0"


class NaiveEgalitarianEnv(gym.Env[Floats, Ints]):
    """Users on distinct arms; observes and pays each user's reward."""

    def __init__(self, means: Floats, num_users: int, horizon: int, law: str = "bernoulli") -> None:
        """Create the environment; ``law`` is ``"bernoulli"`` or ``"gaussian"``."""
        self.means, self.num_users, self.horizon, self.law = means, num_users, horizon, law
        self.action_space = spaces.MultiDiscrete([len(means)] * num_users)
        self.observation_space = spaces.Box(-np.inf, np.inf, (num_users,), np.float64)
        self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(self.num_users), {}

    def step(self, action: Ints) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Draw the users' rewards."""
        if not self.action_space.contains(action) or len(set(action.tolist())) < self.num_users:
            raise ValueError(f"users must have arms of their own, got {action}")
        means = self.means[action]
        if self.law == "gaussian":
            rewards = self.np_random.normal(means, 1.0)
        else:
            rewards = self.np_random.binomial(1, means).astype(np.float64)
        self.time += 1
        truncated = self.time >= self.horizon
        return rewards, float(rewards.min()), False, truncated, {"means": means}


gym.register(NAIVE_ID, f"{__name__}:NaiveEgalitarianEnv")


def naive_egal_ucb(env: gym.Env[Floats, Ints], steps: int, seed: int = 0) -> tuple[Floats, Ints]:
    """Return the users' totals and the arms' pulls of EgalUCB, the paper's algorithm."""
    inner: Any = env.unwrapped
    num_arms, num_users = len(inner.means), inner.num_users
    blocks, totals = np.zeros(num_arms), np.zeros(num_arms)
    index = np.full(num_arms, np.inf)
    user_totals, regret = np.zeros(num_users), []
    best = np.sort(inner.means)[-num_users:].mean()
    expected = np.zeros(num_users)
    env.reset(seed=seed)
    time = 0
    while time < steps:
        chosen = np.argsort(-index, kind="stable")[:num_users]
        for turn in range(num_users):
            action = np.array([chosen[(user - turn) % num_users] for user in range(num_users)])
            rewards, _, _, _, info = env.step(action)
            for user in range(num_users):
                totals[action[user]] += rewards[user]
            user_totals += rewards
            expected += info["means"]
            time += 1
            regret.append(time * best - expected.min())
            if time == steps:
                break
        blocks[chosen] += 1
        played = blocks > 0
        plays = blocks[played] * num_users
        index[played] = totals[played] / plays + np.sqrt(6 * np.log(time) / plays)
    return user_totals, blocks.astype(np.int64) * num_users
