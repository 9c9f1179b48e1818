"""A view: how fast it is made, what it costs whom it stands beside, and how it is served; each against the mirror.

The source is a MySQL 5.6 without GTIDs, in ROW format with checksums. All ratios are of one run, by turns.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from deploy.servers.mysql56 import MySQL56
from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive_inspection.listing import read_ledger
from relay.view.view_lookup import ViewLookup
from relay.view.view_skips import skips_of
from tests.bench.figures import GB, MB, Report, median, percentile
from tests.bench.gtid_requests import first_event_ms, mysql_request
from tests.bench.latency import differences
from tests.bench.process_facts import cpu_s, peak_rss_mb, rss_mb
from tests.bench.receive import relay_once, warm_free_memory
from tests.bench.relays import login, make_relay, wait_until_archived
from tests.bench.source_data import DATABASE, BenchSource, bench_source, wait_until_size
from tests.bench.streams import Server, Stream, counted, drained
from tests.support.binlog_builder import BinlogBuilder
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.replica_client import ReplicaClient
from tests.support.view_chain import UUID_OF_VIEW, VIEW, account_of, add_views, settings_of, view_keys

TRANSACTIONS: Final = 630_000
_WIDE_ROW_BYTES: Final = 8000
_ASSIGN: Final = view_keys()


def run_made(source: BenchSource, directory: Path, *, turns: int = 5) -> Report:
    """Making a view of a warm archive against receiving that archive; and receiving with a view beside it."""
    report = Report(
        "views", f"{source.size / MB:.0f} MB of {source.transactions:,} small transactions, {turns} turns each"
    )
    plain_s, plain_cpu, beside_s = [], [], []
    made_s, made_cpu = [], []
    with archived(source, directory / "archived") as archive:
        expected = 0
        for turn in range(turns + 1):
            seconds, cpu = relay_once(source, directory / f"plain-{turn}")
            beside, _ = relay_once(
                source, directory / f"beside-{turn}", prepare=lambda relay: add_views(relay, [view_keys()])
            )
            making, its_cpu, expected = made_once(archive, source, directory / f"made-{turn}", expected)
            if turn:
                plain_s.append(seconds)
                plain_cpu.append(cpu)
                beside_s.append(beside)
                made_s.append(making)
                made_cpu.append(its_cpu)
    size = source.size
    report.add("archive, receiving and checking", size / median(plain_s) / MB, "MB/s")
    report.add("view, made from the archive", size / median(made_s) / MB, "MB/s", note="of the source's bytes")
    report.add("making / receiving", median(plain_s) / median(made_s), aim=0.5, at_least=True)
    report.add("the same, least disturbed turn of each", min(plain_s) / min(made_s))
    report.add("receiving, CPU", median(plain_cpu) / size * GB, "s/GB")
    report.add("making, CPU", median(made_cpu) / size * GB, "s/GB")
    report.add("the view's bytes / the mirror's", expected / size)
    report.add("receiving with a view beside it", size / median(beside_s) / MB, "MB/s")
    report.add("receiving with a view / without", median(plain_s) / median(beside_s), aim=0.9, at_least=True)
    report.add("the same, least disturbed turn of each", min(plain_s) / min(beside_s))
    return report


def run_served(
    source: BenchSource, directory: Path, *, turns: int = 9, commits: int = 2000, per_second: int = 400
) -> Report:
    """Serving a view against serving the mirror, by one relay; and how much later a commit is seen through the view."""
    report = Report("views-served", f"{source.size / MB:.0f} MB and its view, {turns} turns each")
    with _with_view(source, directory / "served") as relay:
        mirror, view = login(relay), _server_of_view(relay)
        ways: dict[str, Callable[[bool], Stream]] = {
            "mirror, by position": lambda ends: Stream.of_mysql(mirror, source.file, server_id=900, ends=ends),
            "view, by position": lambda ends: Stream.of_mysql(view, source.file, server_id=901, ends=ends),
            "view, by GTID": lambda ends: Stream.by_gtid(view, GtidSet(), server_id=902, ends=ends),
        }
        wanted = {way: counted(make(True)) for way, make in ways.items()}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        cpu: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(turns + 1):
            for way, make in ways.items():
                before = cpu_s(relay.pid)
                result = drained([make(False)], wanted[way])
                if turn:
                    seconds[way].append(result["seconds"])
                    cpu[way].append(cpu_s(relay.pid) - before)
        first = next(iter(ways))
        for way in ways:
            report.add(f"{way}: throughput", wanted[way] / median(seconds[way]) / MB, "MB/s")
        for way in list(ways)[1:]:
            speed = (
                median([a / b for a, b in zip(seconds[first], seconds[way], strict=True)]) * wanted[way] / wanted[first]
            )
            report.add(f"{way}: throughput / {first}", speed, aim=0.95, at_least=True)
            work = median([b / a for a, b in zip(cpu[first], cpu[way], strict=True)]) * wanted[first] / wanted[way]
            least = min(seconds[first]) / min(seconds[way]) * wanted[way] / wanted[first]
            report.add("the same, least disturbed turn of each", least)
            report.add(f"{way}: CPU / {first}", work)
            report.add("the same, least of each", min(cpu[way]) / min(cpu[first]) * wanted[first] / wanted[way])
        added: list[list[float]] = []
        control: list[list[float]] = []
        for _ in range(max(1, turns // 2)):
            streams = [_at_the_end(mirror, relay, "replica", 903), _at_the_end(view, relay, account_of(VIEW), 904)]
            added.append(differences(source, streams, commits, per_second))
            streams = [_at_the_end(mirror, relay, "replica", 903), _at_the_end(mirror, relay, "replica", 904)]
            control.append([abs(ms) for ms in differences(source, streams, commits, per_second)])
    report.add("view after mirror, median", median([median(turn) for turn in added]), "ms", aim=0.5)
    late = [percentile(turn, 0.99) for turn in added]
    report.add("view after mirror, 99 of 100", median(late), "ms", aim=2, note="median of the turns")
    report.add("view after mirror, 99 of 100, least disturbed turn", min(late), "ms")
    noise = [percentile(turn, 0.99) for turn in control]
    report.add("two clients of the mirror differ by, 99 of 100", median(noise), "ms", note="the machine's own noise")
    return report


def run_anonymous(source: BenchSource, directory: Path, *, turns: int = 5) -> Report:
    """What Anonymous_gtid events before every transaction cost against the mirror: bytes, serving, receiving.

    The source's transactions are as small as they come, so that the share of bytes is the highest that there is.
    """
    report = Report("views-anonymous", f"gtids = anonymous, {turns} turns each")
    keys = view_keys(gtids="anonymous")
    plain_s, beside_s = [], []
    for turn in range(turns + 1):
        plain, _ = relay_once(source, directory / f"without-{turn}")
        beside, _ = relay_once(source, directory / f"with-{turn}", prepare=lambda relay: add_views(relay, [keys]))
        if turn:
            plain_s.append(plain)
            beside_s.append(beside)
    with _with_view(source, directory / "anonymous", keys) as relay:
        streams = {
            "mirror": Stream.of_mysql(login(relay), source.file, server_id=905, ends=True),
            "view": Stream.of_mysql(_server_of_view(relay), source.file, server_id=906, ends=True),
        }
        wanted = {way: counted(stream) for way, stream in streams.items()}
        seconds: dict[str, list[float]] = {way: [] for way in streams}
        cpu: dict[str, list[float]] = {way: [] for way in streams}
        for turn in range(turns + 1):
            for way, server in (("mirror", login(relay)), ("view", _server_of_view(relay))):
                before = cpu_s(relay.pid)
                stream = Stream.of_mysql(server, source.file, server_id=907, ends=False)
                result = drained([stream], wanted[way])
                if turn:
                    seconds[way].append(result["seconds"])
                    cpu[way].append(cpu_s(relay.pid) - before)
    bytes_ratio = wanted["view"] / wanted["mirror"]
    slower = median([b / a for a, b in zip(seconds["mirror"], seconds["view"], strict=True)])
    report.add("anonymous: bytes, view / mirror", bytes_ratio)
    report.add("anonymous: bytes a transaction more", (wanted["view"] - wanted["mirror"]) / source.transactions)
    report.add("anonymous: throughput in bytes, view / mirror", bytes_ratio / slower, aim=0.97, at_least=True)
    report.add("anonymous: transactions a second, view / mirror", 1 / slower)
    report.add("anonymous: CPU a byte, view / mirror", median(cpu["view"]) / median(cpu["mirror"]) / bytes_ratio)
    report.add(
        "anonymous: receiving with the view / without", median(plain_s) / median(beside_s), aim=0.9, at_least=True
    )
    report.add("the same, least disturbed turn of each", min(plain_s) / min(beside_s))
    return report


def run_large(source: BenchSource, directory: Path, *, transaction_mib: int = 1024) -> Report:
    """A transaction larger than memory comes in and is translated while the view is followed."""
    server = source.server
    rows = (transaction_mib << 20) // _WIDE_ROW_BYTES
    # BLACKHOLE: the binlog is written, and no gigabyte of table.
    server.execute_many(
        [f"CREATE TABLE IF NOT EXISTS wide (data VARBINARY({_WIDE_ROW_BYTES})) ENGINE=BLACKHOLE", "FLUSH LOGS"],
        DATABASE,
    )
    with _with_view(source, directory / "large") as relay:
        at_rest = rss_mb(relay.pid)
        file, before = source.newest()
        server.sql(f"INSERT INTO wide SELECT REPEAT('x', {_WIDE_ROW_BYTES}) FROM small LIMIT {rows}", DATABASE)
        size = (server.datadir / file).stat().st_size
        # A transaction of that size ends its file.
        wait_made(relay, *source.newest())
        peak = peak_rss_mb(relay.pid)
    report = Report("views-memory", f"a transaction of {(size - before) / 2**20:.0f} MiB, and a view")
    report.add("relay, peak resident", peak, "MB", aim=150)
    report.add("relay, at rest before", at_rest, "MB")
    return report


def run_many_files(directory: Path, *, files: int = 10_000, turns: int = 15) -> Report:
    """Places in a view of many files, and dump requests by GTID there."""
    binlogs = directory / "binlogs"
    binlogs.mkdir()
    names = [f"mysql-bin.{number:06d}" for number in range(1, files + 1)]
    places = []
    for number, name in enumerate(names):
        built = BinlogBuilder("mysql").transaction(20).transaction(20).transaction(20)
        places.append(built.size)
        if number + 1 < files:
            built = built.rotate(names[number + 1])
        (binlogs / name).write_bytes(built.data)
    (binlogs / "mysql-bin.index").write_text("".join(f"{name}\n" for name in names))
    report = Report("views-find", f"a view of {files:,} files, {turns} requests each")
    relay = make_relay(directory / "many", binlogs)
    add_views(relay, [view_keys()])
    begun = time.monotonic()
    with relay:
        wait_until_size(relay.archive / names[-1], places[-1])
        wait_made(relay, names[-1], places[-1])
        report.add("archive and view made", time.monotonic() - begun, "s")
        lookup = _lookup(relay)
        for where, number in (("start", 0), ("middle", files // 2), ("end", files - 1)):
            place = lookup.of_source(Position(names[number], places[number]))
            by_source = [_timed(lambda: lookup.of_source(place.source)) for _ in range(turns)]  # noqa: B023
            by_gno = [_timed(lambda: lookup.of_gno(place.gno)) for _ in range(turns)]  # noqa: B023
            held = GtidSet.from_text(f"{UUID_OF_VIEW}:1-{place.gno - 1}")
            requests = [_first_event_ms(relay, held) for _ in range(turns)]
            report.add(f"{where}: GTIDs of a source position, longest", max(by_source), "ms", aim=50)
            report.add(f"{where}: position of a GTID, longest", max(by_gno), "ms", aim=50)
            report.add(f"{where}: dump request by GTID, median", median(requests), "ms", aim=50)
            report.add(f"{where}: dump request by GTID, longest", max(requests), "ms", aim=50)
    shutil.rmtree(binlogs)
    return report


def run(directory: Path, quick: bool) -> Report:
    """All of it but the many files, with a source of its own."""
    transactions = 3_000 if quick else TRANSACTIONS
    with bench_source(transactions, None, kind=MySQL56) as source:
        report = run_made(source, directory, turns=1 if quick else 5)
        parts = [
            run_anonymous(source, directory, turns=1 if quick else 5),
            run_served(source, directory, turns=1 if quick else 9, commits=60 if quick else 2000),
            run_large(source, directory, transaction_mib=4 if quick else 1024),
            run_many_files(directory, files=30 if quick else 10_000, turns=1 if quick else 15),
        ]
    for part in parts:
        report.figures += part.figures
    report.conditions = "; ".join([report.conditions, *(part.conditions for part in parts)])
    return report


# ---- parts ---------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def archived(source: BenchSource, directory: Path) -> Iterator[Path]:
    """The directory of a relay that was stopped with all of the source in its archive."""
    with make_relay(directory, source.server) as relay:
        wait_until_archived(relay, source)
        relay.stop()
    yield directory


@contextlib.contextmanager
def _with_view(source: BenchSource, directory: Path, keys: dict[str, Any] = _ASSIGN) -> Iterator[RelayProcess]:
    """A relay that has all of the source, and the view of it, and is at rest."""
    relay = make_relay(directory, source.server)
    add_views(relay, [keys])
    with relay:
        wait_until_archived(relay, source)
        wait_made(relay, *source.newest(), keys=keys)
        yield relay


def _server_of_view(relay: RelayProcess) -> Server:
    return Server(relay.port, account_of(VIEW), REPLICA_PASSWORD)


def made_once(
    archive: Path, source: BenchSource, directory: Path, expected: int, keys: dict[str, Any] = _ASSIGN
) -> tuple[float, float, int]:
    """Seconds from the view's first file on, seconds of CPU, and how large its first file is; `expected`: 0 is not known yet."""
    shutil.copytree(archive / "archive", directory / "archive")
    warm_free_memory(directory, source.size)
    relay = make_relay(directory, source.server)
    add_views(relay, [keys])
    made = relay.archive / "views" / VIEW / source.file
    relay.start(wait=False)
    try:
        begun = wait_until_size(made, 4)
        before = cpu_s(relay.pid)
        if expected:
            ended = wait_until_size(made, expected)
        else:
            wait_made(relay, *source.newest(), keys=keys, flavour=source.server.flavour)
            ended = time.monotonic()
        used = cpu_s(relay.pid) - before
    finally:
        relay.kill()
    size = made.stat().st_size
    shutil.rmtree(directory)
    return ended - begun, used, size


