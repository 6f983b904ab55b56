"""Which arms EgalAssign-v0 plays: its own, drawn, or those of the options for one episode."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers_envs import drawn_laws
from helpers_episodes import SURE, assert_pin_is_refused, egal
from helpers_names import Kwargs
from helpers_play import Player, play

from gym_fairbandits.arms import Adversarial, Arms, Bernoulli, Empirical, Gaussian


def test_random_means_come_from_the_stream_spawned_of_the_seed() -> None:
    for instance in ("bernoulli", "gaussian", {"name": "gaussian", "variance": 0.25}):
        env = egal(instance=instance, num_users=3, num_arms=6)
        expected = np.random.default_rng(5).spawn(1)[0].random((3, 6)) * 0.98 + 0.01
        for episode in range(3):
            env.reset(seed=5 if episode == 0 else None)
            np.testing.assert_array_equal(env.unwrapped.arms.means, expected[episode])
            play(env, Player(env.action_space), 4 * episode + 1)
        if instance != "bernoulli":
            deviation = 1.0 if instance == "gaussian" else 0.5
            assert env.unwrapped.arms.std.tolist() == [deviation] * 6


def test_named_instances() -> None:
    def means(**kwargs: Any) -> list[float]:
        env = egal(**kwargs)
        env.reset(seed=0)
        values: list[float] = env.unwrapped.arms.means.tolist()
        return values

    assert means(instance="two_level", num_users=3, num_arms=5) == [0.8, 0.8, 0.8, 0.5, 0.5]
    assert means(instance={"name": "two_level", "low": 0.25}, num_users=1, num_arms=2) == [
        0.8,
        0.25,
    ]
    # gap = sqrt((K - U) / (8 T U^2)) = sqrt(6 / (8 * 3 * 4)) = 1/4, the horizon being T.
    kwargs: Kwargs = {"num_users": 2, "num_arms": 8, "horizon": 3}
    assert means(instance="lower_bound", **kwargs) == [0.25, 0.25, 0, 0, 0, 0, 0, 0]
    boosted = {"name": "lower_bound", "boosted": [7, 3]}
    assert means(instance=boosted, **kwargs) == [0.25, 0.25, 0, 0.5, 0, 0, 0, 0.5]
    longer = {"name": "lower_bound", "steps": 12}
    assert means(instance=longer, **kwargs) == [0.125, 0.125, 0, 0, 0, 0, 0, 0]


def test_the_number_of_arms_is_the_instances_own_else_ten() -> None:
    assert egal().unwrapped.num_arms == 10
    assert egal(num_arms=6).unwrapped.num_arms == 6
    assert egal(instance=SURE, num_users=2).unwrapped.num_arms == 4
    assert egal(instance="two_level").unwrapped.num_arms == 10
    assert egal(instance=drawn_laws, num_users=2).unwrapped.num_arms == 10
    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 4"):
        egal(instance=SURE, num_users=2, num_arms=5)


def test_a_callable_draws_each_episode_from_the_stream_spawned_of_the_seed() -> None:
    calls: list[tuple[float, int, int]] = []

    def draw(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
        calls.append((rng.random(), num_users, num_arms))
        return Gaussian([calls[-1][0], 0.25, 0.5], 0.0)

    env = egal(instance=draw, num_users=2, num_arms=3)
    assert calls == []
    for seed in (5, None, None, 5):
        env.reset(seed=seed)
        assert env.step([0, 1])[4]["user_rewards"].tolist() == [calls[-1][0], 0.25]
    expected = np.random.default_rng(5).spawn(1)[0].random(3).tolist()
    assert calls == [(value, 2, 3) for value in (*expected, expected[0])]


@pytest.mark.parametrize(
    ("drawn", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ([0.5, 0.5, 0.5], TypeError, "`instance` must return an `Arms`"),
    ],
)
def test_a_callable_that_breaks_the_rules_is_refused_at_reset(
    drawn: Any, error: type[Exception], message: str
) -> None:
    env = egal(instance=lambda rng, num_users, num_arms: drawn, num_users=2, num_arms=3)
    with pytest.raises(error, match=message):
        env.reset(seed=0)


FIVE = Gaussian([0.5, 0.25, -1.0, 2.0, 0.75], [1.0, 0.5, 0.25, 2.0, 0.0])


@pytest.mark.parametrize("instance", [SURE, drawn_laws, "bernoulli", FIVE.to_dict()])
def test_an_instance_in_the_options_is_played_for_one_episode(instance: Any) -> None:
    num_arms = 5 if isinstance(instance, dict) and len(instance["means"]) == 5 else 4
    kwargs: Kwargs = {"instance": instance, "num_users": 2, "num_arms": num_arms}
    env, plain = egal(**kwargs), egal(**kwargs)
    env.reset(seed=7)
    plain.reset(seed=7)
    usual = plain.unwrapped.arms
    pin = Gaussian(np.arange(num_arms) / 8, 0.0)
    options = {"instance": pin}
    env.reset(options=options)
    assert options == {"instance": pin}
    assert env.unwrapped.arms == pin
    assert env.step([1, 2])[4]["user_rewards"].tolist() == [0.125, 0.25]
    for _ in range(2):  # the pinned episode took nothing from the instances' stream
        env.reset()
        plain.reset()
        assert env.unwrapped.arms == plain.unwrapped.arms
        assert (env.unwrapped.arms == usual) == isinstance(instance, dict)


def test_an_instance_in_the_options_may_be_named_a_dict_or_drawn() -> None:
    env = egal(instance=SURE, num_users=2)
    env.reset(seed=5, options={"instance": {"name": "two_level", "high": 0.75}})
    assert env.unwrapped.arms.means.tolist() == [0.75, 0.75, 0.5, 0.5]
    env.reset(options={"instance": {"family": "bernoulli", "means": [0, 1, 0, 1]}})
    assert env.step([1, 2])[4]["user_rewards"].tolist() == [1.0, 0.0]
    env.reset(seed=5, options={"instance": drawn_laws})
    stream = np.random.default_rng(5).spawn(1)[0]
    assert env.unwrapped.arms == drawn_laws(stream, 2, 4)
    env.reset(options={"instance": drawn_laws})
    assert env.unwrapped.arms == drawn_laws(stream, 2, 4)


@pytest.mark.parametrize(
    ("pin", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ("nope", ValueError, "`instance` must be one of"),
        ({"family": "bernoulli", "means": [2, 0, 0, 0]}, ValueError, "`means` must lie in"),
        (7, TypeError, "`instance` must be a name"),
    ],
)
def test_a_wrong_instance_in_the_options_changes_nothing(
    pin: Any, error: type[Exception], message: str
) -> None:
    kwargs: Kwargs = {"instance": drawn_laws, "num_users": 2, "num_arms": 4, "horizon": 20}
    assert_pin_is_refused(partial(egal, **kwargs), pin, error, message)


def test_a_callable_may_return_a_dict_form() -> None:
    def draw(rng: np.random.Generator, num_users: int, num_arms: int) -> dict[str, Any]:
        return {"family": "bernoulli", "means": [float(num_users) / num_arms] * num_arms}

    env = egal(instance=draw, num_users=2, num_arms=4)
    env.reset(seed=0)
    assert env.unwrapped.arms.parameters() == {"means": [0.5] * 4}


@pytest.mark.parametrize(
    "law",
    [
        Bernoulli([0.9, 0.1]),
        Gaussian([0.9, 0.1], 0.5),
        Empirical([[0.9, 0.9], [0.1]]),
        Adversarial([[0.9, 0.1]] * 3, periodic=True),
    ],
)
def test_what_the_learner_must_not_know_it_cannot_change_either(law: Arms) -> None:
    env = egal(instance=law, num_users=1, horizon=10)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="read-only"):
        env.unwrapped.arms.means[:] = 0.5
    assert env.unwrapped.optimal_return(10) == pytest.approx(9.0, rel=1e-12)
