"""Modes of a MariaDB's sql_mode that MySQL does not have, and what a statement means under them."""

import re
from typing import Final

from relay.view.rules.mariadb.status import status_stops

_ORACLE: Final = 1 << 9
_NO_ENGINE_SUBSTITUTION: Final = 1 << 30
EMPTY_STRING_IS_NULL: Final = 1 << 32
SIMULTANEOUS_ASSIGNMENT: Final = 1 << 33
_TIME_ROUND_FRACTIONAL: Final = 1 << 34
_KNOWN: Final = (1 << 35) - 1
_KEPT: Final = (1 << 32) - 1
_TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
"""Of MySQL: the number that MariaDB's EMPTY_STRING_IS_NULL has."""
_ON_UPDATE: Final = re.compile(rb"\bon\s+update\b", re.IGNORECASE)
_UPDATE: Final = re.compile(rb"\bupdate\b", re.IGNORECASE)
_EMPTY: Final = (b"''", b'""')


def is_plain(mode: int) -> bool:
    """Whether no statement means anything else without what MySQL lacks."""
    return not mode & (_ORACLE | EMPTY_STRING_IS_NULL | SIMULTANEOUS_ASSIGNMENT | ~_KNOWN)


def mode_for_target(mode: int) -> int:
    """MariaDB cuts fractions of seconds that a column has no room for; MySQL rounds them, unless a mode says otherwise."""
    return mode & _KEPT | (0 if mode & _TIME_ROUND_FRACTIONAL else _TIME_TRUNCATE_FRACTIONAL)


def without_engine_check(mode: int) -> int:
    """The replicas take InnoDB for an engine that they do not have, in place of 1286."""
    return mode & ~_NO_ENGINE_SUBSTITUTION


def check_modes(mode: int, text: bytes, title: str, *, is_dml: bool) -> None:
    """Nothing where the statement means the same without the modes that MySQL lacks. Two quotes side by side, or an UPDATE, are
    enough to say that it does not: for definitions too, whose defaults and bodies are read under the same modes.

    Raises: CannotBeKept.
    """
    if mode & ~_KNOWN:
        number = (mode & ~_KNOWN).bit_length() - 1
        status_stops.mode_missing(f"number {number}", "of which nothing is known", text, title)
    if mode & EMPTY_STRING_IS_NULL and any(quotes in text for quotes in _EMPTY):
        status_stops.mode_missing("EMPTY_STRING_IS_NULL", "by which '' is NULL here", text, title)
    if mode & SIMULTANEOUS_ASSIGNMENT and _UPDATE.search(_ON_UPDATE.sub(b"", text)):
        effect = "by which an UPDATE sets all columns from the values before it"
        status_stops.mode_missing("SIMULTANEOUS_ASSIGNMENT", effect, text, title)
    if is_dml and mode & _ORACLE:
        status_stops.mode_missing("ORACLE", "by which NULL in || is an empty text, and more", text, title)
