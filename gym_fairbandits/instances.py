"""Named and random instances: the papers' examples, proofs and experiments.

P is Patil et al., L is Lim, Tan, Soh; printed errors of the papers are put right here, and each
docstring says where. The tables at the end name what an environment's ``instance`` accepts; a
dict such as ``{"name": "lower_bound", "late": 2}`` passes parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_choice, checked_float, checked_int
from gym_fairbandits.arms import Arms, Bernoulli, Gaussian
from gym_fairbandits.curves import (
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Power,
    ScaledCurve,
)

__all__ = [
    "CONCAVE_FAMILIES",
    "DEFAULT_NUM_ARMS",
    "EGALITARIAN",
    "IMPROVING",
    "concave_parameters",
    "early_vs_late",
    "egal_lower_bound",
    "improving_lower_bound",
    "lower_bound_gap",
    "policy_vs_external",
    "random_bernoulli",
    "random_concave",
    "random_gaussian",
    "random_means",
    "round_robin_trap",
    "two_level",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_NUM_ARMS = 10


# --- Improving arms (P) -------------------------------------------------------------------------


def early_vs_late(
    early_asymptote: float = 0.5,
    early_ramp: float = 2,
    late_asymptote: float = 1.0,
    late_ramp: float = 40,
) -> list[Curve]:
    """Return P's Figure 1: an early gifted arm and a late bloomer with the higher potential.

    The figure has no numbers; the defaults are ``min(n/4, 1/2)`` against ``min(n/40, 1)``.
    """
    early_ramp = checked_float("early_ramp", early_ramp, above=0)
    late_ramp = checked_float("late_ramp", late_ramp, above=0)
    return [
        LinearCap(checked_float("early_asymptote", early_asymptote), early_ramp),
        LinearCap(checked_float("late_asymptote", late_asymptote), late_ramp),
    ]


def improving_lower_bound(
    num_arms: int = DEFAULT_NUM_ARMS,
    steps: int = 1000,
    late: int | None = -1,
    printing: str = "main",
) -> list[Curve]:
    """Return the family of P's Theorem 2, on which every deterministic policy loses.

    All arms start alike; arm ``late`` goes on rising after the others have stopped at 1/k, with
    k = ``num_arms`` and T = ``steps``.

    Args:
        num_arms: k, at least 2.
        steps: T, the number of steps that the family is built for.
        late: Index of the late bloomer (negative: from the end); ``None`` for the instance
            without one, from which a proof picks the arm that the policy pulls least.
        printing: ``"main"``: ``min(n/(kN), 1/k)`` and ``min(n/(kN), 1)``, N = ceil(T/k).
            ``"appendix"``: ``min(n/T, 1/k)`` and ``min(n/T, 1)``; as printed (``n/T`` up to N)
            it would fall after N unless k divides T. Both coincide if k divides T.

    Raises:
        TypeError: If a parameter has the wrong type.
        ValueError: If a parameter breaks its rule.
    """
    num_arms = checked_int("num_arms", num_arms, minimum=2)
    steps = checked_int("steps", steps)
    checked_choice("printing", printing, ("main", "appendix"))
    sweep = math.ceil(steps / num_arms) if printing == "main" else steps / num_arms
    curves: list[Curve] = [LinearCap(1 / num_arms, sweep)] * num_arms
    if late is not None:
        arm = checked_int("late", late, minimum=-num_arms, maximum=num_arms - 1)
        curves[arm] = LinearCap(1.0, num_arms * sweep)
    return curves


def round_robin_trap(num_arms: int = DEFAULT_NUM_ARMS, steps: int = 1000) -> list[Curve]:
    """Return the instance of P's Theorem 3: one arm ``min(n/T, 1)``, the rest pay 0.

    The good arm is the last one: only there is it the worst for round robin when ``num_arms``
    does not divide T = ``steps``.
    """
    num_arms = checked_int("num_arms", num_arms)
    curves: list[Curve] = [Constant(0.0)] * (num_arms - 1)
    return [*curves, LinearCap(1.0, checked_int("steps", steps))]


def policy_vs_external() -> list[Curve]:
    """Return P's Example A.2: ``min(n/10, 1)`` against a constant 0.1.

    Always pulling the second arm has no external regret and a policy regret of 0.9 T - 4.5
    (T >= 10). The paper prints ``n/10`` without the cap, which leaves [0, 1].
    """
    return [LinearCap(1.0, 10), Constant(0.1)]


CONCAVE_FAMILIES: tuple[type[ScaledCurve], ...] = (LinearCap, Exponential, Hyperbolic, Power)
_TIED = 0.6  # the share of arms whose scale goes with their asymptote


def random_concave(rng: np.random.Generator, num_arms: int = DEFAULT_NUM_ARMS) -> list[Curve]:
    """Return random arms of several families whose best arm depends on the horizon.

    Asymptotes are uniform on (0, 1), scales (the ramp, 1/rate or half-saturation, in pulls)
    log-uniform on [1, 10^4], families equally likely: linear cap, exponential, hyperbolic, and
    a square root up to a cap. An arm is a late bloomer by nature with probability 0.6: then its
    scale stands in its range where its asymptote stands in its own, so that the arms with the
    most potential tend to need the most pulls; else the two are independent.
    """
    num_arms = checked_int("num_arms", num_arms)
    codes, parameters = concave_parameters(rng.random((num_arms, 4)))
    # Only the last family takes the third parameter.
    counts = [3 if family is Power else 2 for family in CONCAVE_FAMILIES]
    return [
        CONCAVE_FAMILIES[code](*parameters[: counts[code], arm].tolist())
        for arm, code in enumerate(codes.tolist())
    ]


def concave_parameters(uniforms: Floats) -> tuple[Ints, Floats]:
    """Return the families and parameters of :func:`random_concave`.

    Args:
        uniforms: Uniform numbers on [0, 1); float64 array of shape ``(..., 4)``.

    Returns:
        Indices into ``CONCAVE_FAMILIES``, int64 array of shape ``(...)``, and the arguments of
        the families, float64 array of shape ``(3, ...)``; families of two arguments ignore the
        third.
    """
    family = (uniforms[..., 0] * len(CONCAVE_FAMILIES)).astype(np.int64)
    asymptote = np.maximum(uniforms[..., 1], 2.0**-54)  # 0 is not a potential
    rank = np.where(uniforms[..., 3] < _TIED, asymptote, uniforms[..., 2])
    scale = np.exp(rank * math.log(1e4))
    is_rate = family == CONCAVE_FAMILIES.index(Exponential)
    second = np.where(is_rate, 1 / scale, scale)
    return family, np.stack((asymptote, second, np.full_like(scale, 0.5)))


# --- Assignment arms (L) ------------------------------------------------------------------------


def random_means(rng: np.random.Generator, num_arms: int) -> Floats:
    """Return means uniform on [0.01, 0.99], as in L's first experiment."""
    return 0.01 + 0.98 * rng.random(checked_int("num_arms", num_arms))


