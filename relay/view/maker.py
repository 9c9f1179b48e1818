"""Follows the archive with one view: what is published there becomes the view's, until something cannot be translated."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar, cast

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.generation import Generation, GenerationState
from relay.archive.read.file_reads import OpenFile
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError, ArchiveMisuse, ArchiveWriteError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.process.background import begin_task
from relay.view.file_maker import FileMaker, MakingBuffers, ViewDiffers
from relay.view.generations.following_source import first_file, has_all_before, why_not
from relay.view.generations.source_breaks import file_gone, gap_in_archive
from relay.view.generations.view_generations import keep_made_from, made_from
from relay.view.rules.group import GroupRules, StopReason
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.translation import FileTranslation, ViewStopped
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import ViewMap

log = structlog.get_logger()
T = TypeVar("T")

_AT_ONCE_BYTES: Final = 4 << 10
"""So much is made on the event loop: a thread's turn takes longer. Where rules look at each statement it is a millisecond."""
_MOST_QUEUED_BYTES: Final = 8 << 20
_AGAIN_S: Final = 10.0
_PROGRESS_S: Final = 10.0
_FIRST_OF_GENERATION: Final = ViewCheckpoint.of_file(FIRST_GNO, b"")
"""Behind a change of source nothing is known of what was before: what is made depends on the binlogs of that source alone."""
STOPPED: Final = "view_stopped"
"""The ledger's kind, in the view's archive, of a group that could not be translated."""


class ViewStop(NamedTuple):
    """Where a view stands stopped, in the source's file, and why. group_stop: where what cannot be kept ends; `offset`: unknown.
    generation: of the source's archive, whose file it is."""

    file: str
    offset: int
    group_stop: int
    reason: StopReason
    time: float
    generation: int = FIRST


class ViewStatus(NamedTuple):
    """source, view: up to where it was made; None: nothing is. behind_bytes: of the source's files, published and not made.
    source_generation: of the source's archive, that `source` is of."""

    source: Position | None
    view: Position | None
    behind_bytes: int
    stop: ViewStop | None
    source_generation: int | None = None


class _FilePart(NamedTuple):
    """A file that is to be made, or the rest of it. generation: of the view; file: the source's; end: up to where the view has
    it, None: it is not begun."""

    generation: Generation
    file: ArchivedFile
    end: Position | None
    checkpoint: ViewCheckpoint


class _Waiting(Exception):
    """Nothing can be done until the archive has changed."""

    def __init__(self, file: str, offset: int, reason: StopReason) -> None:
        super().__init__(reason.text)
        self.stop = ViewStop(file, offset, offset, reason, time.time())


