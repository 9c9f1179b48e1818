"""A statement as the source understood it, cut into words, with the changes that make a target understand the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.binlog.schema.column_charsets import charset_of_column
from protocol.errors import RelayError
from protocol.sql.lexer import LINE_COMMENT, LITERAL_ROWS, NotSure, quotation_stop
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from relay.view.rules.targets.known.target import Target

MOST_WORDS: Final = 500_000
# Sets whose characters may end with a byte that is a quote or a backslash elsewhere: with Python's codec for each.
_WIDE: Final = {"big5": "big5", "cp932": "cp932", "gb18030": "gb18030", "gbk": "gbk", "sjis": "shift_jis"}
_WORD: Final = r"[A-Za-z_$\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*+"


class Kind(Enum):
    """What a word of a statement is."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    VARIABLE = "variable"
    SYMBOL = "symbol"


class NotReadable(RelayError):
    """The statement cannot be cut into words with certainty."""


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of a statement. text: without quotes, words in upper case. [start, stop): its place."""

    kind: Kind
    text: str
    start: int
    stop: int


_TOKEN: Final = re.compile(
    rf"""
          (?P<space> \s++ | {LINE_COMMENT} | \0++(?=\s*+\Z) )
        | (?P<hint> /\*\+ (?>(?:[^*]++|\*(?!/))*) \*/ )
        | (?P<version> /\*! (?P<digits> \d{{5,6}} )? )
        | (?P<comment> /\*(?![!+]) (?>(?:[^*]++|\*(?!/))*) \*/ )
        | (?P<open> /\*(?!!) )
        | (?P<end> \*/ )
        | (?P<string> [nNxXbB]?+' | ")  # where it begins
        | (?P<name> ` )
        | (?P<number> 0x[0-9A-Fa-f]++ | \d++(?![A-Za-z_$\u0080-\U0010ffff])(?:\.\d*+)?(?:[eE][+-]?\d++)?
                    | \d++[eE][+-]?\d++ | \.\d++(?:[eE][+-]?\d++)? )
        | (?P<variable> @@?(?: [\w.$\u0080-\U0010ffff]++ | ['"`] ) )
        | (?P<word> \d*+{_WORD} )
        | (?P<symbol> := | <=> | ->>? | . )
        """,
    re.VERBOSE | re.DOTALL,
)


_HARMLESS: Final = re.compile(r"\s*+(?>(?:DEFAULT\s++)?)ENCRYPTION\s*+=?+\s*+'[Nn]'\s*+", re.IGNORECASE)


class SourceStatement:
    """What a version comment holds is part of the statement where the source read it so; where the target would not, the
    comment's marks are taken away (`result` shows it). hints: of the optimizer, which versions before 5.7 pass over. literals:
    rows of an INSERT that are nothing else; their words are not among `words`, or a large one would take too many.

    text: as in the event. collation: of the client. source: its version as 90704. Raises: NotReadable.
    """

    def __init__(self, text: bytes, collation: int, sql_mode: int, source: int, target: Target) -> None:
        self._codec = _WIDE.get(charset_of_column(collation) or "", "latin-1")
        try:
            self._text = text.decode(self._codec)
        except UnicodeDecodeError:
            raise NotReadable("it is not text of its client's character set") from None
        if self._text.encode(self._codec) != text:
            raise NotReadable("its client's character set writes one character in two ways")
        self._edits: list[tuple[int, int, str]] = []
        self._original = text
        self.hints: list[str] = []
        self.words: list[Word] = []
        self.literals: list[str] = []
        self._depth = 0
        self._has_rows = False
        self._places: dict[str, list[int]] = {}
        self._cut(sql_mode, source, target)

    def _cut(self, sql_mode: int, source: int, target: Target) -> None:
        plain, ansi_quotes = bool(sql_mode & NO_BACKSLASH_ESCAPES), bool(sql_mode & ANSI_QUOTES)
        text = self._text
        at = 0
        marks: list[bool] = []  # of each open version comment: whether its marks are taken away
        row = LITERAL_ROWS[plain, ansi_quotes]
        while at < len(text):
            if text[at] == "(" and self._is_between_rows:
                stop = at
                while found := row.match(text, stop):
                    stop = found.end()
                if stop > at:
                    self.literals.append(text[at:stop])
                    at = stop
                    continue
            match = _TOKEN.match(text, at)
            assert match is not None  # the last alternative takes any character
            start, at = at, match.end()
            group = match.lastgroup
            if group == "space" or group == "comment":
                continue
            if group == "open":
                raise NotReadable("a comment in it has no end")
            if group == "end" and not marks:
                at = start + 1  # a product's sign, and a comment behind it
            if group == "hint":
                self.hints.append(match[0])
            elif match["version"] is not None:
                at = self._version_comment(match, source, target, marks)
            elif group == "end" and marks:
                if marks.pop():
                    self.replace(start, at, " ")
            else:
                if (mark := text[at - 1]) in "'\"`":
                    at = self._quotation_stop(at - 1, plain or mark == "`" or (mark == '"' and ansi_quotes))
                self._word(group or "", text[start:at], start, ansi_quotes)
        if marks:
            raise NotReadable("a version comment in it has no end")

    @property
    def _is_between_rows(self) -> bool:
        """Whether a row of an INSERT begins here."""
        return self._has_rows and not self._depth and self.words[-1].text in ("VALUES", "VALUE", ",")

    def _version_comment(self, match: re.Match[str], source: int, target: Target, marks: list[bool]) -> int:
        """Where to go on."""
        digits = match["digits"]
        body = match.end()
        number = int(digits or 0)
        end = self._text.find("*/", body)
        if end < 0:
            raise NotReadable("a version comment in it has no end")
        if number > source:
            if "/*" in self._text[body:end]:
                raise NotReadable("a comment in it that no server executes has another one in it")
            # 5.6 and 5.7 take five digits for the version, whatever follows
            if len(digits) == 6 and target.version < (8, 0):
                self.replace(match.start(), end + 2, " ")
            return end + 2
        taken_away = number > target.comment_version or (len(digits or "") == 6 and target.version < (8, 0))
        if taken_away and target.version < (8, 0) and _HARMLESS.fullmatch(self._text, body, end):
            self.replace(match.start(), end + 2, " ")
            return end + 2
        if taken_away:
            self.replace(match.start(), body, " ")
        marks.append(taken_away)
        return body

    def _quotation_stop(self, at: int, plain: bool) -> int:
        try:
            return quotation_stop(self._text, at, plain)
        except NotSure:
            raise NotReadable("a quote in it has no end") from None

    def _word(self, group: str, text: str, start: int, ansi_quotes: bool) -> None:
        if len(self.words) == MOST_WORDS:
            raise NotReadable(f"it has more than {MOST_WORDS} words and signs")
        if group == "end":
            text = "*"
        if group == "string" and text[0] == '"' and ansi_quotes:
            group = "name"
        if group == "string":
            quote = text.index(text[-1])
            kind, value = Kind.STRING, text[quote + 1 : -1]
        elif group == "name":
            kind, value = Kind.NAME, text[1:-1].replace(text[0] * 2, text[0])
        elif group == "word":
            kind, value = Kind.WORD, text.upper()
        elif group == "number":
            kind, value = Kind.NUMBER, text
        elif group == "variable":
            kind, value = Kind.VARIABLE, text
        else:
            kind, value = Kind.SYMBOL, text
        if kind is Kind.WORD and value in ("VALUES", "VALUE") and not self._depth:
            self._has_rows = self._has_rows or (bool(self.words) and self.words[0].text in ("INSERT", "REPLACE"))
        if kind is Kind.SYMBOL:
            self._depth += (value == "(") - (value == ")")
        if kind in (Kind.WORD, Kind.SYMBOL):
            self._places.setdefault(value, []).append(len(self.words))
        self.words.append(Word(kind, value, start, start + len(text)))

    # --- looking ---------------------------------------------------------------------------------------------------------

    def word(self, index: int) -> str:
        """The keyword, unquoted name or symbol at `index`, in upper case; "" for anything else, and behind the end."""
        if 0 <= index < len(self.words) and self.words[index].kind in (Kind.WORD, Kind.SYMBOL):
            return self.words[index].text
        return ""

    def name(self, index: int) -> str:
        """The name or string at `index`, quoted or not, in lower case; "" where there is none."""
        if 0 <= index < len(self.words) and self.words[index].kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            return self.words[index].text.lower()
        return ""

    def starts(self, *words: str) -> bool:
        """Whether it begins with these keywords."""
        return all(self.word(index) == word for index, word in enumerate(words))

    def places(self, *words: str) -> Iterator[int]:
        """Where these keywords stand side by side: the index of the first."""
        for index in self._places.get(words[0], ()):
            if all(self.word(index + k) == word for k, word in enumerate(words)):
                yield index

    def has(self, *words: str) -> bool:
        """Whether these keywords stand side by side."""
        return next(self.places(*words), None) is not None

    # --- changing --------------------------------------------------------------------------------------------------------

    def replace(self, start: int, stop: int, text: str) -> None:
        """[start, stop) of the statement becomes `text`."""
        self._edits.append((start, stop, text))

    def insert_behind(self, index: int, text: str) -> None:
        """`text` comes right behind the word at `index`."""
        self.replace(self.words[index].stop, self.words[index].stop, text)

    @property
    def result(self) -> bytes:
        """The statement with all changes."""
        if not self._edits:
            return self._original
        parts = []
        at = 0
        for start, stop, text in sorted(self._edits):
            parts += [self._text[at:start], text]
            at = stop
        return "".join([*parts, self._text[at:]]).encode(self._codec)
