"""Many bandits side by side: what the vector environments share, around the pull itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits.envs._accounts import RowAccounts
from gym_fairbandits.envs._core import (
    Bools,
    Clocked,
    Floats,
    Ints,
    Observation,
    SourceT,
    known_options,
)
from gym_fairbandits.envs._draws import RowStreams, Seeded, StreamOf
from gym_fairbandits.envs.rendering import Scene

__all__ = ["BanditVectorEnv"]


class BanditVectorEnv(
    Clocked,
    RowStreams,
    RowAccounts,
    VectorEnv[Observation, NDArray[Any], NDArray[Any]],
    Generic[SourceT],
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
    _reward_sum: Floats

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
        self._start_streams(draws_per_step)
        self._played = False
        self._all_rows = np.arange(count)
        self._steps: Ints = np.zeros(count, dtype=np.int64)
        self._running: Bools = np.zeros(count, dtype=np.bool_)  # was reset and has not ended
        self._ended: Bools = np.zeros(count, dtype=np.bool_)  # awaits its reset
        self._sources: list[SourceT | None] = [None] * count
        self._finished = None
        # For the frames, if there is a render mode; rows can be drawn before their first reset.
        self._histories: list[Any] = [
            None if self._painter is None else self._new_history() for _ in range(count)
        ]

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generators of the rows."""
        return tuple(self._streams_of(row).rewards for row in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seeds of the rows; drawn at random where the user gave none."""
        return tuple(self._streams_of(row).seed for row in range(self.num_envs))

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
                ``instance``: played by every row that is reset. ``instances``: one per row, None
                for the default one.
                The dict is not changed. Other keys are for wrappers: they are not read, and a
                warning says so.

        Returns:
            The observations of all rows, and an empty info.

        Raises:
            TypeError: If ``seed``, ``options`` or one of its values has a wrong type.
            ValueError: If there are not as many seeds, masks or instances as rows, the mask
                chooses no row, or an instance breaks its rule. No row has changed then; what
                instances have drawn from their streams stays drawn.
        """
        known = known_options(options, "reset_mask", "instance", "instances")
        seeds = self._checked_seeds(seed)
        mask = self._checked_mask("options['reset_mask']", known.get("reset_mask"))
        if not mask.any():
            raise ValueError(
                "`options['reset_mask']` must be True for at least one sub-environment"
            )
        sources = self._pinned_sources(known, mask)
        rows = np.flatnonzero(mask)
        fresh = {row: Seeded.of(seeds[row]) for row in rows.tolist() if seeds[row] is not None}
        # Before anything changes: it may fail.
        drawn = self._drawn(
            rows, sources, lambda row: (fresh.get(row) or self._streams_of(row)).instances
        )
        for row, seeded in fresh.items():
            self._seed_row(row, seeded)
        self._begin(rows, drawn)
        self._played = True
        self._finished = None
        if self.render_mode == "human":
            self.render()
        return self._observe(), {}

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
        made = {id(None): self._default_source}
        instances = list(several)  # alive throughout: no two of them can have the same id
        for instance, chosen in zip(instances, mask, strict=True):
            if chosen and id(instance) not in made:
                made[id(instance)] = self._make_source(instance, self.num_arms)
        return [made.get(id(instance), self._default_source) for instance in instances]

    def _next_instances(self, rows: Ints) -> Any:
        """Return what :meth:`_begin` plays in ``rows`` whose episodes have ended."""
        return self._drawn(rows, None, lambda row: self._streams_of(row).instances)

    def _begin(self, rows: Ints, drawn: Any) -> None:
        """Start an episode in each of ``rows``, of the instances that :meth:`_drawn` returned."""
        self._install(drawn)
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
            over = np.flatnonzero(self._ended)
            self._begin(over, self._next_instances(over))
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
        self._begin(rows, self._next_instances(rows))
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
        """Return what each row's frame shows, as data; see :meth:`BanditEnv.scene`.

        With the mode ``"human"`` it is the first row's only: nobody sees the others.
        """
        self._check_played()
        if self._painter is None:
            raise ValueError("`render_mode` must be given for a scene, got None")
        values = {label: value().tolist() for label, value in self.readouts.items()}
        count = 1 if self.render_mode == "human" else self.num_envs
        return tuple(
            self._scene(
                row,
                title=f"{self._title}, sub-environment {row} of {self.num_envs}",
                steps=int(self._steps[row]),
                horizon=self._shown_horizon,
                readouts={label: column[row] for label, column in values.items()},
                pulls=self._pulls[row],
                reward_sum=self._reward_sum[row],
                history=self._histories[row],
            )
            for row in range(count)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window of the mode ``"human"``."""
        if self._painter is not None:
            self._painter.close()

    @abstractmethod
    def _make_source(self, instance: Any, num_arms: int | None) -> SourceT:
        """Return the source of a user's instance, checked."""

    @abstractmethod
    def _drawn(self, rows: Ints, sources: list[SourceT] | None, stream_of: StreamOf) -> Any:
        """Return instances for ``rows``, in the form that :meth:`_install` takes; change nothing.

        Args:
            rows: Row numbers; int64 array of shape ``(n,)``.
            sources: One per row of the batch, or ``None`` for the default one.
            stream_of: What a row's instance is drawn from.
        """

    @abstractmethod
    def _install(self, drawn: Any) -> None:
        """Play the instances that were drawn."""

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
    def _scene(self, row: int, **shown: Any) -> Scene:
        """Return what a row's frame shows: ``shown``, and what only this environment has."""
