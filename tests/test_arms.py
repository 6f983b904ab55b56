"""Reward laws, judged by hand from given draws."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_arms import Fading, every_law
from helpers_names import Floats
from numpy.typing import ArrayLike

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian, from_dict

JUST_BELOW_ONE = math.nextafter(1.0, 0.0)


def pay(law: Arms, arms: ArrayLike, draws: ArrayLike, step: int = 0) -> list[Any]:
    """What the users' arms pay when nothing was played before."""
    users = np.array(arms, dtype=np.int64)
    pulls = np.zeros((*users.shape[:-1], law.num_arms), dtype=np.int64)
    steps: Any = np.full(users.shape[:-1], step) if users.ndim > 1 else step
    rewards = law.rewards(users, np.array(draws, dtype=np.float64), steps, pulls)
    assert rewards.dtype == np.float64
    assert rewards.shape == users.shape
    listed: list[Any] = rewards.tolist()
    return listed


# --- Rewards by hand ------------------------------------------------------------------------------


def test_bernoulli_pays_one_where_the_draw_is_below_the_mean() -> None:
    law = Bernoulli([0.0, 0.25, 0.5, 1.0])
    assert law.noise == "random"
    assert law.means.tolist() == [0.0, 0.25, 0.5, 1.0]
    assert law.num_arms == 4
    assert pay(law, [1, 2, 1, 2], [0.2, 0.2, 0.3, 0.3]) == [1.0, 1.0, 0.0, 1.0]
    below = math.nextafter(0.25, 0.0)
    assert pay(law, [1, 1, 2], [0.25, below, 0.5]) == [0.0, 1.0, 0.0]
    # A mean of 0 never pays and a mean of 1 always does, whatever is drawn from [0, 1).
    assert pay(law, [0, 3, 0, 3], [0.0, 0.0, JUST_BELOW_ONE, JUST_BELOW_ONE]) == [0, 1, 0, 1]


def test_gaussian_pays_the_mean_plus_its_deviation_times_the_draw() -> None:
    law = Gaussian([0.25, -3.0, 0.0], [1.0, 0.5, 2.0])
    assert law.noise == "standard_normal"
    assert law.means.tolist() == [0.25, -3.0, 0.0]
    assert law.std.tolist() == [1.0, 0.5, 2.0]
    assert pay(law, [0, 1, 2], [0.5, -2.0, 0.25]) == [0.75, -4.0, 0.5]
    assert pay(law, [2, 0], [0.0, 0.0]) == [0.0, 0.25]
    assert Gaussian([0.5, 0.75]).std.tolist() == [1.0, 1.0]
    assert pay(Gaussian([0.5, 0.75], 0.25), [1, 0], [1.0, -1.0]) == [1.0, 0.25]


def test_gaussian_without_deviation_pays_its_means_whatever_is_drawn() -> None:
    law = Gaussian([0.1, 0.7, -0.3], 0.0)
    assert pay(law, [0, 1, 2, 1], [37.5, -8.0, 0.0, 1e300]) == [0.1, 0.7, -0.3, 0.7]
    env: Any = gym.make("EgalAssign-v0", instance=law, num_users=3, horizon=4)
    env.reset(seed=5)
    for action in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        rewards = env.step(action)[4]["user_rewards"]
        assert rewards.tolist() == law.means[action].tolist()


def test_empirical_pays_the_sample_at_the_draws_place() -> None:
    law = Empirical([[10.0, 20.0, 30.0, 40.0], [7.0], [-1.0, 1.0]])
    assert law.noise == "random"
    assert law.means.tolist() == [25.0, 7.0, 0.0]
    assert pay(law, [0, 0, 0, 0], [0.0, 0.25, 0.5, 0.75]) == [10.0, 20.0, 30.0, 40.0]
    assert pay(law, [0, 0], [math.nextafter(0.25, 0), math.nextafter(0.5, 0)]) == [10.0, 20.0]
    assert pay(law, [1, 2, 2, 1], [0.9, 0.49, 0.5, 0.0]) == [7.0, -1.0, 1.0, 7.0]


