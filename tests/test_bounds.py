"""The bounds: printed examples, hand-worked values, ranges, and what they are bounds of."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from gym_fairbandits import bounds
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    PowerLaw,
    ScaledCurve,
    Tabulated,
)
from gym_fairbandits.experiments import anytime_improving
from gym_fairbandits.instances import egal_lower_bound

FIGURE_3 = {"num_arms": 10, "num_users": 5, "steps": 150_000}


def test_the_bounds_of_egal_ucb_have_the_values_worked_out_elsewhere() -> None:
    exact = pytest.approx
    by_gaps = bounds.egal_gap_regret(**FIGURE_3, min_gap=0.1, max_gap=2.0)
    assert by_gaps == exact(1272900.1132047721, rel=1e-12)
    assert bounds.egal_regret(**FIGURE_3) == exact(123630.49056645606, rel=1e-12)
    assert bounds.egal_worst_case_regret(**FIGURE_3) == exact(2.2790142204853647, rel=1e-12)


def test_with_one_user_the_constant_4_becomes_1_plus_a_third_of_pi_squared() -> None:
    # ln 1 = 0 leaves the second terms.
    assert bounds.egal_gap_regret(3, 1, 1, 0.5, 2.0) == pytest.approx((1 + math.pi**2 / 3) * 6)
    assert bounds.egal_gap_regret(3, 2, 1, 0.5, 2.0) == pytest.approx(4 * 3 * 2 / 2)
    assert bounds.egal_regret(3, 1, 1) == pytest.approx((1 + math.pi**2 / 3) * 3)
    assert bounds.egal_regret(3, 2, 1) == pytest.approx(4 * 3 * 1 / 2)


def test_with_an_arm_for_every_user_nothing_is_lost() -> None:
    min_gap, max_gap = bounds.assignment_gaps([0.3, 0.9, 0.5], 3)
    assert (min_gap, max_gap) == (math.inf, 0.0)
    assert bounds.egal_gap_regret(3, 3, 1000, min_gap, max_gap) == 0
    assert bounds.egal_regret(3, 3, 1000) == 0


@pytest.mark.parametrize(
    ("means", "num_users", "gaps"),
    [
        ([0.1, 0.9, 0.6, 0.5], 2, (0.1, 0.9)),
        ([0.9, 0.5, 0.5, 0.2], 2, (0.3, 0.7)),  # mu_U = mu_(U+1): the least positive gap
        ([0.5, 0.5, 0.5], 1, (math.inf, 0.0)),
        ([0.9, 0.8, 0.1], 2, (0.7, 0.8)),  # the worst two overlap the best two
    ],
)
def test_gaps_of_an_instance(means: list[float], num_users: int, gaps: tuple[float, float]) -> None:
    assert bounds.assignment_gaps(means, num_users) == pytest.approx(gaps, rel=1e-12)


def test_the_gap_of_the_lower_bound_pair_makes_theorem_3() -> None:
    # sqrt((K-U) T) / (76 U): the pair's gap sqrt((K-U) / (8 T U^2)) times T sqrt(8) / 76.
    gap = egal_lower_bound(5, 10, 150_000).means[0]
    expected = gap * 150_000 * math.sqrt(8) / 76
    assert bounds.egal_worst_case_regret(**FIGURE_3) == pytest.approx(expected, rel=1e-12)


def test_bad_events_become_rare() -> None:
    assert bounds.bad_event_probability(10, 5, 1) == pytest.approx(20 / 125)
    assert bounds.bad_event_probability(10, 5, 10) == pytest.approx(20 / 12_500)
    assert bounds.bad_event_probability(10, 1, 1) == 1.0


def test_capacity_counts_groups_as_users() -> None:
    # K = 12, U = 6, C = 3: two groups.
    value = bounds.capacity_regret(12, 6, 3, 1000, 0.1, 1.0)
    assert value == pytest.approx(2136 * 10 * math.log(1000) / 0.1 + 4 * 12 * 3 * 1.0 / 6)


@pytest.mark.parametrize("num_arms", [2, 3, 7])
@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_the_least_ratio_of_deterministic_policies_is_the_best_of_all_schedules(
    num_arms: int, rounds: int
) -> None:
    # On the appendix family, exact rationals. The late bloomer is the arm pulled least, so it has
    # at most T/k pulls; the rest earns most on one arm.
    steps = num_arms * rounds
    rising = [Fraction(n, steps) for n in range(1, steps + 1)]
    early = [min(value, Fraction(1, num_arms)) for value in rising]
    most = max(sum(rising[:late]) + sum(early[: steps - late]) for late in range(rounds + 1))
    exact = sum(rising) / most
    assert bounds.deterministic_ratio(num_arms, steps) == pytest.approx(float(exact), rel=1e-12)
    assert exact > Fraction(num_arms, 2)


def test_regret_of_deterministic_policies() -> None:
    assert bounds.deterministic_regret(3, 60) == 10
    assert bounds.deterministic_regret(2, 40) == 5.25


@pytest.mark.parametrize(("num_arms", "steps"), [(1, 5), (2, 5), (3, 10), (5, 5), (4, 23)])
def test_the_ratio_of_round_robin_is_exact_and_in_the_stated_range(
    num_arms: int, steps: int
) -> None:
    turns = steps // num_arms
    earned = sum(Fraction(n, steps) for n in range(1, turns + 1))
    optimum = Fraction(steps + 1, 2)
    exact = bounds.round_robin_ratio(num_arms, steps)
    assert exact == pytest.approx(float(optimum / earned), rel=1e-12)
    low, high = bounds.round_robin_ratio_range(num_arms)
    assert low < exact < high
    assert bounds.round_robin_ratio(num_arms, num_arms - 1 or 1) == (
        math.inf if num_arms > 1 else 1.0
    )


def test_constants_of_theorem_4() -> None:
    values = {name: bounds.algorithm1_ratio(5, 20, name) for name in ("stated", "proved")}
    assert values == {"stated": 160, "proved": 1000}
    assert bounds.algorithm1_ratio(5, 20, "repaired") == 4000
    assert bounds.forced_sweep_ratio(47) < 32 * 47
    assert bounds.forced_sweep_ratio(48) > 32 * 48
    assert bounds.forced_sweep_ratio(299) < 200 * 299
    assert bounds.forced_sweep_ratio(300) > 200 * 300


def test_lemma_9_sums_to_theorem_4() -> None:
    # Over the arms Lemma 9 sums to OPT times the sum of N_i^2 / (200 T^2), least when all N_i are
    # T / k: then k / (200 k^2), a ratio of 200 k.
    num_arms, steps = 7, 700
    rng = np.random.default_rng(0)
    equal = np.full(num_arms, steps // num_arms)
    splits = 3 + rng.multinomial(steps - 3 * num_arms, rng.dirichlet(np.ones(num_arms)), size=50)
    shares = [
        sum(1 / bounds.algorithm1_arm_factor(int(pulls), steps) for pulls in split)
        for split in (equal, *splits)
    ]
    assert 1 / shares[0] == pytest.approx(bounds.algorithm1_ratio(num_arms, steps), rel=1e-12)
    assert min(shares) == shares[0] < max(shares)


def test_early_share_implies_lemma_7_and_corollary_8() -> None:
    for steps in range(2, 200, 2):
        assert bounds.early_share(steps // 2, steps) >= 1 / 5
    for num_arms in (2, 3, 5):
        for pulls in range(1, 40):
            share = bounds.early_share(pulls, 40 * num_arms)
            fraction = Fraction(pulls, 40)  # a of a T / k
            assert share >= float(16 * fraction**2 / (25 * num_arms**2))


@pytest.mark.parametrize(
    "curve",
    [LinearCap(0.9, 30.0), Exponential(0.7, 0.05), Hyperbolic(1.0, 12.0), PowerLaw(0.8, 0.6)],
)
@pytest.mark.parametrize("steps", [0, 1, 7, 50])
def test_sums_lie_between_the_integrals(curve: ScaledCurve, steps: int) -> None:
    low, high = bounds.integral_bounds(lambda n: float(curve.evaluate(np.array([n]))[0]), steps)
    assert low <= curve.cumulative(steps) + 1e-9
    assert curve.cumulative(steps) <= high + 1e-9
    assert low <= high


def test_the_integrals_of_a_straight_line() -> None:
    assert bounds.integral_bounds(lambda n: n / 10, 4) == pytest.approx((0.8, 1.25))


def test_only_arms_of_the_highest_total_may_lead() -> None:
    totals = [[1.0, 3.0, 3.0, 2.0], [0.5, 0.2, 0.0, 0.5 - 1e-12]]
    expected = [[False, True, True, False], [True, False, False, True]]
    assert bounds.may_lead(totals, 2).tolist() == expected


def test_the_steps_to_the_potential_worked_out_by_hand() -> None:
    # Alone, an arm is pulled every time: f(10) = 1 and f(9) = 0.9.
    assert bounds.potential_steps([LinearCap(1.0, 10)], 0.05) == 10
    # Two pulls of each are forced; a constant arm is where it will be.
    assert bounds.potential_steps([Constant(0.5), Constant(0.2)], 0.05) == 4
    # The linear arm is near at n = 4. At n = 2: 0.75 + m / 2 + m (m + 1) / 8 reaches 2 + m at
    # m = 5, at n = 3: 1.5 + 3 m / 4 + m (m + 1) / 8 reaches 3 + m at m = 4. So the other arm has
    # at most 8 pulls, and 2 + 8 + 1 or 3 + 8 + 1 steps are enough.
    assert bounds.potential_steps([Constant(0.5), LinearCap(1.0, 4)], 0.1) == 12


@pytest.mark.parametrize("seed", range(30))
def test_after_so_many_steps_every_arm_is_near_its_potential(seed: int) -> None:
    rng = np.random.default_rng(seed)
    curves: list[Curve] = []
    for _ in range(int(rng.integers(1, 6))):
        top, speed = rng.random(2).tolist()
        curves.append(
            (
                LinearCap(top, 1 + 60 * speed),
                Exponential(top, 0.05 + speed),
                Hyperbolic(top, 5 * speed),
                PowerLaw(top, 0.7 + speed),
            )[int(rng.integers(4))]
        )
    gap = 0.05
    steps = bounds.potential_steps(curves, gap)
    pulls = np.bincount(anytime_improving(curves, steps), minlength=len(curves)).tolist()
    for curve, count in zip(curves, pulls, strict=True):
        assert curve.asymptote - curve(count) <= gap
    alone = bounds.potential_steps(curves[:1], gap)  # and no step too many
    assert alone == 2 or curves[0].asymptote - curves[0](alone - 1) > gap


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.may_lead([1.0, 2.0], 1), "`pulls` must be at least 2, got 1"),
        (lambda: bounds.may_lead([1.0, math.nan], 2), "`totals` must be finite"),
        (lambda: bounds.may_lead([], 2), "`totals` must have at least one entry"),
        (lambda: bounds.potential_steps([LinearCap(1.0, 4)], 0), "`gap` must be above 0, got 0"),
        (lambda: bounds.potential_steps([], 0.1), "`curves` must hold at least one curve"),
        (lambda: bounds.potential_steps([PowerLaw(1.0, 0.01)], 0.1), "within 10000000 pulls"),
        (
            lambda: bounds.potential_steps([Tabulated((0.1, 0.1, 0.1, 0.1, 0.9))], 0.1),
            "`curves` must rise up to their potentials",
        ),
        (lambda: bounds.deterministic_regret(1, 5), "`num_arms` must be at least 2, got 1"),
        (lambda: bounds.deterministic_regret(2, 5), "`steps` must be even for 2 arms, got 5"),
        (lambda: bounds.deterministic_ratio(3, 10), "multiple of num_arms = 3, got 10"),
        (lambda: bounds.algorithm1_ratio(5, 19), "`steps` must be at least 20, got 19"),
        (lambda: bounds.algorithm1_ratio(5, 20, "x"), "`constant` must be one of"),
        (lambda: bounds.algorithm1_arm_factor(2, 9), "`pulls` must be at least 3, got 2"),
        (lambda: bounds.algorithm1_arm_factor(4, 3), "`steps` must be at least 4, got 3"),
        (lambda: bounds.early_share(5, 4), "`steps` must be at least 5, got 4"),
        (lambda: bounds.assignment_gaps([0.5], 2), "`num_users` must be at most 1, got 2"),
        (lambda: bounds.egal_gap_regret(4, 2, 9, 0, 1), "`min_gap` must be above 0, got 0"),
        (lambda: bounds.egal_gap_regret(4, 2, 9, math.nan, 1), "`min_gap` must be finite"),
        (lambda: bounds.egal_gap_regret(4, 2, 9, 0.1, -1), "`max_gap` must be at least 0"),
        (lambda: bounds.egal_regret(4, 5, 9), "`num_users` must be at most 4, got 5"),
        (
            lambda: bounds.egal_worst_case_regret(5, 3, 9),
            "2 \\* num_users = 6 for the lower bound, got 5",
        ),
        (lambda: bounds.egal_worst_case_regret(100, 1, 9), "`steps` must be at least .* = 49.5"),
        (lambda: bounds.bad_event_probability(4, 2, 0), "`block` must be at least 1, got 0"),
        (lambda: bounds.capacity_regret(4, 5, 2, 9, 0.1, 1), "`capacity` must divide"),
    ],
)
def test_what_lies_outside_the_range_is_refused(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
