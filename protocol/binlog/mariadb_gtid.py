"""Gtid of MariaDB (162): the head of an event group."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.xa_prepare import Xid

STANDALONE: Final = 0x01
GROUP_COMMIT_ID: Final = 0x02
TRANSACTIONAL: Final = 0x04
DDL: Final = 0x20
PREPARED_XA: Final = 0x40
COMPLETED_XA: Final = 0x80
_PLAIN_BYTES: Final = 19
# Later flags: the group's ALTER TABLE has only begun, or was abandoned.
_START_ALTER: Final = 0x02
_ROLLBACK_ALTER: Final = 0x08
_GTID_EVENT: Final = EventType.MARIADB_GTID
_FLAGS_AT: Final = 12
_LEAST_EVENT: Final = 38
_LONGEST_EVENT: Final = 64

_FLAG_NAMES: Final = {
    STANDALONE: "standalone",
    TRANSACTIONAL: "transactional",
    DDL: "ddl",
    PREPARED_XA: "prepared XA",
    COMPLETED_XA: "completed XA",
}


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """A group's identity; its server id is the header's."""

    sequence_number: int
    domain_id: int
    flags: int
    commit_id: int | None = None
    xid: Xid | None = None

    @property
    def is_standalone(self) -> bool:
        """True if the group ends with its one statement, without a COMMIT."""
        return bool(self.flags & STANDALONE)

    def text(self, server_id: int) -> str:
        """Return `domain-server-sequence`."""
        return f"{self.domain_id}-{server_id}-{self.sequence_number}"

    @property
    def flag_names(self) -> list[str]:
        """The names of the flags for the kind of group."""
        return [name for bit, name in _FLAG_NAMES.items() if self.flags & bit]


def decode_mariadb_gtid(body: bytes) -> MariadbGtid:
    """Decode MariaDB's Gtid event.

    Layout: sequence_number u64 | domain_id u32 | flags u8 | with GROUP_COMMIT_ID: commit_id u64, else filler | with PREPARED_XA or
    COMPLETED_XA: format u32, gtrid length u8, bqual length u8, data. Later fields and zeros that versions since 10.6 add are ignored:
    parse by the flags, never by the length.
    Raises: Truncated.
    Source: MariaDB 11.8 `Gtid_log_event::Gtid_log_event`.
    """
    fields = Fields(body)
    sequence_number, domain_id, flags = fields.u64(), fields.u32(), fields.u8()
    commit_id = fields.u64() if flags & GROUP_COMMIT_ID else None
    if not flags & (PREPARED_XA | COMPLETED_XA):
        return MariadbGtid(sequence_number, domain_id, flags, commit_id)
    format_id, gtrid_length, bqual_length = fields.u32(), fields.u8(), fields.u8()
    xid = Xid(format_id, fields.take(gtrid_length), fields.take(bqual_length))
    return MariadbGtid(sequence_number, domain_id, flags, commit_id, xid)


def encode_mariadb_gtid(gtid: MariadbGtid) -> bytes:
    """Encode the body of MariaDB's Gtid event like 10.0: without the fields that later versions add, 13 + 6 bytes plain.

    Raises: ValueError if the flags announce a field that is None.
    """
    body = struct.pack("<QIB", gtid.sequence_number, gtid.domain_id, gtid.flags)
    if gtid.flags & GROUP_COMMIT_ID:
        if gtid.commit_id is None:
            raise ValueError("the flags announce a commit id")
        body += struct.pack("<Q", gtid.commit_id)
    if gtid.flags & (PREPARED_XA | COMPLETED_XA):
        if gtid.xid is None:
            raise ValueError("the flags announce an XA identifier")
        xid = gtid.xid
        body += struct.pack("<IBB", xid.format_id, len(xid.gtrid), len(xid.bqual)) + xid.gtrid + xid.bqual
    return body if len(body) > _PLAIN_BYTES else body.ljust(_PLAIN_BYTES, b"\0")


def says_alters_nothing(body: bytes) -> bool:
    """Return whether the group's ALTER TABLE has only begun, or was abandoned (binlog_alter_two_phase). `body` is its Gtid event's.

    Layout after the fields of `decode_mariadb_gtid`: flags u8, of which 0x01 is followed by a byte more (engines).
    """
    flags = body[_FLAGS_AT] if len(body) > _FLAGS_AT else 0
    at = _FLAGS_AT + 1 + (8 if flags & GROUP_COMMIT_ID else 0)
    if flags & (PREPARED_XA | COMPLETED_XA):
        at += 6 + (body[at + 4] + body[at + 5] if len(body) > at + 5 else 0)
    return at < len(body) and bool(body[at] & (_START_ALTER | _ROLLBACK_ALTER))


def alters_nothing(before: bytes, end: int) -> bool | None:
    """Return whether the ALTER TABLE of the Gtid event at the end of `before` has only begun or was abandoned (binlog_alter_two_phase).

    The table is then unchanged. `end` is the event's end in its file. None: there is no such event.
    Source: MariaDB 10.11 `Gtid_log_event`, FL_START_ALTER_E1, FL_ROLLBACK_ALTER_E1.
    """
    for size in range(_LEAST_EVENT, min(_LONGEST_EVENT, len(before)) + 1):
        event = before[len(before) - size :]
        length, log_pos = struct.unpack_from("<II", event, 9)
        if event[4] == _GTID_EVENT and length == size and log_pos == end & 0xFFFFFFFF:
            at = HEADER_SIZE + 13 + (8 if event[HEADER_SIZE + 12] & GROUP_COMMIT_ID else 0)
            return at < size and bool(event[at] & (_START_ALTER | _ROLLBACK_ALTER))
    return None
