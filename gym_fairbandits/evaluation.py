"""Play policies on the same episodes and compare what they lose to the offline optimum.

Episode i has environment seed ``seed + i`` for every policy, and a random agent's row is seeded
with it too: results depend neither on how many environments run side by side nor on how many
processes. (Networks may round differently for batches of different sizes; the policies of
:mod:`gym_fairbandits.agents.sb3` guard against it.)
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

from gym_fairbandits._checks import checked_choice, checked_float, checked_int
from gym_fairbandits._rollout import METRICS, Episodes, Plan, check, play

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Anything with `predict` (agents, models of Stable-Baselines3), a callable from batched
# observations to actions, a class that is created from the environment that runs, or an `Entry`.
Policy: TypeAlias = Any

CONFIDENCE = 0.95
_RESAMPLES = 2000
_MOST_ENVS = 100  # side by side, unless told otherwise
_TABLED = (  # what tables show by default, where it is known
    "policy_regret",
    "competitive_ratio",
    "external_regret",
    "max_potential_gap",
    "mean_potential_gap",
    "pull_gini",
    "min_pull_share",
    "min_user_return",
    "expected_user_gap",
    "expected_jain_index",
    "expected_user_gini",
    "realized_min_user_return",
    "user_gap",
    "jain_index",
    "user_gini",
)


@dataclass(frozen=True)
class Entry:
    """A policy and what it needs around it.

    Attributes:
        policy: As for :func:`evaluate`.
        factory: Instead of ``policy``: called for each batch of episodes, with the environment
            that runs if it has a parameter ``env``.
        wrappers: The wrappers that a model was trained with, called with the scalar environment,
            innermost first.
        env_kwargs: Arguments of the environment that only this policy gets, such as
            ``{"horizon_known": True}``.
        normalize: The statistics that a model was trained with: a ``VecNormalize``, or a callable
            from batched observations to batched observations.
    """

    policy: Policy = None
    factory: Callable[..., Policy] | None = field(default=None, kw_only=True)
    wrappers: Sequence[Callable[[Any], Any]] = field(default=(), kw_only=True)
    env_kwargs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    normalize: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check that there is one policy; raises ``TypeError``."""
        if (self.policy is None) == (self.factory is None):
            raise TypeError("an `Entry` must have either a `policy` or a `factory`")
        chosen = self.policy if self.factory is None else self.factory
        if not isinstance(self.wrappers, Sequence) or isinstance(self.wrappers, str):
            raise TypeError(f"`wrappers` must be a sequence of callables, got {self.wrappers!r}")
        if not (hasattr(chosen, "predict") or callable(chosen)):
            raise TypeError(f"`policy` must have `predict` or be callable, got {chosen!r}")
        if self.normalize is not None and not (
            hasattr(self.normalize, "normalize_obs") or callable(self.normalize)
        ):
            raise TypeError(
                f"`normalize` must be a `VecNormalize` or a callable, got {self.normalize!r}"
            )

    def plan(
        self, env_id: str, checkpoints: tuple[int, ...], metrics: tuple[str, ...], **shared: Any
    ) -> Plan:
        """Return what to play; ``shared`` are the arguments of the environment for all."""
        is_factory = self.factory is not None or isinstance(self.policy, type)
        return Plan(
            policy=self.policy if self.factory is None else self.factory,
            is_factory=is_factory,
            env_id=env_id,
            env_kwargs={**shared, **self.env_kwargs},
            wrappers=tuple(self.wrappers),
            normalize=getattr(self.normalize, "normalize_obs", self.normalize),
            checkpoints=checkpoints,
            metrics=metrics,
        )


class _ToldError(Exception):
    """What is left of an error that cannot be pickled: its type and message."""


