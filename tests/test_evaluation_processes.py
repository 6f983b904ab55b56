"""Comparisons in processes, threads and clusters give the bytes of one process; progress bars."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_evaluation import SETTINGS, TRAP, assert_all_same, assert_same, baselines
from helpers_names import EGAL, IMPROVING
from numpy.typing import NDArray

from gym_fairbandits.agents import FixedArm, RoundRobin, UniformRandom
from gym_fairbandits.evaluation import Comparison, compare, evaluate

# --- Processes, threads and clusters --------------------------------------------------------------


def parallel_case(env_id: str) -> Callable[..., Comparison]:
    setting = "improving-redrawn-noise" if env_id == IMPROVING else "egal-bernoulli"
    return partial(
        compare,
        baselines(env_id),
        env_id,
        num_episodes=11,
        num_envs=4,
        seed=5,
        checkpoints=(2, 9),
        **SETTINGS[setting][1],
    )


class Owned(RoundRobin):
    """Plays only in the thread that last reset it."""

    owner = 0

    def reset(self, seed: Any = None, mask: Any = None) -> None:
        super().reset(seed, mask)
        self.owner = threading.get_ident()

    def _act(self, observation: Any) -> NDArray[np.int64]:
        if self.owner != threading.get_ident():
            raise RuntimeError("another thread has taken this agent over")
        return super()._act(observation)


class OwnedPredictor:
    """The same with `reset` and `predict` only, as a user may write it."""

    def __init__(self) -> None:
        self.agent = Owned()

    def reset(self, seed: Any) -> None:
        self.agent.reset(seed)

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[NDArray[Any], Any]:
        return self.agent.predict(observation)


def owned_case() -> Callable[..., Comparison]:
    """Return a comparison long enough for threads to meet."""
    policies = {"owned": Owned(), "predictor": OwnedPredictor(), "random": UniformRandom()}
    return partial(compare, policies, IMPROVING, num_episodes=16, num_envs=2, horizon=200)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_two_processes_give_the_bytes_of_one(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    for env_id in (IMPROVING, EGAL):
        play = parallel_case(env_id)
        serial, parallel = play(), play(n_jobs=2)
        assert_all_same(parallel, serial)
        serial.to_csv(tmp_path / "serial.csv")
        parallel.to_csv(tmp_path / "parallel.csv")
        written = (tmp_path / "parallel.csv").read_bytes()
        assert written == (tmp_path / "serial.csv").read_bytes()
        assert written.count(b"\n") == 1 + 11 * len(serial.evaluations)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])
def test_a_dask_cluster_gives_the_bytes_of_one_process(processes: bool) -> None:
    distributed = pytest.importorskip("dask.distributed")
    joblib = pytest.importorskip("joblib")
    cluster = distributed.LocalCluster(
        n_workers=2 if processes else 1,
        threads_per_worker=1 if processes else 2,
        processes=processes,
        dashboard_address=None,
    )
    with cluster, distributed.Client(cluster) as client:
        assert len(client.ncores()) == (2 if processes else 1)
        for play in (parallel_case(IMPROVING), parallel_case(EGAL), owned_case()):
            with joblib.parallel_config(backend="dask"):
                parallel = play()
            assert_all_same(parallel, play())


def test_threads_do_not_share_an_agent() -> None:
    joblib = pytest.importorskip("joblib")
    play = owned_case()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        parallel = play()
    assert_all_same(parallel, play())


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_agents_with_large_memories_play_in_processes_too() -> None:
    # joblib hands arrays above a megabyte to its workers as read-only maps.
    agent = UniformRandom()
    play = partial(
        evaluate, agent, IMPROVING, num_arms=3, horizon=3, num_envs=700, num_episodes=1400
    )
    serial = play()  # fills a buffer per row
    assert_same(play(n_jobs=2), serial)


# --- Progress -------------------------------------------------------------------------------------

TWO = {"robin": RoundRobin(), "fixed": FixedArm(1)}


def test_a_bar_counts_the_episodes_of_all_policies(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    compare(TWO, IMPROVING, num_episodes=4, num_envs=3, progress=True, **TRAP)
    shown = capsys.readouterr()
    assert "8/8" in shown.err
    assert "episode" in shown.err
    assert shown.out == ""


def test_there_is_no_bar_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    compare(TWO, IMPROVING, num_episodes=4, **TRAP)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("total", [20, None, 0], ids=["total", "no total", "total 0"])
def test_a_user_s_bar_is_advanced_and_left_open(total: int | None) -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    with tqdm(total=total, file=io.StringIO()) as bar:
        evaluate(FixedArm(1), IMPROVING, num_episodes=5, num_envs=2, progress=bar, **TRAP)
        assert bar.n == 5
        compare(TWO, IMPROVING, num_episodes=4, num_envs=3, progress=bar, **TRAP)
        assert bar.n == 13
        assert not bar.disable  # which `close` sets
