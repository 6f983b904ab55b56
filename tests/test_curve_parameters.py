"""Parameters and dict forms of curves: what is taken, kept and refused."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError, fields
from typing import Any, cast

import numpy as np
import pytest
from helpers_curves import every_valid

import gym_fairbandits  # noqa: F401  (registers the environments)
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
    from_dict,
)

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
