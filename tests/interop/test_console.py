"""What people and monitors type at a relay, compared with what the real servers answer, and typed with their real clients."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import SERVERS, Server, ServerUnavailable
from relay.archive_inspection.verify import verify_archive
from tests.conftest import need_server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.interop

SOURCES = ["mysql56", "mysql97", "mariadb", "mariadb118"]
NEW_WORDS = ("mysql97",)
BOUNDARY = re.compile(r"^\[(ignore|self contained|start|inside|end)\] ")
DDL_XID = re.compile(r" /\* xid=\d+ \*/$")

Answer = tuple[list[str], list[tuple[Any, ...]]]


def ask(connection: Any, statement: str) -> Answer:
    """Column names and rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [column[0] for column in cursor.description or ()], list(cursor.fetchall())


def at_relay(relay: RelayProcess, *statements: str) -> list[Answer]:
    """The relay's answers, on one connection."""
    with contextlib.closing(
        pymysql.connect(host="127.0.0.1", port=relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
    ) as connection:
        return [ask(connection, statement) for statement in statements]


def at_server(server: Server, statement: str) -> Answer:
    with contextlib.closing(server.connect()) as connection:
        return ask(connection, statement)


@pytest.fixture(scope="module")
def chain_of(module_chains: ChainFactory) -> Callable[[str], Chain]:
    """The module's chain with this source, whose first binlog holds one of everything; the account is an admin."""
    made: dict[str, Chain] = {}

    def chain(name: str) -> Chain:
        if name not in made:
            made[name] = module_chains(name, sections={"[account]": {"admin": True}})
            write_one_of_everything(made[name].source)
            made[name].wait_archived()
        return made[name]

    return chain


@pytest.fixture(params=SOURCES)
def chain(request: pytest.FixtureRequest, chain_of: Callable[[str], Chain]) -> Chain:
    need_server(request.param)
    return chain_of(request.param)


def write_one_of_everything(source: Server) -> None:
    """Rows, statements with their variables, tables without transactions, XA where it is logged, a change of files."""
    is_mysql = source.flavour == "mysql"
    statements = [
        "SET autocommit=1",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(40)) ENGINE=InnoDB",
        "CREATE TABLE d.m (a INT) ENGINE=MyISAM",
        *(["SET binlog_rows_query_log_events=1"] if is_mysql else []),
        "SET binlog_format=ROW",
        "INSERT INTO d.t (b) VALUES ('x')",
        "UPDATE d.t SET b='yy'",
        "DELETE FROM d.t",
        "SET binlog_format=STATEMENT",
        "USE d",
        "SET @u='abc', @v=12",
        "INSERT INTO t (b) VALUES (@u)",
        "INSERT INTO t (b) VALUES (RAND() * @v)",
        "INSERT INTO m VALUES (1)",
        "SET binlog_format=ROW",
        "XA START 'a1'",
        "INSERT INTO t (b) VALUES ('1')",
        "XA END 'a1'",
        "XA PREPARE 'a1'",
        "XA COMMIT 'a1'",
        "FLUSH BINARY LOGS",
        "INSERT INTO t (b) VALUES ('z')",
    ]
    with contextlib.closing(source.connect()) as connection:
        for statement in statements:
            with connection.cursor() as cursor:
                cursor.execute(statement)


# --- the same answers as a server's -------------------------------------------------------------------------------


def test_replica_status_has_the_columns_of_a_real_replica(chain: Chain, servers: Callable[[str], Server]) -> None:
    source = chain.source
    replica = servers(source.name).start(server_id=90)
    replica.attach_to(source)
    statements = ["SHOW REPLICA STATUS"] if source.name in NEW_WORDS else ["SHOW SLAVE STATUS"]
    if source.flavour == "mariadb":
        statements += ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS"]
    for statement in statements:
        wanted = at_server(replica, statement)[0]
        assert at_relay(chain.relay, statement)[0][0] == wanted, statement


