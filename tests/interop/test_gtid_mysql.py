"""MySQL replicas that ask by GTID: behind the relay as behind the source, from any set, through any trouble."""

import asyncio
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from protocol.auth.account import Account
from protocol.binlog.encoded_events import heartbeat_v2_event
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.downstream.gtid_filter import mysql_filter
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.service.shown_gtids import ShownGtids
from tests.conftest import ServerFactory
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

PAIRS = [("mysql56", "mysql56"), ("mysql97", "mysql97"), ("mysql56", "mysql97")]
GTID_OPTIONS = [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-slave-updates=ON",
    "--binlog-format=ROW",
]
COM_BINLOG_DUMP_GTID = 0x1E
NON_BLOCK = 1
# A login, the statements and the head of the stream take less, so that each connection brings at least one event.
LEAST_CUT_BYTES = 6000


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, chains: ChainFactory) -> tuple[Chain, Server]:
    """A source with GTIDs behind a relay, and a server that is to follow; databases `one` and `two`."""
    source_name, replica_name = request.param
    chain = chains(source_name, options=GTID_OPTIONS, sections={"[account]": {"markers": "strip"}})
    for database in ("one", "two"):
        chain.source.execute_many(
            [
                f"CREATE DATABASE {database}",
                f"CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)",
            ]
        )
    return chain, chain.server(replica_name, GTID_OPTIONS)


def write(source: Server, database: str, transactions: int, *, seed: int = 1) -> None:
    """Transactions of all sizes, in several files."""
    chance = random.Random(seed)
    for number in range(transactions):
        statements = ["BEGIN"]
        for _ in range(chance.choice([1, 1, 2, 40])):
            statements.append(f"INSERT INTO {database}.t (b) VALUES (REPEAT('x', {chance.choice([1, 300, 3_000])}))")
        source.execute_many([*statements, "COMMIT"])
        if number % 11 == 10:
            source.sql("FLUSH LOGS")


def write_large_transaction(source: Server) -> None:
    source.execute_many(["BEGIN", *["INSERT INTO one.t (b) VALUES (REPEAT('y', 3000))"] * 60, "COMMIT"])


def attach(replica: Server, port: int) -> None:
    """Follow whoever listens there, by auto-position."""
    replica.attach("127.0.0.1", port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1, heartbeat_period=1)


def attach_to_source(replica: Server, source: Server) -> None:
    replica.attach("127.0.0.1", source.port, auto_position=1, heartbeat_period=1)


def executed(server: Server) -> GtidSet:
    return GtidSet.from_text(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0])


def check_same(chain: Chain, replica: Server, databases: list[str]) -> None:
    """Waits for the replica; its tables and its set are the source's."""
    wanted = executed(chain.source)

    def has_all() -> bool:
        status = replica.replica_status()
        told = f"{status['io_error']}{status['sql_error']}\n{chain.relay.log_tail()}"
        assert status["io_errno"] not in (1236, 13114, 1593) and not status["sql_errno"], told
        return wanted <= executed(replica)

    wait_until(has_all, "the replica has what the source has", 90)
    chain.check_tables([replica], databases, timeout_s=30)
    own = {key for key in executed(replica).intervals_by_key() if key not in wanted.intervals_by_key()}
    assert not own or replica.name == "mysql56", "the replica has transactions of its own"


