"""The pairs of brackets of a statement, which are matched once for all questions."""

from collections.abc import Sequence

from protocol.sql.lexer import SqlToken


class Brackets:
    """The pairs of brackets among tokens. Places are indexes of tokens."""

    def __init__(self, tokens: Sequence[SqlToken]) -> None:
        self._tokens = tokens
        last = len(tokens) - 1
        self._closings = [last] * len(tokens)
        self._openings = [-1] * len(tokens)
        self._containing: dict[str, frozenset[int]] = {}
        opened: list[int] = []
        for at, token in enumerate(tokens):
            self._openings[at] = opened[-1] if opened else -1
            if token.upper == "(":
                opened.append(at)
            elif token.upper == ")" and opened:
                self._closings[opened.pop()] = at

    def closing(self, index: int) -> int:
        """Return the place that closes the bracket opened at `index`; the last place if nothing does; `index` if none is opened."""
        return self._closings[index] if self._tokens[index].upper == "(" else index

    def opening(self, index: int) -> int:
        """Return the place of the innermost bracket that is open at `index`, before a `)` there closes it; -1: none."""
        return self._openings[index]

    def holds(self, opened: int, word: str) -> bool:
        """Return whether the bracket opened there contains the keyword or symbol, other than in a bracket inside it."""
        if word not in self._containing:
            places = (at for at, token in enumerate(self._tokens) if token.upper == word)
            self._containing[word] = frozenset(self._openings[at] for at in places)
        return opened in self._containing[word]
