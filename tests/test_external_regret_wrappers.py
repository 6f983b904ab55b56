"""External regret of batches, among other wrappers, and in evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import Autoreset
from helpers_agents import fixed
from helpers_external import KEY, improving
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, play
from helpers_vectors import every_mode
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import FixedArm, UniformRandom
from gym_fairbandits.evaluation import compare, evaluate
from gym_fairbandits.wrappers import (
    ExternalRegret,
    FairnessMetrics,
    PolicyRegret,
    SequentialAssignment,
)
from gym_fairbandits.wrappers.vector import ExternalRegret as VectorExternalRegret
from gym_fairbandits.wrappers.vector import FairnessMetrics as VectorFairnessMetrics
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Native vector environments -------------------------------------------------------------------


def test_the_account_of_an_episode_that_same_step_has_already_reset() -> None:
    settings: dict[str, Any] = {"horizon": 2, "autoreset_mode": "SameStep"}
    envs = VectorExternalRegret(gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, **settings))
    envs.reset(seed=0)
    envs.step(np.array([0, 1]))
    infos = envs.step(np.array([0, 1]))[4]
    assert_allclose(infos[KEY], [0.0, 0.425], atol=1e-12)
    assert_array_equal(envs.metrics()[KEY], infos[KEY])
    envs.step(np.array([1, 0]))  # the first step of the next episodes
    assert_allclose(envs.metrics()[KEY], [0.225, 0.0], atol=1e-12)
    envs.step(np.array([0, 0]))
    envs.reset(options={"reset_mask": np.array([True, False])})
    # Row 1 was reset by the step before: after another call it answers for its new episode.
    assert envs.metrics()[KEY].tolist() == [0.0, 0.0]
    envs.step(np.array([0, 1]))
    assert_allclose(envs.metrics()[KEY], [0.0, 0.225], atol=1e-12)


def test_rows_that_disabled_refuses_to_step_keep_their_account() -> None:
    settings: dict[str, Any] = {"horizon": 1, "autoreset_mode": "Disabled"}
    envs = VectorExternalRegret(gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, **settings))
    envs.reset(seed=0)
    infos = envs.step(np.array([0, 1]))[4]
    with pytest.raises(ResetNeeded, match=r"sub-environments \[0, 1\] have ended"):
        envs.step(np.array([0, 1]))
    assert_array_equal(envs.metrics()[KEY], infos[KEY])
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.metrics()[KEY].tolist() == [0.0, infos[KEY][1]]


# --- Among other wrappers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", list(permutations((PolicyRegret, FairnessMetrics, ExternalRegret)))
)
def test_beside_the_other_wrappers_in_any_order(order: Sequence[Any]) -> None:
    env = gym.make(IMPROVING, instance=EARLY_LATE, horizon=3)
    for wrapper in order:
        env = wrapper(env)
    for _ in range(2):
        info = play(env, [0, 1, 1])[-1]
        assert info[KEY] == pytest.approx(0.925, rel=1e-12)
        assert info["policy_regret"] == pytest.approx(1.25 - 0.325, rel=1e-12)
        assert info["min_pull_share"] == pytest.approx(1 / 3, rel=1e-12)


@every_mode
def test_the_vector_wrapper_beside_the_others(mode: AutoresetMode) -> None:
    vectors: Any = (VectorPolicyRegret, VectorFairnessMetrics, VectorExternalRegret)
    for order in permutations(vectors):
        envs: Any = gym.make_vec(IMPROVING, 2, instance=EARLY_LATE, horizon=2, autoreset_mode=mode)
        for wrapper in order:
            envs = wrapper(envs)
        envs.reset(seed=0)
        envs.step(np.array([0, 1]))
        infos = envs.step(np.array([0, 0]))[4]
        assert_allclose(infos[KEY], [0.0, 0.225], atol=1e-12)
        assert_allclose(infos["policy_regret"], [0.0, 0.475], atol=1e-12)
        assert infos["min_pull_share"].tolist() == [0.0, 0.5]
        assert infos[f"_{KEY}"].tolist() == [True, True]


def test_over_an_action_wrapper_whose_steps_are_shorter() -> None:
    env = ExternalRegret(
        SequentialAssignment(gym.make(EGAL, instance=fixed([1, 0.5, 0.25]), num_users=2, horizon=2))
    )
    infos = play(env, [0, 2, 2, 1])
    assert all(KEY not in info for info in infos[:-1])
    assert infos[-1][KEY] == pytest.approx(0.5, rel=1e-12)


def test_over_an_autoreset_wrapper() -> None:
    env = ExternalRegret(Autoreset(gym.make(IMPROVING, instance=EARLY_LATE, horizon=2)))
    infos = play(env, [1, 0, 0, 0, 0, 0, 1, 1])  # the third and sixth reset
    regrets = {step: info[KEY] for step, info in enumerate(infos) if KEY in info}
    assert regrets == pytest.approx({1: 0.225, 4: 0.0, 7: 0.425}, abs=1e-12)


def test_other_environments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`env` must offer `next_expected_rewards`, .*CartPole"):
        ExternalRegret(gym.make("CartPole-v1"))


def test_monitor_outside_logs_the_key() -> None:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(PolicyRegret(improving(horizon=2)), info_keywords=(KEY, "policy_regret"))
    info = play(env, [0, 1])[-1]
    assert info["episode"][KEY] == info[KEY] == pytest.approx(0.475, rel=1e-12)


# --- In evaluations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"num_arms": 4, "noise_std": 0.25, "horizon": 9}),
        (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 9}),
    ],
)
def test_evaluations_are_the_same_in_any_batch_or_wrapper(
    env_id: str, kwargs: dict[str, Any]
) -> None:
    asked = ("fairness", "external_regret")
    play_all = partial(
        evaluate, UniformRandom(), env_id, num_episodes=7, checkpoints=(2, 9), **kwargs
    )
    plain, expected = play_all(), play_all(metrics=asked)
    assert (expected.episodes[KEY] > 0).all()
    assert_array_equal(plain.regret_curves, expected.regret_curves)
    for metric, values in plain.episodes.items():
        assert_array_equal(expected.episodes[metric], values)
    for other in (
        play_all(metrics=asked[::-1]),
        play_all(metrics=iter([*asked, *asked]), num_envs=3),
        play_all(metrics=asked, wrappers=[gym.Wrapper], num_envs=4),
        play_all(metrics=asked, wrappers=[ExternalRegret]),
    ):
        assert_array_equal(other.regret_curves, expected.regret_curves)
        assert set(other.episodes) == set(expected.episodes)
        for metric, values in expected.episodes.items():
            assert_array_equal(other.episodes[metric], values)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_two_processes_give_the_numbers_of_one() -> None:
    play_all = partial(
        evaluate,
        UniformRandom(),
        EGAL,
        num_users=3,
        horizon=9,
        num_episodes=6,
        num_envs=3,
        metrics=("fairness", "external_regret"),
    )
    serial, parallel = play_all(), play_all(n_jobs=2)
    assert list(parallel.episodes) == list(serial.episodes)
    for metric, values in serial.episodes.items():
        assert_array_equal(parallel.episodes[metric], values)


def test_tables_show_external_regret_when_it_was_asked_for() -> None:
    settings: dict[str, Any] = {"instance": "early_vs_late", "horizon": 4, "num_episodes": 2}
    comparison = compare({"late": FixedArm(1)}, IMPROVING, metrics=["external_regret"], **settings)
    assert comparison.table().splitlines()[::2] == [
        "| policy | policy regret | competitive ratio (median) | external regret "
        "| max potential gap |",
        "| late | 1.50 [1.50, 1.50] | 7.00 [7.00, 7.00] | 0.75 [0.75, 0.75] | 0.90 [0.90, 0.90] |",
    ]
    assert KEY not in evaluate(FixedArm(1), IMPROVING, **settings).episodes