def test_binlogs_and_position_are_answered_as_by_the_source(chain: Chain) -> None:
    newer = chain.source.name in NEW_WORDS
    chain.wait_archived()
    for statement in ["SHOW BINARY LOGS", "SHOW BINARY LOG STATUS" if newer else "SHOW MASTER STATUS"]:
        assert at_relay(chain.relay, statement)[0] == at_server(chain.source, statement)


def test_every_event_is_worded_as_by_the_source_with_its_boundary_before_it(chain: Chain) -> None:
    for path in chain.source.binlogs():
        statement = f"SHOW BINLOG EVENTS IN '{path.name}'"
        columns, wanted = at_server(chain.source, statement)
        names, found = at_relay(chain.relay, statement)[0]
        assert names == columns
        assert all(BOUNDARY.match(row[5]) for row in found)
        plain = [(*row[:4], BOUNDARY.sub("", row[5])) for row in found]
        # MySQL 8 and later: how the server's data dictionary logged a DDL.
        assert plain == [(*row[:4], row[5] if row[2] == "Xid" else DDL_XID.sub("", row[5])) for row in wanted]
        # MariaDB 11.8 has no end_log_pos inside of transactions; the relay says where the event ends.
        ends = [(row[4], other[4]) for row, other in zip(found, wanted, strict=True) if other[4]]
        assert ends and all(mine == theirs for mine, theirs in ends)


@pytest.mark.parametrize("tail", ["FROM 4 LIMIT 2", "LIMIT 3", "LIMIT 2,2", "FROM {second} LIMIT 1"])
def test_pages_of_events_are_those_of_the_source(chain: Chain, tail: str) -> None:
    name = chain.source.binlogs()[0].name
    second = at_server(chain.source, f"SHOW BINLOG EVENTS IN '{name}'")[1][1][1]
    statement = f"SHOW BINLOG EVENTS IN '{name}' {tail.format(second=second)}"
    wanted = [row[:4] for row in at_server(chain.source, statement)[1]]
    assert [row[:4] for row in at_relay(chain.relay, statement)[0][1]] == wanted


def test_events_from_inside_a_transaction_keep_their_boundaries(chain: Chain) -> None:
    name = chain.source.binlogs()[0].name
    every = at_relay(chain.relay, f"SHOW BINLOG EVENTS IN '{name}'")[0][1]
    for number, row in enumerate(every):
        page = at_relay(chain.relay, f"SHOW BINLOG EVENTS IN '{name}' FROM {row[1]}")[0][1]
        assert page == every[number:]


def test_a_position_inside_of_an_event_is_error_1220_with_the_nearest_ones(chain: Chain) -> None:
    name = chain.source.binlogs()[0].name
    with pytest.raises(pymysql.MySQLError) as caught:
        at_relay(chain.relay, f"SHOW BINLOG EVENTS IN '{name}' FROM 5")
    assert caught.value.args[0] == 1220
    assert "Wrong offset or I/O error" in caught.value.args[1] and "before 4" in caught.value.args[1]


def test_an_unknown_file_is_error_1220_as_at_the_source(chain: Chain) -> None:
    for answer in (lambda text: at_server(chain.source, text), lambda text: at_relay(chain.relay, text)):
        with pytest.raises(pymysql.MySQLError) as caught:
            answer("SHOW BINLOG EVENTS IN 'mysql-bin.999999'")
        assert caught.value.args[0] == 1220 and "Could not find target log" in caught.value.args[1]


# --- replicas, as the relay shows them ----------------------------------------------------------------------------


