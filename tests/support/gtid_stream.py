"""Events of streams with GTIDs, one at a time, marked as the archive marks them."""

import struct
from typing import Final
from uuid import UUID

from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.binlog.gtid_tagged import encode_gtid_tagged
from protocol.binlog.mariadb_gtid import MariadbGtid, encode_mariadb_gtid

HEADER: Final = struct.Struct("<IBIIIH")
IGNORE: Final = 1 << 10
ALONE: Final = 2 << 10
START: Final = 3 << 10
INSIDE: Final = 4 << 10
END: Final = 5 << 10


def event(kind: int, body: bytes, flags: int = 0, *, server_id: int = 1, timestamp: int = 7) -> bytes:
    """Return an event with four bytes in the place of its checksum."""
    return HEADER.pack(timestamp, kind, server_id, 19 + len(body) + 4, 0, flags) + body + b"crc!"


def gtid_event(key: bytes, gno: int, flags: int = START) -> bytes:
    """Return MySQL's, as 9.7 writes it: a Gtid_tagged if the key has a tag."""
    gtid = Gtid(1, UUID(bytes=key[:16]), gno, key[16:].decode(), 1, 2, 3, 3, 4, 90704, 90704)
    return event(42, encode_gtid_tagged(gtid), flags) if len(key) > 16 else event(33, encode_gtid(gtid), flags)


def mariadb_event(domain: int, server: int, number: int, flags: int = START) -> bytes:
    """Return MariaDB's, plain."""
    return event(162, encode_mariadb_gtid(MariadbGtid(number, domain, 0)), flags, server_id=server)
