"""The gap between the archive's end and what the source still has, determined for the operator who must accept it.

1. the newest file of the archive that the source has too: up to there both are identical
2. the source's file after that one, or the named one: with it the archive goes on
3. by GTID: which transactions were never archived, and which the source has lost
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pymysql.err

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode, Malformed, RelayError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.gaps.lost_gtids import ArchivedPart, GapGtids, mariadb_gap, mysql_gap, mysql_gtids_in
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.gtid_facts import GtidValue
from relay.archive.storage.replica_marks import ReplicaIdentity, SentPlace
from relay.upstream.attach.source_file import SourceFile, is_boundary, read_source_file, rotates_to, same_up_to
from relay.upstream.attach.starting_gtids import file_for_gtids
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, read_source_gtids

Open = Callable[[], Awaitable[SourceConnection]]
_UNKNOWN_STOP: Final = "a source that does not lead on"
# The ledger's row stays readable, however many server_ids an account makes up.
_MOST_NAMED: Final = 100


class GapRefused(RelayError):
    """The error that there is no such gap, or that it cannot be accepted. `str()` says why, and what to do."""

    exit_code = ExitCode.FINDINGS


@dataclass(frozen=True, slots=True)
class GapRequest:
    """A request to accept the gap: who makes it, and after which trouble with the source. `to` is where the archive must go on (None:
    as early as possible). `sent` lists the receivers of the newest generation and up to where it was sent to them, for those without
    kept positions."""

    by: str
    time: float
    stop: str = _UNKNOWN_STOP
    to: Position | None = None
    sent: Sequence[SentPlace] = ()


@dataclass(frozen=True, slots=True)
class _Common:
    """The newest file that both have. Both are identical up to `place`; `number` is its place in the source's list."""

    place: Position
    number: int


