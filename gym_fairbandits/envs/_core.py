"""What both environments share: the clock of an episode, the streams of randomness, the batch.

The scalar classes keep their hot ``step`` to themselves; everything that happens at most once per
episode, and everything that a batch does around the pull itself, stands here once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_bool, checked_int
from gym_fairbandits._sources import ArmSource, CurveSource
from gym_fairbandits.envs.rendering import FRAMES_PER_SECOND, Painter, Scene

__all__ = [
    "BanditEnv",
    "BanditVectorEnv",
    "Record",
    "draw_block",
    "draws_per_refill",
    "fill_draws",
    "known_options",
    "observation_box",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observation = dict[str, NDArray[Any]]
ActT = TypeVar("ActT")
SourceT = TypeVar("SourceT", CurveSource, ArmSource)

# Finite, because samplers and checkers reject infinite boxes, yet out of reach.
COUNT_LIMIT = 2**53
SUM_LIMIT = 1e30


class Record(Protocol):
    """What was played in some episodes, one row each, and what it is worth in expectation."""

    def optimal_return(self, steps: int | None = None) -> Floats:
        """Return the offline optimum of the steps played, or of ``steps``; shape ``(n,)``."""

    def exact_optimal_return(self, steps: int | None = None) -> Floats:
        """Return what the best schedule of so many steps reaches; shape ``(n,)``."""

    def expected_return(self) -> Floats:
        """Return the expected return of the actions taken; shape ``(n,)``."""

    def realized_return(self) -> Floats:
        """Return the realised return; shape ``(n,)``."""


def observation_box(kind: str, size: int) -> spaces.Box:
    """Return the space of one observed array: ``"count"`` (int64) or ``"sum"`` (float64)."""
    if kind == "count":
        return spaces.Box(0, COUNT_LIMIT, (size,), np.int64)
    return spaces.Box(-SUM_LIMIT, SUM_LIMIT, (size,), np.float64)


def draws_per_refill(draws_per_step: int, num_buffers: int = 1) -> int:
    """Return how many draws a buffer takes at once: whole steps, within 16 MB for all buffers.

    The size changes no draw: a generator gives the same numbers in blocks as one by one.
    """
    most = min(1024, 2**21 // num_buffers)
    return max(1, most // draws_per_step) * draws_per_step


def draw_block(generator: np.random.Generator, noise: str | None, count: int) -> Floats:
    """Return the next ``count`` draws of a stream; a law without chance gets zeros."""
    return fill_draws(generator, noise, np.empty(count))


def fill_draws(generator: np.random.Generator, noise: str | None, out: Floats) -> Floats:
    """Write the next draws of a stream into ``out``, contiguous, and return it."""
    if noise == "random":
        return generator.random(out=out)
    if noise == "standard_normal":
        return generator.standard_normal(out=out)
    out.fill(0.0)
    return out


def known_options(options: Any, *known: str) -> Mapping[str, Any]:
    """Return the ``options`` of a reset, and warn of keys that are not ``known``.

    They are no error: a wrapper may have keys of its own and pass the dict on. They are not
    silent either: a misspelt ``instance`` would play the default one.

    Raises:
        TypeError: If ``options`` is neither None nor a mapping.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"`options` must be a dict or None, got {options!r}")
    unknown = [key for key in options if key not in known]
    if unknown:
        listed = ", ".join(f"`{key}`" for key in known)
        gym.logger.warn(f"`options` of reset: the environment reads {listed}, not {unknown}")
    return options


