"""Values of level rows (docs/ROW-VALUES.md) as values of a column's type; a value that does not fit is reported, and never guessed."""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final

import pyarrow as pa

from protocol.errors import RelayError
from relay.binlog_tables.typed.column_kinds import JSON, MOST_DIGITS, arrow_type

_BOUNDS: Final = {"int": 1 << 31, "bigint": 1 << 63}
_WIDE: Final = 100
_NUMBER: Final = re.compile(r"\s*[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?\s*", re.ASCII | re.IGNORECASE)
"""A text of an older definition that is a number to a server: to Python `1_000` is one, too."""
_NO_NUMBERS: Final = ("Infinity", "-Infinity", "NaN")
"""Level rows writes these for what FLOAT and DOUBLE may have."""
_SHORT: Final = 16
"""A number with a point or an exponent and no more characters has at most 15 digits: a double keeps them."""
_TIME_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)
"""Python reads more than servers do, such as 2026-W01-1, and times with a zone, which no column keeps."""
_OF_BYTES: Final = "base64"
_OF_DOCUMENT: Final = "$json"
_OF_PARTS: Final = "$diffs"


class NotOfType(RelayError):
    """The error that a value is not of the column's type."""


def exact_number(text: str) -> float | Decimal:
    """Return a number of JSON with all its digits: MySQL has decimals in documents that a double may not represent exactly."""
    made = float(text)
    if len(text) <= _SHORT:
        return made
    exact = Decimal(text)
    return made if Decimal(repr(made)) == exact else exact


def typed_array(values: Sequence[Any], kind: str) -> tuple[pa.Array, list[int]]:
    """Return the values as a column, NULL for None, and the indices of those that are not of its type, which are NULL there."""
    kind_type = arrow_type(kind)
    convert = _converter(kind)
    wrong: list[int] = []
    made: list[Any] = []
    for number, value in enumerate(values):
        if value is None:
            made.append(None)
            continue
        try:
            made.append(convert(value))
        except NotOfType:
            wrong.append(number)
            made.append(None)
    return pa.array(made, kind_type), wrong


def _converter(kind: str) -> Callable[[Any], Any]:
    found = _CONVERTERS.get(kind)
    if found is not None:
        return found
    return _decimal_of(*(int(part) for part in kind.removeprefix("decimal(").removesuffix(")").split(",")))


def _integer_below(bound: int) -> Callable[[Any], int]:
    def integer(value: Any) -> int:
        if isinstance(value, str):
            value = _parsed_integer(value)
        if type(value) is not int or not -bound <= value < bound:
            raise NotOfType
        return value

    return integer


def _parsed_integer(text: str) -> int:
    """Return an integer that an older definition had as a text or a decimal."""
    _check_number(text)
    try:
        return int(text)
    except ValueError:
        raise NotOfType from None


def _check_number(value: Any) -> None:
    """Raise NotOfType for a text that is no number."""
    if isinstance(value, str) and _NUMBER.fullmatch(value) is None:
        raise NotOfType


def _decimal_of(digits: int, scale: int) -> Callable[[Any], Decimal]:
    step = Decimal(1).scaleb(-scale)
    bound = Decimal(10) ** (digits - scale)

    def decimal(value: Any) -> Decimal:
        if type(value) not in (str, int):
            raise NotOfType
        _check_number(value)
        try:
            with localcontext() as context:
                context.prec = _WIDE
                number = Decimal(value)
                made = number.quantize(step)
        except InvalidOperation:
            raise NotOfType from None
        if made != number or made.copy_abs() >= bound:
            raise NotOfType
        return made

    return decimal


def _floating(value: Any) -> float:
    if type(value) not in (int, float, str):
        raise NotOfType
    if value not in _NO_NUMBERS:
        _check_number(value)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise NotOfType from None


def _single(value: Any) -> float:
    number = _floating(value)
    if not isinstance(value, str) and abs(number) > 3.4028235677973366e38 and not math.isinf(number):
        raise NotOfType
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) in (int, float, Decimal):
        return _json_text(value)
    if isinstance(value, dict) and set(value) not in ({_OF_BYTES}, {_OF_PARTS}):
        return _json_text(value)  # a geometry
    raise NotOfType


def _document(value: Any) -> str:
    """Return a JSON document's text."""
    if isinstance(value, dict) and len(value) == 1:
        if _OF_DOCUMENT in value:
            value = value[_OF_DOCUMENT]
        elif _OF_PARTS in value or _OF_BYTES in value:
            raise NotOfType
    return _json_text(value)


def _variant(value: Any) -> str:
    """Return a document's text, from which Spark's own parser makes a VARIANT, with a double if a number has more digits than a
    decimal."""
    text = _document(value)
    if len(text) > MOST_DIGITS and not _has_variant_numbers(value):
        raise NotOfType
    return text


def _has_variant_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_has_variant_numbers, value.values()))
    if isinstance(value, list):
        return all(map(_has_variant_numbers, value))
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) <= MOST_DIGITS
    return not isinstance(value, int) or abs(value) < 10**MOST_DIGITS


def _json_text(value: Any) -> str:
    """Return a value as JSON; decimals (see exact_number) keep all their digits."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return _text_with_decimals(value)


def _text_with_decimals(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return f"[{', '.join(map(_text_with_decimals, value))}]"
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {_text_with_decimals(one)}" for key, one in value.items())
        return f"{{{', '.join(members)}}}"
    return json.dumps(value, ensure_ascii=False)


def _bytes(value: Any) -> bytes:
    if isinstance(value, dict) and set(value) == {_OF_BYTES}:
        try:
            return base64.b64decode(value[_OF_BYTES], validate=True)
        except (binascii.Error, TypeError):
            raise NotOfType from None
    # An older definition had it as a text: in its character set, which is not known here, other letters are other bytes.
    if isinstance(value, str) and value.isascii():
        return value.encode()
    raise NotOfType


def _date(value: Any) -> date:
    _check_time(value)
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise NotOfType from None


def _datetime(value: Any) -> datetime:
    _check_time(value)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise NotOfType from None


def _check_time(value: Any) -> None:
    """Raise NotOfType for anything that is no date and time as SQL prints it."""
    if not isinstance(value, str) or _TIME_TEXT.fullmatch(value) is None:
        raise NotOfType


def _timestamp(value: Any) -> datetime:
    return _datetime(value).replace(tzinfo=UTC)


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list):
        raise NotOfType
    return [_single(one) for one in value]


_CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _integer_below(_BOUNDS["int"]),
    "bigint": _integer_below(_BOUNDS["bigint"]),
    "float": _single,
    "double": _floating,
    "string": _text,
    JSON: _document,
    "variant": _variant,
    "binary": _bytes,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _datetime,
    "array<float>": _vector,
}
