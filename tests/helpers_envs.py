"""Cases, odd curves and laws, players and bitwise comparison for the tests of the environments."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.arms import (
    AdaptiveAdversary,
    Adversarial,
    Arms,
    Bernoulli,
    Empirical,
    Gaussian,
    Switching,
)
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Power,
    PowerLaw,
    Tabulated,
)

IMPROVING, EGAL = "ImprovingBandit-v0", "EgalAssign-v0"
Kwargs = dict[str, Any]
# Without pygame the checkers must leave out drawing; everything else they still check.
PICTURELESS = find_spec("pygame") is None


# --- Curves and laws that no batch knows as a family --------------------------------------------


@dataclass(frozen=True)
class Root(Curve):
    """``asymptote * sqrt(n / (n + scale))``: a user's own curve, in the model."""

    asymptote: float
    scale: float
    family: ClassVar[str] = "tests_root"

    def evaluate(self, pulls: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.asymptote * np.sqrt(pulls / (pulls + self.scale)))


class Seasonal(Arms):
    """A user's own law without chance: pays by the step and by how often the arm was played."""

    family = "tests_seasonal"
    noise = None

    def __init__(self, means: ArrayLike) -> None:
        self.means = np.array(means, dtype=np.float64)

    def rewards(self, arms: Any, draws: Any, step: Any, pulls: Any) -> NDArray[np.float64]:
        season = np.asarray(step)[..., None] % 3 + np.take_along_axis(pulls, arms, axis=-1) % 5
        return np.asarray(self.means[arms] + season / 8 + draws)

    def parameters(self) -> dict[str, Any]:
        return {"means": self.means.tolist()}


class Uniform(Arms):
    """A user's own law: pays uniformly on [0, 2 mean)."""

    family = "tests_uniform"
    noise = "random"

    def __init__(self, means: ArrayLike) -> None:
        self.means = np.array(means, dtype=np.float64)

    def rewards(self, arms: Any, draws: Any, step: Any, pulls: Any) -> NDArray[np.float64]:
        return np.asarray(2 * self.means[arms] * draws)

    def parameters(self) -> dict[str, Any]:
        return {"means": self.means.tolist()}


def drawn_tables(rng: np.random.Generator, num_arms: int) -> list[Curve]:
    """Draw tables of concave curves: objects that a batch must keep one by one."""
    curves: list[Curve] = []
    for _ in range(num_arms):
        rises = np.sort(rng.random(8))[::-1]
        curves.append(Tabulated(tuple(np.cumsum(rises) / (8 * (1 + rng.random())))))
    return curves


def drawn_mixture(rng: np.random.Generator, num_arms: int) -> list[Any]:
    """Draw arms of any family, some as dicts, some of a user's own family."""
    kinds = (
        lambda c, s: LinearCap(c, s),
        lambda c, s: Root(c, s),
        lambda c, s: {"family": "exponential", "asymptote": c, "rate": 1 / s},
        lambda c, s: Logarithmic(c, s, 10 * s),
        lambda c, s: {"family": "tabulated", "values": [c / 2, c]},
        lambda c, s: Constant(c),
    )
    return [
        kinds[int(rng.integers(len(kinds)))](rng.random(), 1 + 30 * rng.random())
        for _ in range(num_arms)
    ]


