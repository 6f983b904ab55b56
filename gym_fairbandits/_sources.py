"""From what a user passes as ``instance`` to the arms of an episode.

A source is made once, checked, and asked at every reset. It asks for the stream of randomness
only if it draws: fixed instances leave no trace in the generators.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits import arms as arm_laws
from gym_fairbandits import curves as curve_families
from gym_fairbandits._checks import checked_int
from gym_fairbandits._grid import FAMILIES, CurveGrid
from gym_fairbandits.arms import Arms
from gym_fairbandits.arms.base import check_law
from gym_fairbandits.curves import Curve, check_improving
from gym_fairbandits.instances import (
    CONCAVE_FAMILIES,
    DEFAULT_NUM_ARMS,
    EGALITARIAN,
    IMPROVING,
    concave_parameters,
    random_concave,
)

__all__ = [
    "ArmSource",
    "CurveSource",
    "EgalInstance",
    "ImprovingInstance",
    "egal_source",
    "improving_source",
]

Ints = NDArray[np.int64]
Stream: TypeAlias = np.random.Generator
Put: TypeAlias = Callable[[CurveGrid], None]  # writes drawn curves into the rows of a grid
_CURVES_HINT = (
    '; arms that always pay the same are [{"family": "constant", "value": 0.5}, ...], see '
    "`gym_fairbandits.curves` for others"
)
_ARMS_HINT = (
    '; say which law has these means: {"family": "bernoulli", "means": [...]} or '
    '{"family": "gaussian", "means": [...], "std": 1.0}'
)
CurveLike: TypeAlias = Curve | Mapping[str, Any]
ImprovingInstance: TypeAlias = (
    str | Mapping[str, Any] | Sequence[CurveLike] | Callable[[Stream, int], Sequence[CurveLike]]
)
EgalInstance: TypeAlias = (
    str | Mapping[str, Any] | Arms | Callable[[Stream, int, int], Arms | Mapping[str, Any]]
)


class CurveSource(ABC):
    """Where an environment's curves come from.

    Attributes:
        num_arms: How many curves there are.
        redrawn: Whether they are drawn anew for each episode.
    """

    num_arms: int
    redrawn: bool

    @abstractmethod
    def draw(self, rows: Ints, stream_of: Callable[[int], Stream]) -> Put:
        """Return what puts an instance into each of ``rows``, drawn from the stream of its row.

        All that may fail has been done then: an error must not change what is played.
        """


class _FixedCurves(CurveSource):
    """The same curves in every episode."""

    redrawn = False

    def __init__(self, curves: Sequence[Curve]) -> None:
        self.curves = tuple(curves)
        self.num_arms = len(self.curves)

    def draw(self, rows: Ints, stream_of: Callable[[int], Stream]) -> Put:
        return lambda grid: grid.set_rows(rows, self.curves)


class _RandomConcave(CurveSource):
    """:func:`gym_fairbandits.instances.random_concave`, many rows at a time."""

    redrawn = True
    _CODES = np.array([FAMILIES.index(family) for family in CONCAVE_FAMILIES])

    def __init__(self, num_arms: int) -> None:
        self.num_arms = num_arms

    def draw(self, rows: Ints, stream_of: Callable[[int], Stream]) -> Put:
        uniforms = [stream_of(row).random((self.num_arms, 4)) for row in rows.tolist()]
        family, parameters = concave_parameters(np.array(uniforms))
        return lambda grid: grid.set_parametric(rows, self._CODES[family], parameters)


class _DrawnCurves(CurveSource):
    """Curves that a callable draws for each episode."""

    redrawn = True

    def __init__(
        self,
        draw: Callable[[Stream, int], Sequence[CurveLike]],
        num_arms: int,
        horizon: int,
        validate: bool,
    ) -> None:
        self._draw, self.num_arms = draw, num_arms
        self._horizon, self._validate = horizon, validate

    def draw(self, rows: Ints, stream_of: Callable[[int], Stream]) -> Put:
        drawn = [
            _checked_curves(
                self._draw(stream_of(row), self.num_arms), self._horizon, self._validate
            )
            for row in rows.tolist()
        ]
        for curves in drawn:
            _check_count(len(curves), self.num_arms)

        def put(grid: CurveGrid) -> None:
            for row, curves in zip(rows, drawn, strict=True):
                grid.set_rows(np.array([row]), curves)

        return put


def improving_source(
    instance: ImprovingInstance, num_arms: int | None, horizon: int, validate: bool
) -> CurveSource:
    """Return the source of the curves that a user's ``instance`` asks for.

    Args:
        instance: A name of :data:`gym_fairbandits.instances.IMPROVING`, a dict of a name and
            parameters, curves or their dict forms, or a callable ``(rng, num_arms) -> curves``.
        num_arms: The number of arms, or ``None`` for the instance's own (10 where it has none).
        horizon: The episode's steps: the default of ``steps``, and how far curves are checked.
        validate: Whether curves outside the model of Patil et al. are refused.

    Raises:
        TypeError: If ``instance`` is none of these.
        ValueError: If a name or parameter is unknown, a curve is outside the model, or the
            number of arms differs from ``num_arms``.
    """
    if num_arms is not None:
        num_arms = checked_int("num_arms", num_arms)
    if isinstance(instance, str | Mapping):
        if isinstance(instance, Mapping) and "family" in instance:
            raise TypeError(f"`instance` must be a sequence of curves, got one, {instance!r}")
        name, given = _name_and_parameters(instance, IMPROVING)
        build = IMPROVING[name]
        if build is random_concave:
            arguments = _arguments(name, build, given, num_arms=num_arms)
            count = checked_int("num_arms", arguments.get("num_arms", DEFAULT_NUM_ARMS))
            _check_count(count, num_arms)
            return _RandomConcave(count)
        instance = build(**_arguments(name, build, given, num_arms=num_arms, steps=horizon))
    elif callable(instance) and not isinstance(instance, Curve):
        return _DrawnCurves(instance, num_arms or DEFAULT_NUM_ARMS, horizon, validate)
    curves = _checked_curves(instance, horizon, validate)
    _check_count(len(curves), num_arms)
    return _FixedCurves(curves)


def _checked_curves(curves: Any, horizon: int, validate: bool) -> list[Curve]:
    if not isinstance(curves, Sequence):
        raise TypeError(
            "`instance` must be a name, a dict with a name, a sequence of curves or a callable "
            f"that returns one, got {curves!r}{_CURVES_HINT if _holds_numbers(curves) else ''}"
        )
    if not curves:
        raise ValueError("`instance` must hold at least one curve, got none")
    made = []
    for arm, item in enumerate(curves):
        curve = curve_families.from_dict(item) if isinstance(item, Mapping) else item
        if not isinstance(curve, Curve):
            hint = _CURVES_HINT if isinstance(item, Real) else ""
            raise TypeError(f"arm {arm} must be a `Curve` or its dict form, got {item!r}{hint}")
        if not hasattr(curve, "asymptote"):
            raise TypeError(f"arm {arm} must have an `asymptote`, its potential, got {curve!r}")
        if validate:
            check_improving(curve, horizon, arm)
        made.append(curve)
    return made


class ArmSource(ABC):
    """Where an environment's assignment arms come from.

    Attributes:
        num_arms: K.
        redrawn: Whether they are drawn anew for each episode.
    """

    num_arms: int
    redrawn: bool

    @abstractmethod
    def draw(self, stream_of: Callable[[], Stream]) -> Arms:
        """Return an episode's arms; the stream is asked for only if they are drawn."""


