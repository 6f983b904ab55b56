"""EgalAssign-v0 against episodes worked by hand and draws reconstructed from the seed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers_envs import SAMPLES, Seasonal
from helpers_episodes import SURE, assert_horizon_is_not_observed, egal
from helpers_play import Player, random_states
from numpy.typing import NDArray

from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian

# --- Episodes by hand ---------------------------------------------------------------------------

# action, user rewards, user_reward_sum, pulls, reward_sum, increase of the lowest sum
EPISODE: list[tuple[list[int], list[float], list[float], list[int], list[float], float]] = [
    ([0, 1], [1.0, 0.5], [1.0, 0.5], [1, 1, 0, 0], [1.0, 0.5, 0.0, 0.0], 0.5),
    ([2, 0], [0.25, 1.0], [1.25, 1.5], [2, 1, 1, 0], [2.0, 0.5, 0.25, 0.0], 0.75),
    ([3, 2], [0.125, 0.25], [1.375, 1.75], [2, 1, 2, 1], [2.0, 0.5, 0.5, 0.125], 0.125),
    ([1, 0], [0.5, 1.0], [1.875, 2.75], [3, 2, 2, 1], [3.0, 1.0, 0.5, 0.125], 0.5),
    ([3, 0], [0.125, 1.0], [2.0, 3.75], [4, 2, 2, 2], [4.0, 1.0, 0.5, 0.25], 0.125),
]


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
@pytest.mark.parametrize("known", [False, True])
def test_an_episode_worked_by_hand(known: bool, objective: str) -> None:
    env = egal(instance=SURE, num_users=2, horizon=5, horizon_known=known, objective=objective)
    bandit = env.unwrapped
    for _ in range(2):
        observation, info = env.reset(seed=0)
        expected: dict[str, Any] = {
            "pulls": [0] * 4,
            "reward_sum": [0.0] * 4,
            "user_reward_sum": [0.0] * 2,
            **({"remaining": [5]} if known else {}),
        }
        assert {key: value.tolist() for key, value in observation.items()} == expected
        assert info == {}
        earned = 0.0
        for step, (action, pays, users, pulls, sums, increase) in enumerate(EPISODE, start=1):
            observation, reward, terminated, truncated, info = env.step(np.array(action))
            expected = {
                "pulls": pulls,
                "reward_sum": sums,
                "user_reward_sum": users,
                **({"remaining": [5 - step]} if known else {}),
            }
            assert {key: value.tolist() for key, value in observation.items()} == expected
            assert list(info) == ["user_rewards"]
            assert info["user_rewards"].tolist() == pays
            assert reward == (increase if objective == "egalitarian" else sum(pays) / 2)
            over = step == 5
            assert (terminated, truncated) == (over and known, over and not known)
            earned += reward
            objective_now = min(users) if objective == "egalitarian" else sum(users) / 2
            assert earned == objective_now
            assert bandit.expected_return() == bandit.realized_return() == objective_now
            assert bandit.expected_user_returns().tolist() == users
            assert bandit.optimal_return() == 0.75 * step  # T (1 + 1/2) / 2
            assert bandit.steps == step
    assert [bandit.optimal_return(steps) for steps in (0, 1, 8)] == [0.0, 0.75, 6.0]
    assert bandit.optimal_slots().tolist() == [0, 1]


def test_the_lowest_sum_may_fall() -> None:
    env = egal(instance={"family": "gaussian", "means": [-1.0, 0.5], "std": 0}, num_users=2)
    env.reset(seed=0)
    rewards = [env.step(action)[1] for action in ([0, 1], [1, 0], [1, 0], [1, 0])]
    # Sums: (-1, 1/2), (-1/2, -1/2), (0, -3/2), (1/2, -5/2).
    assert rewards == [-1.0, 0.5, -1.0, -1.0]
    assert env.unwrapped.optimal_return() == 4 * -0.25


@pytest.mark.parametrize(
    ("num_users", "capacity", "per_step"),
    [
        (1, 1, 1.0),
        (3, 1, (1 + 0.5 + 0.25) / 3),
        (4, 1, (1 + 0.5 + 0.25 + 0.125) / 4),
        (4, 2, (1 + 1 + 0.5 + 0.5) / 4),
        (5, 2, (1 + 1 + 0.5 + 0.5 + 0.25) / 5),
        (8, 2, (1 + 0.5 + 0.25 + 0.125) / 4),
        (2, 3, 1.0),
        (7, 3, (3 + 1.5 + 0.25) / 7),
    ],
)
def test_the_benchmark_by_hand_at_any_capacity(
    num_users: int, capacity: int, per_step: float
) -> None:
    env = egal(instance=SURE, num_users=num_users, capacity=capacity, horizon=10)
    env.reset(seed=0)
    for steps in (0, 1, 6, 840):
        assert env.unwrapped.optimal_return(steps) == pytest.approx(steps * per_step, rel=1e-15)
    slots = env.unwrapped.optimal_slots().tolist()
    assert slots in env.action_space
    means = [1.0, 0.5, 0.25, 0.125]
    assert sum(means[arm] for arm in slots) == pytest.approx(num_users * per_step, rel=1e-15)
    # No assignment has a higher mean reward: by enumeration, for the small ones.
    if num_users <= 5:
        best = max(
            sum(means[arm] for arm in arms) / num_users
            for arms in product(range(4), repeat=num_users)
            if np.array(arms) in env.action_space
        )
        assert best == pytest.approx(per_step, rel=1e-15)


@pytest.mark.parametrize("steps", [-1, 2.0, True, "3"])
def test_optima_of_impossible_lengths_are_refused(steps: Any) -> None:
    env = egal(instance=SURE, num_users=2)
    env.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match="`steps` must be"):
        env.unwrapped.optimal_return(steps)


def test_everyone_on_a_shared_arm_gets_the_same() -> None:
    env = egal(instance=SURE, num_users=3, capacity=2)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step([0, 1, 0])
    assert info["user_rewards"].tolist() == [1.0, 0.5, 1.0]
    assert reward == 0.5
    # The arm paid once, though two users got it.
    assert observation["pulls"].tolist() == [1, 1, 0, 0]
    assert observation["reward_sum"].tolist() == [1.0, 0.5, 0.0, 0.0]
    observation, reward, _, _, info = env.step([3, 3, 2])
    assert info["user_rewards"].tolist() == [0.125, 0.125, 0.25]
    assert observation["pulls"].tolist() == [1, 1, 1, 1]
    assert observation["reward_sum"].tolist() == [1.0, 0.5, 0.25, 0.125]
    assert observation["user_reward_sum"].tolist() == [1.125, 0.625, 1.25]
    assert reward == 0.125
    assert env.unwrapped.expected_user_returns().tolist() == [1.125, 0.625, 1.25]


def test_nothing_observed_tells_an_unknown_horizon() -> None:
    assert_horizon_is_not_observed(egal)


# --- Draws --------------------------------------------------------------------------------------


def pays(law: Arms, arm: int, draw: float) -> float:
    """Return what an arm pays for a draw, in plain Python."""
    if isinstance(law, Bernoulli):
        return 1.0 if draw < law.means[arm] else 0.0
    if isinstance(law, Gaussian):
        return float(law.means[arm] + law.std[arm] * draw)
    samples = SAMPLES[arm]
    return samples[int(draw * len(samples))]


LAWS: list[Any] = [
    Bernoulli([0.9, 0.5, 0.25, 0.75, 0.125]),
    Gaussian([0.5, 0.25, -1.0, 2.0, 0.75], [1.0, 0.5, 0.25, 2.0, 0.0]),
    Empirical(SAMPLES),
]


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
@pytest.mark.parametrize(
    ("num_users", "capacity"), [(1, 1), (2, 1), (5, 1), (3, 2), (7, 2), (10, 2), (11, 3), (4, 9)]
)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.family))
def test_user_u_of_step_t_gets_draw_t_times_num_users_plus_u(
    law: Arms, num_users: int, capacity: int, objective: str
) -> None:
    env = egal(
        instance=law, num_users=num_users, capacity=capacity, objective=objective, horizon=70
    )
    env.reset(seed=17)
    stream = np.random.default_rng(17)
    method = stream.standard_normal if isinstance(law, Gaussian) else stream.random
    draws: NDArray[np.float64] = method(210 * num_users)
    player = Player(env.action_space)
    step = 0
    for _ in range(3):  # the stream goes on from episode to episode
        pulls, sums, users = [0] * 5, [0.0] * 5, [0.0] * num_users
        counts = np.zeros((num_users, 5))
        worst = 0.0
        for _ in range(70):
            arms = player().tolist()
            paid: dict[int, float] = {}
            for user, arm in enumerate(arms):
                if arm not in paid:  # the lowest user's draw serves all who share the arm
                    paid[arm] = pays(law, arm, draws[step * num_users + user])
                    pulls[arm] += 1
                    sums[arm] += paid[arm]
                users[user] += paid[arm]
                counts[user, arm] += 1
            observation, reward, _, _, info = env.step(arms)
            assert info["user_rewards"].tolist() == [paid[arm] for arm in arms]
            assert observation["pulls"].tolist() == pulls
            assert observation["reward_sum"].tolist() == sums
            assert observation["user_reward_sum"].tolist() == users
            if objective == "egalitarian":
                assert reward == min(users) - worst
                worst = min(users)
            else:
                mean = sum(paid[arm] for arm in arms) / num_users
                assert reward == pytest.approx(mean, rel=1e-14, abs=1e-14)
            step += 1
        bandit = env.unwrapped
        expected = counts @ law.means
        np.testing.assert_allclose(bandit.expected_user_returns(), expected, rtol=1e-13)
        if objective == "egalitarian":
            assert bandit.realized_return() == min(users)
            assert bandit.expected_return() == pytest.approx(expected.min(), rel=1e-13)
        else:
            assert bandit.realized_return() == pytest.approx(np.mean(users), rel=1e-13)
            assert bandit.expected_return() == pytest.approx(expected.mean(), rel=1e-13)
        env.reset()


def test_the_shared_draw_is_the_lowest_users_whoever_comes_with_it() -> None:
    law = Gaussian([0.0, 10.0], [1.0, 1.0])
    draws = np.random.default_rng(3).standard_normal((3, 4))
    env = egal(instance=law, num_users=4, capacity=3)
    env.reset(seed=3)
    expected = [
        ([0, 0, 0, 1], [draws[0, 0]] * 3 + [10 + draws[0, 3]]),
        ([1, 0, 0, 0], [10 + draws[1, 0]] + [draws[1, 1]] * 3),
        ([1, 0, 1, 0], [10 + draws[2, 0], draws[2, 1], 10 + draws[2, 0], draws[2, 1]]),
    ]
    for action, rewards in expected:
        assert env.step(action)[4]["user_rewards"].tolist() == rewards


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.family))
def test_the_egalitarian_return_telescopes_to_the_lowest_total(law: Arms) -> None:
    env = egal(instance=law, num_users=3, horizon=200)
    env.reset(seed=0)
    player = Player(env.action_space)
    rewards = []
    for _ in range(200):
        observation, reward, *_ = env.step(player())
        rewards.append(reward)
    assert sum(rewards) == pytest.approx(observation["user_reward_sum"].min(), abs=1e-9)
    assert env.unwrapped.realized_return() == observation["user_reward_sum"].min()


def test_reseeding_forgets_draws_that_were_buffered() -> None:
    env = egal(instance=LAWS[1], num_users=5)
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        draws = np.random.default_rng(seed).standard_normal(5)
        rewards = env.step([0, 1, 2, 3, 4])[4]["user_rewards"]
        assert rewards.tolist() == (LAWS[1].means + LAWS[1].std * draws).tolist()


def test_a_law_without_chance_draws_nothing_and_sees_step_and_pulls() -> None:
    env = egal(instance=Seasonal([0.0, 1.0, 2.0]), num_users=2, horizon=9)
    env.reset(seed=6)
    # means + (step mod 3 + pulls mod 5) / 8, both counted before the step
    expected = [
        ([0, 1], [0.0, 1.0]),
        ([1, 0], [1.25, 0.25]),
        ([2, 0], [2.25, 0.5]),
        ([0, 2], [0.375, 2.125]),
        ([1, 0], [1.375, 0.625]),
        ([0, 1], [0.25, 1.625]),
    ]
    for action, rewards in expected:
        assert env.step(action)[4]["user_rewards"].tolist() == rewards
    assert random_states(env) == np.random.default_rng(6).bit_generator.state
