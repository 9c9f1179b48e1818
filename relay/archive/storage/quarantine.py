"""Bytes that recovery cuts off although they are not merely an incomplete tail: they are kept, somebody may want to see them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay.archive.storage.files import QUARANTINE_INFIX, TEMPORARY_SUFFIX, FileLayer, write_all

_CHUNK: Final = 1 << 20


def quarantine(directory: Path, layer: FileLayer, fd: int, name: str, start: int, stop: int) -> str | None:
    """Copies [start, stop) to NAME.lost-START, durably, and returns that name; None: it is all zero, and not kept.

    A copy that a recovery before this one has made, and was killed before it could cut, is taken for this one's.
    Raises: OSError.
    """
    if all(not any(piece) for _at, piece in _pieces(layer, fd, start, stop)):
        return None
    target = directory / f"{name}{QUARANTINE_INFIX}{start}"
    serial = 1
    while layer.exists(target):
        if _is_copy(layer, target, fd, start, stop):
            return target.name
        serial += 1
        target = directory / f"{name}{QUARANTINE_INFIX}{start}-{serial}"
    temporary = target.with_name(target.name + TEMPORARY_SUFFIX)
    out = layer.create(temporary)
    try:
        for at, piece in _pieces(layer, fd, start, stop):
            write_all(layer, out, [piece], at - start, len(piece))
        layer.sync_data(out)
    finally:
        layer.close(out)
    layer.rename(temporary, target)
    layer.sync_directory(directory)
    return target.name


def _pieces(layer: FileLayer, fd: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    for at in range(start, stop, _CHUNK):
        yield at, layer.pread(fd, min(_CHUNK, stop - at), at)


def _is_copy(layer: FileLayer, copy: Path, fd: int, start: int, stop: int) -> bool:
    kept = layer.open_read(copy)
    try:
        return layer.size(kept) == stop - start and all(
            layer.pread(kept, len(piece), at - start) == piece for at, piece in _pieces(layer, fd, start, stop)
        )
    finally:
        layer.close(kept)
