"""Exact optima of any rested arms, judged by all allocations, vectors and published runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import Floats

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits._grid import CurveGrid
from gym_fairbandits.agents import OracleArm, OracleSchedule
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Gompertz,
    LinearCap,
    Logistic,
    NoveltyDecay,
    SinglePeaked,
    Tabulated,
    Weibull,
)
from gym_fairbandits.optimum import improving_optimum, rested_optima, rested_optimum
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

VECTORS = json.loads((Path(__file__).parent / "data" / "rested_optimum.json").read_text())


def allocations(num_arms: int, steps: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide ``steps`` pulls among the arms."""
    for bars in combinations(range(steps + num_arms - 1), num_arms - 1):
        edges = [-1, *bars, steps + num_arms - 1]
        yield tuple(right - left - 1 for left, right in pairwise(edges))


def worth(tables: Sequence[Sequence[Fraction]], pulls: Sequence[int]) -> Fraction:
    """The total of an allocation; a table goes on with its last value."""
    total = Fraction(0)
    for table, count in zip(tables, pulls, strict=True):
        total += sum(table[:count], Fraction(0)) + table[-1] * max(0, count - len(table))
    return total


def assert_best(tables: Sequence[Sequence[Fraction]], steps: int) -> None:
    """Assert that the optimum is that of all allocations, and that its pulls reach it."""
    curves = [Tabulated(tuple(map(float, table))) for table in tables]
    value, pulls = rested_optimum(curves, steps)
    best = max(worth(tables, choice) for choice in allocations(len(tables), steps))
    assert Fraction(value) == best
    assert pulls.dtype == np.int64
    assert pulls.shape == (len(tables),)
    assert (pulls >= 0).all()
    assert pulls.sum() == steps
    assert worth(tables, pulls.tolist()) == best


# 16ths, so that floats hold all sums exactly; from -1 to 1, with many ties.
SHAPES: dict[str, Callable[[Any], Any]] = {
    "any": lambda numbers: numbers,
    "rising": np.sort,
    "falling": lambda numbers: np.sort(numbers)[::-1],
    "peaked": lambda numbers: np.concatenate([np.sort(numbers[:4]), np.sort(numbers[4:])[::-1]]),
    "flat": lambda numbers: np.full_like(numbers, numbers[0]),
}


@pytest.mark.parametrize("shapes", [["any"], ["falling"], ["rising", "falling"], list(SHAPES)])
@pytest.mark.parametrize("num_arms", [1, 2, 3, 4])
def test_the_optimum_is_the_best_of_all_allocations(shapes: list[str], num_arms: int) -> None:
    rng = np.random.default_rng(num_arms)
    for turn in range(60):
        spread = 17 if turn % 2 else 3  # few values: many ties
        tables = []
        for _ in range(num_arms):
            shape = SHAPES[shapes[rng.integers(len(shapes))]]
            numbers = shape(rng.integers(-spread + 1, spread, size=9))
            tables.append([Fraction(int(number), 16) for number in numbers])
        assert_best(tables, int(rng.integers(0, 9)))


def test_several_arms_of_each_kind_with_few_steps() -> None:
    rng = np.random.default_rng(9)
    kinds = ["any", "any", "peaked", "falling", "falling", "rising", "rising"]
    for _ in range(15):
        tables = [
            [Fraction(int(x), 16) for x in SHAPES[kind](rng.integers(-8, 17, size=9))]
            for kind in kinds
        ]
        for steps in (0, 1, 2, 5):
            assert_best(tables, steps)


@pytest.mark.parametrize("case", VECTORS["offline_cases"], ids=lambda case: str(case["name"]))
def test_optima_and_allocations_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    tables = [[Fraction(value) for value in table] for table in case["f"]]
    curves = [Tabulated(tuple(map(float, table))) for table in tables]
    value, pulls = rested_optimum(curves, case["T"])
    assert value == pytest.approx(float(Fraction(case["opt"])), rel=1e-14)
    assert pulls.tolist() == case["allocation"]
    alone = max(worth([table], [case["T"]]) for table in tables)
    assert alone == Fraction(case["best_single"])
    env: Any = gym.make(
        "ImprovingBandit-v0", instance=curves, validate=False, horizon=case["T"]
    ).unwrapped
    env.reset(seed=0)
    single = env.optimal_arm()
    assert worth([tables[single]], [case["T"]]) == alone
    assert env.optimal_pulls().tolist() == case["allocation"]


@pytest.mark.parametrize("case", VECTORS["single_peaked"], ids=lambda case: f"T={case['T']}")
def test_optima_of_the_single_peaked_experiments_of_lindner_et_al(case: dict[str, Any]) -> None:
    value, pulls = rested_optimum([SinglePeaked(*arm) for arm in case["arms"]], case["T"])
    assert value == pytest.approx(case["opt"], rel=1e-12)
    assert pulls.tolist() == case["allocation"]


