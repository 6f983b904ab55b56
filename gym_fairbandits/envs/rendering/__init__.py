"""Frames of both environments: a scene (data only), and the painters that draw it.

``render_mode="ansi"`` gives text, ``"rgb_array"`` a picture and ``"human"`` a window; the last two
need the extra ``render``.
"""

from __future__ import annotations

from typing import Any

from gym_fairbandits.envs.rendering.picture import Window, draw_pixels
from gym_fairbandits.envs.rendering.scene import EgalScene, ImprovingScene, Scene
from gym_fairbandits.envs.rendering.text import draw_text

__all__ = [
    "FRAMES_PER_SECOND",
    "RENDER_MODES",
    "EgalScene",
    "ImprovingScene",
    "Painter",
    "Scene",
]

RENDER_MODES = ("human", "rgb_array", "ansi")
FRAMES_PER_SECOND = 20


class Painter:
    """Draws scenes in one of the render modes."""

    def __init__(self, render_mode: str) -> None:
        """Open nothing yet: what a mode needs is loaded with its first frame."""
        self._render_mode = render_mode
        self._window = Window(FRAMES_PER_SECOND)

    def draw(self, scene: Scene) -> Any:
        """Return a frame; the mode ``"human"`` shows it and returns ``None``.

        Raises:
            gymnasium.error.DependencyNotInstalled: If pygame is missing and the mode needs it.
        """
        if self._render_mode == "ansi":
            return draw_text(scene)
        if self._render_mode == "rgb_array":
            return draw_pixels(scene)
        self._window.show(scene)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
