"""Policy regret among other wrappers, of batches, and under Stable-Baselines3's Monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import DictInfoToList
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorRecordEpisodeStatistics
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, KEYS, improving, play
from helpers_vectors import RECENT, every_mode
from numpy.testing import assert_array_equal

from gym_fairbandits.envs import ImprovingBanditEnv
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Among other wrappers -------------------------------------------------------------------------


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
        if mode != AutoresetMode.SAME_STEP or RECENT:  # it drops a reward there
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


# --- Refusals -------------------------------------------------------------------------------------


def test_environments_without_an_optimum_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`env` must offer `optimal_return`, got .*CartPole"):
        PolicyRegret(gym.make("CartPole-v1"))


# --- Native vector environments -------------------------------------------------------------------


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


# --- Under Stable-Baselines3's Monitor ------------------------------------------------------------

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
