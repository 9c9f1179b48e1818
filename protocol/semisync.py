"""Semi-synchronous replication on the wire: the bytes before each event, and the replica's acknowledgements.

Once a replica has set its user variable, every packet of the stream is status u8 (0) | 0xEF | flag u8 | event. Flag 1 asks
for an acknowledgement, which comes on the same connection as a packet with number 0: 0xEF | offset u64 | file name without
a zero byte. The next packet of the stream then has number 1.
Source: MySQL 9.x `plugin/semisync`, MariaDB 10.11 `sql/semisync_slave.cc`; docs/PROTOCOL.md#semi-synchronous-replication.
"""

from collections.abc import Mapping
from typing import Final

from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from protocol.resultset import Value
from protocol.wire import Cursor

MAGIC: Final = 0xEF
PREFIX: Final = bytes((0, MAGIC, 0))
"""The bytes before an event that asks for nothing; the last one is the flag."""
MAX_ACKNOWLEDGEMENT_BYTES: Final = 1 + 8 + 512
# MySQL 8.0.26 and later set the first, all before it and MariaDB the second; the versions between set both.
_VARIABLES: Final = ("rpl_semi_sync_replica", "rpl_semi_sync_slave")


def wants_semi_sync(user_variables: Mapping[str, Value]) -> bool:
    """Return whether a replica announced that it acknowledges transactions."""
    return any(str(user_variables.get(name) or 0) != "0" for name in _VARIABLES)


def encode_acknowledgement(position: Position) -> bytes:
    """Return the payload that acknowledges everything up to `position`."""
    return bytes((MAGIC,)) + position.offset.to_bytes(8, "little") + position.file.encode()


def decode_acknowledgement(payload: bytes) -> Position:
    """Decode a replica's acknowledgement: it has stored everything up to this position.

    Raises: Truncated; Malformed for another first byte, a payload of more than 521 bytes, and for a name that no binlog has.
    """
    cursor = Cursor(payload)
    magic = cursor.uint(1)
    if magic != MAGIC:
        raise Malformed(f"an acknowledgement begins with 0x{MAGIC:02x}, not with 0x{magic:02x}")
    if len(payload) > MAX_ACKNOWLEDGEMENT_BYTES:
        raise Malformed(f"an acknowledgement of {len(payload)} bytes, at most {MAX_ACKNOWLEDGEMENT_BYTES} are taken")
    offset = cursor.uint(8)
    try:
        name = cursor.rest().decode()
    except UnicodeDecodeError as error:
        raise Malformed("the file name of an acknowledgement is not UTF-8") from error
    binlog_number(name)
    return Position(name, offset)
