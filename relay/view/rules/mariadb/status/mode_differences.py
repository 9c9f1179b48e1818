"""Modes of a MariaDB's sql_mode that MySQL does not have, and the meaning of a statement under them."""

import re
from typing import Final

from protocol.sql.sql_mode import (
    EMPTY_STRING_IS_NULL,
    IN_BOTH,
    NO_ENGINE_SUBSTITUTION,
    OF_MARIADB,
    ORACLE,
    SIMULTANEOUS_ASSIGNMENT,
    TIME_ROUND_FRACTIONAL,
    TIME_TRUNCATE_FRACTIONAL,
)
from relay.view.stops import statement_stops

_ON_UPDATE: Final = re.compile(rb"\bon\s+update\b", re.IGNORECASE)
_UPDATE: Final = re.compile(rb"\bupdate\b", re.IGNORECASE)
_EMPTY: Final = (b"''", b'""')


def is_plain(mode: int) -> bool:
    """Return whether all statements have the same meaning without the modes that MySQL does not have."""
    return not mode & (ORACLE | EMPTY_STRING_IS_NULL | SIMULTANEOUS_ASSIGNMENT | ~OF_MARIADB)


def mode_for_target(mode: int) -> int:
    """Return the target's mode: MariaDB cuts surplus fractions of seconds; MySQL rounds them, unless a mode says otherwise."""
    return mode & IN_BOTH | (0 if mode & TIME_ROUND_FRACTIONAL else TIME_TRUNCATE_FRACTIONAL)


def without_engine_check(mode: int) -> int:
    """Return the mode under which the replicas use InnoDB for an engine that they do not have, instead of 1286."""
    return mode & ~NO_ENGINE_SUBSTITUTION


def check_modes(mode: int, text: bytes, title: str, *, is_dml: bool) -> None:
    """Check that the statement means the same without the modes that MySQL does not have. Two adjacent quotes, or an UPDATE, suffice to
    say that it does not: for definitions too, whose defaults and bodies are read under the same modes.

    Raises: Untranslatable.
    """
    if mode & ~OF_MARIADB:
        number = (mode & ~OF_MARIADB).bit_length() - 1
        raise statement_stops.sql_mode_missing(title, text, f"number {number}", "of which nothing is known")
    if mode & EMPTY_STRING_IS_NULL and any(quotes in text for quotes in _EMPTY):
        raise statement_stops.sql_mode_missing(title, text, "EMPTY_STRING_IS_NULL", "by which '' is NULL here")
    if mode & SIMULTANEOUS_ASSIGNMENT and _UPDATE.search(_ON_UPDATE.sub(b"", text)):
        effect = "by which an UPDATE sets all columns from the values before it"
        raise statement_stops.sql_mode_missing(title, text, "SIMULTANEOUS_ASSIGNMENT", effect)
    if is_dml and mode & ORACLE:
        raise statement_stops.sql_mode_missing(title, text, "ORACLE", "by which NULL in || is an empty text, and more")
