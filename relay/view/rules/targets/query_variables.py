"""The status variables of a Query event: under what its statement ran."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from protocol.binlog.fields import Fields

FLAGS: Final = 0
SQL_MODE: Final = 1
CHARSETS: Final = 4
LOCALE: Final = 7
DATABASE_COLLATION: Final = 8
MICROSECONDS: Final = 13
EXPLICIT_TIMESTAMPS: Final = 16
UTF8MB4_DEFAULT: Final = 18
_TOO_MANY_SCHEMAS: Final = 254
ValueReader = Callable[[Fields], object]
"""Reads a value to its end."""


class StatusCodes(NamedTuple):
    """The codes that servers of a family write. sizes: of values of one size each, bytes. readers: of all others."""

    sizes: Mapping[int, int]
    readers: Mapping[int, ValueReader]


def _catalog_with_zero(fields: Fields) -> None:
    fields.short_bytes()
    fields.skip(1)


def _two_texts(fields: Fields) -> None:
    fields.short_bytes()
    fields.short_bytes()


def _schemas(fields: Fields) -> None:
    count = fields.u8()
    for _ in range(0 if count == _TOO_MANY_SCHEMAS else count):
        fields.nul_bytes()


SHARED_CODES: Final = StatusCodes(
    {FLAGS: 4, SQL_MODE: 8, 3: 4, CHARSETS: 6, LOCALE: 2, DATABASE_COLLATION: 2, 9: 8, 10: 4},
    {2: _catalog_with_zero, 5: Fields.short_bytes, 6: Fields.short_bytes, 11: _two_texts},
)
"""What MySQL and MariaDB write alike."""
# 21 is of 9.6 and later; one byte, 0 on 9.7.4, in front of INSERT, UPDATE, DELETE and REPLACE only.
_MYSQL_SIZES: Final = {
    MICROSECONDS: 3, 14: 8, 15: 16, EXPLICIT_TIMESTAMPS: 1, 17: 8, UTF8MB4_DEFAULT: 2, 19: 1, 20: 1, 21: 1,
}  # fmt: skip
MYSQL_CODES: Final = StatusCodes({**SHARED_CODES.sizes, **_MYSQL_SIZES}, {**SHARED_CODES.readers, 12: _schemas})


class StatusVariable(NamedTuple):
    """A code and its value, as it stands in the event."""

    code: int
    value: bytes


class UnknownVariable(Exception):
    """A code that nobody described when this was written: where its value ends is not known, nor what is behind it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status variable {code}")
        self.code = code


def decode_status(status: bytes, codes: StatusCodes = MYSQL_CODES) -> list[StatusVariable]:
    """The variables in the event's order.

    Layout: code u8, value; of texts: length u8, bytes; of 11: two texts; of 12: count u8 (254: too many), texts that end in zero.
    Raises: Truncated; UnknownVariable. Source: MySQL 9.7 `statement_events.h`; 19 to 21 seen on 9.7.4, one byte each.
    """
    fields = Fields(status)
    sizes, readers = codes
    found = []
    while fields.remaining:
        code = fields.u8()
        start = fields.offset
        if code in sizes:
            fields.skip(sizes[code])
        elif code in readers:
            readers[code](fields)
        else:
            raise UnknownVariable(code)
        found.append(StatusVariable(code, status[start : fields.offset]))
    return found


def encode_status(variables: Iterable[tuple[int, bytes]]) -> bytes:
    """The reverse of `decode_status`."""
    return b"".join(bytes((code,)) + value for code, value in variables)
