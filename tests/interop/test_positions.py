"""Where a replica may start: refused with the nearest valid positions, held, or served."""

import contextlib
import time
from collections.abc import Callable, Iterator

import pymysql
import pytest

from deploy.servers import BinlogPosition
from protocol.binlog.event_type import EventType
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, last_transaction, wait_until
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.interop

POSITION_WAIT_S = 1.5
PAIRS = [("mysql56", "mysql56"), ("mysql56", "mysql97"), ("mysql56", "mariadb"), ("mariadb", "mariadb")]
# The error that stops a replica; MySQL 9.7 has a number of its own for it.
REFUSED = {"mysql56": 1236, "mariadb": 1236, "mysql97": 13114}
TABLE = [
    "CREATE DATABASE one",
    # The default character set differs between servers, and a row event does not say which it has.
    "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB DEFAULT CHARSET=latin1",
]


@pytest.fixture(scope="module")
def module_chain(module_chains: ChainFactory) -> Callable[[str], Chain]:
    """The module's chain with a source of this name, with table one.t; made when first asked for."""
    made: dict[str, Chain] = {}

    def chain(name: str) -> Chain:
        if name not in made:
            sections = {"listen": {"position_wait_s": POSITION_WAIT_S}}
            made[name] = module_chains(name, options=["--binlog-format=ROW"], sections=sections)
            made[name].source.execute_many(TABLE)
        return made[name]

    return chain


@pytest.fixture
def chain(module_chain: Callable[[str], Chain]) -> Chain:
    """The chain of MySQL 5.6, with a whole transaction of several rows in it."""
    made = module_chain("mysql56")
    write_transaction(made)
    return made


def write_transaction(chain: Chain) -> tuple[str, list[int], int]:
    """Three rows in three statements of one transaction; its file, the offsets of its events, and its end."""
    first = chain.source.sql("SELECT IFNULL(MAX(id), 0) + 1 FROM one.t")[0][0]
    rows = [f"INSERT INTO one.t VALUES ({first + number}, REPEAT('x', 150))" for number in range(3)]
    chain.source.execute_many(["BEGIN", *rows, "COMMIT"])
    chain.wait_archived()
    return last_transaction(chain.source)


