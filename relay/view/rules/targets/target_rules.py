"""The rules of a view whose replicas are older than the source."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from protocol.binlog.event_type import EventType, event_type_name
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.xa_prepare import XaPrepare, decode_xa_prepare
from protocol.errors import ProtocolError
from relay.view.rules.group import CannotBeKept, Copy, GroupEvent, GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.known import target_stops
from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.known.target_stops import CREATE_SELECT, SYNTAX_ERROR
from relay.view.rules.targets.target_columns import check_columns, rows_of_version_1
from relay.view.rules.targets.target_format import is_newer, source_version
from relay.view.rules.targets.target_gtid import GTID_TYPES, gtid_for
from relay.view.rules.targets.target_query import TargetQuery, statement_like, user_variable_for
from relay.view.rules.targets.unpacked_payload import unpack_payload

_QUERIES: Final = frozenset((EventType.QUERY, EventType.EXECUTE_LOAD_QUERY))
_ROWS: Final = frozenset((EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS))
_WITHOUT_DATA: Final = frozenset((EventType.TRANSACTION_CONTEXT, EventType.VIEW_CHANGE, EventType.ROWS_QUERY))
# What need not be looked at where the target knows the type at all: the many events of a long transaction.
_AS_THEY_ARE: Final = frozenset((
    EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1, EventType.WRITE_ROWS, EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS, EventType.PARTIAL_UPDATE_ROWS, EventType.XID, EventType.INTVAR, EventType.RAND, EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK, EventType.DELETE_FILE,
))  # fmt: skip


class _Part(NamedTuple):
    """An event of the view's group. at: where the source has it, [start, stop), for one that is kept as it is; None: new."""

    event: GroupEvent
    body: bytes | None
    at: tuple[int, int] | None

    def piece(self) -> Copy | New:
        if self.at is not None:
            return Copy(*self.at)
        assert self.body is not None
        return New(self.event.type, self.event.flags, self.event.timestamp, self.event.server_id, self.body)


