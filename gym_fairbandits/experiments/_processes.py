"""Calls on other processes, of this machine or of a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["BACKENDS", "as_they_come"]

T = TypeVar("T")

BACKENDS = ("loky", "dask", "ray")


@contextmanager
def as_they_come(
    calls: Sequence[Callable[[], T]], jobs: int | None, backend: str | None
) -> Iterator[Iterator[T]]:
    """Give what ``calls`` return, each as soon as it is there.

    Args:
        calls: They must be picklable.
        jobs: See :func:`gym_fairbandits.experiments.runner.run`.
        backend: One of ``BACKENDS``, or ``None`` for what joblib says.
    """
    import joblib

    if not calls:
        yield iter(())
        return
    if backend == "ray":
        with _ray_pool(jobs) as pool:
            yield pool.imap_unordered(_call, calls, chunksize=1)
        return
    with _backend(backend, jobs):
        # One by one: a batch would keep what is finished until all of it is.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        results = parallel(joblib.delayed(call)() for call in calls)
        try:
            yield results
        finally:
            with warnings.catch_warnings():  # it says what it dropped; so does what was raised
                warnings.simplefilter("ignore", UserWarning)
                results.close()


@contextmanager
def _backend(backend: str | None, jobs: int | None) -> Iterator[None]:
    """Make a backend of joblib the current one, with a cluster behind it."""
    import joblib

    if backend == "dask":
        with _dask_client(jobs), joblib.parallel_config("dask", n_jobs=-1):
            yield
        return
    options = {} if jobs is None else {"n_jobs": jobs}
    with joblib.parallel_config(**({"backend": backend} if backend else {}), **options):
        yield


@contextmanager
def _dask_client(jobs: int | None) -> Iterator[None]:
    """Use the client that there is, else that of DASK_SCHEDULER_ADDRESS, else a local cluster."""
    import dask
    from distributed import Client, get_client

    try:
        get_client()
    except ValueError:
        address = dask.config.get("scheduler-address", None)
        workers = {
            "n_workers": None if jobs == -1 else jobs,
            "threads_per_worker": 1,
            "dashboard_address": None,
        }
        with Client(address) if address else Client(**workers):  # type: ignore[no-untyped-call]
            yield
        return
    yield


def _ray_pool(jobs: int | None) -> Any:
    """Return a pool of Ray's, on the cluster that RAY_ADDRESS names or on this machine.

    Joblib's backend of Ray runs on such a pool too, but gives results only when all are there.
    """
    from ray.util.multiprocessing import Pool

    return Pool(processes=None if jobs == -1 else jobs)


def _call(call: Callable[[], T]) -> T:
    return call()
