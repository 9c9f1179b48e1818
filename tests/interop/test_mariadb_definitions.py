"""MariaDB's statements as it logs them, run by MySQL 9.7 as they are translated: the same tables, and without a translation not."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pymysql
import pytest

from deploy.servers import Server
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.known_table import sequence
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory
from tests.support.mariadb_statements import MARIADB_10, MARIADB_11, told, translation_of

pytestmark = pytest.mark.interop
_COLUMNS: Final = (
    "SELECT table_name, ordinal_position, column_name, column_type, is_nullable, character_set_name, collation_name, column_default,"
    " extra, generation_expression"
    " FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, ordinal_position"
)
_KEYS: Final = (
    "SELECT table_name, index_name, seq_in_index, column_name, sub_part, non_unique FROM information_schema.statistics"
    " WHERE table_schema = %s ORDER BY table_name, index_name, seq_in_index"
)
_MODE: Final = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
_TYPES: Final = {
    "uuid": "binary(16)",
    "inet6": "binary(16)",
    "inet4": "binary(4)",
    "geomcollection": "geometrycollection",
}


REFUSED, DIFFERS, SAME = "refused", "differs", "same"


class Case(NamedTuple):
    """statements: run one after the other at the source; the last one is what it is about. as_it_is: what MySQL makes of it without
    a translation: it refuses it, makes another table of it, or the same."""

    statements: tuple[str, ...]
    as_it_is: str = REFUSED
    only_118: bool = False


def case(*statements: str, as_it_is: str = REFUSED, only_118: bool = False) -> Case:
    return Case(statements, as_it_is, only_118)


TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, KEY ia (a)) ENGINE=InnoDB"
CASES = [
    case("CREATE TABLE t (a INT /*M! , b INT */, c INT)", as_it_is=DIFFERS),
    case("CREATE TABLE t (a INT /*!100300 , b INT */, c INT)", as_it_is=DIFFERS),
    case(TABLE, "CREATE OR REPLACE TABLE t (z INT)"),
    case(TABLE, "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS n INT AFTER id"),
    case(TABLE, "ALTER TABLE t ADD INDEX IF NOT EXISTS ia (a), ADD INDEX IF NOT EXISTS ib (a, id)"),
    case(TABLE, "ALTER TABLE t DROP COLUMN IF EXISTS nothing, DROP COLUMN IF EXISTS b"),
    case(TABLE, "ALTER TABLE t MODIFY COLUMN IF EXISTS a BIGINT, CHANGE COLUMN IF EXISTS z y INT"),
    case(TABLE, "ALTER TABLE t RENAME COLUMN IF EXISTS a TO c"),
    case(TABLE, "CREATE INDEX IF NOT EXISTS ia ON t (a)"),
    case(TABLE, "CREATE INDEX IF NOT EXISTS other ON t (a)"),
    case(TABLE, "CREATE OR REPLACE INDEX ia ON t (id, a)"),
    case(TABLE, "DROP INDEX IF EXISTS ia ON t"),
    case(TABLE, "DROP INDEX IF EXISTS nothing ON t"),
    case(TABLE, "ALTER TABLE IF EXISTS t ADD n INT"),
    case(TABLE, "RENAME TABLE IF EXISTS t TO u"),
    case(TABLE, "CREATE TABLE u (a INT)", "DROP TABLE IF EXISTS u WAIT 5", as_it_is=SAME),
    case(TABLE, "TRUNCATE TABLE t NOWAIT"),
    case(TABLE, "ALTER TABLE t WAIT 5 ADD n INT"),
    case(TABLE, "ALTER TABLE t ADD n INT, ALGORITHM=NOCOPY"),
    case(TABLE, "ALTER TABLE t ADD n INT, ALGORITHM=INSTANT, LOCK=NONE"),
    case(TABLE, "ALTER ONLINE TABLE t ADD n INT"),
    case(TABLE, "ALTER TABLE t ALTER INDEX ia IGNORED"),
    case(TABLE, "ALTER TABLE t ALTER COLUMN a SET DEFAULT (1 + 2)", as_it_is=SAME),
    case(TABLE, "ALTER TABLE t ALTER b SET DEFAULT 'x'"),
    case(
        "CREATE TABLE t (a TEXT, b VARCHAR(2000), c BLOB, KEY ka (a), KEY kb (b), KEY kc (c), KEY kd (c(9), b(9)), FULLTEXT KEY "
        "ke (a)) CHARSET=utf8mb4"
    ),
    case(TABLE, "ALTER TABLE t ADD KEY kb (b)"),
    case(
        "CREATE TABLE u (a INT, CONSTRAINT CONSTRAINT_1 CHECK (a > 1))",
        "CREATE TABLE t (a INT, CONSTRAINT `CONSTRAINT_1` CHECK (a > 2))",
        as_it_is=SAME,  # where it is alone
    ),
    case("CREATE TABLE u (a INT, CONSTRAINT CONSTRAINT_1 CHECK (a > 1))", "ALTER TABLE u DROP CONSTRAINT CONSTRAINT_1"),
    case(TABLE, "CREATE INDEX kb ON t (b)"),
    case("CREATE TABLE t (a INT, b INT AS (a + 1) PERSISTENT, c INT AS (a) VIRTUAL)"),
    case("CREATE TABLE t (a INT DEFAULT length('xyz'), b DATE DEFAULT current_timestamp(), c DATETIME DEFAULT now())"),
    case("CREATE TABLE t (a TEXT DEFAULT 'x', b BLOB DEFAULT 'y' NOT NULL, c TEXT DEFAULT NULL)"),
    case("CREATE TABLE t (a VARCHAR(99) COMPRESSED, b TEXT COMPRESSED=zlib COMMENT 'x', c VARBINARY(9) COMPRESSED)"),
    case("CREATE TABLE t (a INT) ENGINE=InnoDB PAGE_COMPRESSED=1 COMMENT='x'"),
    case("CREATE TABLE t (a INT PRIMARY KEY) ENGINE=Aria TRANSACTIONAL=1 ROW_FORMAT=PAGE PAGE_CHECKSUM=1"),
    case("CREATE TABLE t (a INT) ENGINE=Aria ROW_FORMAT=FIXED"),
    case("CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2"),
    case("CREATE TABLE t (a UUID NOT NULL PRIMARY KEY, b INET6 DEFAULT '::1', c INET4, d UUID DEFAULT uuid())"),
    case("CREATE TABLE t (a JSON, b JSON NOT NULL)", as_it_is=DIFFERS),
    case("CREATE TABLE t (a JSON NOT NULL DEFAULT '{}')"),
    case("CREATE TABLE t (id INT, a TEXT, b BLOB, UNIQUE KEY ua (a), UNIQUE KEY uid (id), KEY kb (b(5)))"),
    case("CREATE TABLE t (a TEXT, b INT, UNIQUE KEY ua (a))", "ALTER TABLE t DROP KEY ua, ADD KEY kb (b)"),
    case("CREATE TABLE t (a VARCHAR(1000), b INT, UNIQUE KEY ua (a), UNIQUE KEY ub (b)) CHARSET=utf8mb4"),
    case("CREATE TABLE t (rank INT, row INT, `system` INT, of INT, KEY window (rank), CONSTRAINT CHECK (rank > 0))"),
    case("CREATE SEQUENCE s", "CREATE TABLE t (a INT DEFAULT nextval(s), b INT NOT NULL DEFAULT (NEXT VALUE FOR s), c INT)"),
    case("CREATE SEQUENCE s", "DROP SEQUENCE s"),
    case("CREATE TABLE t (p POINT REF_SYSTEM_ID=4326 NOT NULL, g GEOMETRY)"),
    case("CREATE TABLE t (a INT, KEY k (a) IGNORED, KEY l (a) NOT IGNORED)"),
    case("CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE) WITH SYSTEM VERSIONING"),
    case(
        "CREATE TABLE t (id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, "
        "PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING"
    ),
    case("SET STATEMENT max_statement_time=9 FOR CREATE TABLE t (a INT)"),
    case("CREATE TABLE t (a CHAR(9)) CHARSET=utf8mb3", as_it_is=DIFFERS, only_118=True),
    case("CREATE TABLE t (a NCHAR(9), b CHAR(9) CHARACTER SET utf8mb4, c TEXT UNICODE)", as_it_is=DIFFERS, only_118=True),
    case("CREATE TABLE t (a CHAR(9) COLLATE utf8mb4_uca1400_ai_ci, b CHAR(9)) COLLATE=utf8mb4_uca1400_ai_ci", only_118=True),
    case(
        "CREATE TABLE t (a CHAR(9), b CHAR(9) CHARACTER SET latin1)", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb3",
        as_it_is=DIFFERS, only_118=True,
    ),
    case("CREATE TABLE t (a INT, v VECTOR(3) NOT NULL, VECTOR INDEX (v))", only_118=True),
    case("CREATE OR REPLACE DATABASE {schema} CHARACTER SET latin1 COMMENT 'x'"),
    case("CREATE TABLE x (a INT)", "CREATE OR REPLACE PROCEDURE p(j JSON) SELECT nvl(1, 2)"),
    case("CREATE OR REPLACE FUNCTION f(rank INT) RETURNS INT DETERMINISTIC RETURN rank + 1"),
    case("CREATE TABLE x (a INT)", "CREATE OR REPLACE TRIGGER g BEFORE INSERT ON x FOR EACH ROW SET @a = NEW.a"),
    case("CREATE OR REPLACE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1"),
    case("CREATE TABLE x (lag INT)", "CREATE VIEW v AS SELECT lag AS rank FROM x"),
]  # fmt: skip
Tables = tuple[list[tuple[object, ...]], set[tuple[object, ...]]]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def mysql(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2)


@pytest.fixture(scope="module", params=["mariadb", "mariadb118"])
def mariadb(request: pytest.FixtureRequest, module_servers: ServerFactory) -> Server:
    return module_servers(request.param).start(server_id=1)


@pytest.fixture
def schema(mysql: Server, mariadb: Server) -> Iterator[str]:
    """An empty schema on both servers, with the collation of the replicas of a view."""
    name = f"shop{next(NUMBERS)}"
    mariadb.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    collation = "utf8mb4_0900_ai_ci" if is_118(mariadb) else "utf8mb4_general_ci"
    mysql.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE {collation}")
    yield name
    mariadb.sql(f"DROP DATABASE {name}")
    mysql.sql(f"DROP DATABASE {name}")


def is_118(server: Server) -> bool:
    return str(server.sql("SELECT VERSION()")[0][0]).startswith("11.")


def logged(server: Server, schema: str, statement: str) -> list[str]:
    """Runs it; the texts that it left in the binlog."""
    with contextlib.closing(server.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        name, position, *_rest = cursor.fetchone()
        cursor.execute(statement)
        cursor.execute(f"SHOW BINLOG EVENTS IN '{name}' FROM {position}")
        infos = [str(row[5]) for row in cursor.fetchall() if row[2] == "Query"]
    return [info.removeprefix(f"use `{schema}`; ") for info in infos if info not in ("BEGIN", "COMMIT")]


def run(server: Server, schema: str, statements: list[str]) -> None:
    """As the applier would run them for a source that says nothing of utf8mb4's default collation."""
    with contextlib.closing(server.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("SET default_collation_for_utf8mb4 = utf8mb4_general_ci")
        cursor.execute(f"SET sql_mode = '{_MODE}'")
        for statement in statements:
            cursor.execute(statement)
            cursor.execute("COMMIT")


def collation(name: str | None) -> str | None:
    if name is None or "uca1400_ai_ci" not in name:
        return name
    return "utf8mb4_0900_ai_ci" if name.startswith("utf8mb4") else name.replace("uca1400_ai_ci", "unicode_520_ci")


def column(row: tuple[Any, ...]) -> tuple[object, ...]:
    """A column in words that both products have."""
    table, position, name, kind, nullable, charset, collated, default, extra, generated = row
    kind = kind.partition(" /*")[0]
    plain = kind.partition("(")[0]
    if plain.endswith("int") and "zerofill" not in kind:
        kind = plain + kind.partition(")")[2]
    extra = extra.upper()
    told = [word for word in ("AUTO_INCREMENT", "STORED GENERATED", "VIRTUAL GENERATED", "INVISIBLE") if word in extra]
    if generated in ("ROW START", "ROW END"):
        told.remove("STORED GENERATED")
    has_default = (default is not None and default != "NULL") or "DEFAULT_GENERATED" in extra
    sequence = has_default and "nextval" in (default or "").lower()
    return (
        table,
        position,
        name,
        _TYPES.get(kind, kind),
        nullable,
        charset,
        collation(collated),
        has_default and not sequence,
        tuple(told),
    )


def tables(server: Server, schema: str) -> Tables:
    with contextlib.closing(server.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'SEQUENCE'",
            (schema,),
        )
        sequences = {name for (name,) in cursor.fetchall()}
        cursor.execute(_COLUMNS, (schema,))
        columns = [column(row) for row in cursor.fetchall() if row[0] not in sequences]
        cursor.execute(_KEYS, (schema,))
        keys = {tuple(row) for row in cursor.fetchall() if row[0] not in sequences}
    return columns, keys


def programs(server: Server, schema: str) -> list[tuple[Any, ...]]:
    return [
        *server.sql(f"SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = '{schema}' ORDER BY 1"),
        *server.sql(f"SELECT 'trigger', trigger_name FROM information_schema.triggers WHERE trigger_schema = '{schema}' ORDER BY 2"),
        *server.sql(f"SELECT 'event', event_name FROM information_schema.events WHERE event_schema = '{schema}' ORDER BY 2"),
    ]  # fmt: skip


def check_same(mariadb: Server, mysql: Server, schema: str, reports: tuple[str, ...]) -> None:
    left, left_keys = tables(mariadb, schema)
    right, right_keys = tables(mysql, schema)
    if not any(
        name == "row_start" for _, _, name, *_ in left
    ):  # of implicit system versioning, which MariaDB does not show
        right = [one for one in right if one[2] not in ("row_start", "row_end")]
    assert right == left
    left_keys, right_keys = ({key for key in keys if not is_row_end(key)} for keys in (left_keys, right_keys))
    missing = {key[:2] for key in left_keys} - {key[:2] for key in right_keys}
    assert all(any(f"key {key}" in told for told in reports) for _table, key in missing)
    there = {key for key in left_keys if key[:2] not in missing}
    for left_key, right_key in zip(sorted(there, key=repr), sorted(right_keys, key=repr), strict=True):
        assert left_key[:4] + left_key[5:] == right_key[:4] + right_key[5:]
        assert left_key[4] == right_key[4] or left_key[4] in (3072, 768)  # a prefix that the server chose
    assert programs(mysql, schema) == programs(mariadb, schema)


def is_row_end(key: tuple[object, ...]) -> bool:
    return key[3] in ("row_end", "e")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.statements[-1][:60])
