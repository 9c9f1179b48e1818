"""Stock mysqlbinlog by GTID: from the relay it prints what it prints from the source."""

import subprocess
from collections.abc import Sequence

import pytest

from deploy.servers import SERVERS
from protocol.gtid.mariadb import GtidPosition
from tests.interop.conftest import ChainFactory
from tests.interop.test_mysqlbinlog import PLAIN, plugins
from tests.support.chain import Chain
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER

pytestmark = pytest.mark.interop

GTID_OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON", "--binlog-format=ROW"]
NO_MARKERS = {"[account]": {"markers": "strip"}}


def printed(reader: str, port: int, user: str, password: str, options: Sequence[str], file: str) -> list[str]:
    """What it prints, or the last line of why it does not."""
    done = subprocess.run(
        [
            *SERVERS[reader].mysqlbinlog(),
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={port}",
            f"--user={user}",
            f"--password={password}",
            "--to-last-log",
            *(["--protocol=tcp"] if reader == "mariadb" else []),
            *PLAIN[reader],
            *plugins(reader),
            *options,
            file,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode == 0) == ("ERROR" not in done.stderr), done.stderr
    return lines if done.returncode == 0 else [done.stderr.splitlines()[-1]]


def check_printed(chain: Chain, reader: str, options: Sequence[str], file: str) -> list[str]:
    """From the relay as from the source, but for what the relay adds to a refusal. Returns it."""
    source = chain.source
    theirs = printed(reader, source.port, source.replication_user, source.replication_password, options, file)
    ours = printed(reader, chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, options, file)
    if theirs[0].startswith("ERROR"):
        assert ours[0].startswith(theirs[0]), options
    else:
        assert ours == theirs, options
    return ours


def fill(chain: Chain) -> None:
    chain.source.sql("CREATE DATABASE d")
    chain.source.sql("CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT)")
    for key in range(30):
        chain.source.sql(f"INSERT INTO d.t VALUES ({key}, REPEAT('x', {key * 200}))")
        if key % 11 == 10:
            chain.source.sql("FLUSH LOGS")
    chain.wait_published()


@pytest.mark.parametrize("name", ["mysql56", "mysql97"])
def test_mysqls_by_sets_of_gtids(chains: ChainFactory, name: str) -> None:
    chain = chains(name, options=GTID_OPTIONS, sections=NO_MARKERS)
    fill(chain)
    (uuid,) = chain.source.sql("SELECT @@GLOBAL.server_uuid")[0]
    first = chain.first_position().file
    some = f"{uuid}:3-5:9-20"
    counts = []
    for options in (
        ["--read-from-remote-source=BINLOG-DUMP-GTIDS"],
        ["--read-from-remote-source=BINLOG-DUMP-GTIDS", f"--exclude-gtids={some}"],
        ["--read-from-remote-source=BINLOG-DUMP-GTIDS", f"--exclude-gtids={uuid}:1-1000"],
        ["--read-from-remote-source=BINLOG-DUMP-GTIDS", f"--include-gtids={some}"],
        ["--read-from-remote-server", f"--include-gtids={some}"],
        ["--read-from-remote-server", f"--exclude-gtids={some}"],
    ):
        lines = check_printed(chain, "mysql97", options, first)
        counts.append(sum("GTID_NEXT= '" in line and uuid in line for line in lines))
    assert counts == [32, 17, 0, 15, 15, 17]


def test_mariadbs_by_positions(chains: ChainFactory) -> None:
    chain = chains("mariadb", options=["--binlog-format=ROW"], sections=NO_MARKERS)
    fill(chain)
    (end,) = chain.source.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0]
    (last,) = GtidPosition.from_text(end)
    first = chain.first_position().file
    counts = []
    for options in (
        ["--start-position=0-1-5"],
        ["--start-position=0-1-5", "--stop-position=0-1-20"],
        ["--start-position=0-1-5", "--stop-position=0-1-20", "--gtid-strict-mode=0"],
        [f"--start-position={last}"],
        ["--start-position=0-1-99999"],
    ):
        lines = check_printed(chain, "mariadb", ["--read-from-remote-server", *options], first)
        counts.append(sum(line.startswith("#") and "\tGTID " in line for line in lines))
    assert counts == [last.sequence_number - 5, 15, 15, 0, 0]
