"""Converts a JSON text, as MariaDB stores it, into a document of MySQL's binary JSON.

Layout of a document: type u8, value. Objects and arrays, small ones with numbers of two bytes, large ones of four: count | size in
bytes | for each key offset, length u16 | for each value type u8, and its offset or, where it fits, the value itself | keys | values.
Offsets count from the count on; keys are ordered by length, then by bytes. Source: MySQL 9.7 `sql-common/json_binary.cc`.
"""

import json
import math
import struct
from typing import Final

from protocol.errors import ErrorCode, RelayError

_SMALL_OBJECT: Final = 0
_LARGE_OBJECT: Final = 1
_SMALL_ARRAY: Final = 2
_LARGE_ARRAY: Final = 3
_LITERAL: Final = 4
_INT16: Final = 5
_UINT16: Final = 6
_INT32: Final = 7
_UINT32: Final = 8
_INT64: Final = 9
_UINT64: Final = 10
_DOUBLE: Final = 11
_STRING: Final = 12
_LITERALS: Final = {None: b"\0", True: b"\1", False: b"\2"}
_MOST_DEPTH: Final = 100
_LONGEST_KEY: Final = 65535
_MOST_SMALL: Final = 65535
_INLINED_SMALL: Final = frozenset((_LITERAL, _INT16, _UINT16))
_INLINED_LARGE: Final = _INLINED_SMALL | {_INT32, _UINT32}
_DIGITS_OF_U64: Final = 20

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


class NotJson(RelayError):
    """The text is no JSON to MySQL, or one that it does not store. `error` is its number."""

    def __init__(self, why: str, error: int = ErrorCode.ER_INVALID_JSON_TEXT_IN_PARAM) -> None:
        super().__init__(why)
        self.error = error


def binary_json(text: bytes) -> bytes:
    """Return the document that MySQL 9.7 makes of a text in utf8mb4. The last of equal keys counts; integers of more than 64 bits
    become doubles. Raises: NotJson."""
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError:
        raise NotJson("it is no text in utf8mb4", ErrorCode.ER_INVALID_JSON_TEXT) from None
    except RecursionError:
        raise NotJson(f"it is deeper than {_MOST_DEPTH} levels", ErrorCode.ER_JSON_DOCUMENT_TOO_DEEP) from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    kind, encoded = _encoded(value, 0)
    return bytes((kind,)) + encoded


def _integer(digits: str) -> int | float:
    if len(digits) <= _DIGITS_OF_U64:
        number = int(digits)
        if -(1 << 63) <= number < 1 << 64:
            return number
    return _real(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJson(f"the number {digits[:40]} is too large for a double")
    return number


def _constant(word: str) -> float:
    raise NotJson(f"{word} is no value of JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_constant)


def _encoded(value: Json, depth: int) -> tuple[int, bytes]:
    """Return type and value. `depth` is that of its container."""
    if value is None or value is True or value is False:
        return _LITERAL, _LITERALS[value]
    if isinstance(value, str):
        data = _utf8(value)
        return _STRING, _length(len(data)) + data
    if isinstance(value, int):
        return _encoded_integer(value)
    if isinstance(value, float):
        return _DOUBLE, struct.pack("<d", value)
    if depth >= _MOST_DEPTH:
        raise NotJson(f"it is deeper than {_MOST_DEPTH} levels", ErrorCode.ER_JSON_DOCUMENT_TOO_DEEP)
    if isinstance(value, list):
        values = [_encoded(one, depth + 1) for one in value]
        small = _container([], values, large=False)
        return (_LARGE_ARRAY, _container([], values, large=True) or b"") if small is None else (_SMALL_ARRAY, small)
    members = sorted(((_key(name), one) for name, one in value.items()), key=lambda member: (len(member[0]), member[0]))
    keys = [key for key, _ in members]
    values = [_encoded(one, depth + 1) for _, one in members]
    small = _container(keys, values, large=False)
    return (_LARGE_OBJECT, _container(keys, values, large=True) or b"") if small is None else (_SMALL_OBJECT, small)


def _encoded_integer(value: int) -> tuple[int, bytes]:
    """Return an integer; one above 32 bits counts as unsigned, as in the parser of MySQL."""
    if value >= 1 << 32:
        return _UINT64, struct.pack("<Q", value)
    if -(1 << 15) <= value < 1 << 15:
        return _INT16, struct.pack("<h", value)
    if -(1 << 31) <= value < 1 << 31:
        return _INT32, struct.pack("<i", value)
    return _INT64, struct.pack("<q", value)


def _container(keys: list[bytes], values: list[tuple[int, bytes]], *, large: bool) -> bytes | None:
    """Return an object with these keys, or without any an array; None: it is too large for a small one."""
    size = 4 if large else 2
    inlined = _INLINED_LARGE if large else _INLINED_SMALL
    number = struct.Struct("<I" if large else "<H")
    at = 2 * size + len(keys) * (size + 2) + len(values) * (1 + size)
    total = at + sum(map(len, keys)) + sum(len(data) for kind, data in values if kind not in inlined)
    if not large and (total > _MOST_SMALL or len(values) > _MOST_SMALL):
        return None
    parts = [number.pack(len(values)), number.pack(total)]
    for key in keys:
        parts.append(number.pack(at) + struct.pack("<H", len(key)))
        at += len(key)
    for kind, data in values:
        if kind in inlined:
            parts.append(bytes((kind,)) + _inline(kind, data, size))
        else:
            parts.append(bytes((kind,)) + number.pack(at))
            at += len(data)
    parts += keys
    parts += [data for kind, data in values if kind not in inlined]
    return b"".join(parts)


def _inline(kind: int, data: bytes, size: int) -> bytes:
    """Return a value in the place of an offset of `size` bytes."""
    if kind == _INT16 and data[1] & 0x80:
        return data.ljust(size, b"\xff")
    return data.ljust(size, b"\0")


def _key(name: str) -> bytes:
    data = _utf8(name)
    if len(data) > _LONGEST_KEY:
        raise NotJson(f"a key of {len(data)} bytes; the longest has {_LONGEST_KEY}", ErrorCode.ER_JSON_KEY_TOO_BIG)
    return data


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotJson("half of a surrogate pair stands alone in a string") from None


def _length(size: int) -> bytes:
    """Return a length in seven bits a byte, the lowest first; the eighth says that more follows."""
    made = bytearray()
    while size > 0x7F:
        made.append(size & 0x7F | 0x80)
        size >>= 7
    made.append(size)
    return bytes(made)
