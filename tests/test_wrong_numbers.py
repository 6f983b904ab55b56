"""NaN, infinity and what is no number: every public argument that takes numbers refuses them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_names import EGAL, IMPROVING

from gym_fairbandits import (
    agents,
    arms,
    bounds,
    curves,
    datasets,
    envs,
    evaluation,
    instances,
    optimum,
    spaces,
)
from gym_fairbandits.wrappers import gini, jain_index

NAN, INF = math.nan, math.inf
Call = tuple[Callable[..., Any], dict[str, Any]]
RNG = np.random.default_rng(0)
CAPS = [curves.LinearCap(1.0, 3)]
MEANS = [0.125, 0.25, 0.5]


def improving() -> Any:
    """Return an environment that runs."""
    env = gym.make(IMPROVING, num_arms=2, horizon=5)
    env.reset(seed=0)
    return env


RUNNING = improving()
BANDIT = RUNNING.unwrapped
ALL: dict[str, Any] = {"num_arms": 5, "num_users": 2, "steps": 50}

# Each callable with arguments that it takes: every number among them is then made wrong.
CALLS: list[Call] = [
    # Bounds
    (bounds.algorithm1_arm_factor, {"pulls": 3, "steps": 5}),
    (bounds.algorithm1_ratio, {"num_arms": 3, "steps": 50}),
    (bounds.assignment_gaps, {"means": MEANS, "num_users": 2}),
    (bounds.bad_event_probability, {"num_arms": 5, "num_users": 2, "block": 2}),
    (
        bounds.capacity_regret,
        {**ALL, "num_users": 4, "capacity": 2, "min_gap": 0.1, "max_gap": 0.2},
    ),
    (bounds.deterministic_ratio, {"num_arms": 5, "steps": 50}),
    (bounds.deterministic_regret, {"num_arms": 5, "steps": 50}),
    (bounds.early_share, {"pulls": 3, "steps": 5}),
    (bounds.egal_gap_regret, {**ALL, "min_gap": 0.1, "max_gap": 0.2}),
    (bounds.egal_regret, ALL),
    (bounds.egal_worst_case_regret, ALL),
    (bounds.forced_sweep_ratio, {"num_arms": 5}),
    (bounds.round_robin_ratio, {"num_arms": 5, "steps": 50}),
    (bounds.round_robin_ratio_range, {"num_arms": 5}),
    (bounds.may_lead, {"totals": MEANS, "pulls": 3}),
    (bounds.potential_steps, {"curves": CAPS, "gap": 0.1}),
    (bounds.integral_bounds, {"reward": float, "steps": 5}),
    # Optima
    (optimum.best_fixed_set_optimum, {"totals": MEANS, "num_users": 2, "capacity": 1}),
    (optimum.egalitarian_optimum, {"means": MEANS, "num_users": 2, "steps": 5, "capacity": 1}),
    (optimum.max_min_assignment, {"means": MEANS, "num_users": 2, "steps": 5, "capacity": 1}),
    (optimum.improving_optimum, {"curves": CAPS, "steps": 5}),
    (optimum.rested_optimum, {"curves": CAPS, "steps": 5}),
    # Instances
    (
        instances.early_vs_late,
        {"early_asymptote": 0.5, "early_ramp": 2, "late_asymptote": 1.0, "late_ramp": 40},
    ),
    (
        instances.egal_lower_bound,
        {"num_users": 2, "num_arms": 10, "steps": 1000, "boosted": [3, 4]},
    ),
    (instances.lower_bound_gap, {"num_users": 2, "num_arms": 10, "steps": 1000}),
    (instances.improving_lower_bound, {"num_arms": 10, "steps": 1000, "late": 2}),
    (instances.random_bernoulli, {"rng": RNG, "num_arms": 3}),
    (instances.random_concave, {"rng": RNG, "num_arms": 3}),
    (instances.random_gaussian, {"rng": RNG, "num_arms": 3, "variance": 1.0}),
    (instances.random_means, {"rng": RNG, "num_arms": 3}),
    (instances.round_robin_trap, {"num_arms": 3, "steps": 30}),
    (instances.two_level, {"num_users": 2, "num_arms": 4, "high": 0.8, "low": 0.5}),
    # Curves
    (curves.Constant, {"value": 0.5}),
    (curves.Exponential, {"asymptote": 0.5, "rate": 0.5}),
    (curves.Gompertz, {"asymptote": 0.5, "displacement": 0.5, "rate": 0.5}),
    (curves.Hill, {"asymptote": 0.5, "half_saturation": 0.5, "exponent": 0.5}),
    (curves.Hyperbolic, {"asymptote": 0.5, "half_saturation": 0.5}),
    (curves.LinearCap, {"asymptote": 0.5, "ramp": 3}),
    (curves.Logarithmic, {"asymptote": 0.5, "scale": 2.0, "ramp": 50.0}),
    (curves.Logistic, {"asymptote": 0.5, "steepness": 0.3, "midpoint": 0.5}),
    (
        curves.NoveltyDecay,
        {"value": 0.5, "novelty": 0.5, "fading": 0.5, "adaptation": 0.5},
    ),
    (curves.PiecewiseLinear, {"asymptotes": (0.5, 0.2), "ramps": (2.0, 3.0)}),
    (curves.Polynomial, {"asymptote": 0.5, "weight": 0.5, "exponent": 0.5}),
    (curves.Power, {"asymptote": 0.5, "ramp": 5.0, "exponent": 0.5}),
    (curves.PowerLaw, {"asymptote": 0.5, "exponent": 0.5}),
    (curves.Scaled, {"factor": 0.5, "curve": CAPS[0]}),
    (
        curves.SinglePeaked,
        {
            "rate": 0.5,
            "extra_rate": 0.5,
            "plateau": 0.5,
            "asymptote": 0.2,
            "center": 3.0,
            "amplitude": -0.1,
        },
    ),
    (curves.Tabulated, {"values": (0.1, 0.2)}),
    (curves.UnshiftedPowerLaw, {"asymptote": 0.5, "exponent": 0.5}),
    (curves.Weibull, {"asymptote": 0.5, "scale": 0.5, "exponent": 0.5}),
    (curves.check_improving, {"curve": curves.Tabulated((0.1, 0.2)), "horizon": 5, "arm": 0}),
    (CAPS[0], {"pulls": 3}),
    (CAPS[0].cumulative, {"pulls": [3, 4]}),
    # Arms
    (arms.AdaptiveAdversary, {"num_arms": 3, "num_paying": 1, "reward": 1.0}),
    (arms.Adversarial, {"table": [[0.1, 0.2], [0.3, 0.4]]}),
    (arms.Bernoulli, {"means": MEANS}),
    (arms.Empirical, {"samples": [[0.1, 0.2], [0.3]]}),
    (arms.Gaussian, {"means": MEANS, "std": 1.0}),
    (arms.Gaussian, {"means": MEANS, "std": [1.0, 0.5, 0.25]}),
    (arms.Switching, {"means": [[0.1, 0.2], [0.2, 0.1]], "switches": [3], "std": 0.5}),
    # Agents
    (agents.AnytimeImproving, {"tolerance": 1e-9}),
    (agents.AnytimeSinglePeaked, {"noise_std": 0.1}),
    (agents.CombinatorialUCB, {"c": 1.5, "sigma": 1.0, "capacity": 1}),
    (agents.ComponentHedge, {"eta": 0.1, "horizon": 50, "capacity": 1}),
    (agents.DiscountedUCB, {"discount": 0.9, "xi": 0.6, "scale": 1.0, "horizon": 50}),
    (agents.EgalKLUCB, {"c": 1.0, "sigma": 0.5, "capacity": 1}),
    (agents.EgalMOSS, {"horizon": 50, "sigma": 0.5, "capacity": 1}),
    (agents.EgalThompson, {"sigma": 0.5, "capacity": 1}),
    (agents.EgalUCB, {"c": 6.0, "sigma": 1.0, "capacity": 1}),
    (agents.EpsilonGreedy, {"epsilon": 0.1}),
    (agents.EpsilonGreedy, {"c": 1.0, "gap": 0.1}),
    (agents.Exp3, {"gamma": 0.1}),
    (agents.Exp3, {"horizon": 50}),
    (agents.ExploreThenCommit, {"horizon": 50, "gap": 0.1, "capacity": 1}),
    (agents.FixedArm, {"arm": 1}),
    (agents.GreedyRotation, {"capacity": 1}),
    (agents.HorizonAwareImproving, {"horizon": 50}),
    (agents.HybridRising, {"optimum": 0.5, "budget": 9, "horizon": 50, "tau": 3, "alpha": 1.0}),
    (agents.KLUCB, {"c": 0.0, "sigma": 0.5}),
    (agents.OracleArm, {"env": RUNNING, "steps": 5}),
    (agents.OracleSchedule, {"env": RUNNING, "steps": 5}),
    (agents.PermELearn, {"eta": 0.1, "horizon": 50, "capacity": 1}),
    (
        agents.PhasedElimination,
        {"capacity": 1, "horizon": 50, "kappa": 20.0, "c": 6.0, "sigma": 1.0},
    ),
    (agents.PoorestFirst, {"c": 6.0, "sigma": 1.0, "capacity": 1}),
    (agents.RCBE, {"alpha": 2.0, "sigma": 0.1}),
    (agents.RandomRoundRobin, {"optimum": 0.5, "horizon": 50, "tau": 3, "alpha": 1.0}),
    (agents.Rexp3, {"variation": 2.0, "batch": 10, "gamma": 0.1, "horizon": 50}),
    (agents.RisingUCB, {"epsilon": 0.25, "alpha": 4.0, "sigma": 0.1}),
    (agents.SinglePeakedOptimism, {"noise_std": 0.1, "horizon": 50}),
    (agents.SlidingWindowThompson, {"window": 5}),
    (agents.SlidingWindowThompson, {"horizon": 50}),
    (agents.SlidingWindowUCB, {"window": 5, "xi": 0.6, "scale": 1.0}),
    (agents.SlidingWindowUCB, {"horizon": 50}),
    (agents.ThompsonSampling, {"sigma": 0.5}),
    (agents.UCB1, {"c": 2.0}),
    (agents.UniformRandom, {"capacity": 1}),
    # Environments, spaces, evaluation, data
    (
        envs.ImprovingBanditEnv,
        {"num_arms": 3, "noise_std": 0.5, "horizon": 5},
    ),
    (envs.EgalAssignEnv, {"num_users": 2, "num_arms": 3, "capacity": 1, "horizon": 5}),
    (
        envs.ImprovingBanditVectorEnv,
        {"num_envs": 2, "num_arms": 3, "noise_std": 0.5, "horizon": 5, "max_episode_steps": 4},
    ),
    (
        envs.EgalAssignVectorEnv,
        {
            "num_envs": 2,
            "num_users": 2,
            "num_arms": 3,
            "capacity": 1,
            "horizon": 5,
            "max_episode_steps": 4,
        },
    ),
    (BANDIT.optimal_return, {"steps": 3}),
    (BANDIT.exact_optimal_return, {"steps": 3}),
    (BANDIT.optimal_arm, {"steps": 3}),
    (BANDIT.optimal_pulls, {"steps": 3}),
    (gym.make_vec(IMPROVING, num_envs=2).reset, {"seed": 3}),
    (gym.make_vec(EGAL, num_envs=2).reset, {"seed": [3, 4]}),
    (spaces.Assignment, {"num_users": 2, "num_arms": 3, "capacity": 1}),
    (spaces.BatchedAssignment, {"single": spaces.Assignment(2, 3), "n": 2}),
    (evaluation.mean_interval, {"values": np.array([0.1, 0.2, 0.4]), "confidence": 0.9}),
    (
        evaluation.evaluate,
        {
            "policy": agents.Greedy(),
            "env_id": IMPROVING,
            "num_episodes": 2,
            "seed": 0,
            "num_envs": 2,
            "checkpoints": [3],
            "n_jobs": 1,
            "horizon": 5,
        },
    ),
    (
        evaluation.compare,
        {
            "policies": {"greedy": agents.Greedy()},
            "env_id": IMPROVING,
            "num_episodes": 2,
            "seed": 0,
            "num_envs": 2,
            "checkpoints": [3],
            "n_jobs": 1,
            "horizon": 5,
        },
    ),
    (datasets.movielens, {"path": "nowhere", "num_arms": 5, "seed": 0, "min_ratings": 1}),
    (datasets.google_cluster, {"path": "nowhere", "num_arms": 5, "max_rows": 10}),
    (datasets.synthetic_movielens, {"num_arms": 5, "seed": 0, "num_ratings": 1000}),
    (datasets.synthetic_cluster, {"num_arms": 5, "seed": 0, "num_rows": 1000}),
]

# Numbers that these take as they are: infinity is a value of its own there.
ALLOWED = {("egal_gap_regret", "min_gap", INF), ("capacity_regret", "min_gap", INF)}

# Public names that take numbers and are not above, and why.
NOT_SWEPT = {
    "MaxMinAssignment": "a result",
    "best_arms": "takes a grid of arms that were checked",
    "rested_optima": "takes a grid of arms that were checked",
    "best_slots": "takes means that were checked",
    "concave_parameters": "takes what a generator drew",
    "Agent": "cannot be created, nor can the two below",
    "IndexRotation": "its argument is that of GreedyRotation",
    "RotatingAgent": "its argument is that of GreedyRotation",
    "argmax_fewest_pulls": "takes what an agent computed, in every step",
    "EvaluationError": "an error",
    "Evaluation": "a result",
    "check_assignment": "called in every step, with the sizes of a space that was checked",
    "check_assignments": "called in every step, with the sizes of a space that was checked",
    "rotation": "takes slots that an agent chose, in every step",
    "Recorded": "its samples are those of Empirical, the rest describes them",
}
MODULES = (agents, arms, bounds, curves, datasets, envs, evaluation, instances, optimum, spaces)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def made_wrong(value: Any, wrong: Any) -> Any:
    """Return ``value``, a number or nested numbers, with the first one replaced, or None."""
    if is_number(value):
        return wrong
    if isinstance(value, list | tuple) and value:
        first = made_wrong(value[0], wrong)
        return None if first is None else type(value)([first, *value[1:]])
    return None


CASES = [
    pytest.param(call, arguments, name, id=f"{getattr(call, '__qualname__', 'curve')}-{name}")
    for call, arguments in CALLS
    for name, value in arguments.items()
    if made_wrong(value, NAN) is not None
]


def name_of(call: Any) -> str:
    return str(getattr(call, "__name__", "curve"))


@pytest.mark.parametrize(("call", "arguments", "name"), CASES)
def test_wrong_numbers_are_refused_by_name(
    call: Callable[..., Any], arguments: dict[str, Any], name: str
) -> None:
    for wrong in (NAN, INF, -INF, "1", 1j, np.float64(NAN)):
        if (name_of(call), name, wrong) in ALLOWED:
            assert math.isfinite(call(**{**arguments, name: wrong}))
            continue
        given = made_wrong(arguments[name], wrong)
        with pytest.raises((TypeError, ValueError), match=f"`{name}"):
            call(**{**arguments, name: given})


@pytest.mark.parametrize(("call", "arguments"), CALLS, ids=[name_of(call) for call, _ in CALLS])
def test_the_same_arguments_are_taken_as_they_are(
    call: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    if call.__module__.startswith("gym_fairbandits.datasets."):
        pytest.importorskip("polars")
    if arguments.get("path") == "nowhere":
        with pytest.raises(FileNotFoundError):
            call(**arguments)
    else:
        call(**arguments)


def takes_numbers(thing: Any) -> bool:
    """Return whether a parameter's annotation speaks of numbers."""
    words = ("int", "float", "ArrayLike", "Floats", "Ints")
    return any(
        any(word in str(parameter.annotation) for word in words)
        for parameter in inspect.signature(thing).parameters.values()
    )


