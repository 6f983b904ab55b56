"""Every claim of both papers as a check: which hold, which fail as printed, and by how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import Observation, episode
from helpers_names import IMPROVING

from gym_fairbandits import bounds
from gym_fairbandits.agents import (
    AnytimeImproving,
    EgalUCB,
    FixedArm,
    HorizonAwareImproving,
    OracleRotation,
    RoundRobin,
)
from gym_fairbandits.curves import LinearCap
from gym_fairbandits.experiments.theorems import (
    CHECKS,
    ClaimRow,
    late_bloomer_against,
    lower_bound_pair_against,
    run,
    table,
)
from gym_fairbandits.instances import egal_lower_bound, improving_lower_bound
from gym_fairbandits.wrappers import PolicyRegret

HOLDS, FAILS, CORRECTED = "holds", "fails as printed", "holds as corrected"

# Check -> its rows: the paper, the claim, the verdict.
VERDICTS: dict[str, list[tuple[str, str, str]]] = {
    "improving-figure-1": [("P", "Figure 1", HOLDS)],
    "improving-theorem-2": [
        ("P", "Theorem 2 (a)", HOLDS),
        ("P", "Theorem 2 (b)", HOLDS),
        ("P", "Theorem 2 (b)", HOLDS),
        ("P", "Theorem 2 (a), k = 2", CORRECTED),
        ("P", "Theorem 2 (a), k = 2", CORRECTED),
        ("P", "Theorem 2 (b), random policies", FAILS),
        ("P", "Theorem 2, I_m of the appendix", FAILS),
        ("P", "Theorem 2, I_m of the appendix", CORRECTED),
    ],
    "improving-theorem-3": [
        ("P", "Theorem 3, lower bound", HOLDS),
        ("P", "Theorem 3, upper bound", FAILS),
        ("P", "Theorem 3, upper bound", CORRECTED),
        ("P", "Theorem 3, exact", HOLDS),
        ("P", "Theorem 3, exact", HOLDS),
    ],
    "improving-theorem-4": [
        ("P", "Theorem 4, 32 k as stated", CORRECTED),
        ("P", "Theorem 4, 200 k as proved", CORRECTED),
        ("P", "Theorem 4, 800 k as repaired", CORRECTED),
        ("P", "Theorem 4, 200 k as proved", FAILS),
        ("P", "Theorem 4, 32 k as stated", FAILS),
        ("P", "Theorem 4, T = 2k", HOLDS),
        ("P", "Theorem 4, 200 k as proved", FAILS),
        ("P", "Theorem 4, T = 2k", HOLDS),
    ],
    "improving-theorem-5": [
        ("P", "Theorem 5", HOLDS),
        ("P", "Theorem 5, with a number of steps", HOLDS),
    ],
    "improving-example-a2": [
        ("P", "Example A.2", FAILS),
        ("P", "Example A.2", CORRECTED),
        ("P", "Example A.2", CORRECTED),
    ],
    "improving-lemma-6": [("P", "Lemma 6", FAILS), ("P", "Lemma 6", CORRECTED)],
    "improving-lemma-7": [
        ("P", "Lemma 7", HOLDS),
        ("P", "Lemma 7, f(2) > 2 f(1)", FAILS),
        ("P", "Lemma 7, exact", HOLDS),
        ("P", "Corollary 8", HOLDS),
    ],
    "improving-lemma-9": [("P", "Lemma 9", FAILS), ("P", "Lemma 9", CORRECTED)],
    "improving-lemma-11": [("P", "Lemma 11", HOLDS), ("P", "Lemma 11", HOLDS)],
    "egal-number-of-blocks": [
        ("L", "Algorithm 1, its loop", FAILS),
        ("L", "Algorithm 1, its loop", CORRECTED),
    ],
    "egal-frozen-arms": [
        ("L", "Theorem 1 for Algorithm 1", FAILS),
        ("L", "Theorem 1 for Algorithm 1", FAILS),
        ("L", "Theorem 1 for Algorithm 2", CORRECTED),
        ("L", "Theorem 1 for Algorithm 2", CORRECTED),
    ],
    "egal-lemma-1": [("L", "Lemma 1", HOLDS)],
    "egal-theorem-1": [
        ("L", "Theorem 1", HOLDS),
        ("L", "Theorem 1, U = 1", CORRECTED),
        ("L", "Theorem 1, U = K", HOLDS),
        ("L", "Theorem 1, constant 4 in its proof, U = 1", FAILS),
        ("L", "Theorem 1, constant 4 in its proof, U = 1", CORRECTED),
    ],
    "egal-theorem-2": [("L", "Theorem 2", HOLDS)],
    "egal-theorem-3": [("L", "Theorem 3", HOLDS)],
    "egal-capacity": [
        ("L", "Section 8", HOLDS),
        ("L", "Section 8, benchmark", FAILS),
        ("L", "Section 8, benchmark", CORRECTED),
    ],
    "egal-phases": [
        ("L", "Section 8, phased elimination", FAILS),
        ("L", "Section 8, phased elimination", HOLDS),
        ("L", "Section 8, phased elimination", CORRECTED),
    ],
    "egal-realized-minimum": [
        ("L", "Regret, min E and E min", HOLDS),
        ("L", "Regret, min E and E min", HOLDS),
    ],
}
LONG = {"egal-frozen-arms"}


@lru_cache
def rows(name: str) -> list[ClaimRow]:
    """Return the rows of a check, played once."""
    return run(checks=[name])


def values(name: str) -> list[float]:
    return [row.measured for row in rows(name)]


# --- Each row -----------------------------------------------------------------------------------


def test_every_check_is_known_here() -> None:
    assert list(VERDICTS) == list(CHECKS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in VERDICTS],
)
def test_verdicts(name: str) -> None:
    assert [(row.paper, row.claim, row.verdict) for row in rows(name)] == VERDICTS[name]


def test_theorem_2_in_numbers() -> None:
    regret, share, least, of_two, schedules, random, falls, rises = values("improving-theorem-2")
    assert regret == pytest.approx(2.4 * 6 / 13, rel=1e-12)  # of 13 steps, (13 + 1)/2 - 4.6
    assert share == pytest.approx(bounds.deterministic_ratio(7, 70) / 7, rel=1e-12)
    assert least == pytest.approx(1, rel=1e-12)  # the fixed arm attains the bound
    assert of_two == pytest.approx(1, rel=1e-12)
    assert schedules == pytest.approx(40 / 8 + 1 / 4, rel=1e-12)
    # The place of the late bloomer is uniform: about 1 / E[(1 - place)^2] = 3.
    assert random == pytest.approx(3.3, rel=0.15)
    assert falls == pytest.approx(1 / 3 - 5 / 13, rel=1e-12)
    assert rises == 0


def test_theorem_3_in_numbers() -> None:
    least, nothing, most, exact, _ = values("improving-theorem-3")
    assert least == pytest.approx(10 * 11 / 2 / 100, rel=1e-12)  # k = T = 10
    assert nothing == math.inf
    assert most == pytest.approx(10 * 19 / 100, rel=1e-12)  # k (2k - 1) at k = 10
    assert exact == pytest.approx(1, rel=1e-12)


def test_theorem_4_in_numbers() -> None:
    # In every search so far the ratio is at most k, which two arms attain.
    expected = [1, 1, 1, math.inf, 97 / 3, 48 * 97 / 3, 601 / 3, 300 * 601 / 3]
    assert values("improving-theorem-4") == pytest.approx(expected, rel=1e-9)


def test_example_a2_in_numbers() -> None:
    assert values("improving-example-a2") == pytest.approx([100, 895.5, 0], rel=1e-12)


def test_lemmas_in_numbers() -> None:
    half, jump, exact, corollary = values("improving-lemma-7")
    assert half == pytest.approx(50 * 51 / (100 * 101), rel=1e-9)  # a straight line, T = 100
    assert jump == 0
    assert exact == pytest.approx(1, rel=1e-9)
    assert corollary == pytest.approx(1, rel=1e-9)
    forced, chosen = values("improving-lemma-6")
    assert forced < 0.5
    assert chosen == 1
    forced, chosen = values("improving-lemma-9")
    assert forced == math.inf
    assert 1 <= chosen < 2


def test_algorithm_1_of_the_second_paper_runs_a_block_too_many() -> None:
    assert values("egal-number-of-blocks") == [15, 12]


@pytest.mark.slow
def test_frozen_arms_cost_more_than_theorem_1_allows() -> None:
    printed, printed_growth, fixed, _ = rows("egal-frozen-arms")
    bound = 2136 * math.log(2**16) + (1 + math.pi**2 / 3) * 2
    assert printed.bound == pytest.approx(bound, rel=1e-12)
    # Of 100 runs about half lose 1 in every step.
    assert printed.measured / 2**16 == pytest.approx(0.5, abs=0.15)
    assert printed_growth.measured == pytest.approx(4, rel=0.01)
    assert fixed.measured < 2**12 / 50


def test_the_constant_of_theorem_1_in_numbers() -> None:
    *_, full, as_printed, capped = values("egal-theorem-1")
    assert full == pytest.approx(0, abs=1e-9)
    assert as_printed == pytest.approx(1 + math.pi**2 / 3, rel=1e-12)
    # K = 2: failures 1, 1 and 4 / b^2 for b >= 3.
    assert capped == pytest.approx(1 + (2 + 4 * (math.pi**2 / 6 - 1.25)) / 2, rel=1e-9)


def test_shared_arms_in_numbers() -> None:
    _, printed, right = values("egal-capacity")
    # The best two of twelve means; the benchmark as printed is a third of what the oracle earns.
    means = np.linspace(0.9, 0.1, 12)[:2].sum()
    assert printed == pytest.approx((1 - 3) * means / 6, rel=1e-12)
    assert right == pytest.approx(0, abs=1e-12)
    growth, share, _ = values("egal-phases")
    assert growth == pytest.approx(4, rel=0.01)
    assert share == pytest.approx(1 / 8, rel=0.01)


# --- run, table, ClaimRow -----------------------------------------------------------------------


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    name = "improving-lemma-9"
    assert run(checks=[name], seed=0) == rows(name)
    assert [row.measured for row in run(checks=[name], seed=1000)] != values(name)


def test_the_paper_preset_plays_longer_to_the_same_verdicts() -> None:
    for name in ("improving-lemma-9", "improving-lemma-11", "egal-number-of-blocks"):
        longer = run("paper", checks=[name])
        assert [(row.paper, row.claim, row.verdict) for row in longer] == VERDICTS[name]


def test_the_table_has_a_line_per_row() -> None:
    lines = table(rows("egal-number-of-blocks")).splitlines()
    assert lines == [
        "| claim | instance | quantity | measured | bound | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
        "| L, Algorithm 1, its loop | T = 12, U = 3 | steps of a run | 15 | = 12 | "
        "fails as printed |",
        "| L, Algorithm 1, its loop | T = 12, U = 3 | steps of a run | 12 | = 12 | "
        "holds as corrected |",
    ]


@pytest.mark.parametrize(
    ("measured", "relation", "bound", "holds"),
    [
        (1.0, "<=", 1.0, True),
        (1 + 1e-12, "<=", 1.0, True),
        (1.1, "<=", 1.0, False),
        (0.9, "<=", 1.0, True),
        (0.9, ">=", 1.0, False),
        (1.1, ">=", 1.0, True),
        (1.1, "=", 1.0, False),
        (0.9, "=", 1.0, False),
        (1e-12, "=", 0.0, True),
        (math.inf, "<=", 5.0, False),
        (math.nan, "<=", 1.0, False),
        (math.nan, ">=", 1.0, False),
        (math.nan, "=", math.nan, False),
    ],
)
def test_what_holds(measured: float, relation: str, bound: float, holds: bool) -> None:
    arguments = ("P", "claim", "instance", "quantity", measured, relation, bound)
    verdicts = {
        form: ClaimRow(*arguments, form).verdict for form in ("printed", "corrected", "added")
    }
    assert ClaimRow(*arguments).holds == holds
    assert verdicts == (
        {"printed": HOLDS, "corrected": CORRECTED, "added": HOLDS}
        if holds
        else {"printed": FAILS, "corrected": "fails as corrected", "added": "fails"}
    )


def test_a_tolerance_makes_near_numbers_equal() -> None:
    near = ClaimRow("L", "claim", "instance", "quantity", 1.04, "=", 1.0, tolerance=0.05)
    far = ClaimRow("L", "claim", "instance", "quantity", 1.06, "=", 1.0, tolerance=0.05)
    assert (near.holds, far.holds) == (True, False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: run("long"), ValueError, "`preset` must be one of 'quick', 'paper', got 'long'"),
        (lambda: run(seed=-1), ValueError, "`seed` must be at least 0, got -1"),
        (lambda: run(seed=0.5), TypeError, "`seed` must be an integer, got 0.5"),  # type: ignore[arg-type]
        (lambda: run(checks=["x"]), ValueError, "`checks` must be one of .* got 'x'"),
        (
            lambda: late_bloomer_against(RoundRobin(), 1, 5),
            ValueError,
            "`num_arms` must be at least 2, got 1",
        ),
        (
            lambda: late_bloomer_against(RoundRobin(), 3, 5, "x"),
            ValueError,
            "`printing` must be one of",
        ),
        (lambda: late_bloomer_against(None, 3, 5), TypeError, "`policy` must have `predict`"),
        (
            lambda: lower_bound_pair_against(EgalUCB(), 2, 3, 100),
            ValueError,
            "`num_arms` must be at least 2 \\* num_users = 4",
        ),
        (
            lambda: lower_bound_pair_against(EgalUCB(), 2, 4, 100, num_runs=0),
            ValueError,
            "`num_runs` must be at least 1, got 0",
        ),
    ],
)
def test_mistakes_are_told(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# --- Instances against a policy -----------------------------------------------------------------


def test_the_late_bloomer_is_the_arm_pulled_least() -> None:
    # Round robin pulls three arms 5, 4 and 4 times in 13 steps.
    family = {late: improving_lower_bound(3, 13, late, "appendix") for late in range(3)}
    assert late_bloomer_against(RoundRobin(), 3, 13) == family[1]
    assert late_bloomer_against(FixedArm(0), 3, 13) == family[1]
    assert late_bloomer_against(FixedArm(1), 3, 13) == family[0]
    main = late_bloomer_against(FixedArm(2), 3, 13, "main")
    assert main == improving_lower_bound(3, 13, 0, "main") != family[0]


@pytest.mark.parametrize("agent", [AnytimeImproving(), HorizonAwareImproving(), FixedArm(2)])
@pytest.mark.parametrize(("num_arms", "steps"), [(3, 13), (4, 40)])
def test_the_policy_cannot_tell_the_late_bloomer(agent: Any, num_arms: int, steps: int) -> None:
    known: dict[str, Any] = {"horizon_known": True}
    plain = improving_lower_bound(num_arms, steps, None, "appendix")
    bloom = late_bloomer_against(agent, num_arms, steps, **known)
    sequences, infos = [], []
    for curves in (plain, bloom):
        env = PolicyRegret(gym.make(IMPROVING, instance=curves, horizon=steps, **known))
        sequence, _, info = episode(env, agent, seed=0)
        sequences.append(sequence)
        infos.append(info)
    assert sequences[0] == sequences[1]
    assert infos[1]["policy_regret"] >= steps / 6
    assert bloom.count(LinearCap(1.0, steps)) == 1


def always(assignment: list[int]) -> Callable[[Observation], Any]:
    return lambda observation: np.tile(assignment, (len(observation["pulls"]), 1))


@pytest.mark.parametrize(
    ("assignment", "num_arms", "boosted"),
    [
        ([1], 4, [2]),
        ([2], 4, [1]),  # arms 1 and 3 are never played: the lower one
        ([0, 1], 6, [2, 3]),
        ([2, 4], 6, [3, 5]),
        ([3, 2], 5, [2, 4]),
    ],
)
def test_nu_prime_boosts_the_arms_played_least(
    assignment: list[int], num_arms: int, boosted: list[int]
) -> None:
    users, steps = len(assignment), 100
    nu, nu_prime = lower_bound_pair_against(always(assignment), users, num_arms, steps, num_runs=3)
    assert nu.to_dict() == egal_lower_bound(users, num_arms, steps).to_dict()
    expected = egal_lower_bound(users, num_arms, steps, boosted=boosted)
    assert nu_prime.to_dict() == expected.to_dict()


def test_the_pair_is_the_same_each_time_and_made_for_the_policy() -> None:
    def pair(agent: Any, seed: int) -> list[dict[str, Any]]:
        made = lower_bound_pair_against(agent, 2, 8, 60, num_runs=4, seed=seed)
        return [arms.to_dict() for arms in made]

    assert pair(EgalUCB(), 3) == pair(EgalUCB(), 3)
    oracle = pair(OracleRotation, 3)
    assert oracle[1] == egal_lower_bound(2, 8, 60, boosted=[2, 3]).to_dict()
