"""All bytes of a packed binlog against what is recorded of it: their digest, each frame's checksum, the binlog's digest."""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.storage_location import StorageLocation
from relay.packed.byte_source import ByteSource
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedError
from relay.packed.packed_facts import is_encrypted_name
from relay.packed.packed_file import PackedFile

_PIECE: Final = 1 << 20
_ANOTHER: Final = "is not what was stored: its SHA-256 is another"
_NOTED: Final = "sha256:"
"""The prefix of recorded digests of stored bytes; for a packed file that was put there by hand none was recorded."""


def check_stored(
    source: ByteSource,
    file: ArchivedFile,
    place: StorageLocation,
    keys: KeyRing | None,
    boundary_before: Callable[[int], int],
    on_progress: Callable[[int], None] = lambda count: None,
    where: str = "",
) -> Iterator[ArchiveFinding]:
    """Read `source`, the packed bytes of `file`, once. A finding has a `boundary` if the binlog is not what was archived.

    Without its key an encrypted one is compared as it is stored. on_progress: as `PackedLayer.check_packed`. where: its place, for
    messages; empty: on the disk. Blocking. Raises: what `source` and `on_progress` raise.
    """
    where = where or place.stored_name
    size = source.size
    if place.digest.startswith(_NOTED) and size != place.stored_bytes:
        what = f"{where} has {size} bytes, {place.stored_bytes} were stored"
        yield ArchiveFinding(file.name, 0, what, 0)
        return
    sha = hashlib.sha256()
    try:
        must, end_digest = is_encrypted_name(place.stored_name), place.end_digest
        packed = PackedFile.open(source, file.name, keys, must_be_encrypted=must, end_digest=end_digest)
    except (KeyMissing, KeyWrong) as error:
        _read(source, 0, size, sha.update, on_progress)
        if _is_another(sha.hexdigest(), place):
            yield ArchiveFinding(file.name, 0, f"{where} {_ANOTHER}", 0)
        elif isinstance(error, KeyWrong):
            yield ArchiveFinding(place.stored_name, None, f"{error.text}. {error.advice}")
        return
    except PackedError as error:
        yield ArchiveFinding(file.name, 0, f"{where}: {error.text}", 0)
        return
    crc = 0
    begin, end = packed.frames[0].stored_start if len(packed.frames) else size, packed.frames.stored_stop
    _read(source, 0, begin, sha.update, on_progress)
    for number in range(len(packed.frames)):
        start, stop = packed.stored_range(number)
        stored = source.read(start, stop - start)
        on_progress(len(stored))
        sha.update(stored)
        try:
            crc = zlib.crc32(packed.decode(number, stored), crc)
        except PackedError as error:
            offset = packed.frames[number].plain_start
            yield ArchiveFinding(file.name, offset, f"{where}: {error.text}", boundary_before(offset))
            return
    _read(source, end, size, sha.update, on_progress)
    if file.digest is not None and f"crc32:{crc:08x}" != file.digest:
        what = f"the binlog in {where} has the digest crc32:{crc:08x}; {file.digest} was noted when it was sealed"
        yield ArchiveFinding(file.name, 0, what, 0)
    elif _is_another(sha.hexdigest(), place):
        # The unpacked binlog is whole: nothing of it is lost.
        yield ArchiveFinding(place.stored_name, None, f"{where} {_ANOTHER}; the binlog in it is whole")


def _is_another(hexdigest: str, place: StorageLocation) -> bool:
    return place.digest.startswith(_NOTED) and place.digest != _NOTED + hexdigest


def _read(
    source: ByteSource, start: int, stop: int, take: Callable[[bytes], object], on_progress: Callable[[int], None]
) -> None:
    for offset in range(start, stop, _PIECE):
        data = source.read(offset, min(_PIECE, stop - offset))
        on_progress(len(data))
        take(data)
