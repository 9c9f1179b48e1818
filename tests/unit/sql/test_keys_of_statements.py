"""What statements say of keys, foreign keys and collations, by the server that logged them."""

import pytest

from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import ForeignKey, Key, Table, whole_key
from relay.schema_history.logged_definition import LoggedDefinition
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.table_book import SourceTables

MYSQL, MYSQL9, MARIADB = "5.6.51-log", "9.7.0", "10.11.6-MariaDB-log"
NOBODY = DefiningSession()
PARENT = "CREATE TABLE p (id INT PRIMARY KEY, b INT, KEY (b)) ENGINE=InnoDB"


def state_behind(*statements: str, version: str = MYSQL, charset: str = "latin1") -> SourceTables:
    """What is known behind these statements, of which the first makes the schema `d`."""
    state = SourceTables()
    for text in (f"CREATE DATABASE d CHARACTER SET {charset}", *statements):
        LoggedDefinition(frozenset(), text, "d", version=version).apply_to(state)
    return state


def table(*statements: str, version: str = MYSQL, name: str = "t") -> Table:
    return state_behind(*statements, version=version).exact(("d", name))


def keys(*statements: str, version: str = MYSQL) -> dict[str, Key]:
    return dict(table(*statements, version=version).keys)


def foreign_keys(*statements: str, version: str = MYSQL, name: str = "t") -> dict[str, ForeignKey] | None:
    told = table(*statements, version=version, name=name).foreign_keys
    return None if told is None else dict(told)


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_has_the_prefixes_that_the_statement_says_and_none_as_long_as_its_column() -> None:
    found = keys("CREATE TABLE t (a VARCHAR(20), b TEXT, UNIQUE k (a(5), b(9) DESC), UNIQUE w (a(20)))")
    assert found == {"k": Key(("a", "b"), True, (5, 9)), "w": Key(("a",), True, (None,))}


def test_a_part_of_a_key_that_is_no_column_is_there_as_one() -> None:
    found = keys("CREATE TABLE t (a VARCHAR(20), UNIQUE k ((lower(a)), a(3)))", version=MYSQL9)
    assert found == {"k": Key(("", "a"), True, (None, 3))}
    assert found["k"].has_expression


@pytest.mark.parametrize(
    ("kind", "prefix"), [("VARCHAR(9)", 5), ("VARCHAR(5)", None), ("VARCHAR(4)", None), ("TEXT", 5), ("INT", None)]
)
def test_a_prefix_stays_as_long_as_its_column_has_room_for_it(kind: str, prefix: int | None) -> None:
    found = keys("CREATE TABLE t (a VARCHAR(20), UNIQUE k (a(5)))", f"ALTER TABLE t CHANGE a z {kind}")
    assert found == {"k": Key(("z",), True, (prefix,))}


def test_a_dropped_column_takes_its_part_of_a_key_along() -> None:
    found = keys("CREATE TABLE t (a VARCHAR(20), b TEXT, UNIQUE k (a(5), b(9)))", "ALTER TABLE t DROP a")
    assert found == {"k": Key(("b",), True, (9,))}


def test_an_index_that_a_foreign_key_brought_gives_its_place_and_name_to_a_key_that_does_as_well() -> None:
    made = ("CREATE TABLE t (r INT, b INT, FOREIGN KEY (r) REFERENCES p (id)) ENGINE=InnoDB",)
    assert keys(*made) == {"r": whole_key(("r",))}
    assert keys(*made, "ALTER TABLE t ADD UNIQUE (r, b)") == {"r": whole_key(("r", "b"), True)}


# ---- foreign keys ----------------------------------------------------------------------------------------------------


def test_foreign_keys_have_the_names_and_rules_that_their_server_gives_them() -> None:
    made = (
        "CREATE TABLE t (a INT, b INT, c INT, FOREIGN KEY ix (a) REFERENCES p (id) ON DELETE CASCADE, "
        "CONSTRAINT n FOREIGN KEY (b) REFERENCES o.p (id) ON UPDATE SET NULL ON DELETE NO ACTION)",
        "ALTER TABLE t ADD FOREIGN KEY (c) REFERENCES p (id)",
    )
    first, second = (
        ForeignKey(("a",), "d", "p", ("id",), "CASCADE", "RESTRICT"),
        ForeignKey(("b",), "o", "p", ("id",), "NO ACTION", "SET NULL"),
    )
    third = ForeignKey(("c",), "d", "p", ("id",), "RESTRICT", "RESTRICT")
    assert foreign_keys(*made) == {"t_ibfk_1": first, "n": second, "t_ibfk_2": third}
    assert foreign_keys(*made, version=MARIADB) == {"ix": first, "n": second, "t_ibfk_1": third}
    found = foreign_keys(*made, version=MYSQL9)
    assert found is not None
    assert found["t_ibfk_2"].on_delete == "NO ACTION"


