"""What users trip over elsewhere cannot happen here: one list of public reports, in one file."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from helpers_envs import MIXED, PEAKED, SAMPLES, Root, every_id
from helpers_names import EGAL, IMPROVING
from helpers_play import Player, assert_identical, play
from helpers_vectors import DISABLED, RECENT, SAME_STEP, every_mode
from numpy.typing import NDArray
from packaging.requirements import Requirement

from gym_fairbandits import arms, curves
from gym_fairbandits.wrappers import (
    EnumeratedAssignment,
    FairnessMetrics,
    LehmerAssignment,
    PolicyRegret,
    RankedAssignment,
    RotatedAssignment,
    SequentialAssignment,
    vector,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
# Early pays 0.25, 0.5, 0.5; late 0.025, 0.05, 0.075: the optimum of three steps is 1.25.
FIGURE_1: dict[str, Any] = {"instance": "early_vs_late", "horizon": 3}


class Spy(gym.Wrapper[Any, Any, Any, Any]):
    """Records the assignments that reach the environment."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.seen: list[tuple[int, ...]] = []

    def step(self, action: Any) -> Any:
        outcome = self.env.step(action)
        self.seen.append(tuple(np.asarray(action).tolist()))
        return outcome


def sequential(users: int = 3, num_arms: int = 4, **options: Any) -> Any:
    """Return a spied-on EgalAssign-v0 in which one user chooses at a time."""
    return SequentialAssignment(
        Spy(gym.make(f"gym_fairbandits:{EGAL}", num_users=users, num_arms=num_arms, horizon=8)),
        **options,
    )


def masked_learner(env: Any) -> Any:
    return pytest.importorskip("sb3_contrib").MaskablePPO(
        "MultiInputPolicy", env, n_steps=32, batch_size=16, n_epochs=1, seed=0, device="cpu"
    )


def steps_of(envs: Any, mode: AutoresetMode, steps: int, arm: int | None = None) -> Iterator[Any]:
    """Step a vector environment, resetting ended rows by hand where the mode wants it."""
    player = Player(envs.single_action_space)
    for _ in range(steps):
        actions = player.batch(envs.num_envs) if arm is None else np.full(envs.num_envs, arm)
        outcome = envs.step(actions)
        yield outcome
        ended = outcome[2] | outcome[3]
        if mode == DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})


# --- Masks, collisions and processes ------------------------------------------------------------


def test_masks_of_several_choices_never_admit_a_collision() -> None:
    # sb3-contrib#242: independent masks let [1, 1, 3] pass.
    env = sequential(strict=True)  # which raises at a taken arm
    model = masked_learner(env).learn(64)
    observation, _ = env.reset(seed=1)
    for _ in range(48):
        action, _ = model.predict(observation, action_masks=env.action_masks())
        observation, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            observation, _ = env.reset()
    seen = env.env.seen
    assert len(seen) >= (64 + 48) // 3
    assert all(len(set(assignment)) == 3 for assignment in seen)


def test_masks_can_express_combinations() -> None:
    # sb3-contrib#197: what one choice forbids another could not be said.
    env = sequential(users=2, num_arms=4, strict=True)
    reached = set()
    for first in range(4):
        for second in range(4):
            env.reset(seed=0)
            assert env.action_masks().all()
            env.step(first)
            assert env.action_masks().tolist() == [arm != first for arm in range(4)]
            if env.action_masks()[second]:
                env.step(second)
                reached.add(env.env.seen[-1])
    assert reached == {(one, two) for one in range(4) for two in range(4) if one != two}


def test_masks_are_flat_arrays_of_one_shape() -> None:
    # sb3-contrib#80, stable-baselines3#1799: ragged or nested masks fail.
    masks = pytest.importorskip("sb3_contrib.common.maskable.utils")
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")
    venv = vec_envs.DummyVecEnv([lambda: sequential(), lambda: sequential()])
    venv.reset()
    venv.step(np.array([1, 3]))
    stacked = masks.get_action_masks(venv)
    assert stacked.dtype == np.bool_
    assert stacked.tolist() == [[True, False, True, True], [True, True, True, False]]


def test_evaluation_that_knows_no_masks_still_plays_legal_assignments() -> None:
    # sb3-contrib#226, #142: the ordinary EvalCallback ignores masks.
    learner = masked_learner(sequential())
    callbacks = pytest.importorskip("stable_baselines3.common.callbacks")
    monitor = pytest.importorskip("stable_baselines3.common.monitor").Monitor
    inner = sequential()
    callback = callbacks.EvalCallback(
        monitor(inner), eval_freq=32, n_eval_episodes=2, deterministic=False, verbose=0
    )
    learner.learn(64, callback=callback)
    assert callback.n_calls >= 64
    assert len(inner.env.seen) == 2 * 2 * 8  # two evaluations of two episodes of eight steps
    assert all(len(set(assignment)) == 3 for assignment in inner.env.seen)


