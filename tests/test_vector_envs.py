"""The native vector environments against SyncVectorEnv and the scalar ones, bit for bit."""

from __future__ import annotations

import copy
import inspect
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import VectorizeMode
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from helpers_envs import (
    EGAL,
    IMPROVING,
    MIXED,
    Player,
    Root,
    arrays_in,
    arrays_of_state,
    assert_identical,
    drawn_laws,
    drawn_mixture,
    drawn_tables,
    every_case,
    every_id,
    pins_for,
    random_states,
    vandalise,
    worth,
)
from numpy.typing import NDArray

from gym_fairbandits.arms import Bernoulli, Gaussian
from gym_fairbandits.curves import Constant
from gym_fairbandits.envs import (
    EgalAssignEnv,
    EgalAssignVectorEnv,
    ImprovingBanditEnv,
    ImprovingBanditVectorEnv,
)

Kwargs = dict[str, Any]
MODES = list(AutoresetMode)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)


RECENT = tuple(map(int, gym.__version__.split(".")[:2])) >= (1, 4)
STEPS = 9  # of which the optimum is asked


class Witness(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps what an episode was worth when it ended, before any autoreset."""

    last_worth: dict[str, Any]

    def step(self, action: Any) -> Any:
        outcome = self.env.step(action)
        if outcome[2] or outcome[3]:
            self.last_worth = worth(self.env, STEPS)
        return outcome


def make_native(env_id: str, num_envs: int, **kwargs: Any) -> Any:
    return gym.make_vec(env_id, num_envs=num_envs, **kwargs)


def make_sync(env_id: str, num_envs: int, mode: AutoresetMode, kwargs: Kwargs) -> Any:
    def one() -> Any:
        return Witness(gym.make(env_id, disable_env_checker=True, **kwargs))

    return SyncVectorEnv([one] * num_envs, autoreset_mode=mode)


def assert_same_worth(native: Any, sync: Any, just_ended: NDArray[np.bool_]) -> None:
    """Assert that the native env values each row's episode as the scalar env does."""
    rows = [
        env.last_worth if ended else worth(env, STEPS)
        for env, ended in zip(sync.envs, just_ended, strict=True)
    ]
    ours = worth(native, STEPS)
    for name, values in ours.items():
        if isinstance(values, str):
            assert {row[name] for row in rows} & {values}
        else:
            assert_identical(values, np.array([row[name] for row in rows]), name)


class Duel:
    """A native vector env and a SyncVectorEnv that are told the same and must answer the same."""

    def __init__(
        self, env_id: str, kwargs: Kwargs, mode: AutoresetMode, num_envs: int = 3, seed: int = 0
    ) -> None:
        self.env_id, self.mode, self.num_envs = env_id, mode, num_envs
        self.native = make_native(env_id, num_envs, autoreset_mode=mode, **kwargs)
        self.sync = make_sync(env_id, num_envs, mode, kwargs)
        self.player = Player(self.native.single_action_space, seed)
        self.pins = pins_for(env_id, self.native.num_arms)
        self.rng = np.random.default_rng(seed)
        self.ended = np.zeros(num_envs, dtype=np.bool_)
        self.ends = 0
        self.chance = min(0.1, 0.25 / kwargs["horizon"])  # of a reset that no end asks for

    def reset(self, seed: Any = None, options: Kwargs | None = None) -> None:
        for_sync = None if options is None else dict(options)  # which takes the mask out
        given = copy.copy(options)
        ours = self.native.reset(seed=seed, options=options)
        assert_identical(ours, self.sync.reset(seed=seed, options=for_sync))
        assert (options is None) == (given is None)
        if options is not None and given is not None:  # left as it was
            assert options.keys() == given.keys()
            assert all(options[key] is given[key] for key in given)
        mask = (given or {}).get("reset_mask", np.ones(self.num_envs, dtype=np.bool_))
        self.ended &= ~mask
        assert_same_worth(self.native, self.sync, np.zeros(self.num_envs, dtype=np.bool_))

    def step(self, actions: Any = None) -> None:
        if actions is None:
            actions = self.player.batch(self.num_envs)
        ours, theirs = self.native.step(actions), self.sync.step(actions)
        assert_identical(ours, theirs)
        ended = ours[2] | ours[3]
        self.ends += int(ended.sum())
        if self.rng.random() < (0.5 if ended.any() and self.ends > 6 else 0.05 + ended.any()):
            gone = ended if self.mode == SAME_STEP else np.zeros_like(ended)
            assert_same_worth(self.native, self.sync, gone)
            assert random_states(self.native) == [
                env.unwrapped.np_random.bit_generator.state for env in self.sync.envs
            ]
        self.ended = np.zeros_like(ended) if self.mode == SAME_STEP else ended

    def random_options(self, mask: NDArray[np.bool_]) -> Kwargs:
        options: Kwargs = {"reset_mask": mask}
        if self.rng.random() < 0.5:
            options["instance"] = self.pins[self.rng.integers(len(self.pins))]
        return options

    def random_seed(self) -> Any:
        kind = self.rng.integers(3)
        if kind == 0:
            return None
        if kind == 1:
            return int(self.rng.integers(100))
        some = self.rng.integers(100, size=self.num_envs).tolist()
        return [None if self.rng.random() < 0.5 else value for value in some]

    def play(self, steps: int) -> None:
        """Step; reset what has ended where the mode asks for it, and now and then some rows."""
        for _ in range(steps):
            if self.mode == DISABLED and self.ended.any():
                extra = self.rng.random(self.num_envs) < 0.1
                self.reset(self.random_seed(), self.random_options(self.ended | extra))
            elif self.rng.random() < self.chance:
                mask = self.rng.random(self.num_envs) < 0.5
                mask[self.rng.integers(self.num_envs)] = True
                self.reset(self.random_seed(), self.random_options(mask))
            self.step()


# --- Against SyncVectorEnv ----------------------------------------------------------------------


@every_mode
@every_case
def test_native_equals_sync_in_all_that_is_returned(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    duel = Duel(env_id, kwargs, mode)
    duel.reset(seed=3)
    duel.play(max(20, int(1.3 * kwargs["horizon"])))
    duel.reset()
    duel.play(4)
    duel.reset(seed=[5, 5, 9])
    duel.play(4)
    assert duel.ends >= 3


LONG: list[tuple[str, Kwargs]] = [
    # Beyond the blocks in which values and draws are fetched.
    (IMPROVING, {"num_arms": 2, "noise_std": 0.5, "horizon": 530}),
    (IMPROVING, {"instance": MIXED, "horizon": 300}),
    (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "horizon": 300}),
    (EGAL, {"instance": "gaussian", "num_users": 3, "num_arms": 4, "horizon": 350}),
    (EGAL, {"num_users": 5, "num_arms": 3, "capacity": 2, "horizon": 200}),
]


@every_mode
@pytest.mark.parametrize(("env_id", "kwargs"), LONG)
def test_native_equals_sync_over_long_episodes(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    duel = Duel(env_id, kwargs, mode, num_envs=2)
    duel.reset(seed=0)
    for _ in range(kwargs["horizon"]):
        duel.step()
    assert duel.ends == 2
    if mode == DISABLED:
        duel.reset(options={"reset_mask": np.array([True, True])})
    for _ in range(30):
        duel.step()


@every_mode
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("limit", [2, 5, 8, -1])
@every_id
def test_native_equals_sync_under_a_step_limit(
    env_id: str, limit: int, known: bool, mode: AutoresetMode
) -> None:
    kwargs: Kwargs = {"horizon": 5, "horizon_known": known, "max_episode_steps": limit}
    kwargs |= {"num_arms": 6, "instance": drawn_tables if env_id == IMPROVING else "bernoulli"}
    duel = Duel(env_id, kwargs, mode)
    duel.reset(seed=1)
    duel.play(14)
    assert duel.ends >= 3
    assert duel.native.max_episode_steps == (limit if limit > 0 else None)


@every_mode
@every_id
def test_native_equals_sync_for_one_environment(env_id: str, mode: AutoresetMode) -> None:
    instance: Any = drawn_mixture if env_id == IMPROVING else drawn_laws
    kwargs = {"instance": instance, "num_arms": 5, "horizon": 6}
    duel = Duel(env_id, kwargs, mode, num_envs=1)
    duel.reset(seed=8)
    duel.play(60)


@pytest.mark.parametrize("seed", range(2))
@every_mode
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"instance": drawn_tables, "num_arms": 2, "horizon": 4}),
        (IMPROVING, {"instance": drawn_mixture, "num_arms": 3, "noise_std": 1.0, "horizon": 5}),
        (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 4}),
        (
            EGAL,
            {
                "instance": drawn_laws,
                "num_users": 6,
                "num_arms": 3,
                "capacity": 3,
                "objective": "utilitarian",
                "horizon": 4,
            },
        ),
    ],
)
def test_native_equals_sync_over_very_many_drawn_instances(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode, seed: int
) -> None:
    duel = Duel(env_id, kwargs, mode, num_envs=4, seed=seed)
    duel.reset(seed=seed)
    duel.play(60)
    assert duel.ends > 30


