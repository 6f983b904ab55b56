"""Reward curves, judged by vectors, extended precision, exact rationals and broken tables."""

from __future__ import annotations

import copy
import gc
import json
import math
import pickle
import re
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import curves
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
    check_improving,
    from_dict,
    saturating,
)
from gym_fairbandits.curves import general as general_families
from gym_fairbandits.optimum import improving_optimum
from gym_fairbandits.wrappers import PolicyRegret

Floats = NDArray[np.float64]
VECTORS = json.loads((Path(__file__).parent / "data" / "curves.json").read_text())
SCAN_LIMIT = 100_000  # as `check_improving` documents it
CHUNK = 65_536  # how many values it looks at in one array


@dataclass(frozen=True)
class HeadStart(ScaledCurve):
    """A user's own shape: ``min((n + lead) / (ramp + lead), 1)``."""

    asymptote: float
    lead: float
    ramp: float
    family: ClassVar[str] = "test_head_start"

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        lead, ramp = parameters
        values: Floats = np.minimum((pulls + lead) / (ramp + lead), 1.0)
        return values

    @classmethod
    def shape_sum(cls, pulls: Floats, *parameters: Floats) -> Floats:
        lead, ramp = parameters
        rising: Floats = np.minimum(pulls, np.floor(ramp))
        return (rising * (rising + 1) / 2 + lead * rising) / (ramp + lead) + (pulls - rising)


@dataclass(frozen=True)
class Halving(Curve):
    """A user's own curve without a closed sum: ``level * (1 - 2 ** -n)``."""

    level: float
    family: ClassVar[str] = "test_halving"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return self.level

    def evaluate(self, pulls: Floats) -> Floats:
        return -self.level * np.expm1(-math.log(2) * pulls)


@dataclass(frozen=True)
class Wave(Curve):
    """A curve that rises and falls, known only by its values."""

    family: ClassVar[str] = "test_wave"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return math.nan

    def evaluate(self, pulls: Floats) -> Floats:
        return 0.5 + 0.4 * np.sin(pulls / 1000)


OWN: list[Curve] = [
    LinearCap(0.9, 40),
    LinearCap(1, 2.5),
    Exponential(0.73, 0.02),
    Exponential(1.0, 700.0),
    Constant(0.4),
    Constant(0),
    Hyperbolic(0.8, 25.0),
    Hyperbolic(1.0, 1e-3),
    PowerLaw(1.0, 0.5),
    PowerLaw(0.6, 1.0),
    Logarithmic(0.9, 5.0, 1000.0),
    Power(0.5, 1000.0, 0.4),
    Power(0.7, 30.5, 1.0),
    Tabulated((0.1, 0.2, 0.25)),
    Tabulated((0.5,)),
]
USERS: list[Curve] = [HeadStart(0.9, 3.0, 20.5), HeadStart(1.0, 0.5, 300.0), Halving(0.8)]
VALID = OWN + USERS
every_valid = pytest.mark.parametrize("curve", VALID, ids=str)


def test_the_cases_cover_every_family_but_those_of_the_general_tests() -> None:
    general = set(general_families.__all__) | set(saturating.__all__) | {"Sum", "Scaled"}
    exported = {getattr(curves, name) for name in set(curves.__all__) - general - {"Polynomial"}}
    families = {item for item in exported if isinstance(item, type) and hasattr(item, "family")}
    assert {type(curve) for curve in OWN} == families | {Tabulated}
    assert len(families) == 7


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


def random_curve(family: type[Curve], rng: np.random.Generator) -> Curve:
    """Scales log-uniform on [1e-3, 1e6], exponents log-uniform on [1e-3, 10] or [1e-3, 1]."""
    scale, other = np.exp(rng.uniform(math.log(1e-3), math.log(1e6), size=2)).tolist()
    exponent = math.exp(rng.uniform(math.log(1e-3), math.log(10)))
    asymptote = rng.uniform(0.01, 1)
    made: dict[type[Curve], Callable[[], Curve]] = {
        LinearCap: lambda: LinearCap(asymptote, scale),
        Exponential: lambda: Exponential(asymptote, 1 / scale),
        Hyperbolic: lambda: Hyperbolic(asymptote, scale),
        PowerLaw: lambda: PowerLaw(asymptote, exponent),
        Logarithmic: lambda: Logarithmic(asymptote, scale, other),
        Power: lambda: Power(asymptote, scale, min(exponent, 1.0)),
    }
    return made[family]()


