"""The kernel's buffers as Arrow arrays, without copying them."""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.binlog_tables.plan.sequence import FIRST_TOO_FAR, POSITION_SHIFT, checked_base, too_large_for_sequence

_TYPES: Final = {"q": pa.int64(), "i": pa.int32(), "B": pa.uint8()}


def dictionary(words: Sequence[str | None]) -> pa.Array:
    """Return a column of texts. pa.array would import pandas if it is installed, which costs each Spark process half a second."""
    found = [word.encode() if word is not None else b"" for word in words]
    offsets = array("i", accumulate(map(len, found), initial=0))
    valid = bytearray((len(words) + 7) // 8)
    for row, word in enumerate(words):
        valid[row >> 3] |= (word is not None) << (row & 7)
    buffers = [pa.py_buffer(buffer) for buffer in (valid, offsets, b"".join(found))]
    return pa.Array.from_buffers(pa.string(), len(words), buffers)


def rising(count: int) -> pa.Array:
    """Return the numbers from 0 on."""
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(array("i", range(count)))])


def numbers(data: bytearray, kind: str, rows: int, validity: bytearray | None = None) -> pa.Array:
    """Return the first `rows` of a column of numbers; `kind` is that of the kernel's COLUMNS."""
    valid = None if validity is None else pa.py_buffer(validity)
    return pa.Array.from_buffers(_TYPES[kind], rows, [valid, pa.py_buffer(data)])


def times(data: bytearray, rows: int) -> pa.Array:
    """Return times from µs since 1970."""
    return pa.Array.from_buffers(pa.timestamp("us", tz="UTC"), rows, [None, pa.py_buffer(data)])


def truths(data: bytearray, rows: int) -> pa.Array:
    """Return booleans from bytes that are 0 or 1."""
    return numbers(data, "B", rows).cast(pa.bool_())


def words(data: bytearray, rows: int, dictionary: pa.Array) -> pa.Array:
    """Return words from bytes that number the words of `dictionary`."""
    return dictionary.take(numbers(data, "B", rows))


def texts(offsets: bytearray, data: bytearray, rows: int, validity: bytearray | None = None) -> pa.Array:
    """Return a text column. Bytes that are no UTF-8 become \\xNN: identifiers of a damaged file must not break a reader."""
    valid = None if validity is None else pa.py_buffer(validity)
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
    made = pa.Array.from_buffers(pa.string(), rows, buffers)
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        raw: list[Any] = pa.Array.from_buffers(pa.binary(), rows, buffers).to_pylist()
        return pa.array(
            [None if value is None else value.decode("utf-8", "backslashreplace") for value in raw], pa.string()
        )
    return made


def binaries(offsets: bytearray, data: bytearray, rows: int, validity: bytearray) -> pa.Array:
    """Return a column of bytes."""
    return pa.Array.from_buffers(pa.binary(), rows, [pa.py_buffer(buffer) for buffer in (validity, offsets, data)])


def text_lists(
    lists: bytearray, count: int, offsets: bytearray, data: bytearray, rows: int, kind: pa.DataType
) -> pa.Array:
    """Return a column of lists of texts, `count` texts in all."""
    values = texts(offsets, data, count)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(lists)], children=[values])


def sequences(file: str, base: int | None, positions: pa.Array) -> pa.Array:
    """Return numbers that order the places of a file among those of all files. Raises: ReadRefused."""
    if checked_base(file, base) is None:
        return pa.nulls(len(positions), pa.int64())
    if (pc.max(positions).as_py() or 0) >= FIRST_TOO_FAR:
        raise too_large_for_sequence(file, f"a position behind {FIRST_TOO_FAR}")
    return pc.add(pc.shift_right(positions, POSITION_SHIFT), base)


class Repeated:
    """One text, repeated for each row of a batch."""

    def __init__(self, value: str) -> None:
        self._scalar = pa.scalar(value, pa.string())
        self._array = pa.nulls(0, pa.string())

    def take(self, rows: int) -> pa.Array:
        """Return an array of `rows` times the text."""
        if len(self._array) < rows:
            self._array = pa.repeat(self._scalar, rows)
        return self._array.slice(0, rows) if len(self._array) > rows else self._array
