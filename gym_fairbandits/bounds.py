"""The papers' bounds as functions, with their ranges enforced and their misprints put right.

P is Patil et al., whose k arms improve: Rew_i(N) is what arm i pays in N pulls, OPT(T) the best
Rew_i(T), and the competitive ratio of a policy the largest OPT(T) over its reward on any
instance. L is Lim, Tan, Soh, whose U users are assigned to K arms with means mu_1 >= mu_2 >= ...:
regret is T mu*/U minus the worst-off user's expected total, mu* the sum of the U highest means.

``gym_fairbandits.experiments.theorems`` holds each of them against instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad

from gym_fairbandits._checks import (
    checked_array,
    checked_choice,
    checked_float,
    checked_int,
    checked_row,
    groups_of_users,
)
from gym_fairbandits.curves import TOLERANCE, Curve
from gym_fairbandits.instances import lower_bound_gap

__all__ = [
    "algorithm1_arm_factor",
    "algorithm1_ratio",
    "assignment_gaps",
    "bad_event_probability",
    "capacity_regret",
    "deterministic_ratio",
    "deterministic_regret",
    "early_share",
    "egal_gap_regret",
    "egal_regret",
    "egal_worst_case_regret",
    "forced_sweep_ratio",
    "integral_bounds",
    "may_lead",
    "potential_steps",
    "round_robin_ratio",
    "round_robin_ratio_range",
]

MOST_PULLS = 10_000_000  # of an arm, on the way to its potential


# --- Patil et al. -------------------------------------------------------------------------------


def deterministic_regret(num_arms: int, steps: int) -> float:
    """Return a policy regret that every deterministic policy suffers on some instance.

    P, Theorem 2 (a): linear in T. The proof gives T/6 for k >= 3; for k = 2 it prints 1/2, and
    the exact minimum over all policies is T/8 + 1/4 (T even). The instance is picked after seeing
    the run, so this does not hold for randomised policies.

    Args:
        num_arms: k, at least 2.
        steps: T, at least 1; even for k = 2.

    Raises:
        ValueError: If a number is outside its range.
    """
    num_arms, steps = checked_int("num_arms", num_arms, 2), checked_int("steps", steps)
    if num_arms > 2:
        return steps / 6
    if steps % 2:
        raise ValueError(f"`steps` must be even for 2 arms, got {steps}")
    return steps / 8 + 0.25


def deterministic_ratio(num_arms: int, steps: int) -> float:
    """Return a competitive ratio that no deterministic policy beats.

    P, Theorem 2 (b): k/2. On the (corrected) family of the appendix the least ratio of any
    deterministic policy is exactly ``k^2 (T + 1) / ((2k - 1) T + k)``, a little above k/2.

    Args:
        num_arms: k, at least 2.
        steps: T; a multiple of k.

    Raises:
        ValueError: If a number is outside its range.
    """
    num_arms, steps = checked_int("num_arms", num_arms, 2), checked_int("steps", steps)
    if steps % num_arms:
        raise ValueError(f"`steps` must be a multiple of num_arms = {num_arms}, got {steps}")
    return num_arms**2 * (steps + 1) / ((2 * num_arms - 1) * steps + num_arms)


def round_robin_ratio(num_arms: int, steps: int) -> float:
    """Return the exact competitive ratio of round robin: ``T (T + 1) / (q (q + 1))``.

    q = floor(T / k) is what the arm that matters gets; infinite for T < k. P's Theorem 3 states
    the range of :func:`round_robin_ratio_range`.

    Args:
        num_arms: k.
        steps: T.
    """
    num_arms, steps = checked_int("num_arms", num_arms), checked_int("steps", steps)
    turns = steps // num_arms
    return steps * (steps + 1) / (turns * (turns + 1)) if turns else math.inf


def round_robin_ratio_range(num_arms: int) -> tuple[float, float]:
    """Return P's Theorem 3: between k^2/2 and 8 k^2. For T >= k the truth is below k (2k - 1)."""
    num_arms = checked_int("num_arms", num_arms)
    return num_arms**2 / 2, 8.0 * num_arms**2