def random_bernoulli(rng: np.random.Generator, num_arms: int = DEFAULT_NUM_ARMS) -> Bernoulli:
    """Return Bernoulli arms with random means (L, Figure 3)."""
    return Bernoulli(random_means(rng, num_arms))


def random_gaussian(
    rng: np.random.Generator, num_arms: int = DEFAULT_NUM_ARMS, variance: float = 1.0
) -> Gaussian:
    """Return Gaussian arms with random means (L, Figure 3: variance 1 and 0.1)."""
    std = math.sqrt(checked_float("variance", variance, at_least=0))
    return Gaussian(random_means(rng, num_arms), std)


def two_level(
    num_users: int,
    num_arms: int = DEFAULT_NUM_ARMS,
    high: float = 0.8,
    low: float = 0.5,
) -> Bernoulli:
    """Return Bernoulli arms: ``high`` for the first U, ``low`` for the rest (L, experiment 2)."""
    low = checked_float("low", low, at_least=0, at_most=1)
    means = np.full(checked_int("num_arms", num_arms), low)
    means[: checked_int("num_users", num_users)] = checked_float(
        "high", high, at_least=0, at_most=1
    )
    return Bernoulli(means)


def egal_lower_bound(
    num_users: int,
    num_arms: int = DEFAULT_NUM_ARMS,
    steps: int = 1000,
    boosted: Sequence[int] | None = None,
) -> Gaussian:
    """Return an instance of the pair in L's Theorem 3: unit Gaussian arms with tiny gaps.

    With gap = sqrt((K - U) / (8 T U^2)), nu has mean ``gap`` on the first U arms and 0 on the
    rest; nu' has besides ``2 * gap`` on U ``boosted`` arms of the rest, those that a policy plays
    least under nu.

    Args:
        num_users: U.
        num_arms: K, at least 2 U.
        steps: T, at least (K - U) / (2 U^2), so that means stay at most 1.
        boosted: ``None`` for nu; U distinct arms outside the first U for nu'.

    Raises:
        TypeError: If a parameter has the wrong type.
        ValueError: If a parameter breaks its rule.
    """
    gap = lower_bound_gap(num_users, num_arms, steps)
    means = np.zeros(num_arms)
    means[:num_users] = gap
    if boosted is not None:
        if not isinstance(boosted, Sequence):
            raise TypeError(f"`boosted` must be a sequence of arms, got {boosted!r}")
        arms = [
            checked_int("boosted", arm, minimum=num_users, maximum=num_arms - 1) for arm in boosted
        ]
        if len(set(arms)) != num_users or len(arms) != num_users:
            raise ValueError(
                f"`boosted` must hold {num_users} distinct arms, one per user, got {boosted!r}"
            )
        means[arms] = 2 * gap
    return Gaussian(means, 1.0)


