"""Fairness metrics of batches and among other wrappers."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers_agents import fixed
from helpers_fairness import ARM_KEYS, USER_KEYS, improving, keys_of
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, play
from helpers_vectors import every_mode
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.wrappers import FairnessMetrics, PolicyRegret, SequentialAssignment
from gym_fairbandits.wrappers.vector import FairnessMetrics as VectorFairnessMetrics
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Native vector environments -------------------------------------------------------------------


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


# --- Among other wrappers -------------------------------------------------------------------------


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


def test_other_environments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`env` must offer `potential_gaps` or .*, got .*CartPole"):
        FairnessMetrics(gym.make("CartPole-v1"))


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
