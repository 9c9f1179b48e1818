"""SELECTs that need tables or operators, and what SHOW makes of them: answered by an SQLite as a server answers them."""

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows, Value
from protocol.statements import Done, Request, SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import LockAction, LockCall, QueryTables, UseLocks
from tests.support.table_answers import answer_of

MYSQL = SourceFacts("mysql", "9.7.4", 3, "uuid", "CRC32")
MYSQL_57 = SourceFacts("mysql", "5.7.44-log", 3, "uuid", "CRC32")
MYSQL_56 = SourceFacts("mysql", "5.6.24-log", 3, "uuid", "CRC32")
MARIADB = SourceFacts("mariadb", "10.11.19-MariaDB-log", 3)
NOW = 1_700_000_000.0
ENGINES = "information_schema.engines"


def asked(statement: str, facts: SourceFacts = MYSQL, database: str | None = None) -> Rows:
    variables: dict[str, Value] = {"set": "it's"}
    session = StatementSession(facts, 42, "u", "h", database=database, user_variables=variables)
    answer = answer_of(statement, session, NOW)
    assert isinstance(answer, Rows)
    return answer


def number(statement: str, facts: SourceFacts = MYSQL, database: str | None = None) -> int:
    with pytest.raises(StatementRefused) as caught:
        asked(statement, facts, database)
    return caught.value.number


@pytest.mark.parametrize(
    ("expressions", "row"),
    [
        ("1 & 3, 4 | 1, 1 << 3, 16 >> 2, ~0 & 7, 7 % 4, 7 MOD 4, 7 DIV 2, 7 / 2", (1, 5, 8, 4, 7, 3, 3, 3, "3.5")),
        ("1 && 0, 1 || 0, ! 1, NOT 0, 1 <=> NULL, NULL <=> NULL, 2 <> 2, 2 != 3, 2 >= 2, 1 <= 0", (0, 1, 0, 1, 0, 1, 0, 1, 1, 0)),
        ("@@server_id + 1, @set LIKE 'it%', @never IS NULL, @@read_only + 0", (4, 1, 1, 1)),
        ("'a_b' LIKE 'a\\_b', 'axb' LIKE 'a\\_b', 'axb' LIKE 'a|_b' ESCAPE '|', 'ABC' LIKE 'a%'", (1, 0, 0, 1)),
        ("'abc' REGEXP '^a', 'abc' RLIKE 'z', 'abc' NOT REGEXP 'z', NULL REGEXP 'a', 'a' REGEXP '('", (1, 0, 1, None, None)),
        ("CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END, CASE 5 WHEN 5 THEN 1 END c, 5 BETWEEN 1 AND 9, 3 IN (1, 3)", ("b", 1, 1, 1)),
        ("CAST('12x' AS SIGNED), CAST(5 AS CHAR(3)) + 1, CONVERT('7', UNSIGNED) x, CONVERT('a' USING utf8mb4) y", (12, 6, 7, "a")),
        ("CAST('1.5' AS DECIMAL(5,2)) + 1, TRUE + FALSE, 0x1F + 0, 1e1 + 0, BINARY 'a' = 'a'", ("2.5", 1, 31, "10", 1)),
        ("IF(1 = 1, 'x', 'y') z, ISNULL(NULL), ISNULL(1), NULLIF(1, 1), COALESCE(NULL, 1 + 1)", ("x", 1, 0, None, 2)),
        ("CONCAT('a', 1 + 1, 0.5 + 1), CONCAT('a', NULL, 1 + 1), CONCAT_WS('-', 'a', NULL, 'b'), CONCAT_WS(NULL, 'a')",
         ("a21.5", None, "a-b", None)),
        ("SUBSTRING_INDEX('a.b.c', '.', 2), SUBSTRING_INDEX('a.b.c', '.', -1), SUBSTRING_INDEX('a', '', 1)", ("a.b", "c", "")),
        ("LEFT('abc', 2), RIGHT('abc', 2), RIGHT('abc', 0), MID('abc', 2, 1), LENGTH('ü'), CHAR_LENGTH('ü')",
         ("ab", "bc", "", "b", 2, 1)),
        ("FIND_IN_SET('b', 'a,B'), FIND_IN_SET('x', 'a'), LOCATE('B', 'abc'), GREATEST(1, 3, 2), LEAST('b', 'a'), LEAST(1, NULL)",
         (2, 0, 2, 3, "a", None)),
        ("TIMESTAMPDIFF(SECOND, '2020-01-01', '2020-01-02 00:00:01'), TIMESTAMPDIFF(MONTH, '2020-01-31', '2020-03-30'), "
         "TIMESTAMPDIFF(YEAR, '2022-01-01', '2020-01-01'), TIMESTAMPDIFF(DAY, 'x', '2020-01-01')", (86401, 1, -2, None)),
        ("DATE_SUB('2020-03-31', INTERVAL 1 MONTH), DATE_ADD('2020-12-31 23:59:59', INTERVAL 1 SECOND), DATE_ADD('x', INTERVAL 1 DAY), "
         "DATE_ADD('2020-01-01', INTERVAL 99999 YEAR)", ("2020-02-29 00:00:00", "2021-01-01 00:00:00", None, None)),
        ("UNIX_TIMESTAMP() + 0, UNIX_TIMESTAMP('1970-01-01 00:01:00') + 0, FROM_UNIXTIME(60), TIME_TO_SEC('01:00:01'), "
         "TIME_TO_SEC('x')",
         (1_700_000_000, 60, "1970-01-01 00:01:00", 3601, None)),
        ("NOW() > '2020', NOW(3) > '2020', CURRENT_TIMESTAMP > '2020', CONNECTION_ID() + 0, DATABASE() IS NULL", (1, 1, 1, 42, 1)),
        ("POW(2, 10) + 0, POW(0, -1) IS NULL, ROUND(2.5), FLOOR(1.7), CEIL(1.2), ABS(-3), MOD(7, 4)",
         ("1024", 1, "3", "1", "2", 3, "3")),
        ("CURRENT_USER LIKE 'u@%', 'a' = 'b' COLLATE utf8mb4_bin, (SELECT SQL_NO_CACHE 1) + 1, 1 + UNIX_TIMESTAMP(NOW(3))",
         (1, 0, 2, 1_700_000_001)),
        ("COUNT(*) / SUM(2), COUNT(*) + COUNT(1), MAX(3), -SUM(1)", ("0.5", 2, 3, -1)),
        ("(SELECT 1) + (SELECT COUNT(*) FROM information_schema.processlist), EXISTS (SELECT 1)", (1, 1)),
        ("GTID_SUBSET('x', '') IS NULL, GTID_SUBTRACT('x', '') IS NULL", (1, 1)),
    ],
    ids=lambda item: item[:40] if isinstance(item, str) else "",
)  # fmt: skip
def test_operators_and_functions_mean_what_they_mean_in_a_server(expressions: str, row: tuple[Value, ...]) -> None:
    if "0x1F" in expressions or "GTID_SUBSET('x'" in expressions:
        expressions = f"{expressions}, 1 + 0"
        row = (*row, 1)
    assert asked(f"SELECT {expressions}").rows == (row,)