@pytest.mark.slow
def test_masks_and_custom_curves_reach_processes() -> None:
    # sb3-contrib#49, stable-baselines3#1793, tianshou#1153: unpicklable masks and lambdas.
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")
    venv = vec_envs.SubprocVecEnv([lambda: sequential(users=2, num_arms=3)], start_method="spawn")
    venv.reset()
    venv.step(np.array([2]))
    masks = venv.env_method("action_masks")
    venv.close()
    assert np.array(masks).tolist() == [[True, True, False]]

    instance = [Root(0.5, 4.0), curves.Constant(0.25)]
    envs = AsyncVectorEnv(
        [lambda: gym.make(f"gym_fairbandits:{IMPROVING}", instance=instance)], context="spawn"
    )
    envs.reset()
    rewards = envs.step(np.array([0]))[1]
    envs.close()
    assert rewards[0] == 0.5 * np.sqrt(1 / 5)


def test_a_masked_environment_with_custom_curves_pickles() -> None:
    env = sequential()
    env.reset(seed=0)
    env.step(2)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.action_masks().tolist() == [True, True, False, True]
    bandit = gym.make(IMPROVING, instance=[Root(0.5, 4.0), curves.Constant(0.25)])
    assert pickle.loads(pickle.dumps(bandit)).reset(seed=0)[0]["pulls"].tolist() == [0, 0]


@pytest.mark.parametrize("capacity", [1, 2])
def test_the_custom_action_space_works_in_vector_environments(capacity: int) -> None:
    # openai/gym#1972, #1945: vector environments broke on spaces of one's own.
    kwargs: dict[str, Any] = {"num_users": 3, "num_arms": 5, "capacity": capacity, "horizon": 50}
    for envs in (
        gym.make_vec(EGAL, num_envs=4, **kwargs),
        SyncVectorEnv([lambda: gym.make(EGAL, **kwargs)] * 4),
    ):
        envs.reset(seed=0)
        envs.action_space.seed(0)
        for _ in range(50):
            actions = envs.action_space.sample()
            assert actions.shape == (4, 3)
            assert (
                max(np.bincount(row, minlength=5).max() for row in np.asarray(actions)) <= capacity
            )
            envs.step(actions)


# --- Vector episodes ----------------------------------------------------------------------------


@every_mode
@every_id
def test_vector_episodes_are_not_one_step_short_or_long(env_id: str, mode: AutoresetMode) -> None:
    # Gymnasium#1017: lengths were off by one from the second episode on.
    envs: Any = RecordEpisodeStatistics(
        gym.make_vec(env_id, num_envs=2, num_arms=6, horizon=3, autoreset_mode=mode)
    )
    envs.reset(seed=0)
    # Under NEXT_STEP a step between the episodes only resets.
    period = 4 if mode == AutoresetMode.NEXT_STEP else 3
    ends = []
    for number, (observation, _, _, truncated, info) in enumerate(steps_of(envs, mode, 12), 1):
        if truncated.any():
            ends.append(number)
            assert truncated.all()
            last = info["final_obs"][0] if mode == SAME_STEP else observation
            assert last["pulls"].max() <= 3
            if RECENT or len(ends) == 1:
                assert info["episode"]["l"].tolist() == [3, 3]
    assert ends == list(range(3, 13, period))
    assert len(ends) >= 3


@every_mode
def test_regret_is_read_in_the_same_place_in_every_autoreset_mode(mode: AutoresetMode) -> None:
    # cleanrl#534: `final_info` is not there under NEXT_STEP.
    envs = vector.PolicyRegret(gym.make_vec(IMPROVING, num_envs=2, autoreset_mode=mode, **FIGURE_1))
    envs.reset(seed=0)
    seen = [
        info["policy_regret"].tolist()
        for _, _, _, truncated, info in steps_of(envs, mode, 9, arm=1)
        if truncated.any()
    ]
    assert len(seen) >= 2
    for regrets in seen:
        assert regrets == pytest.approx([1.25 - 0.15] * 2, rel=1e-12)


