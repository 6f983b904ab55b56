"""Which curves are in the model of Patil et al., and users' own curves in the environments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
import pytest
from helpers_curves import (
    CHUNK,
    OWN,
    SCALED,
    USERS,
    VALID,
    Halving,
    HeadStart,
    Wave,
    every_valid,
    random_curve,
)
from helpers_names import Floats

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import curves
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Power,
    PowerLaw,
    ScaledCurve,
    Sum,
    Tabulated,
    check_improving,
    saturating,
)
from gym_fairbandits.curves import general as general_families
from gym_fairbandits.optimum import improving_optimum
from gym_fairbandits.wrappers import PolicyRegret

SCAN_LIMIT = 100_000  # as `check_improving` documents it


def test_the_cases_cover_every_family_but_those_of_the_general_tests() -> None:
    general = set(general_families.__all__) | set(saturating.__all__) | {"Sum", "Scaled"}
    exported = {getattr(curves, name) for name in set(curves.__all__) - general - {"Polynomial"}}
    families = {item for item in exported if isinstance(item, type) and hasattr(item, "family")}
    assert {type(curve) for curve in OWN} == families | {Tabulated}
    assert len(families) == 7


# --- The model of Patil et al. --------------------------------------------------------------------


@every_valid
@pytest.mark.parametrize("horizon", [1, 2, 3, 5000])
def test_valid_curves_of_every_family_are_accepted(curve: Curve, horizon: int) -> None:
    check_improving(curve, horizon)
    # Closed-form families are judged by their parameters; their values must agree with that.
    check_improving(Tabulated(tuple(curve(np.arange(1, horizon + 1)).tolist())), horizon)


@pytest.mark.parametrize("family", SCALED)
def test_values_of_closed_form_families_are_in_the_model_at_extreme_parameters(
    family: type[Curve],
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        curve = random_curve(family, rng)
        check_improving(Tabulated(tuple(curve(np.arange(1, 400)).tolist())), 400)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.9, 1.1], "arm 4 leaves [0, 1]: f(3) = 1.1"),
        ([-0.25, 0.1], "arm 4 leaves [0, 1]: f(1) = -0.25"),
        ([0.5, 0.75, 0.7], "arm 4 decreases: f(2) = 0.75 but f(3) = 0.7"),
        ([0.5, 0.25], "arm 4 decreases: f(1) = 0.5 but f(2) = 0.25"),
        ([0.25, 0.625], "arm 4 breaks f(2) <= 2 f(1): f(1) = 0.25 but f(2) = 0.625"),
        ([0.0, 0.5], "arm 4 breaks f(2) <= 2 f(1): f(1) = 0.0 but f(2) = 0.5"),
        (
            [0.25, 0.375, 0.75],
            "arm 4 is convex, it rises faster than before: f(1) = 0.25, f(2) = 0.375, f(3) = 0.75",
        ),
        (
            [0.25, 0.5, 0.5, 0.5, 0.625],
            "arm 4 is convex, it rises faster than before: f(3) = 0.5, f(4) = 0.5, f(5) = 0.625",
        ),
    ],
)
def test_tables_outside_the_model_are_refused_with_arm_pull_and_values(
    values: list[float], message: str
) -> None:
    curve = Tabulated(tuple(values))
    with pytest.raises(ValueError, match=re.escape(message) + ".*; pass `validate=False`"):
        check_improving(curve, 10, arm=4)
    assert curve.values == tuple(values)


BROKEN_BY: dict[str, Callable[[float], list[float]]] = {
    "leaves [0, 1]: f(2)": lambda by: [0.9, 1 + by],
    "leaves [0, 1]: f(1)": lambda by: [-by, 0.0],
    "decreases: f(2)": lambda by: [0.4, 0.5, 0.5 - by],
    "breaks f(2) <= 2 f(1)": lambda by: [0.25, 0.5 + by],
    "is convex": lambda by: [0.25, 0.25, 0.25 + by],
}


@pytest.mark.parametrize("rule", BROKEN_BY)
def test_tables_break_a_rule_by_more_than_rounding(rule: str) -> None:
    make = BROKEN_BY[rule]
    check_improving(Tabulated(tuple(make(0.0))), 10)
    check_improving(Tabulated(tuple(make(5e-10))), 10)
    with pytest.raises(ValueError, match=re.escape(rule)):
        check_improving(Tabulated(tuple(make(5e-9))), 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda level: LinearCap(level, 10),
        lambda level: Exponential(level, 0.5),
        Constant,
        lambda level: Hyperbolic(level, 1e-3),
        lambda level: PowerLaw(level, 10),
        lambda level: Logarithmic(level, 2, 10),
        lambda level: Power(level, 10, 0.5),
        lambda level: HeadStart(level, 1.0, 10.0),
    ],
)
def test_asymptotes_leave_the_unit_interval_by_more_than_rounding(
    make: Callable[[float], Curve],
) -> None:
    for level in (0.0, 1.0, 1 + 5e-10, -5e-10):
        check_improving(make(level), 1000)
    for level in (1 + 5e-9, -5e-9):
        with pytest.raises(ValueError, match=re.escape(f"asymptote {level}")):
            check_improving(make(level), 1000)


@pytest.mark.parametrize(
    ("curve", "pull", "value"),
    [
        (LinearCap(1.2, 40), 34, 1.02),  # 1.2 * 33/40 = 0.99
        (Constant(1.2), 1, 1.2),
        (Constant(-0.1), 1, -0.1),
        (LinearCap(-0.1, 40), 1, -0.0025),
        (Hyperbolic(1.2, 25), 126, 1.2 * 126 / 151),  # 1.2 n > n + 25 from n = 126
        (HeadStart(1.2, 2.0, 10.0), 9, 1.1),  # 1.2 * 10/12 = 1 at pull 8
        (HeadStart(-0.1, 5.0, 5.0), 1, -0.06),
    ],
)
def test_a_scaled_curve_beyond_the_unit_interval_is_refused_where_it_is_first_seen(
    curve: ScaledCurve, pull: int, value: float
) -> None:
    # Judged whole: also by what lies beyond the horizon.
    for horizon in (1, 10**6):
        with pytest.raises(ValueError, match=r"arm 2 leaves \[0, 1\]: f\(\d+\) = ") as caught:
            check_improving(curve, horizon, arm=2)
        message = str(caught.value)
        named = re.search(r"f\((\d+)\) = (\S+) with asymptote (\S+) ", message)
        assert named is not None
        assert int(named[1]) == pull
        assert float(named[2]) == pytest.approx(value, rel=1e-12)
        assert float(named[3]) == curve.asymptote


def test_tables_are_looked_at_up_to_the_horizon_and_no_further() -> None:
    rise = [0.1, 0.2, 0.3, 0.4]
    for values in ([*rise, 1.5], [*rise, 0.3], [*rise, 0.6]):
        check_improving(Tabulated(tuple(values)), 4)
        with pytest.raises(ValueError, match=r"f\(5\)"):
            check_improving(Tabulated(tuple(values)), 5)
    check_improving(Tabulated((0.0, 0.5)), 1)
    with pytest.raises(ValueError, match=r"breaks f\(2\)"):
        check_improving(Tabulated((0.0, 0.5)), 2)


@pytest.mark.parametrize("pull", [CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 2, SCAN_LIMIT])
def test_a_rule_broken_anywhere_up_to_the_scan_limit_is_found(pull: int) -> None:
    table = np.full(SCAN_LIMIT + 1, 0.5)
    table[pull - 1 :] = 0.25
    with pytest.raises(ValueError, match=rf"decreases: f\({pull - 1}\) = 0.5 but f\({pull}\)"):
        check_improving(Tabulated(cast(Any, table)), 10**6)
    table[pull - 1 :] = 0.75
    with pytest.raises(ValueError, match=rf"convex.* f\({pull - 1}\) = 0.5, f\({pull}\) = 0.75"):
        check_improving(Tabulated(cast(Any, table)), 10**6)
    table[pull - 1 :] = 1.25
    with pytest.raises(ValueError, match=rf"leaves \[0, 1\]: f\({pull}\) = 1.25"):
        check_improving(Tabulated(cast(Any, table)), 10**6)


def test_beyond_the_scan_limit_nothing_is_looked_at() -> None:
    table = np.full(SCAN_LIMIT + 1, 0.5)
    table[-1] = 7.0
    check_improving(Tabulated(cast(Any, table)), 10**6)


def test_a_fall_too_small_to_see_from_pull_to_pull_is_refused() -> None:
    # Each pull pays 5e-10 less than the one before: after 1000 pulls f has fallen by 5e-7.
    table = 0.5 - 5e-10 * np.arange(1000)
    with pytest.raises(ValueError, match="decreases"):
        check_improving(Tabulated(cast(Any, table)), 1000)


def test_a_bend_too_small_to_see_from_pull_to_pull_is_refused() -> None:
    # 1/2 + (n / 10^5)^2 / 2 rises by 1e-10 more with every pull, in the end by 1e-5 a pull.
    table = 0.5 + np.square(np.arange(1, SCAN_LIMIT + 1) / SCAN_LIMIT) / 2
    with pytest.raises(ValueError, match="convex"):
        check_improving(Tabulated(cast(Any, table)), SCAN_LIMIT)


def test_a_users_curve_is_judged_by_its_values() -> None:
    check_improving(Halving(1.0), 10**5)
    with pytest.raises(ValueError, match=r"arm 1 leaves \[0, 1\]: f\(3\) = 1\.05"):
        check_improving(Halving(1.2), 10, arm=1)  # 1.2 * 7/8 = 1.05
    with pytest.raises(ValueError, match=r"arm 0 decreases: f\(1571\) = .* but f\(1572\)"):
        check_improving(Wave(), 2000)  # the crest lies at 500 pi = 1570.8


def test_a_users_curve_of_nan_is_refused() -> None:
    @dataclass(frozen=True)
    class Nowhere(Curve):
        family: ClassVar[str] = "test_nowhere"

        def evaluate(self, pulls: Floats) -> Floats:
            return np.where(pulls == 3, np.nan, 0.5)

    check_improving(Nowhere(), 2)
    with pytest.raises(ValueError, match=r"arm 0 leaves \[0, 1\]: f\(3\) = nan"):
        check_improving(Nowhere(), 3)


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(TypeError, match=r"arm 3 must be a `Curve`, got \[0\.5\]"):
        check_improving(cast(Any, [0.5]), 10, arm=3)
    for horizon in (0, 2.5):
        with pytest.raises((TypeError, ValueError), match="`horizon` must be"):
            check_improving(Tabulated((0.5,)), cast(Any, horizon))


def test_nondecreasing_answers_for_the_pulls_asked() -> None:
    peak = Tabulated((0.1, 0.3, 0.2))
    assert [peak.nondecreasing(pulls) for pulls in (0, 1, 2, 3, 10)] == [True] * 3 + [False] * 2
    assert [Wave().nondecreasing(pulls) for pulls in (1570, 1573)] == [True, False]
    assert all(curve.nondecreasing(10**6) for curve in VALID)
    assert not LinearCap(-0.5, 10).nondecreasing(5)
    assert Constant(-0.5).nondecreasing(5)


# --- A user's own curves, everywhere --------------------------------------------------------------


@pytest.mark.parametrize("form", ["objects", "dicts", "callable"])
def test_users_curves_play_in_both_environments_like_any_other(form: str) -> None:
    arms: list[Curve] = [*USERS, Tabulated((0.1, 0.15)), LinearCap(1.0, 50)]

    def drawn(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        return arms

    dicts = json.loads(json.dumps([curve.to_dict() for curve in arms]))
    instance = {"objects": arms, "dicts": dicts, "callable": drawn}[form]
    settings: dict[str, Any] = {"instance": instance, "num_arms": 5, "horizon": 60}
    env: Any = PolicyRegret(gym.make("ImprovingBandit-v0", **settings))
    batch: Any = gym.make_vec("ImprovingBandit-v0", num_envs=3, **settings)
    env.reset(seed=0)
    batch.reset(seed=0)
    pulls = [0] * 5
    total = 0.0
    actions = np.random.default_rng(4).integers(5, size=60).tolist()
    for action in actions:
        _, reward, _, truncated, info = env.step(action)
        rewards = batch.step(np.array([action, 0, 1]))[1]
        pulls[action] += 1
        total += reward
        assert reward == arms[action](pulls[action])
        assert rewards[0] == reward
    assert truncated
    assert env.unwrapped.curves == tuple(arms)
    best = max(curve.cumulative(60) for curve in arms)
    assert improving_optimum(arms, 60)[0] == best
    assert info["optimal_return"] == pytest.approx(best, rel=1e-12)
    assert info["expected_return"] == pytest.approx(total, rel=1e-12)
    assert info["policy_regret"] == pytest.approx(best - total, rel=1e-9)


def test_a_users_curve_outside_the_model_needs_validate_false() -> None:
    with pytest.raises(ValueError, match=r"arm 1 leaves \[0, 1\].*pass `validate=False`"):
        gym.make("ImprovingBandit-v0", instance=[Constant(0.5), Halving(1.2)])
    env: Any = gym.make("ImprovingBandit-v0", instance=[Wave(), Halving(1.2)], validate=False)
    env.reset(seed=0)
    assert env.step(1)[1] == pytest.approx(0.6)
    assert env.step(0)[1] == Wave()(1)


def test_sums_and_multiples_of_negative_constants_do_not_fall() -> None:
    for curve in (Constant(-0.5) + Constant(-0.1), 2 * Constant(-0.3), -1 * Constant(0.6)):
        assert curve.nondecreasing(100)
        optimum, arm = improving_optimum([curve], 10)
        assert optimum == pytest.approx(-6.0, rel=1e-12)
        assert arm == 0


def test_curves_add_up_from_nothing() -> None:
    terms: list[Curve] = [Constant(0.1), LinearCap(0.5, 4.0), Constant(0.2)]
    total = sum(terms)
    assert total == Sum(tuple(terms))
    assert 0 + terms[0] is terms[0]
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + terms[0]


def test_a_rising_table_never_falls_however_long_an_episode_is() -> None:
    table = Tabulated((0.25, 0.5))
    assert table.nondecreasing(2**53)
    assert improving_optimum([table], 2**53) == (0.5 * 2**53 - 0.25, 0)
