"""Agents for rising arms against published counts, exact arithmetic and episodes by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from helpers_agents import (
    DATA,
    IMPROVING,
    ExactCurve,
    Floats,
    Observation,
    episode,
    exact_cap,
    float_caps,
    random_caps,
    row,
)
from numpy.testing import assert_array_equal
from scipy.optimize import linprog
from scipy.stats import chisquare

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
from gym_fairbandits.agents.single_peaked import doubled_length, noisy_future_reward
from gym_fairbandits.curves import Constant, Curve, LinearCap, Tabulated

PUBLISHED: Any = json.loads(
    (Path(__file__).parent / "data" / "rising_agents.json").read_text("utf-8")
)


def game(curves: Sequence[Curve], steps: int, known: bool = True, noise: float = 0.0) -> Any:
    """Return an environment of ``steps`` steps on any curves."""
    return gym.make(
        IMPROVING,
        instance=list(curves),
        horizon=steps,
        horizon_known=known,
        noise_std=noise,
        validate=False,
    )


def pulled(agent: Agent, curves: Sequence[Curve], steps: int, known: bool = True) -> list[int]:
    """Return the arms that an agent pulls in one episode."""
    return episode(game(curves, steps, known), agent, seed=0)[0]


def tables(*rewards: Sequence[float] | Floats) -> list[Curve]:
    return [Tabulated(tuple(values)) for values in rewards]


def linear(slope: float, steps: int = 100) -> Tabulated:
    return Tabulated(tuple(slope * n for n in range(1, steps + 1)))


# --- The instances of Lindner et al. ------------------------------------------------------------

# Of f(t) = a e^(-k1 (t - l)) + (c2 - c1) / (1 + e^(-(k1 + k2)(t - l))) + c1: k1, k2, c1, c2, l, a.
PEAKED = {
    "inc_dec_1": [(0.01, 0.001, 1, 0.05, 600, -0.0015), (0.009, 0.0009, 0.8, 0.1, 500, -0.005)],
    "inc_dec_2": [(0.003, 0.001, 1, 0.05, 600, -0.0015), (0.011, 0.001, 0.8, 0.2, 400, -0.008)],
    "inc_dec_3": [(0.01, 0.001, 1, 0.5, 600, -0.0015), (0.009, 0.0009, 0.8, 0.6, 500, -0.005)],
}


def peaked(t: Floats, k1: float, k2: float, c1: float, c2: float, l: float, a: float) -> Floats:  # noqa: E741
    falls: Floats = (c2 - c1) / (1 + np.exp(-(k1 + k2) * (t - l)))
    return a * np.exp(-k1 * (t - l)) + falls + c1


def lindner(name: str, steps: int) -> list[Floats]:
    """Return the rewards of the two arms of one of their instances."""
    t = np.arange(1.0, steps + 1)
    if name in PEAKED:
        return [peaked(t, *parameters) for parameters in PEAKED[name]]
    exponent = float(name.rpartition("_")[2])
    if name.startswith("inc_2"):
        return [np.minimum(1, t / 1000), np.minimum(0.5, 0.5 * (t / 1000) ** exponent)]
    power = 0.5 if name.startswith("inc_1") else 0.1
    return [1 - t**-power, 0.5 - 0.5 * t**-exponent]


def counts_and_regret(case: dict[str, Any], agent: Agent) -> tuple[list[int], float]:
    curves = tables(*lindner(case["bandit"], case["T"]))
    arms, rewards, _ = episode(game(curves, case["T"]), agent)
    return np.bincount(arms, minlength=2).tolist(), case["opt"] - math.fsum(rewards)


def case_name(case: dict[str, Any]) -> str:
    return f"{case['bandit']}-{case['T']}"


@pytest.mark.parametrize("case", PUBLISHED["lindner"], ids=case_name)
@pytest.mark.parametrize(
    ("which", "make"),
    [
        ("spo_refresh_all", SinglePeakedOptimism),
        ("spo_refresh_pulled", partial(SinglePeakedOptimism, "pulled")),
        ("hkr_clean", HorizonAwareImproving),
    ],
)
def test_published_pull_counts_and_regret(
    case: dict[str, Any], which: str, make: Callable[[], Agent]
) -> None:
    counts, regret = counts_and_regret(case, make())
    assert counts == case[which]["counts"]
    assert regret == pytest.approx(case[which]["regret"], abs=1e-9)


OFFICIAL = {
    solver: [case for case in PUBLISHED["official"] if case["solver"] == solver]
    for solver in ("optimistic", "increasing")
}


@pytest.mark.parametrize("case", OFFICIAL["optimistic"], ids=case_name)
def test_refreshing_the_pulled_arm_only_is_the_official_optimism(case: dict[str, Any]) -> None:
    counts, regret = counts_and_regret(case, SinglePeakedOptimism("pulled"))
    assert counts == case["policy"]
    assert regret == pytest.approx(case["regret"], abs=1e-9)


def official_elimination(rewards: Sequence[Floats], steps: int) -> list[int]:
    """Return the pulls of the official elimination of two arms.

    It pulls each arm once before it counts: in phase h it looks at f(h), with f(0) = 0, when
    h + 1 pulls were made, and it may drop an arm in phase 1.
    """
    values = [np.concatenate(([0.0], own)) for own in rewards]
    counts, phase = [1, 1], 0
    while sum(counts) + 2 <= steps:
        phase += 1
        counts = [phase + 1, phase + 1]
        to_come = float(steps - phase)
        low, high = [], []
        for own in values:
            last, rise, earned = own[phase], own[phase] - own[phase - 1], own[1 : phase + 1].sum()
            low.append(earned + to_come * last)
            future = future_reward(np.array([last]), np.array([rise]), np.array([to_come]))
            high.append(earned + future[0])
        for arm in (0, 1):
            if high[arm] < low[1 - arm]:
                counts[1 - arm] = steps - counts[arm]
                return counts
    return counts


@pytest.mark.parametrize("case", OFFICIAL["increasing"], ids=case_name)
def test_the_official_elimination_is_one_pull_behind(case: dict[str, Any]) -> None:
    rewards = lindner(case["bandit"], case["T"])
    assert official_elimination(rewards, case["T"]) == case["policy"]
    own, _ = counts_and_regret(case, HorizonAwareImproving())
    dropped = int(np.argmin(own))
    # Arms dropped in phase 2 by the rule may be dropped in phase 1 there, after as many pulls.
    more = case["policy"][dropped] - own[dropped]
    assert more == 1 or (more == 0 and own[dropped] in (2, case["T"] // 2))


# --- What arms can still pay --------------------------------------------------------------------


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
    # Nearly flat; at once 1; above 1 by noise, back to 1; 0.25 + 0.5 + 0.75 + 1 + 1 + ...
    np.testing.assert_allclose(future_reward(last, rise, np.full(4, 6.0)), [3.0, 6.0, 6.0, 4.5])


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


# --- Elimination --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        # After two pulls each, the linear arm can earn 5.5 in its ten steps, and will.
        (0.56, [0, 1, 0, 1, *[0] * 6]),
        (0.55, [0, 1] * 5),  # a tie, in spite of rounding
        (0.5, [0, 1] * 5),
    ],
)
def test_elimination_by_hand(constant: float, expected: list[int]) -> None:
    assert pulled(HorizonAwareImproving(), [Constant(constant), linear(0.1)], 10) == expected


def exact_elimination(curves: Sequence[ExactCurve], steps: int) -> list[int]:
    """Return the pulls of the elimination in exact arithmetic."""
    left, phase = list(range(len(curves))), 0
    sequence: list[int] = []
    while len(left) > 1 and len(sequence) < steps:
        phase += 1
        sequence += left
        low, high = {}, {}
        for arm in left:
            rewards = [curves[arm](n) for n in range(1, phase + 1)]
            low[arm] = sum(rewards) + (steps - phase) * rewards[-1]
            rise = rewards[-1] - rewards[-2] if phase > 1 else Fraction(0)
            high[arm] = sum(rewards) + sum(
                min(Fraction(1), rewards[-1] + max(rise, Fraction(0)) * j)
                for j in range(1, steps - phase + 1)
            )
        if phase > 1:
            left = [arm for arm in left if high[arm] >= max(low.values())]
    return (sequence + left * steps)[:steps]


@pytest.mark.parametrize("seed", range(12))
def test_elimination_is_exact_on_random_caps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    caps = random_caps(rng, int(rng.integers(2, 6)))
    steps = int(rng.integers(5, 60))
    expected = exact_elimination([exact_cap(*cap) for cap in caps], steps)
    assert pulled(HorizonAwareImproving(), float_caps(caps), steps) == expected


# --- Single-peaked arms -------------------------------------------------------------------------


def test_optimism_by_hand() -> None:
    # Two pulls each; then 4 x 0.5 against 0.3 + 0.4 + 0.5 + 0.6 = 1.8, and 3 x 0.5 against 1.2.
    curves = [Constant(0.5), linear(0.1)]
    assert pulled(SinglePeakedOptimism(), curves, 8) == [0, 1, 0, 1, 0, 0, 0, 0]
    # If the 1.8 stands, it beats 3 x 0.5; then 0.4 + 0.5 loses to it, and beats 1 x 0.5.
    assert pulled(SinglePeakedOptimism("pulled"), curves, 8) == [0, 1, 0, 1, 0, 1, 0, 1]


def test_optimism_leaves_an_arm_that_falls() -> None:
    # After 0.4, 0.8 arm 0 might pay 1 four times; it pays 0.2, so at most 0.2 from then on.
    curves = tables([0.4, 0.8, 0.2, 0.1], [0.3])
    assert pulled(SinglePeakedOptimism(), curves, 8) == [0, 1, 0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(("steps", "sweeps"), [(4, 2), (20, 2), (21, 3), (54, 3), (55, 4)])
def test_optimism_sweeps_as_often_as_the_logarithm_of_the_horizon(steps: int, sweeps: int) -> None:
    arms = pulled(SinglePeakedOptimism(), [Constant(0.0), Constant(1.0)], steps)
    assert arms == [0, 1] * sweeps + [1] * (steps - 2 * sweeps)


class EagerOptimism(Agent):
    """Optimism under noise as the paper states it: every arm's program at every step."""

    def __init__(self, refresh: str, noise_std: float, horizon: int) -> None:
        super().__init__()
        self.refresh, self.width, self.horizon = refresh, 2 * noise_std, horizon
        self.rewards: list[list[float]] = [[], [], []]
        self.bounds = np.full(3, np.nan)
        self.last = -1
        self.falling = 0

    def _act(self, observation: Any) -> Any:
        pulls, steps = observation["pulls"][0], int(observation["pulls"].sum())
        if steps:
            self.rewards[self.last].append(float(observation["last_reward"][0, self.last]))
        if pulls.min() < 2:
            self.last = int(pulls.argmin())
        else:
            for arm in range(3):
                if self.refresh == "all" or arm == self.last or np.isnan(self.bounds[arm]):
                    self.bounds[arm] = self.bound(np.array(self.rewards[arm]), self.horizon - steps)
            tied = self.bounds >= self.bounds.max() - 1e-9 * max(1.0, self.bounds.max())
            self.last = min(np.flatnonzero(tied).tolist(), key=lambda arm: (pulls[arm], arm))
        return np.array([self.last])

    def bound(self, rewards: Floats, to_come: int) -> float:
        future = noisy_future_reward(rewards - self.width, rewards + self.width, to_come)
        self.falling += future is None
        return to_come * (rewards[-1] + self.width) if future is None else future


