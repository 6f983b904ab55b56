"""One evaluation for any policy: known answers, the same in any batch, process or wrapper."""

from __future__ import annotations

import csv
import io
import math
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, NameNotFound
from gymnasium.wrappers import FlattenObservation
from helpers_agents import (
    EGAL,
    EGAL_AGENTS,
    EGAL_ORACLES,
    IMPROVING,
    IMPROVING_AGENTS,
    IMPROVING_ORACLES,
)
from helpers_envs import assert_identical
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike, NDArray
from scipy.stats import bootstrap

from gym_fairbandits.agents import (
    EgalUCB,
    FixedArm,
    OracleArm,
    OracleRotation,
    RoundRobin,
    StaticOracle,
    UniformRandom,
)
from gym_fairbandits.arms import Arms, Bernoulli, Gaussian
from gym_fairbandits.evaluation import (
    Comparison,
    Entry,
    Evaluation,
    EvaluationError,
    compare,
    evaluate,
    mean_interval,
)
from gym_fairbandits.wrappers import PolicyRegret, RankedAssignment, SequentialAssignment

ROOT = Path(__file__).resolve().parents[1]
Kwargs = dict[str, Any]

SETTINGS: dict[str, tuple[str, Kwargs]] = {
    "improving-redrawn-noise": (IMPROVING, {"num_arms": 4, "noise_std": 0.25, "horizon": 9}),
    "improving-fixed": (
        IMPROVING,
        {"instance": "early_vs_late", "horizon": 13, "horizon_known": True},
    ),
    "egal-bernoulli": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 13}),
    "egal-gaussian-shared": (
        EGAL,
        {
            "instance": {"name": "gaussian", "variance": 0.1},
            "num_users": 4,
            "num_arms": 5,
            "capacity": 2,
            "objective": "utilitarian",
            "horizon": 11,
        },
    ),
}
# Means that floating point holds exactly, best first: arms 0 and 1 of 4 make mu* = 1.25.
DYADIC = [0.75, 0.5, 0.25, 0.125]


def baselines(env_id: str) -> dict[str, Any]:
    """Return every baseline as a user passes it: agents as objects, oracles as classes."""
    plain = IMPROVING_AGENTS if env_id == IMPROVING else EGAL_AGENTS
    oracles = IMPROVING_ORACLES if env_id == IMPROVING else EGAL_ORACLES
    return {**{name: make() for name, make in plain.items()}, **oracles}


every_baseline = pytest.mark.parametrize(
    ("setting", "name"),
    [(setting, name) for setting, (env_id, _) in SETTINGS.items() for name in baselines(env_id)],
)


def by_hand(
    env_id: str, policy: Any, seeds: Sequence[int], checkpoints: Sequence[int], kwargs: Kwargs
) -> Evaluation:
    """Play a baseline in one scalar environment, an episode after the other."""
    env: Any = PolicyRegret(gym.make(env_id, **kwargs))
    agent = policy(env) if isinstance(policy, type) else policy
    episodes: list[dict[str, Any]] = []
    curves, pulls = [], []
    for seed in seeds:
        agent.reset(seed=[seed])
        observation, _ = env.reset(seed=seed)
        total, length, regrets, done = 0.0, 0, dict.fromkeys(checkpoints, math.nan), False
        while not done:
            observation, reward, terminated, truncated, info = env.step(agent.act(observation))
            total += reward
            length += 1
            if length in regrets:
                regrets[length] = env.regret()
            done = terminated or truncated
        kept = {name: value for name, value in info.items() if name != "user_rewards"}
        episodes.append({"return": total, "length": float(length), **kept})
        if env_id == EGAL:
            episodes[-1]["min_user_return"] = float(min(kept["expected_user_returns"]))
        else:
            episodes[-1]["max_potential_gap"] = float(max(env.unwrapped.potential_gaps()))
        curves.append(list(regrets.values()))
        pulls.append(env.unwrapped.pulls)
    users = None
    if env_id == EGAL:
        users = np.array([one.pop("expected_user_returns") for one in episodes])
    metrics = {name: np.array([one[name] for one in episodes]) for name in episodes[0]}
    redrawn = kwargs.get("instance") != "early_vs_late"  # the one fixed instance of SETTINGS
    return Evaluation(
        metrics, tuple(checkpoints), np.array(curves), np.array(pulls), users, redrawn
    )


def assert_same(actual: Evaluation, expected: Evaluation) -> None:
    """Assert that two evaluations agree in every bit."""
    assert_identical(vars(actual), vars(expected), "evaluation")


def assert_all_same(actual: Comparison, expected: Comparison) -> None:
    assert list(actual.evaluations) == list(expected.evaluations)
    for name, evaluation in expected.evaluations.items():
        assert_same(actual[name], evaluation)


def made(columns: dict[str, ArrayLike], users: ArrayLike | None = None) -> Evaluation:
    """Return an evaluation with these metrics and nothing else of interest."""
    episodes = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    count = len(next(iter(episodes.values())))
    episodes.setdefault("optimal_return", np.full(count, 10.0))
    pulls = np.zeros((count, 2), dtype=np.int64)
    returns = None if users is None else np.array(users, dtype=np.float64)
    return Evaluation(episodes, (), np.zeros((count, 0)), pulls, returns)


# --- The same episodes, however they are batched -------------------------------------------------


@every_baseline
def test_baselines_equal_a_loop_by_hand_in_every_batch_size(setting: str, name: str) -> None:
    env_id, kwargs = SETTINGS[setting]
    policy = baselines(env_id)[name]
    episodes, seed, moments = 67, 11, (1, 5, kwargs["horizon"], 40)
    expected = by_hand(env_id, policy, range(seed, seed + episodes), moments, kwargs)
    for num_envs in (1, 3, 64):  # the last chunks of 3 and 64 are not full
        assert_same(
            evaluate(
                policy,
                env_id,
                num_episodes=episodes,
                seed=seed,
                num_envs=num_envs,
                checkpoints=moments,
                **kwargs,
            ),
            expected,
        )


@every_baseline
def test_wrapped_rows_equal_native_rows(setting: str, name: str) -> None:
    env_id, kwargs = SETTINGS[setting]
    policy = baselines(env_id)[name]
    play = partial(evaluate, policy, env_id, num_episodes=7, checkpoints=(2, 9), **kwargs)
    assert_same(play(wrappers=[gym.Wrapper], num_envs=3), play())


