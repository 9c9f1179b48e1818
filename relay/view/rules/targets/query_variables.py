"""The status variables of a Query event: under what its statement ran."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.binlog.fields import Fields

SQL_MODE: Final = 1
CHARSETS: Final = 4
DATABASE_COLLATION: Final = 8
EXPLICIT_TIMESTAMPS: Final = 16
UTF8MB4_DEFAULT: Final = 18
_CATALOG_WITH_ZERO: Final = 2
_INVOKER: Final = 11
_UPDATED_SCHEMAS: Final = 12
_TOO_MANY_SCHEMAS: Final = 254
_TEXTS: Final = frozenset((5, 6))
# 21 is of 9.6 and later; one byte, 0 on 9.7.4, in front of INSERT, UPDATE, DELETE and REPLACE only.
_SIZES: Final = {
    0: 4, SQL_MODE: 8, 3: 4, CHARSETS: 6, 7: 2, DATABASE_COLLATION: 2, 9: 8, 10: 4, 13: 3, 14: 8, 15: 16,
    EXPLICIT_TIMESTAMPS: 1, 17: 8, UTF8MB4_DEFAULT: 2, 19: 1, 20: 1, 21: 1,
}  # fmt: skip


class StatusVariable(NamedTuple):
    """A code and its value, as it stands in the event."""

    code: int
    value: bytes


class UnknownVariable(Exception):
    """A code that nobody described when this was written: where its value ends is not known, nor what is behind it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status variable {code}")
        self.code = code


def decode_status(status: bytes) -> list[StatusVariable]:
    """The variables in the event's order.

    Layout: code u8, value; of texts: length u8, bytes; of 11: two texts; of 12: count u8 (254: too many), texts that end in zero.
    Raises: Truncated; UnknownVariable. Source: MySQL 9.7 `statement_events.h`; 19 to 21 seen on 9.7.4, one byte each.
    """
    fields = Fields(status)
    found = []
    while fields.remaining:
        code = fields.u8()
        start = fields.offset
        if code in _SIZES:
            fields.skip(_SIZES[code])
        elif code in _TEXTS:
            fields.short_bytes()
        elif code == _CATALOG_WITH_ZERO:
            fields.short_bytes()
            fields.skip(1)
        elif code == _INVOKER:
            fields.short_bytes()
            fields.short_bytes()
        elif code == _UPDATED_SCHEMAS:
            count = fields.u8()
            for _ in range(0 if count == _TOO_MANY_SCHEMAS else count):
                fields.nul_bytes()
        else:
            raise UnknownVariable(code)
        found.append(StatusVariable(code, status[start : fields.offset]))
    return found


def encode_status(variables: Sequence[StatusVariable]) -> bytes:
    """The reverse of `decode_status`."""
    return b"".join(bytes((code,)) + value for code, value in variables)
