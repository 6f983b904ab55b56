"""Regrets of agents for assignment are what was measured elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL, Floats

from gym_fairbandits.agents import (
    Agent,
    CombinatorialUCB,
    EgalKLUCB,
    EgalMOSS,
    EgalThompson,
    EgalUCB,
    ExploreThenCommit,
    GreedyRotation,
    PhasedElimination,
)
from gym_fairbandits.arms import Bernoulli

RUNS = 12
Competitors = Mapping[str, tuple[Agent, int]]


def regret_of(competitors: Competitors, **kwargs: Any) -> dict[str, Floats]:
    """Return the policy regret of each agent after its number of steps; 12 runs each.

    All play in one batch, each its own rows. One whose steps are over repeats its last action.
    """
    longest = max(steps for _, steps in competitors.values())
    envs: Any = gym.make_vec(
        EGAL, RUNS * len(competitors), horizon=longest, autoreset_mode="Disabled", **kwargs
    )
    slices = {name: slice(RUNS * i, RUNS * (i + 1)) for i, name in enumerate(competitors)}
    for agent, _ in competitors.values():
        agent.reset(seed=0)
    observation, _ = envs.reset(seed=0)
    actions = np.zeros((envs.num_envs, kwargs["num_users"]), dtype=np.int64)
    regret = {}
    for step in range(1, longest + 1):
        for name, (agent, steps) in competitors.items():
            if step <= steps:
                own = slices[name]
                actions[own] = agent.act({key: values[own] for key, values in observation.items()})
        observation, *_ = envs.step(actions)
        for name, (_, steps) in competitors.items():
            if step == steps:
                lost = envs.unwrapped.optimal_return() - envs.unwrapped.expected_return()
                regret[name] = lost[slices[name]]
    return regret


@pytest.mark.slow
def test_regret_is_what_was_measured_elsewhere() -> None:
    # Means of 12 runs of another implementation. Its standard errors are taken to be ours, but
    # for the one that is known; its exploration seems to be a round of 4 blocks shorter.
    measured = {
        "thompson_beta": 26.7,
        "thompson_gaussian": 28.3,
        "kl": 36.5,
        "moss": 40.3,
        "combinatorial": 99.7,
        "commit": 160.6,
        "ucb": 302.0,
        "greedy": 635.0,
    }
    means = np.linspace(0.9, 0.1, 10)
    known = {"greedy": 143.0}
    rest = {"commit": 4 * (means[:3].sum() - 3 * means.mean())}
    horizon = 15_000
    agents: dict[str, Agent] = {
        "thompson_beta": EgalThompson(),
        "thompson_gaussian": EgalThompson("gaussian"),
        "kl": EgalKLUCB(),
        "moss": EgalMOSS(horizon),
        "combinatorial": CombinatorialUCB(),
        "commit": ExploreThenCommit(horizon),
        "ucb": EgalUCB(),
        "greedy": GreedyRotation(),
    }
    regret = regret_of(
        {name: (agent, horizon) for name, agent in agents.items()},
        instance=Bernoulli(means),
        num_users=3,
    )
    for name, value in measured.items():
        own = regret[name].std(ddof=1) / math.sqrt(RUNS)
        allowed = 3 * math.hypot(own, known.get(name, own)) + rest.get(name, 0.0)
        assert abs(regret[name].mean() - value) <= allowed, name


@pytest.mark.slow
def test_equal_phases_lose_linearly_and_logarithmic_ones_do_not() -> None:
    # Measured with another implementation, on means that are not stated: within 12 % here.
    measured = {"egal_ucb": (396, 499), "equal": (456, 880), "log": (232, 265)}
    competitors: dict[str, tuple[Agent, int]] = {}
    for steps in (6000, 12_000):
        competitors[f"egal_ucb {steps}"] = (EgalUCB(capacity=3), steps)
        for schedule in ("equal", "log"):
            competitors[f"{schedule} {steps}"] = (PhasedElimination(3, steps, schedule), steps)
    regret = regret_of(
        competitors, instance=Bernoulli(np.linspace(0.9, 0.1, 12)), num_users=6, capacity=3
    )
    mean = {name: values.mean() for name, values in regret.items()}
    for name, (first, second) in measured.items():
        assert mean[f"{name} 6000"] == pytest.approx(first, rel=0.12)
        assert mean[f"{name} 12000"] == pytest.approx(second, rel=0.12)
    growth = {name: mean[f"{name} 12000"] / mean[f"{name} 6000"] for name in measured}
    assert growth["equal"] > 1.85
    assert growth["egal_ucb"] < 1.4
    assert growth["log"] < 1.3
