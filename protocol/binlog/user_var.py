"""User_var: a user variable that the next statement reads."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from protocol.binlog.fields import Fields
from protocol.errors import Malformed


class UserVarType(IntEnum):
    """The type of the value. Source: `Item_result`, the same in every server."""

    STRING = 0
    REAL = 1
    INT = 2
    ROW = 3
    DECIMAL = 4


@dataclass(frozen=True, slots=True)
class UserVar:
    """Name and value; `type` and `value` are None for NULL. A decimal's value is left packed."""

    name: bytes
    type: UserVarType | None
    charset: int
    value: bytes | float | int | None


def decode_user_var(body: bytes) -> UserVar:
    """Decode a User_var event.

    Layout: name length u32, name | is_null u8 | unless null: type u8, charset u32, value length u32, value |
    from 5.6 and MariaDB 5.3: flags u8 (1: unsigned).
    Raises: Truncated; Malformed for an unknown type, or a number whose length is not 8.
    """
    fields = Fields(body)
    name = fields.take(fields.u32())
    if fields.u8():
        return UserVar(name, None, 0, None)
    code, charset = fields.u8(), fields.u32()
    raw = fields.take(fields.u32())
    unsigned = bool(fields.remaining and fields.u8() & 1)
    try:
        kind = UserVarType(code)
    except ValueError:
        raise Malformed(f"a user variable of type {code}; 0 to 4 exist") from None
    if kind in (UserVarType.REAL, UserVarType.INT) and len(raw) != 8:
        raise Malformed(f"a numeric user variable of {len(raw)} bytes instead of 8")
    value: bytes | float | int = raw
    if kind is UserVarType.INT:
        value = int.from_bytes(raw, "little", signed=not unsigned)
    elif kind is UserVarType.REAL:
        value = struct.unpack("<d", raw)[0]
    return UserVar(name, kind, charset, value)
