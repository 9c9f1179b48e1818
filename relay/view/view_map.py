"""NAME.map beside a view's file: it maps places of the source to places of the view, with the state needed to continue from there.

NAME.map has a record for at least each 64 KiB of the source, at the start of a transaction; fewer where the rules' state is large and
changes all the time. NAME.rules contains that state, packed; a record says where, how many bytes, and which checksum.

Both can be rebuilt: records that were lost are rebuilt with their file, and where no record is left, with the files before it (see
`FileBeginning`). So only one write is synced: the record of a file's beginning, which exists before the file does. A record that was
cut or damaged ends the map; one whose rules are missing is skipped.
"""

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from protocol.binlog.layout import FIRST_EVENT
from relay.archive.storage.files import MAP_SUFFIXES, TEMPORARY_SUFFIX, FileLayer, write_all
from relay.disk.file_calls import open_to_read, read_file
from relay.view.view_checkpoint import ViewCheckpoint

_MAP_HEAD: Final = b"BRVMAP2\n"
_RECORD: Final = struct.Struct("<QQQQQII")
_CRC: Final = struct.Struct("<I")
_RECORD_BYTES: Final = _RECORD.size + _CRC.size
_STATE_SHARE: Final = 16
"""The minimum of source bytes for each byte of NAME.rules: with thousands of tables a record takes as much as the next 64 KiB."""


_Key = TypeVar("_Key", int, tuple[int, int])


class _Record(NamedTuple):
    """A stored record. `state_at`, `state_bytes`, `state_sum` locate the rules' packed state in NAME.rules; 0 bytes: there is none."""

    source: int
    view: int
    next_gno: int
    sequence: int
    state_at: int
    state_bytes: int
    state_sum: int

    @property
    def place(self) -> tuple[int, int]:
        """The key of `ViewCheckpoint.place`."""
        return self.source, self.view

    @property
    def state_end(self) -> int:
        return self.state_at + self.state_bytes


def map_paths(file: Path) -> tuple[Path, Path]:
    """Return NAME.map and NAME.rules of a view's file."""
    return file.with_name(file.name + MAP_SUFFIXES[0]), file.with_name(file.name + MAP_SUFFIXES[1])


class ViewMap:
    """The map of one file as it was read: 52 bytes for each record; states of rules are read on request. Records ascend by their
    places, and no value decreases. All methods block."""

    def __init__(self, records: bytes, rules: Path) -> None:
        self._records = records
        self._rules = rules
        self._bad_state = -1
        """The offset in NAME.rules at which other bytes are than were written."""

    @classmethod
    def read(cls, file: Path) -> "ViewMap":
        """Read the map; missing, cut or damaged parts are left out. Raises: OSError, except for missing files."""
        map_path, rules_path = map_paths(file)
        try:
            data = read_file(map_path)
        except FileNotFoundError:
            data = b""
        return cls(_whole_records(data), rules_path)

    def __len__(self) -> int:
        return len(self._records) // _RECORD_BYTES

    def beginning(self) -> ViewCheckpoint | None:
        """Return the record of the file's beginning; None: it is missing. Raises: OSError."""
        record = self.kept(0) if len(self) else None
        return self._checkpoint(record) if record is not None and record.view == FIRST_EVENT else None

    def last(self) -> ViewCheckpoint | None:
        """Return the last record; None: there is none. Raises: OSError."""
        return self._usable(len(self) - 1)

    def before_place(self, place: tuple[int, int]) -> ViewCheckpoint | None:
        """Return the last record at or before a checkpoint's place. Raises: OSError."""
        return self._last(lambda one: one.place, place)

    def before_source(self, offset: int) -> ViewCheckpoint | None:
        """Return the last record at or before `offset` of the source; None: there is none. Raises: OSError."""
        return self._last(lambda one: one.source, offset)

    def before_view(self, offset: int) -> ViewCheckpoint | None:
        """Return the last record at or before `offset` of the view. Raises: OSError."""
        return self._last(lambda one: one.view, offset)

    def before_gno(self, gno: int) -> ViewCheckpoint | None:
        """Return the last record whose next number is `gno` or less. Raises: OSError."""
        return self._last(lambda one: one.next_gno, gno)

    def _last(self, key: Callable[[_Record], _Key], value: _Key) -> ViewCheckpoint | None:
        return self._usable(bisect_right(range(len(self)), value, key=lambda number: key(self.kept(number))) - 1)

    def _usable(self, index: int) -> ViewCheckpoint | None:
        """Return the record at `index`, or the last one before it whose rules exist."""
        while index >= 0:
            found = self._checkpoint(self.kept(index))
            if found is not None:
                return found
            index -= 1
        return None

    def _checkpoint(self, record: _Record) -> ViewCheckpoint | None:
        state = self._state(record)
        return None if state is None else ViewCheckpoint(*record[:4], state)

    def _state(self, record: _Record) -> bytes | None:
        """Return the rules' state; None: it is missing."""
        if not record.state_bytes:
            return b""
        if record.state_at == self._bad_state:
            return None
        packed = b""
        try:
            with open(open_to_read(self._rules), "rb") as file:
                if file.seek(0, 2) >= record.state_end:
                    file.seek(record.state_at)
                    packed = file.read(record.state_bytes)
        except FileNotFoundError:
            pass
        if len(packed) == record.state_bytes and zlib.crc32(packed) == record.state_sum:
            try:
                return zlib.decompress(packed)
            except zlib.error:
                pass
        self._bad_state = record.state_at
        return None

    def kept(self, index: int) -> _Record:
        """Return the record at `index`, from 0, without its rules."""
        return _Record(*_RECORD.unpack_from(self._records, index * _RECORD_BYTES))

    def count_before(self, place: tuple[int, int]) -> int:
        """Return the number of records whose places are before this one."""
        return bisect_left(range(len(self)), place, key=lambda number: self.kept(number).place)