@pytest.mark.parametrize(
    ("statement", "names", "rows"),
    [
        ("SELECT SQL_NO_CACHE COUNT(*) c, SUM(id) AS s, AVG(id), MAX(user) FROM information_schema.processlist",
         ("c", "s", "AVG(id)", "MAX(user)"), ((0, None, None, None),)),
        ("SELECT DISTINCT p.id, `p`.`user` FROM information_schema.processlist AS p WHERE 1", ("id", "user"), ()),
        ("SELECT engine FROM information_schema.engines", ("engine",), ()),
        ("SELECT table_name FROM information_schema.tables WHERE table_name = 'PROCESSLIST' AND table_schema LIKE 'inf%'",
         ("TABLE_NAME",), (("PROCESSLIST",),)),
        ("SELECT a.table_name x FROM information_schema.tables a LEFT JOIN (information_schema.tables b) USING (table_name) "
         "STRAIGHT_JOIN (SELECT 1 one) c ON c.one = 1, (SELECT 2) d WHERE a.table_name = 'ENGINES' ORDER BY 1 DESC LIMIT 0, 1",
         ("x",), (("ENGINES",),)),
        ("SELECT GROUP_CONCAT(DISTINCT table_schema ORDER BY table_name SEPARATOR '; ') g, GROUP_CONCAT(table_name SEPARATOR '; ') h "
         "FROM information_schema.tables WHERE table_name IN ('COLUMNS', 'STATISTICS')", ("g", "h"),
         (("information_schema", "COLUMNS; STATISTICS"),)),
        ("SELECT 1 a FROM DUAL UNION ALL SELECT 2 + 0 FROM (SELECT 1) x", ("a",), ((1,), (2,))),
        ("SELECT variable_value FROM performance_schema.global_variables WHERE variable_name = 'server_id'", ("variable_value",),
         (("3",),)),
        ("SELECT variable_value FROM performance_schema.session_variables WHERE variable_name = 'server_id'", ("variable_value",),
         (("3",),)),
        ("SELECT * FROM performance_schema.replication_applier_status", ("CHANNEL_NAME", "SERVICE_STATE", "REMAINING_DELAY",
         "COUNT_TRANSACTIONS_RETRIES"), ()),
    ],
    ids=lambda item: item[:40] if isinstance(item, str) else "",
)  # fmt: skip
def test_tables_are_asked_as_in_a_server(
    statement: str, names: tuple[str, ...], rows: tuple[tuple[Value, ...], ...]
) -> None:
    answer = asked(statement)
    assert (answer.names, answer.rows) == (names, rows)


