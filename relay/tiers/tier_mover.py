"""Moves the files of the mirror by `[archive.tiers]`, one after the other, in a thread of low priority; a process packs them.

    every 2 s        rules -> what is due -> step of a move in the thread -> the loop takes it over -> the old one is removed
    bucket away      the same again after a pause that grows to 10 minutes; reported once in log and ledger, and once when it is back

A view's own files are not moved: they can be rebuilt, and a view is rebuilt by removing its directory.
"""

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog

from relay.archive.archive import Archive
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import file_row
from relay.archive.catalog.purge_intent import remove_files
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, UUID_NAME, FileLayer
from relay.archive.storage.storage_location import Tier
from relay.disk.file_calls import read_file
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import ObjectStoreError, PlaceRefused
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import OfArchive
from relay.packed.packing import PackOptions
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyFailed, CopyStopped
from relay.packing_process.packer import Packer, ThreadPacker
from relay.process.background import begin_task
from relay.process.daemon_pool import DaemonPool
from relay.process.growing_pause import growing_pause
from relay.process.slow_thread import take_least_priority
from relay.retention.decision import Place
from relay.retention.file_times import held_files_of, newest_event_time
from relay.tiers.compression_priority import CompressionPriority
from relay.tiers.file_move import FileMover, MovedFile
from relay.tiers.missing_objects import all_gone, forget_gone, remove_gone
from relay.tiers.tier_rules import TierFile, TierRules, wanted_moves
from relay.tiers.tier_status import TierStatus

log = structlog.get_logger(__name__)

