# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The values of row images, a column for each column of a table, all in one buffer, in the layout of Apache Arrow.

The first column contains the values of any table's first column, and so on: a batch contains rows of any tables, and columns that a
row's table lacks are NULL. The buffers are sparse, and used again: callers that keep values copy the used part.
"""

import cython

if not cython.compiled:
    from protocol.kernel.pure import bytes_of, ints_of, longs_of, unset_bytes

_MOST_BYTES = 1 << 26  # the limit of room that is made without need


class ValueColumns:
    """`width` columns of `room` bytes each, of `capacity` rows.

    A row's values are put one after the other: `ends` contains where each ends in its column, -1 for NULL; nothing of it counts
    before `close`. After `finish` the buffers are Arrow's, until the next batch begins.
    """

    def __init__(self, capacity: int, room: int) -> None:
        self.capacity = capacity
        self.room = room
        self.width = 0
        self.valid_size = (capacity + 7) >> 3
        self.lacks_room = False
        self.make_buffers()

    def begin(self) -> None:
        """Begin another batch; in larger buffers, if the last walk found no room in the previous ones."""
        if self.lacks_room and 2 * self.room * self.width <= _MOST_BYTES:
            self.room *= 2
            self.make_buffers()
            return
        self.lacks_room = False
        for i in range(self.valid_size * self.width):
            self.valid[i] = 0
        for i in range(3 * self.width):
            self.marks[i] = 0

    def make_buffers(self) -> None:
        """Make buffers for another width, or more room."""
        self.lacks_room = False
        n = self.width
        self.offset_bytes = bytearray(4 * (self.capacity + 1) * n + 8)
        self.valid_bytes = bytearray(self.valid_size * n + 8)
        # a byte in front: the writer of a text puts its quotation mark before it
        self.text_bytes = unset_bytes(1 + self.room * n)
        self.mark_bytes = bytearray(3 * 8 * n + 8)
        self.offsets = ints_of(self.offset_bytes)
        self.valid = bytes_of(self.valid_bytes)
        self.data = bytes_of(self.text_bytes)
        self.marks = longs_of(self.mark_bytes)

    def make_room(self, width: int) -> None:
        """Make room for a table of `width` columns; if there is, for a row that did not fit into an empty batch."""
        if width > self.width:
            self.width = width
        else:
            self.room *= 2
        self.make_buffers()

    # For each column: the used bytes, where the row's value ends, and how many rows are closed.

    def base(self, column: int) -> int:
        """Return where a column's bytes begin."""
        return 1 + column * self.room

    def used(self, column: int) -> int:
        return self.marks[3 * column]

    def note(self, column: int, end: int) -> None:
        """Note where the row's value of a column ends, from its base on; -1: it is NULL."""
        self.marks[3 * column + 1] = end

    def close(self, row: int, width: int) -> None:
        """Close `row`, which has values in the first `width` columns."""
        for i in range(width):
            self.fill(i, row)
            end = self.marks[3 * i + 1]
            if end >= 0:
                self.marks[3 * i] = end
                self.valid[i * self.valid_size + (row >> 3)] |= 1 << (row & 7)
            self.offsets[i * (self.capacity + 1) + row + 1] = self.marks[3 * i]
            self.marks[3 * i + 2] = row + 1

    def fill(self, column: int, rows: int) -> None:
        """Give the rows up to `rows` that had no value in a column an empty one."""
        for row in range(self.marks[3 * column + 2], rows):
            self.offsets[column * (self.capacity + 1) + row + 1] = self.marks[3 * column]
        if rows > self.marks[3 * column + 2]:
            self.marks[3 * column + 2] = rows

    def finish(self, rows: int) -> None:
        """End the batch after `rows` rows."""
        for i in range(self.width):
            self.fill(i, rows)

    def size(self, column: int) -> int:
        """Return how many bytes of a column are used."""
        return self.marks[3 * column]

    def offsets_at(self, column: int) -> int:
        """Return where a column's offsets (i32) begin in `offset_bytes`."""
        return 4 * column * (self.capacity + 1)

    def valid_at(self, column: int) -> int:
        """Return where a column's validity begins in `valid_bytes`."""
        return column * self.valid_size

    def bytes_at(self, column: int) -> int:
        """Return where a column's bytes begin in `text_bytes`."""
        return 1 + column * self.room
