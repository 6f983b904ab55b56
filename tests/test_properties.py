"""What holds of any instance, any stream of actions and any wrappers, in examples by hypothesis."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation
from helpers_envs import (
    EGAL,
    IMPROVING,
    Player,
    assert_identical,
    drawn_laws,
    drawn_mixture,
    drawn_varying,
)
from hypothesis import given
from hypothesis import strategies as st

from gym_fairbandits import arms, curves, wrappers
from gym_fairbandits.envs import EgalAssignVectorEnv, ImprovingBanditVectorEnv
from gym_fairbandits.spaces import Assignment

Kwargs = dict[str, Any]
Wrap = Callable[[Any], Any]
MOST_TABLE = 10_000  # assignments that are worth a table here
METRICS: tuple[str, ...] = ("PolicyRegret", "FairnessMetrics", "ExternalRegret")


# --- Curves -------------------------------------------------------------------------------------


def powers_of_ten(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most).map(lambda exponent: float(10.0**exponent))


units = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1))
scales = powers_of_ten(-3, 6)
numbers = st.floats(-5, 5)
exponents = st.floats(0.02, 20)


def concave_table(rises: Sequence[float]) -> curves.Tabulated:
    values = np.cumsum(sorted(rises, reverse=True))
    return curves.Tabulated(tuple(np.minimum(values / max(1.0, values[-1]), 1.0).tolist()))


def bent_line(pieces: Sequence[tuple[float, float]]) -> curves.PiecewiseLinear:
    heights, ramps = zip(*pieces, strict=True)
    return curves.PiecewiseLinear(tuple(height / len(heights) for height in heights), ramps)


def bent_any_way(heights: Sequence[float]) -> curves.PiecewiseLinear:
    ramps = tuple(1 + 3 * abs(height) for height in heights)
    return curves.PiecewiseLinear(tuple(heights), ramps)


def mean_of_two(pair: tuple[curves.Curve, curves.Curve]) -> curves.Curve:
    return 0.5 * pair[0] + 0.5 * pair[1]


always_improving = st.one_of(
    st.builds(curves.LinearCap, units, scales),
    st.builds(curves.Exponential, units, powers_of_ten(-6, 2)),
    st.builds(curves.Constant, units),
    st.builds(curves.Hyperbolic, units, scales),
    st.builds(curves.PowerLaw, units, exponents),
    st.builds(curves.Polynomial, units, powers_of_ten(-3, 4), exponents),
    st.builds(curves.Logarithmic, units, scales, scales),
    st.builds(curves.Power, units, scales, st.floats(0.02, 1)),
    st.builds(curves.Logistic, units, powers_of_ten(-3, 2), st.floats(-10, 0)),
    st.builds(curves.Gompertz, units, st.floats(0.01, 1), powers_of_ten(-6, 2)),
    st.builds(curves.Weibull, units, scales, st.floats(0.02, 1)),
    st.builds(curves.Hill, units, scales, st.floats(0.02, 1)),
    st.lists(units, min_size=1, max_size=6).map(concave_table),
    st.lists(st.tuples(units, scales), min_size=1, max_size=4).map(bent_line),
)
improving_curves = st.one_of(
    always_improving,
    st.builds(curves.Scaled, units, always_improving),
    st.tuples(always_improving, always_improving).map(mean_of_two),
)
rows_of_numbers = st.lists(numbers, min_size=1, max_size=6).map(tuple)
rested_curves = st.one_of(
    improving_curves,
    st.builds(curves.Exponential, numbers, scales),
    st.builds(curves.Logistic, numbers, powers_of_ten(-3, 2), st.floats(-10, 50)),
    st.builds(curves.Gompertz, numbers, powers_of_ten(-2, 2), powers_of_ten(-6, 2)),
    st.builds(curves.Weibull, numbers, scales, exponents),
    st.builds(curves.Hill, numbers, scales, exponents),
    st.builds(curves.UnshiftedPowerLaw, numbers, exponents),
    st.builds(curves.Tabulated, rows_of_numbers),
    rows_of_numbers.map(bent_any_way),
    st.builds(
        curves.SinglePeaked,
        st.floats(0.01, 0.5),
        st.floats(0, 2),
        numbers,
        numbers,
        st.floats(-10, 10),
        numbers,
    ),
    st.builds(curves.NoveltyDecay, numbers, numbers, st.floats(0.01, 0.99), st.floats(0, 0.99)),
    st.builds(curves.Scaled, numbers, improving_curves),
    st.tuples(improving_curves, improving_curves).map(lambda pair: pair[0] + -1.5 * pair[1]),
)


@st.composite
def improving_settings(draw: st.DrawFn) -> Kwargs:
    """Arguments of ImprovingBandit-v0."""
    validate = draw(st.booleans())
    own = st.lists(improving_curves if validate else rested_curves, min_size=1, max_size=5)
    instance = draw(st.one_of(own, st.sampled_from(["random_concave", drawn_mixture])))
    if isinstance(instance, list) and draw(st.booleans()):
        instance = [curve.to_dict() for curve in instance]
    return {
        "instance": instance,
        "num_arms": len(instance) if isinstance(instance, list) else draw(st.integers(1, 5)),
        "noise_std": draw(st.sampled_from([0.0, 0.25])),
        "horizon": draw(st.integers(1, 12)),
        "horizon_known": draw(st.booleans()),
        "validate": validate,
    }


# --- Arms ---------------------------------------------------------------------------------------


@st.composite
def laws(draw: st.DrawFn, num_arms: int, horizon: int) -> arms.Arms:
    """Arms of any family, for episodes of ``horizon`` steps."""

    def row(entries: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(entries, min_size=num_arms, max_size=num_arms))

    def table(entries: st.SearchStrategy[Any], length: int) -> Any:
        return [row(entries) for _ in range(length)]

    stds = st.one_of(st.just(0.0), st.floats(0, 3))
    family = draw(st.integers(0, 6))
    if family == 0:
        return arms.Bernoulli(row(units))
    if family == 1:
        return arms.Gaussian(row(numbers), draw(stds) if draw(st.booleans()) else row(stds))
    if family == 2:
        return arms.Empirical(row(st.lists(numbers, min_size=1, max_size=4)))
    if family == 3:
        length = draw(st.integers(1, 6))
        return arms.Adversarial(table(numbers, length), periodic=length < horizon)
    if family == 4:
        switches = sorted(draw(st.sets(st.integers(1, 12), max_size=3)))
        return arms.Switching(table(units, len(switches) + 1), switches)
    if family == 5:
        switches = sorted(draw(st.sets(st.integers(1, 12), max_size=3)))
        return arms.Switching(table(numbers, len(switches) + 1), switches, row(stds))
    return arms.AdaptiveAdversary(num_arms, draw(st.integers(1, num_arms)), draw(numbers))


@st.composite
def assignment_settings(draw: st.DrawFn) -> Kwargs:
    """Arguments of EgalAssign-v0."""
    num_arms, capacity = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    horizon = draw(st.integers(1, 12))
    named: list[Any] = ["bernoulli", "gaussian", drawn_laws, drawn_varying]
    instance = draw(st.one_of(laws(num_arms, horizon), st.sampled_from(named)))
    if isinstance(instance, arms.Arms) and draw(st.booleans()):
        instance = instance.to_dict()
    return {
        "instance": instance,
        "num_users": draw(st.integers(1, min(8, capacity * num_arms))),
        "num_arms": num_arms,
        "capacity": capacity,
        "objective": draw(st.sampled_from(["egalitarian", "utilitarian"])),
        "horizon": horizon,
        "horizon_known": draw(st.booleans()),
    }


# --- Environments in wrappers -------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """An environment in its wrappers, from the inside out."""

    env_id: str
    kwargs: Kwargs
    max_episode_steps: int | None
    layers: tuple[Wrap, ...]

    def make(self) -> Any:
        env: Any = gym.make(
            self.env_id,
            max_episode_steps=self.max_episode_steps,
            disable_env_checker=True,
            **self.kwargs,
        )
        for layer in self.layers:
            env = layer(env)
        return env


limits = st.one_of(st.none(), st.integers(1, 15))
metric_names = st.lists(st.sampled_from(METRICS), unique=True)
any_settings = st.one_of(
    st.tuples(st.just(IMPROVING), improving_settings()),
    st.tuples(st.just(EGAL), assignment_settings()),
)


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """Any environment in wrappers, those of observations outside of all others."""
    env_id, kwargs = draw(any_settings)
    layers: list[Wrap] = [getattr(wrappers, name) for name in draw(metric_names)]
    if env_id == EGAL:
        choices: list[Wrap | None] = [
            None,
            wrappers.RankedAssignment,
            wrappers.LehmerAssignment,
            wrappers.SequentialAssignment,
            wrappers.RotatedAssignment,
        ]
        if kwargs["num_arms"] ** kwargs["num_users"] <= MOST_TABLE:
            choices.append(wrappers.EnumeratedAssignment)
        chosen = draw(st.sampled_from(choices))
        if chosen is not None:
            # `ExternalRegret` must see every step, and a rotation takes several at once.
            skips = chosen is wrappers.RotatedAssignment and wrappers.ExternalRegret in layers
            layers.insert(len(layers) if skips else draw(st.integers(0, len(layers))), chosen)
    if draw(st.booleans()):
        layers.append(FlattenObservation)
    return Stack(env_id, kwargs, draw(limits), tuple(layers))


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

seeds = st.integers(0, 2**31 - 1)
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


@st.composite
def vector_stacks(draw: st.DrawFn) -> tuple[str, Kwargs, tuple[str, ...]]:
    """Any environment, and the names of wrappers that there are for one and for many."""
    env_id, kwargs = draw(any_settings)
    names = draw(metric_names)
    if env_id == EGAL:
        choices = [None, "RankedAssignment", "LehmerAssignment"]
        if kwargs["num_arms"] ** kwargs["num_users"] <= MOST_TABLE:
            choices.append("EnumeratedAssignment")
        chosen = draw(st.sampled_from(choices))
        if chosen is not None:
            names.insert(draw(st.integers(0, len(names))), chosen)
    return env_id, kwargs, tuple(names)


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
