"""A stream that has sent everything: its heartbeats, and the moment when its replica has stored everything."""

import asyncio
import weakref
from collections.abc import Callable
from typing import Final, Protocol

from protocol.errors import AnsweredError, ErrorCode
from protocol.position import Position
from relay.downstream.request.refusal import INTERNAL_ERROR
from relay.process.background import guarded

# The time without an event of the archive, with an empty send queue, after which a replica is believed to have stored everything.
# Heartbeats do not count: they may be more frequent than this.
SETTLED_S: Final = 3.0
# The time after which the replica's unread bytes are checked again.
_UNREAD_AGAIN_S: Final = 1.0
# The loop's timers count in milliseconds: one that fires a moment early is not waited for again.
_TIMER_GRAIN_S: Final = 0.0005
_SHORTEST_WAIT_S: Final = 0.001


class RestingStream(Protocol):
    """The stream that waits for the archive to grow."""

    @property
    def position(self) -> Position:
        """The position up to which it was given to the socket."""

    @property
    def is_at_rest(self) -> bool:
        """True if the socket has taken all that was published; such a stream stays so until it is pumped."""

    @property
    def shortest_silence_s(self) -> float:
        """The least time before a heartbeat, however short a silence its replica asks for."""

    @property
    def waits_for_store(self) -> bool:
        """True if a bucket is waited for, so that nothing but a heartbeat can be sent."""

    def unread_bytes(self) -> int | None:
        """Return the written bytes that the replica has not read, as far as the system knows; None: unknown."""

    def heartbeat(self) -> bytes | None:
        """Return the heartbeat event for the stream's position; None: none can be sent here."""

    def send_heartbeat(self, event: bytes) -> None:
        """Send it."""

    def fail(self, error: AnsweredError) -> None:
        """End the stream with this error."""


class LiveEdge:
    """The silence of one stream, measured from the calls of `run_sent` and `sent`.

    heartbeat_s: silence after which a heartbeat is sent, 0: none. settles: find out when the replica has stored everything. Times are
    the loop's, in seconds.
    """

    def __init__(self, stream: RestingStream, *, heartbeat_s: float, settles: bool) -> None:
        # It refers to this one: what it keeps, such as a GTID set of 64 MiB, would wait for the garbage collector.
        self._stream: RestingStream = weakref.proxy(stream)
        self._heartbeat_s = heartbeat_s
        self._settles = settles
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._last_sent = self._last_run = self._loop.time()
        self._taken = False
        """True if nothing of the newest events was left in the replica's system at the last check."""
        self._settled = False
        """True if a heartbeat was sent since."""
        self._settle_not_before = 0.0
        self._closed = False
        self._wake: Callable[[], None] = guarded(self._in_silence, "a stream's silence", self._failed)
        self._heartbeat: bytes | None = None
        self._heartbeat_for: Position | None = None

    @property
    def is_settled(self) -> bool:
        """True if the newest events were taken and a heartbeat was sent since: a replica that has read it has stored them."""
        return self._settled and self._settles

    def sent(self, now: float) -> None:
        """Note that something was sent."""
        self._last_sent = now

    def run_sent(self, now: float) -> None:
        """Note that events of the archive were sent."""
        self._last_sent = self._last_run = now
        self._taken = self._settled = False

    def file_begins(self) -> None:
        """Note that the stream continues with another file, which may have the name of the one before."""
        self._heartbeat_for = None

    def wait(self) -> None:
        """Wait: the stream has sent everything. May be called again at any time."""
        if self._timer is None:
            self._set_timer()

    def close(self) -> None:
        """Stop: the stream has ended."""
        self._closed = True
        self._wake = _nothing
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        """Set the one timer for all that happens in silence; it is set again when it fires, not when something is sent."""
        dues = []
        if self._heartbeat_s > 0:
            dues.append(self._last_sent + self._heartbeat_s)
        if self._settles and not self._taken and not self._stream.waits_for_store:
            dues.append(max(self._last_run + SETTLED_S, self._settle_not_before))
        if dues:
            due = max(min(dues), self._loop.time() + max(_SHORTEST_WAIT_S, self._stream.shortest_silence_s))
            self._timer = self._loop.call_at(due, self._wake)

    def _failed(self, _fault: Exception) -> None:
        """End the stream: a replica that receives nothing any more would wait for its own time limit."""
        self._stream.fail(AnsweredError(ErrorCode.ER_UNKNOWN_ERROR, f"{INTERNAL_ERROR}. The replica may try again"))

    def _in_silence(self) -> None:
        self._timer = None
        is_at_rest = self._stream.is_at_rest
        if not is_at_rest and not self._stream.waits_for_store:
            return
        now = self._loop.time()
        proof = False
        if is_at_rest and self._settles and not self._taken and now >= self._last_run + SETTLED_S:
            proof = self._settle(now)
        if self._heartbeat_s > 0 and (proof or now >= self._last_sent + self._heartbeat_s - _TIMER_GRAIN_S):
            self._send_heartbeat(now)
        if not self._closed:
            self._set_timer()

    def _settle(self, now: float) -> bool:
        """Return whether a heartbeat that is sent now shows, once it is read, that the replica has stored everything.

        It is called when the file's end is a transaction boundary and for some time nothing but heartbeats was sent. Their own period
        may be half an hour.
        """
        if not self._stream.unread_bytes():
            self._taken = True
        else:
            self._settle_not_before = now + _UNREAD_AGAIN_S
        return self._taken

    def _send_heartbeat(self, now: float) -> None:
        # A replica that asks for one every millisecond gets a thousand of the same.
        if self._heartbeat_for != self._stream.position:
            self._heartbeat = self._stream.heartbeat()
            self._heartbeat_for = self._stream.position
        self._last_sent = now
        if self._heartbeat is not None:
            self._stream.send_heartbeat(self._heartbeat)
            self._settled = self._taken


def _nothing() -> None:
    """Do nothing: the wake-up of a stream that has ended."""