def algorithm1_ratio(num_arms: int, steps: int, constant: str = "proved") -> float:
    """Return an upper bound on the competitive ratio of Algorithm 1.

    P, Theorem 4. ``"stated"`` is 32 k, a misprint of an earlier version; ``"proved"`` is the 200 k
    at the end of the proof, which takes every arm's last pull as chosen; ``"repaired"`` is the
    800 k that survives without that: arms with more than the two forced pulls hold at least half
    of T >= 4k pulls. Below 4k the theorem is false; see :func:`forced_sweep_ratio`. No instance
    with T >= 4k is known on which the ratio exceeds k.

    Args:
        num_arms: k.
        steps: T, at least 4 k.
        constant: ``"stated"``, ``"proved"`` or ``"repaired"``.

    Raises:
        ValueError: If a parameter is outside its range.
    """
    num_arms = checked_int("num_arms", num_arms)
    checked_int("steps", steps, 4 * num_arms)
    checked_choice("constant", constant, ("stated", "proved", "repaired"))
    return float({"stated": 32, "proved": 200, "repaired": 800}[constant] * num_arms)


def forced_sweep_ratio(num_arms: int) -> float:
    """Return the ratio of Algorithm 1 at T = 2k on one linear arm among zeros: k (2k + 1) / 3.

    Above 32 k from k = 48 on and above 200 k from k = 300 on: there Theorem 4 of P fails.
    """
    num_arms = checked_int("num_arms", num_arms)
    return num_arms * (2 * num_arms + 1) / 3


def may_lead(totals: ArrayLike, pulls: int) -> NDArray[np.bool_]:
    """Return which arms may be the first that Algorithm 1 pulls more than N times.

    P's Lemma 6: those of the highest Rew_i(N). It needs N >= 2: the second pull of an arm is
    forced, whatever it pays.

    Args:
        totals: Rew_i(N) of each arm; shape ``(..., num_arms)``.
        pulls: N, at least 2.

    Returns:
        Bool array of the shape of ``totals``: which are as high as the highest of their row, but
        for what Algorithm 1 takes for a tie, and rounding.

    Raises:
        TypeError: If ``totals`` does not hold real numbers.
        ValueError: If ``pulls`` is below 2, or ``totals`` is not finite or has no arm.
    """
    checked_int("pulls", pulls, 2)
    earned = checked_array("totals", totals)
    best = earned.max(axis=-1, keepdims=True)
    highest: NDArray[np.bool_] = earned >= best - 2 * TOLERANCE * np.maximum(1.0, np.abs(best))
    return highest


def algorithm1_arm_factor(pulls: int, steps: int) -> float:
    """Return P's Lemma 9: OPT(T) is at most ``200 T^2 / N_i^2`` times Rew_i(N_i).

    It holds for every arm whose latest pull Algorithm 1 chose by its estimate, so from the third
    pull on.

    Args:
        pulls: N_i, at least 3.
        steps: T, at least N_i.

    Raises:
        ValueError: If a number is outside its range.
    """
    pulls = checked_int("pulls", pulls, 3)
    return 200.0 * (checked_int("steps", steps, pulls) / pulls) ** 2


