"""Why another source would not do: each verdict says what happened there, and the next step."""

import contextlib
import errno
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql.err
import pytest
import structlog.testing
from pydantic import SecretStr

from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.archived_file import SourceIdentity
from relay.config import ServerSource
from relay.upstream.control import SourceControl
from relay.upstream.source.connect_errors import Entering, refused_entry
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.fake_source import PASSWORD, USER, FakeSource
from tests.support.free_port import free_port
from tests.support.generation_filling import A, B, two_generations

FILE = "mysql-bin.000001"
BUILT = BinlogBuilder().ddl().transaction(10, 40)
SHORT = BinlogBuilder().ddl()
OTHER_BYTES = BinlogBuilder().ddl().transaction(10, 41)
OWN_UUID = "99999999-2222-3333-4444-555555555555"
UUID = FakeSource.server_uuid
ANOTHER = {"server_uuid": "aaaaaaaa-2222-3333-4444-555555555555", "server_id": 2}


def candidate(port: int, **more: Any) -> ServerSource:
    facts = {"host": "127.0.0.1", "user": USER, "password": SecretStr(PASSWORD), "server_id": 4242, **more}
    return ServerSource(port=port, connect_timeout_s=0.5, **facts)


FOLLOWED = candidate(1)


async def verdict(archive: Archive, other: ServerSource) -> str:
    """What the look for another source says of this one."""
    control = SourceControl(archive, FOLLOWED, OWN_UUID, lambda error: None, candidates=(FOLLOWED, other))
    verdicts, first = await control._failover._ask_others(FOLLOWED)
    ((where, said),) = verdicts.items()
    assert where == f"{other.host}:{other.port}"
    assert (first is not None) is said.startswith("would do: ")
    return said


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    """The one file of a source without GTIDs, server_id 1."""
    generation = await Generation.open(tmp_path / "archive")
    generation.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, UUID))
    await generation.begin_file(FILE)
    await append_all(generation, BUILT.data)
    yield Archive.of(generation)
    await generation.close()


