"""Each clause of CREATE TABLE and ALTER TABLE: what is read of it, and that it ends where the next one begins."""

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import REAL_AS_FLOAT
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import AlterDatabase, AlterTable, CreateDatabase, CreateTable, NoTable, Statement
from tests.support.defined_tables import MARIADB, MYSQL, defined_table, shape

MYSQL_9 = "9.7.4"


def made(text: str, version: str = MYSQL_9) -> Statement:
    return parse_ddl(text, "d", 0, version)


def columns_of(text: str, version: str = MYSQL_9) -> list[str]:
    """The columns that a statement defines: all of those after the clause in question are missed if it has no end."""
    statement = made(text, version)
    assert isinstance(statement, CreateTable)
    return [one.column.name for one in statement.columns]


# ---- columns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "column_type", "charset"),
    [
        ("REAL", "double", ""), ("FLOAT(7,3) SIGNED", "float(7,3)", ""), ("FLOAT(24)", "float", ""),
        ("DOUBLE(5,2) UNSIGNED", "double(5,2) unsigned", ""), ("FIXED(7,2)", "decimal(7,2)", ""), ("BIT", "bit(1)", ""),
        ("TIME(0)", "time", ""), ("YEAR(4) UNSIGNED", "year(4)", ""), ("GEOMCOLLECTION", "geometrycollection", ""),
        ("POINT SRID 4326", "point", ""), ("VECTOR(3)", "vector(3)", ""), ("VECTOR", "vector(2048)", ""),
        ("JSON", "json", ""), ("BINARY", "binary(1)", ""), ("VARBINARY(7)", "varbinary(7)", ""),
        ("BLOB(300)", "blob", ""), ("TEXT(70000)", "mediumtext", "latin1"), ("BLOB(20000000)", "longblob", ""),
        ("LONG VARBINARY", "mediumblob", ""), ("LONG CHAR VARYING", "mediumtext", "latin1"),
        ("LONG CHARACTER VARYING", "mediumtext", "latin1"), ("LONG", "mediumtext", "latin1"),
        ("NCHAR VARCHAR(3)", "varchar(3)", "utf8"), ("NVARCHAR(3)", "varchar(3)", "utf8"),
        ("NATIONAL VARCHARACTER(3)", "varchar(3)", "utf8"), ("CHAR", "char(1)", "latin1"),
        ("ENUM('a','a')", "enum", "latin1"), ("CHAR(3) UNICODE", "char(3)", "ucs2"),
        ("ENUM('a') UNICODE", "enum", "ucs2"), ("CHAR(3) CHAR SET DEFAULT", "char(3)", "latin1"),
        ("SET('a') COLLATE latin2_bin", "set('a')", "latin2"),
    ],
)  # fmt: skip
def test_a_column_has_the_type_that_mysql_prints(definition: str, column_type: str, charset: str) -> None:
    table = defined_table(f"CREATE TABLE t (a {definition}, b INT)", version=MYSQL_9)
    assert shape(table) == [("a", column_type, charset), ("b", "int", "")]


@pytest.mark.parametrize(
    ("definition", "column_type", "charset"),
    [
        ("UUID", "uuid", ""), ("INET6", "inet6", ""), ("JSON", "longtext", "utf8mb4"), ("VECTOR(3)", "vector(3)", ""),
        ("TEXT COMPRESSED=zlib", "text", "latin1"), ("INT CHARACTER SET latin1", "int", ""),
        ("POINT REF_SYSTEM_ID=4326", "point", ""),
    ],
)  # fmt: skip
def test_a_column_has_the_type_that_mariadb_prints(definition: str, column_type: str, charset: str) -> None:
    table = defined_table(f"CREATE TABLE t (a {definition}, b INT)", version=MARIADB)
    assert shape(table) == [("a", column_type, charset), ("b", "int", "")]


def test_real_is_a_float_where_the_sql_mode_says_so() -> None:
    assert shape(defined_table("CREATE TABLE t (a REAL)", sql_mode=REAL_AS_FLOAT)) == [("a", "float", "")]


