"""The reasons why a view stops before a statement that replicas would run with another result, or not at all."""

from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.expressions.construct_names import LARGE_UNSIGNED, ZERO_DATES, accepted_name
from protocol.sql.expressions.constructs import UNREAD
from protocol.sql.survey.surveyed import SurveyKind, Verdict
from protocol.sql.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.stop_reason import (
    KEEP_ENGINES,
    LOG_ROWS,
    NEWER_RELAY,
    ROWS_FROM_REPLICA,
    SKIP,
    VERIFY,
    StopReason,
    TableUnknown,
    Untranslatable,
    named,
    shown,
    stop,
)

UNKNOWN_COLLATION: Final = 22
"""The error EE_UNKNOWN_COLLATION, of the servers' own library."""
UNKNOWN_DEFINITION: Final = "unknown_table_definition"
"""The name of a stop that may end by itself: the source may still report the table."""
_BY_HAND: Final = SKIP.removeprefix("or ")
_NATIVE: Final = (
    "with innodb_native_foreign_keys = ON in my.cnf replicas behave as the source: then write "
    'foreign_keys = "innodb" for the view'
)
_RECORD_REFERENCES: Final = (
    "grant the relay's account PROCESS, TRIGGER and REFERENCES on *.* at the source, with source.record_schema on: it records which "
    "tables refer to it"
)
_ROWS_HAVE_NONE: Final = "binlog_format = ROW at the source has no such statements"
_NO_SUCH_VALUES: Final = {
    ZERO_DATES: "no column has dates such as 0000-00-00 or 2020-00-10",
    LARGE_UNSIGNED: "neither a column of type BIGINT UNSIGNED nor a statement has a number of 9223372036854775808 or more",
}
_OF_COMPONENT: Final = frozenset(("MD5", "SHA", "SHA1"))
Statement = LoggedQuery | bytes


def password_hash(statement: Statement) -> Untranslatable:
    """Return the stop at SET PASSWORD with a hash."""
    return stop(
        "password_hash",
        0,
        "SET PASSWORD with a hash, which servers since 5.7.6 take for the password itself",
        'set account_statements = "skip" for the view, and create the accounts on the replicas by hand',
    )


def row_order(statement: Statement, tables: list[TableName]) -> Untranslatable:
    """A statement has another result where a table returns its rows in another order."""
    return _row_order(
        f"the result of the statement depends on the order of rows in {named(*tables)}, and InnoDB returns them in "
        "another order than the "
        f"source's engine: {shown(statement)}"
    )


def row_order_unknown(statement: Statement, why: str) -> Untranslatable:
    """A statement may depend on the order of rows of a table that becomes another."""
    return _row_order(
        "whether the result of the statement depends on the order of rows in a table without transactions, which InnoDB returns in "
        f"another, is unknown ({why}): {shown(statement)}"
    )


def _row_order(text: str) -> Untranslatable:
    return stop("row_order", 0, text, KEEP_ENGINES, "set binlog_format = MIXED or ROW at the source", SKIP)


def fulltext_search(statement: Statement, tables: list[TableName]) -> Untranslatable:
    """A statement finds other rows by MATCH where the table has another engine."""
    return stop(
        "fulltext_search",
        0,
        f"InnoDB finds other rows of {named(*tables)} by MATCH ... AGAINST: it also finds shorter words, and words in "
        "more than half of the "
        f"rows: {shown(statement)}",
        KEEP_ENGINES,
        "set binlog_format = MIXED or ROW at the source",
        SKIP,
    )


def replace_in_parent_table(statement: Statement, table: TableName, children: list[TableName]) -> Untranslatable:
    """Return the stop at a REPLACE of rows to which `children` refer with ON DELETE CASCADE or SET NULL; (): they are unknown."""
    fact = f"{named(*children)} refers to rows of {named(table)}"
    ways = [_NATIVE, _BY_HAND, _ROWS_HAVE_NONE]
    if not children:
        fact = f"other tables may refer to rows of {named(table)}, which was created before the archive,"
        ways.insert(0, _RECORD_REFERENCES)
        ways.insert(
            1,
            "if none do (information_schema.REFERENTIAL_CONSTRAINTS at the source), name it in the view's plain_tables",
        )
    return stop(
        "replace_in_parent_table",
        0,
        f"{fact} with ON DELETE CASCADE or SET NULL; where a row is replaced, servers before 9.6 delete those rows or "
        "set them to NULL, "
        f"and newer ones leave them: {shown(statement)}",
        *ways,
    )


