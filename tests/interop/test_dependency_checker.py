"""The checker of dependencies, checked: it knows the rows, finds nothing in what a MySQL 9.7 writes, and something in worse numbers."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.dependency_checker import EXPRESSIONS, RULES, DependencyChecker, fitting_numbers, number_faults
from tests.support.free_port import free_port
from tests.support.key_judge import KeyJudge
from tests.support.key_workload import DATABASE, KeyWorkload, keyed_tables, works
from tests.support.logged_rows import Row, Value
from tests.support.numbered_groups import groups_of, parallel_width, renumbered
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_chain import wait_executed
from tests.support.view_files import binlogs_in
from tests.support.view_writer import VIEW_UUID, AsItIs, ViewWriter

pytestmark = pytest.mark.interop

TRANSACTIONS = 4000
NEW = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-lock-wait-timeout=3"]
OLD = ["--binlog-format=ROW", "--innodb-lock-wait-timeout=3"]


@pytest.fixture(scope="module")
def judge(module_servers: ServerFactory) -> Iterator[KeyJudge]:
    with KeyJudge(module_servers("mysql97").start(server_id=9)) as judge:
        yield judge


@pytest.fixture(params=["FULL", "MINIMAL", "NOBLOB"])
def image(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def numbered(source: Server, directory: Path) -> list[Path]:
    """The binlogs of a source without GTIDs, with a GTID event in front of each group."""
    source.sql("FLUSH LOGS")
    writer = ViewWriter(directory, AsItIs())
    for binlog in source.binlogs()[:-1]:
        writer.write(binlog)
    return binlogs_in(directory)


def shown(row: Row, kinds: list[str]) -> tuple[object, ...]:
    """Those values that HEX and plain SELECT show alike on all servers: of numbers, texts and bytes."""

    def value_of(value: Value, kind: str) -> object:
        if not isinstance(value, bytes):
            return value
        return int.from_bytes(value, "little", signed=True) if kind.startswith("INT") else value.hex().upper()

    return tuple(value_of(value, kind) for value, kind in zip(row, kinds, strict=True) if is_shown(kind))


def changed(last_committed: int, sequence_number: int, wrong: str, file: int) -> tuple[int, int]:
    """Numbers that a view must not have."""
    if wrong == "doubled":
        return 2 * last_committed, 2 * sequence_number
    if wrong == "no parent":
        return 0, sequence_number
    return last_committed + 1 + file, sequence_number + 1 + file


def is_shown(kind: str) -> bool:
    return kind.startswith(("INT", "VARCHAR", "TEXT", "BLOB", "VARBINARY"))


def test_a_connection_says_the_same_each_time() -> None:
    for connection in range(3):
        first, second = works(5, connection), works(5, connection)
        assert [next(first) for _ in range(300)] == [next(second) for _ in range(300)]
    assert next(works(5, 6)) != next(works(6, 6))


def test_it_knows_the_rows_that_mysql_56_has_though_its_binlogs_do_not_tell_of_cascades(
    servers: ServerFactory, judge: KeyJudge, tmp_path: Path, image: str
) -> None:
    source = servers("mysql56").start(server_id=1, options=[*OLD, f"--binlog-row-image={image}"])
    work = KeyWorkload(source, 1)
    work.run(TRANSACTIONS)
    judge.forget()
    checker = DependencyChecker(judge)
    cascaded = 0
    for path in numbered(source, tmp_path / "made"):
        for claimed in checker.claims(path):
            cascaded += claimed.cascaded_rows
    assert (checker.unknown_rows, cascaded > 20) == (0, True)
    for table in keyed_tables():
        kinds = [column.type for column in table.columns.values()]
        names = [
            name if column.type.startswith("INT") else f"HEX({name})"
            for name, column in table.columns.items()
            if is_shown(column.type)
        ]
        asked = Counter(source.sql(f"SELECT {', '.join(names)} FROM {table.name}", DATABASE))
        assert Counter(shown(row, kinds) for row in checker.history.rows((DATABASE, table.name))) == asked, table.name


def test_in_the_binlogs_of_a_real_mysql_97_nothing_collides(
    servers: ServerFactory, judge: KeyJudge, image: str
) -> None:
    source = servers("mysql97").start(server_id=1, options=[*NEW, f"--binlog-row-image={image}"])
    KeyWorkload(source, 2, generated=True).run(TRANSACTIONS)
    judge.forget()
    checker = DependencyChecker(judge)
    for path in source.binlogs():
        # It lets a statement begin while transactions before it commit, whose locks it did not need.
        assert not list(map(str, checker.violations(path, alone=False)))
        assert parallel_width(list(groups_of(path))) > 1
    assert checker.unknown_rows == 0
    assert checker.groups > TRANSACTIONS / 4


def test_values_of_expressions_are_those_that_the_server_computes(
    servers: ServerFactory, judge: KeyJudge, tmp_path: Path
) -> None:
    source = servers("mysql97").start(server_id=1, options=NEW)
    source.execute_many(
        [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, w VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, n INT UNSIGNED,"
            " UNIQUE KEY computed ((CONCAT(w, 'x')), n))",
            "INSERT INTO d.t VALUES (1, 'é', 7), (2, NULL, 7), (3, 'f', 4000000000)",
            "DELETE FROM d.t WHERE id = 1",
            "INSERT INTO d.t VALUES (4, 'E', 7)",
            "INSERT INTO d.t VALUES (5, NULL, 7)",
            "INSERT INTO d.t VALUES (6, 'e', 8)",
        ]
    )
    (path,) = source.binlogs()
    for leave_out, last in (((), 4), ((EXPRESSIONS,), 2)):
        judge.forget()
        numbers = fitting_numbers(DependencyChecker(judge, leave_out).claims(path))
        # The fifth takes the value that the fourth gave up; all wait for the table.
        assert numbers == [(0, 1), (1, 2), (2, 3), (3, 4), (last, 5), (2, 6), (2, 7)]


def test_numbers_that_lack_a_rule_collide_and_those_with_all_do_not_on_a_replica_either(
    servers: ServerFactory, judge: KeyJudge, tmp_path: Path
) -> None:
    source = servers("mysql56").start(server_id=1, options=OLD)
    # One after the other: what collides is always the same.
    KeyWorkload(source, 3).run(TRANSACTIONS, connections=1)
    paths = numbered(source, tmp_path / "made")

    def numbers(*leave_out: str) -> list[list[tuple[int, int]]]:
        judge.forget()
        checker = DependencyChecker(judge, leave_out)
        return [fitting_numbers(checker.claims(path)) for path in paths]

    def found(of_files: list[list[tuple[int, int]]]) -> list[str]:
        judge.forget()
        checker = DependencyChecker(judge)
        told = []
        for path, pairs in zip(paths, of_files, strict=True):
            path.write_bytes(renumbered(path.read_bytes(), pairs))
            told += [violation.why for violation in checker.violations(path)]
        return told

    for rule in RULES:
        assert found(numbers(rule)), f"nothing collides without the {rule}"
    right = numbers()
    for wrong in ("doubled", "no parent", "not anew"):
        found([[changed(*pair, wrong, file) for pair in pairs] for file, pairs in enumerate(right)])
        assert any(fault for path in paths for fault in number_faults(path)), wrong
    assert not found(right)
    assert not [fault for path in paths for fault in number_faults(path)]
    assert sum(len(list(groups_of(path))) for path in paths) > TRANSACTIONS / 4
    with contextlib.ExitStack() as running:
        unended = {"source": {"unended_files": [path.name for path in paths]}}
        relay = RelayProcess(tmp_path / "relay", paths[0].parent, port=free_port(), markers="strip", sections=unended)
        running.enter_context(relay)
        relay.wait_archived(paths[-1].name, paths[-1].stat().st_size)
        executed = f"{VIEW_UUID}:1-{sum(len(list(groups_of(path))) for path in paths)}"
        for workers, order in ((4, "ON"), (16, "OFF")):
            options = [*NEW, f"--replica-parallel-workers={workers}", f"--replica-preserve-commit-order={order}"]
            replica = servers("mysql97").start(server_id=workers, options=options)
            replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
            wait_executed(replica, executed, relay)
            check_equal(source, replica, [DATABASE])
            replica.stop()
