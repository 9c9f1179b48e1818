"""Keys and constraints of a table that are definitions of their own."""

import re
from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import KeyPart, WrittenKey
from protocol.sql.tables.source_table import Key, Table, TableName
from protocol.sql.tables.table_elements import key_element
from relay.source_tables.known_table import KnownTable
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.rules.refused.long_keys import longest_part
from relay.view.stops import definition_stops

_BLOB_TYPES: Final = (
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
    "json",
)
_BYTES_OF: Final = {
    "utf8mb4": 4,
    "utf8mb3": 3,
    "utf8": 3,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "ucs2": 2,
    "latin1": 1,
    "ascii": 1,
}
_OWN_NAME: Final = re.compile(r"CONSTRAINT_\d+")
_MOST_CHARACTERS: Final = 768
"""The most characters that fit into a key of InnoDB, of any character set."""
MOST_KEY_BYTES: Final = 3072
"""The most bytes of a key of InnoDB, on both servers; MariaDB stores a longer UNIQUE key as a hash."""


def name_in_schema(words: EditableStatement, index: int, table: str) -> None:
    """Add the table's name to MariaDB's own names of CHECK constraints, which are unique per table, and in MySQL per schema (3822)."""
    token = words.tokens[index]
    if _OWN_NAME.fullmatch(token.text):
        words.put(index, "`" + f"{table}_{token.text}".replace("`", "``") + "`")


def read_key(words: EditableStatement, table: TableName) -> WrittenKey | None:
    """Return a key or a constraint of `table`; None: a column follows. Raises: UnsupportedSyntax, Untranslatable."""
    first = len(words.written.attributes)
    if key_element(words) is None:
        return None
    key = words.written.keys[-1]
    if key.kind == "PERIOD" and key.name.upper() != "SYSTEM_TIME":
        raise definition_stops.clause_unknown(words.context.target_title, words.query, "PERIOD FOR")
    if key.kind == "CHECK":
        if key.name:
            name_in_schema(words, words.index_at(key.named), table[1])
        check = words.written.checks[-1]
        read_expressions(words, words.index_at(check.condition), words.index_at(check.stop))
    if key.references is not None:
        for token in key.references.columns:
            words.quote(words.index_at(token.start))
    check_parts(words, key.parts)
    rewrite_key_options(words, first)
    return key


def check_parts(words: EditableStatement, parts: tuple[KeyPart, ...]) -> None:
    """Check that there is no expression, which no MariaDB has in keys. Raises: UnsupportedSyntax."""
    if not all(part.name for part in parts):
        raise UnsupportedSyntax("an expression in a key")


def rewrite_key_options(words: EditableStatement, first: int) -> None:
    """Rewrite the options that are read, from number `first` on. Raises: Untranslatable."""
    for one in words.written.attributes[first:]:
        if one.name == "WITHOUT OVERLAPS":
            raise definition_stops.clause_unknown(words.context.target_title, words.query, one.name)
        if one.name == "IGNORED":
            words.replace(one.start, one.stop, "INVISIBLE")
        else:
            words.cut_part(one)


def add_prefixes(
    words: EditableStatement, parts: tuple[KeyPart, ...], long: set[str], known: KnownTable | None = None
) -> None:
    """Write out the prefixes of a key that is not unique: of texts of any length, of which MariaDB takes as much as there is room for,
    and of other columns of the table `known` that it shortens.

    `long` contains the former, in lower case.
    """
    columns = {column.name.lower(): column for column in known.columns} if known is not None else {}
    for part in parts:
        name = part.name.lower()
        given = part.prefix
        if given is None and name in long:
            given = _MOST_CHARACTERS // len(parts)
        most = longest_part(columns.get(name), given, known.engine, "") if known is not None else None
        length = given if most is None else most
        if length is not None and length != part.prefix:
            stop = part.stop if part.prefix is None else words.query.text.index(")", part.stop) + 1
            words.replace(part.stop, stop, f"({length})")


def is_left_out(key: Key, table: Table) -> bool:
    """Return whether MySQL cannot have this key of a table of the source, so that it was left out where it was created."""
    if not key.unique:
        return False
    columns = {column.name.lower(): column for column in table.columns}
    total = 0
    for name, prefix in key.parts or ():
        column = columns.get(name.lower())
        if column is None:
            return False
        kind, _, rest = column.type.partition("(")
        if prefix is None and kind in _BLOB_TYPES:
            return True
        if kind == "varchar" or prefix is not None:
            total += (prefix or int(rest.rstrip(")") or 0)) * _BYTES_OF.get(column.charset, 0 if column.charset else 1)
    return total > MOST_KEY_BYTES
