"""Previous_gtids: the GTIDs of all files before this one."""

from uuid import UUID

from protocol.binlog.fields import Fields
from protocol.errors import Malformed


def decode_previous_gtids(body: bytes) -> str:
    """Decode a Previous_gtids event (35) into MySQL's text form, "" for the empty set.

    Layout, format 0: count u64 | per source: uuid 16, interval count u64, per interval start u64, end u64 (exclusive).
    Format 1 (8.3, tagged): first u64 is 0x01, count u48, 0x01 | uuid 16, tag length * 2 u8, tag, intervals as above.
    Raises: Truncated; Malformed for another format or an empty interval.
    Source: MySQL 9.7 `Gtid_set::encode`; tagged form checked on 9.7.4.
    """
    fields = Fields(body)
    head = fields.u64()
    tagged = head >> 56 == 1
    if head >> 56 > 1:
        raise Malformed(f"GTID set of format {head >> 56}; 0 and 1 exist")
    count = (head >> 8) & 0xFFFF_FFFF_FFFF if tagged else head
    texts: dict[UUID, str] = {}
    # Each turn reads at least 24 bytes, so a wrong count ends in Truncated and not in an endless loop.
    for _ in range(count):
        uuid = UUID(bytes=fields.take(16))
        tag = ""
        if tagged:
            tag = fields.take(fields.u8() >> 1).decode("utf-8", "backslashreplace")
        parts = [tag] if tag else []
        for _ in range(fields.u64()):
            start, stop = fields.u64(), fields.u64()
            if stop <= start:
                raise Malformed(f"GTID interval from {start} to {stop}, which is empty")
            parts.append(f"{start}" if stop == start + 1 else f"{start}-{stop - 1}")
        texts[uuid] = ":".join([texts.get(uuid, str(uuid)), *parts])
    return ",".join(texts.values())
