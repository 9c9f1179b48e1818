"""The tables of information_schema and performance_schema, and their columns, as real servers described them.

A file of `definitions/` is one server: a line is a table, its schema and name first, then its columns, separated by tabs; a column is
`NAME KIND LENGTH FLAGS DECIMALS CLASS`: the numbers of a column definition on the wire, the length in characters for text, a hyphen
if the decimals are not fixed; the class is t for text and b for all else. `python -m tests.corpus.record_tables` writes them.

A version that is not among them is shown the tables of the nearest one that is.
"""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Final

from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType
from protocol.statements import SourceFacts
from protocol.statements.translation.sqlite_text import TableName

SCHEMAS: Final = ("information_schema", "performance_schema")
# Views name their columns whatever a statement's spelling.
VIEWS_OF_MYSQL_8: Final = frozenset(
    ("CHARACTER_SETS", "CHECK_CONSTRAINTS", "COLLATIONS", "COLLATION_CHARACTER_SET_APPLICABILITY", "COLUMNS",
     "COLUMNS_EXTENSIONS", "COLUMN_STATISTICS", "EVENTS", "FILES", "KEYWORDS", "KEY_COLUMN_USAGE", "PARAMETERS", "PARTITIONS",
     "REFERENTIAL_CONSTRAINTS", "RESOURCE_GROUPS", "ROUTINES", "SCHEMATA", "SCHEMATA_EXTENSIONS", "STATISTICS", "TABLES",
     "TABLES_EXTENSIONS", "TABLE_CONSTRAINTS", "TABLE_CONSTRAINTS_EXTENSIONS", "TRIGGERS", "VIEWS", "VIEW_TABLE_USAGE")
)  # fmt: skip
_DIRECTORY: Final = Path(__file__).parent / "definitions"
_SHORT_INTEGERS: Final = (1, 2, 9, 13)
_SMALL_BLOBS: Final = (249, 252)


def server_of(facts: SourceFacts) -> str:
    """Return the server whose definitions are shown to a client that sees `facts`: the name of a file."""
    if facts.is_mariadb:
        return "mariadb"
    return "mysql97" if facts.is_mysql_8 else "mysql56"


@functools.lru_cache(maxsize=4)
def _lines(server: str) -> dict[TableName, str]:
    """Return the tables by lower-case name; the lines are read when they are needed. Blocking. Raises: OSError."""
    text = (_DIRECTORY / f"{server}.txt").read_text(encoding="utf-8")
    found: dict[TableName, str] = {}
    for line in text.splitlines():
        schema, name, _columns = line.split("\t", 2)
        found[schema, name.lower()] = line
    return found


def table_names(server: str, schema: str) -> list[str]:
    """Return the tables of one schema, as that server spells them. Blocking. Raises: OSError."""
    return [line.split("\t", 2)[1] for (of, _name), line in _lines(server).items() if of == schema]


def table_definition(server: str, table: TableName) -> tuple[AnswerColumn, ...] | None:
    """Return the columns of a table; None: that server has none of that name. Blocking. Raises: OSError."""
    line = _lines(server).get(table)
    if line is None:
        return None
    schema, name, *columns = line.split("\t")
    return tuple(replace(_column(text), schema=schema, table=name) for text in columns)


def _column(text: str) -> AnswerColumn:
    name, kind, length, flags, decimals, kind_class = text.split(" ")
    return AnswerColumn(
        name,
        _column_type(int(kind)),
        int(length),
        ColumnFlag(int(flags)) & _KNOWN_FLAGS,
        None if decimals == "-" else int(decimals),
        is_text=kind_class == "t",
        original_name=name,
    )


_KNOWN_FLAGS: Final = ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED | ColumnFlag.BINARY | ColumnFlag.NO_DEFAULT_VALUE


def _column_type(kind: int) -> ColumnType:
    """Return the type; sizes of numbers and texts whose difference no client sees are one."""
    if kind in _SHORT_INTEGERS:
        return ColumnType.LONG
    if kind in _SMALL_BLOBS:
        return ColumnType.MEDIUM_BLOB
    try:
        return ColumnType(kind)
    except ValueError:
        return ColumnType.VAR_STRING
