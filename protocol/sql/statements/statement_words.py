"""Walks the words of a statement."""

from protocol.sql.lexer import SqlToken
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.tables.token_cursor import TokenCursor


class StatementWords(TokenCursor):
    """A cursor over the words of `query`: names are read in the character set of the client that wrote them."""

    def __init__(self, query: SqlStatement) -> None:
        super().__init__(query.tokens, query.schema)
        self.query = query

    def text_of(self, token: SqlToken) -> str:
        """What a name or a string says. Raises: UnsupportedSyntax where it is not of its character set."""
        return self.query.name(token)
