"""One group of a MariaDB source: its events as MySQL writes them, in the order in which they came."""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from protocol.binlog.mariadb_gtid import DDL, PREPARED_XA, MariadbGtid
from protocol.binlog.query import Query, read_query
from protocol.errors import Malformed
from protocol.kernel.codes import (
    ANNOTATE_ROWS_EVENT,
    APPEND_BLOCK_EVENT,
    BEGIN_LOAD_QUERY_EVENT,
    DELETE_FILE_EVENT,
    EXECUTE_LOAD_QUERY_EVENT,
    INCIDENT_EVENT,
    INTVAR_EVENT,
    QUERY_COMPRESSED_EVENT,
    QUERY_EVENT,
    QUERY_POST,
    RAND_EVENT,
    ROWS_QUERY_EVENT,
    ROWS_STATEMENT_END,
    TABLE_MAP_EVENT,
    USER_VAR_EVENT,
    XA_PREPARE_EVENT,
    XID_EVENT,
)
from protocol.sql.expressions.constructs import Operand
from protocol.sql.kind import Purpose
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from relay.view.rules.group import Copy, GroupEvent, Later, New, OutGroup, SourceGroup
from relay.view.rules.group_parts import PartKind, control_part
from relay.view.rules.judged.statement_judge import variable_of
from relay.view.rules.mariadb.left_out import SEQUENCE
from relay.view.rules.mariadb.opened_event import (
    PACKED_ROWS,
    ROWS,
    ROWS_FLAGS_AT,
    as_version_2,
    opened_query,
    opened_rows,
    with_statement_end,
)
from relay.view.rules.mariadb.parts import MariadbParts
from relay.view.rules.mariadb.rows.mariadb_tables import ConvertedTable
from relay.view.rules.mariadb.rows.replaced_rows import check_replaced, may_replace
from relay.view.rules.statement.logged_query import LoggedQuery, read_logged_query, status_as
from relay.view.stops import transaction_stops

_SUPPRESS_USE: Final = 0x0008
_IGNORABLE: Final = 0x0080
_KEPT_FLAGS: Final = 0x03FF
_MOST_HELD: Final = 16 << 20
"""The most bytes of a group's events that are kept in memory; the others are made when they are written."""
_TABLE_ID_BYTES: Final = 6
_AS_THEY_ARE: Final = frozenset((XID_EVENT, XA_PREPARE_EVENT, DELETE_FILE_EVENT))
_BEFORE_STATEMENT: Final = frozenset((INTVAR_EVENT, RAND_EVENT, BEGIN_LOAD_QUERY_EVENT, APPEND_BLOCK_EVENT))
_ONE_BYTE: Final = 255
_SAVEPOINTS: Final = {
    PartKind.SAVEPOINT: b"SAVEPOINT",
    PartKind.ROLLBACK_TO: b"ROLLBACK TO",
    PartKind.RELEASE: b"RELEASE SAVEPOINT",
}
_INSERT_ID: Final = b"\2"
"""The first byte of an Intvar event that assigns a number to AUTO_INCREMENT."""
_BEFORE_ALL: Final = b"`binlog_relay_rollback`"
_NO_ROWS_FOLLOW: Final = frozenset(("SELECT", "VALUES", "WITH", "TEMPORARY"))
"""Words of a CREATE that contains its rows, or has none."""

Piece = Copy | New | Later


class _KeptRows(NamedTuple):
    """A kept event with rows. `make` returns its type and body, version 2."""

    event: GroupEvent
    make: Callable[[], tuple[int, bytes]]


