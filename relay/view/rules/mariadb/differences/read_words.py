"""The words of a statement, for code that only reads them."""

from collections.abc import Sequence
from typing import Protocol

from protocol.sql.brackets import Brackets
from protocol.sql.lexer import SqlToken


class ReadWords(Protocol):
    """The words of a statement; places are indexes of tokens."""

    @property
    def tokens(self) -> Sequence[SqlToken]:
        """All of them."""

    def at_word(self, index: int) -> str:
        """Return the keyword or symbol at a place, "" for anything else and outside."""

    @property
    def brackets(self) -> Brackets:
        """The pairs of brackets; an unclosed one is closed by the last token."""