def leave_out(replica: Server, gtids: GtidSet) -> None:
    """The replica has them from now on, empty."""
    statements = []
    for gtid in gtids.members():
        statements += [f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT"]
    replica.execute_many([*statements, "SET gtid_next = 'AUTOMATIC'"])


def test_a_replica_follows_by_auto_position_and_through_stops(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    write(chain.source, "one", 40)
    attach(replica, chain.relay.port)
    check_same(chain, replica, ["one", "two"])
    for turn in range(4):
        replica.stop_replica()
        write(chain.source, "two", 15, seed=turn)
        if turn % 2:
            replica.start_replica()
            write(chain.source, "one", 5, seed=turn)
        else:
            write_large_transaction(chain.source)
            replica.start_replica()
        check_same(chain, replica, ["one", "two"])
    assert all(line["by_gtid"] for line in chain.relay.logged("dump_started"))
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


def test_what_a_replica_has_already_is_not_sent_again(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    chance = random.Random(7)
    wanted = GtidSet()
    for turn in range(25):
        write(chain.source, "one", 2, seed=turn)
        before = executed(chain.source)
        write(chain.source, "two", chance.choice([0, 1, 3, 12]), seed=turn)
        wanted |= executed(chain.source) - before
    leave_out(replica, wanted)
    attach(replica, chain.relay.port)
    check_same(chain, replica, ["one"])
    assert replica.sql("SELECT COUNT(*) FROM two.t") == [(0,)]


def test_cut_inside_of_transactions(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    places = random.Random(4162)
    with CuttingProxy(chain.relay.port) as proxy:
        attach(replica, proxy.port)
        write(chain.source, "one", 5)
        check_same(chain, replica, ["one"])
        proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 60_000) for _ in range(12)))
        proxy.cut_now_after(10_000)
        for _ in range(3):
            write_large_transaction(chain.source)
        check_same(chain, replica, ["one"])
        assert proxy.cut_count >= 5
    assert not chain.relay.logged("dump_refused")


def test_the_relay_killed_while_a_replica_is_in_mid_transaction(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    with CuttingProxy(chain.relay.port) as proxy:
        attach(replica, proxy.port)
        write(chain.source, "one", 15)
        check_same(chain, replica, ["one"])
        for stalled_after in (3_333, 90_000):
            proxy.stall_after(stalled_after)
            write_large_transaction(chain.source)
            chain.wait_published()
            wait_until(lambda: proxy.stalled, "the proxy holds the transaction back")
            chain.relay.kill()
            proxy.cut_all()
            proxy.flow()
            chain.relay.start()
            check_same(chain, replica, ["one"])
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


def test_a_replica_moves_between_source_and_relay_and_back(pair: tuple[Chain, Server]) -> None:
    chain, replica = pair
    for turn in range(3):
        attach(replica, chain.relay.port)
        write(chain.source, "one", 12, seed=turn)
        check_same(chain, replica, ["one"])
        write(chain.source, "two", 3, seed=turn)
        attach_to_source(replica, chain.source)
        write(chain.source, "two", 12, seed=turn)
        check_same(chain, replica, ["one", "two"])
    assert not chain.relay.logged("dump_refused")


# ---- the stream itself, against the source's ------------------------------------------------------------------------


def stream(server: Server, port: int, held: GtidSet, user: str, password: str) -> list[bytes]:
    """All events up to EOF, as a replica with `held` gets them."""
    client = ReplicaClient(port, user=user, password=password)
    try:
        client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
        client.query("SET @master_heartbeat_period=10000000000, @source_heartbeat_period=10000000000")
        body = encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=77)
        client.command(COM_BINLOG_DUMP_GTID, body)
        return [event.data for event in client.events_to_eof()]
    finally:
        client.cut()


def described(events: list[bytes]) -> list[tuple[str, int, int, bytes]]:
    return [(EventType(event[4]).name, len(event), struct.unpack_from("<I", event, 13)[0], event) for event in events]


def some_set(everything: GtidSet, chance: random.Random) -> GtidSet:
    builder = GtidSetBuilder()
    for tsid in everything.tsids():
        for first, last in everything.intervals(tsid):
            for _ in range(chance.randrange(4)):
                start = chance.randrange(first, last + 1)
                builder.add_run(tsid.key, start, chance.randrange(start, last + 1) + 1)
    return builder.snapshot()


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_the_stream_is_the_sources_byte_by_byte(chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=GTID_OPTIONS, sections={"[account]": {"markers": "strip"}})
    source, chance = chain.source, random.Random(29)
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    other = "00000000-0000-0000-0000-000000000001"
    tag = ":a" if name == "mysql97" else ""
    for number in range(1, 40):
        write(source, "one", 3, seed=number)
        source.execute_many(
            [
                f"SET gtid_next = '{other}{tag}:{number * 2}'",
                "INSERT INTO one.t (b) VALUES ('z')",
                "SET gtid_next = AUTOMATIC",
            ]
        )
        if chance.random() < 0.2:
            source.sql("FLUSH LOGS")
    chain.wait_published()
    everything = executed(source)
    sets = [GtidSet(), everything, *(some_set(everything, chance) for _ in range(25))]
    sets.append(everything | GtidSet.from_text(f"{other}:1-1000"))
    for held in sets:
        theirs = stream(source, source.port, held, source.replication_user, source.replication_password)
        ours = stream(source, chain.relay.port, held, REPLICA_USER, REPLICA_PASSWORD)
        assert described(ours) == described(theirs), held.line


def test_several_statements_of_one_gtid_are_served_as_the_source_serves_them(chains: ChainFactory) -> None:
    """MySQL 5.6 logs each DROP TEMPORARY TABLE of a stored function as a statement that commits, and only the first has the GTID."""
    chain = chains(
        "mysql56",
        options=[*GTID_OPTIONS, "--log-bin-trust-function-creators=1"],
        sections={"[account]": {"markers": "strip"}},
    )
    source, chance = chain.source, random.Random(31)
    source.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)",
            "CREATE FUNCTION one.f(n INT) RETURNS INT BEGIN DROP TEMPORARY TABLE IF EXISTS one.x1; "
            "DROP TEMPORARY TABLE IF EXISTS one.x2; DROP TEMPORARY TABLE IF EXISTS one.x3; RETURN n; END",
        ]
    )
    for number in range(1, 12):
        write(source, "one", chance.randrange(3), seed=number)
        source.execute_many([f"SELECT one.f({number})"] * chance.randrange(1, 3))
        if chance.random() < 0.2:
            source.sql("FLUSH LOGS")
    everything = executed(source)
    # 5.6 omits the last heartbeat where the end of what it has is passed over.
    write(source, "one", 1)
    chain.wait_published()
    for held in [GtidSet(), everything, *(some_set(everything, chance) for _ in range(25))]:
        theirs = stream(source, source.port, held, source.replication_user, source.replication_password)
        ours = stream(source, chain.relay.port, held, REPLICA_USER, REPLICA_PASSWORD)
        assert described(ours) == described(theirs), held.line


