"""A mirror and views behind one listener: what a connection sees is decided by its account, when it logs in."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pymysql
import pytest

from protocol.auth.account import Account
from protocol.auth.credentials import Credentials
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.clients import Clients
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState
from relay.downstream.served_archive import ServedArchive, ViewOrigin
from relay.downstream.server import DownstreamServer
from relay.service.shown_gtids import ShownGtids, ShownViewGtids
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import GtidPolicy, ViewSettings
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import EVERY_CAUSE, WaitCounts
from relay.view.unopened_view import UnopenedView
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.console_fakes import FakeSource
from tests.support.generation_filling import append_files, mysql_series
from tests.support.replica_client import PASSWORD, USER, ReplicaClient
from tests.support.served_generations import transactions

T = TypeVar("T")
SOURCE_UUID = "11111111-2222-3333-4444-555555555555"
ASSIGNED = "aaaaaaaa-1111-1111-1111-111111111111"
FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
SERIAL = "Binlog_relay_view_serial_"
NON_BLOCK = 1


MIXED = StopReason("statement_mixes_engines", "UPDATE of i and m writes two engines.", 1785, "Skip it.")
STOP = ViewStop(SECOND, 120, 120, MIXED)


@dataclass
class Status:
    source: Position | None = Position(FIRST, 900)  # noqa: RUF009 - a tuple
    behind_bytes: int = 77
    stop: ViewStop | None = None
    source_generation: int | None = None
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None

    @property
    def needed(self) -> Position | None:
        return self.source


@dataclass
class HandMadeView:
    """An archive that somebody else has written, in place of one that is made from the mirror."""

    archive: Archive
    settings: ViewSettings
    status: Status = field(default_factory=Status)

    async def skip(self, file: str, offset: int, by: str) -> None:
        raise AssertionError("nobody asks for it")


class Served:
    """A mirror of a source without GTIDs, and views beside it."""

    def __init__(self, mirror: Archive, directory: Path) -> None:
        self.mirror = mirror
        self.directory = directory
        self.options = ListenOptions(position_wait_s=0.3, max_connections=20)
        self.clients = Clients(self.options)
        self.control = FakeSource()
        self.console = Console(mirror, self.control, self.clients)
        state = SourceState(ShownGtids(mirror, lambda: None))
        accounts = [account(USER), account("root", admin=True)]
        self.server = DownstreamServer(mirror, accounts, state, self.options, self.clients, self.console)
        self.views: dict[str, HandMadeView] = {}
        self.connections: list[ReplicaClient] = []

    async def add_view(self, name: str, policy: GtidPolicy, *insides: str) -> HandMadeView:
        """One with files of these transactions; its account has its name, its admin's is root_NAME."""
        archive = await Archive.open(self.directory / "views" / name)
        await append_files(archive, mysql_series(1, *insides))
        view = HandMadeView(archive, ViewSettings(name, policy, UUID(ASSIGNED)))
        self.views[name] = view
        shown = Console(archive, self.control, self.clients, view=view, mirror=self.console)
        state = SourceState(ShownViewGtids(archive, lambda: None, policy))
        origin = ViewOrigin(self.mirror, ASSIGNED if policy == "assign" else None)
        served = ServedArchive(archive, self.clients, self.options, state, shown, origin)
        self.server.views.add(name, served)
        self.console.add_view(view)
        self.give({name: name})
        return view

    def give(self, views: dict[str, str]) -> None:
        """As a reload does: these users get these views. Each has an admin root_USER."""
        users = {one.user: one.view for one in self.server.accounts.all} | views
        users |= {f"root_{user}": view for user, view in views.items()}
        made = [account(user, view=view, admin=user.startswith("root")) for user, view in users.items()]
        self.server.replace_accounts(made)

    async def client(self, user: str = USER) -> ReplicaClient:
        client = await call(lambda: ReplicaClient(self.server.port, user=user, password=PASSWORD, timeout_s=5))
        self.connections.append(client)
        return client

    async def query(self, statement: str, user: str = USER) -> tuple[tuple[Any, ...], ...]:
        client = await self.client(user)
        return await call(lambda: client.query(statement))

    async def by_gtid(self, held: str, user: str, **said: Any) -> ReplicaClient:
        """A replica that was sent the artificial Rotate, or an error."""
        client = await self.client(user)
        server_id = said.get("server_id", 77)
        body = encode_binlog_dump_gtid(encode_gtid_set(GtidSet.from_text(held)), flags=0, server_id=server_id)

        def ask() -> None:
            client.set_up(**said)
            client.command(0x1E, body)
            client.event()

        await call(ask)
        return client

    async def by_position(self, file: str, user: str, **said: Any) -> ReplicaClient:
        client = await self.client(user)

        def ask() -> None:
            client.set_up(**said)
            client.ask_dump(file, 4, server_id=said.get("server_id", 77))
            client.event()

        await call(ask)
        return client


