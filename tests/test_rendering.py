"""Frames show what happened, mark what matters, hide what is hidden, and change nothing."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.wrappers import (
    AddRenderObservation,
    HumanRendering,
    RecordEpisodeStatistics,
    RecordVideo,
    TimeLimit,
)
from helpers_envs import EGAL, IMPROVING, Kwargs
from numpy.typing import NDArray

from gym_fairbandits.envs.rendering import EgalScene, ImprovingScene, picture
from gym_fairbandits.envs.rendering.scene import ROWS, Axis, CurveHistory, number
from gym_fairbandits.envs.rendering.text import WIDTH
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

pygame = pytest.importorskip("pygame")

every_id = pytest.mark.parametrize("env_id", [IMPROVING, EGAL])

# f_0 = min(n/4, 1/2), f_1 = min(n/40, 1).
EARLY_LATE: Kwargs = {"instance": "early_vs_late", "horizon": 100}
# Without chance: an arm pays its mean.
FIXED: Kwargs = {
    "instance": {"family": "gaussian", "means": [0.5, -1.0, 0.25, 0.125], "std": 0.0},
    "num_users": 3,
    "horizon": 50,
}
EGAL_ACTIONS = [[0, 1, 2], [0, 2, 3]]  # user totals 1, -0.75, 0.375


def made(env_id: str, mode: str | None, **kwargs: Any) -> Any:
    """Return the bare environment, reset."""
    env = gym.make(env_id, render_mode=mode, **kwargs).unwrapped
    env.reset(seed=0)
    return env


def played(mode: str, actions: Any, env_id: str = IMPROVING, **kwargs: Any) -> Any:
    env = made(env_id, mode, **kwargs)
    for action in actions:
        env.step(action)
    return env


def facts(scene: Any) -> dict[str, str]:
    return dict(scene.heading.facts)


def has_colour(pixels: NDArray[np.uint8], colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return which pixels have exactly this colour."""
    return np.asarray((pixels == np.array(colour, dtype=np.uint8)).all(axis=-1))


# --- The scene: improving arms ------------------------------------------------------------------


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


# --- The scene: assignment ----------------------------------------------------------------------


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


# --- Text ---------------------------------------------------------------------------------------


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


HARD: list[tuple[str, Kwargs, list[Any]]] = [
    (IMPROVING, EARLY_LATE, []),
    (IMPROVING, {"instance": [{"family": "constant", "value": 0.5}]}, [0]),
    (IMPROVING, {"num_arms": 100, "noise_std": 1e12}, [99] * 40),
    (IMPROVING, {"num_arms": 100, "render_reveal": True, "horizon_known": True}, [3, 1]),
    (IMPROVING, {"instance": "early_vs_late", "horizon": 1, "render_reveal": True}, [0]),
    (EGAL, FIXED, []),
    (EGAL, {**FIXED, "render_reveal": True}, EGAL_ACTIONS),
    (EGAL, {"num_users": 1, "num_arms": 1}, [[0], [0]]),
    (EGAL, {"num_users": 9, "num_arms": 3, "capacity": 5}, [[0, 0, 0, 0, 0, 1, 1, 1, 1]]),
    (EGAL, {"num_users": 100, "num_arms": 100}, [np.arange(100)]),
    (
        EGAL,
        {
            "instance": {"family": "gaussian", "means": [-1e9] * 120, "std": 1e8},
            "num_users": 120,
        },
        [np.arange(120)] * 3,
    ),
]


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


# --- Pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "kwargs", "actions"), HARD)
def test_pictures_of_an_environment_have_one_size_and_are_fresh(
    env_id: str, kwargs: Kwargs, actions: list[Any]
) -> None:
    env = made(env_id, "rgb_array", **kwargs)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[1:] == (960, 3)
    assert first.shape[0] % 2 == 0  # as video codecs want
    assert first.shape[0] <= 540
    for action in actions:
        env.step(action)
    last = env.render()
    assert last.shape == first.shape
    again = env.render()
    np.testing.assert_array_equal(last, again)
    last[:] = 0
    np.testing.assert_array_equal(again, env.render())
    if actions:
        assert (again != first).any()


