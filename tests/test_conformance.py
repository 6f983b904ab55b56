"""Every registered environment keeps Gymnasium's and Stable-Baselines3's contracts."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from helpers_conformance import SCALAR, VECTOR, same_play
from helpers_envs import CASES, MIXED, PICTURELESS, SAMPLES, drawn_tables, every_case, every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import (
    Player,
    arrays_in,
    arrays_of_state,
    assert_identical,
    play,
    random_states,
    vandalise,
    worth,
)

from gym_fairbandits.spaces import Assignment

# Kwargs under which the checkers run; these need more than one step per episode.
CHECKED: list[tuple[str, Kwargs]] = [
    (IMPROVING, {}),
    (IMPROVING, {"horizon_known": True}),
    (IMPROVING, {"noise_std": 0.5}),
    (IMPROVING, {"instance": "early_vs_late", "horizon": 3}),
    (EGAL, {}),
    (EGAL, {"horizon_known": True}),
    (EGAL, {"capacity": 2, "num_arms": 3}),
    (EGAL, {"instance": "gaussian"}),
    (EGAL, {"objective": "utilitarian"}),
    *((env_id, kwargs) for env_id, kwargs in CASES if kwargs["horizon"] > 1),
]

# Random through their instance, their rewards or both; numbers of steps that surely tell.
RANDOM: list[tuple[str, Kwargs]] = [
    (IMPROVING, {}),
    (IMPROVING, {"instance": "early_vs_late", "noise_std": 0.1}),
    (IMPROVING, {"instance": drawn_tables, "num_arms": 3}),
    (EGAL, {}),
    (EGAL, {"instance": "gaussian", "capacity": 2}),
    (EGAL, {"instance": "two_level"}),
    (EGAL, {"instance": {"family": "empirical", "samples": SAMPLES}}),
]


# --- Registration ---------------------------------------------------------------------------------


def test_every_registered_id_is_tested_here_and_knows_its_vector_class() -> None:
    registered = {
        env_id
        for env_id, spec in gym.registry.items()
        if str(spec.entry_point).startswith("gym_fairbandits")
    }
    assert registered == set(SCALAR) == {env_id for env_id, _ in CASES}
    for env_id in registered:
        assert isinstance(gym.make(env_id).unwrapped, SCALAR[env_id])
        assert isinstance(gym.make_vec(env_id, num_envs=2).unwrapped, VECTOR[env_id])


@every_id
def test_no_step_limit_is_registered(env_id: str) -> None:
    assert gym.spec(env_id).max_episode_steps is None
    env: Any = gym.make(env_id)
    while env is not env.unwrapped:
        assert not isinstance(env, gym.wrappers.TimeLimit)
        env = env.env


# --- The checkers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "kwargs"), CHECKED)
def test_gymnasium_checks_it_without_a_warning(env_id: str, kwargs: Kwargs) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, **kwargs).unwrapped, skip_render_check=PICTURELESS)


@pytest.mark.parametrize(
    "kwargs", [{}, {"horizon_known": True}, {"noise_std": 0.5}, {"instance": MIXED, "horizon": 5}]
)
def test_stable_baselines_checks_improving_bandit_without_a_warning(kwargs: Kwargs) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make(IMPROVING, **kwargs).unwrapped)


# --- Seeds ----------------------------------------------------------------------------------------


@every_case
def test_a_seed_fixes_this_episode_and_the_next_ones(env_id: str, kwargs: Kwargs) -> None:
    logs = []
    env = gym.make(env_id, **kwargs)
    for instance in (env, env, gym.make(env_id, **kwargs)):
        log: list[Any] = [instance.reset(seed=11)]
        for number in range(4):
            log += [play(instance, Player(env.action_space, number), 30), instance.reset()]
        logs.append([*log, random_states(instance)])
    assert_identical(logs[1], logs[0])
    assert_identical(logs[2], logs[0])


@pytest.mark.parametrize(("env_id", "kwargs"), RANDOM)
def test_different_seeds_and_successive_episodes_differ(env_id: str, kwargs: Kwargs) -> None:
    env: Any = gym.make(env_id, **kwargs)
    totals = []
    for seed in (0, 1, 2, None, None, None):
        env.reset(seed=seed)
        player = Player(env.action_space)
        rewards = [step[1] for step in play(env, player, 60)]
        totals.append(tuple(rewards))
    assert len(set(totals)) == len(totals)


@every_id
def test_unseeded_environments_differ(env_id: str) -> None:
    totals = []
    for _ in range(3):
        env: Any = gym.make(env_id)
        env.reset()
        totals.append(tuple(step[1] for step in play(env, Player(env.action_space), 60)))
    assert len(set(totals)) == 3


# --- What is returned -----------------------------------------------------------------------------


def expected_layout(env_id: str, env: Any) -> dict[str, tuple[type, tuple[int, ...]]]:
    arms = (env.num_arms,)
    if env_id == IMPROVING:
        layout: dict[str, Any] = {
            "pulls": (np.int64, arms),
            "reward_sum": (np.float64, arms),
            "last_reward": (np.float64, arms),
            "last_increment": (np.float64, arms),
        }
    else:
        layout = {
            "pulls": (np.int64, arms),
            "reward_sum": (np.float64, arms),
            "user_reward_sum": (np.float64, (env.num_users,)),
        }
    if env.horizon_known:
        layout["remaining"] = (np.int64, (1,))
    return layout


@every_case
def test_types_shapes_keys_and_bounds_of_all_that_is_returned(env_id: str, kwargs: Kwargs) -> None:
    env: Any = gym.make(env_id, **kwargs)
    bandit = env.unwrapped
    player = Player(env.action_space)
    layout = expected_layout(env_id, bandit)
    for episode in range(3):
        observation, info = env.reset(seed=episode or None)
        assert info == {}
        for step in range(1, bandit.horizon + 1):
            assert {
                key: (value.dtype.type, value.shape) for key, value in observation.items()
            } == layout
            assert observation in env.observation_space
            observation, reward, terminated, truncated, info = env.step(player())
            assert type(reward) is float
            assert type(terminated) is bool
            assert type(truncated) is bool
            if env_id == IMPROVING:
                assert info == {}
            else:
                assert list(info) == ["user_rewards"]
                assert info["user_rewards"].dtype == np.float64
                assert info["user_rewards"].shape == (bandit.num_users,)
            last = step == bandit.horizon
            assert (terminated, truncated) == (
                (last, False) if bandit.horizon_known else (False, last)
            )
        assert observation in env.observation_space


@every_case
def test_samples_of_the_spaces_are_finite_and_legal(env_id: str, kwargs: Kwargs) -> None:
    env = gym.make(env_id, **kwargs)
    env.observation_space.seed(0)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(20):
        sample = env.observation_space.sample()
        assert sample in env.observation_space
        assert all(np.isfinite(value).all() for value in sample.values())
        action = env.action_space.sample()
        assert action in env.action_space
        if env.step(action)[2:4] != (False, False):
            env.reset()


@every_case
def test_the_bounds_are_finite(env_id: str, kwargs: Kwargs) -> None:
    space: Any = gym.make(env_id, **kwargs).observation_space
    for name, box in space.items():
        assert isinstance(box, spaces.Box)
        limit = {"pulls": 2**53, "remaining": kwargs["horizon"]}.get(name, 1e30)
        assert box.high.tolist() == [limit] * box.shape[0]
        assert box.low.tolist() == [0 if box.dtype == np.int64 else -1e30] * box.shape[0]


def test_action_spaces() -> None:
    assert gym.make(IMPROVING, num_arms=7).action_space == spaces.Discrete(7)
    assert gym.make(EGAL, num_users=3, num_arms=7).action_space == Assignment(3, 7)
    shared = gym.make(EGAL, num_users=3, num_arms=2, capacity=2)
    assert shared.action_space == Assignment(3, 2, capacity=2)


@every_case
def test_nothing_that_is_returned_shares_memory(env_id: str, kwargs: Kwargs) -> None:
    env: Any = gym.make(env_id, **kwargs)
    player = Player(env.action_space)
    given = []
    for number in range(6):
        if number % 4 == 0:
            given.append(list(arrays_in(env.reset(seed=number))))
        else:
            action = player()
            given.append(list(arrays_in(env.step(action))))
            given.append([action] if isinstance(action, np.ndarray) else [])
            if env.unwrapped.steps >= env.unwrapped.horizon:
                given.append(list(arrays_in(env.reset())))
        everything = [array for call in given for array in call]
        for place, array in enumerate(everything):
            assert not any(np.shares_memory(array, other) for other in everything[:place])
        state = list(arrays_of_state(env.unwrapped))
        assert len(state) > 3
        for array in everything:
            assert not any(np.shares_memory(array, other) for other in state)


@every_case
def test_vandalising_what_was_returned_or_given_changes_nothing(
    env_id: str, kwargs: Kwargs
) -> None:
    env: Any = gym.make(env_id, **kwargs)
    twin: Any = gym.make(env_id, **kwargs)
    player = Player(env.action_space)
    assert_identical(env.reset(seed=5), twin.reset(seed=5))
    for _ in range(40):
        action = player()
        used = copy.deepcopy(action)
        ours, theirs = env.step(used), twin.step(action)
        assert_identical(used, action)
        assert_identical(ours, theirs)
        assert_identical(worth(env), worth(twin))
        vandalise([ours, used, worth(env)])
        if theirs[2] or theirs[3]:
            start = env.reset()
            assert_identical(start, twin.reset())
            vandalise(start)


# --- Ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@every_id
def test_a_horizon_of_5000_lasts_5000_steps(env_id: str, known: bool) -> None:
    env: Any = gym.make(env_id, horizon=5000, horizon_known=known)
    observation, _ = env.reset(seed=0)
    action = env.action_space.sample()
    for step in range(1, 5001):
        observation, _, terminated, truncated, _ = env.step(action)
        assert (terminated or truncated) == (step == 5000)
    assert (terminated, truncated) == (known, not known)
    most = observation["pulls"].max()
    assert most == 5000
    assert env.unwrapped.steps == 5000


@pytest.mark.parametrize(
    ("limit", "known", "length", "flags"),
    [
        (3, False, 3, (False, True)),
        (3, True, 3, (False, True)),
        (5, False, 5, (False, True)),
        (5, True, 5, (True, True)),
        (9, False, 5, (False, True)),
        (9, True, 5, (True, False)),
        (None, False, 5, (False, True)),
        (None, True, 5, (True, False)),
    ],
)
@every_id
def test_the_nearer_of_horizon_and_step_limit_ends_the_episode(
    env_id: str, limit: int | None, known: bool, length: int, flags: tuple[bool, bool]
) -> None:
    kwargs: Kwargs = {"horizon": 5, "horizon_known": known, "max_episode_steps": limit}
    env: Any = gym.make(env_id, **kwargs)
    envs: Any = gym.make_vec(env_id, num_envs=2, **kwargs)
    envs.reset(seed=0)
    player = Player(env.action_space)
    for episode in range(3):
        env.reset(seed=episode)
        for step in range(1, length + 1):
            observation, _, terminated, truncated, _ = env.step(player())
            assert (terminated, truncated) == (flags if step == length else (False, False))
            if known:
                assert observation["remaining"].tolist() == [5 - step]
            _, _, terminations, truncations, _ = envs.step(player.batch(2))
            assert terminations.tolist() == [terminated] * 2
            assert truncations.tolist() == [truncated] * 2
        envs.step(player.batch(2))  # the reset


@every_case
def test_a_step_before_the_first_reset_raises(env_id: str, kwargs: Kwargs) -> None:
    env: Any = gym.make(env_id, **kwargs)
    action = Player(env.action_space)()
    with pytest.raises(ResetNeeded):
        env.step(action)
    with pytest.raises(ResetNeeded, match="call `reset` before `step`: no episode is running"):
        env.unwrapped.step(action)
    twin = gym.make(env_id, **kwargs)
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    same_play(env_id, env, twin, steps=10)


@every_id
def test_what_an_episode_is_worth_cannot_be_asked_before_the_first_reset(env_id: str) -> None:
    for env in (SCALAR[env_id](horizon=4), VECTOR[env_id](num_envs=2, horizon=4)):
        names = ["optimal_return", "expected_return", "realized_return"]
        names += ["expected_user_returns"] if env_id == EGAL else []
        for name in names:
            with pytest.raises(ResetNeeded, match="call `reset`"):
                getattr(env, name)()
        env.reset(seed=0)
        for name in names:
            assert not np.any(getattr(env, name)())


@pytest.mark.parametrize("known", [False, True])
@every_id
def test_a_step_after_the_own_end_raises_until_the_reset(env_id: str, known: bool) -> None:
    env: Any = gym.make(env_id, horizon=3, horizon_known=known)
    twin: Any = gym.make(env_id, horizon=3, horizon_known=known)
    player = Player(env.action_space)
    action = player()
    for either in (env, twin):
        either.reset(seed=0)
        for _ in range(3):
            either.step(action)
    for _ in range(3):
        with pytest.raises(ResetNeeded, match="call `reset` before `step`: the episode has ended"):
            env.step(action)
    assert_identical(worth(env), worth(twin))
    assert random_states(env) == random_states(twin)
    assert_identical(env.reset(), twin.reset())
    same_play(env_id, env, twin)


@every_id
def test_after_the_end_of_a_step_limit_the_unwrapped_environment_may_go_on(env_id: str) -> None:
    limited: Any = gym.make(env_id, horizon=5, max_episode_steps=2)
    free: Any = gym.make(env_id, horizon=5)
    player = Player(free.action_space)
    limited.reset(seed=0)
    free.reset(seed=0)
    for _ in range(2):
        action = player()
        *_, truncated, _ = limited.step(action)
        free.step(action)
    assert truncated
    for step in range(3, 6):
        action = player()
        ours, theirs = limited.unwrapped.step(action), free.step(action)
        assert_identical(ours, theirs)
        assert ours[3] == (step == 5)
    with pytest.raises(ResetNeeded, match="the episode has ended"):
        limited.unwrapped.step(action)
