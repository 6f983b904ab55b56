"""Classic bandits against hand-worked choices, plain histories and exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_histories import (
    History,
    fewest_pulls_of_the_best,
    observed,
    repeated,
    rewards_of,
    tell,
    watched,
)
from helpers_names import IMPROVING, Ints
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta, chisquare, norm

from gym_fairbandits.agents import (
    KLUCB,
    UCB1,
    Agent,
    DiscountedUCB,
    EpsilonGreedy,
    Exp3,
    Rexp3,
    SlidingWindowThompson,
    SlidingWindowUCB,
    ThompsonSampling,
)
from gym_fairbandits.agents._kl import bernoulli_divergence
from gym_fairbandits.curves import Constant
from gym_fairbandits.wrappers.vector import PolicyRegret

INDICES: dict[str, Callable[[], Agent]] = {
    "UCB1": UCB1,
    "KLUCB": KLUCB,
    "KLUCB-gaussian": lambda: KLUCB("gaussian"),
    "EpsilonGreedy-0": lambda: EpsilonGreedy(0.0),
}


def fits(actions: Ints, probabilities: Any) -> bool:
    """Return whether actions are distributed so, by a chi-square test."""
    counts = np.bincount(actions, minlength=len(probabilities))
    return bool(chisquare(counts, np.asarray(probabilities) * len(actions)).pvalue > 1e-3)


# --- Indices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INDICES)
def test_every_arm_is_pulled_once_first_whatever_it_pays(name: str) -> None:
    agent = INDICES[name]()
    history: History = []
    for arm in range(4):
        assert agent.act(observed(history, 4)) == arm
        history.append((arm, 1.0 if arm == 0 else 0.0))


@pytest.mark.parametrize("name", INDICES)
def test_equal_scores_go_to_the_fewest_pulls_then_the_lowest_index(name: str) -> None:
    # Arms of equal means: the bonus, if any, prefers fewer pulls anyway.
    history = [(arm, 0.5) for arm in (0, 0, 1, 2, 2, 3)]
    assert INDICES[name]().act(observed(history, 4)) == 1


@pytest.mark.parametrize(("c", "arm"), [(2.0, 1), (0.1, 0)])
def test_ucb1_by_hand(c: float, arm: int) -> None:
    # t = 5. c = 2: 0.8 + sqrt(2 ln 5 / 4) = 1.70 < 0.5 + sqrt(2 ln 5) = 2.29.
    # c = 0.1: 0.8 + 0.20 > 0.5 + 0.40.
    history = [(0, 0.8)] * 4 + [(1, 0.5)]
    assert UCB1(c).act(observed(history, 2)) == arm


def test_kl_ucb_by_hand() -> None:
    # After 5 pulls the budget is ln 6. An arm that paid nothing in one pull: q = 5 / 6. One that
    # paid 0.9 in each of four: kl(0.9, q) = ln 6 / 4 at q = 1 - 4.4e-4. Under the Gaussian
    # law: sqrt(2 ln 6) = 1.89 > 0.9 + sqrt(2 ln 6 / 4) = 1.85.
    history = [(0, 0.9)] * 4 + [(1, 0.0)]
    assert KLUCB().act(observed(history, 2)) == 0
    assert KLUCB("gaussian", sigma=1.0).act(observed(history, 2)) == 1
    # Half the deviation halves both bonuses: 0.95 < 0.9 + 0.47.
    assert KLUCB("gaussian").act(observed(history, 2)) == 0


def test_kl_ucb_explores_more_with_a_larger_constant() -> None:
    history = [(0, 0.5)] * 20 + [(1, 0.3)] * 8
    # ln 29 = 3.37; + 3 ln ln 29 = 7.01. Bounds: 0.767 and 0.739; 0.855 and 0.873.
    assert KLUCB(c=0).act(observed(history, 2)) == 0
    assert KLUCB(c=3).act(observed(history, 2)) == 1


def exact_kl_bound(rewards: list[float], budget: float) -> float:
    """Return KL-UCB's index of an arm by a root finder."""
    mean = min(max(sum(rewards) / len(rewards), 0.0), 1.0)
    if mean == 1.0:
        return 1.0

    def excess(q: float) -> float:
        return float(bernoulli_divergence(np.array(mean), np.array(q))) * len(rewards) - budget

    if excess(1 - 1e-15) <= 0:
        return 1.0
    return float(brentq(excess, mean, 1 - 1e-15, xtol=1e-15))


def test_ucb1_follows_its_formula_over_whole_episodes() -> None:
    for histories, actions in watched(UCB1()):
        for history, action in zip(histories, actions.tolist(), strict=True):
            scores = []
            for arm in range(4):
                paid = rewards_of(history, arm)
                bonus = math.sqrt(2 * math.log(len(history)) / len(paid)) if paid else math.inf
                scores.append(sum(paid) / len(paid) + bonus if paid else math.inf)
            assert action == fewest_pulls_of_the_best(scores, history)


