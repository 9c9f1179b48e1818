"""Answers what only the running relay can: a table from request to answer.

SHOW statements are for every account: an account that may read all binlogs learns nothing more from them. Others' connections in SHOW
PROCESSLIST are for accounts with `admin`, as are all statements that change something (the protocol layer enforces it).
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

import structlog

from protocol.resultset import Rows, Value
from protocol.source_side.statement_apart import AnswerApart
from protocol.statements import GivenAnswer, Request, TooMuchForTheLoop, Words
from protocol.statements.requests import (
    AcceptGap,
    AskGtidPosition,
    ChangeSource,
    FindViewPlace,
    Flush,
    ListViews,
    PurgeBefore,
    PurgeTo,
    QueryTables,
    RepairFiles,
    ScrubNow,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowMasterStatus,
    ShowProcesslist,
    ShowReplicas,
    ShowReplicaStatus,
    ShowStatistics,
    ShowStatus,
    SkipInView,
    StartReplica,
    StopReplica,
)
from protocol.statements.session.effort import Effort
from protocol.statements.session.gtid_variables import GtidVariables
from relay.admin.binlog_events import BinlogEvents
from relay.admin.binlogs import binary_logs, master_status
from relay.admin.connections import processlist, replicas
from relay.admin.dialect import Dialect
from relay.admin.flush_statements import flush
from relay.admin.gtid_position import gtid_position
from relay.admin.lag import Lag
from relay.admin.procedures.archive_procedures import repair, scrub
from relay.admin.procedures.gap_procedure import accept_gap
from relay.admin.procedures.view_procedures import ListedView, find_view_place, list_views, not_opened, skip_in_view
from relay.admin.purge_statements import Reader, purge_before, purge_to, view_reader
from relay.admin.refusals import not_here
from relay.admin.replica_status import ReplicaFacts, replica_status, status_values
from relay.admin.source_statements import change_source, check_channel, start_replica, stop_replica
from relay.admin.status_variables import StatusFacts, asks_for_ledger, shown_status, statistics_text, status_rows
from relay.admin.surroundings import Connections, Source
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.generation import Generation
from relay.archive_inspection.listing import count_ledgers
from relay.archive_inspection.scrub import Scrub, ScrubStatus
from relay.downstream.connection.client_status import ClientStatus
from relay.fairness.client_threads import in_turn
from relay.repair.file_origin import FileOrigin
from relay.repair.repair import RunningRepair
from relay.table_queries.recorded_tables import Facts
from relay.table_queries.replication_tables import REPLICATION
from relay.table_queries.table_queries import OwnRows, TableAsker, TableQueries
from relay.upstream.source.source_status import SourceStatus
from relay.view.shown_view import ShownView
from relay.view.unopened_view import UnopenedView

# Options of CHANGE MASTER that the log shows: all others may lead to a secret, or be one.
_SHOWN_OPTIONS: Final = frozenset({"SOURCE_HOST", "SOURCE_PORT", "SOURCE_USER", "SOURCE_LOG_FILE", "SOURCE_LOG_POS"})
_SHOWN_CHARACTERS: Final = 300
_OF_FILES: Final = (ShowBinaryLogs, ShowMasterStatus, ShowBinlogEvents, AskGtidPosition, PurgeTo, PurgeBefore)
"""The requests about an archive's own files."""
_ASKED: Final = "SELECT ... FROM information_schema.PROCESSLIST"
_ENCODED_ON_THE_LOOP: Final = 100
"""So many rows are encoded on the loop without a noticeable delay."""

log = structlog.get_logger("relay.admin")


