"""Following a running source: attach, stream, and attach again, for as long as it takes."""

import asyncio
from dataclasses import dataclass
from typing import Final

import pymysql.err
import structlog

from protocol.kernel.ingest import Ingest
from protocol.position import Position
from relay.archive.archive import Archive, ArchivedFile, ArchiveState, SourceIdentity
from relay.config import ServerSource, StartGtid
from relay.upstream.acknowledging import Acknowledger
from relay.upstream.buffers import BufferPool
from relay.upstream.connection import BinlogsWithheld, SourceConnection, SourceFacts
from relay.upstream.errors import TERMINAL, Trouble, UpstreamError
from relay.upstream.following import keep_following
from relay.upstream.gtid_check import lacking, lacks_transactions
from relay.upstream.gtid_start import file_for_gtids
from relay.upstream.gtid_watch import GtidWatch
from relay.upstream.identity import (
    check_replicas,
    check_source,
    earlier_registration,
    keep_registration,
    own_registration,
)
from relay.upstream.intake import Intake
from relay.upstream.opening import open_source
from relay.upstream.schema_watch import HeldFile, SchemaRecording, SchemaWatch
from relay.upstream.source_gtids import SourceGtids, keep_source_gtids, kept_part, read_source_gtids
from relay.upstream.starting_place import agree_on_start, beyond_the_command
from relay.upstream.status import SourceLink
from relay.upstream.stream import DumpStream
from relay.upstream.tail_check import compare_tail

log = structlog.get_logger()

# Without a byte for so many heartbeat periods the link is dead.
_SILENT_PERIODS: Final = 3
# So long it is waited at the end for what was noted of the source's tables; what is not written is found again.
_SCHEMA_WRITTEN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Attached:
    """A connection that is ready for the dump command."""

    connection: SourceConnection
    place: Position | None
    """Where the stream goes on in the archive; None: with a new file."""
    file: str
    """Its name for the dump command; empty: the source's oldest."""
    asked: bool
    """Whether the source's list of binlogs was seen."""
    semi_sync: bool
    another: bool
    """Whether it is another server than the archive's, accepted by an operator."""


@dataclass(slots=True)
class IdentityChange:
    """Whether an operator named another source for the same binlogs; good for the next stream only."""

    accepted: bool = False


