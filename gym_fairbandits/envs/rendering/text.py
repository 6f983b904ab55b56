"""A scene as text: for terminals, notebooks and logs, without any dependency.

Plain lines of at most 100 characters. Bars and curves are Unicode block elements, which every
UTF-8 terminal has; marks are ASCII and words. There are no escape codes: nothing depends on
colour, and a log file holds what the terminal showed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gym_fairbandits.envs.rendering.scene import (
    ArmCurve,
    ArmEstimate,
    Axis,
    EgalScene,
    Gap,
    Heading,
    ImprovingScene,
    Scene,
    UserTotal,
    number,
)

__all__ = ["WIDTH", "draw_text"]

RowT = TypeVar("RowT")

WIDTH = 100
_HEIGHTS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_CURVE, _PULL_BAR = 50, 18
_TOTAL_BAR, _MEAN_BAR = 16, 13
_LEFT = 47  # columns of the users' half


def draw_text(scene: Scene) -> str:
    """Return a scene as lines of text, without a last line break."""
    lines = _improving(scene) if isinstance(scene, ImprovingScene) else _egal(scene)
    return "\n".join(line.rstrip() for line in [*_top(scene.heading), "", *lines])


def _top(heading: Heading) -> list[str]:
    """Return title and facts, in as many lines as they need."""
    lines = [heading.title]
    for label, value in heading.facts:
        fact = f"{label}: {value}"
        if len(lines[-1]) + 3 + len(fact) <= WIDTH:
            lines[-1] += f"   {fact}"
        else:
            lines.append(f"  {fact}"[:WIDTH])
    return lines


def _rows(rows: Sequence[RowT], gap: Gap | None, draw: Callable[[RowT], str]) -> list[str]:
    lines = [draw(row) for row in rows]
    if gap is not None:
        lines.insert(gap.position, f"  ... {gap.note}")
    return lines


# --- Improving arms -----------------------------------------------------------------------------


def _improving(scene: ImprovingScene) -> list[str]:
    caption = f"reward of pulls 1 to {number(int(scene.pull_axis.high))}"
    lines = [f"  {'arm':>5} {caption:<{_CURVE}} {'pulls':<{_PULL_BAR + 10}}{'last reward':>12}"]
    lines += _rows(scene.arms, scene.gap, lambda arm: _arm_curve(arm, scene))
    legend = f">: pulled in the latest step; curves {scene.reward_axis.span}"
    if any(arm.unseen for arm in scene.arms):
        legend += "; digits: not seen yet, in tenths of that"
    return [*lines, "", legend]


def _arm_curve(arm: ArmCurve, scene: ImprovingScene) -> str:
    mark = ">" if arm.is_latest else " "
    curve = "".join(_cell(arm, column, scene) for column in range(_CURVE))
    bar = _bar(arm.pulls, Axis(0, scene.most_pulls), _PULL_BAR)
    last = "-" if arm.last_reward is None else number(arm.last_reward)
    return f"{mark} {arm.arm:>5} {curve} {bar} {number(arm.pulls):<9}{last:>12}"


def _cell(arm: ArmCurve, column: int, scene: ImprovingScene) -> str:
    """Return one character of a curve: the reward of the last pull that it stands for."""
    high = scene.pull_axis.high
    first = int(column * high / _CURVE) + 1
    last = max(first, int((column + 1) * high / _CURVE))
    if first <= arm.pulls:
        points = [reward for place, reward in arm.seen if place <= last]
        return _HEIGHTS[min(int(scene.reward_axis.place(points[-1]) * 8), 7)]
    points = [reward for place, reward in arm.unseen if place <= last]
    return str(min(int(scene.reward_axis.place(points[-1]) * 10), 9)) if points else " "


# --- Assignment ---------------------------------------------------------------------------------


def _egal(scene: EgalScene) -> list[str]:
    left = [f"  {'user':>5} {'total':<{_TOTAL_BAR + 11}}{'on arm':>6}"]
    left += _rows(scene.users, scene.user_gap, lambda user: _user_total(user, scene.total_axis))
    right = [f"  {'arm':>5} {'mean reward':<{_MEAN_BAR + 11}}{'pulls':>9} now: user"]
    right += _rows(scene.arms, scene.arm_gap, lambda arm: _arm_estimate(arm, scene.mean_axis))
    height = max(len(left), len(right))
    left += [""] * (height - len(left))
    right += [""] * (height - len(right))
    body = [f"{user:<{_LEFT}} {arm}" for user, arm in zip(left, right, strict=True)]
    legend = f"!: worst off; totals {scene.total_axis.span}; means {scene.mean_axis.span}"
    if any(arm.true_mean is not None for arm in scene.arms):
        legend += "; *: the true mean"
    return [*body, "", legend]


def _user_total(user: UserTotal, axis: Axis) -> str:
    mark = "!" if user.is_worst_off else " "
    bar = _bar(user.total, axis, _TOTAL_BAR)
    on_arm = "-" if user.arm is None else str(user.arm)
    return f"{mark} {user.user:>5} {bar} {number(user.total):<10}{on_arm:>6}"


def _arm_estimate(arm: ArmEstimate, axis: Axis) -> str:
    bar = _bar(arm.mean or 0.0, axis, _MEAN_BAR)
    if arm.true_mean is not None:
        place = min(int(axis.place(arm.true_mean) * _MEAN_BAR), _MEAN_BAR - 1)
        bar = f"{bar[:place]}*{bar[place + 1 :]}"
    mean = "-" if arm.mean is None else number(arm.mean)
    users = _listed(arm.users)
    return f"  {arm.arm:>5} {bar} {mean:<10}{number(arm.pulls):>9} {users}"


def _listed(users: Sequence[int], width: int = 10) -> str:
    """Return as many users as fit, and how many more there are."""
    text = " ".join(map(str, users))
    kept = len(users)
    while len(text) > width:
        kept -= 1
        text = " ".join([*map(str, users[:kept]), f"+{len(users) - kept}"])
    return text


# --- Bars ---------------------------------------------------------------------------------------


def _bar(value: float, axis: Axis, width: int) -> str:
    """Return a bar from 0 to ``value``; where the axis goes below 0, a line marks the 0."""
    if axis.low >= 0:
        eighths = round(axis.place(value) * width * 8)
        if value > 0:
            eighths = max(eighths, 1)  # something is something
        full, part = divmod(eighths, 8)
        return ("█" * full + _EIGHTHS[part] * (part > 0)).ljust(width)
    zero = round(axis.place(0.0) * (width - 1))
    end = round(axis.place(value) * (width - 1))
    cells = [" "] * width
    for cell in range(min(zero, end), max(zero, end) + 1):
        cells[cell] = "█"
    cells[zero] = "|"
    return "".join(cells)
