"""Scenes and texts show what happened and hide what is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_envs import every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_rendering import EARLY_LATE, EGAL_ACTIONS, FIXED, HARD, facts, made, played

from gym_fairbandits.envs.rendering import EgalScene, ImprovingScene
from gym_fairbandits.envs.rendering.scene import ROWS, Axis, CurveHistory, number
from gym_fairbandits.envs.rendering.text import WIDTH

# --- The scene: improving arms --------------------------------------------------------------------


def test_the_curves_end_at_the_pulls_and_hold_what_was_seen() -> None:
    scene = played("ansi", [0, 1, 0, 1, 1], **EARLY_LATE).scene()
    assert isinstance(scene, ImprovingScene)
    early, late = scene.arms
    assert (early.arm, early.pulls, early.last_reward) == (0, 2, 0.5)
    assert early.seen == ((1, 0.25), (2, 0.5))
    assert late.seen == ((1, 1 / 40), (2, 2 / 40), (3, 3 / 40))
    assert [arm.is_latest for arm in scene.arms] == [False, True]
    assert early.unseen == late.unseen == ()
    assert scene.most_pulls == 3
    assert scene.gap is None
    assert facts(scene) == {
        "step": "5",
        "total reward": "0.900",
        "latest pull": "arm 1 paid 0.075",
    }


def test_noisy_curves_are_the_rewards_that_were_paid() -> None:
    env = made(IMPROVING, "ansi", noise_std=1.0, **EARLY_LATE)
    rewards = [env.step(0)[1] for _ in range(30)]
    assert env.scene().arms[0].seen == tuple(enumerate(rewards, start=1))


def test_the_unseen_rest_is_shown_only_where_it_is_asked_for() -> None:
    env = played("ansi", [1, 1], render_reveal=True, **EARLY_LATE)
    scene = env.scene()
    early, late = (dict(arm.unseen) for arm in scene.arms)
    assert set(early) | set(late) <= set(range(1, 101))
    assert early == {pull: min(pull / 4, 0.5) for pull in early}
    assert late == {pull: min(pull / 40, 1.0) for pull in late}
    assert min(late) == 2  # where the seen part ends
    assert max(early) == max(late) == 100
    assert facts(scene)["step"] == "2 of 100"


@every_id
def test_frames_tell_nothing_that_the_learner_may_not_know(env_id: str) -> None:
    """The same play on arms that pay alike so far: the frames are the same to the last pixel."""
    if env_id == IMPROVING:
        one = [
            {"family": "constant", "value": 0.5},
            {"family": "linear_cap", "asymptote": 0.5, "ramp": 9},
        ]
        other = [
            {"family": "linear_cap", "asymptote": 0.5, "ramp": 1},
            {"family": "constant", "value": 0},
        ]
        action: Any = 0
    else:
        one = {"family": "gaussian", "means": [0.5, 0.25], "std": 0.0}  # type: ignore[assignment]
        other = {"family": "gaussian", "means": [0.5, 0.75], "std": 0.0}  # type: ignore[assignment]
        action = [0]
    extra = {} if env_id == IMPROVING else {"num_users": 1}
    for mode in ("ansi", "rgb_array"):
        frames = []
        for instance, horizon in ((one, 20), (other, 3000)):
            env = made(env_id, mode, instance=instance, horizon=horizon, **extra)
            frames.append([env.render()])
            for _ in range(5):
                env.step(action)
                frames[-1].append(env.render())
        np.testing.assert_array_equal(frames[0], frames[1])


def test_the_horizon_is_told_where_the_learner_knows_it() -> None:
    env = made(IMPROVING, "ansi", horizon_known=True, **EARLY_LATE)
    assert facts(env.scene())["step"] == "0 of 100"


def test_long_curves_are_thinned_but_keep_both_ends() -> None:
    history = CurveHistory(1)
    for pull in range(1, 10_001):
        history.add(0, pull, pull / 7)
    seen = history.seen(0, 10_000, 10_000 / 7)
    assert 100 <= len(seen) <= 257
    assert seen[0] == (1, 1 / 7)
    assert seen[-1] == (10_000, 10_000 / 7)
    pulls = [pull for pull, _ in seen]
    assert len(set(np.diff(pulls[:-1]))) == 1  # evenly
    assert all(reward == pull / 7 for pull, reward in seen)


def test_of_a_hundred_arms_the_most_and_the_least_pulled_are_shown_and_the_latest() -> None:
    actions = [arm for arm in range(30) for _ in range(30 - arm)] + [29] * 2 + [50]
    scene = played("ansi", actions, instance="random_concave", num_arms=100).scene()
    shown = [arm.arm for arm in scene.arms]
    assert shown == [*range(10), 50, 96, 97, 98, 99]
    assert scene.gap is not None
    assert scene.gap.position == 11
    pulls_left_out = sum(range(1, 21)) + 2
    assert scene.gap.note == f"85 more arms, {pulls_left_out} pulls in all"
    assert len(shown) + 1 == ROWS
    assert [arm.arm for arm in scene.arms if arm.is_latest] == [50]


# --- The scene: assignment ------------------------------------------------------------------------


def test_the_worst_off_user_is_the_marked_one() -> None:
    scene = played("ansi", EGAL_ACTIONS, EGAL, **FIXED).scene()
    assert isinstance(scene, EgalScene)
    assert [user.total for user in scene.users] == [1.0, -0.75, 0.375]
    assert [user.is_worst_off for user in scene.users] == [False, True, False]
    assert [user.arm for user in scene.users] == [0, 2, 3]
    assert facts(scene) == {
        "step": "2",
        "lowest total (the return)": "-0.750",
        "mean total": "0.208",
        "worst off": "user 1",
    }
    assert scene.total_axis == Axis(-0.8, 1.0)


def test_arms_show_their_means_their_counts_and_who_is_on_them() -> None:
    scene = played("ansi", EGAL_ACTIONS, EGAL, **FIXED).scene()
    assert [(arm.pulls, arm.mean, arm.users) for arm in scene.arms] == [
        (2, 0.5, (0,)),
        (1, -1.0, ()),
        (2, 0.25, (1,)),
        (1, 0.125, (2,)),
    ]
    assert [arm.true_mean for arm in scene.arms] == [None] * 4


def test_true_means_are_shown_only_where_they_are_asked_for() -> None:
    scene = made(EGAL, "ansi", render_reveal=True, **FIXED).scene()
    assert [arm.true_mean for arm in scene.arms] == [0.5, -1.0, 0.25, 0.125]


def test_users_that_tie_are_all_worst_off_and_nobody_is_before_the_first_step() -> None:
    env = made(EGAL, "ansi", instance={**FIXED["instance"], "means": [0.5, 0.5]}, num_users=2)
    assert [user.is_worst_off for user in env.scene().users] == [False, False]
    assert facts(env.scene())["worst off"] == "-"
    env.step([0, 1])
    assert [user.is_worst_off for user in env.scene().users] == [True, True]
    assert facts(env.scene())["worst off"] == "2 users"


def test_users_of_one_arm_stand_together_and_the_objective_names_the_return() -> None:
    env = made(EGAL, "ansi", capacity=2, objective="utilitarian", **FIXED)
    env.step([2, 0, 2])
    scene = env.scene()
    assert [arm.users for arm in scene.arms] == [(1,), (), (0, 2), ()]
    assert set(facts(scene)) == {"step", "lowest total", "mean total (the return)", "worst off"}


def test_of_a_hundred_users_the_best_and_the_worst_off_are_shown() -> None:
    means = np.arange(100) / 128
    arms = {"family": "gaussian", "means": means.tolist(), "std": 0.0}
    scene = played("ansi", [np.arange(100)], EGAL, instance=arms, num_users=100).scene()
    shown = [*range(99, 92, -1), *range(7, -1, -1)]
    assert [user.user for user in scene.users] == shown
    assert scene.user_gap is not None
    assert scene.user_gap.position == 7
    assert scene.user_gap.note == "85 more, totals 0.062 to 0.719"
    assert [user.user for user in scene.users if user.is_worst_off] == [0]
    assert [arm.arm for arm in scene.arms] == sorted(shown)  # where the shown users are
    assert scene.arm_gap is not None
    assert scene.arm_gap.note == "85 more arms, 85 pulls in all"


# --- Text -----------------------------------------------------------------------------------------


def test_text_of_improving_arms() -> None:
    text = played("ansi", [0, 0, 1], render_reveal=True, **EARLY_LATE).render()
    lines = text.splitlines()
    assert lines[0] == (
        "Improving bandit   step: 3 of 100   total reward: 0.775   latest pull: arm 1 paid 0.025"
    )
    early, late = lines[3:5]
    assert early.split() == ["0", "▅" + "5" * 49, "█" * 18, "2", "0.500"]
    assert late.split()[:2] == [">", "1"]
    assert late.split()[3:] == ["█" * 9, "1", "0.025"]
    # A character stands for two pulls: f_1 is 1/40 at the first and reaches 1 at pull 40.
    curve = late.split()[2]
    assert curve[0] == "▁"
    assert list(curve[1:]) == sorted(curve[1:])
    assert curve[1:].count("9") in (31, 32)
    assert set(curve[1:]) == set("0123456789") - {"0"}
    assert lines[-1].endswith("curves from 0 to 1; digits: not seen yet, in tenths of that")


def test_text_of_an_assignment_marks_the_worst_off() -> None:
    text = played("ansi", EGAL_ACTIONS, EGAL, **FIXED).render()
    lines = text.splitlines()
    marked = [line for line in lines[:-1] if line.startswith("!")]
    assert len(marked) == 1
    assert marked[0].split()[1] == "1"
    assert "-0.750" in marked[0]
    assert lines[-1] == "!: worst off; totals from -0.8 to 1; means from -1 to 0.5"


@pytest.mark.parametrize(("env_id", "kwargs", "actions"), HARD)
def test_text_is_no_wider_than_a_terminal(env_id: str, kwargs: Kwargs, actions: list[Any]) -> None:
    text = played("ansi", actions, env_id, **kwargs).render()
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) <= 24
    assert all(line == line.rstrip() for line in lines)
    assert text.isprintable() or all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (9_999_999, "9999999"),
        (10**7, "1.00e+07"),
        (0.025, "0.025"),
        (-0.0004, "-4.00e-04"),
        (80.5, "80.50"),
        (-480.84, "-480.8"),
        (48_080.4, "48080"),
        (-1e30, "-1.00e+30"),
    ],
)
def test_numbers_are_short(value: float, written: str) -> None:
    assert number(value) == written
    assert len(written) <= 9