@pytest.mark.parametrize("c", [0.0, 3.0])
@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
def test_kl_ucb_follows_its_formula_over_whole_episodes(law: str, c: float) -> None:
    for histories, actions in watched(KLUCB(law, c, sigma=0.4), horizon=60):
        for history, action in zip(histories, actions.tolist(), strict=True):
            log = math.log(len(history) + 1)
            budget = max(0.0, log + (c * math.log(log) if log else 0.0))
            scores = []
            for arm in range(4):
                paid = rewards_of(history, arm)
                if not paid:
                    scores.append(math.inf)
                elif law == "bernoulli":
                    scores.append(exact_kl_bound(paid, budget))
                else:
                    width = 0.4 * math.sqrt(2 * budget / len(paid))
                    scores.append(sum(paid) / len(paid) + width)
            assert action == fewest_pulls_of_the_best(scores, history)


# --- Epsilon-greedy -----------------------------------------------------------------------------


def test_decaying_exploration_by_hand() -> None:
    # 5 * 4 / (0.5^2 t) = 80 / t.
    agent = EpsilonGreedy(c=5, gap=0.5)
    steps = np.array([1, 80, 100, 160, 8000])
    assert_allclose(agent.exploration(steps, 4), [1, 1, 0.8, 0.5, 0.01], rtol=1e-14)
    assert_array_equal(EpsilonGreedy().exploration(steps, 4), np.full(5, 0.1))


@pytest.mark.parametrize(
    ("agent", "epsilon"),
    [
        (EpsilonGreedy(), 0.1),
        (EpsilonGreedy(0.3), 0.3),
        (EpsilonGreedy(0.0), 0.0),
        (EpsilonGreedy(1.0), 1.0),
        (EpsilonGreedy(c=0.25, gap=0.5), 0.6),  # 0.25 * 3 / 0.25 / 5 at step 5
    ],
)
def test_epsilon_greedy_explores_as_often_as_it_says(agent: Agent, epsilon: float) -> None:
    observation = repeated(observed([(0, 0.2), (1, 0.9), (1, 0.3), (2, 0.4)], 3), 6000)
    agent.reset(seed=0)
    actions = agent.act(observation)
    if epsilon == 0:
        assert set(actions.tolist()) == {1}
    else:
        assert fits(actions, [epsilon / 3, 1 - epsilon * 2 / 3, epsilon / 3])


# --- Thompson sampling --------------------------------------------------------------------------


def chance_of_the_highest(laws: list[Any], low: float, high: float) -> list[float]:
    """Return the probability that each of independent draws is the highest, by quadrature."""
    chances = []
    for arm, law in enumerate(laws):
        others = laws[:arm] + laws[arm + 1 :]
        chance, _ = quad(
            lambda x: law.pdf(x) * math.prod(other.cdf(x) for other in others),  # noqa: B023
            low,
            high,
            limit=200,
        )
        chances.append(chance)
    assert sum(chances) == pytest.approx(1, abs=1e-6)
    return chances


BINARY = [(0, 1.0), (1, 0.0), (2, 1.0), (0, 0.0), (2, 1.0), (0, 1.0), (1, 1.0), (2, 0.0)]


def test_thompson_pulls_an_arm_as_often_as_it_is_likely_to_be_the_best() -> None:
    agent = ThompsonSampling()
    agent.reset(seed=0)
    laws = [beta(1 + 2, 1 + 1), beta(1 + 1, 1 + 1), beta(1 + 2, 1 + 1)]
    assert fits(tell(agent, BINARY, 3, rows=4000), chance_of_the_highest(laws, 0, 1))


def test_thompson_makes_coins_of_rewards() -> None:
    # One pull each: arm 0 paid 0.7, arm 1 paid 0. With probability 0.7 arm 0 has had a success.
    agent = ThompsonSampling()
    agent.reset(seed=0)
    failed = chance_of_the_highest([beta(1, 2), beta(1, 2)], 0, 1)[0]
    won = chance_of_the_highest([beta(2, 1), beta(1, 2)], 0, 1)[0]
    chance = 0.7 * won + 0.3 * failed
    assert fits(tell(agent, [(0, 0.7), (1, 0.0)], 2, rows=4000), [chance, 1 - chance])


def test_a_reward_is_tossed_for_once() -> None:
    # Asked again and again, the agent keeps what came out: in each row one of two posteriors.
    agent = ThompsonSampling()
    agent.reset(seed=0)
    tell(agent, [(0, 0.5)], 2, rows=300)
    tossed = agent._sums.copy()
    assert set(tossed[:, 0].tolist()) == {0.0, 1.0}
    for _ in range(3):
        agent.act(repeated(observed([(0, 0.5)], 2), 300))
    assert_array_equal(agent._sums, tossed)


def test_gaussian_thompson_pulls_an_arm_as_often_as_it_is_likely_to_be_the_best() -> None:
    history = [(0, 0.3), (1, 0.8), (1, 0.4), (2, 0.5), (2, 0.9), (2, 0.4), (0, 0.4)]
    agent = ThompsonSampling("gaussian", sigma=0.6)
    agent.reset(seed=0)
    laws = [norm(0.35, 0.6 / 2**0.5), norm(0.6, 0.6 / 2**0.5), norm(0.6, 0.6 / 3**0.5)]
    assert fits(tell(agent, history, 3, rows=4000), chance_of_the_highest(laws, -5, 5))


