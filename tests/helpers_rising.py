"""Games on rising arms and published cases for the tests of their agents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from helpers_agents import episode
from helpers_names import IMPROVING, Floats

from gym_fairbandits.agents import Agent
from gym_fairbandits.curves import Curve, Tabulated

PUBLISHED: Any = json.loads(
    (Path(__file__).parent / "data" / "rising_agents.json").read_text("utf-8")
)


def game(curves: Sequence[Curve], steps: int, known: bool = True, noise: float = 0.0) -> Any:
    """Return an environment of ``steps`` steps on any curves."""
    return gym.make(
        IMPROVING,
        instance=list(curves),
        horizon=steps,
        horizon_known=known,
        noise_std=noise,
        validate=False,
    )


def pulled(agent: Agent, curves: Sequence[Curve], steps: int, known: bool = True) -> list[int]:
    """Return the arms that an agent pulls in one episode."""
    return episode(game(curves, steps, known), agent, seed=0)[0]


def tables(*rewards: Sequence[float] | Floats) -> list[Curve]:
    return [Tabulated(tuple(values)) for values in rewards]


def linear(slope: float, steps: int = 100) -> Tabulated:
    return Tabulated(tuple(slope * n for n in range(1, steps + 1)))
