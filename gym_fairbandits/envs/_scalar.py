"""One bandit: what the scalar environments share, but for ``step``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from gym_fairbandits.envs._core import (
    Clocked,
    Floats,
    Ints,
    Observation,
    Record,
    SourceT,
    known_options,
)
from gym_fairbandits.envs._draws import Seeded
from gym_fairbandits.envs.rendering import Scene

__all__ = ["BanditEnv"]

ActT = TypeVar("ActT")


class BanditEnv(Clocked, gym.Env[Observation, ActT], Generic[ActT, SourceT]):
    """One bandit: counts its steps, ends its episodes, draws its instances.

    Attributes:
        horizon: Steps after which the environment itself ends an episode.
        horizon_known: Whether that end is a termination and ``remaining`` is observed.
    """

    _source: SourceT  # of the running episode
    _pulls: Ints
    _reward_sum: Floats
    _default_source: SourceT  # what the constructor was given
    _history: Any  # of the running episode, if there is a render mode

    def _start(self) -> None:
        """Set the state of an environment that was never reset."""
        self._steps = 0
        self._last_step = 0  # the horizon while an episode runs, else 0: `step` compares once
        self._seeded: Seeded | None = None
        self._played = False

    @property
    def redrawn(self) -> bool:
        """Whether each episode draws an instance of its own."""
        return self._default_source.redrawn

    @property
    def steps(self) -> int:
        """Steps played in this episode."""
        return self._steps

    @property
    def pulls(self) -> Ints:
        """How often each arm was played in this episode; int64 array of shape ``(num_arms,)``."""
        return self._pulls.copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seeds the rewards and, in a stream of its own, the instances.
            options: ``{"instance": ...}`` plays that instance in this episode. Other keys are
                for wrappers: they are not read, and a warning says so.

        Returns:
            The first observation, and an empty info.

        Raises:
            TypeError: If ``options`` is no mapping, or the instance is of a wrong type.
            ValueError: If the instance breaks its rule.
            gymnasium.error.Error: If ``seed`` is no integer of at least 0.
        """
        pinned = known_options(options, "instance").get("instance")
        source = (
            self._default_source if pinned is None else self._make_source(pinned, self.num_arms)
        )
        seeded = self._streams() if seed is None else Seeded.of(seed)
        drawn = self._drawn(source, seeded.instances)  # before anything changes: it may fail
        super().reset()
        if seed is not None:
            self._seeded = seeded
            self._np_random, self._np_random_seed = seeded.rewards, seeded.seed
            self._drop_draws()
        self._source = source
        self._begin(drawn)
        self._steps = 0
        self._last_step = self.horizon
        self._played = True
        if self._painter is not None:
            self._history = self._new_history()
            if self.render_mode == "human":
                self.render()
        return self._observe(), {}

    def _streams(self) -> Seeded:
        """Return the running streams; instances have their own, which no buffer shifts."""
        rewards = self.np_random
        if self._seeded is None or self._seeded.rewards is not rewards:
            # Seeded at random, or with a generator of the user's. The instances' stream is spawned
            # at once: before NumPy 2 a copied generator forgets what it would spawn.
            self._seeded = Seeded(rewards, self.np_random_seed, rewards.spawn(1)[0])
            self._drop_draws()
        return self._seeded

    # --- Frames ---

    def render(self) -> Any:
        """Return a frame of the running episode, as the render mode says.

        Returns:
            ``"ansi"``: a str of lines of at most 100 characters. ``"rgb_array"``: a fresh uint8
            array of shape ``(height, 960, 3)``, where the height, at most 540, depends only on
            the numbers of arms and users. ``"human"``: ``None``; ``reset`` and ``step`` show
            a window by themselves. ``None`` after a warning, if there is no render mode.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            gymnasium.error.DependencyNotInstalled: If pygame is missing and the mode needs it.
        """
        painter = self._drawing()
        return None if painter is None else painter.draw(self.scene())

    def scene(self) -> Scene:
        """Return what a frame shows, as data.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            ValueError: If there is no render mode, as nothing is kept for frames then.
        """
        self._check_played()
        if self._painter is None:
            raise ValueError("`render_mode` must be given for a scene, got None")
        return self._scene(
            title=self._title,
            steps=self._steps,
            horizon=self._shown_horizon,
            readouts={label: float(value()) for label, value in self.readouts.items()},
            pulls=self._pulls,
            reward_sum=self._reward_sum,
            history=self._history,
        )

    def close(self) -> None:
        """Close the window of the mode ``"human"``."""
        if self._painter is not None:
            self._painter.close()

    def _keep(self, *seen: Any) -> None:
        """Keep what a step did for the frames; the mode ``"human"`` draws at once."""
        self._history.add(*seen)
        if self.render_mode == "human":
            self.render()

    def optimal_return(self, steps: int | None = None) -> float:
        """Return the best expected return of ``steps`` steps, of those played by default.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            NotImplementedError: If assignment arms react to what is played and ``steps`` is not
                what was played.
            ValueError: If rested arms decrease and are too long for an exact optimum.
        """
        return float(self._record().optimal_return(steps)[0])

    def exact_optimal_return(self, steps: int | None = None) -> float:
        """Return what the best schedule of ``steps`` steps, by default of those played, reaches.

        Of improving arms it is :meth:`optimal_return`; of assignment arms,
        :func:`gym_fairbandits.optimum.max_min_assignment`.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            ValueError: If it is not known exactly: the message says why.
        """
        return float(self._record().exact_optimal_return(steps)[0])

    def expected_return(self) -> float:
        """Return the expected return of the actions taken in this episode."""
        return float(self._record().expected_return()[0])

    def realized_return(self) -> float:
        """Return what the rewards of this episode are worth: the objective, realised."""
        return float(self._record().realized_return()[0])

    def _reset_needed(self) -> ResetNeeded:
        why = "the episode has ended" if self._played else "no episode is running"
        return ResetNeeded(f"call `reset` before `step`: {why}")

    def _end(self) -> tuple[bool, bool]:
        """Close an episode that is over; return ``(terminated, truncated)``."""
        self._last_step = 0
        return self.horizon_known, not self.horizon_known

    @abstractmethod
    def _make_source(self, instance: Any, num_arms: int | None) -> SourceT:
        """Return the source of a user's instance, checked."""

    @abstractmethod
    def _drawn(self, source: SourceT, stream: np.random.Generator) -> Any:
        """Return an episode's instance, in the form that :meth:`_begin` takes; change nothing."""

    @abstractmethod
    def _begin(self, drawn: Any) -> None:
        """Play an instance from now on, and clear the state."""

    @abstractmethod
    def _drop_draws(self) -> None:
        """Forget the buffered draws of a generator that is no longer used."""

    def _remaining(self) -> Ints:
        return np.array([self.horizon - self._steps], dtype=np.int64)

    @abstractmethod
    def _observe(self) -> Observation:
        """Return a fresh observation."""

    @abstractmethod
    def _new_history(self) -> Any:
        """Return what keeps an episode's steps for the frames; it has ``add``."""

    @abstractmethod
    def _scene(self, **shown: Any) -> Scene:
        """Return what a frame shows: ``shown``, and what only this environment has."""

    @abstractmethod
    def _record(self) -> Record:
        """Return what was played in this episode, as a record of one row."""
