"""Many instances side by side: the curves or arms of every sub-environment, evaluated together.

A batch keeps one row per sub-environment. What a family's formula can take as arrays is stored as
arrays of parameters; any other curve or law is kept as the object it is and asked for all of its
rows at once. Either way the values are those of the single object, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits.arms import Arms, Bernoulli, Gaussian
from gym_fairbandits.curves import (
    TOLERANCE,
    Constant,
    Curve,
    Exponential,
    Hyperbolic,
    LinearCap,
    Logarithmic,
    Polynomial,
    Power,
    PowerLaw,
    ScaledCurve,
)

__all__ = ["FAMILIES", "MAX_PARAMETERS", "ArmGrid", "CurveGrid"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAMILIES: tuple[type[ScaledCurve], ...] = (
    LinearCap,
    Exponential,
    Constant,
    Hyperbolic,
    PowerLaw,
    Logarithmic,
    Power,
    Polynomial,
)
MAX_PARAMETERS = 3  # the asymptote and up to two of the shape
_CODES = {family: code for code, family in enumerate(FAMILIES)}
_NUM_PARAMETERS = tuple(len(fields(cast(Any, family))) for family in FAMILIES)


class _Objects:
    """Numbers for objects that cannot be stored as parameters; forgets those no longer used."""

    def __init__(self) -> None:
        self._by_code: dict[int, Any] = {}
        self._codes: dict[int, int] = {}
        self._next = 0

    def code(self, item: Any) -> int:
        known = self._codes.get(id(item))
        if known is None:
            known = self._codes[id(item)] = self._next
            self._by_code[known] = item
            self._next += 1
        return known

    def __getitem__(self, code: int) -> Any:
        return self._by_code[code]

    def __len__(self) -> int:
        return len(self._by_code)

    def copy(self) -> _Objects:
        """Return objects that keep their numbers whatever this one forgets."""
        other = _Objects()
        other._by_code, other._codes = dict(self._by_code), dict(self._codes)
        other._next = self._next
        return other

    def keep(self, codes: Ints) -> None:
        """Forget every object whose number is not among ``codes``."""
        alive = set(np.unique(codes).tolist())
        self._by_code = {code: item for code, item in self._by_code.items() if code in alive}
        self._codes = {id(item): code for code, item in self._by_code.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"_by_code": self._by_code, "_next": self._next}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Identities do not survive pickling or copying: number the objects by their new ones.
        self.__dict__.update(state)
        self._codes = {id(item): code for code, item in self._by_code.items()}


class CurveGrid:
    """The curves of ``num_rows`` instances of ``num_arms`` arms each.

    A *cell* is an arm of a row, numbered ``row * num_arms + arm``.
    """

    def __init__(self, num_rows: int, num_arms: int) -> None:
        """Create the grid with arms that pay 0."""
        self.num_rows, self.num_arms = num_rows, num_arms
        self._codes: Ints = np.full(num_rows * num_arms, _CODES[Constant], dtype=np.int64)
        self._parameters: Floats = np.zeros((MAX_PARAMETERS, num_rows * num_arms))
        self._objects = _Objects()

    def set_rows(self, rows: Ints, curves: Sequence[Curve]) -> None:
        """Put the same ``curves`` (one per arm) into each of ``rows``."""
        codes = np.empty(self.num_arms, dtype=np.int64)
        parameters = np.zeros((MAX_PARAMETERS, 1, self.num_arms))
        for arm, curve in enumerate(curves):
            code = _CODES.get(type(curve))  # type: ignore[arg-type]
            if code is None:
                codes[arm] = len(FAMILIES) + self._objects.code(curve)
            else:
                codes[arm] = code
                known = cast(ScaledCurve, curve).parameters()
                parameters[: len(known), 0, arm] = known
        self.set_parametric(rows, codes, parameters)
        if len(self._objects) > 4 * len(self._codes):
            self._objects.keep(self._codes - len(FAMILIES))

    def set_parametric(self, rows: Ints, codes: Ints, parameters: Floats) -> None:
        """Put curves given by their parameters into ``rows``.

        Args:
            rows: Row numbers; int64 array of shape ``(n,)``.
            codes: Index into ``FAMILIES``; int64 array of shape ``(n, num_arms)`` or, the same
                for each row, ``(num_arms,)``.
            parameters: float64 array of shape ``(MAX_PARAMETERS, n, num_arms)`` or
                ``(MAX_PARAMETERS, 1, num_arms)``.
        """
        self._codes.reshape(self.num_rows, -1)[rows] = codes
        self._parameters.reshape(MAX_PARAMETERS, self.num_rows, -1)[:, rows] = parameters

    def row(self, row: int) -> tuple[Curve, ...]:
        """Return the curves of a row."""
        cells = range(row * self.num_arms, (row + 1) * self.num_arms)
        return tuple(self._curve(cell) for cell in cells)

    def rows(self, rows: Ints) -> CurveGrid:
        """Return a grid of copies of ``rows``."""
        grid = CurveGrid(len(rows), self.num_arms)
        codes = self._codes.reshape(self.num_rows, -1)[rows]
        parameters = self._parameters.reshape(MAX_PARAMETERS, self.num_rows, -1)[:, rows]
        grid._codes, grid._parameters = codes.ravel(), parameters.reshape(MAX_PARAMETERS, -1)
        grid._objects = self._objects.copy()
        return grid

    def _curve(self, cell: int) -> Curve:
        code = int(self._codes[cell])
        if code >= len(FAMILIES):
            return cast(Curve, self._objects[code - len(FAMILIES)])
        return FAMILIES[code](*self._parameters[: _NUM_PARAMETERS[code], cell].tolist())

    def values(self, cells: Ints, pulls: Floats) -> Floats:
        """Return f of each cell at ``pulls``.

        Args:
            cells: Cell numbers; int64 array of shape ``(n,)``.
            pulls: Whole numbers >= 1; float64 array of shape ``(n,)`` or ``(n, m)``.

        Returns:
            float64 array of the shape of ``pulls``.
        """
        return self._apply(cells, pulls, lambda f: f.shape, lambda curve: curve.evaluate)

    def sums(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) of every arm; ``pulls`` of shape ``(num_rows, num_arms)``."""
        cells = np.arange(len(self._codes))
        sums = self._apply(
            cells, pulls.ravel(), lambda f: f.shape_sum, lambda curve: curve.evaluate_sum
        )
        return sums.reshape(self.num_rows, self.num_arms)

    def asymptotes(self) -> Floats:
        """Return the potential of every arm; float64 array of shape ``(num_rows, num_arms)``."""
        asymptotes: Floats = self._parameters[0].reshape(self.num_rows, self.num_arms).copy()
        for cell in np.flatnonzero(self._codes >= len(FAMILIES)).tolist():
            asymptotes[divmod(cell, self.num_arms)] = self._curve(cell).asymptote
        return asymptotes

    def not_finite(self, row: int, arm: int, what: str) -> ValueError:
        """Return the error of an arm that paid ``what``: a user's own curve may do so."""
        where = f"arm {arm}" if self.num_rows == 1 else f"arm {arm} of sub-environment {row}"
        curve = self._curve(row * self.num_arms + arm)
        return ValueError(f"{where} must pay finite rewards, got {what} ({curve})")

    def nondecreasing(self, pulls: Ints) -> bool:
        """Return whether no curve falls within its row's ``pulls``; int64 ``(num_rows,)``."""
        codes = self._codes.reshape(self.num_rows, self.num_arms)
        for code in np.unique(codes).tolist():
            rows, arms = np.nonzero(codes == code)
            most = int(pulls[rows].max())
            if code >= len(FAMILIES):
                if not self._objects[code - len(FAMILIES)].nondecreasing(most):
                    return False
            elif code != _CODES[Constant]:
                lowest = rows * self.num_arms + arms
                if not (self._parameters[0, lowest] >= -TOLERANCE).all():
                    return False
        return True

    def _apply(
        self,
        cells: Ints,
        pulls: Floats,
        of_family: Callable[[type[ScaledCurve]], Callable[..., Floats]],
        of_curve: Callable[[Curve], Callable[[Floats], Floats]],
    ) -> Floats:
        codes = self._codes[cells]
        if len(codes) == 0:
            return np.empty_like(pulls)
        if len(codes) == 1 or (codes == codes[0]).all():
            return self._apply_one(int(codes[0]), cells, pulls, of_family, of_curve)
        out = np.empty_like(pulls)
        for code in np.unique(codes).tolist():
            pick = np.flatnonzero(codes == code)
            out[pick] = self._apply_one(code, cells[pick], pulls[pick], of_family, of_curve)
        return out

    def _apply_one(
        self,
        code: int,
        cells: Ints,
        pulls: Floats,
        of_family: Callable[[type[ScaledCurve]], Callable[..., Floats]],
        of_curve: Callable[[Curve], Callable[[Floats], Floats]],
    ) -> Floats:
        if code >= len(FAMILIES):
            return of_curve(self._objects[code - len(FAMILIES)])(pulls)
        parameters = self._parameters[: _NUM_PARAMETERS[code], cells]
        if pulls.ndim == 2:
            parameters = parameters[..., None]
        scale, *rest = parameters
        return cast(Floats, scale * of_family(FAMILIES[code])(pulls, *rest))


