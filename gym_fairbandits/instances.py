"""Named and random instances: the papers' examples, proofs and experiments.

An instance is given to an environment as a name (``"early_vs_late"``), a name with parameters
(``{"name": "lower_bound", "late": 2}``), the arms themselves, or a callable that draws them.
P is Patil et al., L is Lim, Tan, Soh; printed errors of the papers are put right here, and each
docstring says where.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits import arms as arm_laws
from gym_fairbandits import curves as curve_families
from gym_fairbandits._checks import checked_choice, checked_float, checked_int
from gym_fairbandits._grid import FAMILIES, MAX_PARAMETERS, CurveGrid
from gym_fairbandits.arms import Arms, Bernoulli, Gaussian
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Power,
    check_improving,
)

__all__ = [
    "EGALITARIAN",
    "IMPROVING",
    "early_vs_late",
    "egal_lower_bound",
    "improving_lower_bound",
    "policy_vs_external",
    "round_robin_trap",
    "two_level",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CurveLike: TypeAlias = Curve | Mapping[str, Any]
ImprovingInstance: TypeAlias = (
    str
    | Mapping[str, Any]
    | Sequence[CurveLike]
    | Callable[[np.random.Generator, int], Sequence[CurveLike]]
)
EgalInstance: TypeAlias = (
    str | Mapping[str, Any] | Arms | Callable[[np.random.Generator, int, int], Arms]
)
StreamOf: TypeAlias = Callable[[int], np.random.Generator]

DEFAULT_NUM_ARMS = 10


# --- Improving arms (P) -------------------------------------------------------------------------


def early_vs_late(
    early_asymptote: float = 0.5,
    early_ramp: float = 2,
    late_asymptote: float = 1.0,
    late_ramp: float = 40,
) -> list[Curve]:
    """Return P's Figure 1: an early gifted arm and a late bloomer with the higher potential.

    The figure has no numbers; the defaults are ``min(n/4, 1/2)`` against ``min(n/40, 1)``.
    """
    return [LinearCap(early_asymptote, early_ramp), LinearCap(late_asymptote, late_ramp)]


def improving_lower_bound(
    num_arms: int = DEFAULT_NUM_ARMS,
    steps: int = 1000,
    late: int | None = -1,
    printing: str = "main",
) -> list[Curve]:
    """Return the family of P's Theorem 2, on which every deterministic policy loses.

    All arms start alike; arm ``late`` goes on rising after the others have stopped at 1/k, with
    k = ``num_arms`` and T = ``steps``.

    Args:
        num_arms: k, at least 2.
        steps: T, the number of steps that the family is built for.
        late: Index of the late bloomer (negative: from the end); ``None`` for the instance
            without one, from which a proof picks the arm that the policy pulls least.
        printing: ``"main"``: ``min(n/(kN), 1/k)`` and ``min(n/(kN), 1)``, N = ceil(T/k).
            ``"appendix"``: ``min(n/T, 1/k)`` and ``min(n/T, 1)``; as printed (``n/T`` up to N)
            it would fall after N unless k divides T. Both coincide if k divides T.

    Raises:
        ValueError: If a parameter breaks its rule.
    """
    num_arms = checked_int("num_arms", num_arms, minimum=2)
    steps = checked_int("steps", steps)
    checked_choice("printing", printing, ("main", "appendix"))
    sweep = math.ceil(steps / num_arms) if printing == "main" else steps / num_arms
    curves: list[Curve] = [LinearCap(1 / num_arms, sweep)] * num_arms
    if late is not None:
        arm = checked_int("late", late, minimum=-num_arms, maximum=num_arms - 1)
        curves[arm] = LinearCap(1.0, num_arms * sweep)
    return curves


def round_robin_trap(num_arms: int = DEFAULT_NUM_ARMS, steps: int = 1000) -> list[Curve]:
    """Return the instance of P's Theorem 3: one arm ``min(n/T, 1)``, the rest pay 0.

    The good arm is the last one: only there is it the worst for round robin when ``num_arms``
    does not divide T = ``steps``.
    """
    num_arms = checked_int("num_arms", num_arms)
    curves: list[Curve] = [Constant(0.0)] * (num_arms - 1)
    return [*curves, LinearCap(1.0, checked_int("steps", steps))]


def policy_vs_external() -> list[Curve]:
    """Return P's Example A.2: ``min(n/10, 1)`` against a constant 0.1.

    Always pulling the second arm has no external regret and a policy regret of 0.9 T - 4.5
    (T >= 10). The paper prints ``n/10`` without the cap, which leaves [0, 1].
    """
    return [LinearCap(1.0, 10), Constant(0.1)]


class CurveSource(ABC):
    """Where an environment's curves come from.

    Attributes:
        num_arms: How many curves there are.
        redrawn: Whether they are drawn anew for each episode.
    """

    num_arms: int
    redrawn: bool

    @abstractmethod
    def install(self, grid: CurveGrid, rows: Ints, stream_of: StreamOf) -> None:
        """Put an instance into each of ``rows``, drawn from the stream of its row."""


class FixedCurves(CurveSource):
    """The same curves in every episode."""

    redrawn = False

    def __init__(self, curves: Sequence[Curve]) -> None:
        """Keep the curves; they have been checked."""
        self.curves = tuple(curves)
        self.num_arms = len(self.curves)

    def install(self, grid: CurveGrid, rows: Ints, stream_of: StreamOf) -> None:
        """Put the curves into each of ``rows``; draws nothing."""
        grid.set_rows(rows, self.curves)


class RandomConcave(CurveSource):
    """Random arms of several families whose best arm depends on the horizon.

    Each arm draws, in this order and independently: a family (linear cap, exponential,
    hyperbolic, or a square root up to a cap), an asymptote uniform on (0, 1), and a scale
    log-uniform on [1, 10^4], in pulls: the ramp, 1/rate or half-saturation of the family.
    """

    redrawn = True
    FAMILIES = (LinearCap, Exponential, Hyperbolic, Power)

    def __init__(self, num_arms: int = DEFAULT_NUM_ARMS) -> None:
        """Draw ``num_arms`` arms per episode."""
        self.num_arms = checked_int("num_arms", num_arms)

    def install(self, grid: CurveGrid, rows: Ints, stream_of: StreamOf) -> None:
        """Draw an instance for each of ``rows``."""
        uniforms = np.array([stream_of(row).random((self.num_arms, 3)) for row in rows.tolist()])
        family = (uniforms[..., 0] * len(self.FAMILIES)).astype(np.int64)
        scale = np.exp(uniforms[..., 2] * math.log(1e4))
        parameters = np.zeros((MAX_PARAMETERS, *family.shape))
        parameters[0] = np.maximum(uniforms[..., 1], 2.0**-54)
        parameters[1] = np.where(family == self.FAMILIES.index(Exponential), 1 / scale, scale)
        parameters[2] = 0.5  # the exponent of Power; the other families do not read it
        codes = np.array([FAMILIES.index(curve) for curve in self.FAMILIES])
        grid.set_parametric(rows, codes[family], parameters)


class DrawnCurves(CurveSource):
    """Curves that a callable draws for each episode."""

    redrawn = True

    def __init__(
        self,
        draw: Callable[[np.random.Generator, int], Sequence[CurveLike]],
        num_arms: int,
        horizon: int,
        validate: bool,
    ) -> None:
        """Keep the callable; its curves are checked at every draw."""
        self._draw, self.num_arms = draw, num_arms
        self._horizon, self._validate = horizon, validate

    def install(self, grid: CurveGrid, rows: Ints, stream_of: StreamOf) -> None:
        """Call for each of ``rows``; all calls come before the grid is touched."""
        drawn = [
            _checked_curves(
                self._draw(stream_of(row), self.num_arms), self._horizon, self._validate
            )
            for row in rows.tolist()
        ]
        for curves in drawn:
            _check_count(len(curves), self.num_arms)
        for row, curves in zip(rows, drawn, strict=True):
            grid.set_rows(np.array([row]), curves)


def improving_source(
    instance: ImprovingInstance, num_arms: int | None, horizon: int, validate: bool
) -> CurveSource:
    """Return the source of the curves that a user's ``instance`` asks for.

    Args:
        instance: A name of :data:`IMPROVING`, a dict of a name and parameters, curves or their
            dict forms, or a callable ``(rng, num_arms) -> curves``.
        num_arms: The number of arms, or ``None`` for the instance's own (10 where it has none).
        horizon: The episode's steps: the default of ``steps``, and how far curves are checked.
        validate: Whether curves outside the model of P are refused.

    Raises:
        TypeError: If ``instance`` is none of these.
        ValueError: If a name or parameter is unknown, a curve is outside the model, or the
            number of arms differs from ``num_arms``.
    """
    if num_arms is not None:
        num_arms = checked_int("num_arms", num_arms)
    if isinstance(instance, str | Mapping):
        name, parameters = _name_and_parameters(instance, IMPROVING)
        built = _call(name, IMPROVING[name], parameters, num_arms=num_arms, steps=horizon)
        if isinstance(built, CurveSource):
            _check_count(built.num_arms, num_arms)
            return built
        return _fixed(built, num_arms, horizon, validate)
    if callable(instance):
        return DrawnCurves(instance, num_arms or DEFAULT_NUM_ARMS, horizon, validate)
    return _fixed(instance, num_arms, horizon, validate)


def _fixed(
    curves: Sequence[CurveLike], num_arms: int | None, horizon: int, validate: bool
) -> FixedCurves:
    checked = _checked_curves(curves, horizon, validate)
    _check_count(len(checked), num_arms)
    return FixedCurves(checked)


def _checked_curves(curves: Sequence[CurveLike], horizon: int, validate: bool) -> list[Curve]:
    if isinstance(curves, Curve) or not isinstance(curves, Sequence):
        raise TypeError(
            "`instance` must be a name, a dict with a name, a sequence of curves or a callable, "
            f"got {curves!r}"
        )
    if not curves:
        raise ValueError("`instance` must hold at least one curve, got none")
    made = []
    for arm, item in enumerate(curves):
        curve = curve_families.from_dict(item) if isinstance(item, Mapping) else item
        if not isinstance(curve, Curve):
            raise TypeError(f"arm {arm} must be a `Curve` or its dict form, got {item!r}")
        if validate:
            check_improving(curve, horizon, arm)
        made.append(curve)
    return made


# --- Assignment arms (L) ------------------------------------------------------------------------


def random_means(rng: np.random.Generator, num_arms: int) -> Floats:
    """Return means uniform on [0.01, 0.99], as in L's first experiment."""
    return 0.01 + 0.98 * rng.random(num_arms)


