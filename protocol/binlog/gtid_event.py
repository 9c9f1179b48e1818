"""Gtid and Anonymous_gtid of MySQL: the head of a transaction."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from protocol.binlog.fields import Fields

_LOGICAL_CLOCK: Final = 2
_ORIGINAL_FOLLOWS_TIME: Final = 1 << 55
_ORIGINAL_FOLLOWS_VERSION: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction's identity and what MySQL says about it. Fields that the server's version does not write are None.

    Times in µs since the epoch, lengths in bytes, versions as 90704 for 9.7.4. `gno` is 0 in an Anonymous_gtid.
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

    @property
    def text(self) -> str:
        """`uuid:gno` or `uuid:tag:gno`."""
        return f"{self.uuid}:{self.tag}:{self.gno}" if self.tag else f"{self.uuid}:{self.gno}"


def decode_gtid(body: bytes) -> Gtid:
    """Decode a Gtid (33) or Anonymous_gtid (34) event.

    Layout: flags u8 | uuid 16 | gno u64 | from 5.7: clock type u8 = 2, last_committed u64, sequence_number u64 |
    from 8.0: immediate commit time u56 µs (bit 55: original time u56 follows), transaction length packed,
    immediate server version u32 (bit 31: original version u32 follows).
    What follows is read while bytes remain, as servers do; trailing bytes of later versions are ignored.
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
    )
