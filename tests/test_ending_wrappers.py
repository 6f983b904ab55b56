"""What holds of every wrapper that reports an account of an episode when it ends."""

from __future__ import annotations

import copy
import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from helpers_external import KEY as EXTERNAL
from helpers_fairness import ARM_KEYS, USER_KEYS
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, KEYS, play
from helpers_vectors import every_mode
from numpy.testing import assert_array_equal

from gym_fairbandits import wrappers

# By name: the keys on improving arms and on assignments, and the arguments that a spec records.
REPORTS: dict[str, tuple[set[str], set[str], dict[str, Any]]] = {
    "PolicyRegret": (KEYS, KEYS | {"expected_user_returns"}, {"benchmark": "paper"}),
    "FairnessMetrics": (ARM_KEYS, USER_KEYS, {}),
    "ExternalRegret": ({EXTERNAL}, {EXTERNAL}, {}),
}
every_wrapper = pytest.mark.parametrize("name", REPORTS)

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "improving": (IMPROVING, {"num_arms": 3, "horizon": 5}),
    "many_noisy_arms": (IMPROVING, {"num_arms": 21, "horizon": 6, "noise_std": 0.2}),
    "known": (IMPROVING, {"num_arms": 3, "horizon": 4, "horizon_known": True}),
    "limited": (IMPROVING, {"num_arms": 3, "horizon": 90, "max_episode_steps": 4}),
    "one_step": (IMPROVING, {"num_arms": 3, "horizon": 1}),
    "egal": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 5}),
    "egal_negative": (EGAL, {"instance": "gaussian", "num_users": 2, "horizon": 7}),
    "egal_shared": (EGAL, {"num_users": 11, "num_arms": 7, "capacity": 2, "horizon": 5}),
    "egal_mean": (EGAL, {"num_users": 3, "objective": "utilitarian", "horizon": 5}),
    "egal_limited": (
        EGAL,
        {"num_users": 3, "horizon": 6, "horizon_known": True, "max_episode_steps": 4},
    ),
}


@every_mode
@every_wrapper
@pytest.mark.parametrize("case", CASES)
def test_the_vector_wrapper_equals_sync_of_wrapped_environments(
    case: str, name: str, mode: AutoresetMode
) -> None:
    env_id, kwargs = CASES[case]
    scalar, vector = getattr(wrappers, name), getattr(wrappers.vector, name)
    of_arms, of_users, _ = REPORTS[name]
    keys = of_users if env_id == EGAL else of_arms
    count = 4
    native = vector(gym.make_vec(env_id, count, autoreset_mode=mode, **kwargs))
    sync: Any = SyncVectorEnv(
        [lambda: scalar(gym.make(env_id, **kwargs))] * count, autoreset_mode=mode
    )
    native.reset(seed=20)
    sync.reset(seed=20)
    native.action_space.seed(1)
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = []
    ended = 0
    for step in range(40):
        if mode != AutoresetMode.SAME_STEP and step in (2, 9):
            mask = np.arange(count) % 2 == step % 2  # rows get out of step
            for envs in (native, sync):
                envs.reset(options={"reset_mask": mask.copy()})
        actions = native.action_space.sample()
        one, other = native.step(actions), sync.step(actions)
        done = one[2] | one[3]
        assert_array_equal(other[2] | other[3], done)
        mine, theirs = one[4], other[4]
        if mode == AutoresetMode.SAME_STEP:
            theirs = theirs.get("final_info", {})
        for key in keys:
            assert (key in mine) == (key in theirs) == done.any()
            if done.any():
                assert mine[key].dtype == np.float64
                assert_array_equal(mine[f"_{key}"], done)
                assert_array_equal(theirs[f"_{key}"], done)
                assert_array_equal(mine[key], theirs[key], strict=True)
                assert_array_equal(native.metrics()[key][done], mine[key][done])
            if mode != AutoresetMode.SAME_STEP:
                rows = [env.get_wrapper_attr("metrics")()[key] for env in sync.envs]
                assert_array_equal(native.metrics()[key], np.array(rows))
        kept.append((mine, copy.deepcopy(mine)))
        ended += int(done.sum())
        if mode == AutoresetMode.DISABLED and done.any():
            for envs in (native, sync):
                envs.reset(options={"reset_mask": done.copy()})
    assert ended >= 3 * count
    for now, then in kept:  # nothing that was returned has been overwritten
        for key in set(then) & keys:
            assert_array_equal(now[key], then[key])


@every_wrapper
def test_the_wrapper_is_rebuilt_from_the_json_of_a_spec(name: str) -> None:
    curves = [curve.to_dict() for curve in EARLY_LATE]
    env = getattr(wrappers, name)(gym.make(IMPROVING, instance=curves, horizon=3))
    assert env.spec is not None
    text = env.spec.to_json()
    assert json.loads(text)["additional_wrappers"][0]["kwargs"] == REPORTS[name][2]
    again = gym.make(EnvSpec.from_json(text))
    told = play(again, [1, 0, 1])[-1]
    assert set(told) == REPORTS[name][0]
    assert told == play(env, [1, 0, 1])[-1]


@every_wrapper
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_sync_and_async_are_refused_with_what_to_do_instead(kind: Any, name: str) -> None:
    envs = kind([lambda: gym.make(IMPROVING, horizon=2)] * 2)
    told = (
        rf"native vector environment of gym_fairbandits, got {kind.__name__}.*; wrap its "
        r"sub-environments instead, for example with `gym.make_vec\(..., vectorization_mode='sync',"
        rf" wrappers=\[{name}\]\)` and the scalar `gym_fairbandits.wrappers.{name}`"
    )
    try:
        with pytest.raises(TypeError, match=told):
            getattr(wrappers.vector, name)(envs)
        envs.reset(seed=0)
        assert len(envs.step(np.array([0, 1]))) == 5  # still usable
    finally:
        envs.close()


@every_wrapper
def test_what_the_refusal_advises_works(name: str) -> None:
    scalar = getattr(wrappers, name)
    settings: dict[str, Any] = {"instance": EARLY_LATE, "horizon": 2}
    envs = gym.make_vec(
        IMPROVING, num_envs=2, vectorization_mode="sync", wrappers=[scalar], **settings
    )
    envs.reset(seed=0)
    envs.step(np.array([0, 0]))
    infos = envs.step(np.array([0, 1]))[4]
    for row, actions in enumerate(([0, 0], [0, 1])):
        alone = play(scalar(gym.make(IMPROVING, **settings)), actions)[-1]
        assert {key: infos[key][row] for key in REPORTS[name][0]} == alone


@every_wrapper
def test_other_vector_environments_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match="`env` must be a native vector environment of"):
        getattr(wrappers.vector, name)(gym.make_vec("CartPole-v1", num_envs=2))
