"""The reasons why a view stops before a definition, or before rows, because of a table on replicas."""

from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.stop_reason import (
    KEEP_ENGINES,
    LOG_ROWS,
    SKIP,
    TO_INNODB,
    TableUnknown,
    Untranslatable,
    named,
    shown,
    stop,
)

_NO_CONVERSION: Final = 13146
"""The error of MySQL 9.7 where a column of an event cannot be converted to the replica's."""
_OTHER_TYPE: Final = (
    "give the column another type on the source, or keep the table in a schema that the source does not log "
    "(binlog-ignore-db)"
)
_RUN_BY_HAND: Final = "run the definition on the replicas by hand, {}, then `view skip`"
_DEFINE_WITHOUT: Final = "define it at the source without that"
Statement = LoggedQuery | bytes


def create_select(statement: Statement, engine: str) -> Untranslatable:
    """Return the stop at CREATE TABLE ... SELECT into a table without transactions."""
    text = f"CREATE TABLE ... SELECT into {engine}: {shown(statement)}"
    return stop("create_select", ErrorCode.ER_GTID_UNSAFE_CREATE_SELECT, text, TO_INNODB, SKIP)


def create_select_statement(statement: Statement, title: str) -> Untranslatable:
    """Return the stop at CREATE TABLE ... SELECT as a statement."""
    text = f"{title} gives the columns of CREATE TABLE ... SELECT other types than the source: {shown(statement)}"
    return stop("create_select_statement", 0, text, LOG_ROWS, "define every column in it", SKIP)


def create_select_with_gtid(statement: Statement, title: str, *, with_rows: bool) -> Untranslatable:
    """Return the stop at CREATE TABLE ... SELECT under one GTID: as a statement, or `with_rows` in the same transaction."""
    text = f"{title} cannot run a definition and rows under one GTID: {shown(statement)}"
    error = ErrorCode.ER_PARSE_ERROR if with_rows else ErrorCode.ER_GTID_UNSAFE_CREATE_SELECT
    return stop("create_select_with_gtid", error, text, 'use a view with gtids = "anonymous"', SKIP)


def partitions(statement: Statement, engine: str) -> Untranslatable:
    """Return the stop at a partitioned table of an engine that has no partitions on the target."""
    return stop(
        "partitions_not_supported",
        ErrorCode.ER_CHECK_NOT_IMPLEMENTED,
        f"a partitioned {engine} table: {shown(statement)}",
        TO_INNODB,
        SKIP,
    )


def engine_missing(statement: Statement, engine: str, error: int) -> Untranslatable:
    """Return the stop at an engine that the target does not have, and that no other can replace."""
    text = f"the replica has no engine that can replace {engine}: {shown(statement)}"
    return stop("engine_not_supported", error, text, "create the table on the replicas by hand", SKIP)


def not_for_innodb(statement: Statement, why: str, error: int) -> Untranslatable:
    """Return the stop at a definition that InnoDB refuses, or interprets differently."""
    return stop("definition_not_for_innodb", error, f"{why}: {shown(statement)}", KEEP_ENGINES, SKIP)


def engine_definition_not_parsed(statement: Statement) -> Untranslatable:
    """A definition names an engine that becomes another, and the rest of it cannot be parsed."""
    text = f"a definition with an engine without transactions cannot be parsed: {shown(statement)}"
    return stop("definition_not_parsed", 0, text, KEEP_ENGINES, SKIP)


def references_not_parsed(statement: Statement) -> Untranslatable:
    """A definition contains REFERENCES in an unknown place."""
    return stop(
        "definition_not_parsed",
        0,
        "a definition with REFERENCES cannot be parsed: after a column the source ignores it, and replicas make a foreign key of it: "
        f"{shown(statement)}",
        "create the table on the replicas by hand, as SHOW CREATE TABLE at the source shows it, then `view skip`",
    )


def match_not_parsed(statement: Statement) -> Untranslatable:
    """A foreign key has ON DELETE or ON UPDATE after MATCH, and what the source made of it is unknown."""
    return stop(
        "definition_not_parsed",
        0,
        "a foreign key has ON DELETE or ON UPDATE after MATCH; replicas apply it, and the source ignores it, but perhaps not with "
        f"foreign_key_checks = 0 or in a comment for servers: {shown(statement)}",
        _RUN_BY_HAND.format("without MATCH, with the actions that SHOW CREATE TABLE at the source shows"),
    )


