"""What the tests of agents share: a loop, the exact Algorithm 1, and every agent by name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from helpers_names import EGAL, IMPROVING, Floats, Ints
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401 - registers the environments
from gym_fairbandits import agents
from gym_fairbandits.agents import Agent
from gym_fairbandits.arms import Arms, Gaussian
from gym_fairbandits.curves import Curve, LinearCap

ExactCurve: TypeAlias = Callable[[int], Fraction]
Observation: TypeAlias = dict[str, NDArray[Any]]

DATA: Any = json.loads((Path(__file__).parent / "data" / "agents.json").read_text("utf-8"))

HORIZON = 200  # what horizon-aware agents are told; no test of every agent plays longer

# Every agent that needs no environment.
IMPROVING_AGENTS: dict[str, Callable[[], Agent]] = {
    "AnytimeImproving": agents.AnytimeImproving,
    "RoundRobin": agents.RoundRobin,
    "Greedy": agents.Greedy,
    "FixedArm": partial(agents.FixedArm, 1),
    "UniformRandom": agents.UniformRandom,
    "HorizonAwareImproving": partial(agents.HorizonAwareImproving, horizon=HORIZON),
    "SinglePeakedOptimism": partial(agents.SinglePeakedOptimism, horizon=HORIZON),
    "SinglePeakedOptimism-pulled": partial(agents.SinglePeakedOptimism, "pulled", horizon=HORIZON),
    "AnytimeSinglePeaked": agents.AnytimeSinglePeaked,
    "RisingUCB": agents.RisingUCB,
    "RisingUCB-restless": partial(agents.RisingUCB, sigma=0.0, restless=True),
    "RCBE": partial(agents.RCBE, sigma=0.0),
    "RandomRoundRobin": agents.RandomRoundRobin,
    "RandomRoundRobin-optimum": partial(agents.RandomRoundRobin, optimum=0.9, tau=20),
    "HybridRising": partial(agents.HybridRising, optimum=0.9, budget=12, horizon=HORIZON),
    "UCB1": agents.UCB1,
    "KLUCB": agents.KLUCB,
    "KLUCB-gaussian": partial(agents.KLUCB, "gaussian", c=3),
    "EpsilonGreedy": partial(agents.EpsilonGreedy, 0.3),
    "EpsilonGreedy-decaying": partial(agents.EpsilonGreedy, c=0.5, gap=0.6),
    "ThompsonSampling": agents.ThompsonSampling,
    "ThompsonSampling-gaussian": partial(agents.ThompsonSampling, "gaussian"),
    "Exp3": partial(agents.Exp3, 0.2),
    "Exp3-tuned": partial(agents.Exp3, horizon=HORIZON),
    "Rexp3": partial(agents.Rexp3, batch=9, gamma=0.2),
    "Rexp3-tuned": partial(agents.Rexp3, horizon=HORIZON),
    "SlidingWindowUCB": partial(agents.SlidingWindowUCB, 9),
    "SlidingWindowUCB-tuned": partial(agents.SlidingWindowUCB, horizon=HORIZON),
    "SlidingWindowThompson": partial(agents.SlidingWindowThompson, 9),
    "SlidingWindowThompson-tuned": partial(agents.SlidingWindowThompson, horizon=HORIZON),
    "DiscountedUCB": partial(agents.DiscountedUCB, 0.9),
    "DiscountedUCB-tuned": partial(agents.DiscountedUCB, horizon=HORIZON),
}
EGAL_AGENTS: dict[str, Callable[[], Agent]] = {
    "EgalUCB": agents.EgalUCB,
    "EgalUCB-played": partial(agents.EgalUCB, c=0.5, update="played"),
    "UniformRandom": agents.UniformRandom,
    "EgalMOSS": partial(agents.EgalMOSS, horizon=HORIZON),
    "EgalKLUCB": agents.EgalKLUCB,
    "EgalKLUCB-gaussian": partial(agents.EgalKLUCB, "gaussian", c=3),
    "EgalThompson": agents.EgalThompson,
    "EgalThompson-gaussian": partial(agents.EgalThompson, "gaussian"),
    "ExploreThenCommit": partial(agents.ExploreThenCommit, horizon=HORIZON),
    "ExploreThenCommit-gap": partial(agents.ExploreThenCommit, horizon=HORIZON, gap=3.0),
    "GreedyRotation": agents.GreedyRotation,
    "CombinatorialUCB": agents.CombinatorialUCB,
    "PoorestFirst": agents.PoorestFirst,
    "PhasedElimination": partial(agents.PhasedElimination, horizon=HORIZON),
    "ComponentHedge": partial(agents.ComponentHedge, eta=0.1),
    "ComponentHedge-tuned": partial(agents.ComponentHedge, horizon=HORIZON),
    "PermELearn": partial(agents.PermELearn, eta=0.1),
    "PermELearn-tuned": partial(agents.PermELearn, horizon=HORIZON),
}
IMPROVING_ORACLES: dict[str, Callable[[Any], Agent]] = {
    "OracleArm": agents.OracleArm,
    "OracleSchedule": agents.OracleSchedule,
    "GreedyNext": agents.GreedyNext,
}
EGAL_ORACLES: dict[str, Callable[[Any], Agent]] = {
    "OracleRotation": agents.OracleRotation,
    "StaticOracle": agents.StaticOracle,
}

# Of these, those that draw random numbers, and those that look at how much of an episode is left.
RANDOM = {
    "UniformRandom",
    "EpsilonGreedy",
    "EpsilonGreedy-decaying",
    "ThompsonSampling",
    "ThompsonSampling-gaussian",
    "Exp3",
    "Exp3-tuned",
    "Rexp3",
    "Rexp3-tuned",
    "SlidingWindowThompson",
    "SlidingWindowThompson-tuned",
    "EgalThompson",
    "EgalThompson-gaussian",
    "RandomRoundRobin",
    "RandomRoundRobin-optimum",
    "HybridRising",
    "ComponentHedge",
    "ComponentHedge-tuned",
    "PermELearn",
    "PermELearn-tuned",
}
HORIZON_AWARE = {
    "Exp3-tuned",
    "Rexp3-tuned",
    "SlidingWindowUCB-tuned",
    "SlidingWindowThompson-tuned",
    "DiscountedUCB-tuned",
    "HorizonAwareImproving",
    "SinglePeakedOptimism",
    "SinglePeakedOptimism-pulled",
    "RandomRoundRobin",
    "HybridRising",
    "ComponentHedge-tuned",
    "PermELearn-tuned",
    "EgalMOSS",
    "ExploreThenCommit",
    "ExploreThenCommit-gap",
    "PhasedElimination",
}


def factories(
    env_id: str, *, random: bool = True, oracles: bool = True
) -> dict[str, Callable[[Any], Agent]]:
    """Return the agents of an environment, each as a function of the env that runs."""
    plain = IMPROVING_AGENTS if env_id == IMPROVING else EGAL_AGENTS
    made: dict[str, Callable[[Any], Agent]] = {
        name: lambda env, build=build: build()  # type: ignore[misc]
        for name, build in plain.items()
        if random or name not in RANDOM
    }
    if oracles:
        made |= IMPROVING_ORACLES if env_id == IMPROVING else EGAL_ORACLES
    return made


ALL_AGENTS = [(env_id, name) for env_id in (IMPROVING, EGAL) for name in factories(env_id)]
DETERMINISTIC = [pair for pair in ALL_AGENTS if pair[1] not in RANDOM]


def build(env_id: str, name: str, env: Any) -> Agent:
    """Return the named agent for the env that runs."""
    return factories(env_id)[name](env)


def episode(
    env: gym.Env[Any, Any], agent: Agent, seed: int | None = None, options: Any = None
) -> tuple[list[Any], list[float], dict[str, Any]]:
    """Play one episode; return its actions (as lists), its rewards and its last info."""
    observation, info = env.reset(seed=seed, options=options)
    actions, rewards, done = [], [], False
    while not done:
        action = agent.act(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        actions.append(np.asarray(action).tolist())
        rewards.append(float(reward))
        done = terminated or truncated
    return actions, rewards, info


def row(observation: Observation, number: int) -> Observation:
    """Return one row of a batched observation."""
    return {name: values[number] for name, values in observation.items()}


def exact_cap(asymptote: Fraction, ramp: Fraction | int) -> ExactCurve:
    """Return ``asymptote * min(n / ramp, 1)`` as exact rationals."""
    return lambda n: asymptote * min(Fraction(n) / ramp, Fraction(1))


def float_caps(parameters: Iterable[tuple[Fraction, Fraction]]) -> list[Curve]:
    """Return the same curves as the package has them."""
    return [LinearCap(float(asymptote), float(ramp)) for asymptote, ramp in parameters]


def exact_algorithm1(curves: Sequence[ExactCurve], steps: int) -> list[int]:
    """Return the pulls of Algorithm 1 of Patil et al. in exact arithmetic.

    Two sweeps, then the highest p_i, ties by fewest pulls, then lowest index. All values are
    brought to a common denominator, so that only integers are compared.
    """
    exact = {curve: [curve(n) for n in range(1, steps + 1)] for curve in set(curves)}
    scale = math.lcm(*{value.denominator for values in exact.values() for value in values})
    whole = {curve: [int(value * scale) for value in exact[curve]] for curve in exact}
    table = [whole[curve] for curve in curves]
    pulls, earned = [0] * len(curves), [0] * len(curves)
    sequence = []
    for _ in range(steps):
        if min(pulls) < 2:
            arm = min(range(len(curves)), key=lambda i: (pulls[i], i))
        else:
            most = max(pulls)
            estimates = []  # twice p_i, which is whole
            for i, n in enumerate(pulls):
                behind, last = most - n, table[i][n - 1]
                rise = last - table[i][n - 2]
                estimates.append(2 * (earned[i] + behind * last) + rise * behind * (behind + 1))
            best = max(estimates)
            tied = [i for i, estimate in enumerate(estimates) if estimate == best]
            arm = min(tied, key=lambda i: (pulls[i], i))
        earned[arm] += table[arm][pulls[arm]]
        pulls[arm] += 1
        sequence.append(arm)
    return sequence


def random_caps(
    rng: np.random.Generator, num_arms: int, longest: int = 60
) -> list[tuple[Fraction, Fraction]]:
    """Return asymptotes and ramps of random linear caps with small denominators."""
    tops = rng.integers(0, 21, num_arms).tolist()
    ramps = rng.integers(1, longest + 1, num_arms).tolist()
    return [(Fraction(top, 20), Fraction(ramp)) for top, ramp in zip(tops, ramps, strict=True)]


def fixed(means: Sequence[float]) -> Gaussian:
    """Return arms that pay their means without chance."""
    return Gaussian(means, 0.0)


class FirstPullOfArmZeroPaysNothing(Arms):
    """Arms that pay their means, but 0 on the very first pull of arm 0."""

    family = "first_pull_of_arm_zero_pays_nothing"
    noise = None

    def __init__(self, means: Sequence[float]) -> None:
        self.means = np.array(means, dtype=np.float64)

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        before = np.take_along_axis(pulls, arms, axis=-1)
        return np.where((arms == 0) & (before == 0), 0.0, self.means[arms])

    def parameters(self) -> dict[str, Any]:
        return {"means": self.means.tolist()}


# Horizons at which EgalAssign's last block is cut short, so that episodes end within a block.
SMALL: dict[str, dict[str, Any]] = {
    IMPROVING: {"num_arms": 4, "horizon": 23},
    EGAL: {"num_users": 3, "num_arms": 5, "horizon": 23},
}


def seen(pulls: Sequence[int], **sums: Sequence[float]) -> Observation:
    arrays = {name: np.array(values, dtype=np.float64) for name, values in sums.items()}
    return {"pulls": np.array(pulls, dtype=np.int64), **arrays}


def phases(
    env_id: str, **kwargs: Any
) -> Generator[tuple[Any, list[Any], list[Observation]], Any, None]:
    """Yield a native vector env, its scalar twins, and observations as an agent's turn comes.

    Rows are reset at different times, so that they are in different phases of their episodes; the
    consumer sends the batched action that both then play.
    """
    envs = gym.make_vec(env_id, num_envs=4, autoreset_mode="Disabled", **kwargs)
    singles = [gym.make(env_id, **kwargs) for _ in range(4)]
    batch, _ = envs.reset(seed=11)
    own = [env.reset(seed=11 + i)[0] for i, env in enumerate(singles)]
    for step in range(60):
        action = yield envs, singles, [batch, *own]
        batch, _, terminations, truncations, _ = envs.step(action)
        done = terminations | truncations
        for i, env in enumerate(singles):
            own[i], *_ = env.step(action[i])
        mask = done | (step == np.array([2, 7, 18, 40]))
        if mask.any():
            batch, _ = envs.reset(options={"reset_mask": mask})
            for i in np.flatnonzero(mask).tolist():
                own[i], _ = singles[i].reset()
