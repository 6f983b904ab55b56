"""Which assignments EgalAssign-v0 plays, and that it refuses all others without a change."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_envs import drawn_laws
from helpers_episodes import SURE, assert_action_is_refused, egal
from helpers_names import Kwargs
from helpers_play import Player

MISFIT = r"`action` must hold integers and have shape \(3,\), got"
ILLEGAL: list[tuple[Any, str]] = [
    ([0, 1, 0], r"no arm to more than 1 user, got arm 0 for users 0 and 2$"),
    ([2, 2, 2], r"no arm to more than 1 user, got arm 2 for users 0, 1 and 2$"),
    (np.array([1, 3, 3], dtype=np.int8), r"got arm 3 for users 1 and 2$"),
    ([0, 1, 4], r"an arm from 0 to 3, got arm 4 for user 2$"),
    ([0, -1, 2], r"an arm from 0 to 3, got arm -1 for user 1$"),
    ((-1, 0, 1), r"an arm from 0 to 3, got arm -1 for user 0$"),
    (np.array([0, 1, 255], dtype=np.uint8), r"got arm 255 for user 2$"),
    (np.array([2**64 - 1, 0, 1], dtype=np.uint64), r"got arm 18446744073709551615 for user 0$"),
    ([0, 1, 10**30], r"got arm 10{30} for user 2$"),
    ([0.0, 1.0, 2.0], MISFIT),
    (np.array([0.0, 1.0, 2.0]), MISFIT),
    (np.array([0, 1, np.nan]), MISFIT),
    ([False, True, 2], MISFIT),
    ([0, np.bool_(True), 2], MISFIT),
    (np.array([True, False, True]), MISFIT),
    (np.array([0, 1, 2], dtype=object), MISFIT),
    (["0", "1", "2"], MISFIT),
    (np.array(["0", "1", "2"]), MISFIT),
    ("012", MISFIT),
    (None, MISFIT),
    (1, MISFIT),
    (np.array(1), MISFIT),
    (np.int64(1), MISFIT),
    ([], MISFIT),
    ([0], MISFIT),
    (np.array([1]), MISFIT),
    ([0, 1], MISFIT),
    ([0, 1, 2, 3], MISFIT),
    (np.array([[0, 1, 2]]), MISFIT),
    (np.array([[0], [1], [2]]), MISFIT),
    ([[0], [1], [2]], MISFIT),
    ([0, [1], 2], MISFIT),
    ([0, None, 2], MISFIT),
    ({0, 1, 2}, MISFIT),
    ({0: 0, 1: 1, 2: 2}, MISFIT),
    (range(3), MISFIT),
    (object, MISFIT),
]


@pytest.mark.parametrize(("action", "message"), ILLEGAL, ids=lambda value: repr(value)[:40])
def test_an_illegal_action_is_refused_and_changes_nothing(action: Any, message: str) -> None:
    kwargs: Kwargs = {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 20}
    assert_action_is_refused(partial(egal, **kwargs), action, message)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([1, 1, 1], r"no arm to more than 2 users, got arm 1 for users 0, 1 and 2$"),
        ([0, 1, 2], r"an arm from 0 to 1, got arm 2 for user 2$"),
    ],
)
def test_an_illegal_action_with_capacity_names_users_and_arm(action: Any, message: str) -> None:
    env = egal(num_users=3, num_arms=2, capacity=2)
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=message):
        env.step(action)
    env.step([1, 0, 1])


DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize(
    "action",
    [
        *(np.array([0, 2], dtype=dtype) for dtype in DTYPES),
        np.array([0, 2], dtype=">i4"),
        np.array([0, 9, 2, 9])[::2],
        [0, 2],
        (0, 2),
        [np.int8(0), np.uint64(2)],
        (np.int64(0), 2),
    ],
    ids=repr,
)
def test_any_integers_are_a_legal_action(action: Any) -> None:
    env = egal(instance=SURE, num_users=2)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(action)
    assert info["user_rewards"].tolist() == [1.0, 0.25]
    assert reward == 0.25
    assert observation["pulls"].tolist() == [1, 0, 1, 0]
    assert observation["pulls"].dtype == np.int64
    assert env.unwrapped.expected_user_returns().tolist() == [1.0, 0.25]


def test_one_user_is_still_an_array() -> None:
    env = egal(instance=SURE, num_users=1)
    env.reset(seed=0)
    for action in (1, np.array(1), np.int64(1)):
        with pytest.raises(InvalidAction, match=r"have shape \(1,\)"):
            env.step(action)
    assert env.step([1])[1] == 0.5


def test_an_action_buffer_may_be_reused_by_the_caller() -> None:
    env = egal(instance=SURE, num_users=2, horizon=600)
    env.reset(seed=0)
    action = np.zeros(2, dtype=np.int64)
    counts = np.zeros((2, 4))
    player = Player(env.action_space)
    for _ in range(600):  # more than the environment counts at once
        action[:] = player()
        counts[[0, 1], action] += 1
        env.step(action)
        if counts.sum() % 94 == 0:
            expected = (counts @ [1.0, 0.5, 0.25, 0.125]).tolist()
            assert env.unwrapped.expected_user_returns().tolist() == expected
    assert (
        env.unwrapped.expected_user_returns().tolist()
        == (counts @ [1.0, 0.5, 0.25, 0.125]).tolist()
    )
