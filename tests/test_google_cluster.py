"""Usage read from tiny files in every format, and the error that each broken one meets."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from helpers_datasets import by_id, put

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.datasets import _streams, google_cluster

# machine and cycles per instruction; machine 30 has the most complete rows, 9 and 12 as many.
USAGE: list[tuple[int | None, float | None]] = [
    (30, 1.5),
    (12, 2.0),
    (9, 0.75),
    (30, 2.5),
    (12, None),
    (None, 1.0),
    (30, 0.5),
    (12, 3.0),
    (12, None),
    (9, 1.25),
    (5, 4.0),
]
BY_MACHINE = {30: [-1.5, -2.5, -0.5], 9: [-0.75, -1.25], 12: [-2.0, -3.0]}
Rows = list[tuple[Any, Any]]


def changed(rows: Rows, row: int, machine: Any, cycles: Any) -> Rows:
    return [*rows[:row], (machine, cycles), *rows[row + 1 :]]


def usage_csv(rows: Rows = USAGE, missing: str = "") -> bytes:
    lines = ["start_time,machine_id,cpu_usage_distribution,cycles_per_instruction,sample_rate"]
    for machine, cycles in rows:
        cells = [missing if cell is None else cell for cell in (machine, cycles)]
        lines.append(f'300,{cells[0]},"[0.1, 0.2,\n 0.3]",{cells[1]},1.0')
    return ("\n".join(lines) + "\n").encode()


def usage_json(rows: Rows = USAGE, as_text: bool = True, nulls: bool = False) -> bytes:
    lines = []
    for machine, cycles in rows:
        identity = str(machine) if as_text and machine is not None else machine
        record = {"machine_id": identity, "cycles_per_instruction": cycles}
        kept = {key: cell for key, cell in record.items() if nulls or cell is not None}
        nested = {"average_usage": {"cpus": 0.5}, "cpu_usage_distribution": [0.1, 0.2]}
        lines.append(json.dumps({"start_time": "300", **kept, **nested}))
    return ("\n".join(lines) + "\n").encode()


def usage_parquet(
    rows: Rows = USAGE, types: tuple[Any, Any] = (pa.int64(), pa.float64()), group: int = 4
) -> bytes:
    machines, cycles = zip(*rows, strict=True)
    table = pa.table(
        {
            "machine_id": pa.array(machines, types[0]),
            "cycles_per_instruction": pa.array(cycles, types[1]),
            "average_usage": [{"cpus": 0.5}] * len(rows),
        }
    )
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=group)
    data: bytes = sink.getvalue().to_pybytes()
    return data


NAN_USAGE: Rows = [(m, float("nan") if c is None else c) for m, c in USAGE]
USAGE_FILES: dict[str, Callable[[], bytes]] = {
    "csv": usage_csv,
    "csv with null": lambda: usage_csv(missing="null"),
    "csv with NaN": lambda: usage_csv(missing="NaN"),
    "csv with float ids": lambda: usage_csv([(m and float(m), c) for m, c in USAGE]),
    "json": usage_json,
    "json with numbers": lambda: usage_json(as_text=False),
    "json with null": lambda: usage_json(nulls=True),
    "json with NaN": lambda: usage_json(NAN_USAGE),
    "json with blank lines": lambda: usage_json().replace(b"\n", b"\n\n"),
    "json with texts": lambda: usage_json([(m, c and str(c)) for m, c in USAGE]),
    "parquet": usage_parquet,
    "parquet with float ids": lambda: usage_parquet(types=(pa.float64(), pa.float64())),
    "parquet with NaN": lambda: usage_parquet(NAN_USAGE),
    "parquet in single precision": lambda: usage_parquet(types=(pa.int32(), pa.float32())),
    "parquet with decimals": lambda: usage_parquet(
        [(m and Decimal(m), c) for m, c in USAGE], (pa.decimal128(20, 0), pa.float64())
    ),
    "parquet with texts": lambda: usage_parquet(
        [(m and str(m), c and str(c)) for m, c in USAGE], (pa.string(), pa.string())
    ),
}
every_usage_file = pytest.mark.parametrize("make", USAGE_FILES.values(), ids=USAGE_FILES.keys())


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
@every_usage_file
def test_usage_is_told_by_content_not_by_name(
    make: Callable[[], bytes], pack: Callable[[bytes], bytes], tmp_path: Path, parser: str
) -> None:
    arms = google_cluster(put(tmp_path / "unnamed", pack(make())), num_arms=3)
    assert arms.ids.tolist() == [30, 9, 12]  # most rows first, equal ones by id
    assert by_id(arms) == BY_MACHINE
    assert (arms.rows, arms.skipped, arms.synthetic) == (11, 3, False)


def test_machines_beyond_2_to_the_53_are_told_apart(tmp_path: Path) -> None:
    rows: Rows = [(2**53, 1.0), (2**53 + 1, 2.0), (2**53 + 1, 3.0)]
    for make in (usage_csv, usage_json, usage_parquet):
        arms = google_cluster(put(tmp_path / "usage", make(rows)), 2)
        assert by_id(arms) == {2**53 + 1: [-2.0, -3.0], 2**53: [-1.0]}


def test_one_machine_more_is_the_next_busiest(tmp_path: Path) -> None:
    path = put(tmp_path / "usage.csv", usage_csv())
    assert google_cluster(path, 1).ids.tolist() == [30]
    assert google_cluster(path, 4).ids.tolist() == [30, 9, 12, 5]
    with pytest.raises(
        ValueError,
        match=r"`num_arms` must be at most 4, the machines in the 11 rows .*\(3 of them in.* got 5",
    ):
        google_cluster(path, 5)


@every_usage_file
def test_the_first_rows_count_whether_complete_or_not(
    make: Callable[[], bytes], tmp_path: Path
) -> None:
    path = put(tmp_path / "usage", make())
    arms = google_cluster(path, 3, max_rows=6)
    assert by_id(arms) == {30: [-1.5, -2.5], 9: [-0.75], 12: [-2.0]}
    assert (arms.rows, arms.skipped) == (6, 2)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda: usage_csv(changed(USAGE, 6, "m1", 0.5)),
        lambda: usage_csv(changed(USAGE, 6, 30, "fast")),
        lambda: usage_csv()[:-12] + b"\n",
        lambda: usage_csv() + b'1,"2,' + b"x" * 2**21,
        lambda: usage_json(changed(USAGE, 6, 30, "fast")),
        lambda: usage_json()[:-40],
        lambda: usage_parquet(changed(USAGE, 6, 30, float("inf")), group=11),
    ],
)
def test_what_comes_after_the_first_rows_is_not_looked_at(
    spoilt: Callable[[], bytes], tmp_path: Path
) -> None:
    path = put(tmp_path / "usage", spoilt())
    arms = google_cluster(path, 3, max_rows=6)
    assert by_id(arms) == {30: [-1.5, -2.5], 9: [-0.75], 12: [-2.0]}
    assert (arms.rows, arms.skipped) == (6, 2)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}, "):
        google_cluster(path, 3)


def test_shards_of_any_format_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    put(tmp_path / "part-10", usage_csv([(1, 10.0)]))
    put(tmp_path / "part-2", gzip.compress(usage_json([(1, 2.0), (1, 2.5)])))
    put(tmp_path / "part-1", usage_parquet([(1, 1.0)]))
    put(tmp_path / "part-11", "reading stops before this one")
    put(tmp_path / "_SUCCESS", "")
    put(tmp_path / ".part-0.crc", "hidden")
    assert by_id(google_cluster(tmp_path, 1, max_rows=4)) == {1: [-1.0, -2.0, -2.5, -10.0]}
    assert by_id(google_cluster(tmp_path, 1, max_rows=2)) == {1: [-1.0, -2.0]}
    with pytest.raises(ValueError, match="part-11, line 1: must have one column `machine_id`"):
        google_cluster(tmp_path, 1)
    (tmp_path / "part-11").unlink()
    put(tmp_path / "part-3", "")
    with pytest.raises(ValueError, match="part-3: the file is empty"):
        google_cluster(tmp_path, 1)


def test_a_shard_without_rows_is_fine_if_others_have_some(tmp_path: Path) -> None:
    put(tmp_path / "part-1", usage_csv([]))
    put(tmp_path / "part-2", usage_parquet([(3, 1.0)])), put(tmp_path / "part-3", usage_csv([]))
    assert by_id(google_cluster(tmp_path, 1)) == {3: [-1.0]}


def with_texts(row: int, machine: str, cycles: str) -> bytes:
    texts = [(str(m), str(c)) for m, c in USAGE]
    return usage_parquet(changed(texts, row, machine, cycles), (pa.string(), pa.string()))


BROKEN_USAGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", ": the file is empty"),
    "empty, gzipped": (lambda: gzip.compress(b""), ": the file is empty"),
    "csv, no such column": (
        lambda: usage_csv().replace(b"machine_id", b"machine"),
        ", line 1: must have one column `machine_id`, got the columns start_time, machine, cpu",
    ),
    "csv, bad number": (  # each row takes two lines
        lambda: usage_csv(changed(USAGE, 3, 30, "fast")),
        ", line 8, column `cycles_per_instruction`: must be a finite number, got 'fast'",
    ),
    "csv, infinity": (lambda: usage_csv(changed(USAGE, 3, 30, "inf")), ", line 8, .* got 'inf'"),
    "csv, bad machine": (
        lambda: usage_csv(changed(USAGE, 0, "m1", 2)),
        ", line 2, column `machine_id`: must be an integer of 64 bits, got 'm1'",
    ),
    "csv, short row": (
        lambda: usage_csv() + b"1,2,3\n",
        ", line 24: must have 5 columns .*, got 3: '1,2,3'",
    ),
    "csv, hexadecimal machine": (
        lambda: usage_csv(changed(USAGE, 0, "0x10", 2)),
        ", line 2, column `machine_id`: must be an integer of 64 bits, got '0x10'",
    ),
    "csv, rounded machine": (
        lambda: usage_csv(changed(USAGE, 0, "9007199254740993.0", 2)),
        ", line 2, column `machine_id`: must be an integer of 64 bits, exact, not a float, got '90",
    ),
    "csv, a NaN that is not usual": (
        lambda: usage_csv(changed(USAGE, 3, 30, "-NAN")),
        ", line 8, column `cycles_per_instruction`: must be a finite number, got '-NAN'",
    ),
    "json, hexadecimal machine": (
        lambda: usage_json(changed(USAGE, 0, "0X10", 2.0)),
        ", line 1, column `machine_id`: must be an integer of 64 bits, got '0X10'",
    ),
    "json, rounded machine": (
        lambda: usage_json(changed(USAGE, 0, 2.0**53, 2.0), as_text=False),
        r", line 1, column `machine_id`: must .* exact, not a float, got 9007199254740992\.0",
    ),
    "json, no such key": (
        lambda: usage_json().replace(b"cycles_per_instruction", b"cpi"),
        ": must have a column `cycles_per_instruction`, got records like {",
    ),
    "json, bad number": (
        lambda: usage_json(changed(USAGE, 3, 30, "fast")),
        ", line 4, column `cycles_per_instruction`: must be a finite number, got 'fast'",
    ),
    "json, truth": (
        lambda: usage_json(changed(USAGE, 3, True, 2.0), as_text=False),
        ", line 4, column `machine_id`: must be an integer of 64 bits, got True",
    ),
    "json, nested": (
        lambda: usage_json(changed(USAGE, 3, 30, [1.0])),
        r", line 4, column `cycles_per_instruction`: must be a finite number, got \[1.0\]",
    ),
    "json, huge": (
        lambda: usage_json(changed(USAGE, 3, 30, 10**400)),
        ", line 4, column `cycles_per_instruction`: must be a finite number, got 10",
    ),
    "json, cut off": (lambda: usage_json()[:-40], ", line 11: is not JSON: "),
    "json, list": (lambda: usage_json() + b"[1]\n", r", line 12: must be a JSON object, got \[1\]"),
    "json, deep": (lambda: usage_json() + b"[" * 10**5, ", line 12: is not JSON: "),
    "json, two in a line": (
        lambda: usage_json().replace(b"\n", b"", 1),
        ", line 1: is not JSON: Extra data",
    ),
    "parquet, no such column": (
        lambda: usage_parquet().replace(b"machine_id", b"machineXid"),
        ": must have one column `machine_id`, got the columns machineXid, cycles_per_instruction",
    ),
    "parquet, infinity": (
        lambda: usage_parquet(changed(USAGE, 6, 30, float("inf"))),
        ", row group 1, row 2, column `cycles_per_instruction`: must be a finite number, got inf",
    ),
    "parquet, bad text": (
        lambda: with_texts(9, "9", "fast"),
        ", row group 2, row 1, column `cycles_per_instruction`: must be a finite number, got 'fast",
    ),
    "parquet, bad machine": (
        lambda: with_texts(4, "m1", "1"),
        ", row group 1, row 0, column `machine_id`: must be an integer of 64 bits, got 'm1'",
    ),
    "parquet, hexadecimal machine": (
        lambda: with_texts(4, "0x10", "1"),
        ", row group 1, row 0, column `machine_id`: must be an integer of 64 bits, got '0x10'",
    ),
    "parquet, a NaN that is not usual": (
        lambda: with_texts(4, "9", "NAN"),
        ", row group 1, row 0, column `cycles_per_instruction`: must be a finite .* got 'NAN'",
    ),
    "parquet, rounded machine": (
        lambda: usage_parquet([(1.0, 1.0), (-(2.0**53), 2.0)], (pa.float64(), pa.float64())),
        ", row group 0, row 1, column `machine_id`: must be .* exact, not a float, got -9007",
    ),
    "parquet, truths": (
        lambda: usage_parquet([(1, True)], (pa.int64(), pa.bool_())),
        ", row group 0, row 0, column `cycles_per_instruction`: must be a finite number, got True",
    ),
    "parquet, cut off": (lambda: usage_parquet()[:-30], ": damaged or cut short: "),
}


@pytest.mark.parametrize(("make", "message"), BROKEN_USAGE.values(), ids=BROKEN_USAGE.keys())
def test_a_broken_file_of_usage_is_told_by_place_column_and_value(
    make: Callable[[], bytes], message: str, tmp_path: Path, parser: str
) -> None:
    path = put(tmp_path / "usage", make())
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}{message}"):
        google_cluster(path, num_arms=1)


def test_a_damaged_row_group_is_told(tmp_path: Path) -> None:
    content = bytearray(usage_parquet())
    group = parquet.ParquetFile(pa.BufferReader(bytes(content))).metadata.row_group(1)
    start = group.column(0).dictionary_page_offset
    content[start : start + 8] = b"\xff" * 8
    path = put(tmp_path / "usage", bytes(content))
    with pytest.raises(ValueError, match="usage, row group 1: damaged or cut short"):
        google_cluster(path, 1)
    assert google_cluster(path, 1, max_rows=4).ids.tolist() == [30], "the first group is whole"


@pytest.mark.parametrize("make", [usage_csv, usage_json, usage_parquet])
def test_a_cut_gzip_is_told(make: Callable[[], bytes], tmp_path: Path) -> None:
    path = put(tmp_path / "usage.gz", gzip.compress(make())[:-12])
    with pytest.raises(ValueError, match=r"usage.gz: damaged or cut short after line \d+: "):
        google_cluster(path, 1)


def test_a_gzipped_parquet_file_is_unpacked_only_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_streams, "LARGEST_UNPACKED", 100)
    path = put(tmp_path / "usage.gz", gzip.compress(usage_parquet()))
    with pytest.raises(ValueError, match="unpacks to more than 100 bytes; unpack it first"):
        google_cluster(path, 1)


def test_an_empty_folder_says_where_the_trace_is(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the folder holds no files.*github\.com/google/cluster-data"
    ):
        google_cluster(tmp_path)
