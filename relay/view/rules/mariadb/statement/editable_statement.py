"""A statement's words with the changes that MySQL needs."""

from functools import cached_property
from typing import Final

from protocol.sql.lexer import SqlToken, TokenKind
from relay.view.rules.mariadb.statement.brackets import Brackets
from relay.view.rules.mariadb.statement.mysql_words import RESERVED_WORDS
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.statement_words import StatementWords
from relay.view.rules.statement.text_edits import TextEdit

_BLANKS: Final = b" \t\r\n"


class EditableStatement(StatementWords):
    """A cursor that collects edits. A name that it takes and that MySQL has reserved is quoted. Places are indexes of tokens."""

    def __init__(self, query: LoggedQuery, context: StatementContext) -> None:
        super().__init__(query)
        self.context = context
        self.reports: list[str] = []
        self._edits: list[TextEdit] = []
        self._quoted: set[int] = set()

    # ---- looking ----

    def at_word(self, index: int) -> str:
        """The keyword or symbol at a place, "" for anything else and outside."""
        return self.tokens[index].upper if 0 <= index < len(self.tokens) else ""

    def closing(self, index: int) -> int:
        """Where the bracket that is opened at `index` is closed; behind the last word: nowhere."""
        return self.brackets.closing(index)

    @cached_property
    def brackets(self) -> Brackets:
        """Of all its words."""
        return Brackets(self.tokens)

    def opening(self, index: int) -> int:
        """Where the bracket was opened that the word stands in; -1: in none."""
        return self.brackets.opening(index)

    def holds(self, opened: int, word: str) -> bool:
        """Whether the keyword or symbol stands right inside the bracket that is opened there."""
        return self.brackets.holds(opened, word)

    @property
    def end(self) -> int:
        """The place of the end, or of the semicolon there."""
        last = len(self.tokens) - 1
        return last - (last > 0 and self.tokens[last - 1].upper == ";")

    # ---- changing ----

    def cut(self, first: int, stop: int) -> None:
        """The words [first, stop) go."""
        if first >= stop:
            return
        start, end = self.tokens[first].start, self.tokens[stop - 1].stop
        raw = self.query.raw
        while start and raw[start - 1] in _BLANKS and (end == len(raw) or raw[end] in b" \t\r\n,);"):
            start -= 1
        glued = start > 0 and end < len(raw) and raw[start - 1 : start].isalnum() and raw[end : end + 1].isalnum()
        self._edits.append(TextEdit(start, end, b" " if glued else b""))

    def put(self, index: int, made: str) -> None:
        """Another text in place of a word."""
        self._edits.append(TextEdit(self.tokens[index].start, self.tokens[index].stop, made.encode()))

    def behind(self, index: int, made: str) -> None:
        """A text right behind a word."""
        self._edits.append(TextEdit(self.tokens[index].stop, self.tokens[index].stop, made.encode()))

    def before(self, index: int, made: str) -> None:
        """A text right before a word."""
        self._edits.append(TextEdit(self.tokens[index].start, self.tokens[index].start, made.encode()))

    def quote(self, index: int) -> None:
        """The word is a name: quoted where MySQL has reserved it."""
        token = self.tokens[index]
        if token.kind is not TokenKind.WORD or token.upper not in RESERVED_WORDS or index in self._quoted:
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

    def source_text(self, first: int, stop: int) -> bytes:
        """The words [first, stop) as the source wrote them."""
        return self.query.raw[self.tokens[first].start : self.tokens[stop - 1].stop]

    @property
    def is_changed(self) -> bool:
        """Whether there are edits."""
        return bool(self._edits)

    def cut_before(self, index: int) -> None:
        """All in front of a word goes."""
        self._edits.append(TextEdit(0, self.tokens[index].start, b""))

    def result_of(self, raw: bytes) -> bytes:
        """The text with all edits; those inside of what is cut do not count. `raw`: whose words stand where this one's do."""
        made, at = bytearray(), 0
        for edit in sorted(self._edits, key=lambda one: (one.start, one.stop > one.start, -one.stop)):
            if edit.start < at:
                continue
            made += raw[at : edit.start] + edit.made
            at = edit.stop
        return bytes(made + raw[at:])


def is_name(token: SqlToken) -> bool:
    """Whether it may be an identifier."""
    return token.kind in (TokenKind.WORD, TokenKind.NAME)
