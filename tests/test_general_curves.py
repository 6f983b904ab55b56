"""General curves, judged by vectors, long sums, recursions and exact fractions."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers_curves import GENERAL, every_general
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import curves
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Gompertz,
    Hill,
    Hyperbolic,
    LinearCap,
    Logistic,
    NoveltyDecay,
    PiecewiseLinear,
    Polynomial,
    PowerLaw,
    Scaled,
    Sum,
    Tabulated,
    Weibull,
    from_dict,
)
from gym_fairbandits.curves.general import __all__ as general_names
from gym_fairbandits.curves.saturating import __all__ as saturating_names

VECTORS = json.loads((Path(__file__).parent / "data" / "general_curves.json").read_text())


def test_the_cases_cover_every_general_family() -> None:
    names = {"Polynomial", "Scaled", "Sum", *general_names, *saturating_names} - {"Tabulated"}
    assert {type(curve) for curve in GENERAL} == {getattr(curves, name) for name in names}
    assert len(names) == 11


# --- Values and sums ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: str(case["curve"]["family"]))
def test_values_and_sums_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    curve = from_dict(case["curve"])
    assert len(case["f"]) == 6
    assert len(case["rew"]) == 5
    for pull, value in case["f"].items():
        assert curve(int(pull)) == pytest.approx(value, rel=1e-13, abs=0)
    for pulls, total in case["rew"].items():
        assert curve.cumulative(int(pulls)) == pytest.approx(total, rel=1e-13, abs=0)


@every_general
def test_sums_are_the_sums_of_the_values(curve: Curve) -> None:
    values = curve(np.arange(1, 1001)).tolist()
    for pulls in (0, 1, 2, 15, 16, 17, 40, 333, 1000):
        exact = math.fsum(values[:pulls])
        assert curve.cumulative(pulls) == pytest.approx(exact, rel=1e-12, abs=1e-15)
    assert curve.cumulative(0) == 0.0


@every_general
def test_values_go_to_the_asymptote(curve: Curve) -> None:
    assert curve(10**12) == pytest.approx(curve.asymptote, rel=1e-5)


@every_general
def test_scalars_arrays_and_batches_agree_bit_for_bit(curve: Curve) -> None:
    rng = np.random.default_rng(2)
    pulls = np.concatenate([np.arange(1, 131), rng.integers(1, 10**4, size=38)])
    values = [curve(pull) for pull in pulls.tolist()]
    sums = [curve.cumulative(pull) for pull in pulls.tolist()]
    assert curve(pulls).tolist() == values
    assert curve(pulls.reshape(12, 14)[:, ::-1]).ravel().tolist() == (
        np.array(values).reshape(12, 14)[:, ::-1].ravel().tolist()
    )
    assert curve.cumulative(pulls).tolist() == sums
    grid = CurveGrid(len(pulls), 2)
    grid.set_rows(np.arange(len(pulls)), [curve, Constant(0.5)])
    cells = np.arange(0, 2 * len(pulls), 2)
    assert grid.values(cells, pulls.astype(np.float64)).tolist() == values
    both = np.repeat(pulls[:, None].astype(np.float64), 2, axis=1)
    assert grid.sums(both)[:, 0].tolist() == sums
    assert grid.asymptotes()[0].tolist() == [curve.asymptote, 0.5]
    assert grid.row(0) == (curve, Constant(0.5))


def precise_polynomial(curve: Polynomial, most: int) -> NDArray[Any]:
    """f(1), ..., f(most) by the printed formula in the platform's widest floats."""
    n: Any = np.arange(1, most + 1).astype(np.longdouble)
    weight, exponent = np.longdouble(curve.weight), np.longdouble(curve.exponent)
    offset = np.exp(np.log(weight) / exponent)
    if offset > 1:
        rise = -np.expm1(-exponent * np.log1p(n / offset))
    else:
        rise = -np.expm1(np.log(weight) - exponent * np.log(n + offset))
    return np.asarray(np.longdouble(curve.asymptote) * rise)


