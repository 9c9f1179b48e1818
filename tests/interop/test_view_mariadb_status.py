"""What MariaDB's statements ran under: what 9.7 makes of it as it stands, and as the view's rules write it.

The source's files get MySQL's envelope, once with status variables and user variables as they are, once with translated ones. Nothing
else is translated.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.status_translation import StatusTranslation
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import CRC_BYTES, HEADER_BYTES, MAGIC, events_of
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.mariadb_envelope import write_envelopes
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.view_chain import wait_executed

pytestmark = pytest.mark.interop

DATABASE = "d"
STATEMENTS = ("--binlog-format=STATEMENT",)
_QUERY_HEAD = 13
_LOAD_HEAD = 26
_LOAD = EventType.EXECUTE_LOAD_QUERY
DML = (b"INSERT", b"UPDATE", b"DELETE", b"REPLACE", b"LOAD")


def translation() -> StatusTranslation:
    return StatusTranslation(MariadbCollations({}, TARGETS_BY_NAME["mysql-9.7"]))


def translated(binlog: bytes, statuses: StatusTranslation) -> bytes:
    """The same events with other status variables and user variables; lengths in their heads are right, positions are not."""
    made = bytearray(MAGIC)
    for event in events_of(binlog):
        body = event.data[HEADER_BYTES:-CRC_BYTES]
        if event.kind in (EventType.QUERY, _LOAD):
            start = _LOAD_HEAD if event.kind == _LOAD else _QUERY_HEAD
            (length,) = struct.unpack_from("<H", body, 11)
            text = body[start + length + body[8] + 1 :]
            is_dml = text.startswith(DML)
            status = statuses.translate(body[start : start + length], text, is_dml=is_dml).status
            body = body[:11] + struct.pack("<H", len(status)) + body[13:start] + status + body[start + length :]
        elif event.kind == EventType.USER_VAR:
            body = statuses.user_variable(body)
        size = HEADER_BYTES + len(body) + CRC_BYTES
        made += event.data[:9] + struct.pack("<I", size) + event.data[13:HEADER_BYTES] + body + bytes(CRC_BYTES)
    return bytes(made)


class Files(NamedTuple):
    """A directory of binlogs and the GTIDs in them."""

    directory: Path
    gtids: str


def files_of(source: Server, directory: Path, *, by_rules: bool) -> Files:
    """Of all that the source has written. Raises: Untranslatable."""
    source.sql("FLUSH LOGS")
    names = source.binlogs()[:-1]
    if by_rules:
        statuses = translation()
        inside = directory / "translated"
        inside.mkdir()
        for name in names:
            (inside / name.name).write_bytes(translated(name.read_bytes(), statuses))
        names = [inside / name.name for name in names]
    made = directory / ("by_rules" if by_rules else "as_they_are")
    return Files(made, write_envelopes(names, made))


class Followed(NamedTuple):
    """A replica and the relay that it follows."""

    replica: Server
    relay: RelayProcess


@pytest.fixture
def followed(servers: ServerFactory, tmp_path: Path) -> Iterator[Any]:
    relays = []

    def follow(files: Files) -> Followed:
        replica = servers("mysql97").start(server_id=20 + len(relays))
        relay = RelayProcess(tmp_path / f"relay{len(relays)}", files.directory, port=free_port(), markers="strip")
        relays.append(relay)
        relay.start()
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
        return Followed(replica, relay)

    yield follow
    for relay in relays:
        if relay.running:
            relay.kill()


def sql(source: Server, statements: Sequence[str]) -> None:
    source.execute_many([f"USE {DATABASE}", *statements])


def rows(server: Server, table: str) -> list[tuple[Any, ...]]:
    return [tuple(map(str, row)) for row in server.sql(f"SELECT * FROM {DATABASE}.{table} ORDER BY 1")]


def rows_if_there(server: Server, table: str) -> list[tuple[Any, ...]]:
    """No rows where there is no such table."""
    return rows(server, table) if server.sql(f"SHOW TABLES FROM {DATABASE} LIKE '{table}'") else []


def error_of(one: Followed) -> tuple[set[int], str]:
    """The numbers with which the workers of a replica that has stopped say why, and what they and the threads say."""

    def stopped() -> bool:
        status = one.replica.replica_status()
        return bool(status["io_errno"] and status["io_running"] == "No") or bool(
            status["sql_errno"] and not status["sql_running"]
        )

    wait_until(stopped, "a stop")
    status = one.replica.replica_status()
    told = one.replica.sql(
        "SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker"
        " WHERE LAST_ERROR_NUMBER <> 0"
    )
    numbers = {int(number) for number, _ in told} | {int(status["sql_errno"]), int(status["io_errno"])}
    return numbers - {0}, "\n".join(
        [*(str(text) for _, text in told), str(status["sql_error"]), str(status["io_error"])]
    )


def test_statements_of_118_are_passed_over_without_a_word_and_by_the_rules_are_not(
    servers: ServerFactory, followed: Any, tmp_path: Path
) -> None:
    source = servers("mariadb118").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    table = "CREATE TABLE t (a VARCHAR(20) PRIMARY KEY, b DATETIME(6)) CHARACTER SET latin1"
    sql(
        source,
        [
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, collation_server = latin1_swedish_ci",
            table,
            "SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_ci",
            "INSERT INTO t VALUES ('as before', '2024-01-02 03:04:05.678901')",
            "SET @v = 'of a variable'",
            "INSERT INTO t VALUES (@v, NULL)",
            "SELECT 'loaded', NULL INTO OUTFILE 'loaded'",
            "LOAD DATA INFILE 'loaded' INTO TABLE t",
            "CREATE TABLE made (a INT PRIMARY KEY)",
        ],
    )
    wanted = rows(source, "t")
    assert len(wanted) == 3

    by_rules = files_of(source, tmp_path, by_rules=True)
    right = followed(by_rules)
    wait_executed(right.replica, by_rules.gtids, right.relay)
    assert rows(right.replica, "t") == wanted
    assert rows(right.replica, "made") == []


def test_without_the_rules_118s_statements_are_gone_and_count_as_executed(
    servers: ServerFactory, followed: Any, tmp_path: Path
) -> None:
    source = servers("mariadb118").start(server_id=1, options=STATEMENTS)
    sql_of_9_7 = "SET NAMES latin1, collation_server = latin1_swedish_ci, character_set_collations = ''"
    source.execute_many([sql_of_9_7, f"CREATE DATABASE {DATABASE} CHARACTER SET latin1"])
    sql(source, [sql_of_9_7, "CREATE TABLE t (a VARCHAR(20) PRIMARY KEY)", "INSERT INTO t VALUES ('seen')"])
    sql(source, [f"{sql_of_9_7}, collation_server = utf8mb4_uca1400_ai_ci", "INSERT INTO t VALUES ('lost')"])
    files = files_of(source, tmp_path, by_rules=False)
    wrong = followed(files)
    wait_executed(wrong.replica, files.gtids, wrong.relay)
    assert rows(source, "t") == [("lost",), ("seen",)]
    assert rows(wrong.replica, "t") == [("seen",)]


def test_times_and_timestamps_differ_without_a_word_and_by_the_rules_do_not(
    servers: ServerFactory, followed: Any, tmp_path: Path
) -> None:
    source = servers("mariadb").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    sql(
        source,
        [
            "CREATE TABLE t (a INT PRIMARY KEY, cut DATETIME, rounded DATETIME, now DATETIME(6))",
            "SET TIMESTAMP = 1704164645.678901",
            "INSERT INTO t VALUES (1, '2024-01-01 10:00:00.9', NULL, NOW(6))",
            "SET sql_mode = 'TIME_ROUND_FRACTIONAL'",
            "UPDATE t SET rounded = '2024-01-01 10:00:00.9'",
            "SET sql_mode = DEFAULT, explicit_defaults_for_timestamp = OFF",
            "CREATE TABLE stamped (a TIMESTAMP, b INT)",
            "SET explicit_defaults_for_timestamp = ON",
            "CREATE TABLE unstamped (a TIMESTAMP, b INT)",
        ],
    )
    wanted = rows(source, "t")
    assert wanted == [("1", "2024-01-01 10:00:00", "2024-01-01 10:00:01", "2024-01-02 03:04:05.678901")] or wanted[0][
        3
    ].endswith(".678901")

    def nullable(server: Server) -> list[tuple[Any, ...]]:
        return server.sql(
            "SELECT TABLE_NAME, IS_NULLABLE FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'a' AND TABLE_NAME LIKE '%stamped'"
            " ORDER BY 1"
        )

    by_rules = files_of(source, tmp_path, by_rules=True)
    right = followed(by_rules)
    wait_executed(right.replica, by_rules.gtids, right.relay)
    assert rows(right.replica, "t") == wanted
    assert nullable(right.replica) == nullable(source) == [("stamped", "NO"), ("unstamped", "YES")]
    as_they_are = files_of(source, tmp_path, by_rules=False)
    wrong = followed(as_they_are)
    assert "sql_mode=0x00000000 is not supported" in error_of(wrong)[1]  # TIME_ROUND_FRACTIONAL
    ((_, cut, _, now),) = rows(wrong.replica, "t")
    assert cut == "2024-01-01 10:00:01"
    assert not now.endswith(".678901")


def test_without_the_rules_a_timestamp_of_a_source_that_is_not_explicit_has_no_default(
    servers: ServerFactory, followed: Any, tmp_path: Path
) -> None:
    source = servers("mariadb").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    sql(source, ["SET explicit_defaults_for_timestamp = OFF", "CREATE TABLE t (a TIMESTAMP, b INT)"])
    files = files_of(source, tmp_path, by_rules=False)
    wrong = followed(files)
    wait_executed(wrong.replica, files.gtids, wrong.relay)
    asked = "SELECT IS_NULLABLE FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'a' AND TABLE_NAME = 't'"
    assert source.sql(asked) == [("NO",)]
    assert wrong.replica.sql(asked) == [("YES",)]


@pytest.mark.parametrize(
    ("statements", "error"),
    [
        (["SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin", "INSERT INTO t VALUES ('of no pad')"], 22),
        (["SET NAMES utf8mb4 COLLATE utf8mb4_croatian_ci", "INSERT INTO t VALUES ('of Croatian')"], 22),
        (["SET @v = _utf8mb4'of a variable' COLLATE utf8mb4_nopad_bin", "INSERT INTO t VALUES (@v)"], 13117),
    ],
)
def test_collations_that_97_lacks_stop_it_and_by_the_rules_do_not(
    servers: ServerFactory, followed: Any, tmp_path: Path, statements: list[str], error: int
) -> None:
    source = servers("mariadb").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    sql(source, ["CREATE TABLE t (a VARCHAR(20) PRIMARY KEY)", *statements])
    by_rules = files_of(source, tmp_path, by_rules=True)
    right = followed(by_rules)
    wait_executed(right.replica, by_rules.gtids, right.relay)
    assert rows(right.replica, "t") == rows(source, "t") != []
    as_they_are = followed(files_of(source, tmp_path, by_rules=False))
    numbers, said = error_of(as_they_are)
    # A worker that is stopped while it looks for the collation has no number of its own for it: 1105.
    assert numbers & {error, 1105}, said
    # The receiver may refuse it before the applier has made the table.
    assert not as_they_are.replica.sql(f"SHOW DATABASES LIKE '{DATABASE}'") or not rows_if_there(
        as_they_are.replica, "t"
    )


@pytest.mark.parametrize(
    ("mode", "statement", "differs"),
    [
        ("EMPTY_STRING_IS_NULL", "INSERT INTO t VALUES (2, '', 0)", [("1", "1", "2"), ("2", "", "0")]),
        ("SIMULTANEOUS_ASSIGNMENT", "UPDATE t SET b = c, c = b", [("1", "2", "2")]),
    ],
)
def test_modes_that_97_reads_otherwise_differ_without_a_word_and_stop_the_view(
    servers: ServerFactory, followed: Any, tmp_path: Path, mode: str, statement: str, differs: list[tuple[str, ...]]
) -> None:
    source = servers("mariadb").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    table = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9), c INT)"
    sql(source, [table, "INSERT INTO t VALUES (1, '1', 2)", f"SET sql_mode = '{mode}'", statement])
    files = files_of(source, tmp_path, by_rules=False)
    wrong = followed(files)
    wait_executed(wrong.replica, files.gtids, wrong.relay)
    assert rows(wrong.replica, "t") == differs != rows(source, "t")
    with pytest.raises(Untranslatable, match=f"no sql_mode {mode}"):
        files_of(source, tmp_path, by_rules=True)


def test_the_servers_own_drop_of_temporary_tables_passes(servers: ServerFactory, followed: Any, tmp_path: Path) -> None:
    source = servers("mariadb118").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    sql(source, ["CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (1)"])
    wait_until(lambda: b"DROP /*" in b"".join(path.read_bytes() for path in source.binlogs()), "the server's DROP")
    files = files_of(source, tmp_path, by_rules=True)
    right = followed(files)
    wait_executed(right.replica, files.gtids, right.relay)


def test_a_character_set_without_a_collation_has_the_sources_default(
    servers: ServerFactory, followed: Any, tmp_path: Path
) -> None:
    """Of utf8mb4; of others the view's rules write it into the statement."""
    source = servers("mariadb118").start(server_id=1, options=STATEMENTS)
    source.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
    sql(source, ["CREATE TABLE new (a VARCHAR(9)) CHARACTER SET utf8mb4", "SET character_set_collations = ''"])
    sql(source, ["SET character_set_collations = ''", "CREATE TABLE old (a VARCHAR(9)) CHARACTER SET utf8mb4"])
    files = files_of(source, tmp_path, by_rules=True)
    right = followed(files)
    wait_executed(right.replica, files.gtids, right.relay)
    collations = dict(
        right.replica.sql(
            f"SELECT TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}'"
        )
    )
    known = MariadbCollations({}, TARGETS_BY_NAME["mysql-9.7"])
    assert collations == {"new": known.name_of("utf8mb4_uca1400_ai_ci"), "old": "utf8mb4_general_ci"}
