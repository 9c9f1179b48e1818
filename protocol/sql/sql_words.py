"""The search for words in a statement, by their places among its tokens."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from protocol.sql.brackets import Brackets
from protocol.sql.lexer import SqlToken, TokenKind

_NAMES = (TokenKind.WORD, TokenKind.NAME)
_TEXTS = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)


class SqlWords:
    """The words of a statement. `words` are its tokens without the last one, of kind END. Places are indexes of words."""

    def __init__(self, tokens: list[SqlToken]) -> None:
        self._tokens = tokens
        self.words = tokens[:-1]

    @cached_property
    def brackets(self) -> Brackets:
        """The pairs of brackets; an unclosed one is closed by the number of words."""
        return Brackets(self._tokens)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, token in enumerate(self.words):
            if token.upper:
                places.setdefault(token.upper, []).append(index)
        return places

    def index_at(self, place: int) -> int:
        """Return the index of the word that begins at or first after a place in the text."""
        return bisect_left(self.words, place, key=lambda word: word.start)

    def word(self, index: int) -> str:
        """Return the keyword, unquoted name or symbol at `index`, in upper case; "" for anything else, and outside."""
        return self.words[index].upper if 0 <= index < len(self.words) else ""

    def name(self, index: int) -> str:
        """Return the name at `index`, quoted or not, in lower case; "" if there is none."""
        return self._text_of(index, _NAMES)

    def text_at(self, index: int) -> str:
        """Return the name or the string at `index`, in lower case; "" if there is none."""
        return self._text_of(index, _TEXTS)

    def _text_of(self, index: int, kinds: tuple[TokenKind, ...]) -> str:
        return (
            self.words[index].text.lower() if 0 <= index < len(self.words) and self.words[index].kind in kinds else ""
        )

    def starts(self, *words: str) -> bool:
        """Return whether the statement begins with these keywords."""
        return all(self.word(index) == word for index, word in enumerate(words))

    def places(self, *words: str) -> Iterator[int]:
        """Yield where these keywords or symbols are side by side: the place of the first."""
        for index in self._places.get(words[0], ()):
            if all(self.word(index + k) == word for k, word in enumerate(words)):
                yield index

    def has(self, *words: str) -> bool:
        """Return whether these keywords or symbols are side by side anywhere."""
        return next(self.places(*words), None) is not None