def random_polynomial(rng: np.random.Generator) -> Polynomial:
    """Offsets log-uniform on [1e-3, 1e6] and exponents log-uniform on [1e-3, 10]."""
    offset = math.exp(rng.uniform(math.log(1e-3), math.log(1e6)))
    exponent = math.exp(rng.uniform(math.log(1e-3), math.log(10)))
    return Polynomial(rng.uniform(0.01, 1), offset**exponent, exponent)


def test_random_polynomial_curves_at_every_pull_up_to_2000() -> None:
    rng = np.random.default_rng(0)
    pulls = np.arange(1, 2001)
    for _ in range(60):
        curve = random_polynomial(rng)
        values = precise_polynomial(curve, 2000)
        # The offset itself is known to |log(weight)| / exponent roundings.
        assert (abs(curve(pulls) / values - 1) <= 1e-12).all(), curve
        assert (abs(curve.cumulative(pulls) / np.cumsum(values) - 1) <= 1e-11).all(), curve


@pytest.mark.parametrize("weight", [1e-3, 0.5, 1.0, 57.0, 1e4, 1e6])
@pytest.mark.parametrize("exponent", [0.1, 0.4999999, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 10.0])
def test_polynomial_sums_keep_eleven_digits_up_to_a_million_pulls(
    weight: float, exponent: float
) -> None:
    curve = Polynomial(0.9, weight, exponent)
    stops = np.array([1, 2, 16, 17, 300, 65_536, 333_333, 10**6])
    sums = np.cumsum(precise_polynomial(curve, 10**6))[stops - 1]
    assert (abs(curve.cumulative(stops) / sums - 1) <= 1e-11).all()


def test_the_shifted_power_law_is_the_polynomial_of_weight_one() -> None:
    pulls = np.arange(1, 3000)
    for exponent in (0.05, 0.5, 1.0, 3.0):
        shifted, polynomial = PowerLaw(0.7, exponent), Polynomial(0.7, 1.0, exponent)
        np.testing.assert_allclose(polynomial(pulls), shifted(pulls), rtol=1e-14)
        np.testing.assert_allclose(polynomial.cumulative(pulls), shifted.cumulative(pulls))


def test_special_exponents_are_simpler_families() -> None:
    pulls = np.arange(1, 500)
    same: list[tuple[Curve, Curve]] = [
        (Weibull(0.9, 20.0, 1.0), Exponential(0.9, 0.05)),
        (Hill(0.9, 20.0, 1.0), Hyperbolic(0.9, 20.0)),
        (PiecewiseLinear((0.9,), (20.5,)), LinearCap(0.9, 20.5)),
        (NoveltyDecay(0.9, 0.0, 0.5, 0.25), 0.9 * (Constant(1) + -1 * from_powers(0.75))),
    ]
    for general, simple in same:
        np.testing.assert_allclose(general(pulls), simple(pulls), rtol=1e-13, atol=1e-15)


def from_powers(base: float) -> Curve:
    """base ** (n - 1), from 1 down to 0."""
    return Tabulated(tuple((base ** np.arange(600.0)).tolist()))


def test_extreme_parameters_overflow_nowhere() -> None:
    pulls = np.array([1, 10, 10**6])
    assert Hill(0.5, 3.0, 1e4)(pulls).tolist() == [0.0, 0.5, 0.5]
    assert Weibull(0.5, 3.0, 1e4)(pulls).tolist() == [0.0, 0.5, 0.5]
    assert Logistic(0.5, 1e4, 3.0)(pulls).tolist() == [0.0, 0.5, 0.5]
    assert Gompertz(0.5, 1e300, 1e-300)(pulls).tolist() == [0.0, 0.0, 0.0]
    small = Polynomial(0.5, 1e-3, 1e-3)(pulls)
    assert small == pytest.approx(0.5 * (1 - 1e-3 * np.array([1, 10, 1e6]) ** -1e-3))