def ignored_update(statement: Statement, table: TableName, children: list[TableName], inside: str) -> Untranslatable:
    """Return the stop at a change with IGNORE of keys to which `children` refer with ON UPDATE CASCADE or SET NULL; []: unknown."""
    fact = f"{named(*children)} refers to rows of {named(table)}"
    ways = [_NATIVE, _BY_HAND, _ROWS_HAVE_NONE]
    if not children:
        fact = f"other tables may refer to rows of {named(table)}, which was created before the archive,"
        ways.insert(0, _RECORD_REFERENCES)
    why = "where a change with IGNORE leaves a row as it is, for its new key exists, servers since 9.6 change the rows that refer to it"
    fact += " with ON UPDATE CASCADE or SET NULL"
    return stop("ignored_update", 0, f"{fact}; {why}{inside}: {shown(statement)}", *ways)


def upsert_refused(statement: Statement, table: TableName, missing: str) -> Untranslatable:
    """Return the stop at INSERT … ON DUPLICATE KEY UPDATE of `table`, which refers to others. `missing` is what it would not do without
    the checks of foreign keys."""
    why = "servers since 9.6 refuse it (1452) where a row that it does not insert would refer to none"
    return stop(
        "upsert_refused",
        ErrorCode.ER_NO_REFERENCED_ROW_2,
        f"{named(table)} refers to other tables: {why}; without foreign_key_checks it would not {missing}: {shown(statement)}",
        _NATIVE,
        _BY_HAND,
        _ROWS_HAVE_NONE,
    )


def upsert_ignored(statement: Statement, table: TableName) -> Untranslatable:
    """Return the stop at INSERT IGNORE … ON DUPLICATE KEY UPDATE of `table`, which refers to others."""
    why = (
        "where a row that it does not insert would refer to none, servers since 9.6 do not update the row that is there"
    )
    fact = f"{named(table)} refers to other tables; {why}: {shown(statement)}"
    return stop("upsert_ignored", 0, fact, _NATIVE, _BY_HAND, _ROWS_HAVE_NONE)


def incomplete_cascade(statement: Statement, table: TableName, reached: list[TableName]) -> Untranslatable:
    """Return the stop at a DELETE whose cascade a server that executes foreign keys itself does not finish."""
    return stop(
        "incomplete_cascade",
        0,
        f"a DELETE of {named(table)} reaches {named(*reached)} more than once by ON DELETE CASCADE, and continues from there; servers "
        f"since 9.6 leave rows undeleted: {shown(statement)}",
        _NATIVE,
        _BY_HAND,
        _ROWS_HAVE_NONE,
    )


def tables_unknown(name: str, statement: Statement, why: str) -> Untranslatable:
    """Return the stop `name`, which is possible at a REPLACE or DELETE whose tables are unknown."""
    return stop(
        name,
        0,
        f"which tables the statement changes is unknown ({why}), and of some, to which foreign keys refer or which have "
        "triggers, it would "
        f"leave other rows than at the source: {shown(statement)}",
        _BY_HAND,
        _ROWS_HAVE_NONE,
    )


def multi_table_delete(statement: Statement, why: str) -> Untranslatable:
    """Return the stop at a DELETE of several tables, whose order matters."""
    return stop(
        "multi_table_delete",
        0,
        "one DELETE of several tables: which rows remain, and what triggers do, depends on the table with which the server begins "
        f"({why}): {shown(statement)}",
        _BY_HAND,
        "tables from before the archive that have no DELETE trigger, and to which no foreign key refers with ON DELETE "
        "CASCADE or SET NULL, "
        "may be named in the view's plain_tables",
        _ROWS_HAVE_NONE,
    )


def multi_table_update(statement: Statement, tables: list[TableName], triggered: list[TableName]) -> Untranslatable:
    """Return the stop at an UPDATE of several tables, in whose order triggers are executed."""
    return stop(
        "multi_table_update",
        0,
        f"one UPDATE of several tables ({named(*tables)}), and UPDATE of {named(*triggered)} executes triggers; the "
        "server chooses their "
        f"order: {shown(statement)}",
        _BY_HAND,
        _ROWS_HAVE_NONE,
    )


