"""The functions that statements may call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timezone
from typing import Final
from uuid import uuid4

from protocol.errors import ErrorCode, Malformed, StatementRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType, Value
from protocol.statements.session import values
from protocol.statements.session.refusals import shown
from protocol.statements.session.session import StatementSession
from protocol.statements.session.values import Typed

_MOST_DECIMALS: Final = 6
_LONGEST_TEXT: Final = 65536
_LONGEST_TIME: Final = 64
_STEPS_A_TIME: Final = 500
_STEPS_A_GTID_CHARACTER: Final = 6
_TIME_FORMATS: Final = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call: its session, its time (seconds since 1970) and its arguments."""

    session: StatementSession
    now_s: float
    arguments: Sequence[Typed]

    @property
    def first(self) -> Value:
        """The first argument's value, None without one."""
        return self.arguments[0].value if self.arguments else None


def unix_time(literal: str, zone: timezone = UTC) -> float | None:
    """Return the seconds since 1970 of a date, with or without a time, in that zone; None for anything else."""
    literal = literal[: _LONGEST_TIME + 1].strip()
    if len(literal) > _LONGEST_TIME:
        return None
    for layout in _TIME_FORMATS:
        try:
            return datetime.strptime(literal, layout).replace(tzinfo=zone).timestamp()
        except ValueError:
            continue
    return None


