"""Work for an old source that a view can keep: all of `workload`, and what only an old server writes."""

from typing import Final

from deploy.servers import Server
from tests.support import workload
from tests.support.workload import Execute, session

DATABASE: Final = workload.DATABASE
SMALL_TRANSACTIONS: Final = 500
BIG_ROW_BYTES: Final = 3_000_000


def kept_workload(server: Server, binlog_format: str, engines: str, *, with_accounts: bool = True) -> None:
    """Run everything that can be kept with `engines` = "keep" or "innodb"; the database is recreated.

    As statements, tables without transactions have two kinds that only `engines` = "innodb" keeps: one statement that writes both
    engines, and CREATE TABLE … SELECT.
    """
    all_of_it = binlog_format == "ROW" or engines == "innodb"
    server.sql(f"SET GLOBAL binlog_format = {binlog_format}")
    workload.create_schema(server, binlog_format, DATABASE)
    with session(server, binlog_format) as execute:
        workload.mixed_engine_transactions(execute)
        workload.savepoints(execute)
        workload.rolled_back_mixed_transactions(execute)
        execute("FLUSH LOGS")
        workload.load_data(server, execute)
        workload.schema_changes(execute)
        if all_of_it:
            workload.create_select(execute)
        else:
            execute("CREATE TABLE selected (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB SELECT id FROM inno ORDER BY id")
        execute("FLUSH LOGS")
        workload.variables_and_random(execute)
        workload.auto_increment(execute)
        if all_of_it:
            workload.multi_row_changes(execute)
        workload.big_row(execute, BIG_ROW_BYTES)
        timestamps(execute)
        if with_accounts:
            accounts(execute)
        distributed(execute)
        programs(execute)
        execute("FLUSH LOGS")
        workload.many_small_transactions(execute, SMALL_TRANSACTIONS)
    workload.temporary_tables(server, binlog_format, DATABASE)


def timestamps(execute: Execute) -> None:
    """Create TIMESTAMP columns without NULL or NOT NULL: NOT NULL here, with the current time as default; not so on a new server."""
    execute("CREATE TABLE timed (id INT NOT NULL PRIMARY KEY, first TIMESTAMP, second TIMESTAMP) ENGINE=InnoDB")
    execute("INSERT INTO timed (id) VALUES (1), (2)")
    execute("UPDATE timed SET id = 3 WHERE id = 2")
    execute("ALTER TABLE timed ADD COLUMN third TIMESTAMP")
    execute("INSERT INTO timed (id) VALUES (4)")
    execute("CREATE TABLE like_timed LIKE timed")
    execute("INSERT INTO like_timed SELECT * FROM timed ORDER BY id")


def accounts(execute: Execute) -> None:
    """Run statements that a new server cannot parse."""
    execute("CREATE USER 'somebody'@'localhost' IDENTIFIED BY 'a word'")
    execute("GRANT SELECT ON *.* TO 'somebody'@'localhost' IDENTIFIED BY 'another word'")
    execute(
        "GRANT ALL ON workload.* TO 'granted'@'%' IDENTIFIED BY PASSWORD '*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9'"
    )
    execute("SET PASSWORD FOR 'somebody'@'localhost' = PASSWORD('a third')")
    execute("RENAME USER 'somebody'@'localhost' TO 'renamed'@'localhost'")
    execute("REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'renamed'@'localhost'")
    execute("DROP USER 'renamed'@'localhost', 'granted'@'%'")
    execute("FLUSH PRIVILEGES")


def distributed(execute: Execute) -> None:
    """Run XA transactions: with one phase, with two, and rolled back."""
    for number, ends in enumerate(
        (["COMMIT {} ONE PHASE"], ["PREPARE {}", "COMMIT {}"], ["PREPARE {}", "ROLLBACK {}"])
    ):
        name = f"'branch {number}'"
        execute(f"XA START {name}")
        execute(f"INSERT INTO inno (id, n) VALUES ({5000 + number}, {number})")
        execute(f"XA END {name}")
        for end in ends:
            execute("XA " + end.format(name))


def programs(execute: Execute) -> None:
    """Run functions, events, and maintenance statements."""
    execute("CREATE FUNCTION doubled (n INT) RETURNS INT DETERMINISTIC RETURN 2 * n")
    execute("INSERT INTO inno (id, n) VALUES (6000, doubled(21))")
    execute("CREATE EVENT later ON SCHEDULE AT '2037-01-01 00:00:00' DO DELETE FROM small")
    execute("ALTER EVENT later DISABLE")
    execute("DROP EVENT later")
    execute("ANALYZE TABLE inno, isam")
    execute("OPTIMIZE TABLE isam")
    execute("FLUSH TABLES")
    execute("TRUNCATE TABLE small")
