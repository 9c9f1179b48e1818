"""A view of a MariaDB for MySQL: how fast it is made, against receiving the same bytes; and its bytes against the mirror's.

Everything is translated there: GTID events, rows, the definitions of tables in front of them. By turns in one run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from deploy.servers import Server
from deploy.servers.mariadb import MariaDB
from deploy.servers.mariadb118 import MariaDB118
from tests.bench.figures import GB, MB, Report, median
from tests.bench.receive import relay_once
from tests.bench.source_data import bench_source
from tests.bench.views import archived, made_once

TRANSACTIONS: Final = 400_000


class _Source(NamedTuple):
    """What is measured. share: of the transactions: statements are looked at one by one. aim: of making / receiving."""

    title: str
    kind: type[Server]
    options: Sequence[str] = ()
    share: int = 1
    aim: float | None = 0.5


_SOURCES: Final = (
    _Source("10.11", MariaDB),
    _Source("10.11, row metadata FULL", MariaDB, ("--binlog-row-metadata=FULL",)),
    _Source("11.8, row metadata FULL", MariaDB118, ("--binlog-row-metadata=FULL",)),
    _Source("10.11, compressed events", MariaDB, ("--log-bin-compress=ON", "--log-bin-compress-min-len=10"), 20, None),
    _Source("10.11, statements", MariaDB, ("--binlog-format=STATEMENT",), 20, None),
)


def run(directory: Path, quick: bool) -> Report:
    """All of it, each with a source of its own."""
    transactions, turns = (3_000, 1) if quick else (TRANSACTIONS, 5)
    report = Report("views-mariadb", f"{transactions:,} small transactions, {turns} turns each")
    for number, one in enumerate(_SOURCES):
        if one.kind.missing() is None:
            _run(one, max(500, transactions // one.share), directory / str(number), turns, report)
    return report


def _run(one: _Source, transactions: int, directory: Path, turns: int, report: Report) -> None:
    directory.mkdir()
    received, made, cpu = [], [], []
    with (
        bench_source(transactions, None, kind=one.kind, options=one.options) as source,
        archived(source, directory / "archived") as archive,
    ):
        expected = 0
        for turn in range(turns + 1):
            seconds, _ = relay_once(source, directory / f"plain-{turn}")
            making, used, expected = made_once(archive, source, directory / f"made-{turn}", expected)
            if turn:
                received.append(seconds)
                made.append(making)
                cpu.append(used)
        size = source.size
    report.add(
        f"{one.title}: view, made from the archive", size / median(made) / MB, "MB/s", note="of the source's bytes"
    )
    ratio = median(received) / median(made)
    report.add(f"{one.title}: making / receiving", ratio, aim=one.aim, at_least=True)
    report.add("the same, least disturbed turn of each", min(received) / min(made))
    report.add(f"{one.title}: making, transactions a second", transactions / median(made))
    report.add(f"{one.title}: making, CPU", median(cpu) / size * GB, "s/GB")
    report.add(f"{one.title}: the view's bytes / the mirror's", expected / size)
