"""Many reward laws side by side pay what each pays alone, to the last bit."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_arms import LAWS, Fading

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits._grid import ArmGrid
from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian


def random_law(rng: np.random.Generator, kind: int, num_arms: int) -> Arms:
    means = rng.random(num_arms)
    if kind == 0:
        return Bernoulli(means)
    if kind == 1:
        return Gaussian(means, rng.random(num_arms))
    if kind == 2:
        return Empirical([rng.random(rng.integers(1, 6)) for _ in range(num_arms)])
    return Fading(means)


def filled(laws: Sequence[Arms], num_arms: int) -> ArmGrid:
    grid = ArmGrid(len(laws), num_arms)
    for row, law in enumerate(laws):
        grid.set_rows(np.array([row]), law)
    return grid


def assert_equal_to_single_laws(
    grid: ArmGrid, laws: Sequence[Arms], num_arms: int, rng: np.random.Generator
) -> None:
    count = len(laws)
    subsets = [np.arange(count), np.arange(count)[rng.random(count) < 0.5], np.array([count - 1])]
    for rows in subsets:
        if not len(rows):
            continue
        arms = rng.integers(num_arms, size=(len(rows), 4))
        draws, steps = rng.random((len(rows), 4)), rng.integers(50, size=len(rows))
        pulls = rng.integers(50, size=(len(rows), num_arms))
        together = grid.rewards(rows, arms, draws, steps, pulls)
        for place, row in enumerate(rows.tolist()):
            alone = laws[row].rewards(arms[place], draws[place], int(steps[place]), pulls[place])
            assert together[place].tolist() == alone.tolist()
    assert grid.means.tolist() == [law.means.tolist() for law in laws]
    assert [grid.row(row) for row in range(count)] == list(laws)


@pytest.mark.parametrize("kinds", [[0], [1], [2], [3], [0, 1], [0, 3], [1, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("num_rows", [1, 2, 25])
def test_a_batch_of_laws_equals_each_single_law(kinds: list[int], num_rows: int) -> None:
    rng = np.random.default_rng(len(kinds))
    laws = [random_law(rng, kinds[row % len(kinds)], 5) for row in range(num_rows)]
    assert_equal_to_single_laws(filled(laws, 5), laws, 5, rng)


def test_one_law_in_all_rows_equals_the_single_law() -> None:
    rng = np.random.default_rng(9)
    for law in LAWS:
        grid = ArmGrid(8, 4)
        grid.set_rows(np.arange(8), law)
        assert_equal_to_single_laws(grid, [law] * 8, 4, rng)


def test_an_empty_grid_pays_nothing() -> None:
    grid = ArmGrid(3, 2)
    rows, arms = np.arange(3), np.zeros((3, 2), dtype=np.int64)
    paid = grid.rewards(rows, arms, np.zeros((3, 2)), np.zeros(3, dtype=np.int64), arms)
    assert paid.tolist() == [[0.0, 0.0]] * 3


def test_laws_replaced_many_times_equal_single_laws_and_old_ones_are_forgotten() -> None:
    rng = np.random.default_rng(4)
    laws: list[Arms] = [Bernoulli(np.zeros(3))] * 6
    grid = ArmGrid(6, 3)
    created: list[weakref.ref[Arms]] = []
    for turn in range(300):
        law = random_law(rng, int(rng.integers(4)), 3)
        created.append(weakref.ref(law))
        chosen = np.flatnonzero(rng.random(6) < 0.3)
        grid.set_rows(chosen, law)
        for row in chosen.tolist():
            laws[row] = law
        if turn % 10 == 9:
            assert_equal_to_single_laws(grid, laws, 3, rng)
    del law
    gc.collect()
    assert sum(reference() is not None for reference in created) <= 4 * 6 + 6
    again = pickle.loads(pickle.dumps(grid))
    assert_equal_to_single_laws(again, laws, 3, rng)
    again.set_rows(np.array([0]), Empirical([[1.0], [2.0], [3.0]]))
    assert_equal_to_single_laws(again, [Empirical([[1.0], [2.0], [3.0]]), *laws[1:]], 3, rng)


def test_a_users_own_law_plays_in_both_environments_like_any_other() -> None:
    data = json.loads(json.dumps(Fading([0.9, 0.8, 0.7]).to_dict()))
    settings: dict[str, Any] = {"instance": data, "num_users": 2, "horizon": 20}
    batch: Any = gym.make_vec("EgalAssign-v0", num_envs=3, **settings)
    batch.reset(seed=11)
    singles: list[Any] = [gym.make("EgalAssign-v0", **settings) for _ in range(3)]
    for row, env in enumerate(singles):
        env.reset(seed=11 + row)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = np.array([rng.permutation(3)[:2] for _ in range(3)])
        rewards = batch.step(actions)[4]["user_rewards"]
        for row, env in enumerate(singles):
            assert env.step(actions[row])[4]["user_rewards"].tolist() == rewards[row].tolist()
    for row, env in enumerate(singles):
        assert env.unwrapped.arms == Fading([0.9, 0.8, 0.7])
        assert env.unwrapped.expected_return() == batch.expected_return()[row]
