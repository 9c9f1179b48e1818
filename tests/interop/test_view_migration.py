"""From MySQL 5.6 without GTIDs to MySQL 9.7 with all its defaults, by a view: real servers, everything they write."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import SERVERS, BinlogPosition, Server
from protocol.position import Position
from relay.view.view_place import InsideTransaction
from tests.conftest import ServerFactory
from tests.support import workload
from tests.support.chain import last_transaction, wait_until
from tests.support.free_port import free_port
from tests.support.random_workload import RandomWorkload
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.table_values import check_equal, differences, table_values
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    UUID_OF_VIEW,
    VIEW,
    ViewChain,
    account_of,
    add_views,
    executed_by,
    listen_with_tls,
    view_keys,
    wait_executed,
)
from tests.support.view_files import binlogs_in, check_numbers, check_same_files, groups_in
from tests.support.view_workload import kept_workload, timestamps

pytestmark = pytest.mark.interop
ViewChains = Callable[..., ViewChain]
SEED = 20
STEPS = 250
# Of the workloads: what is made of it must be named below it.
DATABASES = ("workload", "haphazard")


def accepted(binlog_format: str) -> list[str]:
    """Return what a view accepts of the workloads: a file that is loaded as a statement may have texts with a time offset for its
    DATETIME; these have none."""
    return ["store datetime"] if binlog_format == "STATEMENT" else []


@pytest.fixture
def view_chains(servers: ServerFactory, tmp_path: Path) -> Iterator[ViewChains]:
    """Makes chains with views; all of their processes are ended with the test."""
    with contextlib.ExitStack() as made:

        def make(source_name: str = "mysql56", **settings: Any) -> ViewChain:
            count = len(list(tmp_path.iterdir()))
            return made.enter_context(ViewChain(servers, source_name, tmp_path / f"relay{count}", **settings))

        yield make


def write_haphazardly(
    source: Server, binlog_format: str, engines: str, *, seed: int = SEED, steps: int = STEPS, mirrored: bool = False
) -> None:
    """Random work of both engines, in transactions over both too.

    mirrored: a MySQL 9.7 follows the mirror of a 5.6, too. 9.7.4 dies now and then (signal 11 in its applier) of CREATE TABLE … SELECT
    as 5.6 writes it in row format; a view makes two of it.
    """
    print(f"seed {seed}")  # pytest shows it when the test fails
    selects = (binlog_format == "ROW" or engines == "innodb") and not mirrored
    kinds = ("InnoDB", "InnoDB", "MyISAM")
    RandomWorkload(source, seed, binlog_format=binlog_format, engines=kinds, selects=selects).run(steps)


# ---- all that an old source writes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("binlog_format", "checksum", "engines", "v1"),
    [
        ("ROW", "CRC32", "keep", False),
        ("ROW", "NONE", "keep", True),
        ("ROW", "CRC32", "innodb", True),
        ("STATEMENT", "CRC32", "innodb", False),
        ("STATEMENT", "NONE", "keep", False),
        ("MIXED", "CRC32", "keep", True),
        ("MIXED", "NONE", "innodb", False),
    ],
)
def test_two_stock_replicas_have_the_tables_of_the_source_and_the_gtids_of_the_view(
    view_chains: ViewChains, binlog_format: str, checksum: str, engines: str, v1: bool
) -> None:
    options = [f"--binlog-checksum={checksum}", *(["--log-bin-use-v1-row-events=1"] if v1 else [])]
    chain = view_chains(options=options, views=[view_keys(engines=engines, accept=accepted(binlog_format))])
    early = chain.view_replica()
    kept_workload(chain.source, binlog_format, engines)
    write_haphazardly(chain.source, binlog_format, engines)
    late = chain.view_replica()
    counts = {chain.check_replica(replica, DATABASES) for replica in (early, late)}
    assert counts == {chain.wait_viewed().gno}
    check_readable(chain)


def test_columns_that_become_others_in_the_mirror_without_a_word_are_the_same_in_the_view(
    view_chains: ViewChains,
) -> None:
    chain = view_chains()
    of_mirror, of_view = chain.replica("mysql97"), chain.view_replica()
    workload.create_schema(chain.source, "STATEMENT", workload.DATABASE)
    with workload.session(chain.source, "STATEMENT") as execute:
        timestamps(execute)
    chain.check_replica(of_view, [workload.DATABASE])
    of_mirror.wait_for_source(chain.source)
    found = differences(table_values(chain.source, ["workload"]), table_values(of_mirror, ["workload"]))
    assert {text.partition(" ")[0].rstrip(":") for text in found} == {"workload.timed", "workload.like_timed"}


def check_readable(chain: ViewChain) -> None:
    """mysqlbinlog of the replica's version reads the view's files, checksums included."""
    for path in binlogs_in(chain.view_directory()):
        done = subprocess.run(
            [*SERVERS["mysql97"].mysqlbinlog(), "--no-defaults", "--verify-binlog-checksum", str(path)],
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr.decode()) == (0, ""), path


@pytest.mark.slow
@pytest.mark.parametrize("binlog_format", workload.FORMATS)
def test_random_work_of_many_seeds_is_kept(view_chains: ViewChains, binlog_format: str) -> None:
    engines = ("InnoDB", "MyISAM", "MEMORY")
    accept = accepted(binlog_format)
    chain = view_chains(views=[view_keys(accept=accept), view_keys("innodb", engines="innodb", accept=accept)])
    replicas = {view: chain.view_replica(view) for view in chain.views}
    for seed in range(100, 104):
        database = f"h{seed}"
        print(f"seed {seed}")
        work = RandomWorkload(
            chain.source, seed, binlog_format=binlog_format, engines=engines, selects=False, database=database
        )
        work.run(120)
        for view, replica in replicas.items():
            chain.check_replica(replica, [database], view)


# ---- failover, and what a second relay hands out ------------------------------------------------------------------------


def test_one_replica_of_the_view_takes_over_from_the_source_and_the_other_follows_it(view_chains: ViewChains) -> None:
    chain = view_chains()
    first, second = chain.view_replica(), chain.view_replica()
    kept_workload(chain.source, "ROW", "keep")
    count = chain.check_replica(first, ["workload"])
    second.stop_replica()  # it may have less: the rest comes from the first one
    with workload.steady_writer(chain.source) as writer:
        wait_until(lambda: writer.committed > 50, "some transactions")
        writer.stop()
    more = chain.check_replica(first, ["workload", "steady"])
    assert more > count
    chain.relay.stop()
    second.attach("127.0.0.1", first.port, auto_position=1, ssl=1)
    first.stop_replica()
    first.execute_many(["RESET REPLICA ALL", "INSERT INTO workload.inno (id, n) VALUES (900000, 1)"])
    wait_executed(second, executed_by(first), chain.relay)
    assert executed_by(second) == executed_by(first)
    assert f"{UUID_OF_VIEW}:1-{more}" in executed_by(second).split(",")
    assert differences(table_values(first, ["workload", "steady"]), table_values(second, ["workload", "steady"])) == []


def test_the_same_bytes_come_from_a_second_relay_from_a_view_made_again_and_from_a_directory(
    view_chains: ViewChains, tmp_path: Path
) -> None:
    chain = view_chains()
    kept_workload(chain.source, "MIXED", "keep")
    write_haphazardly(chain.source, "ROW", "keep")
    chain.wait_viewed()
    with second_relay(tmp_path / "second", chain.source) as second:
        # It begins when all is written, and reads it in large pieces.
        wait_for_gtid(second, chain.wait_viewed().gno)
        assert check_same_files(chain.view_directory(), second.archive / "views" / VIEW) > 100_000
    chain.relay.stop()
    kept = tmp_path / "kept"
    shutil.copytree(chain.view_directory(), kept)
    shutil.rmtree(chain.view_directory())
    chain.relay.start()
    chain.wait_viewed()
    assert check_same_files(kept, chain.view_directory()) > 100_000
    chain.source.stop()
    files = tmp_path / "binlogs"
    files.mkdir()
    for path in [*chain.source.binlogs(), chain.source.binlog_base.with_name("mysql-bin.index")]:
        shutil.copy(path, files)
    with second_relay(tmp_path / "third", files) as third:
        wait_for_gtid(third, len(list(groups_in(kept))))
        third.stop()
        ours, theirs = binlogs_in(kept), binlogs_in(third.archive / "views" / VIEW)
        assert [path.name for path in ours] == [path.name for path in theirs]
        for one, other in zip(ours, theirs, strict=True):
            # The newest one was closed meanwhile: what was made before stays as it is.
            assert other.read_bytes().startswith(one.read_bytes()), one.name


def second_relay(directory: Path, source: Server | Path, views: Sequence[dict[str, Any]] = ()) -> RelayProcess:
    """A relay with the same view, or others, not started yet."""
    directory.mkdir()
    relay = RelayProcess(directory, source, port=free_port(), sections={"listen": listen_with_tls(directory)})
    add_views(relay, views or [view_keys()])
    return relay


def wait_for_gtid(relay: RelayProcess, number: int, view: str = VIEW) -> None:
    """Returns when the view has the transaction with this number."""
    wanted = f"{UUID_OF_VIEW}:1-{number}"

    def has_it() -> bool:
        try:
            (row,) = relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(view))
        except pymysql.OperationalError as error:
            if error.args[0] != 1105:
                raise
            return False  # the view is being opened
        return bool(row[0] == wanted)

    wait_until(has_it, f"{wanted} in the view:\n{relay.log_tail(5)}", 60)


def test_a_relay_that_has_only_the_newer_files_hands_out_the_same_numbers_from_its_start_on(
    view_chains: ViewChains, tmp_path: Path
) -> None:
    chain = view_chains()
    kept_workload(chain.source, "MIXED", "keep")
    place = chain.wait_viewed()
    first, second, *_ = chain.source.binlogs()
    before = chain.lookup().of_source(Position(second.name, 4)).gno
    purged = chain.source.sql(f"PURGE BINARY LOGS TO '{second.name}'")
    assert not purged and before
    start = {"file": second.name, "position": 4, "next": before + 1}
    # Rows of a table are replaced that was made in the purged file: nothing refers to it.
    keys = view_keys(start=start, plain_tables=["workload.counted"])
    with second_relay(tmp_path / "newer", chain.source, [keys]) as relay:
        wait_for_gtid(relay, place.gno)
        relay.stop()
        made = binlogs_in(relay.archive / "views" / VIEW)
        assert [path.name for path in made] == [path.name for path in binlogs_in(chain.view_directory())][1:]
        for path in made:
            assert path.read_bytes() == (chain.view_directory() / path.name).read_bytes(), path.name
        assert first.name not in {path.name for path in made}


def test_a_relay_that_follows_the_view_of_a_relay_keeps_its_gtids(view_chains: ViewChains, tmp_path: Path) -> None:
    chain = view_chains()
    kept_workload(chain.source, "ROW", "keep")
    upstream = {"port": chain.relay.port, "user": account_of(VIEW), "password": REPLICA_PASSWORD}
    sections: dict[str, dict[str, Any]] = {"source": upstream, "listen": listen_with_tls(tmp_path)}
    with RelayProcess(tmp_path / "lower", chain.source, port=free_port(), server_id=4243, sections=sections) as lower:
        replica = chain.server("mysql97", REPLICA_DEFAULTS)
        replica.attach("127.0.0.1", lower.port, "replica", REPLICA_PASSWORD, auto_position=1, ssl=1)
        place = chain.wait_viewed()
        wait_executed(replica, f"{UUID_OF_VIEW}:1-{place.gno}", lower)
        chain.check_replica(replica, ["workload"])
        # What the view adds while both are running comes through too.
        chain.source.sql("INSERT INTO workload.inno (id, n) VALUES (910000, 1)")
        chain.check_replica(replica, ["workload"])


# ---- seeding, and moving in place ---------------------------------------------------------------------------------------


@pytest.fixture
def dumped(view_chains: ViewChains, tmp_path: Path) -> tuple[ViewChain, Path, BinlogPosition]:
    """A chain, a dump of its source, and the position that the dump was made at; the source has gone on since."""
    chain = view_chains()
    with workload.session(chain.source, "ROW", None) as execute:
        execute("CREATE DATABASE d")
        execute("CREATE TABLE d.counted (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB")
        for number in range(40):
            execute(f"INSERT INTO d.counted (v) VALUES ({number})")
    dump = tmp_path / "dump.sql"
    program = Path(SERVERS["mysql97"].mysql_client()[-1]).parent / "mysqldump"
    plugins = program.parent.parent / "lib/mysql/plugin"
    command = [*SERVERS["mysql97"].mysql_client()[:-1], str(program), "--no-defaults", f"--plugin-dir={plugins}"]
    with dump.open("wb") as file:
        subprocess.run(
            [*command, f"--socket={chain.source.socket}", "--user=root", "--ssl-mode=DISABLED",
             "--source-data=2", "--single-transaction", "--databases", "d"],
            stdout=file,
            check=True,
        )  # fmt: skip
    at = chain.source.master_status()
    head = dump.read_text()[:4000]
    assert f"'{at.file}'" in head and str(at.position) in head
    with workload.session(chain.source, "ROW", None) as execute:
        for number in range(40, 60):
            execute(f"INSERT INTO d.counted (v) VALUES ({number})")
    return chain, dump, at


def restored(chain: ViewChain, dump: Path, number: int) -> Server:
    """A new server with the dump, and with everything up to `number` as executed, that follows the view."""
    server = chain.server("mysql97", REPLICA_DEFAULTS)
    server.sql("RESET BINARY LOGS AND GTIDS")
    text = b"SET sql_log_bin = 0;\n" + dump.read_bytes()
    command = [*SERVERS["mysql97"].mysql_client(), "--no-defaults", f"--socket={server.socket}", "--user=root"]
    subprocess.run(command, input=text, check=True)
    server.sql(f"SET GLOBAL gtid_purged = '{UUID_OF_VIEW}:1-{number}'")
    chain.follow_view(server)
    return server


def test_a_replica_made_of_a_dump_goes_on_where_the_dump_was_made(
    dumped: tuple[ViewChain, Path, BinlogPosition],
) -> None:
    chain, dump, at = dumped
    chain.wait_viewed()
    place = chain.lookup().of_source(Position(*at))
    chain.check_replica(restored(chain, dump, place.gno), ["d"])


def test_one_number_less_than_the_dump_has_stops_the_replica_and_one_more_loses_a_row_without_a_word(
    dumped: tuple[ViewChain, Path, BinlogPosition],
) -> None:
    chain, dump, at = dumped
    chain.wait_viewed()
    number = chain.lookup().of_source(Position(*at)).gno
    less = restored(chain, dump, number - 1)
    wait_until(lambda: less.replica_status()["sql_errno"], "the replica stops", 30)
    assert less.replica_status()["sql_errno"] == 1062
    more = restored(chain, dump, number + 1)
    wait_executed(more, chain.gtids_of_view(), chain.relay)
    found = differences(table_values(chain.source, ["d"]), table_values(more, ["d"]))
    assert found == ["d.counted: 60 rows are 59; missing 1: (41, 40); too much 0: "]


def test_a_dump_with_coordinates_inside_a_transaction_is_refused_with_the_nearest_good_ones(
    dumped: tuple[ViewChain, Path, BinlogPosition],
) -> None:
    chain, _, _ = dumped
    chain.wait_viewed()
    file, events, end = last_transaction(chain.source)
    with pytest.raises(InsideTransaction) as caught:
        chain.lookup().of_source(Position(file, events[1]))
    assert caught.value.before.source == Position(file, events[0])
    assert caught.value.after is not None
    assert caught.value.after.source == Position(file, end)
    assert caught.value.after.gno == caught.value.before.gno + 1


def test_a_replica_that_follows_the_mirror_by_position_moves_to_the_view_in_place(view_chains: ViewChains) -> None:
    chain = view_chains()
    replica = chain.server("mysql97")
    # Or TIMESTAMP columns become others in the mirror, without a word.
    replica.sql("SET GLOBAL explicit_defaults_for_timestamp = OFF")
    chain.attach(replica)
    kept_workload(chain.source, "MIXED", "keep", with_accounts=False)  # in the mirror they would stop it
    replica.wait_for_source(chain.source)
    write_haphazardly(chain.source, "ROW", "keep", steps=40, mirrored=True)
    replica.wait_for_source(chain.source)
    replica.stop_replica()
    status = replica.replica_status()
    at = Position(status["exec_file"], status["exec_position"])
    chain.source.sql("INSERT INTO workload.inno (id, n) VALUES (920000, 1)")
    chain.wait_viewed()
    number = chain.lookup().of_source(at).gno
    replica.execute_many(
        [
            "SET GLOBAL enforce_gtid_consistency = ON",
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = ON",
            "RESET REPLICA",
            "RESET BINARY LOGS AND GTIDS",
            f"SET GLOBAL gtid_purged = '{UUID_OF_VIEW}:1-{number}'",
        ]
    )
    chain.follow_view(replica)
    chain.check_replica(replica, DATABASES)


# ---- a new source --------------------------------------------------------------------------------------------------------

NEW_SOURCE = {
    "keep": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "anonymous": ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"],
    "assign": ["--gtid-mode=OFF_PERMISSIVE", "--enforce-gtid-consistency=ON"],
}


@pytest.mark.parametrize("gtids", NEW_SOURCE)
def test_a_view_of_a_new_source_is_followed_by_new_replicas(view_chains: ViewChains, gtids: str) -> None:
    chain = view_chains("mysql97", options=NEW_SOURCE[gtids], views=[view_keys(gtids=gtids)])
    source = chain.source
    with workload.session(source, "ROW", None) as execute:
        execute("CREATE DATABASE d")
        execute("CREATE TABLE d.t (id INT PRIMARY KEY, a JSON, b VECTOR(3), ts TIMESTAMP, c VARCHAR(50)) ENGINE=InnoDB")
        for number in range(30):
            execute(f"INSERT INTO d.t VALUES ({number}, '{{\"n\": {number}}}', TO_VECTOR('[1,2,3]'), NOW(), 'é')")
        execute("CREATE TABLE d.made ENGINE=InnoDB AS SELECT id, c FROM d.t")
        execute("SET SESSION binlog_transaction_compression = ON")
        execute("INSERT INTO d.t (id, c) SELECT id + 100, REPEAT('x', 50) FROM d.t")
        execute("FLUSH LOGS")
        for end in ("COMMIT", "ROLLBACK"):
            execute("XA START 'x'")
            execute(f"UPDATE d.t SET c = '{end}' WHERE id = 5")
            execute("XA END 'x'")
            execute("XA PREPARE 'x'")
            execute(f"XA {end} 'x'")
    if gtids == "anonymous":
        replica = chain.server("mysql97")
        at = BinlogPosition(source.binlogs()[0].name, 4)
        replica.attach("127.0.0.1", chain.relay.port, account_of(VIEW), REPLICA_PASSWORD, at.file, at.position, ssl=1)
        place = chain.wait_viewed()
        replica.wait_caught_up(place.view.file, place.view.offset)
        check_equal(source, replica, ["d"])
        assert {group.gno for group in groups_in(chain.view_directory())} == {0}
        return
    replica = chain.view_replica()
    chain.check_replica(replica, ["d"])
    if gtids == "keep":
        assert executed_by(replica) == executed_by(source)


@pytest.mark.parametrize("binlog_format", ["ROW", "MIXED"])
def test_a_replica_takes_anonymous_transactions_of_an_old_source_and_numbers_them_itself(
    view_chains: ViewChains, binlog_format: str
) -> None:
    views = [view_keys(gtids="anonymous"), view_keys("old", gtids="anonymous", **{"for": "mysql-5.6"})]
    chain = view_chains(views=views)
    replicas = {
        chain.server("mysql97", REPLICA_DEFAULTS): VIEW,
        chain.server("mysql97"): VIEW,
        chain.server("mysql56"): "old",
    }
    kept_workload(chain.source, binlog_format, "keep")
    assigning, permissive, old = replicas
    at = BinlogPosition(chain.source.binlogs()[0].name, 4)
    extra = {assigning: {"assign_gtids_to_anonymous_transactions": "LOCAL", "ssl": 1}, permissive: {"ssl": 1}, old: {}}
    for replica, view in replicas.items():
        login = ("127.0.0.1", chain.relay.port, account_of(view), REPLICA_PASSWORD)
        replica.attach(*login, at.file, at.position, **extra[replica])
    for replica, view in replicas.items():
        place = chain.wait_viewed(view)
        replica.wait_caught_up(place.view.file, place.view.offset)
        check_equal(chain.source, replica, ["workload"])
    assert executed_by(permissive) == ""


# ---- what cannot be kept -------------------------------------------------------------------------------------------------

STATEMENTS = ["SET SESSION binlog_format = STATEMENT"]
CANNOT_BE_KEPT = {
    "one statement that writes both engines": [*STATEMENTS, "UPDATE d.i JOIN d.m USING (id) SET i.v = 7, m.v = 8"],
    "CREATE … SELECT into MyISAM": [*STATEMENTS, "CREATE TABLE d.n (id INT PRIMARY KEY) ENGINE=MyISAM SELECT id FROM d.i"],
    "partitions of MyISAM": [
        "CREATE TABLE d.p (id INT PRIMARY KEY) ENGINE=MyISAM PARTITION BY HASH (id) PARTITIONS 2"
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", CANNOT_BE_KEPT)
def test_a_view_stops_by_name_before_what_cannot_be_kept_and_everything_else_goes_on(
    view_chains: ViewChains, what: str
) -> None:
    chain = view_chains(views=[view_keys(), view_keys("all_innodb", engines="innodb", uuid=str(UUID_OF_VIEW))])
    source = chain.source
    source.execute_many(
        [
            "CREATE DATABASE d",
            "CREATE TABLE d.i (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
            "CREATE TABLE d.m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
            "INSERT INTO d.i VALUES (1, 1), (2, 2)",
            "INSERT INTO d.m VALUES (1, 1), (2, 2)",
        ]
    )
    replica = chain.view_replica()
    chain.check_replica(replica, ["d"])
    before = table_values(source, ["d"])
    at = source.master_status()
    source.execute_many(CANNOT_BE_KEPT[what])
    source.sql("INSERT INTO d.i VALUES (3, 3)")
    stop = chain.wait_stopped()
    assert (stop["view"], stop["file"], stop["offset"]) == (VIEW, at.file, at.position)
    assert stop["what"] and stop["advice"], json.dumps(stop)
    # The mirror, the other view and the replica go on.
    chain.check_archive()
    other = chain.view_replica("all_innodb")
    chain.check_replica(other, ["d"], "all_innodb")
    assert not differences(before, table_values(replica, ["d"]))
    status = replica.replica_status()
    assert (status["io_running"], status["io_errno"], status["sql_errno"]) == ("Yes", 0, 0)


def test_a_group_that_somebody_skipped_takes_its_gtid_and_the_view_goes_on(view_chains: ViewChains) -> None:
    chain = view_chains()
    source = chain.source
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.i (id INT PRIMARY KEY) ENGINE=InnoDB"])
    replica = chain.view_replica()
    count = chain.check_replica(replica, ["d"])
    source.sql("CREATE TABLE d.p (id INT PRIMARY KEY) ENGINE=MyISAM PARTITION BY HASH (id) PARTITIONS 2")
    source.sql("INSERT INTO d.i VALUES (1)")
    stop = chain.wait_stopped()
    chain.relay.stop()
    done = chain.relay.command("view", "skip", VIEW, "--at", f"{stop['file']}:{stop['offset']}", "--yes")
    assert done.returncode == 0, done.stderr
    chain.relay.start()
    source.sql("DROP TABLE d.p")
    source.sql("DROP DATABASE d")  # a DROP of what the replica has not would stop it
    place = chain.wait_viewed()
    assert place.gno == check_numbers(chain.view_directory(), UUID_OF_VIEW) == count + 4
