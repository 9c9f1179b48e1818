# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""A batch of columns in the layout of Apache Arrow: numbers, texts of rows, and texts that rows share.

Buffers are handed out as they are. Those of a batch are not written to any more once the next has begun.
"""

from collections.abc import Mapping

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_lossy
    from protocol.kernel.pure import Bytes, Numbers, Writable, bytes_of, copy_bytes, ints_of, longs_of, unset_bytes

# Bytes of a value that every row sets, by the column's format. Other formats: "n": i64 with nulls; "l": list of texts: its offsets;
# "s": text with nulls; "d": text with nulls that rows share.
_BYTES = {"q": 8, "i": 4, "B": 1}


class TextColumn:
    """A text, or none, for each row. It grows with its texts; `room` is the bytes of a new one."""

    def __init__(self, capacity: int, room: int) -> None:
        self.capacity = capacity
        self.room = room
        self.begin()

    def begin(self) -> None:
        """Begin with new buffers."""
        self.used = 0
        self.offset_bytes = bytearray(4 * (self.capacity + 1))
        self.text_bytes = unset_bytes(self.room)
        self.valid_bytes = bytearray((self.capacity + 7) >> 3)
        self.offsets = ints_of(self.offset_bytes)
        self.data = bytes_of(self.text_bytes)
        self.valid = bytes_of(self.valid_bytes)

    def grow(self, more: int) -> None:
        """Make room for `more` bytes after the used ones; buffers that were handed out before do not change."""
        if self.used + more > self.room:
            self.room = max(self.room * 2, self.used + more)
            larger = unset_bytes(self.room)
            larger[: self.used] = memoryview(self.text_bytes)[: self.used]
            self.text_bytes = larger
            self.data = bytes_of(larger)

    def fits(self, more: int) -> bool:
        return self.used + more <= self.room

    def put(self, row: int, p: Bytes, at: int, count: int) -> None:
        """Store p[at:at + count], for which there is room, as the text of `row`."""
        copy_bytes(self.data, self.used, p, at, count)
        self.close(row, self.used + count)

    def close(self, row: int, used: int) -> None:
        """Record the text of `row`, which is in `data` and ends at `used`."""
        self.used = used
        self.offsets[row + 1] = used
        self.valid[row >> 3] |= 1 << (row & 7)

    def skip(self, row: int) -> None:
        """Record that `row` has no text."""
        self.offsets[row + 1] = self.used


class SharedTexts:
    """A text, or none, for each row; each text is stored once, and rows contain its number, as in Arrow's dictionaries."""

    def __init__(self, capacity: int, text_count: int, room: int) -> None:
        self.capacity = capacity
        self.text_count = text_count
        self.room = room
        self.begin()

    def begin(self) -> None:
        """Begin with new buffers."""
        self.number_bytes = bytearray(4 * self.capacity)
        self.valid_bytes = bytearray((self.capacity + 7) >> 3)
        self.offset_bytes = bytearray(4 * (self.text_count + 1))
        self.text_bytes = unset_bytes(self.room)
        self.numbers = ints_of(self.number_bytes)
        self.valid = bytes_of(self.valid_bytes)
        self.offsets = ints_of(self.offset_bytes)
        self.data = bytes_of(self.text_bytes)
        self.count = 0
        self.used = 0
        self.lacking = 0

    def make_room(self) -> None:
        """Reserve room in the next batch for the text that `add` found none for: it is longer than all of this one's."""
        self.room = max(self.room, self.lacking)

    def add(self, p: Bytes, start: int, stop: int) -> int:
        """Add the text p[start:stop], with U+FFFD for invalid UTF-8, and return its number. NO_ROOM: end the batch, or make_room."""
        if self.count >= self.text_count:
            return NO_ROOM
        end = put_lossy(self.data, self.used, self.room, p, start, stop)
        if end < 0:
            self.lacking = (stop - start) * 3 + 16
            return NO_ROOM
        self.used = end
        self.count += 1
        self.offsets[self.count] = end
        return self.count - 1

    def put(self, row: int, number: int) -> None:
        """Record the number of the text of `row`."""
        self.numbers[row] = number
        self.valid[row >> 3] |= 1 << (row & 7)


class ColumnBatch:
    """A batch of at most `capacity` rows of `columns`, name to format. `findings` counts rows with one, over all batches.

    `text_room` is the initial bytes of a column's texts for each row.
    """

    def __init__(self, capacity: int, columns: Mapping[str, str], text_room: int) -> None:
        if capacity < 1:
            raise ValueError(f"a batch of {capacity} rows holds nothing")
        self.capacity = capacity
        self.columns = dict(columns)
        self.texts = {
            name: TextColumn(capacity, capacity * text_room + 4096) for name, kind in columns.items() if kind == "s"
        }
        self.rows = 0
        self.findings = 0
        self.buffers: dict[str, bytearray] = {}
        self.nothing = bytearray(8)

    def begin(self) -> None:
        """Begin another batch with new buffers."""
        n = self.capacity
        self.rows = 0
        self.buffers = {}
        for name, kind in self.columns.items():
            if kind in _BYTES:
                self.buffers[name] = unset_bytes(n * _BYTES[kind])
            elif kind == "n":
                self.buffers[name] = bytearray(8 * n)
                self.buffers[name + ":valid"] = bytearray((n + 7) >> 3)
            elif kind == "l":
                self.buffers[name] = bytearray(4 * (n + 1))
        for texts in self.texts.values():
            texts.begin()

    # A column that is not made is never written to; a buffer that stays takes its place.

    def i64(self, name: str) -> Numbers:
        """Return the buffer of an i64 column."""
        return longs_of(self.buffers.get(name, self.nothing))

    def i32(self, name: str) -> Numbers:
        """Return the buffer of an i32 column."""
        return ints_of(self.buffers.get(name, self.nothing))

    def u8(self, name: str) -> Writable:
        """Return the buffer of a column of bytes."""
        return bytes_of(self.buffers.get(name, self.nothing))

    def bits(self, name: str) -> Writable:
        """Return the validity buffer of a column of numbers."""
        return bytes_of(self.buffers.get(name + ":valid", self.nothing))

    def text(self, name: str) -> TextColumn:
        """Return a text column; for one that is not made, one that is never written to."""
        return self.texts[name] if name in self.texts else TextColumn(1, 1)

    def column(self, name: str) -> bytearray:
        """Return the buffer of a column of numbers, of which the first `rows` values count."""
        return self.buffers[name]

    def validity(self, name: str) -> bytearray:
        """Return Arrow's validity bitmap of a column with nulls."""
        return self.texts[name].valid_bytes if name in self.texts else self.buffers[name + ":valid"]

    def text_column(self, name: str) -> tuple[bytearray, bytearray]:
        """Return offsets (i32, rows + 1 of them) and bytes of a text column."""
        return self.texts[name].offset_bytes, self.texts[name].text_bytes
