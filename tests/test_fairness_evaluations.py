"""Fairness metrics in evaluations and their tables, when they are asked for."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gymnasium as gym
import pytest
from helpers_fairness import ARM_KEYS, USER_KEYS, keys_of
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import EgalUCB, RoundRobin
from gym_fairbandits.arms import Gaussian
from gym_fairbandits.evaluation import compare, evaluate
from gym_fairbandits.wrappers import FairnessMetrics, PolicyRegret

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
        "| policy | policy regret | competitive ratio (median) | expected min user return "
        "| expected user gap | expected jain index | expected user gini "
        "| realized min user return | realized user gap | realized jain index "
        "| realized user gini |"
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
