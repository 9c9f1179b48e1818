"""The dump stream of a source: socket bytes go to the kernel, runs to the archive."""

import asyncio
import contextlib
import socket
from typing import Final

import structlog

from protocol.errors import ErrorCode
from protocol.kernel import codes
from protocol.position import MOST_NAME_BYTES
from relay.archive.storage.archive_errors import ArchiveError
from relay.process.background import guarded
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import ReceiveBufferPool

log = structlog.get_logger()

# A source sends 16 KiB at a time. When more than _BUSY_BYTES came in a millisecond, the next ones are gathered to runs of _RUN_BYTES
# (or for 1 ms), so that handing a run on does not cost more than the run; a trickle is handed on at once.
_BUSY_BYTES: Final = 128 << 10
_RUN_BYTES: Final = 512 << 10
# More at a time is slower: the bytes drop out of the processor's cache between the socket and the file.
_READ_BYTES: Final = 512 << 10
# While it is busy the system is also asked to wake us only for so much at a time (SO_RCVLOWAT), until it has been calm.
_GATHER_BYTES: Final = 256 << 10
_CALM_AFTER_S: Final = 0.002
# The number of files that are begun at once: each takes a tenth of a millisecond, and 500 KiB may have thousands of empty ones.
_MOST_ROTATED: Final = 16
_ER_ACCESS: Final = {
    ErrorCode.ER_DBACCESS_DENIED_ERROR,
    ErrorCode.ER_ACCESS_DENIED_ERROR,
    ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR,
}


