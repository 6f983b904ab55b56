"""Checks of what users pass in: each names the parameter, the rule and the value."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "actions_of_rows",
    "add_family",
    "as_int64",
    "check_room",
    "checked_array",
    "checked_bool",
    "checked_choice",
    "checked_float",
    "checked_int",
    "checked_row",
    "checked_table",
    "family_of",
    "frozen",
    "groups_of_users",
    "holds_integers",
    "made_from_dict",
]

T = TypeVar("T")
ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


def checked_int(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """Return ``value`` as an ``int`` of at least ``minimum`` and at most ``maximum``.

    Raises:
        TypeError: If ``value`` is not an integer (a ``bool`` is not one).
        ValueError: If it lies outside the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(f"`{name}` must be at most {maximum}, got {number}")
    return number


def checked_float(
    name: str,
    value: Any,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return ``value`` as a finite ``float`` within the bounds.

    Raises:
        TypeError: If ``value`` is not a real number (a ``bool`` is not one).
        ValueError: If it is NaN, infinite or outside the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a real number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite, got {number}")
    if not number >= at_least:
        raise ValueError(f"`{name}` must be at least {at_least:g}, got {number}")
    if not number > above:
        raise ValueError(f"`{name}` must be above {above:g}, got {number}")
    if not number <= at_most:
        raise ValueError(f"`{name}` must be at most {at_most:g}, got {number}")
    return number


def checked_bool(name: str, value: Any) -> bool:
    """Return ``value`` as a ``bool``.

    Raises:
        TypeError: If it is none, of Python or NumPy.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be a bool, got {value!r}")
    return bool(value)


def checked_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}")
    return value


def add_family(
    families: dict[str, type[T]],
    name: str,
    family: type[T],
    rule: str = "`family` must be a name of its own",
) -> None:
    """Make a class known by name; the same class, defined once more, takes the place of the first.

    Args:
        families: The classes by name.
        name: The name.
        family: The class.
        rule: What is broken by another class of that name, for the message.

    Raises:
        ValueError: If another class has that name.
    """
    known = families.get(name, family)
    if (known.__module__, known.__qualname__) != (family.__module__, family.__qualname__):
        raise ValueError(
            f"{rule}, got {name!r}, the name of {known.__module__}.{known.__qualname__}"
        )
    families[name] = family


def family_of(thing: Any) -> str:
    """Return the name by which the dict form of a curve or of arms says what it is.

    Raises:
        TypeError: If its class has none.
    """
    if not hasattr(thing, "family"):
        raise TypeError(
            f"`{type(thing).__name__}` must have a `family`, the name of its dict form, as in "
            '`family: ClassVar[str] = "my_own"`'
        )
    name: str = thing.family
    return name


def made_from_dict(data: Any, families: Mapping[str, Callable[..., T]], what: str) -> T:
    """Return what a dict form describes: ``family``, and the arguments of its constructor.

    Args:
        data: The dict form. It is data: a family is looked up, no module imported for it.
        families: The constructors by name.
        what: What is made, for the messages.

    Raises:
        TypeError: If ``data`` is not a mapping, or a parameter is missing or unknown.
        ValueError: If the family is unknown.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"the dict form of {what} must be a mapping, got {data!r}")
    parameters = dict(data)
    name = parameters.pop("family", None)
    if not isinstance(name, str) or name not in families:
        raise ValueError(
            f"`family` must be one of {sorted(families)}, got {name!r}; one of your own is known "
            "where the module that defines it was imported"
        )
    takes = inspect.signature(families[name]).parameters
    needed = {key for key, value in takes.items() if value.default is value.empty}
    if not needed <= set(parameters) <= set(takes):
        raise TypeError(
            f"family {name!r} takes the parameters {list(takes)}, got {sorted(parameters)}"
        )
    return families[name](**parameters)


