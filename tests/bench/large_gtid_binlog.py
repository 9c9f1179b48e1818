"""A large valid MySQL binlog with GTIDs, made in seconds: one transaction, patched for each."""

import struct
import zlib
from pathlib import Path
from typing import Final

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid, Tsid
from relay.archive_inspection.listing import rebuild_archive
from tests.support.gtid_binlog import add_mysql, mysql_binlog

_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_HEADER_BYTES: Final = 19
# Of a Gtid event: flags and uuid stand before the number.
_NUMBER_AT: Final = _HEADER_BYTES + 17
_ROW_BYTES: Final = 160


def make_large(directory: Path, name: str, source: Tsid, size: int) -> int:
    """An archive of one file of about `size` bytes; the number of its transactions, 1 to that of `source`.

    A transaction has 5 events and some 430 bytes, as the other benchmarks' have.
    """
    head = bytes(mysql_binlog(GtidSet()).data)
    events = _split(add_mysql(mysql_binlog(GtidSet()), MysqlGtid(source, 1), _ROW_BYTES).data[len(head) :])
    with (directory / name).open("wb", buffering=1 << 20) as file:
        file.write(head)
        at, number = len(head), 0
        while at < size:
            number += 1
            for event in events:
                if event[4] == 33:
                    _U64.pack_into(event, _NUMBER_AT, number)
                at += len(event)
                _U32.pack_into(event, 13, at & 0xFFFFFFFF)
                _U32.pack_into(event, len(event) - 4, zlib.crc32(memoryview(event)[:-4]))
                file.write(event)
    rebuild_archive(directory)
    return number


def _split(data: bytes | bytearray) -> list[bytearray]:
    events = []
    at = 0
    while at < len(data):
        (size,) = _U32.unpack_from(data, at + 9)
        events.append(bytearray(data[at : at + size]))
        at += size
    return events
