"""A SELECT can read the tables that are shown and nothing else, and ends within its bounds however it is made."""

import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.errors import StatementRefused
from protocol.resultset import Rows
from protocol.statements import EncodedRows, SourceFacts, StatementSession
from protocol.statements.requests import QueryTables
from relay.table_queries.bounded_sqlite import MOST_SECONDS, BoundedSqlite
from relay.table_queries.table_queries import TableAsker, TableQuery
from tests.support.table_answers import answered

MYSQL = SourceFacts("mysql", "9.7.4", 1, "uuid", "CRC32")
OTHER = StatementRefused(1064, "not understood")
SERVERS = (MYSQL, SourceFacts("mysql", "5.6.24", 1, "uuid"), SourceFacts("mariadb", "10.11.18-MariaDB", 1))


def ask(statement: str, facts: SourceFacts = MYSQL) -> Rows:
    session = StatementSession(facts, 7, "u", "h", user_variables={"long": "a" * 16000})
    answer = answered(statement, session, 1e9)
    if isinstance(answer, Rows):
        return answer
    assert isinstance(answer, QueryTables)
    kept: list[Rows] = []

    def keep(rows: Rows) -> EncodedRows:
        kept.append(rows)
        return EncodedRows(())

    processes = [
        {"ID": number, "USER": f"u{number}", "HOST": "h:1", "COMMAND": "Sleep", "TIME": 1} for number in range(9)
    ]
    asker = TableAsker(facts, "u", "h", None, keep)
    TableQuery(answer, asker, {"processlist": processes}, Path("/nonexistent"), None, threading.Event()).run()
    return kept[0]


def number(statement: str) -> int:
    with pytest.raises(StatementRefused) as caught:
        ask(statement)
    return caught.value.number


TABLES = "information_schema.tables"


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT COUNT(*) FROM {', '.join(f'{TABLES} t{number}' for number in range(6))}",
        f"SELECT * FROM {', '.join(f'{TABLES} t{number}' for number in range(5))} ORDER BY t1.table_name, t0.table_name DESC",
        f"SELECT DISTINCT CONCAT(a.table_name, b.table_name, c.table_name, d.table_name) FROM {TABLES} a, {TABLES} b, {TABLES} c, "
        f"{TABLES} d",
        f"SELECT GROUP_CONCAT(CONCAT(a.table_name, b.table_name, c.table_name)) FROM {TABLES} a, {TABLES} b, {TABLES} c",
        f"SELECT COUNT(*) FROM {TABLES} a WHERE (SELECT COUNT(*) FROM {TABLES} b, {TABLES} c, {TABLES} d, {TABLES} e WHERE "
        "b.table_name LIKE '%' AND c.table_name REGEXP '(a*)*(b|b)*$') > a.version + 1000000000",
        f"SELECT COUNT(*) FROM {TABLES} a, {TABLES} b WHERE CONCAT(a.table_name, b.table_name, @long) REGEXP '((((a*)*)*)*b|c)+$'",
        f"SELECT a.*, b.*, c.* FROM {TABLES} a, {TABLES} b, {TABLES} c",
    ],
    ids=["count", "sort", "distinct", "group_concat", "nested", "regexp", "wide"],
)
def test_a_join_of_everything_with_everything_ends(statement: str) -> None:
    began = time.monotonic()
    assert number(statement) == 1104
    assert time.monotonic() - began < MOST_SECONDS * 4


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "(SELECT " * 40 + "1" + ")" * 40,
        "SELECT * FROM " + "(" * 500 + TABLES + ")" * 500,
        "SELECT 1" + "+1" * 1000,
        f"SELECT 1 FROM {TABLES} WHERE version IN ({','.join('1' * 1200)})",
        "SELECT 1 " + "UNION SELECT 1 " * 100,
        f"SELECT {', '.join(['*'] * 500)} FROM {TABLES}",
        f"SELECT 1 FROM {', '.join(f'{TABLES} t{n}' for n in range(40))}",
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r",
        "SELECT * FROM (WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r) x",
    ],
    ids=["selects", "tables", "sum", "list", "unions", "stars", "joins", "recursion", "recursion inside"],
)
def test_what_is_too_deep_or_too_long_is_refused(statement: str) -> None:
    assert number(statement) in (1064, 1104, 1305)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM sqlite_master", 1046),
        ("SELECT * FROM information_schema.sqlite_master", 1109),
        ("SELECT * FROM main.sqlite_master", 1049),
        ("SELECT * FROM temp.sqlite_temp_master", 1049),
        ("SELECT 1 IN sqlite_master", 1064),
        ("SELECT load_extension('/tmp/x')", 1305),
        ("SELECT readfile('/etc/passwd')", 1305),
        ("SELECT writefile('/tmp/x', 'y')", 1305),
        ("SELECT randomblob(100000000)", 1305),
        ("SELECT printf('%1000000d', 1)", 1305),
        ("SELECT LOAD_FILE('/etc/passwd')", 1305),
        ("SELECT BENCHMARK(1000000000, 1)", 1305),
        ("SELECT SLEEP(100)", 1305),
        (f"SELECT * INTO OUTFILE '/tmp/x' FROM {TABLES}", 1064),
        (f"SELECT * FROM {TABLES} FOR UPDATE", 1064),
        (f"SELECT 1 FROM {TABLES}; DROP TABLE x", 1064),
        (f"SELECT 1 FROM {TABLES} PROCEDURE ANALYSE()", 1064),
        ("SELECT @a := 1", 1064),
        ("PRAGMA journal_mode", 1064),
        ("ATTACH '/tmp/x' AS y", 1064),
        (f"DELETE FROM {TABLES}", 1064),
    ],
)
def test_nothing_but_the_tables_that_are_shown_can_be_reached(statement: str, expected: int) -> None:
    assert number(statement) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH '/tmp/x' AS y",
        "PRAGMA user_version = 5",
        "CREATE TABLE x (a)",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_database_list",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/x'",
    ],
)
def test_sqlite_itself_refuses_what_the_translation_would_not_write(text: str) -> None:
    with pytest.raises(StatementRefused):
        BoundedSqlite(threading.Event()).run(text, (), {}, OTHER)


