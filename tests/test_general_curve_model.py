"""Which parameters general curves take, and which of them are in the model of Patil et al."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from helpers_curves import GENERAL_IN_MODEL, GENERAL_OUTSIDE
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Gompertz,
    Hill,
    LinearCap,
    Logistic,
    NoveltyDecay,
    PiecewiseLinear,
    Polynomial,
    Scaled,
    SinglePeaked,
    Sum,
    Tabulated,
    UnshiftedPowerLaw,
    Weibull,
    check_improving,
    from_dict,
)

GOOD: list[tuple[Any, dict[str, float], set[str]]] = [  # the last: parameters of any sign
    (Polynomial, {"asymptote": 0.5, "weight": 3, "exponent": 0.5}, {"asymptote"}),
    (Weibull, {"asymptote": 0.5, "scale": 3, "exponent": 0.5}, {"asymptote"}),
    (Hill, {"asymptote": 0.5, "half_saturation": 3, "exponent": 0.5}, {"asymptote"}),
    (Gompertz, {"asymptote": 0.5, "displacement": 3, "rate": 0.5}, {"asymptote"}),
    (Logistic, {"asymptote": 0.5, "steepness": 3, "midpoint": 5}, {"asymptote", "midpoint"}),
    (UnshiftedPowerLaw, {"asymptote": 0.5, "exponent": 3}, {"asymptote"}),
    (
        NoveltyDecay,
        {"value": 0.5, "novelty": 0.5, "fading": 0.5, "adaptation": 0.5},
        {"value", "novelty", "adaptation"},
    ),
    (
        SinglePeaked,
        {
            "rate": 0.5,
            "extra_rate": 1,
            "plateau": 1,
            "asymptote": 0.5,
            "center": 9,
            "amplitude": 1,
        },
        {"plateau", "asymptote", "center", "amplitude", "extra_rate"},
    ),
]


@pytest.mark.parametrize(("family", "good", "free"), GOOD)
def test_parameters_are_checked(family: Any, good: dict[str, float], free: set[str]) -> None:
    for name in good:
        for value, rule in (
            (math.nan, "finite, got nan"),
            (math.inf, "finite, got inf"),
            ("0.5", "a real number, got '0.5'"),
            (True, "a real number, got True"),
        ):
            with pytest.raises(
                (TypeError, ValueError), match=re.escape(f"`{name}` must be {rule}")
            ):
                family(**{**good, name: value})
        if name in free:
            assert getattr(family(**{**good, name: 0}), name) == 0.0
            continue
        for low in (0, -1.5):
            with pytest.raises(ValueError, match=re.escape(f"`{name}` must be above 0, got {low}")):
                family(**{**good, name: low})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Polynomial(0.5, 1e6, 1e-3), ValueError, "`weight` ** (1 / `exponent`) must be at"),
        (
            lambda: SinglePeaked(1.0, 0.0, 1.0, 0.5, 800.0, -1.0),
            ValueError,
            "`rate * center` must be at most 700, got 800.0",
        ),
        (
            lambda: SinglePeaked(1.0, -0.5, 1.0, 0.5, 8.0, -1.0),
            ValueError,
            "`extra_rate` must be at least 0, got -0.5",
        ),
        (lambda: NoveltyDecay(1, 1, 1, 0.5), ValueError, "`fading` must be below 1, got 1.0"),
        (lambda: NoveltyDecay(1, 1, 0.5, 1), ValueError, "`adaptation` must be below 1, got 1.0"),
        (
            lambda: PiecewiseLinear((0.5, 0.5), (1.0,)),
            ValueError,
            "`ramps` must have one entry for each of the 2 `asymptotes`, got 1",
        ),
        (lambda: PiecewiseLinear((0.5,), (0.0,)), ValueError, "`ramps` must be above 0, got (0.0,"),
        (lambda: PiecewiseLinear((), ()), ValueError, "`asymptotes` must be a non-empty"),
        (lambda: Sum(()), ValueError, "`curves` must hold at least one curve, got none"),
        (lambda: Sum(cast(Any, Constant(1))), TypeError, "`curves` must be a sequence of curves"),
        (lambda: Sum(cast(Any, (0.5,))), TypeError, "`curves` must hold curves or their dict form"),
        (lambda: Scaled(2.0, cast(Any, 0.5)), TypeError, "`curve` must hold curves or their dict"),
        (lambda: Scaled(math.nan, Constant(1)), ValueError, "`factor` must be finite, got nan"),
        (
            lambda: from_dict({"family": "sum", "curves": [{"family": "no"}]}),
            ValueError,
            "`family` must be one of",
        ),
    ],
)
def test_wrong_parameters_are_refused(
    make: Callable[[], Curve], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make()


# --- The model of Patil et al. --------------------------------------------------------------------


@pytest.mark.parametrize("curve", GENERAL_IN_MODEL, ids=str)
def test_curves_of_the_model_are_accepted_whole_and_by_their_values(curve: Curve) -> None:
    assert curve.has_model_shape()
    assert curve.nondecreasing(10**9)
    for horizon in (1, 2, 3, 3000):
        check_improving(curve, horizon)
        check_improving(Tabulated(tuple(curve(np.arange(1, horizon + 1)).tolist())), horizon)


@pytest.mark.parametrize(
    ("curve", "rule"),
    [
        (Weibull(0.9, 20.0, 1.5), "f(2) <= 2 f(1)"),
        (Hill(0.9, 20.0, 1.1), "f(2) <= 2 f(1)"),
        (Gompertz(0.9, 5.0, 0.1), "is convex"),
        (Logistic(0.9, 0.1, 30.0), "is convex"),
        (UnshiftedPowerLaw(0.9, 0.5), "f(2) <= 2 f(1)"),
        (SinglePeaked(0.01, 0.001, 1.0, 0.05, 600.0, -0.0015), "decreases"),
        (NoveltyDecay(0.3, 0.2, 0.95, 0.05), "leaves [0, 1]: f(8) = 1.06"),
        (NoveltyDecay(0.3, 0.2, 0.9, 0.2), "decreases"),
        (NoveltyDecay(0.3, 0.0, 0.9, 0.2), "f(2) <= 2 f(1)"),
        (PiecewiseLinear((1.0, -0.75), (4.0, 16.0)), "decreases"),
        (LinearCap(1.0, 10) + LinearCap(-0.5, 300), "decreases"),
        (Constant(0.5) + LinearCap(0.75, 5), "leaves [0, 1]: f(4) = 1.1"),
        (3 * Constant(0.4), "leaves [0, 1]: f(1) = 1.2"),
        (-1.0 * LinearCap(0.5, 4), "leaves [0, 1]: f(1) = -0.125"),
        (Weibull(1.2, 20.0, 0.7), "with asymptote 1.2"),
    ],
    ids=str,
)
def test_curves_outside_the_model_are_refused_with_the_rule(curve: Curve, rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(rule)) as caught:
        check_improving(curve, 3000, arm=7)
    assert str(caught.value).startswith("arm 7 ")
    # The values say the same.
    with pytest.raises(ValueError, match="arm 7"):
        check_improving(Tabulated(tuple(curve(np.arange(1, 3001)).tolist())), 3000, arm=7)


def test_whole_numbers_of_pulls_decide_near_the_border() -> None:
    # Two thirds of a pull late: the function is convex there, the rewards of whole pulls are not.
    check_improving(Logistic(0.9, 0.5, 5 / 3), 3000)
    with pytest.raises(ValueError, match="is convex"):
        check_improving(Logistic(0.9, 0.5, 3), 3000)
    check_improving(Gompertz(0.9, 1.5, 1.0), 3000)  # concave from log(1.5) < 1 on
    # Convex below the first pull only, and f(2) < 2 f(1).
    check_improving(Weibull(0.9, 20.0, 1.01), 3000)
    check_improving(Hill(0.9, 20.0, 1.01), 3000)


def test_nondecreasing_looks_as_far_as_it_is_asked() -> None:
    peak = SinglePeaked(1e-5, 1e-6, 1.0, 0.05, 600_000.0, -0.0015)
    values = peak(np.arange(1, 10**6))
    top = int(values.argmax()) + 1
    assert 100_000 < top < 900_000
    assert peak.nondecreasing(top)
    assert not peak.nondecreasing(900_000)
    caps = PiecewiseLinear((1.0, -0.75), (4.0, 16.0))
    assert [caps.nondecreasing(pulls) for pulls in (0, 1, 3, 4, 5, 10**9)] == [True] * 4 + [
        False
    ] * 2
    flat = PiecewiseLinear((1.0, -0.25), (4.0, 1.0))
    assert flat.nondecreasing(10**9)
    assert not (-0.5 * LinearCap(0.5, 4)).nondecreasing(2)


def test_sums_of_random_curves_of_the_model_are_in_it() -> None:
    rng = np.random.default_rng(3)
    makers: list[Callable[[float, float], Curve]] = [
        lambda level, x: Weibull(level, 100 * x, 0.2 + 0.8 * x),
        lambda level, x: Hill(level, 100 * x, 0.2 + 0.8 * x),
        lambda level, x: Gompertz(level, x, x),
        lambda level, x: Logistic(level, x, 1 - 5 * x),
        lambda level, x: Polynomial(level, 100 * x, 0.5 + x),
    ]
    for first, second in itertools.product(makers, makers):
        curve = first(0.5, rng.random()) + second(0.5, rng.random())
        check_improving(curve, 2000)
        check_improving(Tabulated(tuple(curve(np.arange(1, 2001)).tolist())), 2000)


def test_improving_and_general_curves_play() -> None:
    improving: Any = gym.make("ImprovingBandit-v0", instance=GENERAL_IN_MODEL, horizon=20)
    improving.reset(seed=0)
    general: Any = gym.make(
        "ImprovingBandit-v0",
        instance=[json.loads(json.dumps(curve.to_dict())) for curve in GENERAL_OUTSIDE],
        horizon=20,
        validate=False,
    )
    general.reset(seed=0)
    with pytest.raises(ValueError, match="arm 0 breaks"):
        gym.make("ImprovingBandit-v0", instance=GENERAL_OUTSIDE)
    for env, arms in ((improving, GENERAL_IN_MODEL), (general, GENERAL_OUTSIDE)):
        assert [env.step(arm)[1] for arm in range(len(arms))] == [curve(1) for curve in arms]
        assert [env.step(0)[1] for _ in range(5)] == arms[0](np.arange(2, 7)).tolist()


def test_a_curve_without_a_potential_is_refused_before_it_is_played() -> None:
    class Forgetful(Curve):
        def evaluate(self, pulls: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.minimum(pulls / 10, 1.0)

    with pytest.raises(TypeError, match="arm 1 must have an `asymptote`, its potential"):
        gym.make("ImprovingBandit-v0", instance=[Constant(0.5), Forgetful()])
