"""Whether a replica that asks by GTID is served, from which file on, and what of the stream it is not sent.

Sources decide the same (`file_search`, `dump_refusals`), with one difference: a relay may not have yet what the replica
says it has. That is no refusal, it may still come (`StillAwaited`).
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

# As many files as `FileSearch.union_from` may count too many.
_FILES_BEFORE = 128
_NOTHING = GtidSet()


@dataclass(frozen=True, slots=True)
class SourceHoldings:
    """What the source itself has: MySQL's executed set, or the state of MariaDB's binlog."""

    gtids: GtidSet | GtidList

    def lacks(self, awaited: "GtidSet | Sequence[DomainGtid]") -> bool:
        """Whether any of these is not there. In a domain that the source has not, or has no more, it expects nothing."""
        if isinstance(awaited, GtidSet):
            return isinstance(self.gtids, GtidSet) and not awaited <= self.gtids
        if not isinstance(self.gtids, GtidList):
            return False
        position = self.gtids.position
        return any(position.domain(gtid.domain_id) and not self.gtids.contains(gtid) for gtid in awaited)


class StillAwaited(ProtocolError):
    """The replica has what is not here yet, `awaited`. `refused`: what a source says that has it not."""

    def __init__(self, refused: PositionRefused, awaited: GtidSet | Sequence[DomainGtid]) -> None:
        super().__init__(refused.what)
        self.refused = refused
        self.awaited = awaited


class UnreadableInTheWay(ProtocolError):
    """The GTIDs of file `number` are not known: `dump_refusals.unreadable_refused`, with its name."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the GTIDs of file {number} are not known")
        self.number = number


class AnonymousInTheWay(ProtocolError):
    """File `number` has a transaction without a GTID: `dump_refusals.anonymous_refused`, with its place."""

    def __init__(self, number: int) -> None:
        super().__init__(f"file {number} has a transaction without a GTID")
        self.number = number


@dataclass(frozen=True, slots=True)
class MysqlHoldings:
    """What an archive has of a MySQL source. Files are numbered from 0, the oldest, as in `search`.

    `executed`: all that is in the files or before them. `purged`: of that, what is in no file. `anonymous`: numbers of
    the files with transactions that have no GTID, oldest first. `unreadable`: of those whose GTIDs are not known.
    """

    search: FileSearch
    executed: GtidSet
    purged: GtidSet
    anonymous: Sequence[int] = ()
    unreadable: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class MysqlStart:
    """From file `number` on, without `held`: `held_here` transactions of it are there; `later`: others may still come.

    strange: what the replica has of sources that nothing here is of: its own transactions, mostly. They may come, too.
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
    """Where a replica that has `held` starts. `named`: number of the file that it asks for itself; then nothing is checked.

    source_uuids: of the source, whose own transactions a replica must not have more of; none: that is not checked.
    known: all that was executed, if that is more than `holdings.executed`.
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
    """Whether the GTIDs of all files from `number` on are known. Raises: UnreadableInTheWay."""
    for place in unreadable:
        if place >= number:
            raise UnreadableInTheWay(place)


@dataclass(frozen=True, slots=True)
class MariadbHoldings:
    """What an archive has of a MariaDB source: the list at the head of each file, oldest first, and the state at the end.

    breaks: where the source took domains out of its state, oldest first. unreadable: numbers of the files whose GTIDs are not
    known, oldest first.
    """

    befores: Sequence[GtidList]
    state: GtidList
    breaks: Sequence[Break] = ()
    unreadable: Sequence[int] = ()

    def first_needed(self, position: GtidPosition) -> int | None:
        """See `first_needed_list`."""
        return first_needed_list(self.befores, position, self.breaks)

    def awaited(self, position: GtidPosition, number: int, known: GtidList) -> list[DomainGtid]:
        """Of `position`, the groups that may come from file `number` on, and before which nothing of their domain is sent.

        A domain that is in no state from there on, `known` at the end included, is none of the source's: what the position
        means in it is seen when it comes.
        """
        there = [known, *(each.forgotten for each in self.breaks if each.number > number)]
        domains = {gtid.domain_id for state in there for gtid in state}
        seen = GtidPosition(gtid for gtid in position if gtid.domain_id in domains)
        return still_awaited(self.befores[number], seen)


@dataclass(frozen=True, slots=True)
class MariadbStart:
    """From file `number` on; in the domains of `awaited` nothing is sent up to and with these groups.

    is_new: the replica has nothing of the source yet. strange: of the position, the groups of domains that the source never
    wrote; what they mean is seen when it does.
    """

    number: int
    awaited: Sequence[DomainGtid]
    is_new: bool
    strange: Sequence[DomainGtid] = ()


def mariadb_start(
    position: GtidPosition, holdings: MariadbHoldings, *, ignore_duplicates: bool, known: GtidList | None = None
) -> MariadbStart:
    """Where a replica at `position` starts. `known`: the state at the end, if that is more than `holdings.state`.

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
    """Whether all of the position was in the source's binlog, or may still come. Raises: PositionRefused; StillAwaited."""
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
