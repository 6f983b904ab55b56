"""Measure the engines of the experiments as ratios, and compare each with its bar.

    python benchmarks/engine.py [ratios] [growth] [figure]

All parts by default, some minutes. Ratios are of CPU times within one process, see
`ratios.py`. The obvious loops of `naive.py` are naive on purpose; rewards drawn are NumPy's, into a
buffer that is used again.

- `ratios`: the engines against the obvious loop, and against drawing the rewards.
- `growth`: Algorithm 1 of Patil et al. for more arms and more pulls.
- `figure`: Figure 3 of Lim, Tan, Soh, 202.5 million rewards; all of it with numba, a tenth of each
  run with NumPy.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import naive
import numpy as np
from ratios import Item, medians

from gym_fairbandits.agents import EgalUCB
from gym_fairbandits.curves import Curve, PowerLaw
from gym_fairbandits.experiments import anytime_improving, simulate
from gym_fairbandits.instances import improving_lower_bound

SETTINGS: tuple[Any, ...] = (
    {"name": "gaussian", "variance": 1.0},
    {"name": "gaussian", "variance": 0.1},
    "bernoulli",
)
USERS = range(1, 6)
HORIZON, RUNS, CHECKPOINTS = 150_000, 30, 200
BUFFER = 65_536

Row = tuple[str, float, str, float]  # what, measured, "at least" or "at most", bar


def spent(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    gc.collect()
    start = time.process_time()
    run()
    return time.process_time() - start


def naive_steps(num_users: int, steps: int = 300) -> Item:
    """Return the obvious loop on Bernoulli arms."""
    means = np.random.default_rng(0).uniform(0.01, 0.99, 10)
    env = gym.make(naive.NAIVE_ID, means=means, num_users=num_users, horizon=steps)

    def run() -> None:
        naive.naive_egal_ucb(env, steps)

    return run, steps


def engine_steps(engine: str, instance: Any, num_users: int, horizon: int, num_runs: int) -> Item:
    """Return runs of EgalUCB, counted in steps of one run."""

    def run() -> None:
        simulate(
            EgalUCB(),
            instance,
            num_users=num_users,
            horizon=horizon,
            num_runs=num_runs,
            checkpoints=10,
            engine=engine,
        )

    return run, horizon * num_runs


def draws(kind: str, count: int = 10 * BUFFER) -> Item:
    """Return what it costs to draw ``count`` numbers."""
    generator, buffer = np.random.default_rng(0), np.empty(BUFFER)
    draw: Callable[..., Any] = getattr(generator, kind)

    def run() -> None:
        for _ in range(count // BUFFER):
            draw(out=buffer)

    return run, count // BUFFER * BUFFER


def ratio_rows() -> list[Row]:
    """Compare the engines with the obvious loop and with drawing the rewards."""
    items: dict[str, Item] = {"normal": draws("standard_normal"), "uniform": draws("random")}
    for users in (1, 5):
        items[f"naive {users}"] = naive_steps(users)
        items[f"numpy {users}"] = engine_steps("numpy", "bernoulli", users, 2000, RUNS)
        for law in ("bernoulli", "gaussian"):
            items[f"{law} {users}"] = engine_steps("numba", law, users, HORIZON, 10)
    seconds = medians(items)
    print("| per step of one run, or per draw | CPU ns |\n| --- | ---: |")
    for name, value in seconds.items():
        print(f"| {name} | {value * 1e9:.1f} |")
    print()
    rows: list[Row] = []
    for users in (5, 1):
        obvious = seconds[f"naive {users}"]
        rows.append(
            (f"obvious / numba, U={users}", obvious / seconds[f"bernoulli {users}"], ">=", 500)
        )
    rows.append(
        ("obvious / NumPy, 30 runs, U=5", seconds["naive 5"] / seconds["numpy 5"], ">=", 80)
    )
    per_reward = {law: seconds[f"{law} 5"] / 5 for law in ("gaussian", "bernoulli")}
    rows.append(
        ("numba / draws, Gaussian, U=5", per_reward["gaussian"] / seconds["normal"], "<=", 1.5)
    )
    rows.append(
        ("numba / draws, Bernoulli, U=5", per_reward["bernoulli"] / seconds["uniform"], "<=", 6)
    )
    return rows


def power_laws(num_arms: int) -> list[Curve]:
    """Return random improving arms."""
    rng = np.random.default_rng(0)
    return [PowerLaw(asymptote, exponent) for asymptote, exponent in rng.random((num_arms, 2))]


def growth_rows(repeats: int = 3) -> list[Row]:
    """Compare Algorithm 1 for many arms, and for many pulls, with few."""

    def per_pull(curves: Sequence[Curve], pulls: int) -> float:
        return spent(lambda: anytime_improving(curves, pulls)) / pulls

    few, many, pulls = power_laws(10), power_laws(100_000), 2_000_000
    arms = [(per_pull(few, pulls), per_pull(many, pulls)) for _ in range(repeats)]
    rows: list[Row] = [
        (
            "Algorithm 1 per pull, k=100000 / k=10",
            statistics.median(most / least for least, most in arms),
            "<=",
            10,
        )
    ]
    families: dict[str, Callable[[int], Sequence[Curve]]] = {
        "power laws": lambda pulls: few,
        "Theorem 2": lambda pulls: improving_lower_bound(num_arms=10, late=3, steps=pulls),
    }
    for name, make in families.items():
        short = statistics.median(per_pull(make(10**5), 10**5) for _ in range(5 * repeats))
        long = per_pull(make(10**7), 10**7)
        rows.append((f"Algorithm 1 per pull, T=1e7 / T=1e5, {name}", long / short, "<=", 1.4))
    return rows


def play_figure(engine: str, horizon: int) -> None:
    """Simulate Figure 3 of Lim, Tan, Soh."""
    for setting in SETTINGS:
        for users in USERS:
            simulate(
                EgalUCB(),
                setting,
                num_users=users,
                horizon=horizon,
                num_runs=RUNS,
                checkpoints=CHECKPOINTS,
                engine=engine,
            )


def peak_megabytes() -> float:
    """Return the most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def figure_rows() -> list[Row]:
    """Compare Figure 3 with drawing its rewards."""

    def floor() -> float:
        """Draw a tenth of the rewards: two settings are Gaussian, one is Bernoulli."""
        each = RUNS * HORIZON * sum(USERS) // 10
        normal, uniform = draws("standard_normal", each)[0], draws("random", each)[0]
        return 2 * spent(normal) + spent(uniform)

    play_figure("numba", 1000)  # compiles, and takes the memory of what it imports
    play_figure("numpy", 1000)
    before, drawing = peak_megabytes(), [floor()]
    numba = spent(lambda: play_figure("numba", HORIZON)) / 10
    grown = peak_megabytes() - before
    drawing.append(floor())
    numpy = spent(lambda: play_figure("numpy", HORIZON // 10))
    drawing.append(floor())
    return [
        ("Figure 3 with numba / draws", numba / statistics.mean(drawing[:2]), "<=", 2.5),
        ("Figure 3 with NumPy / draws", numpy / statistics.mean(drawing[1:]), "<=", 25),
        ("Figure 3 with numba, memory grown, MB", grown, "<=", 50),
    ]


PARTS: dict[str, Callable[[], list[Row]]] = {
    "ratios": ratio_rows,
    "growth": growth_rows,
    "figure": figure_rows,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parts = parser.parse_args().parts or list(PARTS)
    if not set(parts) <= set(PARTS):
        parser.error(f"there is only {', '.join(PARTS)}")
    rows = [row for part in parts for row in PARTS[part]()]
    print("| ratio | measured | bar | |\n| --- | ---: | ---: | --- |")
    for what, measured, side, bar in rows:
        met = measured >= bar if side == ">=" else measured <= bar
        print(f"| {what} | {measured:.2f} | {side} {bar:g} | {'ok' if met else 'MISSED'} |")


if __name__ == "__main__":
    main()