def test_a_statement_makes_the_same_of_the_tables_at_the_replica(
    mysql: Server, mariadb: Server, schema: str, case: Case
) -> None:
    version = MARIADB_11 if is_118(mariadb) else MARIADB_10
    if case.only_118 and version is MARIADB_10:
        pytest.skip("MariaDB 10.11 has none of it")
    known = told()
    known.note_charset(schema, ("utf8mb4", "utf8mb4_general_ci"))
    reports: tuple[str, ...] = ()
    alone: Tables | None = None
    *before, last = [
        statement.format(schema=schema) if "{schema}" in statement else statement for statement in case.statements
    ]
    for number, statement in enumerate([*before, last]):
        texts = logged(mariadb, schema, statement)
        assert texts, "the source logs it"
        for text in texts:
            made = translation_of(text, known, version, schema=schema.encode())
            if number == len(before):
                alone = as_it_is(mysql, mariadb, schema, text, case)
            run(mysql, schema, [one.decode() for one in made.texts])
            for name in made.sequences_made:
                known.put(name, sequence(name))
            for name in made.sequences_dropped:
                known.remove(name)
            if made.source is not None and not made.left_out:
                apply_definition(known, made.source, DefiningSession())
            reports += made.reports
            for one in made.texts:
                again = translation_of(one.decode(), version=version, schema=schema.encode())
                assert again.texts == (one,), "what is translated needs nothing more"
    check_same(mariadb, mysql, schema, reports)
    if alone is not None:
        assert (alone != tables(mysql, schema)) == (case.as_it_is == DIFFERS)