@every_mode
@every_case
def test_row_i_is_the_scalar_environment_of_seed_s_plus_i(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 4, autoreset_mode=mode, **kwargs)
    singles: list[Any] = [gym.make(env_id, **kwargs) for _ in range(4)]
    player = Player(envs.single_action_space)
    observations, infos = envs.reset(seed=50)
    assert infos == {}
    for row, single in enumerate(singles):
        start, _ = single.reset(seed=50 + row)
        assert_identical({key: value[row] for key, value in observations.items()}, start)
        reveal = "curves" if env_id == IMPROVING else "arms"
        assert getattr(envs, reveal)[row] == getattr(single.unwrapped, reveal)
    for _ in range(kwargs["horizon"]):
        actions = player.batch(4)
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        for row, single in enumerate(singles):
            seen, reward, terminated, truncated, info = single.step(actions[row])
            assert_identical(
                [float(rewards[row]), bool(terminations[row]), bool(truncations[row])],
                [reward, terminated, truncated],
            )
            ours = {key: value[row] for key, value in observations.items()}
            details = infos
            if mode == SAME_STEP and (terminated or truncated):
                ours, details = infos["final_obs"][row], infos["final_info"]
            assert_identical(ours, seen)
            assert_identical(
                {key: value[row] for key, value in details.items() if key in info}, info
            )


# --- Seeds and resets ---------------------------------------------------------------------------


@every_mode
@every_id
def test_a_row_without_a_seed_is_random_at_first_and_then_goes_on(
    env_id: str, mode: AutoresetMode
) -> None:
    kwargs = {"num_arms": 6, "horizon": 5}
    duel = Duel(env_id, kwargs, mode)
    # Row 1 was never seeded: it differs from run to run, the others do not.
    firsts = []
    for _ in range(2):
        envs = make_native(env_id, 3, autoreset_mode=mode, **kwargs)
        envs.reset(seed=[5, None, 7])
        assert envs.np_random_seed[0] == 5
        assert envs.np_random_seed[2] == 7
        firsts.append(random_states(envs))
    assert firsts[0][0] == firsts[1][0]
    assert firsts[0][1] != firsts[1][1]
    assert firsts[0][2] == firsts[1][2]
    # Once seeded, None means to go on with the row's stream.
    duel.reset(seed=[1, 2, 3])
    duel.play(7)
    duel.reset(seed=[4, None, 6])
    duel.play(12)
    duel.reset(seed=(None, 2, None))
    duel.play(12)
    duel.reset(seed=11)
    assert duel.native.np_random_seed == (11, 12, 13)
    assert duel.sync.np_random_seed == (11, 12, 13)
    duel.play(7)


@every_id
def test_unseeded_batches_differ_and_so_do_their_rows(env_id: str) -> None:
    states = []
    for _ in range(2):
        envs = make_native(env_id, 3)
        envs.reset()
        states += [state["state"]["state"] for state in random_states(envs)]
    assert len(set(states)) == 6


@every_id
def test_numpy_seeds_are_seeds(env_id: str) -> None:
    one, other = make_native(env_id, 3), make_native(env_id, 3)
    assert_identical(one.reset(seed=np.int64(4)), other.reset(seed=4))
    assert random_states(one) == random_states(other)
    assert_identical(one.reset(seed=np.array([4, 5, 9])), other.reset(seed=[4, 5, 9]))
    assert random_states(one) == random_states(other)