def drawn_laws(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    """Draw a law of any kind of noise."""
    means = rng.random(num_arms)
    kind = int(rng.integers(5))
    if kind == 0:
        return Bernoulli(means)
    if kind == 1:
        return Gaussian(means, rng.random(num_arms))
    if kind == 2:
        return Empirical([rng.random(3 + arm) for arm in range(num_arms)])
    return Seasonal(means) if kind == 3 else Uniform(means)


def drawn_varying(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    """Draw a law that varies, of any kind, or one that does not."""
    kind = int(rng.integers(5))
    if kind == 0:
        return Adversarial(rng.random((7, num_arms)), periodic=True)
    if kind == 1:
        return Switching(rng.random((3, num_arms)), [2, 5])
    if kind == 2:
        return Switching(rng.random((2, num_arms)), [3], rng.random(num_arms))
    if kind == 3:
        return AdaptiveAdversary(num_arms, int(rng.integers(1, num_arms + 1)), rng.random())
    return Bernoulli(rng.random(num_arms))


# --- Cases --------------------------------------------------------------------------------------

MIXED: list[Any] = [
    LinearCap(0.9, 7.5),
    Exponential(0.8, 0.03),
    Constant(0.2),
    Tabulated((0.125, 0.25, 0.3125, 0.34375)),
    Hyperbolic(1.0, 20),
    PowerLaw(0.7, 0.5),
    Logarithmic(0.6, 2.0, 50.0),
    Power(1.0, 90.0, 0.5),
    Root(0.95, 40.0),
    {"family": "linear_cap", "asymptote": 0.4, "ramp": 3},
]
PEAKED: list[Any] = [
    {"family": "tabulated", "values": [0.0, 0.5, 1.5, 0.25, -0.5]},
    {"family": "constant", "value": -0.25},
    {"family": "tabulated", "values": [0.75, 0.5, 0.25]},
]
SAMPLES: list[list[float]] = [
    [0.5, 3.0, 3.5],
    [4.0],
    [1.0, 2.0, 2.5, 5.0],
    [-1.5, -0.25],
    [2.0, 2.0],
]

# Short horizons, so that a test sees several episodes.
IMPROVING_CASES: dict[str, Kwargs] = {
    "random": {"horizon": 23},
    "many_arms": {"num_arms": 17, "horizon": 40, "horizon_known": True},
    "one_arm": {"num_arms": 1, "horizon": 9},
    "one_step": {"instance": drawn_tables, "num_arms": 3, "horizon": 1},
    "noise": {"num_arms": 4, "noise_std": 0.25, "horizon": 31},
    "early_vs_late": {"instance": "early_vs_late", "horizon": 20, "horizon_known": True},
    "lower_bound": {
        "instance": {"name": "lower_bound", "late": 1, "printing": "appendix"},
        "num_arms": 3,
        "horizon": 20,
    },
    "round_robin_trap": {"instance": "round_robin_trap", "num_arms": 4, "horizon": 12},
    "policy_vs_external": {"instance": "policy_vs_external", "horizon": 15},
    "mixed": {"instance": MIXED, "horizon": 50},
    "mixed_noise": {"instance": MIXED, "noise_std": 1.5, "horizon": 45, "horizon_known": True},
    "tables": {"instance": drawn_tables, "num_arms": 2, "horizon": 3},
    "mixture": {"instance": drawn_mixture, "num_arms": 5, "horizon": 13, "noise_std": 0.125},
    "general": {"instance": PEAKED, "validate": False, "horizon": 11},
}
EGAL_CASES: dict[str, Kwargs] = {
    "bernoulli": {"horizon": 23},
    "gaussian": {"instance": "gaussian", "num_users": 3, "num_arms": 7, "horizon": 29},
    "small_variance": {
        "instance": {"name": "gaussian", "variance": 0.1},
        "num_arms": 6,
        "horizon": 17,
        "horizon_known": True,
    },
    "two_level": {"instance": "two_level", "num_users": 2, "num_arms": 5, "horizon": 14},
    "lower_bound": {"instance": "lower_bound", "num_users": 2, "num_arms": 5, "horizon": 14},
    "nu_prime": {
        "instance": {"name": "lower_bound", "boosted": [2, 4]},
        "num_users": 2,
        "num_arms": 5,
        "horizon": 12,
    },
    "empirical": {"instance": {"family": "empirical", "samples": SAMPLES}, "horizon": 18},
    "deterministic": {
        "instance": {"family": "gaussian", "means": [0.9, 0.5, 0.1, -0.3], "std": 0.0},
        "num_users": 3,
        "horizon": 10,
        "horizon_known": True,
    },
    "own_stds": {
        "instance": Gaussian([0.5, 0.25, 0.75], [0.0, 1.0, 2.0]),
        "num_users": 2,
        "horizon": 10,
    },
    "seasonal": {"instance": Seasonal([0.5, 0.25, 0.75]), "num_users": 2, "horizon": 16},
    "uniform": {"instance": Uniform([0.5, 0.25, 0.75]), "num_users": 2, "horizon": 16},
    "laws": {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 6},
    "laws_shared": {
        "instance": drawn_laws,
        "num_users": 5,
        "num_arms": 3,
        "capacity": 2,
        "horizon": 7,
        "horizon_known": True,
    },
    "table": {
        "instance": {
            "family": "adversarial",
            "table": [[0.1, 0.7, 0.3], [0.9, 0.2, 0.6], [0.0, 1.0, 0.4], [0.3, 0.3, 0.8]],
            "periodic": True,
        },
        "num_users": 2,
        "horizon": 9,
    },
    "switching": {
        "instance": Switching([[0.1, 0.9, 0.5, 0.3], [0.8, 0.2, 0.4, 0.6]], [5]),
        "num_users": 3,
        "horizon": 13,
        "horizon_known": True,
    },
    "adaptive": {"instance": AdaptiveAdversary(5, 2, 0.7), "num_users": 3, "horizon": 12},
    "varying": {"instance": drawn_varying, "num_users": 2, "num_arms": 4, "horizon": 8},
    "varying_shared": {
        "instance": drawn_varying,
        "num_users": 5,
        "num_arms": 3,
        "capacity": 2,
        "objective": "utilitarian",
        "horizon": 7,
    },
    "capacity_2": {"num_users": 5, "num_arms": 4, "capacity": 2, "horizon": 21},
    "capacity_3": {
        "instance": "gaussian",
        "num_users": 7,
        "num_arms": 3,
        "capacity": 3,
        "objective": "utilitarian",
        "horizon": 19,
    },
    "capacity_beyond_users": {"num_users": 3, "num_arms": 2, "capacity": 8, "horizon": 15},
    "utilitarian_11": {
        "instance": "gaussian",
        "num_users": 11,
        "num_arms": 13,
        "objective": "utilitarian",
        "horizon": 24,
    },
    "utilitarian_19": {
        "instance": Gaussian(np.linspace(0.1, 2, 19), 0.7),
        "num_users": 19,
        "objective": "utilitarian",
        "horizon": 14,
    },
    "one_arm": {"num_users": 1, "num_arms": 1, "horizon": 8},
    "all_arms": {"num_users": 4, "num_arms": 4, "horizon": 20},
    "one_step": {"num_users": 2, "num_arms": 3, "horizon": 1, "horizon_known": True},
    "many_users": {"num_users": 300, "num_arms": 310, "horizon": 5},
}
CASES: list[tuple[str, Kwargs]] = [
    *((IMPROVING, kwargs) for kwargs in IMPROVING_CASES.values()),
    *((EGAL, kwargs) for kwargs in EGAL_CASES.values()),
]
CASE_IDS = [
    *(f"improving-{name}" for name in IMPROVING_CASES),
    *(f"egal-{name}" for name in EGAL_CASES),
]
every_case = pytest.mark.parametrize(("env_id", "kwargs"), CASES, ids=CASE_IDS)
every_id = pytest.mark.parametrize("env_id", [IMPROVING, EGAL])


def pins_for(env_id: str, num_arms: int) -> list[Any]:
    """Return instances of ``num_arms`` arms that an episode may be pinned to."""
    if env_id == IMPROVING:
        table = [{"family": "tabulated", "values": [0.25, 0.375, 0.4375]} for _ in range(num_arms)]
        return [
            table,
            drawn_tables,
            "random_concave",
            [Root(0.5, 3.0 + arm) for arm in range(num_arms)],
        ]
    means = np.linspace(0.1, 0.9, num_arms)
    return [
        Gaussian(means, 0.5),
        drawn_laws,
        "bernoulli",
        Seasonal(means),
        Empirical([[m, 1] for m in means]),
    ]


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
    """Yield every array that an object of this package holds, however deep."""
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
    elif type(thing).__module__.split(".")[0] in ("gym_fairbandits", __name__):
        yield from arrays_of_state(vars(thing), seen)


def vandalise(value: Any) -> None:
    """Overwrite every array in ``value`` with nonsense."""
    for array in arrays_in(value):
        if array.dtype == np.bool_:
            np.logical_not(array, out=array)
        else:
            array[...] = None if array.dtype == object else 77
