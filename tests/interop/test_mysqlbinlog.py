"""Stock mysqlbinlog as a client of the relay: it fetches what it would fetch from the source."""

import subprocess
from pathlib import Path

import pytest

from deploy.servers import SERVERS
from tests.interop.conftest import ChainFactory
from tests.support.binlog_comparison import check_relayed
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

# Without TLS: MySQL 5.6 has none that is accepted today, and the same words are said to the source and to the relay.
PLAIN = {"mariadb": [], "mysql97": ["--ssl-mode=DISABLED"]}


def fetch(reader: str, port: int, user: str, password: str, first: str, into: Path) -> dict[str, bytes]:
    """The files that mysqlbinlog of this product writes with --raw, from `first` to the newest."""
    into.mkdir()
    done = subprocess.run(
        [
            *SERVERS[reader].mysqlbinlog(),
            "--no-defaults",
            "--read-from-remote-server",
            "--host=127.0.0.1",
            f"--port={port}",
            f"--user={user}",
            f"--password={password}",
            "--raw",
            "--to-last-log",
            "--verify-binlog-checksum",
            f"--result-file={into}/",
            *PLAIN[reader],
            *(["--protocol=tcp"] if reader == "mariadb" else []),
            *plugins(reader),
            first,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in sorted(into.iterdir())}


def plugins(reader: str) -> list[str]:
    """Where MySQL 9.7's client finds mysql_native_password, which is no longer built in."""
    if reader != "mysql97":
        return []
    program = Path(SERVERS[reader].mysqlbinlog()[-1])
    return [f"--plugin-dir={program.parent.parent / 'lib/mysql/plugin'}"]


@pytest.mark.parametrize(
    ("source_name", "reader", "options"),
    [
        ("mysql56", "mariadb", []),
        ("mysql56", "mysql97", []),
        ("mysql56", "mysql97", ["--binlog-checksum=NONE"]),
        ("mariadb", "mariadb", []),
        ("mariadb", "mariadb", ["--binlog-checksum=NONE"]),
    ],
)
def test_raw_files_fetched_from_the_relay_are_those_of_the_source(
    chains: ChainFactory, tmp_path: Path, source_name: str, reader: str, options: list[str]
) -> None:
    chain = chains(source_name, options=options)
    light_workload(chain.source)
    chain.wait_published()
    source, first = chain.source, chain.first_position().file
    theirs = fetch(
        reader, source.port, source.replication_user, source.replication_password, first, tmp_path / "theirs"
    )
    ours = fetch(reader, chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, first, tmp_path / "ours")
    assert list(ours) == list(theirs) == [path.name for path in source.binlogs()]
    for name, data in ours.items():
        assert check_relayed(data, theirs[name], name) > 1
    assert ours[first] != theirs[first]  # the markers
