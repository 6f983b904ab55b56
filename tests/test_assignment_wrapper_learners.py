"""Learners of Stable-Baselines3 train through every action wrapper without a collision."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from gymnasium.error import InvalidAction
from gymnasium.wrappers import FlattenObservation
from helpers_assignment import ALL, Spy, make

from gym_fairbandits.wrappers import SequentialAssignment

LEARNERS: list[tuple[str, str, bool]] = [
    ("ranked", "PPO", False),
    ("ranked", "A2C", False),
    ("ranked", "SAC", False),
    ("ranked", "TD3", True),
    ("lehmer", "PPO", False),
    ("lehmer", "A2C", True),
    ("enumerated", "DQN", False),
    ("enumerated", "DQN", True),
    ("enumerated", "PPO", False),
    ("sequential", "PPO", False),
    ("sequential", "DQN", True),
    ("sequential", "MaskablePPO", False),
    ("sequential", "MaskablePPO", True),
    ("rotated", "PPO", False),
    ("rotated", "SAC", True),
]
SETTINGS: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 1},
    "MaskablePPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 1},
    "A2C": {"n_steps": 8},
    "DQN": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8},
    "SAC": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8, "train_freq": 4},
    "TD3": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8, "train_freq": 4},
}


def learner(algorithm: str, env: Any, flat: bool) -> Any:
    module = "sb3_contrib" if algorithm == "MaskablePPO" else "stable_baselines3"
    build = getattr(pytest.importorskip(module), algorithm)
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    kwargs = {"policy_kwargs": {"net_arch": [8]}, **SETTINGS[algorithm]}
    return build(policy, env, seed=0, device="cpu", **kwargs)


@pytest.mark.parametrize(("name", "algorithm", "flat"), LEARNERS)
def test_learners_train_without_a_collision(name: str, algorithm: str, flat: bool) -> None:
    spy = Spy(make((3, 5, 1) if name == "rotated" else (3, 3, 2)))  # which checks each action
    env: Any = ALL[name](spy, **({"strict": True} if algorithm == "MaskablePPO" else {}))
    model = learner(algorithm, FlattenObservation(env) if flat else env, flat)
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    after = model.policy.state_dict()
    assert any(not before[key].equal(after[key]) for key in before)
    assert all(bool(value.isfinite().all()) for value in after.values())
    assert len(spy.seen) >= 64 // 3


def test_masks_reach_the_evaluation_of_sb3_contrib() -> None:
    contrib = pytest.importorskip("sb3_contrib.common.maskable.evaluation")
    plain = pytest.importorskip("stable_baselines3.common.evaluation")
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")
    strict = [SequentialAssignment(Spy(make((5, 5, 1))), strict=True) for _ in range(2)]
    venv = vec_envs.DummyVecEnv([lambda env=env: env for env in strict])
    model = learner("MaskablePPO", venv, flat=False)
    for deterministic in (True, False):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Evaluation environment is not wrapped")
            contrib.evaluate_policy(model, venv, n_eval_episodes=4, deterministic=deterministic)
    for env in strict:
        assert len(env.env.seen) >= 4 * 12  # type: ignore[attr-defined]
    # Without masks the network meets full arms: strict says so, else the next arm is taken.
    blind = make((5, 5, 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Evaluation environment is not wrapped")
        with pytest.raises(InvalidAction, match="`action` must be an arm with a place left"):
            plain.evaluate_policy(model, SequentialAssignment(blind, strict=True), 1)
        plain.evaluate_policy(model, SequentialAssignment(Spy(make((5, 5, 1)))), 2)
