"""SHOW statements for the lists that every server has: privileges, collations, engines, plugins."""

from typing import Final

from protocol.charsets import CHARACTER_SETS, NAMED_COLLATIONS, charset_of_collation
from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import AnswerColumn, Rows, Value
from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.show_conditions import row_filter
from protocol.statements.session.refusals import shown
from protocol.statements.session.session import default_collation, has_collation

_ENGINES: Final = (
    AnswerColumn.text("Engine", 64),
    AnswerColumn.text("Support", 8),
    AnswerColumn.text("Comment", 80),
    *(AnswerColumn.text(name, 3, nullable=True) for name in ("Transactions", "XA", "Savepoints")),
)
_PLUGINS: Final = (
    AnswerColumn.text("Name", 64),
    AnswerColumn.text("Status", 10),
    AnswerColumn.text("Type", 80),
    AnswerColumn.text("Library", 64, nullable=True),
    AnswerColumn.text("License", 80),
)
_COLLATIONS: Final = (
    AnswerColumn.text("Collation", 64),
    AnswerColumn.text("Charset", 64),
    AnswerColumn.number("Id", 11, signed=True),
    AnswerColumn.text("Default", 3),
    AnswerColumn.text("Compiled", 3),
    AnswerColumn.number("Sortlen", 3, signed=True),
    AnswerColumn.text("Pad_attribute", 9),
)
_WITHOUT_PADDING: Final = ("binary", "_0900_")
_MAX_LABEL_BYTES: Final = 256


def show_engines(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW [STORAGE] ENGINES: there are none here."""
    return Rows(_ENGINES, ())


def show_plugins(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW PLUGINS: there are none here."""
    return Rows(_PLUGINS, ())


def show_collations(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW COLLATION [LIKE 'pattern' | WHERE ...] with those in which clients can be answered, if their names are known."""
    facts = statement.session.facts
    columns = _COLLATIONS if facts.is_mysql_8 else _COLLATIONS[:-1]
    wanted = row_filter(statement, captured[0], [column.name for column in columns]).search(statement.session.effort)
    rows: list[tuple[Value, ...]] = []
    for name, number in sorted(NAMED_COLLATIONS.items()):
        if not has_collation(name, facts):
            continue
        charset = charset_of_collation(number)
        is_default = "Yes" if default_collation(CHARACTER_SETS[charset.name], facts) == number else ""
        padding = "NO PAD" if any(part in name for part in _WITHOUT_PADDING) else "PAD SPACE"
        row = (name, name.partition("_")[0], number, is_default, "Yes", 1, padding)[: len(columns)]
        if wanted.accepts(row):
            rows.append(row)
    return Rows(columns, tuple(rows))


def show_grants(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW GRANTS [FOR CURRENT_USER[()]] with an account's rights here, in the words of a server.

    Raises: StatementRefused (1141) for the grants of any other account.
    """
    session, facts = statement.session, statement.session.facts
    tokens = captured[0]
    words = [token.text.upper() for token in tokens]
    if words and words not in (["FOR", "CURRENT_USER"], ["FOR", "CURRENT_USER", "(", ")"]):
        if words[0] != "FOR" or len(words) == 1:
            raise statement.refuse(tokens)
        whom = statement.source(tokens[1:])
        raise StatementRefused(
            ErrorCode.ER_NONEXISTING_GRANT, f"There is no such grant defined for user {shown(whom, 80)}: only your own"
        )
    privileges = ["REPLICATION SLAVE", "REPLICATION CLIENT"]
    if facts.is_mariadb and facts.version_numbers >= (10, 5):
        privileges = ["REPLICATION SLAVE", "BINLOG MONITOR", "SLAVE MONITOR"]
    if session.is_admin:
        privileges = ["RELOAD", "PROCESS", "SUPER", *privileges]
    quote = "`" if facts.is_mysql_8 or (facts.is_mariadb and facts.version_numbers >= (10, 4)) else "'"
    account = "@".join(quote + part + quote for part in (session.user, session.account_host))
    label = shown(f"Grants for {session.user}@{session.account_host}", _MAX_LABEL_BYTES)
    return Rows((AnswerColumn.text(label, 1024),), ((f"GRANT {', '.join(privileges)} ON *.* TO {account}",),))
