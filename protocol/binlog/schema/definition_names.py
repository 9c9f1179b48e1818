"""Which tables a statement that defines something may be about, without understanding the statement."""

from typing import Final

from protocol.sql.lexer import ReadAs, TokenKind, UnsupportedSyntax, sql_text

_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 200
# After RENAME come TO or AS, a schema, a point, a table; or, as a statement's first word, TABLE, both names, and more pairs.
_AFTER_RENAME: Final = 6
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME, TokenKind.NUMBER)


def defined_names(text: bytes, sql_mode: int) -> frozenset[str] | None:
    """Lower-case words of CREATE, ALTER, DROP and RENAME statements, among them every table whose columns they change.

    Words in parentheses are left out: columns, and the tables that foreign keys name. None: it may be about any table
    (it is not UTF-8, not SQL, or too long to tell).
    """
    if len(text) > _MOST_BYTES:
        return None
    try:
        read = sql_text(text.decode(), ReadAs(sql_mode=sql_mode, any_server=True))
    except (UnicodeDecodeError, UnsupportedSyntax):
        return None
    names: set[str] = set()
    depth, left = 0, 0
    opened = False
    for token in read.tokens:
        if token.upper == "(":
            depth += 1
            opened = True
        elif token.upper == ")":
            depth = max(0, depth - 1)
        if token.kind not in _NAMES or depth:
            continue
        if not opened or left > 0:
            names.add(token.text.lower())
            left -= 1
        if token.upper == "RENAME":
            left = _AFTER_RENAME
        if len(names) > _MOST_NAMES:
            return None
    return frozenset(names)
