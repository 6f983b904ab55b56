"""Experiments that can be stopped at any time and go on: the same results, whoever computes them.

An experiment is a list of tasks. Each is seeded by its own place, not by what ran before it, so
tasks may run in any order in any number of processes. What a task found is written to a file of
its own as soon as it is known; tables and figures are made from these files at the end.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import gym_fairbandits
from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.experiments._processes import BACKENDS, as_they_come

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BACKENDS",
    "PRESETS",
    "Experiment",
    "ExperimentError",
    "Task",
    "check_extra",
    "load_settings",
    "markdown",
    "run",
    "write_whole",
]

Row: TypeAlias = dict[str, Any]
AnyExperiment = TypeVar("AnyExperiment", bound="Experiment")

PRESETS = ("quick", "paper")
CONFIG = "config.json"
_PARTIAL = ".partial-"  # how the names of files begin that are not whole yet
_ABANDONED = 3600.0  # seconds after which nobody is writing such a file any more
_VERSIONS = (
    "numpy",
    "scipy",
    "gymnasium",
    "joblib",
    "polars",
    "matplotlib",
    "numba",
    "torch",
    "stable-baselines3",
)
_EXTRAS = {  # what is imported of them
    "experiments": ("joblib", "matplotlib", "polars", "tqdm"),
    "sb3": ("sb3_contrib", "stable_baselines3", "torch", "tqdm"),
}


class ExperimentError(RuntimeError):
    """A task failed, or a folder cannot be used; what was finished before is kept."""


@dataclass(frozen=True)
class Task:
    """A part of an experiment that needs no other part.

    Attributes:
        key: Its name among the tasks. Its file's name has hyphens for all in it but letters,
            digits, dots and hyphens, which some system does not take.
        parameters: What it is about; JSON-able.
    """

    key: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment(ABC):
    """The settings of an experiment, and what follows from them.

    The defaults of the fields are the paper's sizes. All fields are JSON-able.

    Attributes:
        seed: Run r is seeded ``seed + r``, whatever the agent: agents meet the same instances.
    """

    seed: int = 0

    name: ClassVar[str]
    title: ClassVar[str]
    quick: ClassVar[Mapping[str, Any]] = {}  # what `--preset quick` changes
    wanted: ClassVar[tuple[str, ...]] = ()  # settings whose default does not run

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        checked_int("seed", self.seed, minimum=0)

    @classmethod
    def from_settings(
        cls: type[AnyExperiment], preset: str = "quick", /, **settings: Any
    ) -> AnyExperiment:
        """Return the experiment of a preset with some settings changed.

        Raises:
            TypeError: If a setting is unknown or has the wrong type.
            ValueError: If a setting breaks its rule.
        """
        checked_choice("preset", preset, PRESETS)
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise TypeError(f"{cls.name!r} takes the settings {known}, got {unknown}")
        return cls(**{**(cls.quick if preset == "quick" else {}), **settings})

    @classmethod
    def unmet(cls, preset: str) -> list[str]:
        """Return the settings that a preset leaves to be given, such as where a data set is."""
        checked_choice("preset", preset, PRESETS)
        return [name for name in cls.wanted if preset != "quick" or name not in cls.quick]

    def settings(self) -> dict[str, Any]:
        """Return the settings as JSON has them: lists for tuples."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain

    def data(self) -> dict[str, Any]:
        """Return what identifies the data that the results depend on; nothing by default."""
        return {}

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return the tasks, in the order of the results."""

    @abstractmethod
    def perform(self, task: Task) -> list[Row]:
        """Return the rows of a task; JSON-able, all with the same columns."""

    @abstractmethod
    def summary(self, rows: Sequence[Row]) -> str:
        """Return what the rows say, as a Markdown table."""

    @abstractmethod
    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw the rows."""


def run(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool = True,
) -> list[Row]:
    """Run what is missing of an experiment, and write its tables and figures.

    The folder holds ``config.json`` (settings, seed, versions), a file per finished task under
    ``tasks``, ``results.csv`` and ``results.parquet`` (the same rows), ``figure.png`` and
    ``figure.pdf``. A file is either whole or not there. If the call is interrupted in whatever
    way, the same call goes on; the results are the same bytes as without the interruption.

    Args:
        experiment: What to run.
        folder: Where; made if it does not exist.
        jobs: How many processes, -1 for as many as there are cores; by default one, or as many
            as a cluster has.
        backend: ``"loky"`` (processes of this machine), ``"dask"`` or ``"ray"``; ``None`` is
            loky, or what ``joblib.parallel_config`` says.
        progress: Whether to show a bar, on standard error.

    Returns:
        All rows, in the order of the tasks.

    Raises:
        ExperimentError: If a task fails, or if ``folder`` holds something else: then nothing is
            written.
        ImportError: If the extra ``experiments`` is not installed.
        ValueError: If ``jobs`` or ``backend`` breaks its rule.
    """
    if backend is not None:
        checked_choice("backend", backend, BACKENDS)
    if jobs is not None and checked_int("jobs", jobs, minimum=-1) == 0:
        raise ValueError("`jobs` must be at least 1, or -1 for all cores, got 0")
    check_extra()
    from tqdm import tqdm

    place, tasks = Path(folder), experiment.tasks()
    _claim(place, experiment)
    (place / "tasks").mkdir(exist_ok=True)  # after the claim: a kill in between leaves no riddle
    files = {
        task.key: place / "tasks" / f"{number:04d}-{_portable(task.key)}.json"
        for number, task in enumerate(tasks)
    }
    missing = [task for task in tasks if not files[task.key].exists()]
    with (
        tqdm(
            total=len(tasks),
            initial=len(tasks) - len(missing),
            desc=experiment.name,
            unit="task",
            disable=not progress,
        ) as bar,
        as_they_come(
            [partial(_attempt, experiment, task) for task in missing], jobs, backend
        ) as results,
    ):
        for key, rows in results:
            write_whole(files[key], json.dumps(rows, indent=0).encode())
            bar.update()
    rows = [row for file in files.values() for row in _read(file)]
    _write_tables(place, rows)
    _write_figures(place, experiment.figure(rows))
    _sweep(place)
    return rows


