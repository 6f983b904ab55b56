"""What all environments share: their parameters, checked, and the parts of their spaces.

The scalar classes keep their hot ``step`` to themselves; everything that happens at most once per
episode stands once, here and in `_scalar`, and so does everything that a batch does around the
pull itself, in `_vector`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_bool, checked_int
from gym_fairbandits._sources import ArmSource, CurveSource
from gym_fairbandits.envs.rendering import FRAMES_PER_SECOND, RENDER_MODES, Painter

__all__ = ["Clocked", "Record", "known_options", "observation_box"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observation = dict[str, NDArray[Any]]
SourceT = TypeVar("SourceT", CurveSource, ArmSource)

# Finite, because samplers and checkers reject infinite boxes, yet out of reach.
COUNT_LIMIT = 2**53
SUM_LIMIT = 1e30


class Record(Protocol):
    """What was played in some episodes, one row each, and what it is worth in expectation."""

    def optimal_return(self, steps: int | None = None) -> Floats:
        """Return the offline optimum of the steps played, or of ``steps``; shape ``(n,)``."""

    def exact_optimal_return(self, steps: int | None = None) -> Floats:
        """Return what the best schedule of so many steps reaches; shape ``(n,)``."""

    def expected_return(self) -> Floats:
        """Return the expected return of the actions taken; shape ``(n,)``."""

    def realized_return(self) -> Floats:
        """Return the realised return; shape ``(n,)``."""


def observation_box(kind: str, size: int) -> spaces.Box:
    """Return the space of one observed array: ``"count"`` (int64) or ``"sum"`` (float64)."""
    if kind == "count":
        return spaces.Box(0, COUNT_LIMIT, (size,), np.int64)
    return spaces.Box(-SUM_LIMIT, SUM_LIMIT, (size,), np.float64)


def known_options(options: Any, *known: str) -> Mapping[str, Any]:
    """Return the ``options`` of a reset, and warn of keys that are not ``known``.

    They are no error: a wrapper may have keys of its own and pass the dict on. They are not
    silent either: a misspelt ``instance`` would play the default one.

    Raises:
        TypeError: If ``options`` is neither None nor a mapping.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"`options` must be a dict or None, got {options!r}")
    unknown = [key for key in options if key not in known]
    if unknown:
        listed = ", ".join(f"`{key}`" for key in known)
        gym.logger.warn(f"`options` of reset: the environment reads {listed}, not {unknown}")
    return options


class Clocked:
    """The parameters that every environment takes, checked; and its frames.

    Attributes:
        readouts: Numbers that each frame shows beside the environment's own: label -> function
            without arguments that returns a float, in a vector environment an array of shape
            ``(num_envs,)``, NaN where unknown. A wrapper adds what it knows; `PolicyRegret` adds
            its regret.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as `Env` declares it
        "render_modes": list(RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }
    _painter: Painter | None = None  # for `close`, if the constructor fails before it is set
    _played: bool
    _title: str  # of every frame
    horizon: int
    horizon_known: bool
    num_arms: int
    render_mode: str | None

    def _take_common(
        self, horizon: int, horizon_known: bool, render_mode: str | None, render_reveal: bool
    ) -> None:
        self.horizon = checked_int("horizon", horizon, maximum=COUNT_LIMIT)
        self.horizon_known = checked_bool("horizon_known", horizon_known)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise TypeError(
                f"`render_mode` must be None or one of {self.metadata['render_modes']}, "
                f"got {render_mode!r}"
            )
        # Before 1.4, Gymnasium writes into that of an environment that it batches.
        self.metadata = dict(self.metadata)
        self.render_mode = render_mode
        self.render_reveal = checked_bool("render_reveal", render_reveal)
        self.readouts: dict[str, Callable[[], Any]] = {}
        # Set in any case: `step` finds it quicker than the class's.
        self._painter = None if render_mode is None else Painter(render_mode)

    def _drawing(self) -> Painter | None:
        """Return what draws; warn and return None if there is no render mode.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
        """
        if self._painter is None:
            gym.logger.warn(
                "`render` draws nothing without a render mode: choose one of "
                f"{self.metadata['render_modes']} when the environment is made, for example "
                'gym.make(id, render_mode="rgb_array")'
            )
            return None
        self._check_played()
        return self._painter

    def _check_played(self) -> None:
        """Refuse questions about an episode before there was one."""
        if not self._played:
            raise ResetNeeded("call `reset` first: no episode has begun")

    @property
    def _shown_horizon(self) -> int | None:
        """The horizon, where frames may tell it: pixels can be an observation too."""
        return self.horizon if self.horizon_known or self.render_reveal else None

    def _observation_space(self, parts: dict[str, spaces.Box]) -> spaces.Dict:
        if self.horizon_known:
            parts = {**parts, "remaining": spaces.Box(0, self.horizon, (1,), np.int64)}
        return spaces.Dict(dict(parts))