def random_bernoulli(rng: np.random.Generator, num_arms: int) -> Bernoulli:
    """Return Bernoulli arms with random means (L, Figure 3)."""
    return Bernoulli(random_means(rng, num_arms))


def random_gaussian(rng: np.random.Generator, num_arms: int, variance: float = 1.0) -> Gaussian:
    """Return Gaussian arms with random means (L, Figure 3: variance 1 and 0.1)."""
    std = math.sqrt(checked_float("variance", variance, at_least=0))
    return Gaussian(random_means(rng, num_arms), std)


def two_level(
    num_users: int,
    num_arms: int = DEFAULT_NUM_ARMS,
    high: float = 0.8,
    low: float = 0.5,
) -> Bernoulli:
    """Return Bernoulli arms: ``high`` for the first U, ``low`` for the rest (L, experiment 2)."""
    means = np.full(num_arms, checked_float("low", low, at_least=0, at_most=1))
    means[:num_users] = checked_float("high", high, at_least=0, at_most=1)
    return Bernoulli(means)


def egal_lower_bound(
    num_users: int,
    num_arms: int = DEFAULT_NUM_ARMS,
    steps: int = 1000,
    boosted: Sequence[int] | None = None,
) -> Gaussian:
    """Return an instance of the pair in L's Theorem 3: unit Gaussian arms with tiny gaps.

    With gap = sqrt((K - U) / (8 T U^2)), nu has mean ``gap`` on the first U arms and 0 on the
    rest; nu' has besides ``2 * gap`` on U ``boosted`` arms of the rest, those that a policy plays
    least under nu.

    Args:
        num_users: U.
        num_arms: K, at least 2 U.
        steps: T, at least (K - U) / (2 U^2), so that means stay at most 1.
        boosted: ``None`` for nu; U distinct arms outside the first U for nu'.

    Raises:
        ValueError: If a parameter breaks its rule.
    """
    if not num_arms >= 2 * num_users:
        raise ValueError(
            f"`num_arms` must be at least 2 * num_users = {2 * num_users} for the lower bound, "
            f"got {num_arms}"
        )
    steps = checked_int("steps", steps)
    gap = math.sqrt((num_arms - num_users) / (8 * steps * num_users**2))
    if not 2 * gap <= 1:
        raise ValueError(
            "`steps` must be at least (num_arms - num_users) / (2 * num_users**2) = "
            f"{(num_arms - num_users) / (2 * num_users**2):g} for the lower bound, got {steps}"
        )
    means = np.zeros(num_arms)
    means[:num_users] = gap
    if boosted is not None:
        arms = [
            checked_int("boosted", arm, minimum=num_users, maximum=num_arms - 1) for arm in boosted
        ]
        if len(set(arms)) != num_users or len(arms) != num_users:
            raise ValueError(
                f"`boosted` must hold {num_users} distinct arms, one per user, got {boosted!r}"
            )
        means[arms] = 2 * gap
    return Gaussian(means, 1.0)


