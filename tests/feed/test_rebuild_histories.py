"""Random histories whose tables are damaged in the lake and rebuilt from the archive, by processes that are killed at any moment."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deltalake import DeltaTable

from relay.feed.lake.lake_table import STALE_FROM
from tests.conftest import ServerFactory
from tests.support.feed_histories import FeedHistory, document_columns, lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop


def rebuilt(feed: SmallFeed, names: list[str], dies_after_s: float | None) -> int:
    """Run the command, which is killed after some seconds; return its exit code."""
    words = [word for name in names for word in ("--table", f"{feed.schema}.{name}")]
    command = [sys.executable, "-m", "relay", "feed", "rebuild", "--config", str(feed.config), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if dies_after_s is not None:
            time.sleep(dies_after_s)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
        _out, errors = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), errors
    return process.returncode


@pytest.mark.parametrize(("name", "seed"), [("mysql97", 11), ("mariadb", 12)])
def test_tables_that_were_damaged_are_the_sources_after_rebuilds_that_were_killed(
    tmp_path: Path, servers: ServerFactory, name: str, seed: int
) -> None:
    server = servers(name)
    server.start(server_id=1, options=["--binlog-format=ROW", "--character-set-server=latin1"])
    history = FeedHistory(server, seed)
    history.begin()
    for _step in history.steps(40):
        pass
    archive = copied_binlogs(server, tmp_path / "binlogs")
    trusted = [f"{history.schema}.*"]
    feed = SmallFeed(
        tmp_path, archive, history.schema, on_trouble="stop-table", batch_mb=1, spool_above_kb=1, trusted_images=trusted
    )
    assert feed.run() is None
    engine = feed.open()
    known = {key[1] for key, table in engine.tables.items() if table.current is not None and key not in engine.aside}
    engine.let_go()
    names = [one for one in history.tables if one in known and not feed.property(one, STALE_FROM)]
    assert len(names) > 1
    changes = {one: feed.rows(one, "changes") for one in names}
    for one in names:
        DeltaTable(str(tmp_path / "lake" / "current" / history.schema / one)).delete("_sequence % 2 = 0")
    chance = random.Random(seed)
    kills = 0
    while rebuilt(feed, names, 2 + 6 * chance.random() if kills < 4 else None):
        kills += 1
    for one in names:
        columns, rows = true_rows(server, history.schema, one)
        found = feed.lake().open("current", history.schema, one)
        assert found is not None
        documents = document_columns(server, history.schema, one)
        assert lake_rows(found.scan().read_all(), columns, documents) == rows, one
        assert feed.rows(one, "changes") == changes[one], one
    assert not (tmp_path / "lake" / "_rebuild").exists()
