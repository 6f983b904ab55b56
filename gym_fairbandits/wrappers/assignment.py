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

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_bool
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

__all__ = [
    "EnumeratedAssignment",
    "LehmerAssignment",
    "RankedAssignment",
    "RotatedAssignment",
    "SequentialAssignment",
]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
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


class SequentialAssignment(gym.Wrapper[Any, Any, Any, Ints], RecordConstructorArgs):
    """The users choose one after the other, an arm per substep; then the environment steps.

    Action space: ``Discrete(num_arms)``, the arm of the user on turn. :meth:`action_masks` tells
    which arms have a place left. MaskablePPO of sb3-contrib calls it by itself; evaluate with the
    ``evaluate_policy`` and ``MaskableEvalCallback`` of sb3-contrib, as those of
    Stable-Baselines3 know no masks. An arm that is full means the next one with a place, upward
    and cyclically, so that unmasked actions cannot collide either.

    Observation space: the environment's ``Dict`` with

    - ``turn``, the number of the user on turn, ``Box`` int64 of shape ``(1,)``;
    - ``taken``, how many users have each arm in this round, ``Box`` int64 ``(num_arms,)``.

    The last of a round's ``num_users`` substeps steps the environment and returns its reward,
    end and info. The others return reward 0.0, no end, an empty info and, but for ``turn`` and
    ``taken``, a copy of the latest observation.

    A limit of steps inside counts rounds, as ``gym.make("EgalAssign-v0", max_episode_steps=...)``
    has it; a ``TimeLimit`` around this wrapper counts substeps and may cut a round, which then is
    never played. Statistics outside count substeps too, and a discount applies to each. An
    ``Autoreset`` belongs outside. Vector environments are made of wrapped ones:
    ``gym.make_vec("EgalAssign-v0", num_envs=8, vectorization_mode="sync",
    wrappers=[SequentialAssignment])``.

    Attributes:
        strict: Whether a full arm raises ``InvalidAction`` instead.

    Example:
        >>> import gymnasium as gym
        >>> from gym_fairbandits.wrappers import SequentialAssignment
        >>> env = SequentialAssignment(gym.make("EgalAssign-v0", num_users=2, num_arms=3))
        >>> _ = env.reset(seed=0)
        >>> observation, reward, *_ = env.step(1)
        >>> observation["turn"], observation["taken"], reward
        (array([1]), array([0, 1, 0]), 0.0)
        >>> env.action_masks()
        array([ True, False,  True])
    """

    def __init__(self, env: gym.Env[Any, Ints], strict: bool = False) -> None:
        """Wrap an environment.

        Args:
            env: An environment whose observations are a ``Dict``.
            strict: Whether a full arm raises ``InvalidAction`` instead of meaning the next.

        Raises:
            TypeError: If the action space of ``env`` is not an ``Assignment``, if its
                observation space is not a ``Dict``, or if ``strict`` is not a bool.
            ValueError: If the observation already has ``turn`` or ``taken``.
        """
        self._assignments = checked_assignment_space(env, "action_space")
        if not isinstance(env.observation_space, spaces.Dict):
            raise TypeError(
                "`env` must have a Dict observation space (wrappers that flatten it belong "
                f"outside), got {env.observation_space}"
            )
        parts = dict(env.observation_space.spaces)
        for name in ("turn", "taken"):
            if name in parts:
                raise ValueError(f"`env` must not observe `{name}` already, got {parts[name]}")
        self.strict = checked_bool("strict", strict)
        RecordConstructorArgs.__init__(self, strict=self.strict)
        gym.Wrapper.__init__(self, env)
        users, arms = self._assignments.num_users, self._assignments.num_arms
        most = min(self._assignments.capacity, users)
        # Checkers warn of a box without width, which one user's turn would have.
        parts["turn"] = spaces.Box(0, max(users - 1, 1), (1,), np.int64)
        parts["taken"] = spaces.Box(0, most, (arms,), np.int64)
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Discrete(arms)
        self._running = False
        self._observation: dict[str, Any] = {}  # the latest of `env`, our own copy
        self._clear()

    def _clear(self) -> None:
        self._arms: list[int] = []  # of the users before the one on turn
        self._taken: Ints = np.zeros(self._assignments.num_arms, dtype=np.int64)

    def _extended(self, observation: dict[str, Any]) -> dict[str, Any]:
        turn = np.array([len(self._arms)], dtype=np.int64)
        return {**observation, "turn": turn, "taken": self._taken.copy()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode, with user 0 on turn; see :meth:`gymnasium.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._clear()
        self._observation, self._running = _copied(observation), True
        return self._extended(observation), info

    def action_masks(self) -> Bools:
        """Return which arms have a place left; bool array of shape ``(num_arms,)``."""
        free: Bools = self._taken < self._assignments.capacity
        return free

    def step(self, action: Any) -> Outcome:
        """Give an arm to the user on turn, and step the environment if that was the last user.

        Args:
            action: The arm: an integer, also an array of shape ``()`` and any integer dtype.

        Returns:
            As :meth:`gymnasium.Env.step`; see the class for what substeps return.

        Raises:
            ResetNeeded: Before the first ``reset``, and after the end of an episode.
            InvalidAction: If ``action`` is anything but an integer or out of range, or if
                ``strict`` and the arm is full. Nothing has changed then: the user may try again.
        """
        if not self._running:
            why = "the episode has ended" if self._observation else "no episode is running"
            raise ResetNeeded(f"call `reset` before `step`: {why}")
        arm = self._free_arm(checked_index("action", action, self._assignments.num_arms))
        if len(self._arms) < self._assignments.num_users - 1:
            self._arms.append(arm)
            self._taken[arm] += 1
            return self._extended(_copied(self._observation)), 0.0, False, False, {}
        arms = np.array([*self._arms, arm], dtype=np.int64)
        observation, reward, terminated, truncated, info = self.env.step(arms)
        self._clear()
        self._observation = _copied(observation)
        self._running = not (terminated or truncated)
        return self._extended(observation), reward, terminated, truncated, info

    def _free_arm(self, arm: int) -> int:
        if self._taken[arm] < self._assignments.capacity:
            return arm
        free = self.action_masks()
        if self.strict:
            raise InvalidAction(
                "`action` must be an arm with a place left, of "
                f"{np.flatnonzero(free).tolist()}, got arm {arm} for user {len(self._arms)}"
            )
        return int((arm + np.roll(free, -arm).argmax()) % len(free))

    def to_action(self, assignment: Any) -> Ints:
        """Return the actions of the substeps that give ``assignment``, in their order.

        Returns:
            int64 array of shape ``(num_users,)``: the arms themselves.

        Raises:
            InvalidAction: If ``assignment`` is not legal.
        """
        return checked_assignment("assignment", assignment, self._assignments)


def _copied(observation: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.copy() if isinstance(value, np.ndarray) else deepcopy(value)
        for name, value in observation.items()
    }


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
