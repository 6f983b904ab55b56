"""Every agent: the same row by row, alone, copied and asked again; its parameters and errors."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from helpers_agents import (
    ALL_AGENTS,
    DETERMINISTIC,
    HORIZON_AWARE,
    SMALL,
    Observation,
    build,
    episode,
    factories,
    phases,
    row,
)
from helpers_names import EGAL, IMPROVING, Ints
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import (
    Agent,
    AnytimeImproving,
    EgalUCB,
    FixedArm,
    OracleArm,
    OracleRotation,
    RotatingAgent,
    RoundRobin,
    StaticOracle,
    UniformRandom,
)

every_agent = pytest.mark.parametrize(("env_id", "name"), ALL_AGENTS)
every_deterministic_agent = pytest.mark.parametrize(("env_id", "name"), DETERMINISTIC)


# --- One row, many rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@every_agent
def test_batched_act_is_the_act_of_each_row(env_id: str, name: str, known: bool) -> None:
    stream = phases(env_id, **SMALL[env_id], horizon_known=known)
    envs, singles, observations = next(stream)
    together = build(env_id, name, envs)
    alone = [build(env_id, name, env) for env in singles]
    together.reset(seed=5)
    for i, agent in enumerate(alone):
        agent.reset(seed=5 + i)
    started = set()
    try:
        while True:
            batch, *own = observations
            started.add(tuple(batch["pulls"].sum(axis=1).tolist()))
            for i in range(4):
                for key, values in row(batch, i).items():
                    assert_array_equal(values, own[i][key], err_msg=key)
            actions = together.act(batch)
            assert actions.dtype == np.int64
            separate = [agent.act(seen_by) for agent, seen_by in zip(alone, own, strict=True)]
            assert_array_equal(actions, np.array(separate))
            _, _, observations = stream.send(actions)
    except StopIteration:
        pass
    assert sum(len(set(steps)) > 1 for steps in started) > 30  # rows were out of step


@every_agent
def test_a_batch_of_one_is_the_single_environment(env_id: str, name: str) -> None:
    single, batch = gym.make(env_id, **SMALL[env_id]), gym.make_vec(env_id, 1, **SMALL[env_id])
    one, many = build(env_id, name, single), build(env_id, name, batch)
    one.reset(seed=3)
    many.reset(seed=3)
    alone, _ = single.reset(seed=8)
    together, _ = batch.reset(seed=8)
    for _ in range(23):
        action, actions = one.act(alone), many.act(together)
        assert actions.shape == (1, *np.shape(action))
        assert_array_equal(actions[0], action)
        alone, *_ = single.step(action)
        together, *_ = batch.step(actions)


@every_agent
def test_actions_are_legal_fresh_and_of_the_stated_type(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    observation, _ = env.reset(seed=0)
    for _ in range(7):
        before = copy.deepcopy(observation)
        action = agent.act(observation)
        for key, values in before.items():  # the agent has not touched it
            assert_array_equal(observation[key], values)
        if env_id == IMPROVING:
            assert type(action) is int
            assert 0 <= action < 4
        else:
            assert action.dtype == np.int64
            assert env.action_space.contains(action)
        observation, *_ = env.step(copy.copy(action))
        if env_id == EGAL:
            action[:] = -1  # must not reach into the agent


@every_agent
def test_overwriting_batched_actions_changes_no_later_ones(env_id: str, name: str) -> None:
    envs = gym.make_vec(env_id, 2, **SMALL[env_id])
    careful, careless = build(env_id, name, envs), build(env_id, name, envs)
    for agent in (careful, careless):
        agent.reset(seed=0)
    observation, _ = envs.reset(seed=0)
    for _ in range(10):
        actions, overwritten = careful.act(observation), careless.act(observation)
        assert_array_equal(actions, overwritten)
        overwritten[:] = 0
        observation, *_ = envs.step(actions)


@every_deterministic_agent
def test_asked_again_a_deterministic_agent_repeats_itself(env_id: str, name: str) -> None:
    env, twin = gym.make(env_id, **SMALL[env_id]), gym.make(env_id, **SMALL[env_id])
    asked_once = build(env_id, name, twin)
    agent = build(env_id, name, env)
    for seed in (0, 1):
        expected, _, _ = episode(twin, asked_once, seed)
        observation, _ = env.reset(seed=seed)
        for action in expected:
            answers = [np.asarray(agent.act(observation)).tolist() for _ in range(3)]
            assert answers == [action] * 3
            observation, *_ = env.step(agent.act(observation))


class RandomSets(RotatingAgent):
    """Rotates over a random set of arms."""

    def _choose(self, observation: Any, steps: Ints, rows: Ints, count: int) -> Ints:
        num_arms = observation["pulls"].shape[1]
        return np.array([self._generator(i).permutation(num_arms)[:count] for i in rows.tolist()])


def test_a_set_chosen_at_random_stands_until_its_block_is_over() -> None:
    env = gym.make(EGAL, num_users=3, num_arms=30, horizon=30)
    agent = RandomSets()
    agent.reset(seed=0)
    observation, _ = env.reset(seed=0)
    sets = []
    for step in range(30):
        action = agent.act(observation)
        if step:
            assert_array_equal(agent.act(observation), action)
        sets.append(tuple(sorted(action.tolist())))
        observation, *_ = env.step(action)
    assert sets[::3] == sets[1::3] == sets[2::3]
    assert len(set(sets)) == 10


@every_deterministic_agent
def test_a_copy_of_an_agent_goes_on_as_the_agent_would(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    observation, _ = env.reset(seed=0)
    for _ in range(10):  # within a block
        observation, *_ = env.step(agent.act(observation))
    copied = copy.deepcopy(agent)
    pickled = pickle.loads(pickle.dumps(agent))
    for _ in range(13):
        action = agent.act(observation)
        assert_array_equal(copied.act(observation), action)
        assert_array_equal(pickled.act(observation), action)
        observation, *_ = env.step(action)


@every_deterministic_agent
def test_a_new_episode_is_noticed_without_a_reset(env_id: str, name: str) -> None:
    env, twin = gym.make(env_id, **SMALL[env_id]), gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    for seed in range(4):
        actions, _, _ = episode(env, agent, seed)
        expected, _, _ = episode(twin, build(env_id, name, twin), seed)
        assert actions == expected


@every_deterministic_agent
def test_a_new_episode_is_noticed_after_one_that_was_broken_off(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    whole, _, _ = episode(env, build(env_id, name, env), seed=2)
    for length in (1, 2, 3, 7):
        observation, _ = env.reset(seed=1)
        for _ in range(length):
            observation, *_ = env.step(agent.act(observation))
        assert episode(env, agent, seed=2)[0] == whole


@every_deterministic_agent
def test_reset_makes_an_agent_as_good_as_new(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    whole, _, _ = episode(env, agent, seed=2)
    for seed in (None, 4):
        agent.reset(seed=seed)
        assert episode(env, agent, seed=2)[0] == whole


@every_agent
def test_joining_late_after_a_reset_is_as_with_a_new_agent(env_id: str, name: str) -> None:
    def joined(agent: Agent, after: int) -> list[Any]:
        agent.reset(seed=8)
        observation, _ = env.reset(seed=2)
        actions = []
        for step in range(SMALL[env_id]["horizon"]):
            action = agent.act(observation) if step >= after else foreign[step]
            observation, *_ = env.step(action)
            actions.append(np.asarray(action).tolist())
        return actions

    env = gym.make(env_id, **SMALL[env_id])
    env.action_space.seed(6)
    foreign = [env.action_space.sample() for _ in range(7)]
    used = build(env_id, name, env)
    for after in (3, 6, 7):
        episode(env, used, seed=after)
        assert joined(used, after) == joined(build(env_id, name, env), after)


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        (env_id, name)
        for env_id in SMALL
        for name in factories(env_id, oracles=False)
        if name not in HORIZON_AWARE
    ],
)
def test_no_plain_agent_looks_at_the_horizon(env_id: str, name: str) -> None:
    short, known, long = (
        gym.make(env_id, **SMALL[env_id] | {"horizon": horizon, "horizon_known": is_known})
        for horizon, is_known in ((31, False), (31, True), (90, False))
    )
    sequences = []
    for env in (short, known, long):
        agent = build(env_id, name, env)
        agent.reset(seed=0)
        sequences.append(episode(env, agent, seed=6)[0][:31])
    assert sequences[0] == sequences[1] == sequences[2]


def test_an_agent_serves_environments_of_other_sizes_in_turn() -> None:
    agent = EgalUCB()
    for users, arms in ((2, 4), (3, 4), (3, 6), (1, 2), (2, 4)):
        env = gym.make(EGAL, num_users=users, num_arms=arms, horizon=20)
        expected, _, _ = episode(env, EgalUCB(), seed=0)
        assert episode(env, agent, seed=0)[0] == expected


@pytest.mark.parametrize(
    "sizes", [[(4, 1), (8, 1), (4, 1)], [(3, 1), (3, 2), (5, 1)], [(1, 1), (4, 1), (16, 1)]]
)
def test_a_random_agent_serves_environments_of_other_sizes_in_turn(
    sizes: list[tuple[int, int]],
) -> None:
    agents = {capacity: UniformRandom(capacity) for capacity in (1, 2)}
    for arms, capacity in sizes:
        improving = gym.make(IMPROVING, num_arms=arms, horizon=101)
        drawn, _, _ = episode(improving, agents[capacity], seed=0)
        assert set(drawn) <= set(range(arms))
        egal = gym.make(EGAL, num_users=arms, num_arms=arms, capacity=capacity, horizon=101)
        for assigned in episode(egal, agents[capacity], seed=0)[0]:
            assert egal.action_space.contains(np.array(assigned))


@every_agent
def test_lists_serve_as_the_observation_of_one_environment(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent, twin = build(env_id, name, env), build(env_id, name, env)
    for each in (agent, twin):
        each.reset(seed=0)
    observation, _ = env.reset(seed=0)
    for _ in range(10):
        action = agent.act(observation)
        lists: Any = {name: values.tolist() for name, values in observation.items()}
        assert_array_equal(twin.act(lists), action)
        observation, *_ = env.step(action)


# --- predict --------------------------------------------------------------------------------------


def test_predict_has_the_parameters_of_stable_baselines() -> None:
    parameters = inspect.signature(Agent.predict).parameters
    assert list(parameters) == ["self", "observation", "state", "episode_start", "deterministic"]
    defaults = [parameters[name].default for name in list(parameters)[2:]]
    assert defaults == [None, None, True]


@every_agent
def test_predict_is_act_as_an_array_and_passes_the_state_on(env_id: str, name: str) -> None:
    env, envs = gym.make(env_id, **SMALL[env_id]), gym.make_vec(env_id, 3, **SMALL[env_id])
    for where in (env, envs):
        observation: Observation = where.reset(seed=0)[0]
        acting, predicting = build(env_id, name, where), build(env_id, name, where)
        for agent in (acting, predicting):
            agent.reset(seed=0)
        state = object()
        for deterministic in (True, False):
            action, passed = predicting.predict(
                observation, state, np.ones(3, dtype=np.bool_), deterministic
            )
            assert isinstance(action, np.ndarray)
            assert action.dtype == np.int64
            assert action.shape == where.action_space.shape
            assert passed is state
            assert_array_equal(action, acting.act(observation))
        assert predicting.predict(observation)[1] is None


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: AnytimeImproving(-1e-9), ValueError, "`tolerance` must be at least 0"),
        (lambda: AnytimeImproving(math.nan), ValueError, "`tolerance` must be finite, got nan"),
        (lambda: FixedArm(-1), ValueError, "`arm` must be at least 0, got -1"),
        (lambda: FixedArm(1.0), TypeError, "`arm` must be an integer, got 1.0"),  # type: ignore[arg-type]
        (lambda: UniformRandom(0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: EgalUCB(capacity=0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: EgalUCB(c=-1), ValueError, "`c` must be at least 0, got -1"),
        (lambda: EgalUCB(c="6"), TypeError, "`c` must be a real number, got '6'"),  # type: ignore[arg-type]
        (lambda: EgalUCB(sigma=math.inf), ValueError, "`sigma` must be finite, got inf"),
        (lambda: EgalUCB(update="some"), ValueError, "`update` must be one of 'all', 'played'"),
        (lambda: EgalUCB(loop="while"), ValueError, "`loop` must be one of 'fixed', 'printed'"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()


@every_agent
@pytest.mark.parametrize("wrong", [np.zeros(5), {}, {"counts": np.zeros(5)}, None])
def test_what_is_no_observation_is_refused(env_id: str, name: str, wrong: Any) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    message = "`observation` must be the environment's Dict observation with `pulls`, got"
    with pytest.raises(TypeError, match=message):
        agent.act(wrong)


def test_a_fixed_arm_out_of_range_is_named() -> None:
    observation, _ = gym.make(IMPROVING, num_arms=3).reset(seed=0)
    assert FixedArm(2).act(observation) == 2
    with pytest.raises(ValueError, match="`arm` must be below the number of arms, 3, got 3"):
        FixedArm(3).act(observation)


def test_a_capacity_that_does_not_divide_the_users_is_named() -> None:
    observation, _ = gym.make(EGAL, num_users=5, capacity=2).reset(seed=0)
    agent = EgalUCB(capacity=2)
    for ask in (lambda: agent.act(observation), lambda: agent.num_steps(10, 5)):
        with pytest.raises(
            ValueError, match="`capacity` must divide the number of users, 5, got 2"
        ):
            ask()


WRONG_ENVS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "cartpole": (lambda: gym.make("CartPole-v1"), [OracleArm, OracleRotation, StaticOracle]),
    "cartpole_vector": (
        lambda: gym.make_vec("CartPole-v1", num_envs=2),
        [OracleArm, OracleRotation, StaticOracle],
    ),
    "cartpole_sync": (
        lambda: SyncVectorEnv([lambda: gym.make("CartPole-v1")]),
        [OracleArm, OracleRotation, StaticOracle],
    ),
    "no_env": (lambda: "ImprovingBandit-v0", [OracleArm, OracleRotation, StaticOracle]),
    "improving": (lambda: gym.make(IMPROVING), [OracleRotation, StaticOracle]),
    "egal": (lambda: gym.make(EGAL), [OracleArm]),
    "egal_native": (lambda: gym.make_vec(EGAL, 2), [OracleArm]),
    "improving_native": (lambda: gym.make_vec(IMPROVING, 2), [OracleRotation, StaticOracle]),
}


@pytest.mark.parametrize("which", WRONG_ENVS)
def test_oracles_refuse_environments_that_cannot_answer(which: str) -> None:
    make, oracles = WRONG_ENVS[which]
    env = make()
    for oracle in oracles:
        with pytest.raises(TypeError, match="`env` must be an environment that has `"):
            oracle(env)


def test_an_oracle_for_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="`steps` must be at least 0, got -1"):
        OracleArm(gym.make(IMPROVING), steps=-1)


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        (EgalUCB(), "EgalUCB(capacity=1, c=6.0, sigma=1.0, update='all', loop='fixed')"),
        (FixedArm(3), "FixedArm(arm=3)"),
        (RoundRobin(), "RoundRobin()"),
        (UniformRandom(2), "UniformRandom(capacity=2)"),
    ],
)
def test_repr_shows_the_parameters(agent: Agent, shown: str) -> None:
    agent.reset(seed=3)
    assert repr(agent) == shown
