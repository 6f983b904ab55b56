"""Register the environments with RLlib, with masks for assignments.

RLlib pins Gymnasium (2.60 wants exactly 1.2.2), so give it a virtual environment of its own::

    pip install "ray[rllib]" torch
    pip install -e .
    python examples/rllib.py
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation

from gym_fairbandits.wrappers import SequentialAssignment


class MaskedObservation(gym.Wrapper[Any, Any, Any, Any]):
    """Puts the mask of `SequentialAssignment` where RLlib's action-masking modules look for it."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap a `SequentialAssignment`, whatever is around it."""
        super().__init__(env)
        arms = int(env.action_space.n)  # type: ignore[attr-defined]
        self.observation_space = spaces.Dict(
            {
                "action_mask": spaces.Box(0.0, 1.0, (arms,), np.float32),
                "observations": env.observation_space,
            }
        )

    def _masked(self, observation: Any) -> dict[str, Any]:
        mask = self.env.get_wrapper_attr("action_masks")().astype(np.float32)
        return {"action_mask": mask, "observations": observation}

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Reset, and add the mask."""
        observation, info = self.env.reset(**arguments)
        return self._masked(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and add the mask of the next substep."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._masked(observation), reward, terminated, truncated, info


# RLlib makes environments in processes of its own, where nobody has imported the package: ids with
# the package's name in front import it.


def improving(config: dict[str, Any]) -> gym.Env[Any, Any]:
    """Return an environment for RLlib: flat observations."""
    return FlattenObservation(gym.make("gym_fairbandits:ImprovingBandit-v0", **config))


def egalitarian(config: dict[str, Any]) -> gym.Env[Any, Any]:
    """Return an environment for RLlib: one user per step, the mask in the observation."""
    return MaskedObservation(
        FlattenObservation(
            SequentialAssignment(gym.make("gym_fairbandits:EgalAssign-v0", **config))
        )
    )


def main() -> None:
    """Register both, and train a few iterations of PPO on one."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.tune.registry import register_env

    register_env("ImprovingBandit", improving)
    register_env("EgalAssign", egalitarian)
    config = PPOConfig()
    config.environment(
        "ImprovingBandit", env_config={"horizon": 100, "num_arms": 5, "horizon_known": True}
    )
    config.env_runners(num_env_runners=0)  # in this process: two cores are enough
    config.training(
        gamma=0.9999,  # the horizon is known
        train_batch_size_per_learner=1000,
        minibatch_size=250,
        num_epochs=4,
    )
    algorithm = config.build_algo()
    for iteration in range(3):
        result = algorithm.train()
        print(iteration, result["env_runners"]["episode_return_mean"])
    algorithm.stop()


if __name__ == "__main__":
    main()
