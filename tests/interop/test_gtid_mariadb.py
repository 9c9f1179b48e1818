"""MariaDB replicas that ask by GTID: behind the relay as behind the source, from any position, through any trouble."""

import random
import struct
import time
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from protocol.gtid.mariadb import DomainGtid, GtidPosition, decode_gtid_list
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, purge_before_newest, wait_until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

NON_BLOCK = 1
SEND_ANNOTATE = 2
Described = tuple[str, int, int, str]
LEAST_CUT_BYTES = 6000


def write(source: Server, transactions: int, *, seed: int = 1, domains: tuple[int, ...] = (0, 0, 1, 7)) -> None:
    """Transactions of all sizes in several domains, by several servers of each, in several files."""
    chance = random.Random(seed)
    for number in range(transactions):
        domain = chance.choice(domains)
        statements = [f"SET gtid_domain_id = {domain}", f"SET server_id = {chance.choice([1, 1, 2])}", "BEGIN"]
        for _ in range(chance.choice([1, 1, 2, 40])):
            statements.append(f"INSERT INTO d.t{domain} (b) VALUES (REPEAT('x', {chance.choice([1, 300, 3_000])}))")
        source.execute_many([*statements, "COMMIT"])
        if number % 11 == 10:
            source.sql("FLUSH LOGS")


def write_large_transaction(source: Server) -> None:
    source.execute_many(["BEGIN", *["INSERT INTO d.t0 (b) VALUES (REPEAT('y', 3000))"] * 60, "COMMIT"])


@pytest.fixture
def chain(chains: ChainFactory) -> Chain:
    """A source with GTIDs behind a relay; tables d.t0, d.t1, d.t7, one for each domain."""
    made = chains("mariadb", options=["--binlog-format=ROW"], sections={"[account]": {"markers": "strip"}})
    made.source.sql("CREATE DATABASE d")
    for domain in (0, 1, 7):
        made.source.sql(f"CREATE TABLE d.t{domain} (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)")
    return made


def attach(replica: Server, port: int, use_gtid: str = "slave_pos") -> None:
    """Follow whoever listens there, by GTID."""
    replica.stop_replica()
    user = f"MASTER_USER='{REPLICA_USER}', MASTER_PASSWORD='{REPLICA_PASSWORD}'"
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, {user}, MASTER_USE_GTID={use_gtid}, "
        "MASTER_HEARTBEAT_PERIOD=1, MASTER_CONNECT_RETRY=1, MASTER_SSL=0"
    )
    replica.start_replica()


def attach_to_source(replica: Server, source: Server) -> None:
    replica.stop_replica()
    user = f"MASTER_USER='{source.replication_user}', MASTER_PASSWORD='{source.replication_password}'"
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, {user}, MASTER_USE_GTID=slave_pos"
    )
    replica.start_replica()


def position(server: Server, name: str) -> GtidPosition:
    return GtidPosition.from_text(server.sql(f"SELECT @@GLOBAL.{name}")[0][0])


def check_same(chain: Chain, replica: Server) -> None:
    """Waits for the replica; its tables and its position are the source's."""
    wanted = position(chain.source, "gtid_binlog_pos")

    def has_all() -> bool:
        status = replica.replica_status()
        assert status["io_errno"] not in (1236, 1595, 1941, 4000), status["io_error"]
        assert not status["sql_errno"], status["sql_error"]
        return position(replica, "gtid_slave_pos") == wanted

    wait_until(has_all, "the replica is where the source is", 60)
    chain.check_tables([replica], ["d"], timeout_s=30)


@pytest.mark.parametrize("use_gtid", ["slave_pos", "current_pos"])
def test_a_replica_follows_by_gtid_and_through_stops(chain: Chain, use_gtid: str) -> None:
    replica = chain.server("mariadb")
    write(chain.source, 40)
    attach(replica, chain.relay.port, use_gtid)
    check_same(chain, replica)
    for turn in range(5):
        replica.stop_replica()
        write(chain.source, 15, seed=turn, domains=((0, 1), (7,), (0,))[turn % 3])
        replica.start_replica()
        write(chain.source, 5, seed=turn)
        check_same(chain, replica)
    assert all(line["by_gtid"] for line in chain.relay.logged("dump_started"))
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