@pytest.mark.parametrize(
    ("definition", "collation"),
    [
        ("CHAR(3) BINARY", "latin1_bin"), ("CHAR(3) CHARSET latin2 BINARY", "latin2_bin"),
        ("CHAR(3) CHARSET cp1251 COLLATE cp1251_bin", "cp1251_bin"),
        # servers differ in which of the two applies
        ("CHAR(3) COLLATE cp1251_bin CHARSET cp1251", ""), ("CHAR(3) COLLATE latin1_bin CHARSET DEFAULT", ""),
    ],
)  # fmt: skip
def test_a_column_has_the_collation_that_its_clauses_name(definition: str, collation: str) -> None:
    table = defined_table(f"CREATE TABLE t (a {definition}) COLLATE latin1_general_ci")
    assert table is not None
    assert table.columns[0].collation == collation


def test_a_collation_of_several_character_sets_belongs_to_the_one_that_is_named() -> None:
    def collation(definition: str) -> str:
        table = defined_table(f"CREATE TABLE t (a {definition})", version=MARIADB)
        assert table is not None
        return table.columns[0].collation

    assert collation("TEXT CHARSET utf8mb4 COLLATE uca1400_ai_ci") == "utf8mb4_uca1400_ai_ci"
    assert collation("TEXT COLLATE uca1400_ai_ci") == ""
    assert collation("TEXT CHARSET latin1 COLLATE DEFAULT") == ""


@pytest.mark.parametrize(
    ("attributes", "extra"),
    [
        ("INVISIBLE", "INVISIBLE"), ("VISIBLE", ""), ("COLUMN_FORMAT FIXED STORAGE DISK", ""), ("COMPRESSED", "COMPRESSED"),
        ("ENGINE_ATTRIBUTE='{}' SECONDARY_ENGINE_ATTRIBUTE '{}' COMMENT 'a' 'b'", ""), ("SERIAL DEFAULT VALUE", "auto_increment"),
        ("AS (1) PERSISTENT", "STORED GENERATED"), ("GENERATED ALWAYS AS (1) VIRTUAL", "VIRTUAL GENERATED"),
        ("AS (1)", "VIRTUAL GENERATED"), ("CONSTRAINT c CHECK (a > 1) NOT ENFORCED", ""), ("CHECK (a > 1)", ""),
        ("ON UPDATE NOW()", "on update CURRENT_TIMESTAMP"), ("NULL UNIQUE KEY KEY", ""),
        ("PRIMARY KEY AUTO_INCREMENT", "auto_increment"),
    ],
)  # fmt: skip
def test_a_columns_attributes_end_where_the_next_element_begins(attributes: str, extra: str) -> None:
    table = defined_table(f"CREATE TABLE t (a INT {attributes}, b INT)", version=MYSQL_9)
    assert table is not None
    assert [(column.name, column.extra) for column in table.columns] == [("a", extra), ("b", "")]


@pytest.mark.parametrize(
    "definition",
    [
        "INT CHARACTER SET latin1", "ENUM('a') CHARSET binary", "SET('a') COLLATE binary", "INT WITH SYSTEM VERSIONING",
        "INT WITHOUT SYSTEM VERSIONING", "TIMESTAMP(6) GENERATED ALWAYS AS ROW START", "TIMESTAMP(6) AS ROW END", "UUID",
        "NATIONAL TEXT", "'a'", "INT FIRST", "INT COMMENT a", "INT SRID 'a'", "TEXT CHARSET klingon",
        "TEXT COLLATE klingon_bin", "INT DEFAULT", "INT DEFAULT (1", "INT DEFAULT 1 + 1", "INT DEFAULT NEXT", "INT DEFAULT @a",
        "INT DEFAULT NEXT VALUE FOR s", "INT DEFAULT PREVIOUS VALUE FOR s", "INT CONSTRAINT c", "INT('a')", "ENUM(a)",
        "INT REFERENCES p ('a')",
    ],
)  # fmt: skip
def test_a_column_that_is_not_all_known_is_not_sure(definition: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        made(f"CREATE TABLE t (a {definition}, b INT)")


@pytest.mark.parametrize(
    ("value", "default"),
    [
        ("TRUE", "1"), ("FALSE", "0"), ("+7", "7"), ("'a' 'b'", "ab"), ("_latin1 0x41", "(_latin1 0x41)"), ("x'41'", "x'41'"),
        ("NOW()", "NOW()"), ("c", "(c)"), ("((1))", "((1))"),
    ],
)  # fmt: skip
def test_a_default_is_read_up_to_its_end(value: str, default: str) -> None:
    table = defined_table(f"CREATE TABLE t (a VARBINARY(9) DEFAULT {value} NOT NULL, b INT)", version=MARIADB)
    assert table is not None
    assert [column.default for column in table.columns] == [default, None]


# ---- keys ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "KEY USING BTREE (a)", "INDEX k TYPE BTREE (a) USING BTREE", "UNIQUE k (a) KEY_BLOCK_SIZE = 8 COMMENT 'x'",
        "KEY k (a DESC, (a + 1) ASC) VISIBLE", "KEY k (d.t.a) INVISIBLE", "FULLTEXT KEY k (a) WITH PARSER ngram",
        "SPATIAL INDEX (a)", "KEY (a) ENGINE_ATTRIBUTE='{}' SECONDARY_ENGINE_ATTRIBUTE='{}'", "KEY (a) NOT IGNORED",
        "KEY (a) IGNORED CLUSTERING=YES", "CONSTRAINT PRIMARY KEY k (a)", "CONSTRAINT c UNIQUE INDEX IF NOT EXISTS k (a(3))",
        "CONSTRAINT IF NOT EXISTS c CHECK (a > (1))", "CONSTRAINT c FOREIGN KEY k (a) REFERENCES p (a) MATCH FULL ON UPDATE CASCADE",
    ],
)  # fmt: skip
def test_a_key_ends_where_the_next_element_begins(key: str) -> None:
    assert columns_of(f"CREATE TABLE t (a TEXT, {key}, b INT)") == ["a", "b"]


