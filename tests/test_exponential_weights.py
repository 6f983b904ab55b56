"""Exp3 and Rexp3 against weights worked by hand, exact expectations and plain histories."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from helpers_histories import History, observed, repeated, tell, watched
from numpy.testing import assert_allclose
from scipy.stats import chisquare

from gym_fairbandits.agents import Exp3, Rexp3
from gym_fairbandits.agents.exponential import exp3_gamma, exp3_probabilities


def test_the_mixing_of_exp3_by_hand() -> None:
    expected = [1.0, math.sqrt(2 * math.log(2) / ((math.e - 1) * 1000))]
    assert_allclose(exp3_gamma(2, np.array([0.5, 1000.0])), expected, rtol=1e-14)
    assert exp3_gamma(2, np.array([1000]))[0] == pytest.approx(0.0284, abs=5e-5)
    assert exp3_gamma(1, np.array([10])).tolist() == [0.0]


def test_the_probabilities_of_exp3_by_hand() -> None:
    # Weights 1, 2, 1 and gamma = 0.3: 0.7 / 4 + 0.1 and 0.7 / 2 + 0.1.
    log_weights = np.array([[0.0, math.log(2), 0.0], [1000.0, 1000 + math.log(2), 1000.0]])
    probabilities = exp3_probabilities(log_weights, np.array([0.3, 0.3]))
    assert_allclose(probabilities, [[0.275, 0.45, 0.275]] * 2, rtol=1e-12)


def test_two_steps_of_exp3_by_hand() -> None:
    # K = 2, gamma = 0.2. Arm 0 (p = 1/2) pays 1: its weight becomes exp(0.2 / (2 / 2)) = e^0.2.
    # Then arm 1, with p = 1 - 0.5399 = 0.4601, pays 0.5: exp(0.2 * 0.5 / (2 p)).
    agent = Exp3(0.2)
    tell(agent, [(0, 1.0)], 2)
    assert_allclose(agent._log_weights, [[0.2, 0.0]], rtol=1e-14)
    first = 0.8 * math.exp(0.2) / (1 + math.exp(0.2)) + 0.1
    assert first == pytest.approx(0.53987, abs=1e-5)
    tell(agent, [], 2)
    tell(agent, [(0, 1.0), (1, 0.5)], 2)
    assert_allclose(agent._log_weights, [[0.2, 0.05 / (1 - first)]], rtol=1e-13)


def test_estimates_of_exp3_are_unbiased() -> None:
    # The expected growth of ln w_j is gamma x_j / K, whatever the weights: summed over the arms
    # that may be drawn, each with its probability.
    pays, gamma, past = [0.9, 0.1, 0.4], 0.3, [(0, 0.5), (2, 1.0), (2, 0.7), (1, 0.2)]
    agent = Exp3(gamma)
    tell(agent, past, 3)
    before = agent._log_weights.copy()
    expected = np.zeros(3)
    for arm, chance in enumerate(exp3_probabilities(before, np.array([gamma]))[0].tolist()):
        branch = copy.deepcopy(agent)
        branch.act(repeated(observed([*past, (arm, pays[arm])], 3), 1))
        expected += chance * (branch._log_weights - before)[0]
    assert_allclose(expected, gamma * np.array(pays) / 3, rtol=1e-12)


def exact_weights(history: History, gamma: float) -> list[float]:
    """Return the weights of Exp3 for four arms, as they are printed."""
    weights = [1.0] * 4
    for arm, reward in history:
        chance = (1 - gamma) * weights[arm] / sum(weights) + gamma / 4
        weights[arm] *= math.exp(gamma * reward / (chance * 4))
    return weights


def drawn_from(weights: list[float], gamma: float, uniform: float) -> int:
    """Return the arm at which the cumulated probabilities pass a uniform number."""
    chances = [(1 - gamma) * weight / sum(weights) + gamma / 4 for weight in weights]
    return sum(uniform >= sum(chances[: arm + 1]) for arm in range(3))


def test_exp3_follows_its_formula_over_whole_episodes() -> None:
    agent = Exp3(0.25)
    agent.reset(seed=40)
    uniforms = [np.random.default_rng(40 + row).random(150).tolist() for row in range(3)]
    for histories, actions in watched(agent):
        for row, history in enumerate(histories):
            weights = exact_weights(history, 0.25)
            shares = np.exp(agent._log_weights[row] - agent._log_weights[row].max())
            assert_allclose(shares, np.array(weights) / max(weights), rtol=1e-9)
            assert actions[row] == drawn_from(weights, 0.25, uniforms[row][len(history)])


@pytest.mark.parametrize("batch", [1, 7, 50, 1000])
def test_rexp3_is_exp3_on_the_running_batch(batch: int) -> None:
    agent = Rexp3(batch=batch, gamma=0.25)
    agent.reset(seed=40)
    uniforms = [np.random.default_rng(40 + row).random(150).tolist() for row in range(3)]
    for histories, actions in watched(agent):
        for row, history in enumerate(histories):
            running = history[len(history) // batch * batch :]
            weights = exact_weights(running, 0.25)
            assert actions[row] == drawn_from(weights, 0.25, uniforms[row][len(history)])


def test_exp3_draws_each_arm_as_often_as_it_says() -> None:
    agent, history = Exp3(0.2), [(0, 1.0), (2, 0.5), (2, 1.0), (1, 0.1)]
    agent.reset(seed=0)
    actions = tell(agent, history, 4, rows=5000)
    chances = exp3_probabilities(agent._log_weights[:1], np.array([0.2]))[0]
    assert chances.max() > 1.2 * chances.min()
    assert chisquare(np.bincount(actions, minlength=4), chances * 5000).pvalue > 1e-3


def test_no_weight_of_exp3_overflows() -> None:
    agent = Exp3(1.0)
    history = [(1, 300.0)] * 40
    tell(agent, history, 2)
    assert agent._log_weights.max() > 1e4
    probabilities = exp3_probabilities(agent._log_weights, np.array([0.5]))
    assert_allclose(probabilities, [[0.25, 0.75]], rtol=1e-14)
