"""Constructs that differ for values which no sample need contain: seen on real servers, where the survey's rows do not decide."""

from collections.abc import Sequence
from typing import Final

from protocol.sql.expressions.constructs import COMPARISONS, CONDITION, Classes
from protocol.sql.server_version import version_numbers
from protocol.sql.survey.surveyed import SurveyKind, Verdict
from protocol.sql.survey.value_class import ANY, NUMBERS, ValueClass

_NEW: Final = (8, 0)
_DATES: Final = frozenset((ValueClass.DATE, ValueClass.DATETIME, ValueClass.DATE_ZERO))
_OF_DATETIMES: Final = frozenset((ValueClass.DATETIME, ValueClass.DATE_ZERO, ValueClass.NULL))
"""What a DATETIME or TIMESTAMP column may have; a DATE column has dates too."""
_NO_DATES: Final = frozenset((ValueClass.TEXT_NO_DATE, ValueClass.TEXT_EMPTY))
_FRACTIONS: Final = frozenset((
    ValueClass.DECIMAL, ValueClass.DOUBLE, ValueClass.TIME, ValueClass.BYTES, ValueClass.TEXT_NUMBER, ValueClass.TEXT_NO_DATE,
    ValueClass.TEXT_OTHER, ValueClass.TEXT_WIDE,
))  # fmt: skip
"""What may be a number between 0 and 1."""
_HEX: Final = frozenset((ValueClass.HEX,))
_TRUTHS: Final = frozenset((CONDITION, "AND", "OR", "XOR", "NOT", "!", "IS TRUE", "IS FALSE", "IF()", "CASE"))
_NULLS: Final = frozenset((ValueClass.NULL,))
_DOUBLES: Final = frozenset((ValueClass.DOUBLE,))
_GEOMETRIES: Final = frozenset((ValueClass.GEOMETRY, ValueClass.NULL))
_SAME: Final = Verdict(SurveyKind.SAME)
_REGEXP: Final = Verdict(
    SurveyKind.DIFFERS, when="any texts", expression="'ä' REGEXP '^.$'", at_source="0", at_target="1"
)
_REGEXP_OF_MARIADB: Final = Verdict(
    SurveyKind.DIFFERS, when="any texts", expression="'&' REGEXP '[a&&b]'", at_source="1", at_target="0"
)
_BETWEEN: Final = Verdict(
    SurveyKind.DIFFERS,
    when="a date, and a text that is none",
    expression="DATE '2020-02-29' BETWEEN '2020-02-01' AND '2020-02-31'",
    at_source="1",
    at_target="0",
)
_CONDITION: Final = Verdict(
    SurveyKind.DIFFERS,
    when="a number between 0 and 1",
    expression="SELECT COUNT(*) FROM one_row WHERE 0.4",
    at_source="0",
    at_target="1",
)
_CONDITION_OF_OLD: Final = _CONDITION._replace(at_source="1", at_target="0")
_GEOMETRY: Final = Verdict(
    SurveyKind.REFUSED,
    1292,
    when="a geometry",
    expression="DELETE FROM v WHERE POINT(int_0, 0)",
    at_source="no row",
    at_target="error 1292 in strict mode",
)
_QUOTIENT: Final = Verdict(
    SurveyKind.DIFFERS,
    when="numbers that are no DOUBLE",
    expression="INSERT INTO t (decimal_20_10) VALUES (1 / 3)",
    at_source="0.3333333333",
    at_target="0.3333000000",
)
_TRUTH_OF_HEX: Final = Verdict(
    SurveyKind.DIFFERS, when="a literal such as x'30'", expression="x'30' AND 1", at_source="0", at_target="1"
)


def known_difference(name: str, arguments: Sequence[Classes], source: str, target: tuple[int, ...]) -> Verdict | None:
    """Return the verdict on a construct of such a source; None: the survey decides.

    Seen on 5.6.24 and MariaDB 10.11.19 and 11.8.8 against 9.7.4: REGEXP is ICU's since 8.0; a text that is no date makes a BETWEEN of
    dates one of texts at the older ones; MySQL before 8.0 rounds the condition of a query, and what XOR gets; MariaDB takes x'30'
    for a text, which is 0. MySQL compares a DATE with zeros in another way with a DATETIME, but not a DATETIME with them. A MariaDB
    computes quotients with at least 9 digits after the point, which are seen where they are stored or computed with. The survey stored
    one text in columns of geometries, which stay as they are.
    """
    is_mariadb = "mariadb" in source.lower()
    is_old = version_numbers(source)[:2] < _NEW and not is_mariadb
    if is_old != (target < _NEW) and name in (CONDITION, "XOR") and any(one & _FRACTIONS for one in arguments):
        return _CONDITION if is_old else _CONDITION_OF_OLD
    found = _of_older(name, arguments, is_mariadb) if target >= _NEW and (is_old or is_mariadb) else None
    return _SAME if found is None and name == CONDITION else found


def _of_older(name: str, arguments: Sequence[Classes], is_mariadb: bool) -> Verdict | None:
    if name == CONDITION and any(ValueClass.GEOMETRY in one and len(one) < len(ANY) for one in arguments):
        return _GEOMETRY
    if (
        name == "store GEOMETRY"
        and not is_mariadb
        and ValueClass.GEOMETRY in arguments[0]
        and arguments[0] <= _GEOMETRIES
    ):
        return _SAME
    if name in ("REGEXP", "NOT REGEXP"):
        return _REGEXP_OF_MARIADB if is_mariadb else _REGEXP
    if name in ("BETWEEN", "NOT BETWEEN") and arguments[0] & _DATES and any(one & _NO_DATES for one in arguments[1:]):
        return _BETWEEN
    if name in COMPARISONS and all(one <= _OF_DATETIMES and ValueClass.DATETIME in one for one in arguments):
        return _SAME
    if is_mariadb and name in ("/", "AVG()") and not any(one - _NULLS <= _DOUBLES for one in arguments):
        return _QUOTIENT
    if is_mariadb and any(one == _HEX for one in arguments):
        is_number = name in COMPARISONS and any(one & NUMBERS for one in arguments)
        return _TRUTH_OF_HEX if is_number or name in _TRUTHS else None
    return None
