"""Batches beside their scalar twins, autoreset modes and a duel of both, for vector tests."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers_envs import drawn_laws, drawn_mixture, pins_for
from helpers_names import IMPROVING, Kwargs
from helpers_play import Player, assert_identical, random_states, worth
from numpy.typing import NDArray

MODES = list(AutoresetMode)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
# Since then Gymnasium's own vector statistics count episodes after the first one right.
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
