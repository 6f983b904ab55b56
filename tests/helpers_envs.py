"""Cases, and odd curves and laws, for the tests of the environments."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers_names import EGAL, IMPROVING, Kwargs
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
