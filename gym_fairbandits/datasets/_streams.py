"""The bytes of files: plain, gzipped, in a zip; read in blocks of whole records.

Memory is bounded by the block, and damage is found where it is. Nothing in a file is executed,
unpickled or written to disk.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np

__all__ = ["Stream", "open_member", "open_path", "opened_zip"]

T = TypeVar("T")

# Limits that real files stay far below, so that hostile ones fail early and small.
LONGEST_FIRST_LINE = 2**16
LONGEST_RECORD = 2**20
LARGEST_UNPACKED = 2**31  # a gzipped Parquet file is unpacked in memory: it is read from its end

_BLOCK = 2**21  # measured: larger ones cost more for their memory than they save


class Stream:
    """The bytes of one file, unpacked if it is gzipped; damage is told by name and line.

    Attributes:
        name: The file, for the messages.
    """

    def __init__(self, name: str, raw: Any) -> None:
        """Wrap a buffered binary file, which the caller closes."""
        self.name = name
        self._line = 0  # lines handed out so far
        self._raw: BinaryIO = raw
        self.gzipped = self.guarded(lambda: raw.peek(2)[:2]) == b"\x1f\x8b"
        if self.gzipped:
            self._raw = gzip.GzipFile(fileobj=raw)  # type: ignore[assignment]

    def guarded(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns; its complaints about the file become ``ValueError``."""
        try:
            return read()
        except (EOFError, OSError, zlib.error, BadZipFile) as error:
            raise ValueError(
                f"{self.name}: damaged or cut short after line {self._line}: {error}"
            ) from error

    def magic(self) -> bytes:
        """Return the first four bytes without consuming them."""
        raw: Any = self._raw
        return self.guarded(lambda: bytes(raw.peek(4)[:4]))

    def first_line(self) -> bytes:
        """Return the first line with its end, without a byte order mark.

        Raises:
            ValueError: If the file is empty, or the line longer than any of a known format.
        """
        line = self.guarded(lambda: self._raw.readline(LONGEST_FIRST_LINE + 1))
        if not line:
            raise ValueError(f"{self.name}: the file is empty")
        if len(line) > LONGEST_FIRST_LINE:
            raise ValueError(f"{self.name}, line 1: is longer than {LONGEST_FIRST_LINE:,} bytes")
        return line.removeprefix(b"\xef\xbb\xbf")

    def blocks(self, start: bytes, lines: int, quoted: bool) -> Iterator[tuple[int, bytes]]:
        """Yield the rest in blocks of whole records, each with the number of its first line.

        Args:
            start: What was read already and belongs to the records.
            lines: The lines before it.
            quoted: Whether a line's end within double quotes does not end a record.
        """
        self._line = lines
        data = start
        while True:
            more = self.guarded(lambda: self._raw.read(_BLOCK))
            data += more
            end = _end_of_records(data, quoted) if more else len(data)
            first = self._line + 1
            # Faster than `bytes.count` where lines are short.
            codes = np.frombuffer(data, dtype=np.uint8, count=end)
            self._line += int(np.count_nonzero(codes == ord("\n")))
            if end:
                yield first, data[:end]
            if len(data) - end > LONGEST_RECORD:
                raise ValueError(
                    f"{self.name}, line {self._line + 1}: the record is longer than "
                    f"{LONGEST_RECORD:,} bytes"
                )
            if not more:
                return
            data = data[end:]

    def unpacked(self) -> io.BytesIO:
        """Return all bytes, for formats that are read from the end."""
        data = io.BytesIO()
        while more := self.guarded(lambda: self._raw.read(_BLOCK)):
            data.write(more)
            if data.tell() > LARGEST_UNPACKED:
                raise ValueError(
                    f"{self.name}: unpacks to more than {LARGEST_UNPACKED:,} bytes; unpack it first"
                )
        data.seek(0)
        return data


@contextmanager
def open_path(path: Path) -> Iterator[Stream]:
    """Open a file."""
    with path.open("rb") as raw:
        yield Stream(str(path), raw)


@contextmanager
def opened_zip(path: Path) -> Iterator[ZipFile]:
    """Open a zip file; raises ``ValueError`` if it is damaged."""
    try:
        archive = ZipFile(path)
    except (BadZipFile, OSError) as error:
        raise ValueError(f"{path}: damaged or cut short: {error}") from error
    with archive:
        yield archive


@contextmanager
def open_member(archive: ZipFile, member: str) -> Iterator[Stream]:
    """Open a file within a zip, without extracting it."""
    name = f"{archive.filename}:{member}"
    try:
        raw = archive.open(member)
    except (BadZipFile, OSError, RuntimeError) as error:  # the last: a password, or a new method
        raise ValueError(f"{name}: cannot be read: {error}") from error
    with raw:
        yield Stream(name, raw)


def _end_of_records(data: bytes, quoted: bool) -> int:
    """Return where the last whole record ends."""
    if not quoted or b'"' not in data:
        return data.rfind(b"\n") + 1
    codes = np.frombuffer(data, dtype=np.uint8)
    inside = np.logical_xor.accumulate(codes == ord('"'))
    ends = np.flatnonzero((codes == ord("\n")) & ~inside)
    return int(ends[-1]) + 1 if ends.size else 0
