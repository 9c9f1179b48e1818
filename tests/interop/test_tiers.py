"""Real replicas behind a relay whose every binlog but the newest is in a bucket, which may not answer for a while."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from deploy.servers import Server
from protocol.errors import ErrorCode
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import get_json, http_section, metric
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient
from tests.support.s3_server import S3Server, need_rclone
from tests.support.storage_faults import Fault

pytestmark = pytest.mark.interop

GTIDS: Final = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
FILES: Final = 5
ROWS: Final = 40


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        yield server


def sections(storage: S3Server, folder: str, key: Path) -> dict[str, dict[str, Any]]:
    """All goes to the bucket as soon as it is sealed, encrypted; nothing that was read stays in memory for long."""
    key.write_text("ab" * 32)
    options = storage.options(folder)
    bucket = {
        "url": options.url,
        "endpoint": options.endpoint,
        "region": options.region,
        "access_key_id": options.access_key_id,
        "secret_key_file": options.secret_key_file,
    }
    return {
        "archive.tiers": {"hot_bytes": "1KiB", "cold_bytes": "1KiB", "read_cache": "1MiB"},
        "archive.bucket": bucket,
        "archive.encryption": {"active": "first"},
        "[archive.encryption.key]": {"id": "first", "file": str(key)},
    }


def fill(source: Server) -> None:
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a LONGTEXT) ENGINE=InnoDB"])
    for file in range(FILES):
        rows = [f"INSERT INTO d.t VALUES ({file * ROWS + row}, HEX(RANDOM_BYTES(900)))" for row in range(ROWS)]
        if source.name != "mysql97":
            rows = [row.replace("HEX(RANDOM_BYTES(900))", "REPEAT(SHA2(RAND(), 256), 30)") for row in rows]
        source.execute_many([*rows, "FLUSH BINARY LOGS"])


def wait_moved(chain: Chain) -> None:
    """Until all but the newest are in the bucket, and nothing of them is here but what stands beside."""
    end = chain.wait_archived()

    def moved() -> list[str]:
        places = sorted(chain.relay.archive.glob("*.place"))
        return [path.stem for path in places if json.loads(path.read_text())["place"]["tier"] == "object"]

    wanted = len(chain.source.binlogs()) - 1
    wait_until(lambda: len(moved()) == wanted, "all but the newest are in the bucket", timeout_s=60)
    wait_until(lambda: not list(chain.relay.archive.glob("*.zst*")), "they are not here as well")
    assert not any((chain.relay.archive / name).exists() for name in moved()) and end.file not in moved()


def a_chain(chains: ChainFactory, storage: S3Server, kind: str, key: Path, **more: dict[str, Any]) -> Chain:
    """All but its newest binlog are in the bucket, and nothing of them is in the relay's memory."""
    options = GTIDS if kind == "mysql97" else ["--binlog-format=ROW"]
    chain = chains(kind, options=options, sections={**sections(storage, kind, key), **more})
    fill(chain.source)
    wait_moved(chain)
    start_anew(chain)
    return chain


def start_anew(chain: Chain) -> None:
    chain.relay.stop()
    chain.relay.start()


@pytest.fixture(scope="module")
def web() -> int:
    """Where the old chain's relay is monitored."""
    return free_port()


@pytest.fixture(scope="module")
def old_chain(
    module_chains: ChainFactory, storage: S3Server, tmp_path_factory: pytest.TempPathFactory, web: int
) -> Chain:
    return a_chain(module_chains, storage, "mysql56", tmp_path_factory.mktemp("key") / "key", **http_section(web))


class Asking:
    """Many clients at once, each for a binlog that is in the bucket: how long it took until each was refused, and the error numbers."""

    def __init__(self, chain: Chain) -> None:
        self._port = chain.relay.port
        self.names = [path.name for path in chain.source.binlogs()][:-1]

    def one(self, number: int) -> tuple[int, float]:
        began = time.monotonic()
        client = ReplicaClient(self._port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=90.0)
        try:
            client.set_up(server_id=5000 + number)
            client.ask_dump(self.names[number % len(self.names)], 4, flags=1, server_id=5000 + number)
            while client.event() is not None:
                pass
        except pymysql.MySQLError as error:
            return error.args[0], time.monotonic() - began
        finally:
            client.cut()
        return 0, time.monotonic() - began

    def all(self, count: int) -> tuple[set[int], float]:
        with ThreadPoolExecutor(count) as clients:
            ended = list(clients.map(self.one, range(count)))
        return {number for number, _took in ended}, max(took for _number, took in ended)


def add_and_compare(chain: Chain, replicas: list[Server], number: int) -> None:
    """What is in the bucket, and what comes behind it."""
    chain.check_tables(replicas, ["d"])
    chain.source.sql(f"INSERT INTO d.t VALUES ({number}, 'behind')")
    chain.check_tables(replicas, ["d"])


