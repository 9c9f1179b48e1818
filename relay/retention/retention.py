"""Removes the oldest binlogs of the archive and of each view as `[retention]` says.

    every 5 s      the connections, and the position of each -> known replicas
    every 15 s     facts -> decision (in a thread) -> Generation.purge, some hundred files at a time
                   known replicas -> known-replicas.json

Before each purge, in the same turn of the loop, the readers are checked once more.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import structlog

from relay.admin.procedures.view_procedures import ListedView
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError, ArchiveMisuse, ArchiveWriteError
from relay.archive.storage.files import FileLayer
from relay.downstream.connection.client_status import ClientStatus
from relay.process.background import begin_task
from relay.retention.age_purge_rate import AgePurgeRate
from relay.retention.decision import (
    ArchiveFacts,
    Hold,
    HolderKind,
    Limit,
    Place,
    Removal,
    RetentionDecision,
    RetentionFacts,
    decide,
)
from relay.retention.file_times import NumberedFiles, held_files_of, newest_event_time
from relay.retention.known_replicas import KnownReplica, KnownReplicas, RecordValues, SeenReplica, order_of
from relay.retention.purge_delay_log import HeldBackLog
from relay.retention.replicas_file import read_known_replicas, write_known_replicas
from relay.retention.retention_clock import RetentionClock
from relay.retention.retention_holds import keeps_files, reader_holds, replica_holds, view_holds
from relay.retention.retention_limits import RetentionLimits
from relay.retention.retention_status import RetentionStatus
from relay.retention.retention_texts import archive_text, removal_reason
from relay.view.unopened_view import UnopenedView

log = structlog.get_logger(__name__)

_LOOK_S: Final = 5.0
_PASS_S: Final = 15.0
_MOST_A_PURGE: Final = 200
"""The most files in one order: the list of the archive is rewritten for each."""
_MOST_A_PASS: Final = 2000
_SHARE: Final = 100.0
"""A pass that took a second is followed by a rest of so many seconds."""
_LONGEST_PAUSE_S: Final = 600.0
# Replicas that one pass leaves without their files and that have a line of their own.
_MOST_SAID: Final = 20
_FLOOR_PART: Final = 20
_MOST_FLOOR: Final = 20 << 30
"""With less room than a twentieth of the disk, or so many bytes, the bucket of [archive.mirror] is not waited for."""
_MOST_FAILURES: Final = 3
"""The failures after which a pass ends: a disk that refuses to remove what is off the list already would be offered the whole
archive, file by file."""


class ReplicaConnections(Protocol):
    """The connected replicas: `Clients` implements it."""

    def statuses(self) -> Sequence[ClientStatus]:
        """Return the present status of each."""

    def unread_bytes(self, connection_id: int) -> int | None:
        """Return the bytes that were written to it and it has not read; None: unknown."""


class _RetainedArchive(NamedTuple):
    """name: of the view, "" for the mirror."""

    name: str
    archive: Archive


class _Snapshot(NamedTuple):
    """The input of a decision, taken in one turn of the loop."""

    retained: _RetainedArchive
    files: NumberedFiles
    holds: tuple[Hold, ...]
    replicas: tuple[KnownReplica, ...]


class _PassPlan(NamedTuple):
    """orders: what is removed in this pass, each in one order. totals: the bytes of each archive. gone: replicas whose file does not
    exist any more."""

    decision: RetentionDecision
    orders: list[list[Removal]]
    totals: dict[str, int]
    free_bytes: int | None
    gone: list[KnownReplica]


class Retention:
    """`begin`, then `close`; on the event loop, except for decisions and the disk.

    views: of relay.toml, open or not. uncopied_from: the mirror's first file that must be in a bucket first, and is not; None: there
    is none. lent_bytes: what is written to the disk for a while only, which is no reason to remove anything.
    """

    def __init__(
        self,
        mirror: Archive,
        limits: RetentionLimits,
        connections: ReplicaConnections,
        views: Callable[[], Iterable[ListedView]],
        layer: FileLayer | None = None,
        clock: RetentionClock | None = None,
        uncopied_from: Callable[[], Place | None] = lambda: None,
        lent_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self.status = RetentionStatus(is_on=limits.section.removes, limits=limits.written)
        self.replicas = KnownReplicas()
        self._mirror = mirror
        self._limits = limits
        self._connections = connections
        self._views = views
        self._uncopied_from = uncopied_from
        self._layer = layer or FileLayer()
        self._clock = clock or RetentionClock()
        self._lent_bytes = lent_bytes
        self._paces: dict[str, AgePurgeRate] = {}
        self._paced_at = self._looked_at = time.monotonic()
        self._log = HeldBackLog()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_read = False
        self._kept: RecordValues | None = None
        self._is_kept = True
        self._failures = 0
        """The number of failures in a row."""

    def begin(self) -> None:
        """Start it."""
        self._task = begin_task(self._run(), "the retention")

    async def close(self) -> None:
        """End it; a running purge continues, and is finished at the next start at the latest."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._is_read:
            self.look()
            await self._keep()

    def take(self, limits: RetentionLimits) -> None:
        """Use other limits from now on."""
        self._limits = limits
        self.status.is_on, self.status.limits = limits.section.removes, limits.written
        self._failures = 0
        self._wake.set()

    def hurry(self) -> None:
        """Decide at once: the disk is full."""
        if self._limits.min_free_bytes is not None:
            self._wake.set()

    async def _run(self) -> None:
        due = time.monotonic() + _PASS_S
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _LOOK_S)
                due = time.monotonic()
            self._wake.clear()
            if not self._limits.section.removes:
                self._end_telling()
                self._looked_at = time.monotonic()
                continue
            if not await self._read():
                continue
            self.look()
            if time.monotonic() < due:
                continue
            began = time.monotonic()
            await self.run_once()
            self.status.took_s = time.monotonic() - began
            await self._keep()
            failed_s = min(_PASS_S * 2.0 ** min(self._failures, 20), _LONGEST_PAUSE_S) if self._failures else 0.0
            due = time.monotonic() + max(_PASS_S, self.status.took_s * _SHARE, failed_s)

    def _end_telling(self) -> None:
        self.status.held_back, self.status.missing_bytes = (), 0

    # --- known replicas ----------------------------------------------------------------------------------------------

    async def _read(self) -> bool:
        """Read what an earlier process knew; return whether it is known. Nothing is removed before."""
        if self._is_read:
            return True
        try:
            kept = await asyncio.to_thread(read_known_replicas, self._layer, self._mirror.directory)
        except OSError as error:
            if self._is_kept:
                log.error(
                    "known_replicas_unreadable",
                    what=f"known-replicas.json cannot be read: {error}",
                    advice="Nothing is removed before it can be: look at its permissions and the disk.",
                )
            self._is_kept = False
            return False
        except ValueError as error:
            log.error(
                "known_replicas_lost",
                what=f"known-replicas.json cannot be understood: {error}",
                advice="Replicas that are away just now keep nothing until they come back.",
            )
            kept = None
        if kept is not None:
            self.replicas = kept
        self._is_read = self._is_kept = True
        return True

    def look(self) -> None:
        """Note the connections and their positions. This is cheap."""
        now = time.monotonic()
        seen = [
            SeenReplica(status, self._connections.unread_bytes(status.connection_id) if status.is_at_end else None)
            for status in self._connections.statuses()
        ]
        self.replicas.look(seen, now - self._looked_at, time.time())
        self._looked_at = now
        away = [one for one in self.replicas if not one.connected]
        self.status.known_replicas, self.status.away_replicas = len(self.replicas), len(away)
        self.status.forgotten_replicas = sum(not keeps_files(one, self._limits) for one in away)

    async def _keep(self) -> None:
        values = self.replicas.values()
        if values == self._kept:
            return
        try:
            await asyncio.to_thread(write_known_replicas, self._layer, self._mirror.directory, values)
        except OSError as error:
            if self._is_kept:
                log.warning("known_replicas_not_kept", what=str(error), note="it is tried again")
            self._is_kept = False
            return
        self._kept, self._is_kept = values, True

    # --- a pass ------------------------------------------------------------------------------------------------------

    async def run_once(self) -> None:
        """Decide and remove. What cannot be removed is reported; the next pass tries again."""
        limits = self._limits
        snapshots = self._snapshots()
        now = self._clock.now()
        self.status.clock_ahead_s = self._clock.disbelieved_s
        elapsed_s, self._paced_at = time.monotonic() - self._paced_at, time.monotonic()
        plan = await asyncio.to_thread(self._plan, snapshots, limits, now, elapsed_s)
        decision = plan.decision
        self.status.last_pass, self.status.passes = time.time(), self.status.passes + 1
        self.status.held_back = decision.held_back
        self.status.missing_bytes = max((one.missing_bytes for one in decision.held_back), default=0)
        self._log.tell(decision.held_back, limits)
        for number, replica in enumerate(plan.gone):
            self._left_behind(replica, is_said=number < _MOST_SAID)
        if len(plan.gone) > _MOST_SAID:
            log.warning("retention_left_replicas_behind", replicas=len(plan.gone), said=_MOST_SAID)
        await self._carry_out(plan, limits)

    def _retained(self) -> list[_RetainedArchive]:
        opened = [view for view in self._views() if not isinstance(view, UnopenedView)]
        return [
            _RetainedArchive("", self._mirror),
            *(_RetainedArchive(view.settings.name, view.archive) for view in opened),
        ]

    def _holds(self, retained: _RetainedArchive, limits: RetentionLimits) -> Iterator[Hold]:
        """Yield the holds of the present readers."""
        here = [one for one in self._connections.statuses() if (one.view or "") == retained.name]
        yield from reader_holds(retained.archive, here)
        if not retained.name:
            yield from view_holds(retained.archive, self._views(), also_stopped=limits.section.keep_for_views)
            uncopied = self._uncopied_from()
            if uncopied is not None:
                yield Hold(HolderKind.MIRROR, "it is not in the bucket of [archive.mirror] yet", uncopied)

    def _snapshots(self) -> list[_Snapshot]:
        return [
            _Snapshot(
                one,
                [(generation.number, tuple(generation.files)) for generation in one.archive.all],
                tuple(self._holds(one, self._limits)),
                tuple(replica for replica in self.replicas if replica.view == one.name),
            )
            for one in self._retained()
        ]

    def _plan(self, snapshots: Sequence[_Snapshot], limits: RetentionLimits, now: float, elapsed_s: float) -> _PassPlan:
        """Return the plan of a pass. Blocking."""
        # While the source is silent no file ages: an archive that does not grow is all that exists.
        counted_from = min(now, newest_event_time(snapshots[0].files))
        archives, gone = [], []
        for (name, _archive), numbered, holds, replicas in snapshots:
            files = held_files_of(numbered, now)
            kept = tuple(replica_holds(name, files, replicas, limits))
            held = order_of(files)
            gone += [one for one in replicas if not one.connected and (one.generation, one.file) not in held]
            allowance = None
            if limits.keep_for_s is not None:
                pace = self._paces.setdefault(name, AgePurgeRate())
                total = sum(file.size_bytes for file in files)
                allowance = pace.allowance(total, limits.keep_for_s, elapsed_s)
            archives.append(ArchiveFacts(name, files, (*holds, *kept), allowance))
        free, floor = None, 0
        is_waited_for = any(hold.kind is HolderKind.MIRROR for one in archives for hold in one.holds)
        if limits.min_free_bytes is not None or is_waited_for:
            with contextlib.suppress(OSError):
                # In this order: room that is given back in between counts twice, for a moment, and removes nothing.
                lent = self._lent_bytes()
                free = self._layer.free_bytes(self._mirror.directory) + lent
                floor = min(self._layer.whole_bytes(self._mirror.directory) // _FLOOR_PART, _MOST_FLOOR)
        decision = decide(RetentionFacts(archives, counted_from, free, floor if is_waited_for else 0), limits)
        most = _MOST_A_PASS if not self._failures else 1
        orders = [] if self._failures >= _MOST_FAILURES else _orders(decision.removals[:most])
        totals = {one.name: sum(file.size_bytes for file in one.files) for one in archives}
        return _PassPlan(decision, orders, totals, free, gone)

    def _left_behind(self, replica: KnownReplica, *, is_said: bool) -> None:
        self.replicas.forget(replica)
        self.status.left_behind += 1
        if not is_said:
            return
        log.warning(
            "retention_left_replica_behind",
            what=f"{replica.named} needs {replica.file}, which is not in {archive_text(replica.view)} any more",
            server_id=replica.server_id,
            file=replica.file,
            advice="When it comes back it is refused with 1236: copy the data to it again.",
        )

    # --- removing ----------------------------------------------------------------------------------------------------

    async def _carry_out(self, plan: _PassPlan, limits: RetentionLimits) -> None:
        retained = {one.name: one for one in self._retained()}
        over, failed = set[str](), False
        for order in plan.orders:
            name = order[0].archive
            if name not in retained or name in over:
                continue
            reason = removal_reason(order[0].limit, limits, plan.free_bytes)
            try:
                removed = await self._purge(retained[name], order, reason, limits)
            except ArchiveMisuse:
                over.add(name)  # a purge by hand is running, or it is being closed: the next pass sees what is left
                continue
            except ArchiveWriteError as error:
                over.add(name)
                failed = True
                self._failed(error)
                continue
            self._count(removed, plan.totals[name])
            if len(removed) < len(order):
                over.add(name)
        for name in {order[0].archive for order in plan.orders} & retained.keys():
            await retained[name].archive.forget_emptied()
        if plan.orders and not failed:
            if self._failures:
                log.info("retention_removes_again")
            self._failures, self.status.failure = 0, ""

    async def _purge(
        self, retained: _RetainedArchive, order: Sequence[Removal], reason: str, limits: RetentionLimits
    ) -> list[Removal]:
        """Remove files of one generation, fewer if a reader came meanwhile. Return the removed ones. Raises: ArchiveError."""
        number = order[0].file.generation
        generation = next((one for one in retained.archive.all if one.number == number), None)
        if generation is None:
            return []
        holds = self._holds(retained, limits)
        if order[0].also_uncopied:
            holds = (hold for hold in holds if hold.kind is not HolderKind.MIRROR)
        first = min((hold.place for hold in holds), default=None)
        going = [one for one in order if first is None or one.file.place < first]
        if not going:
            return []
        await generation.purge([one.file.name for one in going], reason)
        return going

    def _count(self, removed: Sequence[Removal], total_bytes: int) -> None:
        if not removed:
            return
        limit, name = removed[0].limit.value, removed[0].archive
        size_bytes = sum(one.file.size_bytes for one in removed)
        self.status.removed_files[name, limit] += len(removed)
        self.status.removed_bytes[name, limit] += size_bytes
        if limit == "keep_for" and name in self._paces:
            self._paces[name].used(size_bytes, total_bytes)
        log.info(
            "retention_removed",
            archive=name or "mirror",
            limit=limit,
            files=len(removed),
            bytes=size_bytes,
            first=removed[0].file.name,
            last=removed[-1].file.name,
        )

    def _failed(self, error: ArchiveError) -> None:
        """Log a failure when it begins, and when it is given up."""
        self._failures += 1
        self.status.failures += 1
        self.status.failure = error.what
        ends = self._failures >= _MOST_FAILURES
        if ends or self._failures == 1:
            note = "it is not tried again before a SIGHUP or a restart" if ends else "it is tried again, with one file"
            log.error("retention_failed", **error.fields(), note=note)


def _order_key(one: Removal) -> tuple[str, int, Limit, bool]:
    return one.archive, one.file.generation, one.limit, one.also_uncopied


def _orders(removals: Sequence[Removal]) -> list[list[Removal]]:
    """Return what is removed in one order: of one generation of an archive, for one reason."""
    orders = []
    for _key, group in itertools.groupby(removals, key=_order_key):
        together = list(group)
        orders += [together[start : start + _MOST_A_PURGE] for start in range(0, len(together), _MOST_A_PURGE)]
    return orders
