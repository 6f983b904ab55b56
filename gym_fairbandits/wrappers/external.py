"""External regret of an episode: against what pays best at each step."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.optimum import egalitarian_optimum
from gym_fairbandits.wrappers._ending import EndMetrics

__all__ = ["ExternalAccount", "ExternalRegret"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")


class ExternalAccount:
    """What the best action of each step would have paid, and what those taken pay, per row."""

    def __init__(self, bandit: Any, num_rows: int) -> None:
        """Start at 0 for the rows of ``bandit``, an unwrapped environment, scalar or vector."""
        self._bandit = bandit
        self._of_users = hasattr(bandit, "expected_user_returns")
        # Kahan's summation: on constant arms a plain sum of a million steps loses five digits,
        # and a regret of 0 would not be seen as such.
        self._best: Floats = np.zeros(num_rows)
        self._excess: Floats = np.zeros(num_rows)  # what rounding has added to it

    def best_next(self) -> Floats:
        """Return what the best action pays in the next step; shape ``(num_rows,)``."""
        rewards = np.atleast_2d(self._bandit.next_expected_rewards())
        if not self._of_users:
            best: Floats = rewards.max(axis=-1)
            return best
        users, capacity = self._bandit.num_users, self._bandit.capacity
        return np.asarray(egalitarian_optimum(rewards, users, 1, capacity))

    def add(self, best: Floats, rows: Bools) -> None:
        """Add a step to the account of each of ``rows``; ``best`` is over all rows."""
        amount = best[rows] - self._excess[rows]
        before = self._best[rows]
        after = before + amount
        self._best[rows], self._excess[rows] = after, (after - before) - amount

    def clear(self, rows: Bools) -> None:
        """Begin the accounts of ``rows`` afresh."""
        self._best[rows] = self._excess[rows] = 0.0

    def regret(self, rows: Bools | None = None) -> Floats:
        """Return the external regret of ``rows``, by default of the only row."""
        chosen = {} if rows is None else {"rows": rows}
        if self._of_users:
            users = np.atleast_2d(self._bandit.expected_user_returns(**chosen))
            earned: Floats = users.mean(axis=-1)
        else:
            earned = np.atleast_1d(self._bandit.expected_return(**chosen))
        return (self._best if rows is None else self._best[rows]) - earned


class ExternalRegret(EndMetrics[ObsT, ActT]):
    """Writes the external regret into ``info`` when, and only when, an episode ends.

    One key, a Python float: ``external_regret``, the sum over steps of what the best action of
    that step would have paid *in that step* minus what the action taken pays, both in expectation
    and after the pulls so far. Never negative beyond rounding.

    - Improving arms: ``sum_t (max_i f_i(N_i + 1) - f_j(N_j + 1))``, j the arm pulled, as in
      Example A.2 of Patil et al. It forgives a policy that never invests: there, always pulling
      the constant arm has no external regret, and a policy regret of 0.9 T - 4.5.
    - Assignment: an action pays the users' mean, and the best one is the U best arms (each of
      them ``capacity`` times), whatever the ``objective``. With constant means this is
      T mu* / U minus the mean of the users' expected totals. It forgives a policy that does not
      share: the best arms held by the same users throughout have none.

    Policy regret (:class:`gym_fairbandits.wrappers.PolicyRegret`) forgives neither.

    The environment is asked once more in each step. Rewards and observations pass untouched.
    Wrappers inside may take several steps for one of the environment
    (:class:`gym_fairbandits.wrappers.SequentialAssignment`), not the reverse: this one belongs
    inside a wrapper that skips frames. An end that a wrapper outside decides is not seen here;
    :meth:`metrics` answers at any time.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import ExternalRegret
        >>> env = gym.make("ImprovingBandit-v0", instance="early_vs_late", horizon=2)
        >>> env = ExternalRegret(env)
        >>> _ = env.reset(seed=0)
        >>> for arm in (0, 1):  # the late arm pays 1/40 where the early one pays 1/2
        ...     _, _, _, _, info = env.step(arm)
        >>> round(info["external_regret"], 3)
        0.475
    """

    def __init__(self, env: gym.Env[ObsT, ActT]) -> None:
        """Wrap an environment of this package.

        Raises:
            TypeError: If ``env`` does not offer ``next_expected_rewards``.
        """
        super().__init__(env)
        if not hasattr(env.unwrapped, "next_expected_rewards"):
            raise TypeError(f"`env` must offer `next_expected_rewards`, got {env}")
        self._bandit: Any = env.unwrapped
        self._account = ExternalAccount(self._bandit, 1)
        self._all: Bools = np.ones(1, dtype=np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Start an episode and its account; see :meth:`gymnasium.Env.reset`."""
        outcome = self.env.reset(seed=seed, options=options)
        self._account.clear(self._all)
        return outcome

    def _play(self, action: ActT) -> tuple[ObsT, Any, bool, bool, dict[str, Any]]:
        best, played = self._account.best_next(), self._bandit.steps
        outcome = self.env.step(action)
        now = self._bandit.steps
        if now > played:
            self._account.add(best, self._all)
        elif now < played:  # an `Autoreset` inside has begun the next episode
            self._account.clear(self._all)
        return outcome

    def metrics(self) -> dict[str, Any]:
        """Return all that ``info`` would hold if the episode ended now."""
        return {"external_regret": float(self._account.regret()[0])}
