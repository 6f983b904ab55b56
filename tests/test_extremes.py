"""Sizes, lengths and rewards at the edge of what can be asked for."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from helpers_envs import every_id
from helpers_names import EGAL, IMPROVING, Floats, Kwargs
from helpers_play import Player, assert_identical
from numpy.testing import assert_array_equal

from gym_fairbandits import agents, curves, optimum
from gym_fairbandits.agents import AnytimeImproving, EgalUCB
from gym_fairbandits.arms import Gaussian
from gym_fairbandits.wrappers import FairnessMetrics, PolicyRegret

HUGE = 10**7  # the longest horizon
MANY = 10**5  # the most arms


def constant(*values: float) -> list[curves.Curve]:
    return [curves.Constant(value) for value in values]


def deterministic(*means: float) -> Gaussian:
    return Gaussian(means, 0.0)


def last_info(env: Any, actions: list[Any]) -> Kwargs:
    """Play an episode and return the info of its end."""
    env.reset(seed=0)
    for action in actions:
        observation, _, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space
    assert terminated or truncated
    return dict(info)


# --- Sizes --------------------------------------------------------------------------------------


def test_one_arm_leaves_no_choice_and_no_regret() -> None:
    env = PolicyRegret(gym.make(IMPROVING, instance=[curves.LinearCap(1.0, 4)], horizon=4))
    info = last_info(env, [0] * 4)
    assert info["optimal_return"] == info["expected_return"] == 2.5
    assert (info["policy_regret"], info["competitive_ratio"]) == (0.0, 1.0)


def test_one_user_on_one_arm_has_no_choice_and_no_regret() -> None:
    arms = deterministic(0.75)
    env = PolicyRegret(gym.make(EGAL, instance=arms, num_users=1, horizon=4))
    info = last_info(env, [[0]] * 4)
    assert info["optimal_return"] == info["expected_return"] == 3.0
    assert info["policy_regret"] == 0.0
    assert optimum.max_min_assignment([0.75], 1, 4).lower == 3.0


def test_as_many_users_as_arms_must_rotate() -> None:
    arms = deterministic(1.0, 0.5, 0.0, 0.5)
    kwargs: Kwargs = {"instance": arms, "num_users": 4, "horizon": 4}
    turn = [[(user + step) % 4 for user in range(4)] for step in range(4)]
    info = last_info(PolicyRegret(gym.make(EGAL, **kwargs)), turn)
    assert info["optimal_return"] == info["expected_return"] == 2.0
    stay = last_info(PolicyRegret(gym.make(EGAL, **kwargs)), turn[:1] * 4)
    assert (stay["expected_return"], stay["policy_regret"]) == (0.0, 2.0)


@pytest.mark.parametrize("name", ["lower_bound", "round_robin_trap"])
def test_a_hundred_thousand_improving_arms(name: str) -> None:
    # The good arm is the last one and pays n / T in both.
    env: Any = gym.make(IMPROVING, instance=name, num_arms=MANY, horizon=HUGE)
    env.reset(seed=0)
    observation, reward, *_ = env.step(MANY - 1)
    assert observation in env.observation_space
    assert reward == pytest.approx(1e-7, rel=1e-12)
    assert env.unwrapped.optimal_arm() == MANY - 1
    assert env.unwrapped.optimal_return(HUGE) == pytest.approx((HUGE + 1) / 2, rel=1e-11)
    chosen = AnytimeImproving().act(observation)
    env.step(chosen)
    assert chosen != MANY - 1


def test_a_hundred_thousand_assignment_arms() -> None:
    env: Any = gym.make(EGAL, instance="two_level", num_arms=MANY, horizon=HUGE)
    observation, _ = env.reset(seed=0)
    agent = EgalUCB()
    for _ in range(3):
        action = agent.act(observation)
        observation, *_ = env.step(action)
        assert observation in env.observation_space
    assert observation["pulls"].sum() == 15
    assert env.unwrapped.optimal_return(HUGE) == pytest.approx(0.8 * HUGE, rel=1e-12)


def test_a_thousand_users_on_a_thousand_arms() -> None:
    env: Any = gym.make(EGAL, num_users=1000, num_arms=1000, horizon=3)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        observation, *_ = env.step(env.action_space.sample())
    assert observation["pulls"].tolist() == [3] * 1000
    mean = env.unwrapped.arms.means.mean()
    assert env.unwrapped.optimal_return() == pytest.approx(3 * mean, rel=1e-12)


# --- Lengths ------------------------------------------------------------------------------------


@every_id
def test_an_episode_of_one_step(env_id: str) -> None:
    env: Any = FairnessMetrics(PolicyRegret(gym.make(env_id, num_arms=6, horizon=1)))
    observation, _ = env.reset(seed=0)
    oracle: Any = agents.OracleArm(env) if env_id == IMPROVING else agents.OracleRotation(env)
    info = last_info(env, [oracle.act(observation)])
    if env_id == IMPROVING:
        assert info["policy_regret"] == 0.0
        assert info["min_pull_share"] == 0.0
    else:  # nobody can rotate in one step
        best = optimum.max_min_assignment(env.unwrapped.arms.means, 5, 1)
        assert info["expected_return"] == pytest.approx(best.lower, rel=1e-12)


@pytest.mark.parametrize("horizon", [HUGE, 2**53])
@every_id
def test_a_long_horizon_costs_neither_memory_nor_time(env_id: str, horizon: int) -> None:
    gym.make(env_id, horizon=3).reset(seed=0)  # whatever is imported or cached
    tracemalloc.start()
    env: Any = gym.make(env_id, horizon=horizon, horizon_known=True)
    env.reset(seed=0)
    player = Player(env.action_space)
    for _ in range(3):
        observation, *_ = env.step(player())
        assert observation in env.observation_space
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6
    assert observation["remaining"].tolist() == [horizon - 3]
    total = env.unwrapped.optimal_return(horizon)
    if env_id == EGAL:
        mean = np.sort(env.unwrapped.arms.means)[-5:].mean()
        assert total == pytest.approx(horizon * mean, rel=1e-12)
    else:
        potentials = [curve.asymptote for curve in env.unwrapped.curves]
        assert 0.9 * horizon * max(potentials) < total <= horizon * max(potentials)


def test_arms_that_decrease_have_no_exact_optimum_over_ten_million_steps() -> None:
    falling = [curves.Tabulated((0.5, 0.25)), curves.Constant(0.125)]
    env: Any = gym.make(IMPROVING, instance=falling, validate=False, horizon=HUGE)
    env.reset(seed=0)
    assert env.unwrapped.optimal_return(1000) == 0.5 + 999 * 0.25
    with pytest.raises(ValueError, match="`steps` must be at most 8388608 for 2 arms"):
        env.unwrapped.optimal_return(HUGE)


# --- Rewards ------------------------------------------------------------------------------------


@every_id
def test_without_noise_every_seed_plays_the_same(env_id: str) -> None:
    if env_id == IMPROVING:
        kwargs: Kwargs = {"instance": "early_vs_late", "noise_std": 0}
    else:
        kwargs = {"instance": deterministic(0.9, 0.1, 0.5), "num_users": 2}
    logs = []
    for seed in (1, 2):
        env = gym.make(env_id, horizon=5, **kwargs)
        env.reset(seed=seed)
        player = Player(env.action_space)
        logs.append([env.step(player()) for _ in range(5)])
    assert_identical(logs[0], logs[1])


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, -3.0, 1e20, -1e20, 1e-300])
def test_among_equal_arms_nothing_can_be_lost(value: float) -> None:
    ratio = 1.0 if value >= 0 else math.nan
    bandit = gym.make(IMPROVING, instance=constant(*[value] * 3), validate=False, horizon=6)
    info = last_info(PolicyRegret(bandit), [2, 0, 1, 1, 0, 2])
    assert info["policy_regret"] == pytest.approx(0, abs=1e-12 * abs(value))
    assert info["optimal_return"] == pytest.approx(6 * value, rel=1e-12)
    assert info["competitive_ratio"] == pytest.approx(ratio, rel=1e-12, nan_ok=True)

    env = gym.make(EGAL, instance=deterministic(*[value] * 3), num_users=2, horizon=6)
    info = last_info(FairnessMetrics(PolicyRegret(env)), [[2, 0], [1, 2]] * 3)
    assert info["policy_regret"] == pytest.approx(0, abs=1e-12 * abs(value))
    assert info["optimal_return"] == pytest.approx(6 * value, rel=1e-12)
    assert info["competitive_ratio"] == pytest.approx(ratio, rel=1e-12, nan_ok=True)
    assert info["user_gap"] == 0.0
    assert info["jain_index"] == pytest.approx(ratio, nan_ok=True)


def test_negative_rewards_have_regret_but_no_ratio() -> None:
    bandit = gym.make(IMPROVING, instance=constant(-3.0, -1.0), validate=False, horizon=2)
    info = last_info(PolicyRegret(bandit), [0, 1])
    assert (info["optimal_return"], info["expected_return"]) == (-2.0, -4.0)
    assert info["policy_regret"] == 2.0
    assert math.isnan(info["competitive_ratio"])

    env = gym.make(EGAL, instance=deterministic(-3.0, -1.0, -2.0), num_users=2, horizon=2)
    info = last_info(PolicyRegret(env), [[0, 1], [0, 1]])
    assert (info["optimal_return"], info["expected_return"]) == (-3.0, -6.0)
    assert info["policy_regret"] == 3.0


def test_next_to_nothing_of_a_huge_optimum_is_an_infinite_ratio() -> None:
    bandit = gym.make(IMPROVING, instance=constant(1e20, 1e-300), validate=False, horizon=2)
    info = last_info(PolicyRegret(bandit), [1, 1])
    assert info["competitive_ratio"] == math.inf
    assert info["policy_regret"] == 2e20


@pytest.mark.parametrize("value", [1e-320, 5e-324, 1e25, -1e25])
def test_huge_and_tiny_rewards_are_exact_and_within_the_space(value: float) -> None:
    for env_id, action in ((IMPROVING, 0), (EGAL, [0, 1])):
        if env_id == IMPROVING:
            kwargs: Kwargs = {"instance": constant(value, value), "validate": False}
        else:
            kwargs = {"instance": deterministic(value, value), "num_users": 2}
        for env in (
            gym.make(env_id, horizon=3, **kwargs),
            gym.make_vec(env_id, num_envs=1, horizon=3, **kwargs),
        ):
            env.reset(seed=0)
            played: Any = action
            if isinstance(env, gym.vector.VectorEnv):
                played = np.array([action])
            for _ in range(3):
                observation, reward, *_ = env.step(played)
                assert observation in env.observation_space
            assert np.ravel(observation["reward_sum"])[0] == value + value + value
            assert np.array(reward, dtype=float).item() == pytest.approx(value, rel=1e-14, abs=0)


def test_rewards_beyond_the_space_are_played_and_gymnasium_says_so() -> None:
    env: Any = gym.make(IMPROVING, instance=constant(1e31, 0.0), validate=False)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="not within the observation space"):
        _, reward, *_ = env.step(0)
    assert reward == 1e31
    assert env.unwrapped.optimal_return() == 1e31


@dataclass(frozen=True)
class Gap(curves.Curve):
    """Pays 0.5, and from pull ``first`` on what is no reward."""

    first: int
    paid: float
    asymptote: float = 0.5
    family: ClassVar[str] = "tests_gap"

    def evaluate(self, pulls: Floats) -> Floats:
        return np.where(pulls >= self.first, self.paid, 0.5)


@pytest.mark.parametrize("paid", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("first", [1, 3, 200])
def test_a_curve_that_pays_no_number_raises_when_it_is_played(first: int, paid: float) -> None:
    kwargs: Kwargs = {"instance": [curves.Constant(0.25), Gap(first, paid)], "validate": False}
    message = rf"arm 1 must pay finite rewards, got {paid} at pull {first} \(Gap"
    env: Any = gym.make(IMPROVING, **kwargs)
    env.reset(seed=0)
    for _ in range(first - 1):
        assert env.step(1)[1] == 0.5
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            env.step(1)
        assert env.unwrapped.steps == env.unwrapped.pulls[1] == first - 1
    with pytest.raises(ValueError, match="arm 1 must pay finite rewards"):
        env.unwrapped.next_expected_rewards()
    observation, reward, *_ = env.step(0)
    assert (reward, observation["pulls"].tolist()) == (0.25, [1, first - 1])

    envs: Any = gym.make_vec(IMPROVING, num_envs=2, **kwargs)
    envs.reset(seed=0)
    for _ in range(first - 1):
        assert envs.step(np.array([0, 1]))[1].tolist() == [0.25, 0.5]
    with pytest.raises(ValueError, match=message.replace("arm 1", "arm 1 of sub-environment 1")):
        envs.step(np.array([0, 1]))
    assert envs.steps.tolist() == [first - 1] * 2
    assert envs.step(np.array([0, 0]))[1].tolist() == [0.25, 0.25]


def test_a_curve_that_pays_no_number_has_no_optimum_and_is_refused_by_default() -> None:
    arms = [curves.Constant(0.25), Gap(3, math.nan)]
    with pytest.raises(ValueError, match=r"arm 1 leaves \[0, 1\]: f\(3\) = nan"):
        gym.make(IMPROVING, instance=arms)
    assert optimum.rested_optimum(arms, 2)[0] == 1.0
    message = r"arm 1 must pay finite rewards, got nan in 5 pulls \(Gap"
    with pytest.raises(ValueError, match=message):
        optimum.rested_optimum(arms, 5)
    env: Any = gym.make(IMPROVING, instance=arms, validate=False)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.unwrapped.optimal_return(5)


# --- Agents -------------------------------------------------------------------------------------

EDGES: dict[str, tuple[str, Kwargs]] = {
    "one_arm": (IMPROVING, {"num_arms": 1, "horizon": 4}),
    "one_step": (IMPROVING, {"num_arms": 3, "horizon": 1}),
    "nothing": (IMPROVING, {"instance": constant(0.0, 0.0, 0.0), "horizon": 7}),
    "negative": (
        IMPROVING,
        {"instance": constant(-3.0, -1.0), "validate": False, "horizon": 7},
    ),
    "huge_and_tiny": (
        IMPROVING,
        {"instance": constant(1e20, 1e-300, 0.0), "validate": False, "horizon": 7},
    ),
    "one_user": (EGAL, {"num_users": 1, "num_arms": 1, "horizon": 4}),
    "one_assignment": (EGAL, {"num_users": 2, "num_arms": 3, "horizon": 1}),
    "all_arms": (EGAL, {"num_users": 3, "num_arms": 3, "horizon": 7}),
    "no_reward": (EGAL, {"instance": deterministic(0, 0, 0), "num_users": 2, "horizon": 7}),
    "losses": (
        EGAL,
        {"instance": Gaussian([-3.0, -1.0, -2.0]), "num_users": 2, "horizon": 7},
    ),
    "large_and_small": (
        EGAL,
        {"instance": deterministic(1e20, 1e-300, 0.0), "num_users": 2, "horizon": 7},
    ),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_agent_plays_at_the_edge(edge: str) -> None:
    env_id, kwargs = EDGES[edge]
    for name in agents.ready(env_id):
        env: Any = PolicyRegret(gym.make(env_id, **kwargs))
        observation, _ = env.reset(seed=0)
        agent = agents.make(name, env=env)
        agent.reset(seed=0)
        for _ in range(kwargs["horizon"]):
            observation, _, _, truncated, info = env.step(agent.act(observation))
        assert truncated, name
        assert info["policy_regret"] >= -1e-9 * max(1.0, abs(info["optimal_return"])), name


# --- Batches ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"num_arms": 2, "noise_std": 0.5, "horizon": 2}),
        (EGAL, {"num_users": 2, "num_arms": 2, "horizon": 2}),
    ],
)
def test_sixty_five_thousand_rows_are_as_many_environments(env_id: str, kwargs: Kwargs) -> None:
    count = 65_536
    envs: Any = gym.make_vec(env_id, num_envs=count, **kwargs)
    observations, _ = envs.reset(seed=7)
    action = 1 if env_id == IMPROVING else [1, 0]
    actions = np.array([action] * count)
    steps = [envs.step(actions) for _ in range(2)]
    assert steps[1][3].all()
    regrets = envs.optimal_return() - envs.expected_return()
    assert regrets.shape == (count,)
    assert (regrets >= -1e-12).all()
    for row in (0, 1, 40_000, count - 1):
        env: Any = gym.make(env_id, **kwargs)
        env.reset(seed=7 + row)
        for observations, rewards, *_ in steps:
            observation, reward, *_ = env.step(action)
            assert reward == rewards[row]
            for key, part in observation.items():
                assert_array_equal(observations[key][row], part)
        assert env.unwrapped.optimal_return() - env.unwrapped.expected_return() == regrets[row]
