"""Views of a relay that goes over to a promoted replica: real replicas of the views notice nothing, by GTID, on one connection."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_comparison import differences
from relay.view.inspect.view_listing import files_of
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    account_of,
    add_views,
    executed_by,
    follow,
    listen_with_tls,
    settings_of,
    view_keys,
    wait_executed,
)

pytestmark = pytest.mark.interop
VIEWS = [view_keys("kept", gtids="keep"), view_keys("given")]
NAMES = [str(keys["name"]) for keys in VIEWS]
GIVEN_UP_S = 60.0
TOLD = re.compile(r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)")


@pytest.fixture
def replica(servers: ServerFactory) -> Callable[[], Server]:
    """Makes stock replicas."""
    numbers = iter(range(10, 99))
    return lambda: servers("mysql97").start(server_id=next(numbers), options=REPLICA_DEFAULTS)


def pair(servers: ServerFactory) -> tuple[Server, Server]:
    """A source, and a replica of it that takes its place. Their files of one name have other transactions."""
    first, second = (servers("mysql97").start(server_id=number, options=REPLICA_DEFAULTS) for number in (1, 2))
    second.sql("FLUSH BINARY LOGS")
    second.attach_to(first)
    first.sql("CREATE DATABASE d")
    first.sql("CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, b TEXT)")
    first.sql("CREATE TABLE d.m (a INT NOT NULL PRIMARY KEY, b JSON) ENGINE=MyISAM")
    insert(first, 0, 20)
    first.sql("FLUSH BINARY LOGS")
    insert(first, 100, 20)
    return first, second


def insert(server: Server, begin: int, count: int) -> None:
    """Rows in tables with transactions and without, changed and removed, and a new table."""
    server.execute_many(f"INSERT INTO d.t VALUES ({key}, REPEAT('x', 300))" for key in range(begin, begin + count))
    server.execute_many(
        [
            f"INSERT INTO d.m VALUES ({begin}, JSON_OBJECT('a', {begin}))",
            f"UPDATE d.t SET b = REPEAT('y', 50) WHERE a = {begin}",
            f"DELETE FROM d.t WHERE a = {begin + 1}",
            f"CREATE TABLE d.t{begin} (a INT PRIMARY KEY) SELECT a FROM d.t",
            f"ALTER TABLE d.t{begin} ADD COLUMN c TIMESTAMP DEFAULT '2024-01-01 00:00:00'",
            "CREATE USER IF NOT EXISTS 'somebody'@'localhost'",
        ]
    )


def promote(relay: RelayProcess, first: Server, second: Server) -> None:
    """`second` goes on with writing, and the relay with it. What it wrote of `first` comes again, and is known by its GTIDs."""
    second.wait_for_source(first)
    first.kill()
    second.stop_replica()
    insert(second, 200, 20)
    relay.sql("STOP SLAVE")
    relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={second.port}")
    relay.sql("START SLAVE")


def check(relay: RelayProcess, source: Server, *followers: Server) -> None:
    """They have all of the source, and nothing else, by GTIDs and by tables; so has each view."""
    wanted = executed_by(source)
    for follower in followers:
        wait_executed(follower, wanted, relay, GIVEN_UP_S)
        assert executed_by(follower) == wanted
        check_equal(source, follower, ["d"])
    for name in NAMES:
        (found,) = relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(name))
        assert str(found[0]).replace("\n", "") == wanted


def relay_with_views(directory: Path, source: Server) -> RelayProcess:
    sections = {"[account]": {"admin": True}, "listen": listen_with_tls(directory)}
    relay = RelayProcess(directory / "relay", source, port=free_port(), sections=sections)
    add_views(relay, VIEWS)
    return relay


def generations_of(relay: RelayProcess, view: str) -> list[tuple[int, int]]:
    made = made_generations(relay.archive, relay.archive / "views" / view)
    return [(one.number, one.source_number) for one in made]


@pytest.mark.parametrize("killed", [False, True])
def test_replicas_of_views_go_on_with_a_promoted_replica(
    servers: ServerFactory, replica: Callable[[], Server], tmp_path: Path, killed: bool
) -> None:
    first, second = pair(servers)
    with relay_with_views(tmp_path, first) as relay:
        followers = {name: replica() for name in NAMES}
        for name, follower in followers.items():
            follow(follower, relay.port, name)
        for follower in followers.values():
            wait_executed(follower, executed_by(first), relay, GIVEN_UP_S)
        promote(relay, first, second)
        if killed:
            wait_until(
                lambda: any((relay.archive / "views").glob("*/g0002")), f"a view goes over:\n{relay.log_tail()}", 30
            )
            relay.kill()
            relay.start()
        check(relay, second, *followers.values())
        second.sql("FLUSH BINARY LOGS")
        insert(second, 300, 5)
        late = {name: replica() for name in NAMES}
        for name, follower in late.items():
            follow(follower, relay.port, name)
        check(relay, second, *followers.values(), *late.values())
        assert [generations_of(relay, name) for name in NAMES] == [[(1, 1), (2, 2)]] * 2
        assert relay.stop() == 0
        for keys in VIEWS:
            view = named_view(relay.archive, settings_of(keys))
            for made in made_generations(view.archive, view.directory):
                assert list(differences(made.directory, files_of(made.directory), made_again(view, made))) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_replica_by_the_views_file_and_position_is_told_where_it_goes_on(
    servers: ServerFactory, replica: Callable[[], Server], tmp_path: Path, name: str
) -> None:
    first, second = pair(servers)
    with relay_with_views(tmp_path, first) as relay:
        begin = first.binlogs()[0].name
        wait_until((relay.archive / "views" / name / begin).exists, "the view has a file", GIVEN_UP_S)
        follower = replica()
        follower.attach("127.0.0.1", relay.port, account_of(name), REPLICA_PASSWORD, begin, 4, ssl=1)
        wait_executed(follower, executed_by(first), relay, GIVEN_UP_S)
        promote(relay, first, second)
        number, text = follower.wait_io_error(GIVEN_UP_S)
        told = TOLD.search(text)
        assert number in (1236, 13114) and told is not None, (number, text)
        file, offset = told[1], int(told[2])
        follower.attach("127.0.0.1", relay.port, account_of(name), REPLICA_PASSWORD, file, offset, ssl=1)
        check(relay, second, follower)