def test_empirical_pays_its_last_sample_for_a_draw_just_below_one() -> None:
    sizes = [1, 2, 3, 5, 7, 10, 49, 1000, 65_537]
    law = Empirical([np.arange(size) for size in sizes])
    arms = list(range(len(sizes)))
    assert pay(law, arms, [JUST_BELOW_ONE] * len(sizes)) == [size - 1 for size in sizes]
    assert pay(law, arms, [0.0] * len(sizes)) == [0] * len(sizes)


def test_empirical_gives_every_sample_the_same_share_of_the_draws() -> None:
    law = Empirical([list(range(8)), list(range(5))])
    draws = (np.arange(4000) + 0.5) / 4000
    for arm, size in enumerate((8, 5)):
        paid = np.array(pay(law, [arm] * 4000, draws))
        assert np.bincount(paid.astype(np.int64)).tolist() == [4000 // size] * size


def test_means_are_exact_expectations() -> None:
    samples = [[0.1, 0.2, 0.4], [1e9, -1e9, 0.5], [3.0]]
    law = Empirical(samples)
    exact = [float(sum(map(Fraction, row)) / len(row)) for row in samples]
    assert law.means.tolist() == pytest.approx(exact, rel=1e-12, abs=1e-7)
    grid = (np.arange(1000) + 0.5) / 1000
    bernoulli = Bernoulli([0.125, 0.5])
    for arm in (0, 1):
        assert np.mean(pay(bernoulli, [arm] * 1000, grid)) == bernoulli.means[arm]


# --- Batch axes, and no state ---------------------------------------------------------------------


def draws_for(law: Arms, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.random(shape) if law.noise == "random" else rng.standard_normal(shape)


@every_law
@pytest.mark.parametrize("lead", [(6,), (1,), (2, 3)])
def test_leading_axes_run_over_environments(law: Arms, lead: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(4, size=(*lead, 3))
    draws = draws_for(law, rng, (*lead, 3))
    steps = rng.integers(100, size=lead)
    pulls = rng.integers(100, size=(*lead, 4))
    together = law.rewards(arms, draws, steps, pulls)
    assert together.shape == (*lead, 3)
    for place in np.ndindex(*lead):
        alone = law.rewards(arms[place], draws[place], int(steps[place]), pulls[place])
        assert together[place].tolist() == alone.tolist()


@every_law
def test_a_law_holds_no_random_state_and_changes_nothing(law: Arms) -> None:
    rng = np.random.default_rng(1)
    arms = rng.integers(4, size=(5, 3))
    draws, pulls = draws_for(law, rng, (5, 3)), rng.integers(9, size=(5, 4))
    steps = np.arange(5)
    given = [arms, draws, steps, pulls]
    before, form = copy.deepcopy(given), law.to_dict()
    first = law.rewards(arms, draws, steps, pulls)
    values = first.tolist()
    again = law.rewards(arms, draws, steps, pulls)
    other = pickle.loads(pickle.dumps(law)).rewards(arms, draws, steps, pulls)
    assert values == again.tolist() == other.tolist()
    assert not any(np.shares_memory(first, array) for array in [*given, law.means, again])
    first[:] = -99.0
    assert law.rewards(arms, draws, steps, pulls).tolist() == values
    for old, new in zip(before, given, strict=True):
        np.testing.assert_array_equal(old, new)
    assert law.to_dict() == form


def test_steps_and_pulls_reach_a_law_that_changes_with_them() -> None:
    law = Fading([0.5, 0.25])
    arms, draws = np.array([1, 0]), np.array([0.125, 0.25])
    assert law.rewards(arms, draws, 8, np.array([16, 32])).tolist() == [
        0.25 + 0.125 - 8 / 64 - 32 / 1024,
        0.5 + 0.25 - 8 / 64 - 16 / 1024,
    ]
    env: Any = gym.make("EgalAssign-v0", instance=law, num_users=1, horizon=3)
    env.reset(seed=3)
    draw = np.random.default_rng(3).random(2)
    assert env.step([1])[1] == pytest.approx(0.25 + draw[0])
    assert env.step([1])[1] == pytest.approx(0.25 + draw[1] - 1 / 64 - 1 / 1024)


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [Bernoulli, Gaussian])
@pytest.mark.parametrize(
    ("means", "rule"),
    [
        ([], "`means` must be a non-empty sequence of numbers, got []"),
        (0.5, "`means` must be a non-empty sequence of numbers, got 0.5"),
        ([[0.5, 0.5]], "`means` must be a non-empty sequence of numbers, got [[0.5, 0.5]]"),
        (["a"], "`means` must be a non-empty sequence of numbers, got ['a']"),
        ([0.5, [0.5]], "`means` must be a non-empty sequence of numbers, got [0.5, [0.5]]"),
        ([0.5, math.nan], "`means` must be finite, got nan at index 1"),
        ([math.inf, 0.5], "`means` must be finite, got inf at index 0"),
    ],
)
def test_means_must_be_a_row_of_finite_numbers(law: Any, means: Any, rule: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(rule)):
        law(means)


@pytest.mark.parametrize("means", [[0.5, 1.0000001], [-0.0000001, 0.5], [0.5, 7]])
def test_bernoulli_means_must_be_probabilities(means: list[float]) -> None:
    with pytest.raises(ValueError, match=r"`means` must lie in \[0, 1\], got \["):
        Bernoulli(means)
    assert Gaussian(means).means.tolist() == means


@pytest.mark.parametrize(
    ("std", "rule"),
    [
        (-0.5, "`std` must be at least 0, got -0.5"),
        (math.nan, "`std` must be finite, got nan"),
        (math.inf, "`std` must be finite, got inf"),
        ([1.0, -1.0], "`std` must be at least 0, got [1.0, -1.0]"),
        ([1.0, math.nan], "`std` must be finite, got nan at index 1"),
        ([1.0], "`std` must be one number or one per arm, got 1 numbers for 2 arms"),
        ([1.0] * 3, "`std` must be one number or one per arm, got 3 numbers for 2 arms"),
        ([[1.0, 1.0]], "`std` must be a non-empty sequence of numbers, got [[1.0, 1.0]]"),
        ([], "`std` must be a non-empty sequence of numbers, got []"),
        ("a", "`std` must be"),
        ([1.0, [1.0]], "`std` must be"),
    ],
)
def test_deviations_must_be_one_number_or_one_per_arm(std: Any, rule: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(rule)):
        Gaussian([0.5, 0.25], std)


@pytest.mark.parametrize(
    ("samples", "rule"),
    [
        ([], "`samples` must hold at least one arm, got none"),
        ([[1.0], []], "`samples[1]` must be a non-empty sequence of numbers, got []"),
        ([1.0, 2.0], "`samples[0]` must be a non-empty sequence of numbers, got 1.0"),
        ([[1.0], [[2.0]]], "`samples[1]` must be a non-empty sequence of numbers, got [[2.0]]"),
        ([[1.0], ["a"]], "`samples[1]` must be a non-empty sequence of numbers, got ['a']"),
        ([[1.0], [2.0], [math.nan]], "`samples[2]` must be finite, got nan at index 0"),
        ([[-math.inf]], "`samples[0]` must be finite, got -inf at index 0"),
        (5, "`samples` must be"),
    ],
)
def test_samples_must_be_a_row_of_finite_numbers_for_each_arm(samples: Any, rule: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(rule)):
        Empirical(samples)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"family": "poisson"}, ValueError, "`family` must be one of ['adaptive_adversary',"),
        ({"family": "poisson"}, ValueError, "got 'poisson'"),
        ({"means": [0.5]}, ValueError, "got None"),
        ([0.5], TypeError, "the dict form of arms must be a mapping, got [0.5]"),
        ({"family": "bernoulli", "mean": [0.5]}, TypeError, "mean"),
        ({"family": "gaussian", "std": 1.0}, TypeError, "means"),
        ({"family": "bernoulli", "means": [2.0]}, ValueError, "`means` must lie in [0, 1]"),
    ],
)
def test_wrong_dict_forms_are_refused(data: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        from_dict(data)


# --- Dict forms, equality, copies -----------------------------------------------------------------


@every_law
def test_dict_forms_survive_json_pickle_and_copies(law: Arms) -> None:
    data = law.to_dict()
    assert data["family"] == law.family
    for other in (
        from_dict(json.loads(json.dumps(data))),
        pickle.loads(pickle.dumps(law)),
        copy.deepcopy(law),
    ):
        assert type(other) is type(law)
        assert other == law
        assert other.to_dict() == data
        assert other.means.tolist() == law.means.tolist()
        assert pay(other, [0, 1, 2, 3], [0.3, 0.1, 0.7, 0.9]) == pay(
            law, [0, 1, 2, 3], [0.3, 0.1, 0.7, 0.9]
        )


def test_the_dict_forms_are_those_that_the_design_names() -> None:
    assert Bernoulli((0.25, 0.5)).to_dict() == {"family": "bernoulli", "means": [0.25, 0.5]}
    assert Gaussian(np.array([0.25, 2.0]), 0.5).to_dict() == {
        "family": "gaussian",
        "means": [0.25, 2.0],
        "std": [0.5, 0.5],
    }
    assert from_dict({"family": "gaussian", "means": [1.0, 2.0]}) == Gaussian([1.0, 2.0], 1.0)
    samples = [[1.0, 2.0], [3.0]]
    assert Empirical(samples).to_dict() == {"family": "empirical", "samples": samples}
    given = {"family": "empirical", "samples": [[1, 2], [3]]}
    assert from_dict(given) == Empirical(samples)
    assert given == {"family": "empirical", "samples": [[1, 2], [3]]}
    assert repr(Bernoulli([0.25])) == "Bernoulli(means=[0.25])"


def test_laws_are_equal_if_kind_and_parameters_are() -> None:
    assert Gaussian([0.5, 0.25], 1.0) == Gaussian((0.5, 0.25), [1.0, 1.0])
    assert Gaussian([0.5, 0.25], 1.0) != Gaussian([0.5, 0.25], [1.0, 0.5])
    assert Bernoulli([0.5]) != Bernoulli([0.25])
    assert Bernoulli([0.5]) != Bernoulli([0.5, 0.5])
    assert Bernoulli([0.5]) != Fading([0.5])
    assert Bernoulli([0.5]) != {"family": "bernoulli", "means": [0.5]}
    # Same means, other samples; same samples, otherwise divided among the arms.
    assert Empirical([[1, 3]]) != Empirical([[2, 2]])
    assert Empirical([[1, 3], [2]]) != Empirical([[1], [3, 2]])
    assert Empirical([[1, 3], [2]]) == Empirical([np.array([1.0, 3.0]), (2,)])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bernoulli([0.5]))


def test_laws_are_copies_of_what_they_were_given() -> None:
    means, std = np.array([0.25, 0.5]), np.array([1.0, 2.0])
    samples: Any = np.array([[1.0], [2.0]])
    bernoulli, gaussian, empirical = Bernoulli(means), Gaussian(means, std), Empirical(samples)
    for array in (means, std, samples):
        array[:] = 9.0
    assert bernoulli == Bernoulli([0.25, 0.5])
    assert gaussian == Gaussian([0.25, 0.5], [1.0, 2.0])
    assert empirical == Empirical([[1.0], [2.0]])
    bernoulli.to_dict()["means"][0] = 7.0
    empirical.to_dict()["samples"][0][0] = 7.0
    assert bernoulli == Bernoulli([0.25, 0.5])
    assert pay(empirical, [0], [0.5]) == [1.0]
