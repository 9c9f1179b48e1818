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

from protocol.binlog.made_events import MAX_WIRE_POSITION, heartbeat_event, replica_position, rotate_event
from protocol.errors import AnsweredError, ErrorCode, Malformed, PositionRefused
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.read.file_reads import STEP_BYTES, BufferPool, FileReads, OpenFile
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.gtid_filter.group_filter import WORTH_A_JUMP_BYTES, GtidWalk, Jump
from relay.downstream.gtid_filter.gtid_filter import StreamGuide
from relay.downstream.request.refusal import INTERNAL_ERROR, refusal
from relay.downstream.request.request_checks import FIRST_OFFSET
from relay.downstream.start.next_generation import NextPart, Passage
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.event_packets import EventPackets
from relay.downstream.stream.filtered_run import WalkedRun
from relay.downstream.stream.live_edge import LiveEdge
from relay.downstream.stream.resume_stretch import ResumeStretch

log = structlog.get_logger("relay.downstream")

# After this much the loop is given back, so that a replica that catches up from memory does not hold up the others.
_TURN_BYTES: Final = 1 << 20
# To go on to the next file takes as long as to send so much: of thousands of tiny files a turn takes no more than these.
_FILE_COST_BYTES: Final = 256 << 10
# Of the newest bytes sent, enough for a whole Rotate or Stop event.
_TAIL_BYTES: Final = 320
# `find_jump(archive, walk, file, done)`: `done(jump)` is called later, on the loop; until then nothing of the file is read.
FindJump = Callable[[Generation, GtidWalk, str, Callable[[Jump | None], None]], None]


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
        generation: Generation,
        reads: FileReads,
        outputs: BufferPool,
        owner: DumpOwner,
        options: DumpOptions,
        file: ArchivedFile,
        opened: OpenFile,
        offset: int,
        sequence: int,
        resume: ResumeStretch | None,
        at_edge: Callable[["Dump"], None],
        acknowledgements: Acknowledgements | None = None,
        guide: StreamGuide | None = None,
        walk: GtidWalk | None = None,
        jump: Jump | None = None,
        find_jump: FindJump | None = None,
        passage: Passage | None = None,
    ) -> None:
        """resume: kept up with what is sent; None: who asks again says itself where. acknowledgements: with semi-sync, told
        what is asked for; None: nothing is.

        For a replica that asked by GTID: guide: what may come into the stream later. walk: what of it is not sent.
        jump: what of the first file need not be read. find_jump: the same of later files.
        passage: what comes after the last file of `archive`; None: nothing ever does.
        """
        self._generation = generation
        self._reads = reads
        self._outputs = outputs
        self._owner = owner
        self._options = options
        self._file = file
        self._opened = opened
        self._offset = offset
        self._resume = resume
        self._at_edge = at_edge
        self._acknowledgements = acknowledgements
        self._packets = EventPackets(options.mode, asks=acknowledgements is not None, sequence=sequence)
        self._framer = self._packets.framer
        self._framer.begin_file(file.checksum)
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
        self._edge = LiveEdge(self, heartbeat_s=options.heartbeat_s, settles=resume is not None)
        self._start_in_file = offset
        self.sent_bytes = 0

    @property
    def generation(self) -> Generation:
        """The generation that is read."""
        return self._generation

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
        return self._edge.is_settled

    @property
    def is_at_rest(self) -> bool:
        """Whether the socket has taken all that was published of this file; a stream that is read or cut short is not."""
        busy = self._closed or self._silenced or self._read_pending or self._turn_scheduled
        return not busy and not self._owner.write_paused and self._offset >= self._file.end

    def unread_bytes(self) -> int | None:
        """Of all that was written, what the replica has not read, as far as the system can tell; None: it cannot."""
        return self._owner.unread_bytes()

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
        if self._resume is not None:
            if all_was_read and self.is_settled:
                self._resume.arrived()
            self._resume.end()
        self._edge.close()
        # The output buffer is not given back: the transport may still refer to it.
        self._held = None
        self._reads.close(self._opened)

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
        walk = self._walk
        if walk is not None and self._jump is None and not walk.sends_all(self._offset + size):
            return self._send_walked(walk, source, size)
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
        if self._resume is not None:
            ended = framer.events != events
            self._resume.sending(self._file.name, start, self._offset, event_ended=ended, now=self._loop.time())
        if framer.asked_events != asked:
            self._ask(start, framer.asked_events - asked)
        self._write_output(output, made)
        return True

    def _write_output(self, output: bytearray, made: int) -> None:
        self._write(memoryview(output)[:made])
        self._edge.run_sent(self._loop.time())
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
        base, output = self._offset, self._outputs.take()
        run = WalkedRun(walk, self._packets, self._file, self._server_id, source, base, size, self._ask)
        try:
            run.frame(output, until_walk_is_done=not self._must_walk)
        finally:
            self._offset = run.offset
            if run.made:
                self._write_output(output, run.made)
            else:
                self._outputs.give(output)
        if walk.is_done and not self._must_walk and self._offset > base:
            self._walk = None
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

    def _pay(self) -> None:
        """Tells the replica where it is, if the newest events were passed over."""
        if self._walk is None:
            return
        owed = self._walk.owed(self.position, self._server_id, with_checksum=bool(self._file.checksum))
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

    def _write(self, data: bytes | memoryview) -> None:
        self.sent_bytes += len(data)
        self._edge.sent(self._loop.time())
        self._owner.write(data)

    def _write_events(self, events: list[bytes]) -> None:
        """Events that are made here, each as a packet of the stream."""
        self._write(b"".join(map(self._packets.framed, events)))

    def _next_file(self) -> bool:
        """All that is published of this file was sent: goes on to the next one, or waits. True: there is more to send."""
        file = self._generation.file(self._file.name) or self._file
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
        following = self._generation.next_file(file.name) if file.sealed else None
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
        try:
            opened = self._reads.open(self._generation.path(following.name))
        except OSError as error:
            raise ArchiveError(
                f"the next binlog cannot be opened: {error.strerror}",
                file=following.name,
                advice="Run 'binlog-relay archive verify' on the relay's host.",
            ) from error
        self._reads.close(self._opened)
        rotate = rotate_event(
            Position(following.name, FIRST_OFFSET), self._server_id, with_checksum=bool(file.checksum)
        )
        self._file, self._opened, self._offset = following, opened, FIRST_OFFSET
        self._start_in_file = FIRST_OFFSET
        self._framer.begin_file(following.checksum)
        if self._resume is not None:
            self._resume.begin_file(FIRST_OFFSET)
        self._looked_to = FIRST_OFFSET
        self._write_events([rotate])
        if self._walk is None:
            return True
        self._walk.begin_file(following.name, checksum=bool(following.checksum))
        if self._find_jump is None or (following.end < WORTH_A_JUMP_BYTES and not self._walk.counts_again):
            return True
        self._read_pending = True
        self._find_jump(self._generation, self._walk, following.name, self._jump_found)
        return False

    def _may_pass_on(self) -> bool:
        """Whether the next generation is looked for: this one has ended, and all of it was sent."""
        passage = self._passage
        if passage is None or not passage.is_due():
            return False
        self._pay()
        self._passing_on = True
        passage.begin(self.position, self._walk, self._passed_on)
        self._edge.wait()
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
        self._generation, self._file, self._opened = found.generation, found.file, found.opened
        self._server_id = found.server_id
        self._guide, self._walk, self._jump = found.guide, found.walk, found.jump
        self._must_walk = False
        self._offset = self._start_in_file = self._looked_to = FIRST_OFFSET
        self._edge.moved_on()
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
        self._edge.wait()

    def heartbeat(self) -> bytes | None:
        """With the position that the replica counts; None: no such event can be sent here. Ends the dump if it is not known."""
        if self._offset <= FIRST_OFFSET:
            # Nothing of this file is published (it is to be synced first), and a replica takes none before the format
            # description.
            return None
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

    def send_heartbeat(self, event: bytes) -> None:
        """Sends what `heartbeat` made."""
        self._write_events([event])


def replaced_by_newer() -> AnsweredError:
    """What a replica gets whose identity connected again. Source: MySQL 5.7 `rpl_master.cc`."""
    return AnsweredError(
        ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
        "A slave with the same server_uuid/server_id as this slave has connected to the master",
    )