def progress(envs: Any, steps: int = 20, seed: int = 0) -> list[Any]:
    """Step a batch; under DISABLED reset what ended; return all that was returned, and worth."""
    player = Player(envs.single_action_space, seed)
    log: list[Any] = []
    for _ in range(steps):
        outcome = envs.step(player.batch(envs.num_envs))
        log.append(copy.deepcopy(outcome))
        ended = outcome[2] | outcome[3]
        if ended.any() and len(log) < 20:
            log.append(worth(envs))
        if envs.metadata["autoreset_mode"] == DISABLED and ended.any():
            log.append(copy.deepcopy(envs.reset(options={"reset_mask": ended})))
    return [*log, worth(envs), random_states(envs)]


def running_pair(env_id: str, mode: AutoresetMode = NEXT_STEP, num_envs: int = 3) -> list[Any]:
    """Return two equal batches in the middle of episodes that end at different times."""
    instance: Any = drawn_mixture if env_id == IMPROVING else drawn_laws
    kwargs: Kwargs = {"instance": instance, "num_arms": 4, "horizon": 6, "autoreset_mode": mode}
    kwargs |= {"noise_std": 0.5} if env_id == IMPROVING else {"num_users": 3}
    pair = []
    for _ in range(2):
        envs = make_native(env_id, num_envs, **kwargs)
        envs.reset(seed=2)
        player = Player(envs.single_action_space)
        for row in range(num_envs - 1):
            envs.step(player.batch(num_envs))
            mask = np.arange(num_envs) == row
            envs.reset(options={"reset_mask": mask})
        envs.step(player.batch(num_envs))
        pair.append(envs)
    return pair


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        ([1, 2], ValueError, "`seed` must have num_envs = 3 entries, got 2"),
        ([1, 2, 3, 4], ValueError, "`seed` must have num_envs = 3 entries, got 4"),
        ([], ValueError, "`seed` must have num_envs = 3 entries, got 0"),
        (-1, ValueError, "`seed` must be at least 0, got -1"),
        ([1, -2, 3], ValueError, "`seed` must be at least 0, got -2"),
        (1.0, TypeError, "`seed` must be"),
        (True, TypeError, "`seed` must be"),
        ("1", TypeError, "`seed` must be"),
        ([1, 2.0, 3], TypeError, "`seed` must be an integer"),
        ([1, "2", 3], TypeError, "`seed` must be an integer"),
        ({1, 2, 3}, TypeError, "`seed` must be"),
    ],
)
@every_id
def test_wrong_seeds_are_refused_and_change_nothing(
    env_id: str, seed: Any, error: type[Exception], message: str
) -> None:
    envs, twin = running_pair(env_id)
    with pytest.raises(error, match=message):
        envs.reset(seed=seed)
    assert_identical(progress(envs), progress(twin))


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, True], TypeError),
        (np.array([1, 0, 1]), TypeError),
        (np.array([1.0, 0.0, 1.0]), TypeError),
        (True, TypeError),
        (np.array([True, False]), ValueError),
        (np.array([[True, False, True]]), ValueError),
        (np.array(True), ValueError),
        (np.array([False, False, False]), ValueError),
    ],
    ids=repr,
)
@every_id
def test_wrong_reset_masks_are_refused_as_sync_does_and_change_nothing(
    env_id: str, mask: Any, error: type[Exception]
) -> None:
    envs, twin = running_pair(env_id)
    sync = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    sync.reset(seed=0)
    with pytest.raises((error, AssertionError), match="reset_mask"):  # until Gymnasium 1.3 asserts
        sync.reset(options={"reset_mask": mask})
    with pytest.raises(error, match="reset_mask"):
        envs.reset(seed=4, options={"reset_mask": mask})
    assert_identical(progress(envs), progress(twin))


@every_mode
@every_id
def test_only_the_masked_rows_are_reset(env_id: str, mode: AutoresetMode) -> None:
    envs, twin = running_pair(env_id, mode, num_envs=4)
    before = worth(envs)
    states = random_states(envs)
    player = Player(envs.single_action_space, 1)
    mask = np.array([False, True, False, True])
    kept_mask = mask.copy()
    options = {"reset_mask": mask}
    observations, infos = envs.reset(seed=[1, 2, 3, None], options=options)
    assert infos == {}
    assert list(options) == ["reset_mask"]
    assert options["reset_mask"] is mask
    assert mask.tolist() == kept_mask.tolist()
    assert observations["pulls"][mask].sum() == 0
    assert (observations["pulls"][~mask].sum(axis=1) > 0).all()
    after = worth(envs)
    assert_identical(after["realized"][~mask], before["realized"][~mask])
    assert after["realized"][mask].tolist() == [0.0, 0.0]
    # The seeds of rows that are not reset play no part, and row 3 goes on with its stream.
    for row in (0, 2, 3):
        assert random_states(envs)[row] == states[row]
    assert random_states(envs)[1] == np.random.default_rng(2).bit_generator.state
    # One row's reset is not seen by another: rows 0 and 2 play as in the twin.
    for _ in range(2):
        actions = player.batch(4)
        ours, theirs = envs.step(actions), twin.step(actions)
        for row in (0, 2):
            assert_identical(ours[1][row].tobytes(), theirs[1][row].tobytes())
            for key, value in ours[0].items():
                assert_identical(value[row], theirs[0][key][row])


@every_id
def test_a_partial_first_reset_leaves_the_others_waiting(env_id: str) -> None:
    envs = make_native(env_id, 2)
    actions = Player(envs.single_action_space).batch(2)
    with pytest.raises(ResetNeeded, match="no episode is running"):
        envs.step(actions)
    envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="no episode is running"):
        envs.step(actions)
    envs.reset(seed=0, options={"reset_mask": np.array([False, True])})
    fresh = make_native(env_id, 2)
    fresh.reset(seed=0)
    assert_identical(envs.step(actions), fresh.step(actions))


@every_case
def test_an_instance_in_the_options_is_for_all_rows_and_one_episode(
    env_id: str, kwargs: Kwargs
) -> None:
    duel = Duel(env_id, kwargs, NEXT_STEP)
    duel.reset(seed=4)
    for pin in duel.pins:
        duel.reset(options={"instance": pin})
        duel.play(min(kwargs["horizon"], 4) + 2)