def as_text(value: Value) -> str:
    """Return a value as part of a text."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _now(call: FunctionCall) -> Typed:
    facts = call.session.facts
    knows_zones = facts.is_mariadb and facts.version_numbers >= (11, 7)
    return _date_and_time(call, ColumnType.TIMESTAMP if knows_zones else ColumnType.DATETIME, call.session.zone)


def _utc_now(call: FunctionCall) -> Typed:
    return _date_and_time(call, ColumnType.DATETIME, UTC)


def _date_and_time(call: FunctionCall, kind: ColumnType, zone: timezone) -> Typed:
    decimals = call.first if call.arguments else 0
    if not isinstance(decimals, int) or not 0 <= decimals <= _MOST_DECIMALS:
        raise StatementRefused(
            ErrorCode.ER_TOO_BIG_PRECISION, f"Too big precision specified. Maximum is {_MOST_DECIMALS}."
        )
    moment = datetime.fromtimestamp(call.now_s, zone)
    shown = moment.strftime("%Y-%m-%d %H:%M:%S")
    if decimals:
        shown += f".{moment.microsecond:06d}"[: decimals + 1]
    return values.moment(shown, kind, decimals=decimals)


def _date(call: FunctionCall) -> Typed:
    return _date_in(call, call.session.zone)


def _utc_date(call: FunctionCall) -> Typed:
    return _date_in(call, UTC)


def _date_in(call: FunctionCall, zone: timezone) -> Typed:
    return values.moment(datetime.fromtimestamp(call.now_s, zone).strftime("%Y-%m-%d"), ColumnType.DATE)


def _time(call: FunctionCall) -> Typed:
    return _time_in(call, call.session.zone)


def _utc_time(call: FunctionCall) -> Typed:
    return _time_in(call, UTC)


def _time_in(call: FunctionCall, zone: timezone) -> Typed:
    shown = datetime.fromtimestamp(call.now_s, zone).strftime("%H:%M:%S")
    return values.moment(shown, ColumnType.TIME, 10 if call.session.facts.is_mariadb else 8)


def _unix_timestamp(call: FunctionCall) -> Typed:
    facts = call.session.facts
    call.session.effort.spend(_STEPS_A_TIME)
    seconds = unix_time(as_text(call.first), call.session.zone) if call.arguments else call.now_s
    if seconds is None:
        return values.null()
    if decimals := _decimals_of_a_moment(call):
        digits = 17 if facts.is_mariadb else 12 if facts.is_mysql_8 else 11
        fraction = as_text(call.first).rpartition(".")[2]
        return values.decimal(f"{int(seconds // 1)}.{fraction}", digits + 1 + decimals)
    if facts.is_mariadb:
        return values.big_integer(int(seconds), 17, ColumnFlag.BINARY)
    return values.big_integer(int(seconds), 21 if facts.is_mysql_8 else 11)


def _decimals_of_a_moment(call: FunctionCall) -> int:
    """Return the decimals of the first argument if it is a date with a time."""
    column = call.arguments[0].column if call.arguments else None
    return column.decimals or 0 if column and column.kind in (ColumnType.DATETIME, ColumnType.TIMESTAMP) else 0


def _user(call: FunctionCall) -> Typed:
    facts = call.session.facts
    characters = 384 if facts.is_mariadb else 288 if facts.is_mysql_8 else 77
    shown = f"{call.session.user}@{call.session.host}"
    return values.text(shown, characters=characters, nullable=facts.is_mariadb or facts.is_mysql_8)


def _current_user(call: FunctionCall) -> Typed:
    shown = _user(call)
    return Typed(f"{call.session.user}@{call.session.account_host}", shown.column)


def _database(call: FunctionCall) -> Typed:
    facts = call.session.facts
    return values.text(call.session.database, characters=64 if facts.is_mariadb or facts.is_mysql_8 else 34)


def _connection_id(call: FunctionCall) -> Typed:
    flags = ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED | ColumnFlag.BINARY
    if call.session.facts.is_mariadb:
        return Typed(call.session.connection_id, AnswerColumn("", ColumnType.LONG, 10, flags, 0, is_text=False))
    return values.big_integer(call.session.connection_id, 21, flags)


def _last_insert_id(call: FunctionCall) -> Typed:
    return values.big_integer(0, 21, ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED | ColumnFlag.BINARY)


def _version(call: FunctionCall) -> Typed:
    return values.text(call.session.facts.version, nullable=False)


def _concat(call: FunctionCall) -> Typed:
    parts = call.arguments
    characters = sum(part.column.length for part in parts)
    never_null = all(part.column.flags & ColumnFlag.NOT_NULL for part in parts) and not call.session.facts.is_mysql_8
    # Variables of a client could make a statement of many megabytes.
    if any(part.is_null for part in parts) or sum(len(as_text(part.value)) for part in parts) > _LONGEST_TEXT:
        return values.text(None, characters=characters)
    joined = "".join(as_text(part.value) for part in parts)
    return values.text(joined, characters=characters, nullable=not never_null)


def _first_not_null(call: FunctionCall) -> Typed:
    return next((part for part in call.arguments if not part.is_null), call.arguments[-1])


def _if_null(call: FunctionCall) -> Typed:
    found, other = _first_not_null(call), call.arguments[1]
    if not found.column.is_text:
        return found
    flags = found.column.flags | (other.column.flags & ColumnFlag.NOT_NULL)
    length = max(part.column.length for part in call.arguments)
    decimals = 0 if call.session.facts.is_mariadb else None
    return replace(found, column=replace(found.column, flags=flags, length=length, decimals=decimals))


def _coalesce(call: FunctionCall) -> Typed:
    found = _first_not_null(call)
    if call.session.facts.is_mariadb or call.session.facts.is_mysql_8:
        return found
    return replace(found, column=replace(found.column, flags=found.column.flags & ~ColumnFlag.NOT_NULL))


def _if(call: FunctionCall) -> Typed:
    condition, chosen, other = call.arguments
    return chosen if condition.is_true else other


def _case_of(change: Callable[[str], str]) -> "Function":
    def changed(call: FunctionCall) -> Typed:
        if call.first is None:
            return call.arguments[0]
        return values.text(change(as_text(call.first)), characters=call.arguments[0].column.length)

    return Function(1, 1, changed)


def _binlog_gtid_pos(call: FunctionCall) -> Typed:
    # Any value would be loaded into the replica's GTID state.
    return Typed(None, AnswerColumn("", ColumnType.LONG_BLOB, 16777216))


def _uuid(call: FunctionCall) -> Typed:
    return values.text(str(uuid4()), characters=36, nullable=not call.session.facts.is_mariadb)


def _gtid_sets(call: FunctionCall) -> tuple[GtidSet, GtidSet] | None:
    """Return the two sets; None if one of them is NULL. Raises: StatementRefused (1772)."""
    if any(argument.is_null for argument in call.arguments):
        return None
    sets = []
    for argument in call.arguments:
        text = as_text(argument.value)
        call.session.effort.spend(_STEPS_A_GTID_CHARACTER * len(text))
        try:
            sets.append(GtidSet.from_text(text))
        except Malformed:
            raise StatementRefused(
                ErrorCode.ER_MALFORMED_GTID_SET_SPECIFICATION, f"Malformed GTID set specification '{shown(text, 128)}'."
            ) from None
    return sets[0], sets[1]


def _gtid_subset(call: FunctionCall) -> Typed:
    sets = _gtid_sets(call)
    column = AnswerColumn("", ColumnType.LONGLONG, 21, ColumnFlag.BINARY, 0, is_text=False)
    return Typed(None if sets is None else int(sets[0] <= sets[1]), column)


def _gtid_subtract(call: FunctionCall) -> Typed:
    sets = _gtid_sets(call)
    return values.text(None if sets is None else str(sets[0] - sets[1]), characters=call.arguments[0].column.length)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its fewest and most arguments, and its answer. `of_mariadb`, `of_mysql`: only this flavour has it."""

    fewest: int
    most: int
    answer: Callable[[FunctionCall], Typed]
    of_mariadb: bool = False
    of_mysql: bool = False


