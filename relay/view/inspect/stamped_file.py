"""A server's own binlog as an archive would contain it: with the transaction marks by which a view finds groups."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.binlog.layout import FIRST_EVENT, HEADER, HEADER_SIZE, MAGIC, event_size
from protocol.kernel.codes import BOUNDARY_MASK
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import DescriptorBytes, FileBytes, read_bytes


@contextmanager
def as_archived(source: FileBytes, end: int) -> Iterator[FileBytes]:
    """Yield the bytes of `source` up to `end`: the file itself if it has marks, else a temporary copy with marks, of the same size.

    Blocking. Raises: Broken where it is no binlog, or is damaged; OSError.
    """
    if _has_marks(source, end):
        yield source
        return
    with tempfile.TemporaryFile(prefix="binlog-relay-") as copy:
        copy.write(MAGIC)
        for run in EventReader(source, stamp=True).runs(stop=end):
            copy.write(memoryview(run.buffer)[run.start : run.consumed])
        copy.flush()
        os.lseek(copy.fileno(), 0, os.SEEK_SET)
        yield DescriptorBytes(copy.fileno())


def _has_marks(source: FileBytes, end: int) -> bool:
    """Return whether the event after the format description has a mark, as in every archive."""
    offset = FIRST_EVENT
    for _ in range(2):
        head = read_bytes(source, offset, HEADER_SIZE)
        if len(head) < HEADER_SIZE or offset >= end:
            return True  # no event exists that could have one
        flags = HEADER.unpack(head)[5]
        offset += event_size(head)
    return bool(flags & BOUNDARY_MASK)
