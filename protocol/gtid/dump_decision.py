"""The decision on a replica that asks by GTID: whether it is served, from which file on, and which transactions it is not sent.

Sources decide the same (`file_search`, `dump_refusals`), with one difference: a relay may not have received yet what the
replica reports. That is no refusal, because it may still come (`StillAwaited`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from protocol.errors import PositionRefused, ProtocolError
from protocol.gtid.dump_refusals import (
    ahead_of,
    ahead_refused,
    check_mariadb_position,
    mariadb_purged_refused,
    purged_refused,
)
from protocol.gtid.file_search import Break, FileSearch, first_needed_list, still_awaited
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition

# The number of files that `FileSearch.union_from` may count too many.
_FILES_BEFORE = 128
_NOTHING = GtidSet()


@dataclass(frozen=True, slots=True)
class SourceHoldings:
    """The transactions of the source itself: MySQL's executed set, or the state of MariaDB's binlog."""

    gtids: GtidSet | GtidList

    def lacks(self, awaited: "GtidSet | Sequence[DomainGtid]") -> bool:
        """Return whether any of these is missing. In a domain that the source does not have (any more), it expects nothing."""
        if isinstance(awaited, GtidSet):
            return isinstance(self.gtids, GtidSet) and not awaited <= self.gtids
        if not isinstance(self.gtids, GtidList):
            return False
        position = self.gtids.position
        return any(position.domain(gtid.domain_id) and not self.gtids.contains(gtid) for gtid in awaited)


class StillAwaited(ProtocolError):
    """The replica has transactions that are not here yet, `awaited`. `refused` is the answer of a source that does not have them."""

    def __init__(self, refused: PositionRefused, awaited: GtidSet | Sequence[DomainGtid]) -> None:
        super().__init__(refused.what)
        self.refused = refused
        self.awaited = awaited


class UnreadableInTheWay(ProtocolError):
    """The GTIDs of file `number` are not known: `dump_refusals.unreadable_refused` words the refusal, with the file's name."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the GTIDs of file {number} are not known")
        self.number = number


class AnonymousInTheWay(ProtocolError):
    """File `number` has a transaction without a GTID: `dump_refusals.anonymous_refused` words the refusal, with its place."""

    def __init__(self, number: int) -> None:
        super().__init__(f"file {number} has a transaction without a GTID")
        self.number = number


@dataclass(frozen=True, slots=True)
class MysqlHoldings:
    """The transactions that an archive has of a MySQL source. Files are numbered from 0, the oldest, as in `search`.

    `executed` contains all transactions in the files or before them, `purged` those of them that are in no file. `anonymous`
    lists the numbers of the files with transactions that have no GTID, oldest first, `unreadable` those of the files whose
    GTIDs are not known.
    """

    search: FileSearch
    executed: GtidSet
    purged: GtidSet
    anonymous: Sequence[int] = ()
    unreadable: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class MysqlStart:
    """A start with file `number` that omits `held`, of which `held_here` transactions are in the files. `later`: others may come.

    `strange` contains the replica's transactions of sources that are unknown here, mostly its own. They may come, too.
    """

    number: int
    held: GtidSet
    held_here: int
    later: bool
    strange: GtidSet = _NOTHING


def mysql_start(
    held: GtidSet,
    holdings: MysqlHoldings,
    *,
    source_uuids: Collection[UUID],
    version: tuple[int, ...],
    named: int | None = None,
    known: GtidSet | None = None,
) -> MysqlStart:
    """Decide where a replica that has `held` starts. If it asks for file `named` itself, its set is not compared.

    `source_uuids` are those of the source, of whose own transactions a replica must not have more; if empty, that is not
    checked.
    `known` contains all that was executed, if that is more than `holdings.executed`.
    Raises: PositionRefused; UnreadableInTheWay; AnonymousInTheWay; StillAwaited; IndexError without a file.
    """
    search = holdings.search
    if not len(search):
        raise IndexError("no file")
    if named is None:
        executed = holdings.executed if known is None else known
        surplus = ahead_of(held, executed, source_uuids)
        if surplus:
            raise StillAwaited(ahead_refused(surplus, version), surplus)
        missing = holdings.purged - held
        if missing:
            raise purged_refused(held, missing, version)
        needed = search.first_needed(held)
        number = len(search) - 1 if needed is None else needed
    else:
        number = named
    check_readable(number, holdings.unreadable)
    for place in holdings.anonymous:
        if place >= number:
            raise AnonymousInTheWay(place)
    before = GtidSetBuilder()
    for earlier in range(max(0, number - _FILES_BEFORE), number):
        before.add_set(search.inside(earlier))
    held, strange = held.split(holdings.executed.intervals_by_key())
    here = (held & search.union_from(number)) - before.snapshot()
    later = held - holdings.executed
    return MysqlStart(number, here | later, here.count, bool(later), strange)


