"""Semi-synchronous acknowledgements: a transaction is acknowledged to the source once it is on stable storage.

The source delays its client's COMMIT until the acknowledgement. So what is acknowledged must survive the crash of this machine, not
only of this process: the archive syncs, whatever `archive.sync` says, and only what it has synced counts.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

import structlog

from protocol.position import Position, binlog_number
from protocol.semisync import encode_acknowledgement
from relay.process.background import guarded
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()


class SyncedPart(Protocol):
    """The required part of a generation: up to where it is on stable storage."""

    @property
    def synced(self) -> Position | None: ...

    def sync_up_to(self, file: str, offset: int) -> None: ...

    def watch_sync(self, callback: Callable[[], None]) -> None: ...

    def unwatch_sync(self, callback: Callable[[], None]) -> None: ...


def ack_packet(file: str, offset: int) -> bytes:
    """Return the acknowledgement of everything up to `offset` of `file`, including its packet header (always number 0).

    Layout: 0xEF | offset u64 | file name to the packet's end. Source: docs/PROTOCOL.md#semi-synchronous-replication.
    """
    payload = encode_acknowledgement(Position(file, offset))
    return len(payload).to_bytes(3, "little") + b"\0" + payload


class Acknowledger:
    """One stream's acknowledgements. `send` writes to the source; `close` when the stream ends.

    `on_fault` is called with an unexpected exception: otherwise the source's clients would wait for what never comes.
    """

    def __init__(
        self,
        generation: SyncedPart,
        send: Callable[[bytes], None],
        link: SourceLink,
        on_fault: Callable[[Exception], object],
    ) -> None:
        self._generation = generation
        self._send = send
        self._link = link
        self._wanted: deque[tuple[int, int, str]] = deque()
        """These are (file number, offset, file) in the stream's order."""
        self._on_sync = guarded(self._synced, "acknowledging to the source", on_fault)
        generation.watch_sync(self._on_sync)

    def close(self) -> None:
        """Stop acknowledging; the source asks again for what is not acknowledged, or for what follows it."""
        self._generation.unwatch_sync(self._on_sync)
        self._wanted.clear()

    def want(self, file: str, offset: int) -> None:
        """Note that the source waits for everything up to `offset`, which was handed to the archive."""
        self._wanted.append((binlog_number(file), offset, file))
        self._generation.sync_up_to(file, offset)
        self._synced()

    def _synced(self) -> None:
        synced = self._generation.synced
        if synced is None or not self._wanted:
            return
        reached = (binlog_number(synced.file), synced.offset)
        newest: tuple[int, int, str] | None = None
        while self._wanted and self._wanted[0][:2] <= reached:
            newest = self._wanted.popleft()
        if newest is None:
            return
        # One acknowledgement is enough: a source considers everything up to it acknowledged.
        _, offset, file = newest
        self._send(ack_packet(file, offset))
        self._link.acknowledged = (file, offset)
        self._link.acknowledged_count += 1
