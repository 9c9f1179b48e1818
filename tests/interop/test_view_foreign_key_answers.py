"""A view that stopped at a REPLACE goes on, in the running relay's own files, by each of the ways that it names."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ServerFactory
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, ViewChain
from tests.support.view_files import binlogs_in

pytestmark = pytest.mark.interop
ViewChains = Callable[..., ViewChain]

TABLES = [
    "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "INSERT INTO p VALUES (1, 1), (2, 2)",
    "INSERT INTO c VALUES (11, 1), (22, 2)",
]
REPLACE = "REPLACE INTO p VALUES (1, 5)"


@pytest.fixture
def view_chains(servers: ServerFactory, tmp_path: Path) -> Iterator[ViewChains]:
    """Makes chains with views; all of their processes are ended with the test."""
    with contextlib.ExitStack() as made:
        yield lambda **settings: made.enter_context(ViewChain(servers, "mysql56", tmp_path / "relay", **settings))


def stopped(chain: ViewChain, statement: str = REPLACE, reason: str = "replace_in_parent_table") -> dict[str, Any]:
    """The view stands before a statement, and `view check` says the same."""
    at = chain.source.master_status()
    chain.source.sql(statement, "d")
    chain.source.sql("INSERT INTO p VALUES (3, 3)", "d")
    stop = chain.wait_stopped()
    assert (stop["file"], stop["offset"], stop["reason"]) == (at.file, at.position, reason)
    assert stop["replica_error"] is None
    checked = chain.relay.command("view", "check", VIEW)
    assert checked.returncode == 1
    assert reason in checked.stdout
    return stop


def answer(chain: ViewChain, key: str, value: object) -> None:
    """One more key of the view, which exists already; what it has stays as it is."""
    before = {path.name: path.read_bytes() for path in binlogs_in(chain.view_directory())}
    assert any(len(data) > 200 for data in before.values())
    chain.relay.stop()
    text = chain.relay.config.read_text(encoding="utf-8")
    name = f'name = "{VIEW}"\n'
    assert text.count(name) == 1
    chain.relay.config.write_text(text.replace(name, f"{name}{key} = {json.dumps(value)}\n"), encoding="utf-8")
    chain.views[VIEW][key] = value
    chain.relay.start()
    chain.wait_viewed()
    for name, data in before.items():
        assert (chain.view_directory() / name).read_bytes().startswith(data[:-4])


def test_replicas_whose_innodb_carries_out_foreign_keys_take_it(view_chains: ViewChains) -> None:
    chain = view_chains()
    chain.source.execute_many(["CREATE DATABASE d", "USE d", *TABLES])
    replica = chain.view_replica(options=[*REPLICA_DEFAULTS, "--innodb-native-foreign-keys=ON"])
    chain.check_replica(replica, ["d"])
    stopped(chain)
    answer(chain, "foreign_keys", "innodb")
    chain.check_replica(replica, ["d"])
    assert replica.sql("SELECT id FROM d.c") == [(22,)]
    chain.relay.stop()
    verified = chain.relay.command("view", "verify", VIEW)
    assert verified.returncode == 0, verified.stdout + verified.stderr


DEEPER = [
    "CREATE TABLE g (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE)",
    "CREATE TABLE h (id INT PRIMARY KEY, g INT, FOREIGN KEY (g) REFERENCES g (id) ON DELETE CASCADE)",
    "INSERT INTO c VALUES (12, 1)",
    "INSERT INTO g VALUES (1, 11), (2, 12), (3, 22)",
]
LOGGED = [
    "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, id INT)",
    "CREATE TRIGGER tr AFTER DELETE ON c FOR EACH ROW INSERT INTO log (id) VALUES (OLD.id)",
]
FIRES = [
    "CREATE TABLE w (a INT)",
    "CREATE TRIGGER w_tr AFTER INSERT ON w FOR EACH ROW REPLACE INTO p VALUES (NEW.a, 5)",
]
ONE_BY_ONE = ["DELETE FROM g WHERE id < 3", "DELETE FROM c WHERE p = 1", "DELETE FROM p WHERE id = 1"]


@pytest.mark.parametrize(
    ("more", "statement", "reason", "by_hand"),
    [
        ([], REPLACE, "replace_in_parent_table", ["DELETE FROM p WHERE id = 1", "INSERT INTO p VALUES (1, 5)"]),
        (
            FIRES,
            "INSERT INTO w VALUES (1)",
            "replace_in_parent_table",
            ["INSERT INTO w VALUES (1)", "DELETE FROM c WHERE p = 1"],
        ),
        (DEEPER, "DELETE FROM p WHERE id = 1", "incomplete_cascade", ONE_BY_ONE),
        (
            LOGGED,
            "DELETE p, c FROM p JOIN c ON c.p = p.id WHERE p.id = 1",
            "multi_table_delete",
            ["DELETE FROM p WHERE id = 1"],  # the cascade took the other row before its trigger
        ),
    ],
)
def test_what_it_did_is_done_by_hand_and_skipped(
    view_chains: ViewChains, more: list[str], statement: str, reason: str, by_hand: list[str]
) -> None:
    chain = view_chains()
    chain.source.execute_many(["CREATE DATABASE d", "USE d", *TABLES, *more])
    replica = chain.view_replica()
    chain.check_replica(replica, ["d"])
    stop = stopped(chain, statement, reason)
    replica.execute_many(["SET sql_log_bin = 0", *by_hand], "d")
    chain.relay.stop()
    done = chain.relay.command("view", "skip", VIEW, "--at", f"{stop['file']}:{stop['offset']}", "--yes")
    assert done.returncode == 0, done.stderr
    chain.relay.start()
    chain.check_replica(replica, ["d"])
    assert replica.sql("SELECT id FROM d.c") == [(22,)]


def test_of_a_table_that_is_older_than_the_archive_somebody_says_that_nothing_refers_to_it(
    view_chains: ViewChains,
) -> None:
    chain = view_chains()
    older = ["SET sql_log_bin = 0", "CREATE DATABASE d", "USE d", TABLES[0], TABLES[2]]
    chain.source.execute_many(older)
    replica = chain.server("mysql97", REPLICA_DEFAULTS)
    replica.execute_many(older)
    chain.follow_view(replica)
    chain.source.execute_many([f"UPDATE d.p SET v = {value} WHERE id = 2" for value in range(5)])
    chain.check_replica(replica, ["d"])
    stop = stopped(chain)
    assert "created before the archive" in stop["what"]
    assert "plain_tables" in stop["advice"]
    answer(chain, "plain_tables", ["d.p"])
    chain.check_replica(replica, ["d"])


def test_an_answer_cannot_be_taken_back_without_making_the_view_again(view_chains: ViewChains) -> None:
    chain = view_chains()
    chain.source.execute_many(["CREATE DATABASE d", "USE d", *TABLES])
    chain.wait_viewed()
    answer(chain, "plain_tables", ["*"])
    chain.relay.stop()
    text = chain.relay.config.read_text(encoding="utf-8")
    chain.relay.config.write_text(text.replace('plain_tables = ["*"]\n', ""), encoding="utf-8")
    chain.relay.start()
    (line,) = chain.relay.logged("view_not_served")
    assert "plain_tables was ['*'], is []" in str(line)
