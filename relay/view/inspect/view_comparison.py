"""A view's files are compared with what is rebuilt from the archive: the same archive and settings give the same bytes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from protocol.position import Position
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import StoredFile
from relay.packed_reads.archive_layer import layer_of

_READ_BYTES: Final = 1 << 20


class MadePiece(NamedTuple):
    """The next bytes of a file of the view, and the offset in the source's file from which they were built."""

    source_offset: int
    data: bytes


class MadeAgain(Protocol):
    """A view that is rebuilt in memory."""

    def pieces(self, file: str) -> Iterable[MadePiece]:
        """Return all of this file, from its first byte on. Called for one file after the other, oldest first."""


class ViewDifference(NamedTuple):
    """The first different byte. `source` is the position from which it was built; None: nothing gives the view's bytes there. `what`
    describes the difference in a sentence."""

    view: Position
    source: Position | None
    what: str


def differences(directory: Path, files: Iterable[ArchivedFile], made: MadeAgain) -> Iterator[ViewDifference]:
    """Yield the first difference of each file that has one. `directory` is the view's. Blocking. Raises: OSError; errors of `made`."""
    for file in files:
        pieces = iter(made.pieces(file.name))
        found = _difference(directory / file.name, file, pieces)
        for _piece in pieces:
            pass  # the next file continues from the end of what is built, whatever this file contains
        if found is not None:
            yield found


def _difference(path: Path, file: ArchivedFile, pieces: Iterator[MadePiece]) -> ViewDifference | None:
    at = 0
    with StoredFile.open(layer_of(path.parent), path) as stored:
        for piece in pieces:
            count = min(len(piece.data), file.end - at)
            kept = _read(stored, at, count)
            if kept != piece.data[:count]:
                offset = _first_other(kept, piece.data)
                source = Position(file.name, piece.source_offset)
                return ViewDifference(Position(file.name, at + offset), source, _what(kept, piece.data, offset))
            at += count
            if at == file.end:
                # Bytes that are built beyond that are not published yet, unless the file is complete.
                more = count < len(piece.data) or next(pieces, None) is not None
                if more and file.sealed:
                    place = Position(file.name, piece.source_offset)
                    return ViewDifference(Position(file.name, at), place, "the file ends here, and there is more to it")
                return None
    what = f"the file goes on up to {file.end}, and the archive gives nothing more"
    return ViewDifference(Position(file.name, at), None, what)


def _read(stored: StoredFile, at: int, count: int) -> bytes:
    parts = []
    while count > 0:
        data = stored.read(at, min(count, _READ_BYTES))
        if not data:
            break
        parts.append(data)
        at += len(data)
        count -= len(data)
    return b"".join(parts)


def _first_other(kept: bytes, made: bytes) -> int:
    shorter = min(len(kept), len(made))
    low, high = 0, shorter
    while low < high:  # the first length whose prefixes differ
        middle = (low + high) // 2
        if kept[: middle + 1] == made[: middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def _what(kept: bytes, made: bytes, offset: int) -> str:
    if offset >= len(kept):
        return "the file is shorter than its catalog says"
    return f"has {kept[offset : offset + 8].hex(' ')}, the archive gives {made[offset : offset + 8].hex(' ')}"
