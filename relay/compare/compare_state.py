"""The state of a comparison in a file, so that an interrupted one goes on. It contains keys of rows, and no account."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from relay.compare.rows.differences import TableOutcome
from relay.compare.rows.key_ranges import Key
from relay.compare.servers.compare_stop import CompareStop
from relay.disk.file_calls import read_file, remove_file, write_named_text

_FORMAT: Final = 1
_WRITTEN_EVERY_S: Final = 2.0


@dataclass(slots=True)
class TableState:
    """How far a table is compared: up to the key `after`."""

    after: Key | None = None
    done: bool = False
    outcome: TableOutcome | None = None


@dataclass(slots=True)
class CompareState:
    """The state; without a path it is not written. `servers` identify what is compared."""

    path: Path | None
    servers: Sequence[str]
    tables: dict[str, TableState] = field(default_factory=dict)
    definitions_done: bool = False
    different: int = 0
    unknown: int = 0
    goes_on: bool = False
    _written: float = 0.0

    @classmethod
    def opened(cls, path: Path | None, servers: Sequence[str]) -> Self:
        """Return the state of an interrupted comparison of the same servers, else an empty one. Raises: CompareStop; OSError."""
        state = cls(path, servers)
        if path is None or not path.exists():
            return state
        wrong = f"{path} is no state of this comparison"
        advice = "Name another file with --state, or remove this one to begin from the start."
        try:
            kept = json.loads(read_file(path))
            if kept["format"] != _FORMAT or kept["servers"] != list(servers):
                raise CompareStop(f"{wrong}: it is of {', '.join(kept['servers'])}", advice)
            for name, one in kept["tables"].items():
                after = None if one["after"] is None else tuple(map(_value, one["after"]))
                outcome = None if one["outcome"] is None else TableOutcome(**one["outcome"])
                state.tables[name] = TableState(after, one["done"], outcome)
            state.definitions_done = bool(kept["definitions_done"])
            state.different, state.unknown = int(kept["different"]), int(kept["unknown"])
        except (ValueError, LookupError, TypeError, AttributeError):
            raise CompareStop(wrong, advice) from None
        state.goes_on = True
        return state

    def of(self, table: str) -> TableState:
        """Return the state of a table."""
        return self.tables.setdefault(table, TableState())

    @property
    def is_due(self) -> bool:
        """True if it has not been written for some time."""
        return self.path is not None and time.monotonic() - self._written >= _WRITTEN_EVERY_S

    def write(self) -> None:
        """Write it, in place of the former one. Raises: OSError."""
        if self.path is None:
            return
        text = json.dumps(
            {
                "format": _FORMAT,
                "servers": list(self.servers),
                "definitions_done": self.definitions_done,
                "different": self.different,
                "unknown": self.unknown,
                "tables": {name: _record(one) for name, one in self.tables.items()},
            }
        )
        new = self.path.with_name(f".{self.path.name}.new")
        write_named_text(new, text + "\n")
        new.replace(self.path)
        self._written = time.monotonic()

    def forget(self) -> None:
        """Remove the file of a comparison that is done: the next one begins from the start."""
        if self.path is not None:
            remove_file(self.path)


def _record(one: TableState) -> Mapping[str, Any]:
    after = None if one.after is None else [_kept(value) for value in one.after]
    return {"after": after, "done": one.done, "outcome": None if one.outcome is None else asdict(one.outcome)}


def _kept(value: Any) -> Any:
    return {"number": str(value)} if isinstance(value, Decimal) else value


def _value(kept: Any) -> Any:
    return Decimal(kept["number"]) if isinstance(kept, dict) else kept