class GroupTranslation:
    """Translates the group that `gtid` heads. All methods raise Untranslatable, Malformed and Truncated."""

    def __init__(self, group: SourceGroup, gtid: MariadbGtid, parts: MariadbParts) -> None:
        self._group = group
        self._gtid = gtid
        self._parts = parts
        self.changes_by_statement = False
        """True if replicas run a statement of it that changes rows."""
        self._made: list[OutGroup] = []
        """Separate groups that precede it."""
        self._pieces: list[Piece] = []
        self._before: list[Piece] = []
        """The events before the next statement that belong to it."""
        self._variables: dict[str, Operand] = {}
        """The user variables before the next statement."""
        self._makes_numbers = False
        """True if the next statement assigns AUTO_INCREMENT values."""
        self._held = 0
        self._annotation: New | None = None
        self._may_replace = False
        """True if the statement of the next rows may be a REPLACE, as its annotation shows."""
        self._maps: dict[bytes, ConvertedTable] = {}
        self._last_rows: tuple[int, _KeptRows] | None = None
        """The index in `_pieces` of the statement's last kept rows that do not end it, and these rows."""
        self._prepares = bool(gtid.flags & PREPARED_XA) and gtid.xid is not None
        self._changes = False
        """True if a statement or rows are kept."""
        self.left_out: list[tuple[str, str]] = []
        """The kinds of what is left out, each with a description."""
        self.prepares_nothing = False
        """True if `groups` found an XA transaction without a change, which MySQL cannot prepare (3898): it is left out, and so is the
        statement that ends it."""

    def nothing(self) -> OutGroup:
        """Return a transaction that does nothing, which replaces it."""
        first, last = self._group.ends()
        times = [_control(first, b"BEGIN"), _control(first._replace(timestamp=last.timestamp), b"COMMIT")]
        return OutGroup(tuple(times))

    def learn(self) -> None:
        """Learn what the group defines at the source."""
        self.groups()

    def groups(self) -> list[OutGroup]:
        """Return the resulting groups, in order; the last one is in its place."""
        events = iter(self._group.events)
        head = next(events)
        if not self._gtid.is_standalone:
            text = f"XA START {self._gtid.xid}" if self._prepares else "BEGIN"
            self._pieces.append(_control(head, text.encode()))
        begun = len(self._pieces)
        for event in events:
            self._take(event)
        self._flush_before()
        if len(self._pieces) == begun and self._gtid.is_standalone:
            return [*self._made, self.nothing()]
        if self._prepares and not self._changes:
            self.prepares_nothing = True
            return [*self._made, self.nothing()]
        return [*self._made, OutGroup(tuple(self._pieces))]

    def _take(self, event: GroupEvent) -> None:
        kind = event.type
        if kind in (QUERY_EVENT, QUERY_COMPRESSED_EVENT, EXECUTE_LOAD_QUERY_EVENT):
            self._take_query(event)
        elif kind == ANNOTATE_ROWS_EVENT:
            text = self._group.body(event)
            self._may_replace = may_replace(text, self._group.server_version)
            body = bytes((min(_ONE_BYTE, len(text)),)) + text
            self._annotation = New(ROWS_QUERY_EVENT, _IGNORABLE, event.timestamp, event.server_id, body)
        elif kind == TABLE_MAP_EVENT:
            self._take_map(event)
        elif kind in ROWS:
            self._take_rows(event)
        elif kind == USER_VAR_EVENT:
            body = self._group.body(event)
            made = self._parts.statuses.user_variable(body)
            self._variables.update((variable_of(body),))
            _join(self._before, _copied(event) if made == body else _changed(event, made))
        elif kind in _BEFORE_STATEMENT:
            self._makes_numbers = self._makes_numbers or (
                kind == INTVAR_EVENT and self._group.body(event, 1) == _INSERT_ID
            )
            _join(self._before, _copied(event))
        elif kind in _AS_THEY_ARE:
            self._flush_before()
            _join(self._pieces, _copied(event))
        elif kind == INCIDENT_EVENT:
            raise transaction_stops.incident()
        else:
            raise transaction_stops.event_unsupported(kind)

    # --- pieces -------------------------------------------------------------------------------------------------------------

    def _flush_before(self) -> None:
        before, self._before = self._before, []
        for piece in before:
            _join(self._pieces, piece)

    def _add_made(self, event: GroupEvent, make: Callable[[], tuple[int, bytes]]) -> None:
        """Add an event with another type and body; it is kept in memory as long as there are not many."""
        kind, body = make()
        flags = event.flags & _KEPT_FLAGS
        if self._held + len(body) <= _MOST_HELD:
            self._held += len(body)
            _join(self._pieces, New(kind, flags, event.timestamp, event.server_id, body))
        else:
            _join(self._pieces, Later(kind, flags, event.timestamp, event.server_id, len(body), lambda: make()[1]))

    def _flush_annotation(self) -> None:
        annotation, self._annotation = self._annotation, None
        if annotation is not None:
            self._held += len(annotation.body)
            _join(self._pieces, annotation)

    # --- rows ---------------------------------------------------------------------------------------------------------------

    def _take_map(self, event: GroupEvent) -> None:
        body = self._group.body(event)
        conversion = self._parts.tables.convert_map(body, self._group.server_version)
        self._maps[body[:_TABLE_ID_BYTES]] = conversion
        if conversion.map_body is None:
            self.left_out.append((SEQUENCE, ""))
            return
        self._flush_annotation()
        _join(self._pieces, _copied(event) if conversion.map_body == body else _changed(event, conversion.map_body))

    def _take_rows(self, event: GroupEvent) -> None:
        head = self._group.body(event, ROWS_FLAGS_AT + 2)
        ends = bool(head[ROWS_FLAGS_AT] & ROWS_STATEMENT_END) if len(head) > ROWS_FLAGS_AT else False
        conversion = self._maps.get(head[:_TABLE_ID_BYTES])
        if conversion is None:
            raise Malformed(f"rows at offset {event.offset} without a Table_map in front of them")
        if conversion.map_body is not None:
            if self._may_replace:
                check_replaced(conversion.name, event.type, self._group.body(event))
            self._keep_rows(event, conversion, ends)
        elif ends and self._last_rows is not None:
            self._end_statement(*self._last_rows)
        if ends:
            self._annotation = None
            self._may_replace = False
            self._maps = {}
            self._last_rows = None

    def _keep_rows(self, event: GroupEvent, conversion: ConvertedTable, ends: bool) -> None:
        self._changes = True
        rows = _KeptRows(event, partial(self._rows_made, event, conversion))
        if conversion.rows_are_same and event.type not in PACKED_ROWS:
            _join(self._pieces, _copied(event))
        else:
            self._add_made(event, rows.make)
        if not ends:
            self._last_rows = len(self._pieces) - 1, rows

    def _rows_made(self, event: GroupEvent, conversion: ConvertedTable) -> tuple[int, bytes]:
        kind, body = opened_rows(event.type, self._group.body(event))
        if not conversion.rows_are_same:
            kind, body = conversion.rows(kind, body)
        return as_version_2(kind, body)

    def _end_statement(self, index: int, rows: _KeptRows) -> None:
        """Set the end of the statement on these rows, as the event that ends it at the source is left out."""

        def make() -> tuple[int, bytes]:
            kind, body = rows.make()
            return kind, with_statement_end(body)

        piece = self._pieces[index]
        if isinstance(piece, Copy):
            event = rows.event
            kind, body = make()
            stop = event.offset + event.length
            ended: Piece = New(kind, event.flags & _KEPT_FLAGS, event.timestamp, event.server_id, body)
            around = (Copy(piece.start, event.offset), ended, Copy(stop, piece.stop))
            self._pieces[index : index + 1] = [
                one for one in around if not isinstance(one, Copy) or one.start < one.stop
            ]
        elif isinstance(piece, New):
            self._pieces[index] = piece._replace(body=with_statement_end(piece.body))
        elif isinstance(piece, Later):
            self._pieces[index] = piece._replace(make=lambda: make()[1])

    # --- statements ---------------------------------------------------------------------------------------------------------

    def _take_query(self, event: GroupEvent) -> None:
        group = self._group
        body = group.body(event)
        kind = event.type
        if kind == QUERY_COMPRESSED_EVENT:
            kind, body = QUERY_EVENT, opened_query(body, max(group.post_lengths[QUERY_EVENT], QUERY_POST))
        query = read_logged_query(kind, body, group.post_lengths, group.server_version)
        part, name = (PartKind.STATEMENT, b"") if query.is_load else control_part(query)
        if part is PartKind.ROLLBACK and not self._gtid.is_standalone:
            self._undo(event)
            return
        if part is not PartKind.STATEMENT and query.raw.isascii():
            # Nothing of its session matters, and a collation that MySQL does not know would make it skip the statement.
            _join(self._pieces, _control(event, _control_text(part, name, query.raw)))
            return
        self._add_statement(event, body, query, is_control=part is not PartKind.STATEMENT)

    def _undo(self, event: GroupEvent) -> None:
        """Undo a group with ROLLBACK: the source writes it where a table kept something, or a temporary one was made or dropped.

        A MySQL does not count the GTID of a transaction that ends with ROLLBACK and leaves nothing; one that undoes all of itself and
        commits has the same effect on the tables, and is counted.
        """
        begin = self._pieces[0]
        if isinstance(begin, New):
            self._pieces.insert(1, _control(event._replace(timestamp=begin.timestamp), b"SAVEPOINT " + _BEFORE_ALL))
        _join(self._pieces, _control(event, b"ROLLBACK TO " + _BEFORE_ALL))
        _join(self._pieces, _control(event, b"COMMIT"))

    def _add_statement(self, event: GroupEvent, body: bytes, query: LoggedQuery, *, is_control: bool) -> None:
        statements = self._parts.statements
        is_dml = query.is_load or query.kind.purpose in (Purpose.ROWS, Purpose.UNSURE)
        self.changes_by_statement = self.changes_by_statement or is_dml
        status = self._parts.statuses.translate(query.status, query.raw, is_dml=is_dml)
        statements.left_out.clear()
        rows_follow = self._rows_follow(event, query)
        variables, self._variables = self._variables, {}
        makes_numbers, self._makes_numbers = self._makes_numbers, False
        texts = (
            [query.raw]
            if is_control
            else statements.translate(
                query, status, rows_follow=rows_follow, variables=variables, makes_numbers=makes_numbers
            )
        )
        self.left_out += statements.left_out
        if not texts:
            self._before = []
            return
        self._changes = self._changes or not is_control
        before = len(self._pieces)
        self._flush_before()
        flags = event.flags & _KEPT_FLAGS
        kind = EXECUTE_LOAD_QUERY_EVENT if query.is_load else QUERY_EVENT
        written = status.status if is_control else status_as(status.status, statements.runs_as)
        made = read_query(kind, body, self._group.post_lengths[kind])._replace(status_variables=written)
        events = [
            New(kind, flags, event.timestamp, event.server_id, made._replace(text=text).encode()) for text in texts
        ]
        if len(events) > 1:
            if before > (0 if self._gtid.is_standalone else 1):
                raise transaction_stops.commits_inside_transaction()
            self._made += [OutGroup((one,)) for one in events[:-1]]
        _join(self._pieces, events[-1])

    def _rows_follow(self, event: GroupEvent, query: LoggedQuery) -> bool:
        """Return whether rows follow a definition in its transaction, or would if there were any: for CREATE TABLE … SELECT."""
        if self._gtid.is_standalone or query.is_load or query.kind.verb != "CREATE":
            return False
        if any(one.type == TABLE_MAP_EVENT and one.offset > event.offset for one in self._group.events):
            return True
        try:
            words = {token.upper for token in query.tokens if token.kind is TokenKind.WORD}
        except UnsupportedSyntax:
            return False
        return bool(self._gtid.flags & DDL) and not words & _NO_ROWS_FOLLOW


def _join(pieces: list[Piece], piece: Piece) -> None:
    """Add a piece; adjacent copies are merged."""
    last = pieces[-1] if pieces else None
    if isinstance(piece, Copy) and isinstance(last, Copy) and last.stop == piece.start:
        pieces[-1] = Copy(last.start, piece.stop)
    else:
        pieces.append(piece)


def _control_text(part: PartKind, name: bytes, raw: bytes) -> bytes:
    """Return the statement without a session: names in double quotes are names for ANSI_QUOTES alone."""
    words = _SAVEPOINTS.get(part)
    return raw if words is None else words + b" `" + name.replace(b"`", b"``") + b"`"


def _control(event: GroupEvent, text: bytes) -> New:
    """Return BEGIN or the like, with no session and database, at the time of `event`."""
    return New(QUERY_EVENT, _SUPPRESS_USE, event.timestamp, event.server_id, Query(0, 0, 0, b"", b"", text).encode())


def _copied(event: GroupEvent) -> Copy:
    return Copy(event.offset, event.offset + event.length)


def _changed(event: GroupEvent, body: bytes) -> New:
    return New(event.type, event.flags & _KEPT_FLAGS, event.timestamp, event.server_id, body)
