"""Players of environments, what they log, and bitwise comparison of anything returned."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

# --- Playing ------------------------------------------------------------------------------------


class Player:
    """Draws legal actions; low arms more often, so that some arms are pulled far."""

    def __init__(self, space: gym.Space[Any], seed: int = 0) -> None:
        self.space = copy.deepcopy(space)
        self.space.seed(seed)
        self.rng = np.random.default_rng(seed)

    def __call__(self) -> Any:
        if isinstance(self.space, spaces.Discrete):
            return int(self.rng.integers(self.rng.integers(1, self.space.n + 1)))
        return self.space.sample()

    def batch(self, num_envs: int) -> NDArray[np.int64]:
        return np.array([self() for _ in range(num_envs)])


def play(env: Any, player: Player, steps: int) -> list[Any]:
    """Step, resetting at each end; return copies of all that was returned."""
    log: list[Any] = []
    for _ in range(steps):
        outcome = env.step(player())
        log.append(copy.deepcopy(outcome))
        if outcome[2] or outcome[3]:
            log.append(copy.deepcopy(env.reset()))
    return log


def worth(env: Any, steps: int | None = None) -> dict[str, Any]:
    """Return what the environment says of the running episode: optimal, expected and realised.

    With ``steps``, also the optimum of that many.
    """
    bandit = env.unwrapped
    values: dict[str, Any] = {
        "expected": bandit.expected_return(),
        "realized": bandit.realized_return(),
    }
    if hasattr(bandit, "expected_user_returns"):
        values["users"] = bandit.expected_user_returns()
    lengths = {"optimal": None} if steps is None else {"optimal": None, "optimal_of": steps}
    for name, length in lengths.items():
        try:
            values[name] = bandit.optimal_return(length)
        except NotImplementedError:
            values[name] = "not implemented"
    return values


def random_states(env: Any) -> Any:
    """Return the states of the generators of an environment, scalar or vector."""
    generators = env.unwrapped.np_random
    if isinstance(generators, tuple):
        return [generator.bit_generator.state for generator in generators]
    return generators.bit_generator.state


# --- Comparing ----------------------------------------------------------------------------------


def assert_identical(actual: Any, expected: Any, where: str = "result") -> None:
    """Assert equality of types, keys, shapes, dtypes and every bit."""
    assert type(actual) is type(expected), f"{where}: {type(actual)} against {type(expected)}"
    if isinstance(expected, Mapping):
        assert set(actual) == set(expected), f"{where}: {sorted(actual)} against {sorted(expected)}"
        for key, value in expected.items():
            assert_identical(actual[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), where
        for place, (one, other) in enumerate(zip(actual, expected, strict=True)):
            assert_identical(one, other, f"{where}[{place}]")
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype, f"{where}: {actual.dtype} against {expected.dtype}"
        assert actual.shape == expected.shape, f"{where}: {actual.shape} against {expected.shape}"
        if expected.dtype == object:
            assert_identical(actual.tolist(), expected.tolist(), where)
        else:
            assert actual.tobytes() == expected.tobytes(), f"{where}: {actual} against {expected}"
    elif isinstance(expected, float):
        assert np.float64(actual).tobytes() == np.float64(expected).tobytes(), (
            f"{where}: {actual!r} against {expected!r}"
        )
    else:
        assert actual == expected, f"{where}: {actual!r} against {expected!r}"


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    """Yield every array in nested dicts, lists, tuples and object arrays."""
    if isinstance(value, np.ndarray):
        yield value
        if value.dtype == object:
            yield from arrays_in(value.tolist())
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from arrays_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arrays_in(item)


def arrays_of_state(thing: Any, seen: set[int] | None = None) -> Iterator[NDArray[Any]]:
    """Yield every array that an object of this package or of these helpers holds, however deep."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for item in thing.values():
            yield from arrays_of_state(item, seen)
    elif isinstance(thing, list | tuple):
        for item in thing:
            yield from arrays_of_state(item, seen)
    elif type(thing).__module__.split(".")[0] in ("gym_fairbandits", "helpers_envs"):
        yield from arrays_of_state(vars(thing), seen)


def vandalise(value: Any) -> None:
    """Overwrite every array in ``value`` with nonsense."""
    for array in arrays_in(value):
        if array.dtype == np.bool_:
            np.logical_not(array, out=array)
        else:
            array[...] = None if array.dtype == object else 77
