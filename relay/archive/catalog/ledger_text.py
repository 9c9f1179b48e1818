"""`ledger.jsonl`: a second copy of what cannot be rebuilt from the binlogs, as lines of text that are only ever appended.

    {"record":"ledger","time":1.5,"kind":"gap","file":"...","offset":4,"text":"...","details":"","crc32":"0a1b2c3d"}
    {"record":"source","flavour":"mysql","version":"...","server_id":1,"server_uuid":"...","crc32":"..."}
    {"record":"origin","time":1.5,"file":"...","after_file":"...","after_offset":4,"flavour":"...","state":"...","crc32":"..."}

The crc32 is of all bytes of the line before it, from `{` to the value that comes before the comma. Only the last line of source and
origin counts. A line is added when the catalog has it durably, and `relay.archive.catalog.ledger_copy` compares the two at each
start.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from protocol.errors import RelayError
from relay.archive.storage.files import FileLayer, StoredFile, replace_file, write_all

_SUM: Final = b',"crc32":"'
_AFTER_BODY: Final = len(_SUM) + 8 + 2

Record = Mapping[str, Any]
"""One line without its checksum."""


class LedgerTextLost(RelayError):
    """`ledger.jsonl` was removed, replaced or shortened since it was written last. `str()` says which."""


@dataclass(frozen=True, slots=True)
class LedgerLines:
    """The contents of `ledger.jsonl`.

    lines: the sound ones, each a pair of its offset and its bytes without the line feed. damaged: offsets of lines that are not what
    was written. end: where whole lines end; bytes after it are of a line that a crash cut. unended: the last one of the damaged has
    no line feed.
    """

    lines: list[tuple[int, bytes]]
    damaged: list[int]
    end: int
    size: int
    unended: bool


def encode_line(record: Record) -> bytes:
    """Return one line with its checksum and line feed."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return b'%s%s%08x"}\n' % (body, _SUM, crc32(body))


def read_lines(layer: FileLayer, path: Path) -> LedgerLines:
    """Read the lines. Raises: OSError, also if there is no file."""
    with StoredFile.open(layer, path) as stored:
        content = stored.read_all()
    lines: list[tuple[int, bytes]] = []
    damaged = []
    at = 0
    whole = content.split(b"\n")
    tail = whole.pop()
    for line in whole:
        if line:
            if _is_sound(line):
                lines.append((at, line))
            else:
                damaged.append(at)
        at += len(line) + 1
    unended = bool(tail) and not _is_torn(tail)
    if unended:
        damaged.append(at)
        at = len(content)
    # After a power failure, the line that was being written may have its line feed, and not what comes before it.
    sound_to = lines[-1][0] + len(lines[-1][1]) + 1 if lines else 0
    behind = [offset for offset in damaged if offset >= sound_to]
    if behind and (len(behind) == 1 or b"\0" in content[sound_to:]) and not unended:
        damaged = [offset for offset in damaged if offset < sound_to]
        at = sound_to
    return LedgerLines(lines, damaged, at, len(content), unended)


def _is_sound(line: bytes) -> bool:
    body = len(line) - _AFTER_BODY
    if body <= 0 or line[body : body + len(_SUM)] != _SUM or line[-2:] != b'"}':
        return False
    return b"%08x" % crc32(memoryview(line)[:body]) == line[-10:-2]


def _is_torn(tail: bytes) -> bool:
    """Return whether a crash may leave these bytes at the end: a line's beginning, or parts of it that never reached the disk."""
    return tail.startswith(b'{"') or b"\0" in tail


class LedgerText:
    """The file, open for appending. For one thread. It is opened when the first line must be written."""

    def __init__(self, path: Path, layer: FileLayer) -> None:
        self._path = path
        self._layer = layer
        self._fd = -1
        self._size = 0
        self._torn = False
        """True if a write failed: the bytes after `_size` are this process's own and must be written again."""
        self._waiting: list[bytes] = []

    @property
    def waiting(self) -> int:
        """The number of lines that must be written."""
        return len(self._waiting)

    def add(self, records: Iterable[Record]) -> None:
        """Note lines for the next `flush`, none twice."""
        for record in records:
            line = encode_line(record)
            if line not in self._waiting:
                self._waiting.append(line)

    def flush(self) -> None:
        """Write what was added, on stable storage on return. Blocking. Raises: LedgerTextLost; OSError: the lines keep waiting."""
        if not self._waiting:
            return
        self._open()
        layer = self._layer
        if self._torn:
            layer.truncate(self._fd, self._size)
        elif layer.size(self._fd) != self._size:
            raise LedgerTextLost("was changed")
        data = b"".join(self._waiting)
        self._torn = True
        write_all(layer, self._fd, [data], self._size, len(data))
        layer.sync_data(self._fd)
        self._torn = False
        self._size += len(data)
        self._waiting.clear()

    def replace(self, records: Iterable[Record]) -> None:
        """Replace all lines of the file by these, durably on return. Blocking. Raises: OSError."""
        self.close()
        replace_file(self._layer, self._path, b"".join(map(encode_line, records)))
        self._waiting.clear()

    def close(self) -> None:
        """Close the file; what could not be written is added at the next start."""
        if self._fd >= 0:
            self._layer.close(self._fd)
        self._fd = -1
        self._torn = False

    def _open(self) -> None:
        layer = self._layer
        if self._fd >= 0:
            try:
                same = layer.inode_of(self._path) == layer.inode(self._fd)
            except FileNotFoundError:
                raise LedgerTextLost("was removed") from None
            if not same:
                raise LedgerTextLost("was replaced")
            return
        try:
            self._fd = layer.open_alone(self._path)
        except FileNotFoundError:
            raise LedgerTextLost("was not there") from None
        self._size = layer.size(self._fd)


def cut_torn_line(layer: FileLayer, path: Path, lines: LedgerLines) -> None:
    """Remove a line that a crash cut; a damaged one gets its line feed. Raises: OSError."""
    if lines.end == lines.size and not lines.unended:
        return
    fd = layer.open_alone(path)
    try:
        if lines.unended:
            write_all(layer, fd, [b"\n"], lines.size, 1)
        else:
            layer.truncate(fd, lines.end)
        layer.sync_data(fd)
    finally:
        layer.close(fd)
