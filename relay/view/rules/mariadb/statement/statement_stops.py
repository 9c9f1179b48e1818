"""Why a statement of MariaDB cannot be kept for MySQL: each reason with its words."""

from typing import Final, NoReturn

from protocol.sql.tables.source_table import TableName
from relay.view.rules.group import CannotBeKept, StopReason
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.stop_reasons import shown

SYNTAX_ERROR: Final = 1064
NO_SUCH_FUNCTION: Final = 1305
NO_SUCH_TABLE: Final = 1146
NO_SUCH_ENGINE: Final = 1286
TABLE_UNKNOWN: Final = "statement_over_unknown_table"
"""May go away by itself: the source may still tell of the table."""
_SKIP: Final = "or skip the group and do by hand on the replicas what it does"


class TableUnknown(CannotBeKept):
    """A statement changes a table of which nobody knows the definition. `table`: its name."""

    def __init__(self, reason: StopReason, table: TableName) -> None:
        super().__init__(reason)
        self.table = table


def _stop(name: str, text: str, error: int, advice: str) -> NoReturn:
    raise CannotBeKept(StopReason(name, text, error, advice))


def clause_unknown(context: StatementContext, query: LoggedQuery, clause: str, error: int = SYNTAX_ERROR) -> NoReturn:
    """A clause of a definition that replicas would stop at."""
    _stop(
        "definition_not_in_target",
        f"{context.target_title} does not know {clause}: {shown(query)}",
        error,
        f"define it on the source without that; {_SKIP}",
    )


def clause_ignored(context: StatementContext, query: LoggedQuery, clause: str, effect: str) -> NoReturn:
    """A clause that replicas would read over in silence."""
    _stop(
        "definition_ignored_by_target",
        f"{context.target_title} reads {clause} and does nothing about it, {effect}: {shown(query)}",
        0,
        f"define it on the source without that; {_SKIP}",
    )


def syntax_unknown(context: StatementContext, query: LoggedQuery, what: str, error: int = SYNTAX_ERROR) -> NoReturn:
    """Words or a function of a statement, a view or a program that replicas would stop at."""
    _stop(
        "statement_not_in_target",
        f"{context.target_title} does not know {what}: {shown(query)}",
        error,
        f"let the source write rows (binlog_format=ROW), or write it otherwise; {_SKIP}",
    )


def statement_differs(context: StatementContext, query: LoggedQuery, what: str) -> NoReturn:
    """What replicas would take otherwise, in silence."""
    _stop(
        "statement_differs_in_target",
        f"{context.target_title} takes {what} otherwise than the source: {shown(query)}",
        0,
        f"let the source write rows (binlog_format=ROW); {_SKIP}",
    )


def changes_unknown_table(query: LoggedQuery, name: TableName, where: str) -> NoReturn:
    """A statement over a table that nobody knows: it may have columns, keys or collations that are others there."""
    reason = StopReason(
        "statement_over_unknown_table",
        f"whether replicas change the same rows cannot be told, because the definition of {'.'.join(name)}{where} is not known for "
        f"certain: {shown(query)}",
        0,
        "a table from before the archive is known where the relay's account at the MariaDB has PROCESS, TRIGGER and REFERENCES on *.*, "
        "the table has no triggers, and source.record_schema is on; or let the source write rows (binlog_format=ROW); or look at the "
        "table: if it has no columns of UUID, INET4, INET6, no system versioning, no UNIQUE key over BLOB or TEXT, no default of a "
        f"sequence, no triggers, and only collations that MySQL has, name it in the view's `plain_tables`; {_SKIP}",
    )
    raise TableUnknown(reason, name)


def definition_differs(context: StatementContext, query: LoggedQuery, what: str) -> NoReturn:
    """A definition that would make something else of the tables there."""
    _stop(
        "definition_differs_in_target",
        f"{context.target_title} takes {what} otherwise than the source: {shown(query)}",
        0,
        f"bring tables of source and replicas to the same by hand and {_SKIP.partition(' and ')[0].removeprefix('or ')}",
    )


def generated_column_differs(context: StatementContext, query: LoggedQuery, what: str, column: str) -> NoReturn:
    """A generated column, which replicas compute anew for each row."""
    _stop(
        "definition_differs_in_target",
        f"{context.target_title} takes {what} in the generated column {column} otherwise than the source: {shown(query)}",
        0,
        f"write it otherwise at the source; or give the replicas' table a plain column {column} of that type in its place, which "
        "takes the values that the source computed, and skip the group",
    )


def rows_not_in_order(query: LoggedQuery, clause: str, why: str) -> NoReturn:
    """What is done to rows by their place, which is another one on the replicas."""
    _stop(
        "definition_differs_in_target",
        f"{clause} comes to other rows on the replicas, because {why}: {shown(query)}",
        0,
        f"do it at the source by statements that name the rows; {_SKIP}",
    )


def place_not_known(query: LoggedQuery, name: TableName, clause: str) -> NoReturn:
    """The same of a table that nobody knows. Raises: TableUnknown."""
    reason = StopReason(
        "definition_needs_table",
        f"whether {clause} comes to the same rows on the replicas cannot be told, because the table {'.'.join(name)} was made before "
        f"the archive or by a statement that nobody understands: {shown(query)}",
        0,
        "a table from before the archive is known where the relay's account at the MariaDB has PROCESS, TRIGGER and REFERENCES "
        "on *.* and source.record_schema is on; or, if no text in its keys has a collation that only MariaDB has, and no "
        f"column in them the type UUID, name it in the view's `plain_tables`; {_SKIP}",
    )
    raise TableUnknown(reason, name)


def table_not_known(query: LoggedQuery, name: TableName, needed: str) -> NoReturn:
    """Whether a clause with IF [NOT] EXISTS did something depends on a table that nobody knows."""
    _stop(
        "definition_needs_table",
        f"whether {needed} did something cannot be told, because the table {'.'.join(name)} was made before the archive "
        f"or by a statement that nobody understands: {shown(query)}",
        SYNTAX_ERROR,
        f"write it without IF [NOT] EXISTS on the source; {_SKIP}",
    )


def not_readable(query: LoggedQuery, why: str) -> NoReturn:
    """A text that cannot be understood with certainty."""
    _stop(
        "statement_not_readable",
        f"the statement cannot be judged, {why}: {shown(query)}",
        0,
        f"see whether the replicas can run it; {_SKIP}",
    )
