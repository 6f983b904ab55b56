"""Arms whose expected rewards change: adversaries, blind or watching, and switching means.

Against these a policy is measured by the best *fixed* set of arms, rotated; see
:func:`gym_fairbandits.optimum.best_fixed_set_optimum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits._checks import checked_bool, checked_float, checked_int, checked_table, frozen
from gym_fairbandits.arms.base import Arms
from gym_fairbandits.arms.constant import Bernoulli, Gaussian

__all__ = ["AdaptiveAdversary", "Adversarial", "Switching"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Adversarial(Arms):
    """An oblivious adversary: a table, fixed beforehand, of what each arm pays at each step.

    There is no chance in it, and it does not react to what is played. ``means`` are the averages
    over the table's rows.
    """

    family = "adversarial"
    noise = None
    varying = True

    def __init__(self, table: ArrayLike, periodic: bool = False) -> None:
        """Create the arms.

        Args:
            table: Row t holds what the arms pay in step t, from 0; shape ``(steps, num_arms)``.
            periodic: Whether the table starts anew after its last row, so that a short one
                serves any horizon. Else an environment whose horizon exceeds it is refused.

        Raises:
            TypeError: If ``table`` does not hold real numbers, or ``periodic`` is not a bool.
            ValueError: If ``table`` is not a table of finite numbers with at least one row.
        """
        self._table = checked_table("table", table)
        self._periodic = checked_bool("periodic", periodic)
        self.num_steps = None if self._periodic else len(self._table)
        self.means = frozen(self._table.mean(axis=0))

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return the table's entries; see :meth:`Arms.rewards`.

        Raises:
            ValueError: If the table has no row for the step.
        """
        return self._table[self._row(step)[..., None], arms]

    def expected_rewards(self, step: int | Ints, pulls: Ints) -> Floats:
        """Return the table's row; see :meth:`Arms.expected_rewards`."""
        return self._table[self._row(step)]

    def expected_totals(self, steps: int) -> Floats:
        """Return the sums of the first ``steps`` rows; see :meth:`Arms.expected_totals`."""
        if steps > 0:
            self._row(steps - 1)  # refuses what lies beyond the table
        rounds, rest = divmod(steps, len(self._table))
        totals: Floats = rounds * self._table.sum(axis=0) + self._table[:rest].sum(axis=0)
        return totals

    def parameters(self) -> dict[str, Any]:
        """Return ``table`` and ``periodic``."""
        return {"table": self._table.tolist(), "periodic": self._periodic}

    def _row(self, step: int | Ints) -> Ints:
        """Return the row of a step, an array of the shape of ``step``."""
        place = np.asarray(step)
        if self._periodic:
            return place % len(self._table)
        if not (place < len(self._table)).all():
            raise ValueError(
                f"`table` must have a row for every step, got {len(self._table)} rows and "
                f"step {place.max()} (from 0); `periodic=True` starts it anew"
            )
        return place


