"""Statements that no generator writes, on real servers: each table of the feed must equal the source's, or be reported as different.

    python -m tests.support.odd_statements [--servers mysql56,mysql97,mariadb,mariadb118] [--images FULL,NOBLOB,MINIMAL]

They are read from plain copies of the binlogs, and through a relay that recorded the tables. Silently wrong tables are printed.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pymysql

from deploy.servers import SERVERS, Server
from relay.feed.lake.lake_table import STALE_REASON
from tests.support.feed_histories import document_columns, lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

_FILE: Final = Path(__file__).with_suffix(".txt")
_FAILS: Final = "!"


@dataclass
class OddOutcome:
    """The outcome of each table by `CASE.TABLE`: same; waits (for a snapshot); stale; the name of a stop; or `wrong`, silently."""

    found: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    """Statements that the server does not know."""

    @property
    def wrong(self) -> list[str]:
        """Return tables that differ from the source's while the feed says that they do not."""
        return [name for name, what in self.found.items() if what == "wrong"]

    def __str__(self) -> str:
        counts = dict(Counter(self.found.values()))
        return f"{len(self.found)} tables: {counts}; {len(self.refused)} statements refused; wrong: {self.wrong}"


def cases(server: str) -> dict[str, list[str]]:
    """Return the statements of each case for a server of this name, whose schemas are named as the cases are."""
    found: dict[str, list[str]] = {}
    statements: list[str] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("## "):
            name, _, only = line[3:].partition(" ")
            statements = []
            if server.startswith(only):
                found[name] = statements
        elif line:
            statements.append(line.replace("⏎", "\n").replace("{db}", name))
    return found


def write(server: Server, chosen: Mapping[str, list[str]], image: str) -> list[str]:
    """Run them, and return the statements that the server refused."""
    refused = []
    for name, statements in chosen.items():
        connection = server.connect()
        try:
            with connection.cursor() as cursor:
                first = (
                    f"CREATE DATABASE `{name}`",
                    f"USE `{name}`",
                    "SET NAMES utf8mb4",
                    f"SET binlog_row_image = '{image}'",
                )
                for text in (*first, *statements):
                    try:
                        cursor.execute(text.removeprefix(_FAILS))
                        cursor.fetchall()
                    except pymysql.Error as error:
                        if not text.startswith(_FAILS):
                            refused.append(f"{name}: {text[:80]}: {error}")
            connection.commit()
        finally:
            connection.close()
    return refused


def compared(directory: Path, server: Server, archive: Path, chosen: Collection[str]) -> dict[str, str]:
    """Return what a feed of each table alone makes of it."""
    found = {}
    for schema in chosen:
        told = server.sql(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}' AND TABLE_TYPE = 'BASE TABLE'"
        )
        for (table,) in told:
            name = f"{schema}.{table}"
            more = {"tables": [name], "modes": ["current"], "no_cascades": ["*.*"], "trusted_images": ["*.*"]}
            feed = SmallFeed(directory / name, archive, schema, **more)
            found[name] = _compared(feed, server, table)
    return found


def _compared(feed: SmallFeed, server: Server, table: str) -> str:
    stop = feed.run()
    current = feed.lake().open("current", feed.schema, table)
    if stop is not None:
        return stop.name
    if current is None:
        return "waits"
    if feed.property(table, STALE_REASON):
        return "stale"
    names, rows = _stored(server, feed.schema, table)
    if not set(names) <= set(current.schema.names):
        return "wrong"
    documents = document_columns(server, feed.schema, table)
    with current.scan() as reader:
        return "same" if lake_rows(reader.read_all(), names, documents) == rows else "wrong"


def _stored(server: Server, schema: str, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return what `true_rows` does, without virtual columns, which no lake has."""
    names, rows = true_rows(server, schema, table)
    found = server.sql(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE EXTRA LIKE '%VIRTUAL%' "
        f"AND TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{table}'"
    )
    at = [n for n, name in enumerate(names) if (name,) not in found]
    return [names[n] for n in at], sorted((tuple(row[n] for n in at) for row in rows), key=repr)


def run(
    directory: Path, server: Server, image: str, *, recorded: bool, only: Collection[str] | None = None
) -> OddOutcome:
    """Run all cases of a server that was not started yet, or some. With `recorded` they are read through a relay that queries it for
    its tables."""
    chosen = {name: one for name, one in cases(server.name).items() if only is None or name in only}
    metadata = [] if server.name == "mysql56" else [f"--binlog-row-metadata={'MINIMAL' if recorded else 'FULL'}"]
    server.start(server_id=1, options=["--binlog-format=ROW", *metadata])
    outcome = OddOutcome()
    if not recorded:
        outcome.refused = write(server, chosen, image)
        outcome.found = compared(directory, server, copied_binlogs(server, directory / "binlogs"), chosen)
        return outcome
    server.sql(f"GRANT REFERENCES ON *.* TO '{server.replication_user}'@'%'")
    recording = {"source": {"record_schema": True}}
    with RelayProcess(directory / "relay", server, port=free_port(), sections=recording) as relay:
        outcome.refused = write(server, chosen, image)
        end = server.master_status()
        relay.wait_archived(end.file, end.position)
        time.sleep(2)  # until it has asked
        outcome.found = compared(directory, server, relay.archive, chosen)
    return outcome


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.odd_statements", description=__doc__)
    parser.add_argument("--servers", default="mysql56,mysql97,mariadb,mariadb118")
    parser.add_argument("--images", default="FULL,NOBLOB,MINIMAL")
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.servers.split(","):
        for image in arguments.images.split(","):
            for recorded in (False, True):
                with tempfile.TemporaryDirectory() as directory, SERVERS[name]() as server:
                    outcome = run(Path(directory), server, image, recorded=recorded)
                print(f"{name} {image} {'recorded' if recorded else 'plain'}: {outcome}", flush=True)
                wrong += len(outcome.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
