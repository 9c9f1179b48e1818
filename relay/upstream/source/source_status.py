"""The current state of the connection to the source: written by the upstream side, read by its observers."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.config import DirectorySource, ServerSource
from relay.upstream.source.reconnect import longest_pause_s
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids
from relay.upstream.source.stream_tally import StreamTally


class Phase(Enum):
    """The phase of the upstream side. The value is how MySQL from 8.0.26 words it in Replica_IO_State."""

    STOPPED = ""
    CONNECTING = "Connecting to source"
    STREAMING = "Waiting for source to send event"
    PAUSING = "Waiting to reconnect after a failed source event read"
    RECONNECTING = "Reconnecting after a failed source event read"


def _none() -> int:
    return 0


class SourceLink:
    """The upstream side's notes on its connection. Times are Unix seconds."""

    def __init__(self) -> None:
        self.phase = Phase.STOPPED
        self.tally = StreamTally()
        self.identity: SourceIdentity | None = None
        """The source as it named itself at the last connection."""
        self.attached_at: float | None = None
        """The start of the running stream; None without one."""
        self.retries = 0
        """The number of attempts since the last stream."""
        self.last_error: UpstreamError | None = None
        self.last_error_at: float | None = None
        self.given_up: UpstreamError | None = None
        """The error that ended it for good: nothing is retried before an operator starts it. None means that it goes on, was stopped,
        or has other settings now."""
        self.unreachable_since: float | None = None
        """The time since which the source cannot be reached, by the monotonic clock; None if it can, or no attempt is made."""
        self.tls_version: str | None = None
        self.cipher: str | None = None
        """None means that the connection is in clear text."""
        self.semi_sync = False
        """True if the stream is semi-synchronous: the source asks for acknowledgements."""
        self.semi_sync_state: str | None = ""
        """The source's answer when it was asked: "ON", "OFF", None for one that cannot; empty if it was not asked yet."""
        self.gtids: SourceGtids | None = None
        """The GTIDs that the source last reported, possibly to an earlier run of the relay."""
        self.settings: dict[str, str] = {}
        """The settings that the source last reported, by name, possibly to an earlier run of the relay."""
        self.is_kept = True
        """True if both are on the disk too, as far as they had to be saved."""
        self.acknowledged: tuple[str, int] | None = None
        """The newest acknowledgement that was sent: (file, offset)."""
        self.acknowledged_count = 0
        self.is_read_through = False
        """True if a directory's files were all archived once since the relay's start."""
        self._hurried = asyncio.Event()
        self._heartbeats_before = 0
        self._heartbeats: Callable[[], int] = _none

    @property
    def received_heartbeats(self) -> int:
        """The number of heartbeats in all streams so far. A source sends one when it has nothing else to send."""
        return self._heartbeats_before + self._heartbeats()

    @property
    def stream_heartbeats(self) -> int:
        """The number of them in the running stream."""
        return self._heartbeats()

    def count_heartbeats(self, of_stream: Callable[[], int]) -> None:
        """Take the heartbeats of the running stream from `of_stream`, until it ends."""
        self._heartbeats = of_stream

    def connecting(self) -> None:
        """Note that an attempt begins."""
        self.given_up = None
        self.tally.attempts += 1
        self.phase = Phase.CONNECTING if self.last_error is None else Phase.RECONNECTING

    async def pause(self, longest_s: float) -> bool:
        """Wait for the next attempt; return True if it was requested now."""
        self._hurried.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._hurried.wait()
        return self._hurried.is_set()

    def hurry(self) -> bool:
        """Make the next attempt at once; return False if none is awaited."""
        if self.phase is not Phase.PAUSING:
            return False
        self._hurried.set()
        return True

    def attached(self) -> None:
        """Note that the source was asked for its stream; the previous error stays until it has answered."""
        self.unreachable_since = None
        self.phase = Phase.STREAMING
        self.tally.streams += 1
        self.attached_at = time.time()

    def answered(self) -> None:
        """Note that the stream's first events came and are those that were requested. Calling it again does nothing."""
        self.retries = 0
        self.last_error = None

    def lost(self, error: UpstreamError, *, final: bool) -> None:
        """Note that the attempt or the stream ended."""
        self.phase = Phase.STOPPED if final else Phase.PAUSING
        self.last_error, self.last_error_at = error, time.time()
        self.given_up = error if final else None
        self.retries += not final
        self.tally.losses[error.kind.value] += 1
        if final or error.kind is not FailureKind.NETWORK:
            self.unreachable_since = None
        elif self.unreachable_since is None:
            self.unreachable_since = time.monotonic()
        self._detached()

    def stopped(self) -> None:
        """Note that an operator stopped it."""
        self.unreachable_since = None
        self.phase = Phase.STOPPED
        self._detached()

    def forget_error(self) -> None:
        """Forget the previous error at a new start."""
        self.last_error = None
        self.retries = 0

    def _detached(self) -> None:
        self._heartbeats_before, self._heartbeats = self.received_heartbeats, _none
        self.attached_at = None
        self.tls_version = self.cipher = None
        self.semi_sync = False


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The upstream side at one moment. Times are Unix seconds, offsets bytes; None means unknown or absent."""

    kind: str
    """The kind of source, "server" or "directory"; for a directory `host` is its path, `port` 0 and `user` empty."""
    host: str
    port: int
    user: str
    connect_retry_s: float
    """The longest pause between attempts when the source cannot be reached."""
    state: str
    """The state as MySQL from 8.0.26 words it in Replica_IO_State ("source", where older servers say "master"); empty when stopped."""
    io_running: str
    """The state of the IO thread: "Yes", "Connecting" or "No"."""
    stopped_by_operator: bool
    started_by_operator: bool
    """True if the stream that runs, or last ran, was started by a statement and not by the relay's start."""
    changed_by_operator: bool
    """True if the settings differ from those of relay.toml, until the relay is restarted."""
    received_file: str | None
    received_offset: int | None
    """The end of what is written to the archive, possibly inside a transaction."""
    archived_file: str | None
    archived_offset: int | None
    """The end of the last whole transaction that replicas may read."""
    synced_file: str | None
    synced_offset: int | None
    """The end of the last whole transaction that is on stable storage."""
    last_error_number: int
    """The error's number; 0: no error."""
    last_error_text: str
    last_error_at: float | None
    ssl_mode: str
    ssl_ca: str
    ssl_cert: str
    ssl_key: str
    public_key: str
    tls_version: str | None
    cipher: str | None
    """None means clear text."""
    heartbeat_period_s: float
    flavour: str | None
    version: str | None
    server_id: int | None
    """The source's server_id; ours is in the configuration."""
    server_uuid: str | None
    own_server_id: int | None
    retries: int
    """The number of attempts since the last stream ended."""
    received_heartbeats: int
    stream_heartbeats: int
    """The number of them in the running stream."""
    attached_at: float | None
    last_event_timestamp: int
    """The time of the newest archived event, 0 before any."""
    ack: str
    """The policy ("none" or "synced") for semi-synchronous acknowledgements."""
    semi_sync: bool
    """True if the running stream is semi-synchronous."""
    acknowledged_file: str | None
    acknowledged_offset: int | None
    acknowledged_count: int

    def state_in(self, word: str) -> str:
        """Return `state` with "source" replaced by `word`: "master" for MariaDB and MySQL before 8.0.26."""
        return self.state.replace("source", word)


