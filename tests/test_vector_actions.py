"""Actions of native vector environments: legal and illegal ones, and rows that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from helpers_envs import every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, assert_identical, random_states, worth
from helpers_vectors import (
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
    Duel,
    make_native,
    progress,
    running_pair,
)

# --- Waiting and finished rows --------------------------------------------------------------------


@every_id
def test_stepping_a_finished_row_when_autoreset_is_disabled_raises(env_id: str) -> None:
    envs, twin = running_pair(env_id, DISABLED)
    player = Player(envs.single_action_space, 1)
    ended = np.zeros(3, dtype=np.bool_)
    while not ended.any():
        actions = player.batch(3)
        outcome = envs.step(actions)
        assert_identical(outcome, twin.step(actions))
        ended = outcome[2] | outcome[3]
    assert ended.sum() == 1  # the rows are out of step
    row = int(np.flatnonzero(ended)[0])
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=rf"the episodes of the sub-environments \[{row}\]"):
            envs.step(actions)
    assert_identical(worth(envs), worth(twin))
    # A reset of another row does not help.
    other = np.arange(3) == (row + 1) % 3
    for either in (envs, twin):
        either.reset(options={"reset_mask": other})
    with pytest.raises(ResetNeeded, match=rf"\[{row}\]"):
        envs.step(actions)
    for either in (envs, twin):
        either.reset(options={"reset_mask": ended})
    assert_identical(progress(envs), progress(twin))


@every_id
def test_rows_out_of_step_end_at_their_own_times(env_id: str) -> None:
    kwargs: Kwargs = {"num_arms": 4, "horizon": 4, "horizon_known": True}
    kwargs |= {} if env_id == IMPROVING else {"num_users": 2}
    for mode in MODES:
        duel = Duel(env_id, kwargs, mode, num_envs=4)
        duel.reset(seed=0)
        player = Player(duel.native.single_action_space)
        left = np.full(4, 4)
        for time in range(24):
            due = np.zeros(4, dtype=np.bool_)
            if time in (1, 2, 3):  # row 1 starts again after one step, row 2 after two, ...
                due[time] = True
            if mode == DISABLED:
                due |= left == 0
            if due.any():
                duel.reset(options={"reset_mask": due})
                left[due] = 4
            waiting = left == 0
            outcome = duel.native.step(actions := player.batch(4))
            assert_identical(outcome, duel.sync.step(actions))
            left = np.where(waiting, 4, left - 1)
            assert outcome[2].tolist() == (left == 0).tolist()
            assert not outcome[3].any()
            if mode == SAME_STEP:
                left[left == 0] = 4
            assert outcome[0]["remaining"][:, 0].tolist() == left.tolist()
        assert len(set(left.tolist())) == 4 if mode != NEXT_STEP else len(set(left.tolist())) > 1


@pytest.mark.parametrize("junk", [-1, 4, 99, 2**62])
@every_id
def test_the_action_of_a_waiting_row_is_ignored_even_if_illegal(env_id: str, junk: int) -> None:
    envs, twin = running_pair(env_id, NEXT_STEP)
    player = Player(envs.single_action_space, 1)
    waiting = np.zeros(3, dtype=np.bool_)
    seen = 0
    for _ in range(20):
        actions = player.batch(3)
        odd = actions.copy()
        odd[waiting] = junk
        outcome = envs.step(odd)
        assert_identical(outcome, twin.step(actions))
        assert outcome[1][waiting].tolist() == [0.0] * int(waiting.sum())
        seen += int(waiting.sum())
        waiting = outcome[2] | outcome[3]
    assert seen >= 6
    if env_id == EGAL:  # a collision is no matter either
        while not waiting.any():
            outcome = envs.step(player.batch(3))
            waiting = outcome[2] | outcome[3]
        actions = player.batch(3)
        actions[waiting] = 0
        envs.step(actions)


@every_id
def test_an_illegal_action_beside_a_waiting_row_names_the_right_row(env_id: str) -> None:
    envs, twin = running_pair(env_id, NEXT_STEP)
    player = Player(envs.single_action_space, 1)
    waiting = np.zeros(3, dtype=np.bool_)
    while not waiting[0]:
        actions = player.batch(3)
        outcome = envs.step(actions)
        twin.step(actions)
        waiting = outcome[2] | outcome[3]
    assert waiting.tolist() == [True, False, False]
    actions = player.batch(3)
    actions[0] = 55
    actions[2] = 77
    with pytest.raises(InvalidAction, match=r"got .*77.* sub-environment 2"):
        envs.step(actions)
    assert_identical(progress(envs), progress(twin))


# --- Actions --------------------------------------------------------------------------------------

MISFIT = r"`actions` must be integers of shape \(3,\), got"
WRONG_ROW = r"`actions` must be integers from 0 to 3, got {} for sub-environment {}"
ILLEGAL_ARMS: list[tuple[Any, str]] = [
    (np.array([0, 4, 1]), WRONG_ROW.format(4, 1)),
    (np.array([-1, 0, 1]), WRONG_ROW.format(-1, 0)),
    (np.array([0, 1, 200], dtype=np.uint8), WRONG_ROW.format(200, 2)),
    (np.array([0, 1, 2**64 - 1], dtype=np.uint64), WRONG_ROW.format(2**64 - 1, 2)),
    (np.array([0, -128, 1], dtype=np.int8), WRONG_ROW.format(-128, 1)),
    ([0, 4, 9], WRONG_ROW.format(4, 1)),
    (np.array([0.0, 1.0, 2.0]), MISFIT),
    (np.array([0.0, np.nan, 2.0]), MISFIT),
    (np.array([True, False, True]), MISFIT),
    ([True, False, True], MISFIT),
    ([0, True, 2], MISFIT),
    ([0, 1.0, 2], MISFIT),
    (np.array([0, 1, 2], dtype=object), MISFIT),
    (["0", "1", "2"], MISFIT),
    ([0, None, 2], MISFIT),
    ([0, 10**30, 2], rf"got {10**30} for sub-environment 1$"),
    ("012", MISFIT),
    (None, MISFIT),
    (1, MISFIT),
    (np.array(1), MISFIT),
    ([], MISFIT),
    ([0, 1], MISFIT),
    ([0, 1, 2, 3], MISFIT),
    (np.array([[0, 1, 2]]), MISFIT),
    (np.array([[0], [1], [2]]), MISFIT),
    ([[0], [1, 2], [3]], MISFIT),
    ([0, [1], 2], MISFIT),
]
MISFITS = r"`actions` must hold integers and have shape \(3, 3\), got"
ILLEGAL_ASSIGNMENTS: list[tuple[Any, str]] = [
    (
        np.array([[0, 1, 2], [3, 0, 3], [1, 1, 1]]),
        r"got arm 3 for users 0 and 2 in sub-environment 1$",
    ),
    (np.array([[0, 1, 2], [0, 1, 2], [4, 1, 0]]), r"got arm 4 for user 0 in sub-environment 2$"),
    (np.array([[0, -1, 2], [0, 1, 2], [2, 1, 0]]), r"got arm -1 for user 1 in sub-environment 0$"),
    ([[0, 1, 2], [0, 1, 1], [2, 1, 0]], r"got arm 1 for users 1 and 2 in sub-environment 1$"),
    (np.array([[0.0, 1.0, 2.0]] * 3), MISFITS),
    (np.array([[0, 1, 2]] * 3, dtype=object), MISFITS),
    (np.ones((3, 3), dtype=np.bool_), MISFITS),
    ([[0, True, 2]] * 3, MISFITS),
    ([[0, 1, 2], [0, 1, 2.0], [0, 1, 2]], MISFITS),
    ([[0, 1, 2], [0, 1], [0, 1, 2]], MISFITS),
    ([[0, 1, 2], None, [0, 1, 2]], MISFITS),
    ([["0", "1", "2"]] * 3, MISFITS),
    ("012", MISFITS),
    (None, MISFITS),
    (0, MISFITS),
    ([0, 1, 2], MISFITS),
    (np.array([0, 1, 2]), MISFITS),
    (np.array([[0, 1, 2]] * 2), MISFITS),
    (np.array([[0, 1, 2]] * 4), MISFITS),
    (np.array([[0, 1]] * 3), MISFITS),
    (np.array([[[0, 1, 2]] * 3]), MISFITS),
    ([], MISFITS),
]


@pytest.mark.parametrize(
    ("env_id", "actions", "message"),
    [
        *((IMPROVING, *case) for case in ILLEGAL_ARMS),
        *((EGAL, *case) for case in ILLEGAL_ASSIGNMENTS),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_illegal_action_names_the_row_and_moves_none(
    env_id: str, actions: Any, message: str
) -> None:
    envs, twin = running_pair(env_id)
    for steps in (0, 1):
        assert_identical(progress(envs, steps), progress(twin, steps))
        before = worth(envs)
        with pytest.raises(InvalidAction, match=message):
            envs.step(actions)
        assert_identical(worth(envs), before)
        assert random_states(envs) == random_states(twin)
    assert_identical(progress(envs, 8), progress(twin, 8))


DTYPES = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]


@every_id
def test_any_integers_are_legal_actions(env_id: str) -> None:
    rows: Any = [0, 3, 1] if env_id == IMPROVING else [[0, 3, 1], [2, 1, 0], [1, 2, 3]]
    results = []
    shapes: list[Callable[[Any], Any]] = [
        list,
        tuple,
        lambda rows: np.array(rows, dtype=">i4"),
        lambda rows: np.array(rows, order="F"),
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
        *(lambda rows, dtype=dtype: np.array(rows, dtype=dtype) for dtype in DTYPES),
    ]
    for shape in shapes:
        envs = running_pair(env_id)[0]
        results.append(envs.step(shape(rows)))
    for result in results[1:]:
        assert_identical(result, results[0])


@every_id
def test_the_batched_action_space_gives_legal_actions(env_id: str) -> None:
    envs = make_native(env_id, 5, horizon=10)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(40):
        actions = envs.action_space.sample()
        assert actions in envs.action_space
        observations, *_ = envs.step(actions)
        assert observations in envs.observation_space
