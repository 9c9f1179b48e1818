"""Reproducible work for a source: the same statements each time, and the same tables on every replica.

All of it works on MySQL 5.6 and MariaDB 10.11, in ROW, STATEMENT and MIXED format, and can be applied by every supported replica.
Statement replication is deterministic: every statement that limits rows orders them by a key.
"""

import contextlib
import random
import string
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deploy.servers import BinlogPosition, Server

DATABASE = "workload"
BIG_ROW_BYTES = 20 * 1024 * 1024
SMALL_TRANSACTIONS = 10_000
FORMATS = ("ROW", "STATEMENT", "MIXED")

# Runs one statement on the connection it was made for.
Execute = Callable[..., None]


@contextlib.contextmanager
def session(server: Server, binlog_format: str, database: str | None = DATABASE) -> Iterator[Execute]:
    """Yield a function that runs a statement on a connection that writes the binlog in the given format."""
    with contextlib.closing(server.connect(database)) as connection, connection.cursor() as cursor:

        def execute(statement: str, arguments: tuple[Any, ...] | None = None) -> None:
            cursor.execute(statement, arguments)
            while cursor.nextset():
                pass

        execute(f"SET SESSION binlog_format = {binlog_format}")
        yield execute


def full_workload(
    server: Server,
    binlog_format: str = "MIXED",
    *,
    database: str = DATABASE,
    big_row_bytes: int = BIG_ROW_BYTES,
    small_transactions: int = SMALL_TRANSACTIONS,
) -> BinlogPosition:
    """Run everything that a source is likely to write, in one recreated database; return the end of the binlog."""
    create_schema(server, binlog_format, database)
    with session(server, binlog_format, database) as execute:
        server.sql(f"SET GLOBAL binlog_format = {binlog_format}")
        mixed_engine_transactions(execute)
        savepoints(execute)
        rolled_back_mixed_transactions(execute)
        execute("FLUSH LOGS")
        load_data(server, execute)
        schema_changes(execute)
        # MySQL 9.7.4 dies of it now and then where it replicates from MySQL 5.6, directly too (signal 11 in its applier).
        if (server.name, binlog_format) != ("mysql56", "ROW"):
            create_select(execute)
        execute("FLUSH LOGS")
        variables_and_random(execute)
        auto_increment(execute)
        multi_row_changes(execute)
        big_row(execute, big_row_bytes)
        execute("FLUSH LOGS")
        many_small_transactions(execute, small_transactions)
    # Sessions of their own: the server itself writes what drops the tables at their end.
    temporary_tables(server, binlog_format, database)
    server.sql("FLUSH LOGS")
    with session(server, binlog_format, database) as execute:
        mixed_engine_transactions(execute, first=1000)
    return server.master_status()


def light_workload(server: Server, binlog_format: str = "MIXED", *, database: str = DATABASE) -> BinlogPosition:
    """Run the same kinds of statements with a 100 kB row and 200 small transactions: under a second."""
    return full_workload(server, binlog_format, database=database, big_row_bytes=100_000, small_transactions=200)


