"""Random histories on real servers, fed through a relay while it and the feed are killed, and every table compared with the source.

    python -m tests.support.feed_run --histories 100 [--steps 80] [--seed 1] [--servers mysql56,mysql97,mariadb] [--format delta]

The tables of each history are compared at its end, and at positions in between by time travel. A feed that stops by name (a definition
that cannot be followed) is counted, and goes on with the table left out. A history that differs is printed with its seed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from deploy.servers import SERVERS, Server
from relay.feed.feed_config import FeedSection, load_feed_config
from relay.feed.feed_run import open_connection, open_lake
from relay.feed.lake.iceberg_lake import IcebergLakeTable
from relay.feed.lake.lake_table import STALE_FROM
from tests.support.feed_histories import FeedHistory, document_columns, lake_rows, true_rows
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

OPTIONS = ("--binlog-format=ROW", "--character-set-server=latin1")
MARKS = 5


@dataclass
class FeedOutcome:
    """The result of a comparison."""

    histories: int = 0
    tables: int = 0
    rows: int = 0
    travelled: int = 0
    kills: int = 0
    stops: Counter[str] = field(default_factory=Counter)
    stale: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.histories} histories: {self.tables} tables with {self.rows} rows compared, {self.travelled} by time travel, "
            f"{self.kills} kills, {self.stale} stale, stops {dict(self.stops)}; wrong {len(self.wrong)}"
        )


class FeedProcess:
    """The process `binlog-relay feed` of one feed.toml."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self._process: subprocess.Popen[bytes] | None = None
        self.log = config.with_suffix(".log")

    def start(self) -> None:
        """Follow until it is killed."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "relay", "feed", "--config", str(self.config)], stderr=log, stdout=log
            )

    @property
    def running(self) -> bool:
        """True if it has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it at any moment."""
        if self._process is not None:
            if self._process.poll() is None:
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def once(self) -> subprocess.CompletedProcess[str]:
        """Run up to the current end."""
        return subprocess.run(
            [sys.executable, "-m", "relay", "feed", "--config", str(self.config), "--once"],
            capture_output=True,
            text=True,
            timeout=300,
        )


class FedHistory:
    """One history, with its feed and its relay."""

    def __init__(self, server: Server, relay: RelayProcess, directory: Path, seed: int, format: str = "delta") -> None:
        self.server = server
        self.relay = relay
        self.chance = random.Random(seed * 7919)
        self.history = FeedHistory(server, seed)
        self.excluded: list[str] = []
        self.config = directory / f"feed{seed}.toml"
        self.target = directory / f"lake{seed}"
        self.format = format
        # For half of them every batch is on disk, and reaches the lake in pieces.
        self.spools = seed % 2 == 1
        self.outcome = FeedOutcome(1)
        self.feed = FeedProcess(self.config)
        self.marks: list[tuple[str, int, dict[str, int], set[str], list[str], Any]] = []
        self._write()

    def _write(self) -> None:
        self.config.write_text(
            f'[feed]\narchive = "{self.relay.archive}"\ntarget = "{self.target}"\nformat = "{self.format}"\n'
            f'tables = ["{self.history.schema}.*"]\nexclude = {self.excluded!r}\ninterval_s = 0.1\nbatch_mb = 1\n'
            f'trusted_images = ["{self.history.schema}.*"]\n'.replace("'", '"')
            + (f'spool_above_kb = 1\nspool_directory = "{self.config.parent}"\n' if self.spools else "")
        )

    def section(self) -> FeedSection:
        """Return its settings."""
        return load_feed_config(self.config)

    def run(self, steps: int, marks: int = MARKS) -> FeedOutcome:
        """Run all of it."""
        self.history.begin()
        at = sorted(self.chance.sample(range(5, steps), marks)) if marks else []
        try:
            for step in self.history.steps(steps):
                if step in at:
                    self.mark()
                elif not self.feed.running and self.chance.random() < 0.3:
                    self.feed.start()
                elif self.feed.running and self.chance.random() < 0.1:
                    time.sleep(self.chance.random() * 1.5)
                    self.feed.kill()
                    self.outcome.kills += 1
                if self.chance.random() < 0.02:
                    self.relay.kill()
                    self.outcome.kills += 1
                    self.relay.start()
            self.mark()
            self.compare()
        finally:
            self.feed.kill()
            self.history.close()
        return self.outcome

    def mark(self) -> None:
        """Feed everything so far into the lake, and record the source's tables."""
        self.feed.kill()
        end = self.server.master_status()
        self.relay.wait_archived(end.file, end.position)
        while True:
            done = self.feed.once()
            if done.returncode == 0:
                break
            name = done.stderr.strip().splitlines()[-1].partition(":")[0] if done.stderr.strip() else "?"
            table = done.stderr.partition(" table ")[2].partition(". ")[0]
            if done.returncode != 1 or not table or table in self.excluded:
                self.outcome.wrong.append(f"the feed ended with {done.returncode}: {done.stderr[-1500:]}")
                return
            self.outcome.stops[name] += 1
            self.excluded.append(table)
            self._write()
        lake = self.lake()
        for name in self.history.tables:
            if f"{self.history.schema}.{name}" in self.excluded:
                continue
            found = lake.open("current", self.history.schema, name)
            if found is not None and found.properties.get(STALE_FROM):
                self.outcome.stale += 1
            elif found is not None:
                documents = document_columns(self.server, self.history.schema, name)
                shown = true_rows(self.server, self.history.schema, name)
                self.marks.append((name, found.version, _column_ids(found), documents, *shown))

    def lake(self) -> Any:
        """Return its lake."""
        section = self.section()
        return open_lake(section, open_connection(section))

    def compare(self) -> None:
        """Compare every marked table as it was then, by time travel, with what the source showed."""
        lake = self.lake()
        for name, version, ids, documents, columns, rows in self.marks:
            table = lake.open("current", self.history.schema, name)
            if table.properties.get(STALE_FROM):
                self.outcome.stale += 1
                continue
            with table.scan(version=version) as reader:
                found = reader.read_all()
            # Iceberg shows a snapshot with the columns of its time, and a RENAME makes none.
            before = {number: one for one, number in _column_ids(table, version).items()}
            found = found.rename_columns({before[number]: one for one, number in ids.items() if number in before})
            for one in columns:
                if one not in found.column_names:
                    # Nor does a column without values.
                    found = found.append_column(one, pa.nulls(found.num_rows))
            kept = lake_rows(found, columns, documents)
            self.outcome.tables += 1
            self.outcome.rows += len(rows)
            self.outcome.travelled += version != table.version
            if kept != rows:
                more = [one for one in kept if one not in rows][:3]
                less = [one for one in rows if one not in kept][:3]
                self.outcome.wrong.append(
                    f"{name} at version {version}: {columns}\n    lake  {more}\n    source {less}"
                )


