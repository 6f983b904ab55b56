"""Policies for egalitarian assignment with other ways than EgalUCB to choose a block's arms."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_float

from ._kl import LAWS, exploration_budget, kl_upper_bound
from ._posterior import bernoulli_coins, sample_beta, sample_gaussian
from .base import Observation, checked_horizon, total_steps
from .egalitarian import RotatingAgent, top_arms, ucb_index

__all__ = [
    "EgalKLUCB",
    "EgalMOSS",
    "EgalThompson",
    "ExploreThenCommit",
    "GreedyRotation",
    "IndexRotation",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class IndexRotation(RotatingAgent):
    """Per block, the G = U / C arms of the highest index, ties by lowest arm.

    Subclasses write :meth:`_index` only.
    """

    @abstractmethod
    def _index(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Floats:
        """Return an index per arm, float64 ``(n, num_arms)``; arguments as of :meth:`_choose`."""

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        return top_arms(self._index(observation, steps, rows, count), count)


class GreedyRotation(IndexRotation):
    """Per block, the U arms of the highest mean reward so far; arms never played come first.

    EgalUCB without its bonus. It knows nothing that others do not, and has no guarantee: a good
    arm that pays little in its first block may never be played again, so that regret is linear
    in T. O(K log K) per block.

    Attributes:
        capacity: C, users per arm; must divide the number of users.
    """

    def _index(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Floats:
        return ucb_index(observation["reward_sum"], observation["pulls"], steps, 0.0, 0.0)


class EgalMOSS(IndexRotation):
    """Per block, the U arms of the highest MOSS index; knows the horizon.

    The index of an arm with n plays is ``mean + 2 sigma sqrt(max(0, ln(T U / (K n))) / n)``,
    infinite if it was never played: that of Audibert and Bubeck (2009), whose horizon is the
    number of plays, here T U. Lim, Tan, Soh name it as an extension. With capacity C, U / C
    takes the place of U. Knows T and the scale of the noise. O(K log K) per block.

    Guarantee: none is proved in block form; a regret of order sqrt((K - U) T / U) is conjectured.

    Attributes:
        horizon: T; ``None`` where the observation tells what is ``remaining``.
        sigma: Scale of the noise, in units of reward: 1/2 serves rewards in [0, 1] and gives
            MOSS as published, 1 the 1-subgaussian ones of Lim, Tan, Soh.
        capacity: C, users per arm; must divide the number of users.
    """

    def __init__(self, horizon: int | None = None, sigma: float = 0.5, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.horizon = checked_horizon(horizon)
        self.sigma = checked_float("sigma", sigma, at_least=0)

    def _index(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Floats:
        pulls, reward_sum = observation["pulls"], observation["reward_sum"]
        all_plays = total_steps(observation, steps, self.horizon)[:, None] * count
        played = np.maximum(pulls, 1)
        budget = np.maximum(np.log(all_plays / (pulls.shape[1] * played)), 0.0)
        index = reward_sum / played + 2 * self.sigma * np.sqrt(budget / played)
        return np.where(pulls > 0, index, np.inf)


class EgalKLUCB(IndexRotation):
    """Per block, the U arms of the highest KL-UCB index.

    The index of an arm with n plays after t steps is the largest q with
    ``n kl(mean, q) <= ln t + c ln ln t``, infinite if it was never played (Garivier and Cappé
    2011). The Bernoulli kl also serves other rewards in [0, 1]; for rewards beyond take the
    Gaussian one, or rescale them, as ``docs/datasets.md`` shows. Knows neither horizon nor means,
    but the law of the rewards. O(K log K) per block.

    Guarantee: none is proved in block form. Without blocks and for one user, regret is
    asymptotically optimal under the law, with c = 3 in the proof.

    Attributes:
        law: ``"bernoulli"`` or ``"gaussian"``.
        c: The constant of ``ln ln t``: 0 works best in practice.
        sigma: Standard deviation of a reward, in units of reward; the Gaussian law reads it.
            1/2 is the most that rewards in [0, 1] have; unit Gaussian ones have 1.
        capacity: C, users per arm; must divide the number of users.
    """

    def __init__(
        self, law: str = "bernoulli", c: float = 0, sigma: float = 0.5, capacity: int = 1
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.law = checked_choice("law", law, LAWS)
        self.c = checked_float("c", c, at_least=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)

    def _index(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Floats:
        pulls, reward_sum = observation["pulls"], observation["reward_sum"]
        played = np.maximum(pulls, 1)
        budget = exploration_budget(steps, self.c)[:, None] / played
        bound = kl_upper_bound(reward_sum / played, budget, self.law, self.sigma)
        return np.where(pulls > 0, bound, np.inf)


class EgalThompson(IndexRotation):
    """Per block, the U arms of the highest draw from their posteriors (Thompson sampling).

    ``law="beta"``: the draw is from ``Beta(1 + S, 1 + n - S)``, S the successes of n plays. A
    reward x between 0 and 1 becomes a success with probability x (the Bernoulli coin of Agrawal
    and Goyal 2012); x beyond counts as the nearer end: rescale such rewards, as
    ``docs/datasets.md`` shows, or take the Gaussian law. The coin is thrown for every single
    reward: the agent is asked before every step of a block, and what an arm paid since it was
    last asked is the difference of two observations. If it was not asked for some steps, it sees
    only an arm's total of these and rounds that at random to a whole number of successes of the
    same mean. 0 and 1 are kept as they are, and no coin is thrown.

    ``law="gaussian"``: the draw is from ``N(mean, sigma^2 / n)``, and infinite if n = 0.

    Knows neither horizon nor means, but the law of the rewards. O(K log K) per block; with
    ``law="beta"``, O(K) per step besides.

    Guarantee: none is proved in block form. The choice of U arms at every step is asymptotically
    optimal for Bernoulli rewards (MP-TS, Komiyama, Honda, Nakagawa 2015).

    Attributes:
        law: ``"beta"`` or ``"gaussian"``.
        sigma: Standard deviation of a reward, in units of reward; the Gaussian law reads it.
            1/2 is the most that rewards in [0, 1] have; unit Gaussian ones have 1.
        capacity: C, users per arm; must divide the number of users.
    """

    def __init__(self, law: str = "beta", sigma: float = 0.5, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.law = checked_choice("law", law, ("beta", "gaussian"))
        self.sigma = checked_float("sigma", sigma, at_least=0)
        self._pulls: Ints = np.zeros((0, 0), dtype=np.int64)  # as last seen
        self._reward_sum: Floats = np.zeros((0, 0))
        self._successes: Floats = np.zeros((0, 0))

    def _act(self, observation: Observation) -> Ints:
        if self.law == "beta":
            self._count_successes(observation["pulls"], observation["reward_sum"])
        return super()._act(observation)

    def _count_successes(self, pulls: Ints, reward_sum: Floats) -> None:
        if self._pulls.shape != pulls.shape:
            self._pulls = np.zeros_like(pulls)
            self._reward_sum, self._successes = np.zeros(pulls.shape), np.zeros(pulls.shape)
        # An arm that lost plays, or has none, tells of a new episode.
        started = (pulls < self._pulls).any(axis=1) | (pulls.sum(axis=1) == 0)
        self._clear(np.flatnonzero(started))
        added = pulls - self._pulls
        paid = np.where(added > 0, np.clip(reward_sum - self._reward_sum, 0, added), 0.0)
        whole = np.floor(paid)
        rest = paid - whole
        tossing = np.flatnonzero(rest.any(axis=1))
        generators = [self._generator(row) for row in tossing.tolist()]
        self._successes += whole
        self._successes[tossing] += bernoulli_coins(generators, rest[tossing])
        self._pulls, self._reward_sum = pulls.copy(), reward_sum.astype(np.float64)

    def _clear(self, rows: Ints) -> None:
        for kept in (self._pulls, self._reward_sum, self._successes):
            kept[rows] = 0

    def _forget(self, mask: Bools | None) -> None:
        super()._forget(mask)
        if mask is None or len(mask) == len(self._pulls):
            self._clear(np.arange(len(self._pulls)) if mask is None else np.flatnonzero(mask))

    def _index(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Floats:
        generators = [self._generator(row) for row in rows.tolist()]
        pulls = observation["pulls"]
        if self.law == "beta":
            successes = self._successes[rows]
            return sample_beta(generators, successes, pulls - successes)
        means = observation["reward_sum"] / np.maximum(pulls, 1)
        return sample_gaussian(generators, means, pulls, self.sigma)


class ExploreThenCommit(RotatingAgent):
    """Tries all arms in turn, then stays with the U arms of the highest mean; knows the horizon.

    Exploration is r ceil(K / U) blocks (Lim, Tan, Soh write K / U): block b plays the arms b U to
    b U + U - 1, modulo K. So every arm has at least r blocks, each of U plays; r is the least
    number that makes these m plays:
    ``m = (4 / gap^2) max(1, ln(T gap^2 / 4))`` if the gap between the U-th best mean and the next
    is known (Lattimore and Szepesvari 2020, chapter 6), else ``m = (T / K)^(2/3)``. With capacity
    C, U / C takes the place of U. Knows T, and perhaps the gap. O(K log K) per block.

    Guarantee: with the true gap, regret of order ln T, for 1-subgaussian rewards; without, of
    order T^(2/3).

    Attributes:
        horizon: T; ``None`` where the observation tells what is ``remaining``.
        gap: In units of reward, or ``None``.
        capacity: C, users per arm; must divide the number of users.
    """

    def __init__(
        self, horizon: int | None = None, gap: float | None = None, capacity: int = 1
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.horizon = checked_horizon(horizon)
        self.gap = None if gap is None else checked_float("gap", gap, above=0)

    def num_rounds(self, horizon: Ints, num_arms: int, count: int) -> Ints:
        """Return r, the blocks that exploration gives to every arm, at least 1.

        Args:
            horizon: T; int64 array.
            num_arms: K.
            count: G = U / C, plays that a block gives to each of its arms.
        """
        if self.gap is None:
            plays = (horizon / num_arms) ** (2 / 3)
        else:
            log = np.log(horizon) + 2 * math.log(self.gap / 2)
            plays = np.maximum(1.0, log) * (4 / self.gap / self.gap)
        # Not more than there are steps: a tiny gap asks for more than an integer holds.
        rounds: Ints = np.minimum(np.ceil(plays / count), horizon).astype(np.int64)
        return np.maximum(rounds, 1)

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        num_arms = observation["pulls"].shape[1]
        lengths = total_steps(observation, steps, self.horizon)
        blocks = self.num_rounds(lengths, num_arms, count) * -(-num_arms // count)
        explored = blocks * count
        # A block has as many steps as arms: it begins at the arm of its first step's number.
        in_turn = (steps[:, None] + np.arange(count)) % num_arms
        greedy = ucb_index(observation["reward_sum"], observation["pulls"], steps, 0.0, 0.0)
        committed = (steps > explored) & (self._chosen_at[rows] >= explored)
        stays = np.where(committed[:, None], self._sets[rows], top_arms(greedy, count))
        return np.where((steps < explored)[:, None], in_turn, stays)
