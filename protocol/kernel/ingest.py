# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The way in: runs of received bytes become runs of checked, marked binlog events, in place.

One pass over each run does: packet framing (if the bytes come from a server), the checks of length, sequence, CRC32 and position
chain, the inference of the boundary, the marker in the header's flags and the CRC32 that covers it. Python sees runs and a few facts:
the newest transaction boundary, the changes of file, and defects.

The same walker reads files (`packets=False`): the relay's own for recovery and verification, a former source's for the directory
source, any for `events` and `positions`.
"""

from array import array

import cython

from protocol.kernel.event_table import EventTable
from protocol.kernel.inference import Inference
from protocol.kernel.stream_format import StreamFormat
from protocol.kernel.stream_notes import StreamNotes

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import (
        Bytes,
        Writable,
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

native_setup()


def is_whole_transaction(kind: int) -> bool:
    """Return whether a self-contained event of this kind is a transaction, and not a mark between two."""
    return (
        kind == K_QUERY
        or kind == K_QUERY_COMPRESSED
        or kind == K_EXECUTE_LOAD_QUERY
        or kind == K_LOAD_WHOLE
        or kind == K_LOAD_CLOSES
    )


class Ingest:
    """Walks a stream of events; see the module's text. Not thread-safe; `feed` releases the GIL.

    With `packets` the input is a MySQL packet stream (4-byte header, status byte 0x00, `prefix` - 1 bytes of semi-sync header,
    event); otherwise bare event bytes, as in a file after its magic. With `stamp` the inferred boundary is written into events that
    arrive without one.
    `prefix` is the bytes before the event in a packet, status byte included: 1, or 3 with semi-sync (0xEF and flags; flag 1 asks for
    an acknowledgement, and the source numbers its packets from 1 again after such an event). `acks` counts the events that asked for
    one, `ack_position` is where the newest of them ends in its file.
    `late_damage` is, with `tolerant`, the place of the event whose row an earlier `feed` gave and whose checksum, at the end of its
    many bytes, is wrong; -1: none in the last `feed`. `definitions` counts the Query events that may change which tables exist, or
    their columns (`take_definitions`). With `old_format`, files that begin with Start_v3 (binlog version 3, of 4.0 and 4.1) are read
    too.
    """

    def __init__(self, packets: bool = False, stamp: bool = False, prefix: int = 1) -> None:
        if not cython.compiled:
            self.entries = bytearray(ENTRY_ROOM * ENTRY_SIZE)
        self.packets = packets
        self.stamp = stamp
        self.prefix = prefix
        self.announced_checksum = False
        self.inference = Inference()
        self.format = StreamFormat()
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
        self.begin_file(FIRST_EVENT)
        self.cut_group = False

    @property
    def in_group(self) -> bool:
        """True if a transaction is open at `position`."""
        return self.inference.state == START or self.inference.state == INSIDE

    @property
    def binlog_version(self) -> int:
        """The version of the format description in force: 4; 3 for servers before 5.0."""
        return self.format.binlog_version

    @property
    def created(self) -> int:
        """The time at which the server wrote the format description, in seconds."""
        return self.format.created

    @property
    def server_id(self) -> int:
        """The id of the server that wrote the format description."""
        return self.format.server_id

    @property
    def table_rows(self) -> int:
        """The number of rows that the last `feed` put into the table."""
        return self.table.rows

    @property
    def error_text(self) -> str:
        """One sentence for the status that `feed` returned, with the expected and the actual value."""
        name = STATUS_NAMES.get(self.status, "no error").replace("_", " ")
        return f"{name}: {_DETAILS.get(self.status, '')}".format(expected=self.expected, got=self.got)

    def begin_file(self, position: int, group_start: int = -1) -> None:
        """Expect the next event byte at `position` (u64) of its file; `cut_group` is then True if a group was open before.

        At 4 a format description is expected and stored. Elsewhere the packet stream's one (sent for the start in the middle of a
        file) is read and not stored, and a file's must have been given to `read_format`. With `group_start` >= 0 the stream continues
        inside the group that starts there.
        """
        self.cut_group = self.inference.state == START or self.inference.state == INSIDE
        self.inference.reset()
        self.position = position
        self.boundary = position if group_start < 0 else group_start
        self.group_start = position if group_start < 0 else group_start
        if group_start >= 0:
            self.inference.state = INSIDE
            self.inference.opener = OPENED_BY_BEGIN
        self.expect_format = position == FIRST_EVENT or self.packets
        self.skip_format = position != FIRST_EVENT
        self.event_left = 0
        self.in_event = False
        self.entry_last = -1 if position == FIRST_EVENT else position
        self.entry_due = position != FIRST_EVENT
        self.entry_inside = False
        self.entry_count = 0
        self.first_timestamp = 0
        self.previous_type = 0
        self.previous_position = position

    def feed(self, buf: Writable, start: int, stop: int) -> int:
        """Walk buf[start:stop]. Return a status; see the attributes for the rest. Raises IndexError for a bad range."""
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
        if status == ROTATE or status == STORED_ROTATE:
            self.rotate_name = bytes(buf[self.rotate_at : self.rotate_end])
        return status

    def walk(self, p: Writable, start: int, stop: int) -> int:
        r = start
        o = start
        pos = self.position
        packets = self.packets
        prefix = self.prefix if packets else 0
        status = NEED_MORE
        while True:
            if self.in_event or self.more_chunks:
                self.position = pos
                status = self.stream(p, r, o, stop)
                r = self.consumed
                o = self.produced
                pos = self.position
                if status != NEED_MORE or self.in_event or self.more_chunks:
                    break
                continue
            size = 0
            if packets:
                if stop - r < PACKET_HEAD_SIZE:
                    break
                size = load24(p, r)
                if size and stop - r < 5:
                    break
                if p[r + 3] != self.sequence:
                    status = self.refuse(BAD_SEQUENCE, 0, self.sequence, p[r + 3])
                    break
                if size == 0 or p[r + PACKET_HEAD_SIZE] != 0:
                    status = self.other_packet(p, r, stop, size)
                    break
                ev = r + PACKET_HEAD_SIZE + prefix
                if size < prefix + HEADER_SIZE:
                    status = self.refuse(BAD_LENGTH, 0, HEADER_SIZE, size - prefix)
                    break
            else:
                ev = r
            if stop - ev < HEADER_SIZE:
                break
            ack = False
            if prefix == 3:
                if p[r + 5] != SEMI_SYNC_MAGIC:
                    status = self.refuse(NO_SEMI_SYNC, p[ev + EVENT_TYPE_AT], SEMI_SYNC_MAGIC, p[r + 5])
                    break
                ack = (p[r + 6] & 1) != 0
            length = load32(p, ev + EVENT_SIZE_AT)
            t = p[ev + EVENT_TYPE_AT]
            crc_len = CHECKSUM_SIZE if self.checksum > 0 else 0
            if length < HEADER_SIZE + crc_len or length > MAX_EVENT:
                status = self.refuse(BAD_LENGTH, t, HEADER_SIZE + crc_len, length)
                break
            if packets:
                if (size < MAX_PAYLOAD and length + prefix != size) or (size == MAX_PAYLOAD and length + prefix < size):
                    status = self.refuse(BAD_LENGTH, t, size - prefix, length)
                    break
            end = ev + length
            whole = end <= stop and (not packets or size < MAX_PAYLOAD)
            if not whole and (length <= MAX_WHOLE or stop - ev < INFERENCE_HEAD):
                break

            # An event is here, whole or with a head that is long enough to judge.
            kind = self.inference.kind[t]
            flags = load16(p, ev + FLAGS_AT)
            timestamp = load32(p, ev)
            log_pos = load32(p, ev + LOG_POS_AT)
            keep = True
            covered = length - crc_len
            if kind <= K_ROTATE or self.checksum < 0 or self.expect_format:
                status = self.take_control(p, ev, length, t)
                if status != NEED_MORE:
                    self.bad_type = t
                    break
                keep = self.keep
                covered = self.covered
                flags = load16(p, ev + FLAGS_AT)
                crc_len = CHECKSUM_SIZE if self.checksum > 0 else 0
            if covered < HEADER_SIZE or (not keep and length > MAX_WHOLE):
                status = self.refuse(BAD_LENGTH, t, HEADER_SIZE, length)
                break

            # CRC32
            crc_bad = False
            crc_missing = False
            stored = 0
            if whole and covered < length:
                stored = load32(p, ev + covered)
                if crc32_of(p, ev, ev + covered, 0) != stored:
                    if t == FORMAT_DESCRIPTION_EVENT and self.checksum == 0 and (stored == 0 or not keep):
                        covered = length  # it was never computed, or it is a copy that was changed after that
                        crc_missing = True
                    else:
                        crc_bad = True
                        if not self.tolerant:
                            status = self.refuse(BAD_CRC, t, stored, crc32_of(p, ev, ev + covered, 0))
                            break

            if not keep:
                status = self.pass_over(p, ev, t, covered, log_pos, pos)
                if status == BAD_POSITION:
                    break
                self.end_packet(pos, ack)
                r = end
                if status != NEED_MORE:
                    break
                continue

            # Position chain
            jumped = self.breaks_chain(log_pos, pos, length)
            if jumped:
                self.position_jumps += 1
                if not self.tolerant:
                    status = self.refuse(BAD_POSITION, t, pos + length, log_pos)
                    break
            if (self.has_table and self.table.rows >= self.table.size) or self.entry_count >= ENTRY_ROOM:
                status = TABLE_FULL
                break

            # Boundary
            was_in = self.inference.in_group()
            was_bad = self.inference.recovering
            arrived = (flags & BOUNDARY_MASK) >> BOUNDARY_SHIFT
            inferred = self.inference.infer(p, ev, (length if whole else stop - ev) - (crc_len if whole else 0))
            malformed = inferred < 0
            if malformed:
                if not self.tolerant:
                    status = self.refuse(BAD_EVENT, t, 0, length)
                    break
                inferred = IGNORE
            boundary = inferred
            if arrived != NOT_DEFINED and arrived <= END:
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
            if kind == K_UNKNOWN and not (flags & FLAG_IGNORABLE):
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
            if pos - self.entry_last >= INDEX_GAP or self.entry_due or self.entry_last < 0:
                self.add_entry(pos, self.group_start, timestamp, at_boundary)

            # Marker
            effect = 0
            if self.stamp and arrived == NOT_DEFINED:
                p[ev + FLAGS_AT + 1] = p[ev + FLAGS_AT + 1] | (boundary << 2)
                if covered < length:
                    effect = flags_effect(boundary, covered - HEADER_SIZE)
                    if whole:
                        store32(p, ev + covered, stored ^ effect)
            if crc_missing and self.stamp:  # archived events have one, so that damage can be detected
                store32(p, ev + length - CHECKSUM_SIZE, crc32_of(p, ev, ev + length - CHECKSUM_SIZE, 0))

            if self.has_table:
                info = boundary
                if arrived != NOT_DEFINED:
                    info |= INFO_STAMPED
                if covered < length:
                    info |= INFO_CHECKSUM
                if crc_bad:
                    info |= INFO_BAD_CHECKSUM
                if violation:
                    info |= INFO_VIOLATION
                if now_in:
                    info |= INFO_OPEN
                if self.detailed:
                    info |= inferred << INFO_INFERRED_SHIFT
                    if jumped:
                        info |= INFO_BAD_POSITION
                    if malformed:
                        info |= INFO_MALFORMED
                self.table.add(pos, length, t, flags, timestamp, load32(p, ev + SERVER_ID_AT), log_pos, info)

            self.note_event(pos, t, timestamp)
            self.group_due = boundary == END or (boundary == SELF_CONTAINED and is_whole_transaction(kind))
            if whole and self.group_due:
                self.groups += 1

            if whole:
                if o != ev:
                    move_bytes(p, o, ev, length)
                o += length
                pos += length
                r = end
                if packets:
                    self.end_packet(pos, ack)
                # the newest place where nothing is open
                if now_in:
                    if at_boundary:
                        self.boundary = pos - length
                elif not self.inference.recovering:
                    self.pass_boundary(pos)
                if t == ROTATE_EVENT and not self.artificial:
                    self.note_rotate(p, o - length, covered)
                    status = STORED_ROTATE
                    break
                continue

            # A big event: its head is passed on, the rest is streamed.
            if at_boundary and now_in:
                self.boundary = pos
            self.begin_stream(pos, length, effect)
            if packets:
                self.sequence = (self.sequence + 1) & 255
                self.chunk_left = size - prefix
                self.more_chunks = size == MAX_PAYLOAD
                self.ack_due = ack
                r = ev
        self.consumed = r
        self.produced = o
        self.position = pos
        return status

    def breaks_chain(self, log_pos: int, position: int, length: int) -> bool:
        """Return whether `log_pos` differs from the end of an event of `length` at `position`; 0 and places beyond 32 bits do not."""
        if log_pos == 0 or position + length > U32_MAX or log_pos == position + length:
            return False
        return not (self.format.loose_positions and (self.format.binlog_version == 3 or self.inference.in_group()))

    def note_event(self, position: int, t: int, timestamp: int) -> None:
        """Note the facts of the newest event of the file, which is at `position`."""
        self.events += 1
        if timestamp != 0 and t != FORMAT_DESCRIPTION_EVENT:
            self.timestamp = timestamp
            if self.first_timestamp == 0:
                self.first_timestamp = timestamp
        self.previous_type = t
        self.previous_position = position

    def end_packet(self, position: int, ack: bool) -> None:
        """End the packet of an event which ends at `position`; `ack`: it asked for an acknowledgement."""
        self.sequence = (self.sequence + 1) & 255
        if ack:
            self.note_ack(position)

    def refuse(self, status: int, t: int, expected: int, got: int) -> int:
        """Note a defect, in an event of type `t`, for `error_text`; return the status."""
        self.bad_type = t
        self.expected = expected
        self.got = got
        return status

    def other_packet(self, p: Bytes, r: int, stop: int, size: int) -> int:
        """Judge a packet at `r` without an event: an error of the source's, its end of stream, or an impossible one."""
        self.expected = (self.prefix if self.packets else 0) + HEADER_SIZE
        self.got = size
        if size > MOST_OTHER_PACKET:
            self.bad_type = p[r + PACKET_HEAD_SIZE]
            return BAD_PACKET
        if stop - r < PACKET_HEAD_SIZE + size:
            return NEED_MORE
        self.packet_start = r + PACKET_HEAD_SIZE
        self.packet_stop = r + PACKET_HEAD_SIZE + size
        self.bad_type = p[r + PACKET_HEAD_SIZE] if size else 0
        if size and p[r + PACKET_HEAD_SIZE] == ERR_PACKET:
            return PACKET_ERR
        if size and size < 9 and p[r + PACKET_HEAD_SIZE] == EOF_PACKET:
            return PACKET_EOF
        return BAD_PACKET

    def take_control(self, p: Writable, ev: int, length: int, t: int) -> int:
        """Take an event that says how others are read, or that is in no file, or one that comes before any of these.

        It sets `keep` (the event is in the file), `covered` (its bytes without a checksum) and, for a Rotate, `artificial`.
        """
        flags = load16(p, ev + FLAGS_AT)
        log_pos = load32(p, ev + LOG_POS_AT)
        self.keep = True
        self.artificial = False
        self.covered = length - (CHECKSUM_SIZE if self.checksum > 0 else 0)
        if t == ROTATE_EVENT:
            self.artificial = (flags & FLAG_ARTIFICIAL) != 0 or (load32(p, ev) == 0 and log_pos == 0)
            if self.artificial and self.packets:
                if self.checksum < 0:
                    self.covered = length - (CHECKSUM_SIZE if self.announced_checksum else 0)
                self.keep = False
            elif self.checksum < 0 or self.expect_format:
                return NO_FORMAT
            if length > MAX_WHOLE or self.covered < HEADER_SIZE + ROTATE_NAME_AT:
                self.got = length
                self.expected = HEADER_SIZE + ROTATE_NAME_AT
                return BAD_LENGTH
            if p[ev + HEADER_SIZE + ROTATE_NAME_AT - 1] >= 128:
                self.got = length
                return BAD_EVENT
        elif t == FORMAT_DESCRIPTION_EVENT or (
            t == START_V3_EVENT and self.expect_format and self.old_format and not self.packets
        ):
            if length > MAX_WHOLE:
                self.got = length
                return BAD_LENGTH
            if t == FORMAT_DESCRIPTION_EVENT:
                if not self.expect_format and self.packets and not self.tolerant:
                    return BAD_EVENT
                p[ev + FLAGS_AT] = p[ev + FLAGS_AT] & ~FLAG_IN_USE  # the file is in use
            status = self.take_format(p, ev, length)
            if status != NEED_MORE:
                return status
            self.keep = not (self.skip_format and self.packets)
            self.expect_format = False
            self.covered = length - CHECKSUM_SIZE if self.format.has_checksum_field else length
        elif t == HEARTBEAT_EVENT or t == HEARTBEAT_V2_EVENT:
            self.keep = not self.packets
            if self.checksum < 0:
                return NO_FORMAT
        elif self.checksum < 0 or self.expect_format:
            return NO_FORMAT
        elif t == START_ENCRYPTION_EVENT and self.packets and self.skip_format and log_pos == 0:
            self.keep = False  # MariaDB repeats it after the format description of a start in mid-file
        elif t == START_ENCRYPTION_EVENT and not self.packets and not flags & FLAG_IGNORABLE:
            return ENCRYPTED
        return NEED_MORE

    def pass_over(self, p: Bytes, ev: int, t: int, covered: int, log_pos: int, position: int) -> int:
        """Pass over an event that is in no file, and keep its content only. ROTATE; BAD_POSITION."""
        if t == ROTATE_EVENT:
            self.note_rotate(p, ev, covered)
            return ROTATE
        if t == HEARTBEAT_EVENT or t == HEARTBEAT_V2_EVENT:
            self.heartbeats += 1
            if log_pos != 0 and log_pos != (position & U32_MAX) and position < U32_MAX:
                return self.refuse(BAD_POSITION, t, position & U32_MAX, log_pos)
        return NEED_MORE

    def note_rotate(self, p: Bytes, ev: int, covered: int) -> None:
        self.rotate_position = load64(p, ev + HEADER_SIZE)
        self.rotate_at = ev + HEADER_SIZE + ROTATE_NAME_AT
        self.rotate_end = ev + covered

    def begin_stream(self, position: int, length: int, effect: int) -> None:
        """Begin a big event, whose head was judged: `stream` passes it on."""
        self.event_start = position
        self.in_event = True
        self.event_crc = 0
        self.event_effect = effect
        self.event_left = length

    def stream(self, p: Writable, r: int, o: int, stop: int) -> int:
        """Pass on the bytes of a big event that are there; its last four, the CRC32, only when they are all there."""
        while True:
            if self.packets and self.chunk_left == 0 and self.more_chunks:
                if stop - r < PACKET_HEAD_SIZE:
                    break
                size = load24(p, r)
                if p[r + 3] != self.sequence:
                    self.expected = self.sequence
                    self.got = p[r + 3]
                    self.consumed = r
                    self.produced = o
                    return BAD_SEQUENCE
                if size > self.event_left or (size < MAX_PAYLOAD and size != self.event_left):
                    self.expected = self.event_left
                    self.got = size
                    self.consumed = r
                    self.produced = o
                    return BAD_PACKET
                self.sequence = (self.sequence + 1) & 255
                self.chunk_left = size
                self.more_chunks = size == MAX_PAYLOAD
                r += PACKET_HEAD_SIZE
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
                if self.event_left > CHECKSUM_SIZE:
                    if n > self.event_left - CHECKSUM_SIZE:
                        n = self.event_left - CHECKSUM_SIZE
                    if n <= 0:
                        break
                    self.event_crc = crc32_of(p, r, r + n, self.event_crc)
                else:
                    # the four bytes may be in two packets: then they are joined first
                    if n < self.event_left:
                        if (
                            self.packets
                            and n == self.chunk_left
                            and self.more_chunks
                            and stop - r >= PACKET_HEAD_SIZE + self.event_left
                        ):
                            size = load24(p, r + n)
                            if p[r + n + 3] != self.sequence:
                                self.expected = self.sequence
                                self.got = p[r + n + 3]
                                self.consumed = r
                                self.produced = o
                                return BAD_SEQUENCE
                            if size != self.event_left - n:
                                self.expected = self.event_left - n
                                self.got = size
                                self.consumed = r
                                self.produced = o
                                return BAD_PACKET
                            self.sequence = (self.sequence + 1) & 255
                            move_bytes(p, r + PACKET_HEAD_SIZE, r, n)
                            r += PACKET_HEAD_SIZE
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
                            return BAD_CRC
                        if not self.has_table or not self.table.note(INFO_BAD_CHECKSUM):
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
        return NEED_MORE

    def note_ack(self, position: int) -> None:
        self.ack_position = position
        self.acks += 1
        self.sequence = 1

    def finish_event(self) -> None:
        self.in_event = False
        if self.group_due:
            self.groups += 1
        if not self.inference.in_group() and not self.inference.recovering:
            self.pass_boundary(self.position)

    def pass_boundary(self, position: int) -> None:
        """Note that nothing is open at `position`, the newest of such places."""
        self.boundary = position
        if self.entry_inside:
            self.entry_due = True
            self.entry_inside = False

    def add_entry(self, position: int, group_start: int, timestamp: int, at_boundary: bool) -> None:
        at = self.entry_count * ENTRY_SIZE
        store64(self.entries, at, position)
        store64(self.entries, at + 8, group_start)
        store32(self.entries, at + 16, timestamp)
        store32(self.entries, at + 20, 1 if at_boundary else 0)
        self.entry_count += 1
        self.entry_last = position
        self.entry_due = False
        if not at_boundary:
            self.entry_inside = True

    def read_format(self, buf: Writable, start: int, stop: int) -> bool:
        """Read the format description in buf[start:stop] without storing it. False: it is none, or not supported."""
        if start < 0 or stop > len(buf) or stop - start < HEADER_SIZE + FORMAT_FIXED_SIZE:
            return False
        if cython.compiled:
            view = buf
            p = cython.address(view[0])
        else:
            p = memoryview(buf).cast("B")
        if p[start + EVENT_TYPE_AT] != FORMAT_DESCRIPTION_EVENT or load32(p, start + EVENT_SIZE_AT) != stop - start:
            return False
        if self.take_format(p, start, stop - start) != NEED_MORE:
            return False
        self.expect_format = False
        return True

    def take_format(self, p: Bytes, at: int, length: int) -> int:
        """Read the format description, or the Start_v3 of an old server, at `at`."""
        status = self.format.take(p, at, length, self.inference)
        if status != NEED_MORE:
            self.expected = self.format.expected
            self.got = self.format.got
            self.bad_type = p[at + EVENT_TYPE_AT]
            return status
        self.checksum = self.format.checksum
        return NEED_MORE

    def set_table(self, table: "array[int] | None", tolerant: bool = False) -> None:
        """Let every event add TABLE_ROW numbers to an array('q'), from its start at each feed; None: no table.

        The numbers are offset, length, type, flags, timestamp, server_id, end_log_pos, info: bits 0-2 boundary, 3 marked on arrival,
        4 CRC present, 5 CRC wrong, 6 violation, 7 a transaction is open after it. With `tolerant` a wrong CRC or position, or a Query
        with wrong lengths, is noted and does not stop, and files of 4.0 and 4.1 (binlog version 3) are read. With `detailed` set,
        info has more: bits 8-10 the inferred boundary whatever arrived, 11 end_log_pos wrong, 12 a Query with wrong lengths.
        """
        self.old_format = self.old_format or tolerant
        self.has_table = table is not None
        self.tolerant = tolerant
        self.table.use(table)

    def post_lengths(self) -> bytes:
        """Return the post-header lengths of the format description in force: 256 bytes, one for each type code."""
        return bytes([self.inference.post_length[i] for i in range(256)])

    def take_entries(self) -> bytes:
        """Return the new index records, ENTRY_SIZE bytes each: offset u64, group start u64, time u32, flags u32."""
        size = self.entry_count * ENTRY_SIZE
        self.entry_count = 0
        if cython.compiled:
            records: bytes = cython.cast(cython.p_char, self.entries)[:size]
        else:
            records = bytes(self.entries[:size])
        return records

    def take_violations(self) -> list[tuple[int, int, int, int, int, int]]:
        """Return (position, from, to, event type, previous event type, previous position) of at most 64 since the last call."""
        return self.notes.take_violations()

    def take_unknown_types(self) -> list[tuple[int, int]]:
        """Return (type, position of the first) of the unknown, not ignorable types that were seen for the first time."""
        return self.notes.take_unknown_types()

    def take_definitions(self) -> list[int]:
        """Return the places of the first 64 Query events since the last call that may define tables again."""
        return self.notes.take_definitions()
