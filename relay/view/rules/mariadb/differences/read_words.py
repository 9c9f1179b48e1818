"""The words of a statement, for who only looks at them."""

from collections.abc import Sequence
from typing import Protocol

from protocol.sql.brackets import Brackets
from protocol.sql.lexer import SqlToken


class ReadWords(Protocol):
    """Places are indexes of tokens."""

    @property
    def tokens(self) -> Sequence[SqlToken]:
        """All of them."""

    def at_word(self, index: int) -> str:
        """The keyword or symbol at a place, "" for anything else and outside."""

    @property
    def brackets(self) -> Brackets:
        """Which brackets belong together; what nothing closes, the last token closes."""
