"""What the rows of a batch have earned, and what they could have."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import checked_int
from gym_fairbandits.envs._core import Bools, Floats, Ints, Record

__all__ = ["RowAccounts"]


class RowAccounts:
    """Answers for the running episodes, and for those that ended in the latest step.

    Attributes:
        num_envs: The number of rows.
        horizon: Steps after which the environment itself ends an episode.
        max_episode_steps: Steps after which an episode is truncated, or ``None``.
    """

    num_envs: int
    horizon: int
    max_episode_steps: int | None
    # SAME_STEP: rows that ended in the latest step and their records, until the next call.
    _finished: tuple[Ints, Record] | None

    def optimal_return(self, steps: int | None = None, rows: Bools | None = None) -> Floats:
        """Return each row's best expected return of ``steps`` steps, of those played by default.

        A row whose episode ended in the latest step answers for that episode, in every autoreset
        mode, until the next step or reset.

        Args:
            steps: A number of steps, or ``None`` for each row's own.
            rows: Bool mask of the rows to answer for; all by default.

        Raises:
            TypeError: If ``rows`` is no bool array.
            ValueError: If ``rows`` has the wrong shape, and as in the scalar environment.
            gymnasium.error.ResetNeeded: Before the first ``reset``.
            NotImplementedError: As in the scalar environment.
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

    def _length(self, steps: int | None) -> int:
        """Return ``steps``, checked, by default those of an episode that is played to its end."""
        if steps is None:
            return min(self.horizon, self.max_episode_steps or self.horizon)
        return checked_int("steps", steps, minimum=0)

    def _answer(self, method: str, rows: Bools | None, *arguments: Any) -> NDArray[Any]:
        """Ask the records of the latest episodes, those that ended in this very step included."""
        chosen = np.flatnonzero(self._checked_mask("rows", rows))
        values: NDArray[Any] = getattr(self._record(chosen), method)(*arguments)
        if self._finished is not None:
            ended, record = self._finished
            inside = np.isin(chosen, ended)
            if inside.any():
                old: NDArray[Any] = getattr(record, method)(*arguments)
                values[inside] = old[np.searchsorted(ended, chosen[inside])]
        return values

    def _checked_mask(self, name: str, mask: Any) -> Bools:
        """Return a mask of the rows, all of them for None."""
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"`{name}` must be a bool array, got {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"`{name}` must have shape ({self.num_envs},), got {mask.shape}")
        return mask

    @abstractmethod
    def _record(self, rows: Ints) -> Record:
        """Return copies of what was played in ``rows``."""