@pytest.mark.parametrize("refresh", ["all", "pulled"])
@pytest.mark.parametrize("seed", range(2))
def test_optimism_under_noise_is_that_of_every_program_solved_anew(refresh: str, seed: int) -> None:
    t, steps, noise = np.arange(1.0, 41), 15, 0.04
    rises, falls = 0.9 * (1 - np.exp(-0.2 * t)), np.where(t < 4, 0.25 * t, 0.0)
    curves = tables(rises.tolist(), falls.tolist(), [0.5])
    eager = EagerOptimism(refresh, noise, steps)
    expected = episode(game(curves, steps, noise=noise), eager, seed)[0]
    agent = SinglePeakedOptimism(refresh, noise_std=noise)
    assert episode(game(curves, steps, noise=noise), agent, seed)[0] == expected
    assert eager.falling
    assert len(set(expected[6:])) > 1


def test_optimism_under_noise_plays_rows_alone() -> None:
    envs = gym.make_vec(
        IMPROVING, 2, num_arms=3, horizon=10, noise_std=0.1, autoreset_mode="SameStep"
    )
    agents: list[Agent] = [
        SinglePeakedOptimism(noise_std=0.1, horizon=10),
        AnytimeSinglePeaked(noise_std=0.1),
    ]
    for agent in agents:
        alone = [type(agent)(**vars_of(agent)) for _ in range(2)]
        observation, _ = envs.reset(seed=1)
        for _ in range(16):
            actions = agent.act(observation)
            assert actions.tolist() == [own.act(row(observation, i)) for i, own in enumerate(alone)]
            assert_array_equal(agent.act(observation), actions)
            observation, *_ = envs.step(actions)


