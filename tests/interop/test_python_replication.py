"""python-mysql-replication reads through the relay what it reads from the source."""

from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import Chain
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER

pymysqlreplication = pytest.importorskip("pymysqlreplication", reason="pip install mysql-replication")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(120),
    # the library's own way to name a database
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
]

GTID_ON = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
OPTIONS = {
    "mysql56": [*GTID_ON, "--log-slave-updates", "--binlog-format=ROW"],
    "mysql97": [*GTID_ON, "--binlog-row-metadata=FULL"],
    "mariadb": ["--binlog-format=ROW", "--binlog-row-metadata=FULL"],
}
Read = list[tuple[str, int, Any]]


def read(account: dict[str, Any], flavour: str, **options: Any) -> Read:
    """(event, end in its file, rows) of each event up to the end; heartbeats pass a different number of times."""
    stream = pymysqlreplication.BinLogStreamReader(
        connection_settings=account,
        server_id=4711,
        blocking=False,
        resume_stream=True,
        is_mariadb=flavour == "mariadb",
        annotate_rows_event=True,
        **options,
    )
    try:
        return [
            (type(event).__name__, event.packet.log_pos, getattr(event, "rows", None))
            for event in stream
            if type(event).__name__ != "HeartbeatLogEvent"
        ]
    finally:
        stream.close()


def held(source: Server) -> str:
    """The first of the source's transactions, as a replica that has nothing else says it."""
    return "0-1-1" if source.flavour == "mariadb" else f"{source.sql('SELECT @@server_uuid')[0][0]}:1"


@pytest.mark.parametrize("by", ["gtid", "position"])
@pytest.mark.parametrize("name", OPTIONS)
def test_events_positions_and_rows_are_those_of_the_source(
    servers: ServerFactory, tmp_path: Path, name: str, by: str
) -> None:
    with Chain(servers, name, tmp_path, options=OPTIONS[name]) as chain:
        source = chain.source
        source.execute_many(
            [
                "CREATE DATABASE d",
                "CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(20))",
                "INSERT INTO d.t VALUES (1, 'one'), (2, NULL)",
                "UPDATE d.t SET b = 'two' WHERE a = 2",
                "DELETE FROM d.t WHERE a = 1",
            ]
        )
        chain.wait_published()
        if by == "gtid":
            options: dict[str, Any] = {"auto_position": held(source)}
        else:
            options = {"log_file": source.binlogs()[0].name, "log_pos": 4}
        login = {"host": "127.0.0.1", "port": source.port}
        login |= {"user": source.replication_user, "password": source.replication_password}
        relayed = {**login, "port": chain.relay.port, "user": REPLICA_USER, "password": REPLICA_PASSWORD}
        wanted = read(login, source.flavour, **options)
        assert read(relayed, source.flavour, **options) == wanted
        kinds = [event for event, _, _ in wanted]
        assert kinds.count("WriteRowsEvent") == kinds.count("UpdateRowsEvent") == kinds.count("DeleteRowsEvent") == 1


@pytest.mark.parametrize("name", OPTIONS)
def test_who_asks_for_what_is_not_there_is_told_so(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    with Chain(servers, name, tmp_path, options=OPTIONS[name]) as chain:
        chain.source.sql("CREATE DATABASE d")
        chain.wait_published()
        login = {"host": "127.0.0.1", "port": chain.relay.port, "user": REPLICA_USER, "password": REPLICA_PASSWORD}
        # Of MariaDB it asks by GTID, whatever file it was given.
        missing: dict[str, Any] = {"log_file": "mysql-bin.000999", "log_pos": 4}
        told = "binlog-relay has no such file"
        if chain.source.flavour == "mariadb":
            missing, told = {"auto_position": "0-1-999"}, "0-1-999, which is not in the master's binlog"
        with pytest.raises(pymysql.MySQLError, match=told):
            read(login, chain.source.flavour, **missing)
