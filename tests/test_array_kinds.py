"""Lists and read-only, strided or small-integer arrays play as plain ones do and are left alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_envs import every_id
from helpers_names import EGAL
from helpers_play import arrays_in, assert_identical
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from gym_fairbandits import agents, curves
from gym_fairbandits.arms import Adversarial, Arms, Bernoulli, Empirical, Gaussian, Switching
from gym_fairbandits.wrappers import (
    EnumeratedAssignment,
    LehmerAssignment,
    RankedAssignment,
    SequentialAssignment,
)

DTYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", ">i8")
KINDS: dict[str, Callable[[Any], Any]] = {
    "list": lambda action: np.asarray(action).tolist(),
    "tuple": lambda action: as_tuples(np.asarray(action).tolist()),
    "read_only": lambda action: read_only(np.array(action)),
    "fortran": lambda action: np.array(action, order="F"),
    "strided": lambda action: np.repeat(np.array(action)[..., None], 2, axis=-1)[..., 0],
}


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def as_tuples(action: Any) -> Any:
    return tuple(map(as_tuples, action)) if isinstance(action, list) else action


@pytest.mark.parametrize("kind", [*DTYPES, *KINDS])
@every_id
def test_actions_of_any_kind_play_alike(env_id: str, kind: str) -> None:
    for maker in (
        lambda: gym.make(env_id, num_arms=6, horizon=9, disable_env_checker=True),
        lambda: gym.make_vec(env_id, num_envs=3, num_arms=6, horizon=9),
    ):
        plain: Any = maker()
        other: Any = maker()
        plain.reset(seed=0)
        other.reset(seed=0)
        plain.action_space.seed(0)
        for _ in range(9):
            action = plain.action_space.sample()
            given = KINDS[kind](action) if kind in KINDS else np.array(action, dtype=kind)
            kept = copy.deepcopy(given)
            assert_identical(other.step(given), plain.step(action))
            assert_identical(given, kept)


WRAPPED: list[tuple[Callable[[Any], Any], Any, list[Any]]] = [
    (RankedAssignment, np.array([0.5, -1, 1, 0]), [np.float32, np.float16]),
    (LehmerAssignment, np.array([3, 0]), [np.uint8, np.int32]),
    (EnumeratedAssignment, np.array(7), [np.uint8, np.int32, int]),
    (SequentialAssignment, np.array(2), [np.uint8, np.int32, int]),
]


@pytest.mark.parametrize(("wrapper", "action", "dtypes"), WRAPPED)
def test_wrappers_take_actions_of_any_kind(wrapper: Any, action: Any, dtypes: list[Any]) -> None:
    results = []
    for kind in (action.dtype, *dtypes):
        env = wrapper(gym.make(EGAL, num_users=2, num_arms=4, disable_env_checker=True))
        env.reset(seed=0)
        given = kind(action) if kind is int else read_only(action.astype(kind))
        results.append(env.step(given))
    for result in results[1:]:
        assert_identical(result, results[0])


def test_arms_of_read_only_and_fortran_arrays_are_those_of_lists() -> None:
    table = [[0.1, 0.7, 0.3], [0.9, 0.2, 0.6]]
    for array in (
        read_only(np.array(table)),
        np.asfortranarray(table),
        read_only(np.array(table).T.copy()).T,
        np.array(table * 2)[::-1][::-1][:2],
    ):
        laws: list[tuple[Arms, Arms]] = [
            (Adversarial(array), Adversarial(table)),
            (Switching(array, [1]), Switching(table, [1])),
            (Empirical(array), Empirical(table)),
            (Bernoulli(array[0]), Bernoulli(table[0])),
            (Gaussian(array[0], array[1]), Gaussian(table[0], table[1])),
        ]
        for one, other in laws:
            assert one == other
    source = np.array(table)
    law = Adversarial(source)
    source[:] = 0
    assert law == Adversarial(table)
    assert curves.Tabulated(read_only(np.array([0.5, 0.75]))) == curves.Tabulated((0.5, 0.75))  # type: ignore[arg-type]


@every_id
def test_agents_take_observations_of_any_kind_and_leave_them_alone(env_id: str) -> None:
    envs: Any = gym.make_vec(env_id, num_envs=3, num_arms=6, horizon=8)
    for name in agents.ready(env_id):
        plain, other = (agents.make(name, env=envs) for _ in range(2))
        plain.reset(seed=0)
        other.reset(seed=0)
        observations, _ = envs.reset(seed=0)
        for _ in range(8):
            given = {key: np.asfortranarray(part) for key, part in observations.items()}
            for part in arrays_in(given):
                part.setflags(write=False)
            actions = plain.act(observations)
            assert_array_equal(other.act(given), actions, err_msg=name)
            observations, *_ = envs.step(actions)
