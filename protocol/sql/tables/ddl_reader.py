"""The reader of the elements of definitions: names of columns, values, character sets, keys."""

from collections.abc import Callable
from typing import Final

from protocol.binlog.schema.column_charsets import collation_of_charset
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import NOW_FUNCTIONS
from protocol.sql.tables.ddl_statement import Attribute, CheckClause, KeyPart, Unknown, WrittenForeignKey, WrittenParts
from protocol.sql.tables.default_text import (
    expression_default,
    introduced_default,
    number_default,
    text_default,
)
from protocol.sql.tables.references_clause import read_references
from protocol.sql.tables.server_dialect import UNKNOWN_RULE, ServerDialect
from protocol.sql.tables.source_table import ForeignKey
from protocol.sql.tables.token_cursor import TokenCursor

_OPERATORS: Final = frozenset("+-*/%|&^<>=!.:~")
_LITERALS: Final = frozenset(("NULL", "TRUE", "FALSE"))
_INTRODUCED: Final = frozenset(("N", "B", "X", "DATE", "TIME", "TIMESTAMP"))


class DdlReader(TokenCursor):
    """Reads the elements of definitions of tables and columns.

    `name_of` reads the text of a name or a string, and may raise UnsupportedSyntax. `schema` is the default database. `table_schema`
    is that of the defined table; foreign keys without a schema are in it. `alters`: it is an ALTER TABLE. `written` contains the
    parts of the table's definition that have been read.
    """

    def __init__(
        self,
        tokens: list[SqlToken],
        text: str,
        schema: str,
        sql_mode: int,
        dialect: ServerDialect,
        name_of: Callable[[SqlToken], str] | None = None,
    ) -> None:
        super().__init__(tokens, schema)
        self._text = text
        self._name_of = name_of
        self.table_schema = schema
        self.sql_mode = sql_mode
        self.dialect = dialect
        self.alters = False
        self.written = WrittenParts()
        self._unknown_up_to = -1

    def text_of(self, token: SqlToken) -> str:
        """Return the text of a name or a string. Raises: UnsupportedSyntax."""
        return token.text if self._name_of is None else self._name_of(token)

    # ---- unknown parts ----

    def attempt(self, read: Callable[[], object]) -> bool:
        """Read a part; an unknown one is noted, and only its first word, or the content of brackets, is skipped."""
        start = self.at
        try:
            read()
        except UnsupportedSyntax as error:
            self.at = start
            if self.word() in (",", ")"):
                self.note(start, str(error))
            else:
                self.pass_over(str(error))
            return False
        return True

    def pass_over(self, why: str) -> None:
        """Note that the next word, or the content of brackets, is unknown. Raises: UnsupportedSyntax if a bracket does not end."""
        token, start = self.peek(), self.at
        if token.upper == "(":
            self.skip_brackets()
        elif token.kind is not TokenKind.END:
            self.take()
        self.note(start, why, token.upper if token.kind is TokenKind.WORD else "")

    def note(self, start: int, why: str, word: str = "") -> None:
        """Note that the words from number `start` up to the next one are unknown; `word` is one of them that may begin a clause."""
        first = self.tokens[start].start
        stop = self.tokens[self.at - 1].stop if self.at > start else first
        if start != self._unknown_up_to:
            self.written.unknown.append(Unknown(first, stop, why, set()))
        last = self.written.unknown[-1]
        last.stop = max(stop, last.stop)
        if word:
            last.words.add(word)
        self._unknown_up_to = self.at

    def note_read(self, start: int, why: str, *words: str) -> None:
        """Note that the text from `start` up to the next token is read, and that the tree's columns and keys do not show it."""
        self.written.unknown.append(Unknown(start, self.stop_of_last(), why, set(words), is_read=True))

    def attribute(self, name: str, start: int, value: int = -1) -> None:
        """Note a clause of a column or a key that ends before the next token."""
        stop = self.stop_of_last()
        self.written.attributes.append(Attribute(name, start, stop if value < 0 else value, stop))

    def start_of_next(self) -> int:
        """Return where the next token begins in the text."""
        return self.peek().start

    def stop_of_last(self) -> int:
        """Return where the last token that was taken ends in the text."""
        return self.tokens[self.at - 1].stop

    def check_clause(self, *, of_column: bool) -> None:
        """Read [CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]."""
        start = self.start_of_next()
        if self.accept("CONSTRAINT"):
            self.accept("IF", "NOT", "EXISTS")
            if self.word() != "CHECK":
                self.name()
        self.expect("CHECK")
        condition = self.start_of_next()
        self.skip_brackets()
        if self.word() == "NOT" and self.word(1) == "ENFORCED":
            self.take()
        self.accept("ENFORCED")
        self.written.checks.append(CheckClause(start, self.stop_of_last(), of_column, condition))

    @property
    def mariadb(self) -> bool:
        """True if the server is MariaDB."""
        return self.dialect.mariadb

    def text(self) -> str:
        """Return the next token as it is written."""
        return self.peek().text

    def expect_end(self) -> None:
        """Check that nothing follows. Raises: UnsupportedSyntax."""
        if not self.ended:
            raise UnsupportedSyntax(f"{self.text()} after the end of what is known")

    def column_name(self) -> str:
        """Read a column's name; a table's and schema's before it are omitted."""
        name = self.name()
        while self.accept("."):
            name = self.name()
        return name

    def string(self) -> str:
        """Read a string, of one or more pieces."""
        token = self.take()
        if token.kind is not TokenKind.STRING:
            raise UnsupportedSyntax(f"{token.text} in place of a string")
        text = token.text
        while self.kind is TokenKind.STRING:
            text += self.take().text
        return text

    def number(self) -> str:
        """Read a number."""
        token = self.take()
        if token.kind is not TokenKind.NUMBER:
            raise UnsupportedSyntax(f"{token.text} in place of a number")
        return token.text

    def strings(self) -> list[str]:
        """Read strings in brackets."""
        self.expect("(")
        found = [self.string()]
        while self.accept(","):
            found.append(self.string())
        self.expect(")")
        return found

    def bracket_text(self) -> str:
        """Read numbers in brackets, `(10,2)`; empty if no bracket comes."""
        if not self.accept("("):
            return ""
        found = [self.number()]
        while self.accept(","):
            found.append(self.number())
        self.expect(")")
        return f"({','.join(found)})"

    def charset(self) -> str:
        """Read a character set's name."""
        name = self.name_or_string().lower()
        if name != "binary" and collation_of_charset(name) is None:
            raise UnsupportedSyntax(f"the character set {name}")
        return "utf8" if name == "utf8mb3" else name

    def charset_of_collation(self, collation: str) -> str | None:
        """Return the set of a collation, named as by `plain_collation`; None: it fits several (MariaDB's `uca1400_ai_ci`), and leaves
        the set as it is.
        """
        name = collation.partition("_")[0]
        if name in ("uca1400", "default"):
            return None
        if name != "binary" and collation_of_charset(name) is None:
            raise UnsupportedSyntax(f"the collation {collation}")
        return name

    def value(self) -> str | None:
        """Read a default's value, in the form of `default_text`; None for NULL."""
        start = self.peek()
        if self.accept("("):
            self.at -= 1
            self.skip_brackets()
        elif self.word() in ("+", "-"):
            sign = self.take().text
            number = self.number()
            self._no_operator()
            return number_default(sign.replace("+", "") + number)
        elif self.kind is TokenKind.STRING:
            text = self.string()
            self._no_operator()
            return text_default(text)
        elif self.kind is TokenKind.NUMBER:
            number = self.number()
            self._no_operator()
            return number_default(number)
        elif self.word() in _LITERALS:
            word = self.take().upper
            self._no_operator()
            return None if word == "NULL" else str(int(word == "TRUE"))
        elif (
            self.kind is TokenKind.WORD
            and self.peek(1).kind is TokenKind.STRING
            and (self.word() in _INTRODUCED or self.word().startswith("_"))
        ):
            word = self.take().upper
            text = self.string()
            self._no_operator()
            if word not in ("B", "X"):
                return introduced_default(word, text, self._since(start))
        elif self.word().startswith("_") and self.peek(1).kind is TokenKind.NUMBER:
            self.at += 2
            self._no_operator()
            return expression_default(self._since(start))
        elif self.accept("NEXT", "VALUE", "FOR") or self.accept("PREVIOUS", "VALUE", "FOR"):
            self.table_name()
            self.note_read(start.start, f"the default {start.text}", start.upper, "VALUE", "FOR")
            return expression_default(self._since(start))
        elif self.kind is TokenKind.WORD and self.word() != "NEXT":
            word = self.take().upper
            if self.word() == "(":
                self.skip_brackets()
            if word not in NOW_FUNCTIONS:  # a column or a function: MariaDB accepts these without brackets
                self._no_operator()
                return expression_default(self._since(start))
        else:
            raise UnsupportedSyntax(f"the default {self.text()}")
        self._no_operator()
        return self._since(start)

    def _since(self, start: SqlToken) -> str:
        """Return the text of the statement from a token on."""
        return self._text[start.start : self.tokens[self.at - 1].stop]

    def _no_operator(self) -> None:
        if self.word() in _OPERATORS:
            raise UnsupportedSyntax("an expression without brackets")

    def key_parts(self) -> tuple[KeyPart, ...]:
        """Read the columns of a key, in brackets."""
        self.expect("(")
        found: list[KeyPart] = []
        while True:
            if self.word() == "(":
                self.skip_brackets()
                found.append(KeyPart("", None, self.stop_of_last()))
            else:
                name, stop = self.column_name(), self.stop_of_last()
                prefix = self.bracket_text()[1:-1]
                if prefix and not prefix.isdecimal():
                    raise UnsupportedSyntax(f"{prefix} in place of a length")
                found.append(KeyPart(name, int(prefix) if prefix else None, stop))
            start = self.start_of_next()
            if self.accept("WITHOUT", "OVERLAPS"):
                self.attribute("WITHOUT OVERLAPS", start)
                self.note_read(start, "a period", "WITHOUT", "OVERLAPS")
            if not self.accept("ASC"):
                self.accept("DESC")
            if self.accept(")"):
                return tuple(found)
            self.expect(",")

    def key_columns(self) -> tuple[str, ...]:
        """Read the columns that brackets name."""
        return tuple(part.name for part in self.key_parts())

    def references(self, name: str = "", *, of_column: bool) -> ForeignKey:
        """Read REFERENCES and what follows, without the columns that are before it. A rule may be UNKNOWN_RULE."""
        start, said = self.at, read_references(self, self.table_schema)
        keys = self.written.inline if of_column else self.written.foreign_keys
        keys.append(WrittenForeignKey(name, said))
        columns: tuple[str, ...] = ()
        try:
            columns = tuple(map(self.text_of, said.columns))
        except UnsupportedSyntax as error:
            self.note(start, str(error))
        forgets = said.before_match is not None and self.dialect.match_forgets_rules(alters=self.alters)
        on_delete, on_update = (
            self.dialect.foreign_key_rule("" if forgets else UNKNOWN_RULE if rule and forgets is None else rule)
            for rule in (said.on_delete, said.on_update)
        )
        return ForeignKey((), *said.parent, columns, on_delete, on_update)
