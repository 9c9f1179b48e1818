"""The parts that a view of a MariaDB does not pass to its replicas, and those that it passes as statements: counted for people.

They are in the state of the view's rules at a place, so that the counts are exact whatever is rebuilt.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ACCOUNT: Final = "account"
SEQUENCE: Final = "sequence"
PART: Final = "part"
WORDS: Final = {
    ACCOUNT: "statements about accounts",
    SEQUENCE: "definitions or values of sequences",
    PART: "parts of definitions",
}
"""The description of each kind."""
_MOST_LISTED: Final = 50


@dataclass(slots=True)
class LeftOut:
    """`counts` are transactions in which something of each kind was left out. `newest` are the last ones: kind, file and offset at the
    source, and description. `by_statement` counts transactions whose rows replicas change by running the source's statements;
    `first_statement` is file and offset of the first one, "" and 0: there is none.
    """

    counts: Counter[str] = field(default_factory=Counter)
    newest: list[tuple[str, str, int, str]] = field(default_factory=list)
    by_statement: int = 0
    first_statement: tuple[str, int] = ("", 0)

    def add(self, found: Iterable[tuple[str, str]], file: str, offset: int) -> None:
        """Add the kinds of one transaction at this place, each with a description of what was left out."""
        kinds = set()
        for kind, what in found:
            kinds.add(kind)
            if kind != SEQUENCE:  # their values may be left out a million times
                self.newest.append((kind, file, offset, what))
        self.counts.update(kinds)
        del self.newest[:-_MOST_LISTED]

    def add_statement(self, file: str, offset: int) -> None:
        """Add a transaction whose statements change rows."""
        if not self.by_statement:
            self.first_statement = file, offset
        self.by_statement += 1

    def copy(self) -> "LeftOut":
        """Return a copy of the current counts."""
        return LeftOut(Counter(self.counts), list(self.newest), self.by_statement, self.first_statement)

    def state(self) -> bytes:
        """Return the state; b"": nothing was left out."""
        return json.dumps(self.record(), ensure_ascii=False).encode() if self.counts or self.by_statement else b""

    def restore(self, state: bytes) -> None:
        """Set everything to `state`. Raises: ValueError, KeyError, TypeError if it is no state."""
        made = LeftOut.of_record(json.loads(state)) if state else LeftOut()
        self.counts, self.newest = made.counts, made.newest
        self.by_statement, self.first_statement = made.by_statement, made.first_statement

    def told(self) -> str:
        """Return it as text; "": there is nothing to say."""
        parts = [f"{self.counts[kind]} with {words}" for kind, words in WORDS.items() if self.counts[kind]]
        text = f"left out of transactions: {', '.join(parts)}" if parts else ""
        if not self.by_statement:
            return text
        file, offset = self.first_statement
        statements = f"{self.by_statement} change rows by statements, the first at {file}:{offset}"
        return f"{text}; {statements}" if text else statements

    def record(self) -> dict[str, Any]:
        """Return it for JSON."""
        file, offset = self.first_statement
        return {
            "left_out": {kind: self.counts[kind] for kind in WORDS},
            "newest": [
                {"kind": kind, "file": file, "position": offset, "what": what}
                for kind, file, offset, what in self.newest
            ],
            "by_statement": self.by_statement,
            "first_statement": {"file": file, "position": offset} if self.by_statement else None,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "LeftOut":
        """Return the object of a result of `record`. Raises: KeyError, TypeError, ValueError."""
        made = cls(Counter({str(kind): int(count) for kind, count in record["left_out"].items() if count}))
        made.newest = [
            (str(one["kind"]), str(one["file"]), int(one["position"]), str(one["what"])) for one in record["newest"]
        ]
        made.by_statement = int(record["by_statement"])
        first = record["first_statement"]
        made.first_statement = (str(first["file"]), int(first["position"])) if first else ("", 0)
        return made