@every_mode
@every_id
def test_what_was_returned_is_not_overwritten_later(env_id: str, mode: AutoresetMode) -> None:
    # Gymnasium#1132, #1681: buffers that are used again corrupt the final infos.
    envs = vector.PolicyRegret(
        gym.make_vec(env_id, num_envs=3, num_arms=6, horizon=3, autoreset_mode=mode)
    )
    log = [envs.reset(seed=0)]
    kept: list[Any] = [copy.deepcopy(log[0])]
    for outcome in steps_of(envs, mode, 10):
        log.append(outcome)
        kept.append(copy.deepcopy(outcome))
    assert_identical(log, kept)


# --- Seeds, specs and types ---------------------------------------------------------------------


@every_id
def test_a_seeded_reset_and_the_plain_ones_after_it_repeat(env_id: str) -> None:
    # Gymnasium#1084, #1207: `reset(seed); reset()` differed from run to run.
    for maker in (gym.make, gym.make_vec):
        logs = []
        for _ in range(2):
            env: Any = maker(env_id, horizon=4)
            log = [env.reset(seed=5), env.unwrapped.optimal_return(4)]
            for _ in range(2):
                log += [env.reset(), env.unwrapped.optimal_return(4)]
            logs.append(log)
        assert_identical(logs[0], logs[1])
        assert not np.array_equal(logs[0][1], logs[0][3])  # another instance per reset


@every_id
def test_sampled_actions_follow_the_seed_of_the_space(env_id: str) -> None:
    # Gymnasium#185: `action_space.sample()` ignored every seed.
    for maker in (gym.make, gym.make_vec):
        drawn = []
        for seed in (3, 3, 4):
            env: Any = maker(env_id)
            env.action_space.seed(seed)
            drawn.append([np.asarray(env.action_space.sample()).tolist() for _ in range(20)])
        assert drawn[0] == drawn[1] != drawn[2]


INTEGERS = {"family": "linear_cap", "asymptote": np.int8(1), "ramp": np.int64(40)}


@pytest.mark.parametrize(
    ("env_id", "instance"),
    [
        (IMPROVING, [curves.LinearCap(*map(np.float64, (1, 40))), curves.from_dict(INTEGERS)]),
        (IMPROVING, [curves.Tabulated(np.array([0.5, 0.75])), Root(0.5, 4.0)]),  # type: ignore[arg-type]
        (EGAL, arms.Gaussian(np.array([0.5, 0.25]), np.float32(0.5))),
        (EGAL, arms.Empirical([np.array([1, 5]), np.array([2.5])])),
        (EGAL, arms.Adversarial(np.ones((4, 2), dtype=np.int32))),
    ],
)
def test_a_spec_made_of_numpy_numbers_becomes_json(env_id: str, instance: Any) -> None:
    # Gymnasium#439: `spec.to_json()` fails on arrays and NumPy's numbers.
    kwargs: dict[str, Any] = {"horizon": 4, **({"num_users": 2} if env_id == EGAL else {})}
    if isinstance(instance, list):
        as_dict: Any = [curve.to_dict() for curve in instance]
    else:
        as_dict = instance.to_dict()
    env = gym.make(env_id, instance=as_dict, **kwargs)
    assert env.spec is not None
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    plain = gym.make(env_id, instance=instance, **kwargs)
    logs = []
    for one in (again, plain):
        one.reset(seed=3)
        logs.append(play(one, Player(plain.action_space), 9))
    assert_identical(logs[0], logs[1])


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "none": lambda env: env,
    "regret": PolicyRegret,
    "fairness": FairnessMetrics,
    "flat": FlattenObservation,
    "ranked": RankedAssignment,
    "lehmer": LehmerAssignment,
    "enumerated": EnumeratedAssignment,
    "sequential": SequentialAssignment,
    "rotated": RotatedAssignment,
}
BUILT: list[tuple[str, str]] = [
    (env_id, name)
    for env_id in (IMPROVING, EGAL)
    for name in WRAPPERS
    if env_id == EGAL or name in ("none", "regret", "fairness", "flat")
]


@pytest.mark.parametrize(("env_id", "name"), BUILT)
def test_rewards_and_flags_are_of_built_in_types(env_id: str, name: str) -> None:
    # stable-baselines3#1747, #1795: float32 rewards and NumPy's bools are rejected.
    env = WRAPPERS[name](gym.make(env_id, num_arms=6, horizon=5))
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(100):
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool
        if terminated or truncated:
            return
    pytest.fail("no episode ended")


