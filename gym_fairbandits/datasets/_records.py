"""Pairs of an id and a number from files of records: delimited text, JSON lines, Parquet.

pyarrow parses the blocks; what it refuses is parsed again record by record in Python, which
accepts more spellings and names the culprit by file, line, column and value. What pyarrow accepts
and Python would not is left to Python too: whether a value is good does not depend on its block.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gym_fairbandits.datasets._fields import EXACT, MISSING, Blocks, Chunk, Fields, shortened
from gym_fairbandits.datasets._streams import Stream

__all__ = [
    "Layout",
    "check_columns",
    "csv_layout",
    "delimited_blocks",
    "json_blocks",
    "parquet_blocks",
]

_HEXADECIMAL = re.compile(rb"(?<![0-9A-Za-z])0[xX]")  # an integer to pyarrow


# --- Delimited text ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The columns of a delimited text file.

    Attributes:
        separator: ``","``, ``"::"`` or a tab.
        columns: Their names.
        header: Whether the first line holds the names.
    """

    separator: str
    columns: tuple[str, ...]
    header: bool = False


def csv_layout(name: str, first_line: bytes, fields: Fields) -> Layout:
    """Return the layout of a CSV file from its first line.

    Raises:
        ValueError: If a wanted column is not there exactly once.
    """
    text = first_line.decode("utf-8", errors="replace")
    _, columns = next(_split(name, 1, text, ","), (1, [""]))
    check_columns(f"{name}, line 1", columns, fields)
    return Layout(",", tuple(columns), header=True)


def check_columns(place: str, columns: list[str], fields: Fields) -> None:
    """Raise ``ValueError`` unless each wanted column is there exactly once."""
    for wanted in (fields.id, fields.value):
        if columns.count(wanted) != 1:
            listed = shortened(", ".join(columns))
            raise ValueError(f"{place}: must have one column `{wanted}`, got the columns {listed}")


def delimited_blocks(stream: Stream, first_line: bytes, layout: Layout, fields: Fields) -> Blocks:
    """Yield the blocks of a delimited file whose first line was read."""
    start, lines = (b"", 1) if layout.header else (first_line, 0)
    for line, block in stream.blocks(start, lines, quoted=layout.separator == ","):
        yield (
            _parsed_text(block, layout, fields),
            _text_records(stream.name, line, block, layout, fields),
        )


def _parsed_text(block: bytes, layout: Layout, fields: Fields) -> Chunk | None:
    """Return the chunk, or None if anything in the block is unusual."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    separator, columns = layout.separator, layout.columns
    step = len(separator)  # pyarrow separates at one character: `::` leaves empty columns between
    if block.count(b'"') % 2 and separator == ",":
        return None  # ends within quotes
    if (b"x" in block or b"X" in block) and _HEXADECIMAL.search(block):
        return None
    wanted = [str(step * columns.index(name)) for name in (fields.id, fields.value)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(block),
            read_options=arrow_csv.ReadOptions(
                column_names=[str(place) for place in range(step * (len(columns) - 1) + 1)]
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator[0],
                quote_char='"' if separator == "," else False,
                newlines_in_values=separator == "," and b'"' in block,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict(zip(wanted, (pa.int64(), pa.float64()), strict=True)),
                null_values=MISSING if fields.optional else (),
            ),
        )
    except pa.ArrowInvalid:
        return None
    if step > 1 and block.count(separator.encode()) != (len(columns) - 1) * table.num_rows:
        return None  # single colons
    ids, values = table.columns
    if compute.any(compute.is_nan(values)).as_py():
        return None  # spelt otherwise than `MISSING`
    return _from_arrow(ids, values, fields)


def _text_records(
    name: str, line: int, block: bytes, layout: Layout, fields: Fields
) -> Iterator[tuple[str, Any, Any]]:
    """Yield place, id and value of each record; raises ``ValueError`` at one that is malformed."""
    text = block.decode("utf-8", errors="replace")
    columns = layout.columns
    first, second = columns.index(fields.id), columns.index(fields.value)
    for number, record in _split(name, line, text, layout.separator):
        if len(record) != len(columns):
            raise ValueError(
                f"{name}, line {number}: must have {len(columns)} columns "
                f"({shortened(', '.join(columns))}), got {len(record)}: "
                f"{shortened(layout.separator.join(record[:100]))!r}"
            )
        yield f"{name}, line {number}", record[first], record[second]


def _split(name: str, line: int, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the columns of each record that is not blank, with the number of its first line."""
    if separator != ",":
        for number, record in enumerate(text.split("\n"), line):
            if record.rstrip("\r"):
                yield number, record.rstrip("\r").split(separator)
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    number = line
    try:
        for columns in reader:
            if columns:
                yield number, columns
            number = line + reader.line_num
    except csv.Error as error:
        raise ValueError(f"{name}, line {number}: {error}") from error


