"""The first bytes of whoever answers: a MySQL server's, or why they cannot be."""

import pytest

from protocol.auth.greeting import why_no_greeting

GREETING = b"\x4a\0\0\0\x0a8.4.3\0"


@pytest.mark.parametrize("first", [GREETING, b"\x17\0\0\0\xff\x10\x04Too many connections", b"\0\x10\0\0\x0a"])
def test_what_a_server_sends_first_is_taken_for_it_however_little_has_come(first: bytes) -> None:
    assert [why_no_greeting(first[:size]) for size in range(len(first) + 1)] == [None] * (len(first) + 1)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "its first packet has the number 80, not 0"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "its first packet has the number 45, not 0"),
        (bytes(64), "its first packet would have 0 bytes"),
        (b"\x01\x10\0\0\x0a", "its first packet would have 4097 bytes"),
        (b"E\0\0\0 SFATAL\0", "its first packet begins with 0x20, a greeting with 0x0a"),
        (
            b"\x05\0\0\0\x0b\x08\x05\x1a\0",
            "it greets as MySQL's X Protocol does, which has a port of its own (mysqlx_port)",
        ),
        (b"\x0c\0\0\0\x093.20.29\0", "it greets with version 9 of the protocol, as servers before MySQL 3.21 did"),
    ],
)
def test_what_it_cannot_send_is_told_as_soon_as_it_shows(first: bytes, why: str) -> None:
    assert why_no_greeting(first) == why
    assert why_no_greeting(first[:5]) == why
    assert why_no_greeting(first[:3]) is None
