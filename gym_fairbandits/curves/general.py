"""Families of rested arms of any form: tables, sums of caps, arms that rise and then fall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, exprel

from gym_fairbandits._checks import checked_float, checked_row
from gym_fairbandits.curves.base import TOLERANCE, Curve, check_parameters
from gym_fairbandits.curves.improving import LinearCap, PowerLaw

__all__ = [
    "NoveltyDecay",
    "PiecewiseLinear",
    "SinglePeaked",
    "Tabulated",
    "UnshiftedPowerLaw",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tabulated(Curve):
    """A table of rewards; flat after the last.

    Attributes:
        values: The rewards of pulls 1, 2, ...; at least one finite number.
    """

    values: tuple[float, ...]
    family: ClassVar[str] = "tabulated"

    def __post_init__(self) -> None:
        """Check the table; raises ``TypeError`` or ``ValueError``."""
        table = checked_row("values", self.values)
        object.__setattr__(self, "values", tuple(table.tolist()))
        # Extended precision where the platform has it: a running sum of 10^6 values must stay
        # exact to 1e-11.
        sums = np.cumsum(table, dtype=np.longdouble).astype(np.float64)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_sums", np.concatenate(([0.0], sums)))
        falls = np.flatnonzero(table < np.maximum.accumulate(table) - TOLERANCE)
        object.__setattr__(self, "_first_fall", int(falls[0]) + 1 if falls.size else math.inf)

    _table: ClassVar[Floats]  # set per instance above; not part of the dataclass's fields
    _sums: ClassVar[Floats]
    _first_fall: ClassVar[float]

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the last value of the table."""
        return self.values[-1]

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        places = np.minimum(pulls, len(self.values)).astype(np.int64) - 1
        values: Floats = self._table.take(places)
        return values

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        inside = np.minimum(pulls, len(self.values))
        beyond = (pulls - inside) * self._table[-1]
        sums: Floats = self._sums.take(inside.astype(np.int64)) + beyond
        return sums

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether the table does not fall within the first ``pulls`` entries."""
        return pulls < self._first_fall


@dataclass(frozen=True)
class PiecewiseLinear(Curve):
    """``asymptotes[0] * min(n / ramps[0], 1) + ...``: linear caps added up.

    With asymptotes of at least 0 these are the concave curves through 0 that bend at the ramps
    and are flat after the last. Negative ones let the curve fall.

    Attributes:
        asymptotes: What each cap contributes in the end; at least one finite number.
        ramps: Pulls until it does; as many numbers above 0.
    """

    asymptotes: tuple[float, ...]
    ramps: tuple[float, ...]
    family: ClassVar[str] = "piecewise_linear"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        asymptotes = checked_row("asymptotes", self.asymptotes)
        ramps = checked_row("ramps", self.ramps)
        if len(asymptotes) != len(ramps):
            raise ValueError(
                f"`ramps` must have one entry for each of the {len(asymptotes)} `asymptotes`, "
                f"got {len(ramps)}"
            )
        if not (ramps > 0).all():
            raise ValueError(f"`ramps` must be above 0, got {self.ramps!r}")
        object.__setattr__(self, "asymptotes", tuple(asymptotes.tolist()))
        object.__setattr__(self, "ramps", tuple(ramps.tolist()))

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the sum of the caps' asymptotes."""
        return sum(self.asymptotes)

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        total = np.zeros_like(pulls)
        for asymptote, ramp in zip(self.asymptotes, self.ramps, strict=True):
            total += asymptote * LinearCap.shape(pulls, np.array(ramp))
        return total

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        total = np.zeros_like(pulls)
        for asymptote, ramp in zip(self.asymptotes, self.ramps, strict=True):
            total += asymptote * LinearCap.shape_sum(pulls, np.array(ramp))
        return total

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls in the first ``pulls`` pulls."""
        # Between two bends f is linear: the pulls around the bends tell all.
        bends = np.concatenate([np.floor(self.ramps), np.floor(self.ramps) + 1, [1, pulls]])
        places = np.unique(np.clip(bends, 1, max(pulls, 1)))
        values = self.evaluate(places)
        return bool((values >= np.maximum.accumulate(values) - TOLERANCE).all())

    def has_model_shape(self) -> bool:
        """Return whether all caps have one sign: their mean then is a shape of the model."""
        return min(self.asymptotes) >= 0 or max(self.asymptotes) <= 0


@dataclass(frozen=True)
class UnshiftedPowerLaw(Curve):
    """``asymptote * (1 - n ** -exponent)``, of the experiments of Lindner et al. (2021).

    It pays 0 at the first pull and then jumps, which breaks f(2) <= 2 f(1): never in the model.
    :class:`PowerLaw` is, one pull ahead.

    Attributes:
        asymptote: The limit of the reward.
        exponent: How fast it is approached; above 0.
    """

    asymptote: float
    exponent: float
    family: ClassVar[str] = "unshifted_power_law"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, exponent={"above": 0})

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        return self.asymptote * PowerLaw.shape(pulls - 1, np.array(self.exponent))

    def evaluate_sum(self, pulls: Floats) -> Floats:
        """Return f(1) + ... + f(n) at ``pulls``, elementwise, in O(1)."""
        before = np.maximum(pulls - 1, 0.0)
        return self.asymptote * PowerLaw.shape_sum(before, np.array(self.exponent))

    def nondecreasing(self, pulls: int) -> bool:
        """Return whether f never falls: the power law rises, so it is the asymptote's sign."""
        return self.asymptote >= -TOLERANCE