SCALED: list[type[Curve]] = [LinearCap, Exponential, Hyperbolic, PowerLaw, Logarithmic, Power]


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


# --- Parameters and dict forms --------------------------------------------------------------------

GOOD: list[tuple[type[Curve], dict[str, float]]] = [
    (LinearCap, {"asymptote": 0.5, "ramp": 3}),
    (Exponential, {"asymptote": 0.5, "rate": 0.25}),
    (Constant, {"value": 0.5}),
    (Hyperbolic, {"asymptote": 0.5, "half_saturation": 3}),
    (PowerLaw, {"asymptote": 0.5, "exponent": 0.5}),
    (Logarithmic, {"asymptote": 0.5, "scale": 2, "ramp": 30}),
    (Power, {"asymptote": 0.5, "ramp": 3, "exponent": 0.5}),
]
LEVELS = {"asymptote", "value"}  # of any sign; the others must be positive
EVERY_PARAMETER = [
    pytest.param(family, good, name, id=f"{family.__name__}-{name}")
    for family, good in GOOD
    for name in good
]


@pytest.mark.parametrize(("family", "good", "name"), EVERY_PARAMETER)
@pytest.mark.parametrize(
    ("value", "error", "rule"),
    [
        (math.nan, ValueError, "finite, got nan"),
        (math.inf, ValueError, "finite, got inf"),
        (-math.inf, ValueError, "finite, got -inf"),
        (True, TypeError, "a real number, got True"),
        ("0.5", TypeError, "a real number, got '0.5'"),
        (None, TypeError, "a real number, got None"),
        (0.5j, TypeError, "a real number, got 0.5j"),
        ([0.5], TypeError, "a real number, got [0.5]"),
    ],
)
def test_each_parameter_must_be_a_finite_number(
    family: Any, good: dict[str, float], name: str, value: Any, error: Any, rule: str
) -> None:
    with pytest.raises(error, match=re.escape(f"`{name}` must be {rule}")):
        family(**{**good, name: value})


@pytest.mark.parametrize(("family", "good", "name"), EVERY_PARAMETER)
def test_each_parameter_but_the_level_must_be_positive(
    family: Any, good: dict[str, float], name: str
) -> None:
    for value in (0, -1.5):
        bad = {**good, name: value}
        if name in LEVELS:
            assert getattr(family(**bad), name) == value
            continue
        with pytest.raises(ValueError, match=re.escape(f"`{name}` must be above 0, got {value}")):
            family(**bad)


def test_the_exponent_of_a_power_is_at_most_one() -> None:
    assert Power(0.5, 3, 1).exponent == 1.0
    with pytest.raises(ValueError, match=r"`exponent` must be at most 1, got 1\.5"):
        Power(0.5, 3, 1.5)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([], "`values` must be a non-empty sequence of numbers, got []"),
        (0.5, "`values` must be a non-empty sequence of numbers, got 0.5"),
        (None, "`values` must be a non-empty sequence of numbers, got None"),
        ([[0.1], [0.2]], "`values` must be a non-empty sequence of numbers, got"),
        ([0.1, math.nan, math.nan], "`values` must be finite, got nan at index 1"),
        ([0.1, 0.2, math.inf], "`values` must be finite, got inf at index 2"),
        ([0.1, [0.2, 0.3]], "`values` must be"),
        (["a"], "`values` must be"),
        ("abc", "`values` must be"),
    ],
)
def test_a_table_must_hold_finite_numbers(values: Any, rule: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(rule)):
        Tabulated(values)


