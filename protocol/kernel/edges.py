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
NO_START = cython.declare(cython.int, 1)
STATEMENT_START = cython.declare(cython.int, 2)
TRANSACTION_START = cython.declare(cython.int, 3)
COMMIT = cython.declare(cython.int, 1)
ROLLBACK = cython.declare(cython.int, 2)
STATEMENT_END = cython.declare(cython.int, 3)
SELF_CONTAINED = cython.declare(cython.int, 2)
START = cython.declare(cython.int, 3)
END = cython.declare(cython.int, 5)
K_SELF = cython.declare(cython.int, 2)
K_ROTATE = cython.declare(cython.int, 3)
K_INCIDENT = cython.declare(cython.int, 4)
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_SEED = cython.declare(cython.int, 10)
K_LOAD_OPENS = cython.declare(cython.int, 11)
K_LOAD_WHOLE = cython.declare(cython.int, 12)
K_LOAD_CLOSES = cython.declare(cython.int, 14)
K_MAP = cython.declare(cython.int, 15)
K_ROWS = cython.declare(cython.int, 16)
K_MEMBER = cython.declare(cython.int, 18)
K_GTID_LIST = cython.declare(cython.int, 19)
S_BEGIN = cython.declare(cython.int, 1)
S_COMMIT = cython.declare(cython.int, 2)
S_ROLLBACK = cython.declare(cython.int, 3)
S_XA_ROLLBACK = cython.declare(cython.int, 6)


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
        self.inference.take_post_lengths(p, at + 19 + 57, length - 19 - 57)

    def bits(self, p, at, available):
        """Start | end << 2 of the event at `at`, of which `available` bytes (70,000 or all, without the CRC) are there."""
        t = p[at + 4]
        tbm = (load16(p, at + 17) >> 10) & 7
        kind = self.inference.kind[t]
        if tbm < 2 or tbm > 5 or available < self.inference.least[t]:
            return NO_START
        starts = False
        ends = False
        rolled_back = False
        if kind == K_QUERY:
            statement = self.inference.statement_kind(p, at, at + available)
            rolled_back = statement == S_ROLLBACK or statement == S_XA_ROLLBACK
            if statement != S_BEGIN and statement != S_COMMIT and statement != S_ROLLBACK:
                starts = not self.in_statement
                ends = True
        elif (
            kind == K_QUERY_COMPRESSED
            or kind == K_EXECUTE_LOAD_QUERY
            or kind == K_LOAD_WHOLE
            or kind == K_LOAD_CLOSES
            or t == 40  # Transaction_payload
        ):
            starts = not self.in_statement
            ends = True
        elif kind == K_SEED or kind == K_LOAD_OPENS or kind == K_MAP:
            starts = not self.in_statement
            self.in_statement = True
        elif kind == K_ROWS:  # STMT_END_F
            ends = (load16(p, at + 19 + (4 if self.inference.post_length[t] == 6 else 6)) & 1) != 0
        if ends:
            self.in_statement = False
        if tbm == SELF_CONTAINED:
            self.in_statement = False
            if kind == K_SELF or kind == K_ROTATE or kind == K_GTID_LIST or kind == K_MEMBER or kind == K_INCIDENT:
                return NO_START
            return TRANSACTION_START | (ROLLBACK if rolled_back else COMMIT) << 2
        start = TRANSACTION_START if tbm == START else (STATEMENT_START if starts else NO_START)
        end = STATEMENT_END if ends else 0
        if tbm == END:
            self.in_statement = False
            end = ROLLBACK if rolled_back else COMMIT
        return start | end << 2
