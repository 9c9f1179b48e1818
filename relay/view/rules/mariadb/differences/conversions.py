"""ALTER TABLE that converts the values of a column: the two servers convert some to different values, without an error."""

from typing import Final

from protocol.sql.sql_mode import STRICT
from protocol.sql.tables.source_table import Column
from relay.schema_history.table_agreement import type_parts

"""STRICT_TRANS_TABLES, STRICT_ALL_TABLES: a value that cannot be stored is an error at the source."""
_TEXTS: Final = frozenset(("char", "varchar", "text", "binary", "varbinary", "blob"))
_TIMES: Final = frozenset(("time", "datetime", "timestamp"))
_WHOLE: Final = frozenset(
    ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "BIT", "YEAR", "BOOL", "BOOLEAN")
)
_DATES: Final = frozenset(("DATETIME", "TIMESTAMP"))
_HOURS: Final = frozenset(("TIME", *_DATES))
_WITH_YEARS: Final = frozenset(("date", "datetime", "timestamp"))
_BROKEN: Final = frozenset(("decimal", "float", "double"))


def conversion_differs(before: Column, to: str, sql_mode: int) -> str:
    """Return why, in words; "": it does not. `to` is the first word of the new type, in upper case."""
    kind, argument, _ = type_parts(before.type)
    if kind in _TIMES and argument not in ("", "0") and to in _WHOLE:
        return "fractions of seconds, which it rounds, and the source cuts"
    if kind in _WITH_YEARS and to == "YEAR":
        return "dates, of which it does not take the year"
    if kind in _TEXTS and not sql_mode & STRICT:
        if to in _WHOLE:
            return "texts such as 1e3 and 1.5, which it reads whole, and the source up to the first letter"
        if to in _DATES:
            return "texts of times with a time zone, which the source leaves out"
    if kind in _BROKEN and to in _HOURS and not sql_mode & STRICT:
        return "numbers with a fraction, which the source takes for no time"
    return ""
