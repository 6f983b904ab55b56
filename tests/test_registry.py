"""Agents by name: which there are, how they are made, what they are told."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL, IMPROVING

import gym_fairbandits  # noqa: F401 - registers the environments
from gym_fairbandits import agents
from gym_fairbandits.agents import Agent, registry
from gym_fairbandits.envs import EgalAssignEnv
from gym_fairbandits.evaluation import Entry, evaluate
from gym_fairbandits.wrappers import PolicyRegret

READY = [(env_id, name) for env_id in (IMPROVING, EGAL) for name in agents.ready(env_id)]
BASES = {"Agent", "RotatingAgent", "IndexRotation"}


def test_every_agent_that_the_package_exports_has_a_name() -> None:
    exported = {
        name
        for name in agents.__all__
        if inspect.isclass(getattr(agents, name)) and issubclass(getattr(agents, name), Agent)
    }
    named = {agents.agent_class(name).__name__ for name in agents.available()}
    assert named == exported - BASES


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("egal-ucb", agents.EgalUCB),
        ("egal-kl-ucb", agents.EgalKLUCB),
        ("ucb1", agents.UCB1),
        ("kl-ucb", agents.KLUCB),
        ("exp3", agents.Exp3),
        ("rcbe", agents.RCBE),
        ("anytime-improving", agents.AnytimeImproving),
        ("sliding-window-ucb", agents.SlidingWindowUCB),
    ],
)
def test_names_are_those_of_the_classes_in_words(name: str, expected: type[Agent]) -> None:
    assert agents.agent_class(name) is expected
    assert name in agents.available()


def test_each_environment_lists_its_own_agents_with_a_line_each() -> None:
    improving, egal = agents.available(IMPROVING), agents.available(EGAL)
    assert set(improving) & set(egal) == {"uniform-random"}
    assert agents.available() == improving | egal
    for name, line in (improving | egal).items():
        assert line.endswith("."), name
        assert len(line) <= 100, name


@pytest.mark.parametrize(("env_id", "name"), READY)
def test_an_agent_made_from_its_name_plays_the_environment(env_id: str, name: str) -> None:
    sizes: dict[str, Any] = {"num_users": 2} if env_id == EGAL else {}
    env = PolicyRegret(gym.make(env_id, horizon=12, **sizes))
    agent = agents.make(name, env=env)
    assert type(agent) is agents.agent_class(name, env_id)
    agent.reset(seed=0)
    observation, info = env.reset(seed=0)
    for _ in range(12):
        observation, _, _, _, info = env.step(agent.act(observation))
    assert info["policy_regret"] >= -1e-9


def test_only_agents_that_need_more_than_the_environment_are_not_ready() -> None:
    assert set(agents.available(EGAL)) == set(agents.ready(EGAL))
    assert set(agents.available(IMPROVING)) - set(agents.ready(IMPROVING)) == {"hybrid-rising"}


def test_the_environment_tells_horizon_and_capacity_unless_they_are_given() -> None:
    env = gym.make(EGAL, num_users=6, capacity=3, horizon=50)
    told: Any = agents.make("egal-moss", env=env)
    assert (told.horizon, told.capacity) == (50, 3)
    given: Any = agents.make("egal-moss", env=env, horizon=7, capacity=2)
    assert (given.horizon, given.capacity) == (7, 2)
    vector = gym.make_vec(EGAL, num_envs=2, num_users=6, capacity=3, max_episode_steps=20)
    limited: Any = agents.make("egal-moss", env=vector)
    assert (limited.horizon, limited.capacity) == (20, 3)
    alone: Any = agents.make("egal-moss")
    assert (alone.horizon, alone.capacity) == (None, 1)


def test_what_an_agent_may_be_told() -> None:
    assert agents.knowledge(agents.AnytimeImproving) == ()
    assert agents.knowledge(agents.SinglePeakedOptimism) == ("horizon",)
    assert agents.knowledge(agents.OracleRotation) == ("instance",)
    assert agents.knowledge(agents.HybridRising) == ("horizon", "optimum")


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"`name` must be one of \[.*'egal-ucb'.*\], got 'ucb'"):
        agents.make("ucb")
    with pytest.raises(ValueError, match=r"`name` must be one of .*got 'egal-ucb'"):
        agents.agent_class("egal-ucb", IMPROVING)
    with pytest.raises(ValueError, match=r"got 'egal-ucb', which plays EgalAssign-v0"):
        agents.agent_class("egal-ucb", IMPROVING)
    with pytest.raises(ValueError, match="registered environment, got 'ImprovingBandit-v1'"):
        agents.register(agents.Greedy, "ImprovingBandit-v1")
    with pytest.raises(ValueError, match=r"`env_id` must be one of .*got 'CartPole-v1'"):
        agents.available("CartPole-v1")
    with pytest.raises(TypeError, match=r"'greedy' takes the parameters \[\], got \['c'\]"):
        agents.make("greedy", c=1)
    with pytest.raises(TypeError, match="`optimum` must be given for 'hybrid-rising'"):
        agents.make("hybrid-rising")
    with pytest.raises(TypeError, match="`env` must be the environment that runs for 'oracle-arm'"):
        agents.make("oracle-arm")


def test_an_agent_of_another_environment_is_refused_where_it_is_known_who_plays() -> None:
    told = r"`name` must be one of .*got 'greedy', which plays ImprovingBandit-v0"
    for env in (PolicyRegret(gym.make(EGAL)), gym.make_vec(EGAL, num_envs=2)):
        with pytest.raises(ValueError, match=told):
            agents.make("greedy", env=env)
    # Of environments that the registry does not know, or that no id made, nobody can tell.
    assert isinstance(agents.make("greedy", env=gym.make("CartPole-v1")), agents.Greedy)
    assert isinstance(agents.make("greedy", env=EgalAssignEnv()), agents.Greedy)


def test_an_agent_of_the_users_own_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_players", {IMPROVING: dict(registry._players[IMPROVING])})

    class LastArm(Agent):
        """The arm of the highest index, always."""

        def _act(self, observation: Any) -> Any:
            rows, num_arms = observation["pulls"].shape
            return np.full(rows, num_arms - 1)

    agents.register(LastArm, IMPROVING)
    agents.register(LastArm, IMPROVING)  # twice is no mistake
    assert agents.available(IMPROVING)["last-arm"] == "The arm of the highest index, always."
    env = gym.make(IMPROVING, num_arms=4)
    observation, _ = env.reset()
    assert agents.make("last-arm", env=env).act(observation) == 3

    another = type("LastArm", (LastArm,), {})
    told = r"name of its own among those of ImprovingBandit-v0, got 'last-arm', the name of .*joins"
    with pytest.raises(ValueError, match=told):
        agents.register(another, IMPROVING)
    assert agents.agent_class("last-arm", IMPROVING) is LastArm
    with pytest.raises(TypeError, match="`agent` must be a subclass of `Agent`"):
        agents.register(LastArm(), IMPROVING)  # type: ignore[arg-type]


def test_a_class_that_is_defined_once_more_takes_its_own_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_players", {IMPROVING: dict(registry._players[IMPROVING])})

    def define() -> type[Agent]:
        class Again(agents.RoundRobin):
            """Round robin, from a cell of a notebook."""

        return Again

    before, after = define(), define()
    for kind in (before, after):
        agents.register(kind, IMPROVING)
    assert type(agents.make("again")) is after is not before


OWN = """from gym_fairbandits import agents

