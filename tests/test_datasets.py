"""Data sets read from tiny files in every format, and the error that each broken one meets."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import sys
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import datasets
from gym_fairbandits.arms import Empirical, from_dict
from gym_fairbandits.datasets import Recorded, _records, _streams, google_cluster, movielens

# user, movie, rating, time; three movies with 3, 1 and 2 ratings.
RATINGS = [(1, 10, 4), (1, 7, 1), (2, 10, 5), (3, 2, 2), (3, 7, 3), (4, 10, 4)]
BY_MOVIE = {2: [2.0], 7: [1.0, 3.0], 10: [4.0, 5.0, 4.0]}


def ratings_csv(rows: list[tuple[int, int, int]] = RATINGS, end: str = "\n") -> str:
    lines = ["userId,movieId,rating,timestamp"]
    lines += [f"{user},{movie},{rating}.0,1147880044" for user, movie, rating in rows]
    return end.join(lines) + end


def ratings_joined(separator: str) -> str:
    return "".join(
        separator.join(map(str, (user, movie, rating, 881250949))) + "\n"
        for user, movie, rating in RATINGS
    )


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def by_id(arms: Recorded) -> dict[int, list[float]]:
    """Return the samples of each movie or machine."""
    return dict(zip(arms.ids.tolist(), arms.parameters()["samples"], strict=True))


@pytest.fixture(params=["as it is", "in small blocks", "record by record"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read with pyarrow in one block, in blocks of a few bytes, or in Python."""
    if request.param == "in small blocks":
        monkeypatch.setattr(_streams, "_BLOCK", 5)
    if request.param == "record by record":
        for name in ("_parsed_text", "_parsed_json", "_parsed_columns"):
            monkeypatch.setattr(_records, name, lambda *arguments: None)
    return str(request.param)


# --- MovieLens -----------------------------------------------------------------------------------

RATINGS_FILES = {
    "csv": ratings_csv(),
    "csv of Windows": ratings_csv(end="\r\n"),
    "csv with a byte order mark": "\ufeff" + ratings_csv(),
    "csv without a last line's end": ratings_csv().rstrip("\n"),
    "csv with quotes": ratings_csv().replace("10,", '"10",').replace("userId", '"userId"'),
    "csv with other columns": "rating,note,movieId\n"
    + "".join(f'{rating},"a, ""b""\n{movie}",{movie}\n' for _, movie, rating in RATINGS),
    "csv with blank lines": ratings_csv().replace("\n", "\n\n"),
    "dat": ratings_joined("::"),
    "data": ratings_joined("\t"),
}


@pytest.mark.parametrize("content", RATINGS_FILES.values(), ids=RATINGS_FILES.keys())
def test_ratings_are_told_by_content_not_by_name(content: str, tmp_path: Path, parser: str) -> None:
    arms = movielens(put(tmp_path / "unnamed", content), num_arms=3)
    assert by_id(arms) == BY_MOVIE
    assert (arms.rows, arms.skipped, arms.synthetic) == (6, 0, False)
    assert arms.source == str(tmp_path / "unnamed")
    assert arms.ids.dtype == np.int64


def test_file_folder_zip_and_gzip_give_the_same_arms(tmp_path: Path) -> None:
    others = {
        "ml/README.txt": "userId, movieId and rating are explained here\n",
        "ml/tags.csv": "userId,movieId,tag,timestamp\n1,10,good,3\n",
        "ml/movies.csv": "movieId,title,genres\n10,Heat,Crime\n",
        "ml/empty.csv": "",
    }
    for name, content in others.items():
        put(tmp_path / name, content)
    file = put(tmp_path / "ml/some.csv", ratings_csv())
    archive = packed(tmp_path / "ml.zip", {**others, "ml/some.csv": ratings_csv()})
    gzipped = put(tmp_path / "some.csv.gz", gzip.compress(ratings_csv().encode()))
    expected = movielens(file, num_arms=2, seed=1)
    parent = tmp_path / "parent"
    (tmp_path / "ml").rename(parent)  # renaming a folder changes nothing either
    for path in (parent, str(parent / "some.csv"), archive, gzipped):
        arms = movielens(path, num_arms=2, seed=1)
        assert arms == expected
        assert arms.ids.tolist() == expected.ids.tolist()
    put(tmp_path / "outer/inner/some.csv", ratings_csv())
    assert movielens(tmp_path / "outer", num_arms=2, seed=1) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ml.zip",
        "outer",
        "parent",
        "some.csv.gz",
    ], "a zip is read in place"


