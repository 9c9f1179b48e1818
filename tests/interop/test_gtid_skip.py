"""What a real source sends to a replica that asks by GTID, against what is made here of that source's own files."""

import random
import struct
from pathlib import Path
from uuid import UUID

import pymysql
import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from protocol.errors import PositionRefused
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_refusals import ahead_of, ahead_refused, check_mariadb_position, purged_refused
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.file_search import FileSearch, first_needed_list, still_awaited
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.gtid.mysql_gtid import Tsid
from protocol.kernel.gtid_filter import GtidSkip
from tests.conftest import ServerFactory
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

NON_BLOCK = 1
GTID_OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"]


def client_of(server: Server) -> ReplicaClient:
    client = ReplicaClient(server.port, user=server.replication_user, password=server.replication_password)
    client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
    return client


def sent_by(server: Server, client: ReplicaClient) -> list[bytes]:
    """The stored events that a source sends up to EOF: no heartbeats, nothing artificial, no format descriptions."""
    try:
        events = [event.data for event in client.events_to_eof()]
    finally:
        client.close()
    left_out = {EventType.HEARTBEAT, EventType.HEARTBEAT_V2, EventType.FORMAT_DESCRIPTION}
    return [event for event in events if event[4] not in left_out and not event[17] & 0x20]


def made_here(files: list[Path], skip: GtidSkip) -> list[bytes]:
    """The same, by the walk over the files."""
    sent = b""
    for path in files:
        data = path.read_bytes()
        skip.begin()
        at = 4
        while at < len(data):
            end = skip.next_range(data, at, len(data))
            assert end > at
            if skip.sending:
                sent += data[at:end]
            at = end
    events = []
    at = 0
    while at < len(sent):
        (size,) = struct.unpack_from("<I", sent, at + 9)
        if sent[at + 4] != EventType.FORMAT_DESCRIPTION:
            events.append(sent[at : at + size])
        at += size
    return events


def collected(path: Path, flavour: str) -> FileGtidCollector:
    collector = FileGtidCollector(flavour, checksum=True)
    collector.take(path.read_bytes()[4:])
    collector.finish()
    return collector


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_a_source_of_mysql_sends_what_is_made_here_of_its_files(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=GTID_OPTIONS)
    chance = random.Random(29)
    server.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    sources = [f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2)]
    tags = ["", ":a"] if name == "mysql97" else [""]
    numbers = {source + tag: 0 for source in sources for tag in tags}
    for _ in range(120):
        statement = f"INSERT INTO d.t (b) VALUES (REPEAT('x', {chance.choice([1, 300, 70_000])}))"
        if chance.random() < 0.5:
            server.sql(statement)
        else:
            source = chance.choice(list(numbers))
            numbers[source] += chance.choice([1, 1, 2])
            server.execute_many(
                [f"SET gtid_next = '{source}:{numbers[source]}'", statement, "SET gtid_next = AUTOMATIC"]
            )
        if chance.random() < 0.06:
            server.sql("FLUSH LOGS")
    binlogs = server.binlogs()
    search = FileSearch()
    for path in binlogs:
        inside = collected(path, "mysql").inside()
        assert isinstance(inside, GtidSet)
        search.append(inside)
    everything = search.union_from(0)
    for turn in range(25):
        builder = GtidSetBuilder()
        for tsid in everything.tsids():
            for first, last in everything.intervals(tsid):
                # Not all of the server's own: then the newest file is named by nothing.
                for _ in range(chance.randrange(3) if turn else 0):
                    start = chance.randrange(first, last + 1)
                    builder.add_run(tsid.key, start, chance.randrange(start, last + 1) + 1)
        builder.add(Tsid(everything.tsids()[0].uuid, "").key, 10**9)
        held = builder.snapshot() if turn != 24 else everything
        client = client_of(server)
        client.command(0x1E, encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=77 + turn))
        start = search.first_needed(held)
        files = binlogs[-1:] if start is None else binlogs[start:]
        assert sent_by(server, client) == made_here(files, GtidSkip((held & everything).intervals_by_key()))


