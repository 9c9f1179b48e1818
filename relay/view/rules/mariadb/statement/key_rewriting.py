"""Keys and constraints of a table, where they stand as definitions of their own."""

import re
from dataclasses import dataclass, field
from typing import Final

from protocol.sql.lexer import TokenKind, UnsupportedSyntax, is_name
from protocol.sql.tables.references_clause import ReferencesClause, read_references
from protocol.sql.tables.source_table import Key, Table, TableName
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.stops import definition_stops

_KEY_WORDS: Final = frozenset(("INDEX", "KEY"))
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
"""That fit into a key of InnoDB, of any character set."""
MOST_KEY_BYTES: Final = 3072
"""Of a key of InnoDB, on both servers; a longer UNIQUE key MariaDB keeps as a hash."""


@dataclass
class DefinedKey:
    """kind: PRIMARY, UNIQUE, FULLTEXT, SPATIAL, VECTOR, FOREIGN, CHECK, PERIOD, or "" for a plain one.

    parts: columns with their prefixes, and `places` of their names. closed: the place of the bracket behind them. if_not_exists:
    [first, stop) of these words.
    """

    kind: str
    name: str = ""
    parts: list[tuple[str, int | None]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    closed: int = 0
    if_not_exists: tuple[int, int] | None = None
    references: ReferencesClause | None = None


def name_in_schema(words: EditableStatement, index: int, table: str) -> None:
    """MariaDB's own names of CHECK constraints are one per table; names are one per schema in MySQL (3822), so the table's is added."""
    token = words.tokens[index]
    if _OWN_NAME.fullmatch(token.text):
        words.put(index, "`" + f"{table}_{token.text}".replace("`", "``") + "`")


def read_key(words: EditableStatement, table: TableName) -> DefinedKey | None:
    """A key or a constraint of `table`; None: a column comes. Raises: UnsupportedSyntax, Untranslatable."""
    word, following = words.word(), words.word(1)
    if words.kind is not TokenKind.WORD:
        return None
    if word == "PERIOD" and following == "FOR":
        return _period(words)
    if word == "VECTOR" and (following in _KEY_WORDS or following == "("):
        words.take()
        words.accept_any(*_KEY_WORDS)
        return _index(words, DefinedKey("VECTOR"))
    name, named_at, exists = "", -1, None
    if word == "CONSTRAINT":
        words.take()
        exists = accept_if(words, "NOT")
        if words.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK") or words.kind is not TokenKind.WORD:
            name, named_at = words.name(), words.at - 1
        word = words.word()
        if word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            raise UnsupportedSyntax("a constraint of another kind")
    made = DefinedKey("", name, if_not_exists=exists)
    if word == "CHECK":
        words.take()
        made.kind = "CHECK"
        if name:
            name_in_schema(words, named_at, table[1])
        opened = words.at
        words.skip_brackets()
        read_expressions(words, opened, words.at)
        return made
    if word == "FOREIGN":
        return _foreign(words, made, table[0])
    if word == "PRIMARY":
        words.take()
        words.expect("KEY")
        made.kind, made.name = "PRIMARY", "PRIMARY"
    elif word == "UNIQUE":
        words.take()
        made.kind = "UNIQUE"
        words.accept("INDEX") or words.accept("KEY")
    elif word in ("FULLTEXT", "SPATIAL"):
        words.take()
        made.kind = word
        words.accept("INDEX") or words.accept("KEY")
    elif word in _KEY_WORDS:
        words.take()
    else:
        return None
    return _index(words, made)


def accept_if(words: EditableStatement, *no: str) -> tuple[int, int] | None:
    """Takes IF EXISTS, or IF NOT EXISTS; [first, stop) of its words."""
    at = words.at
    return (at, words.at) if words.accept("IF", *no, "EXISTS") else None


def _period(words: EditableStatement) -> DefinedKey:
    words.at += 2
    if not words.accept("SYSTEM_TIME"):
        raise definition_stops.clause_unknown(words.context.target_title, words.query, "PERIOD FOR")
    words.skip_brackets()
    return DefinedKey("PERIOD")


def _index(words: EditableStatement, made: DefinedKey) -> DefinedKey:
    made.if_not_exists = accept_if(words, "NOT") or made.if_not_exists
    index_type(words)
    if words.word() != "(":
        name = words.name()
        made.name = made.name or name
        index_type(words)
    read_parts(words, made)
    key_options(words)
    return made


def _foreign(words: EditableStatement, made: DefinedKey, schema: str) -> DefinedKey:
    words.take()
    words.expect("KEY")
    made.kind = "FOREIGN"
    made.if_not_exists = accept_if(words, "NOT") or made.if_not_exists
    if words.word() != "(":
        name = words.name()
        if not made.name:
            made.name = name
    read_parts(words, made)
    start = words.at
    made.references = read_references(words, schema)
    for index in range(start, words.at):
        if words.at_word(index - 1) in ("(", ",") and is_name(words.tokens[index]):
            words.quote(index)
    return made


def index_type(words: EditableStatement) -> None:
    """USING BTREE and its like."""
    if words.accept("USING") or words.accept("TYPE"):
        words.take()


def read_parts(words: EditableStatement, made: DefinedKey) -> None:
    """The columns of a key, in brackets."""
    words.expect("(")
    while True:
        name, prefix = words.name(), None
        made.places.append(words.at - 1)
        if words.word() == "(":
            words.take()
            number = words.take()
            if number.kind is not TokenKind.NUMBER or not number.text.isdigit():
                raise UnsupportedSyntax("a prefix of a key that is no number")
            prefix = int(number.text)
            words.expect(")")
        made.parts.append((name, prefix))
        if words.word() == "WITHOUT":
            raise definition_stops.clause_unknown(words.context.target_title, words.query, "WITHOUT OVERLAPS")
        words.accept("ASC") or words.accept("DESC")
        if words.accept(")"):
            break
        words.expect(",")
    made.closed = words.at - 1


def key_options(words: EditableStatement) -> None:
    """What may stand behind a key's columns."""
    while True:
        at, word = words.at, words.word()
        if word in ("USING", "TYPE"):
            words.at += 2
        elif word in ("KEY_BLOCK_SIZE", "COMMENT"):
            words.take()
            words.accept("=")
            words.take()
        elif word == "WITH" and words.word(1) == "PARSER":
            words.at += 3
        elif word == "NOT" and words.word(1) == "IGNORED":
            words.at += 2
            words.cut(at, words.at)
        elif word == "IGNORED":
            words.take()
            words.put(at, "INVISIBLE")
        elif word in ("VISIBLE", "INVISIBLE"):
            words.take()
        elif word in ("CLUSTERING", "M", "DISTANCE"):
            words.take()
            words.accept("=")
            words.take()
            words.cut(at, words.at)
        else:
            return


def add_prefixes(words: EditableStatement, key: DefinedKey, long: set[str]) -> None:
    """Writes out how much of texts of any length is in a key that is not unique: MariaDB takes as much as there is room for.

    long: such columns, in lower case.
    """
    for (name, prefix), place in zip(key.parts, key.places, strict=True):
        if prefix is None and name.lower() in long:
            words.after(place, f"({_MOST_CHARACTERS // len(key.parts)})")


def is_left_out(key: Key, table: Table) -> bool:
    """Whether MySQL cannot have this key of a table of the source, so that it was left out where it was made."""
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
