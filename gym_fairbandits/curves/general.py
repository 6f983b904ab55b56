"""Families of rested arms that may rise and fall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_row
from gym_fairbandits.curves.base import LAST_PULL, TOLERANCE, Curve

__all__ = ["Tabulated"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tabulated(Curve):
    """A table of rewards; flat after the last.

    Attributes:
        values: The rewards of pulls 1, 2, ...; at least one finite number.
    """

    values: tuple[float, ...]
    family: ClassVar[str] = "tabulated"

    def __post_init__(self) -> None:
        """Check the table; raises ``TypeError`` or ``ValueError``."""
        table = checked_row("values", self.values)
        object.__setattr__(self, "values", tuple(table.tolist()))
        # Extended precision where the platform has it: a running sum of 10^6 values must stay
        # exact to 1e-11.
        sums = np.cumsum(table, dtype=np.longdouble).astype(np.float64)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_sums", np.concatenate(([0.0], sums)))
        falls = np.flatnonzero(table < np.maximum.accumulate(table) - TOLERANCE)
        object.__setattr__(self, "_first_fall", int(falls[0]) + 1 if falls.size else LAST_PULL)

    _table: ClassVar[Floats]  # set per instance above; not part of the dataclass's fields
    _sums: ClassVar[Floats]
    _first_fall: ClassVar[int]

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the last value of the table."""
        return self.values[-1]

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        places = np.minimum(pulls, len(self.values)).astype(np.int64) - 1
        values: Floats = self._table.take(places)
        return values

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        inside = np.minimum(pulls, len(self.values))
        beyond = (pulls - inside) * self._table[-1]
        sums: Floats = self._sums.take(inside.astype(np.int64)) + beyond
        return sums

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether the table does not fall within the first ``pulls`` entries."""
        return pulls < self._first_fall
