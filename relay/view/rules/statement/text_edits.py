"""Edits of a logged statement's text."""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.sql.lexer import SqlToken, TokenKind
from relay.view.rules.statement.logged_query import LoggedQuery


class TextEdit(NamedTuple):
    """Bytes [start, stop) of a statement and what replaces them."""

    start: int
    stop: int
    made: bytes


def edited(raw: bytes, edits: list[TextEdit]) -> bytes:
    """The text with all edits made; they do not overlap."""
    for edit in sorted(edits, reverse=True):
        raw = raw[: edit.start] + edit.made + raw[edit.stop :]
    return raw


def removed_words(query: LoggedQuery, tokens: Sequence[SqlToken]) -> list[TextEdit]:
    """The edits that take out `tokens`, which are side by side; comments for servers that begin or end among them stay whole."""
    start, stop = tokens[0].start, tokens[-1].stop
    inside = query.raw[start:stop]
    if b"/*" in inside or b"*/" in inside:
        return [TextEdit(token.start, token.stop, b" " * (token.kind is not TokenKind.SYMBOL)) for token in tokens]
    return [TextEdit(start - query.raw[:start].endswith(b" "), stop, b"")]