@pytest.mark.parametrize(
    "key",
    [
        "VECTOR INDEX (a) M=6 DISTANCE=cosine", "VECTOR (a)", "PERIOD FOR p (a, b)", "KEY (a, p WITHOUT OVERLAPS)", "PRIMARY (a)",
        "KEY (a) KEY_BLOCK_SIZE='x'", "CONSTRAINT c INVENTED (a)", "KEY (a b)", "FOREIGN KEY IF NOT EXISTS f (a) REFERENCES p (a)",
    ],
)  # fmt: skip
def test_a_key_that_is_not_all_known_is_not_sure(key: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        made(f"CREATE TABLE t (a INT, b INT, {key})", MARIADB)


def test_a_column_may_be_called_vector() -> None:
    assert columns_of("CREATE TABLE t (vector INT, `KEY` INT)") == ["vector", "KEY"]


# ---- options -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        "AUTO_INCREMENT=7", "COMMENT 'a' 'b'", "DATA DIRECTORY='/x' INDEX DIRECTORY '/y'", "UNION (a, b)", "UNION = (a)",
        "TABLESPACE x STORAGE DISK", "STORAGE MEMORY", "START TRANSACTION", "ENGINE x, ROW_FORMAT=DYNAMIC", "TYPE='x'",
        "PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (7) ENGINE x TABLESPACE = s NODEGROUP 3 DATA DIRECTORY '/x')",
        "PARTITION BY LIST COLUMNS (a) (PARTITION p DEFAULT INDEX DIRECTORY = '/x', PARTITION q VALUES IN (1))",
        "PARTITION BY KEY ALGORITHM=2 (a) PARTITIONS 3",
    ],
)  # fmt: skip
def test_an_option_ends_where_the_next_one_begins(option: str) -> None:
    statement = made(f"CREATE TABLE t (a INT) CHARSET cp1251 {option}")
    assert isinstance(statement, CreateTable)
    assert statement.charset.charset == "cp1251"


