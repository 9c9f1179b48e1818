"""Tables as statements define them, for tests that compare them with what servers print."""

from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import Table
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.table_book import SourceTables

MYSQL, MARIADB = "5.6.51-log", "10.11.6-MariaDB-log"
NOBODY = DefiningSession()


def defined_table(
    *statements: str, charset: str = "latin1", version: str = MYSQL, sql_mode: int = 0, name: str = "t"
) -> Table | None:
    """Return the table `name` after these statements in a new schema; None: it is not known."""
    state = SourceTables()
    apply_definition(state, parse_ddl(f"CREATE DATABASE d CHARACTER SET {charset}", "", 0, version), NOBODY)
    for statement in statements:
        apply_definition(state, parse_ddl(statement, "d", sql_mode, version), NOBODY)
    return state.exact(("d", name))


def shape(table: Table | None) -> list[tuple[str, str, str]]:
    """Return the names, types and character sets of its columns."""
    assert table is not None
    return [(column.name, column.type, column.charset) for column in table.columns]


def column_names(*statements: str, version: str = MYSQL) -> list[str]:
    """Return the names of the columns of the table `t` after these statements."""
    return [name for name, _type, _charset in shape(defined_table(*statements, version=version))]
