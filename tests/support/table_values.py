"""A comparison of the tables of two servers by content: every row of every table, and its columns.

CHECKSUM TABLE of MySQL 5.6 and 9.7 differ for equal rows, and equal sums of two servers say little if both are wrong.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deploy.servers import Server

_COLUMNS: Final = """
    SELECT column_name, data_type, is_nullable, column_default, extra, character_set_name, collation_name, column_key
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class TableValues:
    """A table. `columns` have name, type, NULL or not, default, extra, character set, collation and key, in words that 5.6 and 9.7
    share. `rows` are sorted by their text, because servers and engines keep them in different orders."""

    columns: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[Any, ...], ...]


def table_values(server: Server, databases: Iterable[str]) -> dict[str, TableValues]:
    """Return every base table of these databases by "database.table"."""
    found: dict[str, TableValues] = {}
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for database in databases:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables"
                " WHERE table_schema = %s AND table_type = 'BASE TABLE' ORDER BY table_name",
                (database,),
            )
            for (table,) in cursor.fetchall():
                cursor.execute(_COLUMNS, (database, table))
                columns = tuple(_in_common_words(row) for row in cursor.fetchall())
                names = [f"HEX(`{name}`)" if kind == "vector" else f"`{name}`" for name, kind, *_ in columns]
                cursor.execute(f"SELECT {', '.join(names)} FROM `{database}`.`{table}`")
                found[f"{database}.{table}"] = TableValues(columns, tuple(sorted(cursor.fetchall(), key=repr)))
    return found


def differences(wanted: dict[str, TableValues], held: dict[str, TableValues]) -> list[str]:
    """Return the differences, a line for each table; empty if there are none."""
    found = [f"{table} is missing" for table in wanted.keys() - held.keys()]
    found += [f"{table} is too much" for table in held.keys() - wanted.keys()]
    for table in sorted(wanted.keys() & held.keys()):
        first, second = wanted[table], held[table]
        if first.columns != second.columns:
            pairs = zip(first.columns, second.columns, strict=False)
            one = next(((a, b) for a, b in pairs if a != b), (len(first.columns), len(second.columns)))
            found.append(f"{table} has other columns: {one[0]} is {one[1]}")
        if first.rows != second.rows:
            lost, new = _only_in(first.rows, second.rows), _only_in(second.rows, first.rows)
            found.append(
                f"{table}: {len(first.rows)} rows are {len(second.rows)}; missing {_shown(lost)}; too much {_shown(new)}"
            )
    return found


def check_equal(source: Server, replica: Server, databases: Sequence[str]) -> None:
    """Raise AssertionError with the differences."""
    found = differences(table_values(source, databases), table_values(replica, databases))
    assert not found, f"{replica!r} differs from {source!r}:\n" + "\n".join(found)


def _only_in(rows: Sequence[tuple[Any, ...]], other: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    left = list(map(repr, other))
    counts: dict[str, int] = {}
    for text in left:
        counts[text] = counts.get(text, 0) + 1
    found = []
    for row in rows:
        if counts.get(repr(row), 0):
            counts[repr(row)] -= 1
        else:
            found.append(row)
    return found


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    return f"{len(rows)}: {', '.join(repr(row)[:120] for row in rows[:_SHOWN])}"


def _in_common_words(column: Sequence[object]) -> tuple[str, ...]:
    """Return a column in common words: 9.7 says utf8mb3 for utf8, and DEFAULT_GENERATED if a default is an expression; 5.6 has '0'
    where 9.7 has 0."""
    words = ["" if value is None else str(value) for value in column]
    words[4] = words[4].replace("DEFAULT_GENERATED", "").strip().lower()
    words[3] = words[3].upper().replace("CURRENT_TIMESTAMP()", "CURRENT_TIMESTAMP")
    for place in (5, 6):
        words[place] = re.sub(r"^utf8mb3", "utf8", words[place])
    return tuple(words)
