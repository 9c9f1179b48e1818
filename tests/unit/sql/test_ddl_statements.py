"""What statements that define tables say, in every form that servers take, and which of them nobody is sure of."""

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import AlterTable, CreateTable, DropTables, NoTable, RenameTables
from protocol.sql.tables.source_table import Column, ForeignKey, Table, whole_key
from relay.source_tables.applied_definition import DefiningSession, apply_definition, forget_tables
from relay.source_tables.known_table import KnownTable
from relay.source_tables.table_book import SourceTables
from tests.support.defined_tables import MARIADB, MYSQL, NOBODY, column_names, defined_table, shape


@pytest.mark.parametrize(
    ("definition", "column_type", "charset"),
    [
        ("INTEGER(5) UNSIGNED ZEROFILL", "int(5) unsigned zerofill", ""),
        ("INT /*!50000 unsigned */", "int unsigned", ""),
        ("INT /*!99999 unsigned */", "int", ""),
        ("SERIAL", "bigint unsigned", ""),
        ("BOOLEAN", "tinyint(1)", ""),
        ("DOUBLE PRECISION", "double", ""),
        ("FLOAT(30)", "double", ""),
        ("DEC", "decimal(10,0)", ""),
        ("NUMERIC(7) UNSIGNED", "decimal(7,0) unsigned", ""),
        ("VARCHAR(5)", "varchar(5)", "latin1"),
        ("CHARACTER VARYING (5) CHARSET utf8mb3", "varchar(5)", "utf8"),
        ("NATIONAL CHAR(3)", "char(3)", "utf8"),
        ("VARCHAR(5) COLLATE 'cp1251_bin'", "varchar(5)", "cp1251"),
        ("CHAR(5) BYTE", "binary(5)", ""),
        ("TEXT CHARACTER SET binary", "blob", ""),
        ("VARCHAR(9) ASCII", "varchar(9)", "latin1"),
        ("LONG VARCHAR", "mediumtext", "latin1"),
        ("BLOB(10)", "tinyblob", ""),
        ("ENUM('a','b''c','d\\'e ')", "enum('a','b''c','d''e')", "latin1"),
        ("TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)", "timestamp(3)", ""),
        ("INT DEFAULT -5 COMMENT 'x, y INT' REFERENCES u (a) ON DELETE SET NULL", "int", ""),
        ("INT GENERATED ALWAYS AS (f('a)', (b))) STORED NOT NULL", "int", ""),
        ("BIT(7) DEFAULT b'101'", "bit(7)", ""),
    ],
)
def test_a_column_has_the_type_that_show_create_table_would_print(
    definition: str, column_type: str, charset: str
) -> None:
    assert shape(defined_table(f"CREATE TABLE t (a {definition}, PRIMARY KEY (a))")) == [("a", column_type, charset)]


def test_columns_without_a_character_set_have_their_tables_or_their_databases() -> None:
    create = "CREATE TABLE t (a VARCHAR(3)) {} ENGINE=InnoDB"
    assert shape(defined_table(create.format("CHARSET=cp1251"))) == [("a", "varchar(3)", "cp1251")]
    assert shape(defined_table(create.format("/*!40101 DEFAULT CHARSET=cp1251 */"))) == [("a", "varchar(3)", "cp1251")]
    assert shape(defined_table(create.format(""), charset="sjis")) == [("a", "varchar(3)", "sjis")]
    changed = ("ALTER DATABASE d CHARACTER SET gbk", create.format(""), "ALTER TABLE t ADD b TEXT")
    assert shape(defined_table(*changed)) == [("a", "varchar(3)", "gbk"), ("b", "text", "gbk")]


def test_what_nobody_said_the_character_set_of_is_not_known() -> None:
    state = SourceTables()
    apply_definition(state, parse_ddl("CREATE TABLE t (a TEXT, b INT)", "d", 0, MYSQL), NOBODY)
    assert [column.charset for column in state.exact(("d", "t")).columns] == ["?", ""]


