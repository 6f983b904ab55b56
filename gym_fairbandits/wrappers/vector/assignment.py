"""Actions for learners, for vector environments of EgalAssign-v0.

:class:`SequentialAssignment <gym_fairbandits.wrappers.SequentialAssignment>` and
:class:`RotatedAssignment <gym_fairbandits.wrappers.RotatedAssignment>` have no counterpart here:
their steps differ from the environment's, and rows whose episodes end apart from each other would
fall out of step. Make a vector environment of wrapped ones instead, for example
``gym.make_vec("EgalAssign-v0", num_envs=8, vectorization_mode="sync",
wrappers=[SequentialAssignment])``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorActionWrapper, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gym_fairbandits.wrappers.codes import (
    checked_assignment,
    checked_assignment_space,
    checked_digits,
    checked_scores,
    enumeration,
    enumeration_keys,
    lehmer,
    lehmer_digits,
    lehmer_sizes,
    ranked,
    ranked_scores,
)

__all__ = ["EnumeratedAssignment", "LehmerAssignment", "RankedAssignment"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

if TYPE_CHECKING:
    _Base = VectorActionWrapper[Any, Any, Any, NDArray[Any]]
else:  # it is not generic before Gymnasium 1.4
    _Base = VectorActionWrapper


class _AssignmentActions(_Base):
    """A code of assignments for every row.

    Under NEXT_STEP, rows whose episodes ended in the step before start afresh and play nothing:
    their actions may be anything of the right type, as in a `SyncVectorEnv` of wrapped ones.
    """

    def __init__(self, env: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Wrap a vector environment.

        Raises:
            TypeError: If the single action space of ``env`` is not an ``Assignment``.
        """
        self._assignments = checked_assignment_space(env, "single_action_space")
        super().__init__(env)
        single = self._single_space()
        self.single_action_space = single
        self.action_space = batch_space(single, self.num_envs)
        self._waiting: Bools = np.zeros(self.num_envs, dtype=np.bool_)

    @abstractmethod
    def _single_space(self) -> gym.Space[Any]:
        """Return the action space of one row."""

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; see :meth:`gymnasium.vector.VectorEnv.reset`."""
        mask = (options or {}).get("reset_mask")  # first, as `SyncVectorEnv` takes it out
        outcome = self.env.reset(seed=seed, options=options)
        self._waiting = self._waiting & ~mask if mask is not None else np.zeros_like(self._waiting)
        return outcome

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step with the assignments of ``actions``; see :meth:`gymnasium.vector.VectorEnv.step`.

        Raises:
            InvalidAction: If ``actions`` are not of the action space; no row has moved then.
        """
        outcome = super().step(actions)
        if self.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP:
            self._waiting = np.logical_or(outcome[2], outcome[3])
        return outcome

    def _checked_digits(self, actions: Any, sizes: int | Ints) -> Ints:
        """Return int64 digits, 0 in the rows that play nothing."""
        shape = self.action_space.shape or ()
        rows = ~self._waiting if self._waiting.any() else None
        return checked_digits("actions", actions, sizes, shape, rows)

    def _checked_assignments(self, assignments: Any) -> Ints:
        batch: Any = batch_space(self._assignments, self.num_envs)
        return checked_assignment("assignments", assignments, batch)


class RankedAssignment(_AssignmentActions):
    """The wrapper :class:`gym_fairbandits.wrappers.RankedAssignment`, for vector environments.

    Action space: a ``Box`` of shape ``(num_envs, C K)``, for K arms of capacity C.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import RankedAssignment
        >>> envs = gym.make_vec("EgalAssign-v0", num_envs=2, num_users=2, num_arms=3)
        >>> envs = RankedAssignment(envs)
        >>> envs.actions([[0.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
        array([[1, 2],
               [0, 1]])
    """

    def _single_space(self) -> gym.Space[Any]:
        num_slots = self._assignments.capacity * self._assignments.num_arms
        return spaces.Box(-1, 1, (num_slots,), np.float32)

    def actions(self, actions: Any) -> Ints:
        """Return the assignments of actions; int64 array of shape ``(num_envs, num_users)``.

        Args:
            actions: Real numbers of shape ``(num_envs, C K)`` and any dtype.

        Raises:
            InvalidAction: If ``actions`` have another shape, or hold anything but real numbers.
        """
        scores = checked_scores("actions", actions, self.action_space.shape or ())
        return ranked(scores, self._assignments.num_users, self._assignments.capacity)

    def to_actions(self, assignments: Any) -> NDArray[np.float32]:
        """Return actions that give ``assignments``; float32 array of shape ``(num_envs, C K)``.

        Raises:
            InvalidAction: If ``assignments`` are not legal.
        """
        arms = self._checked_assignments(assignments)
        return ranked_scores(arms, self._assignments.num_arms, self._assignments.capacity)


