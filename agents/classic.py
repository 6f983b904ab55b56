"""Policies that every comparison needs, and the classic ones for rewards that do not change.

The classic bandits minimise *external* regret: what they earn is compared with the best arm on the
rewards as they come. None of them has a guarantee on *policy* regret where arms improve with their
pulls: whoever leaves a late bloomer early never learns what it would have become.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_float, checked_int

from ._kl import LAWS, exploration_budget, kl_upper_bound
from ._posterior import bernoulli_coins, sample_beta, sample_gaussian
from .base import Agent, Observation, argmax_fewest_pulls
from .egalitarian import ucb_index
from .history import HistoryAgent

__all__ = ["KLUCB", "UCB1", "EpsilonGreedy", "ThompsonSampling", "UniformRandom"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class UniformRandom(Agent):
    """A uniformly random arm, or a random assignment: uniform over all at capacity 1.

    Regret is linear in T. At capacity C each arm counts as C slots, of which the users get
    distinct ones at random.

    Attributes:
        capacity: Users per arm; only assignments read it.
    """

    def __init__(self, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``capacity`` is below 1.
        """
        super().__init__()
        self.capacity = checked_int("capacity", capacity)

    def _act(self, observation: Observation) -> Ints:
        rows, num_arms = observation["pulls"].shape
        if "user_reward_sum" not in observation:
            arms: Ints = (self._uniforms(rows, 1)[:, 0] * num_arms).astype(np.int64)
            return arms
        num_users = observation["user_reward_sum"].shape[1]
        if not num_users <= self.capacity * num_arms:
            raise ValueError(
                f"`capacity` must be at least the users per arm, {num_users} / {num_arms}, "
                f"got {self.capacity}"
            )
        # The order of independent uniform numbers is a uniformly random permutation.
        keys = self._uniforms(rows, num_arms * self.capacity)
        order: Ints = keys.argsort(axis=1, kind="stable")
        return order[:, :num_users] // self.capacity


class UCB1(Agent):
    """UCB1 of Auer, Cesa-Bianchi, Fischer (2002): the mean plus a bonus for what is uncertain.

    Pulls every arm once, then the arm of the highest ``mean + sqrt(c ln t / n)``: n pulls of the
    arm, t pulls of all. Ties, which the paper leaves open, go to the fewest pulls, then the lowest
    index. Rewards are taken to lie in [0, 1]; knows nothing else, not the horizon either. O(K) per
    step.

    Guarantee (their Theorem 1): external regret at most the sum over the worse arms of
    ``8 ln T / gap + (1 + pi^2 / 3) gap``, for rewards whose law does not change. On improving
    arms there is none on policy regret.

    Attributes:
        c: The constant in the bonus; 2 in the paper.
    """

    def __init__(self, c: float = 2.0) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``c`` is negative.
        """
        super().__init__()
        self.c = checked_float("c", c, at_least=0)

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        index = ucb_index(observation["reward_sum"], pulls, pulls.sum(axis=1), self.c, 1.0)
        return argmax_fewest_pulls(index, pulls)


class KLUCB(Agent):
    """KL-UCB of Garivier and Cappé (2011, Algorithm 1): the highest mean that is still plausible.

    Pulls every arm once, then the arm of the highest
    ``max{q: n kl(mean, q) <= ln t + c ln ln t}``: n pulls of the arm, t the number of the step
    (from 1). A negative right-hand side counts as 0. Ties go to the fewest pulls, then the lowest
    index. Knows the law of the rewards, not the horizon. O(K) per step, with some ten evaluations
    of kl.

    Guarantee (theirs): for rewards in [0, 1] whose law does not change, external regret at most
    ``gap ln T / kl(mean, best mean)`` per worse arm to leading order, which is optimal for
    Bernoulli rewards. On improving arms there is none on policy regret.

    Attributes:
        law: ``"bernoulli"``, for any rewards in [0, 1], or ``"gaussian"``.
        c: The constant in the budget: 3 in the theorem, 0 recommended by its authors.
        sigma: Standard deviation of the rewards, read under the Gaussian law only; 1/2 is enough
            for any rewards in [0, 1].
    """

    def __init__(self, law: str = "bernoulli", c: float = 0.0, sigma: float = 0.5) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``law`` is unknown, ``c`` negative, or ``sigma`` not above 0.
        """
        super().__init__()
        self.law = checked_choice("law", law, LAWS)
        self.c = checked_float("c", c, at_least=0)
        self.sigma = checked_float("sigma", sigma, above=0)

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        played = np.maximum(pulls, 1)
        budget = exploration_budget(pulls.sum(axis=1) + 1, self.c)[:, None] / played
        means = observation["reward_sum"] / played
        index = kl_upper_bound(means, budget, self.law, self.sigma)
        return argmax_fewest_pulls(np.where(pulls > 0, index, np.inf), pulls)


