"""The rules of a view whose replicas are older than the source."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from protocol.binlog.event_type import EventType
from protocol.binlog.header import EventHeader
from protocol.binlog.xa_prepare import XaPrepare, decode_xa_prepare
from protocol.errors import ProtocolError
from protocol.sql.server_version import version_id
from relay.view.rules.group import Copy, GroupEvent, GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.settings import ViewSettings
from relay.view.rules.sub_transactions import Pieces
from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.seen_group import SeenGroup
from relay.view.rules.targets.target_columns import check_columns, rows_of_version_1
from relay.view.rules.targets.target_format import is_newer
from relay.view.rules.targets.target_gtid import GTID_TYPES, gtid_for
from relay.view.rules.targets.target_query import TargetQuery, statement_like, user_variable_for
from relay.view.rules.targets.unpacked_payload import look_into_payload, unpack_payload
from relay.view.stops import definition_stops, statement_stops, transaction_stops
from relay.view.stops.stop_reason import Untranslatable

_QUERIES: Final = frozenset((EventType.QUERY, EventType.EXECUTE_LOAD_QUERY))
_ROWS: Final = frozenset((EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS))
_WITHOUT_DATA: Final = frozenset((EventType.TRANSACTION_CONTEXT, EventType.VIEW_CHANGE, EventType.ROWS_QUERY))
# The events in a compressed transaction that the target can read that may change: all others are kept, or known by their type alone.
_CHANGED_INSIDE: Final = _QUERIES | {EventType.TABLE_MAP, EventType.USER_VAR}
_TOLD_INSIDE: Final = _QUERIES | {EventType.XA_PREPARE}
# Events that need no check where the target knows the type at all: the many events of a long transaction.
_AS_THEY_ARE: Final = frozenset((
    EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1, EventType.WRITE_ROWS, EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS, EventType.PARTIAL_UPDATE_ROWS, EventType.XID, EventType.INTVAR, EventType.RAND, EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK, EventType.DELETE_FILE,
))  # fmt: skip


class _Part(NamedTuple):
    """An event of the view's group. `body` None: it is kept as the source has it."""

    event: GroupEvent
    body: bytes | None = None

    def piece(self) -> Copy | New:
        if self.body is None:
            return Copy(self.event.offset, self.event.offset + self.event.length)
        return New(self.event.type, self.event.flags, self.event.timestamp, self.event.server_id, self.body)


