"""Agents for assignment that share arms, eliminate by phases or must know the horizon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import DATA, episode, fixed, phases
from helpers_egal import ANY_CAPACITY, ROTATING, SHARING, played
from helpers_names import EGAL
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import (
    Agent,
    CombinatorialUCB,
    EgalMOSS,
    EgalUCB,
    ExploreThenCommit,
    PhasedElimination,
    PoorestFirst,
    UniformRandom,
)
from gym_fairbandits.agents.base import total_steps

# --- Capacity -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "num_users", "capacity"),
    [
        *[(name, 6, capacity) for name in SHARING for capacity in (1, 2, 3, 6)],
        *[(name, users, 2) for name in ANY_CAPACITY for users in (3, 5, 7)],
        *[(name, 4, 9) for name in ANY_CAPACITY],
    ],
)
def test_agents_honour_the_capacity(name: str, num_users: int, capacity: int) -> None:
    env = gym.make(
        EGAL, instance="bernoulli", num_users=num_users, num_arms=7, capacity=capacity, horizon=300
    )
    agent = SHARING[name](capacity)
    actions, _, _ = episode(env, agent, seed=0)  # an illegal one would raise
    shares = [np.bincount(action).max() for action in actions]
    assert max(shares) == min(capacity, num_users)
    if not name.startswith("Phased"):  # which shares less in its early phases
        assert min(shares) == max(shares)
        assert {len(set(action)) for action in actions} == {-(-num_users // max(shares))}


@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize("name", ROTATING)
def test_users_earn_the_same_in_every_block(name: str, capacity: int) -> None:
    env = gym.make(EGAL, num_users=6, num_arms=8, capacity=capacity, horizon=300)
    actions, _, _ = episode(env, SHARING[name](capacity), seed=0)
    start = blocks = 0
    while start + (length := len(set(actions[start]))) <= 300:  # a block: as long as its arms
        block = np.array(actions[start : start + length])
        assert_array_equal(np.sort(block, axis=0), np.sort(block, axis=0)[:, [0] * 6])
        assert len(set(block[:, 0].tolist())) == length
        start, blocks = start + length, blocks + 1
        if start == 300:
            break
    assert blocks >= 50


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", SHARING)
def test_batched_act_is_the_act_of_each_row_at_capacity_3(name: str, known: bool) -> None:
    kwargs = {"num_users": 6, "num_arms": 8, "capacity": 3, "horizon": 55, "horizon_known": known}
    stream = phases(EGAL, **kwargs, instance="gaussian")
    _, _, observations = next(stream)
    together, alone = SHARING[name](3), [SHARING[name](3) for _ in range(4)]
    together.reset(seed=5)
    for i, agent in enumerate(alone):
        agent.reset(seed=5 + i)
    compared = 0
    try:
        while True:
            batch, *own = observations
            actions = together.act(batch)
            separate = [agent.act(single) for agent, single in zip(alone, own, strict=True)]
            assert_array_equal(actions, np.array(separate))
            compared += 1
            _, _, observations = stream.send(actions)
    except StopIteration:
        pass
    assert compared == 60


def test_stepwise_agents_by_hand_where_the_capacity_does_not_divide_the_users() -> None:
    # U = 3, C = 2: the best arm serves two users, the next one; after t steps user u has slot
    # (u - t) mod 3 of (best, best, next).
    kwargs = {"instance": fixed([1, 0.5]), "num_users": 3, "capacity": 2, "horizon": 6}
    actions, info = played(kwargs, CombinatorialUCB(sigma=0.0, capacity=2))
    assert actions == [[0, 0, 1], [1, 0, 0], [0, 1, 0]] * 2
    assert info["policy_regret"] == pytest.approx(0.0, abs=1e-12)
    # After two steps users have 2, 1.5 and 1.5.
    actions, info = played(kwargs, PoorestFirst(sigma=0.0, capacity=2))
    assert actions == [[0, 0, 1], [0, 1, 0], [1, 0, 0]] * 2
    assert info["policy_regret"] == pytest.approx(0.0, abs=1e-12)


# --- Phased elimination ---------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["log", "equal"])
def test_without_capacity_phased_elimination_is_egal_ucb(schedule: str) -> None:
    kwargs = {"num_users": 3, "num_arms": 5, "horizon": 200}
    expected, _ = played(kwargs, EgalUCB(c=2, sigma=0.5))
    agent = PhasedElimination(1, 200, schedule, c=2, sigma=0.5)
    assert played(kwargs, agent)[0] == expected


@pytest.mark.parametrize("schedule", ["log", "equal"])
def test_phases_with_too_few_arms_are_left_out(schedule: str) -> None:
    case = DATA["egal_capacity_cases"][1]
    assert (case["K"], case["U"], case["C"]) == (4, 6, 2)
    kwargs = {"instance": fixed(case["mu"]), "num_users": 6, "capacity": 2, "horizon": case["T"]}
    agent = PhasedElimination(2, case["T"], schedule)
    assert agent.phases(6, 4).tolist() == [2]
    assert played(kwargs, agent)[0] == case["assign"]


@pytest.mark.parametrize(
    ("schedule", "early"),
    [("log", 16), ("equal", 12)],  # ceil(ln 24) = 4 blocks of 4 steps, or 3 of 24 / 2
)
def test_phased_elimination_by_hand(schedule: str, early: int) -> None:
    kwargs = {
        "instance": fixed([0.25, 1, 0.75, 0.5]),
        "num_users": 4,
        "capacity": 2,
        "horizon": 24,
    }
    actions, info = played(kwargs, PhasedElimination(2, 24, schedule, kappa=1))
    # All arms first, then the two best, the groups of two users changing places.
    assert actions[:4] == [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]]
    assert actions[4:6] == [[1, 2, 3, 0], [0, 1, 2, 3]]  # by descending index from now on
    assert actions[early:] == [[1, 1, 2, 2], [2, 2, 1, 1]] * ((24 - early) // 2)
    # Sharing gives a user 0.875 per step, the early phase 0.625.
    assert info["policy_regret"] == pytest.approx(0.25 * early, rel=1e-12)


def test_phases_that_share_unevenly_treat_users_alike() -> None:
    # U = C = 4: phases of 4, 2, 2 and 1 arms. In the third, three users share one arm.
    kwargs = {"instance": fixed([0.4, 0.1, 0.3, 0.2]), "num_users": 4, "capacity": 4}
    agent = PhasedElimination(4, 40, "equal")
    assert agent.phases(4, 4).tolist() == [1, 2, 3, 4]
    assert agent.phase_starts(np.array([40, 47]), np.array([4, 2, 2, 1])).tolist() == [
        [0, 8, 18, 28],
        [0, 8, 18, 28],
    ]
    actions, info = played(kwargs | {"horizon": 40}, agent)
    assert actions[8:10] == [[0, 0, 2, 2], [2, 2, 0, 0]]
    assert actions[18:20] == [[0, 0, 0, 2], [2, 2, 2, 0]]
    assert actions[28:] == [[0, 0, 0, 0]] * 12
    assert_allclose(info["expected_user_returns"], 8 * 0.25 + 20 * 0.35 + 12 * 0.4, rtol=1e-12)


def test_eliminated_arms_never_return() -> None:
    # C = 3, K = 9, U = 6: 9, 5 (at least g = 3) and 3 arms stay.
    env = gym.make(EGAL, num_users=6, num_arms=9, capacity=3, horizon=600)
    agent = PhasedElimination(3, 600, kappa=5)
    starts = agent.phase_starts(np.array([600]), np.array([6, 3, 2]))[0].tolist()
    assert starts == [0, 6 * 32, 6 * 32 + 3 * 32]  # 5 ln 600 = 31.98
    actions, _, _ = episode(env, agent, seed=0)
    used = [set(np.ravel(actions[a:b])) for a, b in zip(starts, [*starts[1:], 600], strict=True)]
    assert len(used[0]) == 9
    assert len(used[1]) <= 5
    assert used[2] <= used[1]
    assert len(used[2]) <= 3


def test_equal_phases_lose_a_share_of_every_step_even_without_noise() -> None:
    # U = C = 2, means (1, 1/2, 1/2, 1/2): half of all steps pay at most 3/4, so T / 8 is lost.
    lost: dict[str, list[float]] = {"equal": [], "log": []}
    for horizon in (256, 1024):
        kwargs = {
            "instance": fixed([0.5, 0.5, 1, 0.5]),
            "num_users": 2,
            "capacity": 2,
            "horizon": horizon,
        }
        for schedule, values in lost.items():
            agent = PhasedElimination(2, horizon, schedule, kappa=1, sigma=0.1)
            values.append(played(kwargs, agent)[1]["policy_regret"] / horizon)
    assert min(lost["equal"]) >= 1 / 8
    assert lost["log"][0] < 1 / 16
    assert lost["log"][1] < lost["log"][0] / 3


def test_joining_late_phased_elimination_begins_its_schedule_there() -> None:
    kwargs: dict[str, Any] = {"num_users": 4, "num_arms": 5, "capacity": 2, "horizon": 60}
    env = gym.make(EGAL, instance=fixed([0.1, 0.9, 0.2, 0.8, 0.3]), horizon_known=True, **kwargs)
    other = UniformRandom(2)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        observation, *_ = env.step(other.act(observation))
    agent = PhasedElimination(2, schedule="equal")
    actions = []
    for _ in range(40):  # 5 blocks of 4 steps, then pairs
        actions.append(agent.act(observation).tolist())
        observation, *_ = env.step(actions[-1])
    assert [len(set(action)) for action in actions] == [4] * 20 + [2] * 20


# --- The horizon ----------------------------------------------------------------------------------

AWARE: dict[str, Callable[..., Agent]] = {
    "EgalMOSS": EgalMOSS,
    "ExploreThenCommit": ExploreThenCommit,
    "PhasedElimination": lambda horizon=None: PhasedElimination(2, horizon, kappa=1),
}
SHARED: dict[str, Any] = {"num_users": 4, "num_arms": 6, "horizon": 90}


def sized(name: str) -> dict[str, Any]:
    return SHARED | ({"capacity": 2} if name == "PhasedElimination" else {})


@pytest.mark.parametrize("name", AWARE)
def test_a_horizon_seen_is_as_good_as_one_told(name: str) -> None:
    told, _ = played(sized(name), AWARE[name](horizon=90))
    read, _ = played(sized(name) | {"horizon_known": True}, AWARE[name]())
    assert read == told
    # What is seen decides, and the episode's length does matter.
    assert played(sized(name) | {"horizon_known": True}, AWARE[name](horizon=7))[0] == told
    longer, _ = played(sized(name), AWARE[name](horizon=90_000))
    assert longer != told


@pytest.mark.parametrize("name", AWARE)
def test_without_a_horizon_there_is_no_action(name: str) -> None:
    observation, _ = gym.make(EGAL, **sized(name)).reset(seed=0)
    with pytest.raises(ValueError, match="`horizon` must be given where the observation does not"):
        AWARE[name]().act(observation)


@pytest.mark.parametrize("name", AWARE)
def test_an_episode_longer_than_the_horizon_is_named(name: str) -> None:
    agent = AWARE[name](horizon=8)
    env = gym.make(EGAL, **sized(name))
    observation, _ = env.reset(seed=0)
    other = UniformRandom(2 if name == "PhasedElimination" else 1)
    for _ in range(12):
        observation, *_ = env.step(other.act(observation))
    with pytest.raises(ValueError, match="`horizon` must be the number of steps of the episode, g"):
        agent.act(observation)


@pytest.mark.parametrize("name", AWARE)
def test_vector_environments_ask_once_more_at_the_end(name: str) -> None:
    envs = gym.make_vec(EGAL, 2, **sized(name) | {"horizon": 8})
    agent = AWARE[name](horizon=8)
    observation, _ = envs.reset(seed=0)
    ends = 0
    for _ in range(27):
        observation, _, _, truncations, _ = envs.step(agent.act(observation))
        ends += int(truncations.all())
    assert ends == 3


def test_total_steps_of_an_observation() -> None:
    steps = np.array([3, 8])
    assert total_steps({"pulls": steps}, steps, 8).tolist() == [8, 8]
    assert total_steps({"remaining": np.array([[5], [0]])}, steps, None).tolist() == [8, 8]
    with pytest.raises(ValueError, match="got 7 and an observation after 8 steps"):
        total_steps({"pulls": steps}, steps, 7)
