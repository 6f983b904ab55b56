"""Arms that vary, the best fixed set as their benchmark, and the agents made for adversaries."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import agents
from gym_fairbandits.agents.adversarial import (
    birkhoff,
    capped_simplex,
    sinkhorn,
    systematic_sample,
)
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
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EGAL = "EgalAssign-v0"
DATA: Any = json.loads((Path(__file__).parent / "data" / "adversarial.json").read_text("utf-8"))

# Sixteenths: sums of few of them are exact.
TABLE = [[4, 8, 0, 2], [16, 1, 3, 3], [2, 2, 8, 8], [0, 16, 4, 1], [8, 0, 0, 8]]
ROWS = (np.array(TABLE) / 16).tolist()
LEARNERS: dict[str, Callable[..., agents.RotatingAgent]] = {
    "ComponentHedge": agents.ComponentHedge,
    "PermELearn": agents.PermELearn,
}
each_learner = pytest.mark.parametrize("name", list(LEARNERS))


def pay(law: Arms, arms: list[int], step: int, pulls: list[int], draws: Any = 0.0) -> list[float]:
    """Return what users on ``arms`` earn."""
    users = np.array(arms, dtype=np.int64)
    given = np.broadcast_to(np.asarray(draws, dtype=np.float64), users.shape)
    paid: list[float] = law.rewards(users, given, step, np.array(pulls)).tolist()
    return paid


def make(law: Any, num_users: int, horizon: int, **kwargs: Any) -> Any:
    return PolicyRegret(
        gym.make(EGAL, instance=law, num_users=num_users, horizon=horizon, **kwargs)
    )


def final_metrics(env: Any, policy: Callable[[Any], Any], seed: int = 0) -> dict[str, Any]:
    """Play one episode; return its last info."""
    info: dict[str, Any]
    observation, info = env.reset(seed=seed)
    done = False
    while not done:
        observation, _, terminated, truncated, info = env.step(policy(observation))
        done = terminated or truncated
    return info


# --- Laws ---------------------------------------------------------------------------------------


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


# --- The account --------------------------------------------------------------------------------


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


# --- Oracles ------------------------------------------------------------------------------------


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


# --- Projection, sampling, matrices -------------------------------------------------------------


@pytest.mark.parametrize("case", DATA["capped_simplex_projection"], ids=str)
def test_projections_onto_the_capped_simplex(case: dict[str, Any]) -> None:
    weights = np.array(case["w"], dtype=np.float64)
    assert_allclose(capped_simplex(weights, case["U"]), case["out"], rtol=1e-15)
    assert_allclose(capped_simplex(weights / 7, case["U"]), case["out"], rtol=1e-14)


def test_the_projection_caps_and_rescales_until_nothing_exceeds_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        total = int(rng.integers(1, size + 1))
        weights = np.exp(rng.normal(scale=rng.choice([0.1, 1, 5]), size=size))
        free = np.ones(size, dtype=np.bool_)
        expected = np.ones(size)
        while free.any():
            left = total - (size - free.sum())
            expected[free] = weights[free] * left / weights[free].sum()
            above = free & (expected > 1 + 1e-12)
            expected[above] = 1.0
            free &= ~above
            if not above.any():
                break
        projected = capped_simplex(weights, total)
        assert_allclose(projected, np.minimum(expected, 1), rtol=1e-10)
        assert projected.sum() == pytest.approx(total, rel=1e-13)
        assert projected.max() <= 1.0
        both = capped_simplex(np.stack([weights, weights[::-1]]), total)
        assert both[0].tolist() == projected.tolist()


def test_the_projection_is_the_nearest_point_in_relative_entropy() -> None:
    """No feasible point on a fine grid is nearer, K = 3 and U = 2."""
    weights = np.array([3.0, 0.9, 0.2])

    def divergence(point: Floats) -> Floats:
        total: Floats = (point * np.log(point / weights) - point + weights).sum(axis=-1)
        return total

    grid = np.linspace(0.005, 1, 200)
    first, second = np.meshgrid(grid, grid)
    points = np.stack([first, second, 2 - first - second], axis=-1).reshape(-1, 3)
    points = points[(points[:, 2] > 0) & (points[:, 2] <= 1)]
    assert divergence(capped_simplex(weights, 2)) <= divergence(points).min() + 1e-12


@pytest.mark.parametrize(
    ("chances", "count"),
    [
        ([0.5, 0.5, 0.5, 0.5], 2),
        ([1.0, 0.25, 0.5, 0.25], 2),
        ([0.125, 1.0, 0.75, 0.625, 0.5], 3),
        ([1.0, 1.0], 2),
        ([0.0625, 0.9375], 1),
    ],
)
def test_systematic_samples_have_exactly_their_chances(chances: list[float], count: int) -> None:
    """Integrated over the point: between two fractional ends of intervals nothing changes."""
    exact = [Fraction(chance) for chance in chances]
    breaks = sorted({total % 1 for total in itertools.accumulate(exact)} | {Fraction(0)})
    measured = [Fraction(0)] * len(chances)
    for low, high in itertools.pairwise([*breaks, Fraction(1)]):
        for point in (low, (low + high) / 2):  # the left end belongs to the interval
            drawn = systematic_sample(np.array(chances), count, float(point)).tolist()
            assert len(set(drawn)) == count
            assert drawn == sorted(drawn)
        for place in drawn:
            measured[place] += high - low
    assert measured == exact


def test_systematic_samples_are_distinct_and_complete_whatever_is_rounded() -> None:
    rng = np.random.default_rng(2)
    points = [0.0, np.nextafter(1.0, 0.0), *rng.random(20)]
    for _ in range(100):
        size = int(rng.integers(1, 30))
        count = int(rng.integers(1, size + 1))
        weights = np.exp(rng.normal(scale=rng.choice([1, 10]), size=size))
        chances = capped_simplex(weights, count)
        for point in points:
            drawn = systematic_sample(chances, count, float(point))
            assert len(set(drawn.tolist())) == count
            assert drawn.min() >= 0
            assert drawn.max() < size


@pytest.mark.parametrize("case", DATA["sinkhorn"], ids=["three", "two"])
def test_sinkhorn_scalings(case: dict[str, Any]) -> None:
    matrix = np.array(case["M"])
    scaled = sinkhorn(matrix)
    assert_allclose(scaled, case["out"], atol=1e-9)
    assert_allclose(sinkhorn(matrix, 1e-13), case["out"], atol=1e-13)
    # diag(a) matrix diag(b): the ratios to the matrix have rank one.
    ratios = scaled / matrix
    assert_allclose(ratios, np.outer(ratios[:, 0], ratios[0]) / ratios[0, 0], rtol=1e-12)


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_sinkhorn_sums_are_within_the_tolerance(spread: float) -> None:
    rng = np.random.default_rng(4)
    for size in (1, 2, 5, 12):
        scaled = sinkhorn(np.exp(rng.normal(scale=spread, size=(size, size))))
        assert np.abs(scaled.sum(axis=0) - 1).max() <= 1.01e-9
        assert np.abs(scaled.sum(axis=1) - 1).max() <= 1.01e-9


def test_a_sinkhorn_scaling_of_two_by_two_is_known() -> None:
    """With a d / (b c) = r the diagonal is sqrt(r) / (1 + sqrt(r)), also for r = 10^12."""
    for ratio in (1.0, 4.0, 1e4, 1e8, 1e12):
        scaled = sinkhorn(np.array([[1.0, 1.0], [1 / ratio, 1.0]]))
        root = np.sqrt(ratio)
        assert_allclose(scaled[0], [root / (1 + root), 1 / (1 + root)], rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 10])
def test_a_birkhoff_decomposition_adds_up_to_the_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    mixture = np.zeros((size, size))
    for share in rng.dirichlet(np.ones(4)):
        mixture[np.arange(size), rng.permutation(size)] += share
    for matrix in (
        np.full((size, size), 1 / size),
        np.eye(size),
        mixture,
        sinkhorn(rng.random((size, size)) + 0.01),
    ):
        total, added, terms = 0.0, np.zeros((size, size)), 0
        for weight, columns in birkhoff(matrix):
            assert weight > 0
            assert sorted(columns.tolist()) == list(range(size))
            added[np.arange(size), columns] += weight
            total, terms = total + weight, terms + 1
        assert_allclose(added, matrix, atol=1e-8)
        assert total == pytest.approx(1, abs=1e-8)
        assert terms <= size**2 - 2 * size + 2


# --- Agents -------------------------------------------------------------------------------------


@each_learner
def test_learners_leave_an_arm_that_pays_nothing(name: str) -> None:
    """At a huge rate one block of the bad arm is enough; the others pay 1 and lose nothing."""
    first = []
    for seed in range(20):
        agent = LEARNERS[name](eta=1e6)
        agent.reset(seed=seed)
        env = make(Gaussian([1.0, 1.0, 0.0], 0.0), num_users=2, horizon=40)
        played: list[bool] = []

        def act(observation: Any, agent: Any = agent, played: Any = played) -> Any:
            action = agent.act(observation)
            played.append(2 in action.tolist())
            return action

        info = final_metrics(env, act)
        first.append(played[0])
        bad = sum(played)
        assert bad in (0, 2) if name == "ComponentHedge" else bad <= 4
        assert info["policy_regret"] == pytest.approx(bad / 2)
    assert 5 <= sum(first) <= 20  # the chance is 2/3


def test_component_hedge_is_its_pseudocode() -> None:
    """The same draws, and weights kept by the loops of the pseudocode."""
    horizon, num_users, num_arms = 60, 2, 5
    rate = np.sqrt(2 * num_users * np.log(num_arms / num_users) / (num_arms * 30))
    rng = np.random.default_rng(8)
    table = rng.random((7, num_arms))
    env = make(Adversarial(table, periodic=True), num_users, horizon)
    agent = agents.ComponentHedge(horizon=horizon)
    agent.reset(seed=8)
    observation, _ = env.reset(seed=0)
    draws = np.random.default_rng(8)
    weights = [num_users / num_arms] * num_arms
    for block in range(horizon // num_users):
        order = draws.permutation(num_arms).tolist()
        point = draws.random()
        chosen, end = [], 0.0
        for arm in order:
            before, end = end, end + weights[arm]
            if int(np.ceil(end - point)) > int(np.ceil(before - point)):
                chosen.append(arm)
        slots = draws.permutation(chosen).tolist()
        rewards = dict.fromkeys(chosen, 0.0)
        for place in range(num_users):
            action = agent.act(observation).tolist()
            assert action == [slots[(user - place) % num_users] for user in range(num_users)]
            for arm in chosen:
                rewards[arm] += float(table[(block * num_users + place) % 7, arm])
            observation = env.step(action)[0]
        for arm in chosen:
            weights[arm] *= np.exp(-rate * (1 - rewards[arm] / num_users) / weights[arm])
        capped: set[int] = set()
        while True:
            free = [arm for arm in range(num_arms) if arm not in capped]
            scale = (num_users - len(capped)) / sum(weights[arm] for arm in free)
            over = [arm for arm in free if weights[arm] * scale > 1]
            if not over:
                break
            capped |= set(over)
        weights = [1.0 if arm in capped else weights[arm] * scale for arm in range(num_arms)]


@each_learner
@pytest.mark.parametrize("known", [False, True])
def test_batched_act_is_the_act_of_each_row(name: str, known: bool) -> None:
    """Rows of which some begin anew in between; seeds s, s + 1, s + 2 for single agents."""
    build = partial(LEARNERS[name], horizon=None if known else 12)
    settings: dict[str, Any] = {
        "num_users": 3,
        "num_arms": 5,
        "horizon": 12,
        "horizon_known": known,
        "autoreset_mode": AutoresetMode.DISABLED,
    }
    envs: Any = gym.make_vec(EGAL, num_envs=3, **settings)
    batch = build()
    batch.reset(seed=20)
    singles = [build() for _ in range(3)]
    for row, single in enumerate(singles):
        single.reset(seed=20 + row)
    observations, _ = envs.reset(seed=3)
    for step in range(12):
        if step == 7:  # in the middle of a block
            mask = np.array([False, True, False])
            observations, _ = envs.reset(options={"reset_mask": mask})
        actions = batch.act(observations)
        for row, single in enumerate(singles):
            alone = single.act({key: value[row] for key, value in observations.items()})
            assert actions[row].tolist() == alone.tolist()
        observations = envs.step(actions)[0]


@each_learner
def test_a_new_episode_is_noticed(name: str) -> None:
    """The second episode equals the first of an agent whose generator has come as far."""
    agent = LEARNERS[name](eta=0.5)
    agent.reset(seed=1)
    twin = LEARNERS[name](eta=0.5)
    env = make("bernoulli", num_users=2, num_arms=4, horizon=31)
    final_metrics(env, agent.act, seed=0)
    twin.reset(seed=1)
    final_metrics(env, twin.act, seed=0)
    twin.reset()  # forgets all, and lets the generator run on
    actions: list[list[Any]] = [[], []]
    for player, log in zip((agent, twin), actions, strict=True):

        def act(observation: Any, player: Any = player, log: list[Any] = log) -> Any:
            log.append(player.act(observation).tolist())
            return log[-1]

        final_metrics(env, act, seed=9)
    assert actions[0] == actions[1]


@each_learner
def test_asked_twice_within_a_block_the_answer_stands(name: str) -> None:
    env = make("bernoulli", num_users=3, num_arms=6, horizon=30)
    agent, twin = (LEARNERS[name](horizon=30) for _ in range(2))
    for player in (agent, twin):
        player.reset(seed=2)
    observation, _ = env.reset(seed=2)
    for step in range(30):
        action = agent.act(observation)
        if step:  # at step 0 an episode is new each time
            assert agent.act(observation).tolist() == action.tolist()
        assert twin.act(observation).tolist() == action.tolist()
        observation = env.step(action)[0]


@each_learner
def test_the_horizon_is_observed_or_told_or_not_needed(name: str) -> None:
    build = LEARNERS[name]
    settings: dict[str, Any] = {"num_users": 2, "num_arms": 4, "horizon": 20}
    blind, seeing = gym.make(EGAL, **settings), gym.make(EGAL, horizon_known=True, **settings)
    unseen, _ = blind.reset(seed=0)
    with pytest.raises(ValueError, match="`horizon` must be given where the observation"):
        build().act(unseen)
    assert sorted(build(eta=0.1).act(unseen).tolist())[0] >= 0
    actions: list[list[Any]] = []
    for env, agent in [(blind, build(horizon=20)), (seeing, build())]:
        agent.reset(seed=4)
        log: list[Any] = []

        def act(observation: Any, agent: Any = agent, log: list[Any] = log) -> Any:
            log.append(agent.act(observation).tolist())
            return log[-1]

        final_metrics(PolicyRegret(env), act, seed=4)
        actions.append(log)
    assert actions[0] == actions[1]


@each_learner
def test_wrong_agent_parameters_are_refused(name: str) -> None:
    build = LEARNERS[name]
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"eta": -0.1}, ValueError, "`eta` must be at least 0"),
        ({"eta": "1"}, TypeError, "`eta` must be a real number"),
        ({"horizon": 0}, ValueError, "`horizon` must be at least 1"),
        ({"horizon": 2.0}, TypeError, "`horizon` must be an integer"),
        ({"capacity": 0}, ValueError, "`capacity` must be at least 1"),
    ]
    for kwargs, error, message in cases:
        with pytest.raises(error, match=message):
            build(**kwargs)


@each_learner
def test_all_arms_and_one_arm_are_played_too(name: str) -> None:
    for num_arms, num_users, capacity in [(3, 3, 1), (1, 1, 1), (2, 4, 2), (5, 4, 2)]:
        env = make(
            "bernoulli", num_users=num_users, num_arms=num_arms, capacity=capacity, horizon=13
        )
        agent = LEARNERS[name](horizon=13, capacity=capacity)
        agent.reset(seed=0)
        info = final_metrics(env, agent.act)
        assert info["policy_regret"] > -1e-9
        assert env.unwrapped.pulls.sum() == 13 * num_users // capacity


@each_learner
def test_rewards_of_any_size_do_no_harm(name: str) -> None:
    """Huge gains and losses; warnings, such as of an overflow, are errors."""
    agent = LEARNERS[name](eta=10.0)
    agent.reset(seed=0)
    env = make(Gaussian([1e9, -1e9, 0.0, 3.0], 1e8), num_users=2, horizon=60)
    assert np.isfinite(final_metrics(env, agent.act)["policy_regret"])


def regrets(agent: agents.Agent, law: Arms, num_users: int, horizon: int, rows: int) -> Floats:
    envs: Any = VectorPolicyRegret(
        gym.make_vec(EGAL, num_envs=rows, instance=law, num_users=num_users, horizon=horizon)
    )
    agent.reset(seed=0)
    observations, infos = envs.reset(seed=0)
    for _ in range(horizon):
        observations, _, _, _, infos = envs.step(agent.act(observations))
    values: Floats = infos["policy_regret"]
    return values


@each_learner
def test_learners_beat_uniform_random_on_a_biased_table(name: str) -> None:
    """An adversary in blocks of 40 steps: two good arms of six, which the others outdo at times."""
    rng = np.random.default_rng(5)
    table = np.repeat(rng.random((10, 6)) * [1, 1, 0.5, 0.5, 0.5, 0.5], 40, axis=0)
    table[:, :2] = np.minimum(table[:, :2] + 0.35, 1)
    law = Adversarial(table, periodic=True)
    learned = regrets(LEARNERS[name](horizon=1200), law, 2, 1200, 4)
    random = regrets(agents.UniformRandom(), law, 2, 1200, 4)
    assert learned.max() < 0.6 * random.min()
    bound = np.sqrt(2 * 6 * 1200 * np.log(3)) if name == "ComponentHedge" else np.inf
    assert learned.mean() < bound


@each_learner
def test_no_user_is_better_off_even_against_a_table_with_the_blocks_rhythm(name: str) -> None:
    """Only every second step pays, and one arm more than the other.

    Rotation in a fixed order always has the same user on that arm then. In a random order both
    users expect the same.
    """
    law = Adversarial([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], periodic=True)
    rows, horizon = 400, 16
    envs: Any = gym.make_vec(EGAL, num_envs=rows, instance=law, num_users=2, horizon=horizon)
    agent = LEARNERS[name](horizon=horizon)
    agent.reset(seed=0)
    observations, _ = envs.reset(seed=0)
    for _ in range(horizon):
        observations = envs.step(agent.act(observations))[0]
    totals = envs.expected_user_returns()
    gaps = totals[:, 0] - totals[:, 1]
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(rows)
    assert totals.mean() > 2  # of 4, the benchmark; a random set of two has 8 * 2/3 / 2 = 2.67
    env = make(law, num_users=2, horizon=horizon)
    info = final_metrics(env, agents.OracleRotation(env).act)
    assert info["expected_user_returns"].tolist() == [8.0, 0.0]


@pytest.mark.slow
def test_component_hedge_keeps_its_bound_where_the_good_arms_switch() -> None:
    """Regret against the best fixed set stays below sqrt(2 K T ln(K / U)) per user."""
    means = np.full((4, 8), 0.3)
    for segment in range(4):
        means[segment, [segment, (segment + 1) % 4, 7]] = 0.8
    law = Switching(means, [1000, 2000, 3000])
    learned = regrets(agents.ComponentHedge(horizon=4000), law, 2, 4000, 6)
    random = regrets(agents.UniformRandom(), law, 2, 4000, 6)
    assert learned.mean() < np.sqrt(2 * 8 * 4000 * np.log(4))
    assert learned.mean() < 0.7 * random.mean()