class ViewMaker:
    """All on the event loop, but for the translation of what is much. `begin`, then `close`.

    rules: makes the rules, which know nothing yet. on_fault: what nobody foresaw ended it.
    """

    def __init__(
        self,
        mirror: Archive,
        archive: Archive,
        settings: ViewSettings,
        rules: Callable[[], GroupRules],
        skips: Mapping[tuple[int, str], Mapping[int, int]],
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        self.stop: ViewStop | None = None
        self._mirror = mirror
        self._archive = archive
        self._settings = settings
        self._rules = rules
        self._skips = skips
        self._on_fault = on_fault
        self._layer = FileLayer()
        self._buffers = MakingBuffers()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="view-maker")
        self._moved = asyncio.Event()
        self._decided = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._maker: FileMaker | None = None
        self._working: asyncio.Future[object] | None = None
        self._source: Position | None = None
        self._followed = mirror.all[0]
        """The generation of the source's archive that is being made the view's."""
        self._told_at = 0.0
        self._was_behind = False

    def begin(self) -> None:
        """Makes the view from now on."""
        self._mirror.watch(self._moved.set)
        self._task = begin_task(self._run(), f"making the view {self._settings.name}", self._on_fault)

    async def close(self) -> None:
        """Ends; the view's archive is the caller's to close."""
        self._mirror.unwatch(self._moved.set)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._let_go()
        self._thread.shutdown(wait=False)

    def decided(self) -> None:
        """Somebody skipped a group, or repaired a file: tries again at once."""
        self._decided.set()

    @property
    def status(self) -> ViewStatus:
        """As it is now."""
        of = self._followed.number if self._source is not None else None
        return ViewStatus(self._source, self._archive.current.end, self._behind(), self.stop, of)

    def _behind(self) -> int:
        made, behind = self._source, 0
        for generation in reversed(self._mirror.all):
            for file in reversed(generation.files):
                if made is not None and generation is self._followed and file.name == made.file:
                    return behind + max(0, file.end - made.offset)
                behind += file.end - FIRST_EVENT
        return behind

    # --- one attempt after the other ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except ViewStopped as error:
                self._note(ViewStop(error.file, error.offset, error.group_stop, error.reason, time.time()))
                await self._until_decided(None)
            except ViewDiffers as error:
                self._note(_differs(error, self._settings.name))
                await self._until_decided(None)
            except ArchiveDamaged as error:
                self._followed.damaged_files.report(error)
                self._note(_damage(error))
                await self._until_decided(_AGAIN_S)
            except ArchiveMisuse:
                raise
            except ArchiveError as error:
                self._note(_unwritable(error, self._source))
                await self._until_decided(_AGAIN_S)
            except OSError as error:
                self._note(_unreadable(error))
                await self._until_decided(_AGAIN_S)
            except _Waiting as waiting:
                self._note(waiting.stop)
                await self._until_decided(_AGAIN_S)
            finally:
                await self._let_go()

    async def _until_decided(self, at_most_s: float | None) -> None:
        """Until somebody decided something, or it is time to try again."""
        self._decided.clear()
        try:
            async with asyncio.timeout(at_most_s):
                await self._decided.wait()
        except TimeoutError:
            pass

    def _note(self, stop: ViewStop) -> None:
        stop = stop._replace(generation=self._followed.number)
        before, self.stop = self.stop, stop
        if before is not None and (before.file, before.offset, before.reason) == (stop.file, stop.offset, stop.reason):
            return
        reason = stop.reason
        log.error(
            "view_stopped",
            view=self._settings.name,
            file=stop.file,
            offset=stop.offset,
            reason=reason.name,
            what=reason.text,
            replica_error=reason.error or None,
            advice=reason.advice or None,
        )
        generation = self._archive.current
        if generation.state is GenerationState.OPEN:
            facts = {"reason": reason.name, "replica_error": reason.error, "group_stop": stop.group_stop}
            details = json.dumps({**facts, "generation": stop.generation})
            generation.note_once(STOPPED, stop.file, stop.offset, f"{reason.text} {reason.advice}".strip(), details)

    async def _let_go(self) -> None:
        working, self._working = self._working, None
        if working is not None:
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()
        maker, self._maker = self._maker, None
        if maker is not None:
            maker.close()
        try:
            await self._archive.discard_prepared()
        except ArchiveError as error:
            log.info("prepared_generation_not_closed", why=str(error), note="the next attempt says more")

    # --- following --------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Until something stands in the way. Raises: ViewStopped, _Waiting, ArchiveError, OSError."""
        part = await self._resumed()
        while True:
            generation = part.generation
            try:
                generation.watch_failure(self._write_failed)
                part = await self._make_part(part)
            finally:
                generation.unwatch_failure(self._write_failed)

    async def _make_part(self, part: "_FilePart") -> "_FilePart":
        """All of it; what follows."""
        generation = part.generation
        self._maker = maker = await self._in_thread(lambda: self._made_for(part))
        if part.end is None:
            self._begin_file(part)
        await self._make_file(generation, maker, part.file)
        checkpoint = maker.checkpoint()
        following = await self._following(part, checkpoint.next_gno)
        maker.close()
        self._maker = None
        if isinstance(following, Generation):
            return await self._in_next_generation(generation, following)
        begun = generation.file(following.name)
        place = None if begun is None else Position(begun.name, begun.end)
        after = ViewCheckpoint.of_file(checkpoint.next_gno, checkpoint.rules)
        return _FilePart(generation, following, place, after)

    def _write_failed(self, _: ArchiveWriteError) -> None:
        """What was handed over did not get into the files: seen at once, and not with the source's next transaction."""
        self._moved.set()

    @staticmethod
    def _check_writing(generation: Generation) -> None:
        """Raises: ArchiveWriteError where it failed."""
        if generation.state is GenerationState.FAILED and generation.failure is not None:
            raise generation.failure

    def _begin_file(self, part: "_FilePart") -> None:
        generation, known = part.generation, self._followed.identity
        if known is not None and generation.identity != known:
            generation.set_identity(known)
        generation.start_file(part.file.name)
        log.info("view_file_begins", view=self._settings.name, file=part.file.name)

    async def _resumed(self) -> "_FilePart":
        """Where to go on. Raises: _Waiting, ArchiveError, OSError."""
        generation = self._archive.current
        if generation.state is GenerationState.FAILED:
            end = await generation.reopen_writer()
        else:
            end = await generation.trim()
        if end is None and generation.number == FIRST:
            return await self._beginning(generation)
        number = await self._in_thread(lambda: made_from(generation.directory, generation.number))
        followed = next((one for one in self._mirror.all if one.number == number), None)
        if followed is not None:
            self._followed = followed
        if end is None:
            file = first_file(followed) if followed is not None else None
            if file is None:
                text = f"the first file of generation {number} of the archive"
                raise _Waiting("", FIRST_EVENT, file_gone(text))
            return _FilePart(generation, file, None, _FIRST_OF_GENERATION)
        file = followed.file(end.file) if followed is not None else None
        if file is not None:
            return _FilePart(generation, file, end, await self._in_thread(lambda: self._checkpoint(generation, end)))
        later = next((one for one in self._mirror.all if one.number > number), None)
        if followed is None and later is not None and has_all_before(later, self._archive, self._settings):
            return await self._in_next_generation(generation, later)
        raise _Waiting(end.file, end.offset, file_gone(end.file))

    async def _beginning(self, generation: Generation) -> "_FilePart":
        """Nothing is made yet. Raises: _Waiting."""
        start = self._settings.start
        file = await self._first_file(start.position if start is not None else None)
        await self._in_thread(lambda: keep_made_from(generation.directory, self._followed.number, self._layer))
        after = ViewCheckpoint.of_file(start.next_gno if start is not None else FIRST_GNO, b"")
        return _FilePart(generation, file, None, after)

    async def _first_file(self, wanted: Position | None) -> ArchivedFile:
        """The file of the source to begin with. Raises: _Waiting."""
        while True:
            for generation in self._mirror.all:
                files = generation.files
                found = generation.file(wanted.file) if wanted is not None else files[0] if files else None
                if found is not None:
                    self._followed = generation
                    return found
            files = self._mirror.all[0].files
            if wanted is not None and files and files[0].number > binlog_number(wanted.file):
                raise _Waiting(wanted.file, wanted.offset, file_gone(wanted.file))
            self._moved.clear()
            await self._moved.wait()

    async def _following(self, part: "_FilePart", next_gno: int) -> ArchivedFile | Generation:
        """The source's next file, or the generation in which another source goes on. Raises: _Waiting; ArchiveWriteError."""
        generation, file = self._followed, part.file
        while True:
            self._moved.clear()
            self._check_writing(part.generation)
            later = self._mirror.after(generation)
            is_held = generation.file(file.name) is not None
            found = generation.next_file(file.name) if is_held else None
            if found is not None:
                return found
            if later is not None and (generation.ended or not self._mirror.holds(generation)):
                reason = why_not(later, Position(file.name, file.end), self._settings, next_gno)
                if reason is not None:
                    raise _Waiting(file.name, file.end, reason)
                return later
            if not is_held:
                raise _Waiting(file.name, file.end, file_gone(file.name))
            self._caught_up()
            await self._moved.wait()

    async def _in_next_generation(self, made: Generation, later: Generation) -> "_FilePart":
        """The view goes on behind its generation `made` with one that is made of nothing but `later`. Raises: ArchiveError; OSError."""
        first, identity = later.files[0], later.identity
        assert identity is not None
        await made.trim()
        # Where `made` was only prepared when all of it was handed over: it is written now, and begins.
        await self._archive.discard_prepared()
        where = f"generation {later.number} of the source's archive"
        generation = await self._archive.prepare(identity, where, first.name)
        await self._in_thread(lambda: keep_made_from(generation.directory, later.number, self._layer))
        log.info("view_follows_source", view=self._settings.name, generation=later.number, file=first.name)
        self._followed, self._source = later, Position(first.name, FIRST_EVENT)
        return _FilePart(generation, first, None, _FIRST_OF_GENERATION)

    async def _make_file(self, generation: Generation, maker: FileMaker, file: ArchivedFile) -> None:
        """Until the file is complete."""
        while not maker.is_done:
            self._moved.clear()
            self._check_writing(generation)
            end = self._followed.served_end(file)
            sealed = file.sealed and not file.damaged and end == file.end
            left = end - maker.translation.offset
            if left <= _AT_ONCE_BYTES and not maker.is_comparing:
                made = maker.make(end, sealed=sealed, ends_cut=file.cut)
            else:
                made = await self._in_thread(lambda: maker.make(end, sealed=sealed, ends_cut=file.cut))  # noqa: B023
                self._tell_progress()
            for run in made.runs:
                generation.append(run)
            self._source = Position(file.name, maker.translation.offset)
            if maker.translation.cut_at is not None:
                log.info(
                    "view_left_out_cut_group", view=self._settings.name, file=file.name, offset=maker.translation.cut_at
                )
                maker.translation.cut_at = None
            if made.runs:
                self._goes_on()
            while generation.queued_bytes > _MOST_QUEUED_BYTES:
                await self._written(generation)
            if made.is_idle and not maker.is_done:
                if file.damaged and end == file.end:
                    raise ArchiveDamaged("not all of it could be recovered", file=file.name, offset=end, boundary=end)
                if end < file.end and end == self._followed.served_end(file):
                    raise _Waiting(file.name, end, gap_in_archive(file.name))
                if not self._moved.is_set():
                    self._goes_on()
                    self._caught_up()
                    await self._moved.wait()

    def _goes_on(self) -> None:
        if self.stop is not None:
            log.info("view_goes_on", view=self._settings.name, made_to=str(self._source or ""))
            self.stop = None

    async def _written(self, generation: Generation) -> None:
        moved = asyncio.Event()
        generation.watch(moved.set)
        try:
            self._check_writing(generation)
            async with asyncio.timeout(1.0):
                await moved.wait()
        except TimeoutError:
            pass
        finally:
            generation.unwatch(moved.set)

    def _tell_progress(self) -> None:
        now = time.monotonic()
        if now - self._told_at < _PROGRESS_S:
            return
        behind = self._behind()
        if self._told_at or behind:
            log.info("view_catches_up", view=self._settings.name, made_to=str(self._source or ""), behind_bytes=behind)
        self._told_at = now
        self._was_behind = True

    def _caught_up(self) -> None:
        if self._was_behind:
            self._was_behind = False
            log.info("view_caught_up", view=self._settings.name, made_to=str(self._source or ""))

    # --- in the thread ------------------------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._thread, work)
        self._working = cast("asyncio.Future[object]", future)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._working = None

    def _checkpoint(self, generation: Generation, end: Position) -> ViewCheckpoint:
        """Where to begin, so that what is there is compared with what is made. Blocking."""
        found = ViewMap.read(generation.directory / end.file).before_view(end.offset)
        if found is None:
            text = f"{end.file}.map of the view is not there or damaged"
            advice = (
                f'Run "binlog-relay view rebuild {self._settings.name}" with the relay stopped: the view is made again.'
            )
            raise _Waiting(end.file, FIRST_EVENT, StopReason("view_map_lost", text, 0, advice))
        return found

    def _made_for(self, part: "_FilePart") -> FileMaker:
        mirror, name = self._followed, part.file.name
        source = OpenFile(self._layer, mirror.directory / name, mirror.summed.of(part.file))
        try:
            translation = FileTranslation(
                name,
                source.read_into,
                self._settings,
                self._rules(),
                part.checkpoint,
                self._skips.get((mirror.number, name), {}),
                own_gtids=part.generation.number != FIRST,
            )
            return FileMaker(
                translation,
                source,
                part.generation.directory / name,
                part.end.offset if part.end is not None else FIRST_EVENT,
                self._buffers,
                self._layer,
            )
        except BaseException:
            source.close()
            raise


def _damage(error: ArchiveDamaged) -> ViewStop:
    reason = StopReason("archive_damaged", error.what, 0, error.advice)
    return ViewStop(error.file or "", error.offset or 0, error.offset or 0, reason, time.time())


def _differs(error: ViewDiffers, name: str) -> ViewStop:
    advice = f'Run "binlog-relay view rebuild {name}" with the relay stopped. Its replicas go on where what they have is the same.'
    return ViewStop(
        error.file, error.offset, error.offset, StopReason("view_differs", f"{error}.", 0, advice), time.time()
    )


def _unwritable(error: ArchiveError, made_to: Position | None) -> ViewStop:
    """made_to: of the source, what was handed over."""
    reason = StopReason("view_write_failed", error.what, 0, error.advice)
    file, offset = (made_to.file, made_to.offset) if made_to is not None else ("", 0)
    return ViewStop(file, offset, offset, reason, time.time())


def _unreadable(error: OSError) -> ViewStop:
    text = f"{error.filename or 'the archive'}: {error.strerror or error}"
    return ViewStop(
        "", 0, 0, StopReason("archive_unreadable", text, 0, "It is tried again every 10 seconds."), time.time()
    )