class EpsilonGreedy(Agent):
    """The arm of the best mean, but a uniformly random one with probability epsilon.

    Epsilon is constant, or decays as in epsilon_n-greedy of Auer, Cesa-Bianchi, Fischer (2002,
    Figure 3): ``min(1, c K / (gap^2 t))`` at step t, from 1, with K arms. The greedy choice takes
    arms not pulled yet first; ties go to the fewest pulls, then the lowest index. The decaying form
    knows (a lower bound on) the gap between the best and the second best mean. O(K) per step.

    Guarantee (their Theorem 3): with ``c > 5`` and a true gap, external regret O(K ln T / gap^2)
    for rewards in [0, 1] whose law does not change; constant epsilon has linear regret. On
    improving arms there is none on policy regret.

    Attributes:
        epsilon: The constant probability; ``None`` where it decays. 0.1 if nothing is given.
        c: The constant of the decaying form.
        gap: d in the paper, in (0, 1].
    """

    def __init__(
        self, epsilon: float | None = None, c: float | None = None, gap: float | None = None
    ) -> None:
        """Create the agent, from ``epsilon``, or from ``c`` and ``gap``.

        Raises:
            TypeError: If a parameter is not a number.
            ValueError: If a parameter breaks its rule, or does not go with the others.
        """
        super().__init__()
        if (c is None) != (gap is None) or (epsilon is not None and c is not None):
            raise ValueError(
                "`epsilon` must be given alone, or `c` and `gap` together, "
                f"got epsilon={epsilon!r}, c={c!r}, gap={gap!r}"
            )
        if c is None and epsilon is None:
            epsilon = 0.1
        self.epsilon = (
            None if epsilon is None else checked_float("epsilon", epsilon, at_least=0, at_most=1)
        )
        self.c = None if c is None else checked_float("c", c, above=0)
        self.gap = None if gap is None else checked_float("gap", gap, above=0, at_most=1)

    def exploration(self, steps: Ints, num_arms: int) -> Floats:
        """Return epsilon at each of the steps ``steps``, counted from 1."""
        if self.c is None or self.gap is None:
            return np.full(len(steps), self.epsilon, dtype=np.float64)
        decaying: Floats = np.minimum(1.0, self.c * num_arms / (self.gap**2 * steps))
        return decaying

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        rows, num_arms = pulls.shape
        means = np.where(pulls > 0, observation["reward_sum"] / np.maximum(pulls, 1), np.inf)
        uniforms = self._uniforms(rows, 2)
        explores = uniforms[:, 0] < self.exploration(pulls.sum(axis=1) + 1, num_arms)
        anywhere = (uniforms[:, 1] * num_arms).astype(np.int64)
        return np.where(explores, anywhere, argmax_fewest_pulls(means, pulls))


class ThompsonSampling(HistoryAgent):
    """Thompson sampling: a mean is drawn from every arm's posterior, and the highest is pulled.

    With Beta posteriors (Agrawal and Goyal 2012, Algorithm 2) that of an arm is
    ``Beta(1 + S, 1 + n - S)``, where S counts successes; a reward x in [0, 1] is first made a
    success with probability x. Gaussian posteriors are ``N(mean, sigma^2 / n)``, and arms not
    pulled yet come first. Ties go to the lowest index. Knows the law of the rewards, not the
    horizon. O(K) per step; rows are drawn one by one, each from its own generator.

    Guarantee (Kaufmann, Korda, Munos 2012; Agrawal and Goyal 2013): for Bernoulli rewards whose
    law does not change, external regret ``gap ln T / kl(mean, best mean)`` per worse arm to leading
    order, which is optimal. On improving arms there is none on policy regret.

    Attributes:
        law: Of the posterior: ``"beta"``, for any rewards in [0, 1], or ``"gaussian"``.
        sigma: Standard deviation of the rewards, read under the Gaussian law only; 1/2 is enough
            for any rewards in [0, 1].
    """

    def __init__(self, law: str = "beta", sigma: float = 0.5) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``law`` is unknown, or ``sigma`` not above 0.
        """
        super().__init__()
        self.law = checked_choice("law", law, ("beta", "gaussian"))
        self.sigma = checked_float("sigma", sigma, above=0)

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._counts: Ints = np.zeros((rows, num_arms), dtype=np.int64)
        self._sums: Floats = np.zeros((rows, num_arms))  # of successes, or of rewards

    def _clear(self, rows: Ints) -> None:
        self._counts[rows] = 0
        self._sums[rows] = 0

    def _learn(self, rows: Ints, arms: Ints, rewards: Floats) -> None:
        if self.law == "beta":
            rewards = bernoulli_coins([self._generator(row) for row in rows.tolist()], rewards)
        self._counts[rows, arms] += 1
        self._sums[rows, arms] += rewards

    def _choose(self, observation: Observation) -> Ints:
        generators = [self._generator(row) for row in range(len(self._counts))]
        if self.law == "beta":
            drawn = sample_beta(generators, self._sums, self._counts - self._sums)
        else:
            means = self._sums / np.maximum(self._counts, 1)
            drawn = sample_gaussian(generators, means, self._counts, self.sigma)
        best: Ints = drawn.argmax(axis=1)
        return best
