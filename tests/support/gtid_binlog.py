"""Binlogs with GTIDs, marked as the archive marks them."""

import struct
from uuid import UUID

from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.binlog.gtid_tagged import encode_gtid_tagged
from protocol.binlog.mariadb_gtid import MariadbGtid, encode_mariadb_gtid
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, encode_gtid_list
from protocol.gtid.mysql_gtid import MysqlGtid
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.gtid_stream import END, START
from tests.support.gtid_stream import INSIDE as MARKED_INSIDE


def mysql_binlog(before: GtidSet | None, timestamp: int = 1_700_000_000) -> BinlogBuilder:
    """Return an empty binlog; without a Previous_gtids event if `before` is None."""
    binlog = BinlogBuilder(timestamp=timestamp)
    return binlog if before is None else binlog.event(35, encode_gtid_set(before), ALONE)


def mariadb_binlog(before: GtidList) -> BinlogBuilder:
    """Return an empty binlog."""
    binlog = BinlogBuilder("mariadb", header=False)
    lengths = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 228, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0])
    lengths += bytes(131) + bytes([0, 4, 19, 4]) + bytes(8)
    version = b"10.11.19-MariaDB-log"
    binlog.event(15, struct.pack("<H50sIB", 4, version, 7, 19) + lengths + b"\x01", ALONE, crc=True)
    return binlog.event(163, encode_gtid_list(before), ALONE)


def add_mysql(binlog: BinlogBuilder, gtid: MysqlGtid | None, size: int = 20, *, ended: bool = True) -> BinlogBuilder:
    """Add a transaction; with an Anonymous_gtid event if `gtid` is None, without its last event if it is not `ended`."""
    key, gno = (gtid.tsid.key, gtid.gno) if gtid is not None else (bytes(16), 0)
    event = Gtid(1, UUID(bytes=key[:16]), gno, key[16:].decode(), 1, 2, 3, 3, 4, 90704, 90704)
    body = encode_gtid_tagged(event) if len(key) > 16 else encode_gtid(event)
    binlog.event(34 if gtid is None else 42 if len(key) > 16 else 33, body, OPENS, flags=START)
    body = struct.pack("<IIBHH", 7, 0, 4, 0, 0) + b"test\0BEGIN"
    binlog.event(2, body, INSIDE, flags=MARKED_INSIDE)
    body = struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01t\0" + b"\x01\xfc\x01\x02\x01"
    binlog.event(19, body, INSIDE, flags=MARKED_INSIDE)
    body = struct.pack("<IHH", 42, 0, 1) + b"\x02\0\x01\xff\0" + bytes(size)
    binlog.event(30, body, INSIDE, flags=MARKED_INSIDE)
    return binlog.event(16, bytes(8), CLOSES, flags=END) if ended else binlog


def add_mariadb(binlog: BinlogBuilder, gtid: DomainGtid, size: int = 20) -> BinlogBuilder:
    """Add a transaction."""
    binlog.server_id = gtid.server_id
    body = encode_mariadb_gtid(MariadbGtid(gtid.sequence_number, gtid.domain_id, 0))
    binlog.event(162, body, OPENS, flags=START)
    body = struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01t\0" + b"\x01\xfc\x01\x02\x01"
    binlog.event(19, body, INSIDE, flags=MARKED_INSIDE)
    binlog.event(23, struct.pack("<IHH", 42, 0, 1) + b"\x01\xff\0" + bytes(size), INSIDE, flags=MARKED_INSIDE)
    return binlog.event(16, bytes(8), CLOSES, flags=END)
