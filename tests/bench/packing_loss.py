"""What receiving and serving lose while the relay packs old binlogs, for tiers or for the mirror's bucket: by turns in one run with
relays that pack nothing.

Each turn has a relay of its own, as a DBA runs it, on a copy of an archive with a backlog to pack. With packing the clock starts
when a packed file grows; the backlog is larger than what can be packed in a turn. Source, relay, packing and client share
the machine's processors; the bucket is a directory. How much is packed meanwhile is told: giving way by doing nothing would be
no merit.
"""

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from relay.object_store.archive_object import ARCHIVE_KEY, read_archive_object
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from tests.bench.figures import MB, Report, median, percentile
from tests.bench.receive import warm_free_memory
from tests.bench.relays import filled_relay, login, make_relay
from tests.bench.source_data import BenchSource, wait_until_size
from tests.bench.streams import drain, stream_size
from tests.support.chain import wait_until
from tests.support.packed_archive import packed_bytes
from tests.support.relay_process import RelayProcess

RECEIVING: Final = "receiving"
_BACKLOG_FILES: Final = 3
_MARGIN_BYTES: Final = 1 << 20
_BEGINS_S: Final = 60.0
_LEAST_REST_S: Final = 0.3


class _Packs(StrEnum):
    """What a relay packs its backlog for."""

    NOTHING = "nothing"
    TIERS = "tiers"
    MIRROR = "the mirror"
    PARTS = "the mirror's parts"
    """Of the newest binlog, as it is received: all others are in the bucket already."""


class _Turn(NamedTuple):
    """Seconds that the work took, and plain bytes a second that were packed meanwhile."""

    seconds: float
    packed_rate: float


class _Archives(NamedTuple):
    """Of relays that ended: one that has the backlog, one that has `file`, too. bucket: a copy of the backlog. `ratio`: of plain bytes
    to packed ones."""

    backlog: Path
    bucket: Path
    whole: Path
    file: str
    size: int
    ratio: float


class _Settling:
    """A relay that packs is waited for until a packed file grows; one that does not, for as long as the last one that did: what a relay
    does when it starts is the same in both."""

    def __init__(self) -> None:
        self._took_s = 1.0

    def wait(self, relay: RelayProcess, packs: _Packs) -> None:
        """Returns when the clock may start."""
        if packs is _Packs.NOTHING:
            time.sleep(self._took_s)
            return
        began = time.monotonic()
        while not (relay.logged("mirror_follows") if packs is _Packs.PARTS else _packed(relay)):
            if time.monotonic() > began + _BEGINS_S:
                raise TimeoutError(f"nothing is packed:\n{relay.log_tail()}")
            time.sleep(0.002)
        time.sleep(max(0.0, began + _LEAST_REST_S - time.monotonic()))
        self._took_s = time.monotonic() - began


