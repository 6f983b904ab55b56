"""The same wrappers for the native vector environments."""

from gym_fairbandits.wrappers.vector.assignment import (
    EnumeratedAssignment,
    LehmerAssignment,
    RankedAssignment,
)
from gym_fairbandits.wrappers.vector.external import ExternalRegret
from gym_fairbandits.wrappers.vector.fairness import FairnessMetrics
from gym_fairbandits.wrappers.vector.regret import PolicyRegret

__all__ = [
    "EnumeratedAssignment",
    "ExternalRegret",
    "FairnessMetrics",
    "LehmerAssignment",
    "PolicyRegret",
    "RankedAssignment",
]
