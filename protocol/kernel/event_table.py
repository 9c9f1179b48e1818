# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""A row of numbers for each event of a feed, in an array that the caller owns. See `Ingest.set_table` for the columns."""

import cython


class EventTable:
    """Eight int64s a row; `rows` of at most `size` are there. Nothing is checked: whoever adds looks at `size` before."""

    def __init__(self):
        self.view = None
        self.rows = self.size = 0

    def use(self, table):
        """Rows go into this array('q') from now on; None: into none."""
        if table is None:
            return
        if cython.compiled:
            self.view = table
        else:
            self.view = memoryview(table)
        self.size = len(table) // 8

    def add(self, position, length, event_type, flags, timestamp, server_id, end_log_pos, info):
        row = self.rows * 8
        self.view[row] = position
        self.view[row + 1] = length
        self.view[row + 2] = event_type
        self.view[row + 3] = flags
        self.view[row + 4] = timestamp
        self.view[row + 5] = server_id
        self.view[row + 6] = end_log_pos
        self.view[row + 7] = info
        self.rows += 1

    def note(self, bits):
        """More that is to be said of the newest event; False: it is not in the table any more."""
        if self.rows == 0:
            return False
        self.view[self.rows * 8 - 1] = self.view[self.rows * 8 - 1] | bits
        return True
