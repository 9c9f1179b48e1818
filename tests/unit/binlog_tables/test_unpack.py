"""Compressed transactions: all of their events come out, or it is said that they do not."""

import struct
from collections.abc import Iterator

import pytest

from relay.binlog_tables.decode.unpack import payload_events
from tests.support.event_stream import query_body, raw_event

zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed: pip install .")
EVENT = raw_event(2, query_body("INSERT INTO t VALUES ('" + "x" * 1000 + "')"), checksum=False)


def body(stream: bytes, uncompressed: int, compression: int = 0) -> bytes:
    """A Transaction_payload's body."""
    fields = (1, len(stream)), (2, compression), (3, uncompressed)
    head = b"".join(bytes([kind, 9]) + b"\xfe" + struct.pack("<Q", number) for kind, number in fields)
    return head + b"\0" + stream


def packed(events: bytes) -> bytes:
    return bytes(zstandard.ZstdCompressor().compress(events))


def opened(data: bytes) -> list[bytes | None]:
    return [None if events is None else bytes(events) for events in payload_events(data)]


def test_a_transaction_comes_out_packed_or_not() -> None:
    assert opened(body(packed(EVENT * 3), len(EVENT) * 3)) == [EVENT * 3]
    assert opened(body(EVENT * 3, len(EVENT) * 3, 255)) == [EVENT * 3]


def test_a_stream_that_ends_behind_a_whole_event_is_not_the_whole_transaction() -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    first = compressor.compress(EVENT) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    compressor.compress(EVENT)
    compressor.flush()
    assert opened(body(first, len(EVENT) * 2)) == [EVENT, None]


def test_more_events_than_were_announced_are_not_read() -> None:
    assert opened(body(packed(EVENT * 2), len(EVENT))) == [None]


def test_an_event_that_never_ends_does_not_hold_what_is_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def pieces(packed: bytes) -> Iterator[bytes]:
        for piece in (EVENT + EVENT[:9] + b"\xff\xff\xff\xff" + EVENT[13:], bytes(1000), bytes(1000)):
            taken.append(piece)
            yield piece

    monkeypatch.setattr("relay.binlog_tables.decode.unpack.payload_pieces", pieces)
    assert opened(b"") == [EVENT, None]
    assert len(taken) == 1
