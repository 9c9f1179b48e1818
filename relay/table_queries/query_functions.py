"""MySQL's functions that SQLite does not have, or has with another meaning. NULL in gives NULL out; none raises."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.statements.expression.functions import unix_time
from protocol.statements.expression.regexp import Regexp, RegexpRefused, RegexpSearch

_LONGEST_TEXT: Final = 65536
_MOST_SEARCHES: Final = 8
_SECONDS: Final = {
    "MICROSECOND": 1e-6, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400,
}  # fmt: skip
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MOST_YEARS: Final = 1000

SqlValue = Any


def _pow(base: SqlValue, exponent: SqlValue) -> SqlValue:
    try:
        return float(base) ** float(exponent)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        return None


def _text(value: SqlValue) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _whole(value: SqlValue) -> int:
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return 0


def _concat(*values: SqlValue) -> SqlValue:
    if None in values:
        return None
    joined = "".join(map(_text, values))
    return joined if len(joined) <= _LONGEST_TEXT else None


def _concat_ws(separator: SqlValue, *values: SqlValue) -> SqlValue:
    if separator is None:
        return None
    joined = _text(separator).join(_text(value) for value in values if value is not None)
    return joined if len(joined) <= _LONGEST_TEXT else None


def _substring_index(text: SqlValue, delimiter: SqlValue, count: SqlValue) -> SqlValue:
    whole, mark, wanted = _text(text), _text(delimiter), _whole(count)
    if not mark or not wanted:
        return ""
    parts = whole.split(mark)
    return mark.join(parts[:wanted] if wanted > 0 else parts[wanted:])


def _left(text: SqlValue, count: SqlValue) -> SqlValue:
    return _text(text)[: max(0, _whole(count))]


def _right(text: SqlValue, count: SqlValue) -> SqlValue:
    wanted = _whole(count)
    return _text(text)[-wanted:] if wanted > 0 else ""


def _find_in_set(text: SqlValue, among: SqlValue) -> SqlValue:
    parts = _text(among).lower().split(",") if among != "" else []
    wanted = _text(text).lower()
    return parts.index(wanted) + 1 if wanted in parts else 0


def _locate(wanted: SqlValue, text: SqlValue) -> SqlValue:
    return _text(text).lower().find(_text(wanted).lower()) + 1


def _length(text: SqlValue) -> SqlValue:
    return len(_text(text).encode())


def _char_length(text: SqlValue) -> SqlValue:
    return len(_text(text))


def _gtid_subset(one: SqlValue, other: SqlValue) -> SqlValue:
    try:
        return int(GtidSet.from_text(_text(one)) <= GtidSet.from_text(_text(other)))
    except Malformed:
        return None


def _gtid_subtract(one: SqlValue, other: SqlValue) -> SqlValue:
    try:
        return str(GtidSet.from_text(_text(one)) - GtidSet.from_text(_text(other)))
    except Malformed:
        return None


def _regexp(check: Callable[[], None]) -> Callable[[SqlValue, SqlValue], SqlValue]:
    """Return REGEXP for one statement; it calls `check` all the while: one pattern may take a second."""
    searches: dict[str, RegexpSearch] = {}

    def found(pattern: SqlValue, text: SqlValue) -> SqlValue:
        wanted = _text(pattern)
        try:
            search = searches.get(wanted) or RegexpSearch(Regexp.of(wanted), lambda steps: check())
        except RegexpRefused:
            return None
        if len(searches) < _MOST_SEARCHES:
            searches[wanted] = search
        return int(search.is_in(_text(text)))

    return found


# --- times: UTC, as NOW() is unless the session has a zone of its own --------------------------------------------------


def _moment(value: SqlValue) -> datetime | None:
    seconds = unix_time(_text(value))
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S" + (".%f" if moment.microsecond else ""))


def _unix_timestamp(value: SqlValue) -> SqlValue:
    seconds = unix_time(_text(value))
    return None if seconds is None else int(seconds)


def _from_unixtime(value: SqlValue) -> SqlValue:
    try:
        return _shown(datetime.fromtimestamp(float(value), UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _timestampdiff(unit: SqlValue, begin: SqlValue, end: SqlValue) -> SqlValue:
    first, last = _moment(begin), _moment(end)
    if first is None or last is None:
        return None
    if unit in _SECONDS:
        return int((last - first).total_seconds() / _SECONDS[unit])
    if unit not in _MONTHS:
        return None
    sign = 1 if last >= first else -1
    early, late = (first, last) if sign > 0 else (last, first)
    months = (late.year - early.year) * 12 + late.month - early.month
    months -= (late.day, late.time()) < (early.day, early.time())
    return sign * (months // _MONTHS[unit])


def _moved(moment: SqlValue, count: SqlValue, unit: SqlValue, sign: int) -> SqlValue:
    begin = _moment(moment)
    if begin is None:
        return None
    number = sign * _whole(count)
    try:
        if unit in _SECONDS:
            return _shown(begin + timedelta(seconds=number * _SECONDS[unit]))
        months = begin.year * 12 + begin.month - 1 + number * _MONTHS[unit]
        if abs(number) > _MOST_YEARS * 12:
            return None
        year, month = divmod(months, 12)
        last = (datetime(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        return _shown(begin.replace(year=year, month=month + 1, day=min(begin.day, last)))
    except (ValueError, OverflowError, KeyError):
        return None


def _date_add(moment: SqlValue, count: SqlValue, unit: SqlValue) -> SqlValue:
    return _moved(moment, count, unit, 1)


def _date_sub(moment: SqlValue, count: SqlValue, unit: SqlValue) -> SqlValue:
    return _moved(moment, count, unit, -1)


def _time_to_sec(value: SqlValue) -> SqlValue:
    parts = _text(value).rpartition(" ")[2].split(":")
    if len(parts) != 3:
        return None
    hours, minutes, seconds = (_whole(part) for part in parts)
    return hours * 3600 + minutes * 60 + seconds


def _isnull(value: SqlValue) -> SqlValue:
    return int(value is None)


def _greatest(*values: SqlValue) -> SqlValue:
    return _extreme(max, values)


def _least(*values: SqlValue) -> SqlValue:
    return _extreme(min, values)


def _extreme(choose: Callable[..., Any], values: tuple[SqlValue, ...]) -> SqlValue:
    if not values or None in values:
        return None
    return choose(values) if all(isinstance(value, int | float) for value in values) else choose(values, key=_text)


def _strict(function: Callable[..., SqlValue]) -> Callable[..., SqlValue]:
    def called(*values: SqlValue) -> SqlValue:
        return None if None in values else function(*values)

    return called


_ANY: Final = -1
_FUNCTIONS: Final[tuple[tuple[str, int, Callable[..., SqlValue]], ...]] = (
    ("char_length", 1, _strict(_char_length)),
    ("concat", _ANY, _concat),
    ("concat_ws", _ANY, _concat_ws),
    ("date_add", 3, _strict(_date_add)),
    ("date_sub", 3, _strict(_date_sub)),
    ("find_in_set", 2, _strict(_find_in_set)),
    ("from_unixtime", 1, _strict(_from_unixtime)),
    ("greatest", _ANY, _greatest),
    ("gtid_subset", 2, _strict(_gtid_subset)),
    ("gtid_subtract", 2, _strict(_gtid_subtract)),
    ("isnull", 1, _isnull),
    ("least", _ANY, _least),
    ("left", 2, _strict(_left)),
    ("length", 1, _strict(_length)),
    ("locate", 2, _strict(_locate)),
    ("pow", 2, _strict(_pow)),
    ("right", 2, _strict(_right)),
    ("substring_index", 3, _strict(_substring_index)),
    ("time_to_sec", 1, _strict(_time_to_sec)),
    ("timestampdiff", 3, _strict(_timestampdiff)),
    ("unix_timestamp", 1, _strict(_unix_timestamp)),
)


def add_functions(connection: sqlite3.Connection, check: Callable[[], None]) -> None:
    """Register the functions. check: called before each call, and while one works for long; what it raises ends the statement."""
    for name, count, function in _FUNCTIONS:
        connection.create_function(name, count, _checked(function, check), deterministic=True)
    connection.create_function("regexp", 2, _checked(_strict(_regexp(check)), check), deterministic=True)


def _checked(function: Callable[..., SqlValue], check: Callable[[], None]) -> Callable[..., SqlValue]:
    def called(*values: SqlValue) -> SqlValue:
        check()
        return function(*values)

    return called
