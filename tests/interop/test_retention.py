"""[retention] with real servers: replicas that are attached, stopped, dead, by position and by GTID; views; a relay that is killed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from protocol.gtid.gtid_set import GtidSet
from relay.archive.storage.files import KNOWN_REPLICAS_NAME, PURGE_NAME
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.conftest import need_server
from tests.interop.conftest import ChainFactory
from tests.support.binlog_builder import BinlogBuilder
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.interop

GTID_OPTIONS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
LOOSE, TIGHT = "1TiB", "150KiB"
PASS_S = 60.0
"""A pass is made every 15 s."""


def known(relay: RelayProcess) -> list[dict[str, object]]:
    path = relay.archive / KNOWN_REPLICAS_NAME
    return list(json.loads(path.read_text())["replicas"]) if path.exists() else []


def write_files(source: Server, count: int) -> None:
    """So many binlogs of about 100 KiB each, and one that has just begun."""
    for _ in range(count):
        source.sql(f"INSERT INTO d.t (b) VALUES ('{'x' * 100_000}')")
        source.sql("FLUSH BINARY LOGS")


def set_size(relay: RelayProcess, before: str, after: str) -> None:
    relay.config.write_text(relay.config.read_text().replace(f'"{before}"', f'"{after}"'))
    assert relay.reload()["event"] == "reloaded"


def preview(relay: RelayProcess) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "relay", "archive", "purge", "--dry-run", "--json", "--config", str(relay.config)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in told.stdout.splitlines()]


def archived(relay: RelayProcess) -> list[str]:
    """Their names: files go while one looks."""
    return sorted(path.name for path in relay.archive.glob("mysql-bin.[0-9]*") if path.suffix[1:].isdigit())


def noted_as_removed(relay: RelayProcess) -> list[str]:
    return sorted(row.file for row in read_ledger(relay.archive) if row.kind == "purged")


def kept_from(relay: RelayProcess) -> str:
    return archived(relay)[0]


def wait_received(chain: Chain, replica: Server) -> str:
    """Until the relay knows that the replica has received the newest file; its name."""
    end = chain.wait_archived()
    replica.wait_caught_up(*end)
    wait_until(
        lambda: [one["arrived_file"] for one in known(chain.relay)] == [end.file], "the replica is known there", PASS_S
    )
    return end.file


def held_back_by(relay: RelayProcess, kept_by: str) -> list[dict[str, Any]]:
    """The lines that say so."""
    return [line for line in relay.logged("retention_held_back") if line["kept_by"] == kept_by]


def begin(chain: Chain) -> None:
    chain.source.sql("CREATE DATABASE d")
    chain.source.sql("CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT) ENGINE=InnoDB")
    write_files(chain.source, 4)


def test_what_a_stopped_replica_needs_stays_until_it_has_it_and_a_dead_one_is_told_what_to_do(
    chains: ChainFactory,
) -> None:
    need_server("mysql56")
    chain = chains("mysql56", sections={"retention": {"keep_bytes": LOOSE}})
    relay, source = chain.relay, chain.source
    begin(chain)
    replica = chain.replica("mysql56")
    needed = wait_received(chain, replica)
    replica.stop_replica()
    write_files(source, 6)
    chain.wait_archived()
    assert all(not line["goes"] for line in preview(relay))

    set_size(relay, LOOSE, TIGHT)
    wait_until(lambda: kept_from(relay) == needed, "all before what the replica needs is gone", PASS_S)
    # Its old connection is a reader until the relay knows that it has ended.
    wait_until(lambda: held_back_by(relay, "replica"), "the replica keeps the rest", PASS_S)
    line = held_back_by(relay, "replica")[0]
    assert line["file"] == needed
    assert "needs it" in line["what"] and f"'{REPLICA_USER}'@'127.0.0.1', away for" in line["what"]
    assert {str(line["why"]).partition(" (")[0] for line in preview(relay)} == {
        f"replica {known(relay)[0]['server_id']}"
    }

    replica.start_replica()
    chain.check_tables([replica], ["d"])
    newest = wait_received(chain, replica)
    wait_until(lambda: kept_from(relay) > needed, "it has it, and the rest goes too", PASS_S)
    assert all(
        row.text.startswith(f'[retention] keep_bytes = "{TIGHT}"')
        for row in read_ledger(relay.archive)
        if row.kind == "purged"
    )

    # It dies, and comes back after longer than it is waited for.
    replica.stop_replica()
    relay.stop()
    kept = json.loads((relay.archive / KNOWN_REPLICAS_NAME).read_text())
    kept["replicas"][0]["absent_s"] = 8 * 86400
    (relay.archive / KNOWN_REPLICAS_NAME).write_text(json.dumps(kept))
    write_files(source, 6)
    relay.start()
    chain.wait_archived()
    wait_until(lambda: kept_from(relay) > newest, "a dead replica keeps nothing", PASS_S)
    assert wait_for_line(relay, "retention_left_replica_behind", timeout_s=PASS_S)["file"] == newest
    replica.start_replica()
    number, text = replica.wait_io_error()
    assert number == 1236 and "It was purged: copy the data to the replica again" in text
    assert list(verify_archive(relay.archive, deep=True)) == []


def test_by_gtid_what_is_removed_is_purged_and_the_replica_is_refused_as_by_a_source(chains: ChainFactory) -> None:
    need_server("mysql97")
    sections = {"retention": {"keep_bytes": TIGHT, "keep_for_replicas": False}}
    chain = chains("mysql97", options=GTID_OPTIONS, sections=sections)
    begin(chain)
    chain.wait_archived()
    wait_until(lambda: len(archived(chain.relay)) <= 2, "the oldest files go", PASS_S)

    def shown(name: str) -> GtidSet:
        return GtidSet.from_text(str(chain.relay.sql(f"SELECT @@GLOBAL.{name}")[0][0]))

    executed = GtidSet.from_text(str(chain.source.sql("SELECT @@GLOBAL.gtid_executed")[0][0]))
    wait_until(lambda: shown("gtid_executed") == executed, "all is there")
    assert shown("gtid_purged") and shown("gtid_purged") <= executed
    replica = chain.server("mysql97", options=GTID_OPTIONS)
    replica.attach("127.0.0.1", chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
    number, text = replica.wait_io_error()
    assert number in (1236, 13114) and "purged required binary logs" in text
    # With what is purged taken for executed, it goes on.
    replica.stop_replica()
    replica.sql("CREATE DATABASE d")
    replica.sql("CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)")
    replica.sql("RESET BINARY LOGS AND GTIDS")
    replica.sql(f"SET GLOBAL gtid_purged = '{shown('gtid_purged')}'")
    replica.start_replica()
    replica.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)")
    assert not replica.replica_status()["io_errno"]


def test_the_files_of_a_view_go_by_the_same_limits_and_the_mirrors_not_before_it_is_made(chains: ChainFactory) -> None:
    need_server("mysql56")
    chain = chains("mysql56", sections={"retention": {"keep_bytes": LOOSE}, "[view]": {"name": "gtid"}})
    begin(chain)
    newest = chain.wait_archived().file
    of_view = chain.relay.archive / "views" / "gtid"
    wait_until(lambda: (of_view / newest).exists(), "the view is made")
    before = sorted(path.name for path in of_view.glob("mysql-bin.0?????"))
    set_size(chain.relay, LOOSE, TIGHT)
    wait_until(lambda: len(list(of_view.glob("mysql-bin.0?????"))) <= 2, "files of the view go", PASS_S)
    wait_until(lambda: len(archived(chain.relay)) <= 2, "files of the mirror go", PASS_S)
    assert len(before) == 5
    gone = {row.file for row in read_ledger(of_view) if row.kind == "purged"}
    assert gone and gone < set(before)
    write_files(chain.source, 2)
    newest = chain.wait_archived().file
    wait_until(lambda: (of_view / newest).exists(), "the view goes on")
    assert {line["archive"] for line in preview(chain.relay)} == {None, "gtid"}


def test_a_disk_that_would_become_full_makes_room_by_itself(chains: ChainFactory, tmp_path: Path) -> None:
    need_server("mysql56")
    with small_disk(tmp_path / "small", "24m") as small:
        sections = {"archive": {"dir": str(small)}, "retention": {"min_free": "6MiB"}}
        chain = chains("mysql56", sections=sections)
        source, archive = chain.source, small / "source"
        source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.b (v LONGBLOB)", "SET GLOBAL binlog_format=ROW"])
        for _ in range(12):
            source.execute_many(["INSERT INTO d.b VALUES (REPEAT('x', 3000000))", "FLUSH BINARY LOGS"])
        end = source.master_status()

        def is_there() -> bool:
            return (archive / end.file).exists() and (archive / end.file).stat().st_size >= end.position

        wait_until(is_there, "all is archived", 90)
        wait_until(lambda: shutil.disk_usage(small).free >= 6 << 20, "there is room again", PASS_S)
        assert chain.relay.stop() == 0
        reasons = {row.text.partition(":")[0] for row in read_ledger(archive) if row.kind == "purged"}
        assert reasons == {'[retention] min_free = "6MiB"'}
        assert list(verify_archive(archive, deep=True)) == []


def test_a_relay_that_is_killed_while_it_removes_finishes_that_at_its_next_start(tmp_path: Path) -> None:
    binlogs = tmp_path / "binlogs"
    binlogs.mkdir()
    names = [f"mysql-bin.{number:06d}" for number in range(1, 601)]
    for name, following in zip(names, [*names[1:], ""], strict=True):
        built = BinlogBuilder().transaction(4000)
        (binlogs / name).write_bytes(built.rotate(following).data if following else built.data)
    (binlogs / "mysql-bin.index").write_text("".join(f"./{name}\n" for name in names))
    sections = {"retention": {"keep_bytes": LOOSE}}
    with RelayProcess(tmp_path / "relay", binlogs, port=free_port(), sections=sections) as relay:
        relay.wait_archived(names[-1], (binlogs / names[-1]).stat().st_size)
        set_size(relay, LOOSE, TIGHT)
        wait_until(lambda: (relay.archive / PURGE_NAME).exists(), "files are being removed", PASS_S)
        relay.kill()
        ordered = [json.loads(line)[2] for line in (relay.archive / PURGE_NAME).read_text().splitlines()]
        relay.start()
        assert ordered and not set(ordered) & set(archived(relay))
        assert not (relay.archive / PURGE_NAME).exists()
        wait_until(lambda: len(archived(relay)) * 4000 <= 150 << 10, "the rest goes as well", PASS_S)
        # A removal that is being made is noted before its files are gone.
        wait_until(
            lambda: noted_as_removed(relay) == sorted({*names} - {*archived(relay)}), "each is noted once", PASS_S
        )
    assert list(verify_archive(relay.archive, deep=True)) == []
