# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The second marker layout, `edges` (WL#4162, 6.0 idea), made from the stored one while a file is served.

Bits 10-11 of the flags, start: 00 old source, 01 no start, 10 statement start, 11 transaction start.
Bits 12-13, end: 00 none, 01 commit or autocommit, 10 rollback, 11 statement end.

The stored boundary (`tbm`) tells where transactions start and end; what is added here is where statements do: a statement
starts with its first seed, Rows_query, Annotate_rows, Table_map or block of a LOAD DATA, or with the Query itself; it ends
with the Query, with the rows event that carries STMT_END_F, or with the transaction. BEGIN, GTIDs, COMMIT, ROLLBACK and Xid
are no statements. Events outside of transactions (Rotate, Stop, Format_description …) have no start and no end.
"""

import cython

from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.kernel.pure import load16

# Boundary types and kinds of events, as in inference.py.
NO_START = 1
STATEMENT_START = 2
TRANSACTION_START = 3
NO_END = 0
COMMIT = 1
ROLLBACK = 2
STATEMENT_END = 3


class Edges:
    """The edges bits of each event of a stream that is marked with `tbm`, in order from a transaction boundary on.

    From the middle of a transaction it goes on as between two statements.
    """

    def __init__(self):
        self.inference = Inference()
        self.in_statement = False

    def begin(self):
        """Another place: what was open is forgotten."""
        self.in_statement = False

    def take_format(self, p, at, length):
        """Learns the post-header lengths of the format description at `at`."""
        body = at + 19
        count = length - 19 - 57
        for i in range(256):
            self.inference.post_length[i] = 0
        for i in range(count):
            if i < 255:
                self.inference.post_length[i + 1] = p[body + 57 + i]

    def bits(self, p, at, available):
        """Start | end << 2 of the event at `at`, of which `available` bytes (70,000 or all, without the CRC) are there."""
        t = p[at + 4]
        tbm = (load16(p, at + 17) >> 10) & 7
        kind = self.inference.kind[t]
        if tbm < 2 or tbm > 5 or available < self.inference.least[t]:
            return 1
        starts = False
        ends = False
        rolled_back = False
        if kind == 7:  # Query
            statement = self.inference.statement_kind(p, at, at + available)
            if statement == 2 or statement == 3 or statement == 6:  # COMMIT, ROLLBACK, XA ROLLBACK
                rolled_back = statement != 2
            if statement != 1 and statement != 2 and statement != 3:
                starts = not self.in_statement
                ends = True
        elif kind == 8 or kind == 9 or kind == 12 or kind == 14 or t == 40:
            # compressed Query, Execute_load_query, Load, Exec_load, Delete_file, Transaction_payload
            starts = not self.in_statement
            ends = True
        elif (
            kind == 10 or kind == 11 or kind == 15
        ):  # seeds, the first block of a LOAD DATA, Table_map and what is before it
            starts = not self.in_statement
            self.in_statement = True
        elif kind == 16:  # rows; STMT_END_F
            ends = (load16(p, at + 19 + (4 if self.inference.post_length[t] == 6 else 6)) & 1) != 0
        if ends:
            self.in_statement = False
        if tbm == 2:
            self.in_statement = False
            if kind == 2 or kind == 3 or kind == 19 or kind == 18 or kind == 4:
                return 1
            return 3 | (2 if rolled_back else 1) << 2
        start = 3 if tbm == 3 else (2 if starts else 1)
        end = 3 if ends else 0
        if tbm == 5:
            self.in_statement = False
            end = 2 if rolled_back else 1
        return start | end << 2
