"""Policies for improving arms: Algorithm 1 of Patil et al. and what they compare it with.

All of them are anytime: they never read the horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int

from .base import TIE_TOLERANCE, Agent, Observation, argmax_fewest_pulls

__all__ = ["AnytimeImproving", "FixedArm", "Greedy", "RoundRobin", "optimistic_estimate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def optimistic_estimate(observation: Observation) -> Floats:
    """Return the p_i of Algorithm 1: what each arm would have earned with N* pulls, at best.

    N* is the largest number of pulls of any arm. Arm i keeps what it earned in its N_i pulls and
    would at best have gone on rising by its last increment D_i: with m = N* - N_i,
    ``p_i = Rew_i(N_i) + m f_i(N_i) + D_i m (m + 1) / 2``, the closed form of the paper's sum.

    Args:
        observation: A batch; arrays of shape ``(n, num_arms)``.

    Returns:
        float64 array of shape ``(n, num_arms)``.
    """
    pulls = observation["pulls"]
    behind = (pulls.max(axis=-1, keepdims=True) - pulls).astype(np.float64)
    estimate: Floats = (
        observation["reward_sum"]
        + behind * observation["last_reward"]
        + observation["last_increment"] * (behind * (behind + 1) / 2)
    )
    return estimate


class AnytimeImproving(Agent):
    """Algorithm 1 of Patil et al.: two pulls of each arm, then the highest optimistic estimate.

    Knows neither horizon nor noise. The two first pulls are two sweeps over the arms (the paper
    leaves the order open; it matters only for T < 2k). Ties go to the arm with the fewest pulls,
    as in the paper, then to the lowest index. O(k) per step.

    Guarantee (Theorem 4): competitive ratio O(k), the best any deterministic policy can have. The
    statement says 32k, the proof gives 200k, and both are wrong for small T: arms with only the
    two forced pulls escape its argument, so bounds hold from T >= 4k on. Theorem 5: with enough
    steps, the gap of every arm to its potential that matters vanishes.

    Attributes:
        tolerance: Relative difference up to which estimates tie; see
            :func:`gym_fairbandits.agents.base.argmax_fewest_pulls`.
    """

    def __init__(self, tolerance: float = TIE_TOLERANCE) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``tolerance`` is negative.
        """
        super().__init__()
        self.tolerance = checked_float("tolerance", tolerance, at_least=0)

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        best = argmax_fewest_pulls(optimistic_estimate(observation), pulls, self.tolerance)
        # The arm with the fewest pulls, lowest index first, makes two sweeps in order.
        return np.where(pulls.min(axis=-1) < 2, pulls.argmin(axis=-1), best)


class RoundRobin(Agent):
    """Arm t mod k at step t (Patil et al., section 4).

    Exact worst-case ratio T (T + 1) / (q (q + 1)) with q = floor(T / k), at most k (2k - 1) for
    T >= k (Theorem 3 states between k^2 / 2 and 8 k^2). O(k) per step.
    """

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        turns: Ints = pulls.sum(axis=-1) % pulls.shape[-1]
        return turns


class Greedy(Agent):
    """The arm that paid most when it was last pulled, after one pull of each: the myopic policy.

    It follows the early gifted arm of Figure 1 of Patil et al. for ever; its competitive ratio is
    unbounded. Ties go to the fewest pulls, then the lowest index. O(k) per step.
    """

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        best = argmax_fewest_pulls(observation["last_reward"], pulls)
        return np.where(pulls.min(axis=-1) < 1, pulls.argmin(axis=-1), best)


class FixedArm(Agent):
    """Always the same arm, as the second policy of Example A.2 of Patil et al.

    Attributes:
        arm: The arm.
    """

    def __init__(self, arm: int = 0) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``arm`` is negative.
        """
        super().__init__()
        self.arm = checked_int("arm", arm, minimum=0)

    def _act(self, observation: Observation) -> Ints:
        rows, num_arms = observation["pulls"].shape
        if not self.arm < num_arms:
            raise ValueError(f"`arm` must be below the number of arms, {num_arms}, got {self.arm}")
        return np.full(rows, self.arm, dtype=np.int64)
