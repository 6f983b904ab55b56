"""What every law of assignment arms offers, and the way back from its dict form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._checks import add_family, checked_row, family_of, made_from_dict

__all__ = ["Arms", "Noise", "check_law", "from_dict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Noise: TypeAlias = Literal["random", "standard_normal"] | None

_NOISES: tuple[Noise, ...] = (*get_args(Literal["random", "standard_normal"]), None)
_families: dict[str, type[Arms]] = {}


class Arms(ABC):
    """The reward laws of K arms.

    Attributes:
        family: The name of the law in the dict form.
        noise: The draws that :meth:`rewards` wants: ``"random"`` (uniform on [0, 1)),
            ``"standard_normal"``, or ``None`` for a law without chance.
        means: Expected reward of each arm; float64 array of shape ``(num_arms,)``. Where it
            varies, some average of it, as the law says.
        varying: Whether expected rewards change with the step or the pulls.
        num_steps: How many steps the law knows, or ``None`` if it never ends.
    """

    family: ClassVar[str]
    noise: Noise
    means: Floats
    varying: ClassVar[bool] = False
    num_steps: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the family known to :func:`from_dict`."""
        super().__init_subclass__(**kwargs)
        if "family" in cls.__dict__:
            add_family(_families, cls.family, cls)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return int(self.means.shape[-1])

    @abstractmethod
    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        """Return what the users' arms pay, elementwise.

        Leading axes, if any, run over environments side by side.

        Args:
            arms: The arm of each user; int64 array of shape ``(..., num_users)``.
            draws: One draw per user, as ``noise`` says; float64 array of the shape of ``arms``.
                Users of one arm hold the same draw. All zero where ``noise`` is ``None``.
            step: Steps played before this one; an int, or int64 array of shape ``(...)``.
            pulls: How often each arm was played before; int64 array of shape ``(..., num_arms)``.

        Returns:
            A fresh float64 array of the shape of ``arms``, finite: steps do not look.
        """

    def expected_rewards(self, step: int | Ints, pulls: Ints) -> Floats:
        """Return what every arm pays in expectation in a step, ``means`` unless it varies.

        Args:
            step: As for :meth:`rewards`.
            pulls: As for :meth:`rewards`.

        Returns:
            float64 array of shape ``(..., num_arms)``, or ``(num_arms,)`` if the same for all.
        """
        return self.means

    def expected_totals(self, steps: int) -> Floats:
        """Return what every arm pays in expectation in the first ``steps`` steps together.

        Returns:
            float64 array of shape ``(num_arms,)``.

        Raises:
            NotImplementedError: If that depends on what is played.
            ValueError: If the law knows fewer steps.
        """
        if self.varying:
            raise NotImplementedError(
                f"what {type(self).__name__} pays depends on what is played: its totals over "
                f"{steps} steps are known only of the steps that were played"
            )
        return steps * self.means

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments, JSON-able."""

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form: ``family`` and the parameters, JSON-able."""
        return {"family": family_of(self), **self.parameters()}

    def __repr__(self) -> str:
        """Show the constructor's arguments."""
        listed = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({listed})"

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is the same law with the same parameters."""
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def check_law(arms: Arms) -> None:
    """Refuse a law that environments would play wrongly: its ``noise`` and its ``means``.

    Raises:
        TypeError: If it has none of one of them, or ``means`` is not an array of real numbers.
        ValueError: If ``noise`` is not one of the three, or ``means`` is not a non-empty row of
            finite numbers.
    """
    own = type(arms).__name__
    for name in ("noise", "means"):
        if not hasattr(arms, name):
            raise TypeError(f"`{own}` must have `{name}`, as `gym_fairbandits.arms.Arms` says")
    if arms.noise not in _NOISES:
        listed = ", ".join(map(repr, _NOISES))
        raise ValueError(f"`{own}.noise` must be one of {listed}, got {arms.noise!r}")
    if not isinstance(arms.means, np.ndarray):
        raise TypeError(f"`{own}.means` must be an array of shape (num_arms,), got {arms.means!r}")
    checked_row(f"{own}.means", arms.means)


def from_dict(data: Mapping[str, Any]) -> Arms:
    """Return the arms of a dict form such as ``{"family": "bernoulli", "means": [0.2, 0.8]}``.

    Raises:
        TypeError: If ``data`` is not a mapping, or a parameter is missing or unknown.
        ValueError: If the family is unknown or a parameter breaks its rule.
    """
    return made_from_dict(data, _families, "arms")
