# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""The places of events in their transactions: the openers and closers of every server's stream, and WL#4162's parser.

The opener of a group decides its closer, so one fact is kept beside the parser's state: the opener. The rules are those of WL#4162
(5.7 design), completed for the streams of real servers:

- Load (6) and New_load (12) are whole statements; Create_file (8) and Begin_load_query (17) open a group that ends with the
  Exec_load, Execute_load_query or Delete_file of the last open file id (4.0-5.1 interleave the blocks of several sessions, so any
  other event between them is inside).
- Row events and seeds outside BEGIN open a group: servers before 5.1.4x wrote autocommitted non-transactional changes like this.
- Groups of non-transactional engines close with Query COMMIT (5.6 wraps even a MyISAM insert in BEGIN ... COMMIT).
- XA_prepare, Transaction_payload, tagged GTIDs and all MariaDB events came after that design.

protocol/binlog/boundary.py is the readable parser; a test compares the two.
"""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load32

_ROWS = (
    PRE_GA_WRITE_ROWS_EVENT,
    PRE_GA_UPDATE_ROWS_EVENT,
    PRE_GA_DELETE_ROWS_EVENT,
    WRITE_ROWS_V1_EVENT,
    UPDATE_ROWS_V1_EVENT,
    DELETE_ROWS_V1_EVENT,
    WRITE_ROWS_EVENT,
    UPDATE_ROWS_EVENT,
    DELETE_ROWS_EVENT,
    PARTIAL_UPDATE_ROWS_EVENT,
    WRITE_ROWS_COMPRESSED_V1_EVENT,
    UPDATE_ROWS_COMPRESSED_V1_EVENT,
    DELETE_ROWS_COMPRESSED_V1_EVENT,
    WRITE_ROWS_COMPRESSED_EVENT,
    UPDATE_ROWS_COMPRESSED_EVENT,
    DELETE_ROWS_COMPRESSED_EVENT,
)
_KINDS = (
    (K_IGNORE, (FORMAT_DESCRIPTION_EVENT, IGNORABLE_EVENT, BINLOG_CHECKPOINT_EVENT, START_ENCRYPTION_EVENT)),
    (K_SELF, (START_V3_EVENT, STOP_EVENT, SLAVE_EVENT, HEARTBEAT_EVENT, PREVIOUS_GTIDS_EVENT, HEARTBEAT_V2_EVENT)),
    (K_ROTATE, (ROTATE_EVENT,)),
    (K_GTID_LIST, (GTID_LIST_EVENT,)),
    (K_INCIDENT, (INCIDENT_EVENT,)),
    (K_GTID, (GTID_EVENT, ANONYMOUS_GTID_EVENT, GTID_TAGGED_EVENT)),
    (K_MARIADB_GTID, (MARIADB_GTID_EVENT,)),
    (K_QUERY, (QUERY_EVENT,)),
    (K_QUERY_COMPRESSED, (QUERY_COMPRESSED_EVENT,)),
    (K_EXECUTE_LOAD_QUERY, (EXECUTE_LOAD_QUERY_EVENT,)),
    (K_SEED, (INTVAR_EVENT, RAND_EVENT, USER_VAR_EVENT)),
    (K_LOAD_OPENS, (CREATE_FILE_EVENT, BEGIN_LOAD_QUERY_EVENT)),
    (K_LOAD_WHOLE, (LOAD_EVENT, NEW_LOAD_EVENT)),
    (K_BLOCK, (APPEND_BLOCK_EVENT,)),
    (K_LOAD_CLOSES, (EXEC_LOAD_EVENT, DELETE_FILE_EVENT)),
    (K_MAP, (TABLE_MAP_EVENT, ROWS_QUERY_EVENT, ANNOTATE_ROWS_EVENT)),
    (K_ROWS, _ROWS),
    (K_ROW_FRAGMENT, (PARTIAL_ROW_DATA_EVENT,)),
    (K_ENDS, (XID_EVENT, XA_PREPARE_EVENT, TRANSACTION_PAYLOAD_EVENT)),
    (K_MEMBER, (TRANSACTION_CONTEXT_EVENT, VIEW_CHANGE_EVENT)),
)

# Bytes after the header of each type that the rules read; a shorter event has a wrong length.
_LEAST = (
    *((t, 8) for t in _ROWS),
    (QUERY_EVENT, QUERY_POST_3),
    (CREATE_FILE_EVENT, LOAD_POST + 4),
    (EXEC_LOAD_EVENT, 4),
    (DELETE_FILE_EVENT, 4),
    (BEGIN_LOAD_QUERY_EVENT, 4),
    (EXECUTE_LOAD_QUERY_EVENT, QUERY_POST + 4),
    (MARIADB_GTID_EVENT, MARIADB_GTID_SIZE),
)


def has_prefix(p: Bytes, at: int, end: int, word: bytes, count: int) -> bool:
    """Return whether the text starts with `word` (`count` lower-case letters and single blanks), in any case.

    A blank in `word` matches what `first_word` skips: 5.0 and 5.1 log ROLLBACK TO in the user's own spelling.
    """
    i = 0
    while i < count:
        if at >= end:
            return False
        c = p[at]
        if word[i] == 32:
            begin = at
            at = first_word(p, at, end, True)
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


def first_word(p: Bytes, at: int, end: int, opens: bool) -> int:
    """Return where the first word of the statement in p[at:end] begins, after blanks and comments; `end` or more if there is none.

    With `opens`, the content of an executable comment is read, for any server; otherwise the search ends at its mark. Bytes above
    ASCII are blanks in some character sets, such as 0xA0 in latin1; a statement that ran has no others there. protocol/sql/gaps.py is
    the readable form.
    """
    while at < end:
        c = p[at]
        if c == 32 or 9 <= c <= 13 or c >= 128:
            at += 1
        elif c == 35 or (
            c == 45 and at + 1 < end and p[at + 1] == 45 and (at + 2 == end or p[at + 2] <= 32)
        ):  # up to its line's end
            while at < end and p[at] != 10:
                at += 1
        elif c == 42 and at + 1 < end and p[at + 1] == 47:  # the end of an empty executable comment
            at += 2
        elif c == 47 and at + 2 < end and p[at + 1] == 42:
            c = p[at + 2]
            if c == 33 or (c == 77 and at + 3 < end and p[at + 3] == 33):
                if not opens:
                    break
                at += 3 if c == 33 else 4
                while at < end and 48 <= p[at] <= 57:
                    at += 1
            else:
                at = after_comment(p, at + 2, end)
        else:
            break
    return at


def after_comment(p: Bytes, at: int, end: int) -> int:
    """Return where the text after the next */ in p[at:end] begins; more than `end` if there is none."""
    while at + 1 < end and not (p[at] == 42 and p[at + 1] == 47):
        at += 1
    return at + 2


def ends_there(p: Bytes, at: int, end: int) -> bool:
    """Return whether only blanks, comments and semicolons follow."""
    at = first_word(p, at, end, True)
    while at < end and p[at] == 59:
        at = first_word(p, at + 1, end, True)
    return at >= end


def kind_of_text(p: Bytes, text: int, end: int) -> int:
    """Return the effect of the statement in p[text:end] on a group. protocol/sql/control.py is the readable form."""
    text = first_word(p, text, end, True)
    if end - text < 5:
        return S_OTHER
    c = p[text] | 32
    if c == 98:
        return S_BEGIN if has_prefix(p, text, end, b"begin", 5) and ends_there(p, text + 5, end) else S_OTHER
    if c == 99:
        return S_COMMIT if has_prefix(p, text, end, b"commit", 6) and ends_there(p, text + 6, end) else S_OTHER
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


def defines(p: Bytes, at: int, end: int) -> bool:
    """Return whether the statement in p[at:end] may change which tables exist, or their columns: CREATE, ALTER, DROP, RENAME.

    Temporary tables do not count. If the first word is in an executable comment, which the server may not read, the word after it
    counts as well.
    """
    start = at
    at = first_word(p, at, end, True)
    while at < end and not is_definition(p, at, end):
        i = start
        while i < at and p[i] != 33:
            i += 1
        if i == at:
            return False
        start = after_comment(p, at, end)
        at = first_word(p, start, end, True)
    return at < end


def is_definition(p: Bytes, at: int, end: int) -> bool:
    """Return whether the word at `at` begins a definition of tables that are not temporary."""
    c = p[at] | 32
    if c == 99:
        return has_prefix(p, at, end, b"create ", 7) and not is_temporary(p, at + 6, end)
    if c == 97:
        return has_prefix(p, at, end, b"alter ", 6)
    if c == 100:
        # the last is what 5.0 and later log when a session with temporary tables ends: DROP /*!40005 TEMPORARY */ TABLE
        return (
            has_prefix(p, at, end, b"drop ", 5)
            and not is_temporary(p, at + 4, end)
            and not (
                end - at > 26
                and p[at + 5] == 47
                and p[at + 8] == 52
                and p[at + 14] | 32 == 116
                and p[at + 15] | 32 == 101
            )
        )
    if c == 114:
        return has_prefix(p, at, end, b"rename ", 7)
    return False


def is_temporary(p: Bytes, at: int, end: int) -> bool:
    """Whether TEMPORARY follows. In an executable comment, which the server may not have read, it does not count."""
    return has_prefix(p, first_word(p, at, end, False), end, b"temporary", 9)


class Inference:
    """The boundary of each event of one stream, in order. The kernel's walkers call `infer`, then `step`."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.kind = bytearray(256)
            self.post_length = bytearray(256)
            self.load_ids = [0] * 64
            self.least = bytearray(256)
        for i in range(256):
            self.kind[i] = K_UNKNOWN
            self.post_length[i] = 0
            self.least[i] = HEADER_SIZE
        for kind, types in _KINDS:
            for t in types:
                self.kind[t] = kind
        for t, length in _LEAST:
            self.least[t] = HEADER_SIZE + length
        self.reset()

    def reset(self) -> None:
        """Begin another stream or another file: a transaction never spans two."""
        self.state = NOT_DEFINED
        self.opener = OPENED_BY_NOTHING
        self.recovering = False
        self.from_state = NOT_DEFINED
        self.load_count = 0
        self.definition = False
        self.status_length = 0

    def take_post_lengths(self, p: Bytes, at: int, count: int) -> None:
        """Read from a format description `count` bytes, those of the types from 1 on; the other types have none."""
        for i in range(256):
            self.post_length[i] = p[at + i - 1] if 1 <= i <= count else 0

    def in_group(self) -> bool:
        return self.state == START or self.state == INSIDE

    def ends_statement(self, p: Bytes, at: int, t: int) -> bool:
        """Return whether the rows event of type t is marked as the last one of its statement.

        Layout: table id 6, flags 2; in 5.1 before its first release: table id 4, flags 2.
        """
        return load16(p, at + HEADER_SIZE + (4 if self.post_length[t] == 6 else 6)) & ROWS_STATEMENT_END != 0

    def infer(self, p: Bytes, at: int, length: int) -> int:
        """Return the boundary of the event at `at` by its type, its text and the open group; -1: a Query with wrong lengths.

        `length` is the bytes of the event without its checksum; for a big event, those that are there (64 KiB and more).
        """
        t = p[at + EVENT_TYPE_AT]
        if length < self.least[t]:
            return -1
        kind = self.kind[t]
        inside = self.in_group()
        opener = self.opener if inside else OPENED_BY_NOTHING
        if kind == K_ROWS:
            if not inside:
                return INSIDE
            if (opener == OPENED_BY_ROWS or opener == OPENED_BY_MARIADB_STANDALONE) and self.ends_statement(p, at, t):
                return END
            return INSIDE
        if kind == K_MAP:
            if inside:
                return INSIDE
            self.opener = OPENED_BY_ROWS
            return START
        if kind == K_QUERY:
            text = self.query_text(p, at, at + length, t)
            if text < 0:
                return -1
            statement = kind_of_text(p, text, at + length)
            if statement == S_OTHER and defines(p, text, at + length):
                self.definition = True
            if statement == S_BEGIN:
                if not inside:
                    self.opener = OPENED_BY_BEGIN
                    return START
                if opener == OPENED_BY_GTID:
                    self.opener = OPENED_BY_BEGIN
                    return INSIDE
                if opener == OPENED_BY_LOAD:
                    return INSIDE
                self.opener = OPENED_BY_BEGIN
                return START
            if opener == OPENED_BY_LOAD:  # between the blocks of a LOAD DATA: another session's
                return INSIDE
            if statement == S_COMMIT or statement == S_ROLLBACK:
                return END
            if statement == S_PART:
                return INSIDE if inside else SELF_CONTAINED
            if not inside:
                return SELF_CONTAINED
            if statement == S_XA_ROLLBACK:
                return END
            if statement == S_XA_COMMIT and (opener == OPENED_BY_GTID or opener == OPENED_BY_MARIADB_STANDALONE):
                return END
            if opener == OPENED_BY_GTID or opener == OPENED_BY_MARIADB_STANDALONE or opener == OPENED_BY_SEED:
                return END
            return INSIDE
        if kind == K_ENDS:
            if opener == OPENED_BY_LOAD:
                return INSIDE
            return END
        if kind == K_MARIADB_GTID:
            self.opener = (
                OPENED_BY_MARIADB_STANDALONE
                if p[at + HEADER_SIZE + MARIADB_GTID_FLAGS_AT] & MARIADB_STANDALONE
                else OPENED_BY_MARIADB_TRANSACTION
            )
            return START
        if kind == K_GTID:
            self.opener = OPENED_BY_GTID
            return START
        if kind == K_SEED:
            if inside:
                return INSIDE
            self.opener = OPENED_BY_SEED
            return START
        if kind == K_IGNORE:
            return IGNORE
        if kind == K_ROTATE or kind == K_GTID_LIST:  # Rotate, Gtid_list: artificial or as stored
            if load16(p, at + FLAGS_AT) & FLAG_ARTIFICIAL or (load32(p, at) == 0 and load32(p, at + LOG_POS_AT) == 0):
                return IGNORE
            return SELF_CONTAINED
        if kind == K_SELF:
            return SELF_CONTAINED
        if kind == K_QUERY_COMPRESSED:
            # its content shows only unpacked; changes of rows are between BEGIN and COMMIT
            self.definition = opener != OPENED_BY_MARIADB_TRANSACTION and opener != OPENED_BY_BEGIN
            if not inside:
                return SELF_CONTAINED
            return (
                END
                if opener == OPENED_BY_GTID or opener == OPENED_BY_MARIADB_STANDALONE or opener == OPENED_BY_SEED
                else INSIDE
            )
        if kind == K_EXECUTE_LOAD_QUERY:  # the post-header of a Query, 13, then the file id
            if not inside:
                return SELF_CONTAINED
            if opener == OPENED_BY_LOAD:
                return END if self.load_closed(load32(p, at + HEADER_SIZE + QUERY_POST)) else INSIDE
            return (
                END
                if opener == OPENED_BY_GTID or opener == OPENED_BY_MARIADB_STANDALONE or opener == OPENED_BY_SEED
                else INSIDE
            )
        if kind == K_LOAD_OPENS:
            if inside:
                if opener == OPENED_BY_LOAD or opener == OPENED_BY_SEED:
                    if opener == OPENED_BY_SEED:
                        self.load_count = 0
                    self.opener = OPENED_BY_LOAD
                    self.load_opened(
                        load32(p, at + HEADER_SIZE) if t == BEGIN_LOAD_QUERY_EVENT else self.create_file_id(p, at)
                    )
                return INSIDE
            self.opener = OPENED_BY_LOAD
            self.load_count = 0
            self.load_opened(load32(p, at + HEADER_SIZE) if t == BEGIN_LOAD_QUERY_EVENT else self.create_file_id(p, at))
            return START
        if kind == K_BLOCK or kind == K_ROW_FRAGMENT:  # Append_block, Partial_row_data
            return INSIDE
        if kind == K_LOAD_CLOSES:
            if not inside:
                return SELF_CONTAINED
            if opener == OPENED_BY_LOAD:
                return END if self.load_closed(load32(p, at + HEADER_SIZE)) else INSIDE
            return INSIDE
        if kind == K_LOAD_WHOLE:
            if not inside:
                return SELF_CONTAINED
            return END if opener == OPENED_BY_GTID or opener == OPENED_BY_SEED else INSIDE
        if kind == K_INCIDENT:
            return END if inside else SELF_CONTAINED
        if kind == K_MEMBER:
            return INSIDE if inside else SELF_CONTAINED
        return IGNORE

    def create_file_id(self, p: Bytes, at: int) -> int:
        """Return the file id of a Create_file, which follows the 18 bytes of Load's post-header."""
        return load32(p, at + HEADER_SIZE + LOAD_POST)

    def load_opened(self, file_id: int) -> None:
        for i in range(self.load_count):
            if self.load_ids[i] == file_id:
                return
        if self.load_count < 64:
            self.load_ids[self.load_count] = file_id
            self.load_count += 1

    def load_closed(self, file_id: int) -> bool:
        """Remove the id; return whether none is open any more. An id that was never opened closes nothing."""
        for i in range(self.load_count):
            if self.load_ids[i] == file_id:
                self.load_count -= 1
                self.load_ids[i] = self.load_ids[self.load_count]
                break
        return self.load_count == 0

    def query_text(self, p: Bytes, at: int, end: int, t: int) -> int:
        """Return where the text of the Query, Query_compressed or Execute_load_query at `at` starts; -1: its lengths pass `end`.

        Layout: thread id 4, time 4, schema length 1, error code 2, [status length 2], [of Execute_load_query 13 more], status
        variables, schema + NUL, text. `status_length` is then that of the status variables, which are before the schema; servers
        before 5.0 had none.
        """
        body = at + HEADER_SIZE
        post = self.post_length[QUERY_EVENT]
        if post < QUERY_POST_3:
            post = QUERY_POST
        if t == EXECUTE_LOAD_QUERY_EVENT:
            post = self.post_length[EXECUTE_LOAD_QUERY_EVENT]
            if post < EXECUTE_LOAD_QUERY_POST:
                post = EXECUTE_LOAD_QUERY_POST
        self.status_length = 0
        if body + post > end:
            return -1
        if post >= QUERY_POST:
            self.status_length = load16(p, body + QUERY_STATUS_LENGTH_AT)
        text = body + post + self.status_length + p[body + QUERY_SCHEMA_LENGTH_AT] + 1
        return text if text <= end else -1

    def statement_kind(self, p: Bytes, at: int, end: int) -> int:
        """Return the effect on a group of the statement of the Query at `at`, whose text ends at `end`."""
        text = self.query_text(p, at, end, QUERY_EVENT)
        if text < 0:
            return S_MALFORMED
        return kind_of_text(p, text, end)

    def step(self, boundary: int) -> bool:
        """Feed WL#4162's parser; True: a violation to report, whose left side is in `from_state`.

        After an error it is reset to Not Defined, from where Self Contained and Start continue at once, and other events are wrong
        without a report until one of these comes.
        """
        if boundary <= IGNORE:
            return False
        state = self.state
        if state == START or state == INSIDE:
            if boundary >= INSIDE:
                self.state = boundary
                if boundary == END:
                    self.opener = OPENED_BY_NOTHING
                return False
        elif boundary <= START:
            self.state = boundary
            self.recovering = False
            if boundary == SELF_CONTAINED:
                self.opener = OPENED_BY_NOTHING
            return False
        self.from_state = state
        if boundary <= START:
            self.state = boundary
            self.recovering = False
            if boundary == SELF_CONTAINED:
                self.opener = OPENED_BY_NOTHING
            return True
        self.state = NOT_DEFINED
        self.opener = OPENED_BY_NOTHING
        if self.recovering:
            return False
        self.recovering = True
        return True