def test_the_usual_name_decides_among_several_files_of_ratings(tmp_path: Path) -> None:
    put(tmp_path / "u1.base", ratings_joined("\t").split("\n", 1)[1])
    put(tmp_path / "u.data", ratings_joined("\t"))
    put(tmp_path / "__MACOSX/ratings.csv", "junk")
    assert by_id(movielens(tmp_path, num_arms=3)) == BY_MOVIE
    (tmp_path / "u.data").rename(tmp_path / "u2.base")
    with pytest.raises(
        ValueError, match=r"must hold one file of ratings, got 2 among: u1.base, u2"
    ):
        movielens(tmp_path, num_arms=3)
    put(tmp_path / "u.data", ratings_joined("\t"))
    put(tmp_path / "ml/ratings.csv", ratings_csv())
    with pytest.raises(ValueError, match=r"got 2 among: ml.ratings.csv, u.data. Pass one of them"):
        movielens(tmp_path, num_arms=3)


def test_the_movies_depend_only_on_the_seed_and_the_eligible_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(user, movie, 1 + (user + movie) % 5) for user in range(4) for movie in range(50, 90)]
    straight = put(tmp_path / "straight", ratings_csv(rows))
    shuffled = put(
        tmp_path / "shuffled",
        "".join(f"{u}::{m}::{r}::0\n" for u, m, r in (rows[i] for i in rng.permutation(len(rows)))),
    )
    for seed in range(3):
        one, other = (movielens(path, 7, seed) for path in (straight, shuffled))
        assert one.ids.tolist() == other.ids.tolist()
        assert (
            one.ids.tolist() == np.random.default_rng(seed).permutation(range(50, 90))[:7].tolist()
        )
        samples = zip(one.parameters()["samples"], other.parameters()["samples"], strict=True)
        assert all(Counter(left) == Counter(right) for left, right in samples)
        assert movielens(straight, 5, seed).ids.tolist() == one.ids.tolist()[:5]
    assert len({tuple(movielens(straight, 7, seed).ids.tolist()) for seed in range(3)}) == 3


def test_movies_with_too_few_ratings_are_not_eligible(tmp_path: Path) -> None:
    path = put(tmp_path / "ratings.csv", ratings_csv())
    assert set(movielens(path, 2, min_ratings=2).ids.tolist()) == {7, 10}
    assert movielens(path, 1, min_ratings=3).parameters() == {"samples": [[4.0, 5.0, 4.0]]}
    with pytest.raises(
        ValueError, match=r"`num_arms` must be at most 2, the movies with at least 2.*got 3"
    ):
        movielens(path, 3, min_ratings=2)
    header = put(tmp_path / "header.csv", "userId,movieId,rating,timestamp\n")
    with pytest.raises(ValueError, match="`num_arms` must be at most 0"):
        movielens(header, 1)


