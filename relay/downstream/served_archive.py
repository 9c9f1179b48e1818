"""One archive as replicas are served it: the mirror of the source, or a view. A listener may have several."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final, Literal

from protocol.errors import ErrorCode
from protocol.sql.server_version import version_numbers
from protocol.statements import SourceFacts
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_reads import BufferPool, FileReads
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.clients import Clients
from relay.downstream.connection.presentation import located, source_facts
from relay.downstream.connection.replica_session import StatementAnswers
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.refusal import refusal
from relay.downstream.request.source_state import SourceState
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.stream.dump import Dump
from relay.downstream.stream.event_packets import OUTPUT_BYTES
from relay.downstream.stream.pacing import WakePacer
from relay.process.background import tell_fault

_KEPT_OUTPUTS: Final = 8
_FIRST_WITH_GTIDS: Final = (5, 6, 5)
_OLDEST_SHOWN: Final = "5.6.51"
"""The version that a view of an older source shows: its binlogs have what that one had, GTIDs and version 2 of row events."""
_HEARTBEATS_A_SECOND: Final = 2000


@dataclass(frozen=True, slots=True)
class ViewOrigin:
    """The origin of a view that is served.

    mirror: the archive that it is built from, whose source replicas are shown. gtid_uuid: the uuid of the GTIDs that are assigned in
    it; None: none are. gives_all: it has no GTIDs but those that are derived from `gtid_uuid`, of several uuids. mysql_version: the
    version that is shown if the source is a MariaDB, whose binlogs became MySQL's.
    """

    mirror: Archive
    gtid_uuid: str | None
    mysql_version: str = ""
    gives_all: bool = False


class ServedArchive:
    """An archive, the streams that wait for it to grow, and its presentation. `begin`, then `close`; all on one event loop."""

    def __init__(
        self,
        archive: Archive,
        clients: Clients,
        options: ListenOptions,
        source: SourceState | None = None,
        console: StatementAnswers | None = None,
        view: ViewOrigin | None = None,
    ) -> None:
        """console: answers statements about the relay. view: None: the archive is the mirror."""
        self.archive = archive
        self.source = source or SourceState()
        self.console = console
        self.presentation = options.presentation
        self.position_wait_s = options.position_wait_s
        self.resumes_all = options.resumes_all
        self.reads = FileReads(archive.current.layer)
        self.outputs = BufferPool(OUTPUT_BYTES, _KEPT_OUTPUTS)
        assigned, gives_all = (view.gtid_uuid, view.gives_all) if view is not None else (None, False)
        self.gtid_lookup = GtidLookup(archive, self.source, assigned, gives_all=gives_all)
        self.place_searches = PlaceSearches(archive, self.gtid_lookup)
        self._clients = clients
        self._view = view
        self._pacer = WakePacer()
        self._wake: asyncio.TimerHandle | None = None
        self._edge: set[Dump] = set()
        self._moved = asyncio.Event()
        self._watches = False

    # --- beginning and end ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Wake the streams that wait for the archive whenever it grows from now on."""
        self._watches = True
        self.archive.watch(self._archive_moved)

    def rest(self) -> None:
        """Stop waking streams."""
        if self._watches:
            self._watches = False
            self.archive.unwatch(self._archive_moved)
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def close(self) -> None:
        """End the threads, once no replica is served."""
        self.rest()
        self.reads.shutdown()
        self.gtid_lookup.shutdown()

    # --- its presentation -------------------------------------------------------------------------------------------

    @property
    def generation(self) -> Generation:
        """The generation of the source that is followed."""
        return self.archive.current

    def facts(self, port: int) -> SourceFacts:
        """Return the source's facts for a client of this archive. port: the one that is listened on."""
        source = self._source_facts()
        if source is not None:
            facts = replace(self.presentation.facts(source), settings=self.source.settings)
        else:
            facts = self.presentation.facts_before_source(self.why_unreached)
        return replace(
            located(facts, self.generation, port),
            gtids=self.source.gtid_variables,
            max_connections=self._clients.max_connections,
        )

    def _source_facts(self) -> SourceFacts | None:
        """Return the source's facts; a view's are those of its source, except for the checksums, which depend on its own files."""
        if self._view is None:
            return source_facts(self.generation)
        source = source_facts(self._view.mirror.current)
        files = self.generation.files
        checksum: Literal["CRC32", "NONE"] = "NONE" if files and not files[-1].checksum else "CRC32"
        if source is None:
            return None
        if source.flavour == "mariadb" and self._view.mysql_version:
            # MySQL's replicas ask for a server_uuid, and compare it with their own.
            uuid = source.server_uuid or self._view.gtid_uuid
            source = replace(source, flavour="mysql", version=self._view.mysql_version, server_uuid=uuid)
        # A replica asks a server for its GTID_MODE only if such a version has one.
        version = source.version if version_numbers(source.version) >= _FIRST_WITH_GTIDS else _OLDEST_SHOWN
        return replace(source, checksum=checksum, version=version)

    def why_unreached(self) -> str:
        """Return the text for replicas before the source was reached for the first time."""
        if self._source_facts() is not None:
            text = "binlog-relay had not heard from its source when this connection began, and has now: connect again"
        else:
            text = f"binlog-relay has not heard from its source yet: {self.source.trouble() or 'try again'}"
        return refusal(text, ErrorCode.ER_UNKNOWN_ERROR).what

    def shown_server_id(self, generation: Generation) -> int:
        """Return the server_id that replicas are shown for the source of these binlogs."""
        source = source_facts(generation)
        return self.presentation.facts(source).server_id if source is not None else 0

    def check_replica(self, server_id: int, server_uuid: str) -> None:
        """Refuse a replica whose ids collide with those of another server. Raises: PositionRefused."""
        source = self._source_facts()
        if source is not None:
            self.presentation.check_replica(source, server_id, server_uuid)
        if self._view is not None and server_uuid and server_uuid.lower() == self._view.gtid_uuid:
            raise refusal(
                f"This replica has server_uuid {server_uuid}, and so have the GTIDs that this view assigns: the replica's own "
                "would be taken for them. Give the view another uuid, or delete auto.cnf at the replica and restart it"
            )

    # --- for dumps --------------------------------------------------------------------------------------------------

    async def until_left(self, identity: ReplicaIdentity) -> None:
        """Wait until it is known what this replica had read when it ended a stream of this archive just now."""
        for other in self._clients.sessions:
            there = other.client
            if other.served is not self or other.leaving is None:
                continue
            if ReplicaIdentity.of(there.server_id, there.replica_uuid, there.user) == identity:
                await other.leaving.wait()

    def wait_at_edge(self, dump: Dump) -> None:
        """Call `dump.pump` when the archive grows."""
        self._edge.add(dump)

    def leave_edge(self, dump: Dump) -> None:
        """Forget `dump`, which has ended: an archive that does not grow any more would keep it for ever."""
        self._edge.discard(dump)

    def shortest_silence_s(self) -> float:
        """Return the shortest time between two heartbeats of one stream: it limits the heartbeats a second of all streams that wait
        for the archive to grow, whatever they ask for, so that they take little of the loop.
        """
        return len(self._edge) / _HEARTBEATS_A_SECOND

    def next_move(self) -> asyncio.Event:
        """Return an event that is set when the archive grows from now on."""
        return self._moved

    # --- the live edge ----------------------------------------------------------------------------------------------

    def _archive_moved(self) -> None:
        if self._wake is not None or not self._watches:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        due = self._pacer.due(now)
        if due > now:
            self._wake = loop.call_at(due, self._broadcast)
        else:
            self._broadcast()

    def _broadcast(self) -> None:
        """Let every waiting stream send. Streams that wait again afterwards register again."""
        self._wake = None
        loop = asyncio.get_running_loop()
        started = loop.time()
        waiting, self._edge = self._edge, set()
        for dump in waiting:
            try:
                dump.pump()
            except Exception as fault:  # of one replica's: the others are not kept waiting
                tell_fault("dump_fault", fault, position=str(dump.position))
                self._break_off(dump)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        self._pacer.finished(started, loop.time())

    def _break_off(self, dump: Dump) -> None:
        for session in self._clients.sessions:
            if session.dump is dump:
                session.abort()
