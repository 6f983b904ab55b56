"""A scene as a picture, drawn with pygame on surfaces in memory, and a window to show it in.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, and none of them
says anything that a mark, a pattern or a word does not say too.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

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

if TYPE_CHECKING:
    import pygame

__all__ = ["BLUE", "GREEN", "SKY", "VERMILION", "WIDTH", "Window", "draw_pixels"]

RowT = TypeVar("RowT")
Colour = tuple[int, int, int]

WIDTH = 960

# Okabe and Ito, "Color universal design" (2008).
BLUE: Colour = (0, 114, 178)
SKY: Colour = (86, 180, 233)
GREEN: Colour = (0, 158, 115)
VERMILION: Colour = (213, 94, 0)

_BLACK: Colour = (25, 25, 25)
_GREY: Colour = (95, 95, 95)
_FAINT: Colour = (165, 165, 165)
_LINE: Colour = (222, 222, 222)
_BAND: Colour = (253, 240, 226)  # behind the row that matters now
_WHITE: Colour = (255, 255, 255)

_MARGIN = 20
_BODY, _FOOT = 108, 44  # what lies above the rows and below them
_ROWS_HEIGHT = 388  # of all rows at most
_CURVE_HEIGHT, _BAR_HEIGHT = 90, 40  # of one row at most
_SMALL, _NORMAL, _LARGE, _TITLE = 19, 22, 26, 30


def draw_pixels(scene: Scene) -> NDArray[np.uint8]:
    """Return a scene as a fresh uint8 array of shape ``(height, WIDTH, 3)``.

    The height is even, at most 540, and depends on nothing but the numbers of arms and users.

    Raises:
        gymnasium.error.DependencyNotInstalled: If pygame is missing.
    """
    pixels = _load_pygame().image.tobytes(_draw(scene), "RGB")
    return np.frombuffer(pixels, dtype=np.uint8).reshape(-1, WIDTH, 3).copy()


class Window:
    """A window on the screen, opened when the first frame is shown."""

    def __init__(self, frames_per_second: float) -> None:
        """Open nothing yet."""
        self._frames_per_second = frames_per_second
        self._clock: pygame.time.Clock | None = None

    def show(self, scene: Scene) -> None:
        """Show a scene, as long as the frame rate says.

        Raises:
            gymnasium.error.DependencyNotInstalled: If pygame is missing.
        """
        game = _load_pygame()
        frame = _draw(scene)
        game.display.init()
        screen = game.display.get_surface()
        # Another environment may have closed the window: a process has only one.
        if screen is None or screen.get_size() != frame.get_size():
            screen = game.display.set_mode(frame.get_size())
            game.display.set_caption(scene.heading.title)
        screen.blit(frame, (0, 0))
        if self._clock is None:
            self._clock = game.time.Clock()
        game.event.pump()
        self._clock.tick(self._frames_per_second)
        game.display.flip()

    def close(self) -> None:
        """Close the window, if one was opened."""
        if self._clock is not None:
            self._clock = None
            _load_pygame().display.quit()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the screen behind: a copy of an environment opens its window anew."""
        return {**self.__dict__, "_clock": None}


def _load_pygame() -> ModuleType:
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            'pygame is not installed, run `pip install "gym-fairbandits[render]"`'
        ) from error
    return pygame


# --- A surface that writes and draws ------------------------------------------------------------

# By size. A font keeps the letters that it has drawn, so a new one for each frame would be slow.
_FONTS: dict[int, pygame.font.Font] = {}


