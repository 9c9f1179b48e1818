"""Foreign keys with parts in comments for servers, `/*!50000 … */`: InnoDB of MySQL before 8.0 reads keys from the text of a definition
without any comments (tried: 5.6.24), newer servers execute the comments' content (tried: 9.7.4)."""

from typing import Final

from protocol.sql.lexer import ReadAs, SqlToken, sql_text, tokens_inside
from protocol.sql.server_functions import NOW_FUNCTIONS
from protocol.sql.tables.ddl_statement import TableDefinition
from relay.view.rules.statement.logged_query import LoggedQuery, is_word

_READS_ALL: Final = "9.99.99"
"""A version that reads the content of comments for any server."""


def has_commented_keys(query: LoggedQuery, made: TableDefinition) -> bool:
    """Return whether a word of a FOREIGN KEY is in such a comment, in the definition that the query is, as read. Raises:
    UnsupportedSyntax.

    REFERENCES after a column does not count: before 9.0 servers ignore it.
    """
    if b"/*!" not in query.raw:
        return False
    read = sql_text(query.text, ReadAs(_READS_ALL, query.sql_mode))
    tokens = read.tokens
    commented = tokens_inside(tokens, (one for one in read.comments if one.is_read))
    inline = {token.start for key in made.written.inline for token in key.references.tokens}
    keys = [_range_of_key(query.tokens, key.references.tokens) for key in made.written.foreign_keys]
    return any(
        tokens[at].start not in inline and (_is_of_key(tokens, at) or any(tokens[at].start in one for one in keys))
        for at in commented
    )


def _is_of_key(tokens: list[SqlToken], at: int) -> bool:
    """Return whether the word always belongs to a foreign key."""
    if is_word(tokens[at], "ON") and is_word(tokens[at + 1], "DELETE", "UPDATE"):
        return not is_word(tokens[at + 2], *NOW_FUNCTIONS)
    return is_word(tokens[at], "FOREIGN", "REFERENCES", "MATCH", "CASCADE")


def _range_of_key(tokens: list[SqlToken], references: tuple[SqlToken, ...]) -> range:
    """Return the offsets in the text from CONSTRAINT or FOREIGN of a key to its end."""
    at = tokens.index(references[0])
    while not is_word(tokens[at], "FOREIGN"):
        at -= 1
    begin = next((before for before in (at - 1, at - 2) if is_word(tokens[before], "CONSTRAINT")), at)
    return range(tokens[begin].start, references[-1].stop)
