"""ImprovingBandit-v0: arms that pay more, ever more slowly, the more often they are pulled."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from gym_fairbandits._grid import CurveGrid
from gym_fairbandits._sources import CurveSource, ImprovingInstance, Put
from gym_fairbandits.curves import Curve
from gym_fairbandits.envs._core import Bools, Floats, Ints, Observation
from gym_fairbandits.envs._draws import StreamOf, draw_block, draws_per_refill
from gym_fairbandits.envs._improving import (
    ImprovingProblem,
    ImprovingRecord,
    check_arms,
    increment,
    noisy_reward,
    upcoming_pulls,
)
from gym_fairbandits.envs._scalar import BanditEnv
from gym_fairbandits.envs._vector import BanditVectorEnv
from gym_fairbandits.envs.rendering.scene import ImprovingScene, improving_scene

__all__ = [
    "ImprovingBanditEnv",
    "ImprovingBanditVectorEnv",
    "ImprovingRecord",
    "increment",
    "noisy_reward",
]

_NOISE = "standard_normal"
_BOOLS = (bool, np.bool_)
_NEIGHBOURS = 16  # arms whose first values are evaluated together


def _leading(flags: Bools) -> int:
    """Return how many of ``flags`` are True before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


class ImprovingBanditEnv(ImprovingProblem, BanditEnv[int, CurveSource]):
    """Pull one of k arms whose reward rises with the pulls it was given.

    ## Description
    The bandit of Patil et al., *Mitigating Disparity while Maximizing Reward: Tight Anytime
    Guarantee for Improving Bandits*. The n-th pull of arm i pays ``f_i(n)``, where ``f_i`` stays
    in [0, 1], never decreases, and rises ever more slowly. The best one can do offline is to pull
    one arm throughout, but which one depends on the horizon, and the learner is not told it: an
    arm that blooms late is starved by a policy that follows the rewards seen so far.

    ## Action Space
    ``Discrete(num_arms)``: the arm to pull. Any integer type is taken; anything else, and any
    index out of range, raises ``gymnasium.error.InvalidAction`` and changes nothing.

    ## Observation Space
    A ``Dict`` of arrays, fresh at every step:

    | key | dtype, shape | meaning |
    |---|---|---|
    | ``pulls`` | int64 ``(num_arms,)`` | how often each arm was pulled |
    | ``reward_sum`` | float64 ``(num_arms,)`` | total reward of each arm |
    | ``last_reward`` | float64 ``(num_arms,)`` | reward of each arm's latest pull; 0 before |
    | ``last_increment`` | float64 ``(num_arms,)`` | that minus the one before; 0 before pull 2 |
    | ``remaining`` | int64 ``(1,)`` | steps left; only with ``horizon_known=True`` |

    Sums and rewards lie within 1e30 of 0 in the space, so that it can be sampled. Larger ones
    (``validate=False``, or very much noise) are played, but lie outside: scale them down.

    ## Rewards
    ``f_i(n)``, plus Gaussian noise of standard deviation ``noise_std``.

    ## Starting State
    No arm has been pulled. A random instance is drawn anew at every reset, from a stream of its
    own that the seed fixes too.

    ## Episode End
    After ``horizon`` steps the episode is truncated, and nothing observed told when; with
    ``horizon_known=True`` it terminates, as the horizon is then part of the problem.

    ## Info
    Empty: no parameter of the arms leaks.

    ## Arguments
    - ``instance``: a name of :data:`gym_fairbandits.instances.IMPROVING`, such a name with
      parameters (``{"name": "lower_bound", "late": 2}``), a sequence of curves or of their dicts,
      or a callable ``(rng, num_arms) -> curves``.
    - ``num_arms``: k; ``None`` for the instance's own number, 10 where it has none.
    - ``noise_std``: standard deviation of the reward's noise, at least 0.
    - ``horizon``: steps of an episode, at least 1.
    - ``horizon_known``: see Episode End.
    - ``validate``: whether to refuse curves outside the model; see
      :func:`gym_fairbandits.curves.check_improving`. Without it any rested arms play, and
      ``optimal_return`` is exact for them too: :func:`gym_fairbandits.optimum.rested_optimum`.
      A pull that pays NaN or infinity (of a curve of your own) raises ``ValueError``.
    - ``render_mode``: ``"ansi"`` (text), ``"rgb_array"`` or ``"human"``; see :meth:`render`.
    - ``render_reveal``: whether frames may show what the learner does not know: the curves beyond
      their pulls, and the horizon.

    ``reset(options={"instance": ...})`` plays another instance for one episode.

    Example:
        >>> import gymnasium as gym
        >>> import gym_fairbandits
        >>> env = gym.make("ImprovingBandit-v0", instance="early_vs_late", horizon=100)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> reward
        0.025
        >>> env.unwrapped.optimal_return(100)
        80.5
    """

    def __init__(
        self,
        instance: ImprovingInstance = "random_concave",
        num_arms: int | None = None,
        noise_std: float = 0.0,
        horizon: int = 1000,
        horizon_known: bool = False,
        validate: bool = True,
        render_mode: str | None = None,
        render_reveal: bool = False,
    ) -> None:
        """Create the environment; see the class for the arguments.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If an argument breaks its rule, or a curve is outside the model.
        """
        self._take_common(horizon, horizon_known, render_mode, render_reveal)
        self._default_source = self._source = self._take_arguments(
            instance, num_arms, noise_std, validate
        )
        self.observation_space, self.action_space = self._spaces()  # type: ignore[assignment]
        self._grid = CurveGrid(1, self.num_arms)
        self._start()
        self._drop_draws()
        self._clear()

    def _drop_draws(self) -> None:
        self._draws: list[float] = []
        self._next_draw = 0

    def _drawn(self, source: CurveSource, stream: np.random.Generator) -> Put:
        return source.draw(np.array([0]), lambda row: stream)

    def _begin(self, drawn: Put) -> None:
        drawn(self._grid)
        self._clear()

    def _clear(self) -> None:
        count = self.num_arms
        self._pulls: Ints = np.zeros(count, dtype=np.int64)
        self._reward_sum: Floats = np.zeros(count)
        self._last_reward: Floats = np.zeros(count)
        self._last_increment: Floats = np.zeros(count)
        # The values of each arm's next pulls, and the pulls that came before the first of them.
        self._values: list[list[float]] = [[] for _ in range(count)]
        self._before = [0] * count
        # The same three as Python numbers again: reading arrays costs more.
        self._pulled = [0] * count
        self._earned = [0.0] * count
        self._latest = [0.0] * count

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Pull arm ``action``; see :meth:`gymnasium.Env.step`.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``, and after the end.
            gymnasium.error.InvalidAction: If ``action`` is not the index of an arm.
        """
        if self._steps >= self._last_step:
            raise self._reset_needed()
        try:
            arm = -1 if isinstance(action, _BOOLS) else index(action)
        except TypeError:
            arm = -1
        if not 0 <= arm < self.num_arms:
            raise InvalidAction(
                f"`action` must be an integer from 0 to {self.num_arms - 1}, got {action!r}"
            )
        pulled = self._pulled[arm]
        try:
            value = self._values[arm][pulled - self._before[arm]]
        except IndexError:
            value = self._next_values(arm)
        reward = value
        if self.noise_std:
            reward = noisy_reward(value, self.noise_std, self._draw())
        self._last_increment[arm] = increment(reward, self._latest[arm], pulled > 0)
        self._last_reward[arm] = self._latest[arm] = reward
        self._earned[arm] = self._reward_sum[arm] = self._earned[arm] + reward
        self._pulled[arm] = self._pulls[arm] = pulled + 1
        self._steps += 1
        if self._painter is not None:
            self._keep(arm, pulled + 1, reward)
        terminated = truncated = False
        if self._steps >= self.horizon:
            terminated, truncated = self._end()
        return self._observe(), reward, terminated, truncated, {}

    def _next_values(self, arm: int) -> float:
        """Evaluate an arm's next values, twice as many each time; return the first.

        Arms that follow and have none yet get theirs in the same call: it costs little more.

        Raises:
            ValueError: If the first one is NaN or infinite.
        """
        if self._values[arm]:
            arms, size = [arm], min(1024, 2 * len(self._values[arm]))
        else:
            near = range(arm, min(arm + _NEIGHBOURS, self.num_arms))
            arms = [other for other in near if not self._values[other]]
            size = min(128, self.horizon)
        before = np.array([self._pulled[other] for other in arms])
        pulls = upcoming_pulls(before, size, self.horizon)
        values = self._grid.values(np.array(arms), pulls)
        blocks = values.tolist()
        finite = np.isfinite(values)
        if not finite.all():  # a user's own curve: what comes before may be played
            blocks = [block[: _leading(row)] for block, row in zip(blocks, finite, strict=True)]
        for other, block in zip(arms, blocks, strict=True):
            self._before[other], self._values[other] = self._pulled[other], block
        if not self._values[arm]:
            raise self._grid.not_finite(0, arm, f"{values[0, 0]} at pull {before[0] + 1}")
        first: float = self._values[arm][0]
        return first

    def _draw(self) -> float:
        if self._next_draw == len(self._draws):
            self._draws = draw_block(self.np_random, _NOISE, draws_per_refill(1)).tolist()
            self._next_draw = 0
        self._next_draw += 1
        return self._draws[self._next_draw - 1]

    def _observe(self) -> Observation:
        # Written out: a loop over the arrays would cost a quarter of a step.
        observation: Observation = {
            "pulls": self._pulls.copy(),
            "reward_sum": self._reward_sum.copy(),
            "last_reward": self._last_reward.copy(),
            "last_increment": self._last_increment.copy(),
        }
        if self.horizon_known:
            observation["remaining"] = self._remaining()
        return observation

    def _scene(self, **shown: Any) -> ImprovingScene:
        return improving_scene(
            **shown,
            last_reward=self._last_reward,
            grid=self._grid if self.render_reveal else None,
            row=0,
        )

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The arms of the running episode; not for the learner."""
        self._check_played()
        return self._grid.row(0)

    def _record(self) -> ImprovingRecord:
        self._check_played()
        return ImprovingRecord(
            self._grid, self._pulls[None], self._reward_sum[None], np.array([self._steps])
        )

    def optimal_arm(self, steps: int | None = None) -> int:
        """Return the arm that is best throughout ``steps`` steps, by default the horizon."""
        return int(self._record().optimal_arm(self.horizon if steps is None else steps)[0])

    def optimal_pulls(self, steps: int | None = None) -> Ints:
        """Return how often to pull each arm in ``steps`` steps, by default the horizon.

        Not for the learner; int64 array of shape ``(num_arms,)``.

        Raises:
            ValueError: If arms that decrease are too long for an exact optimum.
        """
        pulls: Ints = self._record().optimal_pulls(self.horizon if steps is None else steps)[0]
        return pulls

    def potential_gaps(self) -> Floats:
        """Return how far each arm is from its potential, a_i - f_i(N_i), with f_i(0) = 0.

        The disparity that Theorem 5 of Patil et al. bounds; float64 array ``(num_arms,)``.
        """
        gaps: Floats = self._record().potential_gaps()[0]
        return gaps

    def next_expected_rewards(self) -> Floats:
        """Return what the next pull of each arm pays in expectation, f_i(N_i + 1).

        Not for the learner; float64 array of shape ``(num_arms,)``.
        """
        self._check_played()
        following = np.empty(self.num_arms)
        for arm, pulled in enumerate(self._pulled):  # from the blocks that `step` reads too
            place, block = pulled - self._before[arm], self._values[arm]
            following[arm] = block[place] if place < len(block) else self._next_values(arm)
        return following