def test_a_table_is_a_copy_of_what_it_was_given() -> None:
    given = np.array([0.1, 0.2])
    curve = Tabulated(cast(Any, given))
    given[:] = 9
    assert curve.values == (0.1, 0.2)
    assert curve([1, 2, 3]).tolist() == [0.1, 0.2, 0.2]
    assert curve == Tabulated((0.1, 0.2))
    assert hash(curve) == hash(Tabulated((0.1, 0.2)))


def test_parameters_become_python_floats() -> None:
    numpy_numbers: Any = [np.float32(1), np.int64(40)]
    for curve in (LinearCap(1, 40), LinearCap(*numpy_numbers)):
        assert [type(curve.asymptote), type(curve.ramp)] == [float, float]
        assert curve == LinearCap(1.0, 40.0)


@every_valid
def test_curves_are_frozen(curve: Curve) -> None:
    before = curve.to_dict()
    for field in fields(cast(Any, curve)):
        with pytest.raises(FrozenInstanceError):
            setattr(curve, field.name, 0.5)
    assert curve.to_dict() == before


@every_valid
def test_dict_forms_survive_json_pickle_and_copies(curve: Curve) -> None:
    data = curve.to_dict()
    assert data["family"] == curve.family
    for other in (
        from_dict(json.loads(json.dumps(data))),
        pickle.loads(pickle.dumps(curve)),
        copy.deepcopy(curve),
    ):
        assert other == curve
        assert type(other) is type(curve)
        assert other.to_dict() == data
        pulls = np.arange(1, 50)
        assert other(pulls).tolist() == curve(pulls).tolist()
        assert other.cumulative(pulls).tolist() == curve.cumulative(pulls).tolist()


def test_the_dict_form_is_the_one_that_the_design_shows() -> None:
    expected = {"family": "linear_cap", "asymptote": 1.0, "ramp": 40}
    assert LinearCap(asymptote=1.0, ramp=40).to_dict() == expected
    assert Constant(0.25).to_dict() == {"family": "constant", "value": 0.25}
    table = Tabulated((0.1, 0.2)).to_dict()
    assert table == {"family": "tabulated", "values": [0.1, 0.2]}
    given = {"family": "power", "asymptote": 1, "ramp": 9, "exponent": 0.5}
    assert from_dict(given) == Power(1.0, 9.0, 0.5)
    assert given == {"family": "power", "asymptote": 1, "ramp": 9, "exponent": 0.5}


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"family": "linear"}, ValueError, "`family` must be one of ['constant', 'exponential',"),
        ({"family": "linear"}, ValueError, "got 'linear'"),
        ({"asymptote": 1.0}, ValueError, "got None"),
        ({"family": ["linear_cap"]}, ValueError, "`family` must be one of"),
        ([1.0], TypeError, "the dict form of a curve must be a mapping, got [1.0]"),
        ("linear_cap", TypeError, "the dict form of a curve must be a mapping, got 'linear_cap'"),
        (
            {"family": "linear_cap", "asymptote": 1.0, "rate": 4},
            TypeError,
            "family 'linear_cap' takes the parameters ['asymptote', 'ramp'], "
            "got ['asymptote', 'rate']",
        ),
        (
            {"family": "linear_cap", "asymptote": 1.0},
            TypeError,
            "family 'linear_cap' takes the parameters ['asymptote', 'ramp'], got ['asymptote']",
        ),
        ({"family": "power", "asymptote": 1, "ramp": 2, "exponent": 2}, ValueError, "`exponent`"),
        ({"family": "linear_cap", "asymptote": "x", "ramp": 2}, TypeError, "`asymptote` must be"),
    ],
)
def test_wrong_dict_forms_are_refused(data: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        from_dict(data)


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


# --- The model of Patil et al. --------------------------------------------------------------------


@every_valid
@pytest.mark.parametrize("horizon", [1, 2, 3, 5000])
def test_valid_curves_of_every_family_are_accepted(curve: Curve, horizon: int) -> None:
    check_improving(curve, horizon)
    # Closed-form families are judged by their parameters; their values must agree with that.
    check_improving(Tabulated(tuple(curve(np.arange(1, horizon + 1)).tolist())), horizon)


@pytest.mark.parametrize("family", SCALED)
def test_values_of_closed_form_families_are_in_the_model_at_extreme_parameters(
    family: type[Curve],
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        curve = random_curve(family, rng)
        check_improving(Tabulated(tuple(curve(np.arange(1, 400)).tolist())), 400)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.9, 1.1], "arm 4 leaves [0, 1]: f(3) = 1.1"),
        ([-0.25, 0.1], "arm 4 leaves [0, 1]: f(1) = -0.25"),
        ([0.5, 0.75, 0.7], "arm 4 decreases: f(2) = 0.75 but f(3) = 0.7"),
        ([0.5, 0.25], "arm 4 decreases: f(1) = 0.5 but f(2) = 0.25"),
        ([0.25, 0.625], "arm 4 breaks f(2) <= 2 f(1): f(1) = 0.25 but f(2) = 0.625"),
        ([0.0, 0.5], "arm 4 breaks f(2) <= 2 f(1): f(1) = 0.0 but f(2) = 0.5"),
        (
            [0.25, 0.375, 0.75],
            "arm 4 is convex, it rises faster than before: f(1) = 0.25, f(2) = 0.375, f(3) = 0.75",
        ),
        (
            [0.25, 0.5, 0.5, 0.5, 0.625],
            "arm 4 is convex, it rises faster than before: f(3) = 0.5, f(4) = 0.5, f(5) = 0.625",
        ),
    ],
)
def test_tables_outside_the_model_are_refused_with_arm_pull_and_values(
    values: list[float], message: str
) -> None:
    curve = Tabulated(tuple(values))
    with pytest.raises(ValueError, match=re.escape(message) + ".*; pass `validate=False`"):
        check_improving(curve, 10, arm=4)
    assert curve.values == tuple(values)


