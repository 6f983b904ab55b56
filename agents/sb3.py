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

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch as th
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
)
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from gym_fairbandits._checks import checked_int

__all__ = ["ArmEquivariantPolicy", "BanditVecEnv", "MaskableArmEquivariantPolicy"]

Tensors: TypeAlias = Mapping[str, th.Tensor]

GRID = 1e-5  # scores closer than this are ties: torch rounds by the size of the batch


# --- Features -----------------------------------------------------------------------------------


class _Features(NamedTuple):
    """What the networks see of a batch of n observations.

    Attributes:
        arms: Features of each arm; float32 ``(n, num_arms, arm_size)``.
        users: Of each user; float32 ``(n, num_users, user_size)``; no users in bandits.
        whole: Of the episode as a whole; float32 ``(n, whole_size)``.
    """

    arms: th.Tensor
    users: th.Tensor
    whole: th.Tensor


def _log(values: th.Tensor) -> th.Tensor:
    """Return ``ln(1 + x) / 5`` of what is not negative: within 0 and 3 for up to 10^6."""
    return th.log1p(values.clamp(min=0)) / 5


def _squash(values: th.Tensor) -> th.Tensor:
    """Return values as they are within [-1, 1], beyond it their logarithm: no jump, no kink."""
    size = values.abs()
    return th.where(size <= 1, values, values.sign() * (1 + th.log(size.clamp(min=1))))


def _optimistic(last: th.Tensor, rise: th.Tensor, cap: th.Tensor, steps: th.Tensor) -> th.Tensor:
    """Return the mean reward of an arm's next pulls if it goes on rising as now, up to ``cap``.

    Args:
        last: Its last reward; ``(n, num_arms)``.
        rise: Its last increment, at least 0; ``(n, num_arms)``.
        cap: Where rewards end; ``(n, 1)``.
        steps: The number of pulls; ``(n, 1)``.
    """
    rising = th.minimum((cap - last) / rise.clamp(min=1e-9), steps)
    return last + rise * rising * (1 - (rising - 1) / (2 * steps))


def _improving_features(observed: Tensors) -> _Features:
    pulls, last = observed["pulls"].clamp(min=0), observed["last_reward"]
    increment = observed["last_increment"]
    untried, once = (pulls == 0).float(), (pulls == 1).float()
    elapsed = pulls.sum(dim=1, keepdim=True)
    played = pulls.clamp(min=1)
    mean = observed["reward_sum"] / played
    best = last.amax(dim=1, keepdim=True)
    cap = best.clamp(min=1)
    # A concave curve from 0 rises no more at the second pull than at the first.
    rise = th.where(pulls == 1, last, increment)
    rise = th.where(pulls == 0, cap, rise).clamp(min=0)
    size = last.abs().clamp(min=1e-6)
    until_best = ((best - last) / rise.clamp(min=1e-9)).clamp(0, 1e9)
    soon = _optimistic(last, rise, cap, elapsed.clamp(min=1))
    late = _optimistic(last, rise, cap, 4 * elapsed + 4)
    arms = [
        untried,
        once,
        _log(pulls),
        1 / (1 + pulls),
        pulls / elapsed.clamp(min=1),
        _squash(last),
        _squash(mean),
        _squash(last - best),
        _log(1e5 * increment) - _log(-1e5 * increment),
        (rise * played / size).clamp(0, 2),  # 1 on a straight line, 0 once flat
        (mean / size).clamp(0, 2),  # 1/2 on a straight line, 1 if it was always flat
        _squash(soon),
        _squash(soon - soon.amax(dim=1, keepdim=True)),
        _squash(late - late.amax(dim=1, keepdim=True)),
        _log(until_best),
        until_best / (until_best + elapsed + 1),
    ]
    whole = [
        _log(elapsed),
        1 / (1 + elapsed),
        _squash(best),
        untried.mean(dim=1, keepdim=True),
        th.full_like(best, pulls.shape[1]).log() / 5,
    ]
    if "remaining" in observed:
        remaining = observed["remaining"].clamp(min=0)
        steps = remaining.clamp(min=1)
        rest = _optimistic(last, rise, cap, steps)
        arms += [
            _squash(th.minimum(cap, last + rise * remaining)),
            _squash(rest),
            _squash(rest - rest.amax(dim=1, keepdim=True)),
            until_best / (until_best + steps),
        ]
        whole += [_log(remaining), remaining / (remaining + elapsed).clamp(min=1)]
    return _Features(th.stack(arms, dim=-1), pulls.new_zeros(len(pulls), 0, 1), th.cat(whole, 1))