BROKEN_RATINGS: dict[str, tuple[str, str]] = {
    "empty file": ("", "ratings: the file is empty"),
    "no such column": (
        ratings_csv().replace("rating,", "score,"),
        "ratings, line 1: must have one column `rating`, got the columns userId, movieId, score",
    ),
    "column twice": (
        ratings_csv().replace("userId", "movieId"),
        "line 1: must have one column `movieId`, got the columns movieId, movieId",
    ),
    "bad number": (
        ratings_csv().replace("5.0", "five"),
        "ratings, line 4, column `rating`: must be a number from 0.5 to 5, got 'five'",
    ),
    "rating out of range": (
        ratings_csv().replace("5.0", "5.5"),
        "line 4, column `rating`: must be a number from 0.5 to 5, got '5.5'",
    ),
    "nan": (ratings_csv().replace("5.0", "nan"), "line 4, column `rating`: .* got 'nan'"),
    "infinity": (ratings_csv().replace("5.0", "inf"), "line 4, column `rating`: .* got 'inf'"),
    "underscore": (ratings_csv().replace("5.0", "0_5"), "line 4, column `rating`: .* got '0_5'"),
    "no rating": (ratings_csv().replace("5.0", ""), "line 4, column `rating`: .* got ''"),
    "bad movie": (
        ratings_csv().replace("2,10", "2,x"),
        "line 4, column `movieId`: must be an integer of 64 bits, got 'x'",
    ),
    "huge movie": (
        ratings_csv().replace("2,10", f"2,{2**63}"),
        f"line 4, column `movieId`: must be an integer of 64 bits, got '{2**63}'",
    ),
    "half a movie": (ratings_csv().replace("2,10", "2,10.5"), "line 4, column `movieId`: .*'10.5'"),
    "short row": (
        ratings_csv().replace("2,10,5.0,1147880044", "2,10,5.0"),
        r"ratings, line 4: must have 4 columns \(userId, .*\), got 3: '2,10,5.0'",
    ),
    "cut off": (ratings_csv()[:-14], "line 7: must have 4 columns .*, got 3: '4,10,4'"),
    "long row": (ratings_csv().replace("2,10,", "2,10,1,"), "line 4: must have 4 .*, got 5"),
    "short and long row": (
        ratings_csv().replace("2,10,", "10,").replace("3,2,2.0", "3,2,2.0,1"),
        "line 4: must have 4 columns .*, got 3",
    ),
    "open quote": (ratings_csv().replace("2,10,", '2,"10,'), "line 4: unexpected end of data"),
    "colons alone": (ratings_joined("::").replace("2::10::", "2:1:10::"), "line 3: must .* got 3:"),
    "five fields": ("1::2::3::4::5\n", "line 1: must have 4 columns .* separated by '::', got 5"),
    "two fields": ("1\t2\n", r"line 1: must have 4 columns .* separated by '\\t', got 2"),
    "bad number after tabs": (
        ratings_joined("\t").replace("10\t5", "10\tz"),
        "line 3, column `rating`: must be a number from 0.5 to 5, got 'z'",
    ),
    "bad first number": ("1::2::z::4\n", "line 1, column `rating`: .* got 'z'"),
    "line after a quoted one": (
        'movieId,rating,note\n1,2,"a\nb\nc"\n1,zero,d\n',
        "line 5, column `rating`: .* got 'zero'",
    ),
    "long value": (
        ratings_csv().replace("5.0", "x" * 1000),
        r"line 4, column `rating`: must be a number from 0.5 to 5, got 'x{76}\.\.\.$",
    ),
}


@pytest.mark.parametrize(("content", "message"), BROKEN_RATINGS.values(), ids=BROKEN_RATINGS.keys())
def test_a_broken_file_of_ratings_is_told_by_line_column_and_value(
    content: str, message: str, tmp_path: Path, parser: str
) -> None:
    path = put(tmp_path / "ratings", content)
    with pytest.raises(ValueError, match=message) as caught:
        movielens(path, num_arms=1)
    assert str(caught.value).startswith(str(path))


def test_the_place_in_a_zip_is_told(tmp_path: Path) -> None:
    path = packed(tmp_path / "ml.zip", {"ml/ratings.csv": ratings_csv().replace("5.0", "five")})
    with pytest.raises(
        ValueError,
        match=rf"^{re.escape(str(path))}:ml/ratings.csv, line 4, column `rating`: .*'five'",
    ):
        movielens(path)


def test_a_zip_or_folder_without_ratings_is_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path / "ml.zip", {"ml/movies.csv": "movieId,title\n"})
    with pytest.raises(
        ValueError, match=r"must hold one file .* got 0 among: ml/movies.csv\. .*http"
    ):
        movielens(archive)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="got 0 among: nothing"):
        movielens(tmp_path / "empty")
    many = packed(tmp_path / "many.zip", {f"{number}.csv": "" for number in range(1001)})
    with pytest.raises(ValueError, match="holds 1001 files; pass the file of ratings itself"):
        movielens(many)


def noisy_ratings() -> str:
    """Return a file that does not compress well, so that a cut falls into the data."""
    rng = np.random.default_rng(3)
    return ratings_csv([(u, m, 3) for u, m in rng.integers(1, 10**9, (3000, 2)).tolist()])


