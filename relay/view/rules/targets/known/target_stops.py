"""Why a group of a newer source cannot be kept for an older target."""

from typing import Final, NoReturn

from protocol.binlog.statement_text import one_line
from relay.view.rules.group import CannotBeKept, StopReason
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import collation_name

# What 5.6.24 stops with, where it meets one untranslated.
SYNTAX_ERROR: Final = 1064
NO_SUCH_FUNCTION: Final = 1305
NO_SUCH_COLLATION: Final = 22
NO_CONVERSION: Final = 1677
CREATE_SELECT: Final = 1786
CORRUPT_EVENT: Final = 1594
_SKIP: Final = "or skip the group and do by hand on the replicas what it does"


def stop(name: str, text: str, error: int, advice: str) -> NoReturn:
    """Raises: CannotBeKept."""
    raise CannotBeKept(StopReason(name, text, error, advice))


def quoted(text: bytes) -> str:
    """A statement's beginning, for a message."""
    return one_line(text, 120)


def collation_missing(collation: int, text: bytes, target: Target) -> NoReturn:
    """The statement compares, or defines columns, by a collation that the target lacks."""
    name = collation_name(collation)
    stop(
        "collation_not_in_target",
        f"{target.title} has no collation {name}, which this needs: {quoted(text)}",
        NO_SUCH_COLLATION,
        f"name one that it has in the view's `collations`, such as {collation} = 45 (utf8mb4_general_ci): texts that are equal, "
        f"and their order, are not the same there; {_SKIP}",
    )


def collation_mapped_wrong(collation: int, chosen: int, target: Target) -> NoReturn:
    """`collations` names one that the target lacks too."""
    stop(
        "collation_not_in_target",
        f"the view's `collations` have {collation_name(chosen)} for {collation_name(collation)}, and {target.title} has neither",
        NO_SUCH_COLLATION,
        "name one that it has, such as 45 (utf8mb4_general_ci), and make the view anew",
    )


def clause_unknown(clause: str, text: bytes, target: Target) -> NoReturn:
    """The target would stop."""
    stop(
        "definition_not_in_target",
        f"{target.title} does not know {clause}: {quoted(text)}",
        SYNTAX_ERROR,
        f"define it on the source without that; {_SKIP}",
    )


def clause_ignored(clause: str, effect: str, text: bytes, target: Target) -> NoReturn:
    """The target would read over it in silence."""
    stop(
        "definition_ignored_by_target",
        f"{target.title} reads {clause} and does nothing about it, {effect}: {quoted(text)}",
        0,
        f"define it on the source without that; {_SKIP}",
    )


def statement_differs(what: str, text: bytes, target: Target) -> NoReturn:
    """The target would do something else, in silence."""
    stop(
        "statement_differs_in_target",
        f"{target.title} takes {what} otherwise than the source: {quoted(text)}",
        0,
        f"let the source write rows (binlog_format=ROW); {_SKIP}",
    )


def column_type_missing(kind: str, column: int, table: str, target: Target) -> NoReturn:
    """Rows of a table with a column that the target cannot have."""
    stop(
        "column_type_not_in_target",
        f"column {column} of {table} is of type {kind}, which {target.title} does not have",
        NO_CONVERSION,
        f"give the table another type on the source, or keep it in a schema that the source does not log (binlog-ignore-db); {_SKIP}",
    )


def partial_updates(target: Target) -> NoReturn:
    """Update events that hold changes of JSON values only."""
    stop(
        "partial_update_rows",
        f"rows whose JSON columns are logged as changes only (Partial_update_rows), which {target.title} cannot read",
        CORRUPT_EVENT,
        f"SET GLOBAL binlog_row_value_options='' on the source; {_SKIP}",
    )


def tagged_gtid(gtid: str, target: Target) -> NoReturn:
    """A GTID with a tag, which the view is to keep."""
    stop(
        "tagged_gtid",
        f"the transaction has the GTID {gtid}, and {target.title} knows no tags",
        CORRUPT_EVENT,
        'use no tags on the source (gtid_next); make a view with gtids = "anonymous"; or skip the group: its GTID is lost then',
    )


