"""GTIDs together with TLS, semi-sync, markers, compressed transactions, tags, and replicas full of holes."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from tests.interop.conftest import ChainFactory
from tests.support.certificates import Authority
from tests.support.chain import Chain, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

# What MySQL 9.7 has by default; the servers of the tests are otherwise set to follow sources without GTIDs.
DEFAULTS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
LAYOUTS = {"tbm": REPLICA_USER, "edges": "edges", "strip": "strip"}
COM_BINLOG_DUMP_GTID = 0x1E
NON_BLOCK = 1
MARKER_BITS = 0x3C00
LEAST_CUT_BYTES = 12_000


@pytest.fixture(scope="module")
def listen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A relay that offers TLS and asks for acknowledgements."""
    files = Authority.make(tmp_path_factory.mktemp("certificates")).server()
    return {"demand_acks": True, "tls_cert": str(files.certificate), "tls_key": str(files.key)}


@pytest.fixture(scope="module")
def chain(module_chains: ChainFactory, listen: dict[str, Any]) -> Chain:
    """MySQL 9.7 behind a relay with an account for each marker layout, and something of everything in its binlogs."""
    made = module_chains("mysql97", options=DEFAULTS, sections={"listen": listen, "[account]": {"markers": "tbm"}})
    for layout in ("edges", "strip"):
        made.relay.add_account(user=layout, password=REPLICA_PASSWORD, markers=layout)
    assert made.relay.reload()["event"] == "reloaded"
    for database in ("one", "two"):
        table = f"CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"
        made.source.execute_many([f"CREATE DATABASE {database}", table])
    write(made.source, 60)
    return made


def write(source: Server, transactions: int, *, seed: int = 1) -> GtidSet:
    """Transactions of all sizes, compressed or not, with a tag or none; those in database `two`."""
    chance = random.Random(seed)
    of_two = GtidSet()
    for number in range(transactions):
        database = chance.choice(["one", "one", "two"])
        before = executed(source)
        statements = [
            f"SET binlog_transaction_compression = {chance.choice(['ON', 'OFF'])}",
            f"SET gtid_next = 'AUTOMATIC{chance.choice(['', ':blue', ':green'])}'",
            "BEGIN",
        ]
        for _ in range(chance.choice([1, 2, 40])):
            statements.append(f"INSERT INTO {database}.t (b) VALUES (REPEAT('x', {chance.choice([1, 300, 3_000])}))")
        source.execute_many([*statements, "COMMIT"])
        if database == "two":
            of_two |= executed(source) - before
        if number % 17 == 16:
            source.sql("FLUSH LOGS")
    return of_two


def executed(server: Server) -> GtidSet:
    return GtidSet.from_text(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0])


@pytest.fixture(scope="module")
def semi_sync_replica(chain: Chain) -> Server:
    """A server that is a semi-sync replica, whomever it follows."""
    replica = chain.server("mysql97", DEFAULTS)
    replica.sql("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
    replica.sql("SET GLOBAL rpl_semi_sync_replica_enabled = 1")
    return replica


@pytest.fixture
def replica(semi_sync_replica: Server) -> Iterator[Server]:
    """The same, with nothing in it."""
    yield semi_sync_replica
    semi_sync_replica.stop_replica()
    semi_sync_replica.execute_many(
        [
            "RESET REPLICA ALL",
            "DROP DATABASE IF EXISTS one",
            "DROP DATABASE IF EXISTS two",
            "RESET BINARY LOGS AND GTIDS",
        ]
    )


def leave_out(replica: Server, gtids: GtidSet) -> None:
    """The replica has them from now on, empty."""
    statements = []
    for gtid in gtids.members():
        statements += [f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT"]
    replica.execute_many([*statements, "SET gtid_next = 'AUTOMATIC'"])


def attach(replica: Server, port: int, user: str) -> None:
    """As a stock replica does it: with TLS, by auto-position."""
    replica.attach("127.0.0.1", port, user, REPLICA_PASSWORD, auto_position=1, ssl=1, heartbeat_period=1)


def check_same(chain: Chain, replica: Server, databases: list[str]) -> None:
    """Waits for the replica; its tables and its set are the source's."""
    wanted = executed(chain.source)

    def has_all() -> bool:
        status = replica.replica_status()
        assert status["io_errno"] not in (1236, 13114, 13117, 13122), status["io_error"]
        assert not status["sql_errno"], status["sql_error"]
        return wanted <= executed(replica)

    wait_until(has_all, "the replica has what the source has", 60)
    assert executed(replica) == wanted
    chain.check_tables([replica], databases, timeout_s=30)


def is_semi_sync(replica: Server) -> bool:
    return dict(replica.sql("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_replica_status'")).popitem()[1] == "ON"


def check_acknowledged(chain: Chain, replica: Server) -> None:
    """Stops the replica; it had acknowledged everything."""
    end = chain.wait_published()
    ended = len(chain.relay.logged("dump_ended"))
    replica.stop_replica()
    wait_until(lambda: len(chain.relay.logged("dump_ended")) > ended, "the relay has seen the replica leave")
    assert chain.relay.logged("dump_ended")[-1]["acknowledged"] == f"{end.file}:{end.position}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stock_replica_with_holes_follows_with_tls_and_acknowledges(
    chain: Chain, replica: Server, layout: str
) -> None:
    held = write(chain.source, 25, seed=7)
    started = len(chain.relay.logged("dump_started"))
    leave_out(replica, held)
    attach(replica, chain.relay.port, LAYOUTS[layout])
    check_same(chain, replica, ["one"])
    write(chain.source, 10, seed=8)
    check_same(chain, replica, ["one"])
    assert is_semi_sync(replica)
    (missing,) = replica.sql("SELECT COUNT(*) FROM two.t")[0]
    (wanted,) = chain.source.sql("SELECT COUNT(*) FROM two.t")[0]
    assert missing < wanted, "what the replica said it has was sent all the same"
    (dump,) = chain.relay.logged("dump_started")[started:]
    assert (dump["by_gtid"], dump["semi_sync"], dump["user"]) == (True, True, LAYOUTS[layout])
    logins = [line for line in chain.relay.logged("replica_logged_in") if line["user"] == LAYOUTS[layout]]
    assert logins[-1]["tls"]
    check_acknowledged(chain, replica)


def test_cut_inside_of_compressed_and_tagged_transactions(chain: Chain, replica: Server) -> None:
    places = random.Random(4162)
    with CuttingProxy(chain.relay.port) as proxy:
        proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 80_000) for _ in range(10)))
        attach(replica, proxy.port, REPLICA_USER)
        write(chain.source, 20, seed=11)
        check_same(chain, replica, ["one", "two"])
        assert proxy.cut_count >= 5
    assert not chain.relay.logged("dump_refused")