def run(source: BenchSource, directory: Path, *, turns: int = 15, drains: int = 8) -> Report:
    """Measures `turns` times each, after one that does not count."""
    archives = _archives(source, directory)
    report = Report(
        "packing-loss",
        f"{archives.size / MB:.0f} MB received, or served {drains} times, with old files being packed and without, {turns} turns each",
    )
    wanted = _stream_bytes(source, archives, directory / "size")
    place, settling = directory / "turn", _Settling()
    kinds: dict[str, tuple[int, Callable[[_Packs], _Turn]]] = {
        RECEIVING: (archives.size, lambda packs: _receive(source, archives, place, settling, packs)),
        "serving": (wanted * drains, lambda packs: _serve(source, archives, place, settling, packs, drains)),
    }
    for what, (size, turn) in kinds.items():
        # Parts are of what is received.
        ways = [packs for packs in _Packs if packs is not _Packs.PARTS or what == RECEIVING]
        rates: dict[_Packs, list[float]] = {packs: [] for packs in ways}
        packed: dict[_Packs, list[float]] = {packs: [] for packs in ways}
        for number in range(turns + 1):
            for packs in ways if number % 2 else reversed(ways):
                done = turn(packs)
                if number:
                    rates[packs].append(size / done.seconds)
                    packed[packs].append(done.packed_rate)
        without = rates[_Packs.NOTHING]
        report.add(f"{what} without packing", median(without) / MB, "MB/s")
        for packs in ways[1:]:
            ratios = [with_it / alone for with_it, alone in zip(rates[packs], without, strict=True)]
            report.add(f"{what} with packing for {packs}", median(rates[packs]) / MB, "MB/s")
            spread = f"half of the pairs: {percentile(ratios, 0.25):.3f} to {percentile(ratios, 0.75):.3f}"
            report.add(
                f"{what}, with packing for {packs} / without", median(ratios), aim=0.95, at_least=True, note=spread
            )
            report.add("the same, least disturbed turn of each", max(rates[packs]) / max(without))
            report.add(f"{what}: packed for {packs} meanwhile", median(packed[packs]) / MB, "MB/s")
    report.add("packing by a relay that has nothing else to do", _at_rest(source, archives, directory) / MB, "MB/s")
    return report


def _archives(source: BenchSource, directory: Path) -> _Archives:
    """Has the source write what is missing."""
    server = source.server
    while len(server.binlogs()) < _BACKLOG_FILES:
        server.sql("FLUSH BINARY LOGS")
        server.sql(f"CALL write_small({source.transactions})", "bench")
    server.sql("FLUSH BINARY LOGS")
    with filled_relay(directory / "backlog", source) as relay:
        _wait_digests(relay)
        relay.stop()
        backlog = relay.archive
    file = source.newest()[0]
    server.sql(f"CALL write_small({source.transactions})", "bench")
    server.sql("FLUSH BINARY LOGS")
    place = _copied(backlog, directory / "whole")
    with make_relay(directory / "whole", server) as relay:
        wait_until_size(relay.archive / source.newest()[0], source.newest()[1])
        _wait_digests(relay)
        relay.stop()
    oldest = _binlogs(backlog)[0]
    ratio = oldest.stat().st_size / len(packed_bytes(oldest))
    with _relay(source, backlog, directory / "mirrored", _Packs.MIRROR) as relay:
        bucket, sealed = _bucket(relay.directory), len(_binlogs(backlog)) - 1
        wait_until(lambda: len(list(bucket.glob("*.place"))) >= sealed, "the backlog is in the bucket", 10 * _BEGINS_S)
        relay.stop()
    return _Archives(backlog, bucket, place, file, (server.datadir / file).stat().st_size, ratio)


def _wait_digests(relay: RelayProcess) -> None:
    """Until no digest has to be made any more: a file without one is not packed, and to make it costs time as well."""
    deadline = time.monotonic() + _BEGINS_S
    while True:
        listed = [json.loads(line) for line in relay.command("archive", "list", "--json").stdout.splitlines()]
        if all(line["digest"] for line in listed if line["sealed"]):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the digests are not made: {listed}")
        time.sleep(0.2)


def _copied(archive: Path, directory: Path) -> Path:
    """The archive's files once more, where a relay in `directory` looks for them; binlogs by a second name: nobody writes to them."""

    sealed = {str(path) for path in _binlogs(archive)[:-1]}

    def copy(path: str, target: str) -> object:
        return os.link(path, target) if path in sealed else shutil.copy2(path, target)

    place = directory / "archive" / archive.name
    shutil.copytree(archive, place, copy_function=copy)
    return place


def _binlogs(archive: Path) -> list[Path]:
    return sorted(path for path in archive.iterdir() if path.suffix[1:].isdigit())