def _column_ids(table: Any, version: int | None = None) -> dict[str, int]:
    """Return Iceberg's numbers of the columns as they are, or of a snapshot; for Delta none."""
    if not isinstance(table, IcebergLakeTable):
        return {}
    of = table._table
    snapshot = of.snapshot_by_id(version) if version else None
    schema = of.schema() if snapshot is None or snapshot.schema_id is None else of.schemas()[snapshot.schema_id]
    return {one.name: one.field_id for one in schema.fields}


def run_histories(
    server: Server, directory: Path, seeds: range, steps: int, format: str = "delta", marks: int = MARKS
) -> FeedOutcome:
    """Run histories of one server, one after the other."""
    total = FeedOutcome()
    relay = RelayProcess(directory / "relay", server, port=free_port())
    with relay:
        for seed in seeds:
            fed = FedHistory(server, relay, directory, seed, format)
            outcome = fed.run(steps, marks)
            for name in ("histories", "tables", "rows", "travelled", "kills", "stale"):
                setattr(total, name, getattr(total, name) + getattr(outcome, name))
            total.stops += outcome.stops
            total.wrong += [f"seed {seed}: {one}" for one in outcome.wrong]
            if outcome.wrong:
                (directory / f"history{seed}.sql").write_text(";\n".join(fed.history.sql))
    return total


def main() -> int:
    """Run histories; return 1 if a table differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", default="mysql56,mysql97,mariadb")
    parser.add_argument("--format", default="delta", choices=("delta", "iceberg"))
    parser.add_argument("--keep", type=Path, help="a directory that is kept")
    options = parser.parse_args()
    failed = False
    for name in options.servers.split(","):
        with tempfile.TemporaryDirectory() as temporary, SERVERS[name]() as server:
            server.start(server_id=1, options=OPTIONS)
            directory = (options.keep or Path(temporary)) / name
            directory.mkdir(parents=True, exist_ok=True)
            outcome = run_histories(
                server, directory, range(options.seed, options.seed + options.histories), options.steps, options.format
            )
            print(f"{name}: {outcome}", *outcome.wrong, sep="\n  ", flush=True)
            failed = failed or bool(outcome.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
