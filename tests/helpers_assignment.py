"""Action wrappers, sizes and small environments for the tests of assignments."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL

from gym_fairbandits.wrappers import (
    EnumeratedAssignment,
    LehmerAssignment,
    RankedAssignment,
    RotatedAssignment,
    SequentialAssignment,
)

Sizes = tuple[int, int, int]  # users, arms, capacity

ONE_STEP: dict[str, Any] = {
    "ranked": RankedAssignment,
    "lehmer": LehmerAssignment,
    "enumerated": EnumeratedAssignment,
}
ALL: dict[str, Any] = {**ONE_STEP, "sequential": SequentialAssignment, "rotated": RotatedAssignment}
every_wrapper = pytest.mark.parametrize("name", ALL)
one_step = pytest.mark.parametrize("name", ONE_STEP)
ALONE: list[Sizes] = [(users, arms, 1) for arms in range(1, 6) for users in range(1, arms + 1)]
SHARED: list[Sizes] = [
    (2, 1, 2),
    (3, 2, 2),
    (4, 2, 2),
    (1, 3, 2),
    (2, 3, 2),
    (3, 3, 2),
    (4, 3, 2),
    (5, 3, 2),
    (6, 3, 2),
    (3, 2, 3),
    (5, 2, 3),
    (3, 2, 5),  # one arm has room for more users than there are
]
small = pytest.mark.parametrize("sizes", [*ALONE, *SHARED], ids=str)


def make(sizes: Sizes = (3, 5, 1), **kwargs: Any) -> gym.Env[Any, Any]:
    users, arms, capacity = sizes
    settings = {"num_users": users, "num_arms": arms, "capacity": capacity, "horizon": 12, **kwargs}
    return gym.make(EGAL, **settings)


class Spy(gym.Wrapper[Any, Any, Any, Any]):
    """Records the assignments that reach the environment, as lists."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.seen: list[list[int]] = []

    def step(self, action: Any) -> Any:
        assert type(action) is np.ndarray
        assert action.dtype == np.int64
        assert action in self.env.action_space
        outcome = self.env.step(action)
        self.seen.append(action.tolist())
        return outcome


def wrapped(
    name: str, sizes: Sizes = (3, 5, 1), *, options: Any = None, **kwargs: Any
) -> tuple[Any, Spy]:
    """Return a wrapped environment, reset with seed 0, and the spy inside."""
    spy = Spy(make(sizes, **kwargs))
    env = ALL[name](spy, **(options or {}))
    env.reset(seed=0)
    return env, spy


def legal(sizes: Sizes) -> list[tuple[int, ...]]:
    """Return all legal assignments in lexicographic order, by trying all tuples."""
    users, arms, capacity = sizes
    return [
        choice
        for choice in itertools.product(range(arms), repeat=users)
        if all(choice.count(arm) <= capacity for arm in range(arms))
    ]


PLAYED: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "bernoulli": ((3, 5, 1), {}),
    "known": ((4, 4, 1), {"horizon_known": True, "instance": "gaussian"}),
    "shared": ((4, 3, 2), {"instance": "gaussian"}),
    "uneven": ((5, 3, 2), {"horizon_known": True}),
    "one_user": ((1, 3, 1), {"objective": "utilitarian"}),
    "limited": ((2, 4, 1), {"max_episode_steps": 7}),
}
