"""A reason for which a view stops, and the exception with which rules raise it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.binlog.statement_text import one_line
from protocol.errors import RelayError
from protocol.sql.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery

SKIP: Final = "or make the change on the replicas by hand, then `view skip`"
"""The last way to continue, which ends an advice."""
KEEP_ENGINES: Final = 'use a view with engines = "keep"'
TO_INNODB: Final = 'use a view with engines = "innodb"'
LOG_ROWS: Final = "set binlog_format = ROW at the source"
ROWS_FROM_REPLICA: Final = (
    "follow a replica of the source's own version that has binlog_format = ROW and log_slave_updates: its binlogs have rows for every "
    "statement"
)
NEWER_RELAY: Final = "use a newer binlog-relay"
VERIFY: Final = "run `binlog-relay archive verify --deep`, and `archive repair` to fetch the file from the source again"
_SHOWN_CHARACTERS: Final = 160


class StopReason(NamedTuple):
    """The reason why a view cannot continue before a transaction. `name` is snake_case, as in docs/ERRORS.md. `text` says what is wrong
    with which statement or table, in one sentence. `error` is the number that a replica would stop with; 0: it would not stop, and
    would differ silently. `advice` contains the ways to continue."""

    name: str
    text: str
    error: int
    advice: str

    @property
    def message(self) -> str:
        """The text and the ways to continue, as sentences."""
        text = self.text if self.text.endswith(".") or not self.text else f"{self.text}."
        advice = self.advice and f"{self.advice[0].upper()}{self.advice[1:].removesuffix('.')}."
        return f"{text} {advice}".strip()


GiveUp = Callable[[TableName | None], Callable[[], None]]


class Untranslatable(RelayError):
    """The rules cannot translate the transaction so that replicas end with the source's data."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.text)
        self.reason = reason


class TableUnknown(Untranslatable):
    """A statement changes the table `table`, whose definition is not known; the source may still report it."""

    def __init__(self, reason: StopReason, table: TableName) -> None:
        super().__init__(reason)
        self.table = table


class TableWanted(TableUnknown):
    """A statement might be translated if the columns of the table were known. `give_up` notes that they cannot be, for None those of
    all tables, until the function that it returns is called.
    """

    def __init__(self, reason: StopReason, table: TableName, give_up: GiveUp) -> None:
        super().__init__(reason, table)
        self.give_up = give_up


def stop(name: str, error: int, text: str, *ways: str) -> Untranslatable:
    """Return the exception to raise, with the `name`, `error` and `text` of its StopReason; `ways` to continue begin with the best."""
    return Untranslatable(StopReason(name, text, int(error), "; ".join(ways)))


def shown(statement: LoggedQuery | bytes | None) -> str:
    """Return a statement's beginning for a message, without the contents of its strings; None: rows."""
    from protocol.statements.session.secrets import without_strings

    if statement is None:
        return "rows"
    raw = statement if isinstance(statement, bytes) else statement.raw
    return without_strings(one_line(raw, _SHOWN_CHARACTERS))


def named(*tables: TableName) -> str:
    """Return the names of tables for a message."""
    return ", ".join(map(".".join, tables))
