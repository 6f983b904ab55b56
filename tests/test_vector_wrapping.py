"""Native vector environments in Gymnasium's wrappers and make_vec."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import VectorizeMode
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from helpers_envs import drawn_laws, every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, assert_identical
from helpers_vectors import (
    DISABLED,
    NEXT_STEP,
    RECENT,
    SAME_STEP,
    every_mode,
    make_native,
    make_sync,
)

from gym_fairbandits.arms import Bernoulli, Gaussian
from gym_fairbandits.envs import (
    EgalAssignEnv,
    EgalAssignVectorEnv,
    ImprovingBanditEnv,
    ImprovingBanditVectorEnv,
)


@every_mode
@every_id
def test_episode_statistics_are_recorded(env_id: str, mode: AutoresetMode) -> None:
    kwargs: Kwargs = {"num_arms": 6, "horizon": 3}
    envs: Any = RecordEpisodeStatistics(make_native(env_id, 2, autoreset_mode=mode, **kwargs))
    plain = make_native(env_id, 2, autoreset_mode=mode, **kwargs)
    sync: Any = RecordEpisodeStatistics(make_sync(env_id, 2, mode, kwargs))
    player = Player(plain.single_action_space)
    for batch in (envs, plain, sync):
        batch.reset(seed=0)
    totals = np.zeros(2)
    episodes = 0
    for _ in range(16):
        actions = player.batch(2)
        *outcome, infos = envs.step(actions)
        *bare, bare_infos = plain.step(actions)
        sync_infos = sync.step(actions)[4]
        assert_identical(outcome, bare)
        totals += bare[1]
        ended = bare[2] | bare[3]
        assert ("episode" in infos) == ended.any()
        if ended.any():
            episodes += 1
            assert infos["_episode"].tolist() == ended.tolist() == [True, True]
            if episodes == 1 or RECENT:  # before 1.4 Gymnasium's wrapper miscounts the later ones
                np.testing.assert_allclose(infos["episode"]["r"], totals, rtol=1e-12)
                assert infos["episode"]["l"].tolist() == [3, 3]
            totals[:] = 0
            for given in (infos, sync_infos):  # right or wrong, the numbers agree
                given["episode"].pop("t")
        assert_identical(infos, sync_infos)
        for name in ("episode", "_episode"):
            infos.pop(name, None)
        assert_identical(infos, bare_infos)
        if mode == DISABLED and ended.any():
            for batch in (envs, plain, sync):
                batch.reset(options={"reset_mask": ended.copy()})
    assert episodes >= 4


@every_id
def test_a_partial_reset_resets_the_statistics_of_its_rows_only(env_id: str) -> None:
    # SyncVectorEnv takes the mask out of the caller's dict, and so all statistics are lost.
    envs: Any = RecordEpisodeStatistics(
        make_native(env_id, 2, num_arms=6, horizon=4, autoreset_mode="Disabled")
    )
    envs.reset(seed=0)
    player = Player(envs.single_action_space)
    total = 0.0
    for step in range(4):
        if step == 2:
            envs.reset(options={"reset_mask": np.array([False, True])})
        _, rewards, _, truncations, infos = envs.step(player.batch(2))
        total += rewards[0]
    assert truncations.tolist() == [True, False]
    assert infos["episode"]["l"].tolist() == [4, 0]
    assert infos["episode"]["r"][0] == pytest.approx(total, rel=1e-12)


@every_mode
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"num_arms": 3, "horizon": 4, "horizon_known": True}),
        (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 4}),
    ],
)
def test_infos_become_lists_as_those_of_sync(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs: Any = DictInfoToList(make_native(env_id, 3, autoreset_mode=mode, **kwargs))
    sync: Any = DictInfoToList(make_sync(env_id, 3, mode, kwargs))
    player = Player(envs.single_action_space)
    assert_identical(envs.reset(seed=0), sync.reset(seed=0))
    assert envs.reset(seed=0)[1] == [{}, {}, {}]
    sync.reset(seed=0)
    first = {"reset_mask": np.array([True, False, False])}
    ended = np.zeros(3, dtype=np.bool_)
    for time in range(14):
        mask = first["reset_mask"] | ended if mode == DISABLED else first["reset_mask"]
        if time == 2 or (mode == DISABLED and ended.any()):
            assert_identical(
                envs.reset(options={"reset_mask": mask.copy()}),
                sync.reset(options={"reset_mask": mask.copy()}),
            )
        actions = player.batch(3)
        ours = envs.step(actions)
        assert_identical(ours, sync.step(actions))
        ended = ours[2] | ours[3]
        for row, info in enumerate(ours[4]):
            if mode == SAME_STEP and ended[row]:
                assert set(info) == {"final_obs", "final_info"}
            elif env_id == IMPROVING:
                assert info == {}


@every_mode
@every_id
def test_keys_that_no_row_gave_are_absent(env_id: str, mode: AutoresetMode) -> None:
    envs = make_native(env_id, 2, num_arms=6, horizon=2, autoreset_mode=mode)
    assert envs.reset(seed=0)[1] == {}
    player = Player(envs.single_action_space)
    usual = set() if env_id == IMPROVING else {"user_rewards", "_user_rewards"}
    assert set(envs.step(player.batch(2))[4]) == usual
    infos = envs.step(player.batch(2))[4]  # both rows end
    if mode == SAME_STEP:
        assert set(infos) == {"final_obs", "_final_obs", "final_info", "_final_info"}
        assert set(infos["final_info"]) == usual
    else:
        assert set(infos) == usual
    if mode == NEXT_STEP:
        assert envs.step(player.batch(2))[4] == {}  # both rows only reset


@every_mode
@every_id
def test_metadata_and_spec(env_id: str, mode: AutoresetMode) -> None:
    for given in (mode, mode.value):
        envs = make_native(env_id, 2, autoreset_mode=given)
        assert envs.metadata["autoreset_mode"] is mode
        assert envs.autoreset_mode is mode
        assert envs.spec.id == env_id
        assert envs.spec.kwargs["num_envs"] == 2
        again: Any = gym.make_vec(envs.spec)
        assert type(again) is type(envs)
        assert (again.num_envs, again.autoreset_mode) == (2, mode)
        assert "autoreset_mode" not in type(envs).metadata
    assert make_native(env_id, 2).metadata["autoreset_mode"] is NEXT_STEP


@every_id
def test_gymnasiums_own_batch_leaves_the_metadata_of_the_class(env_id: str) -> None:
    envs = gym.make_vec(env_id, 2, vectorization_mode="sync")
    assert envs.metadata["autoreset_mode"] is NEXT_STEP
    assert set(type(gym.make(env_id).unwrapped).metadata) == {"render_modes", "render_fps"}


@pytest.mark.parametrize(
    ("scalar", "vector"),
    [(ImprovingBanditEnv, ImprovingBanditVectorEnv), (EgalAssignEnv, EgalAssignVectorEnv)],
)
def test_the_vector_class_takes_all_that_the_scalar_class_takes(scalar: Any, vector: Any) -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (vector, scalar))
    assert set(ours) == set(theirs) | {"num_envs", "max_episode_steps", "autoreset_mode"}
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default


ACCEPTED: list[tuple[str, Kwargs]] = [
    (
        IMPROVING,
        {
            "instance": "random_concave",
            "num_arms": 4,
            "noise_std": 0,
            "horizon": 3,
            "horizon_known": True,
            "validate": False,
            "render_mode": None,
            "render_reveal": True,
        },
    ),
    (
        EGAL,
        {
            "instance": Bernoulli([0.5, 0.25]),
            "num_users": 3,
            "num_arms": 2,
            "capacity": 2,
            "objective": "utilitarian",
            "horizon": 3,
            "horizon_known": True,
            "render_mode": None,
            "render_reveal": True,
        },
    ),
    (EGAL, {"instance": Gaussian([0.5, 0.25], 0), "num_users": 1}),
]


@pytest.mark.parametrize("limit", [{}, {"max_episode_steps": None}, {"max_episode_steps": 2}])
@pytest.mark.parametrize(
    "reset", [{}, {"autoreset_mode": SAME_STEP}, {"autoreset_mode": "Disabled"}]
)
@pytest.mark.parametrize("how", [None, "vector_entry_point", VectorizeMode.VECTOR_ENTRY_POINT])
@pytest.mark.parametrize(("env_id", "kwargs"), ACCEPTED)
def test_make_vec_accepts_every_argument(
    env_id: str, kwargs: Kwargs, how: Any, reset: Kwargs, limit: Kwargs
) -> None:
    arguments: Kwargs = {**kwargs, **reset, **limit}
    envs: Any = gym.make_vec(env_id, num_envs=2, vectorization_mode=how, **arguments)
    assert isinstance(envs, ImprovingBanditVectorEnv | EgalAssignVectorEnv)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    _, _, terminations, truncations, _ = envs.step(envs.action_space.sample())
    assert not terminations.any()
    assert truncations.tolist() == [limit.get("max_episode_steps") == 2] * 2
    envs.close()
    envs.close()


@every_id
def test_the_default_is_one_environment(env_id: str) -> None:
    envs: Any = gym.make_vec(env_id)
    assert envs.num_envs == 1
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[1].shape == (1,)
    assert envs.render_mode is None
    assert envs.unwrapped is envs