@every_id
def test_instances_in_the_options_are_one_per_row_and_for_one_episode(env_id: str) -> None:
    kwargs: Kwargs = {"num_arms": 4, "horizon": 5}
    kwargs |= {"noise_std": 0.25} if env_id == IMPROVING else {"num_users": 2}
    pins = pins_for(env_id, 4)
    instances = (*pins, pins[1], pins[0])
    count = len(instances)
    envs = make_native(env_id, count, autoreset_mode="Disabled", **kwargs)
    singles: list[Any] = [gym.make(env_id, **kwargs) for _ in range(count)]
    options = {"instances": instances}
    player = Player(envs.single_action_space)
    everyone = np.ones(count, dtype=np.bool_)
    for episode in range(4):
        pinned = episode in (0, 2)
        seed = 9 if episode == 0 else None
        mask = {"reset_mask": everyone}
        envs.reset(seed=seed, options={**options, **mask} if pinned else mask)
        assert options == {"instances": instances}
        for row, single in enumerate(singles):
            single.reset(
                seed=None if seed is None else seed + row,
                options={"instance": instances[row]} if pinned else None,
            )
        for _ in range(5):
            actions = player.batch(count)
            observations, rewards, *_ = envs.step(actions)
            for row, single in enumerate(singles):
                seen, reward, *_ = single.step(actions[row])
                assert float(rewards[row]) == reward
                assert_identical({key: value[row] for key, value in observations.items()}, seen)
        for row, single in enumerate(singles):
            assert_identical(
                {name: values[row].tolist() for name, values in worth(envs).items()},
                {name: np.array(value).tolist() for name, value in worth(single).items()},
            )


@every_id
def test_instances_of_rows_that_are_not_reset_play_no_part(env_id: str) -> None:
    envs, twin = running_pair(env_id)
    mask = np.array([False, True, False])
    pin = pins_for(env_id, 4)[0]
    envs.reset(options={"reset_mask": mask, "instances": ["nonsense", pin, 7]})
    twin.reset(options={"reset_mask": mask, "instance": pin})
    assert_identical(progress(envs), progress(twin))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"instance": "nope"}, ValueError, "`instance` must be one of"),
        ({"instance": 7}, TypeError, "`instance` must be a name"),
        ({"instances": "pins"}, ValueError, "must not hold both"),
        ({"instances": ["PIN", "PIN"]}, ValueError, "sequence of num_envs = 3 instances"),
        ({"instances": 5}, ValueError, "sequence of num_envs = 3 instances"),
        ({"instances": ["PIN", "PIN", "nope"]}, ValueError, "`instance` must be one of"),
        ({"instances": ["PIN", 7, "PIN"]}, TypeError, "`instance` must be a name"),
    ],
)
@every_id
def test_wrong_instances_in_the_options_change_nothing(
    env_id: str, options: Kwargs, error: type[Exception], message: str
) -> None:
    envs, twin = running_pair(env_id)
    pin = pins_for(env_id, 4)[0]
    if options.get("instances") == "pins":
        options = {"instance": pin, "instances": [pin] * 3}
    elif isinstance(options.get("instances"), list):
        named = [pin if item == "PIN" else item for item in options["instances"]]
        options = {"instances": named}
    with pytest.raises(error, match=message):
        envs.reset(seed=1, options=options)
    assert_identical(progress(envs), progress(twin))


# --- Waiting and finished rows ------------------------------------------------------------------


@every_id
def test_stepping_a_finished_row_when_autoreset_is_disabled_raises(env_id: str) -> None:
    envs, twin = running_pair(env_id, DISABLED)
    player = Player(envs.single_action_space, 1)
    ended = np.zeros(3, dtype=np.bool_)
    while not ended.any():
        actions = player.batch(3)
        outcome = envs.step(actions)
        assert_identical(outcome, twin.step(actions))
        ended = outcome[2] | outcome[3]
    assert ended.sum() == 1  # the rows are out of step
    row = int(np.flatnonzero(ended)[0])
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=rf"the episodes of the sub-environments \[{row}\]"):
            envs.step(actions)
    assert_identical(worth(envs), worth(twin))
    # A reset of another row does not help.
    other = np.arange(3) == (row + 1) % 3
    for either in (envs, twin):
        either.reset(options={"reset_mask": other})
    with pytest.raises(ResetNeeded, match=rf"\[{row}\]"):
        envs.step(actions)
    for either in (envs, twin):
        either.reset(options={"reset_mask": ended})
    assert_identical(progress(envs), progress(twin))


@every_id
def test_rows_out_of_step_end_at_their_own_times(env_id: str) -> None:
    kwargs: Kwargs = {"num_arms": 4, "horizon": 4, "horizon_known": True}
    kwargs |= {} if env_id == IMPROVING else {"num_users": 2}
    for mode in MODES:
        duel = Duel(env_id, kwargs, mode, num_envs=4)
        duel.reset(seed=0)
        player = Player(duel.native.single_action_space)
        left = np.full(4, 4)
        for time in range(24):
            due = np.zeros(4, dtype=np.bool_)
            if time in (1, 2, 3):  # row 1 starts again after one step, row 2 after two, ...
                due[time] = True
            if mode == DISABLED:
                due |= left == 0
            if due.any():
                duel.reset(options={"reset_mask": due})
                left[due] = 4
            waiting = left == 0
            outcome = duel.native.step(actions := player.batch(4))
            assert_identical(outcome, duel.sync.step(actions))
            left = np.where(waiting, 4, left - 1)
            assert outcome[2].tolist() == (left == 0).tolist()
            assert not outcome[3].any()
            if mode == SAME_STEP:
                left[left == 0] = 4
            assert outcome[0]["remaining"][:, 0].tolist() == left.tolist()
        assert len(set(left.tolist())) == 4 if mode != NEXT_STEP else len(set(left.tolist())) > 1


