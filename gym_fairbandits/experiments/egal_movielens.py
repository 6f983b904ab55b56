"""Ratings of movies as rewards (Lim, Tan, Soh): random movies of MovieLens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gym_fairbandits.datasets import Recorded, movielens, synthetic_movielens
from gym_fairbandits.experiments._recorded import SYNTHETIC, RecordedExperiment

__all__ = ["EgalMovielens"]


@dataclass(frozen=True)
class EgalMovielens(RecordedExperiment):
    """Arms are random movies, a reward is one of the movie's ratings, 0.5 to 5 stars."""

    num_arms: int = 500
    users: tuple[int, ...] = (10, 20, 30, 40, 50)

    name: ClassVar[str] = "egal-movielens"
    title: ClassVar[str] = "Regret over time, ratings of movies (L)"
    data_title: ClassVar[str] = "MovieLens"
    quick: ClassVar[Mapping[str, Any]] = {**RecordedExperiment.quick, "num_arms": 100}

    def load(self) -> Recorded:
        """Return the movies, chosen by the seed."""
        if self.path == SYNTHETIC:
            return synthetic_movielens(self.num_arms, self.seed)
        return movielens(self.path, self.num_arms, self.seed)
