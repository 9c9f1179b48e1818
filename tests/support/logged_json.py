"""JSON documents as MySQL's binlogs contain them, read by the manual alone: a second opinion that does not use `protocol`."""

import struct
from typing import Any, Final

_OBJECTS, _ARRAYS, _LITERAL, _DOUBLE, _STRING = (0, 1), (2, 3), 4, 11, 12
_LITERALS: Final = (None, True, False)
_NUMBERS: Final = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", _DOUBLE: "<d"}
_IN_PLACE: Final = (_LITERAL, 5, 6)
"""Numbers of 4 bytes are in place, too, if offsets have as many."""


def json_of(data: bytes) -> Any:
    """Return what json.loads would return; empty data is null. Raises: ValueError for dates, decimals and the like in it."""
    return _value(data[0], data, 1) if data else None


def _value(kind: int, data: bytes, at: int) -> Any:
    if kind in _OBJECTS or kind in _ARRAYS:
        return _container(kind, data, at)
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind in _NUMBERS:
        return struct.unpack_from(_NUMBERS[kind], data, at)[0]
    if kind == _STRING:
        size = shift = 0
        while True:
            size |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return data[at : at + size].decode()
    raise ValueError(f"a JSON value of type {kind} is not read here")


def _container(kind: int, data: bytes, start: int) -> Any:
    wide = kind % 2
    size = 4 if wide else 2

    def number(at: int, count: int = size) -> int:
        return int.from_bytes(data[start + at : start + at + count], "little")

    count, at = number(0), 2 * size
    keys = []
    if kind in _OBJECTS:
        for _ in range(count):
            offset, length = number(at), number(at + size, 2)
            keys.append(data[start + offset : start + offset + length].decode())
            at += size + 2
    values = []
    for _ in range(count):
        of = data[start + at]
        in_place = of in _IN_PLACE or (wide and of in (7, 8))
        values.append(_value(of, data, start + (at + 1 if in_place else number(at + 1))))
        at += 1 + size
    return dict(zip(keys, values, strict=True)) if kind in _OBJECTS else values
