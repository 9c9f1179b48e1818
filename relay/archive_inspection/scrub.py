"""The scrub: everything that is archived is read again, file by file and slowly, before it is needed.

A file is due when its last whole check is older than the interval. The scrub finds what `archive verify --deep` would find of it. Of
one that is packed on the disk the stored bytes are read, each frame and the binlog's digest; files in a bucket are not read here,
except for those that are known to be damaged: they may be there again.
"""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import structlog

from protocol.errors import RelayError
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.open_file import PackedLayer
from relay.archive.storage.archive_errors import NOT_OF_A_FILE, ArchiveDamaged, ArchiveUnavailable
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import SUM_SUFFIXES, FileLayer
from relay.archive.storage.storage_location import Tier
from relay.archive_inspection.file_check import check_file
from relay.process.background import begin_task
from relay.process.slow_thread import take_least_priority

log = structlog.get_logger(__name__)

SCRUB_FINDING: Final = "scrub_finding"
"""The ledger's kind for a fault outside of the binlogs themselves."""
_LEAST_RATE: Final = 64 << 10
"""The bytes a second, however small the archive."""
_LONGEST_REST_S: Final = 600.0
_LEAST_REST_S: Final = 1.0
_AGAIN_S: Final = 86400.0
"""The time after which a file that was found damaged, or could not be read, is checked again."""


@dataclass(slots=True)
class ScrubStatus:
    """state: "off", "resting", "called" for a check of everything, or the file that is being read.

    due: files whose check is due. checked_bytes, total_bytes: of all sealed files, those whose last check is not older than the
    interval, and all. oldest: time of the oldest check, 0: none. last: the file that was checked last, and what was found.
    """

    state: str = "off"
    due: int = 0
    checked_bytes: int = 0
    total_bytes: int = 0
    oldest: float = 0.0
    last: str = ""


