"""Agents for rising arms against formulas, exact arithmetic and episodes by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from helpers_agents import DATA, Observation, episode
from helpers_names import IMPROVING, Floats
from helpers_rising import PUBLISHED, game, linear, pulled, tables
from scipy.optimize import linprog

from gym_fairbandits.agents import (
    RCBE,
    Agent,
    AnytimeSinglePeaked,
    GreedyNext,
    HorizonAwareImproving,
    HybridRising,
    RandomRoundRobin,
    RisingUCB,
    SinglePeakedOptimism,
)
from gym_fairbandits.agents.history import RewardLog
from gym_fairbandits.agents.improving import future_reward
from gym_fairbandits.agents.single_peaked import noisy_future_reward
from gym_fairbandits.curves import Constant, LinearCap, Tabulated

# --- What arms can still pay ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_future_reward_is_the_sum_of_the_capped_line(seed: int) -> None:
    rng = np.random.default_rng(seed)
    last = rng.integers(0, 33, 200) / 32
    rise = rng.integers(-3, 12, 200) / 64
    steps = rng.integers(0, 60, 200)
    expected = [
        float(
            sum(
                min(Fraction(1), Fraction(v) + Fraction(max(d, 0.0)) * j)
                for j in range(1, int(m) + 1)
            )
        )
        for v, d, m in zip(last.tolist(), rise.tolist(), steps.tolist(), strict=True)
    ]
    future = future_reward(last, rise, steps.astype(np.float64))
    np.testing.assert_allclose(future, expected, rtol=1e-12)


def test_future_reward_of_extreme_increments() -> None:
    last, rise = np.array([0.5, 0.5, 1.2, 0.0]), np.array([5e-324, 1e300, 0.1, 0.25])
    # Nearly flat; at once 1; above 1 by noise, where it stays; 0.25 + 0.5 + 0.75 + 1 + 1 + ...
    np.testing.assert_allclose(future_reward(last, rise, np.full(4, 6.0)), [3.0, 6.0, 7.2, 4.5])


def test_future_reward_is_never_below_that_of_the_last_reward_for_ever() -> None:
    last, rise = np.meshgrid(np.linspace(-0.5, 1.5, 41), np.linspace(-0.3, 0.3, 13))
    assert (future_reward(last, rise, np.full(last.shape, 50.0)) >= 50 * last - 1e-12).all()


def test_noisy_future_reward_by_hand() -> None:
    def best(lower: Sequence[float], upper: Sequence[float], steps: int) -> float | None:
        return noisy_future_reward(np.array(lower), np.array(upper), steps)

    # From 0.1 to 0.4 it rises by 0.3: then 0.7 and 1.
    assert best([0.1, 0.3], [0.2, 0.4], 2) == pytest.approx(1.7, abs=1e-7)
    # 0.1, 0.2 are certain, so the third is at most 0.3: then 0.4 and 0.5.
    assert best([0.1, 0.2, 0.2], [0.1, 0.2, 0.5], 2) == pytest.approx(0.9, abs=1e-7)
    # The first two must be low for the third to be on a steep line: 0, 0.3, 0.6, then 0.9.
    assert best([0.0, 0.3, 0.5], [0.4, 0.4, 0.6], 1) == pytest.approx(0.9, abs=1e-7)
    assert best([0.5, 0.1], [0.6, 0.2], 3) is None  # falls
    assert best([0.0, 0.1, 0.5], [0.05, 0.15, 0.6], 3) is None  # rises faster than before
    assert best([1.1, 1.1], [1.2, 1.2], 3) is None  # leaves [0, 1]
    assert best([0.2], [0.4], 3) == 3  # may be 1 from the next pull on
    assert best([], [], 3) == 3
    assert best([0.1, 0.3], [0.2, 0.4], 0) == pytest.approx(0.0, abs=1e-7)


def program(lower: Floats, upper: Floats, steps: int) -> float | None:
    """Return the value of the linear program with one variable per pull, as the paper states it."""
    known, count = len(lower), len(lower) + steps
    low, high = np.zeros(count), np.ones(count)
    low[:known], high[:known] = np.maximum(lower, 0), np.minimum(upper, 1)
    if (low > high).any():
        return None
    concave = np.diff(np.eye(count), n=2, axis=0)
    rises = -np.diff(np.eye(count), axis=0)
    matrix = np.concatenate((concave, rises))
    worth = np.where(np.arange(count) < known, 0.0, -1.0)
    bounds: Any = np.column_stack((low, high))
    solved = linprog(worth, A_ub=matrix, b_ub=np.zeros(len(matrix)), bounds=bounds)
    return -float(solved.fun) if solved.fun is not None else None


@pytest.mark.parametrize("seed", range(8))
def test_noisy_future_reward_is_the_program_of_the_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    possible = 0
    for _ in range(12):
        known, steps = int(rng.integers(2, 12)), int(rng.integers(0, 15))
        rate = rng.uniform(0.05, 1)
        seen = 0.9 * (1 - np.exp(-rate * np.arange(1, known + 1))) + rng.normal(0, 0.05, known)
        width = rng.choice([0.03, 0.1, 0.2])
        value = noisy_future_reward(seen - width, seen + width, steps)
        expected = program(seen - width, seen + width, steps)
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-6))
        possible += value is not None
    assert possible > 2


def test_without_noise_the_program_is_the_closed_form() -> None:
    for rate, steps in ((0.3, 5), (0.01, 40), (1.0, 12)):
        seen = 1 - np.exp(-rate * np.arange(1.0, 6.0))
        last, rise = seen[-1:], seen[-1:] - seen[-2:-1]
        closed = future_reward(last, rise, np.array([float(steps)]))[0]
        assert noisy_future_reward(seen, seen, steps) == pytest.approx(closed, rel=1e-7)


# --- R-ed-UCB -------------------------------------------------------------------------------------


def trend_index(rewards: Sequence[float], time: int, epsilon: float, sigma: float) -> float:
    """Return the index of Metelli et al. as it is written, with alpha = 3."""
    count = len(rewards)
    window = math.floor(epsilon * count)
    if window == 0:
        return math.inf
    x = [math.nan, *rewards]  # x[l] is the reward of pull l
    estimate = math.fsum(
        x[pull] + (time - pull) * (x[pull] - x[pull - window]) / window
        for pull in range(count - window + 1, count + 1)
    )
    width = math.sqrt(10 * math.log(time**3) / window**3)
    return estimate / window + sigma * (time - count + window - 1) * width


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 0.1, 0.37])
@pytest.mark.parametrize("sigma", [0.0, 0.02])
def test_running_sums_are_the_formula(epsilon: float, sigma: float) -> None:
    curves = [Constant(0.4), LinearCap(0.8, 300), LinearCap(0.6, 30)]
    env = game(curves, 400, known=False, noise=0.05)
    agent = RisingUCB(epsilon=epsilon, alpha=3, sigma=sigma)
    observation, _ = env.reset(seed=1)
    rewards: list[list[float]] = [[], [], []]
    for step in range(400):
        action = agent.act(observation)
        index = [trend_index(own, step + 1, epsilon, sigma) for own in rewards]
        finite = np.isfinite(index)
        running = agent._index(np.array([[step + 1.0]]))[0]
        np.testing.assert_allclose(running[finite], np.array(index)[finite], rtol=1e-9, atol=1e-9)
        best = [arm for arm in range(3) if index[arm] == max(index)]
        assert action == min(best, key=lambda arm: (len(rewards[arm]), arm))
        observation, reward, *_ = env.step(action)
        rewards[action].append(reward)
    assert max(map(len, rewards)) > 100
    assert min(map(len, rewards)) >= 1 / epsilon - 1


def test_on_a_line_the_index_without_noise_is_the_next_reward() -> None:
    case = PUBLISHED["estimator"][0]
    line = [0.2 + 0.001 * n for n in range(1, case["n"] + 1)]
    assert trend_index(line, case["t"], 0.25, 0.0) == pytest.approx(case["paper"], rel=1e-12)
    agent = RisingUCB(sigma=0)
    pulled(agent, [Tabulated(tuple(line))], case["n"] + 1)
    assert agent._index(np.array([[101.0]]))[0, 0] == pytest.approx(case["truth_next"], rel=1e-12)


@pytest.mark.parametrize("case", PUBLISHED["rising"], ids=lambda case: f"T={case['T']}")
def test_rising_ucb_reproduces_the_two_arms_of_metelli_et_al(case: dict[str, Any]) -> None:
    n = np.arange(case["T"])  # their first pull pays f(0)
    curves = tables((0.4 * (1 - 50000 / (100 * n + 50000))).tolist(), (n / 25000).tolist())
    arms, rewards, _ = episode(game(curves, case["T"]), RisingUCB())
    assert np.bincount(arms).tolist() == case["pulls"]
    assert math.fsum(rewards) == pytest.approx(case["reward"], rel=1e-12)


def test_arms_without_a_window_come_first() -> None:
    # floor(n / 4) is 0 up to three pulls: four sweeps.
    assert pulled(RisingUCB(), [Constant(0.9), Constant(0.1)], 8) == [0, 1] * 4


def test_the_restless_index_for_exact_rewards_goes_by_the_clock() -> None:
    # Steps 1 and 3 paid 0.1 and 0.2: at step 5 arm 0 is expected to pay 0.3, at step 6 0.35.
    exact = partial(RisingUCB, sigma=0, restless=True)
    assert pulled(exact(), [linear(0.1), Constant(0.28)], 8) == [0, 1, 0, 1, 0, 0, 0, 0]
    assert pulled(exact(), [linear(0.1), Constant(0.32)], 8) == [0, 1, 0, 1, 1, 0, 0, 0]


def test_with_noise_the_restless_index_is_the_rested_one() -> None:
    curves = [Constant(0.4), LinearCap(0.8, 300)]
    expected = pulled(RisingUCB(), curves, 200)
    assert pulled(RisingUCB(restless=True), curves, 200) == expected


# --- RC-BE(alpha) ---------------------------------------------------------------------------------


def test_batch_elimination_by_hand() -> None:
    # alpha = 1: windows of 1, 2, 3, ... steps. Without noise arm 1, which pays nothing, is dropped
    # when it is more than 2 behind: after three rounds.
    expected = [arm for window in range(1, 10) for arm in ([0, 1] * 3 + [0] * 9)[:window]]
    agent = RCBE(alpha=1, sigma=0)
    assert pulled(agent, [Constant(1.0), Constant(0.0)], 45, known=False) == expected


def test_noise_widens_the_margin() -> None:
    # Window 20 and two arms: 2 (1 + 2 sigma sqrt(20 ln 80)), 3.87 for sigma = 0.05: 4 rounds.
    assert 2 * (1 + 0.1 * math.sqrt(20 * math.log(80))) == pytest.approx(3.8723, abs=1e-4)
    agent = RCBE(alpha=1, sigma=0.05)
    arms = pulled(agent, [Constant(1.0), Constant(0.0)], 210, known=False)
    assert arms[190:] == [0, 1] * 4 + [0] * 12


def test_windows_grow_with_the_power_eight_thirds() -> None:
    # The least L with L^3 >= w^8; that of w = 8 is 256 itself.
    lengths = [next(n for n in range(10_000) if n**3 >= w**8) for w in range(1, 10)]
    assert lengths[:8] == [1, 7, 19, 41, 74, 119, 180, 256]
    expected = [step % 3 for length in lengths for step in range(length)]
    arms = pulled(RCBE(sigma=0), [Constant(0.5)] * 3, len(expected), known=False)
    assert arms == expected


# --- The clairvoyant ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", DATA["imab_cases"], ids=lambda case: str(case["name"]))
def test_greedy_next_reproduces_the_published_cases(case: dict[str, Any]) -> None:
    expected = PUBLISHED["greedy_next"][case["name"]]
    curves = tables(*[[float(Fraction(value)) for value in values] for values in case["f"]])
    env = gym.make(IMPROVING, instance=curves, horizon=case["T"])
    arms, rewards, _ = episode(env, GreedyNext(env))
    assert np.bincount(arms, minlength=case["k"]).tolist() == expected["counts"]
    reward = float(Fraction(expected["reward"]))
    assert math.fsum(rewards) == pytest.approx(reward, rel=1e-12, abs=1e-12)


def test_greedy_next_sees_one_pull_ahead_and_no_further() -> None:
    # 0.2, then 0.3 for ever, above the 0.1 behind which 0.9 waits.
    env = game(tables([0.1, 0.9], [0.2, 0.3]), 5)
    assert episode(env, GreedyNext(env))[0] == [1, 1, 1, 1, 1]


def test_greedy_next_in_vector_environments() -> None:
    make = partial(gym.make, IMPROVING, num_arms=4, horizon=20)
    expected = []
    for seed in range(3):
        env = make()
        expected.append(episode(env, GreedyNext(env), seed)[0])
    native = gym.make_vec(IMPROVING, 3, num_arms=4, horizon=20)
    for envs in (native, SyncVectorEnv([make] * 3)):
        oracle = GreedyNext(envs)
        observation, _ = envs.reset(seed=0)
        played = []
        for _ in range(20):
            played.append(oracle.act(observation))
            observation, *_ = envs.step(played[-1])
        assert np.array(played).T.tolist() == expected


# --- Memory ---------------------------------------------------------------------------------------


def test_a_log_keeps_every_reward_in_order() -> None:
    log, rng = RewardLog(3, 2), np.random.default_rng(0)
    kept: dict[tuple[int, int], list[float]] = {(i, arm): [] for i in range(3) for arm in range(2)}
    for _ in range(100):
        rows = np.flatnonzero(rng.random(3) < 0.7)
        if not len(rows):
            continue
        arms, rewards = rng.integers(0, 2, len(rows)), rng.random(len(rows))
        log.append(rows, arms, rewards)
        for i, arm, reward in zip(rows.tolist(), arms.tolist(), rewards.tolist(), strict=True):
            kept[i, arm].append(reward)
    for (i, arm), rewards_kept in kept.items():
        assert log.of(i, arm).tolist() == rewards_kept
        assert log.counts[i, arm] == len(rewards_kept) > 16
        third = log.at(np.array([i]), np.array([arm]), np.array([3]))
        assert third.tolist() == rewards_kept[2:3]
    log.clear(np.array([1]))
    assert log.counts.tolist()[1] == [0, 0]
    assert log.of(0, 0).tolist() == kept[0, 0]


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        HorizonAwareImproving,
        SinglePeakedOptimism,
        partial(RandomRoundRobin, 0.5),
        partial(HybridRising, 0.5),
    ],
)
def test_who_must_know_the_horizon_says_so(make: Callable[[], Agent]) -> None:
    observation: Observation = game([Constant(0.5)] * 2, 10, known=False).reset(seed=0)[0]
    agent = make()
    with pytest.raises(ValueError, match="`horizon` must be given where the observation does not"):
        agent.act(observation)
    observation["remaining"] = np.array([10])
    assert agent.act(observation) in (0, 1)


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: HorizonAwareImproving(0), ValueError, "`horizon` must be at least 1, got 0"),
        (lambda: HorizonAwareImproving(2.5), TypeError, "`horizon` must be an integer, got 2.5"),  # type: ignore[arg-type]
        (lambda: SinglePeakedOptimism("one"), ValueError, "`refresh` must be one of 'all', 'pu"),
        (lambda: SinglePeakedOptimism(noise_std=-1), ValueError, "`noise_std` must be at least 0"),
        (lambda: SinglePeakedOptimism(horizon=-1), ValueError, "`horizon` must be at least 1"),
        (lambda: AnytimeSinglePeaked(noise_std=math.nan), ValueError, "`noise_std` must be finite"),
        (lambda: RisingUCB(epsilon=0), ValueError, "`epsilon` must be above 0, got 0"),
        (lambda: RisingUCB(epsilon=0.6), ValueError, "`epsilon` must be at most 0.5, got 0.6"),
        (lambda: RisingUCB(alpha=0), ValueError, "`alpha` must be above 0, got 0"),
        (lambda: RisingUCB(sigma=-0.1), ValueError, "`sigma` must be at least 0, got -0.1"),
        (lambda: RisingUCB(restless=1), TypeError, "`restless` must be a bool, got 1"),  # type: ignore[arg-type]
        (lambda: RandomRoundRobin(-0.5), ValueError, "`optimum` must be at least 0, got -0.5"),
        (lambda: RandomRoundRobin(0.5, tau=0), ValueError, "`tau` must be at least 1, got 0"),
        (lambda: RandomRoundRobin(tau=9), ValueError, "`tau` must come with the `optimum`"),
        (lambda: RandomRoundRobin(alpha=0), ValueError, "`alpha` must be above 0, got 0"),
        (lambda: HybridRising(None), TypeError, "`optimum` must be a real number, got None"),  # type: ignore[arg-type]
        (lambda: HybridRising(1.0, budget=-1), ValueError, "`budget` must be at least 0, got -1"),
        (lambda: RCBE(alpha=-1), ValueError, "`alpha` must be at least 0, got -1"),
        (lambda: RCBE(sigma=math.inf), ValueError, "`sigma` must be finite, got inf"),
        (lambda: GreedyNext("env"), TypeError, "`env` must be an environment that has `noise"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()
