"""Attachment to a source: its identity, whether and where the archive can go on with it, and all statements before the dump."""

import asyncio
from dataclasses import dataclass

import pymysql.err
import structlog

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.config import ServerSource, StartGtid
from relay.upstream.attach.another_source import file_to_go_on_with
from relay.upstream.attach.gap_plan import GapPlan, GapRefused, GapRequest
from relay.upstream.attach.missing_gtids import missing_in_its_files, missing_transactions_error
from relay.upstream.attach.own_address import is_own_address
from relay.upstream.attach.starting_gtids import file_for_gtids
from relay.upstream.attach.starting_place import agree_on_start, beyond_the_command
from relay.upstream.attach.tail_check import compare_tail
from relay.upstream.source.connection import BinlogsWithheld, SourceConnection, SourceFacts
from relay.upstream.source.identity import (
    Registration,
    check_replicas,
    check_source,
    earlier_registration,
    keep_registration,
)
from relay.upstream.source.log_replica_updates import switched_off
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import TERMINAL, FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, read_source_gtids
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Attached:
    """A connection that is ready for the dump command."""

    connection: SourceConnection
    identity: SourceIdentity
    gtids: SourceGtids
    place: Position | None
    """The place in the archive where the stream goes on; None means with a new file."""
    file: str
    """The file's name for the dump command; empty means the source's oldest."""
    binlogs_listed: bool
    """True if the source's list of binlogs was seen."""
    semi_sync: bool
    another: bool
    """True if it is another server than the archive's, accepted by an operator."""
    begins: bool
    """True if a new generation of the archive begins with `file`."""
    gap: AcceptedGap | None = None
    """The accepted gap after which the stream starts."""
    leaves_out: str | None = None
    """The variable that makes the source omit what it applies as a replica from its binlog; None if it writes that too."""


@dataclass(frozen=True, slots=True)
class _Agreed:
    place: Position | None
    file: str
    gtids: SourceGtids
    begins: bool = False


