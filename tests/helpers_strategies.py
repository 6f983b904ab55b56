"""Strategies of hypothesis: curves, laws of arms, and environments of either kind in wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FlattenObservation
from helpers_envs import drawn_laws, drawn_mixture, drawn_varying
from helpers_names import EGAL, IMPROVING, Kwargs
from hypothesis import strategies as st

from gym_fairbandits import arms, curves, wrappers

Wrap = Callable[[Any], Any]
MOST_TABLE = 10_000  # assignments that are worth a table here
METRICS: tuple[str, ...] = ("PolicyRegret", "FairnessMetrics", "ExternalRegret")


# --- Curves -------------------------------------------------------------------------------------


def powers_of_ten(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most).map(lambda exponent: float(10.0**exponent))


units = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1))
scales = powers_of_ten(-3, 6)
numbers = st.floats(-5, 5)
exponents = st.floats(0.02, 20)


def concave_table(rises: Sequence[float]) -> curves.Tabulated:
    values = np.cumsum(sorted(rises, reverse=True))
    return curves.Tabulated(tuple(np.minimum(values / max(1.0, values[-1]), 1.0).tolist()))


def bent_line(pieces: Sequence[tuple[float, float]]) -> curves.PiecewiseLinear:
    heights, ramps = zip(*pieces, strict=True)
    return curves.PiecewiseLinear(tuple(height / len(heights) for height in heights), ramps)


def bent_any_way(heights: Sequence[float]) -> curves.PiecewiseLinear:
    ramps = tuple(1 + 3 * abs(height) for height in heights)
    return curves.PiecewiseLinear(tuple(heights), ramps)


def mean_of_two(pair: tuple[curves.Curve, curves.Curve]) -> curves.Curve:
    return 0.5 * pair[0] + 0.5 * pair[1]


always_improving = st.one_of(
    st.builds(curves.LinearCap, units, scales),
    st.builds(curves.Exponential, units, powers_of_ten(-6, 2)),
    st.builds(curves.Constant, units),
    st.builds(curves.Hyperbolic, units, scales),
    st.builds(curves.PowerLaw, units, exponents),
    st.builds(curves.Polynomial, units, powers_of_ten(-3, 4), exponents),
    st.builds(curves.Logarithmic, units, scales, scales),
    st.builds(curves.Power, units, scales, st.floats(0.02, 1)),
    st.builds(curves.Logistic, units, powers_of_ten(-3, 2), st.floats(-10, 0)),
    st.builds(curves.Gompertz, units, st.floats(0.01, 1), powers_of_ten(-6, 2)),
    st.builds(curves.Weibull, units, scales, st.floats(0.02, 1)),
    st.builds(curves.Hill, units, scales, st.floats(0.02, 1)),
    st.lists(units, min_size=1, max_size=6).map(concave_table),
    st.lists(st.tuples(units, scales), min_size=1, max_size=4).map(bent_line),
)
improving_curves = st.one_of(
    always_improving,
    st.builds(curves.Scaled, units, always_improving),
    st.tuples(always_improving, always_improving).map(mean_of_two),
)
rows_of_numbers = st.lists(numbers, min_size=1, max_size=6).map(tuple)
rested_curves = st.one_of(
    improving_curves,
    st.builds(curves.Exponential, numbers, scales),
    st.builds(curves.Logistic, numbers, powers_of_ten(-3, 2), st.floats(-10, 50)),
    st.builds(curves.Gompertz, numbers, powers_of_ten(-2, 2), powers_of_ten(-6, 2)),
    st.builds(curves.Weibull, numbers, scales, exponents),
    st.builds(curves.Hill, numbers, scales, exponents),
    st.builds(curves.UnshiftedPowerLaw, numbers, exponents),
    st.builds(curves.Tabulated, rows_of_numbers),
    rows_of_numbers.map(bent_any_way),
    st.builds(
        curves.SinglePeaked,
        st.floats(0.01, 0.5),
        st.floats(0, 2),
        numbers,
        numbers,
        st.floats(-10, 10),
        numbers,
    ),
    st.builds(curves.NoveltyDecay, numbers, numbers, st.floats(0.01, 0.99), st.floats(0, 0.99)),
    st.builds(curves.Scaled, numbers, improving_curves),
    st.tuples(improving_curves, improving_curves).map(lambda pair: pair[0] + -1.5 * pair[1]),
)


@st.composite
def improving_settings(draw: st.DrawFn) -> Kwargs:
    """Arguments of ImprovingBandit-v0."""
    validate = draw(st.booleans())
    own = st.lists(improving_curves if validate else rested_curves, min_size=1, max_size=5)
    instance = draw(st.one_of(own, st.sampled_from(["random_concave", drawn_mixture])))
    if isinstance(instance, list) and draw(st.booleans()):
        instance = [curve.to_dict() for curve in instance]
    return {
        "instance": instance,
        "num_arms": len(instance) if isinstance(instance, list) else draw(st.integers(1, 5)),
        "noise_std": draw(st.sampled_from([0.0, 0.25])),
        "horizon": draw(st.integers(1, 12)),
        "horizon_known": draw(st.booleans()),
        "validate": validate,
    }


# --- Arms ---------------------------------------------------------------------------------------


@st.composite
def laws(draw: st.DrawFn, num_arms: int, horizon: int) -> arms.Arms:
    """Arms of any family, for episodes of ``horizon`` steps."""

    def row(entries: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(entries, min_size=num_arms, max_size=num_arms))

    def table(entries: st.SearchStrategy[Any], length: int) -> Any:
        return [row(entries) for _ in range(length)]

    stds = st.one_of(st.just(0.0), st.floats(0, 3))
    family = draw(st.integers(0, 6))
    if family == 0:
        return arms.Bernoulli(row(units))
    if family == 1:
        return arms.Gaussian(row(numbers), draw(stds) if draw(st.booleans()) else row(stds))
    if family == 2:
        return arms.Empirical(row(st.lists(numbers, min_size=1, max_size=4)))
    if family == 3:
        length = draw(st.integers(1, 6))
        return arms.Adversarial(table(numbers, length), periodic=length < horizon)
    if family == 4:
        switches = sorted(draw(st.sets(st.integers(1, 12), max_size=3)))
        return arms.Switching(table(units, len(switches) + 1), switches)
    if family == 5:
        switches = sorted(draw(st.sets(st.integers(1, 12), max_size=3)))
        return arms.Switching(table(numbers, len(switches) + 1), switches, row(stds))
    return arms.AdaptiveAdversary(num_arms, draw(st.integers(1, num_arms)), draw(numbers))


@st.composite
def assignment_settings(draw: st.DrawFn) -> Kwargs:
    """Arguments of EgalAssign-v0."""
    num_arms, capacity = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    horizon = draw(st.integers(1, 12))
    named: list[Any] = ["bernoulli", "gaussian", drawn_laws, drawn_varying]
    instance = draw(st.one_of(laws(num_arms, horizon), st.sampled_from(named)))
    if isinstance(instance, arms.Arms) and draw(st.booleans()):
        instance = instance.to_dict()
    return {
        "instance": instance,
        "num_users": draw(st.integers(1, min(8, capacity * num_arms))),
        "num_arms": num_arms,
        "capacity": capacity,
        "objective": draw(st.sampled_from(["egalitarian", "utilitarian"])),
        "horizon": horizon,
        "horizon_known": draw(st.booleans()),
    }


# --- Environments in wrappers -------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """An environment in its wrappers, from the inside out."""

    env_id: str
    kwargs: Kwargs
    max_episode_steps: int | None
    layers: tuple[Wrap, ...]

    def make(self) -> Any:
        env: Any = gym.make(
            self.env_id,
            max_episode_steps=self.max_episode_steps,
            disable_env_checker=True,
            **self.kwargs,
        )
        for layer in self.layers:
            env = layer(env)
        return env


seeds = st.integers(0, 2**31 - 1)
limits = st.one_of(st.none(), st.integers(1, 15))
metric_names = st.lists(st.sampled_from(METRICS), unique=True)
any_settings = st.one_of(
    st.tuples(st.just(IMPROVING), improving_settings()),
    st.tuples(st.just(EGAL), assignment_settings()),
)


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """Any environment in wrappers, those of observations outside of all others."""
    env_id, kwargs = draw(any_settings)
    layers: list[Wrap] = [getattr(wrappers, name) for name in draw(metric_names)]
    if env_id == EGAL:
        choices: list[Wrap | None] = [
            None,
            wrappers.RankedAssignment,
            wrappers.LehmerAssignment,
            wrappers.SequentialAssignment,
            wrappers.RotatedAssignment,
        ]
        if kwargs["num_arms"] ** kwargs["num_users"] <= MOST_TABLE:
            choices.append(wrappers.EnumeratedAssignment)
        chosen = draw(st.sampled_from(choices))
        if chosen is not None:
            # `ExternalRegret` must see every step, and a rotation takes several at once.
            skips = chosen is wrappers.RotatedAssignment and wrappers.ExternalRegret in layers
            layers.insert(len(layers) if skips else draw(st.integers(0, len(layers))), chosen)
    if draw(st.booleans()):
        layers.append(FlattenObservation)
    return Stack(env_id, kwargs, draw(limits), tuple(layers))


@st.composite
def vector_stacks(draw: st.DrawFn) -> tuple[str, Kwargs, tuple[str, ...]]:
    """Any environment, and the names of wrappers that there are for one and for many."""
    env_id, kwargs = draw(any_settings)
    names = draw(metric_names)
    if env_id == EGAL:
        choices = [None, "RankedAssignment", "LehmerAssignment"]
        if kwargs["num_arms"] ** kwargs["num_users"] <= MOST_TABLE:
            choices.append("EnumeratedAssignment")
        chosen = draw(st.sampled_from(choices))
        if chosen is not None:
            names.insert(draw(st.integers(0, len(names))), chosen)
    return env_id, kwargs, tuple(names)
