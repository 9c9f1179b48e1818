"""The values that a session may set a system variable of text to: those of servers, where they have a list.

A value that no server has would be kept and shown for nothing, and be as long as its client liked.
"""

from typing import Final

from protocol.sql.sql_mode import MODE_NAMES
from protocol.statements.session.refusals import wrong_value

MAX_TEXT_CHARACTERS: Final = 512
"""The limit for all other variables."""

_ISOLATION_LEVELS: Final = frozenset(("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"))
_VALUES: Final = {
    "binlog_format": frozenset(("STATEMENT", "ROW", "MIXED")),
    "binlog_row_image": frozenset(("MINIMAL", "NOBLOB", "FULL", "FULL_NODUP")),
    "query_cache_type": frozenset(("OFF", "ON", "DEMAND")),
    "session_track_gtids": frozenset(("OFF", "OWN_GTID", "ALL_GTIDS")),
    "transaction_isolation": _ISOLATION_LEVELS,
    "tx_isolation": _ISOLATION_LEVELS,
}
_MOST_DIGITS: Final = 20


def check_text(name: str, value: str) -> None:
    """Check a text. Raises: StatementRefused (1231) for a value that no server takes for this variable; numbers of values are
    accepted.
    """
    if len(value) > MAX_TEXT_CHARACTERS:
        raise wrong_value(name, value)
    if value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return
    if name == "sql_mode":
        for mode in value.upper().split(","):
            if mode.strip() and mode.strip() not in MODE_NAMES:
                raise wrong_value(name, mode)
    elif name in _VALUES and value.upper() not in _VALUES[name]:
        raise wrong_value(name, value)
