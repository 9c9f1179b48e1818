"""The first bytes of a dump, by whatever program. Dumps come from anywhere: nothing in them is believed before it is checked."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from protocol.errors import ExitCode, RelayError
from protocol.position import Position, is_binlog_name

HEAD_BYTES: Final = 1 << 20
"""The bytes that are read of a dump, and of its content if it is packed. A set of GTIDs may precede the position."""
_SHOWN_CHARACTERS: Final = 80
_GZIP: Final = b"\x1f\x8b"
_PACKED: Final = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"\xfd7zXZ\x00": ("xz", "xzcat"),
    b"BZh": ("bzip2", "bzcat"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4cat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
_MOST: Final = (1 << 63) - 1
_LONGEST_FILE_NAME: Final = 255
"""The longest name of a file, on any disk."""


class DumpRefused(RelayError):
    """A dump that does not say where it was taken, or not credibly. `str()` contains file, line, problem and next step.

    `line` counts from 1; None: it is about the whole file.
    """

    exit_code = ExitCode.FINDINGS

    def __init__(self, path: Path, line: int | None, text: str) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {text}")


class DumpHead(NamedTuple):
    """The head of the file at `path`. `lines` are without their ends; each byte is the character of the same number. `is_all`: it is
    the whole file. `is_packed`: gzip packed it."""

    path: Path
    lines: Sequence[str]
    is_all: bool
    is_packed: bool = False

    def refuse(self, line: int | None, text: str) -> DumpRefused:
        """Return an error about it; `line` counts from 1."""
        return DumpRefused(self.path, line, text)

    def position(self, line: int, file: str, offset: str) -> Position:
        """Return the position that the dump contains as a binlog's name and an offset in it. Raises: DumpRefused."""
        # It is shown and printed from here on: it must contain nothing that a terminal would execute, and no pages of text.
        if len(file) > _LONGEST_FILE_NAME or not file.isprintable() or not is_binlog_name(file):
            raise self.refuse(line, f"{shown(file)} is no binlog file's name, such as mysql-bin.000042.")
        if not (offset.isascii() and offset.isdecimal() and len(offset) <= 19 and 4 <= int(offset) <= _MOST):
            raise self.refuse(line, f"{shown(offset)} is no position in a binlog: it is a number from 4 on.")
        return Position(file, int(offset))


class DumpPlace(NamedTuple):
    """The place at which a dump was taken. `made_by` is a program, as in "mysqldump". `line` of the file at `path` counts from 1.
    `carried_out` lists lines of its head that make a server a replica when the dump is restored. `is_packed`: gzip packed `path`.

    `host`, `server_version`, `server_id` and `server_uuid` are those of the dumped server; empty or 0: the dump does not say.
    """

    position: Position
    made_by: str
    path: Path
    line: int
    host: str = ""
    server_version: str = ""
    carried_out: tuple[int, ...] = ()
    is_packed: bool = False
    server_id: int = 0
    server_uuid: str = ""


def shown(text: str) -> str:
    """Return a text of a dump as an error may show it: in quotes, escaped, and not long."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
    return ascii(cut)


def read_head(path: Path) -> DumpHead:
    """Return the head of the file at `path`, also of one that gzip has packed. Blocking. Raises: DumpRefused; OSError."""
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES + 1)
    is_all = len(data) <= HEAD_BYTES
    for magic, (name, program) in _PACKED.items():
        if data.startswith(magic):
            text = f"this is packed with {name}. Give the command its head: {program} {path} | head -c 1M > head.sql"
            raise DumpRefused(path, None, text)
    is_packed = data.startswith(_GZIP)
    if is_packed:
        data, is_all = _unpacked(path, data, is_all=is_all)
    data = data[:HEAD_BYTES]
    if b"\0" in data[:4096]:
        raise DumpRefused(path, None, "this is no text: name a dump, or the directory of one.")
    lines = [line.removesuffix("\r") for line in data.decode("latin-1").split("\n")]
    if not is_all:
        del lines[-1:]  # it may be cut
    return DumpHead(path, lines, is_all, is_packed)


def _unpacked(path: Path, data: bytes, *, is_all: bool) -> tuple[bytes, bool]:
    """Return the head of the unpacked content, and whether that is all. Raises: DumpRefused."""
    found = bytearray()
    while data.startswith(_GZIP) and len(found) <= HEAD_BYTES:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            found += unpacker.decompress(data, HEAD_BYTES + 1 - len(found))
        except zlib.error as error:
            if not found:
                raise DumpRefused(path, None, f"gzip cannot unpack it: {error}. Is the file whole?") from None
            return bytes(found), False
        if not unpacker.eof:
            return bytes(found), False
        data = unpacker.unused_data  # what pigz and `cat a.gz b.gz` append to it
    return bytes(found), is_all and len(found) <= HEAD_BYTES
