"""A reset that fails changes nothing, and one that changes the law of rewards loses no draw."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import seeding
from helpers_names import EGAL, IMPROVING, Floats
from numpy.testing import assert_array_equal

from gym_fairbandits.arms import Adversarial, Arms, Bernoulli, Gaussian
from gym_fairbandits.curves import Constant, Curve, LinearCap

CURVES = [Constant(0.1), LinearCap(1.0, 3)]
MEANS = [0.1, 0.2]


class RefusedError(Exception):
    """What instances of these tests raise."""


def good_curves(rng: np.random.Generator, num_arms: int) -> list[Curve]:
    return [Constant(float(rng.random())), Constant(0.9)]


def bad_curves(rng: np.random.Generator, num_arms: int) -> list[Curve]:
    raise RefusedError


def good_arms(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    return Bernoulli([0.3, float(rng.random())])


def bad_arms(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    raise RefusedError


CASES: list[Any] = [
    pytest.param(IMPROVING, {"instance": CURVES, "noise_std": 0.1}, 1, good_curves, bad_curves),
    pytest.param(
        EGAL,
        {"instance": Gaussian(MEANS), "num_users": 2},
        [1, 0],
        good_arms,
        bad_arms,
    ),
]
every_case = pytest.mark.parametrize(("env_id", "kwargs", "action", "good", "bad"), CASES)


@every_case
@pytest.mark.parametrize("seed", [None, 7])
def test_a_scalar_reset_that_fails_leaves_the_episode_and_its_streams(
    env_id: str, kwargs: dict[str, Any], action: Any, good: Any, bad: Any, seed: int | None
) -> None:
    env = gym.make(env_id, **kwargs).unwrapped
    env.reset(seed=1)
    env.step(action)
    untouched = deepcopy(env)
    with pytest.raises(RefusedError):
        env.reset(seed=seed, options={"instance": bad})
    for _ in range(3):
        assert env.step(action)[1] == untouched.step(action)[1]
    assert env.np_random_seed == untouched.np_random_seed == 1
    for options in (None, {"instance": good}):
        env.reset(options=options)
        untouched.reset(options=options)
        assert env.step(action)[1] == untouched.step(action)[1]


@every_case
@pytest.mark.parametrize("seed", [None, 7])
def test_a_batch_whose_second_row_fails_leaves_the_first_alone(
    env_id: str, kwargs: dict[str, Any], action: Any, good: Any, bad: Any, seed: int | None
) -> None:
    envs: Any = gym.make_vec(env_id, num_envs=2, **kwargs)
    envs.reset(seed=1)
    envs.step(np.array([action, action]))
    untouched = deepcopy(envs)
    with pytest.raises(RefusedError):
        envs.reset(seed=seed, options={"instances": [good, bad]})
    assert envs.np_random_seed == (1, 2)
    assert_array_equal(envs.expected_return(), untouched.expected_return())
    for _ in range(3):
        assert_array_equal(
            envs.step(np.array([action, action]))[1], untouched.step(np.array([action, action]))[1]
        )
    assert_array_equal(envs.expected_return(), untouched.expected_return())


def test_an_autoreset_that_fails_leaves_the_episodes_that_have_ended() -> None:
    asked = 0

    def draw(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise RefusedError
        return [Constant(0.25 * asked)] * 2

    envs: Any = gym.make_vec(IMPROVING, num_envs=2, instance=draw, num_arms=2, horizon=1)
    envs.reset(seed=0)
    assert_array_equal(envs.step(np.array([0, 0]))[1], [0.25, 0.5])
    with pytest.raises(RefusedError):
        envs.step(np.array([0, 0]))
    assert_array_equal(envs.expected_return(), [0.25, 0.5])
    assert_array_equal(envs.steps, [1, 1])


def expected_draws(seed: int) -> tuple[Floats, Floats, Floats]:
    """Return two steps of uniform draws for 3 users, with a step of normal ones between."""
    rng = seeding.np_random(seed)[0]
    return rng.random(3), rng.standard_normal(3), rng.random(3)


def test_a_change_of_law_goes_on_where_the_last_draw_was_played() -> None:
    uniforms, normals, last = expected_draws(4)
    env = gym.make(EGAL, instance=Bernoulli([0.5] * 3), num_users=3)
    for law, draws in (
        (None, (uniforms < 0.5).astype(float)),
        (Gaussian([0.0] * 3), normals),
        (Bernoulli([0.5] * 3), (last < 0.5).astype(float)),
    ):
        env.reset(
            seed=4 if law is None else None, options=None if law is None else {"instance": law}
        )
        assert_array_equal(env.step(np.arange(3))[4]["user_rewards"], draws)


@pytest.mark.parametrize("num_envs", [1, 3, 9000])  # blocks of draws are shorter for many rows
def test_a_change_of_law_is_the_same_for_any_number_of_rows(num_envs: int) -> None:
    uniforms, normals, last = expected_draws(4)
    envs: Any = gym.make_vec(EGAL, num_envs=num_envs, instance=Bernoulli([0.5] * 3), num_users=3)
    actions = np.tile(np.arange(3), (num_envs, 1))
    mask = np.arange(num_envs) == 0
    envs.reset(seed=4)
    assert_array_equal(envs.step(actions)[4]["user_rewards"][0], uniforms < 0.5)
    envs.reset(options={"instance": Gaussian([0.0] * 3), "reset_mask": mask})
    assert_array_equal(envs.step(actions)[4]["user_rewards"][0], normals)
    envs.reset(options={"instance": Bernoulli([0.5] * 3), "reset_mask": mask})
    assert_array_equal(envs.step(actions)[4]["user_rewards"][0], last < 0.5)


def test_a_generator_of_the_users_gives_the_same_instances_after_a_reset_that_failed() -> None:
    optima = []
    for fails in (False, True):
        env: Any = gym.make(IMPROVING).unwrapped
        env.np_random = np.random.default_rng(0)
        if fails:
            with pytest.raises(RefusedError):
                env.reset(options={"instance": bad_curves})
        env.reset()
        optima.append(env.optimal_return(5))
    assert optima[0] == optima[1]


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
def test_what_others_drew_from_a_generator_is_not_drawn_again(bits: Any) -> None:
    shared = np.random.Generator(bits(3))
    twin = np.random.Generator(bits(3))
    env: Any = gym.make(EGAL, instance=Bernoulli([0.5] * 3), num_users=3).unwrapped
    env.np_random = shared
    env.reset()
    env.step(np.arange(3))
    block = len(env._draws)
    twin.random(block)
    assert shared.random() == twin.random()  # a wrapper that plays dice, say
    env.reset(options={"instance": Gaussian([0.0] * 3)})
    assert_array_equal(env.step(np.arange(3))[4]["user_rewards"], twin.standard_normal(3))


def test_a_law_without_chance_puts_nothing_back() -> None:
    env: Any = gym.make(EGAL, instance=Adversarial([[0.5] * 3], periodic=True), num_users=3)
    env.reset(seed=4)
    env.step(np.arange(3))
    rng = seeding.np_random(4)[0]
    assert env.unwrapped.np_random.random() == rng.random()
    env.reset(options={"instance": Gaussian([0.0] * 3)})
    assert_array_equal(env.step(np.arange(3))[4]["user_rewards"], rng.standard_normal(3))
