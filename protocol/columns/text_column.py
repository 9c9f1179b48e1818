# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""A column of texts, one for each row of a batch."""

import cython

if not cython.compiled:
    from protocol.kernel.pure import copy_bytes


class TextColumn:
    """Offsets, bytes and validity of a text column, as Apache Arrow lays them out; grows with what is put in."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.room = capacity * 16 + 4096
        self.begin()

    def begin(self):
        """Fresh buffers."""
        self.used = 0
        self.offsets_buffer = bytearray(4 * (self.capacity + 1))
        self.data_buffer = bytearray(self.room)
        self.valid_buffer = bytearray((self.capacity + 7) >> 3)
        self.offsets = memoryview(self.offsets_buffer).cast("i")
        self.data = memoryview(self.data_buffer)
        self.valid = memoryview(self.valid_buffer)

    def grow(self, more):
        """Makes room for `more` bytes behind what is used; what was handed out before stays as it is."""
        if self.used + more > self.room:
            self.room = max(self.room * 2, self.used + more)
            larger = bytearray(self.room)
            larger[: self.used] = memoryview(self.data_buffer)[: self.used]
            self.data_buffer = larger
            self.data = memoryview(larger)

    def fits(self, more):
        return self.used + more <= self.room

    def put(self, row, p, at, count):
        """The value of `row`: p[at:at + count]."""
        if cython.compiled:
            copy_bytes(cython.address(self.data[0]), self.used, p, at, count)
        else:
            copy_bytes(self.data, self.used, p, at, count)
        self.close(row, self.used + count)

    def close(self, row, used):
        """The value of `row` ends at `used` of the bytes."""
        self.used = used
        self.offsets[row + 1] = used
        self.valid[row >> 3] |= 1 << (row & 7)

    def skip(self, row):
        """`row` has no value."""
        self.offsets[row + 1] = self.used
