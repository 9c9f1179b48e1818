"""Whoever answers the feed's questions in the source's place gets a named stop for it, and neither a file nor memory."""

import resource
import socket
from collections.abc import Sequence
from typing import Final

import pytest

from relay.feed.feed_config import FeedSource
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.snapshot.source_rows import SourceRows
from tests.support.hostile_server import HostileServer, _packet, _send

OK: Final = b"\0\0\0\2\0\0\0"
FILE: Final = b"\xfb/etc/hostname"
COLUMN: Final = b"\x03def\0\0\0\x01a\0\x0c\x21\0\0\1\0\0\xfd\0\0\0\0\0"
ANSWERS: Final = {
    "asks for a file": FILE,
    "empty": b"",
    "a count of columns that is cut off": b"\xfe\x01",
    "no count of columns": b"\xfb",
}


def opened(port: int) -> SourceRows:
    return SourceRows(FeedSource(host="127.0.0.1", port=port, user="feed", password="feed-pw"))


def asked(script: Sequence[bytes]) -> str:
    with HostileServer(script=script) as server, pytest.raises(FeedStop) as caught, opened(server.port) as source:
        source.server_id()
    assert not any(b"localhost" in packet or socket.gethostname().encode() in packet for packet in server.received[1:])
    return f"{caught.value}"


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("fine_before", range(1, 6))
def test_an_answer_that_cannot_be_is_a_named_stop(answer: bytes, fine_before: int) -> None:
    said = asked([*[OK] * fine_before, answer])
    assert said.startswith(("source_unreachable", "source_refused"))


@pytest.mark.parametrize("fine_before", range(5))
def test_a_packet_that_is_larger_than_any_answer_is_not_read(fine_before: int) -> None:
    said = asked([*[OK] * fine_before, bytes((1 << 24) - 1)])
    assert "a packet of 16777215 bytes" in said or "is longer than 1 MiB in one packet" in said


class WithoutEnd(HostileServer):
    """Has columns, or rows, without end."""

    rows = False

    def _ask(self, link: socket.socket, number: int, packet: bytes) -> None:
        for _ in range(2):  # the login, and SET NAMES
            _send(link, number + 1, OK)
            number, _question = _packet(link)
        many = b"\x01" if self.rows else b"\xfd\xff\xff\xff"
        _send(link, number + 1, many)
        number += 2
        if self.rows:
            for payload in (COLUMN, b"\xfe\0\0\2\0"):
                _send(link, number, payload)
                number += 1
        payload = b"\xfa" + b"x" * 250 if self.rows else COLUMN
        while True:
            pieces = [len(payload).to_bytes(3, "little") + bytes([(number + n) & 255]) + payload for n in range(1024)]
            link.sendall(b"".join(pieces))
            number += 1024


@pytest.mark.parametrize("rows", [False, True])
def test_columns_and_rows_without_end_are_not_read_to_it(rows: bool) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    server = WithoutEnd()
    server.rows = rows
    with server, pytest.raises(FeedStop) as caught:
        opened(server.port)
    assert ("is longer than 16 MiB in all" if rows else "more than 8192 columns") in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10
