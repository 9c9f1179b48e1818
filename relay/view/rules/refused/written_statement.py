"""A statement of an older MySQL as a newer one takes it: words are quoted, removed or replaced where that changes nothing else."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.byte_text import is_wide
from protocol.sql.edits import edited
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_functions import MYSQL_KEYWORDS, REMOVED_FROM_MYSQL
from protocol.sql.server_version import version_numbers
from protocol.sql.server_words import NEW_IN_MYSQL, RESERVED_WORDS
from protocol.sql.statements.named_tables import perhaps_written_tables
from relay.source_tables.table_book import SourceTables
from relay.view.rules.refused.refused_definitions import rewrite_definition
from relay.view.rules.refused.replicas import Replicas
from relay.view.rules.refused.written_words import WrittenStatement
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import statement_stops
from relay.view.stops.refused_syntax import (
    flush_options,
    group_orders,
    is_program,
    is_removed_flush,
    names_among,
    null_escapes,
    object_at,
    removed_calls,
    removed_statement,
    removed_system_table,
)
from relay.view.stops.stop_reason import Untranslatable

_READ: Final = frozenset(("CREATE", "ALTER", "DROP", "RENAME", "FLUSH", "SET", "GRANT", "REVOKE", ""))
"""The first words of statements that are always read: they are few."""
_WORDS: Final = frozenset(
    word.encode()
    for word in (*NEW_IN_MYSQL, *REMOVED_FROM_MYSQL, "SQL_CACHE", "ANALYSE", "DESC", "ASC", "PROC", "EVENT", "HOST")
)
_OF_WORDS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"
_UPPER: Final = bytes(
    one if one in _OF_WORDS or one >= 0x80 else one - 32 if chr(one).islower() and one < 0x80 else 32
    for one in range(256)
)
_QUOTED_NAMES: Final = re.compile(rb"`[^`]*+`(?!\s*+\()")
"""Names in quotation marks, except those of functions that are called."""
_PIECE: Final = 256 << 10
_LONGEST_WORD: Final = 64
_MOST_SHAPES: Final = 4096
"""The shapes of statements of which it is remembered whether they have such words."""
_SELECT_ENDS: Final = (8, 0)
_AS_MARIADB: Final = (5, 5)
"""The MySQL whose old words and types MariaDB still has."""


def may_be_refused(query: LoggedQuery) -> bool:
    """Return whether a newer server may refuse the statement: most are known to be taken by their words alone."""
    if query.kind.verb in _READ or is_wide(query.charset):
        return True
    shape = query.shape
    if shape is not None:
        return _has_words_of(shape)
    return _has_words(query.raw)


@lru_cache(maxsize=_MOST_SHAPES)
def _has_words_of(shape: str) -> bool:
    return _has_words(shape.encode("utf-8", "backslashreplace"))


def _has_words(raw: bytes) -> bool:
    if b"\\N" in raw:
        return True
    if b"mysql" not in raw.lower():  # in the schema mysql, names of tables matter
        raw = _QUOTED_NAMES.sub(b"``", raw)
    return any(
        not _WORDS.isdisjoint(raw[max(0, at - _LONGEST_WORD) : at + _PIECE].translate(_UPPER).split())
        for at in range(0, len(raw), _PIECE)
    )


class ReplicaStatements:
    """Statements as the replicas of a view take them. Where they take one as it is, so they do with those of its shape."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._taken: set[tuple[object, ...]] = set()

    def may_change(self, query: LoggedQuery) -> bool:
        """Return whether replicas may need another text."""
        if not self._may_refuse(query):
            return False
        try:
            return _key(query) is None or self.text_of(query) != query.raw
        except Untranslatable:
            return True

    def text_of(self, query: LoggedQuery, engines: TableEngines | None = None) -> bytes:
        """Return the statement that replicas take in place of it; an empty one if nothing of it is left.

        `engines` know the tables after it. Raises: Untranslatable.
        """
        if not self._may_refuse(query):
            return query.raw
        try:
            words = WrittenStatement(query)
        except UnsupportedSyntax:
            return query.raw  # the source did not take it either, or the replica says what it is
        made = _Rewriting(words, self._replicas, version_numbers(query.server_version), engines).made()
        key = _key(query) if made == query.raw else None
        if key is not None:
            if len(self._taken) >= _MOST_SHAPES:
                self._taken.clear()
            self._taken.add(key)
        return made

    def _may_refuse(self, query: LoggedQuery) -> bool:
        is_older = (0, 0) < version_numbers(query.server_version)[:2] < self._replicas.version
        return is_older and may_be_refused(query) and _key(query) not in self._taken


def _key(query: LoggedQuery) -> tuple[object, ...] | None:
    """Return what decides about the statement; None: more than its shape does."""
    if query.kind.verb in _READ or query.shape is None:
        return None
    return query.shape, query.sql_mode, query.schema_bytes, query.charset, query.server_version