class ArmSource(ABC):
    """Where an environment's assignment arms come from.

    Attributes:
        num_arms: K.
        redrawn: Whether they are drawn anew for each episode.
    """

    num_arms: int
    redrawn: bool

    @abstractmethod
    def draw(self, stream_of: Callable[[], np.random.Generator]) -> Arms:
        """Return an episode's arms; the stream is asked for only if they are drawn."""


class FixedArms(ArmSource):
    """The same arms in every episode."""

    redrawn = False

    def __init__(self, arms: Arms) -> None:
        """Keep the arms."""
        self._arms, self.num_arms = arms, arms.num_arms

    def draw(self, stream_of: Callable[[], np.random.Generator]) -> Arms:
        """Return the arms; draws nothing."""
        return self._arms


class DrawnArms(ArmSource):
    """Arms that a callable draws for each episode."""

    redrawn = True

    def __init__(self, function: Callable[..., Arms], num_arms: int, *arguments: int) -> None:
        """Keep the callable ``(rng, *arguments) -> Arms``."""
        self._function, self.num_arms, self._arguments = function, num_arms, arguments

    def draw(self, stream_of: Callable[[], np.random.Generator]) -> Arms:
        """Call with the stream, and check the number of arms."""
        arms = self._function(stream_of(), *self._arguments)
        if not isinstance(arms, Arms):
            raise TypeError(f"`instance` must return an `Arms`, got {arms!r}")
        _check_count(arms.num_arms, self.num_arms)
        return arms


