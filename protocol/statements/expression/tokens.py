"""The tokens of the statements that clients send."""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from protocol.errors import StatementRefused
from protocol.sql.lexer import ReadAs, SqlToken, TokenKind, TooManyTokens, UnsupportedSyntax, sql_text
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.refusals import not_understood, too_long

# Statements are cut into tokens on the event loop: no statement of a replica has a fifth of these.
_MAX_TOKENS: Final = 1024
MAX_CHARACTERS: Final = 65536
"""The most characters of a statement."""
_MOST_BYTES_OF_A_CHARACTER: Final = 4


def check_size(text: bytes) -> None:
    """Refuse a statement that has too many characters, before it is decoded. Raises: StatementRefused (1064)."""
    if len(text) > _MOST_BYTES_OF_A_CHARACTER * MAX_CHARACTERS:
        raise too_long(f"{len(text)} bytes, at most {MAX_CHARACTERS} characters")


class Kind(Enum):
    """The kind of a token."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    USER_VARIABLE = "user variable"
    SYSTEM_VARIABLE = "system variable"
    SYMBOL = "symbol"


class Token(NamedTuple):
    """A piece of a statement. `text` has no quotes and sigils; [start, stop) is its place in the statement."""

    kind: Kind
    text: str
    start: int
    stop: int
    scope: str = ""

    def is_word(self, *words: str) -> bool:
        """Return whether this is one of these keywords, in any case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_name(self, name: str) -> bool:
        """Return whether this is that identifier, in any case, quoted or not."""
        return self.kind in (Kind.WORD, Kind.NAME) and self.text.upper() == name

    @property
    def is_text(self) -> bool:
        """True if this is a string."""
        return self.kind is Kind.STRING

    def is_symbol(self, *symbols: str) -> bool:
        """Return whether this is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.text in symbols


_SYMBOLS: Final = frozenset("=,().*;+-<>!%&|^~?:{}[]/")
_SCOPES: Final = frozenset(("GLOBAL", "SESSION", "LOCAL"))
_SAME: Final = {
    TokenKind.WORD: Kind.WORD,
    TokenKind.NAME: Kind.NAME,
    TokenKind.STRING: Kind.STRING,
}
_MOST_PIECES: Final = 2 * _MAX_TOKENS
"""The most tokens of the lexer, of which a variable has several, and comments."""
_BLANK: Final = "\xa0"
"""A space of servers for clients of latin1; other character sets are not distinguished."""
_OF_ANY: Final = ReadAs(any_server=True, blank=_BLANK, most=_MOST_PIECES)


def tokenize(statement: str, facts: SourceFacts | None = None) -> list[Token]:
    """Cut a statement into tokens, without comments, spaces and the semicolons at its end. Adjacent strings are one token.

    The content of a version comment is part of the statement if `facts` are of such a version; without them always.

    Raises: StatementRefused (ER_PARSE_ERROR) at the first character that begins no token, such as an open quote, and for a statement
    of more than 1024 tokens or 65536 characters.
    """
    if len(statement) > MAX_CHARACTERS:
        raise too_long(f"{len(statement)} characters, at most {MAX_CHARACTERS}")
    read_as = _OF_ANY
    if facts is not None and "/*" in statement:
        # an unknown version reads no comment that is for some versions
        version = ".".join(map(str, max(facts.version_numbers, (0, 0, 1))))
        read_as = ReadAs(version + "-MariaDB" * facts.is_mariadb, blank=_BLANK, of_client=True, most=_MOST_PIECES)
    try:
        found = sql_text(statement, read_as).tokens
    except TooManyTokens:
        raise _too_many() from None
    except UnsupportedSyntax as error:
        raise not_understood(statement, error.at) from None
    tokens: list[Token] = []
    for token in _of_clients(statement, found):
        if token.kind is Kind.STRING and tokens and tokens[-1].kind is Kind.STRING:
            tokens[-1] = tokens[-1]._replace(text=tokens[-1].text + token.text, stop=token.stop)
        else:
            tokens.append(token)
    if len(tokens) > _MAX_TOKENS:
        raise _too_many()
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    return tokens


def _too_many() -> StatementRefused:
    return too_long(f"more than {_MAX_TOKENS} words and signs")


def placeholders(statement: str, facts: SourceFacts | None = None) -> tuple[int, ...]:
    """Return the offsets of the question marks, for which values are given. Raises: as `tokenize`."""
    return tuple(token.start for token in tokenize(statement, facts) if token.is_symbol("?"))


def _of_clients(statement: str, found: list[SqlToken]) -> Iterator[Token]:
    """Yield the tokens with variables and := as one each. Raises: StatementRefused for a sign that clients may not write."""
    at = 0
    while (token := found[at]).kind is not TokenKind.END:
        at += 1
        if token.kind is TokenKind.NUMBER:
            if token.text.startswith("0b"):
                raise not_understood(statement, token.start)
            yield Token(Kind.NUMBER, "0" * token.text.startswith(".") + token.text, token.start, token.stop)
        elif token.kind is not TokenKind.SYMBOL:
            yield Token(_SAME[token.kind], token.text, token.start, token.stop)
        elif token.text == "@":
            at, variable = _variable(statement, found, at)
            yield variable
        elif token.text == ":" and found[at].upper == "=" and found[at].start == token.stop:
            yield Token(Kind.SYMBOL, ":=", token.start, found[at].stop)
            at += 1
        elif token.text == "*" and found[at].upper == "/" and found[at].start == token.stop:
            at += 1  # the end of a comment that was for another server
        elif token.text in _SYMBOLS:
            yield Token(Kind.SYMBOL, token.text, token.start, token.stop)
        elif token.text == "\\" and found[at].upper == "G" and found[at + 1].kind is TokenKind.END:
            at += 1  # people type it where no client removes it
        else:
            raise not_understood(statement, token.start)


def _variable(statement: str, found: list[SqlToken], at: int) -> tuple[int, Token]:
    """Return the next index, and the variable whose @ is before `at`. Raises: StatementRefused."""
    start = found[at - 1].start
    is_system = found[at].upper == "@" and found[at].start == found[at - 1].stop
    at += is_system
    scope = ""
    if (
        is_system
        and found[at].upper in _SCOPES
        and found[at].start == found[at - 1].stop
        and found[at + 1].upper == "."
    ):
        scope = found[at].text.lower()
        at += 2
    elif found[at].start != found[at - 1].stop:
        raise not_understood(statement, start)
    first = at
    if found[at].kind in (TokenKind.NAME, TokenKind.STRING) and not (is_system and found[at].kind is TokenKind.STRING):
        at += 1
    else:
        while found[at].kind in (TokenKind.WORD, TokenKind.NUMBER) or found[at].upper == ".":
            at += 1
            if found[at].start != found[at - 1].stop:
                break
    if at == first or (is_system and found[first].kind not in (TokenKind.WORD, TokenKind.NAME)):
        raise not_understood(statement, start)
    text = "".join(token.text for token in found[first:at])
    kind = Kind.SYSTEM_VARIABLE if is_system else Kind.USER_VARIABLE
    return at, Token(kind, text, start, found[at - 1].stop, scope)