def test_match_makes_old_servers_forget_the_rules_perhaps() -> None:
    made = "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id) MATCH SIMPLE ON DELETE CASCADE)"
    rules = []
    for version in (MYSQL, MARIADB, MYSQL9):
        (found,) = (foreign_keys(made, version=version) or {}).values()
        rules.append(found.on_delete)
    assert rules == ["RESTRICT", "CASCADE", "CASCADE"]
    altered = "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id) MATCH SIMPLE ON DELETE CASCADE"
    assert foreign_keys("CREATE TABLE t (a INT)", altered) is None


def test_references_of_a_column_are_a_foreign_key_where_the_server_takes_them_for_one() -> None:
    made = (PARENT, "CREATE TABLE t (a INT REFERENCES p (id), b INT)", "ALTER TABLE t ADD c INT REFERENCES p (b)")
    assert foreign_keys(*made) == {}
    for version in (MARIADB, MYSQL9):
        found = foreign_keys(*made, version=version)
        assert found is not None
        assert [(name, key.columns, key.referenced) for name, key in found.items()] == [
            ("t_ibfk_1", ("a",), ("id",)),
            ("t_ibfk_2", ("c",), ("b",)),
        ]
    assert foreign_keys(*made, version="10.4.1-MariaDB") == {}
    assert foreign_keys(*made, version="") is None


def test_a_foreign_key_without_columns_means_the_primary_key() -> None:
    found = foreign_keys(PARENT, "CREATE TABLE t (a INT REFERENCES p)", version=MYSQL9)
    assert found is not None
    assert found["t_ibfk_1"].referenced == ("id",)


def test_engines_without_foreign_keys_forget_them() -> None:
    assert foreign_keys("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id)) ENGINE=MyISAM") == {}


def test_a_renamed_parent_and_its_renamed_columns_are_followed() -> None:
    child = "CREATE TABLE t (a INT, up INT, FOREIGN KEY (a) REFERENCES p (id), FOREIGN KEY (up) REFERENCES t (a))"
    found = foreign_keys(
        PARENT, child, "RENAME TABLE p TO e.q", "ALTER TABLE e.q CHANGE id no INT", "RENAME TABLE t TO u", name="u"
    )
    assert found == {
        "u_ibfk_1": ForeignKey(("a",), "e", "q", ("no",)),
        "u_ibfk_2": ForeignKey(("up",), "d", "u", ("a",)),
    }


def test_a_dropped_parent_and_one_of_another_engine_change_nothing() -> None:
    child = "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id))"
    kept = {"t_ibfk_1": ForeignKey(("a",), "d", "p", ("id",))}
    assert foreign_keys(PARENT, child, "DROP TABLE p") == kept
    other = "CREATE TABLE p (id INT) ENGINE=MyISAM"
    assert foreign_keys(PARENT, child, "DROP TABLE p", other, "RENAME TABLE p TO q") == kept


@pytest.mark.parametrize(
    "statement",
    [
        "RENAME TABLE p TO q",
        "ALTER TABLE p RENAME TO q",
        "ALTER TABLE p CHANGE id no INT",
        "ALTER TABLE p FLY",
        "ALTER TABLE P RENAME TO q",
    ],
)
def test_what_may_have_renamed_a_parent_that_nobody_knows_makes_foreign_keys_unknown(statement: str) -> None:
    state = state_behind("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id))")
    LoggedDefinition(frozenset(("p",)), statement, "d", version=MYSQL).apply_to(state)
    assert state.exact(("d", "t")).foreign_keys is None
    assert [column.name for column in state.exact(("d", "t")).columns] == ["a"]


def test_other_changes_of_a_parent_that_nobody_knows_leave_foreign_keys_known() -> None:
    child = "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (id))"
    assert foreign_keys(child, "ALTER TABLE p ADD x INT", "DROP TABLE p") is not None


def test_foreign_keys_are_dropped_by_their_names_and_not_known_where_the_name_is_not() -> None:
    made = "CREATE TABLE t (a INT, CONSTRAINT n FOREIGN KEY (a) REFERENCES p (id), CONSTRAINT u UNIQUE (a))"
    assert foreign_keys(made, "ALTER TABLE t DROP FOREIGN KEY N") == {}
    assert foreign_keys(made, "ALTER TABLE t DROP CONSTRAINT n", version=MYSQL9) == {}
    assert foreign_keys(made, "ALTER TABLE t DROP FOREIGN KEY other") is None
    unique = "ALTER TABLE t DROP CONSTRAINT u"
    assert foreign_keys(made, unique, version=MYSQL9) is not None
    assert "u" not in keys(made, unique, version=MYSQL9)


