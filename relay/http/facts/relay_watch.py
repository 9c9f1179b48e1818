"""Looks at the running relay once a second, and takes snapshots of it on request."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive.generation import Generation, GenerationState
from relay.archive_inspection.scrub import Scrub
from relay.downstream.clients import Clients
from relay.http.facts.applied_replicas import AppliedReplicas, with_applied
from relay.http.facts.history import FINE_S, History, HistorySample
from relay.http.facts.loop_delay import LoopDelay
from relay.http.facts.relay_snapshot import Counters, GenerationFacts, RelaySnapshot, ReplicaState, ViewState
from relay.http.facts.replica_registry import ReplicaRegistry
from relay.http.facts.slow_facts import SlowFactsWatch
from relay.http.facts.upkeep import Upkeep
from relay.process.background import guarded
from relay.process.duration_histogram import DurationHistogram
from relay.upstream.source.source_status import SourceStatus
from relay.upstream.source.stream_tally import StreamTally
from relay.view.shown_view import ShownView

_EVERY_S: Final = 1.0
_KEPT_S: Final = 0.2


class FollowedSource(Protocol):
    """The part of the upstream side that is needed; `SourceControl` implements it."""

    @property
    def tally(self) -> StreamTally:
        """The counts of what was received."""

    @property
    def trouble_name(self) -> str:
        """The name of the reason why the source is not followed; empty: nothing is wrong."""

    def status(self) -> SourceStatus:
        """Return the present status."""


class RelayWatch:
    """`begin`, then `close`; on the event loop only. sync_times: of the archive's fdatasync."""

    def __init__(
        self,
        archive: Archive,
        source: FollowedSource,
        clients: Clients,
        scrub: Scrub,
        console: Console,
        upkeep: Upkeep,
        *,
        sync_times: DurationHistogram,
        certificate_files: Mapping[str, Path],
    ) -> None:
        self.archive = archive
        self.source = source
        self.sync_times = sync_times
        self.slow = SlowFactsWatch(archive.directory, certificate_files)
        self.history = History()
        self.http_requests: Counter[tuple[str, int]] = Counter()
        """The requests by path of the table of answers, and status."""
        self.http_refusals: Counter[str] = Counter()
        self._clients = clients
        self._scrub = scrub
        self._console = console
        self._upkeep = upkeep
        self._roll = ReplicaRegistry()
        self.applied = AppliedReplicas(self._roll, clients)
        """How far replicas have applied; whose, is `taken` from the configuration."""
        self._delay = LoopDelay()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._newest: tuple[float, RelaySnapshot] | None = None
        self._beats = 0
        self._heartbeats = 0
        self._heartbeat_at = 0.0
        self._before: tuple[float, int, int, int] | None = None
        """The time, and the received bytes, sent bytes and transactions until then."""
        self._look: Callable[[], None] = guarded(self._looked, "looking at the relay for monitors", lambda _: None)

    @property
    def loop_times(self) -> DurationHistogram:
        """The delays with which the event loop came to a timer."""
        return self._delay.times

    def begin(self) -> None:
        """Start it."""
        self.slow.begin()
        self._look()

    async def close(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()
        self._delay.close()
        await self.applied.close()
        await self.slow.close()

    # --- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> RelaySnapshot:
        """Return the relay's present state, or that of a moment ago: however many ask, it is examined a few times a second."""
        if self._newest is None or time.monotonic() - self._newest[0] > _KEPT_S:
            self._newest = time.monotonic(), self._taken()
        return self._newest[1]

    def _taken(self) -> RelaySnapshot:
        status, tally, traffic = self.source.status(), self.source.tally, self._clients.traffic
        clients = self._clients.statuses()
        applying = self.applied.states
        replicas, elsewhere = with_applied(self._roll.follow(clients), applying)
        return RelaySnapshot(
            at=time.time(),
            started_at=time.time() - (time.monotonic() - traffic.started_at),
            status=status,
            behind_s=self._console.seconds_behind(status),
            trouble=self.source.trouble_name,
            last_heard_at=tally.last_heard_at,
            last_heartbeat_at=self._heartbeat_at,
            generations=tuple(_generation(one) for one in self.archive.all),
            queued_bytes=self.archive.current.queued_bytes,
            views=tuple(_view(name, view) for name, view in self._console.views.items()),
            replicas=tuple(replicas),
            applying=tuple(applying),
            applying_elsewhere=tuple(elsewhere),
            connected=self._clients.connected,
            scrub=self._scrub.status,
            retention=self._upkeep.retention.picture(),
            tiers=None if self._upkeep.tiers is None else self._upkeep.tiers.picture(),
            mirror=None if self._upkeep.mirror is None else self._upkeep.mirror(),
            frames=None if self._upkeep.frames is None else self._upkeep.frames(),
            counters=Counters(
                received_bytes=tally.bytes_received,
                received_events=tally.events,
                received_transactions=tally.transactions,
                attempts=tally.attempts,
                streams=tally.streams,
                losses=dict(tally.losses),
                heartbeats=status.received_heartbeats,
                acknowledged=status.acknowledged_count,
                sent_bytes=traffic.bytes_sent + sum(one.sent_bytes for one in clients),
                client_bytes_received=traffic.bytes_received,
                connections=traffic.connections,
                logins=traffic.logins,
                login_failures=traffic.login_failures,
                turned_away=dict(traffic.turned_away),
                dumps_begun=traffic.dumps_begun,
                dumps_refused=dict(traffic.dumps_refused),
                aborted_clients=traffic.aborted_clients,
                aborted_connects=traffic.aborted_connects,
                statements=traffic.statements,
                purged_bytes=self.archive.purged_bytes,
                http_requests=dict(self.http_requests),
                http_refusals=dict(self.http_refusals),
            ),
            slow=self.slow.newest,
            growth=self.history.growth,
            memory=self._clients.memory.facts(),
        )

    # --- once a second -----------------------------------------------------------------------------------------------

    def _looked(self) -> None:
        self._timer = self._loop.call_later(_EVERY_S, self._look)
        heartbeats = self.source.status().received_heartbeats
        if heartbeats != self._heartbeats:
            self._heartbeats, self._heartbeat_at = heartbeats, time.time()
        archives = {"": self.archive}
        for name, view in self._console.views.items():
            archive = getattr(view, "archive", None)
            if isinstance(archive, Archive):
                archives[name] = archive
        self._roll.note(archives)
        self._beats += 1
        if self._beats % FINE_S == 0:
            self._sample(archives)

    def _sample(self, archives: Mapping[str, Archive]) -> None:
        shot = self.snapshot()
        now = time.monotonic()
        numbers = (shot.counters.received_bytes, shot.counters.sent_bytes, shot.counters.received_transactions)
        since, *before = self._before or (now, *numbers)
        rates = [
            max(0, new - old) / (now - since) if now > since else math.nan
            for new, old in zip(numbers, before, strict=True)
        ]
        self._before = (now, *numbers)
        free = shot.slow.free_bytes
        sample = HistorySample(
            received_bytes_per_s=rates[0],
            sent_bytes_per_s=rates[1],
            transactions_per_s=rates[2],
            source_behind_s=math.nan if shot.behind_s is None else float(shot.behind_s),
            replicas_behind_s=_worst(shot.replicas, lambda one: one.behind_s),
            replicas_behind_bytes=_worst(shot.replicas, lambda one: one.behind_bytes),
            views_behind_bytes=float(max((one.behind_bytes for one in shot.views), default=0)),
            replicas=float(sum(one.is_connected for one in shot.replicas)),
            loop_delay_s=self.loop_times.take_longest(),
            free_bytes=math.nan if free is None else float(free),
        )
        written = sum(one.held.total_bytes for archive in archives.values() for one in archive.all)
        written += sum(archive.purged_bytes for archive in archives.values())
        self.history.add(shot.at, now, sample, written)


def _worst(replicas: Sequence[ReplicaState], of: Callable[[ReplicaState], float | None]) -> float:
    known = [value for one in replicas if (value := of(one)) is not None]
    return float(max(known, default=0.0))


def _generation(one: Generation) -> GenerationFacts:
    files, trouble = one.files, one.write_trouble
    return GenerationFacts(
        number=one.number,
        state=one.state.value if trouble is None else GenerationState.FAILED.value,
        files=len(files),
        bytes=one.held.total_bytes,
        oldest_file=files[0].name if files else "",
        newest_file=files[-1].name if files else "",
        first_timestamp=files[0].first_timestamp if files else 0,
        last_timestamp=files[-1].last_timestamp if files else 0,
        damaged_files=len({place.file for place in one.damaged_files.all}),
        failure=trouble.what if trouble is not None else "",
    )


def _view(name: str, view: ShownView) -> ViewState:
    status, archive = view.status, getattr(view, "archive", None)
    generations = archive.all if isinstance(archive, Archive) else ()
    stop = status.stop
    return ViewState(
        name=name,
        target=view.settings.target,
        gtids=view.settings.gtids,
        is_open=isinstance(archive, Archive),
        behind_bytes=status.behind_bytes,
        stop=stop.reason.name if stop is not None else "",
        stop_text=stop.message if stop is not None else "",
        source_file=status.source.file if status.source is not None else "",
        source_offset=status.source.offset if status.source is not None else 0,
        files=sum(len(one.files) for one in generations),
        bytes=sum(one.held.total_bytes for one in generations),
    )
