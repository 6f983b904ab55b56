"""Intervals, tables, files and pictures of a comparison."""

from __future__ import annotations

import csv
import math
import pickle
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_evaluation import FIXED, TRAP, made
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import bootstrap

from gym_fairbandits.agents import EgalUCB, FixedArm, OracleArm, RoundRobin, UniformRandom
from gym_fairbandits.evaluation import Comparison, compare, mean_interval

# --- Statistics -----------------------------------------------------------------------------------


def test_differences_are_paired() -> None:
    wild = [0.0, 1000.0, -70.0, 3.0]
    comparison = Comparison(
        {
            "a": made({"policy_regret": [w + 1 for w in wild], "return": [3.0, 5.0, 4.0, 4.0]}),
            "b": made({"policy_regret": wild, "return": [1.0, 1.0, 3.0, 1.0]}),
        }
    )
    assert comparison.difference("a", "b") == (1.0, (1.0, 1.0))
    assert comparison.difference("b", "a") == (-1.0, (-1.0, -1.0))
    mean, interval = comparison.difference("a", "b", "return")
    assert mean == 2.5
    assert interval == mean_interval(np.array([2.0, 4.0, 1.0, 3.0]))


@pytest.mark.parametrize("values", [[0.1] * 7, [-3.0, -3.0]])
def test_the_interval_of_constants_is_a_point(values: list[float]) -> None:
    low, high = mean_interval(np.array(values))
    assert low == high == pytest.approx(values[0], rel=1e-15)


@pytest.mark.parametrize("value", [2.5, math.inf, math.nan])
def test_one_value_has_no_interval(value: float) -> None:
    assert_array_equal(mean_interval(np.array([value])), [math.nan, math.nan])


def test_the_interval_of_two_values_is_all_between_them() -> None:
    assert mean_interval(np.array([3.0, 1.0])) == (1.0, 3.0)  # each mean has probability 1/4


@pytest.mark.parametrize(("confidence", "low", "high"), [(0.95, 0, 15), (0.8, 1, 11), (0.6, 2, 10)])
def test_intervals_are_quantiles_of_all_resamples(confidence: float, low: int, high: int) -> None:
    values = (0, 1, 5)
    sums = sorted(sum(sample) for sample in product(values, repeat=3))
    tail = (1 - confidence) / 2 * len(sums)
    # The quantiles lie well within a run of equal sums: 2000 resamples find them.
    for margin in (-0.3, 0.3):
        assert (sums[int(tail + margin)], sums[-1 - int(tail + margin)]) == (low, high)
    assert mean_interval(np.array(values, dtype=float), confidence) == (low / 3, high / 3)


@pytest.mark.parametrize("count", [40, 1500])  # resampled at once, and in parts
def test_intervals_equal_scipy_s_and_need_no_luck(count: int) -> None:
    values = np.random.default_rng(3).exponential(size=count)
    state = np.random.get_state()  # noqa: NPY002 - must stay as it is
    interval = mean_interval(values)
    assert interval == mean_interval(values.copy())
    assert pickle.dumps(np.random.get_state()) == pickle.dumps(state)  # noqa: NPY002
    expected = bootstrap(
        (values,),
        np.mean,
        n_resamples=2000,
        confidence_level=0.95,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    assert interval == (expected.low, expected.high)
    wide, narrow = mean_interval(values, 0.99), mean_interval(values, 0.5)
    assert wide[0] < interval[0] < narrow[0] < narrow[1] < interval[1] < wide[1]
    run = made({"policy_regret": values})
    assert run.interval("policy_regret") == interval
    assert run.mean("policy_regret") == values.mean()


def test_an_interval_of_many_values_takes_little_memory() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    mean_interval(values[:10])  # imports what it needs
    tracemalloc.start()
    try:
        low, high = mean_interval(values)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(20_000), rel=0.1)


@pytest.mark.parametrize(("count", "share"), [(5, 0.85), (10, 0.91), (30, 0.93), (50, 0.95)])
def test_intervals_cover_the_mean_as_often_as_they_say(count: int, share: float) -> None:
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.normal(5.0, 2.0, count)) for _ in range(300)]
    covered = sum(low <= 5.0 <= high for low, high in intervals)
    assert covered / 300 == pytest.approx(share, abs=0.04)
    if count == 50:
        widths = np.array([high - low for low, high in intervals])
        assert widths.mean() == pytest.approx(2 * 1.96 * 2 / math.sqrt(count), rel=0.05)


@pytest.mark.parametrize(
    "values",
    [[1.0, math.inf], [math.inf, math.inf], [1.0, math.nan], [math.nan, math.nan]],
    ids=str,
)
def test_what_is_not_finite_has_no_interval(values: list[float]) -> None:
    mean = float(np.mean(values))
    assert_array_equal(mean_interval(np.array(values)), [mean, mean])


