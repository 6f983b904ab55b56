"""Fairness metrics: worked by hand, by brute force, and at the end of every kind of episode."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from helpers_agents import EGAL, IMPROVING, fixed
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import EgalUCB, OracleRotation, RoundRobin, StaticOracle
from gym_fairbandits.arms import Bernoulli, Gaussian
from gym_fairbandits.curves import Constant, LinearCap
from gym_fairbandits.evaluation import compare, evaluate
from gym_fairbandits.wrappers import (
    FairnessMetrics,
    PolicyRegret,
    SequentialAssignment,
    gini,
    jain_index,
)
from gym_fairbandits.wrappers.vector import FairnessMetrics as VectorFairnessMetrics
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

ARM_KEYS = {"max_potential_gap", "mean_potential_gap", "pull_gini", "min_pull_share"}
EARNED_KEYS = {"user_gap", "jain_index", "user_gini", "min_user_return"}
USER_KEYS = EARNED_KEYS | {f"expected_{key}" for key in EARNED_KEYS}
every_mode = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: str(mode.value))
EARLY_LATE = [LinearCap(0.5, 2), LinearCap(1.0, 40)]  # min(n/4, 1/2) and min(n/40, 1)


def keys_of(env_id: str) -> set[str]:
    return ARM_KEYS if env_id == IMPROVING else USER_KEYS


def improving(**kwargs: Any) -> FairnessMetrics[Any, Any]:
    return FairnessMetrics(gym.make(IMPROVING, **{"instance": EARLY_LATE, **kwargs}))


def assignment(means: list[float], **kwargs: Any) -> FairnessMetrics[Any, Any]:
    return FairnessMetrics(gym.make(EGAL, instance=fixed(means), **kwargs))


def play(env: Any, actions: list[Any]) -> list[dict[str, Any]]:
    """Reset and play; return the infos."""
    env.reset(seed=0)
    return [env.step(action)[4] for action in actions]


# --- The indices --------------------------------------------------------------------------------


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


# --- Improving arms -----------------------------------------------------------------------------


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


# --- Assignment ---------------------------------------------------------------------------------


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


# --- When an episode ends -----------------------------------------------------------------------


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


# --- Native vector equals Sync of wrapped environments, bit for bit -----------------------------

EQUAL: dict[str, tuple[str, dict[str, Any]]] = {
    "improving": (IMPROVING, {"num_arms": 3, "horizon": 5}),
    "many_arms": (IMPROVING, {"num_arms": 21, "horizon": 6, "noise_std": 0.2}),
    "known": (IMPROVING, {"num_arms": 3, "horizon": 4, "horizon_known": True}),
    "limited": (IMPROVING, {"num_arms": 3, "horizon": 90, "max_episode_steps": 4}),
    "one_step": (IMPROVING, {"num_arms": 3, "horizon": 1}),
    "egal": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 5}),
    "egal_negative": (EGAL, {"instance": "gaussian", "num_users": 2, "horizon": 4}),
    "egal_shared": (EGAL, {"num_users": 11, "num_arms": 7, "capacity": 2, "horizon": 5}),
    "egal_limited": (
        EGAL,
        {"num_users": 3, "horizon": 6, "horizon_known": True, "max_episode_steps": 4},
    ),
}


@every_mode
@pytest.mark.parametrize("case", EQUAL)
def test_the_vector_wrapper_equals_sync_of_wrapped_environments(
    case: str, mode: AutoresetMode
) -> None:
    env_id, kwargs = EQUAL[case]
    count = 4
    native = VectorFairnessMetrics(gym.make_vec(env_id, count, autoreset_mode=mode, **kwargs))
    sync: Any = SyncVectorEnv(
        [lambda: FairnessMetrics(gym.make(env_id, **kwargs))] * count, autoreset_mode=mode
    )
    native.reset(seed=20)
    sync.reset(seed=20)
    native.action_space.seed(1)
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = []
    ended = 0
    for step in range(30):
        if mode != AutoresetMode.SAME_STEP and step in (2, 9):
            mask = np.arange(count) % 2 == step % 2  # rows get out of step
            for envs in (native, sync):
                envs.reset(options={"reset_mask": mask.copy()})
        actions = native.action_space.sample()
        one, other = native.step(actions), sync.step(actions)
        done = one[2] | one[3]
        mine, theirs = one[4], other[4]
        if mode == AutoresetMode.SAME_STEP:
            theirs = theirs.get("final_info", {})
        for name in keys_of(env_id):
            assert (name in mine) == (name in theirs) == done.any()
            if done.any():
                assert mine[name].dtype == np.float64
                assert_array_equal(mine[f"_{name}"], done)
                assert_array_equal(theirs[f"_{name}"], done)
                assert_array_equal(mine[name], theirs[name], strict=True)
        kept.append((mine, copy.deepcopy(mine)))
        ended += int(done.sum())
        if mode == AutoresetMode.DISABLED and done.any():
            for envs in (native, sync):
                envs.reset(options={"reset_mask": done.copy()})
    assert ended >= 3 * count
    for now, then in kept:  # nothing that was returned has been overwritten
        for name in set(then) & keys_of(env_id):
            assert_array_equal(now[name], then[name])


def test_vector_metrics_of_an_episode_that_same_step_has_already_reset() -> None:
    settings: dict[str, Any] = {"horizon": 2, "autoreset_mode": "SameStep"}
    envs = VectorFairnessMetrics(gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, **settings))
    envs.reset(seed=0)
    envs.step(np.array([0, 1]))
    observation, _, _, _, infos = envs.step(np.array([1, 1]))
    assert observation["pulls"].sum() == 0
    assert infos["pull_gini"].tolist() == [0.0, 0.5]
    assert infos["min_pull_share"].tolist() == [0.5, 0.0]
    for name, values in envs.metrics().items():
        assert_array_equal(values, infos[name])
    envs.step(np.array([1, 0]))
    assert_allclose(envs.metrics()["max_potential_gap"], [0.975, 1.0], rtol=1e-14)
    assert envs.metrics()["pull_gini"].tolist() == [0.5, 0.5]


def test_pull_counts_are_a_copy_of_what_was_pulled() -> None:
    envs: Any = gym.make_vec(IMPROVING, 3, instance=EARLY_LATE, horizon=9)
    envs.reset(seed=0)
    envs.step(np.array([0, 1, 1]))
    counts = envs.pull_counts()
    assert counts.tolist() == [[1, 0], [0, 1], [0, 1]]
    counts[:] = 7
    assert envs.pull_counts(rows=np.array([False, True, True])).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("vector", [False, True])
def test_realized_user_returns_are_a_copy_of_what_was_earned(vector: bool) -> None:
    settings: dict[str, Any] = {"instance": fixed([0.5, 0.25]), "num_users": 2, "horizon": 9}
    env: Any = gym.make_vec(EGAL, 1, **settings) if vector else gym.make(EGAL, **settings).unwrapped
    env.reset(seed=0)
    env.step(np.array([[0, 1]] if vector else [0, 1]))
    for _ in range(2):
        totals = env.realized_user_returns()
        assert totals.ravel().tolist() == [0.5, 0.25]
        totals[:] = 7


# --- Among other wrappers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [(PolicyRegret, FairnessMetrics), (FairnessMetrics, PolicyRegret)],
    ids=["outside", "inside"],
)
@pytest.mark.parametrize(
    ("env_id", "actions"), [(IMPROVING, [0, 1, 0, 2]), (EGAL, [[0, 1, 2, 3, 4]] * 4)]
)
def test_beside_policy_regret_in_any_order(
    env_id: str, actions: list[Any], order: tuple[Any, Any]
) -> None:
    make = partial(gym.make, env_id, horizon=4)
    infos = play(order[1](order[0](make())), actions)
    expected: dict[str, Any] = {}
    for wrapper in order:
        expected.update(play(wrapper(make()), actions)[-1])
    assert set(infos[-1]) == set(expected)
    assert keys_of(env_id) | {"policy_regret"} < set(expected)
    for key, value in expected.items():
        assert_array_equal(infos[-1][key], value)
    assert not set(infos[0]) & keys_of(env_id)


@pytest.mark.parametrize("outside", [True, False])
@every_mode
def test_the_vector_wrapper_beside_policy_regret(mode: AutoresetMode, outside: bool) -> None:
    inner = gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=2, autoreset_mode=mode)
    envs: Any = (
        VectorFairnessMetrics(VectorPolicyRegret(inner))
        if outside
        else VectorPolicyRegret(VectorFairnessMetrics(inner))
    )
    envs.reset(seed=0)
    assert not set(envs.step(np.array([0, 1]))[4]) & ARM_KEYS
    infos = envs.step(np.array([0, 0]))[4]
    assert_allclose(infos["policy_regret"], [0.0, 0.475], atol=1e-12)
    assert infos["pull_gini"].tolist() == [0.5, 0.0]
    assert infos["_pull_gini"].tolist() == [True, True]
    infos["_pull_gini"][:] = False
    assert all(infos[f"_{name}"].all() for name in (*ARM_KEYS - {"pull_gini"}, "policy_regret"))


def test_over_an_action_wrapper() -> None:
    env = FairnessMetrics(
        SequentialAssignment(
            gym.make(EGAL, instance=fixed([0.75, 0.5, 0.25]), num_users=2, horizon=2)
        )
    )
    infos = play(env, [0, 2, 0, 2])
    assert all(not set(info) & USER_KEYS for info in infos[:-1])
    assert infos[-1]["user_gap"] == 1.0


def test_rewards_observations_and_flags_pass_untouched() -> None:
    bare, wrapped = (gym.make(EGAL, num_users=3, num_arms=5, horizon=5) for _ in range(2))
    wrapped = FairnessMetrics(wrapped)
    assert wrapped.action_space == bare.action_space
    bare.reset(seed=4)
    wrapped.reset(seed=4)
    bare.action_space.seed(0)
    for _ in range(5):
        action = bare.action_space.sample()
        plain, plus = bare.step(action), wrapped.step(action)
        assert plain[1:4] == plus[1:4]
        for key, values in plain[0].items():
            assert_array_equal(values, plus[0][key])
        assert_array_equal(plain[4]["user_rewards"], plus[4]["user_rewards"])


def test_the_wrapper_is_rebuilt_from_the_json_of_a_spec() -> None:
    env = FairnessMetrics(
        gym.make(IMPROVING, instance=[curve.to_dict() for curve in EARLY_LATE], horizon=3)
    )
    assert env.spec is not None
    text = env.spec.to_json()
    assert json.loads(text)["additional_wrappers"][0]["kwargs"] == {}
    again = gym.make(EnvSpec.from_json(text))
    assert play(again, [1, 0, 0])[-1] == play(env, [1, 0, 0])[-1]


def test_other_environments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`env` must offer `potential_gaps` or .*, got .*CartPole"):
        FairnessMetrics(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match="`env` must be a native vector environment of"):
        VectorFairnessMetrics(gym.make_vec("CartPole-v1", num_envs=2))


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_sync_and_async_are_refused_with_what_to_do_instead(kind: Any) -> None:
    envs = kind([lambda: gym.make(IMPROVING, horizon=2)] * 2)
    told = (
        rf"gym_fairbandits, got {kind.__name__}.*; wrap its sub-environments instead, for example "
        r"with `gym.make_vec\(..., vectorization_mode='sync', wrappers=\[FairnessMetrics\]\)` and "
        "the scalar `gym_fairbandits.wrappers.FairnessMetrics`"
    )
    try:
        with pytest.raises(TypeError, match=told):
            VectorFairnessMetrics(envs)
        envs.reset(seed=0)
        assert len(envs.step(np.array([0, 1]))) == 5  # still usable
    finally:
        envs.close()


def test_what_the_refusal_advises_works() -> None:
    envs = gym.make_vec(
        IMPROVING,
        num_envs=2,
        instance=EARLY_LATE,
        horizon=1,
        vectorization_mode="sync",
        wrappers=[FairnessMetrics],
    )
    envs.reset(seed=0)
    infos = envs.step(np.array([0, 1]))[4]
    assert_allclose(infos["max_potential_gap"], [1.0, 0.975], rtol=1e-14)


def test_monitor_outside_logs_the_keys(tmp_path: Any) -> None:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    keywords = ("policy_regret", "max_potential_gap", "pull_gini")
    env = monitor.Monitor(
        PolicyRegret(improving(horizon=2)), str(tmp_path / "log"), info_keywords=keywords
    )
    for actions in ([0, 0], [0, 1]):
        info = play(env, actions)[-1]
        assert all(info["episode"][key] == info[key] for key in keywords)
    env.close()
    lines = (tmp_path / "log.monitor.csv").read_text("utf-8").splitlines()
    assert lines[1] == "r,l,t,policy_regret,max_potential_gap,pull_gini"
    rows = [[float(cell) for cell in line.split(",")[3:]] for line in lines[2:]]
    assert rows[0] == pytest.approx([0.0, 1.0, 0.5], abs=1e-12)
    assert rows[1] == pytest.approx([0.475, 0.975, 0.0], abs=1e-12)


# --- In evaluations -----------------------------------------------------------------------------

RUNS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "improving": (IMPROVING, {"num_arms": 4, "noise_std": 0.25, "horizon": 9}, RoundRobin()),
    "egal": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 9}, EgalUCB()),
}


@pytest.mark.parametrize("run", RUNS)
def test_evaluations_hold_the_keys_of_the_wrapper_when_asked(run: str) -> None:
    env_id, kwargs, agent = RUNS[run]
    play_all = partial(evaluate, agent, env_id, num_episodes=7, **kwargs)
    plain, asked = play_all(), play_all(metrics="fairness")
    env = FairnessMetrics(gym.make(env_id, **kwargs))
    for number in range(7):
        agent.reset(seed=[number])
        observation, done = env.reset(seed=number)[0], False
        while not done:
            observation, _, terminated, truncated, info = env.step(agent.act(observation))
            done = terminated or truncated
        for key in keys_of(env_id):
            column = "realized_min_user_return" if key == "min_user_return" else key
            assert asked.episodes[column][number] == info[key]
    added = set(asked.episodes) - set(plain.episodes)
    if env_id == IMPROVING:
        assert added == ARM_KEYS - {"max_potential_gap"}
    else:
        assert added == USER_KEYS - {"min_user_return"} | {"realized_min_user_return"}
        expected = asked.episodes["min_user_return"]  # of the users' expected totals, as before
        assert_array_equal(asked.episodes["expected_min_user_return"], expected)
        assert_allclose(
            asked.episodes["realized_min_user_return"], asked.episodes["return"], rtol=1e-12
        )
    for metric, values in plain.episodes.items():
        assert_array_equal(asked.episodes[metric], values)


@pytest.mark.parametrize("run", RUNS)
def test_evaluations_are_the_same_in_any_batch_or_wrapper(run: str) -> None:
    env_id, kwargs, agent = RUNS[run]
    play_all = partial(evaluate, agent, env_id, num_episodes=7, metrics=["fairness"], **kwargs)
    expected = play_all().episodes
    others = [
        play_all(num_envs=3),
        play_all(wrappers=[gym.Wrapper], num_envs=4),
        # Wrappers of the user's with methods of the same name do not get in the way.
        play_all(wrappers=[PolicyRegret]),
        play_all(wrappers=[FairnessMetrics]),
    ]
    for other in others:
        assert list(other.episodes) == list(expected)
        for metric, values in expected.items():
            assert_array_equal(other.episodes[metric], values)


def test_tables_show_the_metrics_that_were_asked_for() -> None:
    settings: dict[str, Any] = {"instance": "early_vs_late", "horizon": 4, "num_episodes": 2}
    comparison = compare({"turns": RoundRobin()}, IMPROVING, metrics=["fairness"], **settings)
    assert comparison.table().splitlines()[0] == (
        "| policy | policy regret | competitive ratio (median) | max potential gap "
        "| mean potential gap | pull gini | min pull share |"
    )
    # Two pulls each: the early arm is there, the late one 0.95 below.
    assert comparison.table(["max_potential_gap", "pull_gini"]).splitlines()[2] == (
        "| turns | 0.95 [0.95, 0.95] | 0.00 [0.00, 0.00] |"
    )
    egal = compare({"all": EgalUCB()}, EGAL, horizon=3, num_episodes=2, metrics=["fairness"])
    assert egal.table().splitlines()[0] == (
        "| policy | policy regret | competitive ratio (median) | min user return "
        "| expected user gap | expected jain index | expected user gini "
        "| realized min user return | user gap | jain index | user gini |"
    )


def test_an_index_that_is_not_a_number_has_no_mean() -> None:
    run = evaluate(
        EgalUCB(),
        EGAL,
        instance=Gaussian([-0.5, 0.5], 0.0),
        num_users=2,
        horizon=1,
        num_episodes=2,
        metrics="fairness",
    )
    assert math.isnan(run.mean("jain_index"))
    assert run.mean("user_gap") == 1.0


@pytest.mark.parametrize("metrics", ["unfairness", ["fairness", "gini"], [3]])
def test_unknown_metrics_are_refused(metrics: Any) -> None:
    with pytest.raises(ValueError, match="`metrics` must be one of 'fairness', 'external_regret'"):
        evaluate(RoundRobin(), IMPROVING, metrics=metrics, num_episodes=1)
