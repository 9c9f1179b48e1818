"""Clauses of table definitions that came after a target's version: what it refuses, and what it reads and ignores."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.sql.lexer import TokenKind
from relay.view.rules.targets.known.target import NewClause, Target
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops import definition_stops

_NO_COLUMN: Final = frozenset(
    ("PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "LIKE", "PARTITION")
)
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


class Definition(NamedTuple):
    """A column, key or constraint: words [start, stop). type_at: where a column's type begins; 0: it is none."""

    start: int
    stop: int
    type_at: int


def defines_table(statement: SourceStatement) -> bool:
    """Whether it is CREATE TABLE or ALTER TABLE."""
    return statement.starts("CREATE", "TABLE") or statement.starts("CREATE", "TEMPORARY", "TABLE") or alters(statement)


def alters(statement: SourceStatement) -> bool:
    """Whether it is ALTER TABLE."""
    return statement.starts("ALTER", "TABLE")


def makes_index(statement: SourceStatement) -> bool:
    """Whether it is CREATE INDEX."""
    return statement.word(0) == "CREATE" and "INDEX" in (statement.word(1), statement.word(2))


def definitions(statement: SourceStatement) -> list[Definition]:
    """What a CREATE TABLE or ALTER TABLE defines."""
    if alters(statement):
        return [found for start, stop in _alterations(statement) for found in _altered(statement, start, stop)]
    opened = next(iter(statement.places("(")), None)
    if opened is None or statement.word(opened + 1) in ("LIKE", "SELECT"):
        return []
    return [_defined(statement, start, stop) for start, stop in _list(statement, opened)]


def _name_end(statement: SourceStatement, index: int) -> int:
    """Behind the table's name that begins at `index`."""
    while statement.word(index + 1) == ".":
        index += 2
    return index + 1


def _alterations(statement: SourceStatement) -> Iterator[tuple[int, int]]:
    yield from _separated(statement, _name_end(statement, 2), len(statement.words))


def _list(statement: SourceStatement, opened: int) -> Iterator[tuple[int, int]]:
    """The members of the list whose ( is at `opened`."""
    yield from _separated(statement, opened + 1, statement.brackets.closing(opened))


def _separated(statement: SourceStatement, start: int, stop: int) -> Iterator[tuple[int, int]]:
    depth = 0
    for index in range(start, stop):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        if symbol == "," and not depth:
            yield start, index
            start = index + 1
    if start < stop:
        yield start, stop


def _defined(statement: SourceStatement, start: int, stop: int) -> Definition:
    is_column = statement.word(start) not in _NO_COLUMN
    return Definition(start, stop, start + 1 if is_column else 0)


def _altered(statement: SourceStatement, start: int, stop: int) -> Iterator[Definition]:
    verb = statement.word(start)
    if verb not in ("ADD", "MODIFY", "CHANGE"):
        return
    named = start + 1 + (statement.word(start + 1) == "COLUMN")
    if verb == "ADD" and statement.word(named) == "(":
        yield from (_defined(statement, *range_) for range_ in _list(statement, named))
    elif verb == "CHANGE":
        yield Definition(named + 1, stop, named + 2)
    elif verb == "MODIFY":
        yield Definition(named, stop, named + 1)
    else:
        yield _defined(statement, named, stop)


def check_clauses(statement: SourceStatement, text: bytes, source: int, target: Target) -> None:
    """Raises: CannotBeKept for what the target refuses or ignores. `source`: its version as 90704.

    On 5.6.24 CHECK constraints, DESC in keys, and REFERENCES behind a column are read and ignored, without a warning; MySQL 9.0
    is the first to make foreign keys of the latter. All else that is named here is a syntax error there.
    """
    if makes_index(statement):
        _check_key(statement, Definition(0, len(statement.words), 0), text, source, target)
    if not defines_table(statement):
        return
    for definition in definitions(statement):
        if definition.type_at:
            _check_column(statement, definition, text, source, target)
        else:
            _check_key(statement, definition, text, source, target)
    if target.version < (8, 0) and statement.has("CHECK", "("):
        effect = "so that rows which the source refuses or leaves out may come in"
        raise definition_stops.clause_ignored(target.title, text, "CHECK constraints", effect)
    if alters(statement):
        _check_words(statement, _ALTERATIONS, 0, len(statement.words), text, target)
    _check_options(statement, text, target)


def _check_column(statement: SourceStatement, definition: Definition, text: bytes, source: int, target: Target) -> None:
    kind = statement.word(definition.type_at)
    if kind in _TYPES and target.version < _TYPES[kind]:
        raise definition_stops.clause_unknown(target.title, text, f"the type {kind}")
    _check_words(statement, _COLUMN_CLAUSES, definition.type_at, definition.stop, text, target)
    inline = any(statement.word(index) == "REFERENCES" for index in range(definition.type_at, definition.stop))
    if inline and source >= _FIRST_WITH_INLINE_KEYS and target.version < (9, 0):
        effect = "where the source makes a foreign key, so that it neither checks nor deletes along"
        raise definition_stops.clause_ignored(target.title, text, "REFERENCES behind a column", effect)


def _check_key(statement: SourceStatement, definition: Definition, text: bytes, source: int, target: Target) -> None:
    words = [statement.word(index) for index in range(definition.start, definition.stop)]
    if not _KEYS & set(words[:6]):
        return
    _check_words(statement, _KEY_CLAUSES, definition.start, definition.stop, text, target)
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
    """The same of CREATE DATABASE and ALTER DATABASE."""
    _check_options(statement, text, target)


def _check_words(
    statement: SourceStatement,
    clauses: tuple[NewClause, ...],
    start: int,
    stop: int,
    text: bytes,
    target: Target,
) -> None:
    for index in range(start, stop):
        for words, since, name in clauses:
            if target.version < since and all(statement.word(index + k) == word for k, word in enumerate(words)):
                raise definition_stops.clause_unknown(target.title, text, name)