def _relay(source: BenchSource, archive: Path, directory: Path, packs: _Packs, hot_bytes: int = 1) -> RelayProcess:
    """On a copy of `archive`. hot_bytes: older files than that are packed for tiers."""
    _copied(archive, directory)
    mirrored: dict[str, dict[str, Any]] = {
        "archive.bucket": {"url": f"file://{_bucket(directory)}"},
        "archive.mirror": {},
    }
    sections: dict[_Packs, dict[str, dict[str, Any]]] = {
        _Packs.NOTHING: {},
        _Packs.TIERS: {"archive.tiers": {"hot_bytes": f"{max(1, hot_bytes >> 10)}KiB"}},
        _Packs.MIRROR: mirrored,
        # As often as it can be: a turn takes less than the two seconds that are usual.
        _Packs.PARTS: {**mirrored, "archive.mirror": {"interval_s": 0.05}},
    }
    return make_relay(directory, source.server, **sections[packs])


def _bucket(directory: Path) -> Path:
    return directory / "bucket"


def _take_bucket(bucket: Path, directory: Path) -> None:
    """A copy of it is the one of the relay in `directory`; whoever wrote there is gone."""
    shutil.copytree(bucket, _bucket(directory))
    store = ObjectStore(StoreOptions(f"file://{_bucket(directory)}"))
    about = read_archive_object(store)
    assert about is not None
    store.put_bytes(ARCHIVE_KEY, replace(about, time=0.0).encode())


def _receive(source: BenchSource, archives: _Archives, directory: Path, settling: _Settling, packs: _Packs) -> _Turn:
    relay = _relay(source, archives.backlog, directory, packs)
    if packs is _Packs.PARTS:
        _take_bucket(archives.bucket, directory)
    warm_free_memory(directory, archives.size)
    os.kill(source.pid, signal.SIGSTOP)
    try:
        relay.start()
        settling.wait(relay, packs)
    finally:
        before = _packed(relay)
        start = time.monotonic()
        os.kill(source.pid, signal.SIGCONT)
    try:
        seconds = wait_until_size(relay.archive / archives.file, archives.size) - start
        packed = _packed(relay) - before
    finally:
        relay.kill()
    shutil.rmtree(directory)
    return _Turn(seconds, packed * archives.ratio / seconds)


def _serve(
    source: BenchSource, archives: _Archives, directory: Path, settling: _Settling, packs: _Packs, drains: int
) -> _Turn:
    newest = sum(path.stat().st_size for path in _binlogs(archives.whole) if path.name >= archives.file)
    with _relay(source, archives.whole, directory, packs, newest + _MARGIN_BYTES) as relay:
        wanted = stream_size(login(relay), archives.file)
        settling.wait(relay, packs)
        before, start = _packed(relay), time.monotonic()
        seconds = sum(drain(login(relay), archives.file, wanted)["seconds"] for _ in range(drains))
        packed, passed = _packed(relay) - before, time.monotonic() - start
        relay.kill()
    shutil.rmtree(directory)
    return _Turn(seconds, packed * archives.ratio / passed)


def _stream_bytes(source: BenchSource, archives: _Archives, directory: Path) -> int:
    with _relay(source, archives.whole, directory, _Packs.NOTHING) as relay:
        return stream_size(login(relay), archives.file)


def _packed(relay: RelayProcess) -> int:
    """Bytes of packed files so far, whole ones and the one that grows; what is being sent once."""
    sizes: dict[str, int] = {}
    for place in (relay.archive, _bucket(relay.directory)):
        for path in place.glob("*.zst*"):
            with contextlib.suppress(FileNotFoundError):
                name = path.name.partition(".zst")[0]
                sizes[name] = max(sizes.get(name, 0), path.stat().st_size)
    return sum(sizes.values())


def _at_rest(source: BenchSource, archives: _Archives, directory: Path) -> float:
    with _relay(source, archives.backlog, directory / "rest", _Packs.TIERS) as relay:
        deadline = time.monotonic() + 10 * _BEGINS_S
        while not (moved := relay.logged("file_moved")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing is packed:\n{relay.log_tail()}")
            time.sleep(0.05)
        return float(moved[0]["bytes"] / moved[0]["took_s"])
