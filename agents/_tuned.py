"""Agents of which a parameter follows from the length of the episode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Observation, checked_horizon, total_steps
from .history import HistoryAgent

__all__ = ["TunedAgent"]

Ints = NDArray[np.int64]


class TunedAgent(HistoryAgent):
    """Sets its parameter by T, the length of the episode, unless it was given.

    Attributes:
        horizon: T where ``remaining`` is not observed; not read if the parameter is given.
    """

    def __init__(self, horizon: int | None, is_given: bool) -> None:
        """Create the agent; ``is_given`` says whether it has its parameter already."""
        super().__init__()
        self.horizon = checked_horizon(horizon)
        self._is_given = is_given
        self._lengths: Ints = np.zeros(0, dtype=np.int64)  # T per row, if it is needed

    def _act(self, observation: Observation) -> Ints:
        if not self._is_given:
            steps = observation["pulls"].sum(axis=1)
            self._lengths = total_steps(observation, steps, self.horizon)
        return super()._act(observation)
