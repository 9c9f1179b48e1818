"""Definitions of tables that a newer MySQL refuses: what the source ignored is removed, and what it kept stops the view by name.

Each was tried on MySQL 5.6.24 and 9.7.4, whose InnoDB refuses options that it cannot use (innodb_strict_mode = ON): the source ignored
them with a warning.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import engine_of
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.altered_table import alter_table, table_of
from protocol.sql.tables.ddl_statement import (
    AddColumn,
    AlterTable,
    ChangeColumn,
    CreateTable,
    Element,
    TableDefinition,
    TableOption,
    WrittenKey,
)
from protocol.sql.tables.source_table import Column, Table
from relay.source_tables.table_book import SourceTables
from relay.view.rules.refused.long_keys import lengthened_key, shortened_parts
from relay.view.rules.refused.replicas import Replicas
from relay.view.rules.refused.row_size import is_row_too_large
from relay.view.rules.refused.spatial_columns import is_spatial, refused_spatial
from relay.view.rules.refused.written_words import WrittenStatement
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import definition_stops
from relay.view.stops.refused_syntax import is_program, may_lose_rows
from relay.view.stops.server_differences import TO_INNODB

_FLOATS: Final = frozenset(("FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "REAL"))
_BEFORE_NULL: Final = frozenset(("NOT", "SET", "IS"))
_BLOCKS: Final = frozenset(("0", "1", "2", "4", "8", "16"))
_WITHOUT_BLOCKS: Final = frozenset(("DYNAMIC", "COMPACT", "REDUNDANT", "FIXED", "PAGE"))
_NOT_OF_INNODB: Final = frozenset(("FIXED", "PAGE"))
_KEEPS_YEARS_UNTIL: Final = (5, 6, 6)
"""The version from which YEAR(2) makes a YEAR."""
_NO_NULL_IN_KEYS_SINCE: Final = (5, 7)
_NO_FLOAT_NUMBERS_SINCE: Final = (8, 4)
_DESCENDING_SINCE: Final = (8, 0)
_STRICT_SINCE: Final = (5, 7)
_TOO_LONG_KEY: Final = 1071
ROW_SIZE: Final = "row_size"
"""The name in a view's `accept`: its replicas have innodb_strict_mode = OFF."""


def rewrite_definition(
    words: WrittenStatement,
    replicas: Replicas,
    source: tuple[int, ...],
    engines: TableEngines | None,
    book: SourceTables | None,
) -> None:
    """Change the definition of a table, or of a program's variables, for the target. `book` has the tables of a MariaDB before it.
    Raises: Untranslatable."""
    try:
        made = words.query.definition
    except UnsupportedSyntax:
        made = None
    rewriting = _Definition(words, made, replicas, source, engines, book)
    if made is not None:
        rewriting.table(made)
    elif words.word(0) == "CREATE" and is_program(words):
        rewriting.years(range(len(words.words)))
        return
    elif "INDEX" not in (words.word(1), words.word(2), words.word(3)):
        return
    elif words.word(1) in ("ONLINE", "OFFLINE"):
        words.cut(1, 2)
    if made is None and words.word(0) == "CREATE":
        rewriting.orders(range(len(words.words)))


