# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""The second marker layout, `edges` (WL#4162, 6.0 idea), made from the stored one while a file is served.

Bits 10-11 of the flags, start: 00 old source, 01 no start, 10 statement start, 11 transaction start.
Bits 12-13, end: 00 none, 01 commit or autocommit, 10 rollback, 11 statement end.

The stored boundary (`tbm`) shows where transactions start and end; this adds where statements do: a statement starts with its first
seed, Rows_query, Annotate_rows, Table_map or block of a LOAD DATA, or with the Query itself; it ends with the Query, with the rows
event that carries STMT_END_F, or with the transaction. BEGIN, GTIDs, COMMIT, ROLLBACK and Xid are no statements. Events outside of
transactions (Rotate, Stop, Format_description …) have no start and no end.
"""

import cython

from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16


class Edges:
    """The edges bits of each event of a stream that is marked with `tbm`, in order from a transaction boundary on.

    From the middle of a transaction it continues as between two statements.
    """

    def __init__(self) -> None:
        self.inference = Inference()
        self.in_statement = False

    def begin(self) -> None:
        """Begin at another place: open statements and transactions are forgotten."""
        self.in_statement = False

    def take_format(self, p: Bytes, at: int, length: int) -> None:
        """Read the post-header lengths of the format description at `at`."""
        self.inference.take_post_lengths(
            p, at + HEADER_SIZE + FORMAT_FIXED_SIZE, length - HEADER_SIZE - FORMAT_FIXED_SIZE
        )

    def bits(self, p: Bytes, at: int, available: int) -> int:
        """Return start | end << 2 of the event at `at`. `available` bytes of it are there: 70,000 or all, without the CRC."""
        t = p[at + EVENT_TYPE_AT]
        tbm = (load16(p, at + FLAGS_AT) & BOUNDARY_MASK) >> BOUNDARY_SHIFT
        kind = self.inference.kind[t]
        if tbm < SELF_CONTAINED or tbm > END or available < self.inference.least[t]:
            return EDGE_NO_START
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
            or t == TRANSACTION_PAYLOAD_EVENT
        ):
            starts = not self.in_statement
            ends = True
        elif kind == K_SEED or kind == K_LOAD_OPENS or kind == K_MAP:
            starts = not self.in_statement
            self.in_statement = True
        elif kind == K_ROWS:
            ends = self.inference.ends_statement(p, at, t)
        if ends:
            self.in_statement = False
        if tbm == SELF_CONTAINED:
            self.in_statement = False
            if kind == K_SELF or kind == K_ROTATE or kind == K_GTID_LIST or kind == K_MEMBER or kind == K_INCIDENT:
                return EDGE_NO_START
            return EDGE_TRANSACTION_START | (EDGE_ROLLBACK if rolled_back else EDGE_COMMIT) << 2
        start = EDGE_TRANSACTION_START if tbm == START else (EDGE_STATEMENT_START if starts else EDGE_NO_START)
        end = EDGE_STATEMENT_END if ends else 0
        if tbm == END:
            self.in_statement = False
            end = EDGE_ROLLBACK if rolled_back else EDGE_COMMIT
        return start | end << 2