class GapPlan:
    """A plan for the source at `where` (host:port). `open` makes a new connection to it; each question uses one up. `server_id` is the
    relay's own. With `accept_another` an operator named another server than the archive's."""

    def __init__(
        self, archive: Archive, open: Open, where: str, server_id: int, *, accept_another: bool = False
    ) -> None:
        self._archive = archive
        self._open = open
        self._where = where
        self._own_server_id = server_id
        self._accept_another = accept_another

    @property
    def _generation(self) -> Generation:
        return self._archive.current

    async def find(self, request: GapRequest) -> AcceptedGap:
        """Return the gap as it is now. Nothing is changed. Raises: GapRefused; UpstreamError."""
        generation = self._generation
        end = generation.end
        if end is None:
            raise GapRefused("The archive is empty: source.start in relay.toml says where its first binlog begins.")
        connection = await self._open()
        try:
            facts = connection.facts
            found = SourceIdentity(facts.flavour, facts.version, facts.server_id, facts.server_uuid)
            self._check_kind(found)
            listed = await connection.binlogs()
            gtids = await read_source_gtids(connection, facts.flavour)
        except pymysql.err.MySQLError as error:
            text = f"the source does not tell its GTID variables: {error}"
            raise UpstreamError(FailureKind.SETUP, text) from error
        finally:
            connection.close()
        if not listed:
            raise GapRefused(
                f"{self._where} does not list its binlogs: the relay's account there needs REPLICATION CLIENT (or BINLOG "
                "MONITOR)."
            )
        common = await self._common(listed)
        rest = listed if common is None else listed[common.number + 1 :]
        if common is not None and common.place == end and (not rest or _is_next(rest[0][0], end.file)):
            raise GapRefused(
                f"There is no gap: {self._where} has {end}, where the archive ends. START REPLICA goes on there."
            )
        if not rest:
            assert common is not None
            raise GapRefused(
                f"{self._where} has nothing behind {common.place}, up to where it has what the archive has. Run FLUSH BINARY "
                "LOGS there, then try again."
            )
        same_server = self._is_same(found)
        first = await self._look(rest[0][0])
        if request.to is not None:
            to = await self._checked(request.to, listed, rest, common)
        elif common is None and not same_server:
            to = Position(await self._file_by_gtid(gtids, first), FIRST_EVENT)
        else:
            to = Position(first.name, FIRST_EVENT)
        head = first if to.file == first.name else await self._look(to.file)
        cut_off = await self._cut_off(common) if common is not None else GtidSet()
        # The set that it had executed at the start of that file shows what it lost, unless others were written and removed in between.
        tells = common is None or common.place == end or _is_next(first.name, common.place.file)
        if common is not None and cut_off and same_server and tells and _has_executed(cut_off, gtids, first):
            # Its binlog lost them, its tables did not: replicas are sent them as before.
            common, cut_off = _Common(end, common.number), GtidSet()
        of_gtids: GapGtids | None = None
        if tells or facts.flavour == "mysql":
            of_gtids = gap_gtids(self._archive.executed, gtids, first, head, cut_off, same_server=same_server)
        adjacent = to == Position(first.name, FIRST_EVENT) and (
            (common is not None and _is_next(first.name, common.place.file))
            or (
                (common is None or common.place == end)
                and await rotates_to(generation, generation.files[-1]) == first.name
            )
        )
        return AcceptedGap(
            flavour=facts.flavour,
            stop=request.stop,
            time=request.time,
            by=request.by,
            source=self._where,
            after=end,
            last_time=generation.files[-1].last_timestamp,
            common=common.place if common is not None else None,
            to=to,
            created=head.created,
            server_id=head.server_id,
            is_whole=not of_gtids.missing if of_gtids is not None else adjacent,
            has_place=common is not None or same_server or request.to is not None,
            missing=of_gtids.missing if of_gtids is not None else "",
            lost=of_gtids.lost if of_gtids is not None else "",
            state=of_gtids.state if of_gtids is not None else None,
            replicas=await _sent_beyond(generation, common.place, request.sent) if common is not None else (),
        )

    def _check_kind(self, found: SourceIdentity) -> None:
        known = self._generation.identity
        if known is not None and known.flavour != found.flavour:
            raise GapRefused(
                f"{self._where} is a {found.flavour} server, the archive is of a {known.flavour} one: give it a source.name of "
                "its own."
            )
        if found.server_id == self._own_server_id:
            raise GapRefused(f"{self._where} has server_id {found.server_id}, as this relay: change source.server_id.")
        if not self._accept_another and not self._is_same(found):
            raise GapRefused(
                f"{self._where} is another server than the archive's (server_uuid or server_id). It may have all that the archive "
                "has: STOP REPLICA, CHANGE REPLICATION SOURCE TO it at the relay, START REPLICA. If it is refused then, accept "
                "the gap."
            )

    def _is_same(self, found: SourceIdentity) -> bool:
        known = self._generation.identity
        if known is None:
            return True
        if known.server_uuid and found.server_uuid:
            return known.server_uuid == found.server_uuid
        return known.server_id == found.server_id

    async def _common(self, listed: list[tuple[str, int]]) -> _Common | None:
        """Return the newest of the source's files that the archive has too.

        From some file on all differ, so it is found by bisection: a source may have thousands.
        """
        generation = self._generation
        held = [(number, name, size) for number, (name, size) in enumerate(listed) if generation.file(name) is not None]
        found: _Common | None = None
        low, high = 0, len(held)
        while low < high:
            middle = (low + high) // 2
            number, name, size = held[middle]
            place = await self._same(name, size)
            if place is None:
                high = middle
            else:
                found, low = _Common(place, number), middle + 1
        return found

    async def _cut_off(self, common: _Common) -> GtidSet:
        """Return which of MySQL's transactions are archived after the place up to which both are identical. Raises: GapRefused."""
        if not isinstance(self._archive.executed, GtidSet):
            return GtidSet()
        generation, place = self._generation, common.place
        parts = [
            ArchivedPart(
                generation.path(file.name),
                place.offset if file.name == place.file else FIRST_EVENT,
                file.end,
                bool(file.checksum),
            )
            for file in generation.files
            if file.number >= binlog_number(place.file)
        ]
        try:
            return await asyncio.to_thread(mysql_gtids_in, generation.layer, parts)
        except (OSError, Malformed) as error:
            raise GapRefused(
                f"What is archived behind {place} cannot be read: {error}. Run `binlog-relay archive verify --deep`."
            ) from error

    async def _same(self, name: str, size_bytes: int) -> Position | None:
        file = self._generation.file(name)
        assert file is not None
        connection = await self._open()
        try:
            offset = await same_up_to(connection, self._generation, file, size_bytes)
        finally:
            connection.close()
        return None if offset is None else Position(name, offset)

    async def _file_by_gtid(self, gtids: SourceGtids, first: SourceFile) -> str:
        """Return, for another server, the file with the first transaction that the archive does not have; its oldest if that was
        purged."""
        of_gtids = gap_gtids(self._archive.executed, gtids, first, first, GtidSet(), same_server=False)
        if of_gtids is None:
            return first.name
        state = of_gtids.state
        if isinstance(self._archive.executed, GtidList):
            state = str(GtidList.from_text(state).position)
        connection = await self._open()
        try:
            return await file_for_gtids(connection, state, gtids, of="the archive")
        except UpstreamError as error:
            if error.kind is not FailureKind.POSITION_GONE:
                raise
            return first.name
        finally:
            connection.close()

    async def _look(self, name: str) -> SourceFile:
        connection = await self._open()
        try:
            return await read_source_file(connection, name)
        finally:
            connection.close()

    async def _checked(
        self,
        to: Position,
        listed: list[tuple[str, int]],
        rest: list[tuple[str, int]],
        common: _Common | None,
    ) -> Position:
        """Return the requested place to go on. Raises: GapRefused for a place where the archive cannot."""
        sizes = dict(listed)
        if to.file not in sizes:
            raise GapRefused(f"{self._where} has no {to.file}; it has {listed[0][0]} to {listed[-1][0]}.")
        if to.file not in dict(rest):
            assert common is not None
            raise GapRefused(
                f"{to} lies before the archive's end: up to {common.place} the archive has what {self._where} has. The first "
                f"place to go on with is {rest[0][0]}:4."
            )
        size = sizes[to.file]
        if not FIRST_EVENT <= to.offset <= size:
            raise GapRefused(f"{to} is no place in that file: it goes from 4 to {size}.")
        if to.offset > FIRST_EVENT:
            connection = await self._open()
            try:
                if not await is_boundary(connection, to.file, to.offset):
                    raise GapRefused(
                        f"{to} is not between two transactions of {self._where}: SHOW BINLOG EVENTS IN '{to.file}' there "
                        "shows where they begin."
                    )
            finally:
                connection.close()
        return to


