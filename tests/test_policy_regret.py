"""Policy regret: worked by hand, in every place where an episode can end, and never negative."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from gymnasium.wrappers.vector import DictInfoToList
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorRecordEpisodeStatistics
from helpers_agents import EGAL, IMPROVING, episode, fixed
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import AnytimeImproving, EgalUCB, FixedArm, OracleArm, UniformRandom
from gym_fairbandits.arms import Gaussian
from gym_fairbandits.curves import Constant, LinearCap, Tabulated
from gym_fairbandits.envs import ImprovingBanditEnv
from gym_fairbandits.wrappers import PolicyRegret, competitive_ratio
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

OLD_GYMNASIUM = tuple(int(part) for part in gym.__version__.split(".")[:2]) < (1, 4)
KEYS = {
    "policy_regret",
    "optimal_return",
    "expected_return",
    "competitive_ratio",
    "realized_regret",
}
MODES = list(AutoresetMode)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
EARLY_LATE = [LinearCap(0.5, 2), LinearCap(1.0, 40)]  # min(n/4, 1/2) and min(n/40, 1)


def improving(**kwargs: Any) -> PolicyRegret[Any, Any]:
    return PolicyRegret(gym.make(IMPROVING, **{"instance": EARLY_LATE, **kwargs}))


def play(env: Any, actions: list[Any]) -> list[dict[str, Any]]:
    """Reset and play; return the infos."""
    env.reset(seed=0)
    return [env.step(action)[4] for action in actions]


# --- Worked by hand -----------------------------------------------------------------------------


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


# --- The ratio ----------------------------------------------------------------------------------


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


# --- When an episode ends -----------------------------------------------------------------------


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


# --- Among other wrappers -----------------------------------------------------------------------


@pytest.mark.parametrize("outside", [True, False])
def test_beside_record_episode_statistics(outside: bool) -> None:
    base = gym.make(IMPROVING, instance=EARLY_LATE, horizon=4)
    env: Any = (
        PolicyRegret(RecordEpisodeStatistics(base))
        if outside
        else RecordEpisodeStatistics(PolicyRegret(base))
    )
    for _ in range(2):
        infos = play(env, [0, 1, 0, 1])
        assert all(not info for info in infos[:-1])
        assert set(infos[-1]) == KEYS | {"episode"}
        assert infos[-1]["policy_regret"] == pytest.approx(1.75 - 0.825, rel=1e-12)
        assert infos[-1]["episode"]["r"] == pytest.approx(0.825, rel=1e-12)
        assert infos[-1]["episode"]["l"] == 4


@pytest.mark.parametrize("outside", [True, False])
@every_mode
def test_beside_vector_record_episode_statistics(mode: AutoresetMode, outside: bool) -> None:
    base = gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=4, autoreset_mode=mode)
    envs: Any = (
        VectorPolicyRegret(VectorRecordEpisodeStatistics(base))
        if outside
        else VectorRecordEpisodeStatistics(VectorPolicyRegret(base))
    )
    envs.reset(seed=0)
    for number in range(2):
        if number and mode == AutoresetMode.NEXT_STEP:
            envs.step(np.array([0, 0]))  # this resets
        elif number and mode == AutoresetMode.DISABLED:
            envs.reset(options={"reset_mask": np.array([True, True])})
        for arms in ([0, 1], [0, 1], [0, 1], [0, 1]):
            infos = envs.step(np.array(arms))[4]
        np.testing.assert_allclose(infos["policy_regret"], [0.0, 1.5], atol=1e-12)
        assert infos["_policy_regret"].tolist() == [True, True]
        if mode != AutoresetMode.SAME_STEP or not OLD_GYMNASIUM:  # it drops a reward there
            np.testing.assert_allclose(infos["episode"]["r"], [1.75, 0.25], rtol=1e-12)


def test_info_lists_of_the_native_vector_env_hold_the_keys_of_ended_rows_only() -> None:
    envs: Any = DictInfoToList(
        VectorPolicyRegret(
            gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=2, autoreset_mode="Disabled")
        )
    )
    envs.reset(seed=0)
    assert envs.step(np.array([0, 1]))[4] == [{}, {}]
    envs.reset(options={"reset_mask": np.array([False, True])})
    infos = envs.step(np.array([1, 1]))[4]
    assert set(infos[0]) == KEYS
    assert infos[0]["policy_regret"] == pytest.approx(0.475, rel=1e-12)
    assert infos[1] == {}


def test_every_key_of_the_vector_wrapper_has_a_mask_of_its_own() -> None:
    envs = VectorPolicyRegret(gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=1))
    envs.reset(seed=0)
    infos = envs.step(np.array([0, 1]))[4]
    infos["_policy_regret"][:] = False
    assert all(infos[f"_{name}"].all() for name in KEYS - {"policy_regret"})


def test_rewards_observations_and_flags_pass_untouched() -> None:
    bare = gym.make(EGAL, num_users=3, num_arms=5, horizon=9)
    wrapped = PolicyRegret(gym.make(EGAL, num_users=3, num_arms=5, horizon=9))
    assert wrapped.action_space == bare.action_space
    assert wrapped.observation_space == bare.observation_space
    bare.reset(seed=4)
    wrapped.reset(seed=4)
    bare.action_space.seed(0)
    for _ in range(9):
        action = bare.action_space.sample()
        plain, plus = bare.step(action), wrapped.step(action)
        assert plain[1:4] == plus[1:4]
        assert type(plus[1]) is float
        for key, values in plain[0].items():
            assert_array_equal(values, plus[0][key])
        assert_array_equal(plain[4]["user_rewards"], plus[4]["user_rewards"])


@every_mode
def test_the_vector_wrapper_passes_everything_else_untouched(mode: AutoresetMode) -> None:
    kwargs: dict[str, Any] = {"num_users": 3, "num_arms": 5, "horizon": 4, "autoreset_mode": mode}
    bare, inner = gym.make_vec(EGAL, 2, **kwargs), gym.make_vec(EGAL, 2, **kwargs)
    wrapped = VectorPolicyRegret(inner)
    assert wrapped.action_space == bare.action_space
    assert wrapped.metadata["autoreset_mode"] == mode
    bare.reset(seed=4)
    wrapped.reset(seed=4)
    bare.action_space.seed(0)
    for _ in range(14):
        actions = bare.action_space.sample()
        plain, plus = bare.step(actions), wrapped.step(actions)
        for before, after in zip(plain[1:4], plus[1:4], strict=True):
            assert_array_equal(before, after)
        for key, values in plain[0].items():
            assert_array_equal(values, plus[0][key])
        added = set(plus[4]) - set(plain[4])
        done = plain[2] | plain[3]
        names = KEYS | {"expected_user_returns"}
        assert added == ({*names, *(f"_{name}" for name in names)} if done.any() else set())
        if mode == AutoresetMode.DISABLED and done.any():
            for envs in (bare, wrapped):
                envs.reset(options={"reset_mask": done.copy()})


def test_the_wrapper_is_rebuilt_from_the_json_of_a_spec() -> None:
    env = PolicyRegret(
        gym.make(IMPROVING, instance=[curve.to_dict() for curve in EARLY_LATE], horizon=3)
    )
    assert env.spec is not None
    text = env.spec.to_json()
    assert json.loads(text)["additional_wrappers"][0]["kwargs"] == {"benchmark": "paper"}
    again = gym.make(EnvSpec.from_json(text))
    assert again.has_wrapper_attr("regret")
    assert play(again, [1, 0, 0])[-1] == play(env, [1, 0, 0])[-1]
    assert play(again, [1, 0, 0])[-1]["policy_regret"] == pytest.approx(0.475, rel=1e-12)


def test_it_wraps_the_class_itself() -> None:
    env = PolicyRegret(ImprovingBanditEnv(instance=EARLY_LATE, horizon=2))
    assert play(env, [0, 1])[-1]["policy_regret"] == pytest.approx(0.475, rel=1e-12)


def test_step_before_reset_is_refused_as_without_the_wrapper() -> None:
    with pytest.raises(ResetNeeded, match="reset"):
        improving().step(0)


@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
def test_there_is_no_regret_before_the_first_reset(env_id: str) -> None:
    envs: list[Any] = [PolicyRegret(gym.make(env_id)), VectorPolicyRegret(gym.make_vec(env_id, 2))]
    for env in envs:
        with pytest.raises(ResetNeeded, match="call `reset` first: no episode has begun"):
            env.regret()
        env.reset(seed=0)
        assert not np.any(env.regret())


# --- Refusals -----------------------------------------------------------------------------------


def test_environments_without_an_optimum_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`env` must offer `optimal_return`, got .*CartPole"):
        PolicyRegret(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match="`env` must be a native vector environment of"):
        VectorPolicyRegret(gym.make_vec("CartPole-v1", num_envs=2))


TOLD = (
    r"native vector environment of gym_fairbandits, got {}.*; wrap its sub-environments instead, "
    r"for example with `gym.make_vec\(..., vectorization_mode='sync', wrappers=\[PolicyRegret\]\)`"
)


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_sync_and_async_are_refused_with_what_to_do_instead(kind: Any) -> None:
    envs = kind([lambda: gym.make(IMPROVING, horizon=2)] * 2)
    try:
        with pytest.raises(TypeError, match=TOLD.format(kind.__name__)):
            VectorPolicyRegret(envs)
        envs.reset(seed=0)
        assert len(envs.step(np.array([0, 1]))) == 5  # still usable
    finally:
        envs.close()


def test_what_the_refusal_advises_works() -> None:
    envs = gym.make_vec(
        IMPROVING,
        num_envs=2,
        instance=EARLY_LATE,
        horizon=2,
        vectorization_mode="sync",
        wrappers=[PolicyRegret],
    )
    envs.reset(seed=0)
    envs.step(np.array([0, 0]))
    infos = envs.step(np.array([0, 1]))[4]
    np.testing.assert_allclose(infos["policy_regret"], [0.0, 0.475], atol=1e-12)


# --- Native vector equals Sync of wrapped environments, bit for bit -----------------------------

EQUAL: dict[str, tuple[str, dict[str, Any]]] = {
    "improving": (IMPROVING, {"num_arms": 3, "horizon": 5}),
    "noisy": (IMPROVING, {"num_arms": 3, "horizon": 5, "noise_std": 0.2}),
    "known": (IMPROVING, {"num_arms": 3, "horizon": 4, "horizon_known": True}),
    "limited": (IMPROVING, {"num_arms": 3, "horizon": 90, "max_episode_steps": 4}),
    "one_step": (IMPROVING, {"num_arms": 3, "horizon": 1}),
    "egal": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 5}),
    "egal_gaussian": (EGAL, {"instance": "gaussian", "num_users": 2, "horizon": 7}),
    "egal_shared": (EGAL, {"num_users": 5, "num_arms": 4, "capacity": 2, "horizon": 5}),
    "egal_mean": (EGAL, {"num_users": 3, "objective": "utilitarian", "horizon": 5}),
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
    native = VectorPolicyRegret(gym.make_vec(env_id, count, autoreset_mode=mode, **kwargs))
    sync: Any = SyncVectorEnv(
        [lambda: PolicyRegret(gym.make(env_id, **kwargs))] * count, autoreset_mode=mode
    )
    names = KEYS | ({"expected_user_returns"} if env_id == EGAL else set())
    native.reset(seed=20)
    sync.reset(seed=20)
    native.action_space.seed(1)
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = []
    ended = 0
    for step in range(40):
        if mode != AutoresetMode.SAME_STEP and step in (2, 9):
            # Rows get out of step.
            mask = np.arange(count) % 2 == step % 2
            for envs in (native, sync):
                envs.reset(options={"reset_mask": mask.copy()})
        actions = native.action_space.sample()
        one, other = native.step(actions), sync.step(actions)
        done = one[2] | one[3]
        assert_array_equal(other[2] | other[3], done)
        mine, theirs = one[4], other[4]
        if mode == AutoresetMode.SAME_STEP:
            theirs = theirs.get("final_info", {})
        for name in names:
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
        for name in set(then) & names:
            assert_array_equal(now[name], then[name])


def test_vector_regret_of_an_episode_that_same_step_has_already_reset() -> None:
    envs = VectorPolicyRegret(
        gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=2, autoreset_mode="SameStep")
    )
    envs.reset(seed=0)
    envs.step(np.array([0, 1]))
    observation, _, _, truncations, infos = envs.step(np.array([1, 1]))
    assert truncations.all()
    assert observation["pulls"].sum() == 0
    np.testing.assert_allclose(infos["policy_regret"], [0.475, 0.675], rtol=1e-12)
    assert_array_equal(envs.regret(), infos["policy_regret"])
    envs.step(np.array([1, 0]))
    np.testing.assert_allclose(envs.regret(), [0.225, 0.0], atol=1e-12)


# --- Never negative -----------------------------------------------------------------------------


def assert_never_negative(metrics: dict[str, Any]) -> None:
    regret, optimum = metrics["policy_regret"], metrics["optimal_return"]
    assert (regret >= -1e-9 * np.maximum(1.0, optimum)).all()


def random_tables(rng: np.random.Generator, num_arms: int) -> list[Tabulated]:
    curves = []
    for _ in range(num_arms):
        rises = -np.sort(-rng.random(int(rng.integers(1, 40))))
        curves.append(Tabulated(tuple((rises.cumsum() / rises.sum() * rng.random()).tolist())))
    return curves


INSTANCES: dict[str, Any] = {
    "random_concave": "random_concave",
    "tables": random_tables,
    "lower_bound": {"name": "lower_bound", "printing": "appendix"},
    "round_robin_trap": "round_robin_trap",
}


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize(("num_arms", "horizon"), [(2, 7), (5, 60), (10, 211)])
def test_random_policies_never_beat_the_optimum_of_improving_arms(
    instance: str, num_arms: int, horizon: int
) -> None:
    count = 128
    envs = VectorPolicyRegret(
        gym.make_vec(
            IMPROVING, count, instance=INSTANCES[instance], num_arms=num_arms, horizon=horizon
        )
    )
    envs.reset(seed=0)
    rng = np.random.default_rng(num_arms)
    # A third of the rows play at random, a third stick to an arm, a third switch once.
    switch = rng.integers(0, horizon + 1, count)
    switch[-(count // 3) :] = horizon
    arms = rng.integers(0, num_arms, (2, count))
    for step in range(horizon):
        actions = np.where(step < switch, arms[0], arms[1])
        actions[: count // 3] = rng.integers(0, num_arms, count // 3)
        infos = envs.step(actions)[4]
        if step % 8 == 0:
            assert_never_negative(envs.metrics())
    assert_never_negative(infos)
    assert infos["policy_regret"].max() > 0
    # The sticky rows on the best arm have none.
    assert infos["policy_regret"].min() == pytest.approx(0.0, abs=1e-12 * horizon)


@pytest.mark.parametrize("instance", INSTANCES)
def test_the_oracle_and_algorithm_1_never_beat_it_either(instance: str) -> None:
    for agent_of in (OracleArm, lambda env: AnytimeImproving()):
        envs = VectorPolicyRegret(
            gym.make_vec(IMPROVING, 64, instance=INSTANCES[instance], num_arms=4, horizon=300)
        )
        agent = agent_of(envs)
        observation, _ = envs.reset(seed=1)
        for _ in range(300):
            observation, _, _, _, infos = envs.step(agent.act(observation))
        assert_never_negative(infos)


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
@pytest.mark.parametrize(
    ("num_users", "num_arms", "capacity", "horizon"),
    [(1, 2, 1, 9), (2, 4, 1, 11), (5, 5, 1, 13), (3, 7, 1, 30), (5, 3, 2, 17), (4, 3, 5, 12)],
)
def test_no_random_policy_beats_the_benchmark_of_fixed_assignment_arms(
    num_users: int, num_arms: int, capacity: int, horizon: int, objective: str
) -> None:
    count = 64

    def draw(rng: np.random.Generator, users: int, arms: int) -> Gaussian:
        return fixed(rng.random(arms).tolist())

    envs = VectorPolicyRegret(
        gym.make_vec(
            EGAL,
            count,
            instance=draw,
            num_users=num_users,
            num_arms=num_arms,
            capacity=capacity,
            horizon=horizon,
            objective=objective,
        )
    )
    envs.reset(seed=0)
    envs.action_space.seed(0)
    slots = envs.unwrapped.optimal_slots()  # type: ignore[attr-defined]
    for step in range(horizon):
        actions = envs.action_space.sample()
        actions[: count // 2] = np.roll(slots[: count // 2], step, axis=1)  # rotation
        infos = envs.step(actions)[4]
        assert_never_negative(envs.metrics())
    np.testing.assert_allclose(infos["policy_regret"], infos["realized_regret"], atol=1e-12)
    assert infos["policy_regret"].max() > 0


def test_the_papers_regret_lies_below_the_mean_of_episodes() -> None:
    # T mu* / U - min_u E[S_u] <= E[T mu* / U - min_u S_u]: a minimum of expectations.
    env = PolicyRegret(gym.make(EGAL, instance="two_level", num_users=3, num_arms=6, horizon=200))
    agent = UniformRandom()
    users, regrets = [], []
    for seed in range(20):
        agent.reset(seed=seed)
        info = episode(env, agent, seed=seed)[2]
        users.append(info["expected_user_returns"])
        regrets.append(info["policy_regret"])
    of_expectations = info["optimal_return"] - np.mean(users, axis=0).min()
    assert of_expectations < np.mean(regrets)


# --- Under Stable-Baselines3's Monitor ----------------------------------------------------------

KEYWORDS = ("policy_regret", "competitive_ratio")


def factory(**kwargs: Any) -> Callable[[], gym.Env[Any, Any]]:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")

    def make() -> gym.Env[Any, Any]:
        env: gym.Env[Any, Any] = monitor.Monitor(improving(**kwargs), info_keywords=KEYWORDS)
        return env

    return make


def test_monitor_outside_logs_the_keys() -> None:
    env = factory(horizon=2)()
    for _ in range(3):
        info = play(env, [0, 1])[-1]
        logged = info["episode"]
        assert logged["policy_regret"] == info["policy_regret"] == pytest.approx(0.475, rel=1e-12)
        assert logged["competitive_ratio"] == info["competitive_ratio"]


def test_monitor_outside_writes_the_keys_to_its_file(tmp_path: Any) -> None:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(improving(horizon=2), str(tmp_path / "log"), info_keywords=KEYWORDS)
    for actions in ([0, 0], [0, 1]):
        play(env, actions)
    env.close()
    lines = (tmp_path / "log.monitor.csv").read_text("utf-8").splitlines()
    assert lines[1] == "r,l,t,policy_regret,competitive_ratio"
    rows = [line.split(",") for line in lines[2:]]
    assert [float(row[3]) for row in rows] == pytest.approx([0.0, 0.475], abs=1e-12)
    assert [float(row[4]) for row in rows] == pytest.approx([1.0, 0.75 / 0.275], rel=1e-12)


def test_monitor_inside_a_factory_of_a_vec_env() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    envs = vec_env.DummyVecEnv([factory(horizon=2)] * 2)
    envs.reset()
    for _ in range(2):
        envs.step(np.array([0, 0]))
        _, _, dones, infos = envs.step(np.array([0, 1]))
        assert dones.all()
        regrets = [info["episode"]["policy_regret"] for info in infos]
        assert regrets == pytest.approx([0.0, 0.475], abs=1e-12)


def test_monitor_inside_the_wrapper_cannot_log_the_keys() -> None:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = PolicyRegret(
        monitor.Monitor(gym.make(IMPROVING, instance=EARLY_LATE, horizon=2), info_keywords=KEYWORDS)
    )
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(KeyError, match="policy_regret"):
        env.step(0)


def test_make_vec_env_of_stable_baselines_puts_monitor_inside_and_fails() -> None:
    util = pytest.importorskip("stable_baselines3.common.env_util")
    envs = util.make_vec_env(
        IMPROVING,
        n_envs=2,
        # It asks for rgb_array by itself, of which Gymnasium warns where it is not offered.
        env_kwargs={"instance": EARLY_LATE, "horizon": 1, "render_mode": None},
        wrapper_class=PolicyRegret,
        monitor_kwargs={"info_keywords": KEYWORDS},
    )
    envs.reset()
    with pytest.raises(KeyError, match="policy_regret"):
        envs.step(np.array([0, 1]))


def test_an_agent_of_the_paper_has_a_small_share_of_the_optimum_as_regret() -> None:
    # A sanity check of scale: EgalUCB on two levels, 0.8 and 0.5, loses far less than uniform.
    regrets = {}
    for name, agent in (("ucb", EgalUCB()), ("uniform", UniformRandom())):
        agent.reset(seed=0)
        env = PolicyRegret(
            gym.make(EGAL, instance="two_level", num_users=3, num_arms=6, horizon=6000)
        )
        regrets[name] = episode(env, agent, seed=0)[2]["policy_regret"]
    uniform = 6000 * (0.8 - 0.65)
    assert regrets["uniform"] == pytest.approx(uniform, rel=0.1)
    assert regrets["ucb"] < uniform / 3