class _FixedArms(ArmSource):
    """The same arms in every episode."""

    redrawn = False

    def __init__(self, arms: Arms) -> None:
        self._arms, self.num_arms = arms, arms.num_arms

    def draw(self, stream_of: Callable[[], Stream]) -> Arms:
        return self._arms


class _DrawnArms(ArmSource):
    """Arms that a callable ``(rng, *arguments)`` draws for each episode, or their dict form."""

    redrawn = True

    def __init__(
        self,
        function: Callable[..., Arms | Mapping[str, Any]],
        num_arms: int,
        horizon: int,
        *arguments: int,
    ) -> None:
        self._function, self.num_arms, self._arguments = function, num_arms, arguments
        self._horizon = horizon

    def draw(self, stream_of: Callable[[], Stream]) -> Arms:
        arms = self._function(stream_of(), *self._arguments)
        if isinstance(arms, Mapping):
            arms = arm_laws.from_dict(arms)
        if not isinstance(arms, Arms):
            raise TypeError(f"`instance` must return an `Arms` or its dict form, got {arms!r}")
        if self._arguments:  # of a user's; the named instances' own laws have checked themselves
            check_law(arms)
        _check_count(arms.num_arms, self.num_arms)
        _check_length(arms, self._horizon)
        return arms


def egal_source(
    instance: EgalInstance, num_users: int, num_arms: int | None, horizon: int
) -> ArmSource:
    """Return the source of the arms that a user's ``instance`` asks for.

    Args:
        instance: A name of :data:`gym_fairbandits.instances.EGALITARIAN`, a dict of a name and
            parameters, an ``Arms`` or its dict form, or a callable
            ``(rng, num_users, num_arms)`` that returns either.
        num_users: U.
        num_arms: K, or ``None`` for the instance's own (10 where it has none).
        horizon: The episode's steps: the default of ``steps``.

    Raises:
        TypeError: If ``instance`` is none of these.
        ValueError: If a name or parameter is unknown or wrong, the number of arms differs, or
            the arms are a table that ends before the horizon.
    """
    if num_arms is not None:
        num_arms = checked_int("num_arms", num_arms)
    if isinstance(instance, Mapping) and "family" in instance:
        instance = arm_laws.from_dict(instance)
    if isinstance(instance, str | Mapping):
        name, given = _name_and_parameters(instance, EGALITARIAN)
        build = EGALITARIAN[name]
        arguments = _arguments(
            name, build, given, num_users=num_users, num_arms=num_arms, steps=horizon
        )
        if "rng" in inspect.signature(build).parameters:
            draw = partial(build, **arguments)
            trial = draw(np.random.default_rng(0))  # wrong parameters fail here, not at a reset
            _check_count(trial.num_arms, num_arms)
            return _DrawnArms(draw, trial.num_arms, horizon)
        instance = build(**arguments)
    if isinstance(instance, Arms):
        check_law(instance)
        _check_count(instance.num_arms, num_arms)
        _check_length(instance, horizon)
        return _FixedArms(instance)
    if callable(instance):
        count = num_arms or DEFAULT_NUM_ARMS
        return _DrawnArms(instance, count, horizon, num_users, count)
    raise TypeError(
        "`instance` must be a name, a dict with a name or family, an `Arms` or a callable, "
        f"got {instance!r}{_ARMS_HINT if _holds_numbers(instance) else ''}"
    )