# --- JSON lines ----------------------------------------------------------------------------------


def json_blocks(stream: Stream, first_line: bytes, fields: Fields) -> Blocks:
    """Yield the blocks of a file with one JSON object per line, whose first line was read.

    Raises:
        ValueError: If no record of the file has one of the wanted keys.
    """
    as_text = bool(re.search(rb'"%s"\s*:\s*"' % fields.id.encode(), first_line))
    absent = [fields.id, fields.value]
    for line, block in stream.blocks(first_line, 0, quoted=False):
        absent = [wanted for wanted in absent if f'"{wanted}"'.encode() not in block]
        yield _parsed_json(block, fields, as_text), _json_records(stream.name, line, block, fields)
    if absent:  # a record may lack a key, since exports leave out nulls; a file may not
        found = shortened(first_line.decode("utf-8", errors="replace").strip())
        raise ValueError(
            f"{stream.name}: must have a column `{absent[0]}`, got records like {found}"
        )


def _parsed_json(block: bytes, fields: Fields, as_text: bool) -> Chunk | None:
    """Return the chunk, or None if anything in the block is unusual.

    BigQuery exports 64-bit integers as texts: ``as_text`` says whether this file does.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    identity = pa.string() if as_text else pa.int64()
    schema = pa.schema([(fields.id, identity), (fields.value, pa.float64())])
    try:
        table = arrow_json.read_json(
            pa.BufferReader(block),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        ids = _integers(table[fields.id])
    except pa.ArrowInvalid:
        return None
    if table.num_rows != block.count(b"\n") + (not block.endswith(b"\n")):
        return None  # blank lines, or several records in one
    return None if ids is None else _from_arrow(ids, table[fields.value], fields)


def _json_records(
    name: str, line: int, block: bytes, fields: Fields
) -> Iterator[tuple[str, Any, Any]]:
    for number, text in enumerate(block.split(b"\n"), line):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}, line {number}: is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise ValueError(
                f"{name}, line {number}: must be a JSON object, got {shortened(repr(record))}"
            )
        yield f"{name}, line {number}", record.get(fields.id), record.get(fields.value)


# --- Parquet -------------------------------------------------------------------------------------


def parquet_blocks(name: str, source: Path | io.BytesIO, fields: Fields) -> Blocks:
    """Yield the row groups of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(source)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{name}: damaged or cut short: {error}") from error
    with file:
        check_columns(name, file.schema_arrow.names, fields)
        for group in range(file.num_row_groups):
            place = f"{name}, row group {group}"
            try:
                table = file.read_row_group(group, columns=[fields.id, fields.value])
            except (pa.ArrowException, OSError) as error:
                raise ValueError(f"{place}: damaged or cut short: {error}") from error
            ids, values = table[fields.id], table[fields.value]
            yield _parsed_columns(ids, values, fields), _rows(place, ids, values)


def _rows(place: str, ids: Any, values: Any) -> Iterator[tuple[str, Any, Any]]:
    for row, pair in enumerate(zip(ids.to_pylist(), values.to_pylist(), strict=True)):
        yield f"{place}, row {row}", *pair


def _parsed_columns(ids: Any, values: Any, fields: Fields) -> Chunk | None:
    import pyarrow as pa
    from pyarrow import compute

    if any(pa.types.is_boolean(column.type) for column in (ids, values)):
        return None  # would pass for numbers
    try:
        numbers, real = _integers(ids), values.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    spelt = not pa.types.is_floating(values.type)
    if numbers is None or (spelt and compute.any(compute.is_nan(real)).as_py()):
        return None
    return _from_arrow(numbers, real, fields)


def _integers(ids: Any) -> Any:
    """Return a column as int64, or None if pyarrow takes what :func:`_integer` does not."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(ids.type):
        doubles = compute.abs(ids.cast(pa.float64()))
        odd = compute.greater_equal(doubles, float(EXACT))
    elif pa.types.is_integer(ids.type) or pa.types.is_decimal(ids.type):
        return ids.cast(pa.int64())
    else:
        odd = compute.match_substring_regex(ids, "[xX]")
    return None if compute.any(odd).as_py() else ids.cast(pa.int64())


def _from_arrow(ids: Any, values: Any, fields: Fields) -> Chunk | None:
    """Return the chunk of two columns, or None if a value is not allowed."""
    numbers = values.fill_null(math.nan).to_numpy()
    there = ~np.isnan(numbers)
    known = there & ids.is_valid().to_numpy()
    if not fields.allows(numbers[there]) or not (fields.optional or known.all()):
        return None
    return Chunk(ids.fill_null(0).to_numpy(), numbers, known)
