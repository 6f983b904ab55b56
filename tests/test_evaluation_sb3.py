"""Models of Stable-Baselines3 play in evaluations as they play by hand."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation
from helpers_evaluation import assert_same
from helpers_names import EGAL, IMPROVING, Kwargs

from gym_fairbandits.evaluation import Entry, EvaluationError, compare, evaluate
from gym_fairbandits.wrappers import RankedAssignment, SequentialAssignment

SMALL: Kwargs = {"num_arms": 3, "noise_std": 3.0, "horizon": 12}
TINY: Kwargs = {"n_steps": 16, "batch_size": 16, "device": "cpu", "seed": 0}


def decided(model: Any, factor: float = 100) -> Any:
    """Return an untrained model, its logits spread so that no two of them nearly tie."""
    torch: Any = pytest.importorskip("torch")
    with torch.no_grad():
        model.policy.action_net.weight.mul_(factor)
    return model


def pulls_by_hand(
    env: gym.Env[Any, Any], choose: Callable[[Any, bool], Any], seeds: Sequence[int]
) -> list[list[int]]:
    """Return the pulls of some episodes; ``choose`` hears whether an episode begins."""
    pulls = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        begins, done = True, False
        while not done:
            observation, _, terminated, truncated, _ = env.step(choose(observation, begins))
            begins, done = False, terminated or truncated
        pulls.append(env.unwrapped.pulls.tolist())  # type: ignore[attr-defined]
    return pulls


@pytest.mark.parametrize(
    ("kind", "wrappers"),
    [("MultiInputPolicy", []), ("MlpPolicy", [FlattenObservation])],
    ids=["dict", "flat"],
)
def test_untrained_ppo_plays_as_by_hand(kind: str, wrappers: list[Any], tmp_path: Path) -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    env: gym.Env[Any, Any] = gym.make(IMPROVING, **SMALL)
    for wrapper in wrappers:
        env = wrapper(env)
    model = decided(sb3.PPO(kind, env, **TINY))
    expected = pulls_by_hand(
        env, lambda seen, _: model.predict(seen, deterministic=True)[0], range(20, 25)
    )
    assert np.ptp(expected, axis=0).any(), "else it hears nothing of the episode"
    play: Any = partial(
        evaluate, env_id=IMPROVING, num_episodes=5, seed=20, wrappers=wrappers, **SMALL
    )
    run = play(model, num_envs=1)
    assert run.pulls.tolist() == expected
    assert_same(play(model, num_envs=3), run)
    model.save(tmp_path / "model")
    assert_same(play(sb3.PPO.load(tmp_path / "model", device="cpu"), num_envs=1), run)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_a_trained_model_plays_in_processes_too() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MultiInputPolicy", gym.make(IMPROVING, **SMALL), **TINY)
    decided(model.learn(32))
    play = partial(evaluate, model, IMPROVING, num_episodes=6, num_envs=3, **SMALL)
    assert_same(play(n_jobs=2), play())


def test_recurrent_ppo_plays_as_by_hand() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    env = gym.make(IMPROVING, **SMALL)
    model = decided(contrib.RecurrentPPO("MultiInputLstmPolicy", env, **TINY), 1e4)
    state: Any = None

    def choose(observation: Any, begins: bool, forgetful: bool = False) -> Any:
        nonlocal state
        action, state = model.predict(
            observation,
            state=None if begins or forgetful else state,
            episode_start=np.array([begins]),
            deterministic=True,
        )
        return action

    expected = pulls_by_hand(env, choose, range(4))
    assert expected != pulls_by_hand(env, partial(choose, forgetful=True), range(4))
    run = evaluate(model, IMPROVING, num_episodes=4, num_envs=1, **SMALL)
    assert run.pulls.tolist() == expected


def test_maskable_ppo_never_takes_a_taken_arm() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    kwargs: Kwargs = {"num_users": 3, "num_arms": 4, "horizon": 8}
    strict = partial(SequentialAssignment, strict=True)
    env = strict(gym.make(EGAL, **kwargs))
    model = decided(contrib.MaskablePPO("MultiInputPolicy", env, **TINY))

    def choose(observation: Any, _: bool) -> Any:
        masks = env.action_masks()
        return model.predict(observation, deterministic=True, action_masks=masks)[0]

    expected = pulls_by_hand(env, choose, range(5))
    play: Any = partial(evaluate, env_id=EGAL, num_episodes=5, wrappers=[strict], **kwargs)
    run = play(model, num_envs=1)
    assert run.pulls.tolist() == expected
    assert run.pulls.sum(axis=1).tolist() == [24] * 5
    assert_same(play(model, num_envs=4), run)
    with pytest.raises(EvaluationError, match="InvalidAction"):  # without its masks it does
        play(lambda seen: model.predict(seen, deterministic=True)[0])


def test_a_model_without_the_wrapper_of_its_training_is_told_of_entries() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    kwargs: Kwargs = {"num_users": 2, "num_arms": 4, "horizon": 6}
    model = sb3.PPO("MultiInputPolicy", RankedAssignment(gym.make(EGAL, **kwargs)), **TINY)
    advice = r"InvalidAction.*shape \(1, 4\); was it trained in a wrapper\? pass `Entry\(model, wr"
    with pytest.raises(EvaluationError, match=advice) as caught:
        compare({"model": model}, EGAL, num_episodes=2, **kwargs)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    run = compare(
        {"model": Entry(model, wrappers=[RankedAssignment])}, EGAL, num_episodes=2, **kwargs
    )
    assert run["model"].mean("length") == 6


def test_statistics_of_vec_normalize_are_applied_and_left_alone() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
    envs = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: gym.make(IMPROVING, **SMALL)]))
    envs.seed(0)
    envs.reset()
    for step in range(30):
        envs.step(np.array([step % 3]))
    model = decided(sb3.PPO("MultiInputPolicy", envs, **TINY))
    before = pickle.dumps(envs.obs_rms)

    def choose(observation: Any, _: bool) -> Any:
        return model.predict(envs.normalize_obs(observation), deterministic=True)[0]

    env = gym.make(IMPROVING, **SMALL)
    expected = pulls_by_hand(env, choose, range(6))
    plain = pulls_by_hand(env, lambda seen, _: model.predict(seen, deterministic=True)[0], range(6))
    assert expected != plain
    play: Any = partial(compare, env_id=IMPROVING, num_episodes=6, num_envs=1, **SMALL)
    comparison = play({"normalised": Entry(model, normalize=envs), "plain": model})
    assert comparison["normalised"].pulls.tolist() == expected
    assert comparison["plain"].pulls.tolist() == plain
    run = evaluate(model, IMPROVING, normalize=envs, num_episodes=6, num_envs=1, **SMALL)
    assert_same(run, comparison["normalised"])
    assert pickle.dumps(envs.obs_rms) == before
