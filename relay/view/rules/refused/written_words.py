"""The words of a statement, with the edits that a newer server needs."""

from typing import Final

from protocol.sql.edits import TokenEdits
from protocol.sql.lexer import with_variables
from protocol.sql.sql_words import SqlWords
from relay.view.rules.statement.logged_query import LoggedQuery

_LEAST_FOLDED: Final = 4096


class WrittenStatement(SqlWords, TokenEdits):
    """The words of a statement, with the edits that a newer server needs."""

    def __init__(self, query: LoggedQuery) -> None:
        self.query = query
        folds = len(query.raw) >= _LEAST_FOLDED and b"\\N" not in query.raw
        tokens = query.read_as(folds_rows=True).tokens if folds else query.tokens
        SqlWords.__init__(self, with_variables(tokens) if b"@" in query.raw else tokens)
        TokenEdits.__init__(self, query.raw, self.words)

    def has_name(self, name: str) -> bool:
        """Return whether a word, quoted or not, is this name."""
        if name.encode() not in self.query.raw.lower():
            return False
        return any(self.name(index) == name for index in range(len(self.words)))