@pytest.mark.parametrize(("source_name", "replica_name"), PAIRS)
def test_a_fresh_replica_in_mid_transaction_is_told_the_nearest_positions_and_works_from_there(
    module_chain: Callable[[str], Chain], source_name: str, replica_name: str
) -> None:
    chain = module_chain(source_name)
    replica = chain.server(replica_name)
    # What a copy of the source taken before the transaction would hold.
    rows = chain.source.sql("SELECT id, v FROM one.t ORDER BY id")
    replica.execute_many([*TABLE, *(f"INSERT INTO one.t VALUES ({key}, '{text}')" for key, text in rows)])
    file, events, end = write_transaction(chain)
    middle = events[len(events) // 2]
    chain.attach(replica, BinlogPosition(file, middle))
    errno, text = replica.wait_io_error()
    assert errno == REFUSED[replica_name]
    assert f"{file}:{middle} is inside the transaction {events[0]}-{end}" in text
    assert f"before {events[0]}, after {end}" in text
    assert len(chain.relay.logged("dump_refused")[-1]["reason"].encode()) <= 480
    assert replica.sql("SELECT COUNT(*) FROM one.t") == [(len(rows),)]
    chain.attach(replica, BinlogPosition(file, events[0]))
    chain.check_tables([replica], ["one"])


@pytest.mark.parametrize("replica_name", ["mysql56", "mysql97", "mariadb"])
def test_a_replica_that_has_it_all_is_refused_inside_a_transaction_like_any_other(
    chain: Chain, replica_name: str
) -> None:
    replica = chain.replica(replica_name)
    chain.check_tables([replica], ["one"])
    file, events, _ = last_transaction(chain.source)
    time.sleep(3.5)  # until the relay believes that what it sent has arrived
    chain.attach(replica, BinlogPosition(file, events[2]))
    errno, text = replica.wait_io_error()
    assert errno == REFUSED[replica_name]
    assert f"{file}:{events[2]} is inside the transaction" in text


def refused(chain: Chain, file: str, offset: int) -> tuple[int, str]:
    """The error that a raw client gets for this position."""
    with contextlib.closing(chain.raw_client()) as client:
        client.ask_dump(file, offset)
        with pytest.raises(pymysql.MySQLError) as raised:
            client.events(3)
    number, text = raised.value.args
    assert len(text.encode()) <= 480
    return number, text


@pytest.fixture
def bystander(chain: Chain) -> Iterator[ReplicaClient]:
    """Another replica, which must not notice."""
    end = chain.wait_archived()
    client = chain.raw_client()
    client.ask_dump(end.file, end.position, server_id=99)
    client.events(2)  # Rotate and format description
    yield client
    write_transaction(chain)
    while client.events(1)[0].kind != EventType.XID:
        pass
    client.cut()


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize(("offset", "said"), [(0, "the first is 4"), (3, "the first is 4"), (2**32 - 1, "2^32-1")])
def test_an_offset_that_is_none_is_refused_by_name(chain: Chain, offset: int, said: str) -> None:
    file = chain.source.master_status().file
    number, text = refused(chain, file, offset)
    assert number == 1236
    assert f"{file}:{offset}" in text
    assert said in text


@pytest.mark.usefixtures("bystander")
def test_an_offset_inside_an_event_is_refused_with_the_nearest_positions(chain: Chain) -> None:
    file, events, end = last_transaction(chain.source)
    number, text = refused(chain, file, events[1] + 5)
    assert number == 1236
    assert f"{file}:{events[1] + 5} is inside an event, in the transaction {events[0]}-{end}" in text
    assert f"before {events[0]}, after {end}" in text


@pytest.mark.usefixtures("bystander")
def test_an_unknown_file_is_refused_with_the_files_there_are(chain: Chain) -> None:
    number, text = refused(chain, "mysql-bin.000999", 4)
    assert number == 1236
    assert "mysql-bin.000999:4: binlog-relay has no such file" in text
    assert chain.source.master_status().file in text


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("name", ["../mysql-bin.000001", "/etc/passwd", "./mysql-bin.000001", "mysql-bin.000001/../x"])
def test_a_file_name_with_a_path_in_it_is_refused_by_name(chain: Chain, name: str) -> None:
    number, text = refused(chain, name, 4)
    assert number == 1236
    assert f"'{name}' is not a binlog file name: no path" in text


@pytest.mark.usefixtures("bystander")
def test_an_offset_past_the_end_of_a_finished_file_is_refused(chain: Chain) -> None:
    file = chain.source.master_status().file
    chain.source.sql("FLUSH LOGS")
    chain.wait_archived()
    size = (chain.source.datadir / file).stat().st_size
    number, text = refused(chain, file, size + 1000)
    assert number == 1236
    assert f"{file}:{size + 1000} is past the end of this file" in text


def test_a_position_at_our_end_is_served_when_more_arrives(chain: Chain) -> None:
    end = chain.wait_archived()
    with contextlib.closing(chain.raw_client()) as client:
        client.ask_dump(*end)
        first = [event.kind for event in client.events(2)]
        assert first == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
        file, events, _ = write_transaction(chain)
        assert (file, events[0]) == end
        assert [event.end_log_pos for event in client.events(len(events) - 1)] == events[1:]


def test_a_position_past_our_end_in_the_newest_file_is_held_and_then_answered_with_1105(chain: Chain) -> None:
    end = chain.wait_archived()
    asked = time.monotonic()
    number, text = refused(chain, end.file, end.position + 1000)
    assert time.monotonic() - asked >= POSITION_WAIT_S
    assert number == 1105
    assert f"{end.file}:{end.position + 1000} has not reached binlog-relay yet" in text


def test_a_position_past_our_end_is_served_when_it_arrives_in_time(chain: Chain) -> None:
    write_transaction(chain)
    _, events, end = write_transaction(chain)
    with contextlib.closing(chain.raw_client()) as client:
        client.ask_dump(chain.source.master_status().file, end + (end - events[0]))
        time.sleep(0.2)
        write_transaction(chain)
        assert [event.kind for event in client.events(2)] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]


@pytest.mark.parametrize("replica_name", ["mysql56", "mysql97", "mariadb"])
def test_a_replica_that_asks_too_early_gets_there_by_itself(chain: Chain, replica_name: str) -> None:
    file, events, end = write_transaction(chain)
    replica = chain.replica(replica_name, BinlogPosition(file, end + (end - events[0])))
    replica.execute_many(["SET SESSION sql_log_bin = 0", *TABLE])
    # In the relay's log: some servers do not show an error that they get over by themselves.
    wait_until(lambda: chain.relay.logged("dump_refused")[-1]["server_id"] == replica.server_id, "a refusal")
    assert chain.relay.logged("dump_refused")[-1]["number"] == 1105
    write_transaction(chain)
    write_transaction(chain)
    replica.wait_for_source(chain.source)
    assert replica.sql("SELECT COUNT(*) FROM one.t") == [(3,)]