def lower_bound_gap(num_users: int, num_arms: int, steps: int) -> float:
    """Return the gap of :func:`egal_lower_bound`, ``sqrt((K - U) / (8 T U^2))``, at most 1/2.

    Args:
        num_users: U.
        num_arms: K, at least 2 U.
        steps: T, at least (K - U) / (2 U^2).

    Raises:
        TypeError: If a parameter has the wrong type.
        ValueError: If a parameter breaks its rule.
    """
    num_users = checked_int("num_users", num_users)
    num_arms = checked_int("num_arms", num_arms)
    steps = checked_int("steps", steps)
    if not num_arms >= 2 * num_users:
        raise ValueError(
            f"`num_arms` must be at least 2 * num_users = {2 * num_users} for the lower bound, "
            f"got {num_arms}"
        )
    least = (num_arms - num_users) / (2 * num_users**2)
    if not steps >= least:
        raise ValueError(
            f"`steps` must be at least (num_arms - num_users) / (2 * num_users**2) = {least:g} "
            f"for the lower bound, got {steps}"
        )
    return math.sqrt((num_arms - num_users) / (8 * steps * num_users**2))


# --- By name ------------------------------------------------------------------------------------

# A builder that takes `rng` is called anew for each episode. The environment fills in `num_arms`,
# `num_users` and `steps` (its horizon) where a builder takes them and the user gave nothing.
IMPROVING: dict[str, Callable[..., list[Curve]]] = {
    "random_concave": random_concave,
    "early_vs_late": early_vs_late,
    "lower_bound": improving_lower_bound,
    "round_robin_trap": round_robin_trap,
    "policy_vs_external": policy_vs_external,
}
EGALITARIAN: dict[str, Callable[..., Arms]] = {
    "bernoulli": random_bernoulli,
    "gaussian": random_gaussian,
    "two_level": two_level,
    "lower_bound": egal_lower_bound,
}
