"""The numbers of JSON documents that a lake cannot keep: those for which the nearest DOUBLE is another number.

DuckDB and most readers of a lake keep integers of 64 bits and DOUBLEs. A DECIMAL in a document of MySQL may have more digits than that. Only the
numbers of a document count: digits in its texts and names, and numbers of other columns, do not.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_IN_DOCUMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?[0-9][0-9.eE+-]*)')
"""This pattern finds the texts of a JSON document, and its numbers as a group."""
_MOST_DIGITS: Final = 15
"""A DOUBLE keeps every number with so many digits."""
_INTEGERS: Final = range(-(1 << 63), 1 << 64)


class _Written(str):
    """A number of a document as it is written."""

    __slots__ = ()


def inexact_number(document: str) -> str | None:
    """Return the first number of a JSON document that a lake cannot keep, as it is written; None if it keeps all of them."""
    for found in _IN_DOCUMENT.finditer(document):
        if found[1] is not None and not _is_kept(found[1]):
            return found[1]
    return None


def inexact_number_of(image: str, column: str) -> str | None:
    """Return what `inexact_number` returns, for the document that a column has in a row's image."""
    pending: list[Any] = [json.loads(image, parse_float=_Written, parse_int=_Written).get(column)]
    while pending:
        value = pending.pop()
        if isinstance(value, _Written) and not _is_kept(value):
            return str(value)
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return None


def _is_kept(text: str) -> bool:
    """Return whether a lake keeps a number as it is written."""
    if len(text) <= _MOST_DIGITS and not ("e" in text or "E" in text):
        return True
    if text.lstrip("-").isdigit() and len(text) <= 20 and int(text) in _INTEGERS:
        return True
    try:
        return Decimal(text) == Decimal(repr(float(text)))
    except InvalidOperation:
        return False
