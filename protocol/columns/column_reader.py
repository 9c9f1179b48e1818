# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What all readers of the walker's table share: events of a run in, a batch of columns out, stops on the way.

A reader's `walk` goes through the table without the GIL until the batch is full, room is lacking, or something inside an event
is packed. Room is made here; for the rest its owner is asked by what `take` returns.
"""

import cython

from protocol.columns.tables import TableMaps
from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.kernel.pure import load32

# What `take` returns; GROW and PLAN only what a walk returns: the reader sees to it (`resolve`) and walks again.
DONE = 0
FULL = 1
OPEN_ROWS = 2
OPEN_QUERY = 3
OPEN_PAYLOAD = 4
GROW = 5
OPEN_TABLE = 6
PLAN = 7
C_DONE = cython.declare(cython.int, 0)
C_FULL = cython.declare(cython.int, 1)
C_GROW = cython.declare(cython.int, 5)
C_PLAN = cython.declare(cython.int, 7)

# Format of a column's values -> bytes of one. "s": text with nulls, "l": list of texts: both are offsets; "d": text with nulls
# that rows share: its number; "n": i64 with nulls.
_BYTES = {"q": 8, "n": 8, "i": 4, "d": 4, "B": 1}


class ColumnReader:
    """`capacity` rows at most in a batch, `rows` of which are there. `findings` counts rows with one, over all batches;
    `timestamp` is the newest event's, in s.
    """

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError(f"a batch of {capacity} rows holds nothing")
        self.capacity = capacity
        self.rows = 0
        self.findings = 0
        self.timestamp = 0
        self.next_row = 0
        self.buffers = {}
        self.inference = Inference()
        self.tables = TableMaps()

    def begin_stream(self, post_lengths):
        """Another file or another split of one. `post_lengths`: Ingest's."""
        self.tables.reset()
        for i in range(256):
            self.inference.post_length[i] = post_lengths[i] if i < len(post_lengths) else 0
        self.next_row = 0

    def new_buffers(self, columns):
        """A new batch: buffers for `columns` (name to format), but not for the bytes of texts."""
        n = self.capacity
        self.rows = 0
        self.buffers = {}
        for name, kind in columns.items():
            self.buffers[name] = bytearray(4 * (n + 1) if kind in "sl" else n * _BYTES[kind])
            if kind in "snd":
                self.buffers[name + ":valid"] = bytearray((n + 7) >> 3)

    def column(self, name):
        """The buffer of a column of numbers; its first `rows` values count."""
        return self.buffers[name]

    def validity(self, name):
        """Arrow's validity bitmap of a column with nulls."""
        return self.buffers[name + ":valid"]

    def text_column(self, name):
        """Offsets (i32, rows + 1 of them) and bytes of a text column."""
        return self.buffers[name], self.buffers[name + ":data"]

    def take(self, buf, base, table, count):
        """Takes `count` rows of Ingest's `table`, whose events stand whole in `buf`, buf[0] being at `base` of the file.

        DONE: all rows were taken. Otherwise call again with the same, after FULL with another batch begun, after OPEN_...
        with what was asked for given back.
        """
        if count == 0:
            return DONE
        while True:
            if cython.compiled:
                view = buf
                rows = table
                with cython.nogil:
                    status = self.walk(cython.address(view[0]), view.shape[0], base, cython.address(rows[0]), count)
            else:
                status = self.walk(memoryview(buf).cast("B"), len(buf), base, memoryview(table), count)
            if status != C_GROW and status != C_PLAN:
                return status
            if not self.resolve(status):
                return OPEN_TABLE

    def walk(self, p, have, base, table, count):
        """Goes on in the table at `next_row`; what is left of the batch and of room ends it, and `count`."""
        return C_DONE

    def resolve(self, status):
        """Does what a walk stopped for; False: its owner is asked about a table."""
        self.make_room()
        return True

    def make_room(self):
        """Of what the last walk did not find room for."""
        self.tables.grow()


class PackedReader(ColumnReader):
    """A reader that asks for what is packed inside events: buf[open_start:open_stop] is to be unpacked and given back with
    `opened`, or of a payload with `opened_events` and at last `payload_done`; or with `not_opened`, where it cannot be had.
    """

    def __init__(self, capacity):
        ColumnReader.__init__(self, capacity)
        self.open_start = self.open_stop = self.opened_at = 0
        self.opened_data = memoryview(bytes(1))
        self.opened_size = 0
        # 0: nothing is asked for; above: OPEN_... is; -1: the event is done with; -2: it is unpacked in `opened_data`
        self.opening = 0

    def opened(self, data):
        """What was asked for, unpacked."""
        self.opened_data = memoryview(bytes(data) + b"\0")  # an empty buffer has no address
        self.opened_size = len(data)
        self.opening = -2

    def payload_done(self):
        """All events of the payload were given."""
        self.opening = -1

    def opened_events(self, buf, start, stop):
        """Takes the whole events at buf[start:stop] of the payload that was asked for; `opened_at` is where it stopped.

        DONE: nothing that is an event is left; before `stop`, the payload is none. FULL, OPEN_TABLE: as `take`; call again
        with `opened_at` as start.
        """
        if start < 0 or stop < start or stop > len(buf):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
        self.opened_at = start
        if start == stop:
            return DONE
        while True:
            if cython.compiled:
                view = buf
                with cython.nogil:
                    status = self.walk_opened(cython.address(view[0]), self.opened_at, stop)
            else:
                status = self.walk_opened(memoryview(buf).cast("B"), self.opened_at, stop)
            if status != C_GROW and status != C_PLAN:
                return status
            if not self.resolve(status):
                return OPEN_TABLE

    def walk_opened(self, p, start, stop):
        """The events of a payload: they have no checksums, and no position of their own."""
        while stop - start >= 19:
            length = load32(p, start + 9)
            if length < 19 or length > stop - start:
                break
            status = self.take_opened(p, start, start + length, p[start + 4])
            if status == C_FULL or status == C_GROW or status == C_PLAN:
                return status
            if status != C_DONE:
                break  # nothing in a payload is packed once more
            start += length
            self.opened_at = start
        return C_DONE

    def take_opened(self, p, at, stop, t):
        """Takes one event of a payload, of type `t`, as walk does."""
        return C_DONE
