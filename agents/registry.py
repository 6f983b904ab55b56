"""Every agent by name: which there are for an environment, and one made from its name.

A name is that of the class in lower case with hyphens: ``EgalUCB`` is ``"egal-ucb"``. An agent of
your own joins with :func:`register`; ``"my_module:my-agent"`` imports the module that does so, as
in ``gym.make("module:Env-v0")``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from contextlib import suppress
from typing import Any

import gymnasium as gym

from gym_fairbandits._checks import add_family

from .adversarial import ComponentHedge, PermELearn
from .base import Agent
from .capacity import PhasedElimination
from .classic import KLUCB, UCB1, EpsilonGreedy, ThompsonSampling, UniformRandom
from .egalitarian import EgalUCB
from .egalitarian_indices import (
    EgalKLUCB,
    EgalMOSS,
    EgalThompson,
    ExploreThenCommit,
    GreedyRotation,
)
from .egalitarian_steps import CombinatorialUCB, PoorestFirst
from .exponential import Exp3, Rexp3
from .improving import AnytimeImproving, FixedArm, Greedy, HorizonAwareImproving, RoundRobin
from .oracle import GreedyNext, OracleArm, OracleRotation, OracleSchedule, StaticOracle
from .random_order import HybridRising, RandomRoundRobin
from .rising import RCBE, RisingUCB
from .running import episode_length, read
from .single_peaked import AnytimeSinglePeaked, SinglePeakedOptimism
from .windowed import DiscountedUCB, SlidingWindowThompson, SlidingWindowUCB

__all__ = ["agent_class", "available", "describe", "knowledge", "load", "make", "ready", "register"]

_players: dict[str, dict[str, type[Agent]]] = {"ImprovingBandit-v0": {}, "EgalAssign-v0": {}}


def register(agent: type[Agent], env_id: str) -> None:
    """Make an agent known by name.

    The same class, defined once more as when a cell of a notebook runs again, takes the place of
    the first.

    Args:
        agent: Its class; the first line of its docstring describes it.
        env_id: The environment that it plays, as ``"EgalAssign-v0"``.

    Raises:
        TypeError: If ``agent`` is not a class of agents.
        ValueError: If another agent of that name plays ``env_id``, or Gymnasium knows no such
            environment.
    """
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise TypeError(f"`agent` must be a subclass of `Agent`, got {agent!r}")
    if env_id not in gym.registry and env_id not in _players:
        raise ValueError(f"`env_id` must be that of a registered environment, got {env_id!r}")
    players = _players.setdefault(env_id, {})
    rule = f"`agent` must have a name of its own among those of {env_id}"
    add_family(players, _name(agent), agent, rule)


def available(env_id: str | None = None) -> dict[str, str]:
    """Return the agents of an environment, or all: one-line descriptions by name.

    Raises:
        ValueError: If no agent plays ``env_id``.
    """
    return {name: describe(agent) for name, agent in _known(env_id).items()}


def describe(thing: object) -> str:
    """Return the first line of a docstring: an agent's, or that of whatever has one."""
    return inspect.cleandoc(thing.__doc__ or "").partition("\n")[0]


def load(name: str) -> str:
    """Import the module of ``"module:name"`` and return the name; other names stay as they are.

    Raises:
        ModuleNotFoundError: If there is no such module.
    """
    module, _, own = name.rpartition(":")
    if all(part.isidentifier() for part in module.split(".")):
        importlib.import_module(module)
        return own
    return name


def agent_class(name: str, env_id: str | None = None) -> type[Agent]:
    """Return the class of a name, as :func:`make` takes it.

    Raises:
        ModuleNotFoundError: If the name begins with a module that is not there.
        ValueError: If there is no such agent.
    """
    name = load(name)
    known = _known(env_id)
    if name not in known:
        others = [other for other, players in _players.items() if name in players]
        hint = f", which plays {', '.join(others)}" if others else ""
        raise ValueError(f"`name` must be one of {sorted(known)}, got {name!r}{hint}")
    return known[name]


def ready(env_id: str) -> tuple[str, ...]:
    """Return the names of those agents of ``env_id`` that :func:`make` needs only ``env`` for."""
    return tuple(name for name, agent in _known(env_id).items() if _required(agent) <= {"env"})


def knowledge(agent: type[Agent]) -> tuple[str, ...]:
    """Return what an agent may be told that the papers' learners are not.

    Of ``"horizon"``, ``"instance"`` and ``"optimum"`` (its value, where it must be told).
    """
    required = _required(agent)
    told = {
        "horizon": "horizon" in inspect.signature(agent).parameters,
        "instance": "env" in required,
        "optimum": "optimum" in required,
    }
    return tuple(word for word, is_told in told.items() if is_told)