def test_a_replica_is_listed_with_what_it_reads_and_comes_back_when_it_is_killed(chain: Chain) -> None:
    source = chain.source
    if source.name == "mysql97":
        # Its replica wants TLS, which this relay does not offer.
        replica = chain.server(source.name)
        chain.attach(replica, SOURCE_SSL=0)
    else:
        replica = chain.replica(source.name)
    replica.wait_caught_up(*source.master_status())
    newer = source.name in NEW_WORDS
    hosts = "SHOW REPLICAS" if newer else "SHOW SLAVE HOSTS"
    wait_until(lambda: at_relay(chain.relay, hosts)[0][1], "the replica is listed")
    rows = at_relay(chain.relay, hosts)[0][1]
    assert rows[0][0] == replica.server_id
    end = source.master_status()

    def dump() -> tuple[Any, ...] | None:
        rows = at_relay(chain.relay, "SHOW PROCESSLIST")[0][1]
        return next((row for row in rows if row[4] == "Binlog Dump"), None)

    wait_until(lambda: (row := dump()) is not None and row[7] == f"{end.file}:{end.position}", "it is at the end")
    row = dump()
    assert row is not None
    columns = at_relay(chain.relay, "SHOW PROCESSLIST")[0][0]
    assert columns == at_server(source, "SHOW PROCESSLIST")[0]
    # The columns and the state of a dump thread, as a source of this version words them.
    direct = chain.server(source.name)
    direct.attach_to(source)

    def state_at_source() -> str | None:
        rows = at_server(source, "SHOW PROCESSLIST")[1]
        states = [row[6] for row in rows if row[4] == "Binlog Dump" and "has sent all" in (row[6] or "")]
        return states[0] if states else None

    wait_until(state_at_source, "the source shows its dump thread")
    assert row[6] == state_at_source()
    at_relay(chain.relay, f"KILL {row[0]}")
    wait_until(lambda: (now := dump()) is not None and now[0] != row[0], "the replica has come back")
    source.sql("INSERT INTO d.t (b) VALUES ('after the kill')")
    chain.check_tables([replica], ["d"])
    direct.stop_replica()
    replica.stop_replica()


# --- the upstream side by statements ------------------------------------------------------------------------------


def status(relay: RelayProcess) -> dict[str, Any]:
    columns, rows = at_relay(relay, "SHOW SLAVE STATUS")[0]
    return dict(zip(columns, rows[0], strict=True))


def test_stop_change_and_start_are_seen_in_the_status(chain: Chain) -> None:
    relay, source = chain.relay, chain.source
    end = chain.wait_archived()
    healthy = status(relay)
    assert (healthy["Slave_IO_Running"], healthy["Slave_SQL_Running"]) == ("Yes", "Yes")
    assert (healthy["Relay_Master_Log_File"], healthy["Exec_Master_Log_Pos"]) == end
    assert (healthy["Master_Port"], healthy["Master_Server_Id"], healthy["Last_IO_Errno"]) == (source.port, 1, 0)
    with pytest.raises(pymysql.MySQLError) as caught:
        at_relay(relay, "CHANGE MASTER TO MASTER_HOST='127.0.0.1'")
    assert caught.value.args[0] == (3021 if source.name == "mysql97" else 1198)
    at_relay(relay, "STOP SLAVE")
    assert (status(relay)["Slave_IO_Running"], status(relay)["Seconds_Behind_Master"]) == ("No", None)
    source.sql("INSERT INTO d.t (b) VALUES ('while stopped')")
    time.sleep(0.3)
    assert (status(relay)["Read_Master_Log_Pos"], status(relay)["Master_Log_File"]) == (end.position, end.file)
    changed = at_relay(
        relay,
        f"CHANGE MASTER TO MASTER_HOST='localhost', MASTER_PASSWORD='{source.replication_password}'",
        "SHOW WARNINGS",
    )
    assert "relay.toml" in changed[1][1][0][2]
    at_relay(relay, "START SLAVE")
    chain.wait_archived()
    assert status(relay)["Master_Host"] == "localhost"
    assert source.replication_password not in relay.log_path.read_text()


def test_an_idle_source_is_heard_and_the_relay_is_up_to_date(chain: Chain) -> None:
    def heard() -> int:
        ((_, count),) = at_relay(chain.relay, "SHOW STATUS LIKE 'Binlog_relay_source_heartbeats'")[0][1]
        return int(count)

    chain.source.sql("INSERT INTO d.t (b) VALUES ('now')")
    chain.wait_archived()
    before = heard()
    wait_until(lambda: heard() > before, "a heartbeat has come")
    assert status(chain.relay)["Seconds_Behind_Master"] == 0


