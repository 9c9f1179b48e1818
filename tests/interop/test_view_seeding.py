"""From a dump of an old source to a new replica of a view, as `view find` and `view seed` say it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.interop.conftest import ChainFactory
from tests.support import view_seeding as seeding
from tests.support.chain import Chain
from tests.support.workload import session

pytestmark = pytest.mark.interop
DATABASE = "shop"


def prepared(source: Server) -> None:
    source.sql(f"CREATE DATABASE {DATABASE}")
    source.sql(
        "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, s VARCHAR(100)) ENGINE=InnoDB",
        DATABASE,
    )
    for number in range(20):
        source.sql(f"INSERT INTO orders (v, s) VALUES ({number}, REPEAT('x', 50))", DATABASE)


@contextmanager
def traffic(source: Server) -> Iterator[None]:
    """Transactions of two statements, one after the other, until the end."""
    ended = threading.Event()

    def write() -> None:
        with session(source, "ROW", DATABASE) as execute:
            number = 0
            while not ended.is_set():
                number += 1
                for statement in (
                    "BEGIN",
                    f"INSERT INTO orders (v, s) VALUES ({number}, 'traffic')",
                    f"UPDATE orders SET v = v + 1 WHERE id = {number % 20 + 1}",
                    "COMMIT",
                ):
                    execute(statement)
                ended.wait(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def rows(server: Server) -> list[tuple[object, ...]]:
    return server.sql("SELECT * FROM orders ORDER BY id", DATABASE)


def new_server(servers: ServerFactory, server_id: int = 201) -> Server:
    """With nothing but its defaults, as far as replication goes."""
    return servers("mysql97").start(server_id=server_id, options=["--gtid-mode=ON", "--enforce-gtid-consistency=ON"])


def caught_up(chain: Chain, replica: Server) -> dict[str, object]:
    status = chain.source.master_status()
    found = seeding.wait_made(chain.relay, status.file, status.position)
    here = seeding.place(chain.relay, "--source", f"{status.file}:{status.position}")
    seeding.wait_executed(replica, here["executed"])
    assert rows(replica) == rows(chain.source)
    return found | here


@pytest.mark.parametrize("data", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_dump_under_traffic_becomes_a_replica_by_auto_position(
    chains: ChainFactory, servers: ServerFactory, tmp_path: Path, data: int, packed: bool
) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    prepared(chain.source)
    path = tmp_path / "dump.sql"
    with traffic(chain.source):
        seeding.dump(chain.source, path, [DATABASE], [f"--source-data={data}"])
        told = tmp_path / "dump.sql.gz" if packed else path
        if packed:
            told.write_bytes(gzip.compress(path.read_bytes()))
        status = chain.source.master_status()
        seeding.wait_made(chain.relay, status.file, status.position)
        statements = seeding.seeded(chain.relay, "--dump", str(told))
    replica = new_server(servers)
    seeding.restore(replica, path)
    replica.execute_many(statements)
    here = caught_up(chain, replica)
    assert seeding.executed(replica) == here["executed"]


def test_a_number_that_is_one_off_is_told_by_the_replica_or_the_tables(
    chains: ChainFactory, servers: ServerFactory, tmp_path: Path
) -> None:
    """So the number that `view seed` prints is the only right one."""
    chain = chains("mysql56", sections=seeding.sections())
    prepared(chain.source)
    path = tmp_path / "dump.sql"
    seeding.dump(chain.source, path, [DATABASE], ["--source-data=2"])
    for number in range(5):
        chain.source.sql(f"INSERT INTO orders (v) VALUES ({1000 + number})", DATABASE)
    status = chain.source.master_status()
    seeding.wait_made(chain.relay, status.file, status.position)
    statements = seeding.seeded(chain.relay, "--dump", str(path))
    purged = next(one for one in statements if "gtid_purged" in one)
    count = int(purged.rstrip("'").rpartition("-")[2])
    end = seeding.place(chain.relay, "--source", f"{status.file}:{status.position}")["executed"]

    replica = new_server(servers)
    seeding.restore(replica, path)
    replica.execute_many([one.replace(f"-{count}'", f"-{count + 1}'") for one in statements])
    seeding.wait_executed(replica, end)
    assert len(rows(replica)) == len(rows(chain.source)) - 1  # no error, and a row is missing

    other = new_server(servers, 202)
    seeding.restore(other, path)
    other.execute_many([one.replace(f"-{count}'", f"-{count - 1}'") for one in statements])
    with pytest.raises(AssertionError, match=r"1062|Duplicate entry"):
        seeding.wait_executed(other, end)


def test_places_between_are_refused_with_good_ones_that_work(chains: ChainFactory) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    prepared(chain.source)
    before = chain.source.master_status()
    chain.source.sql("INSERT INTO orders (v) VALUES (7)", DATABASE)
    after = chain.source.master_status()
    chain.source.sql("INSERT INTO orders (v) VALUES (8)", DATABASE)
    end = chain.source.master_status()
    seeding.wait_made(chain.relay, end.file, end.position)
    for offset in range(before.position + 1, after.position, 7):
        done = chain.relay.command("view", "find", seeding.VIEW, "--source", f"{before.file}:{offset}")
        assert done.returncode == 1
        assert f"{before.file}:{before.position} (view " in done.stderr, done.stderr
        assert f"{after.file}:{after.position} (view " in done.stderr
    first, second = (seeding.place(chain.relay, "--source", f"{one.file}:{one.position}") for one in (before, after))
    for found in (first, second):
        assert seeding.place(chain.relay, "--position", f"{found['view_file']}:{found['view_position']}") == found
        assert seeding.place(chain.relay, "--gtid", found["newest_assigned"]) == found
    gno = int(first["newest_assigned"].rpartition(":")[2])
    assert second["newest_assigned"].endswith(f":{gno + 1}") and second["executed"].endswith(f":1-{gno + 1}")


def test_the_same_is_answered_by_statements(chains: ChainFactory) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    chain.relay.add_account(user="dba", password="dba-password", admin=True)
    chain.relay.reload()
    prepared(chain.source)
    end = chain.source.master_status()
    listed = seeding.wait_made(chain.relay, end.file, end.position)
    wanted = seeding.place(chain.relay, "--source", f"{end.file}:{end.position}")
    connection = pymysql.connect(host="127.0.0.1", port=chain.relay.port, user="dba", password="dba-password")
    try:
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            asked = [
                f"CALL binlog_relay.view_find('gtid', 'source', '{end.file}', {end.position})",
                f"CALL binlog_relay.view_find('gtid', 'view', '{wanted['view_file']}', {wanted['view_position']})",
                f"CALL binlog_relay.view_find('gtid', 'gtid', '{wanted['newest_assigned']}')",
            ]
            for statement in asked:
                cursor.execute(statement)
                (row,) = cursor.fetchall()
                assert row == {
                    "Source_file": end.file,
                    "Source_position": str(end.position),
                    "View_file": wanted["view_file"],
                    "View_position": str(wanted["view_position"]),
                    "Newest_assigned": wanted["newest_assigned"],
                    "Executed_Gtid_Set": wanted["executed"],
                }
            cursor.execute("CALL binlog_relay.view_list()")
            (row,) = cursor.fetchall()
            assert (row["View"], row["Uuid"], row["Behind_bytes"], row["Stopped"]) == ("gtid", listed["uuid"], "0", "")
            assert row["Made_up_to"] == f"{end.file}:{end.position}"
            for statement, number in (
                (f"CALL binlog_relay.view_find('gtid', 'source', '{end.file}', {end.position - 1})", 1105),
                ("CALL binlog_relay.view_find('nobody', 'source', 'mysql-bin.000001', 4)", 1105),
                ("CALL binlog_relay.view_find('gtid', 'gtid', 'x')", 1210),
                ("CALL binlog_relay.view_find('gtid', 'other', 'x')", 1210),
                (f"CALL binlog_relay.view_skip('gtid', '{end.file}', {end.position})", 1105),
            ):
                with pytest.raises(pymysql.MySQLError) as refused:
                    cursor.execute(statement)
                assert refused.value.args[0] == number, refused.value.args
    finally:
        connection.close()


def test_a_view_that_is_removed_is_made_again_to_the_same_bytes(chains: ChainFactory) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    prepared(chain.source)
    chain.source.sql("FLUSH LOGS")
    prepared_again = chain.source.master_status()
    seeding.wait_made(chain.relay, prepared_again.file, prepared_again.position)
    directory = chain.relay.archive / "views" / seeding.VIEW
    refused = chain.relay.command("view", "rebuild", seeding.VIEW)
    assert refused.returncode == 2 and "The relay is running" in refused.stderr
    verified = chain.relay.command("view", "verify", seeding.VIEW)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    chain.relay.stop()
    before = {path.name: path.read_bytes() for path in directory.glob("mysql-bin.0*[0-9]")}
    assert len(before) == 2
    removed = chain.relay.command("view", "rebuild", seeding.VIEW)
    assert removed.returncode == 0 and not directory.exists(), removed.stderr
    chain.relay.start()
    seeding.wait_made(chain.relay, prepared_again.file, prepared_again.position)
    chain.relay.stop()
    assert {path.name: path.read_bytes() for path in directory.glob("mysql-bin.0*[0-9]")} == before
    name, data = max(before.items(), key=lambda item: len(item[1]))
    (directory / name).write_bytes(data[:300] + bytes([data[300] ^ 1]) + data[301:])
    changed = chain.relay.command("view", "verify", seeding.VIEW)
    assert changed.returncode == 1 and changed.stdout.startswith(f"{name}:300 (made from {name}:")


def test_the_programs_of_dumps_write_what_is_read(servers: ServerFactory, tmp_path: Path) -> None:
    """mysqldump 9.7 of MySQL 5.6 and of itself, mariadb-dump of MariaDB: each with the place that the server says."""
    from relay.view.seeding.dump_place import dump_place

    for name, program, options in (
        ("mysql56", "mysql97", ["--source-data=2"]),
        ("mysql56", "mysql97", ["--source-data=1", "--skip-comments"]),
        ("mysql97", "mysql97", ["--source-data=2", "--set-gtid-purged=OFF"]),
        ("mysql97", "mysql97", ["--source-data=1"]),
        ("mariadb", "mariadb", ["--master-data=2"]),
        ("mariadb", "mariadb", ["--master-data=1", "--gtid"]),
    ):
        server = servers(name).start(server_id=1)
        prepared(server)
        path = tmp_path / "dump.sql"
        seeding.dump(server, path, [DATABASE], options, program)
        status = server.master_status()
        found = dump_place(path)
        assert (found.position.file, found.position.offset) == tuple(status), (name, options)
        server.stop()
