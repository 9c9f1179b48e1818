"""Views of sources that say themselves which transactions may run together: of that and of what the keys say, the wider counts."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.view.dependencies.tables_file import read_tables
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_comparison import differences
from relay.view.inspect.view_listing import files_of
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.conftest import ServerFactory
from tests.support.dependency_checker import check_dependencies
from tests.support.free_port import free_port
from tests.support.key_judge import KeyJudge
from tests.support.key_workload import DATABASE, KeyWorkload
from tests.support.numbered_groups import groups_of, parallel_width, renumbered
from tests.support.relay_process import RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    VIEW,
    ViewChain,
    add_views,
    executed_by,
    follow,
    listen_with_tls,
    settings_of,
    view_keys,
    wait_executed,
)
from tests.support.view_files import binlogs_in
from tests.support.view_waits import waits_in

pytestmark = pytest.mark.interop

KEPT = view_keys(gtids="keep", dependencies="writeset")
SIXTEEN = (*REPLICA_DEFAULTS[:-1], "--replica-parallel-workers=16")
NEW = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-lock-wait-timeout=3", "--max-connections=50")
ONE_VALUE = "--binlog-transaction-dependency-history-size=1"
PART = 4 << 20
"""Bytes of a source's file behind which the view begins again."""
WRITERS, EACH = 4, 60
COMPARED_BY_ONE = (
    "CREATE DATABASE sure",
    "CREATE TABLE sure.texts (w VARCHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_roman_ci PRIMARY KEY)",
    "CREATE TABLE sure.numbers (id INT PRIMARY KEY)",
    *(f"INSERT INTO sure.texts VALUES ('w{number}')" for number in range(50)),
    *(f"INSERT INTO sure.numbers VALUES ({number})" for number in range(50)),
)


@pytest.fixture(scope="module")
def judge(module_servers: ServerFactory) -> Iterator[KeyJudge]:
    with KeyJudge(module_servers("mysql97").start(server_id=99)) as judge:
        yield judge


def own_waits(archived: Path, view: Path, scratch: Path) -> list[tuple[int, int]]:
    """What the keys alone say of a file, whose source tells nothing: each transaction waits for the one before it."""
    count = len(list(groups_of(archived)))
    data = renumbered(archived.read_bytes(), [(number, number + 1) for number in range(count)])

    def read_into(place: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(place)]
        place[: len(piece)] = piece
        return len(piece)

    settings = settings_of(KEPT)
    begin = ViewCheckpoint.of_file(1, b"")
    translation = FileTranslation(archived.name, read_into, settings, rules_of(settings), begin, {})
    translation.tables = read_tables(view, VIEW)
    made, buffer = bytearray(b"\xfebin"), bytearray(1 << 20)
    while not translation.done:
        made += buffer[: translation.fill(buffer, 0, len(data), sealed=True)]
    path = scratch / archived.name
    path.write_bytes(made)
    return numbers_of(path)


def numbers_of(path: Path) -> list[tuple[int, int]]:
    return [(group.last_committed, group.sequence_number) for group in groups_of(path)]


def wider(told: int, own: int, number: int) -> int:
    """The last transaction that number `number` waits for; a source that names none means all before."""
    return max(min(told if told else number - 1, own), int(number > 1))


