"""The source's own GTID event, before a transaction that has another length in the view."""

import struct
from dataclasses import replace
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.binlog.gtid_tagged import decode_gtid_tagged, encode_gtid_tagged
from protocol.binlog.gtid_tagged import with_clock as tagged_with_clock
from protocol.errors import ProtocolError
from protocol.kernel import codes
from protocol.wire import lenenc_int

LOGICAL_CLOCK: Final = 2
CLOCK: Final = slice(codes.GTID_SIZE + 1, codes.GTID_SIZE + 17)
"""The place of last_committed and sequence_number in the body, for servers that write them."""
_TIME_BYTES: Final = 7
_ORIGINAL_FOLLOWS: Final = 0x80
"""The bit in the last byte of a commit's time that says that the original one follows."""


def with_length(kind: int, body: bytes, size: int) -> bytes:
    """Return the body of an event that contains its transaction's length, as from 8.0 on, with that in the view; others are unchanged.

    `size` is the size in bytes of the transaction with the event as it is.
    """
    if kind == EventType.GTID_TAGGED:
        return _tagged(body, size)
    at = CLOCK.stop
    if len(body) < at + _TIME_BYTES or body[codes.GTID_SIZE] != LOGICAL_CLOCK:
        return body
    at += _TIME_BYTES * (2 if body[at + _TIME_BYTES - 1] & _ORIGINAL_FOLLOWS else 1)
    fields = Fields(body[at:])
    if not fields.remaining:
        return body
    try:
        fields.lenenc_int()
    except ProtocolError:
        return body
    behind = len(body) - fields.remaining
    without = size - (behind - at)
    length = next(made for count in (1, 3, 4, 9) if len(made := lenenc_int(without + count)) == count)
    return body[:at] + length + body[behind:]


def with_clock(kind: int, body: bytes, sequence: int, wait: int | None = None, *, adds: bool = False) -> bytes:
    """Return the body of an event with dependency numbers: its own is `sequence`, and it waits for all up to `wait`; None: for the one
    before it. Others are unchanged; with `adds` those of 5.6, which end after the GTID, get the numbers."""
    wait = sequence - 1 if wait is None else wait
    if kind == EventType.GTID_TAGGED:
        try:
            return tagged_with_clock(body, wait, sequence)
        except ProtocolError:
            return body
    numbers = struct.pack("<qq", wait, sequence)
    if adds and len(body) == codes.GTID_SIZE:
        return body + bytes((LOGICAL_CLOCK,)) + numbers
    if not has_clock(kind, body):
        return body
    return body[: CLOCK.start] + numbers + body[CLOCK.stop :]


def told_clock(kind: int, body: bytes) -> tuple[int, int] | None:
    """Return the last transaction that an event's own waits for, as the source says it, and its number; None: it does not."""
    if kind != EventType.GTID_TAGGED:
        return struct.unpack("<qq", body[CLOCK]) if has_clock(kind, body) else None
    try:
        told = decode_gtid_tagged(body)
    except ProtocolError:
        return None
    if told.last_committed is None or told.sequence_number is None:
        return None
    return told.last_committed, told.sequence_number


def has_clock(kind: int, body: bytes) -> bool:
    """Return whether the body of an event without a tag has dependency numbers, at `CLOCK`."""
    return kind != EventType.GTID_TAGGED and len(body) >= CLOCK.stop and body[codes.GTID_SIZE] == LOGICAL_CLOCK


def _tagged(body: bytes, size: int) -> bytes:
    """Do the same for a Gtid_tagged event; one with unknown fields is unchanged."""
    try:
        told = decode_gtid_tagged(body)
    except ProtocolError:
        return body
    if told.transaction_length is None or encode_gtid_tagged(told) != body:
        return body
    rest, length = size - len(body), size - len(body)
    # The length counts itself: it only grows, by a byte or two.
    while rest + len(made := encode_gtid_tagged(replace(told, transaction_length=length))) != length:
        length = rest + len(made)
    return made