def potential_steps(curves: Sequence[Curve], gap: float) -> int:
    """Return after how many steps Algorithm 1 has brought every arm near its potential.

    P's Theorem 5 states that each gap a_i - f_i(N_i) tends to 0; this is a number of steps, ours,
    after which all are at most ``gap``. With n pulls, an arm that still rises by D is estimated at
    ``Rew(n) + m f(n) + D m (m + 1) / 2`` for n + m pulls, and a leader with as many has earned at
    most n + m times the highest potential a. So no arm gets ahead of it by more than M + 1 pulls,
    M the last m at which the estimate is the smaller, and after ``n + (k - 1) (n + M + 1)`` steps
    and one more it has been pulled again. That holds for every n until it is near enough.

    Args:
        curves: The k arms, without noise and within the model.
        gap: Above 0.

    Raises:
        TypeError: If ``gap`` is not a number.
        ValueError: If ``gap`` is not above 0, there is no curve, or an arm does not rise that far
            within 10^7 pulls.
    """
    gap = checked_float("gap", gap, above=0)
    if not curves:
        raise ValueError("`curves` must hold at least one curve, got none")
    highest, others = max(curve.asymptote for curve in curves), len(curves) - 1
    steps = 2 * len(curves)
    for arm, curve in enumerate(curves):
        enough = 2
        while not curve.asymptote - curve(enough) <= gap:
            enough *= 2
            if enough > MOST_PULLS:
                raise ValueError(
                    f"`gap` must be reached within {MOST_PULLS} pulls, got {gap} with arm {arm}"
                )
        pulls = np.arange(2, enough)
        pulls = pulls[curve.asymptote - curve(pulls) > gap]
        if not len(pulls):
            continue
        rewards, rises = curve(pulls), curve(pulls) - curve(pulls - 1)
        if not (rises > 0).all():
            raise ValueError(f"`curves` must rise up to their potentials, got {curve!r}")
        # M by the larger root of D/2 m^2 + slope m - missing.
        slope = rewards + rises / 2 - highest
        missing = np.maximum(pulls * highest - curve.cumulative(pulls), 0)
        root = (np.sqrt(slope**2 + 2 * rises * missing) - slope) / rises
        ahead = pulls + np.floor(np.maximum(root, 0)) + 1
        steps = max(steps, int((pulls + others * ahead).max()) + 1)
    return steps


def early_share(pulls: int, steps: int) -> float:
    """Return the least share of Rew(T) that an improving arm pays in its first N pulls.

    ``N (N + 1) / (T (T + 1))``, attained by a linear arm. It implies P's Lemma 7 (at least 1/5 in
    half of the pulls) and Corollary 8 (at least ``16 a^2 / (25 k^2)`` in ``a T / k`` pulls, a
    whole number).

    Args:
        pulls: N, at least 1.
        steps: T, at least N.

    Raises:
        ValueError: If a number is outside its range.
    """
    pulls = checked_int("pulls", pulls)
    steps = checked_int("steps", steps, pulls)
    return pulls * (pulls + 1) / (steps * (steps + 1))


def integral_bounds(reward: Callable[[float], float], steps: int) -> tuple[float, float]:
    """Return P's Lemma 11: Rew(T) lies between the integrals of f over [0, T] and [0, T + 1].

    Args:
        reward: f, a function of real numbers >= 0 that never decreases.
        steps: T.
    """
    steps = checked_int("steps", steps, 0)
    pieces = [quad(reward, n, n + 1)[0] for n in range(steps + 1)]
    return math.fsum(pieces[:-1]), math.fsum(pieces)


# --- Lim, Tan, Soh ------------------------------------------------------------------------------


def assignment_gaps(means: ArrayLike, num_users: int) -> tuple[float, float]:
    """Return L's (Dmin, Dmax) of an instance.

    Dmin is mu_U - mu_(U+1), or if that is 0 the least positive gap between an arm of the best set
    and one outside; Dmax is the best U means together minus the worst U. (L's table of notation
    swaps the two.) With U = K, or where all means are equal, there is no gap: Dmin is infinite.

    Args:
        means: Expected rewards; shape ``(num_arms,)``.
        num_users: U, at most the number of arms.

    Raises:
        ValueError: If ``num_users`` exceeds the number of arms.
    """
    ordered = np.sort(checked_row("means", means))[::-1]
    num_users = checked_int("num_users", num_users, 1, len(ordered))
    largest = float(ordered[:num_users].sum() - ordered[len(ordered) - num_users :].sum())
    between = ordered[:num_users, None] - ordered[None, num_users:]
    positive = between[between > 0]
    return float(positive.min(initial=np.inf)), largest


def egal_gap_regret(
    num_arms: int, num_users: int, steps: int, min_gap: float, max_gap: float
) -> float:
    """Return L's Theorem 1: an upper bound on the regret of EgalUCB on an instance.

    ``2136 (K - U) ln T / Dmin + 4 K Dmax / U``; with U = 1 the 4 must be 1 + pi^2 / 3 (printed: 4
    for all). For 1-subgaussian rewards.

    Args:
        num_arms: K.
        num_users: U, at most K; with U = K the regret is 0.
        steps: T.
        min_gap: Dmin of :func:`assignment_gaps`, above 0.
        max_gap: Dmax, at least 0.

    Raises:
        ValueError: If a number is outside its range.
    """
    num_arms, num_users, steps = _sizes(num_arms, num_users, steps)
    min_gap = _gap(min_gap)
    max_gap = checked_float("max_gap", max_gap, at_least=0)
    if num_users == num_arms:
        return 0.0
    learning = 2136 * (num_arms - num_users) * math.log(steps) / min_gap
    return learning + _failures(num_users) * num_arms * max_gap / num_users


