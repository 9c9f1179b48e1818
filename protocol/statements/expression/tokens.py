"""Cuts statements into tokens."""

import re
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from protocol.sql.lexer import LINE_COMMENT
from protocol.sql.server_version import is_only_mysqls
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.refusals import not_understood, too_long

# Statements are cut into tokens on the event loop: no statement of a replica has a fifth of these.
_MAX_TOKENS: Final = 1024
MAX_CHARACTERS: Final = 65536
"""Of a statement."""
_MOST_BYTES_OF_A_CHARACTER: Final = 4


def check_size(text: bytes) -> None:
    """Refuses what has more characters than a statement may have, before it is decoded. Raises: StatementRefused (1064)."""
    if len(text) > _MOST_BYTES_OF_A_CHARACTER * MAX_CHARACTERS:
        raise too_long(f"{len(text)} bytes, at most {MAX_CHARACTERS} characters")


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    USER_VARIABLE = "user variable"
    SYSTEM_VARIABLE = "system variable"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a statement. `text`: without quotes and sigils; [start, stop) is its place in the statement."""

    kind: Kind
    text: str
    start: int
    stop: int
    scope: str = ""

    def is_word(self, *words: str) -> bool:
        """Whether this is one of these keywords, in any case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_name(self, name: str) -> bool:
        """Whether this is that identifier, in any case, quoted or not."""
        return self.kind in (Kind.WORD, Kind.NAME) and self.text.upper() == name

    @property
    def is_text(self) -> bool:
        """Whether this is a string."""
        return self.kind is Kind.STRING

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.text in symbols


# Possessive quantifiers (++, *+): an unterminated quote of a megabyte must fail in linear time.
_SINGLE: Final = r"'(?>(?:[^'\\]++|\\.|'')*)'"
_DOUBLE: Final = r'"(?>(?:[^"\\]++|\\.|"")*)"'
_BACKTICK: Final = r"`(?>(?:[^`]++|``)*)`"
_WORD: Final = r"[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*+"
_TOKEN: Final = re.compile(
    rf"""
      (?P<space> \s++ | {LINE_COMMENT}
               | \0++(?=\s*+$)                          # of clients that send it along
               | \*/                                     # the end of a version comment that is part of the statement
               | /\*(?![Mm]?!).*?\*/
               | \\[gG](?=\s*$) )                        # of people who type it where no client takes it away
    | (?P<comment> /\*[Mm]?! (?P<since> \d{{5,6}} )? )
    | @@ (?: (?P<scope>(?i:global|session|local)) \s*+ \. \s*+ )? (?P<system> {_WORD}(?:\.{_WORD})? | {_BACKTICK} )
    | @ (?P<variable> [\w.$]++ | {_SINGLE} | {_DOUBLE} | {_BACKTICK} )
    | (?P<string> {_SINGLE} | {_DOUBLE} )
    | (?P<name> {_BACKTICK} )
    | (?P<number> 0[xX][0-9A-Fa-f]++ | \d++(?:\.\d*+)?(?:[eE][+-]?\d++)? )
    | (?P<word> {_WORD} )
    | (?P<symbol> := | /(?!\*) | [=,().*;+\-<>!%&|^~?:{{}}\[\]] )
    """,
    re.VERBOSE | re.DOTALL,
)
# A backslash before % and _ stays: it is for LIKE.
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip


def tokenize(statement: str, facts: SourceFacts | None = None, *, unquotes: bool = True) -> list[Token]:
    """Cut a statement into tokens, without comments, spaces and the semicolons at its end.

    unquotes: strings have their text, which takes a while where they are long.

    What a version comment holds is part of the statement where `facts` are of such a version; without them always.

    Raises: StatementRefused (ER_PARSE_ERROR) at the first character that begins no token, such as an open quote, and
    for a statement of more than 1024 tokens, comments and spaces counted, or 65536 characters.
    """
    if len(statement) > MAX_CHARACTERS:
        raise too_long(f"{len(statement)} characters, at most {MAX_CHARACTERS}")
    tokens: list[Token] = []
    offset = count = 0
    while offset < len(statement):
        match = _TOKEN.match(statement, offset)
        count += 1
        if match is None:
            raise not_understood(statement, offset)
        if count > _MAX_TOKENS:
            raise too_long(f"more than {_MAX_TOKENS} words, signs and spaces")
        start, offset = offset, match.end()
        if match["space"] is not None:
            continue
        if match["comment"] is not None:
            if facts is not None and not _is_for(match["comment"], match["since"], facts):
                end = statement.find("*/", offset)
                if end < 0:
                    raise not_understood(statement, start)
                offset = end + 2
            continue
        if match["system"] is not None:
            name, scope = _unquote(match["system"]), (match["scope"] or "").lower()
            tokens.append(Token(Kind.SYSTEM_VARIABLE, name, start, offset, scope))
        elif match["variable"] is not None:
            tokens.append(Token(Kind.USER_VARIABLE, _unquote(match["variable"]), start, offset))
        elif match["string"] is not None:
            text = _unquote(match["string"]) if unquotes else ""
            tokens.append(Token(Kind.STRING, text, start, offset))
        elif match["name"] is not None:
            tokens.append(Token(Kind.NAME, _unquote(match["name"]), start, offset))
        elif match["number"] is not None:
            tokens.append(Token(Kind.NUMBER, match["number"], start, offset))
        elif match["word"] is not None:
            tokens.append(Token(Kind.WORD, match["word"], start, offset))
        else:
            tokens.append(Token(Kind.SYMBOL, match["symbol"], start, offset))
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    return _with_strings_joined(tokens)


def placeholders(statement: str, facts: SourceFacts | None = None) -> tuple[int, ...]:
    """Where the question marks stand that values are given for. Raises: as `tokenize`."""
    return tuple(token.start for token in tokenize(statement, facts, unquotes=False) if token.is_symbol("?"))


def _with_strings_joined(tokens: list[Token]) -> list[Token]:
    """Strings side by side are one."""
    joined: list[Token] = []
    for kind, run in groupby(tokens, lambda token: token.kind):
        same = list(run)
        if kind is Kind.STRING and len(same) > 1:
            same = [Token(kind, "".join(token.text for token in same), same[0].start, same[-1].stop)]
        joined += same
    return joined


def _is_for(opening: str, since: str | None, facts: SourceFacts) -> bool:
    """Whether a server of this kind looks into a version comment: `/*!`, `/*!50505`, `/*M!100100`."""
    of_mariadb = "M" in opening.upper()
    if of_mariadb and not facts.is_mariadb:
        return False
    if since is None:
        return True
    major, minor, patch = facts.version_numbers
    if facts.is_mariadb and not of_mariadb and is_only_mysqls(int(since)):
        return False
    return major * 10000 + minor * 100 + patch >= int(since)


def _unquote(text: str) -> str:
    quote = text[0]
    if quote not in "'\"`":
        return text
    inner = text[1:-1].replace(quote * 2, quote)
    if quote == "`" or "\\" not in inner:
        return inner
    first, *escaped = inner.split("\\")
    parts = [first]
    pieces = iter(escaped)
    for piece in pieces:
        # Nothing before the next backslash: this one was before that.
        parts.append(_ESCAPES.get(piece[0], piece[0]) + piece[1:] if piece else "\\" + next(pieces, ""))
    return "".join(parts)