def spoil(path: Path, start: int, stop: int) -> None:
    """What is read of it from now on is no event."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * (stop - start))


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_what_a_replica_has_of_later_files_is_not_even_read(chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=GTID_OPTIONS, sections={"[account]": {"markers": "strip"}})
    source = chain.source
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    ends = []
    for _ in range(4):
        for _ in range(30):
            source.sql("INSERT INTO one.t (b) VALUES (REPEAT('x', 70000))")
        ends.append(executed(source).count)
        source.sql("FLUSH LOGS")
    chain.wait_published()
    (uuid,) = source.sql("SELECT @@GLOBAL.server_uuid")[0]
    # Two are lacking: one in the first file, one at the end of the last.
    held = GtidSet.from_text(f"{uuid}:1-5:7-{ends[-1] - 2}:{ends[-1]}")
    theirs = stream(source, source.port, held, source.replication_user, source.replication_password)
    names = [path.name for path in source.binlogs()]
    for number in (1, 2):
        spoil(chain.relay.archive / names[number], 100_000, 2_000_000)
    spoil(chain.relay.archive / names[3], 100_000, 1_800_000)
    ours = stream(source, chain.relay.port, held, REPLICA_USER, REPLICA_PASSWORD)
    assert described(ours) == described(theirs)


# ---- refusals -------------------------------------------------------------------------------------------------------


def refusal(port: int, user: str, password: str, held: GtidSet) -> tuple[int, str]:
    client = ReplicaClient(port, user=user, password=password)
    try:
        client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
        client.command(
            COM_BINLOG_DUMP_GTID, encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=77)
        )
        client.events_to_eof()
    except pymysql.MySQLError as error:
        return int(error.args[0]), str(error.args[1])
    finally:
        client.cut()
    return 0, ""


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_refusals_begin_with_the_sources_words(servers: ServerFactory, chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=GTID_OPTIONS, sections={"[account]": {"admin": True}})
    source = chain.source
    chain.relay.stop()
    for number in range(6):
        source.sql(f"CREATE DATABASE d{number}")
        source.sql("FLUSH LOGS")
    source.sql(f"PURGE BINARY LOGS TO '{source.binlogs()[-2].name}'")
    remove_archive(chain.relay.archive)
    chain.relay.start()
    chain.wait_published()
    (uuid,) = source.sql("SELECT @@GLOBAL.server_uuid")[0]
    everything = executed(source)
    other = "00000000-0000-0000-0000-000000000001"
    for text, number in (
        ("", 1236),
        (f"{uuid}:1", 1236),
        (everything.line, 0),
        (f"{everything.line},{other}:7", 0),
        (f"{everything.line},{uuid}:1000", 1236),
    ):
        held = GtidSet.from_text(text)
        theirs = refusal(source.port, source.replication_user, source.replication_password, held)
        ours = refusal(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, held)
        assert ours[0] == number, (text, ours)
        assert theirs[1].split(". ")[0] in ours[1], (text, ours)
    # The relay does not follow its source: that may have it, and more.
    chain.relay.sql("STOP SLAVE")
    ahead = GtidSet.from_text(f"{everything.line},{uuid}:1000")
    number, said = refusal(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, ahead)
    assert (number, "it may try again" in said) == (1105, True)


def follower(port: int, user: str, password: str, server_id: int, held: GtidSet) -> ReplicaClient:
    """A replica that has these transactions and is sent heartbeats."""
    client = ReplicaClient(port, user=user, password=password)
    client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
    client.query("SET @master_heartbeat_period=300000000, @source_heartbeat_period=300000000")
    client.command(COM_BINLOG_DUMP_GTID, encode_binlog_dump_gtid(encode_gtid_set(held), flags=0, server_id=server_id))
    return client


def read_to_heartbeat(client: ReplicaClient) -> tuple[int, str]:
    """All up to a heartbeat; the error in place of it, (0, "") without one."""
    try:
        while (event := client.event()) is not None and event.kind != EventType.HEARTBEAT:
            pass
    except pymysql.MySQLError as error:
        return int(error.args[0]), str(error.args[1])
    return 0, ""


def test_a_running_stream_ends_as_the_sources_does_when_the_mode_goes_down(chains: ChainFactory) -> None:
    chain = chains("mysql97", options=GTID_OPTIONS, sections={"[account]": {"admin": True}})
    source = chain.source
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    chain.wait_published()
    logins = [(source.port, source.replication_user, source.replication_password)]
    logins.append((chain.relay.port, REPLICA_USER, REPLICA_PASSWORD))
    for last_mode in ("OFF_PERMISSIVE", "OFF"):
        held = executed(source) if last_mode == "OFF" else GtidSet()
        clients = [follower(*login, server_id=70 + number, held=held) for number, login in enumerate(logins)]
        assert [read_to_heartbeat(client) for client in clients] == [(0, "")] * 2
        modes = ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]
        for mode in modes[: modes.index(last_mode) + 1]:
            source.sql(f"SET GLOBAL gtid_mode={mode}")
            source.sql("FLUSH BINARY LOGS")
        wait_until(lambda: chain.relay.sql("SELECT @@GLOBAL.GTID_MODE") == [(last_mode,)], "the relay sees it")  # noqa: B023
        for client in clients:
            for _ in range(3):
                assert read_to_heartbeat(client) == (0, "")
        write(source, "one", 1)
        theirs, ours = (read_to_heartbeat(client) for client in clients)
        assert theirs[0] == ours[0] == 1236
        assert "Cannot replicate anonymous transaction when AUTO_POSITION = 1" in theirs[1]
        assert ours[1].startswith("Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file mysql-bin.")
        assert ours[1].split(" at file ")[1].split(". ")[0] in theirs[1], (theirs, ours)
        for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
            source.sql(f"SET GLOBAL gtid_mode={mode}")
        purge_all(chain)


def test_a_transaction_without_a_gtid_in_the_way_is_named_by_its_place_as_by_the_source(chains: ChainFactory) -> None:
    chain = chains("mysql97", options=GTID_OPTIONS)
    source = chain.source
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    write(source, "one", 12)
    early = executed(source)
    write(source, "one", 12)
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
        source.sql(f"SET GLOBAL gtid_mode={mode}")
    source.execute_many(["FLUSH BINARY LOGS", "INSERT INTO one.t (b) VALUES ('has none')", "FLUSH BINARY LOGS"])
    # A source whose mode is ON refuses what has no GTID to the relay too.
    chain.wait_published()
    for mode in ("ON_PERMISSIVE", "ON"):
        source.sql(f"SET GLOBAL gtid_mode={mode}")
    write(source, "one", 3)
    wait_until(lambda: chain.relay.sql("SELECT @@GLOBAL.GTID_MODE") == [("ON",)], "the relay sees the mode")
    chain.wait_published()
    for held in (GtidSet(), early):
        theirs = refusal(source.port, source.replication_user, source.replication_password, held)
        ours = refusal(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, held)
        assert theirs[0] == ours[0] == 1236, (theirs, ours)
        # A source has sent what comes before by then; the relay says it at once.
        assert ours[1].startswith("Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file mysql-bin.")
        # The source names the file with its path.
        assert ours[1].split(" at file ")[1].split(". ")[0] in theirs[1], (theirs, ours)
    # Whoever is past that file is served.
    held = executed(source)
    assert refusal(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, held) == (0, "")
    replica = chain.server("mysql97", GTID_OPTIONS)
    attach(replica, chain.relay.port)
    number, text = replica.wait_io_error()
    assert number in (1236, 13114)
    assert "Cannot replicate anonymous transaction when AUTO_POSITION = 1" in text
    assert not replica.replica_status()["sql_errno"]


async def test_heartbeats_of_version_2_carry_a_stock_replica_over_holes(
    chains: ChainFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are for positions above 4 GiB, which is more than a test can write: here they are sent at all positions."""
    chain = chains("mysql97", options=GTID_OPTIONS)
    wanted = GtidSet()
    for database in ("one", "two"):
        table = f"CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"
        chain.source.execute_many([f"CREATE DATABASE {database}", table])
    for turn in range(6):
        write(chain.source, "one", 2, seed=turn)
        before = executed(chain.source)
        write(chain.source, "two", 2, seed=turn)
        wanted |= executed(chain.source) - before
    chain.wait_published()
    chain.relay.stop()
    sent = []

    def heartbeat(position: Position, server_id: int, *, with_checksum: bool) -> bytes:
        sent.append(position)
        return heartbeat_v2_event(position, server_id, with_checksum=with_checksum)

    monkeypatch.setattr(mysql_filter, "MAX_WIRE_POSITION", 0)
    monkeypatch.setattr(mysql_filter, "heartbeat_v2_event", heartbeat)
    generation = await Generation.open(chain.relay.archive)
    archive = Archive.of(generation)
    source = SourceState(ShownGtids(archive, lambda: None))
    server = DownstreamServer(archive, [Account.with_password(REPLICA_USER, REPLICA_PASSWORD)], source)
    await server.start("127.0.0.1", 0)

    def follow() -> None:
        replica = chain.server("mysql97", GTID_OPTIONS)
        leave_out(replica, wanted)
        attach(replica, server.port)
        check_same(chain, replica, ["one"])
        assert replica.sql("SELECT COUNT(*) FROM two.t") == [(0,)]
        replica.stop_replica()

    try:
        await asyncio.wait_for(asyncio.to_thread(follow), 90)
    finally:
        await server.close()
        await generation.close()
    assert len(sent) >= 6