class Scrub:
    """The scrub of all generations of one archive. On the event loop, except for what one slow thread reads.

    interval_s: within which each file is checked once; None: only when `hurry` is called.
    """

    def __init__(self, archive: Archive, interval_s: float | None, layer: FileLayer | None = None) -> None:
        self._archive = archive
        self._interval_s = interval_s
        self._layer = layer or FileLayer()
        self.status = ScrubStatus()
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive-scrub", initializer=take_least_priority)
        self._wake = asyncio.Event()
        self._all_since = 0.0
        """Files whose last check is older than this are due at once."""
        self._hurries = False
        """True if due files are read as fast as the disk delivers them."""
        self._tried: dict[tuple[int, int], float] = {}
        """The time when a file, by the numbers of its generation and its own, was last checked without being found sound."""
        self._rate = 0.0
        """The bytes a second; 0: without rests."""
        self._told: set[tuple[int, str, str]] = set()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start it."""
        self._task = begin_task(self._run(), "the archive's scrub")

    async def close(self) -> None:
        """End it, within one read of a megabyte."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    def hurry(self) -> int:
        """Check everything now, without rests; return how many bytes that are."""
        self._all_since = time.time()
        self._hurries = True
        self.status.state = "called"
        self._wake.set()
        return sum(file.stored_bytes for _generation, file in self._sealed())

    # --- the loop's side ---------------------------------------------------------------------------------------------

    def _sealed(self) -> list[tuple[Generation, ArchivedFile]]:
        return [
            (one, file) for one in self._archive.all for file in one.files if file.sealed and self._reads(one, file)
        ]

    def _reads(self, generation: Generation, file: ArchivedFile) -> bool:
        if file.tier is Tier.HOT or not isinstance(self._layer, PackedLayer):
            return file.tier is Tier.HOT
        # Reading a bucket again and again costs money: `archive verify --deep` does. Objects that seemed lost may be there again.
        return file.tier is Tier.COLD or generation.damaged_files.first(file.name) is not None

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            rest_s = await self._pass()
            self.status.state = "resting" if self._interval_s is not None else "off"
            try:
                await asyncio.wait_for(self._wake.wait(), rest_s)
            except TimeoutError:
                continue

    async def _pass(self) -> float:
        """Check what is due, the longest unchecked first; return for how long nothing is due."""
        sealed = self._sealed()
        times = await asyncio.get_running_loop().run_in_executor(self._thread, self._times, sealed)
        order = sorted(range(len(sealed)), key=times.__getitem__)
        now = time.time()
        oldest_allowed = self._due_before(now)
        due = [place for place in order if times[place] <= oldest_allowed]
        total = sum(file.stored_bytes for _generation, file in sealed)
        self.status.total_bytes = total
        self.status.checked_bytes = total - sum(sealed[place][1].stored_bytes for place in due)
        self.status.oldest = times[order[0]] if order else 0.0
        self.status.due = len(due)
        self._rate = max(total / self._interval_s, _LEAST_RATE) if self._interval_s is not None else 0.0
        for place in due:
            generation, file = sealed[place]
            if self._all_since > now:
                return 0.0  # all of it is wanted meanwhile
            if generation.file(file.name) is file:
                await self._check(generation, file)
            self.status.due -= 1
            self.status.checked_bytes += file.stored_bytes
        self._hurries = False
        if self._interval_s is None or not order:
            return _LONGEST_REST_S
        rest = [times[place] for place in order if times[place] > oldest_allowed]
        next_s = (rest[0] if rest else time.time()) + self._interval_s - time.time()
        return min(max(next_s, _LEAST_REST_S), _LONGEST_REST_S)

    def _due_before(self, now: float) -> float:
        return max(self._all_since, now - self._interval_s if self._interval_s is not None else 0.0)

    async def _check(self, generation: Generation, file: ArchivedFile) -> None:
        self.status.state = file.name

        place = file.place

        def check() -> list[ArchiveFinding]:
            if place is not None and isinstance(self._layer, PackedLayer):
                return list(self._layer.check_packed(generation.path(file.name), file, self._rest))
            return check_file(self._layer, generation.directory, file, self._rest)

        self._tried[generation.number, file.number] = time.time()
        try:
            findings = await asyncio.get_running_loop().run_in_executor(self._thread, check)
        except ArchiveUnavailable as error:
            log.warning("scrub_put_off", file=file.name, why=error.what, note="it is tried again in a day")
            return
        except OSError as error:
            if error.errno in NOT_OF_A_FILE:
                log.warning("scrub_put_off", file=file.name, why=error.strerror, note="it is tried again in a day")
                return
            findings = [ArchiveFinding(file.name, 0, f"it cannot be read: {error.strerror}", 0)]
        if generation.file(file.name) is not file or file.place is not place:
            return  # it was purged meanwhile, or moved, which reads it too
        self._tell(generation, file, findings)
        self.status.last = f"{file.name}: {findings[0].what if findings else 'as it was archived'}"

    def _tell(self, generation: Generation, file: ArchivedFile, findings: list[ArchiveFinding]) -> None:
        is_sound = True
        for finding in findings:
            offset = -1 if finding.offset is None else finding.offset
            key = (generation.number, finding.file, finding.what)
            if finding.boundary is not None:
                is_sound = False
                damage = ArchiveDamaged(finding.what, file=file.name, offset=offset, boundary=finding.boundary)
                generation.damaged_files.report(damage)
            elif key not in self._told:
                self._told.add(key)
                if finding.file.endswith(SUM_SUFFIXES):
                    generation.integrity.make_sums(file.name)
                generation.append_ledger(SCRUB_FINDING, finding.file, offset, finding.text)
        if is_sound:
            self._tried.pop((generation.number, file.number), None)
            generation.integrity.file_was_checked(file)

    # --- the thread's side -------------------------------------------------------------------------------------------

    def _rest(self, count: int) -> None:
        """Rest after `count` bytes were read. Raises: _Stopped."""
        rest_s = count / self._rate if self._rate else 0.0
        while rest_s > 0 and not self._hurries:
            if self._stopping.wait(min(rest_s, _LEAST_REST_S)):
                break
            rest_s -= _LEAST_REST_S
        if self._stopping.is_set():
            raise _Stopped

    def _times(self, sealed: list[tuple[Generation, ArchivedFile]]) -> list[float]:
        """Return when each was checked last; one that never was counts from its sealing on, which recorded its digest."""
        return [self._time(generation, file) for generation, file in sealed]

    def _time(self, generation: Generation, file: ArchivedFile) -> float:
        tried = self._tried.get((generation.number, file.number))
        if tried is not None or generation.damaged_files.first(file.name) is not None:
            again = (tried or 0.0) + _AGAIN_S
            return time.time() if time.time() < again and (tried or 0.0) >= self._all_since else 0.0
        known = generation.integrity.checks.get(file.number)
        if known is not None:
            return known
        try:
            stored_name = file.name if file.place is None else file.place.stored_name
            return (generation.directory / stored_name).stat().st_mtime
        except OSError:
            return 0.0


class _Stopped(RelayError):
    """The scrub ends."""
