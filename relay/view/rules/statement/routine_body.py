"""The body of a trigger, a function or a procedure: the tables that it changes, and the routines that it calls.

Such bodies contain no prepared statements, and no definitions except of temporary tables: their text says everything.
"""

from collections.abc import Sequence
from typing import Final

from protocol.errors import ProtocolError
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.statements.named_tables import called_routines, may_write_several, perhaps_written_tables
from protocol.sql.statements.statement import SqlStatement, StatementText
from relay.source_tables.programs import BodyChange, RoutineBody
from relay.view.rules.statement.logged_query import is_word

_CHANGES: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE")
# The words before such a word that begins no statement: FOR UPDATE, ON DUPLICATE KEY UPDATE, ON DELETE, AFTER INSERT.
_NO_STATEMENT: Final = ("FOR", "KEY", "ON", "AFTER", "BEFORE")


def read_routine_body(query: SqlStatement, tokens: Sequence[SqlToken], schema: str) -> RoutineBody:
    """Return the body in the words `tokens` of the statement `query`, from its first word on. `schema` is that of names without one.

    A change whose tables are unknown is left out: a server that reads it in the same way refuses it. Raises: UnsupportedSyntax.
    """
    changes: dict[BodyChange, None] = {}
    for index, token in enumerate(tokens):
        if not is_word(token, *_CHANGES) or tokens[index + 1].upper == "(":
            continue
        if index and (tokens[index - 1].upper in (".", *_NO_STATEMENT)):
            continue
        if token.upper == "REPLACE" and is_word(tokens[index + 1], "SELECT", "AS"):
            continue
        one = _statement(query, tokens, index, schema)
        try:
            changes[change_of(one, token.upper)] = None
        except (UnsupportedSyntax, ProtocolError):
            continue
    whole = _slice(query, tokens[0], tokens, len(tokens) - 1, schema) if len(tokens) > 1 else None
    return RoutineBody(tuple(changes), tuple(called_routines(whole)) if whole is not None else ())


def change_of(query: SqlStatement, verb: str) -> BodyChange:
    """Return the statement's own change. `verb` is that of the change; that of LOAD DATA differs from the statement's.

    Raises: UnsupportedSyntax.
    """
    on_duplicate = verb == "INSERT" and any(is_word(token, "DUPLICATE") for token in query.tokens)
    return BodyChange(verb, perhaps_written_tables(query), on_duplicate, may_write_several(query))


def _statement(query: SqlStatement, tokens: Sequence[SqlToken], at: int, schema: str) -> SqlStatement:
    """Return the statement of the body that begins at the token `at`."""
    stop = at
    while tokens[stop].kind is not TokenKind.END and tokens[stop].upper != ";":
        stop += 1
    return _slice(query, tokens[at], tokens, stop, schema)


def _slice(query: SqlStatement, first: SqlToken, tokens: Sequence[SqlToken], stop: int, schema: str) -> SqlStatement:
    raw = query.raw[first.start : tokens[stop - 1].stop]
    return StatementText(raw, schema, query.sql_mode, query.server_version, query.charset)
