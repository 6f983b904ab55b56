"""Seeds, masks and instances that resets of the native vector environments take or refuse."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from helpers_envs import every_case, every_id, pins_for
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import Player, assert_identical, random_states, worth
from helpers_vectors import NEXT_STEP, Duel, every_mode, make_native, progress, running_pair
from numpy.testing import assert_array_equal


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


@every_id
@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([0], TypeError, "`rows` must be a bool array, got [0]"),
        (np.array([1, 2]), TypeError, "`rows` must be a bool array, got array([1, 2])"),
        (np.array([True]), ValueError, "`rows` must have shape (3,), got (1,)"),
    ],
)
def test_rows_are_a_mask(env_id: str, rows: Any, error: type[Exception], message: str) -> None:
    envs = make_native(env_id, 3, num_arms=6)
    envs.reset(seed=0)
    for method in ("expected_return", "realized_return", "optimal_return", "exact_optimal_return"):
        with pytest.raises(error, match=re.escape(message)):
            getattr(envs, method)(rows=rows)
    assert envs.expected_return(rows=np.zeros(3, dtype=np.bool_)).shape == (0,)


@pytest.mark.parametrize(
    ("env_id", "instance"), [(IMPROVING, "early_vs_late"), (EGAL, "two_level")]
)
def test_instances_are_made_once_and_none_is_the_default(env_id: str, instance: str) -> None:
    envs = make_native(env_id, 4, num_arms=2 if env_id == IMPROVING else 6)
    made, make_source = [], envs._make_source

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return make_source(*arguments)

    envs._make_source = counted
    envs.reset(seed=0, options={"instances": [instance, None, instance, None]})
    assert len(made) == 1
    alone = make_native(env_id, 4, num_arms=envs.num_arms)
    alone.reset(seed=0)
    paid, default = envs.next_expected_rewards(), alone.next_expected_rewards()
    assert_array_equal(paid[[1, 3]], default[[1, 3]])
    assert_array_equal(paid[0], paid[2])
    assert not (paid[0] == default[0]).all()


def test_what_is_best_by_default_is_so_within_the_step_limit() -> None:
    envs = make_native(IMPROVING, 1, instance="early_vs_late", horizon=1000, max_episode_steps=20)
    envs.reset(seed=0)
    assert envs.optimal_arm().tolist() == envs.optimal_arm(20).tolist() == [0]
    assert envs.optimal_pulls().tolist() == [[20, 0]]
    assert envs.optimal_arm(1000).tolist() == [1]
