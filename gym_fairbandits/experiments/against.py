"""Instances built against a policy, as the proofs of the papers' lower bounds build them.

Both watch the policy on an instance that hides nothing yet, and put the good arms where it looked
least; there it cannot tell the difference, or hardly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_fairbandits._checks import checked_int
from gym_fairbandits.arms import Gaussian
from gym_fairbandits.curves import Curve
from gym_fairbandits.evaluation import Policy, evaluate
from gym_fairbandits.instances import egal_lower_bound, improving_lower_bound

__all__ = ["late_bloomer_against", "lower_bound_pair_against"]


def late_bloomer_against(
    agent: Policy, num_arms: int, steps: int, printing: str = "appendix", **env_kwargs: Any
) -> list[Curve]:
    """Return the instance of P's Theorem 2 on which a deterministic policy loses.

    The policy plays I_0, where no arm blooms late; the arm m that it pulls least then becomes the
    late bloomer. It gets at most T/k pulls, in which it pays what the others pay, so that the
    policy plays I_m as it played I_0: it loses at least T/6 (k >= 3) and, if k divides T, the
    competitive ratio is above k/2. A policy that draws random numbers plays otherwise the next
    time, and the theorem does not hold for it.

    Args:
        agent: Any policy that :func:`gym_fairbandits.evaluation.evaluate` takes; it must be
            deterministic.
        num_arms: k, at least 2.
        steps: T.
        printing: ``"main"`` or ``"appendix"``; see
            :func:`gym_fairbandits.instances.improving_lower_bound`.
        **env_kwargs: More arguments of the environment, such as ``horizon_known=True``.

    Raises:
        TypeError: If a parameter has the wrong type.
        ValueError: If a parameter breaks its rule.

    Example:
        >>> from gym_fairbandits.agents import RoundRobin
        >>> for curve in late_bloomer_against(RoundRobin(), num_arms=3, steps=12):
        ...     print(curve)
        LinearCap(asymptote=1.0, ramp=12.0)
        LinearCap(asymptote=0.3333333333333333, ramp=4.0)
        LinearCap(asymptote=0.3333333333333333, ramp=4.0)
    """
    none_blooms = improving_lower_bound(num_arms, steps, late=None, printing=printing)
    played = evaluate(
        agent,
        "ImprovingBandit-v0",
        num_episodes=1,
        instance=none_blooms,
        horizon=steps,
        **env_kwargs,
    )
    least = int(played.pulls[0].argmin())
    return improving_lower_bound(num_arms, steps, late=least, printing=printing)


def lower_bound_pair_against(
    agent: Policy,
    num_users: int,
    num_arms: int,
    steps: int,
    *,
    num_runs: int = 100,
    seed: int = 0,
    **env_kwargs: Any,
) -> tuple[Gaussian, Gaussian]:
    """Return the pair (nu, nu') of L's Theorem 3 on one of which a policy loses.

    The policy plays nu, where the first U arms are a little better than the rest. Those U of the
    rest that it plays least in expectation, the mean over ``num_runs`` episodes, are the best
    arms of nu'. On nu or on nu' its regret is at least sqrt((K - U) T) / (76 U).

    Args:
        agent: Any policy that :func:`gym_fairbandits.evaluation.evaluate` takes; it may draw
            random numbers.
        num_users: U.
        num_arms: K, at least 2 U.
        steps: T, at least (K - U) / (2 U^2).
        num_runs: How many episodes estimate the expected number of plays.
        seed: Of the first of them.
        **env_kwargs: More arguments of the environment, such as ``horizon_known=True``.

    Raises:
        TypeError: If a parameter has the wrong type.
        ValueError: If a parameter breaks its rule.
    """
    nu = egal_lower_bound(num_users, num_arms, steps)
    played = evaluate(
        agent,
        "EgalAssign-v0",
        num_episodes=checked_int("num_runs", num_runs),
        seed=seed,
        instance=nu,
        num_users=num_users,
        horizon=steps,
        **env_kwargs,
    )
    expected = played.pulls.mean(axis=0)[num_users:]
    least = num_users + np.argsort(expected, kind="stable")[:num_users]
    return nu, egal_lower_bound(num_users, num_arms, steps, boosted=sorted(least.tolist()))
