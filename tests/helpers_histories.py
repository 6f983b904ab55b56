"""Plain lists of what was pulled and what it paid, and the observations that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import gymnasium as gym
import numpy as np
from helpers_agents import Observation
from helpers_names import IMPROVING, Ints

from gym_fairbandits.agents import Agent

History: TypeAlias = list[tuple[int, float]]  # arms and rewards, the first pull first


def observed(history: History, num_arms: int) -> Observation:
    """Return what an environment shows after these pulls."""
    rewards: list[list[float]] = [[] for _ in range(num_arms)]
    for arm, reward in history:
        rewards[arm].append(reward)
    return {
        "pulls": np.array([len(own) for own in rewards], dtype=np.int64),
        "reward_sum": np.array([sum(own) for own in rewards], dtype=np.float64),
        "last_reward": np.array([own[-1] if own else 0.0 for own in rewards]),
        "last_increment": np.array([own[-1] - own[-2] if own[1:] else 0.0 for own in rewards]),
    }


def repeated(observation: Observation, rows: int) -> Observation:
    """Return a batch of equal rows."""
    return {name: np.repeat(values[None], rows, axis=0) for name, values in observation.items()}


def tell(agent: Agent, history: History, num_arms: int, rows: int = 1) -> Ints:
    """Show the agent every pull in turn, in all rows; return the actions that it takes then."""
    for length in range(len(history)):
        agent.act(repeated(observed(history[:length], num_arms), rows))
    actions: Ints = agent.act(repeated(observed(history, num_arms), rows))
    return actions


def rewards_of(history: History, arm: int) -> list[float]:
    """Return what an arm paid."""
    return [reward for pulled, reward in history if pulled == arm]


def fewest_pulls_of_the_best(scores: Sequence[float], history: History) -> int:
    """Return the arm of the highest score, ties by fewest pulls, then lowest index."""
    top = max(scores)
    slack = 0.0 if math.isinf(top) else 1e-9 * max(1.0, abs(top))
    tied = [arm for arm, score in enumerate(scores) if score >= top - slack]
    return min(tied, key=lambda arm: (len(rewards_of(history, arm)), arm))


def watched(
    agent: Agent, *, rows: int = 3, num_arms: int = 4, horizon: int = 150, known: bool = False
) -> Iterator[tuple[list[History], Ints]]:
    """Let the agent play noisy random instances; yield each row's past and what it does next.

    Some of its actions are replaced by random ones, so that it meets histories not its own.
    """
    envs = gym.make_vec(
        IMPROVING,
        num_envs=rows,
        num_arms=num_arms,
        noise_std=0.2,
        horizon=horizon,
        horizon_known=known,
        autoreset_mode="Disabled",
    )
    rng = np.random.default_rng(5)
    histories: list[History] = [[] for _ in range(rows)]
    observation, _ = envs.reset(seed=3)
    for _ in range(horizon):
        actions = agent.act(observation)
        yield histories, actions
        mixed = np.where(rng.random(rows) < 0.2, rng.integers(num_arms, size=rows), actions)
        observation, rewards, *_ = envs.step(mixed)
        for history, arm, reward in zip(histories, mixed.tolist(), rewards.tolist(), strict=True):
            history.append((arm, reward))