@dataclass(frozen=True)
class SinglePeaked(Curve):
    """Rises to a plateau and then falls to another level (Lindner et al. 2021, Appendix D.2).

    ``amplitude * exp(-rate * (n - center))
    + (asymptote - plateau) / (1 + exp(-(rate + extra_rate) * (n - center))) + plateau``;
    in the paper's code these are a, k1, l, c2, c1 and k2. With a negative amplitude the first
    term is the rise and the second the fall, around pull ``center``. The sum costs O(n).

    Attributes:
        rate: k1, how fast the first term dies out, per pull; above 0.
        extra_rate: k2, how much faster the fall is; at least 0.
        plateau: c1, the level before the fall.
        asymptote: c2, the level after it.
        center: l, the pull in the middle of the fall; ``rate * center`` is at most 700.
        amplitude: a, the first term at pull ``center``.
    """

    rate: float
    extra_rate: float
    plateau: float
    asymptote: float
    center: float
    amplitude: float
    family: ClassVar[str] = "single_peaked"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, rate={"above": 0}, extra_rate={"at_least": 0})
        checked_float(
            "rate * center", self.rate * self.center, at_most=700
        )  # exp must not overflow

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise."""
        late = pulls - self.center
        fallen = expit((self.rate + self.extra_rate) * late)
        rise = self.amplitude * np.exp(-self.rate * late)
        values: Floats = rise + (self.asymptote - self.plateau) * fallen + self.plateau
        return values


@dataclass(frozen=True)
class NoveltyDecay(Curve):
    """What a recommended item is worth after ever more showings (Lindner et al. 2021, sec. 5).

    The rewards r_1 = 0, r_2, ... of the pulls follow
    ``r_(n+1) = r_n + novelty * fading ** n - adaptation * (r_n - value)``: a fading novelty lifts
    the reward, and it returns to the item's true value. The authors' code moreover divides by the
    highest reward of the episode if that exceeds 1, which ``factor * curve`` does too. The sum
    costs O(n).

    Attributes:
        value: v, what the item is worth in the end if ``adaptation`` is positive.
        novelty: nu, the lift; any number.
        fading: gamma, what remains of the lift from pull to pull; in (0, 1).
        adaptation: d, how fast the reward returns to the value; in [0, 1).
    """

    value: float
    novelty: float
    fading: float
    adaptation: float
    family: ClassVar[str] = "novelty_decay"

    def __post_init__(self) -> None:
        """Check the parameters; raises ``TypeError`` or ``ValueError``."""
        check_parameters(self, fading={"above": 0}, adaptation={"at_least": 0})
        for name in ("fading", "adaptation"):
            if not getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be below 1, got {getattr(self, name)}")

    @property
    def asymptote(self) -> float:  # type: ignore[override]
        """The potential: the value, or without adaptation the whole lift."""
        if self.adaptation > 0:
            return self.value
        return self.novelty * self.fading / (1 - self.fading)

    def evaluate(self, pulls: Floats) -> Floats:
        """Return f at ``pulls``, elementwise, by the solution of the recursion."""
        # With q = 1 - adaptation, r_(m+1) = value (1 - q^m)
        # + novelty fading (fading^m - q^m) / (fading - q). Of the two powers the larger one is
        # taken out of the fraction, whose limit at fading = q is m / q.
        done = pulls - 1
        log_kept = np.log1p(-self.adaptation)
        log_fading = np.log(self.fading)
        larger, gap = np.maximum(log_kept, log_fading), -np.abs(log_kept - log_fading)
        ratio = done * exprel(done * gap) / exprel(gap)
        lift = self.novelty * self.fading * np.exp((done - 1) * larger) * ratio
        values: Floats = -self.value * np.expm1(done * log_kept) + lift
        return values
