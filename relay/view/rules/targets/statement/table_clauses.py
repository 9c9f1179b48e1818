"""Clauses of table definitions that are newer than a target's version: those that it refuses, and those that it reads and ignores."""

from typing import Final

from protocol.sql.lexer import TokenKind
from protocol.sql.tables.ddl_statement import AlterTable
from relay.view.rules.targets.known.target import NewClause, Target
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops import definition_stops

_KEYS: Final = frozenset(("PRIMARY", "KEY", "INDEX", "UNIQUE"))
_FIRST_WITH_DESCENDING: Final = 80_000
_FIRST_WITH_INLINE_KEYS: Final = 90_000
# A column's type -> the first version that knows it.
_TYPES: Final = {"JSON": (5, 7), "VECTOR": (9, 0)}
_COLUMN_CLAUSES: Final[tuple[NewClause, ...]] = (
    (("GENERATED",), (5, 7), "generated columns"),
    (("AS", "("), (5, 7), "generated columns"),
    (("DEFAULT", "("), (8, 0), "expressions as defaults"),
    (("INVISIBLE",), (8, 0), "invisible columns"),
    (("VISIBLE",), (8, 0), "visibility of columns"),
    (("SRID",), (8, 0), "SRIDs of columns"),
    (("ENGINE_ATTRIBUTE",), (8, 0), "ENGINE_ATTRIBUTE"),
    (("SECONDARY_ENGINE_ATTRIBUTE",), (8, 0), "SECONDARY_ENGINE_ATTRIBUTE"),
    (("NOT", "SECONDARY"), (8, 0), "NOT SECONDARY"),
)
_KEY_CLAUSES: Final[tuple[NewClause, ...]] = (
    (("(", "("), (8, 0), "keys over expressions"),
    ((",", "("), (8, 0), "keys over expressions"),
    (("INVISIBLE",), (8, 0), "invisible indexes"),
    (("VISIBLE",), (8, 0), "visibility of indexes"),
    (("ENGINE_ATTRIBUTE",), (8, 0), "ENGINE_ATTRIBUTE"),
)
_ALTERATIONS: Final[tuple[NewClause, ...]] = (
    (("RENAME", "COLUMN"), (8, 0), "RENAME COLUMN"),
    (("RENAME", "INDEX"), (5, 7), "RENAME INDEX"),
    (("RENAME", "KEY"), (5, 7), "RENAME KEY"),
    (("DROP", "CHECK"), (8, 0), "DROP CHECK"),
    (("DROP", "CONSTRAINT"), (8, 0), "DROP CONSTRAINT"),
    (("ALTER", "CHECK"), (8, 0), "ALTER CHECK"),
    (("ALTER", "CONSTRAINT"), (8, 0), "ALTER CONSTRAINT"),
    (("ALTER", "INDEX"), (8, 0), "visibility of indexes"),
    (("SET", "INVISIBLE"), (8, 0), "invisible columns"),
    (("SET", "VISIBLE"), (8, 0), "visibility of columns"),
    (("SET", "DEFAULT", "("), (8, 0), "expressions as defaults"),
)
_OPTIONS: Final[tuple[NewClause, ...]] = (
    (("ENCRYPTION",), (5, 7), "encryption of tables"),
    (("COMPRESSION",), (5, 7), "COMPRESSION of pages"),
    (("AUTOEXTEND_SIZE",), (8, 0), "AUTOEXTEND_SIZE"),
    (("ENGINE_ATTRIBUTE",), (8, 0), "ENGINE_ATTRIBUTE"),
    (("SECONDARY_ENGINE",), (8, 0), "SECONDARY_ENGINE"),
    (("SECONDARY_ENGINE_ATTRIBUTE",), (8, 0), "SECONDARY_ENGINE_ATTRIBUTE"),
)


def alters(statement: SourceStatement) -> bool:
    """Return True for ALTER TABLE."""
    return isinstance(statement.definition, AlterTable)