class _Definition:
    def __init__(
        self,
        words: WrittenStatement,
        made: TableDefinition | None,
        replicas: Replicas,
        source: tuple[int, ...],
        engines: TableEngines | None,
        book: SourceTables | None,
    ) -> None:
        self._words = words
        self._book = book
        self._replicas = replicas
        self._source = source
        self._target = replicas.version
        self._title = replicas.title
        self._engine = _engine_of(words, made, replicas, engines) if made is not None else ""
        if not self._engine and made is not None and book is not None and (known := book.get(made.name)) is not None:
            self._engine = known.engine

    def table(self, made: TableDefinition) -> None:
        """Change a CREATE TABLE or an ALTER TABLE."""
        if isinstance(made, AlterTable):
            self._without_ignore(made)
        for element in made.written.elements:
            if element.type_at < 0:
                continue
            places = range(self._words.index_at(element.type_at), self._words.index_at(element.stop))
            self.years(places)
            self._floats(places)
            if is_spatial(self._words, element):
                self._spatial(places)
        refused = refused_spatial(self._words, made) if self._target >= (8, 0) else None
        if refused is not None:
            raise self._unknown(*refused)
        self._nulls(made)
        self._keys(made)
        self._long_keys(made)
        self._options(made)
        self._partitions(made)
        self._row_size(made)

    # ---- columns ----

    def years(self, places: range) -> None:
        """Remove the width of YEAR: the target has none but 4, and the source made 4 of any. Raises: Untranslatable."""
        words = self._words
        if self._target < (5, 7):
            return
        for index in places:
            is_width = words.word(index) == "YEAR" and words.word(index + 1) == "(" and words.word(index + 3) == ")"
            if (
                not is_width
                or words.words[index + 2].kind is not TokenKind.NUMBER
                or words.words[index + 2].text == "4"
            ):
                continue
            if self._source < _KEEPS_YEARS_UNTIL:
                raise self._unknown("YEAR(2)", 1818)
            words.cut(index + 1, index + 4)

    def _floats(self, places: range) -> None:
        words = self._words
        if self._target < _NO_FLOAT_NUMBERS_SINCE or words.word(places.start) not in _FLOATS:
            return
        found = {words.word(index) for index in places}
        if "AUTO_INCREMENT" in found or "SERIAL" in found:
            raise self._unknown("AUTO_INCREMENT of FLOAT and DOUBLE", 1063)

    def _spatial(self, places: range) -> None:
        """Remove the default of a spatial column, which the source ignored."""
        words = self._words
        if self._target < (8, 0):
            return
        for index in places:
            if words.word(index) == "DEFAULT" and words.word(index + 1) != "NULL":
                words.cut(index, index + 2)

    def _nulls(self, made: TableDefinition) -> None:
        """Remove NULL of columns that may be in the primary key: the source ignored it there, and it says nothing elsewhere."""
        if self._target < _NO_NULL_IN_KEYS_SINCE:
            return
        words = self._words
        primary = _primary_key(made)
        for element in made.written.elements:
            if element.type_at < 0:
                continue
            at = words.index_at(element.type_at)
            if isinstance(made, CreateTable) and words.name(at - 1) not in primary:
                continue
            for first, stop in self._own_nulls(element):
                if words.word(at) != "TIMESTAMP":
                    words.cut(first, stop)
                elif isinstance(made, CreateTable):
                    raise self._unknown("TIMESTAMP NULL in a primary key", 1171)

    def _own_nulls(self, element: Element) -> Iterator[tuple[int, int]]:
        """Yield where the definition of a column says NULL or DEFAULT NULL."""
        words = self._words
        depth = 0
        for index in range(words.index_at(element.type_at), words.index_at(element.stop)):
            word = words.word(index)
            depth += (word == "(") - (word == ")")
            if depth or word != "NULL":
                continue
            if words.word(index - 1) == "DEFAULT":
                yield index - 1, index + 1
            elif words.word(index - 1) not in _BEFORE_NULL:
                yield index, index + 1

    # ---- keys ----

    def orders(self, places: range) -> None:
        """Remove DESC of a key's columns, which the source ignored: not every engine of the target has such keys."""
        words = self._words
        if self._target < _DESCENDING_SINCE or self._source[:2] >= _DESCENDING_SINCE or self._replicas.is_of_mariadb:
            return
        for index in places:
            if words.word(index) == "DESC" and (words.word(index + 1) in (",", ")")):
                words.cut(index, index + 1)

    def _keys(self, made: TableDefinition) -> None:
        for element in made.written.elements:
            if element.type_at < 0:
                self.orders(range(self._words.index_at(element.start), self._words.index_at(element.stop)))

    def _long_keys(self, made: TableDefinition) -> None:
        """Write the prefixes of keys that a MariaDB shortened."""
        if not self._replicas.is_of_mariadb:
            return
        if isinstance(made, AlterTable) and self._book is not None:
            known = self._book.table(made.name)
            if known is not None:
                self._check_lengthened(made, known)
        columns = self._columns(made) if made.written.keys else {}
        if not columns:
            return
        option = made.written.option("ROW_FORMAT")
        row_format = option.text.upper() if option is not None else ""
        for key in made.written.keys:
            self._shorten(key, columns, row_format)

    def _shorten(self, key: WrittenKey, columns: Mapping[str, Column], row_format: str) -> None:
        for part, length in shortened_parts(key, columns, self._engine or "InnoDB", row_format):
            if part.prefix is None:
                self._words.replace(part.stop, part.stop, f"({length})")
            else:
                self._words.put(self._words.index_at(part.stop) + 1, str(length))

    def _check_lengthened(self, made: AlterTable, known: Table) -> None:
        """Check for a key that a change of its columns makes longer than the target takes. Raises: Untranslatable."""
        with contextlib.suppress(UnsupportedSyntax):
            altered = alter_table(known, made.clauses, ("", ""))
            name = lengthened_key(known, altered, self._engine or "InnoDB")
            if name:
                raise self._unknown(f"the key {name}, whose columns become longer than it may be", _TOO_LONG_KEY)

    def _columns(self, made: TableDefinition) -> dict[str, Column]:
        """Return the columns of the table after the definition, by names in lower case, as far as they are known."""
        default = self._book.charset_of(made.name[0]) if self._book is not None else ("", "")
        columns: Iterable[Column] = ()
        with contextlib.suppress(UnsupportedSyntax):
            if isinstance(made, CreateTable):
                columns = table_of(made, *made.charset.resolved(default, default)).columns
            else:
                known = self._book.table(made.name) if self._book is not None else None
                if known is not None:
                    columns = alter_table(known, made.clauses, default).columns
                else:
                    added = (one for one in made.clauses if isinstance(one, AddColumn | ChangeColumn))
                    columns = [one.definition.column for one in added]
        return {column.name.lower(): column for column in columns}

    # ---- options ----

    def _without_ignore(self, made: AlterTable) -> None:
        words = self._words
        if self._target < (5, 7):
            return
        for index in range(1, 4):
            word = words.word(index)
            if word == "TABLE":
                return
            if word in ("ONLINE", "OFFLINE"):
                words.cut(index, index + 1)
            elif word == "IGNORE":
                if may_lose_rows(words, made):
                    raise self._unknown("ALTER IGNORE TABLE, by which rows may be left out or values changed")
                words.cut(index, index + 1)

    def _options(self, made: TableDefinition) -> None:
        """Change the options that InnoDB of the target refuses and that of the source ignored."""
        if self._target < _STRICT_SINCE or not _may_be_innodb(self._engine):
            return
        written = made.written
        row_format, block = written.option("ROW_FORMAT"), written.option("KEY_BLOCK_SIZE")
        named = row_format.text.upper() if row_format is not None else ""
        if row_format is not None and (named in _NOT_OF_INNODB or (named == "COMPRESSED" and made.is_temporary)):
            self._put(row_format, "DEFAULT")
        if (
            block is not None
            and block.text != "0"
            and (block.text not in _BLOCKS or named in _WITHOUT_BLOCKS or made.is_temporary)
        ):
            self._put(block, "0")
        elif block is None and isinstance(made, AlterTable) and row_format is not None and named in _WITHOUT_BLOCKS:
            self._words.replace(row_format.stop, row_format.stop, " KEY_BLOCK_SIZE=0")
        for option in written.options:
            is_place = option.name in ("DATA DIRECTORY", "INDEX DIRECTORY") and self._engine
            if is_place or (option.name == "TABLESPACE" and self._source < (5, 7)):
                self._words.replace(option.start, option.stop, "")

    def _put(self, option: TableOption, text: str) -> None:
        self._words.replace(option.value, option.stop, text)

    def _partitions(self, made: TableDefinition) -> None:
        """Check for partitions of a table whose engine has none on the target."""
        known = engine_of(self._engine)
        if self._target < (8, 0) or not made.written.partitioned or known is None or made.is_temporary:
            return
        if not known.partitions and not self._replicas.becomes_innodb:
            raise definition_stops.partitions(self._words.query, self._engine)

    def _row_size(self, made: TableDefinition) -> None:
        is_new = isinstance(made, CreateTable) and made.like is None and not made.is_temporary
        if self._target < _STRICT_SINCE or not is_new or ROW_SIZE in self._replicas.accept:
            return
        assert isinstance(made, CreateTable)
        if _may_be_innodb(self._engine) and is_row_too_large(made):
            raise definition_stops.row_too_large(self._title, self._words.query)

    def _unknown(self, clause: str, error: int = ErrorCode.ER_PARSE_ERROR) -> Exception:
        return definition_stops.clause_unknown(self._title, self._words.query, clause, error)


def _engine_of(words: WrittenStatement, made: TableDefinition, replicas: Replicas, engines: TableEngines | None) -> str:
    """Return the engine that the replica's table has; "": it is not known."""
    query = words.query
    found = made.engine
    if not found and isinstance(made, CreateTable):
        found = "InnoDB"
    if not found and engines is not None:
        facts = engines.facts(
            made.rename if isinstance(made, AlterTable) and made.rename else made.name, query.thread_id
        )
        if facts is not None:
            found = facts.engine or facts.default_engine
    if replicas.becomes_innodb and found.lower() in TO_INNODB:
        return "InnoDB"
    return "" if found == "?" else found


def _may_be_innodb(engine: str) -> bool:
    known = engine_of(engine) if engine else None
    return not engine or known is None or known.name == "innodb"


def _primary_key(made: TableDefinition) -> set[str]:
    names = {part.name.lower() for key in made.written.keys if key.kind == "PRIMARY" for part in key.parts}
    if isinstance(made, CreateTable):
        names |= {one.column.name.lower() for one in made.columns if one.primary}
    return names
