"""COM_REFRESH: mysqladmin's flush-... for servers before MySQL 5.7 and for MariaDB, as the equivalent statement."""

from typing import Final

from protocol.statements.requests import Flush

# The bits, and FLUSH's words for them. Source: MySQL 5.6 `include/mysql_com.h`.
_FLUSHED: Final = (
    (0x01, "PRIVILEGES"),
    (0x02, "LOGS"),
    (0x04, "TABLES"),
    (0x08, "HOSTS"),
    (0x10, "STATUS"),
    (0x40, "SLAVE"),
    (0x80, "MASTER"),
)


def refresh_request(body: bytes) -> Flush | None:
    """Return the FLUSH that the command's flags (u8) mean; None if they mean nothing."""
    flags = body[0] if body else 0
    what = tuple(name for bit, name in _FLUSHED if flags & bit)
    return Flush(what) if what else None