class Attacher:
    """A factory of connections to one source, for one archive. `link` gets the source's identity; nothing else changes by a failed
    attempt.

    `listen_host` is the address where this relay itself listens, at the port of `own`; None if it does not.
    """

    def __init__(
        self,
        archive: Archive,
        settings: ServerSource,
        own: Registration,
        server_uuid: str,
        link: SourceLink,
        *,
        listen_host: str | None = None,
    ) -> None:
        self._archive = archive
        self.settings = settings
        """These settings apply to connections from now on."""
        self._own = own
        self._server_uuid = server_uuid
        self._link = link
        self._listen_host = listen_host

    @property
    def where(self) -> str:
        """The source's address as host:port."""
        return f"{self.settings.host}:{self.settings.port}"

    @property
    def _generation(self) -> Generation:
        return self._archive.current

    async def open(self) -> SourceConnection:
        """Return a connection that is logged in. Raises: UpstreamError."""
        settings, listen_host = self.settings, self._listen_host
        # Nothing else would detect it: a relay shows replicas its source's identity, and has all that its archive has.
        if listen_host is not None and await asyncio.to_thread(
            is_own_address, settings.host, settings.port, listen_host, self._own.port
        ):
            text = f"the source {self.where} is this relay itself: it listens there"
            advice = "Name the server that is to be followed, in relay.toml, by --source or by CHANGE MASTER TO."
            raise UpstreamError(FailureKind.SETUP, text, advice, name="source_is_this_relay")
        return await open_source(settings)

    async def attach(self, place: Position | None, *, accept_another: bool, gap: AcceptedGap | None = None) -> Attached:
        """Return a connection, after all statements that come before the dump. `place` is the archive's end, `gap` the accepted gap.
        Raises: UpstreamError; GapRefused if the gap differs by now.

        MariaDB does not list its binlogs while a commit waits for an acknowledgement. It may wait for ours, or for that of a
        disconnected replica: then the list is skipped, and the source's answer to the dump command decides. For another server than the
        archive's the list is required.
        """
        ask = self.settings.ack == "none" or beyond_the_command(place) or gap is not None
        connection = await self.open()
        try:
            try:
                return await self._set_up(connection, place, ask, accept_another, gap)
            except BinlogsWithheld as error:
                if gap is not None:
                    raise
                connection.close()  # Its statement may be answered in an hour
                log.info("binlog_list_withheld", what=error.what, note="attaching without it")
                connection = await self.open()
                return await self._set_up(connection, place, False, accept_another)
        except BaseException:
            connection.close()
            raise

    async def examine(self, place: Position | None) -> str:
        """Check whether the archive could go on with this source now, without attaching to it. Returns the place, as text for a person.

        Raises: UpstreamError with the reason if it cannot.
        """
        connection = await self.open()
        try:
            found = source_identity(connection.facts)
            another = check_source(
                self._generation.identity, found, self.settings.server_id, self.where, accept_change=True
            )
            agreed = await self._agree_on_start(connection, place, ask=True, another=another)
        finally:
            connection.close()
        if agreed.begins:
            return f"with a new generation, from its {agreed.file} on"
        where = f"at {agreed.place}" if agreed.place is not None else f"with its {agreed.file or 'oldest binlog'}"
        # This is a second address, or an address that was given to it since.
        return where if another or self._generation.identity is None else f"{where}; it is the archive's own server"

    async def _set_up(
        self,
        connection: SourceConnection,
        place: Position | None,
        ask: bool,
        accept_another: bool,
        gap: AcceptedGap | None = None,
    ) -> Attached:
        settings = self.settings
        found = source_identity(connection.facts)
        self._link.identity = found
        another = check_source(
            self._generation.identity,
            found,
            settings.server_id,
            self.where,
            accept_change=accept_another or gap is not None,
        )
        await self._check_own_identity(connection)
        if gap is not None:
            agreed = await self._behind_gap(connection, gap)
        else:
            agreed = await self._agree_on_start(connection, place, ask=ask or another, another=another)
        await connection.set_up_dump(self._own, self._server_uuid, settings.heartbeat_period_s)
        semi_sync = await self._ask_semi_sync(connection)
        leaves_out = await switched_off(connection)
        return Attached(
            connection=connection,
            identity=found,
            gtids=agreed.gtids,
            place=agreed.place,
            file=agreed.file,
            binlogs_listed=ask,
            semi_sync=semi_sync,
            another=another,
            begins=agreed.begins,
            gap=gap,
            leaves_out=leaves_out,
        )

    def gap_plan(self, *, accept_another: bool) -> GapPlan:
        """Return the plan that finds out what lies between the archive's end and what this source has."""
        return GapPlan(self._archive, self.open, self.where, self.settings.server_id, accept_another=accept_another)

    async def _behind_gap(self, connection: SourceConnection, gap: AcceptedGap) -> _Agreed:
        """Return where to go on as it was accepted. Raises: UpstreamError; GapRefused if the gap differs by now."""
        plan = self.gap_plan(accept_another=True)
        now = await plan.find(GapRequest(gap.by, gap.time, gap.stop, gap.to))
        if not now.same_facts(gap):
            raise GapRefused(f"It is another gap by now. Accepted: {gap.text} Now: {now.text}")
        return _Agreed(None, gap.to.file, await self._ask_gtids(connection, True), begins=True)

    async def _agree_on_start(
        self, connection: SourceConnection, place: Position | None, *, ask: bool, another: bool
    ) -> _Agreed:
        """Return where to go on. Raises: UpstreamError; IDENTITY also for a source without transactions that the archive has."""
        gtids = await self._ask_gtids(connection, ask)
        if place is None and isinstance(self.settings.start, StartGtid):
            asking = await self.open()
            try:
                return _Agreed(None, await file_for_gtids(asking, self.settings.start.gtid, gtids), gtids)
            finally:
                asking.close()
        try:
            return _Agreed(*await self._go_on(connection, place, gtids, ask=ask, another=another), gtids)
        except UpstreamError as error:
            if not another or place is None or error.kind not in (FailureKind.IDENTITY, FailureKind.POSITION_GONE):
                raise
            not_the_same = error
        executed = self._archive.executed
        file = await file_to_go_on_with(self._generation, executed, gtids, self.where, self.open, not_the_same)
        return _Agreed(None, file, gtids, begins=True)

    async def _go_on(
        self, connection: SourceConnection, place: Position | None, gtids: SourceGtids, *, ask: bool, another: bool
    ) -> tuple[Position | None, str]:
        """Return where to go on in the archive's own files."""
        executed = self._archive.executed
        missing = ""
        if place is not None and executed is not None:
            missing = missing_in_its_files(self._generation.gtids.executed, executed, gtids, same_server=not another)
        try:
            if another and place is not None:
                await self._compare_tail(place)
            found = await agree_on_start(connection, place, self.settings, ask=ask)
        except UpstreamError as error:
            if not missing or error.kind not in TERMINAL:
                raise
            # The position has the clearer name, the transactions show what would be lost.
            text = f"{error.what}. It lacks transactions that the archive has: {missing}"
            raise UpstreamError(error.kind, text, error.advice, name=error.name, number=error.number) from error
        if missing:
            raise missing_transactions_error(missing, self.where)
        return found

    async def _ask_gtids(self, connection: SourceConnection, ask: bool) -> SourceGtids:
        """Return the GTIDs that the source reports. Raises: UpstreamError."""
        try:
            return await read_source_gtids(connection, connection.facts.flavour, with_state=ask)
        except pymysql.err.MySQLError as error:
            text = f"the source does not tell its GTID variables: {error}"
            raise UpstreamError(FailureKind.SETUP, text) from error
        except UpstreamError as error:
            if connection.facts.flavour == "mariadb" and isinstance(error.__cause__, TimeoutError):
                raise BinlogsWithheld(error.kind, error.what) from error
            raise

    async def _compare_tail(self, place: Position) -> None:
        """Compare the last events: it is another server than the archive's, and an operator stated that it has the same binlogs."""
        connection = await self.open()
        try:
            await compare_tail(connection, self._generation, place)
        finally:
            connection.close()

    async def _check_own_identity(self, connection: SourceConnection) -> None:
        directory = self._archive.directory
        earlier = await asyncio.to_thread(earlier_registration, directory)
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
                await asyncio.to_thread(keep_registration, directory, self._own)
            except OSError as error:
                log.warning("registration_not_kept", why=error.strerror, note="asked again at the next attempt")

    async def _ask_semi_sync(self, connection: SourceConnection) -> bool:
        """Return whether the stream is semi-synchronous. The source's answer is logged when it differs from before."""
        if self.settings.ack == "none":
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

    # --- what else is known of a refused stream ------------------------------------------------------------------------

    async def explained(self, error: UpstreamError, place: Position | None) -> UpstreamError:
        """Return the error that the list of binlogs gives for a position that the source refused; the refusal if there is no list."""
        connection: SourceConnection | None = None
        try:
            connection = await self.open()
            await agree_on_start(connection, place, self.settings)
        except UpstreamError as found:
            return found if found.kind in TERMINAL else error
        finally:
            if connection is not None:
                connection.close()
        return error

    async def with_the_others_name(self, error: UpstreamError) -> UpstreamError:
        """Return the refusal, with the other replica's address as far as the source reports it."""
        connection: SourceConnection | None = None
        try:
            connection = await self.open()
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
        return UpstreamError(error.kind, text, error.advice, name=error.name, number=error.number)


def source_identity(facts: SourceFacts) -> SourceIdentity:
    """Return the server's identity for the archive."""
    return SourceIdentity(
        flavour=facts.flavour, version=facts.version, server_id=facts.server_id, server_uuid=facts.server_uuid
    )
