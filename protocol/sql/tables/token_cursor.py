"""A cursor over the tokens of a statement. An unexpected token makes the statement an unsupported one."""

from abc import abstractmethod

from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.tables.source_table import TableName


class TokenCursor:
    """`schema` is the default database; names without one are in it. All methods but those that only look raise UnsupportedSyntax for
    an unexpected token.
    """

    def __init__(self, tokens: list[SqlToken], schema: str) -> None:
        self.tokens = tokens
        self.at = 0
        self.schema = schema

    # ---- looking ----

    def peek(self, ahead: int = 0) -> SqlToken:
        """Return a token further on; after the end the last one."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def word(self, ahead: int = 0) -> str:
        """Return the keyword, in upper case, or the symbol; "" for anything else."""
        return self.peek(ahead).upper

    @property
    def kind(self) -> TokenKind:
        """The kind of the next token."""
        return self.peek().kind

    @property
    def ended(self) -> bool:
        """True if nothing follows."""
        return self.kind is TokenKind.END or (self.word() == ";" and self.peek(1).kind is TokenKind.END)

    @abstractmethod
    def text_of(self, token: SqlToken) -> str:
        """Return the text of a name or a string. Raises: UnsupportedSyntax."""

    # ---- taking ----

    def take(self) -> SqlToken:
        """Take the next token of any kind."""
        token = self.peek()
        if token.kind is TokenKind.END:
            raise UnsupportedSyntax("a statement that ends early")
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these keywords or symbols if they come next, side by side."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> bool:
        """Take as many of these words as come next."""
        found = False
        while self.word() in words:
            self.at += 1
            found = True
        return found

    def expect(self, *words: str) -> None:
        """Take these keywords or symbols, which must come."""
        if not self.accept(*words):
            raise UnsupportedSyntax(f"{self.peek().text} in place of {' '.join(words)}")

    def name(self) -> str:
        """Read an identifier."""
        token = self.take()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or not token.text:
            raise UnsupportedSyntax(f"{token.text} in place of a name")
        return self.text_of(token)

    def name_or_string(self) -> str:
        """Read an identifier or a string."""
        return self.text_of(self.take()) if self.kind is TokenKind.STRING else self.name()

    def table_name(self) -> TableName:
        """Read (schema, table). A `.*` after it, as in the list of a DELETE of several tables, is not part of it."""
        name = self.name()
        if self.word(1) != "*" and self.accept("."):
            return name, self.name()
        if not self.schema:
            raise UnsupportedSyntax("a table without a schema")
        return self.schema, name

    def skip_brackets(self) -> None:
        """Skip the content of brackets."""
        self.expect("(")
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.take().upper, 0)
