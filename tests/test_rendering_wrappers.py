"""Frames of batches, and frames in Gymnasium's wrappers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import (
    AddRenderObservation,
    HumanRendering,
    RecordEpisodeStatistics,
    RecordVideo,
)
from helpers_envs import every_id
from helpers_names import IMPROVING, Kwargs
from helpers_rendering import EARLY_LATE, facts, made, pygame

from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

# --- Vector environments --------------------------------------------------------------------------


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


# --- Gymnasium's wrappers -------------------------------------------------------------------------


# MoviePy 2.2 reads a video in a way that NumPy 2.5 warns about.
@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
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
