"""The next file of the source from which a view is built, and the place in it: at a start, after a file, after a change of source."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import structlog

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.view.file_beginning import begun_checkpoint, made_beginning
from relay.view.first_numbers import FirstNumbers
from relay.view.generations.following_source import first_file, has_all_before, why_not
from relay.view.generations.view_generations import keep_made_from, made_from
from relay.view.previous_source import checkpoint_after_source, first_checkpoint, why_not_after_source
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.running.maker_thread import MakerThread
from relay.view.running.making_progress import MakingProgress
from relay.view.running.making_stops import MakingWaits, check_writing
from relay.view.stops import source_stops
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_disk import own_file
from relay.view.view_map import ViewMap

log = structlog.get_logger()


class SourcePart(NamedTuple):
    """A file that must be translated, or the rest of it. `generation` is the view's, `file` the source's; the view has it up to `end`;
    None: it is not begun."""

    generation: Generation
    file: ArchivedFile
    end: Position | None
    checkpoint: ViewCheckpoint


class SourceParts:
    """The parts for one view: `resumed`, then `after` each. It keeps `progress.followed` current. On the event loop.

    `numbers` decides whether a first number may be assigned. `moved` is set when the mirror has changed.
    """

    def __init__(
        self,
        mirror: Archive,
        archive: Archive,
        settings: ViewSettings,
        skips: Mapping[tuple[int, str], Mapping[int, int]],
        numbers: FirstNumbers,
        progress: MakingProgress,
        thread: MakerThread,
        moved: asyncio.Event,
    ) -> None:
        self._mirror = mirror
        self._archive = archive
        self._settings = settings
        self._skips = skips
        self._numbers = numbers
        self._progress = progress
        self._thread = thread
        self._moved = moved
        self._layer = FileLayer()

    async def resumed(self) -> SourcePart:
        """Return the part to continue with. Raises: MakingWaits, ViewDiskFailed, ArchiveError, OSError."""
        generation = self._archive.current
        if generation.state is GenerationState.FAILED:
            end = await generation.reopen_writer()
        else:
            end = await generation.trim()
        if end is None and generation.number == FIRST:
            return await self._beginning(generation)
        number = await self._thread.run(lambda: made_from(generation.directory, generation.number))
        followed = next((one for one in self._mirror.all if one.number == number), None)
        if followed is not None:
            self._progress.followed = followed
            if end is not None:
                self._progress.begins(Position(end.file, FIRST_EVENT))
        if end is None:
            file = first_file(followed) if followed is not None else None
            if file is None:
                text = f"the first file of generation {number} of the archive"
                raise MakingWaits("", FIRST_EVENT, source_stops.file_missing(text))
            name = file.name
            begun = await self._thread.run(lambda: begun_checkpoint(generation.directory, name))
            return SourcePart(generation, file, None, begun or first_checkpoint(b""))
        file = followed.file(end.file) if followed is not None else None
        if file is not None:
            return SourcePart(generation, file, end, await self._checkpoint(generation, end))
        later = next((one for one in self._mirror.all if one.number > number), None)
        if followed is None and later is not None and has_all_before(later, self._archive, self._settings):
            return await self._in_next_generation(generation, later, b"")
        raise MakingWaits(end.file, end.offset, source_stops.file_missing(end.file))

    async def after(self, part: SourcePart, made: ViewCheckpoint) -> SourcePart:
        """Return the part after a complete one; `made` is the end of that. Raises: MakingWaits, ViewDiskFailed, ArchiveError."""
        following = await self._following(part, made)
        if isinstance(following, Generation):
            return await self._in_next_generation(part.generation, following, made.rules)
        begun = part.generation.file(following.name)
        place = None if begun is None else Position(begun.name, begun.end)
        return SourcePart(part.generation, following, place, made.next_file())

    async def _beginning(self, generation: Generation) -> SourcePart:
        """Return the first part of a view that has nothing yet. Raises: MakingWaits."""
        start = self._settings.start
        file = await self._first_file(start.position if start is not None else None)
        if start is not None and start.position.offset > file.end:
            why = f"the file ends at {file.end}" if file.sealed else "what there is of the file ends before"
            reason = source_stops.start_not_archived(self._settings.name, start.position, why)
            raise MakingWaits(start.position.file, start.position.offset, reason)
        followed, begin = self._progress.followed.number, ViewCheckpoint.of_view(start)
        place, next_gno = Position(file.name, begin.source), begin.next_gno
        unsure = await self._thread.run(lambda: self._numbers.begin(followed, place, next_gno))
        if unsure is not None:
            raise MakingWaits(place.file, place.offset, unsure)
        await self._thread.run(lambda: self._keep_made_from(generation, followed, place, next_gno))
        return SourcePart(generation, file, None, begin)

    async def _first_file(self, wanted: Position | None) -> ArchivedFile:
        """Return the file of the source to begin with. Raises: MakingWaits."""
        while True:
            for generation in self._mirror.all:
                files = generation.files
                found = generation.file(wanted.file) if wanted is not None else files[0] if files else None
                if found is not None:
                    self._progress.followed = generation
                    return found
            files = self._mirror.all[0].files
            if wanted is not None and files:
                if files[0].number > binlog_number(wanted.file):
                    raise MakingWaits(wanted.file, wanted.offset, source_stops.file_missing(wanted.file))
                reason = source_stops.start_file_missing(self._settings.name, wanted, files[0].name)
                raise MakingWaits(wanted.file, wanted.offset, reason)
            self._moved.clear()
            await self._moved.wait()

    async def _following(self, part: SourcePart, made: ViewCheckpoint) -> ArchivedFile | Generation:
        """Return the source's next file, or the generation in which another continues. Raises: MakingWaits; ArchiveWriteError."""
        generation, file = self._progress.followed, part.file
        while True:
            self._moved.clear()
            check_writing(part.generation)
            later = self._mirror.after(generation)
            is_held = generation.file(file.name) is not None
            found = generation.next_file(file.name) if is_held else None
            if found is not None:
                return found
            if later is not None and (generation.ended or not self._mirror.holds(generation)):
                end = Position(file.name, file.end)
                reason = why_not(later, end, self._settings, made.next_gno)
                reason = reason or why_not_after_source(self._settings, made.rules)
                if reason is not None:
                    raise MakingWaits(file.name, file.end, reason)
                return later
            if not is_held:
                raise MakingWaits(file.name, file.end, source_stops.file_missing(file.name))
            self._progress.caught_up()
            await self._moved.wait()

    async def _in_next_generation(self, made: Generation, later: Generation, known: bytes) -> SourcePart:
        """Continue after the view's generation `made` with one that is built from `later` only. `known` is the rules' state.

        Raises: ArchiveError; ViewDiskFailed.
        """
        first, identity = later.files[0], later.identity
        assert identity is not None
        await made.trim()
        # `made` may have been only prepared when all of it was handed over: it is written now, and begins.
        await self._archive.discard_prepared()
        where = f"generation {later.number} of the source's archive"
        generation = await self._archive.prepare(identity, where, first.name)
        begin = Position(first.name, FIRST_EVENT)
        checkpoint = checkpoint_after_source(self._settings, known)
        await self._thread.run(
            lambda: self._keep_made_from(generation, later.number, begin, FIRST_GNO, checkpoint.rules)
        )
        log.info("view_follows_source", view=self._settings.name, generation=later.number, file=first.name)
        self._progress.followed, self._progress.source = later, begin
        return SourcePart(generation, first, None, checkpoint)

    def _keep_made_from(
        self, generation: Generation, source: int, first: Position, next_gno: int, known: bytes = b""
    ) -> None:
        """Write the generation's `made-from.json`. Blocking. Raises: ViewDiskFailed."""
        with own_file(generation.directory, self._layer, is_written=True):
            keep_made_from(generation.directory, source, first, next_gno, self._layer, known)

    async def _checkpoint(self, generation: Generation, end: Position) -> ViewCheckpoint:
        """Return where to begin, so that existing bytes are compared. If the map does not say it, the files before do.

        Raises: MakingWaits, ViewDiskFailed, ArchiveDamaged, OSError.
        """
        found = await self._thread.run(lambda: self._mapped(generation, end))
        if found is None:
            followed, skips = self._progress.followed, self._skips
            search = await self._thread.run(
                lambda: made_beginning(generation, end.file, followed, self._settings, skips, self._layer)
            )
            while not await self._thread.run(search.step):
                pass
            found = search.found
        if found is None:
            raise MakingWaits(end.file, FIRST_EVENT, source_stops.map_lost(self._settings.name, end.file))
        return found

    def _mapped(self, generation: Generation, end: Position) -> ViewCheckpoint | None:
        """Return the checkpoint from the map. Blocking. Raises: ViewDiskFailed."""
        path = generation.directory / end.file
        with own_file(path, self._layer):
            return ViewMap.read(path).before_view(end.offset)
