"""GTID sets of ours and of real servers: the same texts, the same arithmetic, the same bytes in binlogs."""

import random
from uuid import UUID

import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import GtidList, GtidPosition, decode_gtid_list, encode_gtid_list
from protocol.gtid.mysql_gtid import MAX_GNO, MysqlGtid, Tsid
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

MYSQL = ["mysql56", "mysql97"]
OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"]
RESET = {"mysql56": "RESET MASTER", "mysql97": "RESET BINARY LOGS AND GTIDS", "mariadb": "RESET MASTER"}
FLUSH = {"mysql56": "FLUSH LOGS", "mysql97": "FLUSH BINARY LOGS"}


def random_set(chance: random.Random, *, tagged: bool) -> GtidSet:
    builder = GtidSetBuilder()
    for _ in range(chance.randrange(12)):
        tag = chance.choice(["", "", "a", "_b9", "tag_of_32_characters_and_no_more"]) if tagged else ""
        source = Tsid(UUID(int=chance.choice([1, 2, 3, 2**100, 2**127])), tag)
        start = chance.choice([1, 5, chance.randrange(1, 60), chance.randrange(1, 60), MAX_GNO - 20])
        builder.add_run(source.key, start, start + chance.randrange(1, 12))
    return builder.snapshot()


def body_of(server: Server, kind: EventType) -> bytes:
    """The body of the newest binlog's second event, which is of this kind."""
    data = server.binlogs()[-1].read_bytes()
    at = 4 + int.from_bytes(data[13:17], "little")
    assert data[at + 4] == kind
    return data[at + 19 : at + int.from_bytes(data[at + 9 : at + 13], "little") - 4]


@pytest.mark.parametrize("name", MYSQL)
def test_arithmetic_of_random_sets_is_the_servers(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1)
    chance = random.Random(7)
    pairs = [tuple(random_set(chance, tagged=name == "mysql97") for _ in "ab") for _ in range(150)]
    pairs += [(a & b, b) for a, b in pairs[:50]]
    for a, b in pairs:
        ((difference, subset, same),) = server.sql(
            f"SELECT GTID_SUBTRACT('{a}', '{b}'), GTID_SUBSET('{a}', '{b}'), GTID_SUBTRACT('{(a | b).line}', '')"
        )
        assert str(a - b) == difference
        assert (a <= b) == bool(subset)
        assert str(a | b) == same
        # The server has no intersection; this is one in its words.
        assert server.sql(f"SELECT GTID_SUBTRACT('{a}', GTID_SUBTRACT('{a}', '{b}'))") == [(str(a & b),)]


@pytest.mark.parametrize("name", MYSQL)
def test_the_text_of_executed_sets_is_the_servers(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=OPTIONS)
    chance = random.Random(11)
    for _ in range(15):
        server.sql(RESET[name])
        given = random_set(chance, tagged=name == "mysql97")
        server.sql(f"SET GLOBAL gtid_purged = '{given}'")
        assert server.sql("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged") == [(str(given), str(given))]


def test_the_bytes_of_random_sets_in_binlogs_are_those_of_5_6(servers: ServerFactory) -> None:
    server = servers("mysql56").start(server_id=1, options=OPTIONS)
    chance = random.Random(13)
    for _ in range(15):
        server.sql("RESET MASTER")
        given = random_set(chance, tagged=False)
        server.sql(f"SET GLOBAL gtid_purged = '{given}'")
        server.sql("FLUSH LOGS")
        body = body_of(server, EventType.PREVIOUS_GTIDS)
        assert decode_gtid_set(body) == given
        assert encode_gtid_set(given) == body


def test_the_bytes_of_random_sets_in_binlogs_are_those_of_9_7(servers: ServerFactory) -> None:
    server = servers("mysql97").start(server_id=1, options=OPTIONS)
    chance = random.Random(17)
    for round_number in range(6):
        server.sql("RESET BINARY LOGS AND GTIDS")
        # What was purged is not in Previous_gtids there: the set is made of transactions.
        members = [
            MysqlGtid(tsid, first)
            for tsid in random_set(chance, tagged=round_number > 1).tsids()
            for first in sorted({chance.randrange(1, 9) for _ in range(4)})
        ]
        statements = [f"SET gtid_next = '{gtid}'; CREATE DATABASE IF NOT EXISTS a" for gtid in members]
        server.execute_many([part for statement in statements for part in statement.split("; ")])
        server.execute_many(["SET gtid_next = AUTOMATIC", "FLUSH BINARY LOGS"])
        body = body_of(server, EventType.PREVIOUS_GTIDS)
        assert decode_gtid_set(body) == GtidSet(members)
        # Once it saw a tag it writes the second format for any set.
        assert encode_gtid_set(GtidSet(members), tagged=body[7] == 1) == body


def random_state(chance: random.Random) -> str:
    numbers = [chance.randrange(1, 2**63), 2**64 - 1, *range(1, 9)]
    members = {
        (chance.choice([0, 1, 2, 11, 2**32 - 1]), chance.choice([1, 2, 2**32 - 1])): chance.choice(numbers)
        for _ in range(chance.randrange(7))
    }
    return ",".join(f"{domain}-{server}-{number}" for (domain, server), number in members.items())


def test_lists_and_positions_of_mariadb_are_the_servers(servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1)
    chance = random.Random(19)
    for _ in range(12):
        given = random_state(chance)
        server.sql("RESET MASTER")
        server.sql(f"SET GLOBAL gtid_binlog_state = '{given}'")
        ((state, position),) = server.sql("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos")
        body = body_of(server, EventType.GTID_LIST)
        decoded = decode_gtid_list(body)
        assert decoded == GtidList.from_text(given)
        assert str(decoded.position) == position
        assert GtidPosition.from_text(position) == decoded.position
        # Within a domain the server lists its older groups as its hash table has them, ours as the event has them.
        assert GtidList.from_text(state) == decoded
        assert encode_gtid_list(decoded) == body
        shown = [row[5] for row in server.sql("SHOW BINLOG EVENTS LIMIT 3") if row[2] == "Gtid_list"]
        assert shown == [f"[{decoded.event_text}]"]
        server.sql(f"SET GLOBAL gtid_slave_pos = '{position}'")
        assert server.sql("SELECT @@GLOBAL.gtid_slave_pos") == [(str(decoded.position),)]
