"""Bandits for changing rewards against hand-worked values and plain histories."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import episode
from helpers_histories import (
    History,
    fewest_pulls_of_the_best,
    observed,
    repeated,
    rewards_of,
    tell,
    watched,
)
from helpers_names import IMPROVING
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import (
    UCB1,
    Agent,
    DiscountedUCB,
    Exp3,
    Rexp3,
    SlidingWindowThompson,
    SlidingWindowUCB,
)
from gym_fairbandits.agents.windowed import discounted_index
from gym_fairbandits.curves import Constant, Tabulated

# --- Windows ------------------------------------------------------------------------------------


def window_scores(history: History, window: int, xi: float, scale: float) -> list[float]:
    """Return SW-UCB's indices of four arms."""
    recent = history[-window:]
    scores = []
    for arm in range(4):
        paid = rewards_of(recent, arm)
        if not paid:
            scores.append(math.inf)
        else:
            width = scale * math.sqrt(xi * math.log(len(recent)) / len(paid))
            scores.append(sum(paid) / len(paid) + width)
    return scores


@pytest.mark.parametrize("window", [1, 2, 7, 16, 17, 33, 1000])
def test_sliding_window_ucb_follows_its_formula_over_whole_episodes(window: int) -> None:
    for histories, actions in watched(SlidingWindowUCB(window, xi=0.1, scale=0.8)):
        for history, action in zip(histories, actions.tolist(), strict=True):
            scores = window_scores(history, window, 0.1, 0.8)
            assert action == fewest_pulls_of_the_best(scores, history)


def test_sliding_window_ucb_by_hand() -> None:
    # Window 4, xi = 1: arm 0 paid 0.9 in 3 of the last 4 pulls, arm 1 paid 0.5 in one:
    # 0.9 + sqrt(ln 4 / 3) = 1.58 < 0.5 + sqrt(ln 4) = 1.68. Its earlier 0.0 is forgotten.
    history = [(1, 0.0), (1, 0.5), (0, 0.9), (0, 0.9), (0, 0.9)]
    assert tell(SlidingWindowUCB(4, xi=1.0), history, 2).tolist() == [1]
    # xi = 0.5: 1.38 > 1.33.
    assert tell(SlidingWindowUCB(4, xi=0.5), history, 2).tolist() == [0]
    # Window 3 does not hold arm 1.
    assert tell(SlidingWindowUCB(3, xi=0.0), history, 2).tolist() == [1]


@pytest.mark.parametrize("window", [1, 3, 16, 40])
def test_sliding_window_thompson_replays_from_a_plain_history(window: int) -> None:
    agent = SlidingWindowThompson(window)
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
            recent = tossed[-window:]
            won = np.array([sum(rewards_of(recent, arm)) for arm in range(4)])
            pulls = np.array([len(rewards_of(recent, arm)) for arm in range(4)])
            assert action == rng.beta(1 + won, 1 + pulls - won).argmax()


def test_a_huge_reward_leaves_no_rounding_behind() -> None:
    agent = SlidingWindowUCB(4, xi=0.0)
    history = [(1, 0.5), (0, 1e17), (0, 0.4), (0, 0.4), (0, 0.4), (1, 0.5), (0, 0.4), (1, 0.5)]
    tell(agent, [*history, (0, 0.4)], 2)  # the third turn has begun
    assert_allclose(agent._recent.sums, [[0.8, 1.0]], rtol=1e-15)
    assert_array_equal(agent._recent.counts, [[2, 2]])


# --- Discounts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 1.0])
def test_discounted_ucb_follows_its_formula_over_whole_episodes(discount: float) -> None:
    for histories, actions in watched(DiscountedUCB(discount, xi=0.05, scale=0.7)):
        for history, action in zip(histories, actions.tolist(), strict=True):
            weights, sums = [0.0] * 4, [0.0] * 4
            for age, (arm, reward) in enumerate(reversed(history)):
                weights[arm] += discount**age
                sums[arm] += discount**age * reward
            scores = []
            for weight, total in zip(weights, sums, strict=True):
                if weight == 0:
                    scores.append(math.inf)
                else:
                    log = max(0.0, math.log(math.fsum(weights)))
                    scores.append(total / weight + 1.4 * math.sqrt(0.05 * log / weight))
            assert action == fewest_pulls_of_the_best(scores, history)


def test_discounted_indices_by_hand() -> None:
    # N = (1.5, 0.5), their sum 2: 0.6 / 1.5 + 2 sqrt(0.6 ln 2 / 1.5); 0.1 / 0.5 + 2 sqrt(...).
    index = discounted_index(np.array([[0.6, 0.1, 0.0]]), np.array([[1.5, 0.5, 0.0]]), 0.6, 1.0)
    log = 0.6 * math.log(2)
    expected = [0.4 + 2 * math.sqrt(log / 1.5), 0.2 + 2 * math.sqrt(log / 0.5), math.inf]
    assert_allclose(index[0], expected, rtol=1e-14)


