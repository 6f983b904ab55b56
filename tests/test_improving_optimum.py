"""Optima of improving arms, judged by dynamic programming, enumeration and closed sums."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from helpers_names import Floats

from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Power,
    PowerLaw,
    Tabulated,
)
from gym_fairbandits.optimum import best_arms, improving_optimum


def monotone_table(rng: np.random.Generator, steps: int) -> list[Fraction]:
    """Nondecreasing 64ths in [0, 1], of any shape: floats hold all their sums exactly."""
    numbers = np.sort(rng.integers(0, 65, size=steps))
    if rng.random() < 0.3:  # a late jump
        numbers[: rng.integers(0, steps + 1)] = 0
    return [Fraction(int(number), 64) for number in numbers]


def best_by_dynamic_programming(tables: Sequence[Sequence[Fraction]], steps: int) -> Fraction:
    """``V_j(t) = max_n V_(j-1)(t - n) + Rew_j(n)`` over all allocations of pulls."""
    best: list[Fraction | None] = [Fraction(0), *[None] * steps]
    for table in tables:
        sums = [Fraction(0)]
        for value in table[:steps]:
            sums.append(sums[-1] + value)
        reached: list[Fraction | None] = []
        for total in range(steps + 1):
            options = [
                before + sums[pulls]
                for pulls in range(total + 1)
                if (before := best[total - pulls]) is not None
            ]
            reached.append(max(options, default=None))
        best = reached
    answer = best[steps]
    assert answer is not None
    return answer


def allocations(num_arms: int, steps: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide ``steps`` pulls among the arms."""
    for bars in combinations(range(steps + num_arms - 1), num_arms - 1):
        edges = [-1, *bars, steps + num_arms - 1]
        yield tuple(right - left - 1 for left, right in pairwise(edges))


def tabulated(tables: Sequence[Sequence[Fraction]]) -> list[Curve]:
    return [Tabulated(tuple(map(float, table))) for table in tables]


@pytest.mark.parametrize("seed", range(60))
def test_improving_optimum_is_the_best_of_all_allocations_of_monotone_arms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_arms, steps = int(rng.integers(1, 6)), int(rng.integers(1, 26))
    tables = [monotone_table(rng, steps) for _ in range(num_arms)]
    totals = [sum(table, Fraction(0)) for table in tables]
    value, arm = improving_optimum(tabulated(tables), steps)
    assert Fraction(value) == best_by_dynamic_programming(tables, steps)
    assert arm == totals.index(max(totals))
    assert (type(value), type(arm)) == (float, int)


def test_the_dynamic_program_agrees_with_enumeration() -> None:
    # Also on arms that fall: there the best single arm is not enough, so the judge can tell.
    rng = np.random.default_rng(0)
    single_arm_enough = 0
    for _ in range(20):
        tables = [[Fraction(int(x), 8) for x in rng.integers(0, 9, size=6)] for _ in range(3)]
        every = [
            sum((sum(table[:n], Fraction(0)) for table, n in zip(tables, pulls, strict=True)))
            for pulls in allocations(3, 6)
        ]
        assert best_by_dynamic_programming(tables, 6) == max(every)
        single_arm_enough += max(every) == max(sum(table) for table in tables)
    assert single_arm_enough < 10


def test_longer_horizons_than_a_table_use_its_last_value() -> None:
    curves = [Tabulated((0.5, 0.75)), Tabulated((0.0, 0.0, 1.0))]
    # Totals: 0.75 T - 0.25 against T - 2, equal at T = 7.
    assert improving_optimum(curves, 6) == (4.25, 0)
    assert improving_optimum(curves, 7) == (5.0, 0)
    assert improving_optimum(curves, 8) == (6.0, 1)
    assert improving_optimum(curves, 10**6) == (10**6 - 2.0, 1)


def test_ties_go_to_the_lowest_index() -> None:
    half, twin, same = Constant(0.5), Tabulated((0.5,)), LinearCap(0.5, 1)
    for curves in ([half, twin, same], [same, half], [twin, same, half]):
        assert improving_optimum(curves, 9) == (4.5, 0)
        assert improving_optimum([Constant(0.25), *curves], 9) == (4.5, 1)
    late = Tabulated((0.25, 0.5, 0.75))
    assert improving_optimum([late, half], 3) == (1.5, 0)
    assert improving_optimum([half, late], 3) == (1.5, 0)
    assert improving_optimum([half, late], 4) == (2.25, 1)


def test_no_steps_pay_nothing() -> None:
    falling = Tabulated((0.5, 0.25))
    for curves in ([Constant(0.5)], [LinearCap(1.0, 4), Exponential(0.5, 0.1)], [falling]):
        assert improving_optimum(curves, 0) == (0.0, 0)


def test_closed_form_families_are_summed_over_the_horizon() -> None:
    curves = [
        Constant(0.3),
        LinearCap(1.0, 500),
        Exponential(0.9, 0.005),
        Hyperbolic(0.95, 60.0),
        PowerLaw(0.99, 0.4),
        Logarithmic(0.8, 5.0, 1000.0),
        Power(1.0, 2000.0, 0.5),
    ]
    for steps in (1, 10, 100, 1000, 10_000):
        totals = [math.fsum(curve(np.arange(1, steps + 1)).tolist()) for curve in curves]
        value, arm = improving_optimum(curves, steps)
        assert value == pytest.approx(max(totals), rel=1e-12)
        assert arm == totals.index(max(totals))


