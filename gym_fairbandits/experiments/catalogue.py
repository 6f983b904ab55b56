"""The experiments by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gym_fairbandits.experiments.egal_cluster import EgalCluster
from gym_fairbandits.experiments.egal_movielens import EgalMovielens
from gym_fairbandits.experiments.egal_saturation import EgalSaturation
from gym_fairbandits.experiments.egal_synthetic import EgalSynthetic
from gym_fairbandits.experiments.egal_users import EgalUsers
from gym_fairbandits.experiments.improving_potential import ImprovingPotential
from gym_fairbandits.experiments.improving_ratio import ImprovingRatio
from gym_fairbandits.experiments.late_bloomer import LateBloomer
from gym_fairbandits.experiments.learned import Learned
from gym_fairbandits.experiments.runner import Experiment
from gym_fairbandits.experiments.theorem_checks import TheoremChecks

__all__ = ["EXPERIMENTS"]

_ALL: tuple[type[Experiment], ...] = (
    TheoremChecks,
    EgalSynthetic,
    EgalUsers,
    EgalSaturation,
    EgalCluster,
    EgalMovielens,
    ImprovingRatio,
    ImprovingPotential,
    LateBloomer,
    Learned,
)
EXPERIMENTS: Mapping[str, type[Experiment]] = MappingProxyType({own.name: own for own in _ALL})
