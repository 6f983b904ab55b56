"""The agents of the two papers against published sequences, exact arithmetic and hand work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import (
    DATA,
    FirstPullOfArmZeroPaysNothing,
    Observation,
    episode,
    exact_algorithm1,
    exact_cap,
    fixed,
    float_caps,
    random_caps,
    seen,
)
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import Agent, AnytimeImproving, EgalUCB, Greedy, RoundRobin
from gym_fairbandits.agents.egalitarian import ucb_index
from gym_fairbandits.agents.improving import optimistic_estimate
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.curves import Constant, LinearCap, Tabulated
from gym_fairbandits.wrappers import PolicyRegret

# --- Published values -----------------------------------------------------------------------------

PUBLISHED: dict[str, Callable[[], Agent]] = {
    "algorithm1": AnytimeImproving,
    "round_robin": RoundRobin,
    "greedy_last": Greedy,
}


def published_env(case: dict[str, Any]) -> PolicyRegret[Any, Any]:
    curves = [Tabulated(tuple(float(Fraction(value)) for value in values)) for values in case["f"]]
    return PolicyRegret(gym.make(IMPROVING, instance=curves, horizon=case["T"]))


@pytest.mark.parametrize("policy", PUBLISHED)
@pytest.mark.parametrize("case", DATA["imab_cases"], ids=lambda case: str(case["name"]))
def test_improving_agents_reproduce_the_published_cases(case: dict[str, Any], policy: str) -> None:
    expected = case["policies"][policy]
    env = published_env(case)
    sequence, rewards, info = episode(env, PUBLISHED[policy]())
    assert sequence == expected["sequence"]
    assert_array_equal(np.bincount(sequence, minlength=case["k"]), expected["counts"])
    close = {
        "expected_return": Fraction(expected["reward"]),
        "optimal_return": Fraction(case["opt"]),
        "policy_regret": Fraction(expected["regret"]),
        "competitive_ratio": Fraction(expected["ratio"]),
    }
    for key, value in close.items():
        assert info[key] == pytest.approx(float(value), rel=1e-12, abs=1e-12), key
    assert math.fsum(rewards) == pytest.approx(info["expected_return"], rel=1e-12)


def test_optimistic_estimates_follow_the_published_trace() -> None:
    env = gym.make(IMPROVING, instance="early_vs_late", horizon=1000)
    agent = AnytimeImproving()
    trace = {entry["t"]: entry for entry in DATA["imab_trace_early_vs_late"]}
    assert sorted(trace) == list(range(5, 25))
    observation, _ = env.reset()
    for step in range(1, 25):
        if step in trace:
            entry = trace[step]
            assert observation["pulls"].tolist() == entry["N"]
            assert observation["pulls"].max() == entry["N_star"]
            batch = {name: values[None] for name, values in observation.items()}
            exact = [[float(Fraction(value)) for value in entry["p"]]]
            np.testing.assert_allclose(optimistic_estimate(batch), exact, rtol=1e-12)
            assert agent.act(observation) == entry["pull"]
        observation, *_ = env.step(agent.act(observation))


@pytest.mark.parametrize("case", DATA["egal_cases"], ids=lambda case: str(case["name"]))
def test_egal_ucb_reproduces_the_published_cases(case: dict[str, Any]) -> None:
    if "stale" in case["name"]:
        arms: Any = FirstPullOfArmZeroPaysNothing(case["mu"])
    elif case["name"] == "K2_U1_01":
        arms = Bernoulli(case["mu"])
    else:
        arms = fixed(case["mu"])
    agent = EgalUCB(**case["options"])
    steps = agent.num_steps(case["T"], case["U"])
    assert steps == len(case["assign"])
    env = gym.make(EGAL, instance=arms, num_users=case["U"], horizon=steps)
    bandit: Any = env.unwrapped
    observation, _ = env.reset(seed=0)
    assigned = []
    for _ in range(steps):
        action = agent.act(observation)
        observation, *_ = env.step(action)
        assigned.append(action.tolist())
    assert assigned == case["assign"]
    np.testing.assert_allclose(observation["reward_sum"], case["S"], rtol=1e-12)
    np.testing.assert_allclose(observation["user_reward_sum"], case["user_totals"], rtol=1e-12)
    benchmark = bandit.optimal_return(case["T"])
    assert benchmark == pytest.approx(case["T_mustar_over_U"], rel=1e-12)
    assert benchmark - bandit.realized_return() == pytest.approx(case["regret"], abs=1e-12)
    if case["options"].get("update") != "played":  # whose indices are from different times
        index = ucb_index(
            observation["reward_sum"][None], observation["pulls"][None], np.array([steps]), 6, 1.0
        )
        np.testing.assert_allclose(index[0], case["ucb_final"], rtol=1e-12)


def test_the_printed_update_rule_never_returns_to_an_arm_that_paid_nothing_once() -> None:
    arms = FirstPullOfArmZeroPaysNothing([1, 0.5])
    horizon = 2000
    shares = {}
    for update in ("played", "all"):
        env = gym.make(EGAL, instance=arms, num_users=1, horizon=horizon)
        assigned, _, _ = episode(env, EgalUCB(update=update))
        shares[update] = Counter(action[0] for action in assigned)[0]
    assert shares["played"] == 1
    assert shares["all"] > horizon / 2


@pytest.mark.parametrize("horizon", [1, 2, 23, 24])
def test_number_of_steps_of_both_loops(horizon: int) -> None:
    assert EgalUCB(loop="fixed").num_steps(horizon, 3) == horizon
    # while b <= T/U, b from 0: the blocks b = 0, ..., floor(T/U).
    assert EgalUCB(loop="printed").num_steps(horizon, 3) == 3 * (horizon // 3 + 1)
    assert EgalUCB(loop="printed", capacity=3).num_steps(horizon, 6) == 2 * (horizon // 2 + 1)


@pytest.mark.parametrize("case", DATA["egal_capacity_cases"], ids=["U=4", "U=6"])
def test_egal_ucb_reproduces_the_published_capacity_cases(case: dict[str, Any]) -> None:
    users, capacity = case["U"], case["C"]
    env = PolicyRegret(
        gym.make(
            EGAL,
            instance=fixed(case["mu"]),
            num_users=users,
            capacity=capacity,
            horizon=case["T"],
        )
    )
    assigned, _, info = episode(env, EgalUCB(capacity=capacity))
    assert assigned == case["assign"]
    pulls = env.unwrapped._pulls  # type: ignore[attr-defined]
    assert_array_equal(pulls, np.array(case["B"]) * (users // capacity))
    np.testing.assert_allclose(info["expected_user_returns"], case["user_totals"], rtol=1e-12)
    assert info["optimal_return"] == pytest.approx(case["benchmark_TCmustar_over_U"], rel=1e-12)
    assert info["policy_regret"] == pytest.approx(case["regret"], rel=1e-12)
    assert info["realized_regret"] == pytest.approx(case["regret"], rel=1e-12)


# --- Algorithm 1 in floats equals Algorithm 1 in exact rationals ----------------------------------


def lower_bound_exactly(num_arms: int, steps: int, late: int, printing: str) -> list[Any]:
    k = Fraction(num_arms)
    sweep = Fraction(math.ceil(steps / k)) if printing == "main" else steps / k
    curves = [exact_cap(1 / k, sweep)] * num_arms
    curves[late] = exact_cap(Fraction(1), k * sweep)
    return curves


@pytest.mark.parametrize(
    ("num_arms", "steps", "late", "printing"),
    [
        (3, 300, 2, "main"),
        (3, 301, 0, "appendix"),
        (3, 2000, 1, "appendix"),
        (5, 997, 4, "main"),
        (7, 700, 0, "main"),
        (7, 1234, 3, "appendix"),
        (10, 1000, 9, "main"),
        (11, 2000, 5, "main"),
        (11, 2000, 5, "appendix"),
        (19, 1500, 18, "main"),
        (29, 2000, 13, "appendix"),
        (37, 2000, 36, "main"),
        (37, 1000, 0, "appendix"),
    ],
)
def test_algorithm_1_keeps_the_exact_ties_of_the_lower_bound_family(
    num_arms: int, steps: int, late: int, printing: str
) -> None:
    instance = {"name": "lower_bound", "late": late, "printing": printing}
    env = gym.make(IMPROVING, instance=instance, num_arms=num_arms, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    exact = lower_bound_exactly(num_arms, steps, late, printing)
    assert sequence == exact_algorithm1(exact, steps)


def test_without_a_tolerance_rounding_breaks_those_ties() -> None:
    differs = 0
    for num_arms, steps in ((3, 301), (7, 1234), (11, 2000)):
        instance = {"name": "lower_bound", "late": 0, "printing": "appendix"}
        env = gym.make(IMPROVING, instance=instance, num_arms=num_arms, horizon=steps)
        sequence, _, _ = episode(env, AnytimeImproving(tolerance=0))
        exact = lower_bound_exactly(num_arms, steps, 0, "appendix")
        differs += sequence != exact_algorithm1(exact, steps)
    assert differs


SLOW_LINEAR = [
    # constant value, ramp of the equal linear arms, number of these
    (Fraction(1, 10), 20_000, 4),
    (Fraction(3, 10), 12_345, 6),
    (Fraction(1, 100), 65_537, 9),
    (Fraction(1, 1000), 1_000_003, 3),
]


def constant_and_linear(value: Fraction, ramp: int, others: int, steps: int) -> None:
    curves = [Constant(float(value)), *[LinearCap(1.0, ramp)] * others]
    env = gym.make(IMPROVING, instance=curves, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    linear = exact_cap(Fraction(1), ramp)
    exact = exact_algorithm1([lambda n: value, *[linear] * others], steps)
    assert sequence == exact
    assert len(set(exact[2 * (others + 1) :])) > 1  # the linear arms do return


@pytest.mark.slow
@pytest.mark.parametrize(("value", "ramp", "others"), SLOW_LINEAR)
def test_algorithm_1_is_exact_over_long_gaps(value: Fraction, ramp: int, others: int) -> None:
    constant_and_linear(value, ramp, others, 20_000)


@pytest.mark.parametrize(("value", "ramp", "others"), [(Fraction(1, 20), 1_999, 3)])
def test_algorithm_1_is_exact_over_gaps(value: Fraction, ramp: int, others: int) -> None:
    constant_and_linear(value, ramp, others, 2_000)


@pytest.mark.parametrize("seed", range(20))
def test_algorithm_1_is_exact_on_random_caps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_arms, steps = int(rng.integers(2, 8)), int(rng.integers(20, 300))
    caps = random_caps(rng, num_arms)
    env = gym.make(IMPROVING, instance=float_caps(caps), horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    assert sequence == exact_algorithm1([exact_cap(*cap) for cap in caps], steps)


@pytest.mark.parametrize("seed", range(20))
def test_algorithm_1_is_exact_on_random_concave_tables(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    num_arms, steps = int(rng.integers(2, 6)), int(rng.integers(20, 120))
    rises = -np.sort(-rng.integers(0, 30, (num_arms, steps)), axis=1)
    rises = np.where(rng.random((num_arms, 1)) < 0.3, np.minimum(rises, 2), rises)
    levels = rises.cumsum(axis=1)
    scale = int(levels.max()) + 1
    curves = [Tabulated(tuple((values / scale).tolist())) for values in levels]
    rows: list[list[int]] = levels.tolist()
    exact = [lambda n, values=values: Fraction(values[n - 1], scale) for values in rows]
    env = gym.make(IMPROVING, instance=curves, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    assert sequence == exact_algorithm1(exact, steps)


# --- Hand-worked choices --------------------------------------------------------------------------


def improving_seen(
    pulls: Sequence[int],
    reward_sum: Sequence[float],
    last_reward: Sequence[float],
    last_increment: Sequence[float],
) -> Observation:
    return seen(
        pulls, reward_sum=reward_sum, last_reward=last_reward, last_increment=last_increment
    )


def test_algorithm_1_sweeps_twice_whatever_the_rewards() -> None:
    agent = AnytimeImproving()
    for pulls, arm in (([0, 0, 0], 0), ([1, 0, 0], 1), ([1, 1, 1], 0), ([2, 1, 1], 1)):
        rich = [9.0, 0.0, 0.0]
        assert agent.act(improving_seen(pulls, rich, rich, [0.0] * 3)) == arm


def test_algorithm_1_prefers_the_rising_arm_that_would_have_caught_up() -> None:
    # N* = 6; arm 0: p = 3. Arm 1, with 2 pulls: 0.3 + 4 * 0.2 + 0.1 * 4 * 5 / 2 = 2.1, and with
    # increments of 0.2: 0.3 + 0.8 + 2 = 3.1.
    agent = AnytimeImproving()
    assert agent.act(improving_seen([6, 2], [3.0, 0.3], [0.5, 0.2], [0.0, 0.1])) == 0
    assert agent.act(improving_seen([6, 2], [3.0, 0.3], [0.5, 0.2], [0.0, 0.2])) == 1


@pytest.mark.parametrize(("excess", "arm"), [(0.0, 2), (1e-10, 2), (1e-8, 0)])
def test_near_ties_go_to_the_fewest_pulls_then_the_lowest_index(excess: float, arm: int) -> None:
    # Constant arms of 0.5: every estimate is 0.5 N*. Arms 2 and 3 have the fewest pulls.
    sums = [2.0 + excess, 1.5, 1.0, 1.0]
    observation = improving_seen([4, 3, 2, 2], sums, [0.5] * 4, [0.0] * 4)
    assert AnytimeImproving().act(observation) == arm


def test_greedy_follows_the_last_reward_not_the_mean() -> None:
    observation = improving_seen([3, 2, 1], [2.7, 1.1, 0.6], [0.5, 0.8, 0.6], [0.0] * 3)
    assert Greedy().act(observation) == 1
    observation["pulls"] = np.array([3, 2, 0])
    assert Greedy().act(observation) == 2
    tied = improving_seen([3, 2, 2], [1.5, 1.0, 1.0], [0.5, 0.5, 0.5], [0.0] * 3)
    assert Greedy().act(tied) == 1


def test_egal_ucb_rotates_its_set_to_the_right() -> None:
    observation = seen([0] * 4, reward_sum=[0] * 4, user_reward_sum=[0] * 3)
    agent = EgalUCB()
    assigned = []
    for step in range(4):
        assigned.append(agent.act(observation).tolist())
        observation["pulls"][assigned[-1]] += 1
        observation["reward_sum"] = observation["pulls"] * [0.2, 0.9, 0.5, 0.0]
        assert observation["pulls"].sum() == 3 * (step + 1)
    # User u plays A[(u - i) mod 3]; then the arm never played comes first, then 1 and 2.
    assert assigned == [[0, 1, 2], [2, 0, 1], [1, 2, 0], [3, 1, 2]]


@pytest.mark.parametrize(("sigma", "first"), [(1.0, 1), (0.1, 0)])
def test_sigma_scales_the_bonus(sigma: float, first: int) -> None:
    # One user after 8 steps: bonus sqrt(6 ln 8 / n) = 1.44 for n = 6 and 2.50 for n = 2.
    observation = seen([6, 2], reward_sum=[5.4, 0.6], user_reward_sum=[6.0])
    assert EgalUCB(sigma=sigma).act(observation).tolist() == [first]


def test_the_bonus_vanishes_at_one_step_and_is_infinite_without_plays() -> None:
    index = ucb_index(np.array([[0.7, 0.0]]), np.array([[1, 0]]), np.array([1]), 6, 1.0)
    assert index.tolist() == [[0.7, math.inf]]
