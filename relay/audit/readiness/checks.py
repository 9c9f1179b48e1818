"""All checks of readiness, and their findings for a statement."""

from typing import Final

from protocol.sql.sql_mode import GONE_MODES
from relay.audit.readiness import defined_tables as tables
from relay.audit.readiness import events, removed, table_definitions, unsafe, view_checks
from relay.audit.readiness.check import BOTH, Check, Effect
from relay.audit.readiness.logged_statement import LoggedStatement


def gone_modes(sql_mode: int) -> list[str]:
    """Return the names of the modes in `sql_mode` that no MySQL since 8.0.11 has."""
    return [name for name, bit in GONE_MODES.items() if sql_mode & bit]


# fmt: off
STATEMENTS: Final = (
    *removed.CHECKS,
    *table_definitions.CHECKS,
    *unsafe.CHECKS,
    Check("sql_mode_gone", Effect.TO_KNOW, "Modes that are gone, in the sql_mode of statements", "MySQL 8.0.11 and later",
        "A replica passes over these bits. Programs that set such a mode on the new server get error 1231.",
        "MySQL 8.0 manual, What Is New; a 9.7 replica of 5.6", finds=lambda statement: bool(gone_modes(statement.sql_mode))),
    Check("statement_not_examined", Effect.TO_KNOW, "Statements of which only the beginning was examined", "every version",
        "They have more than 50,000 words and signs even without their literals.",
        "this audit", BOTH, finds=lambda statement: statement.too_long),
)
# fmt: on
ALL: Final[tuple[Check, ...]] = (
    view_checks.VIEW_STOPS,
    *STATEMENTS,
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
    """Return the checks for which the statement gives reason, on newer servers of `family`."""
    return [
        one for one in STATEMENTS if one.concerns_servers(family) and one.finds is not None and one.finds(statement)
    ]


def shown(text: str, limit: int = 160) -> str:
    """Return a statement as a report may show it: without the contents of its strings, and short."""
    from protocol.statements.session.secrets import without_strings

    line = " ".join(without_strings(text).split())
    return line if len(line) <= limit else f"{line[:limit]}…"