class LehmerAssignment(_AssignmentActions):
    """The wrapper :class:`gym_fairbandits.wrappers.LehmerAssignment`, for vector environments.

    Action space: what Gymnasium makes of ``num_envs`` MultiDiscrete, a ``Box`` int64 of shape
    ``(num_envs, num_users)``.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import LehmerAssignment
        >>> envs = gym.make_vec("EgalAssign-v0", num_envs=2, num_users=3, num_arms=4)
        >>> envs = LehmerAssignment(envs)
        >>> envs.actions([[1, 1, 1], [3, 0, 0]])
        array([[1, 2, 3],
               [3, 0, 1]])
    """

    def _single_space(self) -> gym.Space[Any]:
        self._sizes = lehmer_sizes(
            self._assignments.num_users, self._assignments.num_arms, self._assignments.capacity
        )
        return spaces.MultiDiscrete(self._sizes)

    def actions(self, actions: Any) -> Ints:
        """Return the assignments of actions; int64 array of shape ``(num_envs, num_users)``.

        Args:
            actions: Integers of shape ``(num_envs, num_users)``.

        Raises:
            InvalidAction: If ``actions`` have another shape, hold anything but integers, or a
                digit of a row that plays is out of range.
        """
        return lehmer(self._checked_digits(actions, self._sizes), self._assignments.capacity)

    def to_actions(self, assignments: Any) -> Ints:
        """Return actions that give ``assignments``; int64 array ``(num_envs, num_users)``.

        Raises:
            InvalidAction: If ``assignments`` are not legal.
        """
        return lehmer_digits(self._checked_assignments(assignments), self._assignments.capacity)


class EnumeratedAssignment(_AssignmentActions):
    """The wrapper :class:`gym_fairbandits.wrappers.EnumeratedAssignment`, for vector environments.

    Action space: what Gymnasium makes of ``num_envs`` Discrete, a ``MultiDiscrete`` of shape
    ``(num_envs,)``.

    Attributes:
        table: The assignments; int64 array of shape ``(n, num_users)``, read-only.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers.vector import EnumeratedAssignment
        >>> envs = gym.make_vec("EgalAssign-v0", num_envs=2, num_users=2, num_arms=3)
        >>> envs = EnumeratedAssignment(envs)
        >>> envs.actions([0, 3])
        array([[0, 1],
               [1, 2]])
    """

    def _single_space(self) -> gym.Space[Any]:
        self.table = enumeration(
            self._assignments.num_users, self._assignments.num_arms, self._assignments.capacity
        )
        self._keys = enumeration_keys(self.table, self._assignments.num_arms)
        return spaces.Discrete(len(self.table))

    def actions(self, actions: Any) -> Ints:
        """Return the assignments of actions; int64 array of shape ``(num_envs, num_users)``.

        Args:
            actions: Integers of shape ``(num_envs,)``.

        Raises:
            InvalidAction: If ``actions`` have another shape, hold anything but integers, or that
                of a row that plays is out of range.
        """
        return self.table[self._checked_digits(actions, len(self.table))]

    def to_actions(self, assignments: Any) -> Ints:
        """Return the numbers of ``assignments``; int64 array of shape ``(num_envs,)``.

        Raises:
            InvalidAction: If ``assignments`` are not legal.
        """
        arms = self._checked_assignments(assignments)
        keys = enumeration_keys(arms, self._assignments.num_arms)
        return np.searchsorted(self._keys, keys).astype(np.int64, copy=False)
