"""Random damage to the files of an archive: no wrong data reaches a replica, and the documented commands restore all of it.

    python -m tests.support.damage_run --faults 1000 [--source mysql56|mysql97|mariadb ...] [--seed N]

A relay archives what a real source writes, with and without checksums. Then each round takes a copy of that archive and makes one fault
in one of its files, before the archive is opened or while it is served. Of the replicas, one after the other, one reads everything from
the oldest file on and the others begin at boundaries between transactions, by position and by GTID. They must get what the source
wrote, up to a whole transaction; if that is not all, the error, the ledger and the status must say why. Then `archive rebuild` and
`archive repair` must restore the whole archive. Exit status 0 means success, 1 findings, listed with the seed that repeats them.
"""

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from deploy.servers import SERVERS, Server
from protocol.auth.account import Account
from protocol.position import is_binlog_name
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import LOCK_NAME
from relay.archive_inspection.listing import read_ledger, rebuild_archive
from relay.archive_inspection.scrub import Scrub
from relay.archive_inspection.verify import verify_archive
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.repair.file_origin import DirectoryOrigin
from relay.repair.repair import StoppedRepair
from tests.support.checked_streams import Stream, StreamStart, WrittenBinlogs, read_stream
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.replica_client import PASSWORD, USER

SOURCES: Final = {
    "mysql56-none": ("mysql56", ["--binlog-checksum=NONE"]),
    "mysql56": ("mysql56", ["--binlog-checksum=CRC32"]),
    "mysql97": ("mysql97", ["--enforce-gtid-consistency=ON", "--gtid-mode=ON"]),
    "mariadb": ("mariadb", ["--binlog-checksum=CRC32"]),
}
MORE_STREAMS: Final = 3
KINDS: Final = ("changed", "removed", "shortened", "lengthened", "emptied", "renamed", "zeroed")