def test_gaussian_thompson_pulls_every_arm_once_first() -> None:
    agent = ThompsonSampling("gaussian")
    for arm in range(3):
        assert tell(agent, [(pulled, 9.0) for pulled in range(arm)], 3).tolist() == [arm]


def test_thompson_replays_from_the_same_numbers_and_a_plain_history() -> None:
    agent = ThompsonSampling()
    agent.reset(seed=40)
    own = [np.random.default_rng(40 + row) for row in range(3)]
    tosses: list[History] = [[], [], []]
    for histories, actions in watched(agent, horizon=80):
        for rng, history, tossed, action in zip(
            own, histories, tosses, actions.tolist(), strict=True
        ):
            if history:
                arm, reward = history[-1]
                tossed.append((arm, float(rng.random() < reward)))
            won = np.array([sum(rewards_of(tossed, arm)) for arm in range(4)])
            pulls = np.array([len(rewards_of(tossed, arm)) for arm in range(4)])
            assert action == rng.beta(1 + won, 1 + pulls - won).argmax()


def test_thompson_starts_every_episode_without_knowledge() -> None:
    agent = ThompsonSampling()
    tell(agent, BINARY, 3)
    tell(agent, [], 3)
    assert not agent._counts.any()
    assert not agent._sums.any()


# --- Learning -----------------------------------------------------------------------------------

# External regret (on arms that do not change it is policy regret) over that of uniform play.
LEARNERS: dict[str, tuple[Callable[[], Agent], float]] = {
    "UCB1": (UCB1, 0.2),
    "KLUCB": (KLUCB, 0.1),
    "KLUCB-gaussian": (lambda: KLUCB("gaussian", sigma=0.3), 0.05),
    "EpsilonGreedy": (EpsilonGreedy, 0.2),
    "EpsilonGreedy-decaying": (lambda: EpsilonGreedy(c=1, gap=0.3), 0.2),
    "ThompsonSampling": (ThompsonSampling, 0.1),
    "ThompsonSampling-gaussian": (lambda: ThompsonSampling("gaussian", 0.3), 0.05),
    "Exp3": (Exp3, 0.35),
    "Rexp3": (Rexp3, 0.75),
    "SlidingWindowUCB": (SlidingWindowUCB, 0.2),
    "SlidingWindowThompson": (SlidingWindowThompson, 0.4),
    "DiscountedUCB": (DiscountedUCB, 0.5),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_agents_find_the_best_of_arms_that_do_not_change(name: str) -> None:
    build, share = LEARNERS[name]
    arms, steps = [Constant(0.2), Constant(0.8), Constant(0.5)], 1200
    envs = PolicyRegret(
        gym.make_vec(
            IMPROVING,
            num_envs=12,
            instance=arms,
            noise_std=0.3,
            horizon=steps,
            horizon_known=True,
            autoreset_mode="Disabled",
        )
    )
    agent = build()
    agent.reset(seed=0)
    observation, _ = envs.reset(seed=0)
    for _ in range(steps):
        observation, _, _, _, infos = envs.step(agent.act(observation))
    uniform = 0.3 * steps
    assert infos["policy_regret"].mean() < share * uniform
    assert (observation["pulls"].argmax(axis=1) == 1).all()


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: UCB1(-0.1), ValueError, "`c` must be at least 0, got -0.1"),
        (lambda: UCB1(math.nan), ValueError, "`c` must be finite, got nan"),
        (lambda: KLUCB(c="3"), TypeError, "`c` must be a real number, got '3'"),  # type: ignore[arg-type]
        (lambda: KLUCB(c=-1), ValueError, "`c` must be at least 0, got -1"),
        (lambda: KLUCB("beta"), ValueError, "`law` must be one of 'bernoulli', 'gaussian'"),
        (lambda: KLUCB(sigma=0), ValueError, "`sigma` must be above 0, got 0"),
        (lambda: EpsilonGreedy(1.1), ValueError, "`epsilon` must be at most 1, got 1.1"),
        (lambda: EpsilonGreedy(-0.1), ValueError, "`epsilon` must be at least 0, got -0.1"),
        (lambda: EpsilonGreedy(c=5), ValueError, "`epsilon` must be given alone, or `c` and `gap`"),
        (lambda: EpsilonGreedy(gap=0.1), ValueError, "`epsilon` must be given alone, or `c` and"),
        (lambda: EpsilonGreedy(0.1, 5, 0.1), ValueError, "got epsilon=0.1, c=5, gap=0.1"),
        (lambda: EpsilonGreedy(c=0, gap=0.1), ValueError, "`c` must be above 0, got 0"),
        (lambda: EpsilonGreedy(c=5, gap=2), ValueError, "`gap` must be at most 1, got 2"),
        (lambda: ThompsonSampling("x"), ValueError, "`law` must be one of 'beta', 'gaussian'"),
        (lambda: ThompsonSampling(sigma=-1), ValueError, "`sigma` must be above 0, got -1"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()
