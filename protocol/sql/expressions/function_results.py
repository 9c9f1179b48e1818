"""The classes of values that functions and operators return."""

from collections.abc import Sequence
from typing import Final

from protocol.sql.expressions.constructs import BOUNDS, Classes, Operand, joined
from protocol.sql.survey.value_class import ANY, TEXTS, ValueClass

_NULL: Final[Classes] = frozenset((ValueClass.NULL,))
TRUTH: Final[Classes] = _NULL | {ValueClass.INTEGER}
NUMBERS: Final[Classes] = _NULL | {
    ValueClass.INTEGER,
    ValueClass.NEGATIVE,
    ValueClass.UNSIGNED,
    ValueClass.DECIMAL,
    ValueClass.DOUBLE,
}
_WHOLE: Final[Classes] = _NULL | {ValueClass.INTEGER, ValueClass.NEGATIVE}
_BITS: Final[Classes] = _NULL | {ValueClass.INTEGER, ValueClass.UNSIGNED}
_INTEGERS: Final[Classes] = _NULL | {ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.UNSIGNED}
_DECIMAL: Final[Classes] = _NULL | {ValueClass.DECIMAL}
_NEGATIVE: Final[Classes] = frozenset((ValueClass.NEGATIVE,))
_SIGNED: Final[Classes] = _WHOLE | {ValueClass.DECIMAL}
_EXACT: Final[Classes] = _INTEGERS | {ValueClass.DECIMAL}
_DOUBLE: Final[Classes] = _NULL | {ValueClass.DOUBLE}
_QUOTIENT: Final[Classes] = _NULL | {ValueClass.DECIMAL, ValueClass.DOUBLE}
_TEXT: Final[Classes] = _NULL | TEXTS
_TEXT_OR_BYTES: Final[Classes] = _TEXT | {ValueClass.BYTES}
_DAY: Final[Classes] = _NULL | {ValueClass.DATE, ValueClass.DATE_ZERO}
_MOMENT: Final[Classes] = _NULL | {ValueClass.DATETIME, ValueClass.DATE_ZERO}
_CLOCK: Final[Classes] = _NULL | {ValueClass.TIME}
_JSON: Final[Classes] = _NULL | TEXTS | {ValueClass.JSON}
_HEXES: Final[Classes] = _NULL | {ValueClass.TEXT_OTHER, ValueClass.TEXT_NUMBER, ValueClass.TEXT_EMPTY}
"""The texts of HEX and the like: letters and digits."""
_BINARY: Final[Classes] = frozenset((ValueClass.BYTES, ValueClass.HEX, ValueClass.BIT))
_MAKE_BYTES: Final[Classes] = _BINARY | {ValueClass.GEOMETRY}
"""Of them functions of texts make bytes."""
_WHOLE_OF_WHOLE: Final = frozenset(
    ("+", "-", "*", "%", "MOD()", "ABS()", "ROUND()", "TRUNCATE()", "FLOOR()", "CEIL()", "CEILING()")
)
"""They give whole numbers of whole numbers, and exact numbers of exact ones."""
_OF_DECIMALS: Final = frozenset(("+", "-", "*", "%", "MOD()", "ABS()", "ROUND()", "TRUNCATE()"))
"""They give a DECIMAL of exact numbers of which one is a DECIMAL."""
_SIGNS: Final = frozenset(("+", "-", "*", "/", "%", "MOD()"))
_OF_DOUBLES: Final = _OF_DECIMALS | {"/", "FLOOR()", "CEIL()", "CEILING()"}
"""They give a DOUBLE of one: both sides count of what is in `_SIGNS`, and otherwise the first value."""
_MAKE_DECIMAL: Final = frozenset(("/", "AVG()", "SUM()"))
"""They give a DECIMAL of exact numbers."""


DAYS_AND_MOMENTS: Final = frozenset((ValueClass.NULL, ValueClass.DATE, ValueClass.DATETIME))
"""Days and moments without zeros: adding a small number of any unit is the same everywhere."""
ZERO: Final = frozenset((ValueClass.DATE_ZERO,))


def _by_name(names: str, classes: Classes) -> dict[str, Classes]:
    return dict.fromkeys(names.split(), classes)


