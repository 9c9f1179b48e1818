"""Gtid_list of MariaDB (163): the last GTID of every domain before this file."""

from protocol.binlog.fields import Fields


def decode_gtid_list(body: bytes) -> str:
    """Decode a Gtid_list event into `domain-server-sequence` texts, "" for an empty list.

    Layout: count u32 (low 28 bits; flags above) | per entry: domain u32, server u32, sequence u64.
    Raises: Truncated.
    """
    fields = Fields(body)
    texts = []
    for _ in range(fields.u32() & 0x0FFF_FFFF):
        domain, server, sequence = fields.u32(), fields.u32(), fields.u64()
        texts.append(f"{domain}-{server}-{sequence}")
    return ",".join(texts)
