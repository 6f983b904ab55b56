"""Action wrappers add nothing to the environment, and the checkers find no fault."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import Autoreset, RecordEpisodeStatistics, TimeLimit
from helpers_assignment import (
    ALL,
    ONE_STEP,
    PLAYED,
    Sizes,
    Spy,
    every_wrapper,
    make,
    one_step,
    wrapped,
)
from helpers_envs import PICTURELESS
from helpers_play import assert_identical
from numpy.testing import assert_array_equal

from gym_fairbandits.wrappers import PolicyRegret, RotatedAssignment, SequentialAssignment

# --- The wrapper adds nothing to the environment --------------------------------------------------

every_game = pytest.mark.parametrize("game", PLAYED)


@every_game
@one_step
def test_stepping_the_wrapper_is_stepping_the_decoded_assignment(name: str, game: str) -> None:
    sizes, kwargs = PLAYED[game]
    env, inner = ONE_STEP[name](make(sizes, **kwargs)), make(sizes, **kwargs)
    env.action_space.seed(1)
    for seed in (0, None, 5):
        assert_identical(env.reset(seed=seed), inner.reset(seed=seed))
        ended = False
        while not ended:
            action = env.action_space.sample()
            ours, theirs = env.step(action), inner.step(env.action(action))
            assert_identical(ours, theirs)
            assert ours[0] in env.observation_space
            ended = ours[2] or ours[3]


@every_game
def test_stepping_a_round_is_stepping_its_assignment(game: str) -> None:
    sizes, kwargs = PLAYED[game]
    users, arms, capacity = sizes
    spy, inner = Spy(make(sizes, **kwargs)), make(sizes, **kwargs)
    env = SequentialAssignment(spy)
    env.action_space.seed(1)
    for seed in (0, None):
        latest: Any = inner.reset(seed=seed)
        observation, info = env.reset(seed=seed)
        assert_identical(info, latest[1])
        ended = False
        while not ended:
            taken = np.zeros(arms, dtype=np.int64)
            for user in range(users):
                assert observation in env.observation_space
                assert_array_equal(observation["turn"], [user])
                assert_array_equal(observation["taken"], taken)
                rest = {key: observation[key] for key in latest[0]}
                assert_identical(rest, latest[0])
                masks = env.action_masks()
                assert masks.dtype == np.bool_
                assert_array_equal(masks, taken < capacity)
                action = env.action_space.sample()
                outcome: Any = env.step(action)
                observation, reward, terminated, truncated, info = outcome
                if user < users - 1:
                    assert type(reward) is float
                    assert outcome[1:] == (0.0, False, False, {})
                    assert terminated is False
                    assert truncated is False
                    arm = int(np.argmax(observation["taken"] - taken))
                    # Going up from the action, all before this arm are full.
                    assert masks[arm]
                    passed = [(action + j) % arms for j in range((arm - action) % arms)]
                    assert not masks[passed].any()
                    taken[arm] += 1
            latest = inner.step(np.array(spy.seen[-1]))
            assert_identical((reward, terminated, truncated, info), latest[1:])
            assert_array_equal(observation["turn"], [0])
            assert_array_equal(observation["taken"], np.zeros(arms))
            ended = terminated or truncated
        assert inner.unwrapped.np_random.bit_generator.state == (
            env.unwrapped.np_random.bit_generator.state
        )


@every_game
def test_stepping_a_block_is_stepping_its_assignments(game: str) -> None:
    sizes, kwargs = PLAYED[game]
    env, inner = RotatedAssignment(make(sizes, **kwargs)), make(sizes, **kwargs)
    env.action_space.seed(1)
    lengths = set()
    for seed in (0, None):
        assert_identical(env.reset(seed=seed), inner.reset(seed=seed))
        ended = False
        while not ended:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, info = env.step(action)
            outcomes: list[Any] = []
            for arms in env.rotation(action):
                outcomes.append(inner.step(arms))
                if outcomes[-1][2] or outcomes[-1][3]:
                    break
            assert type(reward) is float
            assert reward == sum(float(outcome[1]) for outcome in outcomes)
            assert_identical((terminated, truncated), outcomes[-1][2:4])
            assert_identical(observation, outcomes[-1][0])
            users = [outcome[4]["user_rewards"] for outcome in outcomes]
            assert set(info) == set(outcomes[-1][4])
            assert_array_equal(info["user_rewards"], sum(users))
            lengths.add(len(outcomes))
            ended = terminated or truncated
    horizon = kwargs.get("max_episode_steps", 12)
    expected = {env.block_length, horizon % env.block_length} - {0}
    assert lengths == expected


@every_wrapper
def test_ends_are_marked_as_the_environment_marks_them(name: str) -> None:
    for known in (False, True):
        env, spy = wrapped(name, horizon=4, horizon_known=known)
        flags: list[tuple[bool, bool]] = []
        steps = 0
        while not flags or flags[-1] == (False, False):
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            assert type(terminated) is bool
            assert type(truncated) is bool
            flags.append((terminated, truncated))
            steps += 1
        assert flags[-1] == (known, not known)
        assert info["user_rewards"].shape == (3,)
        assert len(spy.seen) == 4
        # Rounds of 3 substeps; a block of 3 steps and one that is cut short.
        assert steps == {"sequential": 12, "rotated": 2}.get(name, 4)


@every_wrapper
def test_a_limit_inside_counts_the_environments_steps_and_one_outside_the_wrappers(
    name: str,
) -> None:
    for outside in (False, True):
        env, spy = wrapped(name, max_episode_steps=None if outside else 5)
        if outside:
            env = TimeLimit(env, max_episode_steps=5)
            env.reset(seed=0)
        steps, truncated = 0, False
        while not truncated:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            assert not terminated
            steps += 1
        if outside:
            inner = {"sequential": 1, "rotated": 12}.get(name, 5)
            assert (steps, len(spy.seen)) == ({"rotated": 4}.get(name, 5), inner)
        else:
            assert (steps, len(spy.seen)) == ({"sequential": 15, "rotated": 2}.get(name, 5), 5)


@every_wrapper
def test_reset_is_needed_before_and_after_an_episode(name: str) -> None:
    env = ALL[name](make(horizon=3))
    action = env.action_space.sample()
    with pytest.raises(ResetNeeded):
        env.step(action)
    for _ in range(2):
        env.reset(seed=0)
        while not any(env.step(action)[2:4]):
            pass
        for _ in range(2):
            with pytest.raises(ResetNeeded):
                env.step(action)
    env.reset()
    env.step(action)


@every_wrapper
@pytest.mark.parametrize("inside", [False, True])
def test_regret_is_the_same_inside_and_outside(name: str, inside: bool) -> None:
    plain, spy = wrapped(name, horizon=6)
    plain.action_space.seed(3)
    bare: Any = make(horizon=6)
    env: Any = ALL[name](PolicyRegret(bare)) if inside else PolicyRegret(ALL[name](bare))
    env.reset(seed=0)
    ended = False
    while not ended:
        action = plain.action_space.sample()
        plain.step(action)
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        assert ("policy_regret" in info) == ended
    twin = PolicyRegret(make(horizon=6))
    twin.reset(seed=0)
    for arms in spy.seen:
        expected = twin.step(np.array(arms))[4]
    if name == "rotated":
        expected.pop("user_rewards")
        info.pop("user_rewards")
    assert_identical(info, expected)


@every_wrapper
def test_returned_arrays_are_fresh(name: str) -> None:
    env, _ = wrapped(name, horizon=30)
    env.action_space.seed(0)
    kept = [env.reset(seed=0), *(env.step(env.action_space.sample()) for _ in range(8))]
    reference = copy.deepcopy(kept)
    twin, _ = wrapped(name, horizon=30)
    twin.action_space.seed(0)
    twin.reset(seed=0)
    for number in range(1, 9):  # vandalise whatever was returned; the next step must not mind
        outcome = twin.step(twin.action_space.sample())
        assert_identical(outcome, reference[number])
        for value in [*outcome[0].values(), *outcome[4].values()]:
            value[...] = 77
    assert_identical(kept, reference)


@every_wrapper
def test_actions_are_not_written_to(name: str) -> None:
    env, _ = wrapped(name)
    action = np.array(env.action_space.sample())
    before = action.copy()
    action.flags.writeable = False
    env.step(action)
    assert_array_equal(action, before)


@every_wrapper
@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies_continue_in_the_middle_of_an_episode(name: str, how: str) -> None:
    env = ALL[name](make())
    env.action_space.seed(0)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.step(env.action_space.sample())
    other = pickle.loads(pickle.dumps(env)) if how == "pickle" else copy.deepcopy(env)
    for _ in range(2):
        action = env.action_space.sample()
        assert_identical(other.step(action), env.step(action))


@every_wrapper
def test_a_spec_makes_the_environment_again(name: str) -> None:
    options = {"strict": True} if name == "sequential" else {}
    env = ALL[name](make(), **options)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    assert type(again) is ALL[name]
    assert again.action_space == env.action_space
    assert again.observation_space == env.observation_space
    if name == "sequential":
        assert again.get_wrapper_attr("strict") is True


@every_wrapper
def test_statistics_and_autoreset_work_outside(name: str) -> None:
    env = Autoreset(RecordEpisodeStatistics(ALL[name](make(horizon=3))))
    env.action_space.seed(0)
    env.reset(seed=0)
    per_episode = {"sequential": 9, "rotated": 1}.get(name, 3)
    for _ in range(2):
        for _ in range(per_episode):
            _, _, _, truncated, info = env.step(env.action_space.sample())
        assert truncated
        assert info["episode"]["l"] == per_episode
        assert env.step(env.action_space.sample())[4] == {}  # this one resets


# --- The checkers ---------------------------------------------------------------------------------

CHECKED: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "alone": ((3, 5, 1), {"horizon": 1000}),
    "known": ((3, 3, 1), {"horizon": 1000, "horizon_known": True, "instance": "gaussian"}),
    "shared": ((5, 3, 2), {"horizon": 1000}),
    "one_user": ((1, 3, 1), {"horizon": 1000}),
    "one_arm": ((1, 1, 1), {"horizon": 1000}),
}


@pytest.mark.parametrize("case", CHECKED)
@every_wrapper
def test_gymnasiums_checker_finds_no_fault(name: str, case: str) -> None:
    sizes, kwargs = CHECKED[case]
    env = ALL[name](make(sizes, **kwargs))
    with warnings.catch_warnings():
        # It says so of every wrapper.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        check_env(env, skip_render_check=PICTURELESS)


@pytest.mark.parametrize("case", CHECKED)
@every_wrapper
def test_the_checker_of_stable_baselines_is_silent(
    name: str, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    sizes, kwargs = CHECKED[case]
    for env in (ALL[name](make(sizes, **kwargs)), PolicyRegret(ALL[name](make(sizes, **kwargs)))):
        checker.check_env(env)  # warnings are errors
    assert capsys.readouterr() == ("", "")
