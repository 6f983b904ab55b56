"""Data sets: arguments, licences, the arms that they become, and synthetic stand-ins."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_datasets import BY_MOVIE, put, ratings_csv

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import datasets
from gym_fairbandits.arms import Empirical, from_dict
from gym_fairbandits.datasets import Recorded, google_cluster, movielens

pytest.importorskip("pyarrow")


# --- Both -----------------------------------------------------------------------------------------


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


# --- Synthetic stand-ins --------------------------------------------------------------------------


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


def zipped(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder.with_name("packed")), "zip", folder.parent))


def linked(folder: Path) -> Path:
    (file,) = (path for path in folder.iterdir() if path.name != "_SYNTHETIC.txt")
    link = folder.with_name("elsewhere") / file.name
    link.parent.mkdir()
    link.symlink_to(file)
    return link


@pytest.mark.parametrize("reached", [lambda folder: folder.parent, zipped, linked])
def test_synthetic_ratings_are_labelled_however_they_are_reached(
    reached: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "download" / "ml-25m"
    drawn = datasets.synthetic_movielens(10, 0, num_ratings=500, folder=folder)
    read = movielens(reached(folder), 10)
    assert read == drawn
    assert read.synthetic


def test_a_label_beside_other_files_says_nothing_of_real_ones(tmp_path: Path) -> None:
    datasets.synthetic_movielens(10, 0, num_ratings=500, folder=tmp_path / "ml" / "drawn")
    real = put(tmp_path / "ml" / "real" / "ratings.csv", ratings_csv())
    assert not movielens(real, 2).synthetic
    assert not movielens(tmp_path / "ml" / "real", 2).synthetic


def test_synthetic_usage_is_labelled_in_a_folder_of_links(tmp_path: Path) -> None:
    datasets.synthetic_cluster(10, 0, num_rows=500, folder=tmp_path / "drawn")
    link = linked(tmp_path / "drawn")
    assert google_cluster(link.parent, 10).synthetic
    assert google_cluster(link, 10).synthetic


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
