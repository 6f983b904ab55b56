"""Networks that treat all arms alike, and the distributions of actions that they end in."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch as th
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
)
from torch import nn

from ._features import Features

__all__ = ["ArmScores", "Arms", "MaskedArms", "Networks"]

GRID = 1e-5  # scores closer than this are ties: torch rounds by the size of the batch


# --- Networks -----------------------------------------------------------------------------------


def _layers(sizes: Sequence[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size_in, size_out in itertools.pairwise(sizes):
        layers += [nn.Linear(size_in, size_out), activation()]
    return nn.Sequential(*layers)


class _Summary(nn.Module):
    """Looks at each arm and user with one network, and sums up what it saw."""

    def __init__(
        self, sample: Features, hidden: Sequence[int], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        self.arm = _layers([sample.arms.shape[-1], *hidden], activation)
        self.size = 2 * hidden[-1] + sample.whole.shape[-1]
        self.user = None
        if sample.users.shape[1]:
            self.user = _layers([sample.users.shape[-1], hidden[-1] // 2], activation)
            self.size += 2 * (hidden[-1] // 2)

    def forward(self, features: Features) -> tuple[th.Tensor, th.Tensor]:
        arms = self.arm(features.arms)
        parts = [arms.mean(dim=1), arms.amax(dim=1), features.whole]
        if self.user is not None:
            users = self.user(features.users)
            parts += [users.mean(dim=1), users.amax(dim=1)]
        return arms, th.cat(parts, dim=1)


class Networks(nn.Module):
    """Actor and critic: a latent vector per arm, and one for the value."""

    def __init__(
        self, sample: Features, hidden: Sequence[int], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        last = hidden[-1]
        self.latent_dim_pi = self.latent_dim_vf = last
        self.actor, self.critic = (_Summary(sample, hidden, activation) for _ in range(2))
        self.own, self.others = nn.Linear(last, last), nn.Linear(self.actor.size, last)
        self.joined = activation()
        self.direct = nn.Linear(sample.arms.shape[-1], last)
        self.worth = _layers([self.critic.size, last], activation)

    def forward(self, features: Features) -> tuple[th.Tensor, th.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Features) -> th.Tensor:
        arms, summary = self.actor(features)
        around = self.others(summary)[:, None]
        latent: th.Tensor = self.joined(self.own(arms) + self.direct(features.arms) + around)
        return latent

    def forward_critic(self, features: Features) -> th.Tensor:
        latent: th.Tensor = self.worth(self.critic(features)[1])
        return latent


class Scores(nn.Module):
    """One score per arm, or per slot: the slots of an arm share its score."""

    def __init__(self, latent_dim: int, slots: int = 1) -> None:
        super().__init__()
        self.slots = slots
        self.linear = nn.Linear(latent_dim, 1)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        scores: th.Tensor = self.linear(latent).squeeze(-1)
        return scores if self.slots == 1 else scores.repeat_interleave(self.slots, dim=1)


# --- Distributions ------------------------------------------------------------------------------


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


class Arms(CategoricalDistribution):
    """One logit per arm, from a latent vector per arm."""

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class MaskedArms(MaskableCategoricalDistribution):
    """The same, of which some are masked."""

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return Scores(latent_dim)

    def mode(self) -> th.Tensor:
        return _first_best(self.distribution.logits)


class ArmScores(DiagGaussianDistribution):
    """A Gaussian score per arm; one standard deviation for all, so that arms stay alike."""

    def __init__(self, action_dim: int, slots: int) -> None:
        super().__init__(action_dim)
        self.slots = slots

    def proba_distribution_net(
        self, latent_dim: int, log_std_init: float = 0.0
    ) -> tuple[nn.Module, nn.Parameter]:
        return Scores(latent_dim, self.slots), nn.Parameter(th.full((1,), log_std_init))

    def mode(self) -> th.Tensor:
        return _snapped(self.distribution.mean)
