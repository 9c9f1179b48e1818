"""The decisions of the table filter: all kept, left-out and undecided statements are counted, the first of each kind are listed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from relay.export.filtered_transaction import FilteredStatement, FilteredTransaction

MOST_LISTED: Final = 1000
_MOST_TABLES: Final = 10_000


@dataclass(frozen=True, slots=True)
class ListedStatement:
    """A statement and the file that contains it."""

    file: str
    generation: int
    statement: FilteredStatement


@dataclass(slots=True)
class FilterReport:
    """The totals over all files. `counts` has statements by (fate, decided); `rows_kept` and `rows_left_out` count events with rows;
    `tables` are those with seen rows, at most 10,000."""

    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    listed: list[ListedStatement] = field(default_factory=list)
    tables: set[tuple[str, str]] = field(default_factory=set)
    rows_kept: int = 0
    rows_left_out: int = 0

    def take(self, file: str, generation: int, transaction: FilteredTransaction) -> None:
        """Count one transaction."""
        self.rows_kept += transaction.rows_kept
        self.rows_left_out += transaction.rows_left_out
        if transaction.tables and len(self.tables) < _MOST_TABLES:
            self.tables |= transaction.tables
        for statement in transaction.statements:
            kind = str(statement.fate), statement.decided
            self.counts[kind] += 1
            if self.counts[kind] <= MOST_LISTED:
                self.listed.append(ListedStatement(file, generation, statement))

    def count(self, fate: str, *, decided: bool) -> int:
        """Return how many statements had this fate."""
        return self.counts[str(fate), decided]
