"""COM_BINLOG_DUMP_GTID: a dump request by GTID set, as MySQL's replicas send it (5.6 and later)."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.commands import DumpFlag
from protocol.errors import Malformed, Truncated
from protocol.gtid.gtid_set import GtidSet
from protocol.pieces import Pieces
from protocol.wire import Cursor

_MAX_FILE_NAME_BYTES: Final = 512
_LONGEST_HEAD_BYTES: Final = 2 + 4 + 4 + _MAX_FILE_NAME_BYTES + 8 + 4


@dataclass(frozen=True, slots=True)
class BinlogDumpGtid:
    """The request. With an empty `file` the source chooses it; otherwise the stream starts in that file, for any set of the replica.

    `held` is the replica's encoded set (`decode_gtid_set`, whose errors mean ER_MALFORMED_GTID_SET_ENCODING). Decoding a million
    intervals takes some milliseconds, so the caller chooses where that is done.
    """

    file: str
    offset: int
    flags: DumpFlag
    server_id: int
    held: bytes | Pieces

    @property
    def ends_at_end(self) -> bool:
        """True if the client wants EOF at the end of the stream instead of waiting. Server id 0 means the same."""
        return bool(self.flags & DumpFlag.NON_BLOCK) or self.server_id == 0


def decode_binlog_dump_gtid(body: bytes | Pieces) -> BinlogDumpGtid:
    """Decode COM_BINLOG_DUMP_GTID without its command byte. `held` is a part of `body`, not a copy.

    Layout: flags u16 | server_id u32 | name size u32 | file name | position u64 | data size u32 | GTID set. Bytes after it are
    ignored, as by MySQL 5.6.24 and 9.7.4, which answer ER_MALFORMED_PACKET to all that is raised here.
    Raises: Truncated for wrong sizes; Malformed for a name that is longer than 512 bytes or not UTF-8.
    """
    cursor = Cursor(bytes(body[:_LONGEST_HEAD_BYTES]))
    flags = DumpFlag(cursor.uint(2))
    server_id = cursor.uint(4)
    name_size = cursor.uint(4)
    if name_size > _MAX_FILE_NAME_BYTES:
        raise Malformed(f"binlog file name of {name_size} bytes, at most {_MAX_FILE_NAME_BYTES} are taken")
    name = cursor.take(name_size)
    offset = cursor.uint(8)
    held_size = cursor.uint(4)
    held = body[cursor.offset : cursor.offset + held_size]
    if len(held) < held_size:
        raise Truncated(f"a GTID set of {held_size} bytes announced, {len(held)} left")
    try:
        return BinlogDumpGtid(name.split(b"\0", 1)[0].decode(), offset, flags, server_id, held)
    except UnicodeDecodeError as error:
        raise Malformed("binlog file name is not UTF-8") from error


def encode_binlog_dump_gtid(held: bytes, *, flags: int, server_id: int) -> bytes:
    """Encode the request of a replica that has this encoded set and lets the source choose the file, without its command byte."""
    return struct.pack("<HIIQI", flags, server_id, 0, 4, len(held)) + held


# Servers before 8.3 do not know tags: they are sent the transactions without one only.
FIRST_VERSION_WITH_TAGS: Final = (8, 3)


def known_to(version: tuple[int, ...], gtid_set: GtidSet) -> GtidSet:
    """Return the part of a set that may be sent to a source of this version."""
    return gtid_set if version >= FIRST_VERSION_WITH_TAGS else gtid_set.without_tags()