def _name_and_parameters(
    instance: str | Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    parameters = {} if isinstance(instance, str) else dict(instance)
    name = instance if isinstance(instance, str) else parameters.pop("name", None)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"`instance` must be one of {sorted(known)}, got {name!r}")
    return name, parameters


def _arguments(
    name: str, build: Callable[..., Any], given: dict[str, Any], **defaults: Any
) -> dict[str, Any]:
    """Return what the user gave, and those defaults that ``build`` takes and are not None."""
    takes = set(inspect.signature(build).parameters) - {"rng"}
    unknown = sorted(set(given) - takes)
    if unknown:
        raise ValueError(f"instance {name!r} takes the parameters {sorted(takes)}, got {unknown}")
    known = {key: value for key, value in defaults.items() if value is not None and key in takes}
    return {**known, **given}


def _holds_numbers(instance: Any) -> bool:
    """Return whether ``instance`` is a list or array of plain numbers: means, most likely."""
    if isinstance(instance, np.ndarray):
        return instance.dtype.kind in "iuf"
    return isinstance(instance, list | tuple) and any(isinstance(item, Real) for item in instance)


def _check_count(number: int, num_arms: int | None) -> None:
    if num_arms is not None and number != num_arms:
        raise ValueError(
            f"`num_arms` must be the instance's number of arms, {number}, or None, got {num_arms}"
        )


def _check_length(arms: Arms, horizon: int) -> None:
    """Refuse arms that know fewer steps than an episode has, before it begins."""
    if arms.num_steps is not None and not horizon <= arms.num_steps:
        raise ValueError(
            f"`horizon` must be at most {arms.num_steps}, the steps that the arms are given for, "
            f"got {horizon}"
        )
