"""What a table is like after ALTER TABLE, clause by clause, and which clauses do not fit it."""

import pytest

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_table import alter_table, column_origins
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import AlterTable
from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table, whole_key
from tests.support.defined_tables import MARIADB, MYSQL, column_names, defined_table, shape

TABLE = Table(
    "d", "t", "InnoDB",
    (Column("a", "int", nullable=False), Column("b", "varchar(9)", "latin1", "latin1_swedish_ci"), Column("c", "int")),
    (("PRIMARY", whole_key(["a"], True)), ("k", Key(("b", "c"), False, (5, None), False))),
    "latin1", (), "latin1_swedish_ci",
)  # fmt: skip


def altered(actions: str, table: Table = TABLE, version: str = MARIADB) -> Table:
    statement = parse_ddl(f"ALTER TABLE t {actions}", "d", 0, version)
    assert isinstance(statement, AlterTable)
    return alter_table(table, statement.clauses, ("latin1", "latin1_swedish_ci"))


def columns(actions: str, table: Table = TABLE, version: str = MARIADB) -> list[str]:
    return [column.name for column in altered(actions, table, version).columns]


def keys(actions: str, table: Table = TABLE) -> dict[str, tuple[tuple[str, int | None], ...] | None]:
    return {name: key.parts for name, key in altered(actions, table).keys}


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("DROP IF EXISTS x, RENAME COLUMN IF EXISTS x TO y, ALTER IF EXISTS x SET DEFAULT 1, CHANGE IF EXISTS x y INT",
         ["a", "b", "c"]),
        ("ADD IF NOT EXISTS z INT, ADD IF NOT EXISTS z TEXT", ["a", "b", "c", "z"]),
        ("DROP b, ADD IF NOT EXISTS b INT", ["a", "c"]),
        ("RENAME COLUMN b TO z, DROP CHECK x, FORCE", ["a", "z", "c"]),
        ("MODIFY c INT FIRST, ADD z INT AFTER C", ["c", "z", "a", "b"]),
    ],
)  # fmt: skip
def test_columns_are_in_the_servers_order(actions: str, expected: list[str]) -> None:
    assert columns(actions, version="9.7.4" if "CHECK" in actions else MARIADB) == expected