# --- purge --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_purging_leaves_replicas_alone_and_tells_newcomers_what_is_held(chains: ChainFactory, source_name: str) -> None:
    chain = chains(source_name, sections={"[account]": {"admin": True}})
    source, relay = chain.source, chain.relay
    write_one_of_everything(source)
    replica = chain.replica(source_name)
    for number in range(4):
        source.execute_many([f"INSERT INTO d.t (b) VALUES ('{number}')", "FLUSH BINARY LOGS"])
    replica.wait_caught_up(*chain.wait_archived())
    names = [path.name for path in source.binlogs()]
    wait_until(
        lambda: at_relay(relay, "SHOW PROCESSLIST")[0][1][1][7].startswith(names[-1]), "the replica is at the end"
    )
    assert at_relay(relay, f"PURGE BINARY LOGS TO '{names[-1]}'", "SHOW WARNINGS")[1][1] == []
    assert [row[0] for row in at_relay(relay, "SHOW BINARY LOGS")[0][1]] == names[-1:]
    assert list(relay.archived()) == names[-1:]
    source.sql("INSERT INTO d.t (b) VALUES ('after the purge')")
    chain.check_tables([replica], ["d"])
    newcomer = chain.server(source_name)
    chain.attach(newcomer)
    errno, text = newcomer.wait_io_error()
    assert errno == 1236
    assert f"it holds {names[-1]} to {names[-1]}" in text
    assert relay.stop() == 0
    relay.start()
    source.sql("INSERT INTO d.t (b) VALUES ('after the restart')")
    chain.check_tables([replica], ["d"])


def test_a_file_that_is_being_read_is_kept_and_its_reader_named(chains: ChainFactory) -> None:
    chain = chains("mysql56", sections={"[account]": {"admin": True}})
    source, relay = chain.source, chain.relay
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.b (v LONGBLOB)", "SET GLOBAL binlog_format=ROW"])
    for _ in range(4):
        source.execute_many(["INSERT INTO d.b VALUES (REPEAT('x', 16000000))", "FLUSH BINARY LOGS"])
    chain.wait_archived()
    names = [path.name for path in source.binlogs()]
    reader = chain.raw_client()
    reader.ask_dump(names[1], 4, server_id=777)
    reader.event()
    time.sleep(0.5)  # the buffers between are full now, and the rest of the file waits for the reader
    warnings = at_relay(relay, f"PURGE BINARY LOGS TO '{names[4]}'", "SHOW WARNINGS")[1][1]
    assert [(row[0], row[1]) for row in warnings] == [("Warning", 1867)]
    assert f"file {names[1]} was not purged" in warnings[0][2] and "server_id 777" in warnings[0][2]
    assert list(relay.archived()) == names[1:]
    for name in names[1:]:
        assert any(event.data for event in iter_events(reader, 3)), name
    reader.cut()


def test_a_full_disk_is_seen_in_the_status_and_ended_by_a_purge(chains: ChainFactory, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "24m") as small:
        sections = {"[account]": {"admin": True}, "archive": {"dir": str(small)}}
        fill_and_purge(chains("mysql56", sections=sections), small)


def fill_and_purge(chain: Chain, small: Path) -> None:
    source, relay = chain.source, chain.relay
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.b (v LONGBLOB)", "SET GLOBAL binlog_format=ROW"])
    for _ in range(7):
        source.execute_many(["INSERT INTO d.b VALUES (REPEAT('x', 4000000))", "FLUSH BINARY LOGS"])
    wait_until(lambda: status(relay)["Slave_SQL_Running"] == "No", "the disk is full", 30)
    broken = status(relay)
    assert broken["Last_SQL_Errno"] == 1595 and "disk is full" in broken["Last_SQL_Error"]
    held = [row[0] for row in at_relay(relay, "SHOW BINARY LOGS")[0][1]]
    at_relay(relay, f"PURGE BINARY LOGS TO '{held[-1]}'")
    end = source.master_status()
    wait_until(lambda: (small / "source" / end.file).exists(), "the rest is archived", 60)
    wait_until(lambda: status(relay)["Slave_SQL_Running"] == "Yes", "the relay is well again", 30)
    assert at_relay(relay, "SHOW BINARY LOGS")[0][1][0][0] == held[-1]
    assert relay.stop() == 0
    assert list(verify_archive(small / "source", deep=True)) == []


