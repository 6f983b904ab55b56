"""How evenly an episode treated its arms or its users."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits.wrappers._ending import EndMetrics

__all__ = ["FairnessMetrics", "arm_fairness", "gini", "jain_index", "user_fairness"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")


def gini(values: ArrayLike) -> Any:
    """Return the Gini coefficient of each row: 0 if all are equal, up to 1 - 1/n if one has all.

    It is half the mean absolute difference of two members drawn with replacement, relative to
    the mean (C. Gini, *Variabilità e mutabilità*, 1912):
    ``sum_i sum_j |x_i - x_j| / (2 n sum_i x_i)``.

    A row of zeros has 0, since all are equal. A row with a negative entry has NaN: the relative
    difference has no upper bound there, and changes its sign with that of the mean. So has one
    with NaN or infinity.

    Args:
        values: Shape ``(..., n)``, n at least 1.

    Returns:
        float64 of shape ``(...)``.
    """
    table, fit = _received(values)
    count = table.shape[-1]
    below = np.arange(1, count)
    # The gap between neighbours in rank lies within below * above pairs. All terms have one sign,
    # so that nothing cancels and equal entries give exactly 0.
    apart = (np.diff(np.sort(table, axis=-1), axis=-1) * (below * (count - below))).sum(axis=-1)
    whole = count * table.sum(axis=-1)
    index = np.divide(apart, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.where(fit, index, np.nan)


def jain_index(values: ArrayLike) -> Any:
    """Return Jain's index of each row: 1 if all are equal, 1/n if one has everything.

    ``(sum_i x_i)^2 / (n sum_i x_i^2)`` (R. Jain, D. Chiu, W. Hawe, *A Quantitative Measure of
    Fairness and Discrimination for Resource Allocation in Shared Computer Systems*, DEC-TR-301,
    1984): if k of n share equally and the others have nothing, it is k/n.

    A row of zeros has 1, since all are equal. A row with a negative entry has NaN: the index is
    defined for what is received, and gains and losses that cancel would pass for discrimination.
    So has one with NaN or infinity.

    Args:
        values: Shape ``(..., n)``, n at least 1.

    Returns:
        float64 of shape ``(...)``.
    """
    table, fit = _received(values)
    mean = table.mean(axis=-1, keepdims=True)
    # In terms of the relative deviations the index is 1 / (1 + variance): never above 1, and
    # exactly 1 for equal entries.
    deviations = table / np.where(mean > 0, mean, 1.0) - 1
    index = np.where(mean[..., 0] > 0, 1 / (1 + np.square(deviations).mean(axis=-1)), 1.0)
    return np.where(fit, index, np.nan)


def _received(values: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ``values`` as rows, and which rows can have an index; the others are made 0."""
    table: Floats = np.asarray(values, dtype=np.float64)
    fit = np.asarray(((table >= 0) & np.isfinite(table)).all(axis=-1))
    return np.where(fit[..., None], table, 0.0), fit


def arm_fairness(pulls: Ints, potential_gaps: Floats) -> dict[str, Floats]:
    """Return what `FairnessMetrics` reports of improving arms, elementwise.

    Args:
        pulls: int64 array of shape ``(..., num_arms)``.
        potential_gaps: float64 array of that shape.
    """
    total = pulls.sum(axis=-1)
    nothing = np.full(total.shape, np.nan)
    return {
        "max_potential_gap": potential_gaps.max(axis=-1),
        "mean_potential_gap": potential_gaps.mean(axis=-1),
        "pull_gini": gini(pulls),
        "min_pull_share": np.divide(pulls.min(axis=-1), total, out=nothing, where=total > 0),
    }


