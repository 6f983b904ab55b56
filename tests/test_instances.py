"""Named, random and users' instances, judged by exact rationals, theorems and their laws."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from scipy.stats import chisquare, kstest

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.arms import Bernoulli, Empirical, Gaussian
from gym_fairbandits.curves import (
    Constant,
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


def improving(instance: Any = "random_concave", **settings: Any) -> Any:
    return gym.make("ImprovingBandit-v0", instance=instance, **settings).unwrapped


def egal(instance: Any = "bernoulli", **settings: Any) -> Any:
    return gym.make("EgalAssign-v0", instance=instance, **settings).unwrapped


def curves_of(instance: Any, seed: int | None = 0, **settings: Any) -> list[Curve]:
    env = improving(instance, **settings)
    env.reset(seed=seed)
    return list(env.curves)


def arms_of(instance: Any, seed: int | None = 0, **settings: Any) -> Any:
    env = egal(instance, **settings)
    env.reset(seed=seed)
    return env.arms


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


# --- Improving arms by hand ---


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


# --- Random improving arms ---

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


# --- What an environment takes as an instance ---


def test_a_sequence_of_curves_or_dicts_is_taken_as_it_is() -> None:
    curves: list[Curve] = [Constant(0.5), LinearCap(1.0, 4), Tabulated((0.1, 0.2))]
    dicts = [curve.to_dict() for curve in curves]
    for instance in (curves, tuple(curves), dicts, [curves[0], dicts[1], curves[2]]):
        env = improving(instance)
        assert env.num_arms == 3
        for seed in (0, None):
            env.reset(seed=seed)
            assert list(env.curves) == curves
    assert curves_of(curves, num_arms=3) == curves


def test_a_callable_draws_from_the_stream_of_instances_at_every_reset() -> None:
    asked: list[tuple[type, int]] = []

    def draw(rng: np.random.Generator, num_arms: int) -> list[Curve | dict[str, Any]]:
        asked.append((type(rng), num_arms))
        levels = rng.random(num_arms).tolist()
        return [Constant(levels[0]), *({"family": "constant", "value": v} for v in levels[1:])]

    env = improving(draw, num_arms=3)
    assert asked == []
    episodes = []
    for seed in (7, None, 7, None):
        env.reset(seed=seed)
        episodes.append([curve.value for curve in env.curves])
    assert asked == [(np.random.Generator, 3)] * 4
    assert episodes[:2] == episodes[2:]
    assert episodes[0] != episodes[1]
    stream = np.random.default_rng(7).spawn(1)[0]
    assert episodes[:2] == [stream.random(3).tolist(), stream.random(3).tolist()]
    assert len(curves_of(draw)) == 10


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ([Constant(0.5)], ValueError, "`num_arms` must be the instance's number of arms, 1, or"),
        ([], ValueError, "`instance` must hold at least one curve, got none"),
        (None, TypeError, "`instance` must be"),
        (Constant(0.5), TypeError, "`instance` must be"),
        ([Constant(0.5), 0.25], TypeError, "arm 1 must be a `Curve` or its dict form, got 0.25"),
        ([Constant(0.5), Constant(1.5)], ValueError, "arm 1 leaves [0, 1]: f(1) = 1.5"),
        ([{"family": "constant"}] * 2, TypeError, "family 'constant' takes the parameters"),
    ],
)
def test_a_callable_that_draws_something_else_is_refused_and_the_episode_goes_on(
    returned: Any, error: Any, message: str
) -> None:
    good = [LinearCap(1.0, 4), Constant(0.5)]
    answers: list[Any] = [good, returned, good]
    env = improving(lambda rng, num_arms: answers.pop(0), num_arms=2)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(error, match=re.escape(message)):
        env.reset()
    observation, reward, *_ = env.step(0)
    assert reward == 0.5
    assert observation["pulls"].tolist() == [2, 0]
    assert list(env.curves) == good
    env.reset()
    assert env.step(0)[1] == 0.25


@pytest.mark.parametrize(
    ("instance", "settings", "error", "message"),
    [
        (
            "early_late",
            {},
            ValueError,
            "`instance` must be one of ['early_vs_late', 'lower_bound',",
        ),
        ("early_late", {}, ValueError, "got 'early_late'"),
        ({"late": 2}, {}, ValueError, "`instance` must be one of ['early_vs_late',"),
        ({"name": 3}, {}, ValueError, "`instance` must be one of ['early_vs_late',"),
        (
            {"name": "lower_bound", "lat": 2},
            {},
            ValueError,
            "instance 'lower_bound' takes the parameters "
            "['late', 'num_arms', 'printing', 'steps'], got ['lat']",
        ),
        (
            {"name": "policy_vs_external", "steps": 9},
            {},
            ValueError,
            "instance 'policy_vs_external' takes the parameters [], got ['steps']",
        ),
        (
            {"name": "random_concave", "seed": 1},
            {},
            ValueError,
            "takes the parameters ['num_arms']",
        ),
        (
            {"name": "random_concave", "num_arms": 0},
            {},
            ValueError,
            "`num_arms` must be at least 1",
        ),
        ({"name": "lower_bound", "late": 10}, {}, ValueError, "`late` must be at most 9, got 10"),
        (
            {"name": "early_vs_late", "late_asymptote": 1.5},
            {},
            ValueError,
            "arm 1 leaves [0, 1]: f(27) = 1.0125",
        ),
        ("early_vs_late", {"num_arms": 3}, ValueError, "number of arms, 2, or None, got 3"),
        ("policy_vs_external", {"num_arms": 1}, ValueError, "number of arms, 2, or None, got 1"),
        ("lower_bound", {"num_arms": 1}, ValueError, "`num_arms` must be at least 2, got 1"),
        (
            {"name": "random_concave", "num_arms": 3},
            {"num_arms": 4},
            ValueError,
            "number of arms, 3, or None, got 4",
        ),
        (
            {"name": "lower_bound", "num_arms": 3},
            {"num_arms": 4},
            ValueError,
            "number of arms, 3, or None, got 4",
        ),
        ([Constant(0.5)], {"num_arms": 2}, ValueError, "number of arms, 1, or None, got 2"),
        ([], {}, ValueError, "`instance` must hold at least one curve, got none"),
        ([Constant(0.5), 0.5], {}, TypeError, "arm 1 must be a `Curve` or its dict form, got 0.5"),
        ([Constant(2.0)], {}, ValueError, "arm 0 leaves [0, 1]: f(1) = 2.0"),
        ([{"family": "line"}], {}, ValueError, "`family` must be one of"),
        (
            None,
            {},
            TypeError,
            "`instance` must be a name, a dict with a name, a sequence of curves",
        ),
        (3, {}, TypeError, "`instance` must be a name, a dict with a name, a sequence of curves"),
        (LinearCap(1.0, 4), {}, TypeError, "`instance` must be a name, a dict with a name, a seq"),
    ],
)
def test_wrong_improving_instances_are_refused(
    instance: Any, settings: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        improving(instance, **settings)
    if settings or instance is None:
        return  # a `None` option is no option
    env, twin = improving("lower_bound", noise_std=0.5), improving("lower_bound", noise_std=0.5)
    for either in (env, twin):
        either.reset(seed=1)
        either.step(3)
    with pytest.raises((TypeError, ValueError)):
        env.reset(options={"instance": instance})
    assert env.curves == twin.curves
    for action in (3, 9):
        after, expected = env.step(action), twin.step(action)
        assert after[1] == expected[1]
        assert all(after[0][key].tolist() == expected[0][key].tolist() for key in after[0])


# --- Assignment arms ---


def test_bernoulli_means_are_uniform_and_redrawn_at_every_reset() -> None:
    env = egal("bernoulli", num_arms=50, num_users=2)
    means = []
    for seed in [5, *[None] * 99]:
        env.reset(seed=seed)
        assert type(env.arms) is Bernoulli
        means.append(env.arms.means.tolist())
    flat = np.array(means).ravel()
    assert flat.size == len(set(flat.tolist())) == 5000
    assert flat.min() >= 0.01
    assert flat.max() <= 0.99
    assert kstest(flat, "uniform", args=(0.01, 0.98)).pvalue > 1e-3
    env.reset(seed=5)
    assert env.arms.means.tolist() == means[0]
    assert arms_of("bernoulli", seed=5).num_arms == 10
    assert arms_of({"name": "bernoulli", "num_arms": 7}).num_arms == 7


@pytest.mark.parametrize("variance", [None, 1, 0.1, 0.25, 0])
def test_gaussian_takes_its_variance(variance: float | None) -> None:
    given = {} if variance is None else {"variance": variance}
    instance: Any = {"name": "gaussian", **given} if given else "gaussian"
    env = egal(instance, num_arms=6, num_users=2)
    seen = set()
    for seed in (0, None, None):
        env.reset(seed=seed)
        assert type(env.arms) is Gaussian
        std = math.sqrt(1 if variance is None else variance)
        assert env.arms.std.tolist() == [std] * 6
        assert ((env.arms.means >= 0.01) & (env.arms.means <= 0.99)).all()
        seen.add(tuple(env.arms.means.tolist()))
    assert len(seen) == 3


def test_two_level_pays_the_top_arms_better() -> None:
    assert arms_of("two_level", num_users=3, num_arms=5) == Bernoulli([0.8] * 3 + [0.5] * 2)
    assert arms_of("two_level") == Bernoulli([0.8] * 5 + [0.5] * 5)
    instance = {"name": "two_level", "high": 1, "low": 0.25}
    assert arms_of(instance, num_users=1, num_arms=3) == Bernoulli([1.0, 0.25, 0.25])
    assert two_level(2, 2) == Bernoulli([0.8, 0.8])


def test_lower_bound_pair_has_the_gaps_of_the_theorem() -> None:
    # K=10, U=2, T=1000: gap^2 = 8 / (8 * 1000 * 4) = 1/4000.
    gap = math.sqrt(1 / 4000)
    nu = arms_of("lower_bound", num_users=2)
    assert type(nu) is Gaussian
    assert nu.std.tolist() == [1.0] * 10
    assert nu.means.tolist() == pytest.approx([gap] * 2 + [0.0] * 8, rel=1e-15)
    boosted = arms_of({"name": "lower_bound", "boosted": [9, 4]}, num_users=2)
    assert boosted.std.tolist() == [1.0] * 10
    expected = [gap, gap, 0, 0, 2 * gap, 0, 0, 0, 0, 2 * gap]
    assert boosted.means.tolist() == pytest.approx(expected, rel=1e-15)
    # The pair agrees outside the boosted arms.
    assert (nu.means == boosted.means).tolist() == [True] * 4 + [False] + [True] * 4 + [False]


@pytest.mark.parametrize(("num_users", "num_arms"), [(1, 2), (2, 7), (5, 10), (1, 50)])
@pytest.mark.parametrize("steps", [25, 1000, 10**6])
def test_gaps_follow_the_formula_for_any_size(num_users: int, num_arms: int, steps: int) -> None:
    squared = Fraction(num_arms - num_users, 8 * steps * num_users**2)
    instance = {"name": "lower_bound", "boosted": list(range(num_users, 2 * num_users))}
    arms = arms_of(instance, num_users=num_users, num_arms=num_arms, horizon=steps)
    high, boosted, rest = np.split(arms.means, [num_users, 2 * num_users])
    np.testing.assert_allclose(np.square(high), float(squared), rtol=1e-15)
    assert boosted.tolist() == (2 * high).tolist()
    assert not rest.any()
    given = {**instance, "steps": steps}
    assert arms_of(given, num_users=num_users, num_arms=num_arms, horizon=3) == arms


def test_boosted_means_reach_one_at_the_fewest_steps() -> None:
    # K=9, U=2: T >= 7/8, so T=1; K=9, U=1: T >= 4, where 2 * gap is 1.
    assert egal_lower_bound(1, 9, 4, boosted=[8]).means[8] == 1.0
    assert egal_lower_bound(2, 9, 1).means[0] == pytest.approx(math.sqrt(7 / 32))


def test_arms_are_taken_as_objects_dicts_and_callables() -> None:
    arms = Empirical([[1, 2], [3], [4, 5, 6]])
    for instance in (arms, arms.to_dict()):
        env = egal(instance, num_users=2)
        assert env.num_arms == 3
        for seed in (0, None):
            env.reset(seed=seed)
            assert env.arms == arms
    assert arms_of(arms, num_users=2, num_arms=3) == arms

    asked: list[tuple[type, int, int]] = []

    def draw(rng: np.random.Generator, num_users: int, num_arms: int) -> Gaussian:
        asked.append((type(rng), num_users, num_arms))
        return Gaussian(rng.random(num_arms), 0.5)

    env = egal(draw, num_users=2, num_arms=4)
    assert asked == []
    means = []
    for seed in (7, None):
        env.reset(seed=seed)
        means.append(env.arms.means.tolist())
    assert asked == [(np.random.Generator, 2, 4)] * 2
    stream = np.random.default_rng(7).spawn(1)[0]
    assert means == [stream.random(4).tolist(), stream.random(4).tolist()]
    assert arms_of(draw).num_arms == 10


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "number of arms, 2, or None, got 3"),
        ([0.5, 0.5, 0.5], TypeError, "`instance` must return an `Arms`, got [0.5, 0.5, 0.5]"),
        (None, TypeError, "`instance` must return an `Arms`, got None"),
    ],
)
def test_a_callable_that_draws_other_arms_is_refused_and_the_episode_goes_on(
    returned: Any, error: Any, message: str
) -> None:
    good = Gaussian([0.25, 0.5, 0.75], 0.0)
    answers: list[Any] = [good, returned, good]
    env = egal(lambda rng, num_users, num_arms: answers.pop(0), num_users=2, num_arms=3)
    env.reset(seed=0)
    env.step([0, 1])
    with pytest.raises(error, match=re.escape(message)):
        env.reset()
    observation, reward, *_ = env.step([1, 2])
    assert reward == 0.5
    assert observation["user_reward_sum"].tolist() == [0.75, 1.25]
    env.reset()
    assert env.step([2, 0])[1] == 0.25


@pytest.mark.parametrize(
    ("instance", "settings", "error", "message"),
    [
        ("binomial", {}, ValueError, "`instance` must be one of ['bernoulli', 'gaussian',"),
        ("binomial", {}, ValueError, "got 'binomial'"),
        ({"variance": 2}, {}, ValueError, "`instance` must be one of ['bernoulli', 'gaussian',"),
        (
            {"name": "gaussian", "std": 2},
            {},
            ValueError,
            "instance 'gaussian' takes the parameters ['num_arms', 'variance'], got ['std']",
        ),
        (
            {"name": "bernoulli", "variance": 2},
            {},
            ValueError,
            "instance 'bernoulli' takes the parameters ['num_arms'], got ['variance']",
        ),
        (
            {"name": "bernoulli", "rng": 3},
            {},
            ValueError,
            "instance 'bernoulli' takes the parameters ['num_arms'], got ['rng']",
        ),
        ({"name": "gaussian", "variance": -1}, {}, ValueError, "`variance` must be at least 0"),
        ({"name": "gaussian", "variance": math.nan}, {}, ValueError, "`variance` must be finite"),
        ({"name": "gaussian", "variance": True}, {}, TypeError, "`variance` must be a real number"),
        ({"name": "gaussian", "variance": "1"}, {}, TypeError, "`variance` must be a real number"),
        ({"name": "two_level", "high": 2}, {}, ValueError, "`high` must be at most 1, got 2"),
        ({"name": "bernoulli", "num_arms": 2.5}, {}, TypeError, "`num_arms` must be an integer"),
        ({"name": "two_level", "num_arms": -3}, {}, ValueError, "`num_arms` must be"),
        ("lower_bound", {"num_arms": 9}, ValueError, "at least 2 * num_users = 10 for the lower"),
        ("lower_bound", {"num_users": 1, "horizon": 4}, ValueError, "`steps` must be at least"),
        ("two_level", {"num_users": 11}, ValueError, "capacity * num_arms = 10, got 11"),
        ("bernoulli", {"num_users": 11}, ValueError, "capacity * num_arms = 10, got 11"),
        (
            {"name": "bernoulli", "num_arms": 7},
            {"num_arms": 8},
            ValueError,
            "number of arms, 7, or None, got 8",
        ),
        (
            {"name": "two_level", "num_arms": 7},
            {"num_arms": 8},
            ValueError,
            "number of arms, 7, or None, got 8",
        ),
        (Bernoulli([0.5] * 6), {"num_arms": 7}, ValueError, "number of arms, 6, or None, got 7"),
        (
            {"family": "bernoulli", "means": [0.5] * 6},
            {"num_arms": 7},
            ValueError,
            "number of arms, 6, or None, got 7",
        ),
        ({"family": "bernouli", "means": [0.5] * 6}, {}, ValueError, "`family` must be one of"),
        ({"family": "bernoulli", "mean": [0.5] * 6}, {}, TypeError, "mean"),
        ([0.5] * 6, {}, TypeError, "`instance` must be a name, a dict with a name or family, an"),
        (None, {}, TypeError, "`instance` must be a name, a dict with a name or family, an"),
    ],
)
def test_wrong_assignment_instances_are_refused(
    instance: Any, settings: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        egal(instance, **settings)
    if settings or instance is None:
        return  # a `None` option is no option
    env, twin = egal("two_level", num_users=2), egal("two_level", num_users=2)
    for either in (env, twin):
        either.reset(seed=1)
        either.step([0, 1])
    with pytest.raises((TypeError, ValueError)):
        env.reset(options={"instance": instance})
    assert env.arms == twin.arms
    for action in ([2, 3], [9, 0]):
        after, expected = env.step(action), twin.step(action)
        assert after[4]["user_rewards"].tolist() == expected[4]["user_rewards"].tolist()
        assert all(after[0][key].tolist() == expected[0][key].tolist() for key in after[0])


# --- JSON ---

JSON_ABLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("ImprovingBandit-v0", "random_concave", {"num_arms": 3}),
    ("ImprovingBandit-v0", {"name": "early_vs_late", "late_ramp": 90}, {}),
    ("ImprovingBandit-v0", {"name": "lower_bound", "late": None, "printing": "appendix"}, {}),
    ("ImprovingBandit-v0", {"name": "round_robin_trap", "num_arms": 4, "steps": 9}, {}),
    ("ImprovingBandit-v0", "policy_vs_external", {}),
    ("ImprovingBandit-v0", [c.to_dict() for c in [Constant(0.5), Tabulated((0.1, 0.2))]], {}),
    ("EgalAssign-v0", "bernoulli", {"num_arms": 7}),
    ("EgalAssign-v0", {"name": "gaussian", "variance": 0.1}, {}),
    ("EgalAssign-v0", {"name": "two_level", "high": 0.9}, {"num_users": 3}),
    ("EgalAssign-v0", {"name": "lower_bound", "boosted": [2, 3]}, {"num_users": 2}),
    ("EgalAssign-v0", Empirical([[1.0], [2.0, 3.0]]).to_dict(), {"num_users": 2}),
]


@pytest.mark.parametrize(("env_id", "instance", "settings"), JSON_ABLE)
def test_specs_with_instances_survive_json(
    env_id: str, instance: Any, settings: dict[str, Any]
) -> None:
    before = json.dumps(instance)
    env: Any = gym.make(env_id, instance=instance, horizon=30, **settings)
    spec = EnvSpec.from_json(cast(EnvSpec, env.spec).to_json())
    other: Any = gym.make(spec)
    for either in (env, other):
        either.reset(seed=2)
    attribute = "curves" if env_id == "ImprovingBandit-v0" else "arms"
    assert getattr(env.unwrapped, attribute) == getattr(other.unwrapped, attribute)
    assert json.dumps(instance) == before
