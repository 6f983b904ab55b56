"""Episodes of agents for assignment, and which agents let users share arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
from helpers_agents import episode
from helpers_names import EGAL

from gym_fairbandits.agents import (
    Agent,
    CombinatorialUCB,
    EgalKLUCB,
    EgalMOSS,
    EgalThompson,
    EgalUCB,
    ExploreThenCommit,
    GreedyRotation,
    PhasedElimination,
    PoorestFirst,
)
from gym_fairbandits.wrappers import PolicyRegret


def played(env_kwargs: Mapping[str, Any], agent: Agent) -> tuple[list[Any], dict[str, Any]]:
    """Return the assignments and the last info of an episode."""
    actions, _, info = episode(PolicyRegret(gym.make(EGAL, **env_kwargs)), agent, seed=0)
    return actions, info


SHARING: dict[str, Callable[[int], Agent]] = {
    "EgalUCB": lambda capacity: EgalUCB(capacity=capacity),
    "EgalMOSS": lambda capacity: EgalMOSS(300, capacity=capacity),
    "EgalKLUCB": lambda capacity: EgalKLUCB(capacity=capacity),
    "EgalThompson": lambda capacity: EgalThompson(capacity=capacity),
    "EgalThompson-gaussian": lambda capacity: EgalThompson("gaussian", capacity=capacity),
    "ExploreThenCommit": lambda capacity: ExploreThenCommit(300, 1.0, capacity=capacity),
    "GreedyRotation": lambda capacity: GreedyRotation(capacity=capacity),
    "CombinatorialUCB": lambda capacity: CombinatorialUCB(capacity=capacity),
    "PoorestFirst": lambda capacity: PoorestFirst(capacity=capacity),
    "PhasedElimination": lambda capacity: PhasedElimination(capacity, 300, kappa=1),
    "PhasedElimination-equal": lambda capacity: PhasedElimination(capacity, 300, "equal"),
}
ANY_CAPACITY = ["CombinatorialUCB", "PoorestFirst"]
ROTATING = [name for name in SHARING if name not in ANY_CAPACITY]
