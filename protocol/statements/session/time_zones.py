"""The session's time zone, for NOW() and for times in statements.

Offsets are known; of names only those of UTC, which SYSTEM means here: a server without the tables of time zones refuses the others
too.
"""

import re
from datetime import UTC, timedelta, timezone
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Value
from protocol.statements.session.refusals import shown

_NAMES_OF_UTC: Final = frozenset(("SYSTEM", "UTC", "GMT", "ETC/UTC", "ETC/GMT"))
_OFFSET: Final = re.compile(r"([+-])(\d{1,2}):([0-5]\d)")
# The range of MySQL 8.0.19 and later, which is the widest.
_EARLIEST: Final = timedelta(hours=-13, minutes=-59)
_LATEST: Final = timedelta(hours=14)


def time_zone(value: Value) -> timezone:
    """Return the zone for this value of time_zone. Raises: StatementRefused (1298)."""
    text = str(value)
    if text.upper() in _NAMES_OF_UTC:
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3])) * (-1 if match[1] == "-" else 1)
        if _EARLIEST <= offset <= _LATEST:
            return timezone(offset)
    raise StatementRefused(
        ErrorCode.ER_UNKNOWN_TIME_ZONE,
        f"Unknown or incorrect time zone: '{shown(text, 64)}'; binlog-relay knows offsets",
    )
