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
from .improving import AnytimeImproving, FixedArm, Greedy, HorizonAwareImproving, RoundRobin
from .oracle import GreedyNext, OracleArm, OracleRotation, OracleSchedule, StaticOracle
from .random_order import HybridRising, RandomRoundRobin
from .registry import agent_class, available, knowledge, load, make, ready, register
from .rising import RCBE, RisingUCB
from .single_peaked import AnytimeSinglePeaked, SinglePeakedOptimism
from .windowed import DiscountedUCB, SlidingWindowThompson, SlidingWindowUCB

__all__ = [
    "KLUCB",
    "RCBE",
    "UCB1",
    "Agent",
    "AnytimeImproving",
    "AnytimeSinglePeaked",
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
    "GreedyNext",
    "GreedyRotation",
    "HorizonAwareImproving",
    "HybridRising",
    "IndexRotation",
    "OracleArm",
    "OracleRotation",
    "OracleSchedule",
    "PermELearn",
    "PhasedElimination",
    "PoorestFirst",
    "RandomRoundRobin",
    "Rexp3",
    "RisingUCB",
    "RotatingAgent",
    "RoundRobin",
    "SinglePeakedOptimism",
    "SlidingWindowThompson",
    "SlidingWindowUCB",
    "StaticOracle",
    "ThompsonSampling",
    "UniformRandom",
    "agent_class",
    "argmax_fewest_pulls",
    "available",
    "knowledge",
    "load",
    "make",
    "ready",
    "register",
]
