"""Walks the tokens of a statement. What does not stand where it should makes the statement one that nobody is sure of."""

from typing import Final

from protocol.binlog.schema.column_charsets import collation_of_charset
from relay.schema_history.tables.ddl_tokens import NotSure, SqlToken, TokenKind
from relay.schema_history.tables.source_table import ForeignKey

_OPERATORS: Final = frozenset("+-*/%|&^<>=!.:~")
_LITERALS: Final = frozenset(("NULL", "TRUE", "FALSE"))
_INTRODUCED: Final = frozenset(("N", "B", "X", "DATE", "TIME", "TIMESTAMP"))


class DdlReader:
    """`schema`: the default database; names without one are in it. Every method raises NotSure for what it does not know."""

    def __init__(self, tokens: list[SqlToken], text: str, schema: str, sql_mode: int, mariadb: bool) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0
        self.schema = self.table_schema = schema
        """`table_schema`: of the table that is defined; foreign keys without a schema are in it."""
        self.sql_mode = sql_mode
        self.mariadb = mariadb

    # ---- looking ----

    def _peek(self, ahead: int = 0) -> SqlToken:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    @property
    def kind(self) -> TokenKind:
        """Of the token that comes next."""
        return self._peek().kind

    def word(self, ahead: int = 0) -> str:
        """The keyword, in upper case, or symbol; empty for anything else."""
        return self._peek(ahead).upper

    def text(self) -> str:
        """The next token as it stands."""
        return self._peek().text

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.kind is TokenKind.END or (self.word() == ";" and self._peek(1).kind is TokenKind.END)

    # ---- taking ----

    def next(self) -> SqlToken:
        """Takes a token, whatever it is."""
        token = self._peek()
        if token.kind is TokenKind.END:
            raise NotSure("a statement that ends early")
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these keywords or symbols if they come next."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Takes them; they must come."""
        if not self.accept(*words):
            raise NotSure(f"{self.text()} in place of {' '.join(words)}")

    def end(self) -> None:
        """Nothing may follow."""
        if not self.ended:
            raise NotSure(f"{self.text()} behind the end of what is known")

    def name(self) -> str:
        """An identifier."""
        token = self.next()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or not token.text:
            raise NotSure(f"{token.text} in place of a name")
        return token.text

    def column_name(self) -> str:
        """A column's name; a table's and schema's before it are left out."""
        name = self.name()
        while self.accept("."):
            name = self.name()
        return name

    def table_name(self) -> tuple[str, str]:
        """(schema, table)."""
        name = self.name()
        if self.accept("."):
            return name, self.name()
        if not self.schema:
            raise NotSure("a table without a schema")
        return self.schema, name

    def string(self) -> str:
        """A string, of one or more pieces."""
        token = self.next()
        if token.kind is not TokenKind.STRING:
            raise NotSure(f"{token.text} in place of a string")
        text = token.text
        while self.kind is TokenKind.STRING:
            text += self.next().text
        return text

    def number(self) -> str:
        """A number."""
        token = self.next()
        if token.kind is not TokenKind.NUMBER:
            raise NotSure(f"{token.text} in place of a number")
        return token.text

    def word_or_string(self) -> str:
        """An identifier or a string."""
        return self.string() if self.kind is TokenKind.STRING else self.name()

    def strings(self) -> list[str]:
        """Strings in brackets."""
        self.expect("(")
        found = [self.string()]
        while self.accept(","):
            found.append(self.string())
        self.expect(")")
        return found

    def bracket_text(self) -> str:
        """Numbers in brackets, `(10,2)`; empty where no bracket comes."""
        if not self.accept("("):
            return ""
        found = [self.number()]
        while self.accept(","):
            found.append(self.number())
        self.expect(")")
        return f"({','.join(found)})"

    def skip_brackets(self) -> None:
        """An expression in brackets."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.next()
            depth += {"(": 1, ")": -1}.get(token.upper, 0)

    def charset(self) -> str:
        """A character set's name."""
        name = self.word_or_string().lower()
        if name != "binary" and collation_of_charset(name) is None:
            raise NotSure(f"the character set {name}")
        return "utf8" if name == "utf8mb3" else name

    def charset_of_collation(self, collation: str) -> str | None:
        """The set that a collation is of; None: it fits several (MariaDB's `uca1400_ai_ci`), and leaves the set as it is."""
        name = collation.partition("_")[0]
        if name in ("uca1400", "default"):
            return None
        if name == "utf8mb3":
            return "utf8"
        if name != "binary" and collation_of_charset(name) is None:
            raise NotSure(f"the collation {collation}")
        return name

    def value(self) -> str | None:
        """A default's value: a literal without its quotation marks, else the expression as it stands; None for NULL."""
        start = self._peek()
        if self.accept("("):
            self._at -= 1
            self.skip_brackets()
        elif self.word() in ("+", "-"):
            sign = self.next().text
            number = self.number()
            self._no_operator()
            return sign.replace("+", "") + number
        elif self.kind is TokenKind.STRING:
            text = self.string()
            self._no_operator()
            return text
        elif self.kind is TokenKind.NUMBER:
            number = self.number()
            self._no_operator()
            return number
        elif self.word() in _LITERALS:
            word = self.next().upper
            self._no_operator()
            return None if word == "NULL" else str(int(word == "TRUE"))
        elif (
            self.kind is TokenKind.WORD
            and self._peek(1).kind is TokenKind.STRING
            and (self.word() in _INTRODUCED or self.word().startswith("_"))
        ):
            word = self.next().upper
            text = self.string()
            self._no_operator()
            if word not in ("B", "X"):
                return text
        elif self.kind is TokenKind.WORD and self.word() != "NEXT":
            self.next()
            if self.word() == "(":
                self.skip_brackets()
        else:
            raise NotSure(f"the default {self.text()}")
        self._no_operator()
        return self._text[start.start : self._tokens[self._at - 1].stop]

    def _no_operator(self) -> None:
        if self.word() in _OPERATORS:
            raise NotSure("an expression without brackets")

    def key_columns(self) -> tuple[str, ...]:
        """The columns of a key, in brackets; one of an expression is called ''."""
        self.expect("(")
        found = []
        while True:
            if self.word() == "(":
                self.skip_brackets()
                found.append("")
            else:
                found.append(self.column_name())
                self.bracket_text()
            if not self.accept("ASC"):
                self.accept("DESC")
            if self.accept(")"):
                return tuple(found)
            self.expect(",")

    def references(self) -> ForeignKey:
        """REFERENCES and what follows; without the columns that are before it."""
        self.expect("REFERENCES")
        default, self.schema = self.schema, self.table_schema
        schema, table = self.table_name()
        self.schema = default
        columns = self.key_columns() if self.word() == "(" else ()
        while True:
            if self.accept("MATCH"):
                self.next()
            elif self.word() == "ON" and self.word(1) in ("DELETE", "UPDATE"):
                self._at += 2
                if self.next().upper in ("SET", "NO"):
                    self.next()
            else:
                return ForeignKey((), schema, table, columns)