def test_episode_i_is_seeded_with_seed_plus_i() -> None:
    play = partial(evaluate, UniformRandom(), IMPROVING, num_arms=3, noise_std=0.5, horizon=9)
    early, late = play(seed=3, num_episodes=8), play(seed=6, num_episodes=5)
    for metric, values in late.episodes.items():
        assert_array_equal(values, early.episodes[metric][3:])
    assert_array_equal(late.pulls, early.pulls[3:])
    assert len(np.unique(early.episodes["optimal_return"])) == 8


def test_every_policy_of_a_comparison_plays_the_same_episodes() -> None:
    policies = {"first": FixedArm(0), "random": UniformRandom(), "oracle": OracleArm}
    kwargs: Kwargs = {"num_arms": 3, "noise_std": 0.5, "horizon": 9, "num_episodes": 11}
    comparison = compare(policies, IMPROVING, num_envs=4, checkpoints=(3,), **kwargs)
    assert list(comparison.evaluations) == list(policies)
    for name, policy in policies.items():
        assert_array_equal(
            comparison[name].episodes["optimal_return"],
            comparison["first"].episodes["optimal_return"],
        )
        assert_same(comparison[name], evaluate(policy, IMPROVING, checkpoints=(3,), **kwargs))


def test_policies_meet_the_same_noise() -> None:
    twins = [{"family": "constant", "value": 0.5}] * 2
    comparison = compare(
        {"left": FixedArm(0), "right": FixedArm(1)},
        IMPROVING,
        instance=twins,
        noise_std=1.0,
        horizon=5,
        num_episodes=6,
    )
    left, right = (comparison[name].episodes["return"] for name in ("left", "right"))
    assert_array_equal(left, right)
    assert len(np.unique(left)) == 6


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_time_limits_hold_and_oracles_know_them(wrappers: Sequence[Any]) -> None:
    run = evaluate(
        OracleArm,
        IMPROVING,
        instance="early_vs_late",
        max_episode_steps=5,
        num_episodes=3,
        wrappers=wrappers,
    )
    assert run.episodes["length"].tolist() == [5.0] * 3
    assert run.pulls.tolist() == [[5, 0]] * 3  # 1/4 + 4/2 against 15/40
    assert run.episodes["optimal_return"].tolist() == [2.25] * 3
    assert run.episodes["policy_regret"].tolist() == [0.0] * 3


# --- Processes, threads and clusters -------------------------------------------------------------


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


@pytest.fixture
def loky() -> Iterator[None]:
    """End the worker processes when the test ends."""
    executors = pytest.importorskip("joblib.externals.loky")
    yield
    executors.get_reusable_executor().shutdown(wait=True)


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


# --- What a policy may be ------------------------------------------------------------------------

IMPROVING_PAIR: Kwargs = {"instance": "early_vs_late", "horizon": 100, "num_episodes": 2}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (OracleArm, 80.5),  # 820/40 + 60
        (Entry(OracleArm), 80.5),
        (Entry(factory=OracleArm), 80.5),
        (Entry(factory=partial(OracleArm, steps=1)), 49.75),  # 1/4 + 99/2: the early arm
        (Entry(factory=lambda env: FixedArm(env.single_action_space.n - 1)), 80.5),
        (Entry(factory=FixedArm), 49.75),
        (Entry(factory=lambda: FixedArm(1)), 80.5),
        (FixedArm, 49.75),
        (FixedArm(1), 80.5),
        (Entry(FixedArm(1)), 80.5),
        (lambda observation: np.ones(len(observation["pulls"]), dtype=np.int32), 80.5),
    ],
)
@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_agents_classes_factories_and_callables_play(
    policy: Any, expected: float, wrappers: Sequence[Any]
) -> None:
    if isinstance(policy, Entry):
        policy = Entry(policy.policy, factory=policy.factory, wrappers=wrappers)
        run = evaluate(policy, IMPROVING, **IMPROVING_PAIR)
    else:
        run = evaluate(policy, IMPROVING, wrappers=wrappers, **IMPROVING_PAIR)
    assert_allclose(run.episodes["expected_return"], [expected] * 2, rtol=1e-14)
    assert_allclose(run.episodes["policy_regret"], [80.5 - expected] * 2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_egalitarian_oracles_reach_their_known_regrets(wrappers: Sequence[Any]) -> None:
    comparison = compare(
        {
            "rotation": Entry(OracleRotation, wrappers=wrappers),
            "static": Entry(StaticOracle, wrappers=wrappers),
        },
        EGAL,
        instance=Bernoulli(DYADIC),
        num_users=2,
        horizon=12,
        num_episodes=5,
        num_envs=2,
    )
    rotation, static = comparison["rotation"], comparison["static"]
    assert rotation.user_returns is not None
    assert rotation.user_returns.tolist() == [[7.5, 7.5]] * 5
    assert rotation.episodes["policy_regret"].tolist() == [0.0] * 5
    assert static.user_returns is not None
    assert static.user_returns.tolist() == [[9.0, 6.0]] * 5
    assert static.episodes["policy_regret"].tolist() == [1.5] * 5  # T (mu* / U - mu_U)
    assert static.episodes["min_user_return"].tolist() == [6.0] * 5
    assert static.pulls.tolist() == [[12, 12, 0, 0]] * 5


def test_a_callable_gets_observations_and_nothing_else() -> None:
    seen: list[list[str]] = []

    def rarest(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        seen.append(sorted(observation))
        fewest: NDArray[np.int64] = observation["pulls"].argmin(axis=1)
        return fewest

    play: Any = partial(
        compare, env_id=IMPROVING, num_arms=4, horizon=10, num_episodes=5, num_envs=2
    )
    comparison = play({"callable": rarest, "agent": RoundRobin()})
    assert_same(comparison["callable"], comparison["agent"])
    assert seen == [["last_increment", "last_reward", "pulls", "reward_sum"]] * 30


class Recurrent:
    """Arm t mod k: t is kept in the state that the evaluation carries."""

    calls = 0

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[NDArray[np.int64], Any]:
        rows, num_arms = observation["pulls"].shape
        self.calls += 1
        assert deterministic is True
        assert episode_start.dtype == np.bool_
        assert episode_start.tolist() == [state is None] * rows
        counted = np.zeros(rows, dtype=np.int64) if state is None else state
        assert_array_equal(counted, observation["pulls"].sum(axis=1))
        return counted % num_arms, counted + 1


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_recurrent_state_is_carried_and_starts_anew_with_each_chunk(
    wrappers: Sequence[Any],
) -> None:
    policy = Recurrent()
    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=3, horizon=10, num_episodes=7)
    assert_same(play(policy, num_envs=3, wrappers=wrappers), play(RoundRobin()))
    assert policy.calls == 3 * 10


class LowestFree:
    """The lowest arm that the masks allow."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[NDArray[np.int64], None]:
        assert action_masks.dtype == np.bool_
        assert_array_equal(action_masks, observation["taken"] == 0)
        return action_masks.argmax(axis=1), None


@pytest.mark.parametrize("num_envs", [1, 3])
def test_masks_reach_policies_that_take_them(num_envs: int) -> None:
    run = evaluate(
        LowestFree(),
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=3,
        horizon=4,
        num_episodes=5,
        num_envs=num_envs,
        wrappers=[partial(SequentialAssignment, strict=True)],
    )
    assert run.user_returns is not None
    assert run.user_returns.tolist() == [[3.0, 2.0, 1.0]] * 5  # user u always had arm u
    assert run.pulls.tolist() == [[4, 4, 4, 0]] * 5


class Unmasked:
    """Round robin that would take masks, if there were any."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = "none given",
    ) -> tuple[NDArray[Any], Any]:
        assert action_masks == "none given"
        return RoundRobin().predict(observation, state)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_no_masks_are_passed_where_the_environment_has_none(wrappers: Sequence[Any]) -> None:
    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=3, horizon=4, num_episodes=2)
    assert_same(play(Unmasked(), wrappers=wrappers), play(RoundRobin()))


