"""What wrappers share that report an account of an episode when it ends."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

__all__ = ["EndMetrics"]

ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")


class EndMetrics(gym.Wrapper[ObsT, ActT, ObsT, ActT], RecordConstructorArgs, Generic[ObsT, ActT]):
    """Writes :meth:`metrics` into ``info`` when, and only when, an episode ends.

    Rewards and observations pass untouched. An end that a wrapper outside decides (a
    ``TimeLimit`` around this one, say) is not seen; :meth:`metrics` answers at any time.
    """

    def __init__(self, env: gym.Env[ObsT, ActT]) -> None:
        """Wrap ``env``; a subclass with arguments records them first."""
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def step(self, action: ActT) -> tuple[ObsT, Any, bool, bool, dict[str, Any]]:
        """Step, and add the metrics if that ended the episode; see :meth:`gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self._play(action)
        if terminated or truncated:
            info = {**info, **self.metrics()}
        return observation, reward, terminated, truncated, info

    def _play(self, action: ActT) -> tuple[ObsT, Any, bool, bool, dict[str, Any]]:
        """Step the environment inside; a subclass that keeps an account of steps does it here."""
        return self.env.step(action)

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Return all that ``info`` would hold if the episode ended now."""
