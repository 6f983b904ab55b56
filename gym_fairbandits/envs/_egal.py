"""What both classes of EgalAssign-v0 share: the problem, its objective, and the accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_fairbandits._checks import check_room, checked_choice, checked_int
from gym_fairbandits._sources import ArmSource, egal_source
from gym_fairbandits.arms import Arms
from gym_fairbandits.envs._core import Clocked, Floats, Ints, observation_box
from gym_fairbandits.envs.rendering.scene import AssignmentHistory
from gym_fairbandits.optimum import (
    best_fixed_set_optimum,
    best_slots,
    egalitarian_optimum,
    max_min_assignment,
)
from gym_fairbandits.spaces import Assignment

__all__ = ["EgalProblem", "EgalRecord", "Varied", "first_users", "objective_value"]

OBJECTIVES = ("egalitarian", "utilitarian")
_EXACT = '`exact_optimal_return` (`benchmark="exact"` of the wrappers)'


def objective_value(user_totals: Floats, objective: str) -> Any:
    """Return what users' totals are worth: their minimum or their mean.

    Args:
        user_totals: float64 array of shape ``(num_users,)`` or ``(n, num_users)``.
        objective: ``"egalitarian"`` or ``"utilitarian"``.

    Returns:
        A float, or a float64 array of shape ``(n,)``.
    """
    if objective == "utilitarian":
        return user_totals.mean(axis=-1)
    # A minimum does not depend on the way it is taken; these are the quickest for few users.
    if user_totals.ndim == 1:
        return min(user_totals.tolist())
    return np.minimum.reduce(user_totals.T.copy(), axis=0)


def first_users(places: Ints, size: int) -> Ints:
    """Return, for each entry of ``places``, the lowest index in its row with the same entry.

    Args:
        places: Numbers below ``size``, distinct between rows; int64 array ``(n, num_users)``.
        size: One more than the largest possible entry.
    """
    num_users = places.shape[-1]
    first = np.full(size, num_users, dtype=np.int64)
    np.minimum.at(first, places, np.broadcast_to(np.arange(num_users), places.shape))
    return first[places]


class EgalProblem(Clocked):
    """The parameters of the problem, checked, and what follows from them.

    Attributes:
        num_users: U.
        capacity: C, how many users one arm serves in a step.
        objective: ``"egalitarian"`` or ``"utilitarian"``.
    """

    _title = "Egalitarian assignment"
    num_users: int
    capacity: int
    objective: str

    def _take_arguments(
        self, num_users: int, num_arms: int | None, capacity: int, objective: str, instance: Any
    ) -> ArmSource:
        """Check the arguments and return the source of the arms."""
        self.num_users = checked_int("num_users", num_users)
        self.capacity = checked_int("capacity", capacity)
        self.objective = checked_choice("objective", objective, OBJECTIVES)
        source = self._make_source(instance, num_arms)
        check_room(self.num_users, source.num_arms, self.capacity)
        self.num_arms = source.num_arms
        return source

    def _make_source(self, instance: Any, num_arms: int | None) -> ArmSource:
        return egal_source(instance, self.num_users, num_arms, self.horizon)

    def _spaces(self) -> tuple[spaces.Dict, Assignment]:
        """Return the spaces of observations and of actions."""
        parts = {
            "pulls": observation_box("count", self.num_arms),
            "reward_sum": observation_box("sum", self.num_arms),
            "user_reward_sum": observation_box("sum", self.num_users),
        }
        action_space = Assignment(self.num_users, self.num_arms, self.capacity)
        return self._observation_space(parts), action_space

    def _new_history(self) -> AssignmentHistory:
        return AssignmentHistory()


@dataclass(frozen=True)
class Varied:
    """What arms that vary paid in expectation, in those rows of a record that have such arms.

    Attributes:
        rows: Places in the record, ascending; int64 array of shape ``(m,)``.
        laws: The arms of each.
        offers: What each arm would have paid in all steps played; float64 ``(m, num_arms)``.
        user_returns: What each user's arms paid; float64 array of shape ``(m, num_users)``.
    """

    rows: Ints
    laws: Sequence[Arms]
    offers: Floats
    user_returns: Floats

    def offers_of(self, place: int, played: int, steps: int | None) -> Floats:
        """Return what the arms of row ``rows[place]`` pay in ``steps`` steps, or in those played.

        Raises:
            NotImplementedError: If another number of steps depends on what would be played.
        """
        if steps is None or steps == played:
            offers: Floats = self.offers[place]
            return offers
        return self.laws[place].expected_totals(steps)


@dataclass(frozen=True)
class EgalRecord:
    """What was played in some episodes, one row each, and what it is worth in expectation.

    Attributes:
        means: Expected rewards; float64 array of shape ``(n, num_arms)``.
        counts: How often each user was on each arm; int64 ``(n, num_users, num_arms)``.
        user_reward_sum: Rewards per user; float64 array of shape ``(n, num_users)``.
        steps: Steps played; int64 array of shape ``(n,)``.
        capacity: Users per arm and step.
        objective: ``"egalitarian"`` or ``"utilitarian"``.
        varied: What is known of the rows whose arms vary; ``means`` says nothing of them.
    """

    means: Floats
    counts: Ints
    user_reward_sum: Floats
    steps: Ints
    capacity: int
    objective: str
    varied: Varied | None = None

    def optimal_return(self, steps: int | None = None) -> Floats:
        """Return :func:`gym_fairbandits.optimum.egalitarian_optimum` of ``steps`` steps.

        Where arms vary, :func:`gym_fairbandits.optimum.best_fixed_set_optimum`.
        """
        length: int | Ints = self.steps
        if steps is not None:
            length = checked_int("steps", steps, minimum=0)
        num_users = self.counts.shape[1]
        values = np.asarray(egalitarian_optimum(self.means, num_users, length, self.capacity))
        if self.varied is not None:
            for place, row in enumerate(self.varied.rows.tolist()):
                offers = self.varied.offers_of(place, int(self.steps[row]), steps)
                values[row] = best_fixed_set_optimum(offers, num_users, self.capacity)
        return values

    def exact_optimal_return(self, steps: int | None = None) -> Floats:
        """Return what the best schedule of ``steps`` steps, or as many as were played, reaches.

        Raises:
            ValueError: If arms vary, or :func:`gym_fairbandits.optimum.max_min_assignment` is
                not exact.
        """
        if self.varied is not None:
            raise ValueError(f"{_EXACT} must be used with arms whose means do not vary")
        if self.objective == "utilitarian":
            return self.optimal_return(steps)
        num_users = self.counts.shape[1]
        lengths = self.steps
        if steps is not None:
            lengths = np.full_like(lengths, checked_int("steps", steps, minimum=0))
        values = np.empty(len(lengths))
        for row, length in enumerate(lengths.tolist()):
            best = max_min_assignment(self.means[row], num_users, length, self.capacity)
            if not best.exact:
                raise ValueError(
                    f"{_EXACT} must be used at sizes where the optimum can be found: "
                    f"of {num_users} users, {self.means.shape[1]} arms and {length} steps it is "
                    f"only known to lie in [{best.lower}, {best.upper}]"
                )
            values[row] = best.lower
        return values

    def optimal_slots(self, steps: int) -> Ints:
        """Return an assignment of the highest total mean in ``steps`` steps, best arm first."""
        totals = self.means
        if self.varied is not None:
            totals = totals.copy()
            totals[self.varied.rows] = [law.expected_totals(steps) for law in self.varied.laws]
        return best_slots(totals, self.counts.shape[1], self.capacity)

    def expected_user_returns(self) -> Floats:
        """Return each user's expected total; float64 array of shape ``(n, num_users)``."""
        totals: Floats = (self.counts * self.means[:, None, :]).sum(axis=-1)
        if self.varied is not None:
            totals[self.varied.rows] = self.varied.user_returns
        return totals

    def realized_user_returns(self) -> Floats:
        """Return each user's realised total; float64 array of shape ``(n, num_users)``."""
        return self.user_reward_sum.copy()

    def expected_return(self) -> Floats:
        """Return the objective's value of the users' expected totals."""
        value: Floats = objective_value(self.expected_user_returns(), self.objective)
        return value

    def realized_return(self) -> Floats:
        """Return the objective's value of the users' realised totals."""
        value: Floats = objective_value(self.user_reward_sum, self.objective)
        return value