class Console:
    """The relay's own answers, to those who are served one archive. `close` it before the archive.

    `config_path`: the file that is shown as deciding at the next start. `view`: whose archive it is; None: it is the mirror. A view
    that is not open has no files to show. `mirror`: for a view's console that of the mirror, which is closed later: about the relay
    they answer the same.
    """

    def __init__(
        self,
        archive: Archive,
        source: Source,
        connections: Connections,
        scrub: Scrub | None = None,
        *,
        config_path: Path | None = None,
        view: ShownView | None = None,
        mirror: "Console | None" = None,
    ) -> None:
        self._archive = archive
        self._source = source
        self._connections = connections
        self._scrub = scrub
        self._repair = RunningRepair()
        self.copies_of: Callable[[int], Sequence[FileOrigin]] = lambda _number: []
        """For a generation: the places where damaged files are looked for that the source does not supply. Blocking."""
        self.config_path = config_path
        self._view = view
        self._mirror = mirror or self
        if mirror is None:
            self._lag = Lag(archive, lambda: source.received_heartbeats)
            self._events = BinlogEvents()
            self._tables = TableQueries()
        else:
            self._lag, self._events, self._tables = mirror._lag, mirror._events, mirror._tables
        self._views: dict[str, ListedView] = {}
        self._finding = asyncio.Lock()
        """Held while a place of a view is looked for: the searches of all askers together occupy one thread."""

    @property
    def _generation(self) -> Generation:
        """The generation that file names refer to: the newest one."""
        return self._archive.current

    def add_view(self, view: ListedView) -> None:
        """Allow statements to name the view from now on. For the mirror's console. A view that was opened replaces its earlier
        entry."""
        self._views[view.settings.name] = view

    @property
    def views(self) -> Mapping[str, ListedView]:
        """The views of relay.toml, by name, open or not. For the mirror's console."""
        return self._views

    def seconds_behind(self, status: SourceStatus) -> int | None:
        """Return by how much the archive is behind the source's clock; None: unknown."""
        return self._lag.seconds_behind(status)

    def close(self) -> None:
        """Stop answering."""
        if self._mirror is not self:
            return
        self._lag.close()
        self._events.close()
        self._tables.close()

    async def answer(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        """Return the answer. Raises: StatementRefused."""
        answer = await self._show(request, asker)
        if isinstance(answer, Rows) and len(answer.rows) > _ENCODED_ON_THE_LOOP:
            return await in_turn(asker.encode, answer)
        return answer

    async def _show(self, request: Request, asker: ClientStatus) -> GivenAnswer:
        if isinstance(self._view, UnopenedView) and isinstance(request, _OF_FILES):
            raise not_opened(self._view)
        words = getattr(request, "words", Words.MASTER_SLAVE)
        dialect = Dialect.of(asker.facts, words)
        if request.privilege:
            log.info(
                "statement_by_admin",
                user=asker.user,
                address=asker.address,
                request=request_text(request)[:_SHOWN_CHARACTERS],
            )
        match request:
            case ShowBinaryLogs():
                return await self._binary_logs(dialect, asker)
            case ShowMasterStatus():
                return master_status(self._generation.files, dialect, asker.facts.gtids().executed)
            case ShowBinlogEvents():
                return await self._events.show(self._generation, request, dialect, asker.encode)
            case AskGtidPosition():
                return await gtid_position(self._archive, request)
            case ShowReplicaStatus():
                check_channel(request.channel, dialect)
                return replica_status(
                    self._replica_facts(asker.facts.gtids()), dialect, all_channels=request.all_channels
                )
            case ShowReplicas():
                return replicas(self._connections.statuses(), dialect, asker.facts.server_id)
            case ShowProcesslist():
                connections = self._connections.statuses()
                return processlist(connections, asker, self._source.status(), dialect, full=request.full)
            case QueryTables():
                return await self._query(request, asker, dialect)
            case AnswerApart():
                return await self._answer_apart(request, asker)
            case ShowStatus():
                return await self._status(request, asker, dialect)
            case ShowStatistics():
                return statistics_text(self._connections, dialect)
            case ListViews():
                return list_views(self._mirror._told(asker))
            case FindViewPlace():
                mirror = self._mirror
                return await find_view_place(mirror._archive, mirror._told(asker), request, mirror._finding)
            case _:
                return await self._change(request, asker, dialect)

    async def _answer_apart(self, request: AnswerApart, asker: ClientStatus) -> GivenAnswer:
        """Return an answer that is too much work for the loop."""

        def run() -> GivenAnswer | Request:
            answer = request.statement.run()
            return asker.encode(answer) if isinstance(answer, Rows) else answer

        answer = await self._tables.apart(run)
        return await self._show(answer, asker) if isinstance(answer, Request) else answer

    async def _status(self, request: ShowStatus, asker: ClientStatus, dialect: Dialect) -> GivenAnswer:
        """Answer SHOW STATUS: what its condition wants is found on the loop, or in a thread if that is much work."""
        try:
            search = request.wanted.search(Effort())
            ledger = await self._ledger() if asks_for_ledger(search) else None
            return status_rows(shown_status(self._status_facts(ledger), dialect, asker), search, request, asker)
        except TooMuchForTheLoop:
            values = shown_status(self._status_facts(await self._ledger()), dialect, asker)
            search = request.wanted.search(Effort(in_a_thread=True))
            return await self._tables.apart(lambda: status_rows(values, search, request, asker))

    def _told(self, asker: ClientStatus) -> Mapping[str, ListedView]:
        """Return the views that the asker may see: a client of one view sees that one alone."""
        if asker.view is None or asker.is_admin:
            return self._views
        return {name: view for name, view in self._views.items() if name == asker.view}

    async def _query(self, request: QueryTables, asker: ClientStatus, dialect: Dialect) -> GivenAnswer:
        host = asker.address.rpartition(":")[0]
        who = TableAsker(asker.facts, asker.user, host, asker.database, asker.encode)
        ledger = await self._ledger() if any("_status" in name for _schema, name in request.tables) else None
        generation = self._mirror._generation  # the source's tables are recorded there
        own = self._own_rows(asker, dialect, ledger)
        return await self._tables.answer(request, who, own, generation.directory, generation.end)

    def _own_rows(self, asker: ClientStatus, dialect: Dialect, ledger: Mapping[str, int] | None) -> OwnRows:
        """Return the tables of servers whose rows are this relay's."""

        def connections() -> list[Facts]:
            shown = processlist(self._connections.statuses(), asker, self._source.status(), dialect, full=True)
            names = [name.upper() for name in shown.names]
            rows: list[Facts] = [dict(zip(names, row, strict=True)) for row in shown.rows]
            return [row | {"INFO": _ASKED} if row["ID"] == asker.connection_id else row for row in rows]

        def status() -> list[Facts]:
            values = shown_status(self._status_facts(ledger), dialect, asker)
            return [{"VARIABLE_NAME": name, "VARIABLE_VALUE": value} for name, value in values]

        def replication(make: Callable[[Mapping[str, Value]], Iterable[Facts]]) -> Callable[[], Iterable[Facts]]:
            return lambda: make(status_values(self._replica_facts(asker.facts.gtids()), dialect))

        own = {"processlist": connections, "global_status": status, "session_status": status}
        return own | {name: replication(make) for name, make in REPLICATION.items()}

    async def _binary_logs(self, dialect: Dialect, asker: ClientStatus) -> GivenAnswer:
        files = self._generation.files
        if len(files) <= _ENCODED_ON_THE_LOOP:
            return binary_logs(files, dialect)
        here = tuple(files)
        return await in_turn(lambda: asker.encode(binary_logs(here, dialect)))

    def _clients(self) -> list[ClientStatus]:
        """Return the clients of this archive: names and generations of files mean nothing for the others."""
        name = self._view.settings.name if self._view is not None else None
        return [client for client in self._connections.statuses() if client.view == name]

    def _readers(self) -> list[Reader]:
        """Return the readers of this archive's files: views are built from the mirror's."""
        return [*self._clients(), *map(view_reader, self._views.values())]

    async def _change(self, request: Request, asker: ClientStatus, dialect: Dialect) -> GivenAnswer:
        if self._mirror is not self and not isinstance(request, PurgeTo | PurgeBefore):
            return await self._mirror._change(request, asker, dialect)
        match request:
            case StopReplica():
                return await stop_replica(self._source, request, dialect)
            case StartReplica():
                return await start_replica(self._source, request, dialect)
            case ChangeSource():
                return await change_source(self._source, request, dialect)
            case RepairFiles():
                source = self._source.followed
                return await repair(self._archive, self._repair, source, self.copies_of, request)
            case ScrubNow():
                return scrub(self._scrub)
            case SkipInView():
                return await skip_in_view(self._views, request, by=f"'{asker.user}'@'{asker.address}'")
            case AcceptGap():
                connected, newest = self._clients(), self._generation.number
                by = f"'{asker.user}'@'{asker.address}'"
                return await accept_gap(self._source, request, connected, newest, by=by)
            case PurgeTo():
                reason = f"PURGE BINARY LOGS TO '{request.file[:128]}' by '{asker.user}'@'{asker.address}'"
                return await purge_to(self._archive, request.file, self._readers, reason)
            case PurgeBefore():
                reason = (
                    f"PURGE BINARY LOGS BEFORE {request.unix_s:.0f} (Unix time) by '{asker.user}'@'{asker.address}'"
                )
                return await purge_before(self._archive, request.unix_s, self._readers, reason)
            case Flush():
                return flush(request, self._connections)
            case _:
                raise not_here(f"{type(request).__name__} is not answered")

    def _replica_facts(self, gtids: GtidVariables) -> ReplicaFacts:
        status = self._source.status()
        held = None if isinstance(self._view, UnopenedView) else self._generation.held
        return ReplicaFacts(
            status=status,
            archived_bytes=held.total_bytes if held is not None else 0,
            archived_events=held.total_events if held is not None else 0,
            failure=self._generation.write_trouble,
            seconds_behind=self._lag.seconds_behind(status),
            config_path=self.config_path,
            gtids=gtids,
            view_stop=self._view.status.stop if self._view is not None else None,
        )

    def _status_facts(self, ledger: Mapping[str, int] | None) -> StatusFacts:
        status = self._source.status()
        return StatusFacts(
            archive=self._archive,
            source=status,
            connections=self._connections,
            seconds_behind=self._lag.seconds_behind(status),
            ledger=ledger,
            scrub=self._scrub.status if self._scrub is not None else ScrubStatus(),
            view=self._view,
        )

    async def _ledger(self) -> Mapping[str, int] | None:
        """Return the number of rows by kind; None while the catalog cannot be read, or is not open, so that the other variables are
        shown all the same."""
        if isinstance(self._view, UnopenedView):
            return None
        try:
            return await in_turn(count_ledgers, self._archive.directory)
        except (CatalogUnreadable, OSError, sqlite3.Error) as error:
            log.warning("ledger_not_counted", what=str(error))
            return None


def request_text(request: Request) -> str:
    """Return the log's text for a statement that changes something: its kind and what it names, of most options the name only.

    An example is `ChangeSource(SOURCE_HOST='db2', SOURCE_PASSWORD)`: no password, and nothing that was left out of the statement.
    """
    named = []
    for item in fields(request):
        value = getattr(request, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.repr and item.name != "words" and value != default:
            shown = ", ".join(sorted(map(str, value))) if isinstance(value, frozenset) else repr(value)
            named.append(f"{item.name}={shown}")
    if isinstance(request, ChangeSource):
        for name, option in request.options.items():
            named.append(f"{name}={option!r}" if name in _SHOWN_OPTIONS else name)
    return f"{type(request).__name__}({', '.join(named)})"
