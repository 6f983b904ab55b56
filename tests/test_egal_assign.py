"""EgalAssign-v0 against episodes worked by hand and draws reconstructed from the seed."""

from __future__ import annotations

from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_envs import SAMPLES, Seasonal, drawn_laws
from helpers_names import EGAL, Kwargs
from helpers_play import Player, assert_identical, play, random_states, worth
from numpy.typing import NDArray

from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian


def make(**kwargs: Any) -> Any:
    return gym.make(EGAL, **kwargs)


# --- Episodes by hand ---------------------------------------------------------------------------

# Means are powers of two and nothing is random: floating point makes no error.
SURE = {"family": "gaussian", "means": [1.0, 0.5, 0.25, 0.125], "std": 0.0}

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
    env = make(instance=SURE, num_users=2, horizon=5, horizon_known=known, objective=objective)
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
    env = make(instance={"family": "gaussian", "means": [-1.0, 0.5], "std": 0}, num_users=2)
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
    env = make(instance=SURE, num_users=num_users, capacity=capacity, horizon=10)
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
    env = make(instance=SURE, num_users=2)
    env.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match="`steps` must be"):
        env.unwrapped.optimal_return(steps)


def test_everyone_on_a_shared_arm_gets_the_same() -> None:
    env = make(instance=SURE, num_users=3, capacity=2)
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
    env = make(
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
    env = make(instance=law, num_users=4, capacity=3)
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
    env = make(instance=law, num_users=3, horizon=200)
    env.reset(seed=0)
    player = Player(env.action_space)
    rewards = []
    for _ in range(200):
        observation, reward, *_ = env.step(player())
        rewards.append(reward)
    assert sum(rewards) == pytest.approx(observation["user_reward_sum"].min(), abs=1e-9)
    assert env.unwrapped.realized_return() == observation["user_reward_sum"].min()


def test_reseeding_forgets_draws_that_were_buffered() -> None:
    env = make(instance=LAWS[1], num_users=5)
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        draws = np.random.default_rng(seed).standard_normal(5)
        rewards = env.step([0, 1, 2, 3, 4])[4]["user_rewards"]
        assert rewards.tolist() == (LAWS[1].means + LAWS[1].std * draws).tolist()


def test_a_law_without_chance_draws_nothing_and_sees_step_and_pulls() -> None:
    env = make(instance=Seasonal([0.0, 1.0, 2.0]), num_users=2, horizon=9)
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


# --- Instances ----------------------------------------------------------------------------------


def test_random_means_come_from_the_stream_spawned_of_the_seed() -> None:
    for instance in ("bernoulli", "gaussian", {"name": "gaussian", "variance": 0.25}):
        env = make(instance=instance, num_users=3, num_arms=6)
        expected = np.random.default_rng(5).spawn(1)[0].random((3, 6)) * 0.98 + 0.01
        for episode in range(3):
            env.reset(seed=5 if episode == 0 else None)
            np.testing.assert_array_equal(env.unwrapped.arms.means, expected[episode])
            play(env, Player(env.action_space), 4 * episode + 1)
        if instance != "bernoulli":
            deviation = 1.0 if instance == "gaussian" else 0.5
            assert env.unwrapped.arms.std.tolist() == [deviation] * 6


def test_named_instances() -> None:
    def means(**kwargs: Any) -> list[float]:
        env = make(**kwargs)
        env.reset(seed=0)
        values: list[float] = env.unwrapped.arms.means.tolist()
        return values

    assert means(instance="two_level", num_users=3, num_arms=5) == [0.8, 0.8, 0.8, 0.5, 0.5]
    assert means(instance={"name": "two_level", "low": 0.25}, num_users=1, num_arms=2) == [
        0.8,
        0.25,
    ]
    # gap = sqrt((K - U) / (8 T U^2)) = sqrt(6 / (8 * 3 * 4)) = 1/4, the horizon being T.
    kwargs: Kwargs = {"num_users": 2, "num_arms": 8, "horizon": 3}
    assert means(instance="lower_bound", **kwargs) == [0.25, 0.25, 0, 0, 0, 0, 0, 0]
    boosted = {"name": "lower_bound", "boosted": [7, 3]}
    assert means(instance=boosted, **kwargs) == [0.25, 0.25, 0, 0.5, 0, 0, 0, 0.5]
    longer = {"name": "lower_bound", "steps": 12}
    assert means(instance=longer, **kwargs) == [0.125, 0.125, 0, 0, 0, 0, 0, 0]


def test_the_number_of_arms_is_the_instances_own_else_ten() -> None:
    assert make().unwrapped.num_arms == 10
    assert make(num_arms=6).unwrapped.num_arms == 6
    assert make(instance=SURE, num_users=2).unwrapped.num_arms == 4
    assert make(instance="two_level").unwrapped.num_arms == 10
    assert make(instance=drawn_laws, num_users=2).unwrapped.num_arms == 10
    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 4"):
        make(instance=SURE, num_users=2, num_arms=5)


def test_a_callable_draws_each_episode_from_the_stream_spawned_of_the_seed() -> None:
    calls: list[tuple[float, int, int]] = []

    def draw(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
        calls.append((rng.random(), num_users, num_arms))
        return Gaussian([calls[-1][0], 0.25, 0.5], 0.0)

    env = make(instance=draw, num_users=2, num_arms=3)
    assert calls == []
    for seed in (5, None, None, 5):
        env.reset(seed=seed)
        assert env.step([0, 1])[4]["user_rewards"].tolist() == [calls[-1][0], 0.25]
    expected = np.random.default_rng(5).spawn(1)[0].random(3).tolist()
    assert calls == [(value, 2, 3) for value in (*expected, expected[0])]


@pytest.mark.parametrize(
    ("drawn", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ([0.5, 0.5, 0.5], TypeError, "`instance` must return an `Arms`"),
    ],
)
def test_a_callable_that_breaks_the_rules_is_refused_at_reset(
    drawn: Any, error: type[Exception], message: str
) -> None:
    env = make(instance=lambda rng, num_users, num_arms: drawn, num_users=2, num_arms=3)
    with pytest.raises(error, match=message):
        env.reset(seed=0)


@pytest.mark.parametrize("instance", [SURE, drawn_laws, "bernoulli", LAWS[1].to_dict()])
def test_an_instance_in_the_options_is_played_for_one_episode(instance: Any) -> None:
    num_arms = 5 if isinstance(instance, dict) and len(instance["means"]) == 5 else 4
    kwargs: Kwargs = {"instance": instance, "num_users": 2, "num_arms": num_arms}
    env, plain = make(**kwargs), make(**kwargs)
    env.reset(seed=7)
    plain.reset(seed=7)
    usual = plain.unwrapped.arms
    pin = Gaussian(np.arange(num_arms) / 8, 0.0)
    options = {"instance": pin}
    env.reset(options=options)
    assert options == {"instance": pin}
    assert env.unwrapped.arms == pin
    assert env.step([1, 2])[4]["user_rewards"].tolist() == [0.125, 0.25]
    for _ in range(2):  # the pinned episode took nothing from the instances' stream
        env.reset()
        plain.reset()
        assert env.unwrapped.arms == plain.unwrapped.arms
        assert (env.unwrapped.arms == usual) == isinstance(instance, dict)


def test_an_instance_in_the_options_may_be_named_a_dict_or_drawn() -> None:
    env = make(instance=SURE, num_users=2)
    env.reset(seed=5, options={"instance": {"name": "two_level", "high": 0.75}})
    assert env.unwrapped.arms.means.tolist() == [0.75, 0.75, 0.5, 0.5]
    env.reset(options={"instance": {"family": "bernoulli", "means": [0, 1, 0, 1]}})
    assert env.step([1, 2])[4]["user_rewards"].tolist() == [1.0, 0.0]
    env.reset(seed=5, options={"instance": drawn_laws})
    stream = np.random.default_rng(5).spawn(1)[0]
    assert env.unwrapped.arms == drawn_laws(stream, 2, 4)
    env.reset(options={"instance": drawn_laws})
    assert env.unwrapped.arms == drawn_laws(stream, 2, 4)


@pytest.mark.parametrize(
    ("pin", "error", "message"),
    [
        (Bernoulli([0.5, 0.5]), ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ("nope", ValueError, "`instance` must be one of"),
        ({"family": "bernoulli", "means": [2, 0, 0, 0]}, ValueError, "`means` must lie in"),
        (7, TypeError, "`instance` must be a name"),
    ],
)
def test_a_wrong_instance_in_the_options_changes_nothing(
    pin: Any, error: type[Exception], message: str
) -> None:
    kwargs: Kwargs = {"instance": drawn_laws, "num_users": 2, "num_arms": 4, "horizon": 20}
    env, twin = make(**kwargs), make(**kwargs)
    logs = []
    for either in (env, twin):
        either.reset(seed=1)
        play(either, Player(env.action_space), 5)
        if either is env:
            with pytest.raises(error, match=message):
                either.reset(seed=9, options={"instance": pin})
        log = [worth(either), play(either, Player(env.action_space), 50), either.reset()]
        logs.append([*log, random_states(either)])
    assert_identical(logs[0], logs[1])


def test_nothing_observed_tells_an_unknown_horizon() -> None:
    short, long = make(horizon=6), make(horizon=1000)
    assert short.observation_space == long.observation_space
    assert_identical(short.reset(seed=3), long.reset(seed=3))
    player = Player(short.action_space)
    for _ in range(5):
        action = player()
        assert_identical(short.step(action), long.step(action))


# --- Actions ------------------------------------------------------------------------------------

MISFIT = r"`action` must hold integers and have shape \(3,\), got"
ILLEGAL: list[tuple[Any, str]] = [
    ([0, 1, 0], r"no arm to more than 1 user, got arm 0 for users 0 and 2$"),
    ([2, 2, 2], r"no arm to more than 1 user, got arm 2 for users 0, 1 and 2$"),
    (np.array([1, 3, 3], dtype=np.int8), r"got arm 3 for users 1 and 2$"),
    ([0, 1, 4], r"an arm from 0 to 3, got arm 4 for user 2$"),
    ([0, -1, 2], r"an arm from 0 to 3, got arm -1 for user 1$"),
    ((-1, 0, 1), r"an arm from 0 to 3, got arm -1 for user 0$"),
    (np.array([0, 1, 255], dtype=np.uint8), r"got arm 255 for user 2$"),
    (np.array([2**64 - 1, 0, 1], dtype=np.uint64), r"got arm 18446744073709551615 for user 0$"),
    ([0, 1, 10**30], r"got arm 10{30} for user 2$"),
    ([0.0, 1.0, 2.0], MISFIT),
    (np.array([0.0, 1.0, 2.0]), MISFIT),
    (np.array([0, 1, np.nan]), MISFIT),
    ([False, True, 2], MISFIT),
    ([0, np.bool_(True), 2], MISFIT),
    (np.array([True, False, True]), MISFIT),
    (np.array([0, 1, 2], dtype=object), MISFIT),
    (["0", "1", "2"], MISFIT),
    (np.array(["0", "1", "2"]), MISFIT),
    ("012", MISFIT),
    (None, MISFIT),
    (1, MISFIT),
    (np.array(1), MISFIT),
    (np.int64(1), MISFIT),
    ([], MISFIT),
    ([0], MISFIT),
    (np.array([1]), MISFIT),
    ([0, 1], MISFIT),
    ([0, 1, 2, 3], MISFIT),
    (np.array([[0, 1, 2]]), MISFIT),
    (np.array([[0], [1], [2]]), MISFIT),
    ([[0], [1], [2]], MISFIT),
    ([0, [1], 2], MISFIT),
    ([0, None, 2], MISFIT),
    ({0, 1, 2}, MISFIT),
    ({0: 0, 1: 1, 2: 2}, MISFIT),
    (range(3), MISFIT),
    (object, MISFIT),
]


@pytest.mark.parametrize(("action", "message"), ILLEGAL, ids=lambda value: repr(value)[:40])
def test_an_illegal_action_is_refused_and_changes_nothing(action: Any, message: str) -> None:
    kwargs: Kwargs = {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 20}
    env, twin = make(**kwargs), make(**kwargs)
    player, other = Player(env.action_space), Player(env.action_space)
    assert_identical(env.reset(seed=2), twin.reset(seed=2))
    for steps in (0, 1, 9, 20):  # at the start, twice within, and in the next episode
        assert_identical(play(env, player, steps), play(twin, other, steps))
        for bandit in (env, env.unwrapped):
            with pytest.raises(InvalidAction, match=message):
                bandit.step(action)
        assert random_states(env) == random_states(twin)
        assert_identical(worth(env), worth(twin))
        assert env.unwrapped.steps == twin.unwrapped.steps
    assert_identical(play(env, player, 30), play(twin, other, 30))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([1, 1, 1], r"no arm to more than 2 users, got arm 1 for users 0, 1 and 2$"),
        ([0, 1, 2], r"an arm from 0 to 1, got arm 2 for user 2$"),
    ],
)
def test_an_illegal_action_with_capacity_names_users_and_arm(action: Any, message: str) -> None:
    env = make(num_users=3, num_arms=2, capacity=2)
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=message):
        env.step(action)
    env.step([1, 0, 1])


DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize(
    "action",
    [
        *(np.array([0, 2], dtype=dtype) for dtype in DTYPES),
        np.array([0, 2], dtype=">i4"),
        np.array([0, 9, 2, 9])[::2],
        [0, 2],
        (0, 2),
        [np.int8(0), np.uint64(2)],
        (np.int64(0), 2),
    ],
    ids=repr,
)
def test_any_integers_are_a_legal_action(action: Any) -> None:
    env = make(instance=SURE, num_users=2)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(action)
    assert info["user_rewards"].tolist() == [1.0, 0.25]
    assert reward == 0.25
    assert observation["pulls"].tolist() == [1, 0, 1, 0]
    assert observation["pulls"].dtype == np.int64
    assert env.unwrapped.expected_user_returns().tolist() == [1.0, 0.25]


def test_one_user_is_still_an_array() -> None:
    env = make(instance=SURE, num_users=1)
    env.reset(seed=0)
    for action in (1, np.array(1), np.int64(1)):
        with pytest.raises(InvalidAction, match=r"have shape \(1,\)"):
            env.step(action)
    assert env.step([1])[1] == 0.5


def test_an_action_buffer_may_be_reused_by_the_caller() -> None:
    env = make(instance=SURE, num_users=2, horizon=600)
    env.reset(seed=0)
    action = np.zeros(2, dtype=np.int64)
    counts = np.zeros((2, 4))
    player = Player(env.action_space)
    for _ in range(600):  # more than the environment counts at once
        action[:] = player()
        counts[[0, 1], action] += 1
        env.step(action)
        if counts.sum() % 94 == 0:
            expected = (counts @ [1.0, 0.5, 0.25, 0.125]).tolist()
            assert env.unwrapped.expected_user_returns().tolist() == expected
    assert (
        env.unwrapped.expected_user_returns().tolist()
        == (counts @ [1.0, 0.5, 0.25, 0.125]).tolist()
    )
