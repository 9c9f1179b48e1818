"""The part of a file that need not be read for a GTID replica, as it has all of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.mariadb import DomainGtid
from protocol.kernel.gtid_filter import GtidSkip
from relay.archive.read.file_reads import STEP_BYTES
from relay.archive.read.file_snapshot import FileSnapshot

# A smaller file is filtered in less time than its index is read.
WORTH_A_SEEK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Seek:
    """Everything of a file in [place, target) is passed over, unread. Both are outside of any transaction.

    transactions: the number of them, or, with `all_counted`, the number in the whole file, of which nothing is sent. groups: the last
    MariaDB group of each server, in their order.
    """

    place: int
    target: int
    transactions: int
    groups: Sequence[DomainGtid] = ()
    all_counted: bool = False


def exact_seek(snapshot: FileSnapshot, seek: Seek | None, skip: GtidSkip, head_end: int) -> Seek | None:
    """Return the seek, up to the first event that is sent, or the published end; None: the first transaction is sent.

    NAME.gtx gives the block of 64 KiB, so no more than one must be looked at. Raises: OSError; Malformed.
    """
    offset, passed = (seek.target, seek.transactions) if seek is not None else (head_end, 0)
    buffer = bytearray(STEP_BYTES)
    sending = False
    with snapshot.open() as file:
        while offset < snapshot.end and not sending:
            data = file.read(offset, min(STEP_BYTES, snapshot.end - offset))
            size = len(data)
            buffer[:size] = data
            at = 0
            while at < size:
                try:
                    end = skip.next_range(buffer, at, size)
                except ValueError as error:
                    raise Malformed(f"{snapshot.name}: {error}, offset {offset}") from error
                sending = end > at and skip.sending
                if end == at or sending:
                    break
                at = end
            if at == 0 and not sending:
                raise Malformed(f"{snapshot.name} has no whole event at {offset}")
            offset += at
    passed += skip.skipped
    return Seek(head_end, offset, passed) if passed else None
