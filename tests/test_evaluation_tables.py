"""Tables of a comparison: the median of ratios, and what is shown where there is no value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers_evaluation import FIXED, made
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_array_equal
from scipy.stats import binom

from gym_fairbandits.agents import EgalUCB, Greedy, UniformRandom
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.evaluation import Comparison, EvaluationError, compare, mean_interval
from gym_fairbandits.evaluation._intervals import median_interval

# --- The median ---------------------------------------------------------------------------------


def test_one_huge_ratio_carries_the_mean_but_not_the_table() -> None:
    ratios = [1.5, 1.0, 1.25, 580.0, 1.5, 2.0, 1.75]
    run = made({"policy_regret": [1.0] * 7, "competitive_ratio": ratios})
    assert Comparison({"a": run}).table().splitlines() == [
        "| policy | policy regret | competitive ratio (median) |",
        "| --- | ---: | ---: |",
        "| a | 1.00 [1.00, 1.00] | 1.50 [1.00, 580.0] |",
    ]
    assert run.mean("competitive_ratio") == 589 / 7
    assert run.interval("competitive_ratio") == mean_interval(np.array(ratios))


def test_the_table_shows_a_median_though_some_ratios_are_infinite() -> None:
    ratios = [1.0] * 20 + [2.0] * 70 + [math.inf] * 10
    table = Comparison({"a": made({"competitive_ratio": ratios})}).table(["competitive_ratio"])
    assert table.splitlines()[2] == "| a | 2.00 [2.00, 2.00] |"


@pytest.mark.parametrize(
    ("count", "rank"),
    # One more than the tabulated critical values of the two-sided sign test at 5 %.
    [(2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (10, 2), (25, 8), (100, 40)],
)
def test_the_interval_of_a_median_lies_between_two_ranks(count: int, rank: int) -> None:
    values = np.random.default_rng(0).permutation(np.arange(1.0, count + 1))
    assert median_interval(values) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", [6, 7, 20, 99, 100, 500, 1000])
def test_the_interval_covers_95_percent_and_the_next_smaller_one_does_not(count: int) -> None:
    low, high = median_interval(np.arange(1.0, count + 1))
    assert low + high == count + 1
    # The median lies below the r-th value if fewer than r values lie below the median.
    assert 2 * binom.cdf(low - 1, count, 0.5) <= 0.05 < 2 * binom.cdf(low, count, 0.5)


def test_the_interval_of_a_median_takes_infinity_but_neither_one_value_nor_nan() -> None:
    assert median_interval(np.array([math.inf, 1.0, math.inf])) == (1.0, math.inf)
    for values in ([1.0, math.nan, 2.0], [1.0]):
        assert_array_equal(median_interval(np.array(values)), [math.nan, math.nan])


# --- Realized and expected ----------------------------------------------------------------------


def test_headings_say_which_form_is_meant_of_what_comes_in_two() -> None:
    comparison = compare(
        {"egal": EgalUCB(), "random": UniformRandom()},
        EGAL,
        instance=Bernoulli([0.9, 0.1]),
        num_users=2,
        horizon=4,
        num_episodes=5,
        metrics="fairness",
    )
    names = ("return", "expected_return", "realized_regret", "user_gap", "expected_user_gap")
    head, _, egal, _ = comparison.table(names).splitlines()
    assert head == (
        "| policy | realized return | expected return | realized regret | realized user gap "
        "| expected user gap |"
    )
    assert egal.endswith("| 0.00 [0.00, 0.00] |")  # two whole rotations
    assert comparison["egal"].mean("user_gap") > 0
    worst = comparison.table(["min_user_return", "realized_min_user_return"]).splitlines()[0]
    assert worst == "| policy | expected min user return | realized min user return |"


# --- Columns without a value --------------------------------------------------------------------

ASKED = ["min_of_expectations_regret", "length"]


def test_a_column_without_any_value_is_left_out() -> None:
    redrawn = compare({"random": UniformRandom()}, EGAL, num_episodes=2, horizon=4)
    assert redrawn.table(ASKED).splitlines() == [
        "| policy | length |",
        "| --- | ---: |",
        "| random | 4.00 [4.00, 4.00] |",
    ]


def test_a_column_with_a_value_stays() -> None:
    fixed = compare({"random": UniformRandom()}, EGAL, num_episodes=2, **FIXED)
    redrawn = compare({"random": UniformRandom()}, EGAL, num_episodes=2, horizon=4)
    both = Comparison({"fixed": fixed["random"], "redrawn": redrawn["random"]})
    head, _, first, second = both.table(ASKED).splitlines()
    assert head == "| policy | min of expectations regret | length |"
    regret = fixed["random"].min_of_expectations_regret
    assert regret is not None
    assert first.startswith(f"| fixed | {regret:.2f} |")
    assert second == "| redrawn |  | 4.00 [4.00, 4.00] |"


# --- Odd names, no policy, no more steps --------------------------------------------------------


def test_bars_and_breaks_in_names_leave_a_table_whole() -> None:
    policies = {"a|b": Greedy(), " two\nlines ": Greedy()}
    comparison = compare(policies, IMPROVING, num_episodes=2, horizon=5)
    lines = comparison.table(["length"]).splitlines()
    assert lines == [
        "| policy | length |",
        "| --- | ---: |",
        r"| a\|b | 5.00 [5.00, 5.00] |",
        "| two lines | 5.00 [5.00, 5.00] |",
    ]


def test_results_of_no_policy_are_empty_tables() -> None:
    pytest.importorskip("pandas")

    def broken(observation: Any) -> Any:
        raise RuntimeError("broken")

    with pytest.raises(EvaluationError, match="broken") as error:
        compare({"broken": broken}, IMPROVING, num_episodes=2, horizon=5)
    results = error.value.results
    assert results.evaluations == {}
    frame = results.to_pandas()
    assert list(frame.columns) == ["policy", "episode"]
    assert len(frame) == 0
    assert results.table() == "| policy |\n| --- |"
    assert results.table(["length"]) == "| policy | length |\n| --- | ---: |"
    with pytest.raises(ValueError, match="`evaluations` must hold at least one policy"):
        Comparison({}).plot()


def test_regret_after_the_end_is_not_a_number() -> None:
    comparison = compare(
        {"greedy": Greedy()},
        IMPROVING,
        num_episodes=2,
        horizon=5,
        checkpoints=[5, 6, 1000],
        instance="early_vs_late",
    )
    curves_of = comparison["greedy"].regret_curves
    assert_array_equal(np.isnan(curves_of), [[False, True, True]] * 2)
    assert_array_equal(curves_of[:, 0], comparison["greedy"].episodes["policy_regret"])
