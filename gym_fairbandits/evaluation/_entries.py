"""What is played: a policy, and what it needs around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gym_fairbandits._rollout import Plan

__all__ = ["Entry", "Policy", "entry_of"]

# Anything with `predict` (agents, models of Stable-Baselines3), a callable from batched
# observations to actions, a class that is created from the environment that runs, or an `Entry`.
Policy: TypeAlias = Any


@dataclass(frozen=True)
class Entry:
    """A policy and what it needs around it.

    Attributes:
        policy: As for :func:`evaluate`.
        factory: Instead of ``policy``: called for each batch of episodes, with the environment
            that runs if it has a parameter ``env``.
        wrappers: The wrappers that a model was trained with, called with the scalar environment,
            innermost first.
        env_kwargs: Arguments of the environment that only this policy gets, such as
            ``{"horizon_known": True}``.
        normalize: The statistics that a model was trained with: a ``VecNormalize``, or a callable
            from batched observations to batched observations.
    """

    policy: Policy = None
    factory: Callable[..., Policy] | None = field(default=None, kw_only=True)
    wrappers: Sequence[Callable[[Any], Any]] = field(default=(), kw_only=True)
    env_kwargs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    normalize: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check that there is one policy; raises ``TypeError``."""
        if (self.policy is None) == (self.factory is None):
            raise TypeError("an `Entry` must have either a `policy` or a `factory`")
        chosen = self.policy if self.factory is None else self.factory
        if not isinstance(self.wrappers, Sequence) or isinstance(self.wrappers, str):
            raise TypeError(f"`wrappers` must be a sequence of callables, got {self.wrappers!r}")
        if not (hasattr(chosen, "predict") or callable(chosen)):
            hint = f"; an agent by its name is `agents.make({chosen!r})`"
            raise TypeError(
                f"`policy` must have `predict` or be callable, got {chosen!r}"
                f"{hint if isinstance(chosen, str) else ''}"
            )
        if self.normalize is not None and not (
            hasattr(self.normalize, "normalize_obs") or callable(self.normalize)
        ):
            raise TypeError(
                f"`normalize` must be a `VecNormalize` or a callable, got {self.normalize!r}"
            )

    def plan(
        self, env_id: str, checkpoints: tuple[int, ...], metrics: tuple[str, ...], **shared: Any
    ) -> Plan:
        """Return what to play; ``shared`` are the arguments of the environment for all."""
        is_factory = self.factory is not None or isinstance(self.policy, type)
        return Plan(
            policy=self.policy if self.factory is None else self.factory,
            is_factory=is_factory,
            env_id=env_id,
            env_kwargs={**shared, **self.env_kwargs},
            wrappers=tuple(self.wrappers),
            normalize=getattr(self.normalize, "normalize_obs", self.normalize),
            checkpoints=checkpoints,
            metrics=metrics,
        )


def entry_of(
    policy: Policy, wrappers: Sequence[Callable[[Any], Any]] = (), normalize: Any = None
) -> Entry:
    """Return an entry of what the arguments of ``evaluate`` say; raises ``TypeError``."""
    if policy is None:
        raise TypeError("`policy` must have `predict` or be callable, got None")
    return Entry(policy, wrappers=wrappers, normalize=normalize)
