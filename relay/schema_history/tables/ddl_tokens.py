"""The words of a statement that defines something, as the server that logged it read them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.binlog.format_description import version_numbers

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20
_MOST_TOKENS: Final = 200_000
_SPACE: Final = re.compile(r"(?:[ \t\r\n\f\v]++|--(?=[\s\x00-\x1f]|\Z)[^\n]*+|#[^\n]*+)+")
_WORD: Final = re.compile(r"[0-9]*+[A-Za-z_$\u0080-\uffff][0-9A-Za-z_$\u0080-\uffff]*")
_NUMBER: Final = re.compile(
    r"0x[0-9A-Fa-f]++(?![\w$])|0b[01]++(?![\w$])|(?:\d++\.?+\d*+|\.\d++)[eE][+-]?+\d++|\d++\.\d*+|\.\d++|\d++(?![\w$])"
)
_CONDITIONAL: Final = re.compile(r"/\*(M?)!(\d*)")
_STOPS: Final = {
    (mark, plain): re.compile(mark if plain else rf"{mark}|\\") for mark in "'\"`" for plain in (True, False)
}
"""Where a quotation may end, or something else than itself may stand; by its mark, and whether a backslash is only that."""
_BACKSLASHED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class NotSure(Exception):
    """A statement of which it cannot be told for certain what it does."""


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class SqlToken:
    """`text`: of names and strings without quotation marks and escapes. `upper`: of a word, else the symbol, else empty.

    [start, stop): where it stands in the statement.
    """

    kind: TokenKind
    text: str
    upper: str
    start: int
    stop: int


def sql_tokens(text: str, sql_mode: int, server_version: str) -> list[SqlToken]:
    """The tokens, with one of kind END behind them. What stands in comments for the server is there. Raises: NotSure."""
    tokens: list[SqlToken] = []
    for token in _tokens(text, bool(sql_mode & ANSI_QUOTES), bool(sql_mode & NO_BACKSLASH_ESCAPES), server_version):
        if len(tokens) >= _MOST_TOKENS:
            raise NotSure("too long")
        tokens.append(token)
    tokens.append(SqlToken(TokenKind.END, "", "", len(text), len(text)))
    return tokens


def _tokens(text: str, ansi: bool, plain: bool, server_version: str) -> Iterator[SqlToken]:
    at, end, opened = 0, len(text), 0
    while at < end:
        one = text[at]
        space = _SPACE.match(text, at)
        if space is not None and space.end() > at:
            at = space.end()
        elif text.startswith("/*", at):
            conditional = _CONDITIONAL.match(text, at)
            if conditional is not None and _is_read(conditional[1], conditional[2], server_version):
                opened += 1
                at = conditional.end()
                continue
            close = text.find("*/", at + 2)
            if close < 0 or (conditional is not None and "/*" in text[at + 2 : close]):
                raise NotSure("a comment that does not end, or has others in it")
            at = close + 2
        elif opened and text.startswith("*/", at):
            opened -= 1
            at += 2
        elif one in "'\"":
            value, stop = _quoted(text, at, one, plain or (one == '"' and ansi))
            if one == '"' and ansi:
                yield SqlToken(TokenKind.NAME, value, "", at, stop)
            else:
                yield SqlToken(TokenKind.STRING, value, "", at, stop)
            at = stop
        elif one == "`":
            value, stop = _quoted(text, at, "`", True)
            yield SqlToken(TokenKind.NAME, value, "", at, stop)
            at = stop
        elif (found := _NUMBER.match(text, at)) is not None:
            yield SqlToken(TokenKind.NUMBER, found[0], "", at, found.end())
            at = found.end()
        elif (found := _WORD.match(text, at)) is not None:
            yield SqlToken(TokenKind.WORD, found[0], found[0].upper(), at, found.end())
            at = found.end()
        else:
            yield SqlToken(TokenKind.SYMBOL, one, one, at, at + 1)
            at += 1
    if opened:
        raise NotSure("a comment for the server that does not end")


def _quoted(text: str, at: int, mark: str, plain: bool) -> tuple[str, int]:
    """What is quoted from `at` on, and where it ends. `plain`: a backslash is only that."""
    made: list[str] = []
    at += 1
    stops = _STOPS[mark, plain]
    while True:
        found = stops.search(text, at)
        if found is None:
            raise NotSure("a quotation that does not end")
        made.append(text[at : found.start()])
        at = found.end()
        if found[0] == mark:
            if not text.startswith(mark, at):
                return "".join(made), at
            made.append(mark)
        elif at >= len(text):
            raise NotSure("a quotation that does not end")
        else:
            following = text[at]
            made.append("\\" + following if following in "%_" else _BACKSLASHED.get(following, following))
        at += 1


def _is_read(mark: str, digits: str, server_version: str) -> bool:
    """Whether the server reads what stands in a comment that begins with /*! or /*M! and a version. Raises: NotSure."""
    mariadb = "mariadb" in server_version.lower()
    if mark and not mariadb:
        return False
    if not digits:
        return True
    numbers = version_numbers(server_version) if server_version else (0, 0, 0)
    if numbers == (0, 0, 0) or len(digits) not in (5, 6):
        raise NotSure("a comment for some versions, and it is not known which the server has")
    if len(digits) == 6 and not mariadb and numbers < (8, 0, 0):
        raise NotSure("a comment whose version the server reads otherwise")
    version = int(digits)
    if mariadb and not mark and 50700 <= version <= 99999:
        return False
    return version <= numbers[0] * 10000 + numbers[1] * 100 + numbers[2]
