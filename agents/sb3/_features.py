"""What the policies' networks see: features of arms, of users and of the episode as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

__all__ = ["FeatureExtractor", "Features"]

Tensors: TypeAlias = Mapping[str, th.Tensor]


class Features(NamedTuple):
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


def _improving_features(observed: Tensors) -> Features:
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
    return Features(th.stack(arms, dim=-1), pulls.new_zeros(len(pulls), 0, 1), th.cat(whole, 1))


def _assignment_features(observed: Tensors, capacity: int) -> Features:
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
    return Features(th.stack(arms, dim=-1), th.stack(users, dim=-1), th.cat(whole, dim=1))


class FeatureExtractor(BaseFeaturesExtractor):
    """Turns observations into features of arms, users and the whole; has no weights."""

    def __init__(self, observation_space: spaces.Dict, capacity: int = 1) -> None:
        super().__init__(observation_space, features_dim=1)
        self.capacity = capacity

    def forward(self, observed: Tensors) -> Features:
        if "user_reward_sum" in observed:
            return _assignment_features(observed, self.capacity)
        return _improving_features(observed)
