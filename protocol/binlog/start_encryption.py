"""Start_encryption of MariaDB (164): the rest of a file at rest is cipher text."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class StartEncryption:
    """Scheme 1 is AES; the key itself is never in a binlog."""

    scheme: int
    key_version: int


def decode_start_encryption(body: bytes) -> StartEncryption:
    """Decode a Start_encryption event: scheme u8 | key version u32 | nonce 12. Raises: Truncated."""
    fields = Fields(body)
    scheme, key_version = fields.u8(), fields.u32()
    fields.skip(12)
    return StartEncryption(scheme, key_version)
