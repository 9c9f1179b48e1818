"""A source without checksums: bytes that were changed in the archive reach no replica, in files that are complete and in the one that
grows, while the relay runs and while it is stopped."""

from pathlib import Path

import pytest

from deploy.servers import BinlogPosition, Server
from relay.archive.sums.block_sum import BLOCK_BYTES, sum_paths
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop

ROWS = 20
ROW_BYTES = 3000


def a_chain(chains: ChainFactory, source_name: str = "mysql56") -> tuple[Chain, Path, Path]:
    """A chain of a source without checksums, its first file, which is sealed, and its second, which grows: with ROWS rows each."""
    chain = chains(source_name, options=["--binlog-checksum=NONE", "--binlog-format=STATEMENT"])
    chain.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT) ENGINE=InnoDB"])
    sealed = chain.source.master_status().file
    insert(chain, 1)
    chain.source.sql("FLUSH BINARY LOGS")
    insert(chain, 101)
    chain.wait_published()
    return chain, chain.relay.archive / sealed, chain.relay.archive / chain.source.master_status().file


def insert(chain: Chain, first: int) -> None:
    for number in range(first, first + ROWS):
        chain.source.sql(f"INSERT INTO d.t VALUES ({number}, '{'M' * ROW_BYTES}')")


def change_row(path: Path, number: int) -> int:
    """Changes one byte of the text of a row, counted from 0; the block's offset that it is in."""
    data = bytearray(path.read_bytes())
    at = -1
    for _ in range(number + 1):
        at = data.index(b"M" * ROW_BYTES, at + 1 + ROW_BYTES * (at >= 0))
    data[at + ROW_BYTES // 2] = ord("X")
    with path.open("r+b") as file:  # the same file: who has it open reads what is changed
        file.write(data)
    return (at + ROW_BYTES // 2) // BLOCK_BYTES * BLOCK_BYTES


def stopped_at(chain: Chain, replica: Server, path: Path, block: int) -> None:
    """The replica is stopped by name, and log, ledger, status and `archive list` know where."""
    errno, text = replica.wait_io_error()
    assert errno in (1236, 13114)
    assert f"binlog-relay's archive is damaged at {path.name}:{block}" in text
    status = dict(chain.relay.sql("SHOW STATUS LIKE 'Binlog_relay_archive_damaged%'"))
    assert status["Binlog_relay_archive_damaged_files"] == "1"
    assert status["Binlog_relay_archive_damaged_first"].startswith(f"{path.name}:{block}")
    rows = [line for line in chain.relay.logged("archive_ledger") if line["kind"] == "damaged"]
    assert [(row["file"], row["offset"]) for row in rows] == [(path.name, block)]


def restarted(chain: Chain) -> None:
    chain.relay.stop()
    chain.relay.start()


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("source_name", ["mysql56", "mariadb"])
def test_a_changed_byte_of_a_complete_file_reaches_no_replica(
    chains: ChainFactory, source_name: str, stopped: bool
) -> None:
    chain, sealed, _growing = a_chain(chains, source_name)
    if stopped:
        chain.relay.stop()
    block = change_row(sealed, 12)
    assert block == 2 * BLOCK_BYTES
    if stopped:
        chain.relay.start()
    replica = chain.replica(source_name)
    stopped_at(chain, replica, sealed, block)
    wait_until(
        lambda: replica.sql("SELECT COUNT(*) FROM d.t")[0][0] >= 9, "what is before the changed block is applied"
    )
    assert replica.sql("SELECT COUNT(*) FROM d.t WHERE a LIKE '%X%'") == [(0,)]
    # Those who are behind it go on.
    end = chain.source.binlogs()[-1].name
    chain.attach(other := chain.server(source_name), BinlogPosition(end, 4), start=False)
    other.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT) ENGINE=InnoDB"])
    other.start_replica()
    wait_until(lambda: other.sql("SELECT COUNT(*) FROM d.t") == [(ROWS,)], "what is behind the damage is applied")


@pytest.mark.parametrize("row", [7, ROWS - 1], ids=["in a block that is full", "in the last block"])
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "restarted"])
def test_a_changed_byte_of_the_file_that_grows_reaches_no_replica(
    chains: ChainFactory, row: int, stopped: bool
) -> None:
    chain, _sealed, growing = a_chain(chains)
    follower = chain.replica("mysql56")
    chain.check_tables([follower], ["d"])
    if stopped:
        chain.relay.stop()
    block = change_row(growing, row)
    if stopped:
        chain.relay.start()
        follower.stop_replica()
        follower.start_replica()
    replica = chain.replica("mysql56")
    stopped_at(chain, replica, growing, block)
    wait_until(lambda: replica.sql("SELECT COUNT(*) FROM d.t")[0][0] >= ROWS, "what is before it is applied")
    assert replica.sql("SELECT COUNT(*) FROM d.t WHERE a LIKE '%X%'") == [(0,)]
    # The source goes on, and what was received of it is in the sums still.
    chain.source.execute_many(["FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (500, 'behind')"])
    chain.wait_published()
    chain.relay.stop()
    verified = chain.relay.command("archive", "verify", "--deep")
    assert f"{growing.name}" in verified.stdout
    assert f"the block at {block} is not what was received" in verified.stdout
    assert chain.relay.command("archive", "repair").returncode == 0
    assert chain.relay.command("archive", "verify", "--deep").stdout == "The archive is fine.\n"
    chain.relay.start()
    for one in (replica, follower):
        one.stop_replica()
        one.start_replica()
    chain.check_tables([replica, follower], ["d"])


def test_a_tail_that_was_changed_while_a_killed_relay_was_down_is_fetched_again(chains: ChainFactory) -> None:
    chain, _sealed, growing = a_chain(chains)
    insert(chain, 201)
    chain.wait_published()
    chain.relay.kill()
    change_row(growing, 2 * ROWS - 1)
    chain.relay.start()
    chain.check_archive()
    chain.check_tables([chain.replica("mysql56")], ["d"])
    assert [row["kind"] for row in chain.relay.logged("archive_recovery_finding")] == ["trimmed_bad_bytes"]


@pytest.mark.parametrize("both", [False, True], ids=["one", "both"])
def test_damaged_sums_alone_stop_nobody(chains: ChainFactory, both: bool) -> None:
    chain, sealed, _growing = a_chain(chains)
    places = sum_paths(sealed)[: 1 + both]
    whole = [place.read_bytes() for place in places]
    for place, content in zip(places, whole, strict=True):
        with place.open("r+b") as file:
            file.write(bytes(byte ^ 0x55 for byte in content))
    chain.check_tables([chain.replica("mysql56")], ["d"])
    rows = [line for line in chain.relay.logged("archive_ledger") if line["kind"] == "block_sums"]
    assert {row["file"] for row in rows} == {sealed.name}
    told = "is served without being compared" if both else "were put right from its copy"
    assert all(told in row["text"] for row in rows)
    # From the copy at once, or by the file's digest in a while.
    wait_until(lambda: [place.read_bytes() for place in places] == whole, "the sums are right again")
    chain.relay.stop()
    assert chain.relay.command("archive", "verify", "--deep").stdout == "The archive is fine.\n"
