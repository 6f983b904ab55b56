"""The papers' algorithms and their rivals, as agents that read observations only."""

from .adversarial import ComponentHedge, PermELearn
from .base import Agent, argmax_fewest_pulls
from .capacity import PhasedElimination
from .classic import KLUCB, UCB1, EpsilonGreedy, ThompsonSampling, UniformRandom
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
from .exponential import Exp3, Rexp3
from .improving import AnytimeImproving, FixedArm, Greedy, RoundRobin
from .oracle import OracleArm, OracleRotation, StaticOracle
from .windowed import DiscountedUCB, SlidingWindowThompson, SlidingWindowUCB

__all__ = [
    "KLUCB",
    "UCB1",
    "Agent",
    "AnytimeImproving",
    "CombinatorialUCB",
    "ComponentHedge",
    "DiscountedUCB",
    "EgalKLUCB",
    "EgalMOSS",
    "EgalThompson",
    "EgalUCB",
    "EpsilonGreedy",
    "Exp3",
    "ExploreThenCommit",
    "FixedArm",
    "Greedy",
    "GreedyRotation",
    "IndexRotation",
    "OracleArm",
    "OracleRotation",
    "PermELearn",
    "PhasedElimination",
    "PoorestFirst",
    "Rexp3",
    "RotatingAgent",
    "RoundRobin",
    "SlidingWindowThompson",
    "SlidingWindowUCB",
    "StaticOracle",
    "ThompsonSampling",
    "UniformRandom",
    "argmax_fewest_pulls",
]
