"""Bounds from Kullback-Leibler divergences and draws from posteriors, without any bandit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers_names import Floats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.stats import beta, binomtest, kstest, norm

from gym_fairbandits.agents._kl import bernoulli_divergence, exploration_budget, kl_upper_bound
from gym_fairbandits.agents._posterior import bernoulli_coins, sample_beta, sample_gaussian


def one(value: float) -> Floats:
    return np.array([value])


def divergence(first: float, second: float) -> float:
    """Return kl(p, q) as it is printed, for p and q strictly between 0 and 1."""
    return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))


# --- Divergences --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0.5, 0.25, 0.5 * math.log(4 / 3)),
        (0.25, 0.5, 0.75 * math.log(3) - math.log(2)),
        (0.3, 0.3, 0.0),
        (0.0, 0.75, math.log(4)),
        (1.0, 0.125, math.log(8)),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
        (0.5, 1.0, math.inf),
        (0.5, 0.0, math.inf),
        (0.0, 1.0, math.inf),
    ],
)
def test_bernoulli_divergences(first: float, second: float, expected: float) -> None:
    assert bernoulli_divergence(one(first), one(second))[0] == pytest.approx(expected, rel=1e-14)


def test_a_tiny_divergence_keeps_its_digits() -> None:
    # kl(p, p + h) = h^2 / (2 p (1 - p)) to leading order; for p = 1/2 the next term is h^4.
    gap = 2.0**-20
    assert bernoulli_divergence(one(0.5), one(0.5 + gap))[0] == pytest.approx(2 * gap**2, rel=1e-9)


# --- Upper bounds -------------------------------------------------------------------------------


def test_upper_bounds_solve_the_equation_as_brentq_does() -> None:
    means = np.array([1e-6, 0.001, 0.1, 0.25, 0.5, 0.8, 0.99, 1 - 1e-6])
    budgets = np.array([1e-4, 0.003, 0.02, 0.1, 0.5, 1.0, 3.0, 8.0])
    grid = np.meshgrid(means, budgets)
    bounds = kl_upper_bound(grid[0], grid[1])
    for mean, budget, bound in zip(grid[0].flat, grid[1].flat, bounds.flat, strict=True):
        highest = 1 - 1e-16
        if divergence(mean, highest) < budget:
            assert bound == pytest.approx(1.0, abs=2e-15)
            continue
        root = brentq(lambda q: divergence(mean, q) - budget, mean, highest, xtol=1e-15)  # noqa: B023
        assert bound == pytest.approx(root, abs=1e-13)


@pytest.mark.parametrize("budget", [0.0, 1e-9, 0.01, 0.7, 5.0, 30.0])
def test_upper_bounds_of_arms_that_always_or_never_paid(budget: float) -> None:
    assert kl_upper_bound(one(0.0), one(budget))[0] == pytest.approx(
        -math.expm1(-budget), rel=1e-14
    )
    assert kl_upper_bound(one(1.0), one(budget)).tolist() == [1.0]


def test_upper_bounds_without_budget_and_with_any() -> None:
    means = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    assert_array_equal(kl_upper_bound(means, np.zeros(5)), means)
    assert_array_equal(kl_upper_bound(means, np.full(5, np.inf)), np.ones(5))
    assert_array_equal(kl_upper_bound(means, np.full(5, np.inf), "gaussian"), np.full(5, np.inf))


def test_tiny_budgets_give_the_bound_of_a_normal_law() -> None:
    means, budget = np.array([0.1, 0.5, 0.8]), 1e-12
    normal = means + np.sqrt(2 * means * (1 - means) * budget)
    assert_allclose(kl_upper_bound(means, np.full(3, budget)) - means, normal - means, rtol=1e-5)


def test_upper_bounds_rise_with_mean_and_budget_and_stay_below_those_of_pinsker() -> None:
    means, budgets = np.linspace(0.01, 0.9, 60), np.geomspace(1e-5, 3, 60)
    bounds = kl_upper_bound(np.tile(means, (60, 1)), np.repeat(budgets[:, None], 60, axis=1))
    assert (np.diff(bounds, axis=0) > 0).all()
    assert (np.diff(bounds, axis=1) > 0).all()
    assert (bounds <= means + np.sqrt(budgets / 2)[:, None] + 1e-15).all()


def test_an_upper_bound_does_not_depend_on_the_batch() -> None:
    rng = np.random.default_rng(0)
    means, budgets = rng.random((30, 7)), 10 ** rng.uniform(-7, 2, (30, 7))
    together = kl_upper_bound(means, budgets)
    for i, j in np.ndindex(30, 7):
        alone = kl_upper_bound(means[i : i + 1, j : j + 1], budgets[i : i + 1, j : j + 1])
        assert alone[0, 0] == together[i, j]


def test_means_beyond_the_ends_count_as_the_ends() -> None:
    outside = kl_upper_bound(np.array([-0.3, 1.2]), np.full(2, 0.4))
    assert_array_equal(outside, kl_upper_bound(np.array([0.0, 1.0]), np.full(2, 0.4)))


def test_gaussian_upper_bounds() -> None:
    bound = kl_upper_bound(np.array([0.5, -1.0]), np.array([2.0, 0.5]), "gaussian", sigma=3.0)
    assert_allclose(bound, [0.5 + 3 * 2, -1 + 3], rtol=1e-15)


def test_an_unknown_law_is_named() -> None:
    with pytest.raises(ValueError, match="`law` must be one of 'bernoulli', 'gaussian', got 'x'"):
        kl_upper_bound(one(0.5), one(0.5), "x")


def test_exploration_budgets() -> None:
    steps = np.array([0, 1, 2, 3, 100])
    assert_allclose(
        exploration_budget(steps, 0), [0, 0, math.log(2), math.log(3), math.log(100)], rtol=1e-15
    )
    # ln 2 + 3 ln ln 2 = -0.41: nothing is left.
    expected = [0, 0, 0, math.log(3) + 3 * math.log(math.log(3))]
    expected.append(math.log(100) + 3 * math.log(math.log(100)))
    assert_allclose(exploration_budget(steps, 3), expected, rtol=1e-14)


# --- Posteriors ---------------------------------------------------------------------------------


def generators(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng(seed + i) for i in range(count)]


def test_coins_keep_what_is_binary_and_clip_what_is_outside() -> None:
    rewards = np.array([[0.0, 1.0, -0.5, 1.5]] * 200)
    assert_array_equal(bernoulli_coins(generators(200), rewards), [[0, 1, 0, 1]] * 200)
    assert_array_equal(bernoulli_coins(generators(4), rewards[0]), [0, 1, 0, 1])


@pytest.mark.parametrize("reward", [0.1, 0.5, 0.85])
def test_coins_have_the_mean_of_the_reward(reward: float) -> None:
    coins = bernoulli_coins(generators(1), np.full((1, 5000), reward))
    assert set(np.unique(coins)) == {0.0, 1.0}
    assert binomtest(int(coins.sum()), 5000, reward).pvalue > 1e-3


def test_beta_draws_have_their_law() -> None:
    successes, failures = np.array([3.0, 0.0, 12.0]), np.array([1.0, 0.0, 30.0])
    drawn = sample_beta(
        generators(3000), np.tile(successes, (3000, 1)), np.tile(failures, (3000, 1))
    )
    for arm in range(3):
        law = beta(1 + successes[arm], 1 + failures[arm])
        assert kstest(drawn[:, arm], law.cdf).pvalue > 1e-3


def test_gaussian_draws_have_their_law_and_arms_not_pulled_come_first() -> None:
    means, pulls = np.array([0.4, -2.0, 9.0]), np.array([4, 25, 0])
    drawn = sample_gaussian(
        generators(3000), np.tile(means, (3000, 1)), np.tile(pulls, (3000, 1)), 1.5
    )
    assert (drawn[:, 2] == np.inf).all()
    for arm in range(2):
        law = norm(means[arm], 1.5 / math.sqrt(pulls[arm]))
        assert kstest(drawn[:, arm], law.cdf).pvalue > 1e-3


def test_rows_draw_from_their_own_generators() -> None:
    values, pulls = np.array([[0.3, 0.8]] * 3), np.array([[2, 5]] * 3)
    coins = bernoulli_coins(generators(3, 7), values)
    betas = sample_beta(generators(3, 7), values * 10, 10 - values * 10)
    normals = sample_gaussian(generators(3, 7), values, pulls, 1.0)
    for row in range(3):
        own, single = values[row : row + 1], pulls[row : row + 1]
        assert_array_equal(bernoulli_coins(generators(1, 7 + row), own), coins[row : row + 1])
        drawn = sample_beta(generators(1, 7 + row), own * 10, 10 - own * 10)
        assert_array_equal(drawn, betas[row : row + 1])
        drawn = sample_gaussian(generators(1, 7 + row), own, single, 1.0)
        assert_array_equal(drawn, normals[row : row + 1])
