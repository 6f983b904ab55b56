"""Action wrappers: nothing a learner emits collides, and every assignment is in reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidAction
from helpers_assignment import Sizes, legal, one_step, small, wrapped
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from gym_fairbandits.spaces import check_assignment, check_assignments, rotation
from gym_fairbandits.wrappers import codes


def tuples(assignments: Iterable[Any]) -> list[tuple[int, ...]]:
    return [tuple(np.asarray(assignment).tolist()) for assignment in assignments]


# --- All assignments, and nothing else ------------------------------------------------------------


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


# --- Worked by hand -------------------------------------------------------------------------------


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


# --- Nothing collides -----------------------------------------------------------------------------

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
