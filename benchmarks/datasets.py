"""Measure how a ratings file of MovieLens' size is read, and compare with the bars.

    python benchmarks/datasets.py [--rows 25000000]

The file is synthetic, about 650 MB in a temporary folder, and deleted at the end. Each reading runs
in a fresh process, so that its peak memory is its own. The bar of time is one of CPU time, of all
threads together: on a machine with nothing else to do, reading takes no longer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tqdm import tqdm

from gym_fairbandits.datasets import _synthetic, movielens

ROWS = 25_000_000
MOVIES = 60_000
AT_ONCE = 1_000_000  # rows drawn at a time
MOST_SECONDS = 20.0
MOST_BYTES = 2e9
BYTES_PER_ROW = 30


def write_ratings(path: Path, rows: int) -> None:
    """Write a file of synthetic ratings, in blocks with the same movies in each."""
    with path.open("wb") as file:
        for start in tqdm(range(0, rows, AT_ONCE), desc="writing"):
            table = _synthetic.ratings(MOVIES, min(AT_ONCE, rows - start), seed=0)
            table.write_csv(file, include_header=start == 0)


def measured(path: Path) -> tuple[float, float, float, int]:
    """Return the seconds, CPU seconds and peak bytes of reading, in this process, and the rows."""
    start, busy = time.perf_counter(), time.process_time()
    rows = movielens(path).rows
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, rows


def main() -> None:
    """Write the file, read it and its zip, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help="ratings in the file")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        needed = 2 * BYTES_PER_ROW * rows
        if shutil.disk_usage(folder).free < needed:
            sys.exit(f"{folder} must have {needed / 1e9:.1f} GB free")
        plain, packed = Path(folder, "ratings.csv"), Path(folder, "ratings.zip")
        write_ratings(plain, rows)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(plain, "ml/ratings.csv")
        print("| file | ratings | seconds | CPU seconds | peak GB | bars |")
        print("|---|---|---|---|---|---|")
        for path in (plain, packed):
            # Spawned, not forked: a fork starts with this process's memory.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, busy, peak, found = pool.apply(measured, (path,))
            held = busy < MOST_SECONDS and peak < MOST_BYTES and found == rows
            bars = f"{'held' if held else 'MISSED'} ({MOST_SECONDS:g} s, {MOST_BYTES / 1e9:g} GB)"
            numbers = f"{seconds:.1f} | {busy:.1f} | {peak / 1e9:.2f}"
            print(f"| {path.name} | {found} | {numbers} | {bars} |")


if __name__ == "__main__":
    main()
