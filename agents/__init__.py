"""The papers' algorithms and their rivals, as agents that read observations only."""

from .base import Agent, argmax_fewest_pulls
from .capacity import PhasedElimination
from .classic import UniformRandom
from .egalitarian import EgalUCB, RotatingAgent
from .egalitarian_indices import (
    EgalKLUCB,
    EgalMOSS,
    EgalThompson,
    ExploreThenCommit,
    GreedyRotation,
    IndexRotation,
)
from .egalitarian_steps import CombinatorialUCB, PoorestFirst
from .improving import AnytimeImproving, FixedArm, Greedy, RoundRobin
from .oracle import OracleArm, OracleRotation, StaticOracle

__all__ = [
    "Agent",
    "AnytimeImproving",
    "CombinatorialUCB",
    "EgalKLUCB",
    "EgalMOSS",
    "EgalThompson",
    "EgalUCB",
    "ExploreThenCommit",
    "FixedArm",
    "Greedy",
    "GreedyRotation",
    "IndexRotation",
    "OracleArm",
    "OracleRotation",
    "PhasedElimination",
    "PoorestFirst",
    "RotatingAgent",
    "RoundRobin",
    "StaticOracle",
    "UniformRandom",
    "argmax_fewest_pulls",
]
