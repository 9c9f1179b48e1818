"""Partial_row_data of MariaDB 12.3 (172): one fragment of a row event that was too big for a packet."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class PartialRowData:
    """Fragment `sequence` of `total`; `original_bytes` is the whole event's size, in the first fragment only."""

    total: int
    sequence: int
    original_bytes: int | None


def decode_partial_row_data(body: bytes) -> PartialRowData:
    """Decode the head: total u32 | sequence u32 | flags u8 (1: original size u64 follows). Raises: Truncated."""
    fields = Fields(body)
    total, sequence = fields.u32(), fields.u32()
    return PartialRowData(total, sequence, fields.u64() if fields.u8() & 1 else None)
