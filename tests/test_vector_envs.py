"""The native vector environments against SyncVectorEnv and the scalar ones, bit for bit."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers_envs import (
    MIXED,
    Root,
    drawn_laws,
    drawn_mixture,
    drawn_tables,
    every_case,
    every_id,
    pins_for,
)
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, arrays_in, arrays_of_state, assert_identical, vandalise, worth
from helpers_vectors import DISABLED, NEXT_STEP, SAME_STEP, Duel, every_mode, make_native, progress

from gym_fairbandits.curves import Constant

# --- Against SyncVectorEnv ------------------------------------------------------------------------


@every_mode
@every_case
def test_native_equals_sync_in_all_that_is_returned(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    duel = Duel(env_id, kwargs, mode)
    duel.reset(seed=3)
    duel.play(max(20, int(1.3 * kwargs["horizon"])))
    duel.reset()
    duel.play(4)
    duel.reset(seed=[5, 5, 9])
    duel.play(4)
    assert duel.ends >= 3


LONG: list[tuple[str, Kwargs]] = [
    # Beyond the blocks in which values and draws are fetched.
    (IMPROVING, {"num_arms": 2, "noise_std": 0.5, "horizon": 530}),
    (IMPROVING, {"instance": MIXED, "horizon": 300}),
    (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "horizon": 300}),
    (EGAL, {"instance": "gaussian", "num_users": 3, "num_arms": 4, "horizon": 350}),
    (EGAL, {"num_users": 5, "num_arms": 3, "capacity": 2, "horizon": 200}),
]


@every_mode
@pytest.mark.parametrize(("env_id", "kwargs"), LONG)
def test_native_equals_sync_over_long_episodes(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    duel = Duel(env_id, kwargs, mode, num_envs=2)
    duel.reset(seed=0)
    for _ in range(kwargs["horizon"]):
        duel.step()
    assert duel.ends == 2
    if mode == DISABLED:
        duel.reset(options={"reset_mask": np.array([True, True])})
    for _ in range(30):
        duel.step()


@every_mode
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("limit", [2, 5, 8, -1])
@every_id
def test_native_equals_sync_under_a_step_limit(
    env_id: str, limit: int, known: bool, mode: AutoresetMode
) -> None:
    kwargs: Kwargs = {"horizon": 5, "horizon_known": known, "max_episode_steps": limit}
    kwargs |= {"num_arms": 6, "instance": drawn_tables if env_id == IMPROVING else "bernoulli"}
    duel = Duel(env_id, kwargs, mode)
    duel.reset(seed=1)
    duel.play(14)
    assert duel.ends >= 3
    assert duel.native.max_episode_steps == (limit if limit > 0 else None)


@every_mode
@every_id
def test_native_equals_sync_for_one_environment(env_id: str, mode: AutoresetMode) -> None:
    instance: Any = drawn_mixture if env_id == IMPROVING else drawn_laws
    kwargs = {"instance": instance, "num_arms": 5, "horizon": 6}
    duel = Duel(env_id, kwargs, mode, num_envs=1)
    duel.reset(seed=8)
    duel.play(60)


@pytest.mark.parametrize("seed", range(2))
@every_mode
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"instance": drawn_tables, "num_arms": 2, "horizon": 4}),
        (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "noise_std": 1.0, "horizon": 5}),
        (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 4}),
        (
            EGAL,
            {
                "instance": drawn_laws,
                "num_users": 6,
                "num_arms": 3,
                "capacity": 3,
                "objective": "utilitarian",
                "horizon": 4,
            },
        ),
    ],
)
def test_native_equals_sync_over_very_many_drawn_instances(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode, seed: int
) -> None:
    duel = Duel(env_id, kwargs, mode, num_envs=4, seed=seed)
    duel.reset(seed=seed)
    duel.play(60)
    assert duel.ends > 30


@every_mode
@every_case
def test_row_i_is_the_scalar_environment_of_seed_s_plus_i(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 4, autoreset_mode=mode, **kwargs)
    singles: list[Any] = [gym.make(env_id, **kwargs) for _ in range(4)]
    player = Player(envs.single_action_space)
    observations, infos = envs.reset(seed=50)
    assert infos == {}
    for row, single in enumerate(singles):
        start, _ = single.reset(seed=50 + row)
        assert_identical({key: value[row] for key, value in observations.items()}, start)
        reveal = "curves" if env_id == IMPROVING else "arms"
        assert getattr(envs, reveal)[row] == getattr(single.unwrapped, reveal)
    for _ in range(kwargs["horizon"]):
        actions = player.batch(4)
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        for row, single in enumerate(singles):
            seen, reward, terminated, truncated, info = single.step(actions[row])
            assert_identical(
                [float(rewards[row]), bool(terminations[row]), bool(truncations[row])],
                [reward, terminated, truncated],
            )
            ours = {key: value[row] for key, value in observations.items()}
            details = infos
            if mode == SAME_STEP and (terminated or truncated):
                ours, details = infos["final_obs"][row], infos["final_info"]
            assert_identical(ours, seen)
            assert_identical(
                {key: value[row] for key, value in details.items() if key in info}, info
            )


# --- Memory ---------------------------------------------------------------------------------------


@every_mode
@every_case
def test_what_was_returned_is_never_used_again(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 3, autoreset_mode=mode, **kwargs)
    player = Player(envs.single_action_space)
    kept: list[Any] = [envs.reset(seed=1)]
    copies = [copy.deepcopy(kept[0])]
    for time in range(30):
        actions = player.batch(3)
        given = actions.copy()
        outcome = envs.step(actions)
        assert_identical(actions, given)
        ended = outcome[2] | outcome[3]
        kept += [outcome, actions]
        copies += [copy.deepcopy(outcome), given]
        if time % 6 == 0:
            kept.append(worth(envs))
            copies.append(copy.deepcopy(kept[-1]))
        if (mode == DISABLED and ended.any()) or time % 11 == 5:
            mask = ended | (np.arange(3) == time % 3)
            kept.append(envs.reset(options={"reset_mask": mask}))
            copies.append(copy.deepcopy(kept[-1]))
    assert_identical(kept, copies)
    everything = [list(arrays_in(call)) for call in kept]
    flat = [(number, array) for number, call in enumerate(everything) for array in call]
    assert len({id(array) for _, array in flat}) == len(flat)
    recent = flat[-60:]
    for place, (number, array) in enumerate(recent):
        for other_number, other in recent[:place]:
            assert number == other_number or not np.shares_memory(array, other)
    state = list(arrays_of_state(envs))
    assert len(state) > 10
    for _, array in recent:
        assert not any(np.shares_memory(array, other) for other in state)


@every_mode
@every_case
def test_vandalising_what_was_returned_changes_nothing(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs, twin = (make_native(env_id, 3, autoreset_mode=mode, **kwargs) for _ in range(2))
    player = Player(envs.single_action_space)
    start = envs.reset(seed=1)
    assert_identical(start, twin.reset(seed=1))
    vandalise(start)
    for number in range(25):
        actions = player.batch(3)
        used = actions.copy()
        ours, theirs = envs.step(used), twin.step(actions)
        assert_identical(ours, theirs)
        ended = theirs[2] | theirs[3]
        vandalise([ours, used])
        if ended.any() and number < 15:
            vandalise(worth(envs))
            assert_identical(worth(envs), worth(twin))
        if mode == DISABLED and ended.any():
            mask = ended.copy()
            start = envs.reset(options={"reset_mask": mask})
            assert_identical(start, twin.reset(options={"reset_mask": ended}))
            vandalise([start, mask])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {}),
        (IMPROVING, {"noise_std": 0.1, "horizon_known": True}),
        (IMPROVING, {"instance": [Root(0.5, 100.0)] * 10}),
        (EGAL, {}),
        (EGAL, {"instance": "gaussian", "capacity": 2, "objective": "utilitarian"}),
    ],
)
def test_memory_does_not_grow_with_the_horizon(env_id: str, kwargs: Kwargs) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        envs = make_native(env_id, 1024, horizon=10**6, autoreset_mode="SameStep", **kwargs)
        envs.reset(seed=0)
        assert envs.num_arms == 10
        envs.action_space.seed(0)
        actions = [envs.action_space.sample() for _ in range(3)]
        for step in range(200):
            envs.step(actions[step % 3])
        envs.optimal_return()
        envs.expected_return()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 200 * 2**20


# --- Copies ---------------------------------------------------------------------------------------


@every_mode
@every_case
def test_copies_made_in_mid_episode_go_on_exactly(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 3, autoreset_mode=mode, **kwargs)
    unstarted = pickle.loads(pickle.dumps(envs))
    envs.reset(seed=1)
    unstarted.reset(seed=1)
    assert_identical(progress(envs, 2), progress(unstarted, 2))
    pins = pins_for(env_id, envs.num_arms)
    for steps, pin in ((0, pins[1]), (7, pins[0])):
        mask = np.array([True, False, steps > 0])
        envs.reset(options={"reset_mask": mask, "instance": pin})
        progress(envs, steps)
        copies = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
        ours = progress(envs, 7)
        for other in copies:
            assert_identical(progress(other, 7), ours)
        start, ours = envs.reset(options={"instance": pins[1]}), progress(envs, 3)
        for other in copies:
            assert_identical(other.reset(options={"instance": pins[1]}), start)
            assert_identical(progress(other, 3), ours)


def test_a_copy_remembers_the_episodes_that_ended_in_the_same_step() -> None:
    envs = make_native(IMPROVING, 2, instance=MIXED, horizon=2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    envs.step([0, 2])
    envs.step([0, 2])
    value = worth(envs)
    assert value["realized"] == pytest.approx([0.36, 0.4], rel=1e-15)
    assert_identical(worth(copy.deepcopy(envs)), value)
    assert_identical(worth(pickle.loads(pickle.dumps(envs))), value)


# --- What episodes are worth ----------------------------------------------------------------------


@every_mode
def test_values_by_hand_in_every_mode(mode: AutoresetMode) -> None:
    # min(n/4, 1) and a constant 1/2: nothing rounds.
    curves = [{"family": "linear_cap", "asymptote": 1.0, "ramp": 4}, Constant(0.5)]
    envs = make_native(IMPROVING, 2, instance=curves, horizon=3, autoreset_mode=mode)
    envs.reset(seed=0)
    assert worth(envs)["optimal"].tolist() == [0.0, 0.0]
    envs.step([0, 1])
    assert worth(envs)["expected"].tolist() == [0.25, 0.5]
    assert worth(envs)["optimal"].tolist() == [0.5, 0.5]
    mask = np.array([False, True])
    envs.reset(options={"reset_mask": mask})  # row 1 is now one step behind
    assert worth(envs)["expected"].tolist() == [0.25, 0.0]
    envs.step([0, 1])
    _, _, _, truncations, _ = envs.step([0, 0])
    assert truncations.tolist() == [True, False]
    # Row 0 has just ended: 1/4 + 1/2 + 3/4 in three steps; row 1 has 1/2 + 1/4 in two.
    for rows in (None, np.array([True, True])):
        assert envs.optimal_return(rows=rows).tolist() == [1.5, 1.0]
        assert envs.expected_return(rows=rows).tolist() == [1.5, 0.75]
        assert envs.realized_return(rows=rows).tolist() == [1.5, 0.75]
    for name, values in (("optimal_return", [1.5, 1.0]), ("expected_return", [1.5, 0.75])):
        for row in (0, 1):
            assert getattr(envs, name)(rows=np.arange(2) == row).tolist() == [values[row]]
        assert getattr(envs, name)(rows=np.zeros(2, dtype=np.bool_)).tolist() == []
    assert envs.optimal_return(4).tolist() == [2.5, 2.5]
    if mode == DISABLED:
        envs.reset(options={"reset_mask": truncations})
        assert envs.expected_return().tolist() == [0.0, 0.75]
    envs.step([1, 1])  # under NEXT_STEP the reset of row 0
    first = 0.0 if mode == NEXT_STEP else 0.5
    assert envs.expected_return().tolist() == [first, 1.25]
    assert envs.optimal_return().tolist() == [first, 1.5]


@every_mode
@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
def test_assignment_values_by_hand_in_every_mode(objective: str, mode: AutoresetMode) -> None:
    arms = {"family": "gaussian", "means": [1.0, 0.5, 0.25], "std": 0.0}
    envs = make_native(
        EGAL, 2, instance=arms, num_users=2, objective=objective, horizon=2, autoreset_mode=mode
    )
    envs.reset(seed=0)
    _, rewards, *_ = envs.step([[0, 1], [2, 1]])
    pick = np.min if objective == "egalitarian" else np.mean
    assert rewards.tolist() == [pick([1.0, 0.5]), pick([0.25, 0.5])]
    envs.step([[1, 0], [2, 0]])  # both rows end
    users = [[1.5, 1.5], [0.5, 1.5]]
    assert envs.expected_user_returns().tolist() == users
    assert envs.expected_user_returns(rows=np.array([False, True])).tolist() == users[1:]
    assert envs.expected_return().tolist() == [pick(users[0]), pick(users[1])]
    assert envs.realized_return().tolist() == [pick(users[0]), pick(users[1])]
    assert envs.optimal_return().tolist() == [1.5, 1.5]
    assert envs.optimal_return(4).tolist() == [3.0, 3.0]
    assert envs.optimal_slots().tolist() == [[0, 1], [0, 1]]


def test_optimal_arms_of_each_row() -> None:
    envs = make_native(IMPROVING, 2, num_arms=2, horizon=4)
    ramp = {"family": "linear_cap", "asymptote": 1.0, "ramp": 4}
    envs.reset(seed=0, options={"instances": [[ramp, Constant(0.5)], [Constant(0.75), ramp]]})
    assert envs.optimal_arm(2).tolist() == [1, 0]
    assert envs.optimal_arm().tolist() == [0, 0]
    assert envs.optimal_arm(100).tolist() == [0, 1]
    assert envs.optimal_return(4).tolist() == [2.5, 3.0]
