"""One transaction as the table filter sees it: which of its events stay, and what cannot be decided."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription
from protocol.binlog.gtid_event import decode_gtid, encode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged, encode_gtid_tagged
from protocol.binlog.layout import HEADER_SIZE, TYPE_AT
from protocol.binlog.query import decode_execute_load_query, decode_query, decode_query_compressed
from protocol.binlog.rows_event import ROWS_EVENTS, STATEMENT_END, decode_rows_event
from protocol.binlog.statement_text import one_line
from protocol.binlog.status_variables import SQL_MODE, known_values
from protocol.binlog.table_map import decode_table_map, table_id_bytes
from protocol.binlog.xa_prepare import decode_xa_prepare
from protocol.sql.control import Control, control_of
from relay.export.table_choice import TableChoice

_SEEDS: Final = frozenset((EventType.INTVAR, EventType.RAND, EventType.USER_VAR))
_ABOUT_NEXT: Final = frozenset((EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS))
_GTIDS: Final = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID))
_FRAME: Final = frozenset((*_GTIDS, EventType.XID, EventType.XA_PREPARE))
"""These events stay if any part of the transaction stays."""
_LOAD_PARTS: Final = frozenset((EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.CREATE_FILE))
_LOADS: Final = frozenset(
    (EventType.EXECUTE_LOAD_QUERY, EventType.LOAD, EventType.NEW_LOAD, EventType.EXEC_LOAD, EventType.DELETE_FILE)
)
_BETWEEN: Final = frozenset(
    (
        EventType.ROTATE,
        EventType.STOP,
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.BINLOG_CHECKPOINT,
        EventType.GTID_LIST,
        EventType.INCIDENT,
        EventType.IGNORABLE,
        EventType.HEARTBEAT,
        EventType.VIEW_CHANGE,
        EventType.TRANSACTION_CONTEXT,
    )
)
"""These belong to no transaction's content, or are so important that they stay."""
_SHOWN_CHARACTERS: Final = 200


class Fate(StrEnum):
    """The decision on a statement."""

    KEPT = "kept"
    LEFT_OUT = "left out"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class FilteredStatement:
    """A statement or another event that is not rows. With `decided` its tables decided it, otherwise the rule for undecided ones."""

    offset: int
    fate: Fate
    decided: bool
    text: str


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event of the archive. `data` starts with its header and has no checksum; of a large one it is the first 70,000 bytes.

    `whole` reads all of it, without its checksum; for events that must be opened.
    """

    offset: int
    size: int
    data: bytes
    whole: Callable[[], bytes]

    @property
    def type(self) -> int:
        """The type code."""
        return self.data[TYPE_AT]

    @property
    def body(self) -> bytes:
        """The bytes after the header."""
        return self.data[HEADER_SIZE:]


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event that stays. `data` replaces its own bytes, without a checksum (None: they stay). With `ends_statement` it must say that
    it is the last of its statement, in the flags at `flags_at` after the header."""

    offset: int
    size: int
    data: bytes | None = None
    ends_statement: bool = False
    flags_at: int = 0


@dataclass(slots=True)
class XaStatements:
    """The prepared transactions that were left out: the statements that end them are left out too."""

    left_out: set[bytes] = field(default_factory=set)