BROKEN_BY: dict[str, Callable[[float], list[float]]] = {
    "leaves [0, 1]: f(2)": lambda by: [0.9, 1 + by],
    "leaves [0, 1]: f(1)": lambda by: [-by, 0.0],
    "decreases: f(2)": lambda by: [0.4, 0.5, 0.5 - by],
    "breaks f(2) <= 2 f(1)": lambda by: [0.25, 0.5 + by],
    "is convex": lambda by: [0.25, 0.25, 0.25 + by],
}


@pytest.mark.parametrize("rule", BROKEN_BY)
def test_tables_break_a_rule_by_more_than_rounding(rule: str) -> None:
    make = BROKEN_BY[rule]
    check_improving(Tabulated(tuple(make(0.0))), 10)
    check_improving(Tabulated(tuple(make(5e-10))), 10)
    with pytest.raises(ValueError, match=re.escape(rule)):
        check_improving(Tabulated(tuple(make(5e-9))), 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda level: LinearCap(level, 10),
        lambda level: Exponential(level, 0.5),
        Constant,
        lambda level: Hyperbolic(level, 1e-3),
        lambda level: PowerLaw(level, 10),
        lambda level: Logarithmic(level, 2, 10),
        lambda level: Power(level, 10, 0.5),
        lambda level: HeadStart(level, 1.0, 10.0),
    ],
)
def test_asymptotes_leave_the_unit_interval_by_more_than_rounding(
    make: Callable[[float], Curve],
) -> None:
    for level in (0.0, 1.0, 1 + 5e-10, -5e-10):
        check_improving(make(level), 1000)
    for level in (1 + 5e-9, -5e-9):
        with pytest.raises(ValueError, match=re.escape(f"asymptote {level}")):
            check_improving(make(level), 1000)


