"""Policies for improving arms: Algorithm 1 of Patil et al. and what they compare it with.

All but ``HorizonAwareImproving`` are anytime: they never read the horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int

from .base import (
    TIE_TOLERANCE,
    Agent,
    Observation,
    argmax_fewest_pulls,
    checked_horizon,
    total_steps,
)

__all__ = [
    "AnytimeImproving",
    "FixedArm",
    "Greedy",
    "HorizonAwareImproving",
    "RoundRobin",
    "future_reward",
    "optimistic_estimate",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
    steps, the gap of every arm to its potential vanishes.

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


def future_reward(last: Floats, rise: Floats, steps: Floats) -> Floats:
    """Return the most that arms with these last rewards can still pay in ``steps`` pulls.

    With diminishing returns a reward v that rose by d rises by at most d each time, and stays at
    most 1: ``sum of min(1, v + d j) for j = 1..M``. In closed form, with
    s = min(M, floor((1 - v) / d)) pulls until it is 1: ``s v + d s (s + 1) / 2 + (M - s)``, and
    ``M v`` if d is not positive. (Heidari, Kearns, Roth 2016; Lindner et al. 2021.) Also ``M v``
    if v is above 1, as only noise makes it: so it is never less than what v for ever would pay.

    Args:
        last: v, float64 array.
        rise: d, in the same shape.
        steps: M, in the same shape.
    """
    rises = (rise > 0) & (last < 1)
    with np.errstate(over="ignore"):
        until_one = np.floor((1 - last) / np.where(rises, rise, 1.0))
    count = np.clip(until_one, 0.0, steps)
    best: Floats = np.where(
        rises, count * last + rise * (count * (count + 1) / 2) + (steps - count), steps * last
    )
    return best


class HorizonAwareImproving(Agent):
    """Elimination of Heidari, Kearns, Roth (2016): drops arms that cannot be the best any more.

    Knows the horizon T; rewards are taken as exact. In phase h every arm left is pulled once, in
    order. From h = 2 on, with R earned so far, v the last reward and d the last increment, arm i
    would earn in T pulls at least p_i = R + (T - h) v and at most
    q_i = R + :func:`future_reward` (v, d, T - h); it is dropped if q_i < max p. The last arm left
    is pulled to the end: there always is one, as q_i >= p_i, also under noise. O(k) per step.

    The rule is that of ``increasing.py`` in Lindner et al.'s repository, as the text of the paper
    was not at hand. That code pulls every arm once before it begins to count, so that its R, v, d
    lag a pull behind: a dropped arm has one pull more there.

    Guarantee (reported): policy regret o(T), at a rate that depends on the instance.

    Attributes:
        horizon: T, where the observation has no ``remaining``.
    """

    def __init__(self, horizon: int | None = None) -> None:
        """Create the agent.

        Raises:
            TypeError: If ``horizon`` is not an integer.
            ValueError: If ``horizon`` is below 1.
        """
        super().__init__()
        self.horizon = checked_horizon(horizon)
        self._left: Bools = np.zeros((0, 0), dtype=np.bool_)

    def _act(self, observation: Observation) -> Ints:
        pulls, last = observation["pulls"], observation["last_reward"]
        steps = pulls.sum(axis=1)
        length = total_steps(observation, steps, self.horizon)
        if self._left.shape != pulls.shape:
            self._left = np.ones(pulls.shape, dtype=np.bool_)
        self._left[steps == 0] = True
        fewest = np.where(self._left, pulls, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        phase_over = (np.where(self._left, pulls, fewest) == fewest).all(axis=1) & (
            fewest[:, 0] >= 2
        )
        to_come = np.maximum(length[:, None] - fewest, 0).astype(np.float64)
        at_least = observation["reward_sum"] + to_come * last
        at_most = observation["reward_sum"] + future_reward(
            last, observation["last_increment"], to_come
        )
        best = np.where(self._left, at_least, -np.inf).max(axis=1, keepdims=True)
        # Rounding must not drop the best arm itself.
        possible = at_most >= best - TIE_TOLERANCE * np.maximum(1.0, np.abs(best))
        self._left &= possible | ~phase_over[:, None]
        arms: Ints = np.where(self._left, pulls, np.iinfo(np.int64).max).argmin(axis=1)
        return arms

    def _forget(self, mask: Bools | None) -> None:
        if mask is None or len(mask) == len(self._left):
            self._left[slice(None) if mask is None else mask] = True
