"""Every source and replica that go together, in every binlog format, with everything a source is likely to write."""

import subprocess
from pathlib import Path

import pytest

from deploy.servers import SERVERS, Server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain
from tests.support.workload import (
    DATABASE,
    FORMATS,
    create_schema,
    create_select,
    full_workload,
    light_workload,
    mixed_engine_transactions,
    session,
)

pytestmark = pytest.mark.interop

REPLICAS = {
    "mysql56": ("mysql56", "mysql97", "mariadb", "mariadb118"),
    "mysql97": ("mysql97",),
    "mariadb": ("mariadb", "mariadb118"),
    # An older one stops at what it leaves of temporary tables: test_support_matrix.py.
    "mariadb118": ("mariadb118",),
}
# MySQL's mysqlbinlog cannot read MariaDB's events; MariaDB's reads both.
READERS = {
    "mysql56": ("mariadb", "mysql97"),
    "mysql97": ("mysql97",),
    "mariadb": ("mariadb",),
    "mariadb118": ("mariadb118",),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("binlog_format", FORMATS)
@pytest.mark.parametrize("source_name", list(REPLICAS))
def test_replicas_and_archive_equal_the_source_after_the_full_workload_with_a_restart_in_it(
    chains: ChainFactory, source_name: str, binlog_format: str
) -> None:
    chain = chains(source_name, options=[f"--binlog-format={binlog_format}"])
    replicas = chain.replicas(REPLICAS[source_name])
    full_workload(chain.source, binlog_format)
    chain.source.restart()
    light_workload(chain.source, binlog_format, database="restarted")
    check_all(chain, replicas, READERS[source_name], [DATABASE, "restarted"])


@pytest.mark.parametrize("source_name", list(REPLICAS))
def test_a_source_without_checksums_is_relayed_as_it_is(chains: ChainFactory, source_name: str) -> None:
    chain = chains(source_name, options=["--binlog-checksum=NONE", "--binlog-format=MIXED"])
    replicas = chain.replicas(REPLICAS[source_name])
    light_workload(chain.source)
    chain.source.restart()
    light_workload(chain.source, database="restarted")
    check_all(chain, replicas, READERS[source_name], [DATABASE, "restarted"])


def check_all(chain: Chain, replicas: list[Server], readers: tuple[str, ...], databases: list[str]) -> None:
    assert chain.check_archive() > 1000
    chain.check_tables(replicas, databases)
    assert chain.relay.logged("archive_ledger") == []
    files = [chain.relay.archive / path.name for path in chain.source.binlogs()]
    for reader in readers:
        check_readable(reader, files)


def check_readable(reader: str, files: list[Path]) -> None:
    """Stock mysqlbinlog of this product reads the files, checksums verified, without a complaint."""
    done = subprocess.run(
        [*SERVERS[reader].mysqlbinlog(), "--no-defaults", "--verify-binlog-checksum", *map(str, files)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr.upper(), done.stderr


def test_tables_that_mysql56_makes_by_a_select_in_row_format_arrive(chains: ChainFactory) -> None:
    chain = chains("mysql56", options=["--binlog-format=ROW"])
    replicas = chain.replicas(("mysql56", "mariadb"))
    create_schema(chain.source, "ROW", DATABASE)
    with session(chain.source, "ROW", DATABASE) as execute:
        mixed_engine_transactions(execute)
        create_select(execute)
    assert chain.check_archive() > 100
    chain.check_tables(replicas, [DATABASE])
