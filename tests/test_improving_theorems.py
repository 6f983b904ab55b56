"""The theorems of Patil et al., with their errata, hold for the agents that play improving arms."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import episode, exact_algorithm1, exact_cap, float_caps, random_caps
from helpers_names import IMPROVING

from gym_fairbandits.agents import Agent, AnytimeImproving, FixedArm, Greedy, RoundRobin
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Power,
    PowerLaw,
    Tabulated,
)
from gym_fairbandits.wrappers import PolicyRegret

DETERMINISTIC: dict[str, Callable[[], Agent]] = {
    "AnytimeImproving": AnytimeImproving,
    "RoundRobin": RoundRobin,
    "Greedy": Greedy,
    "FixedArm": lambda: FixedArm(1),
}


def outcome(
    agent: Agent, instance: Any, horizon: int, num_arms: int | None = None
) -> tuple[list[int], dict[str, Any]]:
    """Return the pulls of an episode and its metrics."""
    env = PolicyRegret(gym.make(IMPROVING, instance=instance, num_arms=num_arms, horizon=horizon))
    sequence, _, info = episode(env, agent, seed=0)
    return sequence, info


def ratio(agent: Agent, instance: Any, horizon: int, num_arms: int | None = None) -> float:
    value: float = outcome(agent, instance, horizon, num_arms)[1]["competitive_ratio"]
    return value


def random_curve(rng: np.random.Generator) -> Curve:
    top, scale = 0.01 + 0.99 * float(rng.random()), float(np.exp(rng.random() * math.log(1e3)))
    return [
        LinearCap(top, scale),
        Exponential(top, 1 / scale),
        Hyperbolic(top, scale),
        Power(top, scale, 0.5),
        Logarithmic(top, scale, 10 * scale),
        PowerLaw(top, float(rng.uniform(0.1, 2.0))),
        Constant(top),
        random_table(rng, top),
    ][int(rng.integers(8))]


def random_table(rng: np.random.Generator, top: float) -> Tabulated:
    """Return a random concave curve: falling increments from f(0) = 0."""
    rises = -np.sort(-rng.exponential(size=int(rng.integers(1, 80))))
    return Tabulated(tuple((rises.cumsum() / rises.sum() * top).tolist()))


def random_instance(seed: int) -> tuple[list[Curve], int]:
    rng = np.random.default_rng(seed)
    num_arms = int(rng.integers(2, 9))
    return [random_curve(rng) for _ in range(num_arms)], int(rng.integers(4, 40)) * num_arms


# --- Lemmas, and what every arm gets ------------------------------------------------------------


def crossings(seed: int) -> list[tuple[int, bool]]:
    """Return ``(N, whether it is the best for N pulls)`` of each first arm to exceed N pulls."""
    curves, horizon = random_instance(seed)
    sequence, _ = outcome(AnytimeImproving(), curves, horizon)
    earned = np.array([curve.cumulative(np.arange(horizon)) for curve in curves])
    pulls, found = [0] * len(curves), []
    for arm in sequence:
        if pulls[arm] == max(pulls) and pulls[arm] > 0:
            totals = earned[:, pulls[arm]]
            slack = 1e-8 * max(1.0, totals.max())
            found.append((pulls[arm], bool(totals[arm] >= totals.max() - slack)))
        pulls[arm] += 1
    return found


def test_the_first_arm_to_exceed_n_pulls_is_the_best_for_n_pulls_unless_it_was_forced() -> None:
    # Lemma 6 of Patil et al. as we read it. For N >= 2 the arm was chosen by its estimate, which
    # at N = N* is its Rew(N), and concave arms are never estimated below theirs. For N = 1 the
    # second sweep chose it.
    found = [crossing for seed in range(60) for crossing in crossings(seed)]
    chosen = [best for pulls, best in found if pulls >= 2]
    forced = [best for pulls, best in found if pulls == 1]
    assert len(chosen) > 2000
    assert all(chosen)
    assert not all(forced)


@pytest.mark.parametrize("seed", range(40))
def test_early_pulls_earn_at_least_their_share(seed: int) -> None:
    # Lemma 7 of Patil et al., tight: Rew(N) / Rew(T) >= N (N + 1) / (T (T + 1)).
    curve = random_curve(np.random.default_rng(seed))
    pulls = np.arange(1, 301)
    totals = curve.cumulative(pulls)
    share = totals / (pulls * (pulls + 1.0))  # never rises
    assert (np.diff(share) <= 1e-12 * share[:-1]).all()


def test_a_linear_arm_earns_exactly_that_share() -> None:
    curve = LinearCap(1.0, 300)
    for pulls in (1, 7, 100, 299):
        share = pulls * (pulls + 1) / (300 * 301)
        assert curve.cumulative(pulls) == pytest.approx(share * curve.cumulative(300), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_algorithm_1_lets_every_arm_reach_its_potential(seed: int) -> None:
    # Theorem 5, on arms that need up to 60 pulls for it.
    rng = np.random.default_rng(seed)
    curves = float_caps(random_caps(rng, int(rng.integers(2, 6))))
    sequence, _ = outcome(AnytimeImproving(), curves, 3000)
    pulls = np.bincount(sequence, minlength=len(curves))
    for curve, count in zip(curves, pulls.tolist(), strict=True):
        assert curve.asymptote - curve(count) <= 0.05


def test_the_myopic_policy_starves_the_late_bloomer() -> None:
    for agent, starved in ((Greedy(), True), (AnytimeImproving(), False)):
        sequence, _ = outcome(agent, "early_vs_late", 1000)
        assert (sequence.count(1) == 1) == starved


# --- Theorem 4: the competitive ratio of Algorithm 1 --------------------------------------------


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_algorithm_1_is_competitive_on_random_instances(start: int) -> None:
    for seed in range(start, start + 50):
        curves, horizon = random_instance(seed)
        assert horizon >= 4 * len(curves)
        worst = ratio(AnytimeImproving(), curves, horizon)
        assert 1 - 1e-9 <= worst <= 200 * len(curves)  # proved
        assert worst <= len(curves) * (1 + 1e-9)  # in every search so far


@pytest.mark.parametrize("seed", range(6))
def test_algorithm_1_is_competitive_on_random_concave_instances(seed: int) -> None:
    for num_arms, horizon in ((2, 40), (5, 20), (5, 400), (10, 1000)):
        env = PolicyRegret(gym.make(IMPROVING, num_arms=num_arms, horizon=horizon))
        worst = episode(env, AnytimeImproving(), seed=seed)[2]["competitive_ratio"]
        assert 1 - 1e-9 <= worst <= num_arms


@pytest.mark.parametrize("factor", [4, 5, 20])
@pytest.mark.parametrize("num_arms", [2, 3, 5, 10, 20])
def test_algorithm_1_is_competitive_on_the_instances_of_the_proofs(
    num_arms: int, factor: int
) -> None:
    for extra in (0, 1):
        horizon = factor * num_arms + extra
        for instance in (
            {"name": "lower_bound", "printing": "main"},
            {"name": "lower_bound", "printing": "appendix"},
            {"name": "lower_bound", "printing": "appendix", "late": 0},
            "round_robin_trap",
        ):
            assert ratio(AnytimeImproving(), instance, horizon, num_arms) <= num_arms


@pytest.mark.parametrize(
    ("num_arms", "beyond_32k", "beyond_200k"),
    [
        (2, False, False),
        (10, False, False),
        (47, False, False),
        (48, True, False),
        (299, True, False),
        (300, True, True),
    ],
)
def test_theorem_4_fails_at_twice_k_steps(
    num_arms: int, beyond_32k: bool, beyond_200k: bool
) -> None:
    # One linear arm among zeros: two forced pulls of it are all that T = 2k leaves.
    horizon = 2 * num_arms
    curves = [LinearCap(1.0, horizon), *[Constant(0.0)] * (num_arms - 1)]
    worst = ratio(AnytimeImproving(), curves, horizon)
    assert worst == pytest.approx(num_arms * (2 * num_arms + 1) / 3, rel=1e-12)
    assert (worst > 32 * num_arms) == beyond_32k
    assert (worst > 200 * num_arms) == beyond_200k


def test_fewer_steps_than_arms_can_leave_nothing() -> None:
    for agent in (AnytimeImproving(), RoundRobin()):
        assert ratio(agent, "round_robin_trap", horizon=4, num_arms=5) == math.inf


@pytest.mark.parametrize("meeting", [2, 3, 10, 49])
def test_two_arms_attain_the_ratio_2(meeting: int) -> None:
    # A constant arm and a linear one whose totals meet at N: both have N pulls or so at 2N + 1.
    horizon = 2 * meeting + 1
    value = Fraction(meeting + 1, 2 * horizon)
    exact = [lambda n: value, exact_cap(Fraction(1), horizon)]
    worst = 0.0
    for order in (1, -1):
        curves = [Constant(float(value)), LinearCap(1.0, horizon)][::order]
        sequence, info = outcome(AnytimeImproving(), curves, horizon)
        assert sequence == exact_algorithm1(exact[::order], horizon)
        worst = max(worst, info["competitive_ratio"])
    assert worst == pytest.approx(2.0, rel=1e-12)


# --- Theorem 2: every deterministic policy loses ------------------------------------------------


def least_pulled(agent: Agent, printing: str, num_arms: int, steps: int) -> tuple[int, list[int]]:
    """Return the arm that a policy pulls least while no arm blooms, and all its pulls."""
    instance = {"name": "lower_bound", "late": None, "printing": printing}
    sequence, _ = outcome(agent, instance, steps, num_arms)
    return int(np.bincount(sequence, minlength=num_arms).argmin()), sequence


SIZES = [(3, 12), (3, 300), (4, 20), (5, 100), (10, 1000), (7, 70)]


@pytest.mark.parametrize("printing", ["main", "appendix"])
@pytest.mark.parametrize(("num_arms", "steps"), [*SIZES, (3, 13), (5, 23), (10, 999)])
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_theorem_2_regret_is_at_least_a_sixth_of_the_steps(
    name: str, num_arms: int, steps: int, printing: str
) -> None:
    late, unaware = least_pulled(DETERMINISTIC[name](), printing, num_arms, steps)
    instance = {"name": "lower_bound", "late": late, "printing": printing}
    sequence, info = outcome(DETERMINISTIC[name](), instance, steps, num_arms)
    assert sequence == unaware  # it cannot tell
    assert info["policy_regret"] >= steps / 6


@pytest.mark.parametrize(("num_arms", "steps"), SIZES)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_theorem_2_ratio_is_at_least_half_the_number_of_arms(
    name: str, num_arms: int, steps: int
) -> None:
    assert steps % num_arms == 0
    late, _ = least_pulled(DETERMINISTIC[name](), "appendix", num_arms, steps)
    instance = {"name": "lower_bound", "late": late, "printing": "appendix"}
    worst = ratio(DETERMINISTIC[name](), instance, steps, num_arms)
    # The least that any deterministic policy can have.
    least = num_arms**2 * (steps + 1) / ((2 * num_arms - 1) * steps + num_arms)
    assert least > num_arms / 2
    assert worst >= least * (1 - 1e-12)


@pytest.mark.parametrize("steps", [4, 12, 100, 400])
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_with_two_arms_the_regret_is_at_least_an_eighth(name: str, steps: int) -> None:
    # The printed proof gives 1/2 only; the minimum over all policies is T/8 + 1/4.
    late, _ = least_pulled(DETERMINISTIC[name](), "appendix", 2, steps)
    instance = {"name": "lower_bound", "late": late, "printing": "appendix"}
    _, info = outcome(DETERMINISTIC[name](), instance, steps, 2)
    assert info["policy_regret"] >= steps / 8 + 0.25 - 1e-9


def test_with_two_arms_that_minimum_is_reached_and_no_schedule_beats_it() -> None:
    # N_late pulls of the late bloomer, at most half: it pays n/T, the other min(n/T, 1/2).
    steps = 12
    optimum = LinearCap(1.0, steps).cumulative(steps)
    regrets = []
    for late_pulls in range(steps // 2 + 1):
        early = LinearCap(0.5, steps / 2).cumulative(steps - late_pulls)
        regrets.append(optimum - early - LinearCap(1.0, steps).cumulative(late_pulls))
    assert min(regrets) == pytest.approx(steps / 8 + 0.25, rel=1e-12)


@pytest.mark.parametrize("printing", ["main", "appendix"])
@pytest.mark.parametrize(("num_arms", "steps"), SIZES)
def test_algorithm_1_goes_round_on_the_lower_bound_family(
    num_arms: int, steps: int, printing: str
) -> None:
    instance = {"name": "lower_bound", "printing": printing}
    sequence, info = outcome(AnytimeImproving(), instance, steps, num_arms)
    assert sequence == [step % num_arms for step in range(steps)]
    exact = num_arms * (steps + 1) / (steps + num_arms)
    assert info["competitive_ratio"] == pytest.approx(exact, rel=1e-12)


# --- Theorem 3: round robin ---------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [5, 6, 9, 10, 100, 103])
@pytest.mark.parametrize("num_arms", [1, 2, 3, 5])
def test_theorem_3_round_robins_exact_ratio(num_arms: int, horizon: int) -> None:
    rounds = horizon // num_arms
    exact = horizon * (horizon + 1) / (rounds * (rounds + 1))
    worst = ratio(RoundRobin(), "round_robin_trap", horizon, num_arms)
    assert worst == pytest.approx(exact, rel=1e-12)
    assert num_arms**2 / 2 < worst <= num_arms * (2 * num_arms - 1)
    if horizon % num_arms == 0:
        exact = num_arms**2 * (horizon + 1) / (horizon + num_arms)
        assert worst == pytest.approx(exact, rel=1e-12)


def test_theorem_3_is_tight_at_one_step_short_of_another_round() -> None:
    # q = 1 at T = 2k - 1: T (T + 1) / 2 = k (2k - 1).
    for num_arms in (2, 5, 20):
        worst = ratio(RoundRobin(), "round_robin_trap", 2 * num_arms - 1, num_arms)
        assert worst == pytest.approx(num_arms * (2 * num_arms - 1), rel=1e-12)


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_no_instance_is_worse_for_round_robin(start: int) -> None:
    for seed in range(start, start + 50):
        curves, horizon = random_instance(seed)
        rounds = horizon // len(curves)
        exact = horizon * (horizon + 1) / (rounds * (rounds + 1))
        assert ratio(RoundRobin(), curves, horizon) <= exact * (1 + 1e-12)


# --- Example A.2 --------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [10, 30, 1000])
def test_example_a2_policy_regret_of_the_fixed_arm(horizon: int) -> None:
    _, info = outcome(FixedArm(1), "policy_vs_external", horizon)
    assert info["policy_regret"] == pytest.approx(0.9 * horizon - 4.5, rel=1e-12)
    _, info = outcome(FixedArm(0), "policy_vs_external", horizon)
    assert info["policy_regret"] == 0.0