def test_a_damaged_gzip_or_zip_is_told(tmp_path: Path) -> None:
    whole = gzip.compress(noisy_ratings().encode())
    cut = put(tmp_path / "cut.csv.gz", whole[:-20])
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(cut))}: damaged or cut short after line"
    ):
        movielens(cut, 1)
    flipped = put(tmp_path / "sum.csv.gz", whole[:-8] + bytes(8))
    with pytest.raises(ValueError, match="damaged or cut short after line 1: CRC check failed"):
        movielens(flipped, 1)

    good = packed(tmp_path / "good.zip", {"ratings.csv": noisy_ratings()}).read_bytes()
    half = put(tmp_path / "half.zip", good[: len(good) // 2])
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(half))}: damaged or cut short: .*not a zip"
    ):
        movielens(half, 1)
    changed = bytearray(good)
    changed[len(good) // 2] ^= 255
    bad = put(tmp_path / "bad.zip", bytes(changed))
    with pytest.raises(ValueError, match=r"bad\.zip:ratings\.csv: damaged or cut short after line"):
        movielens(bad, 1)
    locked = bytearray(packed(tmp_path / "x.zip", {"ratings.csv": ratings_csv()}).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1  # the flag of encryption
    with pytest.raises(ValueError, match=r"locked.zip:ratings.csv: cannot be read: .*password"):
        movielens(put(tmp_path / "locked.zip", bytes(locked)), 1)


def test_a_million_columns_fail_early_and_small(tmp_path: Path) -> None:
    wide = put(tmp_path / "ratings.csv", "movieId,rating," + "x," * 10**6 + "x\n1,2,3\n")
    long = put(tmp_path / "row.csv", ratings_csv() + "1," * 10**6 + "\n")
    quoted = put(tmp_path / "quote.csv", ratings_csv() + '1,"' + "2\n" * 10**6)
    archive = packed(tmp_path / "ml.zip", {"ratings.csv": wide.read_text(encoding="utf-8")})
    movielens(put(tmp_path / "fine.csv", ratings_csv()), 1)  # imports what it needs
    tracemalloc.start()
    try:
        for path in (wide, archive, tmp_path):
            with pytest.raises(
                ValueError, match=r"ratings\.csv, line 1: is longer than 65,536 bytes"
            ):
                movielens(path)
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match=r"row.csv, line 8: must have 4 columns .*, got 1000001"):
        movielens(long)
    with pytest.raises(
        ValueError, match=r"quote\.csv, line 8: the record is longer than 1,048,576"
    ):
        movielens(quoted)


# --- Google's cluster ----------------------------------------------------------------------------

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
    "parquet with NaN": lambda: usage_parquet(NAN_USAGE),
    "parquet in single precision": lambda: usage_parquet(types=(pa.int32(), pa.float32())),
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


def changed(rows: Rows, row: int, machine: Any, cycles: Any) -> Rows:
    return [*rows[:row], (machine, cycles), *rows[row + 1 :]]


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


# --- Both ----------------------------------------------------------------------------------------


def test_a_missing_path_says_where_the_files_are_and_their_licences(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(FileNotFoundError) as caught:
        movielens(path)
    for part in (repr(str(path)), "https://grouplens.org/datasets/movielens/", "redistribution"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError) as caught:
        google_cluster(path)
    for part in (repr(str(path)), "https://github.com/google/cluster-data", "BigQuery", "CC-BY"):
        assert part in str(caught.value)


def test_arguments_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    calls: list[tuple[Callable[[Any], Recorded], str]] = [
        (lambda value: movielens(path, num_arms=value), "num_arms"),
        (lambda value: movielens(path, min_ratings=value), "min_ratings"),
        (lambda value: google_cluster(path, num_arms=value), "num_arms"),
        (lambda value: google_cluster(path, max_rows=value), "max_rows"),
    ]
    for call, name in calls:
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
            call(0)
        with pytest.raises(TypeError, match=f"`{name}` must be an integer, got 1.5"):
            call(1.5)
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        movielens(path, seed=-1)
    with pytest.raises(TypeError):
        movielens(3)  # type: ignore[arg-type]


def test_without_the_extra_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    path = put(tmp_path / "ratings.csv", ratings_csv())
    calls: list[Callable[[], Recorded]] = [lambda: movielens(path), datasets.synthetic_cluster]
    for call in calls:
        with pytest.raises(ImportError, match=r"polars.*pip install .*\[experiments\]"):
            call()


def test_recorded_arms_are_empirical_arms_and_play(tmp_path: Path) -> None:
    arms = movielens(put(tmp_path / "ratings.csv", ratings_csv()), num_arms=3)
    plain = Empirical([BY_MOVIE[movie] for movie in arms.ids.tolist()])
    assert isinstance(arms, Empirical)
    assert arms == plain
    assert plain == arms
    assert from_dict(json.loads(json.dumps(arms.to_dict()))) == plain
    assert arms != Empirical([[1.0], [2.0], [3.0]])
    assert repr(arms) == f"<Recorded: 3 arms, 6 rows of {tmp_path / 'ratings.csv'}>"
    assert arms.means.tolist() == [np.mean(BY_MOVIE[movie]) for movie in arms.ids.tolist()]
    copied = pickle.loads(pickle.dumps(arms))
    assert (copied == arms, copied.source, copied.rows) == (True, arms.source, 6)

    env: Any = gym.make("EgalAssign-v0", instance=arms, num_users=2, horizon=20)
    env.reset(seed=1)
    paid = [env.step([0, 1])[4]["user_rewards"].tolist() for _ in range(20)]
    for user in (0, 1):
        assert {pair[user] for pair in paid} <= set(BY_MOVIE[int(arms.ids[user])])


# --- Synthetic stand-ins -------------------------------------------------------------------------


@pytest.fixture(params=["csv", "dat", "data"])
def drawn_ratings(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Recorded]:
    folder = tmp_path / "new" / "folder"
    drawn = datasets.synthetic_movielens(
        30, seed=4, num_ratings=900, folder=folder, file_format=request.param
    )
    return folder, drawn


def test_synthetic_ratings_are_read_back_as_drawn(drawn_ratings: tuple[Path, Recorded]) -> None:
    folder, drawn = drawn_ratings
    (file,) = (path for path in folder.iterdir() if path.name != "_SYNTHETIC.txt")
    for path in (folder, file):
        read = movielens(path, 30, seed=4)
        assert read == drawn
        assert read.ids.tolist() == drawn.ids.tolist()
        assert (read.rows, read.synthetic) == (900, True)
    ratings = {rating for samples in drawn.parameters()["samples"] for rating in samples}
    whole = {1.0, 2.0, 3.0, 4.0, 5.0}
    assert ratings == whole if file.suffix != ".csv" else whole < ratings
    assert ratings <= {half / 2 for half in range(1, 11)}


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_synthetic_usage_is_read_back_as_drawn(file_format: str, tmp_path: Path) -> None:
    drawn = datasets.synthetic_cluster(
        20, seed=4, num_rows=2000, folder=tmp_path, file_format=file_format
    )
    read = google_cluster(tmp_path, 20)
    assert read == drawn
    assert read.ids.tolist() == drawn.ids.tolist()
    assert (read.rows, read.skipped, read.synthetic) == (2000, drawn.skipped, True)
    assert 0 < drawn.skipped < 100  # about 40
    counts = [len(samples) for samples in drawn.parameters()["samples"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 2000 - drawn.skipped
    assert (drawn.means < 0).all()


@pytest.mark.parametrize("make", [datasets.synthetic_movielens, datasets.synthetic_cluster])
def test_synthetic_data_are_seeded_and_labelled(
    make: Callable[..., Recorded], tmp_path: Path
) -> None:
    size = {"num_ratings" if make is datasets.synthetic_movielens else "num_rows": 60}
    one, again, other = (make(50, seed, **size) for seed in (0, 0, 1))
    assert one == again
    assert one != other
    assert one.num_arms == 50  # of 60 rows: each has at least one
    assert one.synthetic
    assert repr(one) == f"<Recorded: 50 synthetic arms, 60 rows of {make.__name__}(seed=0)>"
    make(50, folder=tmp_path, **size)
    assert "synthetic" in (tmp_path / "_SYNTHETIC.txt").read_text(encoding="utf-8")
    (name,) = (path for path in tmp_path.iterdir() if path.name != "_SYNTHETIC.txt")
    before = name.read_bytes()
    with pytest.raises(FileExistsError):
        make(50, 1, folder=tmp_path, **size)
    assert name.read_bytes() == before, "a real file is never overwritten"
    with pytest.raises(ValueError, match="must be at least 50, got 49"):
        make(50, **dict.fromkeys(size, 49))
    with pytest.raises(ValueError, match="`file_format` must be one of 'csv'"):
        make(50, **size, file_format="xls")
