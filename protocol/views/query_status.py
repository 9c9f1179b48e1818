# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The place of a new status variable among those of a Query event."""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, text_of


def place_of_explicit(p: Bytes, at: int, end: int) -> int:
    """Return where the status variable for TIMESTAMP columns goes among those in p[at:end].

    It follows all that servers before 5.7 know, and precedes the first that they do not. STATUS_SAID: it is there. STATUS_DAMAGED: a
    variable passes `end`.
    Servers write the variables in the order of their codes, and read up to the first code that they do not know.
    Layout: code u8, value; of texts: length u8, bytes (of 2 also a zero); of 11: two texts; of 12: count u8, names that end in zero,
    none if the count is above 16. Source: MySQL 9.7 `statement_events.h`, the same in 5.6.
    """
    while at < end:
        code = p[at]
        if code == VARIABLE_EXPLICIT_TIMESTAMPS:
            return STATUS_SAID if at + 2 <= end else STATUS_DAMAGED
        if code > VARIABLE_LAST_OF_56:
            return at
        at += 1
        if code == VARIABLE_CHARSETS:
            at += 6
        elif code == VARIABLE_SQL_MODE or code == VARIABLE_UPDATED_TABLES:
            at += 8
        elif code == VARIABLE_CATALOG or code == VARIABLE_TIME_ZONE or code == VARIABLE_CATALOG_WITH_ZERO:
            if at < end:
                at += p[at]
            at += 2 if code == VARIABLE_CATALOG_WITH_ZERO else 1
        elif code == VARIABLE_LC_TIME_NAMES or code == VARIABLE_SCHEMA_COLLATION:
            at += 2
        elif code == VARIABLE_MICROSECONDS:
            at += 3
        elif code == VARIABLE_INVOKER:
            if at < end:
                at += p[at]
            at += 1
            if at < end:
                at += p[at]
            at += 1
        elif code == VARIABLE_UPDATED_SCHEMAS:
            names = p[at] if at < end else 0
            at += 1
            if names <= VARIABLE_MOST_SCHEMAS:
                while names > 0:
                    while at < end and p[at] != 0:
                        at += 1
                    at += 1
                    names -= 1
        else:  # flags, auto_increment, bytes at the source
            at += 4
    return at if at == end else STATUS_DAMAGED


def explicit_place(status: bytes) -> int:
    """Call `place_of_explicit` for the status variables of one Query event: an index, STATUS_SAID or STATUS_DAMAGED."""
    count = len(status)
    if count + 2 > MAX_STATUS:
        return STATUS_DAMAGED
    if cython.compiled:
        place = place_of_explicit(text_of(status), 0, count)
    else:
        place = place_of_explicit(status, 0, count)
    return place
