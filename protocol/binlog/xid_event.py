"""Xid: the commit of a transaction in a transactional engine."""

from protocol.binlog.fields import Fields


def decode_xid(body: bytes) -> int:
    """Decode an Xid event: the server's number for the transaction, u64. Trailing bytes are ignored."""
    return Fields(body).u64()
