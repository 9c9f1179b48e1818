# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Texts that many rows of a batch share, each held once: rows say which one by its number, as in Arrow's dictionaries."""

import cython

if not cython.compiled:
    from protocol.columns.text.json_text import put_lossy
    from protocol.kernel.pure import unset_bytes

C_NO_ROOM = cython.declare(cython.int, -2)


class BatchTexts:
    """The texts of one batch. The buffers of a batch are not written to any more once the next has begun."""

    def __init__(self, count_room, data_room):
        self.count_room = count_room
        self.data_room = data_room
        self.begin_batch()

    def begin_batch(self):
        """Nothing is in the batch."""
        self.offsets_buffer = bytearray(4 * (self.count_room + 1))
        self.data_buffer = unset_bytes(self.data_room)
        self.offsets = memoryview(self.offsets_buffer).cast("i")
        self.data = memoryview(self.data_buffer)
        self.count = 0
        self.used = 0
        self.lacks = False
        self.lacking = 0

    def make_room(self):
        """More of it, where `add` found none and the batch was empty, so that the next `add` of that text does."""
        if self.lacks:
            self.data_room = max(self.data_room, self.lacking)
            self.begin_batch()

    def add(self, p, start, stop):
        """The number of the text p[start:stop], with U+FFFD for what is no UTF-8. NO_ROOM: end the batch, or make_room."""
        if self.count >= self.count_room:
            return C_NO_ROOM
        if cython.compiled:
            end = put_lossy(cython.address(self.data[0]), self.used, self.data_room, p, start, stop)
        else:
            end = put_lossy(self.data, self.used, self.data_room, p, start, stop)
        if end < 0:
            self.lacks = True
            self.lacking = (stop - start) * 3 + 16
            return C_NO_ROOM
        self.used = end
        self.count += 1
        self.offsets[self.count] = end
        return self.count - 1
