"""Wrappers: what an episode reports beside its rewards, and actions that learners can emit."""

from gym_fairbandits.wrappers import vector
from gym_fairbandits.wrappers.assignment import (
    EnumeratedAssignment,
    LehmerAssignment,
    RankedAssignment,
    RotatedAssignment,
)
from gym_fairbandits.wrappers.external import ExternalRegret
from gym_fairbandits.wrappers.fairness import FairnessMetrics, gini, jain_index
from gym_fairbandits.wrappers.regret import PolicyRegret, competitive_ratio
from gym_fairbandits.wrappers.sequential import SequentialAssignment

__all__ = [
    "EnumeratedAssignment",
    "ExternalRegret",
    "FairnessMetrics",
    "LehmerAssignment",
    "PolicyRegret",
    "RankedAssignment",
    "RotatedAssignment",
    "SequentialAssignment",
    "competitive_ratio",
    "gini",
    "jain_index",
    "vector",
]
