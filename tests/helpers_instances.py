"""Improving arms of an instance, and the curves that a reset draws for them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.curves import Curve


def improving(instance: Any = "random_concave", **settings: Any) -> Any:
    return gym.make("ImprovingBandit-v0", instance=instance, **settings).unwrapped


def curves_of(instance: Any, seed: int | None = 0, **settings: Any) -> list[Curve]:
    env = improving(instance, **settings)
    env.reset(seed=seed)
    return list(env.curves)
