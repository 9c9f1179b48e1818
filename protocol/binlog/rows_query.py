"""Rows_query (MySQL) and Annotate_rows (MariaDB): the statement of the row events that follow, for readers."""

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields


def decode_rows_query(body: bytes, event_type: int) -> bytes:
    """Return the statement's text, in the client's character set.

    Layout: Rows_query: length u8 (wrong above 255 and ignored), text to the end; Annotate_rows: text only.
    Raises: Truncated.
    """
    fields = Fields(body)
    if event_type == EventType.ROWS_QUERY:
        fields.skip(1)
    return fields.rest()
