"""The spaces of assignments, judged by enumeration, by chi-square and inside vector envs."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections import Counter
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, FrameStackObservation
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray
from scipy.stats import chisquare

from gym_fairbandits.spaces import (
    Assignment,
    BatchedAssignment,
    check_assignment,
    check_assignments,
)

# Untyped, as their declared results are unions of everything that any space may give.
flat_utils: Any = gym.spaces.utils
batch_utils: Any = gym.vector.utils

SIZES = [(1, 1, 1), (2, 2, 1), (2, 3, 1), (3, 4, 1), (3, 2, 2), (4, 3, 2), (3, 3, 3), (2, 1, 5)]
SINGLE, BATCHED = Assignment(3, 5), BatchedAssignment(Assignment(3, 4, 2), 4)
NESTED = BatchedAssignment(BATCHED, 2)
every_space = pytest.mark.parametrize("space", [SINGLE, BATCHED, NESTED])


def legal(num_users: int, num_arms: int, capacity: int = 1) -> list[tuple[int, ...]]:
    every = product(range(num_arms), repeat=num_users)
    return [arms for arms in every if max(Counter(arms).values()) <= capacity]


def legal_under(mask: NDArray[Any], capacity: int) -> set[tuple[int, ...]]:
    users, num_arms = np.arange(mask.shape[0]), mask.shape[1]
    return {arms for arms in legal(len(users), num_arms, capacity) if mask[users, arms].all()}


def counts(space: Assignment, draws: int, **law: Any) -> Counter[tuple[int, ...]]:
    return Counter(tuple(space.sample(**law).tolist()) for _ in range(draws))


class ServeEnv(gym.Env[dict[str, Any], NDArray[np.int64]]):
    """Observes the last assignment; refuses illegal ones."""

    def __init__(self, capacity: int = 1) -> None:
        self.capacity = capacity
        self.action_space = Assignment(3, 4, capacity)
        self.observation_space = spaces.Dict(
            last=Assignment(3, 4, capacity), steps=spaces.Box(0, 1e9, (1,), np.float64)
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return {"last": np.arange(3), "steps": np.zeros(1)}, {}

    def step(self, action: NDArray[np.int64]) -> Any:
        action = check_assignment(action, 3, 4, self.capacity)
        return {"last": action, "steps": np.ones(1)}, 0.0, False, False, {}


# --- Membership -------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_contains_exactly_the_legal_assignments(size: tuple[int, int, int]) -> None:
    num_users, num_arms, capacity = size
    space, members = Assignment(*size), set(legal(*size))
    for arms in product(range(-1, num_arms + 1), repeat=num_users):
        expected = arms in members
        for form in (arms, list(arms), np.array(arms), np.array(arms, dtype=np.int8)):
            assert space.contains(form) is expected
        batch = np.array([np.arange(num_users) // capacity, arms])
        for form in (batch, batch.tolist(), tuple(batch)):
            assert BatchedAssignment(space, 2).contains(form) is expected


def test_what_is_no_array_of_arms_is_no_member() -> None:
    values: list[Any] = [[True, 0], [0.0, 1.0], [np.nan, 1], [0], [[0], [1]], [0, "1"], [0, 10**30]]
    values += [np.array([0, 1], dtype=dtype) for dtype in (np.float64, np.bool_, object)]
    values += [np.array([[0, 1]]), np.arange(3), np.array([0, 2**64 - 1], dtype=np.uint64)]
    for value in [*values, "01", {0, 1}, 0, np.int64(0), None, []]:
        assert value not in Assignment(2, 3)
        assert [[0, 1], value] not in BatchedAssignment(Assignment(2, 3), 2)
        with pytest.raises(InvalidAction, match="`action` must"):
            check_assignment(value, 2, 3)
        with pytest.raises(InvalidAction, match="`actions` must"):
            check_assignments([[0, 1], value], 2, 2, 3)
    with pytest.raises(InvalidAction, match=r"shape \(3,\), got dtype float64 and shape \(2,\)$"):
        check_assignment(np.zeros(2), 3, 5)
    with pytest.raises(InvalidAction, match=r"shape \(2, 3\), got dtype int64 and shape \(3,\)$"):
        check_assignments(np.arange(3), 2, 3, 5)


@pytest.mark.parametrize("num_users", [5, 128, 129, 256])
@pytest.mark.parametrize("num_arms", [256, 10_000])
def test_every_size_finds_the_one_conflict(num_users: int, num_arms: int) -> None:
    good = np.random.default_rng(num_users).permutation(num_arms)[:num_users]
    bad = good.copy()
    bad[3] = bad[1]
    for capacity in (1, 2):
        space = Assignment(num_users, num_arms, capacity)
        assert good in space
        assert (bad in space) is (capacity == 2)
        assert (np.stack([good, bad]) in BatchedAssignment(space, 2)) is (capacity == 2)
    for arm in (-1, num_arms):
        bad[3] = arm
        assert bad not in Assignment(num_users, num_arms, 2)


@pytest.mark.parametrize(
    ("action", "capacity", "message"),
    [
        ([3, 0, 3], 1, "must give no arm to more than 1 user, got arm 3 for users 0 and 2"),
        ([1, 1, 1], 2, "must give no arm to more than 2 users, got arm 1 for users 0, 1 and 2"),
        ([0, 5, 1], 1, "must give every user an arm from 0 to 4, got arm 5 for user 1"),
        ([0, 1, -1], 1, "must give every user an arm from 0 to 4, got arm -1 for user 2"),
    ],
)
def test_errors_name_arm_and_users(action: list[int], capacity: int, message: str) -> None:
    with pytest.raises(InvalidAction, match=f"^`action` {message}$"):
        check_assignment(np.array(action), 3, 5, capacity)
    with pytest.raises(InvalidAction, match=f"^`actions` {message} in sub-environment 1$"):
        check_assignments([[0, 1, 2], action], 2, 3, 5, capacity)


def test_checked_arrays_are_int64() -> None:
    action = np.array([2, 0])
    for form in (action, action.astype(np.uint8), action.astype(">i4"), [2, 0], (np.int32(2), 0)):
        checked = check_assignment(form, 2, 3)
        assert checked.dtype == np.int64
        assert checked.tolist() == [2, 0]
    assert not np.shares_memory(check_assignments(action[None], 1, 2, 3), action)


def test_rows_that_do_not_count_may_be_illegal() -> None:
    batch = np.array([[9, 9], [7, 7], [2, 0]])
    checked = check_assignments(batch, 3, 2, 3, rows=np.array([False, False, True]))
    assert checked.tolist() == batch.tolist()
    assert check_assignments(batch, 3, 2, 3, rows=np.zeros(3, dtype=bool)).shape == (3, 2)
    with pytest.raises(InvalidAction, match="arm 7 for users 0 and 1 in sub-environment 1"):
        check_assignments(batch, 3, 2, 3, rows=np.array([False, True, True]))
    with pytest.raises(TypeError, match="`rows` must be a boolean array, got dtype int64"):
        check_assignments(batch, 3, 2, 3, rows=np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"`rows` must have shape \(3,\), got \(1,\)"):
        check_assignments(batch, 3, 2, 3, rows=np.array([True]))


# --- Sampling ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(2, 3, 1), (3, 3, 1), (3, 5, 1), (3, 3, 3), (2, 2, 9)])
def test_samples_are_uniform(size: tuple[int, int, int]) -> None:
    members = legal(*size)
    if size[2] == 1:
        assert len(members) == math.perm(size[1], size[0])
    draws = 200 * len(members)
    batch = BatchedAssignment(Assignment(*size), draws, seed=2).sample()
    for seen in (counts(Assignment(*size, seed=1), draws), Counter(map(tuple, batch.tolist()))):
        assert seen.keys() == set(members)
        assert chisquare([seen[arms] for arms in members]).pvalue > 0.01


def test_law_between_capacities_is_the_documented_one() -> None:
    # A repeated arm: probability 1/18 if its users draw first, else 1/27, on average 7/162.
    members, draws = legal(3, 3, 2), 6000
    expected = [draws * (1 / 27 if len(set(arms)) == 3 else 7 / 162) for arms in members]
    space, ones = Assignment(3, 3, 2, seed=0), np.ones((3, 3))
    batch = BatchedAssignment(space, draws, seed=1).sample()
    weighted, masked = counts(space, draws, probability=ones), counts(space, draws, mask=ones > 0)
    for seen in (weighted, masked, Counter(map(tuple, batch.tolist()))):
        assert chisquare([seen[arms] for arms in members], expected).pvalue > 0.01


@pytest.mark.parametrize("size", [(3, 3, 1), (2, 3, 1), (3, 2, 2), (2, 2, 2)])
def test_every_mask_has_full_support_or_is_refused(size: tuple[int, int, int]) -> None:
    weights = np.random.default_rng(4).uniform(1, 2, size[:2])
    space, refused = Assignment(*size, seed=3), 0
    for cells in product([False, True], repeat=size[0] * size[1]):
        mask = np.array(cells).reshape(size[:2])
        if members := legal_under(mask, size[2]):
            assert counts(space, 40 * len(members), mask=mask).keys() == members
            assert counts(space, 40 * len(members), probability=weights * mask).keys() == members
        else:
            refused += 1
            with pytest.raises(ValueError, match="`mask` must leave a legal assignment, but user"):
                space.sample(mask)
    assert refused > 0


def test_masked_draws_follow_the_documented_law() -> None:
    # Whoever draws first takes the contested arm 1 with probability 1/2, which leaves the other
    # one arm; (0, 2) needs both to pass it by: 2/8, against 3/8 for the others.
    mask = np.array([[1, 1, 0], [0, 1, 1]], dtype=np.int8)
    seen = counts(Assignment(2, 3, seed=0), 4000, mask=mask)
    assert chisquare([seen[0, 1], seen[1, 2], seen[0, 2]], [1500, 1500, 1000]).pvalue > 0.01
    weights = np.array([[3, 1], [1, 1]])
    seen = counts(Assignment(2, 2, seed=0), 4000, probability=weights)
    assert chisquare([seen[0, 1], seen[1, 0]], [2500, 1500]).pvalue > 0.01


def test_tight_masks_and_extreme_weights() -> None:
    size, ring = 60, np.eye(60, dtype=bool)
    ring |= np.roll(ring, 1, axis=1)
    draws = {tuple(Assignment(size, size, seed=s).sample(ring).tolist()) for s in range(20)}
    assert draws == {tuple(range(size)), (*range(1, size), 0)}
    for scale in (5e-324, 1e308):
        assert len(counts(Assignment(2, 3, seed=0), 99, probability=np.full((2, 3), scale))) == 6


def test_impossible_masks_name_the_users_short_of_arms() -> None:
    mask = np.ones((4, 5), dtype=bool)
    mask[[0, 2, 3]] = np.array([[0, 1, 0, 0, 1]])
    with pytest.raises(ValueError, match=r"but users 0, 2 and 3 may use only arms 1 and 4$"):
        Assignment(4, 5).sample(mask)
    mask[2] = False
    with pytest.raises(ValueError, match=r"in row 1, but user 2 may use no arm$"):
        BatchedAssignment(Assignment(4, 5), 2).sample(np.stack([np.ones((4, 5), bool), mask]))
    with pytest.raises(ValueError, match="`probability` must leave a legal assignment, but user 2"):
        Assignment(4, 5).sample(probability=mask.astype(float))


def test_bad_laws_are_refused() -> None:
    space, full = Assignment(2, 3), np.ones((2, 3))
    for value in (np.nan, -1, np.inf):
        with pytest.raises(ValueError, match=f"finite weights >= 0, got {value}"):
            space.sample(probability=full * value)
    with pytest.raises(ValueError, match=r"`probability` must have shape \(2, 3\), got \(3,\)"):
        space.sample(probability=np.ones(3))
    with pytest.raises(TypeError, match="`probability` must be a float array, got dtype <U"):
        space.sample(probability=full.astype(str))
    with pytest.raises(TypeError, match="`mask` must be a boolean array, got dtype float64"):
        space.sample(full)
    with pytest.raises(ValueError, match=r"`mask` must hold only .* 0 and 1, got 2"):
        space.sample(np.full((2, 3), 2))
    with pytest.raises(ValueError, match="must not both be given"):
        space.sample(full.astype(bool), full)


def test_batched_masks_apply_per_row() -> None:
    space = BatchedAssignment(Assignment(2, 2), 2, seed=0)
    masks = (np.eye(2, dtype=bool), ~np.eye(2, dtype=bool))
    assert space.sample(mask=masks).tolist() == [[0, 1], [1, 0]]
    assert space.sample(probability=np.stack(masks) * 0.3).tolist() == [[0, 1], [1, 0]]


# --- Seeds, copies, equality, text ------------------------------------------------------


@every_space
def test_seeds_copies_and_json(space: Assignment | BatchedAssignment) -> None:
    space.seed(7)
    first = [space.sample() for _ in range(20)]
    assert all(sample in space and sample.dtype == np.int64 for sample in first)
    twins = [copy.deepcopy(space), pickle.loads(pickle.dumps(space))]
    later = space.sample()
    for twin in twins:
        assert twin == space
        np.testing.assert_array_equal(twin.sample(), later)
    space.seed(7)
    np.testing.assert_array_equal(first, [space.sample() for _ in range(20)])
    back = space.from_jsonable(json.loads(json.dumps(space.to_jsonable(first))))
    np.testing.assert_array_equal(back, first)
    assert all(sample.dtype == np.int64 for sample in back)
    with pytest.raises(ValueError, match="`sample_n` must hold members of"):
        space.from_jsonable([[0.5, 1, 2]])
    assert eval(repr(space)) == space


def test_equality() -> None:
    single: Any = Assignment(3, 3)
    batched, multi = batch_utils.batch_space(single, 2), spaces.MultiDiscrete([3, 3, 3])
    assert single == Assignment(3, 3, 1, seed=9)
    assert batched == BatchedAssignment(single, 2, seed=9)
    for other in (Assignment(2, 3), Assignment(3, 4), Assignment(3, 3, 2), multi, batched, "a"):
        assert single != other
        assert other != single
    for other in (BatchedAssignment(single, 3), NESTED, batch_utils.batch_space(multi, 2)):
        assert batched != other
        assert other != batched


def test_bad_sizes_are_refused() -> None:
    for sizes in ((0, 3), (2, 0), (2, 3, 0)):
        with pytest.raises(ValueError, match="` must be at least 1, got 0"):
            Assignment(*sizes)
    with pytest.raises(ValueError, match=r"capacity \* num_arms = 6, got 7"):
        Assignment(7, 3, 2)
    with pytest.raises(TypeError, match="`capacity` must be an integer, got True"):
        Assignment(2, 3, True)
    with pytest.raises(ValueError, match="`n` must be at least 1, got 0"):
        BatchedAssignment(Assignment(2, 3), 0)
    single: Any = spaces.Discrete(3)
    with pytest.raises(TypeError, match=r"`single` must be an Assignment, got Discrete\(3\)"):
        BatchedAssignment(single, 2)


# --- Gymnasium's functions of spaces ----------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_flatten_is_a_bijection(size: tuple[int, int, int]) -> None:
    space, num_arms, length = Assignment(*size), size[1], size[0] * size[1]
    box = flat_utils.flatten_space(space)
    assert box == spaces.Box(0, 1, (length,), np.int64)
    assert flat_utils.flatdim(space) == length
    images = {}
    for arms in legal(*size):
        flat = flat_utils.flatten(space, np.array(arms))
        assert flat in box
        assert np.flatnonzero(flat).tolist() == [u * num_arms + a for u, a in enumerate(arms)]
        images[tuple(flat.tolist())] = list(arms)
    for cells in product([0.0, 1.0], repeat=length):
        if cells in images:
            back = flat_utils.unflatten(space, np.array(cells))
            assert back.dtype == np.int64
            assert back.tolist() == images[cells]
        else:
            with pytest.raises(ValueError, match="`x` must be what `flatten` makes"):
                flat_utils.unflatten(space, np.array(cells))


@every_space
def test_functions_for_all_spaces(space: Assignment | BatchedAssignment) -> None:
    batched = batch_utils.batch_space(space, 3)
    assert batched == BatchedAssignment(space, 3)
    items, empty = [space.sample() for _ in range(3)], batch_utils.create_empty_array(space, 3)
    assert empty.dtype == np.int64
    assert empty in batched
    assert batch_utils.create_empty_array(space, 2, np.empty) in BatchedAssignment(space, 2)
    assert create_zero_array(space) in space
    joined = batch_utils.concatenate(space, items, empty)
    assert joined is empty
    np.testing.assert_array_equal(list(batch_utils.iterate(batched, joined)), items)
    flat = flat_utils.flatten(batched, joined)
    assert flat in flat_utils.flatten_space(batched)
    np.testing.assert_array_equal(flat_utils.unflatten(batched, flat), joined)
    np.testing.assert_array_equal(flat, np.ravel([flat_utils.flatten(space, x) for x in items]))
    memory = batch_utils.create_shared_memory(space, 3)
    for index, item in enumerate(items):
        batch_utils.write_to_shared_memory(space, index, item, memory)
    shared = batch_utils.read_from_shared_memory(space, memory, 3)
    np.testing.assert_array_equal(shared, items)
    twin = copy.deepcopy(space)
    assert batch_utils.batch_differing_spaces([space, twin]) == BatchedAssignment(space, 2)
    assert flat_utils.is_space_dtype_shape_equiv(space, twin)


def test_functions_refuse_what_has_no_meaning() -> None:
    with pytest.raises(TypeError, match=r"iterate over Assignment\(3, 5\): it is not a batch"):
        batch_utils.iterate(SINGLE, np.arange(3))
    assert not flat_utils.is_space_dtype_shape_equiv(SINGLE, Assignment(3, 4))
    with pytest.raises(ValueError, match=r"got Assignment\(3, 5\) and Assignment\(3, 4\)"):
        batch_utils.batch_differing_spaces([SINGLE, Assignment(3, 4)])
    with pytest.raises(ValueError, match=r"`x` must be a member of Assignment\(3, 5\)"):
        flat_utils.flatten(SINGLE, np.zeros(3, dtype=np.int64))
    for flat in (np.full(15, np.nan), np.zeros(3)):
        with pytest.raises(ValueError, match="`x` must be what `flatten` makes"):
            flat_utils.unflatten(SINGLE, flat)


def test_batch_space_does_not_share_the_random_generator() -> None:
    space = Assignment(3, 5, seed=4)
    batch_utils.batch_space(space, 6).sample()
    assert space.sample().tolist() == Assignment(3, 5, seed=4).sample().tolist()


def test_composite_spaces() -> None:
    space = spaces.Dict(who=Assignment(2, 3), at=spaces.Box(0, 1, (2,), np.float32), seed=0)
    sample = space.sample()
    flat = flat_utils.flatten(space, sample)
    assert flat.shape == (8,)
    assert flat in flat_utils.flatten_space(space)
    np.testing.assert_array_equal(flat_utils.unflatten(space, flat)["who"], sample["who"])
    batched = batch_utils.batch_space(space, 4)
    assert all(row in space for row in batch_utils.iterate(batched, batched.sample()))
    flattened = FlattenObservation(ServeEnv())
    assert flattened.observation_space.shape == (13,)
    assert flattened.reset(seed=0)[0] in flattened.observation_space
    stacked = SyncVectorEnv([lambda: FrameStackObservation(ServeEnv(), 2)] * 2)
    assert stacked.reset(seed=0)[0] in stacked.observation_space


# --- Vector environments ----------------------------------------------------------------


def roll_out(envs: Any, capacity: int) -> None:
    assert envs.action_space == BatchedAssignment(Assignment(3, 4, capacity), 2)
    envs.action_space.seed(1)
    drawn = np.array([envs.action_space.sample() for _ in range(10_000)])
    assert {tuple(arms) for arms in drawn.reshape(-1, 3).tolist()} == set(legal(3, 4, capacity))
    assert envs.reset(seed=0)[0] in envs.observation_space
    for actions in drawn[:20]:
        observation = envs.step(actions)[0]
        np.testing.assert_array_equal(observation["last"], actions)
        assert observation in envs.observation_space


@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize("mode", ["same", "different"])
def test_sync_vector_env(capacity: int, mode: Any) -> None:
    envs = SyncVectorEnv([lambda: ServeEnv(capacity)] * 2, observation_mode=mode)
    roll_out(envs, capacity)
    with pytest.raises(InvalidAction, match="got arm 2 for users 0, 1 and 2"):
        envs.step(np.array([[0, 1, 2], [2, 2, 2]]))


@pytest.mark.parametrize("context", [None, "spawn"])
def test_async_vector_env(context: str | None) -> None:
    envs = AsyncVectorEnv([ServeEnv, ServeEnv], context=context)
    try:
        roll_out(envs, 1)
    finally:
        envs.close()