@pytest.mark.parametrize(("env_id", "name"), BUILT)
def test_observations_keep_the_dtype_of_their_space(env_id: str, name: str) -> None:
    # sumo-rl#171, stable-baselines3#1992: float64 where the space says float32.
    env = WRAPPERS[name](
        gym.make(env_id, num_arms=6, horizon=10**7, horizon_known=True, disable_env_checker=True)
    )
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(12):
        assert observation in env.observation_space
        parts = observation if isinstance(observation, dict) else {"": observation}
        spaces = getattr(env.observation_space, "spaces", {"": env.observation_space})
        assert parts.keys() == spaces.keys()
        for key, value in parts.items():
            assert value.dtype == spaces[key].dtype, key
        observation = env.step(env.action_space.sample())[0]


# --- The end of an episode ----------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "length"), [(3, 3), (5, 5), (9, 5), (None, 5)])
@every_id
def test_no_outer_limit_cuts_a_longer_horizon(env_id: str, limit: int | None, length: int) -> None:
    # Gymnasium#291: a registered limit cannot be extended.
    assert gym.spec(env_id).max_episode_steps is None
    env: Any = gym.make(env_id, horizon=5, max_episode_steps=limit)
    env.reset(seed=0)
    flags = [env.step(env.action_space.sample())[3] for _ in range(length)]
    assert flags == [False] * (length - 1) + [True]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("horizon", [1, 2, 7])
@every_id
def test_an_episode_has_exactly_its_horizon_and_one_flag(
    env_id: str, horizon: int, known: bool
) -> None:
    # HighwayEnv#415, pc-gym#45: off by one, and which of the two flags?
    env: Any = gym.make(env_id, horizon=horizon, horizon_known=known)
    env.reset(seed=0)
    for step in range(1, horizon + 1):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        last = step == horizon
        assert (terminated, truncated) == (last and known, last and not known)
        assert ("remaining" in observation) == known
    with pytest.raises(ResetNeeded):
        env.unwrapped.step(env.action_space.sample())


# --- Vector wrappers, seeds and copies ----------------------------------------------------------


def test_regret_of_a_native_vector_environment_needs_no_scalar_wrappers() -> None:
    # Gymnasium PR#983: `make_vec` refuses `wrappers` where there is a native class.
    envs: Any = gym.make_vec(IMPROVING, num_envs=2, **FIGURE_1)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.array([0, 1]))
    built_in = envs.optimal_return() - envs.expected_return()
    assert built_in.tolist() == pytest.approx([0, 1.1], rel=1e-12)
    sync: Any = gym.make_vec(
        IMPROVING, num_envs=2, vectorization_mode="sync", wrappers=[PolicyRegret], **FIGURE_1
    )
    sync.reset(seed=0)
    for _ in range(3):
        info = sync.step(np.array([0, 1]))[4]
    assert info["policy_regret"].tolist() == built_in.tolist()


@every_mode
@every_id
def test_every_info_has_its_mask(env_id: str, mode: AutoresetMode) -> None:
    # Gymnasium PR#1466: a key without `_key` breaks DictInfoToList.
    wrapped = vector.FairnessMetrics(
        vector.PolicyRegret(
            gym.make_vec(env_id, num_envs=2, num_arms=6, horizon=2, autoreset_mode=mode)
        )
    )
    envs: Any = DictInfoToList(wrapped)
    envs.reset(seed=0)
    ends = 0
    for _, _, _, truncated, infos in steps_of(envs, mode, 6):
        assert len(infos) == 2
        for info in infos:
            assert ("policy_regret" in info) == truncated.any()
            ends += "policy_regret" in info
    assert ends >= 4


@every_id
def test_seeds_of_a_batch_are_those_of_its_rows(env_id: str) -> None:
    # Gymnasium#1321, openai/gym#2680: how are sub-environments seeded?
    envs: Any = gym.make_vec(env_id, num_envs=3, horizon=9)
    observations, _ = envs.reset(seed=40)
    player = Player(envs.single_action_space)
    rows: list[Any] = [gym.make(env_id, horizon=9) for _ in range(3)]
    for row, env in enumerate(rows):
        env.reset(seed=40 + row)
    for _ in range(9):
        actions = player.batch(3)
        observations, rewards, _, _, _ = envs.step(actions)
        for row, env in enumerate(rows):
            observation, reward, _, _, _ = env.step(actions[row])
            assert reward == rewards[row]
            assert_identical({key: part[row] for key, part in observations.items()}, observation)


