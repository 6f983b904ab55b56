"""ImprovingBandit-v0 against episodes worked by hand, exact rationals and reconstructed draws."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers_episodes import EXACT, assert_horizon_is_not_observed, improving
from helpers_play import Player, play, random_states, worth

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
    env = improving(instance=EXACT, horizon=len(EPISODE), horizon_known=known)
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
    env = improving(instance=EXACT, horizon=5)
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
    env = improving(instance=EXACT)
    env.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match="`steps` must be"):
        env.unwrapped.optimal_return(steps)


def test_figure_1_by_exact_rationals() -> None:
    # min(n/4, 1/2) against min(n/40, 1): the late bloomer overtakes at T = 60 or so.
    def pays(arm: int, pull: int) -> Fraction:
        return [min(Fraction(pull, 4), Fraction(1, 2)), min(Fraction(pull, 40), Fraction(1))][arm]

    env = improving(instance="early_vs_late", horizon=120)
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
    env = improving(instance=instance, num_arms=num_arms, horizon=20)
    for arm, row in enumerate(rows):
        env.reset(seed=0)
        for value in row:
            assert env.step(arm)[1] == pytest.approx(float(value), rel=1e-15, abs=0)


def test_the_horizon_is_the_default_of_steps_and_can_be_overridden() -> None:
    own = improving(instance={"name": "round_robin_trap", "steps": 8}, num_arms=2, horizon=20)
    default = improving(instance="round_robin_trap", num_arms=2, horizon=4)
    own.reset(seed=0)
    default.reset(seed=0)
    assert own.step(1)[1] == 0.125
    assert default.step(1)[1] == 0.25


def test_nothing_observed_tells_an_unknown_horizon() -> None:
    assert_horizon_is_not_observed(partial(improving, noise_std=0.5))


# --- Noise --------------------------------------------------------------------------------------


def test_noise_is_one_standard_normal_per_step_of_the_environments_stream() -> None:
    env = improving(instance=EXACT, noise_std=0.75, horizon=130)
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
    env = improving(instance=EXACT, noise_std=1.0)
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        draws = np.random.default_rng(seed).standard_normal(5)
        assert [env.step(1)[1] for _ in range(5)] == (0.5 + draws).tolist()


def test_random_instances_do_not_depend_on_how_much_was_played_or_on_the_noise() -> None:
    seen = []
    for steps, noise in ((1, 0.0), (7, 0.0), (1, 0.5), (300, 0.5)):
        env = improving(noise_std=noise)
        curves = []
        for episode in range(3):
            env.reset(seed=3 if episode == 0 else None)
            curves.append(env.unwrapped.curves)
            play(env, Player(env.action_space), steps)
        seen.append(curves)
        assert curves[0] != curves[1] != curves[2] != curves[0]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_without_noise_nothing_is_drawn_from_the_stream() -> None:
    env = improving(instance=EXACT)
    env.reset(seed=6)
    play(env, Player(env.action_space), 50)
    assert random_states(env) == np.random.default_rng(6).bit_generator.state
