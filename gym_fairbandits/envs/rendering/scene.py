"""What a frame shows, as data: computed once, then drawn as text or as a picture.

A scene holds only what the learner saw; the hidden parameters enter where the user asks for them
with ``render_reveal=True``. Long lists are cut here, so that both painters cut them alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._grid import CurveGrid

__all__ = [
    "ROWS",
    "ArmCurve",
    "ArmEstimate",
    "AssignmentHistory",
    "Axis",
    "CurveHistory",
    "EgalScene",
    "Gap",
    "Heading",
    "ImprovingScene",
    "Scene",
    "UserTotal",
    "egal_scene",
    "heading",
    "improving_scene",
    "number",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Point = tuple[int, float]

ROWS = 16  # arms or users that a frame shows one by one; more would be too small to read
_BOTTOM_ARMS = 4  # of those, how many are the least pulled
_BOTTOM_USERS = 8  # of those, how many are the worst off
_POINTS = 256  # rewards kept of each arm: about one per column of a picture
_UNSEEN_POINTS = 65
_ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # times a power of ten: where axes may end


# --- What is kept of an episode while it is rendered --------------------------------------------


class CurveHistory:
    """The rewards that each improving arm was seen to pay, thinned to a fixed number.

    Attributes:
        latest: The arm pulled last, ``None`` before the first pull.
    """

    def __init__(self, num_arms: int) -> None:
        """Start an episode."""
        self.latest: int | None = None
        self._points: list[list[Point]] = [[] for _ in range(num_arms)]
        self._strides = [1] * num_arms

    def add(self, arm: int, pull: int, reward: float) -> None:
        """Keep what pull number ``pull`` of an arm paid, or every second, fourth, ... such."""
        self.latest = arm
        if (pull - 1) % self._strides[arm] == 0:
            points = self._points[arm]
            points.append((pull, reward))
            if len(points) > _POINTS:
                del points[1::2]
                self._strides[arm] *= 2

    def seen(self, arm: int, pulls: int, last_reward: float) -> tuple[Point, ...]:
        """Return the kept ``(pull, reward)`` of an arm, the first and the latest among them."""
        points = self._points[arm]
        if not points or points[-1][0] == pulls:
            return tuple(points)
        return (*points, (pulls, last_reward))


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


# --- Scenes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heading:
    """The top of a frame.

    Attributes:
        title: Which environment this is.
        facts: Labels and values, such as ``("step", "37")``.
    """

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Axis:
    """A range of values with round ends; it holds 0.

    Attributes:
        low: Its lower end.
        high: Its upper end.
    """

    low: float
    high: float

    @property
    def span(self) -> str:
        """The ends in words."""
        return f"from {self.low:g} to {self.high:g}"

    def place(self, value: float) -> float:
        """Return where ``value`` lies between the ends, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Gap:
    """Rows that are left out.

    Attributes:
        position: How many rows are shown above them.
        note: How many they are, and what they add up to.
    """

    position: int
    note: str


@dataclass(frozen=True)
class ArmCurve:
    """An improving arm.

    Attributes:
        arm: Its index.
        pulls: How often it was pulled.
        last_reward: What the latest of these paid; ``None`` before the first.
        seen: Pull numbers and the rewards that were seen, at most some hundred of them.
        unseen: The expected rewards of pulls to come; empty unless they are revealed.
        is_latest: Whether this arm was pulled in the latest step.
    """

    arm: int
    pulls: int
    last_reward: float | None
    seen: tuple[Point, ...]
    unseen: tuple[Point, ...]
    is_latest: bool


@dataclass(frozen=True)
class ImprovingScene:
    """A frame of ``ImprovingBandit-v0``.

    Attributes:
        heading: The top.
        arms: The arms that are shown: all of them by index, or the most and the least pulled.
        gap: The arms that are left out between these, if any.
        pull_axis: The pulls that the curves are drawn over.
        most_pulls: The highest count of any arm, at least 1: the longest bar.
        reward_axis: The rewards that they are drawn over.
    """

    heading: Heading
    arms: tuple[ArmCurve, ...]
    gap: Gap | None
    pull_axis: Axis
    most_pulls: int
    reward_axis: Axis


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


Scene: TypeAlias = ImprovingScene | EgalScene


def heading(
    title: str,
    steps: int,
    horizon: int | None,
    facts: Sequence[tuple[str, str]],
    readouts: Mapping[str, float],
) -> Heading:
    """Return the top of a frame.

    Args:
        title: Which environment this is.
        steps: Steps played.
        horizon: Steps of the episode; ``None`` where the learner is not told.
        facts: What the environment adds.
        readouts: What wrappers add; NaN is left blank. They may still speak of the last episode
            when a vector environment has just begun a new one, so before the first step they
            are left blank too.
    """
    step = f"{steps}" if horizon is None else f"{steps} of {horizon}"
    extra = [
        (label, "-" if steps == 0 or math.isnan(value) else number(value))
        for label, value in readouts.items()
    ]
    return Heading(title, (("step", step), *facts, *extra))


