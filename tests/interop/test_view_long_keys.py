"""Keys that a real MariaDB shortens, for its engines allow no longer ones: they are the same at a MySQL 9.7, which refuses them."""

from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.judged_run import follow_view
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

pytestmark = pytest.mark.interop

TABLES = [
    "CREATE TABLE m (a VARCHAR(255), b VARCHAR(255), c VARCHAR(255), e TEXT, KEY (a)) ENGINE=MyISAM",
    "CREATE TABLE i (a VARCHAR(1000), b VARCHAR(1000), c INT, KEY ia (a)) ENGINE=InnoDB",
    "CREATE TABLE n (a VARCHAR(1000), KEY (a)) ENGINE=InnoDB CHARACTER SET latin1",
]
LATER = [
    "ALTER TABLE m ADD KEY mb (b)",
    "CREATE INDEX mc ON m (c) COMMENT 'x'",
    "ALTER TABLE m ADD KEY (c(255)), ADD KEY me (e(300))",
    "CREATE INDEX mp ON m (a(10), `b`(20))",
    "CREATE INDEX mt ON m (e)",
    "CREATE FULLTEXT INDEX mf ON m (a)",
    "CREATE INDEX ib ON i (b DESC) USING BTREE",
    "CREATE OR REPLACE INDEX ib ON i (b)",
    "ALTER TABLE i ADD COLUMN f VARCHAR(800) AFTER a, ADD INDEX (f)",
    "ALTER TABLE i MODIFY a VARCHAR(1200)",
    "CREATE TABLE k LIKE m",
]


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


def keys_of(server: Server) -> list[object]:
    return [
        [(key, column, length) for _t, _unique, key, _n, column, _by, _rows, length, *_rest in server.sql(f"SHOW KEYS FROM d.{table}")]
        for table in "mink"
    ]  # fmt: skip


@pytest.mark.parametrize("source", ["mariadb", "mariadb118"])
def test_keys_are_as_long_as_at_the_source(
    servers: ServerFactory, replica: Server, tmp_path: Path, source: str
) -> None:
    here = ViewTrial(servers(source).start(server_id=1), replica, tmp_path)
    with here.source.connect() as connection, connection.cursor() as cursor:
        for text in ("CREATE DATABASE d CHARACTER SET utf8mb4", "USE d", *TABLES, *LATER):
            cursor.execute(text)
        cursor.execute("FLUSH LOGS")
    _path, stops, error = follow_view(here)
    assert ([one.stop.reason.text for one in stops], error) == ([], 0)
    assert keys_of(here.replica) == keys_of(here.source)


def test_a_change_of_columns_that_makes_a_key_too_long_stops_the_view(
    servers: ServerFactory, replica: Server, tmp_path: Path
) -> None:
    here = ViewTrial(servers("mariadb").start(server_id=1), replica, tmp_path)
    with here.source.connect() as connection, connection.cursor() as cursor:
        for text in ("CREATE DATABASE d CHARACTER SET utf8mb4", "USE d", *TABLES):
            cursor.execute(text)
        cursor.execute("ALTER TABLE n CONVERT TO CHARACTER SET utf8mb4")
        cursor.execute("FLUSH LOGS")
    _path, stops, error = follow_view(here)
    assert [(one.stop.reason.name, one.stop.reason.error) for one in stops] == [("definition_not_in_target", 1071)]
    assert "the key a" in stops[0].stop.reason.text
    assert error == 0
