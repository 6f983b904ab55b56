"""Reward laws of assignment arms, K arms at a time.

A law turns raw draws into rewards and holds no random state: the environment hands it one draw
per user and step, uniform or standard normal as ``noise`` says. So the same law serves one
environment, a batch of them and any engine, from the same draws, and a law may depend on the step
or on how often each arm was played.

To add a law, subclass :class:`Arms`, give it a ``family`` name for the dict form, and write
:meth:`Arms.rewards` elementwise. A law whose expected rewards change with the step or the pulls
also says ``varying = True`` and writes :meth:`Arms.expected_rewards`, by which environments
account for it, and, if pulls do not matter, :meth:`Arms.expected_totals`.
"""

from gym_fairbandits.arms.base import Arms, Noise, from_dict
from gym_fairbandits.arms.constant import Bernoulli, Empirical, Gaussian
from gym_fairbandits.arms.varying import AdaptiveAdversary, Adversarial, Switching

__all__ = [
    "AdaptiveAdversary",
    "Adversarial",
    "Arms",
    "Bernoulli",
    "Empirical",
    "Gaussian",
    "Noise",
    "Switching",
    "from_dict",
]