def wait_made(
    relay: RelayProcess, file: str, offset: int, *, keys: dict[str, Any] = _ASSIGN, flavour: str = "mysql"
) -> None:
    """Returns when the view has what the source has before that place."""
    lookup, deadline = _lookup(relay, keys, flavour), time.monotonic() + 600
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):
            lookup.of_source(Position(file, offset))
            return
        time.sleep(0.2)
    raise TimeoutError(f"the view did not come to {file}:{offset}:\n{relay.log_tail(5)}")


def _lookup(relay: RelayProcess, keys: dict[str, Any] = _ASSIGN, flavour: str = "mysql") -> ViewLookup:
    skips = skips_of(read_ledger(relay.archive), VIEW) if relay.archive.exists() else {}
    return ViewLookup(relay.archive, relay.archive / "views" / VIEW, settings_of(keys, flavour), skips)


def _timed(work: Callable[[], Any]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _at_the_end(server: Server, relay: RelayProcess, user: str, server_id: int) -> Stream:
    file, offset = relay.sql("SHOW MASTER STATUS", user)[0][:2]
    return Stream.by_position(server, str(file), int(offset), server_id=server_id)


def _first_event_ms(relay: RelayProcess, held: GtidSet) -> float:
    client = ReplicaClient(relay.port, user=account_of(VIEW), password=REPLICA_PASSWORD)
    return first_event_ms(client, mysql_request(held))
