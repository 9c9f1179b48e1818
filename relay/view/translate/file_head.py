"""The beginning of a view's file: the source's format description, as far as the target reads it, and the executed GTIDs."""

import struct
from typing import Final

from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.target_format import FIRST_WITH_CHECKSUMS, FIRST_WITH_TAGS, is_newer, target_format

_FIXED: Final = struct.Struct("<H50sIB")
_LENGTHS_AT: Final = codes.FORMAT_FIXED_SIZE
# The lengths of MySQL 9.7, by type code from 1 on. Events that a file's own server does not know are read by them.
_NEWEST_LENGTHS: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)
_LEAST_TYPES: Final = codes.PREVIOUS_GTIDS_EVENT
_CHECKSUM_FIELD: Final = 5


def described(event: bytes) -> FormatDescription:
    """Decode the format description event, header included. Raises: Malformed."""
    return decode_format_description(event[HEADER_SIZE:])


def format_body(event: bytes, settings: ViewSettings) -> bytes:
    """Return the body of the view's format description, without the four bytes of a checksum.

    For a MariaDB source, and for one that is newer than the target, it is as the target reads it. Else it is the source's, with the
    further types listed that a GTID needs: a replica stops at an event of a type that is not listed (13122), and ignores the lengths of
    33 and 34.
    """
    body = event[HEADER_SIZE:]
    known = described(event)
    if known.flavour == MARIADB:
        return _as_of_mysql(known, settings)
    if is_newer(known.server_version, settings):
        return target_format(body[:-CHECKSUM_SIZE], settings)
    lengths = known.post_header_lengths
    if len(lengths) < _LEAST_TYPES:
        lengths += _NEWEST_LENGTHS[len(lengths) :]
    body = body[:_LENGTHS_AT] + lengths
    if known.has_checksum_field:
        body += bytes((known.checksum,))
    return body


def _as_of_mysql(known: FormatDescription, settings: ViewSettings) -> bytes:
    """Return MySQL's description: a version with MariaDB in it would make replicas take the events for MariaDB's."""
    lengths = _NEWEST_LENGTHS[: TARGETS_BY_NAME[settings.target].highest_event]
    head = _FIXED.pack(known.binlog_version, settings.mysql_version.encode(), known.created, known.header_length)
    return head + lengths + bytes((known.checksum,))


def checksum_size(known: FormatDescription, settings: ViewSettings) -> int:
    """Return the bytes of checksum at the end of the view's format description; the other events may have none."""
    if known.flavour == MARIADB:
        return CHECKSUM_SIZE
    needs_none = is_newer(known.server_version, settings) and settings.target_version < FIRST_WITH_CHECKSUMS
    return CHECKSUM_SIZE if known.has_checksum_field and not needs_none else 0


def has_wrong_checksums(known: FormatDescription, settings: ViewSettings) -> bool:
    """Return whether the source's events have checksums and the target knows none."""
    return bool(known.checksum) and not checksum_size(known, settings)


def previous_body(own: GtidSet, server_version: str, settings: ViewSettings) -> bytes | None:
    """Return the body of the view's Previous_gtids event; None: the target knows no such event. `own` is what was executed before.

    For a source that is newer than the target it has no tags where the target knows none, and is empty where the view has no GTIDs, as
    a replica with gtid_mode=OFF follows no source that has some (1593 of 5.6.24).
    """
    if is_newer(server_version, settings):
        if settings.target_version < FIRST_WITH_CHECKSUMS:
            return None
        if settings.gtids == "anonymous":
            own = GtidSet()
        elif settings.target_version < FIRST_WITH_TAGS:
            own = own.without_tags()
    return encode_gtid_set(own)


def post_lengths(event: bytes) -> bytes:
    """Return the source's post-header lengths by type code, in 256 bytes."""
    lengths = described(event).post_header_lengths
    return (b"\0" + lengths).ljust(256, b"\0")[:256]


def assigned(uuid: bytes, next_gno: int) -> GtidSet:
    """Return all numbers of `uuid` before `next_gno`."""
    if next_gno <= 1:
        return GtidSet()
    return GtidSet.from_intervals({uuid: struct.pack("<QQ", 1, next_gno)})
