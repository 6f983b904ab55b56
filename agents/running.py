"""Questions to the environment that runs, whatever kind it is: for oracles and for set-up.

They are asked by name; no environment is imported.
"""

from __future__ import annotations

from typing import Any

__all__ = ["call", "episode_length", "read"]


def call(env: Any, name: str, *arguments: Any) -> list[Any]:
    """Call a method of every environment behind ``env`` and return the answers.

    Only names and plain values cross to environments in other processes: not everything there
    can be pickled, and what a worker raises is fatal to it.
    """
    if _is_native(env):
        return list(getattr(env.unwrapped, name)(*arguments))
    if hasattr(env, "env_method"):  # a VecEnv of Stable-Baselines3
        return list(env.env_method(name, *arguments))
    if hasattr(env.unwrapped, "call"):  # sync or async
        return list(env.unwrapped.call(name, *arguments))
    return [env.get_wrapper_attr(name)(*arguments)]


def _is_native(env: Any) -> bool:
    inner = getattr(env, "unwrapped", None)
    return hasattr(inner, "num_envs") and not (hasattr(inner, "call") or hasattr(env, "env_method"))


def read(env: Any, name: str) -> Any:
    """Return an attribute that all environments behind ``env`` share.

    Raises:
        TypeError: If ``env`` is no environment, or none that has it.
    """
    try:
        if _is_native(env):
            return getattr(env.unwrapped, name)
        if all(call(env, "has_wrapper_attr", name)):
            return call(env, "get_wrapper_attr", name)[0]
    except AttributeError:
        pass
    raise TypeError(f"`env` must be an environment that has `{name}`, got {env!r}")


def episode_length(env: Any) -> int:
    """Return after how many steps an episode of ``env`` ends, time limits included."""
    limits = [int(read(env, "horizon"))]
    for name in ("max_episode_steps", "_max_episode_steps"):  # native; Gymnasium's TimeLimit
        try:
            limit = read(env, name)
        except TypeError:
            continue
        if limit not in (None, -1):
            limits.append(int(limit))
    return min(limits)