# --- what is no MySQL server, or none that answers --------------------------------------------------------------------


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], object]) -> Iterator[int]:
    """Calls `talk` with the first connection, which stays until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        links: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                link, _ = listener.accept()
                links.append(link)
                talk(link)

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(listener.getsockname()[1])
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for link in links:
            link.close()


def reset(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def says(first: bytes) -> Callable[[socket.socket], object]:
    return lambda link: link.sendall(first)


def says_and_closes(first: bytes) -> Callable[[socket.socket], object]:
    def talk(link: socket.socket) -> None:
        link.sendall(first)
        link.close()

    return talk


OTHER_SERVICE = "Check source.host and source.port: another service listens there"
NOT_MYSQL = "answers with something that is not the MySQL protocol: "


@pytest.mark.parametrize(
    ("talk", "what", "next_step"),
    [
        (
            says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            NOT_MYSQL + "its first packet has the number 80, not 0; it begins with b'HTTP/1.1 400 Bad Request'…",
            OTHER_SERVICE,
        ),
        (
            says_and_closes(b"E\0\0\0 SFATAL\0"),
            NOT_MYSQL
            + "its first packet begins with 0x20, a greeting with 0x0a; it begins with b'E\\x00\\x00\\x00 SFATAL\\x00'",
            OTHER_SERVICE,
        ),
        (says(bytes.fromhex("050000000b08051a00")), NOT_MYSQL + "it greets as MySQL's X Protocol does", OTHER_SERVICE),
        (says(b"\x08\0\0\0\x0a8.4.3\0\0"), NOT_MYSQL + "its greeting cannot be read, ", OTHER_SERVICE),
        (lambda link: None, "did not answer within 0.5 s: it took the connection, and it sent nothing", "as HTTP does"),
        (
            says(b"\x4a\0\0\0\x0a8.4"),
            "it took the connection, and it began with b'J\\x00\\x00\\x00\\n8.4' and went no further",
            "hangs or is overloaded",
        ),
        (lambda link: link.close(), "took the connection and closed it without a word", "a proxy may have no server"),
        (reset, "closed it without a word (Connection reset by peer)", "a proxy may have no server"),
        (
            says_and_closes(b"\x4a\0\0\0\x0a8.4"),
            "closed the connection in the middle of its greeting, b'J\\x00\\x00\\x00\\n8.4'",
            "error log of the server",
        ),
        (
            says(b"\x17\0\0\0\xff\x10\x04Too many connections"),
            "takes no connection of ours: 1040 Too many connections",
            "Raise max_connections there",
        ),
        (
            says(b"\x12\0\0\0\xff\x69\x04Host is blocked"),
            "takes no connection of ours: 1129 Host is blocked",
            "mysqladmin flush-hosts",
        ),
        (
            says(b"\x16\0\0\0\xff\x6a\x04Host is not allowed"),
            "refuses the user 'repl': 1130 Host is not allowed",
            "On the source: CREATE USER 'repl'@'<relay host>'",
        ),
    ],
)
async def test_what_answers_in_the_place_of_a_source_is_told_as_what_it_is(
    archive: Archive, talk: Callable[[socket.socket], object], what: str, next_step: str
) -> None:
    with listening(talk) as port:
        said = await verdict(archive, candidate(port))
    assert said.startswith("would not do: ") and what in said and next_step in said


async def test_nobody_at_the_port_cannot_be_reached(archive: Archive) -> None:
    other = candidate(free_port())
    assert await verdict(archive, other) == (
        f"would not do: the source 127.0.0.1:{other.port} cannot be reached: Connection refused. "
        "Check source.host, source.port and the firewall, and that the server runs."
    )


async def test_a_name_that_nobody_knows_is_told_so(archive: Archive) -> None:
    said = await verdict(archive, candidate(3306, host="no-such-host.invalid"))
    assert "cannot be reached: " in said and "2003" not in said and "[Errno" not in said


# --- servers that do not let us in, or are no source for this archive -------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "settings", "what", "next_step"),
    [
        ({"password": "another"}, {}, "refuses the user 'repl': 1045 Access denied", "Check source.user and its password"),
        ({}, {"ssl_mode": "required"}, 'offers no TLS, and source.ssl_mode is "required"', "Give the source a certificate"),
        ({}, {"ssl_mode": "verify_ca", "ssl_ca": "/no/such"}, "source.ssl_ca: /no/such cannot be used", "It must hold"),
        ({}, {"password": None, "password_file": "/no/such"}, "password cannot be read", "Check source.password_file"),
        ({"variables": {"log_bin": "OFF"}}, {}, "writes no binlog (log_bin is OFF)", "Start it with --log-bin"),
        ({"query_error": (1148, "not by this proxy")}, {}, "refuses what every source answers: 1148", "A proxy in front"),
        ({"server_id": 4242}, {}, "is the source's own server_id", "Give source.server_id a number"),
        (
            {"flavour": "mariadb", "version": "10.11.6-MariaDB"}, {},
            "is a mariadb server; the archive holds binlogs of a mysql one", "Correct source.host",
        ),
        (
            {"files": {FILE: bytes(SHORT.data)}}, {},
            f"came back shorter: its {FILE} ends at {SHORT.size}, the archive holds it up to {BUILT.size}",
            "Decide which side is right",
        ),
        (
            {**ANOTHER, "files": {FILE: bytes(SHORT.data)}}, {},
            "It could be gone on with by GTID, but ", "Without GTIDs a source can only be exchanged for one with the same",
        ),
        (
            {**ANOTHER, "files": {FILE: bytes(OTHER_BYTES.data)}}, {},
            "is not the archived one: at offset ", "Without GTIDs a source can only be exchanged for one with the same",
        ),
    ],
)  # fmt: skip
async def test_a_server_that_would_not_do_is_told_by_its_reason(
    archive: Archive, facts: dict[str, Any], settings: dict[str, Any], what: str, next_step: str
) -> None:
    with FakeSource(**{"files": {FILE: bytes(BUILT.data)}, **facts}) as other:
        said = await verdict(archive, candidate(other.port, **settings))
    assert said.startswith("would not do: ") and what in said and next_step in said


async def test_an_account_without_the_privilege_to_replicate_is_told_so(archive: Archive) -> None:
    with FakeSource({FILE: bytes(BUILT.data)}, **ANOTHER) as other:  # type: ignore[arg-type]
        other.serve = lambda dump: (dump.error(1227, "Access denied; you need REPLICATION SLAVE"), dump.until_gone())
        said = await verdict(archive, candidate(other.port))
    assert "does not let 'repl' replicate: 1227" in said
    assert "GRANT REPLICATION SLAVE ON *.* TO 'repl'@'<relay host>'" in said


@pytest.mark.parametrize(
    ("executed", "purged", "what", "next_step"),
    [
        (f"{A}:1-9", "", f"lacks transactions that the archive has: {B}:1-2", "Wait until the source has applied them"),
        (f"{A}:1-9:20,{B}:2", "", f"lacks transactions that the archive has: {B}:1", "or name another source"),
        (f"{A}:1-20,{B}:1-2", f"{A}:1-12", f"has purged binlogs with transactions that the archive lacks: {A}:10-12", "Name"),
    ],
    ids=["behind", "diverged", "purged"],
)  # fmt: skip
async def test_a_server_with_other_transactions_is_told_by_them(
    tmp_path: Path, executed: str, purged: str, what: str, next_step: str
) -> None:
    archive = await two_generations(tmp_path)
    variables = {"gtid_mode": "ON", "gtid_owned": "", "gtid_executed": executed, "gtid_purged": purged}
    try:
        with FakeSource({FILE: bytes(BUILT.data)}, server_uuid=OWN_UUID, server_id=7, variables=variables) as other:
            text = "Could not find first log file name in binary log index file"
            other.serve = lambda dump: (dump.error(1236, text), dump.until_gone())
            said = await verdict(archive, candidate(other.port))
    finally:
        await archive.close()
    assert said.startswith("would not do: ") and what in said and next_step in said


async def test_the_archives_own_server_at_another_address_would_do(archive: Archive) -> None:
    with FakeSource({FILE: bytes(BUILT.data)}) as other:
        said = await verdict(archive, candidate(other.port))
    assert said == f"would do: at {FILE}:{BUILT.size}; it is the archive's own server"


async def test_another_server_with_the_same_binlogs_would_do(archive: Archive) -> None:
    with FakeSource({FILE: bytes(BUILT.data)}, **ANOTHER) as other:  # type: ignore[arg-type]
        assert await verdict(archive, candidate(other.port)) == f"would do: at {FILE}:{BUILT.size}"


# --- what is not the candidate's fault --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ArchiveCorrupt("bytes that cannot be", file=FILE, offset=4, advice="Run it."), "could not be compared with the archive: "),
        (ZeroDivisionError("a bug"), "was not looked at, by a fault of binlog-relay (ZeroDivisionError: a bug)"),
    ],
)  # fmt: skip
async def test_a_look_that_fails_on_our_side_says_so_and_ends_no_other(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    fine = candidate(2)

    async def examine(self: SourceControl, source: ServerSource) -> str:
        if source is fine:
            return "at its end"
        raise error

    monkeypatch.setattr(SourceControl, "_examine", examine)
    control = SourceControl(archive, FOLLOWED, OWN_UUID, lambda error: None, candidates=(FOLLOWED, candidate(3), fine))
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            verdicts, first = await control._failover._ask_others(FOLLOWED)
    assert verdicts["127.0.0.1:3"].startswith(said)
    assert verdicts["127.0.0.1:2"] == "would do: at its end" and first is fine
    told = [(line["event"], line["exc_info"]) for line in logs if line["log_level"] == "error"]
    assert told == ([("candidate_not_looked_at", error)] if isinstance(error, ZeroDivisionError) else [])


def test_a_socket_that_is_closed_before_its_options_are_set_was_reset_by_the_source() -> None:
    error = pymysql.err.OperationalError(2003, "Can't connect to MySQL server on '127.0.0.1'")
    error.__cause__ = OSError(errno.EBADF, os.strerror(errno.EBADF))
    said = str(refused_entry(error, "db:3306", "repl", Entering(), tls=False))
    assert "db:3306 took the connection and closed it without a word (Connection reset by peer)" in said
