"""A directory of binlogs as the source: those of a source that no longer exists, or that are copied from one while they grow."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import structlog

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT, FLAGS, MAGIC, TYPE_AT, event_size
from protocol.kernel import codes
from protocol.position import binlog_number
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.binlog_file.broken import wrong_magic
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.binlog_file.file_end import is_incomplete
from relay.binlog_file.head import LONGEST_FORMAT, BinlogStart, read_start
from relay.config import DirectorySource, StartPosition
from relay.upstream.binlog_directory import BinlogDirectory
from relay.upstream.retry_loop import keep_trying
from relay.upstream.server_source import check_same_file
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_status import SourceLink
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import BUFFER_BYTES, ReceiveBuffer, ReceiveBufferPool

log = structlog.get_logger()


class DirectoryUpstream:
    """The upstream side for `source.kind = "directory"`. `run()` ends only by an error that a retry cannot cure."""

    def __init__(self, generation: Generation, settings: DirectorySource, link: SourceLink) -> None:
        self._generation = generation
        self._link = link
        self._settings = settings
        self._directory = BinlogDirectory(settings.path)
        self._pool = ReceiveBufferPool()
        self._returned = asyncio.Event()
        self._pool.on_return = self._returned.set

    async def run(self) -> UpstreamError:
        """Follow the directory. Return the error that ended it for good; cancelling it stops it."""
        return await keep_trying(lambda: self._generation, self._attempt, self._link)

    async def _attempt(self) -> None:
        try:
            await self._follow()
        except OSError as error:
            text = f"{error.filename or self._settings.path}: {error.strerror}"
            advice = "Check source.path and its permissions."
            raise UpstreamError(FailureKind.NETWORK, text, advice, name="unreadable") from error

    async def _follow(self) -> None:
        generation = self._generation
        place = await (generation.reopen_writer() if generation.state is GenerationState.FAILED else generation.trim())
        self._pool.put_back()  # The writer has given back all of the previous attempt
        names = await asyncio.to_thread(self._directory.names)
        intake = Intake(
            generation, place, packets=False, on_violation=self._settings.on_violation, tally=self._link.tally
        )
        if place is None:
            name = await self._first_name(names)
        else:
            name = place.file
            if name not in names:
                raise UpstreamError(
                    FailureKind.POSITION_GONE,
                    f"{self._settings.path} has no {name}, where the archive ends at {place.offset}",
                    "Copy it there again, or start a new archive with a source.name of its own.",
                    name="position_purged",
                )
        self._link.attached()
        log.info("source_attached", source=str(self._settings.path), file=name, offset=place.offset if place else 4)
        held = generation.file(name) if place is not None else None
        while True:
            name = await self._follow_file(intake, name, held)
            held = None

    async def _first_name(self, names: list[str]) -> str:
        start = self._settings.start
        if isinstance(start, StartPosition):
            if start.file not in names:
                text = f"{self._settings.path} has no {start.file}"
                raise UpstreamError(FailureKind.POSITION_GONE, text, "Correct source.start.", name="position_unknown")
            return start.file
        while not names:
            log.info("waiting_for_first_binlog", path=str(self._settings.path))
            await asyncio.sleep(max(1.0, self._settings.poll_interval_s))
            names = await asyncio.to_thread(self._directory.names)
        return names[-1] if start == "latest" else names[0]

    async def _follow_file(self, intake: Intake, name: str, held: ArchivedFile | None) -> str:
        """Take the file in and wait at its end for more; return the next file's name when there is one."""
        path = self._settings.path / name
        fd = await self._open(intake, name, held)
        self._link.answered()
        try:
            offset = intake.ingest.position
            if held is not None and held.sealed and (await asyncio.to_thread(os.fstat, fd)).st_size > offset:
                raise UpstreamError(
                    FailureKind.POSITION_GONE,
                    f"{path} has grown beyond {offset}, where the archive finished it: the file after it came too early",
                    'Run "binlog-relay archive rebuild", which opens the newest file again, and start the relay again.',
                    name="file_grew_after_its_end",
                )
            buffer = await self._free_buffer()
            fill = 0
            while True:
                count = await asyncio.to_thread(os.preadv, fd, [buffer.view[fill:BUFFER_BYTES]], offset + fill)
                if count == 0:
                    end = await asyncio.to_thread(
                        self._look_at_end, name, fd, buffer.view[fill:BUFFER_BYTES], offset + fill
                    )
                    count = end.count
                    if end.copy is not None:
                        # rsync does this: the file that is open here gets nothing more.
                        os.close(fd)
                        fd, fill = end.copy, 0
                        continue
                    if end.following is None:
                        self._link.is_read_through |= self._is_archived(name, intake.ingest.boundary)
                        await self._pause()
                        continue
                    if count == 0:
                        if end.is_incomplete:
                            raise _incomplete(path, offset + fill)
                        if fill:
                            raise _cut_event(name, offset, fill)
                        intake.begin_file(end.following)
                        return end.following
                fill += count
                start = 0
                while True:
                    status = intake.take(buffer, start, fill)
                    start = intake.ingest.consumed
                    if status == codes.NEED_MORE:
                        break
                offset += start
                left = fill - start
                if buffer.pending:
                    following_buffer = await self._free_buffer()
                    following_buffer.view[:left] = buffer.view[start:fill]
                    buffer = following_buffer
                elif start:
                    buffer.view[:left] = bytes(buffer.view[start:fill])
                fill = left
        finally:
            self._pool.put_back()
            os.close(fd)

    async def _open(self, intake: Intake, name: str, held: ArchivedFile | None) -> int:
        """Return the file's descriptor, once its format description exists and was read."""
        path = self._settings.path / name
        following: str | None = None
        while True:
            opening = asyncio.get_running_loop().run_in_executor(None, _opened, path)
            try:
                fd, size, start = await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close_opened)
                raise
            try:
                if held is not None and size < intake.ingest.position:
                    raise _shorter(path, size, intake.ingest.position)
                if self._take_head(intake, start, name, held):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            seen, following = following, await asyncio.to_thread(self._directory.after, name)
            if following is not None and following == seen:
                raise _cut_event(name, FIRST_EVENT, max(0, size - FIRST_EVENT))
            await self._pause()

    def _take_head(self, intake: Intake, start: BinlogStart, name: str, held: ArchivedFile | None) -> bool:
        """Compare the format description with what is known; return False if it is not complete yet."""
        wrong = wrong_magic(start.magic) if len(start.magic) == len(MAGIC) else None
        if wrong is not None and wrong[0] == "file_encrypted":
            text = f"{name} {wrong[1]} (binlog_encryption)"
            advice = "Attach to the server itself: its dump stream is in clear. Or decrypt the copy with its keyring."
            raise UpstreamError(FailureKind.SETUP, text, advice, name="binlog_encrypted")
        if wrong is not None:
            raise UpstreamError(
                FailureKind.SETUP, f"{name} {wrong[1]}", "Take it out of the directory.", name="not_a_binlog"
            )
        event = start.event
        if not start.is_whole:
            is_other = len(event) > TYPE_AT and event[TYPE_AT] != EventType.FORMAT_DESCRIPTION
            if is_other or event_size(event) > LONGEST_FORMAT:
                text = f"{name} does not start with a format description (binlogs before MySQL 5.0 are not relayed)"
                raise UpstreamError(
                    FailureKind.SETUP, text, 'Look at it with "binlog-relay events".', name="format_unsupported"
                )
            return False
        if intake.file is None:
            intake.begin_file(name)
        if not intake.ingest.read_format(bytearray(event), 0, len(event)):
            text = f"{name}: the format description is not one this relay reads"
            raise UpstreamError(
                FailureKind.SETUP, text, 'Look at it with "binlog-relay events".', name="format_unsupported"
            )
        if held is not None:
            check_same_file(held, intake.ingest)
        known = self._generation.identity
        described = decode_first_event(event)[1]
        identity = SourceIdentity(
            flavour=described.flavour,
            version=described.server_version.removesuffix("-log"),
            server_id=intake.ingest.server_id,
            server_uuid=known.server_uuid if known is not None else None,
        )
        if known is not None and (known.flavour != identity.flavour or known.server_id != identity.server_id):
            raise UpstreamError(
                FailureKind.IDENTITY,
                f"{name} is of a {identity.flavour} server with server_id {identity.server_id}; the archive is of "
                f"{known.flavour}, server_id {known.server_id}",
                "Give these binlogs a source.name (and so an archive directory) of their own.",
                name="source_identity_changed",
            )
        if known != identity:
            self._generation.set_identity(identity)
        return True

    def _is_archived(self, name: str, boundary: int) -> bool:
        end = self._generation.end
        return end is not None and end.file == name and end.offset >= boundary

    async def _pause(self) -> None:
        """Wait until the next look. Raises: the archive's failure; what it dropped comes after what was read here."""
        await asyncio.sleep(self._settings.poll_interval_s)
        generation = self._generation
        if generation.state is GenerationState.FAILED and generation.failure is not None:
            raise generation.failure

    async def _free_buffer(self) -> ReceiveBuffer:
        while True:
            buffer = self._pool.take()
            if buffer is not None:
                return buffer
            self._returned.clear()
            await self._returned.wait()

    def _look_at_end(self, name: str, fd: int, rest: memoryview, offset: int) -> "_End":
        """Return what follows `offset`, where the file ended just now. Blocking. Raises: UpstreamError; OSError.

        The next file is looked for before the file itself is read once more: if nothing more came, its end is final.
        """
        path = self._settings.path / name
        size = os.fstat(fd).st_size
        if size < offset:
            raise _shorter(path, size, offset)
        following = self._directory.after(name)
        copy = _replacement(path, fd)
        if copy is not None or following is None:
            return _End(0, copy, following)
        count = os.preadv(fd, [rest], offset)
        return _End(count, None, following, not count and self._is_incomplete(name, fd, offset, following))

    def _is_incomplete(self, name: str, fd: int, end: int, following: str) -> bool:
        """Return whether the file lacks events that preceded the start of the next one in its series. Blocking. Raises: OSError."""
        base, number = name.rpartition(".")[0], binlog_number(name)
        if name in self._settings.unended_files or (following.rpartition(".")[0], binlog_number(following)) != (
            base,
            number + 1,
        ):
            return False
        with open(self._settings.path / following, "rb") as opened:
            return is_incomplete(DescriptorBytes(fd), end, DescriptorBytes(opened.fileno()))


