"""Ratings read from tiny files in every format, and the error that each broken one meets."""

from __future__ import annotations

import gzip
import re
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers_datasets import BY_MOVIE, RATINGS, by_id, put, ratings_csv

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.datasets import movielens

pytest.importorskip("pyarrow")


def ratings_joined(separator: str) -> str:
    return "".join(
        separator.join(map(str, (user, movie, rating, 881250949))) + "\n"
        for user, movie, rating in RATINGS
    )


def packed(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


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
