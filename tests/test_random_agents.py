"""Random agents: uniform draws, and a stream of their own for each row."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import SMALL, Observation, episode, row, seen
from helpers_names import EGAL, IMPROVING
from scipy.stats import chisquare

from gym_fairbandits.agents import Agent, EgalUCB, UniformRandom

random_envs = pytest.mark.parametrize("env_id", list(SMALL))


def draws(agent: Agent, observation: Observation, count: int = 12) -> list[Any]:
    return [np.asarray(agent.act(observation)).tolist() for _ in range(count)]


def first_batch(env_id: str, num_envs: int = 3) -> Observation:
    observation: Observation = gym.make_vec(env_id, num_envs, **SMALL[env_id]).reset(seed=0)[0]
    return observation


def by_row(drawn: list[Any]) -> list[list[Any]]:
    return [[step[i] for step in drawn] for i in range(len(drawn[0]))]


@random_envs
def test_a_seed_repeats_the_draws_and_none_lets_them_run_on(env_id: str) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=4)
    both = draws(agent, observation, 24)
    agent.reset(seed=4)
    assert draws(agent, observation) == both[:12]
    agent.reset()
    assert draws(agent, observation) == both[12:]
    agent.reset(seed=5)
    assert draws(agent, observation) != both[:12]


@random_envs
def test_rows_have_the_streams_of_consecutive_seeds(env_id: str) -> None:
    observation = first_batch(env_id)
    agent, single = UniformRandom(), UniformRandom()
    agent.reset(seed=4)
    rows = by_row(draws(agent, observation))
    for i in range(3):
        single.reset(seed=4 + i)
        assert draws(single, row(observation, i)) == rows[i]
    assert rows[0] != rows[1]


@random_envs
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_sequence_seeds_each_row_and_none_leaves_a_row_alone(env_id: str, kind: Any) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=0)
    running_on = by_row(draws(agent, observation, 24))[1][12:]
    agent.reset(seed=0)
    draws(agent, observation)
    seeds = [9, 9, 2] if kind is np.array else [9, None, 2]
    agent.reset(seed=kind(seeds))
    rows = by_row(draws(agent, observation))
    single = UniformRandom()
    for i, seed in enumerate(seeds):
        if seed is None:
            assert rows[i] == running_on
        else:
            single.reset(seed=seed)
            assert draws(single, row(observation, i)) == rows[i]


@random_envs
def test_a_mask_reseeds_its_rows_only(env_id: str) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = by_row(draws(agent, observation, 24))
    single = UniformRandom()
    for seed, expected in ((7, {1: 8, 2: 9}), ([20, 30, 40], {1: 30, 2: 40}), (None, {})):
        agent.reset(seed=0)
        draws(agent, observation)
        agent.reset(seed=seed, mask=np.array([False, True, True]))
        rows = by_row(draws(agent, observation))
        for i in range(3):
            if i in expected:
                single.reset(seed=expected[i])
                assert rows[i] == draws(single, row(observation, i))
            else:
                assert rows[i] == undisturbed[i][12:]


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, "`seed` must be at least 0, got -1"),
        (1.5, TypeError, "`seed` must be an integer, got 1.5"),
        (True, TypeError, "`seed` must be an integer, got True"),
        ("12", TypeError, "`seed` must be an integer, got '1'"),
        ([7, -1, 7], ValueError, "`seed` must be at least 0, got -1"),
        ([7, 2.0, 7], TypeError, "`seed` must be an integer, got 2.0"),
    ],
)
def test_a_wrong_seed_is_named_and_changes_no_stream(
    seed: Any, error: type[Exception], message: str
) -> None:
    observation = first_batch(IMPROVING)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = draws(agent, observation, 40)
    agent.reset(seed=0)
    assert draws(agent, observation, 20) == undisturbed[:20]
    with pytest.raises(error, match=message):
        agent.reset(seed=seed)
    assert draws(agent, observation, 20) == undisturbed[20:]


def test_seeds_and_mask_of_different_lengths_are_refused() -> None:
    observation = first_batch(IMPROVING)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = draws(agent, observation)
    agent.reset(seed=0)
    with pytest.raises(ValueError, match="`seed` must have an entry per row of `mask`, 3, got 2"):
        agent.reset(seed=[1, 2], mask=np.ones(3, dtype=np.bool_))
    assert draws(agent, observation) == undisturbed


def test_a_mask_forgets_the_running_block_of_its_rows_only() -> None:
    # Arm 3 is the best by far, but the running block does not have it.
    pulls = np.array([[2, 2, 0, 0]] * 2)
    observation = {
        "pulls": pulls,
        "reward_sum": np.zeros((2, 4)),
        "user_reward_sum": np.zeros((2, 2)),
    }
    agent = EgalUCB()
    assert agent.act(observation).tolist() == [[2, 3]] * 2
    observation["pulls"] = pulls + np.array([0, 0, 1, 1])
    observation["reward_sum"] = np.array([[50.0, 0.0, 0.0, 0.0]] * 2)
    agent.reset(mask=np.array([True, False]))
    assert agent.act(observation).tolist() == [[2, 0], [3, 2]]


@pytest.mark.parametrize("num_arms", [2, 7])
def test_random_arms_are_uniform(num_arms: int) -> None:
    env = gym.make(IMPROVING, num_arms=num_arms, horizon=4000)
    agent = UniformRandom()
    agent.reset(seed=1)
    arms, _, _ = episode(env, agent, seed=0)
    assert chisquare(np.bincount(arms, minlength=num_arms)).pvalue > 1e-3


def test_random_assignments_are_uniform_at_capacity_1() -> None:
    observation = seen([0] * 4, reward_sum=[0] * 4, user_reward_sum=[0] * 3)
    agent = UniformRandom()
    agent.reset(seed=1)
    counted = Counter(tuple(drawn) for drawn in draws(agent, observation, 4800))
    assert set(counted) == set(permutations(range(4), 3))
    assert chisquare(list(counted.values())).pvalue > 1e-3


def test_random_assignments_at_capacity_2_are_legal_and_reach_every_legal_one() -> None:
    env = gym.make(EGAL, num_users=3, num_arms=3, capacity=2)
    observation, _ = env.reset(seed=0)
    agent = UniformRandom(capacity=2)
    agent.reset(seed=1)
    counted = Counter(tuple(drawn) for drawn in draws(agent, observation, 3000))
    assert all(env.action_space.contains(np.array(drawn)) for drawn in counted)
    assert len(counted) == 3**3 - 3  # all but those with three users on one arm
