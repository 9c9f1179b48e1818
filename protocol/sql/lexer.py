"""The words of a statement, as the server that logged or sent it reads them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from protocol.columns.codes.column_codes import MOST_COLUMNS
from protocol.errors import RelayError
from protocol.sql.server_version import is_only_mysqls, version_id, version_numbers
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

_MOST_TOKENS: Final = 200_000
_MOST_PIECES: Final = 2_000_000
"""The most pieces of quotations, each up to an escape: 16 MB usually have some hundred thousand."""
_SINGLE, _DOUBLE = "'", '"'
_STEP: Final = 1 << 16
"""The most characters that a pattern reads in one call: `re` holds the GIL, and all threads wait."""
_PAIRS: Final = _STEP // 4
_LONGEST_ROW: Final = 2 << 20
"""The most characters of a row that is folded. A longer one is read word by word."""
_LONGEST_WORD: Final = 1024
LINE_COMMENT: Final = r"(?:--(?=[\s\x00-\x1f]|\Z)|\#)[^\n]*+"
"""A pattern, also for verbose ones: a comment up to the end of its line."""


def _token(blank: str) -> re.Pattern[str]:
    """Return the pattern of a token. `blank` is "" or one character, see `ReadAs`."""
    beyond = {"": r"\u0080-\uffff", "\xa0": r"\u0080-\u009f\u00a1-\uffff", "\xff": r"\u0080-\u00fe\u0100-\uffff"}[blank]
    inside = f"0-9A-Za-z_${beyond}"
    return re.compile(
        rf"""
          (?P<space> [ \t\r\n\f\v{blank}]++ )
        | (?P<long> [0-9]{{{_LONGEST_WORD}}} )
        | (?P<hex> 0x(?=[0-9A-Fa-f]) )
        | (?P<number> 0b[01]++(?![{inside}]) | (?:[0-9]++\.?+[0-9]*+|\.[0-9]++)[eE][+-]?+[0-9]++
                    | [0-9]++\.[0-9]*+ | \.[0-9]++ | [0-9]++(?![{inside}]) )
        | (?P<word> [0-9]*+[A-Za-z_${beyond}][{inside}]{{0,{_LONGEST_WORD}}} )
        | (?P<quote> ['"`] )
        | (?P<comment> /\* )
        | (?P<close> \*/ )
        | (?P<line> --(?=[\s\x00-\x1f]|\Z) | \# )
        | (?P<symbol> . )
        """,
        re.VERBOSE | re.DOTALL,
    )


_TOKENS: Final = {blank: _token(blank) for blank in ("", "\xa0", "\xff")}
_LEFT_OUT_AT_END: Final = " \t\r\n\f\v\0"
"""Clients append a NUL; servers omit it at the end of a text, also before blanks, and refuse it anywhere else."""
_WORD: Final = re.compile(rf"[0-9A-Za-z_$\u0080-\uffff]{{1,{_LONGEST_WORD + 1}}}")
_HEX: Final = re.compile(rf"[0-9A-Fa-f]{{1,{_STEP}}}+")
_MARK: Final = re.compile(r"/\*(?:(M?!)([0-9]*)|(\+))")
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
"""The patterns of a quotation's content, by its mark and by whether a backslash is an ordinary character."""
_IN_PLACE: Final = "\udbff"
"""What takes the place of two backslashes for a moment: half a character, which no decoder gives."""
_BACKSLASHED: Final = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_", "": "\\",
}  # fmt: skip
"""What a letter after a backslash gives, if not itself; the backslash at the end of a text that is cut off stays."""


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


_LITERAL_ROWS: Final = {(one, other): _literal_row(one, other) for one in (False, True) for other in (False, True)}
"""The patterns of an INSERT's row of literals with the comma after it, by NO_BACKSLASH_ESCAPES and ANSI_QUOTES."""


class UnsupportedSyntax(RelayError):
    """The effect of a statement cannot be determined for certain. `at` is the place in its text, if the lexer raised it."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.at = at


class TooManyTokens(UnsupportedSyntax):
    """A statement has more words, signs and comments than are read."""


class TokenKind(Enum):
    """The kind of a token."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    VARIABLE = "variable"
    SYMBOL = "symbol"
    END = "end"


class SqlToken(NamedTuple):
    """A token. `text` has no quotation marks and escapes. `upper` is that of a word, otherwise the symbol, or empty.

    [start, stop) is its place in the statement. Only `with_variables` makes a VARIABLE, whose `text` has the marks, as in
    `@@global.a`.
    """

    kind: TokenKind
    text: str
    upper: str
    start: int
    stop: int


def is_name(token: SqlToken) -> bool:
    """Return whether it may be an identifier."""
    return token.kind in (TokenKind.WORD, TokenKind.NAME)


class SqlComment(NamedTuple):
    """A comment between /* and */; [start, stop) is its place, with its marks; its content begins at `body`.

    `mark` is "!" or "M!" for servers, "+" for a hint, otherwise empty. `version` is as written, such as 50000 or 100300; 0: none.
    `is_read`: its content is a part of the statement, so its words are among the tokens. `digits` are the version's.
    """

    start: int
    body: int
    stop: int
    mark: str
    digits: str
    is_read: bool

    @property
    def version(self) -> int:
        """The version of the servers that it is for; 0: all."""
        return int(self.digits or 0)


@dataclass(frozen=True, slots=True)
class ReadAs:
    """The settings under which a statement is read.

    `server_version` is such as "10.11.19-MariaDB-log"; "": not known, so the reading of a comment for some versions is uncertain.
    With `any_server` comments for servers are read, for any versions. With `folds_rows` each run of an INSERT's rows of literals
    becomes a pair of brackets. `blank` is a character beyond ASCII that is a blank, see `byte_text.blank_of`.

    With `is_lenient` the text may be cut: a part without an end extends to the end of the text, and nothing raises. `most` is the
    limit of tokens and comments. With `of_client` a comment of six digits is of a client that knows newer servers: a MySQL before 8.0,
    which would read five of them, is not asked to read it.
    """

    server_version: str = ""
    sql_mode: int = 0
    any_server: bool = False
    folds_rows: bool = False
    blank: str = ""
    is_lenient: bool = False
    of_client: bool = False
    most: int = _MOST_TOKENS


@dataclass(slots=True)
class SqlText:
    """A statement that is cut into words: `tokens` ends with one of kind END.

    `rows` are [start, stop) of the runs of rows that are folded, each with its brackets and commas. `is_whole` is False if a lenient
    reading stopped at its limit.
    """

    tokens: list[SqlToken]
    comments: list[SqlComment]
    rows: list[tuple[int, int]]
    is_whole: bool = True


def sql_tokens(text: str, sql_mode: int, server_version: str) -> list[SqlToken]:
    """Return the tokens, including those of comments for the server, with one of kind END after them. Raises: UnsupportedSyntax."""
    return sql_text(text, ReadAs(server_version, sql_mode)).tokens


def sql_text(text: str, read_as: ReadAs) -> SqlText:
    """Return the statement's words and comments. Raises: UnsupportedSyntax, unless it is lenient."""
    reading = _Reading(text, read_as)
    reading.run()
    reading.tokens.append(SqlToken(TokenKind.END, "", "", len(text), len(text)))
    return SqlText(reading.tokens, reading.comments, reading.rows, reading.is_whole)


def tokens_inside(tokens: Iterable[SqlToken], comments: Iterable[SqlComment]) -> Iterator[int]:
    """Yield the places of the tokens that are in any of these comments; both are in the order of the text."""
    left = iter(comments)
    following = next(left, None)
    stop = 0
    for at, token in enumerate(tokens):
        while following is not None and following.start < token.start:
            stop = max(stop, following.stop)
            following = next(left, None)
        if token.start < stop:
            yield at


def with_variables(tokens: list[SqlToken]) -> list[SqlToken]:
    """Return the tokens with each @name, @'name' and @@scope.name, if nothing separates its parts, as one token of kind VARIABLE."""
    made: list[SqlToken] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.upper == "@":
            first = at
            if tokens[at].upper == "@" and tokens[at].start == token.stop:
                at += 1
            while tokens[at].start == tokens[at - 1].stop and _continues(tokens[at - 1], tokens[at]):
                at += 1
            if at > first and tokens[at - 1].upper != "@":
                text = "".join(one.text for one in tokens[first - 1 : at])
                made.append(SqlToken(TokenKind.VARIABLE, text, "", token.start, tokens[at - 1].stop))
                continue
            at = first
        made.append(token)
    return made


def _continues(before: SqlToken, token: SqlToken) -> bool:
    """Return whether the token belongs to the variable's name of which `before` is a part."""
    if before.upper == "@":
        return token.kind not in (TokenKind.SYMBOL, TokenKind.END) or token.upper == "."
    if before.kind in (TokenKind.STRING, TokenKind.NAME):
        return False
    return token.upper == "." or token.kind in (TokenKind.WORD, TokenKind.NUMBER)


def is_read(mark: str, digits: str, server_version: str) -> bool:
    """Return whether the server reads the content of a comment with this mark, "!" or "M!", and version. Raises: UnsupportedSyntax."""
    mariadb = "mariadb" in server_version.lower()
    if mark == "M!" and not mariadb:
        return False
    if not digits:
        return True
    numbers = version_numbers(server_version)
    if numbers == (0, 0, 0) or len(digits) not in (5, 6):
        raise UnsupportedSyntax("a comment for some versions, and it is not known which the server has")
    if len(digits) == 6 and reads_five_digits(server_version):
        raise UnsupportedSyntax("a comment whose version the server reads otherwise")
    version = int(digits)
    if mariadb and mark == "!" and is_only_mysqls(version):
        return False
    return version <= version_id(server_version)


def reads_five_digits(server_version: str) -> bool:
    """Return whether this server reads five digits of a comment's version where there are six: MySQL before 8.0."""
    return "mariadb" not in server_version.lower() and version_numbers(server_version) < (8, 0, 0)


class _Reading:
    """One pass over a text."""

    def __init__(self, text: str, read_as: ReadAs) -> None:
        self.tokens: list[SqlToken] = []
        self.comments: list[SqlComment] = []
        self.rows: list[tuple[int, int]] = []
        self.is_whole = True
        self._text = text
        self._as = read_as
        self._plain = bool(read_as.sql_mode & NO_BACKSLASH_ESCAPES)
        self._ansi = bool(read_as.sql_mode & ANSI_QUOTES)
        self._opened: list[int] = []
        """The places in `comments` of the open comments whose content is read."""
        self._depth = 0
        self._has_rows = False

    def run(self) -> None:
        """Read the text to its end. Raises: UnsupportedSyntax."""
        text, match = self._text, _TOKENS[self._as.blank].match
        at, end, left = 0, len(text.rstrip(_LEFT_OUT_AT_END)), self._as.most
        while at < end:
            found = match(text, at, at + _STEP)
            assert found is not None  # the last alternative matches any character
            group, stop = found.lastgroup, found.end()
            if group == "space":
                at = stop
                continue
            if not left:
                self.is_whole = False
                if not self._as.is_lenient:
                    raise TooManyTokens("too long", at)
                break
            left -= 1
            if group == "word":
                at = self._word(found[0], at, stop)
            elif group == "number":
                at = self._number(found[0], at, stop)
            else:
                at = _READERS[group or "symbol"](self, at, stop)
        if self._opened:
            self._not_sure("a comment for the server that does not end", self.comments[self._opened[-1]].start)
            for place in self._opened:
                self.comments[place] = self.comments[place]._replace(stop=end)

    def _not_sure(self, why: str, at: int) -> None:
        if not self._as.is_lenient:
            raise UnsupportedSyntax(why, at)

    def _word(self, word: str, at: int, stop: int) -> int:
        if stop - at > _LONGEST_WORD:
            self._not_sure("a word that is too long", at)
        upper = word.upper()
        if self._as.folds_rows and upper in ("VALUES", "VALUE") and not self._depth and self.tokens:
            self._has_rows = self._has_rows or self.tokens[0].upper in ("INSERT", "REPLACE")
        self.tokens.append(SqlToken(TokenKind.WORD, word, upper, at, stop))
        return stop

    def _number(self, number: str, at: int, stop: int) -> int:
        if number[0] == "." and self.tokens and self.tokens[-1].kind is TokenKind.WORD and self.tokens[-1].stop == at:
            # after a name and a point a name begins, for any first character: t.1a
            self.tokens.append(SqlToken(TokenKind.SYMBOL, ".", ".", at, at + 1))
            found = _WORD.match(self._text, at + 1)
            assert found is not None  # a digit
            return self._word(found[0], at + 1, found.end())
        self.tokens.append(SqlToken(TokenKind.NUMBER, number, "", at, stop))
        return stop

    def _long_number(self, at: int, stop: int) -> int:
        self._not_sure("a number that is too long", at)
        return self._number(self._text[at:stop], at, stop)

    def _hexadecimal(self, at: int, stop: int) -> int:
        """Read a number such as 0x1F; a name such as 0x1Fg."""
        while (found := _HEX.match(self._text, stop)) is not None:
            stop = found.end()
        if (word := _WORD.match(self._text, stop)) is None:
            return self._number(self._text[at:stop], at, stop)
        return self._word(self._text[at : word.end()], at, word.end())

    def _symbol(self, at: int, stop: int) -> int:
        one = self._text[at]
        if self._as.folds_rows and one in "()":
            if one == "(" and (run := self._literal_rows(at)) > at:
                last = self._text.rindex(")", at, run)
                self.rows.append((at, run))
                self.tokens.append(SqlToken(TokenKind.SYMBOL, "(", "(", at, at + 1))
                self.tokens.append(SqlToken(TokenKind.SYMBOL, ")", ")", last, last + 1))
                return last + 1
            self._depth += 1 if one == "(" else -1
        self.tokens.append(SqlToken(TokenKind.SYMBOL, one, one, at, at + 1))
        return at + 1

    def _literal_rows(self, at: int) -> int:
        """Return where the rows of literals that begin at `at` end; `at`: there are none."""
        if self._has_rows and not self._depth and self.tokens[-1].upper in ("VALUES", "VALUE", ","):
            row = _LITERAL_ROWS[self._plain, self._ansi]
            while (found := row.match(self._text, at, at + _LONGEST_ROW)) is not None:
                at = found.end()
        return at

    def _line(self, at: int, stop: int) -> int:
        line = self._text.find("\n", at)
        return line if line >= 0 else len(self._text)

    def _close(self, at: int, stop: int) -> int:
        if not self._opened:
            return self._symbol(at, at + 1)  # a product's sign, and perhaps a comment after it
        place = self._opened.pop()
        self.comments[place] = self.comments[place]._replace(stop=stop)
        return stop

    def _comment(self, at: int, stop: int) -> int:
        found = _MARK.match(self._text, at)
        if found is not None and found[1] and self._is_read(found[1], found[2], at):
            self._opened.append(len(self.comments))
            self.comments.append(SqlComment(at, found.end(), 0, found[1], found[2], True))
            return found.end()
        is_plain = found is None or found[3] or (found[1] == "M!" and not self._is_of_mariadb)
        end = self._comment_stop(at, at + 2, 0 if is_plain else 1)
        mark, digits = ("", "") if found is None else (found[3] or found[1], found[2] or "")
        self.comments.append(SqlComment(at, found.end() if found else stop, end, mark, digits, False))
        return end

    def _comment_stop(self, start: int, at: int, nested: int) -> int:
        """Return where a comment ends whose content is not read. `nested` levels of comments inside are skipped whole, as by servers
        in comments for others (MySQL's `consume_comment`).
        """
        while (close := self._text.find("*/", at)) >= 0:
            inner = self._text.find("/*", at, close) if nested else -1
            if inner < 0:
                return close + 2
            at = self._comment_stop(start, inner + 2, nested - 1)
        self._not_sure("a comment that does not end", start)
        return len(self._text)

    @property
    def _is_of_mariadb(self) -> bool:
        return "mariadb" in self._as.server_version.lower()

    def _is_read(self, mark: str, digits: str, at: int) -> bool:
        """Return whether the server reads the content of a comment with this mark and version. Raises: UnsupportedSyntax."""
        if self._as.any_server:
            return True
        if self._as.of_client and len(digits) == 6 and reads_five_digits(self._as.server_version):
            return False
        try:
            return is_read(mark, digits, self._as.server_version)
        except UnsupportedSyntax as error:
            self._not_sure(str(error), at)
            return int(digits) <= version_id(self._as.server_version)

    def _quotation(self, at: int, stop: int) -> int:
        mark = self._text[at]
        is_name = mark == "`" or (mark == _DOUBLE and self._ansi)
        value, stop = self._quoted(at, mark, self._plain or is_name)
        self.tokens.append(SqlToken(TokenKind.NAME if is_name else TokenKind.STRING, value, "", at, stop))
        return stop

    def _quoted(self, at: int, mark: str, plain: bool) -> tuple[str, int]:
        """Return the content that is quoted from `at` on, and where it ends. `plain`: a backslash is an ordinary character."""
        text, inside = self._text, _INSIDE[mark, plain]
        at += 1
        last = at
        while (found := inside.match(text, last)) is not None:
            last = found.end()
        stop = last + 1
        if not text.startswith(mark, last):
            self._not_sure("a quotation that does not end", at - 1)
            stop = last = len(text)
        if plain or (backslashes := text.count("\\", at, last)) == 0:
            return text[at:last].replace(mark + mark, mark), stop
        if backslashes + text.count(mark, at, last) > _MOST_PIECES:
            self._not_sure("too long", at - 1)
            return text[at:last], stop
        return without_escapes(text, at, last, mark), stop


_READERS: Final = {
    "quote": _Reading._quotation,
    "comment": _Reading._comment,
    "close": _Reading._close,
    "line": _Reading._line,
    "hex": _Reading._hexadecimal,
    "long": _Reading._long_number,
    "symbol": _Reading._symbol,
}
"""The readers by the groups of the pattern; words and numbers, which are most tokens, are read without it."""


def without_escapes(text: str, start: int, stop: int, mark: str) -> str:
    """Return the value of text[start:stop], which is inside of these quotation marks, where a backslash escapes."""
    inside = text[start:stop].replace(_IN_PLACE, "\ufffd").replace("\\\\", _IN_PLACE)
    value, doubled = _BACKSLASHED.get, mark + mark
    has_doubled = doubled in inside
    pieces = inside.split("\\")
    del inside  # of a long text there are few copies at a time
    if has_doubled:
        pieces[0] = pieces[0].replace(doubled, mark)
    for at in range(1, len(pieces)):
        one = pieces[at]
        if has_doubled and doubled in one:
            one = one[:1] + one[1:].replace(doubled, mark)
        first = value(one[:1])
        pieces[at] = one if first is None else first + one[1:]
    return "".join(pieces).replace(_IN_PLACE, "\\")