def test_the_marked_bar_in_the_picture_is_that_of_the_worst_off_user() -> None:
    """Three rows of 40 pixels below 108; the second one is marked, its bar goes to the left."""
    pixels = played("rgb_array", EGAL_ACTIONS, EGAL, **FIXED).render()
    marked = has_colour(pixels, picture.VERMILION)
    rows, columns = np.nonzero(marked)
    assert rows.min() >= 148
    assert rows.max() < 188
    assert marked[148:188, :50].any()  # the arrow
    zero = 118 + 164 * 0.8 / 1.8  # bars from -0.8 to 1 on 164 pixels
    assert columns.max() <= zero + 1
    # Hatched: within the bar, between the two colours of its edge, there is white too.
    middle = pixels[168, round(118 + 164 * 0.05 / 1.8) + 2 : round(zero) - 2]
    assert has_colour(middle, picture.VERMILION).any()
    assert has_colour(middle, (255, 255, 255)).any()
    others = has_colour(pixels, picture.BLUE)
    assert others[108:148].any()
    assert others[188:228].any()
    assert not others[148:188].any()


def test_the_latest_arm_in_the_picture_is_marked_and_bars_have_the_length_of_the_pulls() -> None:
    pixels = played("rgb_array", [0, 0, 0, 0, 1], **EARLY_LATE).render()
    marked, other = has_colour(pixels, picture.VERMILION), has_colour(pixels, picture.SKY)
    assert not marked[:198].any()
    assert marked[198:288, :50].any()
    assert other[108:198].sum(axis=1).max() == 150  # pixels of the longest bar
    assert marked[200:280, 630:].sum(axis=1).max() == round(150 / 4)


def test_a_window_shows_the_frame_as_soon_as_something_happens() -> None:
    env = gym.make(IMPROVING, render_mode="human", **EARLY_LATE)
    try:
        env.reset(seed=0)
        start = pygame.surfarray.array3d(pygame.display.get_surface())
        for action in (0, 0, 0, 0, 1):
            env.step(action)
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        expected = played("rgb_array", [0, 0, 0, 0, 1], **EARLY_LATE).render()
        np.testing.assert_array_equal(shown, expected)
        assert (start.swapaxes(0, 1) != expected).any()
        assert env.render() is None
    finally:
        env.close()
    assert not pygame.display.get_init()
    env.close()


def test_a_closed_window_opens_again_and_fonts_survive_pygame() -> None:
    env = made(EGAL, "human", **FIXED)
    copied = pickle.loads(pickle.dumps(env))
    picture_before = played("rgb_array", [[0, 1, 2]], EGAL, **FIXED).render()
    pygame.quit()
    env.step([0, 1, 2])
    assert pygame.display.get_surface() is not None
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, picture_before)
    env.close()
    copied.step([0, 1, 2])
    assert pygame.display.get_surface() is not None
    copied.close()
    assert not pygame.display.get_init()


# --- The contract -------------------------------------------------------------------------------


@every_id
def test_the_modes_are_declared(env_id: str) -> None:
    for env in (gym.make(env_id), gym.make_vec(env_id, num_envs=2)):
        assert env.metadata["render_modes"] == ["human", "rgb_array", "ansi"]
        assert env.metadata["render_fps"] > 0
        env.close()


@every_id
def test_without_a_mode_render_warns_and_draws_nothing(env_id: str) -> None:
    env = made(env_id, None)
    with pytest.warns(UserWarning, match="`render` draws nothing without a render mode"):
        assert env.render() is None
    with pytest.raises(ValueError, match="`render_mode` must be given for a scene, got None"):
        env.scene()
    envs: Any = gym.make_vec(env_id, num_envs=2)
    envs.reset(seed=0)
    with pytest.warns(UserWarning, match="`render` draws nothing without a render mode"):
        assert envs.render() is None
    with pytest.raises(ValueError, match="`render_mode` must be given for a scene, got None"):
        envs.scenes()


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
@every_id
def test_there_is_nothing_to_draw_before_the_first_reset(env_id: str, mode: str) -> None:
    env: Any = gym.make(env_id, render_mode=mode)
    for bare in (env, env.unwrapped, gym.make_vec(env_id, num_envs=2, render_mode=mode)):
        with pytest.raises(ResetNeeded):
            bare.render()
    envs: Any = gym.make_vec(env_id, render_mode=mode)
    for ask in (env.unwrapped.scene, envs.scenes):
        with pytest.raises(ResetNeeded, match="call `reset` first"):
            ask()