def test_cut_inside_of_transactions(chain: Chain) -> None:
    replica = chain.server("mariadb")
    places = random.Random(4162)
    with CuttingProxy(chain.relay.port) as proxy:
        attach(replica, proxy.port)
        write(chain.source, 5)
        check_same(chain, replica)
        proxy.cut_after(*(places.randrange(LEAST_CUT_BYTES, 60_000) for _ in range(12)))
        proxy.cut_now_after(10_000)
        for _ in range(3):
            write_large_transaction(chain.source)

        def start_again() -> bool:
            # As behind a source: MariaDB stops with 1595 where it was cut off between the rows of one statement.
            if replica.replica_status()["io_errno"] == 1595:
                replica.start_replica()
                wait_until(lambda: replica.replica_status()["io_errno"] != 1595, "the receiving thread starts again")
            return position(replica, "gtid_slave_pos") == position(chain.source, "gtid_binlog_pos")

        wait_until(start_again, "the replica is where the source is", 60)
        check_same(chain, replica)
        assert proxy.cut_count >= 5
    assert not chain.relay.logged("dump_refused")


def test_the_relay_killed_while_a_replica_is_in_mid_transaction(chain: Chain) -> None:
    replica = chain.server("mariadb")
    with CuttingProxy(chain.relay.port) as proxy:
        attach(replica, proxy.port)
        write(chain.source, 15)
        check_same(chain, replica)
        for stalled_after in (3_333, 90_000):
            proxy.stall_after(stalled_after)
            write_large_transaction(chain.source)
            chain.wait_published()
            wait_until(lambda: proxy.stalled, "the proxy holds the transaction back")
            chain.relay.kill()
            proxy.cut_all()
            proxy.flow()
            chain.relay.start()
            check_same(chain, replica)
    assert not chain.relay.logged("dump_refused")
    chain.check_archive()


def test_a_replica_moves_between_source_and_relay_and_back(chain: Chain) -> None:
    replica = chain.server("mariadb")
    for turn in range(3):
        attach(replica, chain.relay.port)
        write(chain.source, 12, seed=turn)
        check_same(chain, replica)
        write(chain.source, 3, seed=turn)
        attach_to_source(replica, chain.source)
        write(chain.source, 12, seed=turn)
        check_same(chain, replica)
    assert not chain.relay.logged("dump_refused")


# ---- the stream itself, against the source's ------------------------------------------------------------------------


def client_of(port: int, user: str, password: str, asked: str, **variables: int | str) -> ReplicaClient:
    client = ReplicaClient(port, user=user, password=password)
    client.query(
        "SET @master_binlog_checksum='CRC32', @master_heartbeat_period=10000000000, @mariadb_slave_capability=4"
    )
    client.query(f"SET @slave_connect_state='{asked}'")
    for name, value in variables.items():
        client.query(f"SET @{name}={value!r}")
    client.ask_dump("", 4, server_id=77, flags=NON_BLOCK | SEND_ANNOTATE)
    return client


def stream(port: int, user: str, password: str, asked: str, **variables: int | str) -> list[Described] | str:
    """All events up to EOF, as a replica at this position gets them; or the refusal's text.

    Without Binlog_checkpoint: the relay leaves out those between groups that it need not read.
    """
    client = client_of(port, user, password, asked, **variables)
    events: list[bytes] = []
    try:
        events = [event.data for event in client.events_to_eof()]
    except pymysql.MySQLError as error:
        return f"{error.args[0]}: {error.args[1]}"
    finally:
        client.cut()
    return [described(event) for event in events if event[4] != EventType.BINLOG_CHECKPOINT]


def described(event: bytes) -> Described:
    """An artificial Gtid_list is compared by what it says: its order is that of a hash table."""
    name, (end,) = EventType(event[4]).name, struct.unpack_from("<I", event, 13)
    if event[4] == EventType.GTID_LIST and event[17] & 0x20:
        told = decode_gtid_list(event[19:-4])
        return name, len(event), end, f"{sorted(told)} {told.flags}"
    return name, len(event), end, event.hex()