def check_readable(number: int, unreadable: Sequence[int]) -> None:
    """Check that the GTIDs of all files from `number` on are known. Raises: UnreadableInTheWay."""
    for place in unreadable:
        if place >= number:
            raise UnreadableInTheWay(place)


@dataclass(frozen=True, slots=True)
class MariadbHoldings:
    """The groups that an archive has of a MariaDB source: the list at the head of each file, oldest first, and the state at the end.

    `breaks` lists where the source removed domains from its state, oldest first; `unreadable` the numbers of the files whose
    GTIDs are not known, oldest first.
    """

    befores: Sequence[GtidList]
    state: GtidList
    breaks: Sequence[Break] = ()
    unreadable: Sequence[int] = ()

    def first_needed(self, position: GtidPosition) -> int | None:
        """Call `first_needed_list` with these files."""
        return first_needed_list(self.befores, position, self.breaks)

    def awaited(self, position: GtidPosition, number: int, known: GtidList) -> list[DomainGtid]:
        """Return the groups of `position` that may come from file `number` on, and before which nothing of their domain is sent.

        A domain that is in no state from there on, including `known` at the end, is not the source's: the meaning of the
        position in it is decided when a group of it comes.
        """
        there = [known, *(each.forgotten for each in self.breaks if each.number > number)]
        domains = {gtid.domain_id for state in there for gtid in state}
        seen = GtidPosition(gtid for gtid in position if gtid.domain_id in domains)
        return still_awaited(self.befores[number], seen)


@dataclass(frozen=True, slots=True)
class MariadbStart:
    """The stream starts with file `number`; in the domains of `awaited` nothing is sent up to and including these groups.

    `is_new`: the replica has nothing of the source yet. `strange` contains the position's groups in domains that the source
    never wrote; their meaning is decided when it does.
    """

    number: int
    awaited: Sequence[DomainGtid]
    is_new: bool
    strange: Sequence[DomainGtid] = ()


def mariadb_start(
    position: GtidPosition, holdings: MariadbHoldings, *, ignore_duplicates: bool, known: GtidList | None = None
) -> MariadbStart:
    """Decide where a replica at `position` starts. `known` is the state at the end, if that is more than `holdings.state`.

    Raises: PositionRefused; UnreadableInTheWay; StillAwaited; IndexError without a file.
    """
    if not holdings.befores:
        raise IndexError("no file")
    state = holdings.state if known is None else known
    check_known(position, state, ignore_duplicates=ignore_duplicates)
    number = holdings.first_needed(position)
    if number is None:
        raise mariadb_purged_refused(position, holdings.befores[0])
    check_readable(number, holdings.unreadable)
    newest = state.position
    strange = [gtid for gtid in position if newest.domain(gtid.domain_id) is None]
    return MariadbStart(number, holdings.awaited(position, number, state), len(strange) == len(position), strange)


def check_known(position: GtidPosition, state: GtidList, *, ignore_duplicates: bool) -> None:
    """Check that all of the position was in the source's binlog, or may still come. Raises: PositionRefused; StillAwaited."""
    newest = state.position
    ahead: PositionRefused | None = None
    awaited: list[DomainGtid] = []
    for gtid in position:
        try:
            check_mariadb_position(GtidPosition([gtid]), state, ignore_duplicates=ignore_duplicates)
        except PositionRefused as refused:
            last = newest.domain(gtid.domain_id)
            if last is None or last.sequence_number >= gtid.sequence_number:
                raise
            ahead = ahead or refused
            awaited.append(gtid)
    if ahead is not None:
        raise StillAwaited(ahead, awaited)