def written_for_mariadb(
    query: LoggedQuery, target: tuple[int, int], accept: Collection[str], book: SourceTables
) -> bytes:
    """Do the same with a statement of MariaDB that was translated for MySQL otherwise. `book` has the tables before it. Raises:
    Untranslatable."""
    if not may_be_refused(query):
        return query.raw
    try:
        words = WrittenStatement(query)
    except UnsupportedSyntax:
        return query.raw
    return _Rewriting(words, Replicas(target, frozenset(accept), is_of_mariadb=True), _AS_MARIADB, None, book).made()


@lru_cache(maxsize=64)
def _reserved(source: tuple[int, ...], target: tuple[int, ...]) -> frozenset[str]:
    """Return the names that need quotation marks at the target and none at the source. What is no longer reserved keeps a meaning of
    its own in some places."""
    rows = ((word, RESERVED_WORDS[word].mysql_since) for word in NEW_IN_MYSQL)
    return frozenset(word for word, since in rows if since is not None and source < since <= target)


class _Rewriting:
    def __init__(
        self,
        words: WrittenStatement,
        replicas: Replicas,
        source: tuple[int, ...],
        engines: TableEngines | None,
        book: SourceTables | None = None,
    ) -> None:
        self._words = words
        self._book = book
        self._replicas = replicas
        self._source = source
        self._target = replicas.version
        self._title = replicas.title
        self._engines = engines

    def made(self) -> bytes:
        """Return the statement. Raises: Untranslatable."""
        words, query = self._words, self._words.query
        if words.word(0) == "FLUSH":
            if not self._flush():
                return b""
        else:
            if not self._replicas.is_of_mariadb:
                self._quote()
                self._check_calls()
            self._select()
            self._check_statements()
            self._check_system_tables()
            rewrite_definition(words, self._replicas, self._source, self._engines, self._book)
        return edited(query.raw, words.edits) if words.is_changed else query.raw

    def _flush(self) -> bool:
        """Remove the options that the target does not have; return whether others are left."""
        words = self._words
        options = flush_options(words)
        kept = [one for one in options if not is_removed_flush(words, one, self._target)]
        if len(kept) < len(options) and kept:
            texts = [words.query.text[words.words[first].start : words.words[stop - 1].stop] for first, stop in kept]
            words.replace(words.words[options[0][0]].start, words.words[options[-1][1] - 1].stop, ", ".join(texts))
        return bool(kept)

    def _quote(self) -> None:
        """Quote the names that the target reserves and the source does not."""
        words = self._words
        for index in names_among(words, _reserved(self._source[:2], self._target)):
            words.put(index, f"`{words.words[index].text}`")

    def _check_calls(self) -> None:
        """Check for functions that the target does not have. A program may name them, unless they are words of the grammar; what
        runs it is checked then."""
        words = self._words
        in_program = is_program(words)
        for index in removed_calls(words, self._source, self._target):
            name = words.word(index)
            if name.lower() in self._replicas.accept or (in_program and name not in MYSQL_KEYWORDS):
                continue
            error = ErrorCode.ER_PARSE_ERROR if name in MYSQL_KEYWORDS else ErrorCode.ER_SP_DOES_NOT_EXIST
            raise statement_stops.function_removed(self._title, words.query, name, error)

    def _select(self) -> None:
        """Change the words of queries that the target does not know."""
        words = self._words
        if self._target < _SELECT_ENDS:
            return
        for index in words.places("SQL_CACHE"):
            if words.word(index - 1) != ".":
                words.cut(index, index + 1)
        for index in null_escapes(words):
            words.cut(index, index + 1)
            words.put(index + 1, "NULL")
        if words.has("PROCEDURE", "ANALYSE"):
            raise statement_stops.syntax_unknown(self._title, words.query, "PROCEDURE ANALYSE")
        if self._source[:2] < _SELECT_ENDS and next(group_orders(words), None) is not None:
            raise statement_stops.syntax_unknown(self._title, words.query, "GROUP BY with ASC or DESC")

    def _check_system_tables(self) -> None:
        """Check for changes of tables in the schema mysql that the target does not have."""
        query = self._words.query
        if self._target < _SELECT_ENDS or (query.schema.lower() != "mysql" and not self._words.has_name("mysql")):
            return
        try:
            found = removed_system_table(perhaps_written_tables(query))
        except UnsupportedSyntax:
            return
        if found:
            raise statement_stops.syntax_unknown(
                self._title, query, f"the table mysql.{found}", ErrorCode.ER_NO_SUCH_TABLE
            )

    def _check_statements(self) -> None:
        """Check for statements that the target does not have, which a program may contain."""
        words = self._words
        if not is_program(words) and words.word(0) not in ("RENAME", "SET", "ALTER"):
            return
        if words.word(0) == "ALTER" and words.word(object_at(words)) == "TABLE":
            return
        found = removed_statement(words, self._source, self._target)
        if found:
            raise statement_stops.syntax_unknown(self._title, words.query, found)
