"""A source that crashed inside a transaction: what replicas of the mirror keep of it, and that a view does not lose that in silence."""

import struct
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.binlog_builder import MYSQL_56_LENGTHS
from tests.support.chain import wait_until
from tests.support.event_stream import EventStream, format_body, query_body, raw_event
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

pytestmark = pytest.mark.interop

UUID = "5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10"
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
Event = tuple[int, bytes]
XID: Event = (16, bytes(8))


def text(words: str) -> Event:
    return 2, query_body(words, b"d")


def rows(table: str, value: int, *, last: bool = True) -> tuple[Event, Event]:
    """A row of a table of one INT column."""
    name = table.encode()
    head = struct.pack("<IHH", 7, 0, 1) + b"\x01d\0" + bytes((len(name),)) + name + b"\0"
    row = struct.pack("<IHH", 7, 0, int(last)) + b"\x02\0\x01\xff\xfe" + struct.pack("<i", value)
    return (19, head + b"\x01\x03\x00\x01"), (30, row)


BEGIN = text("BEGIN")
STATEMENTS = (BEGIN, text("INSERT INTO m VALUES (1)"), text("INSERT INTO i VALUES (1)"))
FOLLOWED = (*STATEMENTS, BEGIN, text("INSERT INTO i VALUES (5)"), XID)


def binlog(*events: Event, created: int = 1_700_000_000) -> bytes:
    made = EventStream(checksum=True, with_format=False)
    made.add_raw(raw_event(15, format_body("5.6.24-log", MYSQL_56_LENGTHS, 1, created=created), offset=4))
    for kind, body in events:
        made.add(kind, body)
    return b"\xfebin" + made.data


@pytest.mark.parametrize(
    ("events", "kept", "stops"),
    [
        (STATEMENTS, {"m": [(1,)], "i": [(9,)]}, True),
        ((BEGIN, *rows("i", 1), *rows("m", 1, last=False)), {"m": [(1,)], "i": [(9,)]}, True),
        ((BEGIN, *rows("i", 1), text("INSERT INTO i VALUES (2)")), {"m": [], "i": [(9,)]}, False),
        (FOLLOWED, {"m": [(1,)], "i": [(1,), (5,), (9,)]}, True),
    ],
)
def test_a_view_stops_where_a_replica_of_the_mirror_keeps_something(
    servers: ServerFactory, tmp_path: Path, events: tuple[Event, ...], kept: dict[str, list[tuple[int]]], stops: bool
) -> None:
    source = tmp_path / "binlogs"
    source.mkdir()
    definitions = ("CREATE DATABASE d", "CREATE TABLE m (a INT) ENGINE=MyISAM", "CREATE TABLE i (a INT) ENGINE=InnoDB")
    first = binlog(*map(text, definitions))
    (source / "mysql-bin.000001").write_bytes(binlog(*map(text, definitions), *events))
    (source / "mysql-bin.000002").write_bytes(binlog(BEGIN, text("INSERT INTO i VALUES (9)"), XID))
    of_mirror, of_view = servers("mysql56").start(server_id=2), servers("mysql97").start(server_id=3, options=GTIDS)
    view = {"name": "gtid", "uuid": UUID}
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[view]": view})
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
    with relay:
        of_mirror.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, "mysql-bin.000001", 4)
        wait_until(lambda: (9,) in tables(of_mirror)["i"], "the mirror's replica has all")
        assert tables(of_mirror) == kept
        if stops:
            wait_until(lambda: relay.logged("view_stopped"), "the view's stop")
            (stopped,) = relay.logged("view_stopped")
            assert (stopped["reason"], stopped["file"], stopped["offset"]) == (
                "unfinished_transaction",
                "mysql-bin.000001",
                len(first),
            )
        of_view.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1)
        if stops:
            number = f"{UUID}:1-3"
            wait_until(lambda: of_view.sql("SELECT @@GLOBAL.gtid_executed") == [(number,)], "all before it")
            relay.stop()
            done = relay.command("view", "skip", "gtid", "--at", f"mysql-bin.000001:{len(first)}", "--yes")
            assert done.returncode == 0, done.stderr
            relay.start()
        wait_until(lambda: (9,) in tables(of_view)["i"], "the view's replica has what follows", 60)
        assert tables(of_view)["m"] == []


def test_a_view_stops_where_the_source_could_not_write_the_rest_and_went_on(
    servers: ServerFactory, tmp_path: Path
) -> None:
    # So a 5.6.24 ends a file whose end it cannot write, when somebody asks for the next one (FLUSH LOGS).
    source = tmp_path / "binlogs"
    source.mkdir()
    definitions = ("CREATE DATABASE d", "CREATE TABLE m (a INT) ENGINE=MyISAM", "CREATE TABLE i (a INT) ENGINE=InnoDB")
    half = (BEGIN, text("INSERT INTO i VALUES (1)"))
    (source / "mysql-bin.000001").write_bytes(binlog(*map(text, definitions), *half))
    (source / "mysql-bin.000002").write_bytes(binlog(BEGIN, text("INSERT INTO i VALUES (9)"), XID, created=0))
    of_mirror, of_view = servers("mysql56").start(server_id=2), servers("mysql97").start(server_id=3, options=GTIDS)
    relay = RelayProcess(
        tmp_path / "relay",
        source,
        port=free_port(),
        sections={"[view]": {"name": "gtid", "uuid": UUID}, "source": {"unended_files": ["mysql-bin.000001"]}},
    )
    relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
    with relay:
        of_mirror.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, "mysql-bin.000001", 4)
        wait_until(lambda: (9,) in tables(of_mirror)["i"], "the mirror's replica has all")
        assert tables(of_mirror) == {"m": [], "i": [(1,), (9,)]}
        wait_until(lambda: relay.logged("view_stopped"), "the view's stop")
        (stopped,) = relay.logged("view_stopped")
        assert (stopped["reason"], stopped["file"], stopped["offset"]) == (
            "unfinished_transaction",
            "mysql-bin.000002",
            4,
        )
        checked = relay.command("view", "check", "gtid")
        assert (checked.returncode, "unfinished_transaction" in checked.stdout) == (1, True)
        of_view.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1)
        wait_until(lambda: of_view.sql("SELECT @@GLOBAL.gtid_executed") == [(f"{UUID}:1-3",)], "all before it")
        relay.stop()
        done = relay.command("view", "skip", "gtid", "--at", "mysql-bin.000002:4", "--yes")
        assert done.returncode == 0, done.stderr
        relay.start()
        wait_until(lambda: (9,) in tables(of_view)["i"], "the view's replica has what follows", 60)
        assert tables(of_view) == {"m": [], "i": [(9,)]}
        assert relay.command("view", "check", "gtid").returncode == 0
        relay.stop()
        verified = relay.command("view", "verify", "gtid")
        assert verified.returncode == 0, verified.stdout + verified.stderr


def tables(server: Server) -> dict[str, list[tuple[int]]]:
    """What they hold; nothing before they are there."""
    found = {}
    for name in ("m", "i"):
        there = server.sql(
            f"SELECT 1 FROM information_schema.tables WHERE table_schema = 'd' AND table_name = '{name}'"
        )
        found[name] = server.sql(f"SELECT a FROM d.{name} ORDER BY a") if there else []
    return found
