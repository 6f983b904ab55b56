"""EgalAssign-v0: assign users to distinct arms so that the worst-off user does best."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits._grid import ArmGrid
from gym_fairbandits._sources import ArmSource, EgalInstance
from gym_fairbandits.arms import Arms
from gym_fairbandits.envs._core import Bools, Floats, Ints, Observation
from gym_fairbandits.envs._draws import StreamOf, draw_block, draws_per_refill, put_back
from gym_fairbandits.envs._egal import (
    EgalProblem,
    EgalRecord,
    Varied,
    first_users,
    objective_value,
)
from gym_fairbandits.envs._scalar import BanditEnv
from gym_fairbandits.envs._vector import BanditVectorEnv
from gym_fairbandits.envs.rendering.scene import EgalScene, egal_scene
from gym_fairbandits.spaces import check_assignment, check_assignments

__all__ = ["EgalAssignEnv", "EgalAssignVectorEnv", "EgalRecord", "Varied", "objective_value"]

_RECENT = 256  # steps whose assignments are counted together


class EgalAssignEnv(EgalProblem, BanditEnv[NDArray[np.int64], ArmSource]):
    """Assign U users to distinct ones of K arms; the worst-off user's total counts.

    ## Description
    The bandit of Lim, Tan, Soh, *Stochastic Bandits for Egalitarian Assignment*. Each step gives
    every user an arm of its own (with ``capacity=C``: an arm serves up to C users), and every
    user earns what its arm pays. The goal is the highest cumulative reward of the user who has
    the least: besides finding good arms one must share them.

    ## Action Space
    :class:`gym_fairbandits.spaces.Assignment`: int64 array of shape ``(num_users,)``, entry u the
    arm of user u, no arm more than ``capacity`` times. Any integer type is taken; an illegal
    action raises ``gymnasium.error.InvalidAction``, which names users and arm, and changes
    nothing.

    ## Observation Space
    A ``Dict`` of arrays, fresh at every step:

    | key | dtype, shape | meaning |
    |---|---|---|
    | ``pulls`` | int64 ``(num_arms,)`` | how often each arm paid: once a step, also if shared |
    | ``reward_sum`` | float64 ``(num_arms,)`` | total reward of each arm, shared ones once |
    | ``user_reward_sum`` | float64 ``(num_users,)`` | total reward of each user |
    | ``remaining`` | int64 ``(1,)`` | steps left; only with ``horizon_known=True`` |

    Sums lie within 1e30 of 0 in the space, so that it can be sampled. Larger rewards are played,
    but their sums lie outside: scale them down.

    ## Rewards
    ``objective="egalitarian"``: the increase of the lowest user total, so that the undiscounted
    return is the realised total of the worst-off user. Its mean lies below the paper's
    ``min_u E[S_u]``, as a minimum of random totals does. ``"utilitarian"``: the users' mean
    reward; regret then concerns the mean.

    ## Starting State
    Nothing has been played. A random instance is drawn anew at every reset, from a stream of its
    own that the seed fixes too.

    ## Episode End
    After ``horizon`` steps the episode is truncated; with ``horizon_known=True`` it terminates.

    ## Info
    ``user_rewards``: what each user earned in this step; float64 array ``(num_users,)``.

    ## Arguments
    - ``instance``: a name of :data:`gym_fairbandits.instances.EGALITARIAN`, such a name with
      parameters (``{"name": "gaussian", "variance": 0.1}``), a :class:`gym_fairbandits.arms.Arms`
      or its dict, or a callable ``(rng, num_users, num_arms)`` that returns either.
    - ``num_users``: U, at most ``capacity * num_arms``. Who was where is counted: that takes
      8 U K bytes.
    - ``num_arms``: K; ``None`` for the instance's own number, 10 where it has none.
    - ``capacity``: C, how many users one arm serves in a step. Users of one arm share its reward.
    - ``objective``: see Rewards.
    - ``horizon``: steps of an episode, at least 1.
    - ``horizon_known``: see Episode End.
    - ``render_mode``: ``"ansi"`` (text), ``"rgb_array"`` or ``"human"``; see :meth:`render`.
    - ``render_reveal``: whether frames may show what the learner does not know: the arms' means,
      and the horizon.

    ``reset(options={"instance": ...})`` plays another instance for one episode.

    Example:
        >>> import gymnasium as gym
        >>> import gym_fairbandits
        >>> arms = {"family": "gaussian", "means": [0.9, 0.5, 0.1], "std": 0.0}
        >>> env = gym.make("EgalAssign-v0", instance=arms, num_users=2, horizon=100)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step([0, 1])
        >>> reward, info["user_rewards"]
        (0.5, array([0.9, 0.5]))
        >>> env.unwrapped.optimal_return(100)
        70.0
    """

    _law: Arms  # of the running episode

    def __init__(
        self,
        instance: EgalInstance = "bernoulli",
        num_users: int = 5,
        num_arms: int | None = None,
        capacity: int = 1,
        objective: str = "egalitarian",
        horizon: int = 1000,
        horizon_known: bool = False,
        render_mode: str | None = None,
        render_reveal: bool = False,
    ) -> None:
        """Create the environment; see the class for the arguments.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If an argument breaks its rule.
        """
        self._take_common(horizon, horizon_known, render_mode, render_reveal)
        self._default_source = self._source = self._take_arguments(
            num_users, num_arms, capacity, objective, instance
        )
        self.observation_space, self.action_space = self._spaces()  # type: ignore[assignment]
        # Adding 1 would convert it first.
        self._ones: Ints = np.ones(self.num_users, dtype=np.int64)
        self._start()
        self._drop_draws()
        self._clear()

    def _drop_draws(self) -> None:
        self._draws: Floats = np.zeros(0)
        self._next_draw = 0

    def _drawn(self, source: ArmSource, stream: np.random.Generator) -> Arms:
        return source.draw(lambda: stream)

    def _begin(self, drawn: Arms) -> None:
        if self._next_draw < len(self._draws) and drawn.noise != self._law.noise:
            block, used = len(self._draws), self._next_draw
            put_back(self.np_random, self._block_start, self._law.noise, block, used)
            self._drop_draws()
        self._law = drawn
        self._clear()

    def _clear(self) -> None:
        self._pulls: Ints = np.zeros(self.num_arms, dtype=np.int64)
        self._reward_sum: Floats = np.zeros(self.num_arms)
        self._user_reward_sum: Floats = np.zeros(self.num_users)
        self._counts: Ints = np.zeros(self.num_users * self.num_arms, dtype=np.int64)
        self._recent: list[list[int]] = []  # assignments that `_counts` does not hold yet
        self._value = 0.0  # of the objective, so far
        # Kept only of laws that vary: what all arms, and those of each user, paid in expectation.
        self._offers: Floats = np.zeros(self.num_arms)
        self._user_returns: Floats = np.zeros(self.num_users)

    def step(
        self, action: NDArray[np.int64]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an assignment; see :meth:`gymnasium.Env.step`.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``, and after the end.
            gymnasium.error.InvalidAction: If ``action`` is not a legal assignment.
        """
        if self._steps >= self._last_step:
            raise self._reset_needed()
        arms = check_assignment(action, self.num_users, self.num_arms, self.capacity)
        end = self._next_draw + self.num_users
        if end > len(self._draws):
            end = self._refill_draws()
        draws = self._draws[self._next_draw : end]
        self._next_draw = end
        law = self._law
        if law.varying:
            expected = law.expected_rewards(self._steps, self._pulls)
            self._offers += expected
            self._user_returns += expected[arms]
        if self.capacity == 1:
            user_rewards = law.rewards(arms, draws, self._steps, self._pulls)
            self._pulls[arms] += self._ones
            self._reward_sum[arms] += user_rewards
        else:
            first = first_users(arms, self.num_arms)
            user_rewards = law.rewards(arms, draws.take(first), self._steps, self._pulls)
            paid = first == np.arange(self.num_users)
            self._pulls[arms[paid]] += 1
            self._reward_sum[arms[paid]] += user_rewards[paid]
        self._user_reward_sum += user_rewards
        self._recent.append(arms.tolist())
        if len(self._recent) == _RECENT:
            self._count_recent()
        if self.objective == "egalitarian":
            before, self._value = self._value, objective_value(self._user_reward_sum, "egalitarian")
            reward = self._value - before
        else:
            reward = float(objective_value(user_rewards, self.objective))
        self._steps += 1
        if self._painter is not None:
            self._keep(arms)
        terminated = truncated = False
        if self._steps >= self.horizon:
            terminated, truncated = self._end()
        return self._observe(), reward, terminated, truncated, {"user_rewards": user_rewards}

    def _count_recent(self) -> None:
        """Count who was where in the latest steps: cheaper together than one by one."""
        if self._recent:
            cells = np.array(self._recent) + np.arange(self.num_users) * self.num_arms
            self._counts += np.bincount(cells.ravel(), minlength=self._counts.size)
            self._recent = []

    def _refill_draws(self) -> int:
        """Take the next block of draws; return where the first step's end in it."""
        self._block_start = self.np_random.bit_generator.state
        self._draws = draw_block(self.np_random, self._law.noise, draws_per_refill(self.num_users))
        self._next_draw = 0
        return self.num_users

    def _observe(self) -> Observation:
        # Written out: a loop over the arrays would cost more than their copies.
        observation: Observation = {
            "pulls": self._pulls.copy(),
            "reward_sum": self._reward_sum.copy(),
            "user_reward_sum": self._user_reward_sum.copy(),
        }
        if self.horizon_known:
            observation["remaining"] = self._remaining()
        return observation

    def _scene(self, **shown: Any) -> EgalScene:
        return egal_scene(
            **shown,
            objective=self.objective,
            user_reward_sum=self._user_reward_sum,
            true_means=self.next_expected_rewards() if self.render_reveal else None,
        )

    @property
    def arms(self) -> Arms:
        """The arms of the running episode; not for the learner.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
        """
        self._check_played()
        return self._law

    def _record(self) -> EgalRecord:
        self._count_recent()
        return EgalRecord(
            self.arms.means[None],
            self._counts.reshape(1, self.num_users, self.num_arms),
            self._user_reward_sum[None],
            np.array([self._steps]),
            self.capacity,
            self.objective,
            Varied(np.array([0]), [self._law], self._offers[None], self._user_returns[None])
            if self._law.varying
            else None,
        )

    def optimal_slots(self, steps: int | None = None) -> Ints:
        """Return an assignment of the highest total mean, best arm first; ``(num_users,)``.

        Args:
            steps: Where means vary, the steps that count: all until the horizon by default.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            NotImplementedError: If what arms pay depends on what is played.
        """
        length = self.horizon if steps is None else checked_int("steps", steps, minimum=0)
        slots: Ints = self._record().optimal_slots(length)[0]
        return slots

    def expected_user_returns(self) -> Floats:
        """Return each user's expected total of the actions taken; float64 ``(num_users,)``."""
        totals: Floats = self._record().expected_user_returns()[0]
        return totals

    def realized_user_returns(self) -> Floats:
        """Return what each user earned in this episode; float64 ``(num_users,)``."""
        totals: Floats = self._record().realized_user_returns()[0]
        return totals

    def next_expected_rewards(self) -> Floats:
        """Return what each arm pays in expectation in the next step, to each of its users.

        Not for the learner; float64 array of shape ``(num_arms,)``.
        """
        step = min(self._steps, self.horizon - 1)  # after the last step there is no next one
        return np.array(self.arms.expected_rewards(step, self._pulls))