@pytest.mark.parametrize("junk", [-1, 4, 99, 2**62])
@every_id
def test_the_action_of_a_waiting_row_is_ignored_even_if_illegal(env_id: str, junk: int) -> None:
    envs, twin = running_pair(env_id, NEXT_STEP)
    player = Player(envs.single_action_space, 1)
    waiting = np.zeros(3, dtype=np.bool_)
    seen = 0
    for _ in range(20):
        actions = player.batch(3)
        odd = actions.copy()
        odd[waiting] = junk
        outcome = envs.step(odd)
        assert_identical(outcome, twin.step(actions))
        assert outcome[1][waiting].tolist() == [0.0] * int(waiting.sum())
        seen += int(waiting.sum())
        waiting = outcome[2] | outcome[3]
    assert seen >= 6
    if env_id == EGAL:  # a collision is no matter either
        while not waiting.any():
            outcome = envs.step(player.batch(3))
            waiting = outcome[2] | outcome[3]
        actions = player.batch(3)
        actions[waiting] = 0
        envs.step(actions)


@every_id
def test_an_illegal_action_beside_a_waiting_row_names_the_right_row(env_id: str) -> None:
    envs, twin = running_pair(env_id, NEXT_STEP)
    player = Player(envs.single_action_space, 1)
    waiting = np.zeros(3, dtype=np.bool_)
    while not waiting[0]:
        actions = player.batch(3)
        outcome = envs.step(actions)
        twin.step(actions)
        waiting = outcome[2] | outcome[3]
    assert waiting.tolist() == [True, False, False]
    actions = player.batch(3)
    actions[0] = 55
    actions[2] = 77
    with pytest.raises(InvalidAction, match=r"got .*77.* sub-environment 2"):
        envs.step(actions)
    assert_identical(progress(envs), progress(twin))


# --- Actions ------------------------------------------------------------------------------------

MISFIT = r"`actions` must be integers of shape \(3,\), got"
WRONG_ROW = r"`actions` must be integers from 0 to 3, got {} for sub-environment {}"
ILLEGAL_ARMS: list[tuple[Any, str]] = [
    (np.array([0, 4, 1]), WRONG_ROW.format(4, 1)),
    (np.array([-1, 0, 1]), WRONG_ROW.format(-1, 0)),
    (np.array([0, 1, 200], dtype=np.uint8), WRONG_ROW.format(200, 2)),
    (np.array([0, 1, 2**64 - 1], dtype=np.uint64), WRONG_ROW.format(2**64 - 1, 2)),
    (np.array([0, -128, 1], dtype=np.int8), WRONG_ROW.format(-128, 1)),
    ([0, 4, 9], WRONG_ROW.format(4, 1)),
    (np.array([0.0, 1.0, 2.0]), MISFIT),
    (np.array([0.0, np.nan, 2.0]), MISFIT),
    (np.array([True, False, True]), MISFIT),
    ([True, False, True], MISFIT),
    ([0, True, 2], MISFIT),
    ([0, 1.0, 2], MISFIT),
    (np.array([0, 1, 2], dtype=object), MISFIT),
    (["0", "1", "2"], MISFIT),
    ([0, None, 2], MISFIT),
    ([0, 10**30, 2], rf"got {10**30} for sub-environment 1$"),
    ("012", MISFIT),
    (None, MISFIT),
    (1, MISFIT),
    (np.array(1), MISFIT),
    ([], MISFIT),
    ([0, 1], MISFIT),
    ([0, 1, 2, 3], MISFIT),
    (np.array([[0, 1, 2]]), MISFIT),
    (np.array([[0], [1], [2]]), MISFIT),
    ([[0], [1, 2], [3]], MISFIT),
    ([0, [1], 2], MISFIT),
]
MISFITS = r"`actions` must hold integers and have shape \(3, 3\), got"
ILLEGAL_ASSIGNMENTS: list[tuple[Any, str]] = [
    (
        np.array([[0, 1, 2], [3, 0, 3], [1, 1, 1]]),
        r"got arm 3 for users 0 and 2 in sub-environment 1$",
    ),
    (np.array([[0, 1, 2], [0, 1, 2], [4, 1, 0]]), r"got arm 4 for user 0 in sub-environment 2$"),
    (np.array([[0, -1, 2], [0, 1, 2], [2, 1, 0]]), r"got arm -1 for user 1 in sub-environment 0$"),
    ([[0, 1, 2], [0, 1, 1], [2, 1, 0]], r"got arm 1 for users 1 and 2 in sub-environment 1$"),
    (np.array([[0.0, 1.0, 2.0]] * 3), MISFITS),
    (np.array([[0, 1, 2]] * 3, dtype=object), MISFITS),
    (np.ones((3, 3), dtype=np.bool_), MISFITS),
    ([[0, True, 2]] * 3, MISFITS),
    ([[0, 1, 2], [0, 1, 2.0], [0, 1, 2]], MISFITS),
    ([[0, 1, 2], [0, 1], [0, 1, 2]], MISFITS),
    ([[0, 1, 2], None, [0, 1, 2]], MISFITS),
    ([["0", "1", "2"]] * 3, MISFITS),
    ("012", MISFITS),
    (None, MISFITS),
    (0, MISFITS),
    ([0, 1, 2], MISFITS),
    (np.array([0, 1, 2]), MISFITS),
    (np.array([[0, 1, 2]] * 2), MISFITS),
    (np.array([[0, 1, 2]] * 4), MISFITS),
    (np.array([[0, 1]] * 3), MISFITS),
    (np.array([[[0, 1, 2]] * 3]), MISFITS),
    ([], MISFITS),
]