def commented_key(statement: Statement) -> Untranslatable:
    """A part of a foreign key is inside a comment for servers, which InnoDB of the source ignores."""
    return stop(
        "definition_not_parsed",
        0,
        "a foreign key, or a part of one, is inside a comment /*! */; replicas apply it, and the source's InnoDB reads foreign keys "
        f"without any comments: {shown(statement)}",
        _RUN_BY_HAND.format("with the keys that SHOW CREATE TABLE at the source shows"),
    )


def clause_unknown(
    title: str, statement: Statement, clause: str, error: int = ErrorCode.ER_PARSE_ERROR
) -> Untranslatable:
    """Return the stop at a clause at which replicas would stop. `title` names the replicas' server."""
    text = f"{title} does not support {clause}: {shown(statement)}"
    return stop("definition_not_in_target", error, text, _DEFINE_WITHOUT, SKIP)


def row_too_large(title: str, statement: Statement) -> Untranslatable:
    """Return the stop at a table that InnoDB refuses, and that a source with innodb_strict_mode = OFF did not."""
    return stop(
        "definition_not_in_target",
        ErrorCode.ER_TOO_BIG_ROWSIZE,
        f"InnoDB of {title} refuses a table whose rows may be longer than half a page, unless innodb_strict_mode is OFF: "
        f"{shown(statement)}",
        'SET PERSIST innodb_strict_mode = OFF on the replicas, and write accept = ["row_size"] for the view',
        "give the table another definition at the source (TEXT in place of VARCHAR)",
        SKIP,
    )


def clause_ignored(title: str, statement: Statement, clause: str, effect: str) -> Untranslatable:
    """Return the stop at a clause that replicas would ignore silently."""
    text = f"{title} parses {clause} and ignores it, {effect}: {shown(statement)}"
    return stop("definition_ignored_by_target", 0, text, _DEFINE_WITHOUT, SKIP)


def definition_differs(title: str, statement: Statement, what: str) -> Untranslatable:
    """Return the stop at a definition that would have another result on the replicas' tables."""
    text = f"{title} handles {what} differently from the source: {shown(statement)}"
    return stop(
        "definition_differs_in_target",
        0,
        text,
        "make the tables of source and replicas equal by hand, then `view skip`",
    )


def generated_column_differs(title: str, statement: Statement, what: str, column: str) -> Untranslatable:
    """Return the stop at a generated column, which replicas compute for each row."""
    return stop(
        "definition_differs_in_target",
        0,
        f"{title} computes {what} in the generated column {column} differently from the source: {shown(statement)}",
        "write the expression differently at the source",
        f"or put an ordinary column {column} of that type in its place in the replicas' table, which takes the values that the source "
        "computed, then `view skip`",
    )


def rows_not_in_order(statement: Statement, clause: str, why: str) -> Untranslatable:
    """A clause numbers rows by their place, which is another one on the replicas."""
    text = f"{clause} applies to other rows on the replicas, because {why}: {shown(statement)}"
    return stop(
        "definition_differs_in_target", 0, text, "make the change at the source by statements that name the rows", SKIP
    )


def order_unknown(statement: Statement, table: TableName, clause: str) -> Untranslatable:
    """Return the same stop for a table whose definition is unknown."""
    raised = stop(
        "definition_needs_table",
        0,
        f"whether {clause} applies to the same rows on the replicas is unknown, because the table {named(table)} was created before "
        f"the archive or by a statement that cannot be parsed: {shown(statement)}",
        "a table from before the archive is known where the relay's account at the MariaDB has PROCESS, TRIGGER and REFERENCES "
        "on *.* and source.record_schema is on",
        "or, if no text in its keys has a collation that only MariaDB has, and no column in them the type UUID, name it in the view's "
        "`plain_tables`",
        SKIP,
    )
    return TableUnknown(raised.reason, table)


def condition_unknown(statement: Statement, table: TableName, needed: str) -> Untranslatable:
    """A clause with IF [NOT] EXISTS depends on a table whose definition is unknown."""
    return stop(
        "definition_needs_table",
        ErrorCode.ER_PARSE_ERROR,
        f"whether {needed} had an effect is unknown, because the table {named(table)} was created before the archive or by a statement "
        f"that cannot be parsed: {shown(statement)}",
        "write it without IF [NOT] EXISTS at the source",
        SKIP,
    )