def test_of_a_chosen_database_the_schema_need_not_be_named() -> None:
    assert asked("SELECT COUNT(*) FROM processlist", database="information_schema").rows == ((0,),)


def test_a_version_that_was_not_recorded_has_the_tables_of_its_neighbour() -> None:
    assert asked("SELECT * FROM performance_schema.replication_connection_status", MYSQL_57).rows == ()
    assert number("SELECT * FROM performance_schema.replication_connection_status", MYSQL_56) == 1146


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1 +", 1064),
        ("SELECT (1", 1064),
        ("SELECT 1 + )", 1064),
        ("SELECT 1 + ^ 2", 1064),
        ("SELECT 1 XOR 2", 1064),
        ("SELECT 1 + 1 INTO @a", 1064),
        ("SELECT 1, , 2 + 2", 1064),
        ("SELECT 1 + 1 FROM", 1064),
        (f"SELECT 1 FROM {ENGINES} JOIN", 1064),
        (f"SELECT 1 FROM {ENGINES} JOIN (", 1064),
        (f"SELECT 1 FROM {ENGINES}, ()", 1064),
        ("SELECT 1 FROM information_schema.", 1064),
        ("SELECT 1 FROM information_schema.'x'", 1064),
        (f"SELECT 1 FROM WHERE, {ENGINES}", 1064),
        ("SELECT TRIM(LEADING 'x' FROM 'xa') + 1", 1064),
        ("SELECT (1 SELECT 2) + 1", 1064),
        ("SELECT CAST(1 + 1 AS JSON)", 1064),
        ("SELECT CAST(1 + 1 AS", 1064),
        ("SELECT 1 + 1.0000000000000000000000000000000000", 1064),
        (f"SELECT 1 FROM {ENGINES} WHERE 1 IN engines", 1064),
        (f"SELECT nothing FROM {ENGINES}", 1054),
        (f"SELECT engine FROM {ENGINES} a, {ENGINES} b", 1052),
        (f"SELECT SUBSTRING_INDEX(engine) FROM {ENGINES}", 1582),
        (f"SELECT NO_SUCH(engine) FROM {ENGINES}", 1305),
        (f"SELECT @@nothing FROM {ENGINES}", 1193),
        (f"SELECT {'(' * 40}1{')' * 40} FROM {ENGINES}", 1064),
        (f"SELECT {'CONCAT(' * 40}1{')' * 40} FROM {ENGINES}", 1064),
        (f"SELECT 1 FROM {', '.join([ENGINES] * 20)}", 1064),
        ("SELECT 1 FROM nowhere.t", 1049),
        ("SELECT 1 FROM sys.version", 1142),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_servers_number(statement: str, expected: int) -> None:
    assert number(statement) == expected


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("SHOW TABLES FROM information_schema LIKE 'PROCESSL%'", ("Tables_in_information_schema (PROCESSL%)",)),
        ("SHOW FULL TABLES IN performance_schema WHERE Table_type = 'VIEW'", ("Tables_in_performance_schema", "Table_type")),
        ("SHOW COLUMNS FROM engines FROM information_schema", ("Field", "Type", "Null", "Key", "Default", "Extra")),
        ("SHOW FIELDS IN information_schema.engines LIKE 'x'", ("Field", "Type", "Null", "Key", "Default", "Extra")),
        ("DESCRIBE information_schema.engines", ("Field", "Type", "Null", "Key", "Default", "Extra")),
        ("DESC information_schema.engines 'ENG%'", ("Field", "Type", "Null", "Key", "Default", "Extra")),
    ],
)  # fmt: skip
def test_show_names_its_columns_as_servers_do(statement: str, names: tuple[str, ...]) -> None:
    assert asked(statement).names == names