@pytest.mark.parametrize(
    ("curve", "pull", "value"),
    [
        (LinearCap(1.2, 40), 34, 1.02),  # 1.2 * 33/40 = 0.99
        (Constant(1.2), 1, 1.2),
        (Constant(-0.1), 1, -0.1),
        (LinearCap(-0.1, 40), 1, -0.0025),
        (Hyperbolic(1.2, 25), 126, 1.2 * 126 / 151),  # 1.2 n > n + 25 from n = 126
        (HeadStart(1.2, 2.0, 10.0), 9, 1.1),  # 1.2 * 10/12 = 1 at pull 8
        (HeadStart(-0.1, 5.0, 5.0), 1, -0.06),
    ],
)
def test_a_scaled_curve_beyond_the_unit_interval_is_refused_where_it_is_first_seen(
    curve: ScaledCurve, pull: int, value: float
) -> None:
    # Judged whole: also by what lies beyond the horizon.
    for horizon in (1, 10**6):
        with pytest.raises(ValueError, match=r"arm 2 leaves \[0, 1\]: f\(\d+\) = ") as caught:
            check_improving(curve, horizon, arm=2)
        message = str(caught.value)
        named = re.search(r"f\((\d+)\) = (\S+) with asymptote (\S+) ", message)
        assert named is not None
        assert int(named[1]) == pull
        assert float(named[2]) == pytest.approx(value, rel=1e-12)
        assert float(named[3]) == curve.asymptote


def test_tables_are_looked_at_up_to_the_horizon_and_no_further() -> None:
    rise = [0.1, 0.2, 0.3, 0.4]
    for values in ([*rise, 1.5], [*rise, 0.3], [*rise, 0.6]):
        check_improving(Tabulated(tuple(values)), 4)
        with pytest.raises(ValueError, match=r"f\(5\)"):
            check_improving(Tabulated(tuple(values)), 5)
    check_improving(Tabulated((0.0, 0.5)), 1)
    with pytest.raises(ValueError, match=r"breaks f\(2\)"):
        check_improving(Tabulated((0.0, 0.5)), 2)


@pytest.mark.parametrize("pull", [CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 2, SCAN_LIMIT])
def test_a_rule_broken_anywhere_up_to_the_scan_limit_is_found(pull: int) -> None:
    table = np.full(SCAN_LIMIT + 1, 0.5)
    table[pull - 1 :] = 0.25
    with pytest.raises(ValueError, match=rf"decreases: f\({pull - 1}\) = 0.5 but f\({pull}\)"):
        check_improving(Tabulated(cast(Any, table)), 10**6)
    table[pull - 1 :] = 0.75
    with pytest.raises(ValueError, match=rf"convex.* f\({pull - 1}\) = 0.5, f\({pull}\) = 0.75"):
        check_improving(Tabulated(cast(Any, table)), 10**6)
    table[pull - 1 :] = 1.25
    with pytest.raises(ValueError, match=rf"leaves \[0, 1\]: f\({pull}\) = 1.25"):
        check_improving(Tabulated(cast(Any, table)), 10**6)


def test_beyond_the_scan_limit_nothing_is_looked_at() -> None:
    table = np.full(SCAN_LIMIT + 1, 0.5)
    table[-1] = 7.0
    check_improving(Tabulated(cast(Any, table)), 10**6)


def test_a_fall_too_small_to_see_from_pull_to_pull_is_refused() -> None:
    # Each pull pays 5e-10 less than the one before: after 1000 pulls f has fallen by 5e-7.
    table = 0.5 - 5e-10 * np.arange(1000)
    with pytest.raises(ValueError, match="decreases"):
        check_improving(Tabulated(cast(Any, table)), 1000)


def test_a_bend_too_small_to_see_from_pull_to_pull_is_refused() -> None:
    # 1/2 + (n / 10^5)^2 / 2 rises by 1e-10 more with every pull, in the end by 1e-5 a pull.
    table = 0.5 + np.square(np.arange(1, SCAN_LIMIT + 1) / SCAN_LIMIT) / 2
    with pytest.raises(ValueError, match="convex"):
        check_improving(Tabulated(cast(Any, table)), SCAN_LIMIT)