def column_type(
    column: int, table: TableName, kind: str, title: str, *ways: str, error: int = ErrorCode.ER_SLAVE_CONVERSION_FAILED
) -> Untranslatable:
    """Return the stop at rows of a table with a column of a type that the target does not have."""
    text = f"column {column} of {named(table)} is of type {kind}, which {title} does not have"
    return stop("column_type_not_in_target", error, text, *ways or (_OTHER_TYPE,), SKIP)


def column_type_of_mariadb(column: int, table: TableName, number: int) -> Untranslatable:
    """Return the same stop for a MariaDB's type, by its number in the binlog."""
    way = (
        "rebuild the table at the source (ALTER TABLE ... FORCE), so that its columns have current types, and begin "
        "the view after that"
    )
    return column_type(column, table, f"number {number} in the binlog", "MySQL", way, error=_NO_CONVERSION)


def decimal_scale(table: TableName, column: int, precision: int, scale: int) -> Untranslatable:
    """Return the stop at more decimals than MySQL allows."""
    text = f"column {column} of {named(table)} is DECIMAL({precision},{scale}), and MySQL allows at most 30 decimals"
    return stop(
        "decimal_scale",
        ErrorCode.ER_TOO_BIG_SCALE,
        text,
        "give the column at most 30 at the source, and begin the view after that",
        SKIP,
    )


def old_temporal(table: TableName, column: int, kind: str) -> Untranslatable:
    """The event does not say how many fractional digits a value has, nor how many bytes."""
    return stop(
        "old_temporal_format",
        ErrorCode.ER_SLAVE_CORRUPT_EVENT,
        f"column {column} of {named(table)} is a {kind} in the format from before MariaDB 10.1, whose length depends on its fractional "
        "digits, which only the table's definition contains; the archive does not have it",
        f"rebuild the table at the source with mysql56_temporal_format = ON (ALTER TABLE {named(table)} FORCE), and "
        "begin the view after "
        "that",
        SKIP,
    )


def json_refused(table: TableName, column: int, why: str, error: int) -> Untranslatable:
    """Return the stop at a text that is JSON for MariaDB, and not for MySQL."""
    return stop(
        "json_not_in_target",
        error or ErrorCode.ER_INVALID_JSON_TEXT_IN_PARAM,
        f"a value of the JSON column {column} of {named(table)} is not JSON for MySQL: {why}",
        'use a view with json_columns = "longtext", which keeps every text',
        "change the value at the source in time",
        SKIP,
    )


def sequence_unknown(table: TableName) -> Untranslatable:
    """A table from before the archive has the columns of a sequence."""
    return stop(
        "sequence_unknown",
        ErrorCode.ER_NO_SUCH_TABLE,
        f"{named(table)} has the columns of a sequence, and the archive does not have the statement that created it; "
        "rows of a sequence "
        "are left out, those of a table are not",
        f"SHOW CREATE TABLE {named(table)} at the source shows which it is: write it into the view's settings, "
        f'known_kinds = {{ "{named(table)}" = "sequence" }}, or "table"',
    )


def not_the_sequence(table: TableName) -> Untranslatable:
    """A sequence has rows with other columns."""
    text = f"{named(table)} was created as a sequence, and its rows have other columns than a sequence"
    return stop("table_differs", 0, text, "look at what the archive has of it (`binlog-relay events`)", SKIP)


def table_differs(table: TableName, what: str, believed: Sequence[str]) -> Untranslatable:
    """The rows do not fit the table that the replica has by the statements of the view."""
    columns = ", ".join(believed[:20]) + (", ..." if len(believed) > 20 else "")
    return stop(
        "table_differs",
        0,
        f"rows of {named(table)} do not fit the table that replicas have by the statements before: {what}. Replicas have ({columns}), "
        "and assign values by position: they would be in wrong columns",
        "compare SHOW CREATE TABLE of source and replica, make the replica's table equal to the source's, and skip the "
        "transaction that "
        "made it different",
        SKIP,
    )


def partial_replace_image(table: TableName, missing: int) -> Untranslatable:
    """The binlog does not contain all columns of a row that REPLACE changed in place."""
    return stop(
        "partial_replace_image",
        0,
        f"the row image of a REPLACE that changed a row of {named(table)} in place is partial: {missing} of its columns are missing, "
        "which have their defaults at the source, and would silently stay as they were on the replicas",
        "set binlog_row_image = FULL at the source, for sessions that begin then",
        "run the statement's change on the replicas by hand (`binlog-relay events` shows its text), then `view skip`",
    )
