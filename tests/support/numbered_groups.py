"""The groups of binlogs with the numbers that tell replicas which of them may run together; read by the events' lengths alone."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.binlog_comparison import (
    CRC_BYTES,
    FORMAT_DESCRIPTION,
    HEADER_BYTES,
    RawEvent,
    events_of,
    has_checksums,
)
from tests.support.logged_rows import ROWS, MappedTable, RowChange, read_rows, read_table_map

_QUERY, _STOP, _ROTATE, _XID, _MAP, _ROWS_QUERY, _PREVIOUS_GTIDS, _XA_PREPARE = 2, 3, 4, 16, 19, 29, 35, 38
_TAGGED: Final = 42
_GTIDS: Final = frozenset((33, 34, _TAGGED))
_BETWEEN: Final = frozenset((_STOP, _ROTATE, FORMAT_DESCRIPTION, _PREVIOUS_GTIDS))
_SILENT: Final = frozenset((_XID, _ROWS_QUERY, _XA_PREPARE))
_ENVELOPE: Final = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT ", "ROLLBACK TO ", "RELEASE ", "XA START ", "XA END "
)  # fmt: skip
_VERSION: Final = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)
_CLOCK: Final = struct.Struct("<Bqq")
_CLOCK_AT: Final = 1 + 16 + 8
_UUID_FIELD, _TAG_FIELD, _CLOCK_FIELDS = 1, 3, (4, 5)


@dataclass(slots=True)
class Group:
    """A transaction: where its Gtid event begins, its numbers, the rows it changes, and (schema, text) of its other statements.

    `version` is (9, 7) for a source that is a MySQL 9.7. `length` is in bytes. `has_tag` says that its GTID is UUID:TAG:N.
    """

    version: tuple[int, ...]
    file: str
    offset: int
    last_committed: int
    sequence_number: int
    has_tag: bool = False
    length: int = 0
    rows: list[RowChange] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)

    @property
    def what(self) -> str:
        """Return a short description."""
        told = [text[:80] for _schema, text in self.statements] or [f"{len(self.rows)} rows"]
        return f"{told[0]}, {self.length} bytes"

    def __str__(self) -> str:
        return f"{self.file}:{self.offset} ({self.last_committed}, {self.sequence_number})"


def groups_of(path: Path) -> Iterator[Group]:
    """Yield the groups of a binlog, in order. Raises: ValueError for what this reader does not know."""
    tables: dict[int, MappedTable] = {}
    group: Group | None = None
    checksum = 0
    version: tuple[int, ...] = ()
    for event in events_of(path.read_bytes(), path.name):
        if event.kind == FORMAT_DESCRIPTION:
            checksum = CRC_BYTES if has_checksums(event.data) else 0
            version = tuple(map(int, event.data[_VERSION].decode().split(".")[:2]))
        body = event.data[HEADER_BYTES : len(event.data) - checksum]
        if event.kind in _GTIDS or event.kind in _BETWEEN:
            if group is not None:
                yield group
            group = None
            if event.kind in _GTIDS:
                numbers = _clock(path, event, checksum)
                group = Group(version, path.name, event.offset, *numbers, event.kind == _TAGGED, len(event.data))
            continue
        if group is None:
            raise ValueError(f"{path.name}:{event.offset}: an event of type {event.kind} stands in no group")
        group.length += len(event.data)
        if event.kind == _MAP:
            number, table = read_table_map(body)
            tables[number] = table
        elif event.kind in ROWS:
            group.rows += read_rows(event.kind, body, tables)
        elif event.kind == _QUERY:
            schema, text = _statement(body)
            if not text.upper().startswith(_ENVELOPE) or text.upper().startswith(("XA COMMIT", "XA ROLLBACK")):
                group.statements.append((schema, text))
        elif event.kind not in _SILENT:
            group.statements.append(("", f"an event of type {event.kind}"))
    if group is not None:
        yield group


def waits_for_all(group: Group, before: Group | None) -> bool:
    """Return whether a replica ends everything before this group first, whatever its numbers mean: no parent is named, a number is
    skipped before it, or the numbers are not in order. `before` is the previous group in its file."""
    return (
        before is None
        or group.last_committed == 0
        or group.sequence_number != before.sequence_number + 1
        or group.last_committed >= group.sequence_number
    )


def parallel_width(groups: Sequence[Group]) -> float:
    """Return how many groups of a file run together on average, if each batch of them ends before the next begins; 0 if there are none.

    A batch continues while a group waits for none of it.
    """
    batches = first = 0
    before = None
    for group in groups:
        if waits_for_all(group, before) or group.last_committed >= first:
            batches += 1
            first = group.sequence_number
        before = group
    return len(groups) / batches if batches else 0.0


def width_of(paths: Sequence[Path]) -> float:
    """Return the same over several files."""
    files = [list(groups_of(path)) for path in paths]
    batches = sum(len(groups) / parallel_width(groups) for groups in files if groups)
    return sum(map(len, files)) / batches if batches else 0.0


def renumbered(data: bytes, numbers: Sequence[tuple[int, int]]) -> bytes:
    """Return a binlog with other numbers: (last_committed, sequence_number) for each of its groups, in order."""
    made = bytearray(data)
    left = iter(numbers)
    checksum = False
    for event in events_of(data):
        if event.kind == FORMAT_DESCRIPTION:
            checksum = has_checksums(event.data)
        elif event.kind == _TAGGED:
            raise ValueError(f"offset {event.offset}: a GTID with a tag, whose numbers have no fixed place")
        elif event.kind in _GTIDS:
            _CLOCK.pack_into(made, event.offset + HEADER_BYTES + _CLOCK_AT, 2, *next(left))
            if checksum:
                crc = zlib.crc32(memoryview(made)[event.offset : event.end - CRC_BYTES])
                struct.pack_into("<I", made, event.end - CRC_BYTES, crc)
    if next(left, None) is not None:
        raise ValueError(f"{len(numbers)} pairs of numbers are too many for the groups of this binlog")
    return bytes(made)


def _clock(path: Path, event: RawEvent, checksum: int) -> tuple[int, int]:
    if event.kind == _TAGGED:
        return _tagged_clock(path, event.data[HEADER_BYTES : len(event.data) - checksum])
    at = HEADER_BYTES + _CLOCK_AT
    if len(event.data) < at + _CLOCK.size or event.data[at] != 2:
        raise ValueError(f"{path.name}:{event.offset}: a GTID event without last_committed and sequence_number")
    _type, last_committed, sequence_number = _CLOCK.unpack_from(event.data, at)
    return last_committed, sequence_number


def _tagged_clock(path: Path, body: bytes) -> tuple[int, int]:
    """Return fields that follow each other, each after its number: flags 0, uuid 1, number 2, tag 3, last_committed 4, sequence_number
    5."""
    at = 0
    found: list[int] = []
    for _ in range(3):  # Version, size, the last field that must not be skipped
        _value, at = _packed(body, at)
    while at < len(body) and len(found) < 2:
        field_number, at = _packed(body, at)
        for _ in range(16 if field_number == _UUID_FIELD else 1):
            value, at = _packed(body, at)
        if field_number == _TAG_FIELD:
            at += value
        elif field_number in _CLOCK_FIELDS:
            found.append(value >> 1 ^ -(value & 1))
    if len(found) < 2:
        raise ValueError(f"{path.name}: a GTID event with a tag, and without last_committed and sequence_number")
    return found[0], found[1]


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """Return a packed number, of which as many bytes follow the first as that has bits set at its low end, and where the next
    begins."""
    following = next((bit for bit in range(8) if not data[at] >> bit & 1), 8)
    end = at + following + 1
    value = int.from_bytes(data[at:end], "little")
    return value >> min(following + 1, 8), end


def _statement(body: bytes) -> tuple[str, str]:
    schema_bytes, status_bytes = body[8], int.from_bytes(body[11:13], "little")
    at = 13 + status_bytes
    return body[at : at + schema_bytes].decode(), body[at + schema_bytes + 1 :].decode("utf-8", "replace")