def xa_prepared(xid: str, target: Target) -> NoReturn:
    """An XA transaction that is prepared in one group and committed in another."""
    stop(
        "xa_prepared_transaction",
        f"XA transaction {xid} is prepared here and ends in a later group; {target.title} loses it when it stops between them",
        CORRUPT_EVENT,
        f"commit XA transactions in one phase on the source, or use none; {_SKIP}; what ends it is then left out too",
    )


def create_select_statement(text: bytes, target: Target) -> NoReturn:
    """CREATE TABLE ... SELECT as a statement."""
    stop(
        "create_select_statement",
        f"{target.title} gives the columns of CREATE TABLE ... SELECT other types than the source: {quoted(text)}",
        0,
        f"let the source write rows (binlog_format=ROW), or define every column in it; {_SKIP}",
    )


def create_select_with_gtid(text: bytes, error: int, target: Target) -> NoReturn:
    """CREATE TABLE ... SELECT under one GTID, as a statement (1786) or with the rows (1064)."""
    stop(
        "create_select_with_gtid",
        f"{target.title} cannot run a definition and rows under one GTID: {quoted(text)}",
        error,
        f'make a view with gtids = "anonymous"; {_SKIP}',
    )


def sql_mode_missing(mode: str, text: bytes, target: Target) -> NoReturn:
    """A mode of the session that changes what the statement does."""
    stop(
        "sql_mode_not_in_target",
        f"{target.title} has no sql_mode {mode}, under which this ran: {quoted(text)}",
        0,
        f"take it out of sql_mode on the source; {_SKIP}",
    )


def not_readable(why: str, text: bytes) -> NoReturn:
    """A statement that cannot be judged."""
    stop(
        "statement_not_readable",
        f"the statement cannot be judged, {why}: {quoted(text)}",
        0,
        f"see whether the replicas can run it; {_SKIP}",
    )


def status_variable_unknown(code: int, text: bytes, target: Target) -> NoReturn:
    """A Query event of a version that came later than this program."""
    stop(
        "status_variable_unknown",
        f"status variable {code} of this is known neither here nor to {target.title}: {quoted(text)}",
        0,
        "use a newer binlog-relay, or skip the group",
    )


def event_unknown(name: str, target: Target) -> NoReturn:
    """A type of event that the target cannot read and that nobody can do without."""
    stop(
        "event_not_in_target",
        f"an event of type {name}, which {target.title} cannot read",
        CORRUPT_EVENT,
        "use a newer binlog-relay, or skip the group",
    )


def payload_unreadable(why: str, advice: str) -> NoReturn:
    """A compressed transaction that cannot be unpacked."""
    stop(
        "compressed_transaction", f"the transaction is compressed and cannot be unpacked: {why}", CORRUPT_EVENT, advice
    )


def charset_in_expression(default: int, chosen: int, text: bytes, target: Target) -> NoReturn:
    """A value of utf8mb4 with its default collation, where the view's choice for that is not the target's default."""
    stop(
        "statement_differs_in_target",
        f"{target.title} takes utf8mb4_general_ci for a value of utf8mb4 without a collation, where the source takes "
        f"{collation_name(default)} and the view's `collations` have {collation_name(chosen)}: {quoted(text)}",
        0,
        f"name a collation behind it in the statement (COLLATE); let the source write rows (binlog_format=ROW); {_SKIP}",
    )


def syntax_unknown(what: str, error: int, text: bytes, target: Target) -> NoReturn:
    """The target would stop at the statement. error: SYNTAX_ERROR, or NO_SUCH_FUNCTION."""
    stop(
        "statement_not_in_target",
        f"{target.title} does not know {what}: {quoted(text)}",
        error,
        f"let the source write rows (binlog_format=ROW), or write it otherwise; {_SKIP}",
    )
