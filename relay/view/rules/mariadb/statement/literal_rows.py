"""Rows of an INSERT that hold literals only: nothing in them needs a look, and a large statement has millions of words in them."""

import re
from typing import Final

from relay.schema_history.tables.ddl_tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, NotSure, sql_tokens
from relay.view.rules.mariadb.statement.statement_context import StatementContext

_VALUES: Final = re.compile(r"\bVALUES?\s*+(?=\()", re.IGNORECASE)
_LEAST: Final = 4096
_MOST_TRIED: Final = 8


def _row(backslash: bool, ansi_quotes: bool) -> re.Pattern[str]:
    texts = [r"'(?>(?:[^'\\]++|\\.|'')*)'" if backslash else r"'(?>(?:[^']++|'')*)'"]
    if not ansi_quotes:
        texts.append(r'"(?>(?:[^"\\]++|\\.|"")*)"' if backslash else r'"(?>(?:[^"]++|"")*)"')
    texts[0] = rf"(?:[xXbBnN]|_binary\s*+)?{texts[0]}"
    number = r"[-+]?+(?:0[xX][0-9A-Fa-f]++|\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?|\.\d++)(?![\w$\u0080-\U0010ffff])"
    literal = rf"\s*+(?:{'|'.join(texts)}|{number}|NULL|DEFAULT)\s*+"
    return re.compile(rf"\({literal}(?>(?:,{literal})*)\)\s*+(?:,\s*+(?=\())?", re.DOTALL | re.IGNORECASE)


_ROWS: Final = {(one, other): _row(one, other) for one in (False, True) for other in (False, True)}


def without_literal_rows(raw: bytes, context: StatementContext) -> bytes:
    """The text with a bracket and blanks in place of such rows, so that all else stands where it stood. Raises: NotSure."""
    if len(raw) < _LEAST:
        return raw
    text = context.query(raw).text
    row = _ROWS[not context.sql_mode & NO_BACKSLASH_ESCAPES, bool(context.sql_mode & ANSI_QUOTES)]
    for number, found in enumerate(_VALUES.finditer(text)):
        if number == _MOST_TRIED:
            break
        try:
            before = sql_tokens(text[: found.end()], context.sql_mode, context.server_version)
        except NotSure:
            continue  # it stands in a string
        if not before or before[0].upper not in ("INSERT", "REPLACE") or before[-2].upper not in ("VALUES", "VALUE"):
            continue
        stop = found.end()
        while one := row.match(text, stop):
            stop = one.end()
        if stop == found.end():
            return raw
        start, last = found.end(), raw.rindex(b")", 0, stop)
        return raw[: start + 1] + b" " * (last - start - 1) + raw[last:]
    return raw