def inside(program: str, stopped: Untranslatable) -> Untranslatable:
    """Return the same stop for a statement in a trigger or a function: `the trigger d.tr`."""
    return Untranslatable(
        stopped.reason._replace(text=f"in {program}, which the statement executes, {stopped.reason.text}")
    )


def unknown_table_definition(statement: Statement, table: TableName, where: str) -> TableUnknown:
    """A statement changes a table whose columns, keys or collations may differ on the replicas."""
    reason = StopReason(
        UNKNOWN_DEFINITION,
        f"the definition of {named(table)}{where} is not known for certain, so the statement may change other rows on the replicas: "
        f"{shown(statement)}",
        0,
        "a table from before the archive is known where the relay's account at the MariaDB has PROCESS, TRIGGER and REFERENCES on *.*, "
        f"the table has no triggers, and source.record_schema is on; or {LOG_ROWS}; or look at the "
        "table: if it has no columns of UUID, INET4, INET6, no system versioning, no UNIQUE key over BLOB or TEXT, no default of a "
        f"sequence, no triggers, and only collations that MySQL has, name it in the view's `plain_tables`; {SKIP}",
    )
    return TableUnknown(reason, table)


def syntax_unknown(
    title: str, statement: Statement, what: str, error: int = ErrorCode.ER_PARSE_ERROR
) -> Untranslatable:
    """Return the stop at words or a function at which replicas would stop. `title` names the replicas' server."""
    text = f"{title} does not support {what}: {shown(statement)}"
    return stop("statement_not_in_target", error, text, LOG_ROWS, "write the statement differently", SKIP)


def function_removed(title: str, statement: Statement, function: str, error: int) -> Untranslatable:
    """Return the stop at a function that newer servers do not have; those of a component may be there all the same."""
    ways = [LOG_ROWS, "write the statement differently", SKIP]
    if function in _OF_COMPONENT:
        ways.insert(
            0,
            "INSTALL COMPONENT 'file://component_classic_hashing' on the replicas, and write "
            f'accept = ["{function.lower()}"] for the view',
        )
    text = f"{title} does not have the function {function}: {shown(statement)}"
    return stop("statement_not_in_target", error, text, *ways)


def statement_differs(title: str, statement: Statement, what: str) -> Untranslatable:
    """Replicas would silently run the statement with another result."""
    text = f"{title} handles {what} differently from the source: {shown(statement)}"
    return stop("statement_differs_in_target", 0, text, LOG_ROWS, SKIP)


def differs_by_survey(
    title: str, statement: Statement, construct: str, verdict: Verdict, inside: str, *, assuming: str = ""
) -> Untranslatable:
    """Return the stop at a construct that the target computes otherwise, refuses (then with its error), or that was not surveyed.
    `inside` says where the construct is, if it is not in the statement itself. `assuming`: the name in `accept` by which it is the same
    but for some values.
    """
    where = f" of {verdict.when}" if verdict.when else ""
    accepting = (
        f'accept = ["{accepted_name(construct)}"] for the view, if you know that it does not matter for your data'
    )
    ways: tuple[str, ...] = (ROWS_FROM_REPLICA, accepting, SKIP)
    if assuming:
        ways = (f'accept = ["{assuming}"] for the view, if {_NO_SUCH_VALUES[assuming]}', *ways)
    if verdict.kind is SurveyKind.UNSURVEYED:
        text = f"whether {title} computes {construct}{inside} as the source does was not tried: {verdict.when}: {shown(statement)}"
        return stop("statement_not_surveyed", 0, text, *ways)
    like = " with such arguments, or others that differ alike" if verdict.is_like else ""
    seen = f", as seen on real servers{like}: {verdict.expression} is {verdict.at_source} at the source and {verdict.at_target} there"
    if verdict.kind is SurveyKind.REFUSED:
        text = f"{title} refuses {construct}{where}{inside}{seen}: {shown(statement)}"
        return stop("statement_not_in_target", verdict.error, text, *ways)
    text = f"{title} computes {construct}{where}{inside} otherwise than the source{seen}: {shown(statement)}"
    return stop("statement_differs_in_target", 0, text, *ways)


