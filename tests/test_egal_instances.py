"""Instances of assignment arms, judged by their laws and the gaps of the theorem."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import kstest

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.arms import Bernoulli, Empirical, Gaussian
from gym_fairbandits.instances import egal_lower_bound, two_level


def egal(instance: Any = "bernoulli", **settings: Any) -> Any:
    return gym.make("EgalAssign-v0", instance=instance, **settings).unwrapped


def arms_of(instance: Any, seed: int | None = 0, **settings: Any) -> Any:
    env = egal(instance, **settings)
    env.reset(seed=seed)
    return env.arms


def test_bernoulli_means_are_uniform_and_redrawn_at_every_reset() -> None:
    env = egal("bernoulli", num_arms=50, num_users=2)
    means = []
    for seed in [5, *[None] * 99]:
        env.reset(seed=seed)
        assert type(env.arms) is Bernoulli
        means.append(env.arms.means.tolist())
    flat = np.array(means).ravel()
    assert flat.size == len(set(flat.tolist())) == 5000
    assert flat.min() >= 0.01
    assert flat.max() <= 0.99
    assert kstest(flat, "uniform", args=(0.01, 0.98)).pvalue > 1e-3
    env.reset(seed=5)
    assert env.arms.means.tolist() == means[0]
    assert arms_of("bernoulli", seed=5).num_arms == 10
    assert arms_of({"name": "bernoulli", "num_arms": 7}).num_arms == 7


@pytest.mark.parametrize("variance", [None, 1, 0.1, 0.25, 0])
def test_gaussian_takes_its_variance(variance: float | None) -> None:
    given = {} if variance is None else {"variance": variance}
    instance: Any = {"name": "gaussian", **given} if given else "gaussian"
    env = egal(instance, num_arms=6, num_users=2)
    seen = set()
    for seed in (0, None, None):
        env.reset(seed=seed)
        assert type(env.arms) is Gaussian
        std = math.sqrt(1 if variance is None else variance)
        assert env.arms.std.tolist() == [std] * 6
        assert ((env.arms.means >= 0.01) & (env.arms.means <= 0.99)).all()
        seen.add(tuple(env.arms.means.tolist()))
    assert len(seen) == 3


def test_two_level_pays_the_top_arms_better() -> None:
    assert arms_of("two_level", num_users=3, num_arms=5) == Bernoulli([0.8] * 3 + [0.5] * 2)
    assert arms_of("two_level") == Bernoulli([0.8] * 5 + [0.5] * 5)
    instance = {"name": "two_level", "high": 1, "low": 0.25}
    assert arms_of(instance, num_users=1, num_arms=3) == Bernoulli([1.0, 0.25, 0.25])
    assert two_level(2, 2) == Bernoulli([0.8, 0.8])


def test_lower_bound_pair_has_the_gaps_of_the_theorem() -> None:
    # K=10, U=2, T=1000: gap^2 = 8 / (8 * 1000 * 4) = 1/4000.
    gap = math.sqrt(1 / 4000)
    nu = arms_of("lower_bound", num_users=2)
    assert type(nu) is Gaussian
    assert nu.std.tolist() == [1.0] * 10
    assert nu.means.tolist() == pytest.approx([gap] * 2 + [0.0] * 8, rel=1e-15)
    boosted = arms_of({"name": "lower_bound", "boosted": [9, 4]}, num_users=2)
    assert boosted.std.tolist() == [1.0] * 10
    expected = [gap, gap, 0, 0, 2 * gap, 0, 0, 0, 0, 2 * gap]
    assert boosted.means.tolist() == pytest.approx(expected, rel=1e-15)
    # The pair agrees outside the boosted arms.
    assert (nu.means == boosted.means).tolist() == [True] * 4 + [False] + [True] * 4 + [False]


@pytest.mark.parametrize(("num_users", "num_arms"), [(1, 2), (2, 7), (5, 10), (1, 50)])
@pytest.mark.parametrize("steps", [25, 1000, 10**6])
def test_gaps_follow_the_formula_for_any_size(num_users: int, num_arms: int, steps: int) -> None:
    squared = Fraction(num_arms - num_users, 8 * steps * num_users**2)
    instance = {"name": "lower_bound", "boosted": list(range(num_users, 2 * num_users))}
    arms = arms_of(instance, num_users=num_users, num_arms=num_arms, horizon=steps)
    high, boosted, rest = np.split(arms.means, [num_users, 2 * num_users])
    np.testing.assert_allclose(np.square(high), float(squared), rtol=1e-15)
    assert boosted.tolist() == (2 * high).tolist()
    assert not rest.any()
    given = {**instance, "steps": steps}
    assert arms_of(given, num_users=num_users, num_arms=num_arms, horizon=3) == arms


def test_boosted_means_reach_one_at_the_fewest_steps() -> None:
    # K=9, U=2: T >= 7/8, so T=1; K=9, U=1: T >= 4, where 2 * gap is 1.
    assert egal_lower_bound(1, 9, 4, boosted=[8]).means[8] == 1.0
    assert egal_lower_bound(2, 9, 1).means[0] == pytest.approx(math.sqrt(7 / 32))


def test_arms_are_taken_as_objects_dicts_and_callables() -> None:
    arms = Empirical([[1, 2], [3], [4, 5, 6]])
    for instance in (arms, arms.to_dict()):
        env = egal(instance, num_users=2)
        assert env.num_arms == 3
        for seed in (0, None):
            env.reset(seed=seed)
            assert env.arms == arms
    assert arms_of(arms, num_users=2, num_arms=3) == arms

    asked: list[tuple[type, int, int]] = []

    def draw(rng: np.random.Generator, num_users: int, num_arms: int) -> Gaussian:
        asked.append((type(rng), num_users, num_arms))
        return Gaussian(rng.random(num_arms), 0.5)

    env = egal(draw, num_users=2, num_arms=4)
    assert asked == []
    means = []
    for seed in (7, None):
        env.reset(seed=seed)
        means.append(env.arms.means.tolist())
    assert asked == [(np.random.Generator, 2, 4)] * 2
    stream = np.random.default_rng(7).spawn(1)[0]
    assert means == [stream.random(4).tolist(), stream.random(4).tolist()]
    assert arms_of(draw).num_arms == 10


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "number of arms, 2, or None, got 3"),
        (
            [0.5, 0.5],
            TypeError,
            "`instance` must return an `Arms` or its dict form, got [0.5, 0.5]",
        ),
        (None, TypeError, "`instance` must return an `Arms` or its dict form, got None"),
    ],
)
def test_a_callable_that_draws_other_arms_is_refused_and_the_episode_goes_on(
    returned: Any, error: Any, message: str
) -> None:
    good = Gaussian([0.25, 0.5, 0.75], 0.0)
    answers: list[Any] = [good, returned, good]
    env = egal(lambda rng, num_users, num_arms: answers.pop(0), num_users=2, num_arms=3)
    env.reset(seed=0)
    env.step([0, 1])
    with pytest.raises(error, match=re.escape(message)):
        env.reset()
    observation, reward, *_ = env.step([1, 2])
    assert reward == 0.5
    assert observation["user_reward_sum"].tolist() == [0.75, 1.25]
    env.reset()
    assert env.step([2, 0])[1] == 0.25


@pytest.mark.parametrize(
    ("instance", "settings", "error", "message"),
    [
        ("binomial", {}, ValueError, "`instance` must be one of ['bernoulli', 'gaussian',"),
        ("binomial", {}, ValueError, "got 'binomial'"),
        ({"variance": 2}, {}, ValueError, "`instance` must be one of ['bernoulli', 'gaussian',"),
        (
            {"name": "gaussian", "std": 2},
            {},
            ValueError,
            "instance 'gaussian' takes the parameters ['num_arms', 'variance'], got ['std']",
        ),
        (
            {"name": "bernoulli", "variance": 2},
            {},
            ValueError,
            "instance 'bernoulli' takes the parameters ['num_arms'], got ['variance']",
        ),
        (
            {"name": "bernoulli", "rng": 3},
            {},
            ValueError,
            "instance 'bernoulli' takes the parameters ['num_arms'], got ['rng']",
        ),
        ({"name": "gaussian", "variance": -1}, {}, ValueError, "`variance` must be at least 0"),
        ({"name": "gaussian", "variance": math.nan}, {}, ValueError, "`variance` must be finite"),
        ({"name": "gaussian", "variance": True}, {}, TypeError, "`variance` must be a real number"),
        ({"name": "gaussian", "variance": "1"}, {}, TypeError, "`variance` must be a real number"),
        ({"name": "two_level", "high": 2}, {}, ValueError, "`high` must be at most 1, got 2"),
        ({"name": "bernoulli", "num_arms": 2.5}, {}, TypeError, "`num_arms` must be an integer"),
        ({"name": "two_level", "num_arms": -3}, {}, ValueError, "`num_arms` must be"),
        ("lower_bound", {"num_arms": 9}, ValueError, "at least 2 * num_users = 10 for the lower"),
        ("lower_bound", {"num_users": 1, "horizon": 4}, ValueError, "`steps` must be at least"),
        ("two_level", {"num_users": 11}, ValueError, "capacity * num_arms = 10, got 11"),
        ("bernoulli", {"num_users": 11}, ValueError, "capacity * num_arms = 10, got 11"),
        (
            {"name": "bernoulli", "num_arms": 7},
            {"num_arms": 8},
            ValueError,
            "number of arms, 7, or None, got 8",
        ),
        (
            {"name": "two_level", "num_arms": 7},
            {"num_arms": 8},
            ValueError,
            "number of arms, 7, or None, got 8",
        ),
        (Bernoulli([0.5] * 6), {"num_arms": 7}, ValueError, "number of arms, 6, or None, got 7"),
        (
            {"family": "bernoulli", "means": [0.5] * 6},
            {"num_arms": 7},
            ValueError,
            "number of arms, 6, or None, got 7",
        ),
        ({"family": "bernouli", "means": [0.5] * 6}, {}, ValueError, "`family` must be one of"),
        ({"family": "bernoulli", "mean": [0.5] * 6}, {}, TypeError, "mean"),
        ([0.5] * 6, {}, TypeError, "`instance` must be a name, a dict with a name or family, an"),
        (None, {}, TypeError, "`instance` must be a name, a dict with a name or family, an"),
    ],
)
def test_wrong_assignment_instances_are_refused(
    instance: Any, settings: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        egal(instance, **settings)
    if settings or instance is None:
        return  # a `None` option is no option
    env, twin = egal("two_level", num_users=2), egal("two_level", num_users=2)
    for either in (env, twin):
        either.reset(seed=1)
        either.step([0, 1])
    with pytest.raises((TypeError, ValueError)):
        env.reset(options={"instance": instance})
    assert env.arms == twin.arms
    for action in ([2, 3], [9, 0]):
        after, expected = env.step(action), twin.step(action)
        assert after[4]["user_rewards"].tolist() == expected[4]["user_rewards"].tolist()
        assert all(after[0][key].tolist() == expected[0][key].tolist() for key in after[0])