@pytest.mark.parametrize("options", [(), (ONE_VALUE,)], ids=["defaults", "history of one"])
def test_each_transaction_waits_for_what_the_wider_of_both_says_and_nothing_collides(
    servers: ServerFactory, judge: KeyJudge, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with ViewChain(servers, "mysql97", tmp_path, options=(*NEW, *options), views=[KEPT]) as chain:
        replica = chain.view_replica(options=SIXTEEN)
        KeyWorkload(chain.source, 31, generated=True).run(600)
        chain.source.execute_many([*COMPARED_BY_ONE, "FLUSH BINARY LOGS"])
        chain.check_replica(replica, [DATABASE, "sure"])
        view = chain.view_directory()
        waits_in(view).check_numbers()
        assert check_dependencies(judge, binlogs_in(view), alone=False) > 120
        kept_more = found_more = 0
        for made in binlogs_in(view)[:-1]:
            archived = chain.relay.archive / made.name
            assert archived.stat().st_size < PART
            told, kept, own = numbers_of(archived), numbers_of(made), own_waits(archived, view, tmp_path)
            assert [number for _last, number in told] == list(range(1, len(told) + 1))
            for (one, number), (two, _), three in zip(told, own, kept, strict=True):
                assert three == (wider(one, two, number) if number > 1 else 0, number), made.name
                kept_more += 0 < one < two
                found_more += two < (one or number - 1)
        # With a history of many values the source compares texts that the view does not; with that of one it knows next to nothing.
        print(f"{kept_more} wider by the source, {found_more} by the keys")
        assert (found_more if options else kept_more) > 30


def tagged_work(source: Server) -> None:
    """Rows of a table from several connections at once, with GTIDs of a tag, of another tag, and of none."""

    def write(writer: int) -> None:
        with closing(source.connect("d")) as connection, connection.cursor() as cursor:
            for number in range(EACH):
                key = writer * 1000 + number
                cursor.execute(f"SET gtid_next = 'AUTOMATIC{('', ':dump', ':app')[(writer + number) % 3]}'")
                cursor.execute(f"INSERT INTO rows_of VALUES ({key}, {writer})")
                if number % 5 == 4:
                    cursor.execute("UPDATE shared SET n = n + 1 WHERE id = 1")
                if number % 20 == 19:
                    cursor.execute(f"CREATE TABLE made_{key} (id INT PRIMARY KEY)")

    source.execute_many(
        [
            "CREATE DATABASE d",
            "CREATE TABLE d.rows_of (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE d.shared (id INT PRIMARY KEY, n INT)",
            "INSERT INTO d.shared VALUES (1, 0)",
        ]
    )
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_transactions_whose_gtids_have_tags_have_the_numbers_of_the_source(
    servers: ServerFactory, judge: KeyJudge, tmp_path: Path
) -> None:
    with ViewChain(servers, "mysql97", tmp_path, options=NEW, views=[KEPT]) as chain:
        replica = chain.view_replica(options=SIXTEEN)
        tagged_work(chain.source)
        chain.check_replica(replica, ["d"])
        view = chain.view_directory()
        waits_in(view).check_numbers()
        assert check_dependencies(judge, binlogs_in(view), alone=False) > WRITERS * EACH
        (made,) = binlogs_in(view)
        told, kept = (list(groups_of(path)) for path in (chain.relay.archive / made.name, made))
        assert sum(group.has_tag for group in kept) > WRITERS * EACH / 2
        for one, two in zip(told[1:], kept[1:], strict=True):
            assert (one.sequence_number, one.has_tag) == (two.sequence_number, two.has_tag)
            # Rows behind a GTID with a tag are not looked at: of such numbers the length hangs on what they say.
            wanted = wider(one.last_committed, one.sequence_number - 1, one.sequence_number)
            assert two.last_committed == wanted if two.has_tag else two.last_committed <= wanted, two
        assert parallel_width(kept) >= parallel_width(told) > 1


def test_a_view_goes_on_with_the_numbers_of_a_promoted_replica(servers: ServerFactory, tmp_path: Path) -> None:
    options = (*NEW, "--replica-parallel-workers=4")
    first, second = (servers("mysql97").start(server_id=number, options=options) for number in (1, 2))
    second.sql("FLUSH BINARY LOGS")
    second.attach_to(first)
    KeyWorkload(first, 41, generated=True).run(300)
    sections = {"[account]": {"admin": True}, "listen": listen_with_tls(tmp_path)}
    relay = RelayProcess(tmp_path / "relay", first, port=free_port(), sections=sections)
    add_views(relay, [KEPT])
    with relay:
        replica = servers("mysql97").start(server_id=9, options=SIXTEEN)
        follow(replica, relay.port)
        wait_executed(replica, executed_by(first), relay)
        second.wait_for_source(first)
        first.kill()
        second.stop_replica()
        second.sql("FLUSH BINARY LOGS")
        KeyWorkload(second, 42, generated=True, database="later").run(300)
        relay.sql("STOP SLAVE")
        relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={second.port}")
        relay.sql("START SLAVE")
        wait_executed(replica, executed_by(second), relay)
        check_equal(second, replica, [DATABASE, "later"])
        view = named_view(relay.archive, settings_of(KEPT))
        generations = made_generations(view.archive, view.directory)
        assert [one.number for one in generations] == [1, 2]
        assert relay.stop() == 0
        for made in generations:
            waits_in(made.directory).check_numbers()
            assert list(differences(made.directory, files_of(made.directory), made_again(view, made))) == []
        told = {path.name: list(groups_of(path)) for path in second.binlogs()}
        for path in binlogs_in(generations[-1].directory)[-1:]:
            # The tables of the new database are known by their definitions, and the source's own numbers count, too.
            assert parallel_width(list(groups_of(path))) >= parallel_width(told[path.name]) > 1
