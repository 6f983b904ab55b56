"""Every environment plays alike in the vector environments of all libraries."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_envs import drawn_laws, drawn_mixture
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, assert_identical

VECTORISED: list[tuple[str, Kwargs]] = [
    (IMPROVING, {"horizon": 4, "noise_std": 0.5}),
    (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "horizon": 4, "horizon_known": True}),
    (EGAL, {"horizon": 4}),
    (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 2, "capacity": 2, "horizon": 4}),
]


def play_vector(envs: Any, steps: int = 12) -> list[Any]:
    player = Player(envs.single_action_space)
    log = [envs.reset(seed=6)]
    log += [envs.step(player.batch(envs.num_envs)) for _ in range(steps)]
    envs.close()
    return log


@pytest.mark.parametrize(("env_id", "kwargs"), VECTORISED)
def test_sync_and_native_vector_environments_agree(env_id: str, kwargs: Kwargs) -> None:
    native = gym.make_vec(env_id, num_envs=2, **kwargs)
    sync = gym.make_vec(env_id, num_envs=2, vectorization_mode="sync", **kwargs)
    assert isinstance(sync, gym.vector.SyncVectorEnv)
    assert sync.action_space == native.action_space
    assert sync.observation_space == native.observation_space
    assert_identical(play_vector(native), play_vector(sync))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize(("env_id", "kwargs"), VECTORISED)
def test_async_vector_environments_agree_too(env_id: str, kwargs: Kwargs, context: str) -> None:
    native = gym.make_vec(env_id, num_envs=2, **kwargs)
    parallel = gym.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": context},
        **kwargs,
    )
    assert isinstance(parallel, gym.vector.AsyncVectorEnv)
    assert_identical(play_vector(parallel), play_vector(native))


def follow_stable_baselines(vec_env: Any, kwargs: Kwargs) -> None:
    """Assert that an SB3 vector env plays the scalar episodes of seeds 20, 21, ..."""
    envs = [gym.make(IMPROVING, **kwargs) for _ in range(vec_env.num_envs)]
    vec_env.seed(20)
    observations = vec_env.reset()
    for row, env in enumerate(envs):
        start, _ = env.reset(seed=20 + row)
        for key, value in start.items():
            np.testing.assert_array_equal(observations[key][row], value)
    player = Player(envs[0].action_space)
    for step in range(1, 12):
        actions = player.batch(len(envs))
        observations, rewards, dones, infos = vec_env.step(actions)
        ends = step % kwargs["horizon"] == 0
        for row, env in enumerate(envs):
            observation: Any
            observation, reward, terminated, truncated, _ = env.step(actions[row])
            assert np.float32(rewards[row]) == np.float32(reward)  # SB3 narrows in one process
            assert dones[row] == (terminated or truncated) == ends
            if ends:
                assert infos[row]["TimeLimit.truncated"] == (not kwargs["horizon_known"])
                assert_identical(infos[row]["terminal_observation"], observation)
                observation, _ = env.reset()
            for key, value in observation.items():
                np.testing.assert_array_equal(observations[key][row], value)
    vec_env.close()


@pytest.mark.parametrize("horizon_known", [False, True])
def test_stable_baselines_dummy_vec_env_runs_improving_bandit(horizon_known: bool) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    kwargs: Kwargs = {"num_arms": 4, "horizon": 5, "noise_std": 0.5}
    kwargs["horizon_known"] = horizon_known
    follow_stable_baselines(
        vec_env.DummyVecEnv([lambda: gym.make(IMPROVING, **kwargs) for _ in range(2)]), kwargs
    )


@pytest.mark.slow
def test_stable_baselines_subproc_vec_env_runs_improving_bandit() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    kwargs: Kwargs = {
        "instance": drawn_mixture,
        "num_arms": 4,
        "horizon": 5,
        "noise_std": 0.5,
        "horizon_known": False,
    }
    name = f"gym_fairbandits:{IMPROVING}"  # the workers have not imported the package
    vec = vec_env.SubprocVecEnv(
        [lambda: gym.make(name, **kwargs) for _ in range(2)], start_method="spawn"
    )
    follow_stable_baselines(vec, kwargs)
