"""The stream of one replica: from the archive's published bytes to its socket. Nothing here looks at single events.

A dump is never suspended inside a step. `pump` sends what can be sent and returns; it is called again when the socket
took what it was given, when the archive grew, or when a read in a thread is done. So a replica that stalls costs one
output buffer, and nobody waits for it.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from protocol.artificial import MAX_WIRE_POSITION, heartbeat_event, replica_position, rotate_event
from protocol.errors import AnsweredError, ErrorCode, Malformed, PositionRefused
from protocol.framing import frame_payload, packet_count
from protocol.kernel.frame import Framer, required_size
from protocol.position import Position
from protocol.semisync import PREFIX as SEMI_SYNC_PREFIX
from relay.archive.archive import Archive
from relay.archive.archived_file import ArchivedFile
from relay.archive.errors import ArchiveError
from relay.archive.replica_marks import Mark
from relay.downstream.acknowledgements import Acknowledgements
from relay.downstream.file_reads import STEP_BYTES, BufferPool, FileReads, OpenFile
from relay.downstream.gtid_walk import WORTH_A_JUMP_BYTES, GtidWalk, Jump
from relay.downstream.passage import NextPart, Passage
from relay.downstream.positions import FIRST_OFFSET, INTERNAL_ERROR, refusal
from relay.downstream.sent_range import SentRange
from relay.downstream.stream_guide import StreamGuide

log = structlog.get_logger("relay.downstream")

# After this much the loop is given back, so that a replica that catches up from memory does not hold up the others.
_TURN_BYTES: Final = 1 << 20
# To go on to the next file takes as long as to send so much: of thousands of tiny files a turn takes no more than these.
_FILE_COST_BYTES: Final = 256 << 10
# How long no event of the archive may have been sent, with an empty send queue, until a replica is believed to have
# stored it all. Heartbeats do not count: they may be more frequent than this.
_SETTLED_S: Final = 3.0
# A receive window says less than its size about the last of it, and a proxy in between holds some.
_UNREAD_MARGIN_BYTES: Final = 1 << 20
_UNREAD_ASKED_EVERY_S: Final = 0.01
_TAIL_BYTES: Final = 320
# The loop's timers count in milliseconds: one that fires a moment early is not waited for again.
_TIMER_GRAIN_S: Final = 0.0005
OUTPUT_BYTES: Final = required_size(STEP_BYTES, len(SEMI_SYNC_PREFIX))
_STATUS: Final = b"\0"
# Of an event that may take a second packet.
_PACKET_HEADERS: Final = 8
# `find_jump(archive, walk, file, done)`: `done(jump)` is called later, on the loop; until then nothing of the file is read.
FindJump = Callable[[Archive, GtidWalk, str, Callable[[Jump | None], None]], None]


class DumpOwner(Protocol):
    """The connection that a dump writes to."""

    @property
    def write_paused(self) -> bool:
        """Whether the socket has not taken yet what it was given last."""

    def write(self, data: bytes | memoryview) -> None:
        """Gives bytes to the socket. They must not change until `write_paused` is False again."""

    def unread_bytes(self) -> int | None:
        """Of all that was written, what the replica has not read, as far as the system can tell; None: it cannot."""

    def dump_ended(self, sequence: int) -> None:
        """The client wanted EOF at the end, and the end is here."""

    def dump_failed(self, sequence: int | None, error: AnsweredError) -> None:
        """The stream cannot go on. `sequence` None: it broke off inside an event, so there is no place for an error."""


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """How this replica wants its stream.

    `heartbeat_s`: silence after which a heartbeat is sent, 0: none. `first_rotate_checksum`: the replica's variable.
    `ends_at_end`: EOF instead of waiting. `takes_checksums`: it set the variable. `mode`: of the framer.
    """

    server_id: int
    heartbeat_s: float
    first_rotate_checksum: bool
    takes_checksums: bool
    ends_at_end: bool
    mode: int


class Dump:
    """One stream, from `begin` to `close`."""

    def __init__(
        self,
        *,
        archive: Archive,
        reads: FileReads,
        outputs: BufferPool,
        owner: DumpOwner,
        options: DumpOptions,
        file: ArchivedFile,
        opened: OpenFile,
        offset: int,
        sequence: int,
        mark: Mark | None,
        at_edge: Callable[["Dump"], None],
        acknowledgements: Acknowledgements | None = None,
        guide: StreamGuide | None = None,
        walk: GtidWalk | None = None,
        jump: Jump | None = None,
        find_jump: FindJump | None = None,
        passage: Passage | None = None,
    ) -> None:
        """acknowledgements: with semi-sync, told what is asked for; None: nothing is.

        For a replica that asked by GTID: guide: what may come into the stream later. walk: what of it is not sent.
        jump: what of the first file need not be read. find_jump: the same of later files.
        passage: what comes after the last file of `archive`; None: nothing ever does.
        """
        self._archive = archive
        self._reads = reads
        self._outputs = outputs
        self._owner = owner
        self._options = options
        self._file = file
        self._opened = opened
        self._offset = offset
        self._mark = mark
        self._at_edge = at_edge
        self._acknowledgements = acknowledgements
        self._prefix = _STATUS if acknowledgements is None else SEMI_SYNC_PREFIX
        self._framer = Framer(options.mode, self._prefix, acknowledgements is not None)
        self._framer.sequence = sequence
        self._framer.begin_file(file.checksum)
        self._range = SentRange(offset)
        self._guide = guide
        self._walk = walk
        self._jump = jump
        self._find_jump = find_jump
        self._passage = passage
        self._server_id = options.server_id
        self._failure: AnsweredError | None = None
        """What the stream ends with once the socket took everything."""
        self._looked_to = offset
        """Up to here, the end of a transaction, the guide has seen nothing that must be walked over."""
        self._must_walk = False
        """What the guide said last. As long as it does, a walk goes on: another could only begin between transactions."""
        if walk is not None:
            walk.begin_file(file.name, checksum=bool(file.checksum))
        self._loop = asyncio.get_running_loop()
        self._held: bytearray | None = None
        self._closed = False
        self._silenced = False
        self._turn_scheduled = False
        self._read_pending = False
        self._passing_on = False
        """The next generation is looked for; until it is found, heartbeats go on."""
        self._timer: asyncio.TimerHandle | None = None
        self._last_sent = self._last_run = self._loop.time()
        self._taken = False
        """Whether the replica's system had nothing of the newest events any more, when last looked at."""
        self._settled = False
        """Whether a heartbeat was sent since."""
        self._settle_not_before = 0.0
        self._unread: int | None = None
        self._unread_asked = 0.0
        self._sent_since_asked = 0
        self._start_in_file = offset
        self._heartbeat: bytes | None = None
        self._heartbeat_for: Position | None = None
        self.sent_bytes = 0

    @property
    def archive(self) -> Archive:
        """The generation that is read."""
        return self._archive

    @property
    def walks(self) -> bool:
        """Whether what is sent next is looked at event by event."""
        return self._walk is not None

    @property
    def position(self) -> Position:
        """Up to where the stream was given to the socket."""
        return Position(self._file.name, self._offset)

    @property
    def is_settled(self) -> bool:
        """The stream is at rest at a transaction boundary, and a heartbeat was sent since."""
        return self._settled and self._mark is not None

    def silence(self) -> None:
        """Nothing is sent any more: the replica has ended its side, and what comes now is to show how."""
        self._silenced = True

    def begin(self, format_description: bytes | None, *, is_counted: bool = False) -> None:
        """Sends what comes before the events. `format_description`: already patched; None: it is part of the stream.

        is_counted: it stands for the one at the stream's offset.
        """
        with_checksum = self._options.first_rotate_checksum
        rotate = rotate_event(self.position, self._server_id, with_checksum=with_checksum)
        self._owner.unread_bytes()  # the window as it is with everything read
        if format_description is not None:
            self._framer.read_format(format_description)
        self._write_events([rotate] if format_description is None else [rotate, format_description])
        if format_description is not None and is_counted:
            self._offset += len(format_description)
            if self._walk is not None:
                self._walk.begin_behind(self._offset)
        # Admission had the loop until now.
        self._schedule_turn()

    def close(self, *, all_was_read: bool = False) -> None:
        """Ends the stream; nothing is written any more.

        all_was_read: the replica's system ended the connection, with nothing of it unread. If the stream had been at rest
        at a transaction boundary, and the replica took a heartbeat since, it has stored everything, and a start inside a
        transaction is no resume. Any other end leaves that open: a replica that stalled for long, and was cut off then,
        asks for what it lacks. Without the heartbeat, events may have been in buffers inside the replica (16 KiB, and a
        record of TLS), which it empties before it reads on.
        """
        if self._closed:
            return
        self._closed = True
        if self._passage is not None:
            self._passage.cancel()
        if all_was_read and self._settled and self._mark is not None:
            self._range.arrived()
            self._mark.arrived()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # The output buffer is not given back: the transport may still refer to it.
        self._held = None
        self._reads.close(self._opened)
        if self._mark is not None:
            self._mark.end()

    def fail(self, error: AnsweredError) -> None:
        """Ends the stream with an error from outside."""
        if not self._closed:
            between = self._framer.between_events and not self._owner.write_paused
            self._owner.dump_failed(self._framer.sequence if between else None, error)

    def writable(self) -> None:
        """The socket took everything."""
        if self._held is not None:
            self._outputs.give(self._held)
            self._held = None
        self.pump()

    def pump(self) -> None:
        """Sends until nothing is left, the socket is full, the disk must be waited for, or the turn is over."""
        if self._closed or self._silenced or self._read_pending or self._turn_scheduled or self._owner.write_paused:
            return
        if self._passing_on:
            return
        try:
            self._pump()
        except Exception as error:
            self._end_by(error)

    def _end_by(self, error: Exception) -> None:
        """Ends the stream by an error that came up in it. One that nobody foresaw is ours, and in the log."""
        if isinstance(error, PositionRefused):
            self.fail(error)
        elif isinstance(error, ArchiveError):
            self.fail(refusal(f"{self.position}: {error}"))
        elif isinstance(error, OSError):
            self.fail(refusal(f"{self.position}: the archive cannot be read: {error.strerror}"))
        elif isinstance(error, ValueError | Malformed):
            # The archive holds bytes that are no event: serving on from here would be guessing.
            self.fail(refusal(f"{self.position}: the archived file is damaged: {error}"))
        else:
            log.error("dump_fault", position=str(self.position), exc_info=error)
            text = f"{INTERNAL_ERROR}. The replica may try again"
            self.fail(AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, text))

    def _pump(self) -> None:
        left = _TURN_BYTES
        if self._failure is not None:
            self.fail(self._failure)
        while not self._closed and not self._owner.write_paused:
            if self._walk is not None and self._walk_ends(self._walk):
                return
            if self._jump is not None and self._offset >= self._jump.place:
                self._take_jump(self._jump)
            size = min(self._file.end - self._offset, STEP_BYTES)
            if self._jump is not None:
                size = min(size, self._jump.place - self._offset)
            elif self._guide is not None:
                size = self._as_guided(self._guide, size)
            if size <= 0:
                if self._next_file():
                    left -= _FILE_COST_BYTES
                    continue
                return
            if left <= 0:
                self._schedule_turn()
                return
            got = self._reads.read_now(self._opened, self._offset, size)
            if got == 0 or not self._send_run(self._reads.buffer, got):
                self._read_pending = True
                self._reads.read_later(self._opened, self._offset, size, self._read_done)
                return
            left -= got

    def _schedule_turn(self) -> None:
        self._turn_scheduled = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_scheduled = False
        self.pump()

    def _read_done(self, buffer: bytearray, size: int, error: OSError | None) -> None:
        self._read_pending = False
        if self._closed:
            return
        try:
            if error is not None:
                raise error
            if not self._send_run(buffer, size):
                raise ValueError(f"{size} bytes that are published hold no whole header")
        except Exception as failure:
            self._end_by(failure)
        else:
            self.pump()

    def _send_run(self, source: bytearray, size: int) -> bool:
        """Frames and writes `size` bytes of the file; False if they are too few for a header."""
        if self._walk is not None and self._jump is None:
            return self._send_walked(self._walk, source, size)
        framer = self._framer
        output = self._outputs.take()
        events, asked = framer.events, framer.asked_events
        try:
            made = framer.frame(source, 0, size, output)
        except ValueError:
            self._outputs.give(output)
            raise
        used = framer.consumed
        if used == 0:
            self._outputs.give(output)
            return False
        start, self._offset = self._offset, self._offset + used
        if self._mark is not None:
            self._range.sent(
                start, self._offset, event_ended=framer.events != events, unread_bytes=self._unread_at_most(used)
            )
            self._mark.sending(self._file.name, self._range.low, self._range.high)
        self._taken = self._settled = False
        if self._acknowledgements is not None and framer.asked_events != asked:
            self._ask(start, framer.asked_events - asked)
        self._write_output(output, made)
        return True

    def _write_output(self, output: bytearray, made: int) -> None:
        self._write(memoryview(output)[:made])
        self._last_run = self._last_sent
        if self._owner.write_paused:
            self._held = output
        else:
            self._outputs.give(output)

    def _as_guided(self, guide: StreamGuide, size: int) -> int:
        """How much may be sent next without, or before, another look at it."""
        self._must_walk = guide.must_walk(self._file.name)
        if not self._must_walk:
            self._looked_to = self._file.end
            return size
        if self._offset < self._looked_to:
            return min(size, self._looked_to - self._offset)
        walk = guide.walk(self._walk)
        if walk is not None and walk is not self._walk:
            walk.begin_file(self._file.name, checksum=bool(self._file.checksum))
            walk.begin_behind(self._offset)
        self._walk = walk
        return size

    def _take_jump(self, jump: Jump) -> None:
        self._jump = None
        self._offset = jump.target
        if self._walk is not None:
            self._walk.jumped(jump)

    def _send_walked(self, walk: GtidWalk, source: bytearray, size: int) -> bool:
        """As `_send_run`, without what the walk passes over."""
        base = self._offset
        self._taken = self._settled = False
        output = self._outputs.take()
        made = 0
        try:
            with memoryview(output) as view:
                while self._offset < base + size:
                    framed = self._frame_walked(walk, source, base, size, view[made:])
                    if framed < 0:
                        break
                    made += framed
                    if walk.is_done and not self._must_walk:
                        self._walk = None
                        break
        finally:
            if made:
                self._write_output(output, made)
            else:
                self._outputs.give(output)
        return self._offset > base or walk.refused is not None or walk.finished

    def _walk_ends(self, walk: GtidWalk) -> bool:
        """Whether the stream ends here by what the walk came to; then it has ended."""
        if walk.send_until > self._offset:
            return False
        if walk.refused is not None:
            self.fail(walk.refused)
        elif walk.finished:
            self._pay()
            self._owner.dump_ended(self._framer.sequence)
        return self._closed

    def _frame_walked(self, walk: GtidWalk, source: bytearray, base: int, size: int, output: memoryview) -> int:
        """Goes on by one range; returns the bytes written, -1: more input or more room is needed. `base`: offset of source[0]."""
        framer, at = self._framer, self._offset - base
        if walk.send_until <= self._offset:
            end = self._look(walk, source, at, size, base)
            if end == at:
                return -1
            if not walk.sending:
                self._offset = base + end
                return 0
        stop = min(size, walk.send_until - base)
        owed = self._owed(walk)
        room = len(output) - sum(len(self._prefix) + len(event) + _PACKET_HEADERS for event in owed)
        while stop > at and required_size(stop - at, len(self._prefix)) > room:
            stop = at + (stop - at) // 2
        if stop == at:
            return -1
        made = 0
        for event in owed:
            packet = self._framed(event)
            output[made : made + len(packet)] = packet
            made += len(packet)
        walk.paid()
        asked = framer.asked_events
        made += framer.frame(source, at, stop, output[made:])
        self._offset = base + framer.consumed
        if self._acknowledgements is not None and framer.asked_events != asked:
            self._ask(base, framer.asked_events - asked)
        if framer.consumed > at or made:
            return made
        if stop < size and base + stop == walk.send_until and self._look(walk, source, stop, size, base) > stop:
            # The range ended inside an event, with the bytes that there were, and the framer wants more of the event at once.
            return self._frame_walked(walk, source, base, size, output)
        return -1

    def _look(self, walk: GtidWalk, source: bytearray, at: int, size: int, base: int) -> int:
        """`next_range` of the walk, and a check where it begins behind what it has not seen."""
        place = base + at
        if place == walk.unseen_until and (self._offset < place or not self._framer.between_events):
            raise ValueError(
                f"an event goes on at {place}, where NAME.gtx has a transaction begin; stop the relay and run "
                "'binlog-relay archive rebuild'"
            )
        return walk.next_range(source, at, size, base)

    def _owed(self, walk: GtidWalk) -> list[bytes]:
        return walk.owed(self.position, self._server_id, with_checksum=bool(self._file.checksum))

    def _pay(self) -> None:
        """Tells the replica where it is, if the newest events were passed over."""
        if self._walk is None:
            return
        owed = self._owed(self._walk)
        if owed:
            self._write_events(owed)
        self._walk.paid()

    def _ask(self, start: int, count: int) -> None:
        """The run that begins at `start` asks for acknowledgements, the newest perhaps for an event not sent whole yet."""
        acknowledgements, framer = self._acknowledgements, self._framer
        if acknowledgements is None:
            return
        end = start + framer.asked_end if framer.asked_end >= 0 else self._file.end
        acknowledgements.ask(Position(self._file.name, end), count, self._loop.time())

    def _unread_at_most(self, size: int) -> int | None:
        """What the replica may not have read of what was sent before a run of `size` bytes."""
        now = self._loop.time()
        if size >= STEP_BYTES // 2 or now >= self._unread_asked + _UNREAD_ASKED_EVERY_S:
            self._unread_asked = now
            self._unread = self._owner.unread_bytes()
            self._sent_since_asked = 0
        bound = None if self._unread is None else self._unread + self._sent_since_asked + _UNREAD_MARGIN_BYTES
        self._sent_since_asked += size
        return bound

    def _write(self, data: bytes | memoryview) -> None:
        self.sent_bytes += len(data)
        self._last_sent = self._loop.time()
        self._owner.write(data)

    def _write_events(self, events: list[bytes]) -> None:
        """Events that are made here, each as a packet of the stream."""
        self._write(b"".join(map(self._framed, events)))

    def _framed(self, event: bytes) -> bytes:
        payload = self._prefix + event
        framed = frame_payload(payload, self._framer.sequence)
        self._framer.sequence = (self._framer.sequence + packet_count(len(payload))) & 0xFF
        return framed

    def _next_file(self) -> bool:
        """All that is published of this file was sent: goes on to the next one, or waits. True: there is more to send."""
        file = self._archive.file(self._file.name) or self._file
        if file is not self._file:
            self._file = file
            if file.end > self._offset:
                return True
        if file.damaged:
            raise ArchiveError(
                "the archived file is damaged from here on and nothing behind it is served",
                file=file.name,
                offset=file.end,
                advice="Run 'binlog-relay archive verify' on the relay's host.",
            )
        following = self._archive.next_file(file.name) if file.sealed else None
        # Until the next file has its format description, a heartbeat could come between Rotate and it.
        if following is None or following.end <= FIRST_OFFSET:
            if file.sealed and following is None and self._may_pass_on():
                return False
            self._wait()
            return False
        if following.checksum and not self._options.takes_checksums:
            raise ArchiveError(
                "Slave can not handle replication events with the checksum that master is configured to log",
                file=following.name,
            )
        self._pay()
        opened = self._reads.open(self._archive.path(following.name))
        self._reads.close(self._opened)
        rotate = rotate_event(
            Position(following.name, FIRST_OFFSET), self._server_id, with_checksum=bool(file.checksum)
        )
        self._file, self._opened, self._offset = following, opened, FIRST_OFFSET
        self._start_in_file = FIRST_OFFSET
        self._framer.begin_file(following.checksum)
        self._range = SentRange(FIRST_OFFSET)
        self._looked_to = FIRST_OFFSET
        self._write_events([rotate])
        if self._walk is None:
            return True
        self._walk.begin_file(following.name, checksum=bool(following.checksum))
        if self._find_jump is None or (following.end < WORTH_A_JUMP_BYTES and not self._walk.counts_again):
            return True
        self._read_pending = True
        self._find_jump(self._archive, self._walk, following.name, self._jump_found)
        return False

    def _may_pass_on(self) -> bool:
        """Whether the next generation is looked for: this one has ended, and all of it was sent."""
        passage = self._passage
        if passage is None or not passage.is_due():
            return False
        self._pay()
        self._passing_on = True
        passage.begin(self.position, self._walk, self._passed_on)
        if self._timer is None:
            self._set_timer()
        return True

    def _passed_on(self, found: NextPart | AnsweredError) -> None:
        self._passing_on = False
        if isinstance(found, AnsweredError):
            self._failure = found
            self.pump()
            return
        if self._closed:
            self._reads.close(found.opened)
            return
        before = self._file
        self._reads.close(self._opened)
        self._archive, self._file, self._opened = found.archive, found.file, found.opened
        self._server_id = found.server_id
        self._guide, self._walk, self._jump = found.guide, found.walk, found.jump
        self._must_walk = False
        self._offset = self._start_in_file = self._looked_to = FIRST_OFFSET
        self._heartbeat_for = None
        if self._acknowledgements is not None:
            self._acknowledgements.pass_on()
        self._framer.begin_file(found.file.checksum)
        if self._walk is not None:
            self._walk.begin_file(found.file.name, checksum=bool(found.file.checksum))
        self._write_events([rotate_event(self.position, self._server_id, with_checksum=bool(before.checksum))])
        if found.format_description is not None:
            self._begin_behind(found.format_description)
        self.pump()

    def _begin_behind(self, format_description: bytes) -> None:
        """Sends the file's format description, patched, in the place of the stored one."""
        self._framer.read_format(format_description)
        self._write_events([format_description])
        self._offset += len(format_description)
        if self._walk is not None:
            self._walk.begin_behind(self._offset)

    def _jump_found(self, jump: Jump | None) -> None:
        self._read_pending = False
        self._jump = jump
        self.pump()

    # --- the live edge --------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self._pay()
        if self._options.ends_at_end:
            self._owner.dump_ended(self._framer.sequence)
            return
        self._at_edge(self)
        if self._timer is None:
            self._set_timer()

    def _set_timer(self) -> None:
        """One timer for all that happens in silence; set again when it fires, not when something is sent."""
        dues = []
        if self._options.heartbeat_s > 0:
            dues.append(self._last_sent + self._options.heartbeat_s)
        if self._mark is not None and not self._taken:
            dues.append(max(self._last_run + _SETTLED_S, self._settle_not_before))
        if dues:
            self._timer = self._loop.call_at(max(min(dues), self._loop.time() + 0.001), self._in_silence)

    def _in_silence(self) -> None:
        self._timer = None
        if self._closed or self._silenced or self._owner.write_paused or self._read_pending or self._turn_scheduled:
            return
        if self._offset < self._file.end:
            return
        now = self._loop.time()
        proof = False
        if self._mark is not None and not self._taken and now >= self._last_run + _SETTLED_S:
            proof = self._settle()
        if self._options.heartbeat_s > 0 and (
            proof or now >= self._last_sent + self._options.heartbeat_s - _TIMER_GRAIN_S
        ):
            self._send_heartbeat()
        self._set_timer()

    def _settle(self) -> bool:
        """The file's end is a transaction boundary, and for some time nothing but heartbeats was sent.

        True: a heartbeat sent now, once it is read, shows that the replica has stored everything; its own period may be
        half an hour.
        """
        if not self._owner.unread_bytes():
            self._taken = True
        else:
            self._settle_not_before = self._loop.time() + 1.0
        return self._taken

    def _send_heartbeat(self) -> None:
        if self._offset <= FIRST_OFFSET:
            # Nothing of this file is published (it is to be synced first), and a replica takes none before the format
            # description.
            self._last_sent = self._loop.time()
            return
        # A replica that asks for one every millisecond gets a thousand of the same.
        if self._heartbeat_for != self.position:
            self._heartbeat = self._made_heartbeat()
            self._heartbeat_for = self.position
        if self._heartbeat is not None:
            self._write_events([self._heartbeat])
            self._settled = self._taken
        else:
            self._last_sent = self._loop.time()

    def _made_heartbeat(self) -> bytes | None:
        """With the position that the replica counts; None: no such event can carry it. Ends the dump if it is not known."""
        with_checksum = bool(self._file.checksum)
        try:
            # Only what this session sent: a replica that started behind a Stop event does count it.
            size = min(_TAIL_BYTES, self._offset - self._start_in_file)
            tail = os.pread(self._opened.fd, size, self._offset - size)
        except OSError as error:
            self.fail(refusal(f"{self.position}: the archive cannot be read: {error.strerror}"))
            return None
        position = replica_position(tail, self.position, with_checksum=with_checksum)
        if position.file != self._file.name:
            # Behind a Rotate a replica reads nothing but a format description: MySQL 5.6 and MariaDB take anything else for
            # an event of MySQL 4.0, and stop.
            return None
        if position.offset > MAX_WIRE_POSITION:
            return None
        return heartbeat_event(position, self._server_id, with_checksum=with_checksum)


def replaced_by_newer() -> AnsweredError:
    """What a replica gets whose identity connected again. Source: MySQL 5.7 `rpl_master.cc`."""
    return AnsweredError(
        ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
        "A slave with the same server_uuid/server_id as this slave has connected to the master",
    )