def as_it_is(mysql: Server, mariadb: Server, schema: str, text: str, case: Case) -> Tables | None:
    """What MySQL makes of the text as it was logged, in a schema of its own, made like this one; None: it refuses it."""
    other = f"{schema}_as_it_is"
    collated = "utf8mb4_0900_ai_ci" if is_118(mariadb) else "utf8mb4_general_ci"
    mysql.sql(f"CREATE DATABASE {other} CHARACTER SET utf8mb4 COLLATE {collated}")
    try:
        for (name,) in mysql.sql(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"):
            mysql.sql(f"CREATE TABLE {other}.`{name}` LIKE {schema}.`{name}`")
        if case.as_it_is == REFUSED:
            with pytest.raises(pymysql.MySQLError):
                run(mysql, other, [text.replace(schema, other)])
            return None
        run(mysql, other, [text])
        return tables(mysql, other)
    finally:
        mysql.sql(f"DROP DATABASE IF EXISTS {other}")


ROWS = "CREATE TABLE r (id INT PRIMARY KEY, a INT, t VARCHAR(20))"
CHANGES = [
    ("INSERT INTO r VALUES (1, 2, 'x') RETURNING id", REFUSED),
    ("REPLACE INTO r VALUES (1, 2, 'x') RETURNING *", REFUSED),
    ("DELETE FROM r WHERE id = 7 RETURNING id, a", REFUSED),
    ("INSERT INTO r VALUES (7, 2, 'x') ON DUPLICATE KEY UPDATE a = VALUE(a)", REFUSED),
    ("UPDATE r SET a = CAST(t AS INT) + CAST('3' AS INTEGER)", REFUSED),
    ("SET STATEMENT sort_buffer_size=100000 FOR INSERT INTO r SELECT 9, 9, 'RETURNING'", REFUSED),
    ("INSERT INTO r SELECT 8, rank, 'y' FROM (SELECT 5 AS rank) AS lateral", REFUSED),
    ("UPDATE r SET a = 1 /*M! , t = 'only MariaDB' */", DIFFERS),
    ("UPDATE r SET a = 1 /*!100100 , t = 'only MariaDB' */", DIFFERS),
    ("UPDATE /*+ SET_VAR(timestamp=9) */ r SET a = UNIX_TIMESTAMP() = 9", DIFFERS),
]


@pytest.mark.parametrize(("text", "without"), CHANGES)
def test_a_change_of_rows_gives_the_same_rows(
    mysql: Server, mariadb: Server, schema: str, text: str, without: str
) -> None:
    rows = [ROWS, "INSERT INTO r VALUES (7, 7, '7')"]
    for server in (mysql, mariadb):
        server.execute_many([f"USE {schema}", *rows])
    mariadb.execute_many([f"USE {schema}", "SET binlog_format = STATEMENT", text])
    expected = mariadb.sql(f"SELECT * FROM {schema}.r ORDER BY id")
    if without == REFUSED:
        with pytest.raises(pymysql.MySQLError):
            run(mysql, schema, [text])
    else:
        run(mysql, schema, [text])
        assert list(mysql.sql(f"SELECT * FROM {schema}.r ORDER BY id")) != list(expected)
    run(mysql, schema, ["DROP TABLE r", *rows])
    (made,) = translation_of(text, version=MARIADB_10, schema=schema.encode()).texts
    run(mysql, schema, [made.decode()])
    assert list(mysql.sql(f"SELECT * FROM {schema}.r ORDER BY id")) == list(expected)


@pytest.mark.parametrize(
    "value",
    [
        """JSON_EXTRACT('{"b": [1, 2.50]}', '$.b')""",
        r"REGEXP_REPLACE('abc', '(b)', '[\\1]')",
        "HEX(ST_GeomFromText('POINT(1 2)', 4326))",
    ],
)
def test_a_function_that_stops_a_statement_gives_other_values(mysql: Server, mariadb: Server, value: str) -> None:
    def told(server: Server) -> str:
        found = server.sql(f"SELECT {value}")[0][0]
        return found.decode() if isinstance(found, bytes) else str(found)

    assert told(mysql) != told(mariadb)
    with pytest.raises(Untranslatable, match="differently from the source"):
        translation_of(f"UPDATE shop.t SET a = {value}")