@every_id
def test_without_pygame_only_drawing_fails(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)  # importing it now raises ImportError
    env = made(env_id, "rgb_array")
    env.step(env.action_space.sample())
    before = env.scene()
    with pytest.raises(DependencyNotInstalled, match=r'pip install "gym-fairbandits\[render\]"'):
        env.render()
    assert env.scene() == before
    assert isinstance(made(env_id, "ansi").render(), str)
    human = gym.make(env_id, render_mode="human")
    with pytest.raises(DependencyNotInstalled, match=r'pip install "gym-fairbandits\[render\]"'):
        human.reset(seed=0)
    human.close()


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
@every_id
def test_rendering_changes_no_result(env_id: str, mode: str) -> None:
    kwargs = {"horizon": 7, **({"noise_std": 0.5} if env_id == IMPROVING else {})}
    plain, shown = made(env_id, None, **kwargs), made(env_id, mode, **kwargs)
    plain.action_space.seed(0)
    for _ in range(2):
        for _ in range(7):
            action = plain.action_space.sample()
            expected, actual = plain.step(action), shown.step(action)
            shown.render()
            assert expected[1:4] == actual[1:4]
            for name, values in expected[0].items():
                np.testing.assert_array_equal(actual[0][name], values)
        assert plain.expected_return() == shown.expected_return()
        plain.reset()
        shown.reset()
    assert plain.np_random.random() == shown.np_random.random()
    shown.close()


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
@every_id
def test_copies_draw_what_the_original_draws(env_id: str, mode: str) -> None:
    env = made(env_id, mode)
    env.action_space.seed(0)
    env.step(env.action_space.sample())
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        np.testing.assert_array_equal(twin.render(), env.render())
        twin.step(env.action_space.sample())
        assert twin.scene() != env.scene()


# --- The running regret -------------------------------------------------------------------------


def test_the_regret_wrapper_hands_its_regret_to_the_frame() -> None:
    env: Any = PolicyRegret(gym.make(IMPROVING, render_mode="ansi", **EARLY_LATE))
    env.reset(seed=0)
    assert facts(env.unwrapped.scene())["policy regret"] == "-"
    env.step(1)
    # The best arm for one pull pays 1/4, this one 1/40.
    assert facts(env.unwrapped.scene())["policy regret"] == "0.225"
    assert "policy regret: 0.225" in env.render()
    twin = copy.deepcopy(env)
    twin.step(1)  # 0.75 - 0.075; the copy asks its own wrapper
    assert facts(twin.unwrapped.scene())["policy regret"] == "0.675"
    assert facts(env.unwrapped.scene())["policy regret"] == "0.225"


def test_the_window_shows_the_regret_of_the_step_itself() -> None:
    env: Any = PolicyRegret(TimeLimit(gym.make(IMPROVING, render_mode="human", **EARLY_LATE), 9))
    still: Any = PolicyRegret(gym.make(IMPROVING, render_mode="rgb_array", **EARLY_LATE))
    for one in (env, still):
        one.reset(seed=0)
        one.step(1)
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, still.render())
    env.close()


def test_anyone_may_add_numbers_and_those_that_are_unknown_stay_blank() -> None:
    env = made(EGAL, "ansi", **FIXED)
    env.readouts.update({"known": lambda: -2.5, "unknown": lambda: np.nan})
    env.step([0, 1, 2])
    assert list(facts(env.scene()).items())[-2:] == [("known", "-2.500"), ("unknown", "-")]


def test_regret_costs_nothing_without_frames() -> None:
    env: Any = PolicyRegret(gym.make(IMPROVING, **EARLY_LATE))
    assert env.unwrapped.readouts == {}


# --- Vector environments ------------------------------------------------------------------------