@pytest.mark.parametrize(
    "option",
    [
        "WITH SYSTEM VERSIONING", "SEQUENCE=1", "STORAGE x", "UNION a", "COMMENT=", "DATA DIRECTORY = x", "CHARSET klingon",
        "PARTITION BY HASH (a", "PARTITION BY HASH (a) (PARTITION p ENGINE = 5)", "CHARACTER latin1", "= 5", ") ENGINE=x",
        "WITH x AS (SELECT 1) SELECT 2", "((SELECT 1))",
    ],
)  # fmt: skip
def test_an_option_that_is_not_all_known_is_not_sure(option: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        made(f"CREATE TABLE t (a INT) {option}")


@pytest.mark.parametrize(
    ("option", "version", "charset"),
    [
        ("CHARSET cp1251", MYSQL, ("cp1251", "cp1251_general_ci")), ("CHARSET DEFAULT", MYSQL, ("latin1", "latin1_swedish_ci")),
        ("COLLATE cp1251_bin", MYSQL, ("cp1251", "cp1251_bin")), ("COLLATE utf8mb3_bin", MYSQL, ("utf8", "utf8_bin")),
        ("CHARSET utf8mb4 COLLATE uca1400_ai_ci", MARIADB, ("utf8mb4", "utf8mb4_uca1400_ai_ci")),
        ("COLLATE uca1400_ai_ci", MARIADB, ("latin1", "")),
        ("COLLATE cp1251_bin CHARSET cp1251", MYSQL, ("cp1251", "cp1251_general_ci")),
        ("COLLATE cp1251_bin CHARSET cp1251", MARIADB, ("cp1251", "cp1251_bin")),
        ("COLLATE cp1251_bin CHARSET cp1251", "5.7.44", ("cp1251", "")),
        ("COLLATE cp1251_bin CHARSET latin2", MARIADB, ("latin2", "")),
    ],
)  # fmt: skip
def test_a_table_has_the_character_set_and_collation_that_its_options_name(
    option: str, version: str, charset: tuple[str, str]
) -> None:
    table = defined_table(f"CREATE TABLE t (a TEXT) {option}", version=version)
    assert table is not None
    assert (table.charset, table.collation) == charset


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE IF NOT EXISTS e CHARSET cp1251 COMMENT='x' DEFAULT ENCRYPTION 'N'",
        "CREATE OR REPLACE SCHEMA e DEFAULT CHARACTER SET = cp1251 ENCRYPTION='Y'",
        "ALTER DATABASE e COLLATE cp1251_bin READ ONLY = 1",
        "ALTER SCHEMA e CHAR SET cp1251 READ ONLY DEFAULT",
    ],
)
def test_options_of_a_database_are_read_to_the_end(text: str) -> None:
    statement = made(text)
    assert isinstance(statement, CreateDatabase | AlterDatabase)
    assert (statement.name, statement.charset.charset) == ("e", "cp1251")


def test_an_alter_without_a_databases_name_is_about_the_default_one() -> None:
    for option in ("CHARACTER SET cp1251", "DEFAULT COLLATE cp1251_bin"):
        statement = made(f"ALTER DATABASE {option}")
        assert isinstance(statement, AlterDatabase)
        assert statement.name == "d"
    with pytest.raises(UnsupportedSyntax):
        parse_ddl("ALTER DATABASE CHARSET cp1251", "", 0, MYSQL)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE e INVENTED", "ALTER DATABASE `#mysql50#e` UPGRADE DATA DIRECTORY NAME", "ALTER SOMETHING", "DROP x",
        "CREATE TABLE t LIKE u x", "CREATE TABLE t (LIKE u", "RENAME TABLE a TO b x", "CREATE TABLE ((SELECT 1))", "DROP DATABASE",
        "CREATE TABLE t", "CREATE SPATIAL", "CREATE INDEX i ON t (a) x", "RENAME TABLE a b", "DROP TABLE t, 5",
    ],
)  # fmt: skip
def test_another_statement_that_is_not_all_known_is_not_sure(text: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        made(text)


def test_a_statement_under_another_grammar_is_not_sure() -> None:
    with pytest.raises(UnsupportedSyntax):
        parse_ddl("DROP TABLE t", "d", 1 << 9, MYSQL)


def test_a_table_without_a_schema_is_not_sure() -> None:
    with pytest.raises(UnsupportedSyntax):
        parse_ddl("DROP TABLE t", "", 0, MYSQL)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SPATIAL REFERENCE SYSTEM 1 NAME 'x'", "ALTER INSTANCE RELOAD TLS", "CREATE SERVER s FOREIGN DATA WRAPPER x",
        "DROP TABLESPACE x", "CREATE SQL SECURITY INVOKER VIEW v AS SELECT 1",
    ],
)  # fmt: skip
def test_statements_about_other_objects_define_no_table(text: str) -> None:
    assert made(text) == NoTable()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE UNIQUE INDEX k USING BTREE ON t (a) COMMENT 'x' ALGORITHM=INPLACE, LOCK NONE",
        "CREATE ONLINE FULLTEXT INDEX k ON t (a) WITH PARSER ngram", "CREATE SPATIAL INDEX IF NOT EXISTS k ON t (a) WAIT 5",
        "DROP INDEX IF EXISTS k ON t NOWAIT", "DROP OFFLINE INDEX `PRIMARY` ON t LOCK=NONE",
    ],
)  # fmt: skip
def test_statements_about_indexes_alter_their_table(text: str) -> None:
    statement = made(text)
    assert isinstance(statement, AlterTable)
    assert (statement.name, len(statement.clauses)) == (("d", "t"), 1)


