"""The experiments of Lim, Tan, Soh on arms of two levels: as many good ones as users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gym_fairbandits.bounds import assignment_gaps, egal_gap_regret, egal_regret
from gym_fairbandits.experiments._assignment import AssignmentExperiment
from gym_fairbandits.instances import two_level

__all__ = ["TwoLevelExperiment"]


@dataclass(frozen=True)
class TwoLevelExperiment(AssignmentExperiment):
    """Bernoulli arms of mean 0.8 (as many as users) and 0.5 (the rest); regret at the end.

    The bound is the lower one of Theorems 1 and 2. mu* / U does not depend on U.
    """

    num_checkpoints: int = 1

    bound_label: ClassVar[str] = "EgalUCB, minimum of Theorems 1 and 2"

    def instance(self, law: str, num_users: int) -> Any:
        """Return the arms of two levels."""
        return two_level(num_users, self.num_arms)

    def bound(self, num_users: int, steps: int) -> float:
        """Return the lower one of Theorems 1 and 2."""
        gaps = assignment_gaps(self.instance("", num_users).means, num_users)
        sizes = (self.num_arms, num_users, steps)
        return min(egal_gap_regret(*sizes, *gaps), egal_regret(*sizes))
