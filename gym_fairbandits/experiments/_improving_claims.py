"""The theorems of Patil et al. about improving arms, as checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gym_fairbandits import agents, bounds
from gym_fairbandits.curves import Constant, Curve, LinearCap, Tabulated
from gym_fairbandits.evaluation import Evaluation, Policy, evaluate
from gym_fairbandits.experiments._claims import Check, ClaimRow, Settings, named
from gym_fairbandits.experiments.against import late_bloomer_against
from gym_fairbandits.experiments.kinetic import anytime_improving
from gym_fairbandits.instances import improving_lower_bound, random_concave

__all__ = ["CHECKS", "ENV_ID", "random_caps"]

ENV_ID = "ImprovingBandit-v0"
DETERMINISTIC = (
    "anytime-improving",
    "round-robin",
    "greedy",
    "fixed-arm",
    "rising-ucb",
    "anytime-single-peaked",
    "single-peaked-optimism",
    "horizon-aware-improving",
)
CONSTANTS = {
    "stated": "Theorem 4, 32 k as stated",
    "proved": "Theorem 4, 200 k as proved",
    "repaired": "Theorem 4, 800 k as repaired",
}

row = partial(ClaimRow, "P")


def random_caps(rng: np.random.Generator, num_arms: int, longest: float = 1000) -> list[Curve]:
    """Return random linear caps, of which all curves of the model are mixtures.

    Asymptotes are uniform on [0, 1), ramps log-uniform on [1, ``longest``].
    """
    tops, ramps = rng.random(num_arms), longest ** rng.random(num_arms)
    return [LinearCap(top, ramp) for top, ramp in zip(tops.tolist(), ramps.tolist(), strict=True)]


def played(agent: Policy, instance: Any, steps: int, **kwargs: Any) -> Evaluation:
    """Return what an agent does in ``steps`` steps of ``instance``."""
    kwargs = {"num_episodes": 1, **kwargs}
    return evaluate(agent, ENV_ID, instance=instance, horizon=steps, **kwargs)


def worst_ratio(agent: Policy, instance: Any, steps: int, **kwargs: Any) -> float:
    """Return the largest ratio of the optimum to what an agent earns."""
    ratios = played(agent, instance, steps, **kwargs).episodes["competitive_ratio"]
    return float(ratios.max())


# --- Theorems -----------------------------------------------------------------------------------


def figure_1(settings: Settings) -> list[ClaimRow]:
    """The myopic policy starves the late bloomer."""
    gap = played(agents.Greedy(), "early_vs_late", 1000).episodes["max_potential_gap"][0]
    instance = "early gifted arm and late bloomer, greedy, T = 1000"
    return [row("Figure 1", instance, "gap to potential", float(gap), ">=", 0.5)]


def theorem_2(settings: Settings) -> list[ClaimRow]:
    """Every deterministic policy loses T/6 on some instance, and has a ratio of k/2."""
    sizes = settings.pick(
        [(2, 40), (3, 12), (3, 13), (5, 100), (7, 70)],
        [(2, 400), (3, 12), (3, 13), (5, 23), (5, 100), (7, 70), (10, 1000), (30, 600)],
    )
    regrets, shares, exact, of_two = [], [], [], []
    for name in DETERMINISTIC:
        agent = named(name)
        for num_arms, steps in sizes:
            label = f"late bloomer against {name}, k = {num_arms}, T = {steps}"
            for printing in ("main", "appendix"):
                curves = late_bloomer_against(agent, num_arms, steps, printing)
                episodes = played(agent, curves, steps).episodes
                regret = float(episodes["policy_regret"][0])
                ratio = float(episodes["competitive_ratio"][0])
                if num_arms == 2:
                    of_two.append((regret / bounds.deterministic_regret(2, steps), label))
                    continue
                regrets.append((regret / bounds.deterministic_regret(num_arms, steps), label))
                if steps % num_arms == 0 and printing == "appendix":
                    shares.append((ratio / num_arms, label))
                    exact.append((ratio / bounds.deterministic_ratio(num_arms, steps), label))
    (regret, hard), (share, harder), (least, hardest) = min(regrets), min(shares), min(exact)
    (two, pair) = min(of_two)
    return [
        row("Theorem 2 (a)", hard, "policy regret / (T/6)", regret, ">=", 1),
        row("Theorem 2 (b)", harder, "ratio / k", share, ">=", 0.5),
        row("Theorem 2 (b)", hardest, "ratio / the exact bound", least, ">=", 1, "added"),
        row("Theorem 2 (a), k = 2", pair, "policy regret / (T/8 + 1/4)", two, ">=", 1, "corrected"),
        _best_schedule_of_two(settings.pick(40, 400)),
        _random_order(settings),
        *_appendix_family(),
    ]


def _best_schedule_of_two(steps: int) -> ClaimRow:
    """Return that no schedule of two arms beats T/8 + 1/4 where the late one has half or less."""
    early, late = improving_lower_bound(2, steps, printing="appendix")
    pulls = np.arange(steps // 2 + 1)
    earned = late.cumulative(pulls) + early.cumulative(steps - pulls)
    return row(
        "Theorem 2 (a), k = 2",
        f"all schedules, T = {steps}",
        "least policy regret",
        float(late.cumulative(steps) - earned.max()),
        "=",
        bounds.deterministic_regret(2, steps),
        "corrected",
    )


def _random_order(settings: Settings) -> ClaimRow:
    """Return that the bound on ratios is none for policies that draw random numbers."""
    num_arms, steps = 100, settings.pick(1000, 10_000)
    evaluation = played(
        agents.RandomRoundRobin(optimum=1.0, tau=steps),
        {"name": "lower_bound", "printing": "appendix"},
        steps,
        num_arms=num_arms,
        num_episodes=settings.pick(400, 2000),
        num_envs=400,
        seed=settings.seed,
    )
    ratio = evaluation.mean("optimal_return") / evaluation.mean("expected_return")
    return row(
        "Theorem 2 (b), random policies",
        f"late bloomer, arms probed in random order, k = {num_arms}, T = {steps}",
        "OPT / mean reward",
        ratio,
        ">=",
        num_arms / 2,
    )


def _appendix_family() -> list[ClaimRow]:
    """Return that the appendix's curves fall where k does not divide T, unless put right."""
    num_arms, steps = 3, 13
    rising = [n / steps for n in range(1, -(-steps // num_arms) + 1)]
    curves = {
        "printed": Tabulated((*rising, 1 / num_arms)),
        "corrected": improving_lower_bound(num_arms, steps, None, "appendix")[0],
    }
    pulls = np.arange(1, steps + 1)
    return [
        row(
            "Theorem 2, I_m of the appendix",
            f"an arm that is no late bloomer, k = {num_arms}, T = {steps}",
            "least f(n + 1) - f(n)",
            float(np.diff(curve(pulls)).min()),
            ">=",
            0,
            form,
        )
        for form, curve in curves.items()
    ]


def theorem_3(settings: Settings) -> list[ClaimRow]:
    """The competitive ratio of round robin lies between k^2/2 and 8 k^2."""
    agent = agents.RoundRobin()
    trap, exact, others = [], [], []
    for num_arms in settings.pick((2, 3, 10), (2, 3, 5, 10, 30, 100)):
        for steps in (num_arms, 2 * num_arms - 1, 2 * num_arms, 10 * num_arms + 1, 20 * num_arms):
            label = f"k = {num_arms}, T = {steps}"
            worst = bounds.round_robin_ratio(num_arms, steps)
            ratio = worst_ratio(agent, "round_robin_trap", steps, num_arms=num_arms)
            trap.append((ratio / num_arms**2, f"one linear arm among zeros, {label}"))
            exact.append((ratio / worst, f"one linear arm among zeros, {label}"))
            ratio = worst_ratio(
                agent,
                random_caps,
                steps,
                num_arms=num_arms,
                num_episodes=settings.pick(20, 200),
                seed=settings.seed,
            )
            others.append((ratio / worst, f"random arms, {label}"))
    low, high = bounds.round_robin_ratio_range(1)
    (least, easy), (most, hard), (other, random) = min(trap), max(trap), max(others)
    off, odd = max(exact, key=lambda case: abs(case[0] - 1))
    short = 4
    nothing = worst_ratio(agent, "round_robin_trap", short, num_arms=short + 1)
    return [
        row("Theorem 3, lower bound", easy, "ratio / k^2", least, ">=", low),
        row(
            "Theorem 3, upper bound",
            f"one linear arm among zeros, k = {short + 1}, T = {short}",
            "ratio / k^2, T < k",
            nothing,
            "<=",
            high,
        ),
        row("Theorem 3, upper bound", hard, "ratio / k^2, T >= k", most, "<=", high, "corrected"),
        row("Theorem 3, exact", odd, "ratio / (T (T + 1) / (q (q + 1)))", off, "=", 1, "added"),
        row("Theorem 3, exact", random, "ratio / the exact one", other, "<=", 1, "added"),
    ]


def theorem_4(settings: Settings) -> list[ClaimRow]:
    """The competitive ratio of Algorithm 1 is at most 32 k, or 200 k."""
    agent = agents.AnytimeImproving()
    kinds: dict[str, Any] = {
        "random caps": random_caps,
        "random_concave": random_concave,
        "lower_bound (main)": {"name": "lower_bound", "printing": "main"},
        "lower_bound (appendix)": {"name": "lower_bound", "printing": "appendix"},
        "one linear arm among zeros": "round_robin_trap",
    }
    cases = []
    for num_arms in settings.pick((2, 3, 5, 10), (2, 3, 5, 10, 20, 50)):
        for steps in (4 * num_arms, 5 * num_arms + 1, 20 * num_arms):
            for kind, instance in kinds.items():
                runs = settings.pick(40, 400) if callable(instance) else 1
                ratio = worst_ratio(
                    agent,
                    instance,
                    steps,
                    num_arms=num_arms,
                    num_episodes=runs,
                    seed=settings.seed,
                )
                cases.append((ratio / num_arms, f"{kind}, k = {num_arms}, T = {steps}"))
    cases.extend(_meeting(agent, pulls) for pulls in (4, 10, 49))
    share, label = max(cases)
    rows = [
        row(CONSTANTS[name], label, "ratio / k, T >= 4k", share, "<=", _factor(name), "corrected")
        for name in CONSTANTS
    ]
    for num_arms, steps, name in ((5, 4, "proved"), (48, 96, "stated"), (300, 600, "proved")):
        ratio = worst_ratio(agent, "round_robin_trap", steps, num_arms=num_arms)
        instance = f"one linear arm among zeros, k = {num_arms}, T = {steps}"
        share, bound = ratio / num_arms, _factor(name)
        rows.append(row(CONSTANTS[name], instance, "ratio / k, T < 4k", share, "<=", bound))
        if steps == 2 * num_arms:
            exact = bounds.forced_sweep_ratio(num_arms)
            rows.append(row("Theorem 4, T = 2k", instance, "ratio", ratio, "=", exact, "added"))
    return rows


def _factor(constant: str) -> float:
    """Return what the ratio is said to be below, over k."""
    return bounds.algorithm1_ratio(1, 4, constant)


def _meeting(agent: Policy, pulls: int) -> tuple[float, str]:
    """Return the ratio over k, which is 1, of two arms whose totals meet after ``pulls``."""
    steps = 2 * pulls + 1
    level = (pulls + 1) / (2 * steps)
    ratio = max(
        worst_ratio(agent, [Constant(level), LinearCap(1.0, steps)][::order], steps)
        for order in (1, -1)
    )
    return ratio / 2, f"a constant and a linear arm that meet, k = 2, T = {steps}"


def theorem_5(settings: Settings) -> list[ClaimRow]:
    """Algorithm 1 lets every arm come as near to its potential as one likes."""
    small, longest = 0.05, 60
    gaps = []
    steps = settings.pick(3000, 10_000)
    for num_arms in settings.pick((2, 6), (2, 3, 6, 10)):
        evaluation = played(
            agents.AnytimeImproving(),
            partial(random_caps, longest=longest),
            steps,
            num_arms=num_arms,
            num_episodes=settings.pick(20, 200),
            seed=settings.seed,
        )
        gap = float(evaluation.episodes["max_potential_gap"].max())
        gaps.append((gap, f"random caps with ramps up to {longest}, k = {num_arms}, T = {steps}"))
    most, label = max(gaps)
    rng, sure = settings.rng(), []
    for num_arms in (2, 3, 6):
        for _ in range(settings.pick(10, 100)):
            curves = random_caps(rng, num_arms, longest)
            steps = bounds.potential_steps(curves, small)
            pulls = np.bincount(anytime_improving(curves, steps), minlength=num_arms).tolist()
            gap = max(arm.asymptote - arm(count) for arm, count in zip(curves, pulls, strict=True))
            sure.append((gap, f"random caps, k = {num_arms}, T = {steps}, computed from them"))
    largest, computed = max(sure)
    quantity = "largest gap to potential"
    return [
        row("Theorem 5", label, quantity, most, "<=", small),
        row("Theorem 5, with a number of steps", computed, quantity, largest, "<=", small, "added"),
    ]


def example_a2(settings: Settings) -> list[ClaimRow]:
    """A policy without external regret may have a policy regret that grows with T."""
    steps = 1000
    evaluation = played(agents.FixedArm(1), "policy_vs_external", steps, metrics="external_regret")
    regret, external = evaluation.mean("policy_regret"), evaluation.mean("external_regret")
    capped = f"min(n/10, 1) and 0.1, always the second, T = {steps}"
    uncapped = LinearCap(steps / 10, steps)
    return [
        row("Example A.2", f"n/10, T = {steps}", "largest f(n)", uncapped(steps), "<=", 1),
        row("Example A.2", capped, "policy regret", regret, "=", 0.9 * steps - 4.5, "corrected"),
        row("Example A.2", capped, "external regret", external, "=", 0, "corrected"),
    ]


CHECKS: dict[str, Check] = {
    "improving-figure-1": figure_1,
    "improving-theorem-2": theorem_2,
    "improving-theorem-3": theorem_3,
    "improving-theorem-4": theorem_4,
    "improving-theorem-5": theorem_5,
    "improving-example-a2": example_a2,
}
