"""Random statements of all functions, operators and clauses: through a view they leave the same rows on a MySQL 9.7, or stop by name.

The long form is `python -m tests.support.judged_run --source mysql56`.
"""

from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.judged_run import follow_view, run_seeds
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

pytestmark = pytest.mark.interop
_IN_STRICT_MODE = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20) CHARACTER SET utf8, n INT)",
    "SET sql_mode = 'STRICT_TRANS_TABLES'",
    "INSERT INTO d.t VALUES (1, '12', 1), (2, '5', 1), (3, '7', 1), (4, NULL, 1)",
    "UPDATE d.t SET n = 2 WHERE s = 5",
    "UPDATE d.t SET n = n + 10 WHERE 0 = 'abc' AND id < 3",
    "DELETE FROM d.t WHERE id IN ('3x')",
)
_SEEDS = (1, 2)
_FEWEST = 60
"""Statements of two seeds that a view passes on at least: more stop, or a source refuses them."""


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


@pytest.mark.parametrize(
    ("source", "binlog_format"), [("mysql56", "STATEMENT"), ("mariadb", "MIXED"), ("mariadb118", "STATEMENT")]
)
def test_random_statements_leave_the_same_rows_or_stop_the_view(
    servers: ServerFactory, replica: Server, tmp_path: Path, source: str, binlog_format: str
) -> None:
    there = servers(source).start(server_id=1)
    found = run_seeds(ViewTrial(there, replica, tmp_path), _SEEDS, binlog_format)
    assert found.differences == []
    assert found.passed_on > _FEWEST
    assert set(found.stops) <= {
        "statement_differs_in_target",
        "statement_not_in_target",
        "statement_not_surveyed",
        "sql_mode_not_in_target",
    }


def test_what_mysql_refuses_in_strict_mode_runs_without_it_for_a_mariadb(
    servers: ServerFactory, replica: Server, tmp_path: Path
) -> None:
    here = ViewTrial(servers("mariadb").start(server_id=1), replica, tmp_path)
    here.write(_IN_STRICT_MODE)
    _path, stops, error = follow_view(here)
    assert ([one.stop.reason.text for one in stops], error) == ([], 0)
    assert here.equal
