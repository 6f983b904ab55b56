"""Actions for learners of EgalAssign-v0: whatever the learner emits, no arm is overfull.

Learners know Box, Discrete and MultiDiscrete, but no assignments, and a MultiDiscrete collides.
Which wrapper for which algorithm:

- :class:`RankedAssignment`, a Box of scores: PPO, A2C, SAC, TD3;
- :class:`LehmerAssignment`, a MultiDiscrete: PPO, A2C;
- :class:`EnumeratedAssignment`, a Discrete, in small cases: DQN, PPO, A2C;
- :class:`SequentialAssignment`, a Discrete, one user at a time: MaskablePPO of sb3-contrib;
- :class:`RotatedAssignment`, a Box of scores: the learner chooses only which arms, and the users
  take turns on them.

The maps themselves are in :mod:`gym_fairbandits.wrappers.codes`.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from gym_fairbandits.spaces import rotation
from gym_fairbandits.wrappers.codes import (
    block_length,
    block_scores,
    block_slots,
    checked_assignment,
    checked_assignment_space,
    checked_digits,
    checked_index,
    checked_scores,
    enumeration,
    enumeration_keys,
    lehmer,
    lehmer_digits,
    lehmer_sizes,
    ranked,
    ranked_scores,
)
from gym_fairbandits.wrappers.sequential import SequentialAssignment

__all__ = [
    "EnumeratedAssignment",
    "LehmerAssignment",
    "RankedAssignment",
    "RotatedAssignment",
    "SequentialAssignment",
]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Outcome = tuple[Any, Any, bool, bool, dict[str, Any]]


class RankedAssignment(gym.ActionWrapper[Any, Floats, Ints], RecordConstructorArgs):
    """The action is a score per arm, and user u gets the u-th best arm.

    Action space: ``Box(-1, 1, (C K,), float32)``, for K arms of capacity C: slot s is arm s // C.
    Equal scores rank in the order of the slots, so that the ties that clipping makes do no harm;
    NaN ranks after all numbers. Any real numbers of this shape are taken, also beyond the bounds.
    Every legal assignment has actions that give it.

    Example:
        >>> import gymnasium as gym
        >>> import numpy as np
        >>> from gym_fairbandits.wrappers import RankedAssignment
        >>> env = RankedAssignment(gym.make("EgalAssign-v0", num_users=3, num_arms=4))
        >>> env.action(np.array([0.5, -1.0, 1.0, 0.5]))
        array([2, 0, 3])
    """

    def __init__(self, env: gym.Env[Any, Ints]) -> None:
        """Wrap an environment.

        Raises:
            TypeError: If the action space of ``env`` is not an ``Assignment``.
        """
        self._assignments = checked_assignment_space(env, "action_space")
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        num_slots = self._assignments.capacity * self._assignments.num_arms
        self.action_space = spaces.Box(-1, 1, (num_slots,), np.float32)

    def action(self, action: Any) -> Ints:
        """Return the assignment of an action.

        Args:
            action: Real numbers of shape ``(C K,)`` and any dtype.

        Returns:
            A new int64 array of shape ``(num_users,)``.

        Raises:
            InvalidAction: If ``action`` has another shape, or holds anything but real numbers.
        """
        scores = checked_scores("action", action, self.action_space.shape or ())
        return ranked(scores, self._assignments.num_users, self._assignments.capacity)

    def to_action(self, assignment: Any) -> NDArray[np.float32]:
        """Return an action that gives ``assignment``; float32 array of shape ``(C K,)``.

        Raises:
            InvalidAction: If ``assignment`` is not legal.
        """
        arms = checked_assignment("assignment", assignment, self._assignments)
        return ranked_scores(arms, self._assignments.num_arms, self._assignments.capacity)


class LehmerAssignment(gym.ActionWrapper[Any, Ints, Ints], RecordConstructorArgs):
    """The action is a Lehmer code: digit u counts off user u's arm among those still free.

    Action space: ``MultiDiscrete([M, M - 1, ..., M - U + 1])``, for U users and the M = C K slots
    of K arms of capacity C: slot s is arm s // C. At capacity 1, where slots are arms, actions
    and legal assignments are in bijection; else every assignment has actions that give it.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import LehmerAssignment
        >>> env = LehmerAssignment(gym.make("EgalAssign-v0", num_users=3, num_arms=4))
        >>> env.action([1, 1, 1])  # arm 1, then the second of 0, 2, 3, then that of 0, 3
        array([1, 2, 3])
    """

    def __init__(self, env: gym.Env[Any, Ints]) -> None:
        """Wrap an environment.

        Raises:
            TypeError: If the action space of ``env`` is not an ``Assignment``.
        """
        self._assignments = checked_assignment_space(env, "action_space")
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        self._sizes = lehmer_sizes(
            self._assignments.num_users, self._assignments.num_arms, self._assignments.capacity
        )
        self.action_space = spaces.MultiDiscrete(self._sizes)

    def action(self, action: Any) -> Ints:
        """Return the assignment of an action.

        Args:
            action: Integers of shape ``(num_users,)``, of any integer dtype or in a list.

        Returns:
            A new int64 array of shape ``(num_users,)``.

        Raises:
            InvalidAction: If ``action`` has another shape, holds anything but integers, or a
                digit is out of range.
        """
        digits = checked_digits("action", action, self._sizes, self._sizes.shape)
        return lehmer(digits, self._assignments.capacity)

    def to_action(self, assignment: Any) -> Ints:
        """Return an action that gives ``assignment``; int64 array of shape ``(num_users,)``.

        Raises:
            InvalidAction: If ``assignment`` is not legal.
        """
        arms = checked_assignment("assignment", assignment, self._assignments)
        return lehmer_digits(arms, self._assignments.capacity)


class EnumeratedAssignment(gym.ActionWrapper[Any, np.int64, Ints], RecordConstructorArgs):
    """The action is the number of a legal assignment, all of them in lexicographic order.

    Action space: ``Discrete(n)``; for U users and K arms n is K! / (K - U)! at capacity 1. More
    than 100,000 are refused: the other wrappers of this module have no limit.

    Attributes:
        table: The assignments; int64 array of shape ``(n, num_users)``, read-only.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import EnumeratedAssignment
        >>> env = EnumeratedAssignment(gym.make("EgalAssign-v0", num_users=2, num_arms=3))
        >>> env.table.tolist()
        [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
        >>> env.action(3)
        array([1, 2])
    """

    def __init__(self, env: gym.Env[Any, Ints]) -> None:
        """Wrap an environment.

        Raises:
            TypeError: If the action space of ``env`` is not an ``Assignment``.
            ValueError: If there are more than 100,000 legal assignments.
        """
        self._assignments = checked_assignment_space(env, "action_space")
        self.table = enumeration(
            self._assignments.num_users, self._assignments.num_arms, self._assignments.capacity
        )
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        self._keys = enumeration_keys(self.table, self._assignments.num_arms)
        self.action_space = spaces.Discrete(len(self.table))

    def action(self, action: Any) -> Ints:
        """Return the assignment of an action.

        Args:
            action: An integer; also an array of shape ``()`` and any integer dtype.

        Returns:
            A new int64 array of shape ``(num_users,)``.

        Raises:
            InvalidAction: If ``action`` is anything but an integer, or out of range.
        """
        arms: Ints = self.table[checked_index("action", action, len(self.table))]
        return arms.copy()

    def to_action(self, assignment: Any) -> np.int64:
        """Return the number of ``assignment``.

        Raises:
            InvalidAction: If ``assignment`` is not legal.
        """
        arms = checked_assignment("assignment", assignment, self._assignments)
        key = enumeration_keys(arms, self._assignments.num_arms)
        return np.int64(np.searchsorted(self._keys, key))


class RotatedAssignment(gym.Wrapper[Any, Any, Any, Ints], RecordConstructorArgs):
    """The action is a set of arms, on which the users then take turns: fair by construction.

    Action space: ``Box(-1, 1, (num_arms,), float32)``, a score per arm, ranked as by
    :class:`RankedAssignment`. If the capacity C divides the number U of users, the G = U / C best
    arms are played for G steps: in step i, group g of C users (users g C to g C + C - 1) plays
    arm number (g - i) mod G. Else the ceil(U / C) best arms are U slots, of which all but the
    last arm have C, and the users rotate over these for U steps. So in each block every user has
    every slot once, and all earn the same in expectation; what remains to be learned is which
    arms. The same rotation serves :class:`gym_fairbandits.agents.EgalUCB`.

    A step here is such a block: its reward is the sum of the rewards, its info the last one, with
    ``user_rewards`` summed. It stops early when the episode ends. A limit of steps inside counts
    the environment's steps, one outside counts blocks, and a discount applies to each block.
    Vector environments are made of wrapped ones: ``gym.make_vec("EgalAssign-v0", num_envs=8,
    vectorization_mode="sync", wrappers=[RotatedAssignment])``.

    Attributes:
        block_length: Steps of the environment in a block that is not cut short.

    Example:
        >>> import gymnasium as gym
        >>> import numpy as np
        >>> from gym_fairbandits.wrappers import RotatedAssignment
        >>> arms = {"family": "gaussian", "means": [0.9, 0.5, 0.1], "std": 0.0}
        >>> env = gym.make("EgalAssign-v0", instance=arms, num_users=2)
        >>> env = RotatedAssignment(env)
        >>> _ = env.reset(seed=0)
        >>> _, reward, _, _, info = env.step(np.array([1.0, 0.0, -1.0]))
        >>> round(reward, 3), info["user_rewards"]
        (1.4, array([1.4, 1.4]))
    """

    def __init__(self, env: gym.Env[Any, Ints]) -> None:
        """Wrap an environment.

        Raises:
            TypeError: If the action space of ``env`` is not an ``Assignment``.
        """
        self._assignments = checked_assignment_space(env, "action_space")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.block_length = block_length(self._assignments.num_users, self._assignments.capacity)
        self.action_space = spaces.Box(-1, 1, (self._assignments.num_arms,), np.float32)

    def rotation(self, action: Any) -> Ints:
        """Return the assignments of the block that ``action`` stands for.

        Args:
            action: Real numbers of shape ``(num_arms,)`` and any dtype.

        Returns:
            A new int64 array of shape ``(block_length, num_users)``.

        Raises:
            InvalidAction: If ``action`` has another shape, or holds anything but real numbers.
        """
        num_users = self._assignments.num_users
        scores = checked_scores("action", action, (self._assignments.num_arms,))
        slots = block_slots(scores, num_users, self._assignments.capacity)
        places = np.arange(self.block_length)
        return rotation(np.broadcast_to(slots, (len(places), len(slots))), places, num_users)

    def step(self, action: Any) -> Outcome:
        """Play a block; see the class.

        Raises:
            ResetNeeded: Where the environment does: before ``reset``, and after an end.
            InvalidAction: If ``action`` has another shape, or holds anything but real numbers.
        """
        total: Any = None
        user_totals: Any = None
        for arms in self.rotation(action):
            observation, reward, terminated, truncated, info = self.env.step(arms)
            total = reward if total is None else total + reward
            if "user_rewards" in info:
                earned = info["user_rewards"]
                user_totals = earned if user_totals is None else user_totals + earned
                info = {**info, "user_rewards": user_totals}
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info

    def to_action(self, assignment: Any) -> NDArray[np.float32]:
        """Return an action whose block begins with ``assignment``; float32 ``(num_arms,)``.

        Raises:
            InvalidAction: If ``assignment`` is not legal, or begins no block: users 0 to C - 1
                must share an arm, the next C another, and so on, as at capacity 1 they all do.
        """
        capacity = self._assignments.capacity
        arms = checked_assignment("assignment", assignment, self._assignments)
        action = block_scores(arms, self._assignments.num_arms, capacity)
        if not np.array_equal(self.rotation(action)[0], arms):
            raise InvalidAction(
                f"`assignment` must give each {capacity} users in a row one arm, as blocks do, "
                f"got {arms.tolist()}"
            )
        return action
