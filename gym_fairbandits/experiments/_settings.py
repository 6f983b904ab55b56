"""Settings that several experiments have: checks, and agents by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gym_fairbandits import agents
from gym_fairbandits._checks import checked_choice, checked_int

__all__ = [
    "checked_agents",
    "checked_choices",
    "checked_ints",
    "known_to",
    "labelled",
    "named_agent",
    "split_names",
]


def checked_ints(name: str, values: Any, minimum: int = 1) -> tuple[int, ...]:
    """Return ``values``, an integer or a sequence of different ones, as a tuple.

    Raises:
        TypeError: If it is neither.
        ValueError: If there is none, one is below ``minimum``, or one is there twice.
    """
    if isinstance(values, str):
        raise TypeError(
            f"`{name}` must be an integer or a list of them, such as [2,20], got {values!r}"
        )
    listed = values if isinstance(values, list | tuple) else [values]
    numbers = tuple(checked_int(name, value, minimum) for value in listed)
    return _distinct(name, numbers)


def checked_choices(name: str, values: Any, choices: Sequence[str]) -> tuple[str, ...]:
    """Return ``values``, one of ``choices`` or a sequence of different ones, as a tuple.

    Raises:
        TypeError: If it is neither.
        ValueError: If there is none, one is not among ``choices``, or one is there twice.
    """
    listed = values if isinstance(values, list | tuple) else [values]
    chosen = tuple(checked_choice(name, value, tuple(choices)) for value in listed)
    return _distinct(name, chosen)


def checked_agents(names: Any, *env_ids: str) -> tuple[str, ...]:
    """Return the names of agents, given as a sequence or with commas between.

    Each plays one of the environments ``env_ids``.

    Raises:
        TypeError: If ``names`` is neither.
        ModuleNotFoundError: If the module of a ``"module:name"`` is not there.
        ValueError: If there is none, one is there twice, or an agent needs more than the
            environment to be made.
    """
    listed = split_names(names) if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise TypeError(f"`agents` must be names of agents, got {names!r}")
    own = [agents.load(name) for name in listed]
    ready = {name for env_id in env_ids for name in agents.ready(env_id)}
    for name in own:
        if name not in ready:
            raise ValueError(f"`agents` must be among {sorted(ready)}, got {name!r}")
    return _distinct("agents", tuple(listed))


def known_to(agent: str) -> str:
    """Return what an agent is told that the papers' learners are not; "" if nothing."""
    return ", ".join(agents.knowledge(agents.agent_class(agent)))


def labelled(agent: str) -> str:
    """Return what tables and legends call an agent: its name, in brackets what it is told."""
    known = known_to(agent)
    return f"{agent} ({known})" if known else agent


def split_names(names: str) -> tuple[str, ...]:
    """Return names that are given with commas between, and perhaps spaces around."""
    return tuple(name.strip() for name in names.split(","))


def named_agent(name: str, env_id: str, horizon: int) -> agents.Agent | Callable[[Any], Any]:
    """Return an agent, told what it may know, or for oracles what makes one of the environment."""
    known = agents.knowledge(agents.agent_class(name, env_id))
    if "instance" in known:
        return partial(agents.make, name)
    return agents.make(name, **({"horizon": horizon} if "horizon" in known else {}))


def _distinct(name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values or len(set(values)) < len(values):
        raise ValueError(f"`{name}` must be different values, at least one, got {list(values)!r}")
    return values
