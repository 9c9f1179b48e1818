"""Transaction_payload (40), MySQL 8.0.20 and later: a whole transaction after its Gtid, compressed into one event."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields

_COMPRESSION: Final = {0: "zstd", 255: "none"}


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """The sizes, in bytes; the payload starts `head_bytes` after the body's start. The events inside are not unpacked."""

    payload_bytes: int
    compression: int
    uncompressed_bytes: int
    head_bytes: int

    @property
    def compression_name(self) -> str:
        """The compression's usual name: `zstd`, `none` or the number."""
        return _COMPRESSION.get(self.compression, f"compression {self.compression}")


def decode_transaction_payload(body: bytes) -> TransactionPayload:
    """Decode the head of a Transaction_payload event.

    Layout: (type packed, length packed, value packed)*: 1 payload size, 2 compression, 3 uncompressed size, 0 end; then the payload
    (not read). Unknown types are skipped. Raises: Truncated.
    """
    fields = Fields(body)
    numbers = {1: 0, 2: 255, 3: 0}
    while (kind := fields.lenenc_int()) != 0:
        value = fields.take(fields.lenenc_int())
        if kind in numbers:
            numbers[kind] = Fields(value).lenenc_int()
    return TransactionPayload(numbers[1], numbers[2], numbers[3] or numbers[1], fields.offset)