class ServerUpstream:
    """The upstream side for `source.kind = "server"`. `run()` ends only by an error that a retry cannot cure."""

    def __init__(
        self,
        archive: Archive,
        settings: ServerSource,
        server_uuid: str,
        link: SourceLink,
        *,
        report_port: int = 0,
        change: IdentityChange | None = None,
    ) -> None:
        self._archive = archive
        self._own = own_registration(settings.server_id, report_port)
        self._change = change or IdentityChange()
        self._server_id_noted = False
        self._settings = settings
        self._server_uuid = server_uuid
        self._link = link
        self._pool = BufferPool()
        self._recording = SchemaRecording(self._open, settings.user)
        self._schema: SchemaWatch | None = None

    async def run(self) -> UpstreamError:
        """Follows the source. Returns the error that ended it for good; cancelling it stops it."""
        try:
            return await keep_following(self._archive, self._follow, self._link)
        finally:
            if self._schema is not None:
                await asyncio.to_thread(self._schema.join, _SCHEMA_WRITTEN_S)

    async def _follow(self) -> None:
        place = await self._place_to_resume()
        self._pool.put_back()  # the writer has given back everything of the stream before
        attached = await self._attach(place)
        error = await self._stream(attached)
        if error.name == "server_id_clash":
            error = await self._with_the_others_name(error)
        if not attached.asked and error.trouble is Trouble.POSITION_GONE:
            error = await self._explained(error, place)
        raise error

    async def _open(self) -> SourceConnection:
        return await open_source(self._settings)

    async def _attach(self, place: Position | None) -> _Attached:
        """A connection with everything said before the dump.

        MariaDB does not list its binlogs while a commit waits for an acknowledgement. It may wait for ours, or for that of
        a replica that is away: the list is done without then, and the source's answer to the dump command tells.
        """
        ask = self._settings.ack == "none" or beyond_the_command(place)
        connection = await self._open()
        try:
            try:
                return await self._set_up(connection, place, ask)
            except BinlogsWithheld as error:
                connection.close()  # its statement may be answered in an hour
                log.info("binlog_list_withheld", what=error.what, note="attaching without it")
                connection = await self._open()
                return await self._set_up(connection, place, ask=False)
        except BaseException:
            connection.close()
            raise

    async def _set_up(self, connection: SourceConnection, place: Position | None, ask: bool) -> _Attached:
        settings = self._settings
        found = _identity(connection.facts)
        self._link.identity = found
        another = check_source(
            self._archive.identity, found, settings.server_id, self._where, accept_change=self._change.accepted
        )
        await self._check_own_identity(connection)
        place, start_file = await self._agree_on_start(connection, place, ask=ask, another=another)
        await connection.set_up_dump(self._own, self._server_uuid, settings.heartbeat_period_s)
        semi_sync = await self._ask_semi_sync(connection)
        return _Attached(connection, place, start_file, ask, semi_sync, another)

    async def _agree_on_start(
        self, connection: SourceConnection, place: Position | None, *, ask: bool, another: bool
    ) -> tuple[Position | None, str]:
        """Where to go on. Raises: UpstreamError; IDENTITY also for a source without transactions that the archive has."""
        gtids = await self._ask_gtids(connection, ask)
        if place is None and isinstance(self._settings.start, StartGtid):
            asking = await self._open()
            try:
                found: tuple[Position | None, str] = (
                    None,
                    await file_for_gtids(asking, self._settings.start.gtid, gtids),
                )
            finally:
                asking.close()
        else:
            found = await self._go_on(connection, place, gtids, ask=ask, another=another)
        await self._take_gtids(gtids)
        return found

    async def _go_on(
        self, connection: SourceConnection, place: Position | None, gtids: SourceGtids, *, ask: bool, another: bool
    ) -> tuple[Position | None, str]:
        missing = lacking(self._archive.gtids.executed, gtids, same_server=not another) if place is not None else ""
        try:
            if another and place is not None:
                await self._compare_tail(place)
            found = await agree_on_start(connection, place, self._settings, ask=ask)
        except UpstreamError as error:
            if not missing or error.trouble not in TERMINAL:
                raise
            # The position has the clearer name, the transactions say what is at stake.
            text = f"{error.what}. It lacks transactions that the archive has: {missing}"
            raise UpstreamError(error.trouble, text, error.advice, name=error.name, number=error.number) from error
        if missing:
            raise lacks_transactions(missing, self._where)
        return found

    async def _ask_gtids(self, connection: SourceConnection, ask: bool) -> SourceGtids:
        """What the source says of GTIDs. Raises: UpstreamError."""
        try:
            return await read_source_gtids(connection, connection.facts.flavour, with_state=ask)
        except pymysql.err.MySQLError as error:
            text = f"the source does not tell its GTID variables: {error}"
            raise UpstreamError(Trouble.SETUP, text) from error
        except UpstreamError as error:
            if connection.facts.flavour == "mariadb" and isinstance(error.__cause__, TimeoutError):
                raise BinlogsWithheld(error.trouble, error.what) from error
            raise

    async def _take_gtids(self, gtids: SourceGtids) -> None:
        """The source may be gone on with: from now on its GTID variables are what replicas are told, and remembered."""
        before, self._link.gtids = self._link.gtids, gtids
        self._archive.gtids.source_purged = gtids.purged
        if before is None or before.mode != gtids.mode:
            log.info("source_gtid_mode", gtid_mode=gtids.mode)
        if kept_part(gtids) != kept_part(before):
            await self._keep_gtids()

    async def _keep_gtids(self) -> None:
        try:
            await asyncio.to_thread(keep_source_gtids, self._archive.directory, self._link.gtids or SourceGtids())
        except OSError as error:
            log.warning("source_gtids_not_kept", why=error.strerror, note="tried again at the next attachment")

    @property
    def _where(self) -> str:
        return f"{self._settings.host}:{self._settings.port}"

    async def _compare_tail(self, place: Position) -> None:
        """Another server than the archive's, and an operator said that it has the same binlogs."""
        connection = await self._open()
        try:
            await compare_tail(connection, self._archive, place)
        finally:
            connection.close()

    async def _check_own_identity(self, connection: SourceConnection) -> None:
        earlier = await asyncio.to_thread(earlier_registration, self._archive.directory)
        check_replicas(await connection.replicas(), self._own, earlier, self._server_uuid)
        if earlier is not None and earlier.server_id != self._own.server_id:
            log.warning(
                "server_id_changed",
                server_id=self._own.server_id,
                before=earlier.server_id,
                note="the source knows this relay under another source.server_id from now on",
            )
        if earlier != self._own:
            try:
                await asyncio.to_thread(keep_registration, self._archive.directory, self._own)
            except OSError as error:
                log.warning("registration_not_kept", why=error.strerror, note="asked again at the next attempt")

    def _same_binlogs(self, another: SourceIdentity | None) -> None:
        """The stream goes on in the archive's file: the source is the archive's, or the one that is to be it now."""
        known = self._archive.identity
        found = self._link.identity
        if found is not None and known != found:
            self._archive.set_identity(found)
            if another is not None and known is not None:
                end = self._archive.end
                file, offset = (end.file, end.offset) if end is not None else ("", -1)
                text = f"now {self._where}, server_uuid {found.server_uuid}, server_id {found.server_id}; before "
                text += f"server_uuid {known.server_uuid}, server_id {known.server_id}"
                self._archive.append_ledger("source_changed", file, offset, text)
        self._change.accepted = False

    async def _explained(self, error: UpstreamError, place: Position | None) -> UpstreamError:
        """What the list of binlogs has to say about a position that the source refused; the refusal where it is withheld."""
        connection: SourceConnection | None = None
        try:
            connection = await self._open()
            await agree_on_start(connection, place, self._settings)
        except UpstreamError as found:
            return found if found.trouble in TERMINAL else error
        finally:
            if connection is not None:
                connection.close()
        return error

    async def _with_the_others_name(self, error: UpstreamError) -> UpstreamError:
        """The refusal, with where the other replica may be as far as the source tells."""
        connection: SourceConnection | None = None
        try:
            connection = await self._open()
            found = [
                f"{row.host}:{row.port}" for row in await connection.replicas() if row.server_id == self._own.server_id
            ]
            found = [place for place in found if place not in (":0", f"{self._own.host}:{self._own.port}")]
            found = found or [f"one of {', '.join(hosts)}" for hosts in [await connection.dumping_hosts()] if hosts]
        except UpstreamError:
            return error
        finally:
            if connection is not None:
                connection.close()
        if not found:
            return error
        text = f"{error.what} (it is {' or '.join(found)})"
        return UpstreamError(error.trouble, text, error.advice, name=error.name, number=error.number)

    async def _stream(self, attached: _Attached) -> UpstreamError:
        """Takes the connection over for the stream; the error that ended it."""
        settings = self._settings
        connection, place, semi_sync = attached.connection, attached.place, attached.semi_sync
        facts = connection.facts
        intake = Intake(
            self._archive,
            place,
            packets=True,
            prefix=3 if semi_sync else 1,
            on_violation=settings.on_violation,
            announced_checksum=facts.checksum,
        )
        held = self._archive.file(place.file) if place is not None else None
        another = self._link.identity if attached.another else None
        if held is None:
            self._same_binlogs(another)
        else:

            def check(ingest: Ingest) -> None:
                check_same_file(held, ingest)
                self._same_binlogs(another)

            intake.check_format = check
        streams: list[DumpStream] = []

        def take_over(transport: asyncio.Transport, early: bytes) -> DumpStream:
            stream = DumpStream(intake, self._pool, transport, early)
            streams.append(stream)
            return stream

        offset = place.offset if place is not None else 4
        connection.start_dump(attached.file, offset, settings.server_id, take_over)
        stream = streams[0]
        watch: GtidWatch | None = None
        if self._link.gtids is not None and self._link.gtids.mode is not None:
            watch = GtidWatch(self._open, self._link, self._keep_gtids)
            intake.on_file = watch.file_begins
        acknowledger: Acknowledger | None = None
        if semi_sync:
            acknowledger = Acknowledger(self._archive, stream.send, self._link)
            intake.on_ack_wanted = acknowledger.want
        if settings.record_schema:
            self._schema = self._watch_schema(place)
            intake.definitions = self._schema.notes
        self._link.attached()
        self._link.count_heartbeats(lambda: intake.ingest.heartbeats)
        self._link.semi_sync = semi_sync
        self._link.tls_version, self._link.cipher = connection.security or (None, None)
        log.info(
            "source_attached",
            source=f"{settings.host}:{settings.port}",
            flavour=facts.flavour,
            version=facts.version,
            server_id=facts.server_id,
            file=attached.file or "oldest",
            offset=offset,
            semi_sync=semi_sync,
            tls=" ".join(connection.security) if connection.security is not None else "none",
        )
        try:
            return await self._watch(stream)
        finally:
            if watch is not None:
                watch.close()
            if acknowledger is not None:
                acknowledger.close()
            if self._schema is not None:
                self._schema.close()
            stream.close()

    def _watch_schema(self, place: Position | None) -> SchemaWatch:
        archive = self._archive
        held = [HeldFile(file.name, archive.path(file.name), file.end) for file in archive.files]

        def oldest() -> str | None:
            files = archive.files
            return files[0].name if files else None

        return SchemaWatch(self._recording, archive.directory, held, place, oldest)

    async def _ask_semi_sync(self, connection: SourceConnection) -> bool:
        """Whether the stream is semi-synchronous. What the source makes of it is said when it is other than before."""
        if self._settings.ack == "none":
            return False
        state = await connection.ask_semi_sync()
        if state != self._link.semi_sync_state:
            self._link.semi_sync_state = state
            if state is None:
                log.warning(
                    "semi_sync_unsupported",
                    note="the source has no semi-synchronous replication: nothing is acknowledged, its commits do not wait",
                    advice='On the source: INSTALL PLUGIN rpl_semi_sync_source SONAME "semisync_source.so" (before 8.0.26 '
                    'rpl_semi_sync_master, "semisync_master.so"), then START REPLICA here. Or write source.ack = "none".',
                )
            else:
                log.info(
                    "semi_sync_agreed",
                    enabled=state,
                    note=None if state == "ON" else "the source asks for acknowledgements when it is switched on there",
                )
        return state is not None

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


def _identity(facts: SourceFacts) -> SourceIdentity:
    return SourceIdentity(
        flavour=facts.flavour, version=facts.version, server_id=facts.server_id, server_uuid=facts.server_uuid
    )


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