def _is_next(name: str, before: str) -> bool:
    """Return whether a source begins the file `name` after `before`, by their names."""
    of_series = name.rpartition(".")[0] == before.rpartition(".")[0]
    return of_series and binlog_number(name) == binlog_number(before) + 1


def _has(source: SourceGtids, first: SourceFile, same_server: bool) -> GtidSet:
    """Return which archivable transactions a MySQL source has executed."""
    if not same_server:
        return source.executed
    return first.before | source.purged if isinstance(first.before, GtidSet) else source.purged


def _has_executed(cut_off: GtidSet, source: SourceGtids, first: SourceFile) -> bool:
    return source.mode == "ON" and cut_off <= _has(source, first, True)


def gap_gtids(
    executed: GtidValue | None,
    source: SourceGtids,
    first: SourceFile,
    head: SourceFile,
    cut_off: GtidSet,
    *,
    same_server: bool,
) -> GapGtids | None:
    """Return the gap by GTID; None if GTIDs do not show it. `first` is the source's first file that is not the archive's, `head` the
    one with which the archive goes on. `cut_off` are archived transactions that replicas are no longer sent.

    The same server has lost what the archive has and it had not executed before `first`, whatever has these numbers now.
    """
    if isinstance(executed, GtidSet):
        if source.mode != "ON" or not isinstance(first.before, GtidSet) or not isinstance(head.before, GtidSet):
            return None
        has = _has(source, first, same_server)
        return mysql_gap(executed, has, head.before | source.purged, cut_off)
    if isinstance(executed, GtidList):
        if not isinstance(first.before, GtidList) or not isinstance(head.before, GtidList):
            return None
        has_state = first.before if same_server else source.binlog_state or GtidList()
        return mariadb_gap(executed, has_state, head.before)
    return None


async def _sent_beyond(generation: Generation, place: Position, connected: Sequence[SentPlace]) -> tuple[str, ...]:
    """Return the replicas that were sent events after `place`: connected ones, and those by file and position with kept positions."""
    later = [file.name for file in generation.files if file.number >= binlog_number(place.file)]
    marks = await asyncio.to_thread(generation.replicas.sent_in, later)
    found: dict[ReplicaIdentity, Position] = {}
    for sent in (*marks, *connected):
        if sent.place > place:
            found[sent.identity] = max(sent.place, found.get(sent.identity, place))
    named = sorted(found.items(), key=lambda item: (item[0].server_id, item[0].server_uuid))
    said = tuple(
        f"server_id {identity.server_id}{f' ({identity.server_uuid})' if identity.server_uuid else ''} up to {to}"
        for identity, to in named[:_MOST_NAMED]
    )
    return said if len(named) <= _MOST_NAMED else (*said, f"{len(named) - _MOST_NAMED} more")


def parse_place(text: str) -> Position:
    """Return the place of FILE:POSITION. Raises: GapRefused."""
    file, colon, offset = text.rpartition(":")
    try:
        if colon and offset.isdecimal():
            binlog_number(file)
            return Position(file, int(offset))
    except Malformed:
        pass
    raise GapRefused(f"{text} is no place in a binlog: write FILE:POSITION, such as mysql-bin.000007:4.")
