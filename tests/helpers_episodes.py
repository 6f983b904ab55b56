"""Environments whose episodes are exact, and what they refuse without a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.error import InvalidAction
from helpers_names import EGAL, IMPROVING
from helpers_play import Player, assert_identical, play, random_states, worth

from gym_fairbandits.curves import Constant, LinearCap

# Every value is a sum of powers of two and nothing is random: floating point makes no error.
EXACT: list[Any] = [
    LinearCap(1.0, 4),  # 1/4, 1/2, 3/4, 1, 1, ...
    Constant(0.5),
    {"family": "tabulated", "values": [0.125, 0.25, 0.3125]},
]
SURE = {"family": "gaussian", "means": [1.0, 0.5, 0.25, 0.125], "std": 0.0}


def improving(**kwargs: Any) -> Any:
    return gym.make(IMPROVING, **kwargs)


def egal(**kwargs: Any) -> Any:
    return gym.make(EGAL, **kwargs)


def assert_action_is_refused(make: Callable[[], Any], action: Any, message: str) -> None:
    """Assert that an action is refused at any moment of episodes and changes nothing."""
    env, twin = make(), make()
    player, other = Player(env.action_space), Player(env.action_space)
    assert_identical(env.reset(seed=2), twin.reset(seed=2))
    for steps in (0, 1, 9, 20):  # at the start, twice within, and in the next episode
        assert_identical(play(env, player, steps), play(twin, other, steps))
        for bandit in (env, env.unwrapped):
            with pytest.raises(InvalidAction, match=message):
                bandit.step(action)
        assert random_states(env) == random_states(twin)
        assert_identical(worth(env), worth(twin))
        assert env.unwrapped.steps == twin.unwrapped.steps
    assert_identical(play(env, player, 30), play(twin, other, 30))


def assert_pin_is_refused(
    make: Callable[[], Any], pin: Any, error: type[Exception], message: str
) -> None:
    """Assert that an instance in the options is refused in mid-episode and changes nothing."""
    env, twin = make(), make()
    logs = []
    for either in (env, twin):
        either.reset(seed=1)
        play(either, Player(env.action_space), 5)
        if either is env:
            with pytest.raises(error, match=message):
                either.reset(seed=9, options={"instance": pin})
        log = [worth(either), play(either, Player(env.action_space), 50), either.reset()]
        logs.append([*log, random_states(either)])
    assert_identical(logs[0], logs[1])


def assert_horizon_is_not_observed(make: Callable[..., Any]) -> None:
    """Assert that episodes of any horizon look alike until one ends."""
    short, long = make(horizon=6), make(horizon=1000)
    assert short.observation_space == long.observation_space
    assert_identical(short.reset(seed=3), long.reset(seed=3))
    player = Player(short.action_space)
    for _ in range(5):
        action = player()
        assert_identical(short.step(action), long.step(action))
