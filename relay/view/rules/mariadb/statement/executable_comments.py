"""Comments that only one of the two servers reads.

MariaDB runs what stands in `/*M! … */` and in `/*!100300 … */`, MySQL does not; optimizer hints it is the other way round. A table
made with such a comment left as it is has fewer columns at the replica, in silence, and rows go by position.
"""

import re
from typing import Final, NamedTuple

from protocol.sql.lexer import LINE_COMMENT, NotSure
from protocol.sql.server_version import is_only_mysqls, version_id
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.statement.logged_query import LoggedQuery

_LAST_OF_MYSQL: Final = 99_999
_HINTED: Final = re.compile(r"(?:SELECT|INSERT|REPLACE|UPDATE|DELETE)\s*+\Z", re.IGNORECASE)
_LONGEST_HINTED: Final = 64


class OpenedText(NamedTuple):
    """`raw`: as long as the source's text, with blanks for the marks of comments that MariaDB reads, and no comment in it that only
    MySQL reads. differs: whether MySQL would have read the source's text otherwise."""

    raw: bytes
    differs: bool


def _pieces(backslash: bool) -> re.Pattern[str]:
    single = r"'(?>(?:[^'\\]++|\\.|'')*)'" if backslash else r"'(?>(?:[^']++|'')*)'"
    double = r'"(?>(?:[^"\\]++|\\.|"")*)"' if backslash else r'"(?>(?:[^"]++|"")*)"'
    return re.compile(
        rf"""
          [^'"`/*\#-]{{1,65536}}+ | {single} | {double} | `(?>(?:[^`]++|``)*)` | {LINE_COMMENT}
        | (?P<mark> /\*(?P<m>M?)!(?P<digits>\d*+) ) | (?P<hint> /\*\+ ) | (?P<open> /\* ) | (?P<end> \*/ ) | .
        """,
        re.VERBOSE | re.DOTALL,
    )


_PIECES: Final = {backslash: _pieces(backslash) for backslash in (False, True)}


def opened_text(query: LoggedQuery, context: StatementContext) -> OpenedText:
    """The text with comments opened. Raises: NotSure."""
    if b"/*" not in query.raw:
        return OpenedText(query.raw, False)
    text = query.text
    made = bytearray(query.raw)
    pieces = _PIECES[not context.sql_mode & NO_BACKSLASH_ESCAPES]
    at, depth, differs = 0, 0, False
    while at < len(text):
        found = pieces.match(text, at)
        assert found is not None  # the last alternative takes any character
        start, at = at, found.end()
        if found["mark"] is not None:
            number = _number(found["digits"])
            if _is_read(number, context.server_version):
                depth += 1
                made[start:at] = b" " * (at - start)
                differs = differs or bool(found["m"]) or number > _LAST_OF_MYSQL
                continue
            at = _end_of_comment(text, at)
            if not found["m"]:
                made[start + 2] = ord(" ")
                differs = differs or number <= _LAST_OF_MYSQL
        elif found["hint"] is not None:
            at = _end_of_comment(text, at)
            if _HINTED.search(text, max(start - _LONGEST_HINTED, 0), start):
                made[start + 2] = ord(" ")
                differs = True
        elif found["open"] is not None:
            at = _end_of_comment(text, at)
        elif found["end"] is not None and depth:
            depth -= 1
            made[start:at] = b"  "
        elif found[0] in "'\"`":
            raise NotSure("a quotation in it does not end")
    if depth:
        raise NotSure("a comment for servers in it does not end")
    return OpenedText(bytes(made), differs)


def _end_of_comment(text: str, at: int) -> int:
    end = text.find("*/", at)
    if end < 0:
        raise NotSure("a comment in it does not end")
    if "/*" in text[at:end]:
        raise NotSure("a comment in it has another one in it")
    return end + 2


def _number(digits: str) -> int:
    if len(digits) not in (0, 5, 6):
        raise NotSure("a comment for servers in it has a version of another length")
    return int(digits or 0)


def _is_read(number: int, server_version: str) -> bool:
    return number <= version_id(server_version) and not is_only_mysqls(number)
