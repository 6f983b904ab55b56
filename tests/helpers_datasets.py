"""Ratings of three movies as a file, and the arms that were read, by their numbers."""

from __future__ import annotations

from pathlib import Path

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.datasets import Recorded

# user, movie, rating, time; three movies with 3, 1 and 2 ratings.
RATINGS = [(1, 10, 4), (1, 7, 1), (2, 10, 5), (3, 2, 2), (3, 7, 3), (4, 10, 4)]
BY_MOVIE = {2: [2.0], 7: [1.0, 3.0], 10: [4.0, 5.0, 4.0]}


def ratings_csv(rows: list[tuple[int, int, int]] = RATINGS, end: str = "\n") -> str:
    lines = ["userId,movieId,rating,timestamp"]
    lines += [f"{user},{movie},{rating}.0,1147880044" for user, movie, rating in rows]
    return end.join(lines) + end


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def by_id(arms: Recorded) -> dict[int, list[float]]:
    """Return the samples of each movie or machine."""
    return dict(zip(arms.ids.tolist(), arms.parameters()["samples"], strict=True))