def test_the_relay_killed_while_compressed_transactions_come_in(chain: Chain, replica: Server) -> None:
    attach(replica, chain.relay.port, "strip")
    for turn in range(3):
        write(chain.source, 6, seed=20 + turn)
        chain.relay.kill()
        write(chain.source, 6, seed=30 + turn)
        chain.relay.start()
    check_same(chain, replica, ["one", "two"])
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


# ---- the stream itself, against the source's ------------------------------------------------------------------------


def stream(port: int, user: str, password: str, held: GtidSet) -> list[bytes]:
    """All events up to EOF, heartbeats without their checksum left in."""
    client = ReplicaClient(port, user=user, password=password)
    try:
        client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
        client.query("SET @master_heartbeat_period=10000000000, @source_heartbeat_period=10000000000")
        request = encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=78)
        client.command(COM_BINLOG_DUMP_GTID, request)
        return [event.data for event in client.events_to_eof()]
    finally:
        client.cut()


def without_markers(event: bytes) -> bytes:
    """Without the marker bits, and without the checksum that they are part of."""
    flags = int.from_bytes(event[17:19], "little") & ~MARKER_BITS
    return event[:17] + flags.to_bytes(2, "little") + event[19:-4]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_whatever_the_markers_the_stream_is_the_sources(chain: Chain, layout: str) -> None:
    source, chance = chain.source, random.Random(5)
    chain.wait_published()
    everything = executed(source)
    members = list(everything.members())
    kinds = set()
    for held in (GtidSet(), everything, *(GtidSet(chance.sample(members, len(members) // 2)) for _ in range(5))):
        theirs = stream(source.port, source.replication_user, source.replication_password, held)
        ours = stream(chain.relay.port, LAYOUTS[layout], REPLICA_PASSWORD, held)
        assert [without_markers(event) for event in ours] == [without_markers(event) for event in theirs], held.line
        marked = [event for event in ours if int.from_bytes(event[17:19], "little") & MARKER_BITS]
        assert bool(marked) == (layout != "strip")
        if layout == "strip":
            assert ours == theirs
        kinds |= {event[4] for event in ours}
    assert {EventType.TRANSACTION_PAYLOAD, EventType.GTID_TAGGED, EventType.GTID, EventType.HEARTBEAT} <= kinds


# ---- MariaDB --------------------------------------------------------------------------------------------------------


def test_a_mariadb_replica_follows_by_gtid_with_tls_and_acknowledges(
    chains: ChainFactory, listen: dict[str, Any]
) -> None:
    chain = chains("mariadb", sections={"listen": listen})
    replica = chain.server("mariadb")
    replica.sql("SET GLOBAL rpl_semi_sync_slave_enabled = 1")
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (id INT PRIMARY KEY AUTO_INCREMENT)"])
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={chain.relay.port}, MASTER_USER='{REPLICA_USER}', "
        f"MASTER_PASSWORD='{REPLICA_PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_SSL=1, "
        "MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_HEARTBEAT_PERIOD=0.1, MASTER_CONNECT_RETRY=1"
    )
    replica.start_replica()
    for turn in range(3):
        statements = [f"SET gtid_domain_id = {domain}" for domain in (0, 5)]
        for domain in statements:
            chain.source.execute_many([domain, *["INSERT INTO one.t VALUES (NULL)"] * 20])
        chain.check_tables([replica], ["one"], timeout_s=30)
        if turn < 2:
            replica.stop_replica()
            replica.start_replica()
    assert dict(replica.sql("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_slave_status'")).popitem()[1] == "ON"
    dumps = chain.relay.logged("dump_started")
    assert [(line["by_gtid"], line["semi_sync"]) for line in dumps] == [(True, True)] * 3
    assert all(line["tls"] for line in chain.relay.logged("replica_logged_in") if line["user"] == REPLICA_USER)
    check_acknowledged(chain, replica)
