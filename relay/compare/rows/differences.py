"""What a comparison finds, and where it goes: lines for people or JSON, and the state of an interrupted run."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from protocol.printable import printable

_MOST_SHOWN: Final = 20
_LONGEST_VALUE: Final = 120
What = Literal["different", "missing", "extra", "unsettled"]
WORDS: Final = {
    "different": "differs",
    "missing": "is missing at the new server",
    "extra": "is only at the new server",
    "unsettled": "changed at every look: not known",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs. `kind` is row, table, column, key, trigger, and so on; `name` is the object's, `key` that of a row.

    `values` has what differs: by name, the source's and the new server's.
    """

    kind: str
    name: str
    what: What
    key: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    copies: int = 1
    """How many equal rows, in a table without a key."""

    def line(self) -> str:
        """Return it for people."""
        key = ", ".join(f"{name} = {_shown(value)}" for name, value in self.key.items())
        copies = f" ({self.copies} times)" if self.copies > 1 else ""
        what = f"{self.kind} {self.name}{f' [{key}]' if key else ''} {WORDS[self.what]}{copies}"
        values = "; ".join(
            f"{name}: {_shown(one)} at the source, {_shown(other)} at the new server"
            for name, (one, other) in self.values.items()
        )
        return f"{what}: {values}" if values else what


@dataclass(slots=True)
class TableOutcome:
    """What became of one table."""

    table: str
    rows: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0
    unsettled: int = 0
    cut: bool = False
    """Too many differences: the rest was not looked at."""
    by_key: bool = True

    @property
    def verdict(self) -> str:
        """equal, different, or unknown."""
        if self.different or self.missing or self.extra:
            return "different"
        return "unknown" if self.unsettled else "equal"

    def count(self, what: What, copies: int = 1) -> None:
        """Count a row."""
        setattr(self, what, getattr(self, what) + copies)

    def line(self) -> str:
        """Return it for people."""
        kind = "" if self.by_key else ", as a whole: it has no key"
        if self.verdict == "equal":
            return f"{self.table}: equal, {self.rows} rows{kind}"
        counts = f"{self.different} rows differ, {self.missing} are missing, {self.extra} too many"
        open_rows = f", {self.unsettled} changed at every look" if self.unsettled else ""
        cut = "; the rest was not looked at" if self.cut else ""
        return f"{self.table}: {self.verdict.upper()}, of {self.rows} rows {counts}{open_rows}{cut}{kind}"


class Differences:
    """All of it. Lines go to the standard output as they are found."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._shown: Counter[str] = Counter()
        self.different = 0
        self.unknown = 0

    def found(self, difference: Difference) -> None:
        """Take a difference."""
        if difference.what == "unsettled":
            self.unknown += 1
        else:
            self.different += 1
        if self._as_json:
            self._write(json.dumps({"difference": asdict(difference)}, ensure_ascii=False, default=str))
            return
        of = difference.name
        self._shown[of] += 1
        if self._shown[of] <= _MOST_SHOWN:
            self._write(f"  {difference.line()}")
        elif self._shown[of] == _MOST_SHOWN + 1:
            self._write(f"  ... more of {of}: all are in --json and in --script")

    def table_done(self, outcome: TableOutcome, at: str) -> None:
        """Take the outcome of a table; `at` is the place of the source that the replica had then."""
        if self._as_json:
            record = {**asdict(outcome), "verdict": outcome.verdict, "at": at}
            self._write(json.dumps({"table": record}, ensure_ascii=False))
        else:
            self._write(outcome.line())

    def note(self, text: str) -> None:
        """Tell something that is no difference."""
        self._write(json.dumps({"note": text}, ensure_ascii=False) if self._as_json else f"  note: {text}")

    def summary(self, tables: int, rows: int, seconds: float, at: str) -> None:
        """Tell the end."""
        if self._as_json:
            record = {"tables": tables, "rows": rows, "seconds": round(seconds, 1), "at": at, "verdict": self.verdict}
            self._write(json.dumps({"summary": record | {"different": self.different, "unknown": self.unknown}}))
            return
        verdict = {
            "equal": "The new server has what the source has",
            "different": f"DIFFERENT: {self.different} differences",
            "unknown": f"NOT KNOWN: {self.unknown} changed at every look, nothing is proven to differ",
        }[self.verdict]
        self._write(f"{verdict}: {tables} tables, {rows} rows, up to {at} of the source, in {seconds:.1f} s.")

    @property
    def verdict(self) -> str:
        """equal, different, or unknown."""
        return "different" if self.different else "unknown" if self.unknown else "equal"

    @staticmethod
    def _write(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _shown(value: Any) -> str:
    return printable(repr(value) if isinstance(value, str) else str(value), _LONGEST_VALUE)
