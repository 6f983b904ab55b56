"""The true optimum of the worst-off user, judged by enumeration, vectors and played schedules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import Floats
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.agents import OracleRotation, UniformRandom
from gym_fairbandits.arms import AdaptiveAdversary, Gaussian
from gym_fairbandits.optimum import egalitarian_optimum, max_min_assignment
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

VECTORS = json.loads((Path(__file__).parent / "data" / "egal_optimum.json").read_text())


def assert_legal(counts: NDArray[np.int64], num_users: int, steps: int, capacity: int) -> None:
    assert counts.dtype == np.int64
    assert counts.shape[0] == num_users
    assert (counts >= 0).all()
    assert (counts.sum(axis=1) == steps).all()
    assert (counts.sum(axis=0) <= capacity * steps).all()


@pytest.mark.parametrize("case", VECTORS, ids=str)
def test_optima_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    best = max_min_assignment(case["mu"], case["U"], case["T"], case["C"])
    assert best.exact
    assert best.lower == best.upper == pytest.approx(case["opt_min_user"], rel=1e-12)
    assert_legal(best.counts, case["U"], case["T"], case["C"])
    totals = (best.counts * np.array(case["mu"])).sum(axis=1)
    assert totals.min() == best.lower


def legal_assignments(num_users: int, num_arms: int, capacity: int) -> NDArray[np.int64]:
    every = product(range(num_arms), repeat=num_users)
    return np.array([arms for arms in every if max(map(arms.count, arms)) <= capacity])


def best_by_enumeration(means: Floats, num_users: int, steps: int, capacity: int) -> float:
    """The best worst total of all sequences of assignments: the sets of totals, step by step."""
    rewards = means[legal_assignments(num_users, len(means), capacity)]
    totals = np.zeros((1, num_users))
    for _ in range(steps):
        totals = (totals[:, None] + rewards).reshape(-1, num_users)
        # Users are alike, and sums that differ by rounding are one.
        totals = np.unique(np.sort(totals, axis=1).round(12), axis=0)
    return float(totals.min(axis=1).max())


@pytest.mark.parametrize(
    ("num_users", "num_arms", "capacity", "steps"),
    [
        (1, 3, 1, 4),
        (2, 2, 1, 5),
        (2, 3, 1, 5),
        (2, 4, 1, 7),
        (3, 3, 1, 4),
        (3, 4, 1, 2),
        (3, 4, 1, 4),
        (4, 4, 1, 3),
        (2, 2, 2, 3),
        (3, 2, 2, 3),
        (3, 3, 2, 4),
        (4, 3, 2, 3),
    ],
)
def test_the_optimum_is_the_best_of_all_schedules(
    num_users: int, num_arms: int, capacity: int, steps: int
) -> None:
    rng = np.random.default_rng(num_users * steps)
    cases = [rng.random(num_arms) for _ in range(3)]
    cases += [rng.normal(size=num_arms), rng.integers(0, 3, size=num_arms) / 4]
    for means in cases:
        best = max_min_assignment(means, num_users, steps, capacity)
        enumerated = best_by_enumeration(means, num_users, steps, capacity)
        assert best.exact
        assert best.lower == best.upper == pytest.approx(enumerated, rel=1e-9, abs=1e-9)
        assert_legal(best.counts, num_users, steps, capacity)


def test_a_rotation_can_be_worse_than_the_optimum() -> None:
    best = max_min_assignment([1.0, 0.75, 0.5], 3, 2)
    assert (best.lower, best.exact) == (1.5, True)
    # Broken off after two steps it leaves a user with 0.5 + 0.75.
    env: Any = PolicyRegret(
        gym.make("EgalAssign-v0", instance=Gaussian([1.0, 0.75, 0.5], 0.0), num_users=3, horizon=2),
        benchmark="exact",
    )
    oracle = OracleRotation(env)
    observation, _ = env.reset(seed=0)
    for _ in range(2):
        observation, _, _, _, info = env.step(oracle.act(observation))
    assert info["expected_return"] == 1.25
    assert info["policy_regret"] == 0.25


@pytest.mark.parametrize(
    ("num_users", "num_arms", "steps", "capacity"),
    [(5, 9, 1000, 1), (256, 1024, 2**18, 1), (6, 4, 999, 2), (1, 500, 7, 1), (3, 3, 0, 1)],
)
def test_a_rotation_that_completes_is_exact_at_any_size(
    num_users: int, num_arms: int, steps: int, capacity: int
) -> None:
    means = np.random.default_rng(1).random(num_arms)
    best = max_min_assignment(means, num_users, steps, capacity)
    bound = egalitarian_optimum(means, num_users, steps, capacity)
    assert best.exact
    assert best.lower == best.upper == pytest.approx(bound, rel=1e-12)
    assert_legal(best.counts, num_users, steps, capacity)


@pytest.mark.parametrize(
    ("num_users", "num_arms", "steps", "capacity"),
    [(7, 30, 1003, 1), (256, 1024, 2**18 + 1, 1), (9, 40, 1001, 2), (20, 20, 33, 3)],
)
def test_beyond_small_sizes_there_are_bounds(
    num_users: int, num_arms: int, steps: int, capacity: int
) -> None:
    means = np.random.default_rng(2).random(num_arms)
    best = max_min_assignment(means, num_users, steps, capacity)
    bound = egalitarian_optimum(means, num_users, steps, capacity)
    ordered = np.repeat(np.sort(means)[::-1], capacity)
    assert not best.exact
    assert best.lower < best.upper <= bound
    assert best.lower >= bound - (1 - 1 / num_users) * (ordered[0] - ordered[num_users - 1])
    assert_legal(best.counts, num_users, steps, capacity)
    assert (best.counts * means).sum(axis=1).min() == best.lower


def test_arms_too_bad_to_matter_do_not_count_for_the_size() -> None:
    means = np.concatenate([[1.0, 0.75, 0.5], np.linspace(-9, -8, 500)])
    best = max_min_assignment(means, 3, 5)
    assert best.exact
    assert best.lower == max_min_assignment([1.0, 0.75, 0.5], 3, 5).lower
    assert not best.counts[:, 3:].any()


def test_shifted_and_scaled_means_have_shifted_and_scaled_optima() -> None:
    means = np.random.default_rng(6).random(4)
    plain = max_min_assignment(means, 3, 7)
    moved = max_min_assignment(100 + 1e-3 * means, 3, 7)
    assert plain.exact
    assert moved.exact
    assert (moved.lower - 700) * 1e3 == pytest.approx(plain.lower, rel=1e-8)


def edge_colours(counts: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Assignments of distinct arms that together make ``counts``, found by trying them out."""
    left = counts.copy()
    num_users, num_arms = counts.shape
    while left.any():
        # Arms that are due in every remaining step must be served.
        due = np.flatnonzero(left.sum(axis=0) == left.sum(axis=1)[0])
        for arms in permutations(range(num_arms), num_users):
            if all(left[range(num_users), arms] > 0) and set(due.tolist()) <= set(arms):
                left[range(num_users), arms] -= 1
                yield arms
                break
        else:
            raise AssertionError("the counts cannot be played")


def test_the_counts_can_be_played_and_leave_no_regret() -> None:
    means = [0.9, 0.7, 0.4, 0.3]
    for num_users, steps in ((2, 5), (3, 4), (3, 7), (4, 6)):
        best = max_min_assignment(means, num_users, steps)
        env: Any = PolicyRegret(
            gym.make(
                "EgalAssign-v0",
                instance=Gaussian(means, 1.0),
                num_users=num_users,
                horizon=steps,
            ),
            benchmark="exact",
        )
        env.reset(seed=0)
        played = list(edge_colours(best.counts))
        assert len(played) == steps
        for arms in played:
            info = env.step(np.array(arms))[-1]
        assert info["optimal_return"] == best.lower
        assert info["policy_regret"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.5, 0.25], 3, 4), ValueError, "`num_users` must be at most capacity * num_arms = 2"),
        (([0.5, 0.25], 0, 4), ValueError, "`num_users` must be at least 1, got 0"),
        (([0.5, 0.25], 2, 4, 0), ValueError, "`capacity` must be at least 1, got 0"),
        (([0.5, 0.25], 2, -1), ValueError, "`steps` must be at least 0, got -1"),
        (([0.5, 0.25], 2, 2.5), TypeError, "`steps` must be an integer, got 2.5"),
        (([0.5, np.nan], 2, 2), ValueError, "`means` must be finite, got nan at index 1"),
        (([[0.5, 0.25]], 2, 2), ValueError, "`means` must be a non-empty sequence of numbers"),
        ((["a"], 1, 2), TypeError, "`means` must be a non-empty sequence of numbers"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        max_min_assignment(*arguments)


# --- The benchmark of the wrappers ----------------------------------------------------------------


def random_episode(env: Any, seed: int) -> dict[str, Any]:
    agent = UniformRandom()
    agent.reset(seed=seed)
    observation, _ = env.reset(seed=seed)
    while True:
        observation, _, terminated, truncated, info = env.step(agent.act(observation))
        if terminated or truncated:
            return dict(info)


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
def test_benchmarks_differ_where_a_rotation_does_not_complete(objective: str) -> None:
    for horizon in (4, 5, 6):
        made: dict[str, Any] = {
            "instance": "bernoulli",
            "num_users": 3,
            "num_arms": 4,
            "objective": objective,
            "horizon": horizon,
        }
        paper = PolicyRegret(gym.make("EgalAssign-v0", **made), benchmark="paper")
        exact = PolicyRegret(gym.make("EgalAssign-v0", **made), benchmark="exact")
        first, second = random_episode(paper, 1), random_episode(exact, 1)
        means = exact.unwrapped.arms.means  # type: ignore[attr-defined]
        assert first["expected_return"] == second["expected_return"]
        if objective == "utilitarian" or horizon == 6:
            assert first["optimal_return"] == pytest.approx(second["optimal_return"], rel=1e-12)
        else:
            assert second["optimal_return"] == max_min_assignment(means, 3, horizon).lower
            assert second["optimal_return"] < first["optimal_return"]
        assert exact.regret() == second["policy_regret"] >= -1e-12


def test_benchmarks_are_the_same_for_improving_arms() -> None:
    infos = [
        random_episode(PolicyRegret(gym.make("ImprovingBandit-v0", horizon=30), benchmark=name), 4)
        for name in ("paper", "exact")
    ]
    assert infos[0] == infos[1]


def test_rows_of_a_batch_are_held_against_their_own_optimum() -> None:
    made: dict[str, Any] = {
        "instance": "gaussian",
        "num_users": 3,
        "num_arms": 4,
        "horizon": 5,
    }
    envs: Any = VectorPolicyRegret(
        gym.make_vec("EgalAssign-v0", num_envs=3, **made), benchmark="exact"
    )
    envs.reset(seed=8)
    actions = np.array([[0, 1, 2], [3, 2, 1], [1, 0, 3]])
    for _ in range(5):
        infos = envs.step(actions)[-1]
    for row in range(3):
        env: Any = PolicyRegret(gym.make("EgalAssign-v0", **made), benchmark="exact")
        env.reset(seed=8 + row)
        for _ in range(5):
            info = env.step(actions[row])[-1]
        assert infos["optimal_return"][row] == info["optimal_return"]
        assert infos["policy_regret"][row] == info["policy_regret"]


def test_what_is_not_known_exactly_is_an_error_and_not_a_number() -> None:
    env: Any = PolicyRegret(
        gym.make("EgalAssign-v0", num_users=7, num_arms=30, horizon=9), benchmark="exact"
    )
    env.reset(seed=0)
    for _ in range(8):
        env.step(np.arange(7))
    message = r"`exact_optimal_return` .* at sizes .* 7 users, 30 arms and 9 steps"
    with pytest.raises(ValueError, match=message):
        env.step(np.arange(7))
    assert env.unwrapped.optimal_return() > env.unwrapped.expected_return()
    varying: Any = PolicyRegret(
        gym.make("EgalAssign-v0", instance=AdaptiveAdversary(4), num_users=2, horizon=1),
        benchmark="exact",
    )
    varying.reset(seed=0)
    with pytest.raises(ValueError, match="with arms whose means do not vary"):
        varying.step(np.array([0, 1]))


def test_unknown_benchmarks_are_refused() -> None:
    message = re.escape("`benchmark` must be one of 'paper', 'exact', got 'best'")
    with pytest.raises(ValueError, match=message):
        PolicyRegret(gym.make("EgalAssign-v0"), benchmark="best")
    with pytest.raises(ValueError, match=message):
        VectorPolicyRegret(gym.make_vec("EgalAssign-v0"), benchmark="best")


def test_poorest_first_stays_as_close_as_the_theory_says() -> None:
    # T mu* / U - (1 - 1/U)(m_1 - m_U) <= lower, for every T and set of means.
    rng = np.random.default_rng(11)
    for num_users, num_arms in combinations(range(2, 6), 2):
        means = np.sort(rng.random(num_arms))[::-1]
        for steps in (1, num_users + 1, 2 * num_users - 1):
            best = max_min_assignment(means, num_users, steps)
            bound = float(egalitarian_optimum(means, num_users, steps))
            gap = (1 - 1 / num_users) * (means[0] - means[num_users - 1])
            assert bound - gap - 1e-12 <= best.lower <= best.upper <= bound + 1e-12
