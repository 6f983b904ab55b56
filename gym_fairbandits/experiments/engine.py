"""Many runs side by side, on the agents and arms that step the environments.

An agent that rotates the users over a set of arms chooses once per block; so whole blocks are
played at once, their draws taken from each run's own stream in the order of steps and users. Every
other agent, and arms whose rewards depend on more than the draw, step the vector environment. Run i
is in either case the episode of the scalar environment seeded ``seed + i``: the same arms, the same
rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits.agents import Agent, EgalUCB, RotatingAgent
from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian
from gym_fairbandits.envs._draws import draws_per_refill, fill_draws
from gym_fairbandits.envs.egal_assign import EgalAssignEnv, objective_value
from gym_fairbandits.optimum import egalitarian_optimum
from gym_fairbandits.spaces import rotation

__all__ = ["ENGINES", "Simulation", "simulate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Policy = Agent | Callable[[Any], Agent]

ENGINES = ("auto", "numpy", "numba")
DRAWN_ALONE = (Bernoulli, Gaussian, Empirical)  # a reward depends on arm and draw, nothing else
DRAWS_AT_ONCE = 2**15  # of one run, for the compiled engine: little enough for a fast cache
INVERSES = 2**16  # of numbers of blocks, kept for the compiled engine


@dataclass(frozen=True)
class Simulation:
    """What some runs earned, R runs at P checkpoints.

    Improving arms count as those of one user: U = 1.

    Attributes:
        checkpoints: Steps after which totals were taken; int64 array of shape ``(P,)``.
        optimum: The best expected objective in so many steps, as environments have it; float64
            array of shape ``(R, P)``.
        expected_user_returns: Each user's expected total of the actions taken; float64 array of
            shape ``(R, P, U)``.
        realized_user_returns: Each user's realised total; float64 array of shape ``(R, P, U)``.
        pulls: How often each arm was played in the whole run; int64 array of shape
            ``(R, num_arms)``.
        objective: ``"egalitarian"`` or ``"utilitarian"``.
        engine: How it was computed: ``"numpy"`` or ``"numba"`` block by block, or ``"steps"``.
    """

    checkpoints: Ints
    optimum: Floats
    expected_user_returns: Floats
    realized_user_returns: Floats
    pulls: Ints
    objective: str
    engine: str

    @property
    def policy_regret(self) -> Floats:
        """Optimum less the objective of the expected totals; float64 array of shape ``(R, P)``."""
        return self.optimum - _objective(self.expected_user_returns, self.objective)

    @property
    def realized_regret(self) -> Floats:
        """Optimum less the objective of the realised totals; float64 array of shape ``(R, P)``."""
        return self.optimum - _objective(self.realized_user_returns, self.objective)


def simulate(
    agent: Policy,
    instance: Any,
    *,
    num_users: int | None,
    horizon: int,
    num_runs: int,
    seed: int = 0,
    checkpoints: int | Sequence[int] = 1,
    engine: str = "auto",
    **env_kwargs: Any,
) -> Simulation:
    """Let an agent play many runs.

    Args:
        agent: An agent, which is copied, or a callable that makes one from the environment that
            runs, as oracles need it. In run i its random numbers are those of seed ``seed + i``.
        instance: As the environment takes it. A random one is drawn anew for each run.
        num_users: U; ``None`` plays ``ImprovingBandit-v0`` instead of ``EgalAssign-v0``.
        horizon: T, the steps of a run.
        num_runs: R.
        seed: Run i is the environment's episode of seed ``seed + i``.
        checkpoints: Steps at which to take totals, ascending from 1 to T, or how many to spread
            evenly over the run, the last at T.
        engine: ``"numpy"``; ``"numba"``, compiled, for ``EgalUCB`` with ``update="all"`` on
            Bernoulli, Gaussian and empirical arms; ``"auto"`` takes the fastest that can play.
        **env_kwargs: Other arguments of the environment.

    Returns:
        The totals; the same for every engine, but for rounding below 1e-9 of the totals.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument breaks its rule, or ``engine="numba"`` cannot play this agent
            on these arms.
        gymnasium.error.DependencyNotInstalled: If ``engine="numba"`` and numba is missing.

    Example:
        >>> from gym_fairbandits.agents import EgalUCB
        >>> arms = {"family": "bernoulli", "means": [0.9, 0.8, 0.3]}
        >>> runs = simulate(EgalUCB(), arms, num_users=2, horizon=1000, num_runs=4)
        >>> runs.policy_regret.shape, runs.pulls.sum(axis=1).tolist()
        ((4, 1), [2000, 2000, 2000, 2000])
    """
    if not callable(agent) and not isinstance(agent, Agent):
        raise TypeError(f"`agent` must be an `Agent` or make one, got {agent!r}")
    num_runs = checked_int("num_runs", num_runs)
    seed = checked_int("seed", seed, minimum=0)
    engine = checked_choice("engine", engine, ENGINES)
    places = _checked_checkpoints(checkpoints, checked_int("horizon", horizon))
    env_kwargs = {"instance": instance, "horizon": horizon, **env_kwargs}
    if num_users is not None:
        env_kwargs["num_users"] = num_users
        if isinstance(agent, RotatingAgent) and agent.chooses_per_block:
            runs = _Runs(deepcopy(agent), EgalAssignEnv(**env_kwargs), num_runs, seed)
            if runs.drawn_alone:
                return _by_blocks(runs, places, engine)
    if engine == "numba":
        raise ValueError(
            '`engine` must be "numpy" or "auto" for what is not played block by block, '
            f'got "numba" with {agent!r}'
        )
    env_id = "ImprovingBandit-v0" if num_users is None else "EgalAssign-v0"
    return _by_steps(agent, env_id, env_kwargs, num_runs, seed, places)


def _checked_checkpoints(checkpoints: Any, horizon: int) -> Ints:
    if isinstance(checkpoints, Sequence | np.ndarray):
        steps = [checked_int("checkpoints", step, maximum=horizon) for step in checkpoints]
        if not steps or not all(a < b for a, b in pairwise(steps)):
            raise ValueError(f"`checkpoints` must ascend, and be at least one, got {checkpoints}")
        return np.array(steps, dtype=np.int64)
    count = checked_int("checkpoints", checkpoints, maximum=horizon)
    return np.arange(1, count + 1, dtype=np.int64) * horizon // count


def _objective(totals: Floats, objective: str) -> Floats:
    rows = totals.reshape(-1, totals.shape[-1])
    values: Floats = objective_value(rows, objective).reshape(totals.shape[:-1])
    return values


def _by_steps(
    policy: Policy,
    env_id: str,
    env_kwargs: dict[str, Any],
    num_runs: int,
    seed: int,
    checkpoints: Ints,
) -> Simulation:
    """Step the vector environment, whatever agent and arms do."""
    # Without `import gym_fairbandits` somewhere, nothing would be registered.
    envs: Any = gym.make_vec(
        f"gym_fairbandits:{env_id}",
        num_envs=num_runs,
        vectorization_mode="vector_entry_point",
        **env_kwargs,
    )
    agent = deepcopy(policy) if isinstance(policy, Agent) else policy(envs)
    agent.reset(seed=seed)
    observation, _ = envs.reset(seed=seed)
    optimum, expected, realized = [], [], []
    steps = 0
    for checkpoint in checkpoints.tolist():
        for _ in range(checkpoint - steps):
            observation, _, _, _, _ = envs.step(agent.act(observation))
        steps = checkpoint
        optimum.append(envs.optimal_return())
        if env_id == "EgalAssign-v0":
            expected.append(envs.expected_user_returns())
            realized.append(envs.realized_user_returns())
        else:
            expected.append(envs.expected_return()[:, None])
            realized.append(envs.realized_return()[:, None])
    for _ in range(envs.horizon - steps):
        observation, _, _, _, _ = envs.step(agent.act(observation))
    return Simulation(
        checkpoints,
        np.stack(optimum, axis=1),
        np.stack(expected, axis=1),
        np.stack(realized, axis=1),
        envs.pulls,
        env_kwargs.get("objective", "egalitarian"),
        "steps",
    )


class _Runs:
    """Runs that are played block by block: their arms, their streams, and what was played so far.

    The users form G groups of C that share an arm, C the agent's capacity.

    Attributes:
        agent: Who plays.
        env: The environment of each run; it told the arms and the streams.
        laws: The arms of each run.
        streams: What each run's draws come from.
        means: Expected rewards; float64 array of shape ``(R, num_arms)``.
        pulls: int64 array of shape ``(R, num_arms)``.
        reward_sum: float64 array of shape ``(R, num_arms)``.
        group_sum: Total reward of each user of a group; float64 array of shape ``(R, G)``.
    """

    def __init__(self, agent: RotatingAgent, env: EgalAssignEnv, num_runs: int, seed: int) -> None:
        if not agent.capacity <= env.capacity:
            raise ValueError(
                f"`capacity` must be at least that of the agent, {agent.capacity}, "
                f"got {env.capacity}"
            )
        self.agent, self.env = agent, env
        agent.reset(seed=seed)
        self.laws: list[Arms] = []
        self.streams: list[np.random.Generator] = []
        for run in range(num_runs):
            env.reset(seed=seed + run)  # which makes a new generator
            self.laws.append(env.arms)
            self.streams.append(env.np_random)
        self.means: Floats = np.array([law.means for law in self.laws])
        self.pulls: Ints = np.zeros(self.means.shape, dtype=np.int64)
        self.reward_sum: Floats = np.zeros(self.means.shape)
        self.group_sum: Floats = np.zeros((num_runs, agent.num_groups(env.num_users)))

    @property
    def drawn_alone(self) -> bool:
        """Whether rewards depend on arm and draw only, so that blocks can be drawn at once."""
        return all(type(law) in DRAWN_ALONE for law in self.laws)

    def next_sets(self, step: int) -> Ints:
        """Return the sets of the blocks that begin after ``step`` steps; shape ``(R, G)``."""
        shared = self.agent.capacity
        observation: dict[str, NDArray[Any]] = {
            "pulls": self.pulls,
            "reward_sum": self.reward_sum,
            "user_reward_sum": self.group_sum if shared == 1 else self.per_user(self.group_sum),
        }
        if self.env.horizon_known:
            observation["remaining"] = np.full((len(self.pulls), 1), self.env.horizon - step)
        return self.agent.begin_block(observation, step)

    def per_user(self, per_group: Floats) -> Floats:
        """Return what groups have for each of their users."""
        return np.repeat(per_group, self.agent.capacity, axis=-1)

    def expected(self) -> Floats:
        """Return what each user was to earn in the blocks played; float64 of shape ``(R,)``.

        Within a block every user has every arm of the set once: the users are alike.
        """
        totals: Floats = (self.pulls * self.means).sum(axis=1) / self.group_sum.shape[1]
        return totals


def _by_blocks(runs: _Runs, checkpoints: Ints, engine: str) -> Simulation:
    """Play block by block with one of the engines."""
    compiled = type(runs.agent) is EgalUCB and runs.agent.update == "all"
    if engine == "numba" and not compiled:
        raise ValueError(
            '`engine` must be "numpy" or "auto" for agents other than `EgalUCB` with '
            f'`update="all"`, got "numba" with {runs.agent!r}'
        )
    if engine == "numba" and find_spec("numba") is None:
        raise DependencyNotInstalled(
            '`engine="numba"` needs numba: pip install "gym-fairbandits[fast]"'
        )
    if engine == "auto":
        engine = "numba" if compiled and find_spec("numba") is not None else "numpy"
    shape = (len(runs.laws), len(checkpoints), runs.group_sum.shape[1])
    expected, realized = np.empty(shape), np.empty(shape)
    play = _play_compiled if engine == "numba" else _play_numpy
    play(runs, checkpoints, expected, realized)
    env = runs.env
    return Simulation(
        checkpoints,
        np.asarray(
            egalitarian_optimum(runs.means[:, None], env.num_users, checkpoints, env.capacity)
        ),
        runs.per_user(expected),
        runs.per_user(realized),
        runs.pulls,
        env.objective,
        engine,
    )


def _play_numpy(runs: _Runs, checkpoints: Ints, expected: Floats, realized: Floats) -> None:
    """Play all runs, a piece of a block at a time; write their totals at the checkpoints."""
    num_runs, groups = runs.group_sum.shape
    horizon, num_users, shared = runs.env.horizon, runs.env.num_users, runs.agent.capacity
    offsets = np.arange(num_runs)[:, None] * runs.means.shape[1]  # where each run's arms begin
    rewards_of = _rewards(runs.laws)
    reward_sum, pulls, group_sum = (
        runs.reward_sum.reshape(-1),
        runs.pulls.reshape(-1),
        runs.group_sum.reshape(-1),
    )
    # Slot of each group in each step of a block, one step after the other.
    slots = rotation(np.tile(np.arange(groups), (groups, 1)), np.arange(groups), groups).ravel()
    # The number of each group, of all runs, in each step of a block.
    seats = np.tile(np.arange(num_runs * groups).reshape(num_runs, groups), (1, groups))
    draws = np.empty((num_runs, draws_per_refill(num_users, num_runs)))
    used = room = draws.shape[1]
    ahead = [*checkpoints.tolist(), horizon + 1]
    place = 0
    for start in range(0, horizon, groups):
        cells = runs.next_sets(start) + offsets
        length = min(groups, horizon - start)
        done = 0
        while done < length:
            if used == room:
                for run, stream in enumerate(runs.streams):
                    fill_draws(stream, runs.laws[run].noise, draws[run])
                used = 0
            # Not beyond the block, the draws at hand or the next checkpoint.
            steps = min(length - done, (room - used) // num_users, ahead[place] - start - done)
            played = cells
            if groups > 1:
                played = cells.take(slots[done * groups : (done + steps) * groups], axis=1)
            rewards = rewards_of(played, draws[:, used : used + steps * num_users : shared])
            used += steps * num_users
            done += steps
            # One by one, in the order of steps, as environments add them.
            earned = rewards.reshape(-1)
            np.add.at(reward_sum, played.reshape(-1), earned)
            np.add.at(group_sum, seats[:, : steps * groups].reshape(-1), earned)
            if start + done == ahead[place]:
                means = runs.means.reshape(-1).take(cells.take(slots[: done * groups], axis=1))
                this_block = means.reshape(num_runs, done, groups).sum(axis=1)
                expected[:, place] = runs.expected()[:, None] + this_block
                realized[:, place] = runs.group_sum
                place += 1
        pulls[cells.reshape(-1)] += length


def _rewards(laws: list[Arms]) -> Callable[[Ints, Floats], Floats]:
    """Return what pays in many runs: arm a of run r has the number r K + a.

    The laws do the work; those of all runs are made one where that does not take much room.
    """
    nothing = np.zeros((len(laws), 0), dtype=np.int64)  # for pulls: these laws ask for none
    shared, kinds = laws[0], {type(law) for law in laws}
    if all(law is shared for law in laws):
        return lambda cells, draws: shared.rewards(cells % shared.num_arms, draws, 0, nothing)
    joint: Arms | None = None
    if kinds == {Bernoulli}:
        joint = Bernoulli(np.concatenate([law.means for law in laws]))
    elif kinds == {Gaussian}:
        deviations = [law.std for law in laws if isinstance(law, Gaussian)]
        joint = Gaussian(np.concatenate([law.means for law in laws]), np.concatenate(deviations))
    if joint is not None:
        return lambda cells, draws: joint.rewards(cells, draws, 0, nothing)

    def apart(cells: Ints, draws: Floats) -> Floats:
        rewards = np.empty(draws.shape)
        for run, law in enumerate(laws):
            first = run * law.num_arms
            rewards[run] = law.rewards(cells[run] - first, draws[run], 0, nothing[run])
        return rewards

    return apart


def _play_compiled(runs: _Runs, checkpoints: Ints, expected: Floats, realized: Floats) -> None:
    """Play all runs, one after the other, with :mod:`gym_fairbandits.experiments._kernels`."""
    from gym_fairbandits.experiments import _kernels

    agent, horizon, users = runs.agent, runs.env.horizon, runs.env.num_users
    groups = runs.group_sum.shape[1]
    tables = [_tables(law) for law in runs.laws]
    places = [0] * len(runs.laws)
    whole = np.arange(min(horizon // groups, INVERSES) + 1) * groups
    inverses = 1 / np.maximum(whole, 1), np.sqrt(1 / np.maximum(whole, 1))
    span = groups * max(1, DRAWS_AT_ONCE // (groups * users))
    draws = np.empty(min(span, horizon) * users)  # used again: fresh memory costs more than draws
    for first in range(0, horizon, span):
        steps = min(span, horizon - first)
        begins = np.arange(first, first + steps, groups)
        budgets = agent.c * np.log(np.maximum(begins, 1))  # type: ignore[attr-defined]
        for run, stream in enumerate(runs.streams):
            places[run] = _kernels.play(
                fill_draws(stream, runs.laws[run].noise, draws[: steps * users]),
                tables[run],
                agent.capacity,
                budgets,
                agent.sigma,  # type: ignore[attr-defined]
                inverses,
                first,
                (runs.pulls[run], runs.reward_sum[run], runs.group_sum[run]),
                checkpoints,
                places[run],
                expected[run],
                realized[run],
            )


def _tables(law: Arms) -> tuple[int, Floats, Floats, Floats, Ints, Ints]:
    """Return a law as :func:`gym_fairbandits.experiments._kernels.play` reads it."""
    from gym_fairbandits.experiments import _kernels

    none, zeros = np.zeros(law.num_arms, dtype=np.int64), np.zeros(law.num_arms)
    if isinstance(law, Gaussian):
        return _kernels.GAUSSIAN, law.means, law.std, zeros, none, none
    if isinstance(law, Empirical):
        return _kernels.EMPIRICAL, law.means, zeros, *law.table
    return _kernels.BERNOULLI, law.means, zeros, zeros, none, none
