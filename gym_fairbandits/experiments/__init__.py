"""The papers' experiments, and the engines that run them."""

from gym_fairbandits.experiments.engine import Simulation, simulate
from gym_fairbandits.experiments.kinetic import anytime_improving

__all__ = ["Simulation", "anytime_improving", "simulate"]
