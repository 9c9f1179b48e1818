"""Serving by GTID against serving by position, from one server by turns, and passing over what a replica has.

The archive is one large file of small transactions. `skipped` has all of them but the first and the last, so that nothing
but the walk over the file can find the last. Bytes passed over are the file's; the clock runs until the last event is there.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mysql_gtid import Tsid, parse_uuid
from tests.bench.figures import GB, MB, Report, median
from tests.bench.gtid_archive import SOURCE_UUID, file_name
from tests.bench.gtid_requests import watched_server
from tests.bench.large_gtid_binlog import make_large
from tests.bench.process_facts import cpu_s
from tests.bench.streams import Server, Stream, counted, drained
from tests.support.replica_client import PASSWORD, USER

_SOURCE: Final = Tsid(parse_uuid(SOURCE_UUID))
_OWN: Final = Tsid(parse_uuid("99999999-9999-9999-9999-999999999999"))
_POSITION: Final = "by position"
_EMPTY: Final = "by GTID, of a new replica"
_OWN_TRANSACTIONS: Final = "by GTID, with transactions of its own"
_HOLES: Final = "by GTID, 200 single transactions held"
_SKIPPED: Final = "all but the first and the last held"


def run(directory: Path, *, size: int = 256 << 20, turns: int = 31) -> Report:
    """Measures `turns` turns of each way, after one that does not count."""
    place = directory / "gtid-serve"
    place.mkdir()
    name = file_name(1)
    transactions = make_large(place, name, _SOURCE, size)
    held = {
        _EMPTY: GtidSet(),
        _OWN_TRANSACTIONS: _runs(_OWN, [(1, 1000)]),
        _HOLES: _runs(_SOURCE, [(number, number) for number in range(1, transactions, transactions // 200 + 1)]),
        _SKIPPED: _runs(_SOURCE, [(2, transactions - 1)]),
    }
    with watched_server(place, "mysql") as served:
        server = Server(served.port, USER, PASSWORD)
        ways: dict[str, Callable[[bool], Stream]] = {
            _POSITION: lambda ends: Stream.of_mysql(server, name, server_id=900, ends=ends),
            **{way: _by_gtid(server, gtids) for way, gtids in held.items()},
        }
        wanted = {way: counted(make(True)) for way, make in ways.items()}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        cpu: dict[str, list[float]] = {way: [] for way in ways}
        served.blocks()
        order, chance = list(ways), random.Random(1)
        for turn in range(turns + 1):
            # What a way leaves behind (memory, caches, a processor that has cooled down) is for any other one to find.
            chance.shuffle(order)
            for way in order:
                stream = ways[way](False)
                before = cpu_s(served.pid)
                result = drained([stream], wanted[way])
                if turn:
                    seconds[way].append(result["seconds"])
                    cpu[way].append(cpu_s(served.pid) - before)
        blocks = served.blocks()
    file_bytes = (place / name).stat().st_size
    shutil.rmtree(place)
    report = Report(
        "gtid-serve", f"{file_bytes / MB:.0f} MB of {transactions:,} small transactions, {turns} turns each"
    )
    skipping = median(seconds[_SKIPPED])
    report.add(f"{_SKIPPED}: passed over", file_bytes / skipping / MB, "MB/s", aim=1000, at_least=True)
    per_second = file_bytes / median(cpu[_SKIPPED]) / MB
    report.add(f"{_SKIPPED}: passed over, a second of processor time", per_second, "MB", aim=1000, at_least=True)
    report.add(f"{_POSITION}: throughput", wanted[_POSITION] / median(seconds[_POSITION]) / MB, "MB/s")
    report.add(f"{_POSITION}: CPU", median(cpu[_POSITION]) / wanted[_POSITION] * GB, "s/GB")
    for way in (_EMPTY, _OWN_TRANSACTIONS, _HOLES):
        pairs = list(zip(seconds[_POSITION], seconds[way], strict=True))
        speed = median([position / gtid for position, gtid in pairs]) * wanted[way] / wanted[_POSITION]
        report.add(f"{way}: throughput / {_POSITION}", speed, aim=0.95, at_least=True)
        work = median([mine / its for its, mine in zip(cpu[_POSITION], cpu[way], strict=True)])
        report.add(f"{way}: CPU / {_POSITION}", work * wanted[_POSITION] / wanted[way], aim=1.05)
    report.add("loop blocked, longest of all turns", blocks["longest_ms"], "ms", note="serving turns are 1 MB")
    return report


def _by_gtid(server: Server, held: GtidSet) -> Callable[[bool], Stream]:
    return lambda ends: Stream.by_gtid(server, held, server_id=901, ends=ends)


def _runs(source: Tsid, runs: list[tuple[int, int]]) -> GtidSet:
    builder = GtidSetBuilder()
    for first, last in runs:
        builder.add_run(source.key, first, last + 1)
    return builder.snapshot()