def test_a_table_like_another_has_none_of_its_foreign_keys() -> None:
    other = "CREATE TABLE o (a INT, FOREIGN KEY (a) REFERENCES p (id))"
    assert foreign_keys(other, "CREATE TABLE t LIKE o") == {}


# ---- collations ------------------------------------------------------------------------------------------------------


def collations(*statements: str, version: str = MYSQL, told: tuple[tuple[str, str], ...] = ()) -> list[str]:
    state = SourceTables()
    for text in ("CREATE DATABASE d CHARACTER SET latin1 COLLATE latin1_bin", *statements):
        apply_definition(state, parse_ddl(text, "d", 0, version, told), DefiningSession(1, "utf8", "utf8_unicode_ci"))
    return [column.collation for column in state.exact(("d", "t")).columns]


def test_a_column_has_its_own_collation_its_character_sets_its_tables_or_its_databases() -> None:
    columns = (
        "a VARCHAR(3) COLLATE cp1251_bin, b TEXT CHARSET utf8mb3, c CHAR(3) BINARY, e ENUM('x'), n INT, u NCHAR(3)"
    )
    own = ["cp1251_bin", "utf8_general_ci"]
    assert collations(f"CREATE TABLE t ({columns})") == [*own, "latin1_bin", "latin1_bin", "", "utf8_general_ci"]
    made = f"CREATE TABLE t ({columns}) CHARSET latin1"
    assert collations(made) == [*own, "latin1_bin", "latin1_swedish_ci", "", "utf8_general_ci"]
    made = f"CREATE TABLE t ({columns}) COLLATE utf8mb3_unicode_ci"
    assert collations(made) == [*own, "utf8_bin", "utf8_unicode_ci", "", "utf8_general_ci"]


def test_a_new_database_has_the_servers_collation() -> None:
    state = SourceTables()
    for text in ("CREATE DATABASE n", "CREATE TABLE n.t (a TEXT)"):
        apply_definition(state, parse_ddl(text, "", 0, MYSQL), DefiningSession(1, "utf8", "utf8_unicode_ci"))
    assert state.exact(("n", "t")).columns[0].collation == "utf8_unicode_ci"


def test_a_conversion_gives_all_texts_its_collation() -> None:
    made = "CREATE TABLE t (a TEXT COLLATE latin1_bin, b CHAR(3) CHARSET cp1251)"
    assert collations(made, "ALTER TABLE t CONVERT TO CHARACTER SET utf8") == ["utf8_general_ci"] * 2
    altered = "ALTER TABLE t CONVERT TO CHARACTER SET utf8 COLLATE utf8_bin"
    assert collations(made, altered, "ALTER TABLE t ADD c TEXT") == ["utf8_bin"] * 3


def test_which_collation_utf8mb4_has_is_told_by_newer_servers_or_not_known() -> None:
    made = "CREATE TABLE t (a TEXT CHARSET utf8mb4, b TEXT CHARSET latin1)"
    assert collations(made) == collations(made, version=MARIADB) == ["utf8mb4_general_ci", "latin1_swedish_ci"]
    assert collations(made, version=MYSQL9) == ["", "latin1_swedish_ci"]
    told = (("utf8mb4", "utf8mb4_0900_ai_ci"),)
    assert collations(made, version=MYSQL9, told=told) == ["utf8mb4_0900_ai_ci", "latin1_swedish_ci"]
    told = (("utf8mb4", "utf8mb4_uca1400_ai_ci"),)
    assert collations(made, version="11.8.1-MariaDB", told=told)[0] == "utf8mb4_uca1400_ai_ci"


def test_servers_differ_in_which_counts_of_a_collation_and_a_character_set_behind_it() -> None:
    made = "CREATE TABLE t (a TEXT) COLLATE utf8_bin CHARSET utf8"
    found = [collations(made, version=version)[0] for version in (MYSQL, "8.0.30", MYSQL9, MARIADB)]
    assert found == ["utf8_general_ci", "", "utf8_bin", "utf8_bin"]


def test_it_is_known_which_generated_columns_are_stored() -> None:
    made = "CREATE TABLE t (a INT, s INT AS (a) STORED, v INT GENERATED ALWAYS AS (a) VIRTUAL, w INT AS (a))"
    found = table(made, version=MYSQL9)
    assert [(one.generated, one.stored) for one in found.columns] == [
        (False, True),
        (True, True),
        (True, False),
        (True, False),
    ]