@pytest.mark.parametrize("kind", ["mysql97", "mariadb"])
def test_replicas_by_position_and_by_gtid_get_everything_from_the_bucket(
    chains: ChainFactory, storage: S3Server, tmp_path: Path, kind: str
) -> None:
    chain = a_chain(chains, storage, kind, tmp_path / "key")
    replicas = [chain.replica(kind)]
    if kind == "mysql97":
        replicas.append(chain.server(kind, GTIDS))
        replicas[-1].attach("127.0.0.1", chain.relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
    else:
        replicas.append(chain.replica(kind, use_gtid="slave_pos"))
    add_and_compare(chain, replicas, -1)


def test_an_old_replica_and_a_statement_read_what_is_in_the_bucket(old_chain: Chain) -> None:
    add_and_compare(old_chain, [old_chain.replica("mysql56")], -1)
    name = old_chain.source.binlogs()[1].name
    events = old_chain.relay.sql(f"SHOW BINLOG EVENTS IN '{name}' LIMIT 3")
    assert events[0][2] == "Format_desc"


def test_a_bucket_that_throttles_and_sends_wrong_and_half_answers_delays_a_replica_and_no_more(
    old_chain: Chain, storage: S3Server
) -> None:
    start_anew(old_chain)
    for fault in (Fault.THROTTLED, Fault.WRONG, Fault.HALF, Fault.CUT, Fault.RESET):
        storage.faults.order(fault, 2, method="GET", part="mysql56", ranges_only=True)
    add_and_compare(old_chain, [old_chain.replica("mysql56")], -2)
    storage.faults.forgive()
    assert [line for line in old_chain.relay.logged("archive_ledger") if line["kind"] == "damaged"] == []


def test_a_replica_goes_on_by_itself_when_a_bucket_that_was_gone_is_back(old_chain: Chain, storage: S3Server) -> None:
    start_anew(old_chain)
    at_end = old_chain.replica("mysql56", old_chain.source.master_status())
    storage.faults.refuse()
    replica = old_chain.replica("mysql56")
    old_chain.source.execute_many(["CREATE DATABASE e", "CREATE TABLE e.t (id INT PRIMARY KEY) ENGINE=InnoDB"])
    at_end.wait_caught_up(*old_chain.source.master_status(), timeout=20)
    storage.faults.listen()
    old_chain.check_tables([replica], ["d", "e"])


def test_a_bucket_that_is_away_is_told_once_and_costs_no_more_however_many_replicas_ask(
    old_chain: Chain, storage: S3Server, web: int
) -> None:
    relay = old_chain.relay
    start_anew(old_chain)
    asking = Asking(old_chain)
    at_end = old_chain.replica("mysql56", old_chain.source.master_status())
    storage.faults.refuse()
    try:
        # Those who come first find it out, each after all tries of a call.
        assert asking.all(24)[0] == {ErrorCode.ER_UNKNOWN_ERROR}
        wait_until(lambda: metric(web, "bucket_away") == 1, "it is known to be away")
        told, threads, memory = len(relay.logged("binlog_not_available")), thread_count(relay.pid), rss_bytes(relay.pid)
        for _ in range(5):
            numbers, took_s = asking.all(24)
            assert numbers == {ErrorCode.ER_UNKNOWN_ERROR} and took_s < 5
        assert len(relay.logged("binlog_not_available")) == told
        assert thread_count(relay.pid) < threads + 12 and rss_bytes(relay.pid) < memory + (24 << 20)
        # Those that ask for one binlog at one time share an answer.
        spared = 5 * len(asking.names)
        wait_until(lambda: (metric(web, "bucket_requests_spared_total") or 0) >= spared, "they are counted")
        assert get_json(web, "tiers")["read_cache"]["bucket_away_since"] > 0
        old_chain.source.sql("CREATE DATABASE meanwhile")
        at_end.wait_caught_up(*old_chain.source.master_status(), timeout=20)
    finally:
        storage.faults.listen()
    wait_until(lambda: metric(web, "bucket_away") == 0, "it is found again", 70)
    old_chain.check_tables([old_chain.replica("mysql56")], ["d"])
    assert [len(relay.logged(event)) for event in ("bucket_away", "bucket_answers")] == [1, 1]


def thread_count(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_a_relay_ends_in_time_while_its_bucket_does_not_answer(old_chain: Chain, storage: S3Server) -> None:
    start_anew(old_chain)
    storage.faults.requests.clear()
    storage.faults.order(Fault.SILENT, 1000)
    replica = old_chain.replica("mysql56")
    rows = [f"INSERT INTO d.t VALUES ({-100 - row}, REPEAT(SHA2(RAND(), 256), 30))" for row in range(ROWS)]
    old_chain.source.execute_many([*rows, "FLUSH BINARY LOGS"])

    def is_asked_for(part: str) -> bool:
        return any(part in request.path for request in storage.faults.requests)

    wait_until(lambda: is_asked_for(".zst"), "a replica waits for the bucket")
    wait_until(lambda: is_asked_for("binlog-relay.json"), "the mover waits for it too")
    try:
        assert old_chain.relay.stop() == 0
    finally:
        storage.faults.forgive()
    old_chain.relay.start()
    old_chain.check_tables([replica], ["d"])
