"""Action wrappers: nothing a learner emits collides, every assignment is in reach, SB3 trains."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import warnings
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import (
    Autoreset,
    FlattenObservation,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformObservation,
)
from helpers_agents import EGAL, fixed
from helpers_envs import PICTURELESS, assert_identical
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from gym_fairbandits.agents import OracleRotation
from gym_fairbandits.agents.egalitarian import RotatingAgent, top_arms
from gym_fairbandits.spaces import Assignment, check_assignment, check_assignments, rotation
from gym_fairbandits.wrappers import (
    EnumeratedAssignment,
    LehmerAssignment,
    PolicyRegret,
    RankedAssignment,
    RotatedAssignment,
    SequentialAssignment,
    codes,
    vector,
)

Ints = NDArray[np.int64]
Sizes = tuple[int, int, int]  # users, arms, capacity

ONE_STEP: dict[str, Any] = {
    "ranked": RankedAssignment,
    "lehmer": LehmerAssignment,
    "enumerated": EnumeratedAssignment,
}
ALL: dict[str, Any] = {**ONE_STEP, "sequential": SequentialAssignment, "rotated": RotatedAssignment}
VECTOR: dict[str, Any] = {
    "ranked": vector.RankedAssignment,
    "lehmer": vector.LehmerAssignment,
    "enumerated": vector.EnumeratedAssignment,
}
every_wrapper = pytest.mark.parametrize("name", ALL)
one_step = pytest.mark.parametrize("name", ONE_STEP)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: str(mode.value))

ALONE: list[Sizes] = [(users, arms, 1) for arms in range(1, 6) for users in range(1, arms + 1)]
SHARED: list[Sizes] = [
    (2, 1, 2),
    (3, 2, 2),
    (4, 2, 2),
    (1, 3, 2),
    (2, 3, 2),
    (3, 3, 2),
    (4, 3, 2),
    (5, 3, 2),
    (6, 3, 2),
    (3, 2, 3),
    (5, 2, 3),
    (3, 2, 5),  # one arm has room for more users than there are
]
alone = pytest.mark.parametrize("sizes", ALONE, ids=str)
shared = pytest.mark.parametrize("sizes", SHARED, ids=str)
small = pytest.mark.parametrize("sizes", [*ALONE, *SHARED], ids=str)


def make(sizes: Sizes = (3, 5, 1), **kwargs: Any) -> gym.Env[Any, Any]:
    users, arms, capacity = sizes
    settings = {"num_users": users, "num_arms": arms, "capacity": capacity, "horizon": 12, **kwargs}
    return gym.make(EGAL, **settings)


class Spy(gym.Wrapper[Any, Any, Any, Any]):
    """Records the assignments that reach the environment, as lists."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.seen: list[list[int]] = []

    def step(self, action: Any) -> Any:
        assert type(action) is np.ndarray
        assert action.dtype == np.int64
        assert action in self.env.action_space
        outcome = self.env.step(action)
        self.seen.append(action.tolist())
        return outcome


def wrapped(
    name: str, sizes: Sizes = (3, 5, 1), *, options: Any = None, **kwargs: Any
) -> tuple[Any, Spy]:
    """Return a wrapped environment, reset with seed 0, and the spy inside."""
    spy = Spy(make(sizes, **kwargs))
    env = ALL[name](spy, **(options or {}))
    env.reset(seed=0)
    return env, spy


def legal(sizes: Sizes) -> list[tuple[int, ...]]:
    """Return all legal assignments in lexicographic order, by trying all tuples."""
    users, arms, capacity = sizes
    return [
        choice
        for choice in itertools.product(range(arms), repeat=users)
        if all(choice.count(arm) <= capacity for arm in range(arms))
    ]


def tuples(assignments: Iterable[Any]) -> list[tuple[int, ...]]:
    return [tuple(np.asarray(assignment).tolist()) for assignment in assignments]


# --- All assignments, and nothing else ----------------------------------------------------------


@small
def test_lehmer_codes_reach_exactly_the_legal_assignments(sizes: Sizes) -> None:
    users, arms, capacity = sizes
    env, _ = wrapped("lehmer", sizes)
    slots = arms * capacity
    assert env.action_space == spaces.MultiDiscrete(list(range(slots, slots - users, -1)))
    actions = list(itertools.product(*(range(size) for size in env.action_space.nvec.tolist())))
    reached = tuples(env.action(list(action)) for action in actions)
    assert sorted(set(reached)) == legal(sizes)
    if capacity == 1:
        assert len(reached) == len(legal(sizes)) == math.perm(arms, users)
        assert reached == legal(sizes)  # in lexicographic order, too
        assert tuples(env.to_action(assignment) for assignment in reached) == actions


@small
def test_enumeration_is_a_bijection_in_lexicographic_order(sizes: Sizes) -> None:
    env, _ = wrapped("enumerated", sizes)
    every = legal(sizes)
    assert tuples(env.table) == every
    assert env.action_space == spaces.Discrete(len(every))
    assert tuples(env.action(number) for number in range(len(every))) == every
    assert [env.to_action(assignment) for assignment in every] == list(range(len(every)))


