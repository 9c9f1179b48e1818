"""A migration from MySQL 5.6 or MariaDB to MySQL 9.7 as a user would do it, on real servers: `deploy/demo --migrate` runs this.

The old source has no GTIDs that a MySQL knows and is still written to; the new servers have only their defaults. A relay with a view is
between them. The steps are dump, restore, seed, attach, compare; then the cut-over: writes stop, one new server is promoted, and the
other one follows it by GTID.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql

from deploy.demonstration import DemoFailed, free_port, say, stay, title, work_directory
from deploy.servers import OWN, SERVERS, CatchUpError, Server, available
from relay.view.seeding.restore_advice import WITHOUT_MODE
from tests.support import view_seeding as seeding
from tests.support import workload
from tests.support.compare_run import ACCOUNT, PRIVILEGES, CompareRun
from tests.support.hex_values import hex_differences, hex_tables
from tests.support.relay_process import RelayProcess

DATABASE = "shop"
_PACKAGED, REPLICA = ("mysql56", "mariadb105", "mariadb", "mariadb118"), "mysql97"
SOURCES = (*_PACKAGED, *(name for name in OWN if name not in (*_PACKAGED, REPLICA)))
FORMATS = ("ROW", "MIXED", "STATEMENT")
ROW_REPLICA = ("--binlog-format=ROW", "--log-slave-updates=ON", "--read-only=ON")
"""The options of a replica of the source's own version that logs rows, whatever the source logs."""
DEFAULTS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
"""These are MySQL 9.7's own defaults; the servers of tests and demonstrations begin with others."""
VIEW_TOML = f"""[[view]]
name = "{seeding.VIEW}"                  # GTIDs that MySQL 9.7 knows, and what it can read

[[account]]
user = "{seeding.VIEW_USER}"
password_file = "…"
view = "{seeding.VIEW}"                  # this account sees the view and nothing else"""
TABLES = (
    "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) CHARACTER SET utf8, seen TIMESTAMP) ENGINE=InnoDB",
    "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, total DECIMAL(10,2), "
    "KEY (customer), FOREIGN KEY (customer) REFERENCES customers (id)) ENGINE=InnoDB",
    "CREATE TABLE visits (id INT AUTO_INCREMENT PRIMARY KEY, page VARCHAR(40)) ENGINE=MyISAM",
)


# These exist on MariaDB alone: they are created when the new servers follow, because no MySQL restores a dump of them.
MARIADB_TABLES = (
    "CREATE TABLE sessions (id UUID PRIMARY KEY DEFAULT UUID(), address INET6, state JSON, at DATETIME(6))",
    "CREATE SEQUENCE invoices",
)


