"""What SHOW statements answer, column by column."""

import asyncio
import time
from dataclasses import replace

import pytest

from protocol.auth.authenticator import Channel
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.resultset import Rows, Value
from protocol.statements import Request, SourceFacts, StatisticsText, Words
from protocol.statements.expression.row_filter import Condition, RowFilter
from protocol.statements.requests import (
    ShowBinaryLogs,
    ShowMasterStatus,
    ShowProcesslist,
    ShowReplicas,
    ShowReplicaStatus,
    ShowStatistics,
    ShowStatus,
)
from protocol.statements.session.gtid_variables import GtidVariables
from relay.admin.console import Console
from relay.admin.dialect import Dialect
from relay.admin.replica_status_columns import status_columns
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveWriteError
from tests.support.console_fakes import (
    FOLLOWING,
    MARIADB,
    MYSQL_56,
    MYSQL_97,
    FakeConnections,
    FakeSource,
    a_client,
    a_replica,
)
from tests.unit.archive.test_purge import NAMES

UUID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
OLD, NEW = Words.MASTER_SLAVE, Words.SOURCE_REPLICA


async def rows(console: Console, request: Request, facts: SourceFacts = MYSQL_56, **asker: object) -> Rows:
    answer = await console.answer(request, a_client(facts=facts, **asker))  # type: ignore[arg-type]
    assert isinstance(answer, Rows)
    return answer


async def status(console: Console, facts: SourceFacts = MYSQL_56, words: Words = OLD) -> dict[str, Value]:
    answer = await rows(console, ShowReplicaStatus(words), facts)
    return dict(zip(answer.columns, answer.rows[0], strict=True))


async def variables(console: Console, like: str = "%", facts: SourceFacts = MYSQL_56) -> dict[Value, Value]:
    answer = await rows(console, ShowStatus(RowFilter(((Condition(0, "like", (like,)),),))), facts)
    return {row[0]: row[1] for row in answer.rows}


async def test_binary_logs_are_the_archived_files_with_what_is_published_of_them(
    console: Console, generation: Generation
) -> None:
    answer = await rows(console, ShowBinaryLogs())
    assert answer == Rows(("Log_name", "File_size"), tuple((file.name, file.end) for file in generation.files))


async def test_binary_logs_of_a_newer_mysql_say_that_they_are_not_encrypted(console: Console) -> None:
    answer = await rows(console, ShowBinaryLogs(), MYSQL_97)
    assert (answer.columns[2], {row[2] for row in answer.rows}) == ("Encrypted", {"No"})


