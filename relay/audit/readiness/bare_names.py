"""Reserved words that a statement uses as bare names: a syntax error on a server that reserves them."""

from collections.abc import Container, Iterator
from typing import Final

from protocol.sql.lexer import TokenKind
from relay.audit.readiness.logged_statement import LoggedStatement

# The old grammar has these as keywords after the words listed with each.
_KEYWORD_AFTER: Final = {
    "FUNCTION": {"CREATE", "DROP", "ALTER", "AGGREGATE", "SHOW", "EXISTS", "ON", "STATUS", "REPLACE"},
    "CUBE": {"WITH"},
    "ROW": {"EACH"},
    "OFFSET": {"?"},
    "GENERATED": {"AS"},
}
# Names follow these words; the second list has the words or symbols after a name.
_BEFORE_NAMES: Final = frozenset((
    "TABLE", "INTO", "UPDATE", "FROM", "JOIN", "EXISTS", "COLUMN", "ADD", "CHANGE", "MODIFY", "DROP", "BY", "SET", "WHERE",
    "AND", "OR", "ON", "SELECT", "KEY", "INDEX", "AS", "ORDER", "HAVING", "NOT", "DISTINCT", "LIKE", "RENAME", "TO", "DATABASE",
    "SCHEMA", "USE", "VIEW", "PROCEDURE", "TRIGGER", "EVENT", "REFERENCES", "CONSTRAINT", "IGNORE", "UNIQUE", "FUNCTION",
    "AFTER", "BEFORE", "IN", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "DELAYED", "REPLACE", "(", ",", "=", "+", "-", "*", "/",
    "<", ">", "%", "|", "&", "!",
))  # fmt: skip


def used_as_names(statement: LoggedStatement, words: Container[str]) -> Iterator[str]:
    """Yield the words among `words` that the statement uses as names without quotes."""
    for index, token in enumerate(statement.words):
        word = token.upper
        if token.kind is not TokenKind.WORD or word not in words:
            continue
        before, following = statement.word(index - 1), statement.word(index + 1)
        if before == ".":
            continue  # After a dot every word is a name, to all servers
        if word == "FUNCTION" and (before in _KEYWORD_AFTER["FUNCTION"] or statement.object_kind == "FUNCTION"):
            continue
        if before in _KEYWORD_AFTER.get(word, ()):
            continue
        if word == "ROW" and following in ("(", "_FORMAT", "BEGIN"):
            continue
        if word == "OFFSET" and statement.words[index - 1].kind is TokenKind.NUMBER:
            continue
        if following == "." or before in _BEFORE_NAMES:
            yield word
