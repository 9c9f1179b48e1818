"""A source's answers that no source gives: each is an error of that source, by name, and none a fault of the relay."""

import resource
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from pydantic import SecretStr

from relay.config import ServerSource
from relay.upstream.source import connection as connection_module
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from tests.support import fake_source
from tests.support.fake_source import PASSWORD, USER, Dump, FakeSource

Ask = Callable[[SourceConnection], Awaitable[Any]]
Serve = Callable[[Dump], None]


def peak_bytes() -> int:
    """The most that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.fixture
def source() -> Iterator[FakeSource]:
    with FakeSource({"mysql-bin.000001": b""}, "mariadb", "10.11.6-MariaDB-log") as fake:
        yield fake


async def connected(source: FakeSource, timeout_s: float = 2) -> SourceConnection:
    settings = ServerSource(
        host="127.0.0.1",
        port=source.port,
        user=USER,
        password=SecretStr(PASSWORD),
        server_id=4242,
        connect_timeout_s=timeout_s,
    )
    return await open_source(settings)


@pytest.mark.parametrize(
    ("greets_as", "variables", "version", "flavour"),
    [
        ("mariadb", {}, "10.11.6-MariaDB-log", "mariadb"),
        ("mariadb", {}, "10.5.99", "mariadb"),
        ("mariadb", {}, "5.7.99", "mariadb"),
        ("mysql", {"gtid_domain_id": "0", "binlog_annotate_row_events": "ON"}, "10.5.99", "mariadb"),
        ("mysql", {"binlog_annotate_row_events": "OFF"}, "5.5.68-MariaDB-log", "mariadb"),
        ("mysql", {}, "5.7.44-log", "mysql"),
        ("mysql", {}, "8.0.42-not-MariaDB", "mysql"),
    ],
)
async def test_a_source_is_a_mariadb_by_its_greeting_or_its_variables_whatever_its_version(
    greets_as: str, variables: dict[str, str], version: str, flavour: str
) -> None:
    with FakeSource({"mysql-bin.000001": b""}, greets_as, version, variables=variables) as source:
        connection = await connected(source)
        assert (connection.facts.flavour, connection.facts.version) == (flavour, version)
        connection.close()


@pytest.mark.parametrize(
    ("statement", "row", "ask"),
    [
        ("SHOW BINARY LOGS", ["mysql-bin.000001"], SourceConnection.binlogs),
        ("SHOW BINARY LOGS", ["mysql-bin.000001", "many"], SourceConnection.binlogs),
        ("SHOW MASTER STATUS", ["mysql-bin.000001", "far"], SourceConnection.newest_position),
        ("SHOW REPLICAS", ["seven", "host", "3306", "1"], SourceConnection.replicas),
        ("SHOW REPLICAS", ["7"], SourceConnection.replicas),
        ("SHOW PROCESSLIST", ["7"], SourceConnection.dumping_hosts),
    ],
)
async def test_rows_of_another_shape(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch, statement: str, row: Sequence[str], ask: Ask
) -> None:
    answer = fake_source._Conversation._answer

    def answered(self: fake_source._Conversation, said: str) -> None:
        if said == statement:
            self._rows([f"c{number}" for number in range(len(row))], [row])
        else:
            answer(self, said)

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    connection = await connected(source)
    with pytest.raises(UpstreamError, match=r"the answer of 127\.0\.0\.1:") as caught:
        await ask(connection)
    assert caught.value.kind is FailureKind.SETUP
    connection.close()


@pytest.mark.parametrize("statement", ["SELECT @@global.server_id", "SHOW GLOBAL VARIABLES LIKE 'log_bin'"])
async def test_a_source_that_asks_for_a_file_of_this_machine_gets_none(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    answer = fake_source._Conversation._answer
    got: list[bytes] = []

    def answered(self: fake_source._Conversation, said: str) -> None:
        if said != statement:
            answer(self, said)
            return
        self.send(b"\xfb/etc/passwd")
        while data := self._link.recv(4096):
            got.append(data)

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    with pytest.raises(UpstreamError, match=r"the answer of 127\.0\.0\.1:") as caught:
        await connected(source)
    assert (caught.value.kind, got) == (FailureKind.SETUP, [])


@pytest.mark.parametrize(
    "statement", ["SHOW GLOBAL VARIABLES LIKE 'server_uuid'", "SHOW GLOBAL VARIABLES LIKE 'log_bin'"]
)
async def test_a_source_that_says_no_value_of_a_variable(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    answer = fake_source._Conversation._answer

    def answered(self: fake_source._Conversation, said: str) -> None:
        if said == statement:
            self._rows(["Variable_name"], [["x"]])
        else:
            answer(self, said)

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    source.flavour, source.version = "mysql", "5.6.24-log"
    with pytest.raises(UpstreamError, match=r"the answer of 127\.0\.0\.1:.* to who it is is none"):
        await connected(source)


def long_row(self: fake_source._Conversation) -> None:
    self.send(bytes(2 << 20))


def endless_packet(self: fake_source._Conversation) -> None:
    part = bytes((1 << 24) - 1)
    for number in range(1, 65):
        self.send_raw(b"\xff\xff\xff" + bytes([number]) + part)


def _columns(self: fake_source._Conversation, count: int) -> None:
    self.send(bytes([count]) if count < 251 else b"\xfc" + count.to_bytes(2, "little"))
    for _ in range(count):
        self.send(b"\3def\0\0\0\1x\0" + struct.pack("<BHIBHB2x", 12, 33, 1024, 253, 0, 0))
    self.send(b"\xfe\0\0\2\0")


def _rows(self: fake_source._Conversation, row: bytes, most_bytes: int) -> None:
    for _ in range(most_bytes // (256 * (len(row) + 4))):
        raw = b"".join(len(row).to_bytes(3, "little") + bytes([(self._sequence + n) & 255]) + row for n in range(256))
        self.send_raw(raw)


def endless_rows(self: fake_source._Conversation) -> None:
    _columns(self, 1)
    _rows(self, b"\xfd" + (60_000).to_bytes(3, "little") + b"7" * 60_000, 256 << 20)


def endless_small_rows(self: fake_source._Conversation) -> None:
    """NULLs: a byte on the wire, a tuple of a hundred in memory."""
    _columns(self, 100)
    _rows(self, b"\xfb" * 100, 16 << 20)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (endless_packet, "longer than 1 MiB in one packet"),
        (long_row, "longer than 1 MiB in one packet"),
        (endless_rows, "longer than 16 MiB in all"),
        (endless_small_rows, "longer than 16 MiB in all"),
    ],
)
@pytest.mark.parametrize("statement", ["SELECT @@global.server_id", "SHOW PROCESSLIST"])
async def test_an_answer_without_an_end_is_read_up_to_its_bound(
    source: FakeSource,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[fake_source._Conversation], None],
    why: str,
    statement: str,
) -> None:
    ordinary = fake_source._Conversation._answer
    sent: list[BaseException | None] = []

    def answered(self: fake_source._Conversation, said: str) -> None:
        if said != statement:
            ordinary(self, said)
            return
        try:
            answer(self)
        except OSError as error:
            sent.append(error)
            raise
        sent.append(None)

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    held = peak_bytes()
    with pytest.raises(UpstreamError, match=why) as caught:
        connection = await connected(source)
        await connection.dumping_hosts()
    assert caught.value.kind is FailureKind.NETWORK, "somebody in between must not end the relay"
    assert caught.value.name == "answer_too_long"
    assert peak_bytes() - held < 96 << 20, "more than the bound was held"


async def test_an_answer_of_more_columns_than_any_is_none(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(self: fake_source._Conversation, _said: str) -> None:
        _columns(self, 4096)

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    with pytest.raises(UpstreamError, match="4096 columns"):
        await connected(source)


async def test_a_source_may_have_as_many_binlogs_as_an_archive(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = fake_source._Conversation._answer

    def answered(self: fake_source._Conversation, said: str) -> None:
        if said != "SHOW BINARY LOGS":
            ordinary(self, said)
            return
        _columns(self, 2)
        rows = (b"\x10mysql-bin.%06d\x0a1073741824" % number for number in range(100_000))
        raw = b"".join(b"\x1c\0\0" + bytes([(self._sequence + at) & 255]) + row for at, row in enumerate(rows))
        self.send_raw(raw)
        self.skip_sequence(100_000)
        self.send(b"\xfe\0\0\2\0")

    monkeypatch.setattr(fake_source._Conversation, "_answer", answered)
    monkeypatch.setattr(connection_module, "_LIST_TIMEOUT_S", 30.0)
    connection = await connected(source, 30)
    found = await connection.binlogs()
    connection.close()
    assert found is not None
    assert (len(found), found[-1]) == (100_000, ("mysql-bin.099999", 1 << 30))


async def all_events(connection: SourceConnection) -> None:
    async for _event in connection.events_up_to_end("mysql-bin.000001", 4):
        pass


async def first_file(connection: SourceConnection) -> None:
    await connection.file_for_position("0-1-1", "the archive")


@pytest.mark.parametrize("ask", [all_events, first_file])
@pytest.mark.parametrize("packet", [b"", b"\0abc", b"\xff", b"\xff\x01"])
async def test_packets_of_a_dump_that_hold_no_event(source: FakeSource, packet: bytes, ask: Ask) -> None:
    def serve(dump: Dump) -> None:
        dump.packet(packet)
        dump.packet(b"\xfe\0\0\2\0")

    source.serve = serve
    connection = await connected(source)
    with pytest.raises(UpstreamError) as caught:
        await ask(connection)
    assert caught.value.kind in (FailureKind.SETUP, FailureKind.NETWORK)
    connection.close()


@pytest.mark.parametrize("name", ["../../etc/passwd", "binlog", ""])
async def test_a_first_file_whose_name_is_no_binlogs(source: FakeSource, name: str) -> None:
    source.serve = lambda dump: dump.rotate(name)
    connection = await connected(source)
    with pytest.raises(UpstreamError, match=r"the answer of 127\.0\.0\.1:.* is none") as caught:
        await first_file(connection)
    assert caught.value.kind is FailureKind.SETUP
    connection.close()


async def test_a_place_beyond_what_the_dump_command_can_say_is_refused_by_name(source: FakeSource) -> None:
    connection = await connected(source)
    with pytest.raises(UpstreamError, match="beyond 4 GiB") as caught:
        async for _event in connection.events_up_to_end("mysql-bin.000001", 1 << 32):
            pass
    assert caught.value.kind is FailureKind.POSITION_GONE
    connection.close()
