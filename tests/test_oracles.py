"""Oracles have no regret, in every kind of environment that can be asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from helpers_agents import build, episode, fixed
from helpers_names import EGAL, IMPROVING
from helpers_vectors import MODES

from gym_fairbandits.agents import Agent, OracleArm, OracleRotation, StaticOracle
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.curves import LinearCap
from gym_fairbandits.envs import ImprovingBanditEnv
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# Random instances all: the oracle must read each episode's own. U divides every length.
ORACLE_CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "arm": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40}),
    "arm_noisy": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40, "noise_std": 0.3}),
    "arm_known": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40, "horizon_known": True}),
    "arm_limited": (
        IMPROVING,
        "OracleArm",
        {"num_arms": 8, "horizon": 4000, "max_episode_steps": 24},
    ),
    "rotation": (EGAL, "OracleRotation", {"num_users": 4, "num_arms": 7, "horizon": 24}),
    "rotation_limited": (
        EGAL,
        "OracleRotation",
        {"num_users": 4, "num_arms": 7, "horizon": 60, "max_episode_steps": 24},
    ),
    "rotation_gaussian": (
        EGAL,
        "OracleRotation",
        {"instance": "gaussian", "num_users": 3, "num_arms": 4, "horizon": 24},
    ),
    "rotation_shared": (
        EGAL,
        "OracleRotation",
        {"num_users": 6, "num_arms": 5, "capacity": 2, "horizon": 24},
    ),
    "rotation_shared_unevenly": (
        EGAL,
        "OracleRotation",
        {"num_users": 4, "num_arms": 5, "capacity": 3, "horizon": 24},
    ),
    "rotation_in_one_arm": (
        EGAL,
        "OracleRotation",
        {"num_users": 3, "num_arms": 5, "capacity": 4, "horizon": 24},
    ),
    "static": (EGAL, "StaticOracle", {"num_users": 4, "num_arms": 7, "horizon": 24}),
    "static_shared": (
        EGAL,
        "StaticOracle",
        {"num_users": 5, "num_arms": 4, "capacity": 2, "horizon": 24},
    ),
}
EPISODES = 4
oracle_cases = pytest.mark.parametrize("case", ORACLE_CASES)


def static_regret(means: Any, steps: int, capacity: int, num_users: int) -> float:
    """Return T (mu* / U - mu_U): user u stays on the u-th best slot."""
    slots: list[float] = sorted(np.repeat(means, capacity).tolist(), reverse=True)[:num_users]
    return steps * (math.fsum(slots) / num_users - slots[-1])


def check_oracle(case: str, metrics: dict[str, Any], means: Any) -> None:
    _, name, kwargs = ORACLE_CASES[case]
    expected = 0.0
    if name == "StaticOracle":
        expected = static_regret(means, 24, kwargs.get("capacity", 1), kwargs["num_users"])
        assert expected > 0.1
    tolerance = 1e-12 * max(1.0, metrics["optimal_return"])
    assert metrics["policy_regret"] == pytest.approx(expected, abs=tolerance)
    assert metrics["optimal_return"] > 0


@pytest.mark.parametrize("wrapped", [True, False])
@oracle_cases
def test_oracles_in_a_single_environment(case: str, wrapped: bool) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    env = gym.make(env_id, **kwargs)
    oracle = build(env_id, name, PolicyRegret(env) if wrapped else env)
    watched = PolicyRegret(env)
    best = set()
    for number in range(EPISODES):
        actions, _, info = episode(watched, oracle, seed=3 if number == 0 else None)
        check_oracle(case, info, getattr(env.unwrapped, "arms", Bernoulli([0])).means)
        best.add(str(actions[0]))
    assert len(best) > 1 or case == "rotation_in_one_arm"  # the instances do differ


def test_the_oracle_of_an_unwrapped_environment() -> None:
    env = ImprovingBanditEnv(horizon=30)
    for seed in range(3):
        _, rewards, _ = episode(env, OracleArm(env), seed)
        assert math.fsum(rewards) == pytest.approx(env.optimal_return(30), rel=1e-12)


def crossing() -> list[LinearCap]:
    """Return arms of which the first is best up to 38 steps."""
    return [LinearCap(0.5, 2), LinearCap(1.0, 40)]


@pytest.mark.parametrize(
    "limited",
    [
        lambda: gym.make(IMPROVING, instance=crossing(), max_episode_steps=20),
        lambda: TimeLimit(gym.make(IMPROVING, instance=crossing()), 20),
        lambda: PolicyRegret(TimeLimit(gym.make(IMPROVING, instance=crossing()), 20)),
        lambda: TimeLimit(ImprovingBanditEnv(instance=crossing()), 20),
        lambda: gym.make(IMPROVING, instance=crossing(), horizon=20, max_episode_steps=1000),
        lambda: gym.make(IMPROVING, instance=crossing(), horizon=20),
    ],
    ids=["make", "outer", "inner", "unregistered", "horizon_first", "horizon"],
)
def test_the_oracle_is_best_for_the_length_that_ends_the_episode(
    limited: Callable[[], Any],
) -> None:
    env = limited()
    actions, _, _ = episode(env, OracleArm(env), seed=0)
    assert actions == [0] * 20


def test_the_oracle_arm_changes_with_the_steps_it_is_told() -> None:
    env = gym.make(IMPROVING, instance=crossing())
    observation, _ = env.reset(seed=0)
    # Rew_1(38) = 38 * 39 / 80 = 18.525 < Rew_0(38) = 18.75; Rew_1(39) = 19.5 > 19.25.
    assert OracleArm(env, steps=38).act(observation) == 0
    assert OracleArm(env, steps=39).act(observation) == 1
    assert OracleArm(env).act(observation) == 1


def test_oracles_read_an_instance_that_a_reset_pins() -> None:
    env = gym.make(IMPROVING, instance=crossing(), horizon=20)
    oracle = OracleArm(env)
    assert set(episode(env, oracle, seed=0)[0]) == {0}
    pinned = {"instance": crossing()[::-1]}
    assert set(episode(env, oracle, options=pinned)[0]) == {1}
    assert set(episode(env, oracle)[0]) == {0}
    egal = gym.make(EGAL, instance=fixed([0.9, 0.1, 0.5]), num_users=2, horizon=4)
    static = StaticOracle(egal)
    assert episode(egal, static, seed=0)[0][0] == [0, 2]
    assert episode(egal, static, options={"instance": fixed([0.1, 0.2, 0.3])})[0][0] == [2, 1]


def play_vector(envs: Any, agent: Agent, episodes: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield ``(row, info, means)`` of every ended episode of a vector env, from its infos."""
    mode = envs.metadata["autoreset_mode"]
    observation, _ = envs.reset(seed=3)
    ended = np.zeros(envs.num_envs, dtype=np.int64)
    while ended.min() < episodes:
        means = [arms.means.copy() for arms in of_rows(envs, "arms")]
        observation, _, terminations, truncations, infos = envs.step(agent.act(observation))
        done = terminations | truncations
        final = infos.get("final_info", infos)
        if "policy_regret" not in final:
            final = infos
        for i in np.flatnonzero(done).tolist():
            names = ("policy_regret", "optimal_return")
            yield i, {name: float(final[name][i]) for name in names}, (means or [None] * 9)[i]
        ended += done
        if mode == AutoresetMode.DISABLED and done.any():
            observation, _ = envs.reset(options={"reset_mask": done})


