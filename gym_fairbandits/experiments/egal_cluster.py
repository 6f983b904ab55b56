"""Machines of a cluster as arms (Lim, Tan, Soh): Google's trace of 2019."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gym_fairbandits.datasets import Recorded, google_cluster, synthetic_cluster
from gym_fairbandits.experiments._recorded import SYNTHETIC, RecordedExperiment

__all__ = ["EgalCluster"]


@dataclass(frozen=True)
class EgalCluster(RecordedExperiment):
    """Arms are the busiest machines, a reward is minus the cycles per instruction of a task."""

    name: ClassVar[str] = "egal-cluster"
    title: ClassVar[str] = "Regret over time, machines of a cluster (L)"
    data_title: ClassVar[str] = "Google's cluster trace, 2019"

    def load(self) -> Recorded:
        """Return the busiest machines."""
        if self.path == SYNTHETIC:
            return synthetic_cluster(self.num_arms, self.seed)
        return google_cluster(self.path, self.num_arms)