def test_an_arm_of_which_nothing_is_left_comes_first() -> None:
    history: History = [(1, 0.0), *[(0, 1.0)] * 400]
    agent = DiscountedUCB(0.1)
    assert tell(agent, history[:300], 2).tolist() == [1]  # its weight is 1e-299
    assert tell(agent, history, 2).tolist() == [1]  # 1e-400 is 0


# --- Parameters that follow from the horizon ----------------------------------------------------

# T = 100, K = 4. SW-UCB: 4 sqrt(100 ln 100) = 85.8. Rexp3: (4 ln 4)^(1/3) 50^(2/3) = 24.02.
TUNED: dict[str, tuple[Callable[..., Agent], dict[str, Any]]] = {
    "SlidingWindowUCB": (SlidingWindowUCB, {"window": 86}),
    "SlidingWindowThompson": (SlidingWindowThompson, {"window": 10}),
    "DiscountedUCB": (DiscountedUCB, {"discount": 0.975}),
    "Exp3": (Exp3, {"gamma": math.sqrt(4 * math.log(4) / ((math.e - 1) * 100))}),
    "Rexp3": (
        Rexp3,
        {"batch": 25, "gamma": math.sqrt(4 * math.log(4) / ((math.e - 1) * 25))},
    ),
}
tuned = pytest.mark.parametrize("name", TUNED)


def played(agent: Agent, **kwargs: Any) -> list[Any]:
    agent.reset(seed=2)
    env = gym.make(IMPROVING, num_arms=4, noise_std=0.1, **kwargs)
    return episode(env, agent, seed=1)[0]


@tuned
def test_defaults_follow_from_the_horizon_however_it_is_known(name: str) -> None:
    build, parameters = TUNED[name]
    expected = played(build(**parameters), horizon=100)
    assert played(build(horizon=100), horizon=100) == expected
    assert played(build(), horizon=100, horizon_known=True) == expected
    assert played(build(horizon=7), horizon=100, horizon_known=True) == expected
    assert played(build(**parameters, horizon=7), horizon=100) == expected
    assert played(build(**parameters), horizon=100, horizon_known=True) == expected


def test_windows_and_batches_are_rounded_up() -> None:
    for length, window in ((1, 1), (100, 10), (101, 11)):
        agent = SlidingWindowThompson(horizon=length)
        tell(agent, [], 4)
        assert agent._recent.sizes.tolist() == [window]
    alone = Rexp3(horizon=100)  # K ln K = 0
    tell(alone, [], 1)
    assert alone._batches.tolist() == [1]
    shortest = SlidingWindowUCB(horizon=1)  # ln 1 = 0
    tell(shortest, [], 4)
    assert shortest._recent.sizes.tolist() == [1]
    four = Rexp3(horizon=100, variation=0.25)  # (4 ln 4)^(1/3) 400^(2/3) = 96.1
    tell(four, [], 4)
    assert four._batches.tolist() == [97]


def test_rows_of_different_lengths_have_their_own_parameters() -> None:
    observation = repeated(observed([], 4), 2) | {"remaining": np.array([[100], [9]])}
    window, discount = SlidingWindowThompson(), DiscountedUCB()
    window.act(observation)
    discount.act(observation)
    assert window._recent.sizes.tolist() == [10, 3]
    assert_allclose(discount._discounts, [0.975, 1 - 1 / 12], rtol=1e-15)


@tuned
def test_without_a_horizon_they_say_so_and_go_on_when_they_know(name: str) -> None:
    build, _ = TUNED[name]
    agent = build()
    message = "`horizon` must be given where the observation does not tell what is `remaining`"
    with pytest.raises(ValueError, match=message):
        agent.act(observed([], 4))
    known = {"horizon": 100, "horizon_known": True}
    assert played(agent, **known) == played(build(), **known)


@tuned
def test_more_steps_than_the_horizon_are_refused(name: str) -> None:
    build, _ = TUNED[name]
    agent = build(horizon=2)
    history = [(0, 0.5), (1, 0.5)]
    tell(agent, history, 4)
    with pytest.raises(ValueError, match="`horizon` must be the number of steps of the episode"):
        agent.act(repeated(observed([*history, (2, 0.5)], 4), 1))


