"""What a frame shows, as data: computed once, then drawn as text or as a picture.

A scene holds only what the learner saw; the hidden parameters enter where the user asks for them
with ``render_reveal=True``. Long lists are cut here, so that both painters cut them alike.
"""

from __future__ import annotations

from typing import TypeAlias

from gym_fairbandits.envs.rendering._egal import (
    ArmEstimate,
    AssignmentHistory,
    EgalScene,
    UserTotal,
    egal_scene,
)
from gym_fairbandits.envs.rendering._improving import (
    ArmCurve,
    CurveHistory,
    ImprovingScene,
    improving_scene,
)
from gym_fairbandits.envs.rendering._parts import ROWS, Axis, Gap, Heading, heading, number

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

Scene: TypeAlias = ImprovingScene | EgalScene
