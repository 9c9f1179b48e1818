"""A statement's words with the changes that MySQL needs."""

from bisect import bisect_left
from functools import cached_property
from operator import attrgetter
from typing import Final, Protocol

from protocol.sql.brackets import Brackets
from protocol.sql.edits import TokenEdits
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.server_words import ONLY_MYSQLS
from protocol.sql.statements.statement_words import StatementWords
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.server_dialect import ServerDialect
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.statement.logged_query import LoggedQuery

_LEAST_FOLDED: Final = 4096
"""The least bytes of a statement whose rows of literals are folded: they need no check, and may be millions of words."""


class Part(Protocol):
    """A part of a definition's tree, with its place [start, stop) in the text."""

    @property
    def start(self) -> int:
        """The offset of its beginning."""

    @property
    def stop(self) -> int:
        """The offset of its end."""


class EditableStatement(StatementWords, DdlReader, TokenEdits):
    """A cursor that collects edits. It quotes each name that it takes and that MySQL has reserved. Places are indexes of tokens.

    It reads definitions of tables by their one grammar, whose parts have their places in the text.
    """

    query: LoggedQuery

    def __init__(self, query: LoggedQuery, context: StatementContext) -> None:
        self.query = query
        tokens = query.read_as(folds_rows=True).tokens if len(query.raw) >= _LEAST_FOLDED else query.tokens
        version = query.server_version if "mariadb" in query.server_version.lower() else "0.0.0-MariaDB"
        dialect = ServerDialect(version)
        DdlReader.__init__(self, tokens, query.text, query.schema, query.sql_mode, dialect)
        TokenEdits.__init__(self, query.raw, self.tokens)
        self.context = context
        self.reports: list[str] = []
        self._quoted: set[int] = set()

    # ---- looking ----

    def at_word(self, index: int) -> str:
        """Return the keyword or symbol at a place, "" for anything else and outside."""
        return self.tokens[index].upper if 0 <= index < len(self.tokens) else ""

    @cached_property
    def brackets(self) -> Brackets:
        """The pairs of brackets; an unclosed one is closed by the last token."""
        return Brackets(self.tokens)

    @property
    def end(self) -> int:
        """The place of the end, or of the semicolon there."""
        last = len(self.tokens) - 1
        return last - (last > 0 and self.tokens[last - 1].upper == ";")

    def source_text(self, first: int, stop: int) -> bytes:
        """Return the words [first, stop) as the source wrote them."""
        return self.query.raw[self.tokens[first].start : self.tokens[stop - 1].stop]

    def index_at(self, place: int) -> int:
        """Return the token that begins at a place of the text, or the first one after it."""
        return bisect_left(self.tokens, place, key=attrgetter("start"))

    def expect_known(self) -> None:
        """Check that all parts of the definition could be read. Raises: UnsupportedSyntax."""
        for one in self.written.unknown:
            if not one.is_read:
                raise UnsupportedSyntax(one.why)

    # ---- changing ----

    def cut_part(self, part: Part) -> None:
        """Remove a part of the definition."""
        self.cut(self.index_at(part.start), self.index_at(part.stop))

    def cut_waits(self) -> None:
        """Remove WAIT n and NOWAIT, if they come next."""
        while self.word() in ("WAIT", "NOWAIT"):
            at = self.at
            if self.take().upper == "WAIT":
                self.take()
            self.cut(at, self.at)

    def quote(self, index: int) -> None:
        """Quote the word, which is a name, if MySQL has reserved it."""
        token = self.tokens[index]
        if token.kind is not TokenKind.WORD or token.upper not in ONLY_MYSQLS or index in self._quoted:
            return
        if index and self.tokens[index - 1].upper in (".", "@"):
            return
        self._quoted.add(index)
        self.put(index, f"`{token.text}`")

    def name(self) -> str:
        """Take an identifier."""
        made = super().name()
        self.quote(self.at - 1)
        return made
