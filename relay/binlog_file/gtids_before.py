"""What a binlog's head says was executed before it: its Previous_gtids, or MariaDB's Gtid_list."""

from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.file_gtids import BLOCK_BYTES, FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.binlog_file.file_bytes import FileBytes, pieces

_LONGEST_HEAD: Final = 64 << 20


def gtids_before(
    source: FileBytes, flavour: str, *, checksum: bool, stop: int = _LONGEST_HEAD
) -> GtidSet | GtidList | None:
    """What the file says of all before it, looked for up to offset `stop`; None: nothing. Raises: Malformed; OSError."""
    collector = FileGtidCollector(flavour, checksum=checksum)
    for piece in pieces(source, FIRST_EVENT, stop, BLOCK_BYTES):
        try:
            collector.take(piece)
        except Malformed:
            if not collector.head_complete:
                raise  # else what is damaged stands behind the head
        if collector.head_complete:
            break
    return collector.before