class _Clocked:
    """The parameters that every environment takes, checked; and its frames.

    Attributes:
        readouts: Numbers that each frame shows beside the environment's own: label -> function
            without arguments that returns a float, in a vector environment an array of shape
            ``(num_envs,)``, NaN where unknown. A wrapper adds what it knows; `PolicyRegret` adds
            its regret.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as `Env` declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": FRAMES_PER_SECOND,
    }
    _painter: Painter | None = None  # for `close`, if the constructor fails before it is set
    _played: bool
    horizon: int
    horizon_known: bool
    num_arms: int
    render_mode: str | None

    def _take_common(
        self, horizon: int, horizon_known: bool, render_mode: str | None, render_reveal: bool
    ) -> None:
        self.horizon = checked_int("horizon", horizon, maximum=COUNT_LIMIT)
        self.horizon_known = checked_bool("horizon_known", horizon_known)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise TypeError(
                f"`render_mode` must be None or one of {self.metadata['render_modes']}, "
                f"got {render_mode!r}"
            )
        self.render_mode = render_mode
        self.render_reveal = checked_bool("render_reveal", render_reveal)
        self.readouts: dict[str, Callable[[], Any]] = {}
        # Set in any case: `step` finds it quicker than the class's.
        self._painter = None if render_mode is None else Painter(render_mode)

    def _drawing(self) -> Painter | None:
        """Return what draws; warn and return None if there is no render mode.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
        """
        if self._painter is None:
            gym.logger.warn(
                "`render` draws nothing without a render mode: choose one of "
                f"{self.metadata['render_modes']} when the environment is made, for example "
                'gym.make(id, render_mode="rgb_array")'
            )
            return None
        self._check_played()
        return self._painter

    def _check_played(self) -> None:
        """Refuse questions about an episode before there was one."""
        if not self._played:
            raise ResetNeeded("call `reset` first: no episode has begun")

    @property
    def _shown_horizon(self) -> int | None:
        """The horizon, where frames may tell it: pixels can be an observation too."""
        return self.horizon if self.horizon_known or self.render_reveal else None

    def _observation_space(self, parts: dict[str, spaces.Box]) -> spaces.Dict:
        if self.horizon_known:
            parts = {**parts, "remaining": spaces.Box(0, self.horizon, (1,), np.int64)}
        return spaces.Dict(dict(parts))


class BanditEnv(_Clocked, gym.Env[Observation, ActT], Generic[ActT, SourceT]):
    """One bandit: counts its steps, ends its episodes, draws its instances.

    Attributes:
        horizon: Steps after which the environment itself ends an episode.
        horizon_known: Whether that end is a termination and ``remaining`` is observed.
    """

    _source: SourceT  # of the running episode
    _instance_stream: np.random.Generator
    _pulls: Ints
    _default_source: SourceT  # what the constructor was given
    _history: Any  # of the running episode, if there is a render mode

    def _start(self) -> None:
        """Set the state of an environment that was never reset."""
        self._steps = 0
        self._last_step = 0  # the horizon while an episode runs, else 0: `step` compares once
        self._parent: np.random.Generator | None = None
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
        """
        pinned = known_options(options, "instance").get("instance")
        source = (
            self._default_source if pinned is None else self._make_source(pinned, self.num_arms)
        )
        super().reset(seed=seed)
        if self._parent is not self.np_random:
            # At once, not when it is needed: before NumPy 2 a copied generator forgets its seed,
            # and what it would spawn.
            self._parent = self.np_random
            self._instance_stream = self.np_random.spawn(1)[0]
            self._drop_draws()
        self._source = source
        self._begin()
        self._steps = 0
        self._last_step = self.horizon
        self._played = True
        if self._painter is not None:
            self._history = self._new_history()
            if self.render_mode == "human":
                self.render()
        return self._observe(), {}

    def _stream(self) -> np.random.Generator:
        """Return the instances' own stream: draws left in a buffer cannot shift it."""
        return self._instance_stream

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
        return self._scene({label: float(value()) for label, value in self.readouts.items()})

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
    def _begin(self) -> None:
        """Draw the episode's instance and clear the state."""

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
    def _scene(self, readouts: dict[str, float]) -> Scene:
        """Return what a frame shows."""

    @abstractmethod
    def _record(self) -> Record:
        """Return what was played in this episode, as a record of one row."""


