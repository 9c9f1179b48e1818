"""The values of row images as Arrow arrays: `b0`, `b1` … of images before, `a0`, `a1` … after."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from protocol.columns.rows.value_columns import ValueColumns

BEFORE: Final = "b"
AFTER: Final = "a"


def value_arrays(before: ValueColumns, after: ValueColumns, rows: int) -> Iterator[tuple[str, pa.Array]]:
    """Name and array of each column, as bytes: which of them are texts the rows' `shape` says."""
    for side, values in ((BEFORE, before), (AFTER, after)):
        values.finish(rows)
        valid, offsets, data = (memoryview(one) for one in (values.valid_bytes, values.offset_bytes, values.text_bytes))

        def used(buffer: memoryview, start: int, size: int) -> pa.Buffer:
            return pa.py_buffer(bytes(buffer[start : start + size]))

        for column in range(values.width):
            buffers = [
                used(valid, values.valid_at(column), (rows + 7) >> 3),
                used(offsets, values.offsets_at(column), 4 * (rows + 1)),
                used(data, values.bytes_at(column), values.size(column)),
            ]
            yield f"{side}{column}", pa.Array.from_buffers(pa.binary(), rows, buffers)