_RESULTS: Final[dict[str, Classes]] = {
    **_by_name("= <=> < > <= >= <> LIKE REGEXP IN BETWEEN NOT ! AND OR XOR EXISTS", TRUTH),
    **dict.fromkeys(("NOT LIKE", "NOT REGEXP", "NOT IN", "NOT BETWEEN", "SOUNDS LIKE", "MEMBER OF"), TRUTH),
    **_by_name("+ - * % MOD() ABS() ROUND() TRUNCATE() FLOOR() CEIL() CEILING() SUM()", NUMBERS),
    **_by_name("/ AVG() STD() STDDEV() VARIANCE() VAR_POP() VAR_SAMP() STDDEV_POP() STDDEV_SAMP()", _QUOTIENT),
    **_by_name("| & ^ ~ << >> BIT_AND() BIT_OR() BIT_XOR()", _BITS),
    **_by_name(
        """COUNT() LENGTH() CHAR_LENGTH() CHARACTER_LENGTH() OCTET_LENGTH() BIT_LENGTH() ASCII() ORD() CRC32() BIT_COUNT() LOCATE()
        INSTR() POSITION() FIELD() FIND_IN_SET() STRCMP() SIGN() ISNULL() TO_DAYS() TO_SECONDS() DATEDIFF() YEAR() MONTH() DAY()
        DAYOFMONTH() DAYOFWEEK() DAYOFYEAR() WEEK() WEEKDAY() WEEKOFYEAR() YEARWEEK() QUARTER() HOUR() MINUTE() SECOND() MICROSECOND()
        TIMESTAMPDIFF() PERIOD_ADD() PERIOD_DIFF() INET_ATON() LAST_INSERT_ID() CONNECTION_ID() ROW_COUNT() FOUND_ROWS()
        INTERVAL() GET_LOCK() IS_IPV4() IS_IPV6() UNCOMPRESSED_LENGTH() TIME_TO_SEC() ROW_NUMBER() RANK() DENSE_RANK()""",
        _WHOLE,
    ),
    **_by_name(
        """PI() SIN() COS() TAN() COT() ASIN() ACOS() ATAN() ATAN2() EXP() LN() LOG() LOG2() LOG10() POW() POWER() SQRT() RAND()
        RADIANS() DEGREES()""",
        _DOUBLE,
    ),
    "UNIX_TIMESTAMP()": NUMBERS,
    "DIV": _INTEGERS,
    **_by_name(
        """CONCAT() CONCAT_WS() LOWER() LCASE() UPPER() UCASE() LEFT() RIGHT() SUBSTRING() SUBSTR() MID() SUBSTRING_INDEX() REPLACE()
        REPEAT() REVERSE() LPAD() RPAD() TRIM() LTRIM() RTRIM() INSERT() GROUP_CONCAT() ELT() FORMAT() SPACE() QUOTE()
        EXPORT_SET() MAKE_SET() DATE_FORMAT() TIME_FORMAT() DATABASE() SCHEMA()""",
        _TEXT,
    ),
    **_by_name(
        "CHAR() UNHEX() COMPRESS() UNCOMPRESS() FROM_BASE64() AES_ENCRYPT() AES_DECRYPT()", _TEXT_OR_BYTES
    ),
    **_by_name("HEX() OCT() BIN() CONV() MD5() SHA() SHA1() SHA2() UUID() TO_BASE64() SOUNDEX() INET_NTOA()", _HEXES),
    **_by_name("MONTHNAME() DAYNAME() USER() CURRENT_USER() VERSION()", _NULL | {ValueClass.TEXT_OTHER}),
    **_by_name("CURDATE() CURRENT_DATE() UTC_DATE()", frozenset((ValueClass.DATE,))),
    **_by_name("DATE() LAST_DAY() MAKEDATE() FROM_DAYS()", _DAY),
    **_by_name(
        "NOW() CURRENT_TIMESTAMP() LOCALTIME() LOCALTIMESTAMP() SYSDATE() UTC_TIMESTAMP()", frozenset((ValueClass.DATETIME,))
    ),
    **_by_name("TIMESTAMP() CONVERT_TZ()", _MOMENT),
    **_by_name("CURTIME() CURRENT_TIME() UTC_TIME() TIME() MAKETIME() SEC_TO_TIME() TIMEDIFF()", _CLOCK),
    "STR_TO_DATE()": _DAY | _MOMENT | _CLOCK,
    **_by_name("FROM_UNIXTIME() ADDTIME() SUBTIME()", _MOMENT | _CLOCK | TEXTS),
    **_by_name("DATE_ADD() DATE_SUB() ADDDATE() SUBDATE() TIMESTAMPADD()", _MOMENT | _DAY | _CLOCK | TEXTS),
}  # fmt: skip
_ONE_OF_THEM: Final = frozenset(
    ("COALESCE()", "IFNULL()", "MIN()", "MAX()", "GREATEST()", "LEAST()", "NVL()", "ANY_VALUE()")
)
_ADD_TO_FIRST: Final = frozenset(("DATE_ADD()", "DATE_SUB()", "ADDDATE()", "SUBDATE()", "ADDTIME()", "SUBTIME()"))
"""They give a day or a moment for one."""
_MOVE_FIRST: Final = frozenset(("DATE_ADD()", "DATE_SUB()", "ADDDATE()", "SUBDATE()"))
_WRITTEN_DATE: Final[Classes] = _NULL | {ValueClass.TEXT_DATE}
_AFTER_FIRST: Final = frozenset(("IF()", "NVL2()"))


