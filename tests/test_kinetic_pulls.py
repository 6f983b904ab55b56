"""Algorithm 1 for many arms pulls what exact fractions and the stepped agent pull."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import episode, exact_algorithm1, exact_cap, float_caps, random_caps
from helpers_names import IMPROVING

from gym_fairbandits.agents import AnytimeImproving
from gym_fairbandits.agents.base import TIE_TOLERANCE
from gym_fairbandits.agents.improving import optimistic_estimate
from gym_fairbandits.curves import Constant, Curve, Exponential, LinearCap, PowerLaw, Tabulated
from gym_fairbandits.experiments import anytime_improving
from gym_fairbandits.experiments.kinetic import _Arms
from gym_fairbandits.instances import IMPROVING as IMPROVING_INSTANCES
from gym_fairbandits.instances import random_concave


def agents_pulls(curves: Sequence[Curve], horizon: int, tolerance: float = TIE_TOLERANCE) -> Any:
    env = gym.make(IMPROVING, instance=curves, horizon=horizon, validate=False)
    return episode(env, AnytimeImproving(tolerance), seed=0)[0]


@pytest.mark.parametrize("printing", ["main", "appendix"])
@pytest.mark.parametrize(("num_arms", "horizon"), [(2, 301), (5, 1000), (10, 2000), (37, 999)])
def test_kinetic_pulls_are_exact_on_the_lower_bound_instances(
    printing: str, num_arms: int, horizon: int
) -> None:
    share = Fraction(1, num_arms)
    ramp = num_arms * -(-horizon // num_arms) if printing == "main" else horizon
    exact = [exact_cap(share, ramp * share)] * num_arms
    exact[1] = exact_cap(Fraction(1), Fraction(ramp))
    curves = IMPROVING_INSTANCES["lower_bound"](
        late=1, printing=printing, num_arms=num_arms, steps=horizon
    )
    kinetic = anytime_improving(curves, horizon).tolist()
    assert kinetic == exact_algorithm1(exact, horizon)
    assert kinetic == agents_pulls(curves, horizon)


def test_kinetic_pulls_are_exact_on_random_caps() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        parameters = random_caps(rng, int(rng.integers(1, 9)))
        horizon = int(rng.integers(1, 400))
        exact = [exact_cap(top, ramp) for top, ramp in parameters]
        kinetic = anytime_improving(float_caps(parameters), horizon).tolist()
        assert kinetic == exact_algorithm1(exact, horizon)


@pytest.mark.parametrize("tolerance", [0.0, TIE_TOLERANCE, 0.1])
@pytest.mark.parametrize("num_arms", [1, 2, 12, 300])
def test_kinetic_pulls_are_the_agents(num_arms: int, tolerance: float) -> None:
    rng = np.random.default_rng(num_arms)
    families: list[Sequence[Curve]] = [
        random_concave(rng, num_arms),
        [PowerLaw(*rng.random(2)) for _ in range(num_arms)],
        [Exponential(rng.random(), 10 ** -rng.uniform(0, 4)) for _ in range(num_arms)],
        [Constant(0.0)] * num_arms,
        [Constant(0.3), *(LinearCap(0.5, 4000.0) for _ in range(num_arms - 1))],
    ]
    for curves in families:
        kinetic = anytime_improving(curves, 1500, tolerance).tolist()
        assert kinetic == agents_pulls(curves, 1500, tolerance)


def test_kinetic_pulls_pass_the_rewards_evaluated_together() -> None:
    curves = [LinearCap(0.9, 3000.0), Constant(0.2), LinearCap(0.5, 100.0)]
    assert anytime_improving(curves, 4000).tolist() == agents_pulls(curves, 4000)


def test_kinetic_estimate_is_the_agents_value_for_value() -> None:
    rng = np.random.default_rng(3)
    arms = _Arms(random_concave(rng, 6), 50)
    for arm in [*range(6), *rng.integers(0, 6, 40).tolist()]:
        arms.pull(arm)
        level = max(arms.pulls)
        observation = {
            "pulls": np.array([arms.pulls]),
            "reward_sum": np.array([arms.totals]),
            "last_reward": np.array([arms.last]),
            "last_increment": np.array([arms.rises]),
        }
        expected = optimistic_estimate(observation)[0].tolist()
        assert [arms.estimate(i, level) for i in range(6)] == expected


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 5), ValueError, "at least one curve"),
        (([0.3], 5), TypeError, "arm 0 must be a `Curve`"),
        (([Constant(0.3)], 0), ValueError, "`horizon` must be at least 1"),
        (([Constant(0.3)], 5, 1.0), ValueError, "`tolerance` must be below 1"),
        (([Constant(0.3)], 5, -0.1), ValueError, "`tolerance` must be at least 0"),
        (([Tabulated((0.5, 0.2))], 5), ValueError, "must not decrease"),
        (([Tabulated((-0.5, 0.2))], 5), ValueError, "must not be negative"),
    ],
)
def test_wrong_curves_are_named(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        anytime_improving(*arguments)
