"""What is wanted of a record: an id and a number, checked one by one where a parser refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXACT", "MISSING", "Blocks", "Chunk", "Fields", "chunks", "shortened"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MISSING = ("", "NA", "NaN", "None", "NULL", "nan", "null")
EXACT = 2**53  # from here on, different integers are the same float
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Fields:
    """The two columns that are wanted.

    Attributes:
        id: Name of the column with an integer.
        value: Name of the column with a finite number.
        optional: Whether either may be missing (empty, null, NaN).
        low: The least value allowed.
        high: The greatest value allowed.
    """

    id: str
    value: str
    optional: bool = False
    low: float = -math.inf
    high: float = math.inf

    def pair(self, place: str, identity: Any, value: Any) -> tuple[int, float, bool]:
        """Return the id, the value, and whether both are there, of one record.

        Args:
            place: File and line, for the messages.
            identity: What the record holds as its id: a number, a text or None.
            value: What it holds as its value.

        Raises:
            ValueError: If either is not what it should be; names place, column and value.
        """
        missing = [_is_missing(found) and self.optional for found in (identity, value)]
        number = 0 if missing[0] else _integer(identity)
        if number is None:
            rounded = "" if not EXACT <= abs(_real(identity)) < 2**63 else ", exact, not a float"
            _refuse(place, self.id, f"an integer of 64 bits{rounded}", identity)
        real = math.nan if missing[1] else _real(value)
        if not (missing[1] or self.allows(np.array([real]))):
            _refuse(place, self.value, self._rule(), value)
        return number, real, not any(missing)

    def allows(self, values: Floats) -> bool:
        """Return whether all values are finite and within the bounds."""
        return bool((np.isfinite(values) & (values >= self.low) & (values <= self.high)).all())

    def _rule(self) -> str:
        bounds = math.isfinite(self.low) or math.isfinite(self.high)
        return f"a number from {self.low:g} to {self.high:g}" if bounds else "a finite number"


class Chunk(NamedTuple):
    """Some records in a row; three arrays of shape ``(n,)``.

    Attributes:
        ids: int64; 0 where missing.
        values: float64; anything where missing.
        known: Whether both the id and the value are there; bool.
    """

    ids: Ints
    values: Floats
    known: Bools

    def first(self, number: int | None) -> Chunk:
        """Return the first ``number`` records, or all of them."""
        return Chunk(self.ids[:number], self.values[:number], self.known[:number])


def _is_missing(found: Any) -> bool:
    if isinstance(found, str):
        return found.strip() in MISSING
    return found is None or (isinstance(found, float) and math.isnan(found))


def _integer(found: Any) -> int | None:
    """Return what was found as an int64, also if it is spelt ``"12"`` or ``12.0``; else None.

    Floats must be below 2^53: beyond, they may be rounded, and two ids become one.
    """
    number: int | None
    if isinstance(found, str) and len(found) <= 32 and _INTEGER.fullmatch(found.strip()):
        number = int(found)
    elif isinstance(found, int | Decimal) and not isinstance(found, bool):
        number = int(found) if found == found // 1 else None
    else:
        real = _real(found)
        number = int(real) if real.is_integer() and abs(real) < EXACT else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _real(found: Any) -> float:
    """Return what was found as a float; NaN if it is no number."""
    if isinstance(found, str):
        return float(found) if _NUMBER.fullmatch(found.strip()) else math.nan
    if isinstance(found, bool) or not isinstance(found, Real | Decimal):
        return math.nan
    try:
        return float(found)
    except OverflowError:
        return math.nan


def _refuse(place: str, column: str, rule: str, found: Any) -> NoReturn:
    raise ValueError(f"{place}, column `{column}`: must be {rule}, got {shortened(repr(found))}")


def shortened(text: str) -> str:
    """Return a text as a message shows it: at most 80 characters."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _paired(fields: Fields, records: Iterable[tuple[str, Any, Any]]) -> Chunk:
    """Return the chunk of some records, given with their places, one by one."""
    pairs = [fields.pair(*record) for record in records]
    ids, values, known = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Chunk(
        np.array(ids, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(known, dtype=np.bool_),
    )


# A block as pyarrow parsed it, or None, and its records one by one, which are parsed if it is None.
Blocks: TypeAlias = Iterator[tuple[Chunk | None, Iterable[tuple[str, Any, Any]]]]


def chunks(blocks: Blocks, fields: Fields, most: int | None = None) -> Iterator[Chunk]:
    """Yield the records of some blocks, the first ``most`` or all of them.

    Raises:
        ValueError: If one of these holds what :meth:`Fields.pair` refuses; what comes after them
            is not looked at.
    """
    for parsed, records in blocks:
        chunk = _paired(fields, islice(records, most)) if parsed is None else parsed.first(most)
        yield chunk
        if most is not None:
            most -= len(chunk.ids)
            if not most:
                return
