"""The classes of every environment, and two environments that play alike."""

from __future__ import annotations

from typing import Any

from helpers_envs import pins_for
from helpers_names import EGAL, IMPROVING
from helpers_play import Player, assert_identical, play, random_states, worth

from gym_fairbandits.envs import (
    EgalAssignEnv,
    EgalAssignVectorEnv,
    ImprovingBanditEnv,
    ImprovingBanditVectorEnv,
)

SCALAR: dict[str, Any] = {IMPROVING: ImprovingBanditEnv, EGAL: EgalAssignEnv}
VECTOR: dict[str, Any] = {IMPROVING: ImprovingBanditVectorEnv, EGAL: EgalAssignVectorEnv}


def same_play(env_id: str, one: Any, other: Any, steps: int = 50) -> None:
    """Assert that two environments go on alike: steps, ends, next episodes, worth, generators."""
    space = one.action_space
    num_arms = one.unwrapped.num_arms
    logs = []
    for env in (one, other):
        log: list[Any] = [play(env, Player(space, seed=3), steps), worth(env)]
        for pinned in (None, *pins_for(env_id, num_arms)[:2], None):
            log += [env.reset(options={"instance": pinned}), play(env, Player(space, seed=4), 9)]
        log.append(worth(env))
        logs.append(log)
    assert_identical(logs[0], logs[1])
    assert random_states(one) == random_states(other)