class MapWriter:
    """Continues the map of one file. Blocking; for one thread at a time."""

    def __init__(self, layer: FileLayer, file: Path, begin: ViewCheckpoint) -> None:
        """Open the map: records will come from `begin` on, which gets one itself; existing ones from it on are removed.

        Where there was no map the first record is on the disk on return. Raises: OSError.
        """
        self._layer = layer
        self._map_path, self._rules_path = map_paths(file)
        known = ViewMap.read(file)
        count = known.count_before(begin.place)
        is_kept = known.before_place(begin.place) == begin
        if begin.view == FIRST_EVENT and count:
            # Nothing precedes a file's head: the map belongs to a start that was not accepted.
            count, is_kept = 0, False
        count += is_kept
        kept = [known.kept(index) for index in range(max(0, count - 1), count)]
        self._last_place = kept[-1].place if kept else (-1, -1)
        self._state = begin.rules if is_kept else None
        self._state_record = _state_record(known, count)
        self._rules_end = max((known.kept(index).state_end for index in range(count)), default=0)
        self._fd = self._rules_fd = -1
        try:
            if count:
                self._go_on(count)
                self.add([begin])
            else:
                self._begin(begin)
        except BaseException:
            self.close()
            raise

    def _go_on(self, count: int) -> None:
        """Continue after `count` records that stay. Truncation needs no disk space, and leaves a map whenever it is interrupted."""
        self._fd = self._layer.open_alone(self._map_path)
        self._at = len(_MAP_HEAD) + count * _RECORD_BYTES
        self._layer.truncate(self._fd, self._at)
        self._open_rules()

    def _begin(self, begin: ViewCheckpoint) -> None:
        """Write the first record. It replaces an unreadable map: after an interruption either that one or this exists."""
        temporary = self._map_path.with_name(self._map_path.name + TEMPORARY_SUFFIX)
        self._open_rules()
        self._fd = self._layer.create(temporary)
        write_all(self._layer, self._fd, [_MAP_HEAD], 0, len(_MAP_HEAD))
        self._at = len(_MAP_HEAD)
        self.add([begin])
        if self._rules_fd >= 0:
            self._layer.sync_data(self._rules_fd)
        self._layer.sync_data(self._fd)
        self._layer.rename(temporary, self._map_path)
        self._layer.sync_directory(self._map_path.parent)

    def _open_rules(self) -> None:
        if not self._rules_end:
            self._layer.unlink(self._rules_path)
            return
        if not self._layer.exists(self._rules_path):
            self._rules_end = 0
            return
        self._rules_fd = self._layer.open_alone(self._rules_path)
        self._rules_end = min(self._rules_end, self._layer.size(self._rules_fd))
        self._layer.truncate(self._rules_fd, self._rules_end)

    def add(self, records: Iterable[ViewCheckpoint]) -> None:
        """Append records after the existing ones; those that exist already are ignored. Raises: OSError."""
        for record in records:
            if record.place <= self._last_place or self._is_too_much(record):
                continue
            if record.rules != self._state:
                self._state_record = self._with_state(record)
                self._state = record.rules
            data = _RECORD.pack(*record[:4], *self._state_record[4:])
            data += _CRC.pack(zlib.crc32(data))
            write_all(self._layer, self._fd, [data], self._at, len(data))
            self._at += len(data)
            self._last_place = record.place

    def _is_too_much(self, record: ViewCheckpoint) -> bool:
        """Return whether the rules' state would be stored too soon after the last time."""
        if record.rules == self._state or not record.rules:
            return False
        last = self._state_record
        return record.source - last.source < _STATE_SHARE * last.state_bytes

    def _with_state(self, record: ViewCheckpoint) -> _Record:
        """Return the record as it is stored, with its rules written."""
        if not record.rules:
            return _Record(*record[:4], 0, 0, 0)
        if self._rules_fd < 0:
            self._rules_fd = self._layer.create(self._rules_path)
        packed = zlib.compress(record.rules, 1)
        at = self._rules_end
        write_all(self._layer, self._rules_fd, [packed], at, len(packed))
        self._rules_end = at + len(packed)
        return _Record(*record[:4], at, len(packed), zlib.crc32(packed))

    def close(self) -> None:
        """Close the files."""
        for fd in (self._fd, self._rules_fd):
            if fd >= 0:
                self._layer.close(fd)
        self._fd = self._rules_fd = -1


def _state_record(known: ViewMap, count: int) -> _Record:
    """Return the first of the first `count` records that has the state of the last one."""
    if not count:
        return _Record(0, 0, 0, 0, 0, 0, 0)
    found = known.kept(count - 1)
    for index in range(count - 2, -1, -1):
        record = known.kept(index)
        if record[4:] != found[4:]:
            break
        found = record
    return found


def _whole_records(data: bytes) -> bytes:
    if not data.startswith(_MAP_HEAD):
        return b""
    data = data[len(_MAP_HEAD) :]
    at = 0
    before = (-1, -1)
    while at + _RECORD_BYTES <= len(data):
        record = data[at : at + _RECORD.size]
        if _CRC.unpack_from(data, at + _RECORD.size)[0] != zlib.crc32(record):
            break
        source, view = _RECORD.unpack(record)[:2]
        if (source, view) <= before:
            break
        before = source, view
        at += _RECORD_BYTES
    return data[:at]
