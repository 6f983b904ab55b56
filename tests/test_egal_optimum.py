"""Egalitarian optima, judged by linear programs, enumeration of schedules and the vectors."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers_names import Floats
from scipy.optimize import linprog

from gym_fairbandits.optimum import best_slots, egalitarian_optimum

VECTORS = json.loads((Path(__file__).parent / "data" / "egal_optimum.json").read_text())


def best_by_linear_program(means: Floats, num_users: int, steps: int, capacity: int) -> float:
    """``max min_u sum_a n_ua mu_a`` over counts n >= 0, row sums T, column sums at most C T."""
    num_arms = len(means)
    cells = num_users * num_arms
    objective = np.zeros(cells + 1)
    objective[-1] = -1.0
    upper, limits = [], []
    for user in range(num_users):  # value - sum_a n_ua mu_a <= 0
        row = np.zeros(cells + 1)
        row[user * num_arms : (user + 1) * num_arms] = -means
        row[-1] = 1.0
        upper.append(row)
        limits.append(0.0)
    for arm in range(num_arms):
        row = np.zeros(cells + 1)
        row[arm:cells:num_arms] = 1.0
        upper.append(row)
        limits.append(float(capacity * steps))
    equal = np.zeros((num_users, cells + 1))
    for user in range(num_users):
        equal[user, user * num_arms : (user + 1) * num_arms] = 1.0
    bounds = [(0, None)] * cells + [(None, None)]
    solved: Any = linprog(
        objective, upper, limits, equal, np.full(num_users, float(steps)), bounds=bounds
    )
    assert solved.status == 0
    return float(-solved.fun)


SIZES = [
    (1, 1, 1),
    (1, 4, 1),
    (3, 3, 1),
    (3, 5, 1),
    (5, 8, 1),
    (4, 4, 2),
    (5, 3, 2),  # capacity does not divide the users: G = 2, rho = 1
    (5, 4, 3),
    (7, 3, 3),
    (7, 6, 4),
    (3, 4, 5),  # one arm serves all
    (6, 2, 3),
]


@pytest.mark.parametrize(("num_users", "num_arms", "capacity"), SIZES)
@pytest.mark.parametrize("steps", [1, 4, 30])
def test_egalitarian_optimum_is_the_value_of_the_linear_program(
    num_users: int, num_arms: int, capacity: int, steps: int
) -> None:
    rng = np.random.default_rng(steps)
    for means in (rng.random(num_arms), rng.normal(size=num_arms), np.full(num_arms, 0.3)):
        value = egalitarian_optimum(means, num_users, steps, capacity)
        solved = best_by_linear_program(means, num_users, steps, capacity)
        assert value == pytest.approx(solved, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("num_users", "num_arms", "capacity"), SIZES)
def test_egalitarian_optimum_is_the_designs_formula(
    num_users: int, num_arms: int, capacity: int
) -> None:
    # (T/U) (C (m_1 + ... + m_G) + rho m_(G+1)), G = floor(U/C), rho = U - C G, exactly.
    rng = np.random.default_rng(9)
    for steps in (1, 7, 1000):
        numbers = rng.integers(-64, 65, size=num_arms)
        ordered = sorted((Fraction(int(number), 64) for number in numbers), reverse=True)
        groups, rest = divmod(num_users, capacity)
        total = capacity * sum(ordered[:groups]) + (rest * ordered[groups] if rest else 0)
        exact = Fraction(steps, num_users) * total
        value = egalitarian_optimum(numbers / 64, num_users, steps, capacity)
        assert value == pytest.approx(float(exact), rel=1e-15, abs=0)


@pytest.mark.parametrize("case", VECTORS, ids=str)
def test_egalitarian_optimum_is_the_bound_of_the_vectors(case: dict[str, Any]) -> None:
    value = egalitarian_optimum(case["mu"], case["U"], case["T"], case["C"])
    assert type(value) is float
    assert value == pytest.approx(case["lp_bound"], rel=1e-14)
    assert case["opt_min_user"] <= value * (1 + 1e-14)
    if case["C"] == 1:
        best = sorted(case["mu"], reverse=True)
        gap = (1 - 1 / case["U"]) * (best[0] - best[case["U"] - 1])
        assert value - case["opt_min_user"] <= gap + 1e-12


def legal_assignments(num_users: int, num_arms: int, capacity: int) -> list[tuple[int, ...]]:
    if capacity == 1:
        return list(permutations(range(num_arms), num_users))
    every = product(range(num_arms), repeat=num_users)
    return [arms for arms in every if max(map(arms.count, arms)) <= capacity]


@pytest.mark.parametrize(
    ("num_users", "num_arms", "capacity", "steps"),
    [
        (2, 3, 1, 2),
        (2, 3, 1, 3),
        (2, 4, 1, 4),
        (3, 3, 1, 3),
        (3, 3, 1, 2),
        (2, 2, 2, 3),
        (3, 2, 2, 3),
    ],
)
def test_the_benchmark_is_reached_if_the_rotation_completes_and_is_close_if_not(
    num_users: int, num_arms: int, capacity: int, steps: int
) -> None:
    rng = np.random.default_rng(num_users)
    schedules = np.array(
        list(product(legal_assignments(num_users, num_arms, capacity), repeat=steps))
    )
    for _ in range(5):
        means = rng.random(num_arms)
        best = means[schedules].sum(axis=1).min(axis=1).max()
        value = egalitarian_optimum(means, num_users, steps, capacity)
        ordered = np.sort(means)[::-1]
        assert best <= value + 1e-12
        if steps % num_users == 0:
            assert best == pytest.approx(value, rel=1e-12)
        elif capacity == 1:
            gap = (1 - 1 / num_users) * (ordered[0] - ordered[num_users - 1])
            assert value - best <= gap + 1e-12


@pytest.mark.parametrize(("num_users", "num_arms", "capacity"), SIZES[:7])
def test_it_is_also_the_best_mean_over_the_users_for_any_number_of_steps(
    num_users: int, num_arms: int, capacity: int
) -> None:
    means = np.random.default_rng(4).normal(size=num_arms)
    every = np.array(legal_assignments(num_users, num_arms, capacity))
    best = means[every].mean(axis=1).max()
    for steps in (1, 2, 11):
        value = egalitarian_optimum(means, num_users, steps, capacity)
        assert value == pytest.approx(steps * best, rel=1e-12)
    slots = best_slots(means, num_users, capacity)
    assert tuple(slots.tolist()) in {tuple(arms) for arms in every.tolist()}
    assert means[slots].mean() == pytest.approx(best, rel=1e-12)


def test_best_slots_come_in_descending_order_with_ties_to_the_lowest_index() -> None:
    means = np.array([0.5, 0.75, 0.5, 0.25, 0.75])
    assert best_slots(means, 4, 1).tolist() == [1, 4, 0, 2]
    assert best_slots(means, 5, 2).tolist() == [1, 1, 4, 4, 0]
    assert best_slots(means, 2, 9).tolist() == [1, 1]
    assert best_slots(np.stack([means, -means]), 3, 1).tolist() == [[1, 4, 0], [3, 0, 2]]


def test_leading_axes_run_over_instances_with_steps_of_their_own() -> None:
    rng = np.random.default_rng(6)
    means, steps = rng.random((7, 5)), rng.integers(0, 50, size=7)
    values = cast(Floats, egalitarian_optimum(means, 3, steps, 2))
    assert values.shape == (7,)
    assert values.tolist() == [
        egalitarian_optimum(row, 3, n, 2) for row, n in zip(means, steps.tolist(), strict=True)
    ]
    same = cast(Floats, egalitarian_optimum(means, 3, 10))
    assert same.tolist() == [egalitarian_optimum(row, 3, 10) for row in means]
    assert egalitarian_optimum(means[0], 3, 0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 4), ValueError, "`num_users` must be at most capacity * num_arms = 2, got 3"),
        ((5, 4, 2), ValueError, "`num_users` must be at most capacity * num_arms = 4, got 5"),
        ((0, 4), ValueError, "`num_users` must be at least 1, got 0"),
        ((1.0, 4), TypeError, "`num_users` must be an integer, got 1.0"),
        ((2, 4, 0), ValueError, "`capacity` must be at least 1, got 0"),
        ((2, 4, True), TypeError, "`capacity` must be an integer, got True"),
        ((2, -1), ValueError, "`steps` must be at least 0, got -1"),
        ((2, 2.5), TypeError, "`steps` must be integers, got 2.5"),
    ],
)
def test_wrong_assignment_arguments_are_refused(
    arguments: tuple[Any, ...], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        egalitarian_optimum([0.5, 0.25], *arguments)


def test_many_lengths_at_once() -> None:
    steps = np.array([0, 3, 10])
    assert egalitarian_optimum([0.75, 0.25], 2, steps).tolist() == [0.0, 1.5, 5.0]  # type: ignore[union-attr]
    table = [[0.75, 0.25], [1.0, 0.5]]
    assert egalitarian_optimum(table, 1, 2).tolist() == [1.5, 2.0]  # type: ignore[union-attr]
    each = egalitarian_optimum(table, 1, steps[:, None])
    assert each.tolist() == [[0.0, 0.0], [2.25, 3.0], [7.5, 10.0]]  # type: ignore[union-attr]
    assert isinstance(egalitarian_optimum([0.75, 0.25], 2, 3), float)
