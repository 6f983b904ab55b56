"""What both classes of ImprovingBandit-v0 share: the problem, what a pull does, the accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from gym_fairbandits._checks import as_int64, checked_bool, checked_float, checked_int
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits._sources import CurveSource, improving_source
from gym_fairbandits.envs._core import Bools, Clocked, Floats, Ints, observation_box
from gym_fairbandits.envs.rendering.scene import CurveHistory
from gym_fairbandits.optimum import best_arms, rested_optima

__all__ = [
    "ImprovingProblem",
    "ImprovingRecord",
    "check_arms",
    "increment",
    "noisy_reward",
    "upcoming_pulls",
]

FloatT = TypeVar("FloatT", float, Floats)


def noisy_reward(value: FloatT, noise_std: float, draw: FloatT) -> FloatT:
    """Return what a pull pays: its expected reward plus Gaussian noise."""
    return value + noise_std * draw


def increment(reward: FloatT, last_reward: FloatT, pulled: Any) -> FloatT:
    """Return an arm's reward minus the one before, 0 where it was not ``pulled`` before."""
    change: FloatT = (reward - last_reward) * pulled
    return change


def upcoming_pulls(before: Ints, count: int, horizon: int) -> Floats:
    """Return the numbers of the next pulls of arms.

    Beyond the horizon, where a curve of the user's may know no reward, the last one repeats.

    Args:
        before: Pulls so far; int64 array of shape ``(n,)``.
        count: How many are next.
        horizon: T; no arm is pulled more often.

    Returns:
        float64 array of shape ``(n, count)``.
    """
    numbers: Floats = np.minimum(before[:, None] + np.arange(1.0, count + 1), horizon)
    return numbers


def check_arms(actions: Any, num_envs: int, num_arms: int, playing: Bools | None) -> Ints:
    """Return a batch of actions as int64 if those of the rows that play are arms; None is all.

    Raises:
        InvalidAction: If one is not, or if ``actions`` is no int array of shape ``(num_envs,)``.
    """
    arms = as_int64(actions, (num_envs,))
    if arms is None:
        raise InvalidAction(f"`actions` must be integers of shape ({num_envs},), got {actions!r}")
    # As unsigned numbers the negative ones are large: one comparison finds both.
    legal = arms.view(np.uint64) < num_arms
    if not legal.all():
        wrong = ~legal if playing is None else ~legal & playing
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidAction(
                f"`actions` must be integers from 0 to {num_arms - 1}, "
                f"got {actions[row]} for sub-environment {row}"
            )
    return arms


class ImprovingProblem(Clocked):
    """The parameters of the problem, checked, and what follows from them.

    Attributes:
        noise_std: Standard deviation of the rewards' noise.
        validate: Whether curves outside the model are refused.
    """

    _title = "Improving bandit"
    noise_std: float
    validate: bool

    def _take_arguments(
        self, instance: Any, num_arms: int | None, noise_std: float, validate: bool
    ) -> CurveSource:
        """Check the arguments and return the source of the arms."""
        self.noise_std = checked_float("noise_std", noise_std, at_least=0)
        self.validate = checked_bool("validate", validate)
        source = self._make_source(instance, num_arms)
        self.num_arms = source.num_arms
        return source

    def _make_source(self, instance: Any, num_arms: int | None) -> CurveSource:
        return improving_source(instance, num_arms, self.horizon, self.validate)

    def _spaces(self) -> tuple[spaces.Dict, spaces.Discrete]:
        """Return the spaces of observations and of actions."""
        parts = {
            "pulls": observation_box("count", self.num_arms),
            "reward_sum": observation_box("sum", self.num_arms),
            "last_reward": observation_box("sum", self.num_arms),
            "last_increment": observation_box("sum", self.num_arms),
        }
        return self._observation_space(parts), spaces.Discrete(self.num_arms)

    def _new_history(self) -> CurveHistory:
        return CurveHistory(self.num_arms)


@dataclass(frozen=True)
class ImprovingRecord:
    """What was played in some episodes, one row each, and what it is worth in expectation.

    Attributes:
        grid: The instances.
        pulls: Pulls per arm; int64 array of shape ``(n, num_arms)``.
        reward_sum: Rewards per arm; float64 array of shape ``(n, num_arms)``.
        steps: Steps played; int64 array of shape ``(n,)``.
    """

    grid: CurveGrid
    pulls: Ints
    reward_sum: Floats
    steps: Ints

    def optimal_return(self, steps: int | None = None) -> Floats:
        """Return :func:`gym_fairbandits.optimum.rested_optimum`, of T steps or ``steps``.

        T are the steps played. Of arms that do not decrease it is max_i Rew_i(T).
        """
        return rested_optima(self.grid, self._steps(steps))[0]

    def exact_optimal_return(self, steps: int | None = None) -> Floats:
        """Return :meth:`optimal_return`: it is what a schedule can reach."""
        return self.optimal_return(steps)

    def optimal_pulls(self, steps: int) -> Ints:
        """Return how often each arm is pulled in a best schedule of ``steps`` steps."""
        return rested_optima(self.grid, self._steps(steps))[1]

    def optimal_arm(self, steps: int) -> Ints:
        """Return the arm that is best throughout ``steps`` steps, ties by lowest index."""
        return best_arms(self.grid, self._steps(steps))[1]

    def expected_return(self) -> Floats:
        """Return sum_i Rew_i(N_i)."""
        total: Floats = self.grid.sums(self.pulls.astype(np.float64)).sum(axis=1)
        return total

    def pull_counts(self) -> Ints:
        """Return the pulls per arm."""
        return self.pulls

    def realized_return(self) -> Floats:
        """Return the sum of the rewards."""
        total: Floats = self.reward_sum.sum(axis=1)
        return total

    def potential_gaps(self) -> Floats:
        """Return a_i - f_i(N_i), f_i(0) = 0; float64 array of shape ``(n, num_arms)``."""
        cells = np.arange(self.pulls.size)
        pulled = self.pulls.ravel()
        reached = self.grid.values(cells, np.maximum(pulled, 1).astype(np.float64))
        return self.grid.asymptotes() - np.where(pulled > 0, reached, 0.0).reshape(self.pulls.shape)

    def _steps(self, steps: int | None) -> Ints:
        if steps is None:
            return self.steps
        return np.full_like(self.steps, checked_int("steps", steps, minimum=0))
