"""From a dump by mariadb-dump to a replica of MySQL 9.7 behind a view, as `view seed` says it."""

import json
import subprocess
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.mariadb_view import SOURCES, check_mariadb_replica, mariadb_chain
from tests.support.relay_process import REPLICA_PASSWORD
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, ViewChain
from tests.support.view_seeding import dump

pytestmark = pytest.mark.interop
TOLD = (["--master-data=1"], ["--master-data=2"], ["--master-data=1", "--gtid"], ["--master-data=2", "--gtid"])
MADE = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, t VARCHAR(20)) COLLATE utf8mb4_general_ci",
    "INSERT INTO shop.orders VALUES (1, 'a')",
    "SET gtid_domain_id = 3",
    "INSERT INTO shop.orders VALUES (2, 'b')",
)
LATER = ("INSERT INTO shop.orders VALUES (3, 'c')", "SET gtid_domain_id = 3", "INSERT INTO shop.orders VALUES (4, 'd')")


def restore_as_told(advice: str, replica: Server) -> None:
    """Runs the command of the advice, with this server's client."""
    command = advice[advice.index("(echo") : advice.index(" | mysql.")]
    client = [*replica.mysql_client(), "--no-defaults", f"--socket={replica.socket}", "--user=root"]
    text = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    done = subprocess.run(client, input=text.stdout, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()


def seeded(chain: ViewChain, *words: str) -> tuple[str, list[str]]:
    """All that `view seed` prints, and its statements."""
    said = chain.relay.command("view", "seed", VIEW, *words)
    told = chain.relay.command("view", "seed", VIEW, *words, "--json")
    assert not said.returncode, said.stderr
    statements = [one.replace("'PASSWORD'", f"'{REPLICA_PASSWORD}'") for one in json.loads(told.stdout)["statements"]]
    return said.stdout + said.stderr, statements


@pytest.mark.parametrize("options", TOLD, ids=" ".join)
@pytest.mark.parametrize("name", SOURCES)
def test_a_dump_becomes_a_replica_by_what_view_seed_says(
    servers: ServerFactory, tmp_path: Path, name: str, options: list[str]
) -> None:
    with mariadb_chain(servers, name, tmp_path / "relay") as chain:
        chain.source.execute_many(list(MADE))
        path = tmp_path / "dump.sql"
        dump(chain.source, path, ["shop"], options, program=name)
        taken = str(chain.source.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
        chain.source.execute_many(list(LATER))
        chain.wait_viewed()
        advice, statements = seeded(chain, "--dump", str(path))
        assert "was it taken at the source?" not in advice
        by_gtid = seeded(chain, "--at", taken)[1]
        assert [one for one in by_gtid if "gtid_purged" in one] == [one for one in statements if "gtid_purged" in one]
        replica = chain.server("mysql97", REPLICA_DEFAULTS)
        restore_as_told(advice, replica)
        replica.execute_many(statements)
        assert check_mariadb_replica(chain, replica, ["shop"], keys_left_out=()) >= 8


def test_several_domains_are_one_place_and_positions_that_are_none_are_refused_with_what_is_wrong(
    servers: ServerFactory, tmp_path: Path
) -> None:
    with mariadb_chain(servers, "mariadb", tmp_path / "relay") as chain:
        chain.source.execute_many(list(MADE))
        end = chain.source.master_status()
        taken = str(chain.source.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
        _first, last = taken.split(",")
        chain.wait_viewed()
        backup = tmp_path / "backup"
        backup.mkdir()
        (backup / "mariadb_backup_binlog_info").write_text(f"{end.file}\t{end.position}\t{taken}\n")

        statements = seeded(chain, "--at", taken)[1]
        assert seeded(chain, "--at", f"{end.file}:{end.position}")[1] == statements
        assert seeded(chain, "--dump", str(backup))[1] == statements
        for words, why in (
            (("--at", last), "says nothing of 1 more domains"),
            (("--at", f"0-1-999999,{last}"), "domain 0 is at"),
            (("--at", "5-1-3"), "does not hold a transaction with which 5-1-3 ends"),
            (("--at", "0-1"), "0-1"),
        ):
            said = chain.relay.command("view", "seed", VIEW, *words)
            assert said.returncode and why in said.stderr, said
            asked = chain.relay.command("view", "find", VIEW, "--gtid", words[1])
            assert asked.returncode and why in asked.stderr, asked
