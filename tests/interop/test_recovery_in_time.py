"""A table that was dropped comes back: by an export through mysqlbinlog, and by replication from the relay up to the mistake."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deploy.servers import SERVERS, BinlogPosition, Server
from deploy.servers.mysql97 import MySQL97
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.view_seeding import dump
from tests.support.workload import session

pytestmark = pytest.mark.interop
DATABASE = "shop"
READERS = {"mysql56": "mysql97", "mysql97": "mysql97", "mariadb": "mariadb"}
"""Whose programs are used, and where the data are recovered: MySQL 5.6's package has none, and does not take what newer ones print."""

OPTIONS = {"mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]}


class Night(NamedTuple):
    """What happened: a backup at `backup`, changes, and a DROP TABLE that begins at `mistake`, then more changes."""

    chain: Chain
    dump: Path
    backup: BinlogPosition
    mistake: BinlogPosition
    gtid: str
    executed: str
    """At the backup."""
    good: Any
    """The tables' checksums just before the mistake."""
    good_orders: Any


def checksums(server: Server, tables: Sequence[str]) -> Any:
    return server.sql("CHECKSUM TABLE " + ", ".join(f"{DATABASE}.{table}" for table in tables))


def happened(chains: ChainFactory, tmp_path: Path, source_name: str) -> Night:
    gtids = source_name == "mysql97"
    chain = chains(source_name, options=OPTIONS.get(source_name, []))
    source = chain.source
    source.sql(f"CREATE DATABASE {DATABASE}")
    with session(source, "ROW", DATABASE) as execute:
        execute("CREATE TABLE orders (id INT PRIMARY KEY, v INT, t VARCHAR(2000)) ENGINE=InnoDB")
        execute("CREATE TABLE parts (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
        for number in range(10):
            execute(f"INSERT INTO orders VALUES ({number}, 0, 'before')")
            execute(f"INSERT INTO parts VALUES ({number}, 0)")
        reader = READERS[source_name]
        position = "--source-data=2" if reader == "mysql97" else "--master-data=2"
        options = [position, *(["--set-gtid-purged=OFF"] if reader == "mysql97" else [])]
        path = tmp_path / "dump.sql"
        dump(source, path, [DATABASE], options, reader)
        executed = ""
        if gtids:
            ((executed,),) = source.sql("SELECT @@GLOBAL.gtid_executed")
        elif source_name == "mariadb":
            ((executed,),) = source.sql("SELECT @@GLOBAL.gtid_binlog_pos")
        found = re.search(rb"_LOG_FILE='([^']+)', *\w+_LOG_POS=(\d+)", path.read_bytes())
        assert found is not None
        for number in range(10, 40):
            execute("BEGIN")
            execute(f"INSERT INTO orders VALUES ({number}, {number}, REPEAT('o', {50 * number}))")
            execute(f"UPDATE parts SET v = v + {number} WHERE id = {number % 10}")
            execute(f"UPDATE orders SET v = v + 1 WHERE id < {number}")
            execute("COMMIT")
            if number % 12 == 0:
                execute("FLUSH LOGS")
                execute(f"UPDATE parts SET v = {number}")
        execute("ALTER TABLE orders ADD n INT NOT NULL DEFAULT 7")
        execute("DELETE FROM orders WHERE id % 7 = 0")
    good, orders = checksums(source, ["orders", "parts"]), checksums(source, ["orders"])
    mistake = source.master_status()
    source.sql("DROP TABLE orders", DATABASE)
    source.sql("UPDATE parts SET v = -1", DATABASE)
    chain.wait_published()
    events = source.sql(f"SHOW BINLOG EVENTS IN '{mistake.file}' FROM {mistake.position} LIMIT 2")
    # A MariaDB writes a Binlog_checkpoint some time after FLUSH LOGS: before the mistake, too.
    dropped = next(event for event in events if event[2] != "Binlog_checkpoint")
    mistake = BinlogPosition(mistake.file, int(dropped[1]))
    gtid = str(dropped[5]).removeprefix("SET @@SESSION.GTID_NEXT= '").removesuffix("'").removeprefix("GTID ")
    backup = BinlogPosition(found[1].decode(), int(found[2]))
    return Night(chain, path, backup, mistake, gtid, str(executed), good, orders)


def restore(source_name: str, target: Server, path: Path) -> None:
    """Runs the dump without logging it."""
    program = READERS[source_name]
    plugins = [f"--plugin-dir={MySQL97.plugin_directory()}"] if program == "mysql97" else []
    client = [*SERVERS[program].mysql_client(), "--no-defaults", "--user=root", *plugins, f"--socket={target.socket}"]
    subprocess.run(client, input=b"SET sql_log_bin = 0;\n" + path.read_bytes(), check=True)


def export(night: Night, out: Path, *words: str) -> str:
    begin = f"{night.backup.file}:{night.backup.position}"
    done = night.chain.relay.command("archive", "export", "--from", begin, "--out", str(out), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def apply(source_name: str, directory: Path, target: Server) -> None:
    """mysqlbinlog DIR/* | mysql."""
    reader = SERVERS[READERS[source_name]].mysqlbinlog()
    files = [str(path) for path in sorted(directory.iterdir())]
    read = subprocess.run(
        [*reader, "--no-defaults", "--verify-binlog-checksum", *files], capture_output=True, check=False
    )
    assert read.returncode == 0, read.stderr.decode(errors="replace")
    plugins = [f"--plugin-dir={MySQL97.plugin_directory()}"] if READERS[source_name] == "mysql97" else []
    client = [*SERVERS[READERS[source_name]].mysql_client(), "--no-defaults", "--user=root", *plugins]
    done = subprocess.run([*client, f"--socket={target.socket}"], input=read.stdout, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")


def give_back(source_name: str, target: Server, source: Server) -> None:
    """mysqldump DATABASE orders | mysql."""
    program = READERS[source_name]
    plugins = [f"--plugin-dir={MySQL97.plugin_directory()}"] if program == "mysql97" else []
    options = ["--no-defaults", "--user=root", *plugins]
    dumped = subprocess.run(
        [
            *[*SERVERS[program].mysqldump(), *options, f"--socket={target.socket}"],
            *(["--set-gtid-purged=OFF"] if program == "mysql97" else []),
            *(DATABASE, "orders"),
        ],
        capture_output=True,
        check=True,
    )
    client = [*SERVERS[program].mysql_client(), *options, f"--socket={source.socket}", DATABASE]
    subprocess.run(client, input=dumped.stdout, check=True)


@pytest.mark.parametrize("source_name", ["mysql56", "mysql97", "mariadb"])
def test_a_dropped_table_comes_back(chains: ChainFactory, tmp_path: Path, source_name: str) -> None:
    night = happened(chains, tmp_path, source_name)
    chain, target = night.chain, night.chain.server(READERS[source_name], OPTIONS.get(source_name, []))

    # By an export: all tables as they were just before the mistake.
    restore(source_name, target, night.dump)
    where = f"{night.mistake.file}:{night.mistake.position}" if source_name == "mysql56" else night.gtid
    told = export(night, tmp_path / "all", "--before", where)
    # What was written of this file ends at the mistake.
    assert re.search(rf"^{night.mistake.file}\t.*\t{night.mistake.position}\t", told, re.MULTILINE), told
    apply(source_name, tmp_path / "all", target)
    assert checksums(target, ["orders", "parts"]) == night.good

    # Only the table that was dropped: the other one stays as the backup has it. Its ALTER TABLE comes with it.
    if source_name == "mysql97":
        target.sql("RESET BINARY LOGS AND GTIDS")
    restore(source_name, target, night.dump)
    parts = checksums(target, ["parts"])
    told = export(night, tmp_path / "orders", "--before", where, "--tables", f"{DATABASE}.orders")
    assert "ALTER TABLE orders" in told
    apply(source_name, tmp_path / "orders", target)
    assert checksums(target, ["orders"]) == night.good_orders
    assert checksums(target, ["parts"]) == parts

    # From there it goes back to the source, and on to everybody behind the relay.
    give_back(source_name, target, chain.source)
    assert checksums(chain.source, ["orders"]) == night.good_orders

    # By replication from the relay, up to the mistake, and by GTID where there are some.
    ways: list[tuple[str, dict[str, object], str]] = []
    if source_name != "mariadb":
        until = f"SOURCE_LOG_FILE = '{night.mistake.file}', SOURCE_LOG_POS = {night.mistake.position}"
        ways.append((f"START REPLICA UNTIL {until}", {}, ""))
    if source_name == "mysql97":
        purged = f"SET GLOBAL gtid_purged = '{night.executed}'"
        ways.append((f"START REPLICA UNTIL SQL_BEFORE_GTIDS = '{night.gtid}'", {"auto_position": 1}, purged))
    if source_name == "mariadb":
        domain, server, number = night.gtid.split("-")
        before = f"{domain}-{server}-{int(number) - 1}"
        position = f"SET GLOBAL gtid_slave_pos = '{night.executed}'"
        ways.append((f"START SLAVE UNTIL master_gtid_pos = '{before}'", {"use_gtid": "slave_pos"}, position))
    for start, options, executed in ways:
        if source_name == "mysql97":
            target.stop_replica()
            target.sql("RESET REPLICA ALL")
            target.sql("RESET BINARY LOGS AND GTIDS")
        restore(source_name, target, night.dump)
        if executed:
            target.sql(executed)
        at: tuple[str | None, int | None] = (None, None) if options else (night.backup.file, night.backup.position)
        target.attach("127.0.0.1", chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, *at, start=False, **options)
        target.sql(start)
        wait_until(lambda: not target.replica_status()["sql_running"], f"{start} ends", 60)
        assert not target.replica_status()["sql_errno"], target.replica_status()["sql_error"]
        assert checksums(target, ["orders", "parts"]) == night.good, start
