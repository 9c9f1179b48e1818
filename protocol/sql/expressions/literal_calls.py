"""Calls with such literals that all servers give the same."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from protocol.sql.expressions.constructs import BOUNDS, COMPARISONS, Operand
from protocol.sql.expressions.function_results import NUMBERS, result_of
from protocol.sql.expressions.literals import number_or_string
from protocol.sql.expressions.well_known_text import reads_well_known_text
from protocol.sql.lexer import SqlToken, TokenKind
from protocol.sql.survey.value_class import ValueClass, class_of_text

_OF_RANDOM: Final = frozenset(("RAND", "(", ")", "*", "+", "-"))
_SMALL: Final = 9
"""The digits of numbers whose products with RAND() all servers round and write alike."""
_MOST: Final = {"SECOND": BOUNDS[1], "MICROSECOND": BOUNDS[-1]}
"""What the amount is below by its unit, where not the least bound."""
_INTEGERS: Final = frozenset(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER"))
_ASCII: Final = 128
_ROUNDED: Final = frozenset(("FLOOR", "CEILING", "CEIL", "ROUND"))
_INTEGER_OR_NEGATIVE: Final = frozenset((ValueClass.INTEGER, ValueClass.NEGATIVE))
_OF_TIMESTAMP: Final = BOUNDS[2]
_COMPARED: Final = COMPARISONS | {"NULLIF()"}
_POSITIVE: Final = frozenset((ValueClass.INTEGER,))
_MOMENTS: Final = frozenset((ValueClass.DATE, ValueClass.DATETIME, ValueClass.DATE_ZERO))
_WRITTEN: Final = frozenset((ValueClass.TEXT_DATE,))
_WITH_ZEROS: Final = _MOMENTS | _WRITTEN | {ValueClass.NULL}
_MOMENT: Final = frozenset((ValueClass.DATETIME,))
_WITH_FORMAT: Final = 2
_OF_TIME: Final = re.compile(r"%[HhIklisSfTrp]|:")
_MOST_DECIMALS: Final = 30
_HEX_DIGITS: Final = frozenset("0123456789ABCDEFabcdef")
_WHOLE: Final = frozenset((ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.NULL))


def _is_small_random(inside: Sequence[SqlToken]) -> bool:
    """Return whether an argument has RAND() and small whole numbers in it, multiplied once at most, and nothing else."""
    words = [one.upper for one in inside]
    calls = [after == "(" for one, after in pairwise((*words, "")) if one == "RAND"]
    if not calls or not all(calls) or words.count("*") > 1:
        return False
    return all(
        one.upper in _OF_RANDOM or (one.kind is TokenKind.NUMBER and one.text.isdecimal() and len(one.text) <= _SMALL)
        for one in inside
    )


def call_alike(word: str, given: Sequence[Operand], inside: Sequence[SqlToken]) -> Operand | None:
    """Return what a function (in upper case) gives for arguments of which all servers make the same; None: it must be judged. `inside`
    are the tokens in its brackets.
    """
    if not given or not inside:
        return None
    if word in _ROUNDED and _is_small_random(inside):
        return Operand(_INTEGER_OR_NEGATIVE)
    if len(given) == 1 and (text := _text_alike(word, inside)) is not None:
        return text
    is_alike = _reads_number_alike(word, given, inside[-1])
    if word == "FROM_UNIXTIME" and len(given) == 1 and (is_alike or _is_near_now(inside)):
        return Operand(_MOMENT)
    if len(given) == 1:
        # Of a FLOAT older servers give more digits as its least and largest value.
        is_alike |= word in ("MIN", "MAX") and given[0].kind == "DOUBLE"
    return result_of(f"{word}()", given) if is_alike else _char_alike(word, given, inside[-1])


def formats_no_offset(word: str, given: Sequence[Operand], inside: Sequence[SqlToken]) -> bool:
    """Return whether a call is DATE_FORMAT with a literal format whose texts have no time offset, such as +02:00."""
    if word != "DATE_FORMAT" or len(given) != _WITH_FORMAT or inside[-1].kind is not TokenKind.STRING:
        return False
    text = inside[-1].text
    if inside[-2].text != "," or "+" in text:
        return False
    signs = [at for at, sign in enumerate(text) if sign == "-"]
    return all(_is_of_date(text, at) for at in signs) and not (signs and _OF_TIME.search(text[: signs[-1]]))


def _is_of_date(text: str, at: int) -> bool:
    """Return whether a minus sign in a format is between the parts of a date."""
    before, after = text[max(0, at - 2) : at], text[at + 1 : at + 2]
    return before in ("%Y", "%y", "%m", "%c") or (before in ("%d", "%e") and after == "%")


def _is_near_now(inside: Sequence[SqlToken]) -> bool:
    """Return whether an argument is UNIX_TIMESTAMP(), or that and a literal number for which it stays between 1970 and 2038."""
    words = [one.upper for one in inside]
    if words[:3] != ["UNIX_TIMESTAMP", "(", ")"] or len(words) not in (3, 5):
        return False
    if len(words) == 3:
        return True
    sign, number = inside[3:]
    most = {"+": BOUNDS[0], "-": BOUNDS[1]}.get(sign.upper, 0)
    return number.kind is TokenKind.NUMBER and 0 < number_or_string(number).below <= most


def _text_alike(word: str, inside: Sequence[SqlToken]) -> Operand | None:
    """Return what a function (in upper case) gives that gets a string alone, of which all servers make the same; None: they may not.
    `inside` are the tokens in its brackets: a string may be in several parts.
    """
    if not inside or any(one.kind is not TokenKind.STRING for one in inside):
        return None
    text = "".join(one.text for one in inside)
    if reads_well_known_text(word, text):
        return result_of(f"{word}()", (number_or_string(inside[0]),))
    if word != "UNHEX" or len(text) % 2 or not _HEX_DIGITS.issuperset(text):
        return None
    made = bytes.fromhex(text)
    return _bytes_as_text(made.decode("ascii")) if made.isascii() else Operand(frozenset((ValueClass.BYTES,)))


def _char_alike(word: str, given: Sequence[Operand], last: SqlToken) -> Operand | None:
    """Return what CHAR gives for a literal of ASCII; None: it is something else. `last` is the last token in its brackets."""
    if (
        word != "CHAR"
        or last.kind is not TokenKind.NUMBER
        or len(given) != 1
        or not _is_short(given[0])
        or int(last.text) >= _ASCII
    ):
        return None
    return _bytes_as_text(chr(int(last.text)))


def is_after_timestamps(given: Operand) -> bool:
    """Return whether a literal whole number is no Unix time of 31 bits."""
    return given.classes == _POSITIVE and not 0 < given.below <= _OF_TIMESTAMP


def _bytes_as_text(text: str) -> Operand:
    """Return a binary string of ASCII, which is stored, compared and joined as the text."""
    return Operand(frozenset((class_of_text(text),)), is_bytes=True)


def _is_short(given: Operand) -> bool:
    return given.is_literal and given.classes == _POSITIVE and 0 < given.below <= _OF_TIMESTAMP


def is_small(amount: Operand) -> bool:
    """Return whether the amount of an INTERVAL is a whole number by which all servers move dates alike.

    All servers move dates alike by whole numbers of 32 bits, tried with 2^31 - 1 of each unit, but for years of 2^32 - 1; and a MariaDB
    reads more than 6 digits of `SECOND_MICROSECOND` and the like in its own way.
    """
    if amount.kind in _INTEGERS and amount.classes <= _WHOLE:
        is_unsigned = ValueClass.NEGATIVE not in amount.classes
        return not amount.unit.endswith("_MICROSECOND") and not (is_unsigned and amount.unit == "YEAR")
    return 0 < amount.below <= _MOST.get(amount.unit, BOUNDS[0])


def _reads_number_alike(word: str, given: Sequence[Operand], last: SqlToken) -> bool:
    """Return whether a function (in upper case) gets such numbers that all servers make the same of them. `last` is the last token in
    its brackets.
    """
    if not _is_short(given[-1]):
        return False
    if last.kind is not TokenKind.NUMBER or not last.text.isdecimal():
        return False
    if len(given) == 1:
        return word == "FROM_UNIXTIME" and int(last.text) > 0
    return word == "FORMAT" and len(given) == 2 and given[0].classes <= NUMBERS and int(last.text) <= _MOST_DECIMALS


def with_dates(name: str, operands: Sequence[Operand]) -> Sequence[Operand]:
    """Return the operands of a comparison with days or moments, with literals such as '0000-00-00' as dates, where a sql_mode allows
    these: all servers compare them alike, tried with every comparison. CASE and GREATEST are none.
    """
    others = [one for one in operands if not (one.is_zero and one.is_literal)]
    if name not in _COMPARED or not others or not all(one.classes <= _WITH_ZEROS for one in others):
        return operands
    if not any(one.classes & _MOMENTS for one in others):
        return operands
    return [one._replace(classes=_WRITTEN) if one.is_zero and one.is_literal else one for one in operands]