@every_id
def test_a_pickle_in_mid_episode_goes_on(env_id: str) -> None:
    # Gymnasium#94, #737: copies made through EzPickle start afresh.
    kwargs: dict[str, Any] = {"noise_std": 0.5} if env_id == IMPROVING else {"instance": "gaussian"}
    env = PolicyRegret(gym.make(env_id, horizon=20, **kwargs))
    env.reset(seed=0)
    player = Player(env.action_space)
    for _ in range(7):
        env.step(player())
    twin = pickle.loads(pickle.dumps(env))
    twin_player = copy.deepcopy(player)
    log = play(env, player, 40)
    assert log[12][4]["policy_regret"] > 0  # the end of the episode that was under way
    assert_identical(play(twin, twin_player, 40), log)


@pytest.mark.slow
def test_new_processes_know_the_ids() -> None:
    # Gymnasium PR#810: workers that are spawned miss what the parent registered.
    kwargs: dict[str, Any] = {"num_users": 2, "num_arms": 4, "horizon": 3}
    envs: Any = gym.make_vec(
        f"gym_fairbandits:{EGAL}",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": "spawn"},
        **kwargs,
    )
    assert isinstance(envs, AsyncVectorEnv)
    native: Any = gym.make_vec(EGAL, num_envs=2, **kwargs)
    actions: NDArray[np.int64] = np.array([[0, 3], [2, 1]])
    logs = []
    for one in (envs, native):
        logs.append([one.reset(seed=0), *(one.step(actions) for _ in range(5))])
    envs.close()
    assert_identical(logs[0], logs[1])


# --- Regret and instances -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"instance": MIXED}),
        (IMPROVING, {"instance": PEAKED, "validate": False}),
        (IMPROVING, {}),
        (EGAL, {"instance": arms.Gaussian([0.9, 0.5, 0.1, -0.3], 0.0), "num_users": 3}),
        (EGAL, {"instance": arms.Empirical(SAMPLES), "num_users": 3, "objective": "utilitarian"}),
        (EGAL, {"num_users": 5, "num_arms": 3, "capacity": 2}),
    ],
)
def test_policy_regret_is_never_negative(env_id: str, kwargs: dict[str, Any]) -> None:
    # SMPyBandits#156, #153: another definition for rotting arms; regrets below 0.
    env = PolicyRegret(gym.make(env_id, horizon=12, **kwargs))
    player = Player(env.action_space, seed=3)
    for episode in range(10):
        env.reset(seed=episode)
        for _ in range(12):
            info = env.step(player())[4]
        assert info["policy_regret"] == env.regret()
        assert info["policy_regret"] >= -1e-9 * max(1.0, info["optimal_return"])


@every_id
def test_an_instance_is_drawn_per_episode_or_fixed_as_the_user_says(env_id: str) -> None:
    # RPegoud/jym#9: all runs shared one instance, which one could not choose.
    random: Any = gym.make(env_id)
    values = []
    for seed in range(6):
        random.reset(seed=seed)
        values.append(random.unwrapped.optimal_return(100))
    assert len(set(values)) == 6
    random.reset(seed=0)
    bandit = random.unwrapped
    chosen: Any = list(bandit.curves) if env_id == IMPROVING else bandit.arms
    fixed: Any = gym.make(env_id, instance=chosen)
    for seed in range(6):
        fixed.reset(seed=seed)
        assert fixed.unwrapped.optimal_return(100) == values[0]
        random.reset(seed=seed + 10, options={"instance": chosen})
        assert random.unwrapped.optimal_return(100) == values[0]


# --- Versions and first steps -------------------------------------------------------------------


def test_the_pins_fit_those_of_learners() -> None:
    # ray#34396, #59382: no version of Gymnasium suits both the environment and the learner.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = {one.name: one for one in map(Requirement, project["dependencies"])}
    ours = needs["gymnasium"].specifier
    assert "1.2.2" in ours  # ray[rllib] 2.60 wants exactly this one
    assert gym.__version__ in ours
    for learner in ("stable-baselines3", "sb3-contrib"):
        try:
            required = importlib.metadata.requires(learner) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for theirs in (Requirement(line) for line in required):
            if theirs.name == "gymnasium":
                assert "1.2.2" in theirs.specifier
                assert gym.__version__ in theirs.specifier


def test_a_beginner_needs_five_lines() -> None:
    # openai/gym#324: the first bandit environment that beginners meet.
    env: Any = gym.make("gym_fairbandits:ImprovingBandit-v0", horizon=100)
    observation, truncated, total = env.reset(seed=0)[0], False, 0.0
    while not truncated:
        observation, reward, _, truncated, _ = env.step(env.action_space.sample())
        total += reward
    assert observation["pulls"].sum() == 100
    assert total == pytest.approx(observation["reward_sum"].sum(), rel=1e-12)
    assert 0 < total < 100
