"""Bandits that forget: only the last pulls count, or older ones count less.

They minimise *external* regret against the best arm of the time. That an arm changes *because* it
is pulled is outside their model, and none of them has a guarantee on the policy regret of
improving arms.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int

from ._posterior import bernoulli_coins, sample_beta
from ._tuned import TunedAgent
from .base import Observation, argmax_fewest_pulls
from .egalitarian import ucb_index

__all__ = ["DiscountedUCB", "SlidingWindowThompson", "SlidingWindowUCB", "discounted_index"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FADED = 1e-300  # a weight below it is that of an arm never seen


class _Window:
    """The last pulls of every row, in a ring as long as the row's window; it grows as needed.

    Attributes:
        counts: Pulls within the window; int64 array of shape ``(rows, num_arms)``.
        sums: What they paid; float64 array of shape ``(rows, num_arms)``.
        added: Pulls ever added; int64 array of shape ``(rows,)``.
        sizes: The windows; int64 array of shape ``(rows,)``.
    """

    def __init__(self, rows: int, num_arms: int) -> None:
        self.counts: Ints = np.zeros((rows, num_arms), dtype=np.int64)
        self.sums: Floats = np.zeros((rows, num_arms))
        self.added: Ints = np.zeros(rows, dtype=np.int64)
        self.sizes: Ints = np.ones(rows, dtype=np.int64)
        self._arms: Ints = np.zeros((rows, 16), dtype=np.int64)
        self._rewards: Floats = np.zeros((rows, 16))

    def clear(self, rows: Ints, sizes: Ints | int) -> None:
        self.counts[rows], self.sums[rows], self.added[rows] = 0, 0, 0
        self.sizes[rows] = sizes

    def append(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        places = self.added[rows] % self.sizes[rows]
        if places.max() >= self._arms.shape[1]:  # no ring that long has closed yet
            self._arms = np.concatenate((self._arms, np.zeros_like(self._arms)), axis=1)
            self._rewards = np.concatenate((self._rewards, np.zeros_like(self._rewards)), axis=1)
        full = self.added[rows] >= self.sizes[rows]
        old, at = rows[full], places[full]
        self.counts[old, self._arms[old, at]] -= 1
        self.sums[old, self._arms[old, at]] -= self._rewards[old, at]
        self._arms[rows, places], self._rewards[rows, places] = arms, rewards
        self.counts[rows, arms] += 1
        self.sums[rows, arms] += rewards
        self.added[rows] += 1
        for row in rows[full & (places == 0)].tolist():  # rounding must not pile up
            inside = slice(self.sizes[row])
            self.sums[row] = np.bincount(
                self._arms[row, inside], self._rewards[row, inside], self.sums.shape[1]
            )


class _WindowedAgent(TunedAgent):
    """Remembers the pulls of a window."""

    def __init__(self, window: int | None, horizon: int | None) -> None:
        super().__init__(horizon, window is not None)
        self.window = None if window is None else checked_int("window", window)

    @abstractmethod
    def _default(self, lengths: Ints) -> Floats:
        """Return the windows for episodes of these lengths, before they are rounded up."""

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._recent = _Window(rows, num_arms)

    def _clear(self, rows: Ints) -> None:
        if self.window is not None:
            self._recent.clear(rows, self.window)
        else:
            sizes = np.ceil(self._default(self._lengths[rows]))
            self._recent.clear(rows, np.maximum(sizes, 1).astype(np.int64))

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        self._recent.append(rows, arms, rewards)


class SlidingWindowUCB(_WindowedAgent):
    """SW-UCB of Garivier and Moulines (2011): UCB on the last pulls only.

    Pulls the arm of the highest ``mean + scale sqrt(xi ln min(t, w) / n)``: mean and n over the
    last w pulls (of all arms), t pulls in all. An arm that the window does not hold comes first.
    Ties go to the arm with the fewest pulls ever, then the lowest index. Knows T. O(K) per step;
    memory grows up to the window.

    Guarantee (theirs): external regret O(sqrt(G T ln T)) where the means
    change G times at unknown steps, with a window tuned by G. On improving arms there is none on
    policy regret.

    Attributes:
        window: w; ``None`` for ``4 sqrt(T ln T)``, rounded up, as in their experiments.
        xi: The constant in the bonus; 0.6 here, above the 1/2 that the analysis needs.
        scale: B, the largest reward.
        horizon: T where ``remaining`` is not observed; not read if ``window`` is given.
    """

    def __init__(
        self,
        window: int | None = None,
        xi: float = 0.6,
        scale: float = 1.0,
        horizon: int | None = None,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule. When it acts: if neither ``window`` nor
                ``horizon`` is given and ``remaining`` is not observed.
        """
        super().__init__(window, horizon)
        self.xi = checked_float("xi", xi, at_least=0)
        self.scale = checked_float("scale", scale, above=0)

    def _default(self, lengths: Ints) -> Floats:
        windows: Floats = 4 * np.sqrt(lengths * np.log(lengths))
        return windows

    def _choose(self, observation: Observation) -> Ints:
        recent = self._recent
        held = np.minimum(recent.added, recent.sizes)
        index = ucb_index(recent.sums, recent.counts, held, self.xi, self.scale)
        return argmax_fewest_pulls(index, observation["pulls"])


