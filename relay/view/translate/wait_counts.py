"""Counts of the transactions of a view that need not wait for the one before them, and of the reasons why the others do, by table."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from protocol.dependencies import write_set_codes as codes
from relay.archive.storage.files import VIEW_WAITS_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json

TABLE: Final = "table"
"""The cause that is replaced by the reason in the table's plan."""
CAUSES: Final = {
    codes.SERIAL_TABLE: TABLE,
    codes.SERIAL_CASCADE: "cascade",
    codes.SERIAL_VALUE: "values_missing",
    codes.SERIAL_LARGE: "large_transaction",
    codes.SERIAL_MALFORMED: "rows_not_read",
    codes.SERIAL_OTHER: "statement",
    codes.SERIAL_KEYLESS: "no_key",
    codes.SERIAL_COMPARED: "values_not_compared",
    codes.SERIAL_ROWS: "same_rows",
    codes.SERIAL_HISTORY: "history_full",
    codes.SERIAL_SOURCE: "not_looked_at",
}
"""The reasons why a transaction waits for the one before it."""
OF_PLANS: Final = (
    "table_unknown",
    "definition_differs",
    "engine",
    "rows_in_order",
    "foreign_keys_unknown",
    "too_many_keys",
)
"""The reasons why nothing may run in parallel with rows of a table, as in its plan (relay/view/dependencies/key_plans.py)."""
EVERY_CAUSE: Final = (
    *(why for code, why in CAUSES.items() if code not in (codes.SERIAL_TABLE, codes.SERIAL_SOURCE)),
    *OF_PLANS,
)
"""All causes in counts: where no rows are looked at, nothing is counted."""
_MOST_TOLD: Final = 1000
_SHOWN: Final = 4
_PERCENT: Final = 100


@dataclass(slots=True)
class WaitCounts:
    """`groups` counts transactions, `beside` those that need not wait for the one before them. In `batches` steps all could be done, if
    each does those that may run together. `serial` counts the others by cause and table ("" if it is about none)."""

    groups: int = 0
    beside: int = 0
    batches: int = 0
    serial: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def width(self) -> float:
        """The number of transactions that may run together, on average."""
        return self.groups / self.batches if self.batches else 0.0

    @property
    def share(self) -> float:
        """The share of transactions that need not wait for the one before them: 0 to 1."""
        return self.beside / self.groups if self.groups else 0.0

    def add(self, other: "WaitCounts") -> None:
        """Add the other counts. The number of causes and tables is limited; others are added to the cause without a table."""
        self.groups += other.groups
        self.beside += other.beside
        self.batches += other.batches
        for (why, table), count in other.serial.items():
            is_told = (why, table) in self.serial or len(self.serial) < _MOST_TOLD
            self.serial[why, table if is_told else ""] += count

    def by_cause(self) -> dict[str, int]:
        """Return how many wait for the one before them, by each of EVERY_CAUSE."""
        found = dict.fromkeys(EVERY_CAUSE, 0)
        for (why, _table), count in self.serial.items():
            found[why] = found.get(why, 0) + count
        return found

    def of_tables(self, most: int) -> list[tuple[str, str, int]]:
        """Return the most frequent of those that are about a table: cause, table, number."""
        found = [(why, table, count) for (why, table), count in self.serial.most_common() if table]
        return found[:most]

    def why_serial(self) -> str:
        """Return the most frequent causes as text; empty: there are none."""
        told = []
        for (why, table), count in self.serial.most_common(_SHOWN):
            share = _PERCENT * count / max(1, self.groups)
            told.append(f"{share:.1f} % {why}{f' {table}' if table else ''}")
        return ", ".join(told)

    def told(self) -> str:
        """Return all of it as text; empty: nothing was counted."""
        if not self.groups:
            return ""
        causes = self.why_serial()
        text = f"{_PERCENT * self.share:.1f} % beside the one before, {self.width:.1f} together on average"
        return f"{text}; one by one: {causes}" if causes else text

    def record(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "transactions": self.groups,
            "beside_the_one_before": self.beside,
            "batches": self.batches,
            "mean_width": round(self.width, 2),
            "serial": [
                {"why": why, "table": table or None, "transactions": count}
                for (why, table), count in self.serial.most_common()
            ],
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "WaitCounts":
        """Return the counts in a result of `record`. Raises: KeyError, TypeError, ValueError."""
        made = cls(int(record["transactions"]), int(record["beside_the_one_before"]), int(record["batches"]))
        for one in record["serial"]:
            made.serial[str(one["why"]), str(one["table"] or "")] = int(one["transactions"])
        return made


def keep_counts(view: Path, counts: WaitCounts, layer: FileLayer) -> None:
    """Store the counts for commands beside the process that builds the view, and for its next start. `view` is its directory. Blocking.

    Raises: OSError.
    """
    replace_file(layer, view / VIEW_WAITS_NAME, json.dumps(counts.record()).encode())


def kept_counts(view: Path) -> WaitCounts | None:
    """Return what was stored last; None: nothing, or content that cannot be understood. Blocking. Raises: OSError."""
    try:
        return WaitCounts.of_record(kept_json(read_file(view / VIEW_WAITS_NAME)))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
