"""Gtid_tagged (42), MySQL 8.3 and later: a Gtid in MySQL's tagged serialization."""

from uuid import UUID

from protocol.binlog.gtid_event import Gtid
from protocol.kernel.codes import (
    TAGGED_FLAGS,
    TAGGED_IMMEDIATE_COMMIT,
    TAGGED_IMMEDIATE_VERSION,
    TAGGED_LAST_COMMITTED,
    TAGGED_NUMBER,
    TAGGED_ORIGINAL_COMMIT,
    TAGGED_ORIGINAL_VERSION,
    TAGGED_SEQUENCE_NUMBER,
    TAGGED_TAG,
    TAGGED_TICKET,
    TAGGED_TRANSACTION_LENGTH,
    TAGGED_UUID,
    UUID_SIZE,
)
from protocol.kernel.gtid_head import TaggedFields


def decode_gtid_tagged(body: bytes) -> Gtid:
    """Decode a Gtid_tagged event; `TaggedFields` has the layout. A missing field has its default.

    Raises: Truncated; Malformed for a number in the uuid that is no byte.
    """
    uuid, tag, numbers = TaggedFields().read(body)
    last_committed = numbers.get(TAGGED_LAST_COMMITTED)
    sequence_number = numbers.get(TAGGED_SEQUENCE_NUMBER)
    return Gtid(
        flags=numbers.get(TAGGED_FLAGS, 0),
        uuid=UUID(bytes=uuid),
        gno=signed(numbers.get(TAGGED_NUMBER, 0)),
        tag=tag.decode("utf-8", "backslashreplace"),
        last_committed=None if last_committed is None else signed(last_committed),
        sequence_number=None if sequence_number is None else signed(sequence_number),
        immediate_commit_us=numbers.get(TAGGED_IMMEDIATE_COMMIT),
        original_commit_us=numbers.get(TAGGED_ORIGINAL_COMMIT, numbers.get(TAGGED_IMMEDIATE_COMMIT)),
        transaction_length=numbers.get(TAGGED_TRANSACTION_LENGTH),
        immediate_server_version=numbers.get(TAGGED_IMMEDIATE_VERSION),
        original_server_version=numbers.get(TAGGED_ORIGINAL_VERSION, numbers.get(TAGGED_IMMEDIATE_VERSION)),
        commit_group_ticket=numbers.get(TAGGED_TICKET),
    )


def encode_gtid_tagged(gtid: Gtid) -> bytes:
    """Encode the body of a Gtid_tagged event; fields that are None, and originals that do not differ, are omitted."""
    moved_time = gtid.original_commit_us != gtid.immediate_commit_us
    moved_version = gtid.original_server_version != gtid.immediate_server_version
    tag = gtid.tag.encode()
    fields = [
        variable_unsigned(TAGGED_FLAGS) + variable_unsigned(gtid.flags),
        variable_unsigned(TAGGED_UUID) + b"".join(map(variable_unsigned, gtid.uuid.bytes)),
        variable_unsigned(TAGGED_NUMBER) + variable_signed(gtid.gno),
        variable_unsigned(TAGGED_TAG) + variable_unsigned(len(tag)) + tag,
    ]
    for field, value in ((TAGGED_LAST_COMMITTED, gtid.last_committed), (TAGGED_SEQUENCE_NUMBER, gtid.sequence_number)):
        if value is not None:
            fields.append(variable_unsigned(field) + variable_signed(value))
    for field, value in (
        (TAGGED_IMMEDIATE_COMMIT, gtid.immediate_commit_us),
        (TAGGED_ORIGINAL_COMMIT, gtid.original_commit_us if moved_time else None),
        (TAGGED_TRANSACTION_LENGTH, gtid.transaction_length),
        (TAGGED_IMMEDIATE_VERSION, gtid.immediate_server_version),
        (TAGGED_ORIGINAL_VERSION, gtid.original_server_version if moved_version else None),
        (TAGGED_TICKET, gtid.commit_group_ticket),
    ):
        if value is not None:
            fields.append(variable_unsigned(field) + variable_unsigned(value))
    content = variable_unsigned(0) + b"".join(fields)
    return _sized(1, content)


def with_clock(body: bytes, last_committed: int, sequence_number: int) -> bytes:
    """Return the body with these numbers of dependencies instead of its own; the rest of it stays, also unknown fields.

    A body without such numbers stays as it is. Raises: Truncated.
    """
    fields = TaggedFields()
    numbers = {TAGGED_LAST_COMMITTED: last_committed, TAGGED_SEQUENCE_NUMBER: sequence_number}

    def number(at: int) -> tuple[int, int]:
        value = fields.read_number(body, at)
        return value, fields.at

    version, at = number(0)
    _, at = number(at)
    content_at = at
    _, at = number(at)
    content = body[content_at:at]
    while at < len(body):
        field_at = at
        field, at = number(at)
        if field > TAGGED_SEQUENCE_NUMBER:
            at = field_at
            break
        value_at = at
        for _ in range(UUID_SIZE if field == TAGGED_UUID else 1):
            value, at = number(at)
        if field == TAGGED_TAG:
            at += value
        new = numbers.get(field)
        content += body[field_at:value_at] + (body[value_at:at] if new is None else variable_signed(new))
    return _sized(version, content + body[at:])


def _sized(version: int, content: bytes) -> bytes:
    """Return a message, whose size counts itself."""
    head = variable_unsigned(version)
    size = len(content) + len(head) + 1
    while size != len(content) + len(head) + len(variable_unsigned(size)):
        size += 1
    return head + variable_unsigned(size) + content


def variable_unsigned(value: int) -> bytes:
    """Encode `value` (0 to 2**64 - 1) in the fewest bytes that `TaggedFields.read_number` reads."""
    following = max(0, (value.bit_length() - 1) // 7)
    if following >= 8:
        return b"\xff" + value.to_bytes(8, "little")
    return (value << following + 1 | (1 << following) - 1).to_bytes(following + 1, "little")


def variable_signed(value: int) -> bytes:
    """Encode `value` (64 bits, signed) with its sign in the lowest bit (zig-zag), as a number of variable length."""
    return variable_unsigned((value << 1) ^ (value >> 63))


def signed(value: int) -> int:
    """Return the signed number of which `value` is the zig-zag form."""
    return (value >> 1) ^ -(value & 1)
