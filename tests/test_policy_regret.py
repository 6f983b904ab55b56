"""Policy regret: worked by hand, and in every place where an episode can end."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from helpers_agents import episode, fixed
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, KEYS, improving, play
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import FixedArm, UniformRandom
from gym_fairbandits.curves import Constant, Tabulated
from gym_fairbandits.wrappers import PolicyRegret, competitive_ratio
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Worked by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "optimal", "expected"),
    [
        ([0], 0.25, 0.25),
        ([1], 0.25, 0.025),
        ([0, 1], 0.75, 0.275),
        ([1, 0, 0], 1.25, 0.775),
        ([1, 1, 1, 0], 1.75, 0.4),
    ],
)
def test_improving_episodes_worked_by_hand(
    actions: list[int], optimal: float, expected: float
) -> None:
    infos = play(improving(horizon=len(actions)), actions)
    assert all(not info for info in infos[:-1])
    info = infos[-1]
    assert set(info) == KEYS
    assert all(type(value) is float for value in info.values())
    assert info == pytest.approx(
        {
            "optimal_return": optimal,
            "expected_return": expected,
            "policy_regret": optimal - expected,
            "competitive_ratio": optimal / expected,
            "realized_regret": optimal - expected,
        },
        rel=1e-12,
        abs=1e-15,
    )


def test_the_better_arm_depends_on_the_length() -> None:
    # Rew_0(T) = T/2 - 1/4 and Rew_1(T) = T (T + 1) / 80 meet between 38 and 39.
    for horizon, optimal in ((38, 18.75), (39, 19.5)):
        info = play(improving(horizon=horizon), [0] * horizon)[-1]
        assert info["optimal_return"] == pytest.approx(optimal, rel=1e-12)
        assert info["policy_regret"] == pytest.approx(optimal - (horizon / 2 - 0.25), abs=1e-12)


def test_an_assignment_episode_worked_by_hand() -> None:
    # Means 0.9, 0.5, 0.1; T mu* / U = 3 * 1.4 / 2. User 0: 0.9 + 0.5 + 0.1; user 1: 0.1 + 0.9 + 0.5
    env = PolicyRegret(gym.make(EGAL, instance=fixed([0.9, 0.5, 0.1]), num_users=2, horizon=3))
    infos = play(env, [[0, 2], [1, 0], [2, 1]])
    assert [set(info) for info in infos[:2]] == [{"user_rewards"}] * 2
    info = infos[2]
    assert set(info) == KEYS | {"user_rewards", "expected_user_returns"}
    assert all(type(info[key]) is float for key in KEYS)
    users = info.pop("expected_user_returns")
    assert users.dtype == np.float64
    np.testing.assert_allclose(users, [1.5, 1.5], rtol=1e-12)
    info.pop("user_rewards")
    assert info == pytest.approx(
        {
            "optimal_return": 2.1,
            "expected_return": 1.5,
            "policy_regret": 0.6,
            "competitive_ratio": 1.4,
            "realized_regret": 0.6,
        },
        rel=1e-12,
    )


def test_the_utilitarian_objective_counts_the_mean_user() -> None:
    env = PolicyRegret(
        gym.make(
            EGAL,
            instance=fixed([0.9, 0.5, 0.1]),
            num_users=2,
            horizon=3,
            objective="utilitarian",
        )
    )
    info = play(env, [[0, 1], [0, 1], [0, 2]])[-1]
    np.testing.assert_allclose(info["expected_user_returns"], [2.7, 1.1], rtol=1e-12)
    assert info["expected_return"] == pytest.approx(1.9, rel=1e-12)
    assert info["policy_regret"] == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize(
    ("num_users", "capacity", "actions", "optimal", "users"),
    [
        # C divides U: mu* of each step is 2 (1 + 0.5), over 4 users and 2 steps.
        (4, 2, [[0, 0, 1, 1], [1, 1, 0, 0]], 1.5, [1.5, 1.5, 1.5, 1.5]),
        (4, 2, [[0, 0, 1, 1], [0, 1, 0, 1]], 1.5, [2.0, 1.5, 1.5, 1.0]),
        # C does not: (2 / 3) (2 * 1 + 1 * 0.5).
        (3, 2, [[0, 0, 1], [2, 0, 0]], 5 / 3, [1.25, 2.0, 1.5]),
        # One arm serves all: G = 0, rho = U.
        (3, 4, [[0, 0, 0], [0, 0, 1]], 2.0, [2.0, 2.0, 1.5]),
    ],
)
def test_capacity_worked_by_hand(
    num_users: int, capacity: int, actions: list[Any], optimal: float, users: list[float]
) -> None:
    env = PolicyRegret(
        gym.make(
            EGAL,
            instance=fixed([1, 0.5, 0.25]),
            num_users=num_users,
            capacity=capacity,
            horizon=len(actions),
        )
    )
    info = play(env, actions)[-1]
    np.testing.assert_allclose(info["expected_user_returns"], users, rtol=1e-12)
    assert info["optimal_return"] == pytest.approx(optimal, rel=1e-12)
    assert info["policy_regret"] == pytest.approx(optimal - min(users), abs=1e-12)


def test_the_benchmark_stands_when_users_do_not_divide_the_length() -> None:
    # U = 3, T = 2: T mu* / U = 2 (1 + 0.75 + 0.5) / 3 = 1.5; turning once leaves a user 1.25.
    env = PolicyRegret(gym.make(EGAL, instance=fixed([1, 0.75, 0.5]), num_users=3, horizon=2))
    info = play(env, [[0, 1, 2], [2, 0, 1]])[-1]
    assert info["optimal_return"] == pytest.approx(1.5, rel=1e-12)
    assert info["policy_regret"] == pytest.approx(0.25, rel=1e-12)
    # Here the best schedule reaches it: 1 + 0.5, 0.75 + 0.75 and 0.5 + 1.
    info = play(env, [[0, 1, 2], [2, 1, 0]])[-1]
    assert info["policy_regret"] == pytest.approx(0.0, abs=1e-12)


# --- The ratio ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimal", "expected", "ratio"),
    [
        (6.0, 2.0, 3.0),
        (2.0, 2.0, 1.0),
        (2.0, 0.0, math.inf),
        (0.0, 0.0, 1.0),
        (0.0, 2.0, 0.0),
        (2.0, -1.0, math.nan),
        (-1.0, -2.0, math.nan),
        (-1.0, 2.0, math.nan),
        (-1.0, 0.0, math.nan),
        (0.0, -1.0, math.nan),
    ],
)
def test_competitive_ratio_of_every_sign(optimal: float, expected: float, ratio: float) -> None:
    given = np.array([optimal, 6.0]), np.array([expected, 2.0])
    assert_array_equal(competitive_ratio(*given), [ratio, 3.0])
    assert given[0].tolist() == [optimal, 6.0]


def test_ratios_of_episodes_at_the_edge() -> None:
    nothing = [Constant(0.0), Constant(0.0)]
    info = play(improving(instance=nothing, horizon=3), [0, 1, 1])[-1]
    assert (info["competitive_ratio"], info["policy_regret"]) == (1.0, 0.0)
    info = play(improving(instance=[Constant(0.5), Constant(0.0)], horizon=3), [1] * 3)[-1]
    assert (info["competitive_ratio"], info["policy_regret"]) == (math.inf, 1.5)
    env = PolicyRegret(gym.make(EGAL, instance=fixed([-0.5, 0.25]), num_users=2, horizon=2))
    info = play(env, [[0, 1], [1, 0]])[-1]
    assert math.isnan(info["competitive_ratio"])
    assert info["policy_regret"] == 0.0


def test_vector_ratios_are_those_of_the_rows() -> None:
    instances = [[Constant(0.5), Constant(value)] for value in (0.0, 0.25)]
    instances.append([Constant(0.0), Constant(0.0)])
    envs = VectorPolicyRegret(gym.make_vec(IMPROVING, 3, num_arms=2, horizon=1))
    envs.reset(seed=0, options={"instances": instances})
    infos = envs.step(np.array([1, 1, 1]))[4]
    assert infos["competitive_ratio"].tolist() == [math.inf, 2.0, 1.0]


# --- When an episode ends -------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("horizon", "limit", "length", "cut"),
    [(5, None, 5, False), (5, 3, 3, True), (3, 5, 3, False), (4, 4, 4, True)],
)
def test_the_keys_come_with_the_end_and_only_then(
    horizon: int, limit: int | None, length: int, cut: bool, known: bool
) -> None:
    extra = {} if limit is None else {"max_episode_steps": limit}
    env = improving(horizon=horizon, horizon_known=known, **extra)
    for number in range(3):
        _, info = env.reset(seed=number)
        assert info == {}
        for step in range(1, length + 1):
            _, _, terminated, truncated, info = env.step(step % 2)
            ended = step == length
            assert set(info) == (KEYS if ended else set())
            assert terminated == (ended and known and length == horizon)
            assert truncated == (ended and (cut or not known))
        assert info["optimal_return"] == pytest.approx(length / 2 - 0.25, rel=1e-12)


def test_each_episode_has_an_account_of_its_own() -> None:
    env = PolicyRegret(gym.make(IMPROVING, num_arms=3, horizon=20))
    seen = []
    for number, arm in enumerate((0, 1, 2, 0)):
        _, rewards, info = episode(env, FixedArm(arm), seed=5 if number == 0 else None)
        curves = env.unwrapped.curves  # type: ignore[attr-defined]
        best = max(curve.cumulative(20) for curve in curves)
        assert info["expected_return"] == pytest.approx(math.fsum(rewards), rel=1e-12)
        assert info["optimal_return"] == pytest.approx(best, rel=1e-12)
        assert info["policy_regret"] == info["optimal_return"] - info["expected_return"]
        seen.append(info["optimal_return"])
    assert len(set(seen)) == 4  # instances are redrawn


def test_an_abandoned_episode_leaves_no_trace() -> None:
    env = improving(horizon=3)
    env.reset(seed=0)
    env.step(1)
    infos = play(env, [0, 0, 0])
    assert infos[-1]["policy_regret"] == pytest.approx(0.0, abs=1e-15)


def test_regret_answers_in_mid_episode_and_after_the_end() -> None:
    env = improving(horizon=4)
    env.reset(seed=0)
    assert env.regret() == 0.0
    # OPT(t) = 0.25, 0.75, 1.25, 1.75; earned 0.025, 0.275, 0.775, 0.825.
    for arm, expected in ((1, 0.225), (0, 0.475), (0, 0.475), (1, 0.925)):
        info = env.step(arm)[4]
        assert type(env.regret()) is float
        assert env.regret() == pytest.approx(expected, rel=1e-12)
    assert env.metrics() == info
    assert env.regret() == info["policy_regret"]
    env.reset()
    assert env.regret() == 0.0


def test_vector_regret_answers_in_mid_episode() -> None:
    envs = VectorPolicyRegret(gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=3))
    envs.reset(seed=0)
    assert envs.regret().tolist() == [0.0, 0.0]
    for arms, expected in (([0, 1], [0.0, 0.225]), ([0, 0], [0.0, 0.475]), ([1, 0], [0.475] * 2)):
        infos = envs.step(np.array(arms))[4]
        np.testing.assert_allclose(envs.regret(), expected, atol=1e-12)
    assert_array_equal(envs.regret(), infos["policy_regret"])
    for name, values in envs.metrics().items():
        assert_array_equal(values, infos[name])


def test_an_outer_time_limit_is_not_seen_but_regret_answers() -> None:
    env = TimeLimit(improving(horizon=100), 2)
    infos = play(env, [0, 1])
    assert infos == [{}, {}]
    assert env.get_wrapper_attr("regret")() == pytest.approx(0.475, rel=1e-12)
    inner = PolicyRegret(TimeLimit(gym.make(IMPROVING, instance=EARLY_LATE, horizon=100), 2))
    assert play(inner, [0, 1])[-1]["policy_regret"] == pytest.approx(0.475, rel=1e-12)


def test_realized_regret_is_that_of_the_rewards_and_policy_regret_has_no_noise() -> None:
    noisy = improving(horizon=30, noise_std=0.5)
    quiet = improving(horizon=30)
    alternate = [step % 2 for step in range(30)]
    noisy.reset(seed=1)
    rewards = []
    for arm in alternate:
        _, reward, _, _, info = noisy.step(arm)
        rewards.append(float(reward))
    clean = play(quiet, alternate)[-1]
    for key in KEYS - {"realized_regret"}:
        assert info[key] == clean[key]
    realized = info["optimal_return"] - math.fsum(rewards)
    assert info["realized_regret"] == pytest.approx(realized, rel=1e-12)
    assert abs(info["realized_regret"] - info["policy_regret"]) > 0.1


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
def test_realized_regret_of_an_assignment_is_that_of_the_return(objective: str) -> None:
    env = PolicyRegret(gym.make(EGAL, num_users=3, num_arms=5, horizon=40, objective=objective))
    agent = UniformRandom()
    agent.reset(seed=0)
    _, rewards, info = episode(env, agent, seed=0)
    realized = info["optimal_return"] - math.fsum(rewards)
    assert info["realized_regret"] == pytest.approx(realized, rel=1e-12)
    assert info["realized_regret"] != pytest.approx(info["policy_regret"])
    if objective == "egalitarian":
        assert info["expected_return"] == info["expected_user_returns"].min()


def test_arms_that_fall_are_measured_against_the_best_share_of_pulls() -> None:
    falling = [Tabulated((0.5, 0.25)), Constant(0.375)]
    env = improving(instance=falling, horizon=2, validate=False)
    env.reset(seed=0)
    env.step(0)
    info = env.step(0)[-1]
    assert (info["optimal_return"], info["expected_return"]) == (0.875, 0.75)
    assert info["policy_regret"] == 0.125