@contextlib.contextmanager
def recorded_archive(source: Server, options: list[str], directory: Path) -> Iterator[Path]:
    """Yield the archive of a relay that has followed a source with all kinds of transactions over five files."""
    source.start(server_id=1, options=options)
    relay = RelayProcess(directory / "relay", source, port=free_port())
    with relay:
        source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a LONGTEXT) ENGINE=InnoDB"])
        number = 0
        for file in range(5):
            for _ in range(8):
                number += 1
                source.sql(f"INSERT INTO d.t VALUES ({number}, REPEAT('M', {300 * (file + 1)}))")
            source.execute_many(
                ["SET autocommit = 0", *(f"INSERT INTO d.t VALUES ({number + n}, 'x')" for n in range(1, 6)), "COMMIT"]
            )
            number += 5
            source.sql(f"UPDATE d.t SET a = '{'L' * 400_000}' WHERE id = {number}")
            if file < 4:
                source.sql("FLUSH BINARY LOGS")
        end = source.master_status()
        relay.wait_archived(end.file, end.position)
        relay.stop()
    source.stop()
    yield relay.archive


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. `kind` is one of KINDS, `at` a fraction of the file. `served` says whether the archive is served when it happens.
    `starts` are where the replicas begin, in the order in which they come."""

    kind: str
    file: str
    at: float
    bits: int
    served: bool
    starts: tuple[StreamStart, ...]

    def happen(self, directory: Path) -> None:
        """Make the fault. Blocking."""
        path = directory / self.file
        size = path.stat().st_size
        at = min(int(self.at * size), max(0, size - 1))
        if self.kind == "removed":
            path.unlink()
        elif self.kind == "renamed":
            path.rename(directory / "somewhere-else")
        elif self.kind == "lengthened":
            with path.open("ab") as file:
                file.write(bytes([self.bits]) * (1 + at % 5000))
        elif self.kind in ("shortened", "emptied"):
            os.truncate(path, at if self.kind == "shortened" else 0)
        elif size:
            with path.open("r+b") as file:
                file.seek(at)
                count = min(size - at, 1 if self.kind == "changed" else 4096)
                old = file.read(count)
                file.seek(at)
                file.write(bytes(byte ^ self.bits for byte in old) if self.kind == "changed" else bytes(count))


class DamageRun:
    """Faults in copies of one archive. `findings` lists what is wrong; `outcomes` counts what happened."""

    def __init__(self, name: str, archive: Path, scratch: Path) -> None:
        self.name = name
        flavour = {"mysql97": "mysql", "mariadb": "mariadb"}.get(name, "")
        self.findings: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self._whole = archive
        self._directory = scratch / "archive"
        self._binlogs = {
            path.name: path.read_bytes() for path in sorted(archive.iterdir()) if is_binlog_name(path.name)
        }
        self._all = {name: data[4:] for name, data in self._binlogs.items()}
        self._written = WrittenBinlogs(self._binlogs, flavour)
        self._oldest = StreamStart(min(self._binlogs), 4)
        files = [path for path in archive.iterdir() if path.is_file() and path.name != LOCK_NAME]
        self._sizes = {path.name: max(1, path.stat().st_size) for path in files}
        self._files = sorted(self._sizes)

    def fault(self, seed: int) -> Fault:
        """Return the fault of this seed."""
        chance = random.Random(f"{self.name}-{seed}")
        # Half of them in the binlogs themselves.
        file = chance.choice(sorted(self._binlogs)) if chance.random() < 0.5 else chance.choice(self._files)
        # Each fourth near the beginning, with which each stream of the file begins, wherever it begins itself.
        at = chance.random() if chance.random() < 0.75 else chance.randrange(300) / self._sizes[file]
        by_gtid = self._written.flavour != "" and chance.random() < 0.5
        starts = [StreamStart("", 4, "") if by_gtid else self._oldest]
        starts += [self._written.random_start(chance) for _ in range(MORE_STREAMS)]
        if file in self._binlogs:
            starts.append(self._written.random_start(chance, file))
        chance.shuffle(starts)
        return Fault(chance.choice(KINDS), file, at, chance.randrange(1, 256), chance.random() < 0.5, tuple(starts))

    async def check_whole(self) -> None:
        """Check that without a fault everything is served, from any requested place. Raises: AssertionError."""
        chance = random.Random(self.name)
        archive = await Archive.open(self._whole)
        server = _server(archive)
        await server.start("127.0.0.1", 0)
        try:
            stream = await asyncio.to_thread(read_stream, server.port, self._oldest, "")
            assert stream.by_file == self._all, (stream.error, _shape(stream))
            for start in [StreamStart("", 4, ""), *(self._written.random_start(chance) for _ in range(20))]:
                if start.executed is None or self._written.flavour:
                    stream = await asyncio.to_thread(read_stream, server.port, start, self._written.flavour)
                    assert self._written.check(start, stream), (start, stream.error, _shape(stream))
        finally:
            await server.close()
            await archive.close()

    async def run(self, seed: int) -> None:
        """Make one fault, and check its consequences."""
        fault = self.fault(seed)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
        shutil.copytree(self._whole, self._directory)
        before = len(read_ledger(self._directory))
        try:
            streams = await self._served(fault)
            for start, stream in streams.items():
                self._judge(fault, start, stream, before)
            await self._brought_back(seed, fault)
        except Exception as problem:  # what it is, and the seed, are what is wanted
            self.findings.append(f"{self.name} seed {seed}: {fault}: {type(problem).__name__}: {problem}")

    async def _served(self, fault: Fault) -> dict[StreamStart, Stream]:
        """Return what each replica got; an archive that cannot be opened serves nothing."""
        if not fault.served:
            fault.happen(self._directory)
        try:
            archive = await Archive.open(self._directory)
        except ArchiveError as refused:
            return {self._oldest: Stream((), (), str(refused))}
        server = _server(archive)
        await server.start("127.0.0.1", 0)
        scrub = Scrub(archive, None)
        try:
            if fault.served:
                await asyncio.to_thread(fault.happen, self._directory)
            streams = {
                start: await asyncio.to_thread(read_stream, server.port, start, self._written.flavour)
                for start in fault.starts
            }
            scrub.begin()
            scrub.hurry()
            async with asyncio.timeout(20):
                while scrub.status.state not in ("off", "resting") or not scrub.status.total_bytes:
                    await asyncio.sleep(0.005)
            self.damaged = [place.file for one in archive.all for place in one.damaged_files.all]
            self.damaged += [file.name for one in archive.all for file in one.files if file.damaged]
        finally:
            await scrub.close()
            await server.close()
            with contextlib.suppress(ArchiveError):
                await archive.close()
        return streams

    def _judge(self, fault: Fault, start: StreamStart, stream: Stream, before: int) -> None:
        if self._written.check(start, stream):
            self.outcomes["all was served"] += 1
            return
        newest = max(self._binlogs)
        older = [unit for unit in self._written.expected(start) if unit.file != newest]
        if fault.file == newest and not stream.error and self._written.has_all_of(older, stream):
            self.outcomes["the newest file was cut to what is whole"] += 1
            return
        if not stream.error:
            raise AssertionError(f"not all was served from {start} ({_shape(stream)}), and nothing was said")
        if "position > file size" in stream.error:
            raise AssertionError(f"a replica that begins where a file was damaged is told it is wrong: {stream.error}")
        self.outcomes["ended by name"] += 1
        try:
            rows = len(read_ledger(self._directory)) - before
        except ArchiveError:
            rows = 1  # it is said where the catalog is opened
        if stream.events and not rows:  # a relay that does not start says why, and serves nothing
            raise AssertionError(f"no row in the ledger; the replica was told: {stream.error}")

    async def _brought_back(self, seed: int, fault: Fault) -> None:
        """Restore the archive by the documented commands only."""
        origin = DirectoryOrigin(self._whole)
        for attempt in range(2):
            try:
                archive = await Archive.open(self._directory)
                await archive.close()
            except ArchiveError:
                await asyncio.to_thread(rebuild_archive, self._directory)
            repair = StoppedRepair(self._directory, origin)
            outcomes = [outcome async for outcome in repair.run()]
            findings = await asyncio.to_thread(lambda: list(verify_archive(self._directory, deep=True)))
            names = sorted({one.file for one in findings if one.boundary is not None and one.file in self._binlogs})
            if names and names != [max(self._binlogs)]:
                outcomes += [outcome async for outcome in StoppedRepair(self._directory, origin).run(names)]
            failed = [outcome.text for outcome in outcomes if not outcome.is_repaired]
            if failed:
                raise AssertionError(f"not repaired: {failed}")
            if findings:
                await asyncio.to_thread(rebuild_archive, self._directory)
            if attempt and (left := list(verify_archive(self._directory, deep=True))):
                raise AssertionError(f"still found after rebuild and repair: {left}")
        archive = await Archive.open(self._directory)
        server = _server(archive)
        await server.start("127.0.0.1", 0)
        try:
            stream = await asyncio.to_thread(read_stream, server.port, self._oldest, "")
        finally:
            await server.close()
            await archive.close()
        newest = max(self._binlogs)
        for name, data in self._binlogs.items():
            got = stream.by_file.get(name, b"")
            if name == newest:
                if not data[4:].startswith(got):
                    raise AssertionError(f"{name} is another one after the repair")
            elif got != data[4:]:
                raise AssertionError(f"{name} is not whole after the repair: {stream.error or _shape(stream)}")


def _server(archive: Archive) -> DownstreamServer:
    accounts = [Account.with_password(USER, PASSWORD)]
    source = SourceState(lambda: GtidVariables("ON"), gtid_mode=lambda: "ON")
    return DownstreamServer(archive, accounts, source, ListenOptions(position_wait_s=0.05))


def _shape(stream: Stream) -> str:
    return ", ".join(f"{name}: {len(data)} bytes" for name, data in sorted(stream.by_file.items()))


def campaign(name: str, faults: int, seed: int, scratch: Path) -> DamageRun:
    """Make that many faults in copies of the archive of one source."""
    server, options = SOURCES[name]
    with SERVERS[server]() as source, recorded_archive(source, options, scratch / name) as archive:
        run = DamageRun(name, archive, scratch / name)
        asyncio.run(run.check_whole())
        for number in range(seed, seed + faults):
            asyncio.run(run.run(number))
    return run


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--source", choices=SOURCES, action="append")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    findings: list[str] = []
    names = chosen.source or list(SOURCES)
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        for name in names:
            run = campaign(name, -(-chosen.faults // len(names)), chosen.seed, Path(scratch))
            findings += run.findings
            print(f"{name}: {dict(run.outcomes)}, {len(run.findings)} findings", flush=True)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