class Traffic:
    """A writer to the old source until `stop`, as applications do: transactions, MyISAM, a rollback, now and then DDL."""

    def __init__(self, source: Server, binlog_format: str) -> None:
        self._source = source
        self._format = binlog_format
        self._of_mariadb = source.flavour == "mariadb"
        self._more = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="traffic")
        self.transactions = 0

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Return when the last statement has finished."""
        self._ended.set()
        self._thread.join()

    def write_more(self) -> None:
        """From now on, write to a MariaDB what only MariaDB has."""
        if self._of_mariadb:
            self._source.execute_many(MARIADB_TABLES, DATABASE)
            self._more.set()

    def _write(self) -> None:
        with workload.session(self._source, self._format, DATABASE) as execute:
            while not self._ended.is_set():
                self.transactions += 1
                number = self.transactions
                statements = [
                    "BEGIN",
                    f"INSERT INTO customers (name) VALUES ('Zoë {number}')",
                    f"INSERT INTO orders (customer, total) VALUES (LAST_INSERT_ID(), {number} / 7)",
                    "SAVEPOINT s",
                    "UPDATE orders SET total = total * 2 ORDER BY id DESC LIMIT 3",
                    "ROLLBACK TO s" if number % 5 == 0 else f"DELETE FROM orders WHERE id = {number // 2}",
                    "COMMIT" if number % 7 else "ROLLBACK",
                    f"INSERT INTO visits (page) VALUES ('/orders/{number}')",
                ]
                if self._more.is_set():
                    statements += [
                        "INSERT INTO sessions (id, address, state, at) VALUES"
                        f" (UUID(), 'fe80::{number % 9999}', '{{\"visit\": {number}}}', NOW(6))",
                        "DO NEXTVAL(invoices)",
                    ]
                    if number % 50 == 0:
                        statements.append("ALTER TABLE sessions ADD COLUMN IF NOT EXISTS note TEXT")
                        statements.append(
                            "CREATE OR REPLACE TABLE newest SELECT * FROM visits ORDER BY id DESC LIMIT 9"
                        )
                if number % 100 == 0:
                    statements += [
                        f"CREATE TABLE report_{number} SELECT customer, SUM(total) AS total FROM orders GROUP BY customer",
                        f"ALTER TABLE report_{number} ADD made TIMESTAMP, ADD KEY (customer)",
                    ]
                if number % 150 == 0:
                    user = f"'clerk_{number}'@'%'"
                    statements += [f"CREATE USER {user} IDENTIFIED BY 'secret'", f"GRANT SELECT ON shop.* TO {user}"]
                for statement in statements:
                    execute(statement)
                self._ended.wait(0.005)


def shown(command: str, printed: str, most: int = 30) -> None:
    """Print a command and its output."""
    say(f"$ {command}")
    lines = printed.splitlines()
    for line in lines[:most]:
        say("  " + (line if len(line) < 170 else line[:167] + "..."))
    if len(lines) > most:
        say(f"  ... {len(lines) - most} more lines")


def asked(relay: RelayProcess, *words: str) -> str:
    """Return and show the output of `binlog-relay WORDS`."""
    done = relay.command(*words)
    shown(f"binlog-relay {' '.join(words)} --config relay.toml", done.stdout + done.stderr)
    if done.returncode:
        raise DemoFailed(f"binlog-relay {' '.join(words)} ended with code {done.returncode}")
    return done.stdout


def tables(server: Server) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables."""
    names = [
        str(row[0])
        for row in server.sql(
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}' AND table_type = 'BASE TABLE'"
        )
    ]
    return {name: sorted(server.sql(f"SELECT * FROM {name}", DATABASE), key=repr) for name in sorted(names)}


def compare(source: Server, replica: Server) -> None:
    """Show that both have the same rows. Raises: DemoFailed."""
    if source.flavour == "mariadb":
        # They are compared as bytes: a UUID is BINARY(16) on a MySQL.
        bytes_of, replicated = hex_tables(source, [DATABASE]), hex_tables(replica, [DATABASE])
        different = hex_differences(bytes_of, replicated)
        count, rows = len(bytes_of), sum(len(table.rows) for table in bytes_of.values())
    else:
        ours, theirs = tables(source), tables(replica)
        different = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        count, rows = len(ours), sum(map(len, ours.values()))
    say(
        f"  {count} tables, {rows} rows compared value by value: {'DIFFERENT: ' if different else 'equal'}{different or ''}"
    )
    if different:
        raise DemoFailed("the replica's tables differ from the source's")


def statements_of(relay: RelayProcess, dump: Path) -> list[str]:
    """Return the output of `view seed` for the dump, filled in."""
    asked(relay, "view", "seed", seeding.VIEW, "--dump", str(dump))
    return seeding.seeded(relay, "--dump", str(dump))


def refused_inside(relay: RelayProcess, file: str, position: int) -> None:
    """Show that a place inside a transaction is refused: a number there would lose or repeat something."""
    words = ("view", "find", seeding.VIEW, "--source", f"{file}:{position - 20}")
    done = relay.command(*words)
    shown(f"binlog-relay {' '.join(words)} --config relay.toml", done.stdout + done.stderr)
    if done.returncode != 1 or "inside a transaction" not in done.stderr:
        raise DemoFailed("a place inside a transaction was not refused")


