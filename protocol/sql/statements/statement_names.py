"""The words of a statement that may be names of tables, without understanding it."""

from typing import Final

from protocol.sql.byte_text import SOMETIMES_BLANK
from protocol.sql.lexer import ReadAs, TokenKind, UnsupportedSyntax, sql_text

_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 200
# After RENAME come TO or AS, a schema, a point, a table; or, as a statement's first word, TABLE, both names, and more pairs.
_AFTER_RENAME: Final = 6
_WORDS: Final = (TokenKind.WORD, TokenKind.NAME)
_NAMES: Final = (*_WORDS, TokenKind.NUMBER)


def names_in(text: str, sql_mode: int) -> frozenset[str] | None:
    """Return the words and quoted names of a statement, in lower case; None: they are too many to be read."""
    read = sql_text(text, ReadAs(sql_mode=sql_mode, any_server=True, folds_rows=True, is_lenient=True))
    return frozenset(one.text.lower() for one in read.tokens if one.kind in _WORDS) if read.is_whole else None


def defined_names(text: bytes, sql_mode: int) -> frozenset[str] | None:
    """Return lower-case words of CREATE, ALTER, DROP and RENAME statements, among them every table whose columns they change.

    Words in parentheses are omitted: columns, and the tables that foreign keys name. None: it may concern any table (it is not UTF-8,
    not SQL, or too long to decide).
    """
    if len(text) > _MOST_BYTES:
        return None
    try:
        decoded = text.decode()
        texts = {decoded, decoded.replace(SOMETIMES_BLANK, " ")}
        found = [_names(one, sql_mode) for one in texts]
    except (UnicodeDecodeError, UnsupportedSyntax):
        return None
    known = [one for one in found if one is not None]
    return frozenset[str]().union(*known) if len(known) == len(found) else None


def _names(text: str, sql_mode: int) -> frozenset[str] | None:
    read = sql_text(text, ReadAs(sql_mode=sql_mode, any_server=True))
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
