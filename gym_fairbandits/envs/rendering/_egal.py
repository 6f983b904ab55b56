"""A frame of ``EgalAssign-v0`` as data, and what is kept of an episode for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.envs.rendering._parts import (
    Axis,
    Gap,
    Heading,
    axis_around,
    cut,
    heading,
    number,
)

__all__ = ["ArmEstimate", "AssignmentHistory", "EgalScene", "UserTotal", "egal_scene"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BOTTOM_USERS = 8  # of the users shown one by one, how many are the worst off


class AssignmentHistory:
    """The latest assignment.

    Attributes:
        arms: The arm of each user; ``None`` before the first step.
    """

    def __init__(self) -> None:
        """Start an episode."""
        self.arms: list[int] | None = None

    def add(self, arms: Ints) -> None:
        """Keep an assignment; int64 array of shape ``(num_users,)``."""
        self.arms = arms.tolist()


@dataclass(frozen=True)
class UserTotal:
    """A user.

    Attributes:
        user: Its index.
        total: Its cumulative reward.
        arm: The arm that it is on; ``None`` before the first step.
        is_worst_off: Whether no user has less; nobody is before the first step.
    """

    user: int
    total: float
    arm: int | None
    is_worst_off: bool


@dataclass(frozen=True)
class ArmEstimate:
    """An arm that serves users.

    Attributes:
        arm: Its index.
        pulls: How often it paid.
        mean: The mean of what it paid; ``None`` before the first time.
        users: Who is on it now.
        true_mean: Its expected reward; ``None`` unless it is revealed.
    """

    arm: int
    pulls: int
    mean: float | None
    users: tuple[int, ...]
    true_mean: float | None


@dataclass(frozen=True)
class EgalScene:
    """A frame of ``EgalAssign-v0``.

    Attributes:
        heading: The top.
        users: The users that are shown: all by index, or the best and the worst off.
        user_gap: The users that are left out between these, if any.
        total_axis: The totals that their bars are drawn over.
        arms: The arms that are shown, by index: those of the shown users, then the most pulled.
        arm_gap: The arms that are left out, if any; noted at the end.
        mean_axis: The means that their bars are drawn over.
    """

    heading: Heading
    users: tuple[UserTotal, ...]
    user_gap: Gap | None
    total_axis: Axis
    arms: tuple[ArmEstimate, ...]
    arm_gap: Gap | None
    mean_axis: Axis


def egal_scene(
    *,
    title: str,
    steps: int,
    horizon: int | None,
    readouts: Mapping[str, float],
    objective: str,
    pulls: Ints,
    reward_sum: Floats,
    user_reward_sum: Floats,
    history: AssignmentHistory,
    true_means: Floats | None,
) -> EgalScene:
    """Return the scene of one episode; see :func:`heading` for the first arguments.

    Args:
        title: Which environment this is.
        steps: Steps played.
        horizon: Steps of the episode; ``None`` where the learner is not told.
        readouts: What wrappers add.
        objective: ``"egalitarian"`` or ``"utilitarian"``.
        pulls: How often each arm paid; int64 array of shape ``(num_arms,)``.
        reward_sum: Rewards per arm; float64 array of shape ``(num_arms,)``.
        user_reward_sum: Rewards per user; float64 array of shape ``(num_users,)``.
        history: The latest step.
        true_means: The hidden means, float64 ``(num_arms,)``, if they are revealed.
    """
    totals, counts = user_reward_sum.tolist(), pulls.tolist()
    lowest = min(totals)
    worst = [user for user, total in enumerate(totals) if history.arms and total == lowest]

    ranking = sorted(range(len(totals)), key=lambda user: -totals[user])
    shown, position, left_out = cut(ranking, _BOTTOM_USERS, [])
    user_gap = None
    if left_out:
        between = [totals[user] for user in left_out]
        span = f"{number(min(between))} to {number(max(between))}"
        user_gap = Gap(position, f"{len(left_out)} more, totals {span}")
    users = tuple(
        UserTotal(
            user=user,
            total=totals[user],
            arm=None if history.arms is None else history.arms[user],
            is_worst_off=user in worst,
        )
        for user in shown
    )

    on_arm: dict[int, list[int]] = {}
    for user, arm in enumerate(history.arms or []):
        on_arm.setdefault(arm, []).append(user)
    in_use = {user.arm for user in users}
    ranked = sorted(range(len(counts)), key=lambda arm: (arm not in in_use, -counts[arm]))
    chosen, _, rest = cut(ranked, 0, [])
    arm_gap = None
    if rest:
        total = sum(counts[arm] for arm in rest)
        arm_gap = Gap(len(chosen), f"{len(rest)} more arms, {number(total)} pulls in all")
    arms = tuple(
        ArmEstimate(
            arm=arm,
            pulls=counts[arm],
            mean=float(reward_sum[arm]) / counts[arm] if counts[arm] else None,
            users=tuple(on_arm.get(arm, ())),
            true_mean=None if true_means is None else float(true_means[arm]),
        )
        for arm in sorted(chosen)
    )

    is_minimum = objective == "egalitarian"
    facts = [
        ("lowest total" + " (the return)" * is_minimum, number(lowest)),
        ("mean total" + " (the return)" * (not is_minimum), number(sum(totals) / len(totals))),
        ("worst off", _who(worst)),
    ]
    estimates = [value for arm in arms for value in (arm.mean, arm.true_mean) if value is not None]
    return EgalScene(
        heading=heading(title, steps, horizon, facts, readouts),
        users=users,
        user_gap=user_gap,
        total_axis=axis_around(totals),
        arms=arms,
        arm_gap=arm_gap,
        mean_axis=axis_around(estimates),
    )


def _who(users: Sequence[int]) -> str:
    if not users:
        return "-"
    return f"user {users[0]}" if len(users) == 1 else f"{len(users)} users"
