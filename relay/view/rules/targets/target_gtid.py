"""The head of a transaction as a target reads it."""

from dataclasses import replace
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.gtid_event import Gtid, decode_gtid, encode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from relay.view.rules.targets.known.target import Target
from relay.view.stops import transaction_stops

GTID_TYPES: Final = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED))
_WITH_STATEMENTS: Final = 1
_5_6_BYTES: Final = 25


def gtid_for(body: bytes, event_type: int, target: Target) -> tuple[int, bytes]:
    """Return type and body of a Gtid event that is kept. Raises: Untranslatable for one with a tag.

    5.6.24 accepts both 25 and 42 bytes; it gets its own 25, with the flag that it writes itself (1, for any transaction).
    """
    gtid = decode_gtid_tagged(body) if event_type == EventType.GTID_TAGGED else decode_gtid(body)
    if event_type == EventType.GTID_TAGGED:
        if event_type <= target.highest_event:
            return event_type, body
        if gtid.tag:
            raise transaction_stops.tagged_gtid(gtid.text, target.title)
        event_type = EventType.GTID if gtid.gno else EventType.ANONYMOUS_GTID
        body = encode_gtid(gtid)
    if len(body) <= target.gtid_bytes:
        return event_type, body
    return event_type, encode_gtid(_cut(gtid, target))


def _cut(gtid: Gtid, target: Target) -> Gtid:
    if target.gtid_bytes == _5_6_BYTES:
        return replace(gtid, flags=_WITH_STATEMENTS, last_committed=None)
    return replace(gtid, immediate_commit_us=None)
