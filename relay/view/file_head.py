"""How a file of a view begins: the source's format description, so far as the target reads it, and what was executed before."""

import struct
from typing import Final

from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.layout import HEADER_SIZE
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes

_LENGTHS_AT: Final = codes.FORMAT_FIXED_SIZE
# Of MySQL 9.7, by type code from 1 on. What a file's own server does not know is read as these say.
_NEWEST_LENGTHS: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)
_LEAST_TYPES: Final = codes.PREVIOUS_GTIDS_EVENT
_CHECKSUM_FIELD: Final = 5


def described(event: bytes) -> FormatDescription:
    """The format description event, header included. Raises: Malformed."""
    return decode_format_description(event[HEADER_SIZE:])


def format_body(event: bytes) -> bytes:
    """The body of the view's format description, without the checksum's four bytes where there are such.

    All of the source's, with the types behind its own listed that a GTID needs: a replica stops at an event of a type that is
    not listed (13122), and looks at no length of 33 and 34.
    """
    body = event[HEADER_SIZE:]
    known = described(event)
    lengths = known.post_header_lengths
    if len(lengths) < _LEAST_TYPES:
        lengths += _NEWEST_LENGTHS[len(lengths) :]
    body = body[:_LENGTHS_AT] + lengths
    if known.has_checksum_field:
        body += bytes((known.checksum,))
    return body


def post_lengths(event: bytes) -> bytes:
    """256 bytes: the source's post-header lengths by type code."""
    lengths = described(event).post_header_lengths
    return (b"\0" + lengths).ljust(256, b"\0")[:256]


def numbered_version(server_version: str) -> int:
    """5.6.24-log as 50624; 0 for a text that is no version."""
    parts = server_version.split("-", 1)[0].split(".")
    try:
        major, minor, patch = (int(part) for part in parts[:3])
    except ValueError:
        return 0
    return major * 10000 + minor * 100 + patch if major < 1000 and minor < 100 and patch < 100 else 0


def assigned(uuid: bytes, next_gno: int) -> GtidSet:
    """All numbers of `uuid` before `next_gno`."""
    if next_gno <= 1:
        return GtidSet()
    return GtidSet.from_intervals({uuid: struct.pack("<QQ", 1, next_gno)})
