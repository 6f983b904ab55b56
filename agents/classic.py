"""Policies that every comparison needs, whatever the environment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int

from .base import Agent, Observation

__all__ = ["UniformRandom"]

Ints = NDArray[np.int64]


class UniformRandom(Agent):
    """A uniformly random arm, or a random assignment: uniform over all at capacity 1.

    Regret is linear in T. At capacity C each arm counts as C slots, of which the users get
    distinct ones at random.

    Attributes:
        capacity: Users per arm; only assignments read it.
    """

    def __init__(self, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``capacity`` is below 1.
        """
        super().__init__()
        self.capacity = checked_int("capacity", capacity)

    def _act(self, observation: Observation) -> Ints:
        rows, num_arms = observation["pulls"].shape
        if "user_reward_sum" not in observation:
            arms: Ints = (self._uniforms(rows, 1)[:, 0] * num_arms).astype(np.int64)
            return arms
        num_users = observation["user_reward_sum"].shape[1]
        if not num_users <= self.capacity * num_arms:
            raise ValueError(
                f"`capacity` must be at least the users per arm, {num_users} / {num_arms}, "
                f"got {self.capacity}"
            )
        # The order of independent uniform numbers is a uniformly random permutation.
        keys = self._uniforms(rows, num_arms * self.capacity)
        order: Ints = keys.argsort(axis=1, kind="stable")
        return order[:, :num_users] // self.capacity