def test_every_public_name_that_takes_numbers_is_swept() -> None:
    public = {
        name
        for module in MODULES
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) or inspect.isclass(getattr(module, name))
        if takes_numbers(getattr(module, name))
    }
    swept = {name_of(call) for call, _ in CALLS}
    assert public - swept - set(NOT_SWEPT) == set()
    assert not swept & set(NOT_SWEPT)
    assert len(public) > 80


@pytest.mark.parametrize("index", [gini, jain_index])
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_a_row_with_a_wrong_number_has_no_index(index: Callable[[Any], Any], wrong: float) -> None:
    assert math.isnan(index([wrong, 0.5]))
    rows = index([[0.5, wrong], [2.0, 2.0]])
    assert np.isnan(rows).tolist() == [True, False]
    assert rows[1] == index([2.0, 2.0])


@pytest.mark.parametrize("wrong", [NAN, INF, -INF, 0.0, "0", None, 1j, np.nan, True])
@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
def test_wrong_numbers_as_actions_change_nothing(env_id: str, wrong: Any) -> None:
    env: Any = gym.make(env_id, num_arms=6, horizon=5, disable_env_checker=True)
    rows: Any = gym.make_vec(env_id, num_envs=2, num_arms=6, horizon=5)
    right = env.action_space.sample()
    for one, action in (
        (env, wrong if env_id == IMPROVING else [wrong, 1, 2, 3, 4]),
        (rows, [wrong, 1] if env_id == IMPROVING else [[wrong, 1, 2, 3, 4], [0, 1, 2, 3, 4]]),
    ):
        one.reset(seed=0)
        with pytest.raises(InvalidAction, match=r"`actions?` "):
            one.unwrapped.step(action)
        assert one.unwrapped.pulls.sum() == 0
        taken = right if one is env else np.stack([right] * 2)
        assert one.unwrapped.step(taken)[0]["pulls"].sum() > 0
