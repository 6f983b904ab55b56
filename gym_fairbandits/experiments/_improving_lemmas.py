"""The lemmas of Patil et al. about improving arms, as checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from gym_fairbandits import agents, bounds
from gym_fairbandits.curves import (
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    PowerLaw,
    UnshiftedPowerLaw,
)
from gym_fairbandits.experiments._claims import Check, ClaimRow, Settings
from gym_fairbandits.experiments._improving_claims import ENV_ID, random_caps
from gym_fairbandits.instances import random_concave

__all__ = ["CHECKS"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

row = partial(ClaimRow, "P")


def algorithm_1_runs(
    num_arms: int, steps: int, num_runs: int, seed: int, instance: Any = random_caps
) -> tuple[Floats, Ints]:
    """Play Algorithm 1 and keep every moment.

    Returns:
        Rew_i(n) of each run for n = 0..T, float64 array of shape ``(num_runs, num_arms, T + 1)``,
        and the pulls after t = 0..T steps, int64 array of shape ``(T + 1, num_runs, num_arms)``.
    """
    agent = agents.AnytimeImproving()
    envs: Any = gym.make_vec(
        ENV_ID, num_envs=num_runs, instance=instance, num_arms=num_arms, horizon=steps
    )
    observation, _ = envs.reset(seed=seed)
    pulls = [observation["pulls"]]
    for _ in range(steps):
        observation, *_ = envs.step(agent.act(observation))
        pulls.append(observation["pulls"])
    counts = np.arange(steps + 1)
    totals = [[curve.cumulative(counts) for curve in curves] for curves in envs.unwrapped.curves]
    envs.close()
    return np.array(totals), np.array(pulls)


def lemma_6(settings: Settings) -> list[ClaimRow]:
    """The first arm with more than N pulls is the one that is best for N pulls."""
    num_arms, steps, runs = 5, settings.pick(200, 1000), settings.pick(60, 600)
    totals, pulls = algorithm_1_runs(num_arms, steps, runs, settings.seed)
    arms = np.diff(pulls, axis=0).argmax(axis=2)
    before = np.take_along_axis(pulls[:-1], arms[:, :, None], axis=2)[:, :, 0]
    moments, which = np.nonzero(before == pulls[:-1].max(axis=2))  # an arm goes ahead of all
    passed = before[moments, which]
    # Of N = 1, which the lemma as corrected leaves out, a row is to show that it fails.
    best = bounds.may_lead(totals[which, :, passed], 2)
    is_best = best[np.arange(len(which)), arms[moments, which]]
    instance = f"random caps, k = {num_arms}, T = {steps}"
    return [
        row(
            "Lemma 6",
            f"{instance}, {int((chosen & (passed > 0)).sum())} crossings",
            f"share that are best, {what}",
            float(is_best[chosen & (passed > 0)].mean()),
            "=",
            1,
            form,
        )
        for what, chosen, form in (
            ("N = 1", passed == 1, "printed"),
            ("N >= 2", passed >= 2, "corrected"),
        )
    ]


def sample_of_curves(settings: Settings) -> list[Curve]:
    """Return random curves of several families, and a straight line."""
    rng, count = settings.rng(), settings.pick(100, 1000)
    line: list[Curve] = [LinearCap(1.0, 1e9)]
    return [*random_concave(rng, count), *random_caps(rng, count), *line]


def lemma_7(settings: Settings) -> list[ClaimRow]:
    """Half of the pulls of an arm earn at least a fifth of what all earn."""
    curves = sample_of_curves(settings)
    steps = settings.pick(100, 1000)
    pulls = np.arange(1, steps + 1)
    totals = np.array([curve.cumulative(pulls) for curve in curves])
    even = pulls[1::2]
    halves = totals[:, even // 2 - 1] / totals[:, even - 1]
    shares = totals / totals[:, -1:]
    least = np.array([bounds.early_share(count, steps) for count in pulls.tolist()])
    jump = UnshiftedPowerLaw(1.0, 1.0)
    many = f"{len(curves)} curves"
    quantity = "least Rew(T/2) / Rew(T)"
    share = jump.cumulative(1) / jump.cumulative(2)
    return [
        row("Lemma 7", f"{many}, T = 2..{steps}", quantity, float(halves.min()), ">=", 0.2),
        row("Lemma 7, f(2) > 2 f(1)", "1 - 1/n, T = 2", quantity, share, ">=", 0.2),
        row(
            "Lemma 7, exact",
            f"{many}, N = 1..T, T = {steps}",
            "least Rew(N)/Rew(T) / (N(N+1)/(T(T+1)))",
            float((shares / least).min()),
            "=",
            1,
            "added",
        ),
        _corollary_8(curves, steps),
    ]


def _corollary_8(curves: Sequence[Curve], steps: int) -> ClaimRow:
    """Return that a T / k pulls of an arm earn at least 16 a^2 / (25 k^2) of what T earn."""
    cases = []
    for num_arms in (1, 2, 5, 10):
        for quarters in (1, 2, 3, 4):
            part = Fraction(quarters * steps, 4 * num_arms)
            if part.denominator > 1:
                continue
            share = min(curve.cumulative(int(part)) / curve.cumulative(steps) for curve in curves)
            alpha = quarters / 4
            cases.append((share * num_arms**2 / alpha**2, f"a = {alpha:g}, k = {num_arms}"))
    least, label = min(cases)
    instance = f"{len(curves)} curves, T = {steps}, {label}"
    return row("Corollary 8", instance, "share k^2 / a^2", least, ">=", 16 / 25)


def lemma_9(settings: Settings) -> list[ClaimRow]:
    """OPT(T) is at most 200 T^2 / N_i^2 times what arm i has earned."""
    num_arms, steps, runs = 5, settings.pick(200, 1000), settings.pick(60, 600)
    totals, pulls = algorithm_1_runs(num_arms, steps, runs, settings.seed)
    constant = bounds.algorithm1_arm_factor(steps, steps)
    trap = algorithm_1_runs(num_arms, 2 * num_arms, 1, 0, "round_robin_trap")
    quantity = "OPT N_i^2 / (T^2 Rew_i)"
    chosen = _arm_factors(totals, pulls, pulls >= 3)
    forced = _arm_factors(*trap, trap[1] == 2)
    return [
        row(
            "Lemma 9",
            f"one linear arm among zeros, k = {num_arms}, T = {2 * num_arms}",
            f"{quantity}, N_i = 2",
            forced,
            "<=",
            constant,
        ),
        row(
            "Lemma 9",
            f"random caps, k = {num_arms}, T = 1..{steps}",
            f"{quantity}, N_i >= 3",
            chosen,
            "<=",
            constant,
            "corrected",
        ),
    ]


def _arm_factors(totals: Floats, pulls: Ints, chosen: Bools) -> float:
    """Return the largest ``OPT(t) N_i^2 / (t^2 Rew_i(N_i))`` of the moments and arms chosen."""
    moments, runs, arms = np.nonzero(chosen)
    optimum = totals.max(axis=1)[runs, moments]
    counts = pulls[moments, runs, arms]
    earned = totals[runs, arms, counts]
    with np.errstate(divide="ignore"):
        return float((optimum * (counts / moments) ** 2 / earned).max())


def lemma_11(settings: Settings) -> list[ClaimRow]:
    """Rew(T) lies between the integrals of f over [0, T] and over [0, T + 1]."""
    curves = [LinearCap(0.9, 30.5), Exponential(0.7, 0.05), Hyperbolic(1, 12), PowerLaw(0.8, 0.6)]
    below, above = [], []
    for curve in curves:
        reward = _of_reals(curve)
        for steps in settings.pick((1, 7, 50), (1, 7, 50, 500)):
            label = f"{curve}, T = {steps}"
            low, high = bounds.integral_bounds(reward, steps)
            total = curve.cumulative(steps)
            below.append((total / low, label))
            above.append((total / high, label))
    (least, flat), (most, steep) = min(below), max(above)
    return [
        row("Lemma 11", flat, "Rew(T) / lower integral", least, ">=", 1),
        row("Lemma 11", steep, "Rew(T) / upper integral", most, "<=", 1),
    ]


def _of_reals(curve: Curve) -> Callable[[float], float]:
    return lambda n: float(curve.evaluate(np.array([n]))[0])


CHECKS: dict[str, Check] = {
    "improving-lemma-6": lemma_6,
    "improving-lemma-7": lemma_7,
    "improving-lemma-9": lemma_9,
    "improving-lemma-11": lemma_11,
}