_PASS_S: Final = 2.0
_SHARE: Final = 100.0
"""Determining what is due takes at most one of so many parts of the thread's time."""
_FIRST_PAUSE_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 600.0
_END_S: Final = 5.0
_DISK_AGAIN_S: Final = 60.0
_FILE_AGAIN_S: Final = 3600.0
"""The time after which a file that could not be moved for a reason of its own is retried."""
BUCKET_FAILS: Final = "bucket_fails"
BUCKET_BACK: Final = "bucket_back"
MOVE_FAILED: Final = "move_failed"
_KEPT: Final = "All files stay where they are, and are served; they move when the bucket answers again."
_KEPT_HERE: Final = (
    "Nothing is moved there and nothing is removed there: all files stay on this relay's disk, and are served."
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OwnBucket:
    """The relay's bucket. stop: shared with the store, it ends its tries. ownership: no other process writes there.

    keeps_purged: it is the mirror's, in which what is purged stays.
    """

    stop: threading.Event
    ownership: Ownership
    keeps_purged: bool = False


class TierMover:
    """`begin`, then `close`; on the event loop, except for the moves themselves.

    stays_from: the first file, by the numbers of generation and file, that must stay where it is, with all after it.
    """

    def __init__(
        self,
        archive: Archive,
        rules: TierRules,
        options: PackOptions,
        *,
        keys: KeyRing | None = None,
        store: ObjectStore | None = None,
        packer: Packer | None = None,
        stays_from: Callable[[], Place | None] = lambda: None,
        own: OwnBucket | None = None,
    ) -> None:
        self.status = TierStatus(bucket=None if store is None else store.counts)
        self._archive = archive
        self._rules = rules
        self._store = store
        self._packer = packer or ThreadPacker(FileLayer())
        self._layer = self._packer.layer
        self._stays_from = stays_from
        self._stopping = threading.Event() if own is None else own.stop
        self._keeps_purged = own is not None and own.keeps_purged
        self._mover = FileMover(
            archive.directory,
            CompressionSettings(self._packer, options, keys),
            store=store,
            stop=self._stopping.is_set,
            ownership=None if own is None else own.ownership,
            beside_mirror=self._keeps_purged,
        )
        self._urgency = CompressionPriority(self._layer, archive.directory)
        self._thread = DaemonPool(1, "archive-tiers", take_least_priority)
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._plan_s = 0.0
        self._looked_for_gone = -1
        """The number of purged bytes at the last search for objects that must be removed from the bucket."""
        self._bucket_failures = 0
        self._bucket_again_s = 0.0
        """The time of the next attempt, by the monotonic clock."""
        self._disk_again_s = 0.0
        self._file_again_s: dict[tuple[int, str], float] = {}
        self._told: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Start it."""
        self._task = begin_task(self._run(), "the mover of binlogs between tiers")

    async def close(self) -> None:
        """End it between two frames; a half-finished move is taken back at the next start, or repeated.

        A call to the bucket that hangs is not waited for: when it returns nothing more is done.
        """
        self._stopping.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_END_S)
            self._task.cancel()
        await asyncio.to_thread(self._packer.close)
        self._thread.close()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self.run_once()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(_PASS_S, self._plan_s * _SHARE))

    # --- a pass ------------------------------------------------------------------------------------------------------

    async def run_once(self) -> None:
        """Do all moves that are due, and all removals from the bucket. What cannot be moved is reported, and retried later."""
        await self._remove_gone()
        moved = True
        while moved and not self._stopping.is_set():
            moved = False
            for generation, file, to in await self._due():
                if self._stopping.is_set():
                    break
                if self._waits(generation, file, to) or not self._is_free(generation, file):
                    continue
                moved |= await self._try(generation, file, to)
        await self._in_thread(self._packer.close)
        self.status.state = "resting"
        self.status.last_pass = time.time()

    async def _due(self) -> list[tuple[Generation, ArchivedFile, Tier]]:
        """Return the moves that the rules want now. With 100,000 files that is too much work for the loop."""
        snapshot = [(generation, tuple(generation.files)) for generation in self._archive.all]
        stays_from = self._stays_from()
        began = time.monotonic()
        moves = await self._in_thread(lambda: self._plan(snapshot, stays_from))
        self._plan_s = time.monotonic() - began
        return moves

    def _plan(
        self, snapshot: Sequence[tuple[Generation, Sequence[ArchivedFile]]], stays_from: Place | None
    ) -> list[tuple[Generation, ArchivedFile, Tier]]:
        """Return the plan, in the thread."""
        now = time.time()
        numbered = [(generation.number, files) for generation, files in snapshot]
        timed = held_files_of(numbered, now)
        places = [(generation, file) for generation, files in snapshot for file in files]
        files = [
            TierFile(
                *(held.generation, held.name, file.tier, file.end, file.stored_bytes, held.time),
                may_move=self._is_free(generation, file) and (stays_from is None or held.place < stays_from),
            )
            for (generation, file), held in zip(places, timed, strict=True)
        ]
        self._count(files)
        # While the source is silent no file ages, and a wrong clock moves nothing.
        moves = wanted_moves(files, self._rules, min(now, newest_event_time(numbered)))
        self.status.waiting_files = len(moves)
        self._urgency.wait((move.file.generation, move.file.name) for move in moves if move.to is Tier.COLD)
        by_place = {(generation.number, file.name): (generation, file) for generation, file in places}
        return [(*by_place[move.file.generation, move.file.name], move.to) for move in moves]

    def _is_free(self, generation: Generation, file: ArchivedFile) -> bool:
        """Return whether it may move at all."""
        return (
            file.sealed
            and generation.file(file.name) is file
            and file is not generation.held.newest
            and not file.damaged
            and file.digest is not None
            and generation.damaged_files.first(file.name) is None
            and generation.state is not GenerationState.CLOSED
        )

    def _waits(self, generation: Generation, file: ArchivedFile, to: Tier) -> bool:
        """Return whether it is too early for another try."""
        now = time.monotonic()
        if to is Tier.OBJECT and (self._store is None or now < self._bucket_again_s):
            return True
        return now < self._disk_again_s or now < self._file_again_s.get((generation.number, file.name), 0.0)

    async def _try(self, generation: Generation, file: ArchivedFile, to: Tier) -> bool:
        """Try the move; return whether it was done."""
        self.status.state = f"{file.name} -> {to}"
        try:
            try:
                return await self._move(generation, file, to)
            finally:
                self._mover.packing.give_room_back()
        except CopyStopped:
            return False
        except ObjectStoreError as error:
            if not self._stopping.is_set():
                self._bucket_failed(error)
        except (CopyFailed, OSError) as error:
            self._file_failed(generation, file, error)
        return False

    def _count(self, files: Iterable[TierFile]) -> None:
        counts = [{str(tier): 0 for tier in Tier} for _ in range(3)]
        for file in files:
            for count, amount in zip(counts, (1, file.stored_bytes, file.plain_bytes), strict=True):
                count[file.tier] += amount
        self.status.files, self.status.stored_bytes, self.status.plain_bytes = counts

    # --- a move ------------------------------------------------------------------------------------------------------

    async def _move(self, generation: Generation, file: ArchivedFile, to: Tier) -> bool:
        """Do the move; return whether it was wanted to the end."""
        began = time.monotonic()
        old = file.place
        root, number = self._archive.directory, generation.number
        moved = await self._in_thread(lambda: _moved_file(root, generation.directory, file, number))
        paused_s = 0.0
        if to is Tier.COLD:
            is_urgent = partial(self._urgency.is_urgent, generation.number, file.name)
            urgent = await self._in_thread(is_urgent)
            await asyncio.to_thread(self._packer.begin, urgent=urgent)
            place, paused_s = await self._in_thread(
                lambda: self._mover.pack(moved, urgent=urgent, becomes_urgent=is_urgent)
            )
        else:
            assert old is not None
            place = await self._in_thread(lambda: self._mover.upload(moved, old))
            self._bucket_answers()
        if generation.file(file.name) is not file:
            # It was purged meanwhile, and the purge did not see the files that were created since.
            await self._in_thread(lambda: remove_files(self._layer, generation.directory, [file.name]))
            self._looked_for_gone = -1
            return False
        if generation.damaged_files.first(file.name) is not None or generation.state is GenerationState.CLOSED:
            await self._in_thread(lambda: self._mover.take_back(moved, place, old))
            return False
        generation.file_moved(file, place)
        await self._in_thread(lambda: self._mover.drop(moved, place))
        self.status.moved_files[to] += 1
        self.status.moved_bytes[to] += file.end
        log.info(
            "file_moved",
            file=file.name,
            tier=str(to),
            bytes=file.end,
            stored_bytes=place.stored_bytes,
            took_s=round(time.monotonic() - began, 3),
            paused_s=paused_s,
        )
        return True

    async def _remove_gone(self) -> None:
        purged = self._archive.purged_bytes
        if purged == self._looked_for_gone and not self.status.gone_files:
            return  # a directory of 100,000 files is not searched in vain
        try:
            gone = await self._in_thread(partial(all_gone, self._layer, self._archive.directory))
        except OSError as error:
            log.warning("gone_not_removed", file="", why=str(error), note="it is tried again")
            return
        self._looked_for_gone, self.status.gone_files = purged, len(gone)
        asks_bucket = self._store is not None and not self._keeps_purged
        if asks_bucket and time.monotonic() < self._bucket_again_s:
            return
        for directory, name in gone:
            if self._stopping.is_set():
                return
            try:
                done = await self._in_thread(partial(self._gone, directory, name))
            except CopyStopped:
                return
            except ObjectStoreError as error:
                self._bucket_failed(error)
                return
            except OSError as error:
                log.warning("gone_not_removed", file=name, why=str(error), note="it is tried again")
                return
            self.status.gone_files -= int(done)
            if done and asks_bucket:
                self._bucket_answers()

    def _gone(self, directory: Path, name: str) -> bool:
        """Remove a purged binlog, in the thread; return whether nothing is left to do."""
        if self._keeps_purged:
            return forget_gone(self._layer, directory, name)
        self._mover.hold_place()
        return remove_gone(self._layer, directory, self._mover.key_of, self._store, name)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    # --- failures ----------------------------------------------------------------------------------------------------

    def _bucket_failed(self, error: ObjectStoreError) -> None:
        self._bucket_failures += 1
        self.status.failures += 1
        self.status.failure = error.text
        pause_s = growing_pause(self._bucket_failures, _FIRST_PAUSE_S, _LONGEST_PAUSE_S, random.Random())
        self._bucket_again_s = time.monotonic() + pause_s
        if self._bucket_failures == 1:
            self.status.bucket_failing_since = time.time()
            kept = _KEPT_HERE if isinstance(error, PlaceRefused) else _KEPT
            log.error("bucket_fails", what=error.text, advice=f"{error.advice} {kept}".strip())
            self._ledger(BUCKET_FAILS, f"{error.text}. {kept}")

    def _bucket_answers(self) -> None:
        if not self._bucket_failures:
            return
        away_s = time.time() - self.status.bucket_failing_since
        self._bucket_failures, self._bucket_again_s, self.status.bucket_failing_since = 0, 0.0, 0.0
        self.status.failure = ""
        log.info("bucket_back", away_s=round(away_s))
        self._ledger(BUCKET_BACK, f"The bucket answers again, after {away_s:.0f} s.")

    def _file_failed(self, generation: Generation, file: ArchivedFile, error: CopyFailed | OSError) -> None:
        self.status.failures += 1
        what = error.what if isinstance(error, CopyFailed) else f"{error.strerror or error}"
        self.status.failure = f"{file.name}: {what}"
        if isinstance(error, CopyFailed):
            self._file_again_s[generation.number, file.name] = time.monotonic() + _FILE_AGAIN_S
        else:  # a full disk is full for every file
            self._disk_again_s = time.monotonic() + _DISK_AGAIN_S
        if (file.name, what) in self._told:
            return
        self._told.add((file.name, what))
        advice = error.advice if isinstance(error, CopyFailed) else "It is tried again; the file stays where it is."
        log.error("move_failed", file=file.name, what=what, advice=advice or None)
        if isinstance(error, CopyFailed):
            with contextlib.suppress(ArchiveError):
                if error.damage is not None:
                    generation.damaged_files.report(error.damage)
                generation.append_ledger(MOVE_FAILED, file.name, -1, f"{what}. It stays where it is. {advice}".strip())

    def _ledger(self, kind: str, text: str) -> None:
        self._archive.current.append_ledger(kind, "", -1, text)


def _moved_file(root: Path, directory: Path, file: ArchivedFile, generation: int) -> MovedFile:
    """Return the file with its GTIDs by the catalog, which cannot be read quickly from a packed file. root: of the archive. Blocking.

    Raises: CopyFailed.
    """
    try:
        catalog = Catalog.open_read_only(directory / CATALOG_NAME)
        try:
            gtids = catalog.gtids_of(file.number)
        finally:
            catalog.close()
    except (ArchiveError, sqlite3.Error) as error:
        raise CopyFailed(f"the catalog cannot be read: {error}") from error
    if gtids is None:
        raise CopyFailed("the catalog does not know its GTIDs yet")
    assert file.digest is not None
    uuid = ""
    with contextlib.suppress(OSError, UnicodeError):  # an archive that no relay has opened has none
        uuid = read_file(root / UUID_NAME).decode("ascii").strip()
    whose = OfArchive(uuid, generation)
    return MovedFile(directory, file.name, file.end, file.digest, file_row(file), gtids, whose)
