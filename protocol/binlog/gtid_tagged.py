"""Gtid_tagged (42), MySQL 8.3 and later: a Gtid in MySQL's tagged serialization."""

from uuid import UUID

from protocol.binlog.fields import Fields
from protocol.binlog.gtid_event import Gtid
from protocol.errors import Malformed


def decode_gtid_tagged(body: bytes) -> Gtid:
    """Decode a Gtid_tagged event.

    Layout: version, size and last field that may not be ignored, then (field id, value)*, all numbers of variable
    length: 0 flags | 1 uuid, 16 numbers | 2 gno, signed | 3 tag: length, text | 4 last_committed, signed |
    5 sequence_number, signed | 6, 7 immediate and original commit time µs | 8 transaction length | 9, 10 immediate and
    original server version | 11 ticket. A field that is missing has its default; what follows an
    unknown field is not read.
    Raises: Truncated; Malformed for a number that is no byte in the uuid.
    Source: MySQL 9.7 `libs/mysql/serialization`, `Gtid_event::define_fields`; checked on 9.7.4 output.
    """
    fields = Fields(body)
    read_variable_unsigned(fields)
    read_variable_unsigned(fields)
    read_variable_unsigned(fields)
    numbers: dict[int, int] = {}
    uuid = UUID(int=0)
    tag = ""
    while fields.remaining:
        field = read_variable_unsigned(fields)
        if field == 1:
            uuid = _uuid(fields)
        elif field == 3:
            tag = fields.take(read_variable_unsigned(fields)).decode("utf-8", "backslashreplace")
        elif field in (2, 4, 5):
            numbers[field] = read_variable_signed(fields)
        elif field <= 11:
            numbers[field] = read_variable_unsigned(fields)
        else:
            break
    return Gtid(
        flags=numbers.get(0, 0),
        uuid=uuid,
        gno=numbers.get(2, 0),
        tag=tag,
        last_committed=numbers.get(4),
        sequence_number=numbers.get(5),
        immediate_commit_us=numbers.get(6),
        original_commit_us=numbers.get(7, numbers.get(6)),
        transaction_length=numbers.get(8),
        immediate_server_version=numbers.get(9),
        original_server_version=numbers.get(10, numbers.get(9)),
        commit_group_ticket=numbers.get(11),
    )


def encode_gtid_tagged(gtid: Gtid) -> bytes:
    """The body of a Gtid_tagged event; fields that are None, and originals that do not differ, are left out."""
    moved_time = gtid.original_commit_us != gtid.immediate_commit_us
    moved_version = gtid.original_server_version != gtid.immediate_server_version
    tag = gtid.tag.encode()
    fields = [
        variable_unsigned(0) + variable_unsigned(gtid.flags),
        variable_unsigned(1) + b"".join(map(variable_unsigned, gtid.uuid.bytes)),
        variable_unsigned(2) + variable_signed(gtid.gno),
        variable_unsigned(3) + variable_unsigned(len(tag)) + tag,
    ]
    for field, value in ((4, gtid.last_committed), (5, gtid.sequence_number)):
        if value is not None:
            fields.append(variable_unsigned(field) + variable_signed(value))
    for field, value in (
        (6, gtid.immediate_commit_us),
        (7, gtid.original_commit_us if moved_time else None),
        (8, gtid.transaction_length),
        (9, gtid.immediate_server_version),
        (10, gtid.original_server_version if moved_version else None),
        (11, gtid.commit_group_ticket),
    ):
        if value is not None:
            fields.append(variable_unsigned(field) + variable_unsigned(value))
    content = variable_unsigned(0) + b"".join(fields)
    # The size counts itself.
    size = len(content) + 2
    while size != len(content) + 1 + len(variable_unsigned(size)):
        size += 1
    return variable_unsigned(1) + variable_unsigned(size) + content


def variable_unsigned(value: int) -> bytes:
    """`value` (0 to 2**64 - 1) in the fewest bytes that `read_variable_unsigned` reads."""
    following = max(0, (value.bit_length() - 1) // 7)
    if following >= 8:
        return b"\xff" + value.to_bytes(8, "little")
    return (value << following + 1 | (1 << following) - 1).to_bytes(following + 1, "little")


def variable_signed(value: int) -> bytes:
    """`value` (64 bits, signed) as `read_variable_signed` reads it."""
    return variable_unsigned((value << 1) ^ (value >> 63))


def read_variable_unsigned(fields: Fields) -> int:
    """A number of 1 to 9 bytes: as many trailing one-bits in the first byte as bytes follow it.

    The marks (one bit more than bytes that follow, at most 8) are shifted out: below 128 a number is value * 2 in
    one byte.
    """
    start = fields.offset
    first = fields.u8()
    following = (~first & (first + 1)).bit_length() - 1 if first != 0xFF else 8
    try:
        value = first | fields.uint(following) << 8
    except Malformed:
        fields.offset = start
        raise
    return value >> min(following + 1, 8)


def read_variable_signed(fields: Fields) -> int:
    """As `read_variable_unsigned`, with the sign in the lowest bit (zig-zag)."""
    value = read_variable_unsigned(fields)
    return (value >> 1) ^ -(value & 1)


def _uuid(fields: Fields) -> UUID:
    numbers = [read_variable_unsigned(fields) for _ in range(16)]
    if max(numbers) > 255:
        raise Malformed(f"{max(numbers)} is no byte of a uuid")
    return UUID(bytes=bytes(numbers))