@pytest.mark.parametrize(
    ("facts", "columns"),
    [
        (MYSQL_56, ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set")),
        (MARIADB, ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB")),
        (SourceFacts("mysql", "5.5.62", 1), ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB")),
    ],
)
async def test_master_status_is_the_published_end(
    console: Console, generation: Generation, facts: SourceFacts, columns: tuple[str, ...]
) -> None:
    answer = await rows(console, ShowMasterStatus(OLD), facts)
    assert answer.columns == columns
    assert answer.rows[0][:2] == (NAMES[-1], generation.files[-1].end)


async def test_a_healthy_relay_looks_healthy_to_a_monitor(console: Console) -> None:
    shown = await status(console)
    assert [shown[name] for name in ("Slave_IO_Running", "Slave_SQL_Running", "Last_IO_Errno", "Last_SQL_Errno")] == [
        "Yes",
        "Yes",
        0,
        0,
    ]
    assert shown["Slave_IO_State"] == "Waiting for master to send event"


async def test_positions_tell_received_from_archived(console: Console) -> None:
    shown = await status(console)
    assert (shown["Master_Log_File"], shown["Read_Master_Log_Pos"]) == ("mysql-bin.000002", 900)
    assert (shown["Relay_Master_Log_File"], shown["Exec_Master_Log_Pos"]) == ("mysql-bin.000002", 800)
    assert (shown["Relay_Log_File"], shown["Relay_Log_Pos"]) == ("mysql-bin.000002", 800)


async def test_a_relay_without_its_source_looks_broken(console: Console, source: FakeSource) -> None:
    source.now = replace(
        FOLLOWING,
        io_running="Connecting",
        state="Reconnecting after a failed source event read",
        last_error_number=2003,
        last_error_text="192.0.2.7:3306 cannot be reached",
        last_error_at=1_700_000_000.0,
    )
    shown = await status(console)
    assert shown["Slave_IO_Running"] == "Connecting"
    assert (shown["Last_IO_Errno"], shown["Last_IO_Error"]) == (2003, "192.0.2.7:3306 cannot be reached")
    assert (shown["Last_IO_Error_Timestamp"], shown["Seconds_Behind_Master"]) == ("231114 22:13:20", None)


async def test_an_archive_that_takes_nothing_is_a_stopped_sql_thread(console: Console, generation: Generation) -> None:
    generation.failure = ArchiveWriteError("the disk is full", file=NAMES[-1], offset=4, errno=28)
    shown = await status(console)
    generation.failure = None
    assert (shown["Slave_SQL_Running"], shown["Last_SQL_Errno"]) == ("No", 1595)
    assert "the disk is full" in str(shown["Last_SQL_Error"])


async def test_an_idle_relay_that_has_everything_is_not_behind(console: Console, source: FakeSource) -> None:
    source.now = replace(FOLLOWING, received_offset=800)
    assert (await status(console))["Seconds_Behind_Master"] == 0


async def test_a_relay_that_receives_old_events_is_behind_by_their_age(console: Console, source: FakeSource) -> None:
    source.now = replace(FOLLOWING, last_event_timestamp=int(time.time()) - 3600)
    assert (await status(console))["Seconds_Behind_Master"] in (3600, 3601)


async def test_newer_words_rename_the_columns_and_nothing_else(console: Console) -> None:
    old, new = await status(console, MYSQL_97), await status(console, MYSQL_97, NEW)
    assert list(old.values()) == list(new.values())
    assert {"Replica_IO_Running", "Source_Host", "Seconds_Behind_Source", "Get_Source_public_key"} <= set(new)


async def test_mariadb_keeps_its_column_names_in_the_newer_words(console: Console) -> None:
    assert list(await status(console, MARIADB, NEW)) == list(await status(console, MARIADB, OLD))


@pytest.mark.parametrize(
    ("facts", "count"),
    [
        (SourceFacts("mysql", "5.5.62-log", 1), 40),
        (MYSQL_56, 54),
        (SourceFacts("mysql", "5.7.44-log", 1), 57),
        (SourceFacts("mysql", "8.0.43", 1), 60),
        (MYSQL_97, 60),
        (SourceFacts("mariadb", "5.5.68-MariaDB", 1), 40),
        (SourceFacts("mariadb", "10.4.34-MariaDB", 1), 53),
        (MARIADB, 54),
        (SourceFacts("mariadb", "11.8.6-MariaDB", 1), 54),
    ],
)
def test_each_version_has_so_many_columns(facts: SourceFacts, count: int) -> None:
    columns = status_columns(Dialect.of(facts))
    assert (len(columns), len(set(columns))) == (count, count)


async def test_all_slaves_status_has_more_columns(console: Console) -> None:
    answer = await rows(console, ShowReplicaStatus(OLD, all_channels=True), MARIADB)
    assert (len(answer.columns), answer.columns[0], answer.columns[-1]) == (62, "Connection_name", "Gtid_Slave_Pos")


async def test_registered_replicas_are_listed_as_the_version_lists_them(
    console: Console, connections: FakeConnections
) -> None:
    connections.clients = [a_replica(7, NAMES[0], 4), a_client(), a_replica(5, NAMES[1], 90)]
    assert await rows(console, ShowReplicas(OLD)) == Rows(
        ("Server_id", "Host", "Port", "Master_id", "Slave_UUID"),
        ((105, "", 3306, 1, "uuid-105"), (107, "", 3306, 1, "uuid-107")),
    )
    newer = await rows(console, ShowReplicas(NEW), MYSQL_97)
    assert newer.columns == ("Server_Id", "Host", "Port", "Source_Id", "Replica_UUID")
    assert (await rows(console, ShowReplicas(OLD), MARIADB)).columns == ("Server_id", "Host", "Port", "Master_id")


async def test_the_processlist_shows_how_far_each_replica_has_come(
    console: Console, connections: FakeConnections
) -> None:
    asker = a_client(connection_id=9)
    behind = a_replica(3, NAMES[0], 240, is_at_end=False)
    connections.clients = [asker, a_replica(2, NAMES[-1], 400), behind]
    answer = await console.answer(ShowProcesslist(), asker)
    assert isinstance(answer, Rows)
    shown = {row[0]: row[4:] for row in answer.rows}
    sent_all = "Master has sent all binlog to slave; waiting for binlog to be updated"
    assert shown[2] == ("Binlog Dump", 60, sent_all, f"{NAMES[-1]}:400")
    assert shown[3] == ("Binlog Dump", 60, "Sending binlog event to slave", f"{NAMES[0]}:240")
    assert shown[9][0] == "Query" and shown[0][2] == "Waiting for master to send event"


async def test_the_processlist_shows_what_a_semi_sync_replica_has_acknowledged(
    console: Console, connections: FakeConnections
) -> None:
    asker = a_client(connection_id=9)
    replica = a_replica(3, "mysql-bin.000002", 1000, acknowledged_position=("mysql-bin.000002", 900))
    connections.clients = [asker, replica]
    answer = await console.answer(ShowProcesslist(full=True), asker)
    assert isinstance(answer, Rows)
    (info,) = [row[7] for row in answer.rows if row[0] == 3]
    assert info == "mysql-bin.000002:1000, acknowledged mysql-bin.000002:900"


async def test_the_processlist_of_others_is_for_admins(console: Console, connections: FakeConnections) -> None:
    asker = a_client(connection_id=9, user="watcher", is_admin=False)
    connections.clients = [asker, a_replica(2, NAMES[-1], 400), a_client(connection_id=4, user="")]
    answer = await console.answer(ShowProcesslist(), asker)
    assert isinstance(answer, Rows)
    assert [row[0] for row in answer.rows] == [9]


async def test_the_processlist_shows_the_database_that_was_chosen(
    console: Console, connections: FakeConnections
) -> None:
    asker = a_client(connection_id=9, database="mysql")
    connections.clients = [asker]
    answer = await console.answer(ShowProcesslist(), asker)
    assert isinstance(answer, Rows)
    assert [row[3] for row in answer.rows if row[0] == 9] == ["mysql"]


async def test_a_replica_that_waits_for_its_position_says_which(console: Console, connections: FakeConnections) -> None:
    waiting = a_client(
        2,
        "replica",
        waits_for_position=True,
        requested_position=("mysql-bin.000009", 4),
        last_heard_at=asyncio.get_running_loop().time() - 3,
    )
    connections.clients = [waiting]
    row = next(row for row in (await rows(console, ShowProcesslist())).rows if row[0] == 2)
    assert row[4:] == ("Binlog Dump", 3, "Waiting for the master to reach the position asked for", "mysql-bin.000009:4")


async def test_mariadb_has_a_progress_column(console: Console) -> None:
    assert (await rows(console, ShowProcesslist(), MARIADB)).columns[-1] == "Progress"


async def test_status_counts_what_clients_did(console: Console, connections: FakeConnections) -> None:
    traffic = connections.traffic
    traffic.connections, traffic.aborted_clients, traffic.aborted_connects = 12, 3, 4
    traffic.bytes_sent, traffic.bytes_received, traffic.statements = 1000, 500, 77
    connections.clients = [a_replica(2, NAMES[0], 4, sent_bytes=234)]
    shown = await variables(console)
    assert [shown[name] for name in ("Connections", "Aborted_clients", "Aborted_connects", "Threads_connected")] == [
        "12",
        "3",
        "4",
        "1",
    ]
    assert (shown["Bytes_sent"], shown["Bytes_received"], shown["Questions"]) == ("1234", "500", "77")


async def test_status_says_what_protects_the_askers_own_connection(console: Console) -> None:
    channel = Channel("TLSv1.3", "TLS_AES_256_GCM_SHA384")
    shown = await rows(console, ShowStatus(RowFilter(((Condition(0, "like", ("ssl\\_%",)),),))), channel=channel)
    assert shown.rows == (("Ssl_cipher", "TLS_AES_256_GCM_SHA384"), ("Ssl_version", "TLSv1.3"))
    assert (await variables(console, "ssl\\_%")) == {"Ssl_cipher": "", "Ssl_version": ""}


async def test_status_has_the_relays_own_facts(console: Console, generation: Generation) -> None:
    generation.append_ledger("boundary_violation", NAMES[0], 4, "for a test")
    await asyncio.sleep(0.3)
    shown = await variables(console, "binlog\\_relay\\_%")
    assert shown["Binlog_relay_archive_bytes"] == str(sum(file.end for file in generation.files))
    assert (shown["Binlog_relay_ledger_rows"], shown["Binlog_relay_violations"]) == ("1", "1")
    assert all(str(name).startswith("Binlog_relay_") for name in shown)


@pytest.mark.parametrize(
    ("facts", "name"),
    [(MYSQL_56, "Rpl_semi_sync_master_clients"), (MYSQL_97, "Rpl_semi_sync_source_clients")],
)
async def test_semi_sync_variables_have_the_versions_words(
    console: Console, connections: FakeConnections, facts: SourceFacts, name: str
) -> None:
    connections.semi_sync_status = {"clients": 2}
    assert (await variables(console, "rpl%", facts))[name] == "2"


@pytest.mark.parametrize(("facts", "running"), [(MYSQL_56, "ON"), (MARIADB, "ON"), (MYSQL_97, None)])
async def test_slave_running_is_where_the_version_has_it(
    console: Console, facts: SourceFacts, running: str | None
) -> None:
    assert (await variables(console, "slave_running", facts)).get("Slave_running") == running


async def test_statistics_are_one_line_with_the_fields_of_mysqladmin_status(console: Console) -> None:
    answer = await console.answer(ShowStatistics(), a_client())
    assert isinstance(answer, StatisticsText)
    names = [part.split(":")[0] for part in answer.text.split("  ")]
    assert names == [
        "Uptime",
        "Threads",
        "Questions",
        "Slow queries",
        "Opens",
        "Flush tables",
        "Open tables",
        "Queries per second avg",
    ]


def with_gtids(facts: SourceFacts) -> SourceFacts:
    held = GtidVariables(
        executed=GtidSet.from_text(f"{UUID}:1-9"),
        purged=GtidSet.from_text(f"{UUID}:1-4"),
        binlog_state=GtidList.from_text("0-1-5,0-2-6"),
    )
    return replace(facts, gtids=lambda: held)


async def test_master_status_has_all_executed_transactions(console: Console) -> None:
    assert (await rows(console, ShowMasterStatus(OLD), with_gtids(MYSQL_56))).rows[0][-1] == f"{UUID}:1-9"


async def test_replica_status_has_the_retrieved_transactions_without_the_purged_ones(console: Console) -> None:
    shown = await status(console, with_gtids(MYSQL_56))
    assert (shown["Retrieved_Gtid_Set"], shown["Executed_Gtid_Set"]) == (f"{UUID}:5-9", f"{UUID}:1-9")


async def test_replica_status_of_mariadb_has_the_newest_group_of_each_domain(console: Console) -> None:
    assert (await status(console, with_gtids(MARIADB)))["Gtid_IO_Pos"] == "0-2-6"
