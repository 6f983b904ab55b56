"""Runs of experiments: they go on after a kill, in processes, and never in a wrong folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

from helpers_experiments import contents, everything, tiny
from matplotlib.figure import Figure

from gym_fairbandits.datasets import synthetic_cluster
from gym_fairbandits.experiments.catalogue import EXPERIMENTS
from gym_fairbandits.experiments.runner import Experiment, ExperimentError, Row, Task, markdown, run

SLOW = {"ramps": [20, 40, 80], "horizon": 1000, "num_runs": 2}  # 12 tasks that take a while
SLOW_AGENTS = "anytime-improving,greedy,single-peaked-optimism,random-round-robin"


def slow_sweep() -> Experiment:
    return EXPERIMENTS["late-bloomer"].from_settings("quick", **SLOW, agents=SLOW_AGENTS)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the slow sweep writes when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("whole")
    run(slow_sweep(), folder, progress=False)
    return contents(folder)


# --- going on after an interruption ---------------------------------------------------------------


def started(folder: Path) -> subprocess.Popen[str]:
    """Start the slow sweep as a command; return it when some tasks are finished."""
    words = ["late-bloomer", "--output", str(folder), "--no-progress", "--agents", SLOW_AGENTS]
    words += [f"{name}={json.dumps(value)}" for name, value in SLOW.items()]
    command = [sys.executable, "-m", "gym_fairbandits", "experiments", "run", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(list(folder.glob("tasks/0*.json"))) < 3:
        time.sleep(0.005)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_to_the_same_bytes(
    how: signal.Signals, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    process = started(tmp_path / "run")
    process.send_signal(how)
    _, told = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert told.splitlines()[-1].startswith("stopped; the same command goes on with")
    else:
        assert process.returncode == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run/tasks/0*.json")}
    assert 3 <= len(finished) < 12
    assert not (tmp_path / "run" / "results.csv").exists()
    run(slow_sweep(), tmp_path / "run", progress=False)
    assert contents(tmp_path / "run") == uninterrupted
    assert {path: path.stat().st_mtime_ns for path in finished} == finished  # not done again


def test_a_file_that_was_not_finished_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "run" / "tasks").mkdir(parents=True)
    (tmp_path / "run" / ".partial-1-config.json").write_text('{"exper')
    with pytest.raises(ExperimentError, match="holds files of something else"):
        run(tiny("late-bloomer"), tmp_path / "run", progress=False)
    (tmp_path / "run" / "tasks").rmdir()
    run(tiny("late-bloomer"), tmp_path / "run", progress=False)
    left = [path for path in everything(tmp_path / "run") if ".partial-" in path]
    assert left == [".partial-1-config.json"]  # who knows, its owner may be writing it
    two_hours_ago = time.time() - 7200
    os.utime(tmp_path / "run" / ".partial-1-config.json", (two_hours_ago, two_hours_ago))
    run(tiny("late-bloomer"), tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / ".partial-1-config.json").exists()


def test_a_run_stopped_at_its_first_file_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tiny("late-bloomer"), tmp_path / "run", progress=False)
    assert not [path for path in everything(tmp_path / "run") if ".partial-" not in path]
    rows = run(tiny("late-bloomer"), tmp_path / "run", progress=False)
    shutil.rmtree(tmp_path / "run" / "tasks")  # as if stopped right after its configuration
    assert run(tiny("late-bloomer"), tmp_path / "run", progress=False) == rows


@dataclass(frozen=True)
class Failing(Experiment):
    """Its third task fails while the file ``broken`` is there."""

    broken: str = ""

    name: ClassVar[str] = "failing"
    title: ClassVar[str] = "A task that fails"

    def tasks(self) -> list[Task]:
        return [Task(f"n-{number}", {"number": number}) for number in range(5)]

    def perform(self, task: Task) -> list[Row]:
        if task.parameters["number"] == 2 and os.path.exists(self.broken):
            raise ZeroDivisionError("no good")
        return [{"number": task.parameters["number"], "value": float("inf")}]

    def summary(self, rows: Sequence[Row]) -> str:
        return markdown(["rows"], [[len(rows)]])

    def figure(self, rows: Sequence[Row]) -> Figure:
        return Figure()


def test_a_task_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    broken, folder = tmp_path / "broken", tmp_path / "run"
    broken.touch()
    experiment = Failing(broken=str(broken))
    with pytest.raises(ExperimentError, match="task n-2 failed: ZeroDivisionError: no good"):
        run(experiment, folder, progress=False)
    assert sorted(path.name for path in folder.glob("tasks/*")) == [
        "0000-n-0.json",
        "0001-n-1.json",
    ]
    broken.unlink()
    rows = run(experiment, folder, progress=False)
    assert rows == [{"number": number, "value": float("inf")} for number in range(5)]


class Modules(Failing):
    """Its tasks are named as an agent of one's own may be."""

    def tasks(self) -> list[Task]:
        keys = ["own_module:agent", "own-module-agent", "own/module agent"]
        return [Task(key, {"number": number}) for number, key in enumerate(keys)]