# The source's clock is not asked for each replica: UNIX_TIMESTAMP is the relay's.
# fmt: off
FUNCTIONS: Final[dict[str, Function]] = {
    "BINLOG_GTID_POS":   Function(2, 2, _binlog_gtid_pos, of_mariadb=True),
    "COALESCE":          Function(1, 8, _coalesce),
    "CONCAT":            Function(1, 8, _concat),
    "CONNECTION_ID":     Function(0, 0, _connection_id),
    "CURDATE":           Function(0, 0, _date),
    "CURRENT_DATE":      Function(0, 0, _date),
    "CURRENT_TIME":      Function(0, 0, _time),
    "CURRENT_TIMESTAMP": Function(0, 1, _now),
    "CURRENT_USER":      Function(0, 0, _current_user),
    "CURTIME":           Function(0, 0, _time),
    "DATABASE":          Function(0, 0, _database),
    "GTID_SUBSET":       Function(2, 2, _gtid_subset, of_mysql=True),
    "GTID_SUBTRACT":     Function(2, 2, _gtid_subtract, of_mysql=True),
    "IF":                Function(3, 3, _if),
    "IFNULL":            Function(2, 2, _if_null),
    "LAST_INSERT_ID":    Function(0, 0, _last_insert_id),
    "LCASE":             _case_of(str.lower),
    "LOCALTIME":         Function(0, 1, _now),
    "LOCALTIMESTAMP":    Function(0, 1, _now),
    "LOWER":             _case_of(str.lower),
    "NOW":               Function(0, 1, _now),
    "SCHEMA":            Function(0, 0, _database),
    "SESSION_USER":      Function(0, 0, _user),
    "SYSDATE":           Function(0, 1, _now),
    "SYSTEM_USER":       Function(0, 0, _user),
    "UCASE":             _case_of(str.upper),
    "UNIX_TIMESTAMP":    Function(0, 1, _unix_timestamp),
    "UPPER":             _case_of(str.upper),
    "USER":              Function(0, 0, _user),
    "UTC_DATE":          Function(0, 0, _utc_date),
    "UTC_TIME":          Function(0, 0, _utc_time),
    "UTC_TIMESTAMP":     Function(0, 1, _utc_now),
    "UUID":              Function(0, 0, _uuid),
    "VERSION":           Function(0, 0, _version),
}
# fmt: on
WITHOUT_PARENTHESES: Final = frozenset(
    (
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "UTC_DATE",
        "UTC_TIME",
        "UTC_TIMESTAMP",
    )
)  # fmt: skip
