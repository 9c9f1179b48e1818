"""The words of a statement, as the server that logged or sent it reads them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.binlog.format_description import version_numbers
from protocol.columns.codes.column_codes import MOST_COLUMNS
from protocol.errors import RelayError
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

_MOST_TOKENS: Final = 200_000
_MOST_PIECES: Final = 2_000_000
"""Of quotations, each up to an escape: of 16 MB some hundred thousand are usual."""
_SINGLE, _DOUBLE = "'", '"'
_STEP: Final = 1 << 16
"""So many characters at most does a pattern look at in one call: `re` holds the interpreter's lock, and all threads wait."""
_PAIRS: Final = _STEP // 4
_SPACE: Final = re.compile(rf"[ \t\r\n\f\v]{{1,{_STEP}}}+")
LINE_COMMENT: Final = r"(?:--(?=[\s\x00-\x1f]|\Z)|\#)[^\n]*+"
"""A pattern, for verbose ones too: a comment up to the end of its line."""
_LINE: Final = re.compile(r"--(?=[\s\x00-\x1f]|\Z)|#")
_LONGEST_WORD: Final = 1024
_WORD: Final = re.compile(
    rf"[0-9]{{0,{_LONGEST_WORD}}}+[A-Za-z_$\u0080-\uffff][0-9A-Za-z_$\u0080-\uffff]{{0,{_LONGEST_WORD}}}"
)
_HEX: Final = re.compile(rf"[0-9A-Fa-f]{{1,{_STEP}}}+")
_TOO_LONG: Final = re.compile(rf"[0-9]{{{_LONGEST_WORD}}}")
_NUMBER: Final = re.compile(r"0b[01]++(?![\w$])|(?:\d++\.?+\d*+|\.\d++)[eE][+-]?+\d++|\d++\.\d*+|\.\d++|\d++(?![\w$])")
_IN_WORD: Final = re.compile(r"[\w$]")
_CONDITIONAL: Final = re.compile(r"/\*(M?)!(\d*)")
_INSIDE: Final = {
    (mark, plain): re.compile(
        rf"(?>(?:[^{mark}]{{1,{_STEP}}}+|(?>(?:{mark}{mark}){{1,{_PAIRS}}})){{1,64}})"
        if plain
        else rf"(?>(?:[^{mark}\\]{{1,{_STEP}}}+|(?>(?:{mark}{mark}){{1,{_PAIRS}}})|(?>(?:\\.){{1,{_PAIRS}}})){{1,64}})",
        re.DOTALL,
    )
    for mark in "'\"`"
    for plain in (True, False)
}
"""What may stand in a quotation, by its mark, and whether a backslash is only that."""
_ESCAPED: Final = {mark: re.compile(rf"{mark}{mark}|\\(.)", re.DOTALL) for mark in "'\"`"}


def _literal_row(plain: bool, ansi_quotes: bool) -> re.Pattern[str]:
    escapes = "" if plain else r"\\"
    inside = {
        mark: rf"(?>(?:[^{mark}{escapes}]++|{mark}{mark}{'' if plain else '|' + escapes + '.'})*)"
        for mark in (_SINGLE, _DOUBLE)
    }
    texts = [rf"(?:[xXbBnN]|_binary\s*+)?'{inside[_SINGLE]}'"] + ([] if ansi_quotes else [f'"{inside[_DOUBLE]}"'])
    number = r"[-+]?+(?:0[xX][0-9A-Fa-f]++|\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?|\.\d++)(?![\w$\u0080-\U0010ffff])"
    literal = rf"\s*+(?:{'|'.join(texts)}|{number}|NULL|DEFAULT)\s*+"
    return re.compile(
        rf"\({literal}(?>(?:,{literal}){{0,{MOST_COLUMNS}}})\)(?:\s*+,\s*+(?=\())?", re.DOTALL | re.IGNORECASE
    )


LITERAL_ROWS: Final = {(one, other): _literal_row(one, other) for one in (False, True) for other in (False, True)}
"""One row of an INSERT that has literals only, with the comma behind it, by NO_BACKSLASH_ESCAPES and ANSI_QUOTES."""
_BACKSLASHED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class NotSure(RelayError):
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
        if (space := _SPACE.match(text, at)) is not None:
            at = space.end()
        elif _LINE.match(text, at) is not None:
            line = text.find("\n", at)
            at = line if line >= 0 else end
        elif text.startswith("/*", at):
            conditional = _CONDITIONAL.match(text, at)
            if conditional is not None and is_read(conditional[1], conditional[2], server_version):
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
        elif text.startswith("0x", at) and (stop := _hexadecimal(text, at)) > at:
            yield SqlToken(TokenKind.NUMBER, text[at:stop], "", at, stop)
            at = stop
        elif one.isdigit() and _TOO_LONG.match(text, at) is not None:
            raise NotSure("a number that is too long")
        elif (found := _NUMBER.match(text, at, at + _STEP)) is not None:
            yield SqlToken(TokenKind.NUMBER, found[0], "", at, found.end())
            at = found.end()
        elif (found := _WORD.match(text, at)) is not None:
            if found.end() - at > _LONGEST_WORD:
                raise NotSure("a word that is too long")
            yield SqlToken(TokenKind.WORD, found[0], found[0].upper(), at, found.end())
            at = found.end()
        else:
            yield SqlToken(TokenKind.SYMBOL, one, one, at, at + 1)
            at += 1
    if opened:
        raise NotSure("a comment for the server that does not end")


def _hexadecimal(text: str, at: int) -> int:
    """Where a number such as 0x1F ends that begins at `at`; `at`, where there is none."""
    stop = at + 2
    while (found := _HEX.match(text, stop)) is not None:
        stop = found.end()
    return at if stop == at + 2 or _IN_WORD.match(text, stop) is not None else stop


def quotation_stop(text: str, at: int, plain: bool) -> int:
    """Where the quotation ends that begins at `at` with its mark. `plain`: a backslash is only that. Raises: NotSure."""
    mark = text[at]
    inside = _INSIDE[mark, plain]
    at += 1
    while (found := inside.match(text, at)) is not None:
        at = found.end()
    if not text.startswith(mark, at):
        raise NotSure("a quotation that does not end")
    return at + 1


def _quoted(text: str, at: int, mark: str, plain: bool) -> tuple[str, int]:
    """What is quoted from `at` on, and where it ends. `plain`: a backslash is only that."""
    stop = quotation_stop(text, at, plain)
    at += 1
    if plain or (backslashes := text.count("\\", at, stop)) == 0:
        return text[at : stop - 1].replace(mark + mark, mark), stop
    if backslashes + text.count(mark, at, stop) > _MOST_PIECES:
        raise NotSure("too long")
    made: list[str] = []
    for escape in _ESCAPED[mark].finditer(text, at, stop - 1):
        made += (text[at : escape.start()], _unescaped(escape))
        at = escape.end()
    return "".join((*made, text[at : stop - 1])), stop


def _unescaped(escape: re.Match[str]) -> str:
    following = escape[1]
    if following is None:
        return escape[0][0]
    return escape[0] if following in "%_" else _BACKSLASHED.get(following, following)


def is_read(mark: str, digits: str, server_version: str) -> bool:
    """Return whether the server reads the content of a comment that begins with /*! or /*M! and a version. Raises: NotSure."""
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