def test_alter_takes_its_clauses_in_the_servers_order() -> None:
    create = "CREATE TABLE t (a INT, b INT, c INT)"
    assert column_names(create, "ALTER TABLE t ADD x INT FIRST, DROP b, ADD y INT AFTER a") == ["x", "a", "y", "c"]
    assert column_names(create, "ALTER TABLE t CHANGE a b INT, CHANGE b a INT") == ["b", "a", "c"]
    assert column_names(create, "ALTER TABLE t MODIFY a INT AFTER c, ADD (x INT, y INT)") == ["b", "c", "a", "x", "y"]
    assert column_names(create, "ALTER TABLE t MODIFY a INT AFTER b, MODIFY b INT FIRST, MODIFY c INT FIRST") == [
        "c",
        "b",
        "a",
    ]
    assert column_names(create, "ALTER TABLE t DROP a, ADD a TEXT, RENAME COLUMN c TO z", version="9.7.0") == [
        "b",
        "z",
        "a",
    ]
    exists = "ALTER TABLE t ADD IF NOT EXISTS a TEXT, DROP IF EXISTS nothing, MODIFY IF EXISTS nothing INT"
    assert column_names(create, exists, version=MARIADB) == ["a", "b", "c"]


def test_a_conversion_changes_all_texts_and_no_bytes() -> None:
    create = "CREATE TABLE t (a TEXT, b BLOB, c ENUM('x'), d ENUM('ö'))"
    converted = shape(
        defined_table(create, "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "ALTER TABLE t ADD e CHAR(3)")
    )
    # servers convert texts of an ENUM that are no ASCII wrongly: they are not known then
    assert converted == [
        ("a", "text", "utf8mb4"), ("b", "blob", ""), ("c", "enum('x')", "utf8mb4"), ("d", "enum", "utf8mb4"),
        ("e", "char(3)", "utf8mb4"),
    ]  # fmt: skip


def test_keys_are_those_that_the_statements_leave() -> None:
    table = defined_table(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE, c INT, KEY (b, c), CONSTRAINT f FOREIGN KEY (c) REFERENCES u (x))",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, a), CHANGE c d INT, DROP INDEX b",
        "CREATE UNIQUE INDEX n ON t (d)",  # takes the place of the index f, as MySQL 9.7 and MariaDB 10.11 show
    )
    assert table is not None
    assert {name: (key.columns, key.unique) for name, key in table.keys} == {
        "PRIMARY": (("b", "a"), True), "b_2": (("b", "d"), False), "n": (("d",), True),
    }  # fmt: skip
    assert dict(table.foreign_keys or ())["f"].columns == ("d",)
    assert [column.nullable for column in table.columns] == [False, False, True]


def test_defaults_are_kept() -> None:
    table = defined_table(
        "CREATE TABLE t (a INT DEFAULT 5, b CHAR(3) NOT NULL DEFAULT 'x''y', c INT)",
        "ALTER TABLE t ALTER c SET DEFAULT 7",
    )
    assert table is not None
    assert [column.default for column in table.columns] == ["5", "x'y", "7"]


