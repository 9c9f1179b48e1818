"""Walks the tokens of a statement. What does not stand where it should makes the statement one that nobody is sure of."""

from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.tables.source_table import TableName


class TokenCursor:
    """`schema`: the default database; names without one are in it. Every method but those that look raises UnsupportedSyntax for
    what it
    does not know."""

    def __init__(self, tokens: list[SqlToken], schema: str) -> None:
        self.tokens = tokens
        self.at = 0
        self.schema = schema

    # ---- looking ----

    def peek(self, ahead: int = 0) -> SqlToken:
        """A token further on; behind the end the last one."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def word(self, ahead: int = 0) -> str:
        """The keyword, in upper case, or the symbol; "" for anything else."""
        return self.peek(ahead).upper

    @property
    def kind(self) -> TokenKind:
        """Of the token that comes next."""
        return self.peek().kind

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.kind is TokenKind.END or (self.word() == ";" and self.peek(1).kind is TokenKind.END)

    def text_of(self, token: SqlToken) -> str:
        """What a name or a string says."""
        return token.text

    # ---- taking ----

    def take(self) -> SqlToken:
        """The next token, whatever it is."""
        token = self.peek()
        if token.kind is TokenKind.END:
            raise UnsupportedSyntax("a statement that ends early")
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these keywords or symbols if they come next, side by side."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> bool:
        """Takes as many of these words as come next."""
        found = False
        while self.word() in words:
            self.at += 1
            found = True
        return found

    def expect(self, *words: str) -> None:
        """Takes them; they must come."""
        if not self.accept(*words):
            raise UnsupportedSyntax(f"{self.peek().text} in place of {' '.join(words)}")

    def name(self) -> str:
        """An identifier."""
        token = self.take()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or not token.text:
            raise UnsupportedSyntax(f"{token.text} in place of a name")
        return self.text_of(token)

    def name_or_string(self) -> str:
        """An identifier or a string."""
        return self.text_of(self.take()) if self.kind is TokenKind.STRING else self.name()

    def table_name(self) -> TableName:
        """(schema, table)."""
        name = self.name()
        if self.accept("."):
            return name, self.name()
        if not self.schema:
            raise UnsupportedSyntax("a table without a schema")
        return self.schema, name

    def skip_brackets(self) -> None:
        """What stands in brackets."""
        self.expect("(")
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.take().upper, 0)
