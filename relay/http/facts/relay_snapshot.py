"""The running relay at one moment, for metrics and the API: taken on the event loop, read anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relay.applying.applying_state import ApplyingState
from relay.archive_inspection.scrub import ScrubStatus
from relay.http.facts.history import RateOfGrowth
from relay.http.facts.slow_facts import SlowFacts
from relay.mirror.mirror_status import MirrorStatus
from relay.packed_reads.frame_counts import FrameFacts
from relay.process.memory_budget import MemoryFacts
from relay.retention.retention_status import RetentionStatus
from relay.tiers.tier_status import TierStatus
from relay.upstream.source.source_status import SourceStatus


@dataclass(frozen=True, slots=True)
class GenerationFacts:
    """One generation of an archive. state: "open", "failed", "ended". purged_bytes: since the relay's start."""

    number: int
    state: str
    files: int
    bytes: int
    oldest_file: str
    newest_file: str
    first_timestamp: int
    last_timestamp: int
    damaged_files: int
    failure: str


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica, also one that disconnected recently.

    server_id: 0 if it did not report one. host: its address, without the port. view: empty: the mirror. state: "streaming", "at_end",
    "waiting" for the place that it requested, "registered" without a stream, "gone". behind_bytes, behind_s: its lag in the archive
    that it is served, by what it was sent; None: unknown. last_seen: Unix time. applying: how far it has applied; None: no account.
    """

    server_id: int
    account: str
    host: str
    view: str
    state: str
    file: str = ""
    offset: int = 0
    generation: int | None = None
    behind_bytes: int | None = None
    behind_s: float | None = None
    sent_bytes: int = 0
    connection_id: int = 0
    uuid: str = ""
    connected_s: float = 0.0
    acknowledged_file: str = ""
    acknowledged_offset: int = 0
    last_seen: float = 0.0
    applying: ApplyingState | None = None

    @property
    def is_connected(self) -> bool:
        """True if it is connected now."""
        return self.state != "gone"

    @property
    def identity(self) -> tuple[int, str, str, str]:
        """The values that make it the same replica when it reconnects."""
        return self.server_id, self.account, self.host, self.view


@dataclass(frozen=True, slots=True)
class ViewState:
    """A view of relay.toml. stop: the reason's name, empty: it is running. source_file, source_offset: the position up to which it is
    built."""

    name: str
    target: str
    gtids: str
    is_open: bool
    behind_bytes: int
    stop: str
    stop_text: str
    source_file: str
    source_offset: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Numbers that only grow, since the relay's start."""

    received_bytes: int
    received_events: int
    received_transactions: int
    attempts: int
    streams: int
    losses: Mapping[str, int]
    heartbeats: int
    acknowledged: int
    sent_bytes: int
    client_bytes_received: int
    connections: int
    logins: int
    login_failures: int
    turned_away: Mapping[str, int]
    dumps_begun: int
    dumps_refused: Mapping[int, int]
    aborted_clients: int
    aborted_connects: int
    statements: int
    purged_bytes: int
    http_requests: Mapping[tuple[str, int], int]
    http_refusals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RelaySnapshot:
    """at: Unix time. behind_s: the lag after the source; None: unknown, as without a stream. trouble: why the source is not followed,
    by name; empty: nothing is wrong. last_heard_at: Unix time of the last byte of its stream, 0: none yet."""

    at: float
    started_at: float
    status: SourceStatus
    behind_s: int | None
    trouble: str
    last_heard_at: float
    last_heartbeat_at: float
    generations: Sequence[GenerationFacts]
    queued_bytes: int
    views: Sequence[ViewState]
    replicas: Sequence[ReplicaState]
    """A bounded number of replicas, the one with the largest lag first."""
    applying: Sequence[ApplyingState]
    """Each replica of relay.toml whose account is given."""
    applying_elsewhere: Sequence[ApplyingState]
    """Those of them that are none of `replicas`, as far as that is known."""
    connected: int
    scrub: ScrubStatus
    retention: RetentionStatus
    tiers: TierStatus | None
    mirror: MirrorStatus | None
    frames: FrameFacts | None
    counters: Counters
    slow: SlowFacts
    growth: RateOfGrowth
    memory: MemoryFacts

    @property
    def archive_bytes(self) -> int:
        """The bytes of all generations."""
        return sum(one.bytes for one in self.generations)

    @property
    def archive_files(self) -> int:
        """The files of all generations."""
        return sum(one.files for one in self.generations)

    @property
    def source_lag_bytes(self) -> int:
        """The bytes that came from the source and are not archived as whole transactions: waiting for the disk, or of an incomplete
        one."""
        status = self.status
        written = 0
        if status.received_file is not None and status.received_file == status.archived_file:
            written = max(0, (status.received_offset or 0) - (status.archived_offset or 0))
        return self.queued_bytes + written

    @property
    def damaged_files(self) -> int:
        """The damaged files of all generations."""
        return sum(one.damaged_files for one in self.generations)

    @property
    def full_in_s(self) -> float | None:
        """The time until the archive's disk is full, at the rate of the last hours and if nothing is removed; None: unknown, or
        never."""
        if self.slow.free_bytes is None or self.growth.bytes_per_s <= 0:
            return None
        return self.slow.free_bytes / self.growth.bytes_per_s