def account(user: str, *, view: str | None = None, admin: bool = False) -> Account:
    return Account(user, Credentials.from_password(PASSWORD), view=view, admin=admin)


async def call(function: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(function), 20)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def gtids(client: ReplicaClient, count: int) -> list[str]:
    """The next GTIDs of a stream."""

    def read() -> list[str]:
        found: list[str] = []
        while len(found) < count:
            found += [gtid for gtid in transactions(client.events(1)) if not gtid.startswith("mysql")]
        return found

    return await call(read)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    mirror = await Archive.open(tmp_path / "archive")
    mirror.current.set_identity(SourceIdentity("mysql", "5.6.24-log", 1, SOURCE_UUID))
    files = {FIRST: BinlogBuilder().transaction(20).rotate(SECOND), SECOND: BinlogBuilder().transaction(20)}
    for name, built in files.items():
        await mirror.current.begin_file(name)
        await append_all(mirror.current, built.data)
    served = Served(mirror, tmp_path / "archive")
    await served.server.start("127.0.0.1", 0)
    await served.add_view("gtid", "assign", f"{ASSIGNED}:1-3", f"{ASSIGNED}:4-6")
    yield served
    for client in served.connections:
        client.cut()
    await served.server.close()
    served.console.close()
    for view in served.views.values():
        await view.archive.close()
    await mirror.close()


SEEN = (
    "SHOW MASTER STATUS", "SHOW BINARY LOGS", f"SHOW BINLOG EVENTS IN '{SECOND}'", "SELECT @@GLOBAL.gtid_mode",
    "SELECT @@GLOBAL.gtid_executed", "SELECT @@GLOBAL.enforce_gtid_consistency",
    "SHOW VARIABLES LIKE 'datadir'", "SHOW STATUS LIKE 'Binlog_relay_archive_bytes'",
)  # fmt: skip


@pytest.mark.parametrize("statement", SEEN)
async def test_a_statement_says_the_view_to_its_account_and_the_mirror_to_others(
    served: Served, statement: str
) -> None:
    assert await served.query(statement, "gtid") != await served.query(statement)


async def test_a_view_with_assigned_gtids_shows_its_own_and_the_source_it_is_made_of(served: Served) -> None:
    client = await served.client("gtid")
    shown = "SELECT @@gtid_executed, @@gtid_mode, @@server_uuid, @@server_id, VERSION(), @@binlog_checksum"
    (row,) = await call(lambda: client.query(shown))
    assert row == (f"{ASSIGNED}:1-6", "ON", SOURCE_UUID, 1, "5.6.24-log", "CRC32")
    assert (await call(lambda: client.query("SHOW MASTER STATUS")))[0][4] == f"{ASSIGNED}:1-6"


async def test_without_a_view_everything_is_as_if_there_were_none(served: Served) -> None:
    shown = "SELECT @@gtid_executed, @@gtid_mode, @@server_uuid, @@server_id, VERSION(), @@binlog_checksum"
    assert await served.query(shown) == (("", "OFF", SOURCE_UUID, 1, "5.6.24-log", "CRC32"),)
    assert [row[0] for row in await served.query("SHOW BINARY LOGS")] == [FIRST, SECOND]
    assert await served.query("SHOW STATUS LIKE 'Binlog_relay_view%'") == ()


@pytest.mark.parametrize(("policy", "mode"), [("assign", "ON"), ("anonymous", "OFF"), ("keep", "OFF")])
async def test_the_mode_that_is_shown_is_the_one_of_such_binlogs(served: Served, policy: GtidPolicy, mode: str) -> None:
    await served.add_view("empty", policy)
    assert await served.query("SELECT @@GLOBAL.gtid_mode", "empty") == ((mode,),)


async def test_anonymous_transactions_beside_some_with_gtids_are_of_a_source_that_allows_both(served: Served) -> None:
    await served.add_view("both", "anonymous", f"{ASSIGNED}:1-3")
    assert await served.query("SELECT @@GLOBAL.gtid_mode", "both") == (("OFF_PERMISSIVE",),)