def test_no_steps_pay_nothing() -> None:
    for curves in ([Constant(-1.0)], [Tabulated((1.0, 0.0, 1.0)), Tabulated((0.5, 0.0))]):
        value, pulls = rested_optimum(curves, 0)
        assert value == 0.0
        assert pulls.tolist() == [0] * len(curves)


def test_five_general_arms_and_two_thousand_steps() -> None:
    arms = [
        SinglePeaked(0.01, 0.001, 1.0, 0.05, 600.0, -0.0015),
        SinglePeaked(0.003, 0.001, 1.0, 0.05, 600.0, -0.0015),
        NoveltyDecay(0.2, 0.01, 0.99, 0.01),
        Logistic(0.9, 0.01, 900.0),
        Tabulated(tuple((0.6 + 0.3 * np.cos(np.arange(2000) / 50)).tolist())),
    ]
    value, pulls = rested_optimum(arms, 2000)
    assert pulls.sum() == 2000
    totals = [curve.cumulative(n) for curve, n in zip(arms, pulls.tolist(), strict=True)]
    assert value == pytest.approx(sum(totals), rel=1e-12)
    # No exchange of pulls between two arms is better: for pairs, all of them are tried.
    sums = [curve.cumulative(np.arange(2001)) for curve in arms]
    for first, second in combinations(range(5), 2):
        both = int(pulls[first] + pulls[second])
        pair = sums[first][: both + 1] + sums[second][both::-1]
        assert pair.max() <= totals[first] + totals[second] + 1e-9
    assert value > max(total[-1] for total in sums) + 1


def test_improving_arms_need_one_arm_in_constant_time() -> None:
    arms = [LinearCap(1.0, 40), Weibull(0.9, 20.0, 0.7), Gompertz(0.8, 0.5, 0.1)]
    for steps in (1, 50, 5000):
        value, arm = improving_optimum(arms, steps)
        assert rested_optimum(arms, steps)[0] == value
        assert rested_optimum(arms, steps)[1].tolist() == [steps * (i == arm) for i in range(3)]
    # Far more steps than any table could hold.
    value, pulls = rested_optimum([LinearCap(1.0, 40), Constant(0.5)], 10**12)
    assert value == pytest.approx(10**12 - 19.5, rel=1e-15)
    assert pulls.tolist() == [10**12, 0]


@dataclass(frozen=True)
class Sliding(Curve):
    """A user's curve: falls from 1 by ``by`` at each pull."""

    by: float
    family: ClassVar[str] = "test_sliding"

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        return -np.inf

    def evaluate(self, pulls: Floats) -> Floats:
        return 1 - self.by * (pulls - 1)


