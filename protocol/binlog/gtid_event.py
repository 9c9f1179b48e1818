"""Gtid and Anonymous_gtid of MySQL: the head of a transaction."""

import struct
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from protocol.binlog.fields import Fields
from protocol.wire import lenenc_int

_LOGICAL_CLOCK: Final = 2
_ORIGINAL_FOLLOWS_TIME: Final = 1 << 55
_ORIGINAL_FOLLOWS_VERSION: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction's identity and other facts of MySQL. Fields that the server's version does not write are None.

    Times are in µs since the epoch, lengths in bytes, versions such as 90704 for 9.7.4. `gno` is 0 in an Anonymous_gtid.
    """

    flags: int
    uuid: UUID
    gno: int
    tag: str = ""
    last_committed: int | None = None
    sequence_number: int | None = None
    immediate_commit_us: int | None = None
    original_commit_us: int | None = None
    transaction_length: int | None = None
    immediate_server_version: int | None = None
    original_server_version: int | None = None
    commit_group_ticket: int | None = None

    @property
    def text(self) -> str:
        """The GTID as servers write it: `uuid:gno` or `uuid:tag:gno`."""
        return f"{self.uuid}:{self.tag}:{self.gno}" if self.tag else f"{self.uuid}:{self.gno}"


def decode_gtid(body: bytes) -> Gtid:
    """Decode a Gtid (33) or Anonymous_gtid (34) event.

    Layout: flags u8 | uuid 16 | gno u64 | from 5.7: clock type u8 = 2, last_committed u64, sequence_number u64 | from 8.0: immediate
    commit time u56 µs (bit 55: original time u56 follows), transaction length packed, immediate server version u32 (bit 31: original
    version u32 follows) | from late 8.0, rarely: commit group ticket u64.
    Fields are read while bytes remain, as by servers; trailing bytes of later versions are ignored.
    Raises: Truncated when a field is cut.
    """
    fields = Fields(body)
    flags, uuid, gno = fields.u8(), UUID(bytes=fields.take(16)), fields.i64()
    if fields.remaining == 0 or fields.u8() != _LOGICAL_CLOCK:
        return Gtid(flags, uuid, gno)
    last_committed, sequence_number = fields.i64(), fields.i64()
    if fields.remaining == 0:
        return Gtid(flags, uuid, gno, "", last_committed, sequence_number)
    immediate_us = fields.uint(7)
    original_us = immediate_us
    if immediate_us & _ORIGINAL_FOLLOWS_TIME:
        immediate_us &= ~_ORIGINAL_FOLLOWS_TIME
        original_us = fields.uint(7)
    length = fields.lenenc_int() if fields.remaining else None
    immediate_version = original_version = None
    if fields.remaining:
        immediate_version = original_version = fields.u32()
        if immediate_version & _ORIGINAL_FOLLOWS_VERSION:
            immediate_version &= ~_ORIGINAL_FOLLOWS_VERSION
            original_version = fields.u32()
    ticket = fields.u64() if fields.remaining >= 8 else None
    return Gtid(
        flags,
        uuid,
        gno,
        "",
        last_committed,
        sequence_number,
        immediate_us,
        original_us,
        length,
        immediate_version,
        original_version,
        ticket,
    )


def encode_gtid(gtid: Gtid) -> bytes:
    """Encode the body of a Gtid or Anonymous_gtid event, up to the first field that is None: that of the server's version.

    Original times and versions are written if they differ, as by servers.
    """
    parts = [struct.pack("<B16sq", gtid.flags, gtid.uuid.bytes, gtid.gno)]
    if gtid.last_committed is None or gtid.sequence_number is None:
        return parts[0]
    parts.append(struct.pack("<Bqq", _LOGICAL_CLOCK, gtid.last_committed, gtid.sequence_number))
    if gtid.immediate_commit_us is None:
        return b"".join(parts)
    moved = gtid.original_commit_us is not None and gtid.original_commit_us != gtid.immediate_commit_us
    parts.append((gtid.immediate_commit_us | moved * _ORIGINAL_FOLLOWS_TIME).to_bytes(7, "little"))
    if moved and gtid.original_commit_us is not None:
        parts.append(gtid.original_commit_us.to_bytes(7, "little"))
    if gtid.transaction_length is None:
        return b"".join(parts)
    parts.append(lenenc_int(gtid.transaction_length))
    if gtid.immediate_server_version is None:
        return b"".join(parts)
    moved = gtid.original_server_version not in (None, gtid.immediate_server_version)
    parts.append(struct.pack("<I", gtid.immediate_server_version | moved * _ORIGINAL_FOLLOWS_VERSION))
    if moved and gtid.original_server_version is not None:
        parts.append(struct.pack("<I", gtid.original_server_version))
    if gtid.commit_group_ticket is not None:
        parts.append(struct.pack("<Q", gtid.commit_group_ticket))
    return b"".join(parts)