def test_a_source_of_mariadb_sends_what_is_made_here_of_its_files(servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1)
    chance = random.Random(31)
    server.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)"])
    for _ in range(120):
        server.execute_many(
            [
                f"SET gtid_domain_id = {chance.choice([0, 0, 1, 7])}",
                f"SET server_id = {chance.choice([1, 1, 2])}",
                f"INSERT INTO d.t (b) VALUES (REPEAT('x', {chance.choice([1, 300, 70_000])}))",
            ]
        )
        if chance.random() < 0.06:
            server.sql("FLUSH LOGS")
    binlogs = server.binlogs()
    befores: list[GtidList] = []
    groups: dict[int, list[DomainGtid]] = {}
    for path in binlogs:
        before = collected(path, "mariadb").before
        assert isinstance(before, GtidList)
        befores.append(before)
        exact = FileGtidCollector("mariadb", checksum=True, gap_bytes=0)
        exact.take(path.read_bytes()[4:])
        exact.finish()
        for block in exact.take_blocks():
            for run in block.runs:
                domain, origin = struct.unpack("<II", run.key)
                groups.setdefault(domain, []).append(DomainGtid(domain, origin, run.first))
    for turn in range(25):
        chosen = [chance.choice(found) for found in groups.values() if chance.random() < 0.8]
        if turn == 24:
            chosen = [found[-1] for found in groups.values()]
        position = GtidPosition(chosen)
        client = client_of(server)
        client.query(f"SET @mariadb_slave_capability=4, @slave_connect_state='{position}'")
        client.ask_dump("", 4, server_id=77 + turn, flags=NON_BLOCK | 2)
        start = first_needed_list(befores, position)
        assert start is not None
        awaited = [
            (gtid.domain_id, gtid.server_id, gtid.sequence_number) for gtid in still_awaited(befores[start], position)
        ]
        assert sent_by(server, client) == made_here(binlogs[start:], GtidSkip(None, awaited))


def refusal_of(server: Server, client: ReplicaClient) -> str:
    """The text of the error in place of a stream; "" if there is a stream."""
    try:
        client.events_to_eof()
    except pymysql.MySQLError as error:
        assert error.args[0] == 1236
        return str(error.args[1])
    finally:
        client.close()
    return ""


def first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


def test_mariadb_refuses_the_positions_that_are_refused_here(servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1)
    server.sql("RESET MASTER")
    for domain, origin, number in [(0, 1, 1), (0, 1, 2), (0, 2, 3), (1, 1, 1), (0, 2, 10), (0, 1, 11), (2, 1, 4)]:
        server.execute_many(
            [
                f"SET gtid_domain_id = {domain}",
                f"SET server_id = {origin}",
                f"SET gtid_seq_no = {number}",
                "CREATE DATABASE IF NOT EXISTS d",
            ]
        )
    state = GtidList.from_text(server.sql("SELECT @@GLOBAL.gtid_binlog_state")[0][0])
    seen = set()
    for text in (
        "0-1-2",
        "0-2-7",
        "0-1-12",
        "0-1-20",
        "0-9-5",
        "0-9-11",
        "0-9-12",
        "2-1-5",
        "2-2-4",
        "2-2-3",
        "9-1-1",
        "",
    ):
        for duplicates in (0, 1):
            client = client_of(server)
            client.query(
                f"SET @mariadb_slave_capability=4, @slave_connect_state='{text}', @slave_gtid_ignore_duplicates={duplicates}"
            )
            client.ask_dump("", 4, server_id=77, flags=NON_BLOCK | 2)
            theirs = refusal_of(server, client)
            ours = ""
            try:
                check_mariadb_position(GtidPosition.from_text(text), state, ignore_duplicates=bool(duplicates))
            except PositionRefused as refused:
                ours = refused.what
            assert first_sentence(ours) == first_sentence(theirs), (text, duplicates)
            assert ("diverged" in ours) == ("diverged" in theirs), (text, duplicates)
            seen.add(first_sentence(ours)[:20] + str("diverged" in ours))
    assert len(seen) == 3


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_mysql_refuses_the_sets_that_are_refused_here(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=GTID_OPTIONS)
    version = {"mysql56": (5, 6, 24), "mysql97": (9, 7, 4)}[name]
    uuid = server.sql("SELECT @@GLOBAL.server_uuid")[0][0]
    for number in range(6):
        server.sql(f"CREATE DATABASE d{number}")
        server.sql("FLUSH LOGS")
    executed = GtidSet.from_text(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0])
    server.sql(f"PURGE BINARY LOGS TO '{server.binlogs()[-2].name}'")
    purged = GtidSet.from_text(server.sql("SELECT @@GLOBAL.gtid_purged")[0][0])
    assert purged
    other = "00000000-0000-0000-0000-000000000001"
    for text in (
        "",
        f"{uuid}:1",
        str(purged),
        str(executed),
        f"{executed.line},{uuid}:1000",
        f"{executed.line},{other}:7",
    ):
        held = GtidSet.from_text(text)
        client = client_of(server)
        client.command(0x1E, encode_binlog_dump_gtid(encode_gtid_set(held), flags=NON_BLOCK, server_id=77))
        theirs = refusal_of(server, client)
        surplus, missing = ahead_of(held, executed, [UUID(uuid)]), purged - held
        if surplus:
            ours = ahead_refused(surplus, version).what
        elif missing:
            ours = purged_refused(held, missing, version).what
        else:
            ours = ""
        assert first_sentence(ours) == first_sentence(theirs), text