class EgalAssignVectorEnv(EgalProblem, BanditVectorEnv[ArmSource]):
    """Many :class:`EgalAssignEnv` side by side; row i is the scalar one of seed + i.

    Takes the scalar environment's arguments, and ``num_envs``, ``max_episode_steps`` (truncates
    earlier; None or -1: no limit) and ``autoreset_mode``. Actions are int64 arrays of shape
    ``(num_envs, num_users)``. ``reset(options=...)`` knows ``reset_mask``, ``instance`` (for all
    rows) and ``instances`` (one per row).
    """

    def __init__(
        self,
        num_envs: int = 1,
        instance: EgalInstance = "bernoulli",
        num_users: int = 5,
        num_arms: int | None = None,
        capacity: int = 1,
        objective: str = "egalitarian",
        horizon: int = 1000,
        horizon_known: bool = False,
        render_mode: str | None = None,
        render_reveal: bool = False,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        """Create the environments; see :class:`EgalAssignEnv` for the arguments.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If an argument breaks its rule.
        """
        self._take_common(horizon, horizon_known, render_mode, render_reveal)
        self._take_vector(num_envs, max_episode_steps, autoreset_mode)
        self._default_source = self._take_arguments(
            num_users, num_arms, capacity, objective, instance
        )
        self._start(*self._spaces(), self.num_users)
        count, users, arms = self.num_envs, self.num_users, self.num_arms
        self._grid = ArmGrid(count, arms)
        self._pulls: Ints = np.zeros((count, arms), dtype=np.int64)
        self._reward_sum: Floats = np.zeros((count, arms))
        self._user_reward_sum: Floats = np.zeros((count, users))
        self._counts: Ints = np.zeros((count, users, arms), dtype=np.int64)
        self._values: Floats = np.zeros(count)  # of the objective, so far
        self._varying = False  # whether any row's arms vary; only then these two are kept
        self._offers: Floats = np.zeros((count, arms))
        self._user_returns: Floats = np.zeros((count, users))
        # Where each row begins in `_pulls`, and each row's users in `_counts`, as flat places.
        self._cells: Ints = np.arange(count)[:, None] * arms
        self._user_cells: Ints = np.arange(count * users).reshape(count, users) * arms

    def _drawn(
        self, rows: Ints, sources: list[ArmSource] | None, stream_of: StreamOf
    ) -> list[tuple[ArmSource, int, Arms]]:
        drawn = []
        for row in rows.tolist():
            source = self._default_source if sources is None else sources[row]
            if source.redrawn or self._sources[row] is not source:
                drawn.append((source, row, source.draw(partial(stream_of, row))))
        return drawn

    def _install(self, drawn: list[tuple[ArmSource, int, Arms]]) -> None:
        for source, row, arms in drawn:
            self._grid.set_rows(np.array([row]), arms)
            self._set_noise(row, arms.noise)
            self._sources[row] = source
        self._varying = bool(self._grid.varying.any())

    def _clear(self, rows: Ints) -> None:
        for state in (
            self._pulls,
            self._reward_sum,
            self._user_reward_sum,
            self._counts,
            self._values,
            self._offers,
            self._user_returns,
        ):
            state[rows] = 0

    def _checked_actions(self, actions: Any, playing: Bools | None) -> Ints:
        return check_assignments(
            actions, self.num_envs, self.num_users, self.num_arms, self.capacity, playing
        )

    def _play(self, rows: Ints, actions: Ints) -> tuple[Floats, dict[str, NDArray[Any]]]:
        # Slices of all rows are views: a batch in which every row plays copies nothing.
        which: Any = slice(None) if len(rows) == self.num_envs else rows
        draws = self._take_draws(rows, self.num_users)
        steps, pulls = self._steps[which], self._pulls[which]
        cells = self._cells[which] + actions
        if self._varying:
            expected = self._grid.expected_rewards(rows, steps, pulls)
            self._offers[which] += expected
            self._user_returns[which] += np.take_along_axis(expected, actions, axis=1)
        if self.capacity == 1:
            user_rewards = self._grid.rewards(rows, actions, draws, steps, pulls)
            # With one axis `add.at` is quicker than `[cells] += 1`, with two it is slower.
            np.add.at(self._pulls.reshape(-1), cells.reshape(-1), 1)
            np.add.at(self._reward_sum.reshape(-1), cells.reshape(-1), user_rewards.reshape(-1))
        else:
            first = first_users(cells, self._pulls.size)
            draws = np.take_along_axis(draws, first, axis=1)
            user_rewards = self._grid.rewards(rows, actions, draws, steps, pulls)
            paid = first == np.arange(self.num_users)
            self._pulls.reshape(-1)[cells[paid]] += 1
            self._reward_sum.reshape(-1)[cells[paid]] += user_rewards[paid]
        self._user_reward_sum[which] += user_rewards
        users = self._user_cells[which] + actions
        np.add.at(self._counts.reshape(-1), users.reshape(-1), 1)
        if self.objective == "utilitarian":
            return objective_value(user_rewards, self.objective), {"user_rewards": user_rewards}
        before = self._values[which].copy()
        values = objective_value(self._user_reward_sum[which], self.objective)
        self._values[which] = values
        return values - before, {"user_rewards": user_rewards}

    def _state(self) -> Observation:
        return {
            "pulls": self._pulls,
            "reward_sum": self._reward_sum,
            "user_reward_sum": self._user_reward_sum,
        }

    def _keep(self, rows: Ints, actions: Ints, rewards: Floats) -> None:
        for row, arms in zip(rows.tolist(), actions, strict=True):
            self._histories[row].add(arms)

    def _scene(self, row: int, **shown: Any) -> EgalScene:
        return egal_scene(
            **shown,
            objective=self.objective,
            user_reward_sum=self._user_reward_sum[row],
            true_means=self.next_expected_rewards()[row] if self.render_reveal else None,
        )

    @property
    def arms(self) -> tuple[Arms, ...]:
        """The arms of each row's running episode; not for the learner."""
        self._check_played()
        return tuple(self._grid.row(row) for row in range(self.num_envs))

    def _record(self, rows: Ints) -> EgalRecord:
        self._check_played()
        return EgalRecord(
            self._grid.means[rows],
            self._counts[rows],
            self._user_reward_sum[rows],
            self._steps[rows],
            self.capacity,
            self.objective,
            self._varied(rows),
        )

    def _varied(self, rows: Ints) -> Varied | None:
        places = np.flatnonzero(self._grid.varying[rows])
        if not len(places):
            return None
        varying = rows[places]
        laws = [self._grid.row(row) for row in varying.tolist()]
        return Varied(places, laws, self._offers[varying], self._user_returns[varying])

    def optimal_slots(self, steps: int | None = None) -> Ints:
        """Return each running row's assignment of the highest total mean, best arm first.

        ``steps`` as in the scalar environment; by default until ``horizon`` or
        ``max_episode_steps``.
        """
        return self._record(self._all_rows).optimal_slots(self._length(steps))

    def expected_user_returns(self, rows: Bools | None = None) -> Floats:
        """Return each user's expected total; float64 array of shape ``(n, num_users)``."""
        return self._answer("expected_user_returns", rows)

    def realized_user_returns(self, rows: Bools | None = None) -> Floats:
        """Return what each user earned; float64 array of shape ``(n, num_users)``."""
        return self._answer("realized_user_returns", rows)

    def next_expected_rewards(self) -> Floats:
        """Return each row's expected rewards in its next step; float64 ``(num_envs, num_arms)``."""
        self._check_played()
        steps = np.minimum(self._steps, self.horizon - 1)  # after the last there is no next one
        return self._grid.expected_rewards(self._all_rows, steps, self._pulls)