def test_rows_of_a_batch_have_the_optima_of_their_instances() -> None:
    rng = np.random.default_rng(2)
    rows: list[list[Curve]] = [
        [
            LinearCap(rng.random(), 100 * rng.random()),
            Exponential(rng.random(), rng.random()),
            Power(rng.random(), 100 * rng.random(), 0.5),
            Tabulated(tuple(np.sort(rng.random(5)).tolist())),
        ]
        for _ in range(30)
    ]
    grid = CurveGrid(30, 4)
    for row, curves in enumerate(rows):
        grid.set_rows(np.array([row]), curves)
    steps = rng.integers(0, 300, size=30)
    values, arms = best_arms(grid, steps)
    expected = [
        improving_optimum(curves, n) for curves, n in zip(rows, steps.tolist(), strict=True)
    ]
    assert list(zip(values.tolist(), arms.tolist(), strict=True)) == expected


def test_rows_of_a_batch_are_judged_by_their_own_numbers_of_pulls() -> None:
    falling = [Tabulated((0.5, 0.75, 0.25)), Constant(0.5)]
    grid = CurveGrid(2, 2)
    grid.set_rows(np.array([0]), falling)
    grid.set_rows(np.array([1]), [LinearCap(1.0, 10), Constant(0.25)])
    assert improving_optimum(falling, 2) == (1.25, 0)
    values, arms = best_arms(grid, np.array([2, 10]))
    assert values.tolist() == pytest.approx([1.25, 5.5])
    assert arms.tolist() == [0, 0]
    values, arms = best_arms(grid, np.array([3, 10]))
    assert values.tolist() == pytest.approx([1.5, 5.5])  # of one arm throughout
    assert arms.tolist() == [0, 0]


@dataclass(frozen=True)
class Tooth(Curve):
    """A user's curve that falls once, after pull ``last``."""

    last: float
    family: ClassVar[str] = "test_tooth"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return 0.25

    def evaluate(self, pulls: Floats) -> Floats:
        return np.where(pulls <= self.last, 0.5, 0.25)


@pytest.mark.parametrize("curve", [Tabulated((0.5, 0.5, 0.5, 0.25)), Tooth(3)])
def test_arms_that_fall_within_the_steps_are_refused(curve: Curve) -> None:
    arms = [Constant(0.25), curve]
    assert improving_optimum(arms, 3) == (1.5, 1)
    for steps in (4, 5, 1000):
        with pytest.raises(ValueError, match="optimum of arms that decrease"):
            improving_optimum(arms, steps)
    for falling in (LinearCap(-0.5, 10), Exponential(-0.5, 0.1), PowerLaw(-1.0, 0.5)):
        with pytest.raises(ValueError, match="optimum of arms that decrease"):
            improving_optimum([Constant(0.5), falling], 10)


def test_an_arm_that_falls_by_little_at_each_pull_is_refused_too() -> None:
    # From 0.5 down to 0.49995 in steps of 5e-10: two such arms shared are better than one.
    falling = Tabulated(cast(Any, 0.5 - 5e-10 * np.arange(100_000)))
    with pytest.raises(ValueError, match="optimum of arms that decrease"):
        improving_optimum([falling, falling], 100_000)


def test_a_fall_by_rounding_is_no_fall() -> None:
    curve = Tabulated((0.5, 0.5 - 5e-10, 0.75))
    assert improving_optimum([curve], 3)[0] == pytest.approx(1.75, rel=1e-8)
    assert improving_optimum([LinearCap(-5e-10, 2), Constant(0.5)], 3) == (1.5, 1)
    with pytest.raises(ValueError, match="optimum of arms that decrease"):
        improving_optimum([Tabulated((0.5, 0.5 - 5e-9, 0.75))], 3)


def test_arms_that_pay_less_than_nothing_but_never_fall_are_compared_like_others() -> None:
    assert improving_optimum([Constant(-0.5), Constant(-0.25)], 4) == (-1.0, 1)
    rise = Tabulated((-0.5, -0.25, 1.0))
    assert improving_optimum([Constant(-0.25), rise], 2) == (-0.5, 0)
    assert improving_optimum([Constant(-0.25), rise], 4) == (1.25, 1)


@pytest.mark.parametrize(
    ("curves", "steps", "error", "message"),
    [
        ([], 3, ValueError, "`curves` must hold at least one curve, got none"),
        ([Constant(0.5)], -1, ValueError, "`steps` must be at least 0, got -1"),
        ([Constant(0.5)], 2.0, TypeError, "`steps` must be an integer, got 2.0"),
        ([Constant(0.5)], True, TypeError, "`steps` must be an integer, got True"),
    ],
)
def test_wrong_improving_arguments_are_refused(
    curves: Any, steps: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        improving_optimum(curves, steps)
