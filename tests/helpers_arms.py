"""A user's own law and laws of every kind for the tests of arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_names import Floats, Ints
from numpy.typing import ArrayLike

from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian


class Fading(Arms):
    """A user's own law: the mean, less with every step and every pull, plus the draw."""

    family = "test_fading"
    noise = "random"

    def __init__(self, means: ArrayLike) -> None:
        self.means = np.array(means, dtype=np.float64)

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        played = np.take_along_axis(pulls, arms, axis=-1)
        paid: Floats = self.means[arms] + draws - np.asarray(step)[..., None] / 64 - played / 1024
        return paid

    def parameters(self) -> dict[str, Any]:
        return {"means": self.means.tolist()}


LAWS: list[Arms] = [
    Bernoulli([0.0, 0.25, 0.5, 1.0]),
    Gaussian([0.25, -3.0, 0.0, 1e6], [1.0, 0.5, 0.0, 2.0]),
    Gaussian([0.5, 0.75, 1.0, 0.0], 0.0),
    Empirical([[1, 2, 3, 4], [5], [-0.5, 0.5], [0.1] * 7]),
    Fading([0.1, 0.2, 0.3, 0.4]),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=str)