class EvaluationError(RuntimeError):
    """A policy raised.

    Attributes:
        policy: Its name.
        episode: The episode in which it raised, from 0.
        results: What was finished before: a :class:`Comparison` of the policies so far.
    """

    def __init__(self, policy: str, episode: int, cause: Exception, results: Comparison) -> None:
        """Name the policy, the episode and the cause."""
        self._arguments = (policy, episode, cause, results)
        told = str(cause) if isinstance(cause, _ToldError) else f"{type(cause).__name__}: {cause}"
        super().__init__(f"policy {policy!r} raised in episode {episode}: {told}")
        self.policy, self.episode, self.results = policy, episode, results

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments, not by the message."""
        return type(self), self._arguments


@dataclass(frozen=True)
class Evaluation:
    """What one policy did in a number of episodes.

    Attributes:
        episodes: Per metric, a value per episode; float64 arrays of shape ``(num_episodes,)``:
            ``return``, ``length``, ``policy_regret``, ``optimal_return``, ``expected_return``,
            ``competitive_ratio``, ``realized_regret``, and ``max_potential_gap`` (improving arms)
            or ``min_user_return`` (assignment: the worst-off user's expected total). If asked
            for: the keys of ``wrappers.FairnessMetrics``, of which that for what the worst-off
            user earned is ``realized_min_user_return`` here; ``external_regret``.
        checkpoints: Steps at which the regret so far was taken.
        regret_curves: That regret; float64 array of shape ``(num_episodes, num_checkpoints)``,
            NaN where an episode had ended before.
        pulls: How often each arm was played; int64 array of shape ``(num_episodes, num_arms)``.
        user_returns: Assignment: the users' expected totals; float64 array of shape
            ``(num_episodes, num_users)``; else ``None``.
        redrawn: Whether each episode had an instance of its own.
    """

    episodes: dict[str, Floats]
    checkpoints: tuple[int, ...]
    regret_curves: Floats
    pulls: Ints
    user_returns: Floats | None
    redrawn: bool = False

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the episodes."""
        return float(self.episodes[metric].mean())

    def interval(self, metric: str) -> tuple[float, float]:
        """Return a 95 % bootstrap interval of that mean."""
        return mean_interval(self.episodes[metric])

    @property
    def min_of_expectations_regret(self) -> float | None:
        """The regret of Lim, Tan, Soh: T mu* / U - min_u E[S_u], the expectation over episodes.

        The mean of ``policy_regret`` is another number: the mean over episodes of T mu* / U minus
        the worst-off user's expected total *in that episode*, a mean of minima and so never
        below under the egalitarian objective. ``None`` where there are no users, and where
        instances are redrawn: then there is no one expectation.
        """
        if self.user_returns is None or self.redrawn:
            return None
        return float(self.episodes["optimal_return"].mean() - self.user_returns.mean(axis=0).min())


@dataclass(frozen=True)
class Comparison:
    """Evaluations of several policies on the same episodes.

    Attributes:
        evaluations: By the policy's name, in the order given.
    """

    evaluations: dict[str, Evaluation]

    def __getitem__(self, name: str) -> Evaluation:
        """Return the evaluation of a policy."""
        return self.evaluations[name]

    def difference(
        self, name: str, other: str, metric: str = "policy_regret"
    ) -> tuple[float, tuple[float, float]]:
        """Return the mean of ``name - other`` over episodes, paired, and its 95 % interval."""
        values = self[name].episodes[metric] - self[other].episodes[metric]
        return float(values.mean()), mean_interval(values)

    def table(self, metrics: Sequence[str] | None = None) -> str:
        """Return a Markdown table: per policy, means and 95 % bootstrap intervals.

        Args:
            metrics: Names in ``Evaluation.episodes``, or ``"min_of_expectations_regret"`` (no
                interval; empty where it is not defined). By default the policy regret, the
                competitive ratio, and what more is known.
        """
        metrics = (
            [metrics] if isinstance(metrics, str) else list(metrics or self._default_metrics())
        )
        runs = self.evaluations.values()
        known = set.intersection(*(set(run.episodes) for run in runs)) if runs else set(metrics)
        unknown = set(metrics) - known - {"min_of_expectations_regret"}
        if unknown:
            raise ValueError(f"`metrics` must be among {sorted(known)}, got {sorted(unknown)}")
        lines = [
            ["policy", *(metric.replace("_", " ") for metric in metrics)],
            ["---", *["---:"] * len(metrics)],
        ]
        for name, run in self.evaluations.items():
            lines.append([_escaped(name), *(_cell(run, metric) for metric in metrics)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _default_metrics(self) -> list[str]:
        runs = self.evaluations.values()
        if not runs:
            return []
        metrics = [metric for metric in _TABLED if all(metric in run.episodes for run in runs)]
        if any(run.min_of_expectations_regret is not None for run in runs):
            metrics.append("min_of_expectations_regret")
        return metrics

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per policy and episode (needs the extra ``eval``)."""
        import pandas as pd

        frames = [pd.DataFrame({"policy": [], "episode": []})] if not self.evaluations else []
        for name, run in self.evaluations.items():
            columns: dict[str, Any] = {"policy": name, "episode": np.arange(len(run.regret_curves))}
            columns.update(run.episodes)
            columns.update({f"pulls_{arm}": run.pulls[:, arm] for arm in range(run.pulls.shape[1])})
            if run.user_returns is not None:
                users = range(run.user_returns.shape[1])
                columns.update({f"user_return_{user}": run.user_returns[:, user] for user in users})
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_pandas` to a file."""
        self.to_pandas().to_csv(path, index=False)

    def plot(self, axis: Any = None) -> Figure:
        """Draw the regret over time with 95 % bands (needs ``checkpoints`` and ``eval``).

        Args:
            axis: The axes of matplotlib to draw on; a new figure by default.

        Raises:
            ValueError: If nothing was taken at checkpoints, or no policy has finished.
        """
        if not self.evaluations:
            raise ValueError("`evaluations` must hold at least one policy for a plot, got none")
        if not all(run.checkpoints for run in self.evaluations.values()):
            raise ValueError("`checkpoints` must hold at least one step for a plot, got none")
        import matplotlib.pyplot as plt

        if axis is None:
            axis = plt.subplots(figsize=(5, 4), layout="constrained")[1]
        styles = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]  # told apart without colour too
        for number, (name, run) in enumerate(self.evaluations.items()):
            low, high = np.array([mean_interval(values) for values in run.regret_curves.T]).T
            style = styles[(number + number // 10) % len(styles)]  # colours repeat after ten
            means = run.regret_curves.mean(axis=0)
            (line,) = axis.plot(run.checkpoints, means, linestyle=style, label=name)
            color = line.get_color()
            axis.fill_between(run.checkpoints, low, high, alpha=0.2, color=color, linewidth=0)
        axis.set(xlabel="steps", ylabel="policy regret", yscale="symlog")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize="small")
        figure: Figure = axis.figure
        return figure


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
    entry = policy if isinstance(policy, Entry) else _entry(policy, wrappers, normalize)
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


def _entry(
    policy: Policy, wrappers: Sequence[Callable[[Any], Any]] = (), normalize: Any = None
) -> Entry:
    if policy is None:
        raise TypeError("`policy` must have `predict` or be callable, got None")
    return Entry(policy, wrappers=wrappers, normalize=normalize)


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
        num_envs = min(_MOST_ENVS, -(-num_episodes // _num_processes(n_jobs)))
    most = checked_int("num_envs", num_envs)
    moments = tuple(sorted({checked_int("checkpoints", step) for step in checkpoints}))
    asked = (metrics,) if isinstance(metrics, str) else metrics
    more = tuple(dict.fromkeys(checked_choice("metrics", name, tuple(METRICS)) for name in asked))
    plans = {
        name: (policy if isinstance(policy, Entry) else _entry(policy)).plan(
            env_id, moments, more, **env_kwargs
        )
        for name, policy in policies.items()
    }
    for plan in plans.values():
        check(plan)
    starts = range(seed, seed + num_episodes, most)
    chunks = [list(range(start, min(start + most, seed + num_episodes))) for start in starts]
    tasks = [(name, chunk) for name in plans for chunk in chunks]
    finished: dict[str, list[Episodes]] = {name: [] for name in plans}
    calls = [partial(_attempt, plans[name], chunk) for name, chunk in tasks]
    with _bar(progress, len(plans) * num_episodes) as bar, _running(calls, n_jobs) as results:
        for (name, chunk), (episodes, problem) in zip(tasks, results, strict=True):
            if problem is not None:
                where, cause = problem
                so_far = _comparison(finished, moments, num_episodes)
                raise EvaluationError(name, where - seed, cause, so_far) from cause
            finished[name].append(episodes)
            bar.update(len(chunk))
    return _comparison(finished, moments, num_episodes)


def _attempt(plan: Plan, seeds: list[int]) -> tuple[Any, tuple[int, Exception] | None]:
    """Play a chunk; if that raises, find the episode by playing them one by one."""
    try:
        return play(plan, seeds), None
    except Exception as error:
        if len(seeds) > 1:
            for seed in seeds:
                try:
                    play(plan, [seed])
                except Exception as single:
                    return None, (seed, _portable(single))
        return None, (seeds[0], _portable(error))


def _portable(error: Exception) -> Exception:
    """Return an error that survives the way back from another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return _ToldError(f"{type(error).__name__}: {error}")
    return error


def _num_processes(n_jobs: int | None) -> int:
    try:
        import joblib
    except ImportError:
        return 1
    return max(1, int(joblib.effective_n_jobs(n_jobs)))


@contextmanager
def _running(calls: Sequence[Callable[[], Any]], n_jobs: int | None) -> Iterator[Iterator[Any]]:
    """Give the results in order, as they come; through joblib where it is installed."""
    try:
        import joblib
    except ImportError:
        if n_jobs not in (None, 1):
            raise
        yield (call() for call in calls)
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    results = parallel(joblib.delayed(call)() for call in calls)
    try:
        yield results
    finally:
        with warnings.catch_warnings():  # it says what it dropped; so does the error that is raised
            warnings.simplefilter("ignore", UserWarning)
            results.close()


class _NoBar:
    """Stands in for a bar where none is wanted, and keeps a user's own bar open."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def update(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)


def _bar(progress: bool | Any, total: int) -> Any:
    if progress is True:
        from tqdm import tqdm

        return tqdm(total=total, unit="episode")
    return _NoBar(None if progress is False else progress)


def _comparison(
    finished: dict[str, list[Episodes]], checkpoints: tuple[int, ...], num_episodes: int
) -> Comparison:
    """Put the chunks of the policies that played all their episodes together."""
    evaluations = {}
    for name, chunks in finished.items():
        if sum(len(chunk.regret_curves) for chunk in chunks) == num_episodes:
            evaluations[name] = Evaluation(
                {
                    metric: np.concatenate([chunk.metrics[metric] for chunk in chunks])
                    for metric in chunks[0].metrics
                },
                checkpoints,
                np.concatenate([chunk.regret_curves for chunk in chunks]),
                np.concatenate([chunk.pulls for chunk in chunks]),
                None
                if chunks[0].user_returns is None
                else np.concatenate([np.asarray(chunk.user_returns) for chunk in chunks]),
                chunks[0].redrawn,
            )
    return Comparison(evaluations)


def mean_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return a bootstrap confidence interval of the mean, the same at every call.

    Args:
        values: float64 array of shape ``(n,)``.
        confidence: The level, between 0 and 1.

    Raises:
        TypeError: If ``confidence`` is not a real number.
        ValueError: If it does not lie between 0 and 1.
    """
    if not 0 < checked_float("confidence", confidence) < 1:
        raise ValueError(f"`confidence` must lie between 0 and 1, got {confidence}")
    if len(values) < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
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


def _escaped(name: str) -> str:
    """Return a policy's name as a cell of a Markdown table."""
    return " ".join(str(name).split()).replace("|", "\\|")


def _cell(run: Evaluation, metric: str) -> str:
    if metric == "min_of_expectations_regret":
        value = run.min_of_expectations_regret
        return "" if value is None else _number(value)
    low, high = run.interval(metric)
    return f"{_number(run.mean(metric))} [{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    """Return a number as tables show it: a decimal from 10 on, else two."""
    rounded = round(value, 2) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{value:.1f}" if abs(rounded) >= 10 else f"{rounded:.2f}"
