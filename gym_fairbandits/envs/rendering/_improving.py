"""A frame of ``ImprovingBandit-v0`` as data, and what is kept of an episode for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.envs.rendering._parts import (
    Axis,
    Gap,
    Heading,
    axis_around,
    cut,
    heading,
    number,
    round_up,
)

__all__ = ["ArmCurve", "CurveHistory", "ImprovingScene", "improving_scene"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Point = tuple[int, float]

_BOTTOM_ARMS = 4  # of the arms shown one by one, how many are the least pulled
_POINTS = 256  # rewards kept of each arm: about one per column of a picture
_UNSEEN_POINTS = 65


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
    shown, position, left_out = cut(ranking, _BOTTOM_ARMS, [] if latest is None else [latest])
    gap = None
    if left_out:
        total = sum(counts[arm] for arm in left_out)
        gap = Gap(position, f"{len(left_out)} more arms, {number(total)} pulls in all")
    most = max(counts)
    limit = round_up(max(most, 10)) if grid is None else max(most, horizon or 0, 2)
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
        reward_axis=axis_around(reward for arm in arms for _, reward in (*arm.seen, *arm.unseen)),
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