def test_a_table_of_the_server_itself_is_described() -> None:
    fields = [row[0] for row in asked("SHOW COLUMNS FROM engines", database="information_schema").rows]
    assert fields == ["ENGINE", "SUPPORT", "COMMENT", "TRANSACTIONS", "XA", "SAVEPOINTS"]


@pytest.mark.parametrize(
    ("facts", "count"), [(MYSQL_56, 13), (MYSQL, 15), (MARIADB, 14)], ids=["mysql56", "mysql97", "mariadb"]
)
def test_show_index_has_the_columns_of_the_version(facts: SourceFacts, count: int) -> None:
    assert len(asked("SHOW INDEX FROM information_schema.engines", facts).names) == count
    assert len(asked("SHOW TABLE STATUS FROM mysql", facts).names) == (20 if facts is MARIADB else 18)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW TABLES", 1046),
        ("SHOW TABLES FROM", 1064),
        ("SHOW TABLES FOO", 1064),
        ("SHOW TABLES FROM mysql FOO", 1064),
        ("SHOW TABLES FROM mysql WHERE", 1064),
        ("SHOW TABLES FROM mysql WHERE 1 IN (SELECT 1 FROM x)", 1064),
        ("SHOW COLUMNS FROM t", 1046),
        ("SHOW COLUMNS t", 1064),
        ("SHOW COLUMNS FROM", 1064),
        ("SHOW COLUMNS FROM mysql.user", 1142),
        ("SHOW COLUMNS FROM information_schema.nosuch", 1146),
        ("SHOW COLUMNS FROM nowhere.t", 1049),
        ("SHOW INDEX FROM information_schema.engines LIKE 'x'", 1064),
        ("SHOW CREATE TABLE a.b", 1235),
        ("DESCRIBE a.b c d", 1064),
        ("EXPLAIN SELECT 1", 1064),
    ],
)  # fmt: skip
def test_show_refuses_with_a_servers_number(statement: str, expected: int) -> None:
    assert number(statement) == expected


def test_locks_are_a_request_of_their_own() -> None:
    session = StatementSession(MYSQL, 42)

    def request(statement: str) -> object:
        return answer_statement(statement, session, NOW)

    calls = (LockCall(LockAction.GET, "a", 1.5, "x"), LockCall(LockAction.IS_FREE, "b", 0.0, "IS_FREE_LOCK('b')"))
    assert request("SELECT GET_LOCK('A', 1.5) x, IS_FREE_LOCK('b')") == UseLocks(calls)
    assert request("DO RELEASE_ALL_LOCKS()") == UseLocks(
        (LockCall(LockAction.RELEASE_ALL, label="RELEASE_ALL_LOCKS()"),), shows=False
    )
    assert request("DO 1 + 1") == Done()
    assert isinstance(request("SELECT GET_LOCK('a', NULL)"), Request)


@pytest.mark.parametrize(
    ("statement", "facts", "expected"),
    [
        ("SELECT GET_LOCK('a')", MYSQL, 1582),
        ("SELECT GET_LOCK('', 1)", MYSQL, 3057),
        ("SELECT GET_LOCK(NULL, 1)", MYSQL, 3057),
        (f"SELECT GET_LOCK('{'x' * 65}', 1)", MARIADB, 3057),
        ("SELECT RELEASE_ALL_LOCKS()", MYSQL_56, 1305),
        ("SELECT GET_LOCK('a', 1) + 1", MYSQL, 1064),
        ("SELECT GET_LOCK", MYSQL, 1054),
        ("SELECT " + ", ".join(["IS_FREE_LOCK('a')"] * 17), MYSQL, 1064),
    ],
)
def test_a_lock_call_that_is_wrong_is_refused(statement: str, facts: SourceFacts, expected: int) -> None:
    assert number(statement, facts) == expected


def test_a_request_says_what_it_needs_and_no_password_of_the_statement() -> None:
    request = answer_statement(
        "SELECT 1 FROM information_schema.engines WHERE 'x' = 'geheim'", StatementSession(MYSQL, 1), NOW
    )
    assert isinstance(request, QueryTables)
    assert request.tables == (("information_schema", "engines"),)
    assert "geheim" not in request.text