@pytest.mark.parametrize(
    "actions",
    [
        "RENAME COLUMN x TO y", "DROP x", "ALTER x SET DEFAULT 1", "CHANGE x y INT", "CHANGE a x INT, MODIFY a INT",
        "MODIFY a INT, DROP a", "ADD A INT", "DROP a, DROP b, DROP c", "MODIFY b INT AFTER x", "CHANGE a c INT",
    ],
)  # fmt: skip
def test_a_clause_that_does_not_fit_the_table_makes_it_unknown(actions: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        altered(actions)


def test_a_table_needs_columns_of_different_names() -> None:
    with pytest.raises(UnsupportedSyntax):
        defined_table("CREATE TABLE t (KEY (a))")
    with pytest.raises(UnsupportedSyntax):
        defined_table("CREATE TABLE t (a INT, A INT)")


def test_the_origins_of_columns_are_those_that_the_clauses_name() -> None:
    statement = parse_ddl(
        "ALTER TABLE t CHANGE a x INT, RENAME COLUMN c TO z, ADD y INT, DROP b, ADD KEY (x), ENGINE=x", "d", 0, "9.7.4"
    )
    assert isinstance(statement, AlterTable)
    origins = column_origins(TABLE, statement.clauses)
    assert dict(origins.former) == {"x": "a", "z": "c"}
    assert origins.added == {"y"}
    assert origins.defined == {"x"}


# ---- character sets ------------------------------------------------------------------------------------------------------


def converted(definition: str, actions: str, charset: str = "latin1") -> list[tuple[str, str, str]]:
    return shape(
        defined_table(f"CREATE TABLE t ({definition}) CHARSET {charset}", f"ALTER TABLE t {actions}", version="9.7.4")
    )


@pytest.mark.parametrize(
    ("definition", "actions", "expected"),
    [
        ("a TEXT, b CHAR(3), c INT", "CONVERT TO CHARSET binary", [("a", "blob", ""), ("b", "binary(3)", ""), ("c", "int", "")]),
        ("a ENUM('x') CHARSET latin2", "CONVERT TO CHARSET ucs2", [("a", "enum", "ucs2")]),
        ("a TEXT", "CONVERT TO CHARSET cp1251, MODIFY a TEXT CHARSET latin2", [("a", "text", "?")]),
        ("a TEXT CHARSET latin2", "CONVERT TO CHARSET cp1251, MODIFY a TEXT CHARSET latin2", [("a", "text", "cp1251")]),
        ("a TEXT", "RENAME COLUMN a TO b, CONVERT TO CHARSET cp1251", [("b", "text", "?")]),
        ("a INT", "RENAME COLUMN a TO b, CONVERT TO CHARSET cp1251", [("b", "int", "")]),
        ("a TEXT", "DEFAULT CHARSET cp1251, ADD b TEXT", [("a", "text", "latin1"), ("b", "text", "cp1251")]),
        ("a TEXT", "DEFAULT CHARSET cp1251, CONVERT TO CHARSET latin2", [("a", "text", "?")]),
        ("a TEXT", "COLLATE latin1_bin, CONVERT TO CHARSET latin1", [("a", "text", "latin1")]),
        ("a TEXT", "CONVERT TO CHARSET DEFAULT", [("a", "text", "latin1")]),
    ],
)  # fmt: skip
def test_a_conversion_changes_the_texts_of_which_that_is_certain(
    definition: str, actions: str, expected: list[tuple[str, str, str]]
) -> None:
    assert converted(definition, actions) == expected


@pytest.mark.parametrize(
    "actions", ["CONVERT TO CHARSET binary", "MODIFY a TEXT CHARSET latin2, CONVERT TO CHARSET binary"]
)
def test_a_text_that_is_made_bytes_in_a_way_that_servers_differ_in_makes_the_table_unknown(actions: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        converted("a ENUM('x')", actions)


def test_a_conversion_to_a_set_that_is_not_known_makes_the_table_unknown() -> None:
    statement = parse_ddl("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", "d", 0, MYSQL)
    assert isinstance(statement, AlterTable)
    with pytest.raises(UnsupportedSyntax):
        alter_table(TABLE, statement.clauses, ("", ""))


def test_a_conversion_that_may_change_no_column_leaves_the_tables_own_set_unknown() -> None:
    table = defined_table("CREATE TABLE t (a INT) CHARSET latin2", "ALTER TABLE t CONVERT TO CHARSET cp1251")
    assert table is not None
    assert (table.charset, table.collation) == ("", "")
    same = defined_table("CREATE TABLE t (a TEXT) CHARSET latin1", "ALTER TABLE t CONVERT TO CHARSET latin1")
    assert same is not None
    assert (same.charset, same.collation) == ("latin1", "latin1_swedish_ci")


def test_a_collation_that_the_same_statement_gives_a_column_may_outlast_a_conversion() -> None:
    table = altered("MODIFY b VARCHAR(9) COLLATE latin1_bin, CONVERT TO CHARSET cp1251 COLLATE cp1251_bin")
    assert table.columns[1].collation == ""


@pytest.mark.parametrize(
    ("definition", "expected"),
    [("TEXT CHARSET binary", "blob"), ("TEXT", "blob"), ("ENUM('a')", "enum('a')"), ("SET('a')", "set('a')")],
)
def test_texts_of_a_table_of_bytes_are_bytes(definition: str, expected: str) -> None:
    assert shape(defined_table(f"CREATE TABLE t (a {definition}) CHARSET binary"))[0][1] == expected


@pytest.mark.parametrize(
    ("definition", "collation"),
    [("TEXT", "cp1251_bin"), ("TEXT BINARY", "cp1251_bin"), ("TEXT COLLATE DEFAULT", "")],
)
def test_a_column_takes_its_tables_collation_where_it_names_none(definition: str, collation: str) -> None:
    table = defined_table(f"CREATE TABLE t (a {definition}) COLLATE cp1251_bin", version=MARIADB)
    assert table is not None
    assert table.columns[0].collation == collation


# ---- keys ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("DROP b", {"PRIMARY": (("a", None),), "k": (("c", None),)}),
        ("DROP b, DROP c", {"PRIMARY": (("a", None),)}),
        ("DROP PRIMARY KEY, RENAME KEY k TO l", {"l": (("b", 5), ("c", None))}),
        ("RENAME KEY x TO l, DROP KEY x, DROP CONSTRAINT k", {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None))}),
        ("DROP CONSTRAINT `PRIMARY`", {"k": (("b", 5), ("c", None))}),
        ("CHANGE b x VARCHAR(4)", {"PRIMARY": (("a", None),), "k": (("x", None), ("c", None))}),
        ("MODIFY b TEXT", {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None))}),
        ("MODIFY b INT", {"PRIMARY": (("a", None),), "k": (("b", None), ("c", None))}),
        ("ADD KEY IF NOT EXISTS K (a), ADD KEY IF NOT EXISTS l (c), ADD KEY IF NOT EXISTS l (a)",
         {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None)), "l": (("c", None),)}),
        ("ADD KEY ((c + 1)), ADD KEY (c), ADD KEY (c)",
         {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None)), "functional_index": (("", None),), "c": (("c", None),),
          "c_2": (("c", None),)}),
        ("ADD KEY l (b(9))", {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None)), "l": (("b", None),)}),
        ("ADD KEY l (x)", {"PRIMARY": (("a", None),), "k": (("b", 5), ("c", None)), "l": (("x", None),)}),
    ],
)  # fmt: skip
def test_keys_are_those_that_the_clauses_leave(
    actions: str, expected: dict[str, tuple[tuple[str, int | None], ...]]
) -> None:
    assert keys(actions) == expected