@pytest.mark.parametrize(
    ("env_id", "actions", "message"),
    [
        *((IMPROVING, *case) for case in ILLEGAL_ARMS),
        *((EGAL, *case) for case in ILLEGAL_ASSIGNMENTS),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_illegal_action_names_the_row_and_moves_none(
    env_id: str, actions: Any, message: str
) -> None:
    envs, twin = running_pair(env_id)
    for steps in (0, 1):
        assert_identical(progress(envs, steps), progress(twin, steps))
        before = worth(envs)
        with pytest.raises(InvalidAction, match=message):
            envs.step(actions)
        assert_identical(worth(envs), before)
        assert random_states(envs) == random_states(twin)
    assert_identical(progress(envs, 8), progress(twin, 8))


DTYPES = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]


@every_id
def test_any_integers_are_legal_actions(env_id: str) -> None:
    rows: Any = [0, 3, 1] if env_id == IMPROVING else [[0, 3, 1], [2, 1, 0], [1, 2, 3]]
    results = []
    shapes: list[Callable[[Any], Any]] = [
        list,
        tuple,
        lambda rows: np.array(rows, dtype=">i4"),
        lambda rows: np.array(rows, order="F"),
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
        *(lambda rows, dtype=dtype: np.array(rows, dtype=dtype) for dtype in DTYPES),
    ]
    for shape in shapes:
        envs = running_pair(env_id)[0]
        results.append(envs.step(shape(rows)))
    for result in results[1:]:
        assert_identical(result, results[0])


@every_id
def test_the_batched_action_space_gives_legal_actions(env_id: str) -> None:
    envs = make_native(env_id, 5, horizon=10)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(40):
        actions = envs.action_space.sample()
        assert actions in envs.action_space
        observations, *_ = envs.step(actions)
        assert observations in envs.observation_space


# --- Memory -------------------------------------------------------------------------------------


@every_mode
@every_case
def test_what_was_returned_is_never_used_again(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 3, autoreset_mode=mode, **kwargs)
    player = Player(envs.single_action_space)
    kept: list[Any] = [envs.reset(seed=1)]
    copies = [copy.deepcopy(kept[0])]
    for time in range(30):
        actions = player.batch(3)
        given = actions.copy()
        outcome = envs.step(actions)
        assert_identical(actions, given)
        ended = outcome[2] | outcome[3]
        kept += [outcome, actions]
        copies += [copy.deepcopy(outcome), given]
        if time % 6 == 0:
            kept.append(worth(envs))
            copies.append(copy.deepcopy(kept[-1]))
        if (mode == DISABLED and ended.any()) or time % 11 == 5:
            mask = ended | (np.arange(3) == time % 3)
            kept.append(envs.reset(options={"reset_mask": mask}))
            copies.append(copy.deepcopy(kept[-1]))
    assert_identical(kept, copies)
    everything = [list(arrays_in(call)) for call in kept]
    flat = [(number, array) for number, call in enumerate(everything) for array in call]
    assert len({id(array) for _, array in flat}) == len(flat)
    recent = flat[-60:]
    for place, (number, array) in enumerate(recent):
        for other_number, other in recent[:place]:
            assert number == other_number or not np.shares_memory(array, other)
    state = list(arrays_of_state(envs))
    assert len(state) > 10
    for _, array in recent:
        assert not any(np.shares_memory(array, other) for other in state)


@every_mode
@every_case
def test_vandalising_what_was_returned_changes_nothing(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs, twin = (make_native(env_id, 3, autoreset_mode=mode, **kwargs) for _ in range(2))
    player = Player(envs.single_action_space)
    start = envs.reset(seed=1)
    assert_identical(start, twin.reset(seed=1))
    vandalise(start)
    for number in range(25):
        actions = player.batch(3)
        used = actions.copy()
        ours, theirs = envs.step(used), twin.step(actions)
        assert_identical(ours, theirs)
        ended = theirs[2] | theirs[3]
        vandalise([ours, used])
        if ended.any() and number < 15:
            vandalise(worth(envs))
            assert_identical(worth(envs), worth(twin))
        if mode == DISABLED and ended.any():
            mask = ended.copy()
            start = envs.reset(options={"reset_mask": mask})
            assert_identical(start, twin.reset(options={"reset_mask": ended}))
            vandalise([start, mask])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {}),
        (IMPROVING, {"noise_std": 0.1, "horizon_known": True}),
        (IMPROVING, {"instance": [Root(0.5, 100.0)] * 10}),
        (EGAL, {}),
        (EGAL, {"instance": "gaussian", "capacity": 2, "objective": "utilitarian"}),
    ],
)
def test_memory_does_not_grow_with_the_horizon(env_id: str, kwargs: Kwargs) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        envs = make_native(env_id, 1024, horizon=10**6, autoreset_mode="SameStep", **kwargs)
        envs.reset(seed=0)
        assert envs.num_arms == 10
        envs.action_space.seed(0)
        actions = [envs.action_space.sample() for _ in range(3)]
        for step in range(200):
            envs.step(actions[step % 3])
        envs.optimal_return()
        envs.expected_return()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 200 * 2**20


# --- Copies -------------------------------------------------------------------------------------


