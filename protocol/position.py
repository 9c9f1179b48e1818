"""A place in a source's binlog: file and offset."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from protocol.errors import Malformed
from protocol.printable import printable

_FILE_NAME = re.compile(r"(?P<base>[^/\\\x00]+)\.(?P<number>[0-9]{6,20})")


MOST_NAME_BYTES: Final = 200
"""The most bytes of a binlog's name: with its suffixes in an archive (NAME.zst.enc.tmp) it must fit into a file system's 255."""


def binlog_number(file: str) -> int:
    """Return the sequence number in a binlog's name: 42 for `mysql-bin.000042`.

    Raises: Malformed for a name with a path in it, one that does not end in a number of six digits or more, one with invisible
    characters (control characters, those that have no width or turn the direction), and one of more than 200 bytes.
    """
    match = _FILE_NAME.fullmatch(file)
    if match is None or match["base"] in (".", "..") or not file.isprintable() or len(file.encode()) > MOST_NAME_BYTES:
        raise Malformed(f"{printable(file, MOST_NAME_BYTES)!r} is not a binlog file name such as mysql-bin.000001")
    return int(match["number"])


def is_binlog_name(name: str) -> bool:
    """Return whether `name` is a binlog's name as a server gives it (mysql-bin.000001)."""
    if not name[-1:].isdigit():
        return False  # most of an archive's files, which lie beside a binlog: an exception for each is expensive
    try:
        binlog_number(name)
    except Malformed:
        return False
    return True


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """(file, offset). Ordered by file number, then by the 64-bit offset; the wire's 32-bit end_log_pos never orders."""

    file: str
    offset: int

    def __lt__(self, other: "Position") -> bool:
        return (binlog_number(self.file), self.offset) < (binlog_number(other.file), other.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


def is_later(file: str, other: str, *, or_same: bool = False) -> bool:
    """Return whether a binlog comes after another one of the same server, according to their names."""
    try:
        behind = binlog_number(file) - binlog_number(other)
    except Malformed:
        return False
    return file.rpartition(".")[0] == other.rpartition(".")[0] and (behind > 0 or (or_same and behind == 0))
