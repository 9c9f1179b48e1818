"""Rows of an INSERT that hold literals only: nothing in them needs a look, and a large statement has millions of words in them."""

import re
from typing import Final

from protocol.sql.lexer import LITERAL_ROWS, NotSure, sql_tokens
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from relay.view.rules.mariadb.statement.statement_context import StatementContext

_VALUES: Final = re.compile(r"\bVALUES?\s*+(?=\()", re.IGNORECASE)
_LEAST: Final = 4096
_MOST_TRIED: Final = 8
_SEARCHED: Final = 512 << 10
"""Characters in which VALUES is looked for: a list of 4,096 columns has half as many."""
_LONGEST_ROW: Final = 2 << 20
"""Characters. A row of more is read word by word: a pattern over all of it would hold the interpreter's lock."""


def without_literal_rows(raw: bytes, context: StatementContext) -> bytes:
    """The text with a bracket and blanks in place of such rows, so that all else stands where it stood. Raises: NotSure."""
    if len(raw) < _LEAST:
        return raw
    text = context.query(raw).text
    row = LITERAL_ROWS[bool(context.sql_mode & NO_BACKSLASH_ESCAPES), bool(context.sql_mode & ANSI_QUOTES)]
    for number, found in enumerate(_VALUES.finditer(text, 0, _SEARCHED)):
        if number == _MOST_TRIED:
            break
        try:
            before = sql_tokens(text[: found.end()], context.sql_mode, context.server_version)
        except NotSure:
            continue  # it stands in a string
        if not before or before[0].upper not in ("INSERT", "REPLACE") or before[-2].upper not in ("VALUES", "VALUE"):
            continue
        stop = found.end()
        while one := row.match(text, stop, stop + _LONGEST_ROW):
            stop = one.end()
        if stop == found.end():
            return raw
        start, last = found.end(), raw.rindex(b")", 0, stop)
        return raw[: start + 1] + b" " * (last - start - 1) + raw[last:]
    return raw
