"""Transactions that are written one by one: copied in pieces of any size, with events of the view's own between them."""

import struct
from collections.abc import Iterator
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.query import read_query
from protocol.kernel import codes
from protocol.views.query_status import explicit_place
from protocol.views.view_copy import ViewCopy
from relay.view.rules.group import Copy, GivenGtid, Later, New, OutGroup
from relay.view.rules.settings import ViewSettings
from relay.view.stops import transaction_stops
from relay.view.translate.made_bytes import MadeBytes
from relay.view.translate.source_groups import GroupReader
from relay.view.translate.source_gtid import CLOCK, has_clock, told_clock, with_clock, with_length
from relay.view.translate.source_window import SourceWindow

BEGIN, COMMIT = b"BEGIN", b"COMMIT"
_GTID_HEAD: Final = struct.Struct("<B16sqBqq")
_UUID: Final = slice(codes.GTID_UUID_AT, codes.GTID_UUID_AT + 16)
GTIDS: Final = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED))


class GroupWriter:
    """Writes transactions at the kernel's position.

    `policy` is VIEW_KEEP, VIEW_ASSIGN or VIEW_ANONYMOUS. `explicit` is the value of the status variable that statements get; -1: none.
    """

    def __init__(
        self,
        kernel: ViewCopy,
        source: SourceWindow,
        made: MadeBytes,
        groups: GroupReader,
        settings: ViewSettings,
        policy: int,
        explicit: int,
    ) -> None:
        self._kernel = kernel
        self._source = source
        self._made = made
        self._groups = groups
        self._uuid = settings.uuid.bytes
        self._policy = policy
        self._explicit = explicit
        self._adds_clock = settings.target_version >= (5, 7)
        self.server_version = 0
        """The source's version, as 101119, where the rules assign GTIDs."""

    def write(self, group: OutGroup, source_size: int) -> Iterator[None]:
        """Write a group; the source's transaction has `source_size` bytes. Raises: ViewStopped, ArchiveDamaged, OSError."""
        kernel, made = self._kernel, self._made
        pieces = [self._with_explicit(piece) for piece in group.pieces]
        if group.gtid == "source":
            pieces = self._with_source_gtid(pieces)
        size, last_time = 0, 0
        first_server = 0
        for piece in pieces:
            if isinstance(piece, Copy):
                size += self._size_of(piece)
                last_time, server = kernel.group_time, kernel.group_server
            else:
                size += HEADER_SIZE + _body_bytes(piece) + made.trailer
                last_time, server = piece.timestamp, piece.server_id
            first_server = first_server or server
        if isinstance(pieces[0], New) and pieces[0].type in GTIDS and size != source_size:
            # Where nothing was changed it stays as the source wrote it: as in groups that the kernel copies.
            pieces[0] = pieces[0]._replace(body=with_length(pieces[0].type, pieces[0].body, size))
        begins = True
        if group.number is not None:
            head = New(EventType.GTID, 0, last_time, first_server, self._given(group.number, last_time, size))
            yield from made.event(kernel, head, codes.START)
            kernel.sequence += 1
            begins = False
        elif group.gtid == "new" and self._policy != codes.VIEW_KEEP:
            if made.room < codes.VIEW_LONGEST_GTID:
                yield
            made.at = kernel.gtid(made.out, made.at, size, last_time, first_server)
            begins = False
        elif group.gtid == "new":
            kernel.pass_number()
        for number, piece in enumerate(pieces):
            is_last = number == len(pieces) - 1
            if isinstance(piece, Copy):
                yield from self._copy(piece, begins, is_last)
            else:
                marker = codes.START if begins else codes.END if is_last else codes.INSIDE
                marker = codes.SELF_CONTAINED if begins and is_last else marker
                yield from made.event(kernel, _with_body(piece), marker)
            begins = False

    def _given(self, given: GivenGtid, time_s: int, rest: int) -> bytes:
        """Return the body of the Gtid event before events of `rest` bytes."""
        sequence = self._kernel.sequence
        body = _GTID_HEAD.pack(1, given.uuid, given.gno, 2, max(0, sequence - 1 - given.back), sequence)
        body += (time_s * 1_000_000).to_bytes(7, "little") + b"\0" + self.server_version.to_bytes(4, "little")
        return with_length(EventType.GTID, body, HEADER_SIZE + len(body) + self._made.trailer + rest)

    def _size_of(self, piece: Copy) -> int:
        kernel = self._kernel
        kernel.scan_begin()
        for data, lo, hi, base in self._source.pieces(piece.start, piece.stop, lambda: kernel.consumed):
            status = kernel.scan(data, lo, hi, False)
            if status != codes.VIEW_MORE:
                raise self._source.wrong(status, base + kernel.bad_at)
        return kernel.group_size

    def _copy(self, piece: Copy, begins: bool, is_last: bool) -> Iterator[None]:
        kernel, made = self._kernel, self._made
        kernel.scan_begin()
        for data, lo, hi, base in self._source.pieces(piece.start, piece.stop, lambda: kernel.consumed):
            at = lo
            while True:
                end = piece.stop - base if is_last else -1
                status = kernel.emit(data, at, hi, made.out, made.at, begins, end)
                begins = begins and kernel.consumed == at
                at, made.at = kernel.consumed, kernel.produced
                if status != codes.VIEW_ROOM:
                    break
                yield
            if status != codes.VIEW_MORE:
                raise self._source.wrong(status, base + kernel.bad_at)

    # --- the content of events that are not copied ----------------------------------------------------------------------

    def _with_source_gtid(self, pieces: list[Copy | New | Later]) -> list[Copy | New | Later]:
        """Return the pieces with the source's GTID event as the view has it: an Anonymous_gtid becomes a GTID where those are assigned,
        and the source's dependency numbers are replaced where they are not valid any more."""
        first = pieces[0]
        if isinstance(first, Copy):
            event = next(iter(self._groups.group(first.start, first.stop).events))
            if event.type not in GTIDS:
                return pieces
            rest, stop = event.offset + event.length, first.stop
            behind: list[Copy | New | Later] = [Copy(rest, stop)] if rest < stop else []
            first = New(event.type, event.flags, event.timestamp, event.server_id, self._groups.body(event))
            pieces = [first, *behind, *pieces[1:]]
        if not isinstance(first, New) or first.type not in GTIDS:
            return pieces
        body = first.body
        if first.type == EventType.ANONYMOUS_GTID and self._policy == codes.VIEW_ASSIGN:
            number = struct.pack("<q", self._kernel.next_gno)
            body = body[:1] + self._uuid + number + body[codes.GTID_SIZE :]
            self._kernel.next_gno += 1
            first = first._replace(type=EventType.GTID)
        elif first.type == EventType.GTID and self._policy == codes.VIEW_ASSIGN and body[_UUID] == self._uuid:
            self._kernel.uuid_used = True
        return [first._replace(body=self._with_clock(first.type, body)), *pieces[1:]]

    def _with_clock(self, kind: int, body: bytes) -> bytes:
        """Replace the numbers as the kernel's `follow_clock` does, also of an event with a tag."""
        kernel = self._kernel
        if kernel.waits is not None:
            told = told_clock(kind, body)
            last, number = told or (0, 0)
            wait = kernel.waits.wait_of(kernel.sequence, told is not None, last, number)
            body = with_clock(kind, body, kernel.sequence, wait, adds=self._adds_clock)
        elif kernel.renumbers:
            body = with_clock(kind, body, kernel.sequence)
        elif has_clock(kind, body):
            kernel.sequence = struct.unpack("<qq", body[CLOCK])[1]
        kernel.sequence += 1
        return body

    def _with_explicit(self, piece: Copy | New | Later) -> Copy | New | Later:
        """Add to a changed statement how TIMESTAMP columns are defined, as the kernel does for those that are copied."""
        if self._explicit < 0 or not isinstance(piece, New) or piece.type != EventType.QUERY:
            return piece
        query = read_query(piece.type, piece.body, codes.QUERY_POST)
        if query.text in (BEGIN, COMMIT):
            return piece
        status = query.status_variables
        place = explicit_place(status)
        if place == codes.STATUS_SAID:
            return piece
        if place == codes.STATUS_DAMAGED:
            raise self._source.stopped(transaction_stops.group_damaged().reason)
        said = bytes((codes.VARIABLE_EXPLICIT_TIMESTAMPS, self._explicit))
        return piece._replace(body=query._replace(status_variables=status[:place] + said + status[place:]).encode())


def _body_bytes(piece: New | Later) -> int:
    return len(piece.body) if isinstance(piece, New) else piece.size


def _with_body(piece: New | Later) -> New:
    if isinstance(piece, New):
        return piece
    body = piece.make()
    if len(body) != piece.size:
        raise RuntimeError(f"an event of type {piece.type} had {piece.size} bytes, and has {len(body)} now")
    return New(piece.type, piece.flags, piece.timestamp, piece.server_id, body)
