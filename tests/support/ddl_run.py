"""Random definitions between random changes, on real servers, and every row image compared with what the server showed.

    python -m tests.support.ddl_run --histories 100 [--steps 120] [--seed 1] [--servers mysql56,mysql97,mariadb] [--relay]

A history that differs is printed with its seed; a run of it alone with --seed repeats it.
"""

import argparse
import contextlib
import functools
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.servers import SERVERS, Server
from protocol.sql.tables.source_table import Column, Table
from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.plan.series_files import NothingToRead, find_files
from relay.binlog_tables.plan.splits import plan
from relay.binlog_tables.plan.store import LocalStore
from relay.binlog_tables.plan.wanted import Wanted
from relay.schema_history.table_agreement import tables_agree
from tests.support.ddl_histories import DdlHistory, TrueRow, differences, true_tables
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

SPLIT_BYTES = 64 << 10
COLUMNS = ("file", "position", "schema", "table", "operation", "before", "after", "finding", "named")
OPTIONS = ("--binlog-format=ROW", "--character-set-server=latin1")


@dataclass
class Outcome:
    """The result of a comparison. `wrong` are rows that differ and whose names are known, or that have no finding."""

    rows: int = 0
    named: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    tables: int = 0
    unknown_tables: int = 0
    other_keys: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Add another result."""
        self.rows += other.rows
        self.named.update(other.named)
        self.findings.update(other.findings)
        self.wrong += other.wrong
        self.unnamed += other.unnamed
        self.tables += other.tables
        self.unknown_tables += other.unknown_tables
        self.other_keys += other.other_keys

    def __str__(self) -> str:
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.named.items()))
        return (
            f"{self.rows} rows, names: {told}; findings {dict(self.findings)}; {self.tables} tables compared, "
            f"{self.unknown_tables} not known, {len(self.other_keys)} with other keys; wrong {len(self.wrong)}"
        )


def rows_of(path: Path, prefix: str, first_file: str) -> list[dict[str, Any]]:
    """Return the changed rows of the schemas with this prefix in the binlogs from one on, in order."""
    store = LocalStore()
    found: list[dict[str, Any]] = []
    files = [
        file
        for file in find_files(store, str(path))
        if file.name >= first_file and file.name.startswith(first_file[:-6])
    ]
    for split in plan(store, files, SPLIT_BYTES):
        for batch in read_split(store, split, ReadOptions("rows", COLUMNS, False), Wanted()):
            found += batch.to_pylist()
    return [row for row in found if row["schema"] is None or row["schema"].startswith(prefix)]


def compare(true: Sequence[TrueRow], rows: Sequence[dict[str, Any]], *, prefix_only: bool = False) -> Outcome:
    """Compare what was read with what the server showed. With `prefix_only` more may have been shown than is read yet."""
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
    """Return how an unnamed row without a finding differs, where @N is the Nth column; ENUM and SET are numbers then."""
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


def compare_tables(server: Server, directory: Path, prefix: str) -> Outcome:
    """Compare what the statements in a directory's binlogs say at their end with information_schema."""
    end = server.master_status()
    schema = reported_schema(LocalStore(), str(directory), end.file, end.position)
    outcome = Outcome()
    for (name, table), true in true_tables(server, prefix).items():
        found = schema.worked_out(name, table, end.file, end.position - 1)
        if found is None:
            outcome.unknown_tables += 1
            continue
        outcome.tables += 1
        asked = Table(name, table, columns=tuple(Column(one.name, one.type, one.charset or "") for one in true.columns))
        if not tables_agree(found, asked):
            outcome.wrong.append(f"{name}.{table} is worked out as {found.columns}, and has {true.columns}")
        keys = {(index, key.unique): list(key.columns) for index, key in found.keys}
        if keys != true.keys:
            outcome.other_keys.append(f"{name}.{table} has the keys {true.keys}, not {keys}")
    return outcome


def begun_history(server: Server, seed: int) -> tuple[DdlHistory, str]:
    """Return a history that has its schemas, and the binlog that it begins in."""
    server.sql("FLUSH BINARY LOGS")
    history = DdlHistory(server, seed)
    history.open()
    first = server.master_status().file
    history.begin()
    return history, first


def plain_directory(server: Server, seed: int, steps: int) -> tuple[DdlHistory, Outcome]:
    """Return a history whose binlogs are read where the server wrote them."""
    history, first = begun_history(server, seed)
    try:
        for _ in history.go_on(steps):
            pass
    finally:
        history.close()
    directory = server.binlogs()[0].parent
    outcome = compare(history.rows, rows_of(directory, f"h{seed}_", first))
    outcome.add(compare_tables(server, directory, f"h{seed}_"))
    return history, outcome


class RelayedHistories:
    """Histories that are read from the archive of a relay: an existing one, one that comes later, one that is killed."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        server.sql(f"GRANT REFERENCES ON *.* TO '{server.replication_user}'@'%'")
        self.relay = RelayProcess(directory, server, port=free_port(), sections={"source": {"record_schema": True}})

    def run(self, seed: int, steps: int) -> tuple[DdlHistory, Outcome]:
        """Run one history; its seed selects one of the three."""
        way = seed % 3
        chance = random.Random(seed)
        if way == 1 and self.relay.running:
            self.relay.kill()
        if way != 1 and not self.relay.running:
            self.relay.start()
        outcome = Outcome()
        history, first = begun_history(self.server, seed)
        try:
            for step, _ in enumerate(history.go_on(steps)):
                if way == 0 and chance.random() < 0.05 and step:
                    outcome.add(self.at_the_edge(history, seed, first))
                if way == 2 and chance.random() < 0.04:
                    self.relay.kill()
                if way == 2 and not self.relay.running and chance.random() < 0.2:
                    self.relay.start()
        finally:
            history.close()
        if not self.relay.running:
            self.relay.start()
        end = self.server.master_status()
        self.relay.wait_archived(end.file, end.position)
        outcome.add(compare(history.rows, rows_of(self.relay.archive, f"h{seed}_", first)))
        outcome.add(compare_tables(self.server, self.relay.archive, f"h{seed}_"))
        return history, outcome

    def at_the_edge(self, history: DdlHistory, seed: int, first: str) -> Outcome:
        """Return what can be read at this moment."""
        try:
            read = rows_of(self.relay.archive, f"h{seed}_", first)
        except NothingToRead:
            return Outcome()
        return compare(history.rows, read, prefix_only=True)


@contextlib.contextmanager
def relayed_histories(server: Server) -> Iterator[RelayedHistories]:
    """Yield histories with their own directory and relay."""
    with tempfile.TemporaryDirectory() as directory:
        made = RelayedHistories(server, Path(directory) / "relay")
        try:
            yield made
        finally:
            if made.relay.running:
                made.relay.kill()


def main() -> int:
    """Run histories; return 1 if a value was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", default="mysql56,mysql97,mariadb")
    parser.add_argument("--relay", action="store_true", help="through a relay: live, from its backlog, and killed")
    parser.add_argument("--show", type=int, default=5, help="differences that are shown of a history")
    options = parser.parse_args()
    failed = False
    for name in options.servers.split(","):
        total = Outcome()
        with contextlib.ExitStack() as made:
            server = made.enter_context(SERVERS[name]())
            server.start(server_id=1, options=OPTIONS)
            relayed = made.enter_context(relayed_histories(server)) if options.relay else None
            for seed in range(options.seed, options.seed + options.histories):
                run = relayed.run if relayed is not None else functools.partial(plain_directory, server)
                history, outcome = run(seed, options.steps)
                total.add(outcome)
                if outcome.wrong or outcome.unnamed or outcome.other_keys:
                    print(
                        f"{name} seed {seed}: {outcome}",
                        *outcome.wrong[: options.show],
                        *outcome.unnamed[: options.show],
                        *outcome.other_keys[: options.show],
                        sep="\n  ",
                    )
                    if options.histories == 1:
                        print(*(f"{number:4} {text}" for number, text in enumerate(history.statements)), sep="\n")
        print(f"{name}: {total}", flush=True)
        failed = failed or bool(total.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