def test_a_users_curve_is_judged_by_its_values() -> None:
    check_improving(Halving(1.0), 10**5)
    with pytest.raises(ValueError, match=r"arm 1 leaves \[0, 1\]: f\(3\) = 1\.05"):
        check_improving(Halving(1.2), 10, arm=1)  # 1.2 * 7/8 = 1.05
    with pytest.raises(ValueError, match=r"arm 0 decreases: f\(1571\) = .* but f\(1572\)"):
        check_improving(Wave(), 2000)  # the crest lies at 500 pi = 1570.8


def test_a_users_curve_of_nan_is_refused() -> None:
    @dataclass(frozen=True)
    class Nowhere(Curve):
        family: ClassVar[str] = "test_nowhere"

        def evaluate(self, pulls: Floats) -> Floats:
            return np.where(pulls == 3, np.nan, 0.5)

    check_improving(Nowhere(), 2)
    with pytest.raises(ValueError, match=r"arm 0 leaves \[0, 1\]: f\(3\) = nan"):
        check_improving(Nowhere(), 3)


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(TypeError, match=r"arm 3 must be a `Curve`, got \[0\.5\]"):
        check_improving(cast(Any, [0.5]), 10, arm=3)
    for horizon in (0, 2.5):
        with pytest.raises((TypeError, ValueError), match="`horizon` must be"):
            check_improving(Tabulated((0.5,)), cast(Any, horizon))


def test_nondecreasing_answers_for_the_pulls_asked() -> None:
    peak = Tabulated((0.1, 0.3, 0.2))
    assert [peak.nondecreasing(pulls) for pulls in (0, 1, 2, 3, 10)] == [True] * 3 + [False] * 2
    assert [Wave().nondecreasing(pulls) for pulls in (1570, 1573)] == [True, False]
    assert all(curve.nondecreasing(10**6) for curve in VALID)
    assert not LinearCap(-0.5, 10).nondecreasing(5)
    assert Constant(-0.5).nondecreasing(5)


# --- A user's own curves, everywhere --------------------------------------------------------------


@pytest.mark.parametrize("form", ["objects", "dicts", "callable"])
def test_users_curves_play_in_both_environments_like_any_other(form: str) -> None:
    arms: list[Curve] = [*USERS, Tabulated((0.1, 0.15)), LinearCap(1.0, 50)]

    def drawn(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return arms

    dicts = json.loads(json.dumps([curve.to_dict() for curve in arms]))
    instance = {"objects": arms, "dicts": dicts, "callable": drawn}[form]
    settings: dict[str, Any] = {"instance": instance, "num_arms": 5, "horizon": 60}
    env: Any = PolicyRegret(gym.make("ImprovingBandit-v0", **settings))
    batch: Any = gym.make_vec("ImprovingBandit-v0", num_envs=3, **settings)
    env.reset(seed=0)
    batch.reset(seed=0)
    pulls = [0] * 5
    total = 0.0
    actions = np.random.default_rng(4).integers(5, size=60).tolist()
    for action in actions:
        _, reward, _, truncated, info = env.step(action)
        rewards = batch.step(np.array([action, 0, 1]))[1]
        pulls[action] += 1
        total += reward
        assert reward == arms[action](pulls[action])
        assert rewards[0] == reward
    assert truncated
    assert env.unwrapped.curves == tuple(arms)
    best = max(curve.cumulative(60) for curve in arms)
    assert improving_optimum(arms, 60)[0] == best
    assert info["optimal_return"] == pytest.approx(best, rel=1e-12)
    assert info["expected_return"] == pytest.approx(total, rel=1e-12)
    assert info["policy_regret"] == pytest.approx(best - total, rel=1e-9)


def test_a_users_curve_outside_the_model_needs_validate_false() -> None:
    with pytest.raises(ValueError, match=r"arm 1 leaves \[0, 1\].*pass `validate=False`"):
        gym.make("ImprovingBandit-v0", instance=[Constant(0.5), Halving(1.2)])
    env: Any = gym.make("ImprovingBandit-v0", instance=[Wave(), Halving(1.2)], validate=False)
    env.reset(seed=0)
    assert env.step(1)[1] == pytest.approx(0.6)
    assert env.step(0)[1] == Wave()(1)