@every_mode
@every_case
def test_copies_made_in_mid_episode_go_on_exactly(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs = make_native(env_id, 3, autoreset_mode=mode, **kwargs)
    unstarted = pickle.loads(pickle.dumps(envs))
    envs.reset(seed=1)
    unstarted.reset(seed=1)
    assert_identical(progress(envs, 2), progress(unstarted, 2))
    pins = pins_for(env_id, envs.num_arms)
    for steps, pin in ((0, pins[1]), (7, pins[0])):
        mask = np.array([True, False, steps > 0])
        envs.reset(options={"reset_mask": mask, "instance": pin})
        progress(envs, steps)
        copies = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
        ours = progress(envs, 7)
        for other in copies:
            assert_identical(progress(other, 7), ours)
        start, ours = envs.reset(options={"instance": pins[1]}), progress(envs, 3)
        for other in copies:
            assert_identical(other.reset(options={"instance": pins[1]}), start)
            assert_identical(progress(other, 3), ours)


def test_a_copy_remembers_the_episodes_that_ended_in_the_same_step() -> None:
    envs = make_native(IMPROVING, 2, instance=MIXED, horizon=2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    envs.step([0, 2])
    envs.step([0, 2])
    value = worth(envs)
    assert value["realized"] == pytest.approx([0.36, 0.4], rel=1e-15)
    assert_identical(worth(copy.deepcopy(envs)), value)
    assert_identical(worth(pickle.loads(pickle.dumps(envs))), value)


# --- What episodes are worth --------------------------------------------------------------------


@every_mode
def test_values_by_hand_in_every_mode(mode: AutoresetMode) -> None:
    # min(n/4, 1) and a constant 1/2: nothing rounds.
    curves = [{"family": "linear_cap", "asymptote": 1.0, "ramp": 4}, Constant(0.5)]
    envs = make_native(IMPROVING, 2, instance=curves, horizon=3, autoreset_mode=mode)
    envs.reset(seed=0)
    assert worth(envs)["optimal"].tolist() == [0.0, 0.0]
    envs.step([0, 1])
    assert worth(envs)["expected"].tolist() == [0.25, 0.5]
    assert worth(envs)["optimal"].tolist() == [0.5, 0.5]
    mask = np.array([False, True])
    envs.reset(options={"reset_mask": mask})  # row 1 is now one step behind
    assert worth(envs)["expected"].tolist() == [0.25, 0.0]
    envs.step([0, 1])
    _, _, _, truncations, _ = envs.step([0, 0])
    assert truncations.tolist() == [True, False]
    # Row 0 has just ended: 1/4 + 1/2 + 3/4 in three steps; row 1 has 1/2 + 1/4 in two.
    for rows in (None, np.array([True, True])):
        assert envs.optimal_return(rows=rows).tolist() == [1.5, 1.0]
        assert envs.expected_return(rows=rows).tolist() == [1.5, 0.75]
        assert envs.realized_return(rows=rows).tolist() == [1.5, 0.75]
    for name, values in (("optimal_return", [1.5, 1.0]), ("expected_return", [1.5, 0.75])):
        for row in (0, 1):
            assert getattr(envs, name)(rows=np.arange(2) == row).tolist() == [values[row]]
        assert getattr(envs, name)(rows=np.zeros(2, dtype=np.bool_)).tolist() == []
    assert envs.optimal_return(4).tolist() == [2.5, 2.5]
    if mode == DISABLED:
        envs.reset(options={"reset_mask": truncations})
        assert envs.expected_return().tolist() == [0.0, 0.75]
    envs.step([1, 1])  # under NEXT_STEP the reset of row 0
    first = 0.0 if mode == NEXT_STEP else 0.5
    assert envs.expected_return().tolist() == [first, 1.25]
    assert envs.optimal_return().tolist() == [first, 1.5]


@every_mode
@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
def test_assignment_values_by_hand_in_every_mode(objective: str, mode: AutoresetMode) -> None:
    arms = {"family": "gaussian", "means": [1.0, 0.5, 0.25], "std": 0.0}
    envs = make_native(
        EGAL, 2, instance=arms, num_users=2, objective=objective, horizon=2, autoreset_mode=mode
    )
    envs.reset(seed=0)
    _, rewards, *_ = envs.step([[0, 1], [2, 1]])
    pick = np.min if objective == "egalitarian" else np.mean
    assert rewards.tolist() == [pick([1.0, 0.5]), pick([0.25, 0.5])]
    envs.step([[1, 0], [2, 0]])  # both rows end
    users = [[1.5, 1.5], [0.5, 1.5]]
    assert envs.expected_user_returns().tolist() == users
    assert envs.expected_user_returns(rows=np.array([False, True])).tolist() == users[1:]
    assert envs.expected_return().tolist() == [pick(users[0]), pick(users[1])]
    assert envs.realized_return().tolist() == [pick(users[0]), pick(users[1])]
    assert envs.optimal_return().tolist() == [1.5, 1.5]
    assert envs.optimal_return(4).tolist() == [3.0, 3.0]
    assert envs.optimal_slots().tolist() == [[0, 1], [0, 1]]


def test_optimal_arms_of_each_row() -> None:
    envs = make_native(IMPROVING, 2, num_arms=2, horizon=4)
    ramp = {"family": "linear_cap", "asymptote": 1.0, "ramp": 4}
    envs.reset(seed=0, options={"instances": [[ramp, Constant(0.5)], [Constant(0.75), ramp]]})
    assert envs.optimal_arm(2).tolist() == [1, 0]
    assert envs.optimal_arm().tolist() == [0, 0]
    assert envs.optimal_arm(100).tolist() == [0, 1]
    assert envs.optimal_return(4).tolist() == [2.5, 3.0]


# --- Gymnasium's wrappers and make_vec ----------------------------------------------------------


@every_mode
@every_id
def test_episode_statistics_are_recorded(env_id: str, mode: AutoresetMode) -> None:
    kwargs: Kwargs = {"num_arms": 6, "horizon": 3}
    envs: Any = RecordEpisodeStatistics(make_native(env_id, 2, autoreset_mode=mode, **kwargs))
    plain = make_native(env_id, 2, autoreset_mode=mode, **kwargs)
    sync: Any = RecordEpisodeStatistics(make_sync(env_id, 2, mode, kwargs))
    player = Player(plain.single_action_space)
    for batch in (envs, plain, sync):
        batch.reset(seed=0)
    totals = np.zeros(2)
    episodes = 0
    for _ in range(16):
        actions = player.batch(2)
        *outcome, infos = envs.step(actions)
        *bare, bare_infos = plain.step(actions)
        sync_infos = sync.step(actions)[4]
        assert_identical(outcome, bare)
        totals += bare[1]
        ended = bare[2] | bare[3]
        assert ("episode" in infos) == ended.any()
        if ended.any():
            episodes += 1
            assert infos["_episode"].tolist() == ended.tolist() == [True, True]
            if episodes == 1 or RECENT:  # before 1.4 Gymnasium's wrapper miscounts the later ones
                np.testing.assert_allclose(infos["episode"]["r"], totals, rtol=1e-12)
                assert infos["episode"]["l"].tolist() == [3, 3]
            totals[:] = 0
            for given in (infos, sync_infos):  # right or wrong, the numbers agree
                given["episode"].pop("t")
        assert_identical(infos, sync_infos)
        for name in ("episode", "_episode"):
            infos.pop(name, None)
        assert_identical(infos, bare_infos)
        if mode == DISABLED and ended.any():
            for batch in (envs, plain, sync):
                batch.reset(options={"reset_mask": ended.copy()})
    assert episodes >= 4


@every_id
def test_a_partial_reset_resets_the_statistics_of_its_rows_only(env_id: str) -> None:
    # SyncVectorEnv takes the mask out of the caller's dict, and so all statistics are lost.
    envs: Any = RecordEpisodeStatistics(
        make_native(env_id, 2, num_arms=6, horizon=4, autoreset_mode="Disabled")
    )
    envs.reset(seed=0)
    player = Player(envs.single_action_space)
    total = 0.0
    for step in range(4):
        if step == 2:
            envs.reset(options={"reset_mask": np.array([False, True])})
        _, rewards, _, truncations, infos = envs.step(player.batch(2))
        total += rewards[0]
    assert truncations.tolist() == [True, False]
    assert infos["episode"]["l"].tolist() == [4, 0]
    assert infos["episode"]["r"][0] == pytest.approx(total, rel=1e-12)


@every_mode
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (IMPROVING, {"num_arms": 3, "horizon": 4, "horizon_known": True}),
        (EGAL, {"instance": drawn_laws, "num_users": 3, "num_arms": 4, "horizon": 4}),
    ],
)
def test_infos_become_lists_as_those_of_sync(
    env_id: str, kwargs: Kwargs, mode: AutoresetMode
) -> None:
    envs: Any = DictInfoToList(make_native(env_id, 3, autoreset_mode=mode, **kwargs))
    sync: Any = DictInfoToList(make_sync(env_id, 3, mode, kwargs))
    player = Player(envs.single_action_space)
    assert_identical(envs.reset(seed=0), sync.reset(seed=0))
    assert envs.reset(seed=0)[1] == [{}, {}, {}]
    sync.reset(seed=0)
    first = {"reset_mask": np.array([True, False, False])}
    ended = np.zeros(3, dtype=np.bool_)
    for time in range(14):
        mask = first["reset_mask"] | ended if mode == DISABLED else first["reset_mask"]
        if time == 2 or (mode == DISABLED and ended.any()):
            assert_identical(
                envs.reset(options={"reset_mask": mask.copy()}),
                sync.reset(options={"reset_mask": mask.copy()}),
            )
        actions = player.batch(3)
        ours = envs.step(actions)
        assert_identical(ours, sync.step(actions))
        ended = ours[2] | ours[3]
        for row, info in enumerate(ours[4]):
            if mode == SAME_STEP and ended[row]:
                assert set(info) == {"final_obs", "final_info"}
            elif env_id == IMPROVING:
                assert info == {}