@contextlib.contextmanager
def old_and_new(
    work: Path, name: str, binlog_format: str
) -> Iterator[tuple[Server, Server, RelayProcess, Server, Server]]:
    """Yield the old source, the server that the relay follows, the relay with its view, and two new servers.

    The relay follows the source, or, where that logs statements alone, a replica of its version that logs rows.
    """
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(SERVERS[name]())
        source.start(server_id=1, options=[f"--binlog-format={binlog_format}"])
        follows = source
        if binlog_format == "STATEMENT":
            follows = stack.enter_context(SERVERS[name]()).start(server_id=11, options=ROW_REPLICA)
            follows.attach_to(source)
        relay = stack.enter_context(RelayProcess(work / "relay", follows, port=free_port(), sections=seeding.SECTIONS))
        new = [stack.enter_context(SERVERS[REPLICA]()).start(server_id=number, options=DEFAULTS) for number in (2, 3)]
        yield source, follows, relay, new[0], new[1]


def dump_command(source: Server) -> tuple[str, list[str]]:
    """Return the program of the server's own package that dumps it, as deploy.servers names the package, and its options."""
    if source.flavour == "mariadb":
        return source.name, ["--lock-all-tables", "--master-data=2"]
    return REPLICA, ["--lock-all-tables", "--source-data=2"]


def migrate(work: Path, *, keep: bool, source_name: str = SOURCES[0], binlog_format: str | None = None) -> None:
    """Run the whole migration from a server of `SOURCES`; by default a MySQL logs MIXED, a MariaDB ROW.

    Raises: DemoFailed, CatchUpError.
    """
    binlog_format = binlog_format or ("ROW" if SERVERS[source_name].flavour == "mariadb" else "MIXED")
    title("An old source that is written to, a relay with a view, two new servers with their defaults")
    with old_and_new(work, source_name, binlog_format) as (source, followed, relay, first, second):
        if source.flavour == "mariadb":
            say(
                f"  source   MariaDB {source.version}, binlog_format {binlog_format}: its events and GTIDs no MySQL can read"
            )
        else:
            say(
                f"  source   {source.version}, binlog_format {binlog_format}, gtid_mode OFF: it cannot be switched on without stopping"
                " all of its replicas"
            )
        if followed is not source:
            say(f"  between  {followed.version}, a replica of the source with {' '.join(ROW_REPLICA)}: it computes the")
            say("           statements as the source does, and logs rows; the relay follows it, and the dump is of it")
        say(f"  relay    on 127.0.0.1:{relay.port}; of its relay.toml:")
        for line in VIEW_TOML.splitlines():
            say(f"             {line}".rstrip())
        modes = first.sql("SELECT @@gtid_mode, @@enforce_gtid_consistency")[0]
        say(f"  new      {first.version}, twice: gtid_mode {modes[0]}, enforce_gtid_consistency {modes[1]}")
        source.sql(f"CREATE DATABASE {DATABASE}")
        source.execute_many(TABLES, DATABASE)
        with Traffic(source, binlog_format) as traffic:
            time.sleep(2)
            dump = work / "dump.sql"
            title("1. Dump the source while it is written to")
            program, options = dump_command(followed)
            tool = "mariadb-dump" if source.flavour == "mariadb" else "mysqldump"
            say(f"$ {tool} {' '.join(options)} --databases shop > dump.sql")
            say("  (with InnoDB alone --single-transaction locks nothing; one of these tables is MyISAM)")
            seeding.dump(followed, dump, [DATABASE], options, program)
            shown(
                "grep 'CHANGE MASTER' dump.sql",
                next(line for line in dump.read_text().splitlines() if "CHANGE MASTER" in line),
            )
            title("2. Restore it on both new servers, without logging that")
            say(f"$ (echo 'SET sql_log_bin = 0;'; sed '{WITHOUT_MODE}' dump.sql) | mysql")
            for server in (first, second):
                seeding.restore(server, dump)
            title("3. Ask the relay which GTIDs the dump has")
            wait_for_view(relay, followed)
            statements = statements_of(relay, dump)
            title("4. Attach them, by GTID")
            for server in (first, second):
                server.execute_many(statements)
            traffic.write_more()
            time.sleep(2)
            row = first.replica_status()["raw"]
            for name in (
                "Replica_IO_Running",
                "Replica_SQL_Running",
                "Auto_Position",
                "Retrieved_Gtid_Set",
                "Executed_Gtid_Set",
            ):
                say(f"  {name:22} {row[name]}")
            asked(relay, "view", "list")
            title("5. Compare, while the source is written to: does the new server have its tables?")
            say(f"  both servers have an account {ACCOUNT} with {', '.join(PRIVILEGES)}")
            asked(relay, *CompareRun(relay, followed, first).words("--ignore", "auto_increment"))
            title("6. Cut over: writes stop")
            traffic.stop()
            say(
                f"  the applications made {traffic.transactions} rounds of writes meanwhile; SET GLOBAL read_only = ON at the source"
            )
        source.sql("SET GLOBAL read_only = ON")
        if followed is not source:
            followed.wait_for_source(source)
        status = followed.master_status()
        wait_for_view(relay, followed)
        refused_inside(relay, status.file, status.position)
        place = json.loads(
            asked(relay, "view", "find", seeding.VIEW, "--source", f"{status.file}:{status.position}", "--json")
        )
        wait = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{place['executed']}', 60)"
        for server in (first, second):
            if server.sql(wait)[0][0] != 0:
                raise DemoFailed(f"a new server did not get so far: {server.replica_status()}")
        shown(f'mysql -e "{wait}"    -- at both new servers', "0")
        if seeding.executed(first) != place["executed"]:
            raise DemoFailed(f"gtid_executed is {seeding.executed(first)}, not {place['executed']}")
        for server in (first, second):
            compare(source, server)
        title("7. Promote the first; the second follows it by the same GTIDs")
        promote(first, second)
        say(f"  first:  gtid_executed {seeding.executed(first)}")
        say(
            f"  second: gtid_executed {seeding.executed(second)}, Source_Port {second.replica_status()['raw']['Source_Port']}"
        )
        compare(first, second)
        if keep:
            stay(relay, source, first)