class BanditVectorEnv(
    _Clocked, VectorEnv[Observation, NDArray[Any], NDArray[Any]], Generic[SourceT]
):
    """Many bandits side by side in NumPy arrays, one row each.

    Row i of ``reset(seed=s)`` is the scalar environment seeded ``s + i``, bit for bit.

    Attributes:
        horizon: Steps after which the environment itself ends an episode.
        horizon_known: Whether that end is a termination and ``remaining`` is observed.
        max_episode_steps: Steps after which an episode is truncated, or ``None``.
        autoreset_mode: What happens to a row whose episode has ended.
    """

    _default_source: SourceT
    _pulls: Ints

    @property
    def redrawn(self) -> bool:
        """Whether each episode draws an instance of its own."""
        return self._default_source.redrawn

    @property
    def steps(self) -> Ints:
        """Steps played in each row's episode; int64 array of shape ``(num_envs,)``."""
        return self._steps.copy()

    @property
    def pulls(self) -> Ints:
        """How often each arm was played; int64 array of shape ``(num_envs, num_arms)``."""
        return self._pulls.copy()

    def _take_vector(
        self,
        num_envs: int,
        max_episode_steps: int | None,
        autoreset_mode: AutoresetMode | str,
    ) -> None:
        self.num_envs = checked_int("num_envs", num_envs)
        if max_episode_steps in (None, -1):
            self.max_episode_steps = None
        else:
            self.max_episode_steps = checked_int("max_episode_steps", max_episode_steps)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = [mode.value for mode in AutoresetMode]
            raise ValueError(
                f"`autoreset_mode` must be an AutoresetMode or one of {modes}, "
                f"got {autoreset_mode!r}"
            ) from None
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}

    def _start(
        self,
        single_observation_space: spaces.Dict,
        single_action_space: gym.Space[Any],
        draws_per_step: int,
    ) -> None:
        """Set the spaces, and the state of a batch that was never reset."""
        self.single_observation_space = single_observation_space
        self.single_action_space = single_action_space
        self.observation_space = batch_space(single_observation_space, self.num_envs)
        self.action_space = batch_space(single_action_space, self.num_envs)
        count = self.num_envs
        refill = draws_per_refill(draws_per_step, count)
        self._played = False
        self._all_rows = np.arange(count)
        self._steps: Ints = np.zeros(count, dtype=np.int64)
        self._running: Bools = np.zeros(count, dtype=np.bool_)  # was reset and has not ended
        self._ended: Bools = np.zeros(count, dtype=np.bool_)  # awaits its reset
        self._generators: list[np.random.Generator | None] = [None] * count
        self._seeds: list[int | None] = [None] * count
        self._streams: list[np.random.Generator | None] = [None] * count
        self._sources: list[SourceT | None] = [None] * count
        self._noise: list[str | None] = [None] * count
        self._refill = refill
        self._draws: Floats = np.zeros((count, refill))
        self._next_draw: Ints = np.full(count, refill, dtype=np.int64)  # all used up
        # SAME_STEP: rows that ended in the latest step and their records, until the next call.
        self._finished: tuple[Ints, Record] | None = None
        self._histories: list[Any] = [None] * count  # for the frames, if there is a render mode

    # --- Seeds ---

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generators of the rows."""
        return tuple(self._generator(row) for row in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seeds of the rows; drawn at random where the user gave none."""
        return tuple(self._seeds[row] for row in range(self.num_envs) if self._generator(row))

    def _generator(self, row: int) -> np.random.Generator:
        generator = self._generators[row]
        if generator is None:
            generator = self._seed_row(row, None)
        return generator

    def _seed_row(self, row: int, seed: int | None) -> np.random.Generator:
        """Give a row the generator of ``seed``, and its instances a stream of their own."""
        generator, self._seeds[row] = seeding.np_random(seed)
        self._generators[row], self._streams[row] = generator, generator.spawn(1)[0]
        self._next_draw[row] = self._refill  # what is in store is void
        return generator

    def _stream(self, row: int) -> np.random.Generator:
        """Return the row's stream of instances; see :meth:`BanditEnv._stream`."""
        stream = self._streams[row]
        if stream is None:
            self._seed_row(row, None)
            return self._stream(row)
        return stream

    def _checked_seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            first = checked_int("seed", seed, minimum=0)
            seeds: list[int | None] = [first + row for row in range(self.num_envs)]
        elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            seeds = [
                None if item is None else checked_int("seed", item, minimum=0) for item in seed
            ]
        else:
            raise TypeError(f"`seed` must be None, an integer or a sequence of them, got {seed!r}")
        if len(seeds) != self.num_envs:
            raise ValueError(
                f"`seed` must have num_envs = {self.num_envs} entries, got {len(seeds)}"
            )
        return seeds

    # --- Episodes ---

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in every row, or in those of ``options["reset_mask"]``.

        Args:
            seed: ``s`` seeds row i with ``s + i``; a sequence gives each row its own.
            options: ``reset_mask``, bool array of shape ``(num_envs,)``: the rows to reset.
                ``instance``: played by every row that is reset. ``instances``: one per row.
                The dict is not changed. Other keys are for wrappers: they are not read, and a
                warning says so.

        Returns:
            The observations of all rows, and an empty info.
        """
        known = known_options(options, "reset_mask", "instance", "instances")
        seeds = self._checked_seeds(seed)
        mask = self._checked_mask(known.get("reset_mask"))
        sources = self._pinned_sources(known, mask)
        rows = np.flatnonzero(mask)
        for row in rows.tolist():
            if seeds[row] is not None:
                self._seed_row(row, seeds[row])
        self._begin(rows, sources)
        self._played = True
        self._finished = None
        if self.render_mode == "human":
            self.render()
        return self._observe(), {}

    def _checked_mask(self, mask: Any) -> Bools:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"`options['reset_mask']` must be a bool array, got {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"`options['reset_mask']` must have shape ({self.num_envs},), got {mask.shape}"
            )
        if not mask.any():
            raise ValueError(
                "`options['reset_mask']` must be True for at least one sub-environment"
            )
        return mask

    def _pinned_sources(self, options: Mapping[str, Any], mask: Bools) -> list[SourceT] | None:
        one, several = options.get("instance"), options.get("instances")
        if one is not None and several is not None:
            raise ValueError("`options` must not hold both `instance` and `instances`")
        if one is not None:
            return [self._make_source(one, self.num_arms)] * self.num_envs
        if several is None:
            return None
        if not isinstance(several, Sequence) or len(several) != self.num_envs:
            raise ValueError(
                f"`options['instances']` must be a sequence of num_envs = {self.num_envs} "
                f"instances, got {several!r}"
            )
        made: dict[int, SourceT] = {}
        return [
            made.setdefault(id(instance), self._make_source(instance, self.num_arms))
            if chosen
            else self._default_source
            for instance, chosen in zip(several, mask, strict=True)
        ]

    def _begin(self, rows: Ints, sources: list[SourceT] | None = None) -> None:
        """Start an episode in each of ``rows``."""
        self._install(rows, sources)
        self._clear(rows)
        if self._painter is not None:
            for row in rows.tolist():
                self._histories[row] = self._new_history()
        self._steps[rows] = 0
        self._ended[rows] = False
        self._running[rows] = True

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observation, Floats, Bools, Bools, dict[str, Any]]:
        """Play one step in every row; see :meth:`gymnasium.vector.VectorEnv.step`.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``, or if a row's episode has
                ended and ``autoreset_mode`` is DISABLED; no row has moved then.
            gymnasium.error.InvalidAction: If a row's action is illegal; no row has moved then.
        """
        waiting = bool(self._ended.any())
        if not waiting and not self._running.all():
            raise ResetNeeded("call `reset` before `step`: no episode is running")
        if waiting and self.autoreset_mode != AutoresetMode.NEXT_STEP:
            listed = np.flatnonzero(self._ended).tolist()
            raise ResetNeeded(
                f"call `reset` with a `reset_mask` before `step`: the episodes of the "
                f"sub-environments {listed} have ended"
            )
        self._finished = None
        playing = ~self._ended if waiting else None
        checked = self._checked_actions(actions, playing)
        if playing is None:
            rows = self._all_rows
        else:
            rows, checked = np.flatnonzero(playing), checked[playing]
            self._begin(np.flatnonzero(self._ended))
        rewards, details = self._play(rows, checked)
        self._steps[rows] += 1
        if self._painter is not None:
            self._keep(rows, checked, rewards)
        terminations, truncations = self._flags()
        if playing is not None:
            rewards = self._spread(rewards, rows)
        infos: dict[str, Any] = {}
        if len(rows):
            self._add(infos, details, rows)
        ended = terminations | truncations
        if ended.any():
            self._running[ended] = False
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                infos = self._restart(ended, details)
            else:
                self._ended = ended
        if self.render_mode == "human":
            self.render()
        return self._observe(), rewards, terminations, truncations, infos

    def _flags(self) -> tuple[Bools, Bools]:
        """Return ``(terminations, truncations)`` after a step."""
        own = self._steps >= self.horizon
        none = np.zeros(self.num_envs, dtype=np.bool_)
        terminations, truncations = (own, none) if self.horizon_known else (none, own)
        if self.max_episode_steps is not None:
            truncations = truncations | (self._steps >= self.max_episode_steps)
        return terminations, truncations

    def _restart(self, ended: Bools, details: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Reset the rows that have ended within the same step; return the step's infos."""
        rows = np.flatnonzero(ended)
        last = self._observe()
        final = np.full(self.num_envs, None, dtype=object)
        for row in rows.tolist():
            final[row] = {name: values[row].copy() for name, values in last.items()}
        final_info: dict[str, Any] = {}
        self._add(final_info, {name: values[rows] for name, values in details.items()}, rows)
        infos: dict[str, Any] = {
            "final_obs": final,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }
        others = np.flatnonzero(~ended)
        if len(others):
            self._add(infos, {name: values[others] for name, values in details.items()}, others)
        # The episode that has just ended is what `expected_return` must answer for now.
        self._finished = (rows, self._record(rows))
        self._begin(rows)
        return infos

    def _add(self, infos: dict[str, Any], details: dict[str, NDArray[Any]], rows: Ints) -> None:
        """Add what ``rows`` report, with Gymnasium's masks."""
        mask = np.zeros(self.num_envs, dtype=np.bool_)
        mask[rows] = True
        for name, values in details.items():
            infos[name], infos[f"_{name}"] = self._spread(values, rows), mask.copy()

    def _spread(self, values: NDArray[Any], rows: Ints) -> NDArray[Any]:
        """Return ``values`` of ``rows`` as an array over all rows, 0 elsewhere."""
        if len(rows) == self.num_envs:
            return values
        spread = np.zeros((self.num_envs, *values.shape[1:]), dtype=values.dtype)
        spread[rows] = values
        return spread

    # --- Draws ---

    def _take_draws(self, rows: Ints, count: int) -> Floats:
        """Return each row's next ``count`` draws; float64 array of shape ``(len(rows), count)``."""
        places = self._next_draw[rows]
        empty = places >= self._refill
        if empty.any():
            for row in rows[empty].tolist():
                self._draws[row] = draw_block(self._generator(row), self._noise[row], self._refill)
            places[empty] = 0
        self._next_draw[rows] = places + count
        if len(rows) == self.num_envs and (places == places[0]).all():
            return self._draws[:, places[0] : places[0] + count].copy()
        starts = rows * self._refill + places
        return self._draws.ravel().take(starts[:, None] + np.arange(count))

    def _set_noise(self, row: int, noise: str | None) -> None:
        """Say which draws a row wants; draws of another kind that are left over are dropped."""
        if self._noise[row] != noise:
            self._noise[row] = noise
            self._next_draw[row] = self._refill

    # --- Frames ---

    def render(self) -> tuple[Any, ...] | None:
        """Return a frame of each row; see :meth:`BanditEnv.render`.

        Returns:
            A tuple of ``num_envs`` frames. The mode ``"human"`` shows the first row only, as a
            window has room for one, and returns ``None``.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            gymnasium.error.DependencyNotInstalled: If pygame is missing and the mode needs it.
        """
        painter = self._drawing()
        if painter is None:
            return None
        if self.render_mode == "human":
            painter.draw(self.scenes()[0])
            return None
        return tuple(painter.draw(scene) for scene in self.scenes())

    def scenes(self) -> tuple[Scene, ...]:
        """Return what each row's frame shows, as data; see :meth:`BanditEnv.scene`."""
        self._check_played()
        if self._painter is None:
            raise ValueError("`render_mode` must be given for a scene, got None")
        values = {label: value().tolist() for label, value in self.readouts.items()}
        count = 1 if self.render_mode == "human" else self.num_envs
        return tuple(
            self._scene(row, {label: column[row] for label, column in values.items()})
            for row in range(count)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window of the mode ``"human"``."""
        if self._painter is not None:
            self._painter.close()

    def _row_title(self, title: str, row: int) -> str:
        return f"{title}, sub-environment {row} of {self.num_envs}"

    # --- Accounts ---

    def optimal_return(self, steps: int | None = None, rows: Bools | None = None) -> Floats:
        """Return each row's best expected return of ``steps`` steps, of those played by default.

        A row whose episode ended in the latest step answers for that episode, in every autoreset
        mode, until the next step or reset.

        Args:
            steps: A number of steps, or ``None`` for each row's own.
            rows: Bool mask of the rows to answer for; all by default.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            NotImplementedError: As in the scalar environment; ValueError too.
        """
        return self._answer("optimal_return", rows, steps)

    def exact_optimal_return(self, steps: int | None = None, rows: Bools | None = None) -> Floats:
        """Return what each row's best schedule reaches; see :meth:`optimal_return`.

        Raises:
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            ValueError: If it is not known exactly for a row: the message says why.
        """
        return self._answer("exact_optimal_return", rows, steps)

    def expected_return(self, rows: Bools | None = None) -> Floats:
        """Return the expected return of the actions taken; see :meth:`optimal_return`."""
        return self._answer("expected_return", rows)

    def realized_return(self, rows: Bools | None = None) -> Floats:
        """Return what the rewards are worth; see :meth:`optimal_return`."""
        return self._answer("realized_return", rows)

    def _answer(self, method: str, rows: Bools | None, *arguments: Any) -> NDArray[Any]:
        """Ask the records of the latest episodes, those that ended in this very step included."""
        chosen = self._all_rows if rows is None else np.flatnonzero(rows)
        values: NDArray[Any] = getattr(self._record(chosen), method)(*arguments)
        if self._finished is not None:
            ended, record = self._finished
            inside = np.isin(chosen, ended)
            if inside.any():
                old: NDArray[Any] = getattr(record, method)(*arguments)
                values[inside] = old[np.searchsorted(ended, chosen[inside])]
        return values

    @abstractmethod
    def _make_source(self, instance: Any, num_arms: int | None) -> SourceT:
        """Return the source of a user's instance, checked."""

    @abstractmethod
    def _install(self, rows: Ints, sources: list[SourceT] | None) -> None:
        """Draw instances for ``rows``; ``sources`` is per row of the batch, None the default."""

    @abstractmethod
    def _clear(self, rows: Ints) -> None:
        """Clear the state of ``rows``."""

    @abstractmethod
    def _checked_actions(self, actions: Any, playing: Bools | None) -> Ints:
        """Return all rows' actions as int64 after checking those of the rows that play."""

    @abstractmethod
    def _play(self, rows: Ints, actions: Ints) -> tuple[Floats, dict[str, NDArray[Any]]]:
        """Play ``actions`` in ``rows``; return their rewards and infos, in the order of rows."""

    def _observe(self) -> Observation:
        """Return fresh observations of all rows."""
        observation: Observation = {name: part.copy() for name, part in self._state().items()}
        if self.horizon_known:
            observation["remaining"] = self.horizon - self._steps[:, None]
        return observation

    @abstractmethod
    def _state(self) -> Observation:
        """Return the arrays that are observed, not copied."""

    @abstractmethod
    def _new_history(self) -> Any:
        """Return what keeps a row's steps for the frames."""

    @abstractmethod
    def _keep(self, rows: Ints, actions: Ints, rewards: Floats) -> None:
        """Keep what a step did in ``rows``."""

    @abstractmethod
    def _scene(self, row: int, readouts: dict[str, float]) -> Scene:
        """Return what a row's frame shows."""

    @abstractmethod
    def _record(self, rows: Ints) -> Record:
        """Return copies of what was played in ``rows``."""
