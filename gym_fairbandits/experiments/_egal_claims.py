"""The claims of Lim, Tan, Soh about egalitarian assignment, as checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.special import zeta
from scipy.stats import norm

from gym_fairbandits import agents, bounds
from gym_fairbandits.agents.egalitarian import ucb_index
from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian
from gym_fairbandits.evaluation import Evaluation, Policy, evaluate
from gym_fairbandits.experiments._claims import Check, ClaimRow, Settings, named
from gym_fairbandits.experiments.against import lower_bound_pair_against
from gym_fairbandits.experiments.engine import simulate
from gym_fairbandits.instances import two_level
from gym_fairbandits.optimum import egalitarian_optimum

__all__ = ["CHECKS"]

ENV_ID = "EgalAssign-v0"

row = partial(ClaimRow, "L")


def played(agent: Policy, arms: Arms, num_users: int, steps: int, **kwargs: Any) -> Evaluation:
    """Return what an agent does in ``steps`` steps."""
    return evaluate(agent, ENV_ID, instance=arms, num_users=num_users, horizon=steps, **kwargs)


def regret_in(evaluation: Evaluation) -> float:
    """Return the paper's regret T mu*/U - min_u E[S_u], the expectation over the episodes."""
    regret = evaluation.min_of_expectations_regret
    if regret is None:
        raise ValueError("`evaluation` must be of one instance, got one per episode")
    return regret


def regret_of(agent: Policy, arms: Arms, num_users: int, steps: int, **kwargs: Any) -> float:
    """Return :func:`regret_in` what :func:`played` returns."""
    return regret_in(played(agent, arms, num_users, steps, **kwargs))


# --- Algorithms 1 and 2 -------------------------------------------------------------------------


def number_of_blocks(settings: Settings) -> list[ClaimRow]:
    """Algorithm 1 runs for T steps; printed, its loop runs one block more."""
    steps, num_users = 12, 3
    return [
        row(
            "Algorithm 1, its loop",
            f"T = {steps}, U = {num_users}",
            "steps of a run",
            agents.EgalUCB(loop=loop).num_steps(steps, num_users),
            "=",
            steps,
            form,
        )
        for loop, form in (("printed", "printed"), ("fixed", "corrected"))
    ]