@pytest.mark.parametrize(
    ("column", "default"),
    [
        ("VARCHAR(9) DEFAULT s", "(s)"), ("VARCHAR(9) DEFAULT CURRENT_DATE", "(CURRENT_DATE)"),
        ("DATE DEFAULT CURDATE()", "(CURDATE())"),
        ("VARCHAR(9) DEFAULT (1 + 1)", "(1 + 1)"), ("DATETIME DEFAULT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("DATETIME(3) DEFAULT NOW(3)", "NOW(3)"), ("VARCHAR(9) DEFAULT TRUE", "'1'"), ("VARCHAR(9) DEFAULT NULL", None),
        ("VARCHAR(9) DEFAULT 007", "'7'"), ("VARCHAR(9) DEFAULT '007'", "'007'"), ("VARCHAR(9) DEFAULT -.50", "'-0.50'"),
        ("VARCHAR(9) DEFAULT -0.0", "'0.0'"), ("VARCHAR(9) DEFAULT '-1'", "'-1'"), ("VARCHAR(9) DEFAULT ' 1'", "' 1'"),
        ("VARCHAR(9) DEFAULT 'now'", "'now'"), ("VARCHAR(9) DEFAULT '`a`'", "'`a`'"), ("VARCHAR(9) DEFAULT '(\\\\d)'", r"'(\\d)'"),
        ("INT DEFAULT '007'", "7"), ("INT DEFAULT 007", "7"), ("INT DEFAULT -0", "0"),
        ("BIT(8) DEFAULT '1'", "'1'"), ("BIT(8) DEFAULT 1", "1"),
        ("ENUM('0','1') DEFAULT 1", "(1)"), ("ENUM('0','1') DEFAULT '1'", "'1'"), ("SET('0','1') DEFAULT 1", "(1)"),
        ("VARCHAR(9) DEFAULT TIME'01:02:03'", "01:02:03"), ("VARCHAR(9) DEFAULT TIME'1:2:3'", "(TIME'1:2:3')"),
        ("DATE DEFAULT DATE'2020-1-2'", "(DATE'2020-1-2')"), ("DATE DEFAULT DATE'2020-01-02'", "2020-01-02"),
        ("VARCHAR(9) DEFAULT _latin1'é'", "(_latin1'é')"), ("VARCHAR(9) DEFAULT _latin1'e'", "e"),
        ("VARCHAR(9) DEFAULT _ucs2'ab'", "(_ucs2'ab')"),
        ("VARCHAR(9) DEFAULT x'41'", "x'41'"), ("VARCHAR(9) DEFAULT N'a'", "a"),
    ],
)  # fmt: skip
def test_a_default_tells_whether_it_is_a_text_a_number_or_computed(column: str, default: str | None) -> None:
    table = defined_table(f"CREATE TABLE t (s INT, a {column})", version=MARIADB)
    assert table is not None
    assert table.columns[1].default == default
    kind, _, value = column.partition(" DEFAULT ")
    altered = defined_table(
        f"CREATE TABLE t (s INT, a {kind})", f"ALTER TABLE t ALTER a SET DEFAULT {value}", version=MARIADB
    )
    assert altered is not None
    assert altered.columns[1].default == default


@pytest.mark.parametrize(
    ("version", "explicit", "may_be_null"),
    [(MYSQL, None, False), ("5.7.44-log", None, False), ("8.0.36", None, True), ("9.7.0", False, False), ("8.0.36", True, True),
     ("10.6.16-MariaDB", None, False), ("10.11.6-MariaDB", None, True), ("11.8.2-MariaDB", False, False), (MYSQL, True, True)],
)  # fmt: skip
def test_a_timestamp_of_which_nothing_is_said_may_be_null_where_the_server_wants_that_said(
    version: str, explicit: bool | None, may_be_null: bool
) -> None:
    text = "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP(3) NULL, c TIMESTAMP NOT NULL, d DATETIME, e TIMESTAMP DEFAULT '2020-01-02')"
    made = parse_ddl(text, "d", 0, version, (), explicit)
    assert isinstance(made, CreateTable)
    columns = [one.column.nullable for one in made.columns]
    assert columns == [may_be_null, True, False, True, may_be_null]


def test_tables_are_renamed_one_after_the_other() -> None:
    made = ("CREATE TABLE t (a INT)", "CREATE TABLE u (b INT)", "RENAME TABLE t TO x, u TO t, x TO u")
    assert column_names(*made) == ["b"]
    assert column_names("CREATE TABLE u (b INT)", "CREATE TABLE t LIKE u", "DROP TABLE u") == ["b"]
    assert defined_table("CREATE TABLE t (a INT)", "ALTER TABLE t RENAME AS other.t") is None


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a INT) SELECT 1 AS b",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) (SELECT 1 AS a)",
        "CREATE TABLE t (a SOMETHING)",
        "CREATE TABLE t (a INT SOMETHING)",
        "CREATE TABLE t (a INT) SOMETHING 5",
        "CREATE TABLE t (a INT /* unclosed",
        "CREATE TABLE t (a INT /*!100100 unsigned */)",
        "CREATE TABLE t (a INT, PERIOD FOR p (x, y))",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "ALTER TABLE t FLY",
        "CREATE SEQUENCE s",
        "TRUNCATE t",
        "",
    ],
)
def test_what_is_not_all_understood_is_not_sure(statement: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        parse_ddl(statement, "d", 0, MYSQL)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE USER a IDENTIFIED BY 'x'",
        "CREATE DEFINER=`a`@`b` TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @x = 1",
        "CREATE OR REPLACE ALGORITHM=MERGE VIEW v AS SELECT 1",
        "DROP PROCEDURE IF EXISTS p",
        "ALTER EVENT e DISABLE",
        "RENAME USER a TO b",
    ],
)
def test_what_has_no_columns_defines_no_table(statement: str) -> None:
    assert parse_ddl(statement, "d", 0, MYSQL) == NoTable()