class Switching(Arms):
    """Means that stay constant for a while and then jump: piecewise-stationary arms.

    Rewards are Bernoulli, or Gaussian if ``std`` is given. ``means`` are the plain averages over
    the segments, however long each is.
    """

    family = "switching"
    varying = True

    def __init__(
        self, means: ArrayLike, switches: Sequence[int], std: ArrayLike | None = None
    ) -> None:
        """Create the arms.

        Args:
            means: Expected rewards in each segment; shape ``(num_segments, num_arms)``.
            switches: The steps, from 0, at which the segments after the first begin, ascending;
                ``num_segments - 1`` of them. The last segment never ends.
            std: ``None`` for Bernoulli rewards; else the standard deviation of Gaussian ones, one
                for all arms or one each. 0 is allowed (no chance).

        Raises:
            TypeError: If an argument does not hold numbers of its kind.
            ValueError: If the shapes do not fit, ``switches`` do not ascend from at least 1, or
                ``means`` or ``std`` break the rule of :class:`Bernoulli` or :class:`Gaussian`.
        """
        table = checked_table("means", means)
        self._starts = np.array([0, *_ascending("switches", switches)], dtype=np.int64)
        if len(self._starts) != len(table):
            raise ValueError(
                f"`switches` must have one entry less than `means` has rows, {len(table) - 1}, "
                f"got {len(self._starts) - 1}"
            )
        # The arms of all segments in one row: arm a of segment s has the number s K + a.
        self._law: Bernoulli | Gaussian
        if std is None:
            self._law = Bernoulli(table.ravel())
        else:
            self._std = Gaussian(table[0], std).std  # checked against the number of arms
            self._law = Gaussian(table.ravel(), np.tile(self._std, len(table)))
        self.noise = self._law.noise
        self._table = table
        self.means = frozen(table.mean(axis=0))

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return rewards by the means of the step's segment; see :meth:`Arms.rewards`."""
        numbers = self._segment(step)[..., None] * self.num_arms + arms
        return self._law.rewards(numbers, draws, step, pulls)

    def expected_rewards(self, step: int | Ints, pulls: Ints) -> Floats:
        """Return the means of the step's segment; see :meth:`Arms.expected_rewards`."""
        return self._table[self._segment(step)]

    def expected_totals(self, steps: int) -> Floats:
        """Return the segments' means times their lengths; see :meth:`Arms.expected_totals`."""
        ends = np.minimum([*self._starts[1:], steps], steps)
        totals: Floats = np.maximum(ends - self._starts, 0) @ self._table
        return totals

    def parameters(self) -> dict[str, Any]:
        """Return ``means``, ``switches`` and ``std``."""
        std = None if isinstance(self._law, Bernoulli) else self._std.tolist()
        return {
            "means": self._table.tolist(),
            "switches": self._starts[1:].tolist(),
            "std": std,
        }

    def _segment(self, step: int | Ints) -> Ints:
        return np.asarray(np.searchsorted(self._starts, step, side="right") - 1)


class AdaptiveAdversary(Arms):
    """An adaptive adversary without chance: the arms that were played least pay, the others 0.

    At each step the ``num_paying`` arms with the fewest pulls pay, ties to the lowest index. So
    an arm is worth nothing once it is relied on: a policy that keeps to a set of arms starves
    while the arms it avoids pay in vain. One that is drawn to rarely played arms, as EgalUCB is
    by its bonus, fares well, better than a uniformly random one: this is no worst case for every
    policy. The best fixed set is the one of the offers that were really made; another policy
    would have been made others. ``means`` are what an arm pays per step on average over the arms,
    ``num_paying * reward / num_arms``.
    """

    family = "adaptive_adversary"
    noise = None
    varying = True

    def __init__(self, num_arms: int, num_paying: int = 1, reward: float = 1.0) -> None:
        """Create the arms.

        Args:
            num_arms: K.
            num_paying: How many arms pay at each step.
            reward: What each of them pays.

        Raises:
            TypeError: If an argument is not a number of its kind.
            ValueError: If ``num_arms`` is below 1, ``num_paying`` is not from 1 to ``num_arms``,
                or ``reward`` is not finite.
        """
        count = checked_int("num_arms", num_arms)
        self._num_paying = checked_int("num_paying", num_paying, maximum=count)
        self._reward = checked_float("reward", reward)
        self.means = frozen(np.full(count, self._num_paying * self._reward / count))

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return ``reward`` for the fewest-pulled arms, else 0.0; see :meth:`Arms.rewards`."""
        return np.take_along_axis(self.expected_rewards(step, pulls), arms, axis=-1)

    def expected_rewards(self, step: int | Ints, pulls: Ints) -> Floats:
        """Return what every arm pays in this step; see :meth:`Arms.expected_rewards`."""
        offers = np.zeros(pulls.shape)
        paying = np.argsort(pulls, axis=-1, kind="stable")[..., : self._num_paying]
        np.put_along_axis(offers, paying, self._reward, axis=-1)
        return offers

    def parameters(self) -> dict[str, Any]:
        """Return ``num_arms``, ``num_paying`` and ``reward``."""
        return {
            "num_arms": self.num_arms,
            "num_paying": self._num_paying,
            "reward": self._reward,
        }


def _ascending(name: str, values: Any) -> list[int]:
    """Return ``values`` as integers of at least 1, each above the one before."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError(f"`{name}` must be a sequence of steps, got {values!r}")
    steps: list[int] = []
    for place, value in enumerate(values):
        least = steps[-1] + 1 if steps else 1
        steps.append(checked_int(f"{name}[{place}]", value, minimum=least))
    return steps
