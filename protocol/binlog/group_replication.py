"""Transaction_context and View_change: the events of MySQL group replication in a binlog."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """The member and session that ran the transaction."""

    server_uuid: str
    thread_id: int


@dataclass(frozen=True, slots=True)
class ViewChange:
    """A change of the group's membership."""

    view_id: str
    sequence_number: int


def decode_transaction_context(body: bytes) -> TransactionContext:
    """Decode the head of a Transaction_context event (36).

    Layout: uuid length u8 | thread_id u32 | gtid specified u8 | lengths u32 u32 u32 | uuid text | sets (not read).
    Raises: Truncated.
    """
    fields = Fields(body)
    length, thread_id = fields.u8(), fields.u32()
    fields.skip(13)
    return TransactionContext(fields.take(length).decode("ascii", "backslashreplace"), thread_id)


def decode_view_change(body: bytes) -> ViewChange:
    """Decode the head of a View_change event (37).

    Layout: view id 40 bytes, zero padded | sequence number u64 | certification info (not read). Raises: Truncated.
    """
    fields = Fields(body)
    view_id = fields.take(40).split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return ViewChange(view_id, fields.u64())
