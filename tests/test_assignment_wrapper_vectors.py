"""Action wrappers of vector environments equal those of the scalar ones, row by row."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers_assignment import ALL, ONE_STEP, PLAYED, Sizes, make, one_step
from helpers_names import EGAL
from helpers_play import assert_identical
from helpers_vectors import every_mode
from numpy.testing import assert_array_equal

from gym_fairbandits.spaces import Assignment
from gym_fairbandits.wrappers import PolicyRegret, vector

VECTOR: dict[str, Any] = {
    "ranked": vector.RankedAssignment,
    "lehmer": vector.LehmerAssignment,
    "enumerated": vector.EnumeratedAssignment,
}


def vectors(
    name: str, mode: AutoresetMode, num_envs: int, sizes: Sizes, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the wrapped native vector environment, and the synchronous one of wrapped ones."""
    users, arms, capacity = sizes
    limit = {key: kwargs[key] for key in ("max_episode_steps",) if key in kwargs}
    rest = {key: value for key, value in kwargs.items() if key not in limit}
    settings = {"num_users": users, "num_arms": arms, "capacity": capacity, "horizon": 6, **rest}
    native = gym.make_vec(EGAL, num_envs=num_envs, autoreset_mode=mode, **limit, **settings)
    sync = SyncVectorEnv(
        [lambda: ONE_STEP[name](make(sizes, **{"horizon": 6, **kwargs}))] * num_envs,
        autoreset_mode=mode,
    )
    return VECTOR[name](native), sync


@every_mode
@one_step
@pytest.mark.parametrize("game", ["bernoulli", "uneven", "limited"])
def test_vector_wrappers_equal_sync_of_scalar_ones(
    name: str, mode: AutoresetMode, game: str
) -> None:
    sizes, kwargs = PLAYED[game]
    kwargs = {"max_episode_steps": 4} if game == "limited" else kwargs
    envs, sync = vectors(name, mode, 3, sizes, kwargs)
    assert envs.single_action_space == sync.single_action_space
    assert envs.action_space == sync.action_space
    assert envs.observation_space == sync.observation_space
    assert_identical(envs.reset(seed=3), sync.reset(seed=3))
    rng = np.random.default_rng(0)
    envs.action_space.seed(0)
    waiting = np.zeros(3, dtype=np.bool_)
    for step in range(40):
        if mode == AutoresetMode.DISABLED and waiting.any():
            mask = waiting | (rng.random(3) < 0.3)
            options = {"reset_mask": mask}
            ours = envs.reset(options=options)
            assert options == {"reset_mask": mask}
            assert_identical(ours, sync.reset(options={"reset_mask": mask.copy()}))
        actions = envs.action_space.sample()
        if mode == AutoresetMode.NEXT_STEP and waiting.any():
            actions[waiting] = 10**6 if step % 2 else -5  # they are not read
        ours, theirs = envs.step(actions), sync.step(actions)
        assert_identical(ours, theirs)
        waiting = ours[2] | ours[3]
        if step == 20:
            assert_identical(envs.reset(seed=[4, 5, 6]), sync.reset(seed=[4, 5, 6]))
            waiting[:] = False


@pytest.mark.parametrize("name", ["lehmer", "enumerated"])
def test_rows_that_were_reset_by_hand_play_and_so_must_be_right(name: str) -> None:
    envs, _ = vectors(name, AutoresetMode.NEXT_STEP, 2, (2, 3, 1), {"horizon": 1})
    envs.reset(seed=0)
    good = envs.action_space.sample()
    bad = good.copy()
    bad[1] = 99
    envs.step(good)
    envs.reset(options={"reset_mask": np.array([False, True])})
    match = r"`actions` must be from 0 to \d at index (1|\(1, 0\)), got 99"
    with pytest.raises(InvalidAction, match=match):
        envs.step(bad)
    worse = good.copy()
    worse[0] = 99  # waits for its reset
    envs.step(worse)


