"""An upgrade in place, and the way back: archives that other versions wrote, and replicas that notice a reconnect only."""

import json
import shutil
import sqlite3
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.archive.catalog.catalog_layout import APPLICATION, LAYOUT
from tests.conftest import ServerFactory
from tests.interop.conftest import ChainFactory
from tests.support.binlog_comparison import check_archive
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.old_catalog import take_back
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

pytestmark = pytest.mark.interop

ARCHIVES = Path(__file__).resolve().parents[1] / "corpus" / "archives"
LAYOUT_OF_0_1_0 = 3
HELD = ["mysql-bin.000002", "mysql-bin.000003", "mysql-bin.000004"]


@dataclass(frozen=True)
class Gone:
    """A source that cannot be reached."""

    port: int
    replication_user: str = "repl"
    replication_password: str = "repl-password"


@pytest.fixture
def old(tmp_path: Path) -> RelayProcess:
    """A relay of today on the archive that 0.1.0 wrote; its source is gone."""
    with tarfile.open(ARCHIVES / "0.1.0.tar.gz") as packed:
        # Debian 12's Python (3.11.2) knows no filters.
        packed.extractall(tmp_path / "relay", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return RelayProcess(tmp_path / "relay", Gone(free_port()), port=free_port())


def layout(archive: Path) -> int:
    db = sqlite3.connect(archive / "catalog.sqlite")
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


def ledger(relay: RelayProcess) -> list[str]:
    return [json.loads(line)["kind"] for line in relay.command("archive", "ledger", "--json").stdout.splitlines()]


def test_an_archive_of_0_1_0_is_taken_over_with_all_that_it_knows(old: RelayProcess) -> None:
    assert layout(old.archive) == LAYOUT_OF_0_1_0
    with old:
        assert [row[0] for row in old.sql("SHOW BINARY LOGS")] == HELD
        assert old.stop() == 0
    assert layout(old.archive) == LAYOUT
    assert check_archive(old.archive, [old.directory / "source" / name for name in HELD]) > 0
    verified = old.command("archive", "verify", "--deep")
    assert (verified.returncode, verified.stdout) == (0, "The archive is fine.\n")
    assert ledger(old) == ["purged"]


def test_a_replica_is_served_from_an_archive_of_0_1_0(old: RelayProcess, servers: ServerFactory) -> None:
    replica = servers("mysql56").start(server_id=10)
    replica.sql("CREATE DATABASE shop")
    replica.sql(
        "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, item VARCHAR(40), price DECIMAL(8,2)) ENGINE=InnoDB"
    )
    with old:
        replica.attach("127.0.0.1", old.port, REPLICA_USER, REPLICA_PASSWORD, HELD[0], 4)
        end = (old.directory / "source" / HELD[-1]).stat().st_size
        replica.wait_caught_up(HELD[-1], end)
        assert replica.sql("SELECT min(item), max(item), count(*) FROM shop.orders") == [("item 1.0", "item 3.2", 9)]


def test_a_newer_archive_is_refused_by_name_and_a_rebuild_is_the_way_back(old: RelayProcess) -> None:
    with old:
        old.stop()
    db = sqlite3.connect(old.archive / "catalog.sqlite")
    db.executescript(f"PRAGMA user_version = {LAYOUT + 1}; PRAGMA application_id = {APPLICATION + LAYOUT + 1};")
    db.close()
    old.start(wait=False)
    assert old.wait_ended() == 2
    (refused,) = old.logged("archive_not_opened")
    assert f"has layout {LAYOUT + 1}: a newer binlog-relay wrote it" in refused["what"]
    assert "Nothing was changed" in refused["advice"]
    assert old.command("archive", "list").returncode == 2
    assert not list(old.archive.glob("catalog.sqlite.corrupt-*"))

    assert old.command("archive", "rebuild").returncode == 0
    with old:
        assert [row[0] for row in old.sql("SHOW BINARY LOGS")] == HELD
    assert ledger(old) == ["purged", "catalog_set_aside"]


def rows(server: Server) -> int:
    return int(server.sql("SELECT count(*) FROM shop.orders")[0][0])


def begun(chain: Chain) -> Server:
    chain.source.sql("CREATE DATABASE shop")
    chain.source.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=InnoDB")
    replica = chain.replica("mysql56")
    sell(chain, 3)
    replica.wait_for_source(chain.source)
    return replica


def sell(chain: Chain, count: int) -> None:
    for number in range(count):
        chain.source.sql(f"INSERT INTO shop.orders (n) VALUES ({number})")
        chain.source.sql("FLUSH BINARY LOGS")


def test_replicas_notice_an_upgrade_as_a_reconnect(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    replica = begun(chain)
    assert chain.relay.stop() == 0
    take_back(chain.relay.archive / "catalog.sqlite", LAYOUT_OF_0_1_0)
    for newer in (*chain.relay.archive.glob("*.sum*"), chain.relay.archive / "ledger.jsonl"):
        newer.unlink()
    sell(chain, 2)
    wait_until(lambda: replica.replica_status()["io_running"] == "Connecting", "the replica misses the relay")
    chain.relay.start()
    replica.wait_for_source(chain.source)
    status = replica.replica_status()
    assert (rows(replica), status["io_running"], status["io_errno"], status["sql_errno"]) == (5, "Yes", 0, 0)
    assert layout(chain.relay.archive) == LAYOUT
    assert chain.check_archive() > 0


def test_a_catalog_from_before_an_upgrade_that_is_put_back_learns_what_has_come_since(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    replica = begun(chain)
    chain.relay.stop()
    catalog = chain.relay.archive / "catalog.sqlite"
    assert not list(chain.relay.archive.glob("catalog.sqlite-*"))
    shutil.copy2(catalog, chain.relay.directory / "kept")
    chain.relay.start()
    sell(chain, 3)
    replica.wait_for_source(chain.source)
    chain.relay.stop()
    shutil.copy2(chain.relay.directory / "kept", catalog)
    chain.relay.start()
    sell(chain, 1)
    replica.wait_for_source(chain.source)
    assert rows(replica) == 7
    assert chain.check_archive() > 0
    chain.relay.stop()
    assert chain.relay.command("archive", "verify", "--deep").stdout == "The archive is fine.\n"
