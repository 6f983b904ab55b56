"""The papers' algorithms and their rivals, as agents that read observations only."""

from .base import Agent, argmax_fewest_pulls
from .classic import UniformRandom
from .egalitarian import EgalUCB, RotatingAgent
from .improving import AnytimeImproving, FixedArm, Greedy, RoundRobin
from .oracle import OracleArm, OracleRotation, StaticOracle

__all__ = [
    "Agent",
    "AnytimeImproving",
    "EgalUCB",
    "FixedArm",
    "Greedy",
    "OracleArm",
    "OracleRotation",
    "RotatingAgent",
    "RoundRobin",
    "StaticOracle",
    "UniformRandom",
    "argmax_fewest_pulls",
]
