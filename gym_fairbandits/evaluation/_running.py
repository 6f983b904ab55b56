"""Chunks of episodes in one process or many, their errors, and a bar of the progress."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gymnasium.error import InvalidAction

from gym_fairbandits._rollout import Plan, observed, play
from gym_fairbandits.evaluation._results import Comparison

__all__ = ["EvaluationError", "advice", "attempt", "num_processes", "progress_bar", "running"]


class _ToldError(Exception):
    """What is left of an error that cannot be pickled: its type and message."""


class EvaluationError(RuntimeError):
    """A policy raised.

    Attributes:
        policy: Its name.
        episode: The episode in which it raised, from 0.
        results: What was finished before: a :class:`Comparison` of the policies so far.
    """

    def __init__(
        self,
        policy: str,
        episode: int,
        cause: Exception,
        results: Comparison,
        advice: str = "",
    ) -> None:
        """Name the policy, the episode and the cause, and give advice if there is any."""
        self._arguments = (policy, episode, cause, results, advice)
        told = str(cause) if isinstance(cause, _ToldError) else f"{type(cause).__name__}: {cause}"
        super().__init__(f"policy {policy!r} raised in episode {episode}: {told}{advice}")
        self.policy, self.episode, self.results = policy, episode, results

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments, not by the message."""
        return type(self), self._arguments


def advice(plan: Plan, cause: Exception) -> str:
    """Return what to do about an error, to be put behind its message; empty if nothing is known."""
    is_model = hasattr(plan.policy, "predict") and not hasattr(plan.policy, "act")
    if is_model and not plan.wrappers and isinstance(cause, InvalidAction):
        return "; was it trained in a wrapper? pass `Entry(model, wrappers=[...])`"
    missing = cause.args[0] if isinstance(cause, KeyError) and cause.args else None
    if not isinstance(missing, str):
        return ""
    seen = observed(plan)
    holds = f"; what is observed here is {', '.join(map(repr, seen))}"
    if is_model:
        return (
            f"{holds}: was the model trained in a wrapper, or with other arguments of the "
            "environment? `Entry(model, wrappers=[...], env_kwargs={...})` says in which"
        )
    return "" if missing in seen else f"{holds}: is the policy one for {plan.env_id}?"


def attempt(plan: Plan, seeds: list[int]) -> tuple[Any, tuple[int, Exception] | None]:
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


def num_processes(n_jobs: int | None) -> int:
    """Return how many processes joblib would use; one where it is not installed."""
    try:
        import joblib
    except ImportError:
        return 1
    return max(1, int(joblib.effective_n_jobs(n_jobs)))


@contextmanager
def running(calls: Sequence[Callable[[], Any]], n_jobs: int | None) -> Iterator[Iterator[Any]]:
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


def progress_bar(progress: bool | Any, total: int) -> Any:
    """Return what the argument ``progress`` asks for, as a context: a bar of ``total`` episodes."""
    if progress is True:
        from tqdm import tqdm

        return tqdm(total=total, unit="episode")
    return _NoBar(None if progress is False else progress)
