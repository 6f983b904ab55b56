"""Exponential weights, for rewards that follow no law at all.

They minimise *external* regret: what they earn is compared with the best arm on the rewards as
they come. That an arm changes *because* it is pulled is outside their model, and none of them has
a guarantee on the policy regret of improving arms.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int

from ._tuned import TunedAgent
from .base import Observation

__all__ = ["Exp3", "Rexp3", "exp3_gamma", "exp3_probabilities"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def exp3_gamma(num_arms: int, steps: Floats | Ints) -> Floats:
    """Return ``min(1, sqrt(K ln K / ((e - 1) T)))``, Exp3's mixing for T steps, elementwise."""
    return np.minimum(1.0, np.sqrt(num_arms * math.log(num_arms) / ((math.e - 1) * steps)))


def exp3_probabilities(log_weights: Floats, gamma: Floats) -> Floats:
    """Return ``(1 - gamma) w_i / sum(w) + gamma / K``.

    Args:
        log_weights: ln w; float64 array of shape ``(n, num_arms)``.
        gamma: float64 array of shape ``(n,)``.
    """
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    mixing = gamma[:, None]
    probabilities: Floats = (1 - mixing) * shares + mixing / log_weights.shape[1]
    return probabilities


class Exp3(TunedAgent):
    """Exp3 of Auer, Cesa-Bianchi, Freund, Schapire (2002): exponential weights, for any rewards.

    Draws arm i with probability ``p_i = (1 - gamma) w_i / sum(w) + gamma / K``; when it pays x, its
    weight is multiplied by ``exp(gamma x / (p_i K))``, all weights beginning at 1. Weights are kept
    as logarithms, so that none overflows. O(K) per step.

    Guarantee (their Corollary 3.2): for any rewards in [0, 1], external regret at most
    2.63 sqrt(T K ln K) in expectation; rewards outside are taken as they are, without guarantee. On
    improving arms there is none on policy regret.

    Attributes:
        gamma: Share of uniform exploration, in (0, 1]; ``None`` for
            ``min(1, sqrt(K ln K / ((e - 1) T)))``, as the corollary has it.
        horizon: T where ``remaining`` is not observed; not read if ``gamma`` is given.
    """

    def __init__(self, gamma: float | None = None, horizon: int | None = None) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule. When it acts: if neither ``gamma`` nor
                ``horizon`` is given and ``remaining`` is not observed.
        """
        super().__init__(horizon, gamma is not None)
        self.gamma = None if gamma is None else checked_float("gamma", gamma, above=0, at_most=1)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._log_weights: Floats = np.zeros((rows, num_arms))
        self._gamma: Floats = np.zeros(rows)

    def _clear(self, rows: Ints) -> None:
        self._log_weights[rows] = 0
        self._tune(rows, self._lengths)

    def _tune(self, rows: Ints, lengths: Ints) -> None:
        """Set gamma in ``rows``; ``lengths`` has an entry per row of the batch if it is read."""
        tuned = self.gamma
        num_arms = self._log_weights.shape[1]
        self._gamma[rows] = exp3_gamma(num_arms, lengths[rows]) if tuned is None else tuned

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        probabilities = exp3_probabilities(self._log_weights[rows], self._gamma[rows])
        estimates = rewards / probabilities[np.arange(len(rows)), arms]
        num_arms = self._log_weights.shape[1]
        self._log_weights[rows, arms] += self._gamma[rows] * estimates / num_arms

    def _choose(self, observation: Observation) -> Ints:
        below = exp3_probabilities(self._log_weights, self._gamma).cumsum(axis=1)[:, :-1]
        drawn: Ints = (self._uniforms(len(below), 1) >= below).sum(axis=1)
        return drawn


class Rexp3(Exp3):
    """Rexp3 of Besbes, Gur, Zeevi (2014): Exp3 that starts afresh after every batch of steps.

    Batches have ``D = ceil((K ln K)^(1/3) (T / V)^(2/3))`` steps, V bounding how far the means may
    move in all; gamma is Exp3's for D steps. Knows T and V. O(K) per step.

    Guarantee (their Theorem 2): against the best arm of *every step*, external regret
    O((K ln K V)^(1/3) T^(2/3)), if means move by at most V in sum of their largest changes. On
    improving arms there is none on policy regret.

    Attributes:
        variation: V.
        batch: D; ``None`` for the formula.
        gamma: Share of uniform exploration, in (0, 1]; ``None`` for Exp3's for D steps.
        horizon: T where ``remaining`` is not observed; not read if ``batch`` is given.
    """

    def __init__(
        self,
        variation: float = 2.0,
        batch: int | None = None,
        gamma: float | None = None,
        horizon: int | None = None,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule. When it acts: if neither ``batch`` nor
                ``horizon`` is given and ``remaining`` is not observed.
        """
        super().__init__(gamma, horizon)
        self.variation = checked_float("variation", variation, above=0)
        self.batch = None if batch is None else checked_int("batch", batch)
        self._is_given = batch is not None

    def _allocate(self, rows: int, num_arms: int) -> None:
        super()._allocate(rows, num_arms)
        self._batches: Ints = np.ones(rows, dtype=np.int64)  # D per row
        self._learned: Ints = np.zeros(rows, dtype=np.int64)

    def _tune(self, rows: Ints, lengths: Ints) -> None:
        self._learned[rows] = 0
        if self.batch is not None:
            self._batches[rows] = self.batch
        else:
            num_arms = self._log_weights.shape[1]
            scale = (num_arms * math.log(num_arms)) ** (1 / 3)
            sizes = np.ceil(scale * (lengths[rows] / self.variation) ** (2 / 3))
            self._batches[rows] = np.maximum(sizes, 1).astype(np.int64)
        super()._tune(rows, self._batches)

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        super()._learn(rows, arms, rewards)
        self._learned[rows] += 1
        self._log_weights[rows[self._learned[rows] % self._batches[rows] == 0]] = 0
