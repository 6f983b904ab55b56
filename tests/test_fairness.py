"""Fairness metrics: worked by hand, by brute force, and at the end of every kind of episode."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import TimeLimit
from helpers_agents import fixed
from helpers_fairness import ARM_KEYS, USER_KEYS, improving
from helpers_names import EGAL, IMPROVING
from helpers_regret import play
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import OracleRotation, RoundRobin, StaticOracle
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.curves import Constant
from gym_fairbandits.evaluation import compare, evaluate
from gym_fairbandits.wrappers import FairnessMetrics, gini, jain_index
from gym_fairbandits.wrappers.vector import FairnessMetrics as VectorFairnessMetrics


def assignment(means: list[float], **kwargs: Any) -> FairnessMetrics[Any, Any]:
    return FairnessMetrics(gym.make(EGAL, instance=fixed(means), **kwargs))


# --- The indices ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "gini_value", "jain_value"),
    [
        ([5.0], 0.0, 1.0),
        ([0.1, 0.1, 0.1], 0.0, 1.0),
        ([1.0, 0.0], 1 / 2, 1 / 2),
        ([0.0, 0.0, 7.0, 0.0], 3 / 4, 1 / 4),  # one has all: 1 - 1/n and 1/n
        ([2.0, 2.0, 0.0, 0.0, 0.0], 3 / 5, 2 / 5),  # k of n share: 1 - k/n and k/n
        ([0.5, 1.5], 1 / 4, 4 / 5),  # 2 * 1 / (2 * 2 * 2); 2^2 / (2 (0.25 + 2.25))
        ([3.0, 1.0, 2.0], 2 / 9, 6 / 7),  # 8 / (2 * 3 * 6); 36 / (3 * 14)
        ([0.0, 0.0, 0.0], 0.0, 1.0),
        ([-0.0, 0.0], 0.0, 1.0),
    ],
)
def test_indices_worked_by_hand(values: list[float], gini_value: float, jain_value: float) -> None:
    assert float(gini(values)) == pytest.approx(gini_value, rel=1e-15, abs=0)
    assert float(jain_index(values)) == pytest.approx(jain_value, rel=1e-15, abs=0)


@pytest.mark.parametrize("values", [[-1.0, 2.0], [-1.0, 1.0], [-2.0, -2.0], [0.0, -1e-9], [-3.0]])
def test_indices_of_negative_entries_are_not_numbers(values: list[float]) -> None:
    assert math.isnan(gini(values))
    assert math.isnan(jain_index(values))


def test_indices_equal_their_definitions_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 7, 20):
        for _ in range(20):
            values = rng.integers(0, 50, count).tolist()
            values[0] += 1
            total, apart = sum(values), sum(abs(x - y) for x, y in product(values, repeat=2))
            exact_gini = Fraction(apart, 2 * count * total)
            exact_jain = Fraction(total**2, count * sum(x * x for x in values))
            assert float(gini(values)) == pytest.approx(float(exact_gini), rel=1e-14, abs=0)
            assert float(jain_index(values)) == pytest.approx(float(exact_jain), rel=1e-14, abs=0)


def test_indices_do_not_depend_on_order_or_scale_and_are_taken_row_by_row() -> None:
    rows = np.random.default_rng(1).random((40, 3, 9))
    kept = rows.copy()
    for index in (gini, jain_index):
        values = index(rows)
        assert values.shape == (40, 3)
        assert_array_equal(rows, kept)
        assert_allclose(index(rows[..., ::-1]), values, rtol=1e-14)
        for scale in (1e-200, 1e200):
            assert_allclose(index(scale * rows), values, rtol=1e-14)
        for place in product(range(40), range(3)):
            assert index(rows[place]) == values[place]
    assert (gini(rows) > 0).all()
    assert (jain_index(rows) < 1).all()


def test_indices_of_equal_entries_are_exact() -> None:
    equal = np.repeat(np.random.default_rng(2).random((200, 1)) * 1e6, 31, axis=1)
    assert (gini(equal) == 0).all()
    assert (jain_index(equal) == 1).all()


def test_a_transfer_from_rich_to_poor_makes_both_indices_fairer() -> None:
    # The principle of transfers, which any measure of inequality must obey.
    rng = np.random.default_rng(3)
    rows = np.sort(rng.random((200, 6)), axis=1)
    after = rows.copy()
    moved = (rows[:, 4] - rows[:, 1]) / 3
    after[:, 4] -= moved
    after[:, 1] += moved
    assert (gini(after) < gini(rows)).all()
    assert (jain_index(after) > jain_index(rows)).all()


# --- Improving arms -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "gaps", "pull_gini", "share"),
    [
        ([0], [0.25, 1.0], 0.5, 0.0),
        ([0, 1], [0.25, 0.975], 0.0, 0.5),
        ([1, 1, 1, 0], [0.25, 0.925], 0.25, 0.25),
        ([0] * 5, [0.0, 1.0], 0.5, 0.0),
        ([1] * 40 + [0] * 10, [0.0, 0.0], 0.3, 0.2),  # all potentials reached
    ],
)
def test_improving_episodes_worked_by_hand(
    actions: list[int], gaps: list[float], pull_gini: float, share: float
) -> None:
    infos = play(improving(horizon=len(actions)), actions)
    assert all(not info for info in infos[:-1])
    assert all(type(value) is float for value in infos[-1].values())
    assert infos[-1] == pytest.approx(
        {
            "max_potential_gap": max(gaps),
            "mean_potential_gap": sum(gaps) / 2,
            "pull_gini": pull_gini,
            "min_pull_share": share,
        },
        rel=1e-12,
        abs=1e-15,
    )


def test_round_robin_shares_the_pulls_evenly() -> None:
    run = evaluate(RoundRobin(), IMPROVING, num_arms=5, horizon=35, metrics="fairness")
    assert run.episodes["pull_gini"].tolist() == [0.0] * 100
    assert run.episodes["min_pull_share"].tolist() == [0.2] * 100


def test_noise_does_not_reach_the_potential_gaps() -> None:
    quiet = play(improving(horizon=6), [0, 1, 1, 0, 1, 0])[-1]
    noisy = play(improving(horizon=6, noise_std=2.0), [0, 1, 1, 0, 1, 0])[-1]
    assert noisy == quiet


def test_arms_beyond_their_limit_have_negative_gaps() -> None:
    falling = {"family": "tabulated", "values": [0.75, 0.25]}
    info = play(improving(instance=[falling] * 2, validate=False, horizon=2), [0, 1])[-1]
    assert info["max_potential_gap"] == info["mean_potential_gap"] == -0.5


def test_arms_that_pay_nothing_are_at_their_potential() -> None:
    info = play(improving(instance=[Constant(0.0)] * 3, horizon=3), [0, 1, 0])[-1]
    assert info["max_potential_gap"] == info["mean_potential_gap"] == 0.0
    assert info["pull_gini"] == pytest.approx(4 / 9)  # of 2, 1, 0: 8 / (2 * 3 * 3)


# --- Assignment -----------------------------------------------------------------------------------


def test_an_assignment_episode_worked_by_hand() -> None:
    # User 0: 0.75 + 0.75 + 0.5; user 1: 0.25 + 0.5 + 0.25.
    infos = play(assignment([0.75, 0.5, 0.25], num_users=2, horizon=3), [[0, 2], [0, 1], [1, 2]])
    assert [set(info) for info in infos[:2]] == [{"user_rewards"}] * 2
    info = infos[2]
    assert set(info) == USER_KEYS | {"user_rewards"}
    assert all(type(info[key]) is float for key in USER_KEYS)
    for prefix in ("", "expected_"):
        assert info[f"{prefix}user_gap"] == 1.0
        assert info[f"{prefix}min_user_return"] == 1.0
        assert info[f"{prefix}jain_index"] == pytest.approx(9 / 10, rel=1e-14)  # 3^2 / (2 * 5)
        assert info[f"{prefix}user_gini"] == pytest.approx(1 / 6, rel=1e-14)  # 2 / (2 * 2 * 3)


def test_what_was_earned_is_told_from_what_was_expected() -> None:
    # Both users alternate between a sure arm and a coin: the schedule is fair, the coin is not.
    env = FairnessMetrics(gym.make(EGAL, instance=Bernoulli([1.0, 0.5]), num_users=2, horizon=2))
    seen = set()
    for seed in range(20):
        env.reset(seed=seed)
        first = env.step([0, 1])[4]["user_rewards"]
        info = env.step([1, 0])[4]
        totals = first + info["user_rewards"]
        assert info["user_gap"] == np.ptp(totals)
        assert info["min_user_return"] == totals.min()
        assert info["jain_index"] == jain_index(totals)
        assert info["user_gini"] == gini(totals)
        assert info["expected_user_gap"] == 0.0
        assert info["expected_min_user_return"] == 1.5
        assert info["expected_jain_index"] == 1.0
        assert info["expected_user_gini"] == 0.0
        seen.add(info["user_gap"])
    assert seen == {0.0, 1.0}


def test_users_who_earn_nothing_are_equal() -> None:
    info = play(assignment([0.0, 0.0], num_users=2, horizon=2), [[0, 1]] * 2)[-1]
    for prefix in ("", "expected_"):
        assert info[f"{prefix}user_gap"] == info[f"{prefix}min_user_return"] == 0.0
        assert info[f"{prefix}user_gini"] == 0.0
        assert info[f"{prefix}jain_index"] == 1.0


def test_negative_totals_have_a_gap_and_a_minimum_but_no_index() -> None:
    info = play(assignment([0.5, -0.25], num_users=2, horizon=2), [[0, 1]] * 2)[-1]
    for prefix in ("", "expected_"):
        assert info[f"{prefix}user_gap"] == 1.5
        assert info[f"{prefix}min_user_return"] == -0.5
        assert math.isnan(info[f"{prefix}user_gini"])
        assert math.isnan(info[f"{prefix}jain_index"])


def test_users_who_share_an_arm_each_get_its_reward() -> None:
    env = assignment([0.5, 0.25], num_users=3, capacity=2, horizon=1)
    info = play(env, [[0, 1, 0]])[-1]
    assert (info["user_gap"], info["min_user_return"]) == (0.25, 0.25)
    assert info["user_gini"] == pytest.approx(2 * 2 * 0.25 / (2 * 3 * 1.25), rel=1e-14)


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
def test_metrics_do_not_depend_on_the_objective(objective: str) -> None:
    env = assignment([0.75, 0.25], num_users=2, horizon=2, objective=objective)
    assert play(env, [[0, 1]] * 2)[-1]["min_user_return"] == 0.5


def test_rotation_is_fair_and_the_static_oracle_is_not() -> None:
    comparison = compare(
        {"rotation": OracleRotation, "static": StaticOracle},
        EGAL,
        instance=Bernoulli([0.75, 0.5, 0.25]),
        num_users=2,
        horizon=40,
        num_episodes=3,
        metrics=["fairness"],
    )
    for name, gap, jain, gini_value, least in (
        ("rotation", 0.0, 1.0, 0.0, 25.0),
        ("static", 10.0, 50**2 / (2 * (30**2 + 20**2)), 0.1, 20.0),
    ):
        episodes = comparison[name].episodes
        assert_allclose(episodes["expected_user_gap"], gap, atol=1e-12)
        assert_allclose(episodes["expected_jain_index"], jain, rtol=1e-12)
        assert_allclose(episodes["expected_user_gini"], gini_value, atol=1e-12)
        assert_allclose(episodes["expected_min_user_return"], least, rtol=1e-12)
        assert (episodes["user_gini"] > 0).any()  # luck


# --- When an episode ends -------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("horizon", "limit", "length"), [(5, None, 5), (5, 3, 3), (3, 5, 3)])
def test_the_keys_come_with_the_end_and_only_then(
    horizon: int, limit: int | None, length: int, known: bool
) -> None:
    extra = {} if limit is None else {"max_episode_steps": limit}
    env = improving(horizon=horizon, horizon_known=known, **extra)
    for number in range(3):
        assert env.reset(seed=number)[1] == {}
        for step in range(1, length + 1):
            info = env.step(0)[4]
            assert set(info) == (ARM_KEYS if step == length else set())
        assert info["min_pull_share"] == 0.0


def test_metrics_answer_at_any_time() -> None:
    env = improving(horizon=3)
    env.reset(seed=0)
    start = env.metrics()
    assert math.isnan(start.pop("min_pull_share"))  # nothing was shared out yet
    assert start == {"max_potential_gap": 1.0, "mean_potential_gap": 0.75, "pull_gini": 0.0}
    env.step(1)
    assert env.metrics()["mean_potential_gap"] == pytest.approx(1.475 / 2, rel=1e-14)
    env.step(0)
    info = env.step(0)[4]
    assert env.metrics() == info
    env.reset()
    assert env.metrics()["max_potential_gap"] == 1.0


def test_an_outer_time_limit_is_not_seen_but_metrics_answer() -> None:
    env = TimeLimit(improving(horizon=100), 2)
    assert play(env, [0, 1]) == [{}, {}]
    assert env.get_wrapper_attr("metrics")()["min_pull_share"] == 0.5


@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
def test_there_are_no_metrics_before_the_first_reset(env_id: str) -> None:
    scalar, vector = gym.make(env_id), gym.make_vec(env_id, 2)
    for env in (FairnessMetrics(scalar), VectorFairnessMetrics(vector)):
        with pytest.raises(ResetNeeded, match="call `reset` first: no episode has begun"):
            env.metrics()
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(env.action_space.sample())
