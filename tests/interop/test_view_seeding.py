"""From a dump of an old source to a new replica of a view, as `view find` and `view seed` say it."""

import gzip
import json
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
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
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
        ("mysql56", "mysql97", ["--source-data=1"]),
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


def test_a_dump_of_a_replica_is_refused_also_where_its_comments_are_left_out(
    servers: ServerFactory, tmp_path: Path
) -> None:
    """Without comments mysqldump and mariadb-dump write the same of the server and of its source: nobody can tell them apart."""
    from relay.view.seeding.dump_head import DumpRefused
    from relay.view.seeding.dump_place import dump_place

    replicates = "SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_LOG_FILE = 'old-bin.000009', SOURCE_LOG_POS = 4"
    of_its_source = "old-bin.000009:4"
    for name, verb, of_a_replica, of_the_server in (
        ("mysql97", "CHANGE REPLICATION SOURCE TO", "--dump-replica", "--source-data"),
        ("mariadb", "CHANGE MASTER TO", "--dump-slave", "--master-data"),
    ):
        server = servers(name).start(server_id=1)
        prepared(server)
        server.sql(f"{verb} {replicates.replace('SOURCE_', 'MASTER_') if name == 'mariadb' else replicates}")
        own = "{0.file}:{0.position}".format(server.master_status())
        path = tmp_path / "dump.sql"
        for option, comments, told in (
            (f"{of_a_replica}=2", [], of_its_source),
            (f"{of_a_replica}=1", ["--compact"], of_its_source),
            (f"{of_a_replica}=2", ["--skip-comments"], of_its_source),
            (f"{of_the_server}=2", ["--skip-comments"], own),
        ):
            seeding.dump(server, path, [DATABASE], [option, *comments], name)
            with pytest.raises(DumpRefused, match=f"--at {told}"):
                dump_place(path)
        server.stop()


def test_where_a_dump_leaves_open_which_server_it_is_of_it_is_told_what_to_compare(
    chains: ChainFactory, tmp_path: Path
) -> None:
    """A replica that was started again without writes stands at the beginning of a file, whose name the source may have too."""
    chain = chains("mysql56", sections=seeding.sections())
    prepared(chain.source)
    path = tmp_path / "dump.sql"
    for flushed in (True, False):
        if flushed:
            chain.source.sql("FLUSH LOGS")
        else:
            chain.source.sql("INSERT INTO orders (v) VALUES (7)", DATABASE)
        seeding.dump(chain.source, path, [DATABASE], ["--source-data=2"])
        status = chain.source.master_status()
        seeding.wait_made(chain.relay, status.file, status.position)
        done = chain.relay.command("view", "seed", seeding.VIEW, "--dump", str(path))
        assert done.returncode == 0, done.stderr
        (server_id,) = chain.source.sql("SELECT @@server_id")[0]
        assert f"SELECT @@server_id at the dumped server must say {server_id}." in done.stdout
        assert f"NO_AUTO_CREATE_USER//' {path})" in done.stdout
        assert ("begins so at any server" in done.stdout) == flushed


def test_a_replica_of_the_mirror_moves_to_the_view_in_place(chains: ChainFactory, servers: ServerFactory) -> None:
    """By file and position first, then by GTID, with the data that it has: no dump, no copy."""
    chain = chains("mysql56", sections=seeding.sections())
    replica = servers("mysql97").start(server_id=201, options=["--gtid-mode=OFF", "--enforce-gtid-consistency=ON"])
    first = chain.source.binlogs()[0].name
    replica.attach("127.0.0.1", chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4)
    prepared(chain.source)
    chain.source.sql("CREATE TABLE kept (ts TIMESTAMP, v INT) ENGINE=InnoDB", DATABASE)
    replica.wait_for_source(chain.source)
    chain.source.sql("INSERT INTO orders (v) VALUES (7)", DATABASE)
    replica.wait_for_source(chain.source)
    replica.stop_replica()
    status = replica.replica_status()
    for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
        replica.sql(f"SET GLOBAL gtid_mode = {mode}")
    seeding.wait_made(chain.relay, status["exec_file"], status["exec_position"])
    at = f"{status['exec_file']}:{status['exec_position']}"
    replica.execute_many(seeding.seeded(chain.relay, "--at", at, "--in-place"))
    chain.source.sql("INSERT INTO orders (v) VALUES (8)", DATABASE)
    here = caught_up(chain, replica)
    assert seeding.executed(replica) == here["executed"]