def groups_of(source: Server) -> dict[int, list[DomainGtid]]:
    """All event groups, in the order of the binlogs, by domain. Asked of the source itself."""
    groups: dict[int, list[DomainGtid]] = {}
    for path in source.binlogs():
        for row in source.sql(f"SHOW BINLOG EVENTS IN '{path.name}'"):
            if row[2] == "Gtid":
                gtid = DomainGtid.from_text(str(row[5]).split("GTID ")[1].split()[0])
                groups.setdefault(gtid.domain_id, []).append(gtid)
    return groups


def same(theirs: object, ours: object) -> bool:
    """Refusals are compared up to what the relay adds."""
    if isinstance(theirs, str) and isinstance(ours, str):
        return theirs.split(". ")[0].rstrip(".") in ours
    return theirs == ours


def difference(theirs: object, ours: object) -> object:
    """Where two streams part."""
    if isinstance(theirs, list) and isinstance(ours, list):
        for number, (their, our) in enumerate(zip(theirs, ours, strict=False)):
            if their != our:
                return number, their, our
        return len(theirs), len(ours), theirs[-1], ours[-3:]
    return theirs, ours


def stands_still(source: Server) -> bool:
    before = source.master_status()
    time.sleep(1.5)
    return source.master_status() == before


def test_the_stream_is_the_sources_byte_by_byte(chain: Chain) -> None:
    source, chance = chain.source, random.Random(31)
    for turn in range(6):
        write(source, 20, seed=turn)
    # MariaDB notes in its binlog, some time after a transaction, that storage engines have synced it.
    wait_until(lambda: stands_still(source), "nothing is written any more")
    chain.wait_published()
    groups = groups_of(source)
    positions = [",".join(str(found[-1]) for found in groups.values()), ""]
    for _ in range(30):
        chosen = [chance.choice(found) for found in groups.values() if chance.random() < 0.8]
        positions.append(",".join(map(str, chosen)))
    positions += ["9-9-9", f"{positions[0]},9-9-9", "0-1-99999", "0-9-3"]
    for asked in positions:
        theirs = stream(source.port, source.replication_user, source.replication_password, asked)
        ours = stream(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, asked)
        assert same(theirs, ours), (asked, difference(theirs, ours))


def test_what_a_replica_has_of_a_file_is_not_even_read(chain: Chain) -> None:
    source = chain.source
    source.execute_many(["SET gtid_domain_id = 7", "INSERT INTO d.t7 (b) VALUES ('first')"])
    for _ in range(4):
        for number in range(30):
            domain = (0, 0, 1)[number % 3]
            source.execute_many(
                [f"SET gtid_domain_id = {domain}", f"INSERT INTO d.t{domain} (b) VALUES (REPEAT('x', 70000))"]
            )
        source.sql("FLUSH LOGS")
    wait_until(lambda: stands_still(source), "nothing is written any more")
    chain.wait_published()
    groups = groups_of(source)
    # The replica lacks domain 7 from the first file on, else only the last groups; and in the middle of a file.
    positions = [f"{groups[0][-3]},{groups[1][-2]}", f"{groups[0][-2]},{groups[1][-1]},{groups[7][-1]}"]
    expected = [theirs_and_ours(chain, asked) for asked in positions]
    for number in (1, 2):
        spoil(chain.relay.archive / source.binlogs()[number].name, 100_000, 2_000_000)
    spoil(chain.relay.archive / source.binlogs()[3].name, 100_000, 1_700_000)
    for asked, (theirs, before) in zip(positions, expected, strict=True):
        assert same(theirs, before), (asked, difference(theirs, before))
        ours = stream(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, asked)
        assert same(theirs, ours), (asked, difference(theirs, ours))


def spoil(path: Path, start: int, stop: int) -> None:
    """What is read of it from now on is no event."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * (stop - start))


def theirs_and_ours(chain: Chain, asked: str, **variables: int | str) -> tuple[list[Described] | str, ...]:
    source = chain.source
    return (
        stream(source.port, source.replication_user, source.replication_password, asked, **variables),
        stream(chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, asked, **variables),
    )


def write_with_holes(source: Server) -> None:
    for number in (100, 101, 105, 110):
        source.execute_many(
            [
                "SET gtid_domain_id = 1",
                f"SET gtid_seq_no = {number}",
                "BEGIN",
                "INSERT INTO d.t1 (b) VALUES ('a')",
                "INSERT INTO d.t1 (b) VALUES ('b')",
                "COMMIT",
            ]
        )
        source.sql("INSERT INTO d.t0 (b) VALUES ('a')")


def position_with(source: Server, asked: str) -> str:
    """The source's end, but for the domain of this GTID."""
    others = [str(gtid) for gtid in position(source, "gtid_binlog_pos") if gtid.domain_id != 1]
    return ",".join([*others, asked])


