"""Tables whose rows are the running relay's: the same as SHOW says, for the same people."""

import asyncio
import struct
from dataclasses import replace

import pytest

from protocol.errors import StatementRefused
from protocol.statements import EncodedRows, SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import QueryTables
from protocol.wire import Cursor
from relay.admin.console import Console
from tests.support.console_fakes import MARIADB, MYSQL_97, FakeConnections, FakeSource, a_client, a_replica


async def select(
    console: Console, statement: str, facts: SourceFacts = MYSQL_97, **asker: object
) -> list[tuple[str | None, ...]]:
    """The rows, as text."""
    request = answer_statement(statement, StatementSession(facts, 1), 0.0)
    assert isinstance(request, QueryTables)
    answer = await console.answer(request, a_client(facts=facts, **asker))  # type: ignore[arg-type]
    assert isinstance(answer, EncodedRows)
    columns = answer.payloads[0][0]
    return [read_row(payload, columns) for payload in answer.payloads[columns + 2 : -1]]


def read_row(payload: bytes, columns: int) -> tuple[str | None, ...]:
    cursor = Cursor(payload)
    found: list[str | None] = []
    for _ in range(columns):
        if payload[cursor.offset] == 0xFB:
            cursor.skip(1)
            found.append(None)
        else:
            found.append(cursor.lenenc_bytes().decode())
    return tuple(found)


async def test_an_admin_sees_all_connections_and_others_their_own(
    console: Console, connections: FakeConnections
) -> None:
    connections.clients = [
        a_client(1, "root"),
        a_replica(2, "mysql-bin.000002", 300),
        a_client(3, "mon", is_admin=False),
    ]
    asked = "SELECT ID, USER, COMMAND, INFO FROM information_schema.processlist ORDER BY id"
    everybody = await select(console, asked)
    assert [row[:3] for row in everybody] == [
        ("0", "system user", "Connect"),
        ("1", "root", "Query"),
        ("2", "replica", "Binlog Dump"),
        ("3", "mon", "Sleep"),
    ]
    assert everybody[1][3] == "SELECT ... FROM information_schema.PROCESSLIST"
    assert everybody[2][3] == "mysql-bin.000002:300"
    own = await select(console, asked, connection_id=3, user="mon", is_admin=False)
    assert [row[:2] for row in own] == [("3", "mon")]


async def test_replicas_are_found_as_failover_tools_look_for_them(
    console: Console, connections: FakeConnections
) -> None:
    connections.clients = [a_replica(2, "mysql-bin.000002", 300), a_replica(5, "mysql-bin.000001", 4)]
    found = await select(
        console,
        "select substring_index(host, ':', 1) as slave_hostname from information_schema.processlist "
        "where command IN ('Binlog Dump', 'Binlog Dump GTID')",
    )
    assert sorted(found) == [("192.0.2.2",), ("192.0.2.5",)]


async def test_the_link_to_the_source_is_a_row(console: Console, source: FakeSource) -> None:
    configuration = await select(
        console, "SELECT HOST, PORT, USER, SSL_ALLOWED FROM performance_schema.replication_connection_configuration"
    )
    assert configuration == [("192.0.2.7", "3306", "repl", "YES")]
    asked = (
        "SELECT c.SERVICE_STATE, a.SERVICE_STATE, c.LAST_ERROR_NUMBER, c.LAST_ERROR_TIMESTAMP, COUNT_RECEIVED_HEARTBEATS FROM "
        "performance_schema.replication_connection_status c JOIN performance_schema.replication_applier_status a USING (channel_name)"
    )
    assert await select(console, asked) == [("ON", "ON", "0", "0000-00-00 00:00:00.000000", "3")]
    source.now = replace(
        source.now,
        io_running="Connecting",
        last_error_number=2003,
        last_error_text="no route",
        last_error_at=1_700_000_000.0,
    )
    assert (await select(console, asked))[0][:4] == ("CONNECTING", "ON", "2003", "2023-11-14 22:13:20.000000")
    assert await select(console, "SELECT * FROM performance_schema.replication_applier_status_by_worker") == []


async def test_status_variables_are_rows_too(console: Console) -> None:
    asked = (
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'BINLOG_RELAY_ARCHIVE_FILES'"
    )
    assert await select(console, asked, MARIADB) == [("5",)]


async def test_who_hangs_up_ends_the_statement(console: Console) -> None:
    tables = ", ".join(f"information_schema.tables t{number}" for number in range(6))
    request = answer_statement(f"SELECT COUNT(*) FROM {tables}", StatementSession(MYSQL_97, 1), 0.0)
    assert isinstance(request, QueryTables)
    asking = asyncio.ensure_future(console.answer(request, a_client(facts=MYSQL_97)))
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    # The next one does not wait for it.
    assert await asyncio.wait_for(select(console, "SELECT 1 + 1"), 1.0) == [("2",)]


async def test_a_binary_answer_has_binary_rows(console: Console) -> None:
    request = answer_statement("SELECT 1 + 1 AS two", StatementSession(MYSQL_97, 1), 0.0)
    assert isinstance(request, QueryTables)
    answer = await console.answer(request, a_client(facts=MYSQL_97, reads_binary=True))
    assert isinstance(answer, EncodedRows)
    assert answer.payloads[3] == b"\0\0" + struct.pack("<q", 2)


async def test_the_servers_own_tables_are_denied_by_name(console: Console) -> None:
    with pytest.raises(StatementRefused) as caught:
        await select(console, "SELECT * FROM mysql.user", user="mon", address="192.0.2.9:40000")
    assert caught.value.number == 1142
    assert "'mon'@'192.0.2.9' for table 'user'" in caught.value.what