class SlidingWindowThompson(_WindowedAgent):
    """SW-TS of Trovò, Paladino, Restelli, Gatti (2020): Thompson sampling on the last pulls only.

    Draws each arm's mean from ``Beta(1 + S, 1 + n - S)``, S successes in the n pulls of the arm
    among the last w of all, and pulls the highest; ties go to the lowest index. A reward x in
    [0, 1] is made a success with probability x when it is seen. Knows T. O(K) per step; rows are
    drawn one by one; memory grows up to the window.

    Guarantee (theirs, for Bernoulli rewards): external regret O(G sqrt(T) ln T) where the means
    change G times at unknown steps, with a window of the order of sqrt(T). On improving arms there
    is none on policy regret.

    Attributes:
        window: w; ``None`` for ``sqrt(T)``, rounded up.
        horizon: T where ``remaining`` is not observed; not read if ``window`` is given.
    """

    def __init__(self, window: int | None = None, horizon: int | None = None) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule. When it acts: if neither ``window`` nor
                ``horizon`` is given and ``remaining`` is not observed.
        """
        super().__init__(window, horizon)

    def _default(self, lengths: Ints) -> Floats:
        windows: Floats = np.sqrt(lengths)
        return windows

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        generators = [self._generator(row) for row in rows.tolist()]
        super()._learn(rows, arms, bernoulli_coins(generators, rewards))

    def _choose(self, observation: Observation) -> Ints:
        recent = self._recent
        generators = [self._generator(row) for row in range(len(recent.sums))]
        drawn = sample_beta(generators, recent.sums, recent.counts - recent.sums)
        best: Ints = drawn.argmax(axis=1)
        return best


# --- Discounts ----------------------------------------------------------------------------------


def discounted_index(sums: Floats, weights: Floats, xi: float, scale: float) -> Floats:
    """Return ``X / N + 2 scale sqrt(xi ln(sum of N) / N)``; infinite where nothing is left of N.

    Args:
        sums: X, discounted reward per arm; float64 array of shape ``(n, num_arms)``.
        weights: N, discounted pulls per arm; float64 array of shape ``(n, num_arms)``.
        xi: The constant in the bonus.
        scale: B, the largest reward.
    """
    seen = weights > FADED
    divisors = np.where(seen, weights, 1.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    bonus = 2 * scale * np.sqrt(xi * np.log(total) / divisors)
    return np.where(seen, sums / divisors + bonus, np.inf)


class DiscountedUCB(TunedAgent):
    """D-UCB of Garivier and Moulines (2011): UCB in which a pull counts less with every step.

    A pull that is s steps old has weight ``discount^s``. Pulls every arm once, then the arm of the
    highest ``mean + 2 scale sqrt(xi ln(sum of N) / N)``, mean and N weighted; see
    :func:`discounted_index`. Ties go to the arm with the fewest pulls, then the lowest index. Knows
    T. O(K) per step.

    Guarantee (theirs): external regret O(sqrt(G T) ln T) where the means
    change G times at unknown steps, with a discount tuned by G. On improving arms there is none on
    policy regret.

    Attributes:
        discount: gamma in the paper, in (0, 1]; ``None`` for ``1 - 1 / (4 sqrt(T))``, as in their
            experiments.
        xi: The constant in the bonus; 0.6 here, above the 1/2 that the analysis needs.
        scale: B, the largest reward.
        horizon: T where ``remaining`` is not observed; not read if ``discount`` is given.
    """

    def __init__(
        self,
        discount: float | None = None,
        xi: float = 0.6,
        scale: float = 1.0,
        horizon: int | None = None,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule. When it acts: if neither ``discount`` nor
                ``horizon`` is given and ``remaining`` is not observed.
        """
        super().__init__(horizon, discount is not None)
        self.discount = (
            None if discount is None else checked_float("discount", discount, above=0, at_most=1)
        )
        self.xi = checked_float("xi", xi, at_least=0)
        self.scale = checked_float("scale", scale, above=0)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._weights: Floats = np.zeros((rows, num_arms))
        self._sums: Floats = np.zeros((rows, num_arms))
        self._discounts: Floats = np.ones(rows)

    def _clear(self, rows: Ints) -> None:
        self._weights[rows], self._sums[rows] = 0, 0
        given = self.discount
        self._discounts[rows] = (
            1 - 1 / (4 * np.sqrt(self._lengths[rows])) if given is None else given
        )

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        fading = self._discounts[rows][:, None]
        self._weights[rows] *= fading
        self._sums[rows] *= fading
        self._weights[rows, arms] += 1
        self._sums[rows, arms] += rewards

    def _choose(self, observation: Observation) -> Ints:
        index = discounted_index(self._sums, self._weights, self.xi, self.scale)
        return argmax_fewest_pulls(index, observation["pulls"])
