"""Views that say which transactions wait for which: what old sources write, applied side by side by real replicas."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.random_workload import RandomWorkload
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, ViewChain, add_views, view_keys
from tests.support.view_waits import waits_in

pytestmark = pytest.mark.interop
ViewChains = Callable[..., ViewChain]
SIXTEEN = (*REPLICA_DEFAULTS[:-1], "--replica-parallel-workers=16")
TABLES = (
    "CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name))",
    "CREATE TABLE keyless (n INT, text VARCHAR(20))",
    "CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE)",
    "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent (id))",
    "CREATE TABLE cascading (id INT PRIMARY KEY, code INT, FOREIGN KEY (code) REFERENCES parent (code) "
    "ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE SET NULL)",
    "CREATE TABLE lists (a INT, b VARCHAR(10) COLLATE utf8_bin, UNIQUE (a, b)) ENGINE=MyISAM",
)


@pytest.fixture
def view_chains(servers: ServerFactory, tmp_path: Path) -> Iterator[ViewChains]:
    """Makes chains with views; all of their processes are ended with the test."""
    with ExitStack() as made:

        def make(source_name: str = "mysql56", **settings: Any) -> ViewChain:
            count = len(list(tmp_path.iterdir()))
            settings.setdefault("views", [view_keys(dependencies="writeset")])
            return made.enter_context(ViewChain(servers, source_name, tmp_path / f"relay{count}", **settings))

        yield make


def changes(chance: random.Random, count: int) -> Iterator[str]:
    """Changes of single rows of TABLES, some in transactions; some fail, and change nothing."""
    left = 0
    for _ in range(count):
        if left == 0 and chance.random() < 0.2:
            left = chance.randrange(2, 5)
            yield "BEGIN"
        left -= left > 0
        n, m = chance.randrange(60), chance.randrange(60)
        yield chance.choice(
            (
                f"REPLACE INTO plain VALUES ({n}, '{chance.choice('aAbBcCéß')}{m}')",
                f"UPDATE plain SET name = concat(name, 'x') WHERE id = {n}",
                f"DELETE FROM plain WHERE id = {n}",
                f"INSERT INTO keyless VALUES ({n}, 'some')",
                f"UPDATE keyless SET text = 'other' WHERE n = {n} LIMIT 1",
                f"INSERT IGNORE INTO parent VALUES ({n}, {m})",
                f"INSERT IGNORE INTO parent VALUES ({n}, NULL)",
                f"UPDATE IGNORE parent SET code = {m} WHERE id = {n}",
                f"DELETE IGNORE FROM parent WHERE id = {n}",
                f"INSERT IGNORE INTO child VALUES ({n}, {m})",
                f"UPDATE IGNORE child SET parent_id = {m} WHERE id = {n}",
                f"DELETE FROM child WHERE id = {n}",
                f"INSERT IGNORE INTO cascading VALUES ({n}, {m})",
                f"INSERT IGNORE INTO tree VALUES ({n}, {m})",
                f"INSERT IGNORE INTO tree VALUES ({n}, NULL)",
                f"DELETE FROM tree WHERE id = {n}",
                f"REPLACE INTO lists VALUES ({n}, '{chance.choice('aAbB')}')",
            )
        )
        if left == 1:
            left = 0
            yield "COMMIT"
    yield "COMMIT"


def write(chain: ViewChain, statements: Sequence[str], binlog_format: str = "ROW") -> None:
    """Runs the statements on one connection, in the database `d`."""
    with chain.source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SET binlog_format = {binlog_format}")
        if statements[0] == TABLES[0]:
            cursor.execute("CREATE DATABASE d CHARACTER SET utf8")
        cursor.execute("USE d")
        for statement in statements:
            with suppress(pymysql.err.IntegrityError):
                cursor.execute(statement)


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_replicas_with_4_and_16_workers_have_the_tables_of_the_source(view_chains: ViewChains, image: str) -> None:
    chain = view_chains(options=[f"--binlog-row-image={image}"])
    replicas = [chain.view_replica(), chain.view_replica(options=SIXTEEN)]
    write(chain, [*TABLES, *changes(random.Random(17), 3000)])
    for replica in replicas:
        chain.check_replica(replica, ["d"])
    waits = waits_in(chain.view_directory())
    waits.check_numbers()
    # Of a row that is deleted a minimal image does not tell the values of its other keys.
    assert waits.width > (1.5 if image == "MINIMAL" else 2)
    check_made_again(chain)


def test_random_work_of_all_engines_is_kept(view_chains: ViewChains) -> None:
    chain = view_chains()
    replica = chain.view_replica(options=SIXTEEN)
    RandomWorkload(chain.source, 17, binlog_format="ROW", engines=("InnoDB", "InnoDB", "MyISAM"), selects=True).run(250)
    chain.check_replica(replica, ["haphazard"])
    waits_in(chain.view_directory()).check_numbers()


def test_tables_that_are_older_than_the_archive_are_known_once_the_source_was_asked(
    servers: ServerFactory, tmp_path: Path
) -> None:
    recording = {"source": {"record_schema": True}}
    chain = ViewChain(servers, "mysql56", tmp_path, views=[view_keys(dependencies="writeset")], sections=recording)
    write(chain, TABLES)
    # An old source tells foreign keys to those who may see its processes.
    chain.source.sql(f"GRANT REFERENCES, PROCESS ON *.* TO '{chain.source.replication_user}'@'%'")
    chain.source.sql("RESET MASTER")
    with chain:
        replica = chain.server("mysql97", REPLICA_DEFAULTS)
        with replica.connect() as connection, connection.cursor() as cursor:
            for statement in ("SET sql_log_bin = 0", "CREATE DATABASE d CHARACTER SET utf8", "USE d", *TABLES):
                cursor.execute(statement)
        chain.follow_view(replica)
        kept = chain.relay.archive / "views" / f"{VIEW}.tables.jsonl"

        def is_known() -> bool:
            write(chain, ["INSERT INTO keyless VALUES (1, 'asks')"])
            chain.wait_viewed()
            return '"kind": "table"' in kept.read_text()

        wait_until(is_known, "the tables are known to the view", 30)
        write(chain, list(changes(random.Random(3), 1500)))
        chain.check_replica(replica, ["d"])
        before = [pair for pairs in waits_in(chain.view_directory()).files.values() for pair in pairs]
        waits_in(chain.view_directory()).check_numbers()
        assert sum(last < number - 1 for last, number in before) > len(before) / 4
        check_made_again(chain)
        check_told_before(chain)


def check_made_again(chain: ViewChain) -> None:
    """The view is what it would be if it were made once more, also behind a restart of the relay."""
    for _ in range(2):
        done = chain.relay.command("view", "verify", VIEW)
        assert done.returncode == 0, done.stdout
        chain.relay.stop()
        chain.relay.start()


def check_told_before(chain: ViewChain) -> None:
    """Another view of the same archive, which is not made yet: how many transactions will not wait, and why others will."""
    add_views(chain.relay, [view_keys("later", dependencies="writeset")])
    done = chain.relay.command("view", "check", "later", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])["dependencies"]
    # What the source was asked holds for all of its binlogs, which the view that was begun before did not know yet.
    assert told["beside_the_one_before"] > told["transactions"] / 4
    causes = {(one["why"], one["table"]) for one in told["serial"]}
    assert {("cascade", "d.parent"), ("no_key", "d.keyless"), ("values_not_compared", "d.plain")} <= causes
    assert not any(why == "table_unknown" for why, _table in causes)
