"""All checks of readiness, and what a statement is found to be."""

from typing import Final

from relay.audit.readiness import defined_tables as tables
from relay.audit.readiness import events, modes, removed, table_definitions, unsafe, view_checks
from relay.audit.readiness.check import Check, Effect, StatementCheck
from relay.audit.readiness.logged_statement import LoggedStatement

NOT_EXAMINED: Final = Check(
    "statement_not_examined",
    Effect.TO_KNOW,
    "Statements of which only the beginning was examined",
    "every version",
    "They have more than 50,000 words and signs even without their literals.",
    "this audit",
    ("mysql", "mariadb"),
)
STATEMENTS: Final[tuple[StatementCheck, ...]] = (
    *removed.CHECKS,
    *table_definitions.CHECKS,
    *unsafe.CHECKS,
    StatementCheck(modes.MODE_GONE, lambda statement: bool(modes.gone_modes(statement.sql_mode))),
    StatementCheck(NOT_EXAMINED, lambda statement: statement.too_long),
)
ALL: Final[tuple[Check, ...]] = (
    view_checks.VIEW_STOPS,
    *(one.check for one in STATEMENTS),
    *events.CHECKS,
    events.NO_GTIDS,
    tables.OLD_TEMPORAL,
    tables.OLD_DECIMAL,
    tables.OLD_VARCHAR,
    tables.COMPRESSED_COLUMNS,
    tables.NO_PRIMARY_KEY,
    tables.PRIMARY_KEY_UNKNOWN,
    tables.SYSTEM_TABLE_ROWS,
    tables.ZERO_DATE_ROWS,
    tables.MIXED_ENGINES,
    view_checks.LOGGED_CHANGES,
    view_checks.OLDER_TABLES,
    view_checks.VIEW_UNKNOWN,
)
BY_NAME: Final = {check.name: check for check in ALL}
ORDER: Final = (Effect.STOPS, Effect.MAY_DIFFER, Effect.TO_KNOW)


def found_in(statement: LoggedStatement, family: str) -> list[Check]:
    """The checks that the statement gives reason for, on newer servers of `family`."""
    return [one.check for one in STATEMENTS if one.check.concerns_servers(family) and one.finds(statement)]


def shown(text: str, limit: int = 160) -> str:
    """A statement as a report may show it: without what its strings hold, and short."""
    from protocol.statements.session.secrets import without_strings

    line = " ".join(without_strings(text).split())
    return line if len(line) <= limit else f"{line[:limit]}…"