class Unhashable(Sliding):
    """The same, by a class whose objects cannot be remembered."""

    family: ClassVar[str] = "test_unhashable"
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Sliding, Unhashable])
def test_falling_arms_are_levelled(kind: type[Sliding]) -> None:
    # 1 - n/1000 against 1 - n/500: twice as many pulls of the first reach the same reward.
    value, pulls = rested_optimum([kind(0.001), kind(0.002)], 300_000)
    assert pulls.tolist() == [200_000, 100_000]
    exact = 300_000 - Fraction(1, 1000) * (200_000 * 199_999 // 2 + 100_000 * 99_999)
    assert value == pytest.approx(float(exact), rel=1e-11)


def test_the_answer_is_the_users_own() -> None:
    arms = [Tabulated((1.0, 0.5, 0.75, 0.0)), Tabulated((0.75, 0.25, 0.5, 0.0))]
    first = rested_optimum(arms, 3)[1]
    first[:] = -1
    assert rested_optimum(arms, 3)[1].tolist() == [3, 0]


def test_what_takes_too_long_is_refused() -> None:
    waves = [Tabulated(tuple(np.sin(np.arange(5) + phase).tolist())) for phase in range(9)]
    with pytest.raises(ValueError, match=r"`steps` must be at most 1864135 for 9 arms some of"):
        rested_optimum(waves, 1_864_136)
    message = r"`steps` must be smaller for 9 arms that rise and fall: .* got 30000"
    with pytest.raises(ValueError, match=message):
        rested_optimum(waves, 30_000)


@pytest.mark.parametrize(
    ("curves", "steps", "error", "message"),
    [
        ([], 3, ValueError, "`curves` must hold at least one curve, got none"),
        ([Constant(0.5)], -1, ValueError, "`steps` must be at least 0, got -1"),
        ([Constant(0.5)], 2.0, TypeError, "`steps` must be an integer, got 2.0"),
    ],
)
def test_wrong_arguments_are_refused(curves: Any, steps: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        rested_optimum(curves, steps)


def test_rows_of_a_batch_have_the_optima_of_their_instances() -> None:
    rng = np.random.default_rng(2)
    rows: list[list[Curve]] = []
    for row in range(24):
        tables = [rng.random(12) for _ in range(3)]
        if row % 2:
            tables = [np.sort(table) for table in tables]
        rows.append([Tabulated(tuple(table.tolist())) for table in tables])
    grid = CurveGrid(24, 3)
    for row, curves in enumerate(rows):
        grid.set_rows(np.array([row]), curves)
    steps = rng.integers(0, 40, size=24)
    values, pulls = rested_optima(grid, steps)
    for row, (curves, length) in enumerate(zip(rows, steps.tolist(), strict=True)):
        value, alone = rested_optimum(curves, length)
        assert values[row] == value
        assert pulls[row].tolist() == alone.tolist()


# --- In the environment ---------------------------------------------------------------------------

PEAKED: list[Curve] = [
    Tabulated((0.1, 0.3, 0.6, 0.8, 0.6, 0.3, 0.1, 0.0)),
    Tabulated((0.05, 0.15, 0.7, 0.2, 0.0)),
    Tabulated((0.5, 0.4, 0.1)),
]


def test_any_policy_has_a_regret_of_at_least_zero_and_the_schedule_none() -> None:
    rng = np.random.default_rng(0)
    env: Any = PolicyRegret(
        gym.make("ImprovingBandit-v0", instance=PEAKED, validate=False, horizon=9)
    )
    regrets = []
    for _ in range(40):
        env.reset(seed=0)
        for _ in range(9):
            info = env.step(int(rng.integers(3)))[-1]
        assert info["optimal_return"] == rested_optimum(PEAKED, 9)[0]
        regrets.append(info["policy_regret"])
    assert min(regrets) >= -1e-12
    assert max(regrets) > 0.5
    for oracle, exact in ((OracleSchedule(env), True), (OracleArm(env), False)):
        observation, _ = env.reset(seed=1)
        for _ in range(9):
            observation, _, _, _, info = env.step(oracle.act(observation))
        assert (info["policy_regret"] == 0.0) is exact
        assert info["policy_regret"] >= 0.0
    assert info["expected_return"] == max(curve.cumulative(9) for curve in PEAKED)


def drawn_tables(rng: np.random.Generator, num_arms: int) -> list[Curve]:
    """General arms, other ones in every episode."""
    return [Tabulated(tuple(rng.normal(size=6).tolist())) for _ in range(num_arms)]


@pytest.mark.parametrize("autoreset", ["NextStep", "SameStep"])
def test_the_schedule_has_no_regret_in_any_row_and_episode(autoreset: str) -> None:
    envs: Any = VectorPolicyRegret(
        gym.make_vec(
            "ImprovingBandit-v0",
            num_envs=5,
            instance=drawn_tables,
            num_arms=4,
            validate=False,
            horizon=7,
            autoreset_mode=autoreset,
        )
    )
    oracle = OracleSchedule(envs)
    observations, _ = envs.reset(seed=3)
    ended = 0
    for _ in range(40):
        observations, _, _, truncations, infos = envs.step(oracle.act(observations))
        if truncations.any():
            ended += int(truncations.sum())
            assert infos["policy_regret"].tolist() == [0.0] * 5
            assert np.isnan(infos["competitive_ratio"]).tolist() == (
                (infos["optimal_return"] < 0).tolist()
            )
    assert ended >= 20


def test_rows_have_the_optima_of_scalar_environments() -> None:
    settings: dict[str, Any] = {
        "instance": drawn_tables,
        "num_arms": 4,
        "validate": False,
        "horizon": 9,
    }
    envs: Any = gym.make_vec("ImprovingBandit-v0", num_envs=4, **settings)
    envs.reset(seed=5)
    for row in range(4):
        env: Any = gym.make("ImprovingBandit-v0", **settings).unwrapped
        env.reset(seed=5 + row)
        assert envs.unwrapped.optimal_return(9)[row] == env.optimal_return(9)
        assert envs.unwrapped.exact_optimal_return(9)[row] == env.exact_optimal_return(9)
        assert envs.unwrapped.optimal_pulls()[row].tolist() == env.optimal_pulls().tolist()
        assert env.optimal_return(9) == rested_optimum(env.curves, 9)[0]


def test_the_schedule_is_for_the_steps_it_was_asked_for() -> None:
    env: Any = gym.make("ImprovingBandit-v0", instance=PEAKED, validate=False, horizon=9)
    oracle = OracleSchedule(env, steps=2)
    observation, _ = env.reset(seed=0)
    actions = []
    for _ in range(4):
        actions.append(int(oracle.act(observation)))
        observation = env.step(actions[-1])[0]
    assert actions == [2, 2, 2, 2]  # 0.5 and 0.4; then the arm of the most pulls
    with pytest.raises(TypeError, match="`env` must be an environment that has `noise_std`"):
        OracleSchedule(gym.make("EgalAssign-v0"))
    with pytest.raises(ValueError, match="`steps` must be at least 0, got -1"):
        OracleSchedule(env, steps=-1)
    with pytest.raises(TypeError, match="`steps` must be an integer"):
        OracleSchedule(env, steps=cast(Any, 2.5))