class TargetRules:
    """Makes each group readable for `settings.target`, then lets `inner` see what came of it, where there are such rules.

    A group of which only some events are given (`is_whole` is false) must have all those of `look_at` among them. `inner` gets places
    that are no offsets of the file: it may only copy what it was shown, as ranges of whole events.
    """

    def __init__(self, settings: ViewSettings, inner: GroupRules | None = None) -> None:
        self._settings = settings
        self._target = TARGETS_BY_NAME[settings.target]
        self._collations = CollationMap(settings.collations, self._target)
        self._inner = inner

    @property
    def wants_statements(self) -> bool:
        """Always: each has status variables that the target may not know."""
        return True

    @property
    def watched(self) -> bytes | None:
        """Every statement."""
        return None

    @property
    def look_at(self) -> bytes:
        """Table_map for the types of columns, Gtid events for their layout, statements, what the target does not know, and all else but
        the contents of transactions."""
        known = self._target.highest_event
        return bytes(kind not in _AS_THEY_ARE or kind > known for kind in range(256))

    def of_source(self, server_version: str) -> GroupRules | None:
        """The rules for files of such a source: these, or where it is no newer than the target, those behind them."""
        return self if is_newer(server_version, self._settings) else self._inner

    def skipped(self, group: SourceGroup) -> None:
        """As `GroupRules.skipped`."""
        if self._inner is not None:
            self._inner.skipped(group)

    def source_started(self) -> None:
        """As `GroupRules.source_started`."""
        if self._inner is not None:
            self._inner.source_started()

    def state(self) -> bytes:
        """What `inner` has learned; these rules learn nothing."""
        return self._inner.state() if self._inner is not None else b""

    def restore(self, state: bytes) -> None:
        """As `GroupRules.restore`."""
        if self._inner is not None:
            self._inner.restore(state)

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """As `GroupRules.plan`. gtid "source" and no Gtid event among the pieces: the target knows none, nothing comes in front."""
        source = source_version(group.server_version)
        if not is_newer(group.server_version, self._settings):
            return self._inner.plan(group) if self._inner is not None else _whole(group)
        parts = list(self._parts(group))
        head = [part for part in parts if part.event.type in GTID_TYPES]
        rest = [part for part in parts if part.event.type not in GTID_TYPES]
        kept = [made for part in head if (made := self._head(part, group)) is not None]
        named = any(part.event.type != EventType.ANONYMOUS_GTID for part in kept)
        translated = self._translated(rest, group, source, named)
        if self._inner is None:
            return [self._outgroup(kept, made) for made in translated]
        known = self._inner.state()
        try:
            return [found for made in translated for found in self._seen_by(self._inner, kept, made, group)]
        except CannotBeKept:
            self._inner.restore(known)
            raise

    def left_out(self, group: SourceGroup, empty: OutGroup) -> list[OutGroup]:
        """What stands in the place of a group that a decision leaves out: `empty` under its GTID, so that no number is missing.

        Nothing under a GTID that the target cannot read, and where there are none.
        """
        try:
            kept = [
                made
                for event in group.events
                if event.type in GTID_TYPES
                and (made := self._head(_Part(event, None, _place(event)), group)) is not None
            ]
        except CannotBeKept:
            return []
        if kept:
            return [OutGroup([*_pieces(kept), *empty.pieces], "source")]
        return [empty] if self._target.gtid_bytes and self._settings.gtids != "keep" else []

    # --- what is in the group ----------------------------------------------------------------------------------------------

    def _parts(self, group: SourceGroup) -> Iterator[_Part]:
        """Its events, compressed ones unpacked; of a long group, what is between those that are given is one part."""
        at = group.start
        for event in group.events:
            if at < event.offset:
                yield _Part(_between(at, event.offset), None, (at, event.offset))
            at = event.offset + event.length
            if event.type == EventType.TRANSACTION_PAYLOAD and event.type > self._target.highest_event:
                for header, body in unpack_payload(group.body(event)):
                    inside = GroupEvent(event.offset, 0, header.type, header.flags, header.timestamp, header.server_id)
                    yield _Part(inside, body, None)
            else:
                yield _Part(event, None, _place(event))
        if at < group.stop and group.events:
            yield _Part(_between(at, group.stop), None, (at, group.stop))

    def _head(self, part: _Part, group: SourceGroup) -> _Part | None:
        """The source's own Gtid event as the view keeps it; None: the view has another, or none."""
        if not self._target.gtid_bytes or self._settings.gtids == "anonymous":
            return None
        if part.event.type == EventType.ANONYMOUS_GTID and self._settings.gtids == "assign":
            return None
        body = group.body(part.event)
        try:
            event_type, made = gtid_for(body, part.event.type, self._target)
        except ProtocolError as error:
            target_stops.not_readable(f"its Gtid event is damaged ({error})", b"")
        if (event_type, made) == (part.event.type, body):
            return part
        return _Part(part.event._replace(type=event_type), made, None)

    # --- what becomes of it ------------------------------------------------------------------------------------------------

    def _translated(self, parts: list[_Part], group: SourceGroup, source: int, has_gtid: bool) -> list[list[_Part]]:
        """The groups that are made of one, without their heads."""
        made: list[list[_Part]] = [[]]
        for part in parts:
            if part.event.type in _QUERIES:
                query = TargetQuery(
                    self._body(part, group), part.event.type, source, self._target, self._collations,
                    self._settings.explicit_timestamps,
                )  # fmt: skip
                if (query.is_account_statement and self._settings.account_statements == "skip") or query.only_counts:
                    made[-1] += self._nothing(part, query)
                elif query.selects_into_new_table and (has_gtid or self._settings.gtids == "assign"):
                    target_stops.create_select_with_gtid(query.query.text, CREATE_SELECT, self._target)
                elif query.makes_table_with_rows:
                    if has_gtid:
                        target_stops.create_select_with_gtid(query.query.text, SYNTAX_ERROR, self._target)
                    begin = made.pop()
                    made += [[self._new(part, query.translated())], begin]
                else:
                    made[-1].append(self._new(part, query.translated()))
            else:
                made[-1] += self._event(part, group)
        return [self._one_phase(one, group) for one in made if one]

    def _event(self, part: _Part, group: SourceGroup) -> list[_Part]:
        event_type = part.event.type
        target = self._target
        if event_type == EventType.TABLE_MAP:
            check_columns(self._body(part, group), target)
        elif event_type == EventType.PARTIAL_UPDATE_ROWS and event_type > target.highest_event:
            target_stops.partial_updates(target)
        elif event_type == EventType.USER_VAR:
            body = self._body(part, group)
            made = user_variable_for(body, self._collations)
            if made != body:
                return [self._new(part, made)]
        elif event_type == EventType.XA_PREPARE and event_type > target.highest_event:
            prepared = _xa(self._body(part, group))
            if not prepared.one_phase:
                target_stops.xa_prepared(str(prepared.xid), target)
        elif event_type in _ROWS and event_type > target.highest_event:
            version_1, body = rows_of_version_1(event_type, self._body(part, group))
            return [self._new(part._replace(event=part.event._replace(type=version_1)), body)]
        elif event_type > target.highest_event:
            if event_type in _WITHOUT_DATA:
                return []
            target_stops.event_unknown(event_type_name(event_type), target)
        return [part]

    def _one_phase(self, parts: list[_Part], group: SourceGroup) -> list[_Part]:
        """XA START ... XA END, XA_PREPARE of one phase becomes BEGIN ... COMMIT where the target knows no such event."""
        if (
            not parts
            or parts[-1].event.type != EventType.XA_PREPARE
            or self._target.highest_event >= EventType.XA_PREPARE
        ):
            return parts
        first, end = parts[0], parts[-2]
        return [self._word(first, b"BEGIN"), *parts[1:-2], self._word(end, b"COMMIT")]

    def _word(self, part: _Part, text: bytes) -> _Part:
        assert part.body is not None
        query = TargetQuery(part.body, EventType.QUERY, 0, self._target, self._collations, False).query
        return self._new(part, statement_like(query, text, self._target))

    def _nothing(self, part: _Part, query: TargetQuery) -> list[_Part]:
        """A transaction without statements, in place of one."""
        return [self._new(part, statement_like(query.query, text, self._target)) for text in (b"BEGIN", b"COMMIT")]

    @staticmethod
    def _new(part: _Part, body: bytes) -> _Part:
        return _Part(part.event, body, None)

    @staticmethod
    def _body(part: _Part, group: SourceGroup) -> bytes:
        return part.body if part.body is not None else group.body(part.event)

    # --- what the view gets ------------------------------------------------------------------------------------------------

    def _outgroup(self, head: list[_Part], parts: list[_Part]) -> OutGroup:
        return OutGroup(_pieces([*head, *parts]), "source" if self._keeps_head(head) else "new")

    def _keeps_head(self, head: list[_Part]) -> bool:
        return bool(head) or not self._target.gtid_bytes

    def _seen_by(
        self, inner: GroupRules, head: list[_Part], parts: list[_Part], group: SourceGroup
    ) -> Iterator[OutGroup]:
        """What `inner` makes of it: it sees places of its own, which are then put right."""
        at = group.start
        events = []
        places: dict[int, _Part] = {}
        for part in (*head, *parts):
            length = max(part.event.length, HEADER_SIZE)
            places[at] = part
            if part.event.type != EventType.UNKNOWN:
                events.append(part.event._replace(offset=at, length=length))
            at += length
        seen = group._replace(
            stop=at,
            events=events,
            body=lambda event: self._body(places[event.offset], group),
        )
        for outgroup in inner.plan(seen):
            yield _placed(outgroup, places, self._keeps_head(head))


