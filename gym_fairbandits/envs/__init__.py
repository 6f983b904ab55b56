"""The environments, scalar and native vector."""

from gym_fairbandits.envs.egal_assign import EgalAssignEnv, EgalAssignVectorEnv
from gym_fairbandits.envs.improving_bandit import ImprovingBanditEnv, ImprovingBanditVectorEnv

__all__ = [
    "EgalAssignEnv",
    "EgalAssignVectorEnv",
    "ImprovingBanditEnv",
    "ImprovingBanditVectorEnv",
]
