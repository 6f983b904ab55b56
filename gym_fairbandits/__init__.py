"""Gymnasium environments for two fair-bandit papers, with their algorithms as baselines.

Importing the package registers ``ImprovingBandit-v0`` (Patil et al., *Mitigating Disparity while
Maximizing Reward: Tight Anytime Guarantee for Improving Bandits*) and ``EgalAssign-v0`` (Lim,
Tan, Soh, *Stochastic Bandits for Egalitarian Assignment*).
"""

from gymnasium.envs.registration import register

__all__ = ["__version__"]
__version__ = "0.1.0"

# By string, so that importing the package loads no environment; without `max_episode_steps`,
# which would silently cut a longer `horizon`.
register(
    "ImprovingBandit-v0",
    entry_point="gym_fairbandits.envs:ImprovingBanditEnv",
    vector_entry_point="gym_fairbandits.envs:ImprovingBanditVectorEnv",
)
register(
    "EgalAssign-v0",
    entry_point="gym_fairbandits.envs:EgalAssignEnv",
    vector_entry_point="gym_fairbandits.envs:EgalAssignVectorEnv",
)
