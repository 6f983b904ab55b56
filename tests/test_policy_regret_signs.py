"""Policy regret is never negative, and small for the agent of the paper."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import episode, fixed
from helpers_names import EGAL, IMPROVING

from gym_fairbandits.agents import AnytimeImproving, EgalUCB, OracleArm, UniformRandom
from gym_fairbandits.arms import Gaussian
from gym_fairbandits.curves import Tabulated
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Never negative -------------------------------------------------------------------------------


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


# --- Under Stable-Baselines3's Monitor ------------------------------------------------------------


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