@pytest.mark.parametrize(
    "curve",
    [
        NoveltyDecay(0.3, 0.2, 0.95, 0.05),  # fading = 1 - adaptation
        NoveltyDecay(0.3, 0.2, 0.95, 0.0500000001),
        NoveltyDecay(0.3, 0.2, 0.9, 0.2),
        NoveltyDecay(0.0, 0.5, 0.999, 0.01),
        NoveltyDecay(0.4, 0.25, 0.99, 0.0),
    ],
    ids=str,
)
def test_novelty_decay_follows_its_recursion(curve: NoveltyDecay) -> None:
    reward = 0.0
    for pull in range(1, 1500):
        assert curve(pull) == pytest.approx(reward, rel=1e-11, abs=1e-12)
        reward += curve.novelty * curve.fading**pull - curve.adaptation * (reward - curve.value)


def test_piecewise_linear_curves_are_exact() -> None:
    curve = PiecewiseLinear((0.5, 0.25, -0.125), (4.0, 16.5, 0.5))
    total = Fraction(0)
    for pull in range(1, 60):
        value = (
            min(Fraction(pull, 4), Fraction(1)) / 2
            + min(Fraction(2 * pull, 33), Fraction(1)) / 4
            - Fraction(1, 8)
        )
        total += value
        assert curve(pull) == pytest.approx(float(value), rel=1e-15)
        assert curve.cumulative(pull) == pytest.approx(float(total), rel=1e-15)
    assert curve.asymptote == 0.625


# --- Sums and scalings ----------------------------------------------------------------------------


def test_curves_add_up_and_scale() -> None:
    first, second, third = LinearCap(0.5, 4), Constant(0.25), Tabulated((0.5, 0.125))
    total = first + second + third
    assert total == Sum((first, second, third)) == first + (second + third)
    assert total([1, 2, 9]).tolist() == [0.875, 0.625, 0.875]
    assert total.cumulative([0, 1, 2]).tolist() == [0.0, 0.875, 1.5]
    assert total.asymptote == 0.875
    number: Any = np.float64(2)
    for double in (2 * third, third * 2, number * third, third * number):
        assert double == Scaled(2.0, third)
        assert double([1, 2]).tolist() == [1.0, 0.25]
        assert double.cumulative(3) == 1.5
        assert double.asymptote == 0.25


def test_nested_dict_forms() -> None:
    curve = 2 * (LinearCap(0.25, 4) + Constant(0.125))
    assert curve.to_dict() == {
        "family": "scaled",
        "factor": 2.0,
        "curve": {
            "family": "sum",
            "curves": [
                {"family": "linear_cap", "asymptote": 0.25, "ramp": 4.0},
                {"family": "constant", "value": 0.125},
            ],
        },
    }


@every_general
def test_dict_forms_survive_json_pickle_and_copies(curve: Curve) -> None:
    data = curve.to_dict()
    pulls = np.arange(1, 50)
    for other in (
        from_dict(json.loads(json.dumps(data))),
        pickle.loads(pickle.dumps(curve)),
        copy.deepcopy(curve),
    ):
        assert other == curve
        assert hash(other) == hash(curve)
        assert other.to_dict() == data
        assert other(pulls).tolist() == curve(pulls).tolist()
        assert other.cumulative(pulls).tolist() == curve.cumulative(pulls).tolist()
    for field in fields(cast(Any, curve)):
        with pytest.raises(FrozenInstanceError):
            setattr(curve, field.name, 0.5)


@pytest.mark.parametrize("other", [1, "x", None, [1.0]])
def test_only_curves_add_up(other: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        Constant(0.5) + other


@pytest.mark.parametrize("factor", ["x", None, [2.0], Constant(0.5), 2j])
def test_only_numbers_scale(factor: Any) -> None:
    with pytest.raises(TypeError):
        factor * Constant(0.5)
