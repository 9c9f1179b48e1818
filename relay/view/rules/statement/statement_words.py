"""Walks the words of a logged statement. What does not stand where it should makes it one that nobody is sure of."""

from relay.schema_history.tables.ddl_tokens import NotSure, SqlToken, TokenKind
from relay.schema_history.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery


class StatementWords:
    """A cursor over the words of `query`. Every method but those that look raises NotSure for what it does not know."""

    def __init__(self, query: LoggedQuery) -> None:
        self.query = query
        self.tokens = query.tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> SqlToken:
        """A token further on; behind the end the last one."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def word(self, ahead: int = 0) -> str:
        """The keyword, in upper case, or the symbol; "" for anything else."""
        return self.peek(ahead).upper

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.peek().kind is TokenKind.END or (self.word() == ";" and self.peek(1).kind is TokenKind.END)

    def take(self) -> SqlToken:
        """The next token, whatever it is."""
        token = self.peek()
        if token.kind is TokenKind.END:
            raise NotSure("a statement that ends early")
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these words if they come next, side by side."""
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
            raise NotSure(f"{self.peek().text} in place of {' '.join(words)}")

    def name(self) -> str:
        """An identifier."""
        token = self.take()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or not token.text:
            raise NotSure(f"{token.text} in place of a name")
        return self.query.name(token)

    def name_or_string(self) -> str:
        """An identifier or a string."""
        token = self.take()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING):
            raise NotSure(f"{token.text} in place of a name")
        return self.query.name(token)

    def table_name(self) -> TableName:
        """(schema, table)."""
        name = self.name()
        if self.accept("."):
            return name, self.name()
        if not self.query.schema:
            raise NotSure("a table without a schema")
        return self.query.schema, name

    def skip_brackets(self) -> None:
        """What stands in brackets."""
        self.expect("(")
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.take().upper, 0)