def result_of(name: str, operands: Sequence[Operand]) -> Operand:
    """Return the operand that a construct gives: any value, where the table has none."""
    given = joined(operands)
    if name in _ONE_OF_THEM and operands:
        return Operand(given.classes | _NULL, given.unknown)
    if name in _AFTER_FIRST and len(operands) > 1:
        rest = joined(operands[1:])
        return Operand(rest.classes, given.unknown)
    if name == "NULLIF()" and operands:
        return Operand(operands[0].classes | _NULL, operands[0].unknown)
    if name == "FROM_UNIXTIME()" and len(operands) == 1:
        return Operand(_NULL | {ValueClass.DATETIME})
    if name == "UNIX_TIMESTAMP()" and not operands:
        return Operand(_WHOLE)
    if name in _ADD_TO_FIRST and operands and operands[0].classes <= _MOMENT | _DAY:
        return Operand(_MOMENT | _DAY, operands[0].unknown)
    if name in _MOVE_FIRST and operands and operands[0].classes <= _WRITTEN_DATE:
        return Operand(_NULL | {ValueClass.TEXT_DATE})
    if name == "COLLATE" and operands:
        return operands[0]
    if name.startswith("EXTRACT("):
        return Operand(_WHOLE)
    classes = _RESULTS.get(name)
    if classes is None:
        return Operand(_JSON if name.startswith("JSON_") else ANY)
    if name in ("|", "&", "^", "BIT_AND()", "BIT_OR()", "BIT_XOR()") and given.classes <= TRUTH:
        return Operand(TRUTH)  # bits of whole numbers from 0 to 2^63 - 1
    if name in ("|", "&", "^", "~", "<<", ">>", "BIT_AND()", "BIT_OR()", "BIT_XOR()") and given.classes & _BINARY:
        classes |= {ValueClass.BYTES}
    if classes is _TEXT and given.classes & _MAKE_BYTES:
        classes = _TEXT_OR_BYTES
    elif name in _MAKE_DECIMAL and operands and given.classes <= _EXACT:
        classes = _NULL | {ValueClass.DECIMAL}
    elif name in _WHOLE_OF_WHOLE and operands and given.classes <= _EXACT:
        classes = _INTEGERS if given.classes <= _INTEGERS else _EXACT
    counting = operands if name in _SIGNS else operands[:1]
    if name in _OF_DOUBLES and any(one.classes <= _DOUBLE for one in counting):
        classes = _DOUBLE
    elif name in _OF_DECIMALS and classes is _EXACT and any(one.classes <= _DECIMAL for one in counting):
        classes = _NULL | {ValueClass.DECIMAL}
    elif classes in (_INTEGERS, _EXACT) and given.classes <= _SIGNED and (name != "*" or _is_signed_product(operands)):
        classes &= _SIGNED  # what is larger than the operands' type is an error
    if name in ("+", "*") and given.classes <= TRUTH:
        classes -= _NEGATIVE
    return Operand(classes)


def _is_signed_product(operands: Sequence[Operand]) -> bool:
    """Return whether a product of such numbers is under 2^63: that of two INT UNSIGNED may be more."""
    if all(one.below or ValueClass.NEGATIVE in one.classes for one in operands):
        return True  # all are signed
    return any(0 < one.below <= BOUNDS[1] for one in operands) and all(one.kind or one.below for one in operands)


_CASTS: Final[dict[str, Classes]] = {
    "SIGNED": _WHOLE,
    "INTEGER": _WHOLE,
    "INT": _WHOLE,
    "UNSIGNED": _BITS,
    "DECIMAL": _NULL | {ValueClass.DECIMAL},
    "DOUBLE": _DOUBLE,
    "FLOAT": _DOUBLE,
    "REAL": _DOUBLE,
    "DATE": _DAY,
    "DATETIME": _MOMENT,
    "TIME": _CLOCK,
    "YEAR": _NULL | {ValueClass.YEAR},
    "CHAR": _NULL | TEXTS,
    "NCHAR": _NULL | TEXTS,
    "BINARY": _NULL | {ValueClass.BYTES},
    "JSON": _NULL | {ValueClass.JSON},
}


def result_of_cast(kind: str) -> Operand:
    """Return the operand of CAST to a type, whose first word is `kind`."""
    return Operand(_CASTS.get(kind, ANY))


def moved(given: Operand) -> Operand:
    """Return a day or a moment that a small INTERVAL was added to: a day becomes a moment where hours are added, and one with zeros may
    become NULL."""
    zeros = given.classes & ZERO
    classes = DAYS_AND_MOMENTS if ValueClass.DATE in given.classes else given.classes
    return Operand(classes | zeros | {ValueClass.NULL} if zeros else classes)


def negated(given: Operand) -> Operand:
    """Return the operand of a minus before another."""
    if given.is_literal and given.classes == {ValueClass.INTEGER}:
        return Operand(frozenset((ValueClass.NEGATIVE,)), is_literal=True, below=given.below)
    if given.is_literal and len(given.classes) == 1 and given.classes <= NUMBERS:
        return given
    return Operand(NUMBERS, given.unknown)
