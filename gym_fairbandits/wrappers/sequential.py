"""Assignments of EgalAssign-v0 one user at a time, for learners that know masks."""

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
from gym_fairbandits.wrappers.codes import (
    checked_assignment,
    checked_assignment_space,
    checked_index,
)

__all__ = ["SequentialAssignment"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Outcome = tuple[Any, Any, bool, bool, dict[str, Any]]


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
