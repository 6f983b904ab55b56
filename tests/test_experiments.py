"""Experiments end to end: known results, settings, the same bytes always, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

import polars as pl
from helpers_experiments import RESULTS, contents, everything, tiny

import gym_fairbandits.__main__ as cli
from gym_fairbandits import bounds
from gym_fairbandits.agents import EgalUCB
from gym_fairbandits.curves import Constant, LinearCap
from gym_fairbandits.datasets import synthetic_movielens
from gym_fairbandits.evaluation import evaluate
from gym_fairbandits.experiments.catalogue import EXPERIMENTS
from gym_fairbandits.experiments.egal_users import log_slope
from gym_fairbandits.experiments.late_bloomer import crossing
from gym_fairbandits.experiments.runner import ExperimentError, load_settings, run

# --- every experiment -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "learned")) for name in EXPERIMENTS],
)
def test_an_experiment_writes_its_configuration_tables_and_figures(
    name: str, tmp_path: Path
) -> None:
    if name == "learned":
        pytest.importorskip("sb3_contrib")
    experiment = tiny(name)
    rows = run(experiment, tmp_path / "new" / "folder", progress=False)
    folder = tmp_path / "new" / "folder"
    assert len(list((folder / "tasks").iterdir())) == len(experiment.tasks())
    table = pl.read_parquet(folder / "results.parquet")
    assert table.to_dicts() == rows
    assert pl.read_csv(folder / "results.csv").height == len(rows)
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figure.pdf").read_bytes().startswith(b"%PDF")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["experiment"] == name
    assert config["settings"] == experiment.settings()
    assert config["settings"]["seed"] == 0
    assert config["versions"][0]["numpy"] == np.__version__
    assert experiment.summary(rows).startswith("| ")
    assert not [path for path in everything(folder) if ".partial-" in path]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for folder, seed in (("a", 5), ("b", 5), ("c", 6)):
        run(tiny("egal-users", seed=seed), tmp_path / folder, progress=False)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a", RESULTS[:1]) != contents(tmp_path / "c", RESULTS[:1])


# --- what they find -------------------------------------------------------------------------------


def test_regret_is_exactly_zero_where_there_are_as_many_users_as_arms(tmp_path: Path) -> None:
    experiment = tiny("egal-saturation", agents="egal-ucb,egal-thompson,oracle-rotation")
    rows = run(experiment, tmp_path, progress=False)
    full = [row for row in rows if row["num_users"] == 4]
    assert len(full) == 6
    assert {row["regret"] for row in full} == {0.0}
    bounded = {(row["agent"], row["bound"]) for row in full}
    assert bounded == {("egal-ucb", 0.0), ("egal-thompson", None), ("oracle-rotation", None)}
    table = pl.read_csv(tmp_path / "results.csv")
    assert set(table.filter(pl.col("bound").is_not_null())["agent"]) == {"egal-ucb"}
    fewer = {row["agent"]: row["regret"] for row in rows if row["num_users"] == 2}
    assert fewer["oracle-rotation"] == 0.0
    assert fewer["egal-ucb"] > 0


def test_regret_is_that_of_the_environment_run_by_run(tmp_path: Path) -> None:
    experiment = tiny("egal-synthetic", law_names="bernoulli", num_checkpoints=2, seed=7)
    rows = [row for row in run(experiment, tmp_path, progress=False) if row["num_users"] == 3]
    played = evaluate(
        EgalUCB(),
        "EgalAssign-v0",
        num_episodes=2,
        seed=7,
        checkpoints=[30, 60],
        num_users=3,
        num_arms=10,
        horizon=60,
    )
    assert [(row["run"], row["step"]) for row in rows] == [(0, 30), (0, 60), (1, 30), (1, 60)]
    regrets = [row["regret"] for row in rows]
    assert regrets == pytest.approx(played.regret_curves.ravel().tolist(), rel=1e-9)
    realized = [row["realized_regret"] for row in rows if row["step"] == 60]
    assert realized == pytest.approx(played.episodes["realized_regret"].tolist(), rel=1e-9)
    assert {row["bound"] for row in rows if row["step"] == 60} == {bounds.egal_regret(10, 3, 60)}


def test_figures_of_synthetic_ratings_in_an_inner_folder_say_so(tmp_path: Path) -> None:
    synthetic_movielens(6, 0, num_ratings=100, folder=tmp_path / "downloads" / "ml-25m")
    experiment = tiny("egal-movielens", path=str(tmp_path / "downloads"), agents="static-oracle")
    rows = run(experiment, tmp_path / "run", progress=False)
    title = experiment.figure(rows).get_suptitle()
    assert title.endswith("SYNTHETIC data, not the real ones")


@pytest.mark.parametrize(
    ("name", "agents", "labels"),
    [
        (
            "late-bloomer",
            "greedy,horizon-aware-improving,oracle-arm",
            ["greedy", "horizon-aware-improving (horizon)", "oracle-arm (instance)"],
        ),
        (
            "improving-ratio",
            "greedy,random-round-robin",
            ["greedy", "random-round-robin (horizon)"],
        ),
        ("improving-potential", "greedy,oracle-arm", ["greedy", "oracle-arm (instance)"]),
        ("egal-users", "egal-ucb,egal-moss", ["egal-ucb", "egal-moss (horizon)"]),
        ("egal-saturation", "egal-ucb,egal-moss", ["egal-ucb", "egal-moss (horizon)"]),
        ("egal-synthetic", "egal-ucb,egal-moss", ["egal-ucb", "egal-moss (horizon)"]),
    ],
)
def test_tables_and_legends_say_what_agents_are_told(
    name: str, agents: str, labels: list[str], tmp_path: Path
) -> None:
    experiment = tiny(name, agents=agents)
    rows = run(experiment, tmp_path, progress=False)
    figure = experiment.figure(rows)
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes)]
    drawn = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    series = [text.partition(": slope")[0].rpartition("U = 3, ")[2] for text in drawn]
    for label in labels:
        assert f"| {label} |" in experiment.summary(rows)
        assert label in series


def test_algorithm_1_loses_the_known_19_75_to_the_late_bloomer(tmp_path: Path) -> None:
    experiment = tiny("late-bloomer", horizon=1000, ramps=40, agents="anytime-improving,greedy")
    rows = run(experiment, tmp_path, progress=False)
    assert {row["optimum"] for row in rows} == {40 * 41 / 80 + 960}
    regret = {row["agent"]: row["regret"] for row in rows}
    assert regret["anytime-improving"] == pytest.approx(19.75)
    assert regret["greedy"] > 400
    # n / 2 - 1 / 4 against n (n + 1) / 80: 18.75 > 18.525 at 38, 19.25 < 19.5 at 39.
    assert {row["tau"] for row in rows} == {39}


def test_a_crossing_may_not_exist() -> None:
    assert crossing(Constant(0.5), LinearCap(1.0, 10), 8) is None
    assert crossing(Constant(0.5), LinearCap(1.0, 10), 100) == 10  # 0.55 n against 0.5 n
    assert crossing(Constant(0.5), LinearCap(0.4, 10), 100) is None


def test_ratios_are_those_of_the_proofs(tmp_path: Path) -> None:
    experiment: Any = tiny("improving-ratio", agents="round-robin,anytime-improving")
    ratios = experiment.ratios(run(experiment, tmp_path, progress=False))
    for k in (2, 3):
        steps = 6 * k
        exact = bounds.round_robin_ratio(k, steps)
        assert ratios["trap", k, "round-robin"] == pytest.approx(exact, rel=1e-12)
        # Both pull all arms alike on the instance against them: k (T + 1) / (T + k).
        for agent in ("round-robin", "anytime-improving"):
            met = ratios["late-bloomer", k, agent]
            assert met == pytest.approx(k * (steps + 1) / (steps + k), rel=1e-12)
            assert met >= bounds.deterministic_ratio(k, steps)


def test_gaps_to_potential_are_those_of_the_curves_after_equal_pulls(tmp_path: Path) -> None:
    experiment = tiny("improving-potential", agents="round-robin", seed=3)
    rows = run(experiment, tmp_path, progress=False)
    env: Any = gym.make("ImprovingBandit-v0", num_arms=5, horizon=40).unwrapped
    for place in range(3):
        env.reset(seed=3 + place)
        gaps = [curve.asymptote - curve(8) for curve in env.curves]  # 40 steps, 5 arms
        (last,) = [row for row in rows if row["run"] == place and row["step"] == 40]
        assert last["max_potential_gap"] == pytest.approx(max(gaps))
        assert last["mean_potential_gap"] == pytest.approx(np.mean(gaps))
        assert last["near"] == float(max(gaps) <= 0.05)


def test_the_slope_of_a_power_law_is_its_exponent() -> None:
    sizes = [2, 4, 8, 16]
    exact = [[3.0 / size] * 5 for size in sizes]
    slope, low, high, level = log_slope(sizes, exact)
    assert (slope, low, high) == pytest.approx((-1, -1, -1))
    assert np.exp(level) == pytest.approx(3)
    rng = np.random.default_rng(0)
    noisy = [3.0 / size**1.5 * rng.uniform(0.8, 1.2, 40) for size in sizes]
    slope, low, high, _ = log_slope(sizes, [values.tolist() for values in noisy])
    assert low < -1.5 < high
    assert low < slope < high
    assert high - low < 0.2


def test_one_run_has_no_interval(tmp_path: Path) -> None:
    experiment: Any = tiny("egal-users", num_runs=1)
    rows = run(experiment, tmp_path, progress=False)  # draws it, too
    slope, low, high, _ = experiment.slopes(rows)["egal-ucb"]
    assert np.isfinite(slope)
    assert np.isnan([low, high]).all()
    regrets, slopes = experiment.summary(rows).split("\n\n")
    for line in (*regrets.splitlines()[2:], *slopes.splitlines()[2:]):
        assert line.endswith(" |  |")


def test_a_slope_needs_two_sizes_and_positive_means() -> None:
    with pytest.raises(ValueError, match=r"`sizes` must hold at least two sizes.*got \[2\]"):
        log_slope([2], [[1.0]])
    with pytest.raises(ValueError, match=r"`samples` must have positive means.*0\.0"):
        log_slope([1, 2], [[1.0], [0.0]])


def test_the_slope_of_regret_over_users_is_about_minus_1(tmp_path: Path) -> None:
    settings = {"num_arms": 64, "users": [2, 4, 8, 16], "horizon": 2**15, "num_runs": 4}
    experiment: Any = EXPERIMENTS["egal-users"].from_settings("paper", **settings)
    rows = run(experiment, tmp_path, progress=False)
    slope, low, high, _ = experiment.slopes(rows)["egal-ucb"]
    assert low <= slope <= high
    assert -1.4 < slope < -0.8
    assert all(row["regret"] < row["bound"] for row in rows)


def test_checks_of_theorems_become_rows_with_verdicts(tmp_path: Path) -> None:
    experiment = tiny("theorems", checks=["improving-example-a2"])
    rows = run(experiment, tmp_path, progress=False)
    verdicts = {row["verdict"] for row in rows}
    assert verdicts == {"fails as printed", "holds as corrected"}
    assert "895.5" in experiment.summary(rows)


# --- settings -------------------------------------------------------------------------------------


def test_the_defaults_are_the_sizes_of_the_papers() -> None:
    def sizes(name: str, **settings: Any) -> tuple[Any, ...]:
        held = EXPERIMENTS[name].from_settings("paper", **settings).settings()
        return tuple(held[key] for key in ("num_arms", "users", "horizon", "num_runs", "agents"))

    ucb = ["egal-ucb"]
    assert sizes("egal-synthetic") == (10, [1, 2, 3, 4, 5], 150_000, 30, ucb)
    assert sizes("egal-users") == (2**10, [2**n for n in range(1, 9)], 2**18, 30, ucb)
    assert sizes("egal-saturation") == (20, list(range(2, 21, 2)), 126_000, 30, ucb)
    trace, ratings = {"path": "trace"}, {"path": "ml-25m"}
    assert sizes("egal-cluster", **trace) == (100, [5, 10, 15, 20, 25], 150_000, 30, ucb)
    assert sizes("egal-movielens", **ratings) == (500, [10, 20, 30, 40, 50], 150_000, 30, ucb)


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("egal-users", {"colour": 1}, TypeError, r"'egal-users' takes the settings .*'colour'"),
        ("egal-users", {"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ("egal-users", {"agents": "greedy"}, ValueError, "`agents` must be among .*got 'greedy'"),
        ("egal-users", {"agents": 3}, TypeError, "`agents` must be names of agents, got 3"),
        ("egal-users", {"agents": []}, ValueError, "`agents` must be different values"),
        ("egal-users", {"users": [2, 2]}, ValueError, r"`users` must be different.*\[2, 2\]"),
        ("egal-users", {"users": [2.5]}, TypeError, "`users` must be an integer, got 2.5"),
        ("egal-users", {"num_arms": 3, "users": 4}, ValueError, "`num_arms` must be at least 4"),
        ("egal-users", {"engine": "abacus"}, ValueError, "`engine` must be one of"),
        ("egal-synthetic", {"law_names": ["cauchy"]}, ValueError, "`law_names` must be one of"),
        ("egal-movielens", {"path": ""}, ValueError, "`path` must be where the data set"),
        ("egal-movielens", {"path": 3}, TypeError, "`path` must be a string, got 3"),
        ("improving-ratio", {"steps_per_arm": 3}, ValueError, "`steps_per_arm` must be at least 4"),
        ("improving-ratio", {"families": ["x"]}, ValueError, "`families` must be one of"),
        ("improving-potential", {"epsilon": 0}, ValueError, "`epsilon` must be above 0"),
        ("late-bloomer", {"ramps": [0]}, ValueError, "`ramps` must be at least 1, got 0"),
        ("theorems", {"checks": ["p-is-np"]}, ValueError, "`checks` must be one of"),
        ("learned", {"agents": "sarsa"}, ValueError, "`agents` must be among .*got 'sarsa'"),
        ("learned", {"problems": "chess"}, ValueError, "`problems` must be one of 'linear-caps'"),
        ("learned", {"problems": ["gaussian"] * 2}, ValueError, "`problems` must be different"),
        ("learned", {"ppo_horizons": [True]}, ValueError, "`ppo_horizons` must be one of"),
        ("learned", {"training_seeds": 0}, ValueError, "`training_seeds` must be at least 1"),
        ("learned", {"total_steps": -1}, ValueError, "`total_steps` must be at least 0, got -1"),
        ("learned", {"num_arms": 4}, ValueError, "`num_arms` must be at least 5, got 4"),
    ],
)
def test_wrong_settings_are_told(
    name: str, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        EXPERIMENTS[name].from_settings("quick", **settings)


def test_a_wrong_preset_is_told() -> None:
    with pytest.raises(ValueError, match="`preset` must be one of 'quick', 'paper', got 'fast'"):
        EXPERIMENTS["egal-users"].from_settings("fast")


def test_settings_come_from_a_file_of_them_or_from_a_run(tmp_path: Path) -> None:
    experiment = tiny("late-bloomer", seed=4)
    run(experiment, tmp_path / "run", progress=False)
    settings = load_settings(tmp_path / "run" / "config.json", "late-bloomer")
    assert EXPERIMENTS["late-bloomer"].from_settings("paper", **settings) == experiment
    file = tmp_path / "own.json"
    file.write_text('{"horizon": 12}')
    assert load_settings(file, "late-bloomer") == {"horizon": 12}
    file.write_text("[12]")
    with pytest.raises(ValueError, match="must hold a JSON object of settings, got"):
        load_settings(file, "late-bloomer")
    with pytest.raises(ValueError, match="must hold settings of 'egal-users', got 'late-bloomer'"):
        load_settings(tmp_path / "run" / "config.json", "egal-users")
    file.write_text("horizon: 12")
    with pytest.raises(ExperimentError, match="is not JSON"):
        load_settings(file, "late-bloomer")


# --- the command ----------------------------------------------------------------------------------


def test_the_command_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiments", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in EXPERIMENTS)


def test_the_command_runs_one_and_prints_what_came_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["experiments", "run", "late-bloomer", "--agents", "anytime-improving", "ramps=[40]"]
    words += ["--output", str(tmp_path / "a"), "--seed", "3", "horizon=1000", "num_runs=1"]
    assert cli.main(words) == 0
    captured = capsys.readouterr()
    assert "| anytime-improving | 0.02014 |" in captured.out  # 19.75 / 980.5
    assert "late-bloomer: 100%" in captured.err
    config = str(tmp_path / "a" / "config.json")
    again = ["experiments", "run", "late-bloomer", "--config", config, "--output"]
    assert cli.main([*again, str(tmp_path / "b"), "--no-progress"]) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_names_of_agents_may_have_spaces_around() -> None:
    spaced = tiny("egal-users", agents="egal-ucb, egal-moss")
    assert spaced == tiny("egal-users", agents=["egal-ucb", "egal-moss"])


def test_all_of_the_paper_s_leave_out_those_without_their_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("sb3_contrib")  # `learned` trains
    chosen = cli._without_unmet("paper")
    assert chosen == [
        name for name in EXPERIMENTS if name not in ("egal-cluster", "egal-movielens")
    ]
    for name in chosen:
        EXPERIMENTS[name].from_settings("paper", seed=3)
    cluster, movielens = capsys.readouterr().err.splitlines()
    assert cluster.startswith("egal-cluster is left out, as its data must be given: ")
    assert movielens.endswith(" experiments run egal-movielens --preset paper path=PATH")
    assert cli._without_unmet("quick") == list(EXPERIMENTS)
    assert capsys.readouterr().err == ""


def test_a_mistake_for_all_of_the_paper_s_is_told_before_any_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["experiments", "run", "all", "--preset", "paper", "--seed", "-1"]
    assert cli.main([*words, "--output", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("`seed` must be at least 0, got -1")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["egal-users", "colour=1"], "takes the settings"),
        (["egal-users", "horizon=x"], "`horizon` must be an integer, got 'x'"),
        (["egal-users", "--agents", "egal-ucb,greedy"], "got 'greedy'"),
        (["egal-users", "--agents", "egal-ucb, "], "got ''"),
        (["egal-users", "--seed", "-1"], "`seed` must be at least 0"),
        (["egal-users", "--jobs", "0"], "`jobs` must be at least 1"),
        (["egal-users", "--config", "/no/such.json"], "/no/such.json"),
        (["egal-movielens", "path=/no/such"], "no file or folder '/no/such'. "),
        (["egal-movielens", "--preset", "paper"], "`path` must be where the data set"),
        (["all", "horizon=5"], "must be given to one experiment, not to all"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "run"), "--no-progress"]
    assert cli.main(["experiments", "run", *words, *output]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: action"),
        (["run"], "the following arguments are required: name"),
        (["run", "everything"], "invalid choice: 'everything'"),
        (["run", "egal-users", "--backend", "mpi"], "invalid choice: 'mpi'"),
        (["run", "egal-users", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_options_are_refused_by_the_parser(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        cli.main(["experiments", *words])
    assert error.value.code == 2
    assert message in capsys.readouterr().err
