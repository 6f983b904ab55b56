"""Every registered environment keeps Gymnasium's and Stable-Baselines3's contracts."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from helpers_envs import (
    CASES,
    EGAL,
    IMPROVING,
    MIXED,
    PICTURELESS,
    SAMPLES,
    Player,
    arrays_in,
    arrays_of_state,
    assert_identical,
    drawn_laws,
    drawn_mixture,
    drawn_tables,
    every_case,
    every_id,
    pins_for,
    play,
    random_states,
    vandalise,
    worth,
)

from gym_fairbandits.envs import (
    EgalAssignEnv,
    EgalAssignVectorEnv,
    ImprovingBanditEnv,
    ImprovingBanditVectorEnv,
)
from gym_fairbandits.spaces import Assignment

Kwargs = dict[str, Any]
SCALAR: dict[str, Any] = {IMPROVING: ImprovingBanditEnv, EGAL: EgalAssignEnv}
VECTOR: dict[str, Any] = {IMPROVING: ImprovingBanditVectorEnv, EGAL: EgalAssignVectorEnv}

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


def same_play(env_id: str, one: Any, other: Any, steps: int = 50) -> None:
    """Assert that two environments go on alike: steps, ends, next episodes, worth, generators."""
    space = one.action_space
    num_arms = one.unwrapped.num_arms
    logs = []
    for env in (one, other):
        log: list[Any] = [play(env, Player(space, seed=3), steps), worth(env)]
        for pinned in (None, *pins_for(env_id, num_arms)[:2], None):
            log += [env.reset(options={"instance": pinned}), play(env, Player(space, seed=4), 9)]
        log.append(worth(env))
        logs.append(log)
    assert_identical(logs[0], logs[1])
    assert random_states(one) == random_states(other)


# --- Registration -------------------------------------------------------------------------------


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


# --- The checkers -------------------------------------------------------------------------------


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


# --- Seeds --------------------------------------------------------------------------------------


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


# --- What is returned ---------------------------------------------------------------------------


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


# --- Specs and copies ---------------------------------------------------------------------------

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


# --- Vector environments ------------------------------------------------------------------------

VECTORISED: list[tuple[str, Kwargs]] = [
    (IMPROVING, {"horizon": 4, "noise_std": 0.5}),
    (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "horizon": 4, "horizon_known": True}),
    (EGAL, {"horizon": 4}),
    (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 2, "capacity": 2, "horizon": 4}),
]


def play_vector(envs: Any, steps: int = 12) -> list[Any]:
    player = Player(envs.single_action_space)
    log = [envs.reset(seed=6)]
    log += [envs.step(player.batch(envs.num_envs)) for _ in range(steps)]
    envs.close()
    return log


@pytest.mark.parametrize(("env_id", "kwargs"), VECTORISED)
def test_sync_and_native_vector_environments_agree(env_id: str, kwargs: Kwargs) -> None:
    native = gym.make_vec(env_id, num_envs=2, **kwargs)
    sync = gym.make_vec(env_id, num_envs=2, vectorization_mode="sync", **kwargs)
    assert isinstance(sync, gym.vector.SyncVectorEnv)
    assert sync.action_space == native.action_space
    assert sync.observation_space == native.observation_space
    assert_identical(play_vector(native), play_vector(sync))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize(("env_id", "kwargs"), VECTORISED)
def test_async_vector_environments_agree_too(env_id: str, kwargs: Kwargs, context: str) -> None:
    native = gym.make_vec(env_id, num_envs=2, **kwargs)
    parallel = gym.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": context},
        **kwargs,
    )
    assert isinstance(parallel, gym.vector.AsyncVectorEnv)
    assert_identical(play_vector(parallel), play_vector(native))


def follow_stable_baselines(vec_env: Any, kwargs: Kwargs) -> None:
    """Assert that an SB3 vector env plays the scalar episodes of seeds 20, 21, ..."""
    envs = [gym.make(IMPROVING, **kwargs) for _ in range(vec_env.num_envs)]
    vec_env.seed(20)
    observations = vec_env.reset()
    for row, env in enumerate(envs):
        start, _ = env.reset(seed=20 + row)
        for key, value in start.items():
            np.testing.assert_array_equal(observations[key][row], value)
    player = Player(envs[0].action_space)
    for step in range(1, 12):
        actions = player.batch(len(envs))
        observations, rewards, dones, infos = vec_env.step(actions)
        ends = step % kwargs["horizon"] == 0
        for row, env in enumerate(envs):
            observation: Any
            observation, reward, terminated, truncated, _ = env.step(actions[row])
            assert np.float32(rewards[row]) == np.float32(reward)  # SB3 narrows in one process
            assert dones[row] == (terminated or truncated) == ends
            if ends:
                assert infos[row]["TimeLimit.truncated"] == (not kwargs["horizon_known"])
                assert_identical(infos[row]["terminal_observation"], observation)
                observation, _ = env.reset()
            for key, value in observation.items():
                np.testing.assert_array_equal(observations[key][row], value)
    vec_env.close()


@pytest.mark.parametrize("horizon_known", [False, True])
def test_stable_baselines_dummy_vec_env_runs_improving_bandit(horizon_known: bool) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    kwargs: Kwargs = {"num_arms": 4, "horizon": 5, "noise_std": 0.5}
    kwargs["horizon_known"] = horizon_known
    follow_stable_baselines(
        vec_env.DummyVecEnv([lambda: gym.make(IMPROVING, **kwargs) for _ in range(2)]), kwargs
    )


@pytest.mark.slow
def test_stable_baselines_subproc_vec_env_runs_improving_bandit() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    kwargs: Kwargs = {
        "instance": drawn_mixture,
        "num_arms": 4,
        "horizon": 5,
        "noise_std": 0.5,
        "horizon_known": False,
    }
    name = f"gym_fairbandits:{IMPROVING}"  # the workers have not imported the package
    vec = vec_env.SubprocVecEnv(
        [lambda: gym.make(name, **kwargs) for _ in range(2)], start_method="spawn"
    )
    follow_stable_baselines(vec, kwargs)


# --- Ends ---------------------------------------------------------------------------------------


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


# --- Wrong arguments ----------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
INTEGER = "must be an integer"
WRONG: list[tuple[str, Kwargs, type[Exception], str]] = [
    *(
        (env_id, {"horizon": value}, error, f"`horizon` {rule}")
        for env_id in (IMPROVING, EGAL)
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-5, ValueError, "must be at least 1, got -5"),
            (2**53 + 1, ValueError, "must be at most 9007199254740992"),
            (10.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (None, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("10", TypeError, INTEGER),
        ]
    ),
    *(
        (env_id, {name: value}, TypeError, f"`{name}` must be a bool")
        for env_id in (IMPROVING, EGAL)
        for name in ("horizon_known", "render_reveal")
        for value in (1, "yes", None, NAN)
    ),
    *(
        (env_id, {"num_arms": value}, error, f"`num_arms` {rule}")
        for env_id in (IMPROVING, EGAL)
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-1, ValueError, "must be at least 1, got -1"),
            (3.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("3", TypeError, INTEGER),
        ]
    ),
    *(
        (env_id, {"instance": value}, error, message)
        for env_id in (IMPROVING, EGAL)
        for value, error, message in [
            ("nope", ValueError, r"`instance` must be one of \[.*'lower_bound'.*\], got 'nope'"),
            ({"name": "nope"}, ValueError, "`instance` must be one of .*, got 'nope'"),
            ({"late": 1}, ValueError, "`instance` must be one of .*, got None"),
            ({"name": ["x"]}, ValueError, "`instance` must be one of .*"),
            (
                {"name": "lower_bound", "bogus": 1, "num_arms": 10},
                ValueError,
                r"instance 'lower_bound' takes the parameters \[.*\], got \['bogus'\]",
            ),
            (None, TypeError, "`instance` must be a name, .*, got None"),
            (5, TypeError, "`instance` must be a name, .*, got 5"),
            (NAN, TypeError, "`instance` must be a name, .*, got nan"),
        ]
    ),
    (
        IMPROVING,
        {"instance": "early_vs_late", "num_arms": 3},
        ValueError,
        "`num_arms` must be .* 2",
    ),
    (IMPROVING, {"instance": []}, ValueError, "`instance` must hold at least one curve"),
    (IMPROVING, {"instance": [0.5]}, TypeError, "arm 0 must be a `Curve` or its dict form"),
    (IMPROVING, {"instance": MIXED[0]}, TypeError, "`instance` must be a name"),
    (IMPROVING, {"instance": [*MIXED[:2], {"family": "nope"}]}, ValueError, "`family` must be one"),
    (
        IMPROVING,
        {"instance": [*MIXED[:2], {"family": "tabulated", "values": [0.5, 0.75, 0.625]}]},
        ValueError,
        r"arm 2 decreases: f\(2\) = 0\.75 but f\(3\) = 0\.625",
    ),
    (
        IMPROVING,
        {"instance": [{"family": "constant", "value": NAN}]},
        ValueError,
        "`value` must be finite",
    ),
    (
        IMPROVING,
        {"instance": {"name": "early_vs_late", "early_ramp": NAN}},
        ValueError,
        "`early_ramp` must be finite",
    ),
    *(
        (IMPROVING, {"noise_std": value}, error, f"`noise_std` {rule}")
        for value, error, rule in [
            (-0.5, ValueError, "must be at least 0, got -0.5"),
            (NAN, ValueError, "must be finite, got nan"),
            (INF, ValueError, "must be finite, got inf"),
            (None, TypeError, "must be a real number"),
            ("0", TypeError, "must be a real number"),
            (True, TypeError, "must be a real number"),
            (1j, TypeError, "must be a real number"),
        ]
    ),
    *(
        (IMPROVING, {"validate": value}, TypeError, "`validate` must be a bool")
        for value in (1, "no", None, NAN)
    ),
    *(
        (EGAL, {name: value}, error, f"`{name}` {rule}")
        for name in ("num_users", "capacity")
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-2, ValueError, "must be at least 1, got -2"),
            (2.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (None, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("2", TypeError, INTEGER),
        ]
    ),
    (EGAL, {"num_users": 11}, ValueError, r"`num_users` must be at most .* 10, got 11"),
    (
        EGAL,
        {"num_users": 7, "num_arms": 3, "capacity": 2},
        ValueError,
        "`num_users` must be at most .* 6, got 7",
    ),
    *(
        (EGAL, {"objective": value}, ValueError, "`objective` must be one of 'egalitarian', 'util")
        for value in ("fair", None, 3, NAN, ["egalitarian"])
    ),
    (
        EGAL,
        {"instance": {"family": "bernoulli", "means": [0.5, 0.5]}, "num_users": 2, "num_arms": 3},
        ValueError,
        "`num_arms` must be the instance's number of arms, 2",
    ),
    (
        EGAL,
        {"instance": {"family": "bernoulli", "means": [0.5, NAN]}},
        ValueError,
        "`means` must be",
    ),
    (EGAL, {"instance": {"family": "nope"}}, ValueError, "`family` must be one of"),
    (
        EGAL,
        {"instance": {"name": "gaussian", "variance": NAN}},
        ValueError,
        "`variance` must be fini",
    ),
    (
        EGAL,
        {"instance": {"name": "gaussian", "variance": -1}},
        ValueError,
        "`variance` must be at le",
    ),
    (EGAL, {"instance": [0.5, 0.5]}, TypeError, "`instance` must be a name"),
]


@pytest.mark.parametrize(("env_id", "kwargs", "error", "message"), WRONG)
def test_wrong_arguments_are_refused_by_name_scalar_and_vector(
    env_id: str, kwargs: Kwargs, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SCALAR[env_id](**kwargs)
    with pytest.raises(error, match=message):
        VECTOR[env_id](num_envs=2, **kwargs)
    with pytest.raises(error, match=message):
        gym.make(env_id, **kwargs)


@every_id
def test_every_argument_has_a_wrong_value_above(env_id: str) -> None:
    tried = {name for case, kwargs, *_ in WRONG if case == env_id for name in kwargs}
    assert tried | {"render_mode"} == set(inspect.signature(SCALAR[env_id]).parameters)


@pytest.mark.parametrize("mode", ["nope", 3, "movie"])
@every_id
def test_an_unknown_render_mode_is_refused(env_id: str, mode: Any) -> None:
    with pytest.raises(TypeError, match="`render_mode` must be None or one of"):
        SCALAR[env_id](render_mode=mode)
    with pytest.raises(TypeError, match="`render_mode` must be None or one of"):
        VECTOR[env_id](render_mode=mode)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"num_envs": 0}, ValueError, "`num_envs` must be at least 1, got 0"),
        ({"num_envs": 2.0}, TypeError, "`num_envs` must be an integer"),
        ({"num_envs": True}, TypeError, "`num_envs` must be an integer"),
        ({"max_episode_steps": 0}, ValueError, "`max_episode_steps` must be at least 1, got 0"),
        ({"max_episode_steps": -2}, ValueError, "`max_episode_steps` must be at least 1, got -2"),
        ({"max_episode_steps": 2.5}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": NAN}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": True}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": "5"}, TypeError, "`max_episode_steps` must be an integer"),
        ({"autoreset_mode": "nope"}, ValueError, "`autoreset_mode` must be .* got 'nope'"),
        ({"autoreset_mode": None}, ValueError, "`autoreset_mode` must be .* got None"),
        ({"autoreset_mode": 1}, ValueError, "`autoreset_mode` must be .* got 1"),
    ],
)
@every_id
def test_wrong_arguments_of_the_vector_environment_are_refused_by_name(
    env_id: str, kwargs: Kwargs, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gym.make_vec(env_id, **{"num_envs": 2, **kwargs})


@every_id
def test_integers_of_numpy_are_integers(env_id: str) -> None:
    env: Any = SCALAR[env_id](num_arms=np.int8(6), horizon=np.uint16(9), horizon_known=np.True_)
    assert type(env.num_arms) is int
    assert type(env.horizon) is int
    assert env.horizon_known is True
    assert env.observation_space["pulls"].shape == (6,)
