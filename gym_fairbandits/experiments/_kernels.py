"""Compiled kernels: EgalUCB on constant arms, one run at a time; imported only where numba is used.

The agents and arms of the package decide what is right: :func:`index_into`, :func:`top_into` and
:func:`reward` are second forms of :func:`gym_fairbandits.agents.egalitarian.ucb_index`,
:func:`~gym_fairbandits.agents.egalitarian.top_arms` and :meth:`gym_fairbandits.arms.Arms.rewards`,
written to give the same floats, operation by operation. So there is no ``fastmath``, and logarithms
are passed in: the compiler's may differ from NumPy's in the last bit.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["BERNOULLI", "EMPIRICAL", "GAUSSIAN", "index_into", "play", "reward", "top_into"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BERNOULLI, GAUSSIAN, EMPIRICAL = 0, 1, 2
DOUBT = 1e-13  # relative; far more than a few roundings

# Divisions by zero give infinity instead of a check that keeps loops from being vectorised.
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def index_into(out: Floats, sums: Floats, pulls: Ints, budget: float, sigma: float) -> None:
    """Write ``S / n + sigma sqrt(budget / n)`` of each arm into ``out``, infinite if n = 0.

    Args:
        out: float64 array of shape ``(num_arms,)``.
        sums: S, total reward per arm; float64 array of shape ``(num_arms,)``.
        pulls: n, plays per arm; int64 array of shape ``(num_arms,)``.
        budget: ``c ln t``.
        sigma: Scale of the noise.
    """
    for arm in range(len(out)):
        out[arm] = np.inf
        if pulls[arm] > 0:
            out[arm] = sums[arm] / pulls[arm] + sigma * np.sqrt(budget / pulls[arm])


@_compiled
def top_into(chosen: Ints, best: Floats, index: Floats) -> None:
    """Write the arms of the highest index into ``chosen``, descending, ties by lowest arm.

    Args:
        chosen: int64 array of shape ``(count,)``.
        best: Room for their indices; float64 array of shape ``(count,)``.
        index: float64 array of shape ``(num_arms,)``.
    """
    count = len(chosen)
    for arm in range(len(index)):
        value = index[arm]
        if arm >= count and value <= best[count - 1]:
            continue
        place = min(arm, count - 1)
        while place > 0 and best[place - 1] < value:
            best[place] = best[place - 1]
            chosen[place] = chosen[place - 1]
            place -= 1
        best[place] = value
        chosen[place] = arm


@_compiled
def reward(
    kind: int, draw: float, mean: float, std: float, pool: Floats, start: int, count: int
) -> float:
    """Return what an arm pays on a draw.

    Args:
        kind: ``BERNOULLI``, ``GAUSSIAN`` or ``EMPIRICAL``.
        draw: Uniform on [0, 1), or standard normal for Gaussian arms.
        mean: Of Bernoulli and Gaussian arms.
        std: Of Gaussian arms.
        pool: The samples of all empirical arms.
        start: Where the samples of an empirical arm begin.
        count: How many it has.
    """
    if kind == BERNOULLI:
        return 1.0 if draw < mean else 0.0
    if kind == GAUSSIAN:
        return mean + std * draw
    return float(pool[start + min(int(draw * count), count - 1)])


@_compiled
def play(
    draws: Floats,
    law: tuple[int, Floats, Floats, Floats, Ints, Ints],
    capacity: int,
    budgets: Floats,
    sigma: float,
    inverses: tuple[Floats, Floats],
    step: int,
    state: tuple[Ints, Floats, Floats],
    checkpoints: Ints,
    place: int,
    expected: Floats,
    realized: Floats,
) -> int:
    """Play EgalUCB on the next draws, from a step on at which a block begins.

    The users form G groups of C that share an arm.

    Args:
        draws: Of the run's stream, in the order of steps and users; of the C draws of a group,
            the first counts. Float64 array of shape ``(num_steps * G * C,)``.
        law: The kind of arms, and their means, deviations, pool, starts and counts: see
            :func:`reward`.
        capacity: C.
        budgets: ``c ln t`` at the start of each block.
        sigma: Scale of the noise.
        inverses: ``1 / (b G)`` and its root for b from 0 (not read) to some number of blocks.
        step: Steps played before.
        state: Pulls and total reward per arm, and total reward per group; changed.
        checkpoints: Steps after which totals are recorded, ascending; int64.
        place: The first of them that lies ahead.
        expected: Expected totals per group at the checkpoints, written; ``(num, G)``.
        realized: Realised totals per group at the checkpoints, written; ``(num, G)``.

    Returns:
        The first checkpoint that lies ahead now.
    """
    kind, means, std, pool, starts, counts = law
    pulls, sums, totals = state
    num_arms, groups = len(means), len(totals)
    averages, widths, index = np.full(num_arms, np.inf), np.zeros(num_arms), np.empty(num_arms)
    blocks = pulls // groups
    for arm in range(num_arms):
        if pulls[arm] > 0:
            averages[arm] = sums[arm] / pulls[arm]
            widths[arm] = sigma * np.sqrt(1 / pulls[arm])
    chosen, best = np.zeros(groups, dtype=np.int64), np.empty(groups)
    first, left = 0, len(draws) // (groups * capacity)
    for block in range(len(budgets)):
        # Most often the set stays. Indices without quotients and roots, right to some 1e-15, show
        # it if each is clearly above the next, and the last above all others.
        root = np.sqrt(budgets[block])
        for arm in range(num_arms):
            index[arm] = averages[arm] + widths[arm] * root
        lowest = index[chosen[0]]
        doubt = DOUBT * (abs(lowest) + sigma * root)
        clear = True
        for slot in range(1, groups):
            value = index[chosen[slot]]
            clear &= lowest - value > doubt
            lowest = value
        doubt = max(doubt, DOUBT * abs(lowest))
        rivals = 0
        for arm in range(num_arms):
            rivals += index[arm] >= lowest - doubt
        if not clear or rivals != groups:
            index_into(index, sums, pulls, budgets[block], sigma)
            top_into(chosen, best, index)
        length = min(groups, left)
        left -= length
        done = 0
        while done < length:
            until = length
            if place < len(checkpoints):
                until = min(until, checkpoints[place] - step)
            # Arm by arm, each meeting one user after the other, so that its numbers stay at hand.
            for slot in range(groups):
                arm = chosen[slot]
                mean, deviation, start, count = means[arm], std[arm], starts[arm], counts[arm]
                total = sums[arm]
                group = slot + done if slot + done < groups else slot + done - groups
                number = first + done * groups * capacity + group * capacity
                for _ in range(done, until):
                    paid = reward(kind, draws[number], mean, deviation, pool, start, count)
                    total += paid
                    totals[group] += paid
                    group += 1
                    number += (groups + 1) * capacity
                    if group == groups:
                        group = 0
                        number -= groups * capacity
                sums[arm] = total
            done = until
            if place < len(checkpoints) and step + done == checkpoints[place]:
                before = 0.0
                for arm in range(num_arms):
                    before += pulls[arm] * means[arm]
                for group in range(groups):
                    value = before / groups
                    for turn in range(done):
                        value += means[chosen[(group - turn) % groups]]
                    expected[place, group] = value
                    realized[place, group] = totals[group]
                place += 1
        step += length
        first += length * groups * capacity
        for slot in range(groups):
            arm = chosen[slot]
            pulls[arm] += length
            blocks[arm] += 1
            if blocks[arm] < len(inverses[0]):
                averages[arm] = sums[arm] * inverses[0][blocks[arm]]
                widths[arm] = sigma * inverses[1][blocks[arm]]
            else:
                averages[arm] = sums[arm] / pulls[arm]
                widths[arm] = sigma * np.sqrt(1 / pulls[arm])
    return place
