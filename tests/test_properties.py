"""What holds of any instance, any stream of actions and any wrappers, in examples by hypothesis."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode
from helpers_names import IMPROVING, Kwargs
from helpers_play import Player, assert_identical
from helpers_strategies import (
    Stack,
    Wrap,
    improving_curves,
    laws,
    limits,
    rested_curves,
    seeds,
    stacks,
    vector_stacks,
)
from hypothesis import given
from hypothesis import strategies as st

from gym_fairbandits import arms, curves, wrappers
from gym_fairbandits.envs import EgalAssignVectorEnv, ImprovingBanditVectorEnv
from gym_fairbandits.spaces import Assignment

# --- What an episode is held to -----------------------------------------------------------------


def illegal_actions(space: gym.Space[Any]) -> list[Any]:
    """Return actions of every kind that ``space`` does not admit."""
    wrong: list[Any] = [None, "0", {}, [[0]], np.zeros(64, np.int64), np.array(np.nan)]
    if isinstance(space, spaces.Discrete):
        return [*wrong, int(space.n), -1, np.int64(space.n), 2**70, 0.5, True]
    if isinstance(space, spaces.MultiDiscrete):
        return [*wrong, space.nvec, -np.ones_like(space.nvec), space.nvec * 0.0]
    if isinstance(space, spaces.Box):
        return [*wrong, np.full(space.shape, 1j), np.full(space.shape, "1")]
    assert isinstance(space, Assignment)
    users = space.num_users
    wrong += [[space.num_arms] * users, [-1] * users, np.zeros(users), ["0"] * users]
    return [*wrong, [0] * users] if users > space.capacity else wrong


def duplicate(env: Any, how: str) -> Any:
    if "FlattenObservation" in str(env):
        how = "deepcopy"  # Gymnasium's wrapper holds a lambda, which pickle refuses
    return pickle.loads(pickle.dumps(env)) if how == "pickle" else copy.deepcopy(env)


def at_least_zero(regret: float, optimum: float) -> bool:
    return regret >= -1e-9 * max(1.0, abs(optimum))


class Account:
    """Follows an episode from outside and checks what must hold of it."""

    def __init__(self, env: Any, layers: Sequence[Wrap]) -> None:
        self.follow(env)
        self.of_users = hasattr(self.bandit, "num_users")
        self.layers = layers
        self.clear()

    def follow(self, env: Any) -> None:
        self.env, self.bandit = env, env.unwrapped

    def clear(self) -> None:
        self.earned = self.turned_over = self.users_turned_over = 0.0

    def see(self, outcome: Any) -> None:
        """Check the invariants after a step."""
        observation, reward, terminated, truncated, info = outcome
        assert observation in self.env.observation_space
        self.earned += reward
        self.turned_over += abs(reward)
        gap = self.earned - self.bandit.realized_return()
        assert abs(gap) <= 1e-12 * max(1.0, self.turned_over)
        constant = not self.of_users or not self.bandit.arms.varying
        if constant:  # who follows arms that vary may beat the best fixed set
            optimum = self.bandit.optimal_return()
            assert at_least_zero(optimum - self.bandit.expected_return(), optimum)
            if terminated or truncated:
                self._see_exact_optimum(optimum)
        if self.of_users:
            self._see_users(observation, info)
        else:
            assert self.bandit.pulls.sum() == self.bandit.steps
        self._see_metrics(info, bool(terminated or truncated), constant)

    def _see_exact_optimum(self, paper: float) -> None:
        try:
            exact = self.bandit.exact_optimal_return()
        except ValueError:  # the best schedule is known for small sizes only
            return
        assert at_least_zero(exact - self.bandit.expected_return(), paper)
        assert at_least_zero(paper - exact, paper)

    def _see_users(self, observation: Any, info: Kwargs) -> None:
        pulls, steps = self.bandit.pulls, self.bandit.steps
        assert pulls.max(initial=0) <= steps
        if self.bandit.capacity > 1:
            return
        assert pulls.sum() == steps * self.bandit.num_users
        # Where gains and losses cancel, rounding is relative to what was turned over.
        self.users_turned_over += np.abs(info.get("user_rewards", np.zeros(1))).sum()
        if isinstance(observation, dict):
            gap = observation["user_reward_sum"].sum() - observation["reward_sum"].sum()
            assert abs(gap) <= 1e-12 * self.users_turned_over

    def _see_metrics(self, info: Kwargs, ended: bool, constant: bool) -> None:
        for layer, key in (
            (wrappers.PolicyRegret, "policy_regret"),
            (wrappers.ExternalRegret, "external_regret"),
            (wrappers.FairnessMetrics, "jain_index" if self.of_users else "pull_gini"),
        ):
            assert (key in info) == (ended and layer in self.layers)
        if "policy_regret" in info and constant:
            assert at_least_zero(info["policy_regret"], info["optimal_return"])
        if "external_regret" in info:
            assert at_least_zero(info["external_regret"], self.turned_over)


# --- Properties ---------------------------------------------------------------------------------


EVENTS = [*["step"] * 8, "illegal", "reset", "reseed", "pickle", "deepcopy"]


@given(stacks(), seeds, st.lists(st.sampled_from(EVENTS), min_size=10, max_size=40))
def test_episodes_keep_their_invariants_whatever_comes_between(
    stack: Stack, seed: int, events: list[str]
) -> None:
    """A second environment sees only legal steps and resets: both must stay alike."""
    env, twin = stack.make(), stack.make()
    rng, player = np.random.default_rng(seed), Player(env.action_space, seed)
    with pytest.raises(ResetNeeded):
        env.step(player())
    first = env.reset(seed=seed)
    assert_identical(first, twin.reset(seed=seed))
    assert first[0] in env.observation_space
    account = Account(env, stack.layers)
    for event in events:
        if event == "illegal":
            wrong = illegal_actions(env.action_space)
            with pytest.raises(InvalidAction):
                env.step(wrong[rng.integers(len(wrong))])
        elif event in ("pickle", "deepcopy"):
            env = duplicate(env, event)
            account.follow(env)
        ended = False
        if event == "step":
            action = player()
            outcome = env.step(action)
            assert_identical(outcome, twin.step(action))
            account.see(outcome)
            ended = bool(outcome[2] or outcome[3])
            if ended and stack.max_episode_steps is None:
                with pytest.raises(ResetNeeded):
                    env.step(player())
        if ended or event in ("reset", "reseed"):
            again = int(rng.integers(2**31)) if event == "reseed" else None
            begun = env.reset(seed=again)
            assert_identical(begun, twin.reset(seed=again))
            assert begun[0] in env.observation_space
            account.clear()


class AloneRow:
    """A scalar environment that resets as a row of a vector environment does."""

    def __init__(self, env: Any, mode: AutoresetMode) -> None:
        self.env, self.mode = env, mode
        self.ended = False
        self.observation: Any = None

    def reset(self, seed: int | None) -> None:
        self.observation, _ = self.env.reset(seed=seed)
        self.ended = False

    def step(self, action: Any) -> tuple[Any, ...]:
        """Return reward, ends, info and, of an episode reset at once, the last observation."""
        if self.ended:
            self.reset(None)
            return 0.0, False, False, {}, None
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        final = None
        self.ended = terminated or truncated
        if self.ended and self.mode == AutoresetMode.SAME_STEP:
            final = self.observation
            self.reset(None)
        return reward, terminated, truncated, info, final


def row_of(batch: Kwargs, row: int) -> Kwargs:
    return {name: values[row] for name, values in batch.items()}


def info_of(infos: Kwargs, row: int) -> Kwargs:
    """Return what a row reports, that of an ended episode included."""
    told: Kwargs = {}
    for name, values in infos.items():
        if name.startswith("_") or name == "final_obs" or not infos[f"_{name}"][row]:
            continue
        told |= info_of(values, row) if name == "final_info" else {name: values[row]}
    return told


def as_arrays(values: Kwargs) -> Kwargs:
    return {name: np.asarray(value) for name, value in values.items()}


VECTOR_EVENTS = [*["step"] * 8, "illegal", "reset", "reseed", "masked", "pickle", "deepcopy"]


@given(
    vector_stacks(),
    limits,
    st.sampled_from(AutoresetMode),
    st.integers(1, 4),
    seeds,
    st.lists(st.sampled_from(VECTOR_EVENTS), min_size=10, max_size=40),
)
def test_a_row_is_the_scalar_environment_whatever_comes_between(
    stack: tuple[str, Kwargs, tuple[str, ...]],
    limit: int | None,
    mode: AutoresetMode,
    num_envs: int,
    seed: int,
    events: list[str],
) -> None:
    env_id, kwargs, names = stack
    native: Any = ImprovingBanditVectorEnv if env_id == IMPROVING else EgalAssignVectorEnv
    envs = native(num_envs=num_envs, max_episode_steps=limit, autoreset_mode=mode, **kwargs)
    for name in names:
        envs = getattr(wrappers.vector, name)(envs)
    layers = tuple(getattr(wrappers, name) for name in names)
    rows = [AloneRow(Stack(env_id, kwargs, limit, layers).make(), mode) for _ in range(num_envs)]
    rng, player = np.random.default_rng(seed), Player(envs.single_action_space, seed)

    def reset(first: int | None, mask: np.ndarray[Any, np.dtype[np.bool_]] | None) -> None:
        options = None if mask is None else {"reset_mask": mask}
        batch, infos = envs.reset(seed=first, options=options)
        assert infos == {}
        for place, row in enumerate(rows):
            if mask is None or mask[place]:
                row.reset(None if first is None else first + place)
        compare(batch)

    def compare(batch: Kwargs) -> None:
        assert batch in envs.observation_space
        for place, row in enumerate(rows):
            assert_identical(row_of(batch, place), row.observation, f"row {place}")

    reset(seed, None)
    for event in events:
        ended = np.array([row.ended for row in rows])
        actions = player.batch(num_envs)
        if event in ("pickle", "deepcopy"):
            envs = duplicate(envs, event)
        elif event == "reset":
            reset(None, None)
        elif event == "reseed":
            reset(int(rng.integers(2**31)), None)
        elif event == "masked":
            mask = rng.random(num_envs) < 0.5
            mask[rng.integers(num_envs)] = True
            reset(int(rng.integers(2**31)) if rng.random() < 0.5 else None, mask)
        elif mode == AutoresetMode.DISABLED and ended.any():
            with pytest.raises(ResetNeeded):
                envs.step(actions)
            reset(None, ended)
        elif event == "illegal":
            broken = actions.dtype.kind != "f" and not ended.all()  # any score has a rank
            if broken:
                actions[rng.choice(np.flatnonzero(~ended))] = -1
            wrong = actions if broken and rng.random() < 0.7 else None
            with pytest.raises(InvalidAction):
                envs.step(wrong)
        else:
            batch, rewards, terminations, truncations, infos = envs.step(actions)
            for place, row in enumerate(rows):
                reward, terminated, truncated, info, final = row.step(actions[place])
                assert_identical(float(rewards[place]), float(reward))
                assert (terminations[place], truncations[place]) == (terminated, truncated)
                assert_identical(as_arrays(info_of(infos, place)), as_arrays(info), f"row {place}")
                assert (final is not None) == bool(
                    infos.get("_final_obs", np.zeros(num_envs))[place]
                )
                if final is not None:
                    assert_identical(infos["final_obs"][place], final)
            compare(batch)


@given(improving_curves, st.integers(1, 2000))
def test_a_curve_of_the_model_passes_its_check_and_adds_up(curve: curves.Curve, pulls: int) -> None:
    curves.check_improving(curve, pulls)
    values = curve(np.arange(1, pulls + 1))
    assert math.isclose(
        curve.cumulative(pulls), math.fsum(values.tolist()), rel_tol=1e-11, abs_tol=1e-300
    )
    assert curve.cumulative(0) == 0


@given(rested_curves, st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
def test_a_curve_pays_alike_alone_in_arrays_and_from_json(
    curve: curves.Curve, pulls: list[int]
) -> None:
    again = curves.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert again == curve
    assert_identical(again(np.array(pulls)), np.array([curve(pull) for pull in pulls]))


@given(st.integers(1, 6).flatmap(lambda size: laws(size, 12)))
def test_arms_come_back_from_json(law: arms.Arms) -> None:
    assert arms.from_dict(json.loads(json.dumps(law.to_dict()))) == law