@small
def test_rankings_reach_exactly_the_legal_assignments(sizes: Sizes) -> None:
    _, arms, capacity = sizes
    env, _ = wrapped("ranked", sizes)
    slots = arms * capacity
    assert env.action_space == spaces.Box(-1, 1, (slots,), np.float32)
    if slots <= 6:
        rankings = np.array(list(itertools.permutations(range(slots))))
        reached = tuples(env.action(ranking) for ranking in rankings)
        assert sorted(set(reached)) == legal(sizes)


@small
@one_step
def test_to_action_is_a_right_inverse_within_the_action_space(name: str, sizes: Sizes) -> None:
    env, _ = wrapped(name, sizes)
    for assignment in legal(sizes):
        action = env.to_action(list(assignment))
        assert action in env.action_space
        back = env.action(action)
        assert back.dtype == np.int64
        assert tuple(back.tolist()) == assignment


@small
def test_sequences_of_any_arms_reach_exactly_the_legal_assignments(sizes: Sizes) -> None:
    users, arms, _ = sizes
    env, spy = wrapped("sequential", sizes, horizon=arms**users)
    every = set(legal(sizes))
    for sequence in itertools.product(range(arms), repeat=users):
        for arm in sequence:
            env.step(arm)
        reached = tuple(spy.seen[-1])
        assert reached in every
        if sequence in every:
            assert reached == sequence
            assert env.to_action(sequence).tolist() == list(sequence)


@small
def test_rotations_begin_with_any_assignment_that_keeps_groups_together(sizes: Sizes) -> None:
    users, _, capacity = sizes
    env, _ = wrapped("rotated", sizes)
    reached = 0
    for assignment in legal(sizes):
        groups = [assignment[first : first + capacity] for first in range(0, users, capacity)]
        leaders = [group[0] for group in groups]
        if all(len(set(group)) == 1 for group in groups) and len(set(leaders)) == len(leaders):
            action = env.to_action(assignment)
            assert action in env.action_space
            assert tuple(env.rotation(action)[0].tolist()) == assignment
            reached += 1
        else:
            with pytest.raises(InvalidAction, match=r"`assignment` must give each \d users"):
                env.to_action(assignment)
    assert reached == math.perm(sizes[1], -(-users // capacity))


# --- Worked by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "scores", "assignment"),
    [
        ((3, 4, 1), [0.1, 0.9, -0.5, 0.3], [1, 3, 0]),
        ((3, 4, 1), [0, 0, 0, 0], [0, 1, 2]),
        ((3, 4, 1), [-1, 1, 1, 1], [1, 2, 3]),
        ((3, 4, 1), [-1, 1, -1, -1], [1, 0, 2]),
        ((4, 4, 1), [math.nan, -math.inf, math.nan, math.inf], [3, 1, 0, 2]),
        ((2, 3, 1), [-0.0, 0.0, -0.0], [0, 1]),
        ((2, 3, 1), [5, 7, 300], [2, 1]),
        # Slots 0 and 1 are arm 0, slots 2 and 3 arm 1, slots 4 and 5 arm 2.
        ((3, 3, 2), [0, 0, 0, 0, 0, 0], [0, 0, 1]),
        ((3, 3, 2), [0.1, 0.9, 0.5, 0.8, -1, 0.85], [0, 2, 1]),
        ((4, 2, 2), [0.1, 0.4, 0.2, 0.3], [0, 1, 1, 0]),
    ],
)
def test_rankings_worked_by_hand(sizes: Sizes, scores: list[float], assignment: list[int]) -> None:
    env, _ = wrapped("ranked", sizes)
    assert env.action(scores).tolist() == assignment
    assert env.action(np.array(scores, dtype=np.float32)).tolist() == assignment


def test_scores_of_any_real_dtype_rank() -> None:
    env, _ = wrapped("ranked", (3, 4, 1))
    for dtype in ("uint8", "int8", "int64", "uint64", "float16", "float64", "longdouble"):
        # Negating unsigned integers would put 0 first.
        assert env.action(np.array([0, 3, 2, 3], dtype=dtype)).tolist() == [1, 3, 2]
    huge = np.array([0.25, 0.5, 0, 1], dtype=np.longdouble) * np.finfo(np.longdouble).max
    check_assignment(env.action(huge), 3, 4)  # infinite as float64, without a warning
    assert env.action(np.array([0.0, 1.0, 2.0, 3.0])[::-1]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("sizes", "digits", "assignment"),
    [
        ((3, 4, 1), [0, 0, 0], [0, 1, 2]),
        ((3, 4, 1), [3, 2, 1], [3, 2, 1]),
        ((3, 4, 1), [1, 1, 1], [1, 2, 3]),
        ((3, 4, 1), [2, 0, 1], [2, 0, 3]),
        ((4, 4, 1), [3, 0, 1, 0], [3, 0, 2, 1]),
        # Slots 0, 1 | 2, 3 | 4, 5: digit 1 is slot 1, then slot 2 of 0 2 3 4 5, then 3 of 0 3 4 5.
        ((3, 3, 2), [1, 1, 1], [0, 1, 1]),
        ((3, 3, 2), [5, 4, 3], [2, 2, 1]),
    ],
)
def test_lehmer_codes_worked_by_hand(
    sizes: Sizes, digits: list[int], assignment: list[int]
) -> None:
    env, _ = wrapped("lehmer", sizes)
    assert env.action(digits).tolist() == assignment
    assert env.action(np.array(digits, dtype=np.uint8)).tolist() == assignment
    if sizes[2] == 1:
        assert env.to_action(assignment).tolist() == digits


@one_step
def test_decoded_assignments_are_the_callers_own(name: str) -> None:
    env, _ = wrapped(name)
    action = env.action_space.sample()
    first = env.action(action)
    expected = first.tolist()
    first[:] = 77
    assert env.action(action).tolist() == expected


def test_inverses_worked_by_hand_where_arms_are_shared() -> None:
    ranked, _ = wrapped("ranked", (3, 3, 2))
    # User 0 takes slot 2 of arm 1, user 1 slot 0, user 2 slot 3; scores 1, 1/3, -1/3.
    scores = ranked.to_action([1, 0, 1])
    np.testing.assert_allclose(scores, [1 / 3, -1, 1, -1 / 3, -1, -1], rtol=1e-6)
    lehmer, _ = wrapped("lehmer", (3, 3, 2))
    # Slot 2 is digit 2; slot 0 digit 0; of 1 3 4 5, slot 3 is digit 1.
    assert lehmer.to_action([1, 0, 1]).tolist() == [2, 0, 1]
    enumerated, _ = wrapped("enumerated", (3, 2, 2))
    assert enumerated.table.tolist() == [
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
        [1, 0, 1],
        [1, 1, 0],
    ]


@pytest.mark.parametrize(
    ("sizes", "scores", "block"),
    [
        # Arms 2, 0, 3 in rotation: user u plays number u - i.
        ((3, 4, 1), [0.5, -1, 0.9, 0.2], [[2, 0, 3], [3, 2, 0], [0, 3, 2]]),
        ((1, 4, 1), [0.5, -1, 0.9, 0.2], [[2]]),
        ((3, 3, 1), [0, 0, 0], [[0, 1, 2], [2, 0, 1], [1, 2, 0]]),
        # Two groups of two.
        ((4, 3, 2), [0, 1, 2], [[2, 2, 1, 1], [1, 1, 2, 2]]),
        # Two do not divide three users: slots 1, 1, 0.
        ((3, 3, 2), [0.5, 1, math.nan], [[1, 1, 0], [0, 1, 1], [1, 0, 1]]),
        ((3, 2, 3), [0, 1], [[1, 1, 1]]),
        ((2, 2, 3), [0, 1], [[1, 1], [1, 1]]),
    ],
)
def test_blocks_worked_by_hand(sizes: Sizes, scores: list[float], block: list[list[int]]) -> None:
    env, spy = wrapped("rotated", sizes)
    assert env.action_space == spaces.Box(-1, 1, (sizes[1],), np.float32)
    assert env.block_length == len(block)
    assert env.rotation(scores).tolist() == block
    env.step(np.array(scores))
    assert spy.seen == block


# --- Nothing collides ---------------------------------------------------------------------------

MANY = 100_000
CROWDS: list[Sizes] = [(5, 10, 1), (6, 6, 1), (5, 3, 2), (7, 4, 2)]
crowds = pytest.mark.parametrize("sizes", CROWDS, ids=str)


def adversarial_scores(width: int, count: int) -> NDArray[np.float64]:
    """Return rows of scores: ties, NaN, infinities, clipped, extremes, all mixed."""
    rng = np.random.default_rng(0)
    scores: NDArray[np.float64] = rng.standard_normal((count, width)) * rng.choice(
        [1e-300, 1e-3, 1, 3, 1e300], (count, 1)
    )
    kind = np.arange(count) % 5
    clipped = kind == 1
    scores[clipped] = np.clip(scores[clipped], -1, 1)
    odd = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1, -1, 5e-324, 1.7e308, -1.7e308])
    mixed = kind == 2
    scores[mixed] = rng.choice(odd, (mixed.sum(), width))
    scores[kind == 3] = rng.choice(odd, ((kind == 3).sum(), 1))  # all tie
    scores[kind == 4] = rng.choice([-1.0, 1.0], ((kind == 4).sum(), width))
    return scores


@crowds
def test_no_ranking_collides(sizes: Sizes) -> None:
    users, arms, capacity = sizes
    env, _ = wrapped("ranked", sizes)
    scores = adversarial_scores(arms * capacity, MANY)
    checked = codes.checked_scores("scores", scores, scores.shape)
    assignments = codes.ranked(checked, users, capacity)
    check_assignments(assignments, MANY, users, arms, capacity)  # raises if one is not legal
    for row in range(600):
        assert_array_equal(env.action(scores[row]), assignments[row])
    with np.errstate(over="ignore"):
        for row in scores[:300].astype(np.float32):
            check_assignment(env.action(row), users, arms, capacity)


