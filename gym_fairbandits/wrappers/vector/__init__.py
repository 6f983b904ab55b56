"""The same wrappers for the native vector environments."""

from gym_fairbandits.wrappers.vector.regret import PolicyRegret

__all__ = ["PolicyRegret"]