def test_the_names_of_files_are_fine_on_every_system(tmp_path: Path) -> None:
    rows = run(Modules(), tmp_path, progress=False)
    assert [row["number"] for row in rows] == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.glob("tasks/*")) == [
        "0000-own-module-agent.json",
        "0001-own-module-agent.json",
        "0002-own-module-agent.json",
    ]


# --- processes ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    run(slow_sweep(), tmp_path, jobs=2, backend="loky", progress=False)
    assert contents(tmp_path) == uninterrupted


@pytest.mark.slow
def test_a_dask_cluster_writes_the_same_bytes(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    pytest.importorskip("distributed")
    run(slow_sweep(), tmp_path, jobs=2, backend="dask", progress=False)
    assert contents(tmp_path) == uninterrupted


@pytest.mark.slow
def test_the_dask_scheduler_of_the_configuration_is_used(tmp_path: Path) -> None:
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    run(tiny("late-bloomer"), tmp_path / "here", progress=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        dask.config.set({"scheduler-address": cluster.scheduler_address}),
    ):
        run(tiny("late-bloomer"), tmp_path / "there", backend="dask", progress=False)
        assert cluster.scheduler.transition_counter >= len(tiny("late-bloomer").tasks())
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_writes_the_same_bytes(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    pytest.importorskip("ray")
    run(slow_sweep(), tmp_path, jobs=2, backend="ray", progress=False)
    assert contents(tmp_path) == uninterrupted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "`jobs` must be at least 1, or -1"),
        ({"jobs": -2}, "`jobs` must be at least -1, got -2"),
        ({"backend": "threads"}, "`backend` must be one of 'loky', 'dask', 'ray'"),
    ],
)
def test_wrong_processes_are_refused_before_anything_is_written(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        run(tiny("late-bloomer"), tmp_path / "run", progress=False, **options)
    assert not (tmp_path / "run").exists()


# --- folders --------------------------------------------------------------------------------------


def test_a_folder_with_another_configuration_is_refused_and_kept(tmp_path: Path) -> None:
    run(tiny("late-bloomer"), tmp_path, progress=False)
    before = everything(tmp_path)
    with pytest.raises(ExperimentError, match=r"settings: horizon is 50, not 51\)"):
        run(tiny("late-bloomer", horizon=51), tmp_path, progress=False)
    with pytest.raises(ExperimentError, match=r"seed is 0, not 1\)"):
        run(tiny("late-bloomer", seed=1), tmp_path, progress=False)
    with pytest.raises(ExperimentError, match="experiment: 'late-bloomer', not 'improving-ratio'"):
        run(tiny("improving-ratio"), tmp_path, progress=False)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("notes.txt", "mine", "holds files of something else"),
        ("config.json", "{", "is not JSON"),
        ("config.json", "[]", "is no configuration"),
        ("config.json", "{}", "holds another configuration"),
        ("config.json", "__import__('os')", "is not JSON"),
    ],
)
def test_a_folder_of_something_else_is_refused_and_kept(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ExperimentError, match=message):
        run(tiny("late-bloomer"), tmp_path, progress=False)
    assert everything(tmp_path) == {name: text.encode()}


def test_other_versions_are_noted_and_change_no_result(tmp_path: Path) -> None:
    run(tiny("late-bloomer"), tmp_path, progress=False)
    before, file = contents(tmp_path), tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["versions"][0]["numpy"] = "1.0"
    file.write_text(json.dumps(config))
    for _ in range(2):
        run(tiny("late-bloomer"), tmp_path, progress=False)
    versions = [held["numpy"] for held in json.loads(file.read_text())["versions"]]
    assert versions == ["1.0", np.__version__]
    assert contents(tmp_path) == before


def test_a_data_set_that_changed_is_refused(tmp_path: Path) -> None:
    trace, folder = tmp_path / "trace", tmp_path / "run"
    experiment = tiny("egal-cluster", path=str(trace), agents="static-oracle")
    synthetic_cluster(6, 0, folder=trace, num_rows=500)
    run(experiment, folder, progress=False)
    config = json.loads((folder / "config.json").read_text())
    assert config["data"]["synthetic"] is True  # the folder says so
    assert config["data"]["rows"] == 500
    before = everything(folder)
    shutil.rmtree(trace)
    synthetic_cluster(6, 1, folder=trace, num_rows=500)
    with pytest.raises(ExperimentError, match=r"holds another configuration \(data: "):
        run(experiment, folder, progress=False)
    assert everything(folder) == before