@crowds
def test_no_lehmer_code_collides(sizes: Sizes) -> None:
    users, arms, capacity = sizes
    env, _ = wrapped("lehmer", sizes)
    nvec = env.action_space.nvec
    digits = np.random.default_rng(0).integers(nvec, size=(MANY, users))
    digits[0], digits[1] = 0, nvec - 1
    assignments = codes.lehmer(digits, capacity)
    check_assignments(assignments, MANY, users, arms, capacity)
    assert_array_equal(
        codes.lehmer(codes.lehmer_digits(assignments, capacity), capacity), assignments
    )
    for row in range(600):
        assert_array_equal(env.action(digits[row]), assignments[row])


@crowds
def test_no_enumerated_assignment_collides(sizes: Sizes) -> None:
    users, arms, capacity = sizes
    env, _ = wrapped("enumerated", sizes)
    check_assignments(env.table, len(env.table), users, arms, capacity)
    numbers = np.random.default_rng(0).integers(len(env.table), size=MANY)
    assignments = env.table[numbers]
    keys = codes.enumeration_keys(assignments, arms)
    table_keys = codes.enumeration_keys(env.table, arms)
    assert_array_equal(np.searchsorted(table_keys, keys), numbers)
    for row in range(600):
        assert_array_equal(env.action(numbers[row]), assignments[row])


