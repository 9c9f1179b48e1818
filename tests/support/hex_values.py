"""Tables of a MariaDB and of a MySQL compared by the bytes of every value, column by column.

CHECKSUM TABLE differs between the two where all is equal, and what a client is shown differs, too: a UUID is BINARY(16) on a MySQL.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deploy.servers import Server

_TABLES: Final = (
    "SELECT table_name, table_type FROM information_schema.tables"
    " WHERE table_schema = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY table_name"
)
_COLUMNS: Final = (
    "SELECT column_name, data_type, is_nullable, character_set_name FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
_KEYS: Final = (
    "SELECT index_name, non_unique, seq_in_index, column_name, sub_part FROM information_schema.statistics"
    " WHERE table_schema = %s AND table_name = %s ORDER BY index_name, seq_in_index"
)
_BYTES_OF: Final = {
    "uuid": "HEX(CAST({} AS BINARY(16)))",
    "inet6": "HEX(CAST({} AS BINARY(16)))",
    "inet4": "HEX(CAST({} AS BINARY(4)))",
    # It is written as a number: below 1e-5 the two write it differently. A FLOAT has more digits than it shows.
    "float": "{} + 0e0",
    "double": "{} + 0e0",
    "bit": "HEX({} + 0)",
    "year": "{} + 0",
    "enum": "CONCAT({0} + 0, ' ', HEX({0}))",
    "set": "CONCAT({0} + 0, ' ', HEX({0}))",
}
_AS_TEXT: Final = ("int", "decimal", "date", "time")
"""These occur in types' names: numbers that HEX() would round, and times."""
_STANDS_FOR: Final = {
    "json": "longtext",
    "uuid": "binary",
    "inet6": "binary",
    "inet4": "binary",
    # MySQL's names of what MariaDB has.
    "geomcollection": "geometrycollection",
}
_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True)
class HexTable:
    """A table. `columns` are name, type, NULL or not and character set, in common words of both products. `keys` are name, unique or
    not, column, length of a prefix. `rows` have a text for each value, sorted."""

    columns: tuple[tuple[str, ...], ...]
    keys: frozenset[tuple[object, ...]]
    rows: tuple[tuple[Any, ...], ...]


def hex_tables(server: Server, databases: Iterable[str]) -> dict[str, HexTable]:
    """Return every table of these databases by "database.table", including history of system versioning and hidden columns, without
    sequences."""
    found: dict[str, HexTable] = {}
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for database in databases:
            cursor.execute(_TABLES, (database,))
            for table, kind in cursor.fetchall():
                found[f"{database}.{table}"] = _hex_table(cursor, database, table, versioned=kind != "BASE TABLE")
    return found


def _hex_table(cursor: Any, database: str, table: str, *, versioned: bool) -> HexTable:
    cursor.execute(_COLUMNS, (database, table))
    columns = list(cursor.fetchall())
    cursor.execute(_KEYS, (database, table))
    keys = {(name, unique, str(column), str(prefix)) for name, unique, _place, column, prefix in cursor.fetchall()}
    if versioned and not _names_its_period(cursor, database, table):
        # No list of its columns shows them; row_end is in each unique key.
        columns += [("row_start", "timestamp", "NO", None), ("row_end", "timestamp", "NO", None)]
        keys |= {(name, unique, "row_end", "None") for name, unique, *_ in keys if not unique}
    values = ", ".join(_bytes_of(name, kind) for name, kind, *_ in columns)
    history = " FOR SYSTEM_TIME ALL" if versioned else ""
    cursor.execute(f"SELECT {values} FROM `{database}`.`{table}`{history}")
    return HexTable(tuple(map(_in_common_words, columns)), frozenset(keys), tuple(sorted(cursor.fetchall(), key=repr)))


def _names_its_period(cursor: Any, database: str, table: str) -> bool:
    cursor.execute(f"SHOW CREATE TABLE `{database}`.`{table}`")
    return "PERIOD FOR SYSTEM_TIME" in cursor.fetchone()[1]


def _bytes_of(name: str, kind: str) -> str:
    quoted = f"`{name}`"
    if kind in _BYTES_OF:
        return _BYTES_OF[kind].format(quoted)
    if "point" not in kind and any(word in kind for word in _AS_TEXT):
        return f"CAST({quoted} AS CHAR)"
    return f"HEX({quoted})"


def _in_common_words(column: Sequence[Any]) -> tuple[str, ...]:
    name, kind, null, charset = column
    charset = "" if kind in ("uuid", "inet4", "inet6") else str(charset or "")
    return str(name), _STANDS_FOR.get(kind, kind), str(null), "utf8" if charset == "utf8mb3" else charset


def hex_differences(
    wanted: dict[str, HexTable], held: dict[str, HexTable], *, keys_left_out: Iterable[str] = ()
) -> list[str]:
    """Return the differences, a line for each table and for each column of it.

    `keys_left_out` are "database.table.key" of those that no MySQL can have.
    """
    found = [f"{table} is missing" for table in sorted(wanted.keys() - held.keys())]
    found += [f"{table} is too much" for table in sorted(held.keys() - wanted.keys())]
    left_out = set(keys_left_out)
    for table in sorted(wanted.keys() & held.keys()):
        ours, theirs = wanted[table], held[table]
        if ours.columns != theirs.columns:
            found.append(f"{table} has other columns: {_first_of_both(ours.columns, theirs.columns)}")
        keys = {key for key in ours.keys if f"{table}.{key[0]}" not in left_out}
        if keys != theirs.keys:
            found.append(f"{table} has other keys: {sorted(keys ^ theirs.keys, key=repr)}")
        if ours.rows == theirs.rows:
            continue
        found.append(f"{table}: {len(ours.rows)} rows are {len(theirs.rows)}")
        for (name, *_), mine, its in zip(ours.columns, _by_column(ours), _by_column(theirs), strict=False):
            if sorted(mine, key=repr) != sorted(its, key=repr):
                found.append(f"{table}.{name}: {_first_of_both(sorted(mine, key=repr), sorted(its, key=repr))}")
    return found


def _by_column(table: HexTable) -> list[tuple[Any, ...]]:
    return list(zip(*table.rows, strict=True)) or [()] * len(table.columns)


def _first_of_both(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=False) if one != other][:_SHOWN]
    if not pairs:
        return f"{len(ours)} are {len(theirs)}"
    return "; ".join(f"{str(one)[:_SHOWN_CHARACTERS]} is {str(other)[:_SHOWN_CHARACTERS]}" for one, other in pairs)


def check_equal_bytes(
    source: Server, replica: Server, databases: Sequence[str], *, keys_left_out: Iterable[str] = ()
) -> int:
    """Return how many values were compared. Raises: AssertionError with the differences."""
    wanted = hex_tables(source, databases)
    found = hex_differences(wanted, hex_tables(replica, databases), keys_left_out=keys_left_out)
    assert not found, f"{replica!r} differs from {source!r}:\n" + "\n".join(found)
    return sum(len(table.rows) * len(table.columns) for table in wanted.values())
