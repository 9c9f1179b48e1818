"""The plans by which the kernel finds which transactions of one file wait for which."""

from collections.abc import Callable
from typing import Final

from protocol.dependencies.write_set_codes import SERIAL_LARGE
from protocol.kernel import codes
from protocol.views.view_copy import ViewCopy
from relay.view.translate.passed_tables import CountedTable, PassedTables
from relay.view.translate.source_window import SourceWindow
from relay.view.translate.wait_counts import CAUSES, TABLE, WaitCounts

_MOST_ASKED: Final = 100_000
"""The most times that plans are given for one group; no group has that many tables."""


class WaitPlans:
    """Gives the kernel the plans of the source's tables. `file` is the binlog's name, `number` its number; its Table_map events have
    `map_id_bytes` bytes of a table's id."""

    def __init__(
        self, kernel: ViewCopy, source: SourceWindow, tables: PassedTables, *, file: str, number: int, map_id_bytes: int
    ) -> None:
        self._kernel = kernel
        self._source = source
        self._tables = tables
        self._file = file
        self._number = number
        self._map_id_bytes = map_id_bytes
        self._asked = (-1, 0)
        """The offset of the group for which plans were requested last, and how often."""

    def give(self) -> None:
        """Give the kernel the plan of the table that it wants, or of all of them, for the next group."""
        kernel, tables = self._kernel, self._tables
        sets = kernel.waits and kernel.waits.sets
        if not sets:
            return
        offset = self._source.offset
        self._asked = (offset, self._asked[1] + 1 if self._asked[0] == offset else 1)
        if self._asked[1] > _MOST_ASKED:
            raise RuntimeError(f"{self._file}:{offset}: plans were given {_MOST_ASKED} times, and are not enough")
        if offset >= kernel.plans_until:
            sets.forget_plans()
            kernel.plans_until = tables.move_to((self._number, offset))
        elif sets.wanted < 0:
            sets.make_room()
        else:
            sets.add_plan(tables.plan(sets.wanted_map(), self._map_id_bytes))

    def take_counts(self) -> WaitCounts:
        """Return the counts since the last call."""
        waits = self._kernel.waits
        if waits is None:
            return WaitCounts()
        counts = WaitCounts(waits.groups, waits.beside, waits.batches)
        tables = self._tables.counted
        for number, cause, count in waits.take_counts():
            table = tables[number] if number < len(tables) else CountedTable("", "table_unknown")
            why = CAUSES[cause]
            counts.serial[table.why or "table_unknown" if why == TABLE else why, table.name] += count
        return counts


def take_rows(kernel: ViewCopy, source: SourceWindow, start: int, stop: int, give_plan: Callable[[], None]) -> None:
    """Take the changed rows of a group that is copied as it is, without room for the kernel to look at them by itself."""
    waits = kernel.waits
    if waits is None:
        return
    if waits.sets is None or stop - start > codes.VIEW_LARGEST_SET:
        waits.begin_serial(SERIAL_LARGE)
        return
    group = source.bytes_in(start, stop)
    while source.offset >= kernel.plans_until or kernel.take_group(group, 0, len(group)) == codes.VIEW_PLAN:
        give_plan()
