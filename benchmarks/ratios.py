"""Measure the speed of the environments as ratios, and compare each with its bar.

    python benchmarks/ratios.py

Ratios of CPU times within one process hold on a busy machine where absolute times do not: every
callable is warmed up, the repeats are interleaved, and the medians are divided.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import gym_fairbandits  # noqa: F401 - registers the environments

REPEATS = 5
ROUNDS = 20  # short turns, so that a change of the machine's speed meets all callables alike
NUM_ENVS = 1024

Item = tuple[Callable[[], None], int]  # the callable, and the operations that it does


def medians(items: dict[str, Item]) -> dict[str, float]:
    """Return the CPU seconds per operation of each item, median of ``REPEATS``."""
    for run, _ in items.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in items}
    for _ in range(REPEATS):
        spent = dict.fromkeys(items, 0.0)
        for _ in range(ROUNDS):
            for name, (run, _) in items.items():
                gc.collect()
                start = time.process_time()
                run()
                spent[name] += time.process_time() - start
        for name, (_, operations) in items.items():
            times[name].append(spent[name] / (ROUNDS * operations))
    return {name: statistics.median(values) for name, values in times.items()}


def scalar(env_id: str, actions: list[Any], steps: int = 2000, **kwargs: Any) -> Item:
    """Return the raw steps of a scalar environment, resets included."""
    env = gym.make(env_id, **kwargs).unwrapped
    env.reset(seed=0)
    place = 0

    def run() -> None:
        nonlocal place
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(actions[place % len(actions)])
            place += 1
            if terminated or truncated:
                env.reset()

    return run, steps


def vector(env_id: str, actions: list[Any], steps: int, **kwargs: Any) -> Item:
    """Return the steps of a vector environment, its autoresets included."""
    envs = gym.make_vec(env_id, num_envs=NUM_ENVS, **kwargs)
    envs.reset(seed=0)
    place = 0

    def run() -> None:
        nonlocal place
        for _ in range(steps):
            envs.step(actions[place % len(actions)])
            place += 1

    return run, steps * NUM_ENVS


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 10, 1000).tolist()
    assignments = [rng.permutation(10)[:5] for _ in range(1000)]
    arms_batch = [rng.integers(0, 10, NUM_ENVS) for _ in range(100)]
    assignments_batch = [
        rng.permuted(np.tile(np.arange(10), (NUM_ENVS, 1)), axis=1)[:, :5] for _ in range(100)
    ]
    pushes = [rng.integers(0, 2, NUM_ENVS) for _ in range(100)]
    table = [
        {"family": "tabulated", "values": (np.minimum(np.arange(1, 1001) / ramp, 1)).tolist()}
        for ramp in range(50, 550, 50)
    ]
    ours, egal, cartpole = "ImprovingBandit-v0", "EgalAssign-v0", "CartPole-v1"
    seconds = medians(
        {
            "CartPole": scalar(cartpole, [0, 1]),
            "ImprovingBandit": scalar(ours, arms),
            "EgalAssign": scalar(egal, assignments),
            "CartPole vector": vector(cartpole, pushes, 50),
            "ImprovingBandit vector, tabulated": vector(ours, arms_batch, 100, instance=table),
            "ImprovingBandit vector, random_concave": vector(ours, arms_batch, 100),
            "EgalAssign vector": vector(egal, assignments_batch, 100),
            "ImprovingBandit sync": vector(ours, arms_batch, 4, vectorization_mode="sync"),
            "EgalAssign sync": vector(egal, assignments_batch, 4, vectorization_mode="sync"),
        }
    )
    bars = [
        ("CartPole", "ImprovingBandit", 3.0),
        ("CartPole", "EgalAssign", 1.0),
        ("ImprovingBandit sync", "ImprovingBandit vector, random_concave", 60.0),
        ("EgalAssign sync", "EgalAssign vector", 60.0),
        ("CartPole vector", "ImprovingBandit vector, tabulated", 1.0),
        ("CartPole vector", "ImprovingBandit vector, random_concave", 0.6),
    ]
    print("| per step of one environment | CPU ns |\n| --- | ---: |")
    for name, value in seconds.items():
        print(f"| {name} | {value * 1e9:.0f} |")
    print("\n| ratio | measured | bar | |\n| --- | ---: | ---: | --- |")
    for slow, fast, bar in bars:
        ratio = seconds[slow] / seconds[fast]
        print(f"| {slow} / {fast} | {ratio:.2f} | {bar:g} | {'ok' if ratio >= bar else 'BELOW'} |")


if __name__ == "__main__":
    main()
