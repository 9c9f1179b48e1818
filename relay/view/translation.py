"""One file of the source becomes the view's file of the same name: a function of its bytes, the settings and a checkpoint."""

import secrets
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, FIRST_EVENT, HEADER_SIZE
from protocol.binlog.table_map import table_id_bytes
from protocol.dependencies.group_waits import GroupWaits
from protocol.dependencies.write_set_codes import SERIAL_OTHER
from protocol.dependencies.write_sets import WriteSets
from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes
from protocol.position import Position, binlog_number
from protocol.sql.expressions.constructs import BOUNDS
from protocol.sql.server_version import version_id
from protocol.views.known_statements import KnownStatements
from protocol.views.view_copy import ViewCopy
from relay.view.rules.group import Copy, GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.mariadb.mariadb_rules import MariadbRules
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.stops import source_stops, transaction_stops
from relay.view.stops.stop_reason import Untranslatable
from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translate.before_start import BeforeStart, GroupUnreadable, PassedFile, StartInside
from relay.view.translate.control_events import ENDS_FILE, ControlEvents
from relay.view.translate.file_head import described, has_wrong_checksums, post_lengths
from relay.view.translate.group_writer import BEGIN, COMMIT, GTIDS, GroupWriter
from relay.view.translate.made_bytes import MadeBytes
from relay.view.translate.passed_tables import PassedTables
from relay.view.translate.plain_mariadb import PlainMariadb
from relay.view.translate.sampled_group import sampled
from relay.view.translate.source_groups import GroupReader, ReadInto
from relay.view.translate.source_window import SourceWindow
from relay.view.translate.wait_counts import WaitCounts
from relay.view.translate.wait_plans import WaitPlans, take_rows
from relay.view.view_checkpoint import ViewCheckpoint

BUFFER_BYTES: Final = 1 << 20
MARK_GAP: Final = 64 << 10
"""The most bytes of the source between two marks, unless a transaction is longer."""
_MARKS: Final = 64
_POLICIES: Final = {"keep": codes.VIEW_KEEP, "assign": codes.VIEW_ASSIGN, "anonymous": codes.VIEW_ANONYMOUS}
_FIRST_WITH_NEW_ROWS: Final = (5, 6)
_REAL_GTIDS: Final = frozenset((EventType.GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID))
_LONGEST_POST: Final = (
    (EventType.QUERY, bytes((codes.QUERY_POST,))),
    (EventType.EXECUTE_LOAD_QUERY, bytes((codes.EXECUTE_LOAD_QUERY_POST,))),
)


def empty_transaction(timestamp: int, server_id: int) -> OutGroup:
    """Return BEGIN and COMMIT, so that a GTID is used and nothing is changed."""
    fixed = struct.pack("<IIBHHB", 0, 0, 0, 0, 0, 0)
    return OutGroup([New(EventType.QUERY, 0, timestamp, server_id, fixed + text) for text in (BEGIN, COMMIT)], "new")


