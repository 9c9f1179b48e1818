"""Following a running source: attach, stream, and attach again, for as long as it takes."""

import asyncio
from typing import Final

import structlog

from protocol.errors import Malformed
from protocol.kernel.ingest import Ingest
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive, ArchivedFile, ArchiveState, SourceIdentity
from relay.config import ServerSource, StartPosition
from relay.upstream.buffers import BufferPool
from relay.upstream.connection import SourceAddress, SourceConnection, SourceFacts
from relay.upstream.errors import Trouble, UpstreamError
from relay.upstream.following import keep_following
from relay.upstream.intake import Intake
from relay.upstream.stream import DumpStream

log = structlog.get_logger()

# The dump command has four bytes for the offset.
_OFFSET_LIMIT: Final = 1 << 32
# Without a byte for so many heartbeat periods the link is dead.
_SILENT_PERIODS: Final = 3


class ServerUpstream:
    """The upstream side for `source.kind = "server"`. `run()` ends only by an error that a retry cannot cure."""

    def __init__(self, archive: Archive, settings: ServerSource, server_uuid: str) -> None:
        self._archive = archive
        self._settings = settings
        self._server_uuid = server_uuid
        self._pool = BufferPool()

    async def run(self) -> UpstreamError:
        """Follows the source. Returns the error that ended it for good; cancelling it stops it."""
        return await keep_following(self._archive, self._follow)

    async def _follow(self) -> None:
        place = await self._place_to_resume()
        self._pool.put_back()  # the writer has given back everything of the stream before
        settings = self._settings
        address = SourceAddress(
            settings.host, settings.port, settings.user, _password(settings), settings.connect_timeout_s
        )
        connection = await SourceConnection.open(address)
        try:
            facts = connection.facts
            self._check_identity(facts)
            place, start_file = await self._agree_on_start(connection, place)
            await connection.set_up_dump(settings.server_id, self._server_uuid, settings.heartbeat_period_s)
        except BaseException:
            connection.close()
            raise
        intake = Intake(
            self._archive,
            place,
            packets=True,
            on_violation=settings.on_violation,
            announced_checksum=facts.checksum,
        )
        held = self._archive.file(place.file) if place is not None else None
        if held is not None:
            intake.check_format = lambda ingest: check_same_file(held, ingest)
        streams: list[DumpStream] = []

        def take_over(transport: asyncio.Transport, early: bytes) -> DumpStream:
            stream = DumpStream(intake, self._pool, transport, early)
            streams.append(stream)
            return stream

        offset = place.offset if place is not None else 4
        connection.start_dump(start_file, offset, settings.server_id, take_over)
        stream = streams[0]
        log.info(
            "source_attached",
            source=f"{settings.host}:{settings.port}",
            flavour=facts.flavour,
            version=facts.version,
            server_id=facts.server_id,
            file=start_file or "oldest",
            offset=offset,
        )
        try:
            error = await self._watch(stream)
        finally:
            stream.close()
        raise error

    async def _watch(self, stream: DumpStream) -> UpstreamError:
        limit_s = _SILENT_PERIODS * self._settings.heartbeat_period_s
        loop = asyncio.get_running_loop()
        while True:
            done, _ = await asyncio.wait({stream.ended}, timeout=self._settings.heartbeat_period_s)
            if done:
                return stream.ended.result()
            silent_s = loop.time() - stream.heard_at
            if silent_s > limit_s and not stream.paused:
                text = f"no byte from the source for {silent_s:.1f} s, heartbeats were due every {limit_s / _SILENT_PERIODS:g} s"
                return UpstreamError(Trouble.NETWORK, text, name="source_silent")
            if self._archive.state is ArchiveState.FAILED and self._archive.failure is not None:
                failure = self._archive.failure
                return UpstreamError(Trouble.ARCHIVE, str(failure), failure.advice, name="archive_failed")

    async def _place_to_resume(self) -> Position | None:
        """The end of the archive's last whole transaction; what lies behind it is taken back first."""
        archive = self._archive
        if archive.state is ArchiveState.FAILED:
            return await archive.reopen_writer()
        return await archive.trim()

    def _check_identity(self, facts: SourceFacts) -> None:
        settings = self._settings
        where = f"{settings.host}:{settings.port}"
        if facts.server_id == settings.server_id:
            raise UpstreamError(
                Trouble.SETUP,
                f"source.server_id {settings.server_id} is the source's own server_id",
                "Give source.server_id a number that no server of this replication has.",
                name="server_id_clash",
            )
        known = self._archive.identity
        identity = SourceIdentity(
            flavour=facts.flavour, version=facts.version, server_id=facts.server_id, server_uuid=facts.server_uuid
        )
        if known is not None:
            advice = (
                "Correct source.host, or give this source a name (and so an archive directory) of its own: source.name."
            )
            if known.flavour != facts.flavour:
                text = f"{where} is a {facts.flavour} server; the archive holds binlogs of a {known.flavour} one"
                raise UpstreamError(Trouble.IDENTITY, text, advice, name="source_identity_changed")
            if known.server_uuid and facts.server_uuid and known.server_uuid != facts.server_uuid:
                text = f"{where} has server_uuid {facts.server_uuid}; the archive is of {known.server_uuid}"
                raise UpstreamError(Trouble.IDENTITY, text, advice, name="source_identity_changed")
            if not (known.server_uuid and facts.server_uuid) and known.server_id != facts.server_id:
                text = f"{where} has server_id {facts.server_id}; the archive is of server_id {known.server_id}"
                raise UpstreamError(Trouble.IDENTITY, text, advice, name="source_identity_changed")
        if known != identity:
            self._archive.set_identity(identity)

    async def _agree_on_start(
        self, connection: SourceConnection, place: Position | None
    ) -> tuple[Position | None, str]:
        """(where the stream goes on in the archive or None for a new file, file name for the dump command)."""
        if place is None:
            return None, await self._first_file(connection)
        binlogs = await connection.binlogs()
        if binlogs is None:
            return self._addressable(place), place.file
        sizes = dict(binlogs)
        names = [name for name, _ in binlogs]
        if place.file not in sizes:
            oldest, newest = (names[0], names[-1]) if names else ("none", "none")
            purged = names and _number(names[0]) > _number(place.file)
            raise UpstreamError(
                Trouble.POSITION_GONE if purged else Trouble.IDENTITY,
                f"the source no longer has {place.file}, where the archive ends at {place.offset}; it has {oldest} to {newest}",
                "Files between were purged: copy them from a backup into the archive and run `archive rebuild`, or start a new archive."
                if purged
                else "The source was reset (RESET MASTER) or is another one: start a new archive for it with a source.name of its own.",
                name="position_purged" if purged else "source_was_reset",
            )
        size = sizes[place.file]
        if size < place.offset:
            raise UpstreamError(
                Trouble.POSITION_GONE,
                f"the source came back shorter: its {place.file} ends at {size}, the archive holds it up to {place.offset}",
                f"The source lost its last {place.offset - size} bytes (a crash without sync_binlog=1), or was reset. Replicas of "
                "this relay have what it lost. Decide which side is right before anything else; the archive is untouched.",
                name="source_lost_its_tail",
            )
        at = names.index(place.file)
        if size == place.offset and place.offset >= _OFFSET_LIMIT and at + 1 < len(names):
            # A file that ends beyond 4 GiB cannot be asked for at its end; it is complete, so the next one follows.
            return None, names[at + 1]
        return self._addressable(place), place.file

    def _addressable(self, place: Position) -> Position:
        if place.offset >= _OFFSET_LIMIT:
            raise UpstreamError(
                Trouble.POSITION_GONE,
                f"{place} lies beyond 4 GiB, where a source cannot be asked to start by file and position",
                f"Run FLUSH BINARY LOGS on the source, stop the relay, copy the source's finished {place.file} over the archived "
                "one, run `binlog-relay archive rebuild` and start the relay: it goes on with the next file.",
                name="position_beyond_4gib",
            )
        return place

    async def _first_file(self, connection: SourceConnection) -> str:
        start = self._settings.start
        if isinstance(start, StartPosition):
            if start.position != 4:
                log.info("start_at_file_begin", file=start.file, asked=start.position, note="an archived file is whole")
            return start.file
        if start == "latest":
            return await connection.newest_binlog()
        binlogs = await connection.binlogs()
        return binlogs[0][0] if binlogs else ""


def check_same_file(held: ArchivedFile, ingest: Ingest) -> None:
    """Compares the format description of the stream with the archived file's. Raises: UpstreamError IDENTITY."""
    if ingest.created == held.created and ingest.server_id == held.server_id:
        return
    raise UpstreamError(
        Trouble.IDENTITY,
        f"{held.name} of the source was made at {ingest.created} by server_id {ingest.server_id}; "
        f"the archived one at {held.created} by server_id {held.server_id} (Unix seconds)",
        "The source was reset (RESET MASTER) or is another one: start a new archive for it with a source.name of its own.",
        name="source_was_reset",
    )


def _password(settings: ServerSource) -> str:
    try:
        return settings.password_text()
    except (OSError, KeyError) as error:
        text = f"the source's password cannot be read: {error}"
        raise UpstreamError(
            Trouble.AUTHENTICATION, text, "Check source.password_file or source.password_env."
        ) from error


def _number(name: str) -> int:
    try:
        return binlog_number(name)
    except Malformed:
        return -1
