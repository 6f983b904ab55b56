"""Google's cluster trace: machines as arms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.datasets import _synthetic
from gym_fairbandits.datasets._fields import Blocks, Chunk, Fields, chunks
from gym_fairbandits.datasets._recorded import (
    PathLike,
    Recorded,
    Table,
    check_extra,
    drawn_table,
    existing,
    is_synthetic,
)
from gym_fairbandits.datasets._records import (
    csv_layout,
    delimited_blocks,
    json_blocks,
    parquet_blocks,
)
from gym_fairbandits.datasets._streams import open_path

__all__ = ["google_cluster", "synthetic_cluster"]

_FIELDS = Fields("machine_id", "cycles_per_instruction", optional=True)
_SOURCE = (
    "Google's clusterdata-2019 trace (licence CC-BY 4.0) is described at "
    "https://github.com/google/cluster-data; export its table `instance_usage` from BigQuery as "
    "CSV, JSON lines or Parquet. It is neither shipped nor downloaded"
)


def google_cluster(path: PathLike, num_arms: int = 100, max_rows: int = 4_000_000) -> Recorded:
    """Return the busiest machines as arms; a reward is minus the cycles per instruction of a task.

    Reads the table ``InstanceUsage`` of the trace clusterdata-2019: its columns ``machine_id`` and
    ``cycles_per_instruction``, whatever the others. The format of each file is told by the
    content: CSV with a header, JSON lines, or Parquet, each plain or gzipped.

    Args:
        path: A file, or a folder of such files and nothing else (names that begin with ``.`` or
            ``_`` are passed over), read in the order of the numbers in their names.
        num_arms: How many machines. L takes 100.
        max_rows: Reading stops after so many rows, whether they are complete or not, and what
            comes after them is not looked at. L takes the first four million.

    Returns:
        The ``num_arms`` machines with the most complete rows, in this order (equal ones by id),
        each with its rewards in the order of the rows. Rows without a machine or value (missing,
        empty, null, NaN) are skipped and counted.

    Raises:
        FileNotFoundError: If there is no such path; says where the trace is.
        ImportError: If the extra ``experiments`` is not installed.
        TypeError: If an argument is of a wrong type.
        ValueError: If a file is damaged, empty, in no known format, or holds a bad value (names
            file, line or row group, column and value), or there are fewer than ``num_arms``
            machines.
    """
    checked_int("num_arms", num_arms)
    checked_int("max_rows", max_rows)
    place = existing(path, _SOURCE)
    files = _usage_files(place)
    table = Table(_first_rows(files, max_rows), str(place), is_synthetic(place, *files))
    return _busiest_machines(table, num_arms)


def synthetic_cluster(
    num_arms: int = 100,
    seed: int = 0,
    *,
    num_rows: int = 100_000,
    folder: PathLike | None = None,
    file_format: str = "csv",
) -> Recorded:
    """Return arms as of :func:`google_cluster`, from rows that are drawn at random: no real data.

    Machines differ in speed and in their number of rows; some rows lack their value.

    Args:
        num_arms: How many machines; all of them are arms.
        seed: The rows.
        num_rows: How many rows; at least ``num_arms``.
        folder: Where to write the file too, with a file that labels it as synthetic:
            ``google_cluster(folder, num_arms)`` then returns the same arms.
        file_format: ``"csv"``, ``"json"`` or ``"parquet"``.

    Raises:
        FileExistsError: If the folder holds such a file; nothing is overwritten.
        ImportError: If the extra ``experiments`` is not installed.
        TypeError: If an argument is of a wrong type.
        ValueError: If a number is too small or the format unknown.
    """
    checked_int("num_arms", num_arms)
    checked_int("seed", seed, minimum=0)
    checked_int("num_rows", num_rows, minimum=num_arms)
    checked_choice("file_format", file_format, list(_synthetic.USAGE_FILES))
    check_extra()
    drawn = _synthetic.usage(num_arms, num_rows, seed)
    if folder is not None:
        _synthetic.write(Path(folder), drawn, _synthetic.USAGE_FILES, file_format)
    table = drawn_table(drawn, _FIELDS, f"synthetic_cluster(seed={seed})")
    return _busiest_machines(table, num_arms)


def _busiest_machines(table: Table, num_arms: int) -> Recorded:
    counted = table.counted().sort(["rows", "id"], descending=[True, False])
    if not counted.height >= num_arms:
        raise ValueError(
            f"`num_arms` must be at most {counted.height}, the machines in the {table.rows} rows "
            f"read of {table.source} ({table.skipped} of them incomplete), got {num_arms}"
        )
    return table.recorded(counted["id"].to_numpy()[:num_arms], sign=-1.0)


def _usage_files(path: Path) -> list[Path]:
    """Return the file itself, or a folder's files in order."""
    if not path.is_dir():
        return [path]
    shards = [file for file in path.iterdir() if file.is_file() and file.name[:1] not in "._"]
    if not shards:
        raise ValueError(f"{path}: the folder holds no files. {_SOURCE}")
    return sorted(shards, key=_by_number)


def _by_number(path: Path) -> tuple[list[str | int], str]:
    """Return a key that sorts part-2 before part-10."""
    parts = re.split(r"([0-9]+)", path.name)  # texts and numbers in turn
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], path.name


def _usage(path: Path) -> Blocks:
    with open_path(path) as stream:
        if stream.magic() == b"PAR1":
            source = stream.unpacked() if stream.gzipped else path
            yield from parquet_blocks(stream.name, source, _FIELDS)
            return
        first_line = stream.first_line()
        if first_line.lstrip().startswith(b"{"):
            yield from json_blocks(stream, first_line, _FIELDS)
        else:
            layout = csv_layout(stream.name, first_line, _FIELDS)
            yield from delimited_blocks(stream, first_line, layout, _FIELDS)


def _first_rows(files: list[Path], number: int) -> Iterator[Chunk]:
    for file in files:
        for chunk in chunks(_usage(file), _FIELDS, number):
            yield chunk
            number -= len(chunk.ids)
        if not number:
            return
