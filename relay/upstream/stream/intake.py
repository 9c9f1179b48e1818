"""The path from the kernel into the archive, for a source's bytes of any origin."""

import time
from collections.abc import Callable
from typing import Final, Literal, Protocol

import structlog

from protocol.binlog.boundary import BoundaryType, Violation
from protocol.binlog.event_type import event_type_name
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.kernel import codes
from protocol.kernel import ingest as kernel
from protocol.kernel.ingest import Ingest
from protocol.position import Position, binlog_number
from relay.archive.write.run import Run
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError
from relay.upstream.source.stream_tally import StreamTally
from relay.upstream.stream.receive_buffers import SMALL_RUN_BYTES, ReceiveBuffer

log = structlog.get_logger()

# If more than this waits for the disk, nothing is copied any more: buffers run out, and reading pauses.
_COPY_LIMIT_BYTES: Final = 4 << 20
# Each is a row that is synced: a file that is wrong from one end to the other must not fill the ledger, nor outrun its disk.
_VIOLATION_ROWS: Final = 100


class RunWriter(Protocol):
    """The part of a generation that the intake needs."""

    @property
    def queued_bytes(self) -> int: ...

    def start_file(self, name: str, *, previous_cut: bool = False) -> object: ...

    def append(self, run: Run) -> None: ...

    def append_ledger(self, kind: str, file: str, offset: int, text: str) -> None: ...


class RunObserver(Protocol):
    """An observer of statements that define tables."""

    def walked(self, ingest: Ingest, file: str | None, data: bytearray, start: int, base: int) -> None: ...


