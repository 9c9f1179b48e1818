"""The head of a view's file for an older target: the format of its events, and the transactions that came before."""

import struct
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_format_description
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.sql.server_version import version_id
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.known.target import TARGETS_BY_NAME

_FIXED: Final = struct.Struct("<H50sIB")
_NO_CHECKSUM: Final = bytes(4)
FIRST_WITH_TAGS: Final = (8, 3)
"""The version since which GTIDs may have tags."""
FIRST_WITH_CHECKSUMS: Final = (5, 6)
"""The version since which events may have checksums, and files a list of previous GTIDs."""
_VERSION_5_5: Final = b"5.5.62-log"


def is_newer(server_version: str, settings: ViewSettings) -> bool:
    """Return whether a source of this version may write what the view's target cannot read."""
    major, minor = settings.target_version
    return version_id(server_version) >= major * 10_000 + (minor + 1) * 100


def target_format(source_fde_body: bytes, settings: ViewSettings) -> bytes:
    """Return the body of the target's Format_description from the source's, both without the checksum at the end.

    Lengths of types that the target does not know are left out; it needs none of them, as none of these comes. That of Gtid events is
    the view's own. The version is the source's: 5.6.24 accepts `9.7.4`, with 35 lengths or with 42, 0 for types that are removed. 5.5
    has no checksums and no such field: it gets the version of a 5.5, and the file must have none (not run on a 5.5).
    Raises: Truncated, Malformed.
    """
    target = TARGETS_BY_NAME[settings.target]
    source = decode_format_description(source_fde_body + _NO_CHECKSUM)
    lengths = bytearray(source.post_header_lengths[: target.highest_event])
    for event_type in (EventType.GTID, EventType.ANONYMOUS_GTID):
        if target.gtid_bytes in (25, 42) and len(lengths) >= event_type:
            lengths[event_type - 1] = target.gtid_bytes
    if target.version < FIRST_WITH_CHECKSUMS:
        return _FIXED.pack(source.binlog_version, _VERSION_5_5, source.created, source.header_length) + bytes(lengths)
    head = _FIXED.pack(source.binlog_version, source.server_version.encode(), source.created, source.header_length)
    return head + bytes(lengths) + bytes((source.checksum,))


def target_previous_gtids(body: bytes, settings: ViewSettings) -> bytes | None:
    """Return the body of a Previous_gtids event, from one of the source; None: the target knows no such event.

    Transactions with tags are left out for versions before 8.3, which cannot read such a set. Raises: Truncated, Malformed.
    """
    target = TARGETS_BY_NAME[settings.target]
    if target.highest_event < EventType.PREVIOUS_GTIDS:
        return None
    if target.highest_event >= EventType.GTID_TAGGED:
        return body
    return encode_gtid_set(decode_gtid_set(body).without_tags())