class ImprovingBanditVectorEnv(ImprovingProblem, BanditVectorEnv[CurveSource]):
    """Many :class:`ImprovingBanditEnv` side by side; row i is the scalar one of seed + i.

    Takes the scalar environment's arguments, and ``num_envs``, ``max_episode_steps`` (truncates
    earlier; None or -1: no limit) and ``autoreset_mode``. ``reset(options=...)`` knows
    ``reset_mask``, ``instance`` (for all rows) and ``instances`` (one per row).
    """

    # Blocks of upcoming values: long enough to make evaluation rare, short enough for memory.
    _BLOCK = 64
    _MOST_VALUES = 2**22

    def __init__(
        self,
        num_envs: int = 1,
        instance: ImprovingInstance = "random_concave",
        num_arms: int | None = None,
        noise_std: float = 0.0,
        horizon: int = 1000,
        horizon_known: bool = False,
        validate: bool = True,
        render_mode: str | None = None,
        render_reveal: bool = False,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        """Create the environments; see :class:`ImprovingBanditEnv` for the arguments.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If an argument breaks its rule, or a curve is outside the model.
        """
        self._take_common(horizon, horizon_known, render_mode, render_reveal)
        self._take_vector(num_envs, max_episode_steps, autoreset_mode)
        self._default_source = self._take_arguments(instance, num_arms, noise_std, validate)
        self._start(*self._spaces(), 1)
        self._noise = [_NOISE] * self.num_envs
        self._grid = CurveGrid(self.num_envs, self.num_arms)
        shape, cells = (self.num_envs, self.num_arms), self.num_envs * self.num_arms
        self._pulls: Ints = np.zeros(shape, dtype=np.int64)
        self._reward_sum: Floats = np.zeros(shape)
        self._last_reward: Floats = np.zeros(shape)
        self._last_increment: Floats = np.zeros(shape)
        # The next values of cell c lie in row c of `_values`, which ends in a NaN; the value of
        # its pull number n + 1 lies at the flat place n + _offsets[c].
        self._block = max(1, min(self._BLOCK, self.horizon, self._MOST_VALUES // cells))
        self._values: Floats = np.full((cells, self._block + 1), np.nan)
        self._ends: Ints = np.arange(1, cells + 1) * (self._block + 1) - 1
        self._offsets: Ints = self._ends.copy()

    def _drawn(
        self, rows: Ints, sources: list[CurveSource] | None, stream_of: StreamOf
    ) -> list[tuple[CurveSource, Ints, Put]]:
        if sources is None:
            groups = [(self._default_source, rows)]
        else:
            chosen = np.array([id(sources[row]) for row in rows.tolist()])
            groups = [
                (sources[group[0]], group)
                for group in (rows[chosen == number] for number in np.unique(chosen))
            ]
        drawn = []
        for source, group in groups:
            if not source.redrawn:
                group = group[[self._sources[row] is not source for row in group.tolist()]]
            if len(group):
                drawn.append((source, group, source.draw(group, stream_of)))
        return drawn

    def _install(self, drawn: list[tuple[CurveSource, Ints, Put]]) -> None:
        for source, group, put in drawn:
            put(self._grid)
            for row in group.tolist():
                self._sources[row] = source

    def _clear(self, rows: Ints) -> None:
        for state in (self._pulls, self._reward_sum, self._last_reward, self._last_increment):
            state[rows] = 0
        shape = (self.num_envs, self.num_arms)
        self._offsets.reshape(shape)[rows] = self._ends.reshape(shape)[rows]

    def _checked_actions(self, actions: Any, playing: Bools | None) -> Ints:
        return check_arms(actions, self.num_envs, self.num_arms, playing)

    def _play(self, rows: Ints, actions: Ints) -> tuple[Floats, dict[str, NDArray[Any]]]:
        cells = rows * self.num_arms + actions
        pulls, last_reward = self._pulls.reshape(-1), self._last_reward.reshape(-1)
        pulled = pulls.take(cells)
        rewards = self._upcoming(cells)
        if self.noise_std:
            rewards = noisy_reward(rewards, self.noise_std, self._take_draws(rows, 1)[:, 0])
        self._last_increment.reshape(-1)[cells] = increment(
            rewards, last_reward.take(cells), pulled > 0
        )
        last_reward[cells] = rewards
        np.add.at(self._reward_sum.reshape(-1), cells, rewards)
        pulls[cells] = pulled + 1
        return rewards, {}

    def _upcoming(self, cells: Ints) -> Floats:
        """Return the value of each cell's next pull.

        Raises:
            ValueError: If one is NaN or infinite.
        """
        pulled = self._pulls.reshape(-1).take(cells)
        values: Floats = self._values.take(pulled + self._offsets.take(cells))
        if np.isnan(values).any():
            self._next_values(cells[np.isnan(values)])
            values = self._values.take(pulled + self._offsets.take(cells))
            if np.isnan(values).any():
                place = int(np.isnan(values).argmax())
                row, arm = divmod(int(cells[place]), self.num_arms)
                pull = int(pulled[place]) + 1
                paid = self._grid.values(cells[place : place + 1], np.array([float(pull)]))[0]
                raise self._grid.not_finite(row, arm, f"{paid} at pull {pull}")
        return values

    def _next_values(self, cells: Ints) -> None:
        """Evaluate the next values of ``cells``, and of all that will need theirs soon."""
        left = self._ends - (self._pulls.reshape(-1) + self._offsets)
        soon = left < (self._block + 1) // 2
        if self.num_arms * self._block > self.horizon:
            # Most arms will not be pulled that often: look ahead only where one was pulled.
            soon &= self._pulls.reshape(-1) > 0
        soon[cells] = True
        chosen = np.flatnonzero(soon)
        before = self._pulls.reshape(-1)[chosen]
        pulls = upcoming_pulls(before, self._block, self.horizon)
        values = self._grid.values(chosen, pulls)
        # Infinite values count as missing too: `_upcoming` refuses both, if they are played.
        self._values[chosen, : self._block] = np.where(np.isfinite(values), values, np.nan)
        self._offsets[chosen] = self._ends[chosen] - self._block - before

    def _state(self) -> Observation:
        return {
            "pulls": self._pulls,
            "reward_sum": self._reward_sum,
            "last_reward": self._last_reward,
            "last_increment": self._last_increment,
        }

    def _keep(self, rows: Ints, actions: Ints, rewards: Floats) -> None:
        pulls = self._pulls[rows, actions]
        played = zip(*(part.tolist() for part in (rows, actions, pulls, rewards)), strict=True)
        for row, arm, pull, reward in played:
            self._histories[row].add(arm, pull, reward)

    def _scene(self, row: int, **shown: Any) -> ImprovingScene:
        return improving_scene(
            **shown,
            last_reward=self._last_reward[row],
            grid=self._grid if self.render_reveal else None,
            row=row,
        )

    @property
    def curves(self) -> tuple[tuple[Curve, ...], ...]:
        """The arms of each row's running episode; not for the learner."""
        self._check_played()
        return tuple(self._grid.row(row) for row in range(self.num_envs))

    def _record(self, rows: Ints) -> ImprovingRecord:
        self._check_played()
        return ImprovingRecord(
            self._grid.rows(rows), self._pulls[rows], self._reward_sum[rows], self._steps[rows]
        )

    def optimal_arm(self, steps: int | None = None) -> Ints:
        """Return the arm that is best throughout ``steps`` steps in each running row.

        By default until ``horizon`` or ``max_episode_steps``; int64 array ``(num_envs,)``.
        """
        return self._record(self._all_rows).optimal_arm(self._length(steps))

    def optimal_pulls(self, steps: int | None = None) -> Ints:
        """Return how often to pull each arm in ``steps`` steps; ``(num_envs, num_arms)``.

        ``steps`` as for :meth:`optimal_arm`.
        """
        return self._record(self._all_rows).optimal_pulls(self._length(steps))

    def potential_gaps(self, rows: Bools | None = None) -> Floats:
        """Return a_i - f_i(N_i), with f_i(0) = 0; float64 array of shape ``(n, num_arms)``."""
        return self._answer("potential_gaps", rows)

    def pull_counts(self, rows: Bools | None = None) -> Ints:
        """Return how often each arm was pulled; int64 array of shape ``(n, num_arms)``.

        Unlike ``pulls``, a row whose episode ended in the latest step answers for that episode.
        """
        return self._answer("pull_counts", rows)

    def next_expected_rewards(self) -> Floats:
        """Return f_i(N_i + 1) of each row's running episode; float64 ``(num_envs, num_arms)``."""
        self._check_played()
        return self._upcoming(np.arange(self._pulls.size)).reshape(self._pulls.shape)
