"""Spark's filters, as far as files, splits and the kernel can use them.

Every filter stays with Spark too, which checks it again: what is done here must leave out nothing that Spark would keep, and need not
leave out everything else.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from relay.binlog_tables.plan.schemas import known_columns
from relay.binlog_tables.plan.wanted import Wanted, microseconds

_TEXT_TESTS: Final[dict[type[Filter], Callable[[str, str], bool]]] = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: str.__contains__,
}


def push(filters: Sequence[Filter], level: str, wanted: Wanted) -> None:
    """Note in `wanted` what `filters`, which must all hold, ask for."""
    kinds = known_columns(level)
    for one in filters:
        path: Any = getattr(one, "attribute", None)
        if path is None or len(path) != 1 or path[0] not in kinds:
            continue
        column = path[0]
        value: Any = getattr(one, "value", None)
        if kinds[column] in ("bigint", "int", "timestamp"):
            _push_range(one, column, value, wanted)
        elif kinds[column] == "string":
            _push_text(one, column, value, wanted)


def _push_range(one: Filter, column: str, value: Any, wanted: Wanted) -> None:
    if isinstance(one, In):
        values = [_number(member) for member in value if member is not None]
        if values and None not in values:
            known = [member for member in values if member is not None]
            wanted.range(column).narrow(min(known), max(known))
        return
    number = _number(value)
    if number is None:
        return
    span = wanted.range(column)
    if isinstance(one, EqualTo | EqualNullSafe):
        span.narrow(number, number)
    elif isinstance(one, GreaterThan):
        span.narrow(low=number + 1)
    elif isinstance(one, GreaterThanOrEqual):
        span.narrow(low=number)
    elif isinstance(one, LessThan):
        span.narrow(high=number - 1)
    elif isinstance(one, LessThanOrEqual):
        span.narrow(high=number)


def _number(value: Any) -> int | None:
    """Return a bound as the kernel has it; None for anything that cannot be one (a decimal, a time without a zone)."""
    if isinstance(value, datetime):
        return None if value.tzinfo is None else microseconds(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _push_text(one: Filter, column: str, value: Any, wanted: Wanted) -> None:
    if isinstance(one, EqualTo | EqualNullSafe):
        values = (value,)
    elif isinstance(one, In):
        values = tuple(member for member in value if member is not None)
    else:
        values = (None,)
    # Bytes of a binlog that are no UTF-8 are shown as other text, which corresponds to no bytes.
    if all(isinstance(text, str) and "\\x" not in text and "\ufffd" not in text for text in values):
        wanted.keep_names(column, frozenset(values))
    elif column == "file" and isinstance(value, str):
        test = _TEXT_TESTS.get(type(one))
        if test is not None:
            wanted.files.append(_FileTest(test.__name__, value))


class _FileTest:
    """A test of a file's name that can be sent to other processes."""

    def __init__(self, method: str, value: str) -> None:
        self.method = method
        self.value = value

    def __call__(self, name: str) -> bool:
        return bool(getattr(name, self.method)(self.value))
