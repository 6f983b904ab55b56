"""Wrappers: they add to what an episode reports, never to what the agent sees or earns."""

from gym_fairbandits.wrappers import vector
from gym_fairbandits.wrappers.regret import PolicyRegret, competitive_ratio

__all__ = ["PolicyRegret", "competitive_ratio", "vector"]
