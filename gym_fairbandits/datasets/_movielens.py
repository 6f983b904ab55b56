"""MovieLens: movies as arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.datasets import _synthetic
from gym_fairbandits.datasets._fields import Chunk, Fields, chunks
from gym_fairbandits.datasets._recorded import (
    PathLike,
    Recorded,
    Table,
    check_extra,
    drawn_table,
    existing,
    is_synthetic,
)
from gym_fairbandits.datasets._records import Layout, csv_layout, delimited_blocks
from gym_fairbandits.datasets._streams import Stream, open_member, open_path, opened_zip

__all__ = ["movielens", "synthetic_movielens"]

Opened: TypeAlias = AbstractContextManager[Stream]

_FIELDS = Fields("movieId", "rating", low=0.5, high=5)
_SOURCE = (
    "MovieLens data sets (ml-32m, ml-25m, ml-1m, ml-100k) are at "
    "https://grouplens.org/datasets/movielens/. Their licence, in each README, allows research "
    "with acknowledgement; commercial use and redistribution need permission: so they are neither "
    "shipped nor downloaded"
)
_USUAL_NAMES = tuple(name for name, _ in _synthetic.RATINGS_FILES.values())
_MOST_FILES = 1000


def movielens(path: PathLike, num_arms: int = 500, seed: int = 0, min_ratings: int = 1) -> Recorded:
    """Return random movies as arms; a reward is one of the movie's ratings, 0.5 to 5 stars.

    The format is told by the content: a CSV file with the columns ``movieId`` and ``rating``
    (ml-25m, ml-32m), or four columns user, movie, rating, time without a header, separated by
    ``::`` (ml-1m, ml-10m) or tabs (ml-100k). Any may be gzipped.

    Args:
        path: The file of ratings, or a folder or zip file with it, as downloaded (read in place).
            Where several files hold ratings, the one with its usual name counts.
        num_arms: How many movies. L takes 500.
        seed: Which movies: the first ``num_arms`` of a permutation that depends on nothing but
            the seed and the set of eligible movies, so fewer arms are a part of more.
        min_ratings: A movie is eligible with at least so many ratings.

    Returns:
        The movies in drawn order, each with its ratings in the file's order.

    Raises:
        FileNotFoundError: If there is no such path; says where the data sets are.
        ImportError: If the extra ``experiments`` is not installed.
        TypeError: If an argument is of a wrong type.
        ValueError: If a file is damaged, empty, in no known format, or holds a bad value (names
            file, line, column and value), or fewer than ``num_arms`` movies are eligible.
    """
    checked_int("num_arms", num_arms)
    checked_int("seed", seed, minimum=0)
    checked_int("min_ratings", min_ratings)
    place = existing(path, _SOURCE)
    with _opened_ratings(place) as (stream, synthetic):
        table = Table(_ratings(stream), str(place), synthetic)
    return _random_movies(table, num_arms, seed, min_ratings)


def synthetic_movielens(
    num_arms: int = 500,
    seed: int = 0,
    *,
    num_ratings: int = 100_000,
    folder: PathLike | None = None,
    file_format: str = "csv",
) -> Recorded:
    """Return arms as of :func:`movielens`, from ratings that are drawn at random: no real data.

    Few movies are rated often, most seldom, and movies differ in quality.

    Args:
        num_arms: How many movies; all of them are arms.
        seed: The ratings, and the order of the movies.
        num_ratings: How many ratings; at least ``num_arms``.
        folder: Where to write the file too, with a file that labels it as synthetic:
            ``movielens(folder, num_arms, seed)`` then returns the same arms.
        file_format: ``"csv"``, or, with whole stars only, ``"dat"`` or ``"data"``.

    Raises:
        FileExistsError: If the folder holds such a file; nothing is overwritten.
        ImportError: If the extra ``experiments`` is not installed.
        TypeError: If an argument is of a wrong type.
        ValueError: If a number is too small or the format unknown.
    """
    checked_int("num_arms", num_arms)
    checked_int("seed", seed, minimum=0)
    checked_int("num_ratings", num_ratings, minimum=num_arms)
    checked_choice("file_format", file_format, list(_synthetic.RATINGS_FILES))
    check_extra()
    drawn = _synthetic.ratings(num_arms, num_ratings, seed, whole=file_format != "csv")
    if folder is not None:
        _synthetic.write(Path(folder), drawn, _synthetic.RATINGS_FILES, file_format)
    table = drawn_table(drawn, _FIELDS, f"synthetic_movielens(seed={seed})")
    return _random_movies(table, num_arms, seed, 1)


def _random_movies(table: Table, num_arms: int, seed: int, min_ratings: int) -> Recorded:
    counted = table.counted()
    eligible = counted["id"].to_numpy()[counted["rows"].to_numpy() >= min_ratings]
    if not len(eligible) >= num_arms:
        raise ValueError(
            f"`num_arms` must be at most {len(eligible)}, the movies with at least {min_ratings} "
            f"ratings in {table.source}, got {num_arms}"
        )
    return table.recorded(np.random.default_rng(seed).permutation(eligible)[:num_arms])


@contextmanager
def _opened_ratings(path: Path) -> Iterator[tuple[Stream, bool]]:
    """Open a file, or the file of ratings in a folder or zip; say whether they are synthetic."""
    if path.is_dir():
        files = [*path.glob("*"), *path.glob("*/*")]
        names = {str(file.relative_to(path)): file for file in files if file.is_file()}
        chosen = names[_the_ratings(str(path), list(names), lambda name: open_path(names[name]))]
        with open_path(chosen) as stream:
            yield stream, is_synthetic(path, chosen)
        return
    with open_path(path) as stream:
        if stream.magic() != b"PK\x03\x04":
            yield stream, is_synthetic(path)
            return
    with opened_zip(path) as archive:
        members = [info.filename for info in archive.infolist() if not info.is_dir()]
        member = _the_ratings(str(path), members, lambda name: open_member(archive, name))
        labelled = any(Path(name).name == _synthetic.LABEL for name in members)
        with open_member(archive, member) as stream:
            yield stream, labelled or is_synthetic(path)


def _ratings(stream: Stream) -> Iterator[Chunk]:
    first_line = stream.first_line()
    layout = _ratings_layout(stream.name, first_line)
    return chunks(delimited_blocks(stream, first_line, layout, _FIELDS), _FIELDS)


def _ratings_layout(name: str, first_line: bytes) -> Layout:
    """Return the layout of a file of ratings; raises ``ValueError`` if it is none."""
    for separator in ("::", "\t"):
        number = first_line.count(separator.encode()) + 1
        if number == 4:
            return Layout(separator, ("userId", "movieId", "rating", "timestamp"))
        if number > 1:
            raise ValueError(
                f"{name}, line 1: must have 4 columns (user, movie, rating, time) separated by "
                f"{separator!r}, got {number}"
            )
    return csv_layout(name, first_line, _FIELDS)


def _the_ratings(where: str, names: list[str], opened: Callable[[str], Opened]) -> str:
    """Return the name of the file of ratings among others.

    A file with a usual name is taken even if it is broken, so that the error is about it.
    """
    visible = sorted(
        name for name in names if not any(part[:1] in "._" for part in Path(name).parts)
    )
    usual = [name for name in visible if Path(name).name in _USUAL_NAMES]
    if len(usual) == 1:
        return usual[0]
    if len(visible) > _MOST_FILES:
        raise ValueError(f"{where}: holds {len(visible)} files; pass the file of ratings itself")
    found = usual or [name for name in visible if _holds_ratings(name, opened)]
    if len(found) != 1:
        listed = ", ".join(found or visible[:10]) or "nothing"
        raise ValueError(
            f"{where}: must hold one file of ratings, got {len(found)} among: {listed}. "
            + ("Pass one of them" if found else _SOURCE)
        )
    return found[0]


def _holds_ratings(name: str, opened: Callable[[str], Opened]) -> bool:
    try:
        with opened(name) as stream:
            _ratings_layout(name, stream.first_line())
    except ValueError:
        return False
    return True