def frozen_arms(settings: Settings) -> list[ClaimRow]:
    """Algorithm 1 refreshes the indices of the arms it played, Algorithm 2 those of all.

    The better arm pays 0 or 2, the other always 0. If the first reward of the better arm is 0, so
    is its index after block 1, for ln 1 = 0; with the other arm's index positive from then on,
    Algorithm 1 never plays it again. So it loses at least (T - 1) / 2, and from about
    T = 46,000 on more than Theorem 1 allows.
    """
    arms = Empirical([[0.0, 2.0], [0.0]])
    rows = []
    for name, update, form, steps in (
        ("Algorithm 1", "played", "printed", 2**16),
        ("Algorithm 2", "all", "corrected", settings.pick(2**12, 2**16)),
    ):
        runs = simulate(
            agents.EgalUCB(update=update),
            arms,
            num_users=1,
            horizon=steps,
            num_runs=settings.pick(100, 1000),
            seed=settings.seed,
            checkpoints=(steps // 4, steps),
            engine="numpy",
        )
        before, after = runs.policy_regret.mean(axis=0).tolist()
        bound = bounds.egal_gap_regret(2, 1, steps, *bounds.assignment_gaps(arms.means, 1))
        claim = f"Theorem 1 for {name}"
        instance = f"0 or 2 against 0, U = 1, T = {steps}"
        growth = "regret(T) / regret(T/4), at most doubled"
        rows += [
            row(claim, instance, "regret", after, "<=", bound, form),
            row(claim, instance, growth, after / before, "<=", 2, form),
        ]
    return rows


# --- Upper bounds -------------------------------------------------------------------------------


def lemma_1(settings: Settings) -> list[ClaimRow]:
    """After block b an arm's mean lies outside its bonus with probability 2 K / (b^2 U^3)."""
    num_arms, num_users, blocks = 6, 2, settings.pick(8, 30)
    agent = agents.EgalUCB()
    means = np.linspace(0.9, 0.1, num_arms)
    envs: Any = gym.make_vec(
        ENV_ID,
        num_envs=settings.pick(2000, 20_000),
        instance=Gaussian(means),
        num_users=num_users,
        horizon=blocks * num_users,
    )
    observation, _ = envs.reset(seed=settings.seed)
    shares = []
    for block in range(1, blocks + 1):
        for _ in range(num_users):
            observation, *_ = envs.step(agent.act(observation))
        pulls = observation["pulls"]
        steps = np.full(len(pulls), block * num_users)
        bonus = ucb_index(np.zeros_like(means), pulls, steps, agent.c, agent.sigma)
        error = np.abs(observation["reward_sum"] / np.maximum(pulls, 1) - means)
        frequency = float((error > bonus).any(axis=1).mean())
        bound = bounds.bad_event_probability(num_arms, num_users, block)
        shares.append((frequency / bound, f"b = {block}"))
    envs.close()
    share, label = max(shares)
    instance = f"EgalUCB, unit Gaussian arms, K = {num_arms}, U = {num_users}, {label}"
    return [row("Lemma 1", instance, "frequency / (2K / (b^2 U^3))", share, "<=", 1)]


def theorem_1(settings: Settings) -> list[ClaimRow]:
    """The regret of EgalUCB grows as ln T on every instance."""
    means = np.linspace(0.9, 0.1, 10)
    laws = {"Bernoulli": Bernoulli(means), "unit Gaussian": Gaussian(means)}
    steps = settings.pick(600, 12_000)
    several: list[tuple[float, str]] = []
    single: list[tuple[float, str]] = []
    for num_users in (1, 3, 5):
        for law, arms in laws.items():
            regret = regret_of(
                agents.EgalUCB(),
                arms,
                num_users,
                steps,
                num_episodes=settings.pick(20, 100),
                seed=settings.seed,
            )
            gaps = bounds.assignment_gaps(means, num_users)
            bound = bounds.egal_gap_regret(len(means), num_users, steps, *gaps)
            label = f"EgalUCB, {law} arms, K = {len(means)}, U = {num_users}, T = {steps}"
            (single if num_users == 1 else several).append((regret / bound, label))
    (share, one), (most, worst) = max(single), max(several)
    full = regret_of(agents.EgalUCB(), laws["Bernoulli"], 10, steps, num_episodes=2)
    instance = f"EgalUCB, Bernoulli arms, K = U = 10, T = {steps}"
    return [
        row("Theorem 1", worst, "regret / bound", most, "<=", 1),
        row("Theorem 1, U = 1", one, "regret / bound", share, "<=", 1, "corrected"),
        row("Theorem 1, U = K", instance, "regret", full, "=", 0),
        *_constant_of_failures(),
    ]


def _constant_of_failures() -> list[ClaimRow]:
    """Return whether the constant 4 covers what the proof adds up: K blocks, and failures.

    With U = 1 Lemma 1 gives failures of 2 K / b^2 in block b, K pi^2 / 3 altogether. Capped at 1,
    as probabilities are, their sum is smaller, and the 4 of the statement is enough.
    """
    claim, quantity = "Theorem 1, constant 4 in its proof, U = 1", "(K + sum of failures) / K"
    last = 1000  # beyond it no failure is capped
    capped = []
    for num_arms in (2, 3, 10, 100):
        some = sum(bounds.bad_event_probability(num_arms, 1, block) for block in range(1, last))
        rest = 2 * num_arms * float(zeta(2, last))
        capped.append((1 + (some + rest) / num_arms, f"failures capped at 1, K = {num_arms}"))
    most, label = max(capped)
    return [
        row(claim, "failures as in the proof", quantity, 1 + 2 * float(zeta(2)), "<=", 4),
        row(claim, label, quantity, most, "<=", 4, "corrected"),
    ]


def theorem_2(settings: Settings) -> list[ClaimRow]:
    """The regret of EgalUCB is at most of the order sqrt(K T ln T / U), whatever the gaps."""
    num_arms, steps = 10, settings.pick(1200, 12_000)
    cases = []
    for num_users in settings.pick((3,), (1, 2, 3, 5)):
        bound = bounds.egal_regret(num_arms, num_users, steps)
        for gap in (0.05, 0.1, 0.2, 0.4, 0.8):
            regret = regret_of(
                agents.EgalUCB(),
                two_level(num_users, num_arms, 0.1 + gap, 0.1),
                num_users,
                steps,
                num_episodes=settings.pick(20, 100),
                seed=settings.seed,
            )
            label = f"EgalUCB, gap {gap}, K = {num_arms}, U = {num_users}, T = {steps}"
            cases.append((regret / bound, label))
    share, label = max(cases)
    return [row("Theorem 2", label, "regret / bound", share, "<=", 1)]


# --- The lower bound ----------------------------------------------------------------------------


def theorem_3(settings: Settings) -> list[ClaimRow]:
    """Every policy has a regret of sqrt((K - U) T) / (76 U) on nu or on nu'."""
    num_users, num_arms, steps = 2, 6, settings.pick(300, 2000)
    bound = bounds.egal_worst_case_regret(num_arms, num_users, steps)
    runs = {"num_episodes": settings.pick(50, 500), "seed": settings.seed}
    cases = []
    for name in ("egal-ucb", "greedy-rotation", "egal-thompson", "uniform-random"):
        agent = named(name)
        pair = lower_bound_pair_against(
            agent, num_users, num_arms, steps, num_runs=runs["num_episodes"], seed=settings.seed
        )
        regret = max(regret_of(agent, arms, num_users, steps, **runs) for arms in pair)
        label = f"nu and nu' against {name}, K = {num_arms}, U = {num_users}, T = {steps}"
        cases.append((regret / bound, label))
    share, label = min(cases)
    return [row("Theorem 3", label, "larger regret / bound", share, ">=", 1)]


# --- Shared arms --------------------------------------------------------------------------------


def capacity(settings: Settings) -> list[ClaimRow]:
    """With capacity C, Theorem 1 holds with U/C groups, against a benchmark C times as high."""
    num_arms, num_users, shared, steps = 12, 6, 3, settings.pick(1200, 12_000)
    groups = num_users // shared
    arms = Bernoulli(np.linspace(0.9, 0.1, num_arms))
    regret = regret_of(
        agents.EgalUCB(capacity=shared),
        arms,
        num_users,
        steps,
        capacity=shared,
        num_episodes=settings.pick(20, 100),
        seed=settings.seed,
    )
    gaps = bounds.assignment_gaps(arms.means, groups)
    bound = bounds.capacity_regret(num_arms, num_users, shared, steps, *gaps)
    sizes = f"K = {num_arms}, U = {num_users}, C = {shared}, T = {steps}"
    oracle = played(agents.OracleRotation, arms, num_users, steps, capacity=shared, num_episodes=1)
    earned = oracle.mean("expected_return")
    right = oracle.mean("optimal_return")
    printed = float(egalitarian_optimum(arms.means, groups, steps)) / shared
    quantity = "(benchmark - reward of the oracle) / T"
    return [
        row("Section 8", f"EgalUCB, {sizes}", "regret / bound", regret / bound, "<=", 1),
        row("Section 8, benchmark", sizes, quantity, (printed - earned) / steps, ">=", 0),
        row("Section 8, benchmark", sizes, quantity, (right - earned) / steps, "=", 0, "corrected"),
    ]


def phases(settings: Settings) -> list[ClaimRow]:
    """Phased elimination with equal phases, as conjectured, has linear regret.

    Even if the means are known: here arms pay them without chance.
    """
    arms = Gaussian([1.0, 0.5, 0.5, 0.5], 0.0)
    short, long = settings.pick((500, 2000), (10_000, 40_000))
    rows = []
    for schedule, form in (("equal", "printed"), ("log", "corrected")):
        agent = named("phased-elimination", schedule=schedule, sigma=0.0)
        regrets = {
            steps: regret_of(agent, arms, 2, steps, capacity=2, num_episodes=1)
            for steps in (short, long)
        }
        claim = "Section 8, phased elimination"
        sizes = f"{schedule} phases, means (1, 1/2, 1/2, 1/2), U = C = 2"
        rows.append(
            row(
                claim,
                f"{sizes}, T = {long}",
                "regret(T) / regret(T/4), at most doubled",
                regrets[long] / regrets[short],
                "<=",
                2,
                form,
            )
        )
        if schedule == "equal":
            share = regrets[long] / long
            rows.append(
                row(claim, f"{sizes}, T = {long}", "regret / T", share, ">=", 1 / 8, "added")
            )
    return rows


# --- What regret is -----------------------------------------------------------------------------


def realized_minimum(settings: Settings) -> list[ClaimRow]:
    """The expected minimum of the users' totals lies below the minimum of their expectations.

    The regret is made of the latter. Of U users who earn the same in expectation, the one who
    really earned least has sigma sqrt(T) E[max of U standard normals] less.
    """
    num_users, steps = 5, settings.pick(300, 3000)
    evaluation = played(
        agents.OracleRotation,
        Gaussian([0.5] * num_users),
        num_users,
        steps,
        num_episodes=settings.pick(2000, 20_000),
        num_envs=2000,
        seed=settings.seed,
    )
    highest = norm.expect(lambda x: num_users * x * norm.cdf(x) ** (num_users - 1))
    instance = f"rotation of equal unit Gaussian arms, K = U = {num_users}, T = {steps}"
    claim = "Regret, min E and E min"
    realized = evaluation.mean("realized_regret") / np.sqrt(steps)
    return [
        row(claim, instance, "T mu*/U - min E", regret_in(evaluation), "=", 0),
        row(
            claim,
            instance,
            "(T mu*/U - E min) / sqrt(T), within 5 %",
            float(realized),
            "=",
            float(highest),
            "added",
            0.05,
        ),
    ]


CHECKS: dict[str, Check] = {
    "egal-number-of-blocks": number_of_blocks,
    "egal-frozen-arms": frozen_arms,
    "egal-lemma-1": lemma_1,
    "egal-theorem-1": theorem_1,
    "egal-theorem-2": theorem_2,
    "egal-theorem-3": theorem_3,
    "egal-capacity": capacity,
    "egal-phases": phases,
    "egal-realized-minimum": realized_minimum,
}
