"""Play policies on the same episodes and compare what they lose to the offline optimum.

Episode i has environment seed ``seed + i`` for every policy, and a random agent's row is seeded
with it too, so that results do not depend on how many environments run side by side.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

from gym_fairbandits._checks import checked_int
from gym_fairbandits.wrappers.vector import PolicyRegret

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Evaluation", "Policy", "compare", "evaluate", "mean_interval"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# An agent or model with `predict`, a callable from observations to actions, or a class that is
# created from the environment that runs.
Policy: TypeAlias = Any

CONFIDENCE = 0.95
_RESAMPLES = 2000
_MOST_ENVS = 256


@dataclass(frozen=True)
class Evaluation:
    """What one policy did in a number of episodes.

    Attributes:
        episodes: Per metric, a value per episode; float64 arrays of shape ``(num_episodes,)``:
            ``return``, ``policy_regret``, ``realized_regret``, ``optimal_return``,
            ``expected_return``, ``competitive_ratio``, and ``max_potential_gap`` (improving
            arms) or ``min_user_return`` (assignment: the worst-off user's expected total).
        checkpoints: Steps at which the regret so far was taken; int64 array.
        regret_curves: That regret; float64 array of shape ``(num_episodes, num_checkpoints)``.
    """

    episodes: dict[str, Floats]
    checkpoints: Ints
    regret_curves: Floats

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the episodes."""
        return float(self.episodes[metric].mean())

    def interval(self, metric: str) -> tuple[float, float]:
        """Return a 95 % bootstrap interval of that mean."""
        return mean_interval(self.episodes[metric])


@dataclass(frozen=True)
class Comparison:
    """Evaluations of several policies on the same episodes.

    Attributes:
        evaluations: By the policy's name, in the order given.
    """

    evaluations: dict[str, Evaluation] = field(default_factory=dict)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per policy and episode (needs the extra ``eval``)."""
        import pandas as pd

        frames = [
            pd.DataFrame(
                {"policy": name, "episode": np.arange(len(run.regret_curves)), **run.episodes}
            )
            for name, run in self.evaluations.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def rows(self, metrics: Sequence[str]) -> list[list[str]]:
        """Return, per policy, its name and ``mean [low, high]`` of the first metric, then means."""
        first, *others = metrics
        listed = []
        for name, run in self.evaluations.items():
            numbers = (run.mean(first), *run.interval(first))
            mean, low, high = (round(number, 1) + 0.0 for number in numbers)
            value = f"{mean:.1f} [{low:.1f}, {high:.1f}]"  # adding 0.0 turns -0.0 into 0.0
            listed.append([name, value, *(f"{run.mean(other):.3g}" for other in others)])
        return listed


def evaluate(
    policy: Policy,
    env_id: str,
    *,
    num_episodes: int = 100,
    seed: int = 0,
    num_envs: int | None = None,
    checkpoints: Iterable[int] = (),
    progress: Callable[[int], Any] | None = None,
    **env_kwargs: Any,
) -> Evaluation:
    """Play ``policy`` for some episodes in the native vector environment.

    Args:
        policy: Anything with ``predict(observation, state, episode_start, deterministic)``, a
            callable from batched observations to actions, or a class, which is created for each
            environment: with the environment if it takes ``env`` (oracles do).
        env_id: The environment's id.
        num_episodes: How many episodes.
        seed: Episode i is seeded ``seed + i``.
        num_envs: How many environments run side by side; it does not change the results.
        checkpoints: Steps at which to take the regret so far.
        progress: Called with the number of steps played, now and then.
        **env_kwargs: Arguments of the environment.

    Raises:
        ValueError: If a number is too small.
    """
    num_episodes = checked_int("num_episodes", num_episodes)
    seed = checked_int("seed", seed, minimum=0)
    most = checked_int("num_envs", _MOST_ENVS if num_envs is None else num_envs)
    moments = np.array(sorted({checked_int("checkpoints", step) for step in checkpoints}), np.int64)
    batches = []
    for first in range(0, num_episodes, most):
        seeds = list(range(seed + first, seed + min(first + most, num_episodes)))
        envs = PolicyRegret(
            gym.make_vec(env_id, num_envs=len(seeds), autoreset_mode="Disabled", **env_kwargs)
        )
        batches.append(_play(policy, envs, seeds, moments, progress))
        envs.close()
    metrics = {
        name: np.concatenate([batch[0][name] for batch in batches]) for name in batches[0][0]
    }
    return Evaluation(metrics, moments, np.concatenate([batch[1] for batch in batches]))


def compare(policies: Mapping[str, Policy], env_id: str, **arguments: Any) -> Comparison:
    """Evaluate several policies on the same episodes; arguments as for :func:`evaluate`."""
    return Comparison(
        {name: evaluate(policy, env_id, **arguments) for name, policy in policies.items()}
    )


def mean_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return a bootstrap confidence interval of the mean, the same at every call.

    Args:
        values: float64 array of shape ``(n,)``.
        confidence: The level.
    """
    if len(values) < 2 or np.ptp(values) == 0 or not np.isfinite(values).all():
        mean = float(values.mean())
        return mean, mean
    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=confidence,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _play(
    policy: Policy,
    envs: PolicyRegret,
    seeds: list[int],
    checkpoints: Ints,
    progress: Callable[[int], Any] | None,
) -> tuple[dict[str, Floats], Floats]:
    """Play one episode per row, to the end of all; return their metrics and regret curves."""
    act = _actor(policy, envs, seeds)
    observations, _ = envs.reset(seed=seeds)  # type: ignore[arg-type]
    returns = np.zeros(len(seeds))
    curves = np.zeros((len(seeds), len(checkpoints)))
    step, reported = 0, 0
    ended = np.zeros(len(seeds), dtype=np.bool_)
    while not ended.all():
        observations, rewards, terminations, truncations, infos = envs.step(act(observations))
        returns += rewards
        step += 1
        ended = terminations | truncations
        for place in np.flatnonzero(checkpoints == step):
            curves[:, place] = envs.regret()
        if progress is not None and (step - reported >= 100 or ended.all()):
            progress((step - reported) * len(seeds))
            reported = step
    metrics = {"return": returns}
    for name in ("policy_regret", "realized_regret", "optimal_return", "expected_return"):
        metrics[name] = infos[name]
    metrics["competitive_ratio"] = infos["competitive_ratio"]
    if "expected_user_returns" in infos:
        metrics["min_user_return"] = infos["expected_user_returns"].min(axis=1)
    else:
        bandits: Any = envs.unwrapped
        metrics["max_potential_gap"] = bandits.potential_gaps().max(axis=1)
    return metrics, curves


def _actor(policy: Policy, envs: PolicyRegret, seeds: list[int]) -> Callable[[Any], Any]:
    """Return the policy as a function of observations, at the start of an episode in every row."""
    if isinstance(policy, type):
        policy = policy(envs) if "env" in inspect.signature(policy).parameters else policy()
    if hasattr(policy, "reset") and "seed" in inspect.signature(policy.reset).parameters:
        policy.reset(seed=seeds)
    if hasattr(policy, "act"):
        act: Callable[[Any], Any] = policy.act
        return act
    if not hasattr(policy, "predict"):
        if not callable(policy):
            raise TypeError(f"`policy` must have `predict` or be callable, got {policy!r}")
        called: Callable[[Any], Any] = policy
        return called
    state: Any = None
    start = np.ones(len(seeds), dtype=np.bool_)

    def predict(observations: Any) -> Any:
        nonlocal state, start
        actions, state = policy.predict(
            observations, state=state, episode_start=start, deterministic=True
        )
        start = np.zeros_like(start)
        return actions

    return predict
