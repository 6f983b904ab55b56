"""One episode per row: a policy plays, side by side, until every row has ended.

Knows spaces, observations and steps, and asks the wrappers for their accounts at the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from gym_fairbandits._checks import actions_of_rows
from gym_fairbandits.wrappers import ExternalRegret, FairnessMetrics, PolicyRegret
from gym_fairbandits.wrappers import vector as of_vectors

__all__ = ["METRICS", "Episodes", "Plan", "check", "observed", "play"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# What is computed only when asked for: the wrappers, scalar and vector.
METRICS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "fairness": (FairnessMetrics, of_vectors.FairnessMetrics),
    "external_regret": (ExternalRegret, of_vectors.ExternalRegret),
}


@dataclass(frozen=True)
class Plan:
    """What is played: the same for every chunk of episodes.

    Attributes:
        policy: As :class:`gym_fairbandits.evaluation.Entry` takes it.
        is_factory: Whether ``policy`` is called with the environment that runs.
        env_id: The environment's id.
        env_kwargs: Its arguments.
        wrappers: Called with the environment, innermost first.
        normalize: Applied to observations before the policy sees them, or ``None``.
        checkpoints: Steps of the environment at which the regret so far is taken, ascending.
        metrics: Keys of ``METRICS``: what else to compute.
    """

    policy: Any
    is_factory: bool
    env_id: str
    env_kwargs: Mapping[str, Any]
    wrappers: Sequence[Callable[[Any], Any]]
    normalize: Callable[[Any], Any] | None
    checkpoints: tuple[int, ...]
    metrics: tuple[str, ...]


@dataclass
class Episodes:
    """What happened in some episodes, one row each.

    Attributes:
        metrics: A value per episode; float64 arrays of shape ``(n,)``.
        regret_curves: Regret at the checkpoints; float64 array of shape ``(n, num_checkpoints)``.
        pulls: How often each arm was played; int64 array of shape ``(n, num_arms)``.
        user_returns: The users' expected totals, or ``None``; float64 ``(n, num_users)``.
        redrawn: Whether each episode had an instance of its own.
    """

    metrics: dict[str, Floats]
    regret_curves: Floats
    pulls: Ints
    user_returns: Floats | None
    redrawn: bool


def check(plan: Plan) -> int | None:
    """Refuse wrong arguments of the environment: they are no mistake of the policy's.

    Returns:
        Its horizon, if it tells one.
    """
    envs: Any = gym.make_vec(plan.env_id, num_envs=1, **plan.env_kwargs)
    of_vectors.PolicyRegret(envs)
    envs.close()
    horizon: int | None = getattr(envs.unwrapped, "horizon", None)
    return horizon


def observed(plan: Plan) -> list[str]:
    """Return the keys of what the policy observes, none if it is no ``Dict``."""
    rows = _Wrapped(plan, 1)
    space = rows.envs.single_observation_space
    rows.close()
    return sorted(space) if isinstance(space, gym.spaces.Dict) else []


def play(plan: Plan, seeds: list[int]) -> Episodes:
    """Play one episode per seed; the environment and the agent's row are seeded with it."""
    rows: _Native | _Wrapped = (
        _Wrapped(plan, len(seeds)) if plan.wrappers else _Native(plan, len(seeds))
    )
    try:
        return _play(plan, rows, seeds)
    finally:
        rows.close()


def _play(plan: Plan, rows: _Native | _Wrapped, seeds: list[int]) -> Episodes:
    act = _actor(plan, rows, seeds)
    observations = rows.reset(seeds)
    count = len(seeds)
    returns, lengths = np.zeros(count), np.zeros(count)
    running = np.ones(count, dtype=np.bool_)
    while running.any():
        seen = observations if plan.normalize is None else plan.normalize(observations)
        actions = act(seen)
        observations, rewards, ended = rows.step(actions_of_rows(actions, count), running)
        returns += rewards
        lengths += running
        running &= ~ended
    metrics: dict[str, Floats] = {"return": returns, "length": lengths}
    account = rows.account()
    users: Floats | None = account.pop("expected_user_returns", None)
    if "min_user_return" in account:  # what was earned; the name is that of the expectation here
        account["realized_min_user_return"] = account.pop("min_user_return")
    metrics.update(account)
    if users is not None:
        metrics["min_user_return"] = users.min(axis=1)
    return Episodes(metrics, rows.curves, rows.pulls(), users, rows.redrawn())


class _Native:
    """Rows of a native vector environment; all end at the same step."""

    def __init__(self, plan: Plan, count: int) -> None:
        self._regret = of_vectors.PolicyRegret(
            gym.make_vec(plan.env_id, num_envs=count, autoreset_mode="Disabled", **plan.env_kwargs)
        )
        self.envs: Any = self._regret
        self._accounts: list[Any] = [self._regret]
        for name in plan.metrics:
            self.envs = METRICS[name][1](self.envs)
            self._accounts.append(self.envs)
        self._bandits: Any = self.envs.unwrapped
        self._checkpoints = plan.checkpoints
        self.curves: Floats = np.full((count, len(plan.checkpoints)), np.nan)
        self._step = 0

    def reset(self, seeds: list[int]) -> Any:
        return self.envs.reset(seed=seeds)[0]

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools]:
        observations, rewards, terminations, truncations, _ = self.envs.step(actions)
        self._step += 1
        if self._step in self._checkpoints:
            self.curves[:, self._checkpoints.index(self._step)] = self._regret.regret()
        return observations, rewards, terminations | truncations

    def account(self) -> dict[str, Floats]:
        account = {name: values for one in self._accounts for name, values in one.metrics().items()}
        if hasattr(self._bandits, "potential_gaps"):
            account["max_potential_gap"] = self._bandits.potential_gaps().max(axis=1)
        return account

    def pulls(self) -> Ints:
        pulls: Ints = self._bandits.pulls
        return pulls

    def redrawn(self) -> bool:
        return bool(self._bandits.redrawn)

    def close(self) -> None:
        self.envs.close()

    def action_masks(self) -> None:
        return None


