"""Action wrappers name wrong actions and refuse environments that they cannot wrap."""

from __future__ import annotations

import math
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_assignment import ALL, Sizes, every_wrapper, legal, make, small, wrapped
from helpers_names import EGAL
from numpy.testing import assert_array_equal

from gym_fairbandits.spaces import rotation
from gym_fairbandits.wrappers import EnumeratedAssignment, codes, vector

BAD_SCORES: list[Any] = [
    [0.0, 1.0],
    np.zeros(6),
    np.zeros((1, 5)),
    np.zeros((5, 1)),
    0.5,
    None,
    "abcde",
    ["a"] * 5,
    [True] * 5,
    np.zeros(5, dtype=complex),
    np.zeros(5, dtype=object),
    [[1.0], [1.0, 2.0], 1.0, 1.0, 1.0],
    {},
]
BAD_DIGITS: list[tuple[Any, str]] = [
    ([5, 0, 0], r"`action` must be from 0 to 4 at index 0, got 5"),
    ([0, 4, 0], r"`action` must be from 0 to 3 at index 1, got 4"),
    ([0, 0, -1], r"`action` must be from 0 to 2 at index 2, got -1"),
    ([0, 0, 2**70], r"`action` must be from 0 to 2 at index 2, got 1180591620717411303424"),
    (np.array([0, 2**64 - 1, 0], dtype=np.uint64), r"to 3 at index 1, got 18446744073709551615"),
    ([0, 0], r"must hold integers and have shape \(3,\), got \[0, 0\]"),
    ([0.0, 1.0, 2.0], r"must hold integers and have shape \(3,\)"),
    (np.zeros(3), r"must hold integers and have shape \(3,\), got dtype float64 and shape \(3,\)"),
    (np.zeros(3, dtype=bool), "must hold integers"),
    ([True, False, True], "must hold integers"),
    (np.zeros((1, 3), dtype=np.int64), r"must hold integers.*shape \(1, 3\)"),
    (7, "must hold integers"),
    (None, "must hold integers"),
    ("abc", "must hold integers"),
    ([math.nan] * 3, "must hold integers"),
]
BAD_NUMBERS: list[tuple[Any, str]] = [
    (-1, "`action` must be from 0 to {last}, got -1"),
    ("past", "`action` must be from 0 to {last}, got {past}"),
    (2**70, "`action` must be from 0 to {last}, got 1180591620717411303424"),
    (np.uint64(2**64 - 1), "must be from 0 to {last}, got 18446744073709551615"),
    (1.0, "`action` must be an integer, got 1.0"),
    (np.float32(1), "must be an integer"),
    (np.array(1.0), r"must be an integer, got dtype float64 and shape \(\)"),
    (True, "must be an integer, got True"),
    (np.bool_(True), "must be an integer"),
    (np.array([1]), r"must be an integer, got dtype int64 and shape \(1,\)"),
    ([1], "must be an integer"),
    (None, "must be an integer, got None"),
    ("1", "must be an integer, got '1'"),
    (math.nan, "must be an integer, got nan"),
]


def test_wrong_actions_are_named_and_change_nothing() -> None:
    cases: list[tuple[str, Any, str]] = [
        *(
            (name, bad, r"`action` must hold real numbers and have shape \(5,\), got")
            for name in ("ranked", "rotated")
            for bad in BAD_SCORES
        ),
        *(("lehmer", bad, match) for bad, match in BAD_DIGITS),
        *(
            (name, size if bad == "past" else bad, match.format(last=size - 1, past=size))
            for name, size in (("enumerated", 60), ("sequential", 5))
            for bad, match in BAD_NUMBERS
        ),
    ]
    envs = {name: wrapped(name) for name in ALL}
    before = {name: pickle.dumps(env) for name, (env, _) in envs.items()}
    for name, action, match in cases:
        with pytest.raises(InvalidAction, match=match):
            envs[name][0].step(action)
    for name, (env, spy) in envs.items():
        assert not spy.seen
        assert pickle.dumps(env) == before[name]


@every_wrapper
def test_to_action_takes_legal_assignments_only(name: str) -> None:
    env, _ = wrapped(name)
    for bad in ([0, 0, 1], [0, 1], [0, 1, 5], [0, 1, -1], [0.0, 1.0, 2.0], None, np.zeros(3)):
        match = r"`assignment` must be a legal assignment of Assignment\(3, 5\), got"
        with pytest.raises(InvalidAction, match=match):
            env.to_action(bad)


@every_wrapper
def test_other_action_spaces_are_refused_with_advice(name: str) -> None:
    wrapper = ALL[name]
    for env in (gym.make("ImprovingBandit-v0"), wrapped(name)[0]):
        with pytest.raises(TypeError, match=r"`env` must have an `Assignment`.*wrap EgalAssign-v0"):
            wrapper(env)
    envs: Any = gym.make_vec(EGAL, num_envs=2)
    with pytest.raises(TypeError, match=r"BatchedAssignment.*`gym_fairbandits.wrappers.vector`"):
        wrapper(envs)
    with pytest.raises(TypeError, match="`env` must have an `Assignment`"):
        wrapper(None)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((6, 10, 1), "151,200"),
        ((9, 9, 1), "362,880"),
        ((17, 2, 17), "131,072"),
        ((10, 4, 3), "218,400"),
    ],
)
def test_too_many_assignments_are_refused_by_number(sizes: Sizes, count: str) -> None:
    users, arms, capacity = sizes
    sized = f"got {count} for {users} users, {arms} arms and capacity {capacity}; Ranked"
    with pytest.raises(ValueError, match=f"`env` must have at most 100,000 .*{sized}"):
        EnumeratedAssignment(make(sizes))
    with pytest.raises(ValueError, match=sized):
        vector.EnumeratedAssignment(
            gym.make_vec(EGAL, num_envs=2, num_users=users, num_arms=arms, capacity=capacity)
        )


@pytest.mark.parametrize("sizes", [(21, 21, 1), (300, 400, 3), (5000, 100_000, 1)], ids=str)
def test_hopeless_enumerations_are_refused_at_once(sizes: Sizes) -> None:
    with pytest.raises(ValueError, match=r"got (more than )?[\d,]+ for"):
        codes.enumeration(*sizes)


def test_the_largest_enumerations_are_built() -> None:
    assert codes.enumeration(1, codes.MAX_ENUMERATED, 1)[-1].tolist() == [99_999]
    assert codes.enumeration(40, 1, 40).tolist() == [[0] * 40]
    table = codes.enumeration(16, 2, 16)
    assert table.shape == (65_536, 16)
    assert not table.flags.writeable
    assert_array_equal(codes.enumeration_keys(table, 2), np.arange(65_536))


@small
def test_assignments_are_counted(sizes: Sizes) -> None:
    assert codes.count_assignments(*sizes) == len(legal(sizes))


def test_a_rotation_needs_groups_of_one_size() -> None:
    with pytest.raises(ValueError, match="`slots` must have a last axis that divides the 3 users"):
        rotation(np.arange(2), 0, 3)
    with pytest.raises(ValueError, match=r"divides the 3 users, got 0"):
        rotation(np.arange(0), 0, 3)
