"""The check of the bytes that were read for a stream: only whole transactions are sent, exactly as they were archived.

A transaction that ends in the bytes at hand is checked there. Of a longer one nothing is sent before all of it was checked ahead of
the stream; while it is sent it is checked once more.
"""

from collections.abc import Callable
from typing import Final

from protocol.kernel.codes import BAD_LENGTH
from protocol.kernel.event_check import EventCheck
from relay.archive.storage.archive_errors import ArchiveDamaged

AHEAD_BYTES: Final = 8 << 20
"""The least that is checked when a stream must wait for that: transactions a little larger than a run cost one wait for many."""
_PIECE_BYTES: Final = 1 << 20


class CheckedBytes:
    """The check for one stream in one file, whose readable bytes end at a transaction's end. Offsets are the file's."""

    def __init__(self, name: str, checksum: int, begin: int) -> None:
        """name: of the file, for errors. checksum: 0 none, 1 CRC32. begin: where the stream begins, at an event."""
        self._name = name
        self._checksum = checksum
        self._begin = begin
        self._check = EventCheck()
        self._ahead_to = begin
        """Everything was checked ahead of the stream up to here, the end of a transaction."""

    def sendable(self, source: bytearray, size: int, offset: int, end: int) -> int:
        """Return how many of the `size` bytes in `source`, which are at `offset`, may be sent; 0: `ahead_of` must be called first.

        `offset` is where the stream is. end: of what may be read. Raises: ArchiveDamaged if nothing before the damage is left to be
        sent.
        """
        check, ahead = self._check, self._ahead_to
        if offset >= ahead:
            check.begin(offset, self._checksum)
            check.look(source, 0, size)
            whole = check.sound_to if check.sound_to == end else check.whole_to
            if whole == offset and check.problem:
                raise damaged(self._name, check, offset)
            return whole - offset
        if not offset <= check.position <= offset + size:
            check.begin(offset, self._checksum)
        check.look(source, check.position - offset, size)
        if check.problem and check.sound_to < ahead:
            raise damaged(self._name, check, self._begin)
        return min(size, ahead - offset)

    def found_ahead(self, offset: int, sound_to: int) -> None:
        """Note that [offset, sound_to) is whole transactions, as they were archived. The stream is at `offset`."""
        self._begin, self._ahead_to = offset, sound_to
        self._check.begin(offset, self._checksum)


def sound_ahead(read_into: Callable[[memoryview, int], int], name: str, checksum: int, offset: int, end: int) -> int:
    """Return the offset up to which, at least one transaction further, the file is sound from `offset` on; at most `end`, of what may
    be read.

    Blocking: reads until a transaction ends, and AHEAD_BYTES if there are so many. Raises: ArchiveDamaged if not even one transaction
    is sound; OSError.
    """
    check = EventCheck()
    check.begin(offset, checksum)
    buffer = bytearray(_PIECE_BYTES)
    view = memoryview(buffer)
    kept = 0
    at = offset
    wrong: ArchiveDamaged | None = None
    while at < end:
        try:
            got = read_into(view[kept : min(len(buffer), kept + end - at)], at)
        except ArchiveDamaged as error:
            wrong = error
            break
        at += got
        if not got:
            break
        begin = check.position
        check.look(buffer, 0, kept + got)
        kept = at - check.position
        if check.problem or (check.whole_to > offset and check.position >= offset + AHEAD_BYTES):
            break
        if kept:
            used = check.position - begin
            view[:kept] = view[used : used + kept]
    whole = end if check.sound_to == end else check.whole_to
    if whole == offset:
        if wrong is not None:
            assert wrong.offset is not None
            raise ArchiveDamaged(wrong.what, file=name, offset=wrong.offset, boundary=offset) from wrong
        raise damaged(name, check, offset, file_end=at if at < end and not check.problem else None)
    return whole


def damaged(name: str, check: EventCheck, boundary: int, *, file_end: int | None = None) -> ArchiveDamaged:
    """Return the damage that `check` found in the event at its `sound_to`. file_end: where the file ends, if it does before it
    should."""
    at = check.sound_to
    if file_end is not None:
        what = f"the file ends at {file_end}, inside what was archived"
    elif not check.problem:
        what = f"the event at {at} goes beyond the end of what was archived"
    elif check.problem == BAD_LENGTH:
        what = f"at {at} there is no event: its length cannot be"
    else:
        what = f"the checksum of the event at {at} is wrong"
    return ArchiveDamaged(what, file=name, offset=at, boundary=boundary)