def improving_scene(
    *,
    title: str,
    steps: int,
    horizon: int | None,
    readouts: Mapping[str, float],
    pulls: Ints,
    reward_sum: Floats,
    last_reward: Floats,
    history: CurveHistory,
    grid: CurveGrid | None,
    row: int,
) -> ImprovingScene:
    """Return the scene of one episode; see :func:`heading` for the first arguments.

    Args:
        title: Which environment this is.
        steps: Steps played.
        horizon: Steps of the episode; ``None`` where the learner is not told.
        readouts: What wrappers add.
        pulls: Pulls per arm; int64 array of shape ``(num_arms,)``.
        reward_sum: Rewards per arm; float64 array of shape ``(num_arms,)``.
        last_reward: The latest reward of each arm; float64 array of shape ``(num_arms,)``.
        history: What was seen.
        grid: The hidden curves, if they are revealed.
        row: The row of ``grid``.
    """
    counts, latest = pulls.tolist(), history.latest
    ranking = sorted(range(len(counts)), key=lambda arm: -counts[arm])
    shown, position, left_out = _cut(ranking, _BOTTOM_ARMS, [] if latest is None else [latest])
    gap = None
    if left_out:
        total = sum(counts[arm] for arm in left_out)
        gap = Gap(position, f"{len(left_out)} more arms, {number(total)} pulls in all")
    most = max(counts)
    limit = _round_up(max(most, 10)) if grid is None else max(most, horizon or 0, 2)
    arms = tuple(
        ArmCurve(
            arm=arm,
            pulls=counts[arm],
            last_reward=float(last_reward[arm]) if counts[arm] else None,
            seen=history.seen(arm, counts[arm], float(last_reward[arm])),
            unseen=_unseen(grid, row, arm, counts[arm], limit),
            is_latest=arm == latest,
        )
        for arm in shown
    )
    facts = [("total reward", number(float(reward_sum.sum())))]
    if latest is None:
        facts.append(("latest pull", "-"))
    else:
        facts.append(("latest pull", f"arm {latest} paid {number(float(last_reward[latest]))}"))
    return ImprovingScene(
        heading=heading(title, steps, horizon, facts, readouts),
        arms=arms,
        gap=gap,
        pull_axis=Axis(0, limit),
        most_pulls=max(most, 1),
        reward_axis=_axis(reward for arm in arms for _, reward in (*arm.seen, *arm.unseen)),
    )


def _unseen(
    grid: CurveGrid | None, row: int, arm: int, pulls: int, limit: float
) -> tuple[Point, ...]:
    """Return points of an arm's curve from its latest pull to the end of the axis."""
    if grid is None or pulls >= limit:
        return ()
    places = np.unique(np.linspace(max(pulls, 1), limit, _UNSEEN_POINTS).round())
    values = grid.values(np.array([row * grid.num_arms + arm]), places[None])[0]
    return tuple(zip(places.astype(np.int64).tolist(), values.tolist(), strict=True))


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
    shown, position, left_out = _cut(ranking, _BOTTOM_USERS, [])
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
    chosen, _, rest = _cut(ranked, 0, [])
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
        total_axis=_axis(totals),
        arms=arms,
        arm_gap=arm_gap,
        mean_axis=_axis(estimates),
    )


def _who(users: Sequence[int]) -> str:
    if not users:
        return "-"
    return f"user {users[0]}" if len(users) == 1 else f"{len(users)} users"


def _cut(ranking: list[int], bottom: int, wanted: list[int]) -> tuple[list[int], int, list[int]]:
    """Choose what is shown of a ranked list.

    Args:
        ranking: Indices, the most interesting ones at both ends.
        bottom: How many of the lower end are shown if not all fit.
        wanted: What must be shown, if need be in place of the upper end's last.

    Returns:
        The shown indices, how many of them stand above the gap, and those that are left out.
        If all fit they stand by index and nothing is left out.
    """
    if len(ranking) <= ROWS:
        return sorted(ranking), len(ranking), []
    top = ROWS - 1 - bottom  # one row tells of the rest
    end = len(ranking) - bottom
    upper, middle = ranking[:top], ranking[top:end]
    for index in wanted:
        if index in middle:
            middle[middle.index(index)] = upper[-1]
            upper[-1] = index
    return [*upper, *ranking[end:]], top, middle


# --- Numbers ------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a number in at most 9 characters; whole numbers below 10^7 in full."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 9_999_999.5:
        return f"{value:.2e}"
    if isinstance(value, int) or size == 0:
        return f"{value:.0f}"
    decimals = 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{value:.{decimals}f}"


def _axis(values: Any) -> Axis:
    """Return an axis with round ends that holds 0 and all of ``values``."""
    listed = [0.0, *values]
    low, high = min(listed), max(listed)
    if low == high:
        return Axis(0.0, 1.0)
    return Axis(-_round_up(-low) if low < 0 else 0.0, _round_up(high) if high > 0 else 0.0)


def _round_up(value: float) -> float:
    """Return the next round number; ``value`` is above 0."""
    power = 10.0 ** math.floor(math.log10(value))
    reached = (step * power for step in _ROUND if value <= step * power * (1 + 1e-9))
    return next(reached)
