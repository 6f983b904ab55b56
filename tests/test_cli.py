"""The command line as a user runs it: what it lists, plays and compares, and how it fails."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers_names import EGAL, IMPROVING

import gym_fairbandits
import gym_fairbandits.__main__ as cli
from gym_fairbandits import agents
from gym_fairbandits.agents import RoundRobin, registry


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "gym_fairbandits", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_module_runs_as_a_command() -> None:
    result = run("envs")
    assert result.returncode == 0
    assert result.stderr == ""
    assert IMPROVING in result.stdout
    assert EGAL in result.stdout


def test_the_version_is_that_of_the_package() -> None:
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"gym_fairbandits {gym_fairbandits.__version__}\n"


def test_help_shows_examples() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert "examples:" in result.stdout
    assert "python -m gym_fairbandits compare EgalAssign-v0" in result.stdout


def test_a_mistake_is_one_line_and_exit_code_2() -> None:
    result = run("play", EGAL, "--agent", "ucb")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "error: `name` must be one of" in result.stderr


@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
def test_lists_are_complete(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents", env_id]) == 0
    listed = capsys.readouterr().out
    for name, line in agents.available(env_id).items():
        assert f"  {name} " in listed
        assert line in listed
    assert cli.main(["instances", env_id]) == 0
    listed = capsys.readouterr().out
    for name, build in cli.INSTANCES[env_id].items():
        assert f"  {name} " in listed
        assert str(build.__doc__).partition("\n")[0] in listed


def test_agents_are_listed_with_what_they_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("In brackets: what an agent is told")
    told = {line.split()[0]: re.findall(r" \[([a-z, ]+)\]$", line) for line in lines}
    assert told["horizon-aware-improving"] == ["horizon"]
    assert told["oracle-arm"] == ["instance"]
    assert told["hybrid-rising"] == ["horizon, optimum"]
    assert told["anytime-improving"] == told["egal-ucb"] == []


def test_without_an_environment_everything_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in agents.available())


def test_play_draws_every_nth_step_and_tells_the_regret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["play", IMPROVING, "--agent", "greedy", "--every", "4"]
    assert cli.main([*words, "instance=early_vs_late", "horizon=10"]) == 0
    out = capsys.readouterr().out
    assert out.count("Improving") == 3  # after steps 4, 8 and 10
    assert "greedy, 10 steps" in out
    assert "policy regret:" in out
    assert "max potential gap:" in out


def test_play_takes_parameters_of_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["play", IMPROVING, "--agent", "fixed-arm", "--with", "arm=1", "--render", "none"]
    assert cli.main([*words, "instance=policy_vs_external", "horizon=20"]) == 0
    assert "policy regret: 13.5\n" in capsys.readouterr().out


def test_play_without_pictures_tells_the_hand_worked_regret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # min(n/10, 1) and 0.1: the second arm throughout loses 0.9 T - 4.5.
    words = ["play", IMPROVING, "--agent", "oracle-arm", "--render", "none"]
    assert cli.main([*words, "instance=policy_vs_external", "horizon=20"]) == 0
    out = capsys.readouterr().out
    assert "policy regret: 0\n" in out
    assert "optimal return: 15.5\n" in out


def test_compare_prints_a_table_and_writes_the_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    file = tmp_path / "episodes.csv"
    words = ["compare", EGAL, "--agents", "oracle-rotation,egal-ucb", "--num-episodes", "3"]
    words += ["--no-progress", "--csv", str(file), "horizon=20", "num_users=2"]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "EgalAssign-v0, horizon=20, num_users=2; 3 episodes, seed 0"
    assert lines[4].startswith("| oracle-rotation | 0.00 [0.00, 0.00] |")
    assert lines[5].startswith("| egal-ucb | ")
    with file.open(newline="") as rows:
        played = [row["policy"] for row in csv.DictReader(rows)]
    assert played == ["oracle-rotation"] * 3 + ["egal-ucb"] * 3


@pytest.mark.parametrize("file", ["no/folder/episodes.csv", "."])
def test_compare_refuses_a_file_that_it_cannot_write_before_it_plays(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / file
    impossible = ["num_users=11", "num_arms=10"]  # told as soon as an environment is made
    assert cli.main(["compare", EGAL, "--csv", str(path), *impossible]) == 2
    error = capsys.readouterr().err
    assert f"`--csv` must be a file in a folder that exists, got {path}\n" in error


def test_arguments_of_the_environment_are_json_or_words() -> None:
    words = ["horizon=5", "horizon_known=True", 'instance={"name": "two_level"}', "objective=x=y"]
    assert cli._named(words) == {
        "horizon": 5,
        "horizon_known": True,
        "instance": {"name": "two_level"},
        "objective": "x=y",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["play", IMPROVING, "--agent", "egal-ucb"], "`name` must be one of"),
        (["play", IMPROVING, "--agent", "greedy", "horizon"], "must be name=value, got 'horizon'"),
        (["play", IMPROVING, "--agent", "greedy", ""], "must be name=value, got ''"),
        (["play", IMPROVING, "--agent", "greedy", "--seed", "1", ""], "must be name=value, got ''"),
        (["play", IMPROVING, "--agent", "greedy", "--fps", "0"], "`--fps` must be above 0, got 0"),
        (["play", IMPROVING, "--agent", "greedy", "--fps", "nan"], "`--fps` must be above 0"),
        (["play", IMPROVING, "--agent", "greedy", "horizon=0"], "`horizon` must be at least 1"),
        (
            ["play", IMPROVING, "--agent", "greedy", "horizn=1"],
            "ImprovingBandit-v0 takes the arguments ['horizon', 'horizon_known', 'instance', "
            "'max_episode_steps', 'noise_std', 'num_arms', 'render_reveal', 'validate'], "
            "got ['horizn']",
        ),
        (["compare", EGAL, "colour=1"], "'objective', 'render_reveal'], got ['colour']"),
        (
            ["experiments", "run", "egal-saturation", "users=2,20"],
            "`users` must be an integer or a list of them, such as [2,20], got '2,20'",
        ),
        (
            ["play", IMPROVING, "--agent", "hybrid-rising"],
            "`optimum` must be given for 'hybrid-rising'",
        ),
        (["compare", EGAL, "--agents", "egal-ucb,greedy"], "got 'greedy'"),
        (["compare", EGAL, "--num-episodes", "0"], "`num_episodes` must be at least 1, got 0"),
        (["compare", EGAL, "num_users=11", "num_arms=10"], "`num_users` must be at most"),
    ],
)
def test_mistakes_are_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--no-progress", "horizon=5"] if words[0] == "compare" else []
    assert cli.main([*words, *small]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


class Stopped(RoundRobin):
    """Round robin that is stopped with Ctrl-C."""

    def _act(self, observation: Any) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize("words", [["play", "--agent"], ["compare", "--no-progress", "--agents"]])
def test_ctrl_c_is_one_line_and_exit_code_130(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_players", {IMPROVING: {"stopped": Stopped}})
    assert cli.main([words[0], IMPROVING, *words[1:], "stopped"]) == 130
    out, error = capsys.readouterr()
    assert (out, error) == ("", f"python -m gym_fairbandits {words[0]}: stopped\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: command"),
        (["fly"], "invalid choice: 'fly'"),
        (["play", "CartPole-v1", "--agent", "greedy"], "invalid choice: 'CartPole-v1'"),
        (["play", IMPROVING], "required: --agent"),
        (["envs", "--all"], "unrecognized arguments: --all"),
        (["play", IMPROVING, "--agent", "greedy", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_options_are_refused_by_the_parser(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        cli.main(words)
    assert error.value.code == 2
    assert message in capsys.readouterr().err
