"""Agents for arms that rise and then fall against the counts of Lindner et al. and hand work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import ExactCurve, episode, exact_cap, float_caps, random_caps, row
from helpers_names import IMPROVING, Floats
from helpers_rising import PUBLISHED, game, linear, pulled, tables
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import (
    Agent,
    AnytimeSinglePeaked,
    HorizonAwareImproving,
    SinglePeakedOptimism,
)
from gym_fairbandits.agents.improving import future_reward
from gym_fairbandits.agents.single_peaked import doubled_length, noisy_future_reward
from gym_fairbandits.curves import Constant, LinearCap

# --- The instances of Lindner et al. --------------------------------------------------------------

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


# --- Elimination ----------------------------------------------------------------------------------


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


def test_elimination_keeps_an_arm_that_noise_lifted_above_one() -> None:
    # In 182 steps to come the last arm pays at least 182 * 1.1, the others at most 182 * 0.3.
    observation = {
        "pulls": np.array([6, 6, 6]),
        "reward_sum": np.array([1.2, 1.8, 4.0]),
        "last_reward": np.array([0.2, 0.3, 1.1]),
        "last_increment": np.array([0.0, 0.0, 0.1]),
    }
    assert HorizonAwareImproving(horizon=200).act(observation) == 2


def test_elimination_never_drops_all_arms_under_noise() -> None:
    env = game([Constant(0.2), Constant(0.3), LinearCap(1, 5)], 200, noise=0.1)
    agent = HorizonAwareImproving()
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        agent.reset()
        ended = False
        while not ended:
            action = agent.act(observation)
            assert agent._left.any()
            observation, _, ended, *_ = env.step(action)


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


# --- Single-peaked arms ---------------------------------------------------------------------------


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
