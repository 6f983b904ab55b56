"""Tables of the shape of the real data sets, drawn at random, and files of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LABEL", "RATINGS_FILES", "USAGE_FILES", "ratings", "usage", "write"]

Ints = NDArray[np.int64]

# Loaders pass over names that begin with an underscore, except to see what is synthetic.
LABEL = "_SYNTHETIC.txt"


def ratings(num_movies: int, num_ratings: int, seed: int, whole: bool = False) -> pl.DataFrame:
    """Return random ratings: few movies are rated often, and movies differ in quality.

    Args:
        num_movies: Each has at least one rating.
        num_ratings: The rows, at least ``num_movies``.
        seed: The same seed, the same table.
        whole: Whether ratings are whole stars from 1, as in the old data sets, instead of halves.

    Returns:
        The columns ``userId``, ``movieId``, ``rating``, ``timestamp`` of MovieLens.
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    ids = np.sort(rng.permutation(4 * num_movies)[:num_movies]) + 1
    popularity = rng.permutation(1 / (10 + np.arange(num_movies)))
    movies = _covering(rng, popularity, num_ratings)
    quality = rng.normal(3.4, 0.5, num_movies)
    wanted = quality[movies] + rng.normal(size=num_ratings)
    stars = np.clip(np.rint(wanted), 1, 5) if whole else np.clip(np.rint(2 * wanted) / 2, 0.5, 5)
    return pl.DataFrame(
        {
            "userId": np.sort(rng.integers(1, 2 + num_ratings // 150, num_ratings)),
            "movieId": ids[movies],
            "rating": stars,
            "timestamp": rng.integers(789_652_009, 1_574_327_703, num_ratings),
        }
    )


def usage(num_machines: int, num_rows: int, seed: int) -> pl.DataFrame:
    """Return random rows of ``InstanceUsage``: machines differ in speed and in number of rows.

    Args:
        num_machines: Each has at least one complete row.
        num_rows: The rows, at least ``num_machines``; of the others, one in fifty lacks its value.
        seed: The same seed, the same table.

    Returns:
        Some of the trace's columns, ``machine_id`` and ``cycles_per_instruction`` among them.
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    ids = rng.permutation(10 * num_machines)[:num_machines] + 10**11
    machines = _covering(rng, rng.gamma(4.0, size=num_machines), num_rows)
    speed = rng.lognormal(0.3, 0.3, num_machines)
    cycles = speed[machines] * rng.lognormal(0.0, 0.4, num_rows)
    first = np.zeros(num_rows, dtype=np.bool_)
    first[np.unique(machines, return_index=True)[1]] = True
    lacking = (rng.random(num_rows) < 0.02) & ~first
    starts = 300_000_000 * (1 + np.arange(num_rows) // num_machines)
    return pl.DataFrame(
        {
            "start_time": starts,
            "end_time": starts + 300_000_000,
            "collection_id": rng.integers(10**9, 10**11, num_rows),
            "instance_index": rng.integers(0, 1000, num_rows),
            "machine_id": ids[machines],
            "cycles_per_instruction": pl.Series(cycles).set(pl.Series(lacking), None),
            "sample_rate": np.ones(num_rows),
        }
    )


def _covering(rng: np.random.Generator, weights: NDArray[np.float64], size: int) -> Ints:
    """Return draws by weight in which each index occurs, in random order."""
    number = len(weights)
    drawn = rng.choice(number, size - number, p=weights / weights.sum())
    return rng.permutation(np.concatenate([np.arange(number), drawn]))


# --- Files ---------------------------------------------------------------------------------------


def _joined(separator: str) -> Callable[[pl.DataFrame, IO[bytes]], None]:
    """Return a writer of whole-star ratings without a header."""

    def put(table: pl.DataFrame, file: IO[bytes]) -> None:
        for row in table.iter_rows():
            file.write((separator.join(str(int(number)) for number in row) + "\n").encode())

    return put


def _json(table: pl.DataFrame, file: IO[bytes]) -> None:
    import polars as pl

    # BigQuery exports 64-bit integers as texts.
    table.with_columns(pl.col(pl.Int64).cast(pl.String)).write_ndjson(file)


Writers = dict[str, tuple[str, Callable[["pl.DataFrame", IO[bytes]], None]]]

# By format: the usual name of a file, and what writes it.
RATINGS_FILES: Writers = {
    "csv": ("ratings.csv", lambda table, file: table.write_csv(file)),
    "dat": ("ratings.dat", _joined("::")),
    "data": ("u.data", _joined("\t")),
}
USAGE_FILES: Writers = {
    "csv": ("instance_usage-000000000000.csv", lambda table, file: table.write_csv(file)),
    "json": ("instance_usage-000000000000.json", _json),
    "parquet": (
        "instance_usage-000000000000.parquet",
        lambda table, file: table.write_parquet(file),
    ),
}


def write(folder: Path, table: pl.DataFrame, files: Writers, file_format: str) -> None:
    """Write a table and the label into a folder, which is made if need be.

    Raises:
        FileExistsError: If there is such a file: it could be the real one.
    """
    name, put = files[file_format]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("xb") as file:  # first: real files get no label
        (folder / LABEL).write_text(
            "The data in this folder are synthetic: drawn at random by gym_fairbandits, recorded "
            "nowhere.\n",
            encoding="utf-8",
        )
        put(table, file)