def user_fairness(totals: Floats, expected_totals: Floats) -> dict[str, Floats]:
    """Return what `FairnessMetrics` reports of an assignment, elementwise.

    Args:
        totals: What the users earned; float64 array of shape ``(..., num_users)``.
        expected_totals: That in expectation; float64 array of that shape.
    """
    return {
        f"{prefix}{name}": value
        for prefix, earned in (("", totals), ("expected_", expected_totals))
        for name, value in {
            "user_gap": earned.max(axis=-1) - earned.min(axis=-1),
            "jain_index": jain_index(earned),
            "user_gini": gini(earned),
            "min_user_return": earned.min(axis=-1),
        }.items()
    }


class FairnessMetrics(EndMetrics[ObsT, ActT]):
    """Writes into ``info`` how fair an episode was when, and only when, it ends.

    Keys, each a Python float (flat, so that ``Monitor(info_keywords=...)`` of Stable-Baselines3
    can log them if it is outside this wrapper). For improving arms, with N_i the pulls of arm i:

    - ``max_potential_gap``, ``mean_potential_gap``: of a_i - f_i(N_i) over the arms, how far an
      arm is from its potential (f_i(0) = 0). Patil et al., Theorem 5: Algorithm 1 closes all of
      them in time. From the curves, so without noise; negative where an arm outside the model
      pays more than its limit.
    - ``pull_gini``: :func:`gini` of the pulls; 0 before the first.
    - ``min_pull_share``: the fewest pulls of an arm over all pulls, at most 1/k; NaN before the
      first pull, when nothing was shared out.

    For assignment, of the users' cumulative rewards S_u:

    - ``user_gap``: the best-off user's minus the worst-off user's.
    - ``jain_index``: :func:`jain_index`.
    - ``user_gini``: :func:`gini`.
    - ``min_user_return``: the worst-off user's.
    - ``expected_user_gap``, ``expected_jain_index``, ``expected_user_gini`` and
      ``expected_min_user_return``: the same of the users' expected totals given the actions. They
      tell an unfair schedule from bad luck. (In the tables of
      :mod:`gym_fairbandits.evaluation`, ``min_user_return`` is the expected one, and what was
      earned is ``realized_min_user_return``.)

    The gap is in units of reward, the indices are relative: rewards that are all multiplied by a
    constant leave them unchanged, rewards that are shifted do not. They are NaN where a user's
    total is negative, and 1 (Jain) and 0 (Gini) if nobody earned anything.

    Rewards and observations pass untouched. An end that a wrapper outside decides is not seen
    here; :meth:`metrics` answers at any time.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import FairnessMetrics
        >>> arms = {"family": "gaussian", "means": [0.75, 0.25], "std": 0.0}
        >>> env = gym.make("EgalAssign-v0", instance=arms, num_users=2, horizon=2)
        >>> env = FairnessMetrics(env)
        >>> _ = env.reset(seed=0)
        >>> for assignment in ([0, 1], [0, 1]):
        ...     _, _, _, _, info = env.step(assignment)
        >>> info["user_gap"], info["jain_index"], info["user_gini"], info["min_user_return"]
        (1.0, 0.8, 0.25, 0.5)
    """

    def __init__(self, env: gym.Env[ObsT, ActT]) -> None:
        """Wrap an environment of this package.

        Raises:
            TypeError: If ``env`` offers neither ``potential_gaps`` nor ``realized_user_returns``.
        """
        super().__init__(env)
        self._of_arms = env.has_wrapper_attr("potential_gaps")
        if not self._of_arms and not env.has_wrapper_attr("realized_user_returns"):
            raise TypeError(
                f"`env` must offer `potential_gaps` or `realized_user_returns`, got {env}"
            )

    def metrics(self) -> dict[str, Any]:
        """Return all that ``info`` would hold if the episode ended now."""
        ask = self.env.get_wrapper_attr
        if self._of_arms:
            gaps = ask("potential_gaps")()  # first, as it refuses before the first reset
            metrics = arm_fairness(ask("pulls"), gaps)
        else:
            metrics = user_fairness(ask("realized_user_returns")(), ask("expected_user_returns")())
        return {name: float(value) for name, value in metrics.items()}