async def test_replicas_of_the_view_and_of_the_mirror_are_served_at_the_same_time(served: Served) -> None:
    replica = await served.by_gtid(f"{ASSIGNED}:1-4", "gtid", server_id=77)
    other = await served.by_position(FIRST, USER, server_id=78)
    assert await gtids(replica, 2) == ["A5", "A6"]
    assert await call(lambda: other.events(4))
    with pytest.raises(pymysql.MySQLError, match="GTID_MODE"):
        await served.by_gtid("", USER)


async def test_who_waits_at_the_end_of_a_view_is_sent_what_comes_there(served: Served) -> None:
    replica = await served.by_gtid(f"{ASSIGNED}:1-4", "gtid", server_id=77)
    await gtids(replica, 2)
    following = mysql_series(3, f"{ASSIGNED}:7-8", start=f"{ASSIGNED}:1-6")
    await append_files(served.views["gtid"].archive, following)
    assert await gtids(replica, 2) == ["A7", "A8"]


async def test_a_replica_that_moves_to_the_view_ends_what_is_left_of_its_stream_from_the_mirror(served: Served) -> None:
    uuid = "99999999-1111-1111-1111-111111111111"
    left = await served.by_position(SECOND, USER, uuid=uuid)
    replica = await asyncio.wait_for(served.by_gtid("", "gtid", uuid=uuid), 2)
    assert await gtids(replica, 3) == ["A1", "A2", "A3"]
    with pytest.raises((pymysql.MySQLError, OSError)):
        await call(lambda: left.events(50))


async def test_an_account_that_is_moved_is_moved_for_new_logins_only(served: Served) -> None:
    await served.add_view("other", "assign", f"{ASSIGNED}:1-9")
    before = await served.client("gtid")
    served.give({"gtid": "other"})
    assert await call(lambda: before.query("SELECT @@gtid_executed")) == ((f"{ASSIGNED}:1-6",),)
    assert await served.query("SELECT @@gtid_executed", "gtid") == ((f"{ASSIGNED}:1-9",),)


@dataclass
class Awaited:
    """A view that is not open."""

    told: str


@pytest.mark.parametrize("why", ["it is being opened", ""])
async def test_an_account_whose_view_is_not_served_is_told_why_and_sees_nothing_else(served: Served, why: str) -> None:
    served.give({"early": "not_there"})
    if why:
        served.server.views.add_awaited("not_there", Awaited(why))
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.client("early")
    assert caught.value.args[0] == 1105
    assert f"does not serve the view not_there of this account: {why or 'relay.toml had no such view'}" in str(
        caught.value
    )
    with pytest.raises(pymysql.MySQLError, match="Access denied"):
        await call(lambda: ReplicaClient(served.server.port, user="early", password="wrong"))


def unopened(served: Served, name: str) -> UnopenedView:
    """A view whose disk is full, with an account."""
    view = UnopenedView(ViewSettings(name, "assign", UUID(ASSIGNED)), "views/v: No space left on device.")
    view.could_not(view.why, "Make room.", 1.0e9)
    shown = Console(served.mirror, served.control, served.clients, view=view, mirror=served.console)
    served.console.add_view(view)
    served.server.views.add_awaited(name, view, shown)
    served.give({name: name})
    return view


WHY = "views/v: No space left on device. Make room. It is tried again by itself, next at 01:46:40 UTC."


async def test_people_whose_view_is_not_open_see_why_and_when_it_is_tried_again(served: Served) -> None:
    unopened(served, "v")
    await served.add_view("other", "assign", f"{ASSIGNED}:1-9")
    client = await served.client("v")
    status = dict(await call(lambda: client.query("SHOW STATUS LIKE 'Binlog_relay_view%'")))
    assert (status["Binlog_relay_view"], status["Binlog_relay_view_stop"]) == ("v", WHY)
    (row,) = await call(lambda: client.query("SHOW SLAVE STATUS"))
    assert WHY in row and "No" in row
    for user in (USER, "v"):
        listed = await served.query("CALL binlog_relay.view_list()", f"root_{user}" if user == "v" else "root")
        assert [(line[0], line[-1]) for line in listed] == [
            ("gtid", ""),
            ("v", f"view_not_served: {WHY}"),
            ("other", ""),
        ]


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW BINARY LOGS",
        "SHOW MASTER STATUS",
        "SHOW BINLOG EVENTS",
        "CALL binlog_relay.view_find('v', 'source', 'a.000001', 4)",
    ],
)
async def test_of_a_view_that_is_not_open_there_are_no_files_to_see(served: Served, statement: str) -> None:
    unopened(served, "v")
    with pytest.raises(pymysql.MySQLError, match="The view v is not open: views/v: No space left"):
        await served.query(statement, "v")


