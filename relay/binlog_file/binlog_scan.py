"""Walks a binlog file with the kernel and hands out what stands where, a megabyte at a time."""

import os
import stat
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import ENCRYPTED_MAGIC, HEADER_SIZE, MAGIC
from protocol.kernel.ingest import STATUS_NAMES, Ingest

_CHUNK_BYTES: Final = 1 << 20
_TABLE_ROWS: Final = 32768
_LONGEST_FORMAT_BYTES: Final = 1 << 16
_ROW: Final = 8
_FIRST_ERROR: Final = 16
_TABLE_FULL: Final = 4


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a file cannot be read further: a name for machines, the offset, a sentence for people."""

    name: str
    offset: int
    text: str


class Unreadable(Exception):
    """A file that cannot be opened or is no binlog. `str()` is a sentence with what to do."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one piece of the file. Row i has its numbers at `table[8 * i:8 * i + 8]`.

    `data[0]` stands at `base` in the file. The last event may be longer than `data`: then only its head is here.
    """

    data: bytes
    base: int
    table: "array[int]"
    rows: int

    def offset(self, number: int) -> int:
        """Where event `number` of the chunk starts."""
        return self.table[_ROW * number]

    def row(self, number: int) -> "array[int]":
        """The eight numbers of event `number` of the chunk."""
        return self.table[_ROW * number : _ROW * number + _ROW]

    def columns(self) -> tuple[list[int], ...]:
        """Offset, length, type, flags, timestamp, server id, end_log_pos and info of all rows, as eight lists."""
        return tuple(self.table[column : self.rows * _ROW : _ROW].tolist() for column in range(_ROW))


class BinlogScan:
    """One pass over a binlog. After `chunks` is exhausted, `broken`, `stop` and the kernel's counters tell how it went."""

    def __init__(self, path: Path, *, start: int = len(MAGIC), end: int | None = None) -> None:
        """Opens the file and checks its magic. [start, end): a stretch between two transaction boundaries; None: all.

        Raises: Unreadable.
        """
        self.path = path
        self._start = start
        self._end = end
        self.broken: Broken | None = None
        self.late_damage: list[int] = []
        """Where events stand whose checksum is wrong, and whose row, longer ago than a chunk, does not say so."""
        self.stop = 0
        self._last_offset = self._last_length = 0
        self.ingest: Any = Ingest(packets=False, stamp=False)
        try:
            # O_NONBLOCK: a pipe without a writer would be waited for.
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise Unreadable(
                f"{path} cannot be opened: {error.strerror}. Check the name and its permissions."
            ) from None
        try:
            status = os.fstat(self._fd)
            self.size = status.st_size
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                os.close(self._fd)
                raise Unreadable(f"{path} is no regular file. Name a binlog file; copy a stream into a file first.")
            magic = os.pread(self._fd, len(MAGIC), 0)
        except OSError as error:
            os.close(self._fd)
            raise Unreadable(f"{path} cannot be read: {error.strerror}. Name a binlog file.") from None
        if magic != MAGIC:
            os.close(self._fd)
            raise Unreadable(_wrong_magic(path, magic))

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def __enter__(self) -> "BinlogScan":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def chunks(self, on_progress: Callable[[int], None] | None = None) -> Iterator[Chunk]:
        """Every event of the file, in order. `on_progress` gets the bytes read since its last call.

        A wrong CRC or end_log_pos is noted in the row, a CRC that is read after it in `late_damage`; anything that hides where
        the next event starts sets `broken`.
        """
        ingest = self.ingest
        table = array("q", bytes(8 * _ROW * _TABLE_ROWS))
        ingest.set_table(table, True)
        ingest.begin_file(len(MAGIC))
        base = self._start
        if base != len(MAGIC):
            head = bytearray(self.format_description())
            if not ingest.read_format(head, 0, len(head)):
                self.broken = Broken("format_description_missing", len(MAGIC), "The file has no Format_description.")
                return
            ingest.begin_file(base)
        buffer = bytearray(_CHUNK_BYTES)
        view = memoryview(buffer)
        have = 0
        while True:
            room = _CHUNK_BYTES - have
            if self._end is not None:
                room = min(room, self._end - base - have)
            got = os.preadv(self._fd, [view[have : have + room]], base + have) if room > 0 else 0
            have += got
            if on_progress is not None and got:
                on_progress(got)
            data = bytes(view[:have])
            used = 0
            status = _TABLE_FULL
            while True:
                status = ingest.feed(buffer, used, have)
                ingest.take_entries()
                ingest.take_violations()
                progressed = ingest.consumed > used
                used = ingest.consumed
                if ingest.late_damage >= 0:
                    self.late_damage.append(ingest.late_damage)
                rows = ingest.table_rows
                if rows:
                    self._remember(table, rows)
                    yield Chunk(data, base, table, rows)
                if status >= _FIRST_ERROR or not progressed:
                    break
            if status >= _FIRST_ERROR:
                self.broken = self._broken(status, data[used : used + HEADER_SIZE])
                break
            if used == 0 and got == 0:
                break
            view[: have - used] = view[used:have]
            have -= used
            base += used
        self.stop = ingest.position
        if self.broken is None and (have or ingest.in_event):
            self.broken = self._truncated(data[used:])

    def format_description(self) -> bytes:
        """The file's first event, its header included; fewer bytes if the file ends earlier."""
        head = os.pread(self._fd, HEADER_SIZE, len(MAGIC))
        length = int.from_bytes(head[9:13], "little")
        return os.pread(self._fd, min(length, _LONGEST_FORMAT_BYTES), len(MAGIC))

    def _remember(self, table: "array[int]", rows: int) -> None:
        """Keeps the last event's place, which an error at the end of the file may need."""
        self._last_offset, self._last_length = table[_ROW * (rows - 1)], table[_ROW * (rows - 1) + 1]

    def _broken(self, status: int, head: bytes) -> Broken:
        offset = self.ingest.position
        name = STATUS_NAMES.get(status, f"status_{status}")
        found = event_type_name(head[4]) if len(head) > 4 else "the event"
        length = int.from_bytes(head[9:13], "little")
        if name == "event_length_wrong":
            text = f"{found} announces {length} bytes; that cannot be an event. What follows is not read."
        elif name == "format_description_missing":
            text = f"{found} stands before any Format_description. Binlogs of MySQL 5.0 and later start with one."
        elif name == "format_description_unsupported":
            text = "This Format_description is of a layout that no MySQL or MariaDB server since 5.0 writes."
        elif name == "binlog_encrypted":
            text = (
                "MariaDB encrypted the file at rest. Read it through its server: mysqlbinlog --read-from-remote-server."
            )
        elif name == "event_malformed":
            text = f"The lengths inside {found} pass its end."
        else:
            text = f"{found} cannot be read."
        return Broken(name, offset, text)

    def _truncated(self, rest: bytes) -> Broken:
        offset, there = self.ingest.position, len(rest)
        announced = int.from_bytes(rest[9:13], "little") if there >= 13 else HEADER_SIZE
        if self.ingest.in_event:
            offset, announced = self._last_offset, self._last_length
            there += self.ingest.position - offset
        least = "" if there >= 13 else "at least "
        text = f"The event has {least}{announced} bytes, the file ends after {there} of them."
        return Broken("event_truncated", offset, text)


def _wrong_magic(path: Path, magic: bytes) -> str:
    if magic == ENCRYPTED_MAGIC:
        return (
            f"{path} is encrypted at rest by MySQL. Read it through its server: "
            "mysqlbinlog --read-from-remote-server --raw."
        )
    if not magic:
        return f"{path} is empty. A binlog starts with the bytes fe 62 69 6e."
    return f"{path} is not a binlog: it starts with {magic.hex(' ')} instead of fe 62 69 6e. Name a binlog file."