class _Recorder(PolicyRegret[Any, Any]):
    """Takes the regret at the checkpoints, whatever the steps of the wrappers around it are."""

    def __init__(self, env: Any, checkpoints: tuple[int, ...]) -> None:
        super().__init__(env)
        self._checkpoints = checkpoints
        self.curve = np.full(len(checkpoints), np.nan)
        self.accounts: list[Any] = [self]  # and the wrappers around it that were asked for

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = super().step(action)
        played = self.env.unwrapped.steps  # type: ignore[attr-defined]
        if played in self._checkpoints:
            self.curve[self._checkpoints.index(played)] = self.regret()
        return result

    def account(self) -> dict[str, Any]:
        return {name: value for one in self.accounts for name, value in one.metrics().items()}


class _Wrapped:
    """Rows of scalar environments in the wrappers that a model was trained with."""

    def __init__(self, plan: Plan, count: int) -> None:
        self.envs: Any = gym.vector.SyncVectorEnv(
            [partial(self._make, plan)] * count, autoreset_mode=AutoresetMode.DISABLED
        )
        self._rows: list[Any] = self.envs.envs  # stepped one by one: they may end apart
        self._seen: list[Any] = [None] * count
        self._masked = self._rows[0].has_wrapper_attr("action_masks")

    @staticmethod
    def _make(plan: Plan) -> Any:
        env: Any = _Recorder(gym.make(plan.env_id, **plan.env_kwargs), plan.checkpoints)
        accounts = env.accounts
        for name in plan.metrics:
            env = METRICS[name][0](env)
            accounts.append(env)
        for wrapper in plan.wrappers:
            env = wrapper(env)
        return env

    def _batch(self) -> Any:
        space = self.envs.single_observation_space
        empty: Any = create_empty_array(space, len(self._rows), np.zeros)
        return concatenate(space, self._seen, empty)

    def reset(self, seeds: list[int]) -> Any:
        self._seen = [env.reset(seed=seed)[0] for env, seed in zip(self._rows, seeds, strict=True)]
        return self._batch()

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools]:
        rewards, ended = np.zeros(len(self._rows)), ~running
        for row, action in enumerate(iterate(self.envs.action_space, np.asarray(actions))):
            if running[row]:
                self._seen[row], rewards[row], terminated, truncated, _ = self._rows[row].step(
                    action
                )
                ended[row] = terminated or truncated
        return self._batch(), rewards, ended

    def _ask(self, name: str) -> list[Any]:
        return [env.get_wrapper_attr(name) for env in self._rows]

    @property
    def curves(self) -> Floats:
        return np.array(self._ask("curve"))

    def account(self) -> dict[str, Floats]:
        accounts = [account() for account in self._ask("account")]
        account = {name: np.array([one[name] for one in accounts]) for name in accounts[0]}
        if self._rows[0].has_wrapper_attr("potential_gaps"):
            gaps = [potential_gaps().max() for potential_gaps in self._ask("potential_gaps")]
            account["max_potential_gap"] = np.array(gaps)
        return account

    def pulls(self) -> Ints:
        return np.array([env.unwrapped.pulls for env in self._rows])

    def redrawn(self) -> bool:
        return bool(self._rows[0].unwrapped.redrawn)

    def close(self) -> None:
        self.envs.close()

    def action_masks(self) -> Bools | None:
        if not self._masked:
            return None
        return np.array([masks() for masks in self._ask("action_masks")])


def _actor(plan: Plan, rows: _Native | _Wrapped, seeds: list[int]) -> Callable[[Any], Any]:
    """Return the policy as a function of batched observations, at the start of every row."""
    policy = plan.policy
    if plan.is_factory:
        policy = policy(rows.envs) if _takes(policy, "env") else policy()
    if hasattr(policy, "reset") and _takes(policy.reset, "seed"):
        if not plan.is_factory:  # agents remember: chunks in other threads need their own
            policy = deepcopy(policy)
        policy.reset(seed=seeds)
    if not hasattr(policy, "predict"):
        called: Callable[[Any], Any] = policy
        return called
    masked = _takes(policy.predict, "action_masks")
    state: Any = None
    start = np.ones(len(seeds), dtype=np.bool_)

    def predict(observations: Any) -> Any:
        nonlocal state, start
        masks = rows.action_masks() if masked else None
        extra = {} if masks is None else {"action_masks": masks}
        actions, state = policy.predict(
            observations, state=state, episode_start=start, deterministic=True, **extra
        )
        start = np.zeros_like(start)
        return actions

    return predict


def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters
