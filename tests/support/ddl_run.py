"""Random definitions between random changes, on real servers, and every row image compared with what the server showed.

    python -m tests.support.ddl_run --histories 100 [--steps 120] [--seed 1] [--servers mysql56,mysql97,mariadb]

A history that differs is printed with its seed; run alone with --seed it is the same again.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.servers import SERVERS, Server
from relay.audit.decode.levels import ReadOptions, read_split
from relay.audit.plan.series_files import find_files
from relay.audit.plan.splits import plan
from relay.audit.plan.store import LocalStore
from relay.audit.plan.wanted import Wanted
from tests.support.ddl_histories import DdlHistory, TrueRow, differences

SPLIT_BYTES = 64 << 10
COLUMNS = ("file", "position", "schema", "table", "operation", "before", "after", "finding", "named")
OPTIONS = ("--binlog-format=ROW", "--character-set-server=latin1")


@dataclass
class Outcome:
    """What comparing found. `wrong`: rows that differ and whose names somebody told, or that have no finding."""

    rows: int = 0
    named: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Takes in another."""
        self.rows += other.rows
        self.named.update(other.named)
        self.findings.update(other.findings)
        self.wrong += other.wrong
        self.unnamed += other.unnamed

    def __str__(self) -> str:
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.named.items()))
        return f"{self.rows} rows, names: {told}; findings {dict(self.findings)}; wrong {len(self.wrong)}"


def rows_of(path: Path, prefix: str) -> list[dict[str, Any]]:
    """The changed rows of schemas that begin so, in order."""
    store = LocalStore()
    found: list[dict[str, Any]] = []
    for split in plan(store, find_files(store, str(path)), SPLIT_BYTES):
        for batch in read_split(store, split, ReadOptions("rows", COLUMNS, False), Wanted()):
            found += batch.to_pylist()
    # MariaDB's data directory has files with numbers that are no binlogs
    return [
        row
        for row in found
        if (row["schema"] is None and row["finding"] != "not_a_binlog") or (row["schema"] or "").startswith(prefix)
    ]


def compare(true: Sequence[TrueRow], rows: Sequence[dict[str, Any]], *, prefix_only: bool = False) -> Outcome:
    """Holds what was read against what the server showed. `prefix_only`: more may have been shown than is read yet."""
    outcome = Outcome(rows=len(rows))
    if len(rows) != len(true) and not (prefix_only and len(rows) < len(true)):
        outcome.wrong.append(f"{len(rows)} rows were read, {len(true)} were changed")
    for one, row in zip(true, rows, strict=False):
        outcome.named[str(row["named"])] += 1
        if row["finding"]:
            outcome.findings[row["finding"]] += 1
        place = f"{row['file']}:{row['position']} {row['schema']}.{row['table']} (statement {one.definition}, {row['named']})"
        if row["named"] == "none":
            outcome.unnamed.append(place)
            if not row["finding"]:
                outcome.wrong += [f"{place}: {text}" for text in _by_number(one, row)]
            continue
        if not row["finding"]:
            outcome.wrong += [f"{place}: {text}" for text in differences(one, row)]
    return outcome


def _by_number(true: TrueRow, row: dict[str, Any]) -> list[str]:
    """How an unnamed row without a finding differs, where @N is the Nth column; ENUM and SET are numbers then."""
    numbered = {f"@{number + 1}": column for number, column in enumerate(true.columns)}
    named = dict(row)
    for image in ("before", "after"):
        if row[image] is not None:
            named[image] = row[image]
            for at, column in sorted(numbered.items(), key=lambda item: -len(item[0])):
                named[image] = named[image].replace(f'"{at}":', f'"{_json_name(column.name)}":')
    return [text for text in differences(true, named) if " enum(" not in text and " set(" not in text]


def _json_name(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def run_history(server: Server, seed: int, steps: int) -> DdlHistory:
    """One history, from its first statement to its last, without pauses."""
    history = DdlHistory(server, seed)
    history.open()
    try:
        history.begin()
        for _ in history.go_on(steps):
            pass
    finally:
        history.close()
    return history


def main() -> int:
    """Runs histories; 1 where a value was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", default="mysql56,mysql97,mariadb")
    parser.add_argument("--show", type=int, default=5, help="differences that are shown of a history")
    options = parser.parse_args()
    failed = False
    for name in options.servers.split(","):
        total = Outcome()
        with SERVERS[name]() as server:
            server.start(server_id=1, options=OPTIONS)
            for seed in range(options.seed, options.seed + options.histories):
                history = run_history(server, seed, options.steps)
                outcome = compare(history.rows, rows_of(server.binlogs()[0].parent, f"h{seed}_"))
                total.add(outcome)
                if outcome.wrong or outcome.unnamed:
                    print(
                        f"{name} seed {seed}: {outcome}",
                        *outcome.wrong[: options.show],
                        *outcome.unnamed[: options.show],
                        sep="\n  ",
                    )
                    if options.histories == 1:
                        print(*(f"{number:4} {text}" for number, text in enumerate(history.statements)), sep="\n")
                server.sql("FLUSH BINARY LOGS")
        print(f"{name}: {total}", flush=True)
        failed = failed or bool(total.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
