"""Policies for egalitarian assignment that choose a set of arms and rotate the users over it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_float, checked_int, groups_of_users
from gym_fairbandits.spaces import rotation

from .base import Agent, Observation

__all__ = [
    "EgalUCB",
    "RotatingAgent",
    "check_enough_arms",
    "top_arms",
    "ucb_index",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def ucb_index(sums: Floats, pulls: Ints, steps: Ints, c: float, sigma: float) -> Floats:
    """Return ``S_a / n_a + sigma sqrt(c ln t / n_a)``; infinite for arms not played yet.

    Args:
        sums: S, total reward per arm; float64 array of shape ``(n, num_arms)``.
        pulls: n, plays per arm; int64 array of shape ``(n, num_arms)``.
        steps: t, steps played, at least 1 in rows where an arm was played; int64 ``(n,)``.
        c: The constant in the bonus.
        sigma: Scale of the noise, in units of reward.
    """
    never = None
    if np.count_nonzero(pulls) < pulls.size:
        never = pulls == 0
        pulls = pulls + never
    played = pulls.astype(np.float64)  # once, not at each division
    index: Floats = (c * np.log(np.maximum(steps, 1)))[:, None] / played
    np.sqrt(index, out=index)
    if sigma != 1:
        index *= sigma
    index += np.divide(sums, played, out=played)
    if never is not None:
        index[never] = np.inf
    return index


def top_arms(index: Floats, count: int) -> Ints:
    """Return the ``count`` arms of the highest index, descending, ties by lowest arm."""
    if count == 1:  # what costs most, for one user in every step
        best: Ints = index.argmax(axis=-1)[..., None]
        return best
    order = np.argsort(-index, axis=-1, kind="stable")
    return order[..., :count]


def check_enough_arms(arms_per_step: int, num_users: int, num_arms: int, capacity: int) -> None:
    """Refuse to play ``arms_per_step`` different arms where there are only ``num_arms``.

    Raises:
        ValueError: If there are too few.
    """
    if not arms_per_step <= num_arms:
        raise ValueError(
            f"`capacity` must be at least the users per arm, {num_users} / {num_arms}, "
            f"got {capacity}"
        )


class RotatingAgent(Agent):
    """Chooses a set of arms per block and lets the users rotate over it.

    A block is G = U / C steps (C users share an arm): in its step i, the users of group g, those
    with numbers g C to g C + C - 1, play arm number (g - i) mod G of the set. So within a block
    every user has every arm once, and all users earn the same but for chance. Subclasses write
    :meth:`_choose` only. If the horizon is not a multiple of G, the last block is cut short.

    The place within the block follows from ``pulls``, as every step plays G arms; what is kept
    per row is the set of the running block.

    Attributes:
        capacity: C, users per arm; must divide the number of users.
    """

    def __init__(self, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            ValueError: If ``capacity`` is below 1.
        """
        super().__init__()
        self.capacity = checked_int("capacity", capacity)
        self._sets: Ints = np.zeros((0, 0), dtype=np.int64)
        self._chosen_at: Ints = np.zeros(0, dtype=np.int64)
        self._room: tuple[int, ...] = ()  # the sizes that were checked last
        self._rows = self._steps = np.zeros(0, dtype=np.int64)

    @abstractmethod
    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        """Choose the arms of a block that begins.

        Args:
            observation: Of the rows in which a block begins only.
            steps: Steps played in each; int64 array of shape ``(n,)``.
            rows: The numbers of these rows; int64 array of shape ``(n,)``.
            count: G, how many arms to choose.

        Returns:
            Arms in the order of rotation; int64 array of shape ``(n, count)``.
        """

    def num_groups(self, num_users: int) -> int:
        """Return G = U / C, the arms of a set and the steps of a block.

        Raises:
            ValueError: If C does not divide U.
        """
        return groups_of_users(num_users, self.capacity)

    def _arms_per_step(self, num_users: int) -> int:
        """Return how many different arms a step plays: it tells steps from pulls."""
        return self.num_groups(num_users)

    @property
    def chooses_per_block(self) -> bool:
        """Whether the choice at the start of each block is all that it does.

        Not so if it also learns from the steps in between, or plays another number of arms.
        """
        own = type(self)
        return own._act is RotatingAgent._act and own._arms_per_step is RotatingAgent._arms_per_step

    def begin_block(self, observation: Observation, steps: int) -> Ints:
        """Return the sets of the blocks that begin in every row, as :meth:`act` chooses them.

        For who plays whole blocks at once: step i of the block is
        :func:`gym_fairbandits.spaces.rotation` of the sets at place i, for what ``act`` would
        return. It stands for ``act`` if :attr:`chooses_per_block`.

        Args:
            observation: A batch in which all rows have played ``steps`` steps; not changed.
            steps: A multiple of G.

        Returns:
            int64 array of shape ``(num_rows, G)``, valid until the next call.
        """
        groups = self._make_room(observation)
        self._steps.fill(steps)
        self._sets[:] = self._choose(observation, self._steps, self._rows, groups)
        self._chosen_at.fill(steps)
        return self._sets

    def _make_room(self, observation: Observation) -> int:
        """Check the sizes and make room for a set per row; return G."""
        num_arms = observation["pulls"].shape[1]
        room = (*observation["user_reward_sum"].shape, num_arms, self.capacity)
        if self._room != room:
            num_rows, num_users, *_ = room
            sets = num_rows, self.num_groups(num_users)
            check_enough_arms(self._arms_per_step(num_users), num_users, num_arms, self.capacity)
            if self._sets.shape != sets:
                self._sets = np.zeros(sets, dtype=np.int64)
                self._chosen_at = np.full(num_rows, -1, dtype=np.int64)
            self._rows = np.arange(num_rows)
            self._steps = np.empty_like(self._rows)
            self._room = room
        groups: int = self._sets.shape[1]
        return groups

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        groups = self._make_room(observation)
        num_users = observation["user_reward_sum"].shape[1]
        steps = pulls.sum(axis=1) // self._arms_per_step(num_users)
        place = steps % groups
        # Asked twice before the same step, the set stands; at step 0 an episode is new.
        begins = (place == 0) & ((steps == 0) | (self._chosen_at != steps))
        rows = np.flatnonzero(begins | (self._chosen_at < 0))
        if len(rows):
            chosen = {name: values[rows] for name, values in observation.items()}
            self._sets[rows] = self._choose(chosen, steps[rows], rows, groups)
            self._chosen_at[rows] = steps[rows]
        return rotation(self._sets, place, num_users)

    def _forget(self, mask: Bools | None) -> None:
        if mask is None or len(mask) == len(self._chosen_at):
            self._chosen_at[slice(None) if mask is None else mask] = -1