def egal_source(
    instance: EgalInstance, num_users: int, num_arms: int | None, horizon: int
) -> ArmSource:
    """Return the source of the arms that a user's ``instance`` asks for.

    Args:
        instance: A name of :data:`EGALITARIAN`, a dict of a name and parameters, an ``Arms`` or
            its dict form, or a callable ``(rng, num_users, num_arms) -> Arms``.
        num_users: U.
        num_arms: K, or ``None`` for the instance's own (10 where it has none).
        horizon: The episode's steps: the default of ``steps``.

    Raises:
        TypeError: If ``instance`` is none of these.
        ValueError: If a name or parameter is unknown or wrong, or the number of arms differs.
    """
    if num_arms is not None:
        num_arms = checked_int("num_arms", num_arms)
    if isinstance(instance, Mapping) and "family" in instance:
        instance = arm_laws.from_dict(instance)
    if isinstance(instance, Arms):
        _check_count(instance.num_arms, num_arms)
        return FixedArms(instance)
    count = DEFAULT_NUM_ARMS if num_arms is None else num_arms
    if isinstance(instance, str | Mapping):
        name, parameters = _name_and_parameters(instance, EGALITARIAN)
        build = EGALITARIAN[name]
        if "rng" in inspect.signature(build).parameters:
            rng = np.random.default_rng(0)  # a trial draw: wrong parameters fail here, not later
            trial = _call(name, build, {**parameters, "rng": rng}, num_arms=count)
            _check_count(trial.num_arms, num_arms)
            draw = partial(build, **{"num_arms": count, **parameters})
            return DrawnArms(draw, trial.num_arms)
        arms = _call(name, build, parameters, num_users=num_users, num_arms=num_arms, steps=horizon)
        _check_count(arms.num_arms, num_arms)
        return FixedArms(arms)
    if callable(instance):
        return DrawnArms(instance, count, num_users, count)
    raise TypeError(
        "`instance` must be a name, a dict with a name or family, an `Arms` or a callable, "
        f"got {instance!r}"
    )


# --- Shared -------------------------------------------------------------------------------------

IMPROVING: dict[str, Callable[..., list[Curve]] | type[CurveSource]] = {
    "random_concave": RandomConcave,
    "early_vs_late": early_vs_late,
    "lower_bound": improving_lower_bound,
    "round_robin_trap": round_robin_trap,
    "policy_vs_external": policy_vs_external,
}
EGALITARIAN: dict[str, Callable[..., Arms]] = {
    "bernoulli": random_bernoulli,
    "gaussian": random_gaussian,
    "two_level": two_level,
    "lower_bound": egal_lower_bound,
}


def _name_and_parameters(
    instance: str | Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    parameters = {} if isinstance(instance, str) else dict(instance)
    name = instance if isinstance(instance, str) else parameters.pop("name", None)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"`instance` must be one of {sorted(known)}, got {name!r}")
    return name, parameters


def _call(name: str, build: Callable[..., Any], given: dict[str, Any], **defaults: Any) -> Any:
    """Call ``build`` with what the user gave and those defaults that it takes and are not None."""
    takes = inspect.signature(build).parameters
    unknown = sorted(set(given) - set(takes))
    if unknown:
        accepted = sorted(set(takes) - {"rng"})
        raise ValueError(f"instance {name!r} takes the parameters {accepted}, got {unknown}")
    known = {key: value for key, value in defaults.items() if value is not None and key in takes}
    return build(**{**known, **given})


def _check_count(number: int, num_arms: int | None) -> None:
    if num_arms is not None and number != num_arms:
        raise ValueError(
            f"`num_arms` must be the instance's number of arms, {number}, or None, got {num_arms}"
        )
