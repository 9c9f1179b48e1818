# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""A row of numbers for each event of a feed, in an array that the caller owns. See `Ingest.set_table` for the columns."""

from array import array

import cython

if not cython.compiled:
    from protocol.kernel.codes import *


class EventTable:
    """An array with TABLE_ROW int64s a row; `rows` of at most `size` are there.

    Nothing is checked: callers compare with `size` before they add.
    """

    def __init__(self) -> None:
        self.view = memoryview(array("q"))
        self.rows = self.size = 0

    def use(self, table: "array[int] | None") -> None:
        """Write rows into this array('q') from now on; None: nowhere."""
        if table is None:
            return
        self.view = memoryview(table)
        self.size = len(table) // TABLE_ROW

    def add(
        self,
        position: int,
        length: int,
        event_type: int,
        flags: int,
        timestamp: int,
        server_id: int,
        end_log_pos: int,
        info: int,
    ) -> None:
        row = self.rows * TABLE_ROW
        self.view[row] = position
        self.view[row + 1] = length
        self.view[row + 2] = event_type
        self.view[row + 3] = flags
        self.view[row + 4] = timestamp
        self.view[row + 5] = server_id
        self.view[row + 6] = end_log_pos
        self.view[row + 7] = info
        self.rows += 1

    def note(self, bits: int) -> bool:
        """Add bits to the newest event's row; False: it is not in the table any more."""
        if self.rows == 0:
            return False
        self.view[self.rows * TABLE_ROW - 1] = self.view[self.rows * TABLE_ROW - 1] | bits
        return True
