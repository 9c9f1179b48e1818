"""One file of the source becomes the view's file of the same name: a function of its bytes, the settings and a checkpoint."""

import struct
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from protocol.binlog.event_type import EventType, event_type_name
from protocol.binlog.fields import Fields
from protocol.binlog.header import FLAG_IGNORABLE, FLAG_IN_USE
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, HEADER, HEADER_SIZE, event_size
from protocol.errors import Malformed, Truncated
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes
from protocol.kernel.view_copy import ViewCopy
from protocol.wire import lenenc_int
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.view.file_head import (
    assigned,
    checksum_size,
    described,
    format_body,
    has_wrong_checksums,
    numbered_version,
    post_lengths,
    previous_body,
)
from relay.view.rules.group import CannotBeKept, Copy, GroupRules, New, OutGroup, StopReason
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.source_groups import GroupReader, ReadInto
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_for_file

BUFFER_BYTES: Final = 1 << 20
MARK_GAP: Final = 64 << 10
"""Bytes of the source from one mark to the next, at most and where transactions are not longer."""
_MARKS: Final = 64
_LONGEST_HEAD: Final = 64 << 20
"""Bytes of an event at a file's head: a Previous_gtids can be long."""
_POLICIES: Final = {"keep": codes.VIEW_KEEP, "assign": codes.VIEW_ASSIGN, "anonymous": codes.VIEW_ANONYMOUS}
_MARKER_BITS: Final = codes.BOUNDARY_MASK
_GTIDS: Final = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED))
_LOGICAL_CLOCK: Final = 2
_CLOCK: Final = slice(codes.GTID_SIZE + 1, codes.GTID_SIZE + 17)
"""In a GTID event's body, of the servers that have one: last_committed and sequence_number."""
_TIME_BYTES: Final = 7
_ORIGINAL_FOLLOWS: Final = 0x80
"""In the last byte of a commit's time: the original one follows."""
_FIRST_WITH_NEW_ROWS: Final = (5, 6)
_REAL_GTIDS: Final = frozenset((EventType.GTID, EventType.GTID_TAGGED))
_BEGIN, _COMMIT = b"BEGIN", b"COMMIT"
# Between groups: what a view's file has as the source's does.
_PASSED_ON: Final = frozenset((EventType.ROTATE, EventType.STOP))


class ViewStopped(Exception):
    """The view cannot go on before what stands at `offset` of `file`; `group_stop`: where that ends."""

    def __init__(self, file: str, offset: int, group_stop: int, reason: StopReason) -> None:
        super().__init__(f"{file}:{offset}: {reason.text}")
        self.file = file
        self.offset = offset
        self.group_stop = group_stop
        self.reason = reason


def empty_transaction(timestamp: int, server_id: int) -> OutGroup:
    """BEGIN and COMMIT, so that a GTID is taken and nothing done."""
    fixed = struct.pack("<IIBHHB", 0, 0, 0, 0, 0, 0)
    return OutGroup([New(EventType.QUERY, 0, timestamp, server_id, fixed + text) for text in (_BEGIN, _COMMIT)], "new")