class _Canvas:
    """A white surface in memory, with room for ``rows`` rows."""

    def __init__(self, rows: int, most: float) -> None:
        self._game = _load_pygame()
        self.row_height = min(_ROWS_HEIGHT / rows, most)
        self.height = _BODY + 2 * round(rows * self.row_height / 2) + _FOOT  # even, for videos
        self.surface: pygame.Surface = self._game.Surface((WIDTH, self.height))
        self.surface.fill(_WHITE)
        self._game.font.init()
        try:
            _FONTS[_NORMAL].get_height()
        except (KeyError, self._game.error):  # none yet, or `pygame.quit` was called since
            _FONTS.clear()

    def text(
        self,
        text: str,
        x: float,
        y: float,
        *,
        size: int = _NORMAL,
        colour: Colour = _BLACK,
        align: str = "left",
        room: float = WIDTH,
    ) -> float:
        """Write ``text`` centred on height ``y``; return the width it took.

        What does not fit into ``room`` is written smaller, and then cut.
        """
        written = self._font(size).render(text, True, colour)
        while written.get_width() > room and len(text) > 4:
            if size > _SMALL - 2:
                size -= 1
            else:
                text = text[:-4] + "..."
            written = self._font(size).render(text, True, colour)
        width = written.get_width()
        left = x - {"left": 0, "centre": width / 2, "right": width}[align]
        self.surface.blit(written, (round(left), round(y - written.get_height() / 2)))
        return float(width)

    def _font(self, size: int) -> pygame.font.Font:
        if size not in _FONTS:
            _FONTS[size] = self._game.font.Font(None, size)  # the one that pygame brings
        return _FONTS[size]

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Fill a box."""
        self.surface.fill(colour, (round(x), round(y), max(round(width), 1), max(round(height), 1)))

    def hatched(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Fill a box and rule it with white diagonals."""
        place = self._game.Rect(round(x), round(y), max(round(width), 2), max(round(height), 2))
        part = self.surface.subsurface(place)
        part.fill(colour)
        for left in range(-place.height, place.width, 8):
            self._game.draw.line(part, _WHITE, (left, place.height), (left + place.height, 0), 2)
        self._game.draw.rect(part, colour, part.get_rect(), 1)

    def line(self, points: Sequence[tuple[float, float]], colour: Colour, width: int) -> None:
        """Draw a line through ``points``."""
        self._game.draw.lines(self.surface, colour, False, points, width)

    def dot(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fill a circle."""
        self._game.draw.aacircle(self.surface, colour, (round(x), round(y)), radius)

    def arrow(self, x: float, y: float, colour: Colour) -> None:
        """Fill a triangle that points right, its tip at ``(x, y)``."""
        corners = [(x, y), (x - 10, y - 6), (x - 10, y + 6)]
        self._game.draw.polygon(self.surface, colour, corners)


# --- The parts of a frame -----------------------------------------------------------------------


def _draw(scene: Scene) -> pygame.Surface:
    if isinstance(scene, ImprovingScene):
        canvas = _Canvas(_count(scene.arms, scene.gap), _CURVE_HEIGHT)
        _improving(canvas, scene)
    else:
        rows = max(_count(scene.users, scene.user_gap), _count(scene.arms, scene.arm_gap))
        canvas = _Canvas(rows, _BAR_HEIGHT)
        _egal(canvas, scene)
    _top(canvas, scene.heading)
    return canvas.surface


def _count(rows: Sequence[Any], gap: Gap | None) -> int:
    return len(rows) + (gap is not None)


def _top(canvas: _Canvas, heading: Heading) -> None:
    """Write the title and, below it, the facts side by side."""
    canvas.text(heading.title, _MARGIN, 20, size=_TITLE, room=WIDTH - 2 * _MARGIN)
    room = (WIDTH - 2 * _MARGIN) / max(len(heading.facts), 5)
    for place, (label, value) in enumerate(heading.facts):
        x = _MARGIN + place * room
        canvas.text(label, x, 43, size=_SMALL, colour=_GREY, room=room - 10)
        canvas.text(value, x, 63, size=_LARGE, room=room - 10)
    canvas.box(_MARGIN, 77, WIDTH - 2 * _MARGIN, 1, _LINE)


def _tops(canvas: _Canvas, rows: Sequence[RowT], gap: Gap | None) -> list[tuple[RowT, float]]:
    """Return each row with the height where it begins, leaving one free for the gap."""
    free = len(rows) if gap is None else gap.position
    return [
        (row, _BODY + canvas.row_height * (place + (place >= free)))
        for place, row in enumerate(rows)
    ]


def _write_gap(canvas: _Canvas, gap: Gap | None, x: float, room: float) -> None:
    if gap is not None:
        y = _BODY + canvas.row_height * (gap.position + 0.5)
        canvas.text(f"... {gap.note}", x, y, size=_SMALL, colour=_GREY, room=room)


def _label(canvas: _Canvas, text: str, x: float, y: float, align: str = "left") -> None:
    canvas.text(text, x, y, size=_SMALL, colour=_GREY, align=align)


def _mark(canvas: _Canvas, top: float, end: float) -> None:
    """Put a band behind a row, as far as ``end``, and an arrow in front of it."""
    left = _MARGIN - 6
    canvas.box(left, top, end - left, canvas.row_height, _BAND)
    canvas.arrow(left + 14, top + canvas.row_height / 2, VERMILION)


def _bar(
    canvas: _Canvas, x: float, y: float, width: float, height: float, axis: Axis, value: float
) -> tuple[float, float]:
    """Rule the line at 0 and return the left end and the width of the bar of ``value``."""
    zero, end = x + width * axis.place(0.0), x + width * axis.place(value)
    canvas.box(zero, y, 1, height, _FAINT)
    return min(zero, end), abs(end - zero)


# --- Improving arms -----------------------------------------------------------------------------

_NAME, _HEAD = _MARGIN + 18, 93
_CURVES, _CURVES_END = 140, 600
_PULLS, _PULLS_END = 630, 780
_LAST = WIDTH - _MARGIN


def _improving(canvas: _Canvas, scene: ImprovingScene) -> None:
    _label(canvas, "arm", _NAME, _HEAD)
    _label(canvas, f"reward of each pull, {scene.reward_axis.span}", _CURVES, _HEAD)
    _label(canvas, "pulls", _PULLS, _HEAD)
    _label(canvas, "last reward", _LAST, _HEAD, "right")
    for arm, top in _tops(canvas, scene.arms, scene.gap):
        _arm_curve(canvas, scene, arm, top)
    _write_gap(canvas, scene.gap, _NAME, 500)
    foot = canvas.height - _FOOT + 12
    for share, align in ((0.0, "left"), (0.5, "centre"), (1.0, "right")):
        x = _CURVES + share * (_CURVES_END - _CURVES)
        _label(canvas, f"{scene.pull_axis.high * share:g}", x, foot, align)
    _label(canvas, "number of the pull", _CURVES, foot + 18)
    legend = "arrow: pulled in the latest step"
    if any(arm.unseen for arm in scene.arms):
        legend += "; thin line: not seen yet"
    _label(canvas, legend, _LAST, foot + 18, "right")


def _arm_curve(canvas: _Canvas, scene: ImprovingScene, arm: ArmCurve, top: float) -> None:
    height = canvas.row_height
    middle, thick = top + height / 2, min(height - 6, 26)
    colour, fill = BLUE, SKY
    if arm.is_latest:
        _mark(canvas, top, WIDTH - _MARGIN + 6)
        colour = fill = VERMILION
    canvas.text(f"arm {arm.arm}", _NAME, middle, room=_CURVES - _NAME - 6)

    def placed(pull: float, reward: float) -> tuple[float, float]:
        return (
            _CURVES + scene.pull_axis.place(pull) * (_CURVES_END - _CURVES),
            top + height - 3 - scene.reward_axis.place(reward) * (height - 8),
        )

    canvas.box(*placed(0, 0), _CURVES_END - _CURVES, 1, _LINE)
    if len(arm.unseen) > 1:
        canvas.line([placed(*point) for point in arm.unseen], _FAINT, 1)
    seen = [placed(*point) for point in arm.seen]
    if len(seen) > 1:
        canvas.line(seen, colour, 2)
    if seen:
        canvas.dot(*seen[-1], 3 if height < 40 else 4, colour)

    canvas.box(_PULLS, middle - thick / 2, 1, thick, _FAINT)
    if arm.pulls:
        width = arm.pulls / scene.most_pulls * (_PULLS_END - _PULLS)
        canvas.box(_PULLS, middle - thick / 2, width, thick, fill)
    canvas.text(number(arm.pulls), _PULLS_END + 8, middle)
    last = "-" if arm.last_reward is None else number(arm.last_reward)
    canvas.text(last, _LAST, middle, align="right")


# --- Assignment ---------------------------------------------------------------------------------

_TOTAL, _TOTAL_END, _SUM, _ON_ARM = 118, 282, 374, 448
_HALF = 478
_MEAN, _MEAN_END, _VALUE, _COUNT, _USERS = 560, 696, 784, 852, 866


def _egal(canvas: _Canvas, scene: EgalScene) -> None:
    _label(canvas, "user", _NAME, _HEAD)
    _label(canvas, "total reward", _TOTAL, _HEAD)
    _label(canvas, "on arm", _ON_ARM, _HEAD, "right")
    _label(canvas, "arm", _HALF, _HEAD)
    _label(canvas, "mean reward", _MEAN, _HEAD)
    _label(canvas, "pulls", _COUNT, _HEAD, "right")
    _label(canvas, "now: user", _USERS, _HEAD)
    for user, top in _tops(canvas, scene.users, scene.user_gap):
        _user_total(canvas, user, scene.total_axis, top)
    for arm, top in _tops(canvas, scene.arms, scene.arm_gap):
        _arm_estimate(canvas, arm, scene.mean_axis, top)
    _write_gap(canvas, scene.user_gap, _NAME, _HALF - 60)
    _write_gap(canvas, scene.arm_gap, _HALF, WIDTH - _HALF - _MARGIN)
    foot = canvas.height - 18
    _label(canvas, f"arrow and hatching: worst off; bars {scene.total_axis.span}", _MARGIN, foot)
    legend = f"bars {scene.mean_axis.span}; green: now"
    if any(arm.true_mean is not None for arm in scene.arms):
        legend += "; black line: the true mean"
    _label(canvas, legend, _HALF, foot)


def _user_total(canvas: _Canvas, user: UserTotal, axis: Axis, top: float) -> None:
    middle, thick = top + canvas.row_height / 2, min(canvas.row_height - 6, 24)
    fill, colour = canvas.box, BLUE
    if user.is_worst_off:
        _mark(canvas, top, _ON_ARM + 6)
        fill, colour = canvas.hatched, VERMILION
    canvas.text(f"user {user.user}", _NAME, middle, room=_TOTAL - _NAME - 6)
    y = middle - thick / 2
    x, width = _bar(canvas, _TOTAL, y, _TOTAL_END - _TOTAL, thick, axis, user.total)
    if width:
        fill(x, y, width, thick, colour)
    canvas.text(number(user.total), _SUM, middle, align="right")
    on_arm = "-" if user.arm is None else str(user.arm)
    canvas.text(on_arm, _ON_ARM, middle, align="right")


def _arm_estimate(canvas: _Canvas, arm: ArmEstimate, axis: Axis, top: float) -> None:
    middle, thick = top + canvas.row_height / 2, min(canvas.row_height - 6, 24)
    canvas.text(f"arm {arm.arm}", _HALF, middle, room=_MEAN - _HALF - 6)
    y = middle - thick / 2
    x, width = _bar(canvas, _MEAN, y, _MEAN_END - _MEAN, thick, axis, arm.mean or 0.0)
    if width:
        canvas.box(x, y, width, thick, GREEN if arm.users else SKY)
    if arm.true_mean is not None:
        x = _MEAN + axis.place(arm.true_mean) * (_MEAN_END - _MEAN)
        canvas.box(x - 1, y - 2, 3, thick + 4, _BLACK)
    mean = "-" if arm.mean is None else number(arm.mean)
    canvas.text(mean, _VALUE, middle, align="right", room=_VALUE - _MEAN_END - 4)
    canvas.text(number(arm.pulls), _COUNT, middle, align="right", room=_COUNT - _VALUE - 4)
    x = float(_USERS)
    for place, user in enumerate(arm.users):
        left = len(arm.users) - place
        if x > WIDTH - _MARGIN - 28 and left > 1:
            canvas.text(f"+{left}", x, middle, size=_SMALL, room=WIDTH - x - 4)
            break
        x += 2 + _token(canvas, str(user), x, middle, min(canvas.row_height - 4, 22))


def _token(canvas: _Canvas, label: str, x: float, middle: float, thick: float) -> float:
    """Draw a user's number in white on a dark tag; return its width."""
    width = 10 + 9 * len(label)
    canvas.box(x, middle - thick / 2, width, thick, _BLACK)
    canvas.text(label, x + width / 2, middle, size=_SMALL, colour=_WHITE, align="centre")
    return width