def vars_of(agent: Agent) -> dict[str, Any]:
    return {name: value for name, value in vars(agent).items() if not name.startswith("_")}


def test_lengths_double_when_they_are_over() -> None:
    steps = np.array([0, 7, 8, 15, 16, 31, 32, 8 * 2**20])
    expected = [8, 8, 16, 16, 32, 32, 64, 2**24]
    assert doubled_length(8, steps).tolist() == expected


def test_the_anytime_heuristic_is_optimism_for_the_doubled_length() -> None:
    curves = [Constant(0.3), LinearCap(0.9, 60), LinearCap(0.5, 9)]
    env = game(curves, 100, known=False)
    agent = AnytimeSinglePeaked()
    observation, _ = env.reset(seed=0)
    for step in range(100):
        length = next(12 * 2**i for i in range(9) if 12 * 2**i > step)
        action = agent.act(observation)
        assert action == SinglePeakedOptimism(horizon=length).act(observation)
        observation, *_ = env.step(action)
    assert observation["pulls"].min() == 5  # floor(ln 192)


# --- R-ed-UCB -----------------------------------------------------------------------------------


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


# --- Random order -------------------------------------------------------------------------------


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


# --- RC-BE(alpha) -------------------------------------------------------------------------------


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


# --- The clairvoyant ----------------------------------------------------------------------------


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


# --- Memory -------------------------------------------------------------------------------------


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


# --- Errors -------------------------------------------------------------------------------------


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
