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

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
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
    for size_in, size_out in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(size_in, size_out), activation()]
    return nn.Sequential(*layers)


class _Summary(nn.Module):
    """Looks at each arm and user with one network, and sums up what it saw."""

    def __init__(self, sample: _Features, hidden: Sequence[int], activation: type[nn.Module]):
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
    def __init__(self, sample: _Features, hidden: Sequence[int], activation: type[nn.Module]):
        super().__init__()
        last = hidden[-1]
        self.latent_dim_pi = self.latent_dim_vf = last
        self.actor, self.critic = (_Summary(sample, hidden, activation) for _ in range(2))
        self.own, self.others = nn.Linear(last, last), nn.Linear(self.actor.size, last)
        self.joined = activation()
        self.worth = _layers([self.critic.size, last], activation)

    def forward(self, features: _Features) -> tuple[th.Tensor, th.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: _Features) -> th.Tensor:
        arms, summary = self.actor(features)
        return self.joined(self.own(arms) + self.others(summary)[:, None])

    def forward_critic(self, features: _Features) -> th.Tensor:
        return self.worth(self.critic(features)[1])


class _Scores(nn.Module):
    """One score per arm, or per slot: the slots of an arm share its score."""

    def __init__(self, latent_dim: int, slots: int = 1) -> None:
        super().__init__()
        self.slots = slots
        self.linear = nn.Linear(latent_dim, 1)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        scores = self.linear(latent).squeeze(-1)
        return scores if self.slots == 1 else scores.repeat_interleave(self.slots, dim=1)


def _first_best(scores: th.Tensor) -> th.Tensor:
    return ((scores - scores.amax(dim=1, keepdim=True)) / GRID).round().argmax(dim=1)


def _snapped(scores: th.Tensor) -> th.Tensor:
    ranked, order = scores.sort(dim=1, descending=True, stable=True)
    top = (ranked[:, :1] / GRID).round()
    gaps = ((ranked[:, :-1] - ranked[:, 1:]) / GRID).round()
    steps = th.cat([top, top - gaps.cumsum(dim=1)], dim=1)
    return th.empty_like(scores).scatter(1, order, steps * GRID)


class _Arms(CategoricalDistribution):
    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class _MaskedArms(MaskableCategoricalDistribution):
    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class _ArmScores(DiagGaussianDistribution):
    def __init__(self, action_dim: int, slots: int) -> None:
        super().__init__(action_dim)
        self.slots = slots

    def proba_distribution_net(self, latent_dim: int, log_std_init: float = 0.0) -> tuple[nn.Module, nn.Parameter]:
        return _Scores(latent_dim, self.slots), nn.Parameter(th.full((1,), log_std_init))

    def mode(self) -> th.Tensor:
        return _snapped(self.distribution.mean)


class _Mixin:
    def _setup(self, observation_space, action_space, hidden, activation_fn, kwargs):
        self.hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        num_arms = observation_space["pulls"].shape[0]
        self.slots = 1
        if isinstance(action_space, spaces.Box):
            self.slots = action_space.shape[0] // num_arms
        kwargs.update(features_extractor_class=_FeatureExtractor, features_extractor_kwargs={"capacity": self.slots}, activation_fn=activation_fn)

    def _build_mlp_extractor(self):
        zeros = {k: th.zeros(1, *s.shape) for k, s in self.observation_space.spaces.items()}
        sample = self.features_extractor(zeros)
        self.mlp_extractor = _Networks(sample, self.hidden, self.activation_fn)


class ArmEquivariantPolicy(_Mixin, ActorCriticPolicy):
    def __init__(self, observation_space, action_space, lr_schedule, hidden=64, activation_fn=nn.SiLU, **kwargs):
        self._early = {}
        th.nn.Module.__init__(self)
        self._setup(observation_space, action_space, hidden, activation_fn, kwargs)
        hid, slots = self.hidden, self.slots
        self.__dict__["_keep"] = (hid, slots)
        kwargs.pop("use_sde", None)
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule):
        self.hidden, self.slots = self._keep
        if isinstance(self.action_space, spaces.Box):
            self.action_dist = _ArmScores(self.action_space.shape[0], self.slots)
        else:
            self.action_dist = _Arms(int(self.action_space.n))
        super()._build(lr_schedule)


class MaskableArmEquivariantPolicy(_Mixin, MaskableActorCriticPolicy):
    pass


class BanditVecEnv(VecEnv):
    def __init__(self, envs, info_keywords=()):
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self._started = time.time()
        self._info_keywords = info_keywords

    def reset(self):
        obs, infos = self.envs.reset(seed=self._seeds)
        self._reset_seeds(); self._reset_options()
        self._returns[:] = 0
        self._lengths[:] = 0
        return obs

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        obs, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        dones = terminations | truncations
        listed = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        if dones.any():
            keys = [k for k in infos if "_" + k in infos and k not in ("final_obs", "final_info")]
            for row in np.flatnonzero(dones).tolist():
                info = listed[row]
                info["TimeLimit.truncated"] = bool(truncations[row] and not terminations[row])
                info["terminal_observation"] = infos["final_obs"][row]
                for k in keys:
                    if infos["_" + k][row] and infos[k].ndim == 1:
                        info[k] = float(infos[k][row])
                info["episode"] = {"r": round(float(self._returns[row]), 6), "l": int(self._lengths[row]), "t": round(time.time() - self._started, 6), **{k: info[k] for k in self._info_keywords}}
            self._returns[dones] = 0
            self._lengths[dones] = 0
        return obs, rewards.astype(np.float32), dones, listed

    def close(self):
        self.envs.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.envs, attr_name)] * self.num_envs

    def set_attr(self, *a, **k):
        raise NotImplementedError

    def env_method(self, *a, **k):
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [issubclass(Monitor, wrapper_class)] * self.num_envs