def _whole(group: SourceGroup) -> list[OutGroup]:
    has_gtid = bool(group.events) and group.events[0].type in GTID_TYPES
    return [OutGroup([Copy(group.start, group.stop)], "source" if has_gtid else "new")]


def _place(event: GroupEvent) -> tuple[int, int]:
    return event.offset, event.offset + event.length


def _between(start: int, stop: int) -> GroupEvent:
    """What stands for the events in [start, stop) that were not given."""
    return GroupEvent(start, stop - start, EventType.UNKNOWN, 0, 0, 0)


def _xa(body: bytes) -> XaPrepare:
    try:
        return decode_xa_prepare(body)
    except ProtocolError as error:
        target_stops.not_readable(f"its Xa_prepare event is damaged ({error})", body)


def _pieces(parts: Sequence[_Part]) -> list[Copy | New]:
    """What lies side by side in the source is one piece."""
    made: list[Copy | New] = []
    for part in parts:
        piece = part.piece()
        last = made[-1] if made else None
        if isinstance(piece, Copy) and isinstance(last, Copy) and last.stop == piece.start:
            made[-1] = Copy(last.start, piece.stop)
        else:
            made.append(piece)
    return made


def _placed(outgroup: OutGroup, parts: dict[int, _Part], keeps_head: bool) -> OutGroup:
    """The pieces of `inner`, which knows places of its own, where they are."""
    made: list[Copy | New] = []
    for piece in outgroup.pieces:
        if isinstance(piece, New):
            made.append(piece)
            continue
        made += _pieces([part for at, part in parts.items() if piece.start <= at < piece.stop])
    gtid = outgroup.gtid if keeps_head else "new"
    return OutGroup(made, gtid)
