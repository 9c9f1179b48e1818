"""Follows the archive with one view: what is published there is translated into the view, until something cannot be translated."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError, ArchiveMisuse, ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.process.background import begin_task, tell_fault
from relay.process.growing_pause import growing_pause
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.dependencies.planned_tables import PlannedTables
from relay.view.dependencies.tables_file import TablesFile
from relay.view.file_maker import FileMaker, MakingBuffers, ViewDiffers
from relay.view.first_numbers import FirstNumbers
from relay.view.rules.group import GroupRules
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.older_tables import TablesBefore
from relay.view.rules.settings import ViewSettings
from relay.view.running.maker_thread import MakerThread
from relay.view.running.making_progress import MakingProgress, ViewStatus
from relay.view.running.making_stops import (
    AGAIN_S,
    LONGEST_PAUSE_S,
    MakingWaits,
    check_writing,
    is_same,
    lacks_table,
    only_decided,
    stop_by,
    stop_by_fault,
    tell_stop,
)
from relay.view.running.source_parts import SourcePart, SourceParts
from relay.view.stops import source_stops
from relay.view.stops.view_stop import ViewStop, ViewStopped, keep_stop
from relay.view.translate.kept_left_out import keep_left_out
from relay.view.translate.wait_counts import WaitCounts, keep_counts, kept_counts
from relay.view.translation import FileTranslation
from relay.view.view_disk import ViewDiskFailed, own_file

log = structlog.get_logger()

_AT_ONCE_BYTES: Final = 2 << 10
"""The most bytes that are translated on the event loop, where none is packed and the file has begun: a thread's turn takes longer.
Where rules look at each statement it takes a millisecond, and five where all are definitions."""
_MOST_QUEUED_BYTES: Final = 8 << 20
_KEEP_WAITS_S: Final = 10.0
_ADOPT_S: Final = 1.0
_RECORDED_WITHIN_S: Final = 5.0
"""The wait, in seconds, for a table that the source may just be reporting, before the stop is reported."""


class ViewMaker:
    """Builds one view on the event loop, except for the translation of large parts. Call `begin`, then `close`.

    `rules` returns new rules, without a state, which may ask for tables from before the archive. An unforeseen exception is a stop,
    too, and retried.
    """

    def __init__(
        self,
        mirror: Archive,
        archive: Archive,
        settings: ViewSettings,
        rules: Callable[[TablesBefore], GroupRules],
        skips: Mapping[tuple[int, str], Mapping[int, int]],
    ) -> None:
        self._mirror = mirror
        self._archive = archive
        self._settings = settings
        self._rules = rules
        self._skips = skips
        self._work = f"making the view {settings.name}"
        self._layer = FileLayer()
        self._buffers = MakingBuffers()
        self._thread = MakerThread()
        self._moved = asyncio.Event()
        self._decided = asyncio.Event()
        self._deciders = 0
        self._stands = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._maker: FileMaker | None = None
        self._waits_kept = 0
        """The number of transactions in the stored counts; the next attribute is when they were stored."""
        self._waits_kept_at = 0.0
        self._left_out_kept: LeftOut | None = None
        self._recorded = (0, 0)
        """The state of the source's recorded tables at the last look; the next attribute is when they are looked at again."""
        self._adopts_at = 0.0
        self._tables: tuple[int, PlannedTables] | None = None
        """The source's tables, with the number of the view's generation; None: not read, or not wanted."""
        self._before: InitialSnapshot | None = None
        """The snapshot of the source's generation that the view is built from."""
        self._asks_before = False
        """True if a table is wanted that may be recorded: the next attempt looks it up, which takes time."""
        self._lacks = ("", 0, 0.0)
        """The file and offset at which a table was not known, and the time since then."""
        self._group: tuple[int, int] | None = None
        """The group in the source's file that the last attempt translated when it ended."""
        self._kept: ViewStop | str | None = "not known"
        """The stop that is stored in the view's directory."""
        self._faults = 0
        self._has_told_statements = False
        self._progress = MakingProgress(mirror, archive, settings.name)
        self._numbers = FirstNumbers(mirror, archive, settings)
        self._parts = SourceParts(
            mirror, archive, settings, skips, self._numbers, self._progress, self._thread, self._moved
        )

    def begin(self) -> None:
        """Build the view from now on."""
        self._mirror.watch(self._moved.set)
        self._task = begin_task(self._run(), self._work)

    async def close(self) -> None:
        """End; the caller closes the view's archive."""
        self._mirror.unwatch(self._moved.set)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._let_go()
        await self._thread.run(self._keep_waits)
        if not self._numbers.is_noted and self._archive.current.end is not None:
            await self._thread.run(self._numbers.note)
        self._thread.end()

    async def stands_within(self, longest_s: float) -> bool:
        """Return whether it is stopped at `status.stop` without an attempt in progress, now or after at most `longest_s` seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stands.wait(), longest_s)
        return self._stands.is_set()

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Prevent attempts while an operator decides about the stop, and make one at once afterwards."""
        self._deciders += 1
        try:
            yield
        finally:
            self._deciders -= 1
            self._decided.set()

    @property
    def status(self) -> ViewStatus:
        """The current status."""
        return self._progress.status

    # --- one attempt after the other ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._attempt()
            except Exception as error:
                await self._stand_faulted(error)

    async def _attempt(self) -> None:
        """Try until an operator decides, or it is time to try again. Raises: any unforeseen exception."""
        while self._deciders:
            self._decided.clear()
            await self._decided.wait()
        self._decided.clear()  # a later decision may be too late for this attempt: then another one follows at once
        self._stands.clear()
        try:
            await self._follow()
        except ArchiveMisuse:
            raise
        except (ViewStopped, ViewDiffers, ViewDiskFailed, ArchiveError, OSError) as error:
            if isinstance(error, ArchiveDamaged):
                self._progress.followed.damaged_files.report(error)
            if lacks_table(error) and await self._may_be_told(error):
                return
            self._stand_still(stop_by(error, self._settings.name, self._progress.source))
            await self._keep_stop()
            await self._until_decided(None if only_decided(error) else AGAIN_S)
        finally:
            await self._let_go()

    async def _may_be_told(self, error: ViewStopped) -> bool:
        """Return whether the missing table may be recorded, or is about to be: the source is asked while its stream is read."""
        stop = error.stop
        if self._lacks[:2] != (stop.file, stop.offset):
            self._lacks = stop.file, stop.offset, time.monotonic()
        if not self._asks_before:
            self._asks_before = True
            return True
        if time.monotonic() - self._lacks[2] >= _RECORDED_WITHIN_S:
            return False
        await self._until_decided(1.0)
        return True

    async def _stand_faulted(self, error: Exception) -> None:
        """Stop the view alone: mirror and other views are not affected. The same fault in the same place is reported once."""
        progress, name = self._progress, self._settings.name
        stop = stop_by_fault(error, name, progress.source, self._group)._replace(generation=progress.followed.number)
        is_known = is_same(stop, progress.stop)
        if not is_known:
            tell_fault("task_failed", error, task=self._work)
        self._faults = self._faults + 1 if is_known else 1
        self._stand_still(stop)
        await self._keep_stop()
        await self._until_decided(growing_pause(self._faults, AGAIN_S, LONGEST_PAUSE_S, random.Random()))

    async def _until_decided(self, at_most_s: float | None) -> None:
        """Wait until an operator decides, or it is time to try again."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._decided.wait()
        except TimeoutError:
            pass

    def _stand_still(self, stop: ViewStop) -> None:
        progress = self._progress
        stop = stop._replace(generation=progress.followed.number)
        self._stands.set()
        if not is_same(stop, progress.stop):
            progress.stop = stop
            tell_stop(stop, self._settings.name, self._archive)

    async def _keep_stop(self) -> None:
        """Store the stop for commands beside the relay. If the disk refuses it, it is stored with the next stop."""
        stop = self._progress.stop
        if stop == self._kept:
            return
        try:
            await self._thread.run(lambda: keep_stop(self._archive.directory, stop, self._layer))
        except OSError as error:
            log.info("view_stop_not_kept", view=self._settings.name, why=str(error), note="the next attempt says more")
            return
        self._kept = stop

    async def _let_go(self) -> None:
        await self._thread.until_idle()
        maker, self._maker, self._group = self._maker, None, None
        if maker is not None:
            self._group = maker.translation.group
            maker.close()
        try:
            await self._archive.discard_prepared()
        except ArchiveError as error:
            log.info("prepared_generation_not_closed", why=str(error), note="the next attempt says more")

    # --- following --------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Build until something prevents it. Raises: ViewStopped, ViewDiffers, ViewDiskFailed, ArchiveError, OSError."""
        part = await self._parts.resumed()
        while True:
            generation = part.generation
            try:
                generation.watch_failure(self._write_failed)
                part = await self._make_part(part)
            finally:
                generation.unwatch_failure(self._write_failed)

    async def _make_part(self, part: SourcePart) -> SourcePart:
        """Build all of the part; return the next one."""
        self._progress.begins(Position(part.file.name, part.checkpoint.source))
        self._maker = maker = await self._thread.run(lambda: self._made_for(part))
        if part.end is None:
            self._begin_file(part)
        await self._make_file(part.generation, maker, part.file)
        following = await self._parts.after(part, maker.checkpoint())
        maker.close()
        self._maker = None
        return following

    def _write_failed(self, _: ArchiveWriteError) -> None:
        """Wake up, as a write failed: it must be seen at once, and not with the source's next transaction."""
        self._moved.set()

    def _begin_file(self, part: SourcePart) -> None:
        generation, known = part.generation, self._progress.followed.identity
        if known is not None and generation.identity != known:
            generation.set_identity(known)
        generation.start_file(part.file.name)
        log.info("view_file_begins", view=self._settings.name, file=part.file.name)

    async def _make_file(self, generation: Generation, maker: FileMaker, file: ArchivedFile) -> None:
        """Build until the file is complete."""
        progress, is_begun = self._progress, False
        while not maker.is_done:
            self._moved.clear()
            check_writing(generation)
            if not self._numbers.is_noted:
                await self._thread.run(self._numbers.note)
            end = progress.followed.served_end(file)
            sealed = file.sealed and not file.damaged and end == file.end
            await self._adopt_tables(generation, maker, file.name)
            left = end - maker.translation.offset
            is_quick = (
                is_begun and left <= _AT_ONCE_BYTES and not maker.is_comparing and not maker.translation.looks_back
            )
            if is_quick and not maker.reads_packed and not self._asks_before and not maker.has_packed(end):
                self._may_look_up(False)
                made = maker.make(end, sealed=sealed, ends_cut=file.cut)
            else:
                self._may_look_up(True)
                made = await self._thread.run(lambda: maker.make(end, sealed=sealed, ends_cut=file.cut))  # noqa: B023
                if left > _AT_ONCE_BYTES:
                    progress.catches_up()
            is_begun = True
            if made.runs and not self._numbers.is_begun:
                await self._thread.run(self._numbers.begun)
            self._count(maker)
            if self._tables is not None and self._tables[1].unsaved:
                await self._thread.run(lambda: self._save_tables(generation))
            for run in made.runs:
                generation.append(run)
            progress.source = Position(file.name, maker.translation.offset)
            if maker.translation.cut_at is not None:
                log.info(
                    "view_left_out_cut_group", view=self._settings.name, file=file.name, offset=maker.translation.cut_at
                )
                maker.translation.cut_at = None
            self._tell_statements(maker)
            self._note_left_out(maker)
            if made.runs:
                self._asks_before = False
                progress.goes_on()
                await self._keep_stop()
            while generation.queued_bytes > _MOST_QUEUED_BYTES:
                await _written(generation)
            if self._waits_due():
                await self._thread.run(self._keep_waits)
            if made.is_idle and not maker.is_done:
                if file.damaged and end == file.end:
                    raise ArchiveDamaged("not all of it could be recovered", file=file.name, offset=end, boundary=end)
                if end < file.end and end == progress.followed.served_end(file):
                    raise MakingWaits(file.name, end, source_stops.gap_in_archive(file.name))
                if not self._moved.is_set():
                    progress.goes_on()
                    progress.caught_up()
                    await self._keep_stop()
                    await self._until_moved()

    def _may_look_up(self, may: bool) -> None:
        """Set whether tables from before the archive may be looked up: not on the event loop."""
        if self._before is not None:
            self._before.may_ask = may

    def _tell_statements(self, maker: FileMaker) -> None:
        """Report once that the source writes statements, which need more trust than rows."""
        offset = maker.translation.first_statement
        if offset is None or self._has_told_statements:
            return
        self._has_told_statements = True
        log.warning(
            "view_has_statements",
            view=self._settings.name,
            file=maker.translation.name,
            offset=offset,
            advice="MySQL runs them, and may do otherwise what the view cannot tell: binlog_format = ROW at the MariaDB writes rows "
            "(docs/VIEWS.md, Statements of a MariaDB)",
        )

    async def _until_moved(self) -> None:
        """Wait until the archive has more. Meanwhile the last counts are stored."""
        if self._lacks_kept:
            try:
                async with asyncio.timeout(max(0.0, self._waits_kept_at + _KEEP_WAITS_S - time.monotonic())):
                    await self._moved.wait()
                return
            except TimeoutError:
                await self._thread.run(self._keep_waits)
        await self._moved.wait()

    def _count(self, maker: FileMaker) -> None:
        waits = self._progress.waits
        if waits is not None:
            waits.add(maker.counts)
            maker.counts = WaitCounts()

    def _note_left_out(self, maker: FileMaker) -> None:
        left_out = maker.translation.left_out
        if left_out is not None:
            self._progress.left_out = left_out

    @property
    def _lacks_kept(self) -> bool:
        """True if there are counts that are not stored yet."""
        waits, left_out = self._progress.waits, self._progress.left_out
        return (waits is not None and waits.groups != self._waits_kept) or left_out != self._left_out_kept

    def _waits_due(self) -> bool:
        return time.monotonic() - self._waits_kept_at >= _KEEP_WAITS_S and self._lacks_kept

    def _keep_waits(self) -> None:
        """Store the counts for commands beside the relay, and for the next start. In the thread; later if the disk refuses it."""
        if not self._lacks_kept:
            return
        waits, left_out = self._progress.waits, self._progress.left_out
        self._waits_kept_at = time.monotonic()
        with suppress(OSError):
            if waits is not None and waits.groups != self._waits_kept:
                groups = waits.groups
                keep_counts(self._archive.directory, waits, self._layer)
                self._waits_kept = groups
            if left_out is not None and left_out != self._left_out_kept:
                keep_left_out(self._archive.directory, left_out, self._layer)
                self._left_out_kept = left_out

    def _tables_for(self, part: SourcePart) -> PlannedTables | None:
        """Return what is known of the source's tables, where that is wanted. In the thread. Raises: ViewDiskFailed."""
        if self._settings.dependencies == "serial":
            return None
        generation, name = part.generation, part.file.name
        place = (binlog_number(name), part.checkpoint.source)
        if self._progress.waits is None:
            with own_file(generation.directory, self._layer):
                self._progress.waits = kept_counts(self._archive.directory) or WaitCounts()
        with self._own_tables(generation) as kept:
            if self._tables is None or self._tables[0] != generation.number:
                self._tables = generation.number, kept.open(name, place)
            oldest = self._progress.followed.files[0].name
            self._tables = generation.number, kept.without_purged(self._tables[1], oldest)
            return self._tables[1]

    async def _adopt_tables(self, generation: Generation, maker: FileMaker, file: str) -> None:
        """Take new records of the relay where wanted definitions are missing: they are valid from here on."""
        translation = maker.translation
        tables = self._tables[1] if self._tables is not None else None
        is_between = translation.group is None and not maker.is_comparing and not translation.looks_back
        if tables is None or not tables.lacks_some or not is_between or time.monotonic() < self._adopts_at:
            return
        self._adopts_at = time.monotonic() + _ADOPT_S
        place = (binlog_number(file), translation.offset)

        def adopt() -> bool:
            with self._own_tables(generation) as kept:
                recorded = kept.recorded_now()
                is_new = recorded != self._recorded
                self._recorded = recorded
                if is_new:
                    kept.adopt(tables, file, place)
                return is_new

        if await self._thread.run(adopt):
            translation.tables_changed()

    def _save_tables(self, generation: Generation) -> None:
        """Store the unsaved lines. In the thread. Raises: ViewDiskFailed."""
        if self._tables is not None:
            with self._own_tables(generation) as kept:
                kept.save(self._tables[1])

    @contextmanager
    def _own_tables(self, generation: Generation) -> Iterator[TablesFile]:
        source = self._progress.followed.directory
        kept = TablesFile(generation.directory, self._settings.name, source, self._layer)
        with own_file(kept.path, self._layer, is_written=True):
            yield kept

    def _made_for(self, part: SourcePart) -> FileMaker:
        """Return the maker of the part's file. In the thread."""
        mirror, name = self._progress.followed, part.file.name
        source = mirror.open_shared(part.file)
        try:
            tables = self._tables_for(part)
            self._before = before = InitialSnapshot(mirror.directory)
            translation = FileTranslation(
                name,
                source.read_into,
                self._settings,
                self._rules(before),
                part.checkpoint,
                self._skips.get((mirror.number, name), {}),
                own_gtids=part.generation.number != FIRST,
            )
            translation.tables = tables
            written = part.generation.directory / name
            written_to = part.end.offset if part.end is not None else FIRST_EVENT
            with own_file(written, self._layer):
                return FileMaker(translation, source, written, written_to, self._buffers, self._layer)
        except BaseException:
            source.close()
            raise


async def _written(generation: Generation) -> None:
    """Wait until some of what was handed over is written. Raises: ArchiveWriteError."""
    moved = asyncio.Event()
    generation.watch(moved.set)
    try:
        check_writing(generation)
        async with asyncio.timeout(1.0):
            await moved.wait()
    except TimeoutError:
        pass
    finally:
        generation.unwatch(moved.set)
