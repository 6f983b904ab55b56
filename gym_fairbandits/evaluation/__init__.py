"""Play policies on the same episodes and compare what they lose to the offline optimum.

Episode i has environment seed ``seed + i`` for every policy, and a random agent's row is seeded
with it too: results depend neither on how many environments run side by side nor on how many
processes. (Networks may round differently for batches of different sizes; the policies of
:mod:`gym_fairbandits.agents.sb3` guard against it.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from reprlib import Repr
from typing import Any

from gym_fairbandits._checks import checked_choice, checked_int
from gym_fairbandits._rollout import METRICS, Episodes, Plan, check
from gym_fairbandits.evaluation._entries import Entry, Policy, entry_of
from gym_fairbandits.evaluation._intervals import mean_interval
from gym_fairbandits.evaluation._results import Comparison, Evaluation, joined
from gym_fairbandits.evaluation._running import (
    EvaluationError,
    advice,
    attempt,
    num_processes,
    progress_bar,
    running,
)

__all__ = [
    "Comparison",
    "Entry",
    "Evaluation",
    "EvaluationError",
    "Policy",
    "compare",
    "evaluate",
    "mean_interval",
]

_MOST_ENVS = 100  # side by side, unless told otherwise


class _Short(Repr):
    """Arguments in a line: of curves and arms, which may hold much, the family only."""

    def repr_instance(self, x: object, level: int) -> str:
        if hasattr(x, "family"):
            return f"{type(x).__name__}(...)"
        return super().repr_instance(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 60


def evaluate(
    policy: Policy,
    env_id: str,
    *,
    num_episodes: int = 100,
    seed: int = 0,
    num_envs: int | None = None,
    wrappers: Sequence[Callable[[Any], Any]] = (),
    normalize: Any = None,
    checkpoints: Iterable[int] = (),
    metrics: str | Iterable[str] = (),
    n_jobs: int | None = None,
    progress: bool | Any = False,
    **env_kwargs: Any,
) -> Evaluation:
    """Play ``policy`` for some episodes of an environment of this package.

    Args:
        policy: Anything with ``predict(observation, state, episode_start, deterministic)`` (our
            agents, models of Stable-Baselines3 and sb3-contrib; recurrent state is carried, and
            ``action_masks`` are passed where model and environment know them); a callable from
            batched observations to actions; a class, created for each batch of episodes, with
            the environment that runs if it has a parameter ``env`` (as oracles do); or an
            :class:`Entry`.
        env_id: The environment's id.
        num_episodes: How many episodes.
        seed: Episode i is seeded ``seed + i``.
        num_envs: How many run side by side; by default 100, or fewer so that every process
            gets some. The results do not depend on it.
        wrappers: Those that a model was trained with, called with the scalar environment,
            innermost first. Without any, the native vector environment plays.
        normalize: The ``VecNormalize`` that a model was trained with, or a callable.
        checkpoints: Steps at which to take the regret so far; NaN after an episode's end.
        metrics: What to compute beside regret, ratio and worst case: ``"fairness"`` (see
            :class:`gym_fairbandits.wrappers.FairnessMetrics`), ``"external_regret"`` (see
            :class:`gym_fairbandits.wrappers.ExternalRegret`; takes time in each step), or both.
        n_jobs: How many processes, as joblib has it; ``None`` is one, or what
            ``joblib.parallel_config`` says, whose backend may be ``"dask"`` or ``"ray"``.
            The results do not depend on it.
        progress: Whether to show a bar, or a bar of tqdm to update by episodes.
        **env_kwargs: Arguments of the environment.

    Raises:
        EvaluationError: If the policy raises; it names the episode.
        TypeError: If ``policy`` is none of these.
        ValueError: If a number is too small.
    """
    if isinstance(policy, Entry) and (wrappers or normalize is not None):
        raise TypeError("`wrappers` and `normalize` must be given to the `Entry`, not beside it")
    entry = policy if isinstance(policy, Entry) else entry_of(policy, wrappers, normalize)
    comparison = compare(
        {"policy": entry},
        env_id,
        num_episodes=num_episodes,
        seed=seed,
        num_envs=num_envs,
        checkpoints=checkpoints,
        metrics=metrics,
        n_jobs=n_jobs,
        progress=progress,
        **env_kwargs,
    )
    return comparison["policy"]


def compare(
    policies: Mapping[str, Policy],
    env_id: str,
    *,
    num_episodes: int = 100,
    seed: int = 0,
    num_envs: int | None = None,
    checkpoints: Iterable[int] = (),
    metrics: str | Iterable[str] = (),
    n_jobs: int | None = None,
    progress: bool | Any = False,
    **env_kwargs: Any,
) -> Comparison:
    """Play several policies on the same episodes; arguments as for :func:`evaluate`.

    Args:
        policies: By name; an :class:`Entry` brings wrappers of its own.
        env_id: See :func:`evaluate`, as for the rest.
        num_episodes: How many episodes each plays.
        seed: Episode i is seeded ``seed + i``, for every policy.
        num_envs: How many run side by side.
        checkpoints: Steps at which to take the regret so far; NaN after an episode's end.
        metrics: What to compute beside the usual.
        n_jobs: How many processes.
        progress: Whether to show a bar.
        **env_kwargs: Arguments of the environment.

    Raises:
        EvaluationError: If a policy raises; what was finished before is in its ``results``.
        TypeError: If ``policies`` is not a mapping that holds a policy.
    """
    if not isinstance(policies, Mapping) or not policies:
        raise TypeError(f"`policies` must be a mapping of names to policies, got {policies!r}")
    num_episodes = checked_int("num_episodes", num_episodes)
    seed = checked_int("seed", seed, minimum=0)
    if n_jobs is not None:
        checked_int("n_jobs", n_jobs, minimum=-(2**31))  # to joblib, -1 means all processors
    if num_envs is None:  # a part for each process, if there are several
        num_envs = min(_MOST_ENVS, -(-num_episodes // num_processes(n_jobs)))
    most = checked_int("num_envs", num_envs)
    moments = tuple(sorted({checked_int("checkpoints", step) for step in checkpoints}))
    asked = (metrics,) if isinstance(metrics, str) else metrics
    more = tuple(dict.fromkeys(checked_choice("metrics", name, tuple(METRICS)) for name in asked))
    plans = {
        name: (policy if isinstance(policy, Entry) else entry_of(policy)).plan(
            env_id, moments, more, **env_kwargs
        )
        for name, policy in policies.items()
    }
    played = {}
    for name, plan in plans.items():
        episodes = "1 episode" if num_episodes == 1 else f"{num_episodes} episodes"
        played[name] = f"{_told(plan, check(plan))}; {episodes}, seed {seed}"
    starts = range(seed, seed + num_episodes, most)
    chunks = [list(range(start, min(start + most, seed + num_episodes))) for start in starts]
    tasks = [(name, chunk) for name in plans for chunk in chunks]
    finished: dict[str, list[Episodes]] = {name: [] for name in plans}
    calls = [partial(attempt, plans[name], chunk) for name, chunk in tasks]
    with (
        progress_bar(progress, len(plans) * num_episodes) as bar,
        running(calls, n_jobs) as results,
    ):
        for (name, chunk), (episodes, problem) in zip(tasks, results, strict=True):
            if problem is not None:
                where, cause = problem
                so_far = joined(finished, moments, num_episodes, played)
                hint = advice(plans[name], cause)
                raise EvaluationError(name, where - seed, cause, so_far, hint) from cause
            finished[name].append(episodes)
            bar.update(len(chunk))
    return joined(finished, moments, num_episodes, played)


def _told(plan: Plan, horizon: int | None) -> str:
    """Return the environment and its arguments in a line; long ones are cut."""
    known = {} if horizon is None else {"horizon": horizon}
    arguments = [
        f"{name}={getattr(value, '__qualname__', None) or _SHORT.repr(value)}"
        for name, value in {**known, **plan.env_kwargs}.items()
    ]
    return ", ".join([plan.env_id, *arguments])
