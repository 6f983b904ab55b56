"""Named and random instances of improving arms, judged by exact rationals and theorems."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_instances import curves_of, improving
from scipy.stats import chisquare, kstest

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.curves import (
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Power,
    Tabulated,
    check_improving,
)
from gym_fairbandits.instances import (
    EGALITARIAN,
    IMPROVING,
    early_vs_late,
    egal_lower_bound,
    improving_lower_bound,
    policy_vs_external,
    round_robin_trap,
    two_level,
)

Exact = Callable[[int], Fraction]


def capped(ramp: Any, cap: Any = 1) -> Exact:
    """``min(n / ramp, cap)``."""
    return lambda pull: min(Fraction(pull) / Fraction(ramp), Fraction(cap))


def assert_equal_to_rationals(curves: Sequence[Curve], exact: Sequence[Exact], pulls: int) -> None:
    assert len(curves) == len(exact)
    for curve, formula in zip(curves, exact, strict=True):
        values = [formula(pull) for pull in range(1, pulls + 1)]
        numbers = np.arange(1, pulls + 1)
        np.testing.assert_allclose(
            curve(numbers), [float(value) for value in values], rtol=4e-16, atol=0
        )
        sums = np.cumsum(np.array(values, dtype=object))
        np.testing.assert_allclose(
            curve.cumulative(numbers), [float(total) for total in sums], rtol=2e-15, atol=0
        )


def assert_improving(curves: Sequence[Curve], pulls: int) -> None:
    """By the values themselves: closed-form families would be judged by their parameters."""
    for arm, curve in enumerate(curves):
        check_improving(Tabulated(tuple(curve(np.arange(1, pulls + 1)).tolist())), pulls, arm)


def test_the_names_are_those_of_the_design() -> None:
    assert set(IMPROVING) == {
        "random_concave",
        "early_vs_late",
        "lower_bound",
        "round_robin_trap",
        "policy_vs_external",
    }
    assert set(EGALITARIAN) == {"bernoulli", "gaussian", "two_level", "lower_bound"}


# --- Improving arms by hand -----------------------------------------------------------------------


def test_early_vs_late_is_the_figure_with_the_reference_numbers() -> None:
    curves = curves_of("early_vs_late")
    assert_equal_to_rationals(curves, [capped(4, Fraction(1, 2)), capped(40)], 100)
    assert_improving(curves, 100)
    # The totals T/2 - 1/4 and T (T + 1) / 80 cross between T = 38 and T = 39.
    env = improving("early_vs_late")
    env.reset(seed=0)
    assert [env.optimal_arm(steps) for steps in (1, 6, 38, 39, 100)] == [0, 0, 0, 1, 1]
    assert [env.optimal_return(steps) for steps in (6, 100)] == [2.75, 80.5]


def test_early_vs_late_takes_its_numbers() -> None:
    instance = {
        "name": "early_vs_late",
        "early_asymptote": 0.25,
        "early_ramp": 1,
        "late_asymptote": 0.75,
        "late_ramp": 8,
    }
    expected: list[Exact] = [
        lambda pull: Fraction(1, 4),
        lambda pull: Fraction(3, 4) * capped(8)(pull),
    ]
    assert_equal_to_rationals(curves_of(instance), expected, 30)
    assert curves_of(instance) == early_vs_late(0.25, 1, 0.75, 8)


SIZES = [(2, 8), (3, 9), (4, 40), (10, 1000), (3, 10), (5, 7), (7, 1000), (5, 3), (2, 1)]


@pytest.mark.parametrize("printing", ["main", "appendix"])
@pytest.mark.parametrize(("num_arms", "steps"), SIZES)
def test_lower_bound_is_the_printed_family_made_monotone(
    num_arms: int, steps: int, printing: str
) -> None:
    # Main, with N = ceil(T/k): min(n/(kN), 1/k) and min(n/(kN), 1); appendix: T in place of kN.
    ramp = num_arms * -(-steps // num_arms) if printing == "main" else steps
    usual, bloomer = capped(ramp, Fraction(1, num_arms)), capped(ramp)
    pulls = 2 * min(steps, 100)
    for late in (0, num_arms - 1, num_arms // 2):
        curves = improving_lower_bound(num_arms, steps, late, printing)
        expected = [usual] * num_arms
        expected[late] = bloomer
        assert_equal_to_rationals(curves, expected, pulls)
        assert_improving(curves, 2 * steps)
        assert improving_lower_bound(num_arms, steps, late - num_arms, printing) == curves
    without = improving_lower_bound(num_arms, steps, None, printing)
    assert_equal_to_rationals(without, [usual] * num_arms, pulls)


@pytest.mark.parametrize(("num_arms", "steps"), SIZES)
def test_both_printings_coincide_exactly_if_the_arms_divide_the_steps(
    num_arms: int, steps: int
) -> None:
    main = improving_lower_bound(num_arms, steps, 0, "main")
    appendix = improving_lower_bound(num_arms, steps, 0, "appendix")
    assert (main == appendix) == (steps % num_arms == 0)


def test_the_bloomer_is_the_last_arm_of_the_main_printing_by_default() -> None:
    expected = improving_lower_bound(10, 37, 9, "main")
    assert improving_lower_bound(steps=37) == expected
    assert curves_of("lower_bound", horizon=37) == expected
    assert curves_of({"name": "lower_bound", "late": None}, horizon=37) == [expected[0]] * 10


@pytest.mark.parametrize("printing", ["main", "appendix"])
def test_the_steps_of_a_family_are_the_horizon_unless_given(printing: str) -> None:
    instance = {"name": "lower_bound", "late": 2, "printing": printing}
    expected = improving_lower_bound(4, 37, 2, printing)
    assert curves_of(instance, num_arms=4, horizon=37) == expected
    assert curves_of({**instance, "num_arms": 4, "steps": 37}, horizon=9) == expected
    assert curves_of(instance, num_arms=4) == improving_lower_bound(4, 1000, 2, printing)
    assert curves_of("round_robin_trap", num_arms=4, horizon=37) == round_robin_trap(4, 37)
    trap = {"name": "round_robin_trap", "steps": 37}
    assert curves_of(trap, num_arms=4, horizon=9) == round_robin_trap(4, 37)


@pytest.mark.parametrize("late", [0, 3, 4])
def test_round_robin_loses_on_the_lower_bound_as_the_theorem_says(late: int) -> None:
    # With k | T: OPT = (T+1)/2 and round robin's ratio is k (T+1) / (T+k) > k/2.
    env = improving({"name": "lower_bound", "late": late}, num_arms=5, horizon=60)
    env.reset(seed=0)
    for step in range(60):
        env.step(step % 5)
    assert env.optimal_return() == pytest.approx(61 / 2, rel=1e-14)
    ratio = env.optimal_return() / env.expected_return()
    assert ratio == pytest.approx(5 * 61 / 65, rel=1e-13)
    assert env.optimal_arm() == late


@pytest.mark.parametrize(("num_arms", "steps"), [(4, 40), (3, 10), (5, 7), (6, 6), (1, 5)])
def test_the_trap_has_its_good_arm_last_where_round_robin_loses_most(
    num_arms: int, steps: int
) -> None:
    curves = curves_of("round_robin_trap", num_arms=num_arms, horizon=steps)
    assert_equal_to_rationals(curves, [capped(1, 0)] * (num_arms - 1) + [capped(steps)], 2 * steps)
    env = improving("round_robin_trap", num_arms=num_arms, horizon=steps)
    env.reset(seed=0)
    for step in range(steps):
        env.step(step % num_arms)
    q = steps // num_arms
    ratio = env.optimal_return() / env.expected_return()
    assert ratio == pytest.approx(float(Fraction(steps * (steps + 1), q * (q + 1))), rel=1e-13)


@pytest.mark.parametrize("steps", [10, 11, 250])
def test_policy_regret_grows_where_external_regret_does_not(steps: int) -> None:
    curves = curves_of("policy_vs_external")
    assert_equal_to_rationals(curves, [capped(10), lambda pull: Fraction(0.1)], 40)
    assert curves == policy_vs_external()
    env = improving("policy_vs_external", horizon=steps)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(1)
    regret = env.optimal_return() - env.expected_return()
    assert regret == pytest.approx(0.9 * steps - 4.5, rel=1e-12)


@pytest.mark.parametrize(
    ("build", "parameters", "error", "message"),
    [
        (
            improving_lower_bound,
            {"num_arms": 1},
            ValueError,
            "`num_arms` must be at least 2, got 1",
        ),
        (improving_lower_bound, {"num_arms": 2.0}, TypeError, "`num_arms` must be an integer, got"),
        (improving_lower_bound, {"num_arms": True}, TypeError, "`num_arms` must be an integer"),
        (improving_lower_bound, {"steps": 0}, ValueError, "`steps` must be at least 1, got 0"),
        (improving_lower_bound, {"steps": "9"}, TypeError, "`steps` must be an integer, got '9'"),
        (improving_lower_bound, {"late": 10}, ValueError, "`late` must be at most 9, got 10"),
        (improving_lower_bound, {"late": -11}, ValueError, "`late` must be at least -10, got -11"),
        (improving_lower_bound, {"late": 1.5}, TypeError, "`late` must be an integer, got 1.5"),
        (improving_lower_bound, {"late": True}, TypeError, "`late` must be an integer, got True"),
        (
            improving_lower_bound,
            {"printing": "Main"},
            ValueError,
            "`printing` must be one of 'main', 'appendix', got 'Main'",
        ),
        (improving_lower_bound, {"printing": None}, ValueError, "`printing` must be one of"),
        (round_robin_trap, {"num_arms": 0}, ValueError, "`num_arms` must be at least 1, got 0"),
        (round_robin_trap, {"steps": 0}, ValueError, "`steps` must be at least 1, got 0"),
        (round_robin_trap, {"steps": 2.5}, TypeError, "`steps` must be an integer, got 2.5"),
        (early_vs_late, {"early_ramp": 0}, ValueError, "ramp` must be above 0, got 0"),
        (early_vs_late, {"late_asymptote": math.nan}, ValueError, "asymptote` must be finite"),
        (two_level, {"num_users": 2, "high": 1.5}, ValueError, "`high` must be at most 1, got 1.5"),
        (
            two_level,
            {"num_users": 2, "low": -0.5},
            ValueError,
            "`low` must be at least 0, got -0.5",
        ),
        (two_level, {"num_users": 2, "low": math.nan}, ValueError, "`low` must be finite, got nan"),
        (two_level, {"num_users": 2, "high": True}, TypeError, "`high` must be a real number"),
        (two_level, {"num_users": 0}, ValueError, "`num_users` must be at least 1, got 0"),
        (two_level, {"num_users": -1}, ValueError, "`num_users` must be at least 1, got -1"),
        (two_level, {"num_users": 2, "num_arms": 0}, ValueError, "`num_arms` must be"),
        (two_level, {"num_users": 2, "num_arms": -3}, ValueError, "`num_arms` must be"),
        (egal_lower_bound, {"num_users": 0}, ValueError, "`num_users` must be at least 1, got 0"),
        (
            egal_lower_bound,
            {"num_users": 3, "num_arms": 5},
            ValueError,
            "`num_arms` must be at least 2 * num_users = 6 for the lower bound, got 5",
        ),
        (
            egal_lower_bound,
            {"num_users": 1, "num_arms": 10, "steps": 4},
            ValueError,
            "`steps` must be at least (num_arms - num_users) / (2 * num_users**2) = 4.5",
        ),
        (
            egal_lower_bound,
            {"num_users": 1, "steps": 2.5},
            TypeError,
            "`steps` must be an integer, got 2.5",
        ),
        (
            egal_lower_bound,
            {"num_users": 2, "boosted": [4, 4]},
            ValueError,
            "`boosted` must hold 2 distinct arms, one per user, got [4, 4]",
        ),
        (
            egal_lower_bound,
            {"num_users": 2, "boosted": [4, 5, 6]},
            ValueError,
            "`boosted` must hold 2 distinct arms, one per user, got [4, 5, 6]",
        ),
        (
            egal_lower_bound,
            {"num_users": 2, "boosted": [1, 4]},
            ValueError,
            "`boosted` must be at least 2, got 1",
        ),
        (
            egal_lower_bound,
            {"num_users": 2, "boosted": [4, 10]},
            ValueError,
            "`boosted` must be at most 9, got 10",
        ),
        (
            egal_lower_bound,
            {"num_users": 2, "boosted": [4.0, 5.0]},
            TypeError,
            "`boosted` must be an integer, got 4.0",
        ),
        (egal_lower_bound, {"num_users": 1, "boosted": 4}, TypeError, "`boosted` must"),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    build: Any, parameters: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        build(**parameters)


# --- Random improving arms ------------------------------------------------------------------------

DRAWS = 4000


@pytest.fixture(scope="module")
def drawn() -> Any:
    """Many random instances at once."""
    batch: Any = gym.make_vec("ImprovingBandit-v0", num_envs=DRAWS)
    batch.reset(seed=0)
    return batch


def scale_of(curve: Any) -> float:
    scales: dict[type[Curve], Callable[[], float]] = {
        LinearCap: lambda: curve.ramp,
        Exponential: lambda: 1 / curve.rate,
        Hyperbolic: lambda: curve.half_saturation,
        Power: lambda: curve.ramp,
    }
    return scales[type(curve)]()


def test_the_best_random_arm_depends_on_the_horizon_in_thirty_percent_of_draws(drawn: Any) -> None:
    share = np.mean(drawn.optimal_arm(100) != drawn.optimal_arm(1000))
    assert share >= 0.3


def test_random_arms_have_the_scales_and_asymptotes_of_the_design(drawn: Any) -> None:
    curves = [curve for row in drawn.curves for curve in row]
    assert len(curves) == 10 * DRAWS
    asymptotes = np.array([curve.asymptote for curve in curves])
    scales = np.array([scale_of(curve) for curve in curves])
    assert ((asymptotes > 0) & (asymptotes < 1)).all()
    assert ((scales >= 1 - 1e-12) & (scales <= 1e4 * (1 + 1e-12))).all()
    assert kstest(asymptotes, "uniform").pvalue > 1e-3
    assert kstest(np.log(scales) / math.log(1e4), "uniform").pvalue > 1e-3
    counts = np.unique([curve.family for curve in curves], return_counts=True)[1]
    assert len(counts) >= 3
    assert chisquare(counts).pvalue > 1e-3


def test_the_arms_of_one_random_instance_are_independent(drawn: Any) -> None:
    potentials = np.array([[curve.asymptote for curve in row] for row in drawn.curves])
    correlations = np.corrcoef(potentials.T) - np.eye(10)
    assert abs(correlations).max() < 5 / math.sqrt(DRAWS)


def test_all_random_arms_are_in_the_model(drawn: Any) -> None:
    for row in drawn.curves:
        for arm, curve in enumerate(row):
            check_improving(curve, 1000, arm)
    for row in drawn.curves[:150]:
        assert_improving(row, 1000)


def test_random_instances_are_redrawn_at_every_reset_from_the_seed() -> None:
    env = improving("random_concave", num_arms=4)
    episodes = []
    for seed in (3, None, None, 3, None, 4):
        env.reset(seed=seed)
        episodes.append(env.curves)
    assert episodes[3:5] == episodes[:2]
    assert len({repr(curves) for curves in episodes}) == 4
    assert [len(curves) for curves in episodes] == [4] * 6
    assert len(curves_of({"name": "random_concave", "num_arms": 3})) == 3
    assert len(curves_of("random_concave")) == 10
