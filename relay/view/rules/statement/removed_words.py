"""Words of a logged statement are removed from its text."""

from collections.abc import Sequence

from protocol.sql.edits import TextEdit
from protocol.sql.lexer import SqlToken, TokenKind
from relay.view.rules.statement.logged_query import LoggedQuery


def removed_words(query: LoggedQuery, tokens: Sequence[SqlToken]) -> list[TextEdit]:
    """Return the edits that remove the adjacent words `tokens`; comments for servers that begin or end among them stay whole."""
    start, stop = tokens[0].start, tokens[-1].stop
    inside = query.raw[start:stop]
    if b"/*" in inside or b"*/" in inside:
        return [TextEdit(token.start, token.stop, b" " * (token.kind is not TokenKind.SYMBOL)) for token in tokens]
    return [TextEdit(start - query.raw[:start].endswith(b" "), stop, b"")]