@pytest.mark.parametrize("statement", ["SELECT @@server_id", "SELECT @@server_uuid"])
async def test_a_replica_without_attributes_is_sent_away_before_it_asks_what_would_stop_it(
    served: Served, statement: str
) -> None:
    unopened(served, "v")
    with pytest.raises(
        pymysql.MySQLError, match="does not serve the view v of this account: views/v: No space"
    ) as caught:
        await served.query(statement, "v")
    assert caught.value.args[0] == 1053
    assert await served.query("SELECT @@gtid_executed", "v") == (("",),)


async def test_a_dump_of_a_view_that_is_not_open_is_refused_so_that_it_is_asked_for_again(served: Served) -> None:
    unopened(served, "v")
    with pytest.raises(pymysql.MySQLError, match="does not serve the view v") as caught:
        await served.by_position(FIRST, "v", server_id=79)
    assert caught.value.args[0] == 1105


async def test_the_mirror_keeps_the_files_that_a_view_was_not_made_of_while_it_could_not_be_opened(
    served: Served,
) -> None:
    view = unopened(served, "v")
    await served.query(f"PURGE BINARY LOGS TO '{SECOND}'", "root")
    assert [file.name for file in served.mirror.current.files] == [FIRST, SECOND]
    view.made = Position(SECOND, 120), 1
    served.views["gtid"].status = Status(Position(SECOND, 120))
    await served.query(f"PURGE BINARY LOGS TO '{SECOND}'", "root")
    assert [file.name for file in served.mirror.current.files] == [SECOND]


async def test_of_a_view_that_is_not_open_no_statement_says_what_the_mirror_has(served: Served) -> None:
    unopened(served, "v")
    names = {name for name, _value in await served.query("SHOW STATUS LIKE 'Binlog_relay%'", "v")}
    assert not {name for name in names if "archive_" in name or "ledger" in name or "violations" in name}
    assert "Binlog_relay_view_stop" in names
    space = (
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Binlog_relay_archive_bytes'"
    )
    assert await served.query(space, "v") == ()
    (row,) = await served.query("SHOW SLAVE STATUS", "v")
    assert str(served.mirror.current.held.total_bytes) not in map(str, row)


@pytest.mark.parametrize("statement", ["SHOW SLAVE STATUS", "SHOW MASTER STATUS", "SHOW STATUS", "SELECT @@server_id"])
async def test_who_logged_in_before_the_view_was_open_is_told_to_come_again_and_then_sees_it(
    served: Served, statement: str
) -> None:
    """A monitor that keeps its connection would see a view for ever that is not open."""
    unopened(served, "v")
    client = await served.client("v")
    await served.add_view("v", "assign", f"{ASSIGNED}:1-9")
    with pytest.raises(
        pymysql.MySQLError, match="The view v was opened since this connection began: connect again"
    ) as caught:
        await call(lambda: client.query(statement))
    assert caught.value.args[0] == 1053
    assert await served.query("SELECT @@gtid_executed", "v") == ((f"{ASSIGNED}:1-9",),)


async def refused(request: Awaitable[ReplicaClient]) -> tuple[int, str]:
    with pytest.raises(pymysql.MySQLError) as caught:
        await request
    number, text = caught.value.args
    return number, text


async def test_a_file_that_somebody_deleted_is_named_to_a_request_by_gtid_as_to_one_by_position(served: Served) -> None:
    archive = served.views["gtid"].archive
    (archive.directory / FIRST).unlink()
    number, text = await refused(served.by_gtid(f"{ASSIGNED}:1", "gtid"))
    assert number == 1236
    assert text.startswith(
        f"binlog-relay's archive is damaged at {FIRST}:0: it cannot be opened: No such file or directory."
    )
    assert (number, text) == await refused(served.by_position(FIRST, "gtid", server_id=78))
    assert [place.file for place in archive.current.damaged_files.all] == [FIRST]


