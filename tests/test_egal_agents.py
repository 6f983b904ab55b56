"""Agents for egalitarian assignment: indices, draws and episodes by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import FirstPullOfArmZeroPaysNothing, Observation, fixed
from helpers_egal import ROTATING, SHARING, played
from helpers_names import EGAL, Floats, Ints
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, binom, binomtest, chisquare, norm

from gym_fairbandits.agents import (
    Agent,
    CombinatorialUCB,
    EgalKLUCB,
    EgalMOSS,
    EgalThompson,
    EgalUCB,
    ExploreThenCommit,
    GreedyRotation,
    IndexRotation,
    PhasedElimination,
    PoorestFirst,
)
from gym_fairbandits.arms import Bernoulli


def seen(
    pulls: Sequence[int], reward_sum: Sequence[float], users: Sequence[float], copies: int = 1
) -> Observation:
    """Return a batch of equal observations."""
    one = {
        "pulls": np.array(pulls, dtype=np.int64),
        "reward_sum": np.array(reward_sum, dtype=np.float64),
        "user_reward_sum": np.array(users, dtype=np.float64),
    }
    return {name: np.repeat(values[None], copies, axis=0) for name, values in one.items()}


def index(agent: IndexRotation, observation: Observation) -> Floats:
    """Return the index of a batch of one, at the beginning of a block."""
    users = observation["user_reward_sum"].shape[1]
    count = users // agent.capacity
    steps = observation["pulls"].sum(axis=1) // count
    values: Floats = agent._index(observation, steps, np.array([0]), count)[0]
    return values


# --- Indices by hand ------------------------------------------------------------------------------


def test_the_moss_index_by_hand() -> None:
    # T U / (K n) = 128 / (2 n): 4 for n = 16, 32 for n = 2, at most 1 from n = 64.
    agent = EgalMOSS(horizon=128)
    few = index(agent, seen([16, 2], [8.0, 0.5], [8.5]))
    assert_allclose(few, [0.5 + math.sqrt(math.log(4) / 16), 0.25 + math.sqrt(math.log(32) / 2)])
    assert index(agent, seen([64, 0], [16.0, 0.0], [16.0])).tolist() == [0.25, math.inf]
    assert index(agent, seen([100, 28], [25.0, 28.0], [53.0]))[0] == 0.25


def test_the_moss_index_counts_all_plays_and_scales_with_the_noise() -> None:
    # Four users, 2 per arm: T U / (C K n) = 128 * 2 / (4 n), 4 for n = 16.
    agent = EgalMOSS(horizon=128, sigma=1.0, capacity=2)
    values = index(agent, seen([16, 16, 0, 0], [8.0, 4.0, 0, 0], [6.0] * 4))
    bonus = 2 * math.sqrt(math.log(4) / 16)
    assert_allclose(values, [0.5 + bonus, 0.25 + bonus, math.inf, math.inf])


def test_the_bernoulli_kl_index_by_hand() -> None:
    # t = 16, ln t = n kl(mean, q): 0 of 2 gives (1 - q)^2 = 1 / 16; 2 of 4 gives
    # (4 q (1 - q))^2 = 1 / 16^1; 10 of 10 gives 1.
    values = index(EgalKLUCB(), seen([2, 4, 10, 0], [0.0, 2.0, 10.0, 0.0], [12.0]))
    assert_allclose(values, [0.75, (1 + math.sqrt(0.75)) / 2, 1.0, math.inf], rtol=1e-12)


def test_the_kl_index_counts_steps_not_plays() -> None:
    # Two users, 16 steps: the same budget ln 16.
    values = index(EgalKLUCB(), seen([2, 4, 10, 16], [0.0, 2.0, 10.0, 0.0], [6.0, 6.0]))
    assert_allclose(values[:3], [0.75, (1 + math.sqrt(0.75)) / 2, 1.0], rtol=1e-12)


def test_the_gaussian_kl_index_by_hand() -> None:
    observation = seen([2, 14, 0], [1.0, 7.0, 0.0], [8.0])
    log = math.log(16)
    plain = index(EgalKLUCB("gaussian", sigma=1.0), observation)
    assert_allclose(plain, [0.5 + math.sqrt(log), 0.5 + math.sqrt(log / 7), math.inf])
    half = index(EgalKLUCB("gaussian", sigma=0.5), observation)
    assert_allclose(half[:2] - 0.5, (plain[:2] - 0.5) / 2)
    theory = index(EgalKLUCB("gaussian", c=3, sigma=1.0), observation)
    assert theory[0] == pytest.approx(0.5 + math.sqrt(log + 3 * math.log(log)), rel=1e-12)


def test_greedy_rotation_never_returns_to_an_arm_that_paid_nothing_once() -> None:
    instance = FirstPullOfArmZeroPaysNothing([1.0, 0.5])
    actions, _ = played({"instance": instance, "num_users": 1, "horizon": 200}, GreedyRotation())
    assert actions == [[0]] + [[1]] * 199


# --- Thompson sampling ----------------------------------------------------------------------------


def first_arms(agent: Agent, observation: Observation) -> Ints:
    agent.reset(seed=0)
    chosen: Ints = agent.act(observation)[:, 0]
    return chosen


def test_beta_draws_choose_an_arm_as_often_as_it_is_likely_the_best() -> None:
    rows = 4000
    chosen = first_arms(EgalThompson(), seen([4, 3], [3.0, 1.0], [4.0], rows))
    # P(Beta(4, 2) > Beta(2, 3)) = E[F(X)], F of Beta(2, 3).
    share = float(beta(4, 2).expect(beta(2, 3).cdf))
    assert 0.7 < share < 0.9
    assert binomtest(int((chosen == 0).sum()), rows, share).pvalue > 1e-3


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_gaussian_draws_choose_an_arm_as_often_as_it_is_likely_the_best(sigma: float) -> None:
    rows = 4000
    agent = EgalThompson("gaussian", sigma)
    chosen = first_arms(agent, seen([4, 2], [3.0, 1.0], [4.0], rows))
    share = float(norm.cdf(0.25 / (sigma * math.sqrt(1 / 4 + 1 / 2))))
    assert binomtest(int((chosen == 0).sum()), rows, share).pvalue > 1e-3


def test_gaussian_draws_put_arms_never_played_first() -> None:
    chosen = first_arms(EgalThompson("gaussian"), seen([4, 0, 0], [4e6, 0, 0], [4e6], 50))
    assert set(chosen.tolist()) == {1}


def test_zeros_and_ones_are_counted_as_they_are() -> None:
    envs = gym.make_vec(EGAL, 3, instance=Bernoulli([0.9, 0.5, 0.2, 0.1]), num_users=2)
    agent = EgalThompson()
    observation, _ = envs.reset(seed=0)
    for _ in range(50):
        action = agent.act(observation)
        assert_array_equal(agent._successes, observation["reward_sum"])
        agent.act(observation)  # asked again, it learns nothing
        assert_array_equal(agent._successes, observation["reward_sum"])
        observation, *_ = envs.step(action)
    agent.reset(mask=np.array([True, False, True]))
    assert not agent._successes[[0, 2]].any()
    agent.act(observation)  # all that it forgot, or missed
    assert_array_equal(agent._successes, observation["reward_sum"])


def coins(steps: int, reward: float, watch: Callable[[int], bool]) -> Ints:
    """Return the successes of 2000 rows that ``steps`` rewards became, as the agent watched."""
    agent = EgalThompson()
    agent.reset(seed=0)
    observation = seen([0], [0.0], [0.0], 2000)
    for step in range(steps + 1):
        if watch(step):
            agent.act(observation)
        observation["pulls"] = observation["pulls"] + 1
        observation["reward_sum"] = observation["reward_sum"] + reward
    successes = agent._successes[:, 0]
    whole = successes.astype(np.int64)
    assert_array_equal(whole, successes)
    return whole


def test_other_rewards_become_successes_by_the_toss_of_a_coin_each() -> None:
    successes = coins(5, 0.3, lambda step: True)
    expected = 2000 * binom(5, 0.3).pmf(np.arange(6))
    assert chisquare(np.bincount(successes, minlength=6), expected).pvalue > 1e-3


def test_rewards_that_were_not_watched_are_rounded_together() -> None:
    successes = coins(5, 0.3, lambda step: step in (0, 5))  # a total of 1.5
    assert set(successes.tolist()) == {1, 2}
    assert binomtest(int((successes == 2).sum()), 2000, 0.5).pvalue > 1e-3


@pytest.mark.parametrize(("reward", "success"), [(-0.5, 0), (1.5, 1)])
def test_rewards_beyond_zero_and_one_count_as_the_nearer_end(reward: float, success: int) -> None:
    assert set(coins(4, reward, lambda step: True).tolist()) == {4 * success}


# --- Explore, then commit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "horizon", "num_arms", "count", "rounds"),
    [
        (0.5, 1024, 9, 1, 67),  # 16 ln 64 = 66.5 plays
        (0.5, 1024, 9, 2, 34),
        (0.5, 16, 9, 2, 8),  # 16 max(1, ln 1) plays
        (2.0, 2, 9, 4, 1),
        (1e-300, 500, 9, 2, 500),  # squared, it is 0: no end of exploration
        (None, 1000, 10, 1, 22),  # 100^(2/3) = 21.5 plays
        (None, 1000, 10, 4, 6),
        (None, 2, 10, 3, 1),
    ],
)
def test_lengths_of_exploration_by_hand(
    gap: float | None, horizon: int, num_arms: int, count: int, rounds: int
) -> None:
    agent = ExploreThenCommit(horizon, gap)
    assert agent.num_rounds(np.array([horizon]), num_arms, count).tolist() == [rounds]


def test_exploration_goes_round_and_what_comes_after_is_settled() -> None:
    # 1/4 ln 400 = 1.5 plays: one round of ceil(5 / 2) blocks. The means are then 0.1, ..., 0.5.
    agent = ExploreThenCommit(horizon=100, gap=4.0)
    observation = seen([0] * 5, [0.0] * 5, [0.0] * 2)
    assigned = []
    for step in range(20):
        action = agent.act(observation)
        assigned.append(action[0].tolist())
        observation["pulls"][0, action[0]] += 1
        pays = np.arange(1, 6) / 10 if step < 6 else np.array([9.0, 9.0, 9.0, -9.0, -9.0])
        observation["reward_sum"][0, action[0]] += pays[action[0]]
    exploring = [[0, 1], [1, 0], [2, 3], [3, 2], [4, 0], [0, 4]]
    assert assigned == exploring + [[4, 3], [3, 4]] * 7


# --- Every step anew ------------------------------------------------------------------------------


def test_combinatorial_ucb_by_hand() -> None:
    # Ranks after t steps, index mean + sqrt(1.5 ln t / n): [0, 1]; [2, 0], arm 2 being new;
    # 1.62, 1.52, 1.12: [0, 1]; 1.64, 1.41, 1.38: [0, 1]; 1.62, 1.33, 1.54: [0, 2].
    kwargs = {"instance": fixed([0.9, 0.5, 0.1]), "num_users": 2, "horizon": 5}
    actions, _ = played(kwargs, CombinatorialUCB())
    assert actions == [[0, 1], [0, 2], [0, 1], [1, 0], [0, 2]]


def test_poorest_first_reaches_the_benchmark_where_rotation_cannot() -> None:
    # Users get 1 + 0.5, 0.75 + 0.75, 0.5 + 1; a rotation leaves one of them 1.25.
    kwargs = {"instance": fixed([1, 0.75, 0.5]), "num_users": 3, "horizon": 2}
    actions, info = played(kwargs, PoorestFirst())
    assert actions == [[0, 1, 2], [2, 1, 0]]
    assert info["policy_regret"] == pytest.approx(0.0, abs=1e-12)
    assert played(kwargs, EgalUCB())[1]["policy_regret"] == pytest.approx(0.25, rel=1e-12)


def test_the_poorest_share_the_best_arm() -> None:
    # Index 0.9, 0.6, 0.3 and C = 2: arm 0 for the two poorest users, arm 1 for the next two, and
    # arm 2 for the richest. Of users 1 and 4, equally rich, 1 comes first.
    agent = PoorestFirst(sigma=0.0, capacity=2)
    observation = seen([10, 10, 10], [9.0, 6.0, 3.0], [7.0, 5.0, 9.0, 1.0, 5.0])
    assert agent.act(observation)[0].tolist() == [1, 0, 2, 0, 1]


@pytest.mark.parametrize("seed", range(10))
def test_with_known_means_poorest_first_keeps_users_together(seed: int) -> None:
    # All numbers are multiples of 1 / 64, so that sums are exact.
    rng = np.random.default_rng(seed)
    num_arms = int(rng.integers(2, 8))
    num_users = int(rng.integers(2, num_arms + 1))
    rows = 50
    means = rng.integers(0, 65, (rows, num_arms)) / 64
    ordered = -np.sort(-means, axis=1)
    spread = ordered[:, 0] - ordered[:, num_users - 1]
    share = ordered[:, :num_users].sum(axis=1) / num_users
    agent = PoorestFirst(sigma=0.0)  # its index is then the mean, exactly
    totals = np.zeros((rows, num_users))
    for step in range(1, 101):
        pulls = np.full((rows, num_arms), 64)
        observation = {"pulls": pulls, "reward_sum": 64 * means, "user_reward_sum": totals}
        totals = totals + np.take_along_axis(means, agent.act(observation), axis=1)
        assert (np.ptp(totals, axis=1) <= spread).all()
        least = step * share - (1 - 1 / num_users) * spread
        assert (totals.min(axis=1) >= least - 1e-9).all()
        assert (totals.min(axis=1) <= step * share + 1e-9).all()


def test_without_noise_poorest_first_learns_to_keep_users_together() -> None:
    # With K = U every arm is played at every step, and only the order is to be learned.
    envs = gym.make_vec(EGAL, 20, instance=random_sure_arms, num_users=4, num_arms=4)
    agent = PoorestFirst()
    observation, _ = envs.reset(seed=0)
    spread = np.ptp([arms.means for arms in envs.unwrapped.arms], axis=1)  # type: ignore[attr-defined]
    for _ in range(200):
        observation, *_ = envs.step(agent.act(observation))
        assert (np.ptp(observation["user_reward_sum"], axis=1) <= spread + 1e-9).all()


def random_sure_arms(rng: np.random.Generator, num_users: int, num_arms: int) -> Any:
    return fixed(rng.random(num_arms).tolist())


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: EgalMOSS(0), ValueError, "`horizon` must be at least 1, got 0"),
        (lambda: EgalMOSS(10, sigma=-1), ValueError, "`sigma` must be at least 0, got -1"),
        (lambda: EgalMOSS(10, capacity=0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: EgalKLUCB("beta"), ValueError, "`law` must be one of 'bernoulli', 'gaussian'"),
        (lambda: EgalKLUCB(c=math.nan), ValueError, "`c` must be finite, got nan"),
        (lambda: EgalKLUCB(sigma=-1), ValueError, "`sigma` must be at least 0, got -1"),
        (lambda: EgalThompson("bernoulli"), ValueError, "`law` must be one of 'beta', 'gaussian'"),
        (lambda: EgalThompson(sigma=math.inf), ValueError, "`sigma` must be finite, got inf"),
        (lambda: ExploreThenCommit(1.5), TypeError, "`horizon` must be an integer"),  # type: ignore[arg-type]
        (lambda: ExploreThenCommit(9, 0.0), ValueError, "`gap` must be above 0, got 0"),
        (lambda: GreedyRotation(0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: CombinatorialUCB(c=-1), ValueError, "`c` must be at least 0, got -1"),
        (lambda: CombinatorialUCB(capacity=True), TypeError, "`capacity` must be an integer"),
        (lambda: PoorestFirst(sigma=-1), ValueError, "`sigma` must be at least 0, got -1"),
        (lambda: PhasedElimination(0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: PhasedElimination(2, -1), ValueError, "`horizon` must be at least 1, got -1"),
        (lambda: PhasedElimination(2, 9, "even"), ValueError, "`schedule` must be one of 'log'"),
        (lambda: PhasedElimination(kappa=-1), ValueError, "`kappa` must be at least 0, got -1"),
        (lambda: PhasedElimination(c=-1), ValueError, "`c` must be at least 0, got -1"),
        (lambda: PhasedElimination(sigma=-1), ValueError, "`sigma` must be at least 0, got -1"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()


@pytest.mark.parametrize("name", ROTATING)
def test_a_capacity_that_does_not_divide_the_users_is_named(name: str) -> None:
    observation, _ = gym.make(EGAL, num_users=5, num_arms=8, capacity=2).reset(seed=0)
    message = "`capacity` must divide the number of users, 5, got 2"
    with pytest.raises(ValueError, match=message):
        SHARING[name](2).act(observation)


@pytest.mark.parametrize("name", SHARING)
def test_more_users_than_the_capacity_has_room_for_are_named(name: str) -> None:
    observation, _ = gym.make(EGAL, num_users=6, num_arms=2, capacity=3).reset(seed=0)
    agent = SHARING[name](2)
    with pytest.raises(ValueError, match="`capacity` must be at least the users per arm, 6 / 2, g"):
        agent.act(observation)