def purge_all(chain: Chain) -> None:
    """Nothing without a GTID is left at the source or the relay."""
    chain.source.sql("FLUSH BINARY LOGS")
    newest = chain.wait_published().file
    chain.source.sql(f"PURGE BINARY LOGS TO '{newest}'")
    wait_until(lambda: chain.relay.sql("SELECT @@GLOBAL.GTID_MODE") == [("ON",)], "the relay sees it")
    chain.relay.sql(f"PURGE BINARY LOGS TO '{newest}'")


def test_after_the_mode_is_off_a_stream_ends_before_the_next_transaction_with_a_gtid(chains: ChainFactory) -> None:
    chain = chains("mysql97", options=GTID_OPTIONS)
    source = chain.source
    source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    for _ in range(3):
        # More than goes into the buffers of two sockets.
        source.sql("INSERT INTO one.t (b) VALUES (REPEAT('z', 12000000))")
        source.sql("FLUSH BINARY LOGS")
    write(source, "one", 3)
    chain.wait_published()
    clients = [
        follower(source.port, source.replication_user, source.replication_password, 70, GtidSet()),
        follower(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, 71, GtidSet()),
    ]
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
        source.sql(f"SET GLOBAL gtid_mode={mode}")
    wait_until(lambda: chain.relay.sql("SELECT @@GLOBAL.GTID_MODE") == [("OFF",)], "the relay sees it")
    theirs, ours = (read_to_heartbeat(client) for client in clients)
    assert theirs[0] == ours[0] == 1236
    words = "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file "
    assert theirs[1].startswith(words)
    assert ours[1].startswith(words)