@one_step
def test_vector_wrappers_decode_and_encode_row_by_row(name: str) -> None:
    sizes = (4, 3, 2)
    envs, sync = vectors(name, AutoresetMode.SAME_STEP, 5, sizes, {})
    scalar = sync.envs[0]
    envs.action_space.seed(0)
    actions = envs.action_space.sample()
    assignments = envs.actions(actions)
    assert assignments.dtype == np.int64
    assert assignments in envs.unwrapped.action_space
    assert_array_equal(assignments, [scalar.action(action) for action in actions])
    back = envs.to_actions(assignments)
    assert back in envs.action_space
    assert back.dtype == envs.action_space.dtype
    assert_array_equal(back, [scalar.to_action(arms) for arms in assignments])
    assert_array_equal(envs.actions(back), assignments)
    with pytest.raises(InvalidAction, match="`assignments` must be a legal assignment of Batched"):
        envs.to_actions(np.zeros((5, 4), dtype=np.int64))
    for bad in (actions[0], actions[:4], None, actions.astype(complex)):
        with pytest.raises(InvalidAction, match=r"`actions` must hold (real numbers|integers)"):
            envs.step(bad)


@one_step
def test_vector_wrappers_also_take_synchronous_environments(name: str) -> None:
    bare: Any = gym.make_vec(EGAL, num_envs=2, vectorization_mode="sync", num_users=2, num_arms=4)
    envs = VECTOR[name](bare)
    native = VECTOR[name](gym.make_vec(EGAL, num_envs=2, num_users=2, num_arms=4))
    envs.action_space.seed(0)
    assert_identical(envs.reset(seed=0), native.reset(seed=0))
    for _ in range(5):
        actions = envs.action_space.sample()
        assert_identical(envs.step(actions), native.step(actions))


@one_step
def test_vector_wrappers_refuse_other_environments(name: str) -> None:
    other: Any = gym.make_vec("ImprovingBandit-v0", num_envs=2)
    with pytest.raises(TypeError, match="`env` must have an `Assignment` as its `single_action_sp"):
        VECTOR[name](other)
    with pytest.raises(TypeError, match="`env` must have an `Assignment` as its `single_action_sp"):
        VECTOR[name](make())


@one_step
def test_vector_wrappers_report_regret_inside_and_outside(name: str) -> None:
    def build() -> Any:
        return gym.make_vec(EGAL, num_envs=2, num_users=2, num_arms=4, horizon=3)

    inside = VECTOR[name](vector.PolicyRegret(build()))
    outside = vector.PolicyRegret(VECTOR[name](build()))
    inside.action_space.seed(0)
    assert_identical(inside.reset(seed=0), outside.reset(seed=0))
    for step in range(9):
        actions = inside.action_space.sample()
        ours = inside.step(actions)
        assert_identical(ours, outside.step(actions))
        assert ("policy_regret" in ours[4]) == (step % 4 == 2)


@every_mode
@pytest.mark.parametrize("name", ["sequential", "rotated"])
def test_make_vec_wraps_the_sub_environments(name: str, mode: AutoresetMode) -> None:
    settings: dict[str, Any] = {"num_users": 3, "num_arms": 4, "horizon": 3}
    envs: Any = gym.make_vec(
        EGAL,
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        wrappers=[ALL[name], PolicyRegret],
        **settings,
    )
    envs.action_space.seed(0)
    envs.reset(seed=0)
    per_episode = {"sequential": 9, "rotated": 1}[name]
    for _ in range(2):
        for _ in range(per_episode):
            actions = envs.action_space.sample()
            _, rewards, _, truncations, infos = envs.step(actions)
        assert truncations.all()
        ends = infos["final_info"] if mode == AutoresetMode.SAME_STEP else infos
        assert ends["policy_regret"].shape == (2,)
        if name == "rotated":
            assert_array_equal(rewards, ends["user_rewards"].min(axis=1))
        if mode == AutoresetMode.NEXT_STEP:
            envs.step(actions)
        elif mode == AutoresetMode.DISABLED:
            envs.reset(options={"reset_mask": np.ones(2, dtype=np.bool_)})


def test_spaces_of_wrapped_environments_are_assignments_no_more() -> None:
    for name, wrapper in ALL.items():
        env = wrapper(make())
        assert not isinstance(env.action_space, Assignment), name
        assert isinstance(env.env.action_space, Assignment), name
