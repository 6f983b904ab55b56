"""Policy regret of an episode, against the offline optimum of its instance."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice
from gym_fairbandits.wrappers._ending import EndMetrics

__all__ = ["BENCHMARKS", "PolicyRegret", "competitive_ratio", "regret_metrics"]

Floats = NDArray[np.float64]
ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")

# By which method of the environment each is answered.
BENCHMARKS = {"paper": "optimal_return", "exact": "exact_optimal_return"}


def competitive_ratio(optimal: Floats, expected: Floats) -> Floats:
    """Return ``optimal / expected`` elementwise, defined also where a side is 0 or negative.

    This is the ratio on one instance; the competitive ratio of Patil et al. is its supremum over
    instances. It is ``inf`` where nothing was earned of a positive optimum, 1 where both are 0,
    and NaN where either is negative, as a ratio of losses would rank policies upside down.
    """
    ratio = np.where(optimal > 0, np.inf, 1.0)
    with np.errstate(over="ignore"):  # next to nothing was earned: inf
        np.divide(optimal, expected, out=ratio, where=expected > 0)
    return np.where((optimal < 0) | (expected < 0), np.nan, ratio)


def regret_metrics(optimal: Floats, expected: Floats, realized: Floats) -> dict[str, Floats]:
    """Return what `PolicyRegret` reports, from the returns of some episodes, elementwise."""
    return {
        "policy_regret": optimal - expected,
        "optimal_return": optimal,
        "expected_return": expected,
        "competitive_ratio": competitive_ratio(optimal, expected),
        "realized_regret": optimal - realized,
    }


class PolicyRegret(EndMetrics[ObsT, ActT]):
    """Writes the policy regret into ``info`` when, and only when, an episode ends.

    Keys, each a Python float (flat, so that ``Monitor(info_keywords=...)`` of Stable-Baselines3
    can log them if it is outside this wrapper):

    - ``policy_regret``: ``optimal_return - expected_return``. Both are expectations given the
      actions, so this carries no noise of the rewards, and on deterministic improving arms it is
      never negative beyond rounding (-1e-9 times the optimum).
    - ``optimal_return``: the offline optimum for the steps that were played. For improving arms
      it is max_i Rew_i(T); of arms that decrease, the best schedule. For assignment it is the
      benchmark of Lim, Tan, Soh, T mu* / U, which can be reached exactly only if U divides T (else
      the worst-off user of the best schedule gets up to (1 - 1/U)(mu_1 - mu_U) less), so a small
      regret remains even for the oracle.
      With ``benchmark="exact"`` it is what the best schedule really gives the worst-off user,
      :func:`gym_fairbandits.optimum.max_min_assignment`.
      If the arms vary (:mod:`gym_fairbandits.arms.varying`) it is the value of the best fixed set
      on what the arms really offered; who follows the changes can beat it.
    - ``expected_return``: what the actions taken earn in expectation; for assignment the lowest
      of the users' expected totals.
    - ``competitive_ratio``: see :func:`competitive_ratio`.
    - ``realized_regret``: ``optimal_return`` minus what was really earned.
    - ``expected_user_returns`` (assignment only): float64 array of shape ``(num_users,)``.

    Rewards and observations pass untouched. If the environment renders, its frames show the regret
    so far. An end that a wrapper outside decides (a
    ``TimeLimit`` around this one, say) is not seen here; :meth:`regret` answers at any time.

    The regret in the paper of Lim, Tan, Soh, T mu* / U - min_u E[S_u], is a minimum of
    expectations over the policy's randomness too. It cannot be had from one episode; the mean of
    ``policy_regret`` over episodes of one instance lies above it.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import PolicyRegret
        >>> env = gym.make("ImprovingBandit-v0", instance="early_vs_late", horizon=2)
        >>> env = PolicyRegret(env)
        >>> _ = env.reset(seed=0)
        >>> for arm in (0, 1):
        ...     _, _, _, _, info = env.step(arm)
        >>> round(info["policy_regret"], 3), round(info["competitive_ratio"], 3)
        (0.475, 2.727)
    """

    def __init__(self, env: gym.Env[ObsT, ActT], benchmark: str = "paper") -> None:
        """Wrap an environment of this package.

        Args:
            env: The environment.
            benchmark: ``"paper"``, or ``"exact"`` for the best that a schedule of the steps
                played reaches. For improving arms both are the same. For assignment the exact
                one is known where a rotation completes and for small sizes; elsewhere, and if
                arms vary, an episode's end and :meth:`regret` raise ``ValueError``.

        Raises:
            TypeError: If ``env`` does not offer ``optimal_return`` and ``expected_return``.
            ValueError: If ``benchmark`` is another one.
        """
        self._optimal = BENCHMARKS[checked_choice("benchmark", benchmark, tuple(BENCHMARKS))]
        RecordConstructorArgs.__init__(self, benchmark=benchmark)
        super().__init__(env)
        for name in (self._optimal, "expected_return", "realized_return"):
            if not env.has_wrapper_attr(name):
                raise TypeError(f"`env` must offer `{name}`, got {env}")
        if env.render_mode is not None and env.has_wrapper_attr("readouts"):
            env.get_wrapper_attr("readouts")["policy regret"] = self._shown_regret

    def _shown_regret(self) -> float:
        """Return the regret for the frames; NaN where it is not known in mid-episode."""
        try:
            return self.regret()
        except ValueError:
            return math.nan

    def regret(self) -> float:
        """Return the policy regret of the steps played so far."""
        regret: float = self.metrics()["policy_regret"]
        return regret

    def metrics(self) -> dict[str, Any]:
        """Return all that ``info`` would hold if the episode ended now."""
        optimal, expected, realized = (
            np.array(self.env.get_wrapper_attr(name)())
            for name in (self._optimal, "expected_return", "realized_return")
        )
        metrics: dict[str, Any] = {
            name: float(value)
            for name, value in regret_metrics(optimal, expected, realized).items()
        }
        if self.env.has_wrapper_attr("expected_user_returns"):
            metrics["expected_user_returns"] = self.env.get_wrapper_attr("expected_user_returns")()
        return metrics