def test_names_are_read_as_the_sql_mode_says() -> None:
    made = parse_ddl('CREATE TABLE "a""b".`c``d` ("x" INT)', "", ANSI_QUOTES, MYSQL)
    assert isinstance(made, CreateTable)
    assert made.name == ('a"b', "c`d")
    dropped = parse_ddl("DROP /* x */ TABLE IF EXISTS a, b.c -- and no more\n CASCADE", "d", 0, MYSQL)
    assert isinstance(dropped, DropTables)
    assert dropped.names == (("d", "a"), ("b", "c"))
    assert isinstance(parse_ddl("RENAME TABLE a TO b", "d", 0, MYSQL), RenameTables)
    assert isinstance(parse_ddl("DROP INDEX i ON t", "d", 0, MYSQL), AlterTable)


# ---- what is known of which table --------------------------------------------------------------------------------------


def known(*statements: str, thread: int = 1) -> set[str]:
    """The tables that are known behind these statements, in schemas of before them."""
    state = SourceTables()
    for text in statements:
        statement = parse_ddl(text, "d", 0, MARIADB)
        try:
            apply_definition(state, statement, DefiningSession(thread))
        except UnsupportedSyntax:
            forget_tables(state, statement)
    return {name for (_schema, name), _table in state.tables()}


def test_a_table_that_may_have_been_there_before_is_not_known() -> None:
    assert known("CREATE TABLE IF NOT EXISTS t (a INT)") == set()
    assert known("DROP TABLE IF EXISTS t", "CREATE TABLE IF NOT EXISTS t (a INT)") == {"t"}
    assert known("CREATE DATABASE d", "CREATE TABLE IF NOT EXISTS t (a INT)") == {"t"}
    assert known("CREATE DATABASE IF NOT EXISTS d", "CREATE TABLE IF NOT EXISTS t (a INT)") == set()
    assert known("CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (b INT)") == {"t"}
    assert known("CREATE OR REPLACE TABLE t (a INT)", "DROP DATABASE d") == set()


def test_a_statement_about_a_temporary_table_says_nothing_of_the_other() -> None:
    assert known("CREATE TABLE t (a INT)", "CREATE TEMPORARY TABLE t (b INT)") == {"t"}
    assert known("CREATE TABLE t (a INT)", "CREATE TEMPORARY TABLE t (b INT)", "ALTER TABLE t ADD c INT") == set()
    dropped = ("CREATE TABLE t (a INT)", "CREATE TEMPORARY TABLE t (b INT)", "DROP TEMPORARY TABLE t")
    assert known(*dropped, "ALTER TABLE t ADD c INT") == {"t"}