class FileTranslation:
    """Builds the view's bytes of one file, from `checkpoint` on. Blocking; for one thread at a time.

    `read_into` reads the source's file. `skips` contains offsets at which an operator decided that an empty transaction replaces a
    group, or nothing does, where it has no GTID and gets none, or has no end. After `fill` or an exception `checkpoint()` is where the
    translation continues. No instance continues after an exception.
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
        """Prepare the translation. With `own_gtids` every transaction must have a GTID of the source's own, and none is assigned."""
        self.name = name
        self.on_stop: Callable[[ViewStop], object] | None = None
        """Called with each group that the rules cannot keep, which is left out as if `skips` contained it, for callers that only
        examine; None: ViewStopped is raised."""
        self.tables: PassedTables | None = None
        """The known tables of the source, for a view that says which transactions wait for which; set before the first `fill`. None:
        each waits for the one before it, which suffices for callers that only want places."""
        self.done = False
        """True if the file is complete: nothing more comes out of it."""
        self.marks: list[ViewCheckpoint] = []
        """The checkpoints made since the caller took them; the rules' state is that of the group that follows."""
        self.cut_at: int | None = None
        """The offset of the newest group without an end that was left out."""
        self.group: tuple[int, int] | None = None
        """The offsets at which the group that is being translated begins and ends; None: there is none."""
        self._read_into = read_into
        self._settings = settings
        self._rules = rules
        self._skips = skips
        self._from = checkpoint
        self._sealed = self._ends_cut = False
        rules.restore(checkpoint.rules)
        self._state: bytes | None = checkpoint.rules
        """The rules' state; None: it must be requested from them."""
        version = settings.target_version
        layout = codes.VIEW_BARE if version < (5, 7) else codes.VIEW_CLOCK if version < (8, 0) else codes.VIEW_TIMES
        self._policy = codes.VIEW_KEEP if own_gtids else _POLICIES[settings.gtids]
        self._own_gtids = own_gtids
        self._layout = layout
        self._source = SourceWindow(name, read_into, checkpoint.source, BUFFER_BYTES)
        self._made = MadeBytes()
        self._kernel: ViewCopy | None = None
        self._plain: PlainMariadb | None = None
        """The copier of a MariaDB source's plain groups."""
        self._plans: WaitPlans | None = None
        self._watched: bytes | None = None
        self._removals: bytes | None = None
        self._known_statements = KnownStatements(BOUNDS, secrets.token_bytes(16))
        self._known_at: object = None
        self._mark_gap = mark_gap
        self._mark_rows = array("q", bytes(8 * codes.VIEW_MARK * _MARKS))
        self._last_mark = -1
        self._groups: GroupReader
        self._writer: GroupWriter
        self._control: ControlEvents
        self._steps = self._run()

    def fill(self, out: bytearray, at: int, end: int, *, sealed: bool, ends_cut: bool = False) -> int:
        """Write what follows from the source up to `end`, a place between two groups, into out[at:]; return where that ends.

        A result of `at` means that nothing is left to be built. `sealed`: the source's file ends there. `ends_cut`: its last group has
        no end. Raises: ViewStopped, ArchiveDamaged, OSError; what was built before comes first, and the exception with the next call.
        """
        made = self._made
        made.begin(out, at)
        self._source.end = end
        self._sealed, self._ends_cut = sealed, ends_cut
        if self.done:
            return at
        try:
            next(self._steps)
        except StopIteration:
            self.done = True
        except Exception as error:
            if not made.is_begun:
                raise
            self._steps = _raising(error)
        self._take_marks()
        return made.at

    def checkpoint(self) -> ViewCheckpoint:
        """Return the place between two groups up to which everything is built."""
        kernel = self._kernel
        if kernel is None:
            return self._from
        return ViewCheckpoint(self._source.offset, kernel.position, kernel.next_gno, kernel.clock(), self._known())

    def _known(self) -> bytes:
        if self._state is None:
            self._state = self._rules.state()
        return self._state

    @property
    def first_statement(self) -> int | None:
        """The offset of the first transaction of a MariaDB source that changes rows by statements; None: none was passed."""
        return self._rules.first_statement

    @property
    def left_out(self) -> LeftOut | None:
        """The parts of a MariaDB source left out since the view began; None: the source is another."""
        return self._rules.left_out_of.copy() if isinstance(self._rules, MariadbRules) else None

    @property
    def looks_back(self) -> bool:
        """True if the next step reads everything in the file that precedes the view's start."""
        return self._kernel is None and self._from.view == FIRST_EVENT < self._from.source

    @property
    def offset(self) -> int:
        """The offset up to which the source was used."""
        return self._source.offset

    # --- the steps: each yield means that `out` is full or nothing is left ---------------------------------------------

    def _run(self) -> Iterator[None]:
        source = self._source
        while source.end < max(codes.FIRST_EVENT + HEADER_SIZE, self._from.source):
            yield
        format = self._read_format()
        kernel = self._begin(format)
        if self._from.view == FIRST_EVENT:
            self.marks.append(self.checkpoint())
            if described(format).created:
                self._rules.source_started()
            else:
                self._check_went_on(len(format))
            self._state = None
            before = self._before_start(kernel, FIRST_EVENT + len(format))
            yield from self._control.head(format, before, lambda: self._sealed)
        while True:
            if not source.count and not source.more():
                if self._sealed:
                    return
                yield
                continue
            status = self._copy(kernel)
            if status == codes.VIEW_MORE:
                if source.more() or not source.count or source.offset in self._skips:
                    continue
                if source.is_whole:
                    if not self._sealed:
                        yield
                        continue
                    self._leave_out_cut()
                    return
                yield from self._take_long(kernel)
            elif status == codes.VIEW_PLAN:
                self._give_plan()
            elif status == codes.VIEW_ROOM:
                if self._made.is_begun:
                    yield
                else:
                    yield from self._take_long(kernel)
            elif status == codes.VIEW_LOOK:
                yield from self._take_long(kernel)
            elif status == codes.VIEW_CONTROL:
                self._mark(source.offset)
                yield from self._control.between_groups()
            elif status == codes.VIEW_CUT:
                self._leave_out_unfinished(source.offset + kernel.group_stop - source.lo)
            else:
                raise self._wrong(status, source.offset + kernel.bad_at - source.lo)

    def _copy(self, kernel: ViewCopy) -> int:
        """Copy the plain groups that are next, up to one that is skipped; return why it ended, as `ViewCopy.copy` does."""
        source = self._source
        kernel.wants_statements = self._rules.wants_statements
        watched = self._rules.watched if kernel.wants_statements else None
        if watched is not self._watched:
            self._watched = watched
            kernel.watch(watched)
        known_at = self._rules.known_at if kernel.wants_statements else None
        if known_at is None or known_at is not self._known_at:
            self._known_at = known_at
            self._known_statements.clear()
        kernel.wants_removals = self._rules.wants_removals
        removals = self._rules.removals if kernel.wants_removals else None
        if removals is not self._removals:
            self._removals = removals
            kernel.watch_removals(removals)
        kernel.source_base = source.offset - source.lo
        if not self._skips:
            return self._copy_up_to(kernel, source.hi)
        if source.offset in self._skips:
            return codes.VIEW_LOOK
        return self._copy_up_to(kernel, min(source.hi, source.lo + self._until_skip()))

    def _copy_up_to(self, kernel: ViewCopy, stop: int) -> int:
        source, made = self._source, self._made
        if self._plain is not None:
            status = self._plain.copy(stop)
            self._state = None  # a mark in between requested it
            # The other kernel tells what is there; it copies no group of a MariaDB.
            return status if status != codes.VIEW_LOOK else self._look_at(kernel, stop)
        if self._own_gtids:
            self._take_marks()
        before = kernel.position, kernel.next_gno, kernel.sequence, kernel.uuid_used
        status = kernel.copy(source.buffer, source.lo, stop, made.out, made.at)
        if self._own_gtids and kernel.next_gno != before[1]:
            # A number was assigned where none may be: the copy is repeated up to that group.
            kernel.take_marks()
            stop = self._first_without_gtid(kernel)
            kernel.position, kernel.next_gno, kernel.sequence, kernel.uuid_used = before
            kernel.copy(source.buffer, source.lo, stop, made.out, made.at)
            status = codes.VIEW_LOOK
        source.advance(kernel.consumed)
        made.at = kernel.produced
        return status

    def _look_at(self, kernel: ViewCopy, stop: int) -> int:
        """Return the kind of the next thing, which is not copied."""
        source, made = self._source, self._made
        status = kernel.copy(source.buffer, source.lo, stop, made.out, made.at)
        source.advance(kernel.consumed)
        return status

    def _first_without_gtid(self, kernel: ViewCopy) -> int:
        """Return where in the buffer the next group without a GTID of its own begins; it exists, whole, as do those before it."""
        source = self._source
        at = source.lo
        while True:
            kernel.scan_begin()
            status = kernel.scan(source.buffer, at, source.hi, True)
            if status != codes.VIEW_GROUP or kernel.group_head not in _REAL_GTIDS:
                return at
            at = kernel.group_stop

    def _until_skip(self) -> int:
        """Return the bytes up to the next place that is skipped."""
        here = self._source.offset
        return min((offset - here for offset in self._skips if offset > here), default=1 << 62)

    # --- the beginning --------------------------------------------------------------------------------------------------

    def _read_format(self) -> bytes:
        """Return the source's format description event. Raises: ViewStopped for one from which no view is built."""
        source = self._source
        event = source.read_event(FIRST_EVENT)
        if event[codes.EVENT_TYPE_AT] != EventType.FORMAT_DESCRIPTION:
            raise self._unsupported("the file does not begin with a format description")
        try:
            known = described(event)
        except Malformed as error:
            raise self._unsupported(f"the format description cannot be read: {error}") from error
        if known.flavour != self._settings.flavour:
            raise self._unsupported(
                f"the file is of a {known.flavour} server, and the view is made of the binlogs of {self._settings.flavour}"
            )
        if any(known.post_header_lengths[kind - 1 : kind] > most for kind, most in _LONGEST_POST):
            raise self._unsupported(
                "the format description says that statements have longer heads than any server writes"
            )
        # This event always has a checksum of its own, and says how the other events are read.
        source.trailer = CHECKSUM_SIZE if known.has_checksum_field else 0
        source.compare(event, FIRST_EVENT)
        source.trailer = known.checksum_bytes
        return event

    def _unsupported(self, text: str) -> ViewStopped:
        return self._source.stopped(source_stops.format_unsupported(text))

    def _begin(self, event: bytes) -> ViewCopy:
        known, lengths = described(event), post_lengths(event)
        source, made = self._source, self._made
        made.trailer = 0 if has_wrong_checksums(known, self._settings) else source.trailer
        version = version_id(known.server_version)
        explicit = int(self._settings.explicit_timestamps) if version < 80000 <= self._target_number() else -1
        if known.flavour == MARIADB:
            explicit = -1
        self._rules = self._rules.of_source(known.server_version)
        kernel = ViewCopy(
            # Where none may be assigned, an assigned number shows that there is a transaction without a GTID.
            codes.VIEW_ASSIGN if self._own_gtids else self._policy,
            self._settings.uuid.bytes,
            self._rules.look_at,
            self._layout,
            explicit,
            self._settings.target_version >= _FIRST_WITH_NEW_ROWS,
        )
        kernel.know_statements(self._known_statements)
        if self._settings.dependencies == "writeset":
            kernel.set_waits(GroupWaits(WriteSets() if self.tables is not None else None))
            kernel.wants_gtids = self._own_gtids
        kernel.begin_file(lengths, known.checksum, int(made.trailer > 0), version)
        kernel.set_marks(self._mark_rows, self._mark_gap)
        kernel.position, kernel.next_gno = self._from.view, self._from.next_gno
        kernel.set_clock(self._from.sequence)
        self._groups = GroupReader(self.name, self._read_into, lengths, known.server_version, source.trailer)
        if lengths[EventType.QUERY] < codes.QUERY_POST:
            explicit = -1
        if self.tables is not None:
            self._plans = WaitPlans(
                kernel,
                source,
                self.tables,
                file=self.name,
                number=binlog_number(self.name),
                map_id_bytes=table_id_bytes(lengths[EventType.TABLE_MAP]),
            )
        self._writer = GroupWriter(kernel, source, made, self._groups, self._settings, self._policy, explicit)
        assigns = self._policy == codes.VIEW_ASSIGN
        mariadb = self._rules if isinstance(self._rules, MariadbRules) else None
        if mariadb is not None:
            mariadb.begin_file(known.server_version)
            self._writer.server_version = version
            self._plain = PlainMariadb(kernel, source, made, mariadb, version, self._mark_here)
        self._control = ControlEvents(kernel, source, made, self._settings, assigns, mariadb)
        self._kernel = kernel
        return kernel

    def _before_start(self, kernel: ViewCopy, begins: int) -> GtidSet:
        """Return the source's GTIDs before the view's start within the file; `begins` is the offset after the format description.

        Raises: ViewStopped for a start that is inside a transaction.
        """
        source, start = self._source, self._from.source
        if start == FIRST_EVENT:
            return GtidSet()
        if self._settings.flavour == MARIADB:
            self._control.read_list(begins)
        file = PassedFile(self._read_into, self._groups, source.end, checksum=source.trailer > 0, skips=self._skips)
        try:
            own = BeforeStart(file, kernel, self._rules, self._settings.flavour).learn(begins, start)
        except StartInside as inside:
            place = Position(self.name, start)
            reason = source_stops.start_inside(self._settings.name, place, inside.before, inside.after)
            raise source.stopped(reason, start) from inside
        except GroupUnreadable as error:
            if error.status == codes.VIEW_MORE:
                raise source.damaged(error.offset, "the file ends inside what was archived") from error
            raise source.wrong(error.status, error.offset) from error
        except Malformed as error:
            raise self._unsupported(f"the source's GTIDs before {start} cannot be read: {error}") from error
        self._state = None
        return own

    def _target_number(self) -> int:
        major, minor = self._settings.target_version
        return major * 10000 + minor * 100

    # --- single groups --------------------------------------------------------------------------------------------------

    def _take_long(self, kernel: ViewCopy) -> Iterator[None]:
        """Translate the group at `offset`, which may have any size, by the rules or as it is."""
        source = self._source
        start = source.offset
        stop = self._group_end(kernel, start)
        if stop is None:
            return
        look = kernel.group_look
        self.group = start, stop
        groups: list[OutGroup]
        is_plain = are_alike = False
        self._mark(start)
        if start in self._skips:
            groups = self._skipped(start, stop)
            self._state = None
        elif self._own_gtids and kernel.group_head not in _REAL_GTIDS:
            raise self._source.stopped(source_stops.transaction_without_gtid(), start, stop)
        elif kernel.group_collides:
            raise self._source.stopped(source_stops.uuid_in_use(self._settings.uuid), start)
        elif kernel.group_damaged:
            groups = self._left_out(self._source.stopped(transaction_stops.group_damaged().reason, start, stop))
            self._state = None
        elif look:
            group = self._groups.group(start, stop)
            self._state = None
            try:
                if self._passes_by_samples(group):
                    groups = [_as_it_is(kernel, start, stop)]
                else:
                    groups = self._rules.plan(group)
                    are_alike = self._rules.passes_alike and self._known_at is not None
            except Untranslatable as error:
                groups = self._left_out(self._source.stopped(error.reason, start, stop))
        else:
            groups = [_as_it_is(kernel, start, stop)]
            is_plain = True
        for out in groups:
            if kernel.waits is not None:
                take_rows(kernel, source, start, stop, self._give_plan) if is_plain else kernel.waits.begin_serial(
                    SERIAL_OTHER
                )
            yield from self._writer.write(out, stop - start)
            kernel.renumbers = kernel.renumbers or len(groups) > 1
        looked_at = look or start in self._skips
        if are_alike and source.count >= stop - start:
            kernel.note_statements(source.buffer, source.lo, source.lo + stop - start)
        if self.tables is not None and looked_at and self.tables.pass_group(self._groups.group(start, stop)):
            kernel.plans_until = 0
        source.drop(stop - start)
        self.group = None

    def _passes_by_samples(self, group: SourceGroup) -> bool:
        """Return whether a long group passes as it is, judged by two statements of each kind; False: it is not certain."""
        if group.is_held or self._known_at is None:
            return False
        found = sampled(group)
        if found is None:
            return False
        try:
            self._rules.plan(found)
        except Untranslatable:
            return False  # of the whole group, another statement may be the first that stops
        return self._rules.passes_alike

    # --- which groups wait for which --------------------------------------------------------------------------------------

    def tables_changed(self) -> None:
        """Note, between two groups, that more is known of tables from the next group on."""
        if self._kernel is not None:
            self._kernel.plans_until = 0

    def take_counts(self) -> WaitCounts:
        """Return the counts since the last call."""
        return self._plans.take_counts() if self._plans is not None else WaitCounts()

    def _give_plan(self) -> None:
        if self._plans is not None:
            self._plans.give()

    def _left_out(self, stopped: ViewStopped) -> list[OutGroup]:
        """Return the replacement of a group that cannot be kept, for a caller that only examines. Raises: ViewStopped."""
        self._tell(stopped)
        return self._skipped(stopped.stop.offset, stopped.stop.group_stop)

    def _skipped(self, start: int, stop: int) -> list[OutGroup]:
        group = self._groups.group(start, stop)
        self._rules.skipped(group)
        first, last = group.ends()
        empty = empty_transaction(last.timestamp, first.server_id)
        if self._own_gtids and first.type not in _REAL_GTIDS:
            return []
        found = self._rules.in_place_of(group, empty)
        if found is not None:
            return found
        if first.type in GTIDS and first.length >= HEADER_SIZE + codes.GTID_SIZE + self._source.trailer:
            pieces = [Copy(first.offset, first.offset + first.length), *empty.pieces]
            return [OutGroup(pieces, "source")]
        return [empty] if self._policy != codes.VIEW_KEEP else []

    def _mark(self, start: int) -> None:
        self._take_marks()
        if self._kernel is not None and not self._kernel.begin_part(start):
            return
        if self._last_mark < 0 or start - self._last_mark >= self._mark_gap:
            self._last_mark = start
            self.marks.append(self.checkpoint())

    def _mark_here(self) -> int:
        """Make a mark before the next group; return the offset from which on another is due."""
        self._state = None
        if self._last_mark != self._source.offset:
            self._mark(self._source.offset)
        return self._last_mark + max(1, self._mark_gap)

    def _take_marks(self) -> None:
        kernel = self._kernel
        count = kernel.take_marks() if kernel is not None else 0
        rows, width = self._mark_rows, codes.VIEW_MARK
        for row in range(0, count * width, width):
            self._last_mark = rows[row]
            self.marks.append(ViewCheckpoint(rows[row], rows[row + 1], rows[row + 2], rows[row + 3], self._known()))

    def _group_end(self, kernel: ViewCopy, start: int) -> int | None:
        """Return where the group at `start` ends, by its markers; None: it has no end, and was skipped."""
        source = self._source
        kernel.scan_begin()
        for data, lo, hi, base in source.pieces(start, source.end, lambda: kernel.consumed):
            status = kernel.scan(data, lo, hi, True)
            if status == codes.VIEW_GROUP:
                return base + kernel.group_stop
            if status == codes.VIEW_CUT:
                self._leave_out_unfinished(base + kernel.group_stop)
                return None
            if status != codes.VIEW_MORE:
                raise self._wrong(status, base + kernel.bad_at)
        self._leave_out_cut()
        return None

    def _leave_out_cut(self) -> None:
        """Leave out the next group, which has no end in the file. Raises: ArchiveDamaged where the source did not leave it so."""
        source = self._source
        if not self._ends_cut:
            what = f"the transaction at {source.offset} goes beyond the end of what was archived"
            raise source.damaged(source.offset, what)
        self._leave_out_unfinished(source.end)

    def _leave_out_unfinished(self, stop: int) -> None:
        """Replace the next group, which stops at `stop` without an end, by nothing. Raises: ViewStopped."""
        source = self._source
        start = source.offset
        at_end = stop == source.end
        # In a file that still grows it is unknown whether it has no end: a caller that examines one only wants whole groups.
        if start not in self._skips and (self._sealed or not at_end):
            is_followed = not at_end and source.kind_at(stop) not in ENDS_FILE
            try:
                self._rules.check_unfinished(self._groups.group(start, stop), is_followed=is_followed)
            except Untranslatable as error:
                self._tell(self._source.stopped(error.reason, start, stop))
            self._state = None
        self.cut_at = start
        source.drop(stop - start)

    def _check_went_on(self, length: int) -> None:
        """Check that the source was not restarted for this file, whose format description has `length` bytes. Raises: ViewStopped."""
        decided = FIRST_EVENT in self._skips
        try:
            self._rules.source_went_on(decided=decided)
        except Untranslatable as error:
            self._tell(self._source.stopped(error.reason, FIRST_EVENT, FIRST_EVENT + length))
            self._rules.source_went_on(decided=True)

    def _tell(self, stopped: ViewStopped) -> None:
        """Report the stop to a caller that only examines. Raises: ViewStopped where there is none."""
        if self.on_stop is None:
            raise stopped
        self.on_stop(stopped.stop)

    def _wrong(self, status: int, offset: int) -> Exception:
        if status == codes.VIEW_STRAY:
            return self._source.stopped(source_stops.boundary_violation())
        return self._source.wrong(status, offset)


def _as_it_is(kernel: ViewCopy, start: int, stop: int) -> OutGroup:
    """Return the group that was scanned, unchanged."""
    return OutGroup([Copy(start, stop)], "source" if kernel.group_head in GTIDS else "new")


def _raising(error: Exception) -> Iterator[None]:
    raise error
    yield
