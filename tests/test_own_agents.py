"""Agents that users define: what they forget is named."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL, IMPROVING

from gym_fairbandits.agents import Agent
from gym_fairbandits.evaluation import EvaluationError, evaluate


class Answering(Agent):
    """Answers whatever it is told to."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def _act(self, observation: Any) -> Any:
        return self.answer


class Forgetful(Agent):
    """Has an ``__init__`` that leaves out that of `Agent`."""

    def __init__(self) -> None:
        self.arm = 0

    def _act(self, observation: Any) -> Any:
        return self._uniforms(len(observation["pulls"]), 1)[:, 0].astype(int)


@pytest.mark.parametrize("answer", [1, np.int64(1), np.zeros(()), [], [0, 1], None])
def test_an_action_per_row_is_asked_for_where_an_agent_gives_another_number(answer: Any) -> None:
    told = "must return an action per row, {}, got " + re.escape(repr(answer))
    observation, _ = gym.make(IMPROVING).reset(seed=0)
    with pytest.raises(ValueError, match=told.format(1)):
        Answering(answer).act(observation)
    observations, _ = gym.make_vec(IMPROVING, num_envs=3).reset(seed=0)
    with pytest.raises(ValueError, match=told.format(3)):
        Answering(answer).act(observations)
    # The message of a function that makes the same mistake.
    for policy in (Answering(answer), lambda seen: answer):
        with pytest.raises(EvaluationError, match="ValueError: a policy gets .*" + told.format(1)):
            evaluate(policy, IMPROVING, num_episodes=1)


def test_an_agent_may_answer_with_lists() -> None:
    observation, _ = gym.make(IMPROVING).reset(seed=0)
    assert Answering([3]).act(observation) == 3
    observation, _ = gym.make(EGAL, num_users=2).reset(seed=0)
    assert Answering([[3, 1]]).act(observation).tolist() == [3, 1]
    observations, _ = gym.make_vec(EGAL, num_envs=2, num_users=2).reset(seed=0)
    assert Answering([[3, 1], [0, 2]]).act(observations).tolist() == [[3, 1], [0, 2]]


def test_an_init_that_leaves_out_that_of_the_agent_is_named_at_once() -> None:
    told = r"`Forgetful.__init__` must call `super\(\).__init__\(\)`"
    observation, _ = gym.make(IMPROVING).reset(seed=0)
    with pytest.raises(TypeError, match=told):
        Forgetful().act(observation)
    with pytest.raises(TypeError, match=told):
        Forgetful().reset(seed=0)
    with pytest.raises(EvaluationError, match=told):
        evaluate(Forgetful(), IMPROVING, num_episodes=1)
