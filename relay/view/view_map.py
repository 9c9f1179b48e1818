"""NAME.map beside a view's file: which place of the source is which place of the view, and what to know to go on from there.

A record for at least each 64 KiB of the source, at the start of a transaction. NAME.rules has what the rules knew there, where
they knew anything. Both can be made again from the archive; a record that was cut or damaged ends the map.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from relay.archive.storage.files import MAP_SUFFIXES, FileLayer, write_all
from relay.view.view_checkpoint import ViewCheckpoint

_MAP_HEAD: Final = b"BRVMAP1\n"
_RECORD: Final = struct.Struct("<QQQQI")
_CRC: Final = struct.Struct("<I")
_RECORD_BYTES: Final = _RECORD.size + _CRC.size
_STATE_HEAD: Final = struct.Struct("<II")


def map_paths(file: Path) -> tuple[Path, Path]:
    """NAME.map and NAME.rules of a view's file."""
    return file.with_name(file.name + MAP_SUFFIXES[0]), file.with_name(file.name + MAP_SUFFIXES[1])


class ViewMap:
    """The map of one file as it was read. Records ascend in everything."""

    def __init__(self, records: bytes, states: list[bytes]) -> None:
        self._records = records
        self._states = states

    @classmethod
    def read(cls, file: Path) -> "ViewMap":
        """Blocking. What is missing, cut or damaged is left out. Raises: OSError but for files that are not there."""
        map_path, rules_path = map_paths(file)
        return cls(_whole_records(_content(map_path)), _states(_content(rules_path)))

    def __len__(self) -> int:
        return len(self._records) // _RECORD_BYTES

    def record(self, index: int) -> ViewCheckpoint:
        """The record at `index`, from 0."""
        source, view, gno, sequence, state = _RECORD.unpack_from(self._records, index * _RECORD_BYTES)
        return ViewCheckpoint(source, view, gno, sequence, self._states[state - 1] if state else b"")

    def before_source(self, offset: int) -> ViewCheckpoint | None:
        """The last record at or before `offset` of the source; None: there is none."""
        return self._last(lambda one: one.source, offset)

    def before_view(self, offset: int) -> ViewCheckpoint | None:
        """The last record at or before `offset` of the view."""
        return self._last(lambda one: one.view, offset)

    def before_gno(self, gno: int) -> ViewCheckpoint | None:
        """The last record whose next number is `gno` or less."""
        return self._last(lambda one: one.next_gno, gno)

    def _last(self, key: Callable[[ViewCheckpoint], int], value: int) -> ViewCheckpoint | None:
        index = bisect_right(range(len(self)), value, key=lambda number: key(self.record(number))) - 1
        return self.record(index) if index >= 0 else None

    def records_of(self, count: int) -> bytes:
        """The first `count` records, as they are kept."""
        return self._records[: count * _RECORD_BYTES]

    def states_of(self, count: int) -> list[bytes]:
        """What the rules knew at the first `count` records, in order."""
        numbers = (_RECORD.unpack_from(self._records, index * _RECORD_BYTES)[4] for index in range(count))
        return self._states[: max(numbers, default=0)]


class MapWriter:
    """Goes on with the map of one file. Blocking; for one thread at a time."""

    def __init__(self, layer: FileLayer, file: Path, up_to: int) -> None:
        """up_to: records of places behind this offset of the view are taken away. Raises: OSError."""
        self._layer = layer
        known = ViewMap.read(file)
        kept = 0
        self._last: ViewCheckpoint | None = None
        for index in range(len(known)):
            record = known.record(index)
            if record.view > up_to:
                break
            kept, self._last = index + 1, record
        kept_states = known.states_of(kept)
        self._states = len(kept_states)
        self._state = self._last.rules if self._last is not None else b""
        map_path, rules_path = map_paths(file)
        data = _MAP_HEAD + known.records_of(kept)
        self._fd = _opened(layer, map_path, data)
        try:
            self._rules_path = rules_path
            self._rules_fd = -1
            if self._states:
                self._rules_fd = _opened(layer, rules_path, b"".join(_framed(state) for state in kept_states))
            else:
                layer.unlink(rules_path)
        except BaseException:
            layer.close(self._fd)
            raise
        self._at = len(data)

    def add(self, records: Iterable[ViewCheckpoint]) -> None:
        """Records behind those that are there; others are known already. Raises: OSError."""
        for record in records:
            if self._last is not None and record.source <= self._last.source:
                continue
            if record.rules != self._state:
                self._add_state(record.rules)
            number = self._states if record.rules else 0
            data = _RECORD.pack(record.source, record.view, record.next_gno, record.sequence, number)
            data += _CRC.pack(zlib.crc32(data))
            write_all(self._layer, self._fd, [data], self._at, len(data))
            self._at += len(data)
            self._last = record

    def _add_state(self, state: bytes) -> None:
        self._state = state
        if not state:
            return
        if self._rules_fd < 0:
            self._rules_fd = _opened(self._layer, self._rules_path, b"")
        data = _framed(state)
        write_all(self._layer, self._rules_fd, [data], self._layer.size(self._rules_fd), len(data))
        self._states += 1

    def close(self) -> None:
        """Lets go of the files."""
        for fd in (self._fd, self._rules_fd):
            if fd >= 0:
                self._layer.close(fd)
        self._fd = self._rules_fd = -1


def _opened(layer: FileLayer, path: Path, content: bytes) -> int:
    """A new file with this content. Raises: OSError."""
    fd = layer.create(path)
    try:
        if content:
            write_all(layer, fd, [content], 0, len(content))
    except BaseException:
        layer.close(fd)
        raise
    return fd


def _framed(state: bytes) -> bytes:
    packed = zlib.compress(state, 1)
    return _STATE_HEAD.pack(len(packed), zlib.crc32(packed)) + packed


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _whole_records(data: bytes) -> bytes:
    if not data.startswith(_MAP_HEAD):
        return b""
    data = data[len(_MAP_HEAD) :]
    at = 0
    while at + _RECORD_BYTES <= len(data):
        record = data[at : at + _RECORD.size]
        if _CRC.unpack_from(data, at + _RECORD.size)[0] != zlib.crc32(record):
            break
        at += _RECORD_BYTES
    return data[:at]


def _states(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at + _STATE_HEAD.size <= len(data):
        size, crc = _STATE_HEAD.unpack_from(data, at)
        state = data[at + _STATE_HEAD.size : at + _STATE_HEAD.size + size]
        if len(state) != size or zlib.crc32(state) != crc:
            break
        found.append(zlib.decompress(state))
        at += _STATE_HEAD.size + size
    return found