class DumpStream(asyncio.BufferedProtocol):
    """The owner of the source's connection from COM_BINLOG_DUMP on. `ended` gets the UpstreamError that ends it, or raises a fault of
    ours: bytes that were partly walked are never walked again.

    Bytes are received straight into a large buffer, walked there by the kernel, and written from there. When all buffers are with the
    writer, reading pauses and TCP slows the source down.
    """

    def __init__(self, intake: Intake, pool: ReceiveBufferPool, transport: asyncio.Transport, early: bytes) -> None:
        self._intake = intake
        self._pool = pool
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[UpstreamError] = self._loop.create_future()
        self.heard_at = self._loop.time()
        self.bytes_received = 0
        self._held: bytes | None = None
        self._walks_on = False
        """True if the rest of the input is walked in the loop's next iteration."""
        self._due: asyncio.TimerHandle | None = None
        self._millisecond = 0
        self._received_in_it = 0
        self._busy = False
        self._gathering = False
        self._seen = 0
        buffer = pool.take()
        if buffer is None:
            raise RuntimeError("the previous stream's runs are still with the writer")
        self._buffer = buffer
        self._fill = 0
        pool.on_return = guarded(self._buffer_returned, "reading on", self.fail)
        if early:
            self._buffer.view[: len(early)] = early
            self._loop.call_soon(self.buffer_updated, len(early))

    @property
    def paused(self) -> bool:
        """True if reading waits for the archive's writer."""
        return self._held is not None

    def send(self, packet: bytes) -> None:
        """Send a packet to the source, if the stream has not ended."""
        if not self.ended.done() and not self._transport.is_closing():
            self._transport.write(packet)

    def archive_failed(self, failure: ArchiveError) -> None:
        """End the stream: nothing of it would be archived any more."""
        self._end(UpstreamError(FailureKind.ARCHIVE, failure.text, failure.advice, name="archive_failed"))

    def close(self) -> None:
        """End the stream."""
        self._end(UpstreamError(FailureKind.NETWORK, "the relay closed the stream", name="closed"))

    def fail(self, fault: Exception) -> None:
        """End the stream by an unexpected exception."""
        self._end(fault)

    # --- asyncio -----------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the rest of the buffer in use, for the next bytes."""
        return self._buffer.view[self._fill : self._fill + _READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Process `nbytes` more bytes."""
        self.heard_at = self._loop.time()
        self.bytes_received += nbytes
        self._fill += nbytes
        millisecond = int(self.heard_at * 1000)
        if millisecond != self._millisecond:
            self._millisecond, self._busy = millisecond, self._received_in_it > _BUSY_BYTES
            self._received_in_it = 0
        self._received_in_it += nbytes
        if self._busy and not self._gathering:
            self._gather(True)
        if self._busy and self._fill < _RUN_BYTES:
            if self._due is None:
                self._due = self._loop.call_later(0.001, self._walk_what_came)
            return
        self._walk_what_came()

    def _gather(self, on: bool) -> None:
        """Make the system wake us for _GATHER_BYTES at a time, or again for every byte."""
        self._gathering = on
        sock = self._transport.get_extra_info("socket")
        if sock is None:
            return
        # A system without this option wakes us more often.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _GATHER_BYTES if on else 1)
        if on:
            self._seen = self.bytes_received
            self._loop.call_later(_CALM_AFTER_S, self._look_for_calm)

    def _look_for_calm(self) -> None:
        """Check whether the stream is calm: while bytes are gathered in the system, smaller amounts are not announced."""
        if self.ended.done():
            return
        if self.bytes_received - self._seen < _GATHER_BYTES:
            self._gather(False)
        else:
            self._seen = self.bytes_received
            self._loop.call_later(_CALM_AFTER_S, self._look_for_calm)

    def _walk_what_waits(self) -> None:
        if self._due is not None:
            self._walk_what_came()

    def _walk_what_came(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self.ended.done() or self._held is not None or self._walks_on:
            return
        try:
            self._walk()
        except UpstreamError as error:
            self._end(error)
        except ArchiveError as error:
            self.archive_failed(error)
        except Exception as fault:
            self.fail(fault)

    def eof_received(self) -> bool:
        """Note that the source has closed; the reason may be in gathered bytes that were not walked yet."""
        self._walk_what_waits()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is closed."""
        self._walk_what_waits()
        cause = f": {exc}" if exc is not None else ""
        self._end(
            UpstreamError(FailureKind.NETWORK, f"the source closed the connection{cause}", name="connection_lost")
        )

    # --- the way of the bytes ----------------------------------------------------------------------------------------

    def _walk(self) -> None:
        buffer, start, fill = self._buffer, 0, self._fill
        ingest, rotated = self._intake.ingest, 0
        while True:
            status = self._intake.take(buffer, start, fill)
            start = ingest.consumed
            if status == codes.NEED_MORE:
                break
            if status == codes.ROTATE:
                self._rotated(ingest.rotate_name, ingest.rotate_position)
                rotated += 1
                if rotated == _MOST_ROTATED:
                    self._walks_on = True
                    break
            elif status == codes.PACKET_ERR:
                raise self._refused(bytes(buffer.view[ingest.packet_start : ingest.packet_stop]))
            elif status == codes.PACKET_EOF:
                raise UpstreamError(
                    FailureKind.NETWORK,
                    "the source ended the stream (EOF packet)",
                    "If this comes again and again: another replica of the source may have our source.server_id.",
                    name="stream_ended",
                )
        left = fill - start
        if buffer.pending:
            rest = buffer.view[start:fill]
            following = self._pool.take()
            if following is None:
                self._held = bytes(rest)
                if not self._transport.is_closing():
                    self._transport.pause_reading()
                return
            following.view[:left] = rest
            self._buffer = following
        elif start:
            buffer.view[:left] = bytes(buffer.view[start:fill])
        self._fill = left
        if self._walks_on:
            self._walk_on_later()

    def _walk_on_later(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()
        self._loop.call_soon(self._walk_on)

    def _walk_on(self) -> None:
        self._walks_on = False
        if self.ended.done():
            return
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self._walk_what_came()

    def _buffer_returned(self) -> None:
        """Resume where reading paused, as the writer gave a buffer back."""
        if self._held is None or self.ended.done():
            return
        following = self._pool.take()
        if following is None:
            return
        held, self._held = self._held, None
        following.view[: len(held)] = held
        self._buffer, self._fill = following, len(held)
        self.heard_at = self._loop.time()  # The silence was ours
        if self._walks_on:
            self._walk_on_later()
        else:
            self._transport.resume_reading()

    def _rotated(self, raw_name: bytes, position: int) -> None:
        """Take an artificial Rotate, which gives the stream's place. The first one confirms the start, each other one opens a file."""
        try:
            name = raw_name.decode("utf-8")
        except UnicodeDecodeError as error:
            text = f"the source names a binlog that cannot be one: {raw_name[:MOST_NAME_BYTES]!r}"
            raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="file_name_malformed") from error
        if name != self._intake.file:
            if position != 4:
                text = f"the source jumps to {name}, offset {position}, instead of its beginning"
                raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="position_chain_broken")
            self._intake.begin_file(name)
        elif position != self._intake.ingest.position:
            text = f"the source goes on at {name}, offset {position}; expected {self._intake.ingest.position}"
            raise UpstreamError(FailureKind.STREAM_BROKEN, text, name="position_chain_broken")

    def _refused(self, payload: bytes) -> UpstreamError:
        number = int.from_bytes(payload[1:3], "little") if len(payload) >= 3 else 0
        text = payload[3:].decode("utf-8", "replace")
        if text.startswith("#"):
            text = text[6:]
        reason = f"the source ended the stream with error {number}: {text}"
        if number == ErrorCode.ER_SLAVE_SAME_ID or (
            number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG and "same server" in text
        ):
            # It is not retried: two with one id would end each other's stream for ever.
            advice = "Another replica of this source has our server_id: give source.server_id a number of its own."
            return UpstreamError(FailureKind.SETUP, reason, advice, name="server_id_clash")
        if number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG:
            advice = (
                "What the archive holds stays and is served. Compare SHOW BINARY LOGS on the source with `archive list`. "
                f"{ACCEPT_GAP}"
            )
            return UpstreamError(FailureKind.POSITION_GONE, reason, advice, name="position_gone")
        if number in _ER_ACCESS:
            advice = "On the source: GRANT REPLICATION SLAVE ON *.* to the relay's user."
            return UpstreamError(FailureKind.AUTHENTICATION, reason, advice)
        return UpstreamError(FailureKind.NETWORK, reason, name="source_error")

    def _end(self, error: Exception) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self.ended.done() and isinstance(error, UpstreamError):
            self.ended.set_result(error)
        elif not self.ended.done():
            self.ended.set_exception(error)
        self._transport.abort()