class EgalUCB(RotatingAgent):
    """EgalUCB of Lim, Tan, Soh (Algorithms 1 and 2): per block, the U arms of the highest UCB.

    After b blocks of U steps, arm a with B_a blocks has the index
    ``S_a / (B_a U) + sigma sqrt(c ln(b U) / (B_a U))``, infinite if it was never played; ties go
    to the lowest index. With capacity C, the U / C best arms serve C users each (their section 8)
    and U / C takes the place of U. Knows neither horizon nor means. O(K log K) per block.

    Guarantee (Theorem 1): regret at most 2136 (K - U) ln T / Dmin + 4 K Dmax / U for U >= 2 (with
    U = 1 the second constant must be 1 + pi^2 / 3), for 1-subgaussian rewards.

    Attributes:
        c: The constant in the bonus; 6 in the paper.
        sigma: Scale of the noise, in units of reward; the paper's bonus is for 1, and it does
            not exploit a smaller one.
        capacity: C, users per arm; must divide the number of users.
        update: ``"all"`` refreshes every arm's index after each block (Algorithm 2, on which the
            proofs rest); ``"played"`` only those of the block (Algorithm 1 as printed), which can
            freeze a good arm for ever: then regret is linear.
        loop: ``"fixed"`` or ``"printed"``: how many blocks a run has; see :meth:`num_steps`.
            It does not change any choice.
    """

    def __init__(
        self,
        c: float = 6,
        sigma: float = 1.0,
        capacity: int = 1,
        update: str = "all",
        loop: str = "fixed",
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.c = checked_float("c", c, at_least=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)
        self.update = checked_choice("update", update, ("all", "played"))
        self.loop = checked_choice("loop", loop, ("fixed", "printed"))
        self._index: Floats = np.zeros((0, 0))

    def num_steps(self, horizon: int, num_users: int) -> int:
        """Return how many steps a run for ``horizon`` takes.

        ``loop="fixed"`` takes ``horizon``: floor(T / G) blocks and, if G does not divide T, a
        truncated one. The printed condition ``while b <= T/U`` (b from 0) runs
        floor(T / G) + 1 whole blocks, too many.
        """
        groups = self.num_groups(num_users)
        return horizon if self.loop == "fixed" else (horizon // groups + 1) * groups

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        pulls = observation["pulls"]
        index = ucb_index(observation["reward_sum"], pulls, steps, self.c, self.sigma)
        if self.update == "played":
            if self._index.shape != (len(self._sets), pulls.shape[1]):
                self._index = np.full((len(self._sets), pulls.shape[1]), np.inf)
            # After a reset, the last set is no longer known, whatever the step.
            going_on = (steps > 0) & (self._chosen_at[rows] >= 0)
            self._index[rows[~going_on]] = np.inf
            played = self._sets[rows[going_on]]
            fresh = np.take_along_axis(index[going_on], played, axis=1)
            self._index[rows[going_on][:, None], played] = fresh
            index = self._index[rows]
        return top_arms(index, count)