def test_no_sequence_collides() -> None:
    users, arms, capacity = sizes = (5, 3, 2)
    env, spy = wrapped("sequential", sizes, horizon=MANY)
    rng = np.random.default_rng(0)
    blocks = [
        rng.integers(arms, size=MANY // 2),
        np.zeros(MANY // 4, dtype=np.int64),
        np.full(MANY // 4, arms - 1),
    ]
    for arm in np.concatenate(blocks):
        env.step(arm)
    assert len(spy.seen) == MANY // users
    check_assignments(np.array(spy.seen), len(spy.seen), users, arms, capacity)


@crowds
def test_no_block_collides_and_each_user_has_every_slot_once(sizes: Sizes) -> None:
    users, arms, capacity = sizes
    env, _ = wrapped("rotated", sizes)
    scores = adversarial_scores(arms, MANY)
    slots = codes.block_slots(scores, users, capacity)
    length = env.block_length
    blocks = np.stack([rotation(slots, place, users) for place in range(length)], axis=1)
    check_assignments(blocks.reshape(-1, users), MANY * length, users, arms, capacity)
    turns = np.sort(blocks, axis=1)
    assert_array_equal(turns, np.repeat(np.sort(slots, axis=1)[:, :, None], users, axis=2))
    for row in range(300):
        assert_array_equal(env.rotation(scores[row]), blocks[row])


# --- Wrong actions, wrong environments ----------------------------------------------------------

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


# --- The wrapper adds nothing to the environment ------------------------------------------------

PLAYED: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "bernoulli": ((3, 5, 1), {}),
    "known": ((4, 4, 1), {"horizon_known": True, "instance": "gaussian"}),
    "shared": ((4, 3, 2), {"instance": "gaussian"}),
    "uneven": ((5, 3, 2), {"horizon_known": True}),
    "one_user": ((1, 3, 1), {"objective": "utilitarian"}),
    "limited": ((2, 4, 1), {"max_episode_steps": 7}),
}
every_game = pytest.mark.parametrize("game", PLAYED)


@every_game
@one_step
def test_stepping_the_wrapper_is_stepping_the_decoded_assignment(name: str, game: str) -> None:
    sizes, kwargs = PLAYED[game]
    env, inner = ONE_STEP[name](make(sizes, **kwargs)), make(sizes, **kwargs)
    env.action_space.seed(1)
    for seed in (0, None, 5):
        assert_identical(env.reset(seed=seed), inner.reset(seed=seed))
        ended = False
        while not ended:
            action = env.action_space.sample()
            ours, theirs = env.step(action), inner.step(env.action(action))
            assert_identical(ours, theirs)
            assert ours[0] in env.observation_space
            ended = ours[2] or ours[3]


@every_game
def test_stepping_a_round_is_stepping_its_assignment(game: str) -> None:
    sizes, kwargs = PLAYED[game]
    users, arms, capacity = sizes
    spy, inner = Spy(make(sizes, **kwargs)), make(sizes, **kwargs)
    env = SequentialAssignment(spy)
    env.action_space.seed(1)
    for seed in (0, None):
        latest: Any = inner.reset(seed=seed)
        observation, info = env.reset(seed=seed)
        assert_identical(info, latest[1])
        ended = False
        while not ended:
            taken = np.zeros(arms, dtype=np.int64)
            for user in range(users):
                assert observation in env.observation_space
                assert_array_equal(observation["turn"], [user])
                assert_array_equal(observation["taken"], taken)
                rest = {key: observation[key] for key in latest[0]}
                assert_identical(rest, latest[0])
                masks = env.action_masks()
                assert masks.dtype == np.bool_
                assert_array_equal(masks, taken < capacity)
                action = env.action_space.sample()
                outcome: Any = env.step(action)
                observation, reward, terminated, truncated, info = outcome
                if user < users - 1:
                    assert type(reward) is float
                    assert outcome[1:] == (0.0, False, False, {})
                    assert terminated is False
                    assert truncated is False
                    arm = int(np.argmax(observation["taken"] - taken))
                    # Going up from the action, all before this arm are full.
                    assert masks[arm]
                    passed = [(action + j) % arms for j in range((arm - action) % arms)]
                    assert not masks[passed].any()
                    taken[arm] += 1
            latest = inner.step(np.array(spy.seen[-1]))
            assert_identical((reward, terminated, truncated, info), latest[1:])
            assert_array_equal(observation["turn"], [0])
            assert_array_equal(observation["taken"], np.zeros(arms))
            ended = terminated or truncated
        assert inner.unwrapped.np_random.bit_generator.state == (
            env.unwrapped.np_random.bit_generator.state
        )


@every_game
def test_stepping_a_block_is_stepping_its_assignments(game: str) -> None:
    sizes, kwargs = PLAYED[game]
    env, inner = RotatedAssignment(make(sizes, **kwargs)), make(sizes, **kwargs)
    env.action_space.seed(1)
    lengths = set()
    for seed in (0, None):
        assert_identical(env.reset(seed=seed), inner.reset(seed=seed))
        ended = False
        while not ended:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, info = env.step(action)
            outcomes: list[Any] = []
            for arms in env.rotation(action):
                outcomes.append(inner.step(arms))
                if outcomes[-1][2] or outcomes[-1][3]:
                    break
            assert type(reward) is float
            assert reward == sum(float(outcome[1]) for outcome in outcomes)
            assert_identical((terminated, truncated), outcomes[-1][2:4])
            assert_identical(observation, outcomes[-1][0])
            users = [outcome[4]["user_rewards"] for outcome in outcomes]
            assert set(info) == set(outcomes[-1][4])
            assert_array_equal(info["user_rewards"], sum(users))
            lengths.add(len(outcomes))
            ended = terminated or truncated
    horizon = kwargs.get("max_episode_steps", 12)
    expected = {env.block_length, horizon % env.block_length} - {0}
    assert lengths == expected


@every_wrapper
def test_ends_are_marked_as_the_environment_marks_them(name: str) -> None:
    for known in (False, True):
        env, spy = wrapped(name, horizon=4, horizon_known=known)
        flags: list[tuple[bool, bool]] = []
        steps = 0
        while not flags or flags[-1] == (False, False):
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            assert type(terminated) is bool
            assert type(truncated) is bool
            flags.append((terminated, truncated))
            steps += 1
        assert flags[-1] == (known, not known)
        assert info["user_rewards"].shape == (3,)
        assert len(spy.seen) == 4
        # Rounds of 3 substeps; a block of 3 steps and one that is cut short.
        assert steps == {"sequential": 12, "rotated": 2}.get(name, 4)


@every_wrapper
def test_a_limit_inside_counts_the_environments_steps_and_one_outside_the_wrappers(
    name: str,
) -> None:
    for outside in (False, True):
        env, spy = wrapped(name, max_episode_steps=None if outside else 5)
        if outside:
            env = TimeLimit(env, max_episode_steps=5)
            env.reset(seed=0)
        steps, truncated = 0, False
        while not truncated:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            assert not terminated
            steps += 1
        if outside:
            inner = {"sequential": 1, "rotated": 12}.get(name, 5)
            assert (steps, len(spy.seen)) == ({"rotated": 4}.get(name, 5), inner)
        else:
            assert (steps, len(spy.seen)) == ({"sequential": 15, "rotated": 2}.get(name, 5), 5)


@every_wrapper
def test_reset_is_needed_before_and_after_an_episode(name: str) -> None:
    env = ALL[name](make(horizon=3))
    action = env.action_space.sample()
    with pytest.raises(ResetNeeded):
        env.step(action)
    for _ in range(2):
        env.reset(seed=0)
        while not any(env.step(action)[2:4]):
            pass
        for _ in range(2):
            with pytest.raises(ResetNeeded):
                env.step(action)
    env.reset()
    env.step(action)


@every_wrapper
@pytest.mark.parametrize("inside", [False, True])
def test_regret_is_the_same_inside_and_outside(name: str, inside: bool) -> None:
    plain, spy = wrapped(name, horizon=6)
    plain.action_space.seed(3)
    bare: Any = make(horizon=6)
    env: Any = ALL[name](PolicyRegret(bare)) if inside else PolicyRegret(ALL[name](bare))
    env.reset(seed=0)
    ended = False
    while not ended:
        action = plain.action_space.sample()
        plain.step(action)
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        assert ("policy_regret" in info) == ended
    twin = PolicyRegret(make(horizon=6))
    twin.reset(seed=0)
    for arms in spy.seen:
        expected = twin.step(np.array(arms))[4]
    if name == "rotated":
        expected.pop("user_rewards")
        info.pop("user_rewards")
    assert_identical(info, expected)


@every_wrapper
def test_returned_arrays_are_fresh(name: str) -> None:
    env, _ = wrapped(name, horizon=30)
    env.action_space.seed(0)
    kept = [env.reset(seed=0), *(env.step(env.action_space.sample()) for _ in range(8))]
    reference = copy.deepcopy(kept)
    twin, _ = wrapped(name, horizon=30)
    twin.action_space.seed(0)
    twin.reset(seed=0)
    for number in range(1, 9):  # vandalise whatever was returned; the next step must not mind
        outcome = twin.step(twin.action_space.sample())
        assert_identical(outcome, reference[number])
        for value in [*outcome[0].values(), *outcome[4].values()]:
            value[...] = 77
    assert_identical(kept, reference)


@every_wrapper
def test_actions_are_not_written_to(name: str) -> None:
    env, _ = wrapped(name)
    action = np.array(env.action_space.sample())
    before = action.copy()
    action.flags.writeable = False
    env.step(action)
    assert_array_equal(action, before)


@every_wrapper
@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies_continue_in_the_middle_of_an_episode(name: str, how: str) -> None:
    env = ALL[name](make())
    env.action_space.seed(0)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.step(env.action_space.sample())
    other = pickle.loads(pickle.dumps(env)) if how == "pickle" else copy.deepcopy(env)
    for _ in range(2):
        action = env.action_space.sample()
        assert_identical(other.step(action), env.step(action))


@every_wrapper
def test_a_spec_makes_the_environment_again(name: str) -> None:
    options = {"strict": True} if name == "sequential" else {}
    env = ALL[name](make(), **options)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    assert type(again) is ALL[name]
    assert again.action_space == env.action_space
    assert again.observation_space == env.observation_space
    if name == "sequential":
        assert again.get_wrapper_attr("strict") is True


@every_wrapper
def test_statistics_and_autoreset_work_outside(name: str) -> None:
    env = Autoreset(RecordEpisodeStatistics(ALL[name](make(horizon=3))))
    env.action_space.seed(0)
    env.reset(seed=0)
    per_episode = {"sequential": 9, "rotated": 1}.get(name, 3)
    for _ in range(2):
        for _ in range(per_episode):
            _, _, _, truncated, info = env.step(env.action_space.sample())
        assert truncated
        assert info["episode"]["l"] == per_episode
        assert env.step(env.action_space.sample())[4] == {}  # this one resets


# --- One user at a time -------------------------------------------------------------------------


def test_a_round_worked_by_hand() -> None:
    # Five users, three arms for two each; means 0.5, 0.25, 1.
    env, spy = wrapped("sequential", (5, 3, 2), instance=fixed([0.5, 0.25, 1.0]))
    assert env.action_space == spaces.Discrete(3)
    extra = {name: env.observation_space[name] for name in ("turn", "taken")}
    assert extra == {
        "turn": spaces.Box(0, 4, (1,), np.int64),
        "taken": spaces.Box(0, 2, (3,), np.int64),
    }
    steps = [  # action, taken and masks thereafter
        (2, [0, 0, 1], [True, True, True]),
        (2, [0, 0, 2], [True, True, False]),
        (2, [1, 0, 2], [True, True, False]),  # full: on to arm 0
        (0, [2, 0, 2], [False, True, False]),
    ]
    for turn, (action, taken, masks) in enumerate(steps):
        observation, reward, _, _, info = env.step(np.array(action))
        assert observation["turn"].tolist() == [turn + 1]
        assert observation["taken"].tolist() == taken
        assert env.action_masks().tolist() == masks
        assert observation["pulls"].tolist() == [0, 0, 0]
        assert (reward, info) == (0.0, {})
    observation, reward, _, _, info = env.step(2)  # full, as is 0: on to arm 1
    assert spy.seen == [[2, 2, 0, 0, 1]]
    assert reward == 0.25
    assert info["user_rewards"].tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert observation["pulls"].tolist() == [1, 1, 1]
    assert observation["turn"].tolist() == [0]
    assert observation["taken"].tolist() == [0, 0, 0]
    assert env.action_masks().all()


def test_strict_raises_where_an_arm_is_full_and_the_user_may_try_again() -> None:
    env, spy = wrapped("sequential", (3, 3, 1), options={"strict": True})
    assert env.strict is True
    env.step(1)
    for _ in range(2):
        message = r"`action` must be an arm with a place left, of \[0, 2\], got arm 1 for user 1"
        with pytest.raises(InvalidAction, match=message):
            env.step(1)
        assert env.action_masks().tolist() == [True, False, True]
    observation = env.step(2)[0]
    assert observation["turn"].tolist() == [2]
    with pytest.raises(InvalidAction, match=r"of \[0\], got arm 2 for user 2"):
        env.step(2)
    env.step(0)
    assert spy.seen == [[1, 2, 0]]
    rng = np.random.default_rng(0)
    while not any(env.step(rng.choice(np.flatnonzero(env.action_masks())))[2:4]):
        pass
    assert len(spy.seen) == 12


def test_a_masked_sample_is_free() -> None:
    env, spy = wrapped("sequential", (4, 2, 2), options={"strict": True}, horizon=50)
    env.action_space.seed(0)
    for _ in range(4 * 50):
        env.step(env.action_space.sample(mask=env.action_masks().astype(np.int8)))
    assert {tuple(arms) for arms in spy.seen} == set(legal((4, 2, 2)))


def test_reset_in_the_middle_of_a_round_starts_it_afresh() -> None:
    env, spy = wrapped("sequential", (3, 3, 1))
    env.step(0)
    env.step(1)
    with pytest.raises(TypeError, match="instance"):
        env.reset(options={"instance": 3})
    assert env.action_masks().tolist() == [False, False, True]  # an error changes nothing
    observation, _ = env.reset(seed=1)
    assert observation["turn"].tolist() == [0]
    assert observation["taken"].tolist() == [0, 0, 0]
    assert env.action_masks().all()
    for arm in (2, 1, 0):
        env.step(arm)
    assert spy.seen == [[2, 1, 0]]


def test_an_error_of_the_environment_keeps_the_round() -> None:
    class Failing(gym.Wrapper[Any, Any, Any, Any]):
        broken = True

        def step(self, action: Any) -> Any:
            if self.broken:
                raise RuntimeError("out of order")
            return self.env.step(action)

    failing = Failing(make((3, 3, 1)))
    env = SequentialAssignment(failing)
    env.reset(seed=0)
    env.step(2)
    env.step(0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of order"):
            env.step(1)
        assert env.action_masks().tolist() == [False, True, False]
    failing.broken = False
    observation = env.step(1)[0]
    assert observation["pulls"].tolist() == [1, 1, 1]


def test_the_sequential_wrapper_needs_a_dict_it_can_extend() -> None:
    with pytest.raises(TypeError, match="`env` must have a Dict observation space"):
        SequentialAssignment(FlattenObservation(make()))
    taken: Any = TransformObservation(
        make(),
        lambda observation: {**observation, "taken": 0},
        spaces.Dict({**make().observation_space.spaces, "taken": spaces.Discrete(2)}),  # type: ignore[attr-defined]
    )
    with pytest.raises(ValueError, match="`env` must not observe `taken` already, got Discrete"):
        SequentialAssignment(taken)
    with pytest.raises(TypeError, match="`strict` must be a bool, got 1"):
        SequentialAssignment(make(), strict=1)  # type: ignore[arg-type]


def test_observations_of_any_kind_are_copied() -> None:
    inner: Any = TransformObservation(
        make(),
        lambda observation: {"sums": {"arms": observation["reward_sum"]}},
        spaces.Dict({"sums": spaces.Dict({"arms": make().observation_space["reward_sum"]})}),  # type: ignore[index]
    )
    env = SequentialAssignment(inner)
    first, _ = env.reset(seed=0)
    second = env.step(0)[0]
    assert second in env.observation_space
    assert_identical(second["sums"], first["sums"])
    assert second["sums"]["arms"] is not first["sums"]["arms"]


# --- Sets in rotation ---------------------------------------------------------------------------


class FixedSet(RotatingAgent):
    """Rotates over the arms of the highest scores, as EgalUCB over those of the highest index."""

    def __init__(self, scores: Any, capacity: int = 1) -> None:
        super().__init__(capacity)
        self.scores = np.array(scores)

    def _choose(self, observation: Any, steps: Any, rows: Any, count: int) -> Any:
        return np.tile(top_arms(self.scores, count), (len(rows), 1))


def seen_of(env: Any, agent: Any, spy: Spy) -> list[list[int]]:
    observation, _ = env.reset(seed=0)
    ended = False
    while not ended:
        observation, _, terminated, truncated, _ = env.step(agent.act(observation))
        ended = terminated or truncated
    return spy.seen


@pytest.mark.parametrize(
    "sizes", [(1, 3, 1), (4, 6, 1), (5, 5, 1), (4, 3, 2), (6, 2, 3), (3, 2, 3)]
)
def test_blocks_are_those_of_the_rotating_agents(sizes: Sizes) -> None:
    scores = np.random.default_rng(0).random(sizes[1])
    env, spy = wrapped("rotated", sizes, horizon=17)
    while not any(env.step(scores)[2:4]):
        pass
    other = Spy(make(sizes, horizon=17))
    assert seen_of(other, FixedSet(scores, sizes[2]), other) == spy.seen


@pytest.mark.parametrize(
    "sizes", [(4, 6, 1), (4, 3, 2), (3, 3, 2), (5, 3, 2), (7, 4, 3), (2, 3, 4)]
)
def test_the_means_as_scores_play_as_the_oracle_and_have_no_regret(sizes: Sizes) -> None:
    means = np.random.default_rng(1).random(sizes[1])
    settings: dict[str, Any] = {"instance": fixed(means.tolist()), "horizon": 6 * sizes[0]}
    spy = Spy(make(sizes, **settings))
    env = PolicyRegret(RotatedAssignment(spy))
    env.reset(seed=0)
    ended = False
    while not ended:
        _, reward, terminated, truncated, info = env.step(means)
        assert np.ptp(info["user_rewards"]) <= 1e-12
        assert reward == pytest.approx(info["user_rewards"].min(), rel=1e-12)
        ended = terminated or truncated
    assert info["policy_regret"] == pytest.approx(0, abs=1e-12 * info["optimal_return"])
    assert info["realized_regret"] == pytest.approx(0, abs=1e-12 * info["optimal_return"])
    other = Spy(make(sizes, **settings))
    assert seen_of(other, OracleRotation(other), other) == spy.seen


def test_a_block_passes_on_what_an_environment_without_user_rewards_says() -> None:
    class Silent(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, _ = self.env.step(action)
            return observation, reward, terminated, truncated, {"note": 1.5}

    env = RotatedAssignment(Silent(make()))
    env.reset(seed=0)
    assert env.step(np.zeros(5))[4] == {"note": 1.5}


# --- The checkers -------------------------------------------------------------------------------

CHECKED: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "alone": ((3, 5, 1), {"horizon": 1000}),
    "known": ((3, 3, 1), {"horizon": 1000, "horizon_known": True, "instance": "gaussian"}),
    "shared": ((5, 3, 2), {"horizon": 1000}),
    "one_user": ((1, 3, 1), {"horizon": 1000}),
    "one_arm": ((1, 1, 1), {"horizon": 1000}),
}


@pytest.mark.parametrize("case", CHECKED)
@every_wrapper
def test_gymnasiums_checker_finds_no_fault(name: str, case: str) -> None:
    sizes, kwargs = CHECKED[case]
    env = ALL[name](make(sizes, **kwargs))
    with warnings.catch_warnings():
        # It says so of every wrapper.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        check_env(env, skip_render_check=PICTURELESS)


@pytest.mark.parametrize("case", CHECKED)
@every_wrapper
def test_the_checker_of_stable_baselines_is_silent(
    name: str, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    sizes, kwargs = CHECKED[case]
    for env in (ALL[name](make(sizes, **kwargs)), PolicyRegret(ALL[name](make(sizes, **kwargs)))):
        checker.check_env(env)  # warnings are errors
    assert capsys.readouterr() == ("", "")


# --- Learners -----------------------------------------------------------------------------------

LEARNERS: list[tuple[str, str, bool]] = [
    ("ranked", "PPO", False),
    ("ranked", "A2C", False),
    ("ranked", "SAC", False),
    ("ranked", "TD3", True),
    ("lehmer", "PPO", False),
    ("lehmer", "A2C", True),
    ("enumerated", "DQN", False),
    ("enumerated", "DQN", True),
    ("enumerated", "PPO", False),
    ("sequential", "PPO", False),
    ("sequential", "DQN", True),
    ("sequential", "MaskablePPO", False),
    ("sequential", "MaskablePPO", True),
    ("rotated", "PPO", False),
    ("rotated", "SAC", True),
]
SETTINGS: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 1},
    "MaskablePPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 1},
    "A2C": {"n_steps": 8},
    "DQN": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8},
    "SAC": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8, "train_freq": 4},
    "TD3": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8, "train_freq": 4},
}


