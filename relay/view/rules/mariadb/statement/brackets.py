"""Which brackets of a statement belong together: looked through once, however many ask."""

from collections.abc import Sequence

from protocol.sql.lexer import SqlToken


class Brackets:
    """Places are indexes of tokens."""

    def __init__(self, tokens: Sequence[SqlToken]) -> None:
        self._tokens = tokens
        last = len(tokens) - 1
        self._closings = [last] * len(tokens)
        self._openings = [-1] * len(tokens)
        self._holding: dict[str, frozenset[int]] = {}
        opened: list[int] = []
        for at, token in enumerate(tokens):
            self._openings[at] = opened[-1] if opened else -1
            if token.upper == "(":
                opened.append(at)
            elif token.upper == ")" and opened:
                self._closings[opened.pop()] = at

    def closing(self, index: int) -> int:
        """Where the bracket that is opened at `index` is closed, the last place where it is not; `index` where none is opened."""
        return self._closings[index] if self._tokens[index].upper == "(" else index

    def opening(self, index: int) -> int:
        """Where the bracket was opened that the word stands in; -1: in none."""
        return self._openings[index]

    def holds(self, opened: int, word: str) -> bool:
        """Whether the keyword or symbol stands in the bracket that is opened there, and in no other one inside of it."""
        if word not in self._holding:
            places = (at for at, token in enumerate(self._tokens) if token.upper == word)
            self._holding[word] = frozenset(self._openings[at] for at in places)
        return opened in self._holding[word]
