"""The stream of one replica: from the archive's published bytes to its socket. Nothing here looks at single events.

A dump is never suspended inside a step. `pump` sends what can be sent and returns; it is called again when the socket took what it
was given, when the archive grew, or when a read in a thread is done. So a replica that stalls costs one output buffer, and no other
replica waits for it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import structlog

from protocol.binlog.encoded_events import MAX_WIRE_POSITION, heartbeat_event, replica_position, rotate_event
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import AnsweredError, ErrorCode, Malformed, PositionRefused
from protocol.position import Position, binlog_number
from relay.archive.generation import Generation
from relay.archive.read.checked_bytes import CheckedBytes, sound_ahead
from relay.archive.read.file_reads import BufferPool, FileReads
from relay.archive.read.open_file import TAIL_BYTES
from relay.archive.storage.archive_errors import NOT_OF_A_FILE, ArchiveDamaged, ArchiveError, ArchiveUnavailable
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.gtid_filter.gtid_filter import End, FilterTo, GtidFilter, SendFirst, SendTo, SkipTo, Step
from relay.downstream.request.refusal import INTERNAL_ERROR, damage_refusal, refusal
from relay.downstream.start.next_generation import Found, GenerationSwitch
from relay.downstream.start.segment import Segment
from relay.downstream.stream.event_packets import EventPackets
from relay.downstream.stream.filtered_run import FilteredRun
from relay.downstream.stream.live_edge import LiveEdge
from relay.downstream.stream.resume_range import ResumeRange
from relay.fairness.fair_pool import TURN, taking

log = structlog.get_logger("relay.downstream")

# After this much the loop is released, so that a replica that catches up from memory does not delay the others.
_TURN_BYTES: Final = 1 << 20
# Changing to the next file takes as long as sending so much: of thousands of tiny files a turn takes no more than these.
_FILE_COST_BYTES: Final = 256 << 10
# The bytes at a file's beginning that are read at once: more than its format description has.
_BEGINNING_BYTES: Final = 512
# The distance to a file's end from which on the next file is looked for.
_LAST_BYTES: Final = 1 << 20
# Sends so many bytes of a run in a buffer; False if they are too few.
_Send = Callable[[bytearray, int], bool]


class StreamHost(Protocol):
    """The parts that all dumps of one server share."""

    reads: FileReads
    outputs: BufferPool

    def wait_at_edge(self, dump: "Dump") -> None:
        """Call `dump.pump` when the archive grows."""

    def shortest_silence_s(self) -> float:
        """Return the shortest time between two heartbeats of one stream: all streams share the loop."""


class DumpOwner(Protocol):
    """The connection that a dump writes to."""

    @property
    def write_paused(self) -> bool:
        """True if the socket has not taken yet what it was given last."""

    def write(self, data: bytes | memoryview) -> None:
        """Give bytes to the socket. They must not change until `write_paused` is False again."""

    def unread_bytes(self) -> int | None:
        """Return the written bytes that the replica has not read, as far as the system knows; None: unknown."""

    def acknowledgements_requested(self, newest: Position, count: int) -> None:
        """Note that so many more events must be acknowledged; the newest, perhaps not sent whole yet, ends at `newest`."""

    def generation_entered(self) -> None:
        """Note that what is sent from now on is of the next generation, whose file names say nothing about those before it."""

    def dump_ended(self, sequence: int) -> None:
        """End the stream: the client wanted EOF at the end, and it is reached."""

    def dump_failed(self, sequence: int | None, error: AnsweredError) -> None:
        """End the stream with an error. `sequence` None: it broke off inside an event, so an error cannot be sent."""


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of this replica's stream.

    `heartbeat_s`: silence after which a heartbeat is sent, 0: none. `first_rotate_checksum`: the replica's variable. `ends_at_end`:
    EOF instead of waiting. `takes_checksums`: it set the variable. `mode`: of the framer. `semi_sync`: acknowledgements are
    requested. `annotations`: MariaDB's Annotate_rows are sent.
    """

    heartbeat_s: float
    first_rotate_checksum: bool
    takes_checksums: bool
    ends_at_end: bool
    mode: int
    semi_sync: bool
    annotations: bool