def learner(algorithm: str, env: Any, flat: bool) -> Any:
    module = "sb3_contrib" if algorithm == "MaskablePPO" else "stable_baselines3"
    build = getattr(pytest.importorskip(module), algorithm)
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    kwargs = {"policy_kwargs": {"net_arch": [8]}, **SETTINGS[algorithm]}
    return build(policy, env, seed=0, device="cpu", **kwargs)


@pytest.mark.parametrize(("name", "algorithm", "flat"), LEARNERS)
def test_learners_train_without_a_collision(name: str, algorithm: str, flat: bool) -> None:
    spy = Spy(make((3, 5, 1) if name == "rotated" else (3, 3, 2)))  # which checks each action
    env: Any = ALL[name](spy, **({"strict": True} if algorithm == "MaskablePPO" else {}))
    model = learner(algorithm, FlattenObservation(env) if flat else env, flat)
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    after = model.policy.state_dict()
    assert any(not before[key].equal(after[key]) for key in before)
    assert all(bool(value.isfinite().all()) for value in after.values())
    assert len(spy.seen) >= 64 // 3


def test_masks_reach_the_evaluation_of_sb3_contrib() -> None:
    contrib = pytest.importorskip("sb3_contrib.common.maskable.evaluation")
    plain = pytest.importorskip("stable_baselines3.common.evaluation")
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")
    strict = [SequentialAssignment(Spy(make((5, 5, 1))), strict=True) for _ in range(2)]
    venv = vec_envs.DummyVecEnv([lambda env=env: env for env in strict])
    model = learner("MaskablePPO", venv, flat=False)
    for deterministic in (True, False):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Evaluation environment is not wrapped")
            contrib.evaluate_policy(model, venv, n_eval_episodes=4, deterministic=deterministic)
    for env in strict:
        assert len(env.env.seen) >= 4 * 12  # type: ignore[attr-defined]
    # Without masks the network meets full arms: strict says so, else the next arm is taken.
    blind = make((5, 5, 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Evaluation environment is not wrapped")
        with pytest.raises(InvalidAction, match="`action` must be an arm with a place left"):
            plain.evaluate_policy(model, SequentialAssignment(blind, strict=True), 1)
        plain.evaluate_policy(model, SequentialAssignment(Spy(make((5, 5, 1)))), 2)


# --- Vector environments ------------------------------------------------------------------------


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
