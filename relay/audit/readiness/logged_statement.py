"""A statement of a binlog, cut into tokens that checks can look for. Never fails: what no server understands is one symbol."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from protocol.sql.lexer import LINE_COMMENT
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.statements.expression.tokens import Kind, Token

_SINGLE: Final = r"'(?>(?:[^'\\]++|\\.|'')*)(?:'|\\?\Z)"
_DOUBLE: Final = r'"(?>(?:[^"\\]++|\\.|"")*)(?:"|\\?\Z)'
_BACKTICK: Final = r"`(?>(?:[^`]++|``)*)(?:`|\Z)"
_WORD: Final = r"[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*+"
_TOKEN: Final = re.compile(
    rf"""
      (?P<space> \s++ | {LINE_COMMENT} | \*/ | /\*!\d*+ | /\*(?>(?:[^*]++|\*(?!/))*)(?:\*/|\Z) )
    | (?P<string> {_SINGLE} | {_DOUBLE} )
    | (?P<name> {_BACKTICK} )
    | (?P<number> 0x[0-9A-Fa-f]++ | \d++(?:\.\d*+)?(?:[eE][+-]?\d++)? )
    | @@ (?P<system> (?:global\.|session\.|local\.)? {_WORD} )
    | @ (?P<variable> [\w.$]++ | {_SINGLE} | {_DOUBLE} | {_BACKTICK} )
    | (?P<word> {_WORD} )
    | (?P<symbol> \\N | . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_KINDS: Final = {
    "string": Kind.STRING,
    "name": Kind.NAME,
    "number": Kind.NUMBER,
    "system": Kind.SYSTEM_VARIABLE,
    "variable": Kind.USER_VARIABLE,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
MOST_TOKENS: Final = 50_000
_CREATE_WORDS: Final = frozenset(("OR", "REPLACE", "TEMPORARY", "ONLINE", "OFFLINE", "IGNORE"))


@dataclass
class LoggedStatement:
    """A statement, or its digest text. `sql_mode`: as its event has it; `loads`: its event is an Execute_load_query."""

    text: str
    schema: str = ""
    sql_mode: int = 0
    seeds: int = 0
    loads: bool = False
    tokens: list[Token] = field(default_factory=list, repr=False)
    too_long: bool = False

    def __post_init__(self) -> None:
        for token in _tokens(self.text, bool(self.sql_mode & ANSI_QUOTES)):
            if len(self.tokens) == MOST_TOKENS:
                self.too_long = True
                break
            self.tokens.append(token)
        self.upper = [token.text.upper() if token.kind is Kind.WORD else token.text for token in self.tokens]

    def word(self, index: int) -> str:
        """The keyword or unquoted name at `index`, in upper case; a symbol; "" for anything else, and behind the end."""
        if 0 <= index < len(self.tokens) and self.tokens[index].kind in (Kind.WORD, Kind.SYMBOL):
            return self.upper[index]
        return ""

    def name(self, index: int) -> str:
        """The name at `index`, quoted or not, in lower case; "" where there is none."""
        if 0 <= index < len(self.tokens) and self.tokens[index].kind in (Kind.WORD, Kind.NAME):
            return self.tokens[index].text.lower()
        return ""

    def text_at(self, index: int) -> str:
        """The name or the string at `index`, in lower case."""
        if 0 <= index < len(self.tokens) and self.tokens[index].kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            return self.tokens[index].text.lower()
        return ""

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token.kind in (Kind.WORD, Kind.SYMBOL):
                places.setdefault(self.upper[index], []).append(index)
        return places

    def places_of(self, *words: str) -> Iterator[int]:
        """Where these keywords stand side by side; the index of the first."""
        for index in self._places.get(words[0], ()):
            if all(self.word(index + k) == word for k, word in enumerate(words)):
                yield index

    def has(self, *words: str) -> bool:
        """Whether these keywords stand side by side."""
        return next(self.places_of(*words), None) is not None

    @cached_property
    def verb(self) -> str:
        """The first keyword."""
        index = 0
        while self.word(index) == "(":
            index += 1
        return self.word(index)

    @cached_property
    def object_kind(self) -> str:
        """What kind of thing CREATE, ALTER or DROP is about, like TABLE; "" for other statements."""
        if self.verb not in ("CREATE", "ALTER", "DROP"):
            return ""
        index = 1
        while self.word(index) in _CREATE_WORDS:
            index += 1
        return self.word(index)

    @property
    def defines_table(self) -> bool:
        """Whether it is CREATE TABLE or ALTER TABLE."""
        return self.verb in ("CREATE", "ALTER") and self.object_kind == "TABLE"

    @property
    def changes_rows(self) -> bool:
        """Whether it changes rows, and is no definition."""
        return self.verb in ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "SELECT", "CALL", "DO", "WITH")

    def calls(self) -> Iterator[tuple[str, int]]:
        """Names, in upper case and not quoted, that stand right before a parenthesis, with their index."""
        for index in self._places.get("(", ()):
            name = index - 1
            if name < 0 or self.tokens[name].kind is not Kind.WORD or self.word(name - 1) == ".":
                continue
            if self.tokens[name].stop == self.tokens[index].start:
                yield self.upper[name], name

    def option(self, *words: str) -> Iterator[int]:
        """Where the value of a table's option stands: behind its words, and = if there is one."""
        for index in self.places_of(*words):
            value = index + len(words)
            yield value + 1 if self.word(value) == "=" else value

    def definitions(self) -> Iterator[tuple[int, int]]:
        """Of CREATE TABLE: each column, key or constraint, as the range of its tokens."""
        if self.verb != "CREATE" or not self.defines_table or "(" not in self._places:
            return
        start = self._places["("][0] + 1
        depth = 0
        for index in range(start, len(self.tokens)):
            symbol = self.word(index)
            if symbol == "(":
                depth += 1
            elif symbol == ")" and depth:
                depth -= 1
            elif symbol == ")" or (symbol == "," and not depth):
                yield start, index
                start = index + 1
                if symbol == ")":
                    return


def _tokens(text: str, ansi_quotes: bool) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group is None or group == "space":
            continue
        kind = _KINDS[group]
        value = match[group]
        if kind is Kind.STRING and ansi_quotes and value[0] == '"':
            kind = Kind.NAME
        if kind in (Kind.STRING, Kind.NAME):
            value = value[1:-1].replace(value[0] * 2, value[0])
        yield Token(kind, value, match.start(), match.end())
