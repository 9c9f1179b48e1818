"""Random statements over tables that refer to each other, from a real source through a view to a real MySQL 9.7, whose server and not
InnoDB executes foreign keys: the same rows."""

import random
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.judged_run import follow_view
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

pytestmark = pytest.mark.interop

HISTORIES, STATEMENTS = 40, 40
ACTIONS = ("CASCADE", "SET NULL", "RESTRICT", "NO ACTION")
COLUMNS = {"p": ("id", "u", "n"), "c": ("id", "u", "p", "n"), "g": ("id", "c", "n"), "s": ("id", "s", "n")}


def tables_of(chosen: random.Random) -> list[str]:
    """Parents, children, their children, and a table that refers to itself."""
    one, two, three, four = (chosen.choice(ACTIONS) for _ in range(4))
    key = "INT PRIMARY KEY"
    return [
        f"CREATE TABLE p (id {key}, u INT, n INT, UNIQUE (u)) ENGINE=InnoDB",
        f"CREATE TABLE c (id {key}, u INT, p INT, n INT, UNIQUE (u), FOREIGN KEY (p) REFERENCES p (id) ON DELETE {one} "
        f"ON UPDATE {two}) ENGINE=InnoDB",
        f"CREATE TABLE g (id {key}, c INT, n INT, FOREIGN KEY (c) REFERENCES c (u) ON DELETE {three} ON UPDATE {four}) "
        "ENGINE=InnoDB",
        f"CREATE TABLE s (id {key}, s INT, n INT, FOREIGN KEY (s) REFERENCES s (id) "
        f"ON DELETE {chosen.choice(ACTIONS[:3])}) ENGINE=InnoDB",
    ]


def statement_of(chosen: random.Random) -> str:
    """A statement that stops no view."""
    table = chosen.choice("pccgs")
    columns = COLUMNS[table]
    changed = chosen.choice(columns)
    updated = "n" if (table, changed) == ("c", "u") else changed

    def value(column: str) -> str:
        return str(chosen.randint(1, 6)) if column == "id" or chosen.random() < 0.8 else "NULL"

    def row() -> str:
        return f"({', '.join(map(value, columns))})"

    one, two = chosen.randint(1, 6), chosen.randint(1, 6)
    return chosen.choice((
        f"INSERT INTO {table} VALUES {row()}",
        f"INSERT INTO {table} VALUES {row()}, {row()}",
        f"INSERT IGNORE INTO {table} VALUES {row()}, {row()}",
        f"INSERT INTO {table} VALUES {row()} ON DUPLICATE KEY UPDATE {updated} = {value(updated)}",
        f"INSERT IGNORE INTO p VALUES {chosen.randint(1, 6), chosen.randint(1, 6), 0} ON DUPLICATE KEY UPDATE n = {one}",
        f"UPDATE {table} SET {changed} = {value(changed)} WHERE id = {one}",
        f"UPDATE IGNORE {table} SET {columns[-1]} = {value('n')} WHERE id IN ({one}, {two}) ORDER BY id",
        f"UPDATE IGNORE g SET {chosen.choice(COLUMNS['g'])} = {one} WHERE id = {two}",
        f"UPDATE {table} SET id = id + 10 WHERE id > {one} ORDER BY id DESC",
        f"DELETE FROM {table} WHERE id = {one}",
        # MySQL 5.6 does not log one that meets a row to which others refer (1451), although it removes the rows before that.
        f"DELETE IGNORE FROM g WHERE id IN ({one}, {two}) ORDER BY id",
        f"REPLACE INTO g VALUES ({', '.join(map(value, COLUMNS['g']))})",
    ))  # fmt: skip


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


@pytest.mark.parametrize(("source", "first"), [("mysql56", 1), ("mariadb", 1000), ("mariadb118", 2000)])
def test_statements_over_tables_that_refer_to_each_other_leave_the_same_rows(
    servers: ServerFactory, replica: Server, tmp_path: Path, source: str, first: int
) -> None:
    here = ViewTrial(servers(source).start(server_id=1), replica, tmp_path)
    texts = {
        f"h{seed}": write(here.source, f"h{seed}", random.Random(seed)) for seed in range(first, first + HISTORIES)
    }
    here.source.sql("FLUSH LOGS")
    _path, stops, error = follow_view(here)
    assert error == 0
    assert [one.stop.reason.text for one in stops] == []
    for name, statements in texts.items():
        assert here.tables(here.source, name) == here.tables(here.replica, name), statements


def write(server: Server, name: str, chosen: random.Random) -> list[str]:
    """Run statements in a database of their own; return those that the source took."""
    taken = []
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute(f"SET sql_mode = '{chosen.choice(('', 'STRICT_TRANS_TABLES'))}'")
        for text in (f"CREATE DATABASE {name}", f"USE {name}", *tables_of(chosen)):
            cursor.execute(text)
        for text in [statement_of(chosen) for _ in range(STATEMENTS)]:
            try:
                cursor.execute(text)
                taken.append(text)
            except pymysql.MySQLError:
                continue  # it is not logged
    return taken