def test_one_episode_is_a_number_without_an_interval(plt: Any) -> None:
    comparison = compare(
        {"fixed": FixedArm(1)}, IMPROVING, num_episodes=1, checkpoints=(10, 20), **TRAP
    )
    # min(n/10, 1) pays 15.5 in 20 steps, 0.1 throughout 2.
    *_, line = comparison.table(["policy_regret", "competitive_ratio"]).splitlines()
    assert line == "| fixed | 13.5 | 7.75 |"
    assert_array_equal(comparison["fixed"].interval("return"), [math.nan, math.nan])
    assert comparison.difference("fixed", "fixed")[0] == 0.0
    assert len(comparison.to_pandas()) == 1
    figure: Any = comparison.plot()
    figure.canvas.draw()


# --- Tables, files and pictures -------------------------------------------------------------------


def test_table_is_markdown_with_means_and_intervals() -> None:
    comparison = Comparison(
        {
            "one": made(
                {
                    "policy_regret": [1.0, 3.0],
                    "competitive_ratio": [12.34, 12.34],
                    "min_user_return": [-0.0, -0.0],
                },
                users=[[1.0, 4.0], [5.0, 4.0]],
            ),
            "two": made(
                {
                    "policy_regret": [-0.001, -0.001],
                    "competitive_ratio": [9.994, 9.994],
                    "min_user_return": [-12.36, -12.36],
                },
            ),
        }
    )
    assert comparison.table() == (
        "| policy | policy regret | competitive ratio (median) | expected min user return "
        "| min of expectations regret |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| one | 2.00 [1.00, 3.00] | 12.3 [12.3, 12.3] | 0.00 [0.00, 0.00] | 7.00 |\n"
        "| two | 0.00 [0.00, 0.00] | 9.99 [9.99, 9.99] | -12.4 [-12.4, -12.4] |  |"
    )
    assert comparison.table(["optimal_return", "policy_regret"]) == (
        "| policy | optimal return | policy regret |\n"
        "| --- | ---: | ---: |\n"
        "| one | 10.0 [10.0, 10.0] | 2.00 [1.00, 3.00] |\n"
        "| two | 10.0 [10.0, 10.0] | 0.00 [0.00, 0.00] |"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00"),
        (-0.004, "0.00"),
        (-0.006, "-0.01"),
        (9.994, "9.99"),
        (10.0, "10.0"),
        (9.999, "10.0"),
        (-9.999, "-10.0"),
        (-10.04, "-10.0"),
        (123456.78, "123456.8"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_two_decimals_below_ten_and_one_from_there(value: float, shown: str) -> None:
    comparison = Comparison({"a": made({"policy_regret": [value, value]})})
    interval = "" if math.isnan(value) else f" [{shown}, {shown}]"
    assert comparison.table().splitlines()[2] == f"| a | {shown}{interval} |"


def test_table_shows_only_what_all_policies_have() -> None:
    comparison = Comparison(
        {
            "gap": made({"policy_regret": [1.5, 1.5], "max_potential_gap": [0.5, 0.5]}),
            "none": made({"policy_regret": [0.25, 0.25]}),
        }
    )
    assert comparison.table() == (
        "| policy | policy regret |\n"
        "| --- | ---: |\n"
        "| gap | 1.50 [1.50, 1.50] |\n"
        "| none | 0.25 [0.25, 0.25] |"
    )


def test_table_shows_infinite_ratios() -> None:
    comparison = compare(
        {"never": FixedArm(0)},
        IMPROVING,
        instance="round_robin_trap",
        num_arms=2,
        horizon=4,
        num_episodes=3,
    )
    assert comparison["never"].episodes["competitive_ratio"].tolist() == [math.inf] * 3
    # The other arm would pay (1 + 2 + 3 + 4) / 4, and ends 1 below its potential.
    assert comparison.table().splitlines()[2] == (
        "| never | 2.50 [2.50, 2.50] | inf [inf, inf] | 1.00 [1.00, 1.00] |"
    )


def test_pandas_has_a_row_per_policy_and_episode() -> None:
    pytest.importorskip("pandas")
    comparison = compare(
        {"random": UniformRandom(), "ucb": EgalUCB()}, EGAL, num_episodes=3, **FIXED
    )
    frame = comparison.to_pandas()
    metrics = [
        "return",
        "length",
        "policy_regret",
        "optimal_return",
        "expected_return",
        "competitive_ratio",
        "realized_regret",
        "min_user_return",
    ]
    pulls = [f"pulls_{arm}" for arm in range(4)]
    users = ["user_return_0", "user_return_1"]
    assert frame.columns.tolist() == ["policy", "episode", *metrics, *pulls, *users]
    assert frame["policy"].tolist() == ["random"] * 3 + ["ucb"] * 3
    assert frame["episode"].tolist() == [0, 1, 2] * 2
    assert frame.index.tolist() == list(range(6))
    for name, run in comparison.evaluations.items():
        rows = frame[frame["policy"] == name]
        for metric in metrics:
            assert_array_equal(rows[metric], run.episodes[metric])
        assert_array_equal(rows[pulls], run.pulls)
        assert_array_equal(rows[users], run.user_returns)


def test_pandas_has_no_users_where_there_are_none() -> None:
    pytest.importorskip("pandas")
    frame = compare({"robin": RoundRobin()}, IMPROVING, num_episodes=2, **TRAP).to_pandas()
    assert frame.columns.tolist()[-4:] == [
        "realized_regret",
        "max_potential_gap",
        "pulls_0",
        "pulls_1",
    ]


def test_csv_gives_back_every_number(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    comparison = compare(
        {"random": UniformRandom(), "oracle": OracleArm},
        IMPROVING,
        num_arms=3,
        noise_std=0.3,
        horizon=9,
        num_episodes=4,
    )
    path = tmp_path / "episodes.csv"
    comparison.to_csv(path)
    frame = comparison.to_pandas()
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == frame.columns.tolist()
    assert [row[0] for row in rows] == ["random"] * 4 + ["oracle"] * 4
    for number, name in enumerate(header[1:], start=1):
        assert [float(row[number]) for row in rows] == frame[name].tolist()
    comparison.to_csv(str(tmp_path / "again.csv"))
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


@pytest.fixture
def plt() -> Iterator[Any]:
    """Return pyplot without a screen; close what a test leaves open."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def curves_case() -> Comparison:
    policies = {"constant": FixedArm(1), "rising": FixedArm(0), "random": UniformRandom()}
    return compare(policies, IMPROVING, num_episodes=6, checkpoints=(1, 8, 15, 20), **TRAP)


@pytest.mark.parametrize("given", [True, False], ids=["own axes", "new figure"])
def test_plot_draws_a_line_and_a_band_per_policy(plt: Any, given: bool) -> None:
    comparison = curves_case()
    axis: Any = plt.subplots()[1] if given else None
    figure: Any = comparison.plot(axis)
    if given:
        assert figure is axis.figure
    (axis,) = figure.axes
    assert len(plt.get_fignums()) == 1
    assert len(axis.lines) == len(axis.collections) == 3
    assert len({line.get_linestyle() for line in axis.lines}) == 3
    assert [text.get_text() for text in axis.get_legend().get_texts()] == list(
        comparison.evaluations
    )
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("steps", "policy regret")
    drawn = zip(comparison.evaluations.items(), axis.lines, axis.collections, strict=True)
    for (name, run), line, band in drawn:
        assert line.get_label() == name
        assert_array_equal(line.get_xdata(), [1, 8, 15, 20])
        assert_array_equal(line.get_ydata(), run.regret_curves.mean(axis=0))
        corners = band.get_paths()[0].vertices
        for step, values in zip(run.checkpoints, run.regret_curves.T, strict=True):
            heights = corners[corners[:, 0] == step, 1]
            assert (heights.min(), heights.max()) == mean_interval(values)
    figure.canvas.draw()  # it can be shown


def test_curves_are_a_row_per_policy_episode_and_checkpoint() -> None:
    pytest.importorskip("pandas")
    policies = {"first": FixedArm(0), "second": FixedArm(1)}
    comparison = compare(policies, IMPROVING, num_episodes=2, checkpoints=(20, 5, 30), **TRAP)
    frame = comparison.curves_to_pandas()
    assert list(frame.columns) == ["policy", "episode", "step", "regret"]
    assert frame["policy"].tolist() == ["first"] * 6 + ["second"] * 6
    assert frame["episode"].tolist() == [0, 0, 0, 1, 1, 1] * 2
    assert frame["step"].tolist() == [5, 20, 30] * 4
    # min(n/10, 1) pays 1.5 in 5 steps and 15.5 in 20, 0.1 throughout 0.5 and 2; 30 is never.
    expected = [0.0, 0.0, math.nan] * 2 + [1.0, 13.5, math.nan] * 2
    assert_allclose(frame["regret"], expected, rtol=1e-12, atol=1e-12)


def test_curves_of_nothing_are_no_rows() -> None:
    pytest.importorskip("pandas")
    unseen = compare({"first": FixedArm(0)}, IMPROVING, num_episodes=2, **TRAP)
    for comparison in (unseen, Comparison({})):
        frame = comparison.curves_to_pandas()
        assert list(frame.columns) == ["policy", "episode", "step", "regret"]
        assert len(frame) == 0


def test_plot_without_checkpoints_is_refused_and_opens_nothing(plt: Any) -> None:
    comparison = compare({"robin": RoundRobin()}, IMPROVING, num_episodes=2, **TRAP)
    with pytest.raises(ValueError, match="`checkpoints` must hold at least one step for a plot"):
        comparison.plot()
    assert plt.get_fignums() == []


def test_plot_leaves_out_what_lies_beyond_the_ends(plt: Any) -> None:
    comparison = compare(
        {"fixed": FixedArm(1)}, IMPROVING, num_episodes=2, checkpoints=(10, 30), **TRAP
    )
    figure: Any = comparison.plot()
    (line,) = figure.axes[0].lines
    assert_allclose(line.get_ydata(), [4.5, math.nan], rtol=1e-14)
