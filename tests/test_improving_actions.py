"""Which actions ImprovingBandit-v0 plays, and that it refuses all others without a change."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_envs import drawn_tables
from helpers_episodes import EXACT, assert_action_is_refused, improving
from helpers_names import Kwargs

ILLEGAL: list[Any] = [
    -1,
    3,
    10**30,
    0.0,
    1.5,
    float("nan"),
    True,
    False,
    np.bool_(True),
    np.array(True),
    np.array(False),
    np.float64(1.0),
    np.array(1.0),
    np.int64(-1),
    np.uint64(2**64 - 1),
    np.array(3),
    "0",
    "",
    b"1",
    None,
    [],
    [0],
    (1,),
    {"arm": 1},
    np.array([1]),
    np.array([[0]]),
    np.array([0, 1]),
    np.array([], dtype=np.int64),
    np.array("1"),
    np.array(None),
    np.datetime64("2020-01-01"),
    1j,
    Fraction(1),
    slice(1),
    object,
]
LEGAL: list[Any] = [
    1,
    np.int8(1),
    np.uint8(1),
    np.int32(1),
    np.int64(1),
    np.uint64(1),
    np.array(1),
    np.array(1, dtype=np.int8),
    np.array(1, dtype=np.uint8),
    np.array([0, 1])[1],
]


@pytest.mark.parametrize("action", ILLEGAL, ids=repr)
def test_an_illegal_action_is_refused_and_changes_nothing(action: Any) -> None:
    kwargs: Kwargs = {"instance": drawn_tables, "num_arms": 3, "noise_std": 0.5, "horizon": 20}
    assert_action_is_refused(
        partial(improving, **kwargs), action, "`action` must be an integer from 0 to 2, got"
    )


@pytest.mark.parametrize("action", LEGAL, ids=lambda action: f"{type(action).__name__}-{action!r}")
def test_any_integer_type_is_a_legal_action(action: Any) -> None:
    env = improving(instance=EXACT)
    env.reset(seed=0)
    observation, reward, *_ = env.step(action)
    assert reward == 0.5
    assert type(reward) is float
    assert observation["pulls"].tolist() == [0, 1, 0]


def test_a_refused_action_is_named() -> None:
    env = improving(instance=EXACT)
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"got 3$"):
        env.step(3)
    with pytest.raises(InvalidAction, match=r"got 'left'$"):
        env.step("left")