@pytest.mark.parametrize("strict", [0, 1])
def test_holes_in_strict_mode_and_not(chain: Chain, strict: int) -> None:
    source = chain.source
    write_with_holes(source)
    wait_until(lambda: stands_still(source), "nothing is written any more")
    chain.wait_published()
    refused = set()
    for asked in ("1-1-103", "1-1-101", "1-1-107", "1-1-110"):
        for place in (position_with(source, asked), f"0-1-2,{asked}"):
            theirs, ours = theirs_and_ours(chain, place, slave_gtid_strict_mode=strict)
            assert same(theirs, ours), (place, difference(theirs, ours))
            if isinstance(theirs, str):
                refused.add(asked)
    assert refused == ({"1-1-103", "1-1-107"} if strict else set())


def test_a_replica_that_starts_in_a_hole_goes_on_behind_it(chain: Chain) -> None:
    source = chain.source
    write_with_holes(source)
    replica = chain.server("mariadb")
    replica.execute_many(
        ["CREATE DATABASE d", "CREATE TABLE d.t0 LIKE mysql.db", "DROP TABLE d.t0"]
        + [f"CREATE TABLE d.t{domain} (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)" for domain in (0, 1, 7)]
    )
    replica.execute_many([f"SET GLOBAL gtid_slave_pos = '{position_with(source, '1-1-103')}'"])
    attach(replica, chain.relay.port)
    write(source, 10)
    wait_until(
        lambda: position(replica, "gtid_slave_pos") == position(source, "gtid_binlog_pos"), "the replica has it all", 60
    )
    assert replica.sql("SELECT COUNT(*) FROM d.t1 WHERE b IN ('a', 'b')") == [(4,)]


def test_the_stream_ends_where_the_replica_wants_as_the_sources_does(chain: Chain) -> None:
    source, chance = chain.source, random.Random(47)
    write_with_holes(source)
    for turn in range(4):
        write(source, 20, seed=turn)
    wait_until(lambda: stands_still(source), "nothing is written any more")
    chain.wait_published()
    groups = groups_of(source)
    ends = ["", "0-1-1", "9-1-5", "1-1-103", "1-1-103,0-1-3", "0-1-3,0-1-4", "no position"]
    for _ in range(25):
        ends.append(",".join(str(chance.choice(found)) for found in groups.values() if chance.random() < 0.7))
    finished = 0
    for end in ends:
        chosen = [chance.choice(found) for found in groups.values() if chance.random() < 0.6]
        for asked in ("", ",".join(map(str, chosen))):
            theirs, ours = theirs_and_ours(chain, asked, slave_until_gtid=end)
            assert same(theirs, ours), (asked, end, difference(theirs, ours))
            finished += isinstance(theirs, list) and theirs[-1][3].endswith(" 1")
    assert finished > len(ends)