def test_a_new_server_follows_an_anonymous_view_from_a_dump(
    chains: ChainFactory, servers: ServerFactory, tmp_path: Path
) -> None:
    chain = chains("mysql56", sections=seeding.sections(gtids="anonymous"))
    prepared(chain.source)
    path = tmp_path / "dump.sql"
    seeding.dump(chain.source, path, [DATABASE], ["--source-data=2"])
    chain.source.sql("INSERT INTO orders (v) VALUES (7)", DATABASE)
    status = chain.source.master_status()
    seeding.wait_made(chain.relay, status.file, status.position)
    statements = seeding.seeded(chain.relay, "--dump", str(path))
    assert "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL" in statements[0]
    replica = new_server(servers)
    seeding.restore(replica, path)
    replica.execute_many(statements)
    end = seeding.place(chain.relay, "--source", f"{status.file}:{status.position}")
    replica.wait_caught_up(end["view_file"], end["view_position"])
    assert rows(replica) == rows(chain.source) and end["executed"] == ""


STOPPING = "CREATE TABLE copied ENGINE=MyISAM SELECT * FROM orders"


def test_a_view_that_stopped_goes_on_when_its_transaction_is_skipped_in_the_running_relay(
    chains: ChainFactory, servers: ServerFactory
) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    chain.relay.add_account(user="dba", password="dba-password", admin=True)
    chain.relay.reload()
    stop = stopped(chain)
    with pymysql.connect(host="127.0.0.1", port=chain.relay.port, user="dba", password="dba-password") as connection:
        cursor = connection.cursor(pymysql.cursors.DictCursor)
        cursor.execute("CALL binlog_relay.view_list()")
        assert "create_select" in str(cursor.fetchone())
        with pytest.raises(pymysql.MySQLError, match=f"stopped at {stop['file']}:4"):
            cursor.execute(f"CALL binlog_relay.view_skip('gtid', '{stop['file']}', 4)")
        cursor.execute(f"CALL binlog_relay.view_skip('gtid', '{stop['file']}', {stop['position']})")
    skipped(chain, servers)


def test_a_view_that_stopped_goes_on_when_its_transaction_is_skipped_while_the_relay_is_stopped(
    chains: ChainFactory, servers: ServerFactory
) -> None:
    chain = chains("mysql56", sections=seeding.sections())
    stop = stopped(chain)
    words = ("view", "skip", seeding.VIEW, "--at", f"{stop['file']}:{stop['position']}", "--yes")
    running = chain.relay.command(*words)
    assert running.returncode == 2
    assert f"CALL binlog_relay.view_skip('gtid', '{stop['file']}', {stop['position']})" in running.stderr
    chain.relay.stop()
    other = chain.relay.command("view", "skip", seeding.VIEW, "--at", f"{stop['file']}:4", "--yes")
    assert other.returncode == 1 and f"stands stopped at {stop['file']}:{stop['position']}" in other.stderr
    done = chain.relay.command(*words)
    assert done.returncode == 0, done.stderr
    chain.relay.start()
    skipped(chain, servers)


def stopped(chain: Chain) -> dict[str, object]:
    """The view stands stopped at a statement that no server with GTIDs takes."""
    prepared(chain.source)
    before = chain.source.master_status()
    with session(chain.source, "STATEMENT", DATABASE) as execute:
        execute(STOPPING)
    wait_until(lambda: seeding.listed(chain.relay)["stop"] is not None, "the view stops")
    stop: dict[str, object] = seeding.listed(chain.relay)["stop"]
    assert (stop["file"], stop["position"], stop["name"], stop["error"]) == (*before, "create_select", 1786)
    return stop


def skipped(chain: Chain, servers: ServerFactory) -> None:
    """All but that transaction comes to a replica, and no number is missing; made again, the view is the same."""
    chain.source.sql("INSERT INTO orders (v) VALUES (9)", DATABASE)
    replica = new_server(servers)
    replica.execute_many(seeding.seeded(chain.relay, "--at", f"{chain.source.binlogs()[0].name}:4"))
    here = caught_up(chain, replica)
    assert seeding.executed(replica) == here["executed"] and ":1-" in str(here["executed"])
    assert replica.sql("SHOW TABLES", DATABASE) == [("orders",)]
    verified = chain.relay.command("view", "verify", seeding.VIEW)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (row,) = [one for one in ledger(chain.relay) if one["kind"] == "view_skip"]
    assert "create_select" in row["text"] or "CREATE TABLE" in row["text"]


def ledger(relay: RelayProcess) -> list[dict[str, str]]:
    done = relay.command("archive", "ledger", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_old_server_is_seeded_in_the_old_words(chains: ChainFactory, servers: ServerFactory) -> None:
    chain = chains("mysql56", sections=seeding.sections(**{"for": "mysql-5.6"}))
    prepared(chain.source)
    status = chain.source.master_status()
    seeding.wait_made(chain.relay, status.file, status.position)
    statements = seeding.seeded(chain.relay, "--at", f"{status.file}:{status.position}")
    assert statements[0] == "RESET MASTER" and statements[-1] == "START SLAVE"
    options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"]
    replica = servers("mysql56").start(server_id=201, options=options)
    prepared(replica)  # in place of a dump: the same rows
    replica.execute_many(statements)
    chain.source.sql("INSERT INTO orders (v) VALUES (7)", DATABASE)
    here = caught_up(chain, replica)
    assert seeding.executed(replica) == here["executed"]