def test_who_does_not_wait_any_more_is_not_worked_for() -> None:
    gone = threading.Event()
    text = " UNION ALL ".join(["SELECT 1 AS a"] * 16)
    joined = ", ".join(f"({text}) t{number}" for number in range(8))
    threading.Timer(0.05, gone.set).start()
    began = time.monotonic()
    with pytest.raises(StatementRefused) as caught:
        BoundedSqlite(gone).run(f"SELECT COUNT(*) FROM {joined}", (), {}, OTHER)
    assert caught.value.number == 1317
    assert time.monotonic() - began < MOST_SECONDS / 2


SOME_SQL = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT UNION ALL DISTINCT JOIN LEFT ON USING AS AND OR NOT IN IS NULL LIKE REGEXP BETWEEN "
    "CASE WHEN THEN ELSE END EXISTS information_schema.processlist information_schema.tables performance_schema.global_status p t id "
    "user host table_name * ( ) , . + - / % & | = < > <=> != 1 2.5 0x1F 'a' '%' `id` @@server_id @a NOW() COUNT( SUM( MAX( IF( CONCAT( "
    "CAST( SUBSTRING_INDEX( CHAR) INTERVAL SECOND DATE_SUB( TIMESTAMPDIFF( GROUP_CONCAT( SEPARATOR MATCH GLOB COLLATE BINARY RECURSIVE "
    "WITH sqlite_master VALUES ? ; -- /* */ $ ~ ! ^"
)
WORDS = st.sampled_from(SOME_SQL.split())


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WORDS, min_size=1, max_size=24), st.sampled_from(SERVERS))
def test_any_words_give_rows_or_a_servers_error(words: list[str], facts: SourceFacts) -> None:
    try:
        answer = ask("SELECT " + " ".join(words), facts)
    except StatementRefused as error:
        assert 1000 <= error.number < 4000
    else:
        assert all(len(row) == len(answer.columns) for row in answer.rows)
