"""Policies for egalitarian assignment that choose anew at every step."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_float, checked_int
from gym_fairbandits.spaces import rotation

from .base import Agent, Observation
from .egalitarian import check_enough_arms, top_arms, ucb_index

__all__ = ["CombinatorialUCB", "PoorestFirst", "StepwiseUCB"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StepwiseUCB(Agent):
    """Plays the arms of the highest UCB at every step; subclasses say who gets which.

    After t steps an arm with n plays has the index ``mean + sigma sqrt(c ln t / n)``, infinite
    if it was never played; ties go to the lowest arm. With capacity C, the best arm serves C
    users, so does the next, and the last gets who remains: U slots in all, whatever U and C are.
    Nothing is remembered: the action follows from the observation.

    Subclasses write :meth:`_assign` only.

    Attributes:
        c: The constant in the bonus.
        sigma: Scale of the noise, in units of reward.
        capacity: C, users per arm.
    """

    def __init__(self, c: float, sigma: float, capacity: int) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__()
        self.c = checked_float("c", c, at_least=0)
        self.sigma = checked_float("sigma", sigma, at_least=0)
        self.capacity = checked_int("capacity", capacity)

    @abstractmethod
    def _assign(self, slots: Ints, steps: Ints, user_reward_sum: Floats) -> Ints:
        """Return who plays which arm; int64 array of shape ``(n, num_users)``.

        Args:
            slots: Arms in descending order of index, each as often as it serves a user; int64
                array of shape ``(n, num_users)``.
            steps: Steps played; int64 array of shape ``(n,)``.
            user_reward_sum: Rewards so far; float64 array of shape ``(n, num_users)``.
        """

    def _act(self, observation: Observation) -> Ints:
        pulls, user_reward_sum = observation["pulls"], observation["user_reward_sum"]
        num_users = user_reward_sum.shape[1]
        together = min(self.capacity, num_users)
        count = -(-num_users // together)
        check_enough_arms(count, num_users, pulls.shape[1], self.capacity)
        steps = pulls.sum(axis=1) // count
        index = ucb_index(observation["reward_sum"], pulls, steps, self.c, self.sigma)
        slots = np.repeat(top_arms(index, count), together, axis=1)[:, :num_users]
        return self._assign(slots, steps, user_reward_sum)


class CombinatorialUCB(StepwiseUCB):
    """Plays the U arms of the highest CUCB index at every step, the users taking turns.

    CUCB of Chen, Wang, Yuan (2013): the index is ``mean + sigma sqrt(3 ln t / (2 n))``. After t
    steps user u gets the arm of rank (u - t) mod U. If the ranks keep their order for U steps,
    the users earn the same; since they change at any step, equality is only approximate. With
    capacity C, users in groups of C take turns if C divides U. Knows neither horizon nor means,
    but the scale of the noise. O(K log K) per step.

    Guarantee: the regret of the sets of arms is of order K U ln T / Dmin for rewards in [0, 1];
    none for the worst-off user.

    Attributes:
        c: The constant in the bonus; 3/2 in the paper.
        sigma: Scale of the noise; 1 gives the paper's bonus, for rewards in [0, 1].
        capacity: C, users per arm.
    """

    def __init__(self, c: float = 1.5, sigma: float = 1.0, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(c, sigma, capacity)

    def _assign(self, slots: Ints, steps: Ints, user_reward_sum: Floats) -> Ints:
        num_users = slots.shape[1]
        together = self.capacity if num_users % self.capacity == 0 else 1
        return rotation(slots[:, ::together], steps, num_users)


class PoorestFirst(StepwiseUCB):
    """Plays the U arms of the highest UCB at every step; the poorer a user, the better its arm.

    The user with the lowest total reward so far gets the arm of the highest index, the next
    poorest the next, and so on; ties go to the lowest user. The index is that of EgalUCB. With
    capacity C, the C poorest share the best arm, and so on. Knows neither horizon nor means, but
    the scale of the noise. O(K log K + U log U) per step.

    Guarantee: where arms pay their means without noise and the indices rank them rightly, no two
    users' totals ever differ by more than mu_1 - mu_U, the best mean less the U-th (by induction:
    only a user who had less can overtake), so that the worst-off user has at least
    T mu* / U - (1 - 1/U)(mu_1 - mu_U), for every T. Rotation may do worse where U does not divide
    T. Under noise it evens out realised totals, not only expected ones; no bound is proved.

    Attributes:
        c: The constant in the bonus; 6 as in EgalUCB.
        sigma: Scale of the noise, in units of reward.
        capacity: C, users per arm.
    """

    def __init__(self, c: float = 6, sigma: float = 1.0, capacity: int = 1) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(c, sigma, capacity)

    def _assign(self, slots: Ints, steps: Ints, user_reward_sum: Floats) -> Ints:
        assigned = np.empty_like(slots)
        poorest_first = user_reward_sum.argsort(axis=1, kind="stable")
        np.put_along_axis(assigned, poorest_first, slots, axis=1)
        return assigned