def create_schema(server: Server, binlog_format: str, database: str) -> None:
    """Recreate the database and its tables."""
    with session(server, binlog_format, None) as execute:
        execute(f"DROP DATABASE IF EXISTS {database}")
        execute(f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        execute(f"USE {database}")
        columns = "id INT NOT NULL PRIMARY KEY, n INT NOT NULL DEFAULT 0, t VARCHAR(100) NULL, at DATETIME(3) NULL"
        execute(f"CREATE TABLE inno ({columns}) ENGINE=InnoDB")
        execute(f"CREATE TABLE isam ({columns}) ENGINE=MyISAM")
        execute(
            "CREATE TABLE counted (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, w VARCHAR(40) NULL,"
            " KEY (v)) ENGINE=InnoDB"
        )
        execute("CREATE TABLE big (id INT NOT NULL PRIMARY KEY, body LONGTEXT CHARACTER SET latin1) ENGINE=InnoDB")
        execute("CREATE TABLE small (id INT NOT NULL PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB")
        execute(
            "CREATE PROCEDURE fill_small (IN first INT, IN stop INT)\n"
            "BEGIN\n"
            "  DECLARE i INT DEFAULT first;\n"
            "  WHILE i < stop DO\n"
            "    INSERT INTO small (id, v) VALUES (i, i * 7 % 1000);\n"
            "    SET i = i + 1;\n"
            "  END WHILE;\n"
            "END"
        )


def mixed_engine_transactions(execute: Execute, first: int = 1) -> None:
    """Run transactions that write InnoDB and MyISAM tables, in both orders; they use ids from `first` to `first` + 39."""
    for number in range(10):
        key = first + 4 * number
        execute("BEGIN")
        execute(f"INSERT INTO inno VALUES ({key}, {number}, 'inno {number}', '2024-02-29 12:00:00.125')")
        execute(f"INSERT INTO isam VALUES ({key}, {number}, 'isam {number}', NULL)")
        execute(f"INSERT INTO inno VALUES ({key + 1}, {number}, 'Grüße \U0001f40b', NULL)")
        execute("COMMIT")
        execute("START TRANSACTION")
        execute(f"INSERT INTO isam VALUES ({key + 2}, {number}, NULL, '2001-01-01 00:00:01')")
        execute(f"UPDATE inno SET n = n + 100 WHERE id = {key}")
        execute("COMMIT")
    execute(f"INSERT INTO isam VALUES ({first + 39}, 1, 'alone', NULL)")
    execute(f"INSERT INTO inno VALUES ({first + 39}, 1, 'alone', NULL)")


def savepoints(execute: Execute) -> None:
    """Run savepoints that are kept, rolled back to and released; one is followed by a MyISAM write, which cannot be undone."""
    execute("BEGIN")
    execute("INSERT INTO inno VALUES (100, 1, 'before', NULL)")
    execute("SAVEPOINT one")
    execute("INSERT INTO inno VALUES (101, 1, 'undone', NULL)")
    execute("ROLLBACK TO SAVEPOINT one")
    execute("INSERT INTO inno VALUES (102, 1, 'after', NULL)")
    execute("SAVEPOINT `a name; with BEGIN`")
    execute("RELEASE SAVEPOINT `a name; with BEGIN`")
    execute("COMMIT")
    execute("BEGIN")
    execute("INSERT INTO inno VALUES (103, 1, 'kept', NULL)")
    execute("SAVEPOINT two")
    execute("INSERT INTO inno VALUES (104, 1, 'undone', NULL)")
    execute("INSERT INTO isam VALUES (104, 1, 'stays', NULL)")
    execute("ROLLBACK TO SAVEPOINT two")
    execute("COMMIT")


def rolled_back_mixed_transactions(execute: Execute) -> None:
    """Run rollbacks: of a pure InnoDB transaction (not in the binlog), and of mixed ones (in it, as ROLLBACK)."""
    execute("BEGIN")
    execute("INSERT INTO inno VALUES (200, 1, 'never seen', NULL)")
    execute("ROLLBACK")
    execute("BEGIN")
    execute("INSERT INTO inno VALUES (201, 1, 'undone', NULL)")
    execute("INSERT INTO isam VALUES (201, 1, 'stays', NULL)")
    execute("ROLLBACK")
    execute("BEGIN")
    execute("INSERT INTO isam VALUES (202, 1, 'stays', NULL)")
    execute("INSERT INTO inno VALUES (202, 1, 'undone', NULL)")
    execute("UPDATE inno SET t = 'undone' WHERE id = 100")
    execute("ROLLBACK")


def load_data(server: Server, execute: Execute) -> None:
    """Run LOAD DATA from a file that the server can read: into InnoDB, into MyISAM, and inside a transaction."""
    numbers = random.Random(56)
    rows = "".join(f"{key}\t{numbers.randrange(10**6)}\trow {key}\t2020-10-10 10:10:10\n" for key in range(300, 1000))
    for name, text in (("a.tsv", rows), ("b.tsv", "2000\t1\tlast\t\\N\n")):
        path = server.directory / name
        path.write_text(text)
        path.chmod(0o644)
    execute(_load(server.directory / "a.tsv", "inno"))
    execute(_load(server.directory / "a.tsv", "isam"))
    execute("BEGIN")
    execute("UPDATE inno SET n = 3 WHERE id = 300")
    execute(_load(server.directory / "b.tsv", "inno"))
    execute("COMMIT")


def _load(path: Path, table: str) -> str:
    return f"LOAD DATA INFILE '{path}' INTO TABLE {table} CHARACTER SET utf8mb4 (id, n, t, at)"


def schema_changes(execute: Execute) -> None:
    """Run table, index, view, trigger and database changes, one of them in the middle of a transaction."""
    execute("CREATE TABLE changing (a INT NOT NULL PRIMARY KEY, b INT NULL) ENGINE=InnoDB")
    execute("INSERT INTO changing VALUES (1, 1), (2, 2), (3, NULL)")
    execute("ALTER TABLE changing ADD COLUMN c VARCHAR(20) NOT NULL DEFAULT 'new', ADD KEY (b)")
    execute("BEGIN")
    execute("UPDATE changing SET b = 5 WHERE a = 3")
    execute("CREATE INDEX by_c ON changing (c)")  # commits the update
    execute("COMMIT")
    execute("RENAME TABLE changing TO changed")
    execute("CREATE VIEW seen AS SELECT a, c FROM changed")
    execute("CREATE TRIGGER count_up BEFORE INSERT ON changed FOR EACH ROW SET NEW.b = NEW.a * 2")
    execute("INSERT INTO changed (a, c) VALUES (10, 'trigger'), (11, 'trigger')")
    execute("DROP TRIGGER count_up")
    execute("CREATE TABLE emptied LIKE changed")
    execute("INSERT INTO emptied VALUES (1, 1, 'x')")
    execute("TRUNCATE TABLE emptied")
    execute("CREATE TABLE dropped (a INT) ENGINE=MyISAM")
    execute("DROP TABLE dropped")
    execute("DROP TABLE IF EXISTS never_there")


def create_select(execute: Execute) -> None:
    """Run CREATE TABLE … SELECT: in ROW format a CREATE statement followed by a group of rows."""
    execute(
        "CREATE TABLE selected (id INT NOT NULL PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB"
        " SELECT id, n FROM inno WHERE id BETWEEN 1 AND 40 ORDER BY id"
    )
    execute(
        "CREATE TABLE selected_isam (id INT NOT NULL PRIMARY KEY, n INT NOT NULL) ENGINE=MyISAM"
        " SELECT id, n FROM isam WHERE id BETWEEN 1 AND 40 ORDER BY id"
    )
    execute("CREATE TABLE selected_none (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB SELECT id FROM inno WHERE id < 0")


def variables_and_random(execute: Execute) -> None:
    """Use user variables of each type, RAND(), NOW() and LAST_INSERT_ID(), which Intvar, Rand and User_var events carry."""
    execute("CREATE TABLE varied (id INT NOT NULL PRIMARY KEY, i BIGINT, d DECIMAL(20,5), s VARCHAR(50), r INT)")
    execute("SET @i = -9223372036854775807, @d = 12345.67891, @s = _utf8mb4'naïve \U0001f433', @n = NULL")
    execute("INSERT INTO varied VALUES (1, @i, @d, @s, FLOOR(RAND() * 1000000))")
    execute("INSERT INTO varied VALUES (2, @n, @n, @n, FLOOR(RAND() * 1000000)), (3, 1, 1, 'x', FLOOR(RAND() * 1000))")
    execute("BEGIN")
    execute("SET @s = 'inside'")
    execute("INSERT INTO varied VALUES (4, 4, @d, @s, FLOOR(RAND() * 1000000))")
    execute("UPDATE varied SET r = FLOOR(RAND() * 77) WHERE id = 4")
    execute("COMMIT")
    execute("INSERT INTO counted (v, w) VALUES (1, 'one')")
    execute("INSERT INTO varied (id, i, s) VALUES (5, LAST_INSERT_ID(), DATE_FORMAT(NOW(), '%Y-%m-%d %H:%i:%s'))")


def auto_increment(execute: Execute) -> None:
    """Run single and multi-row inserts with generated keys, gaps by rollback, and another step."""
    for number in range(20):
        execute(f"INSERT INTO counted (v) VALUES ({number}), ({number + 1}), ({number + 2})")
    execute("BEGIN")
    execute("INSERT INTO counted (v, w) VALUES (1, 'undone')")
    execute("ROLLBACK")
    execute("SET SESSION auto_increment_increment = 5, SESSION auto_increment_offset = 3")
    execute("INSERT INTO counted (v, w) VALUES (5, 'stepped'), (6, 'stepped')")
    execute("SET SESSION auto_increment_increment = 1, SESSION auto_increment_offset = 1")
    execute("REPLACE INTO counted (id, v, w) VALUES (1, 100, 'replaced')")
    execute("INSERT INTO counted (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1")


def multi_row_changes(execute: Execute) -> None:
    """Run updates and deletes of hundreds of rows, in InnoDB, in MyISAM, and in both by one statement."""
    execute("UPDATE inno SET n = n + 1, t = CONCAT('changed ', id) WHERE id BETWEEN 300 AND 900")
    execute("UPDATE isam SET n = n - 1 WHERE id BETWEEN 300 AND 900")
    execute("DELETE FROM inno WHERE id BETWEEN 400 AND 450")
    execute("DELETE FROM isam WHERE id BETWEEN 350 AND 420")
    execute("DELETE FROM inno WHERE id >= 500 ORDER BY id LIMIT 10")
    execute("UPDATE inno JOIN isam USING (id) SET inno.n = 7, isam.n = 8 WHERE inno.id BETWEEN 600 AND 620")
    execute("BEGIN")
    for key in range(700, 720):
        execute(f"UPDATE inno SET t = REPEAT('z', {key - 690}) WHERE id = {key}")
        execute(f"DELETE FROM inno WHERE id = {key + 100}")
    execute("COMMIT")


def big_row(execute: Execute, length_bytes: int) -> None:
    """Write one row of that length, in the statement as well as in the row event, then change it and write another."""
    body = big_text(length_bytes)
    execute("BEGIN")
    execute("INSERT INTO big VALUES (1, 'small')")
    execute("INSERT INTO big VALUES (2, %s)", (body,))
    execute("INSERT INTO big VALUES (3, 'small')")
    execute("COMMIT")
    execute("DELETE FROM big WHERE id = 1")


def big_text(length_bytes: int) -> str:
    """Return letters without a pattern, the same each time."""
    block = "".join(random.Random(20).choices(string.ascii_letters, k=65521))
    return (block * (length_bytes // len(block) + 1))[:length_bytes]


def many_small_transactions(execute: Execute, count: int) -> None:
    """Run single-row autocommit transactions, made by a loop inside the server."""
    execute("CALL fill_small(0, %s)", (count,))


def temporary_tables(server: Server, binlog_format: str, database: str) -> None:
    """Use temporary tables: dropped by hand, inside a transaction, and left for the server to drop."""
    with session(server, binlog_format, database) as execute:
        execute("CREATE TEMPORARY TABLE passing (a INT NOT NULL PRIMARY KEY, b INT) ENGINE=InnoDB")
        execute("INSERT INTO passing VALUES (1, 10), (2, 20), (3, 30)")
        execute("CREATE TABLE from_passing (a INT NOT NULL PRIMARY KEY, b INT) ENGINE=InnoDB")
        execute("INSERT INTO from_passing SELECT a, b FROM passing ORDER BY a")
        execute("BEGIN")
        execute("INSERT INTO from_passing VALUES (10, 10)")
        execute("CREATE TEMPORARY TABLE passing_isam (a INT NOT NULL PRIMARY KEY) ENGINE=MyISAM")
        execute("INSERT INTO passing_isam VALUES (1)")
        execute("DROP TEMPORARY TABLE passing_isam")
        execute("INSERT INTO from_passing VALUES (11, 11)")
        execute("COMMIT")
        execute("DROP TEMPORARY TABLE passing")
        execute("CREATE TEMPORARY TABLE left_behind (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB")
        execute("INSERT INTO left_behind VALUES (1)")


class SteadyWriter:
    """A thread that commits transactions with a running number until it is stopped: for tests that kill things.

    Each transaction inserts (counter, 2 rows) into `steady` and moves `steady_total` on, so that a transaction that was applied twice,
    half or not at all shows in the tables. It survives restarts of the source: after a lost connection it reads which number was
    committed last. `with` starts and stops it.
    """

    def __init__(self, server: Server, *, database: str = "steady", pause_s: float = 0.0) -> None:
        self.server = server
        self.database = database
        self.pause_s = pause_s
        self.committed = 0
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="steady-writer", daemon=True)

    def __enter__(self) -> Self:
        self.server.execute_many(
            [
                f"CREATE DATABASE IF NOT EXISTS {self.database}",
                f"CREATE TABLE IF NOT EXISTS {self.database}.steady (counter INT NOT NULL, part INT NOT NULL,"
                " filler VARCHAR(60), PRIMARY KEY (counter, part)) ENGINE=InnoDB",
                f"CREATE TABLE IF NOT EXISTS {self.database}.steady_total (id INT NOT NULL PRIMARY KEY,"
                " transactions INT NOT NULL, total BIGINT NOT NULL) ENGINE=InnoDB",
                f"INSERT IGNORE INTO {self.database}.steady_total VALUES (1, 0, 0)",
            ]
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def stop(self) -> int:
        """Stop after the current transaction; return the number of the last one committed. Raises the thread's error."""
        self.__exit__(None, None, None)
        return self.committed

    def _run(self) -> None:
        import pymysql

        try:
            while not self._stopping.is_set():
                try:
                    self._write()
                except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                    # The source is being restarted, or this connection was killed; ask again soon.
                    self._stopping.wait(0.05)
        except BaseException as error:
            self._failure = error

    def _write(self) -> None:
        with contextlib.closing(self.server.connect(self.database)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT transactions FROM steady_total WHERE id = 1")
            self.committed = cursor.fetchone()[0]
            while not self._stopping.is_set():
                number = self.committed + 1
                cursor.execute("BEGIN")
                cursor.execute(
                    "INSERT INTO steady VALUES (%s, 1, REPEAT('x', %s)), (%s, 2, 'second')",
                    (number, number % 60, number),
                )
                cursor.execute(
                    "UPDATE steady_total SET transactions = transactions + 1, total = total + %s WHERE id = 1",
                    (number,),
                )
                cursor.execute("COMMIT")
                self.committed = number
                if self.pause_s:
                    self._stopping.wait(self.pause_s)


def steady_writer(server: Server, *, database: str = "steady", pause_s: float = 0.0) -> SteadyWriter:
    """Return a `SteadyWriter` on this server; use it with `with`."""
    return SteadyWriter(server, database=database, pause_s=pause_s)
