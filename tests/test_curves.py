"""Values and sums of curves, judged by vectors, extended precision and single curves."""

from __future__ import annotations

import gc
import json
import math
import pickle
import weakref
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers_curves import CHUNK, SCALED, VALID, Halving, HeadStart, Wave, every_valid, random_curve
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
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
    ScaledCurve,
    Tabulated,
)

VECTORS = json.loads((Path(__file__).parent / "data" / "curves.json").read_text())


# --- Values and sums ------------------------------------------------------------------------------

FROM_VECTORS: dict[str, Callable[[dict[str, float]], Curve]] = {
    "exponential": lambda p: Exponential(p["c"], p["a"] / p["b"]),
    "power_law_shifted": lambda p: PowerLaw(p["c"], p["alpha"]),
    "hyperbolic": lambda p: Hyperbolic(p["c"], p["h"]),
    "linear_cap": lambda p: LinearCap(p["c"], p["m"]),
    "logarithmic": lambda p: Logarithmic(p["c"], p["b"], p["M"]),
    "power_cap": lambda p: Power(p["c"], p["M"], p["beta"]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_values_and_sums_are_those_of_the_vectors(name: str) -> None:
    case = VECTORS[name]
    curve = FROM_VECTORS[name](case["params"])
    assert len(case["f"]) == 6
    assert len(case["rew"]) == 5
    for pull, value in case["f"].items():
        assert curve(int(pull)) == pytest.approx(value, rel=1e-13, abs=0)
    for pulls, total in case["rew"].items():
        assert curve.cumulative(int(pulls)) == pytest.approx(total, rel=1e-12, abs=0)


def precise(curve: Curve, most: int) -> NDArray[Any]:
    """f(1), ..., f(most) by the printed formula in the platform's widest floats."""
    n: Any = np.arange(1, most + 1).astype(np.longdouble)
    level, *rest = (np.longdouble(value) for value in cast(ScaledCurve, curve).parameters())
    rise: NDArray[Any]
    if isinstance(curve, LinearCap):
        rise = np.minimum(n / rest[0], 1)
    elif isinstance(curve, Exponential):
        rise = -np.expm1(-rest[0] * n)
    elif isinstance(curve, Hyperbolic):
        rise = n / (n + rest[0])
    elif isinstance(curve, PowerLaw):
        rise = -np.expm1(-rest[0] * np.log1p(n))
    elif isinstance(curve, Logarithmic):
        rise = np.log1p(np.minimum(n, rest[1]) / rest[0]) / np.log1p(rest[1] / rest[0])
    else:
        assert isinstance(curve, Power)
        rise = np.exp(rest[1] * np.log(np.minimum(n / rest[0], 1)))
    return level * rise


@pytest.mark.parametrize("family", SCALED)
def test_values_and_sums_of_random_curves_at_every_pull_up_to_2000(family: type[Curve]) -> None:
    rng = np.random.default_rng(0)
    pulls = np.arange(1, 2001)
    for _ in range(40):
        curve = random_curve(family, rng)
        values = precise(curve, 2000)
        sums = np.cumsum(values)
        assert (abs(curve(pulls) / values - 1) <= 1e-14).all(), curve
        assert (abs(curve.cumulative(pulls) / sums - 1) <= 1e-11).all(), curve


SCALES = [1e-3, 0.7, 300.0, 1e6]
FAR: list[Curve] = [
    *(LinearCap(0.9, scale) for scale in SCALES),
    *(Exponential(0.9, rate) for rate in (1e-6, 1 / 300, 0.0999999, 0.1, 1.0, 1e3)),
    *(Hyperbolic(0.9, scale) for scale in SCALES),
    *(PowerLaw(0.9, exponent) for exponent in (1e-3, 0.4999999, 0.5, 0.9)),
    *(PowerLaw(0.9, exponent) for exponent in (1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 10.0)),
    *(Logarithmic(0.9, scale, 1e6) for scale in SCALES),
    *(Logarithmic(0.9, 2.0, ramp) for ramp in (1e-3, 1234.5)),
    *(Power(0.9, ramp, 0.5) for ramp in SCALES),
    *(Power(0.9, 1e6, exponent) for exponent in (1e-3, 0.999, 1.0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("curve", FAR, ids=str)
def test_sums_keep_eleven_digits_up_to_a_million_pulls(curve: Curve) -> None:
    stops = [1, 2, 15, 16, 17, 18, 40, 299, 300, 301, 5000, 65_536, 333_333, 999_999, 10**6]
    values = precise(curve, stops[-1]).astype(np.float64)
    parts: list[float] = []
    for before, stop in zip([0, *stops], stops, strict=False):
        parts.append(math.fsum(values[before:stop].tolist()))
        assert curve.cumulative(stop) == pytest.approx(math.fsum(parts), rel=1e-11, abs=0), stop


@pytest.mark.parametrize("ramp", [0.4, 1.0, 2.5, 7.0, 40.0, 40.75])
def test_linear_caps_are_exact_to_the_last_digits(ramp: float) -> None:
    curve = LinearCap(0.75, ramp)
    total = Fraction(0)
    for pull in range(1, 101):
        value = Fraction(3, 4) * min(pull / Fraction(ramp), Fraction(1))
        total += value
        assert curve(pull) == pytest.approx(float(value), rel=1e-15, abs=0)
        assert curve.cumulative(pull) == pytest.approx(float(total), rel=2e-15, abs=0)


def test_a_table_of_a_million_values_sums_to_eleven_digits_and_stays_flat_after_it() -> None:
    table = np.random.default_rng(1).random(10**6)
    curve = Tabulated(cast(Any, table))
    for pulls in (1, 17, 123_456, 10**6):
        assert curve(pulls) == table[pulls - 1]
        exact = math.fsum(table[:pulls].tolist())
        assert curve.cumulative(pulls) == pytest.approx(exact, rel=1e-11, abs=0)
    assert curve(10**6 + 5) == table[-1]
    more = math.fsum([*table.tolist(), *[table[-1]] * 5])
    assert curve.cumulative(10**6 + 5) == pytest.approx(more, rel=1e-11, abs=0)


def test_the_fallback_sum_of_a_users_curve_crosses_its_chunks() -> None:
    stops = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1, 300_000]
    values = Wave()(np.arange(1, stops[-1] + 1)).tolist()
    sums = [math.fsum(values[:stop]) for stop in stops]
    np.testing.assert_allclose(Wave().cumulative(stops), sums, rtol=1e-11, atol=0)
    assert [Wave().cumulative(stop) for stop in stops] == Wave().cumulative(stops).tolist()


@every_valid
def test_nothing_pulled_pays_nothing_and_one_pull_pays_the_first_value(curve: Curve) -> None:
    assert curve.cumulative(0) == 0.0
    assert math.copysign(1, curve.cumulative(0)) == 1
    assert curve.cumulative([0, 0]).tolist() == [0.0, 0.0]
    assert curve.cumulative(1) == pytest.approx(curve(1), rel=1e-14, abs=0)


@every_valid
def test_values_rise_to_the_asymptote(curve: Curve) -> None:
    values = curve(np.arange(1, 3000))
    assert (np.diff(values) >= -1e-15).all()
    assert (values <= curve.asymptote * (1 + 1e-15)).all()
    # The power laws are slow: the smallest exponent here is 1/2.
    assert curve(10**13) == pytest.approx(curve.asymptote, rel=1e-6, abs=0)


@every_valid
def test_scalars_and_arrays_of_any_layout_agree_bit_for_bit(curve: Curve) -> None:
    rng = np.random.default_rng(2)
    pulls = np.concatenate([np.arange(1, 131), rng.integers(1, 10**5, size=38)])
    values = [curve(pull) for pull in pulls.tolist()]
    sums = [curve.cumulative(pull) for pull in pulls.tolist()]
    assert all(type(number) is float for number in [*values, *sums])
    for function, expected in ((curve.__call__, values), (curve.cumulative, sums)):
        whole = function(pulls)
        assert whole.dtype == np.float64
        assert whole.tolist() == expected
        assert function(pulls.tolist()).tolist() == expected
        assert function(pulls.astype(np.uint32)).tolist() == expected
        assert function(pulls[::-1]).tolist() == expected[::-1]
        assert function(pulls[::3]).tolist() == expected[::3]
        square = function(pulls.reshape(12, 14))
        assert square.shape == (12, 14)
        assert square.ravel().tolist() == expected
        assert function(np.asfortranarray(pulls.reshape(12, 14))).ravel().tolist() == expected
        assert float(function(pulls[5])) == expected[5]
        assert float(function(np.array(pulls[5]))) == expected[5]
        assert function(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)


def test_a_range_of_pulls_is_an_array_of_pulls() -> None:
    curve = LinearCap(1.0, 4)
    assert curve(range(1, 4)).tolist() == [0.25, 0.5, 0.75]
    assert curve.cumulative(range(3)).tolist() == [0.0, 0.25, 0.75]


@pytest.mark.parametrize("pulls", [1.0, True, "1", None, [1.5], [True], np.array(2.0), 2**70])
def test_pulls_that_are_no_integers_are_refused(pulls: Any) -> None:
    with pytest.raises(TypeError, match="`pulls` must be integers, got"):
        Constant(0.5)(pulls)
    with pytest.raises(TypeError, match="`pulls` must be integers, got"):
        Constant(0.5).cumulative(pulls)


def test_pulls_below_the_first_are_refused() -> None:
    with pytest.raises(ValueError, match="`pulls` must be at least 1, got 0"):
        Constant(0.5)(0)
    with pytest.raises(ValueError, match="`pulls` must be at least 1, got -2"):
        Constant(0.5)([3, -2, 1])
    with pytest.raises(ValueError, match="`pulls` must be at least 0, got -1"):
        Constant(0.5).cumulative(-1)


# --- Many curves side by side ---------------------------------------------------------------------


def mixed_rows(num_rows: int, num_arms: int, seed: int) -> list[list[Curve]]:
    """Rows of random curves of every family, tables and users' classes among them."""
    rng = np.random.default_rng(seed)

    def draw() -> Curve:
        kind = rng.integers(len(SCALED) + 4)
        if kind < len(SCALED):
            return random_curve(SCALED[kind], rng)
        others: list[Callable[[], Curve]] = [
            lambda: Constant(rng.random()),
            lambda: HeadStart(rng.random(), rng.random(), 100 * rng.random()),
            lambda: Halving(rng.random()),
            lambda: Tabulated(tuple(np.sort(rng.random(rng.integers(1, 30))).tolist())),
        ]
        return others[kind - len(SCALED)]()

    return [[draw() for _ in range(num_arms)] for _ in range(num_rows)]


def filled(rows: list[list[Curve]]) -> CurveGrid:
    grid = CurveGrid(len(rows), len(rows[0]))
    for row, arms in enumerate(rows):
        grid.set_rows(np.array([row]), arms)
    return grid


def assert_equal_to_single_curves(grid: CurveGrid, rows: list[list[Curve]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_rows, num_arms = len(rows), len(rows[0])
    flat = [curve for row in rows for curve in row]
    totals = rng.integers(0, 3000, size=(num_rows, num_arms))
    sums = [
        [curve.cumulative(pulls) for curve, pulls in zip(arms, wanted, strict=True)]
        for arms, wanted in zip(rows, totals.tolist(), strict=True)
    ]
    assert grid.sums(totals.astype(np.float64)).tolist() == sums
    cells = rng.permutation(num_rows * num_arms)[: rng.integers(1, num_rows * num_arms + 1)]
    pulls = rng.integers(1, 3000, size=len(cells))
    values = [flat[cell](pull) for cell, pull in zip(cells.tolist(), pulls.tolist(), strict=True)]
    assert grid.values(cells, pulls.astype(np.float64)).tolist() == values
    blocks = pulls[:, None] + np.arange(7)
    block_values = [
        [flat[cell](pull) for pull in block]
        for cell, block in zip(cells.tolist(), blocks.tolist(), strict=True)
    ]
    assert grid.values(cells, blocks.astype(np.float64)).tolist() == block_values
    potentials = [[curve.asymptote for curve in row] for row in rows]
    assert grid.asymptotes().tolist() == potentials
    assert [list(grid.row(row)) for row in range(num_rows)] == rows


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (40, 1), (30, 5)])
def test_a_batch_of_mixed_curves_equals_single_curves_bit_for_bit(shape: tuple[int, int]) -> None:
    for seed in range(5):
        rows = mixed_rows(*shape, seed)
        assert_equal_to_single_curves(filled(rows), rows, seed)


@pytest.mark.parametrize("curve", VALID, ids=str)
def test_a_batch_of_one_family_equals_the_single_curve_bit_for_bit(curve: Curve) -> None:
    rows = [[curve] * 3 for _ in range(50)]
    grid = CurveGrid(50, 3)
    grid.set_rows(np.arange(50), rows[0])
    assert_equal_to_single_curves(grid, rows, 0)


def test_rows_replaced_many_times_equal_single_curves_and_old_curves_are_forgotten() -> None:
    rng = np.random.default_rng(3)
    grid = CurveGrid(6, 4)
    rows: list[list[Curve]] = [[Constant(0.0)] * 4 for _ in range(6)]
    created: list[weakref.ref[Curve]] = []
    for turn in range(200):
        chosen = np.flatnonzero(rng.random(6) < 0.4)
        arms = mixed_rows(1, 4, seed=1000 + turn)[0]
        arms[turn % 4] = Tabulated(tuple(np.sort(rng.random(5)).tolist()))
        created += [weakref.ref(curve) for curve in arms if isinstance(curve, Tabulated)]
        grid.set_rows(chosen, arms)
        for row in chosen.tolist():
            rows[row] = arms
        if turn % 20 == 19:
            assert_equal_to_single_curves(grid, rows, turn)
    del arms
    gc.collect()
    assert len(created) >= 200
    assert sum(reference() is not None for reference in created) <= 4 * 24 + 4


def test_copied_rows_keep_their_curves_when_the_grid_moves_on() -> None:
    rows = mixed_rows(5, 4, seed=7)
    rows[0] = [Halving(0.7), Tabulated((0.2, 0.3)), Halving(0.6), Constant(0.1)]
    grid = filled(rows)
    copied = grid.rows(np.array([3, 0]))
    frozen = pickle.loads(pickle.dumps(grid))
    for turn in range(60):
        grid.set_rows(np.arange(5), mixed_rows(1, 4, seed=100 + turn)[0])
    gc.collect()
    assert_equal_to_single_curves(copied, [rows[3], rows[0]], 0)
    assert_equal_to_single_curves(frozen, rows, 0)
    changed: list[Curve] = [
        Halving(0.5),
        Tabulated((0.25,)),
        HeadStart(0.5, 1.0, 9.0),
        Halving(0.1),
    ]
    copied.set_rows(np.array([0]), changed)
    assert_equal_to_single_curves(copied, [changed, rows[0]], 2)
    frozen.set_rows(np.array([2]), rows[4])
    assert_equal_to_single_curves(frozen, [rows[0], rows[1], rows[4], rows[3], rows[4]], 1)