def test_names_that_differ_in_case_may_be_the_same_table() -> None:
    two = ("CREATE TABLE t (a INT)", "CREATE TABLE T (b INT)")
    assert known(*two) == {"t", "T"}  # a server that takes them for one refuses the second statement
    assert known(*two, "DROP TABLE t") == {"T"}
    assert known(two[0], "DROP TABLE T") == set()
    assert known(two[0], "CREATE OR REPLACE TABLE T (b INT)") == {"T"}
    assert known(two[0], "CREATE TABLE IF NOT EXISTS T (b INT)") == {"t"}


def test_in_a_schema_whose_tables_are_all_known_a_name_means_the_one_that_differs_in_case() -> None:
    made = ("CREATE DATABASE d", "CREATE TABLE t (a INT)")
    assert known(*made, "ALTER TABLE T ADD b INT") == {"t"}
    assert known(*made, "DROP TABLE T") == set()
    assert known(*made, "DROP TABLE IF EXISTS T") == set()


@pytest.mark.parametrize("rename", ["RENAME TABLE T TO u", "ALTER TABLE T RENAME u"])
def test_a_rename_may_mean_a_view_and_so_no_table_whose_name_differs_in_case(rename: str) -> None:
    made = ("CREATE DATABASE d", "CREATE TABLE t (a INT)")
    assert known(*made, rename) == set()
    assert known(*made, "ALTER TABLE T ADD b INT", rename) == {"u"}  # such names are known to be one


def test_an_alter_that_does_not_fit_what_is_known_makes_the_table_unknown() -> None:
    assert known("CREATE TABLE t (a INT)", "ALTER TABLE t DROP b") == set()
    assert known("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT AFTER c") == set()
    assert known("ALTER TABLE t ADD b INT") == set()


def test_a_table_that_is_made_like_one_whose_name_differs_in_case_alone_is_another_one() -> None:
    """A server that took the two names for one table would have refused the statement."""
    state = SourceTables()
    for text in ("CREATE TABLE D.t (a INT)", "CREATE TABLE d.t LIKE D.t", "ALTER TABLE d.t ADD b INT"):
        apply_definition(state, parse_ddl(text, "", 0, MYSQL), NOBODY)
    assert {name: len(table.columns) for name, table in state.tables()} == {("D", "t"): 1, ("d", "t"): 2}


def test_children_whose_names_differ_in_case_alone_follow_their_parent_both() -> None:
    for rename in ("RENAME TABLE d.p TO d.q", "ALTER TABLE d.p CHANGE id number INT"):
        state = SourceTables()
        children = [
            Table("d", name, "InnoDB", foreign_keys=(("f", ForeignKey(("a",), "d", "p", ("id",))),))
            for name in ("c", "C")
        ]
        parent = Table("d", "p", "InnoDB", (Column("id", "int"),), (("PRIMARY", whole_key(["id"], True)),))
        for table in (parent, *children):
            state.put((table.schema, table.name), KnownTable(table), is_new=True)
        apply_definition(state, parse_ddl(rename, "", 0, MYSQL), NOBODY)
        for name in ("c", "C"):
            known = state.get(("d", name))
            assert known is not None and known.table.parents == {("d", "q" if "RENAME" in rename else "p")}


@pytest.mark.parametrize(
    "text", ["ALTER TABLE t\xa0ADD b INT", "DROP TABLE\xa0t", "RENAME TABLE u TO\xa0t", "DROP TABLE t\xa0"]
)
def test_a_blank_of_latin1_in_a_word_makes_every_table_unknown_that_may_be_meant(text: str) -> None:
    with pytest.raises(UnsupportedSyntax, match=r"U\+00A0"):
        parse_ddl(text, "d", 0, MYSQL)
    assert "t" in (defined_names(text.encode(), 0) or ())


@pytest.mark.parametrize("length", ["10,2", "x", "1e3"])
def test_a_part_of_a_key_whose_length_is_no_number_is_not_sure(length: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        parse_ddl(f"CREATE TABLE t (a TEXT, KEY (a({length})))", "d", 0, MYSQL)
