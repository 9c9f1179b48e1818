"""A relay between real servers whose catalog is damaged, removed or emptied: it starts, and its replica goes on."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop

PAGE = 4096


def a_chain(chains: ChainFactory, source_name: str) -> Chain:
    chain = chains(source_name)
    chain.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT) ENGINE=InnoDB"])
    for number in range(1, 4):
        chain.source.sql(f"INSERT INTO d.t VALUES ({number}, REPEAT('M', 300))")
        chain.source.sql("FLUSH BINARY LOGS")
    chain.wait_published()
    return chain


def in_text(chain: Chain) -> list[str]:
    lines = (chain.relay.archive / "ledger.jsonl").read_text().splitlines()
    return [line.get("kind", line["record"]) for line in map(json.loads, lines)]


def kinds_told(chain: Chain) -> list[str]:
    answer = chain.relay.command("archive", "ledger", "--json")
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line)["kind"] for line in answer.stdout.splitlines()]


@pytest.mark.parametrize(("source_name", "step"), [("mysql56", 2), ("mariadb", 5)])
def test_with_any_page_of_its_catalog_damaged_the_relay_starts_and_the_replica_goes_on(
    chains: ChainFactory, source_name: str, step: int
) -> None:
    """Each page in each way: tests/property/test_catalog_damage.py."""
    chain = a_chain(chains, source_name)
    replica = chain.replica(source_name)
    path = chain.relay.archive / "catalog.sqlite"
    assert chain.relay.stop() == 0
    damaged = 0
    for page in range(0, path.stat().st_size // PAGE, step):
        with path.open("r+b") as file:
            file.seek(page * PAGE)
            file.write(random.Random(page).randbytes(PAGE))
        damaged += 1
        chain.relay.start()
        chain.source.sql(f"INSERT INTO d.t VALUES ({100 + page}, 'behind')")
        chain.wait_published()
        assert chain.relay.stop() == 0
        if page % 4 == 0:
            rebuilt = chain.relay.command("archive", "rebuild")
            assert rebuilt.returncode == 0, rebuilt.stderr
    chain.relay.start()
    assert kinds_told(chain) == ["catalog_set_aside"] * damaged
    assert in_text(chain).count("catalog_set_aside") == damaged
    assert "source" in in_text(chain)
    chain.check_archive()
    chain.check_tables([replica], ["d"])


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(random.Random(1).randbytes(3 * PAGE))
    other.rename(path)


@pytest.mark.parametrize("happen", [remove, replace, empty])
def test_a_catalog_that_is_lost_under_the_running_relay_is_in_its_place_again(
    chains: ChainFactory, happen: Callable[[Path], None]
) -> None:
    chain = a_chain(chains, "mysql97")
    replica = chain.replica("mysql97")
    path = chain.relay.archive / "catalog.sqlite"
    happen(path)
    for number in range(10, 13):
        chain.source.sql(f"INSERT INTO d.t VALUES ({number}, 'behind')")
        chain.source.sql("FLUSH BINARY LOGS")
    chain.wait_published()
    wait_until(lambda: chain.relay.logged("archive_ledger"), "the relay says what happened")
    assert chain.relay.logged("archive_write_failed") == []
    assert set(kinds_told(chain)) <= {"catalog_remade", "catalog_set_aside"}
    assert chain.relay.stop() == 0
    chain.relay.start()
    assert len(kinds_told(chain)) == 1
    chain.check_archive()
    chain.check_tables([replica], ["d"])


def test_check_config_tries_to_write_where_the_archive_is(chains: ChainFactory) -> None:
    chain = a_chain(chains, "mysql56")
    before = sorted(path.name for path in chain.relay.archive.iterdir())
    assert chain.relay.command("check-config").returncode == 0
    assert sorted(path.name for path in chain.relay.archive.iterdir()) == before