@pytest.mark.parametrize(
    ("actions", "found"),
    [("DROP KEY k", True), ("DROP PRIMARY KEY", False), ("DROP PRIMARY KEY, ADD UNIQUE (c)", False),
     ("DROP PRIMARY KEY, ADD UNIQUE (a)", True)],
)  # fmt: skip
def test_every_row_is_findable_by_a_unique_key_without_null(actions: str, found: bool) -> None:
    assert altered(actions).has_unique_key == found


def test_prefixes_that_are_not_known_stay_so() -> None:
    table = Table("d", "t", "InnoDB", TABLE.columns, (("k", Key(("b", "c"))),), "latin1", ())
    assert keys("MODIFY b TEXT", table) == {"k": None}
    dropped = altered("DROP b", table)
    assert dropped.keys[0][1].columns == ("c",)
    assert dropped.keys[0][1].prefixes is None


CHILD = Table(
    "d", "t", "InnoDB", TABLE.columns, (("c", Key(("c",), False, (None,), True)),), "latin1",
    (("t_ibfk_1", ForeignKey(("c",), "d", "p", ("id",))),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("ADD FOREIGN KEY (a) REFERENCES p (id)", ["t_ibfk_1", "t_ibfk_2"]), ("DROP FOREIGN KEY T_IBFK_1", []),
        ("DROP CONSTRAINT t_ibfk_1", []), ("DROP CONSTRAINT x", ["t_ibfk_1"]), ("DROP CONSTRAINT t_ibfk_7", None),
        ("DROP FOREIGN KEY x", None), ("DROP FOREIGN KEY `t ibfk`", None), ("DROP c", None), ("ENGINE=MyISAM", []),
        ("ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET DEFAULT", ["f", "t_ibfk_1"]),
    ],
)  # fmt: skip
def test_foreign_keys_are_those_that_the_clauses_leave(actions: str, expected: list[str] | None) -> None:
    left = altered(actions, CHILD).foreign_keys
    assert (None if left is None else [name for name, _key in left]) == expected


def test_foreign_keys_that_are_not_known_stay_so() -> None:
    unknown = Table("d", "t", "InnoDB", TABLE.columns)
    for actions in ("ADD FOREIGN KEY (a) REFERENCES p (id)", "DROP FOREIGN KEY f", "CHANGE a x INT", "DROP a"):
        assert altered(actions, unknown).foreign_keys is None


def test_a_rule_that_is_not_known_makes_the_foreign_keys_unknown() -> None:
    """MySQL before 8.0 forgets the rules of a MATCH in an ALTER only if it copies the table."""
    actions = "ADD FOREIGN KEY (a) REFERENCES p (id) MATCH FULL ON DELETE CASCADE"
    assert altered(actions, CHILD, MYSQL).foreign_keys is None
    assert altered(actions, CHILD, MARIADB).foreign_keys is not None


def test_an_index_that_a_foreign_key_brought_goes_when_another_serves_it() -> None:
    assert keys("ADD KEY l (c, a)", CHILD) == {"l": (("c", None), ("a", None))}
    assert keys("ADD KEY l (c(3))", CHILD).keys() == {"c", "l"}
    with pytest.raises(UnsupportedSyntax):
        keys("ADD KEY (c, a)", Table("d", "t", "InnoDB", TABLE.columns, (("c", Key(("c",), False, (None,))),)))


def test_a_foreign_key_needs_no_second_index() -> None:
    create = "CREATE TABLE t (a INT, b INT, KEY k (a, b), FOREIGN KEY (a) REFERENCES p (id), FOREIGN KEY f (a, b) REFERENCES p (x, y))"
    table = defined_table(create)
    assert table is not None
    assert [name for name, _key in table.keys] == ["k"]
    longer = defined_table(
        "CREATE TABLE t (a INT, b INT, FOREIGN KEY e (a) REFERENCES p (x), FOREIGN KEY f (a, b) REFERENCES p (x, y))"
    )
    assert longer is not None
    assert [name for name, _key in longer.keys] == ["f"]


def test_a_tables_columns_are_renamed_in_its_foreign_keys() -> None:
    left = altered("CHANGE c x INT", CHILD).foreign_keys
    assert left is not None
    assert left[0][1].columns == ("x",)


def test_a_column_that_references_a_table_makes_a_foreign_key_where_the_server_takes_it_for_one() -> None:
    create = "CREATE TABLE t (a INT, b INT REFERENCES p (id))"
    for version, expected in ((MYSQL, ()), ("9.7.4", ("t_ibfk_1",)), (MARIADB, ("t_ibfk_1",))):
        table = defined_table(create, version=version)
        assert table is not None and table.foreign_keys is not None
        assert tuple(name for name, _key in table.foreign_keys) == expected


def test_a_table_that_is_made_like_another_has_its_columns() -> None:
    for like in ("LIKE u", "(LIKE u)"):
        assert column_names("CREATE TABLE u (b INT)", f"CREATE TABLE t {like}") == ["b"]
