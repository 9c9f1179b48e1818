"""A real MariaDB, a relay with a view of it, and a MySQL 9.7 with its defaults: every type of column, and definitions, byte by byte."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.mariadb_random import at_once
from tests.support.mariadb_view import check_mariadb_replica, mariadb_chain
from tests.support.mariadb_workload import DATABASE, PARTS, STOPPED, Part, mariadb_workload, run_part
from tests.support.workload import FORMATS

pytestmark = pytest.mark.interop
SEED = 18
STEPS = 100


# The other pairs: python -m tests.support.mariadb_run
@pytest.mark.parametrize(
    ("name", "binlog_format"),
    [("mariadb105", "ROW"), ("mariadb", "MIXED"), ("mariadb118", "ROW"), ("mariadb118", "STATEMENT")],
)
def test_9_7_has_the_bytes_of_the_whole_workload(
    servers: ServerFactory, tmp_path: Path, name: str, binlog_format: str
) -> None:
    # A file that is loaded as a statement may have texts with a time offset for its DATETIME; this one has none.
    accept = ["store datetime"] if binlog_format == "STATEMENT" else []
    with mariadb_chain(servers, name, tmp_path / "relay", accept=accept) as chain:
        replica = chain.view_replica()
        databases = mariadb_workload(chain.source, binlog_format)
        assert check_mariadb_replica(chain, replica, databases) > 1000
        (told,) = chain.view_sql("CALL binlog_relay.view_list()")
        assert "with statements about accounts" in (not_kept := str(told[-2]))
        assert ("change rows by statements" in not_kept) == (binlog_format != "ROW")


def test_9_7_has_the_bytes_of_six_sessions_that_wrote_at_once(servers: ServerFactory, tmp_path: Path) -> None:
    with mariadb_chain(servers, "mariadb", tmp_path / "relay") as chain:
        replica = chain.view_replica()
        databases = at_once(chain.source, SEED, FORMATS, STEPS)
        assert check_mariadb_replica(chain, replica, databases, keys_left_out=()) > 1000


@pytest.mark.parametrize("part", [part for part in PARTS if part.name in STOPPED], ids=lambda part: part.name)
def test_what_means_something_else_as_statements_stops_the_view_by_name(
    servers: ServerFactory, tmp_path: Path, part: Part
) -> None:
    with mariadb_chain(servers, "mariadb118", tmp_path / "relay") as chain:
        chain.source.sql(f"CREATE DATABASE {DATABASE}")
        run_part(chain.source, part, "STATEMENT")
        assert chain.wait_stopped()["reason"] == STOPPED[part.name]


def test_times_after_2038_as_statements_stop_the_replica(servers: ServerFactory, tmp_path: Path) -> None:
    """As rows they pass: the view does not read what stands in a statement's values."""
    with mariadb_chain(servers, "mariadb118", tmp_path / "relay") as chain:
        replica = chain.view_replica()
        chain.source.sql(f"CREATE DATABASE {DATABASE}")
        run_part(chain.source, next(part for part in PARTS if part.name == "times after 2038"), "STATEMENT")
        wait_until(lambda: replica.replica_status()["sql_errno"], "the replica stops", 60)
        (error,) = replica.sql(
            "SELECT LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0"
        )
        assert error == (1292,)
