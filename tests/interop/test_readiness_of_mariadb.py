"""The audit `readiness --for mysql-9.7` on the binlogs of a real MariaDB: each stop of a view with its place and how many there are."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers import Server
from relay.audit.jobs.view_stops import left_out_section, view_stops
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditOptions
from relay.view.inspect.dry_run_stops import StopsFound
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop


def stops_of(source: Server, directory: Path, statements: Iterable[str], target: str = "mysql-9.7") -> StopsFound:
    source.execute_many(["CREATE DATABASE d CHARACTER SET latin1", "USE d", *statements])
    source.sql("FLUSH LOGS")
    directory.mkdir()
    for path in source.binlogs()[:-1]:
        shutil.copy(path, directory / path.name)
    return view_stops(Audit(None, AuditOptions(str(directory), target=target)), of_mariadb=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mariadb", "mariadb118"])
def test_rows_of_common_tables_have_no_stop(servers: ServerFactory, tmp_path: Path, name: str) -> None:
    source = servers(name).start(server_id=1, options=["--binlog-format=ROW"])
    table = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c JSON, d DATETIME(3))"
    insert = "INSERT INTO t VALUES (1, 'a', '{}', NOW(3)), (2, '', NULL, NULL)"
    found = stops_of(source, tmp_path / "archive", [table, insert, "UPDATE t SET b = 'b'", "DELETE FROM t LIMIT 1"])
    assert (found.stops, found.unread) == ([], [])


def test_each_stop_is_told_with_its_place_and_what_to_do(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mariadb").start(server_id=1, options=["--binlog-format=STATEMENT"])
    found = stops_of(
        source,
        tmp_path / "archive",
        [
            "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))",
            "SET sql_mode = 'EMPTY_STRING_IS_NULL'",
            "INSERT INTO t VALUES (1, '')",
            "INSERT INTO t VALUES (2, ''), (3, '')",
            "SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT'",
            "UPDATE t SET a = a + 10",
            "SET sql_mode = DEFAULT, NAMES latin1 COLLATE latin1_swedish_nopad_ci",
            "DELETE FROM t WHERE b = 'x'",
            "SET NAMES latin1",
            "INSERT INTO t VALUES (7, 'whole')",
            "GRANT SELECT ON d.* TO somebody@localhost IDENTIFIED BY 'word'",
        ],
    )
    assert found.unread == []
    assert found.left_out is not None
    kept = left_out_section(found.left_out)
    assert list(kept.tables[0].rows) == [("statements about accounts", 1)]
    assert "1 transactions change rows by statements, the first at mysql-bin.0000" in kept.text
    assert found.counts == {"sql_mode_not_in_target": 3, "collation_not_in_target": 1}
    assert [stop.offset for stop in found.stops] == sorted(stop.offset for stop in found.stops)
    for stop in found.stops:
        data = (tmp_path / "archive" / stop.file).read_bytes()
        assert data[stop.offset + 4] == 162  # a MariaDB's Gtid event
        assert stop.reason.advice