@pytest.mark.parametrize("name", ["mariadb", "mariadb118"])
def test_start_slave_until_ends_behind_the_same_group_as_behind_the_source(chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=["--binlog-format=ROW"], sections={"[account]": {"markers": "strip"}})
    chain.source.sql("CREATE DATABASE d")
    for domain in (0, 1, 7):
        chain.source.sql(f"CREATE TABLE d.t{domain} (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)")
    write(chain.source, 30)
    chain.wait_published()
    groups = groups_of(chain.source)
    end = ",".join(str(found[len(found) // 2]) for found in groups.values())
    words = ["UNTIL master_gtid_pos", *(["UNTIL SQL_BEFORE_GTIDS"] if name == "mariadb118" else [])]
    for word in words:
        behind_relay, behind_source = chain.server(name), chain.server(name)
        attach(behind_relay, chain.relay.port)
        attach_to_source(behind_source, chain.source)
        stopped_at = [stops_at(replica, f"{word} = '{end}'") for replica in (behind_relay, behind_source)]
        assert stopped_at[0] == stopped_at[1]
        assert (stopped_at[0] == GtidPosition.from_text(end)) == (word == words[0])


def stops_at(replica: Server, until: str) -> GtidPosition:
    """Where a replica, begun again, is when it has stopped by itself."""
    replica.stop_replica()
    replica.execute_many(["SET GLOBAL gtid_slave_pos = ''", "RESET MASTER", "DROP DATABASE IF EXISTS d"])
    replica.sql(f"START SLAVE {until}")
    wait_until(lambda: not replica.replica_status()["sql_running"], "the replica stopped", 30)
    return position(replica, "gtid_slave_pos")


def test_a_domain_that_was_empty_is_looked_at_when_something_of_it_comes(chain: Chain) -> None:
    source = chain.source
    write(source, 3)
    chain.wait_published()
    end = position(source, "gtid_binlog_pos")
    user, password = source.replication_user, source.replication_password
    said = []
    clients = []
    for port, login in ((source.port, (user, password)), (chain.relay.port, (REPLICA_USER, REPLICA_PASSWORD))):
        client = ReplicaClient(port, user=login[0], password=login[1])
        client.query("SET @master_binlog_checksum='CRC32', @mariadb_slave_capability=4")
        client.query(f"SET @slave_connect_state='{end},9-9-9'")
        client.ask_dump("", 4, server_id=77, flags=SEND_ANNOTATE)
        clients.append(client)
    source.execute_many(["SET gtid_domain_id = 9", "INSERT INTO d.t0 (b) VALUES ('9')"])
    for client in clients:
        with pytest.raises(pymysql.MySQLError) as caught:
            client.events_to_eof()
        said.append(caught.value.args)
        client.cut()
    assert said[0][0] == 1236 and "requested to start from GTID 9-9-9" in said[0][1]
    assert said[1][0] == 1105 and "9-9-9" in said[1][1]
    theirs, ours = theirs_and_ours(chain, f"{end},9-9-9")
    assert same(theirs, ours), (theirs, ours)
    assert "9-9-9" in str(ours)


def test_the_gtids_at_a_position_are_those_that_the_source_says(chain: Chain) -> None:
    source = chain.source
    write(source, 30)
    chain.wait_published()
    asked = [("mysql-bin.999999", 4), (source.binlogs()[0].name, 10**9)]
    for path in source.binlogs():
        rows = source.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
        places = [int(row[1]) for row in rows] + [int(rows[-1][4])]
        asked += [(path.name, place) for place in places[:: max(1, len(places) // 40)]]
        asked += [(path.name, place) for place in (0, 5, places[-1], places[-1] - 1, places[-2])]
    said = set()
    for file, place in asked:
        statement = f"SELECT BINLOG_GTID_POS('{file}', {place})"
        ((theirs,),), ((ours,),) = source.sql(statement), chain.relay.sql(statement)
        said.add(theirs)
        if theirs is None or ours is None:
            assert theirs == ours, (file, place)
        else:
            assert GtidPosition.from_text(ours) == GtidPosition.from_text(theirs), (file, place)
    assert None in said and len(said) > 20


def test_a_position_before_the_oldest_file_is_refused_in_the_sources_words(chain: Chain) -> None:
    source, relay = chain.source, chain.relay
    write(source, 12)
    early = str(position(source, "gtid_binlog_pos"))
    write(source, 24)
    source.sql("FLUSH LOGS")
    purge_before_newest(source)
    late = str(position(source, "gtid_binlog_pos"))
    relay.stop()
    for path in relay.archive.iterdir():
        path.unlink()
    relay.start()
    write(source, 5)
    chain.wait_published()
    for asked, served in (("", False), (early, False), (late, True)):
        theirs = stream(source.port, source.replication_user, source.replication_password, asked)
        ours = stream(relay.port, REPLICA_USER, REPLICA_PASSWORD, asked)
        assert isinstance(theirs, list) == isinstance(ours, list) == served, (asked, theirs, ours)
        if not served:
            assert same(theirs, ours), (theirs, ours)
            assert "Could not find GTID state requested by slave in any binlog files" in str(ours)
    replica = chain.server("mariadb")
    attach(replica, relay.port)
    number, text = replica.wait_io_error()
    assert number == 1236
    assert "Could not find GTID state requested by slave in any binlog files" in text
