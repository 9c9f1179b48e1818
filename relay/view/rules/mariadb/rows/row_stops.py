"""Why the rows of a MariaDB table cannot be kept for MySQL."""

from collections.abc import Sequence
from typing import Final, NoReturn

from protocol.sql.tables.source_table import TableName
from relay.view.rules.group import CannotBeKept, StopReason

NO_CONVERSION: Final = 13146
"""What 9.7 stops with where a column of the event cannot become the replica's."""
_INVALID_JSON: Final = 3141
_TOO_MUCH_SCALE: Final = 1425
_CORRUPT_EVENT: Final = 1610
_NO_SUCH_TABLE: Final = 1146
_SKIP: Final = "or skip the group and do by hand on the replicas what it does"


def stop(name: str, text: str, error: int, advice: str) -> NoReturn:
    """Raises: CannotBeKept."""
    raise CannotBeKept(StopReason(name, text, error, advice))


def dotted(name: TableName) -> str:
    """For people."""
    return ".".join(name)


def damaged(what: str, why: str) -> NoReturn:
    """What is in the event is none. what: as "the Table_map of d.t"."""
    stop(
        "group_malformed",
        f"{what} is damaged: {why}",
        0,
        "`binlog-relay verify` tells more; fetch the file from the source again",
    )


def too_large(name: TableName, most: int) -> NoReturn:
    """A row event that would be more than a view holds."""
    stop(
        "group_too_large",
        f"a row event of {dotted(name)} must be made anew, and would have more than the {most} bytes that a view holds in memory",
        0,
        f"look at the rows with mariadb-binlog, and write them on the replicas by hand, {_SKIP}",
    )


def column_type(name: TableName, column: int, kind: int) -> NoReturn:
    """A type that MySQL does not have, and that nothing stands for."""
    stop(
        "column_type_not_in_target",
        f"column {column} of {dotted(name)} has type number {kind} in the binlog, which MySQL does not have, or does not read",
        NO_CONVERSION,
        "make the table anew at the source (ALTER TABLE ... FORCE), so that its columns have types of today, and begin the view behind "
        f"that; {_SKIP}",
    )


def decimal_scale(name: TableName, column: int, precision: int, scale: int) -> NoReturn:
    """More digits behind the point than MySQL has."""
    stop(
        "decimal_scale",
        f"column {column} of {dotted(name)} is DECIMAL({precision},{scale}), and MySQL has at most 30 digits behind the point",
        _TOO_MUCH_SCALE,
        f"give the column at the source at most 30 and begin the view behind that; {_SKIP}",
    )


def old_temporal(name: TableName, column: int, kind: str) -> NoReturn:
    """The event does not say how many digits its fractions have, and so not how many bytes."""
    stop(
        "old_temporal_format",
        f"column {column} of {dotted(name)} is a {kind} in the format from before MariaDB 10.1, and how many bytes it has hangs on its "
        "digits behind the second, which only the table's definition tells; the archive does not have it",
        _CORRUPT_EVENT,
        f"make the table anew at the source with mysql56_temporal_format = ON (ALTER TABLE {dotted(name)} FORCE), and begin the view "
        f"behind that; {_SKIP}",
    )


def json_refused(name: TableName, column: int, why: str, error: int) -> NoReturn:
    """A text that MariaDB takes for JSON, and MySQL does not."""
    stop(
        "json_not_in_target",
        f"a value of the JSON column {column} of {dotted(name)} is none for MySQL: {why}",
        error or _INVALID_JSON,
        f'a view with json_columns = "longtext" keeps every text; or change the value at the source in time; {_SKIP}',
    )


def perhaps_sequence(name: TableName) -> NoReturn:
    """A table that is older than the archive and has the columns of a sequence."""
    stop(
        "sequence_unknown",
        f"{dotted(name)} has the columns of a sequence, and the archive does not have the statement that made it; rows of a sequence "
        "are left out, those of a table are not",
        _NO_SUCH_TABLE,
        f"SHOW CREATE TABLE {dotted(name)} at the source tells which it is; say so in the view's settings: "
        f'known_kinds = {{ "{dotted(name)}" = "sequence" }}, or "table"',
    )


def not_the_sequence(name: TableName) -> NoReturn:
    """What was defined as a sequence has rows with other columns."""
    stop(
        "table_differs",
        f"{dotted(name)} was made as a sequence, and its rows have other columns than those",
        0,
        f"look at what the archive has of it (`binlog-relay events`), make the same on the replicas by hand, {_SKIP}",
    )


def table_differs(name: TableName, what: str, believed: Sequence[str]) -> NoReturn:
    """The rows are not those of the table that the replica has by the statements of the view."""
    shown = ", ".join(believed[:20]) + (", ..." if len(believed) > 20 else "")
    stop(
        "table_differs",
        f"rows of {dotted(name)} do not fit the table that replicas have by the statements before: {what}. Replicas have ({shown}), "
        "and take values by their place: they would stand in wrong columns",
        0,
        "compare SHOW CREATE TABLE of source and replica, make the replica's table as the source's is, and skip the group that made it "
        f"otherwise; {_SKIP}",
    )


def replaced_in_part(name: TableName, missing: int) -> NoReturn:
    """Of a row that REPLACE changed in its place, the binlog does not have all columns."""
    stop(
        "replaced_row_not_whole",
        f"a row of {dotted(name)} that was replaced in its place (REPLACE) is not whole in the binlog: {missing} of its columns are "
        "missing, which have their defaults at the source, and would keep their old values on the replicas without a word",
        0,
        "set binlog_row_image = FULL at the source, for sessions that begin then; do on the replicas by hand what the statement does "
        "(`binlog-relay events` shows its text), then `view skip`",
    )
