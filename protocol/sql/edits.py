"""Changes of a statement's text, by its tokens."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from protocol.sql.lexer import SqlToken

_BLANKS: Final = b" \t\r\n"
_BEFORE_NO_BLANK: Final = b" \t\r\n,);"


class TextEdit(NamedTuple):
    """Bytes [start, stop) of a statement and the text that takes their place."""

    start: int
    stop: int
    made: bytes


def edited(raw: bytes, edits: Iterable[TextEdit]) -> bytes:
    """Return the text with all edits: at the same place insertions come first, in their order. An edit inside another one does not
    count.
    """
    made, at = bytearray(), 0
    for edit in sorted(edits, key=lambda one: (one.start, one.stop > one.start, -one.stop)):
        if edit.start < at:
            continue
        made += raw[at : edit.start] + edit.made
        at = edit.stop
    return bytes(made + raw[at:])


class TokenEdits:
    """Collects edits of a statement whose tokens have their places in bytes of `raw`. Places are indexes of tokens."""

    def __init__(self, raw: bytes, tokens: Sequence[SqlToken]) -> None:
        self.edits: list[TextEdit] = []
        self._raw = raw
        self._words = tokens

    @property
    def is_changed(self) -> bool:
        """True if there are edits."""
        return bool(self.edits)

    def cut(self, first: int, stop: int) -> None:
        """Remove the words [first, stop), with blanks before them that are not needed."""
        if first >= stop:
            return
        start, end = self._words[first].start, self._words[stop - 1].stop
        raw = self._raw
        while start and raw[start - 1] in _BLANKS and (end == len(raw) or raw[end] in _BEFORE_NO_BLANK):
            start -= 1
        glued = start > 0 and end < len(raw) and raw[start - 1 : start].isalnum() and raw[end : end + 1].isalnum()
        self.edits.append(TextEdit(start, end, b" " if glued else b""))

    def cut_before(self, index: int) -> None:
        """Remove everything before a word."""
        self.edits.append(TextEdit(0, self._words[index].start, b""))

    def put(self, index: int, made: str) -> None:
        """Replace a word."""
        self.replace(self._words[index].start, self._words[index].stop, made)

    def after(self, index: int, made: str) -> None:
        """Insert a text right after a word."""
        self.replace(self._words[index].stop, self._words[index].stop, made)

    def before(self, index: int, made: str) -> None:
        """Insert a text right before a word."""
        self.replace(self._words[index].start, self._words[index].start, made)

    def replace(self, start: int, stop: int, made: str) -> None:
        """Replace the bytes [start, stop)."""
        self.edits.append(TextEdit(start, stop, made.encode()))