class TargetRules(GroupRules):
    """Makes each group readable for `settings.target`, then passes the result to `inner`, where there are such rules. Each statement
    has status variables that the target may not know.

    `inner` gets places that are no offsets of the file: it may only copy what it was shown, as ranges of whole events.
    """

    def __init__(self, settings: ViewSettings, inner: GroupRules | None = None) -> None:
        self._settings = settings
        self._target = TARGETS_BY_NAME[settings.target]
        self._collations = CollationMap(settings.collations, self._target)
        self._inner = inner

    @property
    def look_at(self) -> bytes:
        """Table_map for the types of columns, Gtid events for their layout, statements, types unknown to the target, and all others
        except the contents of transactions."""
        known = self._target.highest_event
        return bytes(kind not in _AS_THEY_ARE or kind > known for kind in range(256))

    def of_source(self, server_version: str) -> GroupRules:
        """Implement `GroupRules.of_source`."""
        if is_newer(server_version, self._settings) or self._inner is None:
            return self
        return self._inner.of_source(server_version)

    def skipped(self, group: SourceGroup) -> None:
        """Implement `GroupRules.skipped`. An XA transaction prepared in a compressed group ends in one that is not compressed."""
        if self._inner is not None:
            self._inner.skipped(_with_told(group))

    def check_unfinished(self, group: SourceGroup, *, is_followed: bool) -> None:
        """Implement `GroupRules.check_unfinished`."""
        if self._inner is not None:
            self._inner.check_unfinished(group, is_followed=is_followed)

    def source_started(self) -> None:
        """Implement `GroupRules.source_started`."""
        if self._inner is not None:
            self._inner.source_started()

    def source_went_on(self, *, decided: bool) -> None:
        """Implement `GroupRules.source_went_on`."""
        if self._inner is not None:
            self._inner.source_went_on(decided=decided)

    def state(self) -> bytes:
        """Return what `inner` has learned; these rules learn nothing."""
        return self._inner.state() if self._inner is not None else b""

    def restore(self, state: bytes) -> None:
        """Implement `GroupRules.restore`."""
        if self._inner is not None:
            self._inner.restore(state)

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Implement `GroupRules.plan`. With `gtid` "source" and no Gtid event among the pieces, the target has none: none is added."""
        if not is_newer(group.server_version, self._settings):
            return self._inner.plan(group) if self._inner is not None else _whole(group)
        head = self._first_of(group)
        named = head is not None and head.event.type != EventType.ANONYMOUS_GTID
        translated = self._translated(group, named)
        if head is not None:
            translated = [[head.piece(), *made] for made in translated]
        keeps_head = head is not None or not self._target.gtid_bytes
        if self._inner is None:
            return [OutGroup(_merged(made), "source" if keeps_head else "new") for made in translated]
        known = self._inner.state()
        try:
            return [found for made in translated for found in self._seen_by(self._inner, made, keeps_head, group)]
        except Untranslatable:
            self._inner.restore(known)
            raise

    def in_place_of(self, group: SourceGroup, empty: OutGroup) -> list[OutGroup]:
        """Implement `GroupRules.in_place_of`. It is nothing where the target cannot read the GTID, and where there are none."""
        try:
            head = self._first_of(group)
        except Untranslatable:
            return []
        if head is not None:
            return [OutGroup([head.piece(), *empty.pieces], "source")]
        return [empty] if self._target.gtid_bytes and self._settings.gtids != "keep" else []

    # --- the events of the group -------------------------------------------------------------------------------------------

    def _parts(self, group: SourceGroup) -> Iterator[_Part]:
        """Yield its events except its GTID event; compressed ones are unpacked."""
        for event in group.events:
            if event.type in GTID_TYPES:
                continue
            if event.type == EventType.TRANSACTION_PAYLOAD and self._must_unpack(event, group):
                yield from (_unpacked(event, *inside) for inside in unpack_payload(group.body(event)))
            else:
                yield _Part(event)

    def _first_of(self, group: SourceGroup) -> _Part | None:
        """Return the source's GTID event that the view's group begins with; None: it has none. Raises: Untranslatable."""
        first = next(iter(group.events))
        return self._head(_Part(first), group) if first.type in GTID_TYPES else None

    def _must_unpack(self, event: GroupEvent, group: SourceGroup) -> bool:
        """Return whether the target cannot read the compressed transaction, or an event inside must be changed for it."""
        if event.type > self._target.highest_event:
            return True
        for inside in look_into_payload(group.body(event), _CHANGED_INSIDE):
            part = _unpacked(event, *inside)
            if part.event.type in _QUERIES:
                changed = self._query(part, group).translated() != part.body
            else:
                changed = self._event(part, group) != [part.piece()]
            if changed:
                return True
        return False

    def _head(self, part: _Part, group: SourceGroup) -> _Part | None:
        """Return the source's own Gtid event as the view keeps it; None: the view has another, or none."""
        if not self._target.gtid_bytes or self._settings.gtids == "anonymous":
            return None
        if part.event.type == EventType.ANONYMOUS_GTID and self._settings.gtids == "assign":
            return None
        body = group.body(part.event)
        try:
            event_type, made = gtid_for(body, part.event.type, self._target)
        except ProtocolError as error:
            raise statement_stops.not_parsed(b"", f"its Gtid event is damaged ({error})") from error
        if (event_type, made) == (part.event.type, body):
            return part
        return _Part(part.event._replace(type=event_type), made)

    # --- the translation ---------------------------------------------------------------------------------------------------

    def _translated(self, group: SourceGroup, has_gtid: bool) -> list[list[Copy | New]]:
        """Return the groups that one becomes, without their heads."""
        made = [Pieces()]
        last: int = EventType.UNKNOWN
        for part in self._parts(group):
            last = part.event.type
            if part.event.type not in _QUERIES:
                made[-1].extend(self._event(part, group))
                continue
            query = self._query(part, group)
            if (query.is_account_statement and self._settings.account_statements == "skip") or query.only_counts:
                made[-1].extend(self._nothing(part, query))
            elif query.selects_into_new_table and (has_gtid or self._settings.gtids == "assign"):
                raise definition_stops.create_select_with_gtid(query.query.text, self._target.title, with_rows=False)
            elif query.makes_table_with_rows:
                if has_gtid:
                    raise definition_stops.create_select_with_gtid(query.query.text, self._target.title, with_rows=True)
                begin = made.pop()
                definition = Pieces()
                definition.add(_Part(part.event, query.translated()).piece())
                made += [definition, begin]
            else:
                made[-1].add(_Part(part.event, query.translated()).piece())
        found = [one.all for one in made if one.all]
        if found and last == EventType.XA_PREPARE and self._target.highest_event < EventType.XA_PREPARE:
            found[-1] = self._one_phase(found[-1])
        return found

    def _query(self, part: _Part, group: SourceGroup) -> TargetQuery:
        return TargetQuery(
            self._body(part, group), part.event.type, version_id(group.server_version), self._target, self._collations,
            self._settings.explicit_timestamps,
        )  # fmt: skip

    def _event(self, part: _Part, group: SourceGroup) -> list[Copy | New]:
        event_type = part.event.type
        target = self._target
        if event_type == EventType.TABLE_MAP:
            check_columns(self._body(part, group), target)
        elif event_type == EventType.PARTIAL_UPDATE_ROWS and event_type > target.highest_event:
            raise transaction_stops.partial_updates(target.title)
        elif event_type == EventType.USER_VAR:
            body = self._body(part, group)
            made = user_variable_for(body, version_id(group.server_version), self._collations, target)
            if made != body:
                return [_Part(part.event, made).piece()]
        elif event_type == EventType.XA_PREPARE and event_type > target.highest_event:
            prepared = _xa(self._body(part, group))
            if not prepared.one_phase:
                raise transaction_stops.xa_prepared(str(prepared.xid), target.title)
        elif event_type in _ROWS and event_type > target.highest_event:
            version_1, body = rows_of_version_1(event_type, self._body(part, group))
            return [_Part(part.event._replace(type=version_1), body).piece()]
        elif event_type > target.highest_event:
            if event_type in _WITHOUT_DATA:
                return []
            raise transaction_stops.event_not_in_target(event_type, target.title)
        return [part.piece()]

    def _one_phase(self, pieces: list[Copy | New]) -> list[Copy | New]:
        """Turn XA START ... XA END, XA_PREPARE of one phase into BEGIN ... COMMIT, as the target knows no such event."""
        return [self._word(pieces[0], b"BEGIN"), *pieces[1:-2], self._word(pieces[-2], b"COMMIT")]

    def _word(self, piece: Copy | New, text: bytes) -> New:
        assert isinstance(piece, New)
        query = TargetQuery(piece.body, EventType.QUERY, 0, self._target, self._collations, False).query
        return piece._replace(body=statement_like(query, text, self._target))

    def _nothing(self, part: _Part, query: TargetQuery) -> list[Copy | New]:
        """Return a transaction without statements, which replaces one."""
        return [
            _Part(part.event, statement_like(query.query, text, self._target)).piece() for text in (b"BEGIN", b"COMMIT")
        ]

    @staticmethod
    def _body(part: _Part, group: SourceGroup) -> bytes:
        return part.body if part.body is not None else group.body(part.event)

    # --- the view's groups -------------------------------------------------------------------------------------------------

    def _seen_by(
        self, inner: GroupRules, pieces: list[Copy | New], keeps_head: bool, group: SourceGroup
    ) -> Iterator[OutGroup]:
        """Yield the groups that `inner` makes of it."""
        seen = SeenGroup(group, pieces)
        for outgroup in inner.plan(seen.group):
            yield OutGroup(_merged(seen.real(outgroup.pieces)), outgroup.gtid if keeps_head else "new")