@dataclass(frozen=True, slots=True)
class _End:
    """The continuation at the end of a file: `count` more bytes of it, another copy of it (a descriptor), the next file's name. With
    `is_incomplete` that next one shows that more must follow."""

    count: int
    copy: int | None
    following: str | None
    is_incomplete: bool = False


def _opened(path: Path) -> tuple[int, int, BinlogStart]:
    """Return a descriptor, the file's size, and its start. Blocking. Raises: OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return fd, os.fstat(fd).st_size, read_start(DescriptorBytes(fd))
    except BaseException:
        os.close(fd)
        raise


def _close_opened(opening: asyncio.Future[tuple[int, int, BinlogStart]]) -> None:
    """Close a descriptor that is no longer wanted."""
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result()[0])


def _replacement(path: Path, fd: int) -> int | None:
    """Return a descriptor of the file now at `path` if it is not the one open as `fd`; None if it is, or there is none.

    Blocking. Raises: UpstreamError IDENTITY if another binlog is there now.
    """
    try:
        copy = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if os.path.sameopenfile(fd, copy):
        os.close(copy)
        return None
    # These are time, type, server_id, length and position of the format description; its flags differ while a file is in use.
    before_flags = FLAGS.start
    if os.pread(copy, before_flags, FIRST_EVENT) != os.pread(fd, before_flags, FIRST_EVENT):
        os.close(copy)
        text = f"{path} was replaced by another binlog of the same name"
        advice = (
            "The source was reset or is another one: give these binlogs a source.name (and so an archive) of their own."
        )
        raise UpstreamError(FailureKind.IDENTITY, text, advice, name="source_was_reset")
    return copy


def _shorter(path: Path, size: int, had: int) -> UpstreamError:
    text = f"{path} became shorter: {size} bytes, {had} were read"
    return UpstreamError(FailureKind.POSITION_GONE, text, "Decide which copy is right.", name="source_lost_its_tail")


def _incomplete(path: Path, end: int) -> UpstreamError:
    text = f"{path} ends at {end} without a Rotate or Stop, and its server was not started behind it: more is to come"
    advice = (
        "It is tried again: wait, if the file is being copied; otherwise copy it again. If there is no more of it anywhere, name it in "
        "source.unended_files, and start the relay again."
    )
    return UpstreamError(FailureKind.NETWORK, text, advice, name="file_incomplete")


def _cut_event(name: str, offset: int, left: int) -> UpstreamError:
    text = f"{name} ends inside the event at offset {offset} ({left} bytes of it are there), and another file follows"
    advice = (
        "The source crashed while it wrote, or the copy is cut: copy the file again, or cut it back to that offset."
    )
    return UpstreamError(FailureKind.STREAM_BROKEN, text, advice, name="file_truncated")
