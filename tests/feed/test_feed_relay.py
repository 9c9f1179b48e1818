"""A feed's status has the lag that the archive's relay reports, and none while the relay is stopped, dead, or refused by its source."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.feed_lake import SmallFeed
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop


@pytest.fixture
def source(servers: ServerFactory) -> Server:
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)"]
    )
    return server


@pytest.fixture
def relay(tmp_path: Path, source: Server) -> Iterator[RelayProcess]:
    with RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"[account]": {"admin": True}}) as running:
        end = source.master_status()
        running.wait_archived(end.file, end.position)
        yield running


@pytest.fixture
def feed(tmp_path: Path, relay: RelayProcess) -> SmallFeed:
    made = SmallFeed(tmp_path / "feed", relay.archive, "shop", relay=str(relay.config), on_trouble="stop-table")
    assert made.run() is None
    return made


def status(feed: SmallFeed) -> tuple[int, list[dict[str, Any]], list[str]]:
    """Return the exit code, the tables and the findings of `feed status`."""
    words = [sys.executable, "-m", "relay", "feed", "status", "--json", "--config", str(feed.config)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return (
        done.returncode,
        [one for one in lines if "table" in one],
        [one["finding"] for one in lines if "finding" in one],
    )


def test_the_lag_against_the_source_is_the_relays_word(feed: SmallFeed) -> None:
    wait_until(lambda: status(feed)[1][0]["relay_follows"] is True, "the relay says its lag", 40)
    code, [table], findings = status(feed)
    assert (code, findings) == (0, [])
    assert table["source_behind_s"] is not None and table["source_behind_s"] < 60


def test_a_relay_that_was_stopped_by_an_operator_has_no_lag(feed: SmallFeed, relay: RelayProcess) -> None:
    relay.sql("STOP SLAVE")
    code, [table], [finding] = status(feed)
    assert code == 1 and table["source_behind_s"] is None and table["relay_follows"] is False
    assert "The relay does not follow its source" in finding


def test_a_relay_whose_source_is_down_has_no_lag(feed: SmallFeed, source: Server) -> None:
    source.stop()
    wait_until(lambda: status(feed)[1][0]["relay_follows"] is False, "the relay says that the source is down", 40)
    code, [table], [finding] = status(feed)
    assert code == 1 and table["source_behind_s"] is None
    assert "The relay does not follow its source" in finding


def test_a_relay_that_died_has_no_lag(feed: SmallFeed, relay: RelayProcess) -> None:
    relay.kill()
    code, [table], [finding] = status(feed)
    assert code == 1 and table["source_behind_s"] is None and table["relay_follows"] is False
    assert "The relay does not run" in finding
