"""The experiments of Lim, Tan, Soh on recorded rewards: movies and machines."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gym_fairbandits.datasets import Recorded
from gym_fairbandits.experiments._assignment import AssignmentExperiment
from gym_fairbandits.experiments._figures import banded, look, panels, share_legend
from gym_fairbandits.experiments.runner import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SYNTHETIC", "RecordedExperiment"]

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class RecordedExperiment(AssignmentExperiment):
    """Arms that resample what was recorded.

    The paper's bounds are for 1-subgaussian rewards, which these are not, so none is drawn.

    Attributes:
        path: The file or folder of the data set; ``"synthetic"`` for a stand-in that is drawn at
            random, and labelled so.
    """

    num_arms: int = 100
    users: tuple[int, ...] = (5, 10, 15, 20, 25)
    path: str = ""

    data_title: ClassVar[str]
    wanted: ClassVar[tuple[str, ...]] = ("path",)
    quick: ClassVar[Mapping[str, Any]] = {
        "num_arms": 50,
        "horizon": 15_000,
        "num_runs": 10,
        "path": SYNTHETIC,
    }

    def __post_init__(self) -> None:
        """Check the settings; raises ``TypeError`` or ``ValueError``."""
        super().__post_init__()
        if not isinstance(self.path, str):
            raise TypeError(f"`path` must be a string, got {self.path!r}")
        if not self.path:
            raise ValueError(
                f"`path` must be where the data set of {self.name} is, or {SYNTHETIC!r} for a "
                "stand-in drawn at random, got ''"
            )

    @abstractmethod
    def load(self) -> Recorded:
        """Return the arms."""

    def arms(self) -> Recorded:
        """Return the arms; they are read once per process."""
        return _loaded(self)

    def instance(self, law: str, num_users: int) -> Recorded:
        """Return the arms."""
        return self.arms()

    def data(self) -> dict[str, Any]:
        """Read the data; return where it is from, which arms, and a hash of their rewards."""
        _loaded.cache_clear()  # a run begins: the files may have changed
        arms = self.arms()
        content = hashlib.sha256()
        for array in arms.table:
            content.update(np.ascontiguousarray(array).tobytes())
        return {
            "source": arms.source,
            "synthetic": arms.synthetic,
            "rows": arms.rows,
            "skipped": arms.skipped,
            "ids": arms.ids.tolist(),
            "sha256": content.hexdigest(),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Draw regret over time, a line per number of users and agent."""
        kind = "SYNTHETIC data, not the real ones" if self.arms().synthetic else self.data_title
        figure, ((axis, logarithmic),) = panels(1, 2, f"{self.title}\n{kind}")
        for color, num_users in enumerate(self.users):
            for line, agent in enumerate(self.agents):
                own = self.series(rows, num_users=num_users, agent=agent)
                style = {**look(color, line), "marker": None}
                label = self.label(num_users, agent)
                banded((axis, logarithmic), own, "step", "regret", label=label, **style)
        axis.set(xlabel="steps", ylabel="regret", ylim=(0, None))
        logarithmic.set(xlabel="steps", ylabel="regret", xscale="log", yscale="log")
        share_legend(figure, [axis], columns=len(self.users))
        return figure


@lru_cache(maxsize=1)
def _loaded(experiment: RecordedExperiment) -> Recorded:
    return experiment.load()