def load_settings(file: str | os.PathLike[str], name: str) -> dict[str, Any]:
    """Return the settings in a JSON file: an object of them, or the ``config.json`` of a run.

    Args:
        file: The file.
        name: The experiment that they are for.

    Raises:
        ValueError: If the file holds something else, or the settings of another experiment.
    """
    held = _read(Path(file))
    if not isinstance(held, dict):
        raise ValueError(f"{file}: must hold a JSON object of settings, got {held!r}")
    if "experiment" not in held:
        return held
    if held["experiment"] != name or not isinstance(held.get("settings"), dict):
        raise ValueError(f"{file}: must hold settings of {name!r}, got {held['experiment']!r}")
    settings: dict[str, Any] = held["settings"]
    return settings


def markdown(header: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; floats in four digits."""
    told = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in line] for line in lines
    ]
    table = [list(header), ["---"] * len(header), *told]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def check_extra(extra: str = "experiments") -> None:
    """Raise ``ImportError`` with the command to install what is missing, if anything is.

    Args:
        extra: ``"experiments"``, which all need, or ``"sb3"``, which those need that train.
    """
    try:
        for module in _EXTRAS[extra]:
            importlib.import_module(module)
    except ImportError as error:
        whose = "training needs" if extra == "sb3" else "experiments need"
        raise ImportError(
            f'{whose} the extra `{extra}` ({error}): pip install "gym-fairbandits[{extra}]"'
        ) from error


# --- The folder ---------------------------------------------------------------------------------


def _claim(folder: Path, experiment: Experiment) -> None:
    """Write the configuration into a folder that is new or empty, or find the same one there."""
    identity = {
        "experiment": experiment.name,
        "settings": experiment.settings(),
        "data": experiment.data(),
    }
    versions = [_versions()]
    config = folder / CONFIG
    if config.exists():
        held = _read(config)
        if not isinstance(held, dict):
            raise ExperimentError(f"{config} is no configuration; choose another folder (--output)")
        different = sorted(key for key in identity if held.get(key) != identity[key])
        if different:
            what = _first_difference(held.get(different[0]), identity[different[0]])
            raise ExperimentError(
                f"{folder} holds another configuration ({different[0]}: {what}); "
                "choose another folder (--output)"
            )
        earlier = held.get("versions", [])
        if versions[0] in earlier:
            return
        versions = [*earlier, *versions]  # results may stem from any of them
    elif folder.exists() and any(not name.startswith(_PARTIAL) for name in os.listdir(folder)):
        raise ExperimentError(
            f"{folder} holds files of something else; choose another folder (--output)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(config, (json.dumps({**identity, "versions": versions}, indent=2) + "\n").encode())


def _first_difference(held: Any, wanted: Any) -> str:
    if isinstance(held, dict) and isinstance(wanted, dict):
        for key in [*wanted, *held]:
            if held.get(key) != wanted.get(key):
                return f"{key} is {held.get(key)!r}, not {wanted.get(key)!r}"
    return f"{held!r}, not {wanted!r}"


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {
        "gym_fairbandits": gym_fairbandits.__version__,
        "python": platform.python_version(),
    }
    for name in _VERSIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise ExperimentError(f"{file} is not JSON: {error}") from error


def write_whole(file: Path, content: bytes) -> None:
    """Write a file as a whole: whatever happens, it holds all of ``content`` or is not touched."""
    # Two processes that write the same file at the same time write the same.
    partial = file.with_name(f"{_PARTIAL}{os.getpid()}-{file.name}")
    with open(partial, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, file)


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed left half written.

    Not what is recent: another run in the same folder may be about to finish it.
    """
    for leftover in [*folder.glob(f"{_PARTIAL}*"), *folder.glob(f"tasks/{_PARTIAL}*")]:
        with suppress(FileNotFoundError):  # its owner was faster
            if time.time() - leftover.stat().st_mtime > _ABANDONED:
                leftover.unlink()


def _portable(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", key)


def _write_tables(folder: Path, rows: Sequence[Row]) -> None:
    import polars as pl

    table = pl.DataFrame(rows, infer_schema_length=None)
    write_whole(folder / "results.csv", table.write_csv().encode())
    buffer = BytesIO()
    table.write_parquet(buffer)
    write_whole(folder / "results.parquet", buffer.getvalue())


def _write_figures(folder: Path, figure: Figure) -> None:
    for ending, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
        buffer = BytesIO()
        figure.savefig(buffer, format=ending, dpi=150, metadata=metadata)
        write_whole(folder / f"figure.{ending}", buffer.getvalue())


def _attempt(experiment: Experiment, task: Task) -> tuple[str, list[Row]]:
    try:
        return task.key, experiment.perform(task)
    except Exception as error:
        # As text: not every error survives the way back from another process.
        told = f"task {task.key} failed: {type(error).__name__}: {error}"
    raise ExperimentError(told)
