"""Policies for Stable-Baselines3 that treat all arms alike, and an adapter for quick training.

Needs the extra ``sb3``; nothing else of the package imports this module.

``PPO(ArmEquivariantPolicy, env)`` learns across random instances where a plain network does not,
because it need not learn for each arm apart what is true of all: one small network looks at every
arm, compares it with a summary of the others, and gives it a score. Its weights do not depend on
the numbers of arms and users.

Example:
    >>> import gymnasium as gym
    >>> import gym_fairbandits
    >>> from stable_baselines3 import PPO
    >>> from gym_fairbandits.agents.sb3 import ArmEquivariantPolicy, BanditVecEnv
    >>> settings = {"num_arms": 3, "horizon": 10, "autoreset_mode": "SameStep"}
    >>> envs = BanditVecEnv(gym.make_vec("ImprovingBandit-v0", num_envs=4, **settings))
    >>> model = PPO(ArmEquivariantPolicy, envs, n_steps=10, batch_size=40, seed=0, device="cpu")
    >>> model.learn(40).num_timesteps
    40
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from gym_fairbandits._checks import checked_int

from ._features import FeatureExtractor
from ._networks import Arms, ArmScores, MaskedArms, Networks
from ._vec_env import BanditVecEnv

__all__ = ["ArmEquivariantPolicy", "BanditVecEnv", "MaskableArmEquivariantPolicy"]

# The policies are defined here and not in a module of their own: saved models name this one.


class _ArmEquivariant:
    """What both policies share: features without weights, then the networks."""

    hidden: tuple[int, ...]
    slots: int

    def _prepare(self, observation_space: spaces.Space[Any], action_space: Any, hidden: Any) -> int:
        """Check the spaces, keep the sizes, and return the capacity of an arm."""
        if (
            not isinstance(observation_space, spaces.Dict)
            or "pulls" not in observation_space.spaces
        ):
            raise TypeError(
                "`observation_space` must be the Dict of an environment of gym_fairbandits, "
                f"not flattened, got {observation_space}"
            )
        sizes = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        self.hidden = tuple(checked_int("hidden", size) for size in sizes)
        num_arms = int(np.prod(observation_space["pulls"].shape or ()))
        self.slots = (
            action_space.shape[0] // num_arms if isinstance(action_space, spaces.Box) else 1
        )
        taken = observation_space.spaces.get("taken")
        return int(taken.high.max()) if isinstance(taken, spaces.Box) else self.slots

    def _own_parameters(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the constructor's arguments that are saved with a policy."""
        fixed = ("features_extractor_class", "features_extractor_kwargs", "net_arch")
        kept = {name: value for name, value in data.items() if name not in fixed}
        return {**kept, "hidden": self.hidden}

    def _networks(self, policy: Any) -> Networks:
        zeros = {
            name: th.zeros(1, *(space.shape or ()))
            for name, space in policy.observation_space.spaces.items()
        }
        sample = policy.features_extractor(zeros)
        return Networks(sample, self.hidden, policy.activation_fn).to(policy.device)


class ArmEquivariantPolicy(_ArmEquivariant, ActorCriticPolicy):
    """Actor and critic for ``PPO`` and ``A2C`` that treat all arms alike.

    For ``ImprovingBandit-v0``, and for ``EgalAssign-v0`` in ``RankedAssignment``,
    ``RotatedAssignment`` or ``SequentialAssignment``; observations stay a ``Dict``. Permuting the
    arms permutes the logits (or scores) and leaves the value. Features are scaled in here, and do
    not tell the horizon unless ``remaining`` is observed. With ``deterministic=True`` scores
    within 1e-5 are ties, which go to the lowest index, whatever the size of the batch.

    Attributes:
        hidden: Sizes of the network that looks at each arm.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        hidden: int | Sequence[int] = 64,
        activation_fn: type[nn.Module] = nn.SiLU,
        **kwargs: Any,
    ) -> None:
        """Create the policy; Stable-Baselines3 does, from ``policy_kwargs``.

        Raises:
            TypeError: If the observations are not those of an environment of this package.
            ValueError: If a size is below 1.
        """
        capacity = self._prepare(observation_space, action_space, hidden)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            activation_fn=activation_fn,
            features_extractor_class=FeatureExtractor,
            features_extractor_kwargs={"capacity": capacity},
            **kwargs,
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = self._networks(self)  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        if isinstance(self.action_space, spaces.Box):
            self.action_dist = ArmScores(self.action_space.shape[0], self.slots)
        else:
            self.action_dist = Arms(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return self._own_parameters(super()._get_constructor_parameters())


class MaskableArmEquivariantPolicy(_ArmEquivariant, MaskableActorCriticPolicy):
    """The same for ``MaskablePPO`` on ``SequentialAssignment``: arms that are taken are masked.

    Attributes:
        hidden: Sizes of the network that looks at each arm.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        hidden: int | Sequence[int] = 64,
        activation_fn: type[nn.Module] = nn.SiLU,
        **kwargs: Any,
    ) -> None:
        """Create the policy; see :class:`ArmEquivariantPolicy`.

        Raises:
            TypeError: If the observations are not those of an environment of this package.
            ValueError: If a size is below 1.
        """
        capacity = self._prepare(observation_space, action_space, hidden)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            activation_fn=activation_fn,
            features_extractor_class=FeatureExtractor,
            features_extractor_kwargs={"capacity": capacity},
            **kwargs,
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = self._networks(self)  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        self.action_dist = MaskedArms(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return self._own_parameters(super()._get_constructor_parameters())
