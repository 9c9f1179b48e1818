"""Statements as applications, ORMs, tools and nightly jobs write them: a view passes all of them on, and they leave the same rows on a
MySQL 9.7. What servers compute differently for ordinary values is not among them: test_view_judged_statements.py has it.
"""

from pathlib import Path
from typing import Final

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.judged_run import follow_view
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

pytestmark = pytest.mark.interop

_STATEMENTS: Final = Path(__file__).parents[1] / "support" / "ordinary_statements.sql"
_SECTION, _ONLY = "-- == ", "-- only "
_TOO_LONG: Final = (1071, 1146)
"""A key that is too long for MySQL 5.6, and the table that it then does not have."""
_STRICT: Final = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"


def sections(flavour: str) -> dict[str, list[str]]:
    """Return the statements for a source by the name of their database."""
    found: dict[str, list[str]] = {}
    name = only = ""
    for line in _STATEMENTS.read_text("utf-8").splitlines():
        if line.startswith(_SECTION):
            name = line.removeprefix(_SECTION).split()[0]
        elif line.startswith(_ONLY):
            only = line.removeprefix(_ONLY)
        elif line and not line.startswith("--"):
            if only in ("", flavour):
                found.setdefault(name, []).append(line.removesuffix(";"))
            only = ""
    return found


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


@pytest.mark.parametrize(
    ("source", "binlog_format", "sql_mode"),
    [
        ("mysql56", "STATEMENT", ""),
        ("mysql56", "STATEMENT", _STRICT),
        ("mariadb", "STATEMENT", ""),
        ("mariadb", "STATEMENT", f"{_STRICT},ERROR_FOR_DIVISION_BY_ZERO"),
        ("mariadb118", "MIXED", f"{_STRICT},ERROR_FOR_DIVISION_BY_ZERO"),
        ("mariadb118", "STATEMENT", ""),
    ],
)
def test_ordinary_statements_pass_a_view_and_leave_the_same_rows(
    servers: ServerFactory, replica: Server, tmp_path: Path, source: str, binlog_format: str, sql_mode: str
) -> None:
    here = ViewTrial(servers(source).start(server_id=1), replica, tmp_path)
    every = sections(here.source.flavour)
    refused = [
        error for name, texts in every.items() for error in _write(here.source, name, texts, binlog_format, sql_mode)
    ]
    here.source.sql("FLUSH LOGS")
    _path, stops, error = follow_view(here)
    assert [one.stop.reason.text for one in stops] == []
    assert error == 0
    assert refused == []
    for name in every:
        assert here.tables(here.source, name) == here.tables(here.replica, name), name


def _write(server: Server, name: str, statements: list[str], binlog_format: str, sql_mode: str) -> list[str]:
    """Run the statements in a database of their own; return what the source refuses."""
    refused = []
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute(f"SET binlog_format = {binlog_format}, sql_mode = '{sql_mode}', time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {name}")
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in _TOO_LONG:
                    refused.append(f"{error.args}: {statement}")
    return refused