def iter_events(client: Any, count: int) -> Iterable[Any]:
    for _ in range(count):
        yield client.event()


# --- real clients -------------------------------------------------------------------------------------------------

# From 11.4 on it insists on TLS, which this relay does not offer.
PLAIN = {"mariadb118": ("--skip-ssl",)}
STATEMENTS = [
    "SHOW MASTER STATUS",
    "SHOW BINARY LOG STATUS",
    "SHOW BINARY LOGS",
    "SHOW BINLOG EVENTS LIMIT 5",
    "SHOW SLAVE STATUS",
    "SHOW REPLICA STATUS",
    "SHOW SLAVE HOSTS",
    "SHOW REPLICAS",
    "SHOW FULL PROCESSLIST",
    "SHOW GLOBAL STATUS LIKE 'Uptime'",
    "SHOW STATUS",
    "START SLAVE",
    "SHOW WARNINGS",
    "FLUSH HOSTS",
]


@pytest.mark.parametrize("client_name", ["mariadb", "mysql97", "mariadb118"])
def test_the_mysql_client_prints_every_answer(chain: Chain, client_name: str) -> None:
    need_server(client_name)
    try:
        program = SERVERS[client_name].mysql_client()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    ran = run_client(
        [*program, "--no-defaults", "-h127.0.0.1", "-E", *PLAIN.get(client_name, ())],
        chain.relay,
        "\n".join(f"{s};" for s in STATEMENTS),
    )
    assert ran.returncode == 0, ran.stderr
    assert "Slave_IO_Running: Yes" in ran.stdout
    assert "Variable_name: Uptime" in ran.stdout and "Format_desc" in ran.stdout and "Server ver" in ran.stdout


def run_client(command: list[str], relay: RelayProcess, text: str = "") -> "subprocess.CompletedProcess[str]":
    login = [f"-P{relay.port}", f"-u{REPLICA_USER}", f"-p{REPLICA_PASSWORD}"]
    return subprocess.run([*command, *login], input=text, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (["ping"], "is alive"),
        (["status"], "Queries per second avg"),
        (["processlist"], "Query"),
        (["extended-status"], "Binlog_relay_archive_bytes"),
        (["version"], "Server version"),
        (["flush-hosts"], ""),
        (["flush-status"], ""),
        (["start-slave"], ""),
    ],
)
def test_mysqladmin_works(chain: Chain, command: list[str], wanted: str) -> None:
    ran = run_client(["mysqladmin", "--no-defaults", "-h127.0.0.1", *command], chain.relay)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert wanted in ran.stdout


def test_connector_python_reads_every_answer(chain: Chain) -> None:
    connector = pytest.importorskip("mysql.connector")
    link = {"host": "127.0.0.1", "port": chain.relay.port, "user": REPLICA_USER, "password": REPLICA_PASSWORD}
    with contextlib.closing(connector.connect(**link, ssl_disabled=True, use_pure=True)) as connection:
        for statement in STATEMENTS:
            with contextlib.closing(connection.cursor(dictionary=True)) as cursor:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.with_rows else []
            if statement == "SHOW SLAVE STATUS":
                assert (rows[0]["Slave_IO_Running"], rows[0]["Read_Master_Log_Pos"] > 0) == ("Yes", True)


# --- who may ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "STOP SLAVE",
        "START SLAVE",
        "CHANGE MASTER TO MASTER_PASSWORD='new-secret'",
        "PURGE BINARY LOGS TO 'mysql-bin.000001'",
        "FLUSH HOSTS",
    ],
)
def test_an_account_without_admin_changes_nothing(chains: ChainFactory, statement: str) -> None:
    chain = chains("mysql56")
    chain.wait_archived()
    with pytest.raises(pymysql.MySQLError) as caught:
        chain.relay.sql(statement)
    assert caught.value.args[0] == 1227
    chain.relay.sql("SHOW SLAVE STATUS")
    assert "new-secret" not in chain.relay.log_path.read_text()