def egal_regret(num_arms: int, num_users: int, steps: int) -> float:
    """Return L's Theorem 2: an upper bound on the regret of EgalUCB on every instance.

    ``sqrt(8544 (K - U) T ln T / U) + 4 K min(U, K - U) / U`` for 1-subgaussian rewards with means
    in [0, 1]; with U = 1 the 4 must be 1 + pi^2 / 3.

    Args:
        num_arms: K.
        num_users: U, at most K; with U = K the regret is 0.
        steps: T.

    Raises:
        ValueError: If a number is outside its range.
    """
    num_arms, num_users, steps = _sizes(num_arms, num_users, steps)
    others = num_arms - num_users
    learning = math.sqrt(8544 * others * steps * math.log(steps) / num_users)
    return learning + _failures(num_users) * num_arms * min(num_users, others) / num_users


def egal_worst_case_regret(num_arms: int, num_users: int, steps: int) -> float:
    """Return L's Theorem 3: a regret that every policy suffers on some instance.

    ``sqrt((K - U) T) / (76 U)``, on one of a pair of unit Gaussian instances.

    Args:
        num_arms: K, at least 2 U.
        num_users: U.
        steps: T, at least (K - U) / (2 U^2), so that the means of the pair stay in [0, 1].

    Raises:
        ValueError: If a number is outside its range.
    """
    num_arms, num_users, steps = _sizes(num_arms, num_users, steps)
    lower_bound_gap(num_users, num_arms, steps)  # refuses what the pair is not defined for
    return math.sqrt((num_arms - num_users) * steps) / (76 * num_users)


def bad_event_probability(num_arms: int, num_users: int, block: int) -> float:
    """Return L's Lemma 1: after block b some index of EgalUCB errs with at most this probability.

    ``2 K / (b^2 U^3)``, at most 1.

    Args:
        num_arms: K.
        num_users: U.
        block: b, from 1.

    Raises:
        ValueError: If a number is outside its range.
    """
    block = checked_int("block", block)
    num_arms, num_users, _ = _sizes(num_arms, num_users, block)
    return min(1.0, 2 * num_arms / (block**2 * num_users**3))


def capacity_regret(
    num_arms: int, num_users: int, capacity: int, steps: int, min_gap: float, max_gap: float
) -> float:
    """Return L's section 8: an upper bound on the regret of EgalUCB with capacity C.

    ``2136 (K - U/C) ln T / Dmin + 4 K C Dmax / U``: Theorem 1 with U/C groups in the place of U
    users, against the benchmark T C mu* / U, mu* the sum of the U/C highest means. (Printed
    without the 4 and with a benchmark that is C times too small.)

    Args:
        num_arms: K.
        num_users: U, a multiple of C.
        capacity: C.
        steps: T.
        min_gap: Dmin between arm U/C and the next, above 0.
        max_gap: Dmax of the sets of U/C arms, at least 0.

    Raises:
        ValueError: If a number is outside its range.
    """
    capacity = checked_int("capacity", capacity)
    groups = groups_of_users(checked_int("num_users", num_users), capacity)
    return egal_gap_regret(num_arms, groups, steps, min_gap, max_gap)


def _sizes(num_arms: int, num_users: int, steps: int) -> tuple[int, int, int]:
    num_arms = checked_int("num_arms", num_arms)
    return num_arms, checked_int("num_users", num_users, 1, num_arms), checked_int("steps", steps)


def _gap(min_gap: float) -> float:
    """Return ``min_gap``, which may be infinite."""
    return math.inf if min_gap == math.inf else checked_float("min_gap", min_gap, above=0)


def _failures(num_users: int) -> float:
    """Return the constant of the steps in which an index errs, see Theorem 1 of L."""
    return 4.0 if num_users > 1 else 1 + math.pi**2 / 3