class ArmGrid:
    """The assignment arms of ``num_rows`` instances of ``num_arms`` arms each."""

    _STACKED: tuple[type[Arms], ...] = (Bernoulli, Gaussian)

    def __init__(self, num_rows: int, num_arms: int) -> None:
        """Create the grid with Bernoulli arms that pay 0."""
        self.num_rows, self.num_arms = num_rows, num_arms
        self._codes: Ints = np.zeros(num_rows, dtype=np.int64)
        self._present: list[int] = []  # the codes in use, once they are known
        self._bernoulli = Bernoulli(np.zeros(num_arms))
        self._gaussian = Gaussian(np.zeros(num_arms), 0.0)
        # One row of parameters per instance: the laws broadcast over leading axes.
        self._bernoulli.means = np.zeros((num_rows, num_arms))
        self._gaussian.means = np.zeros((num_rows, num_arms))
        self._gaussian.std = np.zeros((num_rows, num_arms))
        self._objects = _Objects()
        self.means: Floats = np.zeros((num_rows, num_arms))
        self.varying: NDArray[np.bool_] = np.zeros(num_rows, dtype=np.bool_)  # as of the laws

    def set_rows(self, rows: Ints, arms: Arms) -> None:
        """Put the same law into each of ``rows``."""
        self.means[rows] = arms.means
        self.varying[rows] = arms.varying
        if type(arms) is Bernoulli:
            self._codes[rows] = 0
            self._bernoulli.means[rows] = arms.means
        elif type(arms) is Gaussian:
            self._codes[rows] = 1
            self._gaussian.means[rows], self._gaussian.std[rows] = arms.means, arms.std
        else:
            self._codes[rows] = len(self._STACKED) + self._objects.code(arms)
            if len(self._objects) > 4 * self.num_rows:
                self._objects.keep(self._codes - len(self._STACKED))
        self._present = []  # found out when it is needed: rows are often set one by one

    def row(self, row: int) -> Arms:
        """Return the law of a row."""
        code = int(self._codes[row])
        if code == 0:
            return Bernoulli(self._bernoulli.means[row])
        if code == 1:
            return Gaussian(self._gaussian.means[row], self._gaussian.std[row])
        return cast(Arms, self._objects[code - len(self._STACKED)])

    def rewards(self, rows: Ints, arms: Ints, draws: Floats, steps: Ints, pulls: Ints) -> Floats:
        """Return what the users' arms pay in ``rows``; see :meth:`Arms.rewards`.

        Args:
            rows: Row numbers, ascending; int64 array of shape ``(n,)``.
            arms: int64 array of shape ``(n, num_users)``.
            draws: float64 array of shape ``(n, num_users)``.
            steps: Steps played before; int64 array of shape ``(n,)``.
            pulls: int64 array of shape ``(n, num_arms)``.
        """
        if not self._present:
            self._present = np.unique(self._codes).tolist()
        if len(self._present) == 1:
            return self._law(self._present[0], rows).rewards(arms, draws, steps, pulls)
        codes = self._codes[rows]
        out = np.empty_like(draws)
        for code in np.unique(codes).tolist():
            pick = np.flatnonzero(codes == code)
            law = self._law(code, rows[pick])
            out[pick] = law.rewards(arms[pick], draws[pick], steps[pick], pulls[pick])
        return out

    def expected_rewards(self, rows: Ints, steps: Ints, pulls: Ints) -> Floats:
        """Return what every arm of ``rows`` pays in expectation in a step.

        Args:
            rows: Row numbers; int64 array of shape ``(n,)``.
            steps: Steps played before; int64 array of shape ``(n,)``.
            pulls: int64 array of shape ``(n, num_arms)``.

        Returns:
            A fresh float64 array of shape ``(n, num_arms)``.
        """
        expected = self.means[rows]
        codes = self._codes[rows]
        for code in np.unique(codes[self.varying[rows]]).tolist():
            pick = np.flatnonzero(codes == code)
            law = self._law(code, rows[pick])
            expected[pick] = law.expected_rewards(steps[pick], pulls[pick])
        return expected

    def _law(self, code: int, rows: Ints) -> Arms:
        """Return the law behind a code, its parameters cut to ``rows`` if they are per row."""
        if code >= len(self._STACKED):
            return cast(Arms, self._objects[code - len(self._STACKED)])
        stacked: Bernoulli | Gaussian = self._bernoulli if code == 0 else self._gaussian
        if len(rows) == self.num_rows:
            return stacked
        law = object.__new__(type(stacked))
        law.__dict__.update({name: table[rows] for name, table in stacked.__dict__.items()})
        return law
