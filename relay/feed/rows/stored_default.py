"""The values that a server stores for written defaults, `12:00` is 12:00:00 in a TIME column, `b,a` is a,b in a SET; and for none."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from protocol.binlog.schema.column_description import column_texts
from relay.feed.rows.lake_columns import BYTES, DOCUMENT, LABEL, NUMBER, TEXT, TIME, LakeColumn, parsed_type

UNKNOWN: Final = object()
_SHOWN_DIGITS: Final = 6
_DECIMALS: Final = frozenset(("decimal", "numeric", "dec", "fixed"))
_UNSIZED_BYTES: Final = frozenset(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_ANY_NUMBER: Final = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?", re.ASCII | re.IGNORECASE)
_BITS: Final = re.compile(r"b'([01]+)'", re.IGNORECASE)
_DATE: Final = re.compile(r"[1-9]\d{3}-\d\d-\d\d")
_DATETIME: Final = re.compile(r"[1-9]\d{3}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.(\d{1,6}))?)?")
_CLOCK: Final = re.compile(r"-?\d{2,3}:[0-5]\d:[0-5]\d(?:\.(\d{1,6}))?")
# Without quotation marks it may be a number, bytes, a call or an expression: another text is stored for these.
_NO_TEXT: Final = re.compile(
    r"'.*|.*`.*|0[xb].*|[bxn]'[^']*'|_\w+\s*'.*'|[-+\d.]*e[-+\d]+|[-+]?\.\d*|[-+]?\d+\.|-[0.]+|[-+]?0\d[\d.]*|[-+\d.]{31,}|\(.*|.*\).*",
    re.IGNORECASE | re.DOTALL,
)


def stored_default(column: LakeColumn, text: str, *, quoted: bool) -> Any:
    """Return the stored value as JSON has it; UNKNOWN if that is uncertain. `quoted` says that the text was in quotation marks."""
    base, inside, _unsigned = parsed_type(column.source)
    if column.kind in (BYTES, DOCUMENT):
        return UNKNOWN
    if column.kind == NUMBER:
        return UNKNOWN if quoted and base == "bit" else _number(column, text.strip(), base, inside)
    if not quoted and _NO_TEXT.fullmatch(text) and column.kind in (LABEL, TEXT):
        return UNKNOWN
    if column.kind == LABEL:
        return _label(column_texts(column.source.type), text, base)
    if column.kind == TIME:
        return _moment(text.strip(), base, inside)
    if base == "time":
        match = _CLOCK.fullmatch(text.strip())
        return text.strip() if match is not None and len(match[1] or "") == int(inside or 0) else UNKNOWN
    if base in _DECIMALS:
        scale = int(inside.partition(",")[2] or 0)
        wanted = rf"-?(?:0|[1-9]\d*)\.\d{{{scale}}}" if scale else r"-?(?:0|[1-9]\d*)"
        return text if re.fullmatch(wanted, text) and not re.fullmatch(r"-[0.]+", text) else UNKNOWN
    if base in ("uuid", "inet4", "inet6"):
        return UNKNOWN
    text = text.rstrip(" ") if base == "char" else text
    return UNKNOWN if inside.isdigit() and len(text) > int(inside) else text


def implicit_value(column: LakeColumn) -> Any:
    """Return the value of a column that is NOT NULL and has no default if a statement gave none: without strict mode, with IGNORE, or in rows that
    existed at an ALTER TABLE … ADD. It is as JSON has it; UNKNOWN if uncertain, and for times that begin with 0000-00-00.

    Source: MySQL 9.7 Reference Manual, Data Type Default Values; seen on 5.6, 9.7, MariaDB 10.11, 11.8.
    """
    base, inside, _unsigned = parsed_type(column.source)
    if base in _DECIMALS:
        return _decimal("0", int(inside.partition(",")[2] or 0))
    if column.kind == NUMBER:
        return 0
    if column.kind == LABEL:
        return column_texts(column.source.type)[0] if base == "enum" else ""
    if base == "time":
        digits = int(inside or 0)
        return "00:00:00" + (f".{'0' * digits}" if digits else "")
    if column.kind == TEXT:
        return UNKNOWN if base in ("uuid", "inet4", "inet6") else ""
    return {"base64": ""} if base in _UNSIZED_BYTES else UNKNOWN


def _number(column: LakeColumn, text: str, base: str, inside: str) -> Any:
    try:
        if base == "bit":
            bits = _BITS.fullmatch(text)
            return int(bits[1], 2) if bits is not None else int(text) if _INTEGER.fullmatch(text) else UNKNOWN
        if _ANY_NUMBER.fullmatch(text) is None:
            return UNKNOWN
        if base == "year":
            return int(text) if re.fullmatch(r"[1-9]\d{3}", text) else UNKNOWN
        if pa.types.is_floating(column.arrow):
            scale = inside.partition(",")[2]
            # Servers show at most six digits of a FLOAT: one with so many may have been cut when it was recorded.
            is_cut = pa.types.is_float32(column.arrow) and _digits(text) >= _SHOWN_DIGITS
            return UNKNOWN if is_cut or (scale and _places(text) > int(scale)) else float(text)
        if base in _DECIMALS:
            return _decimal(text, int(inside.partition(",")[2] or 0))
    except (ValueError, InvalidOperation):
        return UNKNOWN
    return int(text) if _INTEGER.fullmatch(text) else UNKNOWN


def _decimal(text: str, scale: int) -> Any:
    """Return a decimal with all its digits after the point, as images have it: keys are compared in this form."""
    stored = f"{Decimal(text):.{scale}f}"
    return UNKNOWN if _places(text) > scale else stored if re.search("[1-9]", stored) else stored.removeprefix("-")


def _digits(text: str) -> int:
    """Return the number of digits from the first that is not 0 on, without an exponent's."""
    return len(re.sub("[^0-9]", "", text.lower().partition("e")[0]).lstrip("0"))


def _places(text: str) -> int:
    exponent = Decimal(text).as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _label(texts: tuple[str, ...] | list[str], text: str, base: str) -> Any:
    """Return the texts as the type has them, in its order: a collation takes `a` for `A`."""
    if base == "enum":
        return text if text in texts else UNKNOWN
    chosen = set(text.split(",")) if text else set()
    return ",".join(one for one in texts if one in chosen) if chosen <= set(texts) else UNKNOWN


def _moment(text: str, base: str, inside: str) -> Any:
    if base == "date":
        return text if _DATE.fullmatch(text) else UNKNOWN
    # A TIMESTAMP is in the time zone of the session that ran the statement.
    match = _DATETIME.fullmatch(text) if base == "datetime" else None
    digits = int(inside or 0)
    if match is None or len(match[1] or "") > digits:
        return UNKNOWN
    text = text if " " in text else f"{text} 00:00:00"
    return text if not digits else f"{text.partition('.')[0]}.{(match[1] or '').ljust(digits, '0')}"
