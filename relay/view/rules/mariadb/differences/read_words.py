"""The words of a statement, for who only looks at them."""

from collections.abc import Sequence
from typing import Protocol

from protocol.sql.lexer import SqlToken


class ReadWords(Protocol):
    """Places are indexes of tokens."""

    @property
    def tokens(self) -> Sequence[SqlToken]:
        """All of them."""

    def at_word(self, index: int) -> str:
        """The keyword or symbol at a place, "" for anything else and outside."""

    def closing(self, index: int) -> int:
        """Where the bracket that is opened at `index` is closed; behind the last word: nowhere."""
        ...

    def opening(self, index: int) -> int:
        """Where the bracket was opened that the word stands in; -1: in none."""
        ...

    def holds(self, opened: int, word: str) -> bool:
        """Whether the keyword or symbol stands right inside the bracket that is opened there."""
