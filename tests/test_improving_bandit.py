"""ImprovingBandit-v0 against episodes worked by hand, exact rationals and reconstructed draws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_envs import MIXED, PEAKED, drawn_tables
from helpers_names import IMPROVING, Kwargs
from helpers_play import Player, assert_identical, play, random_states, worth

from gym_fairbandits.curves import Constant, Curve, LinearCap, Tabulated
from gym_fairbandits.envs import ImprovingBanditEnv

# Every value below is a sum of powers of two: floating point makes no error.
EXACT: list[Any] = [
    LinearCap(1.0, 4),  # 1/4, 1/2, 3/4, 1, 1, ...
    Constant(0.5),
    {"family": "tabulated", "values": [0.125, 0.25, 0.3125]},
]


def make(**kwargs: Any) -> Any:
    return gym.make(IMPROVING, **kwargs)


# --- Episodes by hand ---------------------------------------------------------------------------

# action, reward, pulls, reward_sum, last_reward, last_increment
EPISODE: list[tuple[int, float, list[int], list[float], list[float], list[float]]] = [
    (0, 0.25, [1, 0, 0], [0.25, 0, 0], [0.25, 0, 0], [0, 0, 0]),
    (0, 0.5, [2, 0, 0], [0.75, 0, 0], [0.5, 0, 0], [0.25, 0, 0]),
    (2, 0.125, [2, 0, 1], [0.75, 0, 0.125], [0.5, 0, 0.125], [0.25, 0, 0]),
    (1, 0.5, [2, 1, 1], [0.75, 0.5, 0.125], [0.5, 0.5, 0.125], [0.25, 0, 0]),
    (1, 0.5, [2, 2, 1], [0.75, 1.0, 0.125], [0.5, 0.5, 0.125], [0.25, 0, 0]),
    (2, 0.25, [2, 2, 2], [0.75, 1.0, 0.375], [0.5, 0.5, 0.25], [0.25, 0, 0.125]),
    (0, 0.75, [3, 2, 2], [1.5, 1.0, 0.375], [0.75, 0.5, 0.25], [0.25, 0, 0.125]),
    (2, 0.3125, [3, 2, 3], [1.5, 1.0, 0.6875], [0.75, 0.5, 0.3125], [0.25, 0, 0.0625]),
    (0, 1.0, [4, 2, 3], [2.5, 1.0, 0.6875], [1.0, 0.5, 0.3125], [0.25, 0, 0.0625]),
    (0, 1.0, [5, 2, 3], [3.5, 1.0, 0.6875], [1.0, 0.5, 0.3125], [0.0, 0, 0.0625]),
    (2, 0.3125, [5, 2, 4], [3.5, 1.0, 1.0], [1.0, 0.5, 0.3125], [0.0, 0, 0.0]),
]
# max over the arms of 1/4 + 1/2 + 3/4 + 1 + 1 ..., n/2 and 1/8 + 1/4 + 5/16 + 5/16 ...
OPTIMA = [0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5]
OPTIMAL_ARMS = [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("known", [False, True])
def test_an_episode_worked_by_hand(known: bool) -> None:
    env = make(instance=EXACT, horizon=len(EPISODE), horizon_known=known)
    bandit = env.unwrapped
    for _ in range(2):
        observation, info = env.reset(seed=0)
        zeros = [0.0, 0.0, 0.0]
        expected: dict[str, Any] = {
            "pulls": [0, 0, 0],
            "reward_sum": zeros,
            "last_reward": zeros,
            "last_increment": zeros,
            **({"remaining": [len(EPISODE)]} if known else {}),
        }
        assert {key: value.tolist() for key, value in observation.items()} == expected
        assert info == {}
        assert worth(env, 12) == {
            "expected": 0.0,
            "realized": 0.0,
            "optimal": 0.0,
            "optimal_of": 10.5,
        }
        earned = 0.0
        for step, (arm, pays, pulls, sums, last, rise) in enumerate(EPISODE, start=1):
            observation, reward, terminated, truncated, info = env.step(arm)
            earned += pays
            expected = {
                "pulls": pulls,
                "reward_sum": sums,
                "last_reward": last,
                "last_increment": rise,
                **({"remaining": [len(EPISODE) - step]} if known else {}),
            }
            assert {key: value.tolist() for key, value in observation.items()} == expected
            assert (reward, info) == (pays, {})
            over = step == len(EPISODE)
            assert (terminated, truncated) == (over and known, over and not known)
            assert bandit.steps == step
            assert bandit.expected_return() == bandit.realized_return() == earned == sum(sums)
            assert bandit.optimal_return() == OPTIMA[step]


def test_optima_of_any_length_by_hand_at_any_moment() -> None:
    env = make(instance=EXACT, horizon=5)
    env.reset(seed=0)
    for arm in (None, 2, 2, 1):
        if arm is not None:
            env.step(arm)
        assert [env.unwrapped.optimal_return(steps) for steps in range(12)] == OPTIMA
        assert [env.unwrapped.optimal_arm(steps) for steps in range(12)] == OPTIMAL_ARMS
        assert env.unwrapped.optimal_arm() == OPTIMAL_ARMS[5]
        assert env.unwrapped.optimal_return(10**9) == 10**9 - 1.5


@pytest.mark.parametrize("steps", [-1, 2.0, True, "3"])
def test_optima_of_impossible_lengths_are_refused(steps: Any) -> None:
    env = make(instance=EXACT)
    env.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match="`steps` must be"):
        env.unwrapped.optimal_return(steps)


def test_figure_1_by_exact_rationals() -> None:
    # min(n/4, 1/2) against min(n/40, 1): the late bloomer overtakes at T = 60 or so.
    def pays(arm: int, pull: int) -> Fraction:
        return [min(Fraction(pull, 4), Fraction(1, 2)), min(Fraction(pull, 40), Fraction(1))][arm]

    env = make(instance="early_vs_late", horizon=120)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    pulls = [0, 0]
    earned = Fraction(0)
    for step in range(1, 121):
        arm = int(rng.random() < 0.6)
        pulls[arm] += 1
        reward = env.step(arm)[1]
        assert reward == float(pays(arm, pulls[arm]))
        earned += pays(arm, pulls[arm])
        totals = [sum((pays(i, n) for n in range(1, step + 1)), Fraction(0)) for i in (0, 1)]
        assert env.unwrapped.optimal_return() == pytest.approx(float(max(totals)), rel=1e-13)
        assert env.unwrapped.optimal_arm(step) == totals.index(max(totals))
        assert env.unwrapped.expected_return() == pytest.approx(float(earned), rel=1e-13)
    assert min(pulls) >= 40


@pytest.mark.parametrize(
    ("instance", "num_arms", "rows"),
    [
        (
            {"name": "lower_bound", "late": 1},  # N = ceil(20/3) = 7
            3,
            [[Fraction(n, 21) for n in (1, 2, 3, 4, 5, 6, 7, 7)]] * 3,
        ),
        (
            {"name": "lower_bound", "late": 0, "printing": "appendix"},
            3,
            [[Fraction(n, 20) for n in (1, 2, 3, 4, 5, 6)] + [Fraction(1, 3)] * 2] * 3,
        ),
        ("round_robin_trap", 3, [[Fraction(0)] * 8] * 3),
        (
            "policy_vs_external",
            None,
            [[Fraction(n, 10) for n in range(1, 9)], [Fraction(1, 10)] * 8],
        ),
    ],
)
def test_the_papers_instances_pay_what_is_printed(
    instance: Any, num_arms: int | None, rows: list[list[Fraction]]
) -> None:
    name = instance if isinstance(instance, str) else instance["name"]
    rows = [list(row) for row in rows]
    if name == "lower_bound":
        scale = 20 if "printing" in instance else 21
        rows[instance["late"]] = [Fraction(n, scale) for n in range(1, 9)]
    if name == "round_robin_trap":
        rows[-1] = [Fraction(n, 20) for n in range(1, 9)]
    env = make(instance=instance, num_arms=num_arms, horizon=20)
    for arm, row in enumerate(rows):
        env.reset(seed=0)
        for value in row:
            assert env.step(arm)[1] == pytest.approx(float(value), rel=1e-15, abs=0)


def test_the_horizon_is_the_default_of_steps_and_can_be_overridden() -> None:
    own = make(instance={"name": "round_robin_trap", "steps": 8}, num_arms=2, horizon=20)
    default = make(instance="round_robin_trap", num_arms=2, horizon=4)
    own.reset(seed=0)
    default.reset(seed=0)
    assert own.step(1)[1] == 0.125
    assert default.step(1)[1] == 0.25


# --- Noise --------------------------------------------------------------------------------------


def test_noise_is_one_standard_normal_per_step_of_the_environments_stream() -> None:
    env = make(instance=EXACT, noise_std=0.75, horizon=130)
    env.reset(seed=42)
    draws = np.random.default_rng(42).standard_normal(700)
    values = [
        [0.25, 0.5, 0.75, 1.0] + [1.0] * 130,
        [0.5] * 130,
        [0.125, 0.25] + [0.3125] * 130,
    ]
    rng = np.random.default_rng(0)
    step = 0
    for _ in range(5):  # five episodes: 650 draws, more than one buffer of any likely size
        pulls, sums, last, rise = [0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3
        expected = 0.0
        for _ in range(130):
            arm = int(rng.integers(3))
            observation, reward, *_ = env.step(arm)
            value = values[arm][pulls[arm]]
            assert reward == value + 0.75 * draws[step]
            rise[arm] = reward - last[arm] if pulls[arm] else 0.0
            pulls[arm] += 1
            sums[arm] += reward
            last[arm] = reward
            expected += value
            step += 1
            assert observation["pulls"].tolist() == pulls
            assert observation["reward_sum"].tolist() == sums
            assert observation["last_reward"].tolist() == last
            assert observation["last_increment"].tolist() == rise
        assert env.unwrapped.expected_return() == expected
        assert env.unwrapped.realized_return() == pytest.approx(sum(sums), rel=1e-14)
        env.reset()


def test_reseeding_forgets_draws_that_were_buffered() -> None:
    env = make(instance=EXACT, noise_std=1.0)
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        draws = np.random.default_rng(seed).standard_normal(5)
        assert [env.step(1)[1] for _ in range(5)] == (0.5 + draws).tolist()


def test_random_instances_do_not_depend_on_how_much_was_played_or_on_the_noise() -> None:
    seen = []
    for steps, noise in ((1, 0.0), (7, 0.0), (1, 0.5), (300, 0.5)):
        env = make(noise_std=noise)
        curves = []
        for episode in range(3):
            env.reset(seed=3 if episode == 0 else None)
            curves.append(env.unwrapped.curves)
            play(env, Player(env.action_space), steps)
        seen.append(curves)
        assert curves[0] != curves[1] != curves[2] != curves[0]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_without_noise_nothing_is_drawn_from_the_stream() -> None:
    env = make(instance=EXACT)
    env.reset(seed=6)
    play(env, Player(env.action_space), 50)
    assert random_states(env) == np.random.default_rng(6).bit_generator.state


# --- Instances ----------------------------------------------------------------------------------


def test_the_number_of_arms_is_the_instances_own_else_ten() -> None:
    assert make().unwrapped.num_arms == 10
    assert make(num_arms=3).unwrapped.num_arms == 3
    assert make(instance={"name": "random_concave", "num_arms": 4}).unwrapped.num_arms == 4
    assert make(instance="early_vs_late").unwrapped.num_arms == 2
    assert make(instance="lower_bound").unwrapped.num_arms == 10
    assert make(instance=EXACT, num_arms=3).unwrapped.num_arms == 3
    assert make(instance=drawn_tables).unwrapped.num_arms == 10
    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 3"):
        make(instance=EXACT, num_arms=2)


def test_a_callable_draws_each_episode_from_the_stream_spawned_of_the_seed() -> None:
    calls: list[tuple[float, int]] = []

    def draw(rng: np.random.Generator, num_arms: int) -> list[Any]:
        calls.append((rng.random(), num_arms))
        return [{"family": "constant", "value": calls[-1][0]}, Constant(0.25)]

    env = make(instance=draw, num_arms=2)
    assert calls == []  # drawn at reset, not before
    for seed in (5, None, None, 5):
        env.reset(seed=seed)
        assert [env.step(0)[1], env.step(1)[1]] == [calls[-1][0], 0.25]
    expected = np.random.default_rng(5).spawn(1)[0].random(3).tolist()
    assert calls == [(value, 2) for value in (*expected, expected[0])]


def test_a_callable_that_breaks_the_rules_is_refused_at_reset() -> None:
    def short(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return [Constant(0.5)]

    def falling(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return [Constant(0.5), Tabulated((0.5, 0.25))]

    with pytest.raises(ValueError, match="`num_arms` must be the instance's number of arms, 1"):
        make(instance=short, num_arms=2).reset(seed=0)
    with pytest.raises(ValueError, match="arm 1 decreases"):
        make(instance=falling, num_arms=2).reset(seed=0)
    make(instance=falling, num_arms=2, validate=False).reset(seed=0)


PIN = [Constant(0.125), Constant(0.25), Constant(0.375)]


@pytest.mark.parametrize("instance", [EXACT, drawn_tables, "random_concave"])
def test_an_instance_in_the_options_is_played_for_one_episode(instance: Any) -> None:
    env, plain = make(instance=instance, num_arms=3), make(instance=instance, num_arms=3)
    env.reset(seed=7)
    plain.reset(seed=7)
    usual = plain.unwrapped.curves
    options = {"instance": PIN}
    env.reset(options=options)
    assert options == {"instance": PIN}
    assert env.unwrapped.curves == tuple(PIN)
    assert [env.step(arm)[1] for arm in range(3)] == [0.125, 0.25, 0.375]
    assert env.unwrapped.optimal_return(8) == 3.0
    # Back to the constructor's; the pinned episode took nothing from the instances' stream.
    for _ in range(2):
        assert_identical(env.reset(), plain.reset())
        assert env.unwrapped.curves == plain.unwrapped.curves
        assert (env.unwrapped.curves == usual) == (instance is EXACT)


def test_an_instance_in_the_options_may_be_named_or_drawn() -> None:
    env = make(instance=EXACT, horizon=9)
    env.reset(seed=5, options={"instance": {"name": "round_robin_trap", "steps": 16}})
    assert env.step(2)[1] == 0.0625
    env.reset(seed=5, options={"instance": drawn_tables})
    stream = np.random.default_rng(5).spawn(1)[0]
    assert list(env.unwrapped.curves) == drawn_tables(stream, 3)
    env.reset(options={"instance": drawn_tables})
    assert list(env.unwrapped.curves) == drawn_tables(stream, 3)


@pytest.mark.parametrize(
    ("pin", "error", "message"),
    [
        (PIN[:2], ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ("nope", ValueError, "`instance` must be one of"),
        ("early_vs_late", ValueError, "`num_arms` must be the instance's number of arms, 2"),
        ([Tabulated((0.5, 0.25))] * 3, ValueError, "arm 0 decreases"),
        (7, TypeError, "`instance` must be a name"),
    ],
)
def test_a_wrong_instance_in_the_options_changes_nothing(
    pin: Any, error: type[Exception], message: str
) -> None:
    kwargs: Kwargs = {"instance": drawn_tables, "num_arms": 3, "noise_std": 0.5, "horizon": 20}
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
    short, long = make(horizon=6, noise_std=0.5), make(horizon=1000, noise_std=0.5)
    assert short.observation_space == long.observation_space
    assert_identical(short.reset(seed=3), long.reset(seed=3))
    player = Player(short.action_space)
    for _ in range(5):
        action = player()
        assert_identical(short.step(action), long.step(action))


def test_general_curves_play_without_validation() -> None:
    with pytest.raises(ValueError, match=r"arm 0 leaves \[0, 1\].*`validate=False`"):
        make(instance=PEAKED)
    env = make(instance=PEAKED, validate=False, horizon=8)
    env.reset(seed=0)
    rewards = [env.step(arm)[1] for arm in (0, 0, 0, 0, 0, 0, 1, 2)]
    assert rewards == [0.0, 0.5, 1.5, 0.25, -0.5, -0.5, -0.25, 0.75]
    assert env.unwrapped.expected_return() == env.unwrapped.realized_return() == 1.75
    # The first arm up to its peak, 2.0, and the third, 0.75 + 0.5 + 3 * 0.25.
    assert env.unwrapped.optimal_return() == 4.0


def test_arms_may_fall_within_the_steps_asked_for_or_beyond_them() -> None:
    env = make(instance=[Tabulated((0.25, 0.5, 0.25)), Constant(0.375)], validate=False)
    env.reset(seed=0)
    env.step(0)
    assert env.unwrapped.optimal_return() == 0.375
    assert env.unwrapped.optimal_return(2) == 0.75
    assert env.unwrapped.optimal_return(3) == 0.375 * 3
    assert env.unwrapped.optimal_return(4) == 1.5


def test_long_pulls_of_one_arm_stay_on_its_curve() -> None:
    # The environment evaluates ahead in blocks of its own choosing; every join must fit.
    env: Any = ImprovingBanditEnv(instance=MIXED, horizon=10_000)
    env.reset(seed=0)
    arms = [0, 1, 8] * 2500 + [3, 4] * 300
    rng = np.random.default_rng(0)
    rng.shuffle(arms)
    paid: dict[int, list[float]] = {}
    for arm in arms:
        paid.setdefault(arm, []).append(env.step(arm)[1])
    for arm, rewards in paid.items():
        curve = env.curves[arm]
        assert rewards == curve(np.arange(1, len(rewards) + 1)).tolist()
        assert env.curves[arm].cumulative(len(rewards)) == pytest.approx(sum(rewards), rel=1e-11)


# --- Actions ------------------------------------------------------------------------------------

ILLEGAL: list[Any] = [
    -1,
    3,
    10**30,
    0.0,
    1.5,
    float("nan"),
    True,
    False,
    np.bool_(True),
    np.array(True),
    np.array(False),
    np.float64(1.0),
    np.array(1.0),
    np.int64(-1),
    np.uint64(2**64 - 1),
    np.array(3),
    "0",
    "",
    b"1",
    None,
    [],
    [0],
    (1,),
    {"arm": 1},
    np.array([1]),
    np.array([[0]]),
    np.array([0, 1]),
    np.array([], dtype=np.int64),
    np.array("1"),
    np.array(None),
    np.datetime64("2020-01-01"),
    1j,
    Fraction(1),
    slice(1),
    object,
]
LEGAL: list[Any] = [
    1,
    np.int8(1),
    np.uint8(1),
    np.int32(1),
    np.int64(1),
    np.uint64(1),
    np.array(1),
    np.array(1, dtype=np.int8),
    np.array(1, dtype=np.uint8),
    np.array([0, 1])[1],
]


@pytest.mark.parametrize("action", ILLEGAL, ids=repr)
def test_an_illegal_action_is_refused_and_changes_nothing(action: Any) -> None:
    kwargs: Kwargs = {"instance": drawn_tables, "num_arms": 3, "noise_std": 0.5, "horizon": 20}
    env, twin = make(**kwargs), make(**kwargs)
    player, other = Player(env.action_space), Player(env.action_space)
    assert_identical(env.reset(seed=2), twin.reset(seed=2))
    for steps in (0, 1, 9, 20):  # at the start, twice within, and in the next episode
        assert_identical(play(env, player, steps), play(twin, other, steps))
        for bandit in (env, env.unwrapped):
            with pytest.raises(InvalidAction, match="`action` must be an integer from 0 to 2, got"):
                bandit.step(action)
        assert random_states(env) == random_states(twin)
        assert_identical(worth(env), worth(twin))
        assert env.unwrapped.steps == twin.unwrapped.steps
    assert_identical(play(env, player, 30), play(twin, other, 30))


@pytest.mark.parametrize("action", LEGAL, ids=lambda action: f"{type(action).__name__}-{action!r}")
def test_any_integer_type_is_a_legal_action(action: Any) -> None:
    env = make(instance=EXACT)
    env.reset(seed=0)
    observation, reward, *_ = env.step(action)
    assert reward == 0.5
    assert type(reward) is float
    assert observation["pulls"].tolist() == [0, 1, 0]


def test_a_refused_action_is_named() -> None:
    env = make(instance=EXACT)
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"got 3$"):
        env.step(3)
    with pytest.raises(InvalidAction, match=r"got 'left'$"):
        env.step("left")
