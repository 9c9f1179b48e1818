"""Stock mysqlbinlog that stays (--stop-never) or begins somewhere, at the relay: what it writes is what the source has."""

import base64
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.servers import SERVERS, Server
from tests.interop.conftest import ChainFactory
from tests.interop.test_mysqlbinlog import PLAIN, plugins
from tests.support.chain import Chain, last_transaction, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

READERS = [("mysql56", "mariadb"), ("mysql56", "mysql97"), ("mariadb", "mariadb")]
WORK = ["CREATE DATABASE one", "CREATE TABLE one.t (id INT NOT NULL PRIMARY KEY, t VARCHAR(50)) ENGINE=InnoDB"]
IN_USE_AT = 4 + 17


def command(reader: str, port: int, user: str, password: str, *options: str) -> list[str]:
    """mysqlbinlog of this product, reading from a server on `port`."""
    return [
        *SERVERS[reader].mysqlbinlog(),
        "--no-defaults",
        "--read-from-remote-server",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--user={user}",
        f"--password={password}",
        "--verify-binlog-checksum",
        *PLAIN[reader],
        *(["--protocol=tcp"] if reader == "mariadb" else []),
        *plugins(reader),
        *options,
    ]


def at_relay(reader: str, chain: Chain, *options: str) -> list[str]:
    return command(reader, chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, *options)


def at_source(reader: str, source: Server, *options: str) -> list[str]:
    return command(reader, source.port, source.replication_user, source.replication_password, *options)


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The program while the block goes on; it must not have ended by itself."""
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
    finally:
        process.kill()
        process.wait()


def text_of(arguments: list[str]) -> str:
    """What the program prints."""
    done = subprocess.run(arguments, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode("utf-8", "backslashreplace")


def closed(data: bytes) -> bytes:
    """A binlog without the in-use bit of its format description, which a file that is open has at its source."""
    patched = bytearray(data)
    patched[IN_USE_AT] &= 0xFE
    return bytes(patched)


@pytest.fixture(params=READERS, ids=" read by ".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Source and reader."""
    source_name, reader = request.param
    return source_name, reader


@pytest.mark.parametrize("markers", ["strip", "tbm"])
def test_raw_files_of_a_reader_that_never_stops_grow_with_the_source(
    chains: ChainFactory, tmp_path: Path, pair: tuple[str, str], markers: str
) -> None:
    source_name, reader = pair
    chain = chains(source_name, markers=markers)
    first = chain.first_position().file
    chain.source.execute_many(WORK)
    chain.wait_archived()  # before that the relay refuses dumps: it has not heard from its source yet
    out = tmp_path / "raw"
    out.mkdir()
    follow = at_relay(reader, chain, "--raw", "--stop-never", f"--result-file={out}/", first)

    def is_equal() -> bool:
        names = [path.name for path in chain.source.binlogs()]
        if [path.name for path in sorted(out.iterdir())] != names:
            return False
        if markers == "strip":
            return all((out / path.name).read_bytes() == closed(path.read_bytes()) for path in chain.source.binlogs())
        return all((out / name).read_bytes() == (chain.relay.archive / name).read_bytes() for name in names)

    with running(follow, tmp_path / "follow.log"):
        light_workload(chain.source)
        chain.source.sql("FLUSH LOGS")
        light_workload(chain.source, database="second")
        chain.wait_archived()
        wait_until(is_equal, "the files are the source's", 30)
        time.sleep(3)  # in silence; the relay's source sends heartbeats every second, this reader is owed none
        chain.source.sql("INSERT INTO one.t VALUES (1, 'after the silence')")
        chain.source.restart()
        chain.source.sql("INSERT INTO one.t VALUES (2, 'after the restart')")
        chain.wait_archived()
        wait_until(is_equal, "the files are the source's, after a silence and a restart", 30)
    assert chain.relay.logged("dump_refused") == []
    assert len(chain.relay.logged("dump_started")) == 1


