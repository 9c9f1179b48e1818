# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Where events stand in their transactions: the openers and closers of every server's stream, and WL#4162's parser.

What opened a group decides what closes it, so one fact is kept beside the parser's state: the opener. The rules are
those of WL#4162 (5.7 design), made complete for what servers really write:

- Load (6) and New_load (12) are whole statements; Create_file (8) and Begin_load_query (17) open a group that ends with
  the Exec_load, Execute_load_query or Delete_file of the last open file id (4.0-5.1 write the blocks of several sessions
  side by side, so any other event between them is inside).
- Row events and seeds outside BEGIN open a group: servers before 5.1.4x wrote autocommitted non-transactional changes so.
- Groups of non-transactional engines close with Query COMMIT (5.6 wraps even a MyISAM insert in BEGIN ... COMMIT).
- XA_prepare, Transaction_payload, tagged GTIDs and all MariaDB events came after that design.

protocol/binlog/boundary.py is the readable parser; a test holds the two together.
"""

import cython

if not cython.compiled:
    from protocol.kernel.pure import load16, load32

# Boundary types, as protocol.binlog.boundary.BoundaryType.
NOT_DEFINED = cython.declare(cython.int, 0)
IGNORE = cython.declare(cython.int, 1)
SELF_CONTAINED = cython.declare(cython.int, 2)
START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
END = cython.declare(cython.int, 5)

# Openers.
BY_NOTHING = cython.declare(cython.int, 0)
BY_GTID = cython.declare(cython.int, 1)
BY_BEGIN = cython.declare(cython.int, 2)
BY_MARIADB_TRX = cython.declare(cython.int, 3)
BY_MARIADB_STANDALONE = cython.declare(cython.int, 4)
BY_SEED = cython.declare(cython.int, 5)
BY_LOAD = cython.declare(cython.int, 6)
BY_ROWS = cython.declare(cython.int, 7)

# Kinds of events that the rules treat alike.
K_UNKNOWN = cython.declare(cython.int, 0)
K_IGNORE = cython.declare(cython.int, 1)
K_SELF = cython.declare(cython.int, 2)
K_ROTATE = cython.declare(cython.int, 3)
K_INCIDENT = cython.declare(cython.int, 4)
K_GTID = cython.declare(cython.int, 5)
K_MARIADB_GTID = cython.declare(cython.int, 6)
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_SEED = cython.declare(cython.int, 10)
K_LOAD_OPENS = cython.declare(cython.int, 11)
K_LOAD_WHOLE = cython.declare(cython.int, 12)
K_BLOCK = cython.declare(cython.int, 13)
K_LOAD_CLOSES = cython.declare(cython.int, 14)
K_MAP = cython.declare(cython.int, 15)
K_ROWS = cython.declare(cython.int, 16)
K_ENDS = cython.declare(cython.int, 17)
K_MEMBER = cython.declare(cython.int, 18)
K_GTID_LIST = cython.declare(cython.int, 19)
K_ROW_FRAGMENT = cython.declare(cython.int, 20)

# Kinds of statements.
S_OTHER = cython.declare(cython.int, 0)
S_BEGIN = cython.declare(cython.int, 1)
S_COMMIT = cython.declare(cython.int, 2)
S_ROLLBACK = cython.declare(cython.int, 3)
S_PART = cython.declare(cython.int, 4)  # SAVEPOINT, ROLLBACK TO, XA END: never opens or closes
S_XA_COMMIT = cython.declare(cython.int, 5)
S_XA_ROLLBACK = cython.declare(cython.int, 6)
S_MALFORMED = cython.declare(cython.int, -1)

_KINDS = (
    (K_IGNORE, (15, 28, 161, 164)),
    (K_SELF, (1, 3, 7, 27, 35, 41)),
    (K_ROTATE, (4,)),
    (K_GTID_LIST, (163,)),
    (K_INCIDENT, (26,)),
    (K_GTID, (33, 34, 42)),
    (K_MARIADB_GTID, (162,)),
    (K_QUERY, (2,)),
    (K_QUERY_COMPRESSED, (165,)),
    (K_EXECUTE_LOAD_QUERY, (18,)),
    (K_SEED, (5, 13, 14)),
    (K_LOAD_OPENS, (8, 17)),
    (K_LOAD_WHOLE, (6, 12)),
    (K_BLOCK, (9,)),
    (K_LOAD_CLOSES, (10, 11)),
    (K_MAP, (19, 29, 160)),
    (K_ROWS, (20, 21, 22, 23, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169, 170, 171)),
    (K_ROW_FRAGMENT, (172,)),
    (K_ENDS, (16, 38, 40)),
    (K_MEMBER, (36, 37)),
)

# Bytes behind the header that the rules read of a type; a shorter event lies about its length.
_LEAST = (
    *((t, 8) for t in (20, 21, 22, 23, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169, 170, 171)),
    (2, 11),
    (8, 22),
    (10, 4),
    (11, 4),
    (17, 4),
    (18, 17),
    (162, 13),
)


def has_prefix(p, at, end, word, count):
    """Whether the text starts with `word` (`count` lower-case letters and single blanks), without case.

    A blank in `word` matches blanks, line ends and comments: 5.0 and 5.1 log ROLLBACK TO in the user's own spelling.
    """
    i = 0
    while i < count:
        if at >= end:
            return False
        c = p[at]
        if word[i] == 32:
            begin = at
            while at < end:
                c = p[at]
                if c == 32 or 9 <= c <= 13:
                    at += 1
                elif c == 47 and at + 1 < end and p[at + 1] == 42:
                    at += 2
                    while at + 1 < end and not (p[at] == 42 and p[at + 1] == 47):
                        at += 1
                    at += 2
                else:
                    break
            if at == begin:
                return False
        else:
            if 65 <= c <= 90:
                c += 32
            if c != word[i]:
                return False
            at += 1
        i += 1
    return True


class Inference:
    """The boundary of each event of one stream, in order. Fed by the kernel's walkers; `infer`, then `step`."""

    def __init__(self):
        if not cython.compiled:
            self.kind = bytearray(256)
            self.post_length = bytearray(256)
            self.load_ids = [0] * 64
            self.least = bytearray(256)
        for i in range(256):
            self.kind[i] = 0
            self.post_length[i] = 0
            self.least[i] = 19
        for kind, types in _KINDS:
            for t in types:
                self.kind[t] = kind
        for t, length in _LEAST:
            self.least[t] = 19 + length
        self.reset()

    def reset(self):
        """Another stream or another file: a transaction never spans two."""
        self.state = 0
        self.opener = BY_NOTHING
        self.recovering = False
        self.from_state = 0
        self.load_count = 0
        self.definition = False

    def take_post_lengths(self, p, at, count):
        """From a format description: `count` bytes, of the types from 1 on; there are none of the others."""
        for i in range(256):
            self.post_length[i] = p[at + i - 1] if 1 <= i <= count else 0

    def in_group(self):
        return self.state == START or self.state == INSIDE

    def infer(self, p, at, length):
        """The boundary of the event at `at` by its type, its text and what is open; -1: a Query whose lengths lie.

        `length`: bytes of the event without its checksum; of a big event, those that are there (64 KiB and more).
        """
        t = p[at + 4]
        if length < self.least[t]:
            return -1
        kind = self.kind[t]
        inside = self.in_group()
        opener = self.opener if inside else BY_NOTHING
        if kind == K_ROWS:
            if not inside:
                return INSIDE
            if opener == BY_ROWS or opener == BY_MARIADB_STANDALONE:  # STMT_END_F closes
                # table id 6, flags 2; 5.1 pre-GA: table id 4, flags 2
                flags = load16(p, at + 19 + (4 if self.post_length[t] == 6 else 6))
                if flags & 1:
                    return END
            return INSIDE
        if kind == K_MAP:
            if inside:
                return INSIDE
            self.opener = BY_ROWS
            return START
        if kind == K_QUERY:
            statement = self.statement_kind(p, at, at + length)
            if statement == S_MALFORMED:
                return -1
            if statement == S_OTHER and self.defines(p, at, at + length):
                self.definition = True
            if statement == S_BEGIN:
                if not inside:
                    self.opener = BY_BEGIN
                    return START
                if opener == BY_GTID:
                    self.opener = BY_BEGIN
                    return INSIDE
                if opener == BY_LOAD:
                    return INSIDE
                self.opener = BY_BEGIN
                return START
            if opener == BY_LOAD:  # between the blocks of a LOAD DATA: another session's
                return INSIDE
            if statement == S_COMMIT or statement == S_ROLLBACK:
                return END
            if statement == S_PART:
                return INSIDE if inside else SELF_CONTAINED
            if not inside:
                return SELF_CONTAINED
            if statement == S_XA_ROLLBACK:
                return END
            if statement == S_XA_COMMIT and (opener == BY_GTID or opener == BY_MARIADB_STANDALONE):
                return END
            if opener == BY_GTID or opener == BY_MARIADB_STANDALONE or opener == BY_SEED:
                return END
            return INSIDE
        if kind == K_ENDS:
            if opener == BY_LOAD:
                return INSIDE
            return END
        if kind == K_MARIADB_GTID:
            self.opener = BY_MARIADB_STANDALONE if p[at + 19 + 12] & 1 else BY_MARIADB_TRX
            return START
        if kind == K_GTID:
            self.opener = BY_GTID
            return START
        if kind == K_SEED:
            if inside:
                return INSIDE
            self.opener = BY_SEED
            return START
        if kind == K_IGNORE:
            return IGNORE
        if kind == K_ROTATE or kind == K_GTID_LIST:  # Rotate, Gtid_list: artificial or as stored
            if load16(p, at + 17) & 0x20 or (load32(p, at) == 0 and load32(p, at + 13) == 0):
                return IGNORE
            return SELF_CONTAINED
        if kind == K_SELF:
            return SELF_CONTAINED
        if kind == K_QUERY_COMPRESSED:
            # what it says shows only unpacked; changes of rows stand between BEGIN and COMMIT
            self.definition = opener != BY_MARIADB_TRX and opener != BY_BEGIN
            if not inside:
                return SELF_CONTAINED
            return END if opener == BY_GTID or opener == BY_MARIADB_STANDALONE or opener == BY_SEED else INSIDE
        if kind == K_EXECUTE_LOAD_QUERY:  # post-header as Query's 13, then the file id
            if not inside:
                return SELF_CONTAINED
            if opener == BY_LOAD:
                return END if self.load_closed(load32(p, at + 19 + 13)) else INSIDE
            return END if opener == BY_GTID or opener == BY_MARIADB_STANDALONE or opener == BY_SEED else INSIDE
        if kind == K_LOAD_OPENS:
            if inside:
                if opener == BY_LOAD or opener == BY_SEED:
                    if opener == BY_SEED:
                        self.load_count = 0
                    self.opener = BY_LOAD
                    self.load_opened(load32(p, at + 19) if t == 17 else self.create_file_id(p, at))
                return INSIDE
            self.opener = BY_LOAD
            self.load_count = 0
            self.load_opened(load32(p, at + 19) if t == 17 else self.create_file_id(p, at))
            return START
        if kind == K_BLOCK or kind == K_ROW_FRAGMENT:  # Append_block, Partial_row_data
            return INSIDE
        if kind == K_LOAD_CLOSES:
            if not inside:
                return SELF_CONTAINED
            if opener == BY_LOAD:
                return END if self.load_closed(load32(p, at + 19)) else INSIDE
            return INSIDE
        if kind == K_LOAD_WHOLE:
            if not inside:
                return SELF_CONTAINED
            return END if opener == BY_GTID or opener == BY_SEED else INSIDE
        if kind == K_INCIDENT:
            return END if inside else SELF_CONTAINED
        if kind == K_MEMBER:
            return INSIDE if inside else SELF_CONTAINED
        return IGNORE

    def create_file_id(self, p, at):
        """The file id of a Create_file: behind the 18 bytes of Load's post-header."""
        return load32(p, at + 19 + 18)

    def load_opened(self, file_id):
        for i in range(self.load_count):
            if self.load_ids[i] == file_id:
                return
        if self.load_count < 64:
            self.load_ids[self.load_count] = file_id
            self.load_count += 1

    def load_closed(self, file_id):
        """Takes the id out; whether none is open any more. An id that was never opened closes nothing."""
        for i in range(self.load_count):
            if self.load_ids[i] == file_id:
                self.load_count -= 1
                self.load_ids[i] = self.load_ids[self.load_count]
                break
        return self.load_count == 0

    def statement_kind(self, p, at, end):
        """What a Query event's statement does to a group. `end`: offset behind its text.

        Layout: thread id 4, time 4, schema length 1, error code 2, [status length 2], status, schema + NUL, text.
        """
        body = at + 19
        post = self.post_length[2]
        if post < 11:
            post = 13
        if body + post > end:
            return S_MALFORMED
        status_length = load16(p, body + 11) if post >= 13 else 0
        text = body + post + status_length + p[body + 8] + 1
        if text > end:
            return S_MALFORMED
        n = end - text
        if n < 5:
            return S_OTHER
        if n == 5 and has_prefix(p, text, end, b"begin", 5):
            return S_BEGIN
        if n == 6 and has_prefix(p, text, end, b"commit", 6):
            return S_COMMIT
        if has_prefix(p, text, end, b"rollback", 8):
            if has_prefix(p, text, end, b"rollback to", 11) or has_prefix(p, text, end, b"rollback work to", 16):
                return S_PART
            return S_ROLLBACK
        if has_prefix(p, text, end, b"savepoint ", 10):
            return S_PART
        if has_prefix(p, text, end, b"xa ", 3):
            if has_prefix(p, text, end, b"xa start", 8):
                return S_BEGIN
            if has_prefix(p, text, end, b"xa end", 6):
                return S_PART
            if has_prefix(p, text, end, b"xa commit", 9):
                return S_XA_COMMIT
            if has_prefix(p, text, end, b"xa rollback", 11):
                return S_XA_ROLLBACK
        return S_OTHER

    def defines(self, p, at, end):
        """Whether the Query's text may change what tables there are, or their columns: CREATE, ALTER, DROP, RENAME.

        Temporary tables do not count. `end`: offset behind the text, whose lengths are right. Blanks and comments before
        the first word are passed over; what stands in a comment for servers only, as in dumps, is read.
        """
        body = at + 19
        post = self.post_length[2]
        if post < 11:
            post = 13
        at = body + post + (load16(p, body + 11) if post >= 13 else 0) + p[body + 8] + 1
        while at < end:
            c = p[at]
            if c == 32 or 9 <= c <= 13:
                at += 1
            elif c == 35 or (c == 45 and at + 1 < end and p[at + 1] == 45):  # to the end of the line
                while at < end and p[at] != 10:
                    at += 1
            elif c == 47 and at + 2 < end and p[at + 1] == 42:
                at += 2
                if p[at] == 77 and at + 1 < end and p[at + 1] == 33:
                    at += 1
                if p[at] == 33:
                    at += 1
                    while at < end and 48 <= p[at] <= 57:
                        at += 1
                else:
                    while at + 1 < end and not (p[at] == 42 and p[at + 1] == 47):
                        at += 1
                    at += 2
            else:
                break
        if at >= end:
            return False
        c = p[at] | 32
        if c == 99:
            return has_prefix(p, at, end, b"create ", 7) and not has_prefix(p, at, end, b"create temporary", 16)
        if c == 97:
            return has_prefix(p, at, end, b"alter ", 6)
        if c == 100:
            # what 5.0 and later log when a session with temporary tables ends
            return (
                has_prefix(p, at, end, b"drop ", 5)
                and not has_prefix(p, at, end, b"drop temporary", 14)
                and not (end - at > 26 and p[at + 5] == 47 and p[at + 14] | 32 == 116 and p[at + 15] | 32 == 101)
            )
        if c == 114:
            return has_prefix(p, at, end, b"rename ", 7)
        return False

    def step(self, boundary):
        """Feeds WL#4162's parser; True: a violation to report, whose left side is in `from_state`.

        After an error: reset to Not Defined, from where Self Contained and Start go on at once, and other events are
        wrong in silence until one of these comes.
        """
        if boundary <= IGNORE:
            return False
        state = self.state
        if state == START or state == INSIDE:
            if boundary >= INSIDE:
                self.state = boundary
                if boundary == END:
                    self.opener = BY_NOTHING
                return False
        elif boundary <= START:
            self.state = boundary
            self.recovering = False
            if boundary == SELF_CONTAINED:
                self.opener = BY_NOTHING
            return False
        self.from_state = state
        if boundary <= START:
            self.state = boundary
            self.recovering = False
            if boundary == SELF_CONTAINED:
                self.opener = BY_NOTHING
            return True
        self.state = NOT_DEFINED
        self.opener = BY_NOTHING
        if self.recovering:
            return False
        self.recovering = True
        return True
