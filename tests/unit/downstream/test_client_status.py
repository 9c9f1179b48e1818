"""What is seen of one client: who it is, what it asked for, which files it needs."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import Channel
from protocol.commands import BinlogDump, DumpFlag, RegisterSlave
from protocol.position import Position
from protocol.resultset import Rows
from protocol.source_side.connection_states import State
from protocol.source_side.connection_terms import LoginTerms
from protocol.source_side.machine import SourceSide
from protocol.statements import SourceFacts
from relay.archive.archive import Archive
from relay.downstream.connection.client import Client
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.stream.acknowledgements import Acknowledgements, AcknowledgementSums
from relay.downstream.stream.dump import Dump
from tests.support.login_client import LoginClient

FIRST, SECOND, THIRD = (f"mysql-bin.00000{number}" for number in (1, 2, 3))
CURRENT = SimpleNamespace(end=Position(THIRD, 900), number=2)
ENDED = SimpleNamespace(end=Position(THIRD, 900), number=1)
ARCHIVE = SimpleNamespace(current=CURRENT, holds=lambda generation: generation is ENDED)


def a_client(machine: SourceSide | None = None) -> Client:
    client = Client()
    client.machine = machine
    return client


def status_of(
    client: Client, dump: Dump | None = None, acknowledgements: Acknowledgements | None = None
) -> ClientStatus:
    return client.status(cast(Archive, ARCHIVE), dump, acknowledgements)


def logged_in(*, admin: bool = False) -> Client:
    account = Account.with_password("repl", "s3cret", admin=admin)
    machine = SourceSide(
        connection_id=7,
        facts=SourceFacts("mysql", "5.6.24-log", 1),
        login=LoginTerms(Accounts([account], secret=bytes(32)), lambda count: bytes(range(1, count + 1))),
        host="192.0.2.1",
        now=100.0,
        wall_offset_s=0.0,
    )
    LoginClient(machine, plugin="mysql_native_password").run()
    assert machine.state is State.COMMAND_EXPECTED
    return a_client(machine)


def dumping(file: str = SECOND, offset: int = 400, generation: Any = CURRENT) -> Dump:
    return cast(
        Dump,
        SimpleNamespace(
            position=Position(file, offset), generation=generation, sent_bytes=396, has_sent_all=offset >= 900
        ),
    )


def acknowledging(asked: int, acked: str | None) -> Acknowledgements:
    found = Acknowledgements(AcknowledgementSums(), lambda _name: True)
    if acked is not None:
        found.ask(Position(acked, 300), 1, 0.0)
        found.take(Position(acked, 300), 0.0)
    found.ask(Position(SECOND, 400), asked, 0.0)
    return found


async def test_nothing_is_known_of_a_peer_that_was_not_greeted() -> None:
    client = status_of(a_client())
    assert (client.user, client.is_admin, client.database, client.server_id, client.replica_uuid) == (
        "", False, None, 0, ""
    )  # fmt: skip
    assert (client.channel, client.waits_for_position, client.sent_position) == (Channel(), False, None)
    assert (client.needed_file, client.needed_generation, client.is_at_end, client.sent_bytes) == (
        None, None, False, 0
    )  # fmt: skip


@pytest.mark.parametrize("admin", [False, True])
async def test_the_login_says_who_it_is(admin: bool) -> None:
    client = logged_in(admin=admin)
    assert (client.user, client.is_admin) == ("repl", admin)
    status = status_of(client)
    assert (status.user, status.is_admin, status.facts.version) == ("repl", admin, "5.6.24-log")
    assert status.encode(Rows(("a",), ((1,),))).payloads


async def test_what_it_says_of_itself_is_cut_and_cleaned() -> None:
    client = logged_in()
    assert client.machine is not None
    session = client.machine.session
    session.database = "d" * 100
    session.user_variables["slave_uuid"] = "u\n\x1b[31m" + "ü" + "x" * 50
    assert status_of(client).database == "d" * 64
    assert client.replica_uuid == "u[31m" + "x" * 28, "36 characters are looked at"
    session.user_variables["replica_uuid"] = "newer"
    assert client.replica_uuid == "newer"


async def test_a_request_takes_along_what_was_said_before_it() -> None:
    client = logged_in()
    assert client.machine is not None
    client.machine.session.user_variables["slave_uuid"] = "uuid"
    request = client.requests_dump(BinlogDump(SECOND, 4, DumpFlag(0), 9), 3)
    assert (client.server_id, client.requested_position, client.request_number) == (9, (SECOND, 4), 3)
    assert (request.uuid, request.registered, request.account) == ("uuid", None, client.machine.account)
    replica = RegisterSlave(77, "host", "user", 3306)
    client.machine.replica = replica
    client.registers(replica)
    assert (client.server_id, client.registered) == (77, replica)
    assert client.requests_dump(BinlogDump(SECOND, 4, DumpFlag(0), 9), 4).registered == 77


async def test_a_request_that_is_not_decided_needs_where_it_is_to_begin() -> None:
    client = logged_in()
    assert client.machine is not None
    client.requests_dump(BinlogDump("", 4, DumpFlag(0), 9), 1)
    status = status_of(client)
    assert (status.waits_for_position, status.needed_file) == (False, None)
    client.machine.state = State.DUMP_REQUESTED
    status = status_of(client)
    assert (status.waits_for_position, status.needed_file, status.needed_generation) == (True, "", None)


@pytest.mark.parametrize(
    ("asked", "acked", "needed"),
    [
        (None, None, SECOND),  # no semi-sync: what it reads
        (0, None, SECOND),
        (0, FIRST, SECOND),  # it has acknowledged everything: it will speak of nothing older
        (2, FIRST, FIRST),
        (2, None, THIRD),  # it has acknowledged nothing of this stream: where that began
    ],
)
async def test_a_stream_needs_what_is_read_or_may_still_be_acknowledged(
    asked: int | None, acked: str | None, needed: str
) -> None:
    client = logged_in()
    client.requested_position = (THIRD, 4)
    acknowledgements = acknowledging(asked, acked) if asked is not None else None
    status = status_of(client, dumping(generation=ENDED), acknowledgements)
    assert status.needed_file == needed
    assert status.needed_generation == (None if asked else 1)
    assert status.sent_position == (SECOND, 400)
    assert status.acknowledged_position == ((acked, 300) if acked else None)
    assert status.sent_bytes == 396


@pytest.mark.parametrize(
    ("dump", "at_end"),
    [
        (dumping(THIRD, 900), True),
        (dumping(THIRD, 899), False),
        (dumping(THIRD, 900, ENDED), False),  # the end of a generation is not that of all there is
        (None, False),
    ],
)
async def test_a_stream_is_at_the_end_of_what_is_followed_now(dump: Dump | None, at_end: bool) -> None:
    assert status_of(logged_in(), dump).is_at_end is at_end