class FileTranslation:
    """Makes the view's bytes of one file, from `checkpoint` on. Blocking; for one thread at a time.

    read_into: of the source's file. skips: offsets at which an empty transaction takes the place of a group, as somebody
    decided, or nothing, where it has no GTID and is given none. After `fill` or an exception `checkpoint()` is where to go on.
    No instance goes on behind an exception.
    """

    def __init__(
        self,
        name: str,
        read_into: ReadInto,
        settings: ViewSettings,
        rules: GroupRules,
        checkpoint: ViewCheckpoint,
        skips: Mapping[int, int],
        *,
        own_gtids: bool = False,
        mark_gap: int = MARK_GAP,
    ) -> None:
        """own_gtids: every transaction must have a GTID of the source's own, and none is assigned."""
        self.name = name
        self.on_stop: Callable[[ViewStopped], object] | None = None
        """Is told of each group that the rules cannot keep, which is left out as if it were of `skips`, for those who only want to
        know; None: ViewStopped is raised."""
        self.done = False
        """Whether the file is complete: nothing more comes out of it."""
        self.marks: list[ViewCheckpoint] = []
        """Made since the caller took them; the rules' state is that of the group that follows."""
        self.cut_at: int | None = None
        """Where a group without an end was left out, the newest."""
        self._read_into = read_into
        self._settings = settings
        self._rules = rules
        self._skips = skips
        self._from = checkpoint
        self._offset = checkpoint.source
        self._end = 0
        self._sealed = self._ends_cut = False
        self._explicit = -1
        """The value of the status variable that statements are given; -1: none."""
        rules.restore(checkpoint.rules)
        self._state: bytes | None = checkpoint.rules
        """What the rules know; None: to be asked for."""
        version = settings.target_version
        layout = codes.VIEW_BARE if version < (5, 7) else codes.VIEW_CLOCK if version < (8, 0) else codes.VIEW_TIMES
        self._policy = codes.VIEW_KEEP if own_gtids else _POLICIES[settings.gtids]
        self._own_gtids = own_gtids
        self._layout = layout
        self._kernel: ViewCopy | None = None
        self._watched: bytes | None = None
        self._mark_gap = mark_gap
        self._mark_rows = array("q", bytes(8 * codes.VIEW_MARK * _MARKS))
        self._last_mark = -1
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._lo = self._hi = 0
        self._piece: bytearray | None = None
        self._out = bytearray()
        self._at = self._room_at = 0
        self._trailer = self._out_trailer = 0
        """Bytes of checksum behind an event, of the source and of the view."""
        self._groups: GroupReader | None = None
        self._steps = self._run()

    def fill(self, out: bytearray, at: int, end: int, *, sealed: bool, ends_cut: bool = False) -> int:
        """Puts what is made of the source up to `end`, a place between two groups, into out[at:]; returns where that ends.

        `at`: nothing is left to be made. sealed: the source's file ends there. ends_cut: its last group is known to have no end.
        Raises: ViewStopped, ArchiveDamaged, OSError; what was made before comes first, and the exception with the next call.
        """
        self._out, self._at = out, at
        self._room_at = at
        self._end, self._sealed, self._ends_cut = end, sealed, ends_cut
        if self.done:
            return at
        try:
            next(self._steps)
        except StopIteration:
            self.done = True
        except Exception as error:
            if self._at == at:
                raise
            self._steps = _raising(error)
        self._take_marks()
        return self._at

    def checkpoint(self) -> ViewCheckpoint:
        """Between two groups, behind all that was made."""
        kernel = self._kernel
        if kernel is None:
            return self._from
        return ViewCheckpoint(self._offset, kernel.position, kernel.next_gno, kernel.clock(), self._known())

    def _known(self) -> bytes:
        if self._state is None:
            self._state = self._rules.state()
        return self._state

    @property
    def offset(self) -> int:
        """Up to where the source was used."""
        return self._offset

    # --- the steps: each yield says that `out` is full or nothing is left ---------------------------------------------

    def _run(self) -> Iterator[None]:
        while self._end < codes.FIRST_EVENT + HEADER_SIZE:
            yield
        kernel = self._begin()
        if self._from.source == FIRST_EVENT:
            yield from self._write_head(kernel)
        while True:
            if self._lo == self._hi and not self._more():
                if self._sealed:
                    return
                yield
                continue
            kernel.wants_statements = self._rules.wants_statements
            watched = self._rules.watched if kernel.wants_statements else None
            if watched is not self._watched:
                self._watched = watched
                kernel.watch(watched)
            kernel.source_base = self._offset - self._lo
            status = codes.VIEW_LOOK
            if not self._skips or self._offset not in self._skips:
                stop = self._hi
                if self._skips:
                    stop = min(stop, self._lo + self._until_skip())
                status = self._copy(kernel, stop)
            if status == codes.VIEW_MORE:
                if self._more() or self._lo == self._hi or self._offset in self._skips:
                    continue
                if self._hi - self._lo < len(self._buffer) and self._offset + self._hi - self._lo >= self._end:
                    if not self._sealed:
                        yield
                        continue
                    self._leave_out_cut(self._end)
                    return
                yield from self._take_long(kernel)
            elif status == codes.VIEW_ROOM:
                if self._at > self._room_at:
                    yield
                else:
                    yield from self._take_long(kernel)
            elif status == codes.VIEW_LOOK:
                yield from self._take_long(kernel)
            elif status == codes.VIEW_CONTROL:
                yield from self._take_control(kernel)
            elif status == codes.VIEW_CUT:
                self.cut_at = self._offset
                self._advance(kernel.group_stop)
            else:
                raise self._wrong(status, self._offset + kernel.bad_at - self._lo)

    def _copy(self, kernel: ViewCopy, stop: int) -> int:
        """Plain groups up to `stop` in the buffer; why it ended, as `ViewCopy.copy` says."""
        if self._own_gtids:
            self._take_marks()
        before = kernel.position, kernel.next_gno, kernel.sequence
        status = kernel.copy(self._buffer, self._lo, stop, self._out, self._at)
        if self._own_gtids and kernel.next_gno != before[1]:
            # A number was given where none may be: all of that is done again, up to there.
            kernel.take_marks()
            stop = self._first_without_gtid(kernel)
            kernel.position, kernel.next_gno, kernel.sequence = before
            kernel.copy(self._buffer, self._lo, stop, self._out, self._at)
            status = codes.VIEW_LOOK
        self._advance(kernel.consumed)
        self._at = kernel.produced
        return status

    def _first_without_gtid(self, kernel: ViewCopy) -> int:
        """Where in the buffer the next group begins that has no GTID of its own; there is one, whole, as are those before it."""
        at = self._lo
        while True:
            kernel.scan_begin()
            status = kernel.scan(self._buffer, at, self._hi, True)
            if status != codes.VIEW_GROUP or kernel.group_head not in _REAL_GTIDS:
                return at
            at = kernel.group_stop

    def _until_skip(self) -> int:
        """Bytes to the next place that is skipped."""
        return min((offset - self._offset for offset in self._skips if offset > self._offset), default=1 << 62)

    def _more(self) -> bool:
        """Reads behind what is in the buffer; whether anything came."""
        if self._lo:
            left = self._hi - self._lo
            self._view[:left] = bytes(self._view[self._lo : self._hi])
            self._lo, self._hi = 0, left
        room = min(len(self._buffer) - self._hi, self._end - self._offset - self._hi)
        if room <= 0:
            return False
        got = self._read_into(self._view[self._hi : self._hi + room], self._offset + self._hi)
        if not got:
            raise self._damaged(self._offset + self._hi, "the file ends inside what was archived")
        self._hi += got
        return True

    def _advance(self, to: int) -> None:
        self._offset += to - self._lo
        self._lo = to

    # --- the head -----------------------------------------------------------------------------------------------------

    def _begin(self) -> ViewCopy:
        """Reads the source's format description."""
        event = self._read_event(FIRST_EVENT)
        if event[codes.EVENT_TYPE_AT] != EventType.FORMAT_DESCRIPTION:
            raise self._stopped("format_unsupported", "the file does not begin with a format description", 0)
        try:
            known = described(event)
        except Malformed as error:
            raise self._stopped("format_unsupported", f"the format description cannot be read: {error}", 0) from error
        if known.flavour != "mysql":
            text = f"the file is of a {known.flavour} server; views are made of MySQL's binlogs"
            raise self._stopped("format_unsupported", text, 0)
        self._trailer = known.checksum_bytes
        self._out_trailer = 0 if has_wrong_checksums(known, self._settings) else self._trailer
        self._compare(event, FIRST_EVENT)
        explicit = -1
        if numbered_version(known.server_version) < 80000 <= self._target_number():
            explicit = int(self._settings.explicit_timestamps)
        self._explicit = explicit if post_lengths(event)[EventType.QUERY] >= codes.QUERY_POST else -1
        self._rules = rules_for_file(self._rules, known.server_version)
        kernel = ViewCopy(
            # Where none may be assigned, an assigned number tells that there is a transaction without a GTID.
            codes.VIEW_ASSIGN if self._own_gtids else self._policy,
            self._settings.uuid.bytes,
            self._rules.look_at,
            self._layout,
            explicit,
            self._settings.target_version >= _FIRST_WITH_NEW_ROWS,
        )
        lengths = post_lengths(event)
        kernel.begin_file(lengths, known.checksum, int(self._out_trailer > 0), numbered_version(known.server_version))
        kernel.set_marks(self._mark_rows, self._mark_gap)
        kernel.position, kernel.next_gno = self._from.view, self._from.next_gno
        kernel.set_clock(self._from.sequence)
        self._groups = GroupReader(
            self.name, self._read_into, lengths, known.server_version, self._trailer, self._rules.look_at
        )
        self._kernel = kernel
        self._format = event
        return kernel

    def _target_number(self) -> int:
        major, minor = self._settings.target_version
        return major * 10000 + minor * 100

    def _write_head(self, kernel: ViewCopy) -> Iterator[None]:
        timestamp, _, server_id, size, _, flags = HEADER.unpack_from(self._format)
        self.marks.append(self.checkpoint())
        if described(self._format).created:
            self._rules.source_started()
            self._state = None
        body = format_body(self._format, self._settings)
        event = self._placed(
            New(EventType.FORMAT_DESCRIPTION, flags & ~FLAG_IN_USE & ~_MARKER_BITS, timestamp, server_id, body),
            codes.IGNORE,
            trailer=checksum_size(described(self._format), self._settings),
        )
        yield from self._put(event)
        self._offset += size
        # What was executed before: the source's own, which stands here where it has any, and what the view assigned.
        while self._hi - self._lo < HEADER_SIZE:
            if self._more():
                continue
            if self._sealed:
                break
            yield
        own = GtidSet()
        while self._hi - self._lo >= HEADER_SIZE and self._buffer[self._lo + codes.EVENT_TYPE_AT] == (
            EventType.PREVIOUS_GTIDS
        ):
            event = self._read_event(self._offset)
            size = len(event)
            try:
                own |= decode_gtid_set(event[HEADER_SIZE : size - self._trailer])
            except Malformed as error:
                text = f"the source's Previous_gtids cannot be read: {error}"
                raise self._stopped("format_unsupported", text, 0) from error
            self._drop(size)
            if self._lo == self._hi:
                break
        if self._policy == codes.VIEW_ASSIGN:
            own |= assigned(self._settings.uuid.bytes, kernel.next_gno)
        set_body = previous_body(own, described(self._format).server_version, self._settings)
        if set_body is not None:
            previous = New(EventType.PREVIOUS_GTIDS, FLAG_IGNORABLE, timestamp, server_id, set_body)
            yield from self._put(self._placed(previous, codes.SELF_CONTAINED))

    def _drop(self, size: int) -> None:
        """Goes on behind `size` bytes of the source."""
        if self._hi - self._lo >= size:
            self._advance(self._lo + size)
        else:
            self._offset += size
            self._lo = self._hi = 0

    # --- single groups --------------------------------------------------------------------------------------------------

    def _take_control(self, kernel: ViewCopy) -> Iterator[None]:
        """An event between two groups."""
        self._mark(self._offset)
        at, stop = self._lo, kernel.group_stop
        timestamp, kind, server_id, size, _, flags = HEADER.unpack_from(self._buffer, at)
        if kind in _PASSED_ON:
            body = bytes(self._view[at + HEADER_SIZE : stop - self._trailer])
            marker = (flags & codes.BOUNDARY_MASK) >> codes.BOUNDARY_SHIFT
            yield from self._put(self._placed(New(kind, flags & ~_MARKER_BITS, timestamp, server_id, body), marker))
        elif kind == EventType.INCIDENT:
            text = "the source noted an incident: events may be lost there"
            raise self._stopped("source_incident", text, 1590, stop - at)
        elif kind not in (EventType.PREVIOUS_GTIDS, EventType.FORMAT_DESCRIPTION) and not flags & FLAG_IGNORABLE:
            text = f"an event of type {event_type_name(kind)} between two transactions"
            raise self._stopped("event_unsupported", text, 0, stop - at)
        self._drop(size)

    def _take_long(self, kernel: ViewCopy) -> Iterator[None]:
        """The group at `offset`, by the rules or as it is, of any size."""
        start = self._offset
        stop = self._group_end(kernel, start)
        if stop is None:
            return
        look = kernel.group_look
        groups: list[OutGroup]
        assert self._groups is not None
        self._mark(start)
        if start in self._skips:
            groups = self._skipped(start, stop)
            self._state = None
        elif self._own_gtids and kernel.group_head not in _REAL_GTIDS:
            raise ViewStopped(self.name, start, stop, self._without_gtid())
        elif look:
            group = self._groups.group(start, stop)
            self._state = None
            try:
                groups = self._rules.plan(group)
            except CannotBeKept as error:
                stopped = ViewStopped(self.name, start, stop, error.reason)
                if self.on_stop is None:
                    raise stopped from error
                self.on_stop(stopped)
                groups = self._skipped(start, stop)
        else:
            has_gtid = kernel.group_head in _GTIDS
            groups = [OutGroup([Copy(start, stop)], "source" if has_gtid else "new")]
        for out in groups:
            yield from self._write_group(kernel, out, stop - start)
            kernel.renumbers = kernel.renumbers or len(groups) > 1
        self._drop(stop - start)

    def _skipped(self, start: int, stop: int) -> list[OutGroup]:
        assert self._groups is not None
        group = self._groups.group(start, stop)
        self._rules.skipped(group)
        first, last = group.events[0], group.events[-1]
        empty = empty_transaction(last.timestamp, first.server_id)
        if self._own_gtids and first.type not in _REAL_GTIDS:
            return []
        if isinstance(self._rules, TargetRules):
            return self._rules.left_out(group, empty)
        if first.type in _GTIDS:
            pieces = [Copy(first.offset, first.offset + first.length), *empty.pieces]
            return [OutGroup(pieces, "source")]
        return [empty] if self._policy != codes.VIEW_KEEP else []

    def _mark(self, start: int) -> None:
        self._take_marks()
        if self._last_mark < 0 or start - self._last_mark >= self._mark_gap:
            self._last_mark = start
            self.marks.append(self.checkpoint())

    def _take_marks(self) -> None:
        kernel = self._kernel
        count = kernel.take_marks() if kernel is not None else 0
        rows, width = self._mark_rows, codes.VIEW_MARK
        for row in range(0, count * width, width):
            self._last_mark = rows[row]
            self.marks.append(ViewCheckpoint(rows[row], rows[row + 1], rows[row + 2], rows[row + 3], self._known()))

    def _group_end(self, kernel: ViewCopy, start: int) -> int | None:
        """Where the group at `start` ends, by its markers; None: it has no end, and was passed over."""
        kernel.scan_begin()
        for data, lo, hi, base in self._pieces(kernel, start, self._end):
            status = kernel.scan(data, lo, hi, True)
            if status == codes.VIEW_GROUP:
                return base + kernel.group_stop
            if status == codes.VIEW_CUT:
                self.cut_at = start
                self._drop(base + kernel.group_stop - start)
                return None
            if status != codes.VIEW_MORE:
                raise self._wrong(status, base + kernel.bad_at)
        self._leave_out_cut(self._end)
        return None

    def _leave_out_cut(self, stop: int) -> None:
        """The group at `offset` has no end in the file. Raises: ArchiveDamaged where the source did not leave it so."""
        if not self._ends_cut:
            raise self._damaged(
                self._offset, f"the transaction at {self._offset} goes beyond the end of what was archived"
            )
        self.cut_at = self._offset
        self._drop(stop - self._offset)

    def _pieces(self, kernel: ViewCopy, start: int, stop: int) -> Iterator[tuple[bytearray, int, int, int]]:
        """(buffer, from, to, offset of its first byte) over [start, stop) of the source; the kernel's `consumed` says how much
        of each was used."""
        base = self._offset - self._lo
        if base + self._lo <= start and stop <= base + self._hi:
            yield self._buffer, start - base, stop - base, base
            return
        if self._piece is None:
            self._piece = bytearray(BUFFER_BYTES)
        view = memoryview(self._piece)
        at, kept = start, 0
        while at < stop:
            room = min(len(view) - kept, stop - at)
            got = self._read_into(view[kept : kept + room], at)
            if not got:
                raise self._damaged(at, "the file ends inside what was archived")
            at += got
            count = kept + got
            yield self._piece, 0, count, at - count
            kept = count - kernel.consumed
            view[:kept] = bytes(view[kernel.consumed : count])

    def _write_group(self, kernel: ViewCopy, group: OutGroup, source_size: int) -> Iterator[None]:
        """source_size: bytes that the source's transaction has."""
        pieces = [self._with_explicit(piece) for piece in group.pieces]
        if group.gtid == "source":
            pieces = self._with_source_gtid(kernel, pieces)
        size, last_time = 0, 0
        first_server = 0
        for piece in pieces:
            if isinstance(piece, New):
                size += HEADER_SIZE + len(piece.body) + self._out_trailer
                last_time, server = piece.timestamp, piece.server_id
            else:
                size += self._size_of(kernel, piece)
                last_time, server = kernel.group_time, kernel.group_server
            first_server = first_server or server
        if group.gtid == "source" and isinstance(pieces[0], New) and size != source_size:
            # Where nothing was changed it stays as the source wrote it: as in groups that the kernel copies.
            pieces[0] = self._with_length(pieces[0], size)
        begins = True
        if group.gtid == "new" and self._policy != codes.VIEW_KEEP:
            if len(self._out) - self._at < codes.VIEW_LONGEST_GTID:
                yield
            self._at = kernel.gtid(self._out, self._at, size, last_time, first_server)
            begins = False
        elif group.gtid == "new":
            kernel.sequence += 1
        for number, piece in enumerate(pieces):
            is_last = number == len(pieces) - 1
            if isinstance(piece, New):
                marker = codes.START if begins else codes.END if is_last else codes.INSIDE
                marker = codes.SELF_CONTAINED if begins and is_last else marker
                yield from self._put(self._placed(piece, marker))
            else:
                yield from self._emit(kernel, piece, begins, is_last)
            begins = False

    def _with_source_gtid(self, kernel: ViewCopy, pieces: list[Copy | New]) -> list[Copy | New]:
        """With the source's GTID event as the view has it: an Anonymous_gtid becomes a GTID where those are assigned, and where the
        source's numbers of dependencies do not count any more there are others."""
        first = pieces[0]
        assert self._groups is not None
        if isinstance(first, Copy):
            event = next(iter(self._groups.group(first.start, first.stop).events))
            if event.type not in _GTIDS:
                return pieces
            rest, stop = event.offset + event.length, first.stop
            behind: list[Copy | New] = [Copy(rest, stop)] if rest < stop else []
            first = New(event.type, event.flags, event.timestamp, event.server_id, self._groups.body(event))
            pieces = [first, *behind, *pieces[1:]]
        if first.type not in _GTIDS:
            return pieces
        body = first.body
        if first.type == EventType.ANONYMOUS_GTID and self._policy == codes.VIEW_ASSIGN:
            number = struct.pack("<q", kernel.next_gno)
            body = body[:1] + self._settings.uuid.bytes + number + body[codes.GTID_SIZE :]
            kernel.next_gno += 1
            first = first._replace(type=EventType.GTID)
        return [first._replace(body=self._with_clock(kernel, first.type, body)), *pieces[1:]]

    def _with_clock(self, kernel: ViewCopy, kind: int, body: bytes) -> bytes:
        """As the kernel's `follow_clock`. Raises: ViewStopped."""
        if kind == EventType.GTID_TAGGED and kernel.renumbers:
            text = "a GTID with a tag behind a transaction that became two: what it depends on cannot be said anew"
            raise self._stopped("dependencies_unknown", text, 0)
        if kind != EventType.GTID_TAGGED and len(body) >= _CLOCK.stop and body[codes.GTID_SIZE] == _LOGICAL_CLOCK:
            if kernel.renumbers:
                numbers = struct.pack("<qq", kernel.sequence - 1, kernel.sequence)
                body = body[: _CLOCK.start] + numbers + body[_CLOCK.stop :]
            else:
                kernel.sequence = struct.unpack("<qq", body[_CLOCK])[1]
        kernel.sequence += 1
        return body

    def _with_length(self, first: New, size: int) -> New:
        """A GTID event that tells its transaction's length, as from 8.0 on, tells that in the view. size: of the transaction, with the
        event as it is."""
        body, at = first.body, _CLOCK.stop
        if first.type not in (EventType.GTID, EventType.ANONYMOUS_GTID) or len(body) < at + _TIME_BYTES:
            return first
        at += _TIME_BYTES * (2 if body[at + _TIME_BYTES - 1] & _ORIGINAL_FOLLOWS else 1)
        fields = Fields(body[at:])
        if not fields.remaining:
            return first
        try:
            fields.lenenc_int()
        except Truncated:
            return first
        behind = len(body) - fields.remaining
        without = size - (behind - at)
        length = next(made for count in (1, 3, 4, 9) if len(made := lenenc_int(without + count)) == count)
        return first._replace(body=body[:at] + length + body[behind:])

    def _with_explicit(self, piece: Copy | New) -> Copy | New:
        """A statement with another text says how TIMESTAMP columns are defined, as the kernel makes those say it that are copied."""
        if self._explicit < 0 or not isinstance(piece, New) or piece.type != EventType.QUERY:
            return piece
        body, lengths_at = piece.body, codes.QUERY_STATUS_LENGTH_AT
        status = int.from_bytes(body[lengths_at : codes.QUERY_POST], "little")
        if body[codes.QUERY_POST + status + body[codes.QUERY_SCHEMA_LENGTH_AT] + 1 :] in (_BEGIN, _COMMIT):
            return piece
        said = bytes((codes.QUERY_EXPLICIT_TIMESTAMPS, self._explicit))
        length = (status + len(said)).to_bytes(2, "little")
        return piece._replace(body=body[:lengths_at] + length + said + body[codes.QUERY_POST :])

    def _size_of(self, kernel: ViewCopy, piece: Copy) -> int:
        kernel.scan_begin()
        for data, lo, hi, base in self._pieces(kernel, piece.start, piece.stop):
            status = kernel.scan(data, lo, hi, False)
            if status != codes.VIEW_MORE:
                raise self._wrong(status, base + kernel.bad_at)
        return kernel.group_size

    def _emit(self, kernel: ViewCopy, piece: Copy, begins: bool, is_last: bool) -> Iterator[None]:
        kernel.scan_begin()
        for data, lo, hi, base in self._pieces(kernel, piece.start, piece.stop):
            at = lo
            while True:
                end = piece.stop - base if is_last else -1
                status = kernel.emit(data, at, hi, self._out, self._at, begins, end)
                begins = begins and kernel.consumed == at
                at, self._at = kernel.consumed, kernel.produced
                if status != codes.VIEW_ROOM:
                    break
                yield
            if status != codes.VIEW_MORE:
                raise self._wrong(status, base + kernel.bad_at)

    # --- bytes ----------------------------------------------------------------------------------------------------------

    def _placed(self, new: New, marker: int, *, trailer: int | None = None) -> bytes:
        """The event as it stands at the view's position."""
        kernel = self._kernel
        assert kernel is not None
        trailer = self._out_trailer if trailer is None else trailer
        size = HEADER_SIZE + len(new.body) + trailer
        flags = new.flags & ~_MARKER_BITS | marker << codes.BOUNDARY_SHIFT
        end = kernel.position + size & codes.U32_MAX
        event = HEADER.pack(new.timestamp, new.type, new.server_id, size, end, flags) + new.body
        kernel.position += size
        return event + struct.pack("<I", zlib.crc32(event)) if trailer else event

    def _put(self, data: bytes) -> Iterator[None]:
        at = 0
        while at < len(data):
            count = min(len(self._out) - self._at, len(data) - at)
            if not count:
                yield
                continue
            self._out[self._at : self._at + count] = data[at : at + count]
            self._at += count
            at += count

    def _read_event(self, offset: int) -> bytes:
        """A whole event, which is small. Raises: ArchiveDamaged."""
        head = self._read_exactly(offset, HEADER_SIZE)
        size = event_size(head)
        if not HEADER_SIZE <= size <= _LONGEST_HEAD:
            raise self._wrong(codes.BAD_LENGTH, offset)
        event = head + self._read_exactly(offset + HEADER_SIZE, size - HEADER_SIZE)
        self._compare(event, offset)
        return event

    def _compare(self, event: bytes, offset: int) -> None:
        if self._trailer and zlib.crc32(event[:-CHECKSUM_SIZE]) != int.from_bytes(event[-CHECKSUM_SIZE:], "little"):
            raise self._wrong(codes.BAD_CRC, offset)

    def _read_exactly(self, offset: int, count: int) -> bytes:
        data = bytearray(max(0, count))
        view = memoryview(data)
        got = 0
        while got < count:
            more = self._read_into(view[got:], offset + got)
            if not more:
                raise self._damaged(offset + got, "the file ends inside what was archived")
            got += more
        return bytes(data)

    # --- what is wrong --------------------------------------------------------------------------------------------------

    def _stopped(self, name: str, text: str, error: int, size: int = 0) -> ViewStopped:
        reason = StopReason(name, text, error, f"binlog-relay view skip {self._settings.name} leaves it out.")
        return ViewStopped(self.name, self._offset, self._offset + size, reason)

    def _without_gtid(self) -> StopReason:
        text = (
            "another source is followed, and it wrote a transaction without a GTID: whether replicas of the view have it "
            "already is not known"
        )
        advice = (
            f"Look at it with mysqlbinlog: where replicas have it, or were given it by hand, binlog-relay view skip "
            f"{self._settings.name} leaves it out. Or copy the data to the replicas anew, for a new [[view]] with a start behind it."
        )
        return StopReason("source_changed", text, 0, advice)

    def _damaged(self, offset: int, what: str) -> ArchiveDamaged:
        return ArchiveDamaged(what, file=self.name, offset=offset, boundary=self._offset)

    def _wrong(self, status: int, offset: int) -> Exception:
        if status == codes.BAD_CRC:
            return self._damaged(offset, f"the checksum of the event at {offset} is wrong")
        if status == codes.BAD_LENGTH:
            return self._damaged(offset, f"at {offset} there is no event: its length cannot be")
        return self._stopped("boundary_violation", "an event stands here that can begin no transaction", 0)


def _raising(error: Exception) -> Iterator[None]:
    raise error
    yield