def _assignment_features(observed: Tensors, capacity: int) -> _Features:
    pulls, totals = observed["pulls"].clamp(min=0), observed["user_reward_sum"]
    num_arms, num_users = pulls.shape[1], totals.shape[1]
    needed = min(num_arms, -(-num_users // capacity))
    plays = pulls.sum(dim=1, keepdim=True)
    steps = plays / needed
    rewards = observed["reward_sum"]
    prior = rewards.sum(dim=1, keepdim=True) / plays.clamp(min=1)
    mean = (rewards + prior) / (pulls + 1)  # shrunk towards the mean of all arms
    doubt = (pulls + 1).rsqrt()
    ranked = mean.sort(dim=1, descending=True).values
    inside = ranked[:, needed - 1 : needed]
    outside = ranked[:, min(needed, num_arms - 1)][:, None]
    middle = (inside + outside) / 2
    bonus = _log(plays).sqrt() * doubt
    arms = [
        (pulls == 0).float(),
        _log(pulls),
        doubt,
        bonus,
        pulls * num_arms / plays.clamp(min=1) / 3,
        _squash(mean),
        _squash(mean - inside),
        _squash(mean - outside),
        ((mean - middle) / doubt).clamp(-5, 5) / 2,
        _squash(mean + bonus - middle),
    ]
    low, centre = totals.amin(dim=1, keepdim=True), totals.mean(dim=1, keepdim=True)
    spread = (steps + 1).sqrt()
    above = totals - low
    users = [
        _log(above),
        (above / spread).clamp(0, 5),
        ((totals - centre) / spread).clamp(-5, 5),
        (above == 0).float(),
    ]
    whole = [
        _log(plays),
        1 / (1 + steps),
        _squash(inside),
        _squash(inside - outside),
        th.full_like(low, num_arms).log() / 5,
        th.full_like(low, num_users).log() / 5,
        th.full_like(low, needed / num_arms),
    ]
    if "turn" in observed:
        turn = observed["turn"].round().long().clamp(0, num_users - 1)
        number = th.arange(num_users, device=turn.device)
        users += [(number == turn).float(), (number < turn).float()]
        whole += [values.gather(1, turn) for values in users[:4]]
        whole.append((num_users - turn) / num_users)
    if "taken" in observed:
        arms.append((observed["taken"] / capacity).clamp(0, 2))
    if "remaining" in observed:
        remaining = observed["remaining"].clamp(min=0)
        arms.append((_log(remaining).sqrt() * doubt).expand_as(pulls))
        whole += [_log(remaining), remaining / (remaining + steps).clamp(min=1)]
    return _Features(th.stack(arms, dim=-1), th.stack(users, dim=-1), th.cat(whole, dim=1))


class _FeatureExtractor(BaseFeaturesExtractor):
    """Turns observations into features of arms, users and the whole; has no weights."""

    def __init__(self, observation_space: spaces.Dict, capacity: int = 1) -> None:
        super().__init__(observation_space, features_dim=1)
        self.capacity = capacity

    def forward(self, observed: Tensors) -> _Features:
        if "user_reward_sum" in observed:
            return _assignment_features(observed, self.capacity)
        return _improving_features(observed)


# --- Networks -----------------------------------------------------------------------------------


def _layers(sizes: Sequence[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size_in, size_out in itertools.pairwise(sizes):
        layers += [nn.Linear(size_in, size_out), activation()]
    return nn.Sequential(*layers)


class _Summary(nn.Module):
    """Looks at each arm and user with one network, and sums up what it saw."""

    def __init__(
        self, sample: _Features, hidden: Sequence[int], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        self.arm = _layers([sample.arms.shape[-1], *hidden], activation)
        self.size = 2 * hidden[-1] + sample.whole.shape[-1]
        self.user = None
        if sample.users.shape[1]:
            self.user = _layers([sample.users.shape[-1], hidden[-1] // 2], activation)
            self.size += 2 * (hidden[-1] // 2)

    def forward(self, features: _Features) -> tuple[th.Tensor, th.Tensor]:
        arms = self.arm(features.arms)
        parts = [arms.mean(dim=1), arms.amax(dim=1), features.whole]
        if self.user is not None:
            users = self.user(features.users)
            parts += [users.mean(dim=1), users.amax(dim=1)]
        return arms, th.cat(parts, dim=1)


class _Networks(nn.Module):
    """Actor and critic: a latent vector per arm, and one for the value."""

    def __init__(
        self, sample: _Features, hidden: Sequence[int], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        last = hidden[-1]
        self.latent_dim_pi = self.latent_dim_vf = last
        self.actor, self.critic = (_Summary(sample, hidden, activation) for _ in range(2))
        self.own, self.others = nn.Linear(last, last), nn.Linear(self.actor.size, last)
        self.joined = activation()
        self.direct = nn.Linear(sample.arms.shape[-1], last)
        self.worth = _layers([self.critic.size, last], activation)

    def forward(self, features: _Features) -> tuple[th.Tensor, th.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: _Features) -> th.Tensor:
        arms, summary = self.actor(features)
        around = self.others(summary)[:, None]
        latent: th.Tensor = self.joined(self.own(arms) + self.direct(features.arms) + around)
        return latent

    def forward_critic(self, features: _Features) -> th.Tensor:
        latent: th.Tensor = self.worth(self.critic(features)[1])
        return latent


class _Scores(nn.Module):
    """One score per arm, or per slot: the slots of an arm share its score."""

    def __init__(self, latent_dim: int, slots: int = 1) -> None:
        super().__init__()
        self.slots = slots
        self.linear = nn.Linear(latent_dim, 1)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        scores: th.Tensor = self.linear(latent).squeeze(-1)
        return scores if self.slots == 1 else scores.repeat_interleave(self.slots, dim=1)


def _first_best(scores: th.Tensor) -> th.Tensor:
    """Return the lowest index among the scores that are the highest up to ``GRID``."""
    return ((scores - scores.amax(dim=1, keepdim=True)) / GRID).round().argmax(dim=1)


def _snapped(scores: th.Tensor) -> th.Tensor:
    """Return scores whose gaps are multiples of ``GRID``: what is closer becomes an exact tie."""
    ranked, order = scores.sort(dim=1, descending=True, stable=True)
    top = (ranked[:, :1] / GRID).round()
    gaps = ((ranked[:, :-1] - ranked[:, 1:]) / GRID).round()
    steps = th.cat([top, top - gaps.cumsum(dim=1)], dim=1)
    return th.empty_like(scores).scatter(1, order, steps * GRID)


class _Arms(CategoricalDistribution):
    """One logit per arm, from a latent vector per arm."""

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class _MaskedArms(MaskableCategoricalDistribution):
    """The same, of which some are masked."""

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class _ArmScores(DiagGaussianDistribution):
    """A Gaussian score per arm; one standard deviation for all, so that arms stay alike."""

    def __init__(self, action_dim: int, slots: int) -> None:
        super().__init__(action_dim)
        self.slots = slots

    def proba_distribution_net(
        self, latent_dim: int, log_std_init: float = 0.0
    ) -> tuple[nn.Module, nn.Parameter]:
        return _Scores(latent_dim, self.slots), nn.Parameter(th.full((1,), log_std_init))

    def mode(self) -> th.Tensor:
        return _snapped(self.distribution.mean)


# --- Policies -----------------------------------------------------------------------------------


class _ArmEquivariant:
    """What both policies share: features without weights, then the networks above."""

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

    def _networks(self, policy: Any) -> _Networks:
        zeros = {
            name: th.zeros(1, *(space.shape or ()))
            for name, space in policy.observation_space.spaces.items()
        }
        sample = policy.features_extractor(zeros)
        return _Networks(sample, self.hidden, policy.activation_fn).to(policy.device)


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
            features_extractor_class=_FeatureExtractor,
            features_extractor_kwargs={"capacity": capacity},
            **kwargs,
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = self._networks(self)  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        if isinstance(self.action_space, spaces.Box):
            self.action_dist = _ArmScores(self.action_space.shape[0], self.slots)
        else:
            self.action_dist = _Arms(int(self.action_space.n))  # type: ignore[attr-defined]
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
            features_extractor_class=_FeatureExtractor,
            features_extractor_kwargs={"capacity": capacity},
            **kwargs,
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = self._networks(self)  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        self.action_dist = _MaskedArms(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return self._own_parameters(super()._get_constructor_parameters())


# --- Quick training -----------------------------------------------------------------------------


class BanditVecEnv(VecEnv):
    """A native vector environment of this package as Stable-Baselines3 wants it.

    Many rows in one process, in NumPy arrays: rollouts cost a fraction of those of a
    ``DummyVecEnv``. Infos of rows that ended hold ``terminal_observation``,
    ``TimeLimit.truncated``, the flat metrics of ``wrappers.vector.PolicyRegret`` if it is around
    the environment, and ``episode`` as ``Monitor`` writes it.
    """

    def __init__(self, envs: VectorEnv[Any, Any, NDArray[Any]]) -> None:
        """Adapt ``envs``, made with ``autoreset_mode="SameStep"``.

        Raises:
            ValueError: If it resets in another mode.
        """
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"`envs` must be made with autoreset_mode='SameStep', got {mode!r}")
        self.envs = envs
        self.render_mode = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Any = None
        self._start = time.perf_counter()
        self._returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self._lengths: NDArray[np.int64] = np.zeros(self.num_envs, dtype=np.int64)

    def reset(self) -> Any:
        """Reset all rows, with the seeds of :meth:`seed`."""
        observations, _ = self.envs.reset(seed=self._seeds)  # type: ignore[arg-type]
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0, 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step all rows; return observations, float32 rewards, flags and a list of infos."""
        observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        ended = np.logical_or(terminations, truncations)
        listed: list[dict[str, Any]] = [
            {"TimeLimit.truncated": False} for _ in range(self.num_envs)
        ]
        for row in np.flatnonzero(ended).tolist():
            listed[row].update(self._final(infos, row))
            listed[row]["TimeLimit.truncated"] = bool(truncations[row] and not terminations[row])
        self._returns[ended], self._lengths[ended] = 0, 0
        return observations, rewards.astype(np.float32), ended, listed

    def _final(self, infos: dict[str, Any], row: int) -> dict[str, Any]:
        """Return what the infos say of an episode that has just ended."""
        final: dict[str, Any] = {"terminal_observation": infos["final_obs"][row]}
        for name, values in infos.items():
            mask = infos.get(f"_{name}")
            is_metric = isinstance(values, np.ndarray) and values.shape == (self.num_envs,)
            if is_metric and values.dtype.kind == "f" and mask is not None and mask[row]:
                final[name] = float(values[row])
        final["episode"] = {
            "r": round(float(self._returns[row]), 6),
            "l": int(self._lengths[row]),
            "t": round(time.perf_counter() - self._start, 6),
        }
        return final

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()

    def _rows(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the native environment, once per row."""
        return [getattr(self.envs.unwrapped, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: rows have no attributes of their own.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the rows of a native vector environment have no own attributes")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the native environment that answers with an array over rows."""
        rows = self._rows(indices)
        native = self.envs.unwrapped
        if method_name == "has_wrapper_attr":
            return [hasattr(native, *method_args)] * len(rows)
        if method_name == "get_wrapper_attr":
            return self.get_attr(method_args[0], indices)
        values = getattr(native, method_name)(*method_args, **method_kwargs)
        return [values[row] for row in rows]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return whether rows report like that wrapper: they do like ``Monitor``."""
        return [issubclass(Monitor, wrapper_class)] * len(self._rows(indices))
