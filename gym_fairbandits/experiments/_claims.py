"""What the checks of the papers' claims have in common: rows of the table, sizes, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from gym_fairbandits import agents
from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.evaluation import Entry
from gym_fairbandits.experiments.runner import PRESETS

__all__ = ["Check", "ClaimRow", "Settings", "named"]

T = TypeVar("T")

VERDICTS = {  # whether it holds -> what to say
    "printed": {True: "holds", False: "fails as printed"},
    "corrected": {True: "holds as corrected", False: "fails as corrected"},
    "added": {True: "holds", False: "fails"},
}


@dataclass(frozen=True)
class ClaimRow:
    """What a claim says of some instances, and what came of playing them.

    Attributes:
        paper: ``"P"`` (Patil et al.) or ``"L"`` (Lim, Tan, Soh).
        claim: Its number there, and what of it.
        instance: What was played; of several instances and policies, the worst.
        quantity: What was measured.
        measured: Its value.
        relation: ``"<="``, ``">="`` or ``"="``: what it must be to the bound.
        bound: The bound.
        form: ``"printed"``, as the paper has it; ``"corrected"``, with its error put right;
            ``"added"``, not in the paper: an exact value, or a sharper bound.
        tolerance: The relative difference up to which numbers are equal: rounding, or the error
            of a mean over few runs.
    """

    paper: str
    claim: str
    instance: str
    quantity: str
    measured: float
    relation: str
    bound: float
    form: str = "printed"
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        """Make plain floats of both numbers: rows are written to files."""
        object.__setattr__(self, "measured", float(self.measured))
        object.__setattr__(self, "bound", float(self.bound))

    @property
    def holds(self) -> bool:
        """Whether the measured value is to the bound what it must be; never if it is NaN."""
        if math.isclose(self.measured, self.bound, rel_tol=self.tolerance, abs_tol=self.tolerance):
            return True
        if self.relation == "<=":
            return self.measured < self.bound
        return self.relation == ">=" and self.measured > self.bound

    @property
    def verdict(self) -> str:
        """``"holds"``, ``"fails as printed"``, ``"holds as corrected"``, ..."""
        return VERDICTS[self.form][self.holds]


@dataclass(frozen=True)
class Settings:
    """How much to play, and with which random numbers.

    Attributes:
        preset: ``"quick"`` or ``"paper"``.
        seed: Of the first episode of each check.
    """

    preset: str = "quick"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check both; raises ``TypeError`` or ``ValueError``."""
        checked_choice("preset", self.preset, PRESETS)
        checked_int("seed", self.seed, minimum=0)

    def pick(self, quick: T, paper: T) -> T:
        """Return the value of the preset."""
        return quick if self.preset == "quick" else paper

    def rng(self) -> np.random.Generator:
        """Return a new generator, the same for every check."""
        return np.random.default_rng(self.seed)


Check: TypeAlias = Callable[[Settings], list[ClaimRow]]


def named(name: str, **parameters: Any) -> Entry:
    """Return an agent by name, for :func:`gym_fairbandits.evaluation.evaluate`."""
    return Entry(factory=partial(agents.make, name, **parameters))
