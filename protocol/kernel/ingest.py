# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The way in: runs of received bytes become runs of checked, marked binlog events, in place.

One pass over each run does: packet framing (where the bytes come from a server), the checks of length, sequence,
CRC32 and position chain, the inference of the boundary, the marker in the header's flags and the CRC32 that covers it.
Python sees runs and a few facts: where the newest transaction boundary is, where the file changes, what was wrong.

The same walker reads files (`packets=False`): the relay's own for recovery and verification, a gone source's for the
directory source, any for `events` and `positions`.
"""

import cython

from protocol.kernel.event_table import EventTable
from protocol.kernel.inference import Inference
from protocol.kernel.stream_format import FormatDescription
from protocol.kernel.stream_notes import StreamNotes

if not cython.compiled:
    from protocol.kernel.pure import (
        crc32_of,
        flags_effect,
        load16,
        load24,
        load32,
        load64,
        move_bytes,
        native_setup,
        store32,
        store64,
    )

# What `feed` returns. From 16 on: an error at `consumed` in the input, `position` in the file.
NEED_MORE = 0
ROTATE = 1
PACKET_ERR = 2
PACKET_EOF = 3
TABLE_FULL = 4
STORED_ROTATE = 5
BAD_CRC = 16
BAD_LENGTH = 17
BAD_SEQUENCE = 18
BAD_POSITION = 19
BAD_PACKET = 20
BAD_FORMAT = 21
NO_FORMAT = 22
ENCRYPTED = 23
BAD_EVENT = 24
NO_SEMI_SYNC = 25

# The same as C integers, for the code that runs without the GIL.
C_NEED_MORE = cython.declare(cython.int, 0)
C_ROTATE = cython.declare(cython.int, 1)
C_PACKET_ERR = cython.declare(cython.int, 2)
C_PACKET_EOF = cython.declare(cython.int, 3)
C_TABLE_FULL = cython.declare(cython.int, 4)
C_STORED_ROTATE = cython.declare(cython.int, 5)
C_BAD_CRC = cython.declare(cython.int, 16)
C_BAD_LENGTH = cython.declare(cython.int, 17)
C_BAD_SEQUENCE = cython.declare(cython.int, 18)
C_BAD_POSITION = cython.declare(cython.int, 19)
C_BAD_PACKET = cython.declare(cython.int, 20)
C_NO_FORMAT = cython.declare(cython.int, 22)
C_ENCRYPTED = cython.declare(cython.int, 23)
C_BAD_EVENT = cython.declare(cython.int, 24)
C_NO_SEMI_SYNC = cython.declare(cython.int, 25)
NOT_DEFINED = cython.declare(cython.int, 0)
IGNORE = cython.declare(cython.int, 1)
SELF_CONTAINED = cython.declare(cython.int, 2)
START = cython.declare(cython.int, 3)
INSIDE = cython.declare(cython.int, 4)
END = cython.declare(cython.int, 5)
K_UNKNOWN = cython.declare(cython.int, 0)
K_ROTATE = cython.declare(cython.int, 3)  # the kinds up to here, of Inference: events that may say how others are read
K_QUERY = cython.declare(cython.int, 7)
K_QUERY_COMPRESSED = cython.declare(cython.int, 8)
K_EXECUTE_LOAD_QUERY = cython.declare(cython.int, 9)
K_LOAD_WHOLE = cython.declare(cython.int, 12)
K_LOAD_CLOSES = cython.declare(cython.int, 14)

STATUS_NAMES = {
    BAD_CRC: "checksum_mismatch",
    BAD_LENGTH: "event_length_wrong",
    BAD_SEQUENCE: "packet_sequence_broken",
    BAD_POSITION: "position_chain_broken",
    BAD_PACKET: "packet_malformed",
    BAD_FORMAT: "format_description_unsupported",
    NO_FORMAT: "format_description_missing",
    ENCRYPTED: "binlog_encrypted",
    BAD_EVENT: "event_malformed",
    NO_SEMI_SYNC: "semi_sync_header_missing",
}

_DETAILS = {
    BAD_CRC: "checksum {got:#010x}, stored {expected:#010x}",
    BAD_LENGTH: "length {got}, where {expected} or a header of 19 bytes and more must be",
    BAD_SEQUENCE: "packet number {got}, expected {expected}",
    BAD_POSITION: "end_log_pos {got}, expected {expected}",
    BAD_PACKET: "a packet of {got} bytes, expected {expected}",
    BAD_FORMAT: "{got}, expected {expected}",
    NO_FORMAT: "an event before any format description",
    ENCRYPTED: "what follows is encrypted at rest",
    BAD_EVENT: "an event of {got} bytes whose inner lengths do not fit, or that cannot stand here",
    NO_SEMI_SYNC: "{got:#04x} before the event, expected {expected:#04x}",
}

ROW = 8  # int64s a table row
INDEX_GAP = 65536  # bytes between entries of the boundary index
ENTRY_SIZE = 24
MAX_WHOLE = 262144  # bytes: larger events are streamed
HEAD = 70000  # bytes of a streamed event that the inference may need: status variables reach 64 KiB
U32_MAX = cython.declare(cython.longlong, 4294967295)
MAX_EVENT = 1 << 30  # max_allowed_packet's limit on every server

native_setup()


class Ingest:
    """Walks a stream of events; see the module's text. Not thread-safe; `feed` releases the GIL.

    packets: the input is a MySQL packet stream (4-byte header, status byte 0x00, `prefix` - 1 bytes of semi-sync header,
        event); otherwise bare event bytes, as in a file behind its magic.
    stamp: write the inferred boundary into events that arrive without one.
    prefix: bytes before the event in a packet, status byte included: 1, or 3 with semi-sync (0xEF and flags; flag 1 asks
        for an acknowledgement, and the source numbers its packets from 1 again behind such an event). `acks` counts the
        events that asked for one, `ack_position` is where the newest of them ends in its file.
    late_damage: with `tolerant`, where the event stands whose row an earlier `feed` gave and whose checksum, at the end of
        its many bytes, is wrong; -1: none in the last `feed`.
    definitions: Query events so far that may change what tables there are, or their columns (`take_definitions`).
    `old_format`, when set: files that begin with Start_v3 (binlog version 3, of 4.0 and 4.1) are read too.
    """

    def __init__(self, packets=False, stamp=False, prefix=1):
        if not cython.compiled:
            self.entries = bytearray(24576)
        self.packets = packets
        self.stamp = stamp
        self.prefix = prefix
        self.announced_checksum = False
        self.inference = Inference()
        self.format = FormatDescription()
        self.notes = StreamNotes()
        self.table = EventTable()
        self.old_format = False
        self.checksum = -1
        self.sequence = 1
        self.expect_format = True
        self.skip_format = False
        self.event_left = 0
        self.event_start = 0
        self.chunk_left = 0
        self.more_chunks = False
        self.event_crc = 0
        self.event_effect = 0
        self.group_due = False
        self.ack_due = False
        self.acks = 0
        self.ack_position = -1
        self.in_event = False
        self.cut_group = False
        self.produced = self.consumed = self.packet_start = self.packet_stop = self.rotate_position = 0
        self.rotate_at = self.rotate_end = 0
        self.rotate_name = b""
        self.expected = self.got = self.status = 0
        self.bad_type = 0
        self.events = self.groups = self.violations = self.unknown = self.heartbeats = 0
        self.position_jumps = self.disagreements = 0
        self.definitions = 0
        self.late_damage = -1
        self.keep = self.artificial = False
        self.covered = 0
        self.timestamp = self.first_timestamp = 0
        self.has_table = False
        self.tolerant = False
        self.detailed = False
        self.begin_file(4)
        self.cut_group = False

    @property
    def in_group(self):
        """Whether a transaction is open at `position`."""
        return self.inference.state == START or self.inference.state == INSIDE

    @property
    def binlog_version(self):
        """Of the format description that is in force: 4; 3 of servers before 5.0."""
        return self.format.binlog_version

    @property
    def created(self):
        """When the server wrote the format description, seconds."""
        return self.format.created

    @property
    def server_id(self):
        """Who wrote the format description."""
        return self.format.server_id

    @property
    def table_rows(self):
        """Rows that the last `feed` put into the table."""
        return self.table.rows

    @property
    def error_text(self):
        """One sentence for the status that `feed` returned, with what was expected and got."""
        name = STATUS_NAMES.get(self.status, "no error").replace("_", " ")
        return f"{name}: {_DETAILS.get(self.status, '')}".format(expected=self.expected, got=self.got)

    def begin_file(self, position, group_start=-1):
        """The next event byte stands at `position` (u64) of its file; `cut_group` tells whether a group was open before.

        At 4 a format description is expected and stored. Elsewhere the packet stream's one (sent for the start in the
        middle of a file) is read and not stored, and a file's must have been given to `read_format`. `group_start` >= 0:
        the stream goes on inside the group that starts there.
        """
        self.cut_group = self.inference.state == START or self.inference.state == INSIDE
        self.inference.reset()
        self.position = position
        self.boundary = position if group_start < 0 else group_start
        self.group_start = position if group_start < 0 else group_start
        if group_start >= 0:
            self.inference.state = 4
            self.inference.opener = 2
        self.expect_format = position == 4 or self.packets
        self.skip_format = position != 4
        self.event_left = 0
        self.in_event = False
        self.entry_last = -1 if position == 4 else position
        self.entry_due = position != 4
        self.entry_inside = False
        self.entry_count = 0
        self.first_timestamp = 0
        self.previous_type = 0
        self.previous_position = position

    def feed(self, buf, start, stop):
        """Walks buf[start:stop]. Returns a status; see the attributes for the rest. Raises IndexError for a bad range."""
        if start < 0 or stop < start or stop > len(buf):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(buf)} bytes")
        self.table.rows = 0
        self.late_damage = -1
        self.produced = self.consumed = start
        if start == stop:
            return NEED_MORE
        if cython.compiled:
            view = buf
            with cython.nogil:
                status = self.walk(cython.address(view[0]), start, stop)
        else:
            status = self.walk(memoryview(buf).cast("B"), start, stop)
        self.status = status
        if status == C_ROTATE or status == C_STORED_ROTATE:
            self.rotate_name = bytes(buf[self.rotate_at : self.rotate_end])
        return status

    def walk(self, p, start, stop):
        r = start
        o = start
        pos = self.position
        packets = self.packets
        prefix = self.prefix if packets else 0
        status = C_NEED_MORE
        while True:
            if self.in_event or self.more_chunks:
                self.position = pos
                status = self.stream(p, r, o, stop)
                r = self.consumed
                o = self.produced
                pos = self.position
                if status != C_NEED_MORE or self.in_event or self.more_chunks:
                    break
                continue
            size = 0
            if packets:
                if stop - r < 4:
                    break
                size = load24(p, r)
                if size and stop - r < 5:
                    break
                if p[r + 3] != self.sequence:
                    status = self.refuse(C_BAD_SEQUENCE, 0, self.sequence, p[r + 3])
                    break
                if size == 0 or p[r + 4] != 0:
                    status = self.other_packet(p, r, stop, size)
                    break
                ev = r + 4 + prefix
                if size < prefix + 19:
                    status = self.refuse(C_BAD_LENGTH, 0, 19, size - prefix)
                    break
            else:
                ev = r
            if stop - ev < 19:
                break
            ack = False
            if prefix == 3:
                if p[r + 5] != 0xEF:
                    status = self.refuse(C_NO_SEMI_SYNC, p[ev + 4], 0xEF, p[r + 5])
                    break
                ack = (p[r + 6] & 1) != 0
            length = load32(p, ev + 9)
            t = p[ev + 4]
            crc_len = 4 if self.checksum > 0 else 0
            if length < 19 + crc_len or length > 1073741824:
                status = self.refuse(C_BAD_LENGTH, t, 19 + crc_len, length)
                break
            if packets:
                if (size < 0xFFFFFF and length + prefix != size) or (size == 0xFFFFFF and length + prefix < size):
                    status = self.refuse(C_BAD_LENGTH, t, size - prefix, length)
                    break
            end = ev + length
            whole = end <= stop and (not packets or size < 0xFFFFFF)
            if not whole and (length <= 262144 or stop - ev < 70000):
                break

            # An event is here, whole or with a head that is long enough to judge.
            kind = self.inference.kind[t]
            flags = load16(p, ev + 17)
            timestamp = load32(p, ev)
            log_pos = load32(p, ev + 13)
            keep = True
            covered = length - crc_len
            if kind <= K_ROTATE or self.checksum < 0 or self.expect_format:
                status = self.take_control(p, ev, length, t)
                if status != C_NEED_MORE:
                    self.bad_type = t
                    break
                keep = self.keep
                covered = self.covered
                flags = load16(p, ev + 17)
                crc_len = 4 if self.checksum > 0 else 0
            if covered < 19 or (not keep and length > 262144):
                status = self.refuse(C_BAD_LENGTH, t, 19, length)
                break

            # CRC32
            crc_bad = False
            stored = 0
            if whole and covered < length:
                stored = load32(p, ev + covered)
                if crc32_of(p, ev, ev + covered, 0) != stored:
                    if t == 15 and self.checksum == 0:
                        covered = length  # written without a checksum: the four bytes mean nothing
                    else:
                        crc_bad = True
                        if not self.tolerant:
                            status = self.refuse(C_BAD_CRC, t, stored, crc32_of(p, ev, ev + covered, 0))
                            break

            if not keep:
                status = self.pass_over(p, ev, t, covered, log_pos, pos)
                if status == C_BAD_POSITION:
                    break
                self.sequence = (self.sequence + 1) & 255
                if ack:
                    self.note_ack(pos)
                r = end
                if status != C_NEED_MORE:
                    break
                continue

            # Position chain
            jumped = False
            if log_pos != 0 and pos + length <= U32_MAX:
                expected = pos + length
                if log_pos != expected and not (
                    self.format.loose_positions and (self.format.binlog_version == 3 or self.inference.in_group())
                ):
                    self.position_jumps += 1
                    jumped = True
                    if not self.tolerant:
                        status = self.refuse(C_BAD_POSITION, t, expected, log_pos)
                        break
            if self.has_table and self.table.rows >= self.table.size:
                status = C_TABLE_FULL
                break
            if self.entry_count >= 1020:
                status = C_TABLE_FULL
                break

            # Boundary
            was_in = self.inference.in_group()
            was_bad = self.inference.recovering
            arrived = (flags >> 10) & 7
            inferred = self.inference.infer(p, ev, (length if whole else stop - ev) - (crc_len if whole else 0))
            malformed = inferred < 0
            if malformed:
                if not self.tolerant:
                    status = self.refuse(C_BAD_EVENT, t, 0, length)
                    break
                inferred = 1
            boundary = inferred
            if arrived != 0 and arrived < 6:
                boundary = arrived
                if arrived != inferred:
                    self.disagreements += 1
            if self.inference.definition:
                self.inference.definition = False
                if not malformed:
                    self.definitions += 1
                    self.notes.add_definition(pos)
            violation = self.inference.step(boundary)
            now_in = self.inference.in_group()
            if violation:
                self.violations += 1
                self.notes.add_violation(
                    pos, self.inference.from_state, boundary, t, self.previous_type, self.previous_position
                )
            if kind == K_UNKNOWN and not (flags & 0x80):
                self.unknown += 1
                self.notes.add_unknown(t, pos)
            at_boundary = (
                boundary == START or boundary == SELF_CONTAINED or (not was_in and not was_bad and boundary <= IGNORE)
            )
            if at_boundary:
                self.group_start = pos
            elif self.inference.recovering and not was_bad and not was_in:
                self.group_start = pos

            # Boundary index
            if pos - self.entry_last >= 65536 or self.entry_due or self.entry_last < 0:
                self.add_entry(pos, self.group_start, timestamp, at_boundary)

            # Marker
            effect = 0
            if self.stamp and (flags & 0x1C00) == 0:
                p[ev + 18] = p[ev + 18] | (boundary << 2)
                if covered < length:
                    effect = flags_effect(boundary, covered - 19)
                    if whole:
                        store32(p, ev + covered, stored ^ effect)

            if self.has_table:
                info = boundary
                if arrived != 0:
                    info |= 8
                if covered < length:
                    info |= 16
                if crc_bad:
                    info |= 32
                if violation:
                    info |= 64
                if now_in:
                    info |= 128
                if self.detailed:
                    info |= inferred << 8
                    if jumped:
                        info |= 2048
                    if malformed:
                        info |= 4096
                self.table.add(pos, length, t, flags, timestamp, load32(p, ev + 5), log_pos, info)

            self.events += 1
            if timestamp != 0 and t != 15:
                self.timestamp = timestamp
                if self.first_timestamp == 0:
                    self.first_timestamp = timestamp
            self.previous_type = t
            self.previous_position = pos
            self.group_due = boundary == END or (
                boundary == SELF_CONTAINED
                and (
                    kind == K_QUERY
                    or kind == K_QUERY_COMPRESSED
                    or kind == K_EXECUTE_LOAD_QUERY
                    or kind == K_LOAD_WHOLE
                    or kind == K_LOAD_CLOSES
                )
            )
            if whole and self.group_due:
                self.groups += 1

            if whole:
                if o != ev:
                    move_bytes(p, o, ev, length)
                o += length
                pos += length
                r = end
                if packets:
                    self.sequence = (self.sequence + 1) & 255
                    if ack:
                        self.note_ack(pos)
                # the newest place where nothing is open
                if now_in:
                    if at_boundary:
                        self.boundary = pos - length
                elif not self.inference.recovering:
                    self.boundary = pos
                    if self.entry_inside:
                        self.entry_due = True
                        self.entry_inside = False
                if t == 4 and not self.artificial:
                    self.note_rotate(p, o - length, covered)
                    status = C_STORED_ROTATE
                    break
                continue

            # A big event: its head goes on, the rest is streamed.
            if at_boundary and now_in:
                self.boundary = pos
            self.begin_stream(pos, length, effect)
            if packets:
                self.sequence = (self.sequence + 1) & 255
                self.chunk_left = size - prefix
                self.more_chunks = size == 0xFFFFFF
                self.ack_due = ack
                r = ev
        self.consumed = r
        self.produced = o
        self.position = pos
        return status

    def refuse(self, status, t, expected, got):
        """Notes what is wrong, with an event of type `t`, for `error_text`; returns the status."""
        self.bad_type = t
        self.expected = expected
        self.got = got
        return status

    def other_packet(self, p, r, stop, size):
        """A packet at `r` that has no event: an error of the source's, its end of stream, or what cannot be."""
        self.expected = (self.prefix if self.packets else 0) + 19
        self.got = size
        if size > 65536:
            self.bad_type = p[r + 4]
            return C_BAD_PACKET
        if stop - r < 4 + size:
            return C_NEED_MORE
        self.packet_start = r + 4
        self.packet_stop = r + 4 + size
        self.bad_type = p[r + 4] if size else 0
        if size and p[r + 4] == 0xFF:
            return C_PACKET_ERR
        if size and size < 9 and p[r + 4] == 0xFE:
            return C_PACKET_EOF
        return C_BAD_PACKET

    def take_control(self, p, ev, length, t):
        """An event that says how others are to be read, or that stands in no file, or one that comes before any of these.

        Sets `keep` (it stands in the file), `covered` (its bytes without a checksum) and, of a Rotate, `artificial`.
        """
        flags = load16(p, ev + 17)
        log_pos = load32(p, ev + 13)
        self.keep = True
        self.artificial = False
        self.covered = length - (4 if self.checksum > 0 else 0)
        if t == 4:
            self.artificial = (flags & 0x20) != 0 or (load32(p, ev) == 0 and log_pos == 0)
            if self.artificial and self.packets:
                if self.checksum < 0:
                    self.covered = length - (4 if self.announced_checksum else 0)
                self.keep = False
            elif self.checksum < 0 or self.expect_format:
                return C_NO_FORMAT
            if length > 262144 or self.covered < 27:
                self.got = length
                self.expected = 27
                return C_BAD_LENGTH
            if p[ev + 26] >= 128:
                self.got = length
                return C_BAD_EVENT
        elif t == 15 or (t == 1 and self.expect_format and self.old_format and not self.packets):
            if length > 262144:
                self.got = length
                return C_BAD_LENGTH
            if t == 15:
                if not self.expect_format and self.packets and not self.tolerant:
                    return C_BAD_EVENT
                p[ev + 17] = p[ev + 17] & 0xFE  # the file is in use
            status = self.take_format(p, ev, length)
            if status != C_NEED_MORE:
                return status
            self.keep = not (self.skip_format and self.packets)
            self.expect_format = False
            self.covered = length - 4 if self.format.has_checksum_field else length
        elif t == 27 or t == 41:
            self.keep = not self.packets
            if self.checksum < 0:
                return C_NO_FORMAT
        elif self.checksum < 0 or self.expect_format:
            return C_NO_FORMAT
        elif t == 164 and self.packets and self.skip_format and log_pos == 0:
            self.keep = False  # MariaDB repeats it behind the format description of a start in mid-file
        elif t == 164 and not self.packets and not flags & 0x80:
            return C_ENCRYPTED
        return C_NEED_MORE

    def pass_over(self, p, ev, t, covered, log_pos, position):
        """An event that stands in no file: what it says is all that is left of it. ROTATE; BAD_POSITION."""
        if t == 4:
            self.note_rotate(p, ev, covered)
            return C_ROTATE
        if t == 27 or t == 41:
            self.heartbeats += 1
            if log_pos != 0 and log_pos != (position & U32_MAX) and position < U32_MAX:
                return self.refuse(C_BAD_POSITION, t, position & U32_MAX, log_pos)
        return C_NEED_MORE

    def note_rotate(self, p, ev, covered):
        self.rotate_position = load64(p, ev + 19)
        self.rotate_at = ev + 27
        self.rotate_end = ev + covered

    def begin_stream(self, position, length, effect):
        """A big event begins, whose head was judged: `stream` moves it on."""
        self.event_start = position
        self.in_event = True
        self.event_crc = 0
        self.event_effect = effect
        self.event_left = length

    def stream(self, p, r, o, stop):
        """Moves on what is there of a big event; its last four bytes, the CRC32, only when they are all there."""
        while True:
            if self.packets and self.chunk_left == 0 and self.more_chunks:
                if stop - r < 4:
                    break
                size = load24(p, r)
                if p[r + 3] != self.sequence:
                    self.expected = self.sequence
                    self.got = p[r + 3]
                    self.consumed = r
                    self.produced = o
                    return C_BAD_SEQUENCE
                if size > self.event_left or (size < 0xFFFFFF and size != self.event_left):
                    self.expected = self.event_left
                    self.got = size
                    self.consumed = r
                    self.produced = o
                    return C_BAD_PACKET
                self.sequence = (self.sequence + 1) & 255
                self.chunk_left = size
                self.more_chunks = size == 0xFFFFFF
                r += 4
                if size == 0:
                    continue
            if not self.in_event:
                if self.ack_due:
                    self.ack_due = False
                    self.note_ack(self.position)
                break
            n = stop - r
            if n > self.event_left:
                n = self.event_left
            if self.packets and n > self.chunk_left:
                n = self.chunk_left
            if self.checksum > 0:
                if self.event_left > 4:
                    if n > self.event_left - 4:
                        n = self.event_left - 4
                    if n <= 0:
                        break
                    self.event_crc = crc32_of(p, r, r + n, self.event_crc)
                else:
                    # the four bytes may stand in two packets: then they are brought together first
                    if n < self.event_left:
                        if (
                            self.packets
                            and n == self.chunk_left
                            and self.more_chunks
                            and stop - r >= 4 + self.event_left
                        ):
                            size = load24(p, r + n)
                            if p[r + n + 3] != self.sequence:
                                self.expected = self.sequence
                                self.got = p[r + n + 3]
                                self.consumed = r
                                self.produced = o
                                return C_BAD_SEQUENCE
                            if size != self.event_left - n:
                                self.expected = self.event_left - n
                                self.got = size
                                self.consumed = r
                                self.produced = o
                                return C_BAD_PACKET
                            self.sequence = (self.sequence + 1) & 255
                            move_bytes(p, r + 4, r, n)
                            r += 4
                            self.chunk_left = self.event_left
                            self.more_chunks = False
                            n = self.event_left
                        else:
                            break
                    stored = load32(p, r)
                    if self.event_crc != (stored ^ self.event_effect):
                        self.expected = stored
                        self.got = self.event_crc ^ self.event_effect
                        self.bad_type = self.previous_type
                        if not self.tolerant:
                            self.consumed = r
                            self.produced = o
                            self.position = self.event_start
                            self.in_event = False
                            self.event_left = 0
                            return C_BAD_CRC
                        if not self.has_table or not self.table.note(32):
                            self.late_damage = self.event_start
                    store32(p, r, stored ^ self.event_effect)
            elif n <= 0:
                break
            if o != r:
                move_bytes(p, o, r, n)
            o += n
            r += n
            self.position += n
            self.event_left -= n
            if self.packets:
                self.chunk_left -= n
            if self.event_left == 0:
                self.finish_event()
        self.consumed = r
        self.produced = o
        return 0

    def note_ack(self, position):
        self.ack_position = position
        self.acks += 1
        self.sequence = 1

    def finish_event(self):
        self.in_event = False
        if self.group_due:
            self.groups += 1
        if not self.inference.in_group() and not self.inference.recovering:
            self.boundary = self.position
            if self.entry_inside:
                self.entry_due = True
                self.entry_inside = False

    def add_entry(self, position, group_start, timestamp, at_boundary):
        at = self.entry_count * 24
        store64(self.entries, at, position)
        store64(self.entries, at + 8, group_start)
        store32(self.entries, at + 16, timestamp)
        store32(self.entries, at + 20, 1 if at_boundary else 0)
        self.entry_count += 1
        self.entry_last = position
        self.entry_due = False
        if not at_boundary:
            self.entry_inside = True

    def read_format(self, buf, start, stop):
        """Learns the format description in buf[start:stop] without storing it. False: it is none, or not supported."""
        if start < 0 or stop > len(buf) or stop - start < 19 + 57:
            return False
        if cython.compiled:
            view = buf
            if view[start + 4] != 15 or load32(cython.address(view[0]), start + 9) != stop - start:
                return False
            if self.take_format(cython.address(view[0]), start, stop - start) != 0:
                return False
        else:
            if buf[start + 4] != 15 or load32(buf, start + 9) != stop - start:
                return False
            if self.take_format(memoryview(buf).cast("B"), start, stop - start) != 0:
                return False
        self.expect_format = False
        return True

    def take_format(self, p, at, length):
        """Learns the format description, or the Start_v3 of an old server, at `at`."""
        status = self.format.take(p, at, length, self.inference)
        if status != C_NEED_MORE:
            self.expected = self.format.expected
            self.got = self.format.got
            self.bad_type = p[at + 4]
            return status
        self.checksum = self.format.checksum
        return C_NEED_MORE

    def set_table(self, table, tolerant=False):
        """With an array('q'), every event adds ROW numbers to it, from its start at each feed; None: no table.

        offset, length, type, flags, timestamp, server_id, end_log_pos, info: bits 0-2 boundary, 3 marked on arrival, 4 CRC
        present, 5 CRC wrong, 6 violation, 7 a transaction is open behind it. tolerant: a wrong CRC or position, or a
        Query whose lengths lie, is noted and does not stop, and files of 4.0 and 4.1 (binlog version 3) are read. With
        `detailed` set, info has more: bits 8-10 the inferred boundary whatever arrived, 11 end_log_pos wrong, 12 a Query
        whose lengths lie.
        """
        self.old_format = self.old_format or tolerant
        self.has_table = table is not None
        self.tolerant = tolerant
        self.table.use(table)

    def post_lengths(self):
        """The post-header lengths of the format description that is in force: 256 bytes, one for each type code."""
        return bytes([self.inference.post_length[i] for i in range(256)])

    def take_entries(self):
        """The index records made since the last call, 24 bytes each: offset u64, group start u64, time u32, flags u32."""
        count = self.entry_count
        self.entry_count = 0
        if cython.compiled:
            return cython.cast(cython.p_char, self.entries)[: count * 24]
        else:
            return bytes(self.entries[: count * 24])

    def take_violations(self):
        """(position, from, to, event type, previous event type, previous position) of at most 64 since the last call."""
        return self.notes.take_violations()

    def take_unknown_types(self):
        """(type, position of the first) of the unknown, not ignorable types that were seen for the first time."""
        return self.notes.take_unknown_types()

    def take_definitions(self):
        """Where the Query events stand that may define tables anew; of those since the last call, the first 64."""
        return self.notes.take_definitions()