def _with_told(group: SourceGroup) -> SourceGroup:
    """Return the group with the statements, and the preparation, of a compressed transaction in its place; an unreadable one stays."""
    if all(event.type != EventType.TRANSACTION_PAYLOAD for event in group.events):
        return group
    pieces: list[Copy | New] = []
    try:
        for event in group.events:
            if event.type == EventType.TRANSACTION_PAYLOAD:
                inside = (_unpacked(event, *one) for one in look_into_payload(group.body(event), _TOLD_INSIDE))
                pieces += [part.piece() for part in inside if part.body]
            else:
                pieces.append(_Part(event).piece())
    except Untranslatable:
        return group
    return SeenGroup(group, pieces).group


def _whole(group: SourceGroup) -> list[OutGroup]:
    has_gtid = next(iter(group.events)).type in GTID_TYPES
    return [OutGroup([Copy(group.start, group.stop)], "source" if has_gtid else "new")]


def _unpacked(event: GroupEvent, header: EventHeader, body: bytes) -> _Part:
    """Return an event inside a compressed transaction."""
    return _Part(GroupEvent(event.offset, 0, header.type, header.flags, header.timestamp, header.server_id), body)


def _xa(body: bytes) -> XaPrepare:
    try:
        return decode_xa_prepare(body)
    except ProtocolError as error:
        raise statement_stops.not_parsed(body, f"its Xa_prepare event is damaged ({error})") from error


def _merged(pieces: Iterable[Copy | New]) -> list[Copy | New]:
    made = Pieces()
    made.extend(pieces)
    return made.all