def read_status(
    settings: ServerSource | DirectorySource,
    link: SourceLink,
    generation: Generation,
    *,
    stopped_by_operator: bool,
    started_by_operator: bool,
    changed_by_operator: bool,
) -> SourceStatus:
    """Combine what the settings, the connection and the archive know."""
    server = settings if isinstance(settings, ServerSource) else None
    identity = link.identity or generation.identity
    received, archived, synced = generation.received, generation.end, generation.synced
    error = link.last_error
    acknowledged = link.acknowledged
    running = {Phase.STREAMING: "Yes", Phase.STOPPED: "No"}
    return SourceStatus(
        kind=settings.kind,
        host=server.host if server is not None else str(_path(settings)),
        port=server.port if server is not None else 0,
        user=server.user if server is not None else "",
        connect_retry_s=longest_pause_s(),
        state=link.phase.value,
        io_running=running.get(link.phase, "Connecting"),
        stopped_by_operator=stopped_by_operator,
        started_by_operator=started_by_operator,
        changed_by_operator=changed_by_operator,
        received_file=received.file if received is not None else None,
        received_offset=received.offset if received is not None else None,
        archived_file=archived.file if archived is not None else None,
        archived_offset=archived.offset if archived is not None else None,
        synced_file=synced.file if synced is not None else None,
        synced_offset=synced.offset if synced is not None else None,
        last_error_number=error.number if error is not None else 0,
        last_error_text=_error_text(error, given_up=error is link.given_up) if error is not None else "",
        last_error_at=link.last_error_at,
        ssl_mode=server.ssl_mode if server is not None else "disabled",
        ssl_ca=str(server.ssl_ca or "") if server is not None else "",
        ssl_cert=str(server.ssl_cert or "") if server is not None else "",
        ssl_key=str(server.ssl_key or "") if server is not None else "",
        public_key=str(server.public_key or "") if server is not None else "",
        tls_version=link.tls_version,
        cipher=link.cipher,
        heartbeat_period_s=server.heartbeat_period_s if server is not None else 0.0,
        flavour=identity.flavour if identity is not None else None,
        version=identity.version if identity is not None else None,
        server_id=identity.server_id if identity is not None else None,
        server_uuid=identity.server_uuid if identity is not None else None,
        own_server_id=server.server_id if server is not None else None,
        retries=link.retries,
        received_heartbeats=link.received_heartbeats,
        stream_heartbeats=link.stream_heartbeats,
        attached_at=link.attached_at,
        last_event_timestamp=generation.files[-1].last_timestamp if generation.files else 0,
        ack=server.ack if server is not None else "none",
        semi_sync=link.semi_sync,
        acknowledged_file=acknowledged[0] if acknowledged is not None else None,
        acknowledged_offset=acknowledged[1] if acknowledged is not None else None,
        acknowledged_count=link.acknowledged_count,
    )


def _error_text(error: UpstreamError, *, given_up: bool) -> str:
    text = f"{error.what}. {error.advice}".strip(". ")
    return f"{text}. Nothing is tried again before START REPLICA" if given_up else text


def _path(settings: ServerSource | DirectorySource) -> Path:
    assert isinstance(settings, DirectorySource)
    return settings.path