def wait_for_view(relay: RelayProcess, source: Server) -> None:
    """Wait until the view has all that the source has written by now."""
    status = source.master_status()
    seeding.wait_made(relay, status.file, status.position)


def promote(first: Server, second: Server) -> None:
    """Make `first` the source from now on, which is written to."""
    user, password = second.replication_user, second.replication_password
    for statement in ("STOP REPLICA", "RESET REPLICA ALL"):
        say(f"first> {statement};")
        first.sql(statement)
    change = f"SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {first.port}, SOURCE_AUTO_POSITION = 1"
    say(f"second> STOP REPLICA; CHANGE REPLICATION SOURCE TO {change}, ...; START REPLICA;")
    second.sql("STOP REPLICA")
    account = f"SOURCE_USER = '{user}', SOURCE_PASSWORD = '{password}', SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1"
    second.sql(f"CHANGE REPLICATION SOURCE TO {change}, {account}")
    second.sql("START REPLICA")
    first.sql("INSERT INTO visits (page) VALUES ('/first-write-on-the-new-server')", DATABASE)
    seeding.wait_executed(second, seeding.executed(first))


def main() -> int:
    """Run the migration; return 0 if it ended as it should."""
    parser = argparse.ArgumentParser(prog="deploy/demo --migrate", description="A migration to MySQL 9.7.")
    parser.add_argument("--migrate", action="store_true", help="this")
    parser.add_argument("--source", choices=SOURCES, default=SOURCES[0], help="what is migrated; mysql56 by default")
    parser.add_argument(
        "--source-format",
        choices=[name.lower() for name in FORMATS],
        help="its binlog_format; mixed of a MySQL, row of a MariaDB. statement: over a replica of its version that logs rows",
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    options = parser.parse_args()
    missing = available()
    for name in (options.source, REPLICA):
        if missing[name] is not None:
            say(f"deploy/demo --migrate: {missing[name]}")
            return 2
    begun = time.monotonic()
    try:
        with work_directory() as work:
            binlog_format = options.source_format.upper() if options.source_format else None
            migrate(work, keep=options.keep, source_name=options.source, binlog_format=binlog_format)
    except (DemoFailed, CatchUpError, AssertionError, pymysql.MySQLError, subprocess.SubprocessError) as error:
        say(f"\ndeploy/demo --migrate: {error}")
        return 1
    say(f"\nMigrated in {time.monotonic() - begun:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