def expressions_not_read(title: str, statement: Statement, why: str, inside: str) -> Untranslatable:
    """Return the stop at a statement whose expressions cannot be read."""
    text = f"whether {title} computes the statement{inside} as the source does is not known ({why}): {shown(statement)}"
    accepting = f'accept = ["{UNREAD}"] for the view, if you know that it does'
    return stop("statement_not_surveyed", 0, text, ROWS_FROM_REPLICA, accepting, SKIP)


def collation_of_values_differs(title: str, statement: Statement, default: str, chosen: str) -> Untranslatable:
    """Return the stop at a value of utf8mb4 without a collation, where the view's choice for its default is not the target's."""
    return stop(
        "statement_differs_in_target",
        0,
        f"{title} uses utf8mb4_general_ci for a value of utf8mb4 without a collation, where the source uses {default} and the view's "
        f"`collations` have {chosen}: {shown(statement)}",
        "name a collation after it in the statement (COLLATE)",
        LOG_ROWS,
        SKIP,
    )


def not_parsed(statement: Statement, why: str) -> Untranslatable:
    """Return the stop at a statement that cannot be judged."""
    text = f"the statement cannot be judged, {why}: {shown(statement)}"
    return stop("statement_not_parsed", 0, text, "find out whether the replicas can run it", SKIP)


def status_damaged(statement: Statement, why: str) -> Untranslatable:
    """The status variables of a statement cannot be read."""
    text = f"the status variables of this are damaged ({why}): {shown(statement)}"
    return stop("statement_not_parsed", ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE, text, VERIFY)


def sql_mode_missing(title: str, statement: Statement, mode: str, effect: str = "") -> Untranslatable:
    """Return the stop at a mode that changes the statement's result; `effect` says how, as in "by which '' is NULL"."""
    effect = effect or "under which this ran"
    text = f"{title} has no sql_mode {mode}, {effect}: {shown(statement)}"
    return stop("sql_mode_not_in_target", 0, text, "remove it from sql_mode at the source", LOG_ROWS, SKIP)


def status_variable_unknown(statement: Statement, code: int) -> Untranslatable:
    """The statement has a status variable that no server is known to write: servers silently skip it and all that follows it."""
    text = f"status variable {code} of this is not known: {shown(statement)}"
    return stop("status_variable_unknown", 0, text, NEWER_RELAY, SKIP)


def connection_flags_unknown(statement: Statement, flags: int) -> Untranslatable:
    """The connection has options that no MariaDB is known to write."""
    return stop(
        "status_variable_unknown",
        0,
        f"flags 0x{flags:08x} of this are not known: {shown(statement)}",
        NEWER_RELAY,
        SKIP,
    )


def locale_missing(title: str, statement: Statement, number: int) -> Untranslatable:
    """Return the stop at names of months and days that the replicas do not have."""
    text = f"{title} has no lc_time_names of number {number}: {shown(statement)}"
    return stop(
        "status_variable_unknown",
        ErrorCode.ER_SLAVE_RELAY_LOG_READ_FAILURE,
        text,
        "SET lc_time_names to another at the source",
        SKIP,
    )


def collation_missing(
    title: str, collation: str, *ways: str, error: int = UNKNOWN_COLLATION, needs: bytes = b""
) -> Untranslatable:
    """Return the stop at a collation that the replicas do not have, and that none replaces. `needs` is the statement that uses it."""
    text = f"{title} has no collation {collation}" + (
        f", which this needs: {shown(needs)}" if needs else " or one in its place"
    )
    return stop("collation_not_in_target", error, text, *ways, SKIP)


def collation_mapped_wrong(title: str, collation: str, chosen: str) -> Untranslatable:
    """The view's `collations` name one that cannot replace it. `chosen` says which one, and why."""
    text = f"the view's `collations` replace {collation} by {chosen}"
    way = f"name one of {title} with the same character set, such as 45 (utf8mb4_general_ci) for utf8mb4, and rebuild the view"
    return stop("collation_not_in_target", UNKNOWN_COLLATION, text, way)


def collation_name_unknown(title: str, what: str, way: str) -> Untranslatable:
    """A statement names a collation or character set that no server is known to have. `what` is as in "the collation x"."""
    text = f"the statement names {what}, and which collation of {title} replaces it is unknown"
    return stop("collation_not_in_target", ErrorCode.ER_UNKNOWN_COLLATION, text, way, SKIP)