def test_action_wrappers_translate() -> None:
    def scores(observation: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        assert observation["pulls"].shape[1:] == (4,)
        return np.array([[-1, 0, 1, 0]] * len(observation["pulls"]), dtype=np.float32)

    run = evaluate(
        scores,
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=2,
        horizon=4,
        num_episodes=3,
        wrappers=[RankedAssignment],
    )
    assert run.pulls.tolist() == [[0, 4, 4, 0]] * 3
    assert run.user_returns is not None
    assert run.user_returns.tolist() == [[1.0, 2.0]] * 3  # user 0 the best score, then arm 1


def test_wrappers_apply_innermost_first() -> None:
    made_of: list[tuple[str, Any, Any]] = []

    def layer(name: str, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        wrapped: gym.Env[Any, Any] = gym.Wrapper(env)
        made_of.append((name, env, wrapped))
        return wrapped

    wrappers = [partial(layer, "inner"), partial(layer, "outer")]
    evaluate(FixedArm(0), IMPROVING, num_episodes=2, horizon=2, wrappers=wrappers)
    assert [name for name, _, _ in made_of] == ["inner", "outer"] * 2
    for (_, _, inner), (_, around, _) in zip(made_of[::2], made_of[1::2], strict=True):
        assert around is inner


def test_an_entry_has_environment_arguments_of_its_own() -> None:
    left: list[list[int]] = []

    def aware(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        left.append(observation["remaining"].ravel().tolist())
        return np.ones(len(observation["pulls"]), dtype=np.int64)

    def unaware(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        assert "remaining" not in observation
        return np.ones(len(observation["pulls"]), dtype=np.int64)

    comparison = compare(
        {"aware": Entry(aware, env_kwargs={"horizon_known": True}), "unaware": unaware},
        IMPROVING,
        instance="early_vs_late",
        horizon=3,
        horizon_known=False,
        num_episodes=2,
    )
    assert left == [[3, 3], [2, 2], [1, 1]]
    assert_same(comparison["aware"], comparison["unaware"])


def test_an_observation_normaliser_may_be_a_callable() -> None:
    def doubled(observation: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: 2 * values for name, values in observation.items()}

    seen: list[int] = []

    def policy(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        seen.append(int(observation["pulls"].sum()))
        return np.zeros(len(observation["pulls"]), dtype=np.int64)

    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=2, horizon=3, num_episodes=1)
    play(policy, normalize=doubled)
    play(policy, normalize=doubled, wrappers=[gym.Wrapper])
    play(Entry(policy, normalize=doubled))
    play(policy)
    assert seen == [0, 2, 4] * 3 + [0, 1, 2]


# --- Models of Stable-Baselines3 -----------------------------------------------------------------

SMALL: Kwargs = {"num_arms": 3, "noise_std": 3.0, "horizon": 12}
TINY: Kwargs = {"n_steps": 16, "batch_size": 16, "device": "cpu", "seed": 0}


def decided(model: Any, factor: float = 100) -> Any:
    """Return an untrained model, its logits spread so that no two of them nearly tie."""
    torch: Any = pytest.importorskip("torch")
    with torch.no_grad():
        model.policy.action_net.weight.mul_(factor)
    return model


def pulls_by_hand(
    env: gym.Env[Any, Any], choose: Callable[[Any, bool], Any], seeds: Sequence[int]
) -> list[list[int]]:
    """Return the pulls of some episodes; ``choose`` hears whether an episode begins."""
    pulls = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        begins, done = True, False
        while not done:
            observation, _, terminated, truncated, _ = env.step(choose(observation, begins))
            begins, done = False, terminated or truncated
        pulls.append(env.unwrapped.pulls.tolist())  # type: ignore[attr-defined]
    return pulls


@pytest.mark.parametrize(
    ("kind", "wrappers"),
    [("MultiInputPolicy", []), ("MlpPolicy", [FlattenObservation])],
    ids=["dict", "flat"],
)
def test_untrained_ppo_plays_as_by_hand(kind: str, wrappers: list[Any], tmp_path: Path) -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    env: gym.Env[Any, Any] = gym.make(IMPROVING, **SMALL)
    for wrapper in wrappers:
        env = wrapper(env)
    model = decided(sb3.PPO(kind, env, **TINY))
    expected = pulls_by_hand(
        env, lambda seen, _: model.predict(seen, deterministic=True)[0], range(20, 25)
    )
    assert np.ptp(expected, axis=0).any(), "else it hears nothing of the episode"
    play: Any = partial(
        evaluate, env_id=IMPROVING, num_episodes=5, seed=20, wrappers=wrappers, **SMALL
    )
    run = play(model, num_envs=1)
    assert run.pulls.tolist() == expected
    assert_same(play(model, num_envs=3), run)
    model.save(tmp_path / "model")
    assert_same(play(sb3.PPO.load(tmp_path / "model", device="cpu"), num_envs=1), run)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_a_trained_model_plays_in_processes_too() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MultiInputPolicy", gym.make(IMPROVING, **SMALL), **TINY)
    decided(model.learn(32))
    play = partial(evaluate, model, IMPROVING, num_episodes=6, num_envs=3, **SMALL)
    assert_same(play(n_jobs=2), play())


def test_recurrent_ppo_plays_as_by_hand() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    env = gym.make(IMPROVING, **SMALL)
    model = decided(contrib.RecurrentPPO("MultiInputLstmPolicy", env, **TINY), 1e4)
    state: Any = None

    def choose(observation: Any, begins: bool, forgetful: bool = False) -> Any:
        nonlocal state
        action, state = model.predict(
            observation,
            state=None if begins or forgetful else state,
            episode_start=np.array([begins]),
            deterministic=True,
        )
        return action

    expected = pulls_by_hand(env, choose, range(4))
    assert expected != pulls_by_hand(env, partial(choose, forgetful=True), range(4))
    run = evaluate(model, IMPROVING, num_episodes=4, num_envs=1, **SMALL)
    assert run.pulls.tolist() == expected


def test_maskable_ppo_never_takes_a_taken_arm() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    kwargs: Kwargs = {"num_users": 3, "num_arms": 4, "horizon": 8}
    strict = partial(SequentialAssignment, strict=True)
    env = strict(gym.make(EGAL, **kwargs))
    model = decided(contrib.MaskablePPO("MultiInputPolicy", env, **TINY))

    def choose(observation: Any, _: bool) -> Any:
        masks = env.action_masks()
        return model.predict(observation, deterministic=True, action_masks=masks)[0]

    expected = pulls_by_hand(env, choose, range(5))
    play: Any = partial(evaluate, env_id=EGAL, num_episodes=5, wrappers=[strict], **kwargs)
    run = play(model, num_envs=1)
    assert run.pulls.tolist() == expected
    assert run.pulls.sum(axis=1).tolist() == [24] * 5
    assert_same(play(model, num_envs=4), run)
    with pytest.raises(EvaluationError, match="InvalidAction"):  # without its masks it does
        play(lambda seen: model.predict(seen, deterministic=True)[0])


def test_statistics_of_vec_normalize_are_applied_and_left_alone() -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
    envs = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: gym.make(IMPROVING, **SMALL)]))
    envs.seed(0)
    envs.reset()
    for step in range(30):
        envs.step(np.array([step % 3]))
    model = decided(sb3.PPO("MultiInputPolicy", envs, **TINY))
    before = pickle.dumps(envs.obs_rms)

    def choose(observation: Any, _: bool) -> Any:
        return model.predict(envs.normalize_obs(observation), deterministic=True)[0]

    env = gym.make(IMPROVING, **SMALL)
    expected = pulls_by_hand(env, choose, range(6))
    plain = pulls_by_hand(env, lambda seen, _: model.predict(seen, deterministic=True)[0], range(6))
    assert expected != plain
    play: Any = partial(compare, env_id=IMPROVING, num_episodes=6, num_envs=1, **SMALL)
    comparison = play({"normalised": Entry(model, normalize=envs), "plain": model})
    assert comparison["normalised"].pulls.tolist() == expected
    assert comparison["plain"].pulls.tolist() == plain
    run = evaluate(model, IMPROVING, normalize=envs, num_episodes=6, num_envs=1, **SMALL)
    assert_same(run, comparison["normalised"])
    assert pickle.dumps(envs.obs_rms) == before


# --- Curves and ends -----------------------------------------------------------------------------


def trap_regret(steps: int) -> float:
    """Return the regret of the constant arm of Example A.2 after some steps."""
    rising = sum(min(n / 10, 1.0) for n in range(1, steps + 1))
    return max(rising, steps / 10) - steps / 10


class EndsEarly(gym.Wrapper[Any, Any, Any, Any]):
    """Ends the episode of seed s after 4 + 3 (s mod 3) steps."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        assert seed is not None
        self.left = 4 + 3 * (seed % 3)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.left -= 1
        return observation, reward, terminated, truncated or self.left == 0, info


class Twice(gym.Wrapper[Any, Any, Any, Any]):
    """Plays every action twice."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        first = self.env.step(action)
        if first[2] or first[3]:
            return first
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(first[1]) + float(reward), terminated, truncated, info


TRAP: Kwargs = {"instance": "policy_vs_external", "horizon": 20}


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_checkpoints_hold_the_regret_of_that_many_steps(wrappers: Sequence[Any]) -> None:
    run = evaluate(
        FixedArm(1),
        IMPROVING,
        num_episodes=2,
        checkpoints=[20, 1, 25, *np.array([10, 10], dtype=np.int32)],
        wrappers=wrappers,
        **TRAP,
    )
    assert run.checkpoints == (1, 10, 20, 25)
    assert run.regret_curves.shape == (2, 4)
    assert_allclose(run.regret_curves, [[0, 4.5, 13.5, math.nan]] * 2, rtol=1e-14, atol=1e-15)
    assert_array_equal(run.regret_curves[:, 2], run.episodes["policy_regret"])
    assert run.episodes["length"].tolist() == [20.0] * 2


def test_no_checkpoints_no_curves() -> None:
    run = evaluate(FixedArm(1), IMPROVING, num_episodes=3, **TRAP)
    assert run.checkpoints == ()
    assert run.regret_curves.shape == (3, 0)


@pytest.mark.parametrize("num_envs", [1, 3, 64])
def test_rows_that_end_apart_are_judged_by_their_own_steps(num_envs: int) -> None:
    run = evaluate(
        FixedArm(1), IMPROVING, num_episodes=7, num_envs=num_envs, wrappers=[EndsEarly], **TRAP
    )
    lengths = [4, 7, 10, 4, 7, 10, 4]
    assert run.episodes["length"].tolist() == lengths
    assert run.pulls.tolist() == [[0, length] for length in lengths]
    assert_allclose(run.episodes["return"], [length / 10 for length in lengths], rtol=1e-14)
    assert_allclose(run.episodes["policy_regret"], [trap_regret(k) for k in lengths], rtol=1e-13)


@pytest.mark.parametrize("num_envs", [1, 3, 64])
def test_rows_that_end_apart_have_curves_up_to_their_own_ends(num_envs: int) -> None:
    run = evaluate(
        FixedArm(1),
        IMPROVING,
        num_episodes=4,
        num_envs=num_envs,
        wrappers=[EndsEarly],
        checkpoints=(4, 5, 10),
        **TRAP,
    )
    four, five, ten = (trap_regret(steps) for steps in (4, 5, 10))
    nan = math.nan
    expected = [[four, nan, nan], [four, five, nan], [four, five, ten], [four, nan, nan]]
    assert_allclose(run.regret_curves, expected, rtol=1e-13)


def test_checkpoints_count_the_environment_s_steps_under_wrappers_that_skip() -> None:
    run = evaluate(
        FixedArm(1), IMPROVING, num_episodes=2, wrappers=[Twice], checkpoints=(5, 6, 20), **TRAP
    )
    expected = [[trap_regret(5), trap_regret(6), trap_regret(20)]] * 2
    assert_allclose(run.regret_curves, expected, rtol=1e-13)


def test_checkpoints_count_the_environment_s_steps_under_wrappers_that_wait() -> None:
    run = evaluate(
        LowestFree(),
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=2,
        horizon=6,
        num_episodes=2,
        wrappers=[SequentialAssignment],
        checkpoints=(1, 4, 6),
    )
    # User 1 always has arm 1: (1.25 / 2 - 0.5) a step.
    assert run.regret_curves.tolist() == [[0.125, 0.5, 0.75]] * 2


# --- Users ---------------------------------------------------------------------------------------

FIXED: Kwargs = {"instance": Bernoulli(DYADIC), "num_users": 2, "horizon": 12}


def test_user_returns_and_the_regret_of_the_paper_by_hand() -> None:
    means, agent, totals = np.array(DYADIC), UniformRandom(), []
    for seed in range(30, 50):
        agent.reset(seed=[seed])
        arms = [agent.act(played(step)) for step in range(12)]
        totals.append(means[np.array(arms)].sum(axis=0))
    run = evaluate(agent, EGAL, num_episodes=20, seed=30, **FIXED)
    assert run.user_returns is not None
    assert_array_equal(run.user_returns, totals)  # sums of eighths are exact
    # T mu* / U = 12 * 1.25 / 2
    assert run.episodes["policy_regret"].tolist() == [7.5 - min(total) for total in totals]
    worst = min(math.fsum(column) / 20 for column in np.transpose(totals))
    assert run.min_of_expectations_regret == pytest.approx(7.5 - worst, rel=1e-14)
    assert run.mean("policy_regret") > 7.5 - worst + 0.1


def played(step: int) -> dict[str, NDArray[Any]]:
    """Return an observation that tells only that steps were played, to a policy that ignores it."""
    return {"pulls": np.full(4, step), "user_reward_sum": np.zeros(2)}


def test_the_paper_s_regret_takes_the_minimum_after_the_mean() -> None:
    run = made({"policy_regret": [4.0, 4.0]}, users=[[6.0, 12.0], [10.0, 6.0]])
    assert run.min_of_expectations_regret == 2.0  # 10 - min(8, 9)


@pytest.mark.parametrize("name", EGAL_AGENTS)
@pytest.mark.parametrize("instance", [Bernoulli(DYADIC), Gaussian([1.0, 0.3, -0.5], 0.5)], ids=repr)
def test_a_mean_of_minima_is_never_below_a_minimum_of_means(name: str, instance: Arms) -> None:
    for seed in range(5):
        run = evaluate(
            EGAL_AGENTS[name](),
            EGAL,
            instance=instance,
            num_users=3,
            horizon=7,
            num_episodes=6,
            seed=100 * seed,
        )
        assert run.min_of_expectations_regret is not None
        assert run.mean("policy_regret") >= run.min_of_expectations_regret - 1e-12


def permuted(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    return Bernoulli(rng.permutation(DYADIC))


@pytest.mark.parametrize(
    ("instance", "num_episodes"),
    [("bernoulli", 5), ("bernoulli", 1), (permuted, 5)],
    ids=["other optima", "one episode", "equal optima"],
)
def test_redrawn_instances_have_no_one_expectation(instance: Any, num_episodes: int) -> None:
    run = evaluate(
        StaticOracle,
        EGAL,
        instance=instance,
        num_users=2,
        num_arms=4,
        horizon=4,
        num_episodes=num_episodes,
    )
    assert run.min_of_expectations_regret is None
    assert run.user_returns is not None
    assert run.user_returns.shape == (num_episodes, 2)


def test_improving_arms_have_no_users() -> None:
    run = evaluate(RoundRobin(), IMPROVING, num_episodes=2, **TRAP)
    assert run.user_returns is None
    assert run.min_of_expectations_regret is None


# --- Statistics ----------------------------------------------------------------------------------


def test_differences_are_paired() -> None:
    wild = [0.0, 1000.0, -70.0, 3.0]
    comparison = Comparison(
        {
            "a": made({"policy_regret": [w + 1 for w in wild], "return": [3.0, 5.0, 4.0, 4.0]}),
            "b": made({"policy_regret": wild, "return": [1.0, 1.0, 3.0, 1.0]}),
        }
    )
    assert comparison.difference("a", "b") == (1.0, (1.0, 1.0))
    assert comparison.difference("b", "a") == (-1.0, (-1.0, -1.0))
    mean, interval = comparison.difference("a", "b", "return")
    assert mean == 2.5
    assert interval == mean_interval(np.array([2.0, 4.0, 1.0, 3.0]))


@pytest.mark.parametrize("values", [[2.5], [0.1] * 7, [-3.0, -3.0]])
def test_the_interval_of_constants_is_a_point(values: list[float]) -> None:
    low, high = mean_interval(np.array(values))
    assert low == high == pytest.approx(values[0], rel=1e-15)


def test_the_interval_of_two_values_is_all_between_them() -> None:
    assert mean_interval(np.array([3.0, 1.0])) == (1.0, 3.0)  # each mean has probability 1/4


@pytest.mark.parametrize(("confidence", "low", "high"), [(0.95, 0, 15), (0.8, 1, 11), (0.6, 2, 10)])
def test_intervals_are_quantiles_of_all_resamples(confidence: float, low: int, high: int) -> None:
    values = (0, 1, 5)
    sums = sorted(sum(sample) for sample in product(values, repeat=3))
    tail = (1 - confidence) / 2 * len(sums)
    # The quantiles lie well within a run of equal sums: 2000 resamples find them.
    for margin in (-0.3, 0.3):
        assert (sums[int(tail + margin)], sums[-1 - int(tail + margin)]) == (low, high)
    assert mean_interval(np.array(values, dtype=float), confidence) == (low / 3, high / 3)


def test_intervals_equal_scipy_s_and_need_no_luck() -> None:
    values = np.random.default_rng(3).exponential(size=40)
    state = np.random.get_state()  # noqa: NPY002 - must stay as it is
    interval = mean_interval(values)
    assert interval == mean_interval(values.copy())
    assert pickle.dumps(np.random.get_state()) == pickle.dumps(state)  # noqa: NPY002
    expected = bootstrap(
        (values,),
        np.mean,
        n_resamples=2000,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert interval == (expected.low, expected.high)
    wide, narrow = mean_interval(values, 0.99), mean_interval(values, 0.5)
    assert wide[0] < interval[0] < narrow[0] < narrow[1] < interval[1] < wide[1]
    run = made({"policy_regret": values})
    assert run.interval("policy_regret") == interval
    assert run.mean("policy_regret") == values.mean()


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.normal(5.0, 2.0, 50)) for _ in range(300)]
    covered = sum(low <= 5.0 <= high for low, high in intervals)
    assert 0.90 <= covered / 300 <= 0.98
    widths = np.array([high - low for low, high in intervals])
    assert widths.mean() == pytest.approx(2 * 1.96 * 2 / math.sqrt(50), rel=0.05)


@pytest.mark.parametrize(
    "values",
    [[1.0, math.inf], [math.inf, math.inf], [1.0, math.nan], [math.nan, math.nan]],
    ids=str,
)
def test_what_is_not_finite_has_no_interval(values: list[float]) -> None:
    mean = float(np.mean(values))
    assert_array_equal(mean_interval(np.array(values)), [mean, mean])


# --- Tables, files and pictures ------------------------------------------------------------------


def test_table_is_markdown_with_means_and_intervals() -> None:
    comparison = Comparison(
        {
            "one": made(
                {
                    "policy_regret": [1.0, 3.0],
                    "competitive_ratio": [12.34, 12.34],
                    "min_user_return": [-0.0, -0.0],
                },
                users=[[1.0, 4.0], [5.0, 4.0]],
            ),
            "two": made(
                {
                    "policy_regret": [-0.001, -0.001],
                    "competitive_ratio": [9.994, 9.994],
                    "min_user_return": [-12.36, -12.36],
                },
            ),
        }
    )
    assert comparison.table() == (
        "| policy | policy regret | competitive ratio (median) | min user return "
        "| min of expectations regret |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| one | 2.00 [1.00, 3.00] | 12.3 [12.3, 12.3] | 0.00 [0.00, 0.00] | 7.00 |\n"
        "| two | 0.00 [0.00, 0.00] | 9.99 [9.99, 9.99] | -12.4 [-12.4, -12.4] |  |"
    )
    assert comparison.table(["optimal_return", "policy_regret"]) == (
        "| policy | optimal return | policy regret |\n"
        "| --- | ---: | ---: |\n"
        "| one | 10.0 [10.0, 10.0] | 2.00 [1.00, 3.00] |\n"
        "| two | 10.0 [10.0, 10.0] | 0.00 [0.00, 0.00] |"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00"),
        (-0.004, "0.00"),
        (-0.006, "-0.01"),
        (9.994, "9.99"),
        (10.0, "10.0"),
        (9.999, "10.0"),
        (-9.999, "-10.0"),
        (-10.04, "-10.0"),
        (123456.78, "123456.8"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_two_decimals_below_ten_and_one_from_there(value: float, shown: str) -> None:
    comparison = Comparison({"a": made({"policy_regret": [value]})})
    assert comparison.table().splitlines()[2] == f"| a | {shown} [{shown}, {shown}] |"


def test_table_shows_only_what_all_policies_have() -> None:
    comparison = Comparison(
        {
            "gap": made({"policy_regret": [1.5], "max_potential_gap": [0.5]}),
            "none": made({"policy_regret": [0.25]}),
        }
    )
    assert comparison.table() == (
        "| policy | policy regret |\n"
        "| --- | ---: |\n"
        "| gap | 1.50 [1.50, 1.50] |\n"
        "| none | 0.25 [0.25, 0.25] |"
    )


def test_table_shows_infinite_ratios() -> None:
    comparison = compare(
        {"never": FixedArm(0)},
        IMPROVING,
        instance="round_robin_trap",
        num_arms=2,
        horizon=4,
        num_episodes=3,
    )
    assert comparison["never"].episodes["competitive_ratio"].tolist() == [math.inf] * 3
    # The other arm would pay (1 + 2 + 3 + 4) / 4, and ends 1 below its potential.
    assert comparison.table().splitlines()[2] == (
        "| never | 2.50 [2.50, 2.50] | inf [inf, inf] | 1.00 [1.00, 1.00] |"
    )


def test_pandas_has_a_row_per_policy_and_episode() -> None:
    pytest.importorskip("pandas")
    comparison = compare(
        {"random": UniformRandom(), "ucb": EgalUCB()}, EGAL, num_episodes=3, **FIXED
    )
    frame = comparison.to_pandas()
    metrics = [
        "return",
        "length",
        "policy_regret",
        "optimal_return",
        "expected_return",
        "competitive_ratio",
        "realized_regret",
        "min_user_return",
    ]
    pulls = [f"pulls_{arm}" for arm in range(4)]
    users = ["user_return_0", "user_return_1"]
    assert frame.columns.tolist() == ["policy", "episode", *metrics, *pulls, *users]
    assert frame["policy"].tolist() == ["random"] * 3 + ["ucb"] * 3
    assert frame["episode"].tolist() == [0, 1, 2] * 2
    assert frame.index.tolist() == list(range(6))
    for name, run in comparison.evaluations.items():
        rows = frame[frame["policy"] == name]
        for metric in metrics:
            assert_array_equal(rows[metric], run.episodes[metric])
        assert_array_equal(rows[pulls], run.pulls)
        assert_array_equal(rows[users], run.user_returns)


def test_pandas_has_no_users_where_there_are_none() -> None:
    pytest.importorskip("pandas")
    frame = compare({"robin": RoundRobin()}, IMPROVING, num_episodes=2, **TRAP).to_pandas()
    assert frame.columns.tolist()[-4:] == [
        "realized_regret",
        "max_potential_gap",
        "pulls_0",
        "pulls_1",
    ]


def test_csv_gives_back_every_number(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    comparison = compare(
        {"random": UniformRandom(), "oracle": OracleArm},
        IMPROVING,
        num_arms=3,
        noise_std=0.3,
        horizon=9,
        num_episodes=4,
    )
    path = tmp_path / "episodes.csv"
    comparison.to_csv(path)
    frame = comparison.to_pandas()
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == frame.columns.tolist()
    assert [row[0] for row in rows] == ["random"] * 4 + ["oracle"] * 4
    for number, name in enumerate(header[1:], start=1):
        assert [float(row[number]) for row in rows] == frame[name].tolist()
    comparison.to_csv(str(tmp_path / "again.csv"))
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


@pytest.fixture
def plt() -> Iterator[Any]:
    """Return pyplot without a screen; close what a test leaves open."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def curves_case() -> Comparison:
    policies = {"constant": FixedArm(1), "rising": FixedArm(0), "random": UniformRandom()}
    return compare(policies, IMPROVING, num_episodes=6, checkpoints=(1, 8, 15, 20), **TRAP)


@pytest.mark.parametrize("given", [True, False], ids=["own axes", "new figure"])
def test_plot_draws_a_line_and_a_band_per_policy(plt: Any, given: bool) -> None:
    comparison = curves_case()
    axis: Any = plt.subplots()[1] if given else None
    figure: Any = comparison.plot(axis)
    if given:
        assert figure is axis.figure
    (axis,) = figure.axes
    assert len(plt.get_fignums()) == 1
    assert len(axis.lines) == len(axis.collections) == 3
    assert len({line.get_linestyle() for line in axis.lines}) == 3
    assert [text.get_text() for text in axis.get_legend().get_texts()] == list(
        comparison.evaluations
    )
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("steps", "policy regret")
    drawn = zip(comparison.evaluations.items(), axis.lines, axis.collections, strict=True)
    for (name, run), line, band in drawn:
        assert line.get_label() == name
        assert_array_equal(line.get_xdata(), [1, 8, 15, 20])
        assert_array_equal(line.get_ydata(), run.regret_curves.mean(axis=0))
        corners = band.get_paths()[0].vertices
        for step, values in zip(run.checkpoints, run.regret_curves.T, strict=True):
            heights = corners[corners[:, 0] == step, 1]
            assert (heights.min(), heights.max()) == mean_interval(values)
    figure.canvas.draw()  # it can be shown


def test_plot_without_checkpoints_is_refused_and_opens_nothing(plt: Any) -> None:
    comparison = compare({"robin": RoundRobin()}, IMPROVING, num_episodes=2, **TRAP)
    with pytest.raises(ValueError, match="`checkpoints` must hold at least one step for a plot"):
        comparison.plot()
    assert plt.get_fignums() == []


def test_plot_leaves_out_what_lies_beyond_the_ends(plt: Any) -> None:
    comparison = compare(
        {"fixed": FixedArm(1)}, IMPROVING, num_episodes=2, checkpoints=(10, 30), **TRAP
    )
    figure: Any = comparison.plot()
    (line,) = figure.axes[0].lines
    assert_allclose(line.get_ydata(), [4.5, math.nan], rtol=1e-14)


# --- Progress ------------------------------------------------------------------------------------

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


# --- Errors --------------------------------------------------------------------------------------


class Fragile(RoundRobin):
    """Raises at the fourth step of the episode of one seed."""

    def __init__(self, bad_seed: int, error: Callable[[], Exception]) -> None:
        super().__init__()
        self.bad_seed, self.error = bad_seed, error
        self.seeds: list[int] = []

    def reset(self, seed: Any = None, mask: Any = None) -> None:
        super().reset(seed, mask)
        self.seeds = list(seed)

    def _act(self, observation: Any) -> NDArray[np.int64]:
        if self.bad_seed in self.seeds and observation["pulls"].sum(axis=1).max() == 3:
            raise self.error()
        return super()._act(observation)


class Awkward(Exception):  # noqa: N818
    """An exception that pickles, but does not unpickle: so do those of many libraries."""

    def __init__(self, part: str, number: int) -> None:
        super().__init__(f"{part} {number} broke")


def assert_error_is_told(
    error: Callable[[], Exception], shown: str, wrappers: Any = (), **how: Any
) -> None:
    """Play a policy that raises in episode 5 of 12 between two others."""
    kwargs: Kwargs = {"num_arms": 3, "horizon": 6, "seed": 100, "num_episodes": 12, "num_envs": 4}
    policies = {
        "before": UniformRandom(),
        "fragile": Entry(Fragile(105, error), wrappers=wrappers),
        "after": RoundRobin(),
    }
    message = f"^policy 'fragile' raised in episode 5: {shown}$"
    with pytest.raises(EvaluationError, match=message) as caught:
        compare(policies, IMPROVING, checkpoints=(2,), **how, **kwargs)
    assert (caught.value.policy, caught.value.episode) == ("fragile", 5)
    assert caught.value.__cause__ is not None
    expected = compare({"before": UniformRandom()}, IMPROVING, checkpoints=(2,), **kwargs)
    assert_all_same(caught.value.results, expected)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_a_policy_that_raises_names_itself_and_the_episode(wrappers: Any) -> None:
    assert_error_is_told(partial(KeyError, "arm"), "KeyError: 'arm'", wrappers)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_a_policy_that_raises_in_another_process_names_itself_too() -> None:
    assert_error_is_told(partial(KeyError, "arm"), "KeyError: 'arm'", n_jobs=2)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_errors_that_do_not_unpickle_are_told_too() -> None:
    assert_error_is_told(partial(Awkward, "motor", 7), "Awkward: motor 7 broke", n_jobs=2)


def test_an_error_in_parallel_play_comes_without_warnings() -> None:
    pytest.importorskip("joblib")
    code = """
import joblib
from gym_fairbandits.agents import RoundRobin
from gym_fairbandits.evaluation import EvaluationError, compare
try:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        policies = {"bad": lambda observation: 1 / 0, "good": RoundRobin}
        compare(policies, "ImprovingBandit-v0", num_envs=2)
except EvaluationError as error:
    print(error)
"""
    done = run_python(code)
    assert done.stdout == "policy 'bad' raised in episode 0: ZeroDivisionError: division by zero\n"
    assert done.stderr == ""


def test_the_first_policy_s_error_leaves_no_results() -> None:
    def broken(observation: Any) -> Any:
        raise ZeroDivisionError("no arms")

    with pytest.raises(
        EvaluationError, match="raised in episode 0: ZeroDivisionError: no arms"
    ) as e:
        evaluate(broken, IMPROVING, num_episodes=3, **TRAP)
    assert e.value.results.evaluations == {}
    assert isinstance(e.value.__cause__, ZeroDivisionError)


def test_evaluation_errors_survive_pickling() -> None:
    results = Comparison({"fine": made({"policy_regret": [1.0]})})
    error = EvaluationError("bad", 3, KeyError("arm"), results)
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error) == "policy 'bad' raised in episode 3: KeyError: 'arm'"
    assert (back.policy, back.episode) == ("bad", 3)
    assert_all_same(back.results, results)


def test_illegal_actions_are_the_policy_s_errors() -> None:
    with pytest.raises(EvaluationError, match=r"episode 0: InvalidAction: .*from 0 to 1") as caught:
        evaluate(lambda seen: np.full(len(seen["pulls"]), 2), IMPROVING, num_episodes=2, **TRAP)
    assert isinstance(caught.value.__cause__, InvalidAction)


def test_oracles_of_the_other_environment_are_refused() -> None:
    with pytest.raises(EvaluationError, match="episode 0: TypeError: `env` must be an environ"):
        evaluate(OracleRotation, IMPROVING, num_episodes=2, **TRAP)


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_actions_is_an_error(count: int) -> None:
    calls: list[int] = []

    def policy(observation: Any) -> NDArray[np.int64]:
        calls.append(1)
        if len(calls) > 100:
            pytest.fail("played on without the rows that had no action")
        return np.zeros(count, dtype=np.int64)

    for wrappers in ([], [gym.Wrapper]):
        with pytest.raises(EvaluationError, match="raised in episode 0"):
            evaluate(policy, IMPROVING, num_episodes=2, wrappers=wrappers, **TRAP)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: evaluate(None, IMPROVING), "`policy` must have `predict` or be callable"),
        (lambda: evaluate("greedy", IMPROVING), "`policy` must .*, got 'greedy'"),
        (lambda: compare({"a": RoundRobin(), "b": None}, IMPROVING), "`policy` must have"),
        (lambda: compare({"a": 3}, IMPROVING), "`policy` must have .*, got 3"),
        (Entry, "an `Entry` must have either a `policy` or a `factory`"),
        (lambda: Entry(RoundRobin(), factory=RoundRobin), "either a `policy` or a `factory`"),
        (lambda: Entry(RoundRobin(), wrappers=3), "`wrappers` must be a sequence of callables"),  # type: ignore[arg-type]
        (lambda: Entry(factory=3), "`policy` must have `predict` or be callable, got 3"),  # type: ignore[arg-type]
        (lambda: Entry(RoundRobin(), normalize=3), "`normalize` must be a `VecNormalize` or"),
        (lambda: evaluate(RoundRobin(), IMPROVING, normalize="x"), "`normalize` must be"),
    ],
)
def test_what_is_no_policy_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_episodes": 0}, ValueError, "`num_episodes` must be at least 1, got 0"),
        ({"num_episodes": 2.0}, TypeError, "`num_episodes` must be an integer, got 2.0"),
        ({"num_envs": 0}, ValueError, "`num_envs` must be at least 1, got 0"),
        ({"num_envs": True}, TypeError, "`num_envs` must be an integer, got True"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"seed": None}, TypeError, "`seed` must be an integer, got None"),
        ({"checkpoints": [5, 0]}, ValueError, "`checkpoints` must be at least 1, got 0"),
        ({"checkpoints": [2.7]}, TypeError, "`checkpoints` must be an integer, got 2.7"),
        ({"checkpoints": ["3"]}, TypeError, "`checkpoints` must be an integer, got '3'"),
        # What the environment refuses is no fault of the policy.
        ({"horizon": 0}, ValueError, "`horizon` must be at least 1, got 0"),
        ({"horizon": "long"}, TypeError, "`horizon` must be an integer, got 'long'"),
        ({"env_id": "ImprovingBandits-v0"}, NameNotFound, "ImprovingBandits"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_played(
    arguments: Kwargs, error: type[Exception], message: str
) -> None:
    asked: list[Any] = []
    arguments = {"env_id": IMPROVING, "num_episodes": 2, "horizon": 3, **arguments}
    with pytest.raises(error, match=message):
        evaluate(lambda seen: asked.append(seen), **arguments)
    assert asked == []


# --- What it needs -------------------------------------------------------------------------------


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh Python; fail with its traceback if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_importing_it_brings_none_of_the_extras() -> None:
    extras = ("dask", "joblib", "matplotlib", "pandas", "stable_baselines3", "torch", "tqdm")
    code = (
        "import sys, gym_fairbandits.evaluation\n"
        f"print([name for name in {extras!r} if name in sys.modules])"
    )
    assert run_python(code).stdout == "[]\n"


def test_it_plays_without_the_extras_in_one_process() -> None:
    code = """
import sys
for name in ("joblib", "matplotlib", "pandas", "tqdm"):
    sys.modules[name] = None
from gym_fairbandits.agents import FixedArm
from gym_fairbandits.evaluation import compare, evaluate
kwargs = dict(instance="policy_vs_external", horizon=20, num_episodes=3, num_envs=2)
print(compare({"fixed": FixedArm(1)}, "ImprovingBandit-v0", **kwargs).table(["policy_regret"]))
print(evaluate(FixedArm(1), "ImprovingBandit-v0", n_jobs=1, **kwargs).pulls.tolist())
try:
    evaluate(FixedArm(1), "ImprovingBandit-v0", n_jobs=2, **kwargs)
except ImportError as error:
    print("joblib" in str(error))
"""
    assert run_python(code).stdout.splitlines() == [
        "| policy | policy regret |",
        "| --- | ---: |",
        "| fixed | 13.5 [13.5, 13.5] |",
        "[[0, 20], [0, 20], [0, 20]]",
        "True",
    ]