def remove_archive(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


@pytest.fixture
def idle_source(chains: ChainFactory) -> Iterator[Chain]:
    yield chains("mysql97", options=["--gtid-mode=ON_PERMISSIVE", "--enforce-gtid-consistency=ON"])


def test_a_source_whose_mode_is_not_on_is_named(idle_source: Chain) -> None:
    source, relay = idle_source.source, idle_source.relay
    idle_source.wait_archived()
    theirs = refusal(source.port, source.replication_user, source.replication_password, GtidSet())
    assert refusal(relay.port, REPLICA_USER, REPLICA_PASSWORD, GtidSet()) == theirs
    assert theirs[0] == 1236


def test_a_request_that_cannot_be_read_ends_the_connection_as_the_source_does(idle_source: Chain) -> None:
    idle_source.wait_archived()
    idle_source.source.sql("SET GLOBAL gtid_mode = ON")
    before = len(idle_source.relay.logged("source_attached"))
    idle_source.relay.stop()
    idle_source.relay.start()
    wait_until(lambda: len(idle_source.relay.logged("source_attached")) > before, "the relay asked its source")
    sets = (b"", b"\1", bytes(7) + b"\7", encode_gtid_set(GtidSet()) + b"?")
    bodies = [encode_binlog_dump_gtid(held, flags=NON_BLOCK, server_id=77) for held in sets]
    for port, user, password in (
        (idle_source.source.port, idle_source.source.replication_user, idle_source.source.replication_password),
        (idle_source.relay.port, REPLICA_USER, REPLICA_PASSWORD),
    ):
        for body in (*bodies, bytes(9)):
            client = ReplicaClient(port, user=user, password=password)
            client.command(COM_BINLOG_DUMP_GTID, body)
            with pytest.raises(pymysql.MySQLError) as caught:
                client.event()
            wanted = (
                (1773, "Malformed GTID set encoding.") if body in bodies else (1835, "Malformed communication packet.")
            )
            assert caught.value.args == wanted
            with pytest.raises(pymysql.MySQLError, match="Lost connection"):
                client.query("SELECT 1")
