"""Policies for egalitarian assignment made for arms that several users share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_float, checked_int, groups_of_users
from gym_fairbandits.spaces import rotation

from .base import Agent, Observation, checked_horizon, total_steps
from .egalitarian import check_enough_arms, top_arms, ucb_index

__all__ = ["PhasedElimination"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class PhasedElimination(Agent):
    """Shares arms between more and more users, of fewer and fewer arms; knows the horizon.

    With capacity C there are phases p = 1, ..., C. Phase p plays EgalUCB in blocks of
    g = ceil(U / p) steps: the g arms of the highest UCB serve p users each (one of them fewer if
    p does not divide U), who rotate. So many arms are tried per step at first, when little is
    known. Where a later phase begins, only the ceil(K / p) arms of the highest mean, at least g,
    of those still active stay so; the others never return. Phases with ceil(U / p) > K are left
    out. The index of an arm with n plays after t steps is ``mean + sigma sqrt(c ln t / n)``,
    infinite if it was never played. At capacity 1 the agent is EgalUCB.

    ``schedule="log"``: phases but the last have ceil(kappa ln T) blocks each. ``"equal"``: all
    phases have the same number of steps, rounded down to whole blocks, as Lim, Tan, Soh
    conjecture (section 8). The last phase takes the rest.

    Knows T and the scale of the noise. O(K log K) per block, O(U + C) per step.

    Guarantee: none is proved. With ``"equal"``, regret is linear in T even if the means are
    known, since a phase p < C plays more than U / C arms: for K = 4, U = C = 2 and means
    (1, 1/2, 1/2, 1/2) it is at least T / 8. With ``"log"`` these phases cost O(ln T).

    An agent that joins an episode late begins its schedule there, if the observation tells what
    is ``remaining``.

    Attributes:
        capacity: C, most users per arm; must divide the number of users.
        horizon: T; ``None`` where the observation tells what is ``remaining``.
        schedule: ``"log"`` or ``"equal"``.
        kappa: Length of the early phases of ``"log"``, in blocks per ln T.
        c: The constant in the bonus; 6 as in EgalUCB.
        sigma: Scale of the noise, in units of reward.
    """

    def __init__(
        self,
        capacity: int = 1,
        horizon: int | None = None,
        schedule: str = "log",
        kappa: float = 20,
        c: float = 6,
        sigma: float = 1.0,
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__()
        self.capacity = checked_int("capacity", capacity)
        self.horizon = checked_horizon(horizon)
        self.schedule = checked_choice("schedule", schedule, ("log", "equal"))
        self.kappa = checked_float("kappa", kappa, at_least=0)
        self.c = checked_float("c", c, at_least=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)
        # Per row: T (-1: not known yet), the plays before the schedule began, the phase whose
        # arms are active, the set of the running block, and at which step it was chosen.
        self._lengths: Ints = np.zeros(0, dtype=np.int64)
        self._plays_before: Ints = np.zeros(0, dtype=np.int64)
        self._phase: Ints = np.zeros(0, dtype=np.int64)
        self._active: Bools = np.zeros((0, 0), dtype=np.bool_)
        self._sets: Ints = np.zeros((0, 0), dtype=np.int64)
        self._chosen_at: Ints = np.zeros(0, dtype=np.int64)

    def phases(self, num_users: int, num_arms: int) -> Ints:
        """Return p, the users per arm, of each phase; int64 array.

        Raises:
            ValueError: If the capacity does not divide the number of users, or the arms cannot
                serve all.
        """
        fewest = groups_of_users(num_users, self.capacity)
        check_enough_arms(fewest, num_users, num_arms, self.capacity)
        shared = np.arange(1, self.capacity + 1)
        return shared[-(-num_users // shared) <= num_arms]

    def phase_starts(self, lengths: Ints, groups: Ints) -> Ints:
        """Return the step at which each phase begins.

        Args:
            lengths: T; int64 array of shape ``(n,)``.
            groups: g of each phase, the arms per step; int64 array of shape ``(num_phases,)``.

        Returns:
            int64 array of shape ``(n, num_phases)``.
        """
        if self.schedule == "log":
            blocks = np.ceil(self.kappa * np.log(np.maximum(lengths, 1))).astype(np.int64)[:, None]
        else:
            blocks = lengths[:, None] // (len(groups) * groups[:-1])
        starts = np.zeros((len(lengths), len(groups)), dtype=np.int64)
        np.cumsum(blocks * groups[:-1], axis=1, out=starts[:, 1:])
        return starts

    def _act(self, observation: Observation) -> Ints:
        pulls = observation["pulls"]
        num_users = observation["user_reward_sum"].shape[1]
        shared = self.phases(num_users, pulls.shape[1])
        groups = -(-num_users // shared)
        self._notice_episodes(observation, int(groups[0]))
        starts = self.phase_starts(self._lengths, groups)
        # In its phase every step plays g arms: plays tell steps.
        plays = pulls.sum(axis=1) - self._plays_before
        plays_before_phase = np.zeros_like(starts)
        np.cumsum(np.diff(starts, axis=1) * groups[:-1], axis=1, out=plays_before_phase[:, 1:])
        phase = (plays_before_phase <= plays[:, None]).sum(axis=1) - 1
        every_row = np.arange(len(phase))
        in_phase = (plays - plays_before_phase[every_row, phase]) // groups[phase]
        steps = starts[every_row, phase] + in_phase
        total_steps(observation, steps, self.horizon)  # refuses what is beyond the horizon
        place = in_phase % groups[phase]
        begins = (place == 0) & (self._chosen_at != steps)
        rows = np.flatnonzero(begins | (self._chosen_at < 0))
        if len(rows):
            sizes = np.maximum(-(-pulls.shape[1] // shared), groups)
            self._choose(observation, rows, steps[rows], phase[rows], sizes)
        actions = np.empty((len(phase), num_users), dtype=np.int64)
        for number in np.unique(phase).tolist():
            own = np.flatnonzero(phase == number)
            count, seats = int(groups[number]), int(groups[number] * shared[number])
            actions[own] = rotation(self._sets[own, :count], place[own], seats)[:, :num_users]
        return actions

    def _notice_episodes(self, observation: Observation, width: int) -> None:
        pulls = observation["pulls"]
        num_rows, num_arms = pulls.shape
        if self._active.shape != pulls.shape or self._sets.shape[1] != width:
            self._active = np.ones((num_rows, num_arms), dtype=np.bool_)
            self._sets = np.zeros((num_rows, width), dtype=np.int64)
            self._lengths, self._plays_before, self._phase, self._chosen_at = np.full(
                (4, num_rows), -1, dtype=np.int64
            )
        plays = pulls.sum(axis=1)
        new = np.flatnonzero((plays == 0) | (self._lengths < 0))
        if len(new):
            chosen = {name: values[new] for name, values in observation.items()}
            lengths = total_steps(chosen, np.zeros(len(new), dtype=np.int64), self.horizon)
            self._lengths[new] = lengths
            self._plays_before[new] = plays[new] if "remaining" in observation else 0
            self._active[new] = True
            self._phase[new] = 0
            self._chosen_at[new] = -1

    def _choose(
        self, observation: Observation, rows: Ints, steps: Ints, phase: Ints, sizes: Ints
    ) -> None:
        """Choose the sets of ``rows``, after elimination to the phase's ``sizes`` if it is new."""
        pulls, reward_sum = observation["pulls"][rows], observation["reward_sum"][rows]
        index = ucb_index(reward_sum, pulls, steps, self.c, self.sigma)
        entering = np.flatnonzero(self._phase[rows] != phase)
        if len(entering):
            means = ucb_index(reward_sum[entering], pulls[entering], steps[entering], 0.0, 0.0)
            self._eliminate(rows[entering], means, sizes[phase[entering]])
            self._phase[rows] = phase
        index[~self._active[rows]] = -np.inf
        self._sets[rows] = top_arms(index, self._sets.shape[1])
        self._chosen_at[rows] = steps

    def _eliminate(self, rows: Ints, means: Floats, sizes: Ints) -> None:
        """Keep the ``sizes[i]`` best active arms of row ``rows[i]``."""
        num_arms = means.shape[1]
        order = top_arms(np.where(self._active[rows], means, -np.inf), num_arms)
        stays = np.empty((len(rows), num_arms), dtype=np.bool_)
        np.put_along_axis(stays, order, np.arange(num_arms) < sizes[:, None], axis=1)
        self._active[rows] &= stays

    def _forget(self, mask: Bools | None) -> None:
        if mask is None or len(mask) == len(self._lengths):
            self._lengths[slice(None) if mask is None else mask] = -1