@every_mode
@every_id
def test_keys_that_no_row_gave_are_absent(env_id: str, mode: AutoresetMode) -> None:
    envs = make_native(env_id, 2, num_arms=6, horizon=2, autoreset_mode=mode)
    assert envs.reset(seed=0)[1] == {}
    player = Player(envs.single_action_space)
    usual = set() if env_id == IMPROVING else {"user_rewards", "_user_rewards"}
    assert set(envs.step(player.batch(2))[4]) == usual
    infos = envs.step(player.batch(2))[4]  # both rows end
    if mode == SAME_STEP:
        assert set(infos) == {"final_obs", "_final_obs", "final_info", "_final_info"}
        assert set(infos["final_info"]) == usual
    else:
        assert set(infos) == usual
    if mode == NEXT_STEP:
        assert envs.step(player.batch(2))[4] == {}  # both rows only reset


@every_mode
@every_id
def test_metadata_and_spec(env_id: str, mode: AutoresetMode) -> None:
    for given in (mode, mode.value):
        envs = make_native(env_id, 2, autoreset_mode=given)
        assert envs.metadata["autoreset_mode"] is mode
        assert envs.autoreset_mode is mode
        assert envs.spec.id == env_id
        assert envs.spec.kwargs["num_envs"] == 2
        again: Any = gym.make_vec(envs.spec)
        assert type(again) is type(envs)
        assert (again.num_envs, again.autoreset_mode) == (2, mode)
        assert "autoreset_mode" not in type(envs).metadata
    assert make_native(env_id, 2).metadata["autoreset_mode"] is NEXT_STEP


@pytest.mark.parametrize(
    ("scalar", "vector"),
    [(ImprovingBanditEnv, ImprovingBanditVectorEnv), (EgalAssignEnv, EgalAssignVectorEnv)],
)
def test_the_vector_class_takes_all_that_the_scalar_class_takes(scalar: Any, vector: Any) -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (vector, scalar))
    assert set(ours) == set(theirs) | {"num_envs", "max_episode_steps", "autoreset_mode"}
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default


ACCEPTED: list[tuple[str, Kwargs]] = [
    (
        IMPROVING,
        {
            "instance": "random_concave",
            "num_arms": 4,
            "noise_std": 0,
            "horizon": 3,
            "horizon_known": True,
            "validate": False,
            "render_mode": None,
            "render_reveal": True,
        },
    ),
    (
        EGAL,
        {
            "instance": Bernoulli([0.5, 0.25]),
            "num_users": 3,
            "num_arms": 2,
            "capacity": 2,
            "objective": "utilitarian",
            "horizon": 3,
            "horizon_known": True,
            "render_mode": None,
            "render_reveal": True,
        },
    ),
    (EGAL, {"instance": Gaussian([0.5, 0.25], 0), "num_users": 1}),
]


@pytest.mark.parametrize("limit", [{}, {"max_episode_steps": None}, {"max_episode_steps": 2}])
@pytest.mark.parametrize(
    "reset", [{}, {"autoreset_mode": SAME_STEP}, {"autoreset_mode": "Disabled"}]
)
@pytest.mark.parametrize("how", [None, "vector_entry_point", VectorizeMode.VECTOR_ENTRY_POINT])
@pytest.mark.parametrize(("env_id", "kwargs"), ACCEPTED)
def test_make_vec_accepts_every_argument(
    env_id: str, kwargs: Kwargs, how: Any, reset: Kwargs, limit: Kwargs
) -> None:
    arguments: Kwargs = {**kwargs, **reset, **limit}
    envs: Any = gym.make_vec(env_id, num_envs=2, vectorization_mode=how, **arguments)
    assert isinstance(envs, ImprovingBanditVectorEnv | EgalAssignVectorEnv)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    _, _, terminations, truncations, _ = envs.step(envs.action_space.sample())
    assert not terminations.any()
    assert truncations.tolist() == [limit.get("max_episode_steps") == 2] * 2
    envs.close()
    envs.close()


@every_id
def test_the_default_is_one_environment(env_id: str) -> None:
    envs: Any = gym.make_vec(env_id)
    assert envs.num_envs == 1
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[1].shape == (1,)
    assert envs.render_mode is None
    assert envs.unwrapped is envs