class FilteredTransaction:
    """A filter of the events of one transaction, taken in order; then `kept` are those that stay. If there are none, it is left out.

    `keeps_undecided` decides on undecidable statements. `payload` opens a Transaction_payload and returns its events, without
    checksums. `take` raises ProtocolError for events that cannot be read.
    """

    def __init__(
        self,
        choice: TableChoice,
        format: FormatDescription,
        xa: XaStatements,
        payload: Callable[[bytes], list[bytes]],
        *,
        keeps_undecided: bool,
    ) -> None:
        self._choice = choice
        self._format = format
        self._xa = xa
        self._payload = payload
        self._keeps_undecided = keeps_undecided
        self.statements: list[FilteredStatement] = []
        self.tables: set[tuple[str, str]] = set()
        """The tables whose rows it changes, as far as it was examined."""
        self.rows_kept = self.rows_left_out = 0
        """The number of events with rows."""
        self._events: list[KeptEvent] = []
        self._frame: list[int] = []
        """The indices in `_events` of the frame."""
        self._wanted: dict[int, bool] = {}
        self._waiting: list[KeptEvent] = []
        """Seeds and texts, which are kept or dropped with what follows."""
        self._last_rows = -1
        """The index in `_events` of the statement's newest event with rows; -1 if none stays."""
        self._bytes = 0
        self._has_content = False
        self._prepared: bytes | None = None
        self._is_over = False
        """True for XA in one phase, which no other transaction ends."""

    # --- what stays ------------------------------------------------------------------------------------------------------

    def kept(self) -> list[KeptEvent]:
        """Return the events that stay, once all were taken."""
        if self._prepared is not None:
            # The same name may be reused by another transaction, whose end must stay.
            if self._has_content or self._is_over:
                self._xa.left_out.discard(self._prepared)
            else:
                self._xa.left_out.add(self._prepared)
        if not self._has_content:
            return []
        events = self._events
        head = events[0]
        if head.data is not None:
            events[0] = self._with_length(head)
        return events

    def _with_length(self, head: KeptEvent) -> KeptEvent:
        """Return the head with a correct length: MySQL's GTID event contains the length of its transaction."""
        assert head.data is not None
        trailer = self._format.checksum_bytes
        header, body = head.data[:HEADER_SIZE], head.data[HEADER_SIZE:]
        tagged = header[TYPE_AT] == EventType.GTID_TAGGED
        decode, encode = (decode_gtid_tagged, encode_gtid_tagged) if tagged else (decode_gtid, encode_gtid)
        gtid = decode(body)
        if gtid.transaction_length is None or encode(gtid) != body:
            return replace(head, data=None)
        rest = sum(
            event.size if event.data is None else len(event.data) + trailer
            for event in self._events
            if event is not head
        )
        if gtid.transaction_length == rest + head.size:
            return replace(head, data=None)
        length = gtid.transaction_length
        while True:
            made = encode(replace(gtid, transaction_length=length))
            whole = rest + HEADER_SIZE + len(made) + trailer
            if whole == length:
                break
            length = whole
        return replace(head, data=header + made)

    # --- what comes ------------------------------------------------------------------------------------------------------

    def take(self, event: SeenEvent) -> None:
        """Take the next one."""
        kind = event.type
        if kind in ROWS_EVENTS:
            self._rows(event)
        elif kind == EventType.TABLE_MAP:
            self._table_map(event)
        elif kind in _SEEDS or kind in _ABOUT_NEXT:
            self._waiting.append(KeptEvent(event.offset, event.size))
        elif kind in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            self._query(event)
        elif kind in _FRAME:
            if kind == EventType.XA_PREPARE:
                prepare = decode_xa_prepare(event.body)
                self._is_over = prepare.one_phase
                # MariaDB names the XID nowhere else.
                self._prepared = self._prepared or str(prepare.xid).encode()
            # The bytes of a head are kept at hand: it may need another length.
            data = event.data if kind in _GTIDS and kind != EventType.MARIADB_GTID else None
            self._events.append(KeptEvent(event.offset, event.size, data))
        elif kind in _BETWEEN:
            self._events.append(KeptEvent(event.offset, event.size))
            self._has_content = True
        elif kind == EventType.TRANSACTION_PAYLOAD:
            self._take_payload(event)
        elif kind in _LOAD_PARTS:
            # Their statement, which follows them, decides.
            self._other(event, None)
        elif kind in _LOADS:
            self._other(event, self._load_text(event))
        else:
            self._other(event, f"event type {kind}")

    def _add(self, event: KeptEvent) -> None:
        self._events += self._waiting
        self._waiting.clear()
        self._events.append(event)
        self._has_content = True

    def _other(self, event: SeenEvent, text: str | None) -> None:
        """Take something whose tables are unknown. `text` is listed, unless it is None."""
        if text is not None:
            self._list(event.offset, None, text)
        if self._keeps_undecided:
            self._add(KeptEvent(event.offset, event.size))
        else:
            self._waiting.clear()

    def _list(self, offset: int, about: bool | None, text: str) -> None:
        if about is None:
            fate = Fate.KEPT if self._keeps_undecided else Fate.UNDECIDED
        else:
            fate = Fate.KEPT if about else Fate.LEFT_OUT
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
        self.statements.append(FilteredStatement(offset, fate, about is not None, shown))

    # --- rows ------------------------------------------------------------------------------------------------------------

    def _table_map(self, event: SeenEvent) -> None:
        table = decode_table_map(event.body, table_id_bytes(self._format.post_header_length(event.type)))
        wanted = self._choice.wants(table.schema, table.table)
        self.tables.add((table.schema, table.table))
        self._wanted[table.table_id] = wanted
        if wanted:
            self._add(KeptEvent(event.offset, event.size))

    def _rows(self, event: SeenEvent) -> None:
        rows = decode_rows_event(event.body, event.type, self._format)
        wanted = self._wanted.get(rows.table_id)
        # One without rows only ends a statement: it concerns no table.
        if wanted or (wanted is None and self._last_rows >= 0):
            flags_at = table_id_bytes(self._format.post_header_length(event.type))
            self._last_rows = len(self._events)
            self._add(KeptEvent(event.offset, event.size, flags_at=flags_at))
            self.rows_kept += 1
        else:
            self.rows_left_out += 1
        if not rows.flags & STATEMENT_END:
            return
        if not wanted and self._last_rows >= 0:
            self._events[self._last_rows] = replace(self._events[self._last_rows], ends_statement=True)
        self._last_rows = -1
        self._wanted.clear()
        self._waiting.clear()

    # --- statements ------------------------------------------------------------------------------------------------------

    def _query(self, event: SeenEvent) -> None:
        if event.type == EventType.QUERY:
            query = decode_query(event.body, self._format)
        else:
            query = decode_query_compressed(event.body, self._format)
        text = query.text
        if self._is_part(event, text):
            return
        sql_mode = int.from_bytes(known_values(query.status_variables).get(SQL_MODE, b""), "little")
        about = self._choice.is_about(
            query.schema.decode("utf-8", "replace"), text, sql_mode, self._format.server_version
        )
        self._list(event.offset, about, one_line(text[: 4 * _SHOWN_CHARACTERS]))
        if about or (about is None and self._keeps_undecided):
            self._add(KeptEvent(event.offset, event.size))
        else:
            self._waiting.clear()

    def _is_part(self, event: SeenEvent, text: bytes) -> bool:
        """Return whether the statement belongs to the transaction's frame; if so, it was taken."""
        found = control_of(text, self._format.server_version)
        if found is None:
            return False
        if found.control is Control.XA_START:
            self._prepared = found.name
        elif found.control in (Control.XA_COMMIT, Control.XA_ROLLBACK):
            if self._prepared is not None:
                self._is_over = True
            elif found.name in self._xa.left_out:  # of a transaction that was prepared before
                self._xa.left_out.discard(found.name)
            else:
                self._has_content = True
        self._events.append(KeptEvent(event.offset, event.size))
        return True

    def _load_text(self, event: SeenEvent) -> str | None:
        if event.type == EventType.DELETE_FILE:
            return None
        if event.type == EventType.EXECUTE_LOAD_QUERY:
            return one_line(decode_execute_load_query(event.body, self._format).text[: 4 * _SHOWN_CHARACTERS])
        return "LOAD DATA"

    # --- compressed transactions -----------------------------------------------------------------------------------------

    def _take_payload(self, event: SeenEvent) -> None:
        """Keep all of it, none, or the kept part of it as separate events."""
        inside = FilteredTransaction(
            self._choice, self._uncompressed, self._xa, self._payload, keeps_undecided=self._keeps_undecided
        )
        events = self._payload(event.whole()[HEADER_SIZE:])
        for number, data in enumerate(events):
            inside.take(SeenEvent(number, len(data), data, lambda data=data: data))  # type: ignore[misc]
        kept = inside.kept()
        self.tables |= inside.tables
        self.rows_kept += inside.rows_kept
        self.rows_left_out += inside.rows_left_out
        self.statements += [replace(one, offset=event.offset) for one in inside.statements]
        if not kept:
            return
        self._has_content = True
        if len(kept) == len(events):
            self._events.append(KeptEvent(event.offset, event.size))
            return
        for one in kept:
            data = events[one.offset]
            if one.ends_statement:
                at = HEADER_SIZE + one.flags_at
                data = data[:at] + bytes([data[at] | STATEMENT_END]) + data[at + 1 :]
            self._events.append(KeptEvent(event.offset, len(data), data))

    @property
    def _uncompressed(self) -> FormatDescription:
        """Return the format inside a compressed transaction, where no event has a checksum."""
        return replace(self._format, checksum=0)
