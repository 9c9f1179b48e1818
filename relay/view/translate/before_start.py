"""The part of a file before a view's start in it: it contains no transactions of the view, but GTIDs and tables that it needs.

It is read once, so that a start inside a transaction is detected, and earlier GTIDs and tables are known.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import RelayError
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes
from protocol.views.view_copy import ViewCopy
from relay.view.rules.group import GroupRules, SourceGroup
from relay.view.stops.stop_reason import Untranslatable
from relay.view.translate.source_groups import ReadInto

_PIECE_BYTES: Final = 1 << 20


class StartInside(RelayError):
    """The start is inside a transaction or an event. `before` and `after` are the nearest boundaries; `after` None: not known yet."""

    def __init__(self, before: int, after: int | None) -> None:
        super().__init__()
        self.before = before
        self.after = after


class GroupUnreadable(RelayError):
    """The bytes at `offset` cannot be read. `status` is that of the kernel's scan; VIEW_MORE: the file ends there."""

    offset: int

    def __init__(self, status: int, offset: int) -> None:
        super().__init__(offset=offset)
        self.status = status


class GroupsGiven(Protocol):
    """Gives groups of the file to rules."""

    def group(self, start: int, stop: int) -> SourceGroup:
        """Return the group in [start, stop). Raises: OSError; ArchiveDamaged."""


class PassedFile(NamedTuple):
    """The source's file, up to `end`, a place between two groups. `skips` is as for `FileTranslation`."""

    read_into: ReadInto
    groups: GroupsGiven
    end: int
    checksum: bool
    skips: Mapping[int, int]


class BeforeStart:
    """Reads one file. Blocking; the kernel and the rules are those of the translation."""

    def __init__(self, file: PassedFile, kernel: ViewCopy, rules: GroupRules, flavour: str = "mysql") -> None:
        self._file = file
        self._kernel = kernel
        self._rules = rules
        self._flavour = flavour

    def learn(self, begin: int, start: int) -> GtidSet:
        """Read from `begin`, after the format description, up to `start`; return the source's GTIDs up to there, with those before the
        file. Afterwards the rules know the definitions up to there, those of a MariaDB source also the GTIDs.

        Raises: StartInside; GroupUnreadable; OSError; ArchiveDamaged; Malformed for GTIDs.
        """
        if start < begin:
            raise StartInside(FIRST_EVENT, begin)
        at = begin
        for stop, look in self._ends(begin) if start > begin else ():
            if stop > start:
                raise StartInside(at, stop)
            if look:
                self._learn_group(at, stop)
            at = stop
            if at == start:
                break
        if at < start < self._file.end:
            raise StartInside(at, None)
        return self._gtids(start) if self._flavour == "mysql" else GtidSet()

    def _learn_group(self, start: int, stop: int) -> None:
        """Learn from a group as where the view has it: the rules know the same after it."""
        group = self._file.groups.group(start, stop)
        if start not in self._file.skips and not self._kernel.group_damaged:
            with suppress(Untranslatable):
                self._rules.plan(group)
                return
        self._rules.skipped(group)

    def _ends(self, begin: int) -> Iterator[tuple[int, bool]]:
        """Yield where each group, or each event between two, ends, and whether rules look at it."""
        kernel, file = self._kernel, self._file
        piece = bytearray(_PIECE_BYTES)
        view = memoryview(piece)
        at, lo, hi = begin, 0, 0
        kernel.scan_begin()
        while True:
            status = kernel.scan(piece, lo, hi, True)
            base = at - hi
            if status == codes.VIEW_GROUP:
                yield base + kernel.group_stop, kernel.group_look
                lo = kernel.group_stop
                kernel.scan_begin()
            elif status == codes.VIEW_CUT:
                yield base + kernel.group_stop, False
                at, lo, hi = base + kernel.group_stop, 0, 0
                kernel.scan_begin()
            elif status == codes.VIEW_MORE:
                left = hi - kernel.consumed
                view[:left] = bytes(view[kernel.consumed : hi])
                count = min(len(view) - left, file.end - at)
                if count <= 0:
                    return
                got = file.read_into(view[left : left + count], at)
                if not got:
                    raise GroupUnreadable(codes.VIEW_MORE, at)
                at, lo, hi = at + got, 0, left + got
            else:
                raise GroupUnreadable(status, base + kernel.bad_at)

    def _gtids(self, start: int) -> GtidSet:
        collector = FileGtidCollector("mysql", checksum=self._file.checksum)
        view = memoryview(bytearray(_PIECE_BYTES))
        at = FIRST_EVENT
        while at < start:
            got = self._file.read_into(view[: min(len(view), start - at)], at)
            if not got:
                raise GroupUnreadable(codes.VIEW_MORE, at)
            collector.take(view[:got])
            at += got
        before, inside = collector.before, collector.inside()
        held = before if isinstance(before, GtidSet) else GtidSet()
        return held | inside if isinstance(inside, GtidSet) else held
