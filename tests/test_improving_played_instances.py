"""Which arms ImprovingBandit-v0 plays: its own, drawn, or those of the options for one episode."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers_envs import MIXED, PEAKED, drawn_tables
from helpers_episodes import EXACT, assert_pin_is_refused, improving
from helpers_names import Kwargs
from helpers_play import assert_identical

from gym_fairbandits.curves import Constant, Curve, Tabulated
from gym_fairbandits.envs import ImprovingBanditEnv


def test_the_number_of_arms_is_the_instances_own_else_ten() -> None:
    assert improving().unwrapped.num_arms == 10
    assert improving(num_arms=3).unwrapped.num_arms == 3
    assert improving(instance={"name": "random_concave", "num_arms": 4}).unwrapped.num_arms == 4
    assert improving(instance="early_vs_late").unwrapped.num_arms == 2
    assert improving(instance="lower_bound").unwrapped.num_arms == 10
    assert improving(instance=EXACT, num_arms=3).unwrapped.num_arms == 3
    assert improving(instance=drawn_tables).unwrapped.num_arms == 10
    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 3"):
        improving(instance=EXACT, num_arms=2)


def test_a_callable_draws_each_episode_from_the_stream_spawned_of_the_seed() -> None:
    calls: list[tuple[float, int]] = []

    def draw(rng: np.random.Generator, num_arms: int) -> list[Any]:
        calls.append((rng.random(), num_arms))
        return [{"family": "constant", "value": calls[-1][0]}, Constant(0.25)]

    env = improving(instance=draw, num_arms=2)
    assert calls == []  # drawn at reset, not before
    for seed in (5, None, None, 5):
        env.reset(seed=seed)
        assert [env.step(0)[1], env.step(1)[1]] == [calls[-1][0], 0.25]
    expected = np.random.default_rng(5).spawn(1)[0].random(3).tolist()
    assert calls == [(value, 2) for value in (*expected, expected[0])]


def test_a_callable_that_breaks_the_rules_is_refused_at_reset() -> None:
    def short(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return [Constant(0.5)]

    def falling(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return [Constant(0.5), Tabulated((0.5, 0.25))]

    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 1"):
        improving(instance=short, num_arms=2).reset(seed=0)
    with pytest.raises(ValueError, match="arm 1 decreases"):
        improving(instance=falling, num_arms=2).reset(seed=0)
    improving(instance=falling, num_arms=2, validate=False).reset(seed=0)


PIN = [Constant(0.125), Constant(0.25), Constant(0.375)]


@pytest.mark.parametrize("instance", [EXACT, drawn_tables, "random_concave"])
def test_an_instance_in_the_options_is_played_for_one_episode(instance: Any) -> None:
    env, plain = improving(instance=instance, num_arms=3), improving(instance=instance, num_arms=3)
    env.reset(seed=7)
    plain.reset(seed=7)
    usual = plain.unwrapped.curves
    options = {"instance": PIN}
    env.reset(options=options)
    assert options == {"instance": PIN}
    assert env.unwrapped.curves == tuple(PIN)
    assert [env.step(arm)[1] for arm in range(3)] == [0.125, 0.25, 0.375]
    assert env.unwrapped.optimal_return(8) == 3.0
    # Back to the constructor's; the pinned episode took nothing from the instances' stream.
    for _ in range(2):
        assert_identical(env.reset(), plain.reset())
        assert env.unwrapped.curves == plain.unwrapped.curves
        assert (env.unwrapped.curves == usual) == (instance is EXACT)


def test_an_instance_in_the_options_may_be_named_or_drawn() -> None:
    env = improving(instance=EXACT, horizon=9)
    env.reset(seed=5, options={"instance": {"name": "round_robin_trap", "steps": 16}})
    assert env.step(2)[1] == 0.0625
    env.reset(seed=5, options={"instance": drawn_tables})
    stream = np.random.default_rng(5).spawn(1)[0]
    assert list(env.unwrapped.curves) == drawn_tables(stream, 3)
    env.reset(options={"instance": drawn_tables})
    assert list(env.unwrapped.curves) == drawn_tables(stream, 3)


@pytest.mark.parametrize(
    ("pin", "error", "message"),
    [
        (PIN[:2], ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ("nope", ValueError, "`instance` must be one of"),
        ("early_vs_late", ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ([Tabulated((0.5, 0.25))] * 3, ValueError, "arm 0 decreases"),
        (7, TypeError, "`instance` must be a name"),
    ],
)
def test_a_wrong_instance_in_the_options_changes_nothing(
    pin: Any, error: type[Exception], message: str
) -> None:
    kwargs: Kwargs = {"instance": drawn_tables, "num_arms": 3, "noise_std": 0.5, "horizon": 20}
    assert_pin_is_refused(partial(improving, **kwargs), pin, error, message)


def test_general_curves_play_without_validation() -> None:
    with pytest.raises(ValueError, match=r"arm 0 leaves \[0, 1\].*`validate=False`"):
        improving(instance=PEAKED)
    env = improving(instance=PEAKED, validate=False, horizon=8)
    env.reset(seed=0)
    rewards = [env.step(arm)[1] for arm in (0, 0, 0, 0, 0, 0, 1, 2)]
    assert rewards == [0.0, 0.5, 1.5, 0.25, -0.5, -0.5, -0.25, 0.75]
    assert env.unwrapped.expected_return() == env.unwrapped.realized_return() == 1.75
    # The first arm up to its peak, 2.0, and the third, 0.75 + 0.5 + 3 * 0.25.
    assert env.unwrapped.optimal_return() == 4.0


def test_arms_may_fall_within_the_steps_asked_for_or_beyond_them() -> None:
    env = improving(instance=[Tabulated((0.25, 0.5, 0.25)), Constant(0.375)], validate=False)
    env.reset(seed=0)
    env.step(0)
    assert env.unwrapped.optimal_return() == 0.375
    assert env.unwrapped.optimal_return(2) == 0.75
    assert env.unwrapped.optimal_return(3) == 0.375 * 3
    assert env.unwrapped.optimal_return(4) == 1.5


def test_long_pulls_of_one_arm_stay_on_its_curve() -> None:
    # The environment evaluates ahead in blocks of its own choosing; every join must fit.
    env: Any = ImprovingBanditEnv(instance=MIXED, horizon=10_000)
    env.reset(seed=0)
    arms = [0, 1, 8] * 2500 + [3, 4] * 300
    rng = np.random.default_rng(0)
    rng.shuffle(arms)
    paid: dict[int, list[float]] = {}
    for arm in arms:
        paid.setdefault(arm, []).append(env.step(arm)[1])
    for arm, rewards in paid.items():
        curve = env.curves[arm]
        assert rewards == curve(np.arange(1, len(rewards) + 1)).tolist()
        assert env.curves[arm].cumulative(len(rewards)) == pytest.approx(sum(rewards), rel=1e-11)
