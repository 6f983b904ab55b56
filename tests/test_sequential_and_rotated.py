"""Assignments one user at a time, and sets that rotate for a block of steps."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.wrappers import FlattenObservation, TransformObservation
from helpers_agents import fixed
from helpers_assignment import Sizes, Spy, legal, make, wrapped
from helpers_play import assert_identical

from gym_fairbandits.agents import OracleRotation
from gym_fairbandits.agents.egalitarian import RotatingAgent, top_arms
from gym_fairbandits.wrappers import PolicyRegret, RotatedAssignment, SequentialAssignment

# --- One user at a time ---------------------------------------------------------------------------


def test_a_round_worked_by_hand() -> None:
    # Five users, three arms for two each; means 0.5, 0.25, 1.
    env, spy = wrapped("sequential", (5, 3, 2), instance=fixed([0.5, 0.25, 1.0]))
    assert env.action_space == spaces.Discrete(3)
    extra = {name: env.observation_space[name] for name in ("turn", "taken")}
    assert extra == {
        "turn": spaces.Box(0, 4, (1,), np.int64),
        "taken": spaces.Box(0, 2, (3,), np.int64),
    }
    steps = [  # action, taken and masks thereafter
        (2, [0, 0, 1], [True, True, True]),
        (2, [0, 0, 2], [True, True, False]),
        (2, [1, 0, 2], [True, True, False]),  # full: on to arm 0
        (0, [2, 0, 2], [False, True, False]),
    ]
    for turn, (action, taken, masks) in enumerate(steps):
        observation, reward, _, _, info = env.step(np.array(action))
        assert observation["turn"].tolist() == [turn + 1]
        assert observation["taken"].tolist() == taken
        assert env.action_masks().tolist() == masks
        assert observation["pulls"].tolist() == [0, 0, 0]
        assert (reward, info) == (0.0, {})
    observation, reward, _, _, info = env.step(2)  # full, as is 0: on to arm 1
    assert spy.seen == [[2, 2, 0, 0, 1]]
    assert reward == 0.25
    assert info["user_rewards"].tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert observation["pulls"].tolist() == [1, 1, 1]
    assert observation["turn"].tolist() == [0]
    assert observation["taken"].tolist() == [0, 0, 0]
    assert env.action_masks().all()


def test_strict_raises_where_an_arm_is_full_and_the_user_may_try_again() -> None:
    env, spy = wrapped("sequential", (3, 3, 1), options={"strict": True})
    assert env.strict is True
    env.step(1)
    for _ in range(2):
        message = r"`action` must be an arm with a place left, of \[0, 2\], got arm 1 for user 1"
        with pytest.raises(InvalidAction, match=message):
            env.step(1)
        assert env.action_masks().tolist() == [True, False, True]
    observation = env.step(2)[0]
    assert observation["turn"].tolist() == [2]
    with pytest.raises(InvalidAction, match=r"of \[0\], got arm 2 for user 2"):
        env.step(2)
    env.step(0)
    assert spy.seen == [[1, 2, 0]]
    rng = np.random.default_rng(0)
    while not any(env.step(rng.choice(np.flatnonzero(env.action_masks())))[2:4]):
        pass
    assert len(spy.seen) == 12


def test_a_masked_sample_is_free() -> None:
    env, spy = wrapped("sequential", (4, 2, 2), options={"strict": True}, horizon=50)
    env.action_space.seed(0)
    for _ in range(4 * 50):
        env.step(env.action_space.sample(mask=env.action_masks().astype(np.int8)))
    assert {tuple(arms) for arms in spy.seen} == set(legal((4, 2, 2)))


def test_reset_in_the_middle_of_a_round_starts_it_afresh() -> None:
    env, spy = wrapped("sequential", (3, 3, 1))
    env.step(0)
    env.step(1)
    with pytest.raises(TypeError, match="instance"):
        env.reset(options={"instance": 3})
    assert env.action_masks().tolist() == [False, False, True]  # an error changes nothing
    observation, _ = env.reset(seed=1)
    assert observation["turn"].tolist() == [0]
    assert observation["taken"].tolist() == [0, 0, 0]
    assert env.action_masks().all()
    for arm in (2, 1, 0):
        env.step(arm)
    assert spy.seen == [[2, 1, 0]]


def test_an_error_of_the_environment_keeps_the_round() -> None:
    class Failing(gym.Wrapper[Any, Any, Any, Any]):
        broken = True

        def step(self, action: Any) -> Any:
            if self.broken:
                raise RuntimeError("out of order")
            return self.env.step(action)

    failing = Failing(make((3, 3, 1)))
    env = SequentialAssignment(failing)
    env.reset(seed=0)
    env.step(2)
    env.step(0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of order"):
            env.step(1)
        assert env.action_masks().tolist() == [False, True, False]
    failing.broken = False
    observation = env.step(1)[0]
    assert observation["pulls"].tolist() == [1, 1, 1]


def test_the_sequential_wrapper_needs_a_dict_it_can_extend() -> None:
    with pytest.raises(TypeError, match="`env` must have a Dict observation space"):
        SequentialAssignment(FlattenObservation(make()))
    taken: Any = TransformObservation(
        make(),
        lambda observation: {**observation, "taken": 0},
        spaces.Dict({**make().observation_space.spaces, "taken": spaces.Discrete(2)}),  # type: ignore[attr-defined]
    )
    with pytest.raises(ValueError, match="`env` must not observe `taken` already, got Discrete"):
        SequentialAssignment(taken)
    with pytest.raises(TypeError, match="`strict` must be a bool, got 1"):
        SequentialAssignment(make(), strict=1)  # type: ignore[arg-type]


def test_observations_of_any_kind_are_copied() -> None:
    inner: Any = TransformObservation(
        make(),
        lambda observation: {"sums": {"arms": observation["reward_sum"]}},
        spaces.Dict({"sums": spaces.Dict({"arms": make().observation_space["reward_sum"]})}),  # type: ignore[index]
    )
    env = SequentialAssignment(inner)
    first, _ = env.reset(seed=0)
    second = env.step(0)[0]
    assert second in env.observation_space
    assert_identical(second["sums"], first["sums"])
    assert second["sums"]["arms"] is not first["sums"]["arms"]


# --- Sets in rotation -----------------------------------------------------------------------------


class FixedSet(RotatingAgent):
    """Rotates over the arms of the highest scores, as EgalUCB over those of the highest index."""

    def __init__(self, scores: Any, capacity: int = 1) -> None:
        super().__init__(capacity)
        self.scores = np.array(scores)

    def _choose(self, observation: Any, steps: Any, rows: Any, count: int) -> Any:
        return np.tile(top_arms(self.scores, count), (len(rows), 1))


def seen_of(env: Any, agent: Any, spy: Spy) -> list[list[int]]:
    observation, _ = env.reset(seed=0)
    ended = False
    while not ended:
        observation, _, terminated, truncated, _ = env.step(agent.act(observation))
        ended = terminated or truncated
    return spy.seen


@pytest.mark.parametrize(
    "sizes", [(1, 3, 1), (4, 6, 1), (5, 5, 1), (4, 3, 2), (6, 2, 3), (3, 2, 3)]
)
def test_blocks_are_those_of_the_rotating_agents(sizes: Sizes) -> None:
    scores = np.random.default_rng(0).random(sizes[1])
    env, spy = wrapped("rotated", sizes, horizon=17)
    while not any(env.step(scores)[2:4]):
        pass
    other = Spy(make(sizes, horizon=17))
    assert seen_of(other, FixedSet(scores, sizes[2]), other) == spy.seen


@pytest.mark.parametrize(
    "sizes", [(4, 6, 1), (4, 3, 2), (3, 3, 2), (5, 3, 2), (7, 4, 3), (2, 3, 4)]
)
def test_the_means_as_scores_play_as_the_oracle_and_have_no_regret(sizes: Sizes) -> None:
    means = np.random.default_rng(1).random(sizes[1])
    settings: dict[str, Any] = {"instance": fixed(means.tolist()), "horizon": 6 * sizes[0]}
    spy = Spy(make(sizes, **settings))
    env = PolicyRegret(RotatedAssignment(spy))
    env.reset(seed=0)
    ended = False
    while not ended:
        _, reward, terminated, truncated, info = env.step(means)
        assert np.ptp(info["user_rewards"]) <= 1e-12
        assert reward == pytest.approx(info["user_rewards"].min(), rel=1e-12)
        ended = terminated or truncated
    assert info["policy_regret"] == pytest.approx(0, abs=1e-12 * info["optimal_return"])
    assert info["realized_regret"] == pytest.approx(0, abs=1e-12 * info["optimal_return"])
    other = Spy(make(sizes, **settings))
    assert seen_of(other, OracleRotation(other), other) == spy.seen


def test_a_block_passes_on_what_an_environment_without_user_rewards_says() -> None:
    class Silent(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, _ = self.env.step(action)
            return observation, reward, terminated, truncated, {"note": 1.5}

    env = RotatedAssignment(Silent(make()))
    env.reset(seed=0)
    assert env.step(np.zeros(5))[4] == {"note": 1.5}