def of_rows(envs: Any, name: str) -> list[Any]:
    """Return an attribute of each environment of a vector env, [] if it has none."""
    if isinstance(envs.unwrapped, SyncVectorEnv):
        return [getattr(env.unwrapped, name) for env in envs.envs if hasattr(env.unwrapped, name)]
    return list(getattr(envs.unwrapped, name, []))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@oracle_cases
def test_oracles_in_native_vector_environments(case: str, mode: AutoresetMode) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = VectorPolicyRegret(gym.make_vec(env_id, num_envs=3, autoreset_mode=mode, **kwargs))
    counted = 0
    for _, metrics, means in play_vector(envs, build(env_id, name, envs), EPISODES):
        check_oracle(case, metrics, means)
        counted += 1
    assert counted == 3 * EPISODES


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@oracle_cases
def test_oracles_in_sync_vector_environments(case: str, mode: AutoresetMode) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = SyncVectorEnv(
        [lambda: PolicyRegret(gym.make(env_id, **kwargs))] * 3, autoreset_mode=mode
    )
    counted = 0
    for _, metrics, means in play_vector(envs, build(env_id, name, envs), EPISODES):
        check_oracle(case, metrics, means)
        counted += 1
    assert counted == 3 * EPISODES


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("case", ["arm", "arm_limited", "rotation", "static"])
def test_oracles_in_environments_that_make_vec_builds(case: str, vectorization: str) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs: Any = gym.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode=vectorization,
        wrappers=[PolicyRegret],
        **kwargs,
    )
    try:
        oracle = build(env_id, name, envs)
        observation, _ = envs.reset(seed=3)
        for step in range(kwargs.get("max_episode_steps", kwargs["horizon"])):
            assert (observation["pulls"].sum(axis=1) > 0).all() == (step > 0)
            observation, _, terminations, truncations, infos = envs.step(oracle.act(observation))
        assert (terminations | truncations).all()
        for i in range(2):
            info = {key: float(infos[key][i]) for key in ("policy_regret", "optimal_return")}
            if name != "StaticOracle":
                check_oracle(case, info, None)
            else:
                assert info["policy_regret"] > 0.1
    finally:
        envs.close()


def test_oracle_arm_in_an_async_environment_of_the_users_own() -> None:
    envs = AsyncVectorEnv(
        [lambda: PolicyRegret(gym.make(IMPROVING, instance=crossing(), max_episode_steps=20))] * 2
    )
    try:
        observation, _ = envs.reset(seed=0)
        assert OracleArm(envs).act(observation).tolist() == [0, 0]
    finally:
        envs.close()


@oracle_cases
def test_oracles_in_stable_baselines_dummy_vec_env(case: str) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = vec_env.DummyVecEnv([lambda: PolicyRegret(gym.make(env_id, **kwargs))] * 3)
    oracle = build(env_id, name, envs)
    envs.seed(3)
    observation = envs.reset()
    counted = 0
    while counted < 3 * EPISODES:
        means = [getattr(env.unwrapped, "arms", Bernoulli([0])).means for env in envs.envs]
        observation, _, dones, infos = envs.step(oracle.act(observation))
        for i in np.flatnonzero(dones).tolist():
            check_oracle(case, infos[i], means[i])
            counted += 1


def test_the_rotation_oracle_loses_little_when_its_last_round_is_cut_short() -> None:
    # U = 3 and T = 2, means 1, 3/4, 1/2: users get 1.5, 1.75 and 1.25 of the benchmark 1.5.
    env = PolicyRegret(gym.make(EGAL, instance=fixed([1, 0.5, 0.75]), num_users=3, horizon=2))
    actions, _, info = episode(env, OracleRotation(env), seed=0)
    assert actions == [[0, 2, 1], [1, 0, 2]]
    assert info["expected_user_returns"].tolist() == [1.5, 1.75, 1.25]
    assert info["policy_regret"] == pytest.approx(0.25, rel=1e-12)