class LastArm(agents.Agent):
    \"\"\"Always the last arm.\"\"\"

    def _act(self, observation):
        rows, num_arms = observation["pulls"].shape
        return [num_arms - 1] * rows

agents.register(LastArm, "ImprovingBandit-v0")
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that registers an agent, found but not imported; forgotten afterwards."""
    (tmp_path / "policies_of_mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_players", {IMPROVING: dict(registry._players[IMPROVING])})
    yield "policies_of_mine"
    sys.modules.pop("policies_of_mine", None)


def test_a_name_after_a_module_imports_the_module_first(own_module: str) -> None:
    with pytest.raises(ValueError, match="got 'last-arm'"):
        agents.make("last-arm")
    agent = agents.make(f"{own_module}:last-arm")
    assert type(agent).__module__ == own_module
    assert type(agents.make("last-arm")) is type(agent)


@pytest.mark.usefixtures("loky")
def test_other_processes_import_that_module_too(own_module: str) -> None:
    name = f"{own_module}:last-arm"
    evaluation = evaluate(
        Entry(factory=partial(agents.make, name)),
        IMPROVING,
        instance="early_vs_late",
        horizon=50,
        num_episodes=4,
        n_jobs=2,
    )
    assert evaluation.mean("policy_regret") == 0  # the late bloomer is the last arm


def test_a_module_that_is_not_there_is_named(own_module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        agents.make("no_such_module:last-arm")
    with pytest.raises(ValueError, match="got 'first-arm'"):
        agents.agent_class(f"{own_module}:first-arm")