async def test_a_file_that_is_purged_while_a_request_by_gtid_looks_at_it_is_named(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = served.views["gtid"].archive

    async def purged_meanwhile(lookup: GtidLookup, question: Callable[[Any], Any]) -> Any:
        looked_at = [lookup._looked_at(generation) for generation in archive.all]
        found = [one.files[0] for one in looked_at]
        assert [one.name for one in found] == [FIRST]
        await archive.current.purge([FIRST], "for a test")
        (files,) = [replace(one, files=found) for one in looked_at]
        return await asyncio.to_thread(question, [files])

    monkeypatch.setattr(GtidLookup, "ask", purged_meanwhile)
    number, text = await refused(served.by_gtid(f"{ASSIGNED}:1", "gtid"))
    assert (number, text) == (
        1105,
        f"{FIRST} was removed from binlog-relay's archive just now. The replica may try again",
    )


async def test_a_purge_removes_the_files_of_what_the_account_sees(served: Served) -> None:
    reader = await served.by_position(FIRST, USER, server_id=78)
    await served.query(f"PURGE BINARY LOGS TO '{SECOND}'", "root_gtid")
    assert [file.name for file in served.views["gtid"].archive.current.files] == [SECOND]
    assert [file.name for file in served.mirror.current.files] == [FIRST, SECOND]
    assert await served.query("SELECT @@gtid_purged", "gtid") == ((f"{ASSIGNED}:1-3",),)
    served.views["gtid"].status = Status(Position(SECOND, 120))
    reader.cut()
    await until(lambda: not any(session.dump for session in served.server.sessions))
    await served.by_position(SECOND, "gtid", server_id=79)
    await served.query(f"PURGE BINARY LOGS TO '{SECOND}'", "root")
    assert [file.name for file in served.mirror.current.files] == [SECOND]


@pytest.mark.parametrize("made", [None, Position(FIRST, 120)])
async def test_what_a_view_is_still_to_be_made_from_stays_also_where_it_has_stopped(
    served: Served, made: Position | None
) -> None:
    served.views["gtid"].status = Status(made, 77, STOP)
    root = await served.client("root")
    await call(lambda: root.query(f"PURGE BINARY LOGS TO '{SECOND}'"))
    (warning,) = await call(lambda: root.query("SHOW WARNINGS"))
    assert warning[1] == 1867 and "Read by the view gtid" in str(warning[2])
    assert [file.name for file in served.mirror.current.files] == [FIRST, SECOND]
    served.views["gtid"].status = Status(Position(SECOND, 4))
    await served.query(f"PURGE BINARY LOGS TO '{SECOND}'", "root")
    assert [file.name for file in served.mirror.current.files] == [SECOND]


async def test_statements_about_the_relay_are_the_same_for_an_admin_of_a_view(served: Served) -> None:
    await served.query("STOP SLAVE", "root_gtid")
    assert not served.control.running
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.query("STOP SLAVE", "gtid")
    assert caught.value.args[0] == 1227


async def test_the_list_of_connections_is_the_relay_s(served: Served) -> None:
    other = await served.client(USER)
    await served.client("gtid")
    rows = await served.query("SHOW PROCESSLIST", "root_gtid")
    assert {row[1] for row in rows} == {"system user", USER, "gtid", "root_gtid"}
    (number,) = (row[0] for row in rows if row[1] == USER)
    await served.query(f"KILL {number}", "root_gtid")
    with pytest.raises((pymysql.MySQLError, OSError)):
        await call(lambda: other.query("SELECT 1"))


async def test_the_status_says_how_far_the_view_is_and_what_it_stopped_at(served: Served) -> None:
    status = dict(await served.query("SHOW STATUS LIKE 'Binlog_relay_view%'", "gtid"))
    assert status == {
        "Binlog_relay_view": "gtid",
        "Binlog_relay_view_source_file": FIRST,
        "Binlog_relay_view_source_position": "900",
        "Binlog_relay_view_behind_bytes": "77",
        "Binlog_relay_view_stop": "",
    }
    served.views["gtid"].status = Status(None, 0, STOP)
    status = dict(await served.query("SHOW STATUS LIKE 'Binlog_relay_view%'", "gtid"))
    assert status["Binlog_relay_view_stop"] == f"{SECOND}:120: UPDATE of i and m writes two engines. Skip it."
    assert (status["Binlog_relay_view_source_file"], status["Binlog_relay_view_source_position"]) == ("", "0")


async def test_the_status_says_what_may_run_side_by_side_and_why_other_transactions_may_not(served: Served) -> None:
    why = Counter({("no_key", "shop.log"): 200, ("statement", ""): 10})
    served.views["gtid"].status = Status(waits=WaitCounts(1000, 789, 125, why))
    status = dict(await served.query("SHOW STATUS LIKE 'Binlog_relay_view%'", "gtid"))
    assert status["Binlog_relay_view_transactions"] == "1000"
    assert status["Binlog_relay_view_transactions_beside"] == "789"
    assert status["Binlog_relay_view_mean_width"] == "8.00"
    assert (status["Binlog_relay_view_share_beside"], status["Binlog_relay_view_batches"]) == ("0.7890", "125")
    assert status["Binlog_relay_view_serial"] == "20.0 % no_key shop.log, 1.0 % statement"
    causes = {name.removeprefix(SERIAL): value for name, value in status.items() if name.startswith(SERIAL)}
    assert causes.pop("no_key_of_shop_log") == "200"
    assert causes == {why: str({"no_key": 200, "statement": 10}.get(why, 0)) for why in EVERY_CAUSE}
    (row,) = await served.query("CALL binlog_relay.view_list()", "gtid")
    assert (
        "78.9 % beside the one before, 8.0 together on average; one by one: 20.0 % no_key shop.log, 1.0 % statement"
        in row
    )


async def test_few_variables_have_the_name_of_a_table_and_no_two_have_one_name_for_exporters(served: Served) -> None:
    why = Counter({("same_rows", f"s.t{number}"): 100 + number for number in range(30)})
    why[("same_rows", "s.x-y")], why[("same_rows", "S.x y")] = 1000, 500
    served.views["gtid"].status = Status(waits=WaitCounts(9000, 0, 9000, why))
    status = dict(await served.query("SHOW STATUS LIKE 'Binlog_relay_view_serial%'", "gtid"))
    of_tables = {name: value for name, value in status.items() if "_of_" in name}
    assert of_tables == {
        f"{SERIAL}same_rows_of_s_x_y": "1500",
        **{f"{SERIAL}same_rows_of_s_t{number}": str(100 + number) for number in range(22, 30)},
    }
    assert status[f"{SERIAL}same_rows"] == str(why.total())


async def test_a_stopped_view_is_an_sql_thread_that_has_stopped_for_those_who_are_served_it(served: Served) -> None:
    async def sql_thread(user: str) -> tuple[Any, ...]:
        client = await served.client(user)

        def ask() -> tuple[Any, ...]:
            with client.connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute("SHOW SLAVE STATUS")
                (row,) = cursor.fetchall()
            return row["Slave_SQL_Running"], row["Last_SQL_Errno"], row["Last_SQL_Error"]

        return await call(ask)

    assert await sql_thread("gtid") == ("Yes", 0, "")
    served.views["gtid"].status = Status(None, 0, STOP)
    running, number, text = await sql_thread("gtid")
    assert (running, number) == ("No", 1785) and text.startswith(f"{SECOND}:120: UPDATE")
    assert await sql_thread(USER) == ("Yes", 0, "")


async def test_a_replica_with_the_uuid_of_the_assigned_gtids_is_refused(served: Served) -> None:
    with pytest.raises(pymysql.MySQLError, match="so have the GTIDs that this view assigns"):
        await served.by_gtid("", "gtid", uuid=ASSIGNED.upper())


async def test_a_replica_that_has_more_than_the_view_is_told_to_try_again(served: Served) -> None:
    # Nobody can say whether the rest comes: the source knows nothing of these GTIDs.
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.by_gtid(f"{ASSIGNED}:1-9", "gtid")
    assert caught.value.args[0] == 1105 and "has more GTIDs" in str(caught.value)


async def test_a_view_that_has_no_file_yet_has_an_account_that_logs_in_and_replicas_that_wait(served: Served) -> None:
    await served.add_view("empty", "assign")
    assert await served.query("SELECT VERSION(), @@binlog_checksum", "empty") == (("5.6.24-log", "CRC32"),)
    assert await served.query("SHOW MASTER STATUS", "empty") == ()
    with pytest.raises(pymysql.MySQLError) as caught:
        await served.by_gtid("", "empty")
    assert caught.value.args[0] == 1105


async def test_change_user_changes_nothing_as_nobody_is_another_one_on_the_same_connection(served: Served) -> None:
    client = await served.client("gtid")

    def change_user() -> None:
        client.command(0x11, USER.encode() + b"\0\0\0")
        client.connection._read_packet()

    with pytest.raises(pymysql.MySQLError):
        await call(change_user)
    with suppress(pymysql.MySQLError):
        assert await call(lambda: client.query("SELECT @@GLOBAL.gtid_mode")) == (("ON",),)
