"""A table without a key that both servers have: count and checksum of all rows, then which rows one side has more of."""

from collections.abc import Iterator
from typing import Final

from relay.compare.rows.differences import Difference, TableOutcome, What
from relay.compare.rows.table_side import TableSide
from relay.compare.rows.table_walk import Compared

_MOST_GROUPS: Final = 1_000_000


class KeylessTable:
    """The comparison of one such table."""

    def __init__(self, sides: tuple[TableSide, TableSide], use: Compared, outcome: TableOutcome) -> None:
        self._source, self._target = sides
        self._use = use
        self.outcome = outcome
        outcome.by_key = False

    def run(self) -> None:
        """Compare it. Raises: CompareStop."""
        use = self._use
        count, checksum = self._source.whole_checksum(use.source)
        self.outcome.rows = count
        use.place.reach(use.source.end())
        if self._target.whole_checksum(use.target) == (count, checksum):
            use.brake.after(count)
            return
        settled = use.rounds.settle(
            [self.outcome.table],
            lambda names: [self._source.whole_checksum(use.source) for _ in names],
            lambda names: [self._target.whole_checksum(use.target) for _ in names],
        )
        for name in settled.unsettled:
            self.outcome.count("unsettled")
            use.findings.found(Difference("table", name, "unsettled"))
        if settled.different:
            self._find_rows()
        use.brake.after(count)

    def _find_rows(self) -> None:
        """Find which rows are missing, and which are too many."""
        use = self._use
        pending: list[tuple[str, int]] = []
        source, target = self._source.grouped(use.source), self._target.grouped(use.target)
        for number, (hashed, ours, theirs) in enumerate(_together(source, target)):
            if ours != theirs:
                pending.append((hashed, ours - theirs))
            total = self.outcome.missing + self.outcome.extra + len(pending)
            if total >= use.most_differences or number >= _MOST_GROUPS:
                self.outcome.cut = True
                break
        for one in (source, target):  # else the rest of an answer would be in the way of the next question
            for _row in one:
                pass
        for hashed, more in pending:
            side, server = (self._source, use.source) if more > 0 else (self._target, use.target)
            values = side.values_by_hash(server, hashed)
            if values is None:
                continue
            what: What = "missing" if more > 0 else "extra"
            self.outcome.count(what, abs(more))
            key = side.told(values)
            use.findings.found(Difference("row", self.outcome.table, what, key, copies=abs(more)))
            use.script.keyless(self._target, hashed, more, values)


def _together(source: Iterator[tuple[str, int]], target: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int, int]]:
    """Yield each checksum with its number at both sides; both come in ascending order."""
    one, other = next(source, None), next(target, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield one[0], one[1], 0
            one = next(source, None)
        elif one is None or other[0] < one[0]:
            yield other[0], 0, other[1]
            other = next(target, None)
        else:
            yield one[0], one[1], other[1]
            one, other = next(source, None), next(target, None)
