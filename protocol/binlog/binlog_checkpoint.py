"""Binlog_checkpoint of MariaDB (161): the oldest file that crash recovery may need."""

from protocol.binlog.fields import Fields


def decode_binlog_checkpoint(body: bytes) -> str:
    """Decode a Binlog_checkpoint event: name length u32, file name. Raises: Truncated."""
    fields = Fields(body)
    return fields.take(fields.u32()).decode("utf-8", "backslashreplace")