def makes_index(statement: SourceStatement) -> bool:
    """Return True for CREATE INDEX."""
    return statement.word(0) == "CREATE" and "INDEX" in (statement.word(1), statement.word(2))


def check_clauses(statement: SourceStatement, text: bytes, source: int, target: Target) -> None:
    """Check for clauses that the target refuses or ignores. `source` is its version as 90704. Raises: Untranslatable.

    On 5.6.24 CHECK constraints, DESC in keys, and REFERENCES after a column are read and ignored, without a warning; MySQL 9.0 is the
    first to make foreign keys of the latter. All other clauses that are named here are syntax errors there.
    """
    if makes_index(statement):
        _check_key(statement, range(len(statement.words)), text, source, target)
    if statement.definition is None:
        return
    written = statement.definition.written
    for element in written.elements:
        stop = statement.index_at(element.stop)
        if element.type_at >= 0:
            _check_column(statement, range(statement.index_at(element.type_at), stop), text, source, target)
        else:
            _check_key(statement, range(statement.index_at(element.start), stop), text, source, target)
    if written.checks and target.version < (8, 0):
        effect = "so that rows which the source refuses or leaves out may come in"
        raise definition_stops.clause_ignored(target.title, text, "CHECK constraints", effect)
    if alters(statement):
        _check_words(statement, _ALTERATIONS, range(len(statement.words)), text, target)
    _check_options(statement, text, target)


def _check_column(statement: SourceStatement, places: range, text: bytes, source: int, target: Target) -> None:
    kind = statement.word(places.start)
    if kind in _TYPES and target.version < _TYPES[kind]:
        raise definition_stops.clause_unknown(target.title, text, f"the type {kind}")
    _check_words(statement, _COLUMN_CLAUSES, places, text, target)
    inline = any(statement.word(index) == "REFERENCES" for index in places)
    if inline and source >= _FIRST_WITH_INLINE_KEYS and target.version < (9, 0):
        effect = "where the source makes a foreign key, so that it neither checks nor deletes along"
        raise definition_stops.clause_ignored(target.title, text, "REFERENCES behind a column", effect)


def _check_key(statement: SourceStatement, places: range, text: bytes, source: int, target: Target) -> None:
    words = [statement.word(index) for index in places]
    if not _KEYS & set(words[:6]):
        return
    _check_words(statement, _KEY_CLAUSES, places, text, target)
    if "DESC" in words and source >= _FIRST_WITH_DESCENDING and target.version < (8, 0):
        raise definition_stops.clause_ignored(target.title, text, "DESC in keys", "so that the key ascends")


def _check_options(statement: SourceStatement, text: bytes, target: Target) -> None:
    depth = 0
    for index in range(len(statement.words)):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        if depth:
            continue
        for words, since, name in _OPTIONS:
            value = index + 1 + (statement.word(index + 1) == "=")
            if symbol != words[0] or target.version >= since or value >= len(statement.words):
                continue
            if statement.words[value].kind is not TokenKind.STRING and words[0] != "AUTOEXTEND_SIZE":
                continue
            if words[0] == "ENCRYPTION" and statement.text_at(value) == "n":
                _without_option(statement, index, value)
                continue
            raise definition_stops.clause_unknown(target.title, text, name)


def _without_option(statement: SourceStatement, index: int, value: int) -> None:
    first = index - (statement.word(index - 1) == "DEFAULT")
    statement.replace(statement.words[first].start, statement.words[value].stop, "")


def check_schema_options(statement: SourceStatement, text: bytes, target: Target) -> None:
    """Do the same check for CREATE DATABASE and ALTER DATABASE."""
    _check_options(statement, text, target)


def _check_words(
    statement: SourceStatement, clauses: tuple[NewClause, ...], places: range, text: bytes, target: Target
) -> None:
    for index in places:
        for words, since, name in clauses:
            if target.version < since and all(statement.word(index + k) == word for k, word in enumerate(words)):
                raise definition_stops.clause_unknown(target.title, text, name)