class Intake:
    """The intake feeds one stream through the kernel and hands its runs to a generation of the archive.

    `tally` counts them. `start` is where the stream goes on in the archive's newest file (None: with the first file that the stream
    names). `prefix` is 3 for a semi-synchronous stream.
    """

    def __init__(
        self,
        generation: RunWriter,
        start: Position | None,
        *,
        packets: bool,
        prefix: int = 1,
        on_violation: Literal["warn", "stop"],
        announced_checksum: bool = False,
        tally: StreamTally | None = None,
    ) -> None:
        self._generation = generation
        self._on_violation = on_violation
        self.ingest = Ingest(packets=packets, stamp=True, prefix=prefix)
        self.ingest.announced_checksum = announced_checksum
        self.file: str | None = start.file if start is not None else None
        self._events = 0
        self._groups = 0
        self._stored_to = start.offset if start is not None else FIRST_EVENT
        self._violations_noted = 0
        self.bytes_stored = 0
        self.check_format: Callable[[Ingest], None] | None = None
        self.on_format: Callable[[], None] | None = None
        """This is called once, when the stream's first format description has come and is the right one."""
        self.on_ack_wanted: Callable[[str, int], None] | None = None
        """This is called with (file, offset) when the source waits for everything up to there, which was handed to the archive."""
        self.on_file: Callable[[], None] | None = None
        """This is called when the stream moved to a new file."""
        self.definitions: RunObserver | None = None
        """This is called with each run, for the statements in it that define tables."""
        self._acks = 0
        self._tally = tally or StreamTally()
        if start is not None:
            self.ingest.begin_file(start.offset)

    def take(self, buffer: ReceiveBuffer, start: int, stop: int) -> int:
        """Feed buffer[start:stop] and store what became whole. Return the kernel's status, below 16.

        `self.ingest.consumed` says how much of the input was used. Raises: UpstreamError STREAM_BROKEN, after the good part before it
        is stored.
        """
        ingest = self.ingest
        began = time.perf_counter()
        status = int(ingest.feed(buffer.data, start, stop))
        self._tally.kernel_times.observe(time.perf_counter() - began)
        self._tally.last_heard_at = time.time()
        if ingest.checksum >= 0:
            if self.check_format is not None:
                self.check_format(ingest)
                self.check_format = None
            if self.on_format is not None:
                self.on_format()
                self.on_format = None
        stopping = self._report() if ingest.violations or ingest.unknown else False
        produced = ingest.produced
        if status == codes.BAD_CRC and ingest.position - self._stored_to != produced - start:
            # A big event may turn out bad at its end. The part of it that was handed on comes after the last boundary and is removed
            # there; of this run only what precedes it is good.
            produced = start + max(0, ingest.position - self._stored_to)
            self._events += 1
        if self.definitions is not None:
            self.definitions.walked(ingest, self.file, buffer.data, start, self._stored_to)
        if produced > start and not stopping:
            self._store(buffer, start, produced)
        if ingest.acks != self._acks and not stopping:
            self._acks = ingest.acks
            if self.on_ack_wanted is not None and self.file is not None:
                self.on_ack_wanted(self.file, ingest.ack_position)
        if stopping:
            raise UpstreamError(
                FailureKind.STREAM_BROKEN,
                f'{self.file}: a boundary violation before offset {ingest.position}, and on_violation is "stop"',
                'Look at it with "binlog-relay events" on the source\'s file; on_violation = "warn" passes it on.',
                name="boundary_violation",
            )
        if status >= codes.BAD_CRC:
            raise self.broken(status)
        return status

    def _store(self, buffer: ReceiveBuffer, start: int, stop: int) -> None:
        ingest = self.ingest
        events, groups = ingest.events - self._events, ingest.groups - self._groups
        self._events, self._groups = ingest.events, ingest.groups
        self._stored_to = ingest.position
        self.bytes_stored += stop - start
        self._tally.bytes_received += stop - start
        self._tally.events += events
        self._tally.transactions += groups
        data: memoryview | bytes = buffer.view[start:stop]
        written: Callable[[], None] | None = None
        if stop - start <= SMALL_RUN_BYTES and self._generation.queued_bytes < _COPY_LIMIT_BYTES:
            data = bytes(data)
        else:
            buffer.pending += 1
            written = buffer.run_written
        try:
            self._generation.append(
                Run(
                    data,
                    ingest.boundary,
                    ingest.position,
                    ingest.take_entries(),
                    events,
                    groups,
                    ingest.timestamp,
                    written,
                )
            )
        except BaseException:
            if written is not None:
                buffer.pending -= 1  # It was not taken, so it will not be given back
            raise

    def begin_file(self, name: str) -> None:
        """Begin the file `name` at its offset 4. Raises: UpstreamError STREAM_BROKEN."""
        previous = self.file
        try:
            number = binlog_number(name)
            expected = binlog_number(previous) + 1 if previous is not None else number
        except Malformed as error:
            text = f"the source names a binlog that cannot be one: {error}"
            raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="file_name_malformed") from error
        if number != expected or (previous is not None and name.rpartition(".")[0] != previous.rpartition(".")[0]):
            raise UpstreamError(
                FailureKind.STREAM_BROKEN,
                f"the source goes from {previous} to {name}, a file between or another series",
                f"Compare the source's SHOW BINARY LOGS with its *.index file. {ACCEPT_GAP}",
                name="file_chain_broken",
            )
        if previous is not None and self.ingest.position == FIRST_EVENT:
            text = f"the source goes from {previous} to {name} without an event of {previous}"
            raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="file_chain_broken")
        self.ingest.begin_file(FIRST_EVENT)
        self._stored_to = FIRST_EVENT
        self._violations_noted = 0
        self._generation.start_file(name, previous_cut=self.ingest.cut_group and previous is not None)
        self.file = name
        log.info("file_begins", file=name, previous=previous)
        if self.on_file is not None:
            self.on_file()

    def broken(self, status: int) -> UpstreamError:
        """Return the error for a kernel status of 16 and more."""
        ingest = self.ingest
        name = str(kernel.STATUS_NAMES.get(status, f"status_{status}"))
        kind = event_type_name(ingest.bad_type)
        return UpstreamError(
            FailureKind.STREAM_BROKEN,
            f"{self.file or 'the stream'}: offset {ingest.position}: {ingest.error_text} ({kind})",
            "Nothing of it was stored. Check the source's file there with mysqlbinlog --verify-binlog-checksum.",
            name=name,
        )

    def _report(self) -> bool:
        """Log violations and unknown types; return whether a violation must stop the stream."""
        file = self.file or ""
        violations = self.ingest.take_violations()
        for position, from_type, to_type, event_type, previous_type, previous_position in violations:
            text = str(Violation(BoundaryType(from_type), BoundaryType(to_type)))
            self._violations_noted += 1
            if self._violations_noted > _VIOLATION_ROWS:
                break
            event, previous = event_type_name(event_type), event_type_name(previous_type)
            detail = f"{text} {event} at {position} after {previous} at {previous_position}"
            if self._violations_noted == _VIOLATION_ROWS:
                detail += "; more of them in this file are not noted here, `binlog-relay events` shows them all"
            self._generation.append_ledger("boundary_violation", file, position, detail)
        for event_type, position in self.ingest.take_unknown_types():
            self._generation.append_ledger(
                "event_type_unknown", file, position, f"type {event_type}, passed on unchanged"
            )
        return bool(violations) and self._on_violation == "stop"
