"""Frames mark what matters, show the running regret, and change nothing."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.wrappers import TimeLimit
from helpers_envs import every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_rendering import EARLY_LATE, EGAL_ACTIONS, FIXED, HARD, facts, made, played, pygame
from numpy.typing import NDArray

from gym_fairbandits.envs.rendering import picture
from gym_fairbandits.wrappers import PolicyRegret


def has_colour(pixels: NDArray[np.uint8], colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return which pixels have exactly this colour."""
    return np.asarray((pixels == np.array(colour, dtype=np.uint8)).all(axis=-1))


# --- Pictures -------------------------------------------------------------------------------------


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


# --- The contract ---------------------------------------------------------------------------------


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


# --- The running regret ---------------------------------------------------------------------------


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


@every_id
def test_rows_that_were_never_reset_have_a_frame_too(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=2, render_mode="ansi")
    envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
    frames = envs.render()
    assert frames is not None
    assert [type(frame) for frame in frames] == [str, str]
