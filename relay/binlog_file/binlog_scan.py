"""One file as the commands and SHOW BINLOG EVENTS list it: every event in order, and why reading cannot continue."""

import os
import stat
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode, RelayError
from protocol.kernel.codes import TABLE_ROW
from relay.binlog_file.broken import THROUGH_ITS_SERVER, Broken, wrong_magic
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import DescriptorBytes, FileBytes
from relay.binlog_file.head import read_start

_TABLE_ROWS: Final = 4096


class Unreadable(RelayError):
    """A file that cannot be opened or is no binlog. `str()` is a sentence with the next step."""

    exit_code = ExitCode.WRONG_USE


@dataclass(frozen=True, slots=True)
class Chunk:
    """The events of one piece of the file. Row i has its numbers at `table[8 * i:8 * i + 8]`.

    `data[0]` is at `base` in the file. The last event may be longer than `data`: then only its head is here.
    """

    data: bytes
    base: int
    table: "array[int]"
    rows: int

    def offset(self, number: int) -> int:
        """Return the offset at which event `number` of the chunk starts."""
        return self.table[TABLE_ROW * number]

    def row(self, number: int) -> "array[int]":
        """Return the eight numbers of event `number` of the chunk."""
        return self.table[TABLE_ROW * number : TABLE_ROW * number + TABLE_ROW]

    def columns(self) -> tuple[list[int], ...]:
        """Return offset, length, type, flags, timestamp, server id, end_log_pos and info of all rows, as eight lists."""
        return tuple(self.table[column : self.rows * TABLE_ROW : TABLE_ROW].tolist() for column in range(TABLE_ROW))


class ClosedLater(FileBytes, Protocol):
    """The bytes of an open binlog, and the end of their use."""

    def close(self) -> None:
        """Close it: the bytes are not read any more."""


class _PlainBinlog(DescriptorBytes):
    """A file on the disk."""

    def __init__(self, path: Path) -> None:
        # O_NONBLOCK: opening a pipe without a writer would wait.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        super().__init__(fd)
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            os.close(fd)
            raise Unreadable(f"{path} is no regular file. Name a binlog file; copy a stream into a file first.")

    def close(self) -> None:
        os.close(self._fd)


class _Progress:
    """Reports bytes read. It does not refer to the scan: a reference cycle keeps its memory until the collector runs."""

    def __init__(self) -> None:
        self.told: Callable[[int], None] | None = None

    def read(self, data: memoryview) -> None:
        """Count these bytes as read."""
        if self.told is not None:
            self.told(len(data))


class BinlogScan:
    """One pass over a binlog. After `chunks` is exhausted, `broken`, `stop` and the kernel's counters give the result."""

    def __init__(
        self,
        path: Path,
        *,
        start: int = FIRST_EVENT,
        end: int | None = None,
        opened: Callable[[], ClosedLater] | None = None,
    ) -> None:
        """Open the file and check its magic. [start, end): a stretch between two transaction boundaries; None: all.

        opened: opens it, if it is no plain file on the disk. Raises: Unreadable.
        """
        self.path = path
        self._start = start
        self._end = end
        self.broken: Broken | None = None
        self.late_damage: list[int] = []
        """The offsets of events whose checksum is wrong, and whose row, given out more than a chunk ago, does not say so."""
        self.stop = 0
        try:
            self._opened = _PlainBinlog(path) if opened is None else opened()
        except OSError as error:
            raise Unreadable(
                f"{path} cannot be opened: {error.strerror}. Check the name and its permissions."
            ) from None
        try:
            self.size = self._opened.size
            begin = read_start(self._opened)
        except OSError as error:
            self._opened.close()
            raise Unreadable(f"{path} cannot be read: {error.strerror}. Name a binlog file.") from None
        wrong = wrong_magic(begin.magic)
        if wrong is not None:
            self._opened.close()
            advice = THROUGH_ITS_SERVER if wrong[0] == "file_encrypted" else "Name a binlog file."
            raise Unreadable(f"{path} {wrong[1]}. {advice}")
        self.first_event = begin.event
        """The file's first event, its header included; fewer bytes if the file ends earlier."""
        self._progress = _Progress()
        self._reader = EventReader(
            self._opened,
            table_rows=_TABLE_ROWS,
            tolerant=True,
            format_event=begin.event,
            on_read=self._progress.read,
        )
        self.ingest = self._reader.ingest

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def __enter__(self) -> "BinlogScan":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def chunks(self, on_progress: Callable[[int], None] | None = None) -> Iterator[Chunk]:
        """Yield every event of the file, in order. `on_progress` gets the bytes read since its last call.

        A wrong CRC or end_log_pos is noted in the row, a CRC that is read after it in `late_damage`; anything that hides where the
        next event starts sets `broken`.
        """
        self._progress.told = on_progress
        data = b""
        try:
            for run in self._reader.runs(self._start, self._end):
                if run.start == 0:
                    data = bytes(memoryview(run.buffer)[: run.stop])
                if self.ingest.late_damage >= 0:
                    self.late_damage.append(self.ingest.late_damage)
                if run.rows:
                    yield Chunk(data, run.base, run.table, run.rows)
            self.broken = self._reader.cut_off()
        except Broken as broken:
            self.broken = broken
        self.stop = self.ingest.position