def test_the_text_of_a_reader_that_never_stops_has_each_new_transaction(
    chains: ChainFactory, tmp_path: Path, pair: tuple[str, str]
) -> None:
    source_name, reader = pair
    chain = chains(source_name, options=["--binlog-format=STATEMENT"])
    chain.source.execute_many(WORK)
    chain.wait_archived()
    out = tmp_path / "text.sql"
    follow = at_relay(reader, chain, "--stop-never", f"--result-file={out}", chain.first_position().file)
    with running(follow, tmp_path / "follow.log"):
        for number in range(20):
            if number % 5 == 4:
                chain.source.sql("FLUSH LOGS")
            chain.source.sql(f"INSERT INTO one.t VALUES ({number}, 'number {number:04}')")
        end = chain.source.binlogs()[-1].name
        # It flushes its output when it likes: a large transaction behind pushes the small ones out.
        chain.source.sql(f"CREATE TABLE one.pushes (a INT) /* {'x' * 100_000} */")
        wait_until(lambda: out.exists() and "number 0019" in out.read_text(errors="replace"), f"all up to {end}", 30)
    text = out.read_text(errors="replace")
    assert [f"number {number:04}" in text for number in range(20)] == [True] * 20


@pytest.mark.parametrize("options", [[], ["--binlog-checksum=NONE"]], ids=["crc32", "none"])
def test_text_from_a_start_position_to_the_last_file_is_what_the_source_gives(
    chains: ChainFactory, pair: tuple[str, str], options: list[str]
) -> None:
    source_name, reader = pair
    chain = chains(source_name, options=options, markers="strip")
    chain.source.execute_many(WORK)
    light_workload(chain.source)
    chain.source.sql("INSERT INTO one.t VALUES (1, 'the first that is asked for')")
    file, offsets, _ = last_transaction(chain.source)
    chain.source.sql("FLUSH LOGS")
    light_workload(chain.source, database="second")
    chain.wait_archived()
    wanted = (f"--start-position={offsets[0]}", "--to-last-log", file)
    ours = text_of(at_relay(reader, chain, *wanted))
    theirs = text_of(at_source(reader, chain.source, *wanted))
    assert len(ours) > 10_000
    assert without_in_use(ours) == without_in_use(theirs)


def without_in_use(text: str) -> str:
    """Without what mysqlbinlog says of a file that is open at its source, and without the bytes of format descriptions:
    they hold the in-use bit, and where there are no checksums the source leaves the CRC32 in them as it was."""
    kept = []
    for block in re.split(r"(?m)^(BINLOG '\n[^']*'/\*!\*/;)$", text):
        if block.startswith("BINLOG '") and base64.b64decode(block.split("\n")[1])[4] == 15:
            continue
        kept += [line for line in block.splitlines() if "Start: binlog v" not in line and "in use" not in line]
    return "\n".join(kept)


def test_a_start_inside_a_transaction_is_refused_in_words(chains: ChainFactory, pair: tuple[str, str]) -> None:
    source_name, reader = pair
    chain = chains(source_name)
    chain.source.execute_many([*WORK, "INSERT INTO one.t VALUES (1, 'x')"])
    file, offsets, end = last_transaction(chain.source)
    chain.wait_archived()
    done = subprocess.run(
        at_relay(reader, chain, f"--start-position={offsets[1]}", file), capture_output=True, check=False
    )
    said = done.stderr.decode(errors="replace")
    assert done.returncode != 0
    assert f"{file}:{offsets[1]} is inside the transaction {offsets[0]}-{end}" in said


def test_two_readers_that_never_stop_do_not_end_each_other_when_each_has_an_id(
    chains: ChainFactory, tmp_path: Path
) -> None:
    chain = chains("mysql56")
    chain.source.execute_many(WORK)
    chain.wait_archived()
    first = chain.first_position().file
    readers = [
        at_relay("mariadb", chain, "--stop-never", "--stop-never-slave-server-id=901", first),
        at_relay("mysql97", chain, "--stop-never", "--connection-server-id=902", first),
    ]
    with running(readers[0], tmp_path / "a.log"), running(readers[1], tmp_path / "b.log"):
        wait_until(lambda: len(chain.relay.logged("dump_started")) == 2, "both are served")
        chain.source.sql("INSERT INTO one.t VALUES (1, 'x')")
        time.sleep(1)
    assert {line["server_id"] for line in chain.relay.logged("dump_started")} == {901, 902}
