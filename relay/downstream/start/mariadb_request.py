"""The start of a MariaDB replica that sends `@slave_connect_state`, and its continuation in the next generation."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from protocol.errors import ErrorCode, Malformed
from protocol.gtid.dump_decision import UnreadableInTheWay, check_readable, mariadb_start
from protocol.gtid.dump_refusals import mariadb_purged_refused, unreadable_refused
from protocol.gtid.file_search import still_awaited
from protocol.gtid.mariadb import DomainGtid, DomainTwice, GtidList, GtidPosition
from protocol.resultset import Value
from protocol.statements import SourceFacts
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids, GtidLookup
from relay.downstream.gtid_filter.mariadb_filter import Awaited, MariadbFilter, MariadbGroupFilter, Until
from relay.downstream.request.refusal import refusal

_UNTIL_BEFORE_SINCE: Final = (11, 3)
_SAID: Final = ("slave_connect_state", "slave_until_gtid", "slave_gtid_until_before_gtids")


class MariadbRequest:
    """A position, and the end of the stream. Both are read in the thread that first needs them: 64 KiB of text take 20 ms."""

    def __init__(self, user_variables: dict[str, Value], facts: SourceFacts, gtids: GtidLookup) -> None:
        self._gtids = gtids
        self._said = {name: user_variables.get(name) for name in _SAID}
        self._knows_until_before = facts.version_numbers >= _UNTIL_BEFORE_SINCE
        self._strict = _is_on(user_variables.get("slave_gtid_strict_mode"))
        self._ignore_duplicates = _is_on(user_variables.get("slave_gtid_ignore_duplicates"))

    @cached_property
    def _position(self) -> GtidPosition:
        return _reported_position(self._said, "slave_connect_state")

    @cached_property
    def _until(self) -> Until | None:
        if self._said["slave_until_gtid"] is None:
            return None
        before = self._knows_until_before and _is_on(self._said["slave_gtid_until_before_gtids"])
        return Until(list(_reported_position(self._said, "slave_until_gtid")), before)

    def reported(self) -> GtidPosition:
        """Implement `GtidRequest.reported`."""
        return self._position

    def start(self, series: Sequence[ArchivedGtids]) -> MariadbFilter | None:
        """Implement `GtidRequest.start`, in the newest generation with a file that begins at or before the position."""
        position, until_end = self._position, self._until
        executed = series[-1].executed
        chosen: ArchivedGtids | None = None
        for archived in reversed(series):
            if archived.mariadb is None:
                continue
            chosen = archived
            if archived.mariadb.first_needed(position) is not None:
                break
        if chosen is None or chosen.mariadb is None:
            return None
        known = executed if isinstance(executed, GtidList) else chosen.mariadb.state
        try:
            start = mariadb_start(position, chosen.mariadb, ignore_duplicates=self._ignore_duplicates, known=known)
        except UnreadableInTheWay as met:
            raise unreadable_refused(chosen.files.names[met.number]) from None
        until = until_end.after(chosen.mariadb.befores[start.number]) if until_end is not None else None
        awaited = Awaited(position, start.awaited, self._strict)
        return self._planned(chosen, start.number, awaited, until, start.strange, continues=not start.is_new)

    def go_on(self, sent: GtidValue | None, before: GtidFilter | None, archived: ArchivedGtids) -> MariadbFilter | None:
        """Implement `GtidRequest.go_on`."""
        if archived.mariadb is None:
            return None
        state = sent if isinstance(sent, GtidList) else GtidList()
        waiting = before.waiting if isinstance(before, MariadbFilter) else {}
        newest = state.position
        reached = [waiting.get(gtid.domain_id, gtid) for gtid in newest]
        # A domain that only the new source has, and a replica that is there already.
        reached += [gtid for domain, gtid in waiting.items() if newest.domain(domain) is None]
        position = GtidPosition(reached)
        strange = [
            gtid for gtid in self._position if newest.domain(gtid.domain_id) is None and gtid.domain_id not in waiting
        ]
        befores = archived.mariadb.befores
        number = archived.mariadb.first_needed(position)
        if number is None:
            raise mariadb_purged_refused(position, befores[0])
        try:
            check_readable(number, archived.mariadb.unreadable)
        except UnreadableInTheWay as met:
            raise unreadable_refused(archived.files.names[met.number]) from None
        awaited = Awaited(position, still_awaited(befores[number], position), self._strict)
        until = self._until.after(state) if self._until is not None else None
        return self._planned(archived, number, awaited, until, strange, continues=True)

    def _planned(
        self,
        archived: ArchivedGtids,
        number: int,
        awaited: Awaited,
        until: Until | None,
        strange: Sequence[DomainGtid],
        *,
        continues: bool,
    ) -> MariadbFilter:
        snapshot = archived.files[number]
        groups: MariadbGroupFilter | None = None
        if awaited.gtids or until is not None:
            groups = MariadbGroupFilter(awaited, until)
            groups.seek = groups.find_seek(snapshot)
        return MariadbFilter(
            self._gtids, archived.generation, snapshot.name, groups, continues=continues, strange=strange
        )


def _reported_position(user_variables: dict[str, Value], name: str) -> GtidPosition:
    """Return a position that the replica reported. Raises: PositionRefused, as a source that parses it at the dump request."""
    try:
        return GtidPosition.from_text(str(user_variables.get(name) or ""))
    except DomainTwice as error:
        raise refusal(str(error), ErrorCode.ER_DUPLICATE_GTID_DOMAIN) from None
    except Malformed as error:
        raise refusal(f"Could not parse GTID list: @{name}: {error}", ErrorCode.ER_INCORRECT_GTID_STATE) from None


def _is_on(value: Value) -> bool:
    return value is not None and str(value) not in ("", "0")
