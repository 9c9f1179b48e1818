"""Batches that do not fit into memory: their rows go to disk, come back in pieces, and reach the lake in one commit all the same."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import pyarrow as pa

from deploy.servers import Server
from relay.feed.feed_run import is_passing
from relay.feed.spool.spool_directory import SpoolDirectory, SpoolFull
from tests.conftest import ServerFactory
from tests.support.dying_lake import Died, dying_behind
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

TABLES = ("plain", "parts", "two", "none", "doc", "hot")
STATEMENTS = (
    "CREATE TABLE plain (id INT PRIMARY KEY, s VARCHAR(40), d DATETIME(3), t TIMESTAMP(2) NULL, x DECIMAL(20,3), b BLOB)",
    "CREATE TABLE parts (id INT PRIMARY KEY, s VARCHAR(40), n INT)",
    "CREATE TABLE two (k VARCHAR(10), n BIGINT UNSIGNED, f DOUBLE, PRIMARY KEY (k, n))",
    "CREATE TABLE none (id INT, s VARCHAR(40), f DOUBLE)",
    "CREATE TABLE doc (id INT PRIMARY KEY, j JSON)",
    "CREATE TABLE hot (id INT PRIMARY KEY, n INT)",
    "INSERT INTO plain SELECT seq, CONCAT('grün ', seq), '2020-02-29 12:34:56.789', '2020-01-01 00:00:00.5', seq / 8, CHAR(seq) "
    "FROM seq_1_to_60",
    "INSERT INTO parts SELECT seq, 'before', seq FROM seq_1_to_60",
    "INSERT INTO none SELECT seq % 7, 'equal', 0 FROM seq_1_to_40",
    "INSERT INTO hot VALUES (1, 0)",
    "BEGIN",
    "INSERT INTO plain SELECT seq, REPEAT('x', 30), '2021-01-01', NULL, -seq, NULL FROM seq_61_to_200",
    "UPDATE plain SET s = 'it''s', x = x + 1 WHERE id % 3 = 0",
    "UPDATE plain SET id = id + 1000 WHERE id % 10 = 0",
    "DELETE FROM plain WHERE id % 7 = 1",
    "INSERT INTO plain SELECT seq * 70 + 1, 'again', NULL, NULL, NULL, x'00ff' FROM seq_0_to_2",
    "INSERT INTO two SELECT CHAR(97 + seq % 5), seq, seq / 3 FROM seq_1_to_100",
    "UPDATE two SET k = 'z' WHERE n % 4 = 0",
    "DELETE FROM none WHERE id = 3",
    "INSERT INTO none SELECT 3, 'equal', -0e0 FROM seq_1_to_20",
    "UPDATE none SET s = 'other' WHERE id = 5 LIMIT 3",
    "INSERT INTO doc SELECT seq, CONCAT('{\"a\": [', seq, ', null]}') FROM seq_1_to_60",
    *("UPDATE hot SET n = n + 1" for _ in range(40)),
    "COMMIT",
    "SET binlog_row_image = MINIMAL",
    "BEGIN",
    "UPDATE parts SET n = -n WHERE id <= 40",
    "UPDATE parts SET s = 'twice' WHERE id BETWEEN 20 AND 50",
    "DELETE FROM parts WHERE id % 9 = 0",
    "COMMIT",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    """A server, and all that it wrote."""
    server = module_servers("mariadb")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE large CHARACTER SET utf8mb4", "USE large", *STATEMENTS])
    return server, copied_binlogs(server, tmp_path_factory.mktemp("binlogs"))


def fed(directory: Path, archive: Path, **more: object) -> SmallFeed:
    (directory / "spool").mkdir(parents=True, exist_ok=True)
    keys = {"spool_above_kb": 8, "spool_directory": str(directory / "spool"), **more}
    return SmallFeed(directory, archive, "large", **keys)


def shown(feed: SmallFeed, server: Server) -> dict[str, object]:
    """Every table of the lake, in the words of `true_rows`."""
    found = {}
    for name in TABLES:
        columns, _rows = true_rows(server, "large", name)
        found[name] = lake_rows(pa.Table.from_pylist(feed.rows(name) or []), columns)
    return found


def left(feed: SmallFeed) -> list[Path]:
    """What is in its spool directory."""
    return sorted((feed.config.parent / "spool").iterdir())


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_what_came_in_pieces_is_as_on_the_source_in_as_many_commits(
    tmp_path: Path, source: tuple[Server, Path], format: str
) -> None:
    server, archive = source
    large, small = (
        fed(tmp_path / "a", archive, format=format),
        SmallFeed(tmp_path / "b", archive, "large", format=format),
    )
    assert large.run() is None
    assert small.run() is None
    assert shown(large, server) == {name: true_rows(server, "large", name)[1] for name in TABLES}
    for name in TABLES:
        assert large.rows(name, "changes") == small.rows(name, "changes")
        assert large.commits(name) == small.commits(name)
    assert left(large) == []


@pytest.mark.parametrize("count", [8, 10, 12])
def test_a_feed_that_dies_between_two_tables_goes_on_where_each_is(
    tmp_path: Path, source: tuple[Server, Path], count: int
) -> None:
    server, archive = source
    feed = fed(tmp_path, archive, modes=["current"])
    with pytest.raises(Died), dying_behind(count) as done:
        feed.run()
    assert len(done) == count
    assert feed.run() is None
    assert shown(feed, server) == {name: true_rows(server, "large", name)[1] for name in TABLES}


def test_what_a_killed_feed_left_on_the_disk_the_next_one_removes(tmp_path: Path, source: tuple[Server, Path]) -> None:
    server, archive = source
    feed = fed(tmp_path, archive)
    command = [sys.executable, "-m", "relay", "feed", "--config", str(feed.config), "--once"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    ends = time.monotonic() + 60
    while not list((tmp_path / "spool").glob("*/rows-*")) and time.monotonic() < ends:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    [directory] = left(feed)
    in_use = SpoolDirectory(tmp_path / "spool")  # another feed's, which lives
    assert not directory.exists()
    assert left(feed) == [in_use.path]
    assert feed.run() is None
    assert left(feed) == [in_use.path]
    in_use.close()
    assert left(feed) == []
    assert shown(feed, server) == {name: true_rows(server, "large", name)[1] for name in TABLES}


def test_a_full_disk_is_said_so_and_nothing_is_lost_or_left(tmp_path: Path, source: tuple[Server, Path]) -> None:
    server, archive = source
    feed = fed(tmp_path, archive)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # of a file, as the disk would end there
    try:
        with pytest.raises(SpoolFull) as full:
            feed.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "spool_directory" in str(full.value)
    assert str(tmp_path / "spool") in str(full.value)
    assert is_passing(full.value)  # somebody may make room
    assert left(feed) == []
    assert feed.run() is None
    assert shown(feed, server) == {name: true_rows(server, "large", name)[1] for name in TABLES}


def test_a_feed_that_is_ended_by_a_signal_leaves_nothing(tmp_path: Path, source: tuple[Server, Path]) -> None:
    feed = fed(tmp_path, source[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", "feed", "--config", str(feed.config)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("feeding")
    [_directory] = left(feed)
    process.terminate()
    assert process.wait(timeout=60) == 0
    process.stderr.close()
    assert left(feed) == []
