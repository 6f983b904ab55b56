"""Agents that must remember more of the past than an observation carries."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from .base import Agent, Observation

__all__ = ["HistoryAgent", "RewardLog"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class HistoryAgent(Agent):
    """Learns from every pull of a single-arm bandit, in order, and keeps what it likes per row.

    What was pulled since the last observation is the difference of ``pulls``, what it paid is
    ``last_reward``. Asked twice on one observation, the agent learns nothing new. An episode is
    new when nothing has been pulled yet, or an arm has fewer pulls than before. If the agent joins
    an episode late it knows nothing of the pulls before; if it misses observations, the pulls in
    between count in the order of the arms, each with the arm's mean reward of that time.

    Subclasses write :meth:`_allocate`, :meth:`_clear`, :meth:`_learn` and :meth:`_choose`.
    """

    def __init__(self) -> None:
        """Create the agent, ready to play."""
        super().__init__()
        self._pulls: Ints = np.zeros((0, 0), dtype=np.int64)  # as last seen
        self._reward_sum: Floats = np.zeros((0, 0))
        self._fresh: Bools = np.zeros(0, dtype=np.bool_)  # rows that must be cleared

    @abstractmethod
    def _allocate(self, rows: int, num_arms: int) -> None:
        """Make room for what is remembered of ``rows`` rows; they are cleared next."""

    @abstractmethod
    def _clear(self, rows: Ints) -> None:
        """Forget what is remembered of ``rows``; int64 array of row numbers."""

    @abstractmethod
    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        """Learn that ``arms[i]`` was pulled in row ``rows[i]`` and paid ``rewards[i]``.

        Args:
            rows: Distinct row numbers; int64 array of shape ``(n,)``.
            arms: int64 array of shape ``(n,)``.
            rewards: float64 array of shape ``(n,)``.
        """

    @abstractmethod
    def _choose(self, observation: Observation) -> Ints:
        """Return the arms of a batch, everything up to ``observation`` being learned."""

    def _act(self, observation: Observation) -> Ints:
        pulls, reward_sum = observation["pulls"], observation["reward_sum"]
        if self._pulls.shape != pulls.shape:
            self._allocate(*pulls.shape)
            self._fresh = np.ones(len(pulls), dtype=np.bool_)
            self._pulls, self._reward_sum = np.zeros_like(pulls), np.zeros_like(reward_sum)
        played = pulls.sum(axis=1)
        started = self._pulls.any(axis=1) & ((played == 0) | (pulls < self._pulls).any(axis=1))
        new = np.flatnonzero(self._fresh | started)
        if len(new):
            self._clear(new)
            self._fresh[new] = False
            self._pulls[new], self._reward_sum[new] = pulls[new], reward_sum[new]
        self._learn_differences(observation)
        self._pulls, self._reward_sum = pulls.copy(), reward_sum.copy()
        return self._choose(observation)

    def _learn_differences(self, observation: Observation) -> None:
        reward_sum = observation["reward_sum"]
        added = observation["pulls"] - self._pulls
        count = added.sum(axis=1)
        rows = np.flatnonzero(count == 1)
        if len(rows):
            arms = added[rows].argmax(axis=1)
            self._learn(rows, arms, observation["last_reward"][rows, arms])
        for row in np.flatnonzero(count > 1).tolist():
            for arm in np.flatnonzero(added[row]).tolist():
                times = int(added[row, arm])
                mean = (reward_sum[row, arm] - self._reward_sum[row, arm]) / times
                for _ in range(times):
                    self._learn(np.array([row]), np.array([arm]), np.array([mean]))

    def _forget(self, mask: Bools | None) -> None:
        if mask is None or len(mask) == len(self._fresh):
            self._fresh[slice(None) if mask is None else mask] = True


class RewardLog:
    """The rewards of every arm in the order of its pulls, row by row; it grows as needed.

    Attributes:
        counts: Rewards kept per row and arm; int64 array of shape ``(rows, num_arms)``.
    """

    def __init__(self, rows: int, num_arms: int) -> None:
        """Create an empty log."""
        self.counts: Ints = np.zeros((rows, num_arms), dtype=np.int64)
        self._rewards: Floats = np.zeros((rows, num_arms, 16))

    def clear(self, rows: Ints) -> None:
        """Forget the rewards of ``rows``."""
        self.counts[rows] = 0

    def append(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        """Add one reward each to ``arms[i]`` of the distinct rows ``rows[i]``."""
        places = self.counts[rows, arms]
        if places.max() >= self._rewards.shape[2]:
            self._rewards = np.concatenate((self._rewards, np.zeros_like(self._rewards)), axis=2)
        self._rewards[rows, arms, places] = rewards
        self.counts[rows, arms] = places + 1

    def at(self, rows: Ints, arms: Ints, numbers: Ints) -> Floats:
        """Return the reward number ``numbers[i]``, from 1, of ``arms[i]`` in row ``rows[i]``."""
        rewards: Floats = self._rewards[rows, arms, numbers - 1]
        return rewards

    def of(self, row: int, arm: int) -> Floats:
        """Return all rewards of one arm, the first one first."""
        return self._rewards[row, arm, : self.counts[row, arm]].copy()