def checked_row(name: str, values: Any) -> NDArray[np.float64]:
    """Return ``values`` as a read-only float64 copy of shape ``(n,)``, n at least 1, all finite.

    Raises:
        TypeError: If ``values`` does not hold real numbers (bools are none).
        ValueError: If it is empty, not one-dimensional, or holds NaN or infinity.
    """
    return _finite_numbers(name, values, 1, "sequence of numbers")


def checked_table(name: str, values: Any) -> NDArray[np.float64]:
    """Return ``values`` as a read-only float64 copy of shape ``(m, n)``, neither 0, all finite.

    Raises:
        TypeError: If ``values`` does not hold real numbers (bools are none).
        ValueError: If it is empty, not two-dimensional, ragged, or holds NaN or infinity.
    """
    return _finite_numbers(name, values, 2, "table of numbers, in rows of one length")


def checked_array(name: str, values: Any) -> NDArray[np.float64]:
    """Return ``values`` as a float64 array of shape ``(..., n)``, n at least 1, all finite.

    There may be no rows.

    Raises:
        TypeError: If ``values`` does not hold real numbers (bools are none).
        ValueError: If it has no last axis, that is empty, or it holds NaN or infinity.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must hold real numbers, got {values!r}")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"`{name}` must have at least one entry per row, got {values!r}")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be finite, got {values!r}")
    return array.astype(np.float64, copy=False)


def _finite_numbers(name: str, values: Any, ndim: int, what: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        array = np.empty(0).reshape((0,) * ndim)
    if array.dtype.kind not in "iuf" or array.ndim != ndim or array.size == 0:
        error = ValueError if array.dtype.kind in "iuf" else TypeError
        raise error(f"`{name}` must be a non-empty {what}, got {values!r}")
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        where = place[0] if ndim == 1 else place
        raise ValueError(f"`{name}` must be finite, got {array[place]} at index {where}")
    return frozen(np.array(array, dtype=np.float64, order="C"))


def frozen(array: ArrayT) -> ArrayT:
    """Return ``array`` after making it read-only: what episodes and users share must not change."""
    array.setflags(write=False)
    return array


def groups_of_users(num_users: int, capacity: int) -> int:
    """Return the number of groups of ``capacity`` users.

    Raises:
        ValueError: If the users cannot be divided so.
    """
    if num_users % capacity:
        raise ValueError(f"`capacity` must divide the number of users, {num_users}, got {capacity}")
    return num_users // capacity


def check_room(num_users: int, num_arms: int, capacity: int) -> None:
    """Check that the arms can serve all users in a step.

    Raises:
        ValueError: If ``num_users > capacity * num_arms``.
    """
    if not num_users <= capacity * num_arms:
        raise ValueError(
            f"`num_users` must be at most capacity * num_arms = {capacity * num_arms}, "
            f"got {num_users}"
        )


def holds_integers(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether ``value``, an array or nested sequence, holds integers in this shape."""
    if isinstance(value, np.ndarray):
        return value.shape == shape and value.dtype.kind in "iu"
    if not isinstance(value, list | tuple) or len(value) != shape[0]:
        return False
    if len(shape) > 1:
        return all(holds_integers(row, shape[1:]) for row in value)
    return all(isinstance(item, Integral) and not isinstance(item, bool) for item in value)


def actions_of_rows(actions: Any, rows: int) -> NDArray[Any]:
    """Return a policy's answer to the observations of a batch as an array.

    Raises:
        ValueError: If it does not hold an action per row.
    """
    if np.shape(actions)[:1] != (rows,):
        raise ValueError(
            "a policy gets observations of a batch and must return an action per row, "
            f"{rows}, got {actions!r}"
        )
    return np.asarray(actions)


def as_int64(value: Any, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
    """Return a copy of ``value``, or None if it does not hold integers in this shape.

    Integers that int64 cannot hold become others that are no index either.
    """
    if not holds_integers(value, shape):
        return None
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError:
        clipped: NDArray[np.int64] = np.clip(np.array(value, dtype=object), -1, 2**63 - 1).astype(
            np.int64
        )
        return clipped
