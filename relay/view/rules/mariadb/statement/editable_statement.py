"""A statement's words with the changes that MySQL needs."""

from functools import cached_property
from typing import Final

from protocol.sql.brackets import Brackets
from protocol.sql.edits import TokenEdits
from protocol.sql.lexer import TokenKind
from protocol.sql.server_words import ONLY_MYSQLS
from protocol.sql.statements.statement_words import StatementWords
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.statement.logged_query import LoggedQuery

_LEAST_FOLDED: Final = 4096
"""Bytes of a statement whose rows of literals are folded: nothing in them needs a look, and a large one has millions of words."""


class EditableStatement(StatementWords, TokenEdits):
    """A cursor that collects edits. A name that it takes and that MySQL has reserved is quoted. Places are indexes of tokens."""

    query: LoggedQuery

    def __init__(self, query: LoggedQuery, context: StatementContext) -> None:
        StatementWords.__init__(self, query, folds_rows=len(query.raw) >= _LEAST_FOLDED)
        TokenEdits.__init__(self, query.raw, self.tokens)
        self.context = context
        self.reports: list[str] = []
        self._quoted: set[int] = set()

    # ---- looking ----

    def at_word(self, index: int) -> str:
        """The keyword or symbol at a place, "" for anything else and outside."""
        return self.tokens[index].upper if 0 <= index < len(self.tokens) else ""

    @cached_property
    def brackets(self) -> Brackets:
        """Which brackets belong together; what nothing closes, the last token closes."""
        return Brackets(self.tokens)

    @property
    def end(self) -> int:
        """The place of the end, or of the semicolon there."""
        last = len(self.tokens) - 1
        return last - (last > 0 and self.tokens[last - 1].upper == ";")

    def source_text(self, first: int, stop: int) -> bytes:
        """The words [first, stop) as the source wrote them."""
        return self.query.raw[self.tokens[first].start : self.tokens[stop - 1].stop]

    # ---- changing ----

    def quote(self, index: int) -> None:
        """The word is a name: quoted where MySQL has reserved it."""
        token = self.tokens[index]
        if token.kind is not TokenKind.WORD or token.upper not in ONLY_MYSQLS or index in self._quoted:
            return
        if index and self.tokens[index - 1].upper in (".", "@"):
            return
        self._quoted.add(index)
        self.put(index, f"`{token.text}`")

    def name(self) -> str:
        """An identifier."""
        made = super().name()
        self.quote(self.at - 1)
        return made