# --- What forgetting is good for ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "fewest", "most"),
    [
        (UCB1(c=0.1), 550, 700),  # until the mean of the spent arm has come down to 1/2
        (SlidingWindowUCB(100, xi=0.1), 300, 420),
        (DiscountedUCB(0.98, xi=0.025), 300, 420),
        (SlidingWindowThompson(100), 300, 420),
        (Rexp3(batch=100), 200, 500),
    ],
)
def test_agents_that_forget_leave_an_arm_that_pays_no_more(
    agent: Agent, fewest: int, most: int
) -> None:
    arms = [Tabulated((*[1.0] * 300, 0.0)), Constant(0.5)]
    env = gym.make(IMPROVING, instance=arms, validate=False, horizon=1000)
    agent.reset(seed=0)
    actions, _, _ = episode(env, agent, seed=0)
    assert fewest <= actions.count(0) <= most


# --- Episodes and rows --------------------------------------------------------------------------

STATEFUL: dict[str, Callable[[], Any]] = {
    "SlidingWindowUCB": lambda: SlidingWindowUCB(3),
    "SlidingWindowThompson": lambda: SlidingWindowThompson(3),
    "DiscountedUCB": lambda: DiscountedUCB(0.9),
    "Exp3": lambda: Exp3(0.1),
    "Rexp3": lambda: Rexp3(batch=3, gamma=0.1),
}
PAST: History = [(0, 0.5), (1, 0.9), (0, 0.2), (2, 0.4), (1, 0.1)]


def knowledge(agent: Agent) -> list[list[float]]:
    """Return what an agent knows, one list per row."""
    if isinstance(agent, SlidingWindowUCB | SlidingWindowThompson):
        recent = agent._recent
        parts = [recent.counts, recent.sums, recent.added[:, None]]
    elif isinstance(agent, DiscountedUCB):
        parts = [agent._weights, agent._sums]
    elif isinstance(agent, Rexp3):
        parts = [agent._log_weights, agent._learned[:, None]]
    else:
        assert isinstance(agent, Exp3)
        parts = [agent._log_weights]
    rows: list[list[float]] = np.concatenate(parts, axis=1).tolist()
    return rows


@pytest.mark.parametrize("name", STATEFUL)
def test_a_new_episode_is_begun_without_knowledge(name: str) -> None:
    agent = STATEFUL[name]()
    tell(agent, PAST, 3)
    assert any(knowledge(agent)[0])
    tell(agent, [], 3)
    assert not any(knowledge(agent)[0])


@pytest.mark.parametrize("name", STATEFUL)
def test_a_masked_reset_forgets_its_rows_only(name: str) -> None:
    agent = STATEFUL[name]()
    agent.reset(seed=0)
    tell(agent, PAST, 3, rows=2)
    kept = knowledge(agent)[1]
    agent.reset(mask=np.array([True, False]))
    agent.act(repeated(observed(PAST, 3), 2))
    assert not any(knowledge(agent)[0])
    assert knowledge(agent)[1] == kept


@pytest.mark.parametrize("name", STATEFUL)
def test_asked_again_an_agent_learns_nothing_twice(name: str) -> None:
    agent = STATEFUL[name]()
    agent.reset(seed=0)
    tell(agent, PAST, 3)
    known = knowledge(agent)
    for _ in range(3):
        agent.act(repeated(observed(PAST, 3), 1))
    assert knowledge(agent) == known


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: SlidingWindowUCB(0), ValueError, "`window` must be at least 1, got 0"),
        (lambda: SlidingWindowUCB(2.5), TypeError, "`window` must be an integer, got 2.5"),  # type: ignore[arg-type]
        (lambda: SlidingWindowUCB(xi=-1), ValueError, "`xi` must be at least 0, got -1"),
        (lambda: SlidingWindowUCB(scale=0), ValueError, "`scale` must be above 0, got 0"),
        (lambda: SlidingWindowUCB(horizon=0), ValueError, "`horizon` must be at least 1, got 0"),
        (lambda: SlidingWindowThompson(0), ValueError, "`window` must be at least 1, got 0"),
        (lambda: DiscountedUCB(0), ValueError, "`discount` must be above 0, got 0"),
        (lambda: DiscountedUCB(1.01), ValueError, "`discount` must be at most 1, got 1.01"),
        (lambda: DiscountedUCB(xi=math.nan), ValueError, "`xi` must be finite, got nan"),
        (lambda: DiscountedUCB(scale=-1), ValueError, "`scale` must be above 0, got -1"),
        (lambda: Exp3(0), ValueError, "`gamma` must be above 0, got 0"),
        (lambda: Exp3(1.5), ValueError, "`gamma` must be at most 1, got 1.5"),
        (lambda: Exp3(horizon=2.0), TypeError, "`horizon` must be an integer, got 2.0"),  # type: ignore[arg-type]
        (lambda: Rexp3(0), ValueError, "`variation` must be above 0, got 0"),
        (lambda: Rexp3(batch=0), ValueError, "`batch` must be at least 1, got 0"),
        (lambda: Rexp3(gamma=0), ValueError, "`gamma` must be above 0, got 0"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()