def make(name: str, env: Any = None, **kwargs: Any) -> Agent:
    """Return a new agent.

    Args:
        name: As :func:`available` lists it, or ``"module:name"`` if importing a module of yours
            registers it.
        env: The environment that will run, scalar or vector; if its ``spec`` has an id that
            agents are registered for, the agent must be one of them. It is asked for those
            parameters that ``kwargs`` leaves out: oracles get the environment itself,
            horizon-aware agents the length of its episodes (as ``horizon``), and the others the
            ``capacity`` of its arms. Nothing else of it reaches the agent.
        **kwargs: Parameters of the agent.

    Raises:
        TypeError: If a parameter is missing or unknown.
        ModuleNotFoundError: If the name begins with a module that is not there.
        ValueError: If there is no such agent, it does not play ``env``, or a parameter breaks its
            rule.

    Example:
        >>> from gym_fairbandits import agents
        >>> agents.make("egal-ucb", c=2)
        EgalUCB(capacity=1, c=2.0, sigma=1.0, update='all', loop='fixed')
    """
    env_id = getattr(getattr(env, "spec", None), "id", None)
    agent = agent_class(name, env_id if env_id in _players else None)
    takes = inspect.signature(agent).parameters
    unknown = sorted(set(kwargs) - set(takes))
    if unknown:
        raise TypeError(f"{name!r} takes the parameters {sorted(takes)}, got {unknown}")
    if "env" in takes and env is None:
        raise TypeError(
            f"`env` must be the environment that runs for {name!r}, got None; to compare it, pass "
            f"its class, {agent.__name__}, which is made of the environment then"
        )
    if env is not None:
        kwargs = {**_asked(env, set(takes) - set(kwargs)), **kwargs}
    for parameter in _required(agent) - set(kwargs):
        raise TypeError(f"`{parameter}` must be given for {name!r}")
    return agent(**kwargs)


def _required(agent: type[Agent]) -> set[str]:
    parameters = inspect.signature(agent).parameters
    return {name for name, item in parameters.items() if item.default is item.empty}


def _asked(env: Any, parameters: set[str]) -> dict[str, Any]:
    """Return those of ``parameters`` that ``env`` knows."""
    answers: dict[str, Any] = {}
    if "env" in parameters:
        answers["env"] = env
    if "horizon" in parameters:
        answers["horizon"] = episode_length(env)
    if "capacity" in parameters:
        with suppress(TypeError):  # single-arm bandits have none
            answers["capacity"] = read(env, "capacity")
    return answers


def _known(env_id: str | None) -> dict[str, type[Agent]]:
    if env_id is None:
        return {name: agent for players in _players.values() for name, agent in players.items()}
    if env_id not in _players:
        raise ValueError(f"`env_id` must be one of {sorted(_players)}, got {env_id!r}")
    return _players[env_id]


def _name(agent: type[Agent]) -> str:
    """Return ``"egal-kl-ucb"`` for ``EgalKLUCB``."""
    words = re.findall(
        r"UCB[0-9]*|KL|[A-Z]+(?=[A-Z][a-z])|[A-Z][a-z]+[0-9]*|[A-Z]+", agent.__name__
    )
    return "-".join(words).lower()


_IMPROVING: tuple[type[Agent], ...] = (
    # The paper's own.
    AnytimeImproving,
    RoundRobin,
    Greedy,
    FixedArm,
    # Improving and rising arms.
    HorizonAwareImproving,
    SinglePeakedOptimism,
    AnytimeSinglePeaked,
    RisingUCB,
    RandomRoundRobin,
    HybridRising,
    RCBE,
    # Any arms.
    UniformRandom,
    UCB1,
    KLUCB,
    EpsilonGreedy,
    ThompsonSampling,
    Exp3,
    Rexp3,
    SlidingWindowUCB,
    DiscountedUCB,
    SlidingWindowThompson,
    # Those that know the instance.
    GreedyNext,
    OracleArm,
    OracleSchedule,
)
_EGALITARIAN: tuple[type[Agent], ...] = (
    EgalUCB,
    EgalMOSS,
    EgalKLUCB,
    EgalThompson,
    ExploreThenCommit,
    GreedyRotation,
    CombinatorialUCB,
    PoorestFirst,
    PhasedElimination,
    ComponentHedge,
    PermELearn,
    UniformRandom,
    StaticOracle,
    OracleRotation,
)
for _agent in _IMPROVING:
    register(_agent, "ImprovingBandit-v0")
for _agent in _EGALITARIAN:
    register(_agent, "EgalAssign-v0")
