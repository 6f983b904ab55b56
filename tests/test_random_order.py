"""Agents that take arms in random order against published cases and exact expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import IMPROVING, Floats
from helpers_rising import PUBLISHED, linear, pulled
from scipy.stats import chisquare

from gym_fairbandits.agents import (
    Agent,
    HorizonAwareImproving,
    HybridRising,
    RandomRoundRobin,
    SinglePeakedOptimism,
)
from gym_fairbandits.curves import Constant, Curve, LinearCap, Tabulated


def seeded(agent: Agent, seed: int) -> Agent:
    agent.reset(seed=seed)
    return agent


def many(
    agent: Agent, curves: Sequence[Curve], steps: int, rows: int
) -> tuple[list[list[int]], Floats]:
    """Return the arms and the total rewards of ``rows`` episodes with seeds 0, 1, ..."""
    envs = gym.make_vec(
        IMPROVING, rows, instance=list(curves), horizon=steps, horizon_known=True, validate=False
    )
    observation, _ = envs.reset(seed=0)
    seeded(agent, 0)
    arms, totals = [], np.zeros(rows)
    for _ in range(steps):
        arms.append(agent.act(observation))
        observation, rewards, *_ = envs.step(arms[-1])
        totals += rewards
    return np.array(arms).T.tolist(), totals


@pytest.mark.parametrize(
    ("case", "make"),
    [
        (PUBLISHED["ptrr"][0], partial(RandomRoundRobin, optimum=0.9)),
        (PUBLISHED["ptrr"][1], partial(RandomRoundRobin, optimum=1.0, tau=40)),
    ],
)
def test_random_order_reproduces_the_published_cases(
    case: dict[str, Any], make: Callable[[], Agent]
) -> None:
    curves = [LinearCap(0.25, 10), LinearCap(0.25, 10), LinearCap(1, 40), LinearCap(0.25, 10)]
    found = 0
    for arms, reward in zip(*many(make(), curves, 40, rows=100), strict=True):
        tried = list(dict.fromkeys(arms))
        if tried == case["order"][: len(tried)]:
            found += 1
            assert np.bincount(arms, minlength=4).tolist() == case["counts"]
            assert reward == pytest.approx(float(Fraction(case["reward"])), rel=1e-12)
    assert found


def test_the_optimum_at_the_wrong_pull_costs_a_linear_best_arm() -> None:
    # f*(36) = 0.9 goes with 36 pulls: the linear arm is never left. Told f*(40) = 1 it is left
    # after one pull: 0.025 < 1 / 36. It is then the last one, as all others pay nothing.
    curves = [linear(0.025, 40), Constant(0.0), Constant(0.0), Constant(0.0)]
    for optimum, kept in ((0.9, True), (1.0, False)):
        for arms in many(RandomRoundRobin(optimum), curves, 40, rows=10)[0]:
            first = arms.index(0)
            assert (arms[first : first + 2] == [0, 0]) == (kept or first == 3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_an_arm_is_left_when_it_falls_behind_the_line(alpha: float) -> None:
    # 0.3 >= 0.9 (n / 30)^alpha up to n = 30 / 3^(1 / alpha).
    last = {0.5: 3, 1.0: 10, 2.0: 17}[alpha]
    agent = RandomRoundRobin(optimum=0.9, tau=30, alpha=alpha)
    arms = pulled(seeded(agent, 1), [Constant(0.3)] * 3, 2 * last + 3, known=False)
    assert [arms.count(arm) for arm in dict.fromkeys(arms)] == [last + 1, last + 1, 1]


def test_when_all_arms_were_left_the_best_last_reward_is_pulled() -> None:
    curves = [Constant(0.1), Constant(0.4), Constant(0.2)]
    agent = RandomRoundRobin(optimum=1.0, tau=2)
    for seed in range(6):
        arms = pulled(seeded(agent, seed), curves, 9, known=False)
        assert sorted(arms[:3]) == [0, 1, 2]
        assert arms[3:] == [1] * 6


def exact_reward(num_arms: int, sweep: int, place: int) -> Fraction:
    """Return what random order earns if the late bloomer of the lower bound comes in this place.

    Every other arm keeps up with n / T until pull ``sweep`` and is left after one pull more.
    """
    steps = num_arms * sweep
    wasted = min(place * (sweep + 1), steps)
    whole, rest = divmod(wasted, sweep + 1)
    early = Fraction(sweep * (sweep + 1), 2 * steps) + Fraction(1, num_arms)
    rest_paid = sum(Fraction(min(n, sweep), steps) for n in range(1, rest + 1))
    late = steps - wasted
    return whole * early + rest_paid + Fraction(late * (late + 1), 2 * steps)


def test_expected_ratio_on_the_lower_bound_family() -> None:
    num_arms, sweep, rows = 5, 8, 400
    steps = num_arms * sweep
    rewards = [float(exact_reward(num_arms, sweep, place)) for place in range(num_arms)]
    caps = [LinearCap(1 / num_arms, sweep)] * 4
    curves = [*caps[:2], LinearCap(1, steps), *caps[2:]]
    _, totals = many(RandomRoundRobin(optimum=1.0, tau=steps), curves, steps, rows)
    places = np.abs(totals[:, None] - rewards).argmin(axis=1)
    np.testing.assert_allclose(totals, np.array(rewards)[places], rtol=1e-12)
    assert chisquare(np.bincount(places, minlength=num_arms)).pvalue > 1e-3
    # Far better than the k / 2 that no deterministic policy can beat.
    mean = sum(exact_reward(num_arms, sweep, place) for place in range(num_arms)) / num_arms
    ratio = Fraction(steps + 1, 2) / mean
    assert float(ratio) == pytest.approx(1.9431279620853081, rel=1e-12)
    assert (steps + 1) / 2 / totals.mean() == pytest.approx(float(ratio), rel=0.15)


def test_an_unknown_optimum_is_guessed_between_its_bounds() -> None:
    # T = 16, k = 2: four pulls each, then L = 0.25 and U = 0.5, so m is 0.25 or 0.5. Arm 1 pays
    # 0.25 and is left, if m is 0.5, when 0.25 < 0.5 n / 16, at n = 9; arm 0 is never left.
    seen: dict[tuple[int, ...], int] = {}
    for arms in many(RandomRoundRobin(), [Constant(0.5), Constant(0.25)], 16, rows=240)[0]:
        assert arms[:8] == [0, 1] * 4
        counts = tuple(np.bincount(arms, minlength=2).tolist())
        seen[counts] = seen.get(counts, 0) + 1
    assert set(seen) == {(12, 4), (4, 12), (7, 9)}
    observed = [seen[counts] for counts in ((12, 4), (4, 12), (7, 9))]
    assert chisquare(observed, [120, 60, 60]).pvalue > 1e-3


def test_a_horizon_given_is_the_horizon_observed() -> None:
    curves = [LinearCap(0.9, 30), Constant(0.3), LinearCap(0.5, 7)]
    makers: list[Callable[[int | None], Agent]] = [
        lambda horizon: HorizonAwareImproving(horizon),
        lambda horizon: SinglePeakedOptimism(horizon=horizon),
        lambda horizon: RandomRoundRobin(horizon=horizon),
        lambda horizon: RandomRoundRobin(0.8, horizon),
        lambda horizon: HybridRising(0.8, horizon=horizon),
    ]
    for make in makers:
        observed = pulled(seeded(make(None), 3), curves, 33, known=True)
        assert pulled(seeded(make(33), 3), curves, 33, known=False) == observed


def test_an_unknown_horizon_doubles() -> None:
    # k = 2: runs of 8, 16 and 32 steps begin at 0, 8 and 24, each with 2, 4 and 8 sweeps.
    curves = [Constant(0.5), LinearCap(0.8, 40)]
    sequences = [
        pulled(seeded(RandomRoundRobin(), 4), curves, horizon, known=False)
        for horizon in (56, 40, 200)
    ]
    assert sequences[0][:40] == sequences[1]
    assert sequences[2][:56] == sequences[0]
    for first, sweeps in ((0, 2), (8, 4), (24, 8), (56, 16), (120, 32)):
        assert sequences[2][first : first + 2 * sweeps] == [0, 1] * sweeps


def test_each_doubled_run_has_an_order_of_its_own() -> None:
    curves = [Constant(0.5)] * 3
    agent = RandomRoundRobin()
    firsts = set()
    for seed in range(12):
        arms = pulled(seeded(agent, seed), curves, 84, known=False)
        firsts.add((arms[6], arms[24], arms[60]))  # after the sweeps of the three runs
    assert len(firsts) > 8


def test_hybrid_commits_to_an_arm_that_cannot_be_surpassed() -> None:
    # U = 10 f after one pull: 5 and 2. Arm 0 is flat, U = 0.5; arm 1 too, U = 0.2 <= 0.5.
    curves = [Constant(0.5), Constant(0.2)]
    assert pulled(HybridRising(0.5, tau=10), curves, 10) == [0, 1, 0, 1, *[0] * 6]


def test_hybrid_explores_by_the_largest_final_reward() -> None:
    # After one pull each, U is 12 f: 1.2, 6 and 3. Arm 1 turns out flat, U = 0.5; arm 2 then has
    # 0.3 + 10 x 0.05 = 0.8; so the linear arm, which can become 1.2, is pulled to the end.
    curves = [linear(0.1), Constant(0.5), Tabulated((0.25, 0.3, 0.35, 0.4))]
    assert pulled(HybridRising(1.0, budget=12), curves, 12) == [0, 1, 2, 1, 2, *[0] * 7]


@pytest.mark.parametrize("budget", [3, 4])
def test_hybrid_goes_over_to_random_order_after_its_budget(budget: int) -> None:
    # At step 3 arm 1 can still become 2; at step 4 it is certain that arm 0 is best. In random
    # order 0.2 >= 0.05 n keeps arm 1 up to n = 4 and leaves it at n = 5.
    curves = [Constant(0.5), Constant(0.2)]
    agent = HybridRising(0.5, budget=budget, tau=10)
    sequences = {tuple(pulled(seeded(agent, seed), curves, 10)) for seed in range(20)}
    if budget == 4:
        assert sequences == {(0, 1, 0, 1, 0, 0, 0, 0, 0, 0)}
    else:
        assert sequences == {(0, 1, *[0] * 8), (0, 1, 0, 1, 1, 1, 1, 0, 0, 0)}