def test_renames_and_drops_may_wait() -> None:
    assert made("RENAME TABLES IF EXISTS a WAIT 5 TO b, b NOWAIT TO c") == made("RENAME TABLE IF EXISTS a TO b, b TO c")
    assert made("DROP TABLES IF EXISTS a, e.b RESTRICT WAIT 3") == made("DROP TABLE IF EXISTS a, e.b")
    assert made("DROP SCHEMA IF EXISTS e;") == made("DROP DATABASE e")


# ---- actions of ALTER TABLE ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "ADD KEY (a)", "ADD CONSTRAINT c CHECK (a)", "DROP CHECK c", "DROP CONSTRAINT c", "DROP FOREIGN KEY IF EXISTS f", "DROP KEY k",
        "DROP INDEX IF EXISTS k", "DROP PRIMARY KEY", "DROP COLUMN c CASCADE", "DROP IF EXISTS c RESTRICT", "RENAME INDEX k TO l",
        "RENAME KEY IF EXISTS k TO l", "RENAME COLUMN c TO e", "RENAME TO u", "RENAME = u", "ALTER INDEX k INVISIBLE",
        "ALTER KEY IF EXISTS k NOT IGNORED", "ALTER CHECK c NOT ENFORCED", "ALTER CONSTRAINT c ENFORCED", "ALTER c DROP DEFAULT",
        "ALTER COLUMN c SET INVISIBLE", "ALTER c SET VISIBLE", "ALTER IF EXISTS c SET DEFAULT 5",
        "CONVERT TO CHARSET latin1 COLLATE latin1_bin",
        "DEFAULT CHARSET latin1 COLLATE latin1_bin", "ENABLE KEYS", "DISABLE KEYS", "DISCARD TABLESPACE", "WITHOUT VALIDATION",
        "ALGORITHM=INPLACE", "LOCK NONE", "ENGINE=x", "FORCE", "REMOVE PARTITIONING", "COMMENT 'x' ROW_FORMAT=FIXED",
        "MODIFY COLUMN IF EXISTS c INT AFTER a", "CHANGE c e INT FIRST", "ADD COLUMN IF NOT EXISTS (e INT, KEY (e))",
    ],
)  # fmt: skip
def test_an_action_ends_where_the_next_one_begins(action: str) -> None:
    statement = made(f"ALTER TABLE t {action}, ADD z INT")
    alone = made("ALTER TABLE t ADD z INT")
    assert isinstance(statement, AlterTable) and isinstance(alone, AlterTable)
    assert statement.clauses[-1:] == alone.clauses


@pytest.mark.parametrize(
    "action",
    [
        "ORDER BY a, b DESC", "ADD z INT PARTITION BY HASH (a)", "PARTITION BY HASH (a) PARTITIONS 3", "DROP PARTITION p",
        "ADD PARTITION PARTITIONS 3",
        "TRUNCATE PARTITION p, q", "COALESCE PARTITION 2", "EXCHANGE PARTITION p WITH TABLE u", "ENGINE=x PARTITION BY KEY ()",
        "COMMENT 'x' REMOVE PARTITIONING",
    ],
)  # fmt: skip
def test_an_action_to_the_end_of_the_statement_is_known(action: str) -> None:
    assert isinstance(made(f"ALTER ONLINE TABLE IF EXISTS t WAIT 5 {action}"), AlterTable)


@pytest.mark.parametrize(
    "action",
    [
        "ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING", "DROP PERIOD FOR p", "CONVERT TO x", "ORDER BY a + 1",
        "ORDER BY a, ADD b INT",
        "ALTER INDEX k x", "ALTER a SET x", "ALTER a x", "DISCARD x", "EXCHANGE PARTITION p", "RENAME COLUMN a b", "WAIT x", "ADD z",
        "RENAME INDEX k l", "DROP DEFAULT x", "ADD a INT ENGINE", "PARTITION BY HASH (a", "x = 5",
    ],
)  # fmt: skip
def test_an_action_that_is_not_all_known_is_not_sure(action: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        made(f"ALTER TABLE t {action}")
