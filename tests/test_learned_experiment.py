"""The experiment that trains: the same as by hand, again and in other processes; without sb3."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from helpers_experiments import everything

import gym_fairbandits.__main__ as cli
from gym_fairbandits.agents import Greedy, ready
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.evaluation import evaluate, mean_interval
from gym_fairbandits.experiments.learned import Learned, learner, standing, told
from gym_fairbandits.experiments.learning import (
    HELD_OUT,
    IMPROVING,
    PROBLEMS,
    Recipe,
    linear_caps,
    train,
    trained,
)
from gym_fairbandits.experiments.runner import Row, run
from gym_fairbandits.wrappers import RotatedAssignment

SIZES: dict[str, Any] = {"num_arms": 5, "horizon": 20}
TINY: dict[str, Any] = {
    **SIZES,
    "agents": "greedy,egal-ucb",
    "problems": "linear-caps",
    "ppo_horizons": "known",
    "training_seeds": 1,
    "num_episodes": 3,
    "total_steps": 1,  # one rollout
}
SMALL = Recipe(
    "EgalAssign-v0",
    total_steps=80,  # two rollouts and a half
    wrappers=(RotatedAssignment,),
    num_envs=2,
    settings={"n_steps": 16, "batch_size": 16, "n_epochs": 2, "learning_rate": 1e-3},
)


def regrets(rows: list[Row], **values: Any) -> list[float]:
    chosen = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return [row["regret"] for row in chosen]


# --- what is played -----------------------------------------------------------------------------


def test_the_paper_preset_is_both_environments_all_baselines_and_full_training() -> None:
    experiment = Learned.from_settings("paper")
    assert experiment.problems == ("linear-caps", "random-concave", "bernoulli", "gaussian")
    keys = [task.key for task in experiment.tasks()]
    assert len(set(keys)) == len(keys)
    baselines = 2 * len(ready("ImprovingBandit-v0")) + 2 * len(ready("EgalAssign-v0"))
    assert len(keys) == 4 * 2 * 3 + baselines
    assert keys[:3] == [f"linear-caps-ppo-unknown-{seed}" for seed in range(3)]
    assert "gaussian-egal-ucb" in keys
    assert "gaussian-greedy" not in keys
    for recipe in experiment.data().values():
        assert recipe["trained_for"] == recipe["total_steps"]
        assert recipe["too_few"] is False


def test_the_quick_preset_trains_too_briefly_and_says_so() -> None:
    experiment = Learned.from_settings("quick")
    for recipe in experiment.data().values():
        assert recipe["trained_for"] == 12_800
        assert recipe["total_steps"] in (300_000, 100_000)
        assert recipe["too_few"] is True


def test_sizes_change_all_instances_of_a_problem() -> None:
    plays = PROBLEMS["linear-caps"].plays(horizon=7)
    assert plays == {
        "as trained": {"instance": linear_caps, "num_arms": 5, "horizon": 7},
        "worst case": {"instance": "lower_bound", "num_arms": 5, "horizon": 7},
    }
    assert list(PROBLEMS["bernoulli"].plays()) == ["as trained"]


def test_linear_caps_stay_within_their_ranges() -> None:
    caps: list[Any] = linear_caps(np.random.default_rng(0), 2000)
    assert all(0 < cap.asymptote < 1 and 1 <= cap.ramp <= 100 for cap in caps)
    assert np.mean([cap.ramp <= 10 for cap in caps]) == pytest.approx(0.5, abs=0.05)


# --- what came of it ----------------------------------------------------------------------------


def test_a_standing_takes_the_mean_over_seeds_before_the_interval_over_episodes() -> None:
    losses = np.array([[1.0, 3.0, 8.0], [3.0, 1.0, 2.0]])
    optima = np.full((2, 3), 12.0)
    own = standing(learner("known"), losses, optima - losses, optima)
    assert own.regret == 3.0
    assert own.seeds == (4.0, 2.0)
    assert own.earned == 0.75
    assert own.told == "horizon"
    assert own.interval == mean_interval(np.array([2.0, 2.0, 5.0]))
    assert 2.0 <= own.interval[0] < 3.0 < own.interval[1] <= 5.0


def test_what_each_is_told() -> None:
    names = [learner("unknown"), learner("known"), "greedy", "egal-moss", "static-oracle"]
    assert [told(name) for name in names] == ["", "horizon", "", "horizon", "instance"]


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    folder = tmp_path_factory.mktemp("tiny")
    return folder, run(Learned.from_settings("quick", **TINY), folder, progress=False)


@pytest.mark.slow
def test_rows_are_those_of_a_training_and_an_evaluation_by_hand(
    tiny_run: tuple[Path, list[Row]],
) -> None:
    _, rows = tiny_run
    assert len(rows) == 2 * 2 * 3  # PPO and greedy, both kinds of instances, three episodes
    known: dict[str, Any] = {"horizon_known": True}
    model = train(IMPROVING, 0, 1, progress=False, instance=linear_caps, **SIZES, **known)
    for instances, instance in (("as trained", linear_caps), ("worst case", "lower_bound")):
        for policy, player in (
            (learner("known"), IMPROVING.entry(model, **known)),
            ("greedy", Greedy()),
        ):
            played = evaluate(
                player,
                "ImprovingBandit-v0",
                num_episodes=3,
                seed=HELD_OUT,
                instance=instance,
                **SIZES,
            )
            expected = played.episodes["policy_regret"].tolist()
            assert regrets(rows, policy=policy, instances=instances) == expected
    steps = {(row["policy"], row["training_seed"], row["trained_for"]) for row in rows}
    assert steps == {(learner("known"), 0, 6400), ("greedy", None, None)}


@pytest.mark.slow
def test_the_summary_and_the_figure_say_that_training_was_too_short(
    tiny_run: tuple[Path, list[Row]],
) -> None:
    _, rows = tiny_run
    experiment = Learned.from_settings("quick", **TINY)
    words = "6,400 decisions of 300,000: too few"
    lines = experiment.summary(rows).splitlines()
    assert [words in line for line in lines] == [learner("known") in line for line in lines]
    assert sum(words in line for line in lines) == 2
    figure = experiment.figure(rows)
    titles = [axis.get_title() for axis in figure.axes]
    assert len(titles) == 2
    assert all(title.endswith(f"PPO trained for {words}") for title in titles)
    listed = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    order = [own.policy for own in experiment.standings(rows)["linear-caps", "as trained"]]
    assert listed == order


def test_standings_are_sorted_and_keep_training_seeds_apart() -> None:
    experiment = Learned.from_settings("quick", **{**TINY, "training_seeds": 2})
    losses = {(learner("known"), 0): 1.0, (learner("known"), 1): 2.0, ("greedy", None): 1.2}
    rows = [
        {
            "problem": "linear-caps",
            "instances": instances,
            "policy": policy,
            "training_seed": seed,
            "trained_for": 300_000,
            "episode": episode,
            "optimum": 10.0,
            "reward": 10.0 - loss,
            "regret": loss,
        }
        for (policy, seed), loss in losses.items()
        for instances in ("as trained", "worst case")
        for episode in range(3)
    ]
    for policies in experiment.standings(rows).values():
        assert [own.policy for own in policies] == ["greedy", learner("known")]
        assert policies[1].seeds == (1.0, 2.0)
        assert policies[1].regret == 1.5
        assert policies[1].earned == pytest.approx(0.85)
    assert "too few" not in experiment.summary(rows)


def test_one_episode_is_drawn_without_an_interval() -> None:
    experiment = Learned.from_settings("quick", **{**TINY, "num_episodes": 1})
    shared = {"problem": "linear-caps", "training_seed": None, "trained_for": None}
    rows = [
        {**shared, "instances": instances, "policy": "greedy", "optimum": 10.0, "reward": 8.0}
        | {"episode": 0, "regret": 2.0}
        for instances in ("as trained", "worst case")
    ]
    assert all(
        "| greedy |  | 2 | 80.0% |" in line for line in experiment.summary(rows).split("\n")[2:]
    )
    figure = experiment.figure(rows)
    assert all(np.isfinite(axis.get_xlim()).all() for axis in figure.axes)


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(
    tiny_run: tuple[Path, list[Row]], tmp_path: Path
) -> None:
    folder, _ = tiny_run
    run(Learned.from_settings("quick", **TINY), tmp_path, jobs=2, backend="loky", progress=False)
    for name in ("results.csv", "results.parquet", "figure.png"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


# --- training -----------------------------------------------------------------------------------


def test_a_model_is_trained_once_and_plays_the_same_when_loaded(tmp_path: Path) -> None:
    path = tmp_path / "models" / "egal.zip"
    sizes: dict[str, Any] = {"num_arms": 4, "num_users": 2, "horizon": 10}
    first, record = trained(SMALL, path, 3, **sizes)
    assert record["steps"] == first.num_timesteps == 96
    written = path.stat().st_mtime_ns
    again, same = trained(SMALL, path, 3, **sizes)
    assert (same, path.stat().st_mtime_ns) == (record, written)
    results = [
        evaluate(
            SMALL.entry(model), "EgalAssign-v0", num_episodes=5, seed=HELD_OUT, **sizes
        ).episodes["policy_regret"]
        for model in (first, again, train(SMALL, 3, progress=False, **sizes))
    ]
    assert results[0].tolist() == results[1].tolist() == results[2].tolist()


def test_a_model_that_was_trained_otherwise_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "egal.zip"
    sizes: dict[str, Any] = {"num_arms": 4, "num_users": 2, "horizon": 10}
    trained(SMALL, path, 3, 32, **sizes)
    before = everything(tmp_path)
    assert sorted(before) == ["egal.json", "egal.zip"]
    refused: list[tuple[str, Callable[[], Any]]] = [
        (
            "seed 3, not 4: delete it, or choose another path",
            lambda: trained(SMALL, path, 4, 32, **sizes),
        ),
        ("total_steps 32, not 80:", lambda: trained(SMALL, path, 3, **sizes)),
        (
            r"recipe\.gamma 0\.9999, not 0\.9, env_kwargs\.horizon 10, not 11:",
            lambda: trained(replace(SMALL, gamma=0.9), path, 3, 32, **{**sizes, "horizon": 11}),
        ),
        (
            r"env_kwargs\.instance None, not 'gym_fairbandits.*\.linear_caps'",
            lambda: trained(SMALL, path, 3, 32, instance=linear_caps, **sizes),
        ),
        (
            r"recipe\.wrappers \['gym_fair.*\], not \[\]",
            lambda: trained(replace(SMALL, wrappers=()), path, 3, 32, **sizes),
        ),
    ]
    for message, again in refused:
        with pytest.raises(ValueError, match=message):
            again()
    assert everything(tmp_path) == before
    path.unlink()
    assert trained(SMALL, path, 4, 32, **sizes)[1]["seed"] == 4  # the record alone is no model


def test_a_budget_below_one_rollout_learns_nothing_rather_than_backwards() -> None:
    sizes: dict[str, Any] = {"num_arms": 4, "num_users": 2, "horizon": 10}
    models = [train(SMALL, 0, steps, progress=False, **sizes) for steps in (1, 17)]
    for model in models:
        assert model.num_timesteps == 32
    assert [models[1].lr_schedule(left) for left in (1, 0.5, 0, -31)] == [1e-3, 5e-4, 0, 0]
    first, second = (model.policy.state_dict() for model in models)
    assert all(bool((first[name] == second[name]).all()) for name in first)
    taught = train(SMALL, 0, 33, progress=False, **sizes).policy.state_dict()
    assert not all(bool((first[name] == taught[name]).all()) for name in first)


def test_the_discount_is_nearly_1_only_where_the_end_is_known() -> None:
    assert IMPROVING.discount(horizon_known=True, horizon=5) == 0.9999
    assert IMPROVING.discount(horizon_known=False) == IMPROVING.discount(horizon=5) == 0.98


# --- without the extra --------------------------------------------------------------------------


def test_the_command_line_imports_neither_torch_nor_its_trainers() -> None:
    code = (
        "import sys, gym_fairbandits.__main__, gym_fairbandits.experiments.learning as learning\n"
        "print([m for m in ('torch', 'stable_baselines3', 'sb3_contrib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_missing_is_one_line_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    for name in ("learned", "all"):  # all: not after the others, which may take hours
        words = ["experiments", "run", name, "--output", str(tmp_path / "run"), "--no-progress"]
        assert cli.main(words) == 2
        error = capsys.readouterr().err
        assert error.endswith('pip install "gym-fairbandits[sb3]"\n')
        assert "training needs the extra `sb3` (" in error
        assert len(error.splitlines()) == 1
    assert not (tmp_path / "run").exists()
    with pytest.raises(ImportError, match="training needs the extra `sb3`"):
        train(IMPROVING, 0, 1, **SIZES)


def test_what_json_cannot_hold_is_told_alike_in_every_process(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"num_arms": np.int64(4), "num_users": 2, "horizon": 10}
    for instance in (partial(two_level, high=0.9), Bernoulli([0.1, 0.2, 0.3, 0.4])):
        path = tmp_path / type(instance).__name__  # saved with the suffix of the library
        trained(SMALL, path, 3, 32, instance=instance, **sizes)
        before = everything(tmp_path)
        assert f"{path.name}.zip" in before
        trained(SMALL, path, 3, 32, instance=deepcopy(instance), **{**sizes, "num_arms": 4})
        assert everything(tmp_path) == before
    with pytest.raises(ValueError, match=r"env_kwargs\.instance"):
        trained(SMALL, tmp_path / "partial", 3, 32, instance=partial(two_level, high=0.8), **sizes)


@pytest.mark.parametrize("record", ["", "[]", '{"steps": 96}'])
def test_a_model_of_which_nothing_is_known_is_refused(record: str, tmp_path: Path) -> None:
    path = tmp_path / "egal.zip"
    path.write_bytes(b"a model")
    path.with_suffix(".json").write_text(record)
    with pytest.raises(
        ValueError, match=r"egal\.json must tell how .*egal\.zip was trained, and do"
    ):
        trained(SMALL, path, 3)
    assert path.read_bytes() == b"a model"


def two_level(
    rng: np.random.Generator, num_users: int, num_arms: int, high: float = 0.8
) -> Bernoulli:
    return Bernoulli([high] * num_users + [0.5] * (num_arms - num_users))