class Dump:
    """One stream, from `begin` to `close`."""

    def __init__(
        self,
        segment: Segment,
        host: StreamHost,
        owner: DumpOwner,
        options: DumpOptions,
        resume: ResumeRange | None,
        switch: GenerationSwitch | None,
    ) -> None:
        """segment: where the stream begins; its file is closed at the end. resume: updated with what is sent; None: the replica
        reports itself where it continues. switch: what comes after the last file of the generation; None: nothing ever does.
        """
        self._reads = host.reads
        self._host = host
        self._owner = owner
        self._options = options
        self._resume = resume
        self._switch = switch
        self._packets = EventPackets(options.mode, asks=options.semi_sync, annotations=options.annotations)
        self._framer = self._packets.framer
        self._failure: AnsweredError | None = None
        """The error with which the stream ends once the socket took everything."""
        self._loop = asyncio.get_running_loop()
        self._held: bytearray | None = None
        self._closed = False
        self._silenced = False
        self._turn_scheduled = False
        self._read_pending = False
        self._switching = False
        """True while the next generation is looked for; heartbeats continue meanwhile."""
        self._edge = LiveEdge(self, heartbeat_s=options.heartbeat_s, settles=resume is not None)
        self.sent_bytes = 0
        self._threads_turn = TURN.get()
        self._enter(segment)

    def _enter(self, segment: Segment) -> None:
        """Continue with another file. Everything that belongs to a file is set here, and nowhere else."""
        self._segment = segment
        self._file = segment.file
        self._offset = self._start_in_file = segment.offset
        self._framer.begin_file(segment.file.checksum)
        self._checked = CheckedBytes(segment.file.name, segment.file.checksum, segment.offset)
        self._next_awaited = False
        """True if the file after this one was waited for."""
        self._next_error: ArchiveError | None = None
        """The reason why the next file cannot be read, which is reported when all of this one was sent."""
        self._filter: GtidFilter | None = segment.filter
        if self._filter is not None:
            self._filter.begin_file(segment.file, segment.server_id)
        if self._resume is not None:
            self._resume.begin_file(segment.offset)
        self._edge.file_begins()

    @property
    def generation(self) -> Generation:
        """The generation that is read."""
        return self._segment.generation

    @property
    def is_filtered(self) -> bool:
        """True if what is sent next is looked at event by event."""
        return self._filter is not None and self._filter.is_active

    @property
    def position(self) -> Position:
        """The position up to which the stream was given to the socket."""
        return Position(self._file.name, self._offset)

    @property
    def is_settled(self) -> bool:
        """True if the stream rests at a transaction boundary and a heartbeat was sent since."""
        return self._edge.is_settled

    @property
    def is_at_rest(self) -> bool:
        """True if the socket has taken all that was published of this file, and the stream is neither being read nor cut short."""
        busy = self._closed or self._silenced or self._read_pending or self._turn_scheduled
        return not busy and not self._owner.write_paused and self.has_sent_all

    @property
    def waits_for_store(self) -> bool:
        """True if a bucket is waited for between two events, and the socket has taken everything: only heartbeats can be sent."""
        waits = (
            self._read_pending
            and (self._next_awaited or self._segment.opened.is_packed)
            and self._framer.between_events
        )
        return waits and not (self._closed or self._silenced or self._owner.write_paused)

    @property
    def has_sent_all(self) -> bool:
        """True if nothing of this file is left to be sent now."""
        return self._offset >= self._end

    @property
    def _end(self) -> int:
        """The offset up to which the file is sent now. A Rotate that ends it is held back until the file that it names has begun.

        After a Rotate a replica takes nothing but a format description, and so no heartbeat: if the next file did not come, it would
        give its source up.
        """
        file = self._file
        # A reader of one generation and no more, as mysqlbinlog, may read what the source has lost, too.
        served = file.end if self._switch is None else self._segment.generation.served_end(file)
        if served < file.end:
            return max(served, self._offset)
        if self._options.ends_at_end or self._is_followed(file):
            return file.end
        rotate = None
        with contextlib.suppress(OSError):  # the reader of what is sent reports it
            rotate = self._segment.opened.last_rotate(file.end, with_checksum=bool(file.checksum))
        return file.end if rotate is None else rotate

    def _is_followed(self, file: ArchivedFile) -> bool:
        """Return whether the file after this one exists, or nothing ever follows."""
        if not file.sealed:
            return False
        generation = self._segment.generation
        try:
            following = generation.next_file(file.name)
        except ArchiveError:
            return True  # it is reported when all of this file was sent
        if following is None:
            return generation.ended and generation.fork is None  # what it names is not there after a gap
        return following.end > FIRST_EVENT or following.damaged

    def unread_bytes(self) -> int | None:
        """Return the written bytes that the replica has not read, as far as the system knows; None: unknown."""
        return self._owner.unread_bytes()

    def silence(self) -> None:
        """Send nothing any more: the replica has ended its side, and the socket will show how."""
        self._silenced = True

    def begin(self, sequence: int) -> None:
        """Send what comes before the events. sequence: of the first packet."""
        self._framer.sequence = sequence
        self._owner.unread_bytes()  # the window as it is with everything read
        self._send_head(with_checksum=self._options.first_rotate_checksum)
        # The admission has used the loop until now.
        self._schedule_turn()

    def _send_head(self, *, with_checksum: bool) -> None:
        """Send the Rotate to the segment that was entered, and the file's format description if it is not sent as stored."""
        segment = self._segment
        events = [rotate_event(self.position, segment.server_id, with_checksum=with_checksum)]
        if segment.head is not None:
            self._framer.read_format(segment.head)
            events.append(segment.head)
        self._write_events(events)
        if segment.stored_from != self._offset:
            self._offset = segment.stored_from
            if self._filter is not None:
                self._filter.begin_behind(self._offset)

    def close(self, *, all_was_read: bool = False) -> None:
        """End the stream; nothing is written any more.

        all_was_read: the replica's system ended the connection, with nothing of it unread. If the stream had been at rest at a
        transaction boundary, and the replica took a heartbeat since, it has stored everything, and a start inside a transaction is no
        resume. Any other end leaves that open: a replica that stalled for long, and was cut off then, asks for what it does not have.
        Without the heartbeat, events may have been in buffers inside the replica (16 KiB, and a record of TLS), which it empties
        before it reads on.
        """
        if self._closed:
            return
        self._closed = True
        if self._switch is not None:
            self._switch.cancel()
        if self._resume is not None:
            if all_was_read and self.is_settled:
                self._resume.arrived()
            self._resume.end()
        self._edge.close()
        # The output buffer is not given back: the transport may still refer to it.
        self._held = None
        self._reads.close(self._segment.opened)

    def fail(self, error: AnsweredError) -> None:
        """End the stream with an error from outside."""
        if not self._closed:
            between = self._framer.between_events and not self._owner.write_paused
            self._owner.dump_failed(self._framer.sequence if between else None, error)

    def writable(self) -> None:
        """Continue: the socket took everything."""
        if self._held is not None:
            self._host.outputs.give(self._held)
            self._held = None
        self.pump()

    def pump(self) -> None:
        """Send until nothing is left, the socket is full, the disk must be waited for, or the turn is over."""
        if self._closed or self._silenced or self._read_pending or self._turn_scheduled or self._owner.write_paused:
            return
        if self._switching:
            return
        try:
            self._pump()
        except Exception as error:
            self._end_by(error)

    def _end_by(self, error: Exception) -> None:
        """End the stream by an error that came up in it. An unforeseen one is internal, and is logged."""
        if isinstance(error, PositionRefused):
            self.fail(error)
        elif isinstance(error, ArchiveDamaged):
            self._segment.generation.damaged_files.report(error)
            self.fail(damage_refusal(error, self._segment.generation.damage_advice))
        elif isinstance(error, ArchiveUnavailable):
            if not error.is_told:
                what, advice = error.text, error.advice or None
                log.warning("binlog_not_available", position=str(self.position), what=what, advice=advice)
            text = f"{self.position}: binlog-relay cannot read this now: {error.what}. The replica may try again"
            self.fail(refusal(text, ErrorCode.ER_UNKNOWN_ERROR))
        elif isinstance(error, ArchiveError):
            self.fail(refusal(f"{self.position}: {error}"))
        elif isinstance(error, OSError) and error.errno in NOT_OF_A_FILE:
            text = f"{self.position}: binlog-relay cannot read its archive: {error.strerror}. The replica may try again"
            self.fail(refusal(text, ErrorCode.ER_UNKNOWN_ERROR))
        elif isinstance(error, OSError | ValueError | Malformed):
            # No bytes, or bytes that are no event: serving from here on would be guessing.
            what = f"it cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            name, offset = self._file.name, self._offset
            self._end_by(ArchiveDamaged(what, file=name, offset=offset, boundary=offset))
        else:
            log.error("dump_fault", position=str(self.position), exc_info=error)
            text = f"{INTERNAL_ERROR}. The replica may try again"
            self.fail(AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, text))

    def _pump(self) -> None:
        left = _TURN_BYTES
        if self._failure is not None:
            self.fail(self._failure)
        while not self._closed and not self._owner.write_paused:
            offset, published = self._offset, self._end
            stop = min(published, self._reads.step_end(self._segment.opened, offset))
            send = self._send_run
            if self._filter is not None:
                step = self._filter.next(offset, stop, published)
                if isinstance(step, SendTo):
                    stop = step.stop
                elif isinstance(step, FilterTo):
                    stop, send = step.stop, self._send_filtered
                elif self._take_step(step):
                    continue
                else:
                    return
            if stop <= offset:
                if self._next_file():
                    left -= _FILE_COST_BYTES
                    continue
                return
            if left <= 0:
                self._schedule_turn()
                return
            if stop > self._file.end - _LAST_BYTES and self._file.sealed and self._awaits_next():
                return
            size = stop - offset
            got = self._reads.read_now(self._segment.opened, offset, size)
            if got == 0 or not self._send_sound(send, self._reads.buffer, got, published):
                self._read_pending = True
                if self._segment.opened.is_packed:
                    self._edge.wait()
                if got < size:
                    read = partial(self._read_done, send, published)
                    with taking(self._threads_turn):
                        self._reads.read_later(self._segment.opened, offset, size, read)
                else:
                    self._look_ahead(published)
                return
            left -= self._offset - offset

    def _awaits_next(self) -> bool:
        """Return whether the last part of a file is held back until the beginning of the next one, which is packed, is available:
        after the Rotate a replica takes no heartbeat.
        """
        segment = self._segment
        if self._next_awaited or self._offset <= FIRST_EVENT or not self._framer.between_events:
            return False  # no heartbeat can be sent here either
        following = None
        with contextlib.suppress(ArchiveError):  # it is reported when all of this file was sent
            following = segment.generation.next_file(self._file.name)
        if following is None:
            return False
        self._next_awaited = True
        if following.place is None:
            return False
        try:
            entered = segment.in_next_file(following, self._reads)
        except (ArchiveError, OSError):
            return False  # it is reported when all of this file was sent
        try:
            self._read_pending = self._reads.when_here(entered.opened, 0, _BEGINNING_BYTES, self._next_is_here)
        finally:
            self._reads.close(entered.opened)
        if self._read_pending:
            self._edge.wait()
        return self._read_pending

    def _next_is_here(self, error: Exception | None) -> None:
        self._read_pending = False
        if self._closed:
            return
        if isinstance(error, ArchiveError):
            self._next_error = error
        self.pump()

    def _take_step(self, step: Step) -> bool:
        """Do the filter's step, unless it is to send stored bytes; False: there is nothing more to do now."""
        if isinstance(step, SkipTo):
            self._offset = step.target
        elif isinstance(step, SendFirst):
            self._write_events(step.events)
        else:
            if isinstance(step, End):
                self._end_as_filtered(step)
            return False
        return True

    def _end_as_filtered(self, end: End) -> None:
        if end.error is not None:
            self.fail(end.error)
        else:
            self._owner.dump_ended(self._framer.sequence)

    def _schedule_turn(self) -> None:
        self._turn_scheduled = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_scheduled = False
        self.pump()

    def _read_done(self, send: _Send, end: int, buffer: bytearray, size: int, error: Exception | None) -> None:
        self._read_pending = False
        if self._closed:
            return
        try:
            if error is not None:
                raise error
            if not self._send_sound(send, buffer, size, end):
                self._read_pending = True
                self._look_ahead(end)
                return
        except Exception as failure:
            self._end_by(failure)
        else:
            self.pump()

    def _send_sound(self, send: _Send, source: bytearray, size: int, end: int) -> bool:
        """Send of a run what may be sent now; False: nothing, before all of the next transaction was checked. Raises: ArchiveDamaged;
        ValueError.
        """
        sendable = self._checked.sendable(source, size, self._offset, end)
        if not sendable:
            return False
        if not send(source, sendable):
            raise ValueError(f"{sendable} bytes of whole events could not be sent")
        return True

    def _look_ahead(self, end: int) -> None:
        """Check the next transaction, which is longer than a run, in a thread."""
        opened, file, offset = self._segment.opened, self._file, self._offset
        look = partial(sound_ahead, opened.read_into, file.name, file.checksum, offset, end)
        with taking(self._threads_turn):
            self._reads.look_later(opened, look, self._looked_ahead)

    def _looked_ahead(self, sound_to: int | None, error: Exception | None) -> None:
        self._read_pending = False
        if self._closed:
            return
        if sound_to is None:
            assert error is not None
            self._end_by(error)
        else:
            self._checked.found_ahead(self._offset, sound_to)
            self.pump()

    def _send_run(self, source: bytearray, size: int) -> bool:
        """Frame and write `size` bytes of the file; False if they are too few for a header."""
        framer, outputs = self._framer, self._host.outputs
        output = outputs.take()
        events, requested = framer.events, framer.asked_events
        try:
            made = framer.frame(source, 0, size, output)
        except ValueError:
            outputs.give(output)
            raise
        used = framer.consumed
        if used == 0:
            outputs.give(output)
            return False
        start, self._offset = self._offset, self._offset + used
        if self._resume is not None:
            ended = framer.events != events
            self._resume.sending(self._file.name, start, self._offset, event_ended=ended, now=self._loop.time())
        if framer.asked_events != requested:
            self._ask(start, framer.asked_events - requested)
        if made:
            self._write_output(output, made)
        else:
            outputs.give(output)
        return True

    def _write_output(self, output: bytearray, made: int) -> None:
        self._write(memoryview(output)[:made])
        self._edge.run_sent(self._loop.time())
        if self._owner.write_paused:
            self._held = output
        else:
            self._host.outputs.give(output)

    def _send_filtered(self, source: bytearray, size: int) -> bool:
        """Do as `_send_run`, without what the filter passes over."""
        assert self._filter is not None
        base, output = self._offset, self._host.outputs.take()
        run = FilteredRun(self._filter, self._packets, source, base, size, self._ask)
        try:
            run.frame(output)
        finally:
            self._offset = run.offset
            if run.made:
                self._write_output(output, run.made)
            else:
                self._host.outputs.give(output)
        return self._offset > base or self._filter.has_ended

    def _ask(self, start: int, count: int) -> None:
        """Note that the run that begins at `start` requests acknowledgements, the newest perhaps for an event that is not sent whole
        yet.
        """
        framer = self._framer
        end = start + framer.asked_end if framer.asked_end >= 0 else self._file.end
        self._owner.acknowledgements_requested(Position(self._file.name, end), count)

    def _write(self, data: bytes | memoryview) -> None:
        self.sent_bytes += len(data)
        self._edge.sent(self._loop.time())
        self._owner.write(data)

    def _write_events(self, events: list[bytes]) -> None:
        """Write events that are generated here, each as a packet of the stream."""
        self._write(b"".join(map(self._packets.framed, events)))

    def _next_file(self) -> bool:
        """Go on to the next file, or wait for it, as all that is published of this one was sent. True: there is more to send."""
        segment, generation = self._segment, self._segment.generation
        file = generation.file(self._file.name) or self._file
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
        following = generation.next_file(file.name) if file.sealed and not self._at_fork(file) else None
        if following is not None and following.damaged and following.end <= FIRST_EVENT:
            what = "nothing of the file can be read"
            raise ArchiveDamaged(what, file=following.name, offset=following.end, boundary=following.end)
        # Until the next file has its format description, a heartbeat could come between Rotate and it.
        if following is None or following.end <= FIRST_EVENT:
            if file.sealed and following is None and self._may_switch():
                return False
            self._wait()
            return False
        if following.checksum and not self._options.takes_checksums:
            raise ArchiveError(
                "Slave can not handle replication events with the checksum that master is configured to log",
                file=following.name,
            )
        if self._next_error is not None:
            raise self._next_error
        entered = segment.in_next_file(following, self._reads)
        self._reads.close(segment.opened)
        self._enter(entered)
        self._send_head(with_checksum=bool(file.checksum))
        if self._filter is not None:
            self._filter.look_for_seek(self.pump)
        return True

    def _at_fork(self, file: ArchivedFile) -> bool:
        """Return whether the source has lost what is archived after here, so that a replica is not sent it."""
        fork = self._segment.generation.fork
        return fork is not None and self._switch is not None and file.number >= binlog_number(fork.file)

    def _may_switch(self) -> bool:
        """Look for the next generation if this one has ended and all of it was sent; return whether it is looked for."""
        switch = self._switch
        if switch is None or not switch.is_due():
            return False
        self._switching = True
        switch.begin(self.position, self._filter, self._switched)
        self._edge.wait()
        return True

    def _switched(self, found: Found) -> None:
        self._switching = False
        if isinstance(found, AnsweredError):
            self._failure = found
            self.pump()
            return
        if self._closed:
            self._reads.close(found.opened)
            return
        with_checksum = bool(self._file.checksum)
        self._reads.close(self._segment.opened)
        self._enter(found)
        self._owner.generation_entered()
        self._send_head(with_checksum=with_checksum)
        self.pump()

    # --- the live edge --------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        if self._options.ends_at_end:
            self._owner.dump_ended(self._framer.sequence)
            return
        self._host.wait_at_edge(self)
        self._edge.wait()

    @property
    def shortest_silence_s(self) -> float:
        """Implement `RestingStream.shortest_silence_s`."""
        return self._host.shortest_silence_s()

    def heartbeat(self) -> bytes | None:
        """Return a heartbeat with the position that the replica counts; None: none can be sent here. End the dump if the position is
        unknown.
        """
        if self._offset <= FIRST_EVENT:
            # Nothing of this file is published (it is synced first), and a replica takes no heartbeat before the format description.
            return None
        with_checksum = bool(self._file.checksum)
        try:
            # Only what this session sent: a replica that started after a Stop event does count it.
            size = min(TAIL_BYTES, self._offset - self._start_in_file)
            # An event inside a complete file is neither a Stop nor a Rotate.
            ends_here = self._offset >= self._file.end or not self._segment.opened.is_packed
            tail = self._segment.opened.read(self._offset - size, size) if ends_here else b""
        except BlockingIOError:
            return None
        except OSError as error:
            self.fail(refusal(f"{self.position}: the archive cannot be read: {error.strerror}"))
            return None
        position = replica_position(tail, self.position, with_checksum=with_checksum)
        if position.file != self._file.name:
            # After a Rotate a replica reads nothing but a format description: MySQL 5.6 and MariaDB take anything else for an event
            # of MySQL 4.0, and stop.
            return None
        if position.offset > MAX_WIRE_POSITION:
            return None
        return heartbeat_event(position, self._segment.server_id, with_checksum=with_checksum)

    def send_heartbeat(self, event: bytes) -> None:
        """Send what `heartbeat` returned."""
        self._write_events([event])


def replaced_by_newer() -> AnsweredError:
    """Return the error for a replica whose identity connected again. Source: MySQL 5.7 `rpl_master.cc`."""
    return AnsweredError(
        ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
        "A slave with the same server_uuid/server_id as this slave has connected to the master",
    )
