"""Arms that vary, and the best fixed set as their benchmark."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers_adversarial import final_metrics, make
from helpers_names import EGAL, Ints

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import agents
from gym_fairbandits.arms import (
    AdaptiveAdversary,
    Adversarial,
    Arms,
    Bernoulli,
    Gaussian,
    Switching,
    from_dict,
)
from gym_fairbandits.optimum import best_fixed_set_optimum
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# Sixteenths: sums of few of them are exact.
TABLE = [[4, 8, 0, 2], [16, 1, 3, 3], [2, 2, 8, 8], [0, 16, 4, 1], [8, 0, 0, 8]]
ROWS = (np.array(TABLE) / 16).tolist()


def pay(law: Arms, arms: list[int], step: int, pulls: list[int], draws: Any = 0.0) -> list[float]:
    """Return what users on ``arms`` earn."""
    users = np.array(arms, dtype=np.int64)
    given = np.broadcast_to(np.asarray(draws, dtype=np.float64), users.shape)
    paid: list[float] = law.rewards(users, given, step, np.array(pulls)).tolist()
    return paid


# --- Laws -----------------------------------------------------------------------------------------


def test_a_table_pays_its_entries() -> None:
    law = Adversarial(ROWS)
    assert law.noise is None
    assert law.varying
    assert law.num_steps == 5
    assert law.means.tolist() == (np.array(TABLE).sum(axis=0) / 80).tolist()
    none = [0, 0, 0, 0]
    assert pay(law, [1, 0], 0, none) == [8 / 16, 4 / 16]
    assert pay(law, [3, 2], 4, none) == [8 / 16, 0.0]
    assert law.expected_rewards(1, np.array(none)).tolist() == ROWS[1]
    assert law.expected_totals(0).tolist() == [0.0] * 4
    assert law.expected_totals(3).tolist() == [22 / 16, 11 / 16, 11 / 16, 13 / 16]


def test_a_periodic_table_starts_anew() -> None:
    law = Adversarial(ROWS, periodic=True)
    assert law.num_steps is None
    assert pay(law, [0, 3], 5, [0] * 4) == [4 / 16, 2 / 16]
    assert pay(law, [0, 3], 5 * 10**12 + 1, [0] * 4) == [1.0, 3 / 16]
    assert law.expected_totals(12).tolist() == [80 / 16, 63 / 16, 33 / 16, 49 / 16]
    batch = law.rewards(
        np.array([[1, 0], [3, 2]]),
        np.zeros((2, 2)),
        np.array([10, 14]),
        np.zeros((2, 4), dtype=int),
    )
    assert batch.tolist() == [[8 / 16, 4 / 16], [8 / 16, 0.0]]


def test_a_step_beyond_the_table_is_an_error() -> None:
    law = Adversarial(ROWS)
    message = re.escape("`table` must have a row for every step, got 5 rows and step 5")
    with pytest.raises(ValueError, match=message):
        pay(law, [0], 5, [0] * 4)
    with pytest.raises(ValueError, match=message):
        law.expected_totals(6)


@pytest.mark.parametrize(
    "instance", [Adversarial(ROWS), lambda rng, users, arms: Adversarial(ROWS)]
)
def test_an_environment_longer_than_the_table_is_refused_before_it_plays(instance: Any) -> None:
    message = re.escape("`horizon` must be at most 5, the steps that the arms are given for, got 6")

    def begin(**kwargs: Any) -> None:
        gym.make(EGAL, instance=instance, num_users=2, num_arms=4, **kwargs).reset(seed=0)

    with pytest.raises(ValueError, match=message):
        begin(horizon=6)
    begin(horizon=5)
    env = gym.make(EGAL, num_users=2, num_arms=4, horizon=6)
    with pytest.raises(ValueError, match=message):
        env.reset(options={"instance": instance})


def test_switching_bernoulli_arms_pay_by_the_segment_of_the_step() -> None:
    law = Switching([[0.25, 0.75], [0.5, 0.0], [1.0, 0.5]], [2, 3])
    assert law.noise == "random"
    assert law.means.tolist() == pytest.approx([7 / 12, 5 / 12])
    for step, means in [(0, [0.25, 0.75]), (1, [0.25, 0.75]), (2, [0.5, 0.0]), (9, [1.0, 0.5])]:
        assert law.expected_rewards(step, np.zeros(2, dtype=int)).tolist() == means
        for draw in (0.0, 0.3, 0.6, 0.9):
            assert pay(law, [0, 1], step, [0, 0], draw) == [float(draw < mean) for mean in means]
    totals = [[0, 0], [0.25, 0.75], [0.5, 1.5], [1.0, 1.5], [2.0, 2.0], [3.0, 2.5]]
    assert [law.expected_totals(steps).tolist() for steps in range(6)] == totals


def test_switching_gaussian_arms_add_their_noise() -> None:
    law = Switching([[0.5, -1.0], [2.0, 0.0]], [1], [0.25, 2.0])
    assert law.noise == "standard_normal"
    assert pay(law, [1, 0], 0, [0, 0], [1.0, -2.0]) == [1.0, 0.0]
    assert pay(law, [1, 0], 1, [0, 0], [1.0, -2.0]) == [2.0, 1.5]
    sure = Switching([[0.5, -1.0], [2.0, 0.0]], [1], 0.0)
    assert pay(sure, [0, 1], 7, [0, 0], 99.0) == [2.0, 0.0]


def test_one_segment_is_the_constant_law() -> None:
    for switching, constant in [
        (Switching([[0.2, 0.7]], []), Bernoulli([0.2, 0.7])),
        (Switching([[0.2, 0.7]], [], 0.5), Gaussian([0.2, 0.7], 0.5)),
    ]:
        for step, draw in [(0, 0.1), (3, 0.5), (100, 0.9)]:
            assert pay(switching, [1, 0], step, [0, 0], draw) == pay(
                constant, [1, 0], step, [0, 0], draw
            )
        assert switching.expected_totals(8).tolist() == constant.expected_totals(8).tolist()


def test_the_adaptive_adversary_pays_on_the_fewest_pulled_arms() -> None:
    law = AdaptiveAdversary(4, 2, 0.5)
    assert law.noise is None
    assert law.means.tolist() == [0.25] * 4
    assert pay(law, [0, 1, 2, 3], 0, [0, 0, 0, 0]) == [0.5, 0.5, 0.0, 0.0]
    assert pay(law, [0, 1, 2, 3], 9, [5, 3, 4, 3]) == [0.0, 0.5, 0.0, 0.5]
    assert pay(law, [3, 2], 9, [2, 1, 1, 1]) == [0.0, 0.5]  # ties go to the lowest index
    with pytest.raises(NotImplementedError, match="AdaptiveAdversary pays depends on what"):
        law.expected_totals(3)


@pytest.mark.parametrize(
    "law",
    [
        Adversarial(ROWS),
        Adversarial([[1, 2]], periodic=True),
        Switching([[0.2, 0.7], [0.1, 0.3]], [4]),
        Switching([[0.2, 7.0], [0.1, 0.3]], np.array([4]), [0.0, 2.0]),  # type: ignore[arg-type]
        AdaptiveAdversary(3),
        AdaptiveAdversary(3, 2, -0.5),
    ],
    ids=repr,
)
def test_dict_forms_lead_back_to_the_law(law: Arms) -> None:
    again = from_dict(json.loads(json.dumps(law.to_dict())))
    assert again == law
    assert eval(repr(law)) == law
    assert type(again) is type(law)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Adversarial([]), ValueError, "`table` must be a non-empty table of numbers"),
        (lambda: Adversarial([0.5, 1]), ValueError, "`table` must be a non-empty table"),
        (lambda: Adversarial([[0.5], [1.0, 2.0]]), ValueError, "in rows of one length"),
        (lambda: Adversarial([["a"]]), TypeError, "`table` must be a non-empty table"),
        (lambda: Adversarial([[1.0, 2.0], [3.0, np.nan]]), ValueError, "got nan at index (1, 1)"),
        (lambda: Adversarial([[1]], periodic=1), TypeError, "`periodic` must be a bool"),  # type: ignore[arg-type]
        (lambda: Switching([[0.5], [1.5]], [3]), ValueError, "`means` must lie in [0, 1]"),
        (lambda: Switching([[0.5]], [3]), ValueError, "one entry less than `means` has rows, 0"),
        (lambda: Switching([[0.5], [1.0]], [0]), ValueError, "`switches[0]` must be at least 1"),
        (
            lambda: Switching([[0], [1], [0]], [3, 3]),
            ValueError,
            "`switches[1]` must be at least 4",
        ),
        (lambda: Switching([[0], [1]], [2.5]), TypeError, "`switches[0]` must be an integer"),  # type: ignore[list-item]
        (lambda: Switching([[0], [1]], "2"), TypeError, "`switches` must be a sequence"),  # type: ignore[arg-type]
        (lambda: Switching([[0, 1], [1, 0]], [2], -1), ValueError, "`std` must be at least 0"),
        (lambda: Switching([[0, 1], [1, 0]], [2], [1]), ValueError, "one number or one per arm"),
        (lambda: AdaptiveAdversary(0), ValueError, "`num_arms` must be at least 1"),
        (lambda: AdaptiveAdversary(3, 4), ValueError, "`num_paying` must be at most 3"),
        (lambda: AdaptiveAdversary(3, 1, np.inf), ValueError, "`reward` must be finite"),
    ],
)
def test_wrong_parameters_are_refused(
    build: Callable[[], Arms], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        build()


# --- The account ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_users", "capacity"), [(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (6, 3)]
)
def test_the_benchmark_is_the_best_set_by_brute_force(num_users: int, capacity: int) -> None:
    """Over all sets of slots, in exact arithmetic, on random tables of sixteenths."""
    rng = np.random.default_rng(num_users + 10 * capacity)
    for _ in range(20):
        table = rng.integers(-4, 17, size=(6, 4))
        totals = [Fraction(int(total), 16) for total in table.sum(axis=0)]
        slots = [arm for arm in range(4) for _ in range(capacity)]
        best = max(
            sum((totals[arm] for arm in chosen), Fraction(0))
            for chosen in itertools.combinations(slots, num_users)
        )
        value = best_fixed_set_optimum(table.sum(axis=0) / 16, num_users, capacity)
        assert value == pytest.approx(float(best / num_users), rel=1e-15, abs=1e-15)


def test_an_episode_on_a_table_worked_by_hand() -> None:
    env = make(Adversarial(ROWS), num_users=2, horizon=5)
    actions = iter([[1, 0], [1, 0], [2, 3], [0, 1], [3, 2]])
    info = final_metrics(env, lambda observation: next(actions))
    # User 0: 8 + 1 + 8 + 0 + 8; user 1: 4 + 16 + 8 + 16 + 0, in sixteenths.
    assert info["expected_user_returns"].tolist() == [25 / 16, 44 / 16]
    assert info["expected_return"] == 25 / 16
    # The columns' totals are 30, 27, 15 and 22.
    assert info["optimal_return"] == 57 / 32
    assert info["policy_regret"] == 57 / 32 - 25 / 16
    assert info["realized_regret"] == info["policy_regret"]
    bandit = env.unwrapped
    # After 3 rows the totals are 22, 11, 11 and 13; after 1 row 4, 8, 0 and 2.
    assert [bandit.optimal_return(steps) for steps in (0, 1, 3, 5)] == [
        0,
        12 / 32,
        35 / 32,
        57 / 32,
    ]
    assert bandit.optimal_slots().tolist() == [0, 1]
    assert bandit.optimal_slots(3).tolist() == [0, 3]
    with pytest.raises(ValueError, match="`table` must have a row for every step"):
        bandit.optimal_return(6)


def test_who_follows_the_changes_beats_the_best_fixed_set() -> None:
    """Each arm pays in one half: together 8 steps of 1, where the best fixed arm has 4."""
    env = make(Switching([[1, 0], [0, 1]], [4]), num_users=1, horizon=8)
    info = final_metrics(env, lambda observation: [int(observation["pulls"].sum() >= 4)])
    assert (info["expected_return"], info["optimal_return"]) == (8.0, 4.0)
    assert info["policy_regret"] == -4.0


def test_expected_returns_of_switching_means_do_not_follow_the_noise() -> None:
    means = [[0.25, 0.5, 0.75], [1.0, 0.5, 0.0]]
    for std in (None, 2.0):
        env = make(Switching(means, [3], std), num_users=2, horizon=5)
        for seed in range(3):
            info = final_metrics(env, lambda observation: [0, 2], seed)
            assert info["expected_user_returns"].tolist() == [2.75, 2.25]
            assert info["optimal_return"] == (2.75 + 2.5) / 2  # totals 2.75, 2.5 and 2.25
        assert env.unwrapped.optimal_return(100) == (97.75 + 50) / 2
        assert env.unwrapped.optimal_return(3) == (2.25 + 1.5) / 2


def test_who_keeps_to_a_set_starves_under_the_adaptive_adversary() -> None:
    """Arms 0 and 1 pay once; then 2 and 3 pay, and nobody is there."""
    env = make(AdaptiveAdversary(4, 2), num_users=2, horizon=100)
    info = final_metrics(env, lambda observation: [0, 1])
    assert info["expected_return"] == 1.0
    assert info["optimal_return"] == 99.0
    bandit = env.unwrapped
    assert bandit.optimal_return(100) == 99.0
    with pytest.raises(NotImplementedError, match="its totals over 50 steps are known only of"):
        bandit.optimal_return(50)
    with pytest.raises(NotImplementedError, match="depends on what is played"):
        bandit.optimal_slots()


@pytest.mark.parametrize("num_users", [1, 2, 3])
def test_the_adaptive_adversary_starves_who_stays_and_not_who_explores(num_users: int) -> None:
    """Means over ten seeds for the random agent, whose users expect num_paying / K per step."""

    def earned(policy: Callable[[Any], Any], seed: int = 0) -> float:
        env = make(AdaptiveAdversary(5, 2), num_users=num_users, horizon=600)
        return float(final_metrics(env, policy, seed)["expected_return"])

    random = agents.UniformRandom()
    random.reset(seed=3)
    by_chance = float(np.mean([earned(random.act, seed) for seed in range(10)]))
    assert 0.8 * 240 < by_chance < 1.05 * 240
    assert earned(lambda observation: list(range(num_users))) <= 2.0
    assert earned(agents.EgalUCB().act) > by_chance


def next_of_row(actions: Iterator[Ints], row: int, observation: Any) -> Ints:
    return np.asarray(next(actions)[row])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_autoreset_mode_reports_each_episodes_own_regret(mode: AutoresetMode) -> None:
    """Rows of every kind of law, against scalar environments that play the same actions."""
    laws: list[Arms] = [
        Adversarial(ROWS, periodic=True),
        Switching([[0.9, 0.1, 0.5, 0.3], [0.2, 0.8, 0.4, 0.6]], [3]),
        AdaptiveAdversary(4, 2, 0.7),
        Bernoulli([0.9, 0.1, 0.5, 0.3]),
    ]
    settings: dict[str, Any] = {"num_users": 2, "num_arms": 4, "horizon": 6}
    envs: Any = VectorPolicyRegret(gym.make_vec(EGAL, num_envs=4, autoreset_mode=mode, **settings))
    envs.reset(seed=5, options={"instances": laws})
    rng = np.random.default_rng(1)
    actions = [np.array([rng.permutation(4)[:2] for _ in laws]) for _ in range(6)]
    for action in actions:
        infos = envs.step(action)[4]
    at_end = envs.unwrapped.optimal_return(6, rows=np.array([True, True, False, True]))
    for row, law in enumerate(laws):
        played = iter(actions)
        env = make(law, num_users=2, horizon=6)
        info = final_metrics(env, partial(next_of_row, played, row), 5 + row)
        for key in ("policy_regret", "optimal_return", "expected_return", "realized_regret"):
            assert infos[key][row] == info[key]
        assert (
            infos["expected_user_returns"][row].tolist() == info["expected_user_returns"].tolist()
        )
        if row != 2:
            assert at_end[row - (row > 2)] == env.unwrapped.optimal_return(6)


def test_a_batch_forgets_the_account_of_an_episode_when_the_next_begins() -> None:
    law = Adversarial(ROWS)
    envs: Any = gym.make_vec(
        EGAL, num_envs=2, instance=law, num_users=2, horizon=5, autoreset_mode="SameStep"
    )
    envs.reset(seed=0)
    for _ in range(5):
        envs.step([[0, 1], [2, 3]])
    assert envs.expected_return().tolist() == [27 / 16, 15 / 16]
    assert envs.optimal_return().tolist() == [57 / 32, 57 / 32]
    envs.step([[0, 1], [2, 3]])
    assert envs.expected_return().tolist() == [4 / 16, 0.0]
    assert envs.optimal_return().tolist() == [12 / 32, 12 / 32]


# --- Oracles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("limit", [None, 3])
def test_oracles_play_the_best_fixed_set_of_the_episodes_length(
    batch: bool, limit: int | None
) -> None:
    settings: dict[str, Any] = {"instance": Adversarial(ROWS), "num_users": 2, "horizon": 5}
    env: Any
    if batch:
        env = gym.make_vec(EGAL, num_envs=2, max_episode_steps=limit, **settings)
    else:
        env = gym.make(EGAL, max_episode_steps=limit, **settings)
    observation, _ = env.reset(seed=0)
    expected = [0, 1] if limit is None else [0, 3]
    for oracle in (agents.StaticOracle(env), agents.OracleRotation(env)):
        action = np.atleast_2d(oracle.act(observation))
        assert action.tolist() == [expected] * (2 if batch else 1)


def test_a_rotation_over_the_best_fixed_set_shares_it_where_the_table_has_no_rhythm() -> None:
    """Blocks of constant rows: every user has every arm once in each."""
    table = np.repeat(np.array(ROWS), 2, axis=0)
    env = make(Adversarial(table), num_users=2, horizon=10)
    info = final_metrics(env, agents.OracleRotation(env).act)
    assert info["policy_regret"] == 0.0
    static = make(Adversarial(table), num_users=2, horizon=10)
    info = final_metrics(static, agents.StaticOracle(static).act)
    assert info["policy_regret"] == pytest.approx((60 - 54) / 32)


@pytest.mark.parametrize("oracle", [agents.OracleRotation, agents.StaticOracle])
def test_no_oracle_foresees_an_adaptive_adversary(oracle: Any) -> None:
    env = gym.make(EGAL, instance=AdaptiveAdversary(4), num_users=2)
    observation, _ = env.reset(seed=0)
    with pytest.raises(NotImplementedError, match="AdaptiveAdversary pays depends on what"):
        oracle(env).act(observation)
