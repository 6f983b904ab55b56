"""Specs and copies of every environment rebuild it and go on as it does."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from helpers_conformance import SCALAR, same_play
from helpers_envs import SAMPLES, drawn_tables, every_case, every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, assert_identical, play, worth

# Between them they give every argument that JSON can hold.
JSON_CASES: list[tuple[str, Kwargs]] = [
    (
        IMPROVING,
        {
            "instance": "random_concave",
            "num_arms": 4,
            "noise_std": 0.25,
            "horizon": 9,
            "horizon_known": True,
            "validate": True,
            "render_mode": None,
            "render_reveal": True,
            "max_episode_steps": 7,
        },
    ),
    (IMPROVING, {"instance": {"name": "lower_bound", "late": 0, "steps": 30}, "num_arms": 3}),
    (
        IMPROVING,
        {
            "instance": [
                {"family": "linear_cap", "asymptote": 1.0, "ramp": 40},
                {"family": "exponential", "asymptote": 0.5, "rate": 0.1},
                {"family": "tabulated", "values": [0.5, 0.25]},
                {"family": "constant", "value": 0.5},
            ],
            "validate": False,
        },
    ),
    (
        EGAL,
        {
            "instance": {"name": "gaussian", "variance": 0.5},
            "num_users": 5,
            "num_arms": 4,
            "capacity": 2,
            "objective": "utilitarian",
            "horizon": 9,
            "horizon_known": True,
            "render_mode": None,
            "render_reveal": True,
            "max_episode_steps": 7,
        },
    ),
    (EGAL, {"instance": "two_level", "num_users": 3}),
    (EGAL, {"instance": {"family": "bernoulli", "means": [0.25, 0.5]}, "num_users": 2}),
    (EGAL, {"instance": {"family": "gaussian", "means": [0.25, 0.5], "std": 0.5}, "num_users": 2}),
    (EGAL, {"instance": {"family": "empirical", "samples": SAMPLES}}),
]


@every_id
def test_the_json_cases_give_every_argument(env_id: str) -> None:
    given = {name for case, kwargs in JSON_CASES if case == env_id for name in kwargs}
    takes = set(inspect.signature(SCALAR[env_id]).parameters)
    assert given == takes | {"max_episode_steps"}


@pytest.mark.parametrize(("env_id", "kwargs"), JSON_CASES)
def test_a_spec_survives_json_and_rebuilds_an_equal_environment(
    env_id: str, kwargs: Kwargs
) -> None:
    env: Any = gym.make(env_id, **kwargs)
    restored = EnvSpec.from_json(env.spec.to_json())
    assert restored == env.spec
    logs = []
    for built in (env, gym.make(env.spec), gym.make(restored)):
        assert built.observation_space == env.observation_space
        assert built.action_space == env.action_space
        log = [built.reset(seed=2), play(built, Player(env.action_space), 20), worth(built)]
        logs.append(log)
    assert_identical(logs[1], logs[0])
    assert_identical(logs[2], logs[0])


@pytest.mark.parametrize(("env_id", "kwargs"), JSON_CASES)
def test_a_vector_spec_survives_json_and_rebuilds_an_equal_environment(
    env_id: str, kwargs: Kwargs
) -> None:
    envs: Any = gym.make_vec(env_id, num_envs=3, autoreset_mode="SameStep", **kwargs)
    restored = EnvSpec.from_json(envs.spec.to_json())
    assert restored == envs.spec
    again: Any = gym.make_vec(restored)
    assert again.num_envs == 3
    assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert_identical(again.reset(seed=2), envs.reset(seed=2))
    player = Player(envs.single_action_space)
    for _ in range(20):
        actions = player.batch(3)
        assert_identical(again.step(actions), envs.step(actions))


def test_the_environment_keeps_its_own_copy_of_the_instance() -> None:
    values = [0.25, 0.5]
    instance: Any = [
        {"family": "tabulated", "values": values},
        {"family": "constant", "value": 0.125},
    ]
    env = gym.make(IMPROVING, instance=instance)
    values[0] = 0.0
    instance[1]["value"] = 1.0
    instance.pop()
    for seed in (0, 1):
        env.reset(seed=seed)
        assert [env.step(0)[1], env.step(0)[1], env.step(1)[1]] == [0.25, 0.5, 0.125]


def copied(env: Any, how: str) -> Any:
    return copy.deepcopy(env) if how == "deepcopy" else pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
@every_case
def test_copies_made_at_any_moment_go_on_exactly(env_id: str, kwargs: Kwargs, how: str) -> None:
    env: Any = gym.make(env_id, disable_env_checker=True, **kwargs)
    player = Player(env.action_space)
    before_any_reset = copied(env, how)
    env.reset(seed=8)
    before_any_reset.reset(seed=8)
    same_play(env_id, env, before_any_reset)
    for steps in (0, 1, 17):
        env.reset(seed=steps)
        play(env, player, steps)
        same_play(env_id, env, copied(env, how))
    env.reset(seed=9)
    for _ in range(kwargs["horizon"]):
        env.step(player())
    ended = copied(env, how)
    assert_identical(worth(ended), worth(env))
    for finished in (env, ended):
        with pytest.raises(ResetNeeded, match="the episode has ended"):
            finished.step(player())
        finished.reset()
    same_play(env_id, env, ended)


@every_case
def test_a_copy_is_independent_of_its_original(env_id: str, kwargs: Kwargs) -> None:
    env: Any = gym.make(env_id, **kwargs)
    twin: Any = gym.make(env_id, **kwargs)
    for either in (env, twin):
        either.reset(seed=1)
        play(either, Player(env.action_space, 2), 5)
    other = copy.deepcopy(env)
    play(other, Player(env.action_space, 6), 40)
    other.reset(seed=0)
    same_play(env_id, env, twin)


def test_a_pickle_taken_before_the_first_draw_of_an_instance_keeps_the_streams() -> None:
    # The instances' stream is spawned when first needed; a pickle must not shift it.
    env = gym.make(IMPROVING, instance="early_vs_late", noise_std=1.0)
    env.reset(seed=4)
    other = pickle.loads(pickle.dumps(env))
    for either in (env, other):
        either.reset(options={"instance": drawn_tables})
    assert env.unwrapped.curves == other.unwrapped.curves  # type: ignore[attr-defined]
    same_play(IMPROVING, env, other)