@pytest.mark.parametrize("autoreset", ["NextStep", "SameStep", "Disabled"])
@every_id
def test_a_row_of_a_batch_shows_what_the_scalar_environment_shows(
    env_id: str, autoreset: str
) -> None:
    kwargs: Kwargs = {"horizon": 4, "render_mode": "ansi", "render_reveal": True}
    envs: Any = gym.make_vec(env_id, num_envs=3, autoreset_mode=autoreset, **kwargs)
    singles = [made(env_id, "ansi", horizon=4, render_reveal=True) for _ in range(3)]
    envs.reset(seed=5)
    for row, single in enumerate(singles):
        single.reset(seed=5 + row)
    envs.action_space.seed(0)
    for step in range(1, 4):
        actions = envs.action_space.sample()
        envs.step(actions)
        texts = envs.render()
        assert isinstance(texts, tuple)
        for row, single in enumerate(singles):
            single.step(actions[row])
            head, _, body = single.render().partition("   ")
            assert texts[row].startswith(f"{head}, sub-environment {row} of 3   step: {step}")
            assert texts[row].splitlines()[-8:] == single.render().splitlines()[-8:]
            ours, theirs = envs.scenes()[row], single.scene()
            assert ours.arms == theirs.arms
            assert body
    envs.step(envs.action_space.sample())
    ended = [facts(scene)["step"] for scene in envs.scenes()]
    assert ended == ["0 of 4" if autoreset == "SameStep" else "4 of 4"] * 3


def test_a_batch_shows_each_row_its_regret_and_none_of_an_episode_that_is_over() -> None:
    envs: Any = VectorPolicyRegret(
        gym.make_vec(
            IMPROVING,
            num_envs=2,
            render_mode="ansi",
            autoreset_mode="SameStep",
            instance="early_vs_late",
            horizon=2,
        )
    )
    envs.reset(seed=0)
    envs.step(np.array([0, 1]))
    shown = [facts(scene)["policy regret"] for scene in envs.unwrapped.scenes()]
    assert shown == ["0", "0.225"]
    envs.step(np.array([0, 1]))
    shown = [facts(scene)["policy regret"] for scene in envs.unwrapped.scenes()]
    assert shown == ["-", "-"]


@every_id
def test_a_batch_draws_a_picture_of_each_row(env_id: str) -> None:
    envs: Any = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array", num_arms=6)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    envs.step(envs.action_space.sample())
    first, second = envs.render()
    assert first.shape == second.shape
    assert (first != second).any()
    envs.close()


def test_the_window_of_a_batch_shows_its_first_row() -> None:
    settings: Kwargs = {"num_envs": 2, **EARLY_LATE}
    window: Any = gym.make_vec(IMPROVING, render_mode="human", **settings)
    still: Any = gym.make_vec(IMPROVING, render_mode="rgb_array", **settings)
    for envs in (window, still):
        envs.reset(seed=0)
        envs.step(np.array([1, 0]))
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, still.render()[0])
    assert window.render() is None
    window.close()
    assert not pygame.display.get_init()


# --- Gymnasium's wrappers -----------------------------------------------------------------------


@every_id
def test_videos_have_a_frame_for_each_step(env_id: str, tmp_path: Path) -> None:
    clips = pytest.importorskip("moviepy")
    env: Any = gym.make(env_id, render_mode="rgb_array", horizon=5)
    env = RecordVideo(RecordEpisodeStatistics(PolicyRegret(env)), str(tmp_path / "videos"))
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(5):
        info = env.step(env.action_space.sample())[4]
    assert info["episode"]["l"] == 5
    env.close()
    (path,) = (tmp_path / "videos").glob("*.mp4")
    with clips.VideoFileClip(str(path)) as clip:
        assert clip.size == [960, env.unwrapped.render().shape[0]]
        assert clip.duration == pytest.approx(6 / env.metadata["render_fps"], abs=0.02)


@every_id
def test_human_rendering_wraps_pictures(env_id: str) -> None:
    env: Any = HumanRendering(gym.make(env_id, render_mode="rgb_array"))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, env.unwrapped.render())
    env.close()


@every_id
def test_pictures_can_be_observed(env_id: str) -> None:
    env: Any = AddRenderObservation(gym.make(env_id, render_mode="rgb_array"), render_only=False)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(env.action_space.sample())
    np.testing.assert_array_equal(observation["pixels"], env.unwrapped.render())


@every_id
def test_lists_of_frames_are_collected(env_id: str) -> None:
    env: Any = gym.make(env_id, render_mode="ansi_list")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    first, second = env.render()
    assert "step: 0 " in first
    assert "step: 1 " in second


@pytest.mark.slow
@every_id
def test_stable_baselines_makes_environments_that_draw(env_id: str) -> None:
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    envs = env_util.make_vec_env(env_id, n_envs=2, seed=0)
    envs.reset()
    assert [frame.shape[1:] for frame in envs.get_images()] == [(960, 3)] * 2
    envs.close()
