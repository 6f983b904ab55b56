"""Draws from the posteriors of Thompson sampling, each row from its own generator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["bernoulli_coins", "sample_beta", "sample_gaussian"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def bernoulli_coins(generators: Sequence[np.random.Generator], rewards: Floats) -> Floats:
    """Return 1 with probability x, else 0, for each reward x.

    So a reward in [0, 1] becomes a Bernoulli one of the same mean, and Beta posteriors apply
    (Agrawal and Goyal 2012, Algorithm 2). A reward of 0 or 1 stays what it is. Rewards outside
    [0, 1], which noise can make, count as the nearer end.

    Args:
        generators: One per row; each makes as many uniform numbers as its row has rewards.
        rewards: float64 array of shape ``(n, ...)``.
    """
    coins = np.empty(rewards.shape)
    for row, generator in enumerate(generators):
        coins[row] = generator.random(rewards.shape[1:]) < rewards[row]
    return coins


def sample_beta(
    generators: Sequence[np.random.Generator], successes: Floats, failures: Floats
) -> Floats:
    """Return a draw from ``Beta(1 + successes, 1 + failures)``: the prior is uniform.

    Args:
        generators: One per row.
        successes: At least 0; float64 array of shape ``(n, num_arms)``.
        failures: Likewise.
    """
    drawn = np.empty(successes.shape)
    alpha, beta = 1 + successes, 1 + failures
    for row, generator in enumerate(generators):
        drawn[row] = generator.beta(alpha[row], beta[row])
    return drawn


def sample_gaussian(
    generators: Sequence[np.random.Generator], means: Floats, pulls: Ints, sigma: float
) -> Floats:
    """Return a draw from ``N(mean, sigma^2 / n)``: the prior is flat.

    Args:
        generators: One per row; each makes a standard normal number per arm, pulled or not.
        means: Empirical means; float64 array of shape ``(n, num_arms)``.
        pulls: n of each arm; int64 array of the same shape. Where it is 0 the draw is infinite,
            so that arms not pulled yet come first.
        sigma: Standard deviation of a reward.
    """
    drawn = np.empty(means.shape)
    for row, generator in enumerate(generators):
        generator.standard_normal(out=drawn[row])
    return np.where(pulls > 0, means + sigma * drawn / np.sqrt(np.maximum(pulls, 1)), np.inf)
