"""Random damage to the files of an archive: nothing wrong reaches a replica, and the documented commands bring all of it back.

    python -m tests.support.damage_run --faults 1000 [--source mysql56|mysql97|mariadb ...] [--seed N]

A relay archives what a real source writes, with and without checksums. Then, again and again: a copy of that archive, one fault
in one of its files, before the archive is opened or while it is served, and a replica that reads everything from the oldest file
on. What it gets must be what the source wrote, up to a whole transaction; where that is not all, the error, the ledger and the
status must say why. Then `archive rebuild` and `archive repair` must make the archive whole again. Exit status 0: so it is; 1:
findings, listed with the seed that repeats them.
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

import pymysql
import structlog

from deploy.servers import SERVERS, Server
from protocol.auth.account import Account
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.position import is_binlog_name
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.inspect.listing import read_ledger, rebuild_archive
from relay.archive.inspect.scrub import Scrub
from relay.archive.inspect.verify import verify_archive
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import LOCK_NAME
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.repair.file_origin import DirectoryOrigin
from relay.repair.repair import StoppedRepair
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.replica_client import PASSWORD, USER, ReplicaClient

SOURCES: Final = {
    "mysql56-none": ("mysql56", ["--binlog-checksum=NONE"]),
    "mysql56": ("mysql56", ["--binlog-checksum=CRC32"]),
    "mysql97": ("mysql97", ["--enforce-gtid-consistency=ON", "--gtid-mode=ON"]),
    "mariadb": ("mariadb", ["--binlog-checksum=CRC32"]),
}
KINDS: Final = ("changed", "removed", "shortened", "lengthened", "emptied", "renamed", "zeroed")


@contextlib.contextmanager
def recorded_archive(source: Server, options: list[str], directory: Path) -> Iterator[Path]:
    """The archive of a relay that has followed a source with all kinds of transactions over five files."""
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
    """kind: one of KINDS. at: a fraction of the file. served: whether the archive is served when it happens. by_gtid: how the
    replica asks, where there are GTIDs.
    """

    kind: str
    file: str
    at: float
    bits: int
    served: bool
    by_gtid: bool

    def happen(self, directory: Path) -> None:
        """Blocking."""
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
    """Faults in copies of one archive. `findings`: what is not as it must be. `outcomes`: how often what happened."""

    def __init__(self, name: str, archive: Path, scratch: Path) -> None:
        self.name = name
        self._flavour = {"mysql97": "mysql", "mariadb": "mariadb"}.get(name, "")
        self.findings: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self._whole = archive
        self._directory = scratch / "archive"
        self._binlogs = {
            path.name: path.read_bytes() for path in sorted(archive.iterdir()) if is_binlog_name(path.name)
        }
        self._boundaries = {name: _boundaries(data) for name, data in self._binlogs.items()}
        self._files = sorted(path.name for path in archive.iterdir() if path.is_file() and path.name != LOCK_NAME)

    def fault(self, seed: int) -> Fault:
        """The fault of this seed."""
        chance = random.Random(f"{self.name}-{seed}")
        # Half of them in the binlogs themselves.
        file = chance.choice(sorted(self._binlogs)) if chance.random() < 0.5 else chance.choice(self._files)
        served, by_gtid = chance.random() < 0.5, self._flavour != "" and chance.random() < 0.5
        return Fault(chance.choice(KINDS), file, chance.random(), chance.randrange(1, 256), served, by_gtid)

    async def check_whole(self) -> None:
        """Without a fault all is served, however it is asked for. Raises: AssertionError."""
        archive = await Archive.open(self._whole)
        server = _server(archive)
        await server.start("127.0.0.1", 0)
        try:
            for flavour in {"", self._flavour}:
                read, error = await asyncio.to_thread(_read_all, server.port, min(self._binlogs), flavour)
                assert read == {name: data[4:] for name, data in self._binlogs.items()}, (flavour, error, _shape(read))
        finally:
            await server.close()
            await archive.close()

    async def run(self, seed: int) -> None:
        """One fault, and all that must be true of it."""
        fault = self.fault(seed)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
        shutil.copytree(self._whole, self._directory)
        before = len(read_ledger(self._directory))
        try:
            read, error = await self._served(fault)
            self._judge(seed, fault, read, error, before)
            await self._brought_back(seed, fault)
        except Exception as problem:  # what it is, and the seed, are what is wanted
            self.findings.append(f"{self.name} seed {seed}: {fault}: {type(problem).__name__}: {problem}")

    async def _served(self, fault: Fault) -> tuple[dict[str, bytes], str]:
        """What a replica got of each file, and the error at its end; an archive that cannot be opened serves nothing."""
        if not fault.served:
            fault.happen(self._directory)
        try:
            archive = await Archive.open(self._directory)
        except ArchiveError as refused:
            return {}, str(refused)
        server = _server(archive)
        await server.start("127.0.0.1", 0)
        scrub = Scrub(archive, None)
        try:
            if fault.served:
                await asyncio.to_thread(fault.happen, self._directory)
            flavour = self._flavour if fault.by_gtid else ""
            read, error = await asyncio.to_thread(_read_all, server.port, sorted(self._binlogs)[0], flavour)
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
        return read, error

    def _judge(self, seed: int, fault: Fault, read: dict[str, bytes], error: str, before: int) -> None:
        for name, data in read.items():
            whole = self._binlogs[name][4:]
            if not whole.startswith(data):
                raise AssertionError(f"WRONG BYTES of {name} reached a replica")
            if 4 + len(data) not in self._boundaries[name]:
                raise AssertionError(f"the stream ended inside a transaction, at {4 + len(data)} of {name}")
        is_all = read == {name: data[4:] for name, data in self._binlogs.items()}
        if is_all:
            self.outcomes["all was served"] += 1
            return
        newest = max(self._binlogs)
        if fault.file == newest and not error and set(read) >= set(self._binlogs) - {newest}:
            self.outcomes["the newest file was cut to what is whole"] += 1
            return
        if not error:
            raise AssertionError(f"not all was served ({_shape(read)}), and nothing was said")
        self.outcomes["ended by name"] += 1
        try:
            rows = len(read_ledger(self._directory)) - before
        except ArchiveError:
            rows = 1  # it is said where the catalog is opened
        if read and not rows:  # a relay that does not start says why, and serves nothing
            raise AssertionError(f"no row in the ledger; the replica was told: {error}")

    async def _brought_back(self, seed: int, fault: Fault) -> None:
        """By the documented commands only."""
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
            read, error = await asyncio.to_thread(_read_all, server.port, sorted(self._binlogs)[0])
        finally:
            await server.close()
            await archive.close()
        newest = max(self._binlogs)
        for name, data in self._binlogs.items():
            got = read.get(name, b"")
            if name == newest:
                if not data[4:].startswith(got):
                    raise AssertionError(f"{name} is another one after the repair")
            elif got != data[4:]:
                raise AssertionError(f"{name} is not whole after the repair: {error or _shape(read)}")


def _server(archive: Archive) -> DownstreamServer:
    accounts = [Account.with_password(USER, PASSWORD)]
    source = SourceState(lambda: GtidVariables("ON"), gtid_mode=lambda: "ON")
    return DownstreamServer(archive, accounts, source, ListenOptions(position_wait_s=0.05))


def _read_all(port: int, first: str, gtids_of: str = "") -> tuple[dict[str, bytes], str]:
    """By file, the events' bytes that a replica gets from `first` on, and the error that its stream ends with.

    gtids_of: the flavour of a replica that asks by GTID and has none; empty: it asks by file and position. What a source makes
    for such a stream, and has in no file, is left out.
    """
    read: dict[str, bytes] = {}
    name = first
    client = ReplicaClient(port)
    try:
        client.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        client.query("SET @mariadb_slave_capability= 4")
        if gtids_of == "mysql":
            client.command(0x1E, encode_binlog_dump_gtid(encode_gtid_set(GtidSet()), flags=1, server_id=77))
        else:
            if gtids_of == "mariadb":
                client.query("SET @slave_connect_state=''")
            client.ask_dump("" if gtids_of else first, 4, flags=1 | 2)
        while (event := client.event()) is not None:
            if event.kind == EventType.ROTATE and event.data[0:4] == bytes(4):
                name = event.data[27:].split(b"\0")[0].decode("latin-1")
                name = name if name in read or is_binlog_name(name) else name[:-4]
                read.setdefault(name, b"")
                continue
            if event.end_log_pos:
                read[name] = read.get(name, b"") + event.data
    except pymysql.MySQLError as error:
        return {name: data for name, data in read.items() if data}, str(error)
    finally:
        client.cut()
    return {name: data for name, data in read.items() if data}, ""


def _boundaries(data: bytes) -> set[int]:
    """Offsets between transactions, by the markers of the archived file."""
    found, at = {4}, 4
    while at < len(data):
        mark = data[at + 18] >> 2 & 7
        at += int.from_bytes(data[at + 9 : at + 13], "little")
        if mark in (2, 5):
            found.add(at)
    return found


def _shape(read: dict[str, bytes]) -> str:
    return ", ".join(f"{name}: {4 + len(data)}" for name, data in sorted(read.items()))


def campaign(name: str, faults: int, seed: int, scratch: Path) -> DamageRun:
    """That many faults in copies of the archive of one source."""
    server, options = SOURCES[name]
    with SERVERS[server]() as source, recorded_archive(source, options, scratch / name) as archive:
        run = DamageRun(name, archive, scratch / name)
        asyncio.run(run.check_whole())
        for number in range(seed, seed + faults):
            asyncio.run(run.run(number))
    return run


def main() -> int:
    """The command line."""
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
